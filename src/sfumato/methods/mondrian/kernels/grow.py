"""Depth-first growth of a partition tree: choose a split, move the rows in place, repeat.

A tree is a table of NODE records, whose fields are those of ``kernels.nodes.Nodes``; the children of a node stand next
to each other.
"""

from __future__ import annotations

import numpy as np

from sfumato.kernels.compile import inner, kernel
from sfumato.kernels.spans import BITS
from sfumato.methods.mondrian.kernels.cells import (
    choose_children_by_cells,
    choose_threshold_by_cells,
    score_unsplit_by_cells,
)
from sfumato.methods.mondrian.kernels.choose_by_rows import (
    choose_children,
    choose_median,
    choose_threshold,
    fill_children,
    score_unsplit,
)
from sfumato.methods.mondrian.kernels.frequency import cover, range_of, rank_again
from sfumato.methods.mondrian.kernels.leave_out import (
    fewest_to_split,
    fill_standing,
    hand_down,
    order_standing,
)
from sfumato.methods.mondrian.kernels.loss import choose_by_loss, is_in_first, may_pay
from sfumato.methods.mondrian.kernels.problem import (
    BLOCK,
    CHILDREN,
    COVER,
    HIGH,
    IS_EXACT,
    LOW,
    PEOPLE,
    REST,
    ROWS,
    THRESHOLD,
)
from sfumato.methods.mondrian.kernels.rules import is_sample, part_holds
from sfumato.methods.mondrian.kernels.scores import gains_too_little


@inner(borrows=True)
def swap(part, i, j):
    for w in range(part.shape[1]):
        x = part[i, w]
        part[i, w] = part[j, w]
        part[j, w] = x


@inner(borrows=True)
def partition(part, axis, code, places):
    """Move the rows with at most ``code`` to the front; returns how many they are.

    places   (2, BLOCK) uint64   scratch

    The first misplaced row from the left changes places with the first one from the right, and so on. They
    are looked for by blocks, each row written down and the place moving on if it is misplaced: which it is
    for every other row, at random, so that a branch would be mispredicted half of the time.
    """
    column, lefts, rights = part[:, axis], places[0], places[1]
    block, one = np.uint64(BLOCK), np.uint64(1)
    left, right = np.uint64(0), np.uint64(column.shape[0])  # done: the rows before left, and from right on
    next_left, end_left, next_right, end_right = np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0)
    while right - left >= block + block:
        if next_left == end_left:
            next_left, end_left = np.uint64(0), np.uint64(0)
            for i in range(left, left + block):
                lefts[end_left] = i
                end_left += np.uint64(column[i] > code)
        if next_right == end_right:
            next_right, end_right = np.uint64(0), np.uint64(0)
            for i in range(block):
                rights[end_right] = right - one - i
                end_right += np.uint64(column[right - one - i] <= code)
        while next_left < end_left and next_right < end_right:
            swap(part, lefts[next_left], rights[next_right])
            next_left += one
            next_right += one
        if next_left == end_left:
            left += block
        if next_right == end_right:
            right -= block
    while True:
        while left < right and column[left] <= code:
            left += one
        while left < right and column[right - one] > code:
            right -= one
        if left >= right:
            return np.int64(left)
        swap(part, left, right - one)


@inner(borrows=True)
def row_at_border(column, code):
    """A row with the greatest code, which is at most ``code``."""
    border, greatest = np.uint64(0), np.int64(-1)
    for i in range(np.uint64(column.shape[0])):
        here = np.int64(column[i])
        if here > greatest:
            border, greatest = i, here
            if here == code:
                break
    return np.int64(border)


@inner
def arrange(part, order):
    """Put the rows into the given order: part[j] becomes the old part[order[j]]. The order is used up."""
    words = part.shape[1]
    held = np.empty(words, dtype=part.dtype)
    for j in range(part.shape[0]):
        if order[j] == j or order[j] < 0:
            continue
        for w in range(words):
            held[w] = part[j, w]
        place = j
        while order[place] != j:
            source = order[place]
            for w in range(words):
                part[place, w] = part[source, w]
            order[place] = -1
            place = source
        for w in range(words):
            part[place, w] = held[w]
        order[place] = -1


