"""The Agrawal generator: the laws of Table I, function C2 of Table II, and streaming.

Statistical tests draw from a fixed seed, so they never flicker. Their rate of false alarm is what a
fresh seed would risk: each chi-square test accepts a right law with probability 1 - 1e-6, and each must
also reject laws that are a little wrong, so that none of them is unable to fail.
"""

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from scipy.stats import chi2_contingency, chisquare

from sfumato.errors import InputError, NotYet
from sfumato.generate import AGRAWAL_SCHEMA, BLOCK_ROWS, agrawal, is_class_a, write_agrawal
from sfumato.randomness import seeded_block

FALSE_ALARM = 1e-6


def table_of(n_rows, **options):
    return pa.Table.from_batches(agrawal(n_rows, **options))


@pytest.fixture(scope="module")
def rows():
    table = table_of(200_000, seed=1993)
    return {name: table[name].to_numpy() for name in table.column_names}


def p_of_uniform_integers(values, low, high):
    """Chi-square p-value of "uniform on the whole numbers from low to high"."""
    if values.min() < low or values.max() > high:
        return 0.0
    return chisquare(np.bincount(values - low, minlength=high - low + 1)).pvalue


def p_of_uniform_amounts(values, low, high, *, n_bins=50):
    """The same for wide ranges, counted in bins with the number of whole numbers of each as weight."""
    if values.min() < low or values.max() > high:
        return 0.0
    edges = np.linspace(low, high + 1, n_bins + 1).astype(np.int64)
    seen = np.histogram(values, bins=edges)[0]
    return chisquare(seen, len(values) * np.diff(edges) / (high + 1 - low)).pvalue


def p_of_independence(left, right):
    table = np.zeros((left.max() + 1, right.max() + 1))
    np.add.at(table, (left, right), 1)
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    return chi2_contingency(table).pvalue


@pytest.mark.parametrize(
    ("column", "low", "high"),
    [("age", 20, 80), ("elevel", 0, 4), ("car", 1, 20), ("zipcode", 0, 9), ("hyears", 1, 30)],
)
def test_whole_attributes_follow_table_1_and_no_other_range(rows, column, low, high):
    """Rate of false alarm 1e-6: the right range is accepted, one that is longer by one at an end is not."""
    assert p_of_uniform_integers(rows[column], low, high) > FALSE_ALARM
    assert p_of_uniform_integers(rows[column], low - 1, high) < FALSE_ALARM
    assert p_of_uniform_integers(rows[column], low, high + 1) < FALSE_ALARM
    assert p_of_uniform_integers(np.append(rows[column], high + 1), low, high) < FALSE_ALARM


@pytest.mark.parametrize(("column", "low", "high"), [("salary", 20_000, 150_000), ("loan", 0, 500_000)])
def test_amounts_follow_table_1_and_no_other_range(rows, column, low, high):
    """Rate of false alarm 1e-6: the right range is accepted, one that is 1% wider at an end is not."""
    slack = (high - low) // 100
    assert p_of_uniform_amounts(rows[column], low, high) > FALSE_ALARM
    assert p_of_uniform_amounts(rows[column], low - slack, high) < FALSE_ALARM
    assert p_of_uniform_amounts(rows[column], low, high + slack) < FALSE_ALARM


def test_commission_is_zero_from_75000_and_uniform_below(rows):
    """Rate of false alarm 1e-6; a range that starts 1,000 lower and a law with zeros are rejected."""
    earns_much = rows["salary"] >= 75_000
    assert not rows["commission"][earns_much].any()
    below = rows["commission"][~earns_much]
    assert p_of_uniform_amounts(below, 10_000, 75_000) > FALSE_ALARM
    assert p_of_uniform_amounts(below, 9_000, 75_000) < FALSE_ALARM
    assert p_of_uniform_amounts(rows["commission"], 0, 75_000) < FALSE_ALARM


def test_house_values_spread_by_half_around_their_area(rows):
    """Rate of false alarm 1e-6 in each area; h from 0.49 and hvalue without the area are rejected."""
    assert not rows["hvalue"][rows["zipcode"] == 0].any()
    for area in range(1, 10):
        values = rows["hvalue"][rows["zipcode"] == area]
        assert p_of_uniform_amounts(values, area * 50_000, area * 150_000) > FALSE_ALARM
        assert p_of_uniform_amounts(values, area * 49_000, area * 150_000) < FALSE_ALARM
    assert p_of_uniform_amounts(rows["hvalue"], 0, 1_350_000) < FALSE_ALARM


