"""What verify finds: on tables small enough to judge by hand, against a naive twin, and after tampering."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import feather
from tampering import edit_certificate, rehash

from sfumato.errors import InputError, InternalError, PolicyError, TableError, VerificationFailed
from sfumato.policy.document import Policy
from sfumato.policy.requirements import REQUIREMENTS
from sfumato.publishing import Request, publish, publish_to
from sfumato.recoding import statistics as summary
from sfumato.recoding.recoder import Partition
from sfumato.release.certificate import Certificate
from sfumato.release.folder import hashes_of
from sfumato.release.release import Release
from sfumato.table.opening import open_table
from sfumato.verify import folder as folder_checks
from sfumato.verify import portions, requirements, rows, sql
from sfumato.verify.checks import Check, Verification
from sfumato.verify.folder import verify_folder
from sfumato.verify.groups import GroupedRows, Groups
from sfumato.verify.measure import claims, measure
from sfumato.verify.requirements import measure_groups
from sfumato.verify.table import verify_table


def pytest_generate_tests(metafunc):
    """Whatever is checked in a file is checked twice: all at once, and in portions of a few rows."""
    if "tmp_path" in metafunc.fixturenames:
        metafunc.parametrize("room", [None, 300, 1], indirect=True, ids=["at-once", "portions", "no-room"])


@pytest.fixture(autouse=True)
def room(request, monkeypatch):
    if memory := getattr(request, "param", None):
        monkeypatch.setattr(rows, "free_memory", lambda: 2 * memory)
        monkeypatch.setattr(portions, "FEWEST_ROWS", 3)
        monkeypatch.setattr(portions, "N_FILES", 3)


COLUMNS = {
    "id": {"role": "identifier"},
    "age": {"role": "quasi-identifier", "type": "number", "bounds": [0, 110]},
    "zip": {"role": "quasi-identifier"},
    "disease": {"role": "sensitive", "missing-values": ["?", "NA"]},
    "salary": {"role": "sensitive", "type": "number"},
    "job": {"role": "other"},
    "notes": {"role": "drop"},
}


def a_policy(*require, output="labels", **columns) -> Policy:
    return Policy.from_dict(
        {"attributes": {**COLUMNS, **columns}, "require": list(require), "output": {"values": output}}
    )


def groups_of(*diseases, salaries=None) -> pa.Table:
    """One group for each text of diseases, a letter for a row: "aab" are three rows of one group."""
    letters = "".join(diseases)
    return pa.table(
        {
            "age": [f"[{g}0, {g}9]" for g, text in enumerate(diseases) for _ in text],
            "zip": ["*"] * len(letters),
            "disease": list(letters),
            "salary": salaries or list(range(len(letters))),
            "job": ["j"] * len(letters),
        }
    )


def achieved(table, *require, **columns):
    """Figure and failing groups of each requirement."""
    found = measure(table, a_policy(*require, **columns)).requirements
    return [(item.achieved, item.n_failing) for item in found]


K2 = {"k-anonymity": 2}


def entropy(l):  # noqa: E741 - the letter of the definition
    return {"entropy-diversity": {"l": l, "of": "disease"}}


def recursive(c, l):  # noqa: E741
    return {"recursive-diversity": {"c": c, "l": l, "of": "disease"}}


def variance(v):
    return {"variance-diversity": {"at-least": v, "of": "salary"}}


# ---- groups ----------------------------------------------------------------------------------------


def test_a_group_is_the_rows_that_agree_in_every_quasi_identifier():
    table = groups_of("ab").set_column(1, "zip", pa.array(["1", "2"]))
    assert measure(table, a_policy(K2)).groups == 2
    assert achieved(groups_of("ab", "abc"), K2, {"k-anonymity": 3}) == [(2.0, 0), (2.0, 1)]


def test_groups_are_found_in_any_order_of_rows():
    table = groups_of("aab", "bc", "ddda")
    policy = a_policy(K2, entropy(2), recursive(2, 2), variance(0.1))
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(table.num_rows)
        assert measure(table.take(pa.array(order)), policy) == measure(table, policy)


def test_a_missing_quasi_identifier_matches_only_missing():
    # pycanon's groupby drops rows with NaN and finds 2 here
    ages = pa.array(["[0, 9]", "[0, 9]", None, "[10, 19]", "[10, 19]"])
    table = pa.table({"age": ages, "zip": ["*"] * 5})
    assert measure(table, a_policy(K2)).groups == 3
    assert achieved(table, K2) == [(1.0, 1)]


@pytest.mark.parametrize(
    "cells",
    [
        ["", None, None],
        [float("nan"), None, None],
        [-0.0, 0.0, 0.0],
        pa.array([-0.0, 0.0, 0.0], pa.float32()),
        pa.array(["", None, None]).dictionary_encode(),
    ],
    ids=["empty", "nan", "negative zero", "float32", "dictionary"],
)
def test_one_person_is_not_hidden_by_another_way_of_writing_nothing(tmp_path, cells):
    """Arrow, Parquet and Feather keep the cells apart, and so does whoever reads them."""
    table = pa.table({"age": cells, "zip": ["*"] * 3})
    assert achieved(table, K2) == [(1.0, 1)]
    pq.write_table(table, tmp_path / "t.parquet")
    feather.write_feather(table, tmp_path / "t.arrow", compression="uncompressed")
    for name in ("t.parquet", "t.arrow"):
        (failure,) = verify_table(tmp_path / name, a_policy(K2)).failures
        assert failure.detail == "the smallest group is 1, and 1 of 2 groups fail"


def test_an_empty_cell_of_csv_is_one_value_quoted_or_not(tmp_path):
    (tmp_path / "t.csv").write_text('age,zip\n,*\n"",*\n,*\n')
    assert measure(tmp_path / "t.csv", a_policy(K2)).groups == 1


def test_all_nan_are_one_value():
    table = pa.table({"age": [float("nan")] * 3, "zip": ["*"] * 3})
    assert measure(table, a_policy(K2)).groups == 1


def test_an_identifier_that_is_empty_here_and_null_there_tells_rows_apart():
    table = groups_of("ab", "ab").append_column("id", pa.array(["", None, None, None]))
    assert "no column that the policy leaves out tells rows apart" in {
        check.claim for check in verify_table(table, a_policy(K2)).failures
    }


def test_a_text_that_means_missing_in_raw_data_is_a_text_like_any_other_in_a_quasi_identifier():
    policy = a_policy(zip={"role": "quasi-identifier", "missing-values": ["?"]})
    assert measure(pa.table({"age": ["1"] * 3, "zip": ["?", None, "?"]}), policy).groups == 2


def test_cells_are_compared_as_text():
    policy = a_policy()
    assert measure(pa.table({"age": ["1", "1.0", "01"], "zip": ["*"] * 3}), policy).groups == 3
    assert measure(pa.table({"age": [1.0, 1.0, 2.0], "zip": ["*"] * 3}), policy).groups == 2


@pytest.mark.parametrize("columns", [("age_low", "age_high"), ("age", "age_low", "age_high")])
def test_bounds_part_groups_as_labels_do(columns):
    table = pa.table({name: [0, 0, 0, 0] for name in columns} | {"zip": ["*"] * 4})
    for name in columns:
        changed = table.set_column(table.column_names.index(name), name, pa.array([0, 0, 1, 1]))
        assert measure(changed, a_policy()).groups == 2


def test_a_column_of_the_policy_is_nobodys_bound():
    policy = a_policy(age_low={"role": "other"}, age_high={"role": "other"})
    table = pa.table({"age": ["1", "1"], "age_low": [1, 2], "age_high": [1, 2], "zip": ["*", "*"]})
    assert measure(table, policy).groups == 1


def test_combinations_that_outgrow_64_bits_are_still_told_apart():
    # 12 columns of 100 distinct values: 101 ** 12 is about 2 ** 80
    rng = np.random.default_rng(0)
    cells = rng.integers(0, 100, (300, 12))
    cells = np.concatenate([cells, cells[:100]])
    columns = {f"q{i}": {"role": "quasi-identifier"} for i in range(12)}
    policy = Policy.from_dict({"attributes": columns, "require": [K2]})
    table = pa.table({f"q{i}": cells[:, i] for i in range(12)})
    found = measure(table, policy)
    assert (found.groups, found.requirements[0].n_failing) == (300, 200)


def test_chunks_and_dictionaries_of_any_kind_do_not_matter():
    plain = pa.array(["b", "a", "b", "a", None])
    parts = pa.chunked_array([plain[:2].dictionary_encode(), plain[2:].dictionary_encode()])
    twice = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 3, None]), pa.array(["b", "a", "b", "a"]))
    expected = math.exp(2 * 0.4 * math.log(5 / 2) + 0.2 * math.log(5))
    for column in (plain, parts, twice):
        table = pa.table({"age": ["1"] * 5, "zip": ["*"] * 5, "disease": column})
        assert achieved(table, entropy(1)) == [(pytest.approx(expected), 0)]


def test_a_table_without_a_needed_column_or_without_rows_cannot_be_measured():
    with pytest.raises(TableError, match="no column 'zip'"):
        measure(pa.table({"age": ["1"]}), a_policy())
    with pytest.raises(TableError, match="no rows"):
        measure(groups_of("ab").slice(0, 0), a_policy())


# ---- requirements ----------------------------------------------------------------------------------


def test_entropy_diversity_of_exactly_l_equal_values_is_l():
    # pycanon truncates: two equally frequent values count as 1 there
    for l in range(1, 60):  # noqa: E741
        letters = "".join(chr(0x100 + i) for i in range(l))
        (figure, failing), (_, failing_above) = achieved(
            groups_of(letters * 3), entropy(l), entropy(l + 1e-9)
        )
        assert figure == pytest.approx(l, rel=1e-12)
        assert (failing, failing_above) == (0, 1)


def test_entropy_diversity_is_that_of_the_worst_group():
    assert achieved(groups_of("ab", "aaab", "aa"), entropy(2)) == [(1.0, 2)]


def test_recursive_diversity_sorts_the_most_frequent_value_first():
    # counts 98, 1, 1: x1 = 98 and the tail from x2 is 2; sorted the wrong way, c = 1 would seem to do
    table = groups_of("a" * 98 + "bc")
    assert achieved(table, recursive(1, 2), recursive(49, 2), recursive(49.0000001, 2), recursive(99, 3)) == [
        (49.0, 1), (49.0, 1), (49.0, 0), (98.0, 0),
    ]  # fmt: skip


def test_recursive_diversity_is_strict_and_exact_at_the_boundary():
    # 3 < 0.1 x 30 is false, though 0.1 * 30 > 3 could be true in floating point
    table = groups_of("aaa" + "".join(chr(0x100 + i) for i in range(30)))
    assert achieved(table, recursive(0.1, 2), recursive(0.1000001, 2)) == [(0.1, 1), (0.1, 0)]


def test_recursive_diversity_with_one_value_always_holds_and_with_too_few_values_never_does():
    table = groups_of("aaaa", "aab")
    assert achieved(table, recursive(1e-9, 1), recursive(1e300, 3), recursive(1e300, 4)) == [
        (1.0, 0), (math.inf, 2), (math.inf, 2),
    ]  # fmt: skip


def test_a_missing_sensitive_value_is_one_value_however_it_is_written():
    table = groups_of("abcd").set_column(2, "disease", pa.array(["?", "NA", None, "flu"]))
    assert achieved(table, recursive(4, 2)) == [(3.0, 0)]


def test_sensitive_numbers_are_values_and_not_spellings():
    table = groups_of("abc", salaries=["1", "1.0", "+1"])
    assert achieved(table, {"entropy-diversity": {"l": 2, "of": "salary"}}) == [(1.0, 1)]
    zeros = groups_of("abc", salaries=[0.0, -0.0, 0.5])
    assert achieved(zeros, {"recursive-diversity": {"c": 3, "l": 2, "of": "salary"}}) == [(2.0, 0)]


def test_sensitive_dates_are_values_and_not_spellings():
    table = pa.table({"age": ["1"] * 2, "zip": ["*"] * 2, "day": ["2024-03-05", "2024-03-05 10:30"]})
    day = {"role": "sensitive", "type": "date"}
    assert achieved(table, {"entropy-diversity": {"l": 2, "of": "day"}}, day=day) == [(1.0, 1)]


def test_variance_is_that_of_the_population():
    assert achieved(groups_of("ab", "abc", salaries=[1, 3, 0, 3, 6]), variance(1), variance(1.1)) == [
        (1.0, 0), (1.0, 1),
    ]  # fmt: skip


def test_missing_numbers_are_left_out_of_the_variance_and_a_group_without_any_has_none():
    table = groups_of("abc", "ab", salaries=["1", "", "3", "", ""])
    assert achieved(table, variance(0), variance(0.5)) == [(0.0, 0), (0.0, 1)]
    assert achieved(groups_of("abc", salaries=["1", "", "3"]), variance(1)) == [(1.0, 0)]


@pytest.mark.parametrize("offset", [0, 2**53, -(2**62), 2**62])
def test_small_differences_between_large_whole_numbers_are_seen(offset):
    assert achieved(groups_of("abc", salaries=[offset, offset + 3, offset + 6]), variance(6)) == [(6.0, 0)]


def test_distinct_values_are_counted_and_a_missing_one_is_a_value_of_its_own():
    distinct = {"distinct-diversity": {"l": 2, "of": "disease"}}
    assert achieved(groups_of("ab", "aaab", "aa"), distinct) == [(1.0, 1)]
    assert achieved(groups_of("ab", "abb", "a "), distinct) == [(2.0, 0)]


def test_the_whole_range_of_whole_numbers_has_a_variance():
    ((figure, failing),) = achieved(groups_of("ab", salaries=[-(2**63), 2**63 - 1]), variance(1))
    assert (figure, failing) == (pytest.approx(2.0**126), 0)


def test_equal_decimals_have_no_variance_at_all():
    assert achieved(groups_of("abc", salaries=[0.1, 0.1, 0.1]), variance(0)) == [(0.0, 0)]


def test_numbers_too_far_apart_have_an_infinite_variance():
    assert achieved(groups_of("ab", salaries=[-1.7e308, 1.7e308]), variance(1)) == [(math.inf, 0)]
    assert achieved(groups_of("ab", salaries=[0.0, 1e200]), variance(1)) == [(math.inf, 0)]


def test_a_variance_of_exactly_what_is_required_holds_in_spite_of_roundoff():
    salaries = [0.1, 0.2, 0.3, 0.7]
    exact = float(sum((Fraction(str(x)) - Fraction(13, 40)) ** 2 for x in salaries) / 4)
    assert achieved(groups_of("abcd", salaries=salaries), variance(exact), variance(exact * 1.000001)) == [
        (pytest.approx(exact, rel=1e-12), 0), (pytest.approx(exact, rel=1e-12), 1),
    ]  # fmt: skip


def test_a_requirement_that_verify_does_not_know_is_never_passed_in_silence():
    class Unknown:
        of = "disease"

    groups = Groups(np.array([0]), np.array([0]), 1, 1)
    found = GroupedRows(open_table(groups_of("a")), groups)
    with pytest.raises(InternalError, match="no definition"):
        measure_groups(Unknown(), found, a_policy().schema)


def test_verify_has_a_definition_of_every_requirement_and_so_has_its_sql():
    assert set(REQUIREMENTS.values()) == set(requirements.DEFINITIONS) == set(sql.DEFINITIONS)


# ---- against a naive twin --------------------------------------------------------------------------


def naive(rows, l, c, v):  # noqa: E741
    """All four figures from dictionaries of lists, straight from definitions 2.1 to 2.4."""
    groups = defaultdict(list)
    for age, zip_, disease, salary in rows:
        groups[age, zip_].append((disease, salary))
    k, entropies, ratios, holds, variances = [], [], [], [], []
    for group in groups.values():
        k.append(len(group))
        counts = sorted(Counter(disease for disease, _ in group).values(), reverse=True)
        entropies.append(-sum(n / len(group) * math.log(n / len(group)) for n in counts))
        tail = sum(counts[l - 1 :])
        ratios.append(counts[0] / tail if tail else math.inf)
        holds.append(l == 1 or counts[0] < Fraction(str(c)) * tail)
        numbers = [Fraction(salary) for _, salary in group if salary is not None]
        mean = sum(numbers) / len(numbers) if numbers else 0
        variances.append(sum((x - mean) ** 2 for x in numbers) / max(len(numbers), 1))
    return [
        (len(groups), min(k), sum(n < 2 for n in k)),
        (min(map(math.exp, entropies)), sum(h < math.log(l) - 1e-12 for h in entropies)),
        (max(ratios), holds.count(False)),
        (float(min(variances)), sum(x < v for x in variances)),
    ]


@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from(["[0, 9]", "[10, 19]", "*", None]),
            st.sampled_from(["1", "2", None]),
            st.sampled_from(["a", "b", "c", None]),
            st.one_of(st.none(), st.integers(-5, 5), st.sampled_from([0.5, 2.25])),
        ),
        min_size=1,
        max_size=40,
    ),
    l=st.integers(1, 4),
    c=st.sampled_from([0.1, 0.5, 1, 1.5, 2, 3]),
    v=st.sampled_from([0, 0.1, 1, 7]),
)
def test_measures_are_those_of_the_naive_twin(rows, l, c, v):  # noqa: E741
    table = pa.table(
        {
            "age": pa.array([row[0] for row in rows], pa.string()),
            "zip": pa.array([row[1] for row in rows], pa.string()),
            "disease": pa.array([row[2] for row in rows], pa.string()),
            "salary": pa.array([row[3] for row in rows], pa.float64()),
        }
    )
    found = measure(table, a_policy(K2, entropy(l), recursive(c, l), variance(v)))
    (n_groups, least, n_small), *others = naive(rows, l, c, v)
    assert (found.rows, found.groups) == (len(rows), n_groups)
    for item, (figure, failing) in zip(found.requirements, [(least, n_small), *others], strict=True):
        assert item.achieved == pytest.approx(figure, rel=1e-9, abs=1e-9)
        assert item.n_failing == failing
        assert item.holds == (failing == 0)


@given(
    rows=st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("abc"), st.integers(0, 9)), min_size=2),
    data=st.data(),
)
def test_the_order_of_rows_never_matters(rows, data):
    shuffled = data.draw(st.permutations(rows))
    policy = a_policy(K2, entropy(1.5), recursive(2, 2), variance(1))

    def measured(given):
        ages, diseases, salaries = zip(*given, strict=True)
        return measure(
            pa.table({"age": ages, "zip": ["*"] * len(given), "disease": diseases, "salary": salaries}),
            policy,
        )

    one, other = measured(rows), measured(shuffled)
    assert (one.groups, [item.n_failing for item in one.requirements]) == (
        other.groups,
        [item.n_failing for item in other.requirements],
    )
    for item, twin in zip(one.requirements, other.requirements, strict=True):
        assert item.achieved == pytest.approx(twin.achieved, rel=1e-9)


# ---- a table that another tool made ----------------------------------------------------------------


def test_a_table_that_keeps_its_promise_passes():
    verdict = verify_table(groups_of("ab", "ab"), a_policy(K2, entropy(2)))
    assert verdict.ok
    assert [str(check) for check in verdict.checks] == [
        "No column that the policy leaves out tells rows apart.",
        "No index of pandas is stored.",
        "2-anonymity holds: the smallest group is 2.",
        "Entropy 2-diversity of 'disease' holds: the worst group counts as 2 equally frequent values.",
    ]
    verdict.raise_if_failed()


def test_a_broken_promise_is_named_with_its_figure_and_the_groups_that_fail():
    verdict = verify_table(groups_of("ab", "a"), a_policy(K2, entropy(1)))
    assert not verdict.ok
    with pytest.raises(VerificationFailed) as caught:
        verdict.raise_if_failed()
    sentence = "The claim that 2-anonymity holds is false: the smallest group is 1, and 1 of 2 groups fail."
    assert str(caught.value) == f"Verification failed: {sentence}"
    assert caught.value.failures == (sentence,)
    assert caught.value.exit_code == 1


def test_a_policy_without_requirements_is_verified_and_said_to_promise_nothing():
    verdict = verify_table(groups_of("a"), a_policy())
    assert verdict.ok
    assert str(verdict.checks[-1]) == "Nothing is promised: the policy requires nothing of the groups."


def test_rows_that_another_tool_suppressed_are_judged_as_the_group_that_they_form():
    table = pa.table({"age": ["[0, 9]"] * 3 + ["*"], "zip": ["1"] * 3 + ["*"]})
    assert verify_table(table, a_policy(K2)).failures[0].claim == "2-anonymity holds"
    assert verify_table(table.slice(0, 3), a_policy(K2)).ok


def test_identifiers_that_tell_nothing_may_stay_and_others_may_not():
    table = groups_of("ab", "ab")
    stars = table.append_column("id", pa.array(["*"] * 4)).append_column("notes", pa.nulls(4))
    assert verify_table(stars, a_policy(K2)).ok
    for name in ("id", "notes"):
        telling = table.append_column(name, pa.array(["Ann", "*", "*", "*"]))
        (failure,) = verify_table(telling, a_policy(K2)).failures
        assert failure == Check(
            "no column that the policy leaves out tells rows apart",
            False,
            f"column {name!r} still tells rows apart",
        )


def test_a_missing_identifier_among_others_tells_something():
    table = groups_of("ab").append_column("id", pa.array(["*", None]))
    assert not verify_table(table, a_policy(K2)).ok


def test_a_table_may_lack_what_is_not_judged():
    assert verify_table(pa.table({"age": ["1", "1"], "zip": ["*", "*"]}), a_policy(K2)).ok


@pytest.mark.parametrize(
    ("drop", "sentence"),
    [
        ("zip", "no column 'zip' that the policy names"),
        ("age", "no column 'age' that the policy names"),
        ("disease", "no column 'disease' that the policy names"),
    ],
)
def test_a_table_must_have_what_is_judged(drop, sentence):
    with pytest.raises(PolicyError, match=sentence):
        verify_table(groups_of("ab").drop([drop]), a_policy(K2, entropy(2)))


def test_a_column_that_the_policy_does_not_name_is_refused():
    table = groups_of("ab").append_column("ssn", pa.array([1, 2]))
    with pytest.raises(PolicyError, match="'ssn', which the policy does not name"):
        verify_table(table, a_policy(K2))


def test_bounds_may_stand_for_a_column_but_not_one_alone():
    table = pa.table({"age_low": [0, 0], "age_high": [9, 9], "zip": ["*", "*"]})
    assert verify_table(table, a_policy(K2)).ok
    assert verify_table(table.append_column("age", pa.array(["x", "x"])), a_policy(K2)).ok
    with pytest.raises(PolicyError, match="column 'age': the table has no such column"):
        verify_table(table.drop(["age_low"]), a_policy(K2))
    with pytest.raises(PolicyError, match="column 'age_low', which the policy does not name"):
        verify_table(table.drop(["age_high"]).append_column("age", pa.array(["x", "x"])), a_policy(K2))


def test_an_index_that_pandas_stored_is_found(tmp_path):
    frame = groups_of("ab", "ab").to_pandas()
    frame.index = [3, 1, 4, 5]
    frame.to_parquet(tmp_path / "index.parquet")
    frame.reset_index(drop=True).to_parquet(tmp_path / "none.parquet")
    (failure,) = verify_table(tmp_path / "index.parquet", a_policy(K2)).failures
    assert failure.claim == "no index of pandas is stored"
    assert not verify_table(str(tmp_path / "index.parquet"), a_policy(K2)).ok
    assert not verify_table(pa.Table.from_pandas(frame), a_policy(K2)).ok
    assert verify_table(tmp_path / "none.parquet", a_policy(K2)).ok
    (tmp_path / "parts").mkdir()
    frame.to_parquet(tmp_path / "parts" / "part-0.parquet")
    assert not verify_table(tmp_path / "parts", a_policy(K2)).ok


def test_any_kind_of_table_can_be_judged(tmp_path):
    table = groups_of("ab", "a")
    table.to_pandas().to_csv(tmp_path / "t.csv", index=False)
    for source in (
        table,
        table.to_pandas(),
        pl.from_arrow(table),
        tmp_path / "t.csv",
        str(tmp_path / "t.csv"),
    ):
        (failure,) = verify_table(source, a_policy(K2)).failures
        assert failure.claim == "2-anonymity holds"


def test_nan_in_a_pandas_frame_is_not_lost():
    frame = pd.DataFrame({"age": ["1", "1", np.nan], "zip": ["*"] * 3})
    assert (
        verify_table(frame, a_policy(K2)).failures[0].detail
        == "the smallest group is 1, and 1 of 2 groups fail"
    )


def test_a_number_that_cannot_be_read_is_bad_input_and_never_shown():
    with pytest.raises(TableError) as caught:
        verify_table(groups_of("ab", salaries=["1", "SECRET"]), a_policy(variance(1)))
    assert "SECRET" not in str(caught.value)
    assert caught.value.exit_code == 2


def test_no_sentence_holds_a_cell():
    table = groups_of("ab", "c").append_column("id", pa.array(["Ann", "Bob", "Cyd"]))
    texts = " ".join(
        map(str, verify_table(table, a_policy(K2, entropy(3), recursive(1, 2), variance(9))).checks)
    )
    for cell in ("Ann", "Bob", "Cyd", "[00, 09]", "[10, 19]"):
        assert cell not in texts


# ---- a release folder ------------------------------------------------------------------------------


def write_release(folder, table=None, policy=None, format_="csv"):
    table = groups_of("aab", "abb", salaries=[0.1, 5, 9, 1, 2, 7]) if table is None else table
    policy = policy or a_policy({"k-anonymity": 3}, entropy(1.5), recursive(3, 2), variance(2))
    release = Release(table, Certificate.of(policy, claims(measure(table, policy))), policy, format=format_)
    release.write(folder)
    return folder


@pytest.fixture(params=["csv", "parquet"])
def folder(request, tmp_path):
    return write_release(tmp_path / "out", format_=request.param)


def rows_file(folder):
    (found,) = folder.glob("release.*")
    return found


def rewrite_rows(folder, change):
    """Change the rows on disk, keeping the file's format."""
    path = rows_file(folder)
    if path.suffix == ".parquet":
        pq.write_table(change(pq.read_table(path)), path)
    else:
        frame = change(pa.Table.from_pandas(pd.read_csv(path, dtype=str), preserve_index=False)).to_pandas()
        frame.to_csv(path, index=False)


