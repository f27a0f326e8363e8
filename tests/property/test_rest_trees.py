"""The tree with rest branches is that of its naive twin, and keeps its promise, on random small tables.

Published rows are read as anybody would read them: labels are taken apart here, hierarchies are nested dicts, and what
a requirement demands is said by the naive twin of Mondrian. Nothing of the program takes part in the judgement.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import naive_rest as naive
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st
from naive_people import people_satisfy
from rest_cases import EXCLUDING, FLAT, Case, Category, Number, cases
from tampering import rehash

import sfumato as sf

# ---- the properties --------------------------------------------------------------------------------


@settings(max_examples=500)
@given(cases())
def test_groups_and_labels_are_those_of_the_naive_twin(case: Case) -> None:
    expected = case.expect(case.twin())
    event(f"{min(len(expected), 6)} groups")
    assert case.read(sf.publish(case.table(), case.policy()).table) == expected


@settings(max_examples=200)
@given(cases(), st.sampled_from([0, 0.1, 2]), st.booleans())
def test_with_a_class_they_are_those_of_the_twin_s_mixed_score(
    case: Case,
    loss_weight: float,
    chance: bool,  # noqa: FBT001 - hypothesis draws it
) -> None:
    task = naive.Task([row["class"] for row in case.rows])
    expected = case.expect(case.twin(tasks=[task], loss_weight=float(loss_weight), chance=chance))
    options = {"loss-weight": loss_weight, "chance": chance}
    policy = case.policy_without_criterion(**options) | {"workload": [{"classify": "class"}]}
    assert case.read(sf.publish(case.table(), policy).table) == expected


@dataclass(frozen=True)
class PeopleCase(Case):
    """A case whose groups count people: ``people`` says whose each row is."""

    people: tuple[int, ...] = ()

    def policy_without_criterion(self, **mondrian: Any) -> dict[str, Any]:
        policy = super().policy_without_criterion(**mondrian)
        return {
            **policy,
            "attributes": {**policy["attributes"], "who": {"role": "identifier"}},
            "unit": "who",
        }

    def table(self) -> pa.Table:
        return super().table().append_column("who", pa.array(self.people))

    def holds(self, members: Any) -> bool:
        return all(people_satisfy(members, self.rows, self.people, item) for item in self.requirements)


@st.composite
def people_cases(draw: Any) -> PeopleCase:
    n_rows = draw(st.integers(2, 30))
    case = draw(cases(max_rows=n_rows))
    whose = st.integers(0, draw(st.integers(0, len(case.rows))))
    people = draw(st.lists(whose, min_size=len(case.rows), max_size=len(case.rows)))
    given = {name: getattr(case, name) for name in ("rows", "quasi", "weights", "requirements", "numbers")}
    found = PeopleCase(**given, rest=case.rest, people=tuple(people))
    assume(found.holds(range(len(case.rows))))
    return found


@settings(max_examples=100)
@given(people_cases())
def test_groups_that_count_people_are_those_of_the_naive_twin(case: PeopleCase) -> None:
    expected = case.expect(case.twin())
    event(f"{min(len(expected), 6)} groups")
    assert case.read(sf.publish(case.table(), case.policy()).table) == expected


@settings(max_examples=60)
@given(people_cases())
def test_with_a_class_and_people_they_are_those_of_the_twin_s_mixed_score(case: PeopleCase) -> None:
    task = naive.Task([row["class"] for row in case.rows])
    expected = case.expect(case.twin(tasks=[task], loss_weight=0.1))
    policy = case.policy_without_criterion(**{"loss-weight": 0.1}) | {"workload": [{"classify": "class"}]}
    assert case.read(sf.publish(case.table(), policy).table) == expected


@settings(max_examples=500)
@given(cases(), st.sampled_from(["none", "list", "auto"]))
def test_every_group_of_equal_labels_holds_and_every_label_covers_its_row(case: Case, refine: str) -> None:
    published = sf.publish(case.table(), case.policy(refine=refine)).table.to_pylist()
    assert sorted(line["row"] for line in published) == list(range(len(case.rows)))
    groups = defaultdict(list)
    for line in published:
        groups[tuple(line[name] for name in case.quasi)].append(line["row"])
        own = case.rows[line["row"]]
        assert all(quasi.covers(line[name], own[name]) for name, quasi in case.quasi.items())
    assert all(case.holds(rows) for rows in groups.values())


@settings(max_examples=200)
@given(cases())
def test_excluding_labels_are_those_of_the_twin_and_every_value_is_where_they_say(case: Case) -> None:
    published = sf.publish(case.table(), case.excluding()).table
    assert case.read(published) == case.expect(case.twin(), excludes=True)
    n_excluding = 0
    for line in published.to_pylist():
        own = case.rows[line["row"]]
        for name, quasi in case.quasi.items():
            found = isinstance(quasi, Category) and EXCLUDING.fullmatch(line[name] or "")
            if not found:
                assert quasi.covers(line[name], own[name])
                continue
            n_excluding += 1
            assert quasi.covers(found[1], own[name])
            path = ("missing",) if own[name] is None else quasi.path(own[name])
            assert not {*found[2].split(", ")} & {*path}
    event(f"{min(n_excluding, 3)} cells that exclude")


@settings(max_examples=40)
@given(cases(), st.sampled_from(["none", "list"]), st.data())
def test_a_release_that_excludes_passes_and_not_with_other_labels(
    case: Case, refine: str, data: st.DataObject
) -> None:
    release = sf.publish(case.table(), case.excluding(refine))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "release"
        release.write(path)
        assert not sf.verify_folder(path).failures
        recoding = json.loads((path / "recoding.json").read_text(encoding="utf-8"))
        trees = [axis for axis in recoding["attributes"] if axis["kind"] == "tree"]
        assert all(axis["excluding"] for axis in trees)
        cells = [
            (name, row)
            for name in case.quasi
            for row, cell in enumerate(release.table[name].to_pylist())
            if "(not " in str(cell)
        ]
        if cells:  # one rest, and it no longer says what it excludes
            name, row = data.draw(st.sampled_from(cells))
            label = release.table[name][row].as_py()
            told = EXCLUDING.fullmatch(label)
            assert told is not None
            table = pq.read_table(path / "release.parquet")
            changed = [told[1] if cell == label else cell for cell in table[name].to_pylist()]
            place = table.column_names.index(name)
            table = table.set_column(place, name, pa.array(changed, pa.string()).dictionary_encode())
            pq.write_table(table, path / "release.parquet")
            rehash(path)
            failures = [check.claim for check in sf.verify_folder(path).failures]
            assert "the boxes of the recoding are those of the rows" in failures


@settings(max_examples=100)
@given(cases(), st.sampled_from(["none", "list"]), st.data())
def test_rows_that_come_later_get_a_label_that_says_the_truth(
    case: Case, refine: str, data: st.DataObject
) -> None:
    """Values that the table lacks, and missing ones, may come; the label covers them, and excludes none of them."""
    recoding = sf.publish(case.table(), case.excluding(refine)).recoding
    cells = {
        name: data.draw(st.lists(st.sampled_from([*quasi.cells, None]), min_size=3, max_size=3))
        for name, quasi in case.quasi.items()
        if isinstance(quasi, Category)
    }
    numbers = {name: [None] * 3 for name, quasi in case.quasi.items() if isinstance(quasi, Number)}
    types = {name: pa.float64() if name in numbers else pa.string() for name in case.quasi}
    table = pa.table({name: pa.array((cells | numbers)[name], types[name]) for name in case.quasi})
    for name, given_cells in cells.items():
        for label, cell in zip(recoding.apply(table).column(name).to_pylist(), given_cells, strict=True):
            quasi, found = case.quasi[name], EXCLUDING.fullmatch(label or "")
            assert isinstance(quasi, Category)
            assert quasi.covers(found[1] if found else label, cell)
            path = ("missing",) if cell is None else quasi.path(cell)
            assert not found or not {*found[2].split(", ")} & {*path}


# ---- decisions, by hand ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cells", "k", "rest", "label_of_later"),
    [
        (["000"] * 4 + ["100"] * 3 + ["900"], 4, "* (not 0**)", "00*"),  # all children: 0** is told apart
        (["000"] * 4 + ["010", "100"], 2, "* (not 000)", "* (not 000)"),  # one node: 000 is, and 01* is not
    ],
)
def test_a_rest_excludes_the_branch_that_later_rows_take(
    cells: list[str], k: int, rest: str, label_of_later: str
) -> None:
    """No row of the table has 001. It goes below 0** where all children were told apart, but not where 000 alone was."""
    policy = {
        "attributes": {"code": {"role": "quasi-identifier", "hierarchy": {"mask": 3}}},
        "require": [{"k-anonymity": k}],
        "method": {"mondrian": {"refine": "none"}},
        "output": {"rest-labels": "excluding"},
    }
    release = sf.publish(pa.table({"code": cells}), policy)
    assert {*release.table["code"].to_pylist()} == {"000", rest}
    assert release.recoding.apply(pa.table({"code": ["001"]}))["code"].to_pylist() == [label_of_later]


def test_without_a_loss_weight_a_class_that_never_changes_divides_nothing() -> None:
    rows = pa.table({"age": [0, 1, 2, 3], "class": ["yes"] * 4})
    age = {"role": "quasi-identifier", "type": "number", "bounds": [0, 9], "step": 1}
    for loss_weight, n_groups in ((0, 1), (0.1, 4)):
        policy = {
            "attributes": {"age": age, "class": {"role": "other"}},
            "require": [{"k-anonymity": 1}],
            "workload": [{"classify": "class"}],
            "method": {"mondrian": {"loss-weight": loss_weight}},
        }
        assert len({*sf.publish(rows, policy).table["age"].to_pylist()}) == n_groups


# ---- the twin itself, by hand ----------------------------------------------------------------------


def test_the_twin_tells_a_frequent_value_apart_from_the_rest() -> None:
    """k = 3, country: US 4 rows, Peru 2, Cuba 1 become US x 4 and * x 3."""
    cells = ["US"] * 4 + ["Peru"] * 2 + ["Cuba"]
    column = FLAT.column(cells, 1, 32)
    root = naive.Rest([column], lambda rows: len(rows) >= 3).grow()
    assert root.split is not None
    assert [(len(leaf.rows), naive.Rest([column], len).label(leaf, 0)) for leaf in root.leaves()] == [
        (4, "US"),
        (3, "*"),
    ]
    assert naive.Rest([column], lambda rows: len(rows) >= 3, rest=False).grow().split is None


def test_the_twin_cuts_slices_to_the_box() -> None:
    """Bounds [0, 95], slices of 3: people of 10 and 11 split at 10 are [9, 10] and 11."""
    column = naive.Number([10, 10, 11, 11], 0, 95)
    tree = naive.Rest([column], lambda rows: len(rows) >= 2)
    assert [tree.labels(leaf) for leaf in tree.grow().leaves()] == [[(9, 10, False)], [(11, 11, False)]]


def test_the_twin_scores_what_is_saved_per_bit() -> None:
    """Two halves of a flat column with two values: every row saves its whole price, for one bit each."""
    column = FLAT.column(["a", "a", "b", "b"], 1, 32)
    tree = naive.Rest([column], lambda rows: len(rows) >= 2)
    root = tree.grow()
    assert root.split is not None
    assert root.split.gain == 4 * 2**30
    assert tree.score(root, root.split) == pytest.approx(4 * 2**30 / (4 * 2**20) ** 0.75)
    assert math.isclose(tree.ncp(root), 0.0)


def test_the_twin_tells_missing_numbers_apart() -> None:
    column = naive.Number([None, None, 5, 5], 0, 95)
    tree = naive.Rest([column], lambda rows: len(rows) >= 2)
    assert [tree.labels(leaf) for leaf in tree.grow().leaves()] == [[(None, None, True)], [(3, 5, False)]]
