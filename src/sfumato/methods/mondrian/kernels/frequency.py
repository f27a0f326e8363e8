"""Frequency sets: what happens at each code of an attribute within a node.

A frequency set has one line of words per code. With a single target (or none) the words are
(rows, sum of the target's column): for a label of two classes the sum counts its second class, so
one layout serves InfoGain and Regression. With more targets the words are (rows, rows of each class
of each label ..., sum of each number ...). All words are exact integers, so sets of parts of the rows
simply add up.
"""

from __future__ import annotations

import numpy as np

from sfumato.kernels.compile import inner, kernel


@inner(borrows=True)
def single_column(targets):
    """The column that a single target sums."""
    return targets.label[0].column if targets.label.shape[0] == 1 else targets.number[0].column


@kernel(borrows=True)
def single_packing(n, targets):
    """``packing`` of a single target."""
    return packing(n, targets.label[0].largest if targets.label.shape[0] == 1 else targets.number[0].largest)


@inner(borrows=True)
def add_row(row, at, label, number, out):
    """Add one row to the line of words that starts at out[at]."""
    out[at] += 1
    word = at + np.uint64(1)
    for t in range(label.shape[0]):
        out[word + np.uint64(row[label[t].column])] += 1
        word += np.uint64(label[t].n_classes)
    for t in range(number.shape[0]):
        out[word] += np.int64(row[number[t].column])
        word += np.uint64(1)


@kernel(borrows=True)
def packing(n, largest):
    """By how many bits the rows of a line are shifted above its sum, so that both fit into one word.

    0 if they do not fit: n rows of values up to ``largest``.
    """
    sum_bits = 1
    while (n * largest) >> sum_bits > 0 and sum_bits < 63:
        sum_bits += 1
    row_bits = 1
    while n >> row_bits > 0:
        row_bits += 1
    return sum_bits if sum_bits + row_bits <= 62 else 0


@inner(borrows=True)
def add_three(part, column, one, first, second, third, at_first, at_second, at_third, out):
    """Three frequency sets of ``add_packed``, their places held in registers."""
    for i in range(part.shape[0]):
        row = part[i]
        word = one + np.int64(row[column])
        out[at_first + np.uint64(row[first])] += word
        out[at_second + np.uint64(row[second])] += word
        out[at_third + np.uint64(row[third])] += word


@kernel(borrows=True)
def add_packed(part, column, listed, base, shift, out):
    """Add the rows of ``part`` to the frequency sets of several ordered attributes, in one pass.

    listed   (sets,) the attributes                               uint64  IN
    base     (sets,) base + code is the line of a code            uint64  IN
    out      (lines,) rows << shift | sum of ``column``           int64   IN+OUT

    Unsigned indices throughout: numba then skips its test for negative ones. Many rows, whose lines are far
    away in memory, go by blocks and three sets at a time, so that more lines are on their way at once.
    """
    one = np.int64(1) << shift
    threes = listed.shape[0] // 3 * 3 if part.shape[0] >= 4096 else 0
    for start in range(0, part.shape[0] if threes else 0, 512):
        block = part[start : start + 512]
        for j in range(0, threes, 3):
            add_three(
                block, column, one,
                listed[j], listed[j + 1], listed[j + 2], base[j], base[j + 1], base[j + 2], out,
            )  # fmt: skip
    rest = listed[threes:]
    rest_base = base[threes:]
    if rest.shape[0] == 0:
        return
    for i in range(part.shape[0]):
        row = part[i]
        word = one + np.int64(row[column])
        for j in range(rest.shape[0]):
            out[rest_base[j] + np.uint64(row[rest[j]])] += word


@inner(borrows=True)
def add_three_counts(part, first, second, third, at_first, at_second, at_third, out):
    """Three frequency sets of ``add_counts``, their places held in registers."""
    one = np.uint32(1)
    for i in range(part.shape[0]):
        row = part[i]
        out[at_first + np.uint64(row[first])] += one
        out[at_second + np.uint64(row[second])] += one
        out[at_third + np.uint64(row[third])] += one


@kernel(borrows=True)
def add_counts(part, listed, base, out):
    """``add_packed`` of rows alone; out is (lines,) uint32."""
    one = np.uint32(1)
    threes = listed.shape[0] // 3 * 3
    for start in range(0, part.shape[0], 512):
        block = part[start : start + 512]
        for j in range(0, threes, 3):
            add_three_counts(
                block, listed[j], listed[j + 1], listed[j + 2], base[j], base[j + 1], base[j + 2], out
            )
        for j in range(threes, listed.shape[0]):
            axis, at = listed[j], base[j]
            for i in range(block.shape[0]):
                out[at + np.uint64(block[i, axis])] += one


