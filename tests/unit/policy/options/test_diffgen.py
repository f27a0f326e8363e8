"""The policy of a differentially private release: its options, and what it must declare."""

# ruff: noqa: E501 - tables of sentences: one case, one line

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from sfumato.errors import HierarchyError, PolicyError
from sfumato.policy.document import Policy
from sfumato.policy.options.diffgen import DiffGenOptions

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
    assert private.options_for(DiffGenOptions).epsilon == exact
    assert Policy.from_dict(private.as_dict()).options_for(DiffGenOptions).epsilon == exact


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
    assert given.options_for(DiffGenOptions).cuts == {
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
        ("{epsilon: 1, score: entropy}", "score: 'entropy' is not one of max, infogain, gini, smooth."),
        ("{epsilon: 1, max-cells: 0}", "max-cells: must be a whole number from 1 to 1e9."),
        ("{epsilon: 1, cuts: []}", "cuts: must name the columns that are cut, such as {age: [40, 60], sex: leaves}."),
        ("{epsilon: 1, cuts: {age: 40}}", "cuts age: must be a list, such as [40, 60] or"),
        ("{epsilon: 1, cuts: {age: []}}", "cuts age: must be a list, such as [40, 60] or"),
        ("{epsilon: 1, cuts: {age: all}}", "cuts age: must be a list, such as [40, 60] or"),
        ("{epsilon: 1, score: infogain}", "score: tuned has smooth, max, gini only; leave it out, or use variant: paper."),
        ("{epsilon: 1, variant: paper, score: gini}", "score: paper has max, infogain only; leave it out, or use variant: tuned."),
        ("{epsilon: 1, variant: paper, cuts: {}}", "variant: cuts leave nothing to choose; leave out this or the cuts."),
        ("{epsilon: 1, specializations: 2, cuts: {}}", "specializations: cuts leave nothing to choose"),
        ("{epsilon: 1, score: max, cuts: {}}", "score: cuts leave nothing to choose"),
        ("{epsilon: 1, cuts: {agee: [40]}}", "cuts: column 'agee' does not stand under attributes. Did you mean 'age'?"),
    ],
)  # fmt: skip
def test_an_option_that_makes_no_sense_is_refused(written, sentence):
    assert of_options(written).startswith(sentence)


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (
            DiffGenOptions(Fraction(1, 3)),
            "epsilon: must be a decimal number of at most 15 digits, such as 0.1.",
        ),
        (DiffGenOptions(Fraction(0)), EPSILON),
        (DiffGenOptions(1.0), EPSILON),
        (DiffGenOptions(Fraction(1), variant="new"), "variant: 'new' is not one of tuned, paper."),
        (DiffGenOptions(Fraction(1), score="infogain"), "score: tuned has smooth, max, gini only"),
        (
            DiffGenOptions(Fraction(1), score="entropy"),
            "score: 'entropy' is not one of max, infogain, gini, smooth.",
        ),
        (
            DiffGenOptions(Fraction(1), specializations=-1),
            "specializations: must be a whole number from 0 to 10000.",
        ),
        (DiffGenOptions(Fraction(1), max_cells=0), "max-cells: must be a whole number from 1 to 1e9."),
        (DiffGenOptions(Fraction(1), cuts={"age": "all"}), "cuts age: must be a list, such as [40, 60] or"),
    ],
)
def test_options_made_in_code_are_checked_too(made, sentence):
    with pytest.raises(PolicyError) as caught:
        replace(policy(), method=made)
    assert str(caught.value).startswith(f"Policy: method diffgen {sentence}")


def test_rows_are_counts_or_expanded():
    with pytest.raises(PolicyError, match="output rows: 'all' is not one of counts, expanded"):
        replace(policy(), rows="all")


# ---- what must be declared -------------------------------------------------------------------------


def altered(old: str, new: str) -> str:
    text = f"{ATTRIBUTES}workload: [classify: income]\nmethod: {{diffgen: {{epsilon: 1.0}}}}\n"
    assert old in text
    return text.replace(old, new)


