"""The synthetic tables of the papers, drawn in a stream: any number of rows, little memory.

The generator is that of Agrawal, Imielinski and Swami (1993) with the attributes of [LDR08, Table I]
and the functions of :mod:`sfumato.examples.agrawal_functions`. Rows are drawn in blocks of a fixed size, each from
its own generator, so that the same seed gives the same rows whatever the chunks, and a longer table
begins with the rows of a shorter one. The nine attributes of a seed are the same whatever the function.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from sfumato.errors import InputError, did_you_mean
from sfumato.examples.agrawal_functions import (
    FUNCTIONS,
    NUMBERS,
    PRINTED,
    Columns,
    Constants,
    draw_constants,
    label_rows,
)
from sfumato.randomness import Random, fresh_seed, seeded_block
from sfumato.table.files import replace_atomically

BLOCK_ROWS = 65_536
"""Rows per generator. A different size is a different table: it never changes."""

QUASI_IDENTIFIERS = (
    "salary", "commission", "age", "elevel", "car", "zipcode", "hvalue", "hyears", "loan",
)  # fmt: skip
_ATTRIBUTE_FIELDS = [(name, pa.int64()) for name in QUASI_IDENTIFIERS]
AGRAWAL_SCHEMA = pa.schema([*_ATTRIBUTE_FIELDS, ("class", pa.string())])
"""The columns of a table labelled by C1 to C10; R7 and R10 give a number for a class."""

SALARIES = ("uniform", "normal")
SALARY_RANGE = (20_000, 150_000)
NORMAL_SALARY = (85_000, math.sqrt(1.1e8))
"""Mean and standard deviation. [LDR08, section 6.6] gives the variance; the mean is the middle of the range."""

_CONSTANTS_BLOCK = 2**40
"""The block that the constants are drawn from: beyond the last block of rows of any table."""


def agrawal(
    n_rows: int,
    *,
    function: str = "C2",
    seed: int | None = None,
    salary: str = "uniform",
    vary_constants: bool = False,
    constants: Constants | None = None,
    chunk_rows: int = 1_000_000,
) -> Iterator[pa.RecordBatch]:
    """Rows of the Agrawal generator, ``chunk_rows`` at a time; everything is checked before the first.

    ``vary_constants`` draws the constants of C1 to C6 once for the table, from its seed; ``constants``
    gives them, so that several tables can share them, as a training and a test table do.

    >>> [batch.num_rows for batch in agrawal(25, seed=1, chunk_rows=10)]
    [10, 10, 5]
    """
    _check_count(n_rows, "The number of rows")
    _check_count(chunk_rows, "The number of rows per chunk")
    _check_word(function, "function", FUNCTIONS)
    _check_word(salary, "distribution of salaries", SALARIES)
    if seed is not None and seed < 0:
        raise InputError("The seed must be a whole number of at least 0.")
    if constants is not None and (vary_constants or function not in PRINTED):
        why = "drawn at random and given" if vary_constants else f"given to {function}, which has none"
        raise InputError(f"The constants cannot be {why}.")
    seed = fresh_seed() if seed is None else seed
    if vary_constants:
        constants = draw_constants(function, seeded_block(seed, _CONSTANTS_BLOCK))
    return _regroup(_blocks(n_rows, seed, salary, function, constants), chunk_rows)


def agrawal_schema(function: str) -> pa.Schema:
    """The columns of a table with this function's labels."""
    kind = pa.float64() if function in NUMBERS else pa.string()
    return pa.schema([*_ATTRIBUTE_FIELDS, ("class", kind)])