@kernel(borrows=True)
def add_sums(part, column, listed, base, out):
    """``add_packed`` where rows and sum do not fit one word; out is (2 * lines,), rows and sum by turns."""
    for i in range(part.shape[0]):
        row = part[i]
        x = np.int64(row[column])
        for j in range(listed.shape[0]):
            at = (base[j] + np.uint64(row[listed[j]])) << np.uint64(1)
            out[at] += 1
            out[at + np.uint64(1)] += x


@kernel(borrows=True)
def add_words(part, words, label, number, listed, base, out):
    """``add_sums`` for several targets; out is (lines * words,)."""
    for i in range(part.shape[0]):
        row = part[i]
        for j in range(listed.shape[0]):
            at = (base[j] + np.uint64(row[listed[j]])) * np.uint64(words)
            add_row(row, at, label, number, out)


@inner(borrows=True)
def fill_totals(lines, first_code, code, packed):
    """Compact the lines in use into running totals, clear them, and return how many there are.

    lines    (lines,) as ``add_packed`` left them            IN, cleared
    code     (distinct,) the codes in use, ascending         OUT
    packed   (distinct,) the running total up to each        OUT

    Every line is written down, and the place moves on only if it is in use: no branch to mispredict.
    """
    m = np.uint64(0)
    total = np.int64(0)
    for line in range(lines.shape[0]):
        here = lines[line]
        total += here
        code[m] = first_code + line
        packed[m] = total
        m += np.uint64(here != 0)
    lines[:] = 0
    return np.int64(m)


@inner(borrows=True)
def unpack(packed, shift, rows_to, sum_to):
    """Packed totals as rows and sums, which may take the place of the packed ones."""
    mask = (np.int64(1) << shift) - 1
    for t in range(packed.shape[0]):
        here = packed[t]
        rows_to[t] = here >> shift
        sum_to[t] = here & mask


