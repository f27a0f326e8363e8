"""What a release has lost, from its published labels alone, whoever published them.

A cell's label is read as the set of values that it stands for: a range of whole numbers (``[17, 27]``, ``(16, 27]``,
``17-27``, ``17``) or leaves of a hierarchy (a node's label, or several joined by commas); ``*`` is everything. What
cannot be read stops the program. Rows that are not published count as ``*`` everywhere.

- Coverage: each label stands for its row's own value, and every set of equal labels has k rows; else AssertionError.
- NCP: (leaves - 1) / (all leaves - 1), numbers by width over bounds, averaged over rows and columns; beside it, as
  ``sfumato evaluate`` counts, leaves / all leaves where a label has more than one.
- COUNT: random queries on three columns that 1 to 50% of the rows answer; a label stands for each of its values in the
  same share. The median of the relative errors.
- AUC: histogram gradient boosting, 60 rounds, on midpoint and width of each label, the share of each of the 8 most
  frequent values in it, and the smoothed share of its class.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from loss_tables import CLASS, ROW, Category, Column, Number, Study
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from sfumato.randomness import seeded

N_QUERIES, N_QUERIED = 1000, 3
LEAST_SHARE, GREATEST_SHARE = 0.01, 0.5
N_ROUNDS, N_FREQUENT, SMOOTHING = 60, 8, 100.0
N_RESAMPLES = 300

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
RANGE = re.compile(r"^([\[(])(-?[\d.]+), (-?[\d.]+)([\])])$")
DASHED = re.compile(r"^(-?[\d.]+)-(-?[\d.]+)$")


# ---- labels ------------------------------------------------------------------------------------------------


def read_range(label: str, column: Number) -> tuple[int, int]:
    """The first and last whole number that a label stands for.

    >>> read_range("(16, 27]", Number(0, 90)), read_range("17-27", Number(0, 90)), read_range("*", Number(0, 90))
    ((17, 27), (17, 27), (0, 90))
    """
    if label == "*":
        return column.low, column.high
    if found := RANGE.match(label):
        opening, low, high, closing = found.groups()
        return whole(low) + (opening == "("), whole(high) - (closing == ")")
    if found := DASHED.match(label):
        return whole(found[1]), whole(found[2])
    return whole(label), whole(label)


def whole(text: str) -> int:
    number = float(text)
    if not number.is_integer():
        raise ValueError("A label has an end that is no whole number.")
    return int(number)


def read_leaves(label: str, column: Category, *, is_strict: bool) -> NDArray[np.bool_]:
    """Which leaves a label stands for; a value that no leaf stands for, as test rows may have, is any."""
    if label in column.covered:
        return column.covered[label]
    several = label.split(",")
    if all(one in column.covered for one in several):
        return np.logical_or.reduce([column.covered[one] for one in several])
    if is_strict:
        raise ValueError("A label is no node of the hierarchy.")
    return np.ones(len(column.paths), dtype=bool)


@dataclass(frozen=True)
class Cells:
    """A column of labels: which of the ``distinct`` ones each row has, and what each of them stands for.

    ``inside`` has a line per distinct label and a place per value: its share of the label, adding up to 1.
    """

    column: Column
    distinct: tuple[str, ...]
    codes: Ints
    inside: Floats

    @cached_property
    def size(self) -> Floats:
        """The values that each distinct label stands for."""
        return (self.inside > 0).sum(axis=1).astype(np.float64)

    @cached_property
    def middle(self) -> Floats:
        return self.inside @ np.arange(self.inside.shape[1], dtype=np.float64)

    @property
    def n_values(self) -> int:
        return self.inside.shape[1]


def read_cells(labels: Sequence[Any], column: Column, *, is_strict: bool = True) -> Cells:
    codes, distinct = pd.factorize(np.asarray(labels, dtype=object).astype(str))
    names = tuple(map(str, distinct))
    if isinstance(column, Category):
        inside = np.array(
            [read_leaves(label, column, is_strict=is_strict) for label in names], dtype=np.float64
        )
    else:
        inside = np.zeros((len(names), column.high - column.low + 1))
        for line, label in zip(inside, names, strict=True):
            low, high = read_range(label, column)
            line[max(low - column.low, 0) : high - column.low + 1] = 1.0
    return Cells(column, names, codes.astype(np.int64), inside / inside.sum(axis=1, keepdims=True))


def positions(values: Sequence[Any], column: Column) -> Ints:
    """Where each row's own value stands in its column."""
    if isinstance(column, Number):
        return np.asarray(values, dtype=np.int64) - column.low
    place = {leaf: i for i, leaf in enumerate(column.leaves)}
    return np.array([place[value] for value in values], dtype=np.int64)


