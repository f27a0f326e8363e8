"""Does a set of rows satisfy the requirement?

``part_holds`` looks at one set of rows. ``fill_walk`` looks at every prefix of an ordered list of rows
at once, updating the statistics row by row: what Median and the scored criteria need to find the
nearest allowable threshold. Both end in the same tests, so they cannot disagree.

The definitions are ``entropy_holds``, ``recursive_holds`` and ``variance_holds``. Where the rows are a sample,
``entropy_limit``, ``no_value_is_frequent``, ``recursive_is_sure`` and ``variance_is_sure`` ask for more: enough
to say of all rows, with few errors, that the definition holds [LDR08, section 5.2.1]; see mondrian.confidence.
"""

from __future__ import annotations

import math

import numpy as np

from sfumato.kernels.compile import inner, kernel
from sfumato.kernels.problem import LOWEST_RATE, NO_NUMBER, RATES_PER_OCTAVE
from sfumato.kernels.quantile import chi_square_quantile

TWO = np.int64(2)
"""Parts of a split by threshold."""


@kernel
def entropy_holds(values, first, last, n, log_l):
    """Definition 2.2 on counts values[first:last] of n rows; equal up to roundoff counts as equal."""
    inner = 0.0
    for v in range(first, last):
        if values[v] > 1:
            inner += values[v] * math.log(values[v])
    return math.log(n) - inner / n >= log_l - 1e-12


@kernel
def recursive_holds(most, top_rest, n, up, down):
    """Definition 2.3: x_1 < c (n - (x_1 + ... + x_{l-1})), in whole numbers."""
    return most * down < up * (n - top_rest)


@kernel
def product(a, b):
    """A * b of two non-negative int64 as (high, low) words of 62 bits."""
    mask = (np.int64(1) << 31) - 1
    a1, a0 = a >> 31, a & mask
    b1, b0 = b >> 31, b & mask
    middle = a1 * b0 + a0 * b1
    low = a0 * b0 + ((middle & mask) << 31)
    carry = low >> 62
    return a1 * b1 + (middle >> 31) + carry, low & ((np.int64(1) << 62) - 1)


@kernel
def variance_holds(n, total, squares_high, squares_low, least):
    """Definition 2.4: (n * sum of squares - total^2) / n^2 >= least, the difference taken exactly.

    The squares are 2^32 * squares_high + squares_low. Without a number there is no variance: 0.
    """
    if n == 0:
        return least <= 0.0
    return spread_of(n, total, squares_high, squares_low) >= least * float(n) * float(n)


@inner
def spread_of(n, total, squares_high, squares_low):
    """N * sum of squares - total^2, see ``variance_holds``."""
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


@inner
def is_sample(rules):
    """Are there more rows than these?"""
    return rules.limits.shape[0] > 0


@inner
def least_rows_of(rules, n_parts):
    """Rows that each of so many parts must have."""
    return rules.limits[n_parts].least_rows if is_sample(rules) else np.int64(rules.least_rows)


@inner
def entropy_limit(rules, r, n_parts, n):
    """The entropy that n rows must have."""
    log_l = rules.entropy[r].log
    if rules.entropy_bounds.shape[0] == 0 or log_l <= 0.0:
        return log_l
    rate = math.log2(rules.limits[n_parts].doubt / n)
    at = 1 + max(0, math.ceil((rate - LOWEST_RATE) * RATES_PER_OCTAVE))
    return rules.entropy_bounds[r, at] if at < rules.entropy_bounds.shape[1] else math.inf


@inner
def no_value_is_frequent(rules, r, n_parts, most, n):
    """Is the most frequent value of n rows so rare that the entropy of all rows cannot be too low?"""
    if rules.entropy_bounds.shape[0] == 0:
        return False
    share, bound = most / n, rules.entropy_bounds[r, 0]
    if share >= bound:
        return False
    away = share * math.log(share / bound) + (1.0 - share) * math.log((1.0 - share) / (1.0 - bound))
    return n * away >= rules.limits[n_parts].doubt


