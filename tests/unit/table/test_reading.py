"""How the text of a table is written: encodings, decimal signs, dates."""

from __future__ import annotations

import gzip
import warnings
from datetime import date

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.errors import InputError, Notice, TableError
from sfumato.policy.schema import Kind, Role, Schema
from sfumato.profiling.profile import profile
from sfumato.table.cells import dates, lenient_ordered, numbers, texts
from sfumato.table.opening import open_table
from sfumato.table.reading import AS_USUAL, LOOKED_AT, Reading, in_usual_notation, open_as
from sfumato.table.text_encoding import Utf8Stream, is_western

SCHEMA = Schema.of(
    bmi={"role": "other", "kind": "number"}, born={"role": "other", "kind": "date"}, city="other"
)
PEOPLE = "bmi;born;city\n21,5;31.12.1980;Köln\n1.023,25;1.2.1999;Gießen\n;;Fürth\n"


def write(path, text: str, encoding: str = "utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


def opened(table, *, schema: Schema = SCHEMA, reading: Reading = AS_USUAL, **options):
    """The source, and the notices that were given."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        source = open_as(table, schema, reading, **options)
        cells = {name: source.column(name).to_pylist() for name in source.names}
    assert all(issubclass(each.category, Notice) for each in caught)
    return source, cells, [str(each.message) for each in caught]


# ---- encodings ----


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_latin_1_is_recognized_and_said(tmp_path, lazy, pack):
    path = tmp_path / "t.csv"
    path.write_bytes(pack("größe,city\n1,Köln\n2,Gießen\n".encode("latin-1")))
    _, cells, said = opened(path, lazy=lazy)
    assert cells == {"größe": ["1", "2"], "city": ["Köln", "Gießen"]}
    assert len(said) == 1
    assert "is read as cp1252 (Western European, latin-1)" in said[0]
    assert "Köln" not in said[0]


@pytest.mark.parametrize("lazy", [False, True])
def test_latin_1_is_recognized_beyond_the_first_megabyte(tmp_path, lazy):
    many = "1,plain\n" * 200_000
    path = write(tmp_path / "t.csv", f"a,city\n{many}2,Köln\n", "latin-1")
    _, cells, said = opened(path, lazy=lazy)
    assert cells["city"][-1] == "Köln"
    assert any("cp1252" in each for each in said)


def test_the_signs_that_only_cp1252_has_are_read(tmp_path):
    assert opened(write(tmp_path / "t.csv", "a,b\n1,5 €\n", "cp1252"))[1]["b"] == ["5 €"]


def test_utf_8_with_one_broken_letter_is_not_taken_for_latin_1(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n" + "1,Köln\n".encode() * 9 + b"2,K\xf6ln\n")
    with pytest.raises(TableError, match=r"not UTF-8 in row 10; name its encoding \(--encoding\)"):
        open_table(path)
    assert not is_western([path.read_bytes()])


@pytest.mark.parametrize("encoding", ["utf-16", "cp850", "latin-1", "utf-8", "utf-8-sig", "cp1250"])
@pytest.mark.parametrize("lazy", [False, True])
def test_a_named_encoding_is_taken_at_its_word(tmp_path, encoding, lazy):
    path = write(tmp_path / "t.csv", "ort,größe\nKöln,1\n", encoding)
    _, cells, said = opened(path, reading=Reading(encoding=encoding), lazy=lazy)
    assert (cells, said) == ({"ort": ["Köln"], "größe": ["1"]}, [])


def test_a_letter_that_is_cut_by_the_end_of_a_block_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr("sfumato.table.text_encoding.BLOCK_BYTES", 3)
    path = write(tmp_path / "t.csv", "a,b\n" + "ä,ö\n" * 50, "utf-16")
    assert opened(path, reading=Reading(encoding="utf-16"))[1] == {"a": ["ä"] * 50, "b": ["ö"] * 50}


def test_text_that_is_not_in_the_named_encoding_is_refused_with_its_line(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n1,2\n3,\x81\n")
    with pytest.raises(TableError, match=r"is no cp1252 text in line 3; name its encoding"):
        open_table(path, encoding="latin-1")


def test_a_stream_gives_no_more_bytes_than_it_is_asked_for():
    class Blocks:
        left = "é".encode("utf-16") * 100

        def read(self, size):
            out, self.left = self.left[:size], self.left[size:]
            return out

    stream = Utf8Stream(Blocks(), "utf-16", "t", any_text=False)
    parts = list(iter(lambda: stream.read(3), b""))
    assert max(map(len, parts)) <= 3
    assert b"".join(parts).decode().replace("\ufeff", "") == "é" * 100


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"encoding": "latn-1"}, "There is no text encoding 'latn-1'. Did you mean 'latin-1'?"),
        ({"encoding": "base64"}, "There is no text encoding 'base64'."),
        ({"encoding": ""}, "There is no text encoding ''."),
        ({"decimal": ";"}, "The decimal sign (--decimal) is . or , alone."),
        ({"dates": "%d.%m."}, "names day, month and year, such as %d.%m.%Y"),
        ({"dates": "day"}, "names day, month and year"),
        ({"dates": "%"}, "names day, month and year"),
    ],
)
def test_what_is_no_reading_is_refused(options, sentence):
    with pytest.raises(InputError) as caught:
        Reading(**options)
    assert sentence in str(caught.value)


# ---- decimal commas and dates ----


@pytest.mark.parametrize("lazy", [False, True])
def test_decimal_commas_and_german_dates_are_recognized_and_said(tmp_path, lazy):
    _, cells, said = opened(write(tmp_path / "t.csv", PEOPLE), lazy=lazy)
    assert cells["bmi"] == ["21.5", "1023.25", ""]
    assert cells["born"] == ["1980-12-31", "1999-02-01", ""]
    assert [each.partition(": ")[2][:28] for each in said] == [
        "numbers with a decimal comma",
        "dates written as day.month.y",
    ]


def test_they_can_be_declared_and_nothing_is_said_then(tmp_path):
    path = write(tmp_path / "t.csv", PEOPLE)
    reading = Reading(decimal=",", dates="%d.%m.%Y")
    assert opened(path, reading=reading)[1:] == ({**opened(path)[1]}, [])


@pytest.mark.parametrize(
    "cells",
    [["1,234"], ["1,234", "12,345,678"], ["1,5", "1.5"], ["1,5", "2.25"], ["12"], ["1.234"], ["a,b"], []],
)
def test_what_may_mean_something_else_is_no_decimal_comma(cells):
    table = pa.table({"bmi": pa.array(cells, pa.string())})
    assert opened(table, schema=Schema.of(bmi={"role": "other", "kind": "number"}), may_be_empty=True)[
        1:
    ] == ({"bmi": cells}, [])


@pytest.mark.parametrize(
    "cells", [["31.12.99"], ["31/12/1999"], ["12.31.1999"], ["30.02.1999"], ["31.12.1999", "1999-12-31"]]
)
def test_what_may_mean_something_else_is_no_german_date(cells):
    assert opened(pa.table({"born": cells}))[1:] == ({"born": cells}, [])


def test_only_columns_of_numbers_and_dates_are_rewritten(tmp_path):
    path = write(tmp_path / "t.csv", "bmi;city\n1,5;2,5\n3,5;1.2.1999\n")
    assert opened(path)[1] == {"bmi": ["1.5", "3.5"], "city": ["2,5", "1.2.1999"]}


def test_a_number_with_a_decimal_point_is_unreadable_where_a_comma_is_declared():
    source, cells, _ = opened(pa.table({"bmi": ["1,5", "1.5"]}), reading=Reading(decimal=","))
    assert cells["bmi"][0] == "1.5"
    with pytest.raises(TableError, match=r"1 cell without a readable number \(the first in row 2"):
        numbers(source.column("bmi"), SCHEMA["bmi"])


def test_a_text_that_stands_for_a_missing_value_stays_as_it_is():
    schema = Schema.of(bmi={"role": "other", "kind": "number", "missing_values": ("-9,0",)})
    source, _, said = opened(pa.table({"bmi": ["-9,0", "1,5"]}), schema=schema)
    assert numbers(source.column("bmi"), schema["bmi"]).to_pylist() == [None, 1.5]
    assert len(said) == 1


@pytest.mark.parametrize(
    ("form", "cell", "day"),
    [
        ("%m/%d/%Y", "12/31/1999", "1999-12-31"),
        ("%d.%m.%y", "31.12.99", "1999-12-31"),
        ("%d %b %Y", "31 Dec 1999", "1999-12-31"),
        ("%d.%m.%Y %H:%M", "31.12.1999 10:30", "1999-12-31"),
        ("%d.%m.%Y", "1999-12-31", "1999-12-31"),  # as usual, which cannot be mistaken
    ],
)
def test_dates_of_any_format_can_be_declared(form, cell, day):
    source, _, _ = opened(pa.table({"born": [f" {cell} "]}), reading=Reading(dates=form))
    assert str(dates(source.column("born"), SCHEMA["born"])[0]) == day


def test_a_date_that_could_be_mistaken_for_the_declared_format_is_refused():
    source, cells, _ = opened(
        pa.table({"born": ["2024-31-12", "2024-12-31"]}), reading=Reading(dates="%Y-%d-%m")
    )
    assert cells["born"][0] == "2024-12-31"
    with pytest.raises(TableError, match="1 cell without a readable date"):
        dates(source.column("born"), SCHEMA["born"])


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())])
def test_text_is_rewritten_however_it_is_stored(tmp_path, kind):
    table = pa.table({"bmi": pa.array(["1,5", None, "1.000,5", "1000,5"]).cast(kind)})
    path = tmp_path / "t.parquet"
    pq.write_table(table, path)
    for given in (table, path):
        source, cells, _ = opened(given)
        assert cells["bmi"] == ["1.5", None, "1000.5", "1000.5"]
        batches = pa.Table.from_batches(source.batches(["bmi"], rows=2))
        assert batches.column("bmi").to_pylist() == cells["bmi"]
        assert len(texts(source.column("bmi"), SCHEMA["bmi"]).dictionary) == 2


def test_numbers_that_are_stored_as_numbers_stay_so():
    source, _, said = opened(pa.table({"bmi": [1.5, 2.5]}), reading=Reading(decimal=","))
    assert (source.column("bmi").type, said) == (pa.float64(), [])


def test_memory_and_disk_look_at_the_same_rows(tmp_path):
    late = "bmi;city\n" + "12;x\n" * LOOKED_AT + "1,5;x\n"
    path = write(tmp_path / "t.csv", late)
    assert opened(path)[1:] == opened(path, lazy=True)[1:]
    assert opened(path)[2] == []


# ---- under differential privacy ----


def test_nothing_is_recognized_under_a_private_method(tmp_path):
    path = write(tmp_path / "t.csv", PEOPLE, "latin-1")
    source = open_as(path, SCHEMA, is_private=True)  # a notice would be an error here
    assert source.column("bmi").to_pylist()[0] == "21,5"
    assert source.column("born").to_pylist()[0] == "31.12.1980"


def test_what_is_declared_holds_under_a_private_method(tmp_path):
    path = write(tmp_path / "t.csv", PEOPLE, "latin-1")
    reading = Reading(encoding="latin-1", decimal=",", dates="%d.%m.%Y")
    assert opened(path, reading=reading, is_private=True)[1] == {
        "bmi": ["21.5", "1023.25", ""],
        "born": ["1980-12-31", "1999-02-01", ""],
        "city": ["Köln", "Gießen", "Fürth"],
    }


def test_a_byte_outside_the_declared_encoding_is_no_error_under_a_private_method(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"bmi;city\n1,5;\x81\n\x81;x\n")
    reading = Reading(encoding="latin-1", decimal=",")
    assert opened(path, reading=reading, is_private=True)[1] == {
        "bmi": ["1.5", "\ufffd"],
        "city": ["\ufffd", "x"],
    }


def test_a_cell_that_is_not_utf_8_does_not_stop_a_private_run_with_a_decimal_comma(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"bmi;city\n1,5;x\n\xff;x\n")
    source = open_as(path, SCHEMA, Reading(decimal=","), is_private=True)
    assert source.column("bmi").to_pylist() == ["1.5", None]


def test_texts_among_python_objects_are_rewritten_each_by_itself():
    frame = pd.DataFrame(
        {"bmi": ["1,5", 2.5, "1.5", None], "born": ["31.12.1980", date(1999, 2, 1), "x", None]}
    )
    source = open_as(frame.astype(object), SCHEMA, Reading(decimal=",", dates="%d.%m.%Y"), is_private=True)
    assert lenient_ordered(source.column("bmi"), SCHEMA["bmi"]).to_pylist() == [1.5, 2.5, None, None]
    assert lenient_ordered(source.column("born"), SCHEMA["born"]).to_pylist() == [4017, 10623, None, None]


# ---- where it is used ----


def test_publish_reads_as_it_is_told(tmp_path):
    path = write(tmp_path / "t.csv", "age;bmi\n" + "".join(f"{i};{i},5\n" for i in range(20)), "utf-16")
    policy = """
    attributes: {age: {role: quasi-identifier, type: number}, bmi: {role: other, type: number, passes: unique}}
    require: [k-anonymity: 5]
    """
    release = sf.publish(path, sf.Policy.parse(policy), reading=sf.Reading(encoding="utf-16", decimal=","))
    assert sorted(map(float, release.table.column("bmi").to_pylist())) == [i + 0.5 for i in range(20)]


def test_profile_drafts_numbers_and_dates_however_they_are_written(tmp_path):
    rows = "".join(f"{i % 30},5;{i % 28 + 1}.3.19{60 + i % 30};NA\n" for i in range(200))
    path = write(tmp_path / "t.csv", f"bmi;born;größe\n{rows}", "latin-1")
    with pytest.warns(Notice):
        draft = profile(path)
    kinds = {guess.name: guess.facts.kind for guess in draft.columns}
    assert (kinds["bmi"], kinds["born"]) == (Kind.NUMBER, Kind.DATE)
    assert '# The table was read with --encoding cp1252 --decimal , --dates "%d.%m.%Y".' in draft.to_yaml()


def test_a_reading_is_used_where_no_schema_changes_anything():
    table = open_table(pa.table({"zip": ["1,5"]}))
    assert in_usual_notation(table, Schema.of(zip=Role.OTHER.value), Reading(decimal=",")) is table


# ---- codes that lost their zeros ----


def notices_of_zip(cells, *, name: str = "zip", **declared) -> list[str]:
    schema = Schema.of(**{name: {"role": "quasi-identifier", **declared}})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        open_as(pd.DataFrame({name: cells}), schema)
    return [str(each.message) for each in caught]


@pytest.mark.parametrize("cells", [[2139, 53715], [2139.0, None, 53715.0], ["2139", "53715", None]])
@pytest.mark.parametrize("how", [{}, {"name": "home_plz"}, {"name": "x", "hierarchy": {"mask": 5}}])
def test_zip_codes_that_lost_their_zeros_are_noticed(cells, how):
    (said,) = notices_of_zip(cells, **how)
    assert "holds numbers of 4 to 5 digits where codes have one length: leading zeros seem to be lost" in said
    assert "2139" not in said


@pytest.mark.parametrize(
    ("cells", "how"),
    [
        ([53715, 53703], {}),
        (["02139", "53715"], {}),
        (["02139", "2139"], {}),
        (["2139", "A1234"], {}),
        ([2139, 53715], {"name": "zipper"}),
        ([2139, 53715], {"kind": "number"}),
        ([2139, 53715], {"role": "drop"}),
        ([213.5, 53715.0], {}),
    ],
)
def test_codes_that_lost_nothing_are_not_noticed(cells, how):
    assert notices_of_zip(cells, **how) == []


def test_lost_zeros_are_not_looked_for_under_a_private_method():
    schema = Schema.of(zip={"role": "quasi-identifier"})
    open_as(pd.DataFrame({"zip": [2139, 53715]}), schema, is_private=True)  # a notice would be an error here
