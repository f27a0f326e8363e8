"""Numbers that help to predict a target, cut into cells that tell it apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.encoding import discretize
from sfumato.encoding.batches import Batch, Fed, OnePass, Show
from sfumato.encoding.cells import present_cells
from sfumato.encoding.coded import CodedColumn, Ints, KeyCounts
from sfumato.encoding.domain import Codes
from sfumato.errors import InputError
from sfumato.policy.schema import Attribute
from sfumato.table.distinct import Numbers
from sfumato.table.spill import size_of

MOST_CELLS = 16
"""Into how many cells a feature that is a number is cut at most."""


class FeatureValues(OnePass):
    """A number or date that helps to predict a target; it is cut into cells that tell the target apart [FI93].

    Missing is a cell of its own. Another target means other cuts, so ``cut`` is asked for each.
    """

    is_raw = False

    def __init__(self, attribute: Attribute, *, memory: int) -> None:
        self.attribute, self.memory = attribute, memory
        self.numbers = Numbers()

    def observe(self, cells: pa.Array, _first_row: int) -> None:
        self.numbers.add(present_cells(cells))
        self._check_memory()

    def merge(self, other: FeatureValues) -> None:
        self.numbers.merge(other.numbers)
        self._check_memory()

    def _check_memory(self) -> None:
        if 32 * self.numbers.n_held > self.memory and 32 * len(self.numbers.values()) > self.memory:
            raise self._too_large(32 * self.numbers.n_held)

    def finish(self) -> None:
        """Nothing is left to decide before the target is known."""

    def cut(self, target: CodedColumn, show: Show, *, is_number: bool) -> CodedColumn:
        """The cells that tell this target apart; a number by its quartiles."""
        name, cuts = self.attribute.name, self._cuts(target, show, is_number=is_number)

        return CodedColumn((name,), len(cuts) + 2, CutCells(name, cuts), np.zeros(0, dtype=np.int64))

    def _too_large(self, needed: int) -> InputError:
        return InputError(
            f"The feature {self.attribute.name!r} has too many different values to be cut in this memory: that takes "
            f"over {size_of(4 * needed)}; allow as much (--memory), or leave it out of features."
        )

    def _cuts(self, target: CodedColumn, show: Show, *, is_number: bool) -> NDArray[np.float64]:
        """Where it is cut."""
        name, distinct = self.attribute.name, self.numbers.values()
        quartiles = self._quartiles(target, show) if is_number else None
        n_classes = target.n if quartiles is None else len(quartiles) + 1
        if 16 * n_classes * len(distinct) > self.memory:
            raise self._too_large(16 * n_classes * len(distinct))
        counts = ClassCounts(distinct, n_classes, quartiles)
        if quartiles is None or len(quartiles):
            show([name, *target.names], Fed(counts, PresentRows(name, target)))
        return discretize.mdl_cuts_of(distinct, counts.count, at_most=MOST_CELLS)

    def _quartiles(self, target: CodedColumn, show: Show) -> NDArray[np.float64]:
        name = self.attribute.name
        seen = KeyCounts(self.memory, name)
        show([name, *target.names], Fed(seen, PresentTargets(name, target)))
        codes, count = seen.finish()
        return discretize.quartiles_of(codes, count) if len(codes) else np.zeros(0)


@dataclass(frozen=True, slots=True, eq=False)
class CutCells:
    """The cell of each row: between which cuts its feature lies."""

    name: str
    cuts: NDArray[np.float64]

    def __call__(self, batch: Batch) -> Codes:
        return discretize.cells(batch.floats(self.name), self.cuts).astype(np.uint32)


@dataclass(frozen=True, slots=True, eq=False)
class PresentRows:
    """Of the rows whose feature is there: its values, and their target."""

    name: str
    target: CodedColumn

    def __call__(self, batch: Batch) -> tuple[NDArray[np.float64], Ints]:
        values = batch.floats(self.name)
        is_there = np.isfinite(values)
        return values[is_there], self.target.codes(batch)[is_there].astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class PresentTargets(PresentRows):
    """Of the rows whose feature is there: their target."""

    def __call__(self, batch: Batch) -> tuple[Any, ...]:
        return PresentRows.__call__(self, batch)[1:]


class ClassCounts:
    """How many rows of each class have each of these values, which ascend.

    Classes are ranges between ``cuts`` of a number, if these are given.

    >>> counts = ClassCounts(np.array([1.0, 5.0]), 2)
    >>> counts.add(np.array([5.0, 1.0, 5.0]), np.array([0, 1, 0]))
    >>> counts.count.tolist()
    [[0, 1], [2, 0]]
    """

    def __init__(
        self, distinct: NDArray[np.float64], n_classes: int, cuts: NDArray[np.float64] | None = None
    ) -> None:
        self.distinct, self.cuts = distinct, cuts
        self.count = np.zeros((len(distinct), n_classes), dtype=np.int64)

    def add(self, values: NDArray[np.float64], label: Ints) -> None:
        """Look at some more rows: their values, and the class or number of each."""
        of_class = label if self.cuts is None else np.searchsorted(self.cuts, label)
        np.add.at(self.count, (np.searchsorted(self.distinct, values), of_class), 1)

    def merge(self, other: ClassCounts) -> None:
        """Look at the rows that another one has seen."""
        self.count += other.count
