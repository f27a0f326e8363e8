"""What passes as it is: columns that tell people apart are refused, others named, and rows alone by all are counted."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
import yaml

import sfumato as sf
from sfumato.errors import InputError
from sfumato.table.write import write_table

N = 400
"""Rows; a tenth of them is alone by ``some``."""

ATTRIBUTES = {
    "id": {"role": "identifier"},
    "age": {"role": "quasi-identifier", "type": "number", "bounds": [0, 100]},
    "ill": {"role": "sensitive"},
    "x": {"role": "other"},
}


def table(**columns: object) -> pa.Table:
    rng = np.random.default_rng(1)
    own = {
        "id": [f"p{i}" for i in range(N)],
        "age": rng.integers(0, 100, N),
        "ill": rng.choice(["a", "b", "c"], N),
        "x": rng.choice(["u", "v"], N),
    }
    return pa.table({**own, **columns})


def policy(**changes: object) -> dict[str, object]:
    return {"attributes": {**ATTRIBUTES, **changes}, "require": [{"k-anonymity": 5}]}


UNIQUE = [f"code {i}" for i in range(N)]
SOME = [f"code {i if i < N // 10 else 'all'}" for i in range(N)]
MAILS = [f"user{i}@example.org" for i in range(N)]


@pytest.mark.parametrize("role", ["other", "sensitive"])
def test_a_column_by_which_most_rows_are_alone_is_refused_unless_that_is_on_purpose(role):
    with pytest.raises(
        InputError, match=r"'x' \(100% of the rows have a value that no other row has\)"
    ) as refused:
        sf.publish(table(x=UNIQUE), policy(x={"role": role}))
    assert "code" not in str(refused.value)
    assert "passes: unique" in str(refused.value)
    release = sf.publish(table(x=UNIQUE), policy(x={"role": role, "passes": "unique"}))
    assert not [notice for notice in release.notices if "'x'" in notice]


def test_several_are_named_in_one_sentence():
    with pytest.raises(InputError, match=r"2 columns would be published as they are: 'x' \(.*\), 'y' \("):
        sf.publish(table(x=UNIQUE, y=UNIQUE), policy(y={"role": "other"}))


def test_a_direct_identifier_is_refused_by_its_name_and_by_its_content():
    with pytest.raises(InputError, match="its name says"):
        sf.publish(table(phone=[f"{i % 150}" for i in range(N)]), policy(phone={"role": "other"}))
    with pytest.raises(InputError, match="its values look like e-mail addresses") as refused:
        sf.publish(table(x=(MAILS[: N // 10] * 10)), policy())
    assert "example.org" not in str(refused.value)


def test_a_column_by_which_some_rows_are_alone_is_named():
    release = sf.publish(table(x=SOME), policy())
    (notice,) = [notice for notice in release.notices if "'x'" in notice]
    assert notice == "'x' is published as it is, and 10.0% of the rows have a value that no other row has."
    assert release.certificate.figures["passes"] == {"alone": {"x": 0.1}}
    assert "<bdi>x</bdi> 10.0 %" in (release.report or "")


def test_numbers_that_a_variance_or_a_regression_is_about_are_named():
    numbers = np.arange(N) * 1.5
    x = {"role": "sensitive", "type": "number"}
    asked = (
        {"require": [{"variance-diversity": {"at-least": 1, "of": "x"}}]},
        {"workload": [{"regress": "x"}]},
    )
    for more in asked:
        release = sf.publish(table(x=numbers), {**policy(x=x), **more})
        assert any(notice.startswith("'x' is published as it is") for notice in release.notices)


def test_small_tables_are_too_small_to_tell():
    assert sf.publish(table(x=UNIQUE).slice(0, 19), policy()).certificate.claims.rows == 19
    with pytest.raises(InputError):
        sf.publish(table(x=UNIQUE).slice(0, 20), policy())


def test_an_identifier_that_repeats_is_said_until_the_owner_knows():
    twice = [f"p{i // 2}" for i in range(N)]
    release = sf.publish(table(id=twice), policy())
    assert any("'id': an identifier has values" in notice for notice in release.notices)
    assert release.certificate.figures["passes"] == {"repeats": {"id": 1.0}}
    assert "<bdi>id</bdi> (100.0 % of the rows)" in (release.report or "")
    known = sf.publish(table(id=twice), {**policy(), "unit": "row"})
    assert not [notice for notice in known.notices if "'id'" in notice]
    assert "passes" not in known.certificate.figures
    once = sf.publish(table(), policy())
    assert not [notice for notice in once.notices if "'id'" in notice]


def test_rows_alone_by_all_that_passes_are_claimed_and_counted_again(tmp_path):
    release = sf.publish(table(x=SOME), policy())
    cells = list(zip(*(release.table.column(name).to_pylist() for name in ("ill", "x")), strict=True))
    n_alone = sum(cells.count(cell) == 1 for cell in cells)
    assert (
        release.certificate.claims.alone_by_passed.columns,
        release.certificate.claims.alone_by_passed.rows,
    ) == (2, n_alone)
    assert any(
        f"{n_alone} rows" in remark and "alone by the 2 columns" in remark for remark in release.remarks
    )
    release.write(tmp_path / "r")
    path = tmp_path / "r" / "certificate.json"
    document = json.loads(path.read_text())
    assert document["claims"]["alone-by-passed"] == {"columns": 2, "rows": n_alone}
    document["claims"]["alone-by-passed"]["rows"] = 0
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    failed = sf.verify_folder(tmp_path / "r")
    assert [check.detail for check in failed.failures] == [f"there are {n_alone}"]


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_the_command_says_the_same_wherever_the_rows_live(tmp_path, sfumato, engine):
    write_table(table(x=SOME, id=[f"p{i // 2}" for i in range(N)]), tmp_path / "t.csv")
    write_table(table(x=UNIQUE), tmp_path / "u.csv")
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(policy()))
    options = ["--policy", tmp_path / "p.yaml", "--out", tmp_path / "r", "--engine", engine]
    done = sfumato("publish", tmp_path / "t.csv", *options)
    assert done.code == 0
    assert "warning: 'x' is published as it is, and 10.0% of the rows" in done.err
    assert "warning: 'id': an identifier has values" in done.err
    assert "alone by the 2 columns that are published as they are" in done.out
    refused = sfumato("publish", tmp_path / "u.csv", *options, "--overwrite")
    assert refused.code == 2
    assert "would be published as it is" in refused.sentence


def test_nothing_is_looked_at_for_a_differentially_private_release():
    declared = {
        "age": {"role": "quasi-identifier", "type": "number", "bounds": [0, 100], "step": 1},
        "id": {"role": "identifier"},
        "x": {"role": "other", "values": UNIQUE},
    }
    private = {
        "attributes": declared,
        "workload": [{"classify": "x"}],
        "method": {"diffgen": {"epsilon": 1, "specializations": 1}},
    }
    release = sf.publish(table(x=UNIQUE, id=["p"] * N).select(["id", "age", "x"]), private)
    assert release.notices == ()
    assert dict(release.certificate.figures) == {}
    assert release.certificate.claims.alone_by_passed is None
