"""Scores of labels are exact, however many rows there are: kernels are called on counts of rows that nobody has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from growing import Prepared, prepare
from hypothesis import given
from hypothesis import strategies as st

from sfumato.encoding.targets import Label
from sfumato.errors import PolicyError
from sfumato.kernels.information import MOST_ROWS, information_of, information_table
from sfumato.methods.mondrian.criteria import GREATEST_SCORE, compile_targets
from sfumato.methods.mondrian.kernels.counted import choose_in_stretch, score_parts, score_stretch
from sfumato.methods.mondrian.kernels.problem import BestSplit, Scratch, Targets
from sfumato.methods.mondrian.kernels.scores import LOWEST
from sfumato.methods.mondrian.memory import new_scratch
from sfumato.policy.options.mondrian import MondrianOptions
from sfumato.policy.requirements import KAnonymity
from sfumato.policy.schema import Schema
from sfumato.policy.workload import Classify
from sfumato.table.opening import open_table

TABLE = information_table(100)
SCHEMA = Schema.of(x={"role": "quasi-identifier", "kind": "number"}, a="other", b="other")


class CountedColumns:
    """What ``compile_targets`` asks of the columns of a table, without a table: rows of each class."""

    def __init__(self, **counts: list[int]) -> None:
        self.counts, self.schema = counts, Schema.of(**dict.fromkeys(counts, "other"))
        self.n_rows = sum(next(iter(counts.values())))

    def count(self, column: Label) -> np.ndarray:
        return np.array(self.counts[column.name])

    def place(self, column: Label) -> int:
        return list(self.counts).index(column.name)


def targets_of(weights: dict[str, float], columns: Any, *, standardize: bool = False) -> Targets:
    workload = [Classify(name, weight=weight) for name, weight in weights.items()]
    targets, cells = compile_targets(workload, MondrianOptions(standardize=standardize), columns)
    assert targets is not None
    assert cells is None
    return targets


def prepared(*labels: str) -> Prepared:
    """The problem of a small table with these labels, for its rules and working space."""
    table = pa.table({"x": range(6), "a": list("nynyny"), "b": list("rgbrgb")})
    workload = [Classify(name) for name in labels]
    return prepare(open_table(table), SCHEMA, [KAnonymity(1)], workload=workload, threads=1)


def scratch_of(problem: Prepared, lines: list[list[int]]) -> Scratch:
    """Working space with codes 0, 1, ... and their words, as ``kernels.frequency`` counts them."""
    scratch = new_scratch(problem.engine.rows, problem, widest=int(problem.engine.codes.max()) + 1)
    scratch.code[: len(lines)] = range(len(lines))
    scratch.total[:, : len(lines)] = np.cumsum(lines, axis=0).T
    return scratch


# ---- one label -------------------------------------------------------------------------------------

N, X = 10**9, 4 * 10**8
"""Rows, and those of the second class."""


def score_of(left: int, left_x: int) -> int:
    counts = [left_x, left - left_x, X - left_x, N - left - X + left_x]
    return int(information_of(np.array(counts)).sum() - information_of(np.array([left, N - left])).sum())


def score_in_floats(left: int, left_x: int) -> float:
    """The same as float64 has it."""
    counts = np.array([left_x, left - left_x, left, X - left_x, N - left - X + left_x, N - left])
    f = information_of(counts).astype(np.float64)
    return float(f[0] + f[1] - f[2] + (f[3] + f[4] - f[5]))


@pytest.mark.parametrize(
    ("better", "other"),
    [
        (
            (499_999_000, 200_002_600),
            (499_999_015, 200_002_606),
        ),  # a tie in floats, and the other one is balanced
        ((499_999_000, 200_002_600), (499_999_025, 200_002_610)),  # the other way round in floats
    ],
)
def test_of_a_thousand_million_rows_the_better_split_is_taken_where_floats_take_the_other(better, other):
    assert score_of(*better) > score_of(*other)
    assert score_in_floats(*better) <= score_in_floats(*other)
    problem = prepared("a")
    node = np.array([N, X])
    lines = np.diff([(0, 0), better, other, (N, X)], axis=0).tolist()
    scratch = scratch_of(problem, lines)
    best = choose_in_stretch(
        0, len(lines), N, X, node, None, problem.targets, problem.rules, TABLE, scratch, BestSplit(-1, -1, LOWEST, N)
    )  # fmt: skip
    assert best == (0, 0, score_of(*better), N - better[0])


def test_of_a_thousand_million_rows_the_better_children_are_told_apart():
    problem = prepared("a")
    node, scores = np.array([N, X]), np.empty(2, dtype=np.int64)
    for left in ((499_999_000, 200_002_600), (499_999_015, 200_002_606)):
        words = np.array([left, (N - left[0], X - left[1])])
        score, largest = score_parts(words, node, problem.targets, TABLE, scores)
        assert (score, largest) == (score_of(*left), N - left[0])


# ---- several labels --------------------------------------------------------------------------------


@st.composite
def nodes(draw: Any) -> tuple[list[int], list[int], list[int]]:
    """Three lines of words (rows, of two classes, of three): any rows, or as many as there can be."""
    n = draw(st.one_of(st.integers(1, 30), st.integers(1, MOST_ROWS // 3), st.just(MOST_ROWS // 3)))
    lines = []
    for _ in range(3):
        a = draw(st.integers(0, n))
        b, c = sorted(draw(st.lists(st.integers(0, n), min_size=2, max_size=2)))
        lines.append([n, a, n - a, b, c - b, n - c])
    return lines[0], lines[1], lines[2]


@given(nodes(), st.sampled_from([1.0, 0.3, 1 / 3, 1e-9, 1e9]), st.booleans())
def test_scores_of_several_labels_are_exact_up_to_the_most_rows(lines, weight, standardize):
    node = np.sum(lines, axis=0)
    columns = CountedColumns(a=node[1:3].tolist(), b=node[3:].tolist())
    targets = targets_of({"a": 1.0, "b": weight}, columns, standardize=standardize)
    of_a, of_b = targets.label["weight"].tolist()

    def exact(words: Any) -> int:
        f = [int(x) for x in information_of(np.asarray(words))]
        return of_a * (f[1] + f[2] - f[0]) + of_b * (f[3] + f[4] + f[5] - f[0])

    problem = prepared("a", "b")
    scratch = scratch_of(problem, list(lines))
    first, last = score_stretch(3, int(node[0]), 0, node, targets, 1, TABLE, scratch)
    assert (first, last) == (0, 2)
    left, right = np.array(lines[0]), node - lines[0]
    expected = [exact(left) + exact(right), exact(left + lines[1]) + exact(lines[2])]
    assert scratch.score[:2].tolist() == expected
    assert min(expected) >= -GREATEST_SCORE
    scores = np.empty(3, dtype=np.int64)
    assert score_parts(np.array(lines), node, targets, TABLE, scores)[0] == sum(map(exact, lines))
    assert score_parts(node[np.newaxis], node, targets, TABLE, scores)[0] == exact(node) >= -GREATEST_SCORE


@given(
    st.lists(st.tuples(st.integers(1, MOST_ROWS - 1), st.floats(1e-3, 1e3)), min_size=2, max_size=5),
    st.booleans(),
)
def test_weights_of_labels_are_exact_where_scores_leave_room_and_close_to_it_otherwise(drawn, standardize):
    columns = CountedColumns(**{f"t{i}": [yes, MOST_ROWS - yes] for i, (yes, _) in enumerate(drawn)})
    weights = {f"t{i}": weight for i, (_, weight) in enumerate(drawn)}
    targets = targets_of(weights, columns, standardize=standardize)
    whole = targets.label["weight"].tolist()
    unknown = [
        int(information_of(np.array([MOST_ROWS]))[0] - information_of(columns.count(Label(name))).sum())
        for name in weights
    ]
    assert sum(w * bits for w, bits in zip(whole, unknown, strict=True)) <= GREATEST_SCORE
    for w, weight, bits in zip(whole, weights.values(), unknown, strict=True):
        share = weight * MOST_ROWS / bits if standardize else weight / 2**20
        assert w * targets.gain_scale == pytest.approx(share, abs=2 * targets.gain_scale, rel=2 / max(whole))


def test_declared_weights_become_the_least_whole_numbers():
    columns = CountedColumns(a=[10**9, 10**9], b=[10**9, 10**9], c=[1, 2 * 10**9 - 1])
    targets = targets_of({"a": 1.0, "b": 0.25, "c": 0.1}, columns)
    assert targets.label["weight"].tolist() == [20, 5, 2]
    assert targets.gain_scale == 2.0**-20 / 20
    assert targets_of({"a": 0.3}, columns).label["weight"].tolist() == [1]


def test_labels_of_equal_entropy_stay_equal_when_standardized():
    columns = CountedColumns(a=[5, 15], b=[15, 5], c=[10, 10])
    of_a, of_b, of_c = (
        targets_of(dict.fromkeys("abc", 1.0), columns, standardize=True).label["weight"].tolist()
    )
    assert of_a == of_b > of_c > 1


def test_more_rows_than_scores_have_room_for_are_refused():
    half = MOST_ROWS // 2
    assert targets_of({"a": 1.0}, CountedColumns(a=[half, half])).label["weight"].tolist() == [1]
    with pytest.raises(PolicyError, match="up to 68,719,476,736 rows"):
        targets_of({"a": 1.0}, CountedColumns(a=[half, half + 1]))
    many = {f"t{i}": [half, half] for i in range(70)}
    with pytest.raises(PolicyError, match=r"70 labels .* fewer"):
        targets_of(dict.fromkeys(many, 1.0), CountedColumns(**many))
