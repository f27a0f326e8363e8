"""The choice of a split where the rows of the node are at hand: count, then ask ``choose``.

Median [LDR08, 2.2]: attributes by normalized width, widest first; on each the best balanced allowable
split. Scored criteria [LDR08, equations 3 to 6]: the best allowable split of all.
"""

from __future__ import annotations

import numpy as np

from sfumato.kernels.compile import inner, kernel
from sfumato.methods.mondrian.kernels.choose import (
    children_hold,
    choose_axis,
    no_split,
    take_balanced,
    take_children,
    threshold_holds,
)
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
    range_of,
    select_median,
    single_column,
    single_packing,
    sort,
    words_of_several,
)
from sfumato.methods.mondrian.kernels.leave_out import may_divide, note_children
from sfumato.methods.mondrian.kernels.people import counts_only_people, nearest_limit
from sfumato.methods.mondrian.kernels.problem import COVER, HIGH, IS_EXACT, LOW
from sfumato.methods.mondrian.kernels.rules import is_sample, least_rows_of
from sfumato.methods.mondrian.kernels.scores import as_score, score_of_children, score_of_node


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
def add_row_words(row, at, column, targets, several, out):
    """Add one row to the line of words that starts at out[at]; ``column`` is that of a single target."""
    if several is None:
        out[at] += 1
        out[at + np.uint64(1)] += row[column]
    else:
        add_row(row, at, targets.label, targets.number, out)


@inner
def score_children(part, m, targets, several, table, scratch):
    """``score_of_children`` of the groups that ``fill_children`` made."""
    order, rows_to, n_words = scratch.order, scratch.total[0], scratch.total.shape[0]
    column = single_column(targets) if several is None else np.int64(0)
    bins = scratch.bins[: m * n_words]
    node = np.zeros(n_words, dtype=np.int64)
    before = np.int64(0)
    for j in range(m):
        for i in range(before, rows_to[j]):
            add_row_words(part[order[i]], np.uint64(j * n_words), column, targets, several, bins)
        before = rows_to[j]
        for w in range(n_words):
            node[w] += bins[j * n_words + w]
    score, largest = score_of_children(bins.reshape(m, n_words), node, targets, table, scratch.score)
    bins[:] = 0
    return score, largest


@inner
def score_unsplit(part, targets, several, table, scratch):
    """``score_of_node`` of these rows."""
    if targets.label.shape[0] == 0:
        return as_score(0, scratch)  # what numbers score is the error that a split takes away
    column = single_column(targets) if several is None else np.int64(0)
    node = np.zeros(scratch.total.shape[0], dtype=np.int64)
    for i in range(part.shape[0]):
        add_row_words(part[i], np.uint64(0), column, targets, several, node)
    return score_of_node(node, targets, several, table, scratch)


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
def choose_threshold(part, bounds, axis_table, targets, several, rules, table, scratch):
    """The best allowable threshold of all ordered attributes by score.

    bounds   (4, axes) see ``fill_subtree``; the codes are tightened    IN+OUT
    Returns a BestSplit, of axis -1 if no threshold is allowable.
    """
    n = part.shape[0]
    best = no_split(n, scratch)
    low, high, bins, code, total = bounds[LOW], bounds[HIGH], scratch.bins, scratch.code, scratch.total
    column = single_column(targets) if several is None else np.int64(0)
    shift = single_packing(n, targets) if several is None else np.int64(0)
    mask = (np.int64(1) << shift) - 1 if shift > 0 else np.int64(-1)
    words = np.int64(1) if shift > 0 else np.int64(2)
    if several is not None:
        words = words_of_several(targets, n)
    done = np.int64(0)
    while done < low.shape[0]:
        n_listed, n_lines, done = list_axes(
            done, bins.shape[0] // words, low, high, axis_table, scratch.listed, scratch.base
        )
        listed, base = scratch.listed[:n_listed], scratch.base[:n_listed]
        if shift > 0:
            add_packed(part, column, listed, base, shift, bins)
        elif several is None:
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
            elif several is None:
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
            if m > 1 and may_divide(scratch.total[0, :m], least_rows_of(rules, m), scratch.leaving):
                note_children(axis, cover_of[axis], m, grid, scratch.leaving, scratch)
                score, largest = score_children(part, m, targets, targets.several, table, scratch)
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
    # the median fails: the allowable threshold nearest to the middle
    if has_only_people(rules.sensitive):
        return nearest_of_people(part, axis, code, rules.sensitive, scratch)
    m = fill_sorted(part[:, axis], scratch.key[:n], scratch.code, scratch.total[0])
    best = take_balanced(part, None, axis, m, n, rules, scratch, no_split(n, scratch))
    return best.axis >= 0, best.code


@inner(borrows=True)
def has_only_people(sensitive):
    """``counts_only_people``, if anything is required of sensitive values or people."""
    if sensitive is None:
        return False
    return counts_only_people(sensitive, sensitive.people)


@inner(borrows=True)
def nearest_of_people(part, axis, code, sensitive, scratch):
    """``nearest_limit``, if anything is required of sensitive values or people."""
    if sensitive is None:
        return False, np.int64(-1)
    return nearest_limit(part, axis, code, sensitive.people, scratch)


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
                may = m > 1 and may_divide(scratch.total[0, :m], least_rows_of(rules, m), scratch.leaving)
                note_children(axis, cover_of[axis], m, grid, scratch.leaving, scratch)
                if may and children_hold(part, None, m, rules, scratch.leaving, scratch):
                    return axis, np.int64(-1)
            else:
                found, code = best_median(part, axis, low[axis], high[axis], rules, scratch)
                if found:
                    return axis, code
        width[axis] = -1.0
