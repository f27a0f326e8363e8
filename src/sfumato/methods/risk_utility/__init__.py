"""Each row gets the generalization that is best for its owner: least risk at a given utility [FEB12].

``problem`` is what is optimized, in whole numbers; ``model`` counts utility and weight of values; ``generalize``
encodes the table and publishes what was chosen; ``optimize`` picks an optimizer; ``release`` runs the method;
``apply`` recodes further rows. ``optimizers`` are those for daily use, ``paper`` those of the paper for study,
``private`` is differentially private sampling.
"""
