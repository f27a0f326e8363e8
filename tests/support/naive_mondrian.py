"""Mondrian in plain Python: slow, short and obviously right. The tests compare the fast one with it.

Nothing is imported from sfumato but the values that say what is wanted (requirements and tasks); how a
requirement is decided, how a split is scored and which one is taken is written here a second time, from
[LDR08, sections 2, 3.1 and 3.2] and the rules for ties. Every candidate is tried, every part is looked at row by row.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from sfumato.policy.requirements import (
    DistinctDiversity,
    EntropyDiversity,
    KAnonymity,
    RecursiveDiversity,
    TCloseness,
    VarianceDiversity,
)
from sfumato.policy.workload import Classify

MISSING = -math.inf
"""A missing cell among the values of an ordered attribute: its own value, before all others."""

Row = Mapping[str, Any]
Allowance = tuple[int, int]
"""How many rows may be left out, and how many people may have one of them."""
Path = tuple[Any, ...]
"""A node of a hierarchy: the labels from the root down to it."""


@dataclass(frozen=True)
class Ordered:
    """A quasi-identifier that is split by thresholds; ``number`` reads a cell that is not missing.

    ``is_bounded``: its range is declared, so that a column of missing cells alone has a range too.
    """

    name: str
    number: Callable[[Any], float] = lambda cell: cell
    is_bounded: bool = False

    def value(self, row: Row) -> float:
        return MISSING if row[self.name] is None else self.number(row[self.name])


@dataclass(frozen=True)
class Tree:
    """A quasi-identifier that is split along a hierarchy.

    ``leaves`` are all its leaves, whether they occur or not; ``path`` finds the leaf of a cell (or of a cell
    that no leaf stands for, as much of its path as is known). Missing is one more leaf, under the root.
    """

    name: str
    leaves: tuple[Path, ...]
    path: Callable[[Any], Path]

    def node(self, row: Row) -> Path:
        return (
            (self.leaves[0][0] if self.leaves else "*", None)
            if row[self.name] is None
            else self.path(row[self.name])
        )


Axis = Ordered | Tree


@dataclass(frozen=True)
class Split:
    """A candidate: the attribute, what goes where, and for an ordered one the greatest value that goes left."""

    axis: int
    threshold: float | None
    branches: tuple[Any, ...]
    parts: tuple[tuple[int, ...], ...]
    stands: tuple[bool, ...] = ()
    """Which of the parts stay; none is left out where it does not say."""

    @property
    def largest(self) -> int:
        return max(map(len, self.parts))

    def left_out(self) -> list[int]:
        """The rows of the parts that are left out."""
        pairs = zip(self.parts, self.stands, strict=True) if self.stands else ()
        return [i for part, stands in pairs if not stands for i in part]

    @property
    def n_left(self) -> int:
        return len(self.left_out())

    def standing(self) -> list[tuple[Any, tuple[int, ...]]]:
        """The branches and parts that stay."""
        pairs = list(zip(self.branches, self.parts, strict=True))
        return [pair for pair, stays in zip(pairs, self.stands or [True] * len(pairs), strict=True) if stays]


@dataclass
class Node:
    """A node of the partition tree.

    ``box`` has per attribute (low, high), meaning low < value <= high with None for a low end that nothing
    limits, or the node of its hierarchy; ``cover`` the lowest nodes of the hierarchies that cover its rows.
    """

    members: tuple[int, ...]
    box: list[Any]
    is_selecting: bool = False
    allowance: Allowance = (0, 0)
    split: Split | None = None
    children: list[Node] = field(default_factory=list)

    def leaves(self) -> Iterator[Node]:
        if self.split is None:
            yield self
        for child in self.children:
            yield from child.leaves()

    def inner(self) -> Iterator[Node]:
        if self.split is not None:
            yield self
        for child in self.children:
            yield from child.inner()


def common(paths: Iterable[Path]) -> Path:
    """The lowest node that covers all of these.

    >>> common([("*", "North", "a"), ("*", "North", "b")])
    ('*', 'North')
    """
    first, *others = paths
    length = len(first)
    for path in others:
        length = next(
            (i for i in range(min(length, len(path))) if path[i] != first[i]), min(length, len(path))
        )
    return first[:length]


def hand_down(allowance: int, sizes: Sequence[int]) -> list[int]:
    """Shares of an allowance in proportion to these sizes, by largest remainder."""
    exactly = [Fraction(allowance * size, sum(sizes)) for size in sizes]
    shares = [math.floor(share) for share in exactly]
    order = sorted(range(len(sizes)), key=lambda place: (shares[place] - exactly[place], place))
    for place in order[: allowance - sum(shares)]:
        shares[place] += 1
    return shares


# ---- requirements, by their definitions ------------------------------------------------------------


def satisfies(rows: Sequence[Row], requirement: Any, table: Sequence[Row] = ()) -> bool:
    """Do these rows of a table, as one group, satisfy the requirement?"""
    if isinstance(requirement, KAnonymity):  # definition 2.1
        return len(rows) >= requirement.k
    cells = [row[requirement.of] for row in rows]
    if isinstance(requirement, VarianceDiversity):  # definition 2.4; a missing number has no part in it
        return variance([exact(cell) for cell in cells if cell is not None]) >= exact(requirement.at_least)
    counts = sorted(Counter(cells).values(), reverse=True)  # a missing value is a value
    if isinstance(requirement, TCloseness):  # of values without a hierarchy
        return distance(cells, [row[requirement.of] for row in table], requirement.distance) <= exact(
            requirement.t
        )
    if isinstance(requirement, DistinctDiversity):
        return len(counts) >= requirement.l
    if isinstance(requirement, EntropyDiversity):  # definition 2.2
        shares = [count / len(cells) for count in counts]
        return -math.fsum(p * math.log(p) for p in shares) >= math.log(requirement.l) - 1e-12
    assert isinstance(requirement, RecursiveDiversity)  # definition 2.3
    return requirement.l == 1 or counts[0] < exact(requirement.c) * sum(counts[requirement.l - 1 :])


def distance(cells: Sequence[Any], table: Sequence[Any], kind: str) -> Fraction:
    """The earth mover's distance of some cells from those of the table, all values being 1 apart or numbers by rank."""
    values = sorted(set(table), key=lambda value: (value is None, value))
    extra = [
        Fraction(cells.count(value), len(cells)) - Fraction(table.count(value), len(table))
        for value in values
    ]
    if kind == "equal":
        return sum(map(abs, extra), Fraction(0)) / 2
    carried = [
        abs(sum(extra[: i + 1], Fraction(0))) for i in range(len(extra))
    ]  # from each place to the next
    return sum(carried, Fraction(0)) / max(len(values) - 1, 1)


