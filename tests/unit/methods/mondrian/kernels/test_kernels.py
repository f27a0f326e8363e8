"""Kernels, each beside a naive twin."""

from __future__ import annotations

import json
import math
import os
import stat
import subprocess
import sys
from collections import Counter
from decimal import Decimal, localcontext
from typing import NamedTuple

import naive_mondrian as naive
import numpy as np
import pyarrow as pa
import pytest
from growing import partition, prepare
from hypothesis import given, settings
from hypothesis import strategies as st
from numba.core.errors import TypingError

from sfumato.kernels import compile as compilation
from sfumato.kernels.axes import NO_NUMBER
from sfumato.kernels.compile import inner, kernel
from sfumato.kernels.information import information_table, product
from sfumato.kernels.shuffle import shuffle_leaves
from sfumato.kernels.watch import watch_compiling
from sfumato.methods.mondrian import memory
from sfumato.methods.mondrian.kernels.frequency import (
    add_packed,
    add_sums,
    fill_sums,
    fill_totals,
    packing,
    range_of,
    rank_again,
    select_median,
    unpack,
)
from sfumato.methods.mondrian.kernels.grow import arrange
from sfumato.methods.mondrian.kernels.grow import partition as move_rows
from sfumato.methods.mondrian.kernels.problem import BLOCK
from sfumato.methods.mondrian.kernels.rules import TWO, entropy_holds, fill_walk, part_holds, variance_holds
from sfumato.policy.requirements import (
    DistinctDiversity,
    EntropyDiversity,
    GroupStats,
    KAnonymity,
    RecursiveDiversity,
    TCloseness,
    VarianceDiversity,
)
from sfumato.policy.schema import Schema
from sfumato.policy.workload import Classify, Regress
from sfumato.table.opening import open_table

CODES = st.one_of(
    st.lists(st.integers(0, 5), min_size=1, max_size=30),
    st.lists(st.integers(1000, 70_000), min_size=1, max_size=30),
    st.lists(st.integers(0, 2**32 - 2), min_size=1, max_size=8),
)


def column_of(codes):
    """A column of a row matrix, as kernels see it: strided, unsigned."""
    rows = np.zeros((len(codes), 3), dtype=np.uint32)
    rows[:, 1] = codes
    return rows[:, 1]


# ---- frequency sets --------------------------------------------------------------------------------


