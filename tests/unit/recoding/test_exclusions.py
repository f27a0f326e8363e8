"""Labels of rests that say what was told apart from them, from the tree to the cell, and back."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import TableError
from sfumato.recoding import large_tree, tree
from sfumato.recoding.tree import Recoding

PLACES = {"tree": {"*": {"America": ["US", "Peru", "Cuba"], "Europe": ["France", "Italy"], "Togo": None}}}
LEAVES = ("US", "Peru", "Cuba", "France", "Italy", "Togo")
COUNTRY: dict[str, Any] = {"role": "quasi-identifier"}


def policy(country: dict[str, Any] = COUNTRY, k: int = 3, **others: Any) -> dict[str, Any]:
    return {
        "attributes": {"country": country, **others},
        "require": [{"k-anonymity": k}],
        "method": {"mondrian": {"refine": "none"}},
        "output": {"rest-labels": "excluding"},
    }


def publish(cells: list[str | None], given: dict[str, Any] | None = None) -> sf.Release:
    return sf.publish(pa.table({"country": pa.array(cells, pa.string())}), given or policy())


def labels(table: Any) -> dict[Any, int]:
    cells = table.column("country").to_pylist()
    return {label: cells.count(label) for label in dict.fromkeys(cells)}


def test_the_small_example_of_the_design():
    """US x 4, Peru x 2, Cuba x 1, k = 3."""
    cells = ["US"] * 4 + ["Peru"] * 2 + ["Cuba"]
    assert labels(publish(cells).table) == {"US": 4, "* (not US)": 3}
    covering = {**policy(), "output": {"rest-labels": "covering"}}
    assert labels(publish(cells, covering).table) == {"US": 4, "*": 3}
    assert publish(cells, covering).table.equals(publish(cells, {**policy(), "output": {}}).table)


def test_only_what_lies_below_the_label_is_named_in_the_order_of_the_hierarchy():
    """US was told apart before America was: both were, and both lie below ``*``."""
    cells = ["US"] * 9 + ["Italy"] * 8 + ["Peru", "Cuba"] * 2 + ["France", "Togo", "Togo"]
    found = labels(publish(cells, policy({"role": "quasi-identifier", "hierarchy": PLACES})).table)
    assert found == {"US": 9, "Italy": 8, "America (not US)": 4, "* (not America, US, Italy)": 3}


def test_missing_is_told_apart_by_its_own_name():
    cells = [None] * 5 + ["a", "b", "c", "d"]
    assert labels(publish(cells).table) == {None: 5, "* (not missing)": 4}


# ---- further rows ----------------------------------------------------------------------------------


def test_a_row_with_an_unseen_value_gets_what_lies_below_the_grown_label():
    """The leaf Europe excludes nothing; with Togo or a value that nobody knew it grows, and US comes back."""
    cells = ["US"] * 9 + ["France", "Italy"] * 2
    recoding = publish(cells, policy({"role": "quasi-identifier", "hierarchy": PLACES})).recoding
    rows = pa.table({"country": ["US", "Italy", "Togo", "Cuba"]})
    assert recoding.apply(rows).column("country").to_pylist() == ["US", "Europe", "* (not US)", "* (not US)"]


def test_values_that_no_hierarchy_has_go_with_the_rest():
    recoding = publish(["US"] * 4 + ["Peru"] * 2 + ["Cuba"]).recoding
    rows = pa.table({"country": ["US", "Chile", None]})
    assert recoding.apply(rows).column("country").to_pylist() == ["US", "* (not US)", "* (not US)"]


@pytest.fixture
def folder(tmp_path):
    rows = np.random.default_rng(3)
    n = 400
    table = pa.table(
        {
            "country": rows.choice([*LEAVES], n, p=[0.5, 0.2, 0.1, 0.1, 0.07, 0.03]),
            "job": rows.choice(list("abcdefgh"), n, p=[0.4, 0.3, 0.1, 0.1, 0.04, 0.03, 0.02, 0.01]),
            "age": rows.integers(20, 60, n),
        }
    )
    age = {"role": "quasi-identifier", "type": "number", "bounds": [20, 60], "step": 1}
    given = policy(
        {"role": "quasi-identifier", "hierarchy": PLACES}, k=5, job={"role": "quasi-identifier"}, age=age
    )
    release = sf.publish(table, given)
    release.write(tmp_path / "release")
    return tmp_path / "release", release, table


def test_a_recoding_comes_back_from_its_folder(folder):
    path, release, table = folder
    read = sf.Release.read(path).recoding
    assert sum("(not " in label for label in read.pieces(1)[0].to_pylist()) > 1
    for a in range(3):
        assert read.pieces(a)[0].to_pylist() == release.recoding.pieces(a)[0].to_pylist()
    assert read.apply(table).equals(release.recoding.apply(table))
    counts = table.group_by(["country", "job", "age"]).aggregate([]).num_rows
    assert counts > read.n_groups  # there is something to recode
    published = {tuple(row.values()) for row in release.table.to_pylist()}
    assert {tuple(row.values()) for row in read.apply(table).to_pylist()} == published


def test_a_tree_on_disk_gives_the_same_labels(folder, monkeypatch):
    path, release, table = folder
    monkeypatch.setattr(tree, "LARGE", 1)
    release.recoding.write(path)
    large = tree.read(path, sf.Release.read(path).policy.schema, memory=1)
    assert isinstance(large, large_tree.LargeRecoding)
    assert large.apply(table).equals(release.recoding.apply(table))
    for a in range(3):
        assert large.pieces(a)[0].to_pylist() == release.recoding.pieces(a)[0].to_pylist()


def test_the_word_stands_at_each_hierarchy_and_nowhere_else(folder):
    path, _, _ = folder
    document = json.loads((path / "recoding.json").read_text(encoding="utf-8"))
    assert ["excluding" in axis for axis in document["attributes"]] == [True, True, False]


# ---- labels that would be mistaken -----------------------------------------------------------------


@pytest.mark.parametrize("hierarchy", [{}, {"hierarchy": {"mask": 20}}])
def test_a_value_of_the_table_that_looks_like_a_rest_is_refused_without_its_text(hierarchy):
    cells = ["US"] * 4 + ["Other (not listed)"] * 2 + ["Cuba"]
    with pytest.raises(TableError, match=r"^Column 'country' has 1 label of the form X \(not Y\)") as found:
        publish(cells, policy({"role": "quasi-identifier", **hierarchy}))
    assert "listed" not in str(found.value)
    covering = {**policy({"role": "quasi-identifier", **hierarchy}), "output": {}}
    assert labels(publish(cells, covering).table)["US"] == 4


def test_a_recoding_without_the_word_covers(folder):
    _, release, table = folder
    axes = tuple(
        replace(axis, excluded=None) if hasattr(axis, "nodes") else axis for axis in release.recoding.axes
    )
    covering = Recoding(axes, release.recoding.tree).apply(table)
    assert not any(
        "(not " in label for name in ("country", "job") for label in covering.column(name).to_pylist()
    )


# ---- engines and outputs ---------------------------------------------------------------------------


def many(n: int = 3000) -> pa.Table:
    rows = np.random.default_rng(8)
    return pa.table(
        {
            "country": rows.choice([*"abcdefghijk"], n, p=np.arange(11, 0, -1) / 66),
            "job": rows.choice([*LEAVES], n, p=[0.4, 0.2, 0.1, 0.1, 0.1, 0.1]),
            "age": rows.integers(20, 60, n),
            "row": np.arange(n),
        }
    )


def of_many(**options: Any) -> dict[str, Any]:
    age = {"role": "quasi-identifier", "type": "number", "bounds": [20, 60], "step": 1}
    job = {"role": "quasi-identifier", "hierarchy": PLACES}
    given = policy(k=20, job=job, age=age, row={"role": "other", "type": "number", "passes": "unique"})
    return {**given, "method": {"mondrian": {"refine": "none", **options}}}


def by_row(release: sf.Release) -> list[Any]:
    return sorted(release.table.to_pylist(), key=lambda line: line["row"])


def test_every_engine_writes_the_same_labels(tmp_path):
    """On disk the tree is made in pieces, and labels are written before the tree is there."""
    expected = by_row(sf.publish(many(), of_many()))
    assert sum("(not " in line["country"] for line in expected) > 100
    pieces = of_many(**{"rows-in-memory": 300})
    assert by_row(sf.publish(many(), pieces, engine="memory")) == expected
    on_disk = sf.publish(many(), pieces, engine="disk", memory=64_000_000)
    assert by_row(on_disk) == expected
    on_disk.write(tmp_path / "release")
    assert not sf.verify_folder(tmp_path / "release").failures


@pytest.mark.parametrize("values", ["bounds", "both", "summary"])
def test_labels_of_hierarchies_stand_in_every_form_of_output(values, tmp_path):
    given = of_many()
    expected = by_row(sf.publish(many(), given))
    release = sf.publish(many(), {**given, "output": {**given["output"], "values": values}})
    names = ("country", "job", "row")
    assert [[line[name] for name in names] for line in by_row(release)] == [
        [line[name] for name in names] for line in expected
    ]
    release.write(tmp_path / "release")
    assert not sf.verify_folder(tmp_path / "release").failures


def test_the_estimator_writes_them_too():
    table = many(500).select(["country", "age"])
    model = sf.Mondrian(requirement=sf.KAnonymity(5), rest_labels="excluding")
    cells = model.fit(table).transform(table).column("country").to_pylist()
    assert any("(not " in cell for cell in cells)
    plain = sf.Mondrian(requirement=sf.KAnonymity(5)).fit_transform(table).column("country").to_pylist()
    assert [cell.split(" (not ")[0] for cell in cells] == plain
