"""Which split? The only home of scores, ties and allowability.

Median [LDR08, 2.2]: attributes by normalized width, widest first; on each the best balanced allowable
split. Scored criteria [LDR08, equations 3 to 6]: the best allowable split of all. Ties are broken by
balance (the smaller largest part), attribute, threshold, so that the answer depends on counts alone.

A score is a fixed expression of exact integers. For labels it is the sum over parts of
sum_c F(n_c) - F(n), F(x) = x log2 x in fixed point: minus the entropy times the rows. For numbers it is
the sum over parts of n (mean of the part - mean of the node)^2: the squared error that the split takes away.
"""

from __future__ import annotations

import numpy as np

from sfumato.kernels.compile import inner
from sfumato.kernels.frequency import (
    add_packed,
    add_row,
    add_sums,
    add_words,
    child_of,
    cover,
    fill_packed,
    fill_sums,
    fill_words,
    first_reaching,
    is_single,
    packing,
    range_of,
    select_median,
    single_column,
    unpack,
)
from sfumato.kernels.problem import FIXED_POINT
from sfumato.kernels.rules import fill_walk, segment_holds

NO_SCORE = -1e300


@inner
def information(x, table):
    """F(x) = x log2 x in fixed point, 0 for 0: a whole number, exact as a float."""
    if x < table.shape[0]:
        return table[x]
    return np.rint(x * np.log2(x) * FIXED_POINT)


@inner
def score_of_part(part, node, targets, single, table):
    """Score of one part of a node, both given by their words."""
    n = part[0]
    score = 0.0
    if single:
        if targets.class_column.shape[0] == 1:
            return float(
                information(part[1], table) + information(n - part[1], table) - information(n, table)
            )
        away = part[1] / n - node[1] / node[0]
        return n * (away * away)
    word = 1
    for t in range(targets.class_column.shape[0]):
        label = -information(n, table)
        for c in range(targets.n_classes[t]):
            label += information(part[word + c], table)
        score += targets.class_weight[t] * label
        word += targets.n_classes[t]
    for t in range(targets.number_column.shape[0]):
        away = part[word] / n - node[word] / node[0]
        score += targets.number_weight[t] * (n * (away * away))
        word += 1
    return score


@inner
def within_limit(totals, n, shift, least_rows):
    """The thresholds [first, last) that leave enough of n rows on both sides; totals are rows << shift | ..."""
    first = first_reaching(totals, least_rows << shift)
    last = first_reaching(totals, (n - least_rows + 1) << shift)
    return first, last


@inner
def best_label(packed, shift, n, x, table):
    """The best threshold for one label of two classes, x rows of the node being of the second.

    packed   (thresholds,) rows << shift | rows of the second class, up to each   IN
    Returns (threshold, score, largest part); ties go to the better balanced, then to the lower one.
    """
    whole_n, whole_x, by = np.uint64(n), np.uint64(x), np.uint64(shift)
    mask = (np.uint64(1) << by) - np.uint64(1)
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


@inner
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


@inner
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


@inner
def fill_number_scores(rows_to, sum_to, n, x, out):
    """Score of each threshold for one number that sums to x over the node."""
    mean = x / n
    for t in range(out.shape[0]):
        left, left_x = rows_to[t], sum_to[t]
        a = left_x / left - mean
        b = (x - left_x) / (n - left) - mean
        out[t] = left * (a * a) + (n - left) * (b * b)


@inner
def fill_word_scores(total, m, first, last, targets, table, out):
    """Score of each threshold for several targets."""
    words = total.shape[0]
    node = total[:, m - 1].copy()
    left, right = np.empty(words, dtype=np.int64), np.empty(words, dtype=np.int64)
    for t in range(first, last):
        for w in range(words):
            left[w] = total[w, t]
            right[w] = node[w] - left[w]
        out[t] = score_of_part(left, node, targets, False, table) + score_of_part(
            right, node, targets, False, table
        )


@inner
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


@inner
def best_allowable(m, first, last, by_score, scratch):
    """The best threshold in [first, last) that ``fill_allowable`` admits, -1 if none; see ``best_score``."""
    rows_to, score = scratch.total[0], scratch.score
    n = rows_to[m - 1]
    best, high, least = np.int64(-1), NO_SCORE, n
    for t in range(first, last):
        if not (scratch.left_ok[t] and scratch.right_ok[t]) or (by_score and score[t] < high):
            continue
        largest = max(rows_to[t], n - rows_to[t])
        if best < 0 or (by_score and score[t] > high) or largest < least:
            best, least = np.int64(t), largest
            if by_score:
                high = score[t]
    return best


