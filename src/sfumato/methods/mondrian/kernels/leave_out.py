"""Splits that leave rows out: what they may leave out, whether that pays, and what is handed down.

A node may leave out as many rows as its *allowance* says. A split along a hierarchy is also allowable if its failing
children have no more rows than that, at least one child stands, and it pays: what the standing children gain is at least
what the rows left out could lose at most.

    sum over standing children of rows * (leaves of the node - leaves of the child) >= rows left out * axes * reach

where reach is the leaves of the whole hierarchy less one: all in whole numbers. What is left of the allowance goes to the
standing children in proportion to their rows. So what a child may leave out follows from its parent alone, wherever the
rows live and in whatever order nodes are split.

Where people count there is a second allowance: no more people may have a row left out. It is handed down in proportion
to the people of the standing children. Who has rows in several of them counts at each, so the people of all nodes
together are no fewer than those of the table, and the root's allowance is kept. A node without either has none at all.

``leaving`` is None where no row may be left out, and numba compiles nothing of it.
"""

from __future__ import annotations

import numpy as np

from sfumato.kernels.compile import inner
from sfumato.methods.mondrian.kernels.frequency import child_of, sort
from sfumato.methods.mondrian.kernels.people import is_first, new_token
from sfumato.methods.mondrian.kernels.problem import PEOPLE, ROWS
from sfumato.methods.mondrian.kernels.rules import least_rows_of, part_holds
from sfumato.methods.mondrian.kernels.statistics import between_holds


@inner(borrows=True)
def allowance_of(leaving):
    """How many rows the node that is being split may leave out."""
    if leaving is not None:
        return leaving.allowance[ROWS]
    return np.int64(0)


@inner(borrows=True)
def fewest_to_split(least_rows, leaving):
    """Rows that a node must have to be split: those of two groups, or one row more than a group if some may go."""
    if leaving is not None and leaving.allowance[ROWS] > 0:
        return max(least_rows + 1, 2)
    return max(2 * least_rows, 2)


@inner(borrows=True)
def note_children(axis, parent, m, grid, leaving, scratch):
    """Note what each of the m children of ``parent`` that are in use would gain, and what a row left out could lose.

    scratch.code[:m]   which children they are   IN
    """
    if leaving is not None:
        above = grid.node[parent]
        for j in range(m):
            child = grid.node[grid.child[above.child_start + scratch.code[j]]]
            leaving.gain[j] = (above.high - above.low) - (child.high - child.low)
        root = grid.node[grid.axis[axis].root]
        leaving.loss[0] = grid.axis.shape[0] * (root.high - root.low - 1)


@inner(borrows=True)
def may_divide(rows_to, least_rows, leaving):
    """May groups with these running totals of rows be the parts of a split, as far as their numbers of rows tell?"""
    allowance, n_left, n_large, before = allowance_of(leaving), np.int64(0), 0, np.int64(0)
    for j in range(rows_to.shape[0]):
        rows = rows_to[j] - before
        if rows < least_rows:
            n_left += rows
            if n_left > allowance:
                return False
        else:
            n_large += 1
        before = rows_to[j]
    return n_large > 0


@inner(borrows=True)
def fill_standing(part, bins, m, rules, leaving, scratch):
    """Which of the m children in use satisfy the requirement; returns how many rows the others have.

    The children are the groups that ``fill_children`` made; of rows that were counted, child j ends with bin
    scratch.place[j], and scratch.total[0] are the running numbers of rows.
    """
    return fill_diverse(part, bins, m, rules, rules.sensitive, leaving, scratch)


@inner(borrows=True)
def fill_large(m, rules, leaving, scratch):
    """``fill_standing`` where only numbers of rows are asked for."""
    least_rows, n_left, before = least_rows_of(rules, m), np.int64(0), np.int64(0)
    for j in range(m):
        rows = scratch.total[0, j] - before
        leaving.stands[j] = rows >= least_rows
        n_left += np.int64(0) if leaving.stands[j] else rows
        before = scratch.total[0, j]
    return n_left


