"""The tree with rest branches in plain Python: slow, short and obviously right. Tests compare the fast one with it.

Nothing is imported from sfumato but the one table of x log2 x in fixed point (``information_of``), which has a twin
and tests of its own: what a score is must not depend on how a logarithm is rounded. Everything else, the hierarchies,
the labels, the candidates, the ties, is written here a second time.

What was decided where several readings are possible; the program decides the same:

Columns
 1. A hierarchy's leaves are numbered depth first, children in the order in which their labels first occur in
    ``leaves``. A column with a missing cell has one more leaf, None, the last child of the root; a column without
    has none. Leaves without rows count like others.
 2. After that a node with the range of its only child is dropped (the child stays, with its own label), so that all
    ranges differ. Nodes are numbered in order of (low ascending, high descending).
 3. R = leaves - 1, missing counted as a leaf where there is one. For numbers R = ceil((upper - lower) / step).
    A number stands at position ceil((value - lower) / step), cut to 0 .. R. Values at one position are never
    separated.
 4. The price of a step is rint(2^30 weight / (R greatest weight)), rounded once, half to even; a weight is the
    decimal that is written. With R = 0 a column is never split.

Labels
 5. W of a category is high - low of the least node that covers the node's rows: not of the node it was split from.
 6. W of a number: q = ceil((R + 1) / slices), low = floor(least / q) q, high = floor(greatest / q) q + q - 1, over
    the positions of the cells that are there, cut to the box of the path. The box begins as [0, R]; at a threshold
    after position t the lower part's box ends at t, the upper part's begins at t + 1. Missing does not widen it.
 7. Boxes are one slice, min..max are R + 1 slices: the tree grows by the labels that it will publish. A label says
    "or missing" where one of its rows is missing.

Candidates
 8. Kind 0, threshold after each position that occurs but the last. Missing goes with the part that has more cells
    that are there, in a tie with the upper one. Parts are counted with the missing rows, for bits and requirement.
 9. Kind 0, missing against present, if both occur. In ties it stands before every threshold. Both parts keep the
    box; the present part's W is the node's.
10. What a number costs in a node is (rows there) W + (rows missing) R, or 0 where all are missing. So at a threshold
    only cells that are there gain, and missing against present gains (rows missing) R.
11. Kind 1 at the cover v: children without rows are no parts, and do not hinder. Each child with rows that holds is
    a part; the others together are the rest, which must hold. At least two parts. If a single child holds beside a
    rest, it is a candidate of kind 1 as well as of kind 2.
12. Kind 1 gains, with W of the cover v: children (rows)(W - W of the child's whole range); the rest nothing, even
    where its rows have a smaller cover.
13. Kind 2: every node d strictly below v with rows in it (as v is the least cover there are rows outside it), also
    a single leaf, also missing. d counts with its whole range, the rest with the least node that covers the rows
    outside d.
14. Without ``rest`` there is kind 0, and kind 1 if every child with rows holds.
15. A part that is empty never holds. The numerator of the score must be above 0.

Score
16. g and b are whole numbers, made floats, then g / (sqrt(b) * sqrt(sqrt(b))).
17. With tasks: numerator = sum of weight * max(0, I - c) / I(root), from the first task on in this order of
    operations (weight * max(..)) / I(root), beginning with 0.0; then + (loss weight * g) / G at the end. c =
    F(N) / (2 N) * (classes of the table - 1) as floats, 0 without ``chance``. I = sum over parts of
    (sum over classes F(n) - F(part)) less the same of the node, a whole number. Missing is a class.
18. Ties: larger score, smaller largest part (rows, missing ones included), earlier column, kind, then lower position
    (missing against present first), or node number.
19. Parts are in order: lower, upper; missing, present; children in code order, the rest last; d, the rest.
20. A rest of kind 1 excludes children as they are declared: an only child that was dropped above its own only child
    gives the name. A rest of kind 2 excludes the node that stayed. Both say the same of the table's values, and each
    is what a later row goes by: a new value below the dropped node joins its part, or goes with the rest.
21. A task whose class is the same in all rows adds nothing (17): without a loss weight nothing is split then (15).

Left-out rows
22. With an allowance b a candidate of kind 1 may leave out its rest, if that does not hold (or without ``rest`` whatever
    children do not hold), and one of kind 2 the side that does not hold, if these are at most b rows and some part
    stands. Its gain is less by (rows left out) UNIT (sum of weights, the greatest 1), and must be above 0. They
    count as one part in bits, in information and in the largest part, and are no node.
23. What is left of b goes to the parts in proportion to their rows, rounded down; then one row each to the parts with
    the largest remainders, of equal ones the first. So it does at every split.
24. Where people count, there is a second allowance of people: as many may have a row left out. Those of a split spend it,
    and what is left goes to the parts in proportion to their people, rounded in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.information import information_of  # x log2 x in fixed point, and nothing else

Rows = NDArray[np.int64]
Allowance = tuple[int, int]
"""How many rows may be left out, and how many people may have one of them."""
Path = tuple[Hashable, ...]
"""A leaf of a hierarchy: the labels from the root down to it."""
UNIT = 2**30


# ---- columns ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Number:
    """A column that is split by thresholds; ``read`` makes a number of a cell that is not missing."""

    cells: Sequence[Any]
    lower: Any
    upper: Any
    step: Any = 1
    weight: Any = 1
    slices: int | None = 32
    read: Callable[[Any], Any] = lambda cell: cell

    @cached_property
    def length(self) -> int:
        return math.ceil((exact(self.upper) - exact(self.lower)) / exact(self.step))

    @cached_property
    def slice(self) -> int:
        """The steps of a slice; without ``slices`` all are one."""
        return -(-(self.length + 1) // (self.slices or 1))

    @cached_property
    def codes(self) -> NDArray[np.int64]:
        """Positions of the cells, -1 for missing."""
        known = {cell: self.position(cell) for cell in set(self.cells)}
        return np.array([known[cell] for cell in self.cells], dtype=np.int64)

    def position(self, cell: Any) -> int:
        if cell is None:
            return -1
        steps = math.ceil((exact(self.read(cell)) - exact(self.lower)) / exact(self.step))
        return min(max(steps, 0), self.length)


@dataclass(frozen=True)
class Category:
    """A column that is split along a hierarchy; ``path`` finds the leaf of a cell that is not missing."""

    cells: Sequence[Any]
    leaves: Sequence[Path]
    path: Callable[[Any], Path]
    weight: Any = 1

    @cached_property
    def nodes(self) -> list[tuple[int, int, Hashable]]:
        """(low, high, label) of each node, as they are numbered."""
        root: dict[Hashable, Any] = {}
        for path in self.leaves:
            below = root
            for label in path[1:]:
                below = below.setdefault(label, {})
        if None in self.cells:
            root[None] = {}
        return self.number(self.leaves[0][0] if self.leaves else "*", root, 0)

    @cached_property
    def declared(self) -> list[Hashable]:
        """The label of the uppermost node with the range of each node."""
        uppermost: dict[tuple[int, int], Hashable] = {}
        paths = self.paths_in_order()
        for start in sorted({path[:end] for path in paths for end in range(1, len(path) + 1)}, key=len):
            inside = [code for code, path in enumerate(paths) if path[: len(start)] == start]
            uppermost.setdefault((inside[0], inside[-1]), start[-1])
        return [uppermost.get((low, high), label) for low, high, label in self.nodes]

    def number(
        self, label: Hashable, below: dict[Hashable, Any], low: int
    ) -> list[tuple[int, int, Hashable]]:
        if not below:
            return [(low, low, label)]
        inside: list[tuple[int, int, Hashable]] = []
        end = low
        for name, deeper in below.items():
            inside += self.number(name, deeper, end)
            end = 1 + max(high for _, high, _ in inside)
        return inside if len(below) == 1 else [(low, end - 1, label), *inside]

    @cached_property
    def length(self) -> int:
        return self.nodes[0][1]

    @cached_property
    def codes(self) -> NDArray[np.int64]:
        known = {path: code for code, path in enumerate(self.paths_in_order())}
        of_cell = {cell: self.length if cell is None else known[self.path(cell)] for cell in set(self.cells)}
        return np.array([of_cell[cell] for cell in self.cells], dtype=np.int64)

    def paths_in_order(self) -> list[Path]:
        """The leaves depth first: each level's labels in the order in which they first occur below their node."""
        seen: dict[Path, int] = {}
        for path in self.leaves:
            for depth in range(1, len(path) + 1):
                seen.setdefault(path[:depth], len(seen))
        return sorted(
            dict.fromkeys(self.leaves), key=lambda path: [seen[path[: i + 1]] for i in range(len(path))]
        )

    @cached_property
    def parent(self) -> list[int]:
        """The node directly above each; of the root -1."""
        return [
            max(
                (
                    above
                    for above in range(node)
                    if self.nodes[above][0] <= low and high <= self.nodes[above][1]
                ),
                default=-1,
            )
            for node, (low, high, _) in enumerate(self.nodes)
        ]

    @cached_property
    def children(self) -> list[list[int]]:
        return [
            [n for n, above in enumerate(self.parent) if above == node] for node in range(len(self.nodes))
        ]

    @cached_property
    def leaf_node(self) -> dict[int, int]:
        return {low: node for node, (low, high, _) in enumerate(self.nodes) if low == high}

    def cover(self, first: int, last: int) -> int:
        """The least node that covers two codes, and so all between them."""
        node = self.leaf_node[first]
        while self.nodes[node][1] < last:
            node = self.parent[node]
        return node

    def width(self, node: int) -> int:
        low, high, _ = self.nodes[node]
        return high - low

    def below(self, node: int) -> Iterator[int]:
        """All nodes strictly below one, in their order."""
        low, high, _ = self.nodes[node]
        return (n for n in range(node + 1, len(self.nodes)) if low <= self.nodes[n][0] <= high)


