"""Workload and requirement as the kernels see them: which columns, which weights, which limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato import discretize, encoding, predicate
from sfumato.axes import read_ordered
from sfumato.encoding import Domain
from sfumato.errors import RequirementUnreachable
from sfumato.kernels.problem import (
    CELL,
    ENTROPY,
    FIXED_POINT,
    NO_NUMBER,
    RECURSIVE,
    TARGET,
    VALUES,
    VARIANCE,
    Cells,
    Queries,
    Rules,
    Targets,
    table,
)
from sfumato.policy import MondrianOptions
from sfumato.requirement import (
    EntropyDiversity,
    GroupStats,
    KAnonymity,
    RecursiveDiversity,
    Requirement,
    VarianceDiversity,
)
from sfumato.schema import Kind, Role, Schema
from sfumato.selection import code_ranges
from sfumato.tables import Source
from sfumato.workload import Classify, Predict, Regress, Select, Task

Codes = NDArray[np.uint32]

MOST_CELLS = 16
"""Into how many cells a feature that is a number is cut."""


@dataclass(slots=True)
class ExtraColumns:
    """The columns of the row matrix beside the quasi-identifiers, each encoded once."""

    source: Source
    schema: Schema
    n_axes: int
    columns: list[Codes] = field(default_factory=list)
    _labels: dict[str, tuple[int, int]] = field(default_factory=dict)

    def append(self, codes: Codes) -> int:
        """Its place in the row matrix."""
        self.columns.append(codes)
        return self.n_axes + len(self.columns) - 1

    def label(self, name: str) -> tuple[int, int]:
        """(place, number of values) of a category."""
        if name not in self._labels:
            codes, n_values = encoding.encode_label(self.source, self.schema[name])
            self._labels[name] = self.append(codes), n_values
        return self._labels[name]

    def joint(self, names: Sequence[str]) -> tuple[int, int]:
        """(place, number of values) of the vector of several categories."""
        combined = np.zeros(self.source.n_rows, dtype=np.int64)
        for name in names:
            codes, n_values = encoding.encode_label(self.source, self.schema[name])
            _, combined = np.unique(combined * n_values + codes, return_inverse=True)
        return self.append(combined.astype(np.uint32)), int(combined.max()) + 1

    def codes(self, place: int) -> Codes:
        """The column at that place of the row matrix."""
        return self.columns[place - self.n_axes]

    def matrix(self) -> Codes:
        if not self.columns:
            return np.zeros((self.source.n_rows, 0), dtype=np.uint32)
        return np.stack(self.columns, axis=1)


@dataclass(frozen=True, slots=True)
class _Target:
    place: int
    n_classes: int  # 0: a number
    weight: float
    whole: float  # entropy in bits, or variance, of the whole table within its cells
    cell: Codes | None  # of the features outside the quasi-identifier


def compile_targets(
    workload: Sequence[Task], options: MondrianOptions, extra: ExtraColumns
) -> tuple[Targets, Cells | None]:
    """The workload. Targets of one kind are weighted and summed as they are [LDR08, equations 5 and 6].

    A mixture, and ``standardize``, divide each target by its value on the whole table: a bit of entropy and a
    squared dollar have no common measure. As soon as one target has features outside the quasi-identifier, all
    are judged over cells, the others over one cell.
    """
    tasks = [task for task in workload if isinstance(task, Classify | Regress)]
    targets = [target for task in tasks for target in _targets(task, extra)]
    labels = [target for target in targets if target.n_classes]
    numbers = [target for target in targets if not target.n_classes]
    is_mixed = bool(labels and numbers) or options.standardize

    def weight(target: _Target) -> float:
        if len(targets) == 1:
            return 1.0
        unit = FIXED_POINT if target.n_classes else 1.0
        return target.weight / (unit * target.whole) if is_mixed and target.whole > 0 else target.weight

    if is_mixed and len(targets) > 1:
        scale = 1.0
    elif labels:
        scale = 1.0 / FIXED_POINT
    else:
        spread = sum(weight(target) * target.whole for target in numbers)
        scale = 1.0 / spread if spread > 0 else 0.0
    compiled = Targets(
        label=table(TARGET, [(target.place, target.n_classes, weight(target)) for target in labels]),
        number=table(TARGET, [(target.place, 0, weight(target)) for target in numbers]),
        largest=int(extra.codes(targets[0].place).max()) if len(targets) == 1 else 0,
        gain_scale=scale,
        median_below_gain=float(options.median_below_gain or 0.0),
    )
    if all(target.cell is None for target in targets):
        return compiled, None
    cells = _cells(
        [(target, weight(target)) for target in labels],
        [(target, weight(target)) for target in numbers],
        extra,
    )
    return compiled._replace(label=table(TARGET, []), number=table(TARGET, [])), cells


def _targets(task: Predict, extra: ExtraColumns) -> list[_Target]:
    if isinstance(task, Classify):
        places = [extra.joint(task.targets)] if task.joint else [extra.label(name) for name in task.targets]
    else:
        measures = [encoding.encode_number(extra.source, extra.schema[name]) for name in task.targets]
        places = [(extra.append(measure.codes), 0) for measure in measures]
    found = []
    for place, n_classes in places:
        codes = extra.codes(place)
        cell = feature_cells(task, codes, extra)
        whole = _entropy_within(codes, cell) if n_classes else _variance_within(codes, cell)
        found.append(_Target(place, n_classes, task.weight, whole, cell))
    return found


# ---- features outside the quasi-identifier ---------------------------------------------------------


def feature_cells(task: Predict, target: Codes, extra: ExtraColumns) -> Codes | None:
    """The cell of each row by the features that are no quasi-identifiers, None if there are none.

    Categories count as they are, missing being a value; numbers and dates are cut once, on the whole table,
    into at most 16 cells that tell the target apart [FI93], and missing is one more.
    """
    combined: NDArray[np.int64] | None = None
    for name in task.features or ():
        attribute = extra.schema[name]
        if attribute.role is Role.QUASI_IDENTIFIER:
            continue
        if attribute.kind is Kind.CATEGORY:
            codes = encoding.encode_label(extra.source, attribute)[0].astype(np.int64)
        else:
            values = read_ordered(attribute, extra.source.column(name))
            cuts = discretize.mdl_cuts(
                values, target.astype(np.int64), at_most=MOST_CELLS, is_number=isinstance(task, Regress)
            )
            codes = discretize.cells(values, cuts)
        before = 0 if combined is None else combined * (int(codes.max(initial=0)) + 1)
        _, combined = np.unique(before + codes, return_inverse=True)
    return None if combined is None else combined.astype(np.uint32)


def _cells(
    labels: Sequence[tuple[_Target, float]], numbers: Sequence[tuple[_Target, float]], extra: ExtraColumns
) -> Cells:
    """Targets over cells, as the kernels see them; cells, and cells with classes, become columns."""
    nothing = extra.append(np.zeros(extra.source.n_rows, dtype=np.uint32))

    def place_of(target: _Target) -> int:
        return nothing if target.cell is None else extra.append(target.cell)

    def pairs_of(target: _Target) -> int:
        if target.cell is None:
            return target.place
        pairs = target.cell * np.int64(target.n_classes) + extra.codes(target.place)
        return extra.append(np.unique(pairs, return_inverse=True)[1].astype(np.uint32))

    def scale_of(target: _Target) -> float:
        """A power of two that makes scores whole numbers below 2^52: none exceeds all squared errors."""
        error = target.whole * extra.source.n_rows
        return math.ldexp(1.0, 51 - math.frexp(error)[1]) if error > 0 else 1.0

    label = [(place_of(target), pairs_of(target), weight, 1.0) for target, weight in labels]
    number = [
        (place_of(target), target.place, weight / scale_of(target), scale_of(target))
        for target, weight in numbers
    ]
    ids = [place for cell, pair, *_ in label for place in (cell, pair)] + [cell for cell, *_ in number]
    return Cells(
        table(CELL, label),
        table(CELL, number),
        n_ids=max(int(extra.codes(place).max(initial=0)) for place in ids) + 1,
        counts=np.zeros((0, 4), dtype=np.int64),
        total=np.zeros(0),
    )


def _entropy_within(codes: Codes, cell: Codes | None) -> float:
    """In bits, summed in fixed point as the scores are, so that the order of the classes cannot matter."""
    if cell is None:
        cells, pairs = np.array([len(codes)]), np.bincount(codes)
    else:
        cells = np.bincount(cell)
        pairs = np.unique(cell.astype(np.uint64) << np.uint64(32) | codes, return_counts=True)[1]
    return float((_information(cells) - _information(pairs)) / FIXED_POINT / len(codes))


def _information(counts: NDArray[np.int64]) -> int:
    """The sum of x log2 x in fixed point."""
    x = counts[counts > 0]
    return int(np.rint(x * np.log2(x) * FIXED_POINT).astype(np.int64).sum())


def _variance_within(codes: Codes, cell: Codes | None) -> float:
    """Population variance; around the means of the cells, if there are any."""
    if cell is None:
        return float(_variance_of(codes))
    order = np.argsort(cell, kind="stable")
    start = np.flatnonzero(np.diff(cell[order], prepend=-1))
    errors = [n_error / n for n, n_error in _squared_errors(codes[order], start)]
    return math.fsum(errors) / len(codes)  # the exact sum, rounded once: the order of the cells cannot matter


def _variance_of(codes: Codes) -> Fraction:
    """Population variance, exactly, so that the order of the rows cannot matter."""
    if len(codes) == 0:
        return Fraction(0)
    ((n, n_error),) = _squared_errors(codes, np.zeros(1, dtype=np.int64))
    return Fraction(n_error, n**2)


def _squared_errors(codes: Codes, start: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Of each stretch of codes (number, number times the sum of squared differences from the mean), exactly."""
    wide = codes.astype(np.uint64)
    total = np.add.reduceat(wide, start).tolist()
    wide *= wide
    high = np.add.reduceat(wide >> np.uint64(32), start).tolist()
    low = np.add.reduceat(wide & np.uint64(0xFFFFFFFF), start).tolist()
    n = np.diff(start, append=len(codes)).tolist()
    return [(n, n * ((up << 32) + down) - x * x) for n, x, up, down in zip(n, total, high, low, strict=True)]


