r"""Is a split allowable for all rows? Tests on a sample of them [LDR08, section 5.2.1].

Of N rows a simple random sample of n is known. A split divides the rows into m parts; part i has :math:`n_i` rows
in the sample. The null hypothesis is that the split breaks the requirement. It is made if every part passes the
test of every requirement, each at the level :math:`\alpha / m`:

k-anonymity
    .. math:: \frac{n_i}{n} - \frac{k}{N} \ge z_{\alpha/m}
              \sqrt{\frac{k}{N}\Bigl(1 - \frac{k}{N}\Bigr) \frac{1}{n - 1} \cdot \frac{N - n}{N}}

    which is ordinary growth with a larger k on the scale of the sample. It is never larger than k itself: k rows
    of the sample are k rows.

recursive (c, l)-diversity
    .. math:: c\,\hat p_2 - \hat p_1 > z_{\alpha/m} \sqrt{\frac{c^2 \hat p_2 (1 - \hat p_2) + \hat p_1
              (1 - \hat p_1)}{n_i - 1} \cdot \frac{N - n}{N}}

    with :math:`\hat p_1` the share of the most frequent value, :math:`\hat p_2` that of the l-th and all after it.
    A rule of thumb, as the paper says.

variance diversity
    .. math:: (n_i - 1)\, \widehat{Var} / v \ge \chi^2_{\alpha/m}(n_i - 1)

    exact for normal values, otherwise a rule of thumb.

entropy l-diversity (ours; the paper has none)
    The entropy of the sample is at least :func:`entropy_limit`, or its most frequent value is rarer than
    :func:`frequency_bound` by a margin; each at half of the level. Sound for all values and sizes:
    see these functions.

t-closeness (ours)
    The distance of the sample from the whole table, whose values were all counted, is at most
    :math:`t - \sqrt{(m \log 2 + \log(2 / chance)) / 2 n_i}`, m being the number of values. Sound: by the triangle
    inequality the distance of all rows of the part is larger by their distance from the sample at most, and that is
    no larger than the total variation, since no two values are more than 1 apart. Total variation is the largest
    :math:`p(S) - \hat p(S)` over :math:`2^m` sets, each above x with chance :math:`e^{-2 n_i x^2}` at most [H63].

distinct l-diversity (ours)
    The definition as it stands: a value of the sample is a value of all rows.

**Parts and requirements.** m is 2 for a threshold, and for a node that is told apart from the rest; for all children
of a node the number of those that occur in the sample. A child that does not is taken to be empty: no test could tell
it from one with a few rows. A violation of one requirement in one part is overlooked only if that one test errs. A
wrong split therefore passes no more often than that, with chance :math:`\alpha / m` if the test keeps its level,
whatever the others say: several requirements need no further division of alpha (an intersection-union test [B82]).
The division by m, which the paper makes, is on the safe side.

The level is that of one candidate. A search that tries many thresholds errs more often than that; whatever slips
through is undone by pruning. The tests save work, they promise nothing.

**People.** Where groups count people, a sample is of people with all their rows, n and N are people, and k-anonymity is
tested as above, of two parts whatever their number. The units of the other tests are pairs of a person and a value,
and those of one person are not independent draws: there they are rules of thumb, all of them.

If the sample is all rows, n = N, the definitions hold as they stand. Without ``tests`` they are applied to the sample,
and k is k n / N: what the paper calls naive.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.axes import Axes
from sfumato.methods.mondrian.kernels.problem import (
    CHANCE,
    DOUBT,
    ENTROPY_BOUNDS,
    HIGHEST_RATE,
    LEAST_ROWS,
    LOWEST_RATE,
    NORMAL,
    QUANTILES,
    RATES_PER_OCTAVE,
    People,
    Rules,
    SensitiveRules,
)
from sfumato.methods.mondrian.kernels.quantile import MANY, fill_quantiles

Floats = NDArray[np.float64]

N_RATES = (HIGHEST_RATE - LOWEST_RATE) * RATES_PER_OCTAVE + 1


def rules_on_sample(
    rules: Rules, axes: Axes, *, n_sample: int, n_rows: int, alpha: float = 0.05, tests: bool = True
) -> Rules:
    """The rules with which a tree is grown on ``n_sample`` of ``n_rows`` rows, or people where these count."""
    if n_sample >= n_rows:
        return rules
    floor = rules.diverse_rows
    k = rules.least_rows if rules.least_rows > floor else 1  # a smaller k follows from what diversity needs
    n_parts = np.maximum(np.arange(max(2, int(axes.n_children.max(initial=0))) + 1), 2)
    sensitive = rules.sensitive
    n_entropy = 0 if sensitive is None else len(sensitive.entropy)
    lines = np.zeros((ENTROPY_BOUNDS + n_entropy, max(len(n_parts), MANY + 1, 1 + N_RATES)))
    if not tests:
        lines[LEAST_ROWS, : len(n_parts)] = least = max(-(-k * n_sample // n_rows), floor)
        if sensitive is not None:
            people = _people_on_sample(sensitive.people, lambda k: -(-k * n_sample // n_rows))
            sensitive = sensitive._replace(tests=lines, people=people)
        return rules._replace(least_rows=least, tests=lines, sensitive=sensitive)
    for at, m in enumerate(n_parts.tolist()):
        chance = alpha / m
        z = -NormalDist().inv_cdf(chance)
        least = max(least_rows(k, n_sample=n_sample, n_rows=n_rows, z=z), floor)
        lines[[LEAST_ROWS, CHANCE, NORMAL, DOUBT], at] = least, chance, z, math.log(2 / chance)
    if sensitive is not None:
        _fill_tests(sensitive, lines, n_rows)
        z = float(lines[NORMAL, 2])
        people = _people_on_sample(
            sensitive.people, lambda k: least_rows(k, n_sample=n_sample, n_rows=n_rows, z=z)
        )
        sensitive = sensitive._replace(tests=lines, correction=1 - n_sample / n_rows, people=people)
    return rules._replace(least_rows=int(lines[LEAST_ROWS, 2]), tests=lines, sensitive=sensitive)


def _people_on_sample(people: People | None, on_sample: Callable[[int], int]) -> People | None:
    """How people of a sample are counted, if ``on_sample`` of them stand for k of all."""
    if people is None or people.least <= 1:
        return people
    return people._replace(least=on_sample(people.least))  # rows that are enough for k are enough for fewer


def _fill_tests(rules: SensitiveRules, lines: Floats, n_rows: int) -> None:
    """The lines of ``Rules.tests`` that sensitive values need."""
    if len(rules.variance):
        fill_quantiles(lines[CHANCE, 2], lines[NORMAL, 2], lines[QUANTILES, : MANY + 1])
    for at, rule in enumerate(rules.entropy):
        n_values = int(rules.values["end"][rule["of"]] - rules.values["start"][rule["of"]])
        bounds = entropy_bounds(float(rule["log"]), min(n_values, n_rows))
        lines[ENTROPY_BOUNDS + at, : len(bounds)] = bounds


def least_rows(k: int, *, n_sample: int, n_rows: int, z: float) -> int:
    """Rows of the sample from which a part is taken to have k rows of all.

    >>> least_rows(1000, n_sample=2_000_000, n_rows=50_000_000, z=1.96)
    53
    >>> least_rows(10, n_sample=100, n_rows=100, z=1.96)
    10
    """
    if n_sample < 2:
        return k
    p = k / n_rows
    error = math.sqrt(max(p * (1 - p), 0.0) / (n_sample - 1) * (n_rows - n_sample) / n_rows)
    return min(k, math.ceil(k * n_sample / n_rows + n_sample * z * error))


# ---- entropy ---------------------------------------------------------------------------------------

ORDERS = np.geomspace(1e-6, 0.999, 800)
"""The values of s that are tried for the best bound. Any others would be as sound, and perhaps less sharp."""


def entropy_bounds(log_l: float, n_values: int) -> Floats:
    """A line of ``Rules.tests``: what one requirement asks of a sample."""
    rate = 2.0 ** (LOWEST_RATE + np.arange(N_RATES) / RATES_PER_OCTAVE)
    return np.array([frequency_bound(log_l), *entropy_limit(rate, log_l, n_values)])


def entropy_limit(rate: Floats, log_l: float, n_values: int) -> Floats:
    r"""The entropy of a sample of n rows that shows, up to a chance :math:`e^{-n \cdot rate}`, entropy of log l at least.

    **Theorem.** Let a group have entropy below log l on at most S values. The entropy :math:`\hat H` of a simple
    random sample of n of its rows, with or without replacement, satisfies for every s in (0, 1)

    .. math:: P(\hat H \ge h) \le e^{-n s (h - R_{1-s})}, \qquad R_a = \max\{H_a(q) : H(q) \le \log l,\ |q| \le S\},

    where :math:`H_a(q) = \log(\sum_v q_v^a) / (1 - a)` is Rényi's entropy. Hence h = min over s of
    :math:`R_{1-s} + rate / s` is reached with chance :math:`e^{-n \cdot rate}` at most.

    *Proof.* Let p be the shares of the values in the group and :math:`x_j` the value of row j of the sample.
    :math:`\hat H \le -\sum_v \hat p_v \log p_v = \frac1n \sum_j Y_j` with :math:`Y_j = -\log p(x_j)` (Gibbs). By
    Chernoff :math:`P(\sum_j Y_j \ge n h) \le e^{-nsh} E e^{s \sum_j Y_j}`. With replacement the expectation is
    :math:`(\sum_v p_v^{1-s})^n = e^{n s H_{1-s}(p)}`; without, it is no larger [H63, theorem 4: the
    exponential is convex]. And :math:`H_{1-s}(p) \le R_{1-s}`.

    **The maximum** is where one value has the share 1 - ε and all others share ε evenly. Let q be a maximum of
    :math:`\sum q_v^a` under :math:`\sum q_v = 1` and the limit on the entropy. No share is 0, since the slope
    there is infinite. If q is not uniform, Lagrange's condition is :math:`g(q_v) = a q_v^{a-1} + \mu \log q_v +
    \lambda = 0` for each v, with :math:`\mu \ge 0`. As a function of :math:`\log q_v`, g is strictly convex: there are
    at most two different shares x > y, and g rises at x. Were two shares equal to x, the direction that takes from
    one what it gives to the other would keep both constraints to first order, and along it the Lagrangian would
    have a positive second derivative, twice the slope of g at x: no maximum. So x occurs once, y as often as there
    are other values.
    """
    if log_l <= 0:
        return np.zeros_like(rate)
    if n_values < 2 or log_l >= math.log(n_values):
        return np.full_like(rate, np.inf)  # no value may be rarer than another: never known from a sample
    rest = _rest_of_one_frequent_value(log_l, n_values)
    shares, times = np.array([1 - rest, rest / (n_values - 1)]), np.array([1, n_values - 1])
    surplus = (times * shares * np.expm1(-ORDERS[:, None] * np.log(shares))).sum(axis=1)
    renyi = np.log1p(surplus) / ORDERS
    found = [float((renyi + x / ORDERS).min()) for x in rate.tolist()]
    return np.asarray(found) + 1e-9  # more than all roundoff


def _rest_of_one_frequent_value(entropy: float, n_values: int) -> float:
    """ε such that shares 1 - ε and, n_values - 1 times, ε / (n_values - 1) have that entropy."""
    low, high = 0.0, 1 - 1 / n_values
    for _ in range(100):
        rest = (low + high) / 2
        here = -(1 - rest) * math.log1p(-rest) - (rest * math.log(rest / (n_values - 1)) if rest > 0 else 0.0)
        low, high = (rest, high) if here < entropy else (low, rest)
    return high


def frequency_bound(log_l: float) -> float:
    r"""The share u that some value exceeds wherever the entropy is below log l; 1/l where l is whole.

    The entropy is least, for a greatest share u, where as many values as possible have that share, and one the rest
    (entropy is concave: other distributions are mixtures of such ones). So, if it is below log l, the most frequent value
    has a share of more than u, and the number of its rows among n exceeds n b, b < u, but for a chance of
    :math:`e^{-n\,kl(b, u)}`, kl(b, u) = b log(b / u) + (1 - b) log((1 - b) / (1 - u)) (Chernoff and [H63] as above).
    If the most frequent value of the sample has a share b with n kl(b, u) large enough, the entropy is shown.

    >>> round(frequency_bound(math.log(4)), 6), round(frequency_bound(math.log(1.5)), 3)
    (0.25, 0.86)
    """
    if log_l <= 0:
        return 2.0  # nothing to show
    low, high = 0.0, 1.0
    for _ in range(100):
        share = (low + high) / 2
        low, high = (share, high) if _least_entropy(share) >= log_l else (low, share)
    return low * (1 - 1e-7)  # more than all roundoff


def _least_entropy(share: float) -> float:
    """Of any values whose most frequent one has that share."""
    if share <= 1e-9:
        return math.inf
    whole = math.floor(1 / share)
    rest = max(1 - whole * share, 0.0)
    return -whole * share * math.log(share) - (rest * math.log(rest) if rest > 0 else 0.0)
