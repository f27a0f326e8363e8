"""Spreadsheets and tables of databases, each made by a real program."""

from __future__ import annotations

import gc
import sqlite3
import sys
import traceback
import zipfile
from contextlib import closing
from datetime import date, datetime
from pathlib import Path

import duckdb
import openpyxl
import pyarrow as pa
import pytest
from postgres import PASSWORD, running_server

import sfumato as sf
from sfumato.errors import MissingExtra, Notice, TableError
from sfumato.policy.schema import Schema
from sfumato.table.allowance import allowing
from sfumato.table.databases import Address, is_address, without_secrets
from sfumato.table.opening import open_table
from sfumato.table.reading import open_as
from sfumato.table.source import UNKNOWN, release_format

ODD = 'people"; drop table people; --'
"""The name of a table that has to be quoted."""


def cells(source) -> dict[str, list]:
    return {name: source.column(name).to_pylist() for name in source.names}


def refusal(table, **options) -> str:
    with pytest.raises(TableError) as caught:
        open_table(table, **options)
    assert PASSWORD not in "".join(traceback.format_exception(caught.value))
    return str(caught.value)


# ---- spreadsheets ----


def workbook(path: Path, **sheets: list[list]) -> Path:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


PEOPLE = [
    ["zip", "age", "bmi", "born", "seen", "ok"],
    ["02139", 30, 21.5, date(1980, 12, 31), datetime(2020, 1, 1, 10, 30), True],  # noqa: DTZ001 - Excel has no zones
    [53715, 31, None, None, None, False],
]


@pytest.mark.parametrize("lazy", [False, True])
def test_a_spreadsheet_is_read_each_cell_as_its_own_text(tmp_path, lazy):
    source = open_table(workbook(tmp_path / "t.xlsx", people=PEOPLE), lazy=lazy)
    assert cells(source) == {
        "zip": ["02139", "53715"],
        "age": ["30", "31"],
        "bmi": ["21.5", None],
        "born": ["1980-12-31", None],
        "seen": ["2020-01-01 10:30:00", None],
        "ok": ["true", "false"],
    }
    assert (source.kind, release_format(source)) == ("excel", "csv")


def test_a_spreadsheet_is_seen_by_content_and_blank_rows_are_no_rows(tmp_path):
    rows = [[], ["a", "b"], [], [1, None], [None, None], [None, 2]]
    path = workbook(tmp_path / "t.data", one=rows, empty=[])
    assert cells(open_table(path)) == {"a": ["1", None], "b": [None, "2"]}


def test_one_sheet_of_several_is_named_after_a_hash(tmp_path):
    path = workbook(tmp_path / "t.xlsx", first=[["a"], [1]], second=[["b"], [2]])
    assert cells(open_table(f"{path}#second")) == {"b": ["2"]}
    assert refusal(path) == f"{path} has 2 sheets; say which one to read, as in {path}#NAME: first, second."
    assert refusal(f"{path}#secnd").endswith("has no sheet 'secnd'. Did you mean 'second'?")


def test_cells_beyond_the_header_are_refused_but_not_under_a_private_method(tmp_path):
    path = workbook(tmp_path / "t.xlsx", one=[["a"], ["x"], ["y", "z"]])
    assert refusal(path) == f"Row 2 of {path} has cells beyond the header; name their columns."
    assert cells(open_as(path, Schema.of(a="other"), is_private=True)) == {"a": ["x", "y"]}