def failed(folder):
    return {check.claim for check in verify_folder(folder).failures}


def test_a_release_as_it_was_written_passes(folder):
    verdict = verify_folder(folder)
    assert verdict.ok
    assert verdict.failures == ()
    sentences = [str(check) for check in verdict.checks]
    assert "The certificate is readable and complete." in sentences
    assert "The release holds 6 rows." in sentences
    assert "The rows form 2 groups." in sentences
    assert "3-anonymity holds: the smallest group is 3." in sentences
    assert f"The file {rows_file(folder).name} is as it was certified." in sentences
    verify_folder(str(folder)).raise_if_failed()


@pytest.mark.parametrize("output", ["labels", "bounds", "both"])
def test_columns_are_checked_in_the_form_that_the_output_says(tmp_path, output):
    base = groups_of("ab", "ab")
    low = base.append_column("age_low", pa.array([0] * 4)).append_column("age_high", pa.array([9] * 4))
    right = {"labels": base, "bounds": low.drop(["age"]), "both": low}
    for word, table in right.items():
        folder = write_release(tmp_path / word, table, a_policy(K2, output=output))
        assert (failed(folder) == set()) == (word == output)


def test_a_date_without_hierarchy_has_bounds_too_and_one_with_hierarchy_has_not(tmp_path):
    columns = {
        "day": {"role": "quasi-identifier", "type": "date"},
        "month": {"role": "quasi-identifier", "type": "date", "hierarchy": {"dates": ["month", "year"]}},
    }
    policy = Policy.from_dict({"attributes": columns, "require": [K2], "output": {"values": "bounds"}})
    cells = {"day_low": ["2024-03-05"] * 2, "day_high": ["2024-03-06"] * 2, "month": ["2024"] * 2}
    assert failed(write_release(tmp_path / "out", pa.table(cells), policy)) == set()


