"""What one selection of DiffGen gives away: chances in closed form, on many random tables and their neighbours.

The lists are those that the code itself hands to its mechanisms. Runs on two neighbours are told to take the same
places, so they are asked the same questions, and the chances of all answers are compared: nothing is sampled, and
there are no false alarms. A loss above the share that the ledger was charged, by more than 1e-9 of it, is a failure.
Scales that are too small and a score that is not monotone must fail.

There are 11,200 pairs of neighbours, 2,240 for each variant and score, with a few selections each.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import laws
import numpy as np
import pytest
from diffgen_cases import VARIANTS, Told, anywhere, following, random_case

from sfumato.methods.specialization.diffgen import tuned
from sfumato.privacy.ledger import Ledger

N_TABLES, N_NEIGHBOURS = 280, 8
LIMIT = 1 + 1e-9
LAWS = {"exponential": laws.exponential, "permute-and-flip": laws.permute_and_flip}

pytestmark = pytest.mark.slow


@dataclass
class Questions:
    """The same questions, asked of two neighbours; each in one charge of the ledger.

    Two split points of disjoint rows are one charge: their losses together are its loss.
    """

    scores: list[tuple[list[int], list[int]]] = field(default_factory=list)
    scale: list[float] = field(default_factory=list)
    charge: list[int] = field(default_factory=list)
    share: list[float] = field(default_factory=list)  # of each charge

    def worst(self, law: str, *, factor: float = 1.0) -> float:
        """The largest loss of a charge in terms of its share, if scales were ``factor`` times what they are."""
        n = np.array([len(here) for here, _ in self.scores])
        is_open = np.repeat((np.arange(n.max()) < n[:, None])[:, None], 2, axis=1)
        scores = np.zeros(is_open.shape)
        scores[is_open] = np.concatenate([one for pair in self.scores for one in pair])
        chances = LAWS[law](scores, factor * np.array(self.scale)[:, None], is_open=is_open)
        logs = np.log(np.where(is_open, chances, 1.0))
        loss = np.abs(logs[:, 0] - logs[:, 1]).max(axis=1)
        return float((np.bincount(self.charge, weights=loss) / self.share).max())


class Watching(Told):
    """Told what to take, it also notes which charge of the ledger came last before each question."""

    charged = 0

    def _select(self, law, scores, scale):
        self.paid_by = [*getattr(self, "paid_by", []), Watching.charged - 1]
        return super()._select(law, scores, scale)


@pytest.fixture(autouse=True, scope="module")
def _charges_are_counted():
    charge = Ledger.charge

    def counted(ledger, draw):
        charge(ledger, draw)
        Watching.charged = len(ledger.draws)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ledger, "charge", counted)
        patch.setattr(tuned, "MASS", 2)  # short lists, some lines twice: a loss does not depend on it
        yield


def watch(case, pick):
    """The selections of a run, what paid for each, and the shares of all charges but the last, which is for counts."""
    Watching.charged = 0
    told = Watching(pick)
    *draws, counts = case.draw(told).ledger.draws
    *asked, noise = told.asked
    assert (counts.what, noise[0]) == ("counts", "discrete Laplace")
    paid_by = getattr(told, "paid_by", [])
    assert sorted({*paid_by}) == list(
        range(len(draws))
    )  # nothing is drawn before it is paid, nothing paid in vain
    assert all(scale == draws[i].scale for (_, _, scale), i in zip(asked, paid_by, strict=True))
    return told, asked, paid_by, [draw.share for draw in draws]


def cases(variant, score, n_tables):
    random = np.random.default_rng(20110821)
    for _ in range(n_tables):
        case = random_case(random, variant, score, n_rows=8, least=1, most=3)
        yield case, case.neighbours(random, N_NEIGHBOURS), anywhere(random)


@pytest.fixture(scope="module")
def gather():
    known = {}

    def gathered(variant, score):
        if (variant, score) not in known:
            found = known[variant, score] = Questions()
            for case, neighbours, pick in cases(variant, score, N_TABLES):
                told, here, paid_by, shares = watch(case, pick)
                for neighbour in neighbours:
                    other, there, *same = watch(neighbour, following(told.places))
                    assert (other.places, same) == (told.places, [paid_by, shares])
                    found.scores += [(a[1].tolist(), b[1].tolist()) for a, b in zip(here, there, strict=True)]
                    found.scale += [float(scale) for _, _, scale in here]
                    found.charge += [len(found.share) + i for i in paid_by]
                    found.share += [float(share) for share in shares]
        return known[variant, score]

    return gathered


# ---- what is charged covers what is lost ------------------------------------------------------------


@pytest.mark.parametrize(("variant", "score"), VARIANTS)
def test_no_selection_loses_more_than_its_share(gather, variant, score):
    found = gather(variant, score)
    assert len(found.share) > N_TABLES * N_NEIGHBOURS
    for law in ["exponential"] if variant == "paper" else LAWS:
        worst = found.worst(law)
        print(
            f"{variant} {score}, {law}: {len(found.scale)} selections, loss at most {worst:.4f} of the share"
        )
        assert worst <= LIMIT


@pytest.mark.parametrize(("score", "least"), [("max", 0.95), ("smooth", 0.8), ("gini", 0.6)])
@pytest.mark.parametrize("law", LAWS)
def test_the_tuned_variant_uses_what_it_is_charged(gather, law, score, least):
    """So there is little left to gain in its scales. (Gini changes by 2n/(n + 1) at most, and here n is small.)"""
    assert gather("tuned", score).worst(law) >= least


def test_the_published_max_uses_half_of_what_it_is_charged(gather):
    """It is monotone, and the paper pays as if it were not."""
    assert gather("paper", "max").worst("exponential") <= 0.5 * LIMIT


# ---- mutants ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("score", "least"), [("max", 1.9), ("smooth", 1.6), ("gini", 1.3)])
def test_half_the_sensitivity_is_caught(gather, law, score, least):
    """For Gini that is 1 instead of 2."""
    assert gather("tuned", score).worst(law, factor=0.5) > least


@pytest.mark.parametrize("score", ["max", "infogain"])
def test_a_quarter_of_the_sensitivity_is_caught_in_the_published_variant(gather, score):
    """Half of it is not: the paper pays twice for Max, and InfoGain of a few rows never moves that far in both
    directions at once.
    """
    assert gather("paper", score).worst("exponential", factor=0.25) > 1.5


@pytest.mark.parametrize("law", LAWS)
def test_the_monotone_scale_for_a_gain_that_is_not_monotone_is_caught(law):
    """Max less what it was before, of the rows in a piece: it rises for one candidate and falls for another."""
    found = Questions()
    for case, neighbours, pick in cases("paper", "max", N_TABLES // 4):
        twins = [lists_of_gains(case, pick)]
        twins += [lists_of_gains(neighbour, following(twins[0][1])) for neighbour in neighbours]
        (here, _), *others = twins
        for there, _ in others:
            found.scores += zip(here, there, strict=True)
            found.charge += range(len(found.scale), len(found.scale) + len(here))
            found.scale += [0.2] * len(here)
            found.share += [5.0] * len(here)
    assert found.worst(law, factor=2) <= LIMIT  # without the monotone scale it is private
    assert found.worst(law) > 1.8


def lists_of_gains(case, pick):
    lists, places = [], []

    def note(_what, scores):
        lists.append(scores)
        places.append(pick(scores))
        return places[-1]

    case.twin(note, score="marginal gain")
    return lists, places


def test_a_share_of_two_split_points_covers_both_together(gather):
    """They are drawn from disjoint rows: one of the two losses is nothing."""
    found = gather("paper", "max")
    n_paid = np.bincount(found.charge)
    assert n_paid.max() == 2
    assert (n_paid == 2).sum() > 150
    double = [pair for pair, i in zip(found.scores, found.charge, strict=True) if n_paid[i] == 2]
    moved = [here != there for here, there in double]
    assert not any(first and second for first, second in zip(moved[::2], moved[1::2], strict=True))
