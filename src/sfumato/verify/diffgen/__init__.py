"""Checks of DiffGen's releases: ``counts`` (the published rows), ``cuts`` (the generalization) and ``ledger`` (what
was spent).
"""
