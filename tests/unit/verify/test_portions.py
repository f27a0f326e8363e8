"""A release checked in portions is checked as it is at once, whatever the memory and the order of its rows."""

from __future__ import annotations

import errno
import math
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sfumato.errors import InputError, TableError
from sfumato.policy.document import Policy
from sfumato.policy.schema import Attribute, Kind, Role
from sfumato.release.certificate import Certificate
from sfumato.release.folder import sha256_of
from sfumato.release.release import Release
from sfumato.table.stored import FiledRows
from sfumato.table.write import write_table
from sfumato.verify import folder as folder_checks
from sfumato.verify import portions as verify_portions
from sfumato.verify.folder import verify_folder
from sfumato.verify.groups import Moments
from sfumato.verify.measure import claims, examine, measure
from sfumato.verify.portions import Lines, NoRoom, Portions, collect, hash_lines, lines_of
from sfumato.verify.rows import CheckedColumns
from sfumato.verify.statistics import MEAN_TOLERANCE

SALARY = Attribute("salary", Role.SENSITIVE, Kind.NUMBER)

POLICY = Policy.parse("""
attributes:
  age: {role: quasi-identifier, type: number, bounds: [0, 110]}
  zip: {role: quasi-identifier}
  born: {role: quasi-identifier, type: date}
  disease: {role: sensitive, missing-values: ["?"]}
  rank: {role: sensitive, type: number}
  salary: {role: sensitive, type: number}
  hours: {role: other, type: number}
  job: {role: other}
require:
  - k-anonymity: 3
  - entropy-diversity: {l: 2, of: disease}
  - recursive-diversity: {c: 2, l: 2, of: rank}
  - t-closeness: {t: 0.3, of: disease}
  - t-closeness: {t: 0.2, of: rank, distance: ordered}
  - variance-diversity: {at-least: 0.5, of: salary}
output: {values: summary}
""")


@pytest.fixture(autouse=True, scope="module")
def _few_rows_at_once():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verify_portions, "FEWEST_ROWS", 4)
        patch.setattr(verify_portions, "N_FILES", 3)
        patch.setattr(verify_portions, "DEEPEST", 2)
        yield


texts = st.sampled_from(["", "a", "b", " a", "?", "c,d", "é", "é"])
halves = st.integers(-4, 4).map(lambda n: n / 2)
huge = st.sampled_from([2**53 + 1, 2**62, -(2**62), 0, 1])


