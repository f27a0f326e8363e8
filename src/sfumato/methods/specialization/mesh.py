"""Cells of a grid of codes: their numbers, and how many rows each has, in bounded memory.

A *mesh* cuts every axis into pieces and numbers the cells between the cuts. Only cells with rows are held. Where
no more fit in memory, neighbouring cells are put together and counting goes on: their counts add up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.encoding.batches import Block
from sfumato.methods.specialization.kernels.cuts import CellTables, add_cells, fill_cells, find_cells
from sfumato.table.spill import Spill

Codes = NDArray[np.uint32]
Ints = NDArray[np.int64]
CellNumbers = NDArray[np.uint64]
"""(n, words): a cell's number may need several words; the first axis is the most significant."""

DENSE = 1 << 18
"""Codes up to which an axis has a list of the piece of each code."""

STEP = 65_536
"""Cells that are moved to another mesh in one go."""

MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True, eq=False)
class Mesh:
    """The pieces of every axis, and a number for every cell.

    The pieces of an axis are [0, ends[0]), [ends[0], ends[1]) and so on; ``place`` is the coordinate of each.
    Several pieces may have the same one, which makes the mesh coarser, and coordinates give the order of cells.

    >>> mesh = Mesh.of([np.array([2, 5]), np.array([1, 2, 3])])
    >>> cells = mesh.cells(np.array([[4, 1], [0, 2]], dtype=np.uint32))
    >>> cells.tolist(), mesh.places(cells).tolist()
    ([[4], [2]], [[1, 1], [0, 2]])
    """

    ends: tuple[Ints, ...]
    place: tuple[Ints, ...]
    size: tuple[int, ...]
    word: tuple[int, ...]
    radix: tuple[int, ...]
    tables: CellTables
    """All this once more, as the kernel takes it."""

    @classmethod
    def of(cls, ends: Sequence[Ints], place: Sequence[Ints] | None = None) -> Mesh:
        places = [np.arange(len(end)) for end in ends] if place is None else list(place)
        size = [int(here.max()) + 1 for here in places]
        word: list[int] = []
        within = 1
        for n in size:
            begins = bool(word) and within * n > 2**63
            within = n if begins else within * n
            word.append(word[-1] + begins if word else 0)
        radix = [1] * len(size)
        for a in range(len(size) - 2, -1, -1):
            radix[a] = radix[a + 1] * size[a + 1] if word[a] == word[a + 1] else 1
        tables = _tables_of(ends, places, size, word, radix)
        return cls(tuple(ends), tuple(places), tuple(size), tuple(word), tuple(radix), tables)

    @property
    def n_words(self) -> int:
        return self.word[-1] + 1

    def is_like(self, other: Mesh) -> bool:
        """Have they the same cells?"""
        return all(
            np.array_equal(one, two)
            for mine, its in ((self.ends, other.ends), (self.place, other.place))
            for one, two in zip(mine, its, strict=True)
        )

    def cells(self, rows: Codes) -> CellNumbers:
        """The cells of rows (n, axes or more) of codes."""
        out = np.zeros((len(rows), self.n_words), dtype=np.uint64)
        fill_cells(rows, self.tables, out)
        return out

    def number_cells(self, places: Ints) -> CellNumbers:
        """The cells at these places (n, axes)."""
        out = np.zeros((len(places), self.n_words), dtype=np.uint64)
        for a, radix in enumerate(self.radix):
            out[:, self.word[a]] += places[:, a].astype(np.uint64) * np.uint64(radix)
        return out

    def places(self, cells: CellNumbers) -> Ints:
        """The coordinates (n, axes) of cells."""
        out = np.empty((len(cells), len(self.size)), dtype=np.int64)
        for a, (n, radix) in enumerate(zip(self.size, self.radix, strict=True)):
            out[:, a] = cells[:, self.word[a]] // np.uint64(radix) % np.uint64(n)
        return out


def _tables_of(
    ends: Sequence[Ints],
    places: Sequence[Ints],
    size: Sequence[int],
    word: Sequence[int],
    radix: Sequence[int],
) -> CellTables:
    value = [place.astype(np.uint64) * np.uint64(x) for place, x in zip(places, radix, strict=True)]
    start, listed = [], [np.zeros(0, dtype=np.uint64)]
    for a, end in enumerate(ends):
        is_short = size[a] > 1 and end[-1] <= DENSE
        start.append(sum(map(len, listed)) if is_short else -1)
        if is_short:
            listed.append(np.repeat(value[a], np.diff(end, prepend=0)))
    return CellTables(
        np.cumsum([0, *map(len, ends)]),
        np.concatenate(ends).astype(np.int64),
        np.concatenate(value),
        np.array(start),
        np.concatenate(listed),
        np.array([w if n > 1 else -1 for w, n in zip(word, size, strict=True)]),
    )


