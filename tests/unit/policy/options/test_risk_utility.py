"""The policy of a risk-utility release: its options, how they are written down, and what makes no sense."""

# ruff: noqa: E501 - tables of sentences: one case, one line

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from sfumato.errors import PolicyError
from sfumato.policy.document import Policy
from sfumato.policy.options.risk_utility import (
    SERVES,
    Absolute,
    ApproximationOptions,
    GeneticOptions,
    PrivateSampling,
    RiskUtilityOptions,
    Weights,
)

ATTRIBUTES = """
attributes:
  id:      {role: identifier}
  age:     {role: quasi-identifier, type: number, bounds: [0, 110]}
  zip:     {role: quasi-identifier, hierarchy: {mask: 5}}
  job:     {role: quasi-identifier, hierarchy: {tree: {Any: {Art: [Dancer, Writer], Law: [Judge, Notary]}}}}
  disease: {role: sensitive}
  caution: {role: drop, type: number}
  worry:   {role: other, type: number}
"""
N_LINES = ATTRIBUTES.count("\n")
DECLARED = (
    ATTRIBUTES.replace("sensitive", "drop")
    .replace("other", "drop")
    .replace("[0, 110]", "[0, 110], step: 1")
    .replace("{mask: 5}", "{mask: 5}, values: ['53715', '53703']")
)
"""Every domain is known without a table, and nothing but quasi-identifiers is published."""


def policy(options: str = "{}", more: str = "", attributes: str = ATTRIBUTES) -> Policy:
    return Policy.parse(f"{attributes}method: {{risk-utility: {options}}}\n{more}", "/home/ann")


def method(options: str = "{}") -> RiskUtilityOptions:
    found = policy(options).method
    assert isinstance(found, RiskUtilityOptions)
    return found


def refusal(options: str, more: str = "", attributes: str = ATTRIBUTES) -> str:
    with pytest.raises(PolicyError) as caught:
        policy(options, more, attributes)
    return str(caught.value)


def of_options(options: str) -> str:
    message, start = refusal(options), f"Policy, line {N_LINES + 1}: method risk-utility"
    assert message.startswith(start), message
    return message.removeprefix(start).removeprefix(": ").strip()


# ---- options ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("written", ["risk-utility", "{risk-utility: }", "{risk-utility: {}}"])
def test_the_name_alone_is_enough(written):
    found = Policy.parse(f"{ATTRIBUTES}method: {written}\n")
    assert found.method == RiskUtilityOptions()
    assert not found.is_private
    assert found.requirements == ()
    assert found.method.as_policy() == {
        "risk-utility": {
            "optimizer": "auto",
            "objective": "threshold",
            "utility-at-least": 0.6,
            "utility": "depth",
            "weights": "model-1",
            "floor": 0,
        }
    }


ALL_OPTIONS = [
    "{optimizer: exact, utility-at-least: 0.75, utility: log, weights: harmonic, floor: 0.5}",
    "{utility-at-least: 6/17, weights: model-2}",
    "{utility-at-least: 0}",
    "{utility-at-least: 1}",
    "{optimizer: cut, objective: lagrangian, lambda: 0.3, kappa: 3, floor: 1/3}",
    "{objective: log-risk, lambda: 2/3, weights: model-2, utility: inverse}",
    "{utility: {age: [0, 1, 3], zip: [0, 0.5]}}",
    "{weights: {column: caution}}",
    "{weights: {model: harmonic, attributes: {zip: 2, job: {Judge: 0, Writer: 1.5}}, column: {zip: caution, job: worry}}}",
    "{side-table: data/voters.csv}",
    "{utility-at-least: {value: 5}}",
    "{utility-at-least: {value: 5/2}, utility: log}",
    "{optimizer: genetic}",
    "{optimizer: genetic, variant: paper, genetic: {population: 7}}",
    "{optimizer: approximation, approximation: {epsilon: 0.3}}",
    "{optimizer: approximation, variant: paper}",
    "{optimizer: approximation, variant: paper, approximation: {sigma: [0.25, 9]}}",
    "{optimizer: probing}",
    "{optimizer: approximation}",
]