def exact(number: Any) -> Fraction:
    """The number as it is written, in decimals."""
    return Fraction(repr(number))


def variance(values: Sequence[Fraction]) -> Fraction:
    if not values:
        return Fraction(0)
    mean = sum(values, Fraction(0)) / len(values)
    return sum(((value - mean) ** 2 for value in values), Fraction(0)) / len(values)


# ---- targets ---------------------------------------------------------------------------------------


def information(x: int) -> int:
    """x log2 x in fixed point, 20 binary digits after the point."""
    return round(x * math.log2(x) * 2**20) if x else 0


def minus_entropy(classes: Sequence[Any]) -> int:
    """Minus the entropy of the labels times their number."""
    return sum(map(information, Counter(classes).values())) - information(len(classes))


Cells = tuple[Any, ...] | None
"""What the features outside the quasi-identifier tell of each row; None if there are none."""


def by_cell(rows: Sequence[int], cells: Cells) -> list[list[int]]:
    """The rows of each cell."""
    found: dict[Any, list[int]] = {}
    for i in rows:
        found.setdefault(None if cells is None else cells[i], []).append(i)
    return list(found.values())


@dataclass(frozen=True)
class Label:
    classes: tuple[Any, ...]  # of each row of the table
    weight: float
    cells: Cells = None
    unit: Fraction = Fraction(1, 2**20)  # what a unit of the weighted score adds to a gain

    @property
    def whole(self) -> float:
        """Entropy of the whole table in bits, within cells."""
        return -self.worth(range(len(self.classes))) / 2**20 / len(self.classes)

    def score(self, part: Sequence[int], _node: Sequence[int]) -> float:
        return self.worth(part)

    def worth(self, node: Sequence[int]) -> int:
        """The score of no split at all."""
        return sum(minus_entropy([self.classes[i] for i in cell]) for cell in by_cell(node, self.cells))


