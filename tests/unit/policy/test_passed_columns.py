"""``passes``, pseudonyms and shifts in a policy: how they are written, and what makes no sense."""

from __future__ import annotations

import pytest

from sfumato.errors import PolicyError
from sfumato.policy.document import Policy
from sfumato.policy.schema import Role, Schema
from sfumato.policy.unit import Unit

TEXT = """
attributes:
  id:   {role: pseudonym, key: owner.key, scope: release}
  p:    {role: identifier}
  age:  {role: quasi-identifier}
  pay:  {role: sensitive, passes: unique}
  seen: {role: other, type: date, shift: {within: 30, per: p}}
require: []
unit: id
"""


def attributes(**changes: object) -> dict[str, object]:
    return {
        "attributes": {"age": {"role": "quasi-identifier"}, "p": {"role": "identifier"}, **changes},
        "require": [],
    }


def test_they_are_written_as_they_are_read_but_for_the_key():
    policy = Policy.parse(TEXT.replace("unit: id", "unit: row"))
    written = policy.as_dict()["attributes"]
    assert written["id"] == {"role": "pseudonym", "type": "category", "scope": "release"}
    assert written["pay"]["passes"] == "unique"
    assert written["seen"]["shift"] == {"within": 30, "per": "p"}
    again = Policy.from_dict(policy.as_dict(), None)
    assert again == policy
    assert again.schema["id"].key is None
    assert Policy.parse(policy.to_yaml(), None) == policy


def test_the_key_is_sought_beside_the_policy_file(tmp_path):
    (tmp_path / "p.yaml").write_text(TEXT.replace("unit: id", "unit: row"))
    assert Policy.read(tmp_path / "p.yaml").schema["id"].key == str(tmp_path / "owner.key")
    with pytest.raises(
        PolicyError, match="the policy of a release names no file; the key is its owner's alone"
    ):
        Policy.of_release(tmp_path / "p.yaml")


def test_patterns_take_them_along():
    schema = Schema.of(**{"lab_*": {"role": "other", "passes": "unique"}}).expand(["lab_1"])
    assert schema["lab_1"].passes == "unique"


def test_what_a_run_makes_of_secrets_is_left_out_of_recoded_rows():
    schema = Policy.parse(TEXT.replace("unit: id", "unit: row")).schema
    assert schema.left_out == {"id", "p", "seen"}
    assert [attribute.name for attribute in schema.passed] == ["pay", "seen"]
    assert Role.PSEUDONYM.is_published
    assert not Role.PSEUDONYM.passes


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (
            {"x": {"role": "identifier", "passes": "unique"}},
            "only a sensitive or other column is published as it is",
        ),
        ({"x": {"role": "other", "passes": "always"}}, "'always' is not unique"),
        ({"x": {"role": "other", "key": "k"}}, "only a column of the role pseudonym has it"),
        ({"x": {"role": "other", "scope": "group"}}, "only a column of the role pseudonym has it"),
        ({"x": {"role": "pseudonym", "scope": "all"}}, "'all' is not one of group, release"),
        ({"x": {"role": "pseudonym", "type": "number"}}, "a pseudonym is a text"),
        ({"x": {"role": "other", "shift": {"within": 3, "per": "p"}}}, "column of type date is shifted"),
        (
            {"x": {"role": "drop", "type": "date", "shift": {"within": 3, "per": "p"}}},
            "column of type date is shifted",
        ),
        (
            {"x": {"role": "other", "type": "date", "shift": {"within": 3, "per": "age"}}},
            "name an identifier or a pseud",
        ),
        (
            {"x": {"role": "other", "type": "date", "shift": {"within": 3, "per": "q"}}},
            "does not stand under attributes",
        ),
        (
            {"x": {"role": "other", "type": "date", "shift": {"within": 0, "per": "p"}}},
            "must be a number of days",
        ),
        ({"x": {"role": "other", "type": "date", "shift": {"within": 3}}}, "the key 'per' is missing"),
        ({"x": {"role": "other", "type": "date", "shift": 3}}, "must be days and a column"),
        (
            {
                "x": {"role": "other", "type": "date", "shift": {"within": 3, "per": "p"}},
                "y": {"role": "other", "type": "date", "shift": {"within": 4, "per": "p"}},
            },
            "dates of a person are shifted together",
        ),
    ],
)
def test_what_makes_no_sense_is_a_sentence(columns, said):
    with pytest.raises(PolicyError, match=said):
        Policy.from_dict(attributes(**columns))


def test_a_pseudonym_may_be_the_unit_and_is_no_target():
    given = attributes(x={"role": "pseudonym"})
    with pytest.raises(PolicyError, match="published as pseudonyms, which say nothing"):
        Policy.from_dict({**given, "workload": [{"classify": "x"}]})
    assert Policy.from_dict({**given, "unit": "x"}).unit == Unit.of("x")
