"""Top-down specialization: its running example, what it refuses, and the loop under a chooser of another kind."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import naive_tds as naive
import numpy as np
import pyarrow as pa
import pytest
from tds_cases import chooser_in_memory, cuts_of

import sfumato as sf
from sfumato.encoding.domain import OrderedDomain
from sfumato.encoding.encoders import encode_axis
from sfumato.errors import PolicyError, RequirementUnreachable
from sfumato.methods.specialization import loop
from sfumato.methods.specialization.best_score import BestScore
from sfumato.methods.specialization.loop import Candidate, Piece
from sfumato.methods.specialization.tds import partition
from sfumato.policy.document import Policy
from sfumato.policy.schema import Schema
from sfumato.recoding.recoder import Partition
from sfumato.table.opening import open_table
from sfumato.verify.folder import verify_folder

TABLE_1 = (  # [FWY05, Table 1]: education, sex, weekly hours, how often class Y, how often N
    ("9th", "M", 30, 0, 3),
    ("10th", "M", 32, 0, 4),
    ("11th", "M", 35, 2, 3),
    ("12th", "F", 37, 3, 1),
    ("Bachelors", "F", 42, 4, 2),
    ("Bachelors", "F", 44, 4, 0),
    ("Masters", "M", 44, 4, 0),
    ("Masters", "F", 44, 3, 0),
    ("Doctorate", "F", 44, 1, 0),
)

POLICY = """
attributes:
  education:
    role: quasi-identifier
    hierarchy:
      tree:
        ANY_Edu:
          Secondary: {Junior Sec.: [9th, 10th], Senior Sec.: [11th, 12th]}
          University: {Bachelors: null, Grad School: [Masters, Doctorate]}
  sex: {role: quasi-identifier}
  hours: {role: quasi-identifier, type: number, bounds: [1, 98]}
  class: {role: other}
