"""Rothko-S, the example of [LDR08, section 5.2]: Figure 15, a table and a tree typed in full."""

from __future__ import annotations

import numpy as np
from naive_confidence import rules_of
from small_trees import Building, axes_from, children_of

from sfumato.methods.mondrian.kernels.descend import Descent
from sfumato.methods.mondrian.memory import TreeGrower
from sfumato.methods.mondrian.problem import SplitProblem
from sfumato.methods.mondrian.sample import LeafStatistics, complete, prune
from sfumato.policy.requirements import KAnonymity

K = 3
NORTH, MIDDLE, SOUTH = range(3)
TABLE = [
    # age (code), region, and the leaf of Figure 15 (a) that the row goes to
    (0, NORTH, "R1"), (1, NORTH, "R1"), (1, SOUTH, "R1"), (0, MIDDLE, "R1"),
    (2, NORTH, "R2"), (3, NORTH, "R2"), (3, NORTH, "R2"),
    (2, MIDDLE, "R3"), (2, MIDDLE, "R3"), (3, MIDDLE, "R3"),
    (2, SOUTH, "R4"), (3, SOUTH, "R4"), (3, SOUTH, "R4"), (2, SOUTH, "R4"),
    (4, NORTH, "R5"), (5, SOUTH, "R5"), (5, MIDDLE, "R5"), (4, SOUTH, "R5"), (4, NORTH, "R5"), (5, NORTH, "R5"),
    (6, NORTH, "R6"), (7, NORTH, "R6"), (8, NORTH, "R6"), (9, NORTH, "R6"),
    (7, MIDDLE, "R7"), (9, MIDDLE, "R7"),
    (6, SOUTH, "R8"), (6, SOUTH, "R8"), (7, SOUTH, "R8"), (8, SOUTH, "R8"), (9, SOUTH, "R8"),
]  # fmt: skip
ROWS = np.array([row[:2] for row in TABLE], dtype=np.uint32)
NAMES = np.array([row[2] for row in TABLE])
AXES = axes_from([10, [[], [], []]])
RULES = rules_of([KAnonymity(K)], values_column=0, numbers_column=0, n_values=1)


def figure_15a():
    """(tree, node of each leaf): grown on a sample, before anybody counted."""
    tree = Building.of(AXES, [10, 3], len(ROWS))
    regions = children_of(AXES, 0)
    tree.split_at(0, 0, 5, ROWS)  # nodes 1 and 2
    tree.split_at(1, 0, 3, ROWS)  # 3 and R5
    tree.split_along(2, 1, regions, ROWS)  # R6, R7, R8
    tree.split_at(3, 0, 1, ROWS)  # R1 and 9
    tree.split_along(9, 1, regions, ROWS)  # R2, R3, R4
    return tree, {"R1": 8, "R2": 10, "R3": 11, "R4": 12, "R5": 4, "R6": 5, "R7": 6, "R8": 7}


def counted(nodes):
    statistics = LeafStatistics(nodes, RULES)
    statistics.add(ROWS, Descent(nodes, AXES).leaves(ROWS))
    return statistics


def test_figure_15_a_all_rows_go_down_the_tree_and_are_counted():
    tree, leaf = figure_15a()
    nodes = complete(tree.nodes(), AXES)
    at = Descent(nodes, AXES).leaves(ROWS)
    assert [leaf[name] for name in NAMES] == at.tolist()
    statistics = counted(nodes)
    counts = {name: int(statistics.n_rows[statistics.place[node]]) for name, node in leaf.items()}
    assert counts == {"R1": 4, "R2": 3, "R3": 3, "R4": 4, "R5": 6, "R6": 4, "R7": 2, "R8": 5}


def test_figure_15_b_node_7_has_too_few_rows_and_all_below_its_parent_are_merged():
    tree, _ = figure_15a()
    nodes = tree.nodes()
    pruned = prune(nodes, counted(nodes))
    at = Descent(pruned.nodes, AXES).leaves(ROWS)
    partitions = {frozenset(NAMES[at == node].tolist()) for node in np.unique(at)}
    assert partitions == {
        frozenset({"R1"}), frozenset({"R2"}), frozenset({"R3"}), frozenset({"R4"}), frozenset({"R5"}),
        frozenset({"R6", "R7", "R8"}),
    }  # fmt: skip
    assert pruned.n_pruned == 3
    assert pruned.is_split
    assert int(pruned.n_rows[0]) == len(ROWS)


def test_figure_15_c_the_procedure_goes_on_below_each_partition():
    tree, _ = figure_15a()
    nodes = tree.nodes()
    pruned = prune(nodes, counted(nodes))
    at = Descent(pruned.nodes, AXES).leaves(ROWS)
    sizes = {}
    for node in np.unique(at):
        codes = np.asfortranarray(ROWS[at == node])
        engine = TreeGrower(codes, codes.shape[1], threads=1)
        below = engine.grow(SplitProblem(AXES, None, RULES))
        name = "+".join(sorted(set(NAMES[at == node].tolist())))
        sizes[name] = sorted((below.end - below.start)[below.axis < 0].tolist())
    # R5 falls apart further, and so does the union, along another attribute than the split that was undone
    assert sizes["R5"] == [3, 3]
    assert sizes["R6+R7+R8"] == [3, 3, 5]
    assert {name: size for name, size in sizes.items() if len(size) == 1} == {
        "R1": [4], "R2": [3], "R3": [3], "R4": [4],
    }  # fmt: skip
    assert min(min(size) for size in sizes.values()) >= K
    assert sum(sum(size) for size in sizes.values()) == len(TABLE)


def test_pruning_goes_up_as_far_as_it_must():
    """R7 alone on its side: the union of all below its parent is still too small, so the grandparent is merged too."""
    few = np.array([(0, NORTH), (1, NORTH), (2, SOUTH), (6, SOUTH), (7, MIDDLE)], dtype=np.uint32)
    tree = Building.of(AXES, [10, 3], len(few))
    tree.split_at(0, 0, 5, few)
    tree.split_along(2, 1, children_of(AXES, 0), few)
    nodes = tree.nodes()
    statistics = LeafStatistics(nodes, RULES)
    statistics.add(few, Descent(nodes, AXES).leaves(few))
    pruned = prune(nodes, statistics)
    assert not pruned.is_split  # nothing is left: the driver falls back
    assert pruned.n_rows.tolist() == [5]
    assert pruned.n_pruned == 4  # both sides, and the two regions with rows