@inner
def threshold_holds(rows, start, end, axis, code, rules, scratch):
    """Is the split at ``code`` allowable?"""
    order = scratch.order
    left, right = np.int64(0), end - start
    for i in range(start, end):
        if rows[i, axis] <= code:
            order[left] = i
            left += 1
        else:
            right -= 1
            order[right] = i
    n = end - start
    return segment_holds(rows, order, np.int64(0), left, rules, scratch) and segment_holds(
        rows, order, left, n, rules, scratch
    )


@inner
def fill_allowable(rows, start, end, axis, m, rules, scratch):
    """Which thresholds of an attribute are allowable, all of them at once.

    scratch.code[:m]                 IN   the codes that occur
    scratch.left_ok, right_ok [:m]   OUT
    """
    code, order, key = scratch.code, scratch.order, scratch.key
    ends = np.empty(m, dtype=np.int64)
    place = np.empty(m, dtype=np.int64)
    place[0] = 0
    for t in range(m):
        ends[t] = scratch.total[0, t]
        if t > 0:
            place[t] = ends[t - 1]
    for i in range(start, end):
        t = np.searchsorted(code[:m], np.int64(rows[i, axis]))
        key[i - start] = t
    for i in range(start, end):
        t = key[i - start]
        order[place[t]] = i
        place[t] += 1
    for backward in (False, True):
        out = scratch.right_ok if backward else scratch.left_ok
        fill_walk(rows, order, ends, m, backward, rules, scratch, out)


@inner
def beats(score, largest, best, best_largest):
    """A later attribute must be strictly better."""
    return score > best or (score == best and largest < best_largest)


@inner
def allowable_threshold(rows, start, end, axis, m, first, last, best, best_largest, rules, scratch):
    """The best allowable threshold of an attribute that beats the incumbent, -1 if none; by one walk of all."""
    fill_allowable(rows, start, end, axis, m, rules, scratch)
    t = best_allowable(m, first, last, True, scratch)
    if t < 0:
        return t
    left = scratch.total[0, t]
    return t if beats(scratch.score[t], max(left, end - start - left), best, best_largest) else np.int64(-1)


@inner
def fill_children(rows, start, end, axis, node, axes, scratch):
    """Group the rows by the child of ``node`` they belong to.

    scratch.order[:n]   OUT  row positions, child by child
    scratch.total[0,:m] OUT  running number of rows up to and with each child in use
    scratch.code[:m]    OUT  which child that is
    Returns m, the number of children in use.
    """
    n = end - start
    order, key, bins = scratch.order, scratch.key, scratch.bins
    n_children = axes.n_children[node]
    m = 0
    running = np.int64(0)
    if n_children <= 4 * n + 64:
        for i in range(start, end):
            which = child_of(axes, node, np.int64(rows[i, axis]))
            key[i - start] = which
            bins[which] += 1
        for which in range(n_children):
            here = bins[which]
            bins[which] = running
            if here > 0:
                running += here
                scratch.code[m] = which
                scratch.total[0, m] = running
                m += 1
        for i in range(start, end):
            which = key[i - start]
            order[bins[which]] = i
            bins[which] += 1
        bins[:n_children] = 0
        return m
    for i in range(start, end):
        key[i - start] = (child_of(axes, node, np.int64(rows[i, axis])) << 32) | (i - start)
    key[:n].sort()
    for j in range(n):
        which = key[j] >> 32
        order[j] = start + (key[j] & 0xFFFFFFFF)
        if m == 0 or scratch.code[m - 1] != which:
            scratch.code[m] = which
            m += 1
        scratch.total[0, m - 1] = j + 1
    return m


@inner
def children_are_large(m, least_rows, scratch):
    """Has every group that ``fill_children`` made enough rows?"""
    before = np.int64(0)
    for j in range(m):
        if scratch.total[0, j] - before < least_rows:
            return False
        before = scratch.total[0, j]
    return True


@inner
def children_hold(rows, m, rules, scratch):
    """Does every group that ``fill_children`` made satisfy the requirement?"""
    if rules.count_only:
        return children_are_large(m, rules.least_rows, scratch)
    before = np.int64(0)
    for j in range(m):
        if not segment_holds(rows, scratch.order, before, scratch.total[0, j], rules, scratch):
            return False
        before = scratch.total[0, j]
    return True


