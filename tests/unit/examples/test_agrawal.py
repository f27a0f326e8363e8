"""The Agrawal generator: the laws of Table I, the labelling functions C1 to C10, R7 and R10, and streaming.

Statistical tests draw from a fixed seed, so they never flicker. Their rate of false alarm is what a
fresh seed would risk: each chi-square test accepts a right law with probability 1 - 1e-6, and each must
also reject laws that are a little wrong, so that none of them is unable to fail.
"""

import gzip
import hashlib
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2_contingency, chisquare, kstest

from sfumato.errors import InputError
from sfumato.examples.agrawal import (
    AGRAWAL_SCHEMA,
    BLOCK_ROWS,
    agrawal,
    agrawal_schema,
    draw_quasi_identifiers,
    write_agrawal,
)
from sfumato.examples.agrawal_functions import (
    FUNCTIONS,
    PRINTED,
    RANGES,
    Constants,
    draw_constants,
    label_rows,
)
from sfumato.randomness import seeded, seeded_block

FALSE_ALARM = 1e-6
FIRST_VERSION = "884c61bb6fc2aae04a0ad2698495d4aa0ccae4a860466132188adfc501b64c06"


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


def by_age(age, young, middle, old):
    return young if age < 40 else middle if age < 60 else old


def naive_label(function, r):
    """The functions of [AGI93], letter by letter, for one row; money in thousands where it is printed so."""
    age, elevel = r["age"], r["elevel"]
    k = 1000
    if function == "C1":
        return age < 40 or age >= 60
    if function in ("C2", "C6"):
        money = r["salary"] + (r["commission"] if function == "C6" else 0)
        return (
            ((age < 40) and (50 * k <= money <= 100 * k))
            or ((40 <= age < 60) and (75 * k <= money <= 125 * k))
            or ((age >= 60) and (25 * k <= money <= 75 * k))
        )
    if function == "C3":
        return elevel in by_age(age, (0, 1), (1, 2, 3), (2, 3, 4))
    if function == "C4":
        met = elevel in by_age(age, (0, 1), (1, 2, 3), (2, 3, 4))
        first, second = by_age(age, (25, 50), (50, 75), (50, 25))
        low = (first if met else second) * k
        return low <= r["salary"] <= low + 50 * k
    if function == "C5":
        low = by_age(age, 50, 75, 25) * k
        met = low <= r["salary"] <= low + 50 * k
        first, second = by_age(age, (100, 200), (200, 300), (300, 100))
        low = (first if met else second) * k
        return low <= r["loan"] <= low + 200 * k
    return naive_disposable("C" + function[1:], r) > 0


def naive_disposable(function, r):
    """In exact fractions, so that no row is judged by round-off."""
    income = Fraction(67, 100) * (r["salary"] + r["commission"])
    equity = Fraction(1, 10) * r["hvalue"] * (r["hyears"] - 20) if r["hyears"] >= 20 else 0
    return {
        "C7": income - Fraction(1, 5) * r["loan"] - 20_000,
        "C8": income - 5000 * r["elevel"] - 20_000,
        "C9": income - 5000 * r["elevel"] - Fraction(1, 5) * r["loan"] - 10_000,
        "C10": income - 5000 * r["elevel"] + Fraction(1, 5) * equity - 10_000,
    }[function]


EDGES = [20_000, 25_000, 50_000, 75_000, 100_000, 125_000, 150_000]
AT_EDGES = {
    "salary": st.sampled_from(EDGES).flatmap(lambda edge: st.integers(edge - 1, edge + 1)),
    "commission": st.just(0) | st.integers(10_000, 75_000) | st.sampled_from([24_999, 25_000, 25_001]),
    "age": st.sampled_from([20, 39, 40, 41, 59, 60, 61, 80]),
    "elevel": st.integers(0, 4),
    "car": st.integers(1, 20),
    "zipcode": st.integers(0, 9),
    "hvalue": st.integers(0, 1_350_000),
    "hyears": st.sampled_from([1, 19, 20, 21, 30]),
    "loan": st.sampled_from(range(0, 600_000, 100_000)).flatmap(lambda edge: st.integers(edge - 1, edge + 1)),
}
CLASSES = [function for function in FUNCTIONS if function[0] == "C"]


