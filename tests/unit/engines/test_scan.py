"""From a file to blocks of codes: every door, what comes along, the sample, the memory, and what goes wrong."""

from __future__ import annotations

import gzip
import io
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from blocks import read_by
from growing import prepare
from scipy import stats

from sfumato.encoding.encoders import encode_axis
from sfumato.engines import payload
from sfumato.engines.scan import Intake
from sfumato.errors import HierarchyError, InputError, RequirementUnreachable, TableError
from sfumato.methods.mondrian.problem import problem_of
from sfumato.policy.document import Policy
from sfumato.randomness import splitmix64
from sfumato.table import arrow_files, distinct
from sfumato.table.opening import open_table
from sfumato.table.source import UNKNOWN, Source
from sfumato.table.spill import Spill
from sfumato.table.write import write_table

SECRET = "SECRET-CELL"

POLICY = Policy.parse("""
attributes:
  name: {role: identifier}
  age: {role: quasi-identifier, type: number}
  zip: {role: quasi-identifier}
  disease: {role: sensitive}
  note: {role: other, passes: unique}
require: [k-anonymity: 2]
workload: [classify: disease, select: age >= 30]
""")


def people(n: int = 1000, seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "name": [f"{SECRET} {i}" for i in range(n)],
            "age": rng.integers(18, 90, n),
            "zip": rng.choice(["02139", "53715", "53703"], n),
            "disease": rng.choice(["flu", "cold", "asthma"], n),
            "note": [f"note {i}" for i in range(n)],
        }
    )


@pytest.fixture
def spill():
    with Spill() as folder:
        yield folder


def take_in(source: Any, policy: Policy, spill: Spill, *, memory: int = 1 << 24, **scan: Any) -> Intake:
    found = Intake.in_batches(source, policy, spill=spill, memory=memory)
    found.scan(**scan)
    return found


def csv_of(table: pa.Table) -> bytes:
    data = io.BytesIO()
    pacsv.write_csv(table, data, pacsv.WriteOptions(quoting_style="needed", quoting_header="none"))
    return data.getvalue()


def refusal(call: Any, *arguments: Any) -> str:
    with pytest.raises(InputError) as caught:
        call(*arguments)
    assert SECRET not in str(caught.value)
    return str(caught.value)


# ---- doors -----------------------------------------------------------------------------------------


def test_a_csv_file_that_is_opened_lazily_is_not_read_and_does_not_know_its_rows(tmp_path, spill):
    path = tmp_path / "t.csv"
    path.write_bytes(csv_of(people()))
    source = open_table(path, lazy=True)
    assert source.n_rows == UNKNOWN
    assert source.column("age").to_pylist()[:3] == [str(x) for x in people().column("age").to_pylist()[:3]]
    assert take_in(source, POLICY, spill).n_rows == 1000


def test_stdin_is_kept_in_a_file_because_it_is_read_more_than_once(monkeypatch, spill):
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(csv_of(people()))))
    spool = spill.path("stdin")
    source = open_table("-", lazy=True, spool=spool)
    found = take_in(source, POLICY, spill)
    assert len(np.concatenate([block.rows for block in found.blocks()])) == 1000
    assert spool.exists()


def test_bytes_of_the_input_are_counted_pass_by_pass(tmp_path, spill):
    path = tmp_path / "t.csv"
    path.write_bytes(csv_of(people()))
    found = take_in(open_table(path, lazy=True), POLICY, spill)
    assert (spill.counters.input_passes, spill.counters.input_bytes) == (1, path.stat().st_size)
    list(found.blocks())
    assert (spill.counters.input_passes, spill.counters.input_bytes) == (2, 2 * path.stat().st_size)
    figures = spill.counters.as_figures()
    assert figures["input-passes"] == 2
    assert "input-bytes" not in figures, "a release does not say how large the raw table is"


def test_of_parquet_only_the_columns_that_are_read_are_counted(tmp_path, spill):
    path = tmp_path / "t.parquet"
    pq.write_table(people(), path, row_group_size=300)
    take_in(open_table(path), POLICY, spill)
    footer = pq.read_metadata(path)
    groups = [footer.row_group(g) for g in range(footer.num_row_groups)]
    read = sum(group.column(c).total_compressed_size for group in groups for c in (1, 2, 3, 4))
    assert spill.counters.input_bytes == read


def test_a_table_without_rows_is_refused(tmp_path, spill):
    path = tmp_path / "t.csv"
    path.write_text("name,age,zip,disease,note\n" + "\n" * (1 << 20))
    assert "has no rows" in refusal(take_in, open_table(path, lazy=True), POLICY, spill)


