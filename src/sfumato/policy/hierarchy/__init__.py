"""How the values of a column are generalized, step by step: from one value to all of them.

``declaration`` is what every declaration answers, ``declarations`` has what a policy can say (flat, mask, dates,
intervals, balanced, or a given tree) as values that build a tree, ``library`` has those that come with the package, and
``builders`` all of them by their word; ``tree`` has the tree, :class:`Hierarchy`; ``grid`` the leaves of
numbers; ``leaf_ranges`` the numbers or days that each leaf stands for; ``files`` reads a tree from a file;
``declared`` gives a place to every cell, for differentially private releases, which must not depend on the rows.
"""
