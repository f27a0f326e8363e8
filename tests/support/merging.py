"""Ways to gather a state from the rows of a table: in any blocks, in any order, and by any tree of merges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from hypothesis import strategies as st

from sfumato.encoding.batches import Block
from sfumato.engines.protocol import Plan
from sfumato.randomness import seeded

S = TypeVar("S")


@dataclass(frozen=True)
class Way:
    """Blocks of rows in the order in which they come, how many each state sees, and which states are merged when."""

    blocks: tuple[tuple[int, int], ...]
    n_blocks: tuple[int, ...]
    merges: tuple[tuple[int, int], ...]
    """The place of a state among those left, and of the one that is merged into it."""


@st.composite
def ways_to_gather(draw: Any, n_rows: int) -> Way:
    """A way to gather the state of so many rows."""
    cuts = sorted(draw(st.sets(st.integers(1, max(n_rows - 1, 1)), max_size=6)) - {n_rows})
    blocks = draw(st.permutations(list(zip([0, *cuts], [*cuts, n_rows], strict=True))))
    n_states = draw(st.integers(1, len(blocks) + 1))  # some may see nothing
    ends = sorted(draw(st.lists(st.integers(0, len(blocks)), min_size=n_states - 1, max_size=n_states - 1)))
    n_blocks = [end - start for start, end in zip([0, *ends], [*ends, len(blocks)], strict=True)]
    merges = []
    for left in range(n_states, 1, -1):
        merges.append(tuple(draw(st.permutations(range(left)))[:2]))
    return Way(tuple(blocks), tuple(n_blocks), tuple(merges))


def gather_in_parts(
    way: Way, new: Callable[[], S], add: Callable[[S, int, int], object], *, merge: str = "merge"
) -> S:
    """The state that comes out; ``add`` shows a state the rows from the first number up to the second."""
    states, blocks = [], iter(way.blocks)
    for n in way.n_blocks:
        state = new()
        for _ in range(n):
            add(state, *next(blocks))
        states.append(state)
    for into, other in way.merges:
        getattr(states[into], merge)(states[other])
        del states[other]
    return states[0]


def gather_whole(plan: Plan[Any, Any], rows: Any, room: int = 10**6) -> Any:
    """The answer of one state that is shown all rows at once."""
    state = plan.new(room, None)
    state.add(Block(np.ascontiguousarray(rows, dtype=np.uint32), None))
    return plan.answer(state)


def gather_merged(plan: Plan[Any, Any], rows: Any, data: Any, room: int = 10**6, spill: Any = None) -> Any:
    """The answer of several states that are shown some rows each, in any order, and merged in any order."""
    order = seeded(data.draw(st.integers(0, 2**32))).permutation(len(rows))
    shuffled = np.asarray(rows, dtype=np.uint32)[order]

    def add(state: Any, first: int, last: int) -> None:
        state.add(Block(np.ascontiguousarray(shuffled[first:last]), None))

    way = data.draw(ways_to_gather(len(rows)))
    return plan.answer(gather_in_parts(way, lambda: plan.new(room, spill), add))
