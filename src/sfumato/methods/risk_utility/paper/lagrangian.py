r"""The greatest :math:`f(x) = \lambda / r(x) + u(x)^\kappa` of each row, proved [FEB12, section 2.3].

f itself is supermodular: 1 / Phi rises with generalization and is supermodular, for Phi is a sum over columns and 1 / y
is convex; so is |rho|; and so are products of such functions. Hence the generalizations with the greatest f are closed
under meet and join, and the least of them is the one with most utility and the least levels: no other tie is left.

The paper's way, a cut for each row, takes seconds on large tables. Proofs come first, cuts last; what one stage leaves
open the next one takes up:

- ``marginal``: counts of single columns show that the row is best as it is, or suppressed; no other row is looked at.
- ``bracket``: best steps of single columns, from above and from below, leave few generalizations, or one.
- ``transport``: each row of the side table serves one column; then the upper end of the bracket is best.
- ``scan``: the bound of the first stage, within the bracket and with the rows of the side table that are near.
- ``cut``: minimum cuts (:mod:`sfumato.methods.risk_utility.paper.cut`), exact, up to ``LARGEST_CUT`` arcs.

Rows beyond get the best that was found, and are not proved. Nearly all optima are the row as it is or the row suppressed:
:func:`share_interior` tells how many are not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InternalError
from sfumato.machine import n_cores
from sfumato.methods.risk_utility.paper.cut import Bracket, best_of, slope_of, worth_of
from sfumato.methods.risk_utility.paper.kernels.bracket import (
    ends_are_best_nearby,
    fill_distinct,
    fill_first_high,
    fill_high,
    fill_ladder,
    fill_low,
    fill_standing,
    high_is_best,
)
from sfumato.methods.risk_utility.paper.kernels.marginal import (
    HIGH,
    LEVEL,
    LOW,
    OPEN,
    TIED,
    fill_ends,
    fill_equal,
)
from sfumato.methods.risk_utility.problem import Lagrangian, LatticeProblem, Objective, Solution
from sfumato.progress import Progress, no_progress
from sfumato.randomness import Random

Ints = NDArray[np.int64]

PLAIN, MARGINAL, BRACKET, SCAN, TRANSPORT, CUT = "plain", "marginal", "bracket", "scan", "transport", "cut"
STAGES = (MARGINAL, BRACKET, SCAN, TRANSPORT, CUT)

LARGEST_CUT = 1 << 20
"""Arcs of a cut, about: the ways in which rows of the side table stand, times columns. About a second each."""

ROWS_AT_ONCE = 1 << 13


@dataclass(frozen=True, slots=True)
class Stages:
    """How many rows each stage has proved; ``plain`` are those that need no proof, ``open`` those without one."""

    plain: int = 0
    marginal: int = 0
    bracket: int = 0
    scan: int = 0
    transport: int = 0
    cut: int = 0
    open: int = 0


def solve(
    problem: LatticeProblem,
    objective: Objective,
    *,
    which: Ints | None = None,
    random: Random | None = None,  # noqa: ARG001 - every optimizer takes it; this one has nothing to draw
    threads: int | None = None,
    progress: Progress = no_progress,
) -> Solution:
    """The best generalization of each row, proved but for cuts that are too large."""
    return solve_in_stages(problem, objective, which=which, threads=threads, progress=progress)[0]


def solve_in_stages(
    problem: LatticeProblem,
    objective: Objective,
    *,
    which: Ints | None = None,
    threads: int | None = None,
    progress: Progress = no_progress,
    stages: Collection[str] = STAGES,
    largest_cut: int = LARGEST_CUT,
) -> tuple[Solution, Stages]:
    """:func:`solve`, by some of the stages, and how many rows each of them has proved."""
    if not isinstance(objective, Lagrangian):
        raise InternalError("Minimum cuts serve the Lagrangian objective only.")
    which = np.arange(problem.n) if which is None else np.asarray(which, dtype=np.int64)
    work = _Work(problem, objective, frozenset(stages), largest_cut)
    work.check(which)
    n = len(which)
    found = Solution(
        which, np.empty((n, problem.n_columns), dtype=np.uint8), np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64),
        np.empty(n, dtype=np.int64), np.zeros(n, dtype=np.bool_),
    )  # fmt: skip
    seen = Counter({PLAIN: n}) if work.is_plain else Counter[str]()
    open_ = work.ends(found, threads, progress)
    if not work.is_plain:
        seen[MARGINAL] += n - len(open_)
        with ThreadPoolExecutor(threads or n_cores()) as pool:
            for done, (at, stage) in enumerate(pool.map(work.finish(found), open_.tolist())):
                seen[stage if found.is_proved[at] else "open"] += 1
                progress("proofs", done + 1, len(open_))
    return found, Stages(**seen)


def share_interior(problem: LatticeProblem, solution: Solution) -> float:
    """The share of the table's rows that are neither as they are nor hidden among all rows of the side table.

    That is what a user of the Lagrangian must be told of: it is 0 nearly always.
    """
    raw = problem.nodes_of(solution.which, np.zeros_like(solution.levels))
    is_raw = np.all(problem.nodes_of(solution.which, solution.levels) == raw, axis=1)
    is_hidden = solution.covered == problem.n_side + problem.own[solution.which]
    n_alike = problem.n_alike[solution.which]
    return float(n_alike[~is_raw & ~is_hidden].sum() / max(n_alike.sum(), 1))


# ---- what is done ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Work:
    problem: LatticeProblem
    objective: Lagrangian
    stages: frozenset[str]
    largest_cut: int

    @cached_property
    def is_plain(self) -> bool:
        """Utility does not matter, or risk does not: everything is suppressed, or nothing is."""
        return self.objective.power == 0 or self.objective.price == 0

    @cached_property
    def numbers(self) -> tuple[float, float, int]:
        """Price by a unit of weight, unit of utility, power: for kernels."""
        return (
            float(self.objective.price) / self.problem.weight_unit,
            self.problem.utility_unit,
            self.objective.power,
        )

    @cached_property
    def node_count(self) -> Ints:
        """Rows of the side table below each node."""
        lattice, problem = self.problem.lattice, self.problem
        out = np.empty(len(lattice.parent), dtype=np.int64)
        ends = [*lattice.root.tolist(), len(out)]
        for a in range(problem.n_columns):
            n_codes = int(lattice.high[ends[a]])
            counts = np.bincount(problem.side[:, a], weights=problem.side_count, minlength=n_codes)
            below = np.concatenate([[0], np.cumsum(np.rint(counts).astype(np.int64))])
            nodes = slice(ends[a], ends[a + 1])
            out[nodes] = below[lattice.high[nodes]] - below[lattice.low[nodes]]
        return out

    @cached_property
    def by_column(self) -> NDArray[np.uint32]:
        """The side table, column by column."""
        return np.ascontiguousarray(self.problem.side.T)

    def check(self, which: Ints) -> None:
        """A row that may be published without weight has no greatest 1 / r."""
        top = np.broadcast_to(self.problem.top(), (len(which), self.problem.n_columns))
        if np.any(self.problem.weight_of(which, top) <= 0):
            raise InternalError("The Lagrangian needs a weight above 0 for rows that are suppressed.")

    def ends(self, found: Solution, threads: int | None, progress: Progress) -> Ints:
        """The two ends of the ladders of all rows, and which of them are proved best. Returns the rows left open."""
        n = len(found)
        parts = [slice(at, min(at + ROWS_AT_ONCE, n)) for at in range(0, n, ROWS_AT_ONCE)]
        is_open = np.zeros(n, dtype=np.bool_)

        def one(part: slice) -> None:
            is_open[part] = self._ends(found, part)

        progress("single columns", 0, n)
        with ThreadPoolExecutor(threads or n_cores()) as pool:
            for part, _ in zip(parts, pool.map(one, parts), strict=True):
                progress("single columns", part.stop, n)
        return np.flatnonzero(is_open)

    def _ends(self, found: Solution, part: slice) -> NDArray[np.bool_]:
        problem, which = self.problem, found.which[part]
        equal = np.empty(len(which), dtype=np.int64)
        fill_equal(problem.side, problem.side_count, problem.rows, which, equal)
        out = np.empty((len(which), 7), dtype=np.int64)
        levels = np.empty((len(which), 2, problem.n_columns), dtype=np.uint8)
        fill_ends(
            problem.lattice, self.node_count, problem.rows, problem.factor, problem.own, equal + problem.own[which],
            np.int64(problem.floor), *self.numbers, which, out, levels,
        )  # fmt: skip
        proved = out[:, 0]
        if self.is_plain:
            proved[:] = LOW if self.objective.price == 0 else HIGH
            if self.objective.price == 0:
                levels[:, 0], out[:, 2], out[:, 3] = 0, *self._raw(which)
        elif MARGINAL not in self.stages:
            proved[:] = OPEN
        for i in np.flatnonzero(proved == TIED).tolist():
            low, high = (self._worth(out[i, at : at + 3]) for at in (1, 4))
            proved[i] = HIGH if high > low else LOW
        is_high = proved == HIGH
        found.levels[part] = np.where(is_high[:, None], levels[:, 1], levels[:, 0])
        for name, at in (("covered", 1), ("weight", 2), ("utility", 3)):
            getattr(found, name)[part] = np.where(is_high, out[:, at + 3], out[:, at])
        found.is_proved[part] = proved != OPEN
        return np.asarray(proved == OPEN)

    def _raw(self, which: Ints) -> tuple[Ints, Ints]:
        levels = np.zeros((len(which), self.problem.n_columns), dtype=np.uint8)
        return self.problem.weight_of(which, levels), self.problem.utility_of(which, levels)

    def _worth(self, measured: Any) -> Any:
        covered, weight, utility = (int(one) for one in measured)
        units = self.problem.weight_unit, self.problem.utility_unit
        return worth_of(self.objective, covered, weight, utility, *units)

    # ---- rows that single columns leave open ------------------------------------------------------------

    def finish(self, found: Solution) -> Callable[[int], tuple[int, str]]:
        """A function that solves the row at some place of a solution; it returns the place and the last stage."""

        def one(at: int) -> tuple[int, str]:
            bracket = self._bracket(int(found.which[at]))
            steps, stage, is_proved = self._best(bracket)
            columns = np.arange(len(steps))
            found.levels[at] = bracket.ladder[columns, steps, LEVEL]
            found.covered[at], found.weight[at], found.utility[at] = bracket.measure(steps)
            found.is_proved[at] = is_proved
            return at, stage

        return one

    def _bracket(self, row: int) -> Bracket:
        problem, floor = self.problem, np.int64(self.problem.floor)
        n_columns, n_side = self.by_column.shape
        size = np.empty(n_columns, dtype=np.int64)
        ladder = np.empty((n_columns, int(problem.lattice.n_levels.max()), 4), dtype=np.int64)
        fill_ladder(
            problem.lattice, self.node_count, problem.rows, problem.factor, problem.own, row, size, ladder
        )
        low, high = np.zeros(n_columns, dtype=np.int64), size - 1
        narrow = BRACKET in self.stages
        if narrow:
            fill_first_high(ladder, floor, *self.numbers, high)
        stands = np.empty((n_columns, n_side + 1), dtype=np.uint8)
        count = np.empty(n_side + 1, dtype=np.int64)
        n = fill_standing(
            problem.lattice, self.by_column, problem.side_count, problem.rows, row, problem.own[row], ladder, high,
            stands, count,
        )  # fmt: skip
        if narrow:
            n = fill_high(stands, count, n, ladder, low, floor, *self.numbers, high)
        return Bracket(
            ladder, low, high, stands, count, n, problem.floor, problem.weight_unit, problem.utility_unit
        )

    def _best(self, bracket: Bracket) -> tuple[Ints, str, bool]:
        """The best steps, the stage that found them, and whether they are proved."""
        better, stage = self._certified(bracket)
        if stage is None and BRACKET in self.stages and self._raise_low(bracket):
            better, stage = self._certified(bracket)
        if stage is not None:
            return better, stage, True
        if CUT in self.stages and bracket.n <= self.largest_cut:
            merged = replace(bracket, n=fill_distinct(bracket.stands, bracket.count, bracket.n))
            if merged.n * merged.n_free <= self.largest_cut:
                steps, is_proved = best_of(merged, self.objective, better)
                return steps, CUT, is_proved
        return better, CUT, False

    def _certified(self, bracket: Bracket) -> tuple[Ints, str | None]:
        """The better end of a bracket, and the stage that proves it, if one does."""
        better, best = self._better(bracket)
        if not bracket.n_free:
            return better, BRACKET
        if TRANSPORT in self.stages and better is bracket.high and self._transports(bracket):
            return better, TRANSPORT
        is_near = SCAN in self.stages and ends_are_best_nearby(
            bracket.stands, bracket.count, bracket.n, bracket.ladder, bracket.low, bracket.high, np.int64(bracket.floor),
            *self.numbers, float(best),
        )  # fmt: skip
        return better, SCAN if is_near else None

    def _raise_low(self, bracket: Bracket) -> bool:
        """Raise the lower end of a bracket, in place. Has it moved?"""
        before = bracket.low.copy()
        fill_low(
            bracket.stands, bracket.count, bracket.n, bracket.ladder, bracket.high, np.int64(bracket.floor),
            *self.numbers, bracket.low,
        )  # fmt: skip
        return bool(np.any(bracket.low > before))

    def _better(self, bracket: Bracket) -> tuple[Ints, Fraction]:
        """The better end of a bracket."""
        low, high = (bracket.worth(self.objective, steps) for steps in (bracket.low, bracket.high))
        return (bracket.high, high) if high > low else (bracket.low, low)

    def _transports(self, bracket: Bracket) -> bool:
        """Do rows of the side table, each serving one column, prove the upper end of a bracket?"""
        unit, power = Fraction(bracket.utility_unit), self.objective.power
        lowest, highest = (bracket.measure(end)[2] * unit for end in (bracket.low, bracket.high))
        weight = bracket.measure(bracket.high)[1]
        spare = bracket.worth(self.objective, bracket.high) - lowest**power
        return bool(
            high_is_best(
                bracket.stands, bracket.count, bracket.n, bracket.ladder, bracket.low, bracket.high,
                float(slope_of(power, highest, lowest)) * bracket.utility_unit, float(spare), float(weight),
                self.numbers[0],
            )
        )  # fmt: skip


__all__ = ["LARGEST_CUT", "STAGES", "Stages", "share_interior", "solve", "solve_in_stages"]
