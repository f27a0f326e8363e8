"""The steps of Rothko-S on its tree: growth on a sample, limits, pruning; each beside the obvious way."""

from __future__ import annotations

import heapq
from dataclasses import replace
from typing import Any

import naive_mondrian as naive
import numpy as np
import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st
from naive_confidence import Sample, rules_of
from small_trees import SHAPES, Building, Shape, axes_from, children_of, n_codes_of, trees

from sfumato.engines.protocol import Block
from sfumato.errors import InternalError
from sfumato.kernels.axes import NO_NUMBER, Axes
from sfumato.kernels.nodes import Nodes
from sfumato.methods.mondrian import memory
from sfumato.methods.mondrian.begun_tree import OpenNode
from sfumato.methods.mondrian.kernels.descend import Descent
from sfumato.methods.mondrian.kernels.problem import TARGET, People, Queries, Rules, Targets, table
from sfumato.methods.mondrian.memory import TreeGrower
from sfumato.methods.mondrian.node_range import NodeRange
from sfumato.methods.mondrian.passes import LeafPlan, TreePlaces
from sfumato.methods.mondrian.people_counts import PeopleAsker
from sfumato.methods.mondrian.problem import SplitProblem
from sfumato.methods.mondrian.sample import (
    LeafStatistics,
    Stops,
    TreeLimits,
    complete,
    grow_on_sample,
    optimistic_problem,
    prune,
    trim_tree,
)
from sfumato.methods.mondrian.sample_tests import rules_on_sample
from sfumato.methods.mondrian.statistics import GroupStatistics
from sfumato.policy.options.mondrian import MondrianOptions
from sfumato.policy.requirements import EntropyDiversity, KAnonymity, RecursiveDiversity, VarianceDiversity


def root_of(axes: Axes, *, has_queries: bool = False) -> NodeRange:
    """The range of a root of which nothing else is known; its codes do not matter."""
    return NodeRange.of_root(axes, [1] * len(axes.root), has_queries=has_queries)


def below(nodes: Nodes, node: int) -> list[int]:
    first = int(nodes.first_child[node])
    return list(range(first, first + int(nodes.n_children[node])))


def everything_below(nodes: Nodes, node: int) -> list[int]:
    found = below(nodes, node)
    for here in found:  # grows as it goes
        found += below(nodes, here)
    return found


def paths_of(nodes: Nodes) -> dict[int, tuple[Any, ...]]:
    """Of each node the splits above it: (axis, threshold, branch)."""
    paths: dict[int, tuple[Any, ...]] = {0: ()}
    for node in range(len(nodes.axis)):
        for child in below(nodes, node):
            step = (int(nodes.axis[node]), int(nodes.threshold[node]), int(nodes.branch[child]))
            paths[child] = (*paths[node], step)
    return paths


def is_whole(nodes: Nodes) -> bool:
    """Are the arrays a tree, each child after its parent?"""
    seen = [child for node in range(len(nodes.axis)) for child in below(nodes, node)]
    assert all(child > node for node in range(len(nodes.axis)) for child in below(nodes, node))
    assert ((nodes.axis >= 0) == (nodes.n_children > 0)).all()
    assert [column.dtype for column in nodes] == [
        column.dtype for column in Building.of(axes_from([2]), [2], 0).nodes()
    ]
    return sorted(seen) == list(range(1, len(nodes.axis)))


# ---- complete --------------------------------------------------------------------------------------


@given(trees(), st.integers(0, 2**32 - 1))
@settings(max_examples=200)
def test_a_completed_tree_has_a_leaf_for_every_row_and_the_others_keep_theirs(case, seed):
    axes, rows, tree = case
    nodes = tree.nodes()
    whole = complete(nodes, axes)
    assert is_whole(whole)
    old, new = Descent(nodes, axes).leaves(rows), Descent(whole, axes).leaves(rows)
    assert (new >= 0).all()
    old_paths, new_paths = paths_of(nodes), paths_of(whole)
    for before, after in zip(old.tolist(), new.tolist(), strict=True):
        if before >= 0:
            assert old_paths[before] == new_paths[after]
            assert whole.end[after] - whole.start[after] == nodes.end[before] - nodes.start[before]
        else:
            assert whole.end[after] == whole.start[after]
    for node in np.flatnonzero((whole.axis >= 0) & axes.is_tree[whole.axis]):
        assert whole.branch[below(whole, node)].tolist() == children_of(axes, int(whole.threshold[node]))