Column = Number | Category


def exact(number: Any) -> Fraction:
    """A number as the decimal that is written: 0.1 is a tenth."""
    return Fraction(number) if isinstance(number, (int, Fraction)) else Fraction(repr(float(number)))


# ---- nodes -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """A class to be told apart: its cells, and its weight."""

    cells: Sequence[Hashable]
    weight: float = 1.0

    @cached_property
    def codes(self) -> NDArray[np.int64]:
        known = {cell: code for code, cell in enumerate(dict.fromkeys(self.cells))}
        return np.array([known[cell] for cell in self.cells], dtype=np.int64)


@dataclass(frozen=True)
class Split:
    """A candidate: what it saves, and which rows go where; those ``left`` go nowhere.

    ``branches`` are thresholds' positions, or nodes of the hierarchy, -1 for the rest and None for missing.
    """

    column: int
    kind: int
    at: int
    gain: int
    parts: tuple[Rows, ...]
    branches: tuple[int | None, ...]
    left: tuple[Rows, ...] = ()

    @property
    def all_parts(self) -> tuple[Rows, ...]:
        return (*self.parts, *self.left)

    @cached_property
    def largest(self) -> int:
        return max(map(len, self.all_parts))


@dataclass
class Node:
    """A node of the tree: its rows and, per number, the positions that its path allows."""

    rows: Rows
    box: dict[int, tuple[int, int]]
    allowance: Allowance = (0, 0)
    split: Split | None = None
    children: list[Node] = field(default_factory=list)

    def leaves(self) -> Iterator[Node]:
        if self.split is None:
            yield self
        for child in self.children:
            yield from child.leaves()


