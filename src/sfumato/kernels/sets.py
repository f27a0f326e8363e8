"""Frequency sets of rows that are never together: added up block by block, then walked code by code.

The scores are those of ``choose``, from the same exact words: a split chosen here is the one that is chosen
where all rows are at hand.
"""

from __future__ import annotations

import numpy as np

from sfumato.kernels.choose import best_score, fill_word_scores, information, score_of_part, width_of
from sfumato.kernels.compile import inner, kernel
from sfumato.kernels.frequency import (
    add_row,
    add_words,
    cover,
    fill_packed,
    fill_sums,
    fill_totals,
    fill_words,
    packing,
    sort,
)

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


@kernel
def add_lines(part, words, label, number, listed, base, out):
    """``add_sums`` for several targets; out is (lines * words,)."""
    add_words(part, words, label, number, listed, base, out)


@kernel
def shift_of(n, largest):
    """``packing``."""
    return packing(n, largest)


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
def fill_threshold_scores(total, node, targets, table, out):
    """Score of each threshold of a node, both given by their words.

    total   (words, thresholds)   IN
    node    (words,)              IN
    out     (thresholds,)         OUT
    """
    fill_word_scores(total, node, np.int64(0), np.int64(out.shape[0]), targets, table, out)


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
def best_of(rows_to, n, score):
    """The best threshold by score, balance, then the lower one."""
    return best_score(rows_to, n, score, np.int64(0))


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
def normalized_width(grid, axis, low, high, cover_node):
    """``width_of``."""
    return width_of(grid, axis, low, high, cover_node)


@kernel
def cover_of(grid, node, least, greatest):
    """``cover``."""
    return cover(grid, node, least, greatest)


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