def test_row_groups_too_large_for_the_memory_are_read_in_smaller_parts(tmp_path, spill, monkeypatch):
    path = tmp_path / "t.parquet"
    pq.write_table(people(500), path)
    monkeypatch.setattr(arrow_files, "BATCH_ROWS", 100)
    sizes = [batch.num_rows for batch in open_table(path).batches(["age", "zip"], memory=1000, rows=1000)]
    assert sizes == [100] * 5


@pytest.mark.parametrize("kind", ["file", "stream"])
def test_arrow_files_come_batch_by_batch(tmp_path, spill, kind):
    path, table = tmp_path / "t.arrow", people()
    new = pa.ipc.new_file if kind == "file" else pa.ipc.new_stream
    with new(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=300)
    source = open_table(path, lazy=True)
    assert source.n_rows == (1000 if kind == "file" else UNKNOWN)
    assert [batch.num_rows for batch in source.batches(["zip", "age"])] == [300, 300, 300, 100]
    assert source.column("age").to_pylist() == table.column("age").to_pylist()
    assert take_in(source, POLICY, spill).n_rows == 1000


def test_parts_of_several_types_become_one(tmp_path, spill):
    for i, kind in enumerate([pa.int32(), pa.float64()]):
        part = people(50).set_column(1, "age", pa.array(range(50)).cast(kind))
        pq.write_table(part, tmp_path / f"{i}.parquet")
    found = take_in(open_table(tmp_path), POLICY, spill)
    assert found.domains[0].n_codes == 50


# ---- faults ----------------------------------------------------------------------------------------


def test_an_unreadable_row_group_is_named(tmp_path, spill):
    path = tmp_path / "t.parquet"
    pq.write_table(people(), path, row_group_size=300, compression="snappy")
    place = pq.read_metadata(path).row_group(2).column(1)
    data = bytearray(path.read_bytes())
    data[place.dictionary_page_offset or place.data_page_offset :][:1]
    start = place.dictionary_page_offset or place.data_page_offset
    data[start : start + place.total_compressed_size] = b"\xff" * place.total_compressed_size
    path.write_bytes(bytes(data))
    sentence = refusal(take_in, open_table(path), POLICY, spill)
    assert sentence == f"{path} is damaged in row group 3 of 4; make or copy it again."


BAD_FILES = {
    "ragged": (lambda data: data.replace(b'"note 500"', b'"note 500",1'), "Row 501 of"),
    "not UTF-8": (lambda data: data.replace(b"flu", b"\x81"), "holds text that is not UTF-8"),
    "in quotes": (lambda data: data[:-2] + b"\n", "ends inside a quoted cell"),
}


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("fault", BAD_FILES)
def test_a_faulty_csv_file_gets_the_sentence_that_it_gets_in_memory(tmp_path, spill, fault, zipped):
    spoil, words = BAD_FILES[fault]
    path = tmp_path / ("t.csv.gz" if zipped else "t.csv")
    data = spoil(csv_of(people()))
    path.write_bytes(gzip.compress(data) if zipped else data)
    sentence = refusal(take_in, open_table(path, lazy=True), POLICY, spill)
    assert words in sentence
    assert sentence == refusal(open_table, path)


def test_a_gzip_file_that_is_cut_short_is_refused(tmp_path, spill):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(csv_of(people(200_000)))[:-1000])
    source = open_table(path, lazy=True)
    assert "cut-off" in refusal(take_in, source, POLICY, spill)


def test_unreadable_cells_are_told_by_their_row_of_the_file(tmp_path, spill, monkeypatch):
    read_by(monkeypatch, 64)
    ages = [str(x) for x in range(300)]
    ages[200] = ages[201] = ages[290] = SECRET
    table = pa.table({"age": ages})
    policy = Policy.parse("{attributes: {age: {role: quasi-identifier, type: number}}, require: []}")
    sentence = refusal(take_in, open_table(table), policy, spill)
    assert sentence.startswith(
        "Column 'age' has at least 2 cells without a readable number (the first in row 201);"
    )


def test_unreadable_cells_of_a_label_are_counted_all(spill, monkeypatch):
    read_by(monkeypatch, 64)
    wage = ["1"] * 150 + [SECRET] * 3 + ["2"] * 10 + ["x"]
    table = pa.table({"age": ["1"] * 164, "wage": wage})
    policy = Policy.parse(
        "{attributes: {age: {role: quasi-identifier}, wage: {role: sensitive, type: number}},"
        " require: [entropy-diversity: {l: 1, of: wage}]}"
    )
    sentence = refusal(take_in, open_table(table), policy, spill)
    assert sentence.startswith("Column 'wage' has 4 cells without a readable number (the first in row 151);")