# ---- a release -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Published:
    """A release as anybody can read it: labels of the rows that were published, in the order of the released rows."""

    study: Study
    cells: Mapping[str, Cells]
    is_published: NDArray[np.bool_]

    @classmethod
    def read(cls, study: Study, frame: pd.DataFrame) -> Published:
        """Put the rows in order; those that are not published get ``*`` everywhere."""
        table = frame.set_index(ROW)[list(study.columns)].astype(object)
        assert table.index.is_unique, "a row is published twice"
        is_published = np.isin(np.arange(len(study.released)), table.index.to_numpy())
        table = table.reindex(np.arange(len(study.released)), fill_value="*")
        cells = {name: read_cells(table[name].to_list(), column) for name, column in study.columns.items()}
        return cls(study, cells, is_published)

    @cached_property
    def groups(self) -> tuple[Ints, Ints]:
        """Sets of equal labels: the code of each column's label, and the rows of the set; all rows are in one."""
        codes = np.stack([cells.codes for cells in self.cells.values()], axis=1)
        distinct, n_rows = np.unique(codes, axis=0, return_counts=True)
        return distinct, n_rows

    @cached_property
    def sizes(self) -> Ints:
        """The rows of each set of equal labels among those that are published."""
        codes = np.stack([cells.codes for cells in self.cells.values()], axis=1)[self.is_published]
        return np.unique(codes, axis=0, return_counts=True)[1]

    @property
    def n_groups(self) -> int:
        return len(self.sizes)

    def check(self, k: int) -> None:
        """Assert that each label covers its row's value, and that each set of equal labels has k rows."""
        for name, cells in self.cells.items():
            own = positions(self.study.released[name].tolist(), cells.column)
            assert (cells.inside[cells.codes, own] > 0).all(), f"a label of {name} does not cover its row"
        assert self.sizes.min() >= k, "a set of equal labels is too small"

    def ncp(self) -> dict[str, float]:
        """The loss of each column: (leaves - 1) / (all leaves - 1)."""
        return {
            name: float(((cells.size - 1) / max(cells.n_values - 1, 1))[cells.codes].mean())
            for name, cells in self.cells.items()
        }

    def ncp_as_evaluated(self) -> float:
        """The loss as ``sfumato evaluate`` counts it: leaves / all leaves of a label that stands for several."""
        return float(np.mean([penalize(cells)[cells.codes].mean() for cells in self.cells.values()]))

    def count_errors(self) -> Floats:
        """The relative errors of COUNT queries."""
        return np.array([self.error(query) for query in draw_queries(self.study)])

    def error(self, query: Query) -> float:
        codes, n_rows = self.groups
        names = list(self.cells)
        share = np.ones(len(codes))
        for name, asked in query.asked.items():
            cells = self.cells[name]
            share *= (cells.inside @ asked)[codes[:, names.index(name)]]
        return abs(float(share @ n_rows) - query.truth) / query.truth


def penalize(cells: Cells) -> Floats:
    if isinstance(cells.column, Number):
        return (cells.size - 1) / max(cells.n_values - 1, 1)
    return np.where(cells.size > 1, cells.size / cells.n_values, 0.0)


# ---- COUNT queries -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Query:
    """How many rows have one of these values in each of some columns; ``truth`` is how many have."""

    asked: Mapping[str, Floats]
    truth: int


def draw_queries(study: Study) -> Iterator[Query]:
    """Random queries, the same for every release of a table."""
    random = seeded(20_261)
    own = {name: positions(study.released[name].tolist(), column) for name, column in study.columns.items()}
    n_drawn = 0
    while n_drawn < N_QUERIES:
        names = random.choice(list(study.columns), N_QUERIED, replace=False)
        asked = {str(name): draw_values(study.columns[name], random) for name in names}
        truth = int(np.logical_and.reduce([asked[name][own[name]] > 0 for name in asked]).sum())
        if LEAST_SHARE <= truth / len(study.released) <= GREATEST_SHARE:
            n_drawn += 1
            yield Query(asked, truth)


