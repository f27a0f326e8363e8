"""What [FEB12] has wrong: each test shows first that the printed statement fails on an example, then that ours holds.

The page is docs/risk-utility-paper.md; the last test checks that every test that it names exists.
"""

from __future__ import annotations

import ast
import itertools
import math
import re
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import naive_sampling
import naive_tradeoff as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tradeoff_cases import lagrangians, problems, table

from sfumato.errors import PolicyError
from sfumato.methods.risk_utility import model
from sfumato.methods.risk_utility.paper import approximation, exponential
from sfumato.methods.risk_utility.problem import Lagrangian, LogRisk, Threshold
from sfumato.policy.document import Policy
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.options.risk_utility import Weights
from sfumato.policy.schema import Attribute, Role

ROOT = Path(__file__).parents[2]
TWO = Hierarchy.from_tree({"*": ["A", "B"]})
TIME = Hierarchy.from_tree({"*": ["morning", "evening"]})
PLACE = Hierarchy.from_tree({"*": {"North": ["a", "b"], "South": ["c", "d"]}})


# ---- section 2.1: the model -------------------------------------------------------------------------------


def test_a_chain_from_0_to_h_has_h_plus_1_elements():
    """2.1.2: "C_i := {0, 1, 2, ..., h_i}, where h_i = |C_i|"."""
    problem = table([PLACE], [0])
    chain = [levels[0] for levels in naive.generalizations(problem, 0)]
    height = chain[-1]
    assert chain == list(range(height + 1))
    assert len(chain) != height
    assert problem.lattice.n_levels[0] == height + 1 == len(chain)


def test_a_row_that_the_side_table_lacks_has_no_risk_by_the_definition():
    """2.1.2: r = Phi / |rho(x, Theta)|, for a row a and "the side database Theta", which need not hold a."""
    problem = table([TWO], [0], side=[1, 1])
    rho = sum(code == 0 for code in problem.side.ravel())
    with pytest.raises(ZeroDivisionError):
        Fraction(1, int(rho))
    found = problem.solution(np.array([[0], [1]], dtype=np.uint8), which=np.array([0, 0]))
    assert found.covered.tolist() == [1, 3]  # the person is one of the population


def test_an_absolute_threshold_is_out_of_reach_of_a_leaf_of_less_depth():
    """Definition 1: "subject to u(x) >= c, where c in R+ is a given parameter"."""
    uneven = Hierarchy.from_tree({"*": {"North": ["a", "b"], "c": None}})
    problem = table([uneven], [0], [2])
    utilities = [
        [naive.measure(problem, row, x)[2] for x in naive.generalizations(problem, row)] for row in (0, 1)
    ]
    c = 2
    assert max(utilities[0]) >= c > max(utilities[1])  # no generalization of the second row will do
    need = problem.need(Fraction(1))
    assert [max(part) >= least for part, least in zip(utilities, need, strict=True)] == [True, True]


def test_the_weight_of_the_top_is_zero_and_the_lagrangian_divides_by_it():
    """2.1.2 (Model I) and 4.1 (harmonic): the root weighs 0. 2.3.2, (4): lambda / r; 3.1: phi_l <= Phi for all x."""
    for weights in (Weights("model-1"), Weights("harmonic")):
        problem = table([TWO], [0], [0], [1], weights=weights)
        covered, weight, _ = naive.measure(problem, 0, (1,))
        assert weight == 0
        with pytest.raises(ZeroDivisionError):
            naive.worth(problem, Lagrangian(Fraction(1)), covered, weight, 0)
        assert (
            naive.best(problem, Threshold(Fraction(0)), 0)[0] == 0
        )  # the threshold form is fine: suppressed
        floored = table([TWO], [0], [0], [1], weights=weights, floor=0.1)
        values = [
            naive.worth(floored, Lagrangian(Fraction(1)), *naive.measure(floored, 0, x)) for x in ((0,), (1,))
        ]
        assert all(value > 0 for value in values)
    with pytest.raises(PolicyError, match="add a floor"):
        Policy.parse(
            "attributes: {c: {role: quasi-identifier, hierarchy: {tree: {'*': [A, B]}}}}\n"
            "method: {risk-utility: {objective: lagrangian, lambda: 1}}\n"
        )


