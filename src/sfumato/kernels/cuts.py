"""Shared cuts: what a specialization gains on its own axis, and what becomes of the groups of the grid.

A gain is a sum of whole numbers (x log2 x in fixed point, see ``information`` in ``choose``), so it depends on
counts alone. Rows stand group by group in one array of row numbers, and a group is a slice of it; splitting a
piece of a cut touches only the groups that lie in it.
"""

from __future__ import annotations

import numpy as np

from sfumato.kernels.choose import information
from sfumato.kernels.compile import inner, kernel


@inner
def information_of(counts, table):
    """sum_c F(n_c) - F(n): minus the entropy of these counts times their sum."""
    total, n = 0.0, np.int64(0)
    for c in range(counts.shape[0]):
        total += information(counts[c], table)
        n += counts[c]
    return total - information(n, table)


@kernel
def best_threshold(codes, labels, n_classes, weight, table):
    """Where to divide these rows: (the last code that goes left, gain, larger part); the code is -1 if all agree.

    The greatest gain; ties by balance, then the lower threshold.
    codes      (n,) uint32, ascending                 IN
    labels     (n, targets) uint32, in the same order IN
    n_classes  (targets,) int64                       IN
    weight     (targets,) float64                     IN
    table      x log2 x in fixed point                IN
    """
    n, n_targets = labels.shape
    gain = np.zeros(n)
    is_end = np.zeros(n, dtype=np.bool_)  # does the code change after this row?
    for i in range(n - 1):
        is_end[i] = codes[i] != codes[i + 1]
    for t in range(n_targets):
        left, right = np.zeros(n_classes[t], dtype=np.int64), np.zeros(n_classes[t], dtype=np.int64)
        for i in range(n):
            right[labels[i, t]] += 1
        whole = information_of(right, table)
        in_left, in_right = 0.0, whole + information(n, table)
        for i in range(n - 1):
            c = labels[i, t]
            in_left -= information(left[c], table)
            in_right -= information(right[c], table)
            left[c] += 1
            right[c] -= 1
            in_left += information(left[c], table)
            in_right += information(right[c], table)
            if is_end[i]:
                parts = in_left - information(i + 1, table) + in_right - information(n - i - 1, table)
                gain[i] += weight[t] * (parts - whole)
    best, highest, largest = np.int64(-1), 0.0, n + 1
    for i in range(n - 1):
        if is_end[i]:
            larger = max(i + 1, n - i - 1)
            if best < 0 or gain[i] > highest or (gain[i] == highest and larger < largest):
                best, highest, largest = np.int64(codes[i]), gain[i], larger
    return best, highest, largest


@kernel
def gain_of_parts(labels, ends, n_classes, weight, table):
    """What it gains to divide these rows into parts: (gain, largest part, how many parts have rows).

    labels  (n, targets) uint32, part by part     IN
    ends    (parts,) int64, where each part ends  IN
    """
    gain = 0.0
    for t in range(labels.shape[1]):
        whole, part = np.zeros(n_classes[t], dtype=np.int64), np.zeros(n_classes[t], dtype=np.int64)
        total, start = 0.0, np.int64(0)
        for end in ends:
            part[:] = 0
            for i in range(start, end):
                part[labels[i, t]] += 1
                whole[labels[i, t]] += 1
            if end > start:
                total += information_of(part, table)
            start = end
        gain += weight[t] * (total - information_of(whole, table))
    largest, n_filled, start = np.int64(0), 0, np.int64(0)
    for end in ends:
        largest = max(largest, end - start)
        n_filled += end > start
        start = end
    return gain, largest, n_filled


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
def lower_least(codes, first, candidate, part, most_parts, rows, start, end, touched, least):
    """Lower ``least`` of each candidate to the smallest part that it would make of a touched group.

    codes      (axes, n) uint32, by row number                                              IN
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
                count[part[first[a] + codes[a, rows[i]]]] += 1
            smallest = end[g] - start[g]
            for i in range(start[g], end[g]):
                p = part[first[a] + codes[a, rows[i]]]
                if count[p] > 0:
                    smallest = min(smallest, count[p])
                    count[p] = 0
            least[here] = min(least[here], smallest)
