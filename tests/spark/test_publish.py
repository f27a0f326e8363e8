"""Releases made on Spark: every method, every kind of input, and what they say when something is wrong."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
import tradeoff_releases
from broken_task import Broken, FillsMemory
from spark_people import ATTRIBUTES, DIFFGEN, METHODS, MONDRIAN, TIMES, TIMES_SHOWN, people, rows_of, times

import sfumato as sf
from sfumato import cli
from sfumato.engines.spark.jobs import Jobs
from sfumato.engines.spark.replies import StorageError
from sfumato.engines.spark.tasks import ShowSlice
from sfumato.errors import InputError, InternalError, PromiseError, TableError
from sfumato.publishing import Request, publish_to
from sfumato.verify.folder import verify_folder


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("rows") / "people.parquet"
    pq.write_table(people(), path, row_group_size=400)
    return path


@pytest.mark.parametrize("name", METHODS)
def test_a_release_has_the_rows_that_it_has_from_disk(name, spark, table):
    policy = sf.Policy.parse(METHODS[name])
    release = sf.publish(table, policy, engine="spark", seed=1)
    on_disk = sf.publish(table, policy, engine="disk", memory=64_000_000, seed=1)
    assert rows_of(release) == rows_of(on_disk)
    assert release.certificate.figures["splits"] == on_disk.certificate.figures["splits"]
    assert release.certificate.figures["io"]["engine"] == "spark"
    assert release.certificate.figures.get("imprecision") == on_disk.certificate.figures.get("imprecision")


def test_labels_of_rests_say_on_spark_what_they_exclude(spark, tmp_path):
    rows = people()
    ward = np.random.default_rng(5).choice([*"abcdefgh"], len(rows), p=np.arange(8, 0, -1) / 36)
    rows = rows.set_column(rows.column_names.index("ward"), "ward", pa.array(ward))
    pq.write_table(rows, tmp_path / "people.parquet", row_group_size=400)
    policy = sf.Policy.parse(
        MONDRIAN.replace("ward: {role: other}", "ward: {role: quasi-identifier}").replace(
            "k-anonymity: 10", "k-anonymity: 25"
        )
        + "method: {mondrian: {refine: none, rows-in-memory: 400}}\noutput: {rest-labels: excluding}\n"
    )
    release = sf.publish(tmp_path / "people.parquet", policy, engine="spark", seed=1)
    assert sum("(not " in row for row in rows_of(release)) > 100
    assert rows_of(release) == rows_of(sf.publish(rows, policy, engine="memory", seed=1))


def test_cells_of_a_grid_that_are_counted_in_passes_give_the_same_release(spark, table):
    policy = sf.Policy.parse(METHODS["tds"])
    release = sf.publish(table, policy, engine="spark", memory=200_000, seed=1)
    assert len(list(release.rows.path.iterdir())) > 1
    assert rows_of(release) == rows_of(sf.publish(table, policy, engine="memory", seed=1))


def test_what_is_learned_of_columns_is_merged_by_tasks_where_it_is_large(spark, table, monkeypatch):
    """The dictionaries of all tasks would not fit on the driver."""
    monkeypatch.setattr("sfumato.engines.spark.jobs.SMALL", 0)
    gathered, usual = [], Jobs._merged
    gather = Jobs.gather

    def note(jobs, work, slices, **options):
        gathered.append((type(work), len(slices)))
        return gather(jobs, work, slices, **options)

    def merged(jobs, *given):
        gathered.append("merged")
        return usual(jobs, *given)

    monkeypatch.setattr(Jobs, "gather", note)
    monkeypatch.setattr(Jobs, "_merged", merged)
    policy = sf.Policy.parse(MONDRIAN)
    release = sf.publish(table, policy, engine="spark", seed=1)
    assert gathered[:2] == [(ShowSlice, 2), "merged"]
    assert rows_of(release) == rows_of(sf.publish(table, policy, engine="disk", memory=64_000_000, seed=1))


def test_a_private_release_is_drawn_from_the_same_counts(spark, table):
    policy = sf.Policy.parse(DIFFGEN)
    release = sf.publish(table, policy, engine="spark", seed=1)
    assert [path.name for path in release.rows.path.iterdir()] == ["part-00000.parquet"]
    assert rows_of(release) == rows_of(sf.publish(table, policy, engine="memory", seed=1))


def test_a_format_that_spark_does_not_write_is_refused_before_anything_is_charged(spark, table, tmp_path):
    policy, ledger = sf.Policy.parse(DIFFGEN), tmp_path / "ledger.json"
    with pytest.raises(InputError, match=r"On Spark a release is a folder of Parquet parts.*csv\.$"):
        sf.publish(table, policy, engine="spark", file_format="csv", ledger=ledger)
    assert not ledger.exists()


def test_tasks_of_a_private_release_hold_nothing_to_draw_with(spark, table, monkeypatch):
    """So a task that runs again cannot draw again."""
    plans, usual = [], Jobs._plan

    def note(jobs, *given):
        path, needed = usual(jobs, *given)
        plans.append(path.read_bytes())
        return path, needed

    monkeypatch.setattr(Jobs, "_plan", note)
    sf.publish(table, sf.Policy.parse(DIFFGEN), engine="spark", seed=1)
    assert len(plans) > 2
    assert not [word for word in CHANCE for plan in plans if word in plan]
    plans.clear()
    sf.publish(table, sf.Policy.parse(METHODS["rothko-t"]), engine="spark", seed=1)
    assert any(word in plan for word in CHANCE for plan in plans)  # as in the order of published rows


CHANCE = (b"sfumato.privacy", b"numpy.random", b"sfumato.randomness")
"""Modules whose objects draw, as plans would name them."""


def test_rows_that_are_optimized_one_by_one_are_spread_over_tasks(spark, monkeypatch):
    monkeypatch.setattr("sfumato.engines.spark.engine.MOST_ROWS", 15)
    rows, policy = tradeoff_releases.people(), sf.Policy.parse(tradeoff_releases.POLICY)
    release = sf.publish(rows, policy, engine="spark", seed=1)
    assert rows_of(release) == rows_of(sf.publish(rows, policy, seed=1))


def test_a_data_frame_is_published_where_it_is(spark, table):
    policy = sf.Policy.parse(MONDRIAN)
    release = sf.publish(spark.read.parquet(str(table)), policy, seed=1)
    assert rows_of(release) == rows_of(sf.publish(table, policy, engine="disk", memory=64_000_000, seed=1))
    with pytest.raises(
        InputError, match=r"^A DataFrame of Spark is published on Spark; leave out the engine\.$"
    ):
        sf.publish(spark.read.parquet(str(table)), policy, engine="disk")


@pytest.mark.parametrize("is_handed", [False, True])
def test_times_of_a_data_frame_are_published_as_spark_shows_them(is_handed, spark, monkeypatch):
    def refuse(_jobs):
        raise StorageError("It is kept from storage.")

    if is_handed:
        monkeypatch.setattr("sfumato.engines.spark.session._probe_workers", refuse)
        monkeypatch.setattr("sfumato.engines.spark.session.notice", lambda _said: None)
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        release = sf.publish(times(spark), sf.Policy.parse(TIMES), seed=1)
    finally:
        spark.conf.unset("spark.sql.session.timeZone")
    assert rows_of(release) == TIMES_SHOWN


def test_the_commands_publish_and_apply(spark, table, tmp_path, capsys):
    (tmp_path / "policy.yaml").write_text(MONDRIAN, encoding="utf-8")
    given = ["publish", str(table), "--policy", str(tmp_path / "policy.yaml"), "--seed", "1", "--out"]
    assert cli.run([*given, str(tmp_path / "out"), "--engine", "spark"]) == 0
    assert cli.run([*given, str(tmp_path / "one"), "--engine", "disk"]) == 0
    one, out = (sf.Release.read(tmp_path / name) for name in ("one", "out"))
    assert rows_of(out) == rows_of(one)
    given = ["apply", str(tmp_path / "out"), str(table), "--out"]
    assert cli.run([*given, str(tmp_path / "parts.parquet"), "--engine", "spark"]) == 0
    assert cli.run([*given, str(tmp_path / "one.parquet")]) == 0
    assert "rows recoded, without a promise." in capsys.readouterr().out
    parts, rows = (pq.read_table(tmp_path / name).to_pylist() for name in ("parts.parquet", "one.parquet"))
    assert parts == rows


def test_text_is_read_as_it_is_without_spark(spark, tmp_path):
    path = tmp_path / "people.csv"
    pc.write_csv(people(600), path)
    policy = sf.Policy.parse(MONDRIAN)
    release = sf.publish(path, policy, engine="spark", seed=1)
    expected = sf.publish(path, policy, engine="disk", memory=64_000_000, seed=1, file_format="parquet")
    assert rows_of(release) == rows_of(expected)
    with pytest.raises(InputError, match="On Spark a release is a folder of Parquet parts"):
        sf.publish(path, policy, engine="spark", file_format="csv")


def test_the_folder_has_parts_and_nothing_else_and_is_verified(spark, table, tmp_path):
    policy = sf.Policy.parse(METHODS["rothko-t"])
    publish_to(tmp_path / "out", table, policy, Request(engine="spark", seed=1))
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "certificate.json", "policy.yaml", "recoding.json", "release.parquet", "report.html",
    }  # fmt: skip
    parts = sorted(path.name for path in (tmp_path / "out" / "release.parquet").iterdir())
    assert len(parts) > 1
    assert parts == [f"part-{number:05}.parquet" for number in range(len(parts))]
    assert verify_folder(tmp_path / "out").ok
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    again = sf.Release.read(tmp_path / "out").recoding.apply(people(50))
    assert len(again) == 50


def test_progress_is_told(spark, table):
    stages: list[tuple[str, int, int]] = []
    sf.publish(
        table,
        sf.Policy.parse(METHODS["rothko-t"]),
        engine="spark",
        progress=lambda *told: stages.append(told),
    )
    assert {"reading", "counting", "dividing", "splitting", "verifying"} <= {stage for stage, _, _ in stages}
    assert all(done <= total for _, done, total in stages)


# ---- what goes wrong ---------------------------------------------------------------------------------------------


def test_a_worker_of_another_version_is_named(spark, table, monkeypatch):
    monkeypatch.setattr("sfumato.engines.spark.entries.versions", lambda: ("sfumato 0.0", "kernels-0"))
    with pytest.raises(
        InputError, match=r"^A worker of the cluster has other versions .*; sfumato 0\.0, kernels-0 here\)"
    ):
        sf.publish(table, sf.Policy.parse(MONDRIAN), engine="spark")


def test_a_faulty_cell_is_told_by_its_row_and_not_by_what_it_holds(spark, tmp_path):
    rows = people(900).to_pylist()
    rows[731]["age"] = "secret"
    texts = pa.table({name: [str(row[name]) for row in rows] for name in rows[0]})
    pq.write_table(texts, tmp_path / "rows.parquet", row_group_size=200)
    policy = sf.Policy.parse(MONDRIAN)
    with pytest.raises(InputError) as told:
        sf.publish(tmp_path / "rows.parquet", policy, engine="spark")
    with pytest.raises(InputError) as expected:
        sf.publish(tmp_path / "rows.parquet", policy, engine="disk", memory=64_000_000)
    assert str(told.value) == str(expected.value)
    assert "secret" not in str(told.value)


def test_a_task_whose_memory_is_full_says_what_to_do(spark, table, monkeypatch):
    monkeypatch.setattr("sfumato.engines.spark.engine.ShowSlice", lambda *_: FillsMemory())
    with pytest.raises(
        InputError, match=r"^The memory of a task on the cluster was full; give executors more"
    ):
        sf.publish(table, sf.Policy.parse(MONDRIAN), engine="spark")


def test_a_table_that_workers_do_not_find_is_named_and_what_to_do(spark, tmp_path, monkeypatch):
    path, usual = tmp_path / "rows.parquet", Jobs.with_slices
    pq.write_table(people(200), path)

    def hide(jobs, source):
        path.rename(tmp_path / "hidden")
        return usual(jobs, source)

    monkeypatch.setattr(Jobs, "with_slices", hide)
    said = f"On a worker of the cluster {path} cannot be read: No such file or directory. Put the table where"
    with pytest.raises(TableError, match=f"^{re.escape(said)}"):
        sf.publish(path, sf.Policy.parse(MONDRIAN), engine="spark")


def test_a_column_that_some_files_lack_is_named(spark, tmp_path):
    pq.write_table(people(200), tmp_path / "a.parquet")
    pq.write_table(people(200).drop_columns(["ward"]), tmp_path / "b.parquet")
    with pytest.raises(InputError, match="has other columns than"):
        sf.publish(tmp_path, sf.Policy.parse(MONDRIAN), engine="spark")


def test_a_requirement_that_cannot_be_met_is_told_as_everywhere(spark, table):
    policy = sf.Policy.parse(ATTRIBUTES + "require: [k-anonymity: 5000]\n")
    with pytest.raises(PromiseError) as told:
        sf.publish(table, policy, engine="spark")
    with pytest.raises(PromiseError) as expected:
        sf.publish(table, policy, engine="memory")
    assert str(told.value) == str(expected.value)


def test_a_task_that_fails_otherwise_says_where_and_nothing_of_the_rows(spark, table, monkeypatch):
    monkeypatch.setattr("sfumato.engines.spark.engine.ShowSlice", lambda *_: Broken())
    with pytest.raises(InternalError, match=r"^A task on the cluster failed with ValueError \(") as told:
        sf.publish(table, sf.Policy.parse(MONDRIAN), engine="spark")
    assert "secret" not in str(told.value)
