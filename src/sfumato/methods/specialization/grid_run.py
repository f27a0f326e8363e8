"""One run of TDS over the rows of a table: the grid of cuts, and its groups.

Rows that the engine loads at once are held while they are divided; others are counted in passes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.encoding.targets import Joint, Label, Number, targets_of
from sfumato.engines.protocol import Asked, EncodedTable, Engine, Loaded, Rows, Work
from sfumato.errors import InputError, RequirementUnreachable
from sfumato.methods.groups import Chunk, Grouped, LossMeter, Ready
from sfumato.methods.people import NOBODY
from sfumato.methods.specialization.best_score import BestScore
from sfumato.methods.specialization.column_counts import ColumnPlan
from sfumato.methods.specialization.gains import Gains
from sfumato.methods.specialization.groups import CountedGroups, HeldGroups, SpecializedGroups
from sfumato.methods.specialization.loop import CutGrid, specialize
from sfumato.methods.specialization.mesh import Mesh
from sfumato.methods.specialization.order import RowsByCell, count_cells, sort_rows
from sfumato.policy.document import Policy
from sfumato.policy.requirements import GroupStats, KAnonymity
from sfumato.policy.workload import Classify
from sfumato.progress import Progress, no_progress
from sfumato.randomness import Random
from sfumato.recoding.cuts import Cuts
from sfumato.recoding.loss import Missing
from sfumato.recoding.recoder import Partition

NO_ROWS = Loaded(np.empty((0, 0), dtype=np.uint32))


class GridRun:
    """Specialization of the rows of a table: let all ``works`` be done and noted, then ask for the recoding.

    Groups come in the order of the cells of the grid, and the rows of a group in the order of the table. Where rows
    cannot be loaded at once, a group of more rows than can be is in several parts that follow each other, its rows
    divided among them at random.
    """

    def __init__(
        self,
        engine: Engine,
        table: EncodedTable,
        policy: Policy,
        *,
        random: Random,
        progress: Progress = no_progress,
    ) -> None:
        self.engine, self.table, self.policy = engine, table, policy
        self.random, self.progress = random, progress
        self.memory = engine.room.count_bytes // 2
        """Counts of columns have this much, and counts of cells as much again."""
        self.cuts: Cuts | None = None
        self._last_cell: tuple[int, ...] | None = None
        """Of the parts that were noted so far."""

    def works(self) -> Iterator[tuple[Rows, Work[Grouped]]]:
        """Rows that can be loaded are read once, others twice, and their codes in a few passes more."""
        self.progress("checking", 0, 1)
        k = _least_rows(self.table.n_rows, self.policy)
        self.progress("specializing", 0, self.table.n_rows)
        if self.table.n_rows <= self.engine.room.rows:
            yield NO_ROWS, Ready(self._find_at_once(k))
        else:
            yield from self._in_parts(k)

    def note(self, ends: CellEnds) -> None:
        """Raise if a group is in several parts and its statistics are to be published."""
        if self.policy.statistics and ends.first == self._last_cell:
            raise InputError(
                "A group has more rows than fit in memory, so its statistics cannot be taken; "
                "allow more --memory, or publish no summary."
            )
        self._last_cell = ends.last

    def recoding(self) -> Cuts:
        assert self.cuts is not None
        return self.cuts

    def n_splits(self) -> dict[str, int]:
        return self.recoding().n_splits()

    @property
    def published(self) -> dict[str, NDArray[np.int64]]:
        """All rows are."""
        return {}

    def people_left_out(self) -> NDArray[np.uint32]:
        """Nobody's rows: those of all groups come to a work."""
        return NOBODY

    def _find_at_once(self, k: int) -> Grouped:
        """Rows that are held while they are divided."""
        part = self.engine.load(self.engine.open(self.table))
        domains = self.table.domains
        gains = self._gains(part)
        groups = HeldGroups(
            np.ascontiguousarray(part.rows.T[: len(domains)]), [domain.n_codes for domain in domains]
        )
        grid = self._specialize(gains, groups, k)
        rows = groups.slices.rows
        start, end = groups.slices.start[: groups.n_groups], groups.slices.end[: groups.n_groups]
        places = grid.places(groups.codes[:, rows[start]])
        order = np.lexsort(places.T[::-1])
        size = (end - start)[order]
        members = np.repeat(start[order] - (np.cumsum(size) - size), size) + np.arange(len(rows))
        groups_found = Partition(
            self._recode(grid, len(size)), places[order], size, part.number(rows[members])
        )
        missing = LossMeter.of(domains).look_at(part).count_in(groups_found)
        return find_cells(groups_found, part.payload, missing)

    def _in_parts(self, k: int) -> Iterator[tuple[Rows, Work[Grouped]]]:
        """Rows that are counted in passes, and then brought in order."""
        rows = self.engine.open(self.table)
        kept = self.engine.keep(rows, payload=False)
        gains = self._gains(kept)
        groups = CountedGroups(self.engine, kept, gains, self.table.domains, k=k, memory=self.memory)
        grid = self._specialize(gains, groups, k)
        mesh = Mesh.of(grid.ends, grid.place)
        counts = groups.counts_of(mesh) or count_cells(self.engine, kept, mesh, self.memory)
        self.engine.discard(kept)
        by_cell = RowsByCell(self.engine, mesh, self.memory, self.random.spawn(1)[0])
        files = by_cell.files(rows, counts)
        recoding = self._recode(grid, counts.n if counts.mesh.is_like(mesh) else by_cell.n_cells(files))
        del counts, groups, gains
        for part in files:
            yield part, FindCells(mesh, recoding)

    def _gains(self, rows: Rows) -> Gains:
        """What specializations gain, from counts of columns: one pass."""
        columns, targets = self.table.columns, [target for target, _ in _targets(self.policy)]
        plan = ColumnPlan(
            [domain.n_codes for domain in self.table.domains],
            labels=[columns.place(target) for target in targets],
            n_classes=[len(columns.count(target)) for target in targets],
            most_rows=rows.n_rows,
            most_bytes=self.memory,
        )
        (counts,) = self.engine.gather(rows, Asked([plan]))
        return Gains(counts, _weights(self.policy))

    def _specialize(self, gains: Gains, groups: SpecializedGroups, k: int) -> CutGrid:
        chooser = BestScore(gains, groups, k=k, n_rows=self.table.n_rows, progress=self.progress)
        return CutGrid.of(specialize(self.table.domains, chooser), self.table.domains)

    def _recode(self, grid: CutGrid, n_groups: int) -> Cuts:
        self.cuts = grid.recoding(n_groups, self.policy.output, self.policy.schema.left_out)
        return self.cuts


