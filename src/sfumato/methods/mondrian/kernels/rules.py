"""Does a set of rows satisfy the requirement?

Every requirement is decided in one place: ``values_hold`` for those that need counts of sensitive values,
``moments_hold`` for those that need sums. A further requirement is one branch there. Three callers gather the
statistics: ``part_holds`` of one set of rows; ``fill_walk`` of every prefix of an ordered list of rows, row by row,
which Median and the scored criteria need to find the nearest allowable threshold; ``counts_hold`` of rows that were
counted elsewhere.

The definitions are ``distinct_holds``, ``entropy_holds``, ``recursive_holds``, ``closeness_holds`` and
``variance_holds``. Where the rows are a sample, ``entropy_limit``, ``no_value_is_frequent``, ``recursive_is_sure``,
``closeness_is_sure`` and ``variance_is_sure`` ask for more: enough to say of all rows, with few errors, that the
definition holds [LDR08, section 5.2.1]; see ``sample_tests``.
"""

from __future__ import annotations

import math

import numpy as np

from sfumato.kernels.axes import NO_NUMBER
from sfumato.kernels.compile import inner, kernel
from sfumato.kernels.information import LOG_POINT, logarithm, product
from sfumato.methods.mondrian.kernels.people import (
    count_values,
    is_first,
    moments_of,
    new_token,
    pair_column,
    people_hold,
    walk_people,
)
from sfumato.methods.mondrian.kernels.problem import (
    CHANCE,
    DOUBT,
    ENTROPY_BOUNDS,
    HIGHEST_RATE,
    LEAST_ROWS,
    LOWEST_RATE,
    NORMAL,
    QUANTILES,
    RATES_PER_OCTAVE,
)
from sfumato.methods.mondrian.kernels.quantile import MANY, chi_square_quantile

TWO = np.int64(2)
"""Parts of a split by threshold."""
DOUBTFUL = 1e-7
"""An entropy nearer than this to its limit is summed afresh, by ``entropy_holds``: far more than the roundoff of a
running sum, and of the logarithms of any processor."""
ROUNDOFF = 1e-12
"""By how much an entropy may miss its limit: by the roundoff of those who verify it."""
BITS_PER_NAT = (1 << LOG_POINT) / math.log(2.0)
"""What makes a natural logarithm one to base 2 in fixed point."""


@inner(borrows=True)
def distinct_holds(values, first, last, least):
    """Are at least so many of the counts values[first:last] above 0? Those of a sample are values of all rows."""
    for v in range(first, last):
        if values[v] > 0:
            least -= 1
            if least <= 0:
                return True
    return least <= 0


@kernel(borrows=True)
def entropy_holds(values, first, last, n, log_l):
    """Definition 2.2 on counts values[first:last] of n rows: n log n - sum of x log x >= n log l, in whole numbers.

    By logarithms to base 2 in fixed point, in words as ``product`` has them. Equal up to roundoff counts as equal.
    """
    mask = (np.int64(1) << 62) - 1
    high, low = product(n, logarithm(n))
    for v in range(first, last):
        if values[v] > 1:
            more, less = product(values[v], logarithm(values[v]))
            high, low = high - more + ((low - less) >> 62), (low - less) & mask
    more, less = product(n, np.int64(max(0.0, log_l - ROUNDOFF) * BITS_PER_NAT))
    return high > more or (high == more and low >= less)


@kernel(borrows=True)
def recursive_holds(most, top_rest, n, up, down):
    """Definition 2.3: x_1 < c (n - (x_1 + ... + x_{l-1})), in whole numbers."""
    return most * down < up * (n - top_rest)


