"""The exact optimum by the cube: cases counted by hand, edges, what it would cost, and all of Adult."""

from __future__ import annotations

import json
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tradeoff_cases import run_plainly, table, wide_problem

from sfumato.errors import InternalError
from sfumato.methods.risk_utility.kernels import cube
from sfumato.methods.risk_utility.optimizers import exact
from sfumato.methods.risk_utility.optimizers.tuples import tuples_of
from sfumato.methods.risk_utility.problem import Lagrangian, LogRisk, Threshold, problem_of, values_of
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.options.risk_utility import Weights

PLACES = Hierarchy.from_tree({"*": {"North": ["a", "b"], "South": ["c", "d"]}})
UNEVEN = Hierarchy.from_tree({"*": {"North": ["a", "b"], "c": None}})
ROOT = Hierarchy(("*",), np.array([-1]))
SEXES = Hierarchy.from_tree({"*": ["f", "m"]})


def solved(case, objective, **options):
    return exact.solve(case, objective, threads=1, **options)


HALF = Threshold(Fraction(1, 2))


def test_the_least_risk_of_a_table_counted_by_hand():
    case = table([PLACES, SEXES], [0, 0], [0, 1], [0, 1], [1, 1], [2, 0], [3, 1])
    found = solved(case, Threshold(Fraction(2, 3)))  # 2 of 3: one step may be lost
    # (a, *) weighs 1 and covers 3 rows; (b, *) covers one only, (North, m) weighs 2 and covers 3.
    assert found.levels.tolist() == [[0, 1], [0, 1], [1, 0], [0, 1], [0, 1]]
    assert found.covered.tolist() == [3, 3, 3, 1, 1]
    assert found.utility.tolist() == [2] * 5
    assert case.risk(found) == pytest.approx([1 / 3, 1 / 3, 2 / 3, 1, 1])
    assert found.is_proved.all()


def test_nothing_but_the_row_itself_is_as_good_as_the_whole_way():
    case = table([PLACES, SEXES], [0, 0], [0, 0], [3, 1])
    found = solved(case, Threshold(Fraction(1)))
    assert found.levels.tolist() == [[0, 0], [0, 0]]
    assert found.covered.tolist() == [2, 1]


def test_a_threshold_of_nothing_suppresses_every_row_whose_roots_weigh_nothing():
    case = table([PLACES, SEXES], [0, 0], [1, 0], [3, 1])
    found = solved(case, Threshold(Fraction(0)))
    assert found.levels.tolist() == [[2, 1]] * 3
    assert case.risk(found).tolist() == [0.0] * 3


def test_of_equal_risks_the_most_utility_wins_and_then_the_least_levels():
    case = table([SEXES, SEXES], [0, 0], weights=Weights("model-2"))
    assert solved(case, Threshold(Fraction(0))).levels.tolist() == [[0, 0]]  # every risk is 1
    case = table([SEXES, SEXES], [0, 0], [0, 1], [1, 0], weights=Weights("model-2"))
    assert solved(case, HALF).levels.tolist() == [
        [0, 1],
        [0, 1],
        [1, 0],
    ]  # the first row might go up in either


def test_a_leaf_of_less_depth_keeps_its_least_level():
    case = table([UNEVEN, SEXES], [0, 0], [2, 0], [2, 1])
    assert solved(case, HALF).levels.tolist() == [[0, 1], [0, 1], [0, 1]]  # c is c at levels 0 and 1


def test_rows_need_utility_by_their_own_depth():
    case = table([UNEVEN], [0], [0], [1], [2])
    assert case.need(Fraction(1)).tolist() == [2, 2, 1]
    assert solved(case, Threshold(Fraction(1))).levels.tolist() == [[0], [0], [0]]
    assert solved(case, HALF).levels.tolist() == [[1], [1], [0]]


def test_one_row_alone():
    case = table([PLACES, SEXES], [1, 1])
    found = solved(case, HALF)
    assert (found.covered.tolist(), len(found)) == ([1], 1)


