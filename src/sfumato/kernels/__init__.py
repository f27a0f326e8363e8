"""Arrays in, arrays out: the loops over rows, compiled by numba. They import numpy and numba only.

problem    what a partition-tree kernel is told: axes, targets, rules, and its scratch space
rules      does a set of rows satisfy the requirement? (all at once, or threshold by threshold)
frequency  frequency sets: counts per code of an attribute
sets       frequency sets of rows that are never together, block by block, and what they decide
choose     the only home of scores, ties and allowability: frequency sets in, split out
cells      the same over the feature space: other features divide every part into cells
select     the same for selections: costs of regions that queries overlap
grow       depth-first growth: choose, move rows, repeat
route      send rows down a finished tree: values, strangers too
descend    the same for rows of codes, fast
tally      the requirement on groups that are counted block by block
quantile   quantiles of chi-square
ranks      where numbers stand among others
marginal   what the counts of single columns prove of the Lagrangian of one row
bracket    where the best generalization of a row must lie, and what other rows prove of it
flow       maximum flow and minimum cut
trim       trees with fewer splits, or more children
late       kernels that load numba when they are first called
compile    how all of them are compiled, and where that is kept
watch      who is told while they are compiled
"""
