"""The laws of the three mechanisms in closed form, from the papers. The tests of privacy compare what is drawn with
them, and the chances on neighbouring tables with each other.

Candidates lie along the last axis, so many lists can be asked at once. ``is_open`` says which of them there are, where
lists of different lengths stand in one array.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def acceptance(scores: ArrayLike, scale: ArrayLike, *, is_open: ArrayLike = True) -> Floats:
    """exp((score - highest) / scale), and 0 for what is no candidate."""
    scores, is_open = np.broadcast_arrays(np.asarray(scores, dtype=np.float64), is_open)
    highest = np.max(scores, axis=-1, keepdims=True, where=is_open, initial=-np.inf)
    return np.where(
        is_open, np.exp(np.where(is_open, scores - highest, 0) / np.asarray(scale)[..., None]), 0.0
    )


def exponential(scores: ArrayLike, scale: ArrayLike, *, is_open: ArrayLike = True) -> Floats:
    """[MT07]: proportional to exp(score / scale)."""
    weights = acceptance(scores, scale, is_open=is_open)
    return weights / weights.sum(axis=-1, keepdims=True)


def permute_and_flip(scores: ArrayLike, scale: ArrayLike, *, is_open: ArrayLike = True) -> Floats:
    r"""[MS20] for a random order: candidate i comes at a uniform time t, and whoever came before was not accepted.

    .. math:: P(i) = p_i \int_0^1 \prod_{j \ne i} (1 - t p_j) dt

    The integrand is a polynomial of t, so that a Gauss-Legendre sum of half as many points is the integral itself.
    All its terms are positive: even the smallest chances have some 14 right digits.
    """
    accepted = acceptance(scores, scale, is_open=is_open)
    n = accepted.shape[-1]
    points, weights = np.polynomial.legendre.leggauss(n // 2 + 1)
    chances = np.zeros_like(accepted)
    for t, weight in zip((points + 1) / 2, weights / 2, strict=True):
        rejected = 1 - t * accepted
        before = np.cumprod(rejected, axis=-1) / rejected
        after = np.cumprod(rejected[..., ::-1], axis=-1)[..., ::-1] / rejected
        chances += weight * before * after
    return chances * accepted


def permute_and_flip_by_orders(scores: list[int], scale: float) -> Floats:
    """The same by its definition, order by order."""
    accepted = acceptance(scores, scale)
    chances = np.zeros(len(scores))
    for order in itertools.permutations(range(len(scores))):
        left = 1.0
        for place in order:
            chances[place] += left * accepted[place]
            left *= 1 - accepted[place]
    return chances / math.factorial(len(scores))


def discrete_laplace(z: ArrayLike, scale: float) -> Floats:
    """[CKS20]: proportional to exp(-abs(z) / scale)."""
    a = math.exp(-1 / scale)
    return np.asarray((1 - a) / (1 + a) * np.exp(-np.abs(np.asarray(z)) / scale))
