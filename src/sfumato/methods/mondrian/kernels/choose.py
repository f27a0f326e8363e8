"""Which split? The only home of scores, ties and allowability.

The rows of a node may be at hand as ``part``, or have been counted elsewhere. Either way a choice goes by the codes
that occur and running totals up to each (``scratch.code``, ``scratch.total``): ``choose_axis`` compares the thresholds
of an ordered attribute, ``take_children`` the split along a hierarchy. Only the requirement looks beyond totals: at
``part``, or at ``bins``, running totals of what it must know. One of the two is None, and numba compiles nothing of it;
which is why each question about them is ``is not None``: only a None is known when it compiles.
Codes that were counted may come a stretch at a time, in ascending order.

Median [LDR08, 2.2]: attributes by normalized width, widest first; on each the best balanced allowable
split. Scored criteria [LDR08, equations 3 to 6]: the best allowable split of all. Ties are broken by
balance (the smaller largest part), attribute, threshold, so that the answer depends on counts alone.

A score is a fixed expression of exact integers. For labels it is the sum over parts of
sum_c F(n_c) - F(n), F(x) = x log2 x in fixed point: minus the entropy times the rows. For numbers it is
the sum over parts of n (mean of the part - mean of the node)^2: the squared error that the split takes away.

It is long because all of that is one idea, which must not stand in two places: count, score, compare, test.
"""

from __future__ import annotations

import numpy as np

from sfumato.kernels.compile import inner, kernel
from sfumato.kernels.information import information
from sfumato.methods.mondrian.kernels.frequency import (
    add_packed,
    add_row,
    add_sums,
    add_target,
    child_of,
    cover,
    fill_several,
    fill_sums,
    fill_totals,
    first_reaching,
    is_single,
    range_of,
    select_median,
    single_column,
    single_packing,
    sort,
    unpack,
    words_of_several,
)
from sfumato.methods.mondrian.kernels.problem import COVER, HIGH, IS_EXACT, LOW, BestSplit
from sfumato.methods.mondrian.kernels.rules import TWO, fill_walk, is_sample, least_rows_of, part_holds
from sfumato.methods.mondrian.kernels.statistics import between_holds

NO_SCORE = -1e300


@inner(borrows=True)
def score_of_part(part, node, targets, single, table):
    """Score of one part of a node, both given by their words."""
    n = part[0]
    score = 0.0
    if single:
        if targets.label.shape[0] == 1:
            return float(
                information(part[1], table) + information(n - part[1], table) - information(n, table)
            )
        away = part[1] / n - node[1] / node[0]
        return n * (away * away)
    word = 1
    for t in range(targets.label.shape[0]):
        bits = -information(n, table)
        for c in range(targets.label[t].n_classes):
            bits += information(part[word + c], table)
        score += targets.label[t].weight * bits
        word += targets.label[t].n_classes
    for t in range(targets.number.shape[0]):
        away = part[word] / n - node[word] / node[0]
        score += targets.number[t].weight * (n * (away * away))
        word += 1
    return score


@inner(borrows=True)
def within_limit(totals, n, shift, least_rows):
    """The thresholds [first, last) that leave enough of n rows on both sides; totals are rows << shift | ..."""
    first = first_reaching(totals, least_rows << shift)
    last = first_reaching(totals, (n - least_rows + 1) << shift)
    return first, last


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
    return best, 0.0, least


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
    best, high, least = np.int64(-1), NO_SCORE, whole_n
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
        left[t], right[t] = 0.0, 0.0
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


@inner(borrows=True)
def best_allowable(n, first, last, scratch):
    """The best threshold in [first, last) that ``fill_allowable`` admits, -1 if none; see ``best_score``."""
    rows_to, score = scratch.total[0], scratch.score
    best, high, least = np.int64(-1), NO_SCORE, n
    for t in range(first, last):
        if not (scratch.is_fine[0, t] and scratch.is_fine[1, t]) or score[t] < high:
            continue
        largest = max(rows_to[t], n - rows_to[t])
        if score[t] > high or largest < least:
            best, high, least = np.int64(t), score[t], largest
    return best