def test_a_column_that_is_only_a_root_stays_as_it_is():
    case = table([ROOT, PLACES, ROOT], [0, 0, 0], [0, 1, 0])
    found = solved(case, HALF)
    assert found.levels.tolist() == [[0, 1, 0], [0, 1, 0]]
    assert solved(table([ROOT], [0], [0]), HALF).levels.tolist() == [[0]]


def test_a_side_table_that_shares_no_row_with_the_table():
    case = table([PLACES, SEXES], [0, 0], [3, 1], side=[[1, 0], [1, 0], [2, 0]])
    found = solved(case, HALF)
    assert case.own.tolist() == [1, 1]
    # (North, f) weighs 2 and covers (a, f) itself and two more; (d, *) weighs 1 and covers (d, m) alone.
    assert found.levels.tolist() == [[1, 0], [0, 1]]
    assert found.covered.tolist() == [3, 1]


def test_no_row_at_all_is_asked_for():
    found = solved(table([PLACES], [0]), HALF, which=np.zeros(0, dtype=np.int64))
    assert (len(found), found.levels.shape) == (0, (0, 1))


@pytest.mark.parametrize("power", [0, 1, 2, 3])
def test_the_lagrangian_of_every_power(power):
    case = wide_problem(8, floor=1.0)
    objective = Lagrangian(Fraction(case.lambda_0()).limit_denominator(1000), power)
    best = case.value(objective, solved(case, objective))
    every = [case.value(objective, case.solution(np.tile(x, (case.n, 1)))) for x in all_levels(case)]
    assert best == pytest.approx(np.max(every, axis=0), rel=1e-12)
    if power == 0:  # 1/r never falls towards the root
        assert np.all(solved(case, objective).levels == case.top())


def test_values_that_differ_by_rounding_alone_are_ties():
    aim = cube.Aim(cube.LOG_RISK, 1.0, 0, 1.0, 1.0)
    best = one_best(0.1 + 0.2, 7)
    for value, utility, kept in ((0.3, 8, 8), (0.1 + 0.2, 8, 8), (0.3 + 1e-9, 2, 2), (0.3, 9, 2)):
        cube.keep_better(aim, best, one_best(value, utility))
        assert best.utility.tolist() == [[kept]]


def test_risks_that_floats_cannot_tell_apart_are_told_apart():
    covered, weight = 2**28 - 1, 2**33 + 5
    other_covered = pow(weight, -1, covered)
    other_weight = (weight * other_covered - 1) // covered  # less risky, by 1 / (covered * other_covered)
    assert weight / covered == other_weight / other_covered
    aim = cube.Aim(cube.THRESHOLD, 0.0, 0, 1.0, 1.0)
    best, other = (one_best(0.0, 1, *risk) for risk in ((weight, covered), (other_weight, other_covered)))
    cube.keep_better(aim, best, other)
    assert best.weight.tolist() == [[other_weight]]
    cube.keep_better(aim, best, one_best(0.0, 9, weight, covered))
    assert best.weight.tolist() == [[other_weight]]


def one_best(value, utility, weight=1, covered=1):
    one = np.ones((1, 1), dtype=np.int64)
    return cube.Best(one * weight, (one * covered).astype(np.int32), one * utility, one, one * value)


def all_levels(case):
    return np.array(list(np.ndindex(*case.lattice.n_levels)), dtype=np.uint8)


# ---- what changes nothing -------------------------------------------------------------------------------


def test_the_order_of_rows_changes_nothing():
    rows = np.random.default_rng(3).integers(0, 3, (40, 3))
    order = np.random.default_rng(4).permutation(40)
    case, other = table([UNEVEN] * 3, *rows), table([UNEVEN] * 3, *rows[order])
    for objective in (HALF, Threshold(Fraction(4, 5))):
        found, again = solved(case, objective), solved(other, objective)
        assert found.levels[case.of_row][order].tolist() == again.levels[other.of_row].tolist()


def test_personal_weights_of_1_are_no_weights_of_ones_own():
    plain = wide_problem(16, n_columns=4)
    alike = wide_problem(16, n_columns=4, factor=np.ones((60, 4)))
    found, again = solved(plain, HALF), solved(alike, HALF)
    assert found.levels[plain.of_row].tolist() == again.levels.tolist()


