"""Adult as [MCFY11, section 5] uses it: its declared domains, its parts, and how good a release of it is.

Bounds, steps, taxonomy trees and classes are declared here and never read from the rows. The trees are shaped like
those of [FWY07], which are those of the paper; [FWY07] prints some of them, the others are chosen here.
"""

from __future__ import annotations

import hashlib
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from numpy.typing import NDArray

from lab import record, studies, trials
from lab.studies import Study
from lab.trials import Points
from sfumato.encoding import declared
from sfumato.encoding.declared import HeldRows
from sfumato.encoding.domain import Domain
from sfumato.evaluation import points as columns
from sfumato.evaluation.features import Features
from sfumato.evaluation.models import make_learner
from sfumato.methods.specialization import diffgen
from sfumato.methods.specialization.diffgen import DrawnCuts
from sfumato.methods.specialization.diffgen.paper import SPECIALIZATION
from sfumato.methods.specialization.loop import CutGrid
from sfumato.policy.document import Policy
from sfumato.policy.options.diffgen import DiffGenOptions, exact_epsilon
from sfumato.policy.schema import Attribute, Kind, Role, Schema
from sfumato.policy.workload import Classify
from sfumato.privacy import mechanisms as laws
from sfumato.privacy.mechanisms import Mechanisms
from sfumato.randomness import seeded_block
from sfumato.recoding.axis import OrderedAxis
from sfumato.table.opening import open_table

Ints = NDArray[np.int64]
Codes = NDArray[np.uint32]

CLASS = "salary-class"
CLASSES = ("<=50K", ">50K")
N_TRAIN, N_TEST = 30_162, 15_060
"""Rows without a missing value in the two files of UCI."""

NUMBERS: Mapping[str, tuple[float, float, float]] = {
    "age": (15, 95, 1),
    "fnlwgt": (0, 1_500_000, 5_000),
    "education-num": (1, 20, 1),
    "capital-gain": (0, 100_000, 100),
    "capital-loss": (0, 5_000, 10),
    "hours-per-week": (1, 100, 1),
}
"""Declared low and high bound and step of each number."""

