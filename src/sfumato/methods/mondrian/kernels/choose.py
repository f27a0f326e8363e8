"""Which split? The only home of ties and allowability.

The rows of a node may be at hand as ``part``, or have been counted elsewhere. Either way a choice goes by the codes
that occur and running totals up to each (``scratch.code``, ``scratch.total``): ``choose_axis`` compares the thresholds
of an ordered attribute, ``take_children`` the split along a hierarchy. Only the requirement looks beyond totals: at
``part``, or at ``bins``, running totals of what it must know. One of the two is None, and numba compiles nothing of it;
which is why each question about them is ``is not None``: only a None is known when it compiles.
Codes that were counted may come a stretch at a time, in ascending order.

Ties are broken by balance (the smaller largest part), attribute, threshold, so that the answer depends on counts alone.
"""

from __future__ import annotations

import numpy as np

from sfumato.kernels.compile import inner
from sfumato.methods.mondrian.kernels.frequency import first_reaching
from sfumato.methods.mondrian.kernels.leave_out import standing_pay
from sfumato.methods.mondrian.kernels.people import (
    counts_only_people,
    fill_between_limits,
    people_on_both_sides,
)
from sfumato.methods.mondrian.kernels.problem import BestSplit
from sfumato.methods.mondrian.kernels.rules import TWO, fill_walk, part_holds
from sfumato.methods.mondrian.kernels.scores import (
    as_score,
    best_label,
    best_score,
    score_thresholds,
    within_limit,
)
from sfumato.methods.mondrian.kernels.statistics import between_holds


@inner(borrows=True)
def no_split(n, scratch):
    """What any split of n rows beats."""
    return BestSplit(np.int64(-1), np.int64(-1), scratch.lowest, np.int64(n))


@inner(borrows=True)
def beats(score, largest, best):
    """Is this better than the best split so far, by score, then by balance? A later attribute must be strictly better."""
    return score > best.score or (score == best.score and largest < best.largest)


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
        if counts_only_people(sensitive, sensitive.people):
            return people_on_both_sides(part, axis, 0, code + 1, sensitive.people, scratch.stamps)
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
        if counts_only_people(sensitive, sensitive.people):
            fill_between_limits(part, axis, code, False, sensitive.people, scratch, scratch.is_fine)
            return
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
def best_allowable(n, first, last, scratch):
    """The best threshold in [first, last) that ``fill_allowable`` admits, -1 if none; see ``best_score``."""
    rows_to, score = scratch.total[0], scratch.score
    best, high, least = np.int64(-1), scratch.lowest, n
    for t in range(first, last):
        if not (scratch.is_fine[0, t] and scratch.is_fine[1, t]) or score[t] < high:
            continue
        largest = max(rows_to[t], n - rows_to[t])
        if score[t] > high or largest < least:
            best, high, least = np.int64(t), score[t], largest
    return best


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
def take_balanced(part, bins, axis, m, n, rules, scratch, best):
    """The best balanced allowable threshold if it beats ``best``, else ``best``."""
    first, last = within_limit(scratch.total[0, :m], n, np.int64(0), rules.least_rows)
    if first >= last:
        return best
    for t in range(first, last):
        scratch.score[t] = 0  # only balance counts
    return take_threshold(part, bins, axis, m, n, first, last, rules, scratch, best)


@inner(borrows=True, inlines=True)
def choose_axis(axis, m, n, x, node, shift, part, bins, targets, rules, table, scratch, best):
    """The best allowable threshold of an ordered attribute if it beats ``best``, that of others; else ``best``.

    scratch.code[:m]       IN   the codes that occur, or a stretch of them
    scratch.total[:, :m]   IN   running totals up to each, as ``score_thresholds`` takes them
    """
    packed = scratch.total[1, :m]
    if shift == 0 or targets.label.shape[0] == 0 or n >= table.shape[0]:
        first, last = score_thresholds(
            m, n, x, node, shift, targets, targets.several, rules.least_rows, table, scratch
        )
        if first >= last:
            return best
        return take_threshold(part, bins, axis, m, n, first, last, rules, scratch, best)
    first, last = within_limit(packed, n, shift, rules.least_rows)
    if first >= last:
        return best
    t, bits, largest = best_label(packed[first:last], shift, n, x, table)
    t, score = t + first, as_score(bits, scratch)
    if not beats(score, largest, best):
        return best
    if threshold_holds(part, bins, axis, scratch.code[t], rules, scratch):
        return BestSplit(axis, scratch.code[t], score, largest)
    score_thresholds(m, n, x, node, shift, targets, targets.several, rules.least_rows, table, scratch)
    return take_allowable(part, bins, axis, m, n, first, last, rules, scratch, best)


@inner(borrows=True)
def children_hold(part, bins, m, rules, leaving, scratch):
    """Does every child satisfy the requirement, or may those that fail be left out? Each has enough rows, or may be.

    They are the groups that ``fill_children`` made; of rows that were counted, child j ends with bin scratch.place[j].
    """
    if leaving is not None:
        return standing_pay(part, bins, m, rules, leaving, scratch)
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
    """The split into m children that ``may_divide`` admits if it is allowable and beats ``best``; else ``best``."""
    is_tie = score == best.score and largest == best.largest and axis < best.axis
    if (is_tie or beats(score, largest, best)) and children_hold(
        part, bins, m, rules, scratch.leaving, scratch
    ):
        return BestSplit(np.int64(axis), np.int64(-1), score, largest)
    return best
