"""A table of Spark SQL that answers statements: what ``verify`` asks of published rows."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from sfumato.engines.spark.jobs import Jobs, explain, to_pattern
from sfumato.engines.spark.session import start_session

SETTINGS = {"spark.sql.ansi.enabled": "true", "spark.sql.caseSensitive": "true"}
"""A cell that cannot be read, and a number that is too large, are errors; columns that differ in case are two."""


class SparkTable:
    """Parquet files, or a DataFrame, under a name of their own in a session, as long as it is open."""

    dialect = "spark"

    def __init__(self, table: Any) -> None:
        self.given = table
        self.session = start_session(table)
        self.table = f"sfumato_{uuid.uuid4().hex}"
        self._jobs = Jobs(self.session, Path())
        self._before: dict[str, str | None] = {}

    def __enter__(self) -> Self:
        self._jobs.__enter__()
        for key, value in SETTINGS.items():
            self._before[key] = self.session.conf.get(key, None)
            self.session.conf.set(key, value)
        try:
            self._open().createOrReplaceTempView(self.table)
        except BaseException as error:  # noqa: BLE001 - raised again, in other words
            self.__exit__()
            raise explain(error) from None
        return self

    def _open(self) -> Any:
        if hasattr(self.given, "sparkSession"):
            return self.given
        return self.session.read.parquet(*(to_pattern(path.resolve()) for path in self.given))

    def __exit__(self, *_: object) -> None:
        self.session.catalog.dropTempView(self.table)
        for key, value in self._before.items():
            if value is None:
                self.session.conf.unset(key)
            else:
                self.session.conf.set(key, value)
        self._jobs.__exit__()

    def ask(self, statement: str) -> pa.Table:
        """The answer to a statement."""
        return self._jobs.run(lambda: self.session.sql(statement).toArrow())
