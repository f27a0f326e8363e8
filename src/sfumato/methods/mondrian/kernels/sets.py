"""Frequency sets of rows that are never together: added up block by block, then walked code by code.

The scores are those of ``choose``, from the same exact words: a split chosen here is the one that is chosen
where all rows are at hand.
"""

from __future__ import annotations

import numpy as np

from sfumato.kernels.axes import NO_NUMBER
from sfumato.kernels.compile import inner, kernel
from sfumato.kernels.information import information
from sfumato.methods.mondrian.kernels.cells import squares
from sfumato.methods.mondrian.kernels.choose import score_of_part
from sfumato.methods.mondrian.kernels.frequency import (
    add_row,
    fill_packed,
    fill_sums,
    fill_totals,
    fill_words,
    first_reaching,
    sort,
)
from sfumato.methods.mondrian.kernels.rules import counts_hold

# ---- adding up -------------------------------------------------------------------------------------


@inner
def add_three_counts(part, first, second, third, at_first, at_second, at_third, out):
    """Three frequency sets of ``add_counts``, their places held in registers."""
    one = np.uint32(1)
    for i in range(part.shape[0]):
        row = part[i]
        out[at_first + np.uint64(row[first])] += one
        out[at_second + np.uint64(row[second])] += one
        out[at_third + np.uint64(row[third])] += one


@kernel
def add_counts(part, listed, base, out):
    """``add_packed`` of rows alone; out is (lines,) uint32."""
    one = np.uint32(1)
    threes = listed.shape[0] // 3 * 3
    for start in range(0, part.shape[0], 512):
        block = part[start : start + 512]
        for j in range(0, threes, 3):
            add_three_counts(
                block, listed[j], listed[j + 1], listed[j + 2], base[j], base[j + 1], base[j + 2], out
            )
        for j in range(threes, listed.shape[0]):
            axis, at = listed[j], base[j]
            for i in range(block.shape[0]):
                out[at + np.uint64(block[i, axis])] += one


# ---- walking ---------------------------------------------------------------------------------------


