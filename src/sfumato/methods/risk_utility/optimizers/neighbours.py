"""The neighbours of single rows, as all searches of the threshold form see them
(:mod:`sfumato.methods.risk_utility.kernels.neighbours`).

``search`` runs such a search for many rows. Rows know nothing of each other, so the answers depend neither on the number
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
from sfumato.methods.risk_utility.kernels.neighbours import Near, NeighbourScratch, Steps, gather_near
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
    """One row's steps and near vectors; ``stride`` is 1 if all near rows are among them."""

    row: int
    steps: Steps
    near: Near
    own: int
    budget: int
    stride: int

    @property
    def is_whole(self) -> bool:
        return self.stride == 1

    def loss_of(self, steps: Levels) -> int:
        """The utility that a generalization loses."""
        return int(self.steps.loss[np.arange(len(steps)), steps].sum())


Search = Callable[[Neighbours, Any, Ints], bool]
"""Writes the steps of a generalization, and the rows that it covers, its weight and its loss. Is it proved?"""


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
    def columns(self) -> Any:
        return np.ascontiguousarray((self.problem.side >> self.shift.astype(np.uint32)).T, dtype=self.dtype)


class Surroundings:
    """A problem whose rows are asked for their neighbours, one after the other, by one thread.

    What it returns is its own room, overwritten when the next row is asked for.
    """

    def __init__(self, side: SideColumns, *, most_vectors: int = MOST_VECTORS) -> None:
        problem = side.problem
        n_columns, n_steps = problem.n_columns, int(problem.lattice.n_levels.max())
        self.side, self.columns, self.shift = side, side.columns, side.shift
        most = max(2, min(most_vectors, len(problem.side) + 1))
        self.space = NeighbourScratch(
            np.empty(BLOCK, dtype=side.dtype),
            np.empty(len(problem.side), dtype=np.int64),
            np.empty(1 << (2 * most - 1).bit_length(), dtype=np.int64),
        )
        self.steps = Steps(
            np.empty(n_columns, dtype=np.int64),
            np.empty((n_columns, n_steps), dtype=np.uint8),
            *(np.empty((n_columns, n_steps), dtype=np.int64) for _ in range(4)),
        )
        self.room = Near(
            np.empty((most, n_columns), dtype=np.uint8),
            np.empty(most, dtype=np.int64),
            np.empty(most, dtype=np.int64),
        )

    def of(self, row: int, budget: int) -> Neighbours:
        """The rows that generalizations of a row can cover at a loss of utility within the budget."""
        problem = self.side.problem
        _, stride, n = gather_near(
            problem.lattice, problem.rows, problem.factor, np.int64(row), self.columns, self.shift, problem.side,
            problem.side_count, np.int64(budget), np.int64(self.side.unit), self.space, self.steps, self.room,
        )  # fmt: skip
        near = Near(self.room.vector[:n], self.room.n_rows[:n], self.room.loss[:n])
        own = int(problem.own[row]) if stride == 1 else 1  # the row itself may not have been taken
        return Neighbours(row, self.steps, near, own, budget, stride)


# ---- many rows ------------------------------------------------------------------------------------------


def search(
    problem: LatticeProblem,
    objective: Objective,
    one: Search,
    *,
    which: Ints | None,
    threads: int | None,
    progress: Progress,
    stage: str,
) -> Solution:
    """Search for each of some rows; what is found has the utility that is needed, and is measured exactly."""
    if not isinstance(objective, Threshold):
        raise InternalError("This search is for the least risk with a utility at least as great as asked.")
    which = np.arange(problem.n) if which is None else which
    budget = problem.raw_utility[which] - problem.need(objective.at_least)[which]
    levels = np.empty((len(which), problem.n_columns), dtype=np.uint8)
    found = np.empty((len(which), 3), dtype=np.int64)
    is_proved = np.zeros(len(which), dtype=np.bool_)
    side = SideColumns(problem)
    idle: SimpleQueue[Surroundings] = SimpleQueue()
    n_threads = threads or n_cores()
    for _ in range(n_threads):
        idle.put(Surroundings(side, most_vectors=MOST_VECTORS))

    def work(part: slice) -> int:
        surroundings = idle.get()
        for i in range(part.start, part.stop):
            neighbours = surroundings.of(int(which[i]), int(budget[i]))
            steps = np.zeros(problem.n_columns, dtype=np.uint8)
            is_proved[i] = one(neighbours, steps, found[i])
            levels[i] = neighbours.steps.level[np.arange(problem.n_columns), steps]
            if not neighbours.is_whole:
                found[i, 0] = problem.measures(which[i : i + 1], levels[i : i + 1])[0][0]
        idle.put(surroundings)
        return int(part.stop - part.start)

    done = 0
    with ThreadPoolExecutor(max_workers=n_threads) as pool:
        try:
            for n in pool.map(work, _parts(len(which))):
                done += n
                progress(stage, done, len(which))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    utility = problem.raw_utility[which] - found[:, 2]
    return Solution(which, levels, found[:, 0].copy(), found[:, 1].copy(), utility, is_proved)


def _parts(n: int) -> Iterator[slice]:
    return (slice(first, last) for first, last in pairwise([*range(0, n, ROWS_AT_A_TIME), n]))


def steps_of(neighbours: Neighbours, levels: Levels) -> Levels:
    """The steps of a generalization that is given by its levels.

    A level between those of two steps stands for the lower one's node.
    """
    chains = zip(neighbours.steps.level, neighbours.steps.n.tolist(), levels.tolist(), strict=True)
    found = [int(np.searchsorted(chain[:n], level, side="right")) - 1 for chain, n, level in chains]
    return np.array(found, dtype=np.uint8)


__all__ = ["MOST_VECTORS", "Neighbours", "Search", "SideColumns", "Surroundings", "search", "steps_of"]
