"""A block of the table, whose tree gives way to a list of cells where that loses less, see ``refine``.

A block is the first node on a path that has at most ``BLOCK_ROWS`` rows, on every engine; all its rows must be at hand.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.encoding.domain import OrderedDomain
from sfumato.encoding.slices import Slices
from sfumato.errors import InternalError
from sfumato.kernels.nodes import Nodes
from sfumato.kernels.spans import pack_cells, unpack_spans
from sfumato.methods.mondrian.allowances import NOTHING, Allowance
from sfumato.methods.mondrian.begun_tree import find_leaf_bounds
from sfumato.methods.mondrian.kernels.problem import HIGH, LOW
from sfumato.methods.mondrian.levels import MISSING_KEY, AxisLevels, GroupLabels, NumberLevels, TreeLevels
from sfumato.methods.mondrian.memory import TreeGrower
from sfumato.methods.mondrian.node_range import NodeRange
from sfumato.methods.mondrian.problem import Problem
from sfumato.methods.mondrian.refine import ListProblem, RefinedBlock, TreeLeaves, refine
from sfumato.methods.mondrian.taken_back import keep_whole

Ints = NDArray[np.int64]

BLOCK_ROWS = 1 << 20
"""The most rows of a block. A constant: whatever memory there is, blocks are the same."""


def refine_block(
    grower: TreeGrower,
    nodes: Nodes,
    covers: Ints,
    known: NodeRange,
    problem: Problem,
    *,
    allowance: Allowance = NOTHING,
    most_cells: int | None = None,
) -> tuple[Nodes, Ints, int | None]:
    """The tree of a block and its covers, or the list in its place, with its cells behind its covers, and their number.

    The rows of the grower are put in the order of the cells. The ``allowance`` is that of the block. With ``most_cells``
    the list stays, but only its first cells, as one group if there is none.
    """
    levels = _levels_of(problem, known)
    leaves = np.flatnonzero(nodes.axis < 0)
    labels = _label_leaves(nodes, covers, known, problem, levels)
    tree = TreeLeaves(labels, nodes.start[leaves], nodes.end[leaves])
    if problem.loss is None:
        raise InternalError("Only what splits by loss have made is refined.")
    prices = np.asarray(problem.loss.axis["price"])
    row_price = problem.loss.row
    of_block = ListProblem(problem.axes, levels, prices, problem.rules, row_price, allowance, most_cells)
    refined = refine(grower.rows, tree, of_block)
    if refined is None:
        return nodes, covers, None
    n_cells = len(refined.cells.levels)
    if n_cells == 0:
        whole, _ = keep_whole(nodes, [0])
        return whole, grower.covers(whole, problem.axes, has_spans=True), None
    grower.rows = grower.rows[np.argsort(refined.cell, kind="stable")]
    listed = _list_nodes(refined, len(levels))
    found = grower.covers(listed, problem.axes, has_spans=True)
    cells = np.full_like(found, -1)  # the pool is none
    cells[: len(refined.cells.levels)] = pack_cells(refined.cells.levels, refined.cells.keys)
    return listed, np.concatenate([found, cells], axis=1), n_cells


def top_levels(problem: Problem) -> list[int]:
    """The top level of each axis."""
    return [
        slices.n_steps.bit_length() + domain.has_missing
        if isinstance(domain, OrderedDomain) and slices is not None
        else TreeLevels(problem.axes, a).top
        for a, (domain, slices) in enumerate(zip(problem.domains, problem.slices, strict=True))
    ]


def _levels_of(problem: Problem, known: NodeRange) -> tuple[AxisLevels, ...]:
    """The levels of each axis, for a block of which this is known."""
    levels: list[AxisLevels] = []
    for a, (domain, slices) in enumerate(zip(problem.domains, problem.slices, strict=True)):
        if isinstance(domain, OrderedDomain) and slices is not None:
            position = _position_of_codes(domain, slices)
            first, last = _box_steps(position, slices, known.low[a : a + 1], known.high[a : a + 1])
            in_slice = slices.in_slice or slices.n_steps + 1
            levels.append(NumberLevels(position, slices.n_steps, in_slice, int(first[0]), int(last[0])))
        else:
            levels.append(TreeLevels(problem.axes, a))
    return tuple(levels)


def _position_of_codes(domain: OrderedDomain, slices: Slices) -> Ints:
    """Where each code lies, in steps; missing, which is code 0 then, is none."""
    values = domain.value(np.arange(domain.n_codes))
    position = slices.steps(np.where(np.isfinite(values), values, slices.lower))
    position[: int(domain.has_missing)] = MISSING_KEY
    return position


def _box_steps(position: Ints, slices: Slices, low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """First and last step of boxes with these codes: a box begins a step after the code that was left behind."""
    least_code, last_code = int(position[0] == MISSING_KEY), len(position) - 1
    first = np.where(low > least_code, position[np.maximum(low - 1, 0)] + 1, 0)
    return first, np.where(high < last_code, position[np.clip(high, 0, last_code)], slices.n_steps)


def _label_leaves(
    nodes: Nodes, covers: Ints, known: NodeRange, problem: Problem, levels: Sequence[AxisLevels]
) -> GroupLabels:
    """What the leaves of the tree are published as."""
    bounds = find_leaf_bounds(nodes, known, problem.axes).bounds
    low, high = covers.copy(), np.full(covers.shape, -1, dtype=np.int64)
    missing = np.zeros(covers.shape, dtype=np.bool_)
    for a, (axis, slices) in enumerate(zip(levels, problem.slices, strict=True)):
        if isinstance(axis, NumberLevels) and slices is not None:
            spans = unpack_spans(covers[:, a])
            is_alone = spans.least > spans.greatest
            first, last = _box_steps(axis.position, slices, bounds[:, LOW, a], bounds[:, HIGH, a])
            least, greatest = (
                axis.position[np.where(is_alone, 0, codes)] for codes in (spans.least, spans.greatest)
            )
            own_low, own_high = axis.narrow(least, greatest, first, last)
            low[:, a], high[:, a] = np.where(is_alone, 0, own_low), np.where(is_alone, -1, own_high)
            missing[:, a] = spans.missing
    return GroupLabels(low, high, missing)


def _list_nodes(refined: RefinedBlock, n_axes: int) -> Nodes:
    """The list as a tree: a node that is divided by it, whose children are its cells, and the pool if there is one."""
    size = refined.n_rows
    n, end = len(size), np.cumsum(size)
    none = np.full(n + 1, -1, dtype=np.int32)
    axis, first_child, n_children = none.copy(), none.copy(), np.zeros(n + 1, dtype=np.int32)
    axis[0], first_child[0], n_children[0] = n_axes, 1, n
    start_of, end_of = np.append(0, end - size), np.append(end[-1], end)
    branch = none.astype(np.int64)
    threshold = np.zeros(n + 1, dtype=np.int64)
    return Nodes(axis, threshold, first_child, n_children, branch, start_of, end_of, none)
