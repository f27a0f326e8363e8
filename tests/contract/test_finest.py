"""``finest`` in whole releases: no label is finer, labels cover their rows, by every method; tampering is found.

Labels are read here by code that shares nothing with the program.
"""

from __future__ import annotations

import datetime as dt
import json
import random
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.errors import InputError
from sfumato.publishing import Request, publish_to
from sfumato.verify.folder import verify_folder
from sfumato.verify.table import verify_table

FIRST = dt.date(2020, 1, 1)
REGION = {"DE": "Western Europe", "FR": "Western Europe", "KE": "Eastern Africa", "US": "Northern America"}


def stays(n: int = 300, seed: int = 1) -> pa.Table:
    drawn = random.Random(seed)
    return pa.table(
        {
            "age": [
                drawn.choice([None, *range(111)]) if drawn.random() < 0.05 else drawn.randrange(111)
                for _ in range(n)
            ],
            "weight": [None if drawn.random() < 0.1 else round(drawn.uniform(0, 50), 1) for _ in range(n)],
            "zip": [drawn.choice(["53715", "53703", "53201", "02139", "02142", "94110"]) for _ in range(n)],
            "day": [FIRST + dt.timedelta(days=drawn.randrange(700)) for _ in range(n)],
            "seen": [FIRST + dt.timedelta(days=drawn.randrange(400)) for _ in range(n)],
            "country": [drawn.choice(list(REGION)) for _ in range(n)],
            "dose": [drawn.randrange(60) for _ in range(n)],
            "ill": [drawn.choice("ab") for _ in range(n)],
            "row": list(range(n)),
        }
    )


TABLE = stays()
ROWS = TABLE.to_pylist()
COLUMNS = """
attributes:
  age:     {role: quasi-identifier, type: number, bounds: [0, 110], step: 1, finest: 5}
  weight:  {role: quasi-identifier, type: number, finest: 2.5}
  zip:     {role: quasi-identifier, hierarchy: {mask: 5}, finest: 2}
  day:     {role: quasi-identifier, type: date, finest: month}
  seen:    {role: quasi-identifier, type: date, hierarchy: {dates: [day, month, year]}, finest: year}
  country: {role: quasi-identifier, hierarchy: {library: countries}, finest: sub-region}
  dose:    {role: quasi-identifier, type: number, bounds: [0, 60], hierarchy: {intervals: [5, 10, 30]}, finest: 10}
  ill:     {role: sensitive}
  row:     {role: other, type: number, passes: unique}
"""
QUASI = ("age", "weight", "zip", "day", "seen", "country", "dose")
REQUIRE = "require: [k-anonymity: 2]\n"
SETTINGS = {
    "default": "",
    "boxes": "output: {numbers: boxes}",
    "range": "output: {numbers: range}",
    "as published": "method: {mondrian: {variant: paper}}",
    "a tree alone": "method: {mondrian: {refine: none}}",
    "a task": "workload: [classify: ill]",
    "rests that exclude": "output: {rest-labels: excluding}",
    "median": "method: {mondrian: {criterion: median}}",
    "tds": "method: tds\nworkload: [classify: ill]",
}


def policy(rest: str = "", columns: str = COLUMNS) -> sf.Policy:
    return sf.Policy.parse(f"{columns}{REQUIRE}{rest}")


def ends(label: str) -> tuple[str | Any, ...]:
    found = re.fullmatch(r"([\[(])(.+), (.+)([\])])", label)
    return found.groups() if found else ("[", label, label, "]")


def fault(name: str, label: str | None, value: Any) -> str | None:
    """What is wrong with a label of that value: it is too fine, or does not cover it; None if nothing is."""
    if label is None:
        return None if value is None else "not missing"
    plain = re.sub(r" \(not .*\)$", "", label)
    covers_missing = plain.endswith(" or missing") or plain == "*"
    plain = plain.removesuffix(" or missing")
    if value is None or plain == "*":
        return None if covers_missing else "does not cover missing"
    if name == "zip":
        kept = plain.rstrip("*")
        return None if len(kept) <= 3 and value.startswith(kept) and len(plain) == 5 else "zip"
    if name == "country":
        known = {
            REGION[value],
            {"Western Europe": "Europe", "Eastern Africa": "Africa"}.get(REGION[value], "Americas"),
        }
        return None if plain in known else "country"
    if name in ("day", "seen"):
        forms = {"day": (f"{value:%Y-%m}", f"{value:%Y}-Q{(value.month + 2) // 3}"), "seen": ()}[name]
        return None if plain in (*forms, f"{value:%Y}") else "date"
    opening, lowest, highest, closing = ends(plain)
    low, high = float(lowest), float(highest)
    inside = (low <= value if opening == "[" else low < value) and (
        value <= high if closing == "]" else value < high
    )
    if name == "age":
        is_whole = low % 5 == 0 and (high % 5 == 4 or high == 110) and (low < 110)
    else:
        width = 2.5 if name == "weight" else 10
        is_whole = low % width == 0 and high % width == 0 and low < high
    return None if inside and is_whole else f"{name}: inside {inside}, whole {is_whole}"


