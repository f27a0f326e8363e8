r"""Does a risk-utility release say what is true of its boxes? Judged from its folder, its policy, and a side table.

Nothing here knows how a box was chosen. Labels are read as nodes of the hierarchies that the policy of the release
declares, and utility, weight and the rows that a box covers are computed anew from their definitions [FEB12, section
2.1]. A label that stands at several nodes is read as each of them, and the strictest reading counts.

What the folder does not tell is the row as it was. The promise

.. math:: u(x) \ge u(\top) + c \, (u(raw) - u(\top))

fails if it is false of every row that the box can stand for, and holds for certain if it is true of all of them. Where
the policy asks for a utility c itself, u(x) >= c, the boxes tell that alone [FEB12, definition 1].
That the optimizer found the best box is not checked: that would take the raw rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.policy.document import Policy
from sfumato.policy.hierarchy.files import Label
from sfumato.policy.options.risk_utility import Absolute, RiskUtilityOptions
from sfumato.policy.output import bound_names
from sfumato.policy.schema import Attribute, Kind, Role
from sfumato.release.certificate import Claims, UtilityClaim
from sfumato.table.cells import numbers, ordered
from sfumato.table.stored import FiledRows, distinct_lines
from sfumato.verify.cells import MISSING, NARROWED, NOTHING, Detail, claim_of, level_of
from sfumato.verify.checks import Check, equal, what_is_left
from sfumato.verify.groups import labels_of
from sfumato.verify.risk_utility.labels import Cell, LabelColumn

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TOLERANCE = 1e-9
"""Relative, both ways: how far a figure may lie from the recomputed one."""

TRADEOFF = "tradeoff"
"""What the certificate calls the figures of the run."""

BY_DEPTH = "by depth"
NOT_K_ANONYMITY = Check(
    "this is not k-anonymity",
    True,
    "a box may be that of one published row; risk is counted against the side table",
    is_note=True,
)
NO_SIDE_TABLE = Check(
    "owner's word: risk, which was not recomputed",
    True,
    "it is counted against a side table, which is not in the folder; give it with --side-table",
    is_note=True,
)


def measure_word(options: RiskUtilityOptions) -> str:
    """The measure of utility, as a certificate calls it."""
    return options.utility if isinstance(options.utility, str) else BY_DEPTH


# ---- the boxes -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Boxes:
    """The distinct lines of published rows: a label for each quasi-identifier, and personal factors if there are any.

    ``of_line[b, a]`` says which of ``labels[a]`` a line has, ``count`` how many rows it stands for.
    """

    policy: Policy
    columns: tuple[LabelColumn, ...]
    labels: tuple[tuple[Cell, ...], ...]
    of_line: Ints
    count: Ints
    missing: tuple[str, ...]
    """The columns that have a leaf for missing cells."""
    factor: Floats | None
    """(lines, columns); None where personal factors are not published."""

    @classmethod
    def of(cls, rows: pa.Table | FiledRows, policy: Policy, missing: Sequence[str]) -> Boxes:
        """The boxes of published rows; an InputError if the policy does not say what they mean."""
        quasi = policy.schema.quasi_identifiers
        if not {*missing} <= {attribute.name for attribute in quasi}:
            raise InputError("A leaf for missing cells is claimed of a column that is no quasi-identifier.")
        names = [name for attribute in quasi for name in published_names(attribute, policy)]
        factors = dict.fromkeys(name for _, name in policy.options_for(RiskUtilityOptions).weights.columns())
        is_published = all(policy.schema[name].role.is_published for name in factors)
        lines, count = distinct_lines(rows, [*names, *(factors if is_published else ())])
        cells = [_cells(lines, attribute, policy) for attribute in quasi]
        columns = tuple(
            LabelColumn.of(attribute, has_missing=attribute.name in missing, labels=own)
            for attribute, (own, _) in zip(quasi, cells, strict=True)
        )
        return cls(
            policy,
            columns,
            tuple(own for own, _ in cells),
            np.stack([of_line for _, of_line in cells], axis=1),
            count,
            tuple(missing),
            _factors(lines, policy) if is_published else None,
        )

    def with_columns(self, columns: Sequence[LabelColumn]) -> Boxes:
        """The same boxes, of hierarchies that are better known."""
        return replace(self, columns=tuple(columns))

    @property
    def n_rows(self) -> int:
        return int(self.count.sum())

    @cached_property
    def n_groups(self) -> int:
        return len(np.unique(self.of_line, axis=0))

    @cached_property
    def nodes(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """The nodes that each label of each column may stand for."""
        return tuple(
            tuple(column.nodes(label) for label in own)
            for column, own in zip(self.columns, self.labels, strict=True)
        )

    def each(self, of_label: Sequence[Floats]) -> Floats:
        """(lines, columns) of a number for each label of each column."""
        return np.stack([own[self.of_line[:, a]] for a, own in enumerate(of_label)], axis=1)

    def strange(self) -> list[tuple[str, int]]:
        """The columns with labels that are no nodes of their hierarchy, and in how many rows."""
        is_known = self.each([np.array([float(bool(found)) for found in own]) for own in self.nodes])
        n_rows = (self.count[:, None] * (is_known == 0)).sum(axis=0).tolist()
        names = [column.attribute.name for column in self.columns]
        return [(name, n) for name, n in zip(names, n_rows, strict=True) if n]

    def suppressed(self) -> tuple[int, int]:
        """The rows that are roots throughout: by every reading, and by some."""
        return self._rows_of([np.arange(column.tree.n_nodes) == 0 for column in self.columns])

    def raw(self) -> tuple[int, int]:
        """The rows that are leaves throughout: by every reading, and by some."""
        return self._rows_of(
            [np.isin(np.arange(column.tree.n_nodes), column.tree.leaf_nodes) for column in self.columns]
        )

    def details(self) -> dict[str, Detail]:
        """How much the cells of each column tell."""
        found = {}
        for a, (column, own) in enumerate(zip(self.columns, self.nodes, strict=True)):
            level = level_of(column.attribute)
            levels = [_strictest(nodes, column, level) for nodes in own]
            rows = np.bincount(self.of_line[:, a], weights=self.count, minlength=len(own)).astype(np.int64)
            found[column.attribute.name] = Detail.of(levels, rows)
        return found

    def _rows_of(self, is_such: Sequence[NDArray[np.bool_]]) -> tuple[int, int]:
        """Rows all of whose nodes are such: by every reading, and by some."""
        surely, maybe = (
            self.each(
                [np.array([float(fold(own[list(found)])) for found in nodes])
                 for own, nodes in zip(is_such, self.nodes, strict=True)]
            ).all(axis=1)
            for fold in (np.all, np.any)
        )  # fmt: skip
        return int(self.count[surely].sum()), int(self.count[maybe].sum())


def _strictest(nodes: Sequence[int], column: LabelColumn, level: Callable[[Label], int]) -> int:
    """How much a label tells that may stand for these nodes, by the reading that tells least."""
    levels = [NOTHING if node == 0 else level(column.tree.labels[node]) for node in nodes]
    return max((found for found in levels if found != MISSING), default=MISSING if levels else NARROWED)


def published_names(attribute: Attribute, policy: Policy) -> tuple[str, ...]:
    """The columns of one attribute: numbers and dates have bounds where they are asked for, if a rule makes them."""
    has_bounds = (
        policy.output.has_bounds
        and attribute.role is Role.QUASI_IDENTIFIER
        and attribute.kind is not Kind.CATEGORY
        and attribute.declaration.is_rule
    )
    own = (attribute.name,) if policy.output.has_labels or not has_bounds else ()
    return (*own, *bound_names(attribute.name)) if has_bounds else own


def _cells(lines: pa.Table, attribute: Attribute, policy: Policy) -> tuple[tuple[Cell, ...], Ints]:
    """The distinct cells of a quasi-identifier, and which of them each line has."""
    names = published_names(attribute, policy)
    if len(names) == 1:
        cells = labels_of(lines.column(names[0]), names[0])
        labels, no_label = cells.dictionary.to_pylist(), [None] * (cells.null_count > 0)
        of_line = cells.indices.fill_null(len(labels)).to_numpy(zero_copy_only=False)
        return (*labels, *no_label), of_line.astype(np.int64)
    parts = [ordered(lines.column(name), Attribute(name, Role.OTHER, attribute.kind)) for name in names[-2:]]
    if len(names) > 2:
        parts.insert(0, labels_of(lines.column(names[0]), names[0]))
    found = list(zip(*(part.to_pylist() for part in parts), strict=True))
    place = {cell: i for i, cell in enumerate(dict.fromkeys(found))}
    return tuple(place), np.array([place[cell] for cell in found], dtype=np.int64)


def _factors(lines: pa.Table, policy: Policy) -> Floats:
    """The personal factors of each line for each quasi-identifier."""
    names = policy.schema.names(Role.QUASI_IDENTIFIER)
    found = np.ones((lines.num_rows, len(names)))
    for quasi, name in policy.options_for(RiskUtilityOptions).weights.columns():
        own = numbers(lines.column(name), policy.schema[name]).fill_null(1).to_numpy(zero_copy_only=False)
        for a in range(len(names)):
            if quasi in (None, names[a]):
                found[:, a] *= own
    return found


# ---- utility -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Utilities:
    """What the boxes tell: of each line the least and the most that its labels may mean.

    ``worst`` and ``best`` say by how much a line exceeds its threshold, for the raw row that makes this hardest or
    easiest; ``gained`` is u(x) - u(top), ``whole`` the least and the most u(raw) - u(top).
    """

    boxes: Boxes
    least: Floats
    worst: Floats
    best: Floats
    gained: tuple[Floats, Floats]
    whole: tuple[Floats, Floats]

    @classmethod
    def of(cls, boxes: Boxes) -> Utilities | str:
        """The utilities; or the name of a column whose utility is not known."""
        options = boxes.policy.options_for(RiskUtilityOptions)
        promised = options.promised
        share = 0.0 if promised is None or isinstance(promised, Absolute) else float(promised)
        asked = float(promised.value) if isinstance(promised, Absolute) else 0.0
        tables = []
        for column, own in zip(boxes.columns, boxes.nodes, strict=True):
            utility = column.utility(options.utility)
            if utility is None:
                return column.attribute.name
            asked -= (
                float(utility[0]) if isinstance(promised, Absolute) else 0.0
            )  # gains are above the roots'
            readings = [_readings(column, utility, found, share) for found in own]
            tables.append(np.array(readings, dtype=np.float64).reshape(-1, 7).T)  # a release may be empty
        each = [boxes.each([table[i] for table in tables]).sum(axis=1) for i in range(7)]
        least, worst, best, low, high, short, long = each
        return cls(boxes, least, worst - asked, best - asked, (low, high), (short, long))

    @property
    def mean(self) -> float:
        return math.fsum((self.boxes.count * self.least).tolist()) / max(self.boxes.n_rows, 1)

    def shares(self) -> tuple[Floats, Floats]:
        """The least and the greatest share of its utility that a line may have kept; nothing of nothing is all."""
        (low, high), (short, long) = self.gained, self.whole
        return _over(low, long), np.minimum(_over(high, short), 1.0)


def _over(part: Floats, whole: Floats) -> Floats:
    return np.divide(part, whole, out=np.ones_like(part), where=whole > TOLERANCE)


def _readings(column: LabelColumn, utility: Floats, nodes: Sequence[int], share: float) -> tuple[float, ...]:
    """Of one label: least utility; worst and best excess; least and most gain; least and most gain of a raw row."""
    if not nodes:
        return (0.0,) * 7
    tree, root = column.tree, utility[0]
    found = []
    for node in nodes:
        raw = utility[tree.leaf_nodes[tree.low[node] : tree.high[node]]] - root
        gain = utility[node] - root
        found.append(
            (utility[node], gain - share * raw.max(), gain - share * raw.min(), gain, raw.min(), raw.max())
        )
    least, worst, best, gain, short, long = zip(*found, strict=True)
    return min(least), min(worst), max(best), min(gain), max(gain), min(short), max(long)


# ---- what is claimed -----------------------------------------------------------------------------------------


def claims_of(boxes: Boxes) -> Claims:
    """What a certificate may claim of published boxes: what ``verify`` will find, to twelve digits."""
    options, utilities = boxes.policy.options_for(RiskUtilityOptions), Utilities.of(boxes)
    if isinstance(utilities, str) or not boxes.n_rows:
        mean, least = None, None
    else:
        mean, least = utilities.mean, utilities.least.min()
    claim = UtilityClaim(
        measure_word(options), options.promised, _digits(mean), _digits(least), boxes.missing
    )
    _, suppressed = boxes.suppressed()
    cells = None if boxes.policy.is_private else claim_of(boxes.details().values())
    return Claims(boxes.n_rows, boxes.n_groups, suppressed=suppressed, utility=claim, cells=cells)


def _digits(number: float | None) -> float | None:
    """Twelve digits: the last ones of a sum depend on the order of its parts."""
    return None if number is None else float(f"{number:.12g}")


def promised_share(options: RiskUtilityOptions) -> Fraction | None:
    """The share of its utility that each row keeps by promise, if that is what is promised."""
    promised = options.promised
    return None if isinstance(promised, Absolute) else promised


# ---- checks --------------------------------------------------------------------------------------------------


def checks(boxes: Boxes, claimed: Claims, figures: Mapping[str, Any]) -> Iterator[Check]:
    """Every claim of a risk-utility release that its folder can show."""
    claim = "every label is a node of its column's hierarchy"
    if strange := boxes.strange():
        name, n = strange[0]
        yield Check(claim, False, f"column {name!r} has others in {n:,} rows")
        return
    yield Check(claim, True)
    assert claimed.utility is not None
    options, utilities = boxes.policy.options_for(RiskUtilityOptions), Utilities.of(boxes)
    found = claims_of(boxes)
    yield equal("the release holds {}", claimed.rows, found.rows, of="row")
    if not found.rows:
        yield Check("the release holds any rows", False, "there are none")
    yield equal("the rows form {}", claimed.groups, found.groups, of="group")
    yield equal("the number of suppressed rows is {}", claimed.suppressed, found.suppressed)
    yield from what_is_left(claimed, found)
    yield from utility_checks(claimed.utility, found.utility, utilities)
    yield from promise_checks(utilities, options)
    yield from _figure_checks(figures.get(TRADEOFF), boxes, utilities, found)
    yield NOT_K_ANONYMITY


def utility_checks(
    claimed: UtilityClaim, found: UtilityClaim | None, utilities: Utilities | str
) -> Iterator[Check]:
    assert found is not None
    is_same = (claimed.measure, claimed.at_least) == (found.measure, found.at_least)
    yield Check(
        "utility is claimed as the policy measures and bounds it", is_same, "" if is_same else "they differ"
    )
    for word in ("mean", "least"):
        said, is_so = getattr(claimed, word), getattr(found, word)
        if said is None and is_so is None:
            continue
        is_close = said is not None and is_so is not None and math.isclose(said, is_so, rel_tol=TOLERANCE)
        shown = "not known" if said is None else f"{said:.12g}"
        detail = "" if is_close else "it is not known" if is_so is None else f"it is {is_so:.12g}"
        yield Check(f"the {word} utility of the published rows is {shown}", is_close, detail)
    if isinstance(utilities, str):
        yield Check(
            "no utility is claimed",
            True,
            f"it depends on how many values column {utilities!r} has, which the folder does not tell; declare them",
            is_note=True,
        )


def promise_checks(utilities: Utilities | str, options: RiskUtilityOptions) -> Iterator[Check]:
    promised = options.promised
    if promised is None:
        yield Check(
            "no utility is promised",
            True,
            f"the objective {options.objective} weighs risk against utility row by row",
            is_note=True,
        )
    if promised is None or isinstance(utilities, str):
        return
    count = utilities.boxes.count
    slack = TOLERANCE * np.maximum(utilities.whole[1], 1.0)
    n_rows, n_failing = utilities.boxes.n_rows, int(count[utilities.best < -slack].sum())
    n_certain = int(count[utilities.worst >= -slack].sum())
    if isinstance(promised, Absolute):
        yield from _value_checks(promised, n_rows, n_failing, n_certain)
        return
    detail = (
        f"{n_failing:,} rows cannot, whatever they were"
        if n_failing
        else f"whatever the rows were, for {n_certain:,} of {n_rows:,}"
    )
    yield Check(
        f"every row keeps at least {float(promised):.6g} of the way from suppressed to raw utility",
        not n_failing,
        detail,
    )
    if not n_failing and n_certain < n_rows:
        yield Check(
            f"of {n_rows - n_certain:,} rows this depends on what they were",
            True,
            "leaves of unequal utility lie below their boxes, and the raw rows are not in the folder",
            is_note=True,
        )


def _value_checks(promised: Absolute, n_rows: int, n_failing: int, n_certain: int) -> Iterator[Check]:
    """A utility that every box has: what the rows were does not matter."""
    detail = f"{n_failing:,} rows have less" if n_failing else ""
    yield Check(f"every row has a utility of at least {float(promised.value):.6g}", not n_failing, detail)
    if not n_failing and n_certain < n_rows:
        yield Check(
            f"of {n_rows - n_certain:,} rows this depends on how their labels are read",
            True,
            "labels of theirs stand at several nodes of a hierarchy",
            is_note=True,
        )


# ---- figures of the run --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Figures:
    """What the run stated of risk and utility."""

    rows: int
    proved: int
    suppressed: int
    raw: int
    lacking: int
    risk: tuple[float, float]
    raw_risk: tuple[float, float]
    share: tuple[float, float]
    side_rows: int
    is_own: bool
    sha256: str | None

    @classmethod
    def of(cls, given: Any) -> Figures:
        """From a certificate; KeyError, TypeError or ValueError if it does not have them."""
        side = given["side table"]
        if not isinstance(side["own"], bool) or not isinstance(side["sha256"], str | None):
            raise TypeError
        return cls(
            rows=_whole(given["rows"]),
            proved=_whole(given["proved"]),
            suppressed=_whole(given["suppressed"]),
            raw=_whole(given["raw"]),
            lacking=_whole(given["lacking"]),
            risk=_pair(given["risk"], "greatest"),
            raw_risk=_pair(given["raw risk"], "greatest"),
            share=_pair(given["share"], "least"),
            side_rows=_whole(side["rows"]),
            is_own=side["own"],
            sha256=side["sha256"],
        )


def _pair(given: Any, extreme: str) -> tuple[float, float]:
    return _number(given["mean"]), _number(given[extreme])


def _whole(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise TypeError
    return value


def _number(value: Any) -> float:
    if type(value) not in (int, float) or not value >= 0:
        raise TypeError
    return float(value)


def _figure_checks(given: Any, boxes: Boxes, utilities: Utilities | str, found: Claims) -> Iterator[Check]:
    claim = "the figures of risk and utility are there, and the rows can have them"
    try:
        figures = Figures.of(given)
    except (KeyError, TypeError, ValueError, OverflowError):
        yield Check(claim, False, "some are not there, or are no such numbers")
        return
    options = boxes.policy.options_for(RiskUtilityOptions)
    faults = [
        *([f"they speak of {figures.rows:,} rows"] if figures.rows != found.rows else []),
        *([f"they say {figures.suppressed:,} are suppressed"]
          if not _is_between(figures.suppressed, *boxes.suppressed()) else []),
        *([f"they say {figures.raw:,} are as they were"]
          if not _is_between(figures.raw, *boxes.raw()) else []),
        *(["more rows are proved than there are"] if figures.proved > found.rows else []),
        *(["more rows are lacking than there are"] if figures.lacking > found.rows else []),
        *(["a mean risk is above the greatest"] if _is_reversed(figures) else []),
        *(["the side table is another than the policy's"]
          if figures.is_own != (options.side_table is None) else []),
        *(["the table itself lacks a row"] if figures.is_own and figures.lacking else []),
        *(["the table itself has another number of rows"]
          if figures.is_own and options.private is None and figures.side_rows != found.rows else []),
    ]  # fmt: skip
    if isinstance(utilities, Utilities) and found.rows:
        faults += share_faults(figures, utilities, options)
    yield Check(claim, not faults, ", and ".join(faults))


def _is_reversed(figures: Figures) -> bool:
    return any(mean > greatest * (1 + TOLERANCE) for mean, greatest in (figures.risk, figures.raw_risk))


def share_faults(figures: Figures, utilities: Utilities, options: RiskUtilityOptions) -> list[str]:
    """The shares of utility that the run states must be possible for these boxes."""
    low, high = utilities.shares()
    mean, least = figures.share
    count = utilities.boxes.count
    faults = []
    if not _is_between(mean, float(np.average(low, weights=count)), float(np.average(high, weights=count))):
        faults.append("the mean share of utility is not one that these boxes can have")
    if not _is_between(least, float(low.min()), float(high.min())):
        faults.append("the least share of utility is not one that these boxes can have")
    promised = promised_share(options)
    if promised is not None and least < float(promised) - TOLERANCE:
        faults.append("the least share of utility is below what is promised")
    return faults


def _is_between(number: float, low: float, high: float) -> bool:
    slack = TOLERANCE * max(abs(low), abs(high), 1.0)
    return low - slack <= number <= high + slack


__all__ = [
    "NO_SIDE_TABLE",
    "TRADEOFF",
    "Boxes",
    "Figures",
    "Utilities",
    "checks",
    "claims_of",
    "measure_word",
    "promise_checks",
    "promised_share",
    "published_names",
    "share_faults",
    "utility_checks",
]