@dataclass(frozen=True)
class Number:
    codes: tuple[int, ...]  # of each row, from 0 up
    weight: float
    cells: Cells = None
    unit: Fraction = Fraction(1)  # what a code stands for
    is_whole: bool = False  # are scores rounded, as they are as soon as there are cells?

    @cached_property
    def whole(self) -> float:
        """Variance of the whole table, within cells."""
        if self.cells is None:
            return float(variance([Fraction(code) for code in self.codes]))
        parts = by_cell(range(len(self.codes)), self.cells)
        errors = [float(len(part) * variance([Fraction(self.codes[i]) for i in part])) for part in parts]
        return math.fsum(errors) / len(self.codes)

    @cached_property
    def scale(self) -> float:
        error = self.whole * len(self.codes)
        return 2.0 ** (51 - math.frexp(error)[1]) if error > 0 else 1.0

    def mean(self, rows: Sequence[int]) -> float:
        return sum(self.codes[i] for i in rows) / len(rows)

    def score(self, part: Sequence[int], node: Sequence[int]) -> float:
        if not self.is_whole:
            away = self.mean(part) - self.mean(node)
            return len(part) * (away * away)
        total = 0
        for cell in by_cell(part, self.cells):
            here = [i for i in node if self.cells is None or self.cells[i] == self.cells[cell[0]]]
            away = self.mean(cell) - self.mean(here)
            total += round(len(cell) * (away * away) * self.scale)
        return total / self.scale

    def worth(self, _node: Sequence[int]) -> float:
        return 0.0


Cut = Callable[[list[Any], list[Any], bool], list[Any]]
"""(numbers of a feature, target, is that a number?) -> the cell of each."""


def cells_of(
    rows: Sequence[Row], features: Sequence[str], target: Sequence[Any], cut: Cut, *, is_number: bool
) -> Cells:
    """What these features tell of each row; numbers are cut so that they tell the target apart."""
    columns = []
    for name in features:
        column = [row[name] for row in rows]
        is_category = all(cell is None or isinstance(cell, str) for cell in column)
        columns.append(column if is_category else cut(column, list(target), is_number))
    return tuple(zip(*columns, strict=True)) if columns else None


def number_codes(cells: Sequence[Any]) -> tuple[tuple[int, ...], Fraction]:
    """Numbers counted from the least in the greatest power of a tenth that they all are on, and that unit.

    A missing target stands for the mean, rounded.
    """
    present = [exact(cell) for cell in cells if cell is not None]
    unit = next(
        u for u in (Fraction(1, 10**n) for n in range(7)) if all((x / u).denominator == 1 for x in present)
    )
    least = min(present, default=Fraction(0))
    mean = least + unit * round((sum(present) / len(present) - least) / unit) if present else least
    return tuple(int(((mean if cell is None else exact(cell)) - least) / unit) for cell in cells), unit


