"""The frontier: what is varied, what each setting risks and yields, and what is advised."""

from __future__ import annotations

import itertools
import json
import re
import struct
import sys
from dataclasses import replace
from fractions import Fraction
from xml.etree import ElementTree as ET

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import evaluate, methods
from sfumato.comparison import (
    Comparison,
    Setting,
    advice,
    as_text,
    compare,
    guidance,
    parse_vary,
    picture,
    settings,
)
from sfumato.comparison.settings import vary_policy
from sfumato.comparison.write import check_target, write_comparison
from sfumato.errors import InputError
from sfumato.evaluation.intervals import make_score
from sfumato.evaluation.metrics import ACCURACY, ERROR, OF_CLASSES, OF_NUMBERS
from sfumato.evaluation.result import NOTHING, OUTSIDE_THE_BUDGET, RAW, RELEASE
from sfumato.policy.document import Policy
from sfumato.policy.options.mondrian import MondrianOptions
from sfumato.policy.options.risk_utility import RiskUtilityOptions
from sfumato.policy.options.tds import TdsOptions
from sfumato.policy.requirements import EntropyDiversity, KAnonymity, RecursiveDiversity
from sfumato.randomness import seeded
from sfumato.table import opening

POLICY = Policy.parse(
    """
attributes:
  age:  {role: quasi-identifier, type: number}
  town: {role: quasi-identifier}
  wage: {role: other, type: number}
  ill:  {role: other}
  job:  {role: sensitive}
require:
  - k-anonymity: 5
workload: [classify: ill]
"""
)
DIVERSE = Policy.from_dict(
    {
        **POLICY.as_dict(),
        "require": [
            {"k-anonymity": 2},
            {"entropy-diversity": {"l": 2, "of": "job"}},
            {"recursive-diversity": {"c": 3, "l": 2, "of": "job"}},
        ],
    }
)


def people(n_rows=300):
    random = seeded(3)
    age = random.integers(20, 60, n_rows)
    is_ill = (age >= 40) ^ (random.random(n_rows) < 0.1)
    return pa.table(
        {
            "age": age,
            "town": np.array(["a", "b", "c"])[random.integers(0, 3, n_rows)],
            "wage": 100.0 * age,
            "ill": np.where(is_ill, "yes", "no"),
            "job": np.array(["x", "y", "z"])[random.integers(0, 3, n_rows)],
        }
    )


@pytest.fixture(scope="module")
def found():
    vary = parse_vary(["k=2,10,400", "method=mondrian,tds", "workload=on,off"])
    return compare(people(), POLICY, vary, folds=3, models=["decision-tree", "naive-bayes"])


# ---- what is varied --------------------------------------------------------------------------------------


def test_words_become_policies():
    assert vary_policy(POLICY, {"k": "7"}).requirements == (KAnonymity(7),)
    diverse = vary_policy(DIVERSE, {"k": "7", "l": "3"}).requirements
    assert diverse == (KAnonymity(7), EntropyDiversity(3.0, of="job"), RecursiveDiversity(c=3, l=3, of="job"))
    assert isinstance(vary_policy(POLICY, {"method": "tds"}).method, TdsOptions)
    assert vary_policy(POLICY, {"method": "mondrian", "workload": "on"}) == POLICY
    assert vary_policy(POLICY, {"workload": "off"}).workload == ()