@inner(borrows=True)
def threshold_holds(part, bins, axis, code, rules, scratch):
    """Is the split at ``code``, which leaves enough rows on both sides, allowable?"""
    return sensitive_threshold_holds(part, bins, axis, code, rules, rules.sensitive, scratch)


@inner(borrows=True)
def sensitive_threshold_holds(part, bins, axis, code, rules, sensitive, scratch):
    """What ``threshold_holds`` asks of sensitive values, if anything."""
    if sensitive is None:
        return True
    if part is not None:
        order = scratch.order
        n = part.shape[0]
        left, right = np.int64(0), n
        for i in range(n):
            if part[i, axis] <= code:
                order[left] = i
                left += 1
            else:
                right -= 1
                order[right] = i
        return part_holds(part, order, np.int64(0), left, TWO, rules, scratch) and part_holds(
            part, order, left, n, TWO, rules, scratch
        )
    if bins is not None:
        at, last = first_reaching(bins.edges, code), np.int64(bins.n_rows.shape[0] - 1)
        return between_holds(np.int64(-1), at, bins, rules, scratch.values, scratch.work) and between_holds(
            at, last, bins, rules, scratch.values, scratch.work
        )
    return False


@inner(borrows=True)
def fill_allowable(part, bins, axis, m, first, last, rules, sensitive, scratch):
    """Which thresholds of an attribute, at least those in [first, last), are allowable, all of them at once.

    scratch.code[:m]                 IN   the codes that occur
    scratch.is_fine[:, first:last]   OUT
    """
    if sensitive is None:
        return  # all are, and nobody asks
    code = scratch.code[:m]
    if part is not None:
        order, key, place, ends = scratch.order, scratch.key, scratch.place, scratch.total[0]
        for t in range(m):
            place[t] = ends[t - 1] if t > 0 else 0
        for i in range(part.shape[0]):
            key[i] = first_reaching(code, np.int64(part[i, axis]))
        for i in range(part.shape[0]):
            t = key[i]
            order[place[t]] = i
            place[t] += 1
        for side in range(2):
            fill_walk(part, order, ends, m, side == 1, rules, scratch, scratch.is_fine[side])
    if bins is not None:
        for t in range(first, last):
            holds = threshold_holds(part, bins, axis, code[t], rules, scratch)
            scratch.is_fine[0, t], scratch.is_fine[1, t] = holds, holds


@inner(borrows=True)
def beats(score, largest, best):
    """Is this better than the best split so far, by score, then by balance? A later attribute must be strictly better."""
    return score > best.score or (score == best.score and largest < best.largest)


@inner(borrows=True, inlines=True)
def take_threshold(part, bins, axis, m, n, first, last, rules, scratch, best):
    """The best allowable threshold in [first, last) by ``scratch.score`` if it beats ``best``, else ``best``."""
    rows_to, score = scratch.total[0], scratch.score
    t = best_score(rows_to[first:last], n, score[first:last], first)
    if not beats(score[t], max(rows_to[t], n - rows_to[t]), best):
        return best
    if threshold_holds(part, bins, axis, scratch.code[t], rules, scratch):
        return BestSplit(axis, scratch.code[t], score[t], max(rows_to[t], n - rows_to[t]))
    return take_allowable(part, bins, axis, m, n, first, last, rules, scratch, best)


@inner(borrows=True)
def take_allowable(part, bins, axis, m, n, first, last, rules, scratch, best):
    """``take_threshold`` where the best one is known to be not allowable: by one walk of all."""
    rows_to, score = scratch.total[0], scratch.score
    fill_allowable(part, bins, axis, m, first, last, rules, rules.sensitive, scratch)
    t = best_allowable(n, first, last, scratch)
    if t < 0 or not beats(score[t], max(rows_to[t], n - rows_to[t]), best):
        return best
    return BestSplit(axis, scratch.code[t], score[t], max(rows_to[t], n - rows_to[t]))


