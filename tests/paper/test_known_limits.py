"""The worked examples of docs/known-limits.md, so that the page is true."""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from typing import Any

import pyarrow as pa

import sfumato as sf

QUASI = {"role": "quasi-identifier"}


def publish(columns: dict[str, Any], attributes: dict[str, Any], require: list[Any]) -> list[dict[str, Any]]:
    policy = {"attributes": attributes, "require": require, "method": {"mondrian": {"refine": "none"}}}
    lines: list[dict[str, Any]] = sf.publish(pa.table(columns), policy).table.to_pylist()
    return lines


def test_a_rest_label_tells_who_is_not_there():
    """k = 3, US 4 rows, Peru 2, Cuba 1: 7 labels cover an American, and 4 rows can be his."""
    countries = ["US"] * 4 + ["Peru"] * 2 + ["Cuba"]
    found = publish({"country": countries}, {"country": QUASI}, [{"k-anonymity": 3}])
    labels = Counter(line["country"] for line in found)
    assert labels == {"US": 4, "*": 3}
    assert sum(n for label, n in labels.items() if label in ("US", "*")) == 7
    assert labels["US"] == 4
    assert min(labels.values()) >= 3, "the size of the set of equal labels is the true bound"


def is_diverse(ills: tuple[str, ...]) -> bool:
    return len(ills) >= 3 and len(set(ills)) >= 2


ILLS = ("HIV", "HIV", "HIV", "flu", "flu", "cold", "cold")


def test_a_refused_split_tells_sensitive_values():
    """Peru 3 rows, Cuba 4; HIV x 3, flu x 2, cold x 2: by labels 3/7, with the method and the countries 1."""
    found = publish(
        {"country": ["Peru"] * 3 + ["Cuba"] * 4, "ill": ILLS},
        {"country": QUASI, "ill": {"role": "sensitive"}},
        [{"k-anonymity": 3}, {"distinct-diversity": {"l": 2, "of": "ill"}}],
    )
    assert {line["country"] for line in found} == {"*"}
    assert Counter(line["ill"] for line in found) == Counter(ILLS)
    worlds = {(tuple(sorted(ills[:3])), tuple(sorted(ills[3:]))) for ills in permutations(ILLS)}
    assert len(worlds) > 1
    refused = {peru for peru, cuba in worlds if not (is_diverse(peru) and is_diverse(cuba))}
    assert refused == {("HIV", "HIV", "HIV")}, "no value has the four rows of Cuba"


def test_a_refused_split_tells_nothing_under_k_anonymity_alone():
    """With k = 3 alone Peru and Cuba are told apart, whatever ails them: refusals hang on quasi-identifiers only."""
    attributes = {"country": QUASI, "ill": {"role": "sensitive"}}
    divided = [
        publish({"country": ["Peru"] * 3 + ["Cuba"] * 4, "ill": ills}, attributes, [{"k-anonymity": 3}])
        for ills in (ILLS, ILLS[::-1])
    ]
    assert all(Counter(line["country"] for line in lines) == {"Peru": 3, "Cuba": 4} for lines in divided)


def test_an_end_that_comes_from_a_threshold_is_somebody_s_value():
    """Bounds [0, 95], slices of 3: people of 10 and 11 that are split at 10 are [9, 10] and 11."""
    age = {**QUASI, "type": "number", "bounds": [0, 95], "step": 1}
    found = publish({"age": [10, 10, 11, 11]}, {"age": age}, [{"k-anonymity": 2}])
    assert Counter(line["age"] for line in found) == {"[9, 10]": 2, "11": 2}
    whole = publish({"age": [10, 10, 11, 11]}, {"age": age}, [{"k-anonymity": 4}])
    assert {line["age"] for line in whole} == {"[9, 11]"}, "without a split the slice is all that is told"


def test_groups_of_equal_labels_are_what_is_judged():
    """No two leaves of a tree share all labels, so each group of equal labels holds by itself."""
    countries = ["US"] * 6 + ["Peru"] * 3 + ["Cuba"] + ["Chile"] * 2
    ages = [20, 20, 20, 50, 50, 50, 20, 50, 50, 20, 50, 20]
    age = {**QUASI, "type": "number", "bounds": [0, 95], "step": 1}
    found = publish({"country": countries, "age": ages}, {"country": QUASI, "age": age}, [{"k-anonymity": 3}])
    groups: Counter[tuple[str, str]] = Counter()
    for line in found:
        groups[line["country"], line["age"]] += 1
    assert len(groups) > 2
    assert min(groups.values()) >= 3


def test_a_further_row_may_get_a_label_that_does_not_contain_its_value():
    """Rows go down the tree, not to a label that fits: * would fit an American, and nothing fits a person of 40."""
    policy = {
        "attributes": {"country": QUASI},
        "require": [{"k-anonymity": 2}],
        "method": {"mondrian": {"refine": "none"}},
    }
    rested = sf.publish(pa.table({"country": ["US"] * 4 + ["Peru", "Cuba"]}), policy).recoding
    assert rested.apply(pa.table({"country": ["US", "Chile"]})).column("country").to_pylist() == ["US", "*"]
    age = {**QUASI, "type": "number", "bounds": [0, 95], "step": 1}
    policy["attributes"] = {"age": age}
    apart = sf.publish(pa.table({"age": [10, 10, 12, 80, 80, 80]}), policy).recoding
    told = apart.apply(pa.table({"age": [40, 10]})).column("age").to_pylist()
    assert told == ["[78, 80]", "[9, 12]"]
