"""Growth in memory that begins on a sample: Rothko-S without files [LDR08, sections 5.2 and 8].

The steps are those of ``sample``, and the samples those that ``rothko`` draws on disk, so the boxes are the same. A part
of at most ``rows-in-memory`` rows is grown from all its rows. If the policy does not say, that is every part but the
whole table.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.encoding.batches import BLOCK_ROWS, Block
from sfumato.engines.reservoir import sample_codes, seed_of_part
from sfumato.kernels.nodes import Nodes
from sfumato.methods.mondrian.begun_tree import BegunTree, as_table, begin_tree, find_leaf_bounds
from sfumato.methods.mondrian.covers import CodeEnds, find_covers
from sfumato.methods.mondrian.kernels.descend import Descent
from sfumato.methods.mondrian.memory import GrownPart, TreeGrower, join_parts, range_of_codes
from sfumato.methods.mondrian.node_range import NodeRange
from sfumato.methods.mondrian.problem import SplitProblem
from sfumato.methods.mondrian.sample import (
    LeafStatistics,
    TreeLimits,
    choose_sample_size,
    complete,
    grow_on_sample,
    optimistic_problem,
    prune,
    trim_tree,
)
from sfumato.policy.options.mondrian import NO_FALLBACK, ROTHKO_S, MondrianOptions
from sfumato.table.spill import Counters

Codes = NDArray[np.uint32]
Ints = NDArray[np.int64]

LEAST_STATISTICS = 1 << 26
"""Bytes that statistics for pruning may take at least; else as many as the rows."""


def begin_on_sample(
    engine: TreeGrower, problem: SplitProblem, options: MondrianOptions, *, seed: int, counters: Counters
) -> BegunTree | None:
    """The upper part of the tree, and the engine's rows in its order; None if the policy asks for no sample.

    A policy that asks for a sample without saying how large takes all rows, since all are in memory.
    """
    max_rows = options.rows_in_memory or engine.n_rows
    if options.scale != ROTHKO_S or choose_sample_size(engine.n_rows, options, max_rows) == engine.n_rows:
        return None
    known = range_of_codes(engine.codes, problem.axes, has_queries=problem.queries is not None)
    top = SampledTop(engine, problem, options, seed=seed, counters=counters).grow(known)
    begun, order = begin_tree(top, engine.rows, known, problem.axes)
    if order is not None:
        engine.rows = engine.rows.take(order, axis=0)
    if options.fallback == NO_FALLBACK:
        begun.leaves = {node: leaf for node, leaf in begun.leaves.items() if leaf.n_rows <= max_rows}
    return begun


class SampledTop:
    """The splits that samples of the rows decide, and all rows confirm."""

    def __init__(
        self,
        engine: TreeGrower,
        problem: SplitProblem,
        options: MondrianOptions,
        *,
        seed: int,
        counters: Counters,
    ) -> None:
        self.rows, self.threads = engine.rows, engine.threads
        self.problem, self.options, self.seed, self.counters = problem, options, seed, counters
        self.max_rows = options.rows_in_memory or engine.n_rows
        self.max_statistics = max(self.rows.nbytes, LEAST_STATISTICS)

    def grow(self, known: NodeRange) -> Nodes | None:
        """The tree whose leaves are to be grown on from all their rows; None if that is the root."""
        part = self._split(self.rows, known, seed_of_part(self.seed, 0), level=1)
        return None if part is None else join_parts(part)

    def _split(self, rows: Codes, known: NodeRange, seed: int, level: int) -> GrownPart | None:
        """Grow on a sample, send all rows down, undo what breaks the requirement, and go on in parts that are large."""
        ends = CodeEnds(len(self.problem.axes.is_tree))
        ends.add(Block(rows, None))
        known = known.with_covers(self.problem.axes, find_covers(self.problem.axes, ends.get()))
        nodes = self._grow_on_sample(rows, known, seed)
        statistics = LeafStatistics(nodes, self.problem.rules)
        statistics.add(rows, Descent(nodes, self.problem.axes).leaves(rows))
        pruned = prune(nodes, statistics)
        self.counters.pruned += pruned.n_pruned
        if not pruned.is_split:
            self._count_undivided(len(rows))
            return None
        self.counters.repartitions += 1
        self.counters.levels = max(self.counters.levels, level)
        part = GrownPart(as_table(pruned.nodes))
        large = np.flatnonzero((pruned.nodes.axis < 0) & (pruned.n_rows > self.max_rows)).tolist()
        if large:
            leaf_of_row = Descent(pruned.nodes, self.problem.axes).leaves(rows)
            ranges = find_leaf_bounds(pruned.nodes, known, self.problem.axes)
        for leaf in large:
            own = rows[leaf_of_row == leaf]
            below = self._split(own, ranges.range_of(leaf), seed_of_part(self.seed, len(own)), level + 1)
            if below is not None:
                part.below[leaf] = below
        return part

    def _grow_on_sample(self, rows: Codes, known: NodeRange, seed: int) -> Nodes:
        """The tree of high-confidence splits, with a leaf for every row."""
        problem, options = self.problem, self.options
        reservoir = sample_codes(choose_sample_size(len(rows), options, self.max_rows), seed, len(rows))
        for start in range(0, len(rows), BLOCK_ROWS):
            block = rows[start : start + BLOCK_ROWS]
            reservoir.add_numbered(block[:, :-1], block[:, -1].astype(np.int64))
        sample = reservoir.rows()
        optimistic = optimistic_problem(problem, n=len(sample), N=len(rows), options=options)
        grown = grow_on_sample(sample, optimistic, known, threads=self.threads)
        limits = TreeLimits(
            max_nodes=len(self.rows),
            max_statistics=self.max_statistics,
            max_files=len(self.rows),
            rows_in_memory=len(self.rows),
            max_height=options.max_height,
        )
        nodes, stops = trim_tree(grown, problem.axes, problem.rules, limits)
        self.counters.stopped_by_tree += stops.by_tree
        self.counters.stopped_by_statistics += stops.by_statistics
        self.counters.stopped_by_height += stops.by_height
        return complete(nodes, problem.axes)

    def _count_undivided(self, n_rows: int) -> None:
        if n_rows <= self.max_rows or self.options.fallback != NO_FALLBACK:
            self.counters.fallbacks += 1
        else:
            self.counters.nonminimal += 1
