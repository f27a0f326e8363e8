"""Evaluation of releases: rows are held out of the recoding as well as of the training [LDR08, section 4.1].

1. The rows are divided into folds (or a test table is given).
2. The recoding is fitted to the training part alone.
3. The same recoding is applied to the test part.
4. Each model learns from the recoded training part and is tested on the recoded test part.

Of a differentially private release models learn its noisy counts instead of the recoded training part.

The same folds serve the raw data (models learn from the rows as they are) and publishing nothing (the most
frequent class, the mean): what a release costs, and what it is worth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato import methods
from sfumato.errors import PromiseError, RequirementUnreachable
from sfumato.evaluation import measures, points, private
from sfumato.evaluation.experiment import Division, Experiment, Goal, Setup, check_method, points_of, prepare
from sfumato.evaluation.features import Features
from sfumato.evaluation.intervals import make_score, paired_test
from sfumato.evaluation.models import learner
from sfumato.evaluation.points import CategoryColumn, Column
from sfumato.evaluation.result import ACCURACY, NOTHING, RAW, RELEASE, Evaluation, ModelScore, PairedTest
from sfumato.policy import predicate
from sfumato.policy.document import Policy
from sfumato.progress import Progress, no_progress, showing
from sfumato.randomness import seeded_block
from sfumato.recoding.groups import Partition
from sfumato.release.query import select
from sfumato.table.reading import AS_USUAL, Reading

# ---- learning and testing ---------------------------------------------------------------------------


class Lesson(NamedTuple):
    """The points of the rows of one division, training rows first.

    ``learned`` are points with their labels to learn from, where these are not the training rows.
    """

    points: Features
    learned: tuple[Features, NDArray[np.int64]] | None = None


LessonOf = Callable[[Goal], Lesson]
"""What a goal is predicted from in one division."""


def score_raw(experiment: Experiment, tick: Callable[[], None]) -> list[ModelScore]:
    """What models learn from the rows as they are."""

    def lesson_of(_fold: int, division: Division) -> LessonOf:
        return lambda goal: Lesson(
            points.features({name: experiment.cells[name].take(division.rows) for name in goal.features})
        )

    return _scores(experiment, RAW, lesson_of, tick)


def score_nothing(experiment: Experiment) -> list[ModelScore]:
    """What can be predicted without a release: the most frequent class throughout, or the mean."""
    return [
        _score(
            goal,
            goal.baseline,
            NOTHING,
            [_constant(goal, experiment, division) for division in experiment.divisions],
        )
        for goal in experiment.goals
    ]


def score_release(
    experiment: Experiment, policy: Policy, tick: Callable[[], None]
) -> tuple[list[ModelScore], dict[str, float]]:
    """What models learn from releases by ``policy``, and general measures of these releases."""
    lesson_of = _private_lesson if policy.is_private else _lesson
    found: list[dict[str, float]] = []
    scores = _scores(
        experiment, RELEASE, lambda fold, division: lesson_of(experiment, policy, fold, division, found), tick
    )
    return scores, {name: math.fsum(one[name] for one in found) / len(found) for name in found[0]}


def _lesson(
    experiment: Experiment, policy: Policy, fold: int, division: Division, found: list[dict[str, float]]
) -> LessonOf:
    """The rows of a part as a release would show them; adds its measures to ``found``."""
    groups = _fit(division, policy, experiment)
    boxes = points.boxes(groups.recoding, division.train, [division.test])
    widths = boxes.widths()[: division.train.n_rows]
    found.append({**_general(groups, widths), **_of_workload(groups, policy, division, experiment)})
    columns = boxes.columns(
        points_of(policy, experiment.setup.learn_from), seeded_block(experiment.setup.seed, fold)
    )

    def lesson(goal: Goal) -> Lesson:
        chosen: dict[str, Column] = {}
        for name in goal.features:
            chosen |= columns.get(name) or {name: experiment.cells[name].take(division.rows)}
        return Lesson(points.features(chosen))

    return lesson


def _private_lesson(
    experiment: Experiment, policy: Policy, fold: int, division: Division, found: list[dict[str, float]]
) -> LessonOf:
    """The same of a release in noisy counts, from which models learn; the rows of the part are recoded alike."""
    random = seeded_block(experiment.setup.seed, fold)
    counts = private.NoisyRows.of(division.train, division.test, policy, seed=int(random.integers(2**63)))
    found.append(counts.measures())
    columns, n_rows = counts.boxes.columns(points.VALUES, random), len(division.rows)

    def lesson(goal: Goal) -> Lesson:
        cell, label = counts.rows(goal.target, experiment.cells[goal.target])
        all_points = points.features(
            {key: one for name in goal.features for key, one in columns[name].items()}
        )
        return Lesson(all_points.take(np.arange(n_rows)), (all_points.take(n_rows + cell), label))

    return lesson


def _scores(
    experiment: Experiment,
    data: str,
    lesson_of: Callable[[int, Division], LessonOf],
    tick: Callable[[], None],
) -> list[ModelScore]:
    found: dict[tuple[Goal, str], list[FoldScore]] = {
        (goal, model): [] for goal in experiment.goals for model in goal.models
    }
    for fold, division in enumerate(experiment.divisions):
        lesson_on = lesson_of(fold, division)
        for goal in experiment.goals:
            lesson = lesson_on(goal)
            for model in goal.models:
                found[goal, model].append(_learn(goal, model, lesson, division, experiment))
                tick()
    return [_score(goal, model, data, folds) for (goal, model), folds in found.items()]


@dataclass(frozen=True, slots=True)
class FoldScore:
    """The metric of one model in one fold, on held-out rows and on those that it learned from."""

    test: float
    train: float


def _score(goal: Goal, model: str, data: str, folds: Sequence[FoldScore]) -> ModelScore:
    test, train = tuple(one.test for one in folds), tuple(one.train for one in folds)
    return make_score(goal.name, model, data, goal.metric, test, train)


def _learn(goal: Goal, model: str, lesson: Lesson, division: Division, experiment: Experiment) -> FoldScore:
    """Fit to the training rows whose target is known, and test on the known ones of either part."""
    y, is_known = _truth(goal, experiment, division)
    n_train = len(division.train_rows)
    trained, tested = np.flatnonzero(is_known[:n_train]), n_train + np.flatnonzero(is_known[n_train:])
    train, label = lesson.learned or (lesson.points.take(trained), y[trained])
    if goal.metric == ACCURACY and (label == label[0]).all():  # one class is no task for a model
        return _constant(goal, experiment, division, label[0])
    fitted = learner(model, learners=experiment.setup.learners, seed=experiment.setup.seed).fit(train, label)
    return FoldScore(
        test=_metric(goal, y[tested], fitted.predict(lesson.points.take(tested))),
        train=_metric(goal, y[trained], fitted.predict(lesson.points.take(trained))),
    )


def _constant(goal: Goal, experiment: Experiment, division: Division, guess: Any = None) -> FoldScore:
    """What a guess achieves; without one, the most frequent class of the training part, or its mean."""
    y, is_known = _truth(goal, experiment, division)
    n_train = len(division.train_rows)
    train, test = y[:n_train][is_known[:n_train]], y[n_train:][is_known[n_train:]]
    if guess is None:
        guess = np.bincount(train).argmax() if goal.metric == ACCURACY else train.mean()
    return FoldScore(test=_metric(goal, test, guess), train=_metric(goal, train, guess))


def _truth(goal: Goal, experiment: Experiment, division: Division) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The target of the rows of a part (class codes, or numbers), and whether it is known."""
    column = experiment.cells[goal.target]
    y = _classes(column) if goal.metric == ACCURACY else column.cells
    return y[division.rows], ~column.is_missing[division.rows]


