"""Scores of splits, from counts.

A score is a fixed expression of exact integers. For labels it is the sum over parts of
sum_c F(n_c) - F(n), F(x) = x log2 x in fixed point: minus the entropy times the rows. For numbers it is
the sum over parts of n (mean of the part - mean of the node)^2: the squared error that the split takes away.
Between equal scores the better balanced split is better (the smaller largest part), then the lower threshold.

Scores of labels are int64. As soon as there is a number among the targets, all are float64. Which of the two is known
when kernels are compiled: from the weights of targets, and from ``scratch.score``. Into that array every score is
written, and so becomes what it holds; or ``as_score`` makes it one.
"""

from __future__ import annotations

import numpy as np

from sfumato.kernels.compile import inner
from sfumato.kernels.information import information
from sfumato.methods.mondrian.kernels.frequency import first_reaching, sort, unpack

LOWEST = np.iinfo(np.int64).min
"""Lower than any score of labels."""


@inner(borrows=True)
def as_score(x, scratch):
    """A whole number as one of the scores that are compared."""
    return scratch.score.dtype.type(x)


@inner(borrows=True)
def add_score_of_part(part, node, targets, several, table, at, out):
    """Add the score of one part of a node, both given by their words, to out[at]."""
    n = part[0]
    if several is None:
        if targets.label.shape[0] == 1:
            out[at] += information(part[1], table) + information(n - part[1], table) - information(n, table)
        else:
            away = part[1] / n - node[1] / node[0]
            out[at] += n * (away * away)
        return
    word = 1
    for t in range(targets.label.shape[0]):
        bits = -information(n, table)
        for c in range(targets.label[t].n_classes):
            bits += information(part[word + c], table)
        out[at] += targets.label[t].weight * bits
        word += targets.label[t].n_classes
    for t in range(targets.number.shape[0]):
        away = part[word] / n - node[word] / node[0]
        out[at] += targets.number[t].weight * (n * (away * away))
        word += 1


@inner(borrows=True)
def most_balanced(packed, shift, n):
    """``best_label`` where all rows are of one class, so that no threshold scores anything."""
    after = first_reaching(packed, ((n + 1) >> 1) << shift)  # the first with at least half of the rows
    best, least = after, n
    if after < packed.shape[0]:
        least = packed[after] >> shift
    if after > 0 and n - (packed[after - 1] >> shift) <= least:
        best = after - 1
        least = n - (packed[best] >> shift)
    return best, np.int64(0), least


@inner(borrows=True)
def best_label(packed, shift, n, x, table):
    """The best threshold for one label of two classes.

    packed   (thresholds,) rows << shift | rows of the second class, up to each   IN
    n, x     the node's rows, and those of the second class
    Returns (threshold, score, largest part); ties go to the better balanced, then to the lower one.
    """
    by = np.uint64(shift)
    mask = (np.uint64(1) << by) - np.uint64(1)
    whole_n, whole_x = np.uint64(n), np.uint64(x)
    if whole_x == 0 or whole_x == whole_n:  # noqa: PLR1714 - a tuple would not be compiled away
        return most_balanced(packed, shift, n)
    best, high, least = np.int64(-1), np.int64(LOWEST), whole_n
    for t in range(packed.shape[0]):
        here = np.uint64(packed[t])
        left, left_x = here >> by, here & mask
        right, right_x = whole_n - left, whole_x - left_x
        score = (
            table[left_x]
            + table[left - left_x]
            - table[left]
            + (table[right_x] + table[right - right_x] - table[right])
        )
        if score >= high:
            largest = max(left, right)
            if score > high or largest < least:
                best, high, least = np.int64(t), score, largest
    return best, high, np.int64(least)


@inner(borrows=True)
def fill_label_scores(rows_to, sum_to, n, x, table, out):
    """Score of each threshold for one label of two classes, x rows of the node being of the second."""
    for t in range(out.shape[0]):
        left, left_x = rows_to[t], sum_to[t]
        right, right_x = n - left, x - left_x
        out[t] = (
            information(left_x, table)
            + information(left - left_x, table)
            - information(left, table)
            + (information(right_x, table) + information(right - right_x, table) - information(right, table))
        )


@inner(borrows=True)
def fill_number_scores(rows_to, sum_to, n, x, out):
    """Score of each threshold for one number that sums to x over the node."""
    mean = x / n
    for t in range(out.shape[0]):
        left, left_x = rows_to[t], sum_to[t]
        a = left_x / left - mean
        b = (x - left_x) / (n - left) - mean
        out[t] = left * (a * a) + (n - left) * (b * b)