def test_a_release_with_missing_cells_passes(tmp_path):
    table = groups_of("aab", "abb", salaries=[0, 9, None, None, 1, 7])
    table = table.set_column(0, "age", pa.array([None] * 3 + ["[0, 9]"] * 3))
    table = table.set_column(2, "disease", pa.array(["a", "b", None] * 2))
    for format_ in ("csv", "parquet"):
        assert failed(write_release(tmp_path / format_, table, format_=format_)) == set()


def test_a_folder_of_parts_is_verified_too(tmp_path):
    folder = write_release(tmp_path / "out", format_="parquet")
    table = pq.read_table(folder / "release.parquet")
    (folder / "release.parquet").unlink()
    (folder / "release.parquet").mkdir()
    pq.write_table(table.slice(0, 2), folder / "release.parquet" / "part-0.parquet")
    pq.write_table(table.slice(2), folder / "release.parquet" / "part-1.parquet")
    rehash(folder)
    assert failed(folder) == set()
    (folder / "release.parquet" / "part-1.parquet").unlink()
    assert "the file release.parquet is as it was certified" in failed(folder)


def test_a_release_that_promises_nothing_passes_and_says_so(tmp_path):
    verdict = verify_folder(write_release(tmp_path / "out", policy=a_policy()))
    assert verdict.ok
    assert "Nothing is promised: the policy requires nothing of the groups." in map(str, verdict.checks)


