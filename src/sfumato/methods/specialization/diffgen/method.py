"""DiffGen as a method: counts of cells that were drawn by mechanisms which the budget pays for."""

from __future__ import annotations

from typing import Any

from sfumato.engines.engine import Resources
from sfumato.engines.start import start_engine
from sfumato.errors import InputError
from sfumato.methods.protocol import Draft, Extras, Method, Seed, refuse_side_table
from sfumato.methods.specialization.diffgen import release
from sfumato.policy.document import Policy
from sfumato.policy.options.diffgen import DiffGenOptions
from sfumato.privacy import mechanisms
from sfumato.progress import Progress
from sfumato.recoding.rows import check_names
from sfumato.table.source import Source


class DiffGen:
    """See :mod:`sfumato.methods.specialization.diffgen`."""

    only_in_memory = False

    def check(self, table: Any, policy: Policy, extras: Extras) -> None:  # noqa: ARG002 - every method is asked
        """There is no side table."""
        refuse_side_table(extras)

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
        """Counts of cells, the cuts as a recoding, and what they cost."""
        options = policy.options_for(DiffGenOptions)
        check_names(policy)
        if not policy.keeps_recoding:
            raise InputError(
                "A differentially private release says how further rows are recoded: that was paid for, and tells "
                "nothing more; leave out recoding: false."
            )
        randomness = mechanisms.secret() if chance.number is None else mechanisms.seeded(chance.number)
        sink = start_engine(engine).sink(extras.file_format, escapes=policy.escapes_formulas)  # it may refuse
        extras.charge(options.epsilon)
        drawn = release.draw_release(source, policy, chance=randomness, chosen=engine, progress=progress)
        progress("publishing", 0, 1)
        with sink:
            for part in drawn.tables():
                sink.append(part)
        return Draft(sink.rows(), policy, drawn.recoding, drawn.claims, privacy=drawn.privacy)


METHOD: Method = DiffGen()
