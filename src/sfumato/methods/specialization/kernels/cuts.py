"""Shared cuts: what a specialization gains on its own axis, and what becomes of the groups of the grid.

Gains come from *entries*, the counts of one axis: (value, class, number of rows), in the order of values and
classes; those of a value are never torn apart. Value and class are one key, see ``CLASS_BITS``. A gain is a sum of
whole numbers (x log2 x in fixed point, see ``kernels.information``), so it depends on counts alone.

Rows stand group by group in one array of row numbers, and a group is a slice of it; splitting a piece of a cut
touches only the groups that lie in it.
"""

from __future__ import annotations

import numpy as np

from sfumato.kernels.compile import inner, kernel
from sfumato.kernels.information import information

CLASS_BITS = 32
"""A key is (code << CLASS_BITS) + class; the classes of all targets are numbered together."""


@kernel
def add_counts(codes, labels, start, out):
    """Count the rows of each code and class.

    codes   (n,) uint32                                   IN
    labels  (n, targets) uint32                           IN
    start   (targets,) int64: the first class of each     IN
    out     (codes, classes of all targets) uint32        IN+OUT
    """
    for i in range(codes.shape[0]):
        for t in range(labels.shape[1]):
            out[codes[i], start[t] + labels[i, t]] += np.uint32(1)


# ---- gains -----------------------------------------------------------------------------------------


@kernel
def fill_whole(counts, target, n, table, out):
    """The information in all rows of a piece, by target: (sum_c F(n_c), the same less F(n)).

    counts  (classes,) int64              IN
    target  (classes,) int64: whose it is IN
    n       rows                          IN
    out     (2, targets) float64          OUT
    """
    out[:] = 0.0
    for c in range(counts.shape[0]):
        out[0, target[c]] += information(counts[c], table)
    for t in range(out.shape[1]):
        out[1, t] = out[0, t] - information(n, table)


@kernel
def scan_thresholds(key, count, target, weight, table, left, right, inside, found, highest):
    """Go on looking for the best threshold: the greatest gain; ties by balance, then the lower threshold.

    key, count      (m,) uint64, int64: entries                                             IN
    target, weight  (classes,), (targets,)                                                  IN
    left, right     (classes,) int64: rows on either side                                   IN+OUT
    inside          (3, targets) float64: sum_c F(n_c) left, right; information in all      IN+OUT
    found           (4,) int64: rows left, rows in all, the last code that goes left (-1: none yet), larger part
                                                                                            IN+OUT
    highest         (1,) float64: the gain there                                            IN+OUT
    """
    i, n_left, n = np.int64(0), found[0], found[1]
    while i < key.shape[0]:
        code = np.int64(key[i] >> np.uint64(CLASS_BITS))
        while i < key.shape[0] and np.int64(key[i] >> np.uint64(CLASS_BITS)) == code:
            c, x = np.int64(key[i] & np.uint64(0xFFFFFFFF)), count[i]
            t = target[c]
            inside[0, t] += information(left[c] + x, table) - information(left[c], table)
            inside[1, t] += information(right[c] - x, table) - information(right[c], table)
            left[c] += x
            right[c] -= x
            if t == 0:
                n_left += x
            i += 1
        if n_left == n:
            break
        gain = 0.0
        for t in range(weight.shape[0]):
            parts = inside[0, t] - information(n_left, table) + inside[1, t] - information(n - n_left, table)
            gain += weight[t] * (parts - inside[2, t])
        larger = max(n_left, n - n_left)
        if found[2] < 0 or gain > highest[0] or (gain == highest[0] and larger < found[3]):
            found[2], found[3], highest[0] = code, larger, gain
    found[0] = n_left


@inner
def end_part(total, part, listed, found, table):
    """The part under way has ended: its information is complete."""
    if found[2] > 0:
        for t in range(total.shape[0]):
            total[t] -= information(found[2], table)
        found[3] = max(found[3], found[2])
        found[4] = min(found[4], found[2])
        found[5] += 1
    for j in range(found[1]):
        part[listed[j]] = 0
    found[1] = 0
    found[2] = 0


