"""One trial: anonymize training rows, recode test rows, learn, and judge [LDR08, sections 4.1 and 4.2]."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import get_context
from typing import Any, Self, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from lab import studies
from lab.studies import Study
from sfumato import methods
from sfumato.encoding.discretize import mdl_cuts
from sfumato.evaluation import points
from sfumato.evaluation.features import Features
from sfumato.evaluation.measures import conditional_entropy
from sfumato.evaluation.models import CLASSIFIERS, make_learner
from sfumato.policy.document import Policy
from sfumato.policy.options.tds import TdsOptions
from sfumato.randomness import seeded, seeded_block
from sfumato.recoding.recoder import Partition
from sfumato.table.opening import open_table

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
T = TypeVar("T")

LEARNERS = ("scikit-learn", "weka")
FEW_AREAS = "Census, few areas"
"""The name of the Census table whose areas are put together."""


# ---- training and test points --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """What models learn from and are judged on."""

    train: Features
    test: Features

    @classmethod
    def of(cls, columns: Mapping[str, points.Column], n_train: int) -> Self:
        """Columns of training rows and, after them, of test rows."""
        rows = points.as_features(columns)
        at = np.arange(rows.n_rows)
        return cls(rows.take(at[:n_train]), rows.take(at[n_train:]))


@dataclass(frozen=True, slots=True, eq=False)
class Recoded:
    """Training rows anonymized, and test rows recoded alike: the columns that stand for each attribute."""

    partition: Partition
    columns: Mapping[str, Mapping[str, points.Column]]
    n_train: int

    def points(self, names: Sequence[str]) -> Points:
        return Points.of({key: c for name in names for key, c in self.columns[name].items()}, self.n_train)


def recode(train: pa.Table, test: pa.Table, policy: Policy) -> Recoded:
    """Fit the recoding to the training rows alone, and apply it to both."""
    fitted, others = open_table(train), open_table(test)
    partition = methods.partition(fitted, policy, threads=1)
    boxes = points.find_boxes(partition.recoding, fitted, [others])
    learn_from = points.VALUES if isinstance(policy.method, TdsOptions) else "corners"
    return Recoded(partition, boxes.columns(learn_from, seeded(0)), train.num_rows)


def original(study: Study, train: pa.Table, test: pa.Table, names: Sequence[str]) -> Points:
    """The rows as they are: numbers as numbers, categories as categories."""
    sources = [open_table(train), open_table(test)]
    return Points.of(points.read(sources, study.schema(), names), train.num_rows)


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    """A target of the training and of the test rows: codes of classes, or numbers."""

    train: NDArray[Any]
    test: NDArray[Any]


def truth(study: Study, train: pa.Table, test: pa.Table, name: str) -> Truth:
    sources = [open_table(train), open_table(test)]
    column = points.read(sources, study.schema(), [name])[name]
    return Truth(column.cells[: train.num_rows], column.cells[train.num_rows :])


@dataclass(frozen=True, slots=True)
class Judged:
    """Accuracy of a classifier, mean absolute error of a regressor."""

    test: float
    train: float | None = None


def judge(
    model: str, learners: str, seen: Points, target: Truth, *, seed: int, on_training: bool = False
) -> Judged:
    fitted = make_learner(model, learners=learners, seed=seed).fit(seen.train, target.train)

    def score(features: Features, expected: NDArray[Any]) -> float:
        predicted = fitted.predict(features)
        if model in CLASSIFIERS:
            return float(np.mean(predicted == expected))
        return float(np.mean(np.abs(predicted - expected)))

    return Judged(score(seen.test, target.test), score(seen.train, target.train) if on_training else None)


# ---- folds and rankings --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Fold:
    """One fold of a real table; ``n_rows`` of the Census table are drawn."""

    study: str
    number: int
    n_folds: int
    n_rows: int
    seed: int

    def open(self) -> Part:
        return _part(self)


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A table with a fold of it held out."""

    study: Study
    train: pa.Table
    test: pa.Table

    def truth(self, name: str) -> Truth:
        return truth(self.study, self.train, self.test, name)

    def original(self, names: Sequence[str] | None = None) -> Points:
        return original(self.study, self.train, self.test, names or self.study.features)

    def recode(self, policy: Policy) -> Recoded:
        return recode(self.train, self.test, policy)


@lru_cache(maxsize=10)
def _part(fold: Fold) -> Part:
    """Every fold holds its share of each class."""
    if fold.study == "Contraceptives":
        study = studies.contraceptives()
    else:
        study = studies.census(fold.n_rows, fold.seed, few_areas=fold.study == FEW_AREAS)
    classes = study.table[studies.CLASS].to_numpy(zero_copy_only=False)
    order = np.lexsort((seeded_block(fold.seed, 1).random(len(classes)), classes))
    of_row = np.empty(len(classes), dtype=np.int64)
    of_row[order] = np.arange(len(classes)) % fold.n_folds
    is_held_out = of_row == fold.number
    return Part(study, study.table.filter(~is_held_out), study.table.filter(is_held_out))


def folds(study: str, *, quick: bool, seed: int) -> list[Fold]:
    """Ten folds, as the paper has them."""
    n_folds, n_rows = (3, 3_000) if quick else (10, studies.CENSUS_ROWS)
    return [Fold(study, number, n_folds, n_rows, seed) for number in range(n_folds)]


def ranked(study: Study, table: pa.Table, target: str) -> tuple[str, ...]:
    """The features, most predictive first: by information gain, numbers cut by MDL, as Weka ranks them."""
    source = open_table(table)
    columns = points.read([source], study.schema(), (*study.features, target))
    label = columns.pop(target).codes

    def rest(name: str) -> float:
        column = columns[name]
        if isinstance(column, points.CategoryColumn):
            return conditional_entropy(column.codes, label)
        cuts = mdl_cuts(column.values, label)
        return conditional_entropy(np.searchsorted(cuts, column.values, side="left"), label)

    return tuple(sorted(study.features, key=rest))


# ---- many trials ---------------------------------------------------------------------------------------


def run(work: Callable[..., T], tasks: Sequence[tuple[Any, ...]], *, processes: int, title: str) -> list[T]:
    """``work(*task)`` for each task, in their order, over several processes, with a progress bar."""
    if processes == 1:
        return [work(*task) for task in _shown(tasks, len(tasks), title)]
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")  # for the processes: one core each
    out: dict[int, T] = {}
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        number = {pool.submit(work, *task): i for i, task in enumerate(tasks)}
        try:
            for done in _shown(as_completed(number), len(tasks), title):
                out[number[done]] = done.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return [out[i] for i in range(len(tasks))]


def _shown(items: Iterable[T], total: int, title: str) -> Iterable[T]:
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True)) as bar:
        yield from bar.track(items, total=total, description=title)


def call(work: Callable[..., T], *arguments: Any) -> T:
    """For tasks of several kinds: the first of a task is the function."""
    return work(*arguments)