@pytest.mark.parametrize("change", ["longer", "other"])
def test_a_file_that_changes_between_passes_is_an_error(tmp_path, spill, change):
    path = tmp_path / "t.csv"
    path.write_bytes(csv_of(people()))
    found = take_in(open_table(path, lazy=True), POLICY, spill)
    path.write_bytes(csv_of(people(1001 if change == "longer" else 1000, seed=2)))
    os.utime(path, ns=(1, 1))
    assert "changed while it was being read" in refusal(list, found.blocks())


def test_a_parquet_file_that_changes_between_passes_is_an_error(tmp_path, spill):
    path = tmp_path / "t.parquet"
    pq.write_table(people(), path)
    found = take_in(open_table(path), POLICY, spill)
    pq.write_table(people(seed=3), path)
    os.utime(path, ns=(1, 1))
    assert refusal(list, found.blocks())


def test_a_frame_that_changes_between_passes_is_an_error(spill):
    columns = dict(zip(people().column_names, people().columns, strict=True))
    source = Source(tuple(columns), UNKNOWN, "pyarrow", "a frame", columns.__getitem__)
    found = take_in(source, POLICY, spill)
    columns |= {name: column.slice(1) for name, column in columns.items()}
    assert "changed while it was being read" in refusal(list, found.blocks())


def test_values_that_a_declared_hierarchy_lacks_are_counted_all(spill, monkeypatch):
    read_by(monkeypatch, 10)
    policy = Policy.parse(
        "{attributes: {zip: {role: quasi-identifier, hierarchy: {tree: {'*': [a, b]}}}}, require: []}"
    )
    table = pa.table({"zip": ["a", "b", "c"] * 10 + ["d"]})
    with pytest.raises(HierarchyError, match=r"has 11 cells \(2 distinct values\) that its hierarchy lacks"):
        take_in(open_table(table), policy, spill)


def test_a_requirement_that_the_whole_table_fails_is_unreachable(spill):
    policy = Policy.parse("{attributes: {zip: {role: quasi-identifier}}, require: [k-anonymity: 9]}")
    found = take_in(open_table(pa.table({"zip": ["a"] * 8})), policy, spill)
    with pytest.raises(RequirementUnreachable, match="all 8 rows"):
        problem_of(found, found.axes(), policy, policy.method)


# ---- memory ----------------------------------------------------------------------------------------


def test_texts_that_outgrow_the_memory_are_refused_with_a_way_out(spill):
    table = pa.table({"zip": [f"text {i}" for i in range(200_000)]})
    policy = Policy.parse("{attributes: {zip: {role: quasi-identifier}}, require: []}")
    sentence = refusal(lambda: take_in(open_table(table), policy, spill, memory=1 << 21))
    assert "Column 'zip' has over" in sentence
    assert "--memory" in sentence


@pytest.mark.parametrize("missing", [False, True])
def test_very_many_numbers_are_ranked_in_a_file_and_give_the_same_codes(spill, monkeypatch, missing):
    monkeypatch.setattr(distinct, "SMALLEST_RUN", 50)
    monkeypatch.setattr(distinct, "STRETCH", 90)
    read_by(monkeypatch, 64)
    rng = np.random.default_rng(5)
    columns: dict[str, Any] = {
        name: rng.normal(size=1000).round(digits) for name, digits in (("a", 9), ("b", 9), ("c", 1))
    }
    columns["d"] = rng.integers(0, 10**9, 1000)
    table = pa.table(
        {name: pa.array(column, mask=missing & (column < 0)) for name, column in columns.items()}
    )
    attributes = ", ".join(f"{name}: {{role: quasi-identifier, type: number}}" for name in columns)
    policy = Policy.parse(f"{{attributes: {{{attributes}}}, require: [], workload: [select: a > 0.1]}}")
    found = take_in(open_table(table), policy, spill, memory=4 * 4 * 32 * 100)
    problem = problem_of(found, found.axes(), policy, policy.method)
    expected = prepare(open_table(table), policy.schema, (), workload=policy.workload, threads=1)
    assert spill.counters.spills > 4
    rows = np.concatenate([block.rows for block in found.blocks()])
    assert np.array_equal(rows, expected.engine.rows[:, :-1])
    assert np.array_equal(problem.queries.low, expected.queries.low)
    assert np.array_equal(problem.axes.width, expected.axes.width)
    for a, (one, other) in enumerate(zip(problem.domains, expected.domains, strict=True)):
        codes = rows[:, a]
        assert distinct.is_mapped(one.values)
        assert one.n_codes == other.n_codes
        assert np.array_equal(one.value(codes), other.value(codes))
        mine = problem.axes.position[problem.axes.position_start[a] + codes.astype(np.int64)]
        theirs = expected.axes.position[expected.axes.position_start[a] + codes.astype(np.int64)]
        found.let_go()
        assert np.array_equal(mine, theirs)
        assert np.array_equal(
            problem.axes.position[problem.axes.position_start[a] + codes.astype(np.int64)], theirs
        )


