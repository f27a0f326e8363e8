"""The policy of a differentially private release: its options, and what it must declare."""

from __future__ import annotations

from fractions import Fraction

import pytest

from sfumato.diffgen_policy import DiffGenOptions
from sfumato.errors import PolicyError
from sfumato.policy import Policy

ATTRIBUTES = """
attributes:
  id:     {role: identifier}
  age:    {role: quasi-identifier, type: number, bounds: [0, 110], step: 1}
  height: {role: quasi-identifier, type: number, bounds: [0, 2.5], step: 0.1}
  born:   {role: quasi-identifier, type: date, bounds: [2000-01-01, 2000-12-31]}
  sex:    {role: quasi-identifier, values: [Male, Female]}
  job:    {role: quasi-identifier, hierarchy: {tree: {Any: {Professional: [Engineer, Lawyer], Artist: [Dancer, Writer]}}}}
  income: {role: other, values: [low, high]}
"""
REST = "workload: [classify: income]\nmethod: {diffgen: {epsilon: 1.0}}\n"
N_LINES = ATTRIBUTES.count("\n")


def policy(method: str = "{epsilon: 1.0}", more: str = "") -> Policy:
    return Policy.parse(f"{ATTRIBUTES}workload: [classify: income]\nmethod: {{diffgen: {method}}}\n{more}")


def refusal(text: str) -> str:
    with pytest.raises(PolicyError) as caught:
        Policy.parse(text)
    return str(caught.value)


def of_options(method: str, more: str = "") -> str:
    with pytest.raises(PolicyError) as caught:
        policy(method, more)
    start = f"Policy, line {N_LINES + 2}: method diffgen "
    message = str(caught.value)
    assert message.startswith(start), message
    return message.removeprefix(start)


# ---- options ---------------------------------------------------------------------------------------


def test_epsilon_alone_is_enough():
    private = policy()
    assert private.method == DiffGenOptions(Fraction(1))
    assert private.is_private
    assert private.rows == "counts"
    assert private.method.as_policy() == {
        "diffgen": {"epsilon": 1, "variant": "tuned", "max-cells": 1_000_000}
    }
    assert not Policy.parse("{attributes: {age: {role: quasi-identifier}}, require: []}").is_private


@pytest.mark.parametrize(
    ("written", "exact"),
    [("0.1", Fraction(1, 10)), ("1", Fraction(1)), ("1.0e-3", Fraction(1, 1000)), (".25", Fraction(1, 4)),
     ("0.30000000000000004", Fraction("0.30000000000000004")), ("1e12", Fraction(10**12))],
)  # fmt: skip
def test_epsilon_is_the_decimal_that_is_written(written, exact):
    private = policy(f"{{epsilon: {written}}}")
    assert private.method.epsilon == exact
    assert Policy.from_dict(private.as_dict()).method.epsilon == exact


EPSILON = "epsilon: must be a number from 1e-9 to 1e12, such as 1.0; the smaller, the more private."


@pytest.mark.parametrize(
    ("written", "sentence"),
    [("0", EPSILON), ("-1", EPSILON), ("-0.5", EPSILON), ("1e-10", EPSILON), ("2e12", EPSILON),
     ("high", EPSILON), ("'1.0'", EPSILON), ("true", EPSILON), ("[1]", EPSILON), ("", EPSILON),
     (".inf", "epsilon: a number must be finite."), ("-.inf", "epsilon: a number must be finite."),
     (".nan", "epsilon: a number must be finite."), ("1e999", "epsilon: a number must be finite.")],
)  # fmt: skip
def test_an_epsilon_that_promises_nothing_is_refused(written, sentence):
    assert of_options(f"{{epsilon: {written}}}") == sentence


@pytest.mark.parametrize("method", ["diffgen", "{diffgen: }", "{diffgen: {}}", "{diffgen: {variant: paper}}"])
def test_without_epsilon_the_error_says_what_to_write(method):
    text = f"{ATTRIBUTES}workload: [classify: income]\nmethod: {method}\n"
    assert refusal(text) == (
        f"Policy, line {N_LINES + 2}: method: diffgen needs the privacy budget epsilon, "
        "such as method: {diffgen: {epsilon: 1.0}}."
    )


def test_every_option_survives_being_written():
    given = policy(
        "{epsilon: 0.25, variant: paper, specializations: 4, score: infogain, max-cells: 5000}",
        "output: {values: both, rows: expanded, recoding: false}\n",
    )
    assert given.method == DiffGenOptions(Fraction(1, 4), "paper", 4, "infogain", 5000)
    assert given.rows == "expanded"
    assert Policy.from_dict(given.as_dict()) == given
    assert Policy.parse(given.to_yaml()) == given


def test_cuts_survive_being_written():
    given = policy(
        "{epsilon: 1, cuts: {age: [40, 60], height: [0.5], born: [2000-07-01], sex: leaves, job: [Professional, Artist]}}"
    )
    assert given.method.cuts == {
        "age": (40, 60), "height": (0.5,), "born": ("2000-07-01",), "sex": "leaves", "job": ("Professional", "Artist")
    }  # fmt: skip
    assert Policy.from_dict(given.as_dict()) == given
    assert Policy.parse(given.to_yaml()) == given


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ("{epsilon: 1, variant: new}", "variant: 'new' is not one of tuned, paper."),
        ("{epsilon: 1, specializations: -1}", "specializations: must be a whole number from 0 to 10000."),
        ("{epsilon: 1, specializations: 1.5}", "specializations: must be a whole number from 0 to 10000."),
        ("{epsilon: 1, score: entropy}", "score: 'entropy' is not one of max, infogain, gini."),
        ("{epsilon: 1, max-cells: 0}", "max-cells: must be a whole number from 1 to 1e9."),
        ("{epsilon: 1, cuts: []}", "cuts: must name the columns that are cut, such as {age: [40, 60], sex: leaves}."),
        ("{epsilon: 1, cuts: {age: 40}}", "cuts age: must be a list, such as [40, 60] or"),
        ("{epsilon: 1, cuts: {age: []}}", "cuts age: must be a list, such as [40, 60] or"),
        ("{epsilon: 1, cuts: {age: all}}", "cuts age: must be a list, such as [40, 60] or"),
        ("{epsilon: 1, cuts: {agee: [40]}}", "cuts: column 'agee' does not stand under attributes. Did you mean 'age'?"),
    ],
)  # fmt: skip
def test_an_option_that_makes_no_sense_is_refused(written, sentence):
    assert of_options(written).startswith(sentence)