def test_a_release_that_never_kept_its_promise_fails_whatever_its_certificate_says(tmp_path):
    folder = write_release(tmp_path / "out", policy=a_policy({"k-anonymity": 4}, recursive(1e9, 4)))
    assert failed(folder) == {"4-anonymity holds", "recursive (1e+09, 4)-diversity of 'disease' holds"}


# ---- tampering -------------------------------------------------------------------------------------


def test_a_changed_cell_fails(folder):
    def change(table):
        ages = table.column("age").to_pylist()
        return table.set_column(0, "age", pa.array(["[90, 99]", *ages[1:]]))

    rewrite_rows(folder, change)
    found = failed(folder)
    assert f"the file {rows_file(folder).name} is as it was certified" in found
    assert {"the rows form 2 groups", "3-anonymity holds"} <= found
    rehash(folder)
    assert failed(folder) == found - {f"the file {rows_file(folder).name} is as it was certified"}


def test_a_changed_sensitive_cell_fails_even_with_a_new_hash(folder):
    rewrite_rows(folder, lambda table: table.set_column(2, "disease", pa.array(["a"] * 6)))
    rehash(folder)
    found = failed(folder)
    assert "entropy 1.5-diversity of 'disease' holds" in found
    assert "recursive (3, 2)-diversity of 'disease' holds" in found


