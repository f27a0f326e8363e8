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
from sfumato.evaluation import loss, measures, points, private
from sfumato.evaluation.experiment import Division, Experiment, Goal, Setup, check_method, points_of, prepare
from sfumato.evaluation.features import Features
from sfumato.evaluation.intervals import make_score, paired_test
from sfumato.evaluation.metrics import Guess, score_classes, score_numbers
from sfumato.evaluation.models import make_learner
from sfumato.evaluation.points import CategoryColumn, Column
from sfumato.evaluation.result import NOTHING, RAW, RELEASE, Evaluation, ModelScore, PairedTest
from sfumato.evaluation.row_boxes import GeneralizedParts
from sfumato.policy import predicate
from sfumato.policy.document import Policy
from sfumato.progress import Progress, no_progress, showing
from sfumato.randomness import seeded_block
from sfumato.recoding.recoder import Partition
from sfumato.release.query import select
from sfumato.table.reading import AS_USUAL, Reading

QUERY_BLOCKS = 1 << 20
"""The first of the blocks of randomness that draw queries, one for each fold; those below draw points."""

# ---- learning and testing ---------------------------------------------------------------------------


class GoalData(NamedTuple):
    """What one goal is learned from and tested on in one division: the points of its rows, training rows first.

    ``learned`` are points with their labels to learn from, if these are not the training rows.
    """

    points: Features
    learned: tuple[Features, NDArray[np.int64]] | None = None
    is_left_out: NDArray[np.bool_] | None = None
    """Rows that are in no group: nothing is learned from them, and a guess stands for what they are predicted."""


DataOf = Callable[[Goal], GoalData]
"""The data of any goal in one division."""


def score_raw(experiment: Experiment, tick: Callable[[], None]) -> list[ModelScore]:
    """What models learn from the rows as they are."""

    def data_in(_fold: int, division: Division) -> DataOf:
        return lambda goal: GoalData(
            points.as_features({name: experiment.cells[name].take(division.rows) for name in goal.features})
        )

    return _score_models(experiment, RAW, data_in, tick)


def score_nothing(experiment: Experiment) -> list[ModelScore]:
    """What can be predicted without a release: the most frequent class throughout, or the mean."""
    return [
        score
        for goal in experiment.goals
        for score in _join_folds(
            goal,
            goal.baseline,
            NOTHING,
            [_score_guess(goal, experiment, division) for division in experiment.divisions],
        )
    ]


def score_release(
    experiment: Experiment, policy: Policy, tick: Callable[[], None]
) -> tuple[list[ModelScore], dict[str, float]]:
    """What models learn from releases by ``policy``, and general measures of these releases."""
    data_in = _release_data
    if policy.is_private:
        data_in = _private_data
    elif policy.method.is_row_by_row:
        data_in = _data_row_by_row
    found: list[dict[str, float]] = []
    scores = _score_models(
        experiment, RELEASE, lambda fold, division: data_in(experiment, policy, fold, division, found), tick
    )
    return scores, loss.order_columns(_mean_over_folds(found))


