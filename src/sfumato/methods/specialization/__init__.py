"""Methods that give each column one cut, shared by all rows, and push it down step by step.

``loop`` is the loop that they share; ``tds`` makes groups that satisfy the requirements [FWY05]; ``diffgen`` makes a
differentially private release [MCFY11]. ``mesh``, ``column_counts``, ``groups`` and ``order`` count rows by cells of
the cuts, in memory or on disk; ``gains`` are what candidates gain.
"""