TREES: Mapping[str, Any] = {
    "workclass": {
        "Self-employed": ["Self-emp-not-inc", "Self-emp-inc"],
        "Government": {"Federal-gov": None, "Other government": ["Local-gov", "State-gov"]},
        "Private": None,
        "Unpaid": ["Without-pay", "Never-worked"],
    },
    "education": {
        "Without post-secondary": {
            "Elementary": ["Preschool", "1st-4th", "5th-6th", "7th-8th"],
            "Secondary": {
                "Junior secondary": ["9th", "10th"],
                "Senior secondary": ["11th", "12th", "HS-grad"],
            },
        },
        "Post-secondary": {
            "Some-college": None,
            "Associate": ["Assoc-voc", "Assoc-acdm"],
            "University": {
                "Prof-school": None,
                "Bachelors": None,
                "Graduate school": ["Masters", "Doctorate"],
            },
        },
    },
    "marital-status": {
        "Married": ["Married-AF-spouse", "Married-civ-spouse"],
        "Never-married": None,
        "Partner absent": {
            "Absent": ["Married-spouse-absent", "Separated"],
            "Ended": ["Divorced", "Widowed"],
        },
    },
    "occupation": {
        "White-collar": ["Exec-managerial", "Prof-specialty", "Sales", "Adm-clerical", "Tech-support"],
        "Blue-collar": [
            "Craft-repair",
            "Machine-op-inspct",
            "Handlers-cleaners",
            "Transport-moving",
            "Priv-house-serv",
        ],
        "Other work": ["Protective-serv", "Armed-Forces", "Farming-fishing", "Other-service"],
    },
    "relationship": {
        "Spouse": ["Husband", "Wife"],
        "Relative": ["Own-child", "Other-relative"],
        "Alone": ["Unmarried", "Not-in-family"],
    },
    "race": {"White": None, "Minority": ["Black", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other"]},
    "sex": ["Male", "Female"],
    "native-country": {
        "Americas": {
            "North": ["United-States", "Canada", "Outlying-US(Guam-USVI-etc)"],
            "Central": {
                "Mainland": ["Mexico", "Guatemala", "Honduras", "El-Salvador", "Nicaragua"],
                "Caribbean": [
                    "Puerto-Rico",
                    "Cuba",
                    "Dominican-Republic",
                    "Haiti",
                    "Jamaica",
                    "Trinadad&Tobago",
                ],
            },
            "South America": ["Columbia", "Ecuador", "Peru"],
        },
        "Europe": {
            "West": {
                "British Isles": ["England", "Scotland", "Ireland"],
                "Continent": ["France", "Germany", "Holand-Netherlands"],
            },
            "South Europe": ["Greece", "Italy", "Portugal"],
            "East": ["Hungary", "Poland", "Yugoslavia"],
        },
        "Asia": {
            "East Asia": ["China", "Hong", "Taiwan", "Japan"],
            "South-east": ["Cambodia", "Laos", "Thailand", "Vietnam", "Philippines"],
            "South and west": ["India", "Iran"],
        },
        "South": None,
    },
}
"""The country that Adult calls South is none in particular."""

COLUMNS = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship",
    "race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country",
)  # fmt: skip


# ---- the table -----------------------------------------------------------------------------------------


@cache
def table() -> pa.Table:
    """All complete rows: first those of UCI's training file, then those of its test file."""
    everyone = pyarrow.csv.read_csv(studies.data_folder() / "adult" / "adult.csv.gz")
    is_known = None
    for name in TREES:
        known = pc.not_equal(everyone[name], "?")
        is_known = known if is_known is None else pc.and_(is_known, known)
    complete = everyone.filter(is_known).combine_chunks()
    if complete.num_rows != N_TRAIN + N_TEST:
        raise SystemExit(f"Adult has {complete.num_rows:,} complete rows, not {N_TRAIN + N_TEST:,}.")
    return complete


def study() -> Study:
    """For methods that read domains from the table: numbers without steps."""
    quasi = [
        studies.category(name, TREES[name]) if name in TREES else studies.number(name) for name in COLUMNS
    ]
    return Study("Adult", table(), tuple(quasi), (studies.target(CLASS),))


def schema() -> Schema:
    """Everything declared, as a private release wants it."""
    quasi = [studies.category(name, TREES[name]) if name in TREES else _bounded(name) for name in COLUMNS]
    return Schema((*quasi, Attribute(CLASS, Role.OTHER, Kind.CATEGORY, values=CLASSES)))


def _bounded(name: str) -> Attribute:
    low, high, step = NUMBERS[name]
    return Attribute(name, Role.QUASI_IDENTIFIER, Kind.NUMBER, bounds=(low, high), step=step)


def options(
    epsilon: float, *, variant: str = "tuned", h: int | None = None, score: str | None = None
) -> DiffGenOptions:
    return DiffGenOptions(exact_epsilon(epsilon), variant=variant, specializations=h, score=score)


def policy(method: DiffGenOptions) -> Policy:
    return Policy(schema(), workload=(Classify((CLASS,)),), method=method)


def mechanisms(seed: int | None, *of: object) -> Mechanisms:
    """Draws of one trial, named by what it is ``of``; without a seed they are secret."""
    if seed is None:
        return laws.secret()
    digest = hashlib.sha256(repr((seed, *of)).encode()).digest()
    return laws.seeded(int.from_bytes(digest[:8]))


# ---- parts of it ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Split:
    """Training and test rows, by number.

    UCI's own parts; a random third of the rows held out; or the fold ``fold`` of ten, of the shuffle ``number``.
    """

    kind: str
    number: int = 0
    fold: int = 0
    n_rows: int | None = None
    """Only so many of the rows, for a quick run."""

    def rows(self, seed: int) -> tuple[Ints, Ints]:
        n_rows = N_TRAIN + N_TEST
        if self.kind == UCI:
            parts = np.arange(N_TRAIN), np.arange(N_TRAIN, n_rows)
        else:
            order = seeded_block(seed, self.number).permutation(n_rows)
            is_held_out = (
                np.arange(n_rows) < n_rows // 3
                if self.kind == THIRDS
                else np.arange(n_rows) % N_FOLDS == self.fold
            )
            parts = np.sort(order[~is_held_out]), np.sort(order[is_held_out])
        if self.n_rows is not None:
            parts = tuple(part[:: max(len(part) // self.n_rows, 1)] for part in parts)  # type: ignore[assignment]
        return parts


UCI, THIRDS, FOLD = "UCI's split", "random thirds", "fold"
N_FOLDS = 10


@cache
def encoded() -> tuple[tuple[Domain, ...], Codes]:
    """The declared domains, and all rows in their codes, the class last."""
    rows = declared.hold_rows(open_table(table()), policy(options(1)))
    return rows.domains, rows.rows


# ---- scripts -------------------------------------------------------------------------------------------


def more(parser: ArgumentParser) -> None:
    """Options of the scripts of this paper."""
    parser.set_defaults(processes=1)
    parser.add_argument(
        "--renew",
        nargs="+",
        metavar="METHOD",
        help="measure these methods again, keep the saved trials of others",
    )


def run(
    given: Namespace, name: str, tasks: Sequence[tuple[Callable[..., Any], str, Any]], *, title: str
) -> Iterator[list[dict[str, Any]]]:
    """``work(method, *rest)`` of each task, or of those to renew."""
    if given.renew:
        yield [entry for entry in record.saved(given, name) if entry["method"] not in given.renew]
    asked = [task for task in tasks if not given.renew or task[1] in given.renew]
    yield from trials.run(trials.call, asked, processes=given.processes, title=title)


# ---- how good a release is -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Weighted:
    """Points of known classes that each stand for several rows."""

    features: Features
    classes: Ints
    weights: Ints

    def expanded(self) -> tuple[Features, Ints]:
        """Every point as often as it counts: Weka's J48 mistreats few points of large weight."""
        rows = np.repeat(np.arange(len(self.weights)), self.weights)
        return self.features.take(rows), self.classes[rows]


def release(codes: Codes, asked: DiffGenOptions, draws: Mechanisms) -> DrawnCuts:
    """DiffGen on encoded rows."""
    domains, _ = encoded()
    return diffgen.draw(HeldRows(codes, domains, CLASSES), domains, len(CLASSES), asked, draws)


def n_specializations(drawn: DrawnCuts) -> int:
    return sum(one.what == SPECIALIZATION for one in drawn.ledger.draws)


def released(drawn: DrawnCuts) -> Weighted:
    """The cells of a release as points."""
    shape = tuple(len(ends) for ends in drawn.grid.ends)
    cells, classes = np.nonzero(drawn.counts)
    pieces = np.unravel_index(cells, shape)
    return Weighted(_points(drawn.grid, pieces), classes, drawn.counts[cells, classes])


def recoded(drawn: DrawnCuts, codes: Codes) -> Features:
    """Further rows, generalized as the release is."""
    pieces = [np.searchsorted(ends, codes[:, a], side="right") for a, ends in enumerate(drawn.grid.ends)]
    return _points(drawn.grid, pieces)


def _points(grid: CutGrid, pieces: Sequence[NDArray[Any]]) -> Features:
    """A column for each attribute that was cut: pieces of a number in their order, nodes of a tree as categories."""
    cut = [a for a, ends in enumerate(grid.ends) if len(ends) > 1]
    numbers = [a for a in cut if isinstance(grid.axes[a], OrderedAxis)]
    trees = [a for a in cut if a not in numbers]
    wide = np.empty((len(pieces[0]), len(numbers)))
    for i, a in enumerate(numbers):
        wide[:, i] = pieces[a]
    return Features(
        wide,
        tuple(pieces[a].astype(np.int64) for a in trees),
        tuple(len(grid.ends[a]) for a in trees),
        tuple(grid.axes[a].attribute.name for a in (*numbers, *trees)),
    )


@cache
def _as_they_are() -> Features:
    source = open_table(table())
    return columns.as_features(columns.read([source], study().schema(), COLUMNS))


def accuracy(learners: str, train: Weighted, test: Features, classes: NDArray[Any]) -> float:
    """Percent of the test rows whose class a tree learned from ``train`` predicts."""
    if len(set(train.classes.tolist())) < 2 or not train.features.names:
        totals = np.bincount(train.classes, train.weights, len(CLASSES))
        predicted = np.full(test.n_rows, totals.argmax())
    elif learners == "weka":
        predicted = make_learner(MODEL, learners=learners).fit(*train.expanded()).predict(test)
    else:
        predicted = _tree(train, test)
    return 100 * float(np.mean(predicted == classes))


MODEL = "decision-tree"
TREE, BOOSTED = "decision tree", "boosted trees"


def scores(model: str, train: Weighted, test: Features, classes: NDArray[Any]) -> dict[str, float]:
    """Accuracy and area under the ROC curve on the test rows, in percent, of a model of scikit-learn."""
    from sklearn.metrics import roc_auc_score  # noqa: PLC0415 - comes with the extra

    chances = _chances(model, train, test)
    predicted = chances > 0.5
    return {
        "accuracy": 100 * float(np.mean(predicted == classes)),
        "AUC": 100 * float(roc_auc_score(classes, chances)),
    }


def _chances(model: str, train: Weighted, test: Features) -> NDArray[np.float64]:
    """Of the second class, for each test row."""
    if len(set(train.classes.tolist())) < 2 or not train.features.names:
        return np.full(test.n_rows, np.average(train.classes, weights=train.weights))
    if model == TREE:
        fitted = _fitted_tree(train)
    else:
        from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: PLC0415 - comes with the extra

        features, classes = (
            train.expanded()
        )  # points as often as they count: a leaf's least size is in points
        fitted = HistGradientBoostingClassifier(early_stopping=False, random_state=0)
        fitted.fit(_matrix(features), classes)
    chances: NDArray[np.float64] = fitted.predict_proba(_matrix(test))[:, 1]
    return chances


def _tree(train: Weighted, test: Features) -> Ints:
    predicted: Ints = _fitted_tree(train).predict(_matrix(test))
    return predicted


def _fitted_tree(train: Weighted) -> Any:
    """scikit-learn's tree on weighted points, with a column of zeros and ones for each value of a category."""
    from sklearn.tree import DecisionTreeClassifier  # noqa: PLC0415 - comes with the extra

    model = DecisionTreeClassifier(min_weight_fraction_leaf=0.001, ccp_alpha=1e-4, random_state=0)
    return model.fit(_matrix(train.features), train.classes, sample_weight=train.weights)


def _matrix(features: Features) -> NDArray[np.float32]:
    values = [
        codes[:, None] == np.arange(n)
        for codes, n in zip(features.categories, features.n_values, strict=True)
    ]
    return np.column_stack([features.numbers, *values]).astype(np.float32)


def as_they_are(train: Ints, test: Ints) -> tuple[Weighted, Features, Codes]:
    """Training rows, by number, as they are; and test rows with their classes."""
    features = _as_they_are()
    return _unweighted(features.take(train), train), features.take(test), encoded()[1][test, -1]


def baselines(learners: str, train: Ints, test: Ints) -> tuple[float, float]:
    """BA and LA of these rows, by number: a tree from the rows as they are, and the most frequent class."""
    seen, features, classes = as_they_are(train, test)
    best = accuracy(learners, seen, features, classes)
    return best, 100 * float(np.mean(classes == np.bincount(seen.classes).argmax()))


def _unweighted(features: Features, rows: Ints) -> Weighted:
    return Weighted(features, encoded()[1][rows, -1].astype(np.int64), np.ones(len(rows), dtype=np.int64))


def k_anonymous(train: Ints, test: Ints, *, k: int) -> tuple[Weighted, Features]:
    """Rows, by number, as top-down specialization publishes them; and further rows, recoded alike."""
    rows, asked = table(), study().policy("TDS", k=k, targets=(CLASS,))
    found = trials.recode(rows.take(train), rows.take(test), asked)
    cells = {name: column for name in COLUMNS for column in found.columns[name].values()}
    seen = Points.of({name: _in_order(name, column) for name, column in cells.items()}, len(train))
    return _unweighted(seen.train, train), seen.test


def _in_order(name: str, column: columns.Column) -> columns.Column:
    """Pieces of a number as numbers, as those of DiffGen are."""
    return columns.NumberColumn(column.cells.astype(np.float64)) if name in NUMBERS else column