def by_row(table: pa.Table) -> list[dict]:
    return sorted(table.to_pylist(), key=lambda row: int(row["row"]))


def faults(rows: list[dict], raw: list[dict] = ROWS) -> list:
    return [
        (name, found)
        for row, own in zip(rows, raw, strict=True)
        for name in QUASI
        if (found := fault(name, row[name], own[name]))
    ]


@pytest.mark.parametrize("setting", SETTINGS)
def test_no_label_is_finer_and_each_covers_its_row(setting, tmp_path):
    release = sf.publish(TABLE, policy(SETTINGS[setting]), seed=1)
    rows = by_row(release.rows)
    assert faults(rows) == []
    release.write(tmp_path / "out")
    found = verify_folder(tmp_path / "out")
    found.raise_if_failed()
    claims = [check.claim for check in found.checks]
    assert [f"no label of {name!r} is finer than the policy's finest" in claims for name in QUASI] == [
        True
    ] * 7
    if setting != "tds":
        assert any(row["age"] is not None and row["age"] != "[0, 110]" for row in rows)


def test_the_command_s_rows_are_recoded_alike_by_apply():
    release = sf.publish(TABLE, policy(), seed=1)
    applied = release.recoding.apply(TABLE).to_pylist()
    published = by_row(release.rows)
    assert [[row[name] for name in QUASI] for row in applied] == [
        [row[name] for name in QUASI] for row in published
    ]


def test_new_rows_are_recoded_to_labels_that_are_no_finer():
    release = sf.publish(TABLE, policy(), seed=1)
    new = stays(200, seed=9)
    rows = release.recoding.apply(new).to_pylist()
    too_fine = [
        found for row, raw in zip(rows, new.to_pylist(), strict=True) for name in QUASI
        if (found := fault(name, row[name], raw[name])) and "whole False" in found
    ]  # fmt: skip
    assert too_fine == []


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_both_engines_publish_the_same_boxes(engine, tmp_path):
    pq.write_table(TABLE, tmp_path / "raw.parquet")
    options = "" if engine == "memory" else ", rows-in-memory: 40, frequency-groups: 2"
    options = f"method: {{mondrian: {{refine: none{options}}}}}"
    publish_to(tmp_path / "out", tmp_path / "raw.parquet", policy(options), Request(engine=engine, seed=1))
    verify_folder(tmp_path / "out").raise_if_failed()
    published = by_row(pq.read_table(tmp_path / "out" / "release.parquet"))
    assert faults(published) == []
    expected = by_row(sf.publish(TABLE, policy("method: {mondrian: {refine: none}}"), seed=1).rows)
    assert [[row[name] for name in QUASI] for row in published] == [
        [row[name] for name in QUASI] for row in expected
    ]


