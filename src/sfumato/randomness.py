"""The only door to random numbers: ``seeded(n)`` for repeatable runs, ``secret()`` for real ones.

Everything random in sfumato takes the generator that one of these two returns, so a reader can
see at the call site which kind it is. No other module imports ``numpy.random`` or ``secrets``.
"""

from __future__ import annotations

import secrets

import numpy as np
from numpy.random import PCG64, Generator

Random = Generator
"""The type to annotate an argument with, where a function takes its randomness from the caller."""


def seeded(seed: int) -> Generator:
    """A generator that repeats: same seed, same numbers.

    >>> int(seeded(7).integers(100)) == int(seeded(7).integers(100))
    True
    """
    return np.random.default_rng(seed)


def secret() -> Generator:
    """A generator that nobody can repeat: 256 fresh bits of the operating system's randomness."""
    return Generator(PCG64(secrets.randbits(256)))


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