@given(CODES, st.integers(1, 40), st.integers(0, 9), st.integers(0, 9))
def test_select_median_finds_the_lower_median_and_counts_below_it(codes, copies, slack_below, slack_above):
    codes = codes * copies  # few rows are sorted in another way than many
    low, high = max(min(codes) - slack_below, 0), min(max(codes) + slack_above, 2**32 - 1)
    bins = np.zeros(2048, dtype=np.int64)
    median, below, at = select_median(column_of(codes), low, high, bins)
    expected = sorted(codes)[(len(codes) - 1) // 2]
    assert (median, below, at) == (expected, sum(x < expected for x in codes), codes.count(expected))
    assert not bins.any()


@pytest.mark.parametrize("n_rows", [5_000, 20_000])
def test_select_median_of_many_rows(n_rows):
    codes = np.random.default_rng(5).integers(0, 2 * n_rows, n_rows) // np.array([1, 300]).repeat(n_rows // 2)
    bins = np.zeros(1 << 15, dtype=np.int64)
    expected = int(np.sort(codes)[(n_rows - 1) // 2])
    found = select_median(column_of(codes), 0, 2 * n_rows, bins)
    assert found == (expected, int((codes < expected).sum()), int((codes == expected).sum()))


@given(CODES, st.booleans(), st.integers(1, 400))
def test_range_of_is_the_least_and_greatest_code_whether_or_not_it_may_stop_early(
    codes, knows_bounds, copies
):
    codes = codes * copies
    bounds = (min(codes), max(codes)) if knows_bounds else (-1, -1)
    assert range_of(column_of(codes), *bounds) == (min(codes), max(codes))


@given(st.lists(st.integers(50, 1500), min_size=1, max_size=40))
def test_rank_again_keeps_the_order_and_leaves_no_gaps(codes):
    column = column_of(codes)
    marks = np.zeros(2000, dtype=np.int64)
    distinct = sorted(set(codes))
    assert rank_again(column, 40, 1510, marks) == len(distinct)
    assert column.tolist() == [distinct.index(code) for code in codes]
    assert not marks.any()


@kernel
def packing_of(n, largest):
    return packing(n, largest)


@kernel
def fill_and_unpack(lines, first_code, shift, code, rows_to, sum_to):
    m = fill_totals(lines, first_code, code, sum_to)
    unpack(sum_to[:m], shift, rows_to, sum_to)
    return m


@given(
    st.lists(
        st.tuples(st.integers(3, 9), st.integers(10, 14), st.integers(0, 2**31)), min_size=1, max_size=30
    ),
    st.booleans(),
)
def test_rows_and_sums_up_to_each_code_are_those_of_a_dictionary(rows, is_packed):
    part = np.array(rows, dtype=np.uint32)
    ranges = {0: (3, 9), 1: (10, 14)}
    listed = np.array([0, 1], dtype=np.uint64)
    base = np.array([-3, 7 - 10], dtype=np.int64).astype(np.uint64)  # 7 lines, then 5
    shift = packing_of(len(rows), 2**31)
    assert shift > 0
    lines = np.zeros(12 if is_packed else 24, dtype=np.int64)
    if is_packed:
        add_packed(part, 2, listed, base, shift, lines)
    else:
        add_sums(part, 2, listed, base, lines)
    start = 0
    for axis, (low, high) in ranges.items():
        code, rows_to, sum_to = np.empty((3, 8), dtype=np.int64)
        width = high - low + 1
        if is_packed:
            m = fill_and_unpack(lines[start : start + width], low, shift, code, rows_to, sum_to)
        else:
            m = fill_sums(lines[2 * start : 2 * (start + width)], low, code, rows_to, sum_to)
        start += width
        codes = sorted({row[axis] for row in rows})
        assert code[:m].tolist() == codes
        assert rows_to[:m].tolist() == [sum(row[axis] <= c for row in rows) for c in codes]
        assert sum_to[:m].tolist() == [sum(row[2] for row in rows if row[axis] <= c) for c in codes]


@given(st.integers(1, 2**30), st.integers(0, 2**32 - 1))
def test_packing_leaves_room_for_the_sum_and_the_rows_or_says_no(n, largest):
    shift = packing_of(n, largest)
    if shift:
        assert n * largest < 2**shift
        assert n * 2**shift + n * largest < 2**62
    else:
        assert (n * largest).bit_length() + n.bit_length() > 60


def test_the_table_of_logarithms_is_that_of_the_scores():
    assert information_table(3000).tolist() == [naive.information(x) for x in range(3001)]


# ---- moving rows -----------------------------------------------------------------------------------


@kernel
def moved(part, axis, code, places):
    return move_rows(part, axis, code, places)


@given(st.integers(1, 5 * BLOCK), st.integers(0, 10), st.integers(1, 10), st.integers(0, 2**32 - 1))
def test_rows_up_to_a_code_move_to_the_front_and_none_is_lost(n_rows, code, n_codes, seed):
    rows = np.arange(3 * n_rows, dtype=np.uint32).reshape(-1, 3)
    rows[:, 1] = np.random.default_rng(seed).integers(0, n_codes, n_rows)
    before = sorted(map(tuple, rows.tolist()))
    n_left = moved(rows, 1, code, np.zeros((2, BLOCK), dtype=np.uint64))
    assert n_left == sum(row[1] <= code for row in before)
    assert (rows[:n_left, 1] <= code).all()
    assert (rows[n_left:, 1] > code).all()
    assert sorted(map(tuple, rows.tolist())) == before


@kernel
def arranged(part, order):
    arrange(part, order)


@given(st.permutations(range(9)))
def test_rows_are_put_into_any_order(order):
    rows = np.arange(18, dtype=np.uint32).reshape(9, 2)
    expected = rows[order].tolist()
    arranged(rows, np.array(order, dtype=np.int64))
    assert rows.tolist() == expected


@given(st.lists(st.integers(1, 6), min_size=1, max_size=6), st.integers(0, 2**32 - 1))
def test_rows_are_shuffled_within_their_leaves_and_every_order_can_come(sizes, seed):
    end = np.cumsum(sizes)
    out = np.arange(end[-1])
    shuffle_leaves(end - sizes, end, np.random.default_rng(seed).random(end[-1]), out)
    for start, stop in zip(end - sizes, end, strict=True):
        assert sorted(out[start:stop].tolist()) == list(range(start, stop))


def test_every_order_of_a_leaf_is_equally_likely():
    rng = np.random.default_rng(11)
    seen: Counter[tuple[int, ...]] = Counter()
    for _ in range(6000):
        out = np.arange(3)
        shuffle_leaves(np.array([0]), np.array([3]), rng.random(3), out)
        seen[tuple(out.tolist())] += 1
    assert len(seen) == 6
    assert all(abs(count - 1000) < 150 for count in seen.values())  # 5 standard deviations


# ---- requirements ----------------------------------------------------------------------------------


@kernel
def walk(rows, order, ends, backward, rules, scratch, out):
    fill_walk(rows, order, ends, ends.shape[0], backward, rules, scratch, out)


@kernel
def holds_of(rows, order, first, last, rules, scratch):
    return part_holds(rows, order, first, last, TWO, rules, scratch)


SCHEMA = Schema.of(
    x={"role": "quasi-identifier", "kind": "number"},
    disease="sensitive",
    job="sensitive",
    salary={"role": "sensitive", "kind": "number"},
)
REQUIREMENTS = st.lists(
    st.one_of(
        st.integers(1, 4).map(KAnonymity),
        st.builds(EntropyDiversity, st.sampled_from([1, 1.2, 1.9, 2, 2.5]), of=st.sampled_from(["disease", "job"])),
        st.builds(
            RecursiveDiversity,
            st.sampled_from([0.5, 1, 1.1, 2]),
            st.integers(1, 4),
            of=st.sampled_from(["disease", "job"]),
        ),
        st.builds(DistinctDiversity, st.integers(1, 4), of=st.sampled_from(["disease", "job"])),
        st.builds(TCloseness, st.sampled_from([0, 0.1, 0.25, 0.5]), of=st.sampled_from(["disease", "job"])),
        st.builds(VarianceDiversity, st.sampled_from([0.0, 1.0, 2.25]), of=st.just("salary")),
    ),
    max_size=3,
)  # fmt: skip
CELLS = st.tuples(st.sampled_from("abcd"), st.sampled_from("xyz"), st.one_of(st.integers(0, 4), st.none()))


@given(st.lists(CELLS, min_size=2, max_size=16), REQUIREMENTS, st.data())
@settings(max_examples=150)
def test_every_prefix_and_every_rest_is_judged_alike_at_once_row_by_row_and_by_definition(
    cells, requirements, data
):
    names = ("disease", "job", "salary")
    sample = [dict(zip(names, row, strict=True)) for row in cells]
    # a table that meets anything, so that the rules compile; only the first rows are looked at
    every = [
        {"disease": d, "job": j, "salary": 10**6 * s} for d in "abcdefgh" for j in "stuvwxyz" for s in (0, 1)
    ]
    rows = sample + every
    types = {"disease": pa.string(), "job": pa.string(), "salary": pa.int64()}
    table = {name: pa.array([row[name] for row in rows], types[name]) for name in names}
    source = open_table(pa.table({"x": range(len(rows)), **table}))
    problem = prepare(source, SCHEMA, requirements, threads=1)
    matrix, rules = problem.engine.rows, problem.rules
    scratch = memory.new_scratch(matrix, problem, widest=int(problem.engine.codes.max()) + 1)

    order = np.array(data.draw(st.permutations(range(len(sample)))), dtype=np.int64)
    inner = data.draw(st.sets(st.integers(1, len(sample))))
    ends = np.array(sorted(inner | {len(sample)}), dtype=np.int64)
    for backward in (False, True):
        out = np.zeros(len(ends), dtype=np.bool_)
        walk(matrix, order, ends, backward, rules, scratch, out)
        for end, found in zip(ends.tolist(), out.tolist(), strict=True):
            first, last = (end, len(sample)) if backward else (0, end)
            part = [sample[i] for i in order[first:last].tolist()]
            assert holds_of(matrix, order, first, last, rules, scratch) == found
            assert found == (bool(part) and all(naive.satisfies(part, asked, rows) for asked in requirements))
            assert found == (bool(part) and all(judged(asked, part, rows) for asked in requirements))
    assert not scratch.values.any()
    assert not scratch.is_top.any()


def judged(requirement, rows, every):
    """What the requirement itself says of the group, as ``verify`` asks it."""
    counts = Counter(row.get(requirement.of) for row in rows)
    if isinstance(requirement, TCloseness):
        whole = Counter(row[requirement.of] for row in every)
        values = np.array([[counts[value] for value in whole]])
        reference = requirement.reference(SCHEMA[requirement.of], whole)
        return requirement.holds(GroupStats(np.array([len(rows)]), values=values, reference=reference))[0]
    numbers = [row["salary"] for row in rows if row["salary"] is not None]
    groups = GroupStats(
        np.array([len(rows)]),
        values=np.array([list(counts.values())]),
        variance=np.array([np.var(numbers) if numbers else 0.0]),
    )
    if isinstance(requirement, RecursiveDiversity) and requirement.l > len(counts):
        return False
    return bool(requirement.holds(groups)[0])


@given(st.lists(st.one_of(st.integers(0, 9), st.integers(0, 2**32)), min_size=2, max_size=12).filter(any))
def test_an_entropy_at_the_limit_is_judged_to_fifteen_digits_however_many_rows(counts):
    """Logarithms in floating point are sure of less, and differ from one processor to the next."""
    n = sum(counts)
    with localcontext(prec=60):
        inner = sum((x * Decimal(x).ln() for x in counts if x), Decimal(0))
        entropy = Decimal(n).ln() - inner / n
    values = np.array(counts)
    assert entropy_holds(values, 0, len(counts), n, float(entropy + Decimal("1e-12") - Decimal("2e-15")))
    assert not entropy_holds(values, 0, len(counts), n, float(entropy + Decimal("1e-12") + Decimal("2e-15")))


@given(st.integers(1, 10**9), st.integers(1, 30))
def test_equal_counts_have_the_entropy_of_so_many_values(count, n_values):
    values = np.full(n_values, count)
    assert entropy_holds(values, 0, n_values, n_values * count, math.log(n_values))
    assert not entropy_holds(values, 0, n_values, n_values * count, math.log(n_values + 1e-9))


WIDE = st.integers(0, 2**62 - 1)


@given(WIDE, WIDE)
def test_products_of_62_bits_are_exact(a, b):
    high, low = product(a, b)
    assert (high << 62) + low == a * b
    assert 0 <= low < 2**62


def moments(values):
    squares = [x * x for x in values]
    return len(values), sum(values), sum(s >> 32 for s in squares), sum(s & 0xFFFFFFFF for s in squares)


@given(st.lists(st.one_of(st.integers(0, 9), st.integers(2**32 - 12, 2**32 - 2)), min_size=1, max_size=12))
def test_a_variance_at_the_limit_is_exact_however_large_the_numbers(values):
    spread = len(values) * sum(x * x for x in values) - sum(values) ** 2
    least = spread / len(values) ** 2
    if spread < 2**50 and math.log2(len(values)).is_integer():  # then least is exact
        assert variance_holds(*moments(values), least)
        assert not variance_holds(*moments(values), (spread + 1) / len(values) ** 2)
    assert variance_holds(*moments(values), least * (1 - 1e-12))
    assert not variance_holds(*moments(values), least * (1 + 1e-12) + 1e-9)


@given(st.integers(1, 2**28), st.integers(0, 2**60), st.integers(0, 2**40), st.booleans())
def test_the_difference_of_products_beyond_64_bits_does_not_round(n, total, spread, is_above):
    """Sums of very many rows: n * squares and total^2 agree in all but their last digits."""
    spread += -(total * total + spread) % n  # n * squares must be a multiple of n
    squares = (total * total + spread) // n
    low = squares & 0xFFFFFFFF
    if squares >> 32 >= 2**62:
        return
    least = spread * (1 + 1e-13 if is_above else 1 - 1e-13) / n / n + (1e-30 if is_above else 0)
    assert variance_holds(n, total, squares >> 32, low, least) != is_above


def test_large_products_of_opposite_remainders_leave_no_trace_of_roundoff():
    """total^2 is 7 below a multiple of 2^62, n * squares is at or above it; and 2^62 - 7 is no float."""
    n, total = 2**28, square_roots_of_minus_7(62)[0]
    for spread in (7, 7 + n, 7 + 5 * n):
        squares, rest = divmod(total * total + spread, n)
        assert rest == 0
        assert variance_holds(n, total, squares >> 32, squares & 0xFFFFFFFF, spread / n**2)
        assert not variance_holds(n, total, squares >> 32, squares & 0xFFFFFFFF, (spread + 1) / n**2)


def square_roots_of_minus_7(bits):
    """x with x^2 = -7 modulo 2^bits, by adding a bit at a time."""
    roots = {1, 3, 5, 7}
    for bit in range(4, bits + 1):
        roots = {x for root in roots for x in (root, root + 2 ** (bit - 1)) if (x * x + 7) % 2**bit == 0}
    return sorted(roots)


def test_no_number_at_all_has_variance_0():
    assert variance_holds(0, 0, 0, 0, 0.0)
    assert not variance_holds(0, 0, 0, 0, 1e-300)


# ---- borrowing -------------------------------------------------------------------------------------


class Pair(NamedTuple):
    counts: np.ndarray
    weights: np.ndarray
    limit: int


@inner(borrows=True)
def add_up_borrowed(pair, extra):
    pair.counts[0] += 1
    total = pair.limit + pair.weights[0]
    for count in pair.counts:
        total += count
    rest = extra[1:]
    for i in range(rest.shape[0]):
        total += rest[i]
    return total


@kernel
def add_up(pair, extra):
    return add_up_borrowed(pair, extra)


@inner(borrows=True)
def make_an_array(n):
    return np.zeros(n)[0]


@kernel
def call_one_that_makes_an_array(n):
    return make_an_array(n)


def test_borrowed_arrays_are_the_same_arrays_and_stay_with_their_owner():
    pair = Pair(np.array([1, 2]), np.array([0.5]), 100)
    extra = np.arange(4)
    before = sys.getrefcount(pair.counts), sys.getrefcount(extra)
    for time in range(1, 50):
        assert add_up(pair, extra) == 3 + time + 0.5 + 100 + 6
    assert pair.counts.tolist() == [50, 2]
    assert (sys.getrefcount(pair.counts), sys.getrefcount(extra)) == before


@pytest.mark.skipif(bool(os.environ.get("NUMBA_DISABLE_JIT")), reason="nothing is compiled")
def test_a_kernel_that_borrows_but_makes_an_array_does_not_compile():
    with pytest.raises(TypingError, match="Only accept returning of array passed into the function"):
        call_one_that_makes_an_array(3)


@pytest.mark.skipif(bool(os.environ.get("NUMBA_DISABLE_JIT")), reason="nothing is compiled")
def test_a_kernel_that_another_one_calls_is_compiled_as_a_whole_only_if_python_calls_it():
    @kernel
    def twice(number):
        return 2 * number

    @kernel
    def four_times(number):
        return twice(twice(number))

    assert four_times(3) == 12
    assert twice.signatures == []
    assert twice(3) == 6
    assert len(twice.signatures) == 1


# ---- one answer by whatever way --------------------------------------------------------------------


def wide_table(n_rows):
    """A target of 32 bits on many rows: more than rows and sum in one word can hold."""
    rng = np.random.default_rng(2)
    age = rng.integers(0, 90, n_rows)
    return {
        "age": age,
        "zip": rng.integers(0, 300, n_rows),
        "job": rng.choice(["a", "b", "c"], n_rows),
        "wage": rng.integers(0, 2**32 - 2, n_rows) // (1 + age % 7),
        "class": np.where(rng.random(n_rows) < age / 90, "yes", "no"),
        "same": np.zeros(n_rows, dtype=np.int64),
    }


def sizes(table, task, k):
    schema = Schema.of(
        age={"role": "quasi-identifier", "kind": "number"},
        zip={"role": "quasi-identifier", "kind": "number"},
        job="quasi-identifier",
        wage={"role": "other", "kind": "number"},
        **{"class": "other"},
        same={"role": "other", "kind": "number"},
    )
    found = partition(open_table(pa.table(table)), schema, [KAnonymity(k)], workload=[task])
    return found.size.tolist(), found.row_numbers.tolist()


@pytest.mark.parametrize("target", ["wage", "class"])
def test_one_target_in_one_word_in_two_words_or_beside_a_constant_gives_one_tree(target):
    task = Regress if target == "wage" else Classify
    table = wide_table(1 << 16)
    assert packing_of(1 << 16, 2**32 - 2) == 0 < packing_of(100, 2**32 - 2)
    assert sizes(table, task(target), 500) == sizes(table, task([target, "same"]), 500)


SMALL = """
import json
import pyarrow as pa
from growing import partition
from sfumato.policy.requirements import EntropyDiversity, KAnonymity, RecursiveDiversity, VarianceDiversity
from sfumato.policy.schema import Schema
from sfumato.table.opening import open_table
from sfumato.policy.workload import Classify, Regress, Select

table = pa.table({
    "x": [1, 5, 3, None, 9, 200, 3, 3],
    "z": ["11", "12", "21", None, "22", "11", "12", "13"],
    "d": list("abcabcab"),
    "s": [1, 5, 9, None, 3, 4, 8, 1],
    "c": list("ynynynyy"),
})
schema = Schema.of(
    x={"role": "quasi-identifier", "kind": "number"},
    z={"role": "quasi-identifier", "hierarchy": {"mask": 2}},
    d="sensitive",
    s={"role": "sensitive", "kind": "number"},
    c="other",
)
workloads = (
    [], [Classify("c")], [Regress("s")], [Classify(["c", "d"]), Regress("s")],
    [Select("x between 2 and 4 or z = '21'"), Select("x is null or z in ('11', '12')", weight=0.3)],
    [Classify("c", features=["d"]), Regress("s", features=["c", "d"])],
)
requirements = (
    [KAnonymity(2)],
    [EntropyDiversity(1.5, of="d")],
    [RecursiveDiversity(2, 2, of="d"), VarianceDiversity(0.5, of="s")],
)
found = []
for workload in workloads:
    for required in requirements:
        groups = partition(open_table(table), schema, required, workload=workload, threads=1)
        recoded = groups.recoding.apply(table.select(["x", "z"])).to_pydict()
        found.append([groups.size.tolist(), groups.row_numbers.tolist(), recoded])
print(json.dumps(found))
"""


def test_the_kernels_are_plain_python_too_with_the_same_results(capsys):
    exec(SMALL, {})
    compiled = json.loads(capsys.readouterr().out)
    assert len({json.dumps(answer) for answer in compiled}) > 4
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    plain = subprocess.run(
        [sys.executable, "-W", "ignore:overflow:RuntimeWarning", "-c", SMALL],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert plain.returncode == 0, plain.stderr
    assert json.loads(plain.stdout) == compiled


def test_compiled_kernels_are_kept_where_the_user_says_or_can_write(monkeypatch, tmp_path):
    find = compilation.cache_folder.__wrapped__
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "numba"))
    assert find().parent == tmp_path / "numba"
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert find().parent == tmp_path / "cache" / "sfumato"
    assert stat.S_IMODE(find().stat().st_mode) == 0o700
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))  # nothing can be written below a file
    assert find() is None


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="asks who owns a folder, as POSIX does")
class TestAFolderThatOthersCanWriteIsNotUsed:
    """numba runs what it finds there."""

    @pytest.fixture
    def folder(self, monkeypatch, tmp_path):
        monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "numba"))
        made = compilation.cache_folder.__wrapped__()
        assert made is not None
        return made

    def is_used(self):
        return compilation.cache_folder.__wrapped__() is not None

    @pytest.mark.parametrize("mode", [0o770, 0o777, 0o702])
    def test_because_of_its_mode(self, folder, mode):
        folder.chmod(mode)
        assert not self.is_used()

    def test_unless_they_can_only_read_it_which_ends(self, folder):
        folder.chmod(0o755)
        assert self.is_used()
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700

    def test_because_it_is_somebody_elses(self, folder, monkeypatch):
        monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
        assert not self.is_used()

    def test_because_it_is_a_link(self, folder, tmp_path):
        folder.rename(tmp_path / "elsewhere")
        folder.symlink_to(tmp_path / "elsewhere")
        assert not self.is_used()

    def test_because_they_can_put_another_one_in_its_place(self, folder):
        folder.parent.chmod(0o777)
        assert not self.is_used()
        folder.parent.chmod(0o1777)  # as /tmp
        assert self.is_used()

    def test_and_then_kernels_work_all_the_same_and_leave_nothing_behind(self, folder, tmp_path):
        folder.parent.chmod(0o777)
        program = "import sfumato.kernels.ranks, sfumato.kernels.compile as c; print(c.cache_folder())"
        environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, check=False
        )
        assert (done.returncode, done.stdout.strip()) == (0, b"None"), done.stderr
        assert [path.name for path in tmp_path.iterdir()] == ["numba"]
        assert list(folder.iterdir()) == []


def test_whoever_watches_is_told_how_far_compiling_is():
    told = []

    @compilation.inner
    def twice(number):
        return 2 * number

    @compilation.inner
    def four_times(number):
        return twice(twice(number))

    with watch_compiling(lambda done, most: told.append((done, most))):
        four_times.compile("int64(int64)")
    four_times.compile("float64(float64)")  # nobody watches
    counts = [done for done, _ in told]
    assert counts[-1] - counts[0] >= 1
    assert counts == sorted(counts)
    assert all(done <= most for done, most in told)


def test_the_code_for_a_missing_number_is_beyond_all_others():
    assert int(NO_NUMBER) == 2**32 - 1
