"""Why a column was not split: the requirement that refuses, and how near the best split comes."""

from __future__ import annotations

import pyarrow as pa
import pytest

from sfumato.methods import partition
from sfumato.methods.refusals import MOST_THRESHOLDS, find_refusals
from sfumato.policy.document import Policy
from sfumato.table.opening import open_table


def policy_of(*requirements: str, **attributes: str) -> Policy:
    declared = ", ".join(f"{name}: {{{text}}}" for name, text in attributes.items())
    return Policy.parse(f"{{attributes: {{{declared}}}, require: [{', '.join(requirements)}]}}")


QUASI, NUMBER = "role: quasi-identifier", "role: quasi-identifier, type: number"


def refusals(table: pa.Table, policy: Policy, name: str) -> list[tuple[str, float, float]]:
    """What keeps a column of one single group whole: the requirement, its share of rows, the nearest figure."""
    source = open_table(table)
    whole = policy_of(f"k-anonymity: {table.num_rows}", **{name: QUASI})
    one_group = partition(open_table(table.select([name])), whole, threads=1)
    assert len(one_group.size) == 1
    found = find_refusals(source, policy, one_group, name)
    return [(str(each.requirement), each.share, each.nearest) for each in found]


@pytest.mark.parametrize(("k", "expected"), [(3, [("3-anonymity", 1.0, 2.0)]), (2, [])])
def test_a_category_is_refused_by_k_where_a_value_is_too_rare(k, expected):
    table = pa.table({"sex": ["M"] * 5 + ["F"] * 2})
    assert refusals(table, policy_of(f"k-anonymity: {k}", sex=QUASI), "sex") == expected


@pytest.mark.parametrize(("k", "expected"), [(4, [("4-anonymity", 1.0, 3.0)]), (3, [])])
def test_the_nearest_split_of_a_number_is_the_one_with_the_largest_smaller_part(k, expected):
    table = pa.table({"age": [20, 30, 40, 50, 60, 70]})
    assert refusals(table, policy_of(f"k-anonymity: {k}", age=NUMBER), "age") == expected


def test_only_some_thresholds_of_a_long_number_are_tried():
    n = 10 * MOST_THRESHOLDS
    table = pa.table({"age": list(range(n))})
    (found,) = refusals(table, policy_of(f"k-anonymity: {n}", age=NUMBER), "age")
    assert found[:2] == (f"{n}-anonymity", 1.0)
    assert n / 2 - 10 <= found[2] <= n / 2


def test_each_requirement_is_asked_by_itself():
    table = pa.table({"sex": ["M"] * 4 + ["F"] * 4, "disease": ["flu", "gout"] * 2 + ["flu"] * 4})
    sensitive = "role: sensitive"
    both = policy_of(
        "k-anonymity: 4", "distinct-diversity: {l: 2, of: disease}", sex=QUASI, disease=sensitive
    )
    (found,) = refusals(table, both, "sex")
    assert found[1:] == (1.0, 1.0)  # the women all have the same disease: one value where two are asked for
    assert "2" in found[0]


def test_a_variance_refuses_with_the_variance_of_the_worse_part():
    table = pa.table({"sex": ["M", "M", "F", "F"], "pay": [10, 30, 20, 22]})
    policy = policy_of(
        "variance-diversity: {at-least: 50, of: pay}", sex=QUASI, pay="role: sensitive, type: number"
    )
    (found,) = refusals(table, policy, "sex")
    assert found[1:] == (1.0, pytest.approx(1.0))


def test_a_column_of_one_value_has_no_split_to_refuse():
    table = pa.table({"sex": ["M"] * 3})
    assert refusals(table, policy_of("k-anonymity: 2", sex=QUASI), "sex") == []


def test_a_threshold_that_does_not_divide_a_group_is_no_split_of_it():
    table = pa.table({"city": ["A"] * 3 + ["B"] * 3, "age": [20, 30, 40, 50, 60, 70]})
    source = open_table(table)
    by_city = partition(
        open_table(table.select(["city"])), policy_of("k-anonymity: 3", city=QUASI), threads=1
    )
    assert by_city.size.tolist() == [3, 3]
    (found,) = find_refusals(source, policy_of("k-anonymity: 2", city=QUASI, age=NUMBER), by_city, "age")
    assert (found.share, found.nearest) == (1.0, 1.0)
