"""What all compiled loops share. Kernels take arrays and give arrays, and import numpy and numba only.

Each method's own stand in its folder ``kernels``. Here are: ``compile`` (how all of them are compiled, and where that
is kept), ``watch`` (who is told while they are compiled), ``late`` (compiled at the first call), ``axes`` and
``nodes`` (columns and trees as arrays), ``route`` (send rows down a tree), ``shuffle`` (rows in random order) and
``ranks`` (where numbers stand among others).
"""