@inner
def recursive_is_sure(rules, r, n_parts, most, top_rest, n):
    """``recursive_holds``, and on a sample [LDR08, section 5.2.1] by z standard errors."""
    up, down = rules.recursive[r].up, rules.recursive[r].down
    if not recursive_holds(most, top_rest, n, up, down):
        return False
    if not is_sample(rules):
        return True
    c, first, tail = up / down, most / n, (n - top_rest) / n
    error = c * c * tail * (1.0 - tail) + first * (1.0 - first)
    z = rules.limits[n_parts].z
    return z == 0.0 or c * tail - first > z * math.sqrt(error / (n - 1) * rules.correction)


@inner
def variance_is_sure(rules, r, n_parts, n, total, squares_high, squares_low):
    """``variance_holds``, and on a sample [LDR08, section 5.2.1] by the quantile of chi-square."""
    least = rules.variance[r].least
    if not is_sample(rules) or rules.limits[n_parts].z == 0.0 or least <= 0.0:
        return variance_holds(n, total, squares_high, squares_low, least)
    if n < 2:
        return False
    if n_parts == TWO and n - 1 < rules.quantiles.shape[0]:
        quantile = rules.quantiles[n - 1]
    else:
        limit = rules.limits[n_parts]
        quantile = chi_square_quantile(limit.alpha, limit.z, n - 1)
    return spread_of(n, total, squares_high, squares_low) >= least * quantile * float(n)


# ---- the requirement -------------------------------------------------------------------------------


@inner
def segment_holds(rows, order, first, last, rules, scratch):
    """The requirement on the rows order[first:last], one of two parts; see ``part_holds``."""
    return part_holds(rows, order, first, last, TWO, rules, scratch)


@inner
def part_holds(rows, order, first, last, n_parts, rules, scratch):
    """The requirement on the rows order[first:last], one of so many parts.

    rows     (n, columns)  uint32  IN
    order    (n,) positions        IN
    """
    n = last - first
    if n < least_rows_of(rules, n_parts):
        return False
    if rules.count_only:
        return True
    values = scratch.values
    holds = True
    for s in range(rules.values.shape[0]):
        start, end = rules.values[s].start, rules.values[s].end
        column = rules.values[s].column
        for i in range(first, last):
            values[start + rows[order[i], column]] += 1
        for r in range(rules.entropy.shape[0]):
            if rules.entropy[r].of == s and holds:
                holds = entropy_holds(values, start, end, n, entropy_limit(rules, r, n_parts, n))
                if not holds and is_sample(rules):
                    most = np.int64(0)
                    for v in range(start, end):
                        most = max(most, values[v])
                    holds = no_value_is_frequent(rules, r, n_parts, most, n)
        for r in range(rules.recursive.shape[0]):
            if rules.recursive[r].of == s and holds:
                length = rules.recursive[r].l - 1
                top = scratch.top[r]
                top[:length] = 0
                for v in range(start, end):
                    place_in_top(top, length, values[v])
                top_rest = 0
                for j in range(length):
                    top_rest += top[j]
                holds = recursive_is_sure(rules, r, n_parts, top[0], top_rest, n)
        values[start:end] = 0
        if not holds:
            return False
    for r in range(rules.variance.shape[0]):
        if not variance_of_part_holds(rows, order, first, last, n_parts, r, rules):
            return False
    return True


@inner
def place_in_top(top, length, count):
    """Keep the ``length`` largest counts in ``top``, largest first."""
    if length == 0 or count <= top[length - 1]:
        return
    j = length - 1
    while j > 0 and top[j - 1] < count:
        top[j] = top[j - 1]
        j -= 1
    top[j] = count


@inner
def variance_of_part_holds(rows, order, first, last, n_parts, r, rules):
    column = rules.variance[r].column
    n, total = np.int64(0), np.int64(0)
    squares_high, squares_low = np.int64(0), np.int64(0)
    for i in range(first, last):
        x = rows[order[i], column]
        if x != NO_NUMBER:
            square = np.uint64(x) * np.uint64(x)
            n += 1
            total += np.int64(x)
            squares_high += np.int64(square >> np.uint64(32))
            squares_low += np.int64(square & np.uint64(0xFFFFFFFF))
    return variance_is_sure(rules, r, n_parts, n, total, squares_high, squares_low)