@pytest.mark.parametrize("is_declared", [False, True])
def test_texts_of_numbers_beside_numbers_are_read_with_a_decimal_comma(tmp_path, is_declared):
    path = workbook(tmp_path / "t.xlsx", one=[["bmi"], ["21,5"], [1.234], ["1.023,5"], [30], [22.5]])
    schema, reading = Schema.of(bmi={"role": "other", "kind": "number"}), sf.Reading(decimal=",")
    if is_declared:
        source = open_as(path, schema, reading)
    else:
        with pytest.warns(Notice, match="decimal comma"):
            source = open_as(path, schema)
    assert source.column("bmi").to_pylist() == ["21.5", "1.234", "1023.5", "30", "22.5"]


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [([], "is empty; a table needs"), ([["a", "b"]], "has no rows"), ([["a", "a"], [1, 2]], "the same name"),
     ([["a", None, "b"], [1, 2, 3]], "Column 2 of"), ([[39, "x"], [50, "y"], [38, "x"], [1, "x"]], "has no header")],
)  # fmt: skip
def test_a_sheet_that_is_no_table_is_refused(tmp_path, rows, sentence):
    assert sentence in refusal(workbook(tmp_path / "t.xlsx", one=rows))


def test_a_damaged_spreadsheet_is_refused(tmp_path):
    path = tmp_path / "t.xlsx"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("xl/workbook.xml", "<rubbish")
    assert refusal(path) == f"{path} is damaged, or no spreadsheet; save it again."


# ---- databases ----


def make_sqlite(path: Path) -> str:
    with closing(sqlite3.connect(path)) as base, base:
        base.execute("create table people (id integer, zip text, bmi real, anything)")
        rows = [(1, "02139", 0.1 + 0.2, 5), (2, "ü", 3.0, "x"), (3, None, None, 2.5), (4, "", 1e300, b"\xff")]
        base.executemany("insert into people values (?, ?, ?, ?)", rows)
        base.execute('create table "' + ODD.replace('"', '""') + '" as select 7 as "a ""b"')
        base.execute("create table nobody (a, b)")
        base.execute("create view adults as select id from people")
    return f"sqlite:///{path}"


def make_duckdb(path: Path) -> str:
    with closing(duckdb.connect(str(path))) as base:
        base.execute(
            "create table people (id integer, zip varchar, bmi decimal(6, 2), born date, big hugeint)"
        )
        base.execute(
            "insert into people values (1, '02139', 1.5, '1980-12-31', 170141183460469231731687303715884105727)"
        )
        base.execute("insert into people values (2, null, null, null, null)")
        base.execute('create table "' + ODD.replace('"', '""') + '" as select 7 as "a ""b"')
        base.execute("create schema other; create table other.places as select 'x' as place")
    return f"duckdb:///{path}"


@pytest.fixture(scope="module")
def server():
    with running_server() as address:
        dbapi = pytest.importorskip("adbc_driver_postgresql.dbapi")
        with closing(dbapi.connect(address)) as base:
            with closing(base.cursor()) as cursor:
                for query in (
                    "create type mood as enum ('good', 'bad')",
                    "create table people (id int, zip char(5), bmi numeric(8, 2), born date, at timestamptz, m mood)",
                    "insert into people values (1, '02139', 1.50, '1980-12-31', '2020-01-01 10:30+00', 'good')",
                    "insert into people values (2, null, null, 'infinity', null, null)",
                    'create table "' + ODD.replace('"', '""') + '" as select 7 as "a ""b"',
                    "create schema other",
                    "create table other.places as select 'x'::text as place",
                    "create table many as select i as id, i % 7 as g from generate_series(1, 70000) i",
                    "create role guest login password 'guest'",
                ):
                    cursor.execute(query)
            base.commit()
        yield address


@pytest.fixture(params=["sqlite", "duckdb", "postgresql"])
def database(request, tmp_path):
    """The address of a database of each kind, without a table."""
    if request.param == "postgresql":
        return request.getfixturevalue("server")
    return {"sqlite": make_sqlite, "duckdb": make_duckdb}[request.param](tmp_path / "a.db")


def test_a_table_of_sqlite_comes_as_text_whatever_its_cells_are(tmp_path):
    address = make_sqlite(tmp_path / "a.db")
    source = open_table(f"{address}#people")
    assert cells(source) == {
        "id": ["1", "2", "3", "4"],
        "zip": ["02139", "ü", None, ""],
        "bmi": ["0.30000000000000004", "3", None, "1e+300"],
        "anything": ["5", "x", "2.5", "FF"],
    }
    assert (source.kind, release_format(source), source.where) == ("database", "parquet", f"{address}#people")
    assert cells(open_table(f"{address}#adults")) == {"id": ["1", "2", "3", "4"]}


