"""Shared cuts: what a specialization gains on its own axis, and what becomes of the groups of the grid.

Gains come from :class:`AxisEntries`, the counts of one axis. They are looked at in several portions, so what is known so
far is handed over from call to call (:class:`ThresholdScan`, :class:`PartScan`). A gain is a sum of whole numbers (F(x)
is x log2 x in fixed point, see ``kernels.information``), so it depends on counts alone.

Rows stand group by group in one array of row numbers, and a group is a slice of it; splitting a piece of a cut
touches only the groups that lie in it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.compile import inner, kernel
from sfumato.kernels.information import information


class AxisEntries(NamedTuple):
    """Counts of one axis, by code and class; those of a code are never torn apart.

    A key is (code << class_bits) + class; the classes of all targets are numbered together.
    """

    key: NDArray[np.uint64]  # (entries,) ascending
    n_rows: NDArray[np.int64]  # (entries,)
    class_bits: int

    def codes(self) -> NDArray[np.int64]:
        return (self.key >> np.uint64(self.class_bits)).astype(np.int64)

    def classes(self) -> NDArray[np.int64]:
        return (self.key & np.uint64((1 << self.class_bits) - 1)).astype(np.int64)


class Sides(NamedTuple):
    """The rows on either side of a threshold, and the information in them."""

    left: NDArray[np.int64]  # (classes,) rows
    right: NDArray[np.int64]  # (classes,) rows
    in_left: NDArray[np.int64]  # (targets,) sum_c F(n_c) on the left
    in_right: NDArray[np.int64]  # (targets,) the same on the right
    in_all: NDArray[np.int64]  # (targets,) sum_c F(n_c) - F(n) of all rows


class ThresholdScan(NamedTuple):
    """How far a scan for the best threshold has come."""

    n_left: int  # rows of the codes so far
    last: int  # the last code that goes left at the best threshold so far; -1: none yet
    larger: int  # rows of the larger side there
    gain: float


class PartCounts(NamedTuple):
    """The part of a candidate that is being counted, and the information in those before it."""

    rows: NDArray[np.int64]  # (classes,) of the part
    listed: NDArray[np.int64]  # (classes,) the classes that it has
    information: NDArray[np.int64]  # (targets,) of all parts so far


class PartScan(NamedTuple):
    """How far a scan of parts has come."""

    part: int  # the part that is being counted,
    n_classes: int  # how many classes it has
    n_rows: int  # and rows
    largest: int  # rows of the largest part before it,
    smallest: int  # of the smallest that has rows
    n_filled: int  # and how many have rows


class GroupSlices(NamedTuple):
    """Groups of rows: group g is ``rows[start[g] : end[g]]``."""

    rows: NDArray[np.uint32]  # (n,) row numbers, group by group
    start: NDArray[np.int64]  # (n,)
    end: NDArray[np.int64]  # (n,)
    group: NDArray[np.int64]  # (n,) the group of each row number
    touched: NDArray[np.int64]  # (n,) the groups that lie in the piece that was split last


class OfferedParts(NamedTuple):
    """The candidate that each code lies in, and which part of it, for the codes of all axes one after the other."""

    first: NDArray[np.int64]  # (axes + 1,) where code 0 of an axis stands in the next two
    candidate: NDArray[np.int64]  # (codes,) -1: in none
    part: NDArray[np.int64]  # (codes,)


class CellTables(NamedTuple):
    """How codes become cell numbers: by list for short axes, by search among the pieces for others."""

    first: NDArray[np.int64]  # (axes + 1,) where the pieces of each axis begin in the next two
    ends: NDArray[np.int64]  # (pieces of all axes,) the code that ends each
    value: NDArray[np.uint64]  # (pieces of all axes,) what it adds to the number of a cell
    start: NDArray[np.int64]  # (axes,) where code 0 stands among ``listed``; -1: it has to be searched for
    listed: NDArray[np.uint64]  # (codes of short axes,) what each adds
    word: NDArray[
        np.int64
    ]  # (axes,) to which word of the number; -1: the axis has one piece and adds nothing


# ---- gains -----------------------------------------------------------------------------------------


@kernel
def fill_whole(counts, target, n, table, in_classes, in_all):
    """The information in all rows of a piece, by target.

    counts      (classes,) int64                             IN
    target      (classes,) int64: whose it is                IN
    n           rows                                         IN
    table       of ``information``                           IN
    in_classes  (targets,) int64: sum_c F(n_c)               OUT
    in_all      (targets,) int64: the same less F(n)         OUT
    """
    in_classes[:] = 0
    for c in range(counts.shape[0]):
        in_classes[target[c]] += information(counts[c], table)
    for t in range(in_classes.shape[0]):
        in_all[t] = in_classes[t] - information(n, table)


@kernel
def scan_thresholds(entries, target, weight, table, n, sides, scan):
    """Go on looking for the best threshold: the greatest gain; ties by balance, then the lower threshold.

    entries  AxisEntries, the next ones                    IN
    target   (classes,) int64: whose it is             IN
    weight   (targets,) float64                        IN
    table    of ``information``                        IN
    n        rows in all                               IN
    sides    Sides                                     IN+OUT
    scan     ThresholdScan; returned as it is then     IN
    """
    key, count, i = entries.key, entries.n_rows, np.int64(0)
    bits, mask = np.uint64(entries.class_bits), np.uint64((1 << entries.class_bits) - 1)
    n_left, last, larger, highest = scan.n_left, scan.last, scan.larger, scan.gain
    while i < key.shape[0]:
        code = np.int64(key[i] >> bits)
        while i < key.shape[0] and np.int64(key[i] >> bits) == code:
            c, x = np.int64(key[i] & mask), count[i]
            t, on_left, on_right = target[c], sides.left[c], sides.right[c]
            sides.in_left[t] += information(on_left + x, table) - information(on_left, table)
            sides.in_right[t] += information(on_right - x, table) - information(on_right, table)
            sides.left[c] += x
            sides.right[c] -= x
            if t == 0:
                n_left += x
            i += 1
        if n_left == n:
            break
        gain = 0.0
        for t in range(weight.shape[0]):
            on_left = sides.in_left[t] - information(n_left, table)
            gain += weight[t] * (
                on_left + sides.in_right[t] - information(n - n_left, table) - sides.in_all[t]
            )
        larger_here = max(n_left, n - n_left)
        if last < 0 or gain > highest or (gain == highest and larger_here < larger):
            last, larger, highest = code, larger_here, gain
    return ThresholdScan(n_left, last, larger, highest)


@inner
def end_part(scan, counts, table):
    """The part that was counted has ended: its information is complete, and nothing is counted of the next."""
    largest, smallest, n_filled = scan.largest, scan.smallest, scan.n_filled
    if scan.n_rows > 0:
        for t in range(counts.information.shape[0]):
            counts.information[t] -= information(scan.n_rows, table)
        largest, smallest = max(largest, scan.n_rows), min(smallest, scan.n_rows)
        n_filled += 1
    for j in range(scan.n_classes):
        counts.rows[counts.listed[j]] = 0
    return PartScan(scan.part, np.int64(0), np.int64(0), largest, smallest, n_filled)


@kernel
def scan_parts(entries, ends, is_last, target, table, counts, scan):
    """Go on adding up the information inside parts, sum_c F(n_c) - F(n) each.

    entries  AxisEntries, the next ones                         IN
    ends     (parts,) int64: the codes that end the parts   IN
    is_last  are these the last entries?                    IN
    target   (classes,) int64: whose it is                  IN
    table    of ``information``                             IN
    counts   PartCounts                                     IN+OUT
    scan     PartScan; returned as it is then               IN
    """
    bits, mask = np.uint64(entries.class_bits), np.uint64((1 << entries.class_bits) - 1)
    for i in range(entries.key.shape[0]):
        code = np.int64(entries.key[i] >> bits)
        part, n_classes, n_rows = scan.part, scan.n_classes, scan.n_rows
        if code >= ends[part]:
            scan = end_part(scan, counts, table)
            n_classes, n_rows = scan.n_classes, scan.n_rows
            while code >= ends[part]:
                part += 1
        c, x = np.int64(entries.key[i] & mask), entries.n_rows[i]
        t, before = target[c], counts.rows[c]
        if before == 0:
            counts.listed[n_classes] = c
            n_classes += 1
        counts.information[t] += information(before + x, table) - information(before, table)
        counts.rows[c] += x
        if t == 0:
            n_rows += x
        scan = PartScan(part, n_classes, n_rows, scan.largest, scan.smallest, scan.n_filled)
    return end_part(scan, counts, table) if is_last else scan


# ---- groups ----------------------------------------------------------------------------------------


@kernel
def split_groups(inside, codes, part, n_parts, n_groups, groups):
    """Divide each group that lies in a piece into its parts: (groups now, how many of them are touched).

    inside     (m,) uint32: the row numbers that lie in the piece            IN
    codes      (n,) uint32: codes of the axis of the split, by row number    IN
    part       (codes,) int64: the part of the piece that each code is in    IN
    n_parts, n_groups                                                        IN
    groups     GroupSlices                                                   IN+OUT
    """
    rows, start, end, group, touched = groups
    n_touched = np.int64(0)
    for row in inside:  # each group once: its first row stands for it
        if rows[start[group[row]]] == row:
            touched[n_touched] = group[row]
            n_touched += 1
    moved = np.empty(inside.shape[0], dtype=rows.dtype)
    size, place = np.empty(n_parts, dtype=np.int64), np.empty(n_parts, dtype=np.int64)
    for j in range(n_touched):
        g = touched[j]
        first, n = start[g], end[g] - start[g]
        size[:] = 0
        for i in range(first, first + n):
            size[part[codes[rows[i]]]] += 1
            moved[i - first] = rows[i]
        position, n_filled = first, 0
        for p in range(n_parts):
            place[p] = position
            position += size[p]
            if size[p] == 0:
                continue
            new = g if n_filled == 0 else n_groups  # the first part keeps the group's number
            if n_filled > 0:
                touched[n_touched] = new
                n_touched += 1
                n_groups += 1
            start[new], end[new] = place[p], position
            size[p] = new
            n_filled += 1
        for i in range(n):
            p = part[codes[moved[i]]]
            rows[place[p]] = moved[i]
            group[moved[i]] = size[p]
            place[p] += 1
    return n_groups, n_touched


@kernel
def lower_least(codes, weight, offered, most_parts, groups, n_touched, least):
    """Lower ``least`` of each candidate to the smallest part that it would make of a touched group.

    codes       (axes, n) uint32, by row number                               IN
    weight      (n,) int64: how many rows each stands for; empty: for itself  IN
    offered     OfferedParts                                                  IN
    most_parts  that any candidate has                                        IN
    groups      GroupSlices, of which the first ``n_touched`` are touched     IN
    least       (candidates,) int64                                           IN+OUT
    """
    first, candidate, part = offered
    rows, start, end = groups.rows, groups.start, groups.end
    count = np.zeros(most_parts, dtype=np.int64)
    for g in groups.touched[:n_touched]:
        for a in range(codes.shape[0]):
            here = candidate[first[a] + codes[a, rows[start[g]]]]
            if here < 0:
                continue
            for i in range(start[g], end[g]):
                count[part[first[a] + codes[a, rows[i]]]] += weight[rows[i]] if weight.shape[0] else 1
            smallest = np.int64(1) << 62
            for i in range(start[g], end[g]):
                p = part[first[a] + codes[a, rows[i]]]
                if count[p] > 0:
                    smallest = min(smallest, count[p])
                    count[p] = 0
            least[here] = min(least[here], smallest)


# ---- cells -----------------------------------------------------------------------------------------


@kernel
def fill_cells(rows, tables, out):
    """The cell of each row.

    rows    (n, axes or more) uint32: codes   IN
    tables  CellTables                        IN
    out     (n, words) uint64, zero           OUT
    """
    first, ends, value, start, listed, word = tables
    for a in range(word.shape[0]):
        if word[a] < 0:
            continue
        for i in range(rows.shape[0]):
            code = np.int64(rows[i, a])
            if start[a] >= 0:
                out[i, word[a]] += listed[start[a] + code]
                continue
            low, n = first[a], first[a + 1] - first[a]
            while n > 0:
                half = n // 2
                if ends[low + half] <= code:
                    low += half + 1
                    n -= half + 1
                else:
                    n = half
            out[i, word[a]] += value[low]


@inner
def is_same(key, k, cells, i):
    """Is cell number ``i`` the one that stands at place ``k``?"""
    for w in range(key.shape[1]):  # noqa: SIM110 - numba knows no all()
        if key[k, w] != cells[i, w]:
            return False
    return True


@kernel
def add_cells(cells, hashes, weight, begin, slot, key, n_cells, out):
    """Add rows to the cells of a grid: (cells held now, how many of ``cells`` were added before memory was full).

    cells   (m, words) uint64: cell numbers                                      IN
    hashes  (m,) uint64                                                          IN
    weight  (m,) int64: rows                                                     IN
    begin   with this one                                                        IN
    slot    (a power of two,) int32: 1 + the cell that a hash leads to, 0: none  IN+OUT
    key     (most, words) uint64: the numbers of the cells that are held         IN+OUT
    n_cells that are held                                                        IN
    out     (most,) int64: their rows                                            IN+OUT
    """
    mask = np.uint64(slot.shape[0] - 1)
    for i in range(begin, cells.shape[0]):
        s = np.int64(hashes[i] & mask)
        while slot[s] > 0 and not is_same(key, slot[s] - 1, cells, i):
            s = (s + 1) & np.int64(mask)
        if slot[s] == 0:
            if n_cells == key.shape[0]:
                return n_cells, i
            key[n_cells] = cells[i]
            out[n_cells] = 0
            n_cells += 1
            slot[s] = n_cells
        out[slot[s] - 1] += weight[i]
    return n_cells, cells.shape[0]


@kernel
def find_cells(cells, hashes, slot, key, out):
    """The place of each of these cells among those that are held, -1 if it is not."""
    mask = np.uint64(slot.shape[0] - 1)
    for i in range(cells.shape[0]):
        s = np.int64(hashes[i] & mask)
        while slot[s] > 0 and not is_same(key, slot[s] - 1, cells, i):
            s = (s + 1) & np.int64(mask)
        out[i] = slot[s] - 1
