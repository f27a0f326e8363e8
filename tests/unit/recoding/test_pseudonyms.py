"""Pseudonyms: who has the same one where, and in which groups a person's rows may share one."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InputError
from sfumato.policy.document import Policy
from sfumato.randomness import seeded
from sfumato.recoding.pseudonyms import Pseudonyms, find_sharing


def policy_of(require: str = "[]", scope: str = "group", key: str = "") -> Policy:
    key = f", key: '{key}'" if key else ""
    return Policy.parse(
        "{attributes: {age: {role: quasi-identifier}, ill: {role: sensitive}, pay: {role: sensitive, type: number}, "
        f"id: {{role: pseudonym, scope: {scope}{key}}}}}, require: {require}}}"
    )


@pytest.fixture
def key(tmp_path):
    path = tmp_path / "owner.key"
    path.write_bytes(bytes(range(32)))
    path.chmod(0o600)
    return path


def give(pseudonyms: Pseudonyms, words, group, may_share, seed: int = 1) -> list[str]:
    return pseudonyms.give("id", words, np.array(group), np.array(may_share), seeded(seed)).to_pylist()


def test_a_person_has_one_in_each_group_and_another_in_each_run(key):
    made = Pseudonyms.of(policy_of(key=key), None)
    a, b, a2, other = give(made, ["a", "b", "a", "a"], [0, 0, 0, 1], [True, True])
    assert a == a2
    assert len({a, b, other}) == 3
    assert {len(a), len(b), len(other)} == {24}
    again = Pseudonyms.of(policy_of(key=key), None)
    assert give(again, ["a"], [0], [True])[0] != a  # the salt of the run is secret
    assert give(made, ["a"], [0], [True], seed=2)[0] != a  # and so is the number of the group


def test_a_seed_repeats_them(key):
    first, second = (give(Pseudonyms.of(policy_of(key=key), 7), ["a", "b"], [0, 0], [True]) for _ in range(2))
    assert first == second


def test_other_keys_and_columns_make_others(key, tmp_path):
    (other := tmp_path / "other.key").write_bytes(bytes(32))
    other.chmod(0o600)
    mine, theirs = (Pseudonyms.of(policy_of(key=path, scope="release"), 7) for path in (key, other))
    assert give(mine, ["a"], [0], [True]) != give(theirs, ["a"], [0], [True])


def test_where_none_is_shared_each_row_has_its_own_and_so_has_a_row_of_nobody(key):
    made = Pseudonyms.of(policy_of(key=key), None)
    found = give(made, ["a", "a", None, None, "a"], [0, 0, 1, 1, 1], [False, True])
    assert len(set(found)) == 5


def test_the_scope_release_links_groups_and_releases(key):
    one, two = (Pseudonyms.of(policy_of(key=key, scope="release"), None) for _ in range(2))
    first, second = give(one, ["a", "a"], [0, 1], [True, True])
    assert first == second == give(two, ["a"], [0], [True])[0]


def test_the_keys_of_a_run_do_not_hold_the_owners(key):
    made = Pseudonyms.of(policy_of(key=key, scope="release"), None)
    assert key.read_bytes() not in [*made.of_run.values(), *made.of_owner.values()]


def test_a_pseudonym_without_a_key_is_refused():
    with pytest.raises(InputError, match="has no key; name the file of your secret key"):
        Pseudonyms.of(policy_of(), None)


# ---- sharing ---------------------------------------------------------------------------------------


def may_share(require: str, group, whose, ill=None, pay=None, person=None) -> list[bool]:
    n = len(group)
    columns = {"ill": pa.array(ill or ["x"] * n), "pay": pa.array(pay or [1.0] * n)}
    person = None if person is None else np.array(person)
    found = find_sharing(
        np.array(group), max(group) + 1, np.array(whose), policy_of(require), columns, person
    )
    return found.tolist()


def test_who_knows_how_many_rows_a_person_has_must_not_find_it():
    """k = 2, A has two rows and B one: pseudonyms p, p, q would say which rows are A's."""
    assert may_share("[k-anonymity: 2]", [0, 0, 0], [0, 0, 1]) == [False]
    assert may_share("[k-anonymity: 2]", [0, 0, 0, 0], [0, 0, 1, 1]) == [True]
    assert may_share("[k-anonymity: 2]", [0, 0, 0, 0, 0, 0], [0, 0, 1, 1, 2, 3]) == [True]
    assert may_share("[]", [0, 0, 0], [0, 0, 1]) == [True]


