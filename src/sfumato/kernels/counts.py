"""Counts by key: added to a table, or added up where equal keys stand side by side."""

from __future__ import annotations

import numpy as np

from sfumato.kernels.compile import kernel


@kernel
def add_rows(keys, out):
    """Count one row for each key.

    keys  (n,) uint64           IN
    out   (keys, 1) int64       IN+OUT
    """
    for i in range(keys.shape[0]):
        out[keys[i], 0] += 1


@kernel
def add_words(keys, words, out):
    """Add words to those of their keys.

    keys   (n,) uint64          IN
    words  (n, words) int64     IN
    out    (keys, words) int64  IN+OUT
    """
    for i in range(keys.shape[0]):
        for w in range(words.shape[1]):
            out[keys[i], w] += words[i, w]


@kernel
def append_places(keys, bits):
    """Put the place of each key behind it, as its last ``bits``: sorted keys then say where they stood.

    keys  (n,) uint64           IN+OUT
    """
    for i in range(keys.shape[0]):
        keys[i] = keys[i] << np.uint64(bits) | np.uint64(i)


@kernel
def add_up_rows(keys, out):
    """Put each of some sorted keys once to the front, and count it there: how many there are.

    keys  (n,) uint64 ascending  IN+OUT
    out   (n, 1) int64           OUT
    """
    n, i = 0, 0
    while i < keys.shape[0]:
        key, first = keys[i], i
        while i < keys.shape[0] and keys[i] == key:
            i += 1
        keys[n], out[n, 0] = key, i - first
        n += 1
    return n


@kernel
def add_up_words(keys, bits, words, out):
    """Put each of some sorted keys once to the front, and add up its words there: how many there are.

    keys   (n,) uint64 ascending; the last ``bits`` are a place in ``words``   IN+OUT
    bits   0: the words are in the order of the keys                          IN
    words  (n, words) int64                                                   IN
    out    (n, words) int64                                                   OUT
    """
    last, n = np.uint64((1 << bits) - 1), 0
    for i in range(keys.shape[0]):
        key = keys[i] >> np.uint64(bits)
        at = keys[i] & last if bits else np.uint64(i)
        if n == 0 or keys[n - 1] != key:
            keys[n] = key
            for w in range(words.shape[1]):
                out[n, w] = words[at, w]
            n += 1
        else:
            for w in range(words.shape[1]):
                out[n - 1, w] += words[at, w]
    return n