@inner(borrows=True)
def distance_of(values, start, n, rule, sets, work):
    """How far n rows, counts values[start:], are from the whole table, times n * rule.n_rows * rule.scale.

    In words as ``product`` has them; exact as long as the whole table has fewer than 2^31 rows.

    work    its last rule.n_values + 1 places are used   scratch
    """
    base = work.shape[0] - rule.n_values - 1
    work[base] = 0
    for j in range(rule.n_values):
        work[base + j + 1] = work[base + j] + values[start + sets[rule.first + j].code]
    high, low = np.int64(0), np.int64(0)
    for j in range(rule.first, rule.last):
        inside = work[base + sets[j].last] - work[base + sets[j].first]
        more, less = product(abs(rule.n_rows * inside - n * sets[j].rows), sets[j].weight)
        low += less
        high += more + (low >> 62)
        low &= (np.int64(1) << 62) - 1
    return high, low


@inner(borrows=True)
def closeness_holds(high, low, n, rule):
    """Is the distance that ``distance_of`` found at most t? [LLV07]"""
    high1, low1 = product(low, rule.down)
    high1 += high * rule.down
    high2, low2 = product(n * rule.n_rows, rule.up)
    return high1 < high2 or (high1 == high2 and low1 <= low2)


@kernel(borrows=True)
def variance_holds(n, total, squares_high, squares_low, least):
    """Definition 2.4: (n * sum of squares - total^2) / n^2 >= least, the difference taken exactly.

    The squares are 2^32 * squares_high + squares_low. Without a number there is no variance: 0.
    """
    if n == 0:
        return least <= 0.0
    return spread_of(n, total, squares_high, squares_low) >= least * float(n) * float(n)


@inner(borrows=True)
def spread_of(n, total, squares_high, squares_low):
    """The difference n * sum of squares - total^2, see ``variance_holds``."""
    high, low = product(n, squares_low)
    high2, low2 = product(n, squares_high)
    # add (high2, low2) * 2^32: shift the pair of 62-bit words by 32
    low_part = (low2 & ((np.int64(1) << 30) - 1)) << 32
    high += (high2 << 32) + (low2 >> 30)
    low += low_part
    high += low >> 62
    low &= (np.int64(1) << 62) - 1
    minus_high, minus_low = product(total, total)
    high, low = high - minus_high, low - minus_low
    if low < 0:  # borrow: two large floats of opposite sign would not cancel exactly
        high, low = high - 1, low + (np.int64(1) << 62)
    return float(high) * 4611686018427387904.0 + float(low)


# ---- tests on a sample -----------------------------------------------------------------------------
# They take numbers, not ``Rules``: handing on a dozen arrays costs more than the test itself.


@inner(borrows=True)
def is_sample(rules):
    """Are there more rows than these?"""
    return rules.tests.shape[0] > 0


@inner(borrows=True)
def least_rows_of(rules, n_parts):
    """Rows that each of so many parts must have."""
    return np.int64(rules.tests[LEAST_ROWS, n_parts] if is_sample(rules) else rules.least_rows)


@inner(borrows=True)
def entropy_limit(log_l, r, n_parts, n, tests):
    """The entropy that n rows must have for rule r."""
    if log_l <= 0.0:
        return log_l
    at = max(0, math.ceil((math.log2(tests[DOUBT, n_parts] / n) - LOWEST_RATE) * RATES_PER_OCTAVE))
    return (
        tests[ENTROPY_BOUNDS + r, 1 + at]
        if at <= (HIGHEST_RATE - LOWEST_RATE) * RATES_PER_OCTAVE
        else math.inf
    )


@inner(borrows=True)
def no_value_is_frequent(bound, doubt, most, n):
    """Is the most frequent value of n rows so rare that the entropy of all rows cannot be too low?"""
    share = most / n
    if share >= bound:
        return False
    away = share * math.log(share / bound) + (1.0 - share) * math.log((1.0 - share) / (1.0 - bound))
    return n * away >= doubt


@inner(borrows=True)
def recursive_is_sure(most, top_rest, n, up, down, z, correction):
    """Is ``recursive_holds`` of all rows? By z standard errors [LDR08, section 5.2.1]."""
    c, first, tail = up / down, most / n, (n - top_rest) / n
    error = c * c * tail * (1.0 - tail) + first * (1.0 - first)
    return c * tail - first > z * math.sqrt(error / (n - 1) * correction)


