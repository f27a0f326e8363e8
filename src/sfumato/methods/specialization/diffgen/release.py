"""A differentially private release: what is drawn from a table, and what of it is published.

The table is encoded by what the policy declares, cuts and counts are drawn by way of mechanisms that a ledger is
charged for, and from there on everything is computed from what was drawn. Nothing else of the table leaves: no number
of rows, no figure of the run, no order of rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.encoding.declared import DeclaredRows, bound_rows
from sfumato.engines.engine import Resources
from sfumato.engines.memory_plan import MemoryPlan
from sfumato.engines.rows import MOST_FILES, RowLayout
from sfumato.engines.start import HERE, start_engine
from sfumato.methods.specialization.diffgen import draw
from sfumato.policy.document import Policy
from sfumato.policy.options.diffgen import DiffGenOptions
from sfumato.privacy.ledger import COMPOSITION
from sfumato.privacy.mechanisms import Mechanisms
from sfumato.progress import Progress, no_progress
from sfumato.recoding.counts import GridLines
from sfumato.recoding.cuts import Cuts
from sfumato.release.certificate import Claims, Privacy, public_of
from sfumato.table.source import Source

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class DrawnCounts:
    """All that may be published: the cuts as a recoding, the counts (cells, classes), and what they cost."""

    recoding: Cuts
    lines: GridLines
    counts: Ints
    privacy: Privacy

    @property
    def claims(self) -> Claims:
        counted = int(self.counts.sum())
        rows = counted if self.lines.is_expanded else self.lines.n
        return Claims(rows=rows, groups=self.lines.n_cells, counted=counted)

    def tables(self) -> Iterator[pa.Table]:
        """The published rows, some at a time."""
        return self.lines.tables(self.counts)


def draw_release(
    source: Source,
    policy: Policy,
    *,
    chance: Mechanisms,
    chosen: Resources = HERE,
    progress: Progress = no_progress,
) -> DrawnCounts:
    """Draw cuts and counts of a table by the mechanisms of ``chance``; its rows live in the ``chosen`` engine."""
    options = policy.options_for(DiffGenOptions)
    progress("encoding", 0, 1)
    memory = chosen.memory or None
    kept = bound_rows(source, policy, chance.row_keys, memory=memory)
    table = DeclaredRows(source, policy, memory=memory, kept=kept)
    n_classes = len(table.class_values)
    layout = RowLayout.of([*(domain.n_codes - 1 for domain in table.domains), n_classes - 1])
    plan = MemoryPlan(chosen.memory, 0, chosen.memory, chosen.memory // 2, MOST_FILES)
    engine = start_engine(chosen, layout=layout, plan=plan)
    rows = engine.keep(table, payload=False)
    most = policy.rows_at_most or 1
    of_a_row = replace(options, epsilon=options.epsilon / most)
    found = draw(rows, table.domains, n_classes, of_a_row, chance, engine=engine, progress=progress)
    engine.discard(rows)
    recoding = found.grid.recoding(len(found.counts), policy.output, policy.schema.left_out)
    ledger = found.ledger.per_person(most)
    privacy = Privacy(
        ledger.epsilon,
        COMPOSITION,
        tuple(ledger.as_list()),
        ledger.spent,
        ledger.unspent,
        chance.statement,
        public_of(policy),
        rows_at_most=policy.rows_at_most,
    )
    return DrawnCounts(recoding, GridLines.of(recoding, policy), found.counts, privacy)
