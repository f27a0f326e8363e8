"""The report of a differentially private release: what it shows is what was published, and nothing else."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from private_people import people, the_policy

import sfumato as sf
from sfumato.errors import InputError
from sfumato.policy.document import Policy
from sfumato.recoding.counts import GridLines
from sfumato.release.release import Release
from sfumato.report import diffgen, render

PEOPLE = people()
ATTACK = "<script>alert('x')</script>"


@pytest.fixture(scope="module")
def release() -> Release:
    return sf.publish(PEOPLE, the_policy(variant="paper", epsilon=0.5, specializations=5), seed=2)


def words_of(text: str) -> str:
    return " ".join(html.unescape(re.sub(r"<style>.*?</style>|<[^>]+>", " ", text, flags=re.DOTALL)).split())


def secret(release: Release) -> Release:
    """The release as if it had been drawn without a seed."""
    assert release.certificate.privacy is not None
    privacy = replace(release.certificate.privacy, randomness="secret (OpenDP 0.16.0)")
    return replace(release, certificate=replace(release.certificate, privacy=privacy))


def test_the_promise_is_said_in_plain_words(release):
    words = words_of(render(secret(release)))
    assert "Differentially private, epsilon 0.5." in words
    assert "no chance changes by more than a factor of 1.65" in words
    assert "at most 62 % sure" in words
    assert "any two that differ by one row added or removed" in words
    assert "one person = one row" in words
    assert "Nothing is promised" not in words
    assert "age: numbers from 18 to 65 in steps of 1" in words


def test_a_seeded_release_has_a_warning(release):
    text = render(release)
    assert '<div class="verdict bad">' in text
    assert "Nothing is promised. The noise of this release is seeded, not private." in words_of(text)
    assert '<p class="warning">' not in render(secret(release))


def test_the_ledger_is_shown_line_by_line_and_adds_up(release):
    privacy = release.certificate.privacy
    draws = diffgen.draws_of(privacy)
    assert sum(draw.n for draw in draws) == len(privacy.ledger)
    assert sum(draw.n * draw.share for draw in draws) == privacy.spent
    parts = diffgen.parts_of(privacy)
    assert sum(part.share for part in parts) == privacy.epsilon
    assert sum(part.part for part in parts) == pytest.approx(1)
    words = words_of(render(release))
    spent, unspent = diffgen.round_for_people(privacy.spent), diffgen.round_for_people(privacy.unspent)
    assert f"{spent} was spent, and {unspent} is left and will not be used" in words
    assert words.count(" discrete Laplace ") >= 1
    for name in ("age", "rate", "born"):
        assert f"split point {name} exponential" in words
    picture = diffgen.budget_bar(privacy)
    assert picture.count("<rect") == len(privacy.ledger) + 2  # what is unspent, and the frame


def test_a_noisy_number_of_rows_is_told_as_it_was_drawn():
    release = sf.publish(PEOPLE, the_policy(), seed=2)
    (result,) = (draw["result"] for draw in release.certificate.privacy.ledger if draw["draw"] == "rows")
    words = words_of(release.report)
    assert f"rows about {result:,} discrete Laplace 1 0.01 100 1.0 %" in words
    assert "number of rows 0.01 (1 %)" in words


def test_a_long_ledger_is_cut_short():
    line = {"draw": "specialization", "mechanism": "exponential", "share": "1/200", "scale": "400"}
    other = line | {"draw": "split point", "of": "age"}
    release = sf.publish(PEOPLE, the_policy(), seed=2)
    assert release.certificate.privacy is not None
    privacy = replace(release.certificate.privacy, ledger=(line, other) * 50)
    certificate = replace(release.certificate, privacy=privacy)
    assert "60 more" in words_of(render(replace(release, certificate=certificate)))


def test_the_counts_of_pieces_are_sums_of_the_published_counts(release):
    lines = GridLines.of(release.recoding, release.policy)
    counts = lines.counts(release.rows)
    frame = release.rows.to_pandas()
    for attribute in diffgen.attributes_of(lines, release.recoding, counts)[:-1]:
        sums = frame.groupby([attribute.name, "income"], observed=True)["count"].sum()
        for piece in attribute.pieces:
            assert piece.counts == (sums[piece.label, "low"], sums[piece.label, "high"])
    words = words_of(release.report)
    assert f"sum of the noisy counts {frame['count'].sum():,}" in words


def test_the_largest_cells_come_first(release):
    lines = GridLines.of(release.recoding, release.policy)
    counts = lines.counts(release.rows)
    cells = diffgen.cells_of(lines, counts, diffgen.attributes_of(lines, release.recoding, counts)[:-1])
    totals = [sum(line[1]) for line in cells.lines]
    assert totals == sorted(totals, reverse=True)
    assert totals[0] == counts.sum(axis=1).max()
    frame = release.rows.to_pandas()
    labels = dict(zip(cells.names, cells.lines[0][0], strict=True))
    of_cell = frame[(frame[list(labels)] == labels).all(axis=1)]
    assert of_cell["count"].sum() == totals[0]


@pytest.mark.parametrize("values", ["labels", "bounds", "both"])
def test_expanded_rows_give_the_same_figures_as_counts(values):
    one, other = (
        sf.publish(PEOPLE, the_policy({"values": values, "rows": rows}), seed=2)
        for rows in ("counts", "expanded")
    )
    counts = [GridLines.of(made.recoding, made.policy).counts(made.rows) for made in (one, other)]
    assert np.array_equal(*counts)
    assert 'sample_weight=rows["count"]' in html.unescape(one.report)
    assert "sample_weight" not in other.report


def test_rows_that_are_not_of_the_grid_are_refused(release):
    lines = GridLines.of(release.recoding, release.policy)
    with pytest.raises(InputError, match="verify the release"):
        lines.counts(release.rows.slice(1))
    expanded = sf.publish(PEOPLE, the_policy({"rows": "expanded"}), seed=2)
    strange = expanded.rows.set_column(1, "income", pa.array(["middling"] * len(expanded.rows)))
    with pytest.raises(InputError, match="verify the release"):
        GridLines.of(expanded.recoding, expanded.policy).counts(strange)


@pytest.mark.parametrize("file_format", ["csv", "parquet"])
@pytest.mark.parametrize("rows", ["counts", "expanded"])
def test_a_release_that_is_read_again_gives_the_same_report(rows, file_format, tmp_path):
    made = sf.publish(PEOPLE, the_policy({"rows": rows}), seed=2, file_format=file_format)
    made.write(tmp_path / "out")
    read = Release.read(tmp_path / "out")
    assert render(read).replace("release.csv", "") == made.report.replace("release.csv", "")


def test_hostile_names_and_labels_are_text():
    attributes = {
        ATTACK: {"role": "quasi-identifier", "values": [ATTACK + "1", ATTACK + "2"]},
        "class": {"role": "other", "values": [ATTACK + "a", ATTACK + "b"]},
    }
    policy = Policy.from_dict(
        {"attributes": attributes, "workload": [{"classify": "class"}],
         "method": {"diffgen": {"epsilon": 1, "cuts": {ATTACK: "leaves"}}}}
    )  # fmt: skip
    rows = pa.table({ATTACK: [ATTACK + "1"] * 9, "class": [ATTACK + "a"] * 9})
    report = sf.publish(rows, policy, seed=1).report
    assert "<script" not in report
    assert ATTACK in html.unescape(report)


def test_many_classes_are_shown_together():
    classes = [f"class {i}" for i in range(9)]
    attributes = {
        "sex": {"role": "quasi-identifier", "values": ["Male", "Female"]},
        "kind": {"role": "other", "values": classes},
    }
    policy = Policy.from_dict(
        {"attributes": attributes, "workload": [{"classify": "kind"}], "method": {"diffgen": {"epsilon": 1}}}
    )
    rows = pa.table({"sex": ["Male", "Female"] * 90, "kind": classes * 20})
    words = words_of(sf.publish(rows, policy, seed=1).report)
    assert "class 4 4 other classes" in words


@pytest.mark.parametrize("scale", ["1/2", "1", "2", "20", "1000"])
def test_the_noise_that_is_told_is_that_of_the_law(scale):
    ledger = ({"draw": "counts", "mechanism": "discrete Laplace", "share": "1", "scale": scale},)
    noise = diffgen.Noise.of(replace(sf_privacy(), ledger=ledger))
    number = float(Fraction(scale))
    z = np.arange(-int(60 * number) - 60, int(60 * number) + 61)
    law = np.exp(-np.abs(z) / number)
    law /= law.sum()
    assert noise.deviation == pytest.approx(np.sqrt((law * z**2).sum()), rel=1e-6)
    assert law[np.abs(z) <= noise.within].sum() >= 0.95
    assert noise.within == 0 or law[np.abs(z) <= noise.within - 1].sum() < 0.95


def sf_privacy():
    return sf.publish(
        PEOPLE, the_policy(columns=("sex",), cuts={"sex": "leaves"}), seed=1
    ).certificate.privacy


def test_no_long_fraction_stands_in_the_ledger():
    words = words_of(sf.publish(PEOPLE, the_policy(), seed=2).report).split("The certificate")[0]
    assert not re.search(r"\d/\d", words)
    assert "about " in words
