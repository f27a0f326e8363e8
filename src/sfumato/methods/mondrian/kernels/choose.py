"""Which split? The only home of scores, ties and allowability.

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
    add_words,
    child_of,
    cover,
    fill_packed,
    fill_sums,
    fill_totals,
    fill_words,
    first_reaching,
    is_single,
    packing,
    range_of,
    select_median,
    single_column,
    sort,
    unpack,
)
from sfumato.methods.mondrian.kernels.problem import COVER, HIGH, IS_EXACT, LOW, BestSplit
from sfumato.methods.mondrian.kernels.rules import TWO, fill_walk, is_sample, least_rows_of, part_holds

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
def best_label(packed, shift, n, whole, table):
    """The best threshold for one label of two classes.

    packed   (thresholds,) rows << shift | rows of the second class, up to each; ``whole`` is the node's   IN
    Returns (threshold, score, largest part); ties go to the better balanced, then to the lower one.
    """
    by = np.uint64(shift)
    mask = (np.uint64(1) << by) - np.uint64(1)
    whole_n, whole_x = np.uint64(n), np.uint64(whole) & mask
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
    whole_n, whole_x = np.uint64(n), np.uint64(x)
    for t in range(out.shape[0]):
        left, left_x = np.uint64(rows_to[t]), np.uint64(sum_to[t])
        right, right_x = whole_n - left, whole_x - left_x
        out[t] = (
            table[left_x]
            + table[left - left_x]
            - table[left]
            + (table[right_x] + table[right - right_x] - table[right])
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


@kernel
def fill_word_scores(total, node, first, last, targets, table, out):
    """Score of each threshold of a node, given by its words, for any targets."""
    words, single = total.shape[0], is_single(targets)
    parts = np.empty((3, words), dtype=np.int64)
    left, right, whole = parts[0], parts[1], parts[2]
    for w in range(words):
        whole[w] = node[w]
    for t in range(first, last):
        for w in range(words):
            left[w] = total[w, t]
            right[w] = whole[w] - left[w]
        out[t] = score_of_part(left, whole, targets, single, table) + score_of_part(
            right, whole, targets, single, table
        )


@kernel(borrows=True)
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
def best_allowable(m, first, last, scratch):
    """The best threshold in [first, last) that ``fill_allowable`` admits, -1 if none; see ``best_score``."""
    rows_to, score = scratch.total[0], scratch.score
    n = rows_to[m - 1]
    best, high, least = np.int64(-1), NO_SCORE, n
    for t in range(first, last):
        if not (scratch.is_fine[0, t] and scratch.is_fine[1, t]) or score[t] < high:
            continue
        largest = max(rows_to[t], n - rows_to[t])
        if score[t] > high or largest < least:
            best, high, least = np.int64(t), score[t], largest
    return best


@inner(borrows=True)
def threshold_holds(part, axis, code, rules, scratch):
    """Is the split at ``code`` allowable?"""
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


@inner(borrows=True)
def fill_allowable(part, axis, m, rules, scratch):
    """Which thresholds of an attribute are allowable, all of them at once.

    scratch.code[:m]          IN   the codes that occur
    scratch.is_fine[:, :m]    OUT
    """
    code, order, key, place = scratch.code[:m], scratch.order, scratch.key, scratch.place
    ends = scratch.total[0]
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


@inner(borrows=True)
def beats(score, largest, best):
    """Is this better than the best split so far, by score, then by balance? A later attribute must be strictly better."""
    return score > best.score or (score == best.score and largest < best.largest)


@inner(borrows=True)
def allowable_threshold(part, axis, m, first, last, best, rules, scratch):
    """The best allowable threshold of an attribute if it beats the best so far, else -1; by one walk of all."""
    fill_allowable(part, axis, m, rules, scratch)
    t = best_allowable(m, first, last, scratch)
    if t < 0:
        return t
    left = scratch.total[0, t]
    return t if beats(scratch.score[t], max(left, part.shape[0] - left), best) else np.int64(-1)


@inner(borrows=True)
def winning_threshold(part, axis, m, first, last, best, rules, scratch):
    """The best allowable threshold in [first, last) by ``scratch.score`` if it beats the best so far, else -1."""
    rows_to, score, n = scratch.total[0], scratch.score, part.shape[0]
    t = best_score(rows_to[first:last], n, score[first:last], first)
    if not beats(score[t], max(rows_to[t], n - rows_to[t]), best):
        return np.int64(-1)
    if rules.count_only or threshold_holds(part, axis, scratch.code[t], rules, scratch):
        return t
    return allowable_threshold(part, axis, m, first, last, best, rules, scratch)


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
def children_hold(part, m, rules, scratch):
    """Does every group that ``fill_children`` made satisfy the requirement?"""
    rows_to = scratch.total[0]
    if rules.count_only:
        return children_are_large(rows_to[:m], least_rows_of(rules, m))
    before = np.int64(0)
    for j in range(m):
        if not part_holds(part, scratch.order, before, rows_to[j], m, rules, scratch):
            return False
        before = rows_to[j]
    return True


@inner
def score_children(part, m, targets, single, table, scratch):
    """(score, largest part) of the split into the groups that ``fill_children`` made."""
    bins, order, rows_to, scores = scratch.bins, scratch.order, scratch.total[0], scratch.score[:m]
    words = scratch.total.shape[0]
    column = single_column(targets) if single else np.int64(0)
    node = np.zeros(words, dtype=np.int64)
    before = np.int64(0)
    for j in range(m):
        for i in range(before, rows_to[j]):
            row = part[order[i]]
            if single:
                bins[2 * j] += 1
                bins[2 * j + 1] += row[column]
            else:
                add_row(row, np.uint64(j * words), targets.label, targets.number, bins)
        before = rows_to[j]
        for w in range(words):
            node[w] += bins[j * words + w]
    largest = np.int64(0)
    for j in range(m):
        group = bins[j * words : (j + 1) * words]
        scores[j] = score_of_part(group, node, targets, single, table)
        largest = max(largest, group[0])
    bins[: m * words] = 0
    sort(scores)  # roundoff must not depend on the order of the children
    score = 0.0
    for j in range(m):
        score += scores[j]
    return score, largest


@inner(borrows=True)
def list_axes(first, n_lines, low, high, axis_table, listed, base):
    """The ordered attributes from ``first`` on whose frequency sets fit into ``n_lines`` lines together.

    listed   (axes,) those attributes                     uint64  OUT
    base     (axes,) base + code is the line of a code    uint64  OUT
    Returns (how many they are, the attribute to go on with).
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
    return n_listed, axis


