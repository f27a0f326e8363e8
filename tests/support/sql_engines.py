"""Databases that run what ``verify --sql`` prints: DuckDB in memory, and a PostgreSQL server of the tests' own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import duckdb
import pyarrow as pa
import pytest
from postgres import running_server


class Database(Protocol):
    """One table ``release``, and statements over it."""

    dialect: str

    def load(self, rows: pa.Table) -> None: ...

    def run(self, statement: str) -> list[tuple[Any, ...]]: ...


class DuckDB:
    dialect = "duckdb"

    def __init__(self) -> None:
        self._base = duckdb.connect()

    def load(self, rows: pa.Table) -> None:
        self._base.register("rows_to_load", rows)
        self._base.execute("CREATE OR REPLACE TABLE release AS SELECT * FROM rows_to_load")

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        return self._base.execute(statement).fetchall()


class Postgres:
    dialect = "postgres"

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def load(self, rows: pa.Table) -> None:
        with self._connection.cursor() as cursor:
            cursor.adbc_ingest("release", decoded(rows), mode="replace")
        self._connection.commit()

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        with self._connection.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchall()


def decoded(rows: pa.Table) -> pa.Table:
    """The rows without dictionaries, which PostgreSQL does not know."""
    fields = [
        pa.field(field.name, field.type.value_type if pa.types.is_dictionary(field.type) else field.type)
        for field in rows.schema
    ]
    return rows.cast(pa.schema(fields))


@contextmanager
def databases() -> Iterator[Sequence[Database]]:
    dbapi = pytest.importorskip("adbc_driver_postgresql.dbapi")
    with running_server() as address, dbapi.connect(address) as connection:
        yield [DuckDB(), Postgres(connection)]
