"""Hierarchies that come with the package: lists of values, and rules for codes, each with its source and licence.

``entries`` reads the files beside it; ``codes`` has what a policy declares with ``{library: NAME}``; ``proposals`` says
which of them fit the values of a column.
"""
