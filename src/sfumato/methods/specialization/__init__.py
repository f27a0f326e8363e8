"""Methods that give each column one cut, shared by all rows, and push it down step by step.

``loop`` is the loop that they share; ``tds`` makes groups that satisfy the requirements [FWY05], in runs of ``grid_run``
that choose by ``best_score``; ``diffgen`` makes a differentially private release [MCFY11]. ``mesh``, ``column_counts``,
``groups`` and ``order`` count rows by cells of the cuts, on any engine; ``gains`` are what candidates gain.
"""
