"""Rothko: Mondrian for tables larger than memory [LDR08, section 5].

Rothko-T counts, in passes over the rows, what each split is chosen from. Its tree is the one that Mondrian grows in
memory. Rothko-S grows a tree on a sample, sends all rows down it, undoes the splits that break the requirement, and
goes on below.

Both divide the rows over files until those of a node fit in memory. From there the tree is grown in memory, and its
groups are handed over at once. Only the top of the tree, the splits above these nodes, is held throughout.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.engines.protocol import Asked, Engine, Places, Rows
from sfumato.engines.reservoir import seed_of_part
from sfumato.kernels.nodes import Nodes
from sfumato.methods.groups import Chunk
from sfumato.methods.memory_plan import NODE_BYTES
from sfumato.methods.mondrian.begun_tree import begin_tree
from sfumato.methods.mondrian.covers import find_covers
from sfumato.methods.mondrian.kernels.descend import Descent
from sfumato.methods.mondrian.memory import TreeGrower
from sfumato.methods.mondrian.node_counts import SplitCriteria
from sfumato.methods.mondrian.node_range import NodeRange
from sfumato.methods.mondrian.passes import CoverPlan, LeafPlan, RandomPlaces, SamplePlan, TreePlaces
from sfumato.methods.mondrian.problem import Problem
from sfumato.methods.mondrian.sample import (
    Stops,
    TreeLimits,
    choose_sample_size,
    complete,
    grow_on_sample,
    optimistic_problem,
    prune,
    trim_tree,
)
from sfumato.methods.mondrian.splits import Splitter
from sfumato.methods.mondrian.subtree import (
    FileRanges,
    list_children,
    list_descendants,
    make_leaf,
    plan_files,
    take_subtree,
)
from sfumato.methods.mondrian.tree_top import TreeTop
from sfumato.policy.document import Policy
from sfumato.policy.options.mondrian import ROTHKO_S, ROTHKO_T, MondrianOptions
from sfumato.progress import Progress, no_progress
from sfumato.randomness import Random
from sfumato.recoding.recoder import Partition
from sfumato.recoding.splits import RecodingPlan
from sfumato.recoding.statistics import OneGroup
from sfumato.recoding.tree import Recoding
from sfumato.recoding.tree_file import AnyTree, recode_piece
from sfumato.table.spill import Counters

Codes = NDArray[np.uint32]
Ints = NDArray[np.int64]

FILL = 0.8
"""How full a file that must fit in memory is planned to be: a sample only estimates its rows."""


@dataclass(frozen=True, slots=True, eq=False)
class ScannedTable:
    """The encoded table, and what the first pass over it found."""

    rows: Rows
    n_columns: int
    """How many codes a row has."""
    code_ends: Codes | None = None
    """(2, axes) least and greatest code."""
    sample: Codes | None = None


@dataclass(frozen=True, slots=True)
class Chance:
    """Two sources of randomness. Sampling decides the boxes, so it is seeded even where shuffling is not."""

    sampling: int
    """The seed of the samples."""
    shuffling: Random


@dataclass(slots=True)
class Leaf:
    """A leaf of the top that is still worked on."""

    node: int
    known: NodeRange
    n_rows: int
    covers: Ints | None = None
    """The hierarchy nodes that cover its rows, once it is known that nothing splits it."""

    @property
    def is_final(self) -> bool:
        return self.covers is not None


@dataclass(frozen=True, slots=True, eq=False)
class DividedTree:
    """A tree that satisfies the requirement: the rows of each node, and the parts that hold them."""

    nodes: Nodes
    n_rows: Ints
    ranges: FileRanges
    parts: Sequence[Rows]

    def parts_of(self, node: int) -> Sequence[Rows]:
        return self.parts[self.ranges.first[node] : self.ranges.last[node] + 1]


class Rothko:
    """One run over a table: take all ``chunks``, then ask for the recoding."""

    def __init__(
        self,
        table: ScannedTable,
        problem: Problem,
        policy: Policy,
        *,
        engine: Engine,
        chance: Chance,
        tree: AnyTree,
        counters: Counters,
        threads: int | None = None,
        progress: Progress = no_progress,
    ) -> None:
        self.table, self.problem, self.policy = table, problem, policy
        self.options = policy.options_for(MondrianOptions)
        self.engine, self.room, self.counters, self.threads = engine, engine.room, counters, threads
        self.chance, self.tree, self.progress = chance, tree, progress
        self._sample = table.sample
        self._criteria = SplitCriteria(problem)
        self._top = TreeTop()
        self._pieces: dict[int, int] = {}
        """The part of the written tree below each leaf of the top that was grown in memory."""
        self._covers: dict[int, Ints] = {}
        """The covers of each leaf of the top that is a group by itself."""
        self._n_splits = np.zeros(len(problem.domains), dtype=np.int64)
        self._n_grown = 0

    def chunks(self) -> Iterator[Chunk]:
        """The groups, in the order of the leaves."""
        rows, axes = self.table.rows, self.problem.axes
        self.progress("splitting", 0, rows.n_rows)
        known = self._criteria.whole([domain.n_codes for domain in self.problem.domains])
        if self.table.code_ends is not None:
            known = known.with_covers(axes, find_covers(axes, self.table.code_ends))
        root = Leaf(0, known, rows.n_rows)
        if self._sample is not None and 0 < len(self._sample) < rows.n_rows:  # also where all rows would fit
            yield from self._split_by_sample(root, rows, 0)
        else:
            yield from self._grow_below(root, rows, 0)

    def n_splits(self) -> dict[str, int]:
        """How often each quasi-identifier was split; after all chunks have been taken."""
        n_splits = self._n_splits + self._top.count_splits(len(self._n_splits))
        names = [domain.attribute.name for domain in self.problem.domains]
        return dict(zip(names, n_splits.tolist(), strict=True))

    def recoding(self) -> object:
        """How further rows are recoded; after all chunks have been taken."""
        return self.tree.finish(self._top.as_nodes(), self._pieces, self._covers, self._plan_recoding())

    def _grow_below(self, leaf: Leaf, rows: Rows, level: int) -> Iterator[Chunk]:
        """Finish the tree below a leaf, whose rows these are, and hand over its groups."""
        if rows.n_rows <= self.room.rows:
            yield self._grow_in_memory(leaf, rows)
        elif self.options.scale == ROTHKO_S:
            yield from self._split_by_sample(leaf, rows, level)
        else:
            yield from self._split_by_counts(leaf, rows, level)

    # -- Rothko-T ----------------------------------------------------------------------------------

    def _split_by_counts(self, leaf: Leaf, rows: Rows, level: int) -> Iterator[Chunk]:
        """Split level by level while the counts of all large leaves fit in memory; then divide the rows."""
        rows = self.engine.keep(rows) if rows is self.table.rows else rows  # they are read more than once
        leaves, is_first = [leaf], True
        while large := [one for one in leaves if not one.is_final and one.n_rows > self.room.rows]:
            splitters = [Splitter(self._criteria, one.known, one.n_rows) for one in large]
            if not is_first and not self._fit_one_pass(splitters, len(leaves)):
                break
            self._count_and_decide(leaf, rows, large, splitters)
            splitter_of = {one.node: splitter for one, splitter in zip(large, splitters, strict=True)}
            leaves = [child for one in leaves for child in self._apply(splitter_of.get(one.node), one)]
            is_first = False
        yield from self._divide_rows(leaf, rows, leaves, level)

    def _fit_one_pass(self, splitters: Sequence[Splitter], n_leaves: int) -> bool:
        if self.options.frequency_groups and len(splitters) > self.options.frequency_groups:
            return False
        if n_leaves + len(splitters) > self.room.parts:
            return False
        return sum(one.plan.n_bytes for one in splitters if one.plan) <= self.room.count_bytes

    def _count_and_decide(
        self, leaf: Leaf, rows: Rows, large: Sequence[Leaf], splitters: Sequence[Splitter]
    ) -> None:
        """Decide on the large leaves below ``leaf``: usually in one pass, in more where memory is short."""
        nodes, numbers = self._top.take_below(leaf.node)
        descent = Descent(nodes, self.problem.axes)
        while undecided := [at for at, splitter in enumerate(splitters) if not splitter.is_decided]:
            plan_at = {large[at].node: place for place, at in enumerate(undecided)}
            places = np.array([plan_at.get(number, len(undecided)) for number in numbers], dtype=np.uint16)
            to = None if len(numbers) == 1 else TreePlaces(descent, places, len(undecided) + 1)
            self.counters.frequency_groups += len(undecided)
            asked = Asked([splitters[at].open_plan for at in undecided], to)
            for at, state in zip(undecided, self.engine.gather(rows, asked, stage="counting"), strict=True):
                splitters[at].take(state)

    def _apply(self, splitter: Splitter | None, leaf: Leaf) -> list[Leaf]:
        """The children of a leaf that was split, or the leaf itself."""
        if splitter is None:
            return [leaf]
        split = splitter.result
        if split is None:
            leaf.covers = splitter.covers
            return [leaf]
        children = self._top.split(
            leaf.node, axis=split.axis, threshold=split.threshold, branches=split.branches
        )
        return [Leaf(*child) for child in zip(children, split.ranges, split.sizes, strict=True)]

    def _divide_rows(self, leaf: Leaf, rows: Rows, leaves: Sequence[Leaf], level: int) -> Iterator[Chunk]:
        """Write the rows of ``leaf`` to a file for each of its leaves, and go on with each."""
        if len(leaves) == 1:
            yield from self._publish_large_group(leaves[0], rows)
            return
        nodes, numbers = self._top.take_below(leaf.node)
        file_of = {one.node: at for at, one in enumerate(leaves)}
        file_at_node = np.array([file_of.get(number, 0) for number in numbers], dtype=np.uint32)
        places = TreePlaces(Descent(nodes, self.problem.axes), file_at_node, len(leaves))
        parts = self._divide(rows, places)
        self._count_repartition(level + 1)
        for one, own_rows in zip(leaves, parts, strict=True):
            if one.is_final:
                yield from self._publish_large_group(one, own_rows)
            else:
                yield from self._grow_below(one, own_rows, level + 1)

    # -- Rothko-S ----------------------------------------------------------------------------------

    def _split_by_sample(self, leaf: Leaf, rows: Rows, level: int) -> Iterator[Chunk]:
        """Grow on a sample, send all rows down, undo what breaks the requirement, and go on below."""
        sample, self._sample = self._sample, None  # the first pass drew one for the root
        if sample is None or not len(sample):
            sample = self._draw_sample(leaf, rows)
        nodes = self._grow_on_sample(leaf, rows, sample)
        if len(nodes.axis) == 1:
            yield from self._fall_back(leaf, rows, level)
            return
        rows_per_sampled = rows.n_rows / len(sample)
        del sample
        ranges = plan_files(nodes, (nodes.end - nodes.start) * rows_per_sampled, FILL * self.room.rows)
        places = TreePlaces(Descent(nodes, self.problem.axes), ranges.first, ranges.n_files)
        leaves = Asked([LeafPlan(nodes, self.problem.rules, places)])
        parts, (statistics,) = self.engine.divide(rows, places, also=leaves, stage="dividing")
        pruned = prune(nodes, statistics)
        self.counters.pruned += pruned.n_pruned
        if not pruned.is_split:
            for part in parts:
                self.engine.discard(part)
            yield from self._fall_back(leaf, rows, level)
            return
        self.engine.discard(rows)
        self._count_repartition(level + 1)
        own = FileRanges(ranges.first[pruned.origin], ranges.last[pruned.origin])
        yield from self._go_on_below(leaf, DividedTree(pruned.nodes, pruned.n_rows, own, parts), level)

    def _draw_sample(self, leaf: Leaf, rows: Rows) -> Codes:
        """Draw a sample; the same pass finds the hierarchy nodes that cover all rows of the leaf."""
        size = choose_sample_size(rows.n_rows, self.options, self.room.rows)
        plan = SamplePlan(
            size, seed_of_part(self.chance.sampling, rows.n_rows), rows.n_rows, self.problem.axes
        )
        (drawn,) = self.engine.gather(rows, Asked([plan]), stage="sampling")
        leaf.known = leaf.known.with_covers(self.problem.axes, drawn.covers)
        return drawn.sample

    def _grow_on_sample(self, leaf: Leaf, rows: Rows, sample: Codes) -> Nodes:
        """The tree of high-confidence splits, as large as memory allows."""
        problem = optimistic_problem(self.problem, n=len(sample), N=rows.n_rows, options=self.options)
        self.progress("splitting a sample", 0, 1)
        grown = grow_on_sample(sample, problem, leaf.known, threads=self.threads)
        limits = TreeLimits(
            max_nodes=max(self.room.count_bytes // 2 // NODE_BYTES, 64),
            max_statistics=self.room.count_bytes // 2,
            max_files=self.room.parts,
            rows_in_memory=FILL * self.room.rows * len(sample) / rows.n_rows,
            max_height=self.options.max_height,
        )
        nodes, stops = trim_tree(grown, problem.axes, self.problem.rules, limits)
        self._count_stops(stops)
        return complete(nodes, problem.axes)

    def _go_on_below(self, leaf: Leaf, tree: DividedTree, level: int) -> Iterator[Chunk]:
        """Go on below the leaves of a tree whose rows were divided."""
        nodes, n_rows = tree.nodes, tree.n_rows
        waiting = [(0, leaf)]
        while waiting:
            node, here = waiting.pop()
            here.n_rows = int(n_rows[node])
            own_parts = tree.parts_of(node)
            if nodes.axis[node] < 0:
                yield from self._grow_below(here, self.engine.join(own_parts), level + 1)
            elif len(own_parts) > 1:
                waiting += reversed(self._move_split_to_top(here, nodes, node))
            elif n_rows[node] <= self.room.rows:
                yield self._grow_in_memory(here, own_parts[0], take_subtree(nodes, node))
            else:  # more rows than the sample suggested
                below = n_rows[list_descendants(nodes, node)]
                yield from self._divide_again(here, take_subtree(nodes, node), below, own_parts[0], level)

    def _move_split_to_top(self, leaf: Leaf, nodes: Nodes, node: int) -> list[tuple[int, Leaf]]:
        """Split a leaf of the top as ``node`` is split; returns each child of ``node`` and its leaf."""
        axis, threshold = int(nodes.axis[node]), int(nodes.threshold[node])
        children = list_children(nodes, node)
        branches = [int(nodes.branch[child]) for child in children]
        numbers = self._top.split(leaf.node, axis=axis, threshold=threshold, branches=branches)
        known = [leaf.known.child(self.problem.axes, axis, threshold, branch) for branch in branches]
        leaves = [Leaf(number, own, 0) for number, own in zip(numbers, known, strict=True)]
        return list(zip(children, leaves, strict=True))

    def _divide_again(
        self, leaf: Leaf, nodes: Nodes, n_rows: Ints, rows: Rows, level: int
    ) -> Iterator[Chunk]:
        """Divide the rows of one part over several, now that their number is known."""
        ranges = plan_files(nodes, n_rows, self.room.rows)
        places = TreePlaces(Descent(nodes, self.problem.axes), ranges.first, ranges.n_files)
        parts = self._divide(rows, places)
        self._count_repartition(level + 1)
        yield from self._go_on_below(leaf, DividedTree(nodes, n_rows, ranges, parts), level + 1)

    def _fall_back(self, leaf: Leaf, rows: Rows, level: int) -> Iterator[Chunk]:
        """The sample allows no split: decide by exact counts, or keep the rows together as the paper does."""
        if rows.n_rows <= self.room.rows:
            self.counters.fallbacks += 1
            yield self._grow_in_memory(leaf, rows)
            return
        if self.options.fallback == ROTHKO_T:
            self.counters.fallbacks += 1
            yield from self._split_by_counts(leaf, rows, level)
            return
        self.counters.nonminimal += 1
        (leaf.covers,) = self.engine.gather(rows, Asked([CoverPlan(self.problem.axes)]), stage="counting")
        yield from self._publish_large_group(leaf, rows)

    # -- groups ------------------------------------------------------------------------------------

    def _grow_in_memory(self, leaf: Leaf, rows: Rows, begun: Nodes | None = None) -> Chunk:
        """Grow the tree below a leaf whose rows fit in memory; ``begun`` is its upper part, if there is one."""
        axes = self.problem.axes
        loaded = self.engine.load(rows)
        self.engine.discard(rows)
        matrix = loaded.as_matrix(self.table.n_columns)
        tree, order = begin_tree(begun, matrix, leaf.known, axes)
        grower = TreeGrower.of_rows(matrix, len(axes.is_tree), order=order, threads=self.threads)
        del matrix  # the grower has its own copy
        nodes = grower.grow(self.problem, begun=tree, progress=self._report_grown)
        covers = grower.covers(nodes, axes)
        self.counters.pieces += 1
        self._pieces[leaf.node] = self.tree.piece(nodes, covers)
        self._n_splits += np.bincount(nodes.axis[nodes.axis >= 0], minlength=len(self._n_splits))
        recoding, places = self._make_recoding(leaf, nodes, covers)
        leaves = np.flatnonzero(nodes.axis < 0)
        by_start = np.argsort(nodes.start[leaves])
        size = (nodes.end - nodes.start)[leaves][by_start]
        members = loaded.number(grower.row_numbers())
        return Chunk(Partition(recoding, places[by_start], size, members), loaded.payload)

    def _publish_large_group(self, leaf: Leaf, rows: Rows) -> Iterator[Chunk]:
        """Hand over a group that does not fit in memory, in parts and in random order."""
        assert leaf.covers is not None
        recoding, places = self._make_recoding(leaf, make_leaf(rows.n_rows), leaf.covers[None, :])
        self._covers[leaf.node] = leaf.covers
        statistics = self._compute_statistics(rows)
        for part in self._shuffle(rows):
            n_rows = part.n_rows
            loaded = self.engine.load(part)
            self.engine.discard(part)
            self._report_grown(n_rows)
            members = loaded.number(np.arange(n_rows, dtype=np.uint32))
            yield Chunk(Partition(recoding, places, np.array([n_rows]), members), loaded.payload, statistics)

    def _compute_statistics(self, rows: Rows) -> Mapping[str, pa.Scalar]:
        group = OneGroup(self.policy)
        if group.columns:
            for block in rows.blocks():
                assert block.payload is not None
                group.add(block.payload)
        return group.cells()

    def _shuffle(self, rows: Rows) -> Iterator[Rows]:
        """The rows in parts that fit in memory, each row in a random one."""
        if rows.n_rows <= self.room.rows:
            yield rows
            return
        rows_per_part = max(int(FILL * self.room.rows), 1)
        n_parts = min(self.room.parts, -(-rows.n_rows // rows_per_part))
        for part in self._divide(rows, RandomPlaces(n_parts, self.chance.shuffling)):
            if part.n_rows:
                yield from self._shuffle(part)

    def _make_recoding(self, leaf: Leaf, nodes: Nodes, covers: Ints) -> tuple[Recoding, Ints]:
        """The recoding of the rows below a leaf, and the place of each of its groups in it."""
        return recode_piece(self._top.path(leaf.node), nodes, covers, self._plan_recoding())

    def _plan_recoding(self) -> RecodingPlan:
        problem, policy = self.problem, self.policy
        return RecodingPlan(problem.domains, problem.axes.root, policy.output, policy.schema.left_out)

    def _divide(self, rows: Rows, places: Places) -> Sequence[Rows]:
        """Move rows into parts."""
        parts = self.engine.divide(rows, places, stage="dividing").parts
        self.engine.discard(rows)
        return parts

    # -- figures of the run ------------------------------------------------------------------------

    def _count_repartition(self, level: int) -> None:
        self.counters.repartitions += 1
        self.counters.levels = max(self.counters.levels, level)

    def _count_stops(self, stops: Stops) -> None:
        self.counters.stopped_by_tree += stops.by_tree
        self.counters.stopped_by_statistics += stops.by_statistics
        self.counters.stopped_by_buffers += stops.by_buffers
        self.counters.stopped_by_height += stops.by_height

    def _report_grown(self, n_rows: int) -> None:
        self._n_grown += n_rows
        self.progress("splitting", self._n_grown, self.table.rows.n_rows)
