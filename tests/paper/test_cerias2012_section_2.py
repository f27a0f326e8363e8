"""Section 2 of [FEB12]: figures 2 to 4, definition 1, theorem 1's reduction, propositions 1 and 2, corollary 1, the ring
family of 2.3.3; and example 1 of section 3.2.

What the paper has wrong is in test_cerias2012_errors.py.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import naive_sampling
import naive_tradeoff as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tradeoff_cases import problems

from sfumato.encoding.domain import TreeDomain
from sfumato.methods.risk_utility import model
from sfumato.methods.risk_utility.optimizers import exact
from sfumato.methods.risk_utility.problem import Threshold, problem_of
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.options.risk_utility import Weights
from sfumato.policy.options.sampling_plan import plan
from sfumato.policy.schema import Attribute, Role

# ---- figure 2: a hierarchy of cities ----------------------------------------------------------------------

FIGURE_2 = Hierarchy.from_tree(
    {
        "*": {
            "North America": {"USA": ["West Lafayette", "Lafayette", "Chicago"], "Canada": ["Toronto"]},
            "Europe": {"Germany": ["Saarbrücken", "Berlin"]},
        }
    }
)
"""A partial hierarchy of the attribute city. The figure's labels are not in our copy of the paper: these are ours."""
CITY = Attribute("city", Role.QUASI_IDENTIFIER)


def join(tree: Hierarchy, one: int, other: int) -> int:
    """The least node above both."""
    while one != other:
        deeper = tree.depth[one] >= tree.depth[other]
        one, other = (int(tree.parent[one]), other) if deeper else (one, int(tree.parent[other]))
    return one


def is_above(tree: Hierarchy, one: int, other: int) -> bool:
    return bool(tree.low[one] <= tree.low[other] and tree.high[other] <= tree.high[one])


def test_figure_2_is_a_join_semi_lattice():
    nodes = range(FIGURE_2.n_nodes)
    for one, other in itertools.product(nodes, repeat=2):
        least = join(FIGURE_2, one, other)
        above = [x for x in nodes if is_above(FIGURE_2, x, one) and is_above(FIGURE_2, x, other)]
        assert least in above
        assert all(is_above(FIGURE_2, x, least) for x in above)
    names = {label: i for i, label in enumerate(FIGURE_2.labels)}
    joined = join(FIGURE_2, names["Toronto"], names["Chicago"])
    assert FIGURE_2.labels[joined] == "North America"


def test_figure_2_what_generalizes_a_city_is_a_chain():
    problem = problem_of(
        [TreeDomain(CITY, FIGURE_2, has_missing=False)], np.array([[0]], dtype=np.uint32), utility="log"
    )
    nodes = problem.nodes_of(np.zeros(4, dtype=np.int64), np.arange(4, dtype=np.uint8).reshape(-1, 1))
    labels = [FIGURE_2.labels[node] for node in nodes.ravel()]
    assert labels == ["West Lafayette", "USA", "North America", "*"]
    assert [FIGURE_2.high[node] - FIGURE_2.low[node] for node in nodes.ravel()] == [1, 3, 4, 6]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("inverse", [1, 1 / 3, 1 / 4, 1 / 6]),
        ("log", [np.log(6), np.log(2), np.log(6 / 4), 0]),
        ("depth", [3, 2, 1, 0]),
    ],
)
def test_the_utilities_of_2_1_2_on_figure_2_fall_towards_the_root(word, expected):
    utility = model.utilities(CITY, FIGURE_2, word)
    names = {label: i for i, label in enumerate(FIGURE_2.labels)}
    chain = [utility[names[label]] for label in ("West Lafayette", "USA", "North America", "*")]
    assert chain == pytest.approx(expected)


# ---- figures 3 and 4: the lattice of a row of two attributes ----------------------------------------------

TIME = Hierarchy.from_tree({"*": {"day": ["morning", "noon"], "night": ["evening", "midnight"]}})
PLACE = Hierarchy.from_tree(
    {"*": {"North": {"a": ["a1", "a2"], "b": ["b1", "b2"]}, "South": {"c": ["c1", "c2"], "d": ["d1", "d2"]}}}
)


def figure_3():
    """A row of two attributes of heights 2 and 3; Model II. All 32 pairs occur once, but (noon, a2) 6 times."""
    domains = [
        TreeDomain(Attribute(name, Role.QUASI_IDENTIFIER), tree, has_missing=False)
        for name, tree in (("time", TIME), ("place", PLACE))
    ]
    codes = np.array(list(itertools.product(range(4), range(8))) + [(1, 1)] * 5, dtype=np.uint32)
    return problem_of(domains, codes, weights=Weights("model-2"))