@inner(borrows=True)
def closeness_is_sure(high, low, n, rule, doubt):
    """Is ``closeness_holds`` of all rows? By the triangle inequality, see ``sample_tests``."""
    distance = (float(high) * 4611686018427387904.0 + float(low)) / (float(n) * rule.n_rows * rule.scale)
    return distance + math.sqrt((rule.n_values * math.log(2.0) + doubt) / (2.0 * n)) <= rule.t


@inner(borrows=True)
def variance_is_sure(n, total, squares_high, squares_low, least, n_parts, tests):
    """Is ``variance_holds`` of all rows? By a quantile of chi-square [LDR08, section 5.2.1]."""
    if n < 2:
        return False
    if n_parts == TWO and n - 1 <= MANY:
        quantile = tests[QUANTILES, n - 1]
    else:
        quantile = chi_square_quantile(tests[CHANCE, n_parts], tests[NORMAL, n_parts], n - 1)
    return spread_of(n, total, squares_high, squares_low) >= least * quantile * float(n)


# ---- the requirement -------------------------------------------------------------------------------


@inner(borrows=True)
def values_hold(values, s, n, most, inner, sums, n_parts, rules):
    """What is required of sensitive attribute ``s``, on n rows, one of so many parts.

    values        (sensitive values,) how often each occurs, those of s from its start to its end   IN
    most, inner, sums   as ``summarize`` finds them; inner may carry the roundoff of a running sum
    """
    start, end = rules.values[s].start, rules.values[s].end
    is_tested = rules.correction > 0.0
    for r in range(rules.distinct.shape[0]):
        if rules.distinct[r].of == s and not distinct_holds(values, start, end, rules.distinct[r].l):
            return False
    for r in range(rules.closeness.shape[0]):
        if rules.closeness[r].of == s:
            rule = rules.closeness[r]
            high, low = distance_of(values, start, n, rule, rules.sets, sums)
            if not closeness_holds(high, low, n, rule):
                return False
            if is_tested and not closeness_is_sure(high, low, n, rule, rules.tests[DOUBT, n_parts]):
                return False
    for r in range(rules.entropy.shape[0]):
        if rules.entropy[r].of == s:
            limit = rules.entropy[r].log
            if is_tested:
                limit = entropy_limit(limit, r, n_parts, n, rules.tests)
            excess = math.log(n) - inner / n - limit
            holds = excess >= DOUBTFUL or (
                excess >= -DOUBTFUL and entropy_holds(values, start, end, n, limit)
            )
            if is_tested and not holds:
                bound, doubt = rules.tests[ENTROPY_BOUNDS + r, 0], rules.tests[DOUBT, n_parts]
                holds = no_value_is_frequent(bound, doubt, most, n)
            if not holds:
                return False
    for r in range(rules.recursive.shape[0]):
        if rules.recursive[r].of == s:
            up, down = rules.recursive[r].up, rules.recursive[r].down
            if not recursive_holds(most, sums[r], n, up, down):
                return False
            if is_tested and not recursive_is_sure(
                most, sums[r], n, up, down, rules.tests[NORMAL, n_parts], rules.correction
            ):
                return False
    return True


@inner(borrows=True)
def summarize(values, s, rules, work):
    """(largest count, sum of x ln x) of sensitive attribute ``s``, as far as entropy and recursive diversity need them.

    work    for each recursive rule the sum of its l - 1 largest counts   OUT, and room for as many counts
    """
    start, end = rules.values[s].start, rules.values[s].end
    most, inner = np.int64(0), 0.0
    if rules.entropy.shape[0] > 0:
        for v in range(start, end):
            most = max(most, values[v])
            if values[v] > 1:
                inner += values[v] * math.log(values[v])
    for r in range(rules.recursive.shape[0]):
        if rules.recursive[r].of == s:
            top = rules.recursive.shape[0]
            work[r] = sum_of_top(values, start, end, work, top, top + rules.recursive[r].l - 1)
            most = work[top]
    return most, inner


