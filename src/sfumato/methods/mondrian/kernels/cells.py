"""Scores over the feature space: cells of other features within each part [LDR08, section 3.1.3].

Whoever predicts a target may see more than the quasi-identifiers. Those other features divide every part into
cells, and the score of a split is what is known within the cells: for labels the sum over parts and cells
of sum_c F(n_c) - F(n), for numbers that of n (mean of the part's cell - mean of the node's cell)^2. The
requirement is checked on parts, as ever.

Cells can be as many as the rows, so nothing is laid out per code and cell. The rows are walked in the order
of their codes, each changing the score by what it takes from the right and adds to the left: whole numbers,
so that the score does not depend on the order of the rows. Rows that were counted are walked as ``Entries``: those of
one code and cell together, with a weight. Where rows are at hand, entries are None: each row is one, of weight 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.compile import inner
from sfumato.kernels.information import information
from sfumato.methods.mondrian.kernels.choose import no_split, take_children, take_threshold
from sfumato.methods.mondrian.kernels.choose_by_rows import fill_children
from sfumato.methods.mondrian.kernels.leave_out import may_divide, note_children
from sfumato.methods.mondrian.kernels.problem import HIGH, LOW
from sfumato.methods.mondrian.kernels.rules import least_rows_of
from sfumato.methods.mondrian.kernels.scores import within_limit


@inner(borrows=True)
def fill_rows_by_code(column, low, lines, code, rows_to, order):
    """Sort rows by their codes, by counting; returns how many codes occur.

    lines           (codes,) int64, all zero; line 0 is code ``low``     IN, cleared
    code, rows_to   (distinct,) codes and the running number of rows     OUT
    order           (n,) positions of the rows                           OUT
    """
    for i in range(column.shape[0]):
        lines[column[i] - low] += 1
    m, running = np.int64(0), np.int64(0)
    for line in range(lines.shape[0]):
        here = lines[line]
        lines[line] = running
        if here > 0:
            running += here
            code[m] = low + line
            rows_to[m] = running
            m += 1
    for i in range(column.shape[0]):
        line = column[i] - low
        order[lines[line]] = i
        lines[line] += 1
    lines[:] = 0
    return m


class Entries(NamedTuple):
    """Rows that were counted by code and id: all arrays are (entries,), in the order of codes."""

    of: NDArray[np.int64]  # label: the cell and class together; number: the cell
    cell: NDArray[np.int64]
    weight: NDArray[np.int64]  # rows
    total: NDArray[np.int64]  # sum of the number


@inner(borrows=True)
def id_at(part, order, entries, i, column):
    """What ``column`` of an entry says: its cell and class together, or its cell if the target is a number."""
    if part is not None:
        return np.int64(part[order[i], column])
    if entries is not None:
        return entries.of[i]
    return np.int64(-1)


@inner(borrows=True)
def cell_at(part, order, entries, i, column):
    """The cell of an entry."""
    if part is not None:
        return np.int64(part[order[i], column])
    if entries is not None:
        return entries.cell[i]
    return np.int64(-1)


@inner(borrows=True)
def weight_at(entries, i):
    """The rows of an entry."""
    if entries is None:
        return np.int64(1)
    return entries.weight[i]


@inner(borrows=True)
def total_at(part, order, entries, i, column):
    """The sum of the number over an entry."""
    if part is not None:
        return np.int64(part[order[i], column])
    if entries is not None:
        return entries.total[i]
    return np.int64(-1)


@inner(borrows=True)
def growth_of(x, by, table):
    """F(x + by) - F(x)."""
    return information(x + by, table) - information(x, table)


@inner(borrows=True)
def change_by_move(left, right, w, table):
    """By how much F(left) + F(right) grows if w rows move from the right to the left."""
    return growth_of(left, w, table) - growth_of(right - w, w, table)


@inner(borrows=True)
def walk_information(part, order, entries, ends, cell, pair, weight, counts, score, table, out):
    """Add to each threshold the weighted score of a label: sum over both sides and cells of sum_c F(n_c) - F(n).

    ends         (m,) the entries before ends[t] go left                      IN
    cell, pair   columns: cells, and cells with classes
    counts       (ids, 4) left, right of pairs, of cells                      IN+OUT
    score        before the first threshold; returns that after the last
    out          (m,)                                                         IN+OUT
    """
    i = np.int64(0)
    for t in range(ends.shape[0]):
        while i < ends[t]:
            of_pair = counts[id_at(part, order, entries, i, pair)]
            of_cell = counts[cell_at(part, order, entries, i, cell)]
            w = weight_at(entries, i)
            score += change_by_move(of_pair[0], of_pair[1], w, table) - change_by_move(
                of_cell[2], of_cell[3], w, table
            )
            of_pair[0] += w
            of_pair[1] -= w
            of_cell[2] += w
            of_cell[3] -= w
            i += 1
        out[t] += weight * score
    return score


@inner(borrows=True)
def add_information(part, order, rows_to, target, counts, table, out):
    """``walk_information`` of rows at hand; counts is all zero   IN, cleared."""
    cell, pair, score = target.cell, target.value, np.int64(0)
    for i in range(part.shape[0]):
        of_pair, of_cell = counts[part[i, pair]], counts[part[i, cell]]
        score += growth_of(of_pair[1], 1, table) - growth_of(of_cell[3], 1, table)
        of_pair[1] += 1
        of_cell[3] += 1
    walk_information(part, order, None, rows_to, cell, pair, target.weight, counts, score, table, out)
    for i in range(part.shape[0]):
        counts[part[i, pair], 0] = 0
        counts[part[i, cell], 2] = 0


@inner(borrows=True)
def squares(n, x, mean, scale):
    """What n rows that sum to x add to the score, in a cell whose mean in the node is ``mean``.

    It is rounded to a whole number of 1 / scale.
    """
    if n == 0:
        return 0.0
    away = x / n - mean
    return np.rint(n * (away * away) * scale)


@inner(borrows=True)
def count_sums(part, cell, column, counts):
    """Rows and sum of each cell of the node; counts is (ids, 4): -, -, rows, sum   IN+OUT."""
    for i in range(part.shape[0]):
        row = counts[part[i, cell]]
        row[2] += 1
        row[3] += np.int64(part[i, column])


@inner(borrows=True)
def walk_squares(part, order, entries, ends, cell, column, weight, scale, counts, score, out):
    """``walk_information`` for a number: the ``squares`` of each cell on both sides.

    counts   (ids, 4) rows and sum on the left, rows and sum of the node   IN+OUT
    """
    i = np.int64(0)
    for t in range(ends.shape[0]):
        while i < ends[t]:
            row = counts[id_at(part, order, entries, i, cell)]
            n, total_x, left, left_x = row[2], row[3], row[0], row[1]
            mean = total_x / n
            score -= squares(left, left_x, mean, scale) + squares(n - left, total_x - left_x, mean, scale)
            left += weight_at(entries, i)
            left_x += total_at(part, order, entries, i, column)
            score += squares(left, left_x, mean, scale) + squares(n - left, total_x - left_x, mean, scale)
            row[0], row[1] = left, left_x
            i += 1
        out[t] += weight * score
    return score


@inner(borrows=True)
def add_squares(part, order, rows_to, target, counts, out):
    """``walk_squares`` of rows at hand; counts is all zero   IN, cleared."""
    cell, column = target.cell, target.value
    count_sums(part, cell, column, counts)
    walk_squares(part, order, None, rows_to, cell, column, target.weight, target.scale, counts, 0.0, out)
    for i in range(part.shape[0]):
        counts[part[i, cell]] = 0


@inner(borrows=True)
def information_of_group(part, order, entries, first, last, cell, pair, counts, table):
    """What the entries [first, last) add to the score of a label in a group; ``clear_group`` ends the group.

    counts   (ids, 4) rows of each pair, -, rows of each cell, -: zero when a group begins   IN+OUT
    """
    score = np.int64(0)
    for i in range(first, last):
        of_pair = counts[id_at(part, order, entries, i, pair)]
        of_cell = counts[cell_at(part, order, entries, i, cell)]
        w = weight_at(entries, i)
        score += growth_of(of_pair[0], w, table) - growth_of(of_cell[2], w, table)
        of_pair[0] += w
        of_cell[2] += w
    return score


@inner(borrows=True)
def clear_group(part, order, entries, first, last, cell, pair, counts):
    """Forget the entries [first, last), which ``information_of_group`` has counted."""
    for i in range(first, last):
        counts[id_at(part, order, entries, i, pair), 0] = 0
        counts[cell_at(part, order, entries, i, cell), 2] = 0


@inner(borrows=True)
def add_sums_of_group(part, order, entries, first, last, cell, column, counts):
    """Count the entries [first, last) of a group.

    counts   (ids, 4) rows and sum in the group, zero when it begins; rows and sum in the node   IN+OUT
    """
    for i in range(first, last):
        row = counts[id_at(part, order, entries, i, cell)]
        row[0] += weight_at(entries, i)
        row[1] += total_at(part, order, entries, i, column)


@inner(borrows=True)
def squares_of_group(part, order, entries, first, last, cell, scale, counts):
    """The ``squares`` of the cells that the entries [first, last) of a group have; these cells are cleared."""
    score = 0.0
    for i in range(first, last):
        row = counts[id_at(part, order, entries, i, cell)]
        if row[0] > 0:
            score += squares(row[0], row[1], row[3] / row[2], scale)
            row[0], row[1] = 0, 0
    return score


@inner(borrows=True)
def information_of_groups(part, order, rows_to, cell, pair, counts, table):
    """The score of a label in groups of rows."""
    total, before = np.int64(0), np.int64(0)
    for j in range(rows_to.shape[0]):
        total += information_of_group(part, order, None, before, rows_to[j], cell, pair, counts, table)
        clear_group(part, order, None, before, rows_to[j], cell, pair, counts)
        before = rows_to[j]
    return total


@inner(borrows=True)
def squares_of_groups(part, order, rows_to, cell, column, scale, counts):
    """The sum of ``squares`` over groups of rows and cells."""
    count_sums(part, cell, column, counts)
    total, before = 0.0, np.int64(0)
    for j in range(rows_to.shape[0]):
        add_sums_of_group(part, order, None, before, rows_to[j], cell, column, counts)
        total += squares_of_group(part, order, None, before, rows_to[j], cell, scale, counts)
        before = rows_to[j]
    for i in range(part.shape[0]):
        counts[part[i, cell]] = 0
    return total


@inner(borrows=True)
def fill_scores(part, rows_to, cells, table, order, out):
    """Score of each threshold; out is (m,)."""
    out[:] = 0
    for t in range(cells.label.shape[0]):
        add_information(part, order, rows_to, cells.label[t], cells.counts, table, out)
    for t in range(cells.number.shape[0]):
        add_squares(part, order, rows_to, cells.number[t], cells.counts, out)


@inner(borrows=True)
def score_groups(part, rows_to, cells, table, order, scores):
    """Score of the division into these groups of rows.

    scores   (at least 1,)   scratch
    """
    scores[0] = 0
    for t in range(cells.label.shape[0]):
        target = cells.label[t]
        scores[0] += target.weight * information_of_groups(
            part, order, rows_to, target.cell, target.value, cells.counts, table
        )
    for t in range(cells.number.shape[0]):
        target = cells.number[t]
        scores[0] += target.weight * squares_of_groups(
            part, order, rows_to, target.cell, target.value, target.scale, cells.counts
        )
    return scores[0]


@inner(borrows=True)
def choose_threshold_by_cells(part, bounds, axis_table, cells, rules, table, scratch):
    """``choose_threshold`` over the feature space."""
    n = part.shape[0]
    best = no_split(n, scratch)
    low, high, code, rows_to, score = bounds[LOW], bounds[HIGH], scratch.code, scratch.total[0], scratch.score
    for axis in range(low.shape[0]):
        if low[axis] >= high[axis] or not axis_table[axis].may_split or axis_table[axis].is_tree:
            continue
        lines = scratch.bins[: high[axis] - low[axis] + 1]
        m = fill_rows_by_code(part[:, axis], low[axis], lines, code, rows_to, scratch.order)
        low[axis], high[axis] = code[0], code[m - 1]
        first, last = within_limit(rows_to[:m], n, np.int64(0), rules.least_rows)
        if first >= last:
            continue
        fill_scores(part, rows_to[:m], cells, table, scratch.order, score[:m])
        best = take_threshold(part, None, np.int64(axis), m, n, first, last, rules, scratch, best)
    return best


@inner(borrows=True)
def choose_children_by_cells(part, cover_of, best, grid, cells, rules, table, scratch):
    """``choose_children`` over the feature space."""
    rows_to = scratch.total[0]
    for axis in range(cover_of.shape[0]):
        here = grid.axis[axis]
        if here.is_tree and here.may_split and grid.node[cover_of[axis]].n_children > 0:
            m = fill_children(part, axis, cover_of[axis], grid, scratch)
            if m < 2 or not may_divide(rows_to[:m], least_rows_of(rules, m), scratch.leaving):
                continue
            note_children(axis, cover_of[axis], m, grid, scratch.leaving, scratch)
            score = score_groups(part, rows_to[:m], cells, table, scratch.order, scratch.score)
            largest = rows_to[0]
            for j in range(1, m):
                largest = max(largest, rows_to[j] - rows_to[j - 1])
            best = take_children(part, None, axis, m, score, largest, rules, scratch, best)
    return best


@inner(borrows=True)
def score_unsplit_by_cells(part, cells, table, scratch):
    """``score_unsplit`` over the feature space."""
    n, everyone = part.shape[0], scratch.total[0, :1]
    for i in range(n):
        scratch.order[i] = i
    everyone[0] = n
    return score_groups(part, everyone, cells, table, scratch.order, scratch.score)
