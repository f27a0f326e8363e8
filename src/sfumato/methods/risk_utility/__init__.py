"""Each row gets the generalization that is best for its owner: least risk at a given utility [FEB12].

In the order of a run: ``encode`` makes codes of the table and the side table, ``problem`` is what is optimized, in whole
numbers (with ``model``, utility and weight of values), ``optimize`` picks an optimizer, ``publish`` makes cells of what
it found, ``release`` runs them all. ``apply`` generalizes further rows. ``optimizers`` are those for daily use, ``paper``
those of the paper for study, ``private`` is differentially private sampling.
"""