AGE = "{role: quasi-identifier, type: number, bounds: [0, 110], step: 1}"
SEX = "{role: quasi-identifier, values: [Male, Female]}"
INCOME = "{role: other, values: [low, high]}"
TASK = "workload: [classify: income]"
NO_DOMAIN = "diffgen reads no domain from the table; declare"


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        # the workload
        (TASK + "\n", "", "workload: diffgen needs a task to classify, such as classify: income."),
        (TASK, "workload: []", "workload: diffgen needs a task to classify, such as classify: income."),
        (TASK, "workload: [regress: age]", "task 1, regress: diffgen serves one task, to classify; leave this one out."),
        (TASK, "workload: [classify: income, select: age > 40]", "task 2, select: diffgen serves one task, to classify; leave this one out."),
        (TASK, "workload: [classify: income, aggregate: [mean]]", "task 2, aggregate: diffgen serves one task, to classify; leave this one out."),
        (TASK, "workload: [classify: income, classify: sex]", "task 2, classify: diffgen serves one task, to classify; leave out all others."),
        (TASK, "workload: [classify: {targets: [income, sex]}]", "task 1, classify: diffgen classifies one target; leave out the others."),
        (TASK, "workload: [classify: {targets: [income, sex], joint: true}]", "task 1, classify: diffgen classifies one target; leave out the others."),
        (TASK, "workload: [classify: {target: income, features: [age]}]",
         "task 1, classify features: diffgen publishes the quasi-identifiers alone; leave features out."),
        # the class
        (INCOME, "{role: other}", "column 'income': it is the class of diffgen; declare its values, such as values: [low, high]."),
        (INCOME, "{role: other, hierarchy: {mask: 3}}", "column 'income': it is the class of diffgen; declare its values"),
        (INCOME, "{role: sensitive, type: number, bounds: [0, 1], step: 1}",
         "column 'income', type: it is the class of diffgen, which is a category, not a number; declare its values."),
        (INCOME, "{role: other, values: [low]}", "column 'income': it is the class of diffgen, which needs at least two declared values."),
        (INCOME, "{role: other, hierarchy: {tree: {Any: [low, null]}}}", "column 'income': it is the class of diffgen, which needs at least two"),
        (INCOME, "{role: quasi-identifier, values: [low, high]}", "column 'income', role: it is the class of diffgen; give it the role other or sensitive."),
        # what is published
        ("id:     {role: identifier}", "id:     {role: other}",
         "column 'id', role: diffgen publishes no column as it is but the class; give it the role drop, or quasi-identifier and a declared domain."),
        ("id:     {role: identifier}", "id:     {role: sensitive, values: [a, b]}", "column 'id', role: diffgen publishes no column as it is"),
        (TASK, TASK + "\noutput: {values: summary}", "output values: diffgen publishes no statistics of groups; use labels, bounds or both."),
        (TASK, TASK + "\nrequire: [k-anonymity: 5]", "require: diffgen promises differential privacy, not anything of groups of rows; leave this out, or write []."),
        ("  sex:", "  count:", "attributes: the release would have two columns 'count'; rename yours, or drop it."),
        ("  sex: ", "  age_low: {role: quasi-identifier, values: [a, b]}\n  sex: ", None),
        # domains
        (AGE, "{role: quasi-identifier, type: number}", f"column 'age': {NO_DOMAIN} bounds and step, such as bounds: [0, 110], step: 1."),
        (AGE, "{role: quasi-identifier, type: number, bounds: [0, 110]}", f"column 'age': {NO_DOMAIN} bounds and step"),
        (AGE, "{role: quasi-identifier, type: number, bounds: [110, 0], step: 1}",
         "column 'age', bounds: the first must be below the second; swap or widen them."),
        (AGE, "{role: quasi-identifier, type: number, bounds: [0, 110], step: 0.3}", "column 'age', step: must divide the distance between the bounds"),
        (AGE, "{role: quasi-identifier, type: number, hierarchy: {intervals: [5]}}", f"column 'age': {NO_DOMAIN} bounds, such as bounds: [0, 110]."),
        (AGE, "{role: quasi-identifier, type: number, hierarchy: {balanced: 2}}", f"column 'age': {NO_DOMAIN} bounds, such as"),
        (AGE, "{role: quasi-identifier, type: number, bounds: [0, 9], step: 1, hierarchy: flat}", f"column 'age': {NO_DOMAIN} another hierarchy than flat, or none."),
        (AGE, "{role: quasi-identifier, type: number, bounds: [0, 3e9], step: 1}", "column 'age': its bounds and step make more than 2^31 values; widen the step."),
        (AGE, "{role: quasi-identifier, type: number, bounds: [1e15, 1000000000000010], step: 1}",
         "column 'age': its bounds and step need more than 15 digits, more than are exact; round them."),
        (AGE, "{role: quasi-identifier, type: number, bounds: [0, 1e9], step: 1, hierarchy: {balanced: 2}}",
         "column 'age', hierarchy: It would have more than 1,000,000 leaves."),
        (AGE, "{role: quasi-identifier, type: number, hierarchy: {tree: {Any: [1, 1.0]}}}",
         "column 'age', hierarchy: Leaves that are the same number as another leaf: 1."),
        ("bounds: [2000-01-01, 2000-12-31]}", "step: 1}", "column 'born', step: a step is counted from the lower bound"),
        ("type: date, bounds: [2000-01-01, 2000-12-31]", "type: date", f"column 'born': {NO_DOMAIN} bounds, such as bounds: [2020-01-01, 2024-12-31]."),
        ("bounds: [2000-01-01, 2000-12-31]}", "hierarchy: {dates: [day, year]}}", f"column 'born': {NO_DOMAIN} bounds, such as"),
        ("bounds: [2000-01-01, 2000-12-31]}", "bounds: [0001-01-01, 9999-12-31], hierarchy: {dates: [year]}}",
         "column 'born', hierarchy: Its bounds are 1,000,000 days apart or more; narrow them."),
        (SEX, "{role: quasi-identifier}", f"column 'sex': {NO_DOMAIN} values, such as values: [Male, Female], or a hierarchy of them."),
        (SEX, "{role: quasi-identifier, hierarchy: flat}", f"column 'sex': {NO_DOMAIN} values, such as"),
        (SEX, "{role: quasi-identifier, hierarchy: {mask: 5}}", f"column 'sex': {NO_DOMAIN} values, such as"),
        (SEX, "{role: quasi-identifier, values: [toolong], hierarchy: {mask: 5}}", None),
        (SEX, "{role: quasi-identifier, hierarchy: {tree: {Any: {A: {x: [a]}, B: {x: [b]}, C: [c]}}}}",
         "column 'sex', hierarchy: 1 of its labels stand in several places, so that cells would look alike; rename them."),
        (SEX, "{role: quasi-identifier, hierarchy: {tree: {Any: [a or missing, a]}}}", "column 'sex', hierarchy: 1 of its labels stand in several places"),
        (SEX, "{role: quasi-identifier, hierarchy: {tree: {Any: [a, a]}}}", None),
    ],
)  # fmt: skip
def test_what_is_not_declared_is_refused_with_the_way_out(old, new, sentence):
    text = altered(old, new)
    if "age_low" in new:
        text += "output: {values: bounds}\n"
        sentence = "attributes: the release would have two columns 'age_low'; rename yours, or drop it."
    with pytest.raises((PolicyError, HierarchyError)) as caught:
        Policy.parse(text)
    message = str(caught.value)
    assert "\n" not in message
    if sentence is not None:
        assert re.sub(r"^Policy(, line \d+)?: ", "", message).startswith(sentence), message


