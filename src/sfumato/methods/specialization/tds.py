"""Top-down specialization for classification (TDS) [FWY05], the baseline of [LDR08, section 4.4].

Of the candidates that are valid (every group of the grid keeps at least k rows) and beneficial (its rows have
more than one class), the one of the best score is taken, until there is none:

.. math:: Score(v) = InfoGain(v) / (AnonyLoss(v) + 1)

InfoGain is over the rows at v, per row; AnonyLoss is by how much the smallest group of the grid would shrink. A
number is divided where InfoGain is greatest. Ties: the smaller largest part, the attribute, the order of codes.

Departs from the paper: a node of whose children only one has rows is replaced by them at once. It divides no group
and so costs nothing, and what lies below would otherwise wait for a score that is always 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.encoding.batches import Rows, WholeTable
from sfumato.encoding.domain import Codes, Domain
from sfumato.encoding.encoders import encode_axis
from sfumato.encoding.targets import Columns, Target, targets_of
from sfumato.engines.engine import Engine
from sfumato.engines.rows import KeptRows, PartWriter, RowLayout
from sfumato.engines.scan import Intake
from sfumato.errors import InputError, RequirementUnreachable
from sfumato.methods.groups import Chunk, RowFile, make_draft, plan_memory, scan_table, write_draft
from sfumato.methods.memory_plan import MemoryPlan
from sfumato.methods.mondrian.problem import Problem, problem_of
from sfumato.methods.protocol import Draft, Extras, Method, Seed, refuse_side_table
from sfumato.methods.specialization.column_counts import ColumnCounts
from sfumato.methods.specialization.gains import Gains
from sfumato.methods.specialization.groups import CountedGroups, HeldGroups, SpecializedGroups
from sfumato.methods.specialization.loop import Candidate, CutGrid, Piece, specialize
from sfumato.methods.specialization.mesh import CellCounts, Mesh
from sfumato.methods.specialization.order import RowsByCell, count_cells
from sfumato.policy.document import Policy
from sfumato.policy.options.mondrian import MondrianOptions
from sfumato.policy.requirements import GroupStats, KAnonymity
from sfumato.policy.workload import Classify
from sfumato.progress import Progress, no_progress
from sfumato.randomness import Random
from sfumato.recoding.cuts import Cuts
from sfumato.recoding.recoder import Partition
from sfumato.recoding.rows import check_names
from sfumato.table.cells import give_back_memory
from sfumato.table.source import Source
from sfumato.table.spill import Spill

FACTS = np.dtype(
    [("gain", np.float64), ("rows", np.int64), ("largest", np.int64), ("axis", np.int64), ("low", np.int64),
     ("is_free", np.bool_)],
    align=True,
)  # fmt: skip
"""What is known of a candidate from its own attribute alone (:class:`CandidateFacts`), and where it stands."""


def partition(
    source: Source,
    policy: Policy,
    *,
    threads: int | None = None,  # noqa: ARG001 - every method takes it; this one has nothing to share out
    progress: Progress = no_progress,
) -> Partition:
    """Divide the rows into the groups of a grid of at least k rows each, as useful as possible for the classes."""
    progress("checking", 0, 1)
    k = _least_rows(source.n_rows, policy)
    labels = ClassLabels.of(source, policy)
    quasi = policy.schema.quasi_identifiers
    codes = np.empty((len(quasi), source.n_rows), dtype=np.uint32)
    domains: list[Domain] = []
    for a, attribute in enumerate(quasi):
        progress("encoding", a, len(quasi))
        domain, codes[a] = encode_axis(source, attribute)
        domains.append(domain)
    give_back_memory()
    progress("specializing", 0, source.n_rows)
    chooser, groups = in_memory(codes, labels, domains, k=k, progress=progress)
    grid = CutGrid.of(specialize(domains, chooser), domains)
    rows = groups.slices.rows
    start, end = groups.slices.start[: groups.n_groups], groups.slices.end[: groups.n_groups]
    places = grid.places(codes[:, rows[start]])
    order = np.lexsort(places.T[::-1])
    size = (end - start)[order]
    members = np.repeat(start[order] - (np.cumsum(size) - size), size) + np.arange(source.n_rows)
    recoding = grid.recoding(len(size), policy.output, policy.schema.left_out)
    return Partition(recoding, places[order], size, rows[members])


def in_memory(
    codes: Codes, labels: ClassLabels, domains: Sequence[Domain], *, k: int, progress: Progress = no_progress
) -> tuple[BestScore, HeldGroups]:
    """The chooser over rows in memory, codes given axis by axis, and their groups."""
    n_codes = [domain.n_codes for domain in domains]
    counts = ColumnCounts.of(codes, labels.codes, n_codes=n_codes, n_classes=labels.n_classes)
    groups = HeldGroups(codes, n_codes)
    return BestScore(
        Gains(counts, labels.weight), groups, k=k, n_rows=len(labels.codes), progress=progress
    ), groups


def _least_rows(n_rows: int, policy: Policy) -> int:
    """The largest k that is required; raises if the whole table is smaller."""
    least = 1
    for requirement in policy.requirements:
        assert isinstance(requirement, KAnonymity)  # the policy admits no other
        if not requirement.holds(GroupStats(np.array([n_rows])))[0]:
            raise RequirementUnreachable(requirement, best=requirement.describe(float(n_rows)), n_rows=n_rows)
        least = max(least, requirement.k)
    return least


@dataclass(frozen=True, slots=True, eq=False)
class ClassLabels:
    """The classes (rows, targets), how many each target has, and the weight of its gain."""

    codes: Codes
    n_classes: list[int]
    weight: NDArray[np.float64]

    @classmethod
    def of(cls, source: Source, policy: Policy) -> ClassLabels:
        targets = [target for target, _ in _targets(policy)]
        table = WholeTable(source, policy.schema)
        columns = Columns.of_table(table, targets)
        n_classes = [greatest + 1 for greatest in columns.greatest]
        return cls(columns.matrix(table), n_classes, _weights(policy))


def _targets(policy: Policy) -> Iterator[tuple[Target, float]]:
    """What is classified, and the weight of its gain."""
    for task in policy.workload:
        if isinstance(task, Classify):
            yield from ((target, task.weight) for target in targets_of(task))


def _weights(policy: Policy) -> NDArray[np.float64]:
    weights = [weight for _, weight in _targets(policy)]
    return np.array(weights if len(weights) > 1 else [1.0])


class BestScore:
    """The chooser of TDS. Gains come from counts of columns, the smallest parts from ``groups``.

    Groups only ever get smaller, so the smallest part that a candidate would make (``least``) never grows. A candidate
    that is not valid never becomes valid, and a ``least`` of an earlier grid is an upper bound, also of the score. It is
    made exact only for the best candidate by these bounds: if that one is exact already, it is the best.
    """

    def __init__(
        self,
        gains: Gains,
        groups: SpecializedGroups,
        *,
        k: int,
        n_rows: int,
        progress: Progress = no_progress,
    ) -> None:
        self.gains, self.groups, self.k, self.n_rows, self.progress = gains, groups, k, n_rows, progress
        self.anonymity = n_rows
        self.facts = np.zeros(64, dtype=FACTS)
        self.least = np.zeros(64, dtype=np.int64)
        self.open = np.zeros(0, dtype=np.int64)

    def threshold(self, piece: Piece) -> int | None:
        return self.gains.threshold(piece)

    def offer(self, number: int, candidate: Candidate) -> None:
        """Consider a candidate, if it is beneficial."""
        facts = self.gains.of(candidate)
        if facts is None:
            return
        piece = candidate.piece
        if number >= len(self.facts):
            self.facts = np.resize(self.facts, 2 * number)
            self.least = np.resize(self.least, 2 * number)
        self.facts[number] = facts.gain, facts.rows, facts.largest, piece.axis, piece.low, facts.is_free
        self.least[number] = facts.smallest
        self.open = np.append(self.open, number)
        self.groups.offer(number, candidate)

    def choose(self) -> int | None:
        """The valid candidate of the best score."""
        while True:
            self.open = self.open[self.least[self.open] >= self.k]
            if len(self.open) == 0:
                return None
            if self.k == 1:  # all are valid and will be taken, so their order does not matter
                return int(self.open[-1])
            best = self._best()
            if self.groups.is_exact(best):
                return best
            self.groups.lower(best, self.least, self.open, self.anonymity)

    def _best(self) -> int:
        """The candidate of the best score, by ``least`` as far as it is known."""
        facts, least = self.facts[self.open], self.least[self.open]
        loss = self.anonymity - np.minimum(least, self.anonymity)
        score = np.where(facts["is_free"], np.inf, facts["gain"] / (facts["rows"] * (loss + 1)))
        best = np.flatnonzero(score == score.max())
        ties = facts[best]
        first = np.lexsort((ties["low"], ties["axis"], ties["largest"]))[0]
        return int(self.open[best[first]])

    def take(self, number: int, candidate: Candidate) -> None:
        """Divide the groups that lie in its piece."""
        self.groups.take(number, candidate)
        self.gains.forget(candidate.piece)
        self.anonymity = min(self.anonymity, int(self.least[number]))
        self.open = self.open[self.open != number]
        self.progress("specializing", self.groups.n_groups, self.n_rows // self.k)


# ---- rows outside memory ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RowStorage:
    """Where rows outside memory are written, and how much of them is held.

    spill    the folder
    layout   of the rows in its files
    memory   bytes for each pass
    at_once  rows that are held to be published
    """

    spill: Spill
    layout: RowLayout
    memory: int
    at_once: int


def grow_on_disk(
    rows: Rows,
    problem: Problem,
    policy: Policy,
    *,
    storage: RowStorage,
    random: Random,
    progress: Progress = no_progress,
) -> tuple[Cuts, Iterator[tuple[Partition, pa.Table | None]]]:
    """The cuts that ``partition`` would make, and its groups in the same order, some at a time.

    Rows are read twice: once for the counts of columns, and to keep their codes, which a few passes for counts of
    cells then read; once to bring them in order. Row numbers are those of the payload that comes with them. A group of
    more rows than can be held comes in several portions that follow each other, its rows divided among them at random.
    """
    progress("checking", 0, 1)
    k = _least_rows(rows.n_rows, policy)
    progress("specializing", 0, rows.n_rows)
    grid, counts = _grid_on_disk(rows, problem, policy, k=k, storage=storage, progress=progress)
    mesh = Mesh.of(grid.ends, grid.place)
    by_cell = RowsByCell(
        mesh,
        storage.spill,
        storage.layout,
        at_once=storage.at_once,
        memory=storage.memory // 2,
        random=random,
    )
    files = by_cell.files(rows, counts)
    n_groups = counts.n if counts.mesh.is_like(mesh) else by_cell.n_cells(files)
    recoding = grid.recoding(n_groups, policy.output, policy.schema.left_out)
    del counts

    def portions() -> Iterator[tuple[Partition, pa.Table | None]]:
        for found in by_cell.read(files):
            yield Partition(recoding, mesh.places(found.cells), found.size, found.row_numbers), found.payload

    return recoding, portions()


def _grid_on_disk(
    rows: Rows, problem: Problem, policy: Policy, *, k: int, storage: RowStorage, progress: Progress
) -> tuple[CutGrid, CellCounts]:
    """The grid, and the rows of each of its groups; of ranges of groups where they do not fit in memory."""
    assert problem.targets is not None  # the policy has something to classify
    domains, labels = problem.domains, problem.targets.label
    spill, memory = storage.spill, storage.memory // 2
    kept = KeptRows(rows, PartWriter(spill, 1, storage.layout, memory=memory), payload=False)
    counts = ColumnCounts.gather(
        kept,
        n_codes=[domain.n_codes for domain in domains],
        labels=labels["column"].tolist(),
        n_classes=labels["n_classes"].tolist(),
        spill=spill,
        memory=memory,
    )
    gains = Gains(counts, _weights(policy))
    groups = CountedGroups(kept, gains, domains, k=k, memory=memory)
    chooser = BestScore(gains, groups, k=k, n_rows=rows.n_rows, progress=progress)
    grid = CutGrid.of(specialize(domains, chooser), domains)
    mesh = Mesh.of(grid.ends, grid.place)
    of_groups = groups.counts_of(mesh) or count_cells(kept, mesh, memory)
    kept.delete()
    return grid, of_groups


@dataclass(slots=True, eq=False)
class GridRun:
    """Specialization of the rows of an intake on disk, as :func:`sfumato.methods.groups.write_draft` takes it."""

    intake: Intake
    problem: Problem
    policy: Policy
    plan: MemoryPlan
    spill: Spill
    random: Random
    progress: Progress
    cuts: Cuts | None = None

    def chunks(self) -> Iterator[Chunk]:
        """The groups, in the order of the cells of the grid."""
        storage = RowStorage(self.spill, self.intake.layout, self.plan.count_bytes, self.plan.max_rows)
        self.cuts, portions = grow_on_disk(
            self.intake,
            self.problem,
            self.policy,
            storage=storage,
            random=self.random,
            progress=self.progress,
        )
        last = None
        for groups, payload in portions:
            here = tuple(groups.leaf[0].tolist())
            if here == last and self.policy.statistics:
                raise InputError(
                    "A group has more rows than fit in memory, so its statistics cannot be taken; "
                    "allow more --memory, or publish no summary."
                )
            last = tuple(groups.leaf[-1].tolist())
            yield Chunk(groups, payload)

    def recoding(self) -> Cuts:
        assert self.cuts is not None
        return self.cuts

    def n_splits(self) -> dict[str, int]:
        return self.recoding().n_splits()


# ---- the method ------------------------------------------------------------------------------------


class Specialization:
    """Top-down specialization, in memory or on disk."""

    only_in_memory = False

    def check(self, table: Any, policy: Policy, extras: Extras) -> None:  # noqa: ARG002 - every method is asked
        """There is no side table."""
        refuse_side_table(extras)

    def partition(
        self, source: Source, policy: Policy, *, threads: int | None, progress: Progress
    ) -> Partition:
        """The groups of a table in memory."""
        return partition(source, policy, threads=threads, progress=progress)

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
        """Rows in groups, and the cuts as a recoding."""
        check_names(policy)
        if engine.spill is None:
            found = partition(source, policy, threads=engine.threads, progress=progress)
            return make_draft(found, source, policy, chance=chance, progress=progress)
        spill, random = engine.spill, chance.generator()
        intake = scan_table(source, policy, engine, spill, progress=progress)
        plan = plan_memory(policy, engine.memory, payload_bytes=intake.payload_bytes)
        problem = problem_of(intake, policy, MondrianOptions())
        run = GridRun(intake, problem, policy, plan, spill, random, progress)
        file = RowFile(spill, policy.method.name, extras.file_format, plan.max_rows)
        return write_draft(run, intake, policy, file, random=random)


METHOD: Method = Specialization()

__all__ = ["METHOD", "grow_on_disk", "partition"]
