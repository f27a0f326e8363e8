"""Epsilon as a scale: private settings beside others, in policies, advice, tables and pictures."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from xml.etree import ElementTree as ET

import numpy as np
import pyarrow as pa
import pytest

from sfumato.comparison import Comparison, Setting, advice, as_text, compare, guidance, parse_vary, picture
from sfumato.comparison.settings import combinations, vary_policy
from sfumato.errors import InputError, PolicyError
from sfumato.evaluation.intervals import make_score
from sfumato.evaluation.metrics import ACCURACY
from sfumato.evaluation.result import NOTHING, OUTSIDE_THE_BUDGET, RAW, RELEASE
from sfumato.policy.document import Policy
from sfumato.policy.options.diffgen import DiffGenOptions
from sfumato.policy.options.mondrian import MondrianOptions
from sfumato.policy.options.tds import TdsOptions
from sfumato.policy.requirements import KAnonymity
from sfumato.policy.schema import Role
from sfumato.policy.unit import Unit
from sfumato.randomness import seeded

GROUPS = Policy.parse(
    """
attributes:
  id:   {role: identifier}
  age:  {role: quasi-identifier, type: number, bounds: [0, 99], step: 1}
  town: {role: quasi-identifier, values: [a, b, c]}
  ill:  {role: sensitive, values: ["no", "yes"]}
  wage: {role: other, type: number}
require: [k-anonymity: 5]
workload: [classify: ill, select: "age >= 50"]
"""
)
PRIVATE = Policy.parse(
    """
attributes:
  id:   {role: identifier}
  age:  {role: quasi-identifier, type: number, bounds: [0, 99], step: 1}
  town: {role: quasi-identifier, values: [a, b, c]}
  ill:  {role: sensitive, values: ["no", "yes"]}
  wage: {role: drop}
