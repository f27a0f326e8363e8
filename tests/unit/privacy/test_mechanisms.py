from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, version

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InternalError, MissingExtra
from sfumato.privacy import mechanisms
from sfumato.privacy.mechanisms import noiseless, round_up, secret, secret_coins, seeded

BACKENDS = {"secret": secret, "seeded": lambda: seeded(20110821), "noiseless": noiseless}
TINY, HUGE = Fraction(1, 10**6), Fraction(10**6)
LARGEST = np.iinfo(np.int64).max


@pytest.fixture(params=BACKENDS, scope="module")
def backend(request):
    return BACKENDS[request.param]()


@pytest.fixture(params=["exponential", "permute_and_flip"])
def select(request, backend):
    return getattr(backend, request.param)


# ---- coins -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("coins", [secret_coins(), seeded(7)], ids=["secret", "seeded"])
def test_coins_that_always_and_that_never_fall(coins):
    assert coins.bernoulli(1000, Fraction(1)).all()
    assert not coins.bernoulli(1000, Fraction(0)).any()
    assert coins.bernoulli(0, Fraction(1, 2)).tolist() == []
    assert 300 < coins.bernoulli(1000, Fraction(1, 2)).sum() < 700


def test_noiseless_coins_draw_everything():
    assert noiseless().bernoulli(3, Fraction(1, 10)).tolist() == [True] * 3


@pytest.mark.parametrize("chance", [Fraction(-1, 2), Fraction(3, 2), Fraction(1, 2**62 + 1)])
def test_a_chance_that_is_none(chance):
    with pytest.raises(InternalError, match="A chance is a fraction from 0 to 1"):
        secret_coins().bernoulli(1, chance)


def test_seeded_coins_repeat_and_secret_ones_do_not():
    first, again = (seeded(3).bernoulli(200, Fraction(1, 3)).tolist() for _ in range(2))
    assert first == again
    first, again = (secret_coins().bernoulli(200, Fraction(1, 3)).tolist() for _ in range(2))
    assert first != again


def test_secret_coins_need_no_opendp(monkeypatch):
    monkeypatch.setattr(mechanisms, "version", lambda _package: pytest.fail("asked for it"))
    assert secret_coins().statement == "secret (operating system)"


# ---- what there must be ----------------------------------------------------------------------------