@inner(borrows=True)
def add_label_scores(rows_to, counts_to, n, node, weight, table, left_out, right_out):
    """Add the weighted scores of one label of several, those of the left and of the right part apart.

    counts_to             (classes, thresholds) rows of each class up to a threshold, node (classes,) in all   IN
    left_out, right_out   (thresholds,)                                                                         IN+OUT
    """
    for t in range(rows_to.shape[0]):
        left = rows_to[t]
        left_bits, right_bits = -information(left, table), -information(n - left, table)
        for c in range(counts_to.shape[0]):
            left_bits += information(counts_to[c, t], table)
            right_bits += information(node[c] - counts_to[c, t], table)
        left_out[t] += weight * left_bits
        right_out[t] += weight * right_bits


@inner(borrows=True)
def add_number_scores(rows_to, sum_to, n, x, weight, left_out, right_out):
    """``add_label_scores`` for a number that sums to x over the node."""
    mean = x / n
    for t in range(rows_to.shape[0]):
        left, left_x = rows_to[t], sum_to[t]
        a = left_x / left - mean
        b = (x - left_x) / (n - left) - mean
        left_out[t] += weight * (left * (a * a))
        right_out[t] += weight * ((n - left) * (b * b))


@inner(borrows=True)
def fill_several_scores(total, n, node, first, last, targets, table, left, right):
    """Score of each threshold of a node, given by its words, for several targets; it ends up in ``left``."""
    for t in range(first, last):
        left[t], right[t] = 0, 0
    rows_to, word = total[0, first:last], 1
    for t in range(targets.label.shape[0]):
        label = targets.label[t]
        end = word + label.n_classes
        add_label_scores(
            rows_to, total[word:end, first:last], n, node[word:end], label.weight, table,
            left[first:last], right[first:last],
        )  # fmt: skip
        word = end
    for t in range(targets.number.shape[0]):
        add_number_scores(
            rows_to, total[word, first:last], n, node[word], targets.number[t].weight,
            left[first:last], right[first:last],
        )  # fmt: skip
        word += 1
    for t in range(first, last):
        left[t] += right[t]


@inner(borrows=True)
def within_limit(totals, n, shift, least_rows):
    """The thresholds [first, last) that leave enough of n rows on both sides; totals are rows << shift | ..."""
    first = first_reaching(totals, least_rows << shift)
    last = first_reaching(totals, (n - least_rows + 1) << shift)
    return first, last


@inner(borrows=True, inlines=True)
def score_thresholds(m, n, x, node, shift, targets, several, least_rows, table, scratch):
    """Score the thresholds that leave enough rows on both sides; returns the first of them, and the end.

    n, x, node              the node's rows, the sum of its single target, its words
    shift                   of packed totals, which stand in scratch.total[1]; they are unpacked
    scratch.score           OUT
    """
    rows_to, sum_to, score = scratch.total[0], scratch.total[1], scratch.score
    if shift > 0:
        unpack(sum_to[:m], shift, rows_to, sum_to)
    first, last = within_limit(rows_to[:m], n, np.int64(0), least_rows)
    if first >= last:
        return first, last
    if several is not None:
        fill_several_scores(scratch.total, n, node, first, last, targets, table, score, scratch.right)
    elif targets.label.shape[0] == 1:
        fill_label_scores(rows_to[first:last], sum_to[first:last], n, x, table, score[first:last])
    else:
        fill_number_scores(rows_to[first:last], sum_to[first:last], n, x, score[first:last])
    return first, last


@inner(borrows=True)
def score_of_children(words, node, targets, table, scores):
    """(score, largest part) of the division of a node into children, both given by their words.

    words    (children, words)        IN
    scores   (at least children,)     scratch
    """
    m, largest = words.shape[0], np.int64(0)
    for j in range(m):
        scores[j] = 0
        add_score_of_part(words[j], node, targets, targets.several, table, j, scores)
        largest = max(largest, words[j, 0])
    sort(scores[:m])  # roundoff must not depend on the order of the children
    score = scores[0]
    for j in range(1, m):
        score += scores[j]
    return score, largest


@inner(borrows=True)
def score_of_node(node, targets, several, table, scratch):
    """The score of a node, given by its words, as one part: what a split of it is compared with."""
    scratch.score[0] = 0
    add_score_of_part(node, node, targets, several, table, 0, scratch.score)
    return scratch.score[0]


@inner(borrows=True)
def gains_too_little(score, unsplit, n, gain_scale, least_gain):
    """Does a split of this score take away too little uncertainty per row, compared with n rows that stay together?

    On the scale of ``median_below_gain``. Labels: bits. Numbers: squared error over the target's variance in the whole
    table.
    """
    gain = (score - unsplit) * gain_scale / n
    return not gain >= least_gain


@inner(borrows=True)
def best_score(rows_to, n, score, first):
    """The best threshold by score, balance, then the lower one; ``score`` starts at threshold ``first``."""
    high = score[0]
    for t in range(score.shape[0]):
        high = max(high, score[t])
    best, least = np.int64(-1), n + 1
    for t in range(score.shape[0]):
        if score[t] == high:
            largest = max(rows_to[t], n - rows_to[t])
            if largest < least:
                best, least = np.int64(first + t), largest
    return best
