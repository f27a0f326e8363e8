"""Compiled loops of the paper's algorithms: ``marginal`` and ``bracket`` (Lagrangian), ``flow`` (cut), ``genes``
(genetic).
"""
