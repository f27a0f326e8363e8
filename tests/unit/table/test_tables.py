"""Tables in and out: every door in, what cells mean, every door out, and one sentence for every fault."""

from __future__ import annotations

import datetime as dt
import decimal
import gzip
import io
import os
import subprocess
import sys
import traceback
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InternalError, TableError
from sfumato.policy.schema import Attribute, Kind, Role
from sfumato.table import csv_file
from sfumato.table import write as table_write
from sfumato.table.cells import TEXTS, dates, lenient_texts, numbers, texts
from sfumato.table.files import replace_atomically
from sfumato.table.opening import open_table
from sfumato.table.source import release_format
from sfumato.table.write import TableWriter, compact, hand_back, write_table

SECRET = "SECRET-CELL"


def attribute(kind: Kind = Kind.CATEGORY, *missing: str) -> Attribute:
    return Attribute("age", Role.QUASI_IDENTIFIER, kind, missing_values=missing)


def cells(source) -> dict[str, list]:
    return {name: source.column(name).to_pylist() for name in source.names}


def write(path: Path, data: bytes | str) -> Path:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def refusal(call, *arguments) -> str:
    """The sentence of a refused table, once it is clear that it keeps the secret to itself."""
    with pytest.raises(TableError) as caught:
        call(*arguments)
    shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
    assert SECRET not in shown
    return str(caught.value)


# ---- CSV in ----


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(tmp_path, delimiter):
    rows = [["zip", "note"], ["02139", '"a,b;c|d\te"'], ["53715", ""]]
    path = write(tmp_path / "t.csv", "\n".join(delimiter.join(row) for row in rows))
    assert cells(open_table(path)) == {"zip": ["02139", "53715"], "note": ["a,b;c|d\te", ""]}


def test_a_decimal_comma_does_not_pass_for_a_delimiter(tmp_path):
    assert open_table(write(tmp_path / "t.csv", "a;b\n1,5;2,5\n")).names == ("a", "b")


def test_a_comma_inside_a_quoted_header_does_not_pass_for_a_delimiter(tmp_path):
    path = write(tmp_path / "t.csv", '"Name";"Date, time"\n"x";"1, 2"\n')
    assert open_table(path).names == ("Name", "Date, time")


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("last", ["", "end"])
def test_every_line_end_is_read(tmp_path, line_end, last):
    text = line_end.join(["a,b", "1,2", "3,4"]) + (line_end if last else "")
    assert cells(open_table(write(tmp_path / "t.csv", text))) == {"a": ["1", "3"], "b": ["2", "4"]}


def test_cells_of_csv_are_text_whatever_they_look_like(tmp_path):
    path = write(tmp_path / "t.csv", "a,b,c,d\n02139,1e5,NA,true\n")
    assert cells(open_table(path)) == {"a": ["02139"], "b": ["1e5"], "c": ["NA"], "d": ["true"]}


def test_a_byte_order_mark_and_blanks_around_names_are_no_part_of_a_name(tmp_path):
    assert open_table(write(tmp_path / "t.csv", b"\xef\xbb\xbfa, b\n1,2\n")).names == ("a", "b")


def test_line_breaks_and_quotes_inside_quotes_belong_to_the_cell(tmp_path):
    path = write(tmp_path / "t.csv", 'a,"b\nb"\n1,"x\ny"\n2,"say ""hi"""\n')
    assert cells(open_table(path)) == {"a": ["1", "2"], "b\nb": ["x\ny", 'say "hi"']}


def test_blank_lines_are_skipped_but_in_a_single_column_they_are_missing_cells(tmp_path):
    assert open_table(write(tmp_path / "t.csv", "\na,b\n\n1,2\n\n3,4\n\n")).n_rows == 2
    assert cells(open_table(write(tmp_path / "u.csv", "a\nx\n\ny\n"))) == {"a": ["x", "", "y"]}


@pytest.mark.parametrize("members", [1, 2])
def test_gzip_is_seen_by_content_and_may_have_several_members(tmp_path, members):
    parts = [b"a,b\n1,2\n", b"3,4\n"] if members == 2 else [b"a,b\n1,2\n3,4\n"]
    path = write(tmp_path / "t.data", b"".join(map(gzip.compress, parts)))
    source = open_table(path)
    assert cells(source) == {"a": ["1", "3"], "b": ["2", "4"]}
    assert (source.kind, release_format(source)) == ("csv", "csv")


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_dash_reads_csv_from_stdin(monkeypatch, pack):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(pack(b"a,b\n1,2\n"))))
    source = open_table("-")
    assert (cells(source), source.kind, release_format(source)) == ({"a": ["1"], "b": ["2"]}, "csv", "csv")


def test_a_column_that_repeats_itself_comes_as_a_dictionary_and_one_that_does_not_as_text(tmp_path):
    rows = "".join(f"{i},{'xy'[i % 2]}\n" for i in range(300))
    source = open_table(write(tmp_path / "t.csv", "id,sex\n" + rows))
    assert (source.column("id").type, source.column("sex").type) == (pa.string(), TEXTS)


def test_a_table_of_many_blocks_is_read_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_file, "BLOCK_BYTES", 64)
    monkeypatch.setattr(csv_file, "HEAD_BYTES", 32)
    path = write(tmp_path / "t.csv", "number,note\n" + "".join(f'{i},"a\n{i % 7}"\n' for i in range(500)))
    assert cells(open_table(path)) == {
        "number": [str(i) for i in range(500)],
        "note": [f"a\n{i % 7}" for i in range(500)],
    }


# ---- bad CSV ----


