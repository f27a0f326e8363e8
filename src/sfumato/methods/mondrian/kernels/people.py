"""How many people, and how many pairs of a person and a value, some rows have.

A test stamps each person whom it meets with a token of its own, so that nobody is counted twice and nothing has to be
cleared: ``stamps[0, 0]`` is the last token, and the stamp of number x is ``stamps[0, x + 1]``; below it is a place that
the test gives them. Pairs are numbered as people are, and share the stamps with them, one test after the other. Where
``people`` is None, rows are counted, and numba compiles nothing of all this.
"""

from __future__ import annotations

import numpy as np

from sfumato.kernels.axes import NO_NUMBER
from sfumato.kernels.compile import inner

LAST_TOKEN = 2**31 - 1


@inner(borrows=True)
def new_token(people, stamps):
    """A token that nobody is stamped with."""
    if people is None:
        return np.int32(0)
    if stamps[0, 0] == LAST_TOKEN:
        stamps[0, :] = 0
    stamps[0, 0] += 1
    return stamps[0, 0]


@inner(borrows=True, inlines=True)
def is_first(number, token, people, stamps):
    """Is this the first row of a person, or a pair, in the test with this token? Then it is stamped; rows all are."""
    if people is None:
        return True
    at = np.int64(number) + 1
    if stamps[0, at] == token:
        return False
    stamps[0, at] = token
    return True


@inner(borrows=True, inlines=True)
def pair_column(place, column, people):
    """The column by which the values in ``column`` are told apart: that of pairs, at this place, where people count."""
    return column if people is None else people.pairs + place


@inner(borrows=True)
def people_hold(rows, order, first, last, people, stamps):
    """Do the rows order[first:last] have enough people?"""
    if people is None:
        return True
    if last - first >= people.enough:
        return True
    token, n = new_token(people, stamps), np.int64(0)
    for i in range(first, last):
        if is_first(rows[order[i], people.column], token, people, stamps):
            n += 1
            if n >= people.least:
                return True
    return n >= people.least


@inner(borrows=True)
def counts_only_people(rules, people):
    """Is the number of people all that is required of a group?"""
    if people is None:
        return False
    return rules.values.shape[0] == 0 and rules.variance.shape[0] == 0


@inner(borrows=True)
def people_within(part, axis, low, high, is_inside, people, stamps):
    """Are there enough people with a code from ``low`` up to ``high``, or with one that is not?"""
    if people is None:
        return True
    token, n = new_token(people, stamps), np.int64(0)
    for i in range(part.shape[0]):
        if (low <= part[i, axis] < high) == is_inside and is_first(
            part[i, people.column], token, people, stamps
        ):
            n += 1
            if n >= people.least:
                return True
    return n >= people.least


@inner(borrows=True)
def people_on_both_sides(part, axis, low, high, people, stamps):
    """``people_within`` the codes from ``low`` up to ``high``, and also outside."""
    return people_within(part, axis, low, high, True, people, stamps) and people_within(
        part, axis, low, high, False, people, stamps
    )


AFTER_ALL = np.int64(1 << 40)
"""Above all codes."""


@inner(borrows=True)
def find_limits(part, axis, missing_is_last, people, scratch):
    """The first and the last code at which a threshold leaves enough people on both sides; first > last: nowhere.

    Up to t there are those whose least code is at most t, and beyond it those whose greatest code is above t. So both
    ends are found by selecting one of each, and all codes between them will do.

    missing_is_last   does code 0, which is missing, come after all others?
    scratch.key, scratch.order   OUT
    """
    if people is None:
        return np.int64(0), AFTER_ALL
    stamps, least, greatest = scratch.stamps, scratch.key, scratch.order
    token, n = new_token(people, stamps), np.int64(0)
    for i in range(part.shape[0]):
        code, at = np.int64(part[i, axis]), np.int64(part[i, people.column]) + 1
        if missing_is_last and code == 0:
            code = AFTER_ALL
        if stamps[0, at] != token:
            stamps[0, at], stamps[1, at] = token, n
            least[n], greatest[n] = code, code
            n += 1
        else:
            place = stamps[1, at]
            least[place], greatest[place] = min(least[place], code), max(greatest[place], code)
    if n < people.least:
        return np.int64(1), np.int64(0)
    return select(least[:n], people.least - 1), select(greatest[:n], n - people.least) - 1


