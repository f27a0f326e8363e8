"""What pseudonyms of published rows tell, against counting by hand, in memory and in portions."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
import pytest

from sfumato.policy.document import Policy
from sfumato.table.opening import open_table
from sfumato.table.write import write_table
from sfumato.verify.pseudonyms import Linked, check_linked, find_linked

POLICY = Policy.parse(
    "{attributes: {age: {role: quasi-identifier}, sex: {role: quasi-identifier}, id: {role: pseudonym}}, "
    "require: [k-anonymity: 3]}"
)


def rows(n: int = 2000, *, seed: int = 4) -> pa.Table:
    rng = np.random.default_rng(seed)
    age, sex = rng.integers(0, 9, n), rng.choice(["f", "m"], n)
    who = np.where(rng.random(n) < 0.9, age * 1000 + rng.integers(0, 60, n), rng.integers(0, 9000, n))
    return pa.table({"age": [f"age {a}" for a in age], "sex": sex, "id": [f"p{w}" for w in who]})


def count_naively(table: pa.Table, k: int) -> Linked:
    lines = list(zip(*(table.column(name).to_pylist() for name in ("age", "sex", "id")), strict=True))
    groups, sizes = defaultdict(set), Counter(lines)
    classes = Counter((line[:2], n) for line, n in sizes.items())
    for *group, who in lines:
        groups[who].add(tuple(group))
    thin = {group for (group, _), n in classes.items() if n < k}
    return Linked(sum(len(own) > 1 for own in groups.values()), len(thin))


def test_it_is_what_counting_says(tmp_path):
    expected = count_naively(rows(), 3)
    assert expected.across > 0
    assert expected.thin > 0
    assert find_linked(open_table(rows()), POLICY, 1 << 30, tmp_path) == {"id": expected}


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
def test_rows_that_do_not_fit_are_looked_at_alike(tmp_path, name):
    write_table(rows(), tmp_path / name)
    found = find_linked(open_table(tmp_path / name, lazy=True), POLICY, 1, tmp_path)
    assert found == {"id": count_naively(rows(), 3)}


ILL = Policy.parse(
    "{attributes: {age: {role: quasi-identifier}, id: {role: pseudonym}, ill: {role: sensitive}}, "
    "require: [k-anonymity: 2, entropy-diversity: {l: 1.5, of: ill}]}"
)


@pytest.mark.parametrize("memory", [1 << 30, 1])
def test_people_who_share_must_differ_and_rows_that_share_nothing_need_not(tmp_path, memory):
    """Group 1: both who have two rows are ill with u. Group 2: they differ. Group 3: no rows share one."""
    rows = pa.table(
        {
            "age": ["1"] * 6 + ["2"] * 6 + ["3"] * 2,
            "id": ["a", "a", "b", "b", "c", "d", "e", "e", "f", "f", "g", "h", "i", "j"],
            "ill": ["u", "u", "u", "u", "v", "w", "u", "v", "v", "v", "v", "w", "u", "u"],
        }
    )
    write_table(rows, tmp_path / "rows.parquet")
    found = find_linked(open_table(tmp_path / "rows.parquet", lazy=True), ILL, memory, tmp_path)
    assert found == {"id": Linked(0, 1, 0)}


TWO = Policy.parse(
    "{attributes: {age: {role: quasi-identifier}, id: {role: pseudonym}, case: {role: pseudonym}}, "
    "require: [k-anonymity: 2]}"
)


@pytest.mark.parametrize("memory", [1 << 30, 1])
def test_rows_of_two_columns_share_none_in_one_group(tmp_path, memory):
    shared = {
        "age": ["1"] * 4 + ["2"] * 4,
        "id": ["a", "a", "b", "b", "c", "c", "d", "d"],
        "case": ["p", "p", "q", "q", "r", "s", "t", "u"],
    }
    write_table(pa.table(shared), tmp_path / "rows.parquet")
    found = find_linked(open_table(tmp_path / "rows.parquet", lazy=True), TWO, memory, tmp_path)
    assert found == {"id": Linked(0, 0, 0), "case": Linked(0, 0, 1)}
    failed = [check for check in check_linked(found) if not check.passed]
    assert [check.detail for check in failed] == ["1 group fails"]
    assert failed[0].claim == "where rows share a pseudonym of 'case', they share none of a column before it"


def test_nothing_is_looked_at_where_nothing_is_required(tmp_path):
    free = Policy.parse("{attributes: {age: {role: quasi-identifier}, id: {role: pseudonym}}, require: []}")
    assert find_linked(open_table(rows()), free, 1 << 30, tmp_path) == {}


def test_both_failures_are_sentences():
    across, thin, note = check_linked({"id": Linked(2, 1)})
    assert (across.passed, thin.passed, note.is_note) == (False, False, True)
    assert "2 pseudonyms stand in several" in across.detail
    assert thin.detail == "1 group fails"