NAME_IT = "name its encoding (--encoding), or save the table as UTF-8."
WAY_OUT = "mend the row, or quote cells that hold the delimiter."
BAD_CSV = {
    "empty": (b"", "{path} is empty; a table needs a header and rows."),
    "blank": (b"\xef\xbb\xbf \n\n", "{path} is empty; a table needs a header and rows."),
    "only a header": (b"a,b\n", "{path} has no rows; a table needs at least one."),
    "only a header, no line end": (b"a,b", "{path} has no rows; a table needs at least one."),
    "short row": (
        b"a,b\n1,2\nSECRET-CELL\n3,4\n",
        "Row 2 of {path} has 1 cell but the header has 2; " + WAY_OUT,
    ),
    "long row": (
        b'a,b\n1,"x\ny"\n3,4\n5,SECRET-CELL,6\n',
        "Row 3 of {path} has 3 cells but the header has 2; " + WAY_OUT,
    ),
    "duplicate columns": (
        b"a,SECRET-CELL,b,SECRET-CELL\n1,2,3,4\n",
        "Columns 2 and 4 of {path} have the same name; rename one of them.",
    ),
    "a column without a name": (
        b",a,b\n0,SECRET-CELL,2\n",
        "Column 1 of {path} has no name; name it, or leave the index out.",
    ),
    "no header": (
        b"1,2\n3,SECRET-CELL\n",
        "{path} begins with a line of numbers; put a header with column names above it.",
    ),
    "no header, but text and numbers": (
        b"39, SECRET-CELL, 13\n50, b, 13\n38, SECRET-CELL, 9\n",
        "{path} has no header: its first line looks like the rows below it; put a line with column names above it.",
    ),
    "no header, but dates": (
        b"SECRET-CELL,1980-12-31\nb,1999-01-01\nc,\n",
        "{path} has no header: its first line looks like the rows below it; put a line with column names above it.",
    ),
    "no header, but text": (
        b"SECRET-CELL,f\nb,m\nSECRET-CELL,f\nSECRET-CELL,f\n",
        "{path} has no header: its first line looks like the rows below it; put a line with column names above it.",
    ),
    "JSON": (
        b'[{"name": "SECRET-CELL", "age": 30}]',
        "{path} is JSON, which is not read; save the table as CSV or Parquet.",
    ),
    "lines of JSON": (
        b'{"name": "SECRET-CELL", "age": 30}\n{"name": "b", "age": 31}\n',
        "{path} is JSON, which is not read; save the table as CSV or Parquet.",
    ),
    "a quote never closed": (
        b'a,b\n1,"SECRET-CELL\n3,4\n5,6\n',
        "{path} ends inside a quoted cell: it is cut short, or a quote is never closed.",
    ),
    "cut short inside a quote": (
        b'a,b\n1,2\n3,"SECRET-CELL',
        "{path} ends inside a quoted cell: it is cut short, or a quote is never closed.",
    ),
    "not UTF-8": (
        b"a,b\n1,2\n3,SECRET-CELL\x81\n",
        "Column 'b' of {path} holds text that is not UTF-8 in row 2; " + NAME_IT,
    ),
    "neither UTF-8 nor of one width": (
        b"a,b\n1,2\nSECRET-CELL\x81\n",
        "Row 2 of {path} has 1 cell but the header has 2; " + WAY_OUT,
    ),
    "latin-1 and not of one width": (
        b"a,b\n1,2\nSECRET-CELL\xff\n",
        "Row 2 of {path} has 1 cell but the header has 2; " + WAY_OUT,
    ),
    "header not UTF-8": (b"caf\x81,b\nSECRET-CELL,2\n", "The header of {path} is not UTF-8 text; " + NAME_IT),
    "UTF-16": (
        "a,b\nSECRET-CELL,2\n".encode("utf-16"),
        "{path} is UTF-16 text; say so (--encoding utf-16), or save it as UTF-8.",
    ),
    "a spreadsheet": (
        b"PK\x03\x04\x14\x00SECRET-CELL",
        "{path} is a ZIP archive, or a spreadsheet other than .xlsx; save the table as CSV.",
    ),
    "binary rubbish": (
        bytes(range(256)) * 9,
        "{path} is not a table: it holds neither text nor Parquet nor Arrow IPC.",
    ),
    "gzip cut short": (
        gzip.compress(b"a,b\n" + b"1,SECRET-CELL\n" * 9999)[:-9],
        "{path} is no gzip-ed CSV file, or a damaged or cut-off one; make or copy it again.",
    ),
    "gzip cut at once": (
        gzip.compress(b"a,b\n1,2\n")[:5],
        "{path} is no gzip-ed CSV file, or a damaged or cut-off one; make or copy it again.",
    ),
    "gzip of rubbish": (
        gzip.compress(b"a\0b\n"),
        "{path} is not a table: it holds neither text nor Parquet nor Arrow IPC.",
    ),
    "gzip of nothing": (gzip.compress(b""), "{path} is empty; a table needs a header and rows."),
}


@pytest.mark.parametrize("case", BAD_CSV)
def test_bad_csv_is_refused_in_one_sentence_without_a_cell(tmp_path, case):
    data, sentence = BAD_CSV[case]
    path = write(tmp_path / "t.csv", data)
    assert refusal(open_table, path) == sentence.format(path=path)


@pytest.mark.parametrize(
    "text",
    ["country,2019,2020\nChad,1,2\nMali,3,4\nChad,5,6\n", "id,0,1\n7,1,2\n8,3,4\n", "sex\nsex\nsex\nf\n", "a,1\nx,2\n",
     "name,born\nname,1980-12-31\n", "yes,no\nyes,x\nno,y\n", "[id],[age]\n1,2\n", "{id},b\n1,2\n"],
)  # fmt: skip
def test_a_header_that_looks_a_little_like_a_row_is_a_header(tmp_path, text):
    assert open_table(write(tmp_path / "t.csv", text)).names[0] == text.partition(",")[0].partition("\n")[0]


def test_under_a_private_method_no_row_has_a_say_in_whether_there_is_a_header(tmp_path):
    text = "39,a\n50,b\n38,a\n39,a\n"
    assert open_table(write(tmp_path / "t.csv", text), any_text=True).names == ("39", "a")


@pytest.mark.parametrize("case", BAD_CSV)
def test_bad_csv_on_stdin_is_refused_in_the_same_words(monkeypatch, case):
    data, sentence = BAD_CSV[case]
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))
    assert refusal(open_table, "-") == sentence.format(path="stdin")


def test_a_ragged_row_far_into_a_file_is_refused_with_its_number(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_file, "BLOCK_BYTES", 1 << 12)
    rows = ['1,"x\ny"\n'] * 3000
    rows[2468] = "SECRET-CELL\n"
    said = refusal(open_table, write(tmp_path / "t.csv", "a,b\n" + "".join(rows)))
    assert said.startswith("Row 2469 of ")


def test_a_row_longer_than_a_block_is_refused_rather_than_guessed(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_file, "BLOCK_BYTES", 64)
    path = write(tmp_path / "t.csv", 'a,b\n1,2\n1,"' + "SECRET-CELL\n" * 99)
    assert refusal(open_table, path) == f"{path} has a row of more than 64 bytes; is a quote never closed?"


def test_a_header_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_file, "HEAD_BYTES", 64)
    for text in ("SECRET-CELL" * 99, '"' + "SECRET-CELL\n" * 99):
        path = write(tmp_path / "t.csv", text)
        assert (
            refusal(open_table, path)
            == f"The header of {path} is over 64 bytes long; is a quote never closed?"
        )


@pytest.mark.parametrize(
    "row", ['1,""', '1,"x"', '1,""""', '1,","', '1,"a\nb"', '1,x"', '1,5" pipe', '1,"a""\n"', '"",""', '"",']
)
@pytest.mark.parametrize("line_end", ["", "\n", "\r\n"])
def test_a_closed_quote_at_the_end_is_no_fault(tmp_path, row, line_end):
    assert open_table(write(tmp_path / "t.csv", f'a,b\n"1",2\n{row}{line_end}')).n_rows == 2


