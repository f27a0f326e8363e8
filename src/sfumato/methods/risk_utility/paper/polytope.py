r"""Algorithm 4, Sample-Point: hit-and-run on the order polytope, for study [FEB12, section 3.4].

The generalizations of a row are the vertices of a polytope: coordinate (i, j) says whether column i goes up at least j
levels, and along a column coordinates do not rise. Rows covered, weight and the score are extended to all of it
(Lovász). A layer of weights is picked evenly; a point is drawn from the part of the polytope where the weight is in the
layer and at least t rows are covered, with a density of e to the score; it is rounded to a vertex, again and
again until sigma t rows are covered.

That law is not the one that it stands for, equation (9): layers are picked evenly, whatever they hold, and a point is
rounded to vertices of any score. :func:`total_variation` says how far it is off. **No privacy is claimed.**

Departs from the paper: layers begin at phi_l (the paper's at 1); a layer that holds no point is not picked; T(X) counts
the rows below the generalization (the paper's formula counts others). Many walks are made side by side, one for each
point.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.methods.risk_utility.paper.exponential import Extremes, Generalizations, Sampler, chances
from sfumato.methods.risk_utility.problem import Ints, Lagrangian, LatticeProblem, Levels
from sfumato.randomness import Random

Floats = NDArray[np.float64]

HALVINGS = 24
"""Steps to find where a line leaves the part that covers enough rows."""


@dataclass(frozen=True, slots=True)
class Walk:
    """How points are drawn: ``width`` is epsilon'' of the layers, ``steps`` the length of a walk."""

    t: int
    working: float
    width: float = 0.5
    sigma: float = 0.5
    steps: int = 100


@dataclass(frozen=True, slots=True, eq=False)
class Polytope:
    """The polytope of one row: functions of its vertices, flat, and how coordinates lead from one to the next."""

    found: Generalizations
    covered: Floats
    weight: Floats
    score: Floats  # xi = lambda |rho| + Phi u^kappa, the score times the weight
    column: Ints  # (coordinates,)
    step: Ints  # (coordinates,) how far the flat place moves
    rise: Floats  # (coordinates,) what the weight gains

    @classmethod
    def of(cls, problem: LatticeProblem, row: int, objective: Lagrangian) -> Polytope:
        found = Generalizations.of(problem, row)
        shape = found.covered.shape
        column = np.repeat(np.arange(len(shape)), [n - 1 for n in shape])
        strides = np.array([math.prod(shape[a + 1 :]) for a in range(len(shape))])
        step = strides[column]
        weight = found.weight.ravel()
        ends = np.concatenate([np.arange(1, n) * stride for n, stride in zip(shape, strides, strict=True)])
        power = found.utility.ravel() ** objective.power
        score = float(objective.price) * found.covered.ravel() + weight * power
        return cls(
            found,
            found.covered.ravel().astype(np.float64),
            weight,
            score,
            column,
            step,
            weight[ends] - weight[ends - step],
        )

    def extension(self, values: Floats, points: Floats) -> Floats:
        """The Lovász extension of a function of vertices, at points (points, coordinates)."""
        order = np.argsort(-points, axis=1, kind="stable")
        z = np.take_along_axis(points, order, axis=1)
        places = np.cumsum(self.step[order], axis=1)
        drops = z - np.append(z[:, 1:], np.zeros((len(z), 1)), axis=1)
        return np.asarray(values[0] + (drops * (values[places] - values[0])).sum(axis=1))

    def vertices(self, at: Ints) -> Floats:
        """The vertices at flat places, as points."""
        places = np.stack(np.unravel_index(at, self.found.covered.shape), axis=1)
        of_column = np.arange(len(self.column)) - np.searchsorted(self.column, self.column)
        return (places[:, self.column] > of_column).astype(np.float64)

    def centre(self) -> Floats:
        """A point inside."""
        n = np.bincount(self.column, minlength=1)[self.column]
        of_column = np.arange(len(self.column)) - np.searchsorted(self.column, self.column)
        return np.asarray(1 - (of_column + 1) / (n + 1))

    def round_points(self, points: Floats, random: Random) -> Ints:
        """The flat place of a vertex for each point: the coordinates above a number that is drawn evenly."""
        return np.asarray(((points > random.random((len(points), 1))) * self.step).sum(axis=1))


@dataclass(frozen=True, slots=True)
class Layer:
    """Weights between two ends."""

    low: float
    high: float


def layers_of(problem: LatticeProblem, width: float) -> list[Layer]:
    """From the least weight to the greatest, each a factor of 1 + width wide."""
    ends = Extremes.of(problem)
    n = math.ceil(math.log(ends.greatest_weight / ends.least_weight) / math.log1p(width)) + 1
    edges = [ends.least_weight * (1 + width) ** i for i in range(n + 1)]
    return [Layer(low, high) for low, high in itertools.pairwise(edges)]


def sample_points(
    problem: LatticeProblem, row: int, objective: Lagrangian, walk: Walk, n: int, random: Random
) -> Ints:
    """Algorithm 4, n times: flat places of generalizations of a row. None if no layer holds a point."""
    return _places(problem, Polytope.of(problem, row, objective), walk, n, random)


def sample_by_walking(problem: LatticeProblem, objective: Lagrangian, walk: Walk, random: Random) -> Sampler:
    """Draws of Algorithm 4, for the rows that Algorithm 3 takes."""

    def sample(row: int, n: int) -> Levels:
        body = Polytope.of(problem, row, objective)
        return body.found.levels_at(_places(problem, body, walk, n, random))

    return sample


def _places(problem: LatticeProblem, body: Polytope, walk: Walk, n: int, random: Random) -> Ints:
    starts = [
        (layer, start)
        for layer in layers_of(problem, walk.width)
        if (start := _start(body, layer, walk.t)) is not None
    ]
    if not starts:
        return np.zeros(0, dtype=np.int64)
    which = random.integers(len(starts), size=n)
    out = np.empty(n, dtype=np.int64)
    for at, (layer, start) in enumerate(starts):
        mine = np.flatnonzero(which == at)
        if len(mine):
            points = _walk(body, layer, np.tile(start, (len(mine), 1)), problem, walk, random)
            out[mine] = _round_until_frequent(body, points, walk, random)
    return out


def _round_until_frequent(body: Polytope, points: Floats, walk: Walk, random: Random) -> Ints:
    """Round until sigma t rows are covered: on average at least t are, so it ends."""
    out = body.round_points(points, random)
    while len(again := np.flatnonzero(body.covered[out] < walk.sigma * walk.t)):
        out[again] = body.round_points(points[again], random)
    return out


# ---- where a walk begins -----------------------------------------------------------------------------------


def _start(body: Polytope, layer: Layer, t: int) -> Floats | None:
    """A point inside the layer where more than t rows are covered, None if there is none.

    Of a supermodular function the extension is the least concave function above it, so the most rows that a
    given weight can cover are told by the upper hull of all vertices.
    """
    hull = _upper_hull(body.weight, body.covered)
    low, high = max(layer.low, body.weight.min()), min(layer.high, body.weight.max())
    if low > high:
        return None
    for weight in np.linspace(low, high, 35)[1:-1] if low < high else [low]:
        right = (
            int(np.clip(np.searchsorted(body.weight[hull], weight), 1, len(hull) - 1)) if len(hull) > 1 else 0
        )
        left = max(right - 1, 0)
        one, other = body.vertices(hull[[left, right]])
        gap = body.weight[hull[right]] - body.weight[hull[left]]
        share = (weight - body.weight[hull[left]]) / gap if gap else 0.0
        inside = _move_inside(body, layer, (1 - share) * one + share * other, t)
        if inside is not None:
            return inside
    return None


def _move_inside(body: Polytope, layer: Layer, point: Floats, t: int) -> Floats | None:
    """The point, moved towards the centre by as much as it may; None if that is not at all."""
    centre = body.centre()
    for halvings in range(1, 30):
        moved = point + (centre - point) / 2**halvings
        if _is_within(body, layer, moved[None], t)[0]:
            return np.asarray(moved)
    return None


def _is_within(body: Polytope, layer: Layer, points: Floats, t: int) -> NDArray[np.bool_]:
    weight = body.weight[0] + points @ body.rise
    slack = 1e-9 * layer.high
    is_in_layer = (weight >= layer.low - slack) & (weight <= layer.high + slack)
    return np.asarray(is_in_layer & (body.extension(body.covered, points) > t))


def _upper_hull(x: Floats, y: Floats) -> Ints:
    """The vertices of the least concave function above points, by ascending x."""
    order = np.lexsort((-y, x))
    hull: list[int] = []
    for p in order.tolist():
        if hull and x[p] == x[hull[-1]]:
            continue
        while len(hull) > 1 and _is_below(x, y, hull[-2], hull[-1], p):
            hull.pop()
        hull.append(p)
    return np.array(hull)


def _is_below(x: Floats, y: Floats, a: int, b: int, c: int) -> bool:
    """Does point b lie on or below the line from a to c?"""
    return bool((y[b] - y[a]) * (x[c] - x[a]) <= (y[c] - y[a]) * (x[b] - x[a]))


# ---- the walk ----------------------------------------------------------------------------------------------


def _walk(
    body: Polytope, layer: Layer, points: Floats, problem: LatticeProblem, walk: Walk, random: Random
) -> Floats:
    """Hit and run: a random line through the point, an even point on it, taken with the ratio of densities."""
    scale = walk.working / (len(problem.of_row) * layer.low)
    density = scale * body.extension(body.score, points)
    for _ in range(walk.steps):
        direction = random.standard_normal(points.shape)
        low, high = _chord(body, layer, points, direction, walk.t)
        at = low + (high - low) * random.random(len(points))
        proposed = points + at[:, None] * direction
        other = scale * body.extension(body.score, proposed)
        taken = np.log(random.random(len(points))) < other - density
        points = np.where(taken[:, None], proposed, points)
        density = np.where(taken, other, density)
    return points


def _chord(body: Polytope, layer: Layer, points: Floats, direction: Floats, t: int) -> tuple[Floats, Floats]:
    """How far a line may be followed either way: within the polytope, the layer, and where t rows are covered."""
    slack, slope = [], []
    is_first = np.append(True, np.diff(body.column) > 0)
    is_last = np.append(is_first[1:], True)
    slack += [1 - points[:, is_first], points[:, is_last]]
    slope += [-direction[:, is_first], direction[:, is_last]]
    inner = np.flatnonzero(~is_first)
    slack.append(points[:, inner - 1] - points[:, inner])
    slope.append(direction[:, inner - 1] - direction[:, inner])
    weight, gain = (body.weight[0] + points @ body.rise)[:, None], (direction @ body.rise)[:, None]
    slack += [weight - layer.low, layer.high - weight]
    slope += [gain, -gain]
    left, by = np.maximum(np.concatenate(slack, axis=1), 0.0), np.concatenate(slope, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.where(by < 0, left / -by, np.inf).min(axis=1)
        begins = np.where(by > 0, left / by, np.inf).min(axis=1)
    high = _follow_covered(body, points, direction, ends, t)
    low = -_follow_covered(body, points, -direction, begins, t)
    return low, high


def _follow_covered(body: Polytope, points: Floats, direction: Floats, end: Floats, t: int) -> Floats:
    """How far up to ``end`` at least t rows are covered: a concave function crosses t once on its way."""
    out = end.copy()
    far = np.flatnonzero(body.extension(body.covered, points + end[:, None] * direction) < t)
    points, direction = points[far], direction[far]
    inside, outside = np.zeros(len(far)), end[far]
    for _ in range(HALVINGS if len(far) else 0):
        middle = (inside + outside) / 2
        is_in = body.extension(body.covered, points + middle[:, None] * direction) >= t
        inside, outside = np.where(is_in, middle, inside), np.where(is_in, outside, middle)
    out[far] = inside
    return out


# ---- how far it is off -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Distance:
    """The total variation between n points and the law (9), and what n points of that law itself would show."""

    total_variation: float
    noise: float
    n: int


def total_variation(
    problem: LatticeProblem, row: int, objective: Lagrangian, walk: Walk, n: int, random: Random
) -> Distance:
    """How far Algorithm 4 is from the law that it stands for, enumerated."""
    found = Generalizations.of(problem, row)
    law = chances(problem, row, objective, found, t=walk.t, working=walk.working).ravel()
    seen = np.bincount(sample_points(problem, row, objective, walk, n, random), minlength=len(law)) / n
    noise = np.sqrt(2 * law * (1 - law) / (np.pi * n)).sum() / 2
    return Distance(float(np.abs(seen - law).sum() / 2), float(noise), n)


__all__ = ["Distance", "Walk", "layers_of", "sample_by_walking", "sample_points", "total_variation"]
