"""DiffGen step by step against its naive twin: the lists that are drawn from, what is charged, cuts and counts."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import naive_diffgen as naive
import numpy as np
import pytest
from diffgen_cases import VARIANTS, Told, anywhere, following, random_case, random_rows
from hypothesis import given
from hypothesis import strategies as st

from sfumato.privacy.mechanisms import noiseless
from sfumato.specialization.diffgen import conditional
from sfumato.specialization.diffgen.plan import plan

SEEDS = st.integers(0, 2**32 - 1)
variants = pytest.mark.parametrize(("variant", "score"), VARIANTS)


def below_highest(scores):
    return [score - max(scores) for score in scores]


def cuts_of(drawn):
    return [ends.tolist() for ends in drawn.grid.ends]


def compare(case, told, drawn):
    """The twin takes the same places, and everything that it is asked, pays and ends with must be the same."""
    pick, asked = following(told.places), []

    def note(_what, scores):
        asked.append(scores)
        return pick(scores)

    twin = case.twin(note, selection=plan(case.options).selection)
    lists = [scores for law, scores, _ in told.asked if law != "discrete Laplace"]
    assert len(lists) == len(asked)
    for mine, naively in zip(lists, asked, strict=True):
        off = np.abs(np.array(below_highest(mine.tolist())) - below_highest(naively))
        assert off.max() <= (2 if case.options.score == "infogain" else 0)  # units of 2^-20
    assert [(draw.what, draw.share) for draw in drawn.ledger.draws] == twin.charged
    assert cuts_of(drawn) == [[piece.codes[-1] + 1 for piece in cut] for cut in twin.cuts]
    assert drawn.counts.tolist() == twin.counts()


@variants
@given(seed=SEEDS)
def test_lists_charges_cuts_and_counts_are_those_of_the_twin_wherever_the_draws_go(variant, score, seed):
    random = np.random.default_rng(seed)
    case = random_case(random, variant, score)
    told = Told(anywhere(random))
    compare(case, told, case.draw(told, block=int(random.choice([3, 65_536]))))


@variants
@given(seed=SEEDS)
def test_with_infinite_epsilon_it_is_greedy_specialization(variant, score, seed):
    """The first of the best is taken in every step."""
    case = random_case(np.random.default_rng(seed), variant, score)
    told = Told(lambda scores: scores.index(max(scores)))
    greedy = case.draw(told)
    compare(case, told, greedy)
    drawn = case.draw(noiseless())
    assert cuts_of(drawn) == cuts_of(greedy)
    assert drawn.counts.tolist() == greedy.counts.tolist()


@variants
@given(seed=SEEDS)
def test_every_draw_has_the_scale_of_its_share(variant, score, seed):
    random = np.random.default_rng(seed)
    case = random_case(random, variant, score)
    told = Told(anywhere(random))
    drawn = case.draw(told)
    ledger = drawn.ledger
    delta = {"max": 1, "gini": 2 * 2**20}.get(score) or 2**20 * np.log2(case.n_classes)
    of_selection = {(law, scale) for law, _, scale in told.asked[:-1]}
    assert len(of_selection) <= 1
    for law, scale in of_selection:
        assert law == ("exponential" if variant == "paper" else "permute-and-flip")
        share = ledger.draws[0].share
        least = float(delta * (2 if variant == "paper" else 1) / share)
        assert least <= scale <= least * (1 + 1e-5)
    counts = ledger.draws[-1]
    assert told.asked[-1][0] == counts.mechanism == "discrete Laplace"
    assert told.asked[-1][2] == counts.scale == 1 / counts.share
    assert told.asked[-1][1].size == np.prod([len(cut) for cut in cuts_of(drawn)]) * case.n_classes


@variants
@given(seed=SEEDS)
def test_shares_and_what_is_unspent_are_epsilon_exactly(variant, score, seed):
    random = np.random.default_rng(seed)
    case = random_case(random, variant, score, epsilon=Fraction(int(random.integers(1, 50)), 10))
    ledger = case.draw(Told(anywhere(random))).ledger
    assert sum((draw.share for draw in ledger.draws), ledger.unspent) == case.options.epsilon
    assert ledger.unspent >= 0
    if variant == "tuned":
        assert ledger.spent == case.options.epsilon


@variants
@given(seed=SEEDS)
def test_order_of_rows_and_blocks_change_no_list(variant, score, seed):
    random = np.random.default_rng(seed)
    case = random_case(random, variant, score)
    first = Told(anywhere(random))
    case.draw(first)
    again = Told(following(first.places))
    case.draw(again, rows=[case.rows[i] for i in random.permutation(len(case.rows))], block=2)
    assert [(law, scores.tolist(), scale) for law, scores, scale in first.asked] == [
        (law, scores.tolist(), scale) for law, scores, scale in again.asked
    ]


@variants
@given(seed=SEEDS)
def test_which_candidates_there_are_does_not_depend_on_rows(variant, score, seed):
    """Any other rows, or none: lists as long, laws, scales, shares and cuts the same, as long as the draws are."""
    random = np.random.default_rng(seed)
    case = random_case(random, variant, score)
    others = random_rows(random, 30, case.attributes, case.n_classes)
    told = Told(anywhere(random))
    runs = []
    for rows in (case.rows, (), others):
        drawn = case.draw(told, rows=rows)
        lists = [(law, len(scores), scale) for law, scores, scale in told.asked]
        runs.append((lists, drawn.ledger.as_list(), cuts_of(drawn), drawn.counts.shape))
        told = Told(following(told.places))
    assert runs[0] == runs[1] == runs[2]


def test_long_axes_have_thresholds_at_equal_distances():
    """More grid points than thresholds: both variants offer what the twin offers."""
    random = np.random.default_rng(5)
    for variant, score in VARIANTS:
        case = random_case(random, variant, score)
        n = 2 * conditional.MOST_THRESHOLDS + 40
        attributes = (naive.Number(n), (0, 1))
        rows = tuple((int(a), int(b), int(c)) for a, b, c in random.integers(0, [n, 2, 2], (40, 3)))
        options = replace(case.options, specializations=3, max_cells=1000)
        case = replace(case, attributes=attributes, rows=rows, n_classes=2, options=options)
        told = Told(anywhere(random))
        compare(case, told, case.draw(told))