# ---- early stops -----------------------------------------------------------------------------------

COUNT = rules_of([KAnonymity(2)], values_column=0, numbers_column=0, n_values=1)
PLENTY = TreeLimits(max_nodes=10**9, max_statistics=10**9, max_files=10**9, rows_in_memory=0.0)


def naive_trim(nodes: Nodes, *, room, rows_in_memory, whole):
    """(splits that are made, splits that are not, by reason)."""
    n_rows = nodes.end - nodes.start
    made, stopped = set(), [0, 0, 0, 0]
    n_nodes = n_leaves = n_files = 1
    height = {0: 0}
    waiting = [(-int(n_rows[0]), 0)]
    while waiting:
        _, node = heapq.heappop(waiting)
        if nodes.axis[node] < 0:
            continue
        more = whole(node)
        files = more - 1 if n_rows[node] > rows_in_memory else 0
        wanted = (n_nodes + more, n_leaves + more - 1, n_files + files)
        if height[node] >= room[3]:
            stopped[3] += 1
        elif wanted[0] > room[0]:
            stopped[0] += 1
        elif wanted[1] > room[1]:
            stopped[1] += 1
        elif wanted[2] > room[2]:
            stopped[2] += 1
        else:
            n_nodes, n_leaves, n_files = wanted
            made.add(node)
            for child in below(nodes, node):
                height[child] = height[node] + 1
                heapq.heappush(waiting, (-int(n_rows[child]), child))
    return made, stopped


@given(trees(least=5, max_splits=12), st.data())
@settings(max_examples=200)
def test_trimming_keeps_the_splits_of_the_largest_nodes_that_the_limits_allow(case, data):
    axes, _, tree = case
    nodes = tree.nodes()
    room = [data.draw(st.integers(1, 30)) for _ in range(3)] + [data.draw(st.integers(1, 5))]
    rows_in_memory = data.draw(st.sampled_from([0, 5, 100]))
    assume(  # sizes as a sample has them: every part is smaller than the whole
        all(
            (nodes.end - nodes.start)[child] < (nodes.end - nodes.start)[node]
            for node in range(len(nodes.axis))
            for child in below(nodes, node)
        )
    )
    made, stopped = naive_trim(
        nodes,
        room=room,
        rows_in_memory=rows_in_memory,
        whole=lambda node: (
            len(children_of(axes, tree.threshold[node])) if axes.is_tree[tree.axis[node]] else 2
        ),
    )
    limits = TreeLimits(
        max_nodes=room[0],
        max_statistics=room[1] * GroupStatistics.bytes_per_group(COUNT),
        max_files=room[2],
        rows_in_memory=rows_in_memory,
        max_height=room[3],
    )
    found, stops = trim_tree(nodes, axes, COUNT, limits)
    event(f"stopped: {sum(stopped) > 0}")
    assert is_whole(found)
    assert stops == Stops(*stopped)
    old, new = paths_of(nodes), paths_of(found)
    assert {old[node] for node in made} == {new[node] for node in np.flatnonzero(found.axis >= 0).tolist()}
    assert len(complete(found, axes).axis) <= max(room[0], 1)


def comb(n_leaves: int) -> tuple[Axes, Nodes]:
    """Leaves of 1 row each, cut off one by one."""
    axes = axes_from([n_leaves])
    rows = np.arange(n_leaves, dtype=np.uint32)[:, None]
    tree = Building.of(axes, [n_leaves], n_leaves)
    node = 0
    for code in range(n_leaves - 1):
        tree.split_at(node, 0, code, rows)
        node = len(tree.axis) - 1
    return axes, tree.nodes()


def test_the_growth_stops_where_the_tree_fills_the_memory():
    axes, nodes = comb(10)
    found, stops = trim_tree(nodes, axes, COUNT, replace(PLENTY, max_nodes=8))
    assert (len(found.axis), stops) == (7, Stops(by_tree=1))


def test_the_growth_stops_where_the_statistics_for_pruning_fill_the_memory():
    axes, nodes = comb(10)
    rules = rules_of([RecursiveDiversity(2, 2, of="s")], values_column=1, numbers_column=2, n_values=100)
    assert GroupStatistics.bytes_per_group(rules) == 8 + 4 * 100
    found, stops = trim_tree(nodes, axes, rules, replace(PLENTY, max_statistics=1500))
    assert (int((found.axis < 0).sum()), stops) == (3, Stops(by_statistics=1))