@pytest.mark.parametrize("options", ALL_OPTIONS)
def test_every_option_survives_being_written(options):
    given = policy(options)
    assert Policy.from_dict(given.as_dict()) == given
    assert Policy.parse(given.to_yaml()) == given
    assert Policy.parse(given.to_yaml()).as_dict() == given.as_dict()


def test_options_are_what_is_written():
    assert method(ALL_OPTIONS[1]).utility_at_least == Fraction(6, 17)
    assert method(ALL_OPTIONS[4]) == RiskUtilityOptions(
        optimizer="cut", objective="lagrangian", price=Fraction(3, 10), kappa=3, floor=Fraction(1, 3)
    )
    assert method(ALL_OPTIONS[6]).utility == {"age": (0, 1, 3), "zip": (0, 0.5)}
    assert method("{utility-at-least: {value: 5/2}}").utility_at_least == Absolute(Fraction(5, 2))
    printed = "{optimizer: approximation, variant: paper, approximation: {epsilon: 0.3, sigma: [0.25, 9]}}"
    assert method(printed).approximation == ApproximationOptions(
        Fraction(3, 10), (Fraction(1, 4), Fraction(9))
    )
    assert method("{optimizer: genetic, genetic: {generations: 9}}").genetic == GeneticOptions(50, 9)
    assert method(ALL_OPTIONS[7]).weights == Weights("model-1", {}, "caution")
    assert method(ALL_OPTIONS[8]).weights == Weights(
        "harmonic", {"zip": 2.0, "job": {"Judge": 0, "Writer": 1.5}}, {"zip": "caution", "job": "worry"}
    )


def test_a_side_table_is_sought_beside_the_policy_and_told_by_its_name():
    found = method("{side-table: data/voters.csv}")
    assert found.side_path == "/home/ann/data/voters.csv"
    assert found.as_policy()["risk-utility"]["side-table"] == "voters.csv"
    assert method("{side-table: /data/voters.csv}").side_path == "/data/voters.csv"


def test_private_sampling_survives_being_written():
    options = "{side-table: v.csv, private: {epsilon: 1.0, delta: 1.0e-6, sample: 1/3}}"
    given = policy(options, attributes=DECLARED)
    assert isinstance(given.method, RiskUtilityOptions)
    assert given.method.private == PrivateSampling(Fraction(1), Fraction(1, 10**6), Fraction(1, 3))
    assert given.is_private
    assert Policy.from_dict(given.as_dict()) == given
    assert Policy.parse(given.to_yaml()) == given
    assert "rows" not in given.as_dict()["output"]


@pytest.mark.parametrize(
    ("declared", "by", "sentence"),
    [
        (", step: 1", "", "column 'age': private reads no domain from the table; declare bounds and step"),
        (
            "bounds: [0, 110], step: 1",
            "",
            "column 'age': private reads no domain from the table; declare bounds and step",
        ),
        (
            ", values: ['53715', '53703']",
            "",
            "column 'zip': private reads no domain from the table; declare values",
        ),
        ("[0, 110], step: 1", "[0, 110000000], step: 1", "column 'age', hierarchy: It would have more than"),
    ],
)
def test_a_private_release_declares_every_domain(declared, by, sentence):
    options = f"{{side-table: v.csv, {PRIVATE}}}}}"
    policy(options, attributes=DECLARED)
    assert sentence in refusal(options, attributes=DECLARED.replace(declared, by))


def test_the_variant_of_the_paper_is_not_private_and_declares_nothing():
    text = ATTRIBUTES.replace("sensitive", "drop").replace("other", "drop")
    given = policy(f"{{floor: 1, {PRIVATE}, variant: paper}}}}", attributes=text)
    assert not given.is_private
    assert Policy.from_dict(given.as_dict()) == given
    assert given.as_dict()["method"]["risk-utility"]["private"]["algorithm"] == 3
    options = f"{{objective: lagrangian, lambda: 1, floor: 1, {PRIVATE}, variant: paper, algorithm: 4}}}}"
    given = policy(options, attributes=text)
    assert Policy.parse(given.to_yaml()) == given
    assert isinstance(given.method, RiskUtilityOptions)
    assert given.method.private.algorithm == 4