@inner
def fill_walk(rows, order, ends, n_ends, backward, rules, scratch, out):
    """Does the requirement hold of each prefix (or with ``backward`` of each rest) of ``order``?

    ends    (n_ends,) prefix t is order[:ends[t]], its rest order[ends[t]:]   IN
    out     (n_ends,) bool                                                     OUT
    """
    n_rows = ends[n_ends - 1]
    for t in range(n_ends):
        size = n_rows - ends[t] if backward else ends[t]
        out[t] = size >= rules.least_rows
    if rules.count_only:
        return
    for s in range(rules.values.shape[0]):
        walk_values(rows, order, ends, n_ends, backward, s, rules, scratch, out)
    for r in range(rules.variance.shape[0]):
        walk_variance(rows, order, ends, n_ends, backward, r, rules, out)


@inner
def walk_values(rows, order, ends, n_ends, backward, s, rules, scratch, out):
    """Entropy and recursive diversity of sensitive attribute ``s`` for ``fill_walk``; clears what fails."""
    n_rows = ends[n_ends - 1]
    start, end = rules.values[s].start, rules.values[s].end
    column = rules.values[s].column
    values, is_top, top = scratch.values, scratch.is_top, scratch.top
    n_recursive = rules.recursive.shape[0]
    sums = np.zeros(n_recursive, dtype=np.int64)
    n_top = np.zeros(n_recursive, dtype=np.int64)
    most = np.int64(0)
    inner = 0.0  # running sum of x ln x; its roundoff is far below the doubt that asks for a fresh sum
    seen = 0
    for step in range(n_ends):
        t = n_ends - 1 - step if backward else step
        until = n_rows - ends[t] if backward else ends[t]
        while seen < until:
            v = start + rows[order[n_rows - 1 - seen if backward else seen], column]
            old = values[v]
            values[v] = old + 1
            inner += (old + 1) * math.log(old + 1) - (old * math.log(old) if old > 0 else 0.0)
            most = max(most, old + 1)
            for r in range(n_recursive):
                if rules.recursive[r].of == s and rules.recursive[r].l > 1:
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
            seen += 1
        if not out[t]:
            continue
        for r in range(rules.entropy.shape[0]):
            if rules.entropy[r].of == s and out[t]:
                limit = entropy_limit(rules, r, TWO, seen)
                doubt = math.log(seen) - inner / seen - limit
                if doubt < -1e-7:
                    out[t] = no_value_is_frequent(rules, r, TWO, most, seen)
                elif doubt < 1e-7:
                    out[t] = entropy_holds(values, start, end, seen, limit) or no_value_is_frequent(
                        rules, r, TWO, most, seen
                    )
        for r in range(n_recursive):
            if rules.recursive[r].of == s and rules.recursive[r].l > 1 and out[t]:
                out[t] = recursive_is_sure(rules, r, TWO, most, sums[r], seen)
    values[start:end] = 0
    is_top[:, start:end] = False


@inner
def walk_variance(rows, order, ends, n_ends, backward, r, rules, out):
    n_rows = ends[n_ends - 1]
    column = rules.variance[r].column
    n, total = np.int64(0), np.int64(0)
    squares_high, squares_low = np.int64(0), np.int64(0)
    seen = 0
    for step in range(n_ends):
        t = n_ends - 1 - step if backward else step
        until = n_rows - ends[t] if backward else ends[t]
        while seen < until:
            x = rows[order[n_rows - 1 - seen if backward else seen], column]
            if x != NO_NUMBER:
                square = np.uint64(x) * np.uint64(x)
                n += 1
                total += np.int64(x)
                squares_high += np.int64(square >> np.uint64(32))
                squares_low += np.int64(square & np.uint64(0xFFFFFFFF))
            seen += 1
        if out[t] and not variance_is_sure(rules, r, TWO, n, total, squares_high, squares_low):
            out[t] = False