def test_the_growth_stops_where_there_would_be_too_many_files_to_write_in_large_blocks():
    axes, nodes = comb(10)
    found, stops = trim_tree(nodes, axes, COUNT, replace(PLENTY, max_files=4))
    assert (int((found.axis < 0).sum()), stops) == (4, Stops(by_buffers=1))
    # nodes that fit in memory are one file each, whatever their splits
    found, stops = trim_tree(nodes, axes, COUNT, replace(PLENTY, max_files=4, rows_in_memory=7.0))
    assert (len(found.axis), stops) == (len(nodes.axis), Stops())


def test_the_growth_stops_where_the_tree_is_as_high_as_it_may_be():
    axes, nodes = comb(10)
    found, stops = trim_tree(nodes, axes, COUNT, replace(PLENTY, max_height=8))
    assert (len(found.axis), stops) == (17, Stops(by_height=1))


def test_a_leaf_stays_a_leaf():
    axes, nodes = comb(1)
    assert trim_tree(nodes, axes, COUNT, PLENTY)[1] == Stops()
    assert complete(nodes, axes) is nodes


# ---- pruning ---------------------------------------------------------------------------------------

REQUIREMENTS: dict[str, list[Any]] = {
    "k": [KAnonymity(4)],
    "entropy": [EntropyDiversity(2.2, of="s")],
    "recursive": [RecursiveDiversity(2, 3, of="s")],
    "variance": [VarianceDiversity(4.0, of="x")],
    "all": [
        KAnonymity(3),
        EntropyDiversity(1.5, of="s"),
        RecursiveDiversity(3, 2, of="s"),
        VarianceDiversity(2.0, of="x"),
    ],
}


def as_dicts(rows):
    return [{"s": s, "x": None if x == NO_NUMBER else x} for s, x in rows[:, -2:].tolist()]


def satisfied(rows, members, requirements):
    part = as_dicts(rows[members])
    return all(naive.satisfies(part, asked) for asked in requirements)


def naive_prune(nodes: Nodes, members, holds) -> tuple[set[frozenset[int]], int]:
    """(rows of the leaves that are left, nodes with rows that vanished), from the bottom up."""
    rows_of: dict[int, np.ndarray] = {}
    leaves: dict[int, list[int]] = {}
    gone: dict[int, int] = {}
    n_pruned = 0
    for node in range(len(nodes.axis) - 1, -1, -1):
        children = [c for c in below(nodes, node) if len(rows_of[c])]
        rows_of[node] = (
            members[node]
            if not below(nodes, node)
            else np.concatenate([np.zeros(0), *(rows_of[c] for c in children)]).astype(int)
        )
        size = 1 + sum(gone[c] for c in children)
        if any(leaves[c] == [c] and not holds(rows_of[c]) for c in children):
            n_pruned += size - 1
            size, leaves[node] = 1, [node]
        else:
            leaves[node] = [leaf for c in children for leaf in leaves[c]] or [node]
        gone[node] = size
    return {frozenset(rows_of[leaf].tolist()) for leaf in leaves[0]}, n_pruned