def _mean_over_folds(found: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of each measure over the folds that have it."""
    names = dict.fromkeys(name for one in found for name in one)
    by_name = {name: [one[name] for one in found if name in one] for name in names}
    return {name: math.fsum(values) / len(values) for name, values in by_name.items()}


def _release_data(
    experiment: Experiment, policy: Policy, fold: int, division: Division, found: list[dict[str, float]]
) -> DataOf:
    """The rows of a part as a release would show them; adds its measures to ``found``."""
    groups = _fit(division, policy, experiment)
    boxes = points.find_boxes(groups.recoding, division.train, [division.test])
    found.append(
        {
            "average group size": measures.average_group_size(groups.size),
            "discernibility": measures.discernibility(groups.size),
            **loss.measure_groups(
                groups, division.train, seeded_block(experiment.setup.seed, QUERY_BLOCKS + fold)
            ),
            **_measure_workload(groups, policy, division, experiment),
        }
    )
    columns = boxes.columns(
        points_of(policy, experiment.setup.learn_from), seeded_block(experiment.setup.seed, fold)
    )
    parts = (division.train, division.test)
    is_left_out = np.concatenate([groups.recoding.find_left_out(part) for part in parts])
    return _data_of(experiment, division, columns, is_left_out)


def _data_row_by_row(
    experiment: Experiment, policy: Policy, fold: int, division: Division, found: list[dict[str, float]]
) -> DataOf:
    """The same of a release whose boxes are chosen row by row, those of held-out rows too."""
    parts = GeneralizedParts.of(division.train, division.test, policy, threads=experiment.setup.threads)
    group = parts.group_of_row()
    found.append({**parts.measures(), **_measure_targets(group, division, experiment)})
    columns = parts.boxes.columns(
        points_of(policy, experiment.setup.learn_from), seeded_block(experiment.setup.seed, fold)
    )
    return _data_of(experiment, division, columns)


def _data_of(
    experiment: Experiment,
    division: Division,
    columns: Mapping[str, Mapping[str, Column]],
    is_left_out: NDArray[np.bool_] | None = None,
) -> DataOf:
    """Quasi-identifiers as these ``columns`` have them, others as they are."""

    def data_of(goal: Goal) -> GoalData:
        chosen: dict[str, Column] = {}
        for name in goal.features:
            chosen |= columns.get(name) or {name: experiment.passed[name].take(division.rows)}
        return GoalData(points.as_features(chosen), is_left_out=is_left_out)

    return data_of


def _private_data(
    experiment: Experiment, policy: Policy, fold: int, division: Division, found: list[dict[str, float]]
) -> DataOf:
    """The same of a release in noisy counts, from which models learn; the rows of the part are recoded alike."""
    random = seeded_block(experiment.setup.seed, fold)
    counts = private.NoisyRows.of(division.train, division.test, policy, seed=int(random.integers(2**63)))
    found.append(counts.measures())
    columns, n_rows = counts.boxes.columns(points.VALUES, random), len(division.rows)

    def data_of(goal: Goal) -> GoalData:
        cell, label = counts.rows(goal.target, experiment.cells[goal.target])
        all_points = points.as_features(
            {key: one for name in goal.features for key, one in columns[name].items()}
        )
        return GoalData(all_points.take(np.arange(n_rows)), (all_points.take(n_rows + cell), label))

    return data_of


def _score_models(
    experiment: Experiment,
    learned_from: str,
    data_in: Callable[[int, Division], DataOf],
    tick: Callable[[], None],
) -> list[ModelScore]:
    found: dict[tuple[Goal, str], list[FoldScore]] = {
        (goal, model): [] for goal in experiment.goals for model in goal.models
    }
    for fold, division in enumerate(experiment.divisions):
        data_of = data_in(fold, division)
        for goal in experiment.goals:
            data = data_of(goal)
            for model in goal.models:
                found[goal, model].append(_learn(goal, model, data, division, experiment))
                tick()
    return [
        score
        for (goal, model), folds in found.items()
        for score in _join_folds(goal, model, learned_from, folds)
    ]


@dataclass(frozen=True, slots=True)
class FoldScore:
    """The metrics of one model in one fold, on held-out rows and on those that it learned from."""

    test: Mapping[str, float]
    train: Mapping[str, float]


def _join_folds(goal: Goal, model: str, data: str, folds: Sequence[FoldScore]) -> Iterator[ModelScore]:
    """A score for each metric, the leading one first."""
    for metric in goal.metrics:
        test, train = [one.test[metric] for one in folds], [one.train[metric] for one in folds]
        yield make_score(goal.name, model, data, metric, test, train)


def _learn(goal: Goal, model: str, data: GoalData, division: Division, experiment: Experiment) -> FoldScore:
    """Fit to the training rows whose target is known, and test on the known ones of either part."""
    y, is_known = _find_target(goal, experiment, division)
    n_train = len(division.train_rows)
    is_left_out = np.zeros(len(y), dtype=np.bool_) if data.is_left_out is None else data.is_left_out
    trained = np.flatnonzero((is_known & ~is_left_out)[:n_train])
    tested = n_train + np.flatnonzero(is_known[n_train:])
    if len(trained) == 0:
        return _score_guess(goal, experiment, division)
    train, label = data.learned or (data.points.take(trained), y[trained])
    if goal.is_class and (label == label[0]).all():  # one class is no task for a model
        return _score_guess(goal, experiment, division, label[0])
    fitted = make_learner(model, learners=experiment.setup.learners, seed=experiment.setup.seed).fit(
        train, label
    )
    predict = fitted.classify if goal.is_class else fitted.predict
    predicted = predict(data.points.take(tested))
    if is_left_out[tested].any():
        predicted = _replace_where(is_left_out[tested], predicted, _guess(goal, y[trained]))
    test_score = _score_predictions(goal, experiment, y[tested], predicted)
    train_score = _score_predictions(goal, experiment, y[trained], predict(data.points.take(trained)))
    return FoldScore(test_score, train_score)


def _score_guess(goal: Goal, experiment: Experiment, division: Division, guess: Any = None) -> FoldScore:
    """What a guess achieves; without one, the most frequent class of the training part and the shares of its classes,
    or its mean.
    """
    y, is_known = _find_target(goal, experiment, division)
    n_train = len(division.train_rows)
    train, test = y[:n_train][is_known[:n_train]], y[n_train:][is_known[n_train:]]
    if guess is None:
        guess = _guess(goal, train)
    elif goal.is_class:
        guess = _guess(goal, np.array([guess]))
    test_score, train_score = (_score_predictions(goal, experiment, part, guess) for part in (test, train))
    return FoldScore(test_score, train_score)


def _guess(goal: Goal, train: NDArray[Any]) -> Any:
    """The most frequent class with the shares of all, or the mean."""
    if not goal.is_class:
        return train.mean()
    classes, count = np.unique(train, return_counts=True)
    return Guess(np.asarray(classes[count.argmax()]), classes, count / count.sum())


def _replace_where(is_left_out: NDArray[np.bool_], predicted: Any, guess: Any) -> Any:
    """What was predicted, but for rows that are left out: a guess."""
    if isinstance(predicted, Guess):
        return predicted.replace_where(is_left_out, guess)
    return np.where(is_left_out, guess, predicted)


def _find_target(
    goal: Goal, experiment: Experiment, division: Division
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The target of the rows of a part (class codes, or numbers), and whether it is known."""
    column = experiment.cells[goal.target]
    y = _encode_classes(column) if goal.is_class else column.cells
    return y[division.rows], ~column.is_missing[division.rows]


def _encode_classes(column: Column) -> NDArray[np.int64]:
    """Codes of classes; a number is a class too, if the workload says so."""
    if isinstance(column, CategoryColumn):
        return column.codes
    return np.unique(column.values, return_inverse=True)[1].astype(np.int64)


def _score_predictions(
    goal: Goal, experiment: Experiment, truth: NDArray[Any], guess: Any
) -> Mapping[str, float]:
    """The metrics of what was predicted: a guess of classes, or numbers."""
    if not goal.is_class:
        return score_numbers(truth, guess)
    return score_classes(truth, guess, n_classes=experiment.n_classes(goal.target))


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


def _measure_workload(
    groups: Partition, policy: Policy, division: Division, experiment: Experiment
) -> dict[str, float]:
    """How pure the groups are in each target, and how precisely rows are selected."""
    group = groups.of_row(division.train.n_rows)
    found, n_left = _measure_targets(group, division, experiment), int((group < 0).sum())
    rows = pa.table(groups.columns()) if experiment.selections else None
    for condition in experiment.selections:
        where = predicate.parse(condition, policy.schema)
        selected = select.imprecision(where, division.train, policy.schema, rows, groups.recoding, policy)
        found[f"imprecision of {condition}"] = float(selected.imprecision + n_left)
    if policy.leaves_rows_out:
        found["rows left out"] = float(n_left)
        found["test rows left out"] = float(groups.recoding.find_left_out(division.test).sum())
    return found


def _measure_targets(
    group: NDArray[np.int64], division: Division, experiment: Experiment
) -> dict[str, float]:
    """How pure groups of rows to learn from are in each target; ``group`` is that of each row, -1 if it is left out."""
    found = {}
    is_there = group >= 0
    share_left = 1.0 - float(is_there.mean())

    def measure(of: Callable[[Any, Any], float], cells: NDArray[Any]) -> float:
        """A mean over all rows, of which those left out count as in one group."""
        if is_there.all():
            return of(group, cells)
        return (1 - share_left) * of(group[is_there], cells[is_there]) + share_left * of(
            np.zeros_like(group), cells
        )

    for goal in experiment.goals:
        column = experiment.cells[goal.target].take(division.train_rows)
        if goal.is_class:
            entropy = measure(measures.conditional_entropy, _encode_classes(column))
            found[f"conditional entropy of {goal.target}"] = entropy
        else:
            error = measure(measures.mean_squared_error, column.cells.astype(np.float64))
            found[f"weighted mean squared error of {goal.target}"] = error
    return found


# ---- all of it together --------------------------------------------------------------------------------


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
    """Measure what releases of ``table`` by ``policy`` are worth for its workload, on held-out rows.

    Models learn from what would be published, from the raw rows and from nothing. An evaluation looks at raw rows, so it
    is for the owner's eyes; nothing of it is published. Without a target in the workload only measures that need no model
    are taken.

    >>> rows = pa.table({"age": list(range(40)), "ill": ["no", "yes"] * 10 + ["yes"] * 20})
    >>> policy = Policy.parse('''
    ... attributes: {age: {role: quasi-identifier, type: number}, ill: {role: other}}
    ... require: [k-anonymity: 5]
    ... workload: [classify: ill]
    ... ''')
    >>> found = evaluate(rows, policy, folds=2, models=["decision-tree"])
    >>> found.score("ill", "majority", "nothing").mean
    0.75

    ``folds``, ``test``: how many parts are held out in turn; or a table of further rows to test on, in their place.

    ``models``, ``learners``: names of models, all that fit the workload if not given; whose they are, scikit-learn's or
    weka's.

    ``learn_from``: how boxes become points: corners (the default), midpoint or sample.

    ``reading``: how the text of the tables is written. ``progress``: True shows how far the run is.
    """
    policy = Policy.of(policy)
    check_method(policy.method)
    setup = Setup(folds, test, models, learn_from, seed, learners, threads, reading)
    experiment = prepare(table, policy, setup)
    policy = experiment.policy
    with showing(progress) as told:
        tick = _make_ticker(told, 2 * experiment.n_fits)
        released, found = score_release(experiment, policy, tick)
        raw, nothing = score_raw(experiment, tick), score_nothing(experiment)
    return Evaluation(
        policy=policy.as_dict(),
        protocol={**experiment.protocol, "learn_from": points_of(policy, learn_from)},
        scores=(*released, *raw, *nothing),
        measures=found,
        tests=tuple(_test_scores(released, raw, nothing)),
    )


def _make_ticker(progress: Progress, total: int) -> Callable[[], None]:
    done = 0
    progress("evaluating", 0, total)

    def tick() -> None:
        nonlocal done
        done += 1
        progress("evaluating", done, total)

    return tick


def _test_scores(
    released: Sequence[ModelScore], raw: Sequence[ModelScore], nothing: Sequence[ModelScore]
) -> Iterator[PairedTest]:
    """Does the release differ from the raw data, and does it beat publishing nothing?"""
    baseline = {(score.target, score.metric): score for score in nothing}
    for score, on_raw in zip(released, raw, strict=True):
        tests = (
            paired_test(score, on_raw, names=(RELEASE, RAW), one_sided=False),
            paired_test(
                score, baseline[score.target, score.metric], names=(RELEASE, NOTHING), one_sided=True
            ),
        )
        yield from (test for test in tests if test is not None)