@inner(borrows=True)
def narrow_bounds(part, bounds, grid, narrow, marks):
    """Before a scored choice: covers of the trees, and dense ranks for attributes that are mostly gaps.

    Without ``narrow`` a hierarchy's node stays as it is known: rows that are not here may lie outside a cover.
    """
    low, high, cover_of, is_exact = bounds[LOW], bounds[HIGH], bounds[COVER], bounds[IS_EXACT]
    for axis in range(low.shape[0]):
        if not grid.axis[axis].may_split or low[axis] >= high[axis]:
            continue
        if grid.axis[axis].is_tree:
            if is_exact[axis] == 0:
                low[axis], high[axis] = range_of(part[:, axis], low[axis], high[axis])
                is_exact[axis] = 1
                if narrow:
                    cover_of[axis] = cover(grid, cover_of[axis], low[axis], high[axis])
        elif high[axis] - low[axis] + 1 > 2 * part.shape[0]:
            high[axis] = rank_again(part[:, axis], low[axis], high[axis], marks) - 1
            low[axis] = 0


@inner(borrows=True)
def restore_codes(part, codes, bounds, axis_table):
    """Give the rows of a node their own codes back: Median measures width in real values, not in ranks."""
    row_number = part.shape[1] - 1
    for axis in range(axis_table.shape[0]):
        if not axis_table[axis].is_tree and axis_table[axis].may_split:
            for i in range(part.shape[0]):
                part[i, axis] = codes[part[i, row_number], axis]
            bounds[LOW, axis], bounds[HIGH, axis] = range_of(part[:, axis], np.int64(-1), np.int64(-1))
            bounds[IS_EXACT, axis] = 1


@inner(borrows=True)
def divide_by_threshold(part, codes, node, nodes, n_nodes, axis, code, places):
    """Carry out a split by threshold and append the children; returns the border, see ``fill_child_bounds``."""
    start, end = nodes[node].start, nodes[node].end
    n_left = partition(part, axis, code, places)
    at_border = row_at_border(part[:n_left, axis], code)
    if codes is None:
        nodes[node].threshold = part[at_border, axis]
    else:
        nodes[node].threshold = codes[part[at_border, part.shape[1] - 1], axis]
    append(n_nodes, start, start + n_left, np.int64(0), nodes)
    append(n_nodes + 1, start + n_left, end, np.int64(1), nodes)
    return np.int64(part[at_border, axis])


@inner(borrows=True)
def divide_by_tree(part, node, nodes, n_nodes, axis, parent, grid, rules, leaving, scratch):
    """Carry out a split into the children of the hierarchy node ``parent``; returns how many are in use and stand."""
    m = fill_children(part, axis, parent, grid, scratch)
    if leaving is not None:
        fill_standing(part, None, m, rules, leaving, scratch)
        m, _ = order_standing(m, leaving, scratch)
        arrange(part, scratch.key[: part.shape[0]])
    else:
        arrange(part, scratch.order)
    nodes[node].threshold = parent
    start, before = nodes[node].start, np.int64(0)
    for j in range(m):
        after = scratch.total[0, j]
        branch = grid.child[grid.node[parent].child_start + scratch.code[j]]
        append(n_nodes + j, start + before, start + after, branch, nodes)
        before = after
    return m


@inner(borrows=True)
def append(child, start, end, branch, nodes):
    """Write node number ``child``: a leaf, until it is split."""
    node = nodes[child]
    node.axis = -1
    node.threshold = -1
    node.first_child = -1
    node.n_children = 0
    node.start = start
    node.end = end
    node.branch = branch
    node.otherwise = -1


@inner(borrows=True)
def fill_child_bounds(here, axis, branch, border, grid, out):
    """The bounds of a child: its parent's, narrowed on the attribute that was split.

    here     (4, axes) the parent's                                     IN
    border   the last code that goes left, as it stands in the rows
    out      (4, axes)                                                  OUT
    """
    for a in range(here.shape[1]):
        out[LOW, a], out[HIGH, a], out[COVER, a] = here[LOW, a], here[HIGH, a], here[COVER, a]
        out[IS_EXACT, a] = 0
    if grid.axis[axis].is_tree:
        if branch != REST:
            out[COVER, axis] = branch
            out[LOW, axis], out[HIGH, axis] = grid.node[branch].low, grid.node[branch].high - 1
    elif branch == 0:
        out[HIGH, axis] = border
    else:
        out[LOW, axis] = max(here[LOW, axis], border + 1)  # of missing against all others the border is below


@inner
def lengthen(stack, bounds, allowed, n):
    """Copies with room for n more nodes; of allowances only if there are any."""
    new_stack = np.empty(stack.shape[0] + n, dtype=np.int64)
    new_bounds = np.empty((stack.shape[0] + n, bounds.shape[1], bounds.shape[2]), dtype=np.int64)
    for node in range(stack.shape[0]):
        new_stack[node] = stack[node]
        copy_bounds(bounds[node], new_bounds[node])
    new_allowed = np.zeros(
        (allowed.shape[0] + n if allowed.shape[0] > 0 else 0, allowed.shape[1]), dtype=np.int64
    )
    for node in range(allowed.shape[0]):
        new_allowed[node, ROWS], new_allowed[node, PEOPLE] = allowed[node, ROWS], allowed[node, PEOPLE]
    return new_stack, new_bounds, new_allowed