@dataclass(frozen=True)
class Rest:
    """The tree with rest branches over the rows of some columns.

    ``holds`` says of a set of rows whether the requirement holds. With tasks the score is mixed.
    """

    columns: Sequence[Column]
    holds: Callable[[Rows], bool]
    tasks: Sequence[Task] = ()
    rest: bool = True
    loss_weight: float = 0.1
    chance: bool = True
    share: Fraction = Fraction(0)
    people: Sequence[int] | None = None

    # ---- prices ----

    @cached_property
    def n_rows(self) -> int:
        return len(self.columns[0].cells)

    @cached_property
    def prices(self) -> list[int]:
        greatest = max(exact(column.weight) for column in self.columns)
        return [
            round(UNIT * exact(column.weight) / (greatest * column.length))
            if column.length and greatest
            else 0
            for column in self.columns
        ]

    @cached_property
    def information(self) -> list[int]:
        """F(x) = x log2 x of every count."""
        return [int(x) for x in information_of(np.arange(self.n_rows + 1))]

    def score(self, node: Node, split: Split) -> float:
        f = self.information
        bits = float(f[len(node.rows)] - sum(f[len(part)] for part in split.all_parts))
        root = math.sqrt(bits) * math.sqrt(math.sqrt(bits))
        if not self.tasks:
            return float(split.gain) / root
        total = 0.0
        for task, at_root, chance in self.useful_tasks:
            told = sum(self.certainty(task, part) for part in split.all_parts)
            told -= self.certainty(task, node.rows)
            total += task.weight * max(0.0, float(told) - chance) / float(at_root)
        whole = float(UNIT * self.n_rows * len(self.columns))
        return (total + self.loss_weight * float(split.gain) / whole) / root

    @cached_property
    def useful_tasks(self) -> list[tuple[Task, int, float]]:
        """The tasks with something to tell apart, what there is of it, and what chance alone would gain."""
        everything = np.arange(self.n_rows)
        chance = float(self.information[self.n_rows]) / float(2 * self.n_rows) if self.chance else 0.0
        at_root = [(task, -self.certainty(task, everything)) for task in self.tasks]
        return [(task, i, chance * float(len(set(task.cells)) - 1)) for task, i in at_root if i > 0]

    def certainty(self, task: Task, rows: Rows) -> int:
        """Minus the bits that it takes to say the classes of these rows."""
        counts = np.bincount(task.codes[rows])
        return sum(self.information[n] for n in counts) - self.information[len(rows)]

    # ---- candidates ----

    def candidates(self, node: Node) -> Iterator[Split]:
        for index, column in enumerate(self.columns):
            if column.length == 0:
                continue
            codes = column.codes[node.rows]
            if isinstance(column, Number):
                yield from self.thresholds(node, index, column, codes)
            else:
                yield from self.all_children(node, index, column, codes)
                if self.rest:
                    yield from self.one_against_rest(node, index, column, codes)

    def thresholds(self, node: Node, index: int, column: Number, codes: NDArray[np.int64]) -> Iterator[Split]:
        price = self.prices[index]
        present = np.unique(codes[codes >= 0])
        n_missing = int((codes < 0).sum())
        if len(present) == 0:
            return
        low, high = node.box[index]
        width = label_width(column, present, (low, high))
        if n_missing:
            parts = (node.rows[codes < 0], node.rows[codes >= 0])
            yield Split(index, 0, -1, n_missing * column.length * price, parts, (None, -1))
        for i, t in enumerate(present[:-1].tolist()):
            lower, upper = (codes >= 0) & (codes <= t), codes > t
            n_lower, n_upper = int(lower.sum()), int(upper.sum())
            gain = n_lower * (width - label_width(column, present[: i + 1], (low, t)))
            gain += n_upper * (width - label_width(column, present[i + 1 :], (t + 1, high)))
            if n_lower > n_upper:
                lower |= codes < 0
            else:
                upper |= codes < 0
            yield Split(index, 0, t, gain * price, (node.rows[lower], node.rows[upper]), (t, -1))

    def all_children(
        self, node: Node, index: int, column: Category, codes: NDArray[np.int64]
    ) -> Iterator[Split]:
        v = column.cover(int(codes.min()), int(codes.max()))
        inside = {child: within(column, child, codes) for child in column.children[v]}
        alone = [child for child, mask in inside.items() if mask.any() and self.holds(node.rows[mask])]
        others = np.ones(len(codes), dtype=bool)
        for child in alone:
            others &= ~inside[child]
        parts, branches = [node.rows[inside[child]] for child in alone], list(alone)
        gain = sum(int(inside[child].sum()) * (column.width(v) - column.width(child)) for child in alone)
        gain *= self.prices[index]
        if others.any():
            if not self.rest or not self.holds(node.rows[others]):
                yield from self.leaving(
                    node, node.rows[others], Split(index, 1, v, gain, tuple(parts), tuple(branches))
                )
                return
            parts, branches = [*parts, node.rows[others]], [*branches, -1]
        if len(parts) < 2:
            return
        yield Split(index, 1, v, gain, tuple(parts), tuple(branches))

    def leaving(self, node: Node, left: Rows, split: Split) -> Iterator[Split]:
        """The split with these rows left out, if the node may do that and it pays."""
        gain = split.gain - len(left) * self.row_price
        most_rows, most_people = node.allowance
        is_few = 0 < len(left) <= most_rows and self.n_people(left) <= most_people
        if split.parts and is_few and gain > 0:
            yield replace(split, gain=gain, left=(left,))

    @cached_property
    def row_price(self) -> int:
        """The price of a row that is left out: that of its cells if they told nothing."""
        greatest = max(exact(column.weight) for column in self.columns)
        return sum(round(UNIT * exact(column.weight) / greatest) for column in self.columns)

    def one_against_rest(
        self, node: Node, index: int, column: Category, codes: NDArray[np.int64]
    ) -> Iterator[Split]:
        v = column.cover(int(codes.min()), int(codes.max()))
        for d in column.below(v):
            mask = within(column, d, codes)
            if not mask.any():
                continue
            outside = codes[~mask]
            around = column.cover(int(outside.min()), int(outside.max()))
            one = self.prices[index] * int(mask.sum()) * (column.width(v) - column.width(d))
            other = self.prices[index] * len(outside) * (column.width(v) - column.width(around))
            inner, outer = node.rows[mask], node.rows[~mask]
            yield Split(index, 2, d, one + other, (inner, outer), (d, -1))
            if any(node.allowance) and self.holds(inner) and not self.holds(outer):
                yield from self.leaving(node, outer, Split(index, 2, d, one, (inner,), (d,)))
            if any(node.allowance) and self.holds(outer) and not self.holds(inner):
                yield from self.leaving(node, inner, Split(index, 2, d, other, (outer,), (around,)))

    # ---- growth ----

    def best(self, node: Node) -> Split | None:
        """The first candidate by score and ties whose parts all hold."""
        scored = [(self.score(node, split), split) for split in self.candidates(node)]
        order = sorted(
            (pair for pair in scored if pair[0] > 0),
            key=lambda pair: (-pair[0], pair[1].largest, pair[1].column, pair[1].kind, pair[1].at),
        )
        return next(
            (split for _, split in order if split.kind == 1 or all(map(self.holds, split.parts))), None
        )

    def grow(self) -> Node:
        rows = np.arange(self.n_rows)
        box = {i: (0, column.length) for i, column in enumerate(self.columns) if isinstance(column, Number)}
        root = Node(rows, box, (int(self.share * len(rows)), int(self.share * self.n_people(rows))))
        open_nodes = [root]
        while open_nodes:
            node = open_nodes.pop()
            node.split = self.best(node)
            if node.split is not None:
                parts, (n_rows, n_people) = node.split.parts, node.allowance
                n_rows -= sum(map(len, node.split.left))
                n_people -= sum(map(self.n_people, node.split.left))
                by_people = hand_down(n_people, list(map(self.n_people, parts)))
                allowed = list(zip(hand_down(n_rows, list(map(len, parts))), by_people, strict=True))
                node.children = [
                    Node(part, self.box_of(node, place), allowed[place])
                    for place, part in enumerate(node.split.parts)
                ]
                open_nodes += node.children
        return root

    def n_people(self, rows: Rows) -> int:
        """Each row is a person of its own where nobody says whose it is."""
        return len(rows) if self.people is None else len({self.people[i] for i in rows.tolist()})

    def box_of(self, node: Node, place: int) -> dict[int, tuple[int, int]]:
        """The box of a part: the node's, cut at the threshold if there is one."""
        split = node.split
        if split is None or not isinstance(self.columns[split.column], Number) or split.at < 0:
            return node.box
        low, high = node.box[split.column]
        return {**node.box, split.column: (low, split.at) if place == 0 else (split.at + 1, high)}

    # ---- labels ----

    def labels(self, leaf: Node) -> list[Any]:
        """Per column: the label of a hierarchy's node; or (low, high, with missing), in positions.

        ``low`` and ``high`` are None where all cells are missing.
        """
        return [self.label(leaf, index) for index in range(len(self.columns))]

    def label(self, leaf: Node, index: int) -> Any:
        column = self.columns[index]
        codes = column.codes[leaf.rows]
        if isinstance(column, Category):
            return column.nodes[column.cover(int(codes.min()), int(codes.max()))][2]
        present = np.unique(codes[codes >= 0])
        if len(present) == 0:
            return None, None, True
        low, high = label_ends(column, present, leaf.box[index])
        return low, high, bool((codes < 0).any())

    def excluded(self, root: Node, leaf: Node, index: int) -> list[Any]:
        """The labels of what was told apart in a column on the way to a leaf and lies below its node, as numbered."""
        column, told, node = self.columns[index], dict[int, Hashable](), root
        if isinstance(column, Number):
            return []
        while node is not leaf:
            assert node.split is not None
            ways = [child for child in node.children if any(one is leaf for one in child.leaves())]
            if node.split.column == index and node.children[-1] is ways[0] and node.split.branches[-1] == -1:
                names = column.declared if node.split.kind == 1 else [label for *_, label in column.nodes]
                branches = [branch for branch in node.split.branches if branch is not None and branch >= 0]
                told |= {branch: names[branch] for branch in branches}
            node = ways[0]
        codes = column.codes[leaf.rows]
        inside = set(column.below(column.cover(int(codes.min()), int(codes.max()))))
        return [told[other] for other in sorted(told) if other in inside]

    def loss(self, leaf: Node, index: int) -> float:
        """The mean NCP of a leaf's rows in a column: (leaves - 1) / (all leaves - 1); missing in a mixed cell is 1."""
        column = self.columns[index]
        codes = column.codes[leaf.rows]
        if column.length == 0:
            return 0.0
        if isinstance(column, Category):
            return column.width(column.cover(int(codes.min()), int(codes.max()))) / column.length
        present = np.unique(codes[codes >= 0])
        if len(present) == 0:
            return 0.0
        n_missing = int((codes < 0).sum())
        width = label_width(column, present, leaf.box[index])
        return ((len(codes) - n_missing) * width / column.length + n_missing) / len(codes)

    def ncp(self, root: Node) -> float:
        losses = [
            len(leaf.rows) * self.loss(leaf, index)
            for leaf in root.leaves()
            for index in range(len(self.columns))
        ]
        return math.fsum(losses) / (self.n_rows * len(self.columns))


def hand_down(allowance: int, sizes: Sequence[int]) -> list[int]:
    """Shares of an allowance in proportion to these sizes, by largest remainder."""
    exactly = [Fraction(allowance * size, sum(sizes)) for size in sizes]
    shares = [math.floor(share) for share in exactly]
    order = sorted(range(len(sizes)), key=lambda place: (shares[place] - exactly[place], place))
    for place in order[: allowance - sum(shares)]:
        shares[place] += 1
    return shares


def within(column: Category, node: int, codes: NDArray[np.int64]) -> NDArray[np.bool_]:
    low, high, _ = column.nodes[node]
    return (low <= codes) & (codes <= high)


def label_ends(column: Number, present: NDArray[np.int64], box: tuple[int, int]) -> tuple[int, int]:
    """The slices from the least to the greatest of these positions, cut to the box."""
    q = column.slice
    low, high = int(present[0]) // q * q, int(present[-1]) // q * q + q - 1
    return max(low, box[0]), min(high, box[1])


def label_width(column: Number, present: NDArray[np.int64], box: tuple[int, int]) -> int:
    low, high = label_ends(column, present, box)
    return high - low
