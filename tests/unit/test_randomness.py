"""Random numbers: known answers of SplitMix64, and what keys by row number rely on."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.randomness import splitmix64

PUBLISHED = {
    0: [
        0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F, 0xF88BB8A8724C81EC, 0x1B39896A51A8749B,
    ],
    1234567: [
        6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821,
    ],
}  # fmt: skip
"""The first outputs by seed: of the reference implementation (Vigna, prng.di.unimi.it/splitmix64.c), 0 as in the tests
of the Java library that it was published for, 1234567 as on rosettacode.org."""


def naive_splitmix64(seed: int, n: int) -> list[int]:
    """The reference implementation, line by line."""
    state, found = seed % 2**64, []
    for _ in range(n):
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
        found.append(z ^ (z >> 31))
    return found


@pytest.mark.parametrize("seed", PUBLISHED)
def test_splitmix64_gives_the_published_numbers(seed):
    assert splitmix64(seed, np.arange(5)).tolist() == PUBLISHED[seed] == naive_splitmix64(seed, 5)


@pytest.mark.parametrize("seed", [0, 1, 2**63 + 5, 2**64 - 1, 2**64 + 7, 2**130 + 3])
@pytest.mark.parametrize("kind", [np.int64, np.uint32, np.uint64])
def test_any_output_is_found_without_those_before_it(seed, kind):
    number = np.array([99, 0, 7, 7], dtype=kind)
    expected = naive_splitmix64(seed, 100)
    assert splitmix64(seed, number).tolist() == [expected[at] for at in number.tolist()]
    assert number.tolist() == [99, 0, 7, 7], "what it is given stays as it is"


def test_no_two_rows_share_a_key():
    assert len(np.unique(splitmix64(3, np.arange(200_000)))) == 200_000
