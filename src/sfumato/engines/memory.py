"""Rows in memory: one matrix, rows swapped in place, subtrees grown by a few threads.

Every node above 1/64 of the rows is a task of its own; smaller ones are grown whole by one compiled
call. Tasks touch disjoint slices of the matrix, and a node's split depends only on its rows, so the
tree is the same whatever the number of threads.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from queue import SimpleQueue

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.frequency import fill_ranges, n_words
from sfumato.kernels.grow import Nodes, fill_covers, fill_subtree
from sfumato.kernels.problem import BLOCK, FIXED_POINT, NODE, Axes, Rules, Scratch, Table, Targets, grid_of

SMALLEST_TASK = 4096
"""Rows below which a node is not worth a task of its own."""

Progress = Callable[[int], None]
"""Told how many more rows have found their group."""


@dataclass(slots=True)
class Open:
    """A node that is still to be split, with what is known of its codes."""

    start: int
    end: int
    bounds: NDArray[np.int64]  # (4, axes), see ``fill_subtree``


@dataclass(slots=True)
class Piece:
    """Part of the tree: some nodes, and the pieces that go on where one of them is a leaf."""

    nodes: Table  # NODE
    below: dict[int, Piece] = field(default_factory=dict)


class MemoryEngine:
    """Rows that fit in memory.

    codes   (n, axes) uint32    the quasi-identifiers, encoded; kept as they are
    extra   (n, columns) uint32 targets and sensitive values
    """

    def __init__(
        self, codes: NDArray[np.uint32], extra: NDArray[np.uint32], *, threads: int | None = None
    ) -> None:
        self.codes = codes
        self.n_rows = len(codes)
        self.threads = (
            threads or len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else threads or 1
        )
        self.rows = np.empty((self.n_rows, codes.shape[1] + extra.shape[1] + 1), dtype=np.uint32)
        self.rows[:, : codes.shape[1]] = codes
        self.rows[:, codes.shape[1] : -1] = extra
        self.rows[:, -1] = np.arange(self.n_rows, dtype=np.uint32)

    def grow(
        self, axes: Axes, targets: Targets, rules: Rules, *, progress: Progress = lambda _: None
    ) -> Nodes:
        """The partition tree, depth first: children of a node stand next to each other."""
        grower = _Grower(self.rows, self.codes, axes, targets, rules, progress)
        root = Open(0, self.n_rows, whole_range(self.codes, axes))
        return assemble(grower.run(root, self.threads))

    def covers(self, nodes: Nodes, axes: Axes) -> NDArray[np.int64]:
        """For each leaf the lowest hierarchy node of each tree attribute that covers its rows, -1 elsewhere."""
        leaves = nodes.axis < 0
        out = np.empty((int(leaves.sum()), len(axes.is_tree)), dtype=np.int64)
        fill_covers(self.rows, nodes.start[leaves], nodes.end[leaves], grid_of(axes), out)
        return out

    def row_numbers(self) -> NDArray[np.uint32]:
        """The rows in the order of the leaves."""
        return self.rows[:, -1].copy()


class _Grower:
    """The work of one growth: a pool of threads, one scratch space each."""

    def __init__(
        self,
        rows: NDArray[np.uint32],
        codes: NDArray[np.uint32],
        axes: Axes,
        targets: Targets,
        rules: Rules,
        progress: Progress,
    ) -> None:
        self.rows, self.codes, self.axes, self.targets, self.rules = rows, codes, axes, targets, rules
        self.grid = grid_of(axes)
        self.progress = progress
        self.table = information_table(len(rows)) if len(targets.label) else np.zeros(1)
        self.whole_below = max(len(rows) // 64, SMALLEST_TASK)
        self.local = threading.local()
        self.stopped = False

    def run(self, root: Open, threads: int) -> Piece:
        top = Piece(one_node(root, 1))
        self.widest = int(root.bounds[1].max(initial=0)) + 1
        pool = ThreadPoolExecutor(max_workers=threads)
        try:
            finished: SimpleQueue[Future[tuple[Piece, list[Open]]]] = SimpleQueue()
            waiting: dict[Future[tuple[Piece, list[Open]]], tuple[Piece, int]] = {}

            def submit(task: Open, parent: Piece, at: int) -> None:
                future = pool.submit(self.work, task)
                waiting[future] = parent, at
                future.add_done_callback(finished.put)

            submit(root, top, 0)
            while waiting:
                future = finished.get()
                piece, left_open = self.attach(future, *waiting.pop(future))
                for i, child in enumerate(left_open):
                    submit(child, piece, 1 + i)
        finally:
            self.stopped = True
            pool.shutdown(wait=True, cancel_futures=True)
        return top

    def attach(
        self, future: Future[tuple[Piece, list[Open]]], parent: Piece, at: int
    ) -> tuple[Piece, list[Open]]:
        """Hang a finished piece into the tree; returns it and what it left open."""
        piece, left_open = future.result()
        parent.below[at] = piece
        if not left_open:
            self.progress(int(piece.nodes["end"][0] - piece.nodes["start"][0]))
        return piece, left_open

    def work(self, task: Open) -> tuple[Piece, list[Open]]:
        n = task.end - task.start
        if n <= self.whole_below or self.stopped:
            capacity = 2 * (n // max(1, self.rules.least_rows)) + 1
            return Piece(self.call(task, capacity, room_on_stack(256, task))), []
        most = max(2, int(self.axes.n_children.max(initial=0)))
        bounds = room_on_stack(most, task)
        nodes = self.call(task, 1 + most, bounds, once=True)
        n_children = len(nodes) - 1
        starts, ends = nodes["start"].tolist(), nodes["end"].tolist()
        left_open = [
            Open(starts[1 + i], ends[1 + i], bounds[n_children - 1 - i]) for i in range(n_children)
        ]
        return Piece(nodes), left_open

    def call(self, task: Open, capacity: int, bounds: NDArray[np.int64], *, once: bool = False) -> Table:
        nodes = one_node(task, capacity)
        n_nodes = fill_subtree(
            self.rows, self.codes, nodes, once, bounds,
            self.grid, self.targets, self.rules, self.table, self.scratch(),
        )  # fmt: skip
        return nodes[:n_nodes].copy()

    def scratch(self) -> Scratch:
        if not hasattr(self.local, "scratch"):
            self.local.scratch = new_scratch(
                self.rows, self.codes, self.axes, self.targets, self.rules, widest=self.widest
            )
        return self.local.scratch  # type: ignore[no-any-return]


def whole_range(codes: NDArray[np.uint32], axes: Axes) -> NDArray[np.int64]:
    """Bounds of the codes of the whole table, and the root of each hierarchy, as ``fill_subtree`` wants them."""
    bounds = np.zeros((4, codes.shape[1]), dtype=np.int64)
    fill_ranges(codes, bounds[0], bounds[1])
    bounds[2] = axes.root
    return bounds


def room_on_stack(n: int, task: Open) -> NDArray[np.int64]:
    """Bounds of up to n open nodes, the first of them given."""
    bounds = np.empty((n, *task.bounds.shape), dtype=np.int64)
    bounds[0] = task.bounds
    return bounds


def information_table(n: int) -> NDArray[np.float64]:
    """X log2 x for x = 0..n in fixed point: whole numbers, exact as floats up to some 10^8 rows."""
    x = np.arange(n + 1, dtype=np.float64)
    x[0] = 1.0
    x *= np.log2(x)
    x *= FIXED_POINT
    return np.rint(x)


def new_scratch(
    rows: NDArray[np.uint32],
    codes: NDArray[np.uint32],
    axes: Axes,
    targets: Targets,
    rules: Rules,
    *,
    widest: int | None = None,
) -> Scratch:
    n = len(rows)
    if widest is None:
        widest = int(codes.max(initial=0)) + 1
    children = int(axes.n_children.max(initial=0))
    n_bins = max(widest, children, 2048, min(1 << 16, 8 * n))
    distinct = min(n, max(widest, children)) + 2
    n_values = int(rules.values.end.max(initial=0))
    n_recursive = len(rules.recursive)
    needs_order = not rules.count_only or bool(axes.is_tree.any())
    return Scratch(
        bins=np.zeros(n_bins * n_words(targets), dtype=np.int64),
        listed=np.empty(codes.shape[1], dtype=np.uint64),
        base=np.empty(codes.shape[1], dtype=np.uint64),
        width=np.empty(codes.shape[1], dtype=np.float64),
        places=np.empty((2, BLOCK), dtype=np.uint64),
        code=np.empty(distinct, dtype=np.int64),
        total=np.empty((n_words(targets), distinct), dtype=np.int64),
        score=np.empty(distinct, dtype=np.float64),
        is_fine=np.empty((2, distinct), dtype=np.bool_),
        order=np.empty(n if needs_order else 0, dtype=np.int64),
        key=np.empty(n if needs_order else 0, dtype=np.int64),
        values=np.zeros(n_values, dtype=np.int64),
        is_top=np.zeros((n_recursive, n_values), dtype=np.bool_),
        top=np.zeros((n_recursive, int(rules.recursive.l.max(initial=1))), dtype=np.int64),
    )


def one_node(task: Open, capacity: int) -> Table:
    """Room for some nodes, the first of them given."""
    nodes = np.empty(capacity, dtype=NODE).view(np.recarray)
    nodes[0] = (-1, 0, task.start, task.end, -1, -1, 0)
    return nodes


def assemble(top: Piece) -> Nodes:
    """One tree out of its pieces: a piece takes the place of the leaf that it hangs below."""
    chunks: list[Table] = []
    n_nodes = 0
    waiting: list[tuple[Piece, Table | None, int]] = [(top, None, 0)]
    while waiting:
        piece, chunk, at = waiting.pop()
        offset = n_nodes - (0 if chunk is None else 1)
        nodes = piece.nodes
        nodes.first_child[nodes.first_child >= 0] += np.int32(offset)
        if chunk is None:
            fresh = nodes
        else:  # node 0 goes where the leaf was, whose branch stays; the rest is appended
            nodes[0].branch = chunk[at].branch
            chunk[at] = nodes[0]
            fresh = nodes[1:]
        chunks.append(fresh)
        n_nodes += len(fresh)
        for i, below in sorted(piece.below.items(), reverse=True):
            place = (fresh, i if chunk is None else i - 1)
            waiting.append((below, *(place if place[1] >= 0 else (chunk, at))))
    tree = np.concatenate(chunks)
    return Nodes(*(np.ascontiguousarray(tree[name]) for name in Nodes._fields))