@inner
def score_children(rows, m, targets, single, table, scratch):
    """(score, largest part) of the split into the groups that ``fill_children`` made."""
    bins, order = scratch.bins, scratch.order
    words = scratch.total.shape[0]
    node = np.zeros(words, dtype=np.int64)
    before = np.int64(0)
    for j in range(m):
        for i in range(before, scratch.total[0, j]):
            if single:
                bins[2 * j] += 1
                bins[2 * j + 1] += rows[order[i], single_column(targets)]
            else:
                row, at = rows[order[i]], np.uint64(j * words)
                add_row(row, at, targets.class_column, targets.n_classes, targets.number_column, bins)
        before = scratch.total[0, j]
        for w in range(words):
            node[w] += bins[j * words + w]
    parts, largest = scratch.score[:m], np.int64(0)
    for j in range(m):
        part = bins[j * words : (j + 1) * words]
        parts[j] = score_of_part(part, node, targets, single, table)
        largest = max(largest, part[0])
        part[:] = 0
    parts.sort()  # roundoff must not depend on the order of the children
    score = 0.0
    for j in range(m):
        score += parts[j]
    return score, largest


@inner
def list_axes(first, n_lines, low, high, axes, listed, base):
    """The ordered attributes from ``first`` on whose frequency sets fit into ``n_lines`` lines together.

    listed   (axes,) those attributes                     uint64  OUT
    base     (axes,) base + code is the line of a code    uint64  OUT
    Returns (how many they are, their lines, the attribute to go on with).
    """
    n_listed, lines = 0, np.int64(0)
    axis = first
    while axis < low.shape[0]:
        if low[axis] < high[axis] and axes.may_split[axis] and not axes.is_tree[axis]:
            width = high[axis] - low[axis] + 1
            if lines + width > n_lines:
                break
            listed[n_listed] = axis
            base[n_listed] = lines - low[axis]
            n_listed += 1
            lines += width
        axis += 1
    return n_listed, lines, axis


@inner
def choose_by_label(rows, start, end, low, high, axes, column, rules, table, scratch):
    """The best allowable threshold of all ordered attributes for one label of two classes.

    low, high   (axes,) bounds of the codes; tightened    IN+OUT
    Returns (axis, code, score, largest part), axis -1 if no threshold is allowable.
    """
    n = end - start
    best_axis, best_code, best, best_largest = np.int64(-1), np.int64(-1), NO_SCORE, n
    bins, code, packed = scratch.bins, scratch.code, scratch.total[1]
    shift = packing(n, np.int64(1))
    part = rows[start:end]
    done = 0
    while done < low.shape[0]:
        n_listed, lines, done = list_axes(done, bins.shape[0], low, high, axes, scratch.listed, scratch.base)
        listed, base = scratch.listed[:n_listed], scratch.base[:n_listed]
        add_packed(part, column, listed, base, shift, bins)
        line = np.int64(0)
        for j in range(n_listed):
            axis = np.int64(listed[j])
            next_line = line + high[axis] - low[axis] + 1
            m = fill_packed(bins[line:next_line], low[axis], code, packed)
            line = next_line
            low[axis], high[axis] = code[0], code[m - 1]
            first, last = within_limit(packed[:m], n, shift, rules.least_rows)
            if first >= last:
                continue
            x = packed[m - 1] & ((np.int64(1) << shift) - 1)
            if x == 0 or x == n:
                t, score, largest = most_balanced(packed[first:last], shift, n)
            else:
                t, score, largest = best_label(packed[first:last], shift, n, x, table)
            t += first
            if not beats(score, largest, best, best_largest):
                continue
            if not rules.count_only and not threshold_holds(rows, start, end, axis, code[t], rules, scratch):
                rows_to, sum_to = scratch.total[0], scratch.total[1]
                unpack(packed[:m], shift, rows_to, sum_to)
                fill_label_scores(
                    rows_to[first:last], sum_to[first:last], n, x, table, scratch.score[first:last]
                )
                t = allowable_threshold(
                    rows, start, end, axis, m, first, last, best, best_largest, rules, scratch
                )
                if t < 0:
                    continue
                score, largest = scratch.score[t], max(rows_to[t], n - rows_to[t])
            best_axis, best_code, best, best_largest = axis, code[t], score, largest
        bins[:lines] = 0
    return best_axis, best_code, best, best_largest