@inner(borrows=True)
def choose_threshold(part, bounds, axis_table, targets, rules, table, scratch):
    """The best allowable threshold of all ordered attributes by score.

    bounds   (4, axes) see ``fill_subtree``; the codes are tightened    IN+OUT
    Returns a BestSplit, of axis -1 if no threshold is allowable.
    """
    n = part.shape[0]
    best = BestSplit(np.int64(-1), np.int64(-1), NO_SCORE, np.int64(n))
    low, high, bins, code, total = bounds[LOW], bounds[HIGH], scratch.bins, scratch.code, scratch.total
    rows_to, sum_to, score = total[0], total[1], scratch.score
    single = is_single(targets)
    is_label = single and targets.label.shape[0] == 1
    column = single_column(targets) if single else np.int64(0)
    shift = packing(n, np.int64(targets.largest)) if single else np.int64(0)
    words = np.int64(1) if shift > 0 else total.shape[0]
    done = np.int64(0)
    while done < low.shape[0]:
        n_listed, done = list_axes(
            done, bins.shape[0] // words, low, high, axis_table, scratch.listed, scratch.base
        )
        listed, base = scratch.listed[:n_listed], scratch.base[:n_listed]
        if shift > 0:
            add_packed(part, column, listed, base, shift, bins)
        elif single:
            add_sums(part, column, listed, base, bins)
        else:
            add_words(part, words, targets.label, targets.number, listed, base, bins)
        line = np.int64(0)
        for j in range(n_listed):
            axis = np.int64(listed[j])
            next_line = line + words * (high[axis] - low[axis] + 1)
            lines = bins[line:next_line]
            line = next_line
            if is_label:
                m = fill_totals(lines, low[axis], code, sum_to)  # packed, to be scored as they are
            elif shift > 0:
                m = fill_packed(lines, low[axis], shift, code, rows_to, sum_to)
            elif single:
                m = fill_sums(lines, low[axis], code, rows_to, sum_to)
            else:
                m = fill_words(lines, low[axis], code, total)
            low[axis], high[axis] = code[0], code[m - 1]
            if is_label:
                first, last = within_limit(sum_to[:m], n, shift, rules.least_rows)
            else:
                first, last = within_limit(rows_to[:m], n, np.int64(0), rules.least_rows)
            if first >= last:
                continue
            whole = sum_to[m - 1]
            if is_label:
                t, here, largest = best_label(sum_to[first:last], shift, n, whole, table)
                t += first
            else:
                if single:
                    fill_number_scores(rows_to[first:last], sum_to[first:last], n, whole, score[first:last])
                else:
                    fill_word_scores(total, total[:, m - 1], first, last, targets, table, score)
                t = best_score(rows_to[first:last], n, score[first:last], first)
                here, largest = score[t], max(rows_to[t], n - rows_to[t])
            if not beats(here, largest, best):
                continue
            if not rules.count_only and not threshold_holds(part, axis, code[t], rules, scratch):
                if is_label:
                    unpack(sum_to[:m], shift, rows_to, sum_to)
                    fill_label_scores(
                        rows_to[first:last], sum_to[first:last], n, sum_to[m - 1], table, score[first:last]
                    )
                t = allowable_threshold(part, axis, m, first, last, best, rules, scratch)
                if t < 0:
                    continue
                here, largest = score[t], max(rows_to[t], n - rows_to[t])
            best = BestSplit(axis, code[t], here, largest)
    return best