def targets_of(
    rows: Sequence[Row], workload: Iterable[Any], quasi: Sequence[str], cut: Cut, *, standardize: bool
) -> list[Label | Number]:
    """The targets with the weights that their scores are added with [LDR08, equations 5 and 6].

    A mixture, and ``standardize``, divide each target by its value on the whole table.
    """
    targets: list[Label | Number] = []
    for task in workload:
        others = [name for name in task.features or () if name not in quasi]
        is_number = not isinstance(task, Classify)
        if not is_number and task.joint:
            columns: list[tuple[Any, ...]] = [
                tuple(tuple(row[name] for name in task.targets) for row in rows)
            ]
        else:
            columns = [tuple(row[name] for row in rows) for name in task.targets]
        for column in columns:
            if is_number:
                codes, unit = number_codes(column)
                cells = cells_of(rows, others, codes, cut, is_number=True)
                targets.append(Number(codes, task.weight, cells, unit))
            else:
                cells = cells_of(rows, others, column, cut, is_number=False)
                targets.append(Label(column, task.weight, cells))
    if any(target.cells is not None for target in targets):
        targets = [
            replace(target, is_whole=True) if isinstance(target, Number) else target for target in targets
        ]
    targets.sort(key=lambda target: isinstance(target, Number))  # labels first
    if len(targets) == 1:
        return [replace(targets[0], weight=1)]
    is_mixed = standardize or len({type(target) for target in targets}) > 1

    def relative(target: Label | Number) -> float:
        unit = 2.0**20 if isinstance(target, Label) else 1.0
        return target.weight / (unit * target.whole) if target.whole > 0 else target.weight

    labels = [target for target in targets if isinstance(target, Label)]
    if labels and len(labels) == len(targets):
        return [*whole_weights(labels, standardize=standardize)]
    if is_mixed:
        return [replace(target, weight=relative(target)) for target in targets]
    squared = [exact(target.weight) * target.unit**2 for target in targets]  # in units of the columns
    common = Fraction(math.gcd(*(w.numerator for w in squared)), math.lcm(*(w.denominator for w in squared)))
    return [replace(target, weight=float(w / common)) for target, w in zip(targets, squared, strict=True)]


def whole_weights(labels: Sequence[Label], *, standardize: bool) -> list[Label]:
    """Labels with weights that are whole numbers, as exact as scores of 63 bits leave room for."""
    rows = range(len(labels[0].classes))
    one_bit = len(rows) * 2**20
    shares = [
        exact(label.weight) * len(rows) / ((-label.worth(rows) or one_bit) if standardize else one_bit)
        for label in labels
    ]
    common = Fraction(math.gcd(*(w.numerator for w in shares)), math.lcm(*(w.denominator for w in shares)))
    farthest = [2 * len(rows) - label.worth(rows) for label in labels]
    total = sum((w / common * most for w, most in zip(shares, farthest, strict=True)), Fraction(0))
    if total > 2**62:
        common *= total / (2**62 - sum(farthest))
    whole = [max(1, math.floor(w / common)) for w in shares]
    return [replace(label, weight=w, unit=s / w) for label, w, s in zip(labels, whole, shares, strict=True)]


def gain_scale(targets: Sequence[Label | Number], *, standardize: bool) -> float:
    """Gains are bits, or shares of the variance, or sums of shares where targets were divided by their whole."""
    kinds = {type(target) for target in targets}
    if kinds == {Label}:
        return float(max(targets, key=lambda target: target.weight).unit)
    if len(targets) > 1 and (standardize or len(kinds) > 1):
        return 1.0
    spread = sum(target.weight * target.whole for target in targets)
    return 1.0 / spread if spread > 0 else 0.0


# ---- selections ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Query:
    """A rectangle: per attribute (low, high), both ends within it, or the leaves of its hierarchy; or None: all."""

    sides: tuple[Any, ...]
    weight: Fraction

    def overlaps(self, at: int, region: Any) -> bool:
        """Does it reach into this region of an attribute: above < value <= up to, or a node of the hierarchy?"""
        side = self.sides[at]
        if side is None:
            return True
        if isinstance(side, frozenset):
            return any(leaf[: len(region)] == region for leaf in side)
        above, up_to = region
        return side[0] <= up_to and (above is None or side[1] > above)