@inner(borrows=True, inlines=True)
def score_thresholds(m, n, x, node, shift, targets, least_rows, table, scratch):
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
    if not is_single(targets):
        fill_several_scores(scratch.total, n, node, first, last, targets, table, score, scratch.right)
    elif targets.label.shape[0] == 1:
        fill_label_scores(rows_to[first:last], sum_to[first:last], n, x, table, score[first:last])
    else:
        fill_number_scores(rows_to[first:last], sum_to[first:last], n, x, score[first:last])
    return first, last


@inner(borrows=True, inlines=True)
def choose_axis(axis, m, n, x, node, shift, part, bins, targets, rules, table, scratch, best):
    """The best allowable threshold of an ordered attribute if it beats ``best``, that of others; else ``best``.

    scratch.code[:m]       IN   the codes that occur, or a stretch of them
    scratch.total[:, :m]   IN   running totals up to each, as ``score_thresholds`` takes them
    """
    packed = scratch.total[1, :m]
    if shift == 0 or targets.label.shape[0] == 0 or n >= table.shape[0]:
        first, last = score_thresholds(m, n, x, node, shift, targets, rules.least_rows, table, scratch)
        if first >= last:
            return best
        return take_threshold(part, bins, axis, m, n, first, last, rules, scratch, best)
    first, last = within_limit(packed, n, shift, rules.least_rows)
    if first >= last:
        return best
    t, score, largest = best_label(packed[first:last], shift, n, x, table)
    t += first
    if not beats(score, largest, best):
        return best
    if threshold_holds(part, bins, axis, scratch.code[t], rules, scratch):
        return BestSplit(axis, scratch.code[t], score, largest)
    score_thresholds(m, n, x, node, shift, targets, rules.least_rows, table, scratch)
    return take_allowable(part, bins, axis, m, n, first, last, rules, scratch, best)


@inner(borrows=True)
def fill_children(part, axis, node, grid, scratch):
    """Group the rows by the child of ``node`` they belong to.

    scratch.order[:n]   OUT  row positions, child by child
    scratch.total[0,:m] OUT  running number of rows up to and with each child in use
    scratch.code[:m]    OUT  which child that is
    Returns m, the number of children in use.
    """
    n = part.shape[0]
    order, key, bins, code, rows_to = scratch.order, scratch.key, scratch.bins, scratch.code, scratch.total[0]
    here = grid.node[node]
    m = 0
    if here.n_children <= 4 * n + 64:
        for i in range(n):
            which = child_of(here, grid, np.int64(part[i, axis]))
            key[i] = which
            bins[which] += 1
        running = np.int64(0)
        for which in range(here.n_children):
            rows_here = bins[which]
            bins[which] = running
            if rows_here > 0:
                running += rows_here
                code[m] = which
                rows_to[m] = running
                m += 1
        for i in range(n):
            which = key[i]
            order[bins[which]] = i
            bins[which] += 1
        bins[: here.n_children] = 0
        return m
    for i in range(n):
        key[i] = (child_of(here, grid, np.int64(part[i, axis])) << 32) | i
    sort(key[:n])
    for j in range(n):
        which = key[j] >> 32
        order[j] = key[j] & 0xFFFFFFFF
        if m == 0 or code[m - 1] != which:
            code[m] = which
            m += 1
        rows_to[m - 1] = j + 1
    return m


@inner(borrows=True)
def children_are_large(rows_to, least_rows):
    """Has every group that ``fill_children`` made enough rows?"""
    before = np.int64(0)
    for j in range(rows_to.shape[0]):
        if rows_to[j] - before < least_rows:
            return False
        before = rows_to[j]
    return True


