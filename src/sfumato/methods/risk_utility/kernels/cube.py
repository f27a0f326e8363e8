"""One cube for all rows: every generalization of every row, each group of rows looked at once.

A *tuple* is what some rows look alike as at some levels: one node per column, packed into the bit fields of a whole
number, with the number of rows of the side table that it covers. Level vectors are visited in lexicographic order, the
last column fastest; a column goes up one level at a time, which replaces one field of each tuple by its parent and merges
tuples that have become equal. Nothing is done twice for rows that look alike.

A *seeker* is what looks for its best generalization: rows that are the same tuple now, need the same utility and count
themselves alike (``MERGED``; where all of them do, seekers are the tuples themselves: ``PLAIN``), or one row that has
weights of its own (``SINGLE``). Merged seekers get the best of the generalizations from here on, handed down through
``link`` when a column is done.

Weights and utilities of a tuple are those of the whole: columns that are still to come stand at level 0. Utility never
rises towards the root, so a seeker that lacks utility here is dropped: no generalization from here on has more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.compile import inner, kernel

PLAIN, MERGED, SINGLE = 0, 1, 2
THRESHOLD, MOST_UTILITY, LAGRANGIAN, LOG_RISK = 0, 1, 2, 3
"""Kinds of aims: those of whole numbers come first, then those of floats."""

TOLERANCE = 1e-12
"""Objectives in floating point that differ by less, relative to the larger, are tied."""

LOW = (1 << 31) - 1
MIX_HIGH, MIX = 0x2545F491, 0x4F1BBCDD  # odd, 30 and 31 bits: no product leaves 63 bits


class Cube(NamedTuple):
    """Hierarchies as the fields of a key; nodes are numbered through all columns, those that occur alone."""

    n_levels: NDArray[np.int64]  # (columns,)
    shift: NDArray[np.int64]  # (columns,) where the field of a column begins
    field: NDArray[np.int64]  # (columns,) all bits of its field, unshifted
    first: NDArray[np.int64]  # (columns,) first + field is a node
    depth: NDArray[np.int64]  # (nodes,)
    up_key: NDArray[np.int64]  # (nodes,) what going up to the parent adds to a key,
    up_weight: NDArray[np.int64]  # (nodes,) a weight
    up_utility: NDArray[np.int64]  # (nodes,) and a utility
    place: NDArray[np.int64]  # (columns,) what one level is worth in the number of a level vector
    line: NDArray[np.int64]  # (columns,) where its levels begin in the lines of ``Seeking.weight``


class Aim(NamedTuple):
    """What is best; for most utility, what may be weighed is c ``whole`` + floor(c ``part`` / ``parts``) of c rows."""

    kind: int
    price: float
    power: int
    weight_unit: float
    utility_unit: float
    whole: int = 0
    part: int = 0
    parts: int = 1


class Seeking(NamedTuple):
    """What tells seekers apart: classes of them, or single rows."""

    need: NDArray[np.int64]  # (classes or rows,) least utility
    own: NDArray[np.int64]  # (classes or rows,) 1 where the side table lacks the row
    weight: NDArray[np.int64]  # (levels of all columns, rows) single rows only, else empty


class Found(NamedTuple):
    """What is known of one generalization."""

    weight: int
    covered: int  # 0: there is none
    utility: int
    value: float  # of the objective; 0 where the aim is of whole numbers


class Best(NamedTuple):
    """The best generalizations so far; those of single rows have one line only."""

    weight: NDArray[np.int64]  # (lines, seekers)
    covered: NDArray[np.int32]  # 0: nothing yet
    utility: NDArray[np.int64]
    levels: NDArray[np.int64]  # the number of the level vector
    value: NDArray[np.float64]  # of the objective; empty where the aim is of whole numbers


class CubeScratch(NamedTuple):
    """Working memory of one thread: a line for the tuples it began with, and one for each column that has gone up."""

    key: NDArray[np.int64]  # (lines, tuples)
    n_rows: NDArray[np.int32]  # rows of the side table that it covers
    weight: NDArray[np.int64]
    utility: NDArray[np.int64]
    size: NDArray[np.int64]  # (lines,)
    table: NDArray[np.int32]  # (a power of two,) open addressing: tuples
    step: NDArray[np.uint32]  # (tuples,) the tuple that each has become
    through: NDArray[np.uint32]  # (tuples,) the same through all levels of the last column
    at: NDArray[np.uint32]  # (lines, seekers) its tuple; none of them where seekers are plain
    who: NDArray[np.uint32]  # (lines, seekers) its class or row
    own_weight: NDArray[np.int64]  # (lines, seekers) single rows only
    n_seekers: NDArray[np.int64]  # (lines,)
    link: NDArray[np.int32]  # (lines, seekers) from the line before that was in use; -1: dropped
    step_link: NDArray[np.int32]  # (seekers,)
    head: NDArray[np.int32]  # (tuples,) its last seeker, while merging
    before: NDArray[np.int32]  # (seekers,) the one before it


# ---- comparing ------------------------------------------------------------------------------------------


@inner
def value_of(aim, covered, weight, utility):
    """The objective, of those that are floats; 0 for the others."""
    if aim.kind < LAGRANGIAN:
        return 0.0
    u = utility * aim.utility_unit
    if aim.kind == LAGRANGIAN:
        power = 1.0
        for _ in range(aim.power):
            power *= u
        return aim.price * covered / (weight * aim.weight_unit) + power
    return u - aim.price * np.log(weight * aim.weight_unit / covered)


@inner
def is_allowed(aim, covered, weight):
    """Is the risk of a generalization as small as the aim asks for?"""
    return aim.kind != MOST_UTILITY or weight <= covered * aim.whole + covered * aim.part // aim.parts


@inner
def best_at(aim, best, line, s):
    """The best generalization of a seeker so far."""
    value = 0.0 if aim.kind < LAGRANGIAN else best.value[line, s]
    return Found(best.weight[line, s], np.int64(best.covered[line, s]), best.utility[line, s], value)


@inner
def is_better(aim, one, other):
    """Is a generalization better than another that comes before it in lexicographic order?"""
    if one.covered == 0 or other.covered == 0:
        return one.covered > other.covered
    if aim.kind < LAGRANGIAN:
        left, right = one.weight * other.covered, other.weight * one.covered
        if aim.kind == MOST_UTILITY:
            return one.utility > other.utility or (one.utility == other.utility and left < right)
        return left < right or (left == right and one.utility > other.utility)
    near = TOLERANCE * max(abs(one.value), abs(other.value))
    return one.value > other.value + near or (one.value >= other.value - near and one.utility > other.utility)


@inner
def keep(aim, best, line, s, found, levels):
    """Keep a generalization if it is better than the best so far."""
    if is_better(aim, found, best_at(aim, best, line, s)):
        best.weight[line, s] = found.weight
        best.covered[line, s] = found.covered
        best.utility[line, s] = found.utility
        best.levels[line, s] = levels
        if aim.kind >= LAGRANGIAN:
            best.value[line, s] = found.value


@inner
def keep_of(aim, best, line, s, other, other_line, other_s):
    """Keep another best generalization if it is better."""
    keep(aim, best, line, s, best_at(aim, other, other_line, other_s), other.levels[other_line, other_s])


@kernel
def keep_better(aim, best, other):
    """The better of two, seeker by seeker; levels of ``other`` come later.

    best    (1, seekers) each   IN+OUT
    other   (1, seekers) each   IN
    """
    for s in range(best.covered.shape[1]):
        keep_of(aim, best, 0, s, other, 0, s)


# ---- going up -------------------------------------------------------------------------------------------


@inner
def bits_for(n):
    """Bits of a table that n keys fill by half at most."""
    bits = 1
    while (1 << bits) < 2 * n:
        bits += 1
    return bits


@inner
def place_of(key, bits):
    """Where a key is first looked for in a table of 2^bits."""
    mixed = ((key & LOW) + (key >> 31) * MIX_HIGH) & LOW
    return ((mixed * MIX) & LOW) >> (31 - bits)


@inner
def raise_tuples(cube, scratch, a, level, line, to):
    """Column ``a`` of the tuples of a line goes up to ``level``, into line ``to``, which may be the same.

    ``scratch.step`` gets the tuple that each has become.
    """
    n = scratch.size[line]
    bits = bits_for(n)
    mask = (1 << bits) - 1
    table, step = scratch.table, scratch.step
    table[: mask + 1] = -1
    key, count, weight, utility = (
        scratch.key[line],
        scratch.n_rows[line],
        scratch.weight[line],
        scratch.utility[line],
    )
    to_key, to_count = scratch.key[to], scratch.n_rows[to]
    to_weight, to_utility = scratch.weight[to], scratch.utility[to]
    shift, field, first = cube.shift[a], cube.field[a], cube.first[a]
    deepest = cube.n_levels[a] - 1 - level
    m = 0
    for t in range(n):
        x, w, u = key[t], weight[t], utility[t]
        node = first + ((x >> shift) & field)
        if cube.depth[node] > deepest:
            x += cube.up_key[node]
            w += cube.up_weight[node]
            u += cube.up_utility[node]
        slot = place_of(x, bits)
        found = table[slot]
        while found >= 0 and to_key[found] != x:
            slot = (slot + 1) & mask
            found = table[slot]
        if found >= 0:
            to_count[found] += count[t]
        else:
            found = m
            table[slot] = m
            to_key[m], to_count[m], to_weight[m], to_utility[m] = x, count[t], w, u
            m += 1
        step[t] = found
    scratch.size[to] = m


@inner
def raise_merged(seeking, scratch, line, to):
    """Seekers follow their tuples and merge with those of their class.

    ``step_link`` gets the seeker that each has become, or -1 where it is dropped.
    """
    n, m = scratch.n_seekers[line], 0
    scratch.head[: scratch.size[to]] = -1
    for s in range(n):
        t, c = scratch.step[scratch.at[line, s]], scratch.who[line, s]
        if scratch.utility[to, t] < seeking.need[c]:
            scratch.step_link[s] = -1
            continue
        found = scratch.head[t]
        while found >= 0 and scratch.who[to, found] != c:
            found = scratch.before[found]
        if found < 0:
            found = m
            scratch.at[to, m], scratch.who[to, m] = t, c
            scratch.before[m] = scratch.head[t]
            scratch.head[t] = m
            m += 1
        scratch.step_link[s] = found
    scratch.n_seekers[to] = m


@inner
def raise_single(cube, seeking, scratch, a, level, line, to):
    """Single rows follow their tuples with the weights of their own; those that lack utility are dropped."""
    m = 0
    above, below = cube.line[a] + level, cube.line[a] + level - 1
    for s in range(scratch.n_seekers[line]):
        t, row = scratch.step[scratch.at[line, s]], scratch.who[line, s]
        if scratch.utility[to, t] >= seeking.need[row]:
            weight = scratch.own_weight[line, s] + seeking.weight[above, row] - seeking.weight[below, row]
            scratch.at[to, m], scratch.who[to, m], scratch.own_weight[to, m] = t, row, weight
            m += 1
    scratch.n_seekers[to] = m


@inner
def raise_plain(seeking, scratch, line, to):
    """Tuples seek for themselves. They are given up together, when none of them has the utility that is needed."""
    n = scratch.n_seekers[line]
    scratch.step_link[:n] = scratch.step[:n]
    scratch.n_seekers[to] = 0
    for t in range(scratch.size[to]):
        if scratch.utility[to, t] >= seeking.need[0]:
            scratch.n_seekers[to] = scratch.size[to]
            return


@inner
def raise_column(cube, seeking, mode, scratch, a, level, start):
    """Column ``a``, which began with line ``start``, goes up to ``level`` in line a + 1; how many seekers are left.

    ``link`` of that line leads from the seekers of the line that the column began with.
    """
    to = a + 1
    line = start if level == 1 else to
    raise_tuples(cube, scratch, a, level, line, to)
    if mode == SINGLE:
        raise_single(cube, seeking, scratch, a, level, line, to)
        return scratch.n_seekers[to]
    n = scratch.n_seekers[start]
    if mode == PLAIN:
        raise_plain(seeking, scratch, line, to)
    else:
        raise_merged(seeking, scratch, line, to)
    if level == 1:
        scratch.link[to, :n] = scratch.step_link[:n]
    else:
        for s in range(n):
            if scratch.link[to, s] >= 0:
                scratch.link[to, s] = scratch.step_link[scratch.link[to, s]]
    return scratch.n_seekers[to]


# ---- the search -----------------------------------------------------------------------------------------


@inner
def score(aim, seeking, mode, scratch, best, line, levels):
    """Every seeker of a line looks at its tuple as it is: the first that it sees, but for single rows."""
    for s in range(scratch.n_seekers[line]):
        t = s if mode == PLAIN else scratch.at[line, s]
        c = 0 if mode == PLAIN else scratch.who[line, s]
        if mode != SINGLE:
            best.covered[line, s] = 0
        utility = scratch.utility[line, t]
        if utility < seeking.need[c]:
            continue
        weight = scratch.own_weight[line, s] if mode == SINGLE else scratch.weight[line, t]
        covered = max(np.int64(scratch.n_rows[line, t]) + seeking.own[c], 1)
        if not is_allowed(aim, covered, weight):
            continue
        found = Found(weight, covered, utility, value_of(aim, covered, weight, utility))
        if mode == SINGLE:
            keep(aim, best, 0, c, found, levels)
        else:
            keep(aim, best, line, s, found, levels)


@inner
def score_last(cube, aim, seeking, scratch, best, level, start, levels):
    """As ``raise_column`` and ``score`` in one, for single rows and the last column: no seeker has to move."""
    a = cube.n_levels.shape[0] - 1
    to, through = a + 1, scratch.through
    raise_tuples(cube, scratch, a, level, start if level == 1 else to, to)
    for t in range(scratch.size[start]):
        through[t] = scratch.step[t if level == 1 else through[t]]
    now, then = cube.line[a] + level, cube.line[a]
    left = 0
    for s in range(scratch.n_seekers[start]):
        t, row = through[scratch.at[start, s]], scratch.who[start, s]
        utility = scratch.utility[to, t]
        if utility < seeking.need[row]:
            continue
        left += 1
        weight = scratch.own_weight[start, s] + seeking.weight[now, row] - seeking.weight[then, row]
        covered = max(np.int64(scratch.n_rows[to, t]) + seeking.own[row], 1)
        if is_allowed(aim, covered, weight):
            found = Found(weight, covered, utility, value_of(aim, covered, weight, utility))
            keep(aim, best, 0, row, found, levels)
    scratch.n_seekers[to] = left
    return left


@inner
def hand_down(aim, scratch, best, start, to):
    """The best of line ``to``, if better, becomes the best of those seekers of line ``start`` that lead to it."""
    for s in range(scratch.n_seekers[start]):
        if scratch.link[to, s] >= 0:
            keep_of(aim, best, start, s, best, to, scratch.link[to, s])


@inner
def n_made(mode, scratch, line):
    """Tuples of a line, and seekers where these are no tuples."""
    return scratch.size[line] if mode == PLAIN else scratch.size[line] + scratch.n_seekers[line]


@kernel
def search(cube, aim, seeking, mode, scratch, best, fixed):
    """The best generalizations of the seekers of line 0, among those whose first levels are ``fixed``.

    Says how many tuples were made, or seekers that are no tuples.

    scratch   line 0 holds tuples and seekers        IN, the rest SCRATCH
    best    line 0                                 OUT, the rest SCRATCH
    fixed   (first columns,)               int64   IN
    """
    n_columns, n_fixed = cube.n_levels.shape[0], fixed.shape[0]
    level = np.zeros(n_columns, dtype=np.int64)
    begun = np.zeros(n_columns, dtype=np.int64)  # the line with which a column began
    best.covered[0] = 0
    line, levels, made = 0, 0, 0
    for a in range(n_fixed):
        begun[a] = line
        for up in range(1, fixed[a] + 1):
            line = a + 1
            if raise_column(cube, seeking, mode, scratch, a, up, begun[a]) == 0:
                return made
            made += n_made(mode, scratch, line)
        if mode != SINGLE:
            best.covered[line] = 0
        levels += fixed[a] * cube.place[a]
    begun[n_fixed:] = line
    score(aim, seeking, mode, scratch, best, line, levels)
    made += n_made(mode, scratch, line)
    a = n_columns - 1
    while a >= n_fixed:
        if level[a] > 0 and mode != SINGLE:
            hand_down(aim, scratch, best, begun[a], a + 1)
        is_open = level[a] + 1 < cube.n_levels[a]
        if is_open:
            level[a] += 1
            levels += cube.place[a]
            if mode == SINGLE and a == n_columns - 1:
                is_open = score_last(cube, aim, seeking, scratch, best, level[a], begun[a], levels) > 0
            else:
                is_open = raise_column(cube, seeking, mode, scratch, a, level[a], begun[a]) > 0
                score(aim, seeking, mode, scratch, best, a + 1, levels)
            made += n_made(mode, scratch, a + 1)
        if is_open:
            begun[a + 1 :] = a + 1
            a = n_columns - 1
        else:
            levels -= level[a] * cube.place[a]
            level[a] = 0
            a -= 1
    for b in range(n_fixed - 1, -1, -1):
        if fixed[b] > 0 and mode != SINGLE:
            hand_down(aim, scratch, best, begun[b], b + 1)
    return made


@kernel
def count_at(cube, seeking, mode, scratch, levels, out):
    """Tuples (and seekers that are none) at one level vector, and how many of the first seekers are served there.

    scratch    line 0 holds tuples and seekers            IN, the rest SCRATCH
    levels   (columns,)                         int64   IN
    out      (2,)                               int64   OUT
    """
    n, m = scratch.size[0], 0
    bits = bits_for(n)
    mask = (1 << bits) - 1
    scratch.table[: mask + 1] = -1
    for t in range(n):
        x, u = scratch.key[0, t], scratch.utility[0, t]
        for a in range(levels.shape[0]):
            node = cube.first[a] + ((x >> cube.shift[a]) & cube.field[a])
            while cube.depth[node] > cube.n_levels[a] - 1 - levels[a]:
                x += cube.up_key[node]
                u += cube.up_utility[node]
                node = cube.first[a] + ((x >> cube.shift[a]) & cube.field[a])
        slot = place_of(x, bits)
        while scratch.table[slot] >= 0 and scratch.key[1, scratch.table[slot]] != x:
            slot = (slot + 1) & mask
        if scratch.table[slot] < 0:
            scratch.table[slot] = m
            scratch.key[1, m], scratch.utility[1, m] = x, u
            m += 1
        scratch.step[t] = scratch.table[slot]
    scratch.size[1] = m
    if mode == SINGLE:
        raise_single(cube, seeking, scratch, 0, 1, 0, 1)
    elif mode == MERGED:
        raise_merged(seeking, scratch, 0, 1)
    else:
        raise_plain(seeking, scratch, 0, 1)
    out[0], out[1] = n_made(mode, scratch, 1), 0
    for s in range(scratch.n_seekers[0]):
        t = scratch.step[s if mode == PLAIN else scratch.at[0, s]]
        if scratch.utility[1, t] >= seeking.need[0 if mode == PLAIN else scratch.who[0, s]]:
            out[1] += 1


__all__ = [
    "LAGRANGIAN",
    "LOG_RISK",
    "MERGED",
    "MOST_UTILITY",
    "PLAIN",
    "SINGLE",
    "THRESHOLD",
    "TOLERANCE",
    "Aim",
    "Best",
    "Cube",
    "CubeScratch",
    "Seeking",
    "count_at",
    "keep_better",
    "search",
]