@inner(borrows=True)
def choose_children(part, cover_of, best, grid, targets, rules, table, scratch):
    """The best allowable split along a hierarchy if it beats ``best``, that by a threshold; else ``best`` itself.

    cover_of   (axes,) node of a tree attribute that covers the rows   IN
    """
    single = is_single(targets)
    for axis in range(cover_of.shape[0]):
        here = grid.axis[axis]
        if here.is_tree and here.may_split and grid.node[cover_of[axis]].n_children > 0:
            m = fill_children(part, axis, cover_of[axis], grid, scratch)
            if m < 2 or not children_are_large(scratch.total[0, :m], least_rows_of(rules, m)):
                continue
            score, largest = score_children(part, m, targets, single, table, scratch)
            is_tie = score == best.score and largest == best.largest and axis < best.axis
            if (is_tie or beats(score, largest, best)) and children_hold(part, m, rules, scratch):
                best = BestSplit(np.int64(axis), np.int64(-1), score, largest)
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
    if rules.count_only or threshold_holds(part, axis, code, rules, scratch):
        return True, code
    # the median fails the diversity: the allowable threshold nearest to the middle
    m = fill_sorted(part[:, axis], scratch.key[:n], scratch.code, scratch.total[0])
    fill_allowable(part, axis, m, rules, scratch)
    for t in range(m - 1):
        scratch.score[t] = 0.0  # only balance counts
    t = best_allowable(m, np.int64(0), m - 1, scratch)
    return t >= 0, scratch.code[t] if t >= 0 else np.int64(-1)


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
                if m > 1 and children_hold(part, m, rules, scratch):
                    return axis, np.int64(-1)
            else:
                found, code = best_median(part, axis, low[axis], high[axis], rules, scratch)
                if found:
                    return axis, code
        width[axis] = -1.0
