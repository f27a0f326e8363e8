"""Verify reads labels that exclude with their exclusions, and finds those that say something else."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tampering import rehash

import sfumato as sf
from sfumato.policy.schema import Attribute
from sfumato.verify.cells import level_of
from sfumato.verify.exclusions import RestLabel

BOXES = "the boxes of the recoding are those of the rows"
AGES = {"tree": {"*": {"young": ["1", "5", "9"], "old": ["70", "80", "90"]}}}


def policy(**output: str) -> dict[str, Any]:
    return {
        "attributes": {
            "country": {"role": "quasi-identifier"},
            "age": {"role": "quasi-identifier", "type": "number", "hierarchy": AGES},
        },
        "require": [{"k-anonymity": 3}],
        "method": {"mondrian": {"refine": "none"}},
        "output": {"rest-labels": "excluding", **output},
    }


def table() -> pa.Table:
    """Where everybody is 90, the rests of two countries are told apart."""
    countries = ["US"] * 5 + ["Peru"] * 4 + ["Cuba", "Chile", "Togo"]
    return pa.table({"country": countries * 2, "age": [90] * 12 + [90] * 4 + [1, 5, 9, 70] * 2})


@pytest.fixture
def folder(tmp_path):
    sf.publish(table(), policy()).write(tmp_path / "release")
    return tmp_path / "release"


def failed(folder: Any) -> list[str]:
    return [check.claim for check in sf.verify_folder(folder).failures]


def cells(folder: Any, name: str = "country") -> list[str]:
    return list(dict.fromkeys(pq.read_table(folder / "release.parquet")[name].to_pylist()))


def rewrite(folder: Any, name: str, change: Any) -> None:
    """Change the labels of one column, and certify the file as it stands."""
    path = folder / "release.parquet"
    rows = pq.read_table(path)
    changed = pa.array([change(cell) for cell in rows[name].to_pylist()], pa.string()).dictionary_encode()
    pq.write_table(rows.set_column(rows.column_names.index(name), name, changed), path)
    rehash(folder)


def test_a_release_as_it_was_written_passes(folder):
    assert "* (not Peru, US)" in cells(folder)
    assert failed(folder) == []


@pytest.mark.parametrize(
    "label",
    [
        "*",
        "* (not US)",
        "* (not US, Peru)",
        "* (not Peru, US, Cuba)",
        "* (not Peru, Us)",
        "* (not )",
        "* (not Togo, US)",
    ],
)
def test_a_label_that_says_more_or_less_than_was_told_apart_fails(folder, label):
    rewrite(folder, "country", lambda cell: cell)
    assert failed(folder) == []
    rewrite(folder, "country", lambda cell: label if cell == "* (not Peru, US)" else cell)
    assert BOXES in failed(folder)


def edit(folder: Any, change: Any) -> None:
    path = folder / "recoding.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    change(document)
    path.write_text(json.dumps(document), encoding="utf-8")
    rehash(folder)


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document["attributes"][0].pop("excluding"),
        lambda document: document["attributes"][0].update(excluding=False),
        lambda document: document["attributes"][0].update(excluding=1),
        lambda document: [axis.pop("excluding") for axis in document["attributes"]],
    ],
)
def test_a_recoding_has_the_word_of_its_policy(folder, change):
    edit(folder, change)
    assert failed(folder) != []


def test_a_recoding_that_tells_another_node_apart_fails(folder):
    def swap(document):
        branch, axis = document["nodes"]["branch"], document["attributes"][0]
        us, cuba = axis["labels"].index("US"), axis["labels"].index("Peru")
        document["nodes"]["branch"] = [{us: cuba, cuba: us}.get(node, node) for node in branch]

    edit(folder, swap)
    assert BOXES in failed(folder)


def test_covering_releases_have_no_word(tmp_path):
    sf.publish(table(), {**policy(), "output": {}}).write(tmp_path / "release")
    assert failed(tmp_path / "release") == []
    edit(tmp_path / "release", lambda document: document["attributes"][0].update(excluding=True))
    assert failed(tmp_path / "release") != []


def test_a_label_that_excludes_tells_a_part():
    country = Attribute("country", "quasi-identifier")
    label = "* (not US)"
    assert [level_of(country, excludes=excludes)(label) for excludes in (True, False)] == [1, 0]
    claimed = sf.publish(table(), policy()).certificate.claims.cells
    covered = sf.publish(table(), {**policy(), "output": {}}).certificate.claims.cells
    assert claimed.exact == covered.exact
    assert claimed.narrowed > covered.narrowed


def test_a_table_is_checked_by_its_labels_as_they_stand(folder):
    rows = pq.read_table(folder / "release.parquet")
    assert sf.verify_table(rows, policy()).ok
    names = ["* (not US)", "* (not Peru)"]
    apart = rows.set_column(0, "country", pa.array([names[i % 2] for i in range(len(rows))]))
    assert not sf.verify_table(apart, policy() | {"require": [{"k-anonymity": 12}]}).ok


@pytest.mark.parametrize("values", ["summary"])
def test_statistics_lie_among_the_values_that_are_left(tmp_path, values):
    """Of a rest without 90, 90 cannot be the greatest value."""
    sf.publish(table(), policy(values=values)).write(tmp_path / "release")
    folder = tmp_path / "release"
    assert failed(folder) == []
    label = next(cell for cell in cells(folder, "age") if "(not " in cell)
    assert label == "* (not 90)"
    path = folder / "release.parquet"
    rows = pq.read_table(path)
    most = np.where(np.array(rows["age"].to_pylist()) == label, 90.0, rows["age_max"].to_numpy())
    at = rows.column_names.index("age_max")
    pq.write_table(rows.set_column(at, "age_max", pa.array(most)), path)
    rehash(folder)
    assert "the statistics of 'age' lie in the ranges beside them" in failed(folder)


def test_a_large_recoding_is_compared_in_portions(folder):
    assert not sf.verify_folder(folder, memory=1).failures


@pytest.mark.parametrize(
    ("label", "known", "excluded"),
    [
        ("* (not a, b)", {"a", "b"}, {"a", "b"}),
        ("* (not a, b)", {"a", "b", "a, b"}, set()),
        ("* (not a, b, c)", {"a", "b, c", "b", "c"}, {"a"}),
        ("* (not [1, 5], 9)", {"[1, 5]", "9"}, {"[1, 5]", "9"}),
        ("* (not x)", {"a"}, set()),
    ],
)
def test_names_with_commas_are_read_in_every_way(label, known, excluded):
    """What some reading does not exclude is not surely excluded."""
    found = RestLabel.read(label)
    assert found is not None
    assert found.find_excluded(known.__contains__) == excluded


def test_other_labels_exclude_nothing():
    assert [RestLabel.read(label) for label in ("US", "Not stated (other)", "* (not)", "(not US)")] == [
        None
    ] * 4