def test_figure_3_nodes_and_their_order():
    nodes = list(naive.generalizations(figure_3(), 0))
    assert sorted(nodes) == [(x, y) for x in range(3) for y in range(4)]
    assert all(
        naive.is_above((2, 3), x) and naive.is_above(x, (0, 0)) for x in nodes
    )  # greatest and least element
    for one, other in itertools.product(nodes, repeat=2):
        least = tuple(map(max, one, other))
        assert least in nodes
        assert tuple(map(min, one, other)) in nodes
        assert all(
            naive.is_above(x, least) for x in nodes if naive.is_above(x, one) and naive.is_above(x, other)
        )
    steps = [(x, y) for x in nodes for y in naive.parents(x, (2, 3))]
    assert len(steps) == 2 * 4 + 3 * 3


def test_figure_3_feasible_frontier_and_optimal_nodes():
    """Utility is depth, 5 for the row as it is; c = 3 of 5. Ours: a frontier node has no feasible parent."""
    problem, c = figure_3(), Threshold(Fraction(3, 5))
    measures = {x: naive.measure(problem, 0, x) for x in naive.generalizations(problem, 0)}
    feasible = {x for x, (_, _, utility) in measures.items() if utility >= 3}
    assert feasible == {(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 0)}
    frontier = {x for x in feasible if not set(naive.parents(x, (2, 3))) & feasible}
    assert frontier == {(0, 2), (1, 1), (2, 0)}
    risk = {x: Fraction(measures[x][1], measures[x][0]) for x in frontier}
    assert {x: measures[x][0] for x in frontier} == {(0, 2): 4, (1, 1): 9, (2, 0): 4}
    optimal = min(frontier, key=risk.__getitem__)
    assert naive.best(problem, c, 0)[2] == optimal == (1, 1)
    assert naive.is_feasible(problem, c, 0, 3)
    assert not naive.is_feasible(problem, c, 0, 2)


def test_figure_4_the_path_12212():
    """From the greatest element each digit specializes one attribute by one step."""
    at = [2, 3]
    seen = [tuple(at)]
    for digit in "12212":
        at[int(digit) - 1] -= 1
        seen.append(tuple(at))
    assert seen == [(2, 3), (1, 3), (1, 2), (1, 1), (0, 1), (0, 0)]
    problem = figure_3()
    utilities = [naive.measure(problem, 0, x)[2] for x in seen]
    assert utilities == [0, 1, 2, 3, 4, 5]  # (1, 1) is the first feasible one at c = 3 of 5


# ---- definition 1 -----------------------------------------------------------------------------------------


def test_definition_1_least_risk_with_enough_utility_by_hand():
    """place: a, a, b under North, c alone; the row a. Model I: Phi is 1, or 0 at the root."""
    tree = Hierarchy.from_tree({"*": {"North": ["a", "b"], "South": ["c"]}})
    codes = np.array([[0], [0], [1], [2]], dtype=np.uint32)
    problem = problem_of([TreeDomain(CITY, tree, has_missing=False)], codes)
    one = problem.weight_unit
    found = {c: naive.best(problem, Threshold(Fraction(c)), 0) for c in (1, Fraction(1, 2), 0)}
    assert [levels for _, _, levels in found.values()] == [(0,), (1,), (2,)]
    risks = [float(-worth) * one for worth, _, _ in found.values()]
    assert risks == pytest.approx([1 / 2, 1 / 3, 0])


@given(problems(max_columns=3), st.data())
@settings(max_examples=60, deadline=None)
def test_definition_1_risk_never_rises_towards_the_top(problem, data):
    row = data.draw(st.integers(0, problem.n - 1))
    nodes = list(naive.generalizations(problem, row))
    one = data.draw(st.sampled_from(nodes))
    other = data.draw(st.sampled_from([x for x in nodes if naive.is_above(x, one)]))
    risk = [Fraction(weight, max(covered, 1)) for covered, weight, _ in
            (naive.measure(problem, row, x) for x in (one, other))]  # fmt: skip
    assert risk[1] <= risk[0]


# ---- theorem 1 --------------------------------------------------------------------------------------------


def reduction(n: int, edges):
    """The threshold problem of a graph, as the proof makes it: one column {⊥, a, b} for each vertex."""
    tree = Hierarchy.from_tree({"*": ["a", "b"]})
    domains = [
        TreeDomain(Attribute(f"v{i}", Role.QUASI_IDENTIFIER), tree, has_missing=False) for i in range(n)
    ]
    theta = np.zeros((len(edges) + 1, n), dtype=np.uint32)
    for row, edge in enumerate(edges):
        theta[row, list(edge)] = 1
    return problem_of(domains, theta[-1:], theta, utility="inverse")


