"""DiffP-C4.5, a differentially private tree [FS10]: the interactive rival of DiffGen in figure 4 of [MCFY11].

The tree is grown downwards, as C4.5 grows one: a category divides a node into all of its values and is used up on
that way down, a number divides it in two. Every look at rows is a draw that the ledger has charged. For a tree of
depth d over n numbers each draw costs

.. math:: B' = B / ((2 + n) d + 2)

because every level above the last asks, of each of its nodes, for its noisy number of rows, for a split point of each
number (exponential mechanism over the declared domain), and for the attribute to divide it by (exponential mechanism),
and because a leaf asks for its noisy number of rows and the noisy counts of its classes. Nodes of one level, and the
leaves of all levels, are of disjoint rows: one charge each.

The quality function is Max, their best: the rows that the majority of each part holds, of sensitivity 1.

A node is divided only if its noisy rows, shared out over classes and over the values of the widest attribute that is
left, are more than the standard deviation of the noise. Then noisy numbers of rows are made consistent from the top
down (children share out what their parent has), leaves share theirs out by their noisy classes, and nodes take the sum
of their leaves; by these C4.5's pessimistic pruning decides. Neither consistency nor pruning looks at rows.

The text of [FS10] was not at hand: budget, order of queries, stopping rule and pruning are those of the program that
its authors published, of which nothing is copied. Chosen here: the depth; the exponent of the plain exponential
mechanism, epsilon u / 2; discrete noise; a number of which a node has one declared value only is no candidate there,
which is public; noisy counts below 0 are 0; where all children of a node have 0 rows, they share equally; a missing
value is one of the declared values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import compress, pairwise
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sfumato.encoding.domain import Domain, OrderedDomain
from sfumato.evaluation.pruning import pessimistic_errors
from sfumato.privacy.ledger import Draw, Ledger
from sfumato.privacy.mechanisms import DISCRETE_LAPLACE, EXPONENTIAL, Mechanisms

Codes = NDArray[np.uint32]
Ints = NDArray[np.int64]

DEPTH = 5
"""Every level costs a share: a deeper tree is a noisier one."""

SENSITIVITY = 1
"""Of Max."""


@dataclass(slots=True, eq=False)
class Node:
    """A part of the domain: of each attribute the range of codes that is left, none of a category that is used up.

    rows      positions of its rows; let go once they are divided
    n_rows    noisy, later consistent
    counts    of classes, consistent
    """

    ranges: tuple[tuple[int, int] | None, ...]
    rows: Ints
    n_rows: float = 0.0
    counts: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    label: int = 0
    axis: int = -1
    cut: int = 0
    children: list[Node] = field(default_factory=list)

    def below(self) -> Iterator[Node]:
        """The node and all below it, parents first."""
        yield self
        for child in self.children:
            yield from child.below()


class DiffPC45:
    """A tree over declared domains; ``ledger`` is what it cost.

    ``rows`` (n, axes + 1) are codes of the attributes and then the class, as everywhere in sfumato.
    """

    def __init__(
        self,
        domains: Sequence[Domain],
        n_classes: int,
        epsilon: Fraction,
        mechanisms: Mechanisms,
        *,
        depth: int = DEPTH,
        prune: bool = True,
    ) -> None:
        self.domains, self.n_classes, self.depth, self.prune = domains, n_classes, depth, prune
        self.mechanisms = mechanisms
        self.ledger = Ledger(epsilon)
        n_numbers = sum(isinstance(domain, OrderedDomain) for domain in domains)
        self.share = epsilon / ((2 + n_numbers) * depth + 2)

    def fit(self, rows: Codes) -> Self:
        self.root_ = Node(tuple((0, domain.n_codes) for domain in self.domains), np.arange(len(rows)))
        self._count_classes(rows, self._grow(rows))
        _make_consistent(self.root_)
        if self.prune:
            _prune(self.root_)
        return self

    def predict(self, codes: Codes) -> Ints:
        """The class of each row of codes."""
        out = np.zeros(len(codes), dtype=np.int64)
        self._predict(self.root_, codes, np.arange(len(codes)), out)
        return out

    def _predict(self, node: Node, codes: Codes, rows: Ints, out: Ints) -> None:
        if not node.children:
            out[rows] = node.label
            return
        for child, part in zip(node.children, self._parts(node, codes, rows), strict=True):
            self._predict(child, codes, part, out)

    # -- growing -----------------------------------------------------------------------------------

    def _grow(self, rows: Codes) -> list[Node]:
        """Divide nodes level by level; gives the leaves."""
        level, leaves = [self.root_], []
        for levels_left in range(self.depth, -1, -1):
            sizes = self._noisy("rows of nodes", np.array([len(node.rows) for node in level]))
            for node, size in zip(level, sizes.tolist(), strict=True):
                node.n_rows = max(size, 0)
            is_divided = [levels_left > 0 and self._is_large(node) for node in level]
            leaves += [node for node, divides in zip(level, is_divided, strict=True) if not divides]
            divided = list(compress(level, is_divided))
            if not divided:
                break
            level = self._divide(divided, rows)
        return leaves

    def _is_large(self, node: Node) -> bool:
        widths = [self._width(node, axis) for axis in range(len(self.domains))]
        noise = math.sqrt(2) / float(self.share)
        return max(widths) > 1 and node.n_rows / (max(widths) * self.n_classes) > noise

    def _width(self, node: Node, axis: int) -> int:
        """Into how many parts an attribute would divide the node."""
        left = node.ranges[axis]
        if left is None:
            return 1
        n_values = left[1] - left[0]
        return min(n_values, 2) if isinstance(self.domains[axis], OrderedDomain) else n_values

    def _divide(self, nodes: Sequence[Node], rows: Codes) -> list[Node]:
        cuts = self._split_points(nodes, rows)
        self._charge("attribute", "", EXPONENTIAL, self._selection_scale)
        out = []
        for number, node in enumerate(nodes):
            offered = [axis for axis in range(len(self.domains)) if self._width(node, axis) > 1]
            scores = np.array([
                self._score(node, axis, cuts.get((number, axis), 0), rows) for axis in offered
            ])  # fmt: skip
            node.axis = offered[self.mechanisms.exponential(scores, self._selection_scale)]
            node.cut = cuts.get((number, node.axis), 0)
            parts = self._parts(node, rows, node.rows)
            node.children = [
                Node(ranges, part) for ranges, part in zip(self._ranges(node), parts, strict=True)
            ]
            node.rows = np.zeros(0, dtype=np.int64)
            out += node.children
        return out

    def _split_points(self, nodes: Sequence[Node], rows: Codes) -> dict[tuple[int, int], int]:
        """Of each node and number the code at which its right part begins."""
        out = {}
        for axis, domain in enumerate(self.domains):
            asking = [number for number, node in enumerate(nodes) if self._width(node, axis) > 1]
            if not (isinstance(domain, OrderedDomain) and asking):
                continue
            self._charge("split point", domain.attribute.name, EXPONENTIAL, self._selection_scale)
            for number in asking:
                counts = self._by_code(nodes[number], axis, rows)
                below = counts.cumsum(axis=0)
                scores = below[:-1].max(axis=1) + (below[-1] - below[:-1]).max(axis=1)
                left = nodes[number].ranges[axis]
                assert left is not None
                out[number, axis] = left[0] + 1 + self.mechanisms.exponential(scores, self._selection_scale)
        return out

    def _score(self, node: Node, axis: int, cut: int, rows: Codes) -> int:
        """Max of dividing a node by an attribute."""
        counts = self._by_code(node, axis, rows)
        if isinstance(self.domains[axis], OrderedDomain):
            left = node.ranges[axis]
            assert left is not None
            at = cut - left[0]
            counts = np.stack([counts[:at].sum(axis=0), counts[at:].sum(axis=0)])
        return int(counts.max(axis=1).sum())

    def _by_code(self, node: Node, axis: int, rows: Codes) -> Ints:
        """Rows of a node (codes that are left, classes)."""
        left = node.ranges[axis]
        assert left is not None
        low, high = left
        key = (rows[node.rows, axis].astype(np.int64) - low) * self.n_classes + rows[node.rows, -1]
        return np.bincount(key, minlength=(high - low) * self.n_classes).reshape(-1, self.n_classes)

    def _parts(self, node: Node, codes: Codes, rows: Ints) -> list[Ints]:
        """The rows of each child."""
        here = codes[rows, node.axis]
        if isinstance(self.domains[node.axis], OrderedDomain):
            return [rows[here < node.cut], rows[here >= node.cut]]
        order = np.argsort(here, kind="stable")
        ends = np.searchsorted(here[order], np.arange(self.domains[node.axis].n_codes + 1))
        return [rows[order[low:high]] for low, high in pairwise(ends.tolist())]

    def _ranges(self, node: Node) -> list[tuple[tuple[int, int] | None, ...]]:
        left = node.ranges[node.axis]
        assert left is not None
        is_number = isinstance(self.domains[node.axis], OrderedDomain)
        new = [(left[0], node.cut), (node.cut, left[1])] if is_number else [None] * (left[1] - left[0])
        return [(*node.ranges[: node.axis], each, *node.ranges[node.axis + 1 :]) for each in new]

    # -- leaves ------------------------------------------------------------------------------------

    def _count_classes(self, rows: Codes, leaves: Sequence[Node]) -> None:
        exact = np.stack([np.bincount(rows[leaf.rows, -1], minlength=self.n_classes) for leaf in leaves])
        noisy = self._noisy("classes of leaves", exact.ravel()).reshape(exact.shape)
        for leaf, counts in zip(leaves, noisy, strict=True):
            leaf.label = int(counts.argmax())
            kept = np.maximum(counts, 0)
            leaf.counts = kept / kept.sum() if kept.any() else np.eye(self.n_classes)[leaf.label]
            leaf.rows = np.zeros(0, dtype=np.int64)

    # -- draws -------------------------------------------------------------------------------------

    @property
    def _selection_scale(self) -> Fraction:
        return 2 * SENSITIVITY / self.share

    def _noisy(self, what: str, counts: Ints) -> Ints:
        self._charge(what, "", DISCRETE_LAPLACE, 1 / self.share)
        return self.mechanisms.discrete_laplace(counts.astype(np.int64), 1 / self.share)

    def _charge(self, what: str, of: str, mechanism: str, scale: Fraction) -> None:
        self.ledger.charge(Draw(what, of, mechanism, self.share, scale))


def _make_consistent(root: Node) -> None:
    """Children have together the rows of their parent; a node has the classes of its leaves."""
    nodes = list(root.below())
    for node in nodes:
        total = sum(child.n_rows for child in node.children)
        for child in node.children:
            share = child.n_rows / total if total else 1 / len(node.children)
            child.n_rows = share * node.n_rows
    for node in reversed(nodes):
        if node.children:
            node.counts = np.sum([child.counts for child in node.children], axis=0)
        else:
            node.counts = node.counts * node.n_rows


def _prune(root: Node) -> None:
    """A node becomes a leaf if that predicts at most a tenth of an error more than its leaves do [Q93]."""
    for node in reversed(list(root.below())):
        if node.children and _errors(node) <= sum(_errors_below(child) for child in node.children) + 0.1:
            node.children, node.label = [], int(node.counts.argmax())


def _errors_below(node: Node) -> float:
    return sum(_errors(leaf) for leaf in node.below() if not leaf.children)


def _errors(node: Node) -> float:
    if node.n_rows <= 0:
        return 0.0
    n_rows = np.array([node.n_rows])
    return float(pessimistic_errors(n_rows, np.maximum(n_rows - node.counts.max(), 0))[0])
