"""Further rows that are recoded on a cluster: each task recodes its slice of the table, and writes one part."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.engines.spark.files import slice_source
from sfumato.engines.spark.session import start_jobs
from sfumato.engines.spark.tasks import Keyed
from sfumato.errors import InputError, TableError
from sfumato.policy.schema import Schema
from sfumato.progress import Progress, no_progress
from sfumato.recoding import tree as recodings
from sfumato.recoding.recoder import Applied, Recoder, Spelling
from sfumato.table import formulas
from sfumato.table.files import exchange, rename_new
from sfumato.table.reading import AS_USUAL, Reading, open_as
from sfumato.table.source import Source
from sfumato.table.spill import SharedSpill, Spill
from sfumato.table.write import ROW_GROUP, TableWriter


@dataclass(frozen=True, slots=True, eq=False)
class SpellSlice:
    """Look how the cells of a slice are spelled."""

    spelling: Spelling

    def __call__(self, given: tuple[Source, int]) -> Keyed:
        self.spelling.look_at(given[0])
        yield 0, self.spelling


@dataclass(frozen=True, slots=True, eq=False)
class RecodeSlice:
    """Recode the rows of a slice, and write them to a file."""

    recoding: Recoder
    spelling: Spelling
    spill: SharedSpill
    escapes: bool

    def __call__(self, given: tuple[Source, int]) -> Keyed:
        source, first_row = given
        path = self.spill.path("recoded").with_suffix(".parquet")
        left_out: list[int] = []
        with TableWriter(path, row_group=ROW_GROUP) as writer:
            for part in self.recoding.stream(
                source, self.spelling, first_row=first_row, left_out=left_out.append
            ):
                writer.append(formulas.escape(part) if self.escapes else part)
        yield 0, (path, Applied(writer.n_rows, sum(left_out)))


def apply_on_spark(
    folder: Path,
    schema: Schema,
    table: Any,
    out: Path,
    *,
    memory: int | None = None,
    reading: Reading = AS_USUAL,
    overwrite: bool = False,
    is_escaped: bool = False,
    progress: Progress = no_progress,
) -> Applied:
    """Recode a table with the recoding of a release folder into a folder of Parquet parts.

    The parts have the rows in the order of the table. The folder appears whole or not at all.
    """
    check_parts_target(out, overwrite=overwrite)
    recoding = recodings.read(folder.resolve(), schema, memory=memory)
    with Spill(out) as spill, start_jobs(table, spill.folder, progress=progress) as jobs:
        source = jobs.with_slices(open_as(table, schema, reading, lazy=True, spool=spill.path("stdin")))
        slices = slice_source(source, jobs.count_tasks(source.n_rows))
        spelling = Spelling.of(source, recoding.axes)
        if spelling.categories:
            for found in jobs.do(SpellSlice(spelling), slices, stage="reading"):
                spelling.merge(found)
        work = RecodeSlice(recoding, spelling, SharedSpill(spill.folder), is_escaped)
        parts = jobs.do(work, slices, stage="recoding")
        whole = spill.path("recoded")
        whole.mkdir()
        for number, (path, _) in enumerate(parts):
            path.rename(whole / f"part-{number:05}.parquet")
        _put_in_place(whole, out, overwrite=overwrite)
    return Applied(sum(told.n_rows for _, told in parts), sum(told.n_left_out for _, told in parts))


def check_parts_target(out: Path, *, overwrite: bool) -> None:
    """Raise unless a folder of parts may be written there. Ask before long work."""
    if out.suffix != ".parquet":
        raise InputError("On Spark --out is a folder of Parquet parts, and its name ends in .parquet.")
    if not out.resolve().parent.is_dir():
        raise TableError(
            f"{out} cannot be written: there is no folder {out.resolve().parent}; make it first."
        )
    if out.exists() and not overwrite:
        raise TableError(
            f"{out} already exists; name another folder, or allow it to be replaced (--overwrite)."
        )
    if out.exists() and not _is_parts(out):
        raise TableError(f"{out} is no folder of Parquet parts, so it is not overwritten; name another one.")


def _is_parts(folder: Path) -> bool:
    """Is it a folder that holds parts and nothing else?"""
    return folder.is_dir() and all(path.match("part-*.parquet") for path in folder.iterdir())


def _put_in_place(whole: Path, out: Path, *, overwrite: bool) -> None:
    """Give a complete folder its name; what stood there before goes with the run's files."""
    target = out.resolve()
    if target.exists() and overwrite:
        check_parts_target(out, overwrite=True)
        if exchange(whole, target):
            return
        shutil.move(target, whole.with_name("before"))
    try:
        rename_new(whole, target)
    except FileExistsError:
        raise TableError(
            f"{out} appeared while this run was at work and stays as it is; nothing was written."
        ) from None
