"""Rows that live in memory: one matrix, and its parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from sfumato.encoding.batches import Rows, WholeTable
from sfumato.encoding.domain import Domain
from sfumato.encoding.encoders import encode_axis
from sfumato.encoding.targets import Columns, columns_for
from sfumato.engines.local import Gathering, LocalEngine
from sfumato.engines.protocol import NOTHING, A, Asked, Divided, Loaded, Places, Room
from sfumato.policy.document import Policy
from sfumato.progress import Progress, no_progress
from sfumato.table.cells import give_back_memory
from sfumato.table.source import Source


@dataclass(frozen=True, slots=True, eq=False)
class TableInMemory(Loaded):
    """All rows of a table, column after column, with the domains and what is known of the columns."""

    domains: tuple[Domain, ...] = field(kw_only=True)
    columns: Columns = field(kw_only=True)


def encode_table(source: Source, policy: Policy, *, progress: Progress = no_progress) -> TableInMemory:
    """Encode a table that fits in memory: quasi-identifiers, then what requirement and workload need."""
    quasi = policy.schema.quasi_identifiers
    table = WholeTable(source, policy.schema)
    needed = columns_for(policy.schema, policy.requirements, policy.workload)
    columns = Columns.of_table(table, needed, n_axes=len(quasi))
    codes = np.empty((len(quasi) + len(needed), source.n_rows), dtype=np.uint32)
    for at, column in enumerate(needed, start=len(quasi)):
        codes[at] = columns.codes(column, table)
    domains: list[Domain] = []
    for at, attribute in enumerate(quasi):
        progress("encoding", at, len(quasi))
        domain, codes[at] = encode_axis(source, attribute)
        domains.append(domain)
    give_back_memory()
    return TableInMemory(codes.T, domains=tuple(domains), columns=columns)


class MemoryEngine(LocalEngine):
    """Rows in matrices. By default there is room for everything; a test may ask it to work in small parts."""

    def __init__(self, room: Room | None = None, *, progress: Progress = no_progress) -> None:
        super().__init__(room or Room(), progress=progress)

    def divide(self, rows: Rows, places: Places, *, also: Asked[A] = NOTHING, stage: str = "") -> Divided[A]:
        """The rows of each part, in the order that they had."""
        gathering, of_block = Gathering(also, self.room.count_bytes, None), []
        for block in self.read(rows, stage, payload=False):
            of_block.append(places.of(block.rows))
            gathering.add(block)
        part, loaded = np.concatenate([np.zeros(0, dtype=np.int64), *of_block]), self.load(rows)
        order = np.argsort(part, kind="stable")
        ends = np.cumsum(np.bincount(part, minlength=places.n_parts))
        parts: list[Rows] = [
            Loaded(loaded.rows[own], numbers=loaded.number(own)) for own in np.split(order, ends[:-1])
        ]
        return Divided(parts, gathering.answers())

    def load(self, rows: Rows, *, payload: bool = True) -> Loaded:  # noqa: ARG002 - the table itself has it
        if isinstance(rows, Loaded):
            return rows
        blocks = [block.rows for block in rows.blocks(payload=False)]
        return Loaded(np.concatenate(blocks) if blocks else np.empty((0, 0), dtype=np.uint32))

    def keep(self, rows: Rows, *, payload: bool = True) -> Rows:
        return self.load(rows, payload=payload)

    def join(self, parts: Sequence[Rows]) -> Rows:
        loaded = [self.load(part) for part in parts]
        numbers = [part.number(np.arange(part.n_rows)) for part in loaded]
        return Loaded(np.concatenate([part.rows for part in loaded]), numbers=np.concatenate(numbers))

    def discard(self, rows: Rows) -> None:
        """Memory goes with the last who knows them."""