def test_the_harmonic_mean_divides_by_a_weight_of_zero():
    """4.1: "w_p = 1 / sum 1 / w_i", with "the exception" of the root alone."""
    children = [0, 1]
    with pytest.raises(ZeroDivisionError):
        1 / sum(Fraction(1, w) for w in children)
    weights = Weights("harmonic", {"c0": {"a": 0.0}})
    found = model.weights(Attribute("c0", Role.QUASI_IDENTIFIER), PLACE, weights, n_columns=1)
    names = {label: i for i, label in enumerate(PLACE.labels)}
    assert found[names["North"]] == 0  # as w -> 0 does
    assert found[names["South"]] == 0.5


def test_definition_1_leaves_ties_open():
    """Model II, every row alike in both columns: all generalizations have one risk. Ours: most utility, least levels."""
    problem = table([TWO, TWO], [0, 0], [0, 0], weights=Weights("model-2"))
    risks = {
        Fraction(m[1], m[0])
        for m in (naive.measure(problem, 0, x) for x in naive.generalizations(problem, 0))
    }
    assert len(risks) == 1  # "the generalization that minimizes r(x)" is any of four
    found = approximation.solve(problem, Threshold(Fraction(1, 2)))
    assert found.levels.tolist() == [[0, 0]]


# ---- section 2.3 ------------------------------------------------------------------------------------------


def printed_increasing(values) -> bool:
    return all(values[x] <= values[y] for x, y in itertools.permutations(values, 2) if naive.is_above(x, y))


def is_increasing(values) -> bool:
    return all(values[x] >= values[y] for x, y in itertools.permutations(values, 2) if naive.is_above(x, y))


def test_definition_2_prints_one_inequality_for_both_directions():
    """ "increasing ... if f(x) <= f(x') whenever x >= x', and decreasing ... if f(x) <= f(x') whenever x >= x'"."""
    problem = table([PLACE], [0], [1], [2])
    measured = {x: naive.measure(problem, 0, x) for x in naive.generalizations(problem, 0)}
    covered = {x: m[0] for x, m in measured.items()}
    assert not printed_increasing(covered)  # proposition 2 (i) says that it is
    assert is_increasing(covered)
    assert printed_increasing({x: m[2] for x, m in measured.items()})  # utility, which falls
    assert is_increasing({x: -m[2] for x, m in measured.items()})


def irreducibles(heights):
    return [
        tuple(j if i == a else 0 for i in range(len(heights)))
        for a, h in enumerate(heights)
        for j in range(1, h + 1)
    ]


def is_ring_family(family) -> bool:
    return all(x | y in family and x & y in family for x, y in itertools.combinations(family, 2))


def test_the_sets_of_2_3_3_do_not_tell_elements_apart():
    """ "S(x) := {y in J : y >= x}", "g(S(x)) = f(x)" and "F = {S(x)}" is a ring family."""

    def printed(x, heights):
        return frozenset(y for y in irreducibles(heights) if naive.is_above(y, x))

    def ours(x, heights):
        return frozenset(y for y in irreducibles(heights) if naive.is_above(x, y))

    assert printed((0,), (1,)) == printed((1,), (1,))  # raw and suppressed: g is not defined
    cube = list(itertools.product((0, 1), repeat=3))
    assert not is_ring_family({printed(x, (1, 1, 1)) for x in cube})
    for heights in ((1,), (2,), (1, 1, 1), (2, 3)):
        elements = list(itertools.product(*(range(h + 1) for h in heights)))
        family = {ours(x, heights) for x in elements}
        assert len(family) == len(elements)
        assert is_ring_family(family)


