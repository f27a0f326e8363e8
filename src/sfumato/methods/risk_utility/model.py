r"""Utility and weight of hierarchy nodes: how much a value tells, and how sensitive it is [FEB12, section 2.1.2].

Both add up over columns. Utility never rises towards the root, and weight rises only by exception. Here they are floats;
:mod:`problem` makes whole numbers of them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import PolicyError
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.options.risk_utility import DEPTH, INVERSE, LOG, MODEL_1, MODEL_2, Utility, Weights
from sfumato.policy.schema import Attribute

Floats = NDArray[np.float64]


def utilities(attribute: Attribute, tree: Hierarchy, utility: Utility) -> Floats:
    r"""The utility of each node.

    .. math:: depth(x), \quad 1 / n(x), \quad \ln (n(root) / n(x))

    n(x) is the number of leaves below x. Given a list, a node has the entry of its depth; nodes deeper than the list have
    its last.

    >>> tree = Hierarchy.from_tree({"*": {"North": ["a", "b"], "c": None}})
    >>> utilities(Attribute("x", "quasi-identifier"), tree, "depth").tolist()
    [0.0, 1.0, 2.0, 2.0, 1.0]
    >>> utilities(Attribute("x", "quasi-identifier"), tree, "inverse").round(2).tolist()
    [0.33, 0.5, 1.0, 1.0, 1.0]
    """
    n_leaves = (tree.high - tree.low).astype(np.float64)
    if callable(utility):
        found = np.asarray(utility(attribute, tree), dtype=np.float64)
    elif isinstance(utility, Mapping) and attribute.name in utility:
        by_depth = np.asarray(utility[attribute.name], dtype=np.float64)
        found = by_depth[np.minimum(tree.depth, len(by_depth) - 1)]
    elif utility == INVERSE:
        found = 1 / n_leaves
    elif utility == LOG:
        found = np.log(tree.n_leaves / n_leaves)
    else:
        assert utility == DEPTH or isinstance(utility, Mapping)
        found = tree.depth.astype(np.float64)
    if found.shape != (tree.n_nodes,) or not np.all(np.isfinite(found)) or np.any(found < 0):
        raise PolicyError(
            f"The utility of column {attribute.name!r} must be one number of at least 0 for each node."
        )
    if np.any(found[1:] < found[tree.parent[1:]]):
        raise PolicyError(
            f"The utility of column {attribute.name!r} rises towards the root; a more general value cannot tell more."
        )
    return found


def weights(attribute: Attribute, tree: Hierarchy, given: Weights, *, n_columns: int) -> Floats:
    r"""The weight of each node.

    Model I: that of the column, 0 for the root. Model II: one over the number of columns, the root included.
    Harmonic: one over the sum of one over the weights of its children, 0 for the root and where a child has 0.

    >>> tree = Hierarchy.from_tree({"*": {"North": ["a", "b"], "c": None}})
    >>> weights(Attribute("x", "quasi-identifier"), tree, Weights("harmonic"), n_columns=2).tolist()
    [0.0, 0.5, 1.0, 1.0, 1.0]
    >>> weights(Attribute("x", "quasi-identifier"), tree, Weights("model-2"), n_columns=2).tolist()
    [0.5, 0.5, 0.5, 0.5, 0.5]
    """
    own = given.attributes.get(attribute.name, 1.0)
    factor = 1.0 if isinstance(own, Mapping) else float(own)
    if given.model == MODEL_2:
        return np.full(tree.n_nodes, factor / n_columns)
    if given.model == MODEL_1:
        out = np.full(tree.n_nodes, factor)
    else:
        out = factor * _harmonic(tree, own if isinstance(own, Mapping) else {})
    out[0] = 0.0
    return out


def _harmonic(tree: Hierarchy, by_label: Mapping[str, float]) -> Floats:
    """Harmonic weights, from the leaves up; one over 0 is infinite."""
    out = np.ones(tree.n_nodes)
    for node in tree.leaf_nodes.tolist():
        label = tree.labels[node]
        out[node] = by_label.get(label, 1.0) if label is not None else 1.0
    sums = np.zeros(tree.n_nodes)
    is_leaf = np.zeros(tree.n_nodes, dtype=np.bool_)
    is_leaf[tree.leaf_nodes] = True
    with np.errstate(divide="ignore"):
        for node in range(tree.n_nodes - 1, -1, -1):
            if not is_leaf[node]:
                out[node] = 1 / sums[node]
            if node:
                sums[tree.parent[node]] += 1 / out[node]
    return out


__all__ = ["utilities", "weights"]