def test_k_is_asked_for_even_where_the_policy_does_not():
    plain = Policy.from_dict({**POLICY.as_dict(), "require": []})
    assert vary_policy(plain, {"k": "3"}).requirements == (KAnonymity(3),)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ([], "Nothing is varied"),
        (["kk=2"], "Did you mean 'k'?"),
        (["k"], "--vary k needs values, such as k=2,5,10,50."),
        (["k=,"], "needs values"),
        (["k=2", "k=3"], "stands twice"),
        (["k=2.5"], "whole numbers"),
        (["k=0"], "at least 1"),
        (["k=ten"], "whole numbers"),
        (["l=half"], "--vary l needs numbers"),
        (["l=0.5"], "at least 1"),
        (["l=inf"], "--vary l needs numbers"),
        (["method=mondrain"], "Did you mean 'mondrian'?"),
        (["workload=yes"], "workload=on,off"),
        (["method=difgen"], "Did you mean 'diffgen'?"),
        (["criterion=7"], "--vary criterion takes names of criteria, such as criterion=loss,median."),
        (["epsilon=0"], "--vary epsilon needs numbers above 0, such as epsilon=0.1,0.5,1."),
        (["epsilon=-1"], "numbers above 0"),
        (["epsilon=inf"], "numbers above 0"),
        (["epsilon=little"], "numbers above 0"),
        (["specializations=4.5"], "needs whole numbers from 0 to 10000, such as specializations=4,8,12."),
        (["score=7"], "--vary score takes names of scores, such as score=max,gini."),
        (["utility-at-least=1.2"], "--vary utility-at-least needs numbers from 0 to 1, such as"),
        (["utility-at-least=1/0"], "needs numbers from 0 to 1"),
        (["risk-at-most=-1"], "--vary risk-at-most needs numbers from 0 to 1e+09"),
        (["lambda=much"], "--vary lambda needs numbers from 0 to 1e+12"),
        (["kappa=10"], "--vary kappa needs whole numbers from 0 to 9, such as kappa=1,2."),
    ],
)
def test_what_cannot_be_varied_is_said_in_a_sentence(given, sentence):
    with pytest.raises(InputError) as refused:
        parse_vary(given)
    assert sentence in str(refused.value)


def test_rows_that_are_generalized_for_themselves_are_compared_with_groups():
    vary = ["method=mondrian,risk-utility", "k=5,400", "utility-at-least=0.2,4/5", "risk-at-most=0.1"]
    chosen = settings.combinations(POLICY, parse_vary(vary[:3]))
    assert chosen == [
        {"method": "mondrian", "k": "5"},
        {"method": "mondrian", "k": "400"},
        {"method": "risk-utility", "utility-at-least": "0.2"},
        {"method": "risk-utility", "utility-at-least": "4/5"},
    ]
    found = compare(people(), POLICY, vary[:3], folds=2, models=["decision-tree"])
    groups, _, blurred, fine = found.settings
    assert fine.scores[0].mean > 0.5
    assert fine.mean_risk > blurred.mean_risk
    assert fine.losses["ncp"] < blurred.losses["ncp"]
    assert groups.largest_risk <= 1 / 5
    assert 0 < fine.largest_risk <= 1  # weights of columns do not count
    assert {
        word for word, _ in vary_policy(POLICY, chosen[3]).method.as_policy()["risk-utility"].items()
    } >= {"utility-at-least"}
    assert vary_policy(POLICY, chosen[3]).requirements == ()


def test_options_of_risk_utility_are_varied_and_its_side_table_is_kept():
    options = RiskUtilityOptions(side_table="v.csv", side_path="/somewhere/v.csv")
    policy = replace(POLICY, requirements=(), method=options)
    varied = vary_policy(policy, {"utility-at-least": "6/17"}).options_for(RiskUtilityOptions)
    assert (varied.utility_at_least, varied.side_path) == (Fraction(6, 17), "/somewhere/v.csv")
    limited = replace(policy, method=replace(options, objective="most-utility", risk_at_most=Fraction(1)))
    varied = vary_policy(limited, {"risk-at-most": "0.05"}).options_for(RiskUtilityOptions)
    assert varied.risk_at_most == Fraction(1, 20)
    priced = replace(options, objective="lagrangian", price=Fraction(1), floor=Fraction(1))
    varied = vary_policy(replace(policy, method=priced), {"lambda": "0.5", "kappa": "2"}).options_for(
        RiskUtilityOptions
    )
    assert (varied.price, varied.kappa) == (Fraction(1, 2), 2)
    assert settings.combinations(policy, {"method": ("risk-utility", "mondrian"), "k": ("5",)}) == [
        {"method": "risk-utility"},
        {"method": "mondrian", "k": "5"},
    ]


def test_an_option_that_does_not_fit_the_objective_is_a_setting_that_says_so():
    policy = replace(POLICY, requirements=(), method=RiskUtilityOptions())
    (setting,) = compare(people(), policy, ["lambda=2"], folds=2, models=["decision-tree"]).settings
    assert "the objective threshold has no price of risk" in setting.problem