def test_a_changed_number_fails_even_with_a_new_hash(folder):
    rewrite_rows(folder, lambda table: table.set_column(3, "salary", pa.array(["1.5"] * 6)))
    rehash(folder)
    assert "variance diversity of at least 2 of 'salary' holds" in failed(folder)


def test_a_dropped_row_fails(folder):
    rewrite_rows(folder, lambda table: table.slice(1))
    rehash(folder)
    assert {"the release holds 6 rows", "3-anonymity holds"} <= failed(folder)


def test_a_repeated_row_fails(folder):
    rewrite_rows(folder, lambda table: pa.concat_tables([table, table.slice(0, 1)]))
    rehash(folder)
    assert "the release holds 6 rows" in failed(folder)


def test_rows_in_another_order_fail_by_their_hash_alone(folder):
    rewrite_rows(folder, lambda table: table.take(pa.array([3, 0, 4, 1, 5, 2])))
    assert failed(folder) == {f"the file {rows_file(folder).name} is as it was certified"}


@pytest.mark.parametrize("name", ["id", "notes", "ssn", "__index_level_0__"])
def test_a_column_too_many_fails(folder, name):
    rewrite_rows(folder, lambda table: table.append_column(name, pa.array(["Ann"] * 6)))
    rehash(folder)
    (failure,) = verify_folder(folder).failures
    assert failure == Check("the columns are those that the policy publishes", False, "1 column too many")


def test_a_column_too_few_fails(folder):
    rewrite_rows(folder, lambda table: table.drop(["job"]))
    rehash(folder)
    (failure,) = verify_folder(folder).failures
    assert failure.detail == "column 'job' is not there"
    rewrite_rows(folder, lambda table: table.drop(["disease"]))
    rehash(folder)
    details = {check.claim: check.detail for check in verify_folder(folder).failures}
    assert "has no column 'disease'" in details["the rows can be read and measured"]


def test_an_edited_hash_fails(folder):
    name = rows_file(folder).name
    for piece in (name, "policy.yaml", "recoding.json"):
        edit_certificate(
            folder, lambda document, piece=piece: document["claims"]["sha256"].update({piece: "0" * 64})
        )
        assert failed(folder) == {f"the file {piece} is as it was certified"}
        rehash(folder)


@pytest.mark.parametrize("position", range(4))
def test_an_edited_figure_fails(folder, position):
    def change(document):
        document["claims"]["requirements"][position]["achieved"] *= 1.001

    edit_certificate(folder, change)
    (failure,) = verify_folder(folder).failures
    assert failure.claim.startswith("the ")
    assert failure.detail.startswith("it is ")


@pytest.mark.parametrize(
    ("key", "claim"),
    [
        ("rows", "the release holds 7 rows"),
        ("groups", "the rows form 7 groups"),
        ("suppressed", "7 rows were suppressed"),
    ],
)
def test_an_edited_count_fails(folder, key, claim):
    edit_certificate(folder, lambda document: document["claims"].update({key: 7}))
    assert failed(folder) == {claim}


def lower_in_claims(document):
    document["claims"]["requirements"][0]["requirement"] = {"k-anonymity": 2}


def lower_in_policy(document):
    document["policy"]["require"][0] = {"k-anonymity": 2}


def lower_in_file(folder):
    path = folder / "policy.yaml"
    path.write_text(path.read_text().replace("k-anonymity: 3", "k-anonymity: 2"))


ONE_POLICY = "the certificate and policy.yaml speak of one policy"
WHAT_IS_REQUIRED = "the certificate claims what the policy requires"


