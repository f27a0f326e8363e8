"""What labels of rests exclude: ``* (not US)`` is all that ``*`` covers but ``US``.

A split may tell nodes of a hierarchy apart from the rest of its rows. Below the rest, along this axis, the label names all
nodes that were told apart on the way and lie below the label's own node, in the order of their numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.policy.hierarchy.tree import Hierarchy

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Nodes = tuple[int, ...]

MISSING = "missing"
"""What a label calls the leaf of missing cells."""


class ExcludedNodes:
    """The sets of nodes that boxes along one axis exclude. Each has a number, in the order in which they are found.

    >>> places = Hierarchy.from_tree({"*": {"North": ["a", "b"], "c": None}})
    >>> sets = ExcludedNodes(places)
    >>> told = sets.number([4, 2])
    >>> told, sets[told], sets[0]
    (1, (2, 4), ())
    >>> north, top = sets.keep_below(np.array([1, 0]), np.array([told, told])).astype(int).tolist()
    >>> sets.write(np.array([1, 0]), np.array([north, top])).to_pylist()
    ['North (not a)', '* (not a, c)']
    """

    def __init__(self, tree: Hierarchy) -> None:
        self.tree = tree
        self._sets: list[Nodes] = [()]
        self._numbers: dict[Nodes, int] = {(): 0}

    def __getitem__(self, number: int) -> Nodes:
        return self._sets[number]

    def number(self, nodes: Iterable[int]) -> int:
        """The number of the set of these nodes."""
        found = tuple(sorted({*nodes}))
        if found not in self._numbers:
            self._numbers[found] = len(self._sets)
            self._sets.append(found)
        return self._numbers[found]

    def keep_below(self, nodes: NDArray[Any], numbers: NDArray[Any]) -> Floats:
        """The number of what each set has below the node of its box: no other node can be excluded from that."""
        if len(self._sets) == 1:
            return np.zeros(len(nodes))
        return self._of_pairs(nodes, numbers, self._below, np.float64)

    def write(self, nodes: NDArray[Any], numbers: NDArray[Any]) -> pa.Array:
        """The label of each node without the nodes of its set; null for missing alone."""
        return pa.array(self._of_pairs(nodes, numbers, self._label, object), pa.string())

    def names_missing(self, number: int) -> bool:
        """Does a set hold the leaf of missing cells?"""
        return any(self.tree.labels[node] is None for node in self[number])

    def outermost(self, number: int) -> Nodes:
        """The nodes of a set that lie below no other of it."""
        found: list[int] = []
        for node in self[number]:
            if not found or node > self._last(found[-1]):
                found.append(node)
        return tuple(found)

    def _of_pairs(
        self, nodes: NDArray[Any], numbers: NDArray[Any], find: Callable[[int, int], Any], dtype: Any
    ) -> NDArray[Any]:
        """What is found of each pair of a node and the number of a set; each distinct pair is looked at once."""
        n = len(self._sets)
        pairs, at = np.unique(nodes.astype(np.int64) * n + numbers.astype(np.int64), return_inverse=True)
        found = np.empty(len(pairs), dtype=dtype)
        found[:] = [find(*divmod(pair, n)) for pair in pairs.tolist()]
        return found[at]

    def _below(self, node: int, number: int) -> int:
        last = self._last(node)
        return self.number(other for other in self[number] if node < other <= last)

    def _label(self, node: int, number: int) -> str | None:
        label = self.tree.labels[node]
        return label if number == 0 or label is None else f"{label} (not {', '.join(self._names(number))})"

    def _names(self, number: int) -> Sequence[str]:
        labels = [self.tree.labels[node] for node in self[number]]
        return [MISSING if label is None else label for label in labels]

    def _last(self, node: int) -> int:
        """The last node below this one."""
        return int(self.tree.leaf_nodes[self.tree.high[node] - 1])
