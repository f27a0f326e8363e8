"""``finest`` in a policy: slices of numbers by a naive count, what is refused, and what it makes of hierarchies."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import PolicyError
from sfumato.policy.document import Policy
from sfumato.policy.finest import FinestSlices
from sfumato.policy.hierarchy.declarations import Dates, Given, Intervals
from sfumato.policy.schema import Attribute, Kind

TENTH = Fraction(1, 10)


def attribute(finest: float, bounds: tuple | None = None, step: float | None = None) -> Attribute:
    return Attribute("x", "quasi-identifier", Kind.NUMBER, bounds, step, finest=finest)


def naive_ends(
    value: Fraction, finest: Fraction, low: Fraction, high: Fraction | None, step: Fraction | None
):
    """Go through the slices from below until one holds the value."""
    first = low
    if high is None:
        while first >= value:
            first -= finest
    while True:
        last = first + finest - (step or 0)
        following = last + finest
        if high is not None and following > high:
            last = max(last, high) if step is None or following > high else last
            last = high
        if value <= last or (high is not None and last == high):
            return first, last
        first += finest


@settings(max_examples=100, deadline=None)
@given(
    width=st.integers(1, 40),
    step=st.sampled_from([None, 1, 2, 5]),
    low=st.integers(-50, 50),
    reach=st.integers(1, 30),
    unit=st.sampled_from([Fraction(1), TENTH]),
    share=st.integers(0, 10_000),
    has_bounds=st.booleans(),
)
def test_the_slice_of_a_number_is_the_one_that_counting_up_finds(
    width, step, low, reach, unit, share, has_bounds
):
    if step is not None:
        width, has_bounds = width * step, True
    low = low if has_bounds else 0
    high = low + width + (reach if step is None else reach * step)
    span = high - low
    value = low + (share % (span + 1) if step is None else share % (span // step + 1) * step)
    if not has_bounds:
        value -= 2 * width
    units = [
        None if each is None else each * unit
        for each in (width, low, high if has_bounds else None, step, value)
    ]
    finest, start, end, stride, exact = units
    slices = FinestSlices.of(
        attribute(
            float(finest),
            (float(start), float(end)) if has_bounds else None,
            None if stride is None else float(stride),
        )
    )
    found = slices.ends(np.array([float(exact)]))
    expected = naive_ends(exact, finest, start, end, stride)
    assert [each.item() for each in found] == [float(each) for each in expected]
    assert found[1].item() - found[0].item() >= float(finest - (stride or 0)) - 1e-9  # never narrower
    assert not slices.are_too_fine(*found)[0]


def test_slices_hold_whole_steps_or_reach_up_to_their_end():
    ages = FinestSlices.of(attribute(5, (0, 110), 1))
    assert ages.number(np.array([0.0, 4, 5, 9, 104, 105, 110])).tolist() == [0, 0, 1, 1, 20, 21, 21]
    assert ages.represent(np.array([0.0, 4, 5, 110, -np.inf])).tolist() == [4, 4, 9, 109, -np.inf]
    reals = FinestSlices.of(attribute(5, (0, 12)))
    assert [each.tolist() for each in reals.ends(np.array([0.0, 5, 5.1, 12]))] == [
        [0, 0, 5, 5],
        [5, 5, 12, 12],
    ]
    free = FinestSlices.of(attribute(2.5))
    assert free.represent(np.array([0.0, 0.1, 2.5, -3.0])).tolist() == [0, 2.5, 2.5, -2.5]


def test_what_lies_outside_or_off_the_step_stays_so():
    ages = FinestSlices.of(attribute(5, (0, 110), 1))
    assert ages.bounds == (4, 109)
    outside = ages.represent(np.array([-1.0, 111, 500]))
    assert outside[0] < 4
    assert (outside[1:] > 109).all()
    assert ages.represent(np.array([6.5])).tolist() == [9.5]


@pytest.mark.parametrize(
    ("low", "high", "is_too_fine"),
    [(0, 4, False), (5, 9, False), (0, 9, False), (105, 110, False), (-math.inf, math.inf, False), (0, 110, False),
     (0, 3, True), (6, 9, True), (5, 5, True), (110, 110, True), (1, 9, True), (105, 109, True)],
)  # fmt: skip
def test_a_published_range_begins_and_ends_with_a_slice(low, high, is_too_fine):
    ages = FinestSlices.of(attribute(5, (0, 110), 1))
    assert ages.are_too_fine(np.array([float(low)]), np.array([float(high)])).tolist() == [is_too_fine]


@pytest.mark.parametrize(
    ("low", "high", "is_too_fine"),
    [(0, 5, False), (5, 10, False), (6, 10, True), (15, 20, False), (5, 11, True), (5, 5, True)],
)
def test_a_published_range_of_real_numbers_is_read_with_its_open_end(low, high, is_too_fine):
    slices = FinestSlices.of(attribute(5, (0, 20)))
    assert slices.are_too_fine(np.array([float(low)]), np.array([float(high)])).tolist() == [is_too_fine]


def column(text: str) -> Attribute:
    return Policy.parse(f"attributes: {{x: {{role: quasi-identifier, {text}}}}}\nrequire: []").schema["x"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("finest: 1", "flat has no levels to choose from; leave finest out"),
        ("hierarchy: flat, finest: 1", "flat has no levels"),
        ("values: [a, b], finest: 1", "flat has no levels"),
        ("hierarchy: {mask: 5}, finest: 5", "the number of a level from 1 to 4, counted from the values up"),
        ("hierarchy: {mask: 5}, finest: zip3", "the number of a level from 1 to 4"),
        ("hierarchy: {library: us-zip}, finest: zip4", "one of zip, zip3, zone, or a number from 1 to 2"),
        ("hierarchy: {tree: {Any: [a, b]}}, finest: 1", "no level between its values and the root"),
        ("hierarchy: {tree: {Any: {x: [a], y: [b]}}}, finest: 2", "the number of a level from 1 to 1"),
        ("type: date, finest: week", "a unit of the calendar: day, month, quarter, year, decade"),
        ("type: date, finest: 7", "a unit of the calendar"),
        ("type: date, hierarchy: {dates: [day, year]}, finest: month", "a level of it: day, year"),
        ("type: number, finest: month", "must be a width, a number above 0"),
        ("type: number, finest: 0", "must be a width"),
        ("type: number, bounds: [0, 10], step: 2, finest: 5", "must be a multiple of the step"),
        ("type: number, bounds: [0, 10], finest: 11", "is wider than the bounds are apart"),
        ("type: number, bounds: [0, 10], hierarchy: {balanced: 2}, finest: 5", "declare intervals"),
        ("type: number, bounds: [0, 10], hierarchy: {intervals: [5, 10]}, finest: 2", "these are 5, 10"),
        ("finest: [1]", "must be a width, a unit such as month, or a level of the hierarchy"),
    ],
)
def test_a_finest_that_says_nothing_is_a_sentence_at_its_line(text, sentence):
    with pytest.raises(PolicyError, match="finest") as raised:
        column(text)
    assert sentence in str(raised.value)
    assert "line 1" in str(raised.value)


def test_only_a_quasi_identifier_has_it():
    with pytest.raises(PolicyError, match="only a quasi-identifier is generalized"):
        Policy.parse(
            "attributes: {y: {role: quasi-identifier}, x: {role: sensitive, type: number, finest: 5}}\nrequire: []"
        )


def test_diffgen_takes_it_for_hierarchies_and_refuses_it_for_plain_numbers():
    text = """
