"""Cells as small integers: each column is encoded once, and everything after that works on codes.

``encoders`` has the domains of columns and the encoders of whole columns and of batches; ``columns`` (in memory) and
``stream`` (batch by batch) encode targets and sensitive columns; ``declared`` encodes by declared domains, for
differential privacy; ``discretize`` cuts numbers into intervals that tell classes apart; ``blocks`` are encoded rows on
their way, ``cells`` the values of a column before they are encoded.
"""