def n_edges_within(edges, chosen) -> int:
    return sum(set(edge) <= set(chosen) for edge in edges)


def densest(n: int, edges, size: int) -> int:
    return max(n_edges_within(edges, chosen) for chosen in itertools.combinations(range(n), size))


def random_graph(seed: int):
    random = np.random.default_rng(seed)
    n = int(random.integers(3, 8))
    share = random.random()
    return n, [edge for edge in itertools.combinations(range(n), 2) if random.random() < share]


@pytest.mark.parametrize("seed", range(12))
def test_theorem_1_the_reduction_finds_the_densest_subgraph(seed):
    """c = k - l / 2 is the share 1 - l / k of the way from suppressed (k / 2) to raw (k)."""
    n, edges = random_graph(seed)
    problem = reduction(n, edges)
    for size in range(1, n):
        worth, _, levels = naive.best(problem, Threshold(1 - Fraction(size, n)), 0)
        chosen = [i for i, level in enumerate(levels) if level]
        risk = -worth * Fraction(problem.weight_unit)
        assert risk == Fraction(n - size, densest(n, edges, size) + 1)
        assert len(chosen) == size
        found = exact.solve(problem, Threshold(1 - Fraction(size, n)), threads=1)
        assert (int(found.weight[0]), int(found.covered[0])) == naive.measure(problem, 0, levels)[1::-1]
        assert n_edges_within(edges, chosen) == densest(n, edges, size)


def test_theorem_1_a_solution_below_the_bound_may_have_fewer_vertices():
    """The proof ends with a set "of size at most l": here 3 vertices hold the edges that are asked of 4."""
    n, edges, size, m = 6, [(0, 1), (0, 2), (1, 2)], 4, 1
    problem = reduction(n, edges)
    covered, weight, utility = naive.measure(problem, 0, (1, 1, 1, 0, 0, 0))
    assert utility >= problem.need(1 - Fraction(size, n))[0]
    assert Fraction(weight) * Fraction(problem.weight_unit) / covered <= Fraction(n - size, m + 1)
    assert n_edges_within(edges, (0, 1, 2)) >= m


def test_theorem_1_says_nothing_when_all_vertices_may_be_taken():
    """l = k: the bound (k - l) / (m + 1) is 0 for every m, and suppression reaches it however few edges there are."""
    n, edges = 4, [(0, 1)]
    worth, _, levels = naive.best(reduction(n, edges), Threshold(Fraction(0)), 0)
    assert (worth, levels) == (0, (1, 1, 1, 1))
    assert densest(n, edges, n) == 1  # not the 2, 3, ... edges that a risk of 0 <= 0 / (m + 1) seems to prove


# ---- propositions 1 and 2, corollary 1 --------------------------------------------------------------------


def chain_values(problem, row):
    """All generalizations with their measures, by position in each column's chain."""
    chains = [sorted({x[a] for x in naive.generalizations(problem, row)}) for a in range(problem.n_columns)]
    out = {}
    for place in itertools.product(*(range(len(chain)) for chain in chains)):
        levels = [chain[i] for chain, i in zip(chains, place, strict=True)]
        out[place] = naive.measure(problem, row, levels)
    return out


def has_growing_differences(values) -> bool:
    """Proposition 1: f(x + e_i) - f(x) never falls while the other coordinates rise."""
    for x in values:
        for a in range(len(x)):
            up = tuple(v + (i == a) for i, v in enumerate(x))
            if up not in values:
                continue
            for b in range(len(x)):
                other, other_up = (tuple(v + (i == b) for i, v in enumerate(y)) for y in (x, up))
                if b == a or other_up not in values:
                    continue
                if values[other_up] - values[other] < values[up] - values[x]:
                    return False
    return True