@given(st.lists(st.fixed_dictionaries(AT_EDGES), min_size=1, max_size=30))
def test_classes_are_the_formulas_of_the_paper_at_every_edge(rows):
    columns = {name: np.array([row[name] for row in rows]) for name in AT_EDGES}
    for function in CLASSES:
        assert label_rows(function, columns).tolist() == [naive_label(function, row) for row in rows]


@given(st.lists(st.fixed_dictionaries(AT_EDGES), min_size=1, max_size=30))
def test_numbers_are_what_c7_and_c10_judge(rows):
    columns = {name: np.array([row[name] for row in rows]) for name in AT_EDGES}
    for number, judged in (("R7", "C7"), ("R10", "C10")):
        found = label_rows(number, columns)
        assert found.tolist() == [float(naive_disposable(judged, row)) for row in rows]
        assert (found > 0).tolist() == label_rows(judged, columns).tolist()


def test_a_row_that_has_just_nothing_left_is_of_class_b():
    """.67 x 91,100 - .2 x 205,185 - 20,000 is 0, though floats say 7.3e-12."""
    row = {"salary": np.array([91_100]), "commission": np.array([0]), "loan": np.array([205_185])}
    assert 0.67 * 91_100 - 0.2 * 205_185 - 20_000 > 0
    assert label_rows("C7", row).tolist() == [False]
    assert label_rows("R7", row).tolist() == [0.0]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_function_labels_the_same_rows(function):
    table = table_of(3_000, seed=5, function=function)
    assert table.schema == agrawal_schema(function)
    plain = table_of(3_000, seed=5)
    assert table.drop(["class"]) == plain.drop(["class"])
    expected = [
        float(naive_disposable("C" + function[1:], row))
        if function[0] == "R"
        else "BA"[naive_label(function, row)]
        for row in plain.to_pylist()
    ]
    assert table["class"].to_pylist() == expected
    assert len(set(expected)) > 1


def test_the_rows_of_a_seed_are_those_of_the_first_version(tmp_path):
    """Checksum of 1,000 rows of C2 as version 0.1 wrote them."""
    write_agrawal(1_000, tmp_path / "a.csv", seed=7)
    assert hashlib.sha256((tmp_path / "a.csv").read_bytes()).hexdigest() == FIRST_VERSION


# ---- constants at random ---------------------------------------------------------------------------------


@pytest.mark.parametrize("function", PRINTED)
def test_drawn_constants_are_bands_of_the_shape_and_range_of_the_printed_ones(function):
    for seed in range(200):
        drawn = draw_constants(function, seeded(seed))
        for name, (low, high) in RANGES.items():
            bands = (drawn.ages,) if name == "ages" else getattr(drawn, name)
            assert name == "ages" or len(bands) == len(getattr(PRINTED[function], name))
            assert all(low <= first <= second <= high for first, second in bands)
            assert all(type(end) is int for band in bands for end in band)


def p_of_two_sorted(values, low, high):
    """Rank test of "the smaller and the larger of two uniform draws", seen through the sum of both."""
    total = (np.array(values) - low).sum(axis=1) / (high + 1 - low) + 1 / (high + 1 - low)
    return kstest(total, lambda x: np.where(x < 1, x**2 / 2, 1 - (2 - x) ** 2 / 2)).pvalue


def test_drawn_constants_are_uniform_over_the_range_and_no_other():
    """Rate of false alarm 1e-6 each; a range that is 10% narrower at an end is rejected."""
    drawn = [draw_constants("C5", seeded_block(11, number)) for number in range(4_000)]
    for name in ("salary", "loan"):
        low, high = RANGES[name]
        for place in range(3):
            bands = [getattr(constants, name)[place] for constants in drawn]
            slack = (high - low) // 10
            assert p_of_two_sorted(bands, low, high) > FALSE_ALARM
            assert p_of_two_sorted(bands, low + slack, high) < FALSE_ALARM
            assert p_of_two_sorted(bands, low, high - slack) < FALSE_ALARM


