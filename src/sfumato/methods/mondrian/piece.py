"""What is done with the rows of a piece of the tree, once they are loaded: they find their groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.engines.protocol import Loaded
from sfumato.kernels.nodes import Nodes
from sfumato.methods.groups import Chunk, Grouped
from sfumato.methods.mondrian.allowances import NOTHING, Allowance
from sfumato.methods.mondrian.begun_tree import begin_tree
from sfumato.methods.mondrian.block import refine_block
from sfumato.methods.mondrian.memory import RowCounter, TreeGrower
from sfumato.methods.mondrian.node_range import NodeRange
from sfumato.methods.mondrian.problem import Problem
from sfumato.methods.mondrian.subtree import make_leaf, name_no_others
from sfumato.methods.mondrian.taken_back import NO_SPLIT, TakenBack, keep_whole
from sfumato.methods.own_error import ErrorMeter
from sfumato.methods.people import ReachedFigures
from sfumato.recoding.recoder import Partition
from sfumato.recoding.splits import RecodingPlan
from sfumato.recoding.tree_file import PathStep, recode_piece

Ints = NDArray[np.int64]


def not_told(_n_rows: int) -> None:
    """Nobody is told how many rows have found their group."""


class GrownPiece(NamedTuple):
    """The tree below a leaf of the top, for the recoding."""

    leaf: int
    nodes: Nodes | None
    """None if the leaf is one group by itself, of which some rows were at hand."""
    covers: Ints
    """(groups, axes) the hierarchy nodes that cover the rows of each group; of a list the cells stand behind."""
    errors: Sequence[int] = ()
    """The error of the groups at each task, see ``ErrorMeter``."""
    origin: Ints | None = None
    """Which node of the tree as it was grown each one is, where splits were undone."""
    n_cells: int | None = None
    """Cells of a list that took the place of the tree."""
    pairs: Ints | None = None
    """Of a group of people whose rows are in several parts: its pairs of each value."""


@dataclass(frozen=True, slots=True, eq=False)
class GrowPiece:
    """Grow the tree below a leaf of the top.

    known    what the splits above say of the rows
    path     these splits
    begun    the upper part of the tree, if that is decided already
    refines  does a list of cells take the place of the tree where that loses less?
    allowance   what may be left out
    meter    measures the error of the groups; None: nobody asks
    undone   splits that are undone, and cells that are taken back, see ``own_reference``
    """

    leaf: int
    problem: Problem
    known: NodeRange
    path: Sequence[PathStep]
    plan: RecodingPlan
    begun: Nodes | None = None
    refines: bool = False
    allowance: Allowance = NOTHING
    meter: ErrorMeter | None = None
    undone: TakenBack = NO_SPLIT
    threads: int | None = None
    progress: RowCounter = not_told

    def __reduce__(self) -> tuple[Any, ...]:
        """Who works elsewhere cannot tell this process how far it is."""
        return GrowPiece, (
            self.leaf, self.problem, self.known, self.path, self.plan, self.begun, self.refines,
            self.allowance, self.meter, self.undone, self.threads,
        )  # fmt: skip

    def __call__(self, part: Loaded) -> Grouped:
        axes = self.problem.axes
        tree, order = begin_tree(self.begun, part, self.known, axes, allowance=self.allowance)
        grower = TreeGrower(
            part.hand_over(),
            len(axes.is_tree),
            n_columns=self.problem.n_columns,
            order=order,
            rules=self.problem.rules,
            keeps_codes=self.problem.targets is not None and self.problem.loss is None,
            threads=self.threads,
        )
        nodes = grower.grow(self.problem, begun=tree, progress=self.progress)
        origin = None
        if self.undone.whole:
            nodes, origin = keep_whole(nodes, self.undone.whole)
        covers, n_cells = grower.covers(nodes, axes, has_spans=bool(self.plan.slices)), None
        if self.refines and not self.undone.whole:
            nodes, covers, n_cells = refine_block(
                grower,
                nodes,
                covers,
                self.known,
                self.problem,
                allowance=self.allowance,
                most_cells=self.undone.cells,
            )
        if self.plan.leaves_rows_out:
            nodes = name_no_others(nodes, axes.is_tree)
        recoding, places = recode_piece(self.path, nodes, covers, self.plan)
        leaves = np.flatnonzero(nodes.axis < 0)
        by_start = np.argsort(nodes.start[leaves])
        size = (nodes.end - nodes.start)[leaves][by_start]
        groups = Partition(recoding, places[by_start], size, part.number(grower.numbers_in_leaves(nodes)))
        errors = () if self.meter is None else self.meter.measure(grower.rows_in_leaves(nodes), size)
        return Grouped(
            Chunk(groups, part.payload), GrownPiece(self.leaf, nodes, covers, errors, origin, n_cells)
        )


@dataclass(frozen=True, slots=True, eq=False)
class LargeGroup:
    """Hand over some rows of a group that cannot be loaded at once; ``statistics`` and ``errors`` are of the whole group.

    reached   where people count, what the whole group reaches by them
    pairs     and how many of them have each value
    """

    leaf: int
    covers: Ints
    path: Sequence[PathStep]
    plan: RecodingPlan
    statistics: Mapping[str, pa.Scalar]
    errors: Sequence[int] = ()
    reached: ReachedFigures | None = None
    pairs: Ints | None = None
    progress: RowCounter = not_told

    def __reduce__(self) -> tuple[Any, ...]:
        return LargeGroup, (
            self.leaf, self.covers, self.path, self.plan, self.statistics, self.errors, self.reached,
            self.pairs,
        )  # fmt: skip

    def next_part(self) -> LargeGroup:
        """The work of a further part of the same group: errors and people are those of all parts."""
        reached = None if self.reached is None else self.reached._replace(n_groups=0)
        pairs = None if self.pairs is None else np.zeros_like(self.pairs)
        return replace(self, errors=[0] * len(self.errors), reached=reached, pairs=pairs)

    def __call__(self, part: Loaded) -> Grouped:
        n_rows, covers = part.n_rows, self.covers[None, :]
        recoding, places = recode_piece(self.path, make_leaf(n_rows), covers, self.plan)
        self.progress(n_rows)
        groups = Partition(recoding, places, np.array([n_rows]), part.number(np.arange(n_rows)))
        piece = GrownPiece(self.leaf, None, covers, self.errors, pairs=self.pairs)
        return Grouped(Chunk(groups, part.payload, self.statistics, reached=self.reached), piece)
