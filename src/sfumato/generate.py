"""The synthetic tables of the papers, drawn in a stream: any number of rows, little memory.

The generator is that of Agrawal, Imielinski and Swami (1993) with the attributes of [LDR08, Table I]
and the labelling functions of [LDR08, Table II]. Rows are drawn in blocks of a fixed size, each from
its own generator, so that the same seed gives the same rows whatever the chunks, and a longer table
begins with the rows of a shorter one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from sfumato.errors import InputError, NotYet, did_you_mean
from sfumato.randomness import Random, fresh_seed, seeded_block
from sfumato.tables import replace_atomically

BLOCK_ROWS = 65_536
"""Rows per generator. A different size is a different table: it never changes."""

QUASI_IDENTIFIERS = (
    "salary", "commission", "age", "elevel", "car", "zipcode", "hvalue", "hyears", "loan",
)  # fmt: skip
AGRAWAL_SCHEMA = pa.schema([(name, pa.int64()) for name in QUASI_IDENTIFIERS] + [("class", pa.string())])

FUNCTIONS = ("C2",)
PLANNED_FUNCTIONS = ("C1", "C3", "C4", "C5", "C6", "C7", "C8", "C9", "C10", "R7", "R10")
SALARIES = ("uniform",)
PLANNED_SALARIES = ("normal",)

Columns = dict[str, NDArray[np.int64]]


def agrawal(
    n_rows: int,
    *,
    function: str = "C2",
    seed: int | None = None,
    salary: str = "uniform",
    vary_constants: bool = False,
    chunk_rows: int = 1_000_000,
) -> Iterator[pa.RecordBatch]:
    """Rows of the Agrawal generator, ``chunk_rows`` at a time; everything is checked before the first.

    >>> [batch.num_rows for batch in agrawal(25, seed=1, chunk_rows=10)]
    [10, 10, 5]
    """
    _check_count(n_rows, "The number of rows")
    _check_count(chunk_rows, "The number of rows per chunk")
    _check_word(function, "function", FUNCTIONS, PLANNED_FUNCTIONS)
    _check_word(salary, "distribution of salaries", SALARIES, PLANNED_SALARIES)
    if vary_constants:
        raise NotYet("Varying the constants of the labelling functions")
    if seed is not None and seed < 0:
        raise InputError("The seed must be a whole number of at least 0.")
    return _regroup(_blocks(n_rows, fresh_seed() if seed is None else seed), chunk_rows)


def write_agrawal(
    n_rows: int,
    path: str | PathLike[str],
    *,
    function: str = "C2",
    seed: int | None = None,
    salary: str = "uniform",
    vary_constants: bool = False,
    chunk_rows: int = 1_000_000,
    progress: Callable[[int], None] | None = None,
) -> None:
    """Stream :func:`agrawal` to a .csv, .csv.gz or .parquet file, which appears when it is complete.

    ``progress`` is called with the number of rows of each chunk once it is written.
    """
    path = Path(path)
    write = _writer_of(path)
    batches = agrawal(
        n_rows,
        function=function,
        seed=seed,
        salary=salary,
        vary_constants=vary_constants,
        chunk_rows=chunk_rows,
    )
    with replace_atomically(path) as unfinished:
        write(_reporting(batches, progress), Path(unfinished))


def draw_quasi_identifiers(n_rows: int, random: Random) -> Columns:
    """The nine attributes of [LDR08, Table I], independent but for commission and hvalue.

    Departs from the paper: amounts that it calls uniform in a range are whole numbers here, uniform on
    the whole numbers of the range; hvalue is rounded to one.
    """
    salary = random.integers(20_000, 150_000, n_rows, endpoint=True)
    commission = random.integers(10_000, 75_000, n_rows, endpoint=True)
    commission[salary >= 75_000] = 0
    age = random.integers(20, 80, n_rows, endpoint=True)
    elevel = random.integers(0, 4, n_rows, endpoint=True)
    car = random.integers(1, 20, n_rows, endpoint=True)
    zipcode = random.integers(0, 9, n_rows, endpoint=True)
    h = 0.5 + random.random(n_rows)
    hvalue = np.rint(zipcode * h * 100_000).astype(np.int64)
    hyears = random.integers(1, 30, n_rows, endpoint=True)
    loan = random.integers(0, 500_000, n_rows, endpoint=True)
    drawn = (salary, commission, age, elevel, car, zipcode, hvalue, hyears, loan)
    return dict(zip(QUASI_IDENTIFIERS, drawn, strict=True))


def is_class_a(columns: Columns) -> NDArray[np.bool_]:
    """Function C2 [LDR08, Table II]: a band of salaries that depends on age, both ends included.

    >>> rows = {"age": np.array([39, 40, 60]), "salary": np.array([100_000, 74_999, 25_000])}
    >>> is_class_a(rows)
    array([ True, False,  True])
    """
    age, salary = columns["age"], columns["salary"]
    young, old = age < 40, age >= 60
    low = np.where(young, 50_000, np.where(old, 25_000, 75_000))
    return np.asarray((low <= salary) & (salary <= low + 50_000))


def _blocks(n_rows: int, seed: int) -> Iterator[pa.RecordBatch]:
    """Whole blocks are drawn even where fewer rows are wanted, so that the rest never shows."""
    for number, start in enumerate(range(0, n_rows, BLOCK_ROWS)):
        columns = draw_quasi_identifiers(BLOCK_ROWS, seeded_block(seed, number))
        label = pa.DictionaryArray.from_arrays((~is_class_a(columns)).astype(np.int8), ["A", "B"])
        arrays = [pa.array(column) for column in columns.values()] + [label.cast(pa.string())]
        yield pa.RecordBatch.from_arrays(arrays, schema=AGRAWAL_SCHEMA).slice(0, n_rows - start)


def _regroup(blocks: Iterator[pa.RecordBatch], chunk_rows: int) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of ``chunk_rows``; the last one may be shorter."""
    parts: list[pa.RecordBatch] = []
    room = chunk_rows
    for block in blocks:
        start = 0
        while start < block.num_rows:
            parts.append(block.slice(start, room))
            start += parts[-1].num_rows
            room -= parts[-1].num_rows
            if room == 0:
                yield _join(parts)
                parts, room = [], chunk_rows
    if parts:
        yield _join(parts)


