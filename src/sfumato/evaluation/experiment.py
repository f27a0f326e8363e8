"""The set-up of an evaluation: targets, models, and which rows are held out, the same for every policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.encoding.encoders import encode_people
from sfumato.errors import InputError, PolicyError, TableError, did_you_mean, number_of
from sfumato.evaluation import points
from sfumato.evaluation.metrics import ACCURACY, ERROR, OF_CLASSES, OF_NUMBERS
from sfumato.evaluation.models import CLASSIFIERS, LEARNERS, REGRESSORS
from sfumato.evaluation.points import Column
from sfumato.policy.document import Policy
from sfumato.policy.options import MethodOptions
from sfumato.policy.schema import Attribute, Role
from sfumato.policy.workload import Classify
from sfumato.randomness import run_key, seeded
from sfumato.table.allowance import Gauge
from sfumato.table.opening import open_table
from sfumato.table.reading import AS_USUAL, Reading, in_usual_notation, open_as
from sfumato.table.shifted_dates import shift_dates
from sfumato.table.source import Source
from sfumato.table.text_encoding import UTF8

BASELINES = {ACCURACY: "majority", ERROR: "mean"}
"""What predicts without looking: the most frequent class of the training part, or its mean."""

BYTES_PER_CELL = 32
"""Memory that learning takes, about: a table in memory, its cells as numbers, and the parts that are held out."""

Rows = NDArray[np.int64]


# ---- what is to be predicted ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Goal:
    """One target with the columns that it is predicted from and the models that try.

    ``name`` is what its scores are told apart by: the target, with more words where another goal has the same.
    """

    name: str
    target: str
    features: tuple[str, ...]
    models: tuple[str, ...]
    metric: str

    @property
    def is_class(self) -> bool:
        return self.metric == ACCURACY

    @property
    def metrics(self) -> tuple[str, ...]:
        """All that is measured; the first leads."""
        return OF_CLASSES if self.is_class else OF_NUMBERS

    @property
    def baseline(self) -> str:
        return BASELINES[self.metric]


def goals_of(policy: Policy, models: Sequence[str] | None) -> tuple[Goal, ...]:
    """The targets of a policy's workload, each once; targets of one task are predicted one by one."""
    chosen = _choose_models(models)
    quasi = policy.schema.names(Role.QUASI_IDENTIFIER)
    goals = []
    for task in policy.predictions:
        is_class = isinstance(task, Classify)
        fitting = tuple(m for m in chosen if m in (CLASSIFIERS if is_class else REGRESSORS))
        for target in task.targets:
            if target in quasi:
                raise PolicyError(
                    f"Column {target!r} is both target and quasi-identifier. A release shows it only as ranges, so "
                    "predictions of it cannot be checked. Give it the role other."
                )
            features = tuple(name for name in task.features or quasi if name != target)
            goals.append(Goal(target, target, features, fitting, ACCURACY if is_class else ERROR))
    goals = [goal for goal in dict.fromkeys(goals) if goal.models]
    if policy.predictions and not goals:
        kind = "classify" if chosen[0] in CLASSIFIERS else "regress"
        raise InputError(f"The models asked for {kind}, but no task of the workload does.")
    return tuple(replace(goal, name=_name(goal, goals)) for goal in goals)


def _name(goal: Goal, goals: Sequence[Goal]) -> str:
    rivals = [other for other in goals if other.target == goal.target and other != goal]
    words = [goal.target]
    if any(other.metric != goal.metric for other in rivals):
        words.append("as a class" if goal.metric == ACCURACY else "as a number")
    if any(other.metric == goal.metric for other in rivals):
        words.append(f"from {', '.join(goal.features)}")
    return " ".join(words)


def _choose_models(models: Sequence[str] | None) -> tuple[str, ...]:
    known = (*CLASSIFIERS, *REGRESSORS)
    models = (models,) if isinstance(models, str) else models
    for name in models or ():
        if name not in known:
            raise InputError(
                f"There is no model {name!r}.{did_you_mean(name, known) or ' Models: ' + ', '.join(known) + '.'}"
            )
    if models is not None and not models:
        raise InputError(f"No model is named; leave the option out, or choose among {', '.join(known)}.")
    return known if models is None else tuple(dict.fromkeys(models))


# ---- which rows are held out ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Division:
    """One division of the rows: the table to fit, the table held out, and where their rows stand in all cells."""

    train: Source
    test: Source
    train_rows: Rows
    test_rows: Rows

    @property
    def rows(self) -> Rows:
        return np.concatenate([self.train_rows, self.test_rows])


