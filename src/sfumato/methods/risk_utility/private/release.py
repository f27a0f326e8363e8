"""A private risk-utility release: what is drawn from a table, and what of it is published.

Rows become codes of what the policy declares, each row gets a box that depends on it and the public side table, rows are
drawn, and boxes published that enough of the drawn rows have. Nothing else of the table leaves: no number of rows,
no figure of the run, no order of rows. Why that is private: ``proof.md``, in this folder.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa

from sfumato.encoding.declared import bound_rows, encode_by_domains, tree_domains_of
from sfumato.engines.engine import Resources
from sfumato.engines.start import HERE, start_engine
from sfumato.errors import InternalError
from sfumato.methods.risk_utility.encode import check_leaf_weights, check_side
from sfumato.methods.risk_utility.optimize import choose_optimizer
from sfumato.methods.risk_utility.private import draw
from sfumato.methods.risk_utility.problem import (
    LatticeProblem,
    Solution,
    lattice_of,
    objective_of,
    problem_of,
)
from sfumato.methods.risk_utility.publish import boxes_table, order_of
from sfumato.methods.risk_utility.release import SideTable, check_names
from sfumato.policy.document import Policy
from sfumato.policy.options.risk_utility import EXACT, PrivateSampling, RiskUtilityOptions, declared_schema
from sfumato.policy.options.sampling_plan import Plan, plan
from sfumato.privacy.ledger import COMPOSITION, Draw, Ledger
from sfumato.privacy.mechanisms import BERNOULLI, Coins
from sfumato.progress import Progress, no_progress
from sfumato.release.certificate import Privacy, Sampling, public_of
from sfumato.table.source import Source

ROWS = "rows"

Solve = Callable[[LatticeProblem], Solution]
"""The box of each row of a problem."""


@dataclass(frozen=True, slots=True, eq=False)
class DrawnSample:
    """All that may be published. The policy has a hierarchy for every column, as it is declared."""

    policy: Policy
    rows: pa.Table
    privacy: Privacy


def plan_of(policy: Policy) -> Plan:
    """The chance that a row is drawn, and how often a box must be drawn to be published: by the policy alone."""
    _, private = _options(policy)
    return plan(private.epsilon, private.delta, private.sample)


def prepare(policy: Policy, side: SideTable) -> Policy:
    """The policy with all hierarchies. Raises before anything is drawn if it or the side table is not fit for use."""
    options, _ = _options(policy)
    policy = replace(policy, schema=declared_schema(policy.schema))
    check_side(policy.schema, side.source)
    check_names(policy)
    domains = tree_domains_of(policy.schema)
    for domain in domains:
        check_leaf_weights(domain, options.weights)
    lattice_of(domains, options.utility, options.weights, floor=float(options.floor))
    return policy


def draw_release(
    source: Source,
    policy: Policy,
    side: SideTable,
    *,
    coins: Coins,
    chosen: Resources = HERE,
    progress: Progress = no_progress,
) -> DrawnSample:
    """Draw rows of a table, and keep the boxes that enough of them have; the policy is one that :func:`prepare` made."""
    options, private = _options(policy)
    domains = tree_domains_of(policy.schema)
    progress("encoding", 0, 1)
    public = encode_by_domains(side.source, domains)
    kept = bound_rows(source, policy, coins.row_keys, memory=chosen.memory or None)
    like_public, table = (
        problem_of(
            domains,
            rows,
            public,
            utility=options.utility,
            weights=options.weights,
            floor=float(options.floor),
        )
        for rows in (public, encode_by_domains(source, domains, kept))
    )
    objective, own = objective_of(options), plan_of(policy)
    choice = choose_optimizer(like_public, objective, options.optimizer, for_any_rows=True)
    solve = partial(choice.solve, objective=objective, engine=start_engine(chosen))
    outlook = _outlook(like_public, solve, own) if choice.optimizer == EXACT else None
    progress("generalizing", 0, 1)
    ledger = Ledger(private.epsilon)
    ledger.charge(Draw(ROWS, "", BERNOULLI, private.epsilon, own.s))
    found = _draw_boxes(table, solve, own, coins)
    privacy = Privacy(
        private.epsilon,
        COMPOSITION,
        tuple(ledger.as_list()),
        ledger.spent,
        ledger.unspent,
        coins.statement,
        public_of(policy),
        own.delta,
        Sampling(own.s, own.k0, len(public), side.sha256, outlook),
        policy.rows_at_most,
    )
    nodes = found.rows() - table.lattice.root
    rows = boxes_table(nodes[order_of(nodes, domains, policy)], domains, policy)
    return DrawnSample(policy, rows, privacy)


def _options(policy: Policy) -> tuple[RiskUtilityOptions, PrivateSampling]:
    options = policy.options_for(RiskUtilityOptions)
    if options.private is None:
        raise InternalError("Only private risk-utility draws rows.")
    return options, options.private


def _draw_boxes(problem: LatticeProblem, solve: Solve, own: Plan, coins: Coins) -> draw.DrawnBoxes:
    """The boxes that are published of a table, which may be empty."""
    if not problem.n:
        return draw.DrawnBoxes(np.empty((0, problem.n_columns), dtype=np.int64), np.empty(0, dtype=np.int64))
    return draw.draw(problem, solve(problem), own, coins)


def _outlook(like_public: LatticeProblem, solve: Solve, own: Plan) -> float:
    """The share of a table like the side table that can be published."""
    return round(draw.outlook(like_public, solve(like_public), own), 4)


__all__ = ["DrawnSample", "draw_release", "plan_of", "prepare"]
