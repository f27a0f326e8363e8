"""DiffGen as a method: counts of cells that were drawn by mechanisms which the budget pays for."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from sfumato.engines.engine import Engine
from sfumato.errors import InputError
from sfumato.methods.protocol import Draft, Extras, Method, Seed, refuse_side_table
from sfumato.methods.specialization.diffgen import release
from sfumato.methods.specialization.diffgen.release import DrawnCounts
from sfumato.policy.document import Policy
from sfumato.policy.options.diffgen import DiffGenOptions
from sfumato.privacy import mechanisms
from sfumato.progress import Progress
from sfumato.recoding.rows import check_names
from sfumato.release.folder import sha256_of
from sfumato.table import formulas
from sfumato.table.source import Source
from sfumato.table.spill import Spill
from sfumato.table.stored import FiledRows
from sfumato.table.write import TableWriter


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
        engine: Engine,
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
        extras.charge(options.epsilon)
        memory = None if engine.spill is None else engine.memory
        drawn = release.draw_release(
            source, policy, chance=randomness, spill=engine.spill, memory=memory, progress=progress
        )
        progress("publishing", 0, 1)
        rows: pa.Table | FiledRows
        if engine.spill is None:
            rows = pa.concat_tables(drawn.tables())
        else:
            rows = _write(drawn, policy, engine.spill, extras.file_format)
        return Draft(rows, policy, drawn.recoding, drawn.claims, privacy=drawn.privacy)


METHOD: Method = DiffGen()


def _write(drawn: DrawnCounts, policy: Policy, spill: Spill, file_format: str) -> FiledRows:
    """The rows of counts in a file."""
    path = spill.path("release").with_suffix(f".{file_format}")
    with TableWriter(path) as writer:
        for part in drawn.tables():
            writer.append(formulas.escape(part) if policy.escapes_formulas else part)
    rows = FiledRows(path, file_format, n_rows=writer.n_rows, is_escaped=policy.escapes_formulas)
    rows.sha256 = sha256_of(path)
    return rows