def compile_rules(requirements: Sequence[Requirement], extra: ExtraColumns) -> Rules:
    """The requirement; raises if the whole table, as one group, fails it already."""
    least_rows = 1
    values: dict[str, int] = {}
    starts: list[int] = [0]
    columns: list[int] = []
    entropy, recursive, variance = [], [], []
    for requirement in requirements:
        _check_whole_table(requirement, extra)
        if isinstance(requirement, KAnonymity):
            least_rows = max(least_rows, requirement.k)
        elif isinstance(requirement, VarianceDiversity):
            place, least = _variance(requirement, extra)
            variance.append((place, least))
            least_rows = max(least_rows, 2 if requirement.at_least > 0 else 1)
        else:
            if requirement.of not in values:
                place, n_values = extra.label(requirement.of)
                values[requirement.of] = len(columns)
                columns.append(place)
                starts.append(starts[-1] + n_values)
            at = values[requirement.of]
            # l effective values need at least l rows; the slack keeps the tolerance of the entropy
            least_rows = max(least_rows, math.ceil(requirement.l - 1e-9))
            if isinstance(requirement, EntropyDiversity):
                entropy.append((at, math.log(requirement.l)))
            elif requirement.l > 1:
                recursive.append((at, requirement.l, requirement.exact_c))
    return Rules(
        least_rows=least_rows,
        count_only=not (entropy or recursive or variance),
        values=table(VALUES, list(zip(columns, starts[:-1], starts[1:], strict=True))),
        entropy=table(ENTROPY, entropy),
        recursive=table(RECURSIVE, [(at, size, c.numerator, c.denominator) for at, size, c in recursive]),
        variance=table(VARIANCE, variance),
    )


