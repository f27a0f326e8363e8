"""Compiled loops of specialization: ``cuts`` (gains, and the groups of the grid), ``purity`` (DiffGen's scores)."""
