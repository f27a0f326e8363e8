"""Selection Mondrian: which split lets the workload's selections be answered most precisely [LDR08, 3.2].

A query is a rectangle of codes. It returns all rows of every part that it overlaps, so a part of n rows
costs n times the weight of the queries that overlap it, and a split is worth what it takes away
[LDR08, equation 7: the rows that are rightly returned are the same for every split]. Costs are whole
numbers. Requirement and ties are those of ``choose``.

A region holds the codes AFTER < code <= LAST; on a tree it is the range of a hierarchy node. It is what the
splits have left of the attribute, whatever codes the rows have: a selection is answered from regions.
"""

from __future__ import annotations

import numpy as np

from sfumato.kernels.compile import inner, kernel
from sfumato.methods.mondrian.kernels.choose import take_children, take_threshold
from sfumato.methods.mondrian.kernels.choose_by_rows import fill_children, fill_sorted
from sfumato.methods.mondrian.kernels.frequency import cover, fill_totals, first_reaching, range_of, sort
from sfumato.methods.mondrian.kernels.grow import copy_bounds, divide, fill_child_bounds
from sfumato.methods.mondrian.kernels.leave_out import fewest_to_split, hand_down, may_divide, note_children
from sfumato.methods.mondrian.kernels.loss import first_code
from sfumato.methods.mondrian.kernels.problem import AFTER, COVER, HIGH, IS_EXACT, LAST, LOW, BestSplit
from sfumato.methods.mondrian.kernels.rules import is_sample, least_rows_of
from sfumato.methods.mondrian.kernels.scores import as_score, within_limit


@inner(borrows=True)
def fill_tree_regions(part, bounds, grid, narrow, region):
    """Make the covers of the trees exact, if they may be narrowed, and their ranges the region of the node.

    bounds   (4, axes) see ``fill_subtree``     IN+OUT
    region   (2, axes) AFTER, LAST              OUT on trees
    """
    for axis in range(region.shape[1]):
        if grid.axis[axis].is_tree:
            if bounds[IS_EXACT, axis] == 0:
                low, high = range_of(part[:, axis], bounds[LOW, axis], bounds[HIGH, axis])
                bounds[LOW, axis], bounds[HIGH, axis], bounds[IS_EXACT, axis] = low, high, 1
                if narrow:
                    bounds[COVER, axis] = cover(grid, bounds[COVER, axis], low, high)
            node = grid.node[bounds[COVER, axis]]
            region[AFTER, axis], region[LAST, axis] = node.low - 1, node.high - 1


@inner(borrows=True)
def fill_active(queries, region, out):
    """Those queries that overlap the region: (how many, their weight)."""
    n_active, weight = np.int64(0), np.int64(0)
    for q in range(queries.weight.shape[0]):
        overlaps = True
        for axis in range(region.shape[1]):
            overlaps &= queries.high[q, axis] > region[AFTER, axis]
            overlaps &= queries.low[q, axis] <= region[LAST, axis]
        if overlaps:
            out[n_active] = q
            n_active += 1
            weight += queries.weight[q]
    return n_active, weight


@inner(borrows=True)
def is_cut(axis, low, high, active, queries):
    """Can a threshold between these codes leave an active query on one side only?"""
    found = False
    for j in range(active.shape[0]):
        found |= queries.low[active[j], axis] > low or queries.high[active[j], axis] < high
    return found