@dataclass(frozen=True, slots=True, eq=False)
class Setup:
    """How utility is measured, as :func:`sfumato.evaluate` is asked to do it."""

    folds: int = 10
    test: Any = None
    models: Sequence[str] | None = None
    learn_from: str | None = None
    seed: int = 0
    learners: str = "scikit-learn"
    threads: int | None = None
    reading: Reading = AS_USUAL

    def __post_init__(self) -> None:
        if self.learners not in LEARNERS:
            hint = did_you_mean(self.learners, LEARNERS)
            raise InputError(f"Learners are {' or '.join(LEARNERS)}, not {self.learners!r}.{hint}")
        if self.seed < 0:
            raise InputError("The seed must be a whole number of at least 0.")


@dataclass(frozen=True, slots=True, eq=False)
class Experiment:
    """Everything that stays the same whichever policy is evaluated: rows, folds, targets, models, learners, seed."""

    source: Source
    divisions: tuple[Division, ...]
    cells: Mapping[str, Column]
    """Of the raw rows."""
    passed: Mapping[str, Column]
    """The same as they are published where they pass, with shifted dates."""
    goals: tuple[Goal, ...]
    selections: tuple[str, ...]
    protocol: Mapping[str, Any]
    policy: Policy
    """The policy that the rows were read by, its patterns replaced by the columns of the table."""
    setup: Setup

    @property
    def n_fits(self) -> int:
        """Models to be fitted to one kind of data."""
        return len(self.divisions) * sum(len(goal.models) for goal in self.goals)

    def n_classes(self, target: str) -> int:
        """How many classes a target has, in all rows."""
        column = self.cells[target]
        return len(np.unique(column.cells[~column.is_missing]))


def check_method(method: MethodOptions) -> None:
    """Raise if releases of a method cannot be tested on rows that they were not made from."""
    if method.draws_rows:
        raise InputError(
            "Private risk-utility publishes some boxes of rows that it drew, and no held-out row has one for certain. "
            "Publish instead: the certificate says how much of a table like the side table can be published."
        )


def prepare(table: Any, policy: Policy, setup: Setup) -> Experiment:
    """Read the table, check what is asked of it, and divide its rows."""
    source = _open(table, policy, setup.reading)
    policy = policy.expand(source.names)
    goals = goals_of(policy, setup.models)
    _check_points(policy, setup.learn_from)
    policy.check_columns(source.names)
    Gauge(source.where).foresee(source.n_rows * len(source.names) * BYTES_PER_CELL)
    source = source.hold()
    tested = None if setup.test is None else _open(setup.test, policy, setup.reading).hold()
    tables = [source] if tested is None else [source, tested]
    cells = points.read(tables, policy.schema, _names(goals))
    if any(attribute.shift for attribute in policy.schema):
        key = run_key(setup.seed)
        source, *others = (shift_dates(table, policy.schema, key).hold() for table in tables)
        tested = others[0] if others else None
        passed = points.read([source, *others], policy.schema, _names(goals))
    else:
        passed = cells
    for goal in goals:
        _check_target(cells[goal.target], goal)
    if tested is None:
        divisions = tuple(_divide(source, _strata(goals, cells), setup, unit_of(policy)))
        held = {"folds": int(setup.folds)}
    else:
        _check_strangers(source, tested, unit_of(policy))
        divisions, held = (_hold_out(source, tested),), {"test_rows": tested.n_rows}
    for goal in goals:
        _check_known(cells[goal.target], goal, divisions)
    protocol = {**held, "rows": source.n_rows, "seed": int(setup.seed), "learners": setup.learners}
    selections = tuple(task.where for task in policy.selections)
    return Experiment(source, divisions, cells, passed, goals, selections, protocol, policy, setup)


def _open(table: Any, policy: Policy, reading: Reading) -> Source:
    """The table as ``publish`` reads it: by a private method nothing is recognized."""
    if policy.is_private:
        source = open_table(table, encoding=reading.encoding or UTF8)
        return in_usual_notation(source, policy.schema, reading)
    return open_as(table, policy.schema, reading)


def _names(goals: Sequence[Goal]) -> list[str]:
    return [name for goal in goals for name in (goal.target, *goal.features)]


def points_of(policy: Policy, learn_from: str | None) -> str:
    """How boxes of this policy become points, as the user says or by default."""
    return points.VALUES if policy.method.shares_cuts else learn_from or points.LEARN_FROM[0]