class CellEnds(NamedTuple):
    """The first and the last cell of the grid that some rows are in."""

    first: tuple[int, ...]
    last: tuple[int, ...]


def find_cells(groups: Partition, payload: pa.Table | None, missing: Missing | None = None) -> Grouped:
    """The groups of some cells that follow each other."""
    first, last = (tuple(groups.leaf[at].tolist()) for at in (0, -1))
    return Grouped(Chunk(groups, payload, missing=missing), CellEnds(first, last))


@dataclass(frozen=True, slots=True, eq=False)
class FindCells:
    """The work on rows that can be loaded: their groups are the cells of a mesh."""

    mesh: Mesh
    recoding: Cuts

    def __call__(self, part: Loaded) -> Grouped:
        found = sort_rows(self.mesh, part)
        groups = Partition(self.recoding, self.mesh.places(found.cells), found.size, found.row_numbers)
        return find_cells(groups, part.payload)


def _least_rows(n_rows: int, policy: Policy) -> int:
    """The largest k that is required; raises if the whole table is smaller."""
    least = 1
    for requirement in policy.requirements:
        assert isinstance(requirement, KAnonymity)  # the policy admits no other
        if not requirement.holds(GroupStats(np.array([n_rows])))[0]:
            raise RequirementUnreachable(requirement, best=requirement.describe(float(n_rows)), n_rows=n_rows)
        least = max(least, requirement.k)
    return least


def _targets(policy: Policy) -> Iterator[tuple[Label | Joint, float]]:
    """What is classified, and the weight of its gain."""
    for task in policy.workload:
        if isinstance(task, Classify):
            for target in targets_of(task):
                assert not isinstance(target, Number)  # classes are no numbers
                yield target, task.weight


def _weights(policy: Policy) -> NDArray[np.float64]:
    weights = [weight for _, weight in _targets(policy)]
    return np.array(weights if len(weights) > 1 else [1.0])