@inner
def add_ends(axis, active, queries, before, rows_before, m, code, rows_to):
    """Put the ends of the active queries among the codes that occur; returns how many there are then.

    A threshold at the end of a query leaves the rest outside it, even if no row has that code.
    before, rows_before   the code before the first of these, -1 if there is none, and the rows up to it
    code, rows_to         (m + queries or more,) codes, and the running number of rows   IN+OUT
    """
    ends = np.empty(active.shape[0], dtype=np.int64)
    n_ends = 0
    for j in range(active.shape[0]):
        end = queries.high[active[j], axis]
        at = first_reaching(code[:m], end)
        is_inside = at > 0 or (before >= 0 and end > before)
        if is_inside and at < m and code[at] != end:
            ends[n_ends] = end
            n_ends += 1
    sort(ends[:n_ends])
    n_distinct = 0
    for j in range(n_ends):
        if j == 0 or ends[j] != ends[j - 1]:
            ends[n_distinct] = ends[j]
            n_distinct += 1
    old, new, end = m - 1, m + n_distinct - 1, n_distinct - 1
    while end >= 0:  # from the back, so that nothing is overwritten before it has moved
        if old >= 0 and code[old] > ends[end]:
            code[new], rows_to[new] = code[old], rows_to[old]
            old -= 1
        else:
            code[new], rows_to[new] = ends[end], rows_to[old] if old >= 0 else rows_before
            end -= 1
        new -= 1
    return m + n_distinct


@inner(borrows=True)
def fill_thresholds(part, axis, low, high, active, queries, scratch):
    """The codes of an ordered attribute where the rows may be cut; returns how many there are.

    scratch.code[:m]       OUT  codes that occur, and ends of queries between them
    scratch.total[0, :m]   OUT  running number of rows
    """
    n, width = part.shape[0], high - low + 1
    code, rows_to = scratch.code, scratch.total[0]
    if width <= 16 * n + 1024:
        lines = scratch.bins[:width]
        for i in range(n):
            lines[part[i, axis] - low] += 1
        m = fill_totals(lines, low, code, rows_to)
    else:
        m = fill_sorted(part[:, axis], scratch.key[:n], code, rows_to)
    return add_ends(axis, active, queries, np.int64(-1), np.int64(0), m, code, rows_to)


@inner
def fill_costs(axis, m, n, active, queries, scratch):
    """Minus the cost of each threshold of a node of n rows.

    scratch.code[:m], scratch.total[0, :m]   IN
    scratch.score[:m]                        OUT
    """
    code, rows_to, score = scratch.code[:m], scratch.total[0], scratch.score
    changes = np.zeros((2, m + 1), dtype=np.int64)  # of the weight on the left, on the right
    left, right = np.int64(0), np.int64(0)
    for j in range(active.shape[0]):
        q = active[j]
        changes[0, first_reaching(code, queries.low[q, axis])] += queries.weight[q]
        changes[1, first_reaching(code, queries.high[q, axis])] -= queries.weight[q]
        right += queries.weight[q]
    for t in range(m):
        left += changes[0, t]
        right += changes[1, t]
        score[t] = -(rows_to[t] * left + (n - rows_to[t]) * right)


@inner(borrows=True)
def cost_of_children(axis, parent, m, active, queries, grid, scratch):
    """(minus the cost, largest part) of the split into the groups that ``fill_children`` made."""
    rows_to = scratch.total[0]
    cost, largest, before = np.int64(0), np.int64(0), np.int64(0)
    for j in range(m):
        child = grid.node[grid.child[grid.node[parent].child_start + scratch.code[j]]]
        n = rows_to[j] - before
        before = rows_to[j]
        largest = max(largest, n)
        for i in range(active.shape[0]):
            q = active[i]
            if queries.high[q, axis] >= child.low and queries.low[q, axis] < child.high:
                cost += n * queries.weight[q]
    return as_score(-cost, scratch), largest