@pytest.mark.parametrize(
    ("vary", "sentence"),
    [
        ({"k": ("2",)}, "k is required of groups of rows, and the method risk-utility makes none; vary utility-at-least"),
        ({"score": ("max",)}, "--vary score is an option that none of these methods has: risk-utility."),
        ({"method": ("risk-utility", "mondrian")}, "The method mondrian needs a requirement; say --vary k=5,10"),
    ],
)  # fmt: skip
def test_words_that_no_box_of_a_row_serves_are_refused(vary, sentence):
    policy = replace(POLICY, requirements=(), method=RiskUtilityOptions())
    with pytest.raises(InputError) as refused:
        settings.combinations(policy, vary)
    assert sentence in str(refused.value)


def test_l_needs_a_diversity_to_vary():
    with pytest.raises(InputError, match="requires no diversity whose l could vary"):
        compare(people(), POLICY, {"l": ("2",)})


# ---- what is found ---------------------------------------------------------------------------------------


def test_an_option_of_a_method_is_varied_by_its_name_in_the_policy(monkeypatch):
    """Here by one that Mondrian has had all along; other methods are tried as they are."""
    monkeypatch.setattr(settings, "OPTION_WORDS", ("fallback",))
    varied = vary_policy(POLICY, {"k": "7", "fallback": "none"})
    assert varied.method == replace(POLICY.options_for(MondrianOptions), fallback="none")
    assert varied.requirements == (KAnonymity(7),)
    assert replace(varied, method=POLICY.method, requirements=POLICY.requirements) == POLICY
    chosen = settings.combinations(POLICY, {"method": ("mondrian", "tds"), "fallback": ("none", "rothko-t")})
    assert chosen == [
        {"method": "mondrian", "fallback": "none"},
        {"method": "mondrian", "fallback": "rothko-t"},
        {"method": "tds"},
    ]
    with pytest.raises(InputError, match="--vary fallback is an option that none of these methods has: tds"):
        settings.combinations(POLICY, {"method": ("tds",), "fallback": ("none",)})


def test_criteria_are_compared_where_mondrian_has_them():
    """Until it has the option, comparing it is refused in a sentence; from then on both are measured."""
    vary, policy = ["criterion=loss,median"], replace(POLICY, workload=())
    if not settings.has_option("mondrian", "criterion"):
        with pytest.raises(InputError, match="--vary criterion is an option that none of these methods has"):
            compare(people(), policy, vary)
        return
    loss, median = compare(people(), policy, vary).settings
    assert (loss.problem, median.problem) == (None, None)
    assert loss.losses["ncp"] < median.losses["ncp"]


def test_a_criterion_that_nobody_knows_is_no_setting():
    if settings.has_option("mondrian", "criterion"):
        (setting,) = compare(people(), replace(POLICY, workload=()), ["criterion=whim"]).settings
        assert "criterion" in setting.problem
    else:
        with pytest.raises(InputError, match="--vary criterion"):
            compare(people(), POLICY, ["criterion=whim"])


def test_what_is_lost_stands_in_every_line(found):
    for setting in found.met:
        assert set(setting.losses) == {"ncp", "entropy loss", "query error"}
        assert all(0 <= value <= 1 for name, value in setting.losses.items() if name != "query error")
    lines = [line for line in found.to_table().to_pylist() if line["problem"] is None]
    assert all(line[name] is not None for line in lines for name in ("ncp", "entropy loss", "query error"))
    first = found.met[0]
    assert f"{first.losses['ncp']:.4f}" in as_text(found)
    assert any(name.startswith("ncp of ") for name in first.as_dict()["measures"])


def test_every_combination_is_tried_on_the_same_folds_as_evaluate(found):
    assert [setting.name for setting in found.settings][:3] == [
        "k=2, method=mondrian, workload=on",
        "k=2, method=mondrian, workload=off",
        "k=2, method=tds, workload=on",
    ]
    assert len(found.settings) == 12
    alone = evaluate(
        people(), vary_policy(POLICY, {"k": "10"}), folds=3, models=["decision-tree", "naive-bayes"]
    )
    same = next(s for s in found.settings if s.name == "k=10, method=mondrian, workload=on")
    assert same.scores == tuple(score for score in alone.scores if score.data == RELEASE)
    assert found.raw == tuple(score for score in alone.scores if score.data == RAW)
    assert found.nothing == tuple(score for score in alone.scores if score.data == NOTHING)


