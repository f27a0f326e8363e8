"""The rows of a problem as tuples and seekers of the cube (:mod:`sfumato.methods.risk_utility.kernels.cube`)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.encoding.domain import Codes
from sfumato.methods.risk_utility.kernels.cube import (
    LAGRANGIAN,
    LOG_RISK,
    MERGED,
    MOST_UTILITY,
    PLAIN,
    SINGLE,
    THRESHOLD,
    Aim,
    Best,
    Cube,
    CubeScratch,
    Seeking,
)
from sfumato.methods.risk_utility.problem import (
    Ints,
    Lagrangian,
    LatticeProblem,
    Levels,
    MostUtility,
    Objective,
    Threshold,
)

MOST_CLASSES = 64
"""Where rows need more different utilities than that, each row is a seeker of its own."""

KEY_BITS = 63


@dataclass(frozen=True, slots=True, eq=False)
class Tuples:
    """Tuples of level 0: the distinct rows of table and side table, and joins; the seekers; and what is best."""

    cube: Cube
    aim: Aim
    seeking: Seeking
    mode: int
    key: Ints  # (tuples,)
    count: Ints  # (tuples,) rows of the side table, or people; of joins it may be below 0
    weight: Ints  # (tuples,)
    utility: Ints  # (tuples,)
    at: Ints  # (seekers,) tuples
    who: Ints  # (seekers,) classes, or rows themselves
    own_weight: Ints  # (seekers,) of single rows, else empty
    seeker: Ints  # (rows,) the seeker of each row

    @property
    def n_columns(self) -> int:
        return len(self.cube.n_levels)

    def scratch(self, *, lines: int | None = None) -> CubeScratch:
        """Working memory of one thread, with line 0 filled in."""
        lines = self.n_columns + 1 if lines is None else lines
        n, s = len(self.key), len(self.at)
        merged, single = s * (self.mode != PLAIN), s * (self.mode == SINGLE)

        def with_first(dtype: type, first: Ints, width: int) -> NDArray[Any]:
            out: NDArray[Any] = np.empty((lines, width), dtype=dtype)
            out[0] = first[:width]
            return out

        return CubeScratch(
            key=with_first(np.int64, self.key, n),
            n_rows=with_first(np.int32, self.count, n),
            weight=with_first(np.int64, self.weight, n),
            utility=with_first(np.int64, self.utility, n),
            size=np.full(lines, n),
            table=np.empty(1 << (2 * n).bit_length(), dtype=np.int32),
            step=np.empty(n, dtype=np.uint32),
            through=np.empty(n, dtype=np.uint32),
            at=with_first(np.uint32, self.at, merged),
            who=with_first(np.uint32, self.who, merged),
            own_weight=with_first(np.int64, self.own_weight, single),
            n_seekers=np.full(lines, s),
            link=np.empty((lines, s), dtype=np.int32),
            step_link=np.empty(s, dtype=np.int32),
            head=np.empty(n, dtype=np.int32),
            before=np.empty(s, dtype=np.int32),
        )

    def best(self) -> Best:
        """No generalization yet."""
        lines, s = 1 if self.mode == SINGLE else self.n_columns + 1, len(self.at)
        return Best(
            np.empty((lines, s), dtype=np.int64),
            np.zeros((lines, s), dtype=np.int32),
            np.empty((lines, s), dtype=np.int64),
            np.empty((lines, s), dtype=np.int64),
            np.empty((lines, 0 if self.aim.kind < LAGRANGIAN else s)),
        )

    def n_bytes(self) -> int:
        """Memory of one thread at most: 28 bytes for a tuple and 56 for a seeker, for each column and twice more."""
        return (self.n_columns + 2) * (28 * len(self.key) + 56 * len(self.at))

    def levels(self, number: Ints) -> Levels:
        """Level vectors (vectors, columns) by their numbers."""
        return (number[:, None] // self.cube.place % self.cube.n_levels).astype(np.uint8)


def first_line(best: Best) -> Best:
    """A copy of the first line alone."""
    parts: list[Any] = [part[:1].copy() for part in best]
    return Best(*parts)


def tuples_of(problem: LatticeProblem, objective: Objective, which: Ints) -> Tuples | None:
    """The tuples of a problem, and seekers for some of its rows; None where a tuple does not fit a key of 63 bits."""
    codes = np.concatenate([problem.rows[which], problem.side])
    nodes = [_nodes_above(problem, a, codes[:, a]) for a in range(problem.n_columns)]
    bits = [(len(part) - 1).bit_length() for part in nodes]
    if sum(bits) > KEY_BITS or not _fits_levels(problem):
        return None
    cube = _cube(problem, nodes, bits)
    leaf = np.concatenate([_leaves(problem, codes), problem.joins.node])
    packed = np.zeros(len(leaf), dtype=np.int64)
    for a, part in enumerate(nodes):
        packed |= np.searchsorted(part, leaf[:, a]) << cube.shift[a]
    key, first, at = np.unique(packed, return_index=True, return_inverse=True)
    lattice, n = problem.lattice, len(which)
    weight = lattice.weight[leaf[first]].sum(axis=1) + problem.floor
    utility = lattice.utility[leaf[first]].sum(axis=1)
    counts = np.concatenate([problem.side_count, problem.joins.n_people])
    count = np.bincount(at[n:], weights=counts, minlength=len(key)).astype(np.int64)
    return _with_seekers(problem, objective, which, at[:n], (cube, key, count, weight, utility))


def fits_any_rows(problem: LatticeProblem) -> bool:
    """Does a tuple fit a key whatever rows are to be generalized? Nothing of the problem's own rows is looked at."""
    lattice = problem.lattice
    n_nodes = np.diff(np.append(lattice.root, len(lattice.parent))).tolist()
    return sum((n - 1).bit_length() for n in n_nodes) <= KEY_BITS and _fits_levels(problem)


