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
from sfumato.kernels.grow import Nodes, append, fill_child_bounds, fill_covers, fill_subtree
from sfumato.kernels.problem import FIXED_POINT, Axes, Rules, Scratch, Targets

SMALLEST_TASK = 4096
"""Rows below which a node is not worth a task of its own."""

Progress = Callable[[int], None]
"""Told how many more rows have found their group."""


@dataclass(slots=True)
class Open:
    """A node that is still to be split, with what is known of its codes."""

    start: int
    end: int
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    cover: NDArray[np.int64]


@dataclass(slots=True)
class Piece:
    """Part of the tree: some nodes, and the pieces that go on where one of them is a leaf."""

    nodes: Nodes
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
        root = Open(0, self.n_rows, *whole_range(self.codes, axes))
        return assemble(grower.run(root, self.threads))

    def covers(self, nodes: Nodes, axes: Axes) -> NDArray[np.int64]:
        """For each leaf the lowest hierarchy node of each tree attribute that covers its rows, -1 elsewhere."""
        leaves = nodes.axis < 0
        out = np.empty((int(leaves.sum()), len(axes.is_tree)), dtype=np.int64)
        fill_covers(self.rows, nodes.start[leaves], nodes.end[leaves], axes, out)
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
        self.progress = progress
        self.table = information_table(len(rows)) if len(targets.class_column) else np.zeros(1)
        self.whole_below = max(len(rows) // 64, SMALLEST_TASK)
        self.local = threading.local()
        self.stopped = False

    def run(self, root: Open, threads: int) -> Piece:
        top = Piece(empty_nodes(1))
        append(0, root.start, root.end, 0, top.nodes)
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
            self.progress(int(piece.nodes.end[0] - piece.nodes.start[0]))
        return piece, left_open

    def work(self, task: Open) -> tuple[Piece, list[Open]]:
        n = task.end - task.start
        if n <= self.whole_below or self.stopped:
            return self.grow_whole(task), []
        nodes = empty_nodes(1 + max(2, int(self.axes.n_children.max(initial=0))))
        nodes, border = self.call(task, nodes, once=True)
        left_open = []
        for child in range(1, len(nodes.axis)):
            below = Open(
                int(nodes.start[child]),
                int(nodes.end[child]),
                task.low.copy(),
                task.high.copy(),
                task.cover.copy(),
            )
            fill_child_bounds(
                child, nodes.axis[0], border, nodes, self.axes, below.low, below.high, below.cover
            )
            left_open.append(below)
        return Piece(nodes), left_open

    def grow_whole(self, task: Open) -> Piece:
        nodes = empty_nodes(2 * ((task.end - task.start) // max(1, self.rules.least_rows)) + 1)
        return Piece(self.call(task, nodes, once=False)[0])

    def call(self, task: Open, nodes: Nodes, *, once: bool) -> tuple[Nodes, int]:
        append(0, task.start, task.end, 0, nodes)
        n_nodes, border = fill_subtree(
            self.rows, self.codes, nodes, once, task.low, task.high, task.cover,
            self.axes, self.targets, self.rules, self.table, self.scratch(),
        )  # fmt: skip
        return trim(nodes, n_nodes), border

    def scratch(self) -> Scratch:
        if not hasattr(self.local, "scratch"):
            self.local.scratch = new_scratch(self.rows, self.codes, self.axes, self.targets, self.rules)
        return self.local.scratch  # type: ignore[no-any-return]


def whole_range(
    codes: NDArray[np.uint32], axes: Axes
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Bounds of the codes of the whole table, and the root of each hierarchy."""
    low, high = np.zeros(codes.shape[1], dtype=np.int64), np.zeros(codes.shape[1], dtype=np.int64)
    fill_ranges(codes, low, high)
    return low, high, axes.root.copy()


def information_table(n: int) -> NDArray[np.float64]:
    """X log2 x for x = 0..n in fixed point: whole numbers, exact as floats up to some 10^8 rows."""
    x = np.arange(n + 1, dtype=np.float64)
    x[0] = 1.0
    x *= np.log2(x)
    x *= FIXED_POINT
    return np.rint(x)


def new_scratch(
    rows: NDArray[np.uint32], codes: NDArray[np.uint32], axes: Axes, targets: Targets, rules: Rules
) -> Scratch:
    n = len(rows)
    widest = int(codes.max(initial=0)) + 1
    children = int(axes.n_children.max(initial=0))
    n_bins = max(widest, children, 2048, min(1 << 16, 8 * n))
    distinct = min(n, max(widest, children)) + 2
    n_values = int(rules.values_start[-1])
    n_recursive = len(rules.recursive_of)
    needs_order = not rules.count_only or bool(axes.is_tree.any())
    return Scratch(
        bins=np.zeros(n_bins * n_words(targets), dtype=np.int64),
        listed=np.empty(codes.shape[1], dtype=np.uint64),
        base=np.empty(codes.shape[1], dtype=np.uint64),
        code=np.empty(distinct, dtype=np.int64),
        total=np.empty((n_words(targets), distinct), dtype=np.int64),
        score=np.empty(distinct, dtype=np.float64),
        left_ok=np.empty(distinct, dtype=np.bool_),
        right_ok=np.empty(distinct, dtype=np.bool_),
        order=np.empty(n if needs_order else 0, dtype=np.int64),
        key=np.empty(n if needs_order else 0, dtype=np.int64),
        values=np.zeros(n_values, dtype=np.int64),
        is_top=np.zeros((n_recursive, n_values), dtype=np.bool_),
        top=np.zeros((n_recursive, int(rules.recursive_l.max(initial=1))), dtype=np.int64),
    )


def empty_nodes(n: int) -> Nodes:
    return Nodes(
        axis=np.empty(n, dtype=np.int32),
        threshold=np.empty(n, dtype=np.int64),
        first_child=np.empty(n, dtype=np.int32),
        n_children=np.empty(n, dtype=np.int32),
        branch=np.empty(n, dtype=np.int64),
        start=np.empty(n, dtype=np.int64),
        end=np.empty(n, dtype=np.int64),
    )


def trim(nodes: Nodes, n: int) -> Nodes:
    return Nodes(*(array[:n].copy() for array in nodes))


def assemble(top: Piece) -> Nodes:
    """One tree out of its pieces: a piece takes the place of the leaf that it hangs below."""
    chunks: list[Nodes] = []
    n_nodes = 0
    waiting: list[tuple[Piece, Nodes | None, int]] = [(top, None, 0)]
    while waiting:
        piece, chunk, at = waiting.pop()
        offset = n_nodes - (0 if chunk is None else 1)
        nodes = piece.nodes
        inner = nodes.first_child >= 0
        nodes.first_child[inner] += np.int32(offset)
        if chunk is None:
            fresh = nodes
        else:  # node 0 goes where the leaf was; the rest is appended
            for name in ("axis", "threshold", "first_child", "n_children", "start", "end"):
                getattr(chunk, name)[at] = getattr(nodes, name)[0]
            fresh = Nodes(*(array[1:] for array in nodes))
        chunks.append(fresh)
        n_nodes += len(fresh.axis)
        for i, below in sorted(piece.below.items(), reverse=True):
            place = (fresh, i if chunk is None else i - 1)
            waiting.append((below, *(place if place[1] >= 0 else (chunk, at))))
    return Nodes(*(np.concatenate(arrays) for arrays in zip(*chunks, strict=True)))