def test_risk_is_one_over_the_size_of_the_group_on_the_whole_table(found):
    setting = next(s for s in found.settings if s.name == "k=10, method=mondrian, workload=on")
    size = methods.partition(opening.open_table(people()), vary_policy(POLICY, {"k": "10"})).size
    of_row = np.repeat(1 / size, size)
    assert len(of_row) == 300
    assert setting.largest_risk == of_row.max() <= 0.1
    assert setting.mean_risk == pytest.approx(of_row.mean())
    assert setting.groups == len(size)


def test_a_combination_that_cannot_be_met_is_a_line_that_says_so(found):
    problems = {setting.name: setting.problem for setting in found.settings if setting.problem}
    assert len(problems) == 4 + 2  # k=400 in all, tds without a workload
    assert "has only 300 rows" in problems["k=400, method=mondrian, workload=on"]
    assert "needs a task to classify" in problems["k=2, method=tds, workload=off"]
    lines = found.to_table().to_pylist()
    assert sum(line["problem"] is not None for line in lines) == 6
    assert sum(line["mean"] is not None for line in lines) == 6 * 2 * 3  # models and metrics


def test_settings_that_differ_in_one_choice_are_tested_against_each_other(found):
    pairs = {(test.first, test.second) for test in found.tests}
    assert ("k=2, method=mondrian, workload=on", "k=10, method=mondrian, workload=on") in pairs
    assert ("k=2, method=mondrian, workload=on", "k=2, method=tds, workload=on") in pairs
    assert ("k=2, method=mondrian, workload=off", "k=2, method=tds, workload=on") not in pairs
    assert len(found.tests) == 2 * 7 * 3  # of six settings in two models by three metrics


def test_json_holds_everything_and_no_infinity(found):
    document = json.loads(found.to_json())
    assert len(document["settings"]) == 12
    assert document["protocol"]["folds"] == 3
    assert document["settings"][0]["scores"][0]["test"] == list(found.settings[0].scores[0].test)


def test_several_targets_and_measures_stand_beside_each_other():
    policy = Policy.from_dict({**POLICY.as_dict(), "workload": [{"classify": "ill"}, {"regress": "wage"}]})
    both = compare(people(), policy, {"k": ("2", "50")}, models=["decision-tree", "linear-regression"])
    assert {score.metric for score in both.settings[0].scores if score.is_leading} == {ACCURACY, ERROR}
    metrics = {(line["target"], line["metric"]) for line in both.to_table().to_pylist()}
    assert metrics == {("ill", each) for each in OF_CLASSES} | {("wage", each) for each in OF_NUMBERS}
    for line in both.to_table().to_pylist():
        assert (line["raw_mean"], line["nothing_mean"]) == (
            both.of_raw(line["target"], line["model"], line["metric"]).mean,
            both.of_nothing(line["target"], line["metric"]).mean,
        )
    assert "weighted mean squared error of wage" in both.settings[0].measures
    assert "wage: mean absolute error" in as_text(both)


# ---- what is advised -------------------------------------------------------------------------------------


def made(means, *, metric=ACCURACY, noise=0.01, nothing=0.5, word="k"):
    """A comparison of one model with these means, each fold a little up or down."""

    def score(mean, data):
        return make_score("ill", "tree", data, metric, (mean - noise, mean, mean + noise), (mean,) * 3)

    settings = [
        Setting({word: k}, 1 / float(k), 0.5 / float(k), 10, (score(mean, RELEASE),), {"ncp": 0.5})
        for k, mean in means.items()
    ]
    return Comparison({}, {}, (word,), tuple(settings), (score(0.95, RAW),), (score(nothing, NOTHING),), ())


def made_private(means):
    """A comparison of one model by epsilon."""
    grouped = made(means, word="epsilon")
    settings = tuple(Setting(s.choices, scores=s.scores, measures=s.measures) for s in grouped.settings)
    return replace(grouped, settings=settings)