@pytest.mark.parametrize("name", REQUIREMENTS)
@given(case=trees(least=12, max_splits=10), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=80)
def test_after_pruning_every_leaf_satisfies_the_requirement_and_no_more_is_undone_than_must_be(
    name, case, seed
):
    axes, codes, tree = case
    requirements = REQUIREMENTS[name]
    random = np.random.default_rng(seed)
    extra = np.stack([random.integers(0, 5, len(codes)), random.integers(0, 9, len(codes))], axis=1)
    rows = np.concatenate([codes, extra.astype(np.uint32)], axis=1)
    rows[random.random(len(rows)) < 0.1, -1] = NO_NUMBER
    everyone = np.arange(len(rows))
    assume(satisfied(rows, everyone, requirements))
    rules = rules_of(
        requirements, values_column=rows.shape[1] - 2, numbers_column=rows.shape[1] - 1, n_values=5
    )
    nodes = complete(tree.nodes(), axes)
    leaf = Descent(nodes, axes).leaves(rows)
    statistics = LeafStatistics(nodes, rules)
    for block in np.array_split(everyone, 3):
        statistics.add(rows[block], leaf[block])
    members = {node: np.flatnonzero(leaf == node) for node in range(len(nodes.axis))}
    pruned = prune(nodes, statistics)
    expected, n_pruned = naive_prune(nodes, members, lambda part: satisfied(rows, part, requirements))
    event(f"pruned: {n_pruned > 0}, split: {pruned.is_split}")

    assert is_whole(pruned.nodes)
    at = Descent(pruned.nodes, axes).leaves(rows)
    assert (at >= 0).all()
    leaves = np.flatnonzero(pruned.nodes.axis < 0).tolist()
    assert set(at.tolist()) == set(leaves)
    assert {frozenset(np.flatnonzero(at == node).tolist()) for node in leaves} == expected
    assert pruned.n_pruned == n_pruned
    for node in leaves:
        part = np.flatnonzero(at == node)
        assert satisfied(rows, part, requirements)
        was = int(pruned.origin[node])
        assert set(leaf[part].tolist()) <= {was, *everything_below(nodes, was)}
        assert pruned.n_rows[node] == len(part) == pruned.nodes.end[node] - pruned.nodes.start[node]
    in_order = sorted(leaves, key=lambda node: int(pruned.nodes.start[node]))
    assert [int(pruned.nodes.start[node]) for node in in_order] == np.cumsum(
        [0, *pruned.n_rows[in_order[:-1]]]
    ).tolist()
    for node in range(len(pruned.nodes.axis)):
        if children := below(pruned.nodes, node):
            assert pruned.n_rows[node] == pruned.n_rows[children].sum()
            assert pruned.nodes.start[node] == pruned.nodes.start[children[0]]


def of_people(rules: Rules, column: int, k: int) -> Rules:
    """The same rules of the people whose numbers stand in this column."""
    sensitive = rules.sensitive
    if sensitive is None:  # nothing is required of values
        other = rules_of(
            [EntropyDiversity(2, of="s")], values_column=0, numbers_column=0, n_values=1
        ).sensitive
        sensitive = other._replace(values=other.values[:0], entropy=other.entropy[:0])
    return rules._replace(sensitive=sensitive._replace(people=People(column, column + 1, k, 10**9)))


def satisfied_by_people(rows, members, requirements) -> bool:
    """As ``satisfied``, if a person counts once, and once for each of its values; whose a row is stands first."""
    whose = rows[members, 0]
    for asked in requirements:
        if isinstance(asked, KAnonymity):
            is_fine = len(set(whose.tolist())) >= asked.k
        else:
            value = rows[members, -2 if asked.of == "s" else -1]
            first = np.unique(np.stack([whose, value]), axis=1, return_index=True)[1]
            is_fine = satisfied(rows, members[first], [asked])
        if not is_fine:
            return False
    return True


@pytest.mark.parametrize("name", REQUIREMENTS)
@pytest.mark.parametrize("room", [0, 1 << 20])
@given(case=trees(least=12, max_splits=10), seed=st.integers(0, 2**32 - 1), n_people=st.integers(3, 12))
@settings(max_examples=80)
def test_pruning_by_people_undoes_what_sets_of_people_say(name, room, case, seed, n_people):
    axes, codes, tree = case
    requirements = REQUIREMENTS[name]
    random = np.random.default_rng(seed)
    extra = [random.integers(0, n, len(codes)) for n in (n_people, 5, 9)]
    rows = np.concatenate([codes, np.stack(extra, axis=1).astype(np.uint32)], axis=1)
    rows[random.random(len(rows)) < 0.1, -1] = NO_NUMBER
    n_axes, everyone = codes.shape[1], np.arange(len(rows))
    by_person = rows[:, [n_axes, *range(n_axes), n_axes + 1, n_axes + 2]]
    assume(satisfied_by_people(by_person, everyone, requirements))
    k = max((asked.k for asked in requirements if isinstance(asked, KAnonymity)), default=1)
    rules = rules_of(requirements, values_column=n_axes + 1, numbers_column=n_axes + 2, n_values=5)
    rules = of_people(rules, n_axes, k)
    nodes = complete(tree.nodes(), axes)
    descent = Descent(nodes, axes)
    leaf = descent.leaves(rows)
    places = TreePlaces(descent, np.zeros(len(nodes.axis), dtype=np.int64), 1)
    plan = LeafPlan(nodes, rules, places, PeopleAsker(rules, [*rows.max(axis=0).tolist()], len(rows)))
    states = [plan.new(room, None) for _ in range(2)]
    for number, block in enumerate(np.array_split(everyone, 5)):
        states[number % 2].add(Block(rows[block], None))
    states[0].merge(states[1])
    pruned = prune(nodes, plan.answer(states[0]))
    members = {node: np.flatnonzero(leaf == node) for node in range(len(nodes.axis))}
    expected, n_pruned = naive_prune(
        nodes, members, lambda part: satisfied_by_people(by_person, part, requirements)
    )
    event(f"pruned: {n_pruned > 0}, split: {pruned.is_split}")
    at = Descent(pruned.nodes, axes).leaves(rows)
    leaves = np.flatnonzero(pruned.nodes.axis < 0).tolist()
    assert {frozenset(np.flatnonzero(at == node).tolist()) for node in leaves} == expected
    assert pruned.n_pruned == n_pruned