def _variance(requirement: VarianceDiversity, extra: ExtraColumns) -> tuple[int, float]:
    """(place, least variance in squared units of the codes).

    Where 32 bits are not exact, every value may be off by half a unit and a standard deviation by as much:
    the limit is raised by that, so that the promise holds of the true values.
    """
    measure = encoding.encode_number(extra.source, extra.schema[requirement.of], missing=int(NO_NUMBER))
    least = float(Fraction(str(requirement.at_least)) / measure.exact_unit**2)
    if not measure.is_exact:
        least = (math.sqrt(least) + 0.5) ** 2
    return extra.append(measure.codes), least


def _check_whole_table(requirement: Requirement, extra: ExtraColumns) -> None:
    groups = _whole_table(requirement, extra)
    if not requirement.holds(groups)[0]:
        best = requirement.describe(float(requirement.achieved(groups)[0]))
        raise RequirementUnreachable(requirement, best=best, n_rows=extra.source.n_rows)


def _whole_table(requirement: Requirement, extra: ExtraColumns) -> GroupStats:
    """The statistics of all rows as one group."""
    count = np.array([extra.source.n_rows])
    if isinstance(requirement, KAnonymity):
        return GroupStats(count)
    if isinstance(requirement, EntropyDiversity | RecursiveDiversity):
        place, n_values = extra.label(requirement.of)
        codes = extra.columns[place - extra.n_axes]
        return GroupStats(count, values=np.bincount(codes, minlength=n_values)[None, :])
    measure = encoding.encode_number(extra.source, extra.schema[requirement.of], missing=int(NO_NUMBER))
    variance = _variance_of(measure.codes[measure.codes != NO_NUMBER]) * measure.exact_unit**2
    return GroupStats(count, variance=np.array([float(variance)]))


