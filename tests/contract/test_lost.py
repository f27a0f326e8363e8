"""``publish --verbose`` says what each column lost and why: to the owner alone, and never a value."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest
from commandline import people
from private_people import people as private_people
from private_people import the_policy

from sfumato.table.write import write_table

RARE = "99999"
"""A zip code that one person alone has."""


def with_rare_zip(table: pa.Table) -> pa.Table:
    zips = [RARE, *table["zip"].to_pylist()[1:]]
    return table.set_column(table.column_names.index("zip"), "zip", pa.array(zips))


def lost(err: str) -> dict[str, str]:
    """The line of each column."""
    assert all(line.startswith("lost: ") for line in err.splitlines()), err
    return {line.split()[1]: line for line in err.splitlines()}


def test_each_column_has_a_line_with_what_was_lost_and_why(sfumato, here, policy):
    write_table(with_rare_zip(people(300)), here / "people.csv")
    done = sfumato("publish", "people.csv", "--policy", policy, "--out", "out", "--seed", 1, "--verbose")
    assert done.code == 0
    lines = lost(done.err)
    assert {*lines} == {"age", "sex", "zip"}
    assert "because other columns left too few rows alike" in lines["zip"]
    assert "because values are too rare in the whole table" in lines["zip"]
    assert re.search(r"; \d+ of \d+ values, with [\d.]+% of the rows, have fewer than 5 rows", lines["zip"])
    assert RARE not in done.out + done.err
    for path in (here / "out").iterdir():
        assert "too rare in the whole" not in path.read_text(encoding="utf-8")


def test_a_value_of_one_person_is_rare_however_many_rows_it_has(sfumato, here, policy):
    table = people(300)
    zips = [
        RARE if i < 8 else "53715" if zip_ == RARE else zip_
        for i, zip_ in enumerate(table["zip"].to_pylist())
    ]
    patients = ["p0" if i < 8 else f"p{i}" for i in range(300)]
    table = table.set_column(table.column_names.index("zip"), "zip", pa.array(zips))
    write_table(table.append_column("patient", pa.array(patients)), here / "people.csv")
    said = (
        (here / policy)
        .read_text()
        .replace("attributes:\n", "attributes:\n  patient: {role: identifier}\n", 1)
    )
    found = {}
    for unit in ("row", "patient"):
        (here / "p.yaml").write_text(f"{said}\nunit: {unit}\n")
        done = sfumato("publish", "people.csv", "--policy", "p.yaml", "--out", unit, "--seed", 1, "--verbose")
        assert done.code == 0, done.err
        told = re.search(r"; (\d+) of \d+ values.*fewer than 5 (\w+) in", lost(done.err)["zip"])
        found[unit] = (int(told[1]), told[2]) if told else (0, "")
    assert found["patient"] == (found["row"][0] + 1, "people")


def test_nothing_is_explained_unless_somebody_asks(sfumato, table, policy):
    for options in ((), ("--quiet", "--verbose")):
        done = sfumato("publish", table, "--policy", policy, "--out", "out", "--overwrite", *options)
        assert (done.code, done.err) == (0, "")


def test_on_disk_only_the_loss_itself_is_known(sfumato, table, policy):
    done = sfumato("publish", table, "--policy", policy, "--out", "out", "--engine", "disk", "--verbose")
    assert done.code == 0
    *columns, last = done.err.splitlines()
    assert all(re.fullmatch(r"lost: (age|sex|zip) [\d.]+", line) for line in columns)
    assert len(columns) == 3
    assert "where all rows are in memory" in last


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_nothing_is_said_of_a_private_release(sfumato, here, engine):
    write_table(private_people(), here / "people.csv")
    (here / "private.yaml").write_text(the_policy().to_yaml(), encoding="utf-8")
    done = sfumato(
        "publish", "people.csv", "--policy", "private.yaml", "--out", "out", "--engine", engine, "--verbose"
    )
    assert done.code == 0
    assert "lost" not in done.err + done.out


def test_a_missing_cell_is_published_empty_only_where_a_whole_group_lacks_it(sfumato, here):
    """Twelve ages are missing in one town, which is enough for groups of their own; three in another are not."""
    n = 40
    ages = [None] * 12 + list(range(20, 20 + n - 12)) + [None] * 3 + list(range(30, 30 + n - 3))
    table = pa.table(
        {"age": pa.array(ages), "town": ["Kiel"] * n + ["Ulm"] * n, "row": [str(i) for i in range(2 * n)]}
    )
    write_table(table, here / "t.csv")
    (here / "p.yaml").write_text(
        "attributes:\n  age: {role: quasi-identifier, type: number, bounds: [0, 100]}\n"
        "  town: {role: quasi-identifier, values: [Kiel, Ulm]}\n  row: {role: other, passes: unique}\n"
        "require: [k-anonymity: 5]\n",
        encoding="utf-8",
    )
    assert sfumato("publish", "t.csv", "--policy", "p.yaml", "--out", "out").code == 0
    rows = pa_csv.read_csv(here / "out" / "release.csv", convert_options=pa_csv.ConvertOptions(
        column_types={"age": pa.string(), "row": pa.int64()})).to_pylist()  # fmt: skip
    empty = {row["row"] for row in rows if not row["age"]}
    assert empty == set(range(12))
    for row in rows:
        if ages[row["row"]] is None and row["row"] not in empty:
            assert row["age"] == "*" or row["age"].endswith(" or missing")
