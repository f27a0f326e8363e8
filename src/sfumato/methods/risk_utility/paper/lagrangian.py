r"""The greatest :math:`f(x) = \lambda / r(x) + u(x)^\kappa` of each row, proved [FEB12, section 2.3].

f itself is supermodular: 1 / Phi rises with generalization and is supermodular, for Phi is a sum over columns and 1 / y
is convex; so is |rho|; and so are products of such functions. Hence the generalizations with the greatest f are closed
under meet and join, and the least of them is the one with most utility and the least levels: no other tie is left.

A cut for each row, as in the paper, takes seconds on large tables. So cheaper proofs come first, and cuts last; what one
stage leaves open the next one takes up:

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
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InternalError
from sfumato.machine import n_cores
from sfumato.methods.risk_utility.kernels.lattice import SideRows
from sfumato.methods.risk_utility.paper.cut import Bracket, best_of, slope_of, worth_of
from sfumato.methods.risk_utility.paper.kernels.bracket import (
    Standing,
    ends_are_best_nearby,
    fill_standing,
    high_is_best,
    lower_high,
    lower_high_by_columns,
    merge_alike,
    raise_low,
)
from sfumato.methods.risk_utility.paper.kernels.marginal import (
    HIGH,
    LOW,
    OPEN,
    TIED,
    Ladder,
    LadderEnds,
    Terms,
    fill_ends,
    fill_equal,
    fill_ladder,
)
from sfumato.methods.risk_utility.problem import Lagrangian, LatticeProblem, Objective, Solution
from sfumato.progress import Progress, no_progress
from sfumato.randomness import Random

Ints = NDArray[np.int64]

PLAIN, MARGINAL, BRACKET, SCAN, TRANSPORT, CUT = "plain", "marginal", "bracket", "scan", "transport", "cut"
STAGES = (MARGINAL, BRACKET, SCAN, TRANSPORT, CUT)

LARGEST_CUT = 1 << 20
"""Arcs of a cut, about: distinct rows of the side table times columns. Such a cut takes about a second."""

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
    prover = _RowProver(problem, objective, frozenset(stages), largest_cut)
    prover.check(which)
    n = len(which)
    found = Solution(
        which, np.empty((n, problem.n_columns), dtype=np.uint8), np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64),
        np.empty(n, dtype=np.int64), np.zeros(n, dtype=np.bool_),
    )  # fmt: skip
    seen = Counter({PLAIN: n}) if prover.is_plain else Counter[str]()
    open_ = prover.prove_ends(found, threads, progress)
    if not prover.is_plain:
        seen[MARGINAL] += n - len(open_)
        with ThreadPoolExecutor(threads or n_cores()) as pool:
            for done, (at, stage) in enumerate(pool.map(partial(prover.solve_row, found), open_.tolist())):
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


# ---- the stages -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _RowProver:
    """The best generalization of single rows, by some of the stages."""

    problem: LatticeProblem
    objective: Lagrangian
    stages: frozenset[str]
    largest_cut: int

    @cached_property
    def is_plain(self) -> bool:
        """Utility does not matter, or risk does not: everything is suppressed, or nothing is."""
        return self.objective.power == 0 or self.objective.price == 0

    @cached_property
    def terms(self) -> Terms:
        """The objective, as kernels take it."""
        problem, objective = self.problem, self.objective
        price = float(objective.price) / problem.weight_unit
        return Terms(price, problem.utility_unit, objective.power, problem.floor)

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
    def by_column(self) -> SideRows:
        """The side table, column by column."""
        return SideRows(np.ascontiguousarray(self.problem.side.T), self.problem.side_count)

    def check(self, which: Ints) -> None:
        """A row that may be published without weight has no greatest 1 / r."""
        top = np.broadcast_to(self.problem.top(), (len(which), self.problem.n_columns))
        if np.any(self.problem.weight_of(which, top) <= 0):
            raise InternalError("The Lagrangian needs a weight above 0 for rows that are suppressed.")

    def prove_ends(self, found: Solution, threads: int | None, progress: Progress) -> Ints:
        """The two ends of the ladders of all rows, and which of them are proved best. Returns the rows left open."""
        n = len(found)
        parts = [slice(at, min(at + ROWS_AT_ONCE, n)) for at in range(0, n, ROWS_AT_ONCE)]
        is_open = np.zeros(n, dtype=np.bool_)

        def one(part: slice) -> None:
            is_open[part] = self._prove_ends(found, part)

        progress("single columns", 0, n)
        with ThreadPoolExecutor(threads or n_cores()) as pool:
            for part, _ in zip(parts, pool.map(one, parts), strict=True):
                progress("single columns", part.stop, n)
        return np.flatnonzero(is_open)

    def _prove_ends(self, found: Solution, part: slice) -> NDArray[np.bool_]:
        """Write the better end of some rows into the solution. Which rows are left open?"""
        problem, which = self.problem, found.which[part]
        equal = np.empty(len(which), dtype=np.int64)
        fill_equal(problem.side, problem.side_count, problem.rows, which, equal)
        ends = LadderEnds(
            np.empty(len(which), dtype=np.int64),
            np.empty((len(which), 2, problem.n_columns), dtype=np.uint8),
            *(np.empty((len(which), 2), dtype=np.int64) for _ in range(3)),
        )
        raw_count = equal + problem.own[which]
        fill_ends(self.terms, problem.lattice, self.node_count, problem.table_rows, raw_count, which, ends)
        proved = ends.proved
        if self.is_plain:
            proved[:] = LOW if self.objective.price == 0 else HIGH
            if self.objective.price == 0:
                ends.level[:, 0], ends.weight[:, 0], ends.utility[:, 0] = 0, *self._raw(which)
        elif MARGINAL not in self.stages:
            proved[:] = OPEN
        for i in np.flatnonzero(proved == TIED).tolist():
            proved[i] = HIGH if self._worth(ends, i, HIGH) > self._worth(ends, i, LOW) else LOW
        every, better = np.arange(len(which)), np.where(proved == HIGH, HIGH, LOW)
        found.levels[part] = ends.level[every, better]
        found.covered[part] = ends.covered[every, better]
        found.weight[part] = ends.weight[every, better]
        found.utility[part] = ends.utility[every, better]
        found.is_proved[part] = proved != OPEN
        return np.asarray(proved == OPEN)

    def _raw(self, which: Ints) -> tuple[Ints, Ints]:
        """Weight and utility of rows as they are."""
        levels = np.zeros((len(which), self.problem.n_columns), dtype=np.uint8)
        return self.problem.weight_of(which, levels), self.problem.utility_of(which, levels)

    def _worth(self, ends: LadderEnds, row: int, end: int) -> Fraction:
        """What the low or the high end of a row is worth, exactly."""
        covered, weight, utility = (
            int(values[row, end]) for values in (ends.covered, ends.weight, ends.utility)
        )
        units = self.problem.weight_unit, self.problem.utility_unit
        return worth_of(self.objective, covered, weight, utility, *units)

    # ---- rows that single columns leave open ------------------------------------------------------------

    def solve_row(self, found: Solution, at: int) -> tuple[int, str]:
        """Write the best generalization of the row at some place of a solution: the place, and the last stage."""
        bracket = self._bracket(int(found.which[at]))
        steps, stage, is_proved = self._best(bracket)
        found.levels[at] = bracket.ladder.level[np.arange(len(steps)), steps]
        found.covered[at], found.weight[at], found.utility[at] = bracket.measure(steps)
        found.is_proved[at] = is_proved
        return at, stage

    def _bracket(self, row: int) -> Bracket:
        """Where the best generalization of a row must lie, brought down from above."""
        problem, rows = self.problem, self.problem.table_rows
        n_columns, n_side = self.by_column.code.shape
        shape = n_columns, int(problem.lattice.n_levels.max())
        ladder = Ladder(
            np.empty(n_columns, dtype=np.int64), *(np.empty(shape, dtype=np.int64) for _ in range(4))
        )
        fill_ladder(problem.lattice, self.node_count, rows, row, ladder)
        low, high = np.zeros(n_columns, dtype=np.int64), ladder.size - 1
        is_narrowed = BRACKET in self.stages
        if is_narrowed:
            lower_high_by_columns(self.terms, ladder, high)
        standing = Standing(
            np.empty((n_columns, n_side + 1), dtype=np.uint8), np.empty(n_side + 1, dtype=np.int64)
        )
        n = fill_standing(problem.lattice, self.by_column, rows, row, ladder, high, standing)
        if is_narrowed:
            n = lower_high(self.terms, standing, n, ladder, low, high)
        return Bracket(
            ladder, low, high, standing, n, problem.floor, problem.weight_unit, problem.utility_unit
        )

    def _best(self, bracket: Bracket) -> tuple[Ints, str, bool]:
        """The best steps, the stage that found them, and whether they are proved."""
        better, stage = self._prove_end(bracket)
        if stage is None and BRACKET in self.stages and self._raise_low(bracket):
            better, stage = self._prove_end(bracket)
        if stage is not None:
            return better, stage, True
        if CUT in self.stages and bracket.n <= self.largest_cut:
            merged = replace(bracket, n=merge_alike(bracket.standing, bracket.n))
            if merged.n * merged.n_free <= self.largest_cut:
                steps, is_proved = best_of(merged, self.objective, better)
                return steps, CUT, is_proved
        return better, CUT, False

    def _prove_end(self, bracket: Bracket) -> tuple[Ints, str | None]:
        """The better end of a bracket, and the stage that proves it, if one does."""
        better, best = self._better(bracket)
        if not bracket.n_free:
            return better, BRACKET
        if TRANSPORT in self.stages and better is bracket.high and self._is_high_best(bracket):
            return better, TRANSPORT
        is_near = SCAN in self.stages and ends_are_best_nearby(
            self.terms, bracket.standing, bracket.n, bracket.ladder, bracket.low, bracket.high, float(best)
        )
        return better, SCAN if is_near else None

    def _raise_low(self, bracket: Bracket) -> bool:
        """Raise the lower end of a bracket, in place. Has it moved?"""
        before = bracket.low.copy()
        raise_low(self.terms, bracket.standing, bracket.n, bracket.ladder, bracket.high, bracket.low)
        return bool(np.any(bracket.low > before))

    def _better(self, bracket: Bracket) -> tuple[Ints, Fraction]:
        """The better end of a bracket."""
        low, high = (bracket.worth(self.objective, steps) for steps in (bracket.low, bracket.high))
        return (bracket.high, high) if high > low else (bracket.low, low)

    def _is_high_best(self, bracket: Bracket) -> bool:
        """Do rows of the side table, each serving one column, prove the upper end of a bracket?"""
        unit, power = Fraction(bracket.utility_unit), self.objective.power
        lowest, highest = (bracket.measure(end)[2] * unit for end in (bracket.low, bracket.high))
        spare = bracket.worth(self.objective, bracket.high) - lowest**power
        slope = float(slope_of(power, highest, lowest)) * bracket.utility_unit
        is_best = high_is_best(
            self.terms,
            bracket.standing,
            bracket.n,
            bracket.ladder,
            bracket.low,
            bracket.high,
            slope,
            float(spare),
        )
        return bool(is_best)


__all__ = ["LARGEST_CUT", "STAGES", "Stages", "share_interior", "solve", "solve_in_stages"]
