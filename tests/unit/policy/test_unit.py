"""Whom groups count, as a policy says it."""

from __future__ import annotations

import pytest

from sfumato.errors import PolicyError
from sfumato.policy.document import Policy
from sfumato.policy.schema import Schema
from sfumato.policy.unit import Unit, check_unit

COLUMNS = {"id": "identifier", "age": "quasi-identifier", "disease": "sensitive", "notes": "drop"}
HEAD = "attributes: {id: {role: identifier}, age: {role: quasi-identifier}}\nrequire: [k-anonymity: 2]\n"


def test_a_policy_that_says_nothing_counts_rows():
    policy = Policy.parse(HEAD)
    assert (policy.unit, policy.person) == (None, None)
    assert "unit" not in policy.as_dict()


def test_rows_are_said_to_be_people():
    policy = Policy.parse(HEAD + "unit: row")
    assert (policy.unit, policy.person) == (Unit(None), None)
    assert Policy.from_dict(policy.as_dict()) == policy


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ("age", "has the role quasi-identifier"),
        ("disease", "has the role sensitive"),
        ("notes", "has the role drop"),
        ("idd", "Did you mean 'id'?"),
    ],
)
def test_the_column_of_a_unit_is_an_identifier(column, words):
    with pytest.raises(PolicyError, match="unit") as caught:
        check_unit(Unit(column), Schema.of(**COLUMNS), is_private=False)
    assert words in caught.value.mistakes[0].sentence
    check_unit(Unit("id"), Schema.of(**COLUMNS), is_private=False)


def test_only_private_methods_bound_the_rows_of_a_person():
    schema = Schema.of(**COLUMNS)
    check_unit(Unit("id", 4), schema, is_private=True)
    with pytest.raises(PolicyError, match="rows-at-most"):
        check_unit(Unit("id", 4), schema, is_private=False)
    with pytest.raises(PolicyError, match="at least 1"):
        check_unit(Unit("id", 0), schema, is_private=True)


def test_a_pattern_may_stand_for_the_column_of_the_unit():
    schema = Schema.of(**{"id_*": "identifier", "age": "quasi-identifier"})
    check_unit(Unit("id_7"), schema, is_private=False)