def test_sfumato_does_not_import_opendp():
    code = (
        "import sys, sfumato, sfumato.privacy.mechanisms as m; m.seeded(1); sys.exit('opendp' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_opendp_the_extra_is_named(monkeypatch):
    def absent(package):
        raise PackageNotFoundError(package)

    monkeypatch.setattr(mechanisms, "version", absent)
    with pytest.raises(MissingExtra, match=r'^A differentially private release needs .*"sfumato\[dp\]"$'):
        secret()


@pytest.mark.parametrize("old", ["0.9.2", "0.14.1", "0.15.1", "0.15.2.dev0"])
def test_an_opendp_with_biased_noise_is_refused(monkeypatch, old):
    monkeypatch.setattr(mechanisms, "version", lambda package: old)
    with pytest.raises(
        MissingExtra, match=rf'OpenDP 0\.16 or newer \({old} is installed\).*"sfumato\[dp\]"$'
    ):
        secret()


@pytest.mark.parametrize("new", ["0.16.0", "0.17.0.dev20261101", "1.0.0"])
def test_a_newer_opendp_is_taken(monkeypatch, new):
    monkeypatch.setattr(mechanisms, "version", lambda package: new)
    assert secret().statement == f"secret (OpenDP {new})"


def test_each_backend_states_its_randomness():
    assert secret().statement == f"secret (OpenDP {version('opendp')})"
    assert seeded(1).statement == "seeded, not private"
    assert noiseless().statement == "noiseless, not private"


# ---- scales and scores -----------------------------------------------------------------------------


@given(st.fractions(min_value=Fraction(1, 10**12), max_value=10**12))
def test_a_scale_is_rounded_up_to_the_next_float_and_no_further(scale):
    rounded = round_up(scale)
    assert Fraction(rounded) >= scale
    assert Fraction(np.nextafter(rounded, 0)) < scale


@pytest.mark.parametrize("scale", [Fraction(0), Fraction(-1, 2)])
def test_a_scale_is_positive(select, backend, scale):
    if backend.statement.startswith("noiseless"):
        pytest.skip("has no scale")
    with pytest.raises(InternalError, match="A scale is positive"):
        select(np.array([1, 2]), scale)
    with pytest.raises(InternalError, match="A scale is positive"):
        backend.discrete_laplace(np.array([1, 2]), scale)


@pytest.mark.parametrize(
    "scores",
    [
        np.array([], dtype=np.int64),
        np.array([0.5, 1.0]),
        np.array([[1, 2]]),
        np.array([1, 2], dtype=np.int32),
    ],
)
def test_scores_are_a_list_of_integers(select, scores):
    with pytest.raises(InternalError, match="Scores are a list"):
        select(scores, Fraction(1))


def test_scores_that_do_not_fit_are_a_bug(select):
    with pytest.raises(InternalError, match="too far apart"):
        select(np.array([-2, LARGEST]), Fraction(1))


@pytest.mark.parametrize(
    ("scores", "best"),
    [
        ([7], 0),
        ([3, 9, 5], 1),
        ([-9, -5, -7], 1),
        ([0, LARGEST], 1),
        ([-LARGEST - 1, -1], 1),
        ([-LARGEST - 1, -LARGEST], 1),
        ([LARGEST - 1, LARGEST], 1),
    ],
)
def test_with_hardly_any_noise_the_best_is_chosen(select, scores, best):
    assert {select(np.array(scores), TINY) for _ in range(5)} == {best}


def test_with_very_much_noise_anything_is_chosen(backend):
    if backend.statement.startswith("noiseless"):
        pytest.skip("has no noise")
    for select in (
        backend.exponential,
        backend.permute_and_flip,
    ):  # a place is missed with a chance of 3 (2/3)^60
        assert {select(np.array([3, 9, 5]), HUGE) for _ in range(60)} == {0, 1, 2}


def test_a_selection_leaves_the_scores_as_they_are(select):
    scores = np.array([3, 9, 5])
    select(scores, Fraction(1))
    assert scores.tolist() == [3, 9, 5]


# ---- counts ----------------------------------------------------------------------------------------


def test_noisy_counts_keep_shape_order_and_kind(backend):
    counts = np.arange(2 * mechanisms.COUNTS_AT_ONCE + 6).reshape(2, -1)
    noisy = backend.discrete_laplace(counts, Fraction(1, 100))  # exp(-100): no noise in the life of this test
    assert noisy is not counts
    assert noisy.dtype == np.int64
    assert noisy.tolist() == counts.tolist()
    assert noisy.flags.writeable


def test_counts_in_any_layout_are_taken(backend):
    counts = np.arange(12).reshape(3, 4)
    for layout in (counts.T, counts[:, ::2], np.asfortranarray(counts)):
        assert backend.discrete_laplace(layout, Fraction(1, 100)).tolist() == layout.tolist()
    assert backend.discrete_laplace(counts[:0], Fraction(1)).shape == (0, 4)


def test_noise_leaves_the_counts_as_they_are(backend):
    counts = np.zeros(1000, dtype=np.int64)
    noisy = backend.discrete_laplace(counts, Fraction(10))
    assert not counts.any()
    assert noisy.any() != backend.statement.startswith("noiseless")


# ---- repeating -------------------------------------------------------------------------------------


def run(backend):
    counts = backend.discrete_laplace(np.zeros(50, dtype=np.int64), Fraction(20))
    places = [
        select(np.arange(100), Fraction(50))
        for select in (backend.exponential, backend.permute_and_flip) * 10
    ]
    return [*counts.tolist(), *places]


def test_a_seed_repeats_and_another_does_not():
    assert run(seeded(5)) == run(seeded(5))
    assert run(seeded(5)) != run(seeded(6))


def test_nothing_repeats_a_secret_draw():
    assert run(secret()) != run(secret())


def test_without_noise_the_first_of_the_best_is_chosen():
    assert noiseless().exponential(np.array([3, 9, 9, 5]), HUGE) == 1
    assert noiseless().permute_and_flip(np.array([9, 9, 9, 5]), HUGE) == 0
    assert noiseless().discrete_laplace(np.array([[3, 0], [1, 2]]), HUGE).tolist() == [[3, 0], [1, 2]]