def move_cells(cells: CellNumbers, old: Mesh, new: Mesh) -> CellNumbers:
    """The cells of a coarser mesh that these cells of another lie in.

    >>> fine, coarse = Mesh.of([np.array([1, 2, 5])]), Mesh.of([np.array([2, 5])])
    >>> move_cells(np.array([[0], [1], [2]], dtype=np.uint64), fine, coarse).tolist()
    [[0], [0], [1]]
    """
    places = old.places(cells)
    for a, size in enumerate(old.size):
        to = np.empty(size, dtype=np.int64)
        to[old.place[a]] = new.place[a][np.searchsorted(new.ends[a], old.ends[a])]
        places[:, a] = to[places[:, a]]
    return new.number_cells(places)


def hashes_of(cells: CellNumbers) -> NDArray[np.uint64]:
    """A hash of each cell number, all bits of it mixed."""
    out = np.zeros(len(cells), dtype=np.uint64)
    for w in range(cells.shape[1]):
        out = (out ^ cells[:, w]) * MULTIPLIER
        out ^= out >> np.uint64(29)
    out *= MULTIPLIER
    return out ^ out >> np.uint64(32)


def sort_cells(cells: CellNumbers) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The order that sorts cell numbers, and where each distinct one begins in it.

    >>> sort_cells(np.array([[7], [3], [7]], dtype=np.uint64))
    (array([1, 0, 2]), array([0, 1]))
    """
    order = np.lexsort(cells.T[::-1])
    ordered = cells[order]
    is_new = np.ones(len(cells), dtype=np.bool_)
    is_new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    return order, np.flatnonzero(is_new)


class CellCounts:
    """How many rows the cells of a mesh have, of ``most`` cells at most.

    With ``n_slices`` only one in so many cells is counted, by its hash: those of slice number ``which``.
    """

    def __init__(self, mesh: Mesh, most: int, *, n_slices: int = 1, which: int = 0) -> None:
        self.mesh, self.most, self.n_slices, self.which = mesh, most, n_slices, which
        self.slot = np.zeros(2 << max(most - 1, 1).bit_length(), dtype=np.int32)
        self.key: CellNumbers = np.empty((most, mesh.n_words), dtype=np.uint64)
        self.rows = np.empty(most, dtype=np.int64)
        self.n = 0

    @staticmethod
    def cell_bytes(n_words: int) -> int:
        """Memory of a cell that is held, at most."""
        return 8 * n_words + 8 + 4 * 4

    def add(self, cells: CellNumbers, rows: Ints | None = None, *, begin: int = 0) -> int:
        """Add rows to these cells, one each unless said otherwise: how many were added before memory was full."""
        hashes = hashes_of(cells)
        rows = np.ones(len(cells), dtype=np.int64) if rows is None else rows
        if self.n_slices > 1:
            mine = np.flatnonzero((hashes >> np.uint64(40)) % np.uint64(self.n_slices) == self.which)
            first = int(np.searchsorted(mine, begin))
            self.n, n_added = add_cells(
                cells[mine], hashes[mine], rows[mine], first, self.slot, self.key, self.n, self.rows
            )
            return int(mine[n_added]) if n_added < len(mine) else len(cells)
        self.n, n_added = add_cells(cells, hashes, rows, begin, self.slot, self.key, self.n, self.rows)
        return int(n_added)

    def cells(self) -> CellNumbers:
        """Those that have rows."""
        return self.key[: self.n]

    def n_rows(self) -> Ints:
        return self.rows[: self.n]

    def find(self, cells: CellNumbers) -> Ints:
        """The place of each of these among ``cells()``, -1 if it is not there."""
        out = np.empty(len(cells), dtype=np.int64)
        find_cells(cells, hashes_of(cells), self.slot, self.key, out)
        return out

    def onto(self, mesh: Mesh, most: int) -> CellCounts:
        """The same rows on a coarser mesh."""
        out = CellCounts(mesh, most)
        for first in range(0, self.n, STEP):
            some = slice(first, min(first + STEP, self.n))
            out.add(move_cells(self.key[some], self.mesh, mesh), self.rows[some])
        return out

    def double_slices(self) -> CellCounts:
        """With twice as many slices."""
        out = CellCounts(self.mesh, self.most, n_slices=2 * self.n_slices, which=self.which)
        out.add(self.cells(), self.n_rows())
        return out


# ---- counts in passes over rows --------------------------------------------------------------------


class Levels(Protocol):
    """Ever coarser meshes, and how many cells of each may be held: no fewer than of the one before."""

    @property
    def n_levels(self) -> int: ...

    def mesh(self, level: int) -> Mesh: ...

    def most(self, mesh: Mesh) -> int: ...


class MeshCounts:
    """Counts of the cells of the finest mesh whose cells fit in memory: None if there is none.

    Which mesh that is depends on the rows alone, not on their order: it becomes coarser by one level whenever there are
    more cells than fit.
    """

    def __init__(self, levels: Levels) -> None:
        self.levels, self.level = levels, 0
        mesh = levels.mesh(0)
        self.counts: CellCounts | None = CellCounts(mesh, levels.most(mesh))

    def add(self, block: Block) -> None:
        n_added = 0
        while self.counts is not None:
            n_added = self.counts.add(self.counts.mesh.cells(block.rows), begin=n_added)
            if n_added == len(block.rows):
                return
            self._coarsen()

    def merge(self, other: MeshCounts) -> None:
        """Add the rows of other counts; the coarser of two meshes is taken."""
        while self.counts is not None and self.level < other.level:
            self._coarsen()
        if other.counts is None:
            self.counts = None
            return
        cells, n_rows, n_added = other.counts.cells(), other.counts.n_rows(), 0
        while self.counts is not None:
            moved = move_cells(cells, other.counts.mesh, self.counts.mesh)
            n_added = self.counts.add(moved, n_rows, begin=n_added)
            if n_added == len(cells):
                return
            self._coarsen()

    def _coarsen(self) -> None:
        assert self.counts is not None
        self.level += 1
        if self.level == self.levels.n_levels:
            self.counts = None
            return
        mesh = self.levels.mesh(self.level)
        self.counts = self.counts.onto(mesh, self.levels.most(mesh))


@dataclass(frozen=True, slots=True, eq=False)
class MeshPlan:
    """Gather the counts of cells of the finest of several meshes that fits in memory."""

    levels: Levels
    n_bytes: int = 0

    def new(self, room: int, spill: Spill | None) -> MeshCounts:  # noqa: ARG002 - the levels know how many cells fit
        return MeshCounts(self.levels)

    def answer(self, state: MeshCounts) -> MeshCounts:
        return state


class SliceCounts:
    """Counts of the cells of a slice, by their hash: of as large a slice as fits in memory.

    Only rows with codes [low, high) of an axis are counted.
    """

    def __init__(self, plan: SlicePlan) -> None:
        self.plan = plan
        self.counts = CellCounts(plan.mesh, plan.most, n_slices=plan.n_slices, which=plan.which)

    def add(self, block: Block) -> None:
        code = block.rows[:, self.plan.axis]
        rows = block.rows[(code >= self.plan.low) & (code < self.plan.high)]
        self._add(self.plan.mesh.cells(rows), np.ones(len(rows), dtype=np.int64))

    def merge(self, other: SliceCounts) -> None:
        """Add the rows of other counts; the smaller of two slices is taken."""
        while self.counts.n_slices < other.counts.n_slices:
            self.counts = self.counts.double_slices()
        self._add(other.counts.cells(), other.counts.n_rows())

    def _add(self, cells: CellNumbers, n_rows: Ints) -> None:
        n_added = 0
        while (n_added := self.counts.add(cells, n_rows, begin=n_added)) < len(cells):
            self.counts = self.counts.double_slices()


@dataclass(frozen=True, slots=True, eq=False)
class SlicePlan:
    """Gather the counts of cells of one slice in ``n_slices``: number ``which``, or a part of it if it does not fit."""

    mesh: Mesh
    most: int
    axis: int
    low: int
    high: int
    which: int = 0
    n_slices: int = 1
    n_bytes: int = 0

    @classmethod
    def of_all(cls, mesh: Mesh, most: int) -> SlicePlan:
        """All cells of a mesh."""
        return cls(mesh, most, 0, 0, int(mesh.ends[0][-1]))

    def new(self, room: int, spill: Spill | None) -> SliceCounts:  # noqa: ARG002 - ``most`` says how many cells fit
        return SliceCounts(self)

    def answer(self, state: SliceCounts) -> CellCounts:
        return state.counts

    def rest(self, found: CellCounts) -> Iterator[SlicePlan]:
        """The slices that are left, if only a part of this one was counted."""
        n_slices = self.n_slices
        while n_slices < found.n_slices:
            yield replace(self, which=self.which + n_slices, n_slices=2 * n_slices)
            n_slices *= 2
