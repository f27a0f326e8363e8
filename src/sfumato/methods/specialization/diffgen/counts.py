"""Exact counts that DiffGen draws from: rows by cell and class, by bin, cell and class, and all rows.

Nothing here is published. What is drawn from counts is drawn by a mechanism that the ledger was charged for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.engines.protocol import Block
from sfumato.methods.specialization.kernels.purity import FULL, add_bin_counts, add_cell_counts
from sfumato.methods.specialization.mesh import Mesh
from sfumato.table.spill import Spill

Ints = NDArray[np.int64]


class CellClasses:
    """The rows (cells, classes) of every cell of a mesh."""

    def __init__(self, mesh: Mesh, n_classes: int) -> None:
        self.mesh = mesh
        self.table: Ints = np.zeros((math.prod(mesh.size), n_classes), dtype=np.int64)

    def add(self, block: Block) -> None:
        add_cell_counts(block.rows, self.mesh.cells(block.rows)[:, 0], self.table)

    def merge(self, other: CellClasses) -> None:
        self.table += other.table


@dataclass(frozen=True, slots=True, eq=False)
class CellPlan:
    """Gather the rows of every cell of a mesh by class; the last column is the class."""

    mesh: Mesh
    n_classes: int

    @property
    def n_bytes(self) -> int:
        return 8 * math.prod(self.mesh.size) * self.n_classes

    def new(self, room: int, spill: Spill | None) -> CellClasses:  # noqa: ARG002 - the cells are limited by the policy
        return CellClasses(self.mesh, self.n_classes)

    def answer(self, state: CellClasses) -> Ints:
        return state.table


class BinClasses:
    """The rows (bins of all axes, cells, classes) of some cells of a mesh; a count stays at ``FULL``."""

    def __init__(self, plan: BinPlan) -> None:
        self.plan = plan
        self.table: NDArray[np.uint32] = np.zeros(plan.shape, dtype=np.uint32)

    def add(self, block: Block) -> None:
        plan = self.plan
        cells = plan.mesh.cells(block.rows)[:, 0]
        add_bin_counts(block.rows, cells, plan.number, plan.first, plan.bin_of_code, self.table)

    def merge(self, other: BinClasses) -> None:
        self.table += np.minimum(other.table, FULL - self.table)


@dataclass(frozen=True, slots=True, eq=False)
class BinPlan:
    """Gather the rows of bins, cells and classes.

    number       (cells of the mesh,) int32: the place of each cell in ``shape``; -1: it is not counted
    first        (axes,) where the codes of each axis begin
    bin_of_code  (codes of all axes,) int32; -1: in none
    shape        bins, cells that are counted, classes
    """

    mesh: Mesh
    number: NDArray[np.int32]
    first: Ints
    bin_of_code: NDArray[np.int32]
    shape: tuple[int, int, int]

    @property
    def n_bytes(self) -> int:
        return 4 * math.prod(self.shape)

    def new(self, room: int, spill: Spill | None) -> BinClasses:  # noqa: ARG002 - ``shape`` was chosen to fit
        return BinClasses(self)

    def answer(self, state: BinClasses) -> NDArray[np.uint32]:
        return state.table


class RowCount:
    """How many rows there are."""

    def __init__(self) -> None:
        self.n = 0

    def add(self, block: Block) -> None:
        self.n += len(block.rows)

    def merge(self, other: RowCount) -> None:
        self.n += other.n


@dataclass(frozen=True, slots=True)
class RowCountPlan:
    """Gather the number of rows."""

    n_bytes: int = 0

    def new(self, room: int, spill: Spill | None) -> RowCount:  # noqa: ARG002 - it is one number
        return RowCount()

    def answer(self, state: RowCount) -> int:
        return state.n