@inner
def choose_by_words(rows, start, end, low, high, axes, targets, rules, table, scratch):
    """``choose_by_label`` for a number, or for several targets."""
    n = end - start
    best_axis, best_code, best, best_largest = np.int64(-1), np.int64(-1), NO_SCORE, n
    bins, code, total, score = scratch.bins, scratch.code, scratch.total, scratch.score
    rows_to, sum_to = total[0], total[min(1, total.shape[0] - 1)]
    single = is_single(targets)
    column = single_column(targets) if single else np.int64(0)
    shift = packing(n, np.int64(targets.largest)) if single else np.int64(0)
    words = np.int64(1) if shift > 0 else total.shape[0]
    part = rows[start:end]
    done = 0
    while done < low.shape[0]:
        n_listed, lines, done = list_axes(
            done, bins.shape[0] // words, low, high, axes, scratch.listed, scratch.base
        )
        listed, base = scratch.listed[:n_listed], scratch.base[:n_listed]
        if shift > 0:
            add_packed(part, column, listed, base, shift, bins)
        elif single:
            add_sums(part, column, listed, base, bins)
        else:
            add_words(
                part, words, targets.class_column, targets.n_classes, targets.number_column,
                listed, base, bins,
            )  # fmt: skip
        line = np.int64(0)
        for j in range(n_listed):
            axis = np.int64(listed[j])
            next_line = line + words * (high[axis] - low[axis] + 1)
            if shift > 0:
                m = fill_packed(bins[line:next_line], low[axis], code, sum_to)
                unpack(sum_to[:m], shift, rows_to, sum_to)
            elif single:
                m = fill_sums(bins[line:next_line], low[axis], code, rows_to, sum_to)
            else:
                m = fill_words(bins[line:next_line], low[axis], code, total)
            line = next_line
            low[axis], high[axis] = code[0], code[m - 1]
            first, last = within_limit(rows_to[:m], n, np.int64(0), rules.least_rows)
            if first >= last:
                continue
            if single:
                fill_number_scores(
                    rows_to[first:last], sum_to[first:last], n, sum_to[m - 1], score[first:last]
                )
            else:
                fill_word_scores(total, m, first, last, targets, table, score)
            t = best_score(rows_to[first:last], n, score[first:last], first)
            if not beats(score[t], max(rows_to[t], n - rows_to[t]), best, best_largest):
                continue
            if not rules.count_only and not threshold_holds(rows, start, end, axis, code[t], rules, scratch):
                t = allowable_threshold(
                    rows, start, end, axis, m, first, last, best, best_largest, rules, scratch
                )
            if t >= 0:
                best_axis, best_code, best = axis, code[t], score[t]
                best_largest = max(rows_to[t], n - rows_to[t])
        bins[: lines * words] = 0
    return best_axis, best_code, best, best_largest


@inner
def choose_scored(rows, start, end, low, high, cover_of, axes, targets, rules, table, scratch):
    """The best allowable split of the node rows[start:end] by score.

    low, high   (axes,) bounds of the codes of ordered attributes; tightened    IN+OUT
    cover_of    (axes,) node of a tree attribute that covers the rows            IN
    Returns (axis, code, score): axis -1 if no split is allowable; code is the threshold of an ordered
    attribute (the last code that goes left), -1 for a tree attribute.
    """
    single = is_single(targets)
    if single and targets.class_column.shape[0] == 1:
        best_axis, best_code, best, best_largest = choose_by_label(
            rows, start, end, low, high, axes, targets.class_column[0], rules, table, scratch
        )
    else:
        best_axis, best_code, best, best_largest = choose_by_words(
            rows, start, end, low, high, axes, targets, rules, table, scratch
        )
    for axis in range(low.shape[0]):
        if axes.is_tree[axis] and axes.may_split[axis] and axes.n_children[cover_of[axis]] > 0:
            m = fill_children(rows, start, end, axis, cover_of[axis], axes, scratch)
            if m < 2 or not children_are_large(m, rules.least_rows, scratch):
                continue
            here, largest = score_children(rows, m, targets, single, table, scratch)
            is_tie = here == best and largest == best_largest and axis < best_axis
            if (is_tie or beats(here, largest, best, best_largest)) and children_hold(
                rows, m, rules, scratch
            ):
                best_axis, best_code, best, best_largest = axis, np.int64(-1), here, largest
    return best_axis, best_code, best