@given(st.lists(st.lists(st.text('a",;\n\r é', max_size=4), min_size=2, max_size=2), min_size=1, max_size=4))
def test_what_is_written_as_csv_is_read_back(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    table = pa.table({"x": [row[0] for row in rows], "y,z": [row[1] for row in rows]})
    write_table(table, path)
    assert cells(open_table(path)) == table.to_pydict()


# ---- Parquet, Arrow IPC, paths ----


TABLE = pa.table(
    {"zip": ["02139", "53715", None], "age": pa.array([31, None, 64], pa.int16()), "pay": [1.5, 2.0, 3.0]}
)


def test_parquet_is_seen_by_content(tmp_path):
    pq.write_table(TABLE, tmp_path / "t.data")
    source = open_table(str(tmp_path / "t.data"))
    assert (source.names, source.n_rows, source.kind) == (("zip", "age", "pay"), 3, "parquet")
    assert cells(source) == TABLE.to_pydict()
    assert release_format(source) == "parquet"
    assert pa.types.is_dictionary(source.column("zip").type)


def test_parquet_columns_are_read_one_at_a_time(tmp_path, monkeypatch):
    pq.write_table(TABLE, tmp_path / "t.parquet")
    source = open_table(tmp_path / "t.parquet")
    asked, read = [], pq.ParquetFile.read

    def note_and_read(self, columns):
        asked.append(columns)
        return read(self, columns)

    monkeypatch.setattr(pq.ParquetFile, "read", note_and_read)
    source.column("age")
    assert asked == [["age"]]


@pytest.mark.parametrize("pattern", ["", "part-*.parquet", "**/*.parquet"])
def test_a_folder_or_glob_of_parquet_parts_is_one_table(tmp_path, pattern):
    for number, part in enumerate([TABLE, TABLE.slice(1).select(["age", "pay", "zip"]), TABLE.slice(3)]):
        pq.write_table(part, tmp_path / f"part-{number}.parquet")
    write(tmp_path / "_SUCCESS", b"")
    write(tmp_path / ".part-0.parquet.crc", b"crc")
    source = open_table(tmp_path / pattern)
    assert (source.n_rows, source.kind) == (5, "parquet")
    assert cells(source) == pa.concat_tables([TABLE, TABLE.slice(1)]).to_pydict()


def test_parts_may_differ_in_the_width_of_a_type_but_not_in_its_kind(tmp_path):
    for number, kind in enumerate([pa.int16(), pa.int64(), pa.null()]):
        pq.write_table(pa.table({"a": pa.array([None], kind)}), tmp_path / f"{number}.parquet")
    assert open_table(tmp_path).column("a").type == pa.int64()
    pq.write_table(pa.table({"a": [SECRET]}), tmp_path / "3.parquet")
    said = refusal(open_table(tmp_path).column, "a")
    assert said == f"Column 'a' has different types in different parts of {tmp_path}."


def test_a_name_with_a_dot_is_told_from_its_beginning(tmp_path):
    pq.write_table(pa.table({"a.b": [1], "a": [2]}), tmp_path / "t.parquet")
    assert cells(open_table(tmp_path / "t.parquet")) == {"a.b": [1], "a": [2]}


@pytest.mark.parametrize("compression", [None, "lz4"])
@pytest.mark.parametrize("writer", [pa.ipc.new_file, pa.ipc.new_stream])
def test_arrow_ipc_is_read_as_file_and_as_stream(tmp_path, writer, compression):
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with writer(str(tmp_path / "t.arrow"), TABLE.schema, options=options) as out:
        out.write_table(TABLE)
    source = open_table(tmp_path / "t.arrow")
    assert cells(source) == TABLE.to_pydict()
    assert (source.kind, release_format(source)) == ("arrow", "parquet")


def test_a_file_whose_name_looks_like_a_pattern_is_opened_by_its_name(tmp_path):
    assert open_table(write(tmp_path / "t[1].csv", "a,b\n1,2\n")).names == ("a", "b")


def test_a_row_number_that_pandas_stored_in_parquet_is_no_column(tmp_path):
    pd.DataFrame({"a": [1, 2]}, index=[7, 9]).to_parquet(tmp_path / "t.parquet")
    assert open_table(tmp_path / "t.parquet").names == ("a",)


def parquet_bytes(table: pa.Table, **options) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, **options)
    return out.getvalue()


