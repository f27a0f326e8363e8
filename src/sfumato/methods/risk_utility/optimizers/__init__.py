"""Optimizers for daily use: ``exact`` (with ``tuples``), ``probing`` (with ``neighbours``) and ``branch``."""