def _classes(column: Column) -> NDArray[np.int64]:
    """Codes of classes; a number is a class too, if the workload says so."""
    if isinstance(column, CategoryColumn):
        return column.codes
    return np.unique(column.values, return_inverse=True)[1].astype(np.int64)


def _metric(goal: Goal, truth: NDArray[Any], guess: Any) -> float:
    return float(np.mean(truth == guess if goal.metric == ACCURACY else np.abs(truth - guess)))


# ---- the release ------------------------------------------------------------------------------------


def _fit(division: Division, policy: Policy, experiment: Experiment) -> Partition:
    try:
        return methods.partition(division.train, policy, threads=experiment.setup.threads)
    except RequirementUnreachable as error:
        folds = experiment.protocol.get("folds")
        which = (
            f"The training part of a fold ({division.train.n_rows:,} of {experiment.protocol['rows']:,} rows)"
        )
        way_out = "ask for less, or for more folds" if folds else "ask for less, or add rows"
        raise PromiseError(
            f"{which if folds else 'The training table'} cannot satisfy {error.requirement}: even one single group "
            f"of all its rows has only {error.best}; {way_out}."
        ) from None


def _general(groups: Partition, widths: NDArray[np.float64]) -> dict[str, float]:
    return {
        "average group size": measures.average_group_size(groups.size),
        "discernibility": measures.discernibility(groups.size),
        "normalized certainty penalty": measures.certainty_penalty(widths),
    }