def skewed_table(**options):
    """60 rows of three columns of uneven depth, most of them alike."""
    tree = Hierarchy.from_tree(
        {"*": {"a": {"b": ["c", "d"], "e": ["f", "g"]}, "h": ["i", "j", "k"], "l": None}}
    )
    random = np.random.default_rng(0)
    return table([tree] * 3, *(tree.n_leaves * random.random((60, 3)) ** 2).astype(int).tolist(), **options)


def test_the_lagrangian_is_raw_or_suppressed_where_log_risk_is_between():
    """2.3.2: lambda and kappa "control how much importance to give to utility maximization/risk minimization". A finding,
    no error: they choose between two generalizations only. kappa = 0 always suppresses."""
    problem = skewed_table(weights=Weights("harmonic"), floor=1.0)
    top = tuple(problem.top().tolist())
    lambda_0 = problem.lambda_0()
    rows = range(0, problem.n, 5)

    def interior(objective) -> int:
        found = [naive.best(problem, objective, row) for row in rows]
        ends = [{naive.measure(problem, row, x)[2] for x in ((0, 0, 0), top)} for row in rows]
        return sum(utility not in end for (_, utility, _), end in zip(found, ends, strict=True))

    for times in (0.3, 0.9, 1, 1.1, 3):
        assert interior(Lagrangian(Fraction(lambda_0 * times))) == 0
    assert interior(LogRisk(Fraction(3, 2))) > len(rows) / 2
    for row in rows:
        worth = naive.best(problem, Lagrangian(Fraction(1), power=0), row)[0]
        assert worth == naive.worth(
            problem, Lagrangian(Fraction(1), power=0), *naive.measure(problem, row, top)
        )


@given(problems(max_columns=3, max_rows=8, floor=True), st.data())
@settings(max_examples=60, deadline=None)
def test_the_lagrangian_is_supermodular_itself(problem, data):
    """3.4: "The function f^a is not necessarily supermodular", hence the layers. It is: 1 / Phi is supermodular and
    rises, as |rho| does, and so does the product of two such functions."""
    objective = data.draw(lagrangians(problem))
    values = {x: naive.worth(problem, objective, *naive.measure(problem, 0, x)) for x in
              naive.generalizations(problem, 0)}  # fmt: skip
    assert naive.is_supermodular(values)


# ---- section 2.4 ------------------------------------------------------------------------------------------


def test_theorem_3_has_no_bound_where_a_risk_of_zero_is_allowed():
    """ "E[1/r] >= 1 / (sigma_2 (1 + epsilon) z*)"; the proof takes tau_(i-1) <= Phi(x*), but all tau are above 0."""
    problem = table([TWO, TWO], [0, 0], [1, 1])
    c = Threshold(Fraction(0))
    z = -naive.best(problem, c, 0)[0]
    with pytest.raises(ZeroDivisionError):
        1 / z
    least, _ = approximation.chains_of(problem, 0).weight_bounds()
    assert least > 0 == naive.measure(problem, 0, (1, 1))[1]
    found = approximation.solve(problem, c)
    assert (found.weight.tolist(), found.is_proved.tolist()) == ([0, 0], [True, True])


# ---- section 2.5 ------------------------------------------------------------------------------------------


def unequal():
    """Time tells 3 or 0, place 2, 1 or 0; 9 rows share the row's place, in the evening. Model II: Phi = 1."""
    return table(
        [TIME, PLACE], [0, 0], *[[1, 0]] * 9, [0, 1], [0, 2], [0, 3],
        utility={"c0": (0.0, 3.0)}, weights=Weights("model-2"),
    )  # fmt: skip