# ---- selections ------------------------------------------------------------------------------------


def compile_queries(
    workload: Sequence[Task], schema: Schema, domains: Sequence[Domain], n_rows: int
) -> Queries | None:
    """The selections of the workload as rectangles of codes, None if there are none.

    A condition that falls into several rectangles is as many queries of its weight [LDR08, section 4.7].
    """
    tasks = [task for task in workload if isinstance(task, Select)]
    ranges = [code_ranges(predicate.parse(task.where, schema), domains) for task in tasks]
    n_queries = sum(map(len, ranges))
    if n_queries == 0:
        return None
    weights = [task.weight for task, lines in zip(tasks, ranges, strict=True) for _ in lines]
    lines = np.concatenate(ranges)
    return Queries(
        np.ascontiguousarray(lines[:, :, 0]),
        np.ascontiguousarray(lines[:, :, 1]),
        whole_weights(weights, n_rows),
    )


def whole_weights(weights: Sequence[float], n_rows: int) -> NDArray[np.int64]:
    """Weights in the same proportions as whole numbers, as decimals say them, so that costs are exact.

    Their sum times the rows stays below 2^53. Proportions that need more are rounded, but never to nothing.

    >>> whole_weights([1.0, 0.25, 0.1], n_rows=1000).tolist()
    [20, 5, 2]
    """
    given = [Fraction(str(weight)) for weight in weights]
    unit = math.gcd(*(w.numerator for w in given)), math.lcm(*(w.denominator for w in given))
    exact = [int(w * unit[1] / unit[0]) for w in given]
    room = (2**53 - 1) // max(n_rows, 1)
    total = sum(exact)
    if total > room:
        exact = [max(1, w * (room - len(exact)) // total) for w in exact]
    return np.array(exact, dtype=np.int64)