def test_a_lowered_k_in_the_claims_fails(folder):
    edit_certificate(folder, lower_in_claims)
    assert failed(folder) == {WHAT_IS_REQUIRED}


def test_a_lowered_k_in_the_certificates_policy_fails(folder):
    edit_certificate(folder, lower_in_policy)
    assert failed(folder) == {ONE_POLICY, WHAT_IS_REQUIRED}
    edit_certificate(folder, lower_in_claims)
    assert failed(folder) == {ONE_POLICY}


def test_a_lowered_k_in_the_policy_file_fails(folder):
    lower_in_file(folder)
    assert failed(folder) == {ONE_POLICY, "the file policy.yaml is as it was certified"}
    rehash(folder)
    assert failed(folder) == {ONE_POLICY}


def test_a_lowered_k_everywhere_fails_by_the_hash_of_the_policy_file(folder):
    edit_certificate(folder, lower_in_claims)
    edit_certificate(folder, lower_in_policy)
    lower_in_file(folder)
    assert failed(folder) == {"the file policy.yaml is as it was certified"}
    rehash(folder)  # now it is, consistently, a release that promises less
    assert failed(folder) == set()
    assert "2-anonymity holds" in {check.claim for check in verify_folder(folder).checks}


def test_a_requirement_left_out_fails(folder):
    edit_certificate(folder, lambda document: document["claims"]["requirements"].pop())
    assert failed(folder) == {WHAT_IS_REQUIRED}


def test_requirements_in_another_order_fail(folder):
    edit_certificate(folder, lambda document: document["claims"]["requirements"].reverse())
    assert WHAT_IS_REQUIRED in failed(folder)


def test_a_role_changed_in_the_policy_fails(folder):
    edit_certificate(folder, lambda document: document["policy"]["attributes"]["zip"].update(role="other"))
    assert ONE_POLICY in failed(folder)


@pytest.mark.parametrize("change", [{"method": {"mondrian": {"standardize": True}}}, {"missing": "wildcard"}])
def test_another_method_or_treatment_of_missing_values_fails(folder, change):
    edit_certificate(folder, lambda document: document.update(change))
    assert failed(folder) == {ONE_POLICY}


def test_a_policy_file_that_says_the_same_in_other_words_is_the_same_policy(folder):
    path = folder / "policy.yaml"
    path.write_text("# kept by hand\n" + path.read_text())
    assert failed(folder) == {
        "the file policy.yaml is as it was certified",
        "policy.yaml holds a policy and nothing else",
    }


def test_missing_pieces_fail(folder):
    name = rows_file(folder).name
    (folder / "policy.yaml").unlink()
    assert {"the file policy.yaml is as it was certified", ONE_POLICY} <= failed(folder)
    (folder / name).unlink()
    assert f"the file {name} is as it was certified" in failed(folder)
    (folder / "certificate.json").unlink()
    with pytest.raises(InputError, match="holds neither rows nor a certificate"):
        verify_folder(folder)


def test_rows_without_a_certificate_fail(folder):
    (folder / "certificate.json").unlink()
    assert failed(folder) == {"the certificate is readable and complete"}


def test_a_second_release_file_fails(folder):
    other = {"release.csv": "release.parquet", "release.parquet": "release.csv"}[rows_file(folder).name]
    (folder / other).write_text("raw,rows\n1,2\n")
    assert failed(folder) == {f"the file {other} is as it was certified"}
    rehash(folder)
    assert "the certificate is readable and complete" in failed(folder)


def test_a_recoding_that_the_certificate_does_not_name_fails(folder):
    (folder / "recoding.parquet").write_text("more")
    failure, unread = verify_folder(folder).failures
    assert failure == Check(
        "the file recoding.parquet is as it was certified", False, "the certificate does not name it"
    )
    assert unread.claim == "the recoding can be read"


def test_a_certificate_without_hashes_fails(folder):
    edit_certificate(folder, lambda document: document["claims"].update(sha256={}))
    details = {check.claim: check.detail for check in verify_folder(folder).failures}
    assert (
        details["the certificate is readable and complete"]
        == "it does not name one release file and its SHA-256"
    )
    name = rows_file(folder).name
    edit_certificate(
        folder, lambda document: document["claims"].update(sha256={name: hashes_of(folder)[name]})
    )
    details = {check.claim: check.detail for check in verify_folder(folder).failures}
    assert details["the certificate is readable and complete"] == "it lacks the SHA-256 of policy.yaml"


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xff", b"[]", b'{"sfumato": NaN}'])
def test_a_certificate_of_rubbish_fails(folder, content):
    (folder / "certificate.json").write_bytes(content)
    assert failed(folder) == {"the certificate is readable and complete"}


def test_half_a_character_in_the_certificate_fails_in_a_sentence(folder):
    def change(document):
        document["policy"]["attributes"]["\ud800"] = {"role": "drop"}

    edit_certificate(folder, change)
    assert failed(folder) == {"the certificate is readable and complete"}


def test_a_certificate_whose_policy_is_none_fails(folder):
    edit_certificate(folder, lambda document: document["policy"].update(attributes={}))
    assert failed(folder) == {"the certificate is readable and complete"}


@pytest.mark.parametrize(
    "content", [b"", b"\x00\x01rubbish", b"PAR1 and no more", b"age,zip\n", b"\x1f\x8bzip"]
)
def test_rows_of_rubbish_fail(folder, content):
    rows_file(folder).write_bytes(content)
    rehash(folder)
    assert "the rows can be read and measured" in failed(folder)


def test_a_file_cut_short_fails(folder):
    path = rows_file(folder)
    path.write_bytes(path.read_bytes()[:-30])
    assert f"the file {path.name} is as it was certified" in failed(folder)


def test_a_release_in_another_format_than_its_name_says_fails(tmp_path):
    folder = write_release(tmp_path / "out")
    pq.write_table(groups_of("aab", "abb"), folder / "release.csv")
    rehash(folder)
    assert failed(folder) == {"the rows can be read and measured"}


def test_a_release_without_rows_fails(tmp_path):
    folder = write_release(tmp_path / "out", format_="parquet")
    rewrite_rows(folder, lambda table: table.slice(0, 0))
    rehash(folder)
    assert failed(folder) == {"the rows can be read and measured"}


def test_a_piece_that_cannot_be_read_fails(tmp_path, monkeypatch):
    folder = write_release(tmp_path / "out")

    def refuse(path):
        raise PermissionError(13, "x")

    monkeypatch.setattr(folder_checks, "sha256_of", refuse)
    assert "it cannot be read" in {check.detail for check in verify_folder(folder).failures}


def test_a_folder_that_is_not_there_is_bad_input(tmp_path):
    with pytest.raises(InputError, match="There is no folder") as caught:
        verify_folder(tmp_path / "nowhere")
    assert caught.value.exit_code == 2
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is a file, not a release folder"):
        verify_folder(tmp_path / "file")
    with pytest.raises(InputError, match="is no release"):
        verify_folder(tmp_path)