require: [k-anonymity: 4]
workload: [classify: class]
method: tds
"""


def table_1() -> pa.Table:
    rows = [(*row[:3], label) for row in TABLE_1 for label in "Y" * row[3] + "N" * row[4]]
    names = ("education", "sex", "hours", "class")
    return pa.table({name: list(cells) for name, cells in zip(names, zip(*rows, strict=True), strict=True)})


def policy(**changes: object) -> Policy:
    return Policy.from_dict({**Policy.parse(POLICY).as_dict(), **changes})


def grouped(table: pa.Table, given: Policy) -> Partition:
    return partition(open_table(table), given)


# ---- the running example ---------------------------------------------------------------------------


def watched(chooser: BestScore) -> list[dict[int, tuple[float, int]]]:
    """Where it will note what is known of each candidate when one is chosen: gain per row, loss."""
    seen: list[dict[int, tuple[float, int]]] = []
    choose = chooser.choose

    def watching() -> int | None:
        number = choose()
        seen.append(
            {
                int(i): (
                    chooser.facts[i]["gain"] / 2**20 / chooser.facts[i]["rows"],
                    chooser.anonymity - min(int(chooser.least[i]), chooser.anonymity),
                )
                for i in chooser.open
            }
        )
        return number

    replaced: Any = chooser
    replaced.choose = watching
    return seen


def test_the_first_scores_of_the_running_example_are_those_of_the_paper():
    """34 rows, 21 Y and 13 N; hours are divided into [1-37) and [37-99): InfoGain .3584."""
    chooser, _, domains = chooser_in_memory(table_1(), policy())
    seen = watched(chooser)
    loop.specialize(domains, chooser)
    education, sex, hours = (seen[0][i] for i in range(3))
    assert [round(gain, 4) for gain, _loss in (education, sex, hours)] == [0.2716, 0.1664, 0.3584]
    assert [loss for _gain, loss in (education, sex, hours)] == [34 - 16, 34 - 16, 34 - 12]
    scores = [gain / (loss + 1) for gain, loss in (education, sex, hours)]
    assert max(scores) == scores[2]
    assert len(seen[1]) == 4  # education, sex, and both halves of the hours, so hours it was


def test_the_running_example_is_specialized_until_nothing_valid_is_left():
    found = grouped(table_1(), policy())
    labels = pa.table(found.columns()).to_pylist()
    assert Counter(tuple(row.values()) for row in labels) == {
        ("Junior Sec.", "M", "[1, 32]"): 7,
        ("11th", "M", "[33, 35]"): 5,
        ("12th", "F", "[36, 37]"): 4,
        ("Bachelors", "F", "[38, 42]"): 6,
        ("Bachelors", "F", "[43, 98]"): 4,
        ("Grad School", "M", "[43, 98]"): 4,
        ("Grad School", "F", "[43, 98]"): 4,
    }
    assert found.recoding.n_splits() == {"education": 4, "sex": 1, "hours": 4}


def test_a_published_release_is_verified(tmp_path):
    release = sf.publish(table_1(), policy())
    release.write(tmp_path / "out")
    verify_folder(tmp_path / "out").raise_if_failed()
    assert release.certificate.figures["splits"] == {"education": 4, "sex": 1, "hours": 4}
    assert release.recoding.apply(table_1()).num_rows == 34


# ---- what is chosen --------------------------------------------------------------------------------


def of_numbers(labels: str, *, k: int, **cells: list[float | None]) -> Partition:
    """A partition of columns of numbers by classes."""
    attributes = {name: {"role": "quasi-identifier", "type": "number"} for name in cells}
    given = Policy.from_dict(
        {
            "attributes": {**attributes, "class": {"role": "other"}},
            "require": [{"k-anonymity": k}],
            "workload": [{"classify": "class"}],
            "method": "tds",
        }
    )
    return grouped(pa.table({**cells, "class": list(labels)}), given)


def thresholds(found: Partition) -> list[list[float]]:
    return [values.tolist() for values in cuts_of(found).thresholds]


def test_a_number_is_divided_where_the_classes_part():
    assert thresholds(of_numbers("xxxyy", k=2, a=[1, 2, 3, 4, 5])) == [[3]]


def test_a_piece_of_one_class_is_not_divided_any_further():
    found = of_numbers("xxxxyyyy", k=1, a=[1, 2, 3, 4, 5, 6, 7, 8])
    assert thresholds(found) == [[4]]


def test_a_best_threshold_that_is_not_valid_is_not_replaced_by_another():
    """The gain alone places a threshold [FWY05, section 4]; the groups then say whether it may be used."""
    assert thresholds(of_numbers("xyyyyyyy", k=2, a=[1, 2, 3, 4, 5, 6, 7, 8])) == [[]]


def test_ties_go_to_the_balanced_threshold_and_then_to_the_lower_attribute():
    assert thresholds(of_numbers("xyxy", k=2, a=[1, 1, 2, 2], b=[1, 1, 2, 2])) == [[1], [1]]
    assert thresholds(
        of_numbers("xyxyxyxy", k=4, a=[1, 1, 2, 2, 3, 3, 4, 4], b=[1, 1, 2, 2, 3, 3, 4, 4])
    ) == [[2], [2]]
    crossed = of_numbers("xyxyxyxy", k=4, a=[1, 1, 2, 2, 1, 1, 2, 2], b=[1, 1, 1, 1, 2, 2, 2, 2])
    assert thresholds(crossed) == [[1], []]


def test_ties_go_to_the_smaller_largest_part_before_the_lower_attribute():
    """Neither gains anything: a parts 2 rows from 6, b 4 from 4. After either the other is not valid."""
    a, b = [1, 1, 2, 2, 2, 2, 2, 2], [1, 2, 1, 1, 1, 2, 2, 2]
    assert of_numbers("xyxyyxyx", k=2, a=a, b=b).recoding.n_splits() == {"a": 0, "b": 1}


def test_the_gain_is_weighed_against_the_loss_of_anonymity():
    """b gains more and leaves a group of 2 rows of 20; a leaves 10. After either the other is not valid."""
    classes = "xxxxxxxxyz" + "yyyyyyyyxz"
    a, b = [1] * 10 + [2] * 10, [2 if label == "z" else 1 for label in classes]
    rows = [dict(zip(("a", "b", "class"), row, strict=True)) for row in zip(a, b, classes, strict=True)]
    roots = {"a": naive.Interval(None, None), "b": naive.Interval(None, None)}
    twin = naive.TopDown(rows, roots, 2, [(("class",), 1.0)])
    by_a, by_b = twin.candidates()
    assert twin.gain(1, by_b.piece, by_b.parts) > twin.gain(0, by_a.piece, by_a.parts)
    assert of_numbers(classes, k=2, a=a, b=b).recoding.n_splits() == {"a": 1, "b": 0}
    assert of_numbers(classes, k=1, a=a, b=b).recoding.n_splits() == {"a": 1, "b": 1}


def test_missing_numbers_are_below_all_others():
    found = of_numbers("xxyy", k=2, a=[None, None, 3, 4])
    assert thresholds(found) == [[-math.inf]]
    assert found.recoding.columns(found.leaf)["a"].to_pylist() == [None, "[3, 4]"]


def test_a_node_with_one_child_in_use_is_descended_at_once():
    """All codes begin with 537: three specializations that divide nothing come before any score."""
    given = Policy.parse(
        "{attributes: {zip: {role: quasi-identifier, hierarchy: {mask: 5}}, class: {role: other}}, "
        "require: [k-anonymity: 2], workload: [classify: class], method: tds}"
    )
    table = pa.table({"zip": ["53711", "53712", "53721", "53722"], "class": ["x", "x", "y", "y"]})
    found = grouped(table, given)
    assert found.recoding.columns(found.leaf)["zip"].to_pylist() == ["5371*", "5372*"]


def test_what_divides_nothing_does_not_hide_the_groups_that_were_divided_before_it():
    """Zones are taken first; then zone 2, of one child, at once; then it must be seen that hours leave one row."""
    given = Policy.parse(
        "{attributes: {zone: {role: quasi-identifier, hierarchy: {tree: {any: {1: [a, b], 2: [c]}}}}, "
        "hours: {role: quasi-identifier, type: number}, class: {role: other}}, "
        "require: [k-anonymity: 2], workload: [classify: class], method: tds}"
    )
    table = pa.table(
        {
            "zone": list("aaabbbb") + ["c"] * 4,
            "hours": [1, 2, 2, 2, 2, 2, 2, 1, 1, 2, 2],
            "class": list("xxxxxxx") + list("xyyy"),
        }
    )
    found = grouped(table, given)
    assert found.recoding.n_splits() == {"zone": 2, "hours": 0}


def test_several_targets_and_joint_ones_are_all_served():
    table = pa.table({"a": [1, 2, 3, 4], "u": list("xxyy"), "v": list("xyyy")})
    attributes = {
        "a": {"role": "quasi-identifier", "type": "number"},
        "u": {"role": "other"},
        "v": {"role": "other"},
    }

    def found(*tasks: dict) -> list[list[float]]:
        given = {"attributes": attributes, "require": [], "workload": list(tasks), "method": "tds"}
        return thresholds(grouped(table, Policy.from_dict(given)))

    assert found({"classify": "u"}) == [[2]]
    assert found({"classify": "v"}) == [[1]]
    assert found({"classify": "u"}, {"classify": "v"}) == [[1, 2]]
    assert found({"classify": {"targets": ["u", "v"], "joint": True}}) == [[1, 2]]


def test_groups_stand_in_the_order_of_the_grid_and_shuffle_within():
    found = of_numbers("xyxy", k=1, a=[2, 1, 2, 1], b=[1, 2, 2, 1])
    assert found.leaf.tolist() == sorted(found.leaf.tolist())
    assert sorted(found.shuffle(np.array([0.1, 0.9, 0.5, 0.3])).tolist()) == [0, 1, 2, 3]


def test_progress_counts_groups():
    told: list[tuple[str, int, int]] = []
    partition(open_table(table_1()), policy(), progress=lambda *step: told.append(step))
    assert [step for step in told if step[0] == "encoding"] == [("encoding", 0, 34), ("encoding", 34, 34)]
    assert told[-1] == ("specializing", 7, 34 // 4)


# ---- what is refused -------------------------------------------------------------------------------


def test_fewer_rows_than_k_cannot_be_published():
    with pytest.raises(RequirementUnreachable, match="35-anonymity cannot be met"):
        grouped(table_1(), policy(require=[{"k-anonymity": 35}]))


def test_without_a_requirement_groups_are_divided_down_to_single_rows():
    given = (
        "{attributes: {a: {role: quasi-identifier, type: number}, class: {role: other}}, "
        "require: [], workload: [classify: class], method: tds}"
    )
    table = pa.table({"a": [1, 2, 3, 4], "class": list("xyxy")})
    assert thresholds(grouped(table, Policy.parse(given))) == [[1, 2, 3]]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"workload": []}, "needs a task to classify"),
        ({"require": [{"entropy-diversity": {"l": 2, "of": "class"}}]}, "k-anonymity only"),
    ],
)
def test_what_it_cannot_do_is_refused_by_the_policy(changes, words):
    plain = Policy.parse(POLICY).as_dict()
    plain["attributes"]["class"] = {"role": "sensitive"}
    with pytest.raises(PolicyError, match=words):
        Policy.from_dict({**plain, **changes})


# ---- the loop --------------------------------------------------------------------------------------


class InTheMiddle:
    """A chooser that never looks at rows: numbers are halved, and the first candidates are taken ``n`` times."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.waiting: list[int] = []
        self.taken: list[Piece] = []

    def threshold(self, piece: Piece) -> int | None:
        return (piece.low + piece.high) // 2 - 1 if piece.high - piece.low > 1 else None

    def offer(self, number: int, candidate: Candidate) -> None:
        self.waiting.append(number)
        assert candidate.parts[0].low == candidate.piece.low
        assert candidate.ends[-1] == candidate.piece.high

    def choose(self) -> int | None:
        return self.waiting.pop(0) if len(self.taken) < self.n and self.waiting else None

    def take(self, number: int, candidate: Candidate) -> None:
        self.taken.append(candidate.piece)