def test_a_number_with_a_hierarchy_needs_no_list_of_its_values(spill, monkeypatch):
    rng = np.random.default_rng(5)
    table = pa.table({"x": pa.array(rng.random(5000), mask=rng.random(5000) < 0.1)})
    policy = Policy.parse(
        "{attributes: {x: {role: quasi-identifier, type: number, bounds: [0, 1], hierarchy: {intervals: [0.1]}}},"
        " require: []}"
    )
    domain, codes = encode_axis(open_table(table), policy.schema["x"])
    found = take_in(open_table(table), policy, spill, memory=4 * 1000)
    assert found.domains[0].hierarchy == domain.hierarchy
    assert np.array_equal(np.concatenate([block.rows[:, 0] for block in found.blocks()]), codes)
    flat = Policy.parse(
        "{attributes: {x: {role: quasi-identifier, type: number, hierarchy: flat}}, require: []}"
    )
    assert "too many for a hierarchy" in refusal(
        lambda: take_in(open_table(table), flat, spill, memory=4 * 1000)
    )


def test_a_feature_with_too_many_values_is_refused_with_a_way_out(spill):
    rng = np.random.default_rng(5)
    table = pa.table(
        {"x": rng.integers(0, 9, 5000), "f": rng.random(5000), "c": rng.choice(list("ab"), 5000)}
    )
    policy = Policy.parse(
        "{attributes: {x: {role: quasi-identifier, type: number}, f: {role: other, type: number}, c: {role: other}},"
        " require: [], workload: [classify: {target: c, features: [f]}]}"
    )
    sentence = refusal(lambda: take_in(open_table(table), policy, spill, memory=4 * 1000))
    assert "feature 'f' has too many different values" in sentence
    assert "leave it out of features" in sentence


def test_targets_with_too_many_combinations_are_refused_with_a_way_out(spill):
    table = pa.table({"x": [1] * 5000, "a": range(5000), "b": range(5000)})
    policy = Policy.parse(
        "{attributes: {x: {role: quasi-identifier, type: number}, a: {role: other}, b: {role: other}},"
        " require: [], workload: [classify: {targets: [a, b], joint: true}]}"
    )
    sentence = refusal(lambda: take_in(open_table(table), policy, spill, memory=10**6))
    assert "different combinations" in sentence or "different values" in sentence


# ---- what comes along ------------------------------------------------------------------------------


def test_what_is_published_as_it_is_comes_along_and_nothing_else(tmp_path, spill, monkeypatch):
    read_by(monkeypatch, 64)
    monkeypatch.setattr(payload, "MOST_TEXT", 10_000)
    monkeypatch.setattr(distinct, "FEW", 10)
    path = tmp_path / "t.parquet"
    table = people().set_column(3, "disease", pa.array([None, "flu", "cold", "asthma"] * 250))
    pq.write_table(table, path, row_group_size=300)
    found = take_in(open_table(path), POLICY, spill)
    payloads = [block.payload for block in found.blocks()]
    assert payloads[0].schema.names == ["disease", "note"]
    assert {payload.schema for payload in payloads} == {payloads[0].schema}
    whole = pa.Table.from_batches(payloads)
    assert whole.column("disease").type == pa.dictionary(pa.int8(), pa.string())
    assert whole.column("note").type == pa.string()
    assert whole.column("disease").to_pylist() == table.column("disease").to_pylist()
    assert whole.column("note").to_pylist() == table.column("note").to_pylist()
    assert payloads[3].column("disease").dictionary.to_pylist() == ["asthma", "cold", "flu"]
    assert all(block.payload is None for block in found.blocks(payload=False))
    assert found.encoded_bytes > 1000 * (found.layout.row_bytes + 1)


