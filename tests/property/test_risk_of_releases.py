"""Who of a population is like the rows of a release: against boxes that are looked into one by one."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from people import ATTRIBUTES, PEOPLE

import sfumato as sf

NUMBERS = """
attributes:
  age: {role: quasi-identifier, type: number, bounds: [0, 99], step: 1}
  hours: {role: quasi-identifier, type: number, bounds: [0, 600], step: 0.5}
  job: {role: quasi-identifier}
require: [k-anonymity: 3]
"""
TDS = "workload: [classify: income]\nmethod: tds"
WAYS = (
    "output: {values: labels, numbers: grid}",
    "output: {values: bounds, numbers: range}",
    "output: {values: both, numbers: boxes}",
    "method: {mondrian: {criterion: median}}",
    "method: {mondrian: {variant: paper}}",
    "method: {mondrian: {refine: list}}",
    "workload: [aggregate: [range, mean]]",
    "suppress: {at-most: 5%}",
    TDS,
)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("is_stored", [False, True])
def test_a_population_that_is_the_table_has_the_prosecutors_risk(tmp_path, way, is_stored):
    release = sf.publish(PEOPLE, sf.Policy.parse(f"{ATTRIBUTES}require: [k-anonymity: 4]\n{way}\n"), seed=1)
    given = release
    if is_stored:
        release.write(tmp_path / "out")
        given = tmp_path / "out"
    found = sf.risk(given, population=PEOPLE)
    assert found.journalist.largest == found.prosecutor.largest
    assert found.journalist.above == found.prosecutor.above
    assert found.journalist.mean == pytest.approx(found.prosecutor.mean)


@pytest.mark.parametrize("seed", range(3))
def test_people_are_those_of_the_raw_table(seed):
    """Groups of a release count rows until the raw table says whose they are; a population has people, too."""
    rows = draw(120, seed)
    who = np.random.default_rng(seed).integers(0, 70, 120)
    rows = rows.append_column("who", pa.array([f"p{i}" for i in who]))
    text = NUMBERS.replace("  job:", "  who: {role: identifier}\n  job:") + "unit: who\n"
    release = sf.publish(rows, sf.Policy.parse(text), seed=1)
    claims = release.certificate.claims
    found = sf.risk(release, table=rows, suda=2)
    assert (found.n_rows, found.n_people, found.prosecutor) == (claims.rows, claims.people, claims.risk)
    assert len(found.suda.scores) == claims.rows
    same = sf.risk(release, table=rows, population=rows)
    assert same.journalist.largest == found.prosecutor.largest
    assert same.journalist.above == found.prosecutor.above


def draw(n, seed):
    chance = np.random.default_rng(seed)
    return pa.table(
        {
            "age": chance.choice([*range(20, 35), *range(60, 75)], n),
            "hours": chance.integers(0, 40, n) * 1.5,
            "job": chance.choice(["clerk", "farmer", "smith"], n),
        }
    )


@pytest.mark.parametrize("seed", range(6))
def test_people_are_counted_who_lie_in_the_box_of_a_group(seed):
    """With the median no two boxes overlap, so everybody lies in one box, or in none."""
    rows, others = draw(80, seed), draw(300, seed + 100)
    options = "output: {values: bounds}\nmethod: {mondrian: {criterion: median}}\n"
    release = sf.publish(rows, sf.Policy.parse(NUMBERS + options), seed=1)
    strangers = pa.table(
        {"age": [40, 50, 99], "hours": [3.0, 3.0, 500.0], "job": ["clerk", "smith", "judge"]}
    )
    population = pa.concat_tables([rows, others, strangers], promote_options="permissive")
    found = sf.risk(release, population=population)

    published = release.table.to_pylist()
    like = [
        sum(
            box["age_low"] <= person["age"] <= box["age_high"]
            and box["hours_low"] <= person["hours"] <= box["hours_high"]
            and box["job"] in ("*", person["job"])
            for person in population.to_pylist()
        )
        for box in published
    ]
    risks = [Fraction(1, n) for n in like]
    assert found.journalist.largest == pytest.approx(float(max(risks)))
    assert found.marketer == pytest.approx(float(sum(risks) / len(risks)))
    assert len(set(like)) > 1


def test_whoever_is_sent_to_a_box_but_does_not_lie_in_it_is_like_nobody():
    """Labels are narrowed to the rows of the release: somebody of 45 goes down one side, and fits no label."""
    policy = {
        "attributes": {"age": {"role": "quasi-identifier", "type": "number", "bounds": [0, 99], "step": 1}},
        "require": [{"k-anonymity": 5}],
    }
    rows = pa.table({"age": [20, 21, 22, 23, 24, 70, 71, 72, 73, 74]})
    release = sf.publish(rows, policy, seed=1)
    labels = set(release.table["age"].to_pylist())
    assert len(labels) == 2
    assert not any("45" in label for label in labels)
    found = sf.risk(release, population=pa.table({"age": [*rows["age"].to_pylist(), 45, 46, 47, 0, 99]}))
    assert found.journalist.largest == found.prosecutor.largest == 1 / 5
