"""Compiled loops that several packages use, and how all of them are compiled.

Kernels take arrays and give arrays, and import numpy and numba only. Those of one method stand in its own folder
``kernels``. Here are: ``compile`` (how all of them are compiled, and where that
is kept), ``watch`` (who is told while they are compiled), ``late`` (compiled at the first call), ``axes`` and
``nodes`` (columns and trees as arrays), ``route`` (send rows down a tree), ``shuffle`` (rows in random order),
``spread`` (rows that lie evenly over boxes),
``ranks`` (the place of each number in a sorted list), ``counts`` (counts by key) and ``information`` (x log2 x by
whole numbers alone).
"""
