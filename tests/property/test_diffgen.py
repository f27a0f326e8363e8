"""DiffGen step by step against its naive twin: the lists that are drawn from, what is charged, cuts and counts."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import naive_diffgen as naive
import numpy as np
import pyarrow as pa
import pytest
from diffgen_cases import VARIANTS, Told, anywhere, following, random_case, random_rows
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.encoding.declared import hold_rows
from sfumato.methods.specialization.diffgen import draw, tuned
from sfumato.policy.document import Policy
from sfumato.privacy.mechanisms import noiseless
from sfumato.table.opening import open_table

SEEDS = st.integers(0, 2**32 - 1)
EXAMPLES = settings(max_examples=50)  # of each variant and score
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

    twin = case.twin(note)
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
@EXAMPLES
def test_lists_charges_cuts_and_counts_are_those_of_the_twin_wherever_the_draws_go(variant, score, seed):
    random = np.random.default_rng(seed)
    case = random_case(random, variant, score)
    told = Told(anywhere(random))
    compare(case, told, case.draw(told, block=int(random.choice([3, 65_536]))))


@pytest.mark.parametrize("score", ["max", "gini", "smooth"])
@given(seed=SEEDS)
@EXAMPLES
def test_without_a_number_of_specializations_it_follows_from_a_noisy_number_of_rows(score, seed):
    random = np.random.default_rng(seed)
    case = random_case(random, "tuned", score, n_rows=30, epsilon=random.choice(["1", "100", "10000"]))
    case = replace(case, options=replace(case.options, specializations=None))
    told = Told(anywhere(random))
    drawn = case.draw(told)
    compare(case, told, drawn)
    law, counts, scale = told.asked[0]
    assert (law, counts.tolist()) == ("discrete Laplace", [len(case.rows)])
    assert scale == 1 / drawn.ledger.draws[0].share
    assert drawn.ledger.draws[0].result == len(case.rows)


@variants
@given(seed=SEEDS)
@EXAMPLES
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
@EXAMPLES
def test_every_draw_has_the_scale_of_its_share(variant, score, seed):
    random = np.random.default_rng(seed)
    case = random_case(random, variant, score)
    told = Told(anywhere(random))
    drawn = case.draw(told)
    ledger = drawn.ledger
    delta = {"max": 1, "gini": 2 * 2**20, "smooth": 2**20}.get(score) or 2**20 * np.log2(case.n_classes)
    of_selection = {(law, scale) for law, _, scale in told.asked[:-1]}
    assert len(of_selection) <= 1
    for law, scale in of_selection:
        assert law == ("exponential" if variant == "paper" else "permute-and-flip")
        share = ledger.draws[0].share
        least = Fraction(delta) * (2 if variant == "paper" else 1) / share
        assert least <= scale <= least * Fraction(100_001, 100_000)
    counts = ledger.draws[-1]
    assert told.asked[-1][0] == counts.mechanism == "discrete Laplace"
    assert told.asked[-1][2] == counts.scale == 1 / counts.share
    assert told.asked[-1][1].size == np.prod([len(cut) for cut in cuts_of(drawn)]) * case.n_classes


@variants
@given(seed=SEEDS)
@EXAMPLES
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
@EXAMPLES
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
@EXAMPLES
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
        n = 2 * tuned.MOST_THRESHOLDS + 40
        attributes = (naive.Number(n), (0, 1))
        rows = tuple((int(a), int(b), int(c)) for a, b, c in random.integers(0, [n, 2, 2], (40, 3)))
        options = replace(case.options, specializations=3, max_cells=1000)
        case = replace(case, attributes=attributes, rows=rows, n_classes=2, options=options)
        told = Told(anywhere(random))
        compare(case, told, case.draw(told))


# ---- from the table on -----------------------------------------------------------------------------

POLICY = """
attributes:
  job: {role: quasi-identifier, hierarchy: {tree: {Any: {Desk: [clerk, judge, %s], Stage: [dancer, %s]}}}}
  town: {role: quasi-identifier, values: [Ulm, %s, Bonn]}
  age: {role: quasi-identifier, type: number, bounds: [18, 24], step: 2}
  class: {role: other, values: [Y, N]}
workload: [classify: class]
method: {diffgen: {epsilon: 1, variant: %s, specializations: 5, score: %s}}
"""
UNUSED = ("actuary", "mime", "Kiel")
CELLS = {
    "job": ["clerk", "judge", "dancer"],
    "town": ["Ulm", "Bonn"],
    "age": [18, 20, 22, 24],
    "class": ["Y", "N"],
}
TYPES = pa.schema([(name, pa.int64() if name == "age" else pa.string()) for name in CELLS])


def random_table(random, n):
    return pa.table({name: random.choice(cells, n).tolist() for name, cells in CELLS.items()}, schema=TYPES)


def asked_of(table, variant, score, pick, unused=UNUSED):
    """Everything that the mechanisms are asked, and where the draws went."""
    policy = Policy.parse(POLICY % (*unused, variant, score))
    rows = hold_rows(open_table(table, may_be_empty=True), policy)
    told = Told(pick)
    draw(rows, rows.domains, len(rows.class_values), policy.method, told)
    return [(law, scores.tolist(), scale) for law, scores, scale in told.asked], told.places


@variants
@given(seed=SEEDS)
@EXAMPLES
def test_other_names_of_unused_categories_change_no_list(variant, score, seed):
    random = np.random.default_rng(seed)
    table = random_table(random, int(random.integers(20)))
    asked, places = asked_of(table, variant, score, anywhere(random))
    other = ("zoologist", "actor", "Aachen")  # elsewhere in the alphabet
    assert asked_of(table, variant, score, following(places), other) == (asked, places)


@variants
@given(seed=SEEDS)
@EXAMPLES
def test_cells_outside_the_declared_domains_count_as_the_nearest_or_as_missing(variant, score, seed):
    """So they add no candidate, raise no error, and change no other row."""
    random = np.random.default_rng(seed)
    n = int(random.integers(1, 20))
    columns = random_table(random, n).to_pydict()
    columns = {
        name: [cell if random.random() < 0.7 else None for cell in cells] for name, cells in columns.items()
    }
    wild = {
        "job": [cell or str(random.choice(["Desk", "", "mime "])) for cell in columns["job"]],
        "town": [cell or "Ulm am Rhein" for cell in columns["town"]],
        "age": [{18: 3, 20: 19, 24: 10**9}.get(cell, cell) for cell in columns["age"]],
        "class": [cell or "perhaps" for cell in columns["class"]],
    }
    wild, tame = pa.table(wild, schema=TYPES), pa.table(columns, schema=TYPES)
    asked, places = asked_of(tame, variant, score, anywhere(random))
    assert asked_of(wild, variant, score, following(places)) == (asked, places)
    kept = [i for i, cell in enumerate(columns["class"]) if cell is not None]
    assert asked_of(tame.take(pa.array(kept, pa.int64())), variant, score, following(places)) == (
        asked,
        places,
    )