def test_progress_is_told_and_threads_are_as_many_as_memory_holds(monkeypatch):
    case = wide_problem(16, n_columns=4)
    told = []
    many = exact.solve(case, HALF, threads=2, progress=lambda *words: told.append(words))
    assert [words[1:] for words in told] == [(done, 27) for done in range(28)]  # 3 columns of 3 levels
    assert told[-1][0] == "generalizing"
    monkeypatch.setattr(exact, "free_memory", lambda: 0)
    assert exact.solve(case, HALF).levels.tolist() == many.levels.tolist()


SMALL = """
import json
from fractions import Fraction
from tradeoff_cases import wide_problem
from sfumato.methods.risk_utility.optimizers import exact
from sfumato.methods.risk_utility.problem import LogRisk, Threshold
import numpy as np

found = []
for factor in (None, np.full((6, 2), 2.5)):
    case = wide_problem(8, n_rows=6, n_columns=2, floor=1.0, factor=factor)
    for objective in (Threshold(Fraction(1, 2)), LogRisk(Fraction(1))):
        found.append(exact.solve(case, objective, threads=1).levels.tolist())
    found.append(exact.estimate_tuples(case, objective))
print(json.dumps(found))
"""


def test_the_cube_is_plain_python_too_with_the_same_results(capsys):
    exec(SMALL, {})
    compiled = json.loads(capsys.readouterr().out)
    assert json.loads(run_plainly(SMALL)) == compiled


# ---- what it costs, and what it refuses -----------------------------------------------------------------


def made(case, objective):
    """The tuples and seekers that are really made at level vectors with enough utility."""
    tuples = tuples_of(case, objective, np.arange(case.n))
    scratch, out, total = tuples.scratch(lines=2), np.zeros(2, dtype=np.int64), 0
    for levels in all_levels(case).astype(np.int64):
        cube.count_at(tuples.cube, tuples.seeking, tuples.mode, scratch, levels, out)
        total += int(out[0]) if out[1] else 0
    return total


@pytest.mark.parametrize("share", ["0", "1/2", "4/5"])
@pytest.mark.parametrize("utility", ["depth", "log"])
@pytest.mark.parametrize("kind", ["plain", "personal", "external"])
def test_the_number_of_tuples_is_told_before_they_are_made(share, utility, kind):
    options = {"utility": utility, "n_rows": 200, "n_columns": 5}
    if kind == "personal":
        options["factor"] = np.full((200, 5), 1.5)
    if kind == "external":
        options["side"] = wide_problem(16, n_rows=100, n_columns=5, seed=1).rows
    case, objective = wide_problem(16, **options), Threshold(Fraction(share))
    assert exact.estimate_tuples(case, objective) == pytest.approx(made(case, objective), rel=0.35)


def test_the_search_makes_what_was_counted_and_the_first_that_are_given_up():
    case, objective = wide_problem(16, n_columns=4), Threshold(Fraction(0))  # nothing is given up
    tuples = tuples_of(case, objective, np.arange(case.n))
    none = np.zeros(0, dtype=np.int64)
    found = cube.search(
        tuples.cube, tuples.aim, tuples.seeking, tuples.mode, tuples.scratch(), tuples.best(), none
    )
    assert found == made(case, objective)


def test_columns_of_too_many_values_are_refused_and_cost_infinitely_much():
    values = Hierarchy.from_tree({"*": [str(i) for i in range(60)]})
    rows = np.tile(np.arange(60)[:, None], (1, 11))
    case = table([values] * 11, *rows)  # 61 nodes: 6 bits each, 66 in all
    assert exact.estimate_tuples(case, HALF) == float("inf")
    with pytest.raises(InternalError, match="too many values"):
        solved(case, HALF)
    assert np.isfinite(exact.estimate_tuples(table([values] * 10, *rows[:, :10]), HALF))
    assert np.isfinite(
        exact.estimate_tuples(table([values] * 11, *rows[:20]), HALF)
    )  # values that occur count, no others


