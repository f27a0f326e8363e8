"""Rows of one group that cannot be loaded at once: each goes to a random part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sfumato.encoding.domain import Codes
from sfumato.engines.protocol import Engine, Rows
from sfumato.randomness import Random

FILL = 0.8
"""How full a part that must be loaded is planned to be: its rows are not counted beforehand."""


@dataclass(frozen=True, slots=True, eq=False)
class RandomPlaces:
    """Each row goes to a random part."""

    n_parts: int
    random: Random

    def of(self, rows: Codes) -> NDArray[np.int64]:
        """The part of each row."""
        return self.random.integers(self.n_parts, size=len(rows))

    def apart(self, n: int) -> list[RandomPlaces]:
        """For rows that are divided in several places: each draws by itself, and the same whenever it is asked."""
        return [replace(self, random=child) for child in self.random.spawn(n)]


def scatter(engine: Engine, rows: Rows, random: Random, *, stage: str = "") -> Iterator[Rows]:
    """The rows in parts that can be loaded, each row in a random one. Rows that are divided are gone."""
    room = engine.room
    if rows.n_rows <= room.rows:
        if rows.n_rows:
            yield rows
        return
    n_parts = min(room.parts, -(-rows.n_rows // max(int(FILL * room.rows), 1)))
    parts = engine.divide(rows, RandomPlaces(n_parts, random), stage=stage).parts
    engine.discard(rows)
    for part in parts:
        yield from scatter(engine, part, random, stage=stage)