def with_folds(found, k, folds):
    """The same comparison with other folds of one setting."""
    settings = [
        Setting(s.choices, s.largest_risk, s.mean_risk, s.groups,
                (make_score("ill", "tree", RELEASE, s.scores[0].metric, folds, folds),), s.measures)
        if s.choices["k"] == k else s
        for s in found.settings
    ]  # fmt: skip
    return Comparison({}, {}, found.varied, tuple(settings), found.raw, found.nothing, ())


def test_the_knee_is_where_more_privacy_costs_more_than_the_error_bars():
    same_noise = made({"2": 0.90, "5": 0.90, "10": 0.85, "50": 0.7})
    line = advice.series(same_noise)[0][1]
    assert advice.knee(line, "ill", "tree").choices == {"k": "5"}
    unsure = with_folds(same_noise, "10", (0.95, 0.70, 0.90))  # the difference may be noise
    assert advice.knee(advice.series(unsure)[0][1], "ill", "tree").choices == {"k": "10"}
    dip = made({"2": 0.90, "5": 0.85, "10": 0.90, "50": 0.7})  # what is lost at k=5 is back at k=10
    assert advice.knee(advice.series(dip)[0][1], "ill", "tree").choices == {"k": "10"}
    text = " ".join(guidance(same_noise))
    assert "Take k=5 (90.0% ± 2.5; largest risk 1 in 5, mean 1 in 10)." in text
    assert "More privacy costs more than the error bars: 70.0% at k=50." in text


def test_more_privacy_at_no_loss_of_the_mean_is_not_said_to_cost_something():
    unsure = with_folds(made({"5": 0.90, "10": 0.85, "50": 0.86}), "10", (0.95, 0.70, 0.90))
    text = " ".join(guidance(unsure))
    assert "Take k=10 (85.0%" in text
    assert (
        "More private still is k=50 (86.0% ± 2.5), but these folds show that it is less useful than k=5."
        in text
    )
    assert "More privacy costs" not in text


def test_the_knee_of_an_error_is_where_it_rises():
    line = advice.series(made({"2": 10.0, "5": 10.0, "10": 12.0}, metric=ERROR, nothing=20))[0][1]
    assert advice.knee(line, "ill", "tree").choices == {"k": "5"}


def test_settings_stand_in_the_order_of_their_numbers():
    (_, line), *_ = advice.series(made({"10": 0.9, "2": 0.9, "5": 0.9}))
    assert [setting.choices["k"] for setting in line] == ["2", "5", "10"]


def test_what_costs_nothing_is_advised_and_so_is_nothing_where_nothing_is_gained():
    assert "Take k=50 (90.0%" in " ".join(guidance(made({"2": 0.9, "50": 0.9})))
    useless = guidance(made({"2": 0.5, "50": 0.5}))
    assert (
        useless[-1]
        == "No setting is shown to beat publishing nothing: for this target none is worth its risk."
    )


def test_advice_names_the_most_useful_and_the_safest_that_is_worth_it():
    text = "\n".join(guidance(made({"2": 0.9, "10": 0.8, "50": 0.5})))
    assert (
        "Take k=2 (90.0% ± 2.5; largest risk 1 in 2, mean 1 in 4). It is the most useful of these settings."
        in text
    )
    assert "More privacy costs more than the error bars: 80.0% at k=10." in text


@pytest.mark.parametrize(
    "means", [{"2": 0.9, "10": 0.8}, {"2": 0.9, "10": 0.9}, {"2": 0.9, "5": 0.895, "10": 0.7}]
)
@pytest.mark.parametrize("make", [made, made_private])
def test_one_setting_is_advised_and_no_other(means, make):
    text = " ".join(guidance(make(means)))
    assert len(re.findall(r"\b[Tt]ake ", text)) == 1
    assert not re.search(r"For the (most|least|smallest)", text)


def test_a_best_mean_that_may_be_luck_does_not_hide_what_is_shown():
    lucky = with_folds(made({"2": 0.9, "5": 0.8}), "2", (1.0, 0.5, 1.0))
    text = " ".join(guidance(lucky))
    assert "no setting is shown" not in text
    assert "Take k=5 (80.0%" in text