@pytest.mark.parametrize("left", ["salary", "age", "loan"])
@pytest.mark.parametrize("right", ["elevel", "car", "zipcode", "hyears"])
def test_attributes_that_table_1_draws_apart_are_independent(rows, left, right):
    """Rate of false alarm 1e-6 per pair; commission and salary, which do depend, are rejected."""
    coarse = {"salary": 13_001, "age": 6, "loan": 50_001}[left]
    assert p_of_independence(rows[left] // coarse, rows[right]) > FALSE_ALARM
    assert p_of_independence(rows["salary"] // 13_001, rows["commission"] // 10_000) < FALSE_ALARM


def test_consecutive_blocks_share_no_stream(rows):
    """Rate of false alarm 1e-6: the same place in two blocks is independent; a block and itself is not."""
    first, second = rows["age"][:BLOCK_ROWS], rows["age"][BLOCK_ROWS : 2 * BLOCK_ROWS]
    assert p_of_independence(first, second) > FALSE_ALARM
    assert p_of_independence(first, first) < FALSE_ALARM
    assert seeded_block(1, 0).integers(2**62) != seeded_block(0, 1).integers(2**62)


def naive_c2(age, salary):
    """Table II, C2, letter by letter."""
    return (
        ((age < 40) and (50_000 <= salary <= 100_000))
        or ((40 <= age < 60) and (75_000 <= salary <= 125_000))
        or ((age >= 60) and (25_000 <= salary <= 75_000))
    )


def test_c2_is_the_formula_of_table_2_at_every_boundary():
    ages = [20, 39, 40, 41, 59, 60, 61, 80]
    edges = [25_000, 50_000, 75_000, 100_000, 125_000]
    salaries = [20_000, 150_000, *(edge + step for edge in edges for step in (-1, 0, 1))]
    grid = [(age, salary) for age in ages for salary in salaries]
    columns = {"age": np.array([a for a, _ in grid]), "salary": np.array([s for _, s in grid])}
    assert is_class_a(columns).tolist() == [naive_c2(age, salary) for age, salary in grid]


def test_every_row_is_labelled_by_c2(rows):
    expected = [
        "A" if naive_c2(a, s) else "B"
        for a, s in zip(rows["age"][:5_000].tolist(), rows["salary"][:5_000].tolist(), strict=True)
    ]
    assert rows["class"][:5_000].tolist() == expected
    assert set(expected) == {"A", "B"}


def test_columns_are_nine_whole_numbers_and_a_text():
    assert table_of(5, seed=0).schema == AGRAWAL_SCHEMA
    assert AGRAWAL_SCHEMA.names == [
        "salary", "commission", "age", "elevel", "car", "zipcode", "hvalue", "hyears", "loan", "class",
    ]  # fmt: skip
    assert AGRAWAL_SCHEMA.types == [pa.int64()] * 9 + [pa.string()]


@pytest.mark.parametrize("chunk_rows", [999, BLOCK_ROWS, BLOCK_ROWS + 1, 140_000, 10**9])
def test_rows_do_not_depend_on_the_chunks(chunk_rows):
    n_rows = 2 * BLOCK_ROWS + 17
    batches = list(agrawal(n_rows, seed=3, chunk_rows=chunk_rows))
    sizes = [batch.num_rows for batch in batches]
    assert sum(sizes) == n_rows
    assert all(size == chunk_rows for size in sizes[:-1])
    assert pa.Table.from_batches(batches).combine_chunks() == table_of(n_rows, seed=3).combine_chunks()


def test_a_longer_table_begins_with_the_shorter_one():
    assert table_of(100, seed=3) == table_of(BLOCK_ROWS + 5, seed=3).slice(0, 100)


def test_another_seed_gives_other_rows_and_no_seed_is_never_the_same_twice():
    assert table_of(50, seed=3) != table_of(50, seed=4)
    assert table_of(50) != table_of(50)


def test_each_file_format_holds_the_same_rows(tmp_path):
    expected = table_of(3_000, seed=9)
    for name in ("a.csv", "a.csv.gz", "A.PARQUET"):
        write_agrawal(3_000, tmp_path / name, seed=9, chunk_rows=700)
    assert pyarrow.parquet.read_table(tmp_path / "A.PARQUET") == expected
    assert pyarrow.csv.read_csv(tmp_path / "a.csv").cast(AGRAWAL_SCHEMA) == expected
    assert gzip.decompress((tmp_path / "a.csv.gz").read_bytes()) == (tmp_path / "a.csv").read_bytes()
    assert b'"' not in (tmp_path / "a.csv").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["A.PARQUET", "a.csv", "a.csv.gz"]


def test_the_same_seed_writes_the_same_bytes(tmp_path):
    for name in ("1.csv.gz", "2.csv.gz", "1.parquet", "2.parquet"):
        write_agrawal(500, tmp_path / name, seed=9)
    assert (tmp_path / "1.csv.gz").read_bytes() == (tmp_path / "2.csv.gz").read_bytes()
    assert (tmp_path / "1.parquet").read_bytes() == (tmp_path / "2.parquet").read_bytes()


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.parquet"])
def test_an_interrupted_writer_leaves_the_old_file_and_nothing_else(tmp_path, name):
    path = tmp_path / name
    path.write_text("before")
    written = []

    def interrupt(n_rows):
        written.append(n_rows)
        if len(written) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_agrawal(1_000, path, seed=1, chunk_rows=100, progress=interrupt)
    assert written == [100, 100]
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "options",
    [
        *(
            {"function": word}
            for word in ("C1", "C3", "C4", "C5", "C6", "C7", "C8", "C9", "C10", "R7", "R10")
        ),
        {"salary": "normal"},
        {"vary_constants": True},
    ],
)
def test_planned_options_are_refused_as_not_yet(options):
    with pytest.raises(NotYet, match="not yet"):
        agrawal(10, **options)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"function": "c2"}, "Did you mean 'C2'"),
        ({"function": "K3"}, "There is no function 'K3'"),
        ({"salary": "unifrom"}, "Did you mean 'uniform'"),
        ({"n_rows": 0}, "number of rows must be a whole number of at least 1"),
        ({"n_rows": 2.5}, "number of rows must be a whole number"),
        ({"chunk_rows": 0}, "rows per chunk must be"),
        ({"seed": -1}, "seed must be a whole number of at least 0"),
    ],
)
def test_wrong_options_are_refused_before_the_first_row(options, says):
    n_rows = options.pop("n_rows", 10)
    with pytest.raises(InputError, match=says) as refused:
        agrawal(n_rows, **options)
    assert not isinstance(refused.value, NotYet)


def test_a_name_of_unknown_format_is_refused_and_nothing_is_written(tmp_path):
    with pytest.raises(InputError, match=r"'rows\.xlsx'.*\.csv, \.csv\.gz, \.parquet"):
        write_agrawal(10, tmp_path / "rows.xlsx", seed=1)
    assert not list(tmp_path.iterdir())