@inner(borrows=True)
def fill_diverse(part, bins, m, rules, sensitive, leaving, scratch):
    """``fill_standing``, with what is asked of sensitive values, if anything."""
    n_left = fill_large(m, rules, leaving, scratch)
    if sensitive is not None:
        before, last = np.int64(0), np.int64(-1)
        for j in range(m):
            end = scratch.total[0, j]
            if leaving.stands[j]:
                if part is not None:
                    leaving.stands[j] = part_holds(part, scratch.order, before, end, m, rules, scratch)
                if bins is not None:
                    leaving.stands[j] = between_holds(
                        last, scratch.place[j], bins, rules, scratch.values, scratch.work
                    )
                n_left += np.int64(0) if leaving.stands[j] else end - before
            before = end
            if bins is not None:
                last = scratch.place[j]
    return n_left


@inner(borrows=True)
def standing_pay(part, bins, m, rules, leaving, scratch):
    """Is a split into the m children in use allowable, where those that fail may be left out?"""
    n_left = fill_standing(part, bins, m, rules, leaving, scratch)
    if n_left == 0:
        return True
    if n_left > leaving.allowance[ROWS]:
        return False
    gained, before, n_standing = np.int64(0), np.int64(0), 0
    for j in range(m):
        if leaving.stands[j]:
            gained += (scratch.total[0, j] - before) * leaving.gain[j]
            n_standing += 1
        before = scratch.total[0, j]
    if n_standing == 0 or gained < n_left * leaving.loss[0]:
        return False
    return few_people_fail(part, m, n_left, rules.sensitive, leaving, scratch)


@inner(borrows=True)
def few_people_fail(part, m, n_left, sensitive, leaving, scratch):
    """May as many people have a row left out as have one in the children that fail?"""
    if part is None or sensitive is None:
        return True
    return few_people_in_failing(part, m, n_left, sensitive.people, leaving, scratch)


@inner(borrows=True)
def few_people_in_failing(part, m, n_left, people, leaving, scratch):
    """``few_people_fail``, where people may count."""
    if people is None or n_left <= leaving.allowance[PEOPLE]:
        return True
    token, n, before = new_token(people, scratch.stamps), np.int64(0), np.int64(0)
    for j in range(m):
        end = scratch.total[0, j]
        if not leaving.stands[j]:
            for i in range(before, end):
                n += is_first(part[scratch.order[i], people.column], token, people, scratch.stamps)
        before = end
    return n <= leaving.allowance[PEOPLE]


@inner(borrows=True)
def few_people_outside(part, axis, low, high, sensitive, leaving, scratch):
    """May as many people have a row left out as have one with a code that is not from ``low`` up to ``high``?"""
    if sensitive is None:
        return True
    if leaving is not None:
        return few_people_beyond(part, axis, low, high, sensitive.people, leaving, scratch)
    return True


@inner(borrows=True)
def few_people_beyond(part, axis, low, high, people, leaving, scratch):
    """``few_people_outside``, where people may count."""
    if people is None:
        return True
    token, n = new_token(people, scratch.stamps), np.int64(0)
    for i in range(part.shape[0]):
        if not low <= part[i, axis] < high:
            n += is_first(part[i, people.column], token, people, scratch.stamps)
    return n <= leaving.allowance[PEOPLE]


@inner(borrows=True)
def few_people_in_rest(part, axis, top, grid, sensitive, leaving, scratch):
    """May as many people have a row left out as have one in the children of ``top`` that do not stand alone?

    scratch.listed_splits.stands   IN
    """
    if leaving is None or sensitive is None:
        return True
    return few_people_in_failing_children(part, axis, top, grid, sensitive.people, leaving, scratch)


@inner(borrows=True)
def few_people_in_failing_children(part, axis, top, grid, people, leaving, scratch):
    """``few_people_in_rest``, where people may count."""
    if people is None:
        return True
    token, n, parent = new_token(people, scratch.stamps), np.int64(0), grid.node[top]
    for i in range(part.shape[0]):
        if not scratch.listed_splits.stands[child_of(parent, grid, np.int64(part[i, axis]))]:
            n += is_first(part[i, people.column], token, people, scratch.stamps)
            if n > leaving.allowance[PEOPLE]:
                return False
    return True