def test_advice_of_what_cannot_be_met():
    none = compare(people(50), POLICY, {"k": ("400", "500")}, models=["decision-tree"])
    assert guidance(none) == ("None of these settings can be met; ask for less, or add rows.",)
    assert "k=400 cannot be published: 400-anonymity cannot be met" in as_text(none)


def test_private_methods_come_with_the_sentence_on_the_budget():
    plain = made({"2": 0.9})
    assert OUTSIDE_THE_BUDGET not in guidance(plain)
    assert guidance(made_private({"1": 0.9}))[-1] == OUTSIDE_THE_BUDGET


def test_dominated_settings_are_off_the_frontier():
    found = made({"2": 0.8, "5": 0.9, "10": 0.85})
    flags = [found.is_on_frontier(setting, "ill", "tree") for setting in found.settings]
    assert flags == [False, True, True]  # k=5 is safer than k=2 and more useful


# ---- pictures and files ----------------------------------------------------------------------------------


def test_files_are_written_and_replaced(found, tmp_path):
    folder = tmp_path / "new" / "folder"
    for _ in range(2):
        paths = write_comparison(found, folder)
    assert [path.name for path in paths] == ["frontier.csv", "frontier.json", "frontier.png", "frontier.svg"]
    assert sorted(path.name for path in folder.iterdir()) == sorted(path.name for path in paths)
    assert (
        paths[0]
        .read_text()
        .startswith("k,method,workload,largest_risk,mean_risk,groups,target,model,metric,mean")
    )
    png = paths[2].read_bytes()
    width, height = struct.unpack(">II", png[16:24])
    assert png.startswith(b"\x89PNG")
    assert width > height > 400


def test_the_picture_names_points_series_and_references(found, tmp_path):
    svg = next(path for path in picture.draw(found, tmp_path) if path.suffix == ".svg")
    texts = {
        "".join(element.itertext()).strip()
        for element in ET.parse(svg).iter()
        if element.tag.endswith("text")
    }
    assert {"k=2", "k=10", "raw", "nothing", "decision-tree", "naive-bayes", "1/10"} <= texts
    assert {"method=mondrian, workload=on", "method=tds, workload=on"} <= texts
    again = tmp_path / "again"
    again.mkdir()
    assert picture.draw(found, again)[1].read_bytes() == svg.read_bytes()


def overlapping(drawing):
    """Pairs of texts whose letters would lie on each other."""
    boxes = [(text.text, text.box) for text in drawing.texts if text.text]
    return [
        (one, other)
        for (one, a), (other, b) in itertools.combinations(boxes, 2)
        if a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
    ]


def test_the_risk_of_groups_that_count_people_is_that_of_people():
    """Pairs of rows are of one person, so a group of k people has twice as many rows, as the claims of a release say."""
    table = people(120)
    twice = pa.concat_tables([table, table]).append_column("who", pa.array([*range(120)] * 2, pa.int64()))
    document = {**POLICY.as_dict(), "unit": "who", "workload": []}
    document["attributes"] = {**document["attributes"], "who": {"role": "identifier"}}
    policy = Policy.from_dict(document)
    found = compare(twice, policy, {"k": [5]}, folds=2)
    risk = sf.publish(twice, policy, seed=1).certificate.claims.risk
    assert (found.settings[0].largest_risk, found.settings[0].mean_risk) == (risk.largest, risk.mean)
    assert 0.2 >= risk.largest > 0.1  # of rows it is at most 1/10
    assert "Groups count people, and their risk is that of people." in as_text(found)
    words = [text.text for text in picture.drawing_of(found).texts]
    assert picture.RISK_OF_PEOPLE in words
    assert picture.RISK not in words


