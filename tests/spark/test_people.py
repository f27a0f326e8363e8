"""Groups of people on Spark: the boxes are those in memory, each holds by its people, and the release says so."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spark_people import METHODS, MONDRIAN, people, rows_of
from tree_runs import grown_by_run, scan
from unit_tables import people_table

import sfumato as sf
from sfumato.engines.engine import Resources
from sfumato.engines.memory import MemoryEngine
from sfumato.engines.protocol import Room
from sfumato.engines.spark.engine import SparkEngine
from sfumato.engines.spark.handed import HandedJobs
from sfumato.engines.spark.jobs import SMALL, Jobs
from sfumato.policy.document import Policy
from sfumato.publishing import Request, publish_to
from sfumato.table.opening import open_table
from sfumato.table.spill import Spill


class Way(NamedTuple):
    """How states of people come together: whose jobs they are, bytes for each, and bytes merged by the driver."""

    jobs: type[Jobs] = Jobs
    count_bytes: int = 1 << 30
    merged_here: int = SMALL


WAYS: Mapping[str, Way] = {
    "by the driver": Way(),
    "by tasks": Way(merged_here=0),
    "in sorted files": Way(count_bytes=2000, merged_here=0),
    "in sorted files that are handed over": Way(HandedJobs, 2000, 0),
}
ROWS = 12
"""A node with more rows than that is split by what is counted."""

CASES = {6: "by tasks", 9: "by the driver", 12: "in sorted files", 17: "in sorted files", 20: "by tasks",
         26: "in sorted files", 30: "by the driver", 33: "by the driver", 37: "by tasks",
         38: "in sorted files that are handed over"}  # fmt: skip
"""Numbers of random tables: k-anonymity and all diversities, trees with rests, by loss, by Median and as published."""


@pytest.mark.parametrize("number", CASES)
def test_boxes_of_random_tables_are_those_in_memory(
    number: int, spark: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    way, case = WAYS[CASES[number]], people_table(number)
    policy = Policy.of(case.policy_without_list())
    here = MemoryEngine(threads=1)
    expected = grown_by_run(scan(open_table(case.table), policy, here.room), policy, here)
    monkeypatch.setattr("sfumato.engines.spark.jobs.SMALL", way.merged_here)
    room = Room(way.count_bytes, ROWS, 200, keeps_counts=False)
    pq.write_table(case.table, tmp_path / "rows.parquet", row_group_size=10)
    with Spill() as spill:
        jobs = way.jobs(spark, spill.folder)
        source = jobs.with_slices(open_table(tmp_path / "rows.parquet", lazy=True))
        encoded = scan(source, policy, room, Resources(spill=spill, memory=1 << 24, jobs=jobs))
        engine = SparkEngine(jobs, encoded.layout, room, writer_bytes=1 << 12)
        found = grown_by_run(encoded, policy, engine)
    assert found == expected
    for _, members in found:
        assert case.holds([case.rows[at] for at in members])


def stays() -> pa.Table:
    """Fifteen hundred rows of some 500 people; three of these have most of the rows that are of old people."""
    rows, chance = people(1500), np.random.default_rng(3)
    age, who = rows["age"].to_numpy(), chance.integers(3, 500, len(rows))
    who = np.where((age > 80) & (chance.random(len(rows)) < 0.8), who % 3, who)
    return rows.append_column("who", pa.array([f"p{number:03}" for number in who]))


TDS = {"tds": METHODS["tds"], "tds that leaves rows out": METHODS["tds"] + "suppress: {at-most: 2%}\n"}


@pytest.mark.parametrize("name", TDS)
def test_tds_counts_people_as_on_disk(name: str, spark: Any, tmp_path: Any) -> None:
    pq.write_table(stays(), tmp_path / "stays.parquet", row_group_size=400)
    policy = Policy.parse(
        TDS[name].replace("require:", "  who: {role: identifier}\nrequire:") + "unit: who\n"
    )
    found = sf.publish(tmp_path / "stays.parquet", policy, engine="spark", seed=1)
    on_disk = sf.publish(tmp_path / "stays.parquet", policy, engine="disk", memory=64_000_000, seed=1)
    assert rows_of(found) == rows_of(on_disk)
    assert found.certificate.claims == on_disk.certificate.claims
    assert found.certificate.claims.people == len({*stays()["who"].to_pylist()})


def test_a_release_says_how_many_people_it_is_about_and_they_are_counted_again(
    spark: Any, tmp_path: Any
) -> None:
    rows = stays()
    rows = rows.append_column("row", pa.array(range(len(rows))))
    pq.write_table(rows, tmp_path / "stays.parquet", row_group_size=400)
    who = rows["who"].to_pylist()
    policy = Policy.parse(
        MONDRIAN.replace(
            "require:", "  who: {role: identifier}\n  row: {role: other, passes: unique}\nrequire:"
        )
        + "unit: who\nmethod: {mondrian: {refine: none, rows-in-memory: 400}}\n"
    )
    request = Request(engine="spark", seed=1)
    release = publish_to(tmp_path / "release", tmp_path / "stays.parquet", policy, request)
    assert rows_of(release) == rows_of(sf.publish(rows, policy, engine="memory", seed=1))

    groups: dict[Any, list[int]] = defaultdict(list)
    for line in release.rows.load().to_pylist():
        groups[line["age"], line["zip"], line["sex"]].append(line["row"])
    n_people = [len({who[row] for row in members}) for members in groups.values()]
    smallest = min(n_people)
    assert smallest >= 10
    assert sum(n_people) < len(rows) - 50
    claims = release.certificate.claims
    assert (claims.unit, claims.people) == ("who", len({*who}))
    assert claims.requirements[0].achieved == smallest

    folder = tmp_path / "release"
    by_spark = {check.claim: check for check in sf.verify_folder(folder, engine="spark").checks}
    assert not [claim for claim, check in by_spark.items() if not check.passed]
    usual = [check.claim for check in sf.verify_folder(folder).checks]
    assert [claim for claim in usual if "people" in claim] == [
        claim for claim in by_spark if "people" in claim
    ]
    assert by_spark["owner's word: 10-anonymity holds of people"].is_note
    again = sf.verify_folder(folder, table=tmp_path / "stays.parquet")
    assert again.ok
    counted = next(check for check in again.checks if check.claim == "10-anonymity holds of people")
    assert counted.detail == f"the smallest group has {smallest} people"


def test_spark_finds_groups_with_fewer_rows_than_there_must_be_people(spark: Any, tmp_path: Any) -> None:
    policy = Policy.parse(
        "{attributes: {age: {role: quasi-identifier}, who: {role: identifier}, ill: {role: sensitive}}, "
        "require: [k-anonymity: 3, entropy-diversity: {l: 1.5, of: ill}, t-closeness: {t: 0.9, of: ill}], unit: who}"
    )
    table = pa.table({"age": ["a"] * 4 + ["b"] * 2, "ill": ["flu", "cold", "flu", "cold", "flu", "flu"]})
    pq.write_table(table, tmp_path / "published.parquet")
    found, usual = (
        sf.verify_table(tmp_path / "published.parquet", policy, engine=engine).checks
        for engine in ("spark", "auto")
    )
    said = {check.claim: (check.mark, check.detail) for check in found}
    assert said == {check.claim: (check.mark, check.detail) for check in usual}
    assert said["3-anonymity holds"][0] == said["entropy 1.5-diversity of 'ill' holds"][0] == "FAIL"


def rare_stays() -> pa.Table:
    """The same stays, where every sixtieth is of an area that hardly anybody else is from."""
    rows = stays()
    zips = np.array(rows["zip"].to_pylist())
    zips[::60] = [f"{6 + at % 4}{at:02}" for at in range(len(zips[::60]))]
    return rows.set_column(rows.column_names.index("zip"), "zip", pa.array(zips))


CLOSE = MONDRIAN.replace("]\n", ", t-closeness: {t: 0.2, of: disease}]\n")
LEAVING = {
    "people": (MONDRIAN, "criterion: median, rest: false", True),
    "people with rests": (MONDRIAN, "refine: none", True),
    "people close to what is published": (CLOSE, "criterion: median, rest: false", True),
    "rows close to what is published": (CLOSE, "criterion: median, rest: false", False),
}


@pytest.mark.parametrize("name", LEAVING)
def test_the_same_rows_are_left_out_of_groups_of_people(name: str, spark: Any, tmp_path: Any) -> None:
    pq.write_table(rare_stays(), tmp_path / "stays.parquet", row_group_size=400)
    asked, options, counts_people = LEAVING[name]
    policy = Policy.parse(
        asked.replace("require:", "  who: {role: identifier}\nrequire:")
        + f"method: {{mondrian: {{{options}, rows-in-memory: 400}}}}\nsuppress: {{at-most: 5%}}\n"
        + ("unit: who\n" if counts_people else "unit: row\n")
    )
    found = sf.publish(tmp_path / "stays.parquet", policy, engine="spark", seed=1)
    here = sf.publish(tmp_path / "stays.parquet", policy, engine="memory", seed=1)
    assert rows_of(found) == rows_of(here)
    assert found.certificate.claims == here.certificate.claims
    assert name == "people with rests" or found.certificate.claims.suppressed > 0
