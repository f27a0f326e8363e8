"""The arguments of Mondrian's kernels, as named tuples of plain arrays.

The rows are one C-ordered ``uint32`` matrix, a row of the table per row:

    [ codes of the quasi-identifiers | extra columns: targets and sensitive values | row number ]

Rows are swapped in place and a node of the tree is a slice of them.

Small facts stand in tables of records, one array each: an array costs seven arguments in every call that
hands it on, and the time to compile them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.axes import Axes

BLOCK = 64
"""Rows that ``partition`` looks at in one go."""


LOW, HIGH, COVER, IS_EXACT = range(4)
"""Lines of ``bounds``, which is (4, axes): what is known of the codes of an open node, see ``NodeRange``."""

AFTER, LAST = range(2)
"""Lines of ``region``, which is (2, axes): the codes that splits have left to an open node, see ``QueryRegion``."""

Table = NDArray[Any]
"""An array of records. The dtypes below name their fields; what they mean stands with the tuples that hold them."""

AXIS = np.dtype(
    [("is_tree", np.bool_), ("may_split", np.bool_), ("root", np.int64), ("position_start", np.int64),
     ("least_code", np.int64), ("width", np.float64)],
    align=True,
)  # fmt: skip
HIERARCHY = np.dtype(
    [("low", np.int64), ("high", np.int64), ("child_start", np.int64), ("n_children", np.int64)], align=True
)
ScoreType = type[np.int64 | np.float64]
"""What scores are, and the weights of targets: whole numbers if all targets are labels, or there are none."""

TARGET = {
    weight: np.dtype(
        [("column", np.int64), ("n_classes", np.int64), ("weight", weight), ("largest", np.int64)], align=True
    )
    for weight in (np.int64, np.float64)
}
CELL = {
    weight: np.dtype(
        [("cell", np.int64), ("value", np.int64), ("weight", weight), ("scale", np.float64)], align=True
    )
    for weight in (np.int64, np.float64)
}
VALUES = np.dtype([("column", np.int64), ("start", np.int64), ("end", np.int64)], align=True)
CLOSENESS = np.dtype(
    [("of", np.int64), ("first", np.int64), ("last", np.int64), ("n_values", np.int64), ("n_rows", np.int64),
     ("up", np.int64), ("down", np.int64), ("t", np.float64), ("scale", np.float64)],
    align=True,
)  # fmt: skip
SET = np.dtype(
    [("code", np.int64), ("first", np.int64), ("last", np.int64), ("weight", np.int64), ("rows", np.int64)],
    align=True,
)
DISTINCT = np.dtype([("of", np.int64), ("l", np.int64)], align=True)
ENTROPY = np.dtype([("of", np.int64), ("log", np.float64)], align=True)
RECURSIVE = np.dtype([("of", np.int64), ("l", np.int64), ("up", np.int64), ("down", np.int64)], align=True)
VARIANCE = np.dtype([("column", np.int64), ("least", np.float64)], align=True)
LOSS_AXIS = np.dtype(
    [("price", np.int64), ("reach", np.int64), ("slice", np.int64), ("last_code", np.int64), ("shift", np.int64),
     ("lower", np.float64), ("step", np.float64), ("is_stepped", np.bool_)],
    align=True,
)  # fmt: skip
TASK = np.dtype([("weight", np.float64), ("whole", np.float64), ("chance", np.float64)], align=True)
NODE = np.dtype(
    [("threshold", np.int64), ("branch", np.int64), ("start", np.int64), ("end", np.int64),
     ("axis", np.int32), ("first_child", np.int32), ("n_children", np.int32), ("otherwise", np.int32)],
    align=True,
)  # fmt: skip


def table(kind: np.dtype[Any], records: Sequence[tuple[Any, ...]]) -> Table:
    """Records of one kind.

    >>> table(ENTROPY, [(0, 1.5), (1, 0.5)]).log.tolist()
    [1.5, 0.5]
    """
    return np.array(records, dtype=kind).view(np.recarray)


class AxisTables(NamedTuple):
    """``Axes`` in fewer arrays, as kernels hand them around under the name ``grid``; fields are called as there."""

    axis: Table  # (axes,) AXIS
    node: Table  # (nodes,) HIERARCHY
    child: NDArray[np.int64]
    position: NDArray[np.float64]


def pack_axes(axes: Axes) -> AxisTables:
    """The axes in tables of records."""
    axis = np.zeros(len(axes.root), dtype=AXIS).view(np.recarray)
    axis.is_tree, axis.may_split, axis.root = axes.is_tree, axes.may_split, axes.root
    axis.position_start, axis.least_code, axis.width = axes.position_start, axes.least_code, axes.width
    node = np.zeros(len(axes.node_low), dtype=HIERARCHY).view(np.recarray)
    node.low, node.high = axes.node_low, axes.node_high
    node.child_start, node.n_children = axes.child_start, axes.n_children
    return AxisTables(axis, node, axes.child, axes.position)


class Targets(NamedTuple):
    """What the split should keep predictable: these labels and numbers, or with ``Cells`` those there."""

    label: Table  # (labels,) TARGET: column of the row matrix, number of classes, weight, greatest code
    number: Table  # (numbers,) TARGET, of no classes
    gain_scale: float  # makes a gain per row comparable with median_below_gain
    median_below_gain: float | None = None  # None: never, and numba compiles nothing of Median
    several: int | None = None
    """Words of each code, see ``frequency``; None: one sum per code says everything, and numba compiles nothing else."""

    @property
    def n_words(self) -> int:
        """Words that sum up a code."""
        return 2 if self.several is None else self.several


def words_of_targets(label: Table, number: Table) -> int | None:
    """``Targets.several``: None for one number, or one label of two classes.

    >>> none, two, five = (table(TARGET[np.int64], label) for label in ([], [(3, 2, 1, 1)], [(3, 5, 1, 4)]))
    >>> words_of_targets(two, none), words_of_targets(five, none), words_of_targets(two, two)
    (None, 6, 4)
    """
    n_classes = int(label["n_classes"].sum())
    if len(label) + len(number) <= 1 and n_classes <= 2:
        return None
    return 1 + n_classes + len(number)


class Cells(NamedTuple):
    """Targets that features outside the quasi-identifiers help to predict; there are no ``Targets`` then.

    Each combination of values of these features is a cell. A column of the row matrix has the number of each row's cell.
    """

    label: Table  # (labels,) CELL: column of cells, column of cells and classes together, weight
    number: Table  # (numbers,) CELL: column of cells, column of the number, weight, scale that scores are whole on
    n_ids: int  # how many cells, or cells and classes together, the target with the most of them has
    counts: NDArray[np.int64]  # (ids, 4) working space of one thread, all zero between uses


LEAST_ROWS, CHANCE, NORMAL, DOUBT, QUANTILES, ENTROPY_BOUNDS = range(6)
"""Lines of ``Rules.tests``. The first four are by the number of parts of a split: rows that each part must have,
chance of an error per part, its normal quantile, log(2 / chance). Then quantiles of chi-square by degrees of
freedom, for two parts. Then, for each rule of entropy, the frequency that some value exceeds if it fails; and for
each rate, which is log(2 / chance) / rows, the entropy of a sample that shows that it holds."""

RATES_PER_OCTAVE, LOWEST_RATE, HIGHEST_RATE = 64, -34, 6
"""The rates are 2^(LOWEST_RATE + i / RATES_PER_OCTAVE)."""


NO_TESTS = np.zeros((0, 0))


class People(NamedTuple):
    """How people are counted: each once in a group, and once for each of its values there."""

    column: int  # of the row matrix: the number of the person
    pairs: int
    """The first column of numbers of pairs: of person and value for each sensitive attribute, then of person and number
    for each rule of variance."""
    least: int  # people that a group must have
    enough: int  # any so many rows of the table have as many people


class SensitiveRules(NamedTuple):
    """What the requirement asks of sensitive values and of people, compiled."""

    values: Table  # (attributes,) VALUES: sensitive categories, column and place in one array of counts
    distinct: Table  # (rules,) DISTINCT: which sensitive attribute, l
    entropy: Table  # (rules,) ENTROPY: which sensitive attribute, ln l
    recursive: Table  # (rules,) RECURSIVE: which sensitive attribute, l, and c = up / down, exactly
    variance: Table  # (rules,) VARIANCE: column of the row matrix, least in squared units of that column
    closeness: Table = table(CLOSENESS, [])
    """(rules,) CLOSENESS: which sensitive attribute, its lines of ``sets``, its values, rows of the whole table, t as
    ``up / down / scale``."""
    sets: Table = table(SET, [])
    """SET: line j of a rule has the code of the value at place j of an order; and the j-th set, which are the values at
    places first to last of that order, with its weight and its rows in the whole table."""
    tests: NDArray[np.float64] = NO_TESTS
    """Those of ``Rules``."""
    correction: float = 0.0
    """The share of the rows that are not in the sample; 0: no tests, the definitions are applied to these rows."""
    people: People | None = None
    """None: rows count, and numba compiles nothing of people."""

    @property
    def n_values(self) -> int:
        """How many sensitive values there are in all."""
        return int(self.values["end"].max(initial=0))


class Rules(NamedTuple):
    """The requirement, compiled.

    With ``tests`` the rows are a sample of others and each part is tested, see ``mondrian.sample_tests``; a
    hierarchy is then never narrowed to the values that the sample happens to have.
    """

    least_rows: int  # a group with fewer rows cannot satisfy the requirement
    diverse_rows: int  # a group with fewer rows cannot have the diversity that is required
    sensitive: SensitiveRules | None
    """None: a group of ``least_rows`` is always fine, and numba compiles nothing of what sensitive values would need.
    Where people count there are some, even if no value is sensitive."""
    tests: NDArray[np.float64] = NO_TESTS
    """(lines, numbers) of tests on a sample, see LEAST_ROWS and so on; no line: these are all rows."""


class Queries(NamedTuple):
    """Selections, each a rectangle of codes.

    On an ordered attribute a query overlaps the part up to t if low <= t, and the part beyond t if high > t: an end of
    a selection that lies between two codes belongs to the upper one. On a tree, low and high are the first and the last
    leaf.
    """

    low: NDArray[np.int64]  # (queries, axes)
    high: NDArray[np.int64]  # (queries, axes)
    weight: NDArray[np.int64]  # (queries,) their sum times the rows is below 2^53: exact as any score


class Loss(NamedTuple):
    """What cells cost: prices and labels, see ``kernels.loss``."""

    axis: Table
    """(axes,) LOSS_AXIS: price of a step or leaf; steps from the lower to the upper bound, or leaves less one; steps of
    a slice of the public grid, 0 if labels are boxes; the greatest code; a code plus ``shift`` is its step, or the step
    is that of its position, from ``lower`` in units of ``step``; do all values lie on steps?"""
    task: Table
    """(targets,) TASK: weight, information of the whole table, information that chance alone would bring."""
    weight: float  # of detail beside the targets; 1 without any
    whole: float  # what detail is compared with: the loss of a table that tells nothing; 1 without targets
    has_rest: bool  # may a node be told apart from the rest?
    row: int  # the price of a row that tells nothing


UNIT = 1 << 30
"""The price of a cell that tells nothing, in a column of the greatest weight."""

THRESHOLD, CHILDREN, ONE_NODE = range(3)
"""Kinds of splits by loss."""

DIGIT = 10
"""Bits that codes are sorted by at a time."""

REST = -1
"""The branch of the rows that no other branch of a split along a hierarchy takes."""


class LossSplit(NamedTuple):
    """The best split of a node by loss; axis -1: none."""

    axis: int
    kind: int
    number: (
        int  # the last code that goes left, or the hierarchy node: that is told apart, or whose children part
    )
    score: float
    largest: int  # rows of its largest part
    n_left: int  # rows that it leaves out


class ListedSplits(NamedTuple):
    """Working space of ``kernels.loss``: candidates of one axis."""

    number: NDArray[np.int64]  # (candidates,) see ``LossSplit``
    first: NDArray[np.int64]  # (candidates,) place of its first code
    last: NDArray[np.int64]  # (candidates,) place after its last code; threshold: does missing go left?
    n_first: NDArray[np.int64]  # (candidates,) rows of the first part
    score: NDArray[np.float64]  # (candidates,)
    n_left: NDArray[np.int64]  # (candidates,) rows that are left out
    is_fine: NDArray[np.bool_]  # (candidates,) is it allowable?
    stands: NDArray[np.bool_]  # (children,) does the child satisfy the requirement alone?
    parts: NDArray[np.int64]  # (parts, words)
    rest: NDArray[np.int64]  # (words,)
    node: NDArray[np.int64]  # (words,) of all rows
    missing: NDArray[np.int64]  # (words,) of the rows that lack a value
    facts: NDArray[np.int64]  # (4,) see ``walk_thresholds``
    digits: NDArray[np.int64]  # (2^DIGIT,) all zero between uses


def new_listed_splits(n_candidates: int, n_parts: int, n_words: int) -> ListedSplits:
    """Working space for so many candidates of an axis, into so many parts."""
    number, first, last, n_first, n_left = np.empty((5, n_candidates), dtype=np.int64)
    rest, node, missing = np.zeros((3, n_words), dtype=np.int64)
    return ListedSplits(
        number, first, last, n_first,
        score=np.empty(n_candidates), n_left=n_left, is_fine=np.empty(n_candidates, dtype=np.bool_),
        stands=np.empty(n_parts, dtype=np.bool_), parts=np.empty((n_parts, n_words), dtype=np.int64),
        rest=rest, node=node, missing=missing, facts=np.empty(4, dtype=np.int64),
        digits=np.zeros(1 << DIGIT, dtype=np.int64),
    )  # fmt: skip


class BestSplit(NamedTuple):
    """The best split of a node that is known to be allowable; axis -1: none yet."""

    axis: int
    code: int  # the last code that goes left; means nothing along a hierarchy
    score: int | float
    largest: int  # rows of its largest part


ROWS, PEOPLE = range(2)
"""Entries of an allowance: rows that may be left out, and people whose rows these are."""


class Leaving(NamedTuple):
    """Working space of splits that may leave rows out, see ``kernels.leave_out``."""

    allowance: NDArray[np.int64]  # (2,) what the node being split may leave out
    gain: NDArray[np.int64]  # (children,) leaves that each child in use has less than the node
    loss: NDArray[np.int64]  # (1,) what a row left out could lose, in leaves
    stands: NDArray[np.bool_]  # (children,) does each child in use satisfy the requirement?
    share: NDArray[np.int64]  # (2, children) allowances that are handed down
    size: NDArray[np.int64]  # (children,) rows of each, or people
    key: NDArray[np.int64]  # (children,)


def new_leaving(n_children: int) -> Leaving:
    """Working space for splits into at most so many children."""
    gain, size, key = np.zeros((3, n_children), dtype=np.int64)
    share = np.zeros((2, n_children), dtype=np.int64)
    allowance, loss = np.zeros(2, dtype=np.int64), np.zeros(1, dtype=np.int64)
    return Leaving(allowance, gain, loss, np.zeros(n_children, dtype=np.bool_), share, size, key)


class Scratch(NamedTuple):
    """Working space of one thread, allocated once; pages that are never touched cost nothing."""

    bins: NDArray[np.int64]  # (bins * words,) frequency sets, all zero between uses
    listed: NDArray[np.uint64]  # (axes,) attributes whose frequency sets stand in the bins
    base: NDArray[np.uint64]  # (axes,) base + code is the line of a code
    width: NDArray[np.float64]  # (axes,)
    places: NDArray[np.uint64]  # (2, BLOCK) rows to swap
    code: NDArray[np.int64]  # (distinct,) the codes that occur, ascending
    total: NDArray[np.int64]  # (words, distinct) running totals up to each
    score: NDArray[np.int64 | np.float64]  # (distinct,)
    right: NDArray[np.int64 | np.float64]  # (distinct,) scores of the right part alone
    lowest: int | float  # lower than any score
    is_fine: NDArray[np.bool_]  # (2, distinct) does the left, the right part satisfy the requirement?
    order: NDArray[np.int64]  # (rows,) row positions sorted by something
    key: NDArray[np.int64]  # (rows,)
    place: NDArray[np.int64]  # (distinct,) where the next row of a code goes in ``order``
    values: NDArray[np.int64]  # (sensitive values,) all zero between uses
    is_top: NDArray[np.bool_]  # (recursive rules, sensitive values) all False between uses
    top: NDArray[np.int64]  # (recursive rules, largest l)
    n_top: NDArray[np.int64]  # (recursive rules,) how many of them are in use
    work: NDArray[np.int64]  # see ``work_of``
    listed_splits: ListedSplits | None = None
    stamps: NDArray[np.int32] | None = None  # see ``kernels.people``; None: people are not counted
    leaving: Leaving | None = None
    """None: no row may be left out, and numba compiles nothing of what that would need."""


def work_of(rules: SensitiveRules | None) -> NDArray[np.int64]:
    """Working space in which a requirement is decided."""
    if rules is None:
        return np.zeros(0, dtype=np.int64)
    room = int(rules.recursive["l"].max(initial=1)) + int(rules.closeness["n_values"].max(initial=0)) + 1
    return np.zeros(len(rules.recursive) + room, dtype=np.int64)
