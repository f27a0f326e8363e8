"""The page for the owner: what it says, which rows were left out, and tables that do not fit."""

from __future__ import annotations

import html
import re
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from commandline import POLICY, people
from private_people import people as private_people
from private_people import the_policy

import sfumato as sf
from sfumato.errors import InputError
from sfumato.policy.document import Policy
from sfumato.policy.suppress import Suppress
from sfumato.release.release import Release
from sfumato.report.owner import render_owner
from sfumato.report.owner.matched import group_published
from sfumato.table.opening import open_table

PEOPLE = people(300)
DIVERSE = POLICY + "  - distinct-diversity: {l: 5, of: disease}\n"
ATTACK = "<script>alert('x')</script>"


def words_of(text: str) -> str:
    return " ".join(html.unescape(re.sub(r"<style>.*?</style>|<[^>]+>", " ", text, flags=re.DOTALL)).split())


@pytest.fixture(scope="module")
def release() -> Release:
    return sf.publish(PEOPLE, Policy.parse(DIVERSE), seed=1)


def without(release: Release, n_rows: int) -> Release:
    """The release as if its last rows had been left out."""
    rows = release.rows.slice(0, len(release.rows) - n_rows)
    claims = replace(release.certificate.claims, rows=len(rows), suppressed=n_rows)
    policy = replace(release.policy, suppress=Suppress.of({"at-most": 0.5}))
    certificate = replace(release.certificate, claims=claims)
    return replace(release, rows=rows, policy=policy, certificate=certificate)


def test_the_page_says_in_its_first_words_that_it_is_for_the_owner_alone(release):
    page = render_owner(release, open_table(PEOPLE))
    words = words_of(page)
    assert '<div class="verdict bad">\n<strong>For the owner alone. Do not publish this page.' in page
    assert "It holds facts of the raw table" in words
    assert page.count("<h1>Owner") == 1


def test_what_was_lost_adds_up_to_what_the_certificate_states(release):
    words = words_of(render_owner(release, open_table(PEOPLE)))
    stated = release.certificate.figures["loss"]
    assert f"left open, on average {100 * stated['ncp']:.1f} %" in words
    for name, ncp in stated["columns"].items():
        if ncp:
            assert f"{name} {100 * ncp:.1f} %" in words
    assert "because other columns left too few rows alike" in words
    assert "because distinct 5-diversity of 'disease' refuses" in words


def test_where_groups_count_people_values_of_few_people_are_too_rare():
    table = PEOPLE.append_column("who", pa.array([f"p{i // 2}" for i in range(300)]))
    asked = DIVERSE.replace("attributes:\n", "attributes:\n  who: {role: identifier}\n", 1)
    pages = (
        words_of(render_owner(sf.publish(table, Policy.parse(f"{asked}\nunit: {unit}\n")), open_table(table)))
        for unit in ("row", "who")
    )
    assert [re.findall(r"too rare if fewer than (\d+ \w+)", page) for page in pages] == [
        ["5 rows"],
        ["5 people"],
    ]


def test_a_release_that_is_read_again_has_the_same_page(release, tmp_path):
    for file_format in ("csv", "parquet"):
        made = replace(release, format=file_format)
        made.write(tmp_path / file_format)
        read = Release.read(tmp_path / file_format)
        assert render_owner(read, open_table(PEOPLE)) == render_owner(release, open_table(PEOPLE))
        lazy = Release.read(tmp_path / file_format, is_lazy=True)
        assert render_owner(lazy, open_table(PEOPLE)) == render_owner(release, open_table(PEOPLE))


def test_rows_that_are_not_published_are_found_and_count_as_lost(release):
    some = without(release, 7)
    kept = group_published(some, open_table(PEOPLE)).rows
    assert len(kept) == len({*kept.tolist()}) == len(PEOPLE) - 7
    recoded = release.recoding.apply(PEOPLE)
    names = ["age", "sex", "zip"]
    left = recoded.take(pa.array(kept)).select(names).to_pylist()
    assert sorted(map(str, left)) == sorted(map(str, some.rows.select(names).to_pylist()))
    words = words_of(render_owner(some, open_table(PEOPLE)))
    assert "rows left out 7" in words
    assert "7 rows of 300 (2.3 %) were left out, so that the others stay finer." in words
    assert f"{100 * 7 / 300:.1f} % in rows that were left out" in words


def test_a_private_release_has_no_reasons_and_a_word_more_of_warning():
    release = sf.publish(private_people(), the_policy(), seed=1)
    words = words_of(render_owner(release, open_table(private_people())))
    assert "whoever sees both has no differential privacy left" in words
    assert "What was lost, and why" not in words
    assert "Before and after" in words


def test_hostile_names_and_cells_are_text():
    table = pa.table({ATTACK: [ATTACK] * 3 + ["b"] * 3})
    policy = Policy.from_dict(
        {"attributes": {ATTACK: {"role": "quasi-identifier"}}, "require": [{"k-anonymity": 2}]}
    )
    page = render_owner(sf.publish(table, policy), open_table(table))
    assert "<script" not in page
    assert html.escape(ATTACK, quote=False)[:8] in page


# ---- tables that do not fit --------------------------------------------------------------------------------


def test_a_table_that_is_not_that_of_the_release_is_refused(release):
    other = PEOPLE.set_column(2, "sex", pa.array(np.roll(np.array(PEOPLE["sex"].to_pylist()), 1)))
    for table, sentence in (
        (PEOPLE.slice(1), "The table has 299 rows, and the release was made from 300"),
        (PEOPLE.drop_columns(["zip"]), "The table has no column 'zip', which the release publishes"),
        (
            PEOPLE.rename_columns(["id", "age", "sex", "zipp", "disease", "charge", "note"]),
            "Did you mean 'zipp'",
        ),
        (other, "Recoded, the rows of the table are not those of the release"),
    ):
        with pytest.raises(InputError, match=sentence):
            render_owner(release, open_table(table))


def test_a_release_without_its_recoding_cannot_be_laid_beside_its_table(release):
    with pytest.raises(InputError, match="The release has no recoding, so what became of the rows"):
        render_owner(replace(release, recoding=None), open_table(PEOPLE))