@inner(borrows=True)
def order_standing(m, leaving, scratch):
    """Put those who stand first: (how many children they are, their rows).

    scratch.order        positions of the rows, child by child   IN
    scratch.key          the same, rows that are left out last   OUT
    scratch.code, total  of the children                         IN+OUT  of those that stand
    """
    n_rows, n_standing, before = np.int64(0), np.int64(0), np.int64(0)
    n = scratch.total[0, m - 1]
    last = n
    for j in range(m):
        end = scratch.total[0, j]
        if leaving.stands[j]:
            for i in range(before, end):
                scratch.key[n_rows] = scratch.order[i]
                n_rows += 1
            scratch.code[n_standing], scratch.total[0, n_standing] = scratch.code[j], n_rows
            n_standing += 1
        else:
            for i in range(before, end):
                last -= 1
                scratch.key[last] = scratch.order[i]
        before = end
    return n_standing, n_rows


@inner(borrows=True)
def hand_down(part, nodes, first, n_children, rules, leaving, scratch):
    """Hand down what a split of these rows has left of the node's allowance.

    Rows that are left out stand after those of the children.

    nodes   NODE, the children begin at ``first``             IN
    leaving.share[:, :n_children]   allowances of the children   OUT
    """
    size, n_rows = leaving.size[:n_children], np.int64(0)
    for j in range(n_children):
        size[j] = nodes[first + j].end - nodes[first + j].start
        n_rows += size[j]
    share_out(
        leaving.allowance[ROWS] - (part.shape[0] - n_rows), n_rows, size, leaving.share[ROWS], leaving.key
    )
    hand_down_people(part, n_rows, size, rules.sensitive, leaving, scratch)


@inner(borrows=True)
def share_out(allowance, total, size, share, key):
    """Shares of an allowance in proportion to these sizes, whose sum is ``total``.

    They are rounded by largest remainder; between equal ones the first child goes first.
    """
    left, n_children = allowance, size.shape[0]
    for j in range(n_children):
        product = allowance * size[j]
        share[j] = product // total
        left -= share[j]
        key[j] = (total - product % total) * n_children + j
    if left > 0:
        sort(key[:n_children])
        for i in range(left):
            share[key[i] % n_children] += 1


@inner(borrows=True)
def hand_down_people(part, n_rows, size, sensitive, leaving, scratch):
    """``hand_down`` of the allowance of people, if these count; of the rows the first ``n_rows`` stay."""
    if sensitive is not None:
        share_out_people(part, n_rows, size, sensitive.people, leaving, scratch)


@inner(borrows=True)
def share_out_people(part, n_rows, size, people, leaving, scratch):
    """``hand_down_people``; what has no allowance of people has none of rows, and the other way round."""
    if people is None:
        return
    n_children, by_rows, by_people = size.shape[0], leaving.share[ROWS], leaving.share[PEOPLE]
    by_people[:n_children] = 0
    if leaving.allowance[ROWS] == part.shape[0] - n_rows:
        return  # nothing is left
    end, total = part.shape[0], np.int64(0)
    allowance = leaving.allowance[PEOPLE] - count_people(part, n_rows, end, people, scratch.stamps)
    start = np.int64(0)
    for j in range(n_children):
        end = start + size[j]
        size[j] = count_people(part, start, end, people, scratch.stamps)
        start, total = end, total + size[j]
    share_out(allowance, total, size, by_people, leaving.key)
    for j in range(n_children):
        if by_rows[j] == 0 or by_people[j] == 0:
            by_rows[j], by_people[j] = 0, 0


@inner(borrows=True)
def count_people(part, first, last, people, stamps):
    """How many people the rows part[first:last] have."""
    token, n = new_token(people, stamps), np.int64(0)
    for i in range(first, last):
        n += is_first(part[i, people.column], token, people, stamps)
    return n