def test_a_column_called_count_may_be_dropped_or_stand_beside_expanded_rows():
    Policy.parse(altered("id:     {role: identifier}", "count:  {role: drop}"))
    Policy.parse(altered("  sex:", "  count:") + "output: {rows: expanded}\n")


@pytest.mark.parametrize(
    "declared",
    [
        "{role: quasi-identifier, type: number, bounds: [0, 110], hierarchy: {intervals: [5, 10]}}",
        "{role: quasi-identifier, type: number, bounds: [0, 1.5], hierarchy: {balanced: 2}}",
        "{role: quasi-identifier, type: number, hierarchy: {tree: {Any: {few: [1, 2], many: [3]}}}}",
        "{role: quasi-identifier, type: date, bounds: [2000-01-01, 2001-01-01], hierarchy: {dates: [month, year]}}",
        "{role: quasi-identifier, values: ['53715', '53703'], hierarchy: {mask: 5}}",
        "{role: quasi-identifier, hierarchy: {tree: {Any: [a, b, null]}}}",
        "{role: quasi-identifier, hierarchy: {tree: {Any: {Any: [a], x: [b]}}}}",
        "{role: quasi-identifier, type: number, bounds: [0, 2147483646], step: 1}",
        "{role: quasi-identifier, type: number, bounds: [-0.5, 0.5], step: 0.001}",
    ],
)
def test_a_declared_domain_is_enough(declared):
    made = Policy.parse(altered(AGE, declared))
    assert Policy.from_dict(made.as_dict()) == made


