"""Turns workload and requirements into the tables that kernels read: columns, weights, limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from sfumato.encoding.domain import EXACT_LIMIT, Domain
from sfumato.encoding.targets import (
    Cell,
    Columns,
    Counted,
    Joint,
    Label,
    Number,
    One,
    Pair,
    Target,
    cell_of,
    targets_of,
)
from sfumato.errors import PolicyError
from sfumato.kernels.axes import NO_NUMBER
from sfumato.kernels.information import DIGITS, FIXED_POINT, MOST_ROWS, information_of
from sfumato.methods.mondrian.kernels.problem import (
    CELL,
    CLOSENESS,
    DISTINCT,
    ENTROPY,
    RECURSIVE,
    SET,
    TARGET,
    VALUES,
    VARIANCE,
    Cells,
    People,
    Queries,
    Rules,
    ScoreType,
    SensitiveRules,
    Table,
    Targets,
    table,
    words_of_targets,
)
from sfumato.methods.mondrian.prices import chance_of
from sfumato.methods.people_keys import rows_with_enough_people
from sfumato.methods.whole_table import check_whole_table, variance_of
from sfumato.policy import predicate
from sfumato.policy.kinds import read_exactly
from sfumato.policy.options.mondrian import MondrianOptions
from sfumato.policy.requirements import (
    DistinctDiversity,
    EntropyDiversity,
    KAnonymity,
    Needs,
    RecursiveDiversity,
    Requirement,
    TCloseness,
    VarianceDiversity,
)
from sfumato.policy.schema import Schema
from sfumato.policy.workload import Classify, Predict, Regress, Select, Task
from sfumato.release.query.select import code_ranges

FINEST = 10**9
"""t is rounded down to nine digits, which asks for a little more, so that its products with counts fit in 124 bits."""


GREATEST_SCORE = 1 << 62
"""No score of labels is farther from 0, so that sums and differences of two fit in 64 bits."""

GREATEST_COST = (1 << 53) - 1
"""The same of selections: exact as a float, too."""


@dataclass(frozen=True, slots=True)
class _Target:
    column: Target
    n_classes: int  # 0: a number
    weight: float
    information: int  # label: entropy of the whole table within its cells, times the rows, in fixed point
    whole: float  # entropy in bits, or variance, of the whole table within its cells
    cell: Cell | None  # of the features outside the quasi-identifier


class _Weights(NamedTuple):
    """What the score of each target is multiplied by before they are summed."""

    of: Sequence[float]
    gain_scale: float  # see ``Targets``
    score_type: ScoreType


def compile_targets(
    workload: Sequence[Task], options: MondrianOptions, columns: Columns
) -> tuple[Targets | None, Cells | None]:
    """The targets of a workload, None if it has none.

    Those of one kind are weighted and summed as they are [LDR08, equations 5 and 6].

    A mixture, and ``standardize``, divide each target by its value on the whole table: a bit of entropy and a
    squared dollar have no common measure. As soon as one target has features outside the quasi-identifier, all
    are scored over cells, the others over one cell.
    """
    tasks = [task for task in workload if isinstance(task, Classify | Regress)]
    targets = [target for task in tasks for target in _list_targets(task, columns)]
    if not targets:
        return None, None
    is_mixed = len({target.n_classes > 0 for target in targets}) > 1
    is_relative = len(targets) > 1 and (is_mixed or options.standardize)
    if any(target.n_classes == 0 for target in targets):
        weights = _weigh_numbers(targets, columns, is_relative=is_relative)
    else:
        weights = _weigh_labels(targets, columns.n_rows, is_relative=is_relative)
    weighted = list(zip(targets, weights.of, strict=True))
    labels = [(target, weight) for target, weight in weighted if target.n_classes]
    numbers = [(target, weight) for target, weight in weighted if not target.n_classes]
    record = TARGET[weights.score_type]
    least_gain = float(options.median_below_gain) if options.median_below_gain else None
    none = table(record, [])
    if any(target.cell is not None for target in targets):
        cells = _compile_cells(labels, numbers, CELL[weights.score_type], columns)
        return Targets(none, none, weights.gain_scale, least_gain), cells
    label = table(record, [_describe_target(target, weight, columns) for target, weight in labels])
    number = table(record, [_describe_target(target, weight, columns) for target, weight in numbers])
    several = words_of_targets(label, number)
    return Targets(label, number, weights.gain_scale, least_gain, several), None


def count_classes(workload: Sequence[Task], columns: Columns) -> int:
    """How many classes the label with the most of them has; 0 if there is none, missing being one."""
    tasks = [task for task in workload if isinstance(task, Classify)]
    labels = [target for task in tasks for target in targets_of(task)]
    return max((len(columns.count(label)) for label in labels if not isinstance(label, Number)), default=0)


def uses_cells(workload: Sequence[Task], schema: Schema) -> bool:
    """Do features outside the quasi-identifiers help to predict a target?"""
    tasks = [task for task in workload if isinstance(task, Classify | Regress)]
    return any(cell_of(task, target, schema) is not None for task in tasks for target in targets_of(task))


def list_tasks(
    workload: Sequence[Task], options: MondrianOptions, columns: Columns
) -> list[tuple[float, float, float]]:
    """(weight, information of the whole table, chance) of each target, in the order of ``Targets``: labels first.

    One that the whole table tells nothing of counts nothing.
    """
    tasks = [task for task in workload if isinstance(task, Classify | Regress)]
    found = [target for task in tasks for target in _list_targets(task, columns)]
    in_order = [each for each in found if each.n_classes] + [each for each in found if not each.n_classes]
    return [_task_of(target, columns, options) for target in in_order]


def _task_of(target: _Target, columns: Columns, options: MondrianOptions) -> tuple[float, float, float]:
    """A record of TASK; of a number the squared error, in the units of its codes."""
    if isinstance(target.column, Number):
        sums = columns.sums(target.column)
        whole = sums.squared_errors / sums.n if sums.n else 0.0
        return (target.weight, whole, 0.0) if whole > 0 else (0.0, 1.0, 0.0)
    if target.information <= 0:
        return 0.0, 1.0, 0.0
    chance = chance_of(columns.n_rows, target.n_classes) if options.chance else 0.0
    return target.weight, float(target.information), chance


def _weigh_labels(labels: Sequence[_Target], n_rows: int, *, is_relative: bool) -> _Weights:
    """The weights of targets that are all labels: whole numbers, so that scores are.

    No split, of any part of the table, scores less than the whole table as one part; but for roundoff, which is less
    than a unit for each count, and there are at most twice as many counts as rows.
    """
    farthest = [label.information + 2 * n_rows for label in labels]
    if sum(farthest) > GREATEST_SCORE:
        raise PolicyError(
            f"The {len(labels)} labels of the workload cannot be kept predictable in a table of {n_rows:,} rows: "
            f"their scores would not fit in 64 bits. Ask for fewer labels."
        )
    declared = [Fraction(1)] if len(labels) == 1 else [read_exactly(label.weight) for label in labels]
    one_bit = n_rows << DIGITS
    units = [label.information or one_bit if is_relative else one_bit for label in labels]
    shares = [weight * n_rows / unit for weight, unit in zip(declared, units, strict=True)]
    whole = weights_as_integers(shares, farthest, GREATEST_SCORE)
    most = max(range(len(whole)), key=whole.__getitem__)
    return _Weights(whole, float(shares[most] / whole[most]), np.int64)


def _weigh_numbers(targets: Sequence[_Target], columns: Columns, *, is_relative: bool) -> _Weights:
    """The weights of targets among which there is a number.

    Scores of numbers are squared units of their codes, which are hundredths for one column and whole numbers for
    another; the weights bring them to the units of the columns themselves.
    """
    if is_relative:
        return _Weights([_relative_weight(target) for target in targets], 1.0, np.float64)
    units = [columns.scale(each.column).exact_unit for each in targets if isinstance(each.column, Number)]
    exact = [read_exactly(target.weight) * unit**2 for target, unit in zip(targets, units, strict=True)]
    weights = weights_as_floats(exact)
    spread = sum(weight * target.whole for target, weight in zip(targets, weights, strict=True))
    return _Weights(weights, 1.0 / spread if spread > 0 else 0.0, np.float64)


def _relative_weight(target: _Target) -> float:
    unit = FIXED_POINT if target.n_classes else 1.0
    return target.weight / (unit * target.whole) if target.whole > 0 else target.weight


def _list_targets(task: Predict, columns: Columns) -> list[_Target]:
    found = []
    for target in targets_of(task):
        cell = cell_of(task, target, columns.schema)
        if isinstance(target, Number):
            n_classes, information, whole = 0, 0, _variance_within(target, cell, columns)
        else:
            n_classes, information = len(columns.count(target)), _information_within(target, cell, columns)
            whole = information / FIXED_POINT / columns.n_rows
        found.append(_Target(target, n_classes, task.weight, information, whole, cell))
    return found


def _describe_target(target: _Target, weight: float, columns: Columns) -> tuple[int, int, float, int]:
    """A record of TARGET."""
    return (
        columns.place(target.column),
        target.n_classes,
        weight,
        _find_greatest_code(target.column, columns),
    )


def _find_greatest_code(target: Target, columns: Columns) -> int:
    """The greatest code of a target."""
    return columns.sums(target).greatest if isinstance(target, Number) else len(columns.count(target)) - 1


# ---- features outside the quasi-identifier ---------------------------------------------------------


def _compile_cells(
    labels: Sequence[tuple[_Target, float]],
    numbers: Sequence[tuple[_Target, float]],
    record: np.dtype[np.void],
    columns: Columns,
) -> Cells:
    """Targets over cells, as the kernels see them."""

    def within(target: _Target) -> Cell | One:
        return target.cell or One()

    def pair_of(target: _Target) -> Label | Joint | Pair:
        assert not isinstance(target.column, Number)
        return target.column if target.cell is None else Pair(target.cell, target.column)

    def scale_of(target: _Target) -> float:
        """A power of two that makes scores whole numbers below 2^52: none exceeds all squared errors."""
        error = target.whole * columns.n_rows
        return math.ldexp(1.0, 51 - math.frexp(error)[1]) if error > 0 else 1.0

    place = columns.place
    ids: list[Counted] = [within(target) for target, _ in (*labels, *numbers)]
    ids += [pair_of(target) for target, _ in labels]
    return Cells(
        table(record, [(place(within(each)), place(pair_of(each)), weight, 1.0) for each, weight in labels]),
        table(
            record,
            [
                (place(within(each)), place(each.column), weight / scale_of(each), scale_of(each))
                for each, weight in numbers
            ],
        ),
        n_ids=max(len(columns.count(column)) for column in ids),
        counts=np.zeros((0, 4), dtype=np.int64),
    )


def _information_within(label: Label | Joint, cell: Cell | None, columns: Columns) -> int:
    """Entropy times the rows, within the cells if there are any; in fixed point as scores are."""
    if columns.n_rows > MOST_ROWS:
        raise PolicyError(
            f"Labels can be kept predictable in tables of up to {MOST_ROWS:,} rows, and this one has "
            f"{columns.n_rows:,}."
        )
    cells = np.array([columns.n_rows]) if cell is None else columns.count(cell)
    pairs = columns.count(label if cell is None else Pair(cell, label))
    return int(information_of(cells).sum()) - int(information_of(pairs).sum())


def _variance_within(number: Number, cell: Cell | None, columns: Columns) -> float:
    """Population variance, within the cells if there are any."""
    if cell is None:
        return float(variance_of(columns.sums(number)))
    errors = [sums.squared_errors / sums.n for sums in columns.sums_within(number, cell)]
    return math.fsum(errors) / columns.n_rows  # the exact sum, rounded once: the order of cells cannot matter


def compile_rules(requirements: Sequence[Requirement], columns: Columns) -> Rules:
    """The rules of all requirements; raises if the whole table, as one group, fails one already."""
    for requirement in requirements:
        check_whole_table(requirement, columns)
    counted = [Label(item.of) for item in requirements if Needs.VALUES in item.needs and item.of is not None]
    at = {label.name: i for i, label in enumerate(dict.fromkeys(counted))}
    ends = np.cumsum([0, *(len(columns.count(Label(name))) for name in at)]).tolist()
    places = [columns.place(Label(name)) for name in at]
    closeness, distinct, entropy, recursive, variance = [], [], [], [], []
    for item in requirements:
        if isinstance(item, EntropyDiversity):
            entropy.append((at[item.of], math.log(item.l)))
        elif isinstance(item, RecursiveDiversity) and item.l > 1:
            recursive.append((at[item.of], item.l, item.exact_c.numerator, item.exact_c.denominator))
        elif isinstance(item, DistinctDiversity):
            distinct.append((at[item.of], item.l))
        elif isinstance(item, TCloseness):
            closeness.append((at[item.of], item))
        elif isinstance(item, VarianceDiversity):
            variance.append(_compile_variance(item, columns))
    close, sets = _compile_closeness(closeness, columns)
    people = _compile_people(requirements, columns)
    is_needed = closeness or distinct or entropy or recursive or variance or people is not None
    sensitive = SensitiveRules(
        values=table(VALUES, list(zip(places, ends[:-1], ends[1:], strict=True))),
        distinct=table(DISTINCT, distinct),
        entropy=table(ENTROPY, entropy),
        recursive=table(RECURSIVE, recursive),
        variance=table(VARIANCE, variance),
        closeness=close,
        sets=sets,
        people=people,
    )
    return Rules(
        least_rows=max((item.fewest_rows for item in requirements), default=1),
        diverse_rows=max((item.fewest_rows for item in requirements if item.of is not None), default=1),
        sensitive=sensitive if is_needed else None,
    )


def _compile_people(requirements: Sequence[Requirement], columns: Columns) -> People | None:
    """How people are counted; None if rows are. Numbers of pairs come after all columns."""
    if columns.person is None or not requirements:
        return None
    least = max((item.k for item in requirements if isinstance(item, KAnonymity)), default=1)
    place = columns.place(columns.person)
    return People(place, place + 1, least, rows_with_enough_people(columns.count(columns.person), least))


def _compile_closeness(asked: Sequence[tuple[int, TCloseness]], columns: Columns) -> tuple[Table, Table]:
    """The rules of t-closeness, each with the place of its sensitive attribute, and their sets of values."""
    rules, lines = [], [np.zeros(0, dtype=SET)]
    for place, item in asked:
        known = columns.labels[item.of].reference_for(item, columns.count_pairs(Label(item.of)))
        assert known is not None
        n_values, n_sets, first = len(known.order), len(known.first), sum(map(len, lines))
        own = np.zeros(max(n_values, n_sets), dtype=SET)  # what is left over of either weighs nothing
        own["code"][:n_values] = known.order
        before, sets = np.cumsum([0, *known.counts[known.order]]), own[:n_sets]
        sets["first"], sets["last"], sets["weight"] = known.first, known.last, known.weight
        sets["rows"] = before[known.last] - before[known.first]
        lines.append(own)
        limit = Fraction(math.floor(item.exact_t * FINEST), FINEST) * known.scale
        end, n_rows = first + len(own), int(known.counts.sum())
        rules.append(
            (place, first, end, n_values, n_rows, limit.numerator, limit.denominator, item.t, known.scale)
        )
    return table(CLOSENESS, rules), np.concatenate(lines).view(np.recarray)


def _compile_variance(requirement: VarianceDiversity, columns: Columns) -> tuple[int, float]:
    """The record of VARIANCE: place of the column, least variance in squared units of its codes.

    Where 32 bits are not exact, every value may be off by half a unit and a standard deviation by as much:
    the limit is raised by that, so that the promise holds of the true values.
    """
    number = Number(requirement.of, missing=int(NO_NUMBER))
    scale = columns.scale(number)
    least = float(read_exactly(requirement.at_least) / scale.exact_unit**2)
    if not scale.is_exact:
        least = (math.sqrt(least) + 0.5) ** 2
    return columns.place(number), least


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
    weights = [read_exactly(task.weight) for task, lines in zip(tasks, ranges, strict=True) for _ in lines]
    lines = np.concatenate(ranges)
    largest_sum = GREATEST_COST // max(n_rows, 1)
    return Queries(
        np.ascontiguousarray(lines[:, :, 0]),
        np.ascontiguousarray(lines[:, :, 1]),
        np.array(weights_as_integers(weights, [1] * n_queries, largest_sum), dtype=np.int64),
    )


def weights_as_integers(weights: Sequence[Fraction], farthest: Sequence[int], limit: int) -> list[int]:
    """Whole numbers in the same proportions, so that what they weigh is exact.

    Each may be multiplied by what is ``farthest`` from 0, and the sum is at most ``limit``. Proportions that need more
    are rounded, but never to 0.

    >>> weights_as_integers([Fraction(1), Fraction(1, 4), Fraction(1, 10)], [1, 1, 1], limit=27)
    [20, 5, 2]
    >>> weights_as_integers([Fraction(1), Fraction(1, 4), Fraction(1, 10)], [1, 1, 1], limit=26)
    [17, 4, 1]
    """
    whole = _find_whole_numbers(weights)
    total = sum(w * most for w, most in zip(whole, farthest, strict=True))
    if total > limit:
        whole = [max(1, w * (limit - sum(farthest)) // total) for w in whole]
    return whole


def weights_as_floats(weights: Sequence[Fraction]) -> list[float]:
    """Floats in the same proportions: whole numbers where these are exact, so that equal sums stay equal.

    >>> weights_as_floats([Fraction(1), Fraction(1, 10**4)]), weights_as_floats([Fraction(1), Fraction(1, 2**60)])
    ([10000.0, 1.0], [1.0, 8.673617379884035e-19])
    """
    whole = _find_whole_numbers(weights)
    unit = 1 if max(whole) <= EXACT_LIMIT else max(whole)
    return [w / unit for w in whole]


def _find_whole_numbers(weights: Sequence[Fraction]) -> list[int]:
    """The least whole numbers in the same proportions."""
    above, below = math.gcd(*(w.numerator for w in weights)), math.lcm(*(w.denominator for w in weights))
    return [int(w * below / above) for w in weights]