attributes:
  age: {role: quasi-identifier, type: number, bounds: [0, 110], step: 1, finest: 5}
  ill: {role: sensitive, values: ["yes", "no"]}
workload: [classify: ill]
method: {diffgen: {epsilon: 1}}
"""
    with pytest.raises(
        PolicyError, match=r"diffgen cuts a number at any step; declare slices, .*intervals: \[5\]"
    ):
        Policy.parse(text)
    Policy.parse(text.replace("step: 1, finest: 5", "hierarchy: {intervals: [1, 5, 10]}, finest: 5"))


@pytest.mark.parametrize(
    "text",
    [
        "type: number, bounds: [0, 110], step: 1, finest: 5",
        "type: number, finest: 2.5",
        "type: date, finest: month",
        "type: date, hierarchy: {dates: [day, month, year]}, finest: month",
        "type: number, bounds: [0, 100], hierarchy: {intervals: [5, 10, 50]}, finest: 10",
        "hierarchy: {mask: 5}, finest: 2",
        "hierarchy: {library: countries}, finest: region",
        "hierarchy: {library: icd9}, finest: 2",
        "hierarchy: {tree: {Any: {x: [a, b], y: [c, d]}}}, finest: 1",
    ],
)
def test_it_is_written_back_and_read_as_the_same(text):
    found = column(text)
    policy = Policy.parse(f"attributes: {{x: {{role: quasi-identifier, {text}}}}}\nrequire: []")
    again = Policy.from_dict(policy.as_dict())
    assert again == policy
    assert again.schema["x"] == found
    assert policy.as_dict()["attributes"]["x"]["finest"] == found.finest


def test_hierarchies_lose_what_is_finer():
    assert column("type: date, hierarchy: {dates: [day, month, year]}, finest: month").hierarchy == Dates(
        ("month", "year")
    )
    assert column("type: date, finest: quarter").hierarchy == Dates(("quarter", "year"))
    assert column(
        "type: number, bounds: [0, 9], hierarchy: {intervals: [1, 3, 9]}, finest: 3"
    ).hierarchy == Intervals((3, 9))
    cut = column("hierarchy: {tree: {Any: {x: [a, b], y: [c, d]}}}, finest: 1")
    assert isinstance(cut.hierarchy, Given)
    assert cut.build_hierarchy(()).as_tree() == {"Any": ["x", "y"]}
    assert cut.locate(cut.build_hierarchy(()), ["d", "a", "e"]).tolist() == [1, 0, -1]
    zips = column("hierarchy: {mask: 5}, finest: 2")
    tree = zips.build_hierarchy(["53715", "53703", "53", "60601"])
    assert tree.as_tree() == {
        "*": {"5*": ["53"], "5****": {"53***": ["537**"]}, "6****": {"60***": ["606**"]}}
    }
    assert [tree.labels[tree.leaf_nodes[c]] for c in zips.locate(tree, ["53703", "53"])] == ["537**", "53"]


@pytest.mark.parametrize("hierarchy", ["{mask: 5}", "{library: us-zip}"])
def test_a_value_that_is_not_declared_has_no_place_beside_one_that_is(hierarchy):
    zips = column(f"hierarchy: {hierarchy}, values: ['53715', '60601'], finest: 1")
    tree = zips.build_hierarchy(())
    found = zips.locate(tree, ["53715", "53716", "60601"]).tolist()
    assert [code < 0 for code in found] == [False, True, False]


def test_labels_that_a_cut_would_leave_in_two_places_are_refused():
    with pytest.raises(PolicyError, match="stand in several places"):
        column("hierarchy: {tree: {Any: {x: {other: [a, b]}, y: {other: [c, d]}}}}, finest: 1")