@inner(borrows=True)
def children_hold(part, bins, m, rules, scratch):
    """Does every child, of which each has enough rows, satisfy the requirement?

    They are the groups that ``fill_children`` made; of rows that were counted, child j ends with bin scratch.place[j].
    """
    return sensitive_children_hold(part, bins, m, rules, rules.sensitive, scratch)


@inner(borrows=True)
def sensitive_children_hold(part, bins, m, rules, sensitive, scratch):
    """What ``children_hold`` asks of sensitive values, if anything."""
    if sensitive is None:
        return True
    if part is not None:
        before = np.int64(0)
        for j in range(m):
            end = scratch.total[0, j]
            if not part_holds(part, scratch.order, before, end, m, rules, scratch):
                return False
            before = end
    if bins is not None:
        before = np.int64(-1)
        for j in range(m):
            end = scratch.place[j]
            if not between_holds(before, end, bins, rules, scratch.values, scratch.work):
                return False
            before = end
    return True


@inner(borrows=True)
def take_children(part, bins, axis, m, score, largest, rules, scratch, best):
    """The split into m children, of which each has enough rows, if it is allowable and beats ``best``; else ``best``."""
    is_tie = score == best.score and largest == best.largest and axis < best.axis
    if (is_tie or beats(score, largest, best)) and children_hold(part, bins, m, rules, scratch):
        return BestSplit(np.int64(axis), np.int64(-1), score, largest)
    return best


@inner(borrows=True)
def score_of_children(words, node, targets, table, scores):
    """(score, largest part) of the division of a node into children, both given by their words.

    words    (children, words)        IN
    scores   (at least children,)     scratch
    """
    m, largest, single = words.shape[0], np.int64(0), is_single(targets)
    for j in range(m):
        scores[j] = score_of_part(words[j], node, targets, single, table)
        largest = max(largest, words[j, 0])
    sort(scores[:m])  # roundoff must not depend on the order of the children
    score = 0.0
    for j in range(m):
        score += scores[j]
    return score, largest


@inner
def score_children(part, m, targets, table, scratch):
    """``score_of_children`` of the groups that ``fill_children`` made."""
    order, rows_to, n_words = scratch.order, scratch.total[0], scratch.total.shape[0]
    single = is_single(targets)
    column = single_column(targets) if single else np.int64(0)
    bins = scratch.bins[: m * n_words]
    node = np.zeros(n_words, dtype=np.int64)
    before = np.int64(0)
    for j in range(m):
        for i in range(before, rows_to[j]):
            row = part[order[i]]
            if single:
                bins[2 * j] += 1
                bins[2 * j + 1] += row[column]
            else:
                add_row(row, np.uint64(j * n_words), targets.label, targets.number, bins)
        before = rows_to[j]
        for w in range(n_words):
            node[w] += bins[j * n_words + w]
    score, largest = score_of_children(bins.reshape(m, n_words), node, targets, table, scratch.score)
    bins[:] = 0
    return score, largest


@inner(borrows=True)
def list_axes(first, n_lines, low, high, axis_table, listed, base):
    """The ordered attributes from ``first`` on whose frequency sets fit into ``n_lines`` lines together.

    listed   (axes,) those attributes                     uint64  OUT
    base     (axes,) base + code is the line of a code    uint64  OUT
    Returns (how many they are, their lines, the attribute to go on with).
    """
    n_listed, lines = 0, np.int64(0)
    axis = first
    while axis < low.shape[0]:
        if low[axis] < high[axis] and axis_table[axis].may_split and not axis_table[axis].is_tree:
            width = high[axis] - low[axis] + 1
            if lines + width > n_lines:
                break
            listed[n_listed] = axis
            base[n_listed] = lines - low[axis]
            n_listed += 1
            lines += width
        axis += 1
    return n_listed, lines, axis


