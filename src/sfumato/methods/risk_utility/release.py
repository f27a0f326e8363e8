"""Generalize each row of a table: the published rows, and the figures of the run."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.engines.engine import Resources
from sfumato.engines.start import HERE, start_engine
from sfumato.errors import PaperCannotPublish, of_side_table
from sfumato.methods.risk_utility.encode import Encoded, close_policy, encode_tables
from sfumato.methods.risk_utility.optimize import Optimum, optimize
from sfumato.methods.risk_utility.paper import exponential, polytope
from sfumato.methods.risk_utility.problem import Lagrangian, LatticeProblem, distinct_rows, objective_of
from sfumato.methods.risk_utility.publish import bounds_of, boxes_table, publish_rows
from sfumato.policy.document import Policy
from sfumato.policy.options.risk_utility import FRAME, PrivateSampling, RiskUtilityOptions
from sfumato.policy.options.sampling_plan import plan
from sfumato.progress import Progress, no_progress
from sfumato.randomness import Random
from sfumato.recoding.rows import check_bounds
from sfumato.release.folder import sha256_of
from sfumato.table.databases import is_address
from sfumato.table.reading import open_as
from sfumato.table.source import Source

TRADEOFF = "tradeoff"
"""The name of a run's figures in the certificate."""
NO_PRIVACY = (
    "none is claimed: the set of boxes that may be published depends on the table [FEB12, theorem 4 is wrong]"
)

TOLERANCE = 1e-9
"""Relative: a risk that exceeds an edge of the histogram by less is one of rounded weights."""
LEAST_RISK = 10_000
"""The histogram of risk tells risks apart down to one in so many."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class SideTable:
    """The table that an attacker has; ``sha256`` is of its file, None if it has none."""

    source: Source
    sha256: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """All that is published, and what it was made of. The policy is closed (:mod:`encode`)."""

    policy: Policy
    rows: pa.Table
    figures: dict[str, Any]
    encoded: Encoded
    optimum: Optimum


def with_side_table(policy: Policy, given: Any = None) -> tuple[Policy, SideTable | None]:
    """The policy, and its side table opened; a path or frame that is ``given`` takes the place of the policy's own."""
    options = policy.options_for(RiskUtilityOptions)
    if given is not None:
        is_path = isinstance(given, Path) or (isinstance(given, str) and not is_address(given))
        name = Path(given).name if is_path else options.side_table or FRAME
        policy = replace(policy, method=replace(options, side_table=name, side_path=None))
        if not is_path:
            with of_side_table():
                return policy, SideTable(open_as(given, policy.schema))
    elif options.side_table is None:
        return policy, None
    path = Path(given or options.side_path or options.side_table or "")
    with of_side_table():
        return policy, SideTable(open_as(path, policy.schema), sha256_of(path) if path.exists() else None)


def generalize_table(
    source: Source,
    policy: Policy,
    side: SideTable | None,
    *,
    random: Random,
    chosen: Resources = HERE,
    progress: Progress = no_progress,
) -> Outcome:
    """Generalize every row of a table by the ``chosen`` engine; ``random`` is for their order alone."""
    progress("encoding", 0, 1)
    other = None if side is None else side.source
    policy = close_policy(policy, source, other)
    check_names(policy)
    options = policy.options_for(RiskUtilityOptions)
    found = encode_tables(source, policy.schema, options, other, policy.person)
    if options.private is not None:
        return _draw_as_printed(source, policy, options.private, found, random, progress)
    optimum = optimize(found.problem, options, engine=start_engine(chosen), progress=progress)
    progress("publishing", 0, 1)
    rows = publish_rows(source, policy, found, optimum.solution.levels, random)
    return Outcome(policy, rows, figures_of(found.problem, optimum, side), found, optimum)


def _draw_as_printed(
    source: Source,
    policy: Policy,
    private: PrivateSampling,
    found: Encoded,
    random: Random,
    progress: Progress,
) -> Outcome:
    """Algorithm 3 of the paper, with Algorithm 4 if asked for [FEB12, section 3]: a study, which promises no privacy."""
    problem, objective = found.problem, objective_of(policy.options_for(RiskUtilityOptions))
    chance = private.sample or plan(private.epsilon, private.delta).s
    given = exponential.parameters(
        problem, objective, epsilon=float(private.epsilon), delta=float(private.delta), beta=float(1 - chance)
    )
    if given.t is None:
        asked = f"{given.bound:,.0f}" if given.bound < 1e15 else f"{given.bound:.1e}"
        raise PaperCannotPublish(asked, n_rows=source.n_rows)
    walk = polytope.Walk(given.t, given.working) if private.algorithm == 4 else None
    sample = None
    if walk is not None:
        assert isinstance(objective, Lagrangian)
        sample = polytope.sample_by_walking(problem, objective, walk, random)
    drawn = exponential.draw(problem, objective, given, random, sample=sample, progress=progress)
    if not len(drawn.row):
        raise PaperCannotPublish(f"{given.t - 1:,}", n_rows=source.n_rows)
    progress("publishing", 0, 1)
    solution = problem.solution(drawn.levels, which=problem.of_row[drawn.row])
    order = random.permutation(len(drawn.row))
    nodes = problem.nodes_of(solution.which, solution.levels)[order] - problem.lattice.root
    rows = boxes_table(nodes, found.domains, policy)
    part = problem.of_packed(problem.pack_rows()[solution.which])
    here = replace(solution, which=np.arange(len(solution)))
    reason = f"Algorithm {private.algorithm} of the paper, for study: no privacy is claimed"
    figures = figures_of(part, Optimum(here, "sampling", reason), None)
    figures["raw risk"] = _figure(raw_risk(problem), problem.n_alike, "greatest")  # of the whole table
    del figures["histogram"]  # which would be of the rows that were drawn
    figures["published"] = {
        "privacy": NO_PRIVACY,
        "algorithm": private.algorithm,
        "t": given.t,
        "covered": given.t if walk is None else math.ceil(walk.sigma * given.t),
        "beta": given.beta,
        "tau_1": given.tau_1,
        "eta": given.eta,
        "epsilon'": given.working,
        "nats": given.spread,
    }
    return Outcome(policy, rows, figures, found, Optimum(here, "sampling", reason))


