"""Rows cell by cell, in the order of a mesh's cells, in bounded memory.

Rows are scattered over files by ranges of cells, so that the files follow each other in order and each fits in
memory. Ranges are made from counts of cells; where these do not fit, from counts of coarser ones, and a file that
has become too large is scattered again. A single cell larger than memory is scattered at random.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.encoding.batches import Rows
from sfumato.engines.rows import MOST_FILES, PartWriter, RowLayout, StoredRows
from sfumato.methods.specialization.mesh import CellCounts, CellNumbers, Ints, Mesh, sort_cells
from sfumato.randomness import Random
from sfumato.table.spill import Spill

FEWEST_CELLS = 16
"""Cells that are counted at once, however little memory there is."""

FULL = 0.8
"""How full files are planned to be that rows are scattered over at random."""


class SortedRows(NamedTuple):
    """Some rows in memory: their cells in order, the rows of each, and the rows cell by cell as numbers.

    ``payload`` has their other columns in the order of these numbers.
    """

    cells: CellNumbers
    size: Ints
    row_numbers: NDArray[np.uint32]
    payload: pa.Table | None


@dataclass(slots=True)
class RowsByCell:
    """Rows to be had in the order of their cells, each file of them by itself.

    ``at_once`` rows are held at most, and ``memory`` bytes for everything else. The files are made when they are
    asked for, and gone when they have been read.
    """

    mesh: Mesh
    spill: Spill
    layout: RowLayout
    at_once: int
    memory: int
    random: Random

    def files(self, rows: Rows, counts: CellCounts | None = None) -> list[Rows]:
        """The rows in files of at most ``at_once``, or as they are if they are no more than that.

        ``counts`` are those of the cells, or of coarser ones, if they are known.
        """
        if rows.n_rows <= self.at_once:
            return [rows]
        if counts is None:
            counts = count_cells(rows, self.mesh, self.memory)
        file_of_cell, n_files = self._ranges(counts)
        if n_files == 1:
            assert counts.mesh.is_like(self.mesh)  # of one cell, it need not have become coarser
            return list(self._at_random(rows))
        parts = PartWriter(self.spill, n_files, self.layout, memory=self.memory)
        for block in rows.blocks():
            parts.add(block, file_of_cell[counts.find(counts.mesh.cells(block.rows))])
        found: list[Rows] = []
        for part in parts.close():
            smaller = self.files(part) if part.n_rows else []
            found += smaller
            if smaller != [part]:
                part.delete()
        return found

    def read(self, files: list[Rows]) -> Iterator[SortedRows]:
        """File by file; the rows of one cell may be in several that follow each other."""
        for rows in files:
            cells, payload = self._load(rows)
            if isinstance(rows, StoredRows):
                rows.delete()
            order, start = sort_cells(cells)
            size = np.diff(start, append=len(cells)).astype(np.int64)
            yield SortedRows(cells[order[start]], size, order.astype(np.uint32), payload)

    def n_cells(self, files: list[Rows]) -> int:
        """How many cells have rows, from another look at the files."""
        n, before = 0, np.zeros((0, self.mesh.n_words), dtype=np.uint64)
        for rows in files:
            cells, _ = self._load(rows, payload=False)
            order, start = sort_cells(cells)
            n += len(start) - bool(len(before) and (cells[order[:1]] == before).all())
            before = cells[order[-1:]]
        return n

    def _load(self, rows: Rows, *, payload: bool = True) -> tuple[CellNumbers, pa.Table | None]:
        cells = np.empty((rows.n_rows, self.mesh.n_words), dtype=np.uint64)
        batches, at = [], 0
        for block in rows.blocks(payload=payload):
            cells[at : at + len(block.rows)] = self.mesh.cells(block.rows)
            at += len(block.rows)
            if block.payload is not None:
                batches.append(block.payload)
        return cells, pa.Table.from_batches(batches) if batches else None

    def _ranges(self, counts: CellCounts) -> tuple[NDArray[np.uint16], int]:
        """The file of each cell: ranges in order, as full as they may be, and how many."""
        order = np.lexsort(counts.cells().T[::-1])
        total = np.cumsum(counts.n_rows()[order])
        limit = max(
            self.at_once, -(-2 * int(total[-1]) // (MOST_FILES - 1))
        )  # two neighbours are more than one
        files = np.zeros(counts.n, dtype=np.uint16)
        n_files, begin, before = 0, 0, 0
        while begin < counts.n:
            end = max(int(np.searchsorted(total, before + limit, side="right")), begin + 1)
            files[order[begin:end]] = n_files
            n_files, begin, before = n_files + 1, end, int(total[end - 1])
        return files, n_files

    def _at_random(self, rows: Rows) -> Iterator[Rows]:
        """The rows of one cell, each in a file chosen at random."""
        n_files = min(-(-rows.n_rows // max(int(FULL * self.at_once), 1)), MOST_FILES)
        parts = PartWriter(self.spill, n_files, self.layout, memory=self.memory)
        for block in rows.blocks():
            parts.add(block, self.random.integers(0, n_files, len(block.rows)))
        for part in parts.close():
            if 0 < part.n_rows <= self.at_once:
                yield part
            elif part.n_rows:
                yield from self._at_random(part)
                part.delete()


def count_cells(rows: Rows, mesh: Mesh, memory: int) -> CellCounts:
    """One pass: the rows of each cell, or where they are too many, of each range of cells that differ in the last bits.

    Where there are more cells than fit, at least a fourth as many ranges as would fit are left.
    """
    most = max(memory // (2 * CellCounts.cell_bytes(mesh.n_words)), FEWEST_CELLS)
    n_bits, counts = 0, CellCounts(mesh, most)
    for block in rows.blocks(payload=False):
        cells, n_added = counts.mesh.cells(block.rows), 0
        while (n_added := counts.add(cells, begin=n_added)) < len(cells):
            while 2 * counts.n > most:
                n_bits += 1
                counts = _coarsen(counts, mesh, n_bits)
            cells = counts.mesh.cells(block.rows)
    return counts


def _coarsen(counts: CellCounts, mesh: Mesh, n_bits: int) -> CellCounts:
    """The same rows where the last bits of a cell's coordinates are left out, one more than so far."""
    now, before = _shifts(mesh, n_bits), _shifts(mesh, n_bits - 1)
    coarser = Mesh.of(mesh.ends, [place >> shift for place, shift in zip(mesh.place, now, strict=True)])
    move = [np.arange(n) >> (x - y) for n, x, y in zip(counts.mesh.size, now, before, strict=True)]
    return counts.onto(coarser, move, counts.most)


def _shifts(mesh: Mesh, n_bits: int) -> list[int]:
    """How many bits each axis loses if the last so many of all are left out."""
    shifts = []
    for size in reversed(mesh.size):
        shifts.append(min(n_bits, (size - 1).bit_length()))
        n_bits -= shifts[-1]
    return shifts[::-1]
