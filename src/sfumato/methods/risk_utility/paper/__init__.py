"""The paper's own algorithms and their repairs, for study: Lagrangians and cuts, Algorithms 1, 2 and 4, the polytope."""