@inner(borrows=True)
def sum_of_top(values, first, last, work, top, end):
    """The sum of the largest of the counts values[first:last]: as many as fit in work[top:end], where they stand."""
    for j in range(top, end):
        work[j] = 0
    for v in range(first, last):
        count = values[v]
        if count > work[end - 1]:
            j = end - 1
            while j > top and work[j - 1] < count:
                work[j] = work[j - 1]
                j -= 1
            work[j] = count
    total = np.int64(0)
    for j in range(top, end):
        total += work[j]
    return total


@inner(borrows=True)
def moments_hold(n, total, squares_high, squares_low, r, n_parts, rules):
    """What is required of a sensitive number by rule r of variance; the moments are those of ``moments_of``."""
    least = rules.variance[r].least
    if rules.correction > 0.0 and least > 0.0:
        return variance_is_sure(n, total, squares_high, squares_low, least, n_parts, rules.tests)
    return variance_holds(n, total, squares_high, squares_low, least)


@inner(borrows=True)
def counts_hold(n, values, moments, rules, work):
    """The requirement on n rows that were counted, all there are.

    values    (sensitive values,)        IN
    moments   (rules of variance, 4)     IN
    work      see ``summarize``          scratch
    """
    return n >= rules.least_rows and sensitive_counts_hold(n, values, moments, rules.sensitive, work)


@inner(borrows=True)
def sensitive_counts_hold(n, values, moments, rules, work):
    """What ``counts_hold`` asks of sensitive values, if anything."""
    if rules is None:
        return True
    for s in range(rules.values.shape[0]):
        most, inner = summarize(values, s, rules, work)
        if not values_hold(values, s, n, most, inner, work, TWO, rules):
            return False
    for r in range(rules.variance.shape[0]):
        if not moments_hold(moments[r, 0], moments[r, 1], moments[r, 2], moments[r, 3], r, TWO, rules):
            return False
    return True


@inner(borrows=True)
def part_holds(rows, order, first, last, n_parts, rules, scratch):
    """The requirement on the rows order[first:last], one of so many parts.

    rows     (n, columns)  uint32  IN
    order    (n,) positions        IN
    """
    return last - first >= least_rows_of(rules, n_parts) and sensitive_rows_hold(
        rows, order, first, last, n_parts, rules.sensitive, scratch
    )


@inner(borrows=True)
def sensitive_rows_hold(rows, order, first, last, n_parts, rules, scratch):
    """What ``part_holds`` asks of sensitive values, if anything."""
    if rules is None:
        return True
    if not people_hold(rows, order, first, last, rules.people, scratch.stamps):
        return False
    values = scratch.values
    for s in range(rules.values.shape[0]):
        start, end = rules.values[s].start, rules.values[s].end
        n = count_values(rows, order, first, last, s, rules.values[s], rules.people, scratch.stamps, values)
        most, inner = summarize(values, s, rules, scratch.work)
        holds = values_hold(values, s, n, most, inner, scratch.work, n_parts, rules)
        values[start:end] = 0
        if not holds:
            return False
    for r in range(rules.variance.shape[0]):
        told_by = pair_column(rules.values.shape[0] + r, rules.variance[r].column, rules.people)
        n_numbers, total, high, low = moments_of(
            rows, order, first, last, rules.variance[r].column, told_by, rules.people, scratch.stamps
        )
        if not moments_hold(n_numbers, total, high, low, r, n_parts, rules):
            return False
    return True


@inner(borrows=True)
def fill_walk(rows, order, ends, n_ends, backward, rules, scratch, out):
    """Does the requirement hold of each prefix (or with ``backward`` of each rest) of ``order``?

    ends    (n_ends,) prefix t is order[:ends[t]], its rest order[ends[t]:]   IN
    out     (n_ends,) bool                                                     OUT
    """
    n_rows = ends[n_ends - 1]
    for t in range(n_ends):
        size = n_rows - ends[t] if backward else ends[t]
        out[t] = size >= rules.least_rows
    walk_sensitive(rows, order, ends, n_ends, backward, rules.sensitive, scratch, out)


