"""One run of Mondrian over the rows of a table: the tree, and its groups [LDR08, sections 2.2 and 5].

Rows that the engine loads at once are grown depth first, in memory. A node with more rows is split by what is known
without them, until its parts can be loaded:

Rothko-T   counts, in passes over the rows, what each split is chosen from. The tree is the same as if all rows had been
           loaded.
Rothko-S   grows a tree on a sample, sends all rows down it, undoes the splits that break the requirement, and goes on
           below.

Only the top of the tree, the splits above the parts that are loaded, is held throughout. The result is minimal: no
group can be split any further without breaking the requirement.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.encoding.domain import OrderedDomain
from sfumato.engines.memory_plan import NODE_BYTES
from sfumato.engines.protocol import UNLIMITED, Asked, EncodedTable, Engine, Places, Rows, Work
from sfumato.engines.reservoir import seed_of_part
from sfumato.engines.scatter import FILL, scatter
from sfumato.errors import InputError, number_of
from sfumato.kernels.nodes import Nodes
from sfumato.kernels.spans import unpack_cells
from sfumato.methods.groups import Grouped
from sfumato.methods.mondrian.allowances import NOTHING, Allowance
from sfumato.methods.mondrian.block import BLOCK_ROWS, top_levels
from sfumato.methods.mondrian.covers import find_covers
from sfumato.methods.mondrian.kernels.descend import Descent
from sfumato.methods.mondrian.kernels.problem import REST
from sfumato.methods.mondrian.leaves import DividedTree, Family, Leaf, Siblings, part_largest
from sfumato.methods.mondrian.node_counts import SplitCriteria
from sfumato.methods.mondrian.own_reference import Comparison
from sfumato.methods.mondrian.passes import (
    ColumnPlan,
    CoverPlan,
    LeafPlan,
    SamplePlan,
    SummaryPlan,
    TreePlaces,
)
from sfumato.methods.mondrian.people import person_column
from sfumato.methods.mondrian.people_counts import AxisParts
from sfumato.methods.mondrian.piece import GrownPiece, GrowPiece, LargeGroup
from sfumato.methods.mondrian.problem import problem_of
from sfumato.methods.mondrian.refine import list_bytes
from sfumato.methods.mondrian.sample import (
    SAMPLE_SEED,
    Stops,
    TreeLimits,
    choose_sample_size,
    complete,
    grow_on_sample,
    optimistic_problem,
    prune,
    trim_tree,
)
from sfumato.methods.mondrian.splits import Split, Splitter
from sfumato.methods.mondrian.subtree import (
    FileRanges,
    list_children,
    list_descendants,
    plan_files,
    take_subtree,
)
from sfumato.methods.mondrian.taken_back import NO_SPLIT, NOTHING_UNDONE, Undone, way_of
from sfumato.methods.mondrian.tree_top import TreeTop
from sfumato.methods.own_error import ErrorMeter, ErrorPlan
from sfumato.methods.people import NOBODY, PeopleMeter, ReachedFigures
from sfumato.policy.document import Policy
from sfumato.policy.options.mondrian import ROTHKO_S, ROTHKO_T, MondrianOptions
from sfumato.progress import Progress, no_progress
from sfumato.randomness import Random
from sfumato.recoding.splits import RecodingPlan, count_splits, split_cells
from sfumato.recoding.statistics import OneGroup
from sfumato.table.spill import size_to_ask_for

Codes = NDArray[np.uint32]
Ints = NDArray[np.int64]
Piece = tuple[Rows, Work[Grouped]]


class TreeRun:
    """One run over a table: let all ``works`` be done and noted, then ask for the recoding.

    Samples come from the seed ``sampling``, and so do the boxes. Rows of a group that cannot be loaded at once come in an
    order that is taken from ``random``. As many rows may be left out as the policy allows, or none if ``keeps_all``.
    What is ``undone`` is not split, see ``own_reference``.
    """

    def __init__(
        self,
        engine: Engine,
        table: EncodedTable,
        policy: Policy,
        *,
        random: Random,
        sampling: int = SAMPLE_SEED,
        keeps_all: bool = False,
        undone: Undone = NOTHING_UNDONE,
        progress: Progress = no_progress,
    ) -> None:
        self.options = policy.options_for(MondrianOptions)
        progress("checking", 0, 1)
        self.problem = problem_of(table, table.axes(self.options.split_only), policy, self.options)
        self.allowance = NOTHING
        if keeps_all:
            self.problem = replace(self.problem, leaves_rows_out=False)
        else:
            n_people = None if table.columns.person is None else table.columns.n_people
            self.allowance = Allowance.of(policy.suppress, n_rows=table.n_rows, n_people=n_people)
        self.engine, self.room, self.counters = engine, engine.room, engine.counters
        self.refines = self.options.refines(policy.workload, table.n_rows)
        self.max_rows = min(engine.room.rows, self.options.rows_in_memory or engine.room.rows)
        """Rows up to which a part is grown from all its rows."""
        if self.refines:
            self.max_rows = BLOCK_ROWS
        self.count_bytes = engine.room.bytes_or(2 * NODE_BYTES * max(table.n_rows, 1 << 20))
        """Memory for the tree of a sample and what is counted of it, half each."""
        self.table, self.policy = table, policy
        self.random, self.sampling, self.progress = random, sampling, progress
        self.tree = engine.grow_tree(self.problem.axes.is_tree, is_kept=policy.keeps_recoding)
        self._criteria = SplitCriteria(self.problem)
        self._undone = undone
        self._people = PeopleMeter.of(table.columns, policy.requirements, undone.published)
        self._comparison = Comparison.of(table.columns, policy.requirements)
        self._left_out: list[Codes] = []
        """Rows that were left out before their part was loaded: their people, and what ``own_reference`` compares."""
        self._top = TreeTop()
        self._pieces: dict[int, int] = {}
        """The part of the written tree below each leaf of the top that was grown in memory."""
        self._covers: dict[int, Ints] = {}
        """The covers of each leaf of the top that is a group by itself."""
        self._n_splits = np.zeros(len(self.problem.domains), dtype=np.int64)
        self._tops = top_levels(self.problem) if self.refines else [0] * len(self._n_splits)
        """The top level of each quasi-identifier, as lists have them."""
        self._n_grown = 0
        self.meter = ErrorMeter.of(policy, table.columns) if policy.leaves_rows_out else None
        """Tells the better one of two runs."""
        self.errors = [] if self.meter is None else [0] * len(self.meter.tasks)

    def n_splits(self) -> dict[str, int]:
        """How often each quasi-identifier was split."""
        n_splits = self._n_splits + self._top.count_splits(len(self._n_splits))
        names = [domain.attribute.name for domain in self.problem.domains]
        return dict(zip(names, n_splits.tolist(), strict=True))

    def rows_left_out(self) -> Codes:
        """What ``CountGroups`` asks of rows that were left out before their part was loaded."""
        return np.concatenate([np.zeros((0, len(self._told_of_left_out)), dtype=np.uint32), *self._left_out])

    def people_left_out(self) -> Codes:
        """Whose each row is that was left out before its part was loaded."""
        return NOBODY if self._people is None else self.rows_left_out()[:, 0]

    @property
    def published(self) -> Mapping[str, Ints]:
        """How often each sensitive value counts in what is published, where that is not as in the whole table."""
        return self._undone.published

    @property
    def _told_of_left_out(self) -> list[int]:
        """Columns of the row matrix that must be known of rows that are left out."""
        if self._comparison is not None:
            return self._comparison.places
        return [] if self._people is None else [self._people.person]

    def recoding(self) -> object:
        """How further rows are recoded."""
        return self.tree.finish(self._top.as_nodes(), self._pieces, self._covers, self._plan_recoding())

    def works(self) -> Iterator[Piece]:
        """The pieces that can be loaded, in the order of the leaves."""
        rows, axes = self.engine.open(self.table), self.problem.axes
        self.progress("splitting", 0, rows.n_rows)
        known = self._criteria.whole([domain.n_codes for domain in self.problem.domains])
        known = known.with_covers(axes, find_covers(axes, self.table.code_ends))
        root = Leaf(0, known, rows.n_rows, allowance=self.allowance)
        if (
            self.options.scale == ROTHKO_S and self._sample_size(rows) < rows.n_rows
        ):  # also where all could be loaded
            yield from self._split_by_sample(root, rows, 0)
        else:
            yield from self._grow_below(root, rows, 0)

    def note(self, piece: GrownPiece) -> None:
        """Keep what the recoding and the figures need of a piece."""
        if self.errors:
            self.errors = [sum(both) for both in zip(self.errors, piece.errors, strict=True)]
        if piece.nodes is None:
            self._covers[piece.leaf] = piece.covers[0]
            return
        self.counters.pieces += 1
        self._pieces[piece.leaf] = self.tree.piece(piece.nodes, piece.covers)
        cells = split_cells(piece.covers, len(self._tops))[1]
        levels = None if cells is None else unpack_cells(cells)[0]
        self._n_splits += count_splits(piece.nodes.axis, self._tops, levels)

    def _grow_below(self, leaf: Leaf, rows: Rows, level: int) -> Iterator[Piece]:
        """The pieces below a leaf, whose rows these are."""
        if rows.n_rows <= self.max_rows:
            self._check_room(rows)
            yield rows, self._grow(leaf)
        elif self.options.scale == ROTHKO_S:
            yield from self._split_by_sample(leaf, rows, level)
        else:
            yield from self._split_by_counts(leaf, rows, level)

    def _grow(self, leaf: Leaf, begun: Nodes | None = None) -> GrowPiece:
        """Grow the tree below a leaf whose rows are loaded; ``begun`` is its upper part, if there is one."""
        return GrowPiece(
            leaf.node,
            self.problem,
            leaf.known,
            self._top.path(leaf.node),
            self._plan_recoding(),
            begun,
            self.refines,
            leaf.allowance,
            self.meter if self.errors else None,
            self._undone.below.get(way_of(self._top.path(leaf.node)), NO_SPLIT),
            threads=self.engine.threads,
            progress=self._report_grown,
        )

    def _check_room(self, rows: Rows) -> None:
        """Raise if there is no room for the list of these rows: with less memory, boxes would be others."""
        if not self.refines or self.room.rows == UNLIMITED:
            return
        n_bytes = rows.n_rows * (self.room.row_bytes + list_bytes(len(self.problem.domains)))
        n_fitting = -(-n_bytes // self.room.row_bytes)  # rows that fit without a list where these fit with it
        if n_fitting > self.room.rows:
            raise InputError(
                f"A list of cells (refine) needs {number_of(rows.n_rows, 'row')} in memory at once; allow at least "
                f"{size_to_ask_for(n_fitting * self.room.row_bytes)} of --memory, or say refine: none."
            )

    # -- Rothko-T ----------------------------------------------------------------------------------

    def _split_by_counts(self, leaf: Leaf, rows: Rows, level: int) -> Iterator[Piece]:
        """Split by counts, then divide the rows."""
        rows = self.engine.keep(rows) if rows is self.table else rows  # they are read more than once
        yield from self._divide_rows(leaf, rows, self._split_levels(leaf, rows), level)

    def _split_levels(self, leaf: Leaf, rows: Rows) -> list[Leaf]:
        """The leaves below a leaf, split level by level while the counts of all large ones fit in memory."""
        leaves, is_first = [leaf], True
        while large := [one for one in leaves if not one.is_final and one.n_rows > self.max_rows]:
            splitters = [Splitter(self._criteria, one.known, one.n_rows, one.allowance) for one in large]
            if not is_first and not self._fit_one_pass(splitters, len(leaves)):
                break
            families = self._find_families(large, splitters)
            self._forget_counts(leaves)
            self._count_and_decide(leaf, rows, large, splitters, families)
            splitter_of = {one.node: splitter for one, splitter in zip(large, splitters, strict=True)}
            leaves = [child for one in leaves for child in self._apply(splitter_of.get(one.node), one)]
            is_first = False
        self._forget_counts(leaves)
        return leaves

    @staticmethod
    def _forget_counts(leaves: Sequence[Leaf]) -> None:
        """Let go of the counts above these leaves: memory is for others now."""
        for one in leaves:
            one.siblings = None

    def _fit_one_pass(self, splitters: Sequence[Splitter], n_leaves: int) -> bool:
        if self.options.frequency_groups and len(splitters) > self.options.frequency_groups:
            return False
        if n_leaves + len(splitters) > self.room.parts:
            return False
        return sum(one.plan.n_bytes for one in splitters if one.plan) <= self.room.count_bytes

    def _find_families(self, large: Sequence[Leaf], splitters: Sequence[Splitter]) -> list[Family]:
        """The siblings of which all but the largest are counted: its counts are the parent's less theirs.

        None, if memory is short: counts of children are narrower than those of their parent.
        """
        members: dict[Siblings, list[int]] = {}
        for at, one in enumerate(large):
            if one.siblings is not None and splitters[at].plan is not None:
                members.setdefault(one.siblings, []).append(at)
        found = [
            Family(siblings.parent, *part_largest(own, large))
            for siblings, own in members.items()
            if len(own) == siblings.n
        ]
        in_families = [at for family in found for at in (*family.counted, family.largest)]
        n_bytes = sum(family.n_bytes for family in found)
        n_bytes += sum(
            splitter.plan.n_bytes
            for at, splitter in enumerate(splitters)
            if splitter.plan is not None and at not in in_families
        )
        return found if n_bytes <= self.room.count_bytes else []

    def _count_and_decide(
        self,
        leaf: Leaf,
        rows: Rows,
        large: Sequence[Leaf],
        splitters: Sequence[Splitter],
        families: Sequence[Family],
    ) -> None:
        """Decide on the large leaves below ``leaf``: usually in one pass, in more where memory is short."""
        nodes, numbers = self._top.take_below(leaf.node)
        descent = Descent(nodes, self.problem.axes)
        for family in families:
            for at in family.counted:
                splitters[at].count_as(family.parent.plan)
        waiting = {family.largest for family in families}
        while undecided := [at for at, splitter in enumerate(splitters) if not splitter.is_decided]:
            undecided = [at for at in undecided if at not in waiting]
            plan_at = {large[at].node: place for place, at in enumerate(undecided)}
            nowhere = [len(undecided)]  # of rows that are left out
            places = np.array(
                [plan_at.get(number, len(undecided)) for number in numbers] + nowhere, dtype=np.uint16
            )
            to = None if len(numbers) == 1 else TreePlaces(descent, places, len(undecided) + 1)
            self.counters.frequency_groups += len(undecided) + len(waiting)
            keeps_counts = self.room.keeps_counts
            asked = Asked([splitters[at].ask(keeps_counts=keeps_counts) for at in undecided], to)
            found = self.engine.gather(rows, asked, stage="counting")
            answers: dict[int, Any] = dict(zip(undecided, found, strict=True))
            for family in families if waiting else ():
                for at in family.counted:
                    family.parent.subtract(answers[at])
                answers[family.largest] = family.parent
            waiting = set()
            for at, answer in answers.items():
                splitters[at].take(answer)

    def _apply(self, splitter: Splitter | None, leaf: Leaf) -> list[Leaf]:
        """The children of a leaf that was split, or the leaf itself."""
        if splitter is None:
            return [leaf]
        split = splitter.result
        if split is None or self._stays_whole(leaf):
            leaf.covers = splitter.covers
            return [leaf]
        children = self._top.split(
            leaf.node,
            axis=split.axis,
            threshold=split.threshold,
            branches=split.branches,
            otherwise=self._name_others(split),
        )
        counts = splitter.counts if self.room.keeps_counts else None
        siblings = None if counts is None else Siblings(len(children), counts)
        each = zip(children, split.ranges, split.sizes, split.allowances, strict=True)
        return [
            Leaf(number, known, n_rows, siblings=siblings, allowance=allowance)
            for number, known, n_rows, allowance in each
        ]

    def _stays_whole(self, leaf: Leaf) -> bool:
        """Is the split of a leaf undone?"""
        return bool(self._undone.top) and way_of(self._top.path(leaf.node)) in self._undone.top

    def _name_others(self, split: Split) -> int:
        """Which child takes what no branch names: where rows may be left out, along a hierarchy only a rest does."""
        leaves_others = self.policy.leaves_rows_out and self.problem.axes.is_tree[split.axis]
        return -1 if leaves_others and split.branches[-1] != REST else split.otherwise

    def _divide_rows(self, leaf: Leaf, rows: Rows, leaves: Sequence[Leaf], level: int) -> Iterator[Piece]:
        """Divide the rows of ``leaf`` over its leaves, and go on with each."""
        if leaves[0] is leaf:
            yield from self._publish_large_group(leaf, rows)
            return
        nodes, numbers = self._top.take_below(leaf.node)
        part_of = {one.node: at for at, one in enumerate(leaves)}
        part_of_node = [part_of.get(number, 0) for number in numbers]
        n_parts = len(leaves)
        if (
            sum(one.n_rows for one in leaves) < rows.n_rows
        ):  # rows that are left out come to a part of their own
            part_of_node, n_parts = [*part_of_node, n_parts], n_parts + 1
        places = TreePlaces(
            Descent(nodes, self.problem.axes), np.array(part_of_node, dtype=np.uint32), n_parts
        )
        parts = self._divide(rows, places)
        for left_out in parts[len(leaves) :]:
            if self._told_of_left_out:
                asked = Asked([ColumnPlan(self._told_of_left_out)])
                self._left_out += self.engine.gather(left_out, asked, stage="counting")
            self.engine.discard(left_out)
        self._count_repartition(level + 1)
        for one, own_rows in zip(leaves, parts, strict=False):
            if one.is_final:
                yield from self._publish_large_group(one, own_rows)
            else:
                yield from self._grow_below(one, own_rows, level + 1)

    # -- Rothko-S ----------------------------------------------------------------------------------

    def _split_by_sample(self, leaf: Leaf, rows: Rows, level: int) -> Iterator[Piece]:
        """Grow on a sample, send all rows down, undo what breaks the requirement, and go on below."""
        size = self._sample_size(rows)
        sample = self.table.take_sample(size) if level == 0 else None  # the first pass may have drawn one
        if sample is None:
            sample = self._draw_sample(leaf, rows, size, level)
        if len(sample) == 0:  # one person has more rows than that
            yield from self._fall_back(leaf, rows, level)
            return
        nodes = self._grow_on_sample(leaf, rows, sample)
        if len(nodes.axis) == 1:
            yield from self._fall_back(leaf, rows, level)
            return
        rows_per_sampled = rows.n_rows / len(sample)
        del sample
        ranges = plan_files(nodes, (nodes.end - nodes.start) * rows_per_sampled, FILL * self.max_rows)
        places = TreePlaces(Descent(nodes, self.problem.axes), ranges.first, ranges.n_files)
        people = self._criteria.people(rows.n_rows)
        leaves = Asked([LeafPlan(nodes, self.problem.rules, places, people)])
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

    def _sample_size(self, rows: Rows) -> int:
        return choose_sample_size(rows.n_rows, self.options, self.max_rows)

    def _draw_sample(self, leaf: Leaf, rows: Rows, size: int, level: int) -> Codes:
        """Draw a sample; the same pass finds the hierarchy nodes that cover all rows of the leaf."""
        seed = seed_of_part(self.sampling, rows.n_rows if level else 0)
        plan = SamplePlan(size, seed, rows.n_rows, self.problem.axes, person_column(self.problem.rules))
        (drawn,) = self.engine.gather(rows, Asked([plan]), stage="sampling")
        leaf.known = leaf.known.with_covers(self.problem.axes, drawn.covers)
        return drawn.sample

    def _grow_on_sample(self, leaf: Leaf, rows: Rows, sample: Codes) -> Nodes:
        """The tree of high-confidence splits, as large as memory allows."""
        n, person = len(sample), person_column(self.problem.rules)
        if person is not None:
            n = len(np.unique(sample[:, person]))
        n_all = n * rows.n_rows // len(sample)  # rows, or about as many people
        problem = optimistic_problem(self.problem, n=n, N=n_all, options=self.options)
        self.progress("splitting a sample", 0, 1)
        grown = grow_on_sample(sample, problem, leaf.known, threads=self.engine.threads)
        limits = TreeLimits(
            max_nodes=max(self.count_bytes // 2 // NODE_BYTES, 64),
            max_statistics=self.count_bytes // 2,
            max_files=self.room.parts,
            rows_in_memory=FILL * self.max_rows * len(sample) / rows.n_rows,
            max_height=self.options.max_height,
        )
        nodes, stops = trim_tree(grown, problem.axes, self.problem.rules, limits)
        self._count_stops(stops)
        return complete(nodes, problem.axes)

    def _go_on_below(self, leaf: Leaf, tree: DividedTree, level: int) -> Iterator[Piece]:
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
            elif n_rows[node] <= self.max_rows:
                yield own_parts[0], self._grow(here, take_subtree(nodes, node))
            else:  # more rows than the sample suggested
                below = n_rows[list_descendants(nodes, node)]
                yield from self._divide_again(here, take_subtree(nodes, node), below, own_parts[0], level)

    def _move_split_to_top(self, leaf: Leaf, nodes: Nodes, node: int) -> list[tuple[int, Leaf]]:
        """Split a leaf of the top as ``node`` is split; returns each child of ``node`` and its leaf."""
        axis, threshold = int(nodes.axis[node]), int(nodes.threshold[node])
        children = list_children(nodes, node)
        branches = [int(nodes.branch[child]) for child in children]
        otherwise = int(nodes.otherwise[node])
        numbers = self._top.split(
            leaf.node, axis=axis, threshold=threshold, branches=branches, otherwise=otherwise
        )
        known = [leaf.known.child(self.problem.axes, axis, threshold, branch) for branch in branches]
        leaves = [Leaf(number, own, 0) for number, own in zip(numbers, known, strict=True)]
        return list(zip(children, leaves, strict=True))

    def _divide_again(
        self, leaf: Leaf, nodes: Nodes, n_rows: Ints, rows: Rows, level: int
    ) -> Iterator[Piece]:
        """Divide the rows of one part over several, now that their number is known."""
        ranges = plan_files(nodes, n_rows, self.max_rows)
        places = TreePlaces(Descent(nodes, self.problem.axes), ranges.first, ranges.n_files)
        parts = self._divide(rows, places)
        self._count_repartition(level + 1)
        yield from self._go_on_below(leaf, DividedTree(nodes, n_rows, ranges, parts), level + 1)

    def _fall_back(self, leaf: Leaf, rows: Rows, level: int) -> Iterator[Piece]:
        """The sample allows no split: decide by exact counts, or keep the rows together as the paper does."""
        if rows.n_rows <= self.max_rows:
            self.counters.fallbacks += 1
            yield rows, self._grow(leaf)
            return
        if self.options.fallback == ROTHKO_T:
            self.counters.fallbacks += 1
            yield from self._split_by_counts(leaf, rows, level)
            return
        self.counters.nonminimal += 1
        (leaf.covers,) = self.engine.gather(rows, Asked([CoverPlan(self.problem.axes)]), stage="counting")
        yield from self._publish_large_group(leaf, rows)

    # -- groups that cannot be loaded --------------------------------------------------------------

    def _publish_large_group(self, leaf: Leaf, rows: Rows) -> Iterator[Piece]:
        """Hand over a group; if it cannot be loaded at once, in parts and in random order."""
        assert leaf.covers is not None
        covers = leaf.covers
        if self.problem.slices:
            asked = Asked([CoverPlan(self.problem.axes, has_spans=True)])
            (covers,) = self.engine.gather(rows, asked, stage="counting")
        errors: Sequence[int] = ()
        if self.meter is not None and self.errors:
            (errors,) = self.engine.gather(rows, Asked([ErrorPlan(self.meter)]), stage="counting")
        reached, pairs = self._count_people(rows)
        work = LargeGroup(
            leaf.node,
            covers,
            self._top.path(leaf.node),
            self._plan_recoding(),
            {} if rows.n_rows <= self.room.rows else self._compute_statistics(rows),
            errors,
            reached,
            pairs,
            self._report_grown,
        )
        for part in scatter(self.engine, rows, self.random.spawn(1)[0], stage="dividing"):
            yield part, work
            work = work.next_part()

    def _count_people(self, rows: Rows) -> tuple[ReachedFigures, Ints] | tuple[None, None]:
        """What a group reaches by its people, whose rows may be in several parts, and its pairs; None if rows count."""
        asker, meter = self._criteria.people(rows.n_rows), self._people
        if asker is None or meter is None:
            return None, None
        (told,) = self.engine.gather(rows, Asked([asker.plan(AxisParts.whole())]), stage="counting")
        achieved = meter.measure_counts(told.n_people, told.values, told.moments)
        return ReachedFigures.of(achieved, told.n_people), told.values[0]

    def _compute_statistics(self, rows: Rows) -> Mapping[str, pa.Scalar]:
        if not OneGroup(self.policy).columns:
            return {}
        asked = Asked([SummaryPlan(self.policy)], payload=True)
        return self.engine.gather(rows, asked, stage="counting")[0]

    def _plan_recoding(self) -> RecodingPlan:
        problem, policy = self.problem, self.policy
        domains = [
            domain if not isinstance(domain, OrderedDomain) or own is None else own.widen(domain)
            for domain, own in itertools.zip_longest(problem.domains, problem.slices)
        ]
        return RecodingPlan(
            domains, problem.axes.root, policy.output, policy.schema.left_out, problem.slices,
            policy.excludes_in_labels, policy.leaves_rows_out,
        )  # fmt: skip

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
        self.progress("splitting", self._n_grown, self.table.n_rows)