def test_a_stranger_among_the_files_fails(folder):
    (folder / "raw.csv").write_text("name")
    with pytest.raises(VerificationFailed, match="nothing else"):
        verify_folder(folder).raise_if_failed()


def test_every_failed_claim_is_in_the_error(folder):
    rewrite_rows(folder, lambda table: table.slice(1))
    with pytest.raises(VerificationFailed) as caught:
        verify_folder(folder).raise_if_failed()
    for check in verify_folder(folder).failures:
        assert str(check) in str(caught.value)


@pytest.mark.parametrize("name", ["{ill}", "{}", "{0", "%s {n:,}"])
def test_a_column_may_have_braces_in_its_name(tmp_path, name):
    attributes = {"zip": {"role": "quasi-identifier"}, name: {"role": "sensitive"}}
    rows = pa.table({"zip": ["a", "a", "b", "b"], name: ["flu", "flu", "flu", "gout"]})
    policy = Policy.of({"attributes": attributes, "require": [{"k-anonymity": 2}]})
    publish(rows, policy, seed=1).write(tmp_path / "out")
    claims = [check.claim for check in verify_folder(tmp_path / "out").checks]
    assert f"the number of rows in groups that share one value of {name!r} is 2" in claims


def test_a_verification_of_no_checks_has_no_failures():
    assert Verification(()).ok


def test_spellings_of_one_sensitive_value_make_no_diversity():
    policy = Policy.parse(
        "{attributes: {a: {role: quasi-identifier}, s: {role: sensitive}}, require: [entropy-diversity: {l: 2, of: s}]}"
    )
    spellings = [
        ("flu", " flu"), ("é", "e\u0301"), ("flu", "f\u200blu"), ("flu", "flu\ufeff"), ("fibrosis", "\ufb01brosis"),
        ("flu", "ｆｌｕ"), ("\u200b", None), ("co-op", "co\u00ad-op"), ("e\u200d\u0301", "é"),
    ]  # fmt: skip
    for one, other in spellings:
        table = pa.table({"a": ["x", "x"], "s": [one, other]})
        verdict = verify_table(table, policy)
        assert not verdict.ok
        note = Check(
            "values of 's' that look alike count as one", True, "1 or more are other spellings of one", True
        )
        assert note in verdict.checks
    verdict = verify_table(pa.table({"a": ["x", "x"], "s": ["flu", "gout"]}), policy)
    assert verdict.ok
    assert not any("look alike" in check.claim for check in verdict.checks)


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_publish_counts_spellings_as_verify_does(tmp_path, engine):
    """No group of one disease in two spellings passes for diverse, so publish and verify agree."""
    random = np.random.default_rng(5)
    diseases = ["flu", "f\u200blu", "\ufb02u", "gout", "go\u00adut", None, "\u200b"]
    table = pa.table(
        {"a": random.integers(0, 9, 90), "s": random.choice(np.array(diseases, dtype=object), 90)}
    )
    policy = Policy.parse(
        "{attributes: {a: {role: quasi-identifier, type: number}, s: {role: sensitive}}, "
        "require: [k-anonymity: 3, entropy-diversity: {l: 1.8, of: s}]}"
    )
    publish_to(tmp_path / "out", table, policy, Request(engine=engine, seed=1))
    assert verify_folder(tmp_path / "out").ok
    assert measure(pq.read_table(tmp_path / "out" / "release.parquet"), policy).groups > 1


# ---- statistics of groups --------------------------------------------------------------------------

AGES = {"age_min": [0, 12], "age_max": [9, 19], "age_mean": [4.5, 15.25]}
SALARIES = {"salary_min": [0, 3], "salary_max": [2, 5], "salary_mean": [1.0, 4.0]}
LIE_INSIDE = "the statistics of 'age' lie in the ranges beside them"
OF_ROWS = "the statistics of 'salary' are those of the rows"


def with_statistics(**changes) -> pa.Table:
    """Two groups of three rows with their statistics; ``changes`` give other ones, for each group or each row."""
    table = groups_of("aab", "abb")
    for name, cells in {**AGES, **SALARIES, **changes}.items():
        rows = cells if len(cells) == 6 else [cell for cell in cells for _ in range(3)]
        table = table.append_column(name, pa.array(rows))
    return table


def failed_summary(tmp_path, table, *require, **columns):
    policy = a_policy(*(require or [K2]), output="summary", **columns)
    tmp_path.mkdir(exist_ok=True)
    found = failed(write_release(tmp_path / "parquet", table, policy, format_="parquet"))
    assert failed(write_release(tmp_path / "csv", table, policy)) == found
    return found


def test_statistics_that_are_true_pass(tmp_path):
    assert failed_summary(tmp_path, with_statistics(), {"k-anonymity": 3}) == set()
    assert verify_table(with_statistics(), a_policy(K2, output="summary")).ok


def test_statistics_tell_rows_apart():
    table = with_statistics(age_mean=[4.5, 4.5, 4.6, 15, 15, 15])
    assert measure(table, a_policy(output="summary")).groups == 3
    assert achieved_by(table, K2) == [(1.0, 1)]
    with_missing = with_statistics(age_mean=[4.5, 4.5, None, 15, 15, 15])
    assert measure(with_missing, a_policy(output="summary")).groups == 3
    assert not verify_table(table, a_policy({"k-anonymity": 3}, output="summary")).ok


def achieved_by(table, *require):
    found = measure(table, a_policy(*require, output="summary")).requirements
    return [(item.achieved, item.n_failing) for item in found]


@pytest.mark.parametrize(
    "changes",
    [
        {"age_min": [-1, 12]},
        {"age_max": [10, 19]},
        {"age_mean": [4.5, 19.5], "age_max": [9, 19.75]},
        {"age_min": [5, 12]},  # above the mean
        {"age_max": [4, 19]},  # below the mean
        {"age_mean": [None, 15.25]},
        {"age_min": [None, 12], "age_max": [None, 19], "age_mean": [None, 15.25]},
    ],
)
def test_statistics_outside_their_range_or_out_of_order_fail(tmp_path, changes):
    assert failed_summary(tmp_path, with_statistics(**changes)) == {LIE_INSIDE}


@pytest.mark.parametrize(
    "changes",
    [
        {"salary_min": [1, 3]},
        {"salary_max": [2, 6]},
        {"salary_mean": [1.0, 4.001]},
        {"salary_mean": [1.0, None]},
        {"salary_min": [0, None], "salary_max": [2, None], "salary_mean": [1.0, None]},
    ],
)
def test_statistics_of_a_published_column_are_recomputed(tmp_path, changes):
    assert failed_summary(tmp_path, with_statistics(**changes)) == {OF_ROWS}


def test_a_check_counts_the_groups_whose_statistics_are_wrong():
    table = with_statistics(salary_min=[7, 7])
    (failure,) = verify_table(table, a_policy(K2, output="summary")).failures
    assert failure == Check(OF_ROWS, False, "2 of 2 groups have others")