@inner(borrows=True)
def add_several(part, targets, n_lines, listed, base, bins):
    """Count several targets, each for itself, see ``add_target``."""
    start = np.int64(0)
    for t in range(targets.label.shape[0]):
        start = add_target(part, targets.label[t], n_lines, start, listed, base, bins)
    for t in range(targets.number.shape[0]):
        start = add_target(part, targets.number[t], n_lines, start, listed, base, bins)


@inner(borrows=True)
def choose_threshold(part, bounds, axis_table, targets, rules, table, scratch):
    """The best allowable threshold of all ordered attributes by score.

    bounds   (4, axes) see ``fill_subtree``; the codes are tightened    IN+OUT
    Returns a BestSplit, of axis -1 if no threshold is allowable.
    """
    n = part.shape[0]
    best = BestSplit(np.int64(-1), np.int64(-1), NO_SCORE, np.int64(n))
    low, high, bins, code, total = bounds[LOW], bounds[HIGH], scratch.bins, scratch.code, scratch.total
    single = is_single(targets)
    column = single_column(targets) if single else np.int64(0)
    shift = single_packing(n, targets) if single else np.int64(0)
    mask = (np.int64(1) << shift) - 1 if shift > 0 else np.int64(-1)
    words = np.int64(1) if shift > 0 else np.int64(2) if single else words_of_several(targets, n)
    done = np.int64(0)
    while done < low.shape[0]:
        n_listed, n_lines, done = list_axes(
            done, bins.shape[0] // words, low, high, axis_table, scratch.listed, scratch.base
        )
        listed, base = scratch.listed[:n_listed], scratch.base[:n_listed]
        if shift > 0:
            add_packed(part, column, listed, base, shift, bins)
        elif single:
            add_sums(part, column, listed, base, bins)
        else:
            add_several(part, targets, n_lines, listed, base, bins)
        line = np.int64(0)
        for j in range(n_listed):
            axis = np.int64(listed[j])
            n_codes = high[axis] - low[axis] + 1
            lines = bins[line * words : (line + n_codes) * words]
            if shift > 0:
                m = fill_totals(lines, low[axis], code, total[1])  # packed, to be scored as they are
            elif single:
                m = fill_sums(lines, low[axis], code, total[0], total[1])
            else:
                m = fill_several(bins, n_lines, line, n_codes, n, low[axis], targets, code, total)
            line += n_codes
            low[axis], high[axis] = code[0], code[m - 1]
            x, node = total[1, m - 1] & mask, total[:, m - 1]
            best = choose_axis(axis, m, n, x, node, shift, part, None, targets, rules, table, scratch, best)
    return best


@inner(borrows=True)
def choose_children(part, cover_of, best, grid, targets, rules, table, scratch):
    """The best allowable split along a hierarchy if it beats ``best``, that by a threshold; else ``best`` itself.

    cover_of   (axes,) node of a tree attribute that covers the rows   IN
    """
    for axis in range(cover_of.shape[0]):
        here = grid.axis[axis]
        if here.is_tree and here.may_split and grid.node[cover_of[axis]].n_children > 0:
            m = fill_children(part, axis, cover_of[axis], grid, scratch)
            if m > 1 and children_are_large(scratch.total[0, :m], least_rows_of(rules, m)):
                score, largest = score_children(part, m, targets, table, scratch)
                best = take_children(part, None, axis, m, score, largest, rules, scratch, best)
    return best


@kernel(borrows=True)
def width_of(grid, axis, low, high, cover_node):
    """Normalized width of a node on an attribute: values spanned, or leaves spanned on a tree."""
    here = grid.axis[axis]
    if here.is_tree:
        spanned = float(grid.node[cover_node].high - grid.node[cover_node].low - 1)
    elif here.position_start < 0:
        least = here.least_code  # missing stands with the least value
        spanned = float(max(high, least) - max(low, least))
    else:
        spanned = grid.position[here.position_start + high] - grid.position[here.position_start + low]
    return spanned / here.width