def test_no_name_of_a_point_reaches_beyond_the_paper():
    drawing = picture.drawing_of(
        Comparison(
            {},
            {},
            ("utility-at-least",),
            tuple(
                Setting(
                    {"method": "risk-utility", "utility-at-least": share},
                    risk,
                    risk,
                    3,
                    measures={"ncp": ncp},
                )
                for share, risk, ncp in (("0.4", 0.02, 0.6), ("0.6", 0.9, 0.4), ("0.825", 1.0, 0.2))
            ),
        )
    )
    assert any(text.text == "utility-at-least=0.825" for text in drawing.texts)
    assert all(text.box[2] <= drawing.width for text in drawing.texts)


def test_no_label_of_the_picture_hides_another(found):
    assert overlapping(picture.drawing_of(found)) == []
    close = {str(k): 0.9 + k / 1e5 for k in (2, 3, 4, 5, 6, 7, 8, 100, 101, 102)}
    same = made(close, nothing=0.949)  # raw and nothing at nearly the same height
    assert overlapping(picture.drawing_of(same)) == []
    crowded = picture.drawing_of(made_private({"0.1": 0.8, "0.11": 0.8, "0.12": 0.81, "1": 0.9}))
    assert overlapping(crowded) == []
    assert (
        overlapping(picture.Drawing([picture.PlacedText(0, 0, "one"), picture.PlacedText(3, 2, "other")]))
        != []
    )


def test_without_matplotlib_there_is_an_svg_and_no_png(found, tmp_path, monkeypatch):
    picture.draw(found, tmp_path)
    monkeypatch.setattr(picture, "find_spec", lambda _name: None)
    assert [path.name for path in picture.draw(found, tmp_path)] == ["frontier.svg"]
    assert [path.name for path in tmp_path.iterdir()] == ["frontier.svg"]
    check_target(tmp_path)


def test_hostile_names_are_text_in_the_picture(found, tmp_path):
    (raw, *_), nothing = found.raw, found.of_nothing(found.raw[0].target)
    evil = "</text><script>"
    settings = tuple(replace(s, scores=(s.scores[0].model_copy(update={"target": evil}),)) for s in found.met)
    others = [score.model_copy(update={"target": evil}) for score in (raw, nothing)]
    drawn = replace(found, settings=settings, raw=(others[0],), nothing=(others[1],))
    assert "<script" not in picture.svg_of(picture.drawing_of(drawn))


def test_without_a_target_the_penalty_stands_for_utility(tmp_path):
    policy = Policy.from_dict({**DIVERSE.as_dict(), "workload": []})
    found = compare(people(), policy, parse_vary(["l=1,2,2.5"]))
    assert found.raw == ()
    text = as_text(found)
    assert "dearest step to more privacy is from l=1 to l=2" in text
    assert "l=2.5 cannot be published: recursive-diversity needs a whole number l." in text
    assert len(picture.draw(found, tmp_path)) == 2


def test_nothing_to_draw_is_no_picture(tmp_path):
    none = Comparison({}, {"folds": 3}, ("k",), (Setting({"k": "9"}, problem="It cannot be met."),))
    assert picture.draw(none, tmp_path) == ()


def test_the_picture_of_an_earlier_comparison_does_not_stay(found, tmp_path):
    write_comparison(found, tmp_path)
    write_comparison(Comparison({}, {}, ("k",), (Setting({"k": "9"}, problem="no"),)), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["frontier.csv", "frontier.json"]


def test_a_file_is_no_folder(tmp_path):
    path = tmp_path / "file"
    path.touch()
    with pytest.raises(InputError, match="is not a folder"):
        check_target(path)
    with pytest.raises(InputError, match="file is not a folder"):
        check_target(path / "below")


def test_progress_goes_up_to_its_end():
    told = []
    compare(people(60), POLICY, {"k": ("2", "400")}, folds=2, models=["decision-tree"],
            progress=lambda *step: told.append(step))  # fmt: skip
    done = [step for _, step, _ in told]
    assert done == sorted(done)
    assert told[-1][1] == told[-1][2]


def test_risk_in_words():
    assert [advice.format_risk(value) for value in (1.0, 0.5, 1 / 3.74, 1 / 1143)] == [
        "1 in 1", "1 in 2", "1 in 3.74", "1 in 1,143",
    ]  # fmt: skip


def test_the_package_shows_its_parts():
    assert {"compare", "guidance", "parse_vary"} <= set(sys.modules["sfumato.comparison"].__all__)