@inner(borrows=True)
def choose_precise(part, bounds, active, weight, queries, grid, rules, scratch):
    """The allowable split of the least cost: (axis, code), axis -1 if none costs less than no split.

    active   (queries,) those that overlap the node, of that weight together   IN
    bounds   (4, axes) see ``fill_subtree``; the codes are tightened          IN+OUT
    """
    n = part.shape[0]
    rows_to = scratch.total[0]
    # no part is smaller than 0 rows: a tie with no split loses
    best = BestSplit(np.int64(-1), np.int64(-1), as_score(-n * weight, scratch), np.int64(0))
    for axis in range(bounds.shape[1]):
        low, high = bounds[LOW, axis], bounds[HIGH, axis]
        if not grid.axis[axis].may_split or low >= high:
            continue
        if grid.axis[axis].is_tree:
            parent = bounds[COVER, axis]
            if grid.node[parent].n_children == 0:
                continue
            m = fill_children(part, axis, parent, grid, scratch)
            if m < 2 or not may_divide(rows_to[:m], least_rows_of(rules, m), scratch.leaving):
                continue
            note_children(axis, parent, m, grid, scratch.leaving, scratch)
            here, largest = cost_of_children(axis, parent, m, active, queries, grid, scratch)
            best = take_children(part, None, axis, m, here, largest, rules, scratch, best)
            continue
        if not is_cut(axis, low, high, active, queries):
            continue
        m = fill_thresholds(part, axis, low, high, active, queries, scratch)
        code = scratch.code
        bounds[LOW, axis], bounds[HIGH, axis] = code[0], code[m - 1]
        first, last = within_limit(rows_to[:m], n, np.int64(0), rules.least_rows)
        if first >= last:
            continue
        fill_costs(axis, m, n, active, queries, scratch)
        best = take_threshold(part, None, np.int64(axis), m, n, first, last, rules, scratch, best)
    return best.axis, best.code


@inner(borrows=True)
def include_missing(bounds, axis_table):
    """Begin ordered axes with the code of missing numbers, which boxes leave out."""
    for axis in range(bounds.shape[1]):
        if not axis_table[axis].is_tree:
            bounds[LOW, axis] = first_code(axis, bounds, axis_table)


@inner(borrows=True)
def fill_otherwise(nodes, m, is_tree):
    """Say which child takes values that no branch names: the largest; missing numbers go with the lowest."""
    nodes[0].otherwise = 0
    if not is_tree:
        return
    largest = np.int64(0)
    for child in range(1, m + 1):
        rows = nodes[child].end - nodes[child].start
        if rows > largest:
            largest = rows
            nodes[0].otherwise = child - 1


@kernel
def split_for_queries(rows, nodes, bounds, region, by_loss, queries, grid, rules, leaving, scratch):
    """Split node 0 so that the queries cost less, if that is allowable; returns the number of nodes.

    rows     (n, columns) uint32          IN+OUT  with codes of the whole table: not yet ranked again
    nodes    (1 + children,) NODE         IN+OUT  node 0 is given, its children are appended
    bounds   (1 + children, 4, axes)      IN+OUT  of node 0 and its children, see ``fill_subtree``
    region   (1 + children, 2, axes)      IN+OUT  of node 0 and its children: AFTER, LAST
    by_loss  do splits go by loss where no query is served? Then bounds stay those of boxes
    leaving  that of ``scratch``, with the allowance of node 0, those of its children in ``share``   IN+OUT
    """
    part = rows[nodes[0].start : nodes[0].end]
    if part.shape[0] < fewest_to_split(rules.least_rows, leaving):
        return np.int64(1)
    here = bounds[0]
    if by_loss:
        here = np.empty((bounds.shape[1], bounds.shape[2]), dtype=np.int64)
        copy_bounds(bounds[0], here)
        include_missing(here, grid.axis)
    fill_tree_regions(part, here, grid, not is_sample(rules), region[0])
    active = np.empty(queries.weight.shape[0], dtype=np.int64)
    n_active, weight = fill_active(queries, region[0], active)
    if n_active == 0:
        return np.int64(1)
    axis, code = choose_precise(part, here, active[:n_active], weight, queries, grid, rules, scratch)
    if axis < 0:
        return np.int64(1)
    m, border = divide(part, None, 0, nodes, np.int64(1), axis, code, here[COVER, axis], grid, rules, scratch)
    if leaving is not None:
        hand_down(part, nodes, np.int64(1), m, rules, leaving, scratch)
    if not grid.axis[axis].is_tree:
        nodes[0].threshold = code
    if by_loss:
        fill_otherwise(nodes, m, grid.axis[axis].is_tree)
        here, border = bounds[0], code
    for child in range(1, m + 1):
        fill_child_bounds(here, axis, nodes[child].branch, border, grid, bounds[child])
        copy_bounds(region[0], region[child])
        if not grid.axis[axis].is_tree:
            side = LAST if nodes[child].branch == 0 else AFTER
            region[child, side, axis] = code
    return m + 1
