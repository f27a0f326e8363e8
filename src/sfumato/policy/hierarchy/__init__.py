"""How the values of a column are generalized, step by step: from one value to all of them.

``tree`` has :class:`Hierarchy`; ``builders`` makes one from a declaration (masks, dates, intervals, balanced halves);
``files`` reads one from a file; ``declared`` makes the hierarchies of differentially private releases, which must not
depend on the rows.
"""