def test_a_frontier_node_by_the_paper_may_have_a_safer_feasible_parent():
    """2.5: "a feasible node that has at least one infeasible immediate parent"."""
    problem = unequal()
    need = 2
    measured = {x: naive.measure(problem, 0, x) for x in naive.generalizations(problem, 0)}
    feasible = {x for x, m in measured.items() if m[2] >= need}
    printed = {x for x in feasible if set(naive.parents(x, (1, 2))) - feasible}
    ours = {x for x in feasible if not set(naive.parents(x, (1, 2))) & feasible}
    assert printed - ours == {(0, 1)}  # a path that ends at (0, 1) has passed (0, 2) by
    risk = {x: Fraction(measured[x][1], measured[x][0]) for x in feasible}
    assert risk[0, 2] < risk[0, 1]
    for x in feasible:
        assert any(naive.is_above(y, x) and risk[y] <= risk[x] for y in ours)  # nothing is lost


def test_there_is_no_frontier_by_the_paper_where_everything_is_feasible():
    """2.5: "the optimal node is a frontier node that has the least risk"."""
    problem = table([TWO], [0], [1])
    feasible = set(naive.generalizations(problem, 0))  # c = 0
    assert {x for x in feasible if set(naive.parents(x, (1,))) - feasible} == set()
    assert {x for x in feasible if not set(naive.parents(x, (1,))) & feasible} == {(1,)}
    assert naive.best(problem, Threshold(Fraction(0)), 0)[2] == (1,)


def test_a_rank_by_utility_prefers_the_riskier_of_two_frontier_nodes():
    """2.5, selection: "a rank to each solution that is in direct proportion to its utility"."""
    problem = unequal()
    one, other = (naive.measure(problem, 0, x) for x in ((0, 2), (1, 0)))
    assert one[2] > other[2] >= 2
    assert Fraction(one[1], one[0]) > Fraction(other[1], other[0])
    assert naive.best(problem, Threshold(Fraction(2, 5)), 0)[2] == (1, 0)  # ours ranks by risk


# ---- section 3: what is asked of a private algorithm ------------------------------------------------------


def test_definition_4_bounds_the_bad_outputs_under_one_of_two_neighbours_only():
    """Definition 4: (7) holds "with probability >= 1 - delta"; claim 3 bounds Pr[A(D) in bad], never Pr[A(D-) in bad]."""
    half = Fraction(1, 2)
    with_a, without_a = {("x",): Fraction(1)}, {("x",): half, ("o",): half}
    factor = Fraction(2)  # e^epsilon, epsilon = ln 2
    bad = {o for o, p in without_a.items() if not 1 / factor <= with_a.get(o, 0) / p <= factor}
    assert bad == {("o",)}
    assert sum(with_a.get(o, 0) for o in bad) == 0  # so it is (ln 2, 0)-private as the proof reads it
    assert naive_sampling.excess(with_a, without_a, factor) == 0
    assert (
        naive_sampling.excess(without_a, with_a, factor) == half
    )  # "o" tells for certain that the row is not there


def test_the_cover_of_a_row_that_is_not_sampled_has_no_utility():
    """3.3: "Clearly, the output of the algorithm satisfies (C1) (or (C1') for the threshold version)"."""
    problem = table([TWO], [0])
    beta, c = 0.5, 1
    published = {(): beta, ((0,),): 1 - beta}  # beside ⊥', of a table of one row, with t = 1
    covers = {
        output: max([0, *(naive.measure(problem, 0, x)[2] for x in output)]) for output in published
    }  # ⊥' has utility 0
    failing = sum(chance for output, chance in published.items() if covers[output] < c)
    assert failing == beta  # (C1') asks for u >= c with probability 1
    for rows in (
        [[0]],
        [[0], [1]],
        [[1], [1], [1]],
    ):  # and (C1) is satisfied by {⊥'} alone, whatever the table
        every = table([TWO], *rows)
        assert all(naive.measure(every, row, (1,))[0] == len(rows) for row in range(every.n))


def test_a_threshold_may_leave_nothing_to_sample_from():
    """Algorithm 3, step 5: "sample x in a+ and {g in L' : u(g) >= c}"."""
    problem = table([TWO], [0], [1], [1])
    measured = {x: naive.measure(problem, 0, x) for x in naive.generalizations(problem, 0)}
    t, c = 2, 1
    assert [x for x, m in measured.items() if m[0] >= t and m[2] >= c] == []
    assert [x for x, m in measured.items() if m[0] >= t] == [(1,)]  # all that is left is to suppress the row


