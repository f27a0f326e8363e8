"""The parts of DiffGen that the paper's examples do not reach."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.encoding.batches import Block
from sfumato.encoding.domain import OrderedDomain, TreeDomain
from sfumato.engines.memory import MemoryEngine
from sfumato.engines.protocol import UNLIMITED, Room
from sfumato.methods.specialization.diffgen import draw
from sfumato.methods.specialization.diffgen.draw import given_cuts, with_total
from sfumato.methods.specialization.diffgen.plan import BudgetPlan, CellLimit
from sfumato.methods.specialization.diffgen.tuned import (
    MASS,
    MOST_PENALTY,
    MOST_THRESHOLDS,
    ClassifiedRows,
    Node,
    TunedCutter,
    _most_rows,
)
from sfumato.methods.specialization.kernels.purity import add_bin_counts
from sfumato.methods.specialization.loop import Piece
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.options.diffgen import DiffGenOptions
from sfumato.policy.schema import Attribute, Kind, Role
from sfumato.privacy import mechanisms
from sfumato.privacy.ledger import Ledger

TREE = Hierarchy.from_tree({"*": {"A": ["a", "b", "c"], "B": ["d", "e"]}})


def number(name: str, low: int, high: int) -> OrderedDomain:
    attribute = Attribute(name, Role.QUASI_IDENTIFIER, Kind.NUMBER, bounds=(low, high), step=1)
    return OrderedDomain(attribute, low, high, 1.0, True, high - low + 2, None, low - 1.0)


def words(name: str) -> TreeDomain:
    return TreeDomain(Attribute(name, Role.QUASI_IDENTIFIER, hierarchy=TREE), TREE, has_missing=False)


DOMAINS: tuple[OrderedDomain | TreeDomain, ...] = (
    number("age", 17, 90),
    words("place"),
    number("gain", 0, 5000),
    words("job"),
)


class Rows:
    """Codes in memory, by blocks of any size; counts its passes."""

    def __init__(self, codes: np.ndarray, block: int = 1000) -> None:
        self.codes, self.block, self.passes = codes.astype(np.uint32), block, 0
        self.n_rows = len(codes)

    def blocks(self, *, payload: bool = True):
        assert not payload
        self.passes += 1
        for start in range(0, len(self.codes), self.block):
            yield Block(self.codes[start : start + self.block], None)


def people(n: int = 3000, seed: int = 5, block: int = 1000) -> Rows:
    random = np.random.default_rng(seed)
    codes = np.stack([random.integers(0, domain.n_codes, n) for domain in DOMAINS], axis=1)
    label = ((codes[:, 0] > 40) & (codes[:, 1] < 3)) ^ (random.random(n) < 0.1)
    return Rows(np.column_stack([codes, label]), block)


def options(**given) -> DiffGenOptions:
    return DiffGenOptions(Fraction(1), **given)


EVERY = [
    {"variant": "paper", "specializations": 6},
    {"variant": "paper", "specializations": 6, "score": "infogain"},
    {"variant": "tuned"},
    {"variant": "tuned", "score": "gini", "specializations": 5},
    {"variant": "tuned", "score": "max", "specializations": 0},
    {"cuts": {"age": (40,), "job": ("A", "B")}},
]


@pytest.mark.parametrize("given", EVERY)
@pytest.mark.parametrize("how", [{"block": 7}, {"memory": 20_000}, {"order": 3}], ids=str)
def test_neither_blocks_nor_memory_nor_the_order_of_rows_changes_what_is_drawn(given, how):
    whole = people()
    other = Rows(whole.codes, how.get("block", 1000))
    if "order" in how:
        other = Rows(np.random.default_rng(how["order"]).permutation(whole.codes))
    one, two = (
        draw(rows, DOMAINS, 2, options(**given), mechanisms.seeded(11), engine=MemoryEngine(Room(memory)))
        for rows, memory in ((whole, UNLIMITED), (other, how.get("memory", UNLIMITED)))
    )
    assert [ends.tolist() for ends in one.grid.ends] == [ends.tolist() for ends in two.grid.ends]
    assert one.counts.tolist() == two.counts.tolist()
    assert one.ledger.draws == two.ledger.draws


@pytest.mark.parametrize("h", [0, 1, 5, 12])
def test_the_paper_reads_the_rows_twice_whatever_the_number_of_specializations(h):
    rows = people()
    draw(rows, DOMAINS, 2, options(variant="paper", specializations=h), mechanisms.seeded(1))
    assert rows.passes == 2


@pytest.mark.parametrize("given", EVERY)
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1, 3), Fraction(7)])
def test_what_is_spent_and_unspent_is_epsilon_exactly(given, epsilon):
    found = draw(people(300), DOMAINS, 2, DiffGenOptions(epsilon, **given), mechanisms.seeded(2))
    assert found.ledger.spent + found.ledger.unspent == epsilon
    if given.get("variant") != "paper":
        assert found.ledger.unspent == 0


@pytest.mark.parametrize("given", EVERY)
def test_a_table_without_rows_is_drawn_as_any_other(given):
    found = draw(people(0), DOMAINS, 2, options(**given), mechanisms.seeded(3))
    assert (found.counts >= 0).all()
    assert len(found.counts) == np.prod([len(ends) for ends in found.grid.ends])


@pytest.mark.parametrize("variant", ["paper", "tuned"])
@pytest.mark.parametrize("most", [1, 2, 30])
def test_no_grid_has_more_cells_than_the_public_cap(variant, most):
    found = draw(
        people(),
        DOMAINS,
        2,
        options(variant=variant, specializations=20, max_cells=most),
        mechanisms.seeded(4),
    )
    assert len(found.counts) <= most
    if variant == "tuned":  # what nobody could be offered goes to the counts
        assert found.ledger.unspent == 0


def test_with_none_left_it_stops():
    domains = (words("place"),)
    rows = Rows(np.array([[0, 1], [4, 0]]))
    found = draw(rows, domains, 2, options(variant="paper", specializations=50), mechanisms.seeded(5))
    assert len(found.counts) == 5
    assert len(found.ledger.draws) == 3 + 1  # the root, A and B; the counts
    assert found.ledger.unspent == Fraction(1, 2) - 3 * Fraction(1, 200)


# ---- lists of candidates ---------------------------------------------------------------------------


def test_every_node_has_about_the_same_mass():
    nodes = [Node.of(Piece(a, 0, domain.n_codes, 0), 0, DOMAINS) for a, domain in enumerate(DOMAINS)]
    assert [len(node.entries(0)) for node in nodes] == [MASS // 74 * 74, MASS, MASS, MASS]


def test_thresholds_are_points_of_the_grid_at_equal_distances():
    node = Node.of(Piece(2, 0, 5002), 0, DOMAINS)
    assert node.n_candidates == MOST_THRESHOLDS
    widths = np.diff(node.ends, prepend=0)
    assert widths.max() - widths.min() <= 1
    assert node.ends[-1] == 5002


def test_one_code_cannot_be_divided():
    assert Node.of(Piece(0, 3, 4), 0, DOMAINS) is None
    assert Node.of(Piece(1, 0, 1, 2), 0, DOMAINS) is None


def test_room_counts_cells():
    limit = CellLimit([1, 2, 3], 12)
    assert limit.n_cells == 6
    assert limit.admits(0, 2)
    assert not limit.admits(0, 3)
    assert limit.admits(2, 4)


def test_given_cuts_are_where_the_owner_says():
    cuts = given_cuts({"age": (40, 60), "place": ("B", "A"), "job": "leaves"}, DOMAINS)
    assert [(piece.low, piece.high) for piece in cuts[0]] == [(0, 24), (24, 44), (44, 75)]  # 40 is code 24
    assert [(piece.low, piece.high) for piece in cuts[1]] == [(0, 3), (3, 5)]
    assert [(piece.low, piece.high) for piece in cuts[2]] == [(0, 5002)]
    assert len(cuts[3]) == 5


# ---- counts ----------------------------------------------------------------------------------------

COUNTS = st.lists(st.integers(-50, 80), min_size=1, max_size=30)


@given(COUNTS)
def test_counts_that_are_not_negative_with_the_total_kept(noisy):
    found = with_total(np.array(noisy)[:, None])[:, 0]
    assert found.min() >= 0
    assert found.sum() == max(sum(noisy), 0)


@settings(max_examples=60)
@given(st.lists(st.integers(-6, 6), min_size=1, max_size=4))
def test_they_are_the_nearest_such_counts(noisy):
    """By squares, against all whole numbers of that total."""
    total = max(sum(noisy), 0)
    found = with_total(np.array(noisy)[:, None])[:, 0]
    grids = np.meshgrid(*[np.arange(total + 1)] * len(noisy), indexing="ij")
    every = np.stack([grid.ravel() for grid in grids], axis=1)
    every = every[every.sum(axis=1) == total]
    best = ((every - noisy) ** 2).sum(axis=1).min()
    assert ((found - noisy) ** 2).sum() == best


@given(COUNTS)
def test_a_larger_count_is_never_the_smaller_one_afterwards(noisy):
    found = with_total(np.array(noisy)[:, None])[:, 0]
    order = np.argsort(noisy, kind="stable")
    assert (np.diff(found[order]) >= 0).all() or len(set(noisy)) < len(noisy)


def test_the_least_epsilon_and_the_largest_grid_are_drawn_as_any_other():
    """The noise of so many cells is worth more rows than a 64-bit integer holds."""
    given = DiffGenOptions(Fraction(1, 10**9), specializations=20)
    found = draw(people(100), DOMAINS, 2, given, mechanisms.seeded(1))
    assert found.ledger.unspent == 0
    limit = CellLimit([1000, 1, 100, 1], 10**6)
    cutter: Any = TunedCutter(
        ClassifiedRows(MemoryEngine(), people(10), DOMAINS, 2), "smooth",
        plan=BudgetPlan.of(given.epsilon, 20), limit=limit, ledger=Ledger(given.epsilon), mechanisms=mechanisms.seeded(1),
    )  # fmt: skip
    cutter._gains = lambda nodes: np.zeros(len(nodes), dtype=np.int64)
    whole = Node.of(Piece(1, 0, 5, 0), 0, DOMAINS)
    assert whole is not None
    assert cutter._scores([whole]).tolist() == [-MOST_PENALTY]


def test_a_count_that_is_full_stays_so():
    """If it began again at 0, one row more would take away four billion."""
    rows, cells = np.zeros((2, 2), dtype=np.uint32), np.zeros(2, dtype=np.uint64)
    counts = np.full((1, 1, 2), 2**32 - 2, dtype=np.uint32)
    zero = np.zeros(1, dtype=np.int32)
    add_bin_counts(rows, cells, zero, np.zeros(1, dtype=np.int64), zero, counts)
    assert counts.tolist() == [[[2**32 - 1, 2**32 - 2]]]
    assert all(_most_rows(n) < 2**32 - 1 for n in (1, 2, 3, 100))
