"""The split that saves most loss for the bits it spends: a threshold, all children, or one node against the rest.

A candidate is scored by what it saves of the loss of cells, and with a workload by what it tells of the targets beyond
chance, over the bits of the division to the power of 3/4:

    score = (purpose + weight * gain / whole) / (sqrt(bits) * sqrt(sqrt(bits)))

    gain      sum over parts of rows * price * (width of the node's label - width of the part's): an integer
    bits      F(rows) - sum over parts of F(rows), F(x) = x log2 x in fixed point: an integer
    purpose   sum over targets of weight * max(0, information - chance) / information of the whole table

The roots are correctly rounded, so the score is the same on every machine. There are three kinds of candidates:

    THRESHOLD   an ordered axis in two; missing numbers go with the larger part, or against all others
    CHILDREN    all children of the hierarchy node that covers the rows; those that fail alone form the rest
    NODE        any hierarchy node below the cover, against the rest

Ties: larger score, smaller largest part, earlier axis, kind, lower threshold or node.

As in ``choose``, the rows may be at hand as ``part``, or were counted elsewhere, and then what the requirement must know
is in ``bins``.
"""

from __future__ import annotations

import math

import numpy as np

from sfumato.kernels.compile import inner
from sfumato.kernels.information import information
from sfumato.methods.mondrian.kernels.choose_by_rows import add_row_words, add_several, has_only_people
from sfumato.methods.mondrian.kernels.frequency import (
    add_counts,
    add_packed,
    add_sums,
    child_of,
    cover,
    fill_several,
    fill_sums,
    fill_totals,
    first_reaching,
    single_column,
    single_packing,
    unpack,
    words_of_several,
)
from sfumato.methods.mondrian.kernels.leave_out import allowance_of, few_people_in_rest, few_people_outside
from sfumato.methods.mondrian.kernels.people import fill_between_limits, people_within
from sfumato.methods.mondrian.kernels.people_parts import are_few_to_look_at, fill_stands_of_people
from sfumato.methods.mondrian.kernels.problem import (
    CHILDREN,
    COVER,
    DIGIT,
    HIGH,
    LOW,
    ONE_NODE,
    THRESHOLD,
    UNIT,
    LossSplit,
)
from sfumato.methods.mondrian.kernels.rules import TWO, fill_walk, is_sample, least_rows_of, part_holds

# ---- labels of numbers -----------------------------------------------------------------------------


@inner(borrows=True, inlines=True)
def step_of(code, axis, grid, loss):
    """Where the value of a code lies, in steps from the lower bound; of numbers without steps the next one above."""
    here, own = grid.axis[axis], loss.axis[axis]
    if here.position_start < 0:
        return code + own.shift
    away = (grid.position[here.position_start + code] - own.lower) / own.step
    return np.int64(math.floor(away + 0.5) if own.is_stepped else math.ceil(away))


@inner(borrows=True)
def first_step(low, axis, grid, loss):
    """The first step of a box whose least code is ``low``: one after the code that was left behind."""
    return step_of(low - 1, axis, grid, loss) + 1 if low > grid.axis[axis].least_code else np.int64(0)


@inner(borrows=True)
def last_step(high, axis, grid, loss):
    """The last step of a box whose greatest code is ``high``."""
    own = loss.axis[axis]
    return step_of(high, axis, grid, loss) if high < own.last_code else own.reach