def test_pruning_with_tests_in_place_of_definitions_is_a_bug():
    axes, nodes = comb(3)
    rules = rules_on_sample(COUNT, axes, n_sample=10, n_rows=100)
    with pytest.raises(InternalError):
        prune(nodes, LeafStatistics(nodes, rules))


# ---- growth on a sample ----------------------------------------------------------------------------


def targets_for(kind: str, column: int) -> Targets | None:
    label, number = [], []
    if kind == "label":
        label = [(column, 2, 1.0, 1)]
    elif kind == "number":
        number = [(column, 0, 1.0, 1)]
    if not (label or number):
        return None
    record = TARGET[np.float64 if number else np.int64]
    return Targets(table(record, label), table(record, number), 1.0)


SAMPLED: dict[str, list[Any]] = {
    "k": [KAnonymity(20)],
    "entropy": [EntropyDiversity(1.5, of="s")],
    "recursive": [RecursiveDiversity(3, 2, of="s")],
    "variance": [VarianceDiversity(3.0, of="x")],
    "all": [KAnonymity(5), RecursiveDiversity(4, 2, of="s"), VarianceDiversity(1.0, of="x")],
}


@pytest.mark.parametrize("name", SAMPLED)
@given(
    shapes=SHAPES,
    seed=st.integers(0, 2**32 - 1),
    times=st.sampled_from([1.5, 5.0, 40.0]),
    tests=st.booleans(),
    kind=st.sampled_from(["median", "label", "number"]),
)
@settings(max_examples=40)
def test_a_tree_of_a_sample_has_all_splits_that_pass_and_no_other(name, shapes, seed, times, tests, kind):
    requirements = SAMPLED[name]
    random = np.random.default_rng(seed)
    n = 160
    axes = axes_from(shapes)
    codes = np.stack([random.integers(0, c, n) for c in n_codes_of(axes, shapes)], axis=1)
    extra = np.stack([random.integers(0, 5, n), random.integers(0, 9, n), random.integers(0, 2, n)], axis=1)
    rows = np.concatenate([codes, extra], axis=1).astype(np.uint32)
    n_axes = len(shapes)
    rules = rules_of(requirements, values_column=n_axes, numbers_column=n_axes + 1, n_values=5)
    sample = Sample(n, round(n * times), 5, tests=tests)
    problem = optimistic_problem(
        SplitProblem(axes, targets_for(kind, n_axes + 2), rules),
        n=n, N=sample.N, options=MondrianOptions(tests=tests),
    )  # fmt: skip
    nodes = grow_on_sample(rows, problem, root_of(axes), threads=1)
    event(f"leaves: {min(int((nodes.axis < 0).sum()), 4)}")
    assert is_whole(nodes)

    def passes(parts):
        return all(
            sample.passes(asked, rows[part, n_axes], rows[part, n_axes + 1], len(parts))
            for part in parts
            for asked in requirements
        )

    members = {0: np.arange(n)}
    known = {0: axes.root.tolist()}
    for node in range(len(nodes.axis)):
        here = members[node]
        if nodes.axis[node] >= 0:
            axis = int(nodes.axis[node])
            if axes.is_tree[axis]:
                assert nodes.threshold[node] == known[node][axis]  # not what the sample happens to cover
            parts = []
            for child in below(nodes, node):
                column = rows[here, axis]
                branch = int(nodes.branch[child])
                if axes.is_tree[axis]:
                    keep = (axes.node_low[branch] <= column) & (column < axes.node_high[branch])
                else:
                    keep = (column > nodes.threshold[node]) == bool(branch)
                members[child] = here[keep]
                known[child] = list(known[node])
                if axes.is_tree[axis]:
                    known[child][axis] = branch
                parts.append(members[child])
            assert sum(map(len, parts)) == len(here)
            assert passes(parts)
            continue
        for axis in range(n_axes):
            column = rows[here, axis]
            if axes.is_tree[axis]:
                parts = [
                    here[(axes.node_low[child] <= column) & (column < axes.node_high[child])]
                    for child in children_of(axes, known[node][axis])
                ]
                parts = [part for part in parts if len(part)]
                assert len(parts) < 2 or not passes(parts)
            else:
                for threshold in np.unique(column)[:-1]:
                    assert not passes([here[column <= threshold], here[column > threshold]])


