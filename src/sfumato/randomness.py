"""The only door to random numbers: ``seeded(n)`` for repeatable runs, ``secret()`` for real ones.

Everything random in sfumato takes the generator that one of these two returns, so a reader can
see at the call site which kind it is. No other module imports ``numpy.random`` or ``secrets``.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import Any

import numpy as np
from numpy.random import PCG64, Generator
from numpy.typing import NDArray

Random = Generator
"""The type to annotate an argument with, where a function takes its randomness from the caller."""

WORDS_AT_ONCE = 1 << 20

GOLDEN_GAMMA = 0x9E3779B97F4A7C15
MIXING = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
LAST_SHIFT = 31
"""The constants of SplitMix64."""


def seeded(seed: int) -> Generator:
    """A generator that repeats: same seed, same numbers.

    >>> int(seeded(7).integers(100)) == int(seeded(7).integers(100))
    True
    """
    return np.random.default_rng(seed)


def secret() -> Generator:
    """A generator that nobody can repeat: 256 fresh bits of the operating system's randomness."""
    return Generator(PCG64(secrets.randbits(256)))


def secret_below(n: int, size: int) -> NDArray[np.int64]:
    """So many whole numbers from 0 to n - 1, all of them equally likely to the last bit, that nobody can repeat.

    Words of 64 secret bits, without those beyond the last whole multiple of n, by their rest.

    >>> numbers = secret_below(6, 1000)
    >>> len(numbers), int(numbers.min()) >= 0, int(numbers.max()) < 6
    (1000, True, True)
    """
    end = np.uint64(2**64 // n * n - 1)
    found = [np.zeros(0, dtype=np.int64)]
    while (lacking := size - sum(map(len, found))) > 0:
        words = np.frombuffer(secrets.token_bytes(8 * min(lacking, WORDS_AT_ONCE)), dtype=np.uint64)
        found.append((words[words <= end] % np.uint64(n)).astype(np.int64))
    return np.concatenate(found)


def secret_words(n: int) -> NDArray[np.uint64]:
    """So many words of 64 secret bits.

    >>> len(secret_words(3))
    3
    """
    return np.frombuffer(secrets.token_bytes(8 * n), dtype=np.uint64)


def generator(seed: int | None) -> Generator:
    """``seeded(seed)``, or ``secret()`` where no seed is given."""
    return secret() if seed is None else seeded(seed)


def fresh_seed() -> int:
    """A seed that nobody can guess, for draws that are spread over blocks."""
    return secrets.randbits(128)


def seeded_block(seed: int, number: int) -> Generator:
    """The generator of one block of a long stream: independent of all other blocks and of ``seeded(seed)``.

    >>> int(seeded_block(7, 2).integers(100)) == int(seeded_block(7, 2).integers(100))
    True
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))


def splitmix64(seed: int, number: NDArray[np.integer[Any]]) -> NDArray[np.uint64]:
    """The outputs with these numbers, from 0 on, of the generator SplitMix64 that starts with a seed [SLF14].

    An output is found without those before it, and no two are equal: so numbers of rows become random keys that do
    not depend on who reads which rows when. Seeds count modulo 2^64. Nobody must rely on keys being secret.

    >>> [hex(output) for output in splitmix64(0, np.array([0, 1])).tolist()]
    ['0xe220a8397b1dcdaf', '0x6e789e6aa1b965f4']
    """
    out = number.astype(np.uint64)
    out += np.uint64(1)
    out *= np.uint64(GOLDEN_GAMMA)
    out += np.uint64(seed % 2**64)
    for shift, factor in MIXING:
        out ^= out >> np.uint64(shift)
        out *= np.uint64(factor)
    out ^= out >> np.uint64(LAST_SHIFT)
    return out


def run_key(seed: int | None) -> bytes:
    """A key of 256 bits for one run: secret, or always the same for a seed.

    >>> run_key(7) == run_key(7), run_key(7) == run_key(8), len(run_key(None))
    (True, False, 32)
    """
    return secrets.token_bytes(32) if seed is None else hashlib.sha256(b"sfumato run %d" % seed).digest()