# ---- growth ----------------------------------------------------------------------------------------


class Mondrian:
    """Greedy recursive partitioning of ``rows``."""

    def __init__(
        self,
        rows: Sequence[Row],
        axes: Sequence[Axis],
        requirements: Sequence[Any],
        workload: Sequence[Any] = (),
        *,
        queries: Sequence[Query] = (),
        cut: Cut = lambda column, _target, _is_number: column,
        split_only: Sequence[str] | None = None,
        median_below_gain: float | None = None,
        standardize: bool = False,
    ) -> None:
        self.rows, self.axes, self.requirements, self.queries = rows, axes, requirements, queries
        self.people: Sequence[Any] = range(len(rows))  # each row is a person of its own
        self.share = Fraction(0)  # of the rows, and of the people, that may be left out
        names = [axis.name for axis in axes]
        self.targets = targets_of(rows, workload, names, cut, standardize=standardize)
        self.gain_scale = gain_scale(self.targets, standardize=standardize) if self.targets else 0.0
        self.median_below_gain = median_below_gain or 0.0
        self.may_split = [i for i, axis in enumerate(axes) if split_only is None or axis.name in split_only]

    def grow(self) -> Node:
        """The partition tree; its root has all rows and satisfies the requirement, or the requirement is hopeless."""
        box = [self.whole_range(axis) if isinstance(axis, Ordered) else self.top(axis) for axis in self.axes]
        everyone = tuple(range(len(self.rows)))
        allowance = int(self.share * len(everyone)), int(self.share * self.n_people(everyone))
        root = Node(everyone, box, bool(self.queries), allowance)
        assert self.is_allowed(root.members)
        waiting = [root]
        while waiting:
            node = waiting.pop()
            node.split = self.choose_precise(node) if node.is_selecting else None
            node.is_selecting = node.split is not None
            node.split = node.split or self.choose(node.members, node.allowance)
            if node.split is None:
                self.close(node)
                continue
            standing = node.split.standing()
            n_rows, n_people = node.allowance
            by_rows = hand_down(n_rows - node.split.n_left, [len(part) for _, part in standing])
            by_people = hand_down(
                n_people - self.n_people(node.split.left_out()), [self.n_people(part) for _, part in standing]
            )
            allowed = zip(by_rows, by_people, strict=True)
            for (branch, part), allowance in zip(standing, allowed, strict=True):
                box = list(node.box)
                box[node.split.axis] = self.narrowed(node, branch)
                node.children.append(Node(part, box, node.is_selecting, allowance))
            waiting += node.children
        return root

    def undo_far_groups(self, root: Node) -> int:
        """Undo the last splits of all groups that do not hold beside what is published, until all do: how many rounds."""
        n_rounds = 0
        while True:
            published = [i for leaf in root.leaves() for i in leaf.members]
            parents = [
                node
                for node in root.inner()
                if any(
                    child.split is None and not self.is_allowed(child.members, published)
                    for child in node.children
                )
            ]
            if not parents:
                return n_rounds
            n_rounds += 1
            for node in parents:
                node.split, node.children = None, []
                self.close(node)

    def close(self, node: Node) -> None:
        """Let a node be a leaf: its box is no larger than its rows need along hierarchies."""
        for i, axis in enumerate(self.axes):
            if isinstance(axis, Tree):
                node.box[i] = self.cover(node.members, axis)

    def n_people(self, members: Iterable[int]) -> int:
        return len({self.people[i] for i in members})

    def narrowed(self, node: Node, branch: Any) -> Any:
        assert node.split is not None
        if node.split.threshold is None:
            return branch
        low, high = node.box[node.split.axis]
        return (low, node.split.threshold) if branch == "left" else (node.split.threshold, high)

    def is_allowed(self, members: Sequence[int], table: Iterable[int] | None = None) -> bool:
        """Do these rows hold as one group, beside those of the table, or others?"""
        rows = [self.rows[i] for i in members]
        whole = self.rows if table is None else [self.rows[i] for i in table]
        return all(satisfies(rows, requirement, whole) for requirement in self.requirements)

    # -- candidates --------------------------------------------------------------------------------

    def candidates(self, members: Sequence[int], at: int) -> Iterator[Split]:
        """Every split of these rows on one attribute, allowable or not."""
        axis = self.axes[at]
        if isinstance(axis, Ordered):
            value = {i: axis.value(self.rows[i]) for i in members}
            for threshold in sorted(set(value.values()))[:-1]:
                left = tuple(i for i in members if value[i] <= threshold)
                right = tuple(i for i in members if value[i] > threshold)
                yield Split(at, threshold, ("left", "right"), (left, right))
            return
        depth = len(self.cover(members, axis)) + 1
        parts: dict[Path, list[int]] = {}
        for i in members:
            parts.setdefault(axis.node(self.rows[i])[:depth], []).append(i)
        if len(parts) > 1:
            yield Split(at, None, tuple(parts), tuple(map(tuple, parts.values())))

    def allowable(self, members: Sequence[int], at: int, allowance: Allowance = (0, 0)) -> list[Split]:
        tried = [self.allow(split, members, allowance) for split in self.candidates(members, at)]
        return [split for split in tried if split is not None]

    def allow(self, split: Split, members: Sequence[int], allowance: Allowance) -> Split | None:
        """The split if all its parts are allowed, or those that are not may be left out, and that pays."""
        stands = tuple(map(self.is_allowed, split.parts))
        axis, kept = self.axes[split.axis], replace(split, stands=stands)
        if all(stands):
            return split
        if isinstance(axis, Ordered) or not any(stands):
            return None
        if kept.n_left > allowance[0] or self.n_people(kept.left_out()) > allowance[1]:
            return None
        whole, here = self.n_leaves(axis, self.top(axis)), self.n_leaves(axis, self.cover(members, axis))
        gained = sum(len(part) * (here - self.n_leaves(axis, branch)) for branch, part in kept.standing())
        return kept if gained >= kept.n_left * len(self.axes) * (whole - 1) else None

    def n_leaves(self, axis: Tree, node: Path) -> int:
        leaves = {*axis.leaves, *(axis.node(row) for row in self.rows)}
        return sum(leaf[: len(node)] == node for leaf in leaves)

    def cover(self, members: Iterable[int], axis: Tree) -> Path:
        return common(axis.node(self.rows[i]) for i in members)

    def whole_range(self, axis: Ordered) -> tuple[None, float]:
        has_range = axis.is_bounded or any(axis.value(row) > MISSING for row in self.rows)
        return None, math.inf if has_range else MISSING

    def top(self, axis: Tree) -> Path:
        return common([*axis.leaves, *(axis.node(row) for row in self.rows)])[:1]

    # -- selections --------------------------------------------------------------------------------

    def choose_precise(self, node: Node) -> Split | None:
        """The split that takes most away from what the queries return too much [LDR08, equation 7]."""
        active = [
            query
            for query in self.queries
            if all(query.overlaps(i, self.region(node, i)) for i in range(len(self.axes)))
        ]
        tried = [
            self.allow(split, node.members, node.allowance)
            for at in self.may_split
            for split in self.precise_candidates(node.members, at, active)
        ]
        splits = [split for split in tried if split is not None]
        cost = {split: self.cost(split, node, active) for split in splits}
        best = min(
            splits,
            key=lambda split: (cost[split], split.largest, split.axis, split.threshold or 0),
            default=None,
        )
        no_split = len(node.members) * sum(query.weight for query in active)
        return best if best is not None and cost[best] < no_split else None

    def precise_candidates(self, members: Sequence[int], at: int, active: Sequence[Query]) -> Iterator[Split]:
        """Every split on one attribute: thresholds are values of the rows, and ends of queries between them."""
        yield from self.candidates(members, at)
        axis = self.axes[at]
        if isinstance(axis, Tree):
            return
        value = {i: axis.value(self.rows[i]) for i in members}
        ends = {query.sides[at][1] for query in active if query.sides[at] is not None}
        for end in ends - set(value.values()):
            if min(value.values()) < end < max(value.values()):
                left = tuple(i for i in members if value[i] <= end)
                yield Split(at, end, ("left", "right"), (left, tuple(i for i in members if i not in left)))

    def region(self, node: Node, at: int) -> Any:
        """What the splits have left of an attribute; of a hierarchy, the lowest node that covers the rows."""
        axis = self.axes[at]
        if isinstance(axis, Tree):
            return self.cover(node.members, axis)
        return (None, math.inf) if node.box[at] == self.whole_range(axis) else node.box[at]

    def cost(self, split: Split, node: Node, active: Sequence[Query]) -> Fraction:
        """The rows of each part times the weight of the queries that overlap it."""
        total = Fraction(0)
        for branch, part in zip(split.branches, split.parts, strict=True):
            region = branch
            if split.threshold is not None:
                above, up_to = self.region(node, split.axis)
                region = (above, split.threshold) if branch == "left" else (split.threshold, up_to)
            total += len(part) * sum(query.weight for query in active if query.overlaps(split.axis, region))
        return total

    # -- the choice --------------------------------------------------------------------------------

    def choose(self, members: Sequence[int], allowance: Allowance = (0, 0)) -> Split | None:
        if not self.targets:
            return self.choose_median(members, allowance)
        best = self.choose_scored(members, allowance)
        if best is not None and self.gain(best, members) < self.median_below_gain:
            return self.choose_median(members, allowance)
        return best

    def choose_median(self, members: Sequence[int], allowance: Allowance) -> Split | None:
        """The widest attribute that can be split, and on it the best balanced split [LDR08, section 2.2]."""
        for at in sorted(self.may_split, key=lambda at: (-self.width(members, at), at)):
            if splits := self.allowable(members, at, allowance):
                return min(splits, key=lambda split: (split.largest, split.threshold or 0))
        return None

    def choose_scored(self, members: Sequence[int], allowance: Allowance) -> Split | None:
        """The split of the best score [LDR08, equations 3 to 6]."""
        splits = [split for at in self.may_split for split in self.allowable(members, at, allowance)]
        return min(
            splits,
            key=lambda split: (-self.score(split, members), split.largest, split.axis, split.threshold or 0),
            default=None,
        )

    def width(self, members: Sequence[int], at: int) -> float:
        """Values spanned by the rows over those spanned by the table; on a hierarchy, leaves."""
        axis = self.axes[at]
        everyone = range(len(self.rows))
        if isinstance(axis, Ordered):
            least = min((v for i in everyone if (v := axis.value(self.rows[i])) > MISSING), default=0)

            def span(rows: Iterable[int]) -> float:
                values = [max(axis.value(self.rows[i]), least) for i in rows]
                return max(values) - min(values)

            return span(members) / span(everyone) if span(everyone) else 0.0
        leaves = {*axis.leaves, *(axis.node(row) for row in self.rows)}
        cover = self.cover(members, axis)
        spanned = sum(leaf[: len(cover)] == cover for leaf in leaves) - 1
        return spanned / (len(leaves) - 1) if len(leaves) > 1 else 0.0

    def score(self, split: Split, members: Sequence[int]) -> float:
        """What the split leaves predictable.

        Without cells, part by part, and parts are added up from the least; with cells, target by target.
        """
        if any(target.cells is not None for target in self.targets):
            return sum(
                target.weight * sum(target.score(part, members) for part in split.parts)
                for target in self.targets
            )
        return sum(
            sorted(
                sum(target.weight * target.score(part, members) for target in self.targets)
                for part in split.parts
            )
        )

    def gain(self, split: Split, members: Sequence[int]) -> float:
        worth = self.score(split, members)
        for target in self.targets:
            worth -= target.weight * target.worth(members)
        return worth * self.gain_scale / len(members)