def test_constants_come_once_for_a_table_from_its_seed():
    table = table_of(BLOCK_ROWS + 500, seed=3, vary_constants=True)
    assert table.slice(0, 100) == table_of(100, seed=3, vary_constants=True)
    plain = table_of(BLOCK_ROWS + 500, seed=3)
    assert table.drop(["class"]) == plain.drop(["class"])
    assert table["class"] != plain["class"]
    others = [
        table_of(500, seed=seed, vary_constants=True)["class"].to_pylist().count("A") for seed in range(9)
    ]
    assert len(set(others)) > 5


def test_given_constants_decide_the_class():
    everyone = Constants(ages=(40, 60), salary=((20_000, 150_000),) * 3)
    assert set(table_of(500, seed=3, constants=everyone)["class"].to_pylist()) == {"A"}
    printed = table_of(500, seed=3, function="C4", constants=PRINTED["C4"])
    assert printed == table_of(500, seed=3, function="C4")


# ---- salaries --------------------------------------------------------------------------------------------


def test_normal_salaries_follow_their_law_and_no_other():
    """Rate of false alarm 1e-6; a mean off by 300 and a spread off by 3% are rejected."""
    salary = table_of(200_000, seed=6, salary="normal")["salary"].to_numpy()
    sigma = 1.1e8**0.5
    assert kstest(salary, "norm", (85_000, sigma)).pvalue > FALSE_ALARM
    assert kstest(salary, "norm", (85_300, sigma)).pvalue < FALSE_ALARM
    for wrong in (0.97, 1.03):
        assert kstest(salary, "norm", (85_000, sigma * wrong)).pvalue < FALSE_ALARM
    assert (salary.min() >= 20_000, salary.max() <= 150_000) == (True, True)


def test_normal_salaries_are_kept_within_the_range():
    class Wild:
        def __getattr__(self, name):
            return getattr(seeded(1), name)

        def normal(self, mean, deviation, n_rows):
            return mean + deviation * np.linspace(-9, 9, n_rows)

    drawn = draw_quasi_identifiers(101, Wild(), salary="normal")
    assert (drawn["salary"].min(), drawn["salary"].max()) == (20_000, 150_000)
    assert not drawn["commission"][drawn["salary"] >= 75_000].any()


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
    ("options", "says"),
    [
        ({"function": "c2"}, "Did you mean 'C2'"),
        ({"function": "K3"}, "There is no function 'K3'"),
        ({"function": "C7", "vary_constants": True}, "C7 has no constants to draw; C1, C2"),
        ({"function": "R10", "vary_constants": True}, "R10 has no constants"),
        ({"function": "C8", "constants": Constants()}, "given to C8, which has none"),
        ({"vary_constants": True, "constants": PRINTED["C2"]}, "drawn at random and given"),
        ({"salary": "unifrom"}, "Did you mean 'uniform'"),
        ({"n_rows": 0}, "number of rows must be a whole number of at least 1"),
        ({"n_rows": 2.5}, "number of rows must be a whole number"),
        ({"chunk_rows": 0}, "rows per chunk must be"),
        ({"seed": -1}, "seed must be a whole number of at least 0"),
    ],
)
def test_wrong_options_are_refused_before_the_first_row(options, says):
    n_rows = options.pop("n_rows", 10)
    with pytest.raises(InputError, match=says):
        agrawal(n_rows, **options)


def test_constants_for_a_function_without_any_are_refused():
    with pytest.raises(InputError, match="C9 takes no constants"):
        label_rows("C9", {}, Constants())


def test_numbers_are_written_to_every_format(tmp_path):
    for name in ("a.csv", "a.parquet"):
        write_agrawal(300, tmp_path / name, seed=9, function="R10")
    expected = table_of(300, seed=9, function="R10")
    assert pyarrow.parquet.read_table(tmp_path / "a.parquet") == expected
    assert pyarrow.csv.read_csv(tmp_path / "a.csv") == expected


def test_a_name_of_unknown_format_is_refused_and_nothing_is_written(tmp_path):
    with pytest.raises(InputError, match=r"'rows\.xlsx'.*\.csv, \.csv\.gz, \.parquet"):
        write_agrawal(10, tmp_path / "rows.xlsx", seed=1)
    assert not list(tmp_path.iterdir())