@inner(borrows=True)
def walk_sensitive(rows, order, ends, n_ends, backward, rules, scratch, out):
    """What ``fill_walk`` asks of sensitive values, if anything."""
    if rules is None:
        return
    walk_people(rows, order, ends, n_ends, backward, rules.people, scratch.stamps, out)
    for s in range(rules.values.shape[0]):
        walk_values(rows, order, ends, n_ends, backward, s, rules, rules.people, scratch, out)
    for r in range(rules.variance.shape[0]):
        walk_variance(rows, order, ends, n_ends, backward, r, rules, rules.people, scratch.stamps, out)


@inner(borrows=True)
def walk_values(rows, order, ends, n_ends, backward, s, rules, people, scratch, out):
    """What is required of sensitive attribute ``s``, for ``fill_walk``; clears what fails.

    The statistics of ``summarize`` are kept up to date row by row.
    """
    n_rows = ends[n_ends - 1]
    start, end = rules.values[s].start, rules.values[s].end
    column = rules.values[s].column
    values, is_top, top, n_top = scratch.values, scratch.is_top, scratch.top, scratch.n_top
    needs_entropy, n_recursive = rules.entropy.shape[0] > 0, rules.recursive.shape[0]
    sums = scratch.work
    sums[:n_recursive] = 0
    n_top[:] = 0
    most = np.int64(0)
    inner = 0.0
    seen, n = 0, 0
    told_by, token = pair_column(s, column, people), new_token(people, scratch.stamps)
    for step in range(n_ends):
        t = n_ends - 1 - step if backward else step
        until = n_rows - ends[t] if backward else ends[t]
        while seen < until:
            row = order[n_rows - 1 - seen if backward else seen]
            seen += 1
            if not is_first(rows[row, told_by], token, people, scratch.stamps):
                continue
            n += 1
            v = start + rows[row, column]
            old = values[v]
            values[v] = old + 1
            if needs_entropy:
                inner += (old + 1) * math.log(old + 1) - (old * math.log(old) if old > 0 else 0.0)
            most = max(most, old + 1)
            for r in range(n_recursive):
                if rules.recursive[r].of == s:
                    # top[r] lists the values (not counts) that hold the l - 1 largest counts
                    if is_top[r, v]:
                        sums[r] += 1
                    elif n_top[r] < rules.recursive[r].l - 1:
                        top[r, n_top[r]] = v
                        n_top[r] += 1
                        is_top[r, v] = True
                        sums[r] += old + 1
                    else:
                        least = 0
                        for j in range(1, n_top[r]):
                            if values[top[r, j]] < values[top[r, least]]:
                                least = j
                        if values[top[r, least]] < old + 1:
                            sums[r] += old + 1 - values[top[r, least]]
                            is_top[r, top[r, least]] = False
                            top[r, least] = v
                            is_top[r, v] = True
        if out[t]:
            out[t] = values_hold(values, s, n, most, inner, sums, TWO, rules)
    values[start:end] = 0
    is_top[:, start:end] = False


@inner(borrows=True)
def walk_variance(rows, order, ends, n_ends, backward, r, rules, people, stamps, out):
    """What is required by rule r of variance, for ``fill_walk``; clears what fails."""
    n_rows = ends[n_ends - 1]
    column = rules.variance[r].column
    n, total = np.int64(0), np.int64(0)
    squares_high, squares_low = np.int64(0), np.int64(0)
    seen = 0
    told_by, token = pair_column(rules.values.shape[0] + r, column, people), new_token(people, stamps)
    for step in range(n_ends):
        t = n_ends - 1 - step if backward else step
        until = n_rows - ends[t] if backward else ends[t]
        while seen < until:
            row = order[n_rows - 1 - seen if backward else seen]
            x = rows[row, column]
            if x != NO_NUMBER and is_first(rows[row, told_by], token, people, stamps):
                square = np.uint64(x) * np.uint64(x)
                n += 1
                total += np.int64(x)
                squares_high += np.int64(square >> np.uint64(32))
                squares_low += np.int64(square & np.uint64(0xFFFFFFFF))
            seen += 1
        if out[t]:
            out[t] = moments_hold(n, total, squares_high, squares_low, r, TWO, rules)