@pytest.mark.parametrize("objective", [Lagrangian(Fraction(1)), LogRisk(Fraction(1))])
@pytest.mark.parametrize("factor", [None, np.ones((2, 1))])
def test_weights_of_nothing_cannot_be_divided_by(objective, factor):
    with pytest.raises(InternalError, match="floor"):
        solved(table([PLACES], [0], [1], factor=factor), objective)


# ---- Adult ----------------------------------------------------------------------------------------------

sys.path.insert(0, str(Path(__file__).resolve().parents[5] / "reproduction"))


@pytest.fixture(scope="module")
def adult(data_folder):
    from lab import tradeoff_tables

    return tradeoff_tables.adult()


def covered_by_all(case, row):
    """Rows covered at every level vector: a histogram of least common levels, added up along each column."""
    shape = tuple(case.lattice.n_levels.tolist())
    least = np.zeros(case.side.shape, dtype=np.int64)
    for a, n_levels in enumerate(shape):
        for level in range(n_levels - 1, -1, -1):
            node = case.nodes_of(
                np.array([row]), np.full((1, len(shape)), level).clip(max=np.array(shape) - 1)
            )
            low, high = case.lattice.low[node[0, a]], case.lattice.high[node[0, a]]
            least[(case.side[:, a] >= low) & (case.side[:, a] < high), a] = level
    counts = np.bincount(np.ravel_multi_index(least.T, shape), case.side_count, int(np.prod(shape)))
    counts = counts.reshape(shape).astype(np.int64)
    for a in range(len(shape)):
        counts = np.cumsum(counts, axis=a)
    return counts.ravel() + case.own[row]


def best_of_all(case, objective, row, every):
    """The best level vector of one row, looking at all of them."""
    covered, which = covered_by_all(case, row), np.full(len(every), row)
    weight, utility = case.weight_of(which, every), case.utility_of(which, every)
    if isinstance(objective, Threshold):
        ok = np.flatnonzero(utility >= case.need(objective.at_least)[row])
        best = min(ok.tolist(), key=lambda i: (Fraction(int(weight[i]), int(covered[i])), -utility[i], i))
    else:
        value = values_of(objective, covered, weight * case.weight_unit, utility * case.utility_unit)
        tied = np.flatnonzero(value >= value.max() - 1e-12 * abs(value.max()))
        best = min(tied.tolist(), key=lambda i: (-utility[i], i))
    return every[best].tolist(), int(covered[best]), int(weight[best]), int(utility[best])


@pytest.mark.data
@pytest.mark.parametrize(
    "kind", ["threshold", "log utility", "personal", "half of it public", "log-risk", "lagrangian"]
)
def test_all_rows_of_adult_at_once_and_a_dozen_one_by_one(adult, kind):
    domains, codes = adult
    options: dict[str, Any] = {"weights": Weights("harmonic")}
    objective: Threshold | LogRisk | Lagrangian = Threshold(Fraction(3, 5))
    if kind == "log utility":
        options["utility"] = "log"
    elif kind == "personal":
        options["factor"] = np.random.default_rng(5).choice([0.5, 1.0, 4.0], size=codes.shape)
    elif kind == "half of it public":
        codes, options["side"] = codes[::2], codes[1::2]
    elif kind != "threshold":
        options["floor"] = 1.0
        objective = LogRisk(Fraction(1)) if kind == "log-risk" else Lagrangian(Fraction(1, 100))
    case = problem_of(domains, codes, **options)
    found = exact.solve(case, objective, threads=2)
    assert len(found) == case.n
    every = all_levels(case)
    for row in np.random.default_rng(6).choice(case.n, 12, replace=False).tolist():
        one = found.levels[row].tolist(), found.covered[row], found.weight[row], found.utility[row]
        assert one == best_of_all(case, objective, row, every)


@pytest.mark.data
def test_what_adult_costs_is_counted_within_a_third(adult):
    domains, codes = adult
    case, objective = problem_of(domains, codes, weights=Weights("harmonic")), Threshold(Fraction(0))
    assert exact.estimate_tuples(case, objective) == pytest.approx(20.2e6, rel=0.33)