def draw_values(column: Column, random: np.random.Generator) -> Floats:
    """A range of numbers between two that are drawn, or each value of a category with probability one half."""
    if isinstance(column, Number):
        ends = np.sort(random.integers(0, column.high - column.low + 1, 2))
        values = np.arange(column.high - column.low + 1)
        return ((ends[0] <= values) & (values <= ends[1])).astype(np.float64)
    return (random.random(len(column.paths)) < 0.5).astype(np.float64)


# ---- AUC -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Prediction:
    """What a model that has learned from a release says of the test rows."""

    truth: NDArray[np.bool_]
    score: Floats

    @property
    def auc(self) -> float:
        return float(roc_auc_score(self.truth, self.score))


def predict(published: Published, test: pd.DataFrame) -> Prediction:
    """Learn from the published rows and predict the test rows, which are recoded by the release's own rule."""
    study, kept = published.study, published.is_published
    target = (study.released[CLASS] == "yes").to_numpy()
    train_features, test_features = describe_rows(published, test, [target])
    model = HistGradientBoostingClassifier(max_iter=N_ROUNDS, random_state=0)
    model.fit(train_features[kept], target[kept])
    score = model.predict_proba(test_features)[:, 1]
    return Prediction((study.test[CLASS] == "yes").to_numpy(), score)


def describe_rows(
    published: Published, test: pd.DataFrame, targets: Sequence[NDArray[Any]]
) -> tuple[Floats, Floats]:
    """What a model sees of the released and of the test rows; ``targets`` are those of the released rows."""
    study, kept = published.study, published.is_published
    tested = {
        name: read_cells(test[name].tolist(), column, is_strict=False)
        for name, column in study.columns.items()
    }
    train_features, test_features = [], []
    for name, cells in published.cells.items():
        own = positions(study.released[name].tolist(), cells.column)
        frequent = np.argsort(-np.bincount(own, minlength=cells.n_values), kind="stable")[:N_FREQUENT]
        rates = [rate_labels(cells, target, kept) for target in targets]
        train_features.append(describe(cells, frequent, rates))
        test_features.append(describe(tested[name], frequent, rates))
    return np.hstack(train_features), np.hstack(test_features)


def rate_labels(cells: Cells, target: NDArray[Any], kept: NDArray[np.bool_]) -> dict[str, float]:
    """The mean of a target among the rows of each label, drawn to that of all rows; of a class it is its share."""
    mean = float(target[kept].mean())
    n_rows = np.bincount(cells.codes[kept], minlength=len(cells.distinct))
    n_positive = np.bincount(cells.codes[kept], weights=target[kept], minlength=len(cells.distinct))
    rates = (n_positive + SMOOTHING * mean) / (n_rows + SMOOTHING)
    return {"": mean, **dict(zip(cells.distinct, rates.tolist(), strict=True))}


def describe(cells: Cells, frequent: Ints, rates: Sequence[Mapping[str, float]]) -> Floats:
    of_label = [cells.middle, cells.size - 1]
    of_label += [np.array([rate.get(label, rate[""]) for label in cells.distinct]) for rate in rates]
    if isinstance(cells.column, Category):
        of_label += list(cells.inside[:, frequent].T)
    return np.array(of_label, dtype=np.float64).T[cells.codes]


def compare_auc(one: Prediction, other: Prediction) -> tuple[float, float]:
    """The difference of two AUCs on the same test rows, and half its 95% interval by a paired bootstrap."""
    random = seeded(7)
    differences = []
    for _ in range(N_RESAMPLES):
        drawn = random.integers(0, len(one.truth), len(one.truth))
        truth = one.truth[drawn]
        differences.append(area(truth, one.score[drawn]) - area(truth, other.score[drawn]))
    low, high = np.quantile(differences, [0.025, 0.975])
    return one.auc - other.auc, float(high - low) / 2


def area(truth: NDArray[np.bool_], score: Floats) -> float:
    return float(roc_auc_score(truth, score))
