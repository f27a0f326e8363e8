"""The page of the risk of a table."""

from __future__ import annotations

import pyarrow as pa

import sfumato as sf
from sfumato.report.risk import draw_part, render_risk

NAME = "<b>job"


def found(**options):
    rows = pa.table({NAME: ["a", "a", "b"], "age": [1, 1, 1]})
    attributes = {name: {"role": "quasi-identifier"} for name in rows.column_names}
    return sf.risk(rows, {"attributes": attributes, "require": []}, **options)


def test_the_page_has_the_figures_and_escapes_names_of_columns():
    page = render_risk(found())
    assert "<title>Risk of re-identification: Largest risk, the prosecutor&#39;s: 1 in 1</title>" in page
    assert "The table has 3 rows in 2 groups by &lt;b&gt;job and age." in page
    assert NAME not in page
    assert "Which columns do it" not in page
    assert page.count("<tr>") == 1 + len(found().lines)


def test_columns_stand_by_their_part_with_a_bar_each():
    page = render_risk(found(suda=2))
    section = page.partition('id="columns"')[2]
    assert section.index("&lt;b&gt;job") < section.index(">age<")
    assert section.count("<svg") == 2
    assert "(definition: elliot)" in section


def test_what_does_not_converge_is_said_on_the_page():
    page = render_risk(found(sampling_fraction=0.5))
    assert "Largest risk, the journalist&#39;s" in page
    assert "did not converge" in page
    assert "1.03 to 6.4 times the truth" in page


def test_a_bar_is_as_long_as_the_part():
    assert '<rect width="150" height="12" class="bar">' in draw_part(0.5)
    assert 'aria-label="50.0%"' in draw_part(0.5)
    assert 'aria-label="no score"' in draw_part(None)
