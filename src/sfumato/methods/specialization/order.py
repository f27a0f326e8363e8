"""Rows cell by cell, in the order of a mesh's cells, in bounded memory.

Rows are scattered over files by ranges of cells, so that the files follow each other in order and each fits in
memory. Ranges are made from counts of cells; where these do not fit, from counts of coarser ones, and a file that
has become too large is scattered again. A single cell larger than memory is scattered at random.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.encoding.domain import Codes
from sfumato.engines.protocol import Asked, Engine, Loaded, Rows
from sfumato.engines.scatter import scatter
from sfumato.methods.specialization.mesh import CellCounts, CellNumbers, Ints, Mesh, MeshPlan, sort_cells
from sfumato.randomness import Random

FEWEST_CELLS = 16
"""Cells that are counted at once, however little memory there is."""


class SortedRows(NamedTuple):
    """Some rows in memory: their cells in order, the rows of each, and the places of the rows cell by cell."""

    cells: CellNumbers
    size: Ints
    order: NDArray[np.intp]


T = TypeVar("T")


class CellFile(NamedTuple, Generic[T]):
    """Rows of some cells that follow each other; or some rows of one cell, of which all there is to know is ``told``.

    is_first  are these the first rows of that cell?
    """

    rows: Rows
    told: T | None = None
    is_first: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class ByCell:
    """Rows to the files of their cells."""

    counts: CellCounts
    file_of_cell: NDArray[np.uint16]
    n_parts: int

    def of(self, rows: Codes) -> NDArray[np.uint16]:
        return self.file_of_cell[self.counts.find(self.counts.mesh.cells(rows))]


@dataclass(slots=True)
class RowsByCell:
    """Rows to be had in the order of their cells, each file of them by itself.

    As many rows are held as the engine loads at once, and ``memory`` bytes for counts of cells. The files are made when
    they are asked for.
    """

    engine: Engine
    mesh: Mesh
    memory: int
    random: Random

    def files(
        self, rows: Rows, counts: CellCounts | None, look_at: Callable[[Rows], T | None]
    ) -> list[CellFile[T]]:
        """The rows in files that can be loaded, or as they are if they are no more than that.

        ``counts`` are those of the cells, or of coarser ones, if they are known. Whoever must know more of a cell that
        cannot be loaded looks at its rows before they are scattered.
        """
        if rows.n_rows <= self.engine.room.rows:
            return [CellFile(rows)]
        if counts is None:
            counts = count_cells(self.engine, rows, self.mesh, self.memory)
        file_of_cell, n_files = self._ranges(counts)
        if n_files == 1:
            assert counts.mesh.is_like(self.mesh)  # of one cell, it need not have become coarser
            told = look_at(rows)
            parts = scatter(self.engine, rows, self.random)
            return [CellFile(part, told, number == 0) for number, part in enumerate(parts)]
        found: list[CellFile[T]] = []
        for part in self.engine.divide(rows, ByCell(counts, file_of_cell, n_files)).parts:
            smaller = self.files(part, None, look_at) if part.n_rows else []
            found += smaller
            if [file.rows for file in smaller] != [part]:
                self.engine.discard(part)
        return found

    def n_cells(self, files: Sequence[CellFile[T]]) -> int:
        """How many cells have rows, from another look at the files."""
        n, before = 0, np.zeros((0, self.mesh.n_words), dtype=np.uint64)
        for rows, _, _ in files:
            cells = self.mesh.cells(self.engine.load(rows, payload=False).rows)
            order, start = sort_cells(cells)
            n += len(start) - bool(len(before) and (cells[order[:1]] == before).all())
            before = cells[order[-1:]]
        return n

    def _ranges(self, counts: CellCounts) -> tuple[NDArray[np.uint16], int]:
        """The file of each cell: ranges in order, as full as they may be, and how many."""
        order = np.lexsort(counts.cells().T[::-1])
        total = np.cumsum(counts.n_rows()[order])
        # two neighbours have more rows than the limit, and there are at least two unless all rows are of one cell
        limit = max(self.engine.room.rows, -(-2 * int(total[-1]) // max(self.engine.room.parts - 1, 1)))
        limit = min(limit, int(total[-1]) - 1)
        files = np.zeros(counts.n, dtype=np.uint16)
        n_files, begin, before = 0, 0, 0
        while begin < counts.n:
            end = max(int(np.searchsorted(total, before + limit, side="right")), begin + 1)
            files[order[begin:end]] = n_files
            n_files, begin, before = n_files + 1, end, int(total[end - 1])
        return files, n_files


def sort_rows(mesh: Mesh, part: Loaded) -> SortedRows:
    """Rows that were loaded, cell by cell."""
    cells = mesh.cells(part.rows)
    order, start = sort_cells(cells)
    size = np.diff(start, append=len(cells)).astype(np.int64)
    return SortedRows(cells[order[start]], size, order)


# ---- counts of cells -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class BitLevels:
    """Meshes whose cells' coordinates lack more and more of their last bits, of which ``memory`` bytes are held."""

    finest: Mesh
    memory: int

    @property
    def n_levels(self) -> int:
        return 1 + sum((size - 1).bit_length() for size in self.finest.size)

    def mesh(self, level: int) -> Mesh:
        """The last ``level`` bits of all coordinates together are left out."""
        if level == 0:
            return self.finest
        place, left = [], level
        for axis in reversed(range(len(self.finest.size))):
            shift = min(left, (self.finest.size[axis] - 1).bit_length())
            place.append(self.finest.place[axis] >> shift)
            left -= shift
        return Mesh.of(self.finest.ends, place[::-1])

    def most(self, mesh: Mesh) -> int:  # noqa: ARG002 - no mesh has larger cells than the finest
        return max(self.memory // (2 * CellCounts.cell_bytes(self.finest.n_words)), FEWEST_CELLS)


def count_cells(engine: Engine, rows: Rows, mesh: Mesh, memory: int) -> CellCounts:
    """One pass: the rows of each cell, or where they are too many, of each range of cells that differ in the last bits.

    Where there are more cells than fit, at least half as many ranges as would fit are left.
    """
    (found,) = engine.gather(rows, Asked([MeshPlan(BitLevels(mesh, memory))]))
    assert found.counts is not None  # in the end there is one range
    return found.counts