def ipc_bytes(table: pa.Table) -> bytes:
    out = io.BytesIO()
    with pa.ipc.new_file(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue()


SECRETS = pa.table({"a": [SECRET] * 50, "b": [str(i) for i in range(50)]})

BAD_BINARY = {
    "parquet cut short": (
        "t.parquet",
        parquet_bytes(SECRETS)[:-20],
        "no Parquet file, or a damaged or cut-off one",
    ),
    "parquet, only its magic": ("t.parquet", b"PAR1", "no Parquet file, or a damaged or cut-off one"),
    "csv named parquet": ("t.parquet", b"a,b\nSECRET-CELL,2\n", "no parquet file inside, or a damaged one"),
    "empty parquet": ("t.parquet", b"", "is empty"),
    "parquet without rows": ("t.parquet", parquet_bytes(SECRETS.slice(50)), "has no rows"),
    "parquet without columns": ("t.parquet", parquet_bytes(pa.table({})), "has no columns"),
    "arrow cut short": (
        "t.arrow",
        ipc_bytes(SECRETS)[:-20],
        "no Arrow IPC file, or a damaged or cut-off one",
    ),
    "arrow stream of rubbish": ("t.arrow", b"\xff\xff\xff\xff" + b"SECRET-CELL" * 9, "no Arrow IPC file"),
    "duplicate columns": (
        "t.arrow",
        ipc_bytes(pa.table([[1], [2]], names=["a", "a"])),
        "Columns 1 and 2 of {path} have the same name",
    ),
}


@pytest.mark.parametrize("case", BAD_BINARY)
def test_bad_parquet_and_arrow_are_refused_in_one_sentence(tmp_path, case):
    name, data, sentence = BAD_BINARY[case]
    path = write(tmp_path / name, data)
    said = refusal(open_table, path)
    assert sentence.format(path=path) in said
    assert str(path) in said


def test_a_parquet_page_that_is_damaged_is_refused_when_its_column_is_read(tmp_path):
    data = bytearray(parquet_bytes(SECRETS, compression="gzip", use_dictionary=False))
    data[8:60] = b"\xff" * 52
    source = open_table(write(tmp_path / "t.parquet", bytes(data)))
    assert "damaged or cut-off" in refusal(source.column, "a")


def test_a_file_that_changes_between_two_columns_is_refused(tmp_path):
    pq.write_table(SECRETS, tmp_path / "t.parquet")
    source = open_table(tmp_path / "t.parquet")
    (tmp_path / "t.parquet").unlink()
    assert refusal(source.column, "a") == f"{tmp_path}/t.parquet cannot be read: No such file or directory."


def test_a_path_that_leads_nowhere_is_refused(tmp_path):
    missing, pattern = tmp_path / "no.csv", tmp_path / "no-*.parquet"
    assert refusal(open_table, missing) == f"There is no file or folder {missing}; check the path."
    assert refusal(open_table, str(pattern)) == f"No file matches {pattern}; check the path."
    assert refusal(open_table, tmp_path) == f"The folder {tmp_path} holds no Parquet files (*.parquet)."


def test_parts_with_other_columns_are_refused(tmp_path):
    pq.write_table(SECRETS, tmp_path / "0.parquet")
    pq.write_table(SECRETS.select(["a"]), tmp_path / "1.parquet")
    assert "has other columns than" in refusal(open_table, tmp_path)


def test_a_folder_partitioned_by_a_column_is_refused_because_the_files_lack_it(tmp_path):
    (tmp_path / f"a={SECRET}").mkdir()
    pq.write_table(SECRETS, tmp_path / f"a={SECRET}" / "0.parquet")
    assert "partitioned by a column" in refusal(open_table, tmp_path)


def test_a_file_without_permission_is_refused(tmp_path, monkeypatch):
    path = write(tmp_path / "t.csv", "a,b\n1,2\n")

    def deny(*arguments):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", deny)  # root may read everything
    assert refusal(open_table, path) == f"{path} cannot be read: Permission denied."


def test_a_column_that_the_table_lacks_is_refused_with_the_nearest_name(tmp_path):
    source = open_table(write(tmp_path / "t.csv", "education,b\n1,2\n"))
    assert refusal(source.column, "eduction").endswith("has no column 'eduction'. Did you mean 'education'?")


# ---- frames ----


FRAME = {"zip": ["02139", "53715", None], "age": [31, 40, 64]}


FRAMES = {
    "pandas": ("pandas", lambda: pd.DataFrame(FRAME, index=[5, 6, 7])),
    "pandas, named index": ("pandas", lambda: pd.DataFrame(FRAME, index=pd.Index([*"pqr"], name="patient"))),
    "polars": ("polars", lambda: pl.DataFrame(FRAME)),
    "pyarrow": ("pyarrow", lambda: pa.table(FRAME)),
    "pyarrow batch": ("pyarrow", lambda: pa.record_batch(FRAME)),
    "pyarrow reader": ("pyarrow", lambda: pa.table(FRAME).to_reader()),
    "pyarrow with an index of pandas": (
        "pyarrow",
        lambda: pa.Table.from_pandas(pd.DataFrame(FRAME, index=[5, 6, 7])),
    ),
    "duckdb": ("duckdb", lambda: duckdb.from_arrow(pa.table(FRAME))),
    "another exporter": ("arrow", lambda: SimpleExporter(pa.table(FRAME))),
}


class SimpleExporter:
    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("case", FRAMES)
def test_every_kind_of_frame_comes_in_without_its_index_and_goes_back_as_it_came(case):
    kind, make = FRAMES[case]
    source = open_table(make())
    assert (source.kind, source.names, source.n_rows) == (kind, ("zip", "age"), 3)
    assert release_format(source) == "parquet"
    assert cells(source) == FRAME
    back = hand_back(pa.table({"age": pa.array(["[30, 40)", "[30, 40)", "*"]).dictionary_encode()}), source)
    expected = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "duckdb": duckdb.DuckDBPyRelation}.get(
        kind, pa.Table
    )
    assert type(back) is expected
    assert pa.table(back).column("age").to_pylist() == ["[30, 40)", "[30, 40)", "*"]


def test_a_path_goes_back_as_an_arrow_table(tmp_path):
    source = open_table(write(tmp_path / "t.csv", "a,b\n1,2\n"))
    assert hand_back(TABLE, source).equals(TABLE)


@pytest.mark.parametrize(
    "series",
    [
        pd.Series(["5", "7", None], dtype=object),
        pd.Series([5, "7", None], dtype=object),
        pd.Series([5, 7, np.nan]),
        pd.Series([5, 7, None], dtype="Int8"),
        pd.Series(["5", "7", None], dtype="category"),
        pd.Series([5, 7, None], dtype="category"),
        pd.Series(["5", "7", None], dtype="string"),
        pd.Series([5, 7, None], dtype=pd.ArrowDtype(pa.int64())),
        pd.Series([b"5", b"7", None]),
        pd.Series([decimal.Decimal(5), decimal.Decimal(7), None]),
    ],
    ids=lambda series: str(series.dtype),
)
def test_every_kind_of_pandas_column_gives_its_texts_and_numbers(series):
    column = open_table(pd.DataFrame({"age": series})).column("age")
    assert texts(column, attribute()).to_pylist() == ["5", "7", None]
    assert numbers(column, attribute(Kind.NUMBER)).to_pylist() == [5, 7, None]


@pytest.mark.parametrize("other", [SECRET, 5, 2.5, True, None, b"\xff", "\ud800", 2**70, [1]], ids=repr)
def test_the_text_of_an_object_does_not_depend_on_others_in_its_column(other):
    """Or one row would change what all others say, and no noise is made for that."""
    cases: list[tuple[list[Any], list[str]]] = [
        ([5.0, 2.5], ["5", "2.5"]),
        ([True, False], ["true", "false"]),
        (["a", "5.0"], ["a", "5.0"]),
        ([b"a", b"b"], ["a", "b"]),
        (
            [pd.Timestamp("2024-03-05"), pd.Timestamp("2024-03-05 10:00")],
            ["2024-03-05", "2024-03-05 10:00:00"],
        ),
    ]
    for objects, words in cases:
        frame = pd.DataFrame({"x": pd.Series([*objects, other], dtype=object)})
        assert lenient_texts(open_table(frame).column("x"), attribute()).to_pylist()[:2] == words


def test_pandas_intervals_and_periods_read_as_their_text():
    frame = pd.DataFrame(
        {"age": pd.cut([1, 7], [0, 5, 10]), "when": pd.period_range("2024-03", periods=2, freq="M")}
    )
    source = open_table(frame)
    assert texts(source.column("age"), attribute()).to_pylist() == ["(0, 5]", "(5, 10]"]
    assert texts(source.column("when"), attribute()).to_pylist() == ["2024-03", "2024-04"]
    read = open_table(frame, any_text=True).column
    assert lenient_texts(read("age"), attribute()).to_pylist() == ["(0, 5]", "(5, 10]"]
    assert lenient_texts(read("when"), attribute()).to_pylist() == ["2024-03", "2024-04"]


def test_pandas_columns_with_numbers_for_names_are_named_by_their_text():
    assert cells(open_table(pd.DataFrame({0: ["x"], 1: ["y"]}))) == {"0": ["x"], "1": ["y"]}


