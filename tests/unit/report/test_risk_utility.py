"""The report of a risk-utility release: what it shows is what was published and certified, and nothing else."""

from __future__ import annotations

import html
import re
from dataclasses import replace

import pyarrow as pa
import pytest
from tradeoff_releases import POLICY, people, release_of

from sfumato.policy.options.risk_utility import RiskUtilityOptions, Weights
from sfumato.report import render, risk_utility
from sfumato.report.risk_utility_pictures import (
    BarPart,
    Place,
    UtilityRange,
    part_bar,
    plane_of_risk_and_utility,
    shares_histogram,
)
from sfumato.verify.risk_utility.boxes import Boxes

PEOPLE = people()
ATTACK = "<script>alert('x')</script>"


@pytest.fixture(scope="module")
def release():
    return release_of(PEOPLE)


@pytest.fixture(scope="module")
def boxes(release):
    return Boxes.of(release.rows, release.policy, release.certificate.claims.utility.missing)


def words_of(text: str) -> str:
    return " ".join(html.unescape(re.sub(r"<style>.*?</style>|<[^>]+>", " ", text, flags=re.DOTALL)).split())


def with_figures(release, **changed):
    figures = {"tradeoff": release.certificate.figures["tradeoff"] | changed}
    return replace(release, certificate=replace(release.certificate, figures=figures))


def test_the_report_says_what_is_promised_and_what_is_not(release):
    words = words_of(render(release))
    figures = release.certificate.figures["tradeoff"]
    assert "Every row keeps 50 % of what it tells, at the least risk there is." in words
    assert "It is not k-anonymity." in words
    before, after = figures["raw risk"], figures["risk"]
    assert (
        f"The mean risk was {before['mean']:.3g} for the rows as they are, and is {after['mean']:.3g}"
        in words
    )
    assert f"the greatest was {before['greatest']:.3g}, and is {after['greatest']:.3g}" in words
    assert "the table itself, 40 rows" in words
    assert "Of every row it is proved that no box is better" in words
    assert "sfumato verify DIR --side-table TABLE" in words
    assert "There is no recoding in this folder" in words


def test_the_same_release_gives_the_same_report_and_it_needs_nothing_else(release):
    text = render(release)
    assert text == render(release)
    assert "http" not in text.replace("http-equiv", "")
    assert "<script" not in text


def test_rows_that_were_not_proved_are_told(release):
    words = words_of(render(with_figures(release, proved=30)))
    assert "at the least risk that was found" in words
    assert "Of 30 rows (75 %) it is proved" in words


def test_raw_and_suppressed_rows_are_told(release):
    text = render(with_figures(release, raw=30))
    assert '<p class="warning"><strong>30 rows (75 %) are published as they are</strong>' in text
    claims = replace(release.certificate.claims, suppressed=4)
    suppressed = replace(release, certificate=replace(release.certificate, claims=claims))
    assert "4 rows (10 %) are suppressed" in words_of(render(suppressed))


def test_the_levels_of_each_column_are_those_of_the_published_cells(release, boxes):
    found = {column.name: column for column in risk_utility.columns_of(boxes)}
    cells = release.rows.column("job").to_pylist()
    tones = {tone.name: tone.n for tone in found["job"].tones}
    assert tones["not told"] == cells.count("*")
    assert tones["1 step up"] == cells.count("Office")
    assert tones["as it is"] == sum(cell in ("clerk", "boss", "farmer") for cell in cells)
    for column in found.values():
        assert sum(tone.n for tone in column.tones) == 40
    missing = {tone.name: tone.n for tone in found["age"].tones}["missing"]
    assert missing == release.rows.column("age").null_count


def test_boxes_that_several_rows_share_are_counted(release, boxes):
    names = ["age", "zip", "job", "admitted"]
    sizes = release.rows.group_by(names).aggregate([([], "count_all")]).column("count_all").to_pylist()
    found = {alike.label: alike.n for alike in risk_utility.alike_of(boxes)}
    assert found["1"] == sizes.count(1)
    assert found["2 to 4"] == sum(size for size in sizes if 2 <= size <= 4)
    assert sum(found.values()) == 40


def test_risks_above_1_are_never_told_without_a_word_on_weights(release):
    assert release.certificate.figures["tradeoff"]["raw risk"]["greatest"] > 1
    assert words_of(render(release)).count("Risks are weighted") == 2
    low = with_figures(
        release, **{"raw risk": {"mean": 0.5, "greatest": 1}, "risk": {"mean": 0.1, "greatest": 1}}
    )
    assert "Risks are weighted" not in words_of(render(low))


def test_a_limit_of_risk_is_the_first_thing_that_is_said():
    options = "{objective: most-utility, risk-at-most: 0.5}"
    release = release_of(PEOPLE, POLICY.replace("{utility-at-least: 0.5}", options))
    words = words_of(release.report)
    assert "Every row has a risk of at most 0.5, and tells as much as that allows." in words
    assert "each row tells as much as its limit of risk allows" in words
    assert "no published row has more risk than 0.5" in words
    assert "the box of most utility among those with a risk of at most 0.5" in words


