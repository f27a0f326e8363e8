"""The decision list of a block, beside a naive twin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import naive_list as naive
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sfumato.encoding.domain import TreeDomain, axes_of
from sfumato.errors import InternalError
from sfumato.kernels.axes import Axes
from sfumato.methods.mondrian.kernels.problem import (
    DISTINCT,
    ENTROPY,
    RECURSIVE,
    VALUES,
    VARIANCE,
    Rules,
    SensitiveRules,
    table,
)
from sfumato.methods.mondrian.levels import GroupLabels, NumberLevels, TreeLevels
from sfumato.methods.mondrian.refine import (
    ListProblem,
    RefinedBlock,
    TreeLeaves,
    make_list,
    price_tree,
    refine,
    vectors_of,
)
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.schema import Attribute, Role
from sfumato.recoding.decision_list import AxisCells, CellList, NumberCells, TreeCells

HIERARCHIES = (
    Hierarchy.flat(["a", "b", "c"]),
    Hierarchy.from_tree({"*": {"North": ["a", "b"], "South": {"c": None}}}),
    Hierarchy.from_tree(
        {"*": {"x": {"y": ["a"]}, "b": None, "z": {"w": ["c", "d"], "v": {"u": ["e", "f"]}}}}
    ),
    Hierarchy.from_tree({"*": {"p": {"q": ["a", "b"]}, "r": {"s": ["c"], "t": ["d"]}}}).with_missing(),
)


@dataclass(frozen=True)
class Case:
    """A block as sfumato and as the twin see it; leaves are sizes of groups of rows that stand side by side."""

    codes: np.ndarray
    leaves: tuple[int, ...]
    axes: tuple[naive.Axis, ...]
    levels: tuple[NumberLevels | TreeLevels, ...]
    grid: Axes
    trees: tuple[Hierarchy | None, ...]

    @property
    def rows(self) -> list[naive.Row]:
        return [
            tuple(self.value(a, int(code)) for a, code in enumerate(line[: len(self.axes)]))
            for line in self.codes
        ]

    def value(self, a: int, code: int) -> Any:
        axis, level = self.axes[a], self.levels[a]
        if isinstance(axis, naive.Tree):
            return axis.leaves[code]
        assert isinstance(level, NumberLevels)
        position = int(level.position[code])
        return None if position < 0 else position

    def groups(self) -> list[range]:
        ends = np.cumsum([0, *self.leaves]).tolist()
        return [range(*pair) for pair in pairwise(ends)]

    def node(self, a: int, path: naive.Path) -> int:
        """The number of a hierarchy node, whose path names every node by its own number."""
        return int(self.grid.root[a]) + path[-1]

    def encode(self, labels: Sequence[Sequence[Any]]) -> GroupLabels:
        low, high, missing = [], [], []
        for label in labels:
            ends = [
                (self.node(a, one), -1, False) if isinstance(axis, naive.Tree) else one
                for a, (axis, one) in enumerate(zip(self.axes, label, strict=True))
            ]
            low.append([end[0] for end in ends])
            high.append([end[1] for end in ends])
            missing.append([end[2] for end in ends])
        return GroupLabels(np.array(low), np.array(high), np.array(missing))

    def tree_leaves(self) -> TreeLeaves:
        rows, groups = self.rows, self.groups()
        labels = self.encode([naive.label_rows(rows, group, self.axes) for group in groups])
        return TreeLeaves(
            labels, np.array([group.start for group in groups]), np.array([group.stop for group in groups])
        )

    def problem(self, rules: Rules) -> ListProblem:
        return ListProblem(self.grid, self.levels, np.array([axis.price for axis in self.axes]), rules)


def make_case(
    codes: Sequence[Sequence[int]],
    leaves: Sequence[int],
    trees: Sequence[Hierarchy | None],
    numbers: Sequence[NumberLevels | None],
    prices: Sequence[int],
) -> Case:
    """Of each axis either the hierarchy or the numbers are given."""
    blank = Attribute("x", Role.QUASI_IDENTIFIER)
    domains = [TreeDomain(blank, tree or HIERARCHIES[0], has_missing=False) for tree in trees]
    grid = axes_of(tuple(domains))
    axes: list[naive.Axis] = []
    for tree, number, price in zip(trees, numbers, prices, strict=True):
        if tree is not None:
            axes.append(naive.Tree(tuple(map(_path(tree), tree.leaf_nodes.tolist())), price))
        else:
            assert number is not None
            ends = (number.first, number.last)
            axes.append(naive.Number(number.n_steps, number.slice_steps, *ends, number.has_missing, price))
    levels = tuple(TreeLevels(grid, a) if number is None else number for a, number in enumerate(numbers))
    is_tree = np.array([tree is not None for tree in trees])
    rows = np.array(codes, dtype=np.uint32)
    return Case(rows, tuple(leaves), tuple(axes), levels, grid._replace(is_tree=is_tree), tuple(trees))


def _path(tree: Hierarchy) -> Callable[[int], naive.Path]:
    def path(node: int) -> naive.Path:
        return () if node < 0 else (*path(int(tree.parent[node])), node)

    return path


@st.composite
def number_axes(draw: st.DrawFn) -> NumberLevels:
    steps = sorted(
        draw(st.lists(st.integers(0, 20), min_size=1, max_size=8))
    )  # one position may have two codes
    first, last = draw(st.integers(0, steps[0])), draw(st.integers(steps[-1], 24))
    position = np.array(([-1] if draw(st.booleans()) else []) + steps)
    n_steps = draw(st.integers(last, 26))
    return NumberLevels(position, n_steps, draw(st.integers(1, 8)), first, last)


@st.composite
def cases(draw: st.DrawFn, n_sensitive: int = 2) -> Case:
    n_axes = draw(st.integers(1, 4))
    trees, numbers, columns = [], [], []
    for _ in range(n_axes):
        tree = draw(st.none() | st.sampled_from(HIERARCHIES))
        number = draw(number_axes()) if tree is None else None
        trees.append(tree)
        numbers.append(number)
        columns.append(st.integers(0, (tree.n_leaves if number is None else len(number.position)) - 1))
    columns += [st.integers(0, 3)] * n_sensitive
    rows = draw(st.lists(st.tuples(*columns), min_size=1, max_size=40))
    sizes, left = [], len(rows)
    while left:
        sizes.append(draw(st.integers(1, left)))
        left -= sizes[-1]
    prices = [draw(st.integers(0, 9)) for _ in range(n_axes)]
    return make_case(rows, sizes, trees, numbers, prices)


def diverse(n_axes: int, k: int, distinct: int, least: float) -> Rules:
    """k rows, distinct and (2, distinct)-recursive first sensitive values, least variance of the second ones."""
    rules = SensitiveRules(
        values=table(VALUES, [(n_axes, 0, 4)]),
        distinct=table(DISTINCT, [(0, distinct)]),
        entropy=table(ENTROPY, []),
        recursive=table(RECURSIVE, [(0, distinct, 2, 1)]),
        variance=table(VARIANCE, [(n_axes + 1, least)]),
    )
    return Rules(k, distinct, rules)


def is_diverse(
    codes: np.ndarray, n_axes: int, k: int, distinct: int, least: float
) -> Callable[[Sequence[int]], bool]:
    def holds(rows: Sequence[int]) -> bool:
        counts = sorted(Counter(codes[list(rows), n_axes].tolist()).values(), reverse=True)
        numbers = codes[list(rows), n_axes + 1].astype(int)
        spread = len(rows) * int((numbers**2).sum()) - int(numbers.sum()) ** 2
        return (
            len(rows) >= k
            and len(counts) >= distinct
            and counts[0] < 2 * sum(counts[distinct - 1 :])
            and spread >= least * len(rows) ** 2
        )

    return holds


def check(case: Case, rules: Rules, holds: Callable[[Sequence[int]], bool]) -> RefinedBlock:
    """The list of the fast one is that of the twin, to the last label and coin."""
    rows, groups = case.rows, case.groups()
    labels = [naive.label_rows(rows, group, case.axes) for group in groups]
    cells, pool = naive.make_list(rows, labels, case.axes, holds)
    found = make_list(case.codes, case.tree_leaves(), case.problem(rules))
    assert found.cells.levels.tolist() == [list(cell.levels or ()) for cell in cells]
    assert found.cells.keys.tolist() == [
        [case.node(a, key) if isinstance(key, tuple) else key for a, key in enumerate(cell.keys or ())]
        for cell in cells
    ]
    everyone = cells if pool is None else [*cells, pool]
    expected = case.encode([cell.labels for cell in everyone])
    for one, other in zip(found.cells.labels, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    for number, cell in enumerate(everyone):
        assert tuple(np.flatnonzero(found.cell == number)) == tuple(sorted(cell.rows))
    assert found.n_rows.tolist() == [len(cell.rows) for cell in everyone]
    assert found.price == naive.price(rows, [(cell.rows, cell.labels) for cell in everyone], case.axes)
    assert found.tree_price == naive.price(rows, list(zip(groups, labels, strict=True)), case.axes)
    return found


@given(cases(), st.integers(1, 6))
def test_the_list_of_k_anonymity_is_the_twins(case, k):
    assume(len(case.codes) >= k)
    check(case, Rules(k, 1, None), lambda rows: len(rows) >= k)


@given(cases(), st.integers(1, 4), st.integers(2, 3), st.sampled_from([0.0, 0.2, 1.0]))
def test_the_list_of_a_requirement_on_sensitive_values_is_the_twins(case, k, distinct, least):
    holds = is_diverse(case.codes, len(case.axes), k, distinct, least)
    assume(holds(range(len(case.codes))))
    check(case, diverse(len(case.axes), k, distinct, least), holds)


@given(cases(), st.integers(1, 6), st.randoms(use_true_random=False))
def test_the_order_of_the_rows_makes_no_difference(case, k, random):
    assume(len(case.codes) >= k)
    leaves, problem = case.tree_leaves(), case.problem(Rules(k, 1, None))
    found = make_list(case.codes, leaves, problem)
    order = list(range(len(case.codes)))
    random.shuffle(order)
    other = make_list(case.codes[order], leaves, problem)
    np.testing.assert_array_equal(found.cell[order], other.cell)
    assert found.cells.keys.tolist() == other.cells.keys.tolist()
    assert found.cells.labels.low.tolist() == other.cells.labels.low.tolist()
    assert found.price == other.price


@given(cases(), st.integers(1, 6))
def test_every_group_of_equal_labels_is_one_group_of_enough_rows_and_covers_them(case, k):
    assume(len(case.codes) >= k)
    found = make_list(case.codes, case.tree_leaves(), case.problem(Rules(k, 1, None)))
    low, high, missing = (part[found.cell] for part in found.cells.labels)
    groups = Counter(map(tuple, np.hstack([low, high, missing]).tolist()))
    assert min(groups.values()) >= k
    assert len(groups) == len(set(found.cell.tolist()))
    for row, ends in zip(case.rows, zip(low, high, missing, strict=True), strict=True):
        for a, value in enumerate(row):
            first, last, with_missing = (part[a] for part in ends)
            if isinstance(value, tuple):
                assert first in [case.node(a, value[:n]) for n in range(1, len(value) + 1)]
            else:
                assert with_missing if value is None else first <= value <= last


@given(cases(), st.integers(1, 6))
def test_the_recoding_finds_the_cell_of_every_row(case, k):
    assume(len(case.codes) >= k)
    found = make_list(case.codes, case.tree_leaves(), case.problem(Rules(k, 1, None)))
    axes: list[AxisCells] = []
    columns = []
    for a, (tree, level) in enumerate(zip(case.trees, case.levels, strict=True)):
        if isinstance(level, NumberLevels):
            axes.append(NumberCells(0, 1, level.n_steps, level.has_missing))
            position = level.position[case.codes[:, a]]
            columns.append(np.where(position < 0, -np.inf, position))
        else:
            assert tree is not None
            axes.append(TreeCells(tree, tree.height))
            columns.append(tree.leaf_nodes[case.codes[:, a]])
    keys = found.cells.keys - np.where(case.grid.is_tree, case.grid.root, 0)
    np.testing.assert_array_equal(CellList(tuple(axes), found.cells.levels, keys).locate(columns), found.cell)


def numbers(values: Sequence[int], leaves: Sequence[int], *, slice_steps: int = 3) -> Case:
    axis = NumberLevels(np.arange(16), 15, slice_steps, 0, 15)
    return make_case([[value] for value in values], leaves, [None], [axis], [1])


def single_values(values: Sequence[int]) -> GroupLabels:
    ends = np.array(values)[:, None]
    return GroupLabels(ends, ends, np.zeros(ends.shape, dtype=np.bool_))


def test_cells_9_10_and_11_are_not_all_labelled_9_to_11():
    case = numbers([9, 9, 10, 10, 11, 11], [6])  # slices of 3 steps
    leaves = case.tree_leaves()._replace(labels=single_values([9]))
    found = make_list(case.codes, leaves, case.problem(Rules(2, 1, None)))
    assert found.cells.keys.tolist() == [[9], [10], [11]]
    assert found.cells.labels.low.tolist() == [[9], [10], [11]]
    assert found.cells.labels.high.tolist() == [[9], [10], [11]]
    assert found.n_rows.tolist() == [2, 2, 2]  # and no pool


def test_the_cell_published_last_is_taken_back_until_the_pool_holds():
    case = numbers([1, 1, 1, 5, 5, 5, 9], [3, 4], slice_steps=1)
    leaves = case.tree_leaves()._replace(labels=single_values([1, 5]))
    found = make_list(case.codes, leaves, case.problem(Rules(3, 1, None)))
    assert found.cells.keys.tolist() == [[1]]
    assert found.cell.tolist() == [0, 0, 0, 1, 1, 1, 1]
    assert (found.cells.labels.low[1, 0], found.cells.labels.high[1, 0]) == (5, 9)


def test_missing_is_apart_below_the_top_and_costs_all_steps_among_values():
    axis = NumberLevels(np.array([-1, 0, 1, 2, 3]), 7, 1, 0, 7)
    assert axis.n_levels == 5
    assert axis.keys(3, np.array([0, 1, 4])).tolist() == [-1, 0, 0]
    assert axis.keys(4, np.array([0, 1, 4])).tolist() == [0, 0, 0]
    assert axis.widths(3, np.array([0, 1])).tolist() == [0, 7]
    case = make_case([[0], [0], [1], [2]], [4], [None], [axis], [10])
    assert price_tree(case.codes, case.tree_leaves(), case.problem(Rules(1, 1, None))) == 10 * (7 + 7 + 1 + 1)


def test_branches_with_only_children_keep_their_level():
    tree = Hierarchy.from_tree({"*": {"x": {"y": ["a"]}, "z": {"w": ["c", "d"], "v": ["e"]}}})
    case = make_case([[0], [1], [2], [3]], [4], [tree], [None], [1])
    axis, codes = case.levels[0], np.arange(4)
    assert [[tree.labels[node] for node in axis.keys(level, codes)] for level in range(4)] == [
        ["a", "c", "d", "e"], ["y", "w", "w", "v"], ["x", "z", "z", "z"], ["*"] * 4,
    ]  # fmt: skip


def test_a_label_across_the_border_of_two_cells_gives_two_vectors():
    case = numbers([7, 8], [2], slice_steps=1)
    assert vectors_of(case.tree_leaves().labels, case.levels).tolist() == [[1], [4]]


def test_the_list_is_kept_only_if_it_costs_less():
    rules = Rules(2, 1, None)
    better = numbers([1, 1, 1, 1, 3, 3], [2, 4], slice_steps=1)
    found = refine(better.codes, better.tree_leaves(), better.problem(rules))
    assert found is not None
    assert (found.price, found.tree_price) == (0, 8)
    same = numbers([1, 1, 3, 3], [2, 2], slice_steps=1)
    assert refine(same.codes, same.tree_leaves(), same.problem(rules)) is None


def test_keys_that_need_several_words_are_the_twins():
    rng = np.random.default_rng(18)
    axis = NumberLevels(np.arange(64), 63, 2, 0, 63)
    codes = np.repeat(rng.integers(0, 64, (60, 14)), 2, axis=0)  # 14 axes of 6 bits
    codes[1::2, 3] ^= 1
    case = make_case(codes.tolist(), [2] * 60, [None] * 14, [axis] * 14, [1] * 14)
    found = check(case, Rules(2, 1, None), lambda rows: len(rows) >= 2)
    assert len(found.cells.keys) > 10


def test_a_sample_is_refused():
    case = numbers([1, 1], [2])
    rules = Rules(1, 1, None, tests=np.zeros((1, 1)))
    with pytest.raises(InternalError, match="not of a sample"):
        refine(case.codes, case.tree_leaves(), case.problem(rules))