@kernel
def ends_of(lines, words):
    """The first and the last line in use, (-1, -1) if none is; lines is (lines * words,)."""
    first, last = np.int64(-1), np.int64(-1)
    for line in range(lines.shape[0] // words):
        if lines[line * words] != 0:
            first = np.int64(line)
            break
    for line in range(lines.shape[0] // words - 1, first - 1 if first >= 0 else -1, -1):
        if lines[line * words] != 0:
            last = np.int64(line)
            break
    return first, last


@kernel
def fill_running(lines, words, shift, first_code, left, code, total):
    """Running totals up to each code in use, ``left`` being those before; returns how many codes there are.

    lines   (lines * words,), packed if there is a shift             IN, cleared
    left    (totals,) before the first line, then after the last     IN+OUT
    code    (distinct,)                                              OUT
    total   (totals, distinct)                                       OUT
    """
    if shift > 0:
        m = fill_packed(lines, first_code, shift, code, total[0], total[1])
    elif words == 1:
        m = fill_totals(lines, first_code, code, total[0])
    elif words == 2:
        m = fill_sums(lines, first_code, code, total[0], total[1])
    else:
        m = fill_words(lines, first_code, code, total)
    for w in range(total.shape[0]):
        for t in range(m):
            total[w, t] += left[w]
        if m > 0:
            left[w] = total[w, m - 1]
    return m


@kernel
def score_of_parts(parts, node, targets, single, table):
    """Score of the division of a node into these parts; parts is (parts, words)."""
    scores = np.empty(parts.shape[0], dtype=np.float64)
    for j in range(parts.shape[0]):
        scores[j] = score_of_part(parts[j], node, targets, single, table)
    sort(scores)  # as in ``score_children``
    score = 0.0
    for j in range(parts.shape[0]):
        score += scores[j]
    return score


@kernel
def gain_of_node(node, n, targets, table, score):
    """``gain_of`` a node that is given by its words."""
    worth = score
    word = 1
    for t in range(targets.label.shape[0]):
        label = targets.label[t]
        bits = -information(n, table)
        if targets.label.shape[0] == 1 and node.shape[0] == 2:
            bits += information(node[0] - node[1], table)
            bits += information(node[1], table)
        else:
            for c in range(label.n_classes):
                bits += information(node[word + c], table)
        word += label.n_classes
        worth -= label.weight * bits
    return worth * targets.gain_scale / n


@kernel
def add_totals(part, column, label, number, single, out):
    """The words of all rows of ``part`` together; out is (words,)."""
    for i in range(part.shape[0]):
        row = part[i]
        if single:
            out[0] += 1
            out[1] += np.int64(row[column])
        else:
            add_row(row, np.uint64(0), label, number, out)


@kernel
def fill_whole(lines, words, shift, out):
    """The words of all lines together; out is (totals,), all zero."""
    mask = (np.int64(1) << shift) - 1
    for line in range(lines.shape[0] // words):
        if shift > 0:
            out[0] += np.int64(lines[line]) >> shift
            out[1] += np.int64(lines[line]) & mask
        else:
            for w in range(words):
                out[w] += np.int64(lines[line * words + w])


# ---- the requirement -------------------------------------------------------------------------------


@kernel
def add_to_histogram(part, axis, low, edges, sensitive, variance, counts, moments):
    """Add rows to what the requirement needs to know of each bin of an axis.

    low         bins are codes, from this one on; or -1, and a row's bin is the number of edges below its code
    edges       (bins - 1,) ascending codes                                                          IN
    sensitive   VALUES, variance  VARIANCE: the tables of the rules                                  IN
    counts      (bins, sensitive values) uint32                                                      IN+OUT
    moments     (bins, rules of variance, 4) rows with a number, their sum, squares in two words     IN+OUT
    """
    one = np.uint32(1)
    for i in range(part.shape[0]):
        row = part[i]
        code = np.int64(row[axis])
        at = code - low if low >= 0 else first_reaching(edges, code)
        for s in range(sensitive.shape[0]):
            counts[at, sensitive[s].start + np.int64(row[sensitive[s].column])] += one
        for r in range(variance.shape[0]):
            x = row[variance[r].column]
            if x != NO_NUMBER:
                square = np.uint64(x) * np.uint64(x)
                words = moments[at, r]
                words[0] += 1
                words[1] += np.int64(x)
                words[2] += np.int64(square >> np.uint64(32))
                words[3] += np.int64(square & np.uint64(0xFFFFFFFF))


@kernel
def accumulate(counts, moments):
    """Make them running totals; both as in ``add_to_histogram``   IN+OUT."""
    for at in range(1, counts.shape[0]):
        for v in range(counts.shape[1]):
            counts[at, v] += counts[at - 1, v]
        for r in range(moments.shape[1]):
            for w in range(4):
                moments[at, r, w] += moments[at - 1, r, w]


@inner
def between_holds(before, up_to, n, counts, moments, rules, values, work):
    """The requirement on the n rows of the bins (before, up_to]; -1: from the first one on.

    counts, moments   running totals, see ``accumulate``      IN
    values            (sensitive values,) int64, work as in ``summarize``   scratch
    """
    for v in range(counts.shape[1]):
        values[v] = np.int64(counts[up_to, v]) - (np.int64(counts[before, v]) if before >= 0 else 0)
    own = np.empty((rules.variance.shape[0], 4), dtype=np.int64)
    for r in range(rules.variance.shape[0]):
        for w in range(4):
            own[r, w] = moments[up_to, r, w] - (moments[before, r, w] if before >= 0 else 0)
    return counts_hold(n, values, own, rules, work)


@kernel
def first_allowable(at, rows_to, n, counts, moments, rules, values, work):
    """The first of these thresholds that is allowable, -1 if none is.

    at        (thresholds,) the last bin that goes left    IN
    rows_to   (thresholds,) the rows that go left          IN
    """
    last = np.int64(counts.shape[0] - 1)
    for t in range(at.shape[0]):
        if between_holds(
            np.int64(-1), at[t], rows_to[t], counts, moments, rules, values, work
        ) and between_holds(at[t], last, n - rows_to[t], counts, moments, rules, values, work):
            return np.int64(t)
    return np.int64(-1)


@kernel
def parts_hold(place, sizes, counts, moments, rules, values, work):
    """The requirement on each part; part j are the bins (place[j], place[j + 1]]."""
    for j in range(sizes.shape[0]):
        if not between_holds(place[j], place[j + 1], sizes[j], counts, moments, rules, values, work):
            return False
    return True


# ---- cells -----------------------------------------------------------------------------------------


@kernel
def add_ids(part, id_column, other, is_number, out):
    """Add rows to what a node has of each id.

    A label counts ids of cells with classes, ``other`` being the column of cells; a number counts cells, ``other``
    being the column of the number.
    out   (ids, 2) rows, and the cell or the sum of the number   IN+OUT
    """
    for i in range(part.shape[0]):
        line, x = out[part[i, id_column]], np.int64(part[i, other])
        line[0] += 1
        line[1] = line[1] + x if is_number else x


@kernel
def add_dense(part, axis, low, id_column, rank, value, counts, sums):
    """Add rows to the counts of code and id together, and to the sums of a number.

    rank     (ids,) the column of an id; of no length: the id itself   IN
    counts   (codes, ids) uint32                                       IN+OUT
    sums     (codes, ids) int64, of no length for a label              IN+OUT
    """
    one = np.uint32(1)
    for i in range(part.shape[0]):
        line = np.int64(part[i, axis]) - low
        at = np.int64(part[i, id_column])
        if rank.shape[0] > 0:
            at = np.int64(rank[at])
        counts[line, at] += one
        if sums.shape[0] > 0:
            sums[line, at] += np.int64(part[i, value])


@kernel
def fill_entries(line, counts, sums, end, of, weight, total):
    """What is not nothing of some lines of ``add_dense``; returns how many entries there are.

    line                (lines,)                                       IN
    end                 (lines,) where the entries of each line end    OUT
    of, weight, total   (entries,) id, rows and sum of the number      OUT
    """
    n = np.int64(0)
    for t in range(line.shape[0]):
        here = counts[line[t]]
        for i in range(here.shape[0]):
            if here[i] > 0:
                of[n] = i
                weight[n] = np.int64(here[i])
                if sums.shape[0] > 0:
                    total[n] = sums[line[t], i]
                n += 1
        end[t] = n
    return n


@inner
def growth_of(x, by, table):
    """F(x + by) - F(x)."""
    return information(x + by, table) - information(x, table)


@kernel
def information_within(pair, cell, table):
    """The score of a label in a node: sum over cells of sum_c F(n_c) - F(n); pair, cell are (ids,) rows."""
    total = 0.0
    for i in range(pair.shape[0]):
        total += information(pair[i], table)
    for i in range(cell.shape[0]):
        total -= information(cell[i], table)
    return total


@kernel
def walk_information(end, of, weight, cell_of, pair, cell, score, table, out):
    """``add_information`` by entries; returns the score after the last threshold.

    end          (thresholds,) the entries before it go left     IN
    cell_of      (pairs,)                                        IN
    pair, cell   (ids, 2) rows on the left, on the right         IN+OUT
    score        before the first threshold
    out          (thresholds,)                                   OUT
    """
    e = np.int64(0)
    for t in range(end.shape[0]):
        while e < end[t]:
            w, here = weight[e], pair[of[e]]
            score += growth_of(here[0], w, table) - growth_of(here[1] - w, w, table)
            here[0] += w
            here[1] -= w
            here = cell[cell_of[of[e]]]
            score -= growth_of(here[0], w, table) - growth_of(here[1] - w, w, table)
            here[0] += w
            here[1] -= w
            e += 1
        out[t] = score
    return score


@kernel
def walk_squares(end, of, weight, total, scale, cell, score, out):
    """``add_squares`` by entries; cell is (ids, 4): rows and sum on the left, of the node   IN+OUT."""
    e = np.int64(0)
    for t in range(end.shape[0]):
        while e < end[t]:
            here = cell[of[e]]
            left, left_x, n, x = here[0], here[1], here[2], here[3]
            mean = x / n
            score -= squares(left, left_x, mean, scale) + squares(n - left, x - left_x, mean, scale)
            left, left_x = left + weight[e], left_x + total[e]
            score += squares(left, left_x, mean, scale) + squares(n - left, x - left_x, mean, scale)
            here[0], here[1] = left, left_x
            e += 1
        out[t] = score
    return score


@kernel
def group_information(group, of, weight, cell_of, pair, cell, touched, current, score, table):
    """``information_of_groups`` by entries, the groups one after the other; returns the score up to here.

    group        (entries,)                                                                      IN
    pair, cell   (ids, 2) rows in the current group, -                                           IN+OUT
    touched      (1 + pairs,) how many pairs the current group has, and which; current  (1,)     IN+OUT
    """
    for e in range(of.shape[0]):
        if group[e] != current[0]:
            for i in range(1, touched[0] + 1):
                pair[touched[i], 0] = 0
                cell[cell_of[touched[i]], 0] = 0
            touched[0] = 0
            current[0] = group[e]
        here = pair[of[e]]
        if here[0] == 0:
            touched[0] += 1
            touched[touched[0]] = of[e]
        score += growth_of(here[0], weight[e], table)
        here[0] += weight[e]
        here = cell[cell_of[of[e]]]
        score -= growth_of(here[0], weight[e], table)
        here[0] += weight[e]
    return score


@kernel
def group_squares(group, of, weight, total, scale, cell, touched, current, score):
    """``squares_of_groups`` by entries; see ``group_information`` and ``walk_squares``."""
    for e in range(of.shape[0]):
        if group[e] != current[0]:
            for i in range(1, touched[0] + 1):
                cell[touched[i], 0] = 0
                cell[touched[i], 1] = 0
            touched[0] = 0
            current[0] = group[e]
        here = cell[of[e]]
        if here[0] == 0:
            touched[0] += 1
            touched[touched[0]] = of[e]
        mean = here[3] / here[2]
        score -= squares(here[0], here[1], mean, scale)
        here[0] += weight[e]
        here[1] += total[e]
        score += squares(here[0], here[1], mean, scale)
    return score