def test_the_histogram_of_risk_has_each_row_before_and_after(release):
    bins = release.certificate.figures["tradeoff"]["histogram"]
    assert sum(each["raw"] for each in bins) == sum(each["published"] for each in bins) == 40
    text = render(release)
    for each in bins:
        for word, n in (("as they are", each["raw"]), ("published", each["published"])):
            assert (f"up to {each['at most']:g}, {word}: {n:,} rows" in text) == (n > 0)
    older = dict(release.certificate.figures["tradeoff"])
    del older["histogram"]
    certificate = replace(release.certificate, figures={"tradeoff": older})
    assert "svg.risks" in text
    assert 'class="risks" role' not in render(replace(release, certificate=certificate))


def test_without_a_threshold_nothing_is_promised():
    for options in (
        "{objective: log-risk, lambda: 1, floor: 0.5}",
        "{objective: lagrangian, lambda: 2, weights: model-2}",
    ):
        release = release_of(PEOPLE, POLICY.replace("{utility-at-least: 0.5}", options))
        words = words_of(release.report)
        assert "Nothing is promised: risk and utility were weighed against each other" in words
        assert "No utility is promised." in words


def test_utility_that_the_folder_does_not_tell_has_no_picture():
    release = release_of(PEOPLE, POLICY.replace("0.5}", "0.5, utility: log}"))
    assert (
        "There is no picture: how much a value of zip tells depends on how many values there are"
        in words_of(release.report)
    )


def test_an_outside_side_table_is_named_with_the_rows_that_it_lacks():
    policy = POLICY.replace("0.5}", "0.5, side-table: voters.csv}")
    release = release_of(PEOPLE, policy, people(30, seed=3))
    words = words_of(release.report)
    assert "voters.csv , 30 rows" in words
    lacking = release.certificate.figures["tradeoff"]["lacking"]
    assert f"It lacks {lacking} rows of the release" in words


@pytest.mark.parametrize(("role", "can_be_recounted"), [("drop", False), ("other", True)])
def test_risks_by_personal_weights_can_be_counted_again_where_the_weights_are_published(
    role, can_be_recounted
):
    policy = POLICY.replace("0.5}", "0.5, weights: {column: worry}}").replace(
        "disease:", f"worry: {{role: {role}, type: number}}\n  disease:"
    )
    words = words_of(release_of(PEOPLE.append_column("worry", [[2.0] * 40]), policy).report)
    assert ("anybody can count it again" in words) == can_be_recounted
    assert ("the weights of each row are not published" in words) == (not can_be_recounted)
    assert "weights: {model: model-1, column: worry}" in words


def test_hostile_labels_and_names_are_escaped():
    policy = f"""
attributes:
  {ATTACK!r}: {{role: quasi-identifier}}
  y: {{role: quasi-identifier, values: [a, b]}}
  z: {{role: sensitive}}
method: {{risk-utility: {{utility-at-least: 0.9}}}}
""".replace(repr(ATTACK), '"' + ATTACK + '"')
    table = pa.table({ATTACK: [ATTACK, "b"] * 4, "y": ["a", "b", "b", "a"] * 2, "z": [ATTACK] * 8})
    text = release_of(table, policy).report
    assert ATTACK not in text
    assert html.escape(ATTACK, quote=False).split("'")[0] in text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (RiskUtilityOptions(weights=Weights("model-2")), "every value weighs 1/2, also a root"),
        (RiskUtilityOptions(weights=Weights("harmonic", {"a": 2.0}, "c")), "each row has weights of its own"),
        (RiskUtilityOptions(weights=Weights("harmonic", {"a": 2.0})), "other weights for a"),
        (RiskUtilityOptions(utility={"a": (0.0, 1.0)}), "a number that the owner gave for its depth (in a)"),
        (RiskUtilityOptions(utility="inverse"), "one over the number of values"),
        (RiskUtilityOptions(), "at least 60 % of the way"),
    ],
)
def test_options_are_told_in_words(options, words):
    found = risk_utility.OptionsInWords.of(options, ("a", "b"))
    assert words in f"{found.utility} {found.weight} {found.objective}"


def test_a_risk_of_nothing_has_a_place_on_the_logarithmic_scale():
    picture = plane_of_risk_and_utility(
        [Place("as they are", "raw", 1.0, 4.0, 4.0), Place("published", "release", 0.0, 0.0, 0.0)], 0.5
    )
    assert "nan" not in picture
    assert "inf" not in picture
    assert picture.count('class="glyph"') == 2


def test_no_risk_at_all_can_be_drawn():
    assert "<svg" in plane_of_risk_and_utility([Place("published", "release", 0.3, 0.0, 0.0, 0.1)], None)


def test_a_histogram_has_a_bar_for_each_share_and_the_threshold():
    picture = shares_histogram([UtilityRange(0.0, 0.5, 0), UtilityRange(0.5, 1.0, 7)], 0.25)
    assert picture.count('class="bar"') == 2
    assert "at least 25 % is asked for" in picture


def test_a_bar_has_a_part_for_each_kind_that_occurs():
    picture = part_bar([BarPart("a", "exact", 3), BarPart("b", "narrowed", 0), BarPart("c", "whole", 1, 0.5)])
    assert picture.count("<rect") == 3  # with the frame
    assert 'fill-opacity="0.5"' in picture
    assert 'aria-label="a 75 %, c 25 %"' in picture