@kernel
def scan_parts(key, count, ends, is_last, target, table, part, listed, total, found):
    """Go on adding up the information inside parts, sum_c F(n_c) - F(n) each.

    key, count  (m,) uint64, int64: entries                                                 IN
    ends        (parts,) int64: the codes that end the parts                                IN
    is_last     are these the last entries?                                                 IN
    part        (classes,) int64: rows in the part under way                                IN+OUT
    listed      (classes,) int64: classes that it has                                       IN+OUT
    total       (targets,) float64                                                          IN+OUT
    found       (6,) int64: the part under way, its classes, its rows; the largest part, the smallest, how
                many have rows                                                              IN+OUT
    """
    for i in range(key.shape[0]):
        code = np.int64(key[i] >> np.uint64(CLASS_BITS))
        if code >= ends[found[0]]:
            end_part(total, part, listed, found, table)
            while code >= ends[found[0]]:
                found[0] += 1
        c, x = np.int64(key[i] & np.uint64(0xFFFFFFFF)), count[i]
        t = target[c]
        if part[c] == 0:
            listed[found[1]] = c
            found[1] += 1
        total[t] += information(part[c] + x, table) - information(part[c], table)
        part[c] += x
        if t == 0:
            found[2] += x
    if is_last:
        end_part(total, part, listed, found, table)


# ---- groups ----------------------------------------------------------------------------------------


@kernel
def split_groups(inside, codes, part, n_parts, n_groups, rows, start, end, group, touched):
    """Divide each group that lies in a piece into its parts: (groups now, how many lie in that piece).

    inside     (m,) uint32: the row numbers that lie in the piece            IN
    codes      (n,) uint32: codes of the axis of the split, by row number    IN
    part       (codes,) int64: the part of the piece that each code is in    IN
    rows       (n,) uint32: row numbers, group by group                      IN+OUT
    start, end (n,) int64: group g is rows[start[g] : end[g]]                IN+OUT
    group      (n,) int64: the group of each row number                      IN+OUT
    touched    (n,) int64: the groups that lie in the piece now              OUT
    """
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
def lower_least(codes, weight, first, candidate, part, most_parts, rows, start, end, touched, least):
    """Lower ``least`` of each candidate to the smallest part that it would make of a touched group.

    codes      (axes, n) uint32, by row number                                              IN
    weight     (n,) int64: how many rows each stands for; empty: for itself                 IN
    first      (axes + 1,) int64: where code 0 of an axis stands in the next two            IN
    candidate  (codes of all axes,) int64: the candidate that a code is in, -1 if none      IN
    part       (codes of all axes,) int64: which part of it                                 IN
    most_parts                           that any candidate has                             IN
    rows, start, end, touched            as ``split_groups`` leaves them                    IN
    least      (candidates,) int64                                                          IN+OUT
    """
    count = np.zeros(most_parts, dtype=np.int64)
    for g in touched:
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
def fill_cells(rows, first, ends, value, start, listed, word, out):
    """The cell of each row.

    rows    (n, axes or more) uint32: codes                                                          IN
    first   (axes + 1,) int64: where the pieces of each axis begin in the next two                   IN
    ends    (pieces of all axes,) int64: the code that ends each                                     IN
    value   (pieces of all axes,) uint64: what it adds to the number of a cell                       IN
    start   (axes,) int64: where code 0 stands among ``listed``; -1: it has to be looked for         IN
    listed  (codes of some axes,) uint64: what each adds                                             IN
    word    (axes,) int64: to which word of the number; -1: the axis has one piece and adds nothing  IN
    out     (n, words) uint64, zero                                                                  OUT
    """
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
    for w in range(key.shape[1]):  # noqa: SIM110 - numba knows no all()
        if key[k, w] != cells[i, w]:
            return False
    return True


@kernel
def add_cells(cells, hashes, weight, begin, slot, key, n_cells, out):
    """Add rows to the cells of a grid: (cells held now, how many of ``cells`` were added before there was no room).

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
