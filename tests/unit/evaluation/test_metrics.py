"""Metrics of predictions, against their definitions by pairs and rows, and against scikit-learn."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as known

from sfumato.evaluation.metrics import (
    ACCURACY,
    AUC,
    BRIER,
    ERROR,
    R2,
    Guess,
    auc,
    score_classes,
    score_numbers,
)


def naive_auc(is_class, chance) -> float:
    """Over all pairs of a row of the class and another: 1 if the first has more, half of that if they are equal."""
    own = [c for c, yes in zip(chance, is_class, strict=True) if yes]
    others = [c for c, yes in zip(chance, is_class, strict=True) if not yes]
    won = sum(Fraction(int(a > b) * 2 + int(a == b), 2) for a, b in itertools.product(own, others))
    return float(won / (len(own) * len(others)))


def naive_brier(truth, guess: Guess) -> float:
    """Row by row, over all classes that anybody names."""
    total = 0.0
    for row, label in enumerate(truth.tolist()):
        chances = dict(zip(guess.classes.tolist(), np.atleast_2d(guess.chances)[row].tolist(), strict=True))
        for c in {*guess.classes.tolist(), *truth.tolist()}:
            total += (chances.get(c, 0.0) - (c == label)) ** 2
    return total / len(truth)


@st.composite
def guesses(draw, *, n_classes=4):
    """A truth, and chances of some of its classes or of others."""
    n = draw(st.integers(1, 25))
    truth = np.array(draw(st.lists(st.integers(0, n_classes - 1), min_size=n, max_size=n)))
    classes = np.array(sorted(draw(st.sets(st.integers(0, n_classes), min_size=1))))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    chances = random.integers(1, 4, (n, len(classes))).astype(float)
    chances /= chances.sum(axis=1, keepdims=True)
    return truth, Guess(classes[chances.argmax(axis=1)], classes, chances)


@given(guesses())
@settings(max_examples=100)
def test_metrics_of_classes_are_what_the_definitions_say(case):
    truth, guess = case
    found = score_classes(truth, guess, n_classes=4)
    assert found[ACCURACY] == pytest.approx(np.mean(truth == guess.label))
    assert found[BRIER] == pytest.approx(naive_brier(truth, guess))
    areas = []
    for c in np.unique(truth):
        chance = guess.chances[:, guess.classes == c].sum(axis=1)
        if 0 < (truth == c).sum() < len(truth):
            areas.append(naive_auc(truth == c, chance))
    assert found[AUC] == pytest.approx(np.mean(areas) if areas else 0.5)


def test_two_classes_are_scored_as_everybody_scores_them():
    random = np.random.default_rng(1)
    truth, chance = random.integers(0, 2, 200), random.integers(0, 20, 200) / 20
    guess = Guess((chance > 0.5).astype(int), np.array([0, 1]), np.column_stack([1 - chance, chance]))
    found = score_classes(truth, guess, n_classes=2)
    assert found[AUC] == pytest.approx(known.roc_auc_score(truth, chance))
    assert found[BRIER] == pytest.approx(known.brier_score_loss(truth, chance))
    assert auc(truth == 1, chance) == pytest.approx(found[AUC])


def test_several_classes_are_scored_each_against_the_others():
    random = np.random.default_rng(2)
    truth, chances = random.integers(0, 3, 300), random.dirichlet([1, 2, 3], 300)
    guess = Guess(chances.argmax(axis=1), np.arange(3), chances)
    found = score_classes(truth, guess, n_classes=3)
    assert found[AUC] == pytest.approx(
        known.roc_auc_score(truth, chances, multi_class="ovr", average="macro")
    )
    assert found[BRIER] == pytest.approx(np.mean(((chances - np.eye(3)[truth]) ** 2).sum(axis=1)))


def test_one_guess_for_all_tells_nothing_apart():
    truth = np.array([0, 0, 1])
    guess = Guess(np.array(0), np.array([0, 1]), np.array([0.75, 0.25]))
    found = score_classes(truth, guess, n_classes=2)
    assert found == pytest.approx({ACCURACY: 2 / 3, AUC: 0.5, BRIER: (2 * 0.25**2 + 0.75**2) / 3})
    assert score_classes(truth[:2], guess, n_classes=2)[AUC] == 0.5


def test_metrics_of_numbers_are_what_everybody_computes():
    random = np.random.default_rng(3)
    truth = random.normal(size=100)
    guess = truth + random.normal(size=100)
    found = score_numbers(truth, guess)
    assert found[ERROR] == pytest.approx(known.mean_absolute_error(truth, guess))
    assert found[R2] == pytest.approx(known.r2_score(truth, guess))
    assert score_numbers(truth, truth.mean())[R2] == pytest.approx(0.0)
    assert score_numbers(np.ones(3), 2.0) == {ERROR: 1.0, R2: 0.0}