def write_agrawal(
    n_rows: int,
    path: str | PathLike[str],
    *,
    function: str = "C2",
    seed: int | None = None,
    salary: str = "uniform",
    vary_constants: bool = False,
    chunk_rows: int = 1_000_000,
    overwrite: bool = True,
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
    with replace_atomically(path, overwrite=overwrite) as unfinished:
        write(_report_chunks(batches, progress), agrawal_schema(function), Path(unfinished))


def draw_quasi_identifiers(n_rows: int, random: Random, *, salary: str = "uniform") -> Columns:
    """The nine attributes of [LDR08, Table I], independent but for commission and hvalue.

    Departs from the paper: amounts that it calls uniform in a range are whole numbers here, uniform on
    the whole numbers of the range; hvalue is rounded to one. Normal salaries are rounded too, and kept
    within the range of the uniform ones, which is six standard deviations to each side.
    """
    earned = _draw_salaries(n_rows, random, salary)
    commission = random.integers(10_000, 75_000, n_rows, endpoint=True)
    commission[earned >= 75_000] = 0
    age = random.integers(20, 80, n_rows, endpoint=True)
    elevel = random.integers(0, 4, n_rows, endpoint=True)
    car = random.integers(1, 20, n_rows, endpoint=True)
    zipcode = random.integers(0, 9, n_rows, endpoint=True)
    h = 0.5 + random.random(n_rows)
    hvalue = np.rint(zipcode * h * 100_000).astype(np.int64)
    hyears = random.integers(1, 30, n_rows, endpoint=True)
    loan = random.integers(0, 500_000, n_rows, endpoint=True)
    drawn = (earned, commission, age, elevel, car, zipcode, hvalue, hyears, loan)
    return dict(zip(QUASI_IDENTIFIERS, drawn, strict=True))


def _draw_salaries(n_rows: int, random: Random, law: str) -> NDArray[np.int64]:
    if law == "uniform":
        return random.integers(*SALARY_RANGE, n_rows, endpoint=True)
    return np.rint(random.normal(*NORMAL_SALARY, n_rows)).astype(np.int64).clip(*SALARY_RANGE)


def _blocks(
    n_rows: int, seed: int, salary: str, function: str, constants: Constants | None
) -> Iterator[pa.RecordBatch]:
    """Whole blocks are drawn even where fewer rows are wanted, so that the rest never shows."""
    schema = agrawal_schema(function)
    for number, start in enumerate(range(0, n_rows, BLOCK_ROWS)):
        columns = draw_quasi_identifiers(BLOCK_ROWS, seeded_block(seed, number), salary=salary)
        cells = [pa.array(column) for column in columns.values()]
        cells.append(as_column(label_rows(function, columns, constants)))
        yield pa.RecordBatch.from_arrays(cells, schema=schema).slice(0, n_rows - start)


def as_column(label: NDArray[np.bool_] | NDArray[np.float64]) -> pa.Array:
    """The cells of ``class``: A or B, or the number."""
    if label.dtype != np.bool_:
        return pa.array(label)
    return pa.DictionaryArray.from_arrays(np.logical_not(label).astype(np.int8), ["A", "B"]).cast(pa.string())


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


def _report_chunks(
    batches: Iterator[pa.RecordBatch], progress: Callable[[int], None] | None
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch
        if progress is not None:
            progress(batch.num_rows)


_Writer = Callable[[Iterator[pa.RecordBatch], pa.Schema, Path], None]


def _writer_of(path: Path) -> _Writer:
    writers: dict[str, _Writer] = {".csv": _write_csv, ".csv.gz": _write_csv_gz, ".parquet": _write_parquet}
    for ending, writer in writers.items():
        if path.name.lower().endswith(ending):
            return writer
    raise InputError(f"Cannot tell the format of {path.name!r}: let the name end in {', '.join(writers)}.")


def _write_csv(batches: Iterator[pa.RecordBatch], schema: pa.Schema, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as file:
        _write_csv_rows(batches, schema, file)


def _write_csv_gz(batches: Iterator[pa.RecordBatch], schema: pa.Schema, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as file, pa.CompressedOutputStream(file, "gzip") as compressed:
        _write_csv_rows(batches, schema, compressed)


def _write_csv_rows(batches: Iterator[pa.RecordBatch], schema: pa.Schema, file: pa.NativeFile) -> None:
    """Without any quotes: no name and no cell of this table needs them."""
    file.write((",".join(schema.names) + "\n").encode())
    options = pyarrow.csv.WriteOptions(include_header=False, quoting_style="none")
    with pyarrow.csv.CSVWriter(file, schema, write_options=options) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _write_parquet(batches: Iterator[pa.RecordBatch], schema: pa.Schema, path: Path) -> None:
    with pyarrow.parquet.ParquetWriter(path, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _check_count(count: int, what: str) -> None:
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise InputError(f"{what} must be a whole number of at least 1.")


def _check_word(word: str, what: str, known: tuple[str, ...]) -> None:
    if word not in known:
        hint = did_you_mean(word, known) or did_you_mean(word.upper(), known)
        raise InputError(f"There is no {what} {word!r}; there is {', '.join(known)}.{hint}")