def test_a_cell_of_sqlite_says_the_same_whatever_stands_far_below_it(tmp_path):
    with closing(sqlite3.connect(tmp_path / "a.db")) as base, base:
        base.execute("create table t (x)")
        base.executemany("insert into t values (?)", [(i,) for i in range(5000)] + [("text",), (0.5,)])
    assert cells(open_table(f"sqlite:///{tmp_path / 'a.db'}#t"))["x"] == [
        *map(str, range(5000)),
        "text",
        "0.5",
    ]


def test_a_table_of_duckdb_keeps_its_types(tmp_path):
    source = open_table(f"{make_duckdb(tmp_path / 'a.db')}#people")
    assert source.column("born").to_pylist() == [date(1980, 12, 31), None]
    assert source.column("bmi").type == pa.decimal128(6, 2)
    assert source.column("big").to_pylist() == [str(2**127 - 1), None]


def test_a_table_of_postgresql_keeps_its_types(server):
    source = open_table(f"{server}#people")
    assert source.column("id").type == pa.int32()
    found = cells(source)
    assert found["born"] == [date(1980, 12, 31), None]
    assert (found["zip"], found["bmi"], found["m"]) == (["02139", None], ["1.50", None], ["good", None])


def test_names_are_quoted_whatever_they_hold(database):
    assert open_table(f"{database}#{ODD}").names == ('a "b',)
    assert open_table(f"{database}#people").n_rows >= 2


def test_a_table_of_another_schema_is_named_with_it(database):
    if database.startswith("sqlite"):
        assert open_table(f"{database}#main.people").n_rows == 4
    else:
        assert cells(open_table(f"{database}#other.places")) == {"place": ["x"]}


@pytest.mark.parametrize("spooled", [False, True])
def test_a_database_is_read_lazily_and_says_the_same(database, tmp_path, spooled):
    whole = cells(open_table(f"{database}#people"))
    source = open_table(f"{database}#people", lazy=True, spool=tmp_path / "spool" if spooled else None)
    names = ["zip", "id"]
    read = pa.Table.from_batches(source.batches(names))
    assert {name: read.column(name).to_pylist() for name in names} == {name: whole[name] for name in names}
    assert source.n_rows == len(whole["id"]) != UNKNOWN
    assert cells(source) == whole


def test_what_is_not_there_is_said_in_one_sentence(database):
    assert refusal(f"{database}#peopl").endswith("has no table 'peopl'. Did you mean 'people'?")
    assert "people" in refusal(database)
    assert refusal(database).startswith("Say which table of ")


def test_a_table_without_rows_is_refused_unless_the_method_is_private(tmp_path):
    address = f"{make_sqlite(tmp_path / 'a.db')}#nobody"
    assert refusal(address) == f"{address} has no rows; a table needs at least one."
    for options in ({}, {"lazy": True, "spool": tmp_path / "spool"}):
        assert open_table(address, may_be_empty=True, **options).n_rows == 0


def test_a_database_is_not_written_to(tmp_path):
    path = tmp_path / "a.db"
    address = make_sqlite(path)
    before = path.read_bytes()
    path.chmod(0o444)
    open_table(f"{address}#people")
    assert (path.read_bytes(), [each.name for each in tmp_path.iterdir()]) == (before, ["a.db"])