def test_the_frequent_elements_are_no_sublattice():
    """Algorithm 3, step 1: "find the sublattice L' of t-frequent elements"."""
    problem = table([TWO, TWO], [0, 0], [0, 1], [1, 0])
    frequent = {x for x in naive.generalizations(problem, 0) if naive.measure(problem, 0, x)[0] >= 2}
    assert {(0, 1), (1, 0)} <= frequent
    assert (0, 0) not in frequent  # their meet
    assert all(tuple(map(max, x, y)) in frequent for x, y in itertools.combinations(frequent, 2))  # joins are


def test_the_chances_of_equation_9_do_not_add_up_over_the_frequent_elements():
    """Step 5 samples "x in a+ and L' with prob. q(x)", but (9) divides by the sum over all of a+."""
    problem = table([TWO], [0], [0], [1], [1])
    scores = dict.fromkeys(naive.generalizations(problem, 0), 0.0)
    frequent = [x for x in scores if naive.measure(problem, 0, x)[0] >= 3]
    q = {x: math.exp(scores[x]) / sum(map(math.exp, scores.values())) for x in scores}
    assert sum(q[x] for x in frequent) == 0.5
    q = {x: math.exp(scores[x]) / sum(math.exp(scores[y]) for y in frequent) for x in frequent}
    assert sum(q.values()) == 1


# ---- theorem 4 --------------------------------------------------------------------------------------------


EQUATION_10 = {"delta": 1e-6, "beta": 0.5, "tau_1": 0.5, "k": 8, "h": 4}
SPREAD = (1 + math.log(0.5)) / (6 * 0.5)
"""e' f_max / m at epsilon 1, by step 2 and 3.1."""


def i_3_less_i_1(t: float) -> float:
    """Of (20) and (17) at epsilon 1, in units of m / (2 epsilon' eta)."""
    beta, tau, k, h = (EQUATION_10[name] for name in ("beta", "tau_1", "k", "h"))
    inside = (1 / beta - 1) * (1 - tau) * beta * t
    return math.log(inside) + 1 - k * math.log(h) - SPREAD - (1 + math.log(beta))


def test_equation_10_needs_h_to_the_k():
    """(10) prints h^kappa; claim 3 says "by the choice of t, min{i_1, i_2, i_3} = i_1"."""
    delta, beta, tau, k, h = EQUATION_10.values()
    kappa = 1
    printed = max(
        2 / (beta * tau**2) * (math.log(2 / delta) + k * math.log(h)),
        beta * h**kappa * math.exp(SPREAD) / ((1 - beta) * (1 - tau)),
    )
    assert i_3_less_i_1(printed) < -1
    assert i_3_less_i_1(exponential.equation_10(**EQUATION_10, spread=SPREAD)) == pytest.approx(0)


def test_a_row_has_more_than_h_to_the_k_generalizations():
    """(25): Pr[g = x] >= 1 / (h^k e^...), h being "the maximum possible height"."""
    problem = table([TWO, TWO], [0, 0])
    n, h, k = len(list(naive.generalizations(problem, 0))), 1, 2
    chance = 1 / n  # all scores alike: the exponential is 1
    assert chance < 1 / h**k
    assert chance >= 1 / (h + 1) ** k


def outputs(codes, chosen, objective, *, t, working):
    """The chance of each output of Algorithm 3, as a multiset, if just these rows of the table are drawn."""
    problem = table([TWO], *([code] for code in codes), floor=1.0)
    laws = []
    for row in chosen:
        one = int(problem.of_row[row])
        found = exponential.Generalizations.of(problem, one)
        chance = exponential.chances(problem, one, objective, found, t=t, working=working)
        laws.append(list(zip(("AB"[codes[row]], "*"), chance.tolist(), strict=True)))
    total: Counter[tuple[Any, ...]] = Counter()
    for picked in itertools.product(*laws):
        total[tuple(sorted(x for x, _ in picked))] += math.prod(p for _, p in picked)
    return total


