r"""The boxes of a risk-utility release: what their labels stand for, and how much utility they keep.

Nothing here knows how a box was chosen. Labels are read as nodes of the hierarchies that the policy of the release
declares, and utility, weight and the rows that a box covers are computed anew from their definitions [FEB12, section
2.1]. A label that stands at several nodes is read as each of them, and the strictest reading counts.

The folder does not tell what the raw rows were. The promise

.. math:: u(x) \ge u(\top) + c \, (u(raw) - u(\top))

fails if it is false for every row that the box can stand for, and holds for certain if it is true for all of them. Where
the policy asks for a utility c itself, u(x) >= c, the boxes alone decide [FEB12, definition 1].
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.policy.document import Policy
from sfumato.policy.hierarchy.files import Label
from sfumato.policy.options.risk_utility import Absolute, RiskUtilityOptions
from sfumato.policy.output import bound_names
from sfumato.policy.schema import Attribute, Kind, Role
from sfumato.release.certificate import AloneClaim, Claims, UtilityClaim
from sfumato.table.cells import numbers, ordered
from sfumato.table.stored import FiledRows, distinct_lines
from sfumato.verify.cells import MISSING, NARROWED, NOTHING, Detail, claim_of, level_of
from sfumato.verify.groups import labels_of
from sfumato.verify.passed import count_alone_in
from sfumato.verify.risk_utility.labels import Cell, LabelColumn

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TOLERANCE = 1e-9
"""Relative, both ways: how far a figure may lie from the recomputed one."""


BY_DEPTH = "by depth"


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
    alone: AloneClaim | None = None
    """The rows that are alone by what is published as it is; not counted of a private release, whose rows were drawn."""

    @classmethod
    def of(cls, rows: pa.Table | FiledRows, policy: Policy, missing: Sequence[str]) -> Boxes:
        """The boxes of published rows; an InputError if the policy does not say what they mean."""
        quasi = policy.schema.quasi_identifiers
        if not {*missing} <= {attribute.name for attribute in quasi}:
            raise InputError("A leaf for missing cells is claimed of a column that is no quasi-identifier.")
        names = [name for attribute in quasi for name in box_names(attribute, policy)]
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
            None if policy.is_private else count_alone_in(rows, policy),
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

    def spread(self, of_label: Sequence[Floats]) -> Floats:
        """(lines, columns): the number of each line's label, where each label of each column has one."""
        return np.stack([own[self.of_line[:, a]] for a, own in enumerate(of_label)], axis=1)

    def find_strange(self) -> list[tuple[str, int]]:
        """The columns with labels that are no node of their hierarchy, and how many rows have one."""
        is_known = self.spread([np.array([float(bool(found)) for found in own]) for own in self.nodes])
        n_rows = (self.count[:, None] * (is_known == 0)).sum(axis=0).tolist()
        names = [column.attribute.name for column in self.columns]
        return [(name, n) for name, n in zip(names, n_rows, strict=True) if n]

    def count_suppressed(self) -> tuple[int, int]:
        """How many rows are roots throughout: by every reading, and by some."""
        return self._rows_of([np.arange(column.tree.n_nodes) == 0 for column in self.columns])

    def count_raw(self) -> tuple[int, int]:
        """How many rows are leaves throughout: by every reading, and by some."""
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
            self.spread(
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


def box_names(attribute: Attribute, policy: Policy) -> tuple[str, ...]:
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
    names = box_names(attribute, policy)
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


class UtilityReading(NamedTuple):
    """Utility of one label, or of lines: the extremes over all nodes that a label may mean, and all raw rows below.

    The excess is by how much a row exceeds its threshold; u(x) - u(top) is the gain.
    """

    least: Any
    worst_excess: Any
    best_excess: Any
    least_gain: Any
    most_gain: Any
    least_raw_gain: Any
    most_raw_gain: Any


@dataclass(frozen=True, eq=False)
class Utilities:
    """The utility of each line of boxes, as far as its labels tell."""

    boxes: Boxes
    of_line: UtilityReading

    @classmethod
    def of(cls, boxes: Boxes) -> Utilities | str:
        """The utilities; or the name of a column whose utility is not known."""
        options = boxes.policy.options_for(RiskUtilityOptions)
        promised = options.promised
        share = 0.0 if promised is None or isinstance(promised, Absolute) else float(promised)
        asked = float(promised.value) if isinstance(promised, Absolute) else 0.0
        by_column = []
        for column, own in zip(boxes.columns, boxes.nodes, strict=True):
            utility = column.utility(options.utility)
            if utility is None:
                return column.attribute.name
            if isinstance(promised, Absolute):
                asked -= float(utility[0])  # gains are counted from the roots
            readings = [_read_utility(column, utility, nodes, share) for nodes in own]
            table = np.array(readings, dtype=np.float64).reshape(-1, len(UtilityReading._fields))
            by_column.append(UtilityReading(*table.T))  # a release may be empty
        found = UtilityReading(*(boxes.spread(same).sum(axis=1) for same in zip(*by_column, strict=True)))
        return cls(
            boxes,
            found._replace(worst_excess=found.worst_excess - asked, best_excess=found.best_excess - asked),
        )

    @property
    def mean(self) -> float:
        return math.fsum((self.boxes.count * self.of_line.least).tolist()) / max(self.boxes.n_rows, 1)

    def shares(self) -> tuple[Floats, Floats]:
        """The least and the greatest share of its utility that a line may have kept; nothing of nothing is all."""
        found = self.of_line
        most = _divide(found.most_gain, found.least_raw_gain)
        return _divide(found.least_gain, found.most_raw_gain), np.minimum(most, 1.0)


def _divide(part: Floats, whole: Floats) -> Floats:
    return np.divide(part, whole, out=np.ones_like(part), where=whole > TOLERANCE)


def _read_utility(column: LabelColumn, utility: Floats, nodes: Sequence[int], share: float) -> UtilityReading:
    """The utility of a label that may stand for these nodes, if ``share`` of a raw row's gain is asked for."""
    if not nodes:
        return UtilityReading(*[0.0] * len(UtilityReading._fields))
    tree, root = column.tree, utility[0]
    gains = [float(utility[node] - root) for node in nodes]
    raw = [utility[tree.leaf_nodes[tree.low[node] : tree.high[node]]] - root for node in nodes]
    return UtilityReading(
        least=min(utility[node] for node in nodes),
        worst_excess=min(gain - share * own.max() for gain, own in zip(gains, raw, strict=True)),
        best_excess=max(gain - share * own.min() for gain, own in zip(gains, raw, strict=True)),
        least_gain=min(gains),
        most_gain=max(gains),
        least_raw_gain=min(own.min() for own in raw),
        most_raw_gain=max(own.max() for own in raw),
    )


# ---- what is claimed -----------------------------------------------------------------------------------------


def claims_of(boxes: Boxes) -> Claims:
    """What a certificate may claim of published boxes: what ``verify`` will find, to twelve digits."""
    options, utilities = boxes.policy.options_for(RiskUtilityOptions), Utilities.of(boxes)
    if isinstance(utilities, str) or not boxes.n_rows:
        mean, least = None, None
    else:
        mean, least = utilities.mean, utilities.of_line.least.min()
    claim = UtilityClaim(
        measure_word(options),
        options.promised,
        _digits(mean),
        _digits(least),
        boxes.missing,
        options.risk_at_most,
    )
    _, suppressed = boxes.count_suppressed()
    cells = None if boxes.policy.is_private else claim_of(boxes.details().values())
    return Claims(
        boxes.n_rows,
        boxes.n_groups,
        suppressed=suppressed,
        utility=claim,
        cells=cells,
        alone_by_passed=boxes.alone,
    )


def _digits(number: float | None) -> float | None:
    """Twelve digits: the last ones of a sum depend on the order of its parts."""
    return None if number is None else float(f"{number:.12g}")


def promised_share(options: RiskUtilityOptions) -> Fraction | None:
    """The share of its utility that each row keeps by promise, if that is what is promised."""
    promised = options.promised
    return None if isinstance(promised, Absolute) else promised
