"""What engines on one machine share: a pass over blocks, with progress, that adds each row where it belongs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic

import numpy as np
from numpy.typing import NDArray

from sfumato.encoding.batches import Block, Rows
from sfumato.encoding.domain import Codes
from sfumato.engines.memory_plan import share_room
from sfumato.engines.protocol import A, Asked, D, Loaded, Published, Room, Sink, Work
from sfumato.progress import Progress, no_progress
from sfumato.table.spill import Counters, Spill


class Gathering(Generic[A]):
    """States that blocks are added to."""

    def __init__(self, asked: Asked[A], room: int, spill: Spill | None) -> None:
        self.plans, self.to = asked.plans, asked.to
        rooms = share_room([plan.n_bytes for plan in self.plans], room)
        self.states = [plan.new(own, spill) for plan, own in zip(self.plans, rooms, strict=True)]

    def add(self, block: Block) -> None:
        if self.to is None:
            for state in self.states:
                state.add(block)
            return
        for part, own in group_rows(block.rows, self.to.of(block.rows), self.to.n_parts):
            if part < len(self.states):
                self.states[part].add(Block(own, None))

    def answers(self) -> list[A]:
        return [plan.answer(state) for plan, state in zip(self.plans, self.states, strict=True)]


class LocalEngine(ABC):
    """An engine that reads blocks one after the other."""

    def __init__(
        self,
        room: Room,
        *,
        counters: Counters,
        spill: Spill | None = None,
        threads: int | None = None,
        progress: Progress = no_progress,
    ) -> None:
        self.room, self.counters, self.spill = room, counters, spill
        self.threads, self.progress = threads, progress

    def gather(self, rows: Rows, asked: Asked[A], *, stage: str = "") -> list[A]:
        """One pass: the answer of each plan."""
        gathering = Gathering(asked, self.room.count_bytes, self.spill)
        for block in self.read(rows, stage, payload=asked.payload):
            gathering.add(block)
        return gathering.answers()

    def read(self, rows: Rows, stage: str, *, payload: bool = True) -> Iterator[Block]:
        """One pass over rows, with progress."""
        n_done = 0
        for block in rows.blocks(payload=payload):
            yield block
            n_done += len(block.rows)
            if stage:
                self.progress(stage, n_done, rows.n_rows)

    def finish(self, parts: Iterable[tuple[Rows, Work[D]]]) -> Iterator[D]:
        """Do the work of each part on its rows, part after part."""
        for rows, work in parts:
            loaded = self.load(rows)
            self.discard(rows)
            yield work(loaded)

    def publish(self, parts: Iterable[tuple[Rows, Work[Published[D]]]], sink: Sink) -> Iterator[D]:
        """Do the work of each part, and publish the rows that it finds."""
        for rows, told in self.finish(parts):
            sink.append(rows)
            del rows  # or they would be there until the next ones are
            yield told

    @abstractmethod
    def load(self, rows: Rows, *, payload: bool = True) -> Loaded:
        """Rows that fit in memory, all at once."""

    @abstractmethod
    def join(self, parts: Sequence[Rows]) -> Rows:
        """The rows of several parts as those of one."""

    @abstractmethod
    def discard(self, rows: Rows) -> None:
        """Nobody will read these rows again."""


def group_rows(rows: Codes, part: NDArray[np.integer[Any]], n_parts: int) -> Iterator[tuple[int, Codes]]:
    """Each part that has rows, and its rows in their order."""
    order = np.argsort(part, kind="stable")
    start = 0
    for number, end in enumerate(np.cumsum(np.bincount(part, minlength=n_parts)).tolist()):
        if end > start:
            yield number, rows.take(order[start:end], axis=0)
        start = end
