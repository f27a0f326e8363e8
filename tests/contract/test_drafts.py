"""A draft of ``sfumato profile`` publishes as it stands, whatever the table: nobody need edit it to try."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from commandline import names

from sfumato.policy.document import Policy
from sfumato.table.write import write_table

N = 40


def repeated(*values, n: int = N) -> list:
    return [values[i % len(values)] for i in range(n)]


def counted(n: int = N) -> list[int]:
    """Ages that numbering the rows does not explain."""
    return [20 + i * 7 % 50 for i in range(n)]


NASTY = {
    "names in other scripts": {
        "Ålder": counted(),
        "Geschlecht ♀♂": repeated("w", "m"),
        "疾病": repeated("感冒", "流感"),
        "имя": [f"и{i}" for i in range(N)],
        "emoji 😀": repeated("😀", "é", "e\u0301"),
    },
    "names that YAML takes for something else": {
        name: repeated("a", "b", str(i))
        for i, name in enumerate(
            [
                "on",
                "1",
                "yes",
                "null",
                "~",
                "a: b",
                "- x",
                "#c",
                "{z}",
                "'q'",
                '"dq"',
                "1e8",
                "?",
                "!t",
                "&a",
                "*",
                "<<",
            ]
        )
    },
    "names with spaces": {
        "first name": [f"n{i}" for i in range(N)],
        "age of person": counted(),
        "a\tb": repeated("c", "d"),
        "a\nb": repeated("c", "d"),
    },
    "names with delimiters": {
        "a,b": repeated("c", "d"),
        "a;b": repeated("e", "f"),
        "a|b": repeated("g", "h"),
        'say "x"': counted(),
    },
    "names of published bounds": {"age": counted(), "age_low": counted(), "age_high": counted()},
    "a constant column": {"age": counted(), "country": repeated("DE"), "n": repeated(7)},
    "nothing but a constant": {"x": repeated("a")},
    "columns that are missing throughout": {"age": counted(), "empty": [None] * N, "blank": [""] * N},
    "nothing but missing cells": {"x": [None] * N},
    "one column of numbers": {"age": counted()},
    "one column of names": {"name": [f"n{i}" for i in range(N)]},
    "five rows": {
        "age": [31, 42, 53, 64, 75],
        "sex": ["m", "f", "m", "f", "f"],
        "disease": ["a", "b", "c", "d", "e"],
    },
    "five rows, each of its own": {"id": ["a", "b", "c", "d", "e"]},
    "words for missing": {"age": repeated("31", "?", "45", "NA"), "job": repeated("?", "clerk", "nurse")},
    "nothing but words for missing": {"x": repeated("NA", "?", ""), "age": counted()},
    "ranges as text": {"age": repeated("[0-10)", "[10-20)", "[20-30)"), "income": repeated("<=50K", ">50K")},
    "postcodes of several countries": {
        "zip": repeated("02139", "2139", "0213-9", "K1A 0B1"),
        "age": counted(),
    },
    "cells with quotes, delimiters and line ends": {
        "a": repeated('x"y', "x,y", "x;y", "x|y", "x\ny"),
        "b": repeated("'", '"', ",", " x "),
        "age": counted(),
    },
    "dates, and dates that are none": {
        "born": [f"19{50 + i % 50}-0{1 + i % 9}-1{i % 9}" for i in range(N)],
        "seen": repeated("2024-01-01", "2024-02-30"),
    },
    "tiny, huge and negative numbers": {
        "a": [1e-9 * (i * 7 % 13) for i in range(N)],
        "b": [-1e12 * (i * 7 % 13) for i in range(N)],
        "c": [1e300 * (i % 3 - 1) for i in range(N)],
        "d": [2**60 + i * 7 % 13 for i in range(N)],
    },
    "nothing but huge numbers": {"x": [1e200 * (i - 20) for i in range(N)]},
    "long texts": {"text": ["x" * 5000 + str(i) for i in range(N)], "age": counted()},
    "many columns": {f"c{i}": repeated("a", "b", str(i)) for i in range(60)},
}

STORED = {  # what only Parquet and Arrow can hold
    "times": pa.array([1_700_000_000_000_000 + i * 86_400_000_000 for i in range(N)], pa.timestamp("us")),
    "times of a place": pa.array([1_700_000_000 + i * 5000 for i in range(N)], pa.timestamp("s", tz="Europe/Berlin")),
    "days": pa.array(range(N), pa.date32()),
    "clock times": pa.array(range(N), pa.time32("s")),
    "durations": pa.array(range(N), pa.duration("s")),
    "decimals": pa.array(range(N)).cast(pa.decimal128(21, 2)),
    "truth": pa.array(repeated(True, False, None)),
    "lists": pa.array([[1, 2]] * N),
    "structures": pa.array([{"a": 1}] * N),
    "bytes": pa.array([b"a", b"\xff"] * (N // 2)),
    "bytes of text": pa.array([b"a", b"b"] * (N // 2)),
    "views": pa.array(["a", "b"] * (N // 2), pa.string_view()),
    "nothing": pa.nulls(N),
}  # fmt: skip


def publish_draft(sfumato, table: Path) -> str:
    """Profile, publish, verify and apply; the draft itself."""
    done = sfumato("profile", table, "--out", "draft.yaml")
    assert (done.code, done.err) == (0, "")
    done = sfumato("publish", table, "--policy", "draft.yaml", "--out", "out")
    assert done.code == 0, Path("draft.yaml").read_text()
    assert all(line.startswith("warning: ") for line in done.err.splitlines()), (
        done.err
    )  # that little is left
    assert sfumato("verify", "out").code == 0
    done = sfumato("apply", "out", table, "--out", "again.parquet")
    assert (done.code, done.err) == (0, "")
    return Path("draft.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("case", NASTY)
def test_the_draft_of_a_nasty_table_publishes_as_it_stands(sfumato, here, case, suffix):
    table = here / f"t.{suffix}"
    write_table(pa.table(NASTY[case]), table)
    draft = publish_draft(sfumato, table)
    assert Policy.parse(draft).schema.names() == tuple(NASTY[case])


@pytest.mark.parametrize("case", STORED)
def test_the_draft_of_any_stored_type_publishes_as_it_stands(sfumato, here, case):
    table = pa.table({"age": counted(), "x": STORED[case]})
    with pa.OSFile("t.arrow", "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    publish_draft(sfumato, here / "t.arrow")


def test_a_table_that_no_policy_can_read_is_refused(sfumato, here):
    write_table(pa.table({"x": [[1, 2]] * N}), here / "t.parquet")
    done = sfumato("profile", "t.parquet", "--out", "draft.yaml")
    assert (done.code, "nothing to publish" in done.sentence) == (2, True)
    assert names(here) == ["t.parquet"]


@pytest.mark.parametrize("n_rows", [1, 2, 3, 4])
def test_the_draft_for_fewer_rows_than_its_k_asks_for_less_and_says_so(sfumato, here, n_rows):
    table = pa.table({"age": [31, 42, 53, 64][:n_rows], "sex": ["m", "f", "m", "f"][:n_rows]})
    write_table(table, here / "t.csv")
    draft = publish_draft(sfumato, here / "t.csv")
    assert "5-anonymity cannot be met" in draft
    assert f"  - k-anonymity: {n_rows}\n" in draft


@pytest.mark.data
@pytest.mark.parametrize("name", ["adult/adult.csv.gz", "cmc/cmc.csv", "acs_pums_2024/p_56.parquet"])
def test_the_draft_of_a_real_table_publishes_as_it_stands(sfumato, data_folder, name):
    draft = publish_draft(sfumato, data_folder / name)
    assert "k-anonymity: 5" in draft