# ---- cuts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cuts", "sentence"),
    [
        ("{id: [a]}", "cuts id: the column has the role identifier, and only quasi-identifiers are cut."),
        ("{income: leaves}", "cuts income: the column has the role other, and only quasi-identifiers are cut."),
        ("{nothing: leaves}", "cuts nothing: column 'nothing' does not stand under attributes."),
        ("{age: [40.5]}", "cuts age: item 1 is not a whole number of steps above the lower bound."),
        ("{age: [0]}", "cuts age: item 1 is not above the lower bound and up to the upper one."),
        ("{age: [40, 111]}", "cuts age: item 2 is not above the lower bound and up to the upper one."),
        ("{age: [-5]}", "cuts age: item 1 is not above the lower bound"),
        ("{age: [60, 40]}", "cuts age: where pieces begin must ascend."),
        ("{age: [40, 40]}", "cuts age: where pieces begin must ascend."),
        ("{age: [old]}", "cuts age: must be a list of numbers, such as [40, 60]."),
        ("{age: [true]}", "cuts age: must be a list of numbers, such as [40, 60]."),
        ("{age: [null]}", "cuts age: must be a list of numbers, such as [40, 60]."),
        ("{age: [.inf]}", "cuts age: must be a list of numbers, such as [40, 60]."),
        ("{height: [0.25]}", "cuts height: item 1 is not a whole number of steps above the lower bound."),
        ("{born: [2000-13-01]}", "cuts born: must be a list of dates, such as [2020-07-01]."),
        ("{born: [5]}", "cuts born: must be a list of dates, such as [2020-07-01]."),
        ("{born: [2001-01-01]}", "cuts born: item 1 is not above the lower bound and up to the upper one."),
        ("{job: [Professional]}", "cuts job: the nodes lack 2 of its values; together they must cover every value once."),
        ("{job: [Any, Artist]}", "cuts job: the nodes have a value in common; together they must cover every value once."),
        ("{job: [Artist, Artist, Professional]}", "cuts job: the nodes have a value in common"),
        ("{job: [Artist, Boss]}", "cuts job: item 2 is no label of the column's hierarchy."),
        ("{job: [Artist or missing, Professional]}", "cuts job: item 1 is no label of the column's hierarchy."),
        ("{job: [Artist, Professional, null]}", "cuts job: item 3 is no label of the column's hierarchy."),
        ("{age: leaves, born: leaves, height: leaves}",
         "cuts: they make 1,109,808 cells, and max-cells is 1,000,000; cut less finely, or raise it."),
    ],
)  # fmt: skip
def test_cuts_that_are_none_are_refused(cuts, sentence):
    assert of_options(f"{{epsilon: 1, cuts: {cuts}}}").startswith(sentence)


def test_a_label_that_stands_twice_names_no_node():
    tree = "{role: quasi-identifier, hierarchy: {tree: {Any: {Any: [a], x: [b]}}}}"
    text = altered(SEX, tree).replace("{epsilon: 1.0}", "{epsilon: 1.0, cuts: {sex: [Any, x]}}")
    assert "cuts sex: item 1 is the label of 2 nodes, so it names none of them." in refusal(text)


def test_the_cells_of_cuts_are_counted_with_missing_at_the_leaves():
    """Three pieces of age, and both sexes and missing: nine cells."""
    policy("{epsilon: 1, max-cells: 9, cuts: {age: [40, 60], sex: leaves}}")
    assert of_options("{epsilon: 1, max-cells: 8, cuts: {age: [40, 60], sex: leaves}}").startswith(
        "cuts: they make 9 cells, and max-cells is 8"
    )


def test_labels_keep_their_spelling():
    tree = "{role: quasi-identifier, hierarchy: {tree: {Any: {01: [a], yes: [b], 1: [c]}}}}"
    text = altered(SEX, tree).replace("{epsilon: 1.0}", "{epsilon: 1.0, cuts: {sex: [01, yes, 1]}}")
    assert Policy.parse(text).options_for(DiffGenOptions).cuts == {"sex": ("01", "yes", "1")}


def test_no_message_repeats_a_value():
    secret = "s3cret"
    for text in [
        altered(
            SEX,
            f"{{role: quasi-identifier, hierarchy: {{tree: {{Any: {{A: {{{secret}: [a]}}, B: {{{secret}: [b]}}, C: [c]}}}}}}}}",
        ),
        altered(INCOME, f"{{role: other, values: [{secret}]}}"),
        altered("{epsilon: 1.0}", f"{{epsilon: 1.0, cuts: {{job: [{secret}]}}}}"),
        altered("{epsilon: 1.0}", f"{{epsilon: 1.0, cuts: {{age: [{secret}]}}}}"),
        altered("{epsilon: 1.0}", f"{{epsilon: {secret}}}"),
    ]:
        assert secret not in refusal(text)


def test_the_policy_of_the_documentation_is_one():
    page = (Path(__file__).parents[4] / "docs" / "policy.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```yaml\n(.*?)```", page, flags=re.DOTALL)
    (text,) = (block for block in blocks if "diffgen" in block)
    for cuts in ("{age: [40, 60], sex: leaves}", "{education: [School, Bachelor, Master]}"):
        assert cuts[1:-1] in page
        made = Policy.parse(text.replace("{epsilon: 1.0}", f"{{epsilon: 1.0, cuts: {cuts}}}"))
        assert made.is_private