def test_duckdb_reads_no_file_beside_the_database(tmp_path):
    (tmp_path / "secret.csv").write_text("a\n1\n")
    address = make_duckdb(tmp_path / "a.db")
    assert "has no table" in refusal(f"{address}#{tmp_path / 'secret.csv'}")


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("sqlite:///nowhere.db#t", "There is no database file nowhere.db"),
        ("sqlite://file.db#t", "after three slashes"),
        (f"mysql://me:{PASSWORD}@host/db#t", "Tables are not read from mysql:// addresses"),
        (f"postgresql://me:{PASSWORD}@host/db#t", "is not written well"),
        (f"postgresql://me:{PASSWORD}@host/db", "is not written well"),
        ("postgresql://me:secret/db#t", "is not written well"),
        ("postgresql://h/db?user=a@b&password=secret#t", "is not written well"),
    ],
)
def test_a_wrong_address_is_refused_without_its_password(address, words):
    sentence = refusal(address)
    assert words in sentence
    assert "secret" not in sentence
    assert "me:" not in sentence


def test_a_password_reaches_no_message(server):
    wrong = server.replace("owner:", "owner:x")
    assert refusal(f"{wrong}#people").endswith("cannot be read: the user or the password is refused.")
    nowhere = server.replace("/postgres", "/nowhere")
    assert refusal(f"{nowhere}#people").endswith("cannot be read: there is no such database or user.")
    guest = server.replace(server.partition("//")[2].partition("@")[0], "guest:guest")
    assert refusal(f"{guest}#people").endswith("cannot be read: the user may not read it.")
    closed = server.partition("@")[0] + "@127.0.0.1:1/postgres"
    assert refusal(f"{closed}#people").endswith("cannot be read: no server answers there.")
    source = open_table(f"{server}#people")
    address = Address.parse(f"{server}#people")
    assert PASSWORD not in repr(source) + repr(address) + source.where
    assert "owner" not in source.where
    assert refusal(Path(f"{server}#people")) == "There is no file or folder postgresql://...; check the path."


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("people.csv", "people.csv"),
        ("sqlite:///a@b.db#t", "sqlite:///a@b.db#t"),
        ("postgresql://host:5432/db#t", "postgresql://host:5432/db#t"),
        ("postgresql://me:a%40b@host/db?sslmode=require#t", "postgresql://host/db#t"),
        ("postgresql://me:a#b@host/db#t", "postgresql://host/db#t"),
        ("postgresql://me:a#b@host/db", "postgresql://..."),
        ("postgresql://me:a?b@host/db#t", "postgresql://host/db#t"),
        ("postgresql:/me:secret@host/db#t", "postgresql://..."),
    ],
)
def test_an_address_is_shown_without_user_and_password(text, shown):
    assert without_secrets(text) == shown


def test_a_path_is_no_address():
    assert not is_address("C:/people.csv")
    assert is_address("postgresql://host/db#t")


@pytest.mark.parametrize(
    ("module", "extra", "table"),
    [
        ("python_calamine", "excel", "t.xlsx"),
        ("adbc_driver_sqlite.dbapi", "sql", "sqlite:///a.db#people"),
        ("duckdb", "sql", "duckdb:///a.db#people"),
        ("adbc_driver_postgresql.dbapi", "sql", "postgresql://host/db#people"),
    ],
)
def test_a_missing_extra_is_one_sentence_with_the_command_that_installs_it(
    tmp_path, monkeypatch, module, extra, table
):
    monkeypatch.chdir(tmp_path)
    workbook(tmp_path / "t.xlsx", people=PEOPLE)
    (tmp_path / "a.db").touch()
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra) as caught:
        open_table(table)
    assert str(caught.value).endswith(f'needs an extra: pip install "sfumato[{extra}]"')


# ---- published ----


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_a_table_of_a_database_is_published_and_no_password_is_in_the_release(server, tmp_path, engine):
    policy = sf.Policy.parse(
        "{attributes: {id: {role: quasi-identifier, type: number}, g: {role: sensitive}}, require: [k-anonymity: 50]}"
    )
    release = sf.publish(f"{server}#many", policy, engine=engine)
    release.write(tmp_path / "out")
    for path in (tmp_path / "out").iterdir():
        data = path.read_bytes()
        for secret in (PASSWORD, server, "127.0.0.1", "owner:"):
            assert secret.encode() not in data, path.name
    assert release.table.num_rows == 70_000
    del release
    gc.collect()


