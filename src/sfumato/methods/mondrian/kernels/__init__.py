"""Compiled loops of Mondrian: arrays in, arrays out.

problem    the arguments of kernels: axes, targets, rules, and scratch space
rules      does a set of rows satisfy the requirement? (all at once, or threshold by threshold)
frequency  frequency sets: counts per code of an attribute
scores     scores of splits, from counts
choose     ties and allowability: running totals of an attribute in, split out
choose_by_rows   count rows that are at hand, and choose
cells      the same over the feature space: other features divide every part into cells
select     the same for selections: costs of regions that queries overlap
counted    all three from counts, as Python calls them
grow       depth-first growth: choose, move rows, repeat
descend    send rows of codes down a finished tree
statistics the requirement on groups whose rows are counted block by block
quantile   quantiles of chi-square
trim       trees with fewer splits, or more children
decision_list   cells of a decision list, and the rows that they take
"""
