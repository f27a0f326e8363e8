"""Scores over the feature space: cells of other features within each part [LDR08, section 3.1.3].

Whoever predicts a target may see more than the quasi-identifiers. Those other features divide every part into
cells, and the score of a split is what is known within the cells: for labels the sum over parts and cells
of sum_c F(n_c) - F(n), for numbers that of n (mean of the part's cell - mean of the node's cell)^2. The
requirement is checked on parts, as ever.

Cells can be as many as the rows, so nothing is laid out per code and cell. The rows are walked in the order
of their codes, each changing the score by what it takes from the right and adds to the left: whole numbers,
so that the score does not depend on the order of the rows.
"""

from __future__ import annotations

import numpy as np

from sfumato.kernels.compile import inner
from sfumato.methods.mondrian.kernels.choose import (
    NO_SCORE,
    beats,
    children_are_large,
    children_hold,
    fill_children,
    winning_threshold,
    within_limit,
)
from sfumato.methods.mondrian.kernels.problem import HIGH, LOW, BestSplit
from sfumato.methods.mondrian.kernels.rules import least_rows_of


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


@inner(borrows=True)
def change_by_move(left, right, table):
    """By how much F(left) + F(right) grows if one row moves from the right to the left."""
    return (table[left + 1] - table[left]) - (table[right] - table[right - 1])


@inner(borrows=True)
def add_information(part, order, rows_to, cell, pair, counts, table, out):
    """Add to each threshold the score of a label: sum over both sides and cells of sum_c F(n_c) - F(n).

    rows_to      (m,) the rows order[:rows_to[t]] go left                     IN
    cell, pair   columns: cells, and cells with classes
    counts       (ids, 4) int64, all zero: left, right of pairs, of cells     IN, cleared
    out          (m,)                                                         IN+OUT
    """
    total = 0.0
    for i in range(part.shape[0]):
        of_pair, of_cell = counts[part[i, pair]], counts[part[i, cell]]
        total += table[of_pair[1] + 1] - table[of_pair[1]] - (table[of_cell[3] + 1] - table[of_cell[3]])
        of_pair[1] += 1
        of_cell[3] += 1
    before = np.int64(0)
    for t in range(rows_to.shape[0]):
        for i in range(before, rows_to[t]):
            row = part[order[i]]
            of_pair, of_cell = counts[row[pair]], counts[row[cell]]
            total += change_by_move(of_pair[0], of_pair[1], table) - change_by_move(
                of_cell[2], of_cell[3], table
            )
            of_pair[0] += 1
            of_pair[1] -= 1
            of_cell[2] += 1
            of_cell[3] -= 1
        before = rows_to[t]
        out[t] += total
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
def add_squares(part, order, rows_to, cell, column, scale, counts, out):
    """``add_information`` for a number: out grows by the ``squares`` of each cell on both sides."""
    count_sums(part, cell, column, counts)
    total, before = 0.0, np.int64(0)
    for t in range(rows_to.shape[0]):
        for i in range(before, rows_to[t]):
            at = order[i]
            row, x = counts[part[at, cell]], np.int64(part[at, column])
            n, total_x, left, left_x = row[2], row[3], row[0], row[1]
            mean = total_x / n
            total -= squares(left, left_x, mean, scale) + squares(n - left, total_x - left_x, mean, scale)
            left, left_x = left + 1, left_x + x
            total += squares(left, left_x, mean, scale) + squares(n - left, total_x - left_x, mean, scale)
            row[0], row[1] = left, left_x
        before = rows_to[t]
        out[t] += total
    for i in range(part.shape[0]):
        counts[part[i, cell]] = 0


@inner(borrows=True)
def information_of_groups(part, order, rows_to, cell, pair, counts, table):
    """The score of a label in groups of rows."""
    total, before = 0.0, np.int64(0)
    for j in range(rows_to.shape[0]):
        for i in range(before, rows_to[j]):
            of_pair, of_cell = counts[part[order[i], pair]], counts[part[order[i], cell]]
            total += table[of_pair[0] + 1] - table[of_pair[0]] - (table[of_cell[2] + 1] - table[of_cell[2]])
            of_pair[0] += 1
            of_cell[2] += 1
        for i in range(before, rows_to[j]):
            counts[part[order[i], pair], 0] = 0
            counts[part[order[i], cell], 2] = 0
        before = rows_to[j]
    return total


