"""The sweep of a decision list: level after level, cells that satisfy the requirement take their rows.

The rows are distinct combinations of values, with the number of rows that each stands for: most tables have far fewer of
them, and all that is done here depends on values alone. Only a requirement on sensitive values looks at the rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.compile import inner, kernel
from sfumato.methods.mondrian.kernels.people import moments_of
from sfumato.methods.mondrian.kernels.rules import TWO, counts_hold, part_holds

NOBODY = np.int32(-1)
NOTHING_YET = np.int64(2**62)
"""Above all values. Named here: a kernel that asks numpy for limits loads all that only compiling needs."""
SPREAD = np.uint64(0x9E3779B97F4A7C15)
"""An odd number near 2^64 divided by the golden ratio: products with it differ in their upper bits."""


class KeyParts(NamedTuple):
    """What the key of a cell is made of: its parts for each axis, in as many words as they need."""

    part: NDArray[
        np.uint64
    ]  # part of a value, at its place in the word; those of a level one after the other
    start: NDArray[np.int64]  # (vectors, axes) where the parts of this level begin, -1 at the top: no part
    word: NDArray[np.int64]  # (axes,) the word that the parts of an axis stand in
    n_words: int


class RowsOfCombinations(NamedTuple):
    """Which rows each combination stands for, as the requirement asks for them."""

    rows: NDArray[np.uint32]  # (rows, columns)
    order: NDArray[np.int64]  # (rows,) positions, those of one combination after the other
    start: NDArray[np.int64]  # (combinations + 1,)


class SweepScratch(NamedTuple):
    """Working space of one sweep."""

    slots: NDArray[np.int32]  # (a power of two that is at least twice the combinations,)
    key: NDArray[np.uint64]  # (combinations, words) of each cell
    n_rows: NDArray[np.int64]  # (combinations,) rows of each cell
    cell: NDArray[np.int32]  # (combinations,) cell of each combination that is left
    number: NDArray[np.int32]  # (combinations,) number of each cell once it is published, else NOBODY
    place: NDArray[
        np.int64
    ]  # (combinations,) where the rows of a cell begin in ``listed``, then where they end
    listed: NDArray[np.int64]  # (rows,) rows of cells that are tested; none if only their number counts
    values: NDArray[np.int64]  # as in ``problem.Scratch``
    work: NDArray[np.int64]
    stamps: NDArray[np.int32] | None


class CountScratch(NamedTuple):
    """The part of a ``SweepScratch`` in which a requirement is decided."""

    values: NDArray[np.int64]
    work: NDArray[np.int64]
    stamps: NDArray[np.int32] | None


@kernel
def sweep(combinations, keys, table, least_rows, rules, scratch, published, out):
    """Publish the cells of each level vector, in turn, that satisfy the requirement; returns how many.

    A vector's cells are numbered in the order in which their combinations stand.

    combinations   (m, axes) uint32, the values of each; mixed up after the sweep   IN+scratch
    least_rows     a cell with fewer cannot satisfy the requirement
    published      (m, 2): vector and a combination of each published cell          OUT
    out            (m,) int32: published cell of each combination, NOBODY: none     OUT
    """
    left = np.arange(combinations.shape[0])  # the combinations whose values stand in the first lines
    n_left, n_published = combinations.shape[0], 0
    n_rows = table.order.shape[0]
    out[:] = NOBODY
    for vector in range(keys.start.shape[0]):
        if n_rows < least_rows or n_left == 0:
            break
        n_cells, most = find_cells(combinations, left, n_left, vector, keys, table, scratch)
        if most < least_rows:
            continue
        scratch.number[:n_cells] = NOBODY
        before = n_published
        n_published = publish_cells(
            left, n_left, n_cells, n_published, vector, table, least_rows, rules, scratch, published
        )
        if n_published > before:
            n_left, n_rows = keep_rest(combinations, left, n_left, n_rows, table, scratch, out)
    return n_published


@inner(borrows=True)
def find_cells(combinations, left, n_left, vector, keys, table, scratch):
    """Number the cells of a level vector that occur, and count their rows: (cells, rows of the largest one)."""
    n_slots, shift = 1, 64
    while n_slots < 2 * n_left:
        n_slots, shift = 2 * n_slots, shift - 1
    slots, key, count = scratch.slots, scratch.key, scratch.n_rows
    slots[:n_slots] = NOBODY
    n_cells, most = np.int64(0), np.int64(0)
    for i in range(n_left):
        fill_key(combinations[i], vector, keys, key[n_cells])  # of a new cell, if nobody has it
        slot = slot_of(key[n_cells], shift)
        while slots[slot] != NOBODY and not are_equal(key[slots[slot]], key[n_cells]):
            slot = (slot + 1) & (n_slots - 1)
        if slots[slot] == NOBODY:
            slots[slot] = n_cells
            count[n_cells] = 0
            n_cells += 1
        cell = slots[slot]
        scratch.cell[i] = cell
        count[cell] += table.start[left[i] + 1] - table.start[left[i]]
        most = max(most, count[cell])
    return n_cells, most


@inner(borrows=True, inlines=True)
def fill_key(values, vector, keys, out):
    """The key of the cell that has these values."""
    out[:] = 0
    for axis in range(values.shape[0]):
        start = keys.start[vector, axis]
        if start >= 0:
            out[keys.word[axis]] |= keys.part[start + np.int64(values[axis])]


@inner(borrows=True, inlines=True)
def slot_of(key, shift):
    """The place of a key in a table of 2^(64 - shift) places."""
    mixed = key[0] * SPREAD
    for w in range(1, key.shape[0]):
        mixed = ((mixed ^ (mixed >> np.uint64(29))) + key[w]) * SPREAD
    return np.int64((mixed ^ (mixed >> np.uint64(32))) * SPREAD >> np.uint64(shift))


@inner(borrows=True, inlines=True)
def are_equal(one, other):
    """Are both keys the same?"""
    same = True
    for w in range(one.shape[0]):
        same = same and one[w] == other[w]
    return same


@inner(borrows=True)
def publish_cells(left, n_left, n_cells, n_published, vector, table, least_rows, rules, scratch, published):
    """Number the cells that satisfy the requirement, from ``n_published`` on; returns the next number."""
    count, number = scratch.n_rows, scratch.number
    if needs_rows(rules.sensitive):
        list_rows(left, n_left, n_cells, table, least_rows, scratch)
    for i in range(n_left):
        cell = scratch.cell[i]
        if count[cell] >= least_rows and number[cell] == NOBODY:
            end = scratch.place[cell]
            if not needs_rows(rules.sensitive) or part_holds(
                table.rows, scratch.listed, end - count[cell], end, TWO, rules, scratch
            ):
                number[cell] = n_published
                published[n_published, 0], published[n_published, 1] = vector, left[i]
                n_published += 1
            else:
                count[cell] = 0  # not tested again
    return n_published


@inner(borrows=True)
def needs_rows(sensitive):
    """Does the requirement look at more than the number of rows?"""
    return sensitive is not None


@inner(borrows=True)
def list_rows(left, n_left, n_cells, table, least_rows, scratch):
    """Put the rows of each cell that is large enough next to each other; ``place`` says where they end."""
    end = np.int64(0)
    for cell in range(n_cells):
        scratch.place[cell] = end
        if scratch.n_rows[cell] >= least_rows:
            end += scratch.n_rows[cell]
    for i in range(n_left):
        cell = scratch.cell[i]
        if scratch.n_rows[cell] >= least_rows:
            for j in range(table.start[left[i]], table.start[left[i] + 1]):
                scratch.listed[scratch.place[cell]] = table.order[j]
                scratch.place[cell] += 1


@inner(borrows=True)
def keep_rest(combinations, left, n_left, n_rows, table, scratch, out):
    """Hand the combinations of published cells over, and move the others together: (combinations, rows) left."""
    kept = 0
    for i in range(n_left):
        number = scratch.number[scratch.cell[i]]
        if number != NOBODY:
            out[left[i]] = number
            n_rows -= table.start[left[i] + 1] - table.start[left[i]]
        else:
            if kept < i:
                left[kept] = left[i]
                for axis in range(combinations.shape[1]):
                    combinations[kept, axis] = combinations[i, axis]
            kept += 1
    return kept, n_rows


@kernel
def count_kept(rows, order, start, rules, sensitive, values, work):
    """How many of the cells can stay published, so that the rows that are left over satisfy the requirement.

    If they do not, the cell that was published last joins them, and so on.

    order       (rows,) positions by published cell; those of no cell last   IN
    start       (cells + 2,) where each cell begins, and where the others do  IN
    sensitive   tables of sensitive values and of variances, as ``add_rows`` has them
    values      (sensitive values,) all zero    scratch
    work        see ``summarize``               scratch
    """
    n_values, numbers = sensitive
    moments = np.zeros((numbers.shape[0], 4), dtype=np.int64)
    cell, n = start.shape[0] - 2, np.int64(0)
    while True:
        for i in range(start[cell], start[cell + 1]):
            for s in range(n_values.shape[0]):
                values[n_values[s].start + np.int64(rows[order[i], n_values[s].column])] += 1
        for r in range(numbers.shape[0]):
            column = numbers[r].column
            more = moments_of(rows, order, start[cell], start[cell + 1], column, column, None, None)
            for w in range(4):
                moments[r, w] += more[w]
        n += start[cell + 1] - start[cell]
        if n == 0 or cell == 0 or counts_hold(n, values, moments, rules, work):
            return cell
        cell -= 1


@kernel(borrows=True)
def count_kept_by_people(rows, order, start, rules, scratch):
    """``count_kept`` where people count: what cells have in common is counted once, so each pool is looked at afresh.

    order, start   as in ``count_kept``                        IN
    scratch        CountScratch
    """
    cell, end = np.int64(start.shape[0] - 2), np.int64(order.shape[0])
    while cell > 0 and start[cell] < end:
        if part_holds(rows, order, start[cell], end, TWO, rules, scratch):
            return cell
        cell -= 1
    return cell


@kernel
def fill_ends(values, order, start, n_rows, has_missing, least, greatest, missing):
    """The least and the greatest value of each group, and its rows that are missing.

    values      (combinations, axes) uint32                                  IN
    order       (combinations,) those of one group after the other           IN
    start       (groups + 1,) where each begins                              IN
    n_rows      (combinations,)                                              IN
    has_missing (axes,) whether value 0 is missing, which is no number       IN
    least, greatest   (groups, axes) int64; of missing alone 1 and 0         OUT
    missing     (groups, axes) int64                                         OUT
    """
    least[:] = NOTHING_YET
    greatest[:] = -1
    missing[:] = 0
    for g in range(start.shape[0] - 1):
        for i in range(start[g], start[g + 1]):
            for axis in range(values.shape[1]):
                value = np.int64(values[order[i], axis])
                if value == 0 and has_missing[axis]:
                    missing[g, axis] += n_rows[order[i]]
                else:
                    least[g, axis] = min(least[g, axis], value)
                    greatest[g, axis] = max(greatest[g, axis], value)
        for axis in range(values.shape[1]):
            if greatest[g, axis] < 0:
                least[g, axis], greatest[g, axis] = 1, 0