def _fits_levels(problem: LatticeProblem) -> bool:
    """Can level vectors be numbered?"""
    return bool(math.prod(problem.lattice.n_levels.tolist()) < 1 << KEY_BITS)


def _with_seekers(
    problem: LatticeProblem,
    objective: Objective,
    which: Ints,
    at: Ints,
    tuples: tuple[Cube, Ints, Ints, Ints, Ints],
) -> Tuples:
    """The same tuples with their seekers: single rows, or rows that are alike merged."""
    cube, key, count, weight, utility = tuples
    aim, own = _aim(problem, objective), problem.own[which]
    need = problem.need(objective.at_least)[which] if isinstance(objective, Threshold) else np.zeros_like(own)
    classes, of_row = np.unique(np.stack([need, own], axis=1), axis=0, return_inverse=True)
    none = np.zeros(0, dtype=np.int64)
    if problem.is_personal or len(classes) > MOST_CLASSES:
        order = np.argsort(at, kind="stable")  # rows of a tuple side by side: memory is read in order
        lines = _weights(problem, which[order], cube)
        raw = lines[cube.line].sum(axis=0) + problem.floor
        seeking, every = Seeking(need[order], own[order], lines), np.arange(len(which))
        seeker = np.argsort(order)
        return Tuples(cube, aim, seeking, SINGLE, key, count, weight, utility, at[order], every, raw, seeker)
    seeking = Seeking(classes[:, 0].copy(), classes[:, 1].copy(), np.zeros((0, 0), dtype=np.int64))
    distinct, seeker = np.unique(at * len(classes) + of_row.reshape(-1), return_inverse=True)
    mode = PLAIN if len(classes) == 1 and len(distinct) == len(key) else MERGED
    at, who = np.divmod(distinct, len(classes))
    return Tuples(cube, aim, seeking, mode, key, count, weight, utility, at, who, none, seeker)


def _aim(problem: LatticeProblem, objective: Objective) -> Aim:
    units = (problem.weight_unit, problem.utility_unit)
    if isinstance(objective, Threshold):
        return Aim(THRESHOLD, 0.0, 0, *units)
    if isinstance(objective, MostUtility):
        limit = problem.limit(objective)
        return Aim(MOST_UTILITY, 0.0, 0, *units, limit.whole, limit.part, limit.parts)
    if isinstance(objective, Lagrangian):
        return Aim(LAGRANGIAN, float(objective.price), objective.power, *units)
    return Aim(LOG_RISK, float(objective.price), 0, *units)


def _nodes_above(problem: LatticeProblem, a: int, codes: Codes) -> NDArray[np.int32]:
    """The nodes of a column above some codes, themselves included, the root first."""
    lattice = problem.lattice
    n_levels = int(lattice.n_levels[a])
    chain = lattice.start[a] + np.unique(codes).astype(np.int64)[:, None] * n_levels + np.arange(n_levels)
    return np.unique(lattice.node[chain])


def _leaves(problem: LatticeProblem, codes: Codes) -> NDArray[np.int32]:
    """The nodes of level 0."""
    lattice = problem.lattice
    return lattice.node[lattice.start + codes.astype(np.int64) * lattice.n_levels]


def _cube(problem: LatticeProblem, nodes: list[NDArray[np.int32]], bits: list[int]) -> Cube:
    lattice = problem.lattice
    shift = np.cumsum([0, *bits])[:-1].astype(np.int64)
    joined = np.concatenate(nodes)
    above = lattice.parent[joined]
    up = [
        (np.searchsorted(part, lattice.parent[part]) - np.arange(len(part))) << by
        for part, by in zip(nodes, shift.tolist(), strict=True)
    ]
    n_levels = lattice.n_levels.astype(np.int64)
    return Cube(
        n_levels=n_levels,
        shift=shift,
        field=np.array([(1 << b) - 1 for b in bits], dtype=np.int64),
        first=np.cumsum([0, *map(len, nodes)])[:-1].astype(np.int64),
        depth=lattice.depth[joined].astype(np.int64),
        up_key=np.concatenate(up).astype(np.int64),
        up_weight=lattice.weight[above] - lattice.weight[joined],
        up_utility=lattice.utility[above] - lattice.utility[joined],
        place=np.append(np.cumprod(n_levels[::-1])[-2::-1], 1).astype(np.int64),
        line=np.cumsum([0, *n_levels.tolist()])[:-1].astype(np.int64),
    )


def _weights(problem: LatticeProblem, which: Ints, cube: Cube) -> Ints:
    """The weight of each level of each column for each row (levels of all columns, rows)."""
    levels = np.zeros((len(which), problem.n_columns), dtype=np.uint8)
    out = np.empty((int(cube.n_levels.sum()), len(which)), dtype=np.int64)
    for level in range(int(cube.n_levels.max())):
        has = np.flatnonzero(cube.n_levels > level)
        levels[:, has] = level
        nodes = problem.nodes_of(which, levels)[:, has]
        weight = problem.lattice.weight[nodes]
        if problem.is_personal:
            weight = np.rint(problem.factor[np.ix_(which, has)] * weight).astype(np.int64)
        out[cube.line[has] + level] = weight.T
    return out


__all__ = ["Tuples", "first_line", "fits_any_rows", "tuples_of"]
