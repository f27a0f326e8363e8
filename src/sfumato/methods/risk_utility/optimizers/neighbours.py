"""Search for the least risk of single rows, by the rows of the side table that are near them
(:mod:`sfumato.methods.risk_utility.kernels.neighbours`).

``search`` runs a search for many rows. Rows know nothing of each other, so the answers depend neither on the number
of threads nor on which other rows are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from queue import SimpleQueue
from typing import Any

import numpy as np

from sfumato.errors import InternalError
from sfumato.machine import n_cores
from sfumato.methods.risk_utility.kernels.neighbours import (
    Measure,
    Near,
    NeighbourScratch,
    RowProblem,
    SideScan,
    Steps,
    gather_near,
)
from sfumato.methods.risk_utility.problem import Ints, LatticeProblem, Levels, Objective, Solution, Threshold
from sfumato.progress import Progress

BLOCK = 16_384
"""Rows of the side table that are scanned at a time: their losses stay in the nearest cache."""

MOST_VECTORS = 1 << 16
"""Beyond so many near rows that differ a search sees every second, third, ... of them."""

ROWS_AT_A_TIME = 32
"""Rows that a thread searches for before it says so."""


@dataclass(frozen=True, slots=True, eq=False)
class Neighbours:
    """One row and the rows near it; one in ``stride`` of these was looked at."""

    row: int
    problem: RowProblem
    stride: int

    @property
    def is_whole(self) -> bool:
        """Are all near rows among them?"""
        return self.stride == 1

    def levels_of(self, steps: Levels) -> Levels:
        """The levels of a generalization that is given by its steps."""
        return self.problem.steps.level[np.arange(len(steps)), steps]

    def steps_of(self, levels: Levels) -> Levels:
        """The steps of a generalization that is given by its levels.

        A level between those of two steps stands for the lower one's node.
        """
        steps = self.problem.steps
        chains = zip(steps.level, steps.n.tolist(), levels.tolist(), strict=True)
        found = [int(np.searchsorted(chain[:n], level, side="right")) - 1 for chain, n, level in chains]
        return np.array(found, dtype=np.uint8)


RowSearch = Callable[[Neighbours, Levels], tuple[Measure, bool]]
"""Writes the steps of a generalization of one row into its second argument: what it measures, and is it proved?"""


# ---- the side table -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SideColumns:
    """The side table column by column in narrow integers, which are fast to scan: its codes, or their first bits."""

    problem: LatticeProblem

    @cached_property
    def _greatest_loss(self) -> int:
        """Of a row, over all columns."""
        lattice = self.problem.lattice
        end = [*lattice.root[1:].tolist(), len(lattice.utility)]
        return sum(
            int(lattice.utility[first:last].max() - lattice.utility[first])
            for first, last in zip(lattice.root.tolist(), end, strict=True)
        )

    @cached_property
    def dtype(self) -> Any:
        lattice, most = self.problem.lattice, np.iinfo(np.uint8).max
        is_narrow = max(int(lattice.high[lattice.root].max()), self._greatest_loss) <= most
        return np.uint8 if is_narrow else np.uint16

    @cached_property
    def unit(self) -> int:
        """Of losses, so that those of all columns fit."""
        return -(-self._greatest_loss // int(np.iinfo(self.dtype).max)) or 1

    @cached_property
    def shift(self) -> Ints:
        """The last bits of codes that each column lacks, so that the others fit."""
        n_codes = self.problem.lattice.high[self.problem.lattice.root].tolist()
        n_bits = np.iinfo(self.dtype).bits
        return np.array([max(0, int(n).bit_length() - n_bits) for n in n_codes], dtype=np.int64)

    @cached_property
    def as_scan(self) -> SideScan:
        """As the kernel takes it."""
        side = self.problem.side
        column = np.ascontiguousarray((side >> self.shift.astype(np.uint32)).T, dtype=self.dtype)
        return SideScan(column, self.shift, self.unit, side, self.problem.side_count)


class NeighbourFinder:
    """Finds the neighbours of a problem's rows, one row after the other, for one thread.

    What it returns is its own memory, overwritten when the next row is asked for.
    """

    def __init__(self, side: SideColumns, *, most_vectors: int = MOST_VECTORS) -> None:
        problem = side.problem
        n_columns, n_steps = problem.n_columns, int(problem.lattice.n_levels.max())
        self.side = side
        most = max(2, min(most_vectors, len(problem.side) + 1))
        self.scratch = NeighbourScratch(
            np.empty(BLOCK, dtype=side.dtype),
            np.empty(len(problem.side), dtype=np.int64),
            np.empty(1 << (2 * most - 1).bit_length(), dtype=np.int64),
        )
        self.steps = Steps(
            np.empty(n_columns, dtype=np.int64),
            np.empty((n_columns, n_steps), dtype=np.uint8),
            *(np.empty((n_columns, n_steps), dtype=np.int64) for _ in range(4)),
        )
        self.near = Near(
            np.empty((most, n_columns), dtype=np.uint8),
            np.empty(most, dtype=np.int64),
            np.empty(most, dtype=np.int64),
        )

    def find(self, row: int, budget: int) -> Neighbours:
        """The rows that generalizations of a row can cover at a loss of utility within the budget."""
        problem = self.side.problem
        stride, n = gather_near(
            problem.lattice,
            problem.table_rows,
            row,
            self.side.as_scan,
            budget,
            self.scratch,
            self.steps,
            self.near,
        )
        near = Near(self.near.vector[:n], self.near.n_rows[:n], self.near.loss[:n])
        own = int(problem.own[row]) if stride == 1 else 1  # the row itself may not have been taken
        return Neighbours(row, RowProblem(self.steps, near, own, problem.floor, budget), stride)


# ---- many rows ------------------------------------------------------------------------------------------


def need_of(problem: LatticeProblem, objective: Objective, which: Ints) -> Ints:
    """The least utility that a threshold asks of each of some rows."""
    if not isinstance(objective, Threshold):
        raise InternalError("This search is for the least risk with a utility at least as great as asked.")
    return problem.need(objective.at_least)[which]


def search(
    problem: LatticeProblem,
    need: Ints,
    search_row: RowSearch,
    *,
    which: Ints,
    threads: int | None,
    progress: Progress,
    stage: str,
) -> Solution:
    """Search for each of some rows; what is found has the utility that it needs, and is measured exactly."""
    budget = problem.raw_utility[which] - need
    n = len(which)
    levels = np.empty((n, problem.n_columns), dtype=np.uint8)
    covered, weight, loss = (np.empty(n, dtype=np.int64) for _ in range(3))
    is_proved = np.zeros(n, dtype=np.bool_)
    side = SideColumns(problem)
    idle: SimpleQueue[NeighbourFinder] = SimpleQueue()
    n_threads = threads or n_cores()
    for _ in range(n_threads):
        idle.put(NeighbourFinder(side, most_vectors=MOST_VECTORS))

    def work(part: slice) -> int:
        finder = idle.get()
        for i in range(part.start, part.stop):
            neighbours = finder.find(int(which[i]), int(budget[i]))
            steps = np.zeros(problem.n_columns, dtype=np.uint8)
            (covered[i], weight[i], loss[i]), is_proved[i] = search_row(neighbours, steps)
            levels[i] = neighbours.levels_of(steps)
            if not neighbours.is_whole:
                covered[i] = problem.measure(which[i : i + 1], levels[i : i + 1]).covered[0]
        idle.put(finder)
        return int(part.stop - part.start)

    done = 0
    with ThreadPoolExecutor(max_workers=n_threads) as pool:
        try:
            for n_more in pool.map(work, _parts(n)):
                done += n_more
                progress(stage, done, n)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return Solution(which, levels, covered, weight, problem.raw_utility[which] - loss, is_proved)


def _parts(n: int) -> Iterator[slice]:
    return (slice(first, last) for first, last in pairwise([*range(0, n, ROWS_AT_A_TIME), n]))


__all__ = ["MOST_VECTORS", "NeighbourFinder", "Neighbours", "RowSearch", "SideColumns", "need_of", "search"]