@inner(borrows=True)
def select(values, rank):
    """The value of this rank, from 0 up; the others are moved about (Hoare's find)."""
    low, high = np.int64(0), np.int64(values.shape[0] - 1)
    while low < high:
        pivot, i, j = values[(low + high) // 2], low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if rank <= j:
            high = j
        elif rank >= i:
            low = i
        else:
            break
    return values[rank]


@inner(borrows=True)
def fill_between_limits(part, axis, code, missing_is_last, people, scratch, out):
    """Which of these codes are thresholds that leave enough people on both sides; out is (2, codes) bool."""
    first, last = find_limits(part, axis, missing_is_last, people, scratch)
    for t in range(code.shape[0]):
        is_between = first <= code[t] <= last
        out[0, t], out[1, t] = is_between, is_between


@inner(borrows=True)
def nearest_limit(part, axis, code, people, scratch):
    """(found, code): the threshold with enough people on both sides that is nearest to ``code``, which is none."""
    first, last = find_limits(part, axis, False, people, scratch)
    if first > last:
        return False, np.int64(-1)
    if code < first:
        return True, first
    nearest = np.int64(-1)
    for i in range(part.shape[0]):
        if part[i, axis] <= last:
            nearest = max(nearest, np.int64(part[i, axis]))
    return True, nearest


@inner(borrows=True)
def walk_people(rows, order, ends, n_ends, backward, people, stamps, out):
    """Clear each prefix (or with ``backward`` each rest) of ``order`` that has too few people; see ``fill_walk``."""
    if people is None:
        return
    n_rows, seen, n = ends[n_ends - 1], np.int64(0), np.int64(0)
    token = new_token(people, stamps)
    for step in range(n_ends):
        t = n_ends - 1 - step if backward else step
        until = n_rows - ends[t] if backward else ends[t]
        if n >= people.least:
            return  # and so it will be from here on
        while seen < until and n < people.least:
            row = order[n_rows - 1 - seen if backward else seen]
            if is_first(rows[row, people.column], token, people, stamps):
                n += 1
            seen += 1
        if n < people.least:
            out[t] = False


@inner(borrows=True)
def count_values(rows, order, first, last, s, attribute, people, stamps, values):
    """Add the rows order[first:last] to the counts of sensitive attribute ``s``; returns how many count."""
    told_by = pair_column(s, attribute.column, people)
    token, n = new_token(people, stamps), np.int64(0)
    for i in range(first, last):
        row = order[i]
        if is_first(rows[row, told_by], token, people, stamps):
            values[attribute.start + rows[row, attribute.column]] += 1
            n += 1
    return n


@inner(borrows=True)
def moments_of(rows, order, first, last, column, told_by, people, stamps):
    """(rows with a number that count, their sum, sum of squares in two words) of rows order[first:last].

    told_by   the column of pairs where people count; otherwise any
    """
    n, total = np.int64(0), np.int64(0)
    squares_high, squares_low = np.int64(0), np.int64(0)
    token = new_token(people, stamps)
    for i in range(first, last):
        x = rows[order[i], column]
        if x != NO_NUMBER and is_first(rows[order[i], told_by], token, people, stamps):
            square = np.uint64(x) * np.uint64(x)
            n += 1
            total += np.int64(x)
            squares_high += np.int64(square >> np.uint64(32))
            squares_low += np.int64(square & np.uint64(0xFFFFFFFF))
    return n, total, squares_high, squares_low
