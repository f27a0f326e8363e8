"""Patterns of columns: a release by patterns is the release by names, whatever method and engine make it."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sfumato as sf
from sfumato.comparison.frontier import compare
from sfumato.table.write import write_table

N = 60
TABLE = pa.table(
    {
        "lab_1": [str(i % 7) for i in range(N)],
        "age": [str(20 + i % 11) for i in range(N)],
        "lab_note": ["secret"] * N,
        "lab_2": [str(i % 5) for i in range(N)],
        "ill": ["yes" if i % 3 else "no" for i in range(N)],
        "who": [f"p{i}" for i in range(N)],
        "memo": ["x"] * N,
    }
)
NUMBER = {"role": "quasi-identifier", "type": "number", "bounds": [0, 40], "step": 1}
BY_PATTERN = {
    "*": {"role": "drop"},
    "age": NUMBER,
    "lab_note": {"role": "drop"},
    "lab_*": NUMBER,
    "i*l": {"role": "other", "values": ["yes", "no"]},
}
BY_NAME = {
    **{name: {"role": "drop"} for name in ("who", "memo")},
    "age": NUMBER,
    "lab_note": {"role": "drop"},
    "lab_1": NUMBER,
    "lab_2": NUMBER,
    "ill": {"role": "other", "values": ["yes", "no"]},
}
METHODS: dict[str, dict[str, Any]] = {
    "mondrian": {"require": [{"k-anonymity": 5}], "workload": [{"classify": "ill"}, {"select": "lab_1 > 3"}]},
    "tds": {"require": [{"k-anonymity": 5}], "workload": [{"classify": "ill"}], "method": "tds"},
    "diffgen": {"workload": [{"classify": "ill"}], "method": {"diffgen": {"epsilon": 1}}},
    "risk-utility": {"method": "risk-utility"},
}


@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize("method", METHODS)
def test_a_release_by_patterns_is_the_release_by_names(method, engine, tmp_path):
    if (method, engine) == ("risk-utility", "disk"):
        pytest.skip("risk-utility works in memory alone")
    write_table(TABLE, tmp_path / "t.csv")
    rest = METHODS[method]
    by_pattern, by_name = (
        sf.publish(tmp_path / "t.csv", {"attributes": columns, **rest}, seed=1, engine=engine)
        for columns in (BY_PATTERN, BY_NAME)
    )
    assert by_pattern.policy == by_name.policy
    assert by_pattern.policy.to_yaml() == by_name.policy.to_yaml()
    assert by_pattern.table.equals(by_name.table)
    by_pattern.write(tmp_path / "out")
    assert sf.verify_folder(tmp_path / "out").ok
    held = json.loads((tmp_path / "out" / "certificate.json").read_text())["policy"]["attributes"]
    assert sorted(held) == sorted(TABLE.column_names)
    assert "*" not in "".join(held)


def test_apply_leaves_out_what_a_pattern_left_out(tmp_path, sfumato):
    write_table(TABLE, tmp_path / "t.csv")
    policy = sf.Policy.from_dict({"attributes": BY_PATTERN, **METHODS["mondrian"]})
    sf.publish(tmp_path / "t.csv", policy, seed=1).write(tmp_path / "out")
    done = sfumato("apply", tmp_path / "out", tmp_path / "t.csv", "--out", tmp_path / "further.csv")
    assert done.code == 0, done
    assert (tmp_path / "further.csv").read_text().splitlines()[0] == "lab_1,age,lab_2,ill"


def test_evaluate_and_compare_know_patterns():
    plain = {"attributes": BY_PATTERN, "require": [{"k-anonymity": 5}], "workload": [{"classify": "ill"}]}
    found = sf.evaluate(TABLE, plain, folds=2, models=["decision-tree"])
    assert found.policy == sf.Policy.from_dict({**plain, "attributes": BY_NAME}).as_dict()
    sf.publish(TABLE, plain, evaluation=found)
    assert len(compare(TABLE, plain, {"k": ["5", "10"]}, folds=2, models=["decision-tree"]).settings) == 2


@pytest.mark.parametrize("output", ["labels", "bounds", "both", "summary"])
@pytest.mark.parametrize("star", ["other", "drop"])
def test_a_table_is_judged_by_patterns_as_by_names(output, star):
    plain = {"require": [{"k-anonymity": 5}], "output": {"values": output}}
    columns = {"age": NUMBER, "lab_*": NUMBER, "*": {"role": star}}
    table = TABLE.select(["age", "lab_1", "lab_2", *(["ill"] if star == "other" else [])])
    policy = sf.Policy.from_dict({"attributes": columns, **plain})
    rows = sf.publish(table, policy, seed=1).table
    assert sf.verify_table(rows, policy).ok
    assert sf.verify_table(rows, {"attributes": columns, **plain}).ok
    first = pc.equal(pa.array(range(rows.num_rows)), 0)
    low = "lab_2_low" if "lab_2_low" in rows.column_names else "lab_2"
    told = pc.if_else(first, "39", rows.column(low).cast(pa.string()))
    alone = rows.set_column(rows.column_names.index(low), low, told)
    assert not sf.verify_table(alone, policy).ok