def test_a_sample_that_is_everything_gives_the_tree_of_all_rows():
    random = np.random.default_rng(3)
    axes = axes_from([50, [[[], []], [[], [], []]], 9])
    codes = np.stack([random.integers(0, c, 500) for c in (50, 5, 9)], axis=1).astype(np.uint32)
    problem = SplitProblem(axes, targets_for("median", 3), COUNT)
    same = optimistic_problem(problem, n=500, N=500, options=MondrianOptions())
    assert same.rules is COUNT
    expected = TreeGrower(codes, 3).grow(problem)
    found = grow_on_sample(codes, same, root_of(axes))
    assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))


def test_rows_outside_what_the_sample_covers_are_divided_by_the_hierarchy_too():
    """All rows of the sample are in the north; those in the south still find a leaf, or no split is made."""
    north_and_south: Shape = [[[], []], [[], []]]
    axes = axes_from([north_and_south])
    north, south = children_of(axes, 0)
    sample = np.repeat(np.arange(2, dtype=np.uint32), 50)[:, None]
    problem = optimistic_problem(
        SplitProblem(axes, targets_for("median", 1), COUNT), n=100, N=1000, options=MondrianOptions()
    )
    assert grow_on_sample(sample, problem, root_of(axes)).axis.tolist() == [-1]
    known = root_of(axes)
    known.cover[0] = north  # all rows are known to be there
    nodes = grow_on_sample(sample, problem, known)
    assert nodes.threshold.tolist() == [north, -1, -1]
    assert south not in nodes.branch


@pytest.mark.parametrize("is_known", [False, True])
def test_a_selection_is_answered_from_the_region_that_is_known_not_from_what_the_sample_covers(is_known):
    """A query of the south reaches into a node whose rows in the sample are all in the north."""
    axes = axes_from([9, [[[], []], [[], []]]])
    north, _ = children_of(axes, 0)
    random = np.random.default_rng(5)
    sample = np.stack([random.integers(0, 9, 200), random.integers(0, 2, 200)], axis=1).astype(np.uint32)
    south_of_old = Queries(np.array([[0, 2]]), np.array([[6, 3]]), np.array([1]))
    problem = optimistic_problem(
        SplitProblem(axes, targets_for("median", 2), COUNT, queries=south_of_old),
        n=200, N=400, options=MondrianOptions(),
    )  # fmt: skip
    known = root_of(axes, has_queries=True)
    if is_known:
        known.cover[1] = north
    nodes = grow_on_sample(sample, problem, known)
    assert nodes.axis[0] == 0
    assert (nodes.threshold[0] == 6) == (not is_known)  # the end of the query, or the median


def test_small_leaves_are_handed_to_threads_together():
    bounds = np.zeros((4, 1), dtype=np.int64)
    small = {at: OpenNode(10 * at, 10 * at + 10, bounds) for at in range(1_000)}
    parts = list(memory.bundle_leaves(small))
    assert [pair for part in parts for pair in part] == list(small.items())
    n_rows = [sum(leaf.end - leaf.start for _, leaf in part) for part in parts]
    assert all(n >= memory.SMALLEST_TASK for n in n_rows[:-1])
    assert len(parts) == 3
    large = {at: OpenNode(10_000 * at, 10_000 * at + 10_000, bounds) for at in range(3)}
    assert [len(part) for part in memory.bundle_leaves(large)] == [1, 1, 1]
    assert list(memory.bundle_leaves({})) == []