workload: [classify: ill]
method: {diffgen: {epsilon: 0.5, variant: paper, specializations: 3}}
output: {rows: expanded}
"""
)


def people(n_rows=400):
    random = seeded(3)
    age = random.integers(20, 60, n_rows)
    is_ill = (age >= 40) ^ (random.random(n_rows) < 0.1)
    return pa.table(
        {
            "id": np.arange(n_rows).astype(str),
            "age": age,
            "town": np.array(["a", "b", "c"])[random.integers(0, 3, n_rows)],
            "ill": np.where(is_ill, "yes", "no"),
            "wage": 100.0 * age,
        }
    )


# ---- policies --------------------------------------------------------------------------------------------


def test_a_private_variant_of_a_policy_of_groups_publishes_boxes_and_the_class_alone():
    private = vary_policy(GROUPS, {"method": "diffgen", "epsilon": "0.1"})
    assert private.method == DiffGenOptions(Fraction(1, 10))
    assert private.requirements == ()
    assert [task.word for task in private.workload] == ["classify"]
    roles = {attribute.name: attribute.role for attribute in private.schema}
    assert roles == {
        "id": Role.IDENTIFIER, "age": Role.QUASI_IDENTIFIER, "town": Role.QUASI_IDENTIFIER, "ill": Role.SENSITIVE,
        "wage": Role.DROP,
    }  # fmt: skip


def test_what_only_published_columns_may_say_goes_with_them():
    """Columns that pass, pseudonyms and shifted dates are removed where a method refuses them."""
    document = GROUPS.as_dict()
    document["attributes"]["wage"] = {"role": "other", "type": "number", "passes": "unique"}
    document["attributes"]["id"] = {"role": "pseudonym", "key": "owner.key"}
    document["attributes"]["seen"] = {"role": "other", "type": "date", "shift": {"within": 3, "per": "id"}}
    policy = Policy.from_dict({**document, "suppress": {"at-most": "1%"}})
    private = vary_policy(policy, {"method": "diffgen", "epsilon": "0.5"})
    rows = vary_policy(policy, {"method": "risk-utility"})
    for chosen in (private, rows):
        assert chosen.schema["id"].role is Role.IDENTIFIER
        assert chosen.suppress is None
    assert (private.schema["wage"].role, private.schema["seen"].role) == (Role.DROP, Role.DROP)
    assert (rows.schema["wage"].passes, rows.schema["seen"].shift) == ("unique", policy.schema["seen"].shift)


def test_a_bound_on_the_rows_of_a_person_is_of_private_methods_alone():
    document = {**PRIVATE.as_dict(), "unit": {"column": "id", "rows-at-most": 4}}
    chosen = vary_policy(Policy.from_dict(document), {"method": "mondrian", "k": "5"})
    assert chosen.unit == Unit("id")


def test_a_private_policy_keeps_its_options_when_epsilon_varies():
    assert vary_policy(PRIVATE, {"epsilon": "2"}).method == replace(
        PRIVATE.options_for(DiffGenOptions), epsilon=Fraction(2)
    )


@pytest.mark.parametrize("written", ["0.1", "1e-3", "0.123456789012345"])
def test_an_epsilon_is_the_decimal_that_is_written(written):
    assert vary_policy(PRIVATE, {"epsilon": written}).options_for(DiffGenOptions).epsilon == Fraction(written)
    assert Setting({"epsilon": written}).exposure == float(written)


def test_an_epsilon_of_more_digits_is_refused_and_not_rounded():
    with pytest.raises(PolicyError, match="a decimal number of at most 15 digits"):
        vary_policy(PRIVATE, {"epsilon": "0.30000000000000000001"})


def test_a_private_policy_becomes_one_of_groups_with_a_k():
    tds = vary_policy(PRIVATE, {"method": "tds", "k": "7"})
    assert tds.method == TdsOptions()
    assert tds.requirements == (KAnonymity(7),)
    assert Policy.from_dict(tds.as_dict()) == tds
    assert vary_policy(PRIVATE, {"method": "mondrian", "k": "7"}).method == MondrianOptions()


def test_words_that_a_method_does_not_know_do_not_multiply_settings():
    vary = parse_vary(["k=5,10", "method=tds,diffgen", "epsilon=0.1,1"])
    assert combinations(GROUPS, vary) == [
        {"k": "5", "method": "tds"},
        {"method": "diffgen", "epsilon": "0.1"},
        {"method": "diffgen", "epsilon": "1"},
        {"k": "10", "method": "tds"},
    ]
    assert combinations(PRIVATE, {"k": ("5",), "method": ("tds", "diffgen")}) == [
        {"k": "5", "method": "tds"},
        {"method": "diffgen", "epsilon": "0.5"},
    ]


@pytest.mark.parametrize(
    ("policy", "given", "sentence"),
    [
        (GROUPS, ["epsilon=1"], "add --vary method=diffgen"),
        (GROUPS, ["method=tds,diffgen"], "needs an epsilon; say --vary epsilon=0.1,0.5,1"),
        (PRIVATE, ["k=2,5"], "k is required of groups of rows"),
        (PRIVATE, ["method=tds,diffgen"], "The method tds needs a requirement; say --vary k=5,10"),
    ],
)
def test_words_that_fit_no_method_are_refused(policy, given, sentence):
    with pytest.raises(InputError, match=sentence):
        compare(people(), policy, parse_vary(given))


def test_what_is_not_declared_is_said_in_the_line_of_the_setting():
    plain = Policy.parse(
        """
attributes: {id: {role: drop}, age: {role: quasi-identifier, type: number}, town: {role: drop}, ill: {role: other},
             wage: {role: drop}}
