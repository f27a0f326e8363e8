"""Each row gets the generalization that is best for its owner: least risk at a given utility [FEB12].

:mod:`problem` is what is optimized, in whole numbers; :mod:`model` counts utility and weight of values.
"""