def test_the_loop_serves_a_chooser_that_halves_numbers_a_given_number_of_times():
    source = open_table(pa.table({"a": list(range(8)), "b": list("uvuvuvuv")}))
    schema = Schema.of(a={"role": "quasi-identifier", "kind": "number"}, b="quasi-identifier")
    domains = [encode_axis(source, attribute)[0] for attribute in schema]
    assert isinstance(domains[0], OrderedDomain)
    chooser = InTheMiddle(3)
    numbers, words = loop.specialize(domains, chooser)
    assert [(piece.low, piece.high) for piece in numbers] == [(0, 2), (2, 4), (4, 8)]
    assert [(piece.low, piece.high) for piece in words] == [(0, 1), (1, 2)]
    grid = loop.CutGrid.of([numbers, words], domains)
    assert grid.thresholds[0].tolist() == [1, 3]
    cuts = grid.recoding(6, sf.Policy.parse(POLICY).output, frozenset())
    assert cuts.apply(pa.table({"a": [3], "b": ["v"]})).to_pylist() == [{"a": "[2, 3]", "b": "v"}]
    assert loop.specialize(domains, InTheMiddle(99))[0][-1] == Piece(0, 7, 8)


@pytest.mark.data
def test_adult_is_cut_into_groups_of_k(data_folder):
    columns = ["age", "workclass", "education", "sex", "race", "salary-class"]
    table = open_table(data_folder / "adult" / "adult.csv.gz")
    kept = pa.table({name: table.column(name) for name in columns})
    quasi = {name: {"role": "quasi-identifier"} for name in columns[:-1]}
    quasi["age"]["type"] = "number"
    given = Policy.from_dict(
        {
            "attributes": {**quasi, "salary-class": {"role": "other"}},
            "require": [{"k-anonymity": 10}],
            "workload": [{"classify": "salary-class"}],
            "method": "tds",
        }
    )
    found = grouped(kept, given)
    assert found.size.min() >= 10
    assert found.size.sum() == kept.num_rows
    assert cuts_of(found).n_groups > 10
