"""Answers in words: what is exact, what may be, and what was left out."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.release.query.explained import ask
from sfumato.release.release import Release

POLICY = """
attributes:
  age: {role: quasi-identifier, type: number}
  born: {role: quasi-identifier, type: date}
  hours: {role: other, type: number}
require: [k-anonymity: 2]
suppress: {at-most: 50%}
output: {numbers: boxes}
method: {mondrian: {criterion: median}}
"""


@pytest.fixture(scope="module")
def release() -> Release:
    """Four people: two aged 20 to 30, two published as 31 to 70."""
    table = pa.table(
        {
            "age": [20, 30, 60, 70],
            "born": pa.array([0, 1, 2, 3], pa.int32()).cast(pa.date32()),
            "hours": [40, 20, 10, 0],
        }
    )
    return sf.publish(table, sf.Policy.parse(POLICY))


def lacking(release: Release, n_rows: int) -> Release:
    """The release as if so many rows had been left out."""
    claims = replace(release.certificate.claims, suppressed=n_rows)
    return replace(release, certificate=replace(release.certificate, claims=claims))


def test_an_exact_answer_says_so(release):
    told = ask(release, "AVG(hours)  WHERE age >= 31")
    assert told.lines() == [
        "AVG(hours) WHERE age >= 31",
        "  value  5",
        "  least  5",
        "  most   5",
        "  how    exact: 2 rows match, and no other can",
    ]


def test_an_estimate_says_how_many_rows_are_certain_and_how_many_may_count(release):
    told = ask(release, "COUNT(*) where age >= 65")
    assert (told.answer.low, told.answer.high) == (0, 2)
    assert told.how == "an estimate: no row matches for certain, 2 more may and count in part"
    told = ask(release, "SUM(hours) where age >= 25")
    assert told.how == "an estimate: 2 rows match for certain, 2 more may and count in part"


def test_the_mean_of_rows_that_may_not_be_there_is_for_the_case_that_one_is(release):
    told = ask(release, "AVG(hours) where age >= 65")
    assert told.how.endswith("; least and most are for the case that one does")


def test_values_that_are_ranges_are_no_exact_answer(release):
    told = ask(release, "AVG(age)")
    assert told.how == "an estimate: 4 rows match for certain, but their values are known as ranges only"


def test_nobody_matches(release):
    told = ask(release, "MIN(hours) where age > 500")
    assert told.how == "no published row can match"
    assert "  value  none" in told.lines()


def test_rows_that_were_left_out_are_added_to_the_most_of_a_count_alone(release):
    some = lacking(release, 3)
    told = ask(some, "COUNT(*) where age >= 31")
    assert told.answer == some.query("COUNT(*)", "age >= 31") == (2, 2, 5)
    assert told.lines()[-2:] == [
        "  how    exact: 2 rows match, and no other can",
        "  note   3 rows of the table were left out of the release; they are counted in most",
    ]
    told = ask(some, "COUNT(*) where age >= 65")
    assert (told.answer.high, told.rows.high) == (5, 2)
    assert told.how == "an estimate: no row matches for certain, 2 more may and count in part"
    told = ask(lacking(release, 1), "AVG(hours)")
    assert told.answer == release.query("AVG(hours)")
    assert (
        told.lines()[-1]
        == "  note   1 row of the table was left out of the release; it is not in these figures"
    )


def test_the_document_and_the_table_of_an_answer_say_the_same(release):
    told = ask(release, "MAX(born)")
    document = json.loads(told.to_json())
    assert document["value"] == "1970-01-04" or document["most"] == "1970-01-04"
    assert document["rows"] == {"value": 4, "least": 4, "most": 4}
    (row,) = told.as_table().to_pylist()
    assert (row["value"], row["least"], row["most"]) == tuple(
        document[key] for key in ("value", "least", "most")
    )
    assert (row["rows-least"], row["how"]) == (4, document["how"])


def test_the_bounds_of_a_sum_hold_whether_any_row_matches_or_not(release):
    told = ask(release, "SUM(hours) where age >= 65")
    assert (told.answer.low, told.rows.low) == (0, 0)
    assert "for the case" not in told.how
    assert ask(release, "AVG(hours) where age >= 65").how.endswith(
        "least and most are for the case that one does"
    )


def test_shifted_dates_are_told_as_such():
    policy = """
attributes:
  who: {role: identifier}
  age: {role: quasi-identifier, type: number}
  seen: {role: other, type: date, shift: {within: 30, per: who}, passes: unique}
require: [k-anonymity: 2]
"""
    table = pa.table(
        {
            "who": ["a", "b", "c", "d"],
            "age": [20, 20, 60, 60],
            "seen": pa.array([100, 101, 102, 103], pa.int32()).cast(pa.date32()),
        }
    )
    told = ask(sf.publish(table, sf.Policy.parse(policy)), "MIN(seen)")
    assert "  note   the dates of 'seen' are shifted by a secret number of days, at most 30" in told.lines()
    assert not any(
        "note" in line for line in ask(sf.publish(table, sf.Policy.parse(policy)), "COUNT(*)").lines()
    )
