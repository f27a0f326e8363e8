"""[FEB12], section 2.5: paths in the lattice, and the operators of Algorithm 2 (Figures 4 to 7).

Columns are numbered from 1, as in the paper. The pictures are not in the text that we have, so Figures 5 to 7 are told
by lattices of our own on which the operator can do what its sentence says, and nothing else.
"""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.methods.risk_utility.kernels.neighbours import Steps
from sfumato.methods.risk_utility.paper.kernels.genes import (
    Members,
    draw_by_utility,
    fill_crossover,
    fill_mutant,
    fill_path,
)

UNDEFINED = np.iinfo(np.uint16).max


def lattice(*utilities: tuple[int, ...]) -> Steps:
    """The steps of a row whose columns have these utilities, from the root's to the value's own."""
    longest = max(map(len, utilities))
    loss = np.zeros((len(utilities), longest), dtype=np.int64)
    for a, chain in enumerate(utilities):
        loss[a, : len(chain)] = [chain[-1] - utility for utility in reversed(chain)]
    n = np.array([len(chain) for chain in utilities], dtype=np.int64)
    nothing = np.zeros_like(loss)
    return Steps(n, nothing.astype(np.uint8), loss, nothing, nothing, nothing)


def path(text: str):
    return np.array([int(digit) - 1 for digit in text], dtype=np.uint16)


def text(genes) -> str:
    return "".join(str(gene + 1) for gene in genes.tolist())


def counter(seed: int):
    """Counters of neighbouring seeds begin alike: some numbers are drawn first."""
    return np.array([(seed + 1) * 0x9E3779B97F4A7C15 % (1 << 64)], dtype=np.uint64)


def follow(steps: Steps, need: int, genes: str, *, seed: int = 1, is_printed: bool = False):
    """The path to the frontier, and for each column how often it has been specialized."""
    whole = int(sum(steps.loss[a, n - 1] for a, n in enumerate(steps.n.tolist())))
    node, out = np.empty(len(steps.n), dtype=np.uint8), np.empty(int((steps.n - 1).sum()), dtype=np.uint16)
    n = fill_path(steps, np.int64(whole - need), path(genes), is_printed, counter(seed), node, out)
    return text(out[:n]), (steps.n - 1 - node).tolist()


def mutants(steps: Steps, genes: str, *, is_anywhere: bool = False, n: int = 200) -> set[str]:
    found = set()
    for seed in range(n):
        out = np.full(len(genes), UNDEFINED, dtype=np.uint16)
        fill_mutant(steps, path(genes), is_anywhere, counter(seed), out)
        found.add(text(out))
    return found


def crossed(genes: str, others: str) -> str:
    out = np.full(len(genes) + len(others), UNDEFINED, dtype=np.uint16)
    return text(out[: fill_crossover(path(genes), path(others), out)])


SQUARE = lattice((0, 1, 2, 3), (0, 1, 2, 3))
"""Two columns of three steps; utility is depth."""


def test_figure_4_the_path_12212_specializes_column_1_twice_and_column_2_three_times():
    assert follow(SQUARE, 5, "12212") == ("12212", [2, 3])


def test_figure_4_other_paths_lead_to_the_same_node():
    assert follow(SQUARE, 5, "22211") == ("22211", [2, 3])


def test_figure_5_a_mutation_alters_the_column_in_the_middle_of_the_path():
    assert mutants(SQUARE, "12212") == {"12112"}
    assert follow(SQUARE, 5, "12112") == ("12112", [3, 2])


def test_figure_5_of_a_long_path_it_is_near_the_middle():
    genes = "1" * 24
    steps = lattice(tuple(range(30)), tuple(range(30)), tuple(range(30)))
    changed = {tuple(i for i, gene in enumerate(mutant) if gene != "1") for mutant in mutants(steps, genes)}
    assert changed == {(i,) for i in range(9, 16)}
    assert {gene for mutant in mutants(steps, genes) for gene in mutant} == {"1", "2", "3"}


def test_our_mutation_is_anywhere():
    assert mutants(SQUARE, "12212", is_anywhere=True) == {"22212", "11212", "12112", "12222", "12211"}


def test_figure_6_a_path_that_goes_beyond_a_frontier_node_ends_there():
    steps = lattice((0, 1, 2, 3), (0, 2, 4, 6))
    assert follow(steps, 5, "11211") == ("1121", [3, 1])
    assert follow(steps, 5, "12211") == ("122", [1, 2])


def test_figure_6_a_path_that_never_reaches_one_is_completed_at_random():
    found = {follow(SQUARE, 5, "122", seed=seed)[0] for seed in range(50)}
    assert found == {"12211", "12212", "12221"}


def test_a_column_that_is_specialized_to_the_end_is_skipped():
    assert follow(SQUARE, 5, "1111122")[0] == "11122"


def test_where_everything_is_allowed_the_path_is_empty():
    assert follow(SQUARE, 0, "12212") == ("", [0, 0])


def test_no_node_above_the_end_of_a_path_is_feasible():
    steps = lattice((0, 1, 2, 3), (0, 5))
    assert follow(steps, 5, "112") == ("2", [0, 1])


def test_as_printed_a_path_ends_at_its_first_feasible_node():
    """It "has at least one infeasible immediate parent": the node before it on the path."""
    steps = lattice((0, 1, 2, 3), (0, 5))
    assert follow(steps, 5, "112", is_printed=True) == ("112", [2, 1])
    assert follow(SQUARE, 5, "12212111", is_printed=True) == ("12212", [2, 3])
    assert follow(SQUARE, 0, "12212", is_printed=True) == ("", [0, 0])


@pytest.mark.parametrize("utilities", [(3, 1, 0, 4), (2**59, 2**58, 2**58), (5,), (0, 0)])
def test_as_printed_parents_are_taken_in_direct_proportion_to_their_utility(utilities):
    """2.5, Selection: "a rank to each solution that is in direct proportion to its utility". Of none, evenly."""
    n, whole, random = len(utilities), max(utilities), counter(1)
    loss = np.array([whole - own for own in utilities], dtype=np.int64)
    members = Members(
        np.zeros((n, 1), np.uint16), np.zeros(n, np.int64), np.zeros((n, 1), np.uint8),
        covered=np.ones_like(loss), weight=np.ones_like(loss), loss=loss,
    )  # fmt: skip
    drawn = [int(draw_by_utility(random, members, n, np.int64(whole))) for _ in range(8000)]
    shares = np.array(utilities, dtype=np.float64) if any(utilities) else np.ones(n)
    wanted = shares / shares.sum()
    assert np.bincount(drawn, minlength=n) / 8000 == pytest.approx(wanted, abs=0.03)
    assert not any(
        count for count, own in zip(np.bincount(drawn, minlength=n), wanted, strict=True) if not own
    )


@pytest.mark.parametrize(
    ("one", "two", "child", "sibling"),
    [("12212", "21121", "12121", "21212"), ("1122", "2211", "1111", "2222"), ("1", "22", "2", "21")],
)
def test_figure_7_crossover_interchanges_second_halves(one, two, child, sibling):
    assert crossed(one, two) == child
    assert crossed(two, one) == sibling
