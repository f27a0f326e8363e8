"""Spark Connect: a server of its own, and a client that has no Java."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
from spark_clients import python_path
from spark_people import METHODS, people, rows_of

import sfumato as sf

CLIENT = """
import json, sys
import sfumato as sf
from pyspark.sql import SparkSession
from spark_clients import cut_small_tables
from spark_people import rows_of

cut_small_tables()
server, table, policy, out = sys.argv[1:]
session = SparkSession.builder.remote(server).getOrCreate()
policy, stages, found = sf.Policy.read(policy), set(), []
for given, engine in ((table, "spark"), (session.read.parquet(table), "auto")):
    release = sf.publish(given, policy, engine=engine, seed=1, progress=lambda *told: stages.add(told[0]))
    found.append(rows_of(release))
assert {"reading", "counting", "splitting"} <= stages
with open(out, "w") as file:
    json.dump(found, file)
"""


def test_a_release_is_made_through_spark_connect(server: str, tmp_path: Path) -> None:
    table, policy, out = (tmp_path / name for name in ("rows.parquet", "policy.yaml", "out.json"))
    pq.write_table(people(1500), table, row_group_size=300)
    policy.write_text(METHODS["rothko-t"], encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CLIENT, server, table, policy, out],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": python_path()},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    expected = sf.publish(table, sf.Policy.read(policy), engine="disk", memory=64_000_000)
    assert json.loads(out.read_text(encoding="utf-8")) == [rows_of(expected)] * 2


CLOCK = """
import sys
import sfumato as sf
from pyspark.sql import SparkSession
from spark_people import TIMES, TIMES_SHOWN, rows_of, times

session = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
session.conf.set("spark.sql.session.timeZone", "America/New_York")
assert rows_of(sf.publish(times(session), sf.Policy.parse(TIMES), seed=1)) == TIMES_SHOWN
"""


def test_times_are_published_as_spark_connect_shows_them(server: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CLOCK, server],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": python_path()},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


CHECK = """
import sys
import sfumato as sf
from pyspark.sql import SparkSession

server, table, policy = sys.argv[1:]
session = SparkSession.builder.remote(server).getOrCreate()
for given in (table, session.read.parquet(table)):
    for check in sf.verify_table(given, sf.Policy.read(policy), engine="spark").checks:
        print(check.mark, check.claim, check.detail)
"""


def test_a_table_is_checked_through_spark_connect(server: str, tmp_path: Path) -> None:
    table, policy = tmp_path / "rows.parquet", tmp_path / "policy.yaml"
    pq.write_table(people(300), table)
    policy.write_text(METHODS["mondrian"], encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CHECK, server, table, policy],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    expected = [
        f"{each.mark} {each.claim} {each.detail}"
        for each in sf.verify_table(table, sf.Policy.read(policy)).checks
    ]
    assert any(line.startswith("FAIL 10-anonymity") for line in expected)
    assert [line.rstrip() for line in done.stdout.splitlines()] == [line.rstrip() for line in expected] * 2