def test_p_1_and_p_2_are_swapped():
    """(15) sums over sets that hold a_0, (16) over those that do not; claims 1 and 2 use them the other way round.

    They say of all outputs of i rows that P_1 is beta Pr[A(D-) = G] but for a factor e^(2 epsilon' eta i / m).
    """
    codes, beta, t, objective = [0, 0, 0, 1, 1], 0.5, 2, Lagrangian(Fraction(3))
    given = exponential.parameters(
        table([TWO], *([code] for code in codes), floor=1.0), objective, epsilon=1.0, delta=1e-6, beta=beta
    )
    m, a_0 = len(codes), 0
    everything = 0.0
    for i in range(m + 1):
        with_it: Counter[Any] = Counter()
        without_it: Counter[Any] = Counter()
        less: Counter[Any] = Counter()
        share = (1 - beta) ** i * beta ** (m - i)
        for chosen in itertools.combinations(range(m), i):
            found = outputs(codes, chosen, objective, t=t, working=given.working)
            of = with_it if a_0 in chosen else without_it
            of.update({output: share * chance for output, chance in found.items()})
        for chosen in itertools.combinations(range(m - 1), i):
            found = outputs(codes[1:], chosen, objective, t=t, working=given.working)
            less.update({output: share / beta * chance for output, chance in found.items()})
        everything += sum(with_it.values()) + sum(without_it.values())
        factor = math.exp(2 * given.working * given.eta * i / m) * (1 + 1e-12)
        for output, chance in less.items():
            assert beta * chance / factor <= without_it[output] <= beta * chance * factor
        if i == 1:
            assert with_it["B",] == 0 < beta * less["B",]  # as printed: a_0 is no B
            assert without_it["B",] != beta * less["B",]  # the factor is needed: what B gets depends on a_0
    assert everything == pytest.approx(1)  # (14): P_1 and P_2 together are Pr[A(D) = G]


def upper_tail(n: int, p: float, above_: float) -> float:
    return sum(math.comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(n + 1) if j > above_)


def test_the_chernoff_bound_of_claim_3_has_the_wrong_sign():
    """Printed: (e^(-tau) / (1 + tau)^(1 + tau))^((1 - beta) m); step 2's epsilon' makes tau_2 = 1/2."""
    m, share, tau = 100, 0.1, 0.5
    tail = upper_tail(m, share, (1 + tau) * m * share)
    assert tail > (math.exp(-tau) / (1 + tau) ** (1 + tau)) ** (share * m)
    assert tail <= (math.exp(tau) / (1 + tau) ** (1 + tau)) ** (share * m)


# ---- section 3.4 ------------------------------------------------------------------------------------------


def test_the_rows_below_an_element_lie_inside_its_set():
    """3.4: "T(X) = |{S(a) : a in D and S(a) contains X}|" should be |rho|, the rows that x covers."""
    rows = [
        frozenset(),
        frozenset({1}),
    ]  # one column of one step: the row itself needs nothing, the other the step
    elements = {(0,): frozenset(), (1,): frozenset({1})}
    problem = table([TWO], [0], [1])
    covered = {x: naive.measure(problem, 0, x)[0] for x in elements}
    assert {x: sum(row >= s for row in rows) for x, s in elements.items()} == {(0,): 2, (1,): 1} != covered
    assert {x: sum(row <= s for row in rows) for x, s in elements.items()} == {(0,): 1, (1,): 2} == covered


def layer_of(weight: float, width: float, least: float) -> int:
    return math.floor(math.log(weight / least) / math.log1p(width))


