"""What Rothko asks of an engine in a pass over rows: where each row goes, statistics of leaves, a sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.engines.protocol import Block
from sfumato.engines.reservoir import sample_codes
from sfumato.kernels.axes import Axes
from sfumato.kernels.nodes import Nodes
from sfumato.kernels.spans import NO_VALUE, pack_spans
from sfumato.methods.mondrian.covers import CodeEnds, find_covers
from sfumato.methods.mondrian.kernels.descend import Descent
from sfumato.methods.mondrian.kernels.problem import Rules
from sfumato.methods.mondrian.people_counts import AxisParts, PeopleAsker
from sfumato.methods.mondrian.sample import LeafStatistics
from sfumato.methods.mondrian.statistics import GroupStatistics
from sfumato.policy.document import Policy
from sfumato.recoding.statistics import OneGroup
from sfumato.table.spill import Spill

Codes = NDArray[np.uint32]
Ints = NDArray[np.int64]


@dataclass(slots=True, eq=False)
class TreePlaces:
    """The part of each row is that of the leaf it comes to in a tree; of a row that is left out the last one."""

    descent: Descent
    part_of_node: NDArray[np.integer[Any]]
    n_parts: int
    _last: tuple[Codes, Ints] | None = field(default=None, repr=False)
    """Some rows, and their leaves: a pass may ask for these twice."""

    def of(self, rows: Codes) -> NDArray[np.integer[Any]]:
        """The part of each row."""
        return self.part_of_node[self.leaves(rows)]

    def leaves(self, rows: Codes) -> Ints:
        """The leaf of each row."""
        if self._last is None or self._last[0] is not rows:
            self._last = rows, self.descent.leaves(rows)
        return self._last[1]

    def __reduce__(self) -> tuple[type[TreePlaces], tuple[Any, ...]]:
        """Pickled without the rows that it has seen last."""
        return TreePlaces, (self.descent, self.part_of_node, self.n_parts)


@dataclass(frozen=True, slots=True, eq=False)
class LeafParts:
    """The leaves of a tree as parts of its rows; ``place`` is that of each node among the leaves."""

    places: TreePlaces
    place: Ints
    n_parts: int

    def of(self, rows: Codes) -> Ints:
        """The part of each row."""
        return self.place[self.places.leaves(rows)]


@dataclass(frozen=True, slots=True, eq=False)
class LeafPlan:
    """Gather what pruning must know of the leaves of a tree, which rows are sent down by ``places``.

    people   who asks for people, if groups count these; None: rows
    """

    nodes: Nodes
    rules: Rules
    places: TreePlaces
    people: PeopleAsker | None = None

    @property
    def n_bytes(self) -> int:
        """Memory of the statistics."""
        of_people = 0 if self.people is None else self.people.plan(AxisParts.whole()).n_bytes
        return self._own_bytes + of_people

    @property
    def _own_bytes(self) -> int:
        return int((self.nodes.axis < 0).sum()) * GroupStatistics.bytes_per_group(self.rules)

    def new(self, room: int, spill: Spill | None) -> CountedLeaves:
        """Statistics of no row yet."""
        statistics = LeafStatistics(self.nodes, self.rules)
        if self.people is not None:
            parts = LeafParts(self.places, statistics.place, len(statistics.n_rows))
            statistics.people = self.people.plan(parts).new(max(room - self._own_bytes, 0), spill)
        return CountedLeaves(statistics, self.places)

    def answer(self, state: CountedLeaves) -> LeafStatistics:
        """The statistics."""
        state.statistics.settle(self.nodes)
        return state.statistics


@dataclass(frozen=True, slots=True, eq=False)
class CountedLeaves:
    """The state of a ``LeafPlan``."""

    statistics: LeafStatistics
    places: TreePlaces

    def add(self, block: Block) -> None:
        """Add some rows."""
        self.statistics.add(block.rows, self.places.leaves(block.rows))

    def merge(self, other: CountedLeaves) -> None:
        """Add the rows of another state."""
        self.statistics.merge(other.statistics)


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """Sampled rows, and the hierarchy nodes that cover all rows."""

    sample: Codes
    covers: Ints


@dataclass(frozen=True, slots=True, eq=False)
class SamplePlan:
    """Draw a sample of some rows by their numbers, which are their last column, and find what covers all of them.

    person   the column of the person, if people are drawn with all their rows; None: rows
    """

    size: int
    seed: int
    n_rows: int
    axes: Axes
    person: int | None = None

    @property
    def n_bytes(self) -> int:
        """Nothing of the memory for counts: a sample takes that of rows which are loaded."""
        return 0

    def new(self, _room: int, _spill: Spill | None) -> SampleState:
        """A sample of no row yet."""
        return SampleState(self)

    def answer(self, state: SampleState) -> Drawn:
        """The sample."""
        return Drawn(state.reservoir.rows(), find_covers(self.axes, state.ends.get()))


class SampleState:
    """The state of a ``SamplePlan``."""

    def __init__(self, plan: SamplePlan) -> None:
        self.person = plan.person
        self.reservoir = sample_codes(plan.size, plan.seed, plan.n_rows if plan.person is None else 0)
        self.ends = CodeEnds(len(plan.axes.is_tree))

    def add(self, block: Block) -> None:
        """Let some rows take part."""
        rows, numbers = block.rows[:, :-1], block.rows[:, -1].astype(np.int64)
        owners = None if self.person is None else rows[:, self.person].astype(np.int64)
        self.reservoir.add_numbered(rows, numbers, owners)
        self.ends.add(block)

    def merge(self, other: SampleState) -> None:
        """Let the rows of another state take part."""
        self.reservoir.merge(other.reservoir)
        self.ends.merge(other.ends)


@dataclass(frozen=True, slots=True, eq=False)
class CoverPlan:
    """Find what covers all rows: hierarchy nodes, and if ``has_spans`` the spans of ordered axes."""

    axes: Axes
    has_spans: bool = False
    n_bytes: int = 0

    def new(self, _room: int, _spill: Spill | None) -> Covered:
        """No row yet."""
        n_axes = len(self.axes.is_tree)
        return Covered(CodeEnds(n_axes), CodeEnds(n_axes), self.axes)

    def answer(self, state: Covered) -> Ints:
        """The covers."""
        ends = state.ends.get()
        covers = find_covers(self.axes, ends)
        if not self.has_spans:
            return covers
        missing = ~self.axes.is_tree & (self.axes.least_code > 0) & (ends[0] == 0)
        least, greatest = state.values.low, state.values.high
        assert least is not None
        assert greatest is not None
        return np.where(self.axes.is_tree, covers, pack_spans(least, greatest, missing))


@dataclass(frozen=True, slots=True, eq=False)
class Covered:
    """The state of a ``CoverPlan``: the ends of all codes, and of those that are no missing ones."""

    ends: CodeEnds
    values: CodeEnds
    axes: Axes

    def add(self, block: Block) -> None:
        """Add some rows."""
        self.ends.add(block)
        codes = block.rows[:, : self.ends.n_axes].astype(np.int64)
        is_value = codes >= self.axes.least_code
        self.values.widen(
            np.where(is_value, codes, NO_VALUE).min(axis=0), np.where(is_value, codes, 0).max(axis=0)
        )

    def merge(self, other: Covered) -> None:
        """Add the rows of another state."""
        self.ends.merge(other.ends)
        self.values.merge(other.values)


@dataclass(frozen=True, slots=True, eq=False)
class SummaryPlan:
    """Find the statistics that are published of a group, whose rows these are; it is asked for with their payload."""

    policy: Policy
    n_bytes: int = 0

    def new(self, _room: int, _spill: Spill | None) -> Summary:
        """No row yet."""
        return Summary(OneGroup(self.policy))

    def answer(self, state: Summary) -> Mapping[str, pa.Scalar]:
        """The statistics."""
        return state.group.cells()


@dataclass(frozen=True, slots=True, eq=False)
class Summary:
    """The state of a ``SummaryPlan``."""

    group: OneGroup

    def add(self, block: Block) -> None:
        """Add some rows."""
        assert block.payload is not None
        self.group.add(block.payload)

    def merge(self, other: Summary) -> None:
        """Add the rows of another state."""
        self.group.merge(other.group)


@dataclass(frozen=True, slots=True, eq=False)
class ColumnPlan:
    """Gather some columns of the row matrix, of rows that are few."""

    columns: Sequence[int]
    n_bytes: int = 0

    def new(self, _room: int, _spill: Spill | None) -> Cells:
        """No row yet."""
        return Cells(self.columns)

    def answer(self, state: Cells) -> Codes:
        """(rows, columns) those columns, in any order of rows."""
        return np.concatenate([np.zeros((0, len(self.columns)), dtype=np.uint32), *state.found])


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """The state of a ``ColumnPlan``."""

    columns: Sequence[int]
    found: list[Codes] = field(default_factory=list)

    def add(self, block: Block) -> None:
        """Add some rows."""
        self.found.append(block.rows[:, self.columns])

    def merge(self, other: Cells) -> None:
        """Add the rows of another state."""
        self.found.extend(other.found)