@inner(borrows=True)
def copy_bounds(bounds, out):
    """Copy (4, axes); out[:] = bounds would take 2 s to compile, for the messages of its errors."""
    for i in range(bounds.shape[0]):
        for axis in range(bounds.shape[1]):
            out[i, axis] = bounds[i, axis]


@inner(borrows=True)
def choose_by_score(part, codes, bounds, least_gain, grid, targets, cells, rules, table, scratch):
    """The best split by score: (axis, code, does it gain too little and is left to Median?)"""
    narrow_bounds(part, bounds, grid, not is_sample(rules), scratch.bins)
    if cells is None:
        best = choose_threshold(part, bounds, grid.axis, targets, targets.several, rules, table, scratch)
        best = choose_children(part, bounds[COVER], best, grid, targets, rules, table, scratch)
    else:
        best = choose_threshold_by_cells(part, bounds, grid.axis, cells, rules, table, scratch)
        best = choose_children_by_cells(part, bounds[COVER], best, grid, cells, rules, table, scratch)
    is_left = False
    if least_gain is not None and best.axis >= 0:
        if cells is None:
            unsplit = score_unsplit(part, targets, targets.several, table, scratch)
        else:
            unsplit = score_unsplit_by_cells(part, cells, table, scratch)
        is_left = gains_too_little(best.score, unsplit, part.shape[0], targets.gain_scale, least_gain)
        if is_left:
            restore_codes(part, codes, bounds, grid.axis)
    return best.axis, best.code, is_left


@inner(borrows=True)
def choose_split(part, codes, bounds, least_gain, grid, targets, cells, rules, table, scratch):
    """The split of a node: (axis, code), axis -1 if none is allowable; the code is that of a threshold.

    bounds   (4, axes) as in ``fill_subtree``   IN+OUT
    """
    axis, code, is_left = np.int64(-1), np.int64(-1), True
    if targets is not None:
        axis, code, is_left = choose_by_score(
            part, codes, bounds, least_gain, grid, targets, cells, rules, table, scratch
        )
    if least_gain is not None and is_left:
        axis, code = choose_median(part, bounds, grid, rules, scratch)
    return axis, code


@inner(borrows=True)
def divide(part, codes, node, nodes, n_nodes, axis, code, cover_of, grid, rules, scratch):
    """Carry out a split and append the children: (how many there are, the border, see ``fill_child_bounds``)."""
    m, border = np.int64(2), np.int64(-1)
    if grid.axis[axis].is_tree:
        m = divide_by_tree(part, node, nodes, n_nodes, axis, cover_of, grid, rules, scratch.leaving, scratch)
    else:
        border = divide_by_threshold(part, codes, node, nodes, n_nodes, axis, code, scratch.places)
    nodes[node].axis, nodes[node].first_child, nodes[node].n_children = axis, n_nodes, m
    return m, border


@inner(borrows=True)
def part_by_threshold(part, split, grid, places):
    """Move the rows of the first part to the front: (how many they are, does missing belong to them?)

    Missing numbers go with the larger part, in a tie with the upper one, and alone to the left.
    """
    axis, n, n_missing = split.axis, np.int64(part.shape[0]), np.int64(0)
    if grid.axis[axis].least_code > 0:
        n_missing = partition(part, axis, np.int64(0), places)
        if split.number == 0:
            return n_missing, True
    n_left = partition(part[n_missing:], axis, split.number, places)
    if n_left > n - n_missing - n_left:
        return n_missing + n_left, True
    for i in range(min(n_missing, n_left)):  # missing stands first, and should stand after them
        swap(part, i, n_missing + n_left - 1 - i)
    return n_left, False


@inner(borrows=True)
def part_by_node(part, split, grid):
    """Move the rows of a hierarchy node to the front; returns how many they are."""
    left, right = np.int64(0), np.int64(part.shape[0])
    while True:
        while left < right and is_in_first(np.int64(part[left, split.axis]), split, False, False, grid):
            left += 1
        while left < right and not is_in_first(
            np.int64(part[right - 1, split.axis]), split, False, False, grid
        ):
            right -= 1
        if left >= right:
            return left
        swap(part, left, right - 1)


