"""Rules of a policy's values: what they accept, what they say, and the JSON Schema that they become."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar

import pytest

from sfumato.policy import model
from sfumato.policy.mistakes import PolicyMistakes
from sfumato.policy.model import Part
from sfumato.policy.rules import FRACTION, Exact, Flag, ListOf, NumberRule, Whole


@dataclass(frozen=True, slots=True)
class Inner(Part):
    share: Annotated[Fraction, Exact("A share.", above=0, most=1, says="must be a share.")]
    meaning: ClassVar[str] = "The inside."


@dataclass(frozen=True, slots=True)
class Outer(Part):
    inner_part: Inner
    widths: Annotated[
        tuple[float, ...],
        ListOf("Widths.", says="must be widths.", item=NumberRule(above=0, says="must be a width.")),
    ] = (1,)
    n_rows: Annotated[int, Whole("Rows.", least=1, says="must be rows.")] = 1
    is_kept: Annotated[bool, Flag("Kept?")] = True
    secret: str | None = None
    meaning: ClassVar[str] = "The outside."
    says: ClassVar[str] = "must be a mapping."


def mistakes(given):
    with pytest.raises(PolicyMistakes) as caught:
        model.read(Outer, given, ("top",))
    return [mistake.words() for mistake in caught.value.mistakes]


def test_a_part_is_read_with_numbers_as_they_are_written():
    made = model.read(Outer, {"inner-part": {"share": "1/3"}, "widths": [5, 2.5], "n-rows": 3.0}, ())
    assert made == Outer(Inner(Fraction(1, 3)), (5, 2.5), 3)
    assert [type(number) for number in (*made.widths, made.n_rows)] == [int, float, int]


def test_everything_that_is_wrong_is_said_at_its_place_and_at_once():
    given = {
        "inner-part": {"share": 2, "shere": 1},
        "widths": [1, 0],
        "n-rows": True,
        "is-kept": 1,
        "secret": "x",
    }
    assert mistakes(given) == [
        "the key 'secret' is unknown in top. Known here: inner-part, widths, n-rows, is-kept.",
        "the key 'shere' is unknown in top inner-part. Did you mean 'share'?",
        "top inner-part share: must be a share.",
        "top widths item 2: must be a width.",
        "top n-rows: must be rows.",
        "top is-kept: must be true or false.",
    ]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, ["top: the key 'inner-part' is missing."]),
        ([], ["top: must be a mapping."]),
        (None, ["top: must be a mapping."]),
        (
            {"inner-part": {"sharre": 1}},
            ["the key 'sharre' is unknown in top inner-part. Did you mean 'share'?"],
        ),
        ({"inner-part": {"share": 1}, "widths": None}, ["top widths: must be widths."]),
        ({"inner-part": {"share": 1}, "widths": []}, ["top widths: must be widths."]),
        ({"inner-part": {"share": 1}, "widths": "12"}, ["top widths: must be widths."]),
    ],
)
def test_a_key_that_is_missing_misspelt_or_no_list_has_one_sentence(given, said):
    assert mistakes(given) == said


@pytest.mark.parametrize(
    "given", ["1/0", "0/3", "-1/2", "1/3/4", "1 /2", "/2", "1/", "٣/٤", True, None, 1.5, -1]
)
def test_a_fraction_is_digits_a_stroke_and_digits_within_its_limits(given):
    assert mistakes({"inner-part": {"share": given}}) == ["top inner-part share: must be a share."]


def test_limits_of_exact_numbers_are_decimals():
    """The float 1e-9 is a little more than a billionth, and 0.1 more than a tenth."""
    for limit in (1e-9, 0.1):
        exact = Fraction(str(limit))
        assert exact < Fraction(limit)
        assert Exact(least=limit, most=limit).accept(exact) == exact


def test_the_same_rules_hold_for_values_that_are_put_together_in_code():
    wrong = Outer(Inner(Fraction(2)), widths=(0,), n_rows=0)
    assert [mistake.words() for mistake in model.check(wrong, ("top",))] == [
        "top inner-part share: must be a share.",
        "top widths item 1: must be a width.",
        "top n-rows: must be rows.",
    ]
    assert [m.words() for m in model.check(Inner(0.5), ())] == ["share: must be a share."], "not exact"
    assert not list(model.check(Outer(Inner(Fraction(1))), ()))


def test_the_schema_has_every_key_with_its_limits_and_no_other():
    made = Outer.schema()
    assert made["description"] == "The outside."
    assert (made["required"], made["additionalProperties"]) == (["inner-part"], False)
    assert list(made["properties"]) == ["inner-part", "widths", "n-rows", "is-kept"]
    assert made["properties"]["n-rows"] == {
        "description": "Rows.", "type": "integer", "minimum": 1, "default": 1, "errorMessage": "must be rows.",
    }  # fmt: skip
    assert made["properties"]["inner-part"]["properties"]["share"] == {
        "description": "A share.", "type": ["number", "string"], "pattern": FRACTION,
        "exclusiveMinimum": 0, "maximum": 1, "errorMessage": "must be a share.",
    }  # fmt: skip