@pytest.mark.parametrize("optimizer", SERVES)
@pytest.mark.parametrize("objective", ["threshold", "lagrangian", "log-risk"])
def test_an_optimizer_serves_the_objectives_it_can(optimizer, objective):
    price = "" if objective == "threshold" else ", lambda: 1, floor: 1"
    options = f"{{optimizer: {optimizer}, objective: {objective}{price}}}"
    if objective in SERVES[optimizer]:
        assert method(options).objective == objective
    else:
        assert of_options(options).startswith(
            f"optimizer: {optimizer} serves the objective {SERVES[optimizer][0]} only"
        )


SHARE = "utility-at-least: must be from 0 to 1: the share of the way from the row suppressed to the row as it is, such as 0.6."
PRIVATE = "private: {epsilon: 1.0, delta: 1.0e-6"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("{utility-at-least: 1.2}", SHARE),
        ("{utility-at-least: -0.1}", SHARE),
        ("{utility-at-least: 7/6}", SHARE),
        ("{utility-at-least: '0.5'}", SHARE),
        ("{utility-at-least: 60%}", SHARE),
        ("{utility-at-least: true}", SHARE),
        ("{utility-at-least: {value: -1}}", "utility-at-least value: must be a utility from 0 to 1e12, such as 5."),
        ("{utility-at-least: {share: 1}}", "the key 'share' is unknown"),
        ("{utility-at-least: {}}", "utility-at-least: the key 'value' is missing"),
        ("{objective: log-risk, floor: 1, lambda: 1, utility-at-least: {value: 5}}", "utility-at-least: only the objective threshold has it"),
        ("{variant: old}", "variant: 'old' is not one of repaired, paper."),
        ("{variant: paper}", "variant: the paper prints Algorithm 1 (optimizer: approximation) and Algorithm 2 (optimizer: genetic); choose one of them, or leave it out."),
        ("{variant: paper, optimizer: exact}", "variant: the paper prints Algorithm 1"),
        ("{genetic: {population: 9}}", "genetic: only optimizer: genetic has it; leave it out."),
        ("{optimizer: genetic, approximation: {epsilon: 0.2}}", "approximation: only optimizer: approximation has it; leave it out."),
        ("{optimizer: genetic, genetic: {population: 0}}", "genetic population: must be a whole number from 1 to 10000."),
        ("{optimizer: genetic, genetic: {generations: 1.5}}", "genetic generations: must be a whole number from 1 to 10000."),
        ("{optimizer: approximation, approximation: {epsilon: 1}}", "approximation epsilon: must be a number from 0.001 to below 1, such as 0.1."),
        ("{optimizer: approximation, approximation: {sigma: [0.5, 5]}}", "approximation sigma: only variant: paper draws until sigma accepts"),
        ("{optimizer: approximation, variant: paper, approximation: {sigma: [5, 0.5]}}", "approximation sigma: must be a number between 0 and 1 and one above 1, such as [0.5, 5]."),
        ("{optimizer: approximation, variant: paper, approximation: {sigma: [0.5]}}", "approximation sigma: must be a number between 0 and 1 and one above 1, such as [0.5, 5]."),
        ("{optimizer: approximation, variant: paper, approximation: {sigma: [0.5, 2]}}", "approximation sigma: theorem 3 needs (1 - theta) / (1 - theta sigma_1) + 1 / sigma_2 below 1, theta being utility-at-least; sigma_2 must be above 2.333 here."),
        (f"{{objective: lagrangian, lambda: 1, floor: 1, optimizer: exact, variant: paper, {PRIVATE}, variant: paper}}}}", "variant: the paper prints"),
        (f"{{floor: 1, optimizer: genetic, variant: paper, {PRIVATE}, variant: paper}}}}", "variant: private draws boxes and has a variant of its own; leave this one out."),
        (f"{{floor: 1, {PRIVATE}, variant: paper, algorithm: 4}}}}", "private algorithm: Algorithm 4 is printed for the Lagrangian alone; say objective: lagrangian, or algorithm: 3."),
        (f"{{floor: 1, {PRIVATE}, variant: paper, algorithm: 5}}}}", "private algorithm: must be 3 or 4."),
        (f"{{side-table: v.csv, {PRIVATE}, algorithm: 3}}}}", "private algorithm: only variant: paper has it; leave it out."),
        (f"{{side-table: v.csv, utility-at-least: {{value: 3}}, {PRIVATE}}}}}", "utility-at-least: a row that cannot reach a utility would end the run, and so tell of itself; give a share, such as 0.6."),
        ("{optimizer: best}", "optimizer: 'best' is not one of auto, exact, cut, approximation, genetic, probing."),
        ("{objective: risk}", "objective: 'risk' is not one of threshold, lagrangian, log-risk, most-utility."),
        ("{objective: lagrangian, floor: 1}", "the objective lagrangian needs the price of risk, such as lambda: 1.0."),
        ("{objective: log-risk, floor: 1}", "the objective log-risk needs the price of risk, such as lambda: 1.0."),
        ("{objective: log-risk, floor: 1, lambda: 0}", "lambda: must be a number above 0"),
        ("{objective: log-risk, floor: 1, lambda: 0/3}", "lambda: must be a number above 0"),
        ("{objective: log-risk, floor: 1, lambda: -1}", "lambda: must be a number above 0"),
        ("{lambda: 1}", "lambda: the objective threshold has no price of risk; leave it out."),
        ("{kappa: 2}", "kappa: only the objective lagrangian has it; leave it out."),
        ("{objective: log-risk, floor: 1, lambda: 1, utility-at-least: 0.5}", "utility-at-least: only the objective threshold has it"),
        ("{objective: lagrangian, lambda: 1, floor: 1, kappa: -1}", "kappa: must be a whole number from 0 to 9."),
        ("{objective: lagrangian, lambda: 1, floor: 1, kappa: 1.5}", "kappa: must be a whole number from 0 to 9."),
        ("{objective: lagrangian, lambda: 1}", "the objective lagrangian divides by the risk of a row that is suppressed, which is 0 with weights model-1 and a floor of 0; add a floor, such as floor: 0.1, or use weights: model-2."),
        ("{objective: lagrangian, lambda: 1, floor: 0, weights: harmonic}", "the objective lagrangian divides by"),
        ("{objective: log-risk, lambda: 1}", "the objective log-risk divides by the risk"),
        ("{objective: log-risk, lambda: 1, weights: {model: model-2, attributes: {age: 0, zip: 0, job: 0}}}", "the objective log-risk divides by the risk"),
        ("{floor: -1}", "floor: must be a number from 0 to 1e9, such as 0.1."),
        ("{utility: width}", "utility: 'width' is not one of depth, inverse, log."),
        ("{utility: [1]}", "utility: must be depth, inverse or log, or by column a list"),
        ("{utility: {agee: [0, 1]}}", "utility: column 'agee' does not stand under attributes. Did you mean 'age'?"),
        ("{utility: {disease: [0, 1]}}", "utility: column 'disease' has the role sensitive, and only a quasi-identifier has utility; leave it out."),
        ("{utility: {age: []}}", "utility age: must be a list of numbers of at least 0, the root's first"),
        ("{utility: {age: [0, -1]}}", "utility age item 2: must be a number from 0 to 1e9."),
        ("{utility: {age: [1, 0]}}", "utility age: must not fall from the root to the leaves"),
        ("{weights: model-3}", "weights: 'model-3' is not one of model-1, model-2, harmonic."),
        ("{weights: {age: 2}}", "the key 'age' is unknown"),
        ("{weights: {model: model-4}}", "weights model: 'model-4' is not one of"),
        ("{weights: {attributes: {age: -2}}}", "weights attributes age: must be a weight, a number from 0 to 1e9, such as 2."),
        ("{weights: {model: harmonic, attributes: {job: {Judge: -2}}}}", "weights attributes job Judge: must be a weight"),
        ("{weights: {attributes: {job: {Judge: 2}}}}", "weights attributes job: model-1 knows one weight for the whole column; give a number, or use model: harmonic."),
        ("{weights: {attributes: {id: 2}}}", "weights attributes: column 'id' has the role identifier, and only a quasi-identifier is weighed"),
        ("{weights: {attributes: {jop: 2}}}", "weights attributes: column 'jop' does not stand under attributes. Did you mean 'job'?"),
        ("{weights: {column: cautoin}}", "weights column: column 'cautoin' does not stand under attributes. Did you mean 'caution'?"),
        ("{weights: {column: age}}", "weights column: column 'age' has the role quasi-identifier, and personal weights are no such thing"),
        ("{weights: {column: id}}", "weights column: column 'id' has the role identifier"),
        ("{weights: {column: disease}}", "weights column: column 'disease' holds weights; add type: number to it."),
        ("{weights: {column: {disease: caution}}}", "weights column: column 'disease' has the role sensitive, and only a quasi-identifier is weighed"),
        ("{weights: {column: {}}}", "weights column: must be the name of a column"),
        ("{side-table: ''}", "side-table: must be the path of a table, such as voters.csv."),
        ("{side-table: 'postgresql://me:secret@host/db?password=secret#t'}", "side-table: must be the path of a table, not an address; in Python side_table takes a database, too."),
        ("{side-table: [a.csv]}", "side-table: must be the path of a table, such as voters.csv."),
        (f"{{{PRIVATE}}}}}", "private: it needs a public side-table: boxes that are chosen by the table itself tell of its rows"),
        (f"{{side-table: v.csv, {PRIVATE}, sample: 1}}}}", "private sample: must be a number between 0 and 1, such as 0.5."),
        (f"{{side-table: v.csv, {PRIVATE}, sample: 3/2}}}}", "private sample: must be a number between 0 and 1, such as 0.5."),
        (f"{{side-table: v.csv, {PRIVATE}, variant: new}}}}", "private variant: 'new' is not one of repaired, paper."),
        ("{side-table: v.csv, private: {delta: 1.0e-6}}", "private: the key 'epsilon' is missing; say, for example, epsilon: 1.0."),
        ("{side-table: v.csv, private: {epsilon: 1}}", "private: the key 'delta' is missing"),
        ("{side-table: v.csv, private: {epsilon: 0, delta: 0.1}}", "private epsilon: must be a number from 0.001 to 50, such as 1.0; the smaller, the more private."),
        ("{side-table: v.csv, private: {epsilon: 1, delta: 0}}", "private delta: must be a number between 0 and 1, such as 1.0e-6."),
        (f"{{side-table: v.csv, {PRIVATE}, sample: 0.64}}}}", "private sample: must be at most 1 - exp(-epsilon), which is 0.6321"),
        ("{side-table: v.csv, private: {epsilon: 20, delta: 1.0e-6, sample: 0.99999}}", "private sample: a box would have to be drawn more than 100,000 times"),
        ("{side-table: v.csv, private: {epsilon: 60, delta: 1.0e-6}}", "private epsilon: must be a number from 0.001 to 50"),
        (f"{{side-table: v.csv, optimizer: genetic, {PRIVATE}}}}}", "optimizer: genetic does not choose the box of a row by the row and the side table alone"),
        (f"{{side-table: v.csv, optimizer: approximation, {PRIVATE}}}}}", "optimizer: approximation does not choose the box"),
        (f"{{side-table: v.csv, weights: {{column: caution}}, {PRIVATE}}}}}", "weights column: personal weights are numbers of the table"),
        (f"{{side-table: v.csv, floor: 1, {PRIVATE}, variant: paper}}}}", "private: the variant paper takes the table itself for its side table"),
        (f"{{objective: log-risk, lambda: 1, floor: 1, {PRIVATE}, variant: paper}}}}", "private: the paper knows no objective log-risk"),
        (f"{{{PRIVATE}, variant: paper}}}}", "the variant paper divides by the risk of a row that is suppressed"),
    ],
)  # fmt: skip
def test_an_option_that_makes_no_sense_is_refused(options, sentence):
    message = refusal(options)
    assert sentence in message
    assert f"line {N_LINES + 1}: " in message


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ("require: [k-anonymity: 5]", "require: risk-utility chooses for each row alone and promises nothing of groups; leave this out, or write []."),
        ('workload: [select: "age >= 4"]', "workload: risk-utility chooses for the owner of each row and serves no task; evaluate can measure classify and regress, leave the others out."),
        ("workload: [aggregate: [mean]]", "workload: risk-utility chooses for the owner of each row"),
        ("output: {values: summary}", "output values: risk-utility makes no groups to summarize; use labels, bounds or both."),
        ("output: {rows: counts}", "output rows: only diffgen publishes counts or expanded rows; leave it out."),
    ],
)  # fmt: skip
def test_what_single_rows_cannot_serve_is_refused(more, sentence):
    assert refusal("{}", more + "\n").startswith(f"Policy, line {N_LINES + 2}: {sentence}")