def check_names(policy: Policy) -> None:
    """Raise if a published bound would have the name of a column."""
    check_bounds(policy, bounds_of(policy.schema, policy.output))


# ---- figures -----------------------------------------------------------------------------------------------


def figures_of(problem: LatticeProblem, optimum: Optimum, side: SideTable | None) -> dict[str, Any]:
    """The figures of risk and utility for the certificate; means are over the rows of the table."""
    solution, n_alike = optimum.solution, problem.n_alike
    nodes = problem.nodes_of(solution.which, solution.levels)
    as_it_is = problem.nodes_of(solution.which, np.zeros_like(solution.levels))
    is_root = np.all(nodes == problem.lattice.root, axis=1)
    is_raw = np.all(nodes == as_it_is, axis=1)
    possible = problem.raw_utility - problem.least_utility
    reached = solution.utility - problem.least_utility
    share = np.where(possible > 0, reached / np.maximum(possible, 1), 1.0)
    before, after = raw_risk(problem), problem.risk(solution)
    return {
        "optimizer": optimum.optimizer,
        "reason": optimum.reason,
        "proved": int(n_alike[solution.is_proved].sum()),
        "rows": len(problem.of_row),
        "raw risk": _figure(before, n_alike, "greatest"),
        "risk": _figure(after, n_alike, "greatest"),
        "histogram": histogram_of(before, after, n_alike),
        "share": _figure(share, n_alike, "least"),
        "suppressed": int(n_alike[is_root].sum()),
        "raw": int(n_alike[is_raw].sum()),
        "lacking": int((n_alike * problem.own).sum()),
        "side table": {
            "rows": problem.n_side if problem.people is None else problem.people.n_rows,
            **({} if problem.people is None else {"people": problem.n_side}),
            "own": side is None,
            "sha256": None if side is None else side.sha256,
        },
    }


def _figure(values: Floats, n_alike: Ints, extreme: str) -> dict[str, float]:
    """Mean and extreme, to twelve digits: the last ones of a sum depend on the order of its parts."""
    ends = {"greatest": np.max, "least": np.min}
    found = {"mean": np.average(values, weights=n_alike), extreme: ends[extreme](values)}
    return {word: float(f"{number:.12g}") for word, number in found.items()}


def histogram_of(before: Floats, after: Floats, n_alike: Ints) -> list[dict[str, Any]]:
    """How many rows have how much risk, before and after: bins from 0 and 1/10,000 on, by steps of 1, 2, 5, 10.

    >>> histogram_of(np.array([0.5, 1.0]), np.array([0.3, 0.6]), np.array([3, 1]))
    [{'at most': 0.5, 'raw': 3, 'published': 3}, {'at most': 1, 'raw': 1, 'published': 1}]
    """
    greatest = max(before.max(initial=0.0), after.max(initial=0.0))
    edges: list[float] = [0]
    power = 0
    while edges[-1] < greatest:
        edges += [times * 10**power / LEAST_RISK for times in (1, 2, 5)]
        power += 1
    counts = [
        np.bincount(np.searchsorted(edges, risks * (1 - TOLERANCE)), n_alike, len(edges)).astype(np.int64)
        for risks in (before, after)
    ]
    return [
        {"at most": _plain(edge), "raw": int(raw), "published": int(published)}
        for edge, raw, published in zip(edges, *counts, strict=True)
        if raw or published
    ]


def _plain(number: float) -> float:
    return int(number) if number == int(number) else number


def raw_risk(problem: LatticeProblem) -> Floats:
    """The risk of each row as it is, which covers the rows of the side table that are the same."""
    both, at, _ = distinct_rows(np.concatenate([problem.side, problem.rows]))
    n_side = len(problem.side)
    count = np.zeros(len(both), dtype=np.int64)
    count[at[:n_side]] = problem.side_count
    covered = count[at[n_side:]] + problem.own
    weight = problem.weight_of(np.arange(problem.n), np.zeros(problem.rows.shape, dtype=np.uint8))
    return np.asarray(weight * problem.weight_unit / np.maximum(covered, 1))


__all__ = [
    "TRADEOFF",
    "Outcome",
    "SideTable",
    "check_names",
    "figures_of",
    "generalize_table",
    "raw_risk",
    "with_side_table",
]