def _of_workload(
    groups: Partition, policy: Policy, division: Division, experiment: Experiment
) -> dict[str, float]:
    """How pure the groups are in each target, and how precisely rows are selected."""
    found, group = {}, groups.of_row()
    for goal in experiment.goals:
        column = experiment.cells[goal.target].take(division.train_rows)
        if goal.metric == ACCURACY:
            entropy = measures.conditional_entropy(group, _classes(column))
            found[f"conditional entropy of {goal.target}"] = entropy
        else:
            error = measures.mean_squared_error(group, column.cells.astype(np.float64))
            found[f"weighted mean squared error of {goal.target}"] = error
    rows = pa.table(groups.columns()) if experiment.selections else None
    for condition in experiment.selections:
        where = predicate.parse(condition, policy.schema)
        selected = select.imprecision(where, division.train, policy.schema, rows, groups.recoding, policy)
        found[f"imprecision of {condition}"] = float(selected.imprecision)
    return found


# ---- the whole of it --------------------------------------------------------------------------------


def evaluate(
    table: Any,
    policy: Policy | Mapping[str, Any] | str | Path,
    *,
    folds: int = 10,
    test: Any = None,
    models: Sequence[str] | None = None,
    learn_from: str | None = None,
    seed: int = 0,
    learners: str = "scikit-learn",
    threads: int | None = None,
    reading: Reading = AS_USUAL,
    progress: Progress | bool = no_progress,
) -> Evaluation:
    """How useful releases of ``table`` by ``policy`` are for its workload, on held-out rows.

    ``test`` is a table of further rows to test on, in place of ``folds``. ``learn_from`` says how boxes
    become points: corners (the default), midpoint or sample. Without a target in the workload only the
    general measures are taken. ``reading`` says how the text of the tables is written. Nothing of this is published:
    an evaluation looks at raw rows.

    >>> rows = pa.table({"age": list(range(40)), "ill": ["no", "yes"] * 10 + ["yes"] * 20})
    >>> policy = Policy.parse('''
    ... attributes: {age: {role: quasi-identifier, type: number}, ill: {role: other}}
    ... require: [k-anonymity: 5]
    ... workload: [classify: ill]
    ... ''')
    >>> found = evaluate(rows, policy, folds=2, models=["decision-tree"])
    >>> found.score("ill", "majority", "nothing").mean
    0.75
    """
    policy = Policy.of(policy)
    check_method(policy.method.name)
    setup = Setup(folds, test, models, learn_from, seed, learners, threads, reading)
    experiment = prepare(table, policy, setup)
    policy = experiment.policy
    with showing(progress) as told:
        tick = _ticker(told, 2 * experiment.n_fits)
        released, found = score_release(experiment, policy, tick)
        raw, nothing = score_raw(experiment, tick), score_nothing(experiment)
    return Evaluation(
        policy=policy.as_dict(),
        protocol={**experiment.protocol, "learn_from": points_of(policy, learn_from)},
        scores=(*released, *raw, *nothing),
        measures=found,
        tests=tuple(_tests(released, raw, nothing)),
    )


def _ticker(progress: Progress, total: int) -> Callable[[], None]:
    done = 0
    progress("evaluating", 0, total)

    def tick() -> None:
        nonlocal done
        done += 1
        progress("evaluating", done, total)

    return tick


def _tests(
    released: Sequence[ModelScore], raw: Sequence[ModelScore], nothing: Sequence[ModelScore]
) -> Iterator[PairedTest]:
    """Does the release differ from the raw data, and does it beat publishing nothing?"""
    baseline = {score.target: score for score in nothing}
    for score, on_raw in zip(released, raw, strict=True):
        tests = (
            paired_test(score, on_raw, names=(RELEASE, RAW), one_sided=False),
            paired_test(score, baseline[score.target], names=(RELEASE, NOTHING), one_sided=True),
        )
        yield from (test for test in tests if test is not None)