def test_tasks_are_accepted_to_be_measured_and_overridden():
    measured = policy("{}", "workload: [classify: disease]\n")
    assert measured.method == policy().method
    assert measured.method.overrides(measured.workload)
    assert not measured.method.overrides(())


def test_what_is_empty_is_no_promise():
    assert policy("{}", "require: []\nworkload: []\n") == policy()


def test_a_private_release_publishes_no_other_column():
    for role, name in (("sensitive", "disease"), ("other", "worry")):
        others = {"sensitive", "other"} - {role}
        text = ATTRIBUTES.replace(others.pop(), "drop")
        message = refusal(f"{{side-table: v.csv, {PRIVATE}}}}}", attributes=text)
        assert f"column {name!r}, role: private risk-utility publishes quasi-identifiers alone" in message


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (RiskUtilityOptions(optimizer="best"), "optimizer: 'best' is not one of auto, exact"),
        (RiskUtilityOptions(objective="risk"), "objective: 'risk' is not one of threshold, lagrangian, log-risk, most-utility. Did you mean 'log-risk'?"),
        (RiskUtilityOptions(utility="width"), "utility: 'width' is not one of depth, inverse, log. Did you mean 'depth'?"),
        (RiskUtilityOptions(utility_at_least=Fraction(2)), SHARE),
        (RiskUtilityOptions(utility_at_least=Absolute(Fraction(-1))), "utility-at-least value: must be a utility from 0 to 1e12, such as 5."),
        (RiskUtilityOptions(variant="old"), "variant: 'old' is not one of repaired, paper."),
        (RiskUtilityOptions(optimizer="genetic", genetic=GeneticOptions(0)), "genetic population: must be a whole number from 1 to 10000."),
        (RiskUtilityOptions(optimizer="approximation", approximation=ApproximationOptions(Fraction(2))), "approximation epsilon: must be a number from 0.001 to below 1, such as 0.1."),
        (RiskUtilityOptions(side_table="v", private=PrivateSampling(Fraction(1), Fraction(1, 9), algorithm=4)), "private algorithm: only variant: paper has it; leave it out."),
        (RiskUtilityOptions(side_table="v", private=PrivateSampling(Fraction(1), Fraction(1, 9), algorithm=5)), "private algorithm: must be 3 or 4."),
        (RiskUtilityOptions(floor=Fraction(-1)), "floor: must be a number from 0 to 1e9, such as 0.1."),
        (RiskUtilityOptions(utility=lambda _attribute, tree: tree.depth.tolist()), "utility: a function cannot be written down with the release; give its values by depth."),
        (RiskUtilityOptions(weights=Weights(column=len)), "weights column: a function cannot be written down with the release; add its numbers as a column."),
        (RiskUtilityOptions(weights=Weights("other")), "weights model: 'other' is not one of model-1, model-2, harmonic."),
        (RiskUtilityOptions(weights=Weights(attributes={"age": float("nan")})), "weights attributes age: must be a weight, a number from 0 to 1e9, such as 2."),
        (RiskUtilityOptions(utility={"age": (0, float("inf"))}), "utility age item 2: must be a number from 0 to 1e9."),
        (RiskUtilityOptions(side_table=""), "side-table: must be the path"),
        (RiskUtilityOptions(side_table="v", private=PrivateSampling(Fraction(0), Fraction(1, 9))), "private epsilon: must be a number from 0.001 to 50"),
        (RiskUtilityOptions(side_table="v", private=PrivateSampling(Fraction(1), Fraction(1))), "private delta: must be a number between 0 and 1, such as 1.0e-6."),
        (RiskUtilityOptions(side_table="v", private=PrivateSampling(Fraction(1), Fraction(1, 9), variant="x")), "private variant: 'x' is not one of repaired, paper."),
    ],
)  # fmt: skip
def test_options_that_are_put_together_in_code_are_checked_too(made, sentence):
    with pytest.raises(PolicyError) as caught:
        replace(policy(), method=made)
    assert f" method risk-utility {sentence}" in str(caught.value)