@inner(borrows=True)
def divide_by_children(part, axis, top, leaves_rest, grid, rules, node, nodes, n_nodes, scratch):
    """Carry out a split into the children of ``top`` that stand alone, and the rest, unless that is left out.

    Returns (how many parts there are, which of them takes values that are not here).
    """
    parent, stands, key = grid.node[top], scratch.listed_splits.stands, scratch.key
    n_parts = fill_children(part, axis, top, grid, scratch)
    for j in range(n_parts):
        before = scratch.total[0, j - 1] if j > 0 else np.int64(0)
        stands[scratch.code[j]] = part_holds(
            part, scratch.order, before, scratch.total[0, j], n_parts, rules, scratch
        )
    n_alone, n_rows, largest, otherwise = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    start = nodes[node].start
    for j in range(n_parts):  # those that stand alone first
        before, which = scratch.total[0, j - 1] if j > 0 else np.int64(0), scratch.code[j]
        if not stands[which]:
            continue
        rows = scratch.total[0, j] - before
        for i in range(rows):
            key[n_rows + i] = scratch.order[before + i]
        branch = grid.child[parent.child_start + which]
        append(n_nodes + n_alone, start + n_rows, start + n_rows + rows, branch, nodes)
        if rows > largest:
            largest, otherwise = rows, n_alone
        n_rows += rows
        n_alone += 1
    if n_rows < part.shape[0]:
        if not leaves_rest:
            append(n_nodes + n_alone, start + n_rows, nodes[node].end, np.int64(REST), nodes)
            otherwise = n_alone
            n_alone += 1
        for j in range(n_parts):
            before = scratch.total[0, j - 1] if j > 0 else np.int64(0)
            if not stands[scratch.code[j]]:
                for i in range(before, scratch.total[0, j]):
                    key[n_rows] = scratch.order[i]
                    n_rows += 1
    arrange(part, key)
    return n_alone, otherwise


@inner(borrows=True)
def divide_by_loss(part, split, node, nodes, n_nodes, top, grid, rules, scratch):
    """Carry out a split by loss and append the children: (how many there are, the last code that goes left)."""
    if split.kind == CHILDREN:
        m, otherwise = divide_by_children(
            part, split.axis, split.number, split.n_left > 0, grid, rules, node, nodes, n_nodes, scratch
        )
        threshold = split.number
    else:
        m, start, end = np.int64(2), nodes[node].start, nodes[node].end
        if split.kind == THRESHOLD:
            n_first, goes_left = part_by_threshold(part, split, grid, scratch.places)
            first, second, threshold = np.int64(0), np.int64(1), split.number
            otherwise = np.int64(0) if goes_left else np.int64(1)
        else:
            n_first = part_by_node(part, split, grid)
            first, second, threshold, otherwise = split.number, np.int64(REST), top, np.int64(1)
        append(n_nodes, start, start + n_first, first, nodes)
        if split.n_left > 0:
            m, otherwise = np.int64(1), np.int64(0)
        else:
            append(n_nodes + 1, start + n_first, end, second, nodes)
    own = nodes[node]
    own.axis, own.threshold, own.first_child, own.n_children = split.axis, threshold, n_nodes, m
    own.otherwise = otherwise
    return m, split.number


@inner(borrows=True)
def split_by_loss(part, bounds, node, nodes, n_nodes, grid, targets, rules, loss, table, scratch):
    """Choose a split by loss and carry it out: (axis, how many children, the last code that goes left)."""
    if targets is None:
        split = choose_by_loss(part, bounds, grid, None, None, rules, loss, table, scratch)
    else:
        split = choose_by_loss(part, bounds, grid, targets, targets.several, rules, loss, table, scratch)
    if split.axis < 0:
        return split.axis, np.int64(0), np.int64(-1)
    top = bounds[COVER, split.axis]
    m, border = divide_by_loss(part, split, node, nodes, n_nodes, top, grid, rules, scratch)
    return split.axis, m, border


@inner(borrows=True)
def take_allowance(allowed, depth, leaving):
    """The allowance of the open node that comes next is that of the node being split."""
    if leaving is not None:
        leaving.allowance[ROWS], leaving.allowance[PEOPLE] = allowed[depth, ROWS], allowed[depth, PEOPLE]


@inner(borrows=True)
def share_allowance(part, nodes, n_nodes, m, rules, leaving, scratch):
    """Hand down what a split of these rows into the last m nodes has left of its allowance."""
    if leaving is not None:
        hand_down(part, nodes, n_nodes - m, m, rules, leaving, scratch)


@inner(borrows=True)
def open_allowance(allowed, depth, child, leaving):
    """The allowance of a child, which is an open node now."""
    if leaving is not None:
        allowed[depth, ROWS], allowed[depth, PEOPLE] = (
            leaving.share[ROWS, child],
            leaving.share[PEOPLE, child],
        )