def test_a_statistic_may_be_missing_only_where_the_range_says_so(tmp_path):
    none = {"age_min": [None, 12], "age_max": [None, 19], "age_mean": [None, 15.25]}
    for first, is_right in {None: True, "[0, 9] or missing": True, "*": True, "[0, 9]": False}.items():
        table = with_statistics(**none).set_column(0, "age", pa.array([first] * 3 + ["[10, 19]"] * 3))
        assert failed_summary(tmp_path / str(first), table) == (set() if is_right else {LIE_INSIDE})
    table = with_statistics().set_column(0, "age", pa.array([None] * 3 + ["[10, 19]"] * 3))
    assert failed_summary(tmp_path / "present", table) == {LIE_INSIDE}


def test_rows_without_any_number_have_no_statistics(tmp_path):
    none = {"salary_min": [None, 3], "salary_max": [None, 5], "salary_mean": [None, 4.0]}
    salaries = pa.array([None, None, None, 3, 4, 5])
    table = with_statistics(**none).set_column(3, "salary", salaries)
    assert failed_summary(tmp_path / "right", table) == set()
    zeros = {"salary_min": [0, 3], "salary_max": [0, 5], "salary_mean": [0.0, 4.0]}
    table = with_statistics(**zeros).set_column(3, "salary", salaries)
    assert failed_summary(tmp_path / "zeros", table) == {OF_ROWS}
    table = with_statistics(**none).set_column(3, "salary", pa.array([0, 0, 0, 3, 4, 5]))
    assert failed_summary(tmp_path / "left out", table) == {OF_ROWS}


@pytest.mark.parametrize("name", ["age_mean", "salary_max"])
def test_a_statistic_too_few_or_too_many_fails(tmp_path, name):
    columns = "the columns are those that the policy publishes"
    assert failed_summary(tmp_path / "few", with_statistics().drop([name])) == {columns}
    table = with_statistics().append_column("job_min", pa.array([0] * 6))
    assert failed_summary(tmp_path / "many", table) == {columns}
    assert columns in failed(write_release(tmp_path / "none", with_statistics(), a_policy(K2)))


def test_only_the_statistics_that_the_policy_names_are_expected(tmp_path):
    policy = Policy.from_dict({**a_policy(K2).as_dict(), "workload": [{"aggregate": ["mean"]}], "output": {}})
    only_means = with_statistics().drop(["age_min", "age_max", "salary_min", "salary_max"])
    assert failed(write_release(tmp_path / "means", only_means, policy)) == set()
    wrong = with_statistics(age_mean=[9.5, 15]).select(only_means.column_names)
    assert failed(write_release(tmp_path / "wrong", wrong, policy)) == {LIE_INSIDE}


def test_statistics_that_are_no_numbers_fail_in_a_sentence(tmp_path):
    table = with_statistics(age_mean=["much", "more"])
    assert failed_summary(tmp_path, table) == {"the rows can be read and measured"}


def test_statistics_of_a_foreign_table_may_be_left_out_and_are_checked_where_they_stand():
    policy = a_policy(K2, output="summary")
    assert verify_table(groups_of("aab", "abb"), policy).ok
    assert not verify_table(with_statistics(salary_max=[2, 6]).drop(["age_mean"]), policy).ok
    with pytest.raises(PolicyError, match=r"'age_min', .*which the policy does not name"):
        verify_table(with_statistics(), a_policy(K2))
    bounds = with_statistics().rename_columns(["age_low", *with_statistics().column_names[1:]])
    bounds = bounds.append_column("age_high", pa.array([9] * 6))
    assert verify_table(bounds, policy).ok


TREE = {"tree": {"few": ["0", "1", "hardly"], "many": {"some": ["5", "6"], "lots": ["20"]}}}


@pytest.mark.parametrize(
    ("declared", "label", "inside", "outside"),
    [
        ({"type": "number"}, "(1.5, 2.25]", [1.6, 2.25], [1.5, 2.26]),
        ({"type": "number"}, "-3", [-3], [-2, 3]),
        ({"type": "number"}, "1e+20", [1e20], [2e20]),
        ({"type": "number"}, "thing", [], [0]),
        (
            {"type": "number", "hierarchy": {"intervals": [5, 10]}, "bounds": [0, 20]},
            "[5, 10)",
            [5, 9.9],
            [10],
        ),
        ({"type": "number", "hierarchy": {"balanced": 2}, "bounds": [0, 20]}, "*", [-5, 99], []),
        ({"type": "number", "hierarchy": TREE}, "many", [5, 19, 20], [1, 21]),
        ({"type": "number", "hierarchy": TREE}, "some", [5, 6], [0, 20]),
        ({"type": "number", "hierarchy": TREE}, "none", [], [0, 20]),
        ({"type": "date"}, "[2024-02-28, 2024-03-01]", ["2024-02-28", "2024-02-29"], ["2024-03-02"]),
        ({"type": "date"}, "2024-02-28", ["2024-02-28"], ["2024-02-29"]),
        ({"type": "date"}, "2024-02-31", [], ["2024-02-29"]),
        ({"type": "date"}, "around 1970", [], ["1970-01-01"]),
        ({"type": "date", "hierarchy": {"dates": ["month"]}}, "2024-02", ["2024-02-29"], ["2024-03-01"]),
        ({"type": "date", "hierarchy": {"dates": ["quarter"]}}, "2024-Q4", ["2024-12-31"], ["2024-09-30"]),
        ({"type": "date", "hierarchy": {"dates": ["year"]}}, "1969", ["1969-01-01"], ["1970-01-01"]),
        ({"type": "date", "hierarchy": {"dates": ["decade"]}}, "1960s", ["1969-12-31"], ["1959-12-31"]),
    ],
)
def test_every_label_bounds_its_statistics(declared, label, inside, outside):
    policy = Policy.from_dict(
        {
            "attributes": {"x": {"role": "quasi-identifier", **declared}},
            "require": [],
            "output": {"values": "summary"},
        }
    )
    for value in (*inside, *outside):
        cells = {"x": label, "x_min": value, "x_max": value, "x_mean": value}
        verdict = verify_table(pa.table({name: [cell] for name, cell in cells.items()}), policy)
        assert verdict.ok == (value in inside), value


@given(
    st.lists(st.lists(st.none() | st.floats(-1e308, 1e308), min_size=1, max_size=5), min_size=1, max_size=4)
)
def test_verify_agrees_with_what_summary_makes(parts):
    cells = [cell for part in parts for cell in part]
    size = np.array([len(part) for part in parts])
    policy = Policy.parse("""
    attributes: {g: {role: quasi-identifier}, x: {role: sensitive, type: number}}
    require: []
    output: {values: summary}
    """)
    groups = np.repeat(np.arange(len(parts)), size)
    table = pa.table({"g": groups.astype(str), "x": pa.array(cells, pa.float64())})
    rows = np.arange(len(cells), dtype=np.uint32)
    statistics = summary.columns(
        open_table(table), policy, Partition(None, np.arange(len(parts)), size, rows)
    )
    for name, column in statistics.items():
        table = table.append_column(name, column)
    assert verify_table(table, policy).ok
