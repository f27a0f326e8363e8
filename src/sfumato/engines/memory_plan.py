"""How the memory of a run is divided, if it is limited.

The phases of a run follow each other, so each may take most of the memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.engines.engine import Resources
from sfumato.engines.protocol import UNLIMITED, Room
from sfumato.engines.rows import MOST_FILES
from sfumato.policy.document import Policy
from sfumato.policy.requirements import KAnonymity
from sfumato.recoding import statistics

NODE_BYTES = 64
"""Bytes of one tree node."""

LABEL_BYTES = 400
"""Bytes of one published label with all that leads to it: tree node, box, text and copies."""

BLOCK_BYTES = 1 << 16
"""The least that is worth writing to a file at once."""


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """The share of each phase.

    memory           all of it
    max_rows         rows that are grown in memory at once
    count_bytes      what is gathered in one pass
    writer_bytes     rows on their way into files
    max_files        files written at once, so that each still gets blocks worth writing
    row_bytes        what a row takes while it is grown
    """

    memory: int = UNLIMITED
    max_rows: int = UNLIMITED
    count_bytes: int = UNLIMITED
    writer_bytes: int = UNLIMITED
    max_files: int = UNLIMITED
    row_bytes: int = 0

    @classmethod
    def of(cls, memory: int, *, row_bytes: int, max_rows: int | None = None) -> MemoryPlan:
        """Divide ``memory`` bytes; the policy may fix ``max_rows``."""
        return cls(
            memory=memory,
            max_rows=max_rows or max(memory // row_bytes, 100),
            count_bytes=memory // 2,
            writer_bytes=memory // 2,
            max_files=int(np.clip(memory // 2 // (4 * BLOCK_BYTES), 2, MOST_FILES)),
            row_bytes=row_bytes,
        )

    @property
    def room(self) -> Room:
        """What there is room for at once."""
        return Room(self.count_bytes, self.max_rows, self.max_files, row_bytes=self.row_bytes)


def plan_memory(
    chosen: Resources, policy: Policy, *, payload_bytes: int = 0, max_rows: int | None = None
) -> MemoryPlan:
    """Divide the memory of a run for rows of which each has ``payload_bytes`` that are published as they are.

    Rows that live in memory have all they need.
    """
    if chosen.spill is None:
        return MemoryPlan()
    targets = {name for task in policy.predictions for name in task.targets}
    sensitive = {requirement.of for requirement in policy.requirements if requirement.of}
    row_bytes = estimate_row_bytes(
        n_axes=len(policy.schema.quasi_identifiers),
        n_extra=len(targets | sensitive) + 1,
        cell_bytes=_count_cell_bytes(policy),
        payload_bytes=payload_bytes,
        min_group=max((one.k for one in policy.requirements if isinstance(one, KAnonymity)), default=1),
    )
    return MemoryPlan.of(chosen.memory, row_bytes=row_bytes, max_rows=max_rows)


def _count_cell_bytes(policy: Policy) -> int:
    """Bytes of one published row, without what is published as it is: labels are places in a dictionary."""
    label, bounds = 4 * policy.output.has_labels, 16 * policy.output.has_bounds
    n_statistics = sum(len(statistics.names_of(attribute, policy)) for attribute in policy.schema)
    cells = (label + bounds * attribute.is_ordered for attribute in policy.schema.quasi_identifiers)
    return sum(cells) + 8 * n_statistics


def estimate_row_bytes(
    *, n_axes: int, n_extra: int, cell_bytes: int, payload_bytes: int = 0, min_group: int = 1
) -> int:
    """Memory for one row while its group is found and published.

    n_extra         columns of targets and sensitive values
    cell_bytes      bytes of a row's published quasi-identifiers and statistics
    payload_bytes   bytes of a row that are published as they are
    min_group       rows of the smallest group, which share the labels of their box
    """
    codes = 4 * (2 * n_axes + n_extra + 1)
    orders = 64  # leaves, orders, row numbers and random numbers, on the way also their copies
    published = 2 * cell_bytes + 3 * payload_bytes  # the columns, and a copy on their way out
    return codes + orders + published + LABEL_BYTES * n_axes // min_group


def share_room(wanted: Sequence[int], room: int) -> list[int]:
    """The bytes that each of several states may take: what it wants, and an equal part of what is left.

    If there is too little for all, each gets the same share of what it wants.

    >>> share_room([10, 30], 60), share_room([10, 30], 20)
    ([20, 40], [5, 15])
    """
    left = room - sum(wanted)
    return [each + left // len(wanted) if left >= 0 else each * room // sum(wanted) for each in wanted]
