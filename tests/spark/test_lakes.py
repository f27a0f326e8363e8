"""Tables of a lake: those of a catalog, folders and globs of Parquet files, Delta, Iceberg, and any stream of Arrow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from spark_people import MONDRIAN, people, rows_of

import sfumato as sf
from sfumato.errors import TableError

POLICY = sf.Policy.parse(MONDRIAN)
ENGINES = {"memory": {}, "disk": {"memory": 64_000_000}, "spark": {}}


def live_rows() -> pa.Table:
    """What is left of the people in the tables below: rows were appended, and the young were deleted."""
    rows = people(1500)
    return rows.filter(pc.greater_equal(rows["age"], 10))


@pytest.fixture(scope="module")
def expected() -> list[str]:
    return rows_of(sf.publish(live_rows(), POLICY, engine="disk", memory=64_000_000, seed=1))


@pytest.fixture(scope="module")
def delta(tmp_path_factory) -> Callable[[], Any]:
    """What opens a small Delta table: two commits, then a delete."""
    lake = pytest.importorskip("deltalake", reason="needs Delta: pip install deltalake")
    path = str(tmp_path_factory.mktemp("lake") / "stays")
    rows = people(1500)
    lake.write_deltalake(path, rows.slice(0, 700))
    lake.write_deltalake(path, rows.slice(700), mode="append")
    lake.DeltaTable(path).delete("age < 10")
    assert len(list(Path(path).glob("*.parquet"))) == 3  # what was deleted is still there

    def read() -> Any:
        return lake.QueryBuilder().register("t", lake.DeltaTable(path)).execute("select * from t")

    return read


@pytest.fixture(scope="module")
def iceberg(tmp_path_factory) -> Callable[[], Any]:
    """What opens a small Iceberg table: two commits, then a delete."""
    catalogs = pytest.importorskip("pyiceberg.catalog", reason="needs Iceberg: pip install pyiceberg")
    pytest.importorskip("sqlalchemy", reason="needs a catalog: pip install 'pyiceberg[sql-sqlite]'")
    folder = tmp_path_factory.mktemp("lake")
    catalog = catalogs.load_catalog(
        "tests", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=folder.as_uri()
    )
    catalog.create_namespace("hospital")
    rows = people(1500)
    table = catalog.create_table("hospital.stays", schema=rows.schema)
    table.append(rows.slice(0, 700))
    table.append(rows.slice(700))
    table.delete("age < 10")
    return lambda: catalog.load_table("hospital.stays").scan().to_arrow_batch_reader()


@pytest.mark.parametrize("engine", ENGINES)
def test_the_live_rows_of_a_delta_table_are_published(engine, delta, expected, spark):
    release = sf.publish(delta(), POLICY, engine=engine, seed=1, **ENGINES[engine])
    assert rows_of(release) == expected


@pytest.mark.parametrize("engine", ENGINES)
def test_the_live_rows_of_an_iceberg_table_are_published(engine, iceberg, expected, spark):
    release = sf.publish(iceberg(), POLICY, engine=engine, seed=1, **ENGINES[engine])
    assert rows_of(release) == expected


@pytest.mark.parametrize("engine", ENGINES)
def test_a_stream_that_can_be_read_once_will_do(engine, expected, spark):
    rows = live_rows()
    stream = pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches(max_chunksize=300))
    release = sf.publish(stream, POLICY, engine=engine, seed=1, **ENGINES[engine])
    assert rows_of(release) == expected


@pytest.mark.parametrize("engine", ["disk", "spark"])
def test_a_stream_that_breaks_off_says_nothing_of_the_rows(engine, spark):
    rows = live_rows()

    def batches() -> Any:
        yield rows.to_batches()[0]
        raise ValueError("secret")

    stream = pa.RecordBatchReader.from_batches(rows.schema, batches())
    with pytest.raises(
        TableError,
        match=r"^pyarrow\.RecordBatchReader cannot be read as an Arrow table; does its query run\?$",
    ):
        sf.publish(stream, POLICY, engine=engine, **ENGINES[engine])


@pytest.mark.parametrize("engine", ENGINES)
def test_a_stream_without_rows_is_refused(engine, spark):
    stream = pa.RecordBatchReader.from_batches(people(1).schema, [])
    with pytest.raises(TableError, match="has no rows"):
        sf.publish(stream, POLICY, engine=engine, **ENGINES[engine])


# ---- what Spark and the file system have -----------------------------------------------------------------------------


def test_a_table_of_the_catalog_is_published(spark, tmp_path, expected):
    pq.write_table(live_rows(), tmp_path / "rows.parquet")
    spark.sql(f"create database if not exists lake location '{(tmp_path / 'lake').as_uri()}'")
    try:
        spark.read.parquet(str(tmp_path / "rows.parquet")).write.saveAsTable("lake.stays")
        release = sf.publish(spark.table("lake.stays"), POLICY, seed=1)
        assert rows_of(release) == expected
        assert release.certificate.figures["io"]["engine"] == "spark"
    finally:
        spark.sql("drop database lake cascade")


@pytest.mark.parametrize("which", ["", "*.parquet", "**/*.parquet"])
def test_a_folder_of_parquet_files_and_a_glob_of_them_are_tables(which, spark, tmp_path, expected):
    rows, folder = live_rows(), tmp_path / "lake"
    folder.mkdir()
    for number, start in enumerate(range(0, len(rows), 400)):
        pq.write_table(rows.slice(start, 400), folder / f"part-{number}.parquet", row_group_size=150)
    release = sf.publish(folder / which, POLICY, engine="spark", seed=1)
    assert rows_of(release) == expected
