"""Tables of databases: ``sqlite:///file.db#table``, ``duckdb:///file.db#table``, ``postgresql://host/db#table``.

A database is opened for reading only, and one query reads the table, so that all of it is of one moment. Names are
quoted as the database wants it. What a driver says of an error may hold a password or a cell, and is dropped.

An address may hold a password. It is handed to the driver and to nobody else: messages show ``Address.shown``.
"""

from __future__ import annotations

import importlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.errors import MissingExtra, SfumatoError, TableError, did_you_mean

BATCH_ROWS = 1 << 16
FILES = ("sqlite", "duckdb")
SCHEMES = (*FILES, "postgresql", "postgres")
FORMS = "sqlite:///file.db#table, duckdb:///file.db#table or postgresql://host/database#table"
MOST_NAMES = 10

_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_PLACE = re.compile(r"[\w.,\-\[\]]*(:\d+)?(/[\w.\-]*)?")
_COLLAPSED = re.compile(rf"({'|'.join(SCHEMES)}):/(?!/)")  # what a Path makes of an address

REASONS = {
    "password authentication failed": "the user or the password is refused",
    "no password supplied": "it asks for a password",
    "does not exist": "there is no such database or user",
    "permission denied": "the user may not read it",
    "connection refused": "no server answers there",
    "could not translate host name": "there is no such host",
    "timeout": "no server answers there",
    "lock": "another program holds it open",
}
"""Words of drivers' errors, and what is said of them: the errors themselves may hold passwords and cells."""


def is_address(text: str) -> bool:
    """Whether a text is an address such as ``sqlite:///file.db#table`` rather than a path.

    >>> is_address("sqlite:///a.db#t"), is_address("a.csv"), is_address("https://example.org")
    (True, False, True)
    """
    return _ADDRESS.match(text) is not None


def without_secrets(text: str) -> str:
    """An address as it may be shown, without user and password; any other text as it is.

    >>> without_secrets("postgresql://me:secret@db.example.org/clinic?sslmode=require#people")
    'postgresql://db.example.org/clinic#people'
    """
    if _COLLAPSED.match(text):
        return text.partition(":")[0] + "://..."
    if not is_address(text):
        return text
    scheme, _, rest = text.partition("://")
    if scheme in FILES:
        return text
    before, _, table = rest.rpartition("#") if "#" in rest else (rest, "", "")
    place = before.rpartition("@")[2].partition("?")[0]
    if "@" in table or not _PLACE.fullmatch(place):  # perhaps a letter of the password was taken for its end
        return f"{scheme}://..."
    return f"{scheme}://{place}{'#' if table else ''}{table}"


@dataclass(frozen=True, slots=True)
class Address:
    """Where a table of a database is. Its representation has no password."""

    scheme: str
    shown: str
    table: str
    secret: str = field(repr=False)  # what the driver is given

    @classmethod
    def parse(cls, text: str) -> Address:
        """The parts of an address; an error that quotes nothing of it but the scheme."""
        scheme = text.partition("://")[0].lower()
        if scheme not in SCHEMES:
            raise TableError(
                f"Tables are not read from {scheme}:// addresses; those of a database are {FORMS}."
            )
        before, _, fragment = text.partition("#")
        address = cls(scheme, without_secrets(text), unquote(fragment), before)
        return address._file() if scheme in FILES else address._server()

    def _file(self) -> Address:
        path = self.secret.partition(":///")[2]
        if not path:
            raise TableError(f"The file of a database is named after three slashes: {FORMS}.")
        if not Path(path).is_file():
            raise TableError(f"There is no database file {path}; check the path.")
        return Address(self.scheme, self.shown, self.table, path)

    def _server(self) -> Address:
        try:
            is_right = not self.shown.endswith("...") and urlsplit(self.secret).port != 0
        except ValueError:
            is_right = False
        if not is_right:
            raise TableError(
                f"The address {self.scheme}://... is not written well; it is postgresql://user@host:port/database#table, "
                "and in a password @ : / # ? are written as %40 %3A %2F %23 %3F."
            )
        return self


