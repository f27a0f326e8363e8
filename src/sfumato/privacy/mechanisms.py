"""The four random mechanisms of a private release, and where their randomness comes from.

- ``secret()`` is the real thing: OpenDP's exact samplers [CKS20] on the operating system's randomness. No float
  touches a probability, and nobody can repeat a draw. ``secret_coins()`` is the one of them that needs no OpenDP.
- ``seeded(seed)`` draws from the same four laws, in floating point where they are not of coins. It repeats, so it is
  not private: for tests and simulations, and whatever it made says so.
- ``noiseless()`` is the limit of an infinite epsilon: the best candidate, the counts as they are, every row. For tests
  alone.

A mechanism knows neither rows nor epsilon: whoever calls it proves what a draw at this ``scale`` costs, and has it
charged before. Let two tables be neighbours, and s, s' the scores of the same public list of candidates on them.

- ``exponential`` [MT07]: if no score moves by more than Δ, a draw at scale 2Δ/share is share-private. If besides all
  scores move in one direction (monotone), at scale Δ/share: s'ᵢ = sᵢ + dᵢ with 0 <= dᵢ <= Δ makes no exp(sᵢ/scale)
  smaller, and none, nor their sum, larger than exp(share) times what it was.
- ``permute_and_flip`` [MS20]: the same two rules, and never worse than the exponential law in expected score.
- ``discrete_laplace`` [DMNS06, CKS20]: if the counts move by at most Δ in sum, all of them at scale Δ/share are
  share-private.
- ``bernoulli``: which rows are drawn, each by itself. What that costs depends on what is published of them:
  ``sfumato.methods.risk_utility.private.draw``.
- ``row_keys`` cost nothing by themselves: they say which rows of a person are read at all (``encoding.row_bound``).

Candidates may stand in a list several times, as long as how often is public: their chances add up.
Running time depends on scores and noise: nothing here hides it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from sfumato import randomness
from sfumato.errors import InternalError, MissingExtra

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Words = NDArray[np.uint64]

EXPONENTIAL = "exponential"
PERMUTE_AND_FLIP = "permute-and-flip"
DISCRETE_LAPLACE = "discrete Laplace"
BERNOULLI = "Bernoulli"

OLDEST_OPENDP = (0, 16)
"""Up to 0.14.1 its noise was biased at some scales (opendp#2638); since 0.16 it has the exponential law itself."""
GREATEST_DENOMINATOR = 1 << 62
COUNTS_AT_ONCE = 1 << 14
"""OpenDP takes and gives lists of Python integers: so many counts at a time keep them small."""


class Coins(Protocol):
    """Draws of rows; ``statement`` is what a certificate says of their randomness."""

    @property
    def statement(self) -> str: ...

    def bernoulli(self, n: int, chance: Fraction) -> Bools:
        """Which of n things are drawn, each by itself with exactly this chance."""

    def row_keys(self) -> Callable[[Ints], Words]:
        """Gives the rows of a table with these numbers keys of 64 bits, all of them alike and each by itself."""


class Mechanisms(Coins, Protocol):
    """Draws from all four laws."""

    def exponential(self, scores: Ints, scale: Fraction) -> int:
        """A place in ``scores``; the chance of place i is proportional to exp(scores[i] / scale)."""

    def permute_and_flip(self, scores: Ints, scale: Fraction) -> int:
        """The places in random order, each taken with the chance exp((its score - the highest) / scale)."""

    def discrete_laplace(self, counts: Ints, scale: Fraction) -> Ints:
        """Every count plus its own integer z; the chance of z is proportional to exp(-abs(z) / scale)."""


def secret() -> Mechanisms:
    """What a release that claims privacy is drawn with."""
    try:
        installed = version("opendp")
    except PackageNotFoundError:
        raise MissingExtra("dp", "A differentially private release") from None
    if tuple(int(part) for part in installed.split(".")[:2]) < OLDEST_OPENDP:
        oldest = ".".join(map(str, OLDEST_OPENDP))
        raise MissingExtra("dp", f"A private release by OpenDP {oldest} or newer ({installed} is installed)")
    return _OpenDP(installed)


def secret_coins() -> Coins:
    """Rows of a release that claims privacy are drawn with these.

    >>> secret_coins().bernoulli(3, Fraction(1)).tolist()
    [True, True, True]
    """
    return _Secret()


def seeded(seed: int) -> Mechanisms:
    """The same laws, repeatable and not private.

    >>> zeros = np.zeros(100, dtype=np.int64)
    >>> first, again = (seeded(7).discrete_laplace(zeros, Fraction(5)) for _ in range(2))
    >>> bool((first == again).all())
    True
    """
    return _Seeded(randomness.seeded(seed))


def noiseless() -> Mechanisms:
    """Epsilon without limit: tests follow an algorithm step by step with it.

    >>> noiseless().permute_and_flip(np.array([3, 5, 5]), Fraction(1000))
    1
    """
    return _Noiseless()


class _Secret:
    """Coins by whole numbers of the operating system: no float, and nothing to install."""

    statement = "secret (operating system)"

    def bernoulli(self, n: int, chance: Fraction) -> Bools:
        return _toss(lambda m: randomness.secret_below(chance.denominator, m), n, chance)

    def row_keys(self) -> Callable[[Ints], Words]:
        return lambda rows: randomness.secret_words(len(rows))


def _toss(below: Callable[[int], Ints], n: int, chance: Fraction) -> Bools:
    """p/q is the chance of a whole number below q, all of them alike, to be below p."""
    if not 0 <= chance <= 1 or chance.denominator > GREATEST_DENOMINATOR:
        raise InternalError("A chance is a fraction from 0 to 1 of a denominator below 2^62.")
    return np.asarray(below(n) < chance.numerator)


class _OpenDP(_Secret):
    """Selection and noise by OpenDP, whose samplers are exact: scores, counts and scales are rational numbers there."""

    def __init__(self, installed: str) -> None:
        self.statement = f"secret (OpenDP {installed})"

    def exponential(self, scores: Ints, scale: Fraction) -> int:
        # The exponential law is what OpenDP takes for this divergence. That it is share-private does not rest on
        # the divergence: it is a property of the law [MT07].
        return int(_selection("zero_concentrated_divergence", round_up(scale))(below_highest(scores)))

    def permute_and_flip(self, scores: Ints, scale: Fraction) -> int:
        return int(_selection("max_divergence", round_up(scale))(below_highest(scores)))

    def discrete_laplace(self, counts: Ints, scale: Fraction) -> Ints:
        draw = _noise(round_up(scale))
        flat = np.ascontiguousarray(counts, dtype=np.int64).reshape(-1)
        noisy = np.empty_like(flat)
        parts = [slice(start, start + COUNTS_AT_ONCE) for start in range(0, len(flat), COUNTS_AT_ONCE)]
        with ThreadPoolExecutor(
            min(max(len(parts), 1), os.cpu_count() or 1)
        ) as pool:  # OpenDP lets go of the lock
            for part, drawn in zip(parts, pool.map(lambda part: draw(flat[part]), parts), strict=True):
                noisy[part] = drawn
        return noisy.reshape(counts.shape)


@lru_cache(maxsize=64)  # it takes three times as long to build as to draw
def _selection(divergence: str, scale: float) -> Callable[[Ints], int]:
    dp = _opendp()
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.linf_distance(T="i64", monotonic=True)
    return cast("Callable[[Ints], int]", space >> dp.m.then_noisy_max(getattr(dp, divergence)(), scale=scale))


@lru_cache(maxsize=64)
def _noise(scale: float) -> Callable[[Ints], list[int]]:
    dp = _opendp()
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    return cast("Callable[[Ints], list[int]]", space >> dp.m.then_laplace(scale=scale))


def _opendp() -> Any:
    import opendp.prelude as dp  # noqa: PLC0415 - an extra, and two seconds to import

    dp.enable_features("contrib")  # all of it needs this; it unlocks nothing for floats
    return dp


class _Seeded:
    """The highest score after noise: Gumbel noise gives the exponential law, exponential noise gives
    permute-and-flip [DKSS21]. Discrete Laplace noise is the difference of two geometric numbers.
    """

    statement = "seeded, not private"

    def __init__(self, random: randomness.Random) -> None:
        self._random = random

    def bernoulli(self, n: int, chance: Fraction) -> Bools:
        return _toss(lambda m: self._random.integers(chance.denominator, size=m), n, chance)

    def row_keys(self) -> Callable[[Ints], Words]:
        seed = int(self._random.integers(1 << 63))
        return lambda rows: randomness.splitmix64(seed, rows)

    def exponential(self, scores: Ints, scale: Fraction) -> int:
        noise = self._random.gumbel(size=len(scores))
        return int(np.argmax(below_highest(scores) / round_up(scale) + noise))

    def permute_and_flip(self, scores: Ints, scale: Fraction) -> int:
        noise = self._random.exponential(size=len(scores))
        return int(np.argmax(below_highest(scores) / round_up(scale) + noise))

    def discrete_laplace(self, counts: Ints, scale: Fraction) -> Ints:
        end = -math.expm1(-1 / round_up(scale))
        up, down = (self._random.geometric(end, size=counts.shape) for _ in range(2))
        return np.asarray(counts + up - down, dtype=np.int64)


class _Noiseless:
    statement = "noiseless, not private"

    def bernoulli(self, n: int, chance: Fraction) -> Bools:  # noqa: ARG002 - the protocol
        return np.ones(n, dtype=np.bool_)

    def row_keys(self) -> Callable[[Ints], Words]:
        return lambda rows: rows.astype(np.uint64)

    def exponential(self, scores: Ints, scale: Fraction) -> int:  # noqa: ARG002 - the protocol
        return int(np.argmax(below_highest(scores)))

    def permute_and_flip(self, scores: Ints, scale: Fraction) -> int:
        return self.exponential(scores, scale)

    def discrete_laplace(self, counts: Ints, scale: Fraction) -> Ints:  # noqa: ARG002 - the protocol
        return np.array(counts, dtype=np.int64)


def round_up(scale: Fraction) -> float:
    """The lowest float that is not below ``scale``: rounding never costs more than was charged.

    >>> Fraction(round_up(Fraction(1, 3))) >= Fraction(1, 3)
    True
    """
    if scale <= 0:
        raise InternalError(f"A scale is positive, not {scale}.")
    near = float(scale)
    return near if Fraction(near) >= scale else math.nextafter(near, math.inf)


def below_highest(scores: Ints) -> Ints:
    """The scores minus the highest of them: no law here changes, and no sum of them can overflow."""
    if scores.dtype != np.int64 or scores.ndim != 1 or not len(scores):
        raise InternalError("Scores are a list of 64-bit integers, and there is at least one.")
    highest = int(scores.max())
    if highest - int(scores.min()) > np.iinfo(np.int64).max:
        raise InternalError("Scores lie too far apart for 64-bit integers.")
    return scores - scores.dtype.type(highest)
