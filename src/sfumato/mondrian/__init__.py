"""Partition trees: boxes chosen by recursive splits, local to each node."""
