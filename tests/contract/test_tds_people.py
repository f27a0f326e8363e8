"""Top-down specialization whose groups count people, and that leaves rows out, as users see it."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tampering import edit_certificate

import sfumato as sf

QUASI = ("age", "zip", "job")
RARE = "zz"
POLICY: dict[str, Any] = {
    "attributes": {
        "who": {"role": "identifier"},
        "age": {"role": "quasi-identifier", "type": "number"},
        "zip": {"role": "quasi-identifier", "hierarchy": {"mask": 3}},
        "job": {"role": "quasi-identifier"},
        "class": {"role": "other"},
    },
    "workload": [{"classify": "class"}],
    "method": "tds",
}


def stays(number: int) -> pa.Table:
    """Stays of people who have several, some of them of a rare job."""
    chance = random.Random(number)
    n, n_people = chance.choice([60, 300]), chance.choice([40, 150])
    job = [chance.choice("aaabbbcd") for _ in range(n - 3)] + [RARE] * 3
    age = [chance.randrange(20, chance.choice([40, 90])) for _ in range(n)]
    return pa.table(
        {
            "who": [f"p{chance.randrange(n_people)}" for _ in range(n)],
            "age": age,
            "zip": [f"{chance.choice([53, 53, 54, 60])}{chance.randrange(10)}" for _ in range(n)],
            "job": job,
            "class": ["x" if chance.random() < years / 90 else "y" for years in age],
        }
    )


def policy(k: int, share: str | None, unit: str) -> dict[str, Any]:
    return {**POLICY, "require": [{"k-anonymity": k}], "unit": unit} | (
        {} if share is None else {"suppress": {"at-most": share}}
    )


CASES = [
    (number, unit, share)
    for number, (unit, share) in enumerate(
        [("who", None), ("who", "5%"), ("row", "5%"), ("who", "20%"), ("row", "20%")] * 6
    )
]


@pytest.mark.parametrize(("number", "unit", "share"), CASES)
def test_no_group_has_fewer_than_k_people_and_no_more_is_left_out_than_allowed(number, unit, share, tmp_path):
    """The people of each published row are found by the class, which numbers the rows here."""
    table, k = stays(number), 5
    numbered = table.append_column("row", pa.array([f"r{i}" for i in range(table.num_rows)]))
    given = policy(k, share, unit)
    given["attributes"] = {**given["attributes"], "row": {"role": "other", "passes": "unique"}}
    pq.write_table(numbered, tmp_path / "stays.parquet")
    found = {}
    for engine in ("memory", "disk"):
        memory = 1 << 26 if engine == "disk" else None
        release = sf.publish(tmp_path / "stays.parquet", given, engine=engine, memory=memory, seed=1)
        groups: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for row in release.table.to_pylist():
            groups[tuple(row[name] for name in QUASI)].append(int(row["row"][1:]))
        found[engine] = {labels: sorted(rows) for labels, rows in groups.items()}
        people = table["who"].to_pylist() if unit == "who" else list(range(table.num_rows))
        assert min(len({people[i] for i in rows}) for rows in groups.values()) >= k
        stayed = {i for rows in groups.values() for i in rows}
        out = [people[i] for i in range(table.num_rows) if i not in stayed]
        most = 0 if share is None else float(share[:-1]) / 100
        assert len(out) <= most * table.num_rows
        assert len({*out}) <= most * len({*people})
        claims = release.certificate.claims
        assert claims.suppressed == len(out)
        assert claims.people == (len({people[i] for i in stayed}) if unit == "who" else None)
        release.write(tmp_path / engine)
        checked = sf.verify_folder(tmp_path / engine, **({"table": numbered} if unit == "who" else {}))
        assert not checked.failures
    assert found["memory"] == found["disk"]


@pytest.fixture
def left_out(sfumato, here):
    """A release that leaves out the rare job."""
    job = ["a", "b"] * 98 + [RARE] * 4
    table = pa.table(
        {
            "who": [f"p{i * 7 % 150}" for i in range(200)],
            "age": [20 + i * 3 % 40 for i in range(200)],
            "zip": [f"53{i % 3}" for i in range(200)],
            "job": job,
            "class": ["x" if word == "a" else "y" for word in job],
        }
    )
    pq.write_table(table, here / "stays.parquet")
    (here / "policy.yaml").write_text(json.dumps(policy(5, "5%", "who")), encoding="utf-8")
    done = sfumato("publish", "stays.parquet", "--policy", "policy.yaml", "--out", "out", "--format", "csv")
    assert done.code == 0, done.err
    assert "left out: " in done.out
    return here / "out"


def test_the_folder_names_nothing_that_was_left_out(left_out):
    published = (left_out / "release.csv").read_text(encoding="utf-8")
    names_it = RARE in published
    recoding = json.loads((left_out / "recoding.json").read_text(encoding="utf-8"))
    assert not names_it
    assert recoding["leaves-rows-out"] is True
    assert RARE.encode() not in b"".join(path.read_bytes() for path in left_out.iterdir())


def test_what_is_in_no_piece_is_left_out_by_apply_and_counted(sfumato, here, left_out):
    (here / "more.csv").write_text(
        f"age,zip,job\n30,531,a\n30,531,{RARE}\n31,531,unheard\n", encoding="utf-8"
    )
    done = sfumato("apply", left_out, "more.csv", "--out", "recoded.csv")
    assert done.code == 0, done.err
    assert "1 row recoded, 2 rows left out" in done.out


def test_verify_counts_the_people_who_were_left_out(sfumato, here, left_out):
    done = sfumato("verify", left_out, "--table", "stays.parquet")
    assert done.code == 0, done.err
    assert "people lost a row" in done.out
    edit_certificate(left_out, lambda document: document["claims"].update(suppressed=1))
    assert sfumato("verify", left_out, "--table", "stays.parquet").code == 1


@pytest.mark.parametrize(
    ("change", "detail"),
    [
        (lambda document: document.pop("holes"), "it has fields that no recoding has, or lacks some"),
        (lambda document: document["holes"][0].append(99), "it cannot be read"),
        (lambda document: document.update({"leaves-rows-out": False}), "its format or output is another"),
        (lambda document: document["attributes"][2]["labels"].append(RARE), "it cannot be read"),
    ],
)
def test_a_recoding_with_other_pieces_is_found(sfumato, left_out, change, detail):
    path = left_out / "recoding.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    change(document)
    path.write_text(json.dumps(document), encoding="utf-8")
    done = sfumato("verify", left_out)
    assert done.code == 1
    assert detail in done.out


def test_it_is_evaluated_compared_and_asked(sfumato, here, left_out):
    done = sfumato(
        "evaluate", "stays.parquet", "--policy", "policy.yaml", "--folds", 2, "--models", "decision-tree"
    )
    assert done.code == 0, done.err
    assert "test rows left out" in done.out
    done = sfumato(
        "compare", "stays.parquet", "--policy", "policy.yaml", "--vary", "suppress=0,5%", "--out", "c"
    )
    assert done.code == 0, done.err
    done = sfumato("query", left_out, "COUNT(*) WHERE age >= 30")
    assert done.code == 0, done.err
    assert sfumato("report", left_out, "--raw", "stays.parquet", "--out", "owner.html").code == 0