@inner
def width_of(axes, axis, low, high, cover_node):
    """Normalized width of a node on an attribute: values spanned, or leaves spanned on a tree."""
    if axes.is_tree[axis]:
        spanned = float(axes.node_high[cover_node] - axes.node_low[cover_node] - 1)
    elif axes.position_start[axis] < 0:
        least = axes.least_code[axis]  # missing stands with the least value
        spanned = float(max(high, least) - max(low, least))
    else:
        zero = axes.position_start[axis]
        spanned = axes.position[zero + high] - axes.position[zero + low]
    return spanned / axes.width[axis]


@inner
def median_on_axis(rows, start, end, axis, low, high, cover_node, axes, rules, scratch):
    """The best balanced allowable split on one attribute: (found, code)."""
    n = end - start
    if axes.is_tree[axis]:
        m = fill_children(rows, start, end, axis, cover_node, axes, scratch)
        return m > 1 and children_hold(rows, m, rules, scratch), np.int64(-1)
    middle, below, at = select_median(rows[start:end, axis], low, high, scratch.bins)
    upper = below + at  # rows that go left with x <= middle; ``below`` of them with x < middle
    upper_fits = min(upper, n - upper) >= rules.least_rows
    lower_fits = min(below, n - below) >= rules.least_rows
    if not upper_fits and not lower_fits:
        return False, np.int64(-1)  # no threshold leaves enough rows on both sides
    take_lower = lower_fits and (not upper_fits or max(below, n - below) <= max(upper, n - upper))
    code = middle - 1 if take_lower else middle
    if rules.count_only or threshold_holds(rows, start, end, axis, code, rules, scratch):
        return True, code
    # the median fails the diversity: the allowable threshold nearest to the middle
    m = fill_sorted(rows, start, end, axis, scratch)
    fill_allowable(rows, start, end, axis, m, rules, scratch)
    t = best_allowable(m, 0, m - 1, False, scratch)
    return t >= 0, scratch.code[t] if t >= 0 else np.int64(-1)


@inner
def fill_sorted(rows, start, end, axis, scratch):
    """The codes that occur and the running number of rows, by sorting; returns how many codes there are."""
    n = end - start
    key = scratch.key
    for i in range(start, end):
        key[i - start] = rows[i, axis]
    key[:n].sort()
    m = 0
    for j in range(n):
        if m == 0 or scratch.code[m - 1] != key[j]:
            scratch.code[m] = key[j]
            m += 1
        scratch.total[0, m - 1] = j + 1
    return m


@inner
def choose_median(rows, start, end, low, high, is_exact, cover_of, axes, rules, scratch):
    """The Median split of the node rows[start:end]: (axis, code), axis -1 if no split is allowable.

    low, high   (axes,) bounds of the codes; made exact only for attributes that may be the widest   IN+OUT
    is_exact    (axes,) are they the exact range of these rows?                                       IN+OUT
    cover_of    (axes,) node of a tree attribute; lowered to the cover when its range is made exact   IN+OUT
    """
    n_axes = axes.is_tree.shape[0]
    width = np.empty(n_axes, dtype=np.float64)  # upper bound until exact; negative: out of the race
    for a in range(n_axes):
        width[a] = width_of(axes, a, low[a], high[a], cover_of[a]) if axes.may_split[a] else -1.0
    while True:
        axis = np.int64(0)
        for a in range(1, n_axes):
            if width[a] > width[axis]:
                axis = np.int64(a)
        if width[axis] < 0.0:
            return np.int64(-1), np.int64(-1)
        if not is_exact[axis]:
            low[axis], high[axis] = range_of(rows[start:end, axis], low[axis], high[axis])
            is_exact[axis] = True
            if axes.is_tree[axis]:
                cover_of[axis] = cover(axes, cover_of[axis], low[axis], high[axis])
            width[axis] = width_of(axes, axis, low[axis], high[axis], cover_of[axis])
            continue
        if low[axis] < high[axis]:
            found, code = median_on_axis(
                rows, start, end, axis, low[axis], high[axis], cover_of[axis], axes, rules, scratch
            )
            if found:
                return axis, code
        width[axis] = -1.0
