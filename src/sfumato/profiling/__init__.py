"""A first look at a table: a draft of a policy for it, with a reason for each guess.

``profile`` has :func:`profile`. ``facts`` measures the cells of a column, ``names`` says what its name suggests,
``guess`` decides what it is, ``draft`` writes the policy, and ``private`` one for DiffGen.
"""