def test_numbers_that_statistics_are_taken_of_come_along_in_one_type(spill, monkeypatch):
    read_by(monkeypatch, 10)
    policy = Policy.parse(
        "{attributes: {age: {role: quasi-identifier, type: number}, day: {role: quasi-identifier, type: date},"
        " wage: {role: other, type: number}}, require: [], workload: [aggregate: [range, mean]]}"
    )
    table = pa.table(
        {
            "age": [str(x) for x in range(20)] + ["1.5"],
            "day": ["2024-03-05"] * 20 + [""],
            "wage": [str(x) for x in range(21)],
        }
    )
    found = take_in(open_table(table), policy, spill)
    whole = pa.Table.from_batches([block.payload for block in found.blocks()])
    assert whole.column("age").type == pa.float64()
    assert whole.column("day").type == pa.date32()
    assert whole.column("wage").to_pylist() == table.column("wage").to_pylist()
    assert found.statistic_types == {
        "age_min": pa.float64(), "age_max": pa.float64(), "age_mean": pa.float64(),
        "day_min": pa.date32(), "day_max": pa.date32(), "day_mean": pa.date32(),
        "wage_min": pa.int64(), "wage_max": pa.int64(), "wage_mean": pa.float64(),
    }  # fmt: skip


# ---- the sample ------------------------------------------------------------------------------------


def test_the_sample_is_of_rows_that_are_there_each_once(tmp_path, spill, monkeypatch):
    read_by(monkeypatch, 64)
    path = tmp_path / "t.csv"
    path.write_bytes(csv_of(pa.table({"x": range(1000), "y": [f"{i}" for i in range(1000)]})))
    policy = Policy.parse(
        "{attributes: {x: {role: quasi-identifier, type: number}, y: {role: quasi-identifier}}, require: []}"
    )
    found = take_in(open_table(path, lazy=True), policy, spill, sample=300, seed=1)
    blocks = [block.rows for block in found.blocks()]
    assert [number for block in blocks for number in block[:, -1].tolist()] == list(range(1000))
    rows = {tuple(row) for block in blocks for row in block[:, :-1].tolist()}
    sample = [tuple(row) for row in found.take_sample().tolist()]
    assert len(sample) == len(set(sample)) == 300
    assert rows >= set(sample)
    assert found.take_sample() is None, "it was handed over"
    found = take_in(open_table(path, lazy=True), policy, spill, sample=5000, seed=1)
    assert len(found.take_sample()) == 1000


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_a_smaller_sample_is_the_one_that_would_have_been_drawn(name, tmp_path, spill, monkeypatch):
    """Of a text file nobody knows beforehand how many rows a share of it is."""
    read_by(monkeypatch, 64)
    write_table(pa.table({"x": range(1000)}), tmp_path / name)
    policy = Policy.parse("{attributes: {x: {role: quasi-identifier, type: number}}, require: []}")
    draws = [(300, 40), (40, None), (40, 40), (40, 300)]
    samples = [
        take_in(open_table(tmp_path / name, lazy=True), policy, spill, sample=drawn, seed=1).take_sample(
            taken
        )
        for drawn, taken in draws
    ]
    least = np.sort(np.argsort(splitmix64(1, np.arange(1000)))[:40])
    assert [None if sample is None else sample[:, 0].tolist() for sample in samples] == [
        least.tolist()
    ] * len(draws)


def test_every_row_is_as_likely_as_any_other_to_be_in_the_sample(monkeypatch):
    read_by(monkeypatch, 7)
    table, policy = (
        pa.table({"x": range(40)}),
        Policy.parse("{attributes: {x: {role: quasi-identifier, type: number}}, require: []}"),
    )
    seen, pairs = np.zeros(40), np.zeros((40, 40))
    for seed in range(1500):
        with Spill() as spill:
            drawn = take_in(open_table(table), policy, spill, sample=8, seed=seed).take_sample()
            assert drawn is not None
            sample = drawn[:, 0]
        seen[sample] += 1
        pairs[np.ix_(sample, sample)] += 1
    assert stats.chisquare(seen).pvalue > 1e-6
    together = pairs[np.triu_indices(40, 1)]
    assert stats.chisquare(together).pvalue > 1e-6
    biased = seen.copy()
    biased[:20] *= 1.3
    assert stats.chisquare(biased, biased.sum() * np.full(40, 1 / 40)).pvalue < 1e-6


def test_conditions_are_counted_on_the_way_or_in_a_pass_of_their_own(spill):
    source = open_table(people())
    true = pc.sum(pc.greater_equal(people().column("age"), 30)).as_py()
    found = take_in(source, POLICY, spill)
    assert found.true_counts == [true]
    found = take_in(source, POLICY, spill)
    list(found.blocks(payload=False))
    passes = spill.counters.input_bytes
    assert found.true_counts == [true]
    assert spill.counters.input_bytes == passes


def test_a_folder_that_is_no_folder_cannot_keep_stdin(monkeypatch):
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"a\n1\n")))
    with pytest.raises(TableError, match="stdin cannot be kept"):
        open_table("-", lazy=True, spool=Path("/nowhere/at/all"))