@kernel(borrows=True)
def fill_sums(lines, first_code, code, rows_to, sum_to):
    """``fill_totals`` of what ``add_sums`` left: rows and sum up to each code, both (distinct,)."""
    m = np.uint64(0)
    n, x = np.int64(0), np.int64(0)
    for line in range(lines.shape[0] // 2):
        here = lines[2 * line]
        n += here
        x += lines[2 * line + 1]
        code[m] = first_code + line
        rows_to[m] = n
        sum_to[m] = x
        m += np.uint64(here != 0)
    lines[:] = 0
    return np.int64(m)


@inner(borrows=True)
def add_classes(part, column, n_classes, listed, base, out):
    """``add_packed`` for a label of many classes; out is (lines * classes,), rows of each class."""
    classes = np.uint64(n_classes)
    for i in range(part.shape[0]):
        row = part[i]
        c = np.uint64(row[column])
        for j in range(listed.shape[0]):
            out[(base[j] + np.uint64(row[listed[j]])) * classes + c] += 1


@inner(borrows=True)
def words_of_target(target, n):
    """How many words a code has of one target of several, among n rows: packed, rows and sum, or rows of each class."""
    if target.n_classes > 2:
        return target.n_classes
    return np.int64(1) if packing(n, target.largest) > 0 else np.int64(2)


@inner(borrows=True)
def words_of_several(targets, n):
    """How many words a code has of all targets, each counted for itself."""
    words = np.int64(0)
    for t in range(targets.label.shape[0]):
        words += words_of_target(targets.label[t], n)
    for t in range(targets.number.shape[0]):
        words += words_of_target(targets.number[t], n)
    return words


@inner(borrows=True)
def add_target(part, target, n_lines, start, listed, base, out):
    """Count one target of several: its lines begin at out[start]; returns where they end."""
    words = words_of_target(target, part.shape[0])
    own = out[start : start + words * n_lines]
    if target.n_classes > 2:
        add_classes(part, target.column, target.n_classes, listed, base, own)
    elif words == 1:
        add_packed(part, target.column, listed, base, packing(part.shape[0], target.largest), own)
    else:
        add_sums(part, target.column, listed, base, own)
    return start + words * n_lines


@inner(borrows=True)
def fill_used(lines, words, shift, first_code, code, rows_to):
    """The codes in use and the rows up to each, from lines of one target; returns how many codes there are."""
    m, running = np.uint64(0), np.int64(0)
    for line in range(lines.shape[0] // words):
        here = lines[line * words]
        if shift > 0:
            here >>= shift
        elif words > 2:
            for w in range(1, words):
                here += lines[line * words + w]
        running += here
        code[m] = first_code + line
        rows_to[m] = running
        m += np.uint64(here != 0)
    return np.int64(m)


@inner(borrows=True)
def fill_target(lines, target, words, shift, first_code, code, total, word):
    """Running totals of one target at the codes in use, from its lines, which are cleared; returns the next word.

    total   (words, distinct) its words, from ``word`` on, are those that ``add_row`` counts   OUT
    """
    n_words = max(target.n_classes, 1)
    mask = (np.int64(1) << shift) - 1
    for t in range(code.shape[0]):
        line = (code[t] - first_code) * words
        if words > 2:
            for c in range(words):
                total[word + c, t] = lines[line + c] + (total[word + c, t - 1] if t > 0 else 0)
            continue
        x = lines[line] & mask if words == 1 else lines[line + 1]
        if target.n_classes == 1:
            total[word, t] = total[0, t]
            continue
        last = word + n_words - 1
        total[last, t] = x + (total[last, t - 1] if t > 0 else 0)
        if n_words == 2:
            total[word, t] = total[0, t] - total[last, t]
    lines[:] = 0
    return word + n_words


@inner(borrows=True)
def fill_several(bins, n_lines, line, n_codes, n, first_code, targets, code, total):
    """``fill_sums`` of what ``add_target`` left of every target: all words up to each code.

    The axis has ``n_codes`` codes, and their lines begin with number ``line``; total is (words, distinct).
    """
    start, word, m = np.int64(0), np.int64(1), np.int64(-1)
    n_labels = targets.label.shape[0]
    for t in range(n_labels + targets.number.shape[0]):
        target = targets.label[t] if t < n_labels else targets.number[t - n_labels]
        words = words_of_target(target, n)
        shift = packing(n, target.largest) if words == 1 else np.int64(0)
        lines = bins[start + words * line : start + words * (line + n_codes)]
        if m < 0:
            m = fill_used(lines, words, shift, first_code, code, total[0])
        word = fill_target(lines, target, words, shift, first_code, code[:m], total, word)
        start += words * n_lines
    return m


@inner(borrows=True)
def first_reaching(totals, least):
    """The first of some ascending totals that is at least ``least``; how many there are if none is."""
    first, length = np.uint64(0), np.uint64(totals.shape[0])
    while length > 0:
        half = (length + np.uint64(1)) >> np.uint64(1)
        first += half if totals[first + half - np.uint64(1)] < least else np.uint64(0)
        length -= half
    return np.int64(first)


@inner(borrows=True)
def ones(bits):
    """How many bits of a word are set."""
    bits -= (bits >> np.uint64(1)) & np.uint64(0x5555555555555555)
    bits = (bits & np.uint64(0x3333333333333333)) + ((bits >> np.uint64(2)) & np.uint64(0x3333333333333333))
    bits = (bits + (bits >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    bits += bits >> np.uint64(8)
    bits += bits >> np.uint64(16)
    bits += bits >> np.uint64(32)
    return bits & np.uint64(0x7F)


@kernel(borrows=True)
def rank_again(column, low, high, marks):
    """Replace codes by their ranks among themselves; returns how many there are.

    Small nodes of a wide attribute would otherwise sweep mostly empty lines. 64 codes share a word of
    marks, so that a few rows in a vast range are ranked in little time.
    column   (n,) uint32  IN+OUT
    marks    (at least (high - low) // 32 + 2,) int64, all zero: marks and ranks by turns  IN, cleared
    """
    origin, one, last_bit, by = np.uint64(low), np.uint64(1), np.uint64(63), np.uint64(6)
    n_words = (np.uint64(high - low) >> by) + one
    for i in range(column.shape[0]):
        away = np.uint64(column[i]) - origin
        marks[(away >> by) << one] |= np.int64(one << (away & last_bit))
    rank = np.int64(0)
    for word in range(n_words):
        marks[(word << one) + one] = rank
        rank += np.int64(ones(np.uint64(marks[word << one])))
    for i in range(column.shape[0]):
        away = np.uint64(column[i]) - origin
        at = (away >> by) << one
        below = np.uint64(marks[at]) & ((one << (away & last_bit)) - one)
        column[i] = np.uint32(np.uint64(marks[at + one]) + ones(below))
    marks[: n_words << one] = 0
    return rank


@kernel(borrows=True)
def range_of(column, low, high):
    """Least and greatest code, given outer bounds: stops as soon as both bounds have been seen."""
    least = greatest = column[0]
    for block in range(0, column.shape[0], 256):
        for i in range(block, min(block + 256, column.shape[0])):
            code = column[np.uint64(i)]
            least = min(least, code)
            greatest = max(greatest, code)
        if np.int64(least) == low and np.int64(greatest) == high:
            break
    return np.int64(least), np.int64(greatest)


@kernel
def fill_ranges(codes, low, high):
    """Least and greatest code of every column, by blocks of rows that stay in the nearest cache.

    codes       (n, columns) uint32  IN
    low, high   (columns,) int64     OUT
    """
    for block in range(0, codes.shape[0], 256):
        part = codes[block : block + 256]
        for axis in range(codes.shape[1]):
            least, greatest = range_of(part[:, axis], np.int64(-1), np.int64(-1))
            low[axis] = least if block == 0 else min(low[axis], least)
            high[axis] = greatest if block == 0 else max(high[axis], greatest)


@inner(borrows=True)
def median_of_few(codes, rank):
    """``select_median`` by comparing all with all, without branches."""
    for i in range(codes.shape[0]):
        median = codes[i]
        below, up_to = np.int64(0), np.int64(0)
        for j in range(codes.shape[0]):
            below += np.int64(codes[j] < median)
            up_to += np.int64(codes[j] <= median)
        if below <= rank < up_to:
            return median, below, up_to - below
    return np.int64(-1), np.int64(0), np.int64(0)


@kernel(borrows=True)
def select_median(column, low, high, bins):
    """The lower median m of the codes in [low, high], with the number of rows below m and at m.

    Few rows are compared with one another. More by radix select: count codes in buckets, keep the bucket
    that holds the middle, repeat.
    bins   (at least 1024,) int64, all zero   IN, cleared
    """
    n = column.shape[0]
    rank = (n - 1) // 2
    if n <= 48:
        few = bins[:n]
        for i in range(n):
            few[i] = column[i]
        median, below, at = median_of_few(few, rank)
        few[:] = 0
        return median, below, at
    n_buckets = np.int64(16)
    while (n_buckets < 2 * n and n_buckets < 1024) or (n_buckets < n // 8 and 2 * n_buckets <= bins.shape[0]):
        n_buckets *= 2
    below = np.int64(0)
    while True:
        shift = 0
        while ((high - low) >> shift) >= n_buckets:
            shift += 1
        origin, span, by = np.uint32(low), np.uint32(high - low), np.uint32(shift)
        for i in range(n):
            away = np.uint32(column[i] - origin)  # wraps around below low, and so falls outside the span
            if away <= span:
                bins[away >> by] += 1
        bucket = np.int64(0)
        while below + bins[bucket] <= rank:
            below += bins[bucket]
            bucket += 1
        at = bins[bucket]
        bins[: ((high - low) >> shift) + 1] = 0
        new_low = low + (bucket << shift)
        if shift == 0:
            return new_low, below, at
        high = min(high, new_low + (np.int64(1) << shift) - 1)
        low = new_low


@inner(borrows=True)
def sort(values):
    """Ascending, in place: gaps of Knuth's sequence, each a straight insertion (few values, or rarely asked)."""
    gap = 1
    while gap < values.shape[0] // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, values.shape[0]):
            here = values[i]
            j = i
            while j >= gap and values[j - gap] > here:
                values[j] = values[j - gap]
                j -= gap
            values[j] = here
        gap //= 3


@inner(borrows=True)
def child_of(node, grid, code):
    """Which child of a node of a hierarchy, given as its record, holds ``code``."""
    if node.high - node.low == node.n_children:
        return code - node.low
    low, high = np.int64(0), node.n_children - 1
    while low < high:
        middle = (low + high + 1) // 2
        if grid.node[grid.child[node.child_start + middle]].low <= code:
            low = middle
        else:
            high = middle - 1
    return low


@kernel(borrows=True)
def cover(grid, node, least, greatest):
    """The lowest node at or under ``node`` that holds both codes: chains with one child in use are skipped."""
    while grid.node[node].n_children > 0:
        here = grid.node[node]
        child = grid.child[here.child_start + child_of(here, grid, least)]
        if grid.node[child].high <= greatest:
            break
        node = child
    return node