def _check_points(policy: Policy, learn_from: str | None) -> None:
    if learn_from is None:
        return
    if learn_from not in points.LEARN_FROM:
        hint = did_you_mean(learn_from, points.LEARN_FROM)
        raise InputError(
            f"Boxes are learned from by {', '.join(points.LEARN_FROM)}, not {learn_from!r}.{hint}"
        )
    if policy.method.shares_cuts:
        raise InputError(
            f"The method {policy.method.name} gives each column one set of values, which are learned from as they are; "
            f"{learn_from} is for boxes. Leave it out."
        )


def _check_target(column: Column, goal: Goal) -> None:
    if not goal.features:
        raise PolicyError(f"Nothing is left to predict column {goal.target!r} from; name some features.")
    known = column.cells[~column.is_missing]
    if len(known) == 0 or (known == known[0]).all():
        raise TableError(
            f"Column {goal.target!r} is a target, but all its cells hold one value: there is nothing to predict. "
            "Choose another target."
        )


def _check_known(column: Column, goal: Goal, divisions: Sequence[Division]) -> None:
    for division in divisions:
        for rows in (division.train_rows, division.test_rows):
            if column.is_missing[rows].all():
                raise TableError(
                    f"Column {goal.target!r} is a target, but it is missing in all {len(rows):,} rows of a part "
                    "to learn from or to test on; choose another target, or fewer folds."
                )


def _hold_out(train: Source, test: Source) -> Division:
    return Division(train, test, np.arange(train.n_rows), train.n_rows + np.arange(test.n_rows))


def unit_of(policy: Policy) -> Attribute | None:
    """The column that tells people apart, if groups count people."""
    return None if policy.person is None or policy.is_private else policy.schema[policy.person]


def _check_strangers(train: Source, test: Source, unit: Attribute | None) -> None:
    """Raise if people are in both tables: of them, models would have learned what they are tested on."""
    if unit is None:
        return
    known, met = (encode_people(source, unit)[1] for source in (train, test))
    if n_both := int(pc.sum(pc.is_in(met, value_set=known)).as_py() or 0):
        raise InputError(
            f"{number_of(n_both, 'person', 'people')} of {unit.name!r} are in both tables; leave them out of one."
        )


def _divide(
    source: Source, strata: NDArray[Any] | None, setup: Setup, unit: Attribute | None
) -> Iterator[Division]:
    """One division for each fold, which is held out of it; all rows of a person are in one fold."""
    folds = setup.folds
    if folds < 2:
        raise InputError("Cross-validation needs at least 2 folds; or give a table to test on.")
    if source.n_rows < folds:
        raise InputError(
            f"{source.n_rows:,} rows cannot be divided into {folds:,} folds; ask for fewer folds, or add rows."
        )
    if unit is None:
        of_row = fold_of_rows(source.n_rows, folds, setup.seed, strata)
    else:
        person, known = encode_people(source, unit)
        if len(known) < folds:
            raise InputError(
                f"{len(known):,} people cannot be divided into {folds:,} folds; ask for fewer folds, or add people."
            )
        first = np.unique(person, return_index=True)[1]
        of_row = fold_of_rows(len(known), folds, setup.seed, None if strata is None else strata[first])[
            person
        ]
    for fold in range(folds):
        train, test = np.flatnonzero(of_row != fold), np.flatnonzero(of_row == fold)
        yield Division(source.take(train), source.take(test), train, test)


def _strata(goals: Sequence[Goal], cells: Mapping[str, Column]) -> NDArray[Any] | None:
    """The classes that every fold should hold alike: those of the first target to classify."""
    first = next((goal.target for goal in goals if goal.metric == ACCURACY), None)
    return None if first is None else cells[first].cells


def fold_of_rows(n_rows: int, folds: int, seed: int, strata: NDArray[Any] | None = None) -> Rows:
    """The fold of each row: at random, sizes and strata as even as can be.

    >>> fold_of_rows(6, 3, seed=0, strata=np.array([0, 0, 0, 1, 1, 1])).reshape(2, 3).sum(axis=1)
    array([3, 3])
    """
    order = seeded(seed).permutation(n_rows)
    if strata is not None:
        order = order[np.argsort(strata[order], kind="stable")]
    out = np.empty(n_rows, dtype=np.int64)
    out[order] = np.arange(n_rows) % folds
    return out