@inner(borrows=True)
def label_width(least, greatest, first, last, own):
    """Width, in steps, of the label of values from ``least`` to ``greatest`` in the box from ``first`` to ``last``."""
    if own.slice == 0:
        return last - first
    low = max(first, least // own.slice * own.slice)
    high = min(last, greatest // own.slice * own.slice + own.slice - 1)
    return high - low


# ---- scores ----------------------------------------------------------------------------------------

ALMOST = 1.0 - 1e-9
"""Room for the roundoff of what is compared before the score itself."""


@inner(borrows=True, inlines=True)
def over_bits(value, bits):
    """A value for each bit to the power of 3/4."""
    root = math.sqrt(np.float64(bits))
    return value / (root * math.sqrt(root))


@inner(borrows=True)
def information_of_part(words, word, n_classes, several, table):
    """Minus the entropy of a label times the rows of a part, given by its words; its classes begin at ``word``."""
    n = words[0]
    bits = -information(n, table)
    if several is None:
        return bits + information(words[1], table) + information(n - words[1], table)
    for c in range(n_classes):
        bits += information(words[word + c], table)
    return bits


@inner(borrows=True)
def purpose_of(parts, n_parts, node, targets, several, loss, table):
    """What a division tells of the targets beyond chance, compared with all there is to tell."""
    found, word = 0.0, 1
    n_labels = targets.label.shape[0]
    for t in range(n_labels):
        task, n_classes = loss.task[t], targets.label[t].n_classes
        bits = -information_of_part(node, word, n_classes, several, table)
        for p in range(n_parts):
            bits += information_of_part(parts[p], word, n_classes, several, table)
        found += task.weight * max(0.0, np.float64(bits) - task.chance) / task.whole
        word += n_classes
    for t in range(targets.number.shape[0]):
        task, error = loss.task[n_labels + t], 0.0
        for p in range(n_parts):
            n = parts[p, 0]
            away = parts[p, word] / n - node[word] / node[0]
            error += n * (away * away)
        found += task.weight * error / task.whole
        word += 1
    return found


@inner(borrows=True)
def score_parts(parts, n_parts, gain, bits, node, targets, loss, table):
    """The score of a division; with targets ``parts`` holds the words of each part."""
    purpose = 0.0
    if targets is not None:
        purpose = purpose_of(parts, n_parts, node, targets, targets.several, loss, table)
    return over_bits(purpose + loss.weight * np.float64(gain) / loss.whole, bits)


@inner(borrows=True)
def wins(score, largest, axis, kind, number, best):
    """Is this candidate better than the best one so far?"""
    if score != best.score:
        return score > best.score
    if largest != best.largest:
        return largest < best.largest
    if axis != best.axis:
        return axis < best.axis
    return kind < best.kind or (kind == best.kind and number < best.number)


@inner(borrows=True)
def nothing_yet(n):
    """What any split of n rows that gains something beats."""
    return LossSplit(np.int64(-1), np.int64(-1), np.int64(-1), 0.0, np.int64(n), np.int64(0))


@inner(borrows=True)
def bits_of_node(node, targets, several, table):
    """Minus the entropy of a single label of two classes times the rows of a node, 0 for all other targets."""
    if several is None and targets.label.shape[0] == 1:
        return information_of_part(node, 1, 2, several, table)
    return np.int64(0)


@inner(borrows=True, inlines=True)
def purpose_of_two(first, n, bits, node, node_bits, targets, several, loss, table, listed):
    """``purpose_of`` a division in two; the words of the first part, which has so many rows, are in ``listed.parts``.

    bits        of the division
    node_bits   see ``bits_of_node``
    """
    parts = listed.parts
    if several is None and targets.label.shape[0] == 1:
        task, x, second_x = loss.task[0], parts[0, 1], node[1] - parts[0, 1]
        told = information(x, table) + information(first - x, table) - node_bits
        told += information(second_x, table) + information(n - first - second_x, table)
        told += bits - information(n, table)
        return task.weight * max(0.0, np.float64(told) - task.chance) / task.whole
    parts[0, 0] = first
    for w in range(node.shape[0]):
        parts[1, w] = node[w] - parts[0, w]
    return purpose_of(parts, 2, node, targets, several, loss, table)


@inner(borrows=True, inlines=True)
def value_of_two(first, n, gain, bits, node, node_bits, targets, loss, table, listed):
    """What a division in two is worth, before it is compared with its bits."""
    purpose = 0.0
    if targets is not None:
        purpose = purpose_of_two(
            first, n, bits, node, node_bits, targets, targets.several, loss, table, listed
        )
    return purpose + loss.weight * np.float64(gain) / loss.whole


@inner(borrows=True)
def limit_of(best):
    """The best score to the power of 4, less some room for roundoff."""
    square = best.score * best.score
    return ALMOST * (square * square)


@inner(borrows=True, inlines=True)
def may_win(value, bits, limit):
    """Can this value for so many bits beat the best score? Sooner said than the score itself, which has two roots."""
    x, b = value * value, np.float64(bits)
    return value > 0.0 and x * x >= limit * (b * b * b)


# ---- candidates of one axis ------------------------------------------------------------------------


@inner(borrows=True)
def list_candidate(number, place, other, n_first, n_left, value, bits, n_listed, listed):
    """Write down a candidate."""
    listed.n_left[n_listed] = n_left
    listed.number[n_listed], listed.first[n_listed], listed.last[n_listed] = number, place, other
    listed.n_first[n_listed], listed.score[n_listed] = n_first, over_bits(value, bits)


@inner(borrows=True)
def take_if_better(axis, kind, number, n_first, n, n_left, value, bits, best):
    """A candidate if it is better than the best one, else that one."""
    score, largest = over_bits(value, bits), max(n_first, n - n_first)
    if score > 0.0 and wins(score, largest, axis, kind, number, best):
        return LossSplit(axis, np.int64(kind), number, score, largest, np.int64(n_left))
    return best


@inner(borrows=True)
def pays(gain, n_left, n, row_price):
    """Does a split of n rows gain more than the rows that it leaves out cost?"""
    if np.float64(n_left) * np.float64(row_price) > 1.001 * UNIT * np.float64(n):
        return False  # no split gains as much, and the product might not fit
    return gain > n_left * row_price


@inner(borrows=True)
def may_pay(n, least_rows, bounds, grid, loss, leaving):
    """May a node of so many rows be split? With too few for two groups it must leave a row out, and that must pay.

    bounds   (4, axes) see ``fill_subtree``   IN
    """
    if leaving is None or n >= 2 * least_rows:
        return True
    for axis in range(grid.axis.shape[0]):
        if grid.axis[axis].is_tree and grid.axis[axis].may_split:
            top = grid.node[bounds[COVER, axis]]
            if (n - 1) * loss.axis[axis].price * (top.high - top.low - 1) > loss.row:
                return True
    return False


@inner(borrows=True)
def walk_thresholds(
    axis, m, n, facts, missing, node, is_listed, grid, targets, rules, loss, table, scratch, best
):
    """The thresholds of an ordered axis that leave enough rows on both sides: list them, or find the best one.

    scratch.code[:m]       IN   the codes that occur, ascending; code 0 is missing where the axis has it. Or a stretch of
                                them, of which the last one only says what comes next
    scratch.total[:, :m]   IN   running totals up to each, from the first code of the axis on
    facts    (4,) least and greatest step of the values, first and last step of the node's box           IN
    missing  (words,) of the rows that lack a value                                                       IN
    scratch.listed_splits  OUT  number: the last code that goes left; first: its place in scratch.code; last: does
                                missing go left?
    Returns (how many are listed, the best one).
    """
    code, rows_to, own, listed = scratch.code, scratch.total[0], loss.axis[axis], scratch.listed_splits
    least, greatest, box_first, box_last = facts[0], facts[1], facts[2], facts[3]
    n_missing, least_rows = missing[0], least_rows_of(rules, 2)
    width = label_width(least, greatest, box_first, box_last, own)
    low, high, size = box_first, box_last, own.slice  # ends of the label of all
    if size > 0:
        low, high = max(low, least // size * size), min(high, greatest // size * size + size - 1)
    has_missing = grid.axis[axis].least_code > 0
    whole, node_bits = information(n, table), np.int64(0)
    if targets is not None:
        node_bits = bits_of_node(node, targets, targets.several, table)
    n_listed, limit = 0, limit_of(best)
    start = max(first_reaching(rows_to[:m], least_rows), 0)
    after = step_of(code[start], axis, grid, loss) if start < m - 1 else np.int64(0)
    slice_low = np.int64(0)  # first step of the slice of ``after``
    for t in range(start, m - 1):
        here = after
        after = step_of(code[t + 1], axis, grid, loss)
        is_missing = has_missing and code[t] == 0
        left = rows_to[t] - n_missing
        right = n - n_missing - left
        goes_left = is_missing or left > right
        n_first = left + n_missing if goes_left else left
        if n_first < least_rows or n - n_first < least_rows:
            if n - left < least_rows:
                break  # so it will be from here on
            continue
        if is_missing:
            gain = n_missing * own.price * own.reach
        else:
            begins = here + 1
            if size > 0:
                if after - slice_low >= size:
                    slice_low = after // size * size
                begins = max(begins, slice_low)
            gain = own.price * (left * (width - (here - low)) + right * (width - (high - begins)))
        if targets is not None:
            for w in range(1, node.shape[0]):
                listed.parts[0, w] = scratch.total[w, t] - (0 if goes_left else missing[w])
        bits = whole - information(n_first, table) - information(n - n_first, table)
        value = value_of_two(n_first, n, gain, bits, node, node_bits, targets, loss, table, listed)
        if is_listed:
            list_candidate(code[t], t, np.int64(goes_left), n_first, 0, value, bits, n_listed, listed)
            n_listed += 1
        elif may_win(value, bits, limit):
            best = take_if_better(axis, THRESHOLD, code[t], n_first, n, 0, value, bits, best)
            limit = limit_of(best)
    return n_listed, best


@inner(borrows=True)
def walk_nodes(axis, top, m, n, node, is_listed, grid, targets, rules, loss, table, scratch, best):
    """The hierarchy nodes below ``top``, which covers the rows, that may be told apart: list them, or find the best.

    A node may also be told apart from a rest that is left out. That a node is left out need not be looked at: then the
    rest has a cover of its own, which is such a node.

    scratch.code[:m], scratch.total[:, :m]   IN   as in ``walk_thresholds``, all of the axis
    scratch.listed_splits                    OUT  number: the node; first, last: the places of its codes
    Returns (how many are listed, the best one).
    """
    code, total, own, listed = scratch.code, scratch.total, loss.axis[axis], scratch.listed_splits
    least_rows, allowance = least_rows_of(rules, 2), allowance_of(scratch.leaving)
    width = grid.node[top].high - grid.node[top].low - 1
    whole, node_bits = information(n, table), np.int64(0)
    if targets is not None:
        node_bits = bits_of_node(node, targets, targets.several, table)
    n_listed, limit = 0, limit_of(best)
    for i in range(m):
        here = top
        while grid.node[here].n_children > 0:
            above = grid.node[here]
            here = grid.child[above.child_start + child_of(above, grid, code[i])]
            own_node = grid.node[here]
            if own_node.n_children == 1 or (i > 0 and own_node.low <= code[i - 1]):
                continue  # its child has the same codes, or an earlier code has led to it
            j = i + first_reaching(code[i:m], own_node.high) if own_node.n_children > 0 else i + 1
            n_first = total[0, j - 1] - (total[0, i - 1] if i > 0 else 0)
            if n_first < least_rows:
                break  # so have all nodes below
            n_rest = n - n_first
            may_stand, may_leave = n_rest >= least_rows, 0 < n_rest <= allowance
            if not (may_stand or may_leave):
                continue
            if targets is not None:
                for w in range(1, node.shape[0]):
                    listed.parts[0, w] = total[w, j - 1] - (total[w, i - 1] if i > 0 else 0)
            bits = whole - information(n_first, table) - information(n_rest, table)
            gain = own.price * n_first * (width - (own_node.high - own_node.low - 1))
            if may_stand:
                first_out, last_out = code[j] if i == 0 else code[0], code[i - 1] if j == m else code[m - 1]
                rest = grid.node[cover(grid, top, first_out, last_out)]
                more = own.price * n_rest * (width - (rest.high - rest.low - 1))
                value = value_of_two(
                    n_first, n, gain + more, bits, node, node_bits, targets, loss, table, listed
                )
                if is_listed:
                    list_candidate(here, i, j, n_first, 0, value, bits, n_listed, listed)
                    n_listed += 1
                elif may_win(value, bits, limit):
                    best = take_if_better(axis, ONE_NODE, here, n_first, n, 0, value, bits, best)
                    limit = limit_of(best)
            if may_leave and pays(gain, n_rest, n, loss.row):
                gain -= n_rest * loss.row
                value = value_of_two(n_first, n, gain, bits, node, node_bits, targets, loss, table, listed)
                if is_listed:
                    list_candidate(here, i, j, n_first, n_rest, value, bits, n_listed, listed)
                    n_listed += 1
                elif may_win(value, bits, limit):
                    best = take_if_better(axis, ONE_NODE, here, n_first, n, n_rest, value, bits, best)
                    limit = limit_of(best)
    return n_listed, best


@inner(borrows=True)
def take_best(axis, kind, n_listed, n, listed, best):
    """The best one of the candidates that are listed and fine, if it beats ``best``, else ``best``."""
    for c in range(n_listed):
        if not listed.is_fine[c]:
            continue
        score, n_first = listed.score[c], listed.n_first[c]
        largest = max(n_first, n - n_first)
        if score > 0.0 and wins(score, largest, axis, kind, listed.number[c], best):
            best = LossSplit(axis, np.int64(kind), listed.number[c], score, largest, listed.n_left[c])
    return best


@inner(borrows=True)
def take_all_children(axis, top, m, n, node, leaves_rest, grid, targets, loss, table, scratch, best):
    """The division into the children of ``top`` that stand alone, and the rest, if it beats ``best``; else ``best``.

    leaves_rest                    is the rest left out? Then it must be few, and pay                       IN
    scratch.listed_splits.stands   (children of the axis,) does each child satisfy the requirement alone?   IN
    That a rest that stays does, if there is one, is left to the caller.
    """
    code, total, own, listed = scratch.code, scratch.total, loss.axis[axis], scratch.listed_splits
    parent = grid.node[top]
    width = parent.high - parent.low - 1
    gain, bits, largest = np.int64(0), information(n, table), np.int64(0)
    n_parts, n_left, i = 0, n, np.int64(0)
    if targets is not None:
        for w in range(node.shape[0]):
            listed.rest[w] = node[w]
    while i < m:
        which = child_of(parent, grid, code[i])
        child = grid.node[grid.child[parent.child_start + which]]
        j = i + first_reaching(code[i:m], child.high)
        if listed.stands[which]:
            rows = total[0, j - 1] - (total[0, i - 1] if i > 0 else 0)
            gain += rows * (width - (child.high - child.low - 1))
            bits -= information(rows, table)
            largest, n_left = max(largest, rows), n_left - rows
            if targets is not None:
                for w in range(node.shape[0]):
                    words = total[w, j - 1] - (total[w, i - 1] if i > 0 else 0)
                    listed.parts[n_parts, w] = words
                    listed.rest[w] -= words
            n_parts += 1
        i = j
    if n_left > 0:
        bits -= information(n_left, table)
        largest = max(largest, n_left)
        if targets is not None:
            for w in range(node.shape[0]):
                listed.parts[n_parts, w] = listed.rest[w]
        n_parts += 1
    if n_parts < 2:
        return best
    gain *= own.price
    if not leaves_rest:
        n_left = np.int64(0)
    elif n_left > allowance_of(scratch.leaving) or not pays(gain, n_left, n, loss.row):
        return best
    else:
        gain -= n_left * loss.row
    score = score_parts(listed.parts, n_parts, gain, bits, node, targets, loss, table)
    if score > 0.0 and wins(score, largest, axis, CHILDREN, top, best):
        return LossSplit(axis, np.int64(CHILDREN), top, score, largest, n_left)
    return best


# ---- the requirement -------------------------------------------------------------------------------


@inner(borrows=True)
def is_in_first(code, split, goes_left, has_missing, grid):
    """Does a row with this code belong to the first part of a division in two?"""
    if split.kind == THRESHOLD:
        return goes_left if has_missing and code == 0 else code <= split.number
    return grid.node[split.number].low <= code < grid.node[split.number].high


@inner(borrows=True)
def two_parts_hold(part, split, goes_left, grid, rules, scratch):
    """Do both parts of a division in two satisfy the requirement, but for one left out? By the rows themselves."""
    key, n, axis = scratch.key, part.shape[0], split.axis
    has_missing = grid.axis[axis].least_code > 0
    low, high = np.int64(has_missing and not goes_left), split.number + 1
    if split.kind != THRESHOLD:
        low, high = grid.node[split.number].low, grid.node[split.number].high
    if split.n_left > 0 and not few_people_outside(
        part, axis, low, high, rules.sensitive, scratch.leaving, scratch
    ):
        return False
    if has_only_people(rules.sensitive):
        return two_parts_have_people(part, axis, low, high, split.n_left > 0, rules.sensitive, scratch)
    first, after = np.int64(0), np.int64(n)
    for i in range(n):
        if is_in_first(np.int64(part[i, axis]), split, goes_left, has_missing, grid):
            key[first] = i
            first += 1
        else:
            after -= 1
            key[after] = i
    return part_holds(part, key, np.int64(0), first, TWO, rules, scratch) and (
        split.n_left > 0 or part_holds(part, key, first, np.int64(n), TWO, rules, scratch)
    )


@inner(borrows=True)
def two_parts_have_people(part, axis, low, high, leaves_rest, sensitive, scratch):
    """Have the rows with a code from ``low`` up to ``high`` enough people, and the others, unless they are left out?"""
    if sensitive is None:
        return True
    people, stamps = sensitive.people, scratch.stamps
    return people_within(part, axis, low, high, True, people, stamps) and (
        leaves_rest or people_within(part, axis, low, high, False, people, stamps)
    )


@inner(borrows=True)
def fill_order(part, axis, m, scratch):
    """Positions of the rows by their codes on an axis, into scratch.order; the codes are scratch.code[:m]."""
    order, place, code, rows_to = scratch.order, scratch.place, scratch.code, scratch.total[0]
    for t in range(m):
        place[t] = rows_to[t - 1] if t > 0 else 0
    for i in range(part.shape[0]):
        t = first_reaching(code[:m], np.int64(part[i, axis]))
        order[place[t]] = i
        place[t] += 1


@inner(borrows=True)
def fill_fine_thresholds(part, axis, m, n_listed, n_missing, rules, scratch):
    """Which of the thresholds that are listed are allowable, all of them at once; rows are walked twice or four times."""
    listed, order, key, ends, n = (
        scratch.listed_splits,
        scratch.order,
        scratch.key,
        scratch.place,
        part.shape[0],
    )
    if has_only_people(rules.sensitive):
        mark_by_people(part, axis, m, n_listed, n_missing, rules.sensitive, scratch)
        return
    fill_order(part, axis, m, scratch)
    for t in range(m):
        ends[t] = scratch.total[0, t]
    for side in range(2):
        fill_walk(part, order, ends, m, side == 1, rules, scratch, scratch.is_fine[side])
    for c in range(n_listed):
        t = listed.first[c]
        listed.is_fine[c] = scratch.is_fine[0, t] and scratch.is_fine[1, t]
    if n_missing == 0:
        return
    for i in range(n):  # missing goes right: after all others
        key[i] = order[i + n_missing] if i < n - n_missing else order[i - (n - n_missing)]
    for t in range(1, m):
        ends[t - 1] = scratch.total[0, t] - n_missing
    ends[m - 1] = n
    for side in range(2):
        fill_walk(part, key, ends, m, side == 1, rules, scratch, scratch.is_fine[side])
    for c in range(n_listed):
        t = listed.first[c]
        if listed.last[c] == 0:
            listed.is_fine[c] = scratch.is_fine[0, t - 1] and scratch.is_fine[1, t - 1]


@inner(borrows=True)
def mark_by_people(part, axis, m, n_listed, n_missing, sensitive, scratch):
    """``fill_fine_thresholds`` where the number of people is all that is required."""
    if sensitive is None:
        return
    listed, code, is_fine = scratch.listed_splits, scratch.code[:m], scratch.is_fine
    for side in range(2 if n_missing > 0 else 1):
        fill_between_limits(part, axis, code, side == 1, sensitive.people, scratch, is_fine)
        for c in range(n_listed):
            if side == 0 or listed.last[c] == 0:
                listed.is_fine[c] = is_fine[0, listed.first[c]]


@inner(borrows=True)
def take_best_node(part, axis, n_listed, grid, rules, scratch, best):
    """``take_best`` of the nodes that are listed, tried from the best one on until one is allowable."""
    listed, n = scratch.listed_splits, part.shape[0]
    for c in range(n_listed):
        listed.is_fine[c] = True
    while True:
        found = take_best(axis, ONE_NODE, n_listed, n, listed, best)
        if found.axis != axis or found.kind != ONE_NODE:
            return found
        if two_parts_hold(part, found, True, grid, rules, scratch):
            return found
        for c in range(n_listed):
            if listed.number[c] == found.number and listed.n_left[c] == found.n_left:
                listed.is_fine[c] = False


@inner(borrows=True)
def are_few(top, m, grid, sensitive, scratch):
    """``are_few_to_look_at``, if anything is required of sensitive values or people."""
    if sensitive is None:
        return False
    return are_few_to_look_at(top, m, grid, sensitive.people, scratch)


@inner(borrows=True)
def stands_of_people(part, axis, top, m, grid, sensitive, scratch):
    """``fill_stands_of_people``, if anything is required of sensitive values or people."""
    if sensitive is None:
        return True
    return fill_stands_of_people(part, axis, top, m, grid, sensitive.people, scratch)


@inner(borrows=True)
def fill_stands(part, axis, top, m, grid, rules, sensitive, scratch):
    """Which children of ``top`` satisfy the requirement alone; returns whether the others, if any, do together."""
    if has_only_people(sensitive) and are_few(top, m, grid, sensitive, scratch):
        return stands_of_people(part, axis, top, m, grid, sensitive, scratch)
    code, rows_to, listed, parent = scratch.code, scratch.total[0], scratch.listed_splits, grid.node[top]
    n_parts, i = np.int64(0), np.int64(0)
    while i < m:
        child = grid.node[grid.child[parent.child_start + child_of(parent, grid, code[i])]]
        i += first_reaching(code[i:m], child.high)
        n_parts += 1
    least_rows = least_rows_of(rules, n_parts)
    if sensitive is not None:
        fill_order(part, axis, m, scratch)
    n_left, i = np.int64(0), np.int64(0)
    while i < m:
        which = child_of(parent, grid, code[i])
        child = grid.node[grid.child[parent.child_start + which]]
        j = i + first_reaching(code[i:m], child.high)
        before = rows_to[i - 1] if i > 0 else np.int64(0)
        stands = rows_to[j - 1] - before >= least_rows
        if sensitive is not None and stands:
            stands = part_holds(part, scratch.order, before, rows_to[j - 1], n_parts, rules, scratch)
        listed.stands[which] = stands
        if not stands:
            for t in range(before, rows_to[j - 1]):
                if sensitive is not None:
                    scratch.key[n_left] = scratch.order[t]
                n_left += 1
        i = j
    if n_left == 0:
        return True
    if sensitive is None:
        return n_left >= least_rows
    return part_holds(part, scratch.key, np.int64(0), n_left, n_parts, rules, scratch)


# ---- the choice, where the rows are at hand ---------------------------------------------------------

FEW = 20
"""Keys that are sorted by comparing them."""

MANY = np.int64(32)
"""Keys of one digit beyond which they are not sorted by comparing them."""


@inner(borrows=True)
def choose_on_axis(part, axis, m, bounds, grid, targets, rules, sensitive, loss, table, scratch, best):
    """The best allowable split of an axis if it beats ``best``, else ``best``; codes and totals are in ``scratch``."""
    n, listed = part.shape[0], scratch.listed_splits
    node, missing, facts = listed.node, listed.missing, listed.facts
    if not grid.axis[axis].is_tree:
        fill_facts(axis, m, bounds, missing[0], grid, loss, scratch.code, facts)
        _, found = walk_thresholds(
            axis, m, n, facts, missing, node, False, grid, targets, rules, loss, table, scratch, best
        )
        if sensitive is None or found.axis != axis:
            return found
        if two_parts_hold(
            part, found, missing_goes_left(found, missing[0], m, scratch), grid, rules, scratch
        ):
            return found
        n_listed, _ = walk_thresholds(
            axis, m, n, facts, missing, node, True, grid, targets, rules, loss, table, scratch, best
        )
        fill_fine_thresholds(part, axis, m, n_listed, missing[0], rules, scratch)
        return take_best(axis, THRESHOLD, n_listed, n, listed, best)
    top = bounds[COVER, axis]
    if not is_sample(rules):
        top = cover(grid, top, scratch.code[0], scratch.code[m - 1])
    rest_holds = fill_stands(part, axis, top, m, grid, rules, sensitive, scratch)
    all_stay = rest_holds and (loss.has_rest or all_stand(top, m, grid, scratch))
    if all_stay or (
        allowance_of(scratch.leaving) > 0
        and few_people_in_rest(part, axis, top, grid, sensitive, scratch.leaving, scratch)
    ):
        best = take_all_children(
            axis, top, m, n, node, not all_stay, grid, targets, loss, table, scratch, best
        )
    if not loss.has_rest:
        return best
    _, found = walk_nodes(axis, top, m, n, node, False, grid, targets, rules, loss, table, scratch, best)
    if sensitive is None or found.axis != axis or found.kind != ONE_NODE:
        return found
    if two_parts_hold(part, found, True, grid, rules, scratch):
        return found
    n_listed, _ = walk_nodes(axis, top, m, n, node, True, grid, targets, rules, loss, table, scratch, best)
    return take_best_node(part, axis, n_listed, grid, rules, scratch, best)


@inner(borrows=True)
def all_stand(top, m, grid, scratch):
    """Does every child that has rows stand alone, see ``fill_stands``?"""
    found = True
    for i in range(m):
        found = found and scratch.listed_splits.stands[child_of(grid.node[top], grid, scratch.code[i])]
    return found


@inner(borrows=True)
def missing_goes_left(split, n_missing, m, scratch):
    """Whether missing numbers go with the first part of a threshold."""
    t = first_reaching(scratch.code[:m], split.number)
    left, n = scratch.total[0, t] - n_missing, scratch.total[0, m - 1]
    return left == 0 or left > n - n_missing - left


@inner(borrows=True)
def fill_facts(axis, m, bounds, n_missing, grid, loss, code, out):
    """What ``walk_thresholds`` must know of the node; code[:m] are all codes of the axis that occur."""
    first = 1 if n_missing > 0 else 0
    if first == m:  # no value at all
        out[0], out[1], out[2], out[3] = 0, 0, 0, 0
        return
    out[0] = step_of(code[first], axis, grid, loss)
    out[1] = step_of(code[m - 1], axis, grid, loss)
    out[2] = first_step(bounds[LOW, axis], axis, grid, loss)
    out[3] = last_step(bounds[HIGH, axis], axis, grid, loss)


@inner(borrows=True)
def sort_keys(key, other, n_bits, counts):
    """Sort keys by their bits from 32 on, so many of them.

    other    (n,) scratch
    counts   (2^DIGIT,) all zero   IN, cleared
    """
    n, size = key.shape[0], np.int64(1)
    if n <= FEW:
        insert_each(key)
        return
    n_first = np.int64(0)
    while size < n and n_first < DIGIT:
        size, n_first = size << 1, n_first + 1
    if n_first < DIGIT and sort_by_digit(key, other, 32 + max(n_bits - n_first, 0), size, MANY, counts):
        insert_each(key)  # all of them are near their places
        return
    done = np.int64(0)
    while done < n_bits:
        sort_by_digit(key, other, 32 + done, np.int64(1) << DIGIT, np.int64(n), counts)
        done += DIGIT


@inner(borrows=True)
def insert_each(key):
    """Sort keys that are few, or near their places."""
    for i in range(1, key.shape[0]):
        here = key[i]
        j = i
        while j > 0 and key[j - 1] > here:
            key[j] = key[j - 1]
            j -= 1
        key[j] = here


@inner(borrows=True)
def sort_by_digit(key, other, by, size, most, counts):
    """Sort keys by one digit, which is below ``size`` and begins at bit ``by``; those of a digit stay in their order.

    Not if one digit has more than ``most`` keys; returns whether it has been done.
    """
    n, mask, greatest = key.shape[0], size - 1, np.int64(0)
    for i in range(n):
        counts[(key[i] >> by) & mask] += 1
    before = np.int64(0)
    for d in range(size):
        here = counts[d]
        greatest = max(greatest, here)
        counts[d] = before
        before += here
    if greatest <= most:
        for i in range(n):
            d = (key[i] >> by) & mask
            other[counts[d]] = key[i]
            counts[d] += 1
        for i in range(n):
            key[i] = other[i]
    counts[:size] = 0
    return greatest <= most


@inner(borrows=True)
def fill_axis_by_sorting(part, axis, start, last, targets, several, column, scratch):
    """The codes of an axis that occur, from ``start`` to ``last``, and running totals up to each, by sorting.

    Returns how many codes there are.
    """
    n, key, code, total = part.shape[0], scratch.key[: part.shape[0]], scratch.code, scratch.total
    for i in range(n):
        key[i] = (np.int64(part[i, axis]) - start) << 32
    if targets is not None:
        for i in range(n):
            key[i] |= np.int64(part[i, column]) if several is None else i
    n_bits = np.int64(1)
    while (last - start) >> n_bits > 0:
        n_bits += 1
    sort_keys(key, scratch.order[:n], n_bits, scratch.listed_splits.digits)
    words, m = scratch.listed_splits.rest, np.int64(0)
    words[:] = 0
    for j in range(n):
        here = start + (key[j] >> 32)
        if m == 0 or code[m - 1] != here:
            code[m] = here
            m += 1
        add_key_words(key[j] & 0xFFFFFFFF, part, targets, several, words)
        for w in range(words.shape[0]):
            total[w, m - 1] = words[w]
    return m


@inner(borrows=True, inlines=True)
def add_key_words(low, part, targets, several, words):
    """Add the words of a row that was sorted; ``low`` is the value of a single target, or the row's position."""
    if several is None:
        words[0] += 1
        if targets is not None:
            words[1] += low
    else:
        add_row_words(part[low], np.uint64(0), np.int64(0), targets, several, words)


@inner(borrows=True)
def list_open(first, n_lines, n, bounds, axis_table, listed, base):
    """The axes from ``first`` on that are counted in ``n_lines`` lines together: all but those that are mostly gaps.

    listed, base   as in ``list_axes``   OUT
    Returns (how many they are, their lines, the axis to go on with).
    """
    n_listed, lines, axis = 0, np.int64(0), first
    while axis < axis_table.shape[0]:
        if may_open(axis, bounds, axis_table) and not has_gaps(axis, n, bounds, axis_table):
            start = first_code(axis, bounds, axis_table)
            width = bounds[HIGH, axis] - start + 1
            if lines + width > n_lines:
                break
            listed[n_listed] = axis
            base[n_listed] = lines - start
            n_listed += 1
            lines += width
        axis += 1
    return n_listed, lines, axis


@inner(borrows=True)
def may_open(axis, bounds, axis_table):
    """May an axis be split, for all that is known?"""
    here = axis_table[axis]
    return here.may_split and (bounds[LOW, axis] < bounds[HIGH, axis] or here.least_code > 0)


@inner(borrows=True)
def first_code(axis, bounds, axis_table):
    """The first code that may occur: missing wherever the axis has it."""
    return np.int64(0) if axis_table[axis].least_code > 0 else bounds[LOW, axis]


@inner(borrows=True)
def has_gaps(axis, n, bounds, axis_table):
    """Has an axis so many codes that sorting n rows is sooner done than looking at them?"""
    return bounds[HIGH, axis] - first_code(axis, bounds, axis_table) + 1 > 4 * n + 64


@inner(borrows=True)
def plan_words(n, targets, several):
    """How targets are counted: (column of a single one, shift of packed words, words of a code)."""
    if targets is None:
        return np.int64(0), np.int64(0), np.int64(1)
    if several is not None:
        return np.int64(0), np.int64(0), words_of_several(targets, n)
    shift = single_packing(n, targets)
    return single_column(targets), np.int64(shift), np.int64(1 if shift > 0 else 2)


@inner(borrows=True)
def count_codes(part, targets, several, column, shift, n_lines, listed, base, bins):
    """Count the words of every code of some axes."""
    if targets is None:
        add_counts(part, listed, base, bins)
    elif several is not None:
        add_several(part, targets, n_lines, listed, base, bins)
    elif shift > 0:
        add_packed(part, column, listed, base, shift, bins)
    else:
        add_sums(part, column, listed, base, bins)


@inner(borrows=True)
def choose_by_loss(part, bounds, grid, targets, several, rules, loss, table, scratch):
    """The best allowable split of a node by loss, and by targets if there are any.

    bounds   (4, axes) see ``fill_subtree``; on ordered axes LOW and HIGH are the ends of the box   IN
    Returns a LossSplit, of axis -1 if there is none.
    """
    n, best = part.shape[0], nothing_yet(part.shape[0])
    node, missing = scratch.listed_splits.node, scratch.listed_splits.missing
    column, shift, words = plan_words(n, targets, several)
    bins, done, n_axes = scratch.bins, np.int64(0), grid.axis.shape[0]
    while done < n_axes:
        n_listed, n_lines, after = list_open(
            done, bins.shape[0] // words, n, bounds, grid.axis, scratch.listed, scratch.base
        )
        listed, base = scratch.listed[:n_listed], scratch.base[:n_listed]
        count_codes(part, targets, several, column, shift, n_lines, listed, base, bins)
        at = 0
        for axis in range(done, after):
            if not may_open(axis, bounds, grid.axis):
                continue
            start = first_code(axis, bounds, grid.axis)
            if has_gaps(axis, n, bounds, grid.axis):
                last = bounds[HIGH, axis]
                m = fill_axis_by_sorting(part, axis, start, last, targets, several, column, scratch)
            else:
                width = bounds[HIGH, axis] - start + 1
                line = np.int64(base[at]) + start
                m = compact(bins, line, width, n_lines, n, start, targets, several, shift, scratch)
                at += 1
            if m < 2:
                continue
            has_missing = grid.axis[axis].least_code > 0 and scratch.code[0] == 0
            for w in range(node.shape[0]):
                node[w] = scratch.total[w, m - 1]
                missing[w] = scratch.total[w, 0] if has_missing else 0
            best = choose_on_axis(
                part, axis, m, bounds, grid, targets, rules, rules.sensitive, loss, table, scratch, best
            )
        done = after
    return best


@inner(borrows=True)
def compact(bins, line, width, n_lines, n, start, targets, several, shift, scratch):
    """The codes of an axis that occur and running totals up to each, from its lines, which are cleared."""
    code, total = scratch.code, scratch.total
    if targets is None:
        return fill_totals(bins[line : line + width], start, code, total[0])
    if several is not None:
        return fill_several(bins, n_lines, line, width, n, start, targets, code, total)
    if shift > 0:
        m = fill_totals(bins[line : line + width], start, code, total[1])
        unpack(total[1, :m], shift, total[0], total[1])
        return m
    return fill_sums(bins[2 * line : 2 * (line + width)], start, code, total[0], total[1])
