"""Hierarchies as a policy declares them: values that are made once, checked, compared and written back."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import numpy as np
import pytest

from sfumato.errors import HierarchyError
from sfumato.policy.document import Policy
from sfumato.policy.hierarchy.builders import declare
from sfumato.policy.hierarchy.declarations import Balanced, Dates, Declaration, Flat, Given, Intervals, Mask
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.schema import Attribute, Kind

TREE = {"*": {"North": ["a", "b"], "South": ["c"]}}
ALL = [
    ("flat", Kind.CATEGORY, Flat()),
    ({"mask": 3}, Kind.CATEGORY, Mask(3)),
    ({"dates": ["day", "month"]}, Kind.DATE, Dates(("day", "month"))),
    ({"intervals": [0.5, 2]}, Kind.NUMBER, Intervals((0.5, 2))),
    ({"balanced": 2}, Kind.NUMBER, Balanced(2)),
    ({"tree": TREE}, Kind.CATEGORY, Given(Hierarchy.from_tree(TREE))),
]


def column(kind: Kind, hierarchy: object = None, **options: object) -> Attribute:
    return Attribute("x", "quasi-identifier", kind, hierarchy=hierarchy, **options)


@pytest.mark.parametrize(("plain", "kind", "declared"), ALL)
def test_an_attribute_takes_plain_data_and_holds_the_value(plain, kind, declared):
    attribute = column(kind, plain)
    assert attribute.hierarchy == declared
    assert hash(attribute) == hash(column(kind, declared))
    assert attribute.hierarchy.as_policy() == plain
    assert declare(declared, kind) is declared


@pytest.mark.parametrize(("plain", "kind", "declared"), ALL)
def test_a_declaration_is_frozen_and_can_be_copied(plain, kind, declared):
    del plain, kind
    assert pickle.loads(pickle.dumps(declared)) == copy.deepcopy(declared) == declared
    for field in dataclasses.fields(declared):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(declared, field.name, None)


def test_a_tree_that_was_read_is_taken_as_it_is():
    tree = Hierarchy.flat(["a", "b"])
    assert column(Kind.CATEGORY, tree).hierarchy == Given(tree)
    assert column(Kind.CATEGORY, tree).build_hierarchy(["else"]) is tree


def test_the_list_that_was_given_may_change_afterwards():
    widths = [5, 10]
    attribute = column(Kind.NUMBER, {"intervals": widths})
    widths.append(7)
    assert attribute.hierarchy.as_policy() == {"intervals": [5, 10]}


def test_no_hierarchy_is_flat_but_is_not_written():
    attribute = column(Kind.CATEGORY)
    assert attribute.hierarchy is None
    assert attribute.declaration == Flat()
    assert column(Kind.NUMBER).is_ordered
    assert not column(Kind.NUMBER, "flat").is_ordered


@pytest.mark.parametrize(("plain", "kind", "declared"), ALL)
def test_a_policy_is_written_as_it_was_read(plain, kind, declared):
    given = {"role": "quasi-identifier", "type": str(kind), "hierarchy": plain}
    given |= {"bounds": [0, 8]} if kind is Kind.NUMBER else {}
    policy = Policy.from_dict({"attributes": {"x": given}, "require": []})
    assert policy.schema["x"].hierarchy == declared
    assert policy.as_dict()["attributes"]["x"] == given


@pytest.mark.parametrize("declared", [Mask(3), Dates(("day",)), Intervals((5,)), Balanced(2)])
def test_a_rule_is_for_one_kind_of_column(declared: Declaration):
    for kind in Kind:
        if kind not in declared.kinds:
            sentence = f"The hierarchy of column 'x': {declared.word} is not for a column of type {kind}."
            with pytest.raises(HierarchyError) as caught:
                column(kind, declared)
            assert str(caught.value) == sentence


@pytest.mark.parametrize(
    "wrong", ["deep", 5, {}, {"mask": 2, "flat": 1}, ["mask"], {"musk": 5}, {"mask": True}, {"dates": "day"}]
)
def test_what_is_no_declaration_is_refused_at_once(wrong):
    with pytest.raises(HierarchyError, match=r"^The hierarchy of column 'x': "):
        column(Kind.CATEGORY, wrong)


@pytest.mark.parametrize(
    ("attribute", "is_open", "is_complete"),
    [
        (column(Kind.CATEGORY), True, False),
        (column(Kind.CATEGORY, values=("a",)), False, True),
        (column(Kind.CATEGORY, {"mask": 3}), True, False),
        (column(Kind.CATEGORY, {"mask": 3}, values=("a",)), False, True),
        (column(Kind.NUMBER, "flat"), True, False),
        (column(Kind.DATE, {"dates": ["day"]}, bounds=(0, 9)), False, False),
        (column(Kind.NUMBER, {"balanced": 2}), False, True),
        (column(Kind.NUMBER, {"intervals": [5]}), False, True),
        (column(Kind.CATEGORY, {"tree": TREE}), False, True),
    ],
)
def test_what_the_policy_alone_tells(attribute, is_open, is_complete):
    assert attribute.declaration.is_open(attribute) is is_open
    assert attribute.declaration.is_complete(attribute) is is_complete


@pytest.mark.parametrize(
    ("declared", "values", "sets"),
    [
        (Flat(), ["a", "[0, 5)"], []),
        (Mask(3), ["537", "5"], ["53*", "5**"]),
        (Dates(("day", "month")), ["2024-03-05"], ["2024-03", "2024"]),
        (Dates(("month", "year")), [], ["2024-03", "2024-03-05"]),
        (Intervals((5,)), ["5"], ["[0, 5)"]),
        (Balanced(2), ["5"], ["[0, 5)"]),
        (Given(Hierarchy.from_tree(TREE)), ["a", "c"], ["North", "*", "else"]),
        (Given(Hierarchy.from_tree({"*": {"a": ["b", "c"], "d": {"a": None}}})), ["b"], ["a"]),
    ],
)
def test_labels_of_single_values_are_told_from_those_of_sets(declared, values, sets):
    is_value = declared.make_value_test()
    assert all(map(is_value, values))
    assert not any(map(is_value, sets))


def test_all_days_between_the_bounds_are_declared():
    attribute = column(Kind.DATE, {"dates": ["day", "month"]}, bounds=(30, 31))
    assert attribute.build_declared_hierarchy().as_tree() == {
        "*": {"1970-01": ["1970-01-31"], "1970-02": ["1970-02-01"]}
    }
    assert attribute.build_hierarchy(np.array([31], dtype="datetime64[D]")).n_leaves == 1


def test_a_mask_keeps_the_texts_that_fit_it():
    assert Mask(3).keep_fitting(["5371", "537", ""]) == ["537", ""]
    assert Flat().keep_fitting(["5371"]) == ["5371"]
