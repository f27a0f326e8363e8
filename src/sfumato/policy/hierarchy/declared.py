"""Hierarchies of declared values alone: the same whatever the table, with a place for every cell.

A cell that is missing, unreadable or of no declared value is *missing*. Missing is the last leaf, below the last
child of each node on the way down, so that it adds no child to any of them: a cut that does not look closer has
as many nodes as are declared, the last of them called ``X or missing``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.schema import Attribute, Kind

OR_MISSING = " or missing"


def name_undeclared(attribute: Attribute) -> str | None:
    """What the policy must add for the column's values to be known without a table; None if they are.

    >>> name_undeclared(Attribute("age", "quasi-identifier", Kind.NUMBER, bounds=(0, 110)))
    'bounds and step, such as bounds: [0, 110], step: 1'
    """
    if not attribute.is_ordered:
        return attribute.declaration.name_undeclared(attribute)
    if attribute.kind is Kind.DATE:
        return None if attribute.bounds else "bounds, such as bounds: [2020-01-01, 2024-12-31]"
    is_there = attribute.bounds is not None and attribute.step is not None
    return None if is_there else "bounds and step, such as bounds: [0, 110], step: 1"


def with_missing(tree: Hierarchy) -> Hierarchy:
    """The hierarchy with missing as its last leaf; nodes and codes that were there stay where they are.

    A hierarchy that declares missing itself stays as it is.

    >>> with_missing(Hierarchy.from_tree({"Any": {"Professional": ["Lawyer"], "Artist": ["Dancer"]}})).as_tree()
    {'Any': {'Professional': ['Lawyer'], 'Artist or missing': {'Dancer or missing': ['Dancer', None]}}}
    """
    if None in tree.labels or tree.n_nodes == 1:
        return tree.with_missing()
    labels, node = list(tree.labels), tree.n_nodes - 1
    last = labels[node]
    while node > 0:
        labels[node] = f"{labels[node]}{OR_MISSING}"
        node = int(tree.parent[node])
    below = tree.n_nodes - 1
    return Hierarchy((*labels, last, None), np.append(tree.parent, [below, below]))


def leaf_codes(attribute: Attribute, tree: Hierarchy, values: Any) -> NDArray[np.int64]:
    """The code of each value in a hierarchy with missing, which is its last code, and that of all it lacks.

    Values are texts, float64 numbers or datetime64[D] dates; those outside the bounds count as the nearer bound.

    >>> sex = Attribute("sex", "quasi-identifier", values=("Male", "Female"))
    >>> leaf_codes(sex, with_missing(sex.build_declared_hierarchy()), ["Female", "x"]).tolist()
    [1, 2]
    """
    if attribute.bounds is not None:
        ends: Any = attribute.bounds
        if attribute.kind is Kind.DATE:
            ends = np.array(ends, dtype=np.int64).astype("datetime64[D]")
        values = np.clip(values, *ends)
    codes = attribute.locate(tree, values).astype(np.int64)
    return np.where(codes < 0, tree.n_leaves - 1, codes)