@kernel
def fill_subtree(
    rows, codes, nodes, once, bounds, allowed, least_gain, grid, targets, cells, rules, loss, table, scratch
):
    """Grow everything below node 0, depth first, or with ``once`` split node 0 alone; returns the number of nodes.

    rows     (n, columns) uint32  IN+OUT  put in the order of the leaves
    codes    (n, axes) or None    IN      codes of the whole table, by row number; None: as they stand in ``rows``
    nodes    (capacity,) NODE     IN+OUT  node 0 is given, the others are appended
    bounds   (capacity, 4, axes)  IN+OUT  what is known of open nodes: LOW and HIGH, the least and the greatest code as
                                          they stand in ``rows``; COVER, the hierarchy node that covers the rows on a
                                          tree attribute; IS_EXACT, are low and high those of the rows?
                                          bounds[0] is node 0; with ``once`` its children's, the last one first
    allowed  (capacity, 2)        IN+OUT  what each of them may leave out; no room without scratch.leaving
    least_gain                            Median takes the splits that gain less; None: it takes none
    targets  Targets or None      IN      None: Median takes all
    cells    Cells or None        IN      None: targets are scored over parts as they are
    loss     Loss or None         IN      None: splits do not go by loss. Else ``codes`` are None, and LOW and HIGH of an
                                          ordered axis are the ends of the box, missing apart
    What is None is not compiled: numba makes one kernel for each combination.
    """
    stack = np.zeros(bounds.shape[0], dtype=np.int64)  # open nodes
    here = np.empty((bounds.shape[1], bounds.shape[2]), dtype=np.int64)
    depth, n_nodes = 1, np.int64(1)
    while depth > 0:
        depth -= 1
        node = stack[depth]
        start, end = nodes[node].start, nodes[node].end
        take_allowance(allowed, depth, scratch.leaving)
        if end - start < fewest_to_split(rules.least_rows, scratch.leaving):
            continue
        copy_bounds(bounds[depth], here)
        part = rows[start:end]
        if loss is None:
            axis, code = choose_split(
                part, codes, here, least_gain, grid, targets, cells, rules, table, scratch
            )
            if axis < 0:
                continue
            m, border = divide(
                part, codes, node, nodes, n_nodes, axis, code, here[COVER, axis], grid, rules, scratch
            )
        else:
            if not may_pay(end - start, rules.least_rows, here, grid, loss, scratch.leaving):
                continue
            axis, m, border = split_by_loss(
                part, here, node, nodes, n_nodes, grid, targets, rules, loss, table, scratch
            )
            if axis < 0:
                continue
        if depth + m > stack.shape[0]:
            stack, bounds, allowed = lengthen(stack, bounds, allowed, stack.shape[0] + m)
        n_nodes += m
        share_allowance(part, nodes, n_nodes, m, rules, scratch.leaving, scratch)
        for child in range(n_nodes - 1, n_nodes - m - 1, -1):
            stack[depth] = child
            open_allowance(allowed, depth, child - (n_nodes - m), scratch.leaving)
            fill_child_bounds(here, axis, nodes[child].branch, border, grid, bounds[depth])
            depth += 1
        if once:
            break
    return n_nodes


@inner(borrows=True)
def span_of(column, has_missing):
    """The span of some rows along an ordered axis, see ``kernels.spans``."""
    least, greatest, missing = (np.int64(1) << BITS) - 1, np.int64(0), np.int64(0)
    for i in range(column.shape[0]):
        code = np.int64(column[i])
        if has_missing and code == 0:
            missing = np.int64(1)
        else:
            least, greatest = min(least, code), max(greatest, code)
    return (((least << BITS) | greatest) << 1) | missing


@kernel(borrows=True)
def fill_covers(rows, start, end, grid, has_spans, out):
    """What covers the rows of each leaf: the lowest hierarchy node, and along ordered axes with ``has_spans`` their span.

    start, end   (leaves,)                        IN
    out          (leaves, axes) int64, -1: none   OUT
    """
    for leaf in range(start.shape[0]):
        for axis in range(grid.axis.shape[0]):
            out[leaf, axis] = -1
            if has_spans and not grid.axis[axis].is_tree:
                own = rows[start[leaf] : end[leaf], axis]
                out[leaf, axis] = span_of(own, grid.axis[axis].least_code > 0)
            if grid.axis[axis].is_tree:
                least, greatest = range_of(rows[start[leaf] : end[leaf], axis], np.int64(-1), np.int64(-1))
                out[leaf, axis] = cover(grid, grid.axis[axis].root, least, greatest)