@dataclass(frozen=True, slots=True)
class DatabaseTable:
    """A table of a database: its columns, how many rows it has now, and all of its rows as often as one likes."""

    address: Address
    names: tuple[str, ...]
    n_rows: int

    def batches(self, names: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """One query: all rows of these columns, or of all, some at a time."""
        with _connect(self.address) as database:
            table = _find_table(database, self.address)
            known = dict(database.columns(table))
            yield from database.rows(table, {name: known[name] for name in names or self.names})


def look(text: str) -> DatabaseTable:
    """The table behind an address, without reading its rows."""
    address = Address.parse(text)
    with _connect(address) as database:
        table = _find_table(database, address)
        names = tuple(name for name, _ in database.columns(table))
        return DatabaseTable(address, names, database.n_rows(table))


Name = tuple[str, ...]
"""A table's name, with that of its schema before it if that was given."""


def _find_table(database: Database, address: Address) -> Name:
    """The table that an address names; a name may hold dots, or have the name of a schema before it."""
    known = database.tables()
    first, _, second = address.table.partition(".")
    for name in ((address.table,), (first, second)):
        for schema, table, is_default in known:
            if name == (schema, table) or (name == (table,) and is_default):
                return schema, table
    names = [table if is_default else f"{schema}.{table}" for schema, table, is_default in known]
    if not address.table:
        listed = ", ".join(names[:MOST_NAMES]) + (", ..." if len(names) > MOST_NAMES else "")
        raise TableError(
            f"Say which table of {address.shown} to read, after a #"
            + (f": {listed}." if names else "; it has none.")
        )
    raise TableError(
        f"{address.shown.partition('#')[0]} has no table {address.table!r}.{did_you_mean(address.table, names)}"
    )


@contextmanager
def _connect(address: Address) -> Iterator[Database]:
    """A connection; every error of a driver as one sentence."""
    connect: Callable[[Address], AbstractContextManager[Database]] = {
        "sqlite": _sqlite,
        "duckdb": _duckdb,
    }.get(address.scheme, _postgresql)
    try:
        with connect(address) as database:
            yield database
    except SfumatoError:
        raise
    except ImportError:
        raise MissingExtra("sql", "Reading a table of a database") from None
    except GeneratorExit:
        raise
    except Exception as error:  # noqa: BLE001 - drivers raise what they like, and quote cells and passwords
        said = str(error).lower()
        reason = next((reason for words, reason in REASONS.items() if words in said), None)
        why = "; is it there, is it a database, and may it be read?" if reason is None else f": {reason}."
        raise TableError(f"{address.shown} cannot be read{why}") from None


def _quote(*names: str) -> str:
    """Names as a database reads them, whatever they hold.

    >>> _quote("main", 'a"; drop table b; --')
    '"main"."a""; drop table b; --"'
    """
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)


