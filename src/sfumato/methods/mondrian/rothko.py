"""Rothko: Mondrian of tables larger than memory [LDR08, section 5].

Rothko-T chooses every split from exact frequency groups, gathered in passes over the rows: its tree is the one
that is grown in memory. Rothko-S grows the tree on a sample, sends all rows down it, undoes what breaks the
requirement, and goes on below. Either way rows are divided over files until those of a node fit in memory;
from there on the tree is grown in memory, one *piece* at a time, and its groups are handed over at once.

What is held of the tree is its top: the splits above the pieces.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.encoding.blocks import Block, Rows
from sfumato.engines.rows import MOST_FILES, Kept, Layout, Partitions, StoredRows
from sfumato.kernels.axes import Axes
from sfumato.kernels.nodes import Nodes
from sfumato.methods.mondrian.frequency_sets import Collector, Judge, State
from sfumato.methods.mondrian.kernels.descend import Descent
from sfumato.methods.mondrian.kernels.problem import NODE
from sfumato.methods.mondrian.memory import Begun, MemoryEngine, Open, one_node
from sfumato.methods.mondrian.problem import Problem
from sfumato.methods.mondrian.sample import (
    Statistics,
    Stops,
    complete,
    cut,
    grow_on_sample,
    optimistic_problem,
    prune,
)
from sfumato.methods.mondrian.splits import Decision, shares
from sfumato.policy.document import Policy
from sfumato.policy.options.mondrian import ROTHKO_S, ROTHKO_T, MondrianOptions
from sfumato.progress import Progress, no_progress
from sfumato.randomness import Random
from sfumato.recoding import statistics as summary
from sfumato.recoding.groups import Partition
from sfumato.recoding.tree import Recoding
from sfumato.recoding.tree_file import AnyTree, PathStep, spine
from sfumato.table import cells
from sfumato.table.spill import Spill

FULL = 0.8
"""How full a file of rows that must fit in memory is planned: a sample only estimates."""

LABEL_BYTES = 400
"""Of the label of a group and what leads to it: a node of the tree, its box, texts and their copies."""

NODE_BYTES = 64
"""Of a node of a tree, in memory."""


class Chunk(NamedTuple):
    """Some finished groups, and what is published of their rows as it is, in the order of row numbers."""

    groups: Partition
    payload: pa.Table | None
    statistics: Mapping[str, pa.Scalar] = MappingProxyType({})
    """Those of the group, where these rows are only a part of it."""


@dataclass(frozen=True, slots=True)
class Shares:
    """What the memory that a run may take is divided into. Phases follow each other: each may take most of it."""

    rows: int
    """Rows that are grown in memory at once."""
    groups: int
    """Bytes for frequency groups."""
    writers: int
    """Bytes for rows on their way into files."""
    files: int
    """Files that are written at once, so that each still gets blocks worth writing."""
    nodes: int
    """Nodes of a tree that is grown on a sample."""
    statistics: int
    """Bytes for what pruning must know."""

    @classmethod
    def of(
        cls,
        memory: int,
        *,
        n_axes: int,
        n_extra: int,
        n_published: int,
        options: MondrianOptions,
        payload_bytes: int = 0,
        least_rows: int = 1,
    ) -> Shares:
        """Shares for rows of that many columns: quasi-identifiers, targets and sensitive values, published ones.

        ``payload_bytes`` of a row are published as they are, and a group, whose labels take room too, has at
        least so many rows.
        """
        # rows and their codes, two orders, and the published columns with a copy on their way out
        row_bytes = 4 * (2 * n_axes + n_extra + 1) + 40 + 20 * n_published + 3 * payload_bytes
        row_bytes += LABEL_BYTES * n_axes // least_rows
        return cls(
            rows=options.rows_in_memory or max(memory // row_bytes, 100),
            groups=memory // 2,
            writers=memory // 2,
            files=int(np.clip(memory // 2 // (4 * BLOCK_BYTES), 2, MOST_FILES)),
            nodes=max(memory // 4 // NODE_BYTES, 64),
            statistics=memory // 4,
        )


BLOCK_BYTES = 1 << 16
"""The least that is worth writing to a file at once."""


class Top:
    """The upper part of the tree, as it grows; nodes as ``Nodes`` has them."""

    def __init__(self) -> None:
        self.axis, self.threshold, self.first_child, self.n_children = [-1], [-1], [-1], [0]
        self.branch, self.parent = [-1], [-1]

    def split(self, node: int, axis: int, threshold: int, branches: Sequence[int]) -> range:
        """Split a leaf; returns the children."""
        first = len(self.axis)
        self.axis[node], self.threshold[node] = axis, threshold
        self.first_child[node], self.n_children[node] = first, len(branches)
        n = len(branches)
        self.axis += [-1] * n
        self.threshold += [-1] * n
        self.first_child += [-1] * n
        self.n_children += [0] * n
        self.branch += [int(branch) for branch in branches]
        self.parent += [node] * n
        return range(first, first + n)

    def path(self, node: int) -> list[PathStep]:
        """The splits from the root to a node."""
        steps = []
        while node > 0:
            parent = self.parent[node]
            first, n = self.first_child[parent], self.n_children[parent]
            steps.append(
                PathStep(
                    self.axis[parent], self.threshold[parent], self.branch[first : first + n], node - first
                )
            )
            node = parent
        return steps[::-1]

    def nodes(self) -> Nodes:
        n = len(self.axis)
        return Nodes(
            np.array(self.axis, dtype=np.int32),
            np.array(self.threshold, dtype=np.int64),
            np.array(self.first_child, dtype=np.int32),
            np.array(self.n_children, dtype=np.int32),
            np.array(self.branch, dtype=np.int64),
            np.zeros(n, dtype=np.int64),
            np.zeros(n, dtype=np.int64),
        )

    def below(self, node: int) -> tuple[Nodes, list[int]]:
        """The tree below a node, and which node of the top each of its nodes is."""
        whole = self.nodes()
        return below(whole, node), descendants(whole, node)


@dataclass(slots=True)
class Leaf:
    """A leaf of the top that is still worked on."""

    node: int
    state: State
    n_rows: int
    covers: NDArray[np.int64] | None = None
    """Of the hierarchies, once it is known that nothing splits it."""

    @property
    def is_final(self) -> bool:
        return self.covers is not None


def _splits(axis: NDArray[Any], n_axes: int) -> NDArray[np.int64]:
    return np.bincount(axis[axis >= 0], minlength=n_axes)


def _add(collector: Collector | None, rows: NDArray[np.uint32]) -> None:
    if collector is not None:
        collector.add(rows)


def _parted(
    rows: NDArray[np.uint32], part: NDArray[np.uint16], n_parts: int
) -> Iterator[tuple[int, NDArray[np.uint32]]]:
    """The rows of each part that has any."""
    order = np.argsort(part, kind="stable")
    ends = np.cumsum(np.bincount(part, minlength=n_parts))
    start = 0
    for at, end in enumerate(ends.tolist()):
        if end > start:
            yield at, rows.take(order[start:end], axis=0)
        start = end


class Rothko:
    """One run over a table: hand over the groups piece by piece, then ask for the recoding."""

    def __init__(
        self,
        rows: Rows,
        problem: Problem,
        layout: Layout,
        options: MondrianOptions,
        *,
        sample: NDArray[np.uint32] | None = None,
        ends: NDArray[np.uint32] | None = None,
        spill: Spill,
        shares: Shares,
        tree: AnyTree,
        policy: Policy,
        draw: Random,
        random: Random,
        threads: int | None = None,
        progress: Progress = no_progress,
    ) -> None:
        self.rows, self.problem, self.layout, self.options = rows, problem, layout, options
        self.sample, self.ends = sample, ends
        self.spill, self.counters, self.shares = spill, spill.counters, shares
        self.judge = Judge(
            problem.axes, problem.targets, problem.rules, cells=problem.cells, queries=problem.queries
        )
        self.tree, self.policy = tree, policy
        self.draw, self.random, self.threads, self.progress = draw, random, threads, progress
        self.top = Top()
        self.hung: dict[int, int] = {}
        self.final: dict[int, NDArray[np.int64]] = {}
        self.splits = np.zeros(len(problem.domains), dtype=np.int64)
        self.done = 0

    def chunks(self) -> Iterator[Chunk]:
        """The groups, in the order of the leaves."""
        self.progress("splitting", 0, self.rows.n_rows)
        state = self.judge.whole([domain.n_codes for domain in self.problem.domains])
        if self.ends is not None:
            state = Ends(self.problem.axes, self.ends).narrowed(state)
        root = Leaf(0, state, self.rows.n_rows)
        yield from self._divide(root, self.rows, 0)

    def n_splits(self) -> dict[str, int]:
        """How often each quasi-identifier was split; after all chunks have been taken."""
        splits = self.splits + _splits(np.array(self.top.axis), len(self.splits))
        names = [domain.attribute.name for domain in self.problem.domains]
        return dict(zip(names, splits.tolist(), strict=True))

    def recoding(self) -> object:
        """How further rows are recoded; after all chunks have been taken."""
        return self.tree.finish(
            self.top.nodes(), self.hung, self.final, self.problem.domains, self.problem.axes.root,
            self.policy.output, self.policy.schema.left_out,
        )  # fmt: skip

    def _divide(self, leaf: Leaf, rows: Rows, level: int) -> Iterator[Chunk]:
        if rows.n_rows <= self.shares.rows:
            yield self._grow_piece(leaf, rows)
        elif self.options.scale == ROTHKO_S:
            yield from self._by_sample(leaf, rows, level)
        else:
            yield from self._by_groups(leaf, rows, level)

    # -- Rothko-T ----------------------------------------------------------------------------------

    def _by_groups(self, leaf: Leaf, rows: Rows, level: int) -> Iterator[Chunk]:
        """Breadth first while the frequency groups of the leaves fit in memory, then over files."""
        rows = self._kept(rows)
        leaves, is_first = [leaf], True
        while True:
            waiting = [one for one in leaves if not one.is_final and one.n_rows > self.shares.rows]
            if not waiting:
                break
            decisions = [Decision(self.judge, one.state, one.n_rows) for one in waiting]
            if not is_first and not self._fit(decisions, len(leaves)):
                break
            self._gather(leaf, rows, waiting, decisions)
            of_node = {one.node: decision for one, decision in zip(waiting, decisions, strict=True)}
            leaves = [child for one in leaves for child in self._taken(one, of_node.get(one.node))]
            is_first = False
        yield from self._scatter(leaf, rows, leaves, level)

    def _fit(self, decisions: Sequence[Decision], n_leaves: int) -> bool:
        """May these be gathered in one pass?"""
        if len(decisions) > (self.options.frequency_groups or len(decisions)):
            return False
        if n_leaves + len(decisions) > self.shares.files:
            return False
        return sum(one.wanted for one in decisions) <= self.shares.groups

    def _gather(self, leaf: Leaf, rows: Rows, waiting: Sequence[Leaf], decisions: Sequence[Decision]) -> None:
        """Decide on some leaves below ``leaf``, whose rows these are: usually one pass, more where memory is short."""
        nodes, own = self.top.below(leaf.node)
        place = {one.node: at for at, one in enumerate(waiting)}
        at_node = np.array([place.get(node, len(waiting)) for node in own], dtype=np.uint16)
        descent = Descent(nodes, self.problem.axes)
        while True:
            undecided = [at for at, decision in enumerate(decisions) if not decision.is_decided]
            if not undecided:
                return
            room = shares([decisions[at] for at in undecided], self.shares.groups)
            collectors: list[Collector | None] = [None] * (len(waiting) + 1)
            for at, share in zip(undecided, room, strict=True):
                collectors[at] = decisions[at].next(share)
            self.counters.frequency_groups += len(undecided)
            for block in self._told("counting", rows, payload=False):
                if len(own) == 1:
                    _add(collectors[0], block.rows)
                    continue
                for at, part in _parted(block.rows, at_node[descent.leaves(block.rows)], len(waiting) + 1):
                    _add(collectors[at], part)
            for at in undecided:
                if (collector := collectors[at]) is not None:
                    decisions[at].take(collector)

    def _taken(self, one: Leaf, decision: Decision | None) -> list[Leaf]:
        """A leaf, or its children if it was decided on and split."""
        if decision is None:
            return [one]
        split = decision.result
        if split is None:
            one.covers = decision.covers
            return [one]
        children = self.top.split(one.node, split.axis, split.threshold, split.branches)
        return [
            Leaf(node, state, n_rows)
            for node, state, n_rows in zip(children, split.states, split.sizes, strict=True)
        ]

    def _scatter(self, leaf: Leaf, rows: Rows, leaves: Sequence[Leaf], level: int) -> Iterator[Chunk]:
        """Divide the rows of ``leaf`` over its leaves, and go on with each."""
        if len(leaves) == 1:
            yield from self._large_group(leaves[0], rows)
            return
        nodes, own = self.top.below(leaf.node)
        place = {one.node: at for at, one in enumerate(leaves)}
        at_node = np.array([place.get(node, 0) for node in own], dtype=np.uint32)
        descent = Descent(nodes, self.problem.axes)
        parts = self._partitions(len(leaves))
        for block in self._told("dividing", rows):
            parts.add(block, at_node[descent.leaves(block.rows)])
        stored = parts.close()
        self._done_with(rows)
        self._divided(level + 1)
        for one, own_rows in zip(leaves, stored, strict=True):
            if one.is_final:
                yield from self._large_group(one, own_rows)
            else:
                yield from self._divide(one, own_rows, level + 1)

    # -- Rothko-S ----------------------------------------------------------------------------------

    def _by_sample(self, leaf: Leaf, rows: Rows, level: int) -> Iterator[Chunk]:
        """Grow on a sample, send all rows down, undo what breaks the requirement, go on below."""
        sample, self.sample = self.sample, None
        if sample is None or not len(sample):
            sample = self._drawn(leaf, rows)
        nodes = self._optimistic(leaf, rows, sample)
        if len(nodes.axis) == 1:
            yield from self._fall_back(leaf, rows, level)
            return
        weight = rows.n_rows / len(sample)
        files = planned(nodes, (nodes.end - nodes.start) * weight, FULL * self.shares.rows)
        statistics = Statistics(nodes, self.problem.rules)
        parts = self._partitions(int(files.last.max()) + 1)
        descent = Descent(nodes, self.problem.axes)
        del sample
        for block in self._told("dividing", rows):
            at = descent.leaves(block.rows)
            statistics.add(block.rows, at)
            parts.add(block, files.first[at])
        stored = parts.close()
        pruned = prune(nodes, statistics, self.problem.rules)
        self.counters.pruned += pruned.n_pruned
        if not pruned.is_split:
            for part in stored:
                part.delete()
            yield from self._fall_back(leaf, rows, level)
            return
        self._done_with(rows)
        self._divided(level + 1)
        files = FilesOf(files.first[pruned.origin], files.last[pruned.origin])
        yield from self._below(leaf, pruned.nodes, pruned.n_rows, files, stored, level)

    def _optimistic(self, leaf: Leaf, rows: Rows, sample: NDArray[np.uint32]) -> Nodes:
        """The tree of high-confidence splits, as large as may be."""
        problem = optimistic_problem(self.problem, n=len(sample), N=rows.n_rows, options=self.options)
        self.progress("splitting a sample", 0, 1)
        grown = grow_on_sample(sample, problem, leaf.state, threads=self.threads)
        nodes, stops = cut(
            grown,
            axes=problem.axes,
            max_nodes=self.shares.nodes,
            max_statistics=self.shares.statistics,
            max_files=self.shares.files,
            max_height=self.options.max_height,
            rows_in_memory=FULL * self.shares.rows * len(sample) / rows.n_rows,
            rules=self.problem.rules,
        )
        self._count(stops)
        return complete(nodes, problem.axes)

    def _count(self, stops: Stops) -> None:
        self.counters.stopped_by_tree += stops.by_tree
        self.counters.stopped_by_statistics += stops.by_statistics
        self.counters.stopped_by_buffers += stops.by_buffers
        self.counters.stopped_by_height += stops.by_height

    def _below(
        self,
        leaf: Leaf,
        nodes: Nodes,
        n_rows: NDArray[np.int64],
        files: FilesOf,
        stored: Sequence[StoredRows],
        level: int,
    ) -> Iterator[Chunk]:
        """Go on below a tree that satisfies the requirement and whose rows lie in files."""
        waiting = [(0, leaf)]
        while waiting:
            node, here = waiting.pop()
            here.n_rows = int(n_rows[node])
            own = stored[files.first[node] : files.last[node] + 1]
            if nodes.axis[node] < 0:
                yield from self._divide(here, StoredRows.joined(own), level + 1)
            elif len(own) > 1:
                branches = [int(nodes.branch[child]) for child in children_of(nodes, node)]
                children = self.top.split(
                    here.node, int(nodes.axis[node]), int(nodes.threshold[node]), branches
                )
                states = [
                    narrowed(
                        here.state,
                        int(nodes.axis[node]),
                        int(nodes.threshold[node]),
                        branch,
                        self.problem.axes,
                    )
                    for branch in branches
                ]
                leaves = [Leaf(at, state, 0) for at, state in zip(children, states, strict=True)]
                waiting += list(zip(children_of(nodes, node), leaves, strict=True))[::-1]
            elif n_rows[node] <= self.shares.rows:
                yield self._grow_piece(here, own[0], below(nodes, node))
            else:  # the sample said that they would fit
                yield from self._spread(
                    here, below(nodes, node), n_rows[descendants(nodes, node)], own[0], level
                )

    def _spread(
        self, leaf: Leaf, nodes: Nodes, n_rows: NDArray[np.int64], rows: Rows, level: int
    ) -> Iterator[Chunk]:
        """Divide the rows of one file over several, now that it is known how many there are."""
        files = planned(nodes, n_rows, self.shares.rows)
        descent = Descent(nodes, self.problem.axes)
        parts = self._partitions(int(files.last.max()) + 1)
        for block in self._told("dividing", rows):
            parts.add(block, files.first[descent.leaves(block.rows)])
        stored = parts.close()
        self._done_with(rows)
        self._divided(level + 1)
        yield from self._below(leaf, nodes, n_rows, files, stored, level + 1)

    def _fall_back(self, leaf: Leaf, rows: Rows, level: int) -> Iterator[Chunk]:
        """Where a sample decides nothing, exact counts do; or the rows stay together, as in the paper."""
        if self.options.fallback == ROTHKO_T:
            self.counters.fallbacks += 1
            yield from self._by_groups(leaf, rows, level)
            return
        self.counters.nonminimal += 1
        leaf.covers = self._covers(rows)
        yield from self._large_group(leaf, rows)

    def _drawn(self, leaf: Leaf, rows: Rows) -> NDArray[np.uint32]:
        """A simple random sample without replacement; on the way all rows tell what covers them."""
        drawn = Reservoir(self.sample_size(rows.n_rows, self.options, self.shares.rows), self.draw)
        ends = Ends(self.problem.axes)
        for block in self._told("sampling", rows, payload=False):
            drawn.add(block.rows)
            ends.add(block.rows)
        leaf.state = ends.narrowed(leaf.state)
        return drawn.rows()

    @staticmethod
    def sample_size(n_rows: int, options: MondrianOptions, most: int) -> int:
        """How many rows are drawn: those that fit in memory, or as the policy says."""
        if options.sample is None:
            return min(most, n_rows)
        wanted = options.sample if options.sample >= 1 else options.sample * n_rows
        return max(1, min(int(wanted), most, n_rows))

    def _covers(self, rows: Rows) -> NDArray[np.int64]:
        """The lowest node of each hierarchy that covers all rows."""
        ends = Ends(self.problem.axes)
        for block in self._told("counting", rows, payload=False):
            ends.add(block.rows)
        return ends.covers()

    # -- in memory ---------------------------------------------------------------------------------

    def _grow_piece(self, leaf: Leaf, rows: Rows, begun: Nodes | None = None) -> Chunk:
        """Grow the rest of the tree below a leaf, whose rows fit in memory, and hand over its groups."""
        problem, n_axes = self.problem, len(self.problem.axes.is_tree)
        matrix = np.empty((rows.n_rows, problem.n_columns + 1), dtype=np.uint32)
        payload = self._loaded(rows, matrix)
        self._done_with(rows)
        tree, order = begin(begun, matrix, leaf.state, problem.axes)
        engine = MemoryEngine.of_rows(matrix, n_axes, order=order, threads=self.threads)
        del matrix
        nodes = engine.grow(
            problem.axes, problem.targets, problem.rules, cells=problem.cells, queries=problem.queries, begun=tree,
            progress=self._grown,
        )  # fmt: skip
        covers = engine.covers(nodes, problem.axes)
        self.counters.pieces += 1
        self.hung[leaf.node] = self.tree.piece(nodes, covers)
        self.splits += _splits(nodes.axis, len(self.splits))
        recoding, places = self._spine(leaf, nodes, covers)
        at_leaf = np.flatnonzero(nodes.axis < 0)
        by_start = np.argsort(nodes.start[at_leaf])
        size = (nodes.end - nodes.start)[at_leaf][by_start]
        return Chunk(Partition(recoding, places[by_start], size, engine.row_numbers()), payload)

    def _large_group(self, leaf: Leaf, rows: Rows) -> Iterator[Chunk]:
        """Rows that stay together although they do not fit in memory, in random order."""
        assert leaf.covers is not None
        one = Nodes(*(np.array([value]) for value in (-1, -1, -1, 0, -1, 0, rows.n_rows)))
        recoding, places = self._spine(leaf, one, leaf.covers[None, :])
        self.final[leaf.node] = leaf.covers
        statistics = self._statistics(rows)
        for part in self._shuffled(rows):
            n_rows = part.n_rows
            payload = self._loaded(part, np.empty((n_rows, self.problem.n_columns + 1), dtype=np.uint32))
            self._done_with(part)
            self._grown(n_rows)
            members = np.arange(n_rows, dtype=np.uint32)
            yield Chunk(Partition(recoding, places, np.array([n_rows]), members), payload, statistics)

    def _statistics(self, rows: Rows) -> Mapping[str, pa.Scalar]:
        """What is published of a group as a whole."""
        group = summary.OneGroup(self.policy)
        if group.columns:
            for block in rows.blocks():
                assert block.payload is not None
                group.add(block.payload)
        return group.cells()

    def _shuffled(self, rows: Rows) -> Iterator[Rows]:
        """The rows in parts that fit in memory, each row in a random one."""
        if rows.n_rows <= self.shares.rows:
            yield rows
            return
        n_parts = min(self.shares.files, -(-rows.n_rows // max(int(FULL * self.shares.rows), 1)))
        parts = self._partitions(n_parts)
        for block in self._told("dividing", rows):
            parts.add(block, self.random.integers(n_parts, size=len(block.rows)))
        stored = parts.close()
        self._done_with(rows)
        for part in stored:
            if part.n_rows:
                yield from self._shuffled(part)

    # -- small pieces ------------------------------------------------------------------------------

    def _spine(
        self, leaf: Leaf, nodes: Nodes, covers: NDArray[np.int64]
    ) -> tuple[Recoding, NDArray[np.int64]]:
        return spine(
            self.top.path(leaf.node), nodes, covers, self.problem.domains, self.problem.axes.root,
            self.policy.output, self.policy.schema.left_out,
        )  # fmt: skip

    def _loaded(self, rows: Rows, matrix: NDArray[np.uint32]) -> pa.Table | None:
        """All rows into the matrix; returns what is published of them as it is."""
        at, payloads = 0, []
        for block in rows.blocks():
            matrix[at : at + len(block.rows), :-1] = block.rows
            at += len(block.rows)
            if block.payload is not None:
                payloads.append(block.payload)
        return pa.Table.from_batches(payloads) if payloads else None

    def _kept(self, rows: Rows) -> Rows:
        """The table, encoded, to be read more than once: its first pass is written down."""
        return Kept(rows, self._partitions(1)) if rows is self.rows else rows

    def _partitions(self, n_parts: int) -> Partitions:
        return Partitions(self.spill, n_parts, self.layout, memory=self.shares.writers)

    def _done_with(self, rows: Rows) -> None:
        if isinstance(rows, StoredRows | Kept):
            rows.delete()
        cells.give_back_memory()

    def _divided(self, level: int) -> None:
        self.counters.repartitions += 1
        self.counters.levels = max(self.counters.levels, level)

    def _told(self, stage: str, rows: Rows, *, payload: bool = True) -> Iterator[Block]:
        done = 0
        for block in rows.blocks(payload=payload):
            yield block
            done += len(block.rows)
            self.progress(stage, done, rows.n_rows)

    def _grown(self, n_rows: int) -> None:
        self.done += n_rows
        self.progress("splitting", self.done, self.rows.n_rows)


class Ends:
    """The least and the greatest code of each attribute among rows that pass by, and what covers them."""

    def __init__(self, axes: Axes, codes: NDArray[np.uint32] | None = None) -> None:
        self.axes, self.n_axes = axes, len(axes.is_tree)
        self.codes = codes
        """(2, axes), None before the first row."""

    def add(self, rows: NDArray[np.uint32]) -> None:
        """Look at some more rows."""
        own = rows[:, : self.n_axes]
        seen = own if self.codes is None else np.concatenate([self.codes, own])
        self.codes = np.stack([seen.min(axis=0), seen.max(axis=0)])

    def covers(self) -> NDArray[np.int64]:
        """The lowest node of each hierarchy that covers the rows, -1 elsewhere."""
        assert self.codes is not None
        both = np.zeros((2, self.n_axes + 1), dtype=np.uint32)
        both[:, :-1] = self.codes
        one = Nodes(*(np.array([value]) for value in (-1, -1, -1, 0, -1, 0, 2)))
        return np.asarray(MemoryEngine.of_rows(both, self.n_axes, threads=1).covers(one, self.axes)[0])

    def narrowed(self, state: State) -> State:
        """What is known of a node whose rows these are, hierarchies narrowed to what covers them."""
        bounds = state.bounds.copy()
        bounds[2] = np.where(self.axes.is_tree, self.covers(), bounds[2])
        return State(bounds, state.region)


class Reservoir:
    """A simple random sample without replacement of rows that pass by: those with the least random keys.

    >>> from sfumato.randomness import seeded
    >>> drawn = Reservoir(2, seeded(1))
    >>> drawn.add(np.arange(10, dtype=np.uint32)[:, None])
    >>> len(drawn.rows())
    2
    """

    def __init__(self, size: int, random: Random) -> None:
        self.size, self.random = size, random
        self._keys: list[NDArray[np.float64]] = []
        self._rows: list[NDArray[np.uint32]] = []
        self._held, self._limit = 0, np.inf

    def add(self, rows: NDArray[np.uint32]) -> None:
        keys = self.random.random(len(rows))
        is_low = keys < self._limit
        self._keys.append(keys[is_low])
        self._rows.append(rows[is_low])
        self._held += int(is_low.sum())
        if self._held > 2 * self.size:
            self._sift()

    def rows(self) -> NDArray[np.uint32]:
        self._sift()
        return self._rows[0]

    def _sift(self) -> None:
        keys, rows = np.concatenate(self._keys), np.concatenate(self._rows)
        if len(keys) > self.size:
            least = np.argpartition(keys, self.size - 1)[: self.size]
            keys, rows = keys[least], rows[least]
            self._limit = float(keys.max())
        self._keys, self._rows, self._held = [keys], [rows], len(keys)


# ---- trees over files ------------------------------------------------------------------------------


class FilesOf(NamedTuple):
    """The first and the last file with rows of each node."""

    first: NDArray[np.int64]
    last: NDArray[np.int64]


def planned(nodes: Nodes, n_rows: NDArray[Any], most: float) -> FilesOf:
    """One file for each subtree of at most so many rows, and for each leaf beyond; numbered from left to right."""
    first = np.zeros(len(nodes.axis), dtype=np.int64)
    last = np.zeros(len(nodes.axis), dtype=np.int64)
    n_files = 0
    above = []
    waiting = [0]
    while waiting:
        node = waiting.pop()
        if nodes.axis[node] < 0 or n_rows[node] <= most:
            own = descendants(nodes, node)
            first[own] = last[own] = n_files
            n_files += 1
            continue
        above.append(node)
        waiting += list(children_of(nodes, node))[::-1]
    for node in reversed(above):
        children = children_of(nodes, node)
        first[node], last[node] = first[children[0]], last[children[-1]]
    return FilesOf(first, last)


def children_of(nodes: Nodes, node: int) -> range:
    first = int(nodes.first_child[node])
    return range(first, first + int(nodes.n_children[node])) if nodes.axis[node] >= 0 else range(0)


def descendants(nodes: Nodes, node: int) -> list[int]:
    """A node and all below it, each after its parent, children side by side."""
    own = [node]
    for here in own:  # grows as it goes
        own += children_of(nodes, here)
    return own


def below(nodes: Nodes, node: int) -> Nodes:
    """The tree below a node."""
    own = descendants(nodes, node)
    number = np.full(len(nodes.axis), -1, dtype=np.int32)
    number[own] = np.arange(len(own), dtype=np.int32)
    picked = nodes._replace(**{name: column[own] for name, column in nodes._asdict().items()})
    is_inner = picked.axis >= 0
    first_child = np.where(is_inner, number[np.where(is_inner, picked.first_child, 0)], np.int32(-1))
    return picked._replace(first_child=first_child)


def narrowed(state: State, axis: int, threshold: int, branch: int, axes: Axes) -> State:
    """What is known of a child, by the split that made it; codes are of the whole table."""
    bounds = state.bounds.copy()
    bounds[3] = 0
    region = None if state.region is None else state.region.copy()
    if axes.is_tree[axis]:
        bounds[:3, axis] = axes.node_low[branch], axes.node_high[branch] - 1, branch
    else:
        bounds[1 - branch, axis] = threshold + branch
        if region is not None:
            region[1 - branch, axis] = threshold
    return State(bounds, region)


def begin(
    nodes: Nodes | None, matrix: NDArray[np.uint32], state: State, axes: Axes
) -> tuple[Begun, NDArray[np.int64] | None]:
    """A tree to grow on at its leaves, and the order of the rows that it wants."""
    if nodes is None:
        leaf = Open(0, len(matrix), state.bounds, state.region)
        return Begun(one_node(leaf, 1), {0: leaf}), None
    at = Descent(nodes, axes).leaves(matrix)
    few = len(nodes.axis) <= np.iinfo(np.uint16).max  # then they are sorted by counting
    order = np.argsort(at.astype(np.uint16 if few else np.uint32), kind="stable")
    table = np.empty(len(nodes.axis), dtype=NODE)
    for name in Nodes._fields:
        table[name] = getattr(nodes, name)
    count = np.bincount(at, minlength=len(table))
    table["end"] = np.cumsum(count)
    table["start"] = table["end"] - count
    states = {0: state}
    leaves = {}
    for node in range(len(table)):
        here = states.pop(node)
        if nodes.axis[node] < 0:
            start, end = int(table["start"][node]), int(table["end"][node])
            leaves[node] = Open(start, end, here.bounds, here.region)
            continue
        for child in children_of(nodes, node):
            states[child] = narrowed(
                here, int(nodes.axis[node]), int(nodes.threshold[node]), int(nodes.branch[child]), axes
            )
    return Begun(table, leaves), order