def test_a_spreadsheet_is_published_as_csv(tmp_path):
    rows = [["age", "bmi"], *([i, i / 2] for i in range(40))]
    policy = """
    attributes: {age: {role: quasi-identifier, type: number}, bmi: {role: other, type: number, passes: unique}}
    require: [k-anonymity: 5]
    """
    release = sf.publish(workbook(tmp_path / "t.xlsx", one=rows), sf.Policy.parse(policy))
    assert release.format == "csv"
    assert sorted(release.table.column("bmi").to_pylist()) == [i / 2 for i in range(40)]


# ---- numbers come back as numbers ----


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_numbers_of_a_csv_file_come_back_as_numbers(tmp_path, engine):
    path = tmp_path / "people.csv"
    path.write_text(
        "age,bmi,n,zip\n" + "".join(f"{i},{i}.50,{'?' if i == 3 else i},0{i}\n" for i in range(20, 60))
    )
    policy = sf.Policy.parse(
        "{attributes: {age: {role: quasi-identifier, type: number}, "
        "bmi: {role: sensitive, type: number, passes: unique}, "
        "n: {role: other, type: number, missing-values: ['?'], passes: unique}, "
        "zip: {role: other, passes: unique}}, require: [k-anonymity: 5]}"
    )
    release = sf.publish(path, policy, engine=engine)
    table = release.table
    assert [table.schema.field(name).type for name in ("bmi", "n")] == [pa.float64(), pa.int64()]
    assert table.schema.field("age").type != pa.int64()
    assert min(table.column("bmi").to_pylist()) == 20.5
    assert set(table.column("zip").to_pylist()) == {f"0{i}" for i in range(20, 60)}
    assert release.select("age > 30").schema.field("bmi").type == pa.float64()
    release.write(tmp_path / "out")
    assert ",20.50," in (tmp_path / "out" / "release.csv").read_text()


# ---- bombs, and verifying ----


def test_a_spreadsheet_that_unpacks_to_more_than_is_allowed_is_refused_at_once(tmp_path):
    path = workbook(tmp_path / "t.xlsx", one=[["a"], ["x"]])
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/media/bomb.xml", b"0" * 30_000_000)
    assert path.stat().st_size < 100_000
    with allowing(20_000_000):
        assert refusal(path).startswith(f"{path} takes more than 20 MB of memory when it is read")


def test_a_spreadsheet_that_lies_about_its_size_is_refused(tmp_path):
    path = workbook(tmp_path / "t.xlsx", one=[["a"], ["x"]])
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb.xml", b"0" * 30_000_000)
    data = path.read_bytes()
    size = (30_000_000).to_bytes(4, "little")
    assert size in data
    path.write_bytes(data.replace(size, (100).to_bytes(4, "little")))
    assert refusal(path) == f"{path} is damaged, or no spreadsheet; save it again."


def test_a_table_of_a_database_that_is_larger_than_allowed_is_refused(tmp_path):
    with closing(sqlite3.connect(tmp_path / "a.db")) as base, base:
        base.execute("create table t (x)")
        base.executemany("insert into t values (?)", [("y" * 100_000,)] * 800)
    with allowing(20_000_000):
        assert "takes more than 20 MB of memory when it is read" in refusal(
            f"sqlite:///{tmp_path / 'a.db'}#t"
        )


def test_a_table_of_a_database_or_a_spreadsheet_is_verified(database, tmp_path):
    policy = sf.Policy.parse(
        "{attributes: {id: {role: quasi-identifier}, '*': {role: drop}}, require: [k-anonymity: 2]}"
    )
    verdict = sf.verify_table(f"{database}#people", policy)
    assert not verdict.ok
    path = workbook(tmp_path / "t.xlsx", one=[["id"], ["a"], ["a"]])
    assert sf.verify_table(str(path), policy).ok
