"""Algorithm 1 by the letter, in closed form: what its rounding gives on average, and heavy-tailed rows to try it on."""

from __future__ import annotations

import itertools
import math

import numpy as np

from sfumato.methods.risk_utility.paper import approximation
from sfumato.methods.risk_utility.paper.approximation import Chains


def chains(
    counts_by_needed: dict[tuple[int, ...], int], utility, weight, *, floor: int = 0, own: int = 0
) -> Chains:
    """A row by hand: for each column the utility and the weight at its levels, and rows by their least levels."""
    steps = [(a, level) for a, values in enumerate(utility) for level in range(1, len(values))]
    height = max(map(len, utility))
    needed = np.array(list(counts_by_needed), dtype=np.uint8).reshape(-1, len(utility))
    return Chains(
        _padded(utility, height), _padded(weight, height), floor,
        np.array([a for a, _ in steps]), np.array([level for _, level in steps]),
        needed, np.array(list(counts_by_needed.values())), own,
    )  # fmt: skip


def _padded(values, height: int) -> np.ndarray:
    return np.array([[*part, *[part[-1]] * (height - len(part))] for part in values], dtype=np.int64)


def generalizations(row: Chains):
    return itertools.product(*(row.distinct_levels(a) for a in range(row.n_columns)))


def safety(row: Chains, levels) -> float:
    """1 / r."""
    weight = row.weight_of(levels)
    return row.covered_by(levels) / weight if weight else math.inf


def greatest_safety(row: Chains, need: float) -> float:
    """1 / z*, by looking at every generalization."""
    return max(safety(row, x) for x in generalizations(row) if row.utility_of(x) >= need)


def expected_safety(row: Chains, need: int, *, epsilon: float, sigma_1: float, sigma_2: float) -> float:
    """E[1/r] of what Algorithm 1 returns: the best of independent draws, one for each bound, each from those accepted."""
    draws = []
    for relaxed in approximation.relaxations(row, need, epsilon=epsilon):
        sets, chance = approximation.level_sets(row, relaxed.variables)
        accepted = approximation.is_accepted(row, sets, need, relaxed.bound, sigma_1=sigma_1, sigma_2=sigma_2)
        values = np.array([safety(row, x) for x in sets])
        draws.append((values[accepted], chance[accepted] / chance[accepted].sum()))
    at_most, mean = 0.0, 0.0
    for value in np.unique(np.concatenate([values for values, _ in draws])).tolist():
        chance_here = math.prod(float(chance[values <= value].sum()) for values, chance in draws)
        mean += value * (chance_here - at_most)
        at_most = chance_here
    return mean


def heavy_tailed(seed: int) -> tuple[Chains, int]:
    """A row of which some rows need few levels, and ever many more need many; and its threshold c."""
    random = np.random.default_rng(seed)
    n_columns = int(random.integers(1, 4))
    heights = random.integers(2, 5, size=n_columns)
    utility = [np.arange(h, -1, -1) * int(random.integers(1, 4)) for h in heights]
    is_flat = random.random() < 0.5
    weight = [
        np.full(h + 1, 6) if is_flat else np.sort(random.integers(1, 12, size=h + 1))[::-1] for h in heights
    ]
    rows = {(0,) * n_columns: 1}
    for _ in range(int(random.integers(2, 12))):
        rows[tuple(random.integers(0, heights + 1).tolist())] = int(10 ** (6 * random.random()))
    raw = sum(int(part[0]) for part in utility)
    return chains(rows, utility, weight), max(1, raw // 2)