def _join(parts: list[pa.RecordBatch]) -> pa.RecordBatch:
    return pa.Table.from_batches(parts).combine_chunks().to_batches()[0]


def _reporting(
    batches: Iterator[pa.RecordBatch], progress: Callable[[int], None] | None
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch
        if progress is not None:
            progress(batch.num_rows)


_Writer = Callable[[Iterator[pa.RecordBatch], Path], None]


def _writer_of(path: Path) -> _Writer:
    writers: dict[str, _Writer] = {".csv": _write_csv, ".csv.gz": _write_csv_gz, ".parquet": _write_parquet}
    for ending, writer in writers.items():
        if path.name.lower().endswith(ending):
            return writer
    raise InputError(f"Cannot tell the format of {path.name!r}: let the name end in {', '.join(writers)}.")


def _write_csv(batches: Iterator[pa.RecordBatch], path: Path) -> None:
    with pa.OSFile(str(path), "wb") as file:
        _write_csv_rows(batches, file)


def _write_csv_gz(batches: Iterator[pa.RecordBatch], path: Path) -> None:
    with pa.OSFile(str(path), "wb") as file, pa.CompressedOutputStream(file, "gzip") as compressed:
        _write_csv_rows(batches, compressed)


def _write_csv_rows(batches: Iterator[pa.RecordBatch], file: pa.NativeFile) -> None:
    """Without any quotes: no name and no cell of this table needs them."""
    file.write((",".join(AGRAWAL_SCHEMA.names) + "\n").encode())
    options = pyarrow.csv.WriteOptions(include_header=False, quoting_style="none")
    with pyarrow.csv.CSVWriter(file, AGRAWAL_SCHEMA, write_options=options) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _write_parquet(batches: Iterator[pa.RecordBatch], path: Path) -> None:
    with pyarrow.parquet.ParquetWriter(path, AGRAWAL_SCHEMA) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _check_count(count: int, what: str) -> None:
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise InputError(f"{what} must be a whole number of at least 1.")


def _check_word(word: str, what: str, known: tuple[str, ...], planned: tuple[str, ...]) -> None:
    if word in known:
        return
    if word in planned:
        raise NotYet(f"The {what} {word!r}")
    hint = did_you_mean(word, (*known, *planned)) or did_you_mean(word.upper(), (*known, *planned))
    raise InputError(f"There is no {what} {word!r}; there is {', '.join(known)}.{hint}")
