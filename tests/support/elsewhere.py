"""An engine whose plans, places, works, parts and states go through pickle, as they would to other machines."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from sfumato.engines.local import Gathering
from sfumato.engines.memory import MemoryEngine
from sfumato.engines.protocol import Asked, Divided, Loaded, Room

N_WORKERS = 3


def send(something: Any) -> Any:
    return pickle.loads(pickle.dumps(something))


class Elsewhere(MemoryEngine):
    """Each of a few workers adds some of the blocks to states of its own; the states are merged, last worker first."""

    def __init__(self, room: Room | None = None) -> None:
        super().__init__(replace(room or Room(), keeps_counts=False), threads=1)
        self.n_parts = 0
        self.n_filled = 0
        """The most workers that had rows in one pass; a test in which it stays at 1 has merged nothing."""

    def gather(self, rows: Any, asked: Asked[Any], *, stage: str = "") -> list[Any]:
        workers = [Gathering(send(asked), self.room.count_bytes, None) for _ in range(N_WORKERS)]
        filled = set()
        for number, block in enumerate(self.read(rows, stage, payload=False)):
            workers[number % N_WORKERS].add(block)
            filled.add(number % N_WORKERS)
        self.n_filled = max(self.n_filled, len(filled))
        return send(merge_all(workers))

    def divide(
        self, rows: Any, places: Any, *, also: Asked[Any] | None = None, stage: str = ""
    ) -> Divided[Any]:
        parts = super().divide(rows, send(places), stage=stage).parts
        return Divided(parts, [] if also is None else self.gather(rows, also))

    def finish(self, parts: Iterable[tuple[Any, Any]]) -> Iterator[Any]:
        for rows, work in parts:
            self.n_parts += 1
            there, here = send((self.load(rows), work))
            assert isinstance(there, Loaded)
            yield send(here(there))


def merge_all(workers: list[Gathering[Any]]) -> list[Any]:
    merged = workers.pop()
    for worker in reversed(workers):
        for mine, theirs in zip(merged.states, worker.states, strict=True):
            mine.merge(send(theirs))
    return merged.answers()