require: [k-anonymity: 5]
workload: [classify: ill]
"""
    )
    with pytest.raises(PolicyError):
        vary_policy(plain, {"method": "diffgen", "epsilon": "1"})
    vary = parse_vary(["method=tds,diffgen", "epsilon=1"])
    found = compare(people(), plain, vary, folds=2, models=["decision-tree"])
    assert [setting.problem is None for setting in found.settings] == [True, False]
    assert "method=diffgen, epsilon=1 cannot be published: " in as_text(found)


# ---- what is found ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def found():
    vary = parse_vary(["method=tds,diffgen", "k=5", "epsilon=0.01,5"])
    return compare(people(), GROUPS, vary, folds=3, models=["decision-tree"])


def test_private_settings_have_an_epsilon_and_no_risk(found):
    tds, weak, strong = found.settings
    assert (tds.is_private, weak.is_private) == (False, True)
    assert tds.exposure == tds.largest_risk <= 0.2
    assert (weak.exposure, strong.exposure) == (0.01, 5.0)
    assert "largest_risk" not in weak.as_dict()
    assert found.varied == ("method", "k", "epsilon")
    lines = found.to_table().to_pylist()
    assert [(line["k"], line["epsilon"], line["largest_risk"] is None) for line in lines[::3]] == [
        ("5", None, False), (None, "0.01", True), (None, "5", True),
    ]  # fmt: skip
    assert len(json.loads(found.to_json())["settings"]) == 3


def test_more_epsilon_is_more_useful(found):
    _, weak, strong = (setting.score("ill", "decision-tree").mean for setting in found.settings)
    assert strong > 0.8
    assert strong > weak + 0.05


def test_private_settings_are_tested_against_each_other_and_against_other_methods(found):
    assert len([test for test in found.tests if test.metric == ACCURACY]) == 3


def test_the_text_speaks_of_epsilon_and_ends_with_the_budget(found):
    text = as_text(found)
    assert text.endswith(OUTSIDE_THE_BUDGET)
    assert "Of the private settings: take method=diffgen, epsilon=5 (" in text
    assert "Of the groups: take method=tds, k=5 (" in text


def test_each_kind_has_its_own_panel(found, tmp_path):
    texts = texts_of(found, tmp_path)
    assert {picture.RISK, picture.EPSILON, "0.01", "5", "k=5", "method=tds", "method=diffgen"} <= texts


# ---- advice ----------------------------------------------------------------------------------------------


def made(means, *, metric=ACCURACY):
    """A comparison of one model by epsilon, each fold a little up or down."""

    def score(mean, data):
        return make_score("ill", "tree", data, metric, (mean - 0.01, mean, mean + 0.01), (mean,) * 3)

    settings = tuple(
        Setting({"epsilon": epsilon}, scores=(score(mean, RELEASE),), measures={})
        for epsilon, mean in means.items()
    )
    return Comparison({}, {"folds": 3, "rows": 9, "learners": "", "seed": 0}, ("epsilon",), settings,
                      (score(0.95, RAW),), (score(0.5, NOTHING),), ())  # fmt: skip


def texts_of(found, folder):
    svg = next(path for path in picture.draw(found, folder) if path.suffix == ".svg")
    return {"".join(one.itertext()).strip() for one in ET.parse(svg).iter() if one.tag.endswith("text")}


def test_a_single_setting_of_a_kind_can_be_drawn(tmp_path):
    alone = made({"0.25": 0.9})
    assert "0.25" in texts_of(alone, tmp_path)
    risky = Setting({"k": "2"}, 0.5, 0.5, 3, alone.settings[0].scores, {})
    both = replace(alone, settings=(*alone.settings, risky))
    assert {"0.25", "1/2"} <= texts_of(both, tmp_path)


def test_less_epsilon_is_more_private():
    (_, line), *_ = advice.series(made({"0.5": 0.9, "10": 0.9, "2": 0.9}))
    assert [setting.choices["epsilon"] for setting in line] == ["10", "2", "0.5"]
    text = " ".join(guidance(made({"0.1": 0.7, "1": 0.9, "2": 0.9})))
    assert "Take epsilon=1 (90.0% ± 2.5)." in text
    assert "More privacy costs more than the error bars: 70.0% at epsilon=0.1." in text


def test_a_table_of_private_settings_has_no_column_of_risk(tmp_path):
    found = made({"0.1": 0.7, "1": 0.9})
    assert "risk" not in as_text(found).split("\n\n")[1]
    texts = texts_of(found, tmp_path)
    assert picture.EPSILON in texts
    assert picture.RISK not in texts


def test_epsilon_is_compared_with_epsilon_alone():
    private = made({"0.1": 0.7, "1": 0.9, "2": 0.85})
    risky = Setting({"k": "2"}, 0.5, 0.5, 3, (private.raw[0],), {})
    both = replace(private, settings=(*private.settings, risky))
    flags = [both.is_on_frontier(setting, "ill", "tree") for setting in both.settings]
    assert flags == [True, True, False, True]
