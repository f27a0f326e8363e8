"""Growth of a tree whose rows are in memory, by a few threads.

The rows are one matrix, in which they are swapped so that those of a node are a slice. A large node (at 4 threads one
above 1/64 of the rows) is split by a task of its own, and a smaller one is grown whole by one compiled call. Where
selections come first, each of their splits is a task, too. Tasks touch disjoint slices of the matrix, and a node's
split depends only on its rows, so the tree is the same whatever the number of threads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from queue import SimpleQueue

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.axes import Axes
from sfumato.kernels.information import information_table
from sfumato.kernels.nodes import Nodes
from sfumato.machine import n_cores
from sfumato.methods.mondrian.allowances import NOTHING, Allowance
from sfumato.methods.mondrian.begun_tree import BegunTree, OpenNode
from sfumato.methods.mondrian.kernels.frequency import fill_ranges
from sfumato.methods.mondrian.kernels.grow import fill_covers, fill_subtree
from sfumato.methods.mondrian.kernels.problem import (
    BLOCK,
    Cells,
    Rules,
    Scratch,
    Table,
    new_leaving,
    new_listed_splits,
    pack_axes,
    work_of,
)
from sfumato.methods.mondrian.kernels.select import split_for_queries
from sfumato.methods.mondrian.node_range import NodeRange
from sfumato.methods.mondrian.people import count_pair_columns, new_stamps, number_people
from sfumato.methods.mondrian.problem import SplitProblem

Codes = NDArray[np.uint32]

ROWS_TO_TURN = 4096
"""Rows that are brought at once from column order into row order."""

SMALLEST_TASK = 4096
"""Rows below which a node is not worth a task of its own."""

ALL_SUBMITTED = "all submitted"

RowCounter = Callable[[int], None]
"""Called with how many more rows have found their group."""


@dataclass(slots=True)
class GrownPart:
    """Some nodes of a tree, and the parts that go on below those of them that are leaves here."""

    nodes: Table  # NODE
    below: dict[int, GrownPart] = field(default_factory=dict)


class TreeGrower:
    """Rows that fit in memory, put in the order of the leaves while the tree grows.

    columns      (n, columns) uint32, in any layout: quasi-identifiers, then targets and sensitive values
    n_columns    how many of the columns these are; all if None
    order        the order of rows to start with; None: as they are
    rules        the requirement, by which people are numbered; None: rows count
    keeps_codes  a score may number the codes in ``rows`` anew, so it needs ``columns``, too; Median does not
    """

    def __init__(
        self,
        columns: Codes,
        n_axes: int,
        *,
        n_columns: int | None = None,
        order: NDArray[np.int64] | None = None,
        rules: Rules | None = None,
        keeps_codes: bool = True,
        threads: int | None = None,
    ) -> None:
        self.n_rows, n_columns = len(columns), n_columns or columns.shape[1]
        self.n_axes, self.threads = n_axes, threads or n_cores()
        self.codes = np.asfortranarray(columns[:, :n_axes]) if keeps_codes else None
        n_pairs = 0 if rules is None else count_pair_columns(rules)
        rows = np.empty((self.n_rows, n_columns + n_pairs + 1), dtype=np.uint32)
        for start in range(0, self.n_rows, ROWS_TO_TURN):  # a few at a time stay in the cache
            some = slice(start, start + ROWS_TO_TURN)
            taken = columns[some] if order is None else columns.take(order[some], axis=0)
            rows[some, :n_columns] = taken[:, :n_columns]
        if rules is not None:
            number_people(rows, rules)
        rows[:, -1] = np.arange(self.n_rows, dtype=np.uint32) if order is None else order
        self.rows = rows

    def grow(
        self,
        problem: SplitProblem,
        *,
        begun: BegunTree | None = None,
        allowance: Allowance = NOTHING,
        progress: RowCounter = lambda _: None,
    ) -> Nodes:
        """The partition tree, depth first: children of a node stand next to each other.

        First come the splits that make the queries more precise, until none does; then those for the targets. A tree
        that was ``begun`` is grown on at its leaves. As many rows as the ``allowance`` says may be left out: they stand
        in the slices of inner nodes, and in that of no leaf.
        """
        if begun is None:
            known = range_of_codes(self.rows, problem.axes, has_queries=problem.queries is not None)
            begun = BegunTree.of_root(known, self.n_rows, allowance=allowance)
        codes = None if problem.targets is None or problem.loss is not None else self.codes
        grower = _Grower(self.rows, codes, problem, threads=self.threads, progress=progress)
        return join_parts(grower.run(begun))

    def covers(self, nodes: Nodes, axes: Axes, *, has_spans: bool = False) -> NDArray[np.int64]:
        """What covers the rows of each leaf, see ``fill_covers``."""
        if has_spans and self.codes is not None:  # a score may have numbered the codes anew
            for axis in np.flatnonzero(~axes.is_tree):
                self.rows[:, axis] = self.codes[self.rows[:, -1], axis]
        leaves = nodes.axis < 0
        out = np.empty((int(leaves.sum()), len(axes.is_tree)), dtype=np.int64)
        fill_covers(self.rows, nodes.start[leaves], nodes.end[leaves], pack_axes(axes), has_spans, out)
        return out

    def row_numbers(self) -> NDArray[np.uint32]:
        """The numbers of the rows, in the order of the leaves."""
        return self.rows[:, -1].copy()

    def numbers_in_leaves(self, nodes: Nodes) -> NDArray[np.uint32]:
        """The same without the rows that are left out, which are in no leaf."""
        return self.rows_in_leaves(nodes)[:, -1].copy()

    def rows_in_leaves(self, nodes: Nodes) -> Codes:
        """The rows that are in leaves, in the order of these."""
        leaves = nodes.axis < 0
        if (nodes.end - nodes.start)[leaves].sum() == self.n_rows:
            return self.rows
        is_there = np.zeros(self.n_rows + 1, dtype=np.int8)
        np.add.at(is_there, nodes.start[leaves], 1)
        np.add.at(is_there, nodes.end[leaves], -1)
        return self.rows[np.cumsum(is_there[:-1], dtype=np.int8) > 0]


def bundle_leaves(leaves: Mapping[int, OpenNode]) -> Iterator[list[tuple[int, OpenNode]]]:
    """Leaves to grow on, as many at once as are worth handing to a thread.

    A tree that was grown on a sample may have a leaf for every few rows, and a task for each would cost more than the
    work itself.
    """
    several: list[tuple[int, OpenNode]] = []
    n_rows = 0
    for at, leaf in leaves.items():
        several.append((at, leaf))
        n_rows += leaf.n_rows
        if n_rows >= SMALLEST_TASK:
            yield several
            several, n_rows = [], 0
    if several:
        yield several


class _Grower:
    """The work of one growth: a pool of threads, one scratch space each."""

    def __init__(
        self, rows: Codes, codes: Codes | None, problem: SplitProblem, *, threads: int, progress: RowCounter
    ) -> None:
        self.rows, self.codes, self.problem = rows, codes, problem
        self.threads, self.progress = threads, progress
        self.grid = pack_axes(problem.axes)
        cells = problem.cells
        targets = problem.targets
        has_labels = (targets is not None and len(targets.label)) or (cells is not None and len(cells.label))
        needs_table = has_labels or problem.loss is not None
        self.table = information_table(len(rows)) if needs_table else np.zeros(1, dtype=np.int64)
        self.most_children = max(2, int(problem.axes.n_children.max(initial=0)))
        self.whole_below = max(len(rows) // (16 * threads), SMALLEST_TASK)
        """Rows up to which a node is grown whole, by one call."""
        self.local = threading.local()
        self.stopped = False
        self.events: SimpleQueue[Future[int] | str | None] = SimpleQueue()
        """A task was submitted (None) or is finished (its future), or all leaves have been submitted."""

    def run(self, begun: BegunTree) -> GrownPart:
        top = GrownPart(begun.nodes)
        if not begun.leaves:
            return top
        self.widest = max(int(leaf.bounds[1].max(initial=0)) for leaf in begun.leaves.values()) + 1
        pool = ThreadPoolExecutor(max_workers=self.threads)
        try:
            n_open = 1  # as long as leaves are still submitted
            for several in bundle_leaves(begun.leaves):
                self.events.put(None)
                pool.submit(self.work_on_each, pool, several, top).add_done_callback(self.events.put)
            self.events.put(ALL_SUBMITTED)
            while True:
                event = self.events.get()
                n_open += 1 if event is None else -1
                if isinstance(event, Future):
                    self.progress(event.result())
                if n_open == 0:
                    return top
        finally:
            self.stopped = True
            pool.shutdown(wait=True, cancel_futures=True)

    def submit(self, pool: ThreadPoolExecutor, task: OpenNode, parent: GrownPart, at: int) -> None:
        self.events.put(None)  # before its parent is finished, so that the count of open tasks stays above 0
        pool.submit(self.work, pool, task, parent, at).add_done_callback(self.events.put)

    def work_on_each(
        self, pool: ThreadPoolExecutor, tasks: Sequence[tuple[int, OpenNode]], parent: GrownPart
    ) -> int:
        return sum(self.work(pool, task, parent, at) for at, task in tasks)

    def work(self, pool: ThreadPoolExecutor, task: OpenNode, parent: GrownPart, at: int) -> int:
        """Split a large node, leave all its children but the first to others, and go on with that one.

        Returns how many rows have found their group, or are left out.
        """
        n_left = 0
        while not self.stopped:
            if task.region is not None:
                nodes, children = self.split_for_queries(task, task.region)
                if not children:
                    task.region = None  # no query can be served here, nor below
                    continue
            elif task.n_rows > self.whole_below:
                nodes, children = self.split(task)
            else:
                break
            part = parent.below[at] = GrownPart(nodes)
            if not children:
                return n_left + task.n_rows
            n_left += task.n_rows - sum(child.n_rows for child in children)
            for child in range(2, len(nodes)):
                self.submit(pool, children[child - 1], part, child)
            task, parent, at = children[0], part, 1
        if self.stopped:
            return 0
        # every split has two children or more, but for those that leave rows out
        capacity = 2 * (task.n_rows // max(1, self.problem.rules.least_rows)) + 1 + task.allowance.rows
        parent.below[at] = GrownPart(self.fill_nodes(task, capacity, bounds_of_open(256, task)))
        return n_left + task.n_rows

    def split(self, task: OpenNode) -> tuple[Table, list[OpenNode]]:
        """One split by the criterion: the node and its children, and these as they are left to do."""
        bounds = bounds_of_open(self.most_children, task)
        nodes = self.fill_nodes(task, 1 + self.most_children, bounds, once=True)
        n_children = len(nodes) - 1
        starts, ends = nodes["start"].tolist(), nodes["end"].tolist()
        allowed = self.handed_down(n_children)
        return nodes, [
            OpenNode(starts[child], ends[child], bounds[n_children - child], allowance=allowed[child - 1])
            for child in range(1, len(nodes))
        ]

    def handed_down(self, n_children: int) -> list[Allowance]:
        """The allowances of the children that a split of this thread has just made."""
        leaving = self.scratch().leaving
        if leaving is None:
            return [NOTHING] * n_children
        return [Allowance(*both) for both in leaving.share[:, :n_children].T.tolist()]

    def split_for_queries(self, task: OpenNode, region: NDArray[np.int64]) -> tuple[Table, list[OpenNode]]:
        """``split``, but one that makes the queries more precise; no children if none does."""
        bounds = bounds_of_open(1 + self.most_children, task)
        regions = np.empty((1 + self.most_children, *region.shape), dtype=np.int64)
        regions[0] = region
        table = task.first_of(1 + self.most_children)
        scratch = self.scratch()
        if scratch.leaving is not None:
            scratch.leaving.allowance[:] = task.allowance
        n_nodes = split_for_queries(
            self.rows, table, bounds, regions, self.problem.loss is not None,
            self.problem.queries, self.grid, self.problem.rules, scratch.leaving, scratch,
        )  # fmt: skip
        nodes = table.view(np.ndarray)[:n_nodes].copy()
        starts, ends = nodes["start"].tolist(), nodes["end"].tolist()
        allowed = self.handed_down(n_nodes - 1)
        return nodes, [
            OpenNode(starts[child], ends[child], bounds[child], regions[child], allowed[child - 1])
            for child in range(1, n_nodes)
        ]

    def fill_nodes(
        self, task: OpenNode, capacity: int, bounds: NDArray[np.int64], *, once: bool = False
    ) -> Table:
        """The nodes that grow below a node, itself the first; or with ``once`` only its children."""
        nodes, problem = task.first_of(capacity), self.problem
        allowed = np.zeros((len(bounds) if problem.leaves_rows_out else 0, 2), dtype=np.int64)
        allowed[:1] = task.allowance
        n_nodes = fill_subtree(
            self.rows, self.codes, nodes, once, bounds, allowed, problem.least_gain,
            self.grid, problem.targets, self.own_cells(), problem.rules, problem.loss, self.table, self.scratch(),
        )  # fmt: skip
        return nodes.view(np.ndarray)[:n_nodes].copy()

    def scratch(self) -> Scratch:
        """The working space of this thread."""
        if not hasattr(self.local, "scratch"):
            self.local.scratch = new_scratch(self.rows, self.problem, widest=self.widest)
        return self.local.scratch  # type: ignore[no-any-return]

    def own_cells(self) -> Cells | None:
        """The cells with working space for this thread."""
        cells = self.problem.cells
        if cells is not None and not hasattr(self.local, "cells"):
            self.local.cells = cells._replace(counts=np.zeros((cells.n_ids, 4), dtype=np.int64))
        return None if cells is None else self.local.cells


def range_of_codes(rows: Codes, axes: Axes, *, has_queries: bool = False) -> NodeRange:
    """The range of a root that has these rows, (n, axes and further columns)."""
    low, high = np.zeros((2, rows.shape[1]), dtype=np.int64)
    fill_ranges(rows, low, high)
    n_axes = len(axes.is_tree)
    whole = NodeRange.of_root(axes, high[:n_axes] + 1, has_queries=has_queries)
    return replace(whole, low=low[:n_axes])


def bounds_of_open(n: int, task: OpenNode) -> NDArray[np.int64]:
    """(n, 4, axes) bounds of up to n open nodes, of which the first is given."""
    bounds = np.empty((n, *task.bounds.shape), dtype=np.int64)
    bounds[0] = task.bounds
    return bounds


def new_scratch(rows: Codes, problem: SplitProblem, *, widest: int) -> Scratch:
    """Working space of one thread; no attribute has more than ``widest`` codes."""
    axes, targets, rules, queries = problem.axes, problem.targets, problem.rules, problem.queries
    n, n_axes = len(rows), len(axes.is_tree)
    children = int(axes.n_children.max(initial=0))
    n_bins = max(widest, children, 2048, min(1 << 16, 8 * n))
    distinct = min(n, max(widest, children)) + 2 + (0 if queries is None else len(queries.weight))
    sensitive = rules.sensitive
    n_values = 0 if sensitive is None else sensitive.n_values
    n_recursive = 0 if sensitive is None else len(sensitive.recursive)
    largest_l = 1 if sensitive is None else int(sensitive.recursive["l"].max(initial=1))
    words = 2 if targets is None else targets.n_words
    n_candidates = distinct + (2 if problem.leaves_rows_out else 1) * len(axes.node_low)
    has_more = problem.cells is not None or queries is not None
    by_loss = problem.loss is not None
    needs_order = has_more or by_loss or sensitive is not None or bool(axes.is_tree.any())
    return Scratch(
        bins=np.zeros(n_bins * words, dtype=np.int64),
        listed=np.empty(n_axes, dtype=np.uint64),
        base=np.empty(n_axes, dtype=np.uint64),
        width=np.empty(n_axes, dtype=np.float64),
        places=np.empty((2, BLOCK), dtype=np.uint64),
        code=np.empty(distinct, dtype=np.int64),
        total=np.empty((words, distinct), dtype=np.int64),
        score=np.empty(distinct, dtype=problem.score_type),
        right=np.empty(distinct if words > 2 else 0, dtype=problem.score_type),
        lowest=problem.lowest,
        is_fine=np.empty((2, distinct), dtype=np.bool_),
        order=np.empty(n if needs_order else 0, dtype=np.int64),
        key=np.empty(n if needs_order else 0, dtype=np.int64),
        place=np.empty(0 if sensitive is None and not by_loss else distinct, dtype=np.int64),
        values=np.zeros(n_values, dtype=np.int64),
        is_top=np.zeros((n_recursive, n_values), dtype=np.bool_),
        top=np.zeros((n_recursive, largest_l), dtype=np.int64),
        n_top=np.zeros(n_recursive, dtype=np.int64),
        work=work_of(sensitive),
        listed_splits=new_listed_splits(n_candidates, max(2, children) + 1, words) if by_loss else None,
        stamps=new_stamps(rows, rules),
        leaving=new_leaving(max(2, children)) if problem.leaves_rows_out else None,
    )


def join_parts(top: GrownPart) -> Nodes:
    """One tree out of its parts: a part takes the place of the leaf that it hangs below."""
    chunks: list[Table] = []
    n_nodes = 0
    waiting: list[tuple[GrownPart, Table | None, int]] = [(top, None, 0)]
    while waiting:
        part, chunk, at = waiting.pop()
        offset = n_nodes - (0 if chunk is None else 1)
        nodes = part.nodes
        nodes["first_child"] += np.where(nodes["first_child"] >= 0, np.int32(offset), np.int32(0))
        if chunk is None:
            fresh = nodes
        else:  # node 0 goes where the leaf was, whose branch stays; the rest is appended
            nodes["branch"][0] = chunk["branch"][at]
            chunk[at] = nodes[0]
            fresh = nodes[1:]
        chunks.append(fresh)
        n_nodes += len(fresh)
        for i, below in sorted(part.below.items(), reverse=True):
            place = (fresh, i if chunk is None else i - 1)
            waiting.append((below, *(place if place[1] >= 0 else (chunk, at))))
    return Nodes(*(np.concatenate([chunk[name] for chunk in chunks]) for name in Nodes._fields))