@st.composite
def releases(draw):
    """Rows in order of groups or not; statistics that are true or not; numbers whole, broken or huge."""
    n = draw(st.integers(1, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    group = np.sort(rng.integers(0, draw(st.integers(1, 8)), n))
    values = draw(st.sampled_from([st.integers(0, 3), halves, huge]))
    columns = {
        "age": pa.array(
            [["[0, 9]", "[10, 19]", "*", None][g % 4] for g in group], pa.string()
        ).dictionary_encode(),
        "zip": [["a", "", "b,c"][g % 3] for g in group],
        "born": ["2024-Q1"] * n,
        "disease": draw(st.lists(texts, min_size=n, max_size=n)),
        "rank": draw(st.lists(st.none() | st.integers(0, 2), min_size=n, max_size=n)),
        "salary": draw(st.lists(st.none() | values, min_size=n, max_size=n)),
        "hours": [float(g % 3) for g in group],
        "job": ["x"] * n,
        "age_min": [g % 3 for g in group],
        "age_max": [9 + g % 3 for g in group],
        "age_mean": [[4.5, 5.0, -0.0, None][g % 4] for g in group],
        "born_min": pa.array([19_800 + g % 2 for g in group], pa.int32()).cast(pa.date32()),
        "born_max": pa.array([19_801] * n, pa.int32()).cast(pa.date32()),
        "hours_min": [float(g % 3) for g in group],
        "hours_max": [2.0] * n,
        "hours_mean": [float(g % 3) for g in group],
    }
    table = pa.table(columns)
    for name in ("rank", "salary"):
        column = table.column(name)
        table = table.set_column(
            table.column_names.index(name),
            name,
            column.cast(pa.float64(), safe=False) if draw(st.booleans()) else column,
        )
    return table.take(pa.array(rng.permutation(n))) if draw(st.booleans()) else table


def at_once_and_in_portions(table, policy, memory, name):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        if name.endswith("parquet"):
            pq.write_table(table, path, row_group_size=7)
        else:
            write_table(table, path)
        rows = FiledRows(path, path.suffix[1:])
        both = [examine(rows, policy, memory=size, scratch=Path(folder)) for size in (1 << 30, memory)]
        assert [file.name for file in Path(folder).iterdir()] == [name]
    return both


def assert_alike(one, other):
    assert (one.measures.rows, one.measures.groups) == (other.measures.rows, other.measures.groups)
    assert one.statistics == other.statistics
    assert one.sha256 == other.sha256
    for this, that in zip(one.measures.requirements, other.measures.requirements, strict=True):
        assert (this.requirement, this.n_failing) == (that.requirement, that.n_failing)
        assert math.isclose(this.achieved, that.achieved, rel_tol=1e-12, abs_tol=1e-12)


@settings(deadline=None, max_examples=30)
@given(
    releases(), st.sampled_from([1, 300, 3000, 30_000]), st.sampled_from(["release.csv", "release.parquet"])
)
def test_portions_are_checked_as_the_whole_is(table, memory, name):
    assert_alike(*at_once_and_in_portions(table, POLICY, memory, name))


@pytest.mark.parametrize("memory", [1, 5000, 50_000, 500_000])
def test_many_groups_in_no_order_are_found_again(memory):
    rng = np.random.default_rng(0)
    n = 1500
    zips = rng.permutation(np.repeat(np.arange(n // 3), 3))
    policy = Policy.parse("{attributes: {zip: {role: quasi-identifier}}, require: [k-anonymity: 3]}")
    table = pa.table({"zip": [f"{zip_:05}" for zip_ in zips]})
    one, other = at_once_and_in_portions(table, policy, memory, "release.parquet")
    assert_alike(one, other)
    assert (one.measures.groups, one.measures.requirements[0].achieved) == (n // 3, 3.0)


def test_groups_are_handed_on_if_they_fit_though_the_rows_do_not(tmp_path):
    path = tmp_path / "release.parquet"
    sizes = {f"{zip_:05}": 10 + zip_ % 20 for zip_ in range(500)}
    zips = [zip_ for zip_, size in sizes.items() for _ in range(size)]
    pq.write_table(pa.table({"zip": pa.array(zips).dictionary_encode()}), path)
    policy = Policy.parse("{attributes: {zip: {role: quasi-identifier}}, require: [k-anonymity: 10]}")
    at_once, condensed, spilled = (
        examine(FiledRows(path, "parquet"), policy, memory=memory).groups for memory in (10**8, 400_000, 1)
    )
    assert spilled is None
    for found in (at_once, condensed):
        assert dict(zip(found.cells.column("zip").to_pylist(), found.size.tolist(), strict=True)) == sizes
    assert condensed.details == at_once.details


def test_a_frame_is_checked_at_once_however_large():
    table = pa.table({"zip": ["1"] * 5})
    policy = Policy.parse("{attributes: {zip: {role: quasi-identifier}}, require: [k-anonymity: 3]}")
    assert measure(table, policy, memory=1).groups == 1


def test_a_file_without_rows_is_refused(tmp_path):
    path = tmp_path / "release.csv"
    path.write_text("zip\n")
    policy = Policy.parse("{attributes: {zip: {role: quasi-identifier}}, require: []}")
    with pytest.raises(TableError, match="no rows"):
        examine(FiledRows(path, "csv"), policy, memory=1)


# ---- lines -----------------------------------------------------------------------------------------


def lines(letters: str, checked: CheckedColumns) -> Lines:
    table = pa.table({"zip": list(letters), "salary": [ord(letter) for letter in letters]})
    return lines_of(table.to_batches()[0], checked)


def test_rows_in_order_of_groups_become_one_line_each():
    found = lines("aaabba", CheckedColumns(["zip"], [], [SALARY]))
    assert found.keys.column("zip").to_pylist() == ["a", "b", "a"]
    assert found.n_rows.tolist() == [3, 2, 1]
    again = found.condense()
    assert dict(zip(again.keys.column("zip").to_pylist(), again.n_rows.tolist(), strict=True)) == {
        "a": 4,
        "b": 2,
    }
    assert again.moments["salary"].variance.tolist() == [0.0, 0.0]


def test_lines_that_can_be_condensed_need_no_file(tmp_path):
    checked = CheckedColumns(["zip"], [], [])
    portions = Portions(checked, memory=20_000, folder=tmp_path)
    for _ in range(2000):
        portions.add(lines("abcd", checked))
    assert not portions.has_spilled
    assert sum(int(part.n_rows.sum()) for part in portions) == 8000


def test_a_disk_without_room_is_no_fault_of_the_release(tmp_path, monkeypatch):
    def full(*_args, **_options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(verify_portions.tempfile, "TemporaryFile", full)
    portions = Portions(CheckedColumns(["zip"], [], []), memory=1, folder=tmp_path)
    with pytest.raises(NoRoom, match=r"cannot be written to .*: No space left on device; make room there\.$"):
        portions.add(lines("abcd", portions.checked))
    assert isinstance(NoRoom(), InputError)
    portions.close()


def test_files_have_no_name_and_are_closed(tmp_path):
    checked = CheckedColumns(["zip"], [], [])
    portions = Portions(checked, memory=1, folder=tmp_path)
    portions.add(lines("abcd", checked))
    assert portions.has_spilled
    assert not list(tmp_path.iterdir())
    first = next(iter(portions))
    assert len(first) >= 1
    portions.close()
    portions.close()
    assert not portions.has_spilled


def test_an_unreadable_number_is_counted_from_the_first_row_of_the_file():
    table = pa.table({"zip": ["a"] * 10, "salary": ["1"] * 8 + ["much", "2"]})
    portions = Portions(CheckedColumns(["zip"], [], [SALARY]), memory=1 << 20, folder=Path())
    with pytest.raises(TableError, match=r"at least 1 cell without a readable number \(the first in row 9\)"):
        collect(table.to_batches(max_chunksize=4), portions)


# ---- numbers ---------------------------------------------------------------------------------------

numbers_of_any_size = st.one_of(
    st.lists(st.integers(-(2**62), 2**62), max_size=12),
    st.lists(st.none() | st.floats(-1e6, 1e6), max_size=12),
    st.lists(st.integers(0, 3).map(lambda n: 2**60 + n), max_size=12),
)


@given(numbers_of_any_size, st.integers(0, 2**32))
@example([-4611686018427378905, 0, 4611685674829994585], 0)
def test_moments_of_parts_are_those_of_the_whole(values, seed):
    cells = pa.array(
        [*values, None], pa.float64() if any(isinstance(v, float) for v in values) else pa.int64()
    )
    rng = np.random.default_rng(seed)
    part, whole = rng.integers(0, 3, len(cells)), np.zeros(len(cells), dtype=np.int64)
    parts = Moments.of(cells).join(part, 4)
    found = parts.join(np.zeros(4, dtype=np.int64), 1)
    at_once = Moments.of(cells).join(whole, 1)
    present = [value for value in values if value is not None]
    assert found.count.tolist() == at_once.count.tolist() == [len(present)]
    if present:
        assert [int(end[0]) if found.is_whole else end[0] for end in found.ends] == [
            min(present),
            max(present),
        ]
        naive = sum((v - sum(present) / len(present)) ** 2 for v in present) / len(present)
        least = min(present)
        exact = np.var([float(v - least) for v in present])
        for variance in (found.variance[0], at_once.variance[0]):
            assert math.isclose(variance, exact, rel_tol=1e-9, abs_tol=1e-9)
            assert not math.isnan(naive)
        slack = MEAN_TOLERANCE * max(map(abs, present))  # what verify allows: large numbers may cancel out
        assert math.isclose(
            found.mean[0], sum(present) / len(present), rel_tol=1e-9, abs_tol=max(slack, 1e-6)
        )
    else:
        assert found.variance.tolist() == [0.0]


def test_differences_that_outgrow_a_float_have_an_infinite_variance():
    moments = Moments.of(pa.array([1.7e308, -1.7e308])).join(np.array([0, 0]), 1)
    assert moments.variance.tolist() == [math.inf]
    assert moments.mean.tolist() == [0.0]


# ---- hashes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["a", "", None, "b"]),
        pa.array(["a", "", None, "b"]).dictionary_encode(),
        pa.array([1.5, math.nan, None, -0.0]),
        pa.array([b"a", b"", None, b"b"]),
        pa.array([True, None, None, False]),
    ],
)
def test_missing_empty_and_nan_have_one_hash_and_chunks_do_not_matter(column):
    comparable = verify_portions._comparable(column, "x")
    whole = hash_lines([pa.chunked_array([comparable])], salt=1)
    parts = hash_lines([pa.chunked_array([comparable.slice(0, 1), comparable.slice(1)])], salt=1)
    assert whole.tolist() == parts.tolist()
    assert whole[1] == whole[2]
    assert len({int(h) for h in whole}) == 3
    assert hash_lines([pa.chunked_array([comparable])], salt=2).tolist() != whole.tolist()


def test_zeros_of_either_sign_have_one_hash():
    assert len({*hash_lines([pa.chunked_array([[0.0, -0.0]])], salt=0).tolist()}) == 1


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[1], [1]]),
        pa.DictionaryArray.from_arrays(pa.array([0, 1]), ["a"], safe=False),
        pa.DictionaryArray.from_arrays(pa.array([0, -1]), ["a"], safe=False),
        pa.DictionaryArray.from_arrays(
            pa.array([0, 0]),
            pa.StringArray.from_buffers(1, pa.py_buffer(np.array([0, 1], np.int32)), pa.py_buffer(b"\xff")),
        ),
        pa.StringArray.from_buffers(1, pa.py_buffer(np.array([0, 1], np.int32)), pa.py_buffer(b"\xff")),
    ],
)
def test_a_damaged_or_nested_column_is_refused(column):
    with pytest.raises(TableError, match="Column 'x'"):
        verify_portions._comparable(column, "x")


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["x", None]).cast(pa.string_view()),
        pa.array([b"x", None]).cast(pa.binary_view()),
        pa.array([1, None]).dictionary_encode(),
        pa.array([True, None]),
        pa.nulls(2),
        pa.array([1, None], pa.decimal128(5, 2)),
        pa.array([1, None], pa.timestamp("us", tz="UTC")),
        pa.array(["x", None]).dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string())),
    ],
)
def test_columns_of_every_type_become_lines(column):
    found = lines_of(pa.record_batch({"x": column}), CheckedColumns(["x"], [], []))
    assert len(found.condense()) == len(column.unique())


def test_known_rows_are_not_read_again_unless_they_are_others(tmp_path, monkeypatch):
    table = pa.table({"zip": ["1"] * 5})
    policy = Policy.parse("{attributes: {zip: {role: quasi-identifier}}, require: [k-anonymity: 3]}")
    write_table(table, tmp_path / "rows.csv")
    rows = FiledRows(tmp_path / "rows.csv", "csv")
    known = examine(rows, policy)
    assert known.sha256 == rows.sha256 == sha256_of(rows.path)
    assert replace(known.measures, alone=None) == measure(table, policy)
    certificate = Certificate.of(policy, claims(known.measures))
    Release(rows, certificate, policy, format="csv").write(tmp_path / "out")
    read: list[int] = []

    def note_and_examine(*_args, **_named):
        read.append(1)
        return known

    monkeypatch.setattr(folder_checks, "examine_release", note_and_examine)
    assert verify_folder(tmp_path / "out", known=known).ok
    assert not read
    for other in (replace(known, sha256="0" * 64), replace(known, policy=POLICY), None):
        verify_folder(tmp_path / "out", known=other)
    assert len(read) == 3