class Database(ABC):
    """A database that is open for reading."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    def ask(self, query: str, *values: str) -> list[tuple[Any, ...]]:
        """The rows of a small answer."""
        with closing(self.connection.cursor()) as cursor:
            cursor.execute(query, values)
            return [tuple(row) for row in cursor.fetchall()]

    def n_rows(self, table: Name) -> int:
        return int(self.ask(f"SELECT count(*) FROM {_quote(*table)}")[0][0])  # noqa: S608 - quoted

    @abstractmethod
    def tables(self) -> list[tuple[str, str, bool]]:
        """Schema and name of each table, and whether it is known without its schema."""

    @abstractmethod
    def columns(self, table: Name) -> list[tuple[str, str]]:
        """Name and type of each column."""

    def rows(self, table: Name, columns: dict[str, str]) -> Iterator[pa.RecordBatch]:
        """All rows of some columns, given with their types."""
        chosen = ", ".join(
            f"{self.cell(_quote(name), kind)} AS {_quote(name)}" for name, kind in columns.items()
        )
        yield from self.stream(f"SELECT {chosen} FROM {_quote(*table)}")  # noqa: S608 - quoted

    def cell(self, column: str, kind: str) -> str:  # noqa: ARG002 - most types are selected as they are
        """A column as it is selected."""
        return column

    def stream(self, query: str) -> Iterator[pa.RecordBatch]:
        """The rows of a query, some at a time."""
        with closing(self.connection.cursor()) as cursor:
            cursor.execute(query)
            with closing(cursor.fetch_record_batch()) as reader:
                yield from reader


# ---- SQLite -----------------------------------------------------------------------------------------


class Sqlite(Database):
    """Any cell of SQLite may be of any type, so each comes as its own text."""

    def tables(self) -> list[tuple[str, str, bool]]:
        found = self.ask("SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name")
        return [("main", name, True) for (name,) in found if not name.startswith("sqlite_")]

    def columns(self, table: Name) -> list[tuple[str, str]]:
        return [(name, "") for (name,) in self.ask("SELECT name FROM pragma_table_info(?)", table[1])]

    def rows(self, table: Name, columns: dict[str, str]) -> Iterator[pa.RecordBatch]:
        """Three columns for each, of which the driver knows the type: the type of the cell, its text, its real number.

        The driver would take the type of a column from its first rows and stop at a cell of another; and SQLite's own
        text of a real number has 15 digits only.
        """
        chosen = [part for name in columns for part in _type_text_and_real(_quote(name))]
        for batch in filter(len, self.stream(f"SELECT {', '.join(chosen)} FROM {_quote(*table)}")):  # noqa: S608 - quoted
            cells = zip(batch.columns[::3], batch.columns[1::3], batch.columns[2::3], strict=True)
            yield pa.RecordBatch.from_arrays([_one_text(*cell) for cell in cells], list(columns))


def _type_text_and_real(column: str) -> tuple[str, str, str]:
    """The three expressions that ``Sqlite.rows`` selects of a column."""
    text = (
        f"CASE typeof({column}) WHEN 'null' THEN '' WHEN 'real' THEN '' WHEN 'blob' THEN hex({column}) "
        f"ELSE CAST({column} AS TEXT) END"
    )
    return f"typeof({column})", text, f"CASE typeof({column}) WHEN 'real' THEN {column} ELSE 0.0 END"


def _one_text(kind: pa.Array, text: pa.Array, real: pa.Array) -> pa.Array:
    """Each cell as text: real numbers as short as they can be told apart, whole ones as whole."""
    words = pc.if_else(pc.equal(kind, "null"), None, text)
    is_real = pc.equal(kind, "real")
    if not pc.any(is_real, min_count=0).as_py():
        return words
    whole = pc.cast(real, pa.int64(), safe=False)
    is_whole = pc.and_(
        pc.equal(pc.cast(whole, pa.float64(), safe=False), real), pc.less(pc.abs(real), 2.0**53)
    )
    numbers = pc.if_else(is_whole, pc.cast(whole, pa.string()), pc.cast(real, pa.string()))
    return pc.if_else(is_real, numbers, words)


@contextmanager
def _sqlite(address: Address) -> Iterator[Database]:
    dbapi = importlib.import_module("adbc_driver_sqlite.dbapi")
    place = quote(str(Path(address.secret).resolve()))
    with closing(dbapi.connect(f"file:{place}?mode=ro")) as connection:
        yield Sqlite(connection)


# ---- DuckDB -----------------------------------------------------------------------------------------


class DuckDB(Database):
    """A file of DuckDB."""

    def tables(self) -> list[tuple[str, str, bool]]:
        found = self.ask("SELECT table_schema, table_name FROM information_schema.tables ORDER BY 1, 2")
        return [(schema, name, schema == "main") for schema, name in found]

    def columns(self, table: Name) -> list[tuple[str, str]]:
        return self.ask(
            "SELECT column_name, data_type FROM information_schema.columns "
            "WHERE table_schema = ? AND table_name = ? ORDER BY ordinal_position",
            *table,
        )

    def cell(self, column: str, kind: str) -> str:
        """Types whose Arrow form is not read here as their text; others as they are."""
        comes_as_text = kind.startswith(("HUGEINT", "UHUGEINT", "UUID", "BIT", "TIME", "INTERVAL", "BIGNUM"))
        return f"CAST({column} AS VARCHAR)" if comes_as_text and "TIMESTAMP" not in kind else column

    def stream(self, query: str) -> Iterator[pa.RecordBatch]:
        with closing(self.connection.cursor()) as cursor:
            relation = cursor.sql(query)
            # before DuckDB 1.4 it has the other name
            read = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
            with closing(read(BATCH_ROWS)) as reader:
                yield from reader


@contextmanager
def _duckdb(address: Address) -> Iterator[Database]:
    duckdb = importlib.import_module("duckdb")
    nothing_else = {"enable_external_access": "false", "python_enable_replacements": "false"}
    with closing(duckdb.connect(address.secret, read_only=True, config=nothing_else)) as connection:
        yield DuckDB(connection)


# ---- PostgreSQL -------------------------------------------------------------------------------------


class PostgreSQL(Database):
    """A database on a server of PostgreSQL."""

    def tables(self) -> list[tuple[str, str, bool]]:
        found = self.ask(
            "SELECT n.nspname::text, c.relname::text, pg_table_is_visible(c.oid) FROM pg_class c "
            "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'v', 'm', 'p', 'f') "
            "AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%' ORDER BY 1, 2"
        )
        return [(schema, name, is_visible) for schema, name, is_visible in found]

    def columns(self, table: Name) -> list[tuple[str, str]]:
        return self.ask(
            "SELECT a.attname::text, t.typname::text FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid "
            "JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE n.nspname = $1 AND c.relname = $2 AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum",
            *table,
        )

    def cell(self, column: str, kind: str) -> str:
        """Types that Arrow has, as they are; others (numeric, enums, uuid, ...) as their text."""
        if kind in ("date", "timestamp", "timestamptz"):  # Arrow has no infinite ones
            return f"CASE WHEN isfinite({column}) THEN {column} END"
        own = ("int2", "int4", "int8", "float4", "float8", "bool", "text", "varchar", "bpchar")
        return column if kind in own else f"CAST({column} AS text)"


@contextmanager
def _postgresql(address: Address) -> Iterator[Database]:
    dbapi = importlib.import_module("adbc_driver_postgresql.dbapi")
    with closing(dbapi.connect(address.secret)) as connection:
        database = PostgreSQL(connection)
        with closing(connection.cursor()) as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        yield database
