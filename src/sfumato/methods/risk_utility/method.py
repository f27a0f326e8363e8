"""Risk-utility as a method: a box for each row; in its private form, the boxes of rows that were drawn."""

from __future__ import annotations

import os
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any

from sfumato.engines.engine import Resources
from sfumato.errors import InputError, InternalError
from sfumato.methods.protocol import Draft, Extras, Method, Seed
from sfumato.methods.risk_utility.apply import apply_to_file
from sfumato.methods.risk_utility.private import release as sampling
from sfumato.methods.risk_utility.release import TRADEOFF, generalize_table, with_side_table
from sfumato.policy.document import Policy
from sfumato.policy.options.risk_utility import RiskUtilityOptions
from sfumato.policy.schema import Role
from sfumato.privacy import mechanisms
from sfumato.progress import Progress
from sfumato.table.source import Source


class RiskUtility:
    """See :mod:`sfumato.methods.risk_utility`. There is no recoding: it would tell which raw row became which box."""

    only_in_memory = True
    apply_to_file = staticmethod(apply_to_file)

    def check(self, table: Any, policy: Policy, extras: Extras) -> None:
        """Raise if a private release would take the table itself for public; that others are, the owner knows."""
        if policy.is_private:
            given = extras.side_table
            _check_public(policy.options_for(RiskUtilityOptions).side_path if given is None else given, table)

    def draft(
        self,
        source: Source,
        policy: Policy,
        engine: Resources,
        *,
        chance: Seed,
        extras: Extras,
        progress: Progress,
    ) -> Draft:
        """Rows that were generalized one by one."""
        if policy.is_private:
            return _draw(source, policy, engine, chance, extras, progress)
        policy, side = with_side_table(policy, extras.side_table)
        found = generalize_table(
            source, policy, side, random=chance.generator(), chosen=engine, progress=progress
        )
        return Draft(
            found.rows, found.policy, figures={TRADEOFF: found.figures}, missing=found.encoded.with_missing
        )


METHOD: Method = RiskUtility()


def _draw(
    source: Source, policy: Policy, engine: Resources, chance: Seed, extras: Extras, progress: Progress
) -> Draft:
    """The private form: the cost is charged to the owner's account before anything is drawn."""
    policy, side = with_side_table(policy, extras.side_table)
    if side is None:
        raise InternalError("A private risk-utility policy has a side table.")
    policy = sampling.prepare(policy, side)
    coins = mechanisms.secret_coins() if chance.number is None else mechanisms.seeded(chance.number)
    cost = sampling.plan_of(policy)
    extras.charge(cost.epsilon, cost.delta)
    drawn = sampling.draw_release(source, policy, side, coins=coins, chosen=engine, progress=progress)
    missing = drawn.policy.schema.names(Role.QUASI_IDENTIFIER)
    return Draft(drawn.rows, drawn.policy, privacy=drawn.privacy, missing=missing)


def _check_public(side_table: Any, table: Any) -> None:
    """Raise if two tables are one."""
    is_same = side_table is table
    if isinstance(side_table, str | PathLike) and isinstance(table, str | PathLike):
        one, other = os.fsdecode(side_table), os.fsdecode(table)
        is_same = one == other  # an address of a database, too
        with suppress(OSError):  # whatever cannot be read is told when it is opened
            is_same = is_same or Path(one).samefile(other)
    if is_same:
        raise InputError(
            "The side table is the table itself. Under differential privacy the side table must be public: give a table "
            "that has no rows of this one."
        )