@given(st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_proposition_1(seed):
    """Any function, most of them not supermodular: the differences tell which."""
    random = np.random.default_rng(seed)
    shape = random.integers(2, 4, size=random.integers(1, 4))
    bend = int(random.integers(0, 3))
    values = {
        x: bend * int(np.prod(x)) + int(random.integers(0, 2))
        for x in itertools.product(*(range(n) for n in shape))
    }
    assert naive.is_supermodular(values) == has_growing_differences(values)


@given(problems(max_columns=3, max_rows=8), st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_proposition_2_and_corollary_1(problem, power):
    """|rho| is supermodular and rises; Phi u^kappa is supermodular and falls; Phi and u are modular."""
    measured = chain_values(problem, 0)
    covered = {x: m[0] for x, m in measured.items()}
    product = {x: m[1] * m[2] ** power for x, m in measured.items()}
    assert naive.is_supermodular(covered)
    assert naive.is_supermodular(product)
    for sign in (1, -1):
        assert naive.is_supermodular({x: sign * m[1] for x, m in measured.items()})
        assert naive.is_supermodular({x: sign * m[2] for x, m in measured.items()})
    for one, other in itertools.permutations(measured, 2):
        if naive.is_above(one, other):
            assert covered[one] >= covered[other]
            assert product[one] <= product[other]


# ---- 2.3.3: from a chain product to the cube --------------------------------------------------------------


def supermodular_function(random, heights):
    """Counts of rows by the levels that they need, and a modular function that rises and falls."""
    needed = [tuple(random.integers(0, heights + 1).tolist()) for _ in range(4)]
    count = random.integers(0, 5, size=4).tolist()
    slopes = [np.cumsum(random.integers(-3, 4, size=h + 1)).tolist() for h in heights]
    return {
        x: sum(n for n, t in zip(count, needed, strict=True) if naive.is_above(x, t))
        + sum(slope[v] for slope, v in zip(slopes, x, strict=True))
        for x in itertools.product(*(range(h + 1) for h in heights))
    }


@pytest.mark.parametrize("seed", range(25))
def test_2_3_3_the_extension_to_the_cube_is_supermodular_and_has_the_same_maximum(seed):
    """With S(x) = {y : y <= x}. N_v, the largest member without v: levels below v in its column, all of the rest."""
    random = np.random.default_rng(seed)
    heights = random.integers(1, 3, size=random.integers(1, 4))
    values = supermodular_function(random, heights)
    irreducible = [(a, j) for a, h in enumerate(heights.tolist()) for j in range(1, h + 1)]

    def element(chosen):
        return tuple(max([0, *(j for b, j in chosen if b == a)]) for a in range(len(heights)))

    def below(x):
        return frozenset((a, j) for a, j in irreducible if j <= x[a])

    def gain(v):
        without = below([v[1] - 1 if a == v[0] else h for a, h in enumerate(heights)])
        return max(0, values[element(without | {v})] - values[element(without)])

    c = {v: gain(v) for v in irreducible}
    cube = [frozenset(s) for n in range(len(irreducible) + 1) for s in itertools.combinations(irreducible, n)]
    extended = {s: values[element(s)] - sum(c[v] for v in below(element(s)) - s) for s in cube}
    for one, other in itertools.combinations(cube, 2):
        assert extended[one & other] + extended[one | other] >= extended[one] + extended[other]
    best = max(extended.values())
    assert best == max(values.values())
    assert all(values[element(s)] == best for s in cube if extended[s] == best)


# ---- example 1 of section 3.2 -----------------------------------------------------------------------------


def example_1(n_others: int):
    """Two columns {⊥, a, b1 > b2}: one row (a, a), all others (b2, b2)."""
    tree = Hierarchy.from_tree({"*": {"a": None, "b1": ["b2"]}})
    domains = [
        TreeDomain(Attribute(f"c{i}", Role.QUASI_IDENTIFIER), tree, has_missing=False) for i in range(2)
    ]
    codes = np.array([[0, 0]] + [[1, 1]] * n_others, dtype=np.uint32)
    return problem_of(domains, codes)


def test_example_1_whatever_tells_of_the_lone_row_covers_no_other():
    problem = example_1(5)
    top = tuple(problem.top().tolist())
    for levels in naive.generalizations(problem, 0):
        covered = naive.measure(problem, 0, levels)[0]
        assert covered == (6 if levels == top else 1)


@pytest.mark.parametrize("s", [Fraction(1, 20), Fraction(1, 2), Fraction(3, 5)])
def test_example_1_a_private_mechanism_suppresses_the_lone_row(s):
    """Without the row its boxes are never published, so with it they are with probability delta at most."""
    epsilon, delta = Fraction(1), Fraction(1, 10**6)
    for k0 in (1, 2, plan(epsilon, delta, s).k0):
        with_it, without = (
            naive_sampling.repaired(boxes, s, k0) for boxes in (["raw", "b", "b"], ["b", "b"])
        )
        tells = sum(p for output, p in with_it.items() if any(box == "raw" for box, _ in output))
        assert all(box != "raw" for output in without for box, _ in output)
        assert tells <= naive_sampling.true_delta(with_it, without, epsilon)[1]
        assert tells == (s if k0 == 1 else 0)  # so drawing alone is not private
    assert tells <= plan(epsilon, delta, s).delta
