"""The only door to random numbers: ``seeded(n)`` for repeatable runs, ``secret()`` for real ones.

Everything random in sfumato takes the generator that one of these two returns, so a reader can
see at the call site which kind it is. No other module imports ``numpy.random`` or ``secrets``.
"""

from __future__ import annotations

import secrets

import numpy as np
from numpy.random import PCG64, Generator


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