@inner(borrows=True)
def squares_of_groups(part, order, rows_to, cell, column, scale, counts):
    """The sum of ``squares`` over groups of rows and cells."""
    count_sums(part, cell, column, counts)
    total, before = 0.0, np.int64(0)
    for j in range(rows_to.shape[0]):
        for i in range(before, rows_to[j]):
            row = counts[part[order[i], cell]]
            row[0] += 1
            row[1] += np.int64(part[order[i], column])
        for i in range(before, rows_to[j]):
            row = counts[part[order[i], cell]]
            if row[0] > 0:
                total += squares(row[0], row[1], row[3] / row[2], scale)
                row[0], row[1] = 0, 0
        before = rows_to[j]
    for i in range(part.shape[0]):
        counts[part[i, cell]] = 0
    return total


@inner(borrows=True)
def fill_scores(part, rows_to, cells, table, order, out):
    """Score of each threshold; out is (m,)."""
    total = cells.total[: out.shape[0]]
    out[:] = 0.0
    for t in range(cells.label.shape[0]):
        target = cells.label[t]
        total[:] = 0.0
        add_information(part, order, rows_to, target.cell, target.value, cells.counts, table, total)
        for i in range(out.shape[0]):
            out[i] += target.weight * total[i]
    for t in range(cells.number.shape[0]):
        target = cells.number[t]
        total[:] = 0.0
        add_squares(part, order, rows_to, target.cell, target.value, target.scale, cells.counts, total)
        for i in range(out.shape[0]):
            out[i] += target.weight * total[i]


@inner(borrows=True)
def score_groups(part, rows_to, cells, table, order):
    """Score of the division into these groups of rows."""
    score = 0.0
    for t in range(cells.label.shape[0]):
        target = cells.label[t]
        score += target.weight * information_of_groups(
            part, order, rows_to, target.cell, target.value, cells.counts, table
        )
    for t in range(cells.number.shape[0]):
        target = cells.number[t]
        score += target.weight * squares_of_groups(
            part, order, rows_to, target.cell, target.value, target.scale, cells.counts
        )
    return score


@inner(borrows=True)
def choose_threshold_by_cells(part, bounds, axis_table, cells, rules, table, scratch):
    """``choose_threshold`` over the feature space."""
    n = part.shape[0]
    best = BestSplit(np.int64(-1), np.int64(-1), NO_SCORE, np.int64(n))
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
        t = winning_threshold(part, axis, m, first, last, best, rules, scratch)
        if t >= 0:
            best = BestSplit(np.int64(axis), code[t], score[t], max(rows_to[t], n - rows_to[t]))
    return best


@inner(borrows=True)
def choose_children_by_cells(part, cover_of, best, grid, cells, rules, table, scratch):
    """``choose_children`` over the feature space."""
    rows_to = scratch.total[0]
    for axis in range(cover_of.shape[0]):
        here = grid.axis[axis]
        if here.is_tree and here.may_split and grid.node[cover_of[axis]].n_children > 0:
            m = fill_children(part, axis, cover_of[axis], grid, scratch)
            if m < 2 or not children_are_large(rows_to[:m], least_rows_of(rules, m)):
                continue
            score = score_groups(part, rows_to[:m], cells, table, scratch.order)
            largest = rows_to[0]
            for j in range(1, m):
                largest = max(largest, rows_to[j] - rows_to[j - 1])
            is_tie = score == best.score and largest == best.largest and axis < best.axis
            if (is_tie or beats(score, largest, best)) and children_hold(part, m, rules, scratch):
                best = BestSplit(np.int64(axis), np.int64(-1), score, largest)
    return best


@inner
def gain_by_cells(part, cells, table, scratch, score, gain_scale):
    """``gain_of`` over the feature space."""
    n = part.shape[0]
    everyone = np.full(1, n)
    for i in range(n):
        scratch.order[i] = i
    worth = score
    for t in range(cells.label.shape[0]):
        target = cells.label[t]
        worth -= target.weight * information_of_groups(
            part, scratch.order, everyone, target.cell, target.value, cells.counts, table
        )
    return worth * gain_scale / n
