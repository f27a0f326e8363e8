"""Cells as small integers: each column is encoded once, batch by batch, and everything after that works on codes.

``domain`` says what codes mean; ``encoders`` has one encoder for each kind of quasi-identifier and for labels,
``numbers`` that of numbers to be predicted; ``targets`` has all columns beside the quasi-identifiers. They read
``batches`` of cells and make blocks of codes; a table in memory is one batch. ``declared`` encodes by declared domains,
for differential privacy, and ``discretize`` cuts numbers into intervals that tell classes apart.
"""