def test_cases_of_one_person_are_no_crowd():
    """k = 2, and two cases have two rows each. If both are A's, whoever knows of such a case finds all rows of A."""
    group, case = [0] * 5, [0, 0, 1, 1, 2]
    asked = "[k-anonymity: 2]"
    assert may_share(asked, group, [0, 0, 1, 1, -1], person=[0, 0, 1, 1, 2]) == [True]
    assert may_share(asked, group, [0, 0, 1, 1, -1], person=[0, 0, 0, 0, 2]) == [False]
    # of cases with one row there is one
    assert may_share(asked, group, case, person=[0, 0, 1, 1, 2]) == [False]
    two = "[distinct-diversity: {l: 2, of: ill}]"
    assert may_share(two, [0] * 4, [0, 0, 1, 1], ill=["u", "v", "u", "v"], person=[0] * 4) == [True]
    varied = "[variance-diversity: {at-least: 15, of: pay}]"
    cases, numbers = [0, 0, 1, 1, 2, 2], [1.0, 9.0, 1.0, 9.0, 9.0, 9.0]
    assert may_share(varied, [0] * 6, cases, pay=numbers, person=[0, 0, 0, 0, 0, 0]) == [True]
    assert may_share(varied, [0] * 6, cases, pay=numbers, person=[0, 0, 0, 0, 1, 1]) == [False]


def test_patients_of_one_doctor_are_no_crowd_of_doctors():
    """k = 2: whoever knows that a doctor has three rows finds them, however many patients they are of."""
    assert may_share("[k-anonymity: 2]", [0] * 5, [0, 0, 0, 1, 2], person=[0, 1, 2, 3, 4]) == [False]
    assert may_share("[k-anonymity: 2]", [0] * 4, [0, 0, 1, 1], person=[0, 1, 2, 3]) == [True]


def test_what_takes_the_whole_table_lets_nobody_share():
    assert may_share("[t-closeness: {t: 1, of: ill}]", [0, 0], [0, 1]) == [False]


def test_people_with_as_many_rows_must_be_diverse_by_themselves():
    two = "[distinct-diversity: {l: 2, of: ill}]"
    assert may_share(two, [0, 0, 0, 0], [0, 0, 1, 1], ill=["u", "u", "u", "u"]) == [False]
    assert may_share(two, [0, 0, 0, 0], [0, 0, 1, 1], ill=["u", "u", "v", "u"]) == [True]
    varied = "[variance-diversity: {at-least: 4, of: pay}]"
    assert may_share(varied, [0, 0, 0], [0, 0, 1], pay=[1.0, 9.0, 5.0]) == [False]
    assert may_share(varied, [0, 0, 0, 0], [0, 0, 1, 1], pay=[1.0, 1.0, 5.0, 5.0]) == [True]


rows = st.lists(
    st.tuples(
        st.integers(0, 2), st.integers(-1, 5), st.sampled_from("uvw"), st.integers(0, 4), st.integers(0, 3)
    ),
    min_size=1,
    max_size=24,
)
requires = st.sampled_from(
    [
        "[k-anonymity: 2]",
        "[distinct-diversity: {l: 2, of: ill}]",
        "[entropy-diversity: {l: 1.8, of: ill}, k-anonymity: 2]",
        "[recursive-diversity: {c: 2, l: 2, of: ill}]",
        "[variance-diversity: {at-least: 1, of: pay}]",
    ]
)


@settings(max_examples=80, deadline=None)
@given(rows, requires, st.booleans())
def test_sharing_is_what_counting_people_by_hand_says(table, require, has_unit):
    """With a unit, pseudonyms stand for cases of people, or for more than one person."""
    group, whose, ill, pay, person = map(list, zip(*table, strict=True))
    found = may_share(
        require, group, whose, ill, [float(one) for one in pay], person=person if has_unit else None
    )
    own = [(g, w, i, p, w) for g, w, i, p, _ in table]
    counted = [own, table] if has_unit else [own]
    assert found == [
        all(_may_share_naively(require, lines, g) for lines in counted) for g in range(max(group) + 1)
    ]


def _may_share_naively(require: str, table, g: int) -> bool:
    rows_of = defaultdict(list)
    for at, whose, ill, pay, person in table:
        if at == g and whose >= 0:
            rows_of[whose].append((person, ill, pay))
    classes: dict[int, dict[int, list]] = defaultdict(lambda: defaultdict(list))
    for own in rows_of.values():
        for person, ill, pay in own:
            classes[len(own)][person].append((ill, pay))
    return all(_holds(require, list(people.values())) for people in classes.values())


def _holds(require: str, people) -> bool:
    n = len(people)
    counts = np.array([sum(any(ill == value for ill, _ in own) for own in people) for value in "uvw"])
    counts = np.sort(counts[counts > 0])[::-1]
    numbers = [number for own in people for number in {pay for _, pay in own}]
    shares = counts / counts.sum()
    judged = {
        "k-anonymity": n >= 2,
        "distinct": len(counts) >= 2,
        "entropy": -(shares * np.log(shares)).sum() >= np.log(1.8) - 1e-9,
        "recursive": counts[0] < 2 * counts[1:].sum(),
        "variance": np.var(numbers) >= 1 - 1e-12,
    }
    return all(holds for word, holds in judged.items() if word in require)