def test_polars_categories_come_in_without_those_that_no_row_has():
    enum = pl.Series(["u", None, "v"], dtype=pl.Enum(["w", "v", "u"]))
    column = open_table(pl.DataFrame({"age": enum})).column("age")
    assert sorted(texts(column, attribute()).dictionary.to_pylist()) == ["u", "v"]


@pytest.mark.parametrize(
    ("frame", "sentence"),
    [
        (pd.DataFrame({"a": []}), "pandas.DataFrame has no rows"),
        (pd.DataFrame(index=[1, 2]), "pandas.DataFrame has no columns"),
        (
            pd.DataFrame([[SECRET, 2]], columns=["a", "a"]),
            "Columns 1 and 2 of pandas.DataFrame have the same name",
        ),
        (
            pd.DataFrame([[SECRET, 2]], columns=[1, "1"]),
            "Columns 1 and 2 of pandas.DataFrame have the same name",
        ),
        (pl.DataFrame({"a": []}), "polars.DataFrame has no rows"),
        (pl.LazyFrame({"a": [SECRET]}), "not a polars.LazyFrame"),
        (pd.Series([SECRET]), "pandas.Series cannot be read as an Arrow table"),
        (pa.table({"a": []}), "pyarrow.Table has no rows"),
        ({"a": [SECRET]}, "not a builtins.dict"),
        ([[SECRET]], "not a builtins.list"),
        (np.array([SECRET]), "not a numpy.ndarray"),
        (None, "not a builtins.NoneType"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_is_no_table_is_refused(frame, sentence):
    assert sentence in refusal(open_table, frame)


def test_a_query_that_fails_while_it_runs_is_refused_without_its_own_message():
    relation = duckdb.sql(f"select '{SECRET}'::int as a")
    assert refusal(open_table, relation) == (
        "duckdb.DuckDBPyRelation cannot be read as an Arrow table; does its query run?"
    )


def test_tables_work_where_no_frame_library_is_installed():
    code = """if True:
        import sys
        class NotInstalled:
            def find_spec(self, name, path=None, target=None):
                if name in ("pandas", "polars", "duckdb"):
                    raise ModuleNotFoundError(name)
        sys.meta_path.insert(0, NotInstalled())
        import pyarrow as pa
        from sfumato.table.cells import texts
        from sfumato.table.opening import open_table
        from sfumato.table.write import hand_back
        from sfumato.policy.schema import Attribute
        source = open_table(pa.table({"a": [1]}))
        column = texts(source.column("a"), Attribute("a", role="other"))
        assert hand_back(pa.table({"a": column}), source).to_pydict() == {"a": ["1"]}
    """
    environment = {**os.environ, "PYTHONPATH": str(Path(csv_file.__file__).parents[3])}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0


# ---- texts ----


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pa.array(["a", "", None, " "]), ["a", None, None, " "]),
        (pa.array([5, None, -7], pa.int8()), ["5", None, "-7"]),
        (pa.array([5.0, None, 7.0, float("nan"), -0.0]), ["5", None, "7", None, "0"]),
        (pa.array([5.0, 2.5], pa.float32()), ["5", "2.5"]),
        (pa.array([1e300, float("inf")]), ["1e+300", "inf"]),
        (pa.array([True, None, False]), ["true", None, "false"]),
        (pa.array([decimal.Decimal("1.50")]), ["1.50"]),
        (pa.array([dt.date(2024, 3, 5)]), ["2024-03-05"]),
        (pa.array(["2024-03-05", None]).cast(pa.timestamp("ns")), ["2024-03-05", None]),
        (pa.array(["2024-03-05T10:30"]).cast(pa.timestamp("us")), ["2024-03-05 10:30:00"]),
        (pa.array(["2024-03-05T01:02:03.0005"]).cast(pa.timestamp("us")), ["2024-03-05 01:02:03.000500"]),
        (pa.array(["a", "b", "a"]).dictionary_encode(), ["a", "b", "a"]),
        (pa.array([5.0, None]).dictionary_encode(), ["5", None]),
        (pa.array(["é", "b"], pa.large_string()), ["é", "b"]),
        (pa.array(["é", None], pa.string_view()), ["é", None]),
        (pa.array([b"\xc3\xa9", None]), ["é", None]),
        (pa.nulls(2), [None, None]),
        (pa.chunked_array([["a", "b"], [], ["b", "c"]]), ["a", "b", "b", "c"]),
        (
            pa.chunked_array([pa.array(["a", "b"]).dictionary_encode(), pa.array(["b"]).dictionary_encode()]),
            [*"abb"],
        ),
        (pa.chunked_array([], pa.string()), []),
    ],
    ids=lambda value: str(value.type) if hasattr(value, "type") else "",
)
def test_cells_of_every_type_have_a_sensible_text(values, expected):
    found = texts(values, attribute())
    assert found.type == TEXTS
    assert found.to_pylist() == expected
    assert sorted(found.dictionary.to_pylist()) == sorted(set(expected) - {None})


def test_declared_missing_values_are_missing_from_text_and_from_its_dictionary():
    found = texts(pa.array(["?", "a", "NA", "a", "?"]), attribute(Kind.CATEGORY, "?", "NA"))
    assert (found.to_pylist(), found.dictionary.to_pylist()) == ([None, "a", None, "a", None], ["a"])


def test_texts_of_a_dictionary_merge_doubles_and_drop_values_that_no_row_has():
    column = pa.DictionaryArray.from_arrays(pa.array([1, 3, 0, None], pa.uint8()), ["a", "b", SECRET, "a"])
    found = texts(column, attribute())
    assert (found.to_pylist(), found.dictionary.to_pylist()) == (["b", "a", "a", None], ["a", "b"])


def test_a_null_inside_a_dictionary_is_missing():
    chunk = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", None]))
    for column in (chunk, pa.chunked_array([chunk, chunk])):
        assert texts(column, attribute()).to_pylist()[:2] == ["a", None]


def test_many_small_dictionaries_may_need_a_wider_index():
    small = pa.dictionary(pa.int8(), pa.string())
    chunks = [
        pa.array([str(i) for i in range(k, k + 100)]).dictionary_encode().cast(small) for k in (0, 100, 200)
    ]
    assert texts(pa.chunked_array(chunks), attribute()).to_pylist() == [str(i) for i in range(300)]


# ---- numbers ----