def test_layers_that_begin_at_1_miss_every_small_weight():
    """3.4: the layers are "(1 + e)^i <= Phi <= (1 + e)^(i + 1)", i = 0 .. log(phi_u / phi_l)."""
    problem = table([TWO], [0], [1], weights=Weights("model-1", {"c0": 0.25}), floor=0.25)
    weights = [naive.measure(problem, 0, x)[1] * problem.weight_unit for x in ((0,), (1,))]
    assert weights == [0.5, 0.25]
    assert all(layer_of(weight, 0.5, least=1.0) < 0 for weight in weights)
    last = math.ceil(math.log(0.5 / 0.25) / math.log(1.5))
    assert all(0 <= layer_of(weight, 0.5, least=0.25) <= last for weight in weights)


def test_layers_drawn_evenly_are_another_law_than_equation_9():
    """Algorithm 4, step 2: "pick i in {0, 1, ..., U} at random"; all scores alike, (9) is even over a+."""
    weights = {0: 4.0, 1: 4.0, 2: 4.0, 3: 1.0}  # by level
    layers = {level: layer_of(weight, 0.9, least=1.0) for level, weight in weights.items()}
    held = set(layers.values())
    chance = {level: 1 / len(held) / list(layers.values()).count(layer) for level, layer in layers.items()}
    assert chance[3] == 0.5 != 1 / len(weights)
    by_size = {
        level: list(layers.values()).count(layer) / len(weights) / list(layers.values()).count(layer)
        for level, layer in layers.items()
    }
    assert set(by_size.values()) == {0.25}


def rounded(covered, step: float, least: float):
    """Steps 4 to 6 of Algorithm 4 on one column of one step: the chance of each level, given the point."""
    chance = {0: 1 - step, 1: step}
    kept = {level: p for level, p in chance.items() if covered[level] >= least}
    return {level: kept.get(level, 0.0) / sum(kept.values()) for level in chance}


def test_what_is_rounded_depends_on_the_table():
    """Proof of lemma 3: "this probability is independent of D". The test of step 6 is left out."""
    theta, sigma, point = 0.105, 0.91, 0.5
    laws = {}
    for n_alike in (10, 9):
        n = 90 + n_alike
        covered = {0: n_alike, 1: n}
        assert (1 - point) * n_alike + point * n >= theta * n  # the point is in the body for both tables
        laws[n_alike] = rounded(covered, point, sigma * theta * n)
    assert laws == {10: {0: 0.5, 1: 0.5}, 9: {0: 0.0, 1: 1.0}}


def test_the_calls_until_acceptance_are_the_reciprocal_of_the_wrong_chance():
    """ "Running time": "the expected number of calls ... is at most (1 - theta sigma) / (1 - theta)", which is one over
    the bound on *rejection*."""
    theta, sigma, n, n_alike = 0.1, 0.9, 100, 8
    step = (theta * n - n_alike) / (n - n_alike)  # the extension at this point is exactly t
    accepted = rounded({0: n_alike, 1: n}, step, 0)[1]
    assert n_alike < sigma * theta * n
    n_calls = 1 / accepted
    assert n_calls == pytest.approx(46)
    assert n_calls > (1 - theta * sigma) / (1 - theta)  # 1.01
    assert n_calls <= (1 - theta * sigma) / (theta * (1 - sigma))  # 91


# ---- the page ---------------------------------------------------------------------------------------------


def test_every_test_that_the_page_names_exists():
    page = (ROOT / "docs" / "risk-utility-paper.md").read_text(encoding="utf-8")
    named = set(re.findall(r"(tests/[\w/]+\.py)::(test_\w+)", page))
    assert len(named) > 20
    for file in {file for file, _ in named}:
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        there = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        assert {test for where, test in named if where == file} <= there
    own = {node.name for node in ast.parse(Path(__file__).read_text(encoding="utf-8")).body
           if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}  # fmt: skip
    here = {test for where, test in named if where.endswith(Path(__file__).name)}
    assert own - here == {"test_every_test_that_the_page_names_exists"}  # and every error is on the page