@inner(borrows=True)
def best_median(part, axis, low, high, rules, scratch):
    """The best balanced allowable threshold of an ordered attribute: (found, code)."""
    n = part.shape[0]
    middle, below, at = select_median(part[:, axis], low, high, scratch.bins)
    upper = below + at  # rows that go left with x <= middle; ``below`` of them with x < middle
    upper_fits = min(upper, n - upper) >= rules.least_rows
    lower_fits = min(below, n - below) >= rules.least_rows
    if not upper_fits and not lower_fits:
        return False, np.int64(-1)  # no threshold leaves enough rows on both sides
    take_lower = lower_fits and (not upper_fits or max(below, n - below) <= max(upper, n - upper))
    code = middle - 1 if take_lower else middle
    if threshold_holds(part, None, axis, code, rules, scratch):
        return True, code
    # the median fails the diversity: the allowable threshold nearest to the middle
    m = fill_sorted(part[:, axis], scratch.key[:n], scratch.code, scratch.total[0])
    none = BestSplit(np.int64(-1), np.int64(-1), NO_SCORE, np.int64(n))
    best = take_balanced(part, None, axis, m, n, rules, scratch, none)
    return best.axis >= 0, best.code


@inner(borrows=True)
def take_balanced(part, bins, axis, m, n, rules, scratch, best):
    """The best balanced allowable threshold if it beats ``best``, else ``best``."""
    first, last = within_limit(scratch.total[0, :m], n, np.int64(0), rules.least_rows)
    if first >= last:
        return best
    for t in range(first, last):
        scratch.score[t] = 0.0  # only balance counts
    return take_threshold(part, bins, axis, m, n, first, last, rules, scratch, best)


@inner(borrows=True)
def fill_sorted(column, key, code, rows_to):
    """The codes that occur and the running number of rows, by sorting; returns how many codes there are.

    key             (n,)               OUT  the codes, sorted
    code, rows_to   (distinct or more,) OUT
    """
    for i in range(key.shape[0]):
        key[i] = column[i]
    sort(key)
    m = np.int64(0)
    for j in range(key.shape[0]):
        if m == 0 or code[m - 1] != key[j]:
            code[m] = key[j]
            m += 1
        rows_to[m - 1] = j + 1
    return m


@inner(borrows=True)
def choose_median(part, bounds, grid, rules, scratch):
    """The Median split of a node: (axis, code), axis -1 if no split is allowable.

    bounds   (4, axes) see ``fill_subtree``; made exact only for attributes that may be the widest   IN+OUT
    """
    low, high, cover_of, is_exact = bounds[LOW], bounds[HIGH], bounds[COVER], bounds[IS_EXACT]
    width = scratch.width  # upper bound until exact; negative: has no split
    for a in range(width.shape[0]):
        width[a] = width_of(grid, a, low[a], high[a], cover_of[a]) if grid.axis[a].may_split else -1.0
    while True:
        axis = np.int64(0)
        for a in range(1, width.shape[0]):
            if width[a] > width[axis]:
                axis = np.int64(a)
        if width[axis] < 0.0:
            return np.int64(-1), np.int64(-1)
        is_tree = grid.axis[axis].is_tree
        if is_exact[axis] == 0:
            low[axis], high[axis] = range_of(part[:, axis], low[axis], high[axis])
            is_exact[axis] = 1
            if is_tree and not is_sample(rules):
                cover_of[axis] = cover(grid, cover_of[axis], low[axis], high[axis])
            width[axis] = width_of(grid, axis, low[axis], high[axis], cover_of[axis])
            continue
        if low[axis] < high[axis]:
            if is_tree:
                m = fill_children(part, axis, cover_of[axis], grid, scratch)
                are_large = m > 1 and children_are_large(scratch.total[0, :m], least_rows_of(rules, m))
                if are_large and children_hold(part, None, m, rules, scratch):
                    return axis, np.int64(-1)
            else:
                found, code = best_median(part, axis, low[axis], high[axis], rules, scratch)
                if found:
                    return axis, code
        width[axis] = -1.0
