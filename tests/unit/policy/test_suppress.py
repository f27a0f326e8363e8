"""How many rows may be left out, as a policy says it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from sfumato.errors import PolicyError
from sfumato.policy.document import Policy
from sfumato.policy.suppress import Suppress

HEAD = (
    "attributes: {id: {role: identifier}, age: {role: quasi-identifier}, ill: {role: sensitive}}\n"
    "require: [k-anonymity: 2]\n"
)
SAYS = "must be a share of the rows, at most 100%, such as 1% or 0.01."


def test_a_policy_that_says_nothing_leaves_no_row_out():
    policy = Policy.parse(HEAD)
    assert (policy.suppress, policy.leaves_rows_out) == (None, False)
    assert "suppress" not in policy.as_dict()


@pytest.mark.parametrize(
    ("given", "share", "written"),
    [
        ("1%", Fraction(1, 100), "1%"),
        ("0.01", Fraction(1, 100), "1%"),
        ("0.5%", Fraction(1, 200), "0.5%"),
        ("100%", Fraction(1), "100%"),
        ("1", Fraction(1), "100%"),
        ("0", Fraction(0), "0%"),
        ("1e-30", Fraction(1, 10**30), "0.0000000000000000000000000001%"),
    ],
)
def test_a_share_is_kept_exactly(given, share, written):
    policy = Policy.parse(f"{HEAD}suppress: {{at-most: {given}}}")
    assert policy.suppress == Suppress(share)
    assert policy.leaves_rows_out == (share > 0)
    assert policy.as_dict()["suppress"] == {"at-most": written}
    assert Policy.from_dict(policy.as_dict()) == policy == Policy.parse(policy.to_yaml())


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("suppress: {at-most: 101%}", SAYS),
        ("suppress: {at-most: 1.5}", SAYS),
        ("suppress: {at-most: -1%}", SAYS),
        ("suppress: {at-most: some}", SAYS),
        ("suppress: {at-most: null}", SAYS),
        ("suppress: 1%", "must be how many rows may be left out at most, such as {at-most: 1%}."),
        ("suppress: {}", "the key 'at-most' is missing."),
    ],
)
def test_what_is_no_share_is_refused(line, words):
    with pytest.raises(PolicyError) as caught:
        Policy.parse(HEAD + line)
    assert words in str(caught.value)


def test_a_share_that_was_put_together_in_code_is_checked_too():
    policy = Policy.parse(HEAD)
    for wrong, words in ((Suppress(Fraction(2)), SAYS), ("1%", "must be how many rows")):
        with pytest.raises(PolicyError) as caught:
            replace(policy, suppress=wrong)
        assert words in str(caught.value)


@pytest.mark.parametrize("line", ["unit: id", ""])
def test_it_goes_with_a_unit_and_with_closeness(line):
    close = HEAD.replace("k-anonymity: 2", "t-closeness: {t: 0.5, of: ill}")
    assert Policy.parse(f"{close}suppress: {{at-most: 1%}}\n{line}").leaves_rows_out


def test_the_number_of_rows_is_rounded_down():
    assert [Suppress(Fraction(1, 100)).most_rows(n) for n in (0, 99, 100, 199, 10**12)] == [
        0,
        0,
        1,
        1,
        10**10,
    ]