def naive_ends(name: str, value: Any) -> tuple:
    if name == "age":
        return (105, 110) if value >= 105 else (value // 5 * 5, value // 5 * 5 + 4)
    if name == "dose":
        first = min(value // 10 * 10, 50)
        return first, first + 10
    if name == "weight":
        n = -(-round(value * 10) // 25)
        return (n - 1) * 2.5, n * 2.5
    start = value.replace(day=1) if name == "day" else value.replace(month=1, day=1)
    following = (
        (start + dt.timedelta(days=32)).replace(day=1)
        if name == "day"
        else start.replace(year=start.year + 1)
    )
    return start, following - dt.timedelta(days=1)


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_statistics_are_computed_from_the_slices(engine, tmp_path):
    pq.write_table(TABLE, tmp_path / "raw.parquet")
    options = "" if engine == "memory" else "method: {mondrian: {rows-in-memory: 40, frequency-groups: 2}}\n"
    request = Request(engine=engine, seed=1)
    publish_to(
        tmp_path / "out", tmp_path / "raw.parquet", policy(options + "output: {values: summary}"), request
    )
    verify_folder(tmp_path / "out").raise_if_failed()
    rows = by_row(pq.read_table(tmp_path / "out" / "release.parquet"))
    groups: dict = {}
    for row, raw in zip(rows, ROWS, strict=True):
        groups.setdefault(tuple(row[name] for name in QUASI), []).append((row, raw))
    for members in groups.values():
        for name in ("age", "weight", "dose", "day", "seen"):
            known = [naive_ends(name, raw[name]) for _, raw in members if raw[name] is not None]
            shown = {(row[f"{name}_min"], row[f"{name}_max"]) for row, _ in members}
            expected = (
                (min(low for low, _ in known), max(high for _, high in known)) if known else (None, None)
            )
            assert shown == {expected}
            if known and name in ("age", "weight", "dose"):
                mean = sum((low + high) / 2 for low, high in known) / len(known)
                assert members[0][0][f"{name}_mean"] == pytest.approx(mean, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "label"),
    [("age", "[5, 8]"), ("age", "7"), ("age", "[106, 110]"), ("weight", "(2.5, 4]"), ("zip", "5371*"), ("zip", "53715"),
     ("day", "2020-03-05"), ("seen", "2020-03"), ("country", "DE"), ("dose", "[0, 5)"), ("dose", "7")],
)  # fmt: skip
def test_a_finer_label_is_found_in_any_table(name, label):
    rows = sf.publish(TABLE, policy(), seed=1).table
    n = 3
    tampered = pa.array([label] * n + rows[name].to_pylist()[n:])
    table = rows.set_column(rows.column_names.index(name), name, tampered)
    found = verify_table(table, policy())
    failures = [check.claim for check in found.failures]
    assert f"no label of {name!r} is finer than the policy's finest" in failures
    (check,) = (check for check in found.failures if "finer" in check.claim)
    assert check.detail == "of 3 rows it is"
    assert label not in str(check)


def test_a_release_whose_policy_lost_its_limit_is_refused(tmp_path):
    release = sf.publish(TABLE, policy(), seed=1)
    release.write(tmp_path / "out")
    for file in ("policy.yaml", "certificate.json"):
        path = Path(tmp_path / "out" / file)
        text = path.read_text()
        if file == "policy.yaml":
            path.write_text(text.replace("finest: 5", "finest: 10"))
        else:
            document = json.loads(text)
            assert document["policy"]["attributes"]["age"]["finest"] == 5
    assert not verify_folder(tmp_path / "out").ok


def test_risk_utility_publishes_nothing_finer(tmp_path):
    columns = COLUMNS.replace("role: sensitive", "role: other")
    given = sf.Policy.parse(columns + "method: {risk-utility: {utility-at-least: 0.4}}")
    release = sf.publish(TABLE, given, seed=1)
    rows = by_row(release.rows)
    assert [
        (name, found) for row, raw in zip(rows, ROWS, strict=True) for name in ("zip", "day", "seen", "country", "dose")
        if (found := fault(name, row[name], raw[name]))
    ] == []  # fmt: skip
    widths = {
        float(ends(row["age"])[2]) - float(ends(row["age"])[1])
        for row in rows
        if row["age"] not in ("*", None)
    }
    assert min(widths) >= 5
    release.write(tmp_path / "out")
    verify_folder(tmp_path / "out").raise_if_failed()


def test_cells_outside_their_declaration_are_counted_as_ever():
    for value, sentence in (
        (112, "1 cell outside its declared bounds"),
        (6.5, "1 cell off its declared step"),
    ):
        ages = pa.array([float(value), *[5.0] * (len(TABLE) - 1)])
        table = TABLE.set_column(0, "age", ages)
        with pytest.raises(InputError, match=sentence):
            sf.publish(table, policy())


def test_queries_enclose_the_truth():
    release = sf.publish(TABLE, policy(), seed=1)
    for where, holds in {
        "age >= 40 and age <= 61": lambda row: row["age"] is not None and 40 <= row["age"] <= 61,
        "zip = '53715'": lambda row: row["zip"] == "53715",
        "day >= '2020-03-05' and day <= '2020-06-17'": lambda row: (
            dt.date(2020, 3, 5) <= row["day"] <= dt.date(2020, 6, 17)
        ),
        "weight > 10.2": lambda row: row["weight"] is not None and row["weight"] > 10.2,
        "dose < 17": lambda row: row["dose"] < 17,
        "country = 'DE'": lambda row: row["country"] == "DE",
        "country = 'Western Europe'": lambda row: REGION[row["country"]] == "Western Europe",
    }.items():
        true = sum(map(holds, ROWS))
        answer = release.query(f"COUNT(*) WHERE {where}")
        assert answer.low <= true <= answer.high, where


PRIVATE = """
attributes:
  zip:     {role: quasi-identifier, hierarchy: {mask: 5}, values: ZIPS, finest: 2}
  day:     {role: quasi-identifier, type: date, bounds: [2020-01-01, 2021-12-31], finest: quarter}
  country: {role: quasi-identifier, hierarchy: {library: countries}, finest: region}
  ill:     {role: sensitive, values: [a, b]}
workload: [classify: ill]
method: {diffgen: {epsilon: 5}}
""".replace("ZIPS", "['53715', '53703', '53201', '02139', '02142', '94110']")


def test_a_private_release_publishes_nothing_finer_and_verifies(tmp_path):
    table = TABLE.select(["zip", "day", "country", "ill"])
    release = sf.publish(table, sf.Policy.parse(PRIVATE), seed=1)
    shown = {name: {label.removesuffix(" or missing") for label in release.table[name].to_pylist() if label} for name in
             ("zip", "day", "country")}  # fmt: skip
    assert all(len(label.rstrip("*")) <= 3 for label in shown["zip"])
    assert all(re.fullmatch(r"\*|\d{4}(-Q\d)?", label) for label in shown["day"])
    assert shown["country"] <= {"*", "Africa", "Americas", "Antarctic", "Asia", "Europe", "Oceania"}
    release.write(tmp_path / "out")
    verify_folder(tmp_path / "out").raise_if_failed()
    with pytest.raises(InputError, match="a private release answers no question for its values"):
        release.query("COUNT(*) WHERE country = 'DE'")