@pytest.mark.parametrize("encode", [False, True])
@pytest.mark.parametrize(
    ("cells_", "expected", "kind"),
    [
        ([" 1", "2 ", "+3", "1e5", "-7.0"], [1, 2, 3, 100000, -7], pa.int64()),
        (["1", "-0.5", ".5", "2.", "1E-3"], [1, -0.5, 0.5, 2, 0.001], pa.float64()),
        (["", None, "  ", "nan", "NaN", "4"], [None, None, None, None, None, 4], pa.int64()),
        (["+1", "+.5", "nan"], [1, 0.5, None], pa.float64()),
        (["9007199254740993", "007"], [9007199254740993, 7], pa.int64()),
        (["1e30", "1"], [1e30, 1], pa.float64()),
        ([None, ""], [None, None], pa.int64()),
    ],
)
def test_text_is_read_as_numbers(cells_, expected, kind, encode):
    column = pa.array(cells_, pa.string())
    found = numbers(column.dictionary_encode() if encode else column, attribute(Kind.NUMBER))
    assert (found.type, found.to_pylist()) == (kind, expected)


@pytest.mark.parametrize(
    ("values", "expected", "kind"),
    [
        (pa.array([1, None], pa.uint8()), [1, None], pa.int64()),
        (pa.array([2**63], pa.uint64()), [2.0**63], pa.float64()),
        (pa.array([2**53 + 1, None]), [2**53 + 1, None], pa.int64()),
        (pa.array([1.0, float("nan"), None]), [1, None, None], pa.int64()),
        (pa.array([1.5, 2.0], pa.float32()), [1.5, 2.0], pa.float64()),
        (pa.array([True, False]), [1, 0], pa.int64()),
        (pa.array([decimal.Decimal("2.00")]), [2], pa.int64()),
        (pa.array([decimal.Decimal("2.50")]), [2.5], pa.float64()),
        (pa.nulls(2), [None, None], pa.int64()),
        (pa.chunked_array([[1], [2, 3]]), [1, 2, 3], pa.int64()),
        (pa.chunked_array([], pa.int64()), [], pa.int64()),
    ],
    ids=lambda value: str(value.type) if hasattr(value, "type") else "",
)
def test_numbers_of_every_type_become_int64_or_float64(values, expected, kind):
    found = numbers(values, attribute(Kind.NUMBER))
    assert (found.type, found.to_pylist()) == (kind, expected)


@pytest.mark.parametrize("column", [["1", "-9", "?"], ["1.0", "-9.0", " ? "]])
def test_declared_missing_values_are_missing_numbers(column):
    assert numbers(pa.array(column), attribute(Kind.NUMBER, "-9", "?")).to_pylist() == [1, None, None]


def test_declared_missing_values_are_missing_in_a_column_of_numbers_too():
    assert numbers(pa.array([1, -9]), attribute(Kind.NUMBER, "-9", "?")).to_pylist() == [1, None]
    assert numbers(pa.array([1.5, -9]), attribute(Kind.NUMBER, "-9.0")).to_pylist() == [1.5, None]


@pytest.mark.parametrize("encode", [False, True])
@pytest.mark.parametrize(
    "bad", [SECRET, "1,000", "0x10", "1_000", "1 000", "1e", "--1", "1d", "١", "nan(1)", "$5"]
)
def test_text_in_a_number_column_is_refused_with_count_and_row(bad, encode):
    column = pa.array(["1", "", "2", bad, "3", bad])
    said = refusal(numbers, column.dictionary_encode() if encode else column, attribute(Kind.NUMBER))
    assert said == (
        "Column 'age' has 2 cells without a readable number (the first in row 4); "
        "mend them, or list the texts that stand for a missing value under missing-values."
    )
    assert bad not in said


@pytest.mark.parametrize("bad", ["inf", "-Infinity", "1e999", "+inf"])
def test_infinite_numbers_in_text_are_refused(bad):
    said = refusal(numbers, pa.array(["1", bad]), attribute(Kind.NUMBER))
    assert said.startswith("Column 'age' has 1 cell with an infinite number (the first in row 2);")


def test_infinite_floats_are_refused():
    said = refusal(numbers, pa.chunked_array([[1.0], [2.0, float("-inf")]]), attribute(Kind.NUMBER))
    assert said.startswith("Column 'age' has 1 cell with an infinite number (the first in row 3);")


def test_a_bad_value_of_a_dictionary_that_no_row_has_is_no_fault():
    column = pa.DictionaryArray.from_arrays(pa.array([0]), ["1", SECRET])
    assert numbers(column, attribute(Kind.NUMBER)).to_pylist() == [1]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**63), 2**63 - 1)))
def test_numbers_survive_their_own_text(values):
    found = numbers(pa.array([repr(value) for value in values], pa.string()), attribute(Kind.NUMBER))
    expected = [float(value) for value in values] if found.type == pa.float64() else values
    assert found.to_pylist() == expected


# ---- dates ----


@pytest.mark.parametrize(
    "values",
    [
        pa.array([" 2024-02-29 ", "", "1969-12-31"]),
        pa.array(["2024-02-29 10:30", None, "1969-12-31T23:59:59.5Z"]),
        pa.array(["2024-02-29", "?", "1969-12-31"]).dictionary_encode(),
        pa.array(["2024-02-29", "1900-01-01", "1969-12-31"]).cast(pa.date32()),
        pa.array(["2024-02-29", None, "1969-12-31"]).cast(pa.date64()),
        pa.array(["2024-02-29 10:30", None, "1969-12-31 23:59"]).cast(pa.timestamp("ns")),
        pa.array(["2024-02-29 22:59", None, "1969-12-31 22:59"])
        .cast(pa.timestamp("s"))
        .cast(pa.timestamp("s", "+01:00")),
        pa.array(["2024-02-29", "1900-01-01", "1969-12-31"]).cast(pa.date32()).dictionary_encode(),
    ],
    ids=lambda value: str(value.type),
)
def test_dates_are_read_as_days(values):
    found = dates(values, attribute(Kind.DATE, "?", "1900-01-01"))
    assert found.type == pa.date32()
    assert found.to_pylist() == [dt.date(2024, 2, 29), None, dt.date(1969, 12, 31)]


@pytest.mark.parametrize(
    "bad",
    [
        SECRET,
        "2024-02-30",
        "2024-13-01",
        "2024-3-5",
        "05/03/2024",
        "20240305",
        "2024-03-05x",
        "2024-03-05 SECRET",
    ],
)
def test_text_that_is_no_iso_date_is_refused_with_count_and_row(bad):
    said = refusal(dates, pa.array(["2024-03-05", None, bad]), attribute(Kind.DATE))
    assert said.startswith(
        "Column 'age' has 1 cell without a readable date such as 2024-03-05 (the first in row 3);"
    )


# ---- columns that cannot be what they should ----


@pytest.mark.parametrize(
    ("read", "values", "why"),
    [
        (numbers, pa.array([dt.date(2024, 3, 5)]), "stored as date32[day], which is not a number"),
        (dates, pa.array([20240305]), "stored as int64, which is not a date"),
        (texts, pa.array([[SECRET]]), "where a cell must hold one value"),
        (numbers, pa.array([{"a": SECRET}]), "where a cell must hold one value"),
        (dates, pa.array([[SECRET]]).cast(pa.list_(pa.string())), "where a cell must hold one value"),
        (texts, pa.array([(1, 2, 3)], pa.month_day_nano_interval()), "which has no text"),
        (texts, pa.array([b"SECRET-CELL\xff"]), "holds text that is not UTF-8"),
        (numbers, pa.array([b"SECRET-CELL\xff"]).view(pa.string()), "holds text that is not UTF-8"),
        (
            texts,
            pa.array([b"SECRET-CELL\xff"]).view(pa.string()).dictionary_encode(),
            "holds text that is not UTF-8",
        ),
    ],
)
def test_a_column_of_the_wrong_type_is_refused(read, values, why):
    said = refusal(read, values, attribute())
    assert said.startswith("Column 'age' ")
    assert why in said


# ---- the way out ----


def test_csv_is_quoted_only_where_it_must_be(tmp_path):
    table = pa.table(
        {
            "plain": ["a", "b c", None],
            "a,b": ["x,y", 'say "hi"', "two\nlines"],
            "label": pa.array(["[0, 5)", "*", None]).dictionary_encode(),
            "n": [1.5, None, -2],
            "day": pa.array([dt.date(2024, 3, 5)] * 3),
        }
    )
    write_table(table, tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_bytes() == (
        b'plain,"a,b",label,n,day\n'
        b'a,"x,y","[0, 5)",1.5,2024-03-05\n'
        b'b c,"say ""hi""",*,,2024-03-05\n'
        b',"two\nlines",,-2,2024-03-05\n'
    )


@pytest.mark.parametrize("encode", [False, True])
def test_a_missing_cell_of_a_single_column_is_not_written_as_a_blank_line(tmp_path, encode):
    column = pa.array(["a", None, "", "b"])
    write_table(pa.table({"x": column.dictionary_encode() if encode else column}), tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == 'x\na\n""\n""\nb\n'
    assert cells(open_table(tmp_path / "t.csv")) == {"x": ["a", "", "", "b"]}


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet", "T.CSV.GZ"])
def test_a_written_table_reads_back_and_its_bytes_repeat(tmp_path, name):
    table = pa.table({"a": ["x", "y"] * 70_000, "b": pa.array(["u", "v"] * 70_000).dictionary_encode()})
    write_table(table, tmp_path / name)
    first = (tmp_path / name).read_bytes()
    write_table(table, tmp_path / name)
    assert (tmp_path / name).read_bytes() == first
    back = open_table(tmp_path / name)
    assert all(
        back.column(column).cast(pa.string()).equals(table.column(column).cast(pa.string()))
        for column in "ab"
    )
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_parquet_has_dictionaries_only_where_asked_and_neither_statistics_nor_metadata(tmp_path):
    table = pa.table({"plain": ["x", "x"], "label": pa.array(["u", "u"]).dictionary_encode()})
    table = table.replace_schema_metadata({"pandas": SECRET})
    write_table(table, tmp_path / "t.parquet")
    file = pq.ParquetFile(tmp_path / "t.parquet")
    plain, label = (file.metadata.row_group(0).column(i) for i in (0, 1))
    assert (plain.has_dictionary_page, label.has_dictionary_page) == (False, True)
    assert not plain.is_stats_set
    assert not label.is_stats_set
    assert SECRET.encode() not in (tmp_path / "t.parquet").read_bytes()
    assert file.schema_arrow.names == ["plain", "label"]


def test_what_leaves_carries_no_value_that_no_row_has_and_no_trace_of_the_input_order(tmp_path):
    raw = pa.DictionaryArray.from_arrays(pa.array([3, 1, 3]), ["first", "second", SECRET, "fourth"])
    field = pa.field("x", raw.type, metadata={"_PL_ENUM_VALUES": SECRET})
    table = pa.Table.from_arrays([raw], schema=pa.schema([field]))
    for leaving in (compact(table), hand_back(table, open_table(table))):
        assert leaving.column("x").chunk(0).dictionary.to_pylist() == ["fourth", "second"]
        assert leaving.column("x").to_pylist() == ["fourth", "second", "fourth"]
        assert leaving.schema.field("x").metadata is None
    assert list(hand_back(table, open_table(pd.DataFrame({"a": [1]})))["x"].cat.categories) == [
        "fourth",
        "second",
    ]
    write_table(table, tmp_path / "t.parquet")
    assert SECRET.encode() not in (tmp_path / "t.parquet").read_bytes()


@pytest.mark.parametrize("gap", [[], [None]])
@pytest.mark.parametrize("start", [0, 1, 90])
def test_rows_that_leave_hold_nothing_of_the_rows_beside_them(gap, start):
    whole = compact(pa.table({"x": pa.array(["a", "b", *gap, "a"] * 100).dictionary_encode()}))
    assert compact(whole).equals(whole)
    part = whole.slice(start, 4)
    (left,) = compact(part).column("x").chunks
    assert left.to_pylist() == part.column("x").to_pylist()
    assert left.dictionary.to_pylist() == ["a", "b"]
    assert left.indices.type == pa.int32()
    assert left.indices.buffers()[1].size <= 64  # Arrow fills up to that


def test_a_sorted_dictionary_of_which_all_is_used_is_compact_as_it_is():
    column = pa.DictionaryArray.from_arrays(pa.array([1, 0, 1], pa.int8()), ["a", "b"])
    (left,) = compact(pa.table({"x": column})).column("x").chunks
    assert (left.indices.type, left.to_pylist()) == (pa.int32(), ["b", "a", "b"])
    twice = pa.DictionaryArray.from_arrays(pa.array([0, 1]), ["a", "a"])
    (left,) = compact(pa.table({"x": twice})).column("x").chunks
    assert left.dictionary.to_pylist() == ["a"]


@pytest.mark.parametrize("name", ["t.xlsx", "t", "t.gz", "t.json"])
def test_an_unknown_extension_is_refused_before_anything_is_written(tmp_path, name):
    said = refusal(write_table, TABLE, tmp_path / name)
    assert said.endswith("has an unknown extension; a table is written as .csv, .csv.gz or .parquet.")
    assert not list(tmp_path.iterdir())


def test_a_place_that_cannot_be_written_is_refused(tmp_path):
    assert "there is no folder" in refusal(write_table, TABLE, tmp_path / "no" / "t.csv")
    (tmp_path / "t.csv").mkdir()
    assert (
        refusal(write_table, TABLE, tmp_path / "t.csv")
        == f"{tmp_path}/t.csv cannot be written: it is not a file."
    )


@pytest.mark.parametrize(
    "interruption", [KeyboardInterrupt, SystemExit, ValueError, OSError(28, "No space left")]
)
def test_an_interrupted_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, interruption):
    path = write(tmp_path / "t.csv", "old")

    def fail(table, file):
        file.write(b"half a table")
        raise interruption

    monkeypatch.setattr(table_write, "_write_csv", fail)
    expected = TableError if isinstance(interruption, OSError) else interruption
    with pytest.raises(expected):
        write_table(TABLE, path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


# ---- chunk by chunk --------------------------------------------------------------------------------


def chunk(letters: str, index: pa.DataType | None = None) -> pa.Table:
    """A row for each letter, with a dictionary that no other chunk has."""
    words = sorted({*letters, SECRET}, reverse=True)
    at = pa.array([words.index(letter) for letter in letters], index or pa.int32())
    label = pa.DictionaryArray.from_arrays(at, words)
    return pa.table({"label": label, "n": [ord(letter) for letter in letters], "text": list(letters)})


CHUNKS = ("abc", "", "b", "zzzzzzz", "ca")


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet"])
def test_chunks_with_dictionaries_of_their_own_make_one_table(tmp_path, name):
    with TableWriter(tmp_path / name, row_group=4) as writer:
        for number, letters in enumerate(CHUNKS):
            writer.append(chunk(letters, pa.int8() if number % 2 else None))
            assert [path.name.startswith(".sfumato") for path in tmp_path.iterdir()] == [True]
    letters = "".join(CHUNKS)
    assert writer.n_rows == len(letters)
    back = open_table(tmp_path / name)
    assert [text.as_py() for text in back.column("label")] == list(letters)
    assert [int(n.as_py()) for n in back.column("n")] == list(map(ord, letters))
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_chunks_of_csv_give_the_bytes_of_the_whole(tmp_path, name):
    whole = pa.concat_tables(map(chunk, CHUNKS), promote_options="permissive")
    write_table(whole, tmp_path / f"whole-{name}")
    with TableWriter(tmp_path / name) as writer:
        for letters in CHUNKS:
            writer.append(chunk(letters))
    parts = [tmp_path / name, tmp_path / f"whole-{name}"]
    assert len({gzip.decompress(p.read_bytes()) if "gz" in name else p.read_bytes() for p in parts}) == 1


def test_row_groups_are_gathered_from_small_chunks_and_cut_from_large_ones(tmp_path):
    with TableWriter(tmp_path / "t.parquet", row_group=4) as writer:
        for letters in ("a", "bb", "ab", "abcabcabcabc"):
            writer.append(chunk(letters))
    file = pq.ParquetFile(tmp_path / "t.parquet")
    assert [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)] == [4, 4, 4, 4, 1]
    for group in range(file.num_row_groups):  # Parquet gives up a dictionary that changes within a row group
        label, n = (file.metadata.row_group(group).column(i) for i in (0, 1))
        assert (label.has_dictionary_page, n.has_dictionary_page) == (True, False)
        assert not label.is_stats_set
        assert file.read_row_group(group).column("label").chunk(0).dictionary.to_pylist() == sorted(
            set(file.read_row_group(group).column("label").to_pylist())
        )
    assert SECRET.encode() not in (tmp_path / "t.parquet").read_bytes()


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet"])
def test_a_table_without_rows_still_has_its_columns(tmp_path, name):
    with TableWriter(tmp_path / name, chunk("a").schema):
        pass
    if name.endswith("parquet"):
        assert pq.read_table(tmp_path / name).column_names == ["label", "n", "text"]
    else:
        assert "no rows" in refusal(open_table, tmp_path / name)


def test_what_is_stored_otherwise_in_a_later_chunk_is_stored_as_in_the_first(tmp_path):
    with TableWriter(tmp_path / "t.parquet") as writer:
        writer.append(pa.table({"a": pa.array(["x"]).dictionary_encode(), "b": ["x"], "n": [1]}))
        more = pa.array(["y"])
        writer.append(pa.record_batch({"a": more, "b": more.dictionary_encode(), "n": pa.nulls(1)}))
    assert pq.read_table(tmp_path / "t.parquet").to_pydict() == {
        "a": ["x", "y"],
        "b": ["x", "y"],
        "n": [1, None],
    }


@pytest.mark.parametrize("wrong", [{"b": [1]}, {"a": [SECRET]}, {"a": [1], "b": [1]}])
def test_chunks_that_do_not_fit_together_are_a_bug_and_leave_nothing(tmp_path, wrong):
    def both() -> None:
        with TableWriter(tmp_path / "t.parquet") as writer:
            writer.append(pa.table({"a": [1]}))
            writer.append(pa.table(wrong))

    with pytest.raises(InternalError) as raised:
        both()
    assert SECRET not in str(raised.value)
    assert not list(tmp_path.iterdir())
    with pytest.raises(InternalError), TableWriter(tmp_path / "t.parquet"):
        pass
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet"])
@pytest.mark.parametrize("interruption", [KeyboardInterrupt, ValueError, OSError(28, "of another file")])
def test_a_failure_between_chunks_leaves_the_old_file_and_is_passed_on(tmp_path, name, interruption):
    path = write(tmp_path / name, "old")

    def fail() -> None:
        with TableWriter(path, row_group=2) as writer:
            writer.append(chunk("abcabc"))
            raise interruption

    with pytest.raises(interruption if isinstance(interruption, type) else OSError) as raised:
        fail()
    assert not isinstance(raised.value, TableError)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


FULL_DISK = """
import resource, sys
import numpy as np, pyarrow as pa
from sfumato.errors import InternalError, TableError
from sfumato.table.write import TableWriter
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
numbers = np.random.default_rng(0).integers(0, 2**60, 50_000)
try:
    with TableWriter(sys.argv[1], row_group=int(sys.argv[2])) as writer:
        for _ in range(10):
            writer.append(pa.table({"a": numbers}))
except TableError as error:
    print(error)
"""


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet"])
@pytest.mark.parametrize("row_group", [10_000, 10_000_000])
def test_a_full_disk_is_one_sentence_and_leaves_nothing(tmp_path, name, row_group):
    command = [sys.executable, "-W", "error", "-c", FULL_DISK, tmp_path / name, str(row_group)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"{tmp_path / name} cannot be written: File too large.\n"
    assert done.stderr == ""
    assert not list(tmp_path.iterdir())


def test_replacing_follows_a_link_and_keeps_the_usual_permissions(tmp_path):
    target = write(tmp_path / "target.txt", "old")
    (tmp_path / "link.txt").symlink_to(target)
    with replace_atomically(tmp_path / "link.txt") as temporary:
        assert temporary.parent == tmp_path
        temporary.write_text("new")
        assert target.read_text() == "old"
    assert (tmp_path / "link.txt").is_symlink()
    assert target.read_text() == "new"
    usual = write(tmp_path / "usual.txt", "").stat().st_mode
    assert target.stat().st_mode == usual
