"""The scripts of the risk-utility paper's figures: search row by row, k-anonymous tables, judgement, quick runs."""

import json
import sys
from fractions import Fraction
from pathlib import Path

import naive_tradeoff
import numpy as np
import pytest
import tradeoff_cases
from hypothesis import given, settings
from hypothesis import strategies as st

REPRODUCTION = Path(__file__).resolve().parents[2] / "reproduction"
sys.path.insert(0, str(REPRODUCTION))

import cerias_fig8  # noqa: E402 - found by the line above
import cerias_fig9  # noqa: E402
import cerias_fig10  # noqa: E402
from lab import products, record, row_by_row, tradeoff_studies  # noqa: E402
from lab.record import Measured  # noqa: E402

from sfumato.methods.risk_utility.problem import Threshold, problem_of  # noqa: E402
from sfumato.randomness import seeded  # noqa: E402

SCRIPTS = (cerias_fig8, cerias_fig9, cerias_fig10)


# ---- search row by row -----------------------------------------------------------------------------------


@settings(max_examples=60)
@given(tradeoff_cases.problems(max_columns=3), tradeoff_cases.thresholds)
def test_prefix_sums_find_the_optimum_of_each_row(problem, objective):
    found = row_by_row.by_prefix_sums(problem, objective, np.arange(problem.n))
    measured = problem.measure(np.arange(problem.n), found.levels)
    assert [part.tolist() for part in (found.covered, found.weight, found.utility)] == [
        part.tolist() for part in measured
    ]
    for row in range(problem.n):
        worth, utility, levels = naive_tradeoff.best(problem, objective, row)
        assert -Fraction(int(found.weight[row]), max(int(found.covered[row]), 1)) == worth
        assert found.utility[row] == utility
        assert problem.nodes_of(np.array([row]), found.levels[[row]]).tolist() == (
            problem.nodes_of(np.array([row]), np.array([levels], dtype=np.uint8)).tolist()
        )


@settings(max_examples=60)
@given(
    tradeoff_cases.problems(max_columns=3, utilities=("depth",)), tradeoff_cases.thresholds, st.integers(0)
)
def test_useful_generalizations_are_counted_and_drawn(problem, objective, seed):
    row = seed % problem.n
    need = problem.need(objective.at_least)[row]
    shape = tuple(problem.lattice.n_levels.tolist())
    every = np.stack(np.unravel_index(np.arange(int(np.prod(shape))), shape), axis=1).astype(np.uint8)
    assert len(every) == row_by_row.n_generalizations(problem)
    useful = problem.utility_of(np.full(len(every), row), every) >= need
    assert row_by_row.n_useful(problem, objective, row) == useful.sum()
    drawn = row_by_row.some_useful(problem, objective, row, 20, seeded(seed % 2**32))
    assert np.all(problem.utility_of(np.full(20, row), drawn) >= need)


def test_too_many_generalizations_are_refused():
    table = products.products(50, 12)
    with pytest.raises(ValueError, match="too many"):
        row_by_row.by_prefix_sums(
            problem_of(table.domains, table.codes), Threshold(Fraction(1, 2)), np.arange(2)
        )


# ---- k-anonymous tables ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small():
    table = products.products(400, 4)
    return problem_of(table.domains, table.codes[:, :4])


def test_columns_take_turns_from_raw_to_suppressed(small):
    steps = tradeoff_studies.path(small, seeded(1))
    assert steps[0].tolist() == [0] * 4
    assert np.array_equal(steps[-1], small.top())
    assert np.all(np.diff(steps.astype(int), axis=0).sum(axis=1) == 1)
    assert np.all(steps.max(axis=1) - steps.min(axis=1) <= 1)  # all hierarchies are equally high here


@pytest.mark.parametrize("k", [1, 2, 7, 50, 1000])
def test_k_rows_match_every_row_of_a_k_anonymous_table(small, k):
    steps = tradeoff_studies.path(small, seeded(2))
    sizes = tradeoff_studies.group_sizes(small, steps)
    assert sizes[-1].tolist() == [400] * small.n
    least = min(k, 400)
    alone = small.solution(tradeoff_studies.row_by_row(steps, sizes, k))
    assert alone.covered.min() >= least
    together = small.solution(tradeoff_studies.full_domain(steps, sizes, k))
    assert together.covered.min() >= least
    assert len(np.unique(together.levels, axis=0)) == 1
    assert np.all(alone.utility >= together.utility)
    # One step less would not do for any row.
    before = [np.flatnonzero(np.all(steps == levels, axis=1))[0] - 1 for levels in alone.levels]
    assert all(at < 0 or sizes[at, row] < k for row, at in enumerate(before))


def test_samples_repeat_and_differ_by_what_they_are_of(small):
    def draw(*of):
        return tradeoff_studies.sampled(small, 30, tradeoff_studies.stream(1, *of)).tolist()

    assert draw("a", 2) == draw("a", 2) != draw("a", 3)
    assert len(tradeoff_studies.sampled(small, 10**6, seeded(1))) == 400


# ---- judgement on made-up runs ---------------------------------------------------------------------------


def made_up_fig8(seconds):
    found = Measured(*cerias_fig8.KEYS)
    for table, columns in cerias_fig8.AT.items():
        for method in cerias_fig8.METHODS:
            for n in columns:
                value = seconds(method, n)
                if value is not None:
                    for measure in ("seconds", "seconds to goal"):
                        found.add(0, value, table=table, method=method, columns=n, measure=measure)
    return found


def as_figure_8(method, n):
    if method == cerias_fig8.CUBE and n > 8:
        return None
    return {
        cerias_fig8.SCANNED: 1e6 * 5.0**n, cerias_fig8.SUMMED: 1e4 * 5.0**n, cerias_fig8.CUBE: 2.0**n,
        cerias_fig8.PUBLISHED: 1000.0 * n, cerias_fig8.UNPROBED: 1100.0 * n, cerias_fig8.ROW_JOIN: 900.0 * n,
        cerias_fig8.PROBING: 100.0 * n,
    }[method]  # fmt: skip


def verdicts(claims):
    return [claim.outcome for claim in claims]


def test_figure_8_as_published_holds_and_otherwise_not():
    found = made_up_fig8(as_figure_8)
    assert verdicts(cerias_fig8.claims(found, cerias_fig8.AT)) == ["held"] * 6
    assert "| Exact, one cube | 4 | 16 | 64 | 256 |  |" in cerias_fig8.table_of(found, cerias_fig8.AT)

    def changed(of, times):
        return verdicts(
            cerias_fig8.claims(
                made_up_fig8(
                    lambda method, n: (
                        (value := as_figure_8(method, n)) and value * (times if method == of else 1)
                    )
                ),
                cerias_fig8.AT,
            )
        )

    assert changed(cerias_fig8.SCANNED, 1e-99)[0] == "not held"
    assert changed(cerias_fig8.SUMMED, 1e-99)[1] == "not held"
    assert changed(cerias_fig8.UNPROBED, 0.5)[2:4] == ["not held", "held"]
    assert changed(cerias_fig8.UNPROBED, 1e99)[2:4] == ["held", "not held"]
    assert changed(cerias_fig8.CUBE, 200)[4] == "held in part"
    assert changed(cerias_fig8.PROBING, 99)[5] == "not held"


def made_up_fig9(risk, *, mean_excess=0.01, worst_excess=0.05):
    found = Measured(*cerias_fig9.KEYS)
    for kind in cerias_fig9.KINDS:
        for model in cerias_fig9.MODELS:
            for k in cerias_fig9.KS:
                for method in cerias_fig9.METHODS:
                    place = {"kind": kind, "model": model, "k": k, "method": method}
                    found.add(0, risk[method] / k, measure="risk", **place)
                    found.add(0, 1 - k / 200, measure="utility", **place)
                    found.add(0, mean_excess, measure="mean_excess", **place)
                    found.add(0, worst_excess, measure="worst_excess", **place)
    return found


def test_figure_9_as_published_holds_and_otherwise_not():
    published = {
        cerias_fig9.EXACT: 1.0, cerias_fig9.GENETIC: 1.05, cerias_fig9.PROBING: 1.01, cerias_fig9.K_ANONYMITY: 2.0,
    }  # fmt: skip

    def judged(*, mean_excess=0.01, worst_excess=0.05, **risks):
        risk = {**published, **{getattr(cerias_fig9, name): value for name, value in risks.items()}}
        found = made_up_fig9(risk, mean_excess=mean_excess, worst_excess=worst_excess)
        return verdicts(cerias_fig9.claims(found, cerias_fig9.KS))

    assert judged() == ["held"] * 8
    assert judged(EXACT=3.0)[:5] == ["not held", "not held", "held", "not held", "held"]
    assert judged(GENETIC=3.0)[:6] == ["held", "held", "not held", "held", "not held", "not held"]
    assert judged(mean_excess=0.2, worst_excess=0.2)[6:] == ["not held", "not held"]
    text = cerias_fig9.table(made_up_fig9(published), cerias_fig9.KS)
    assert "| Adult, row by row | Harmonic | Exact | 0.5 at 0.99 |" in text


def made_up_fig10(*, risk=1.0, seconds=1.0, utility=0.01, interior=0.9, log_risk=1.0):
    found = Measured(*cerias_fig10.KEYS)
    for weights in cerias_fig10.WEIGHTS:
        for axis, points in cerias_fig10.AT.items():
            for at in points:
                c = at if axis == cerias_fig10.UTILITIES else cerias_fig10.C
                place = {"table": "Adult", "weights": weights, "axis": axis, "at": at}
                risks = {"Threshold": 1.0, "Lagrangian": risk, "Log-risk (ours)": log_risk}
                for method, value in risks.items():
                    more = 0.0 if method == "Threshold" else utility
                    measures = {
                        "risk": value,
                        "utility": c + more,
                        "beyond": 0.1,
                        "price": 1,
                        "interior": interior,
                    }
                    for measure, number in measures.items():
                        found.add(0, number, **place, method=method, measure=measure)
                for method in (cerias_fig10.BY_CUBE, cerias_fig10.BY_ROW):
                    found.add(0, 2.0, **place, method=method, measure="seconds")
                found.add(0, seconds, **place, method=cerias_fig10.BY_CUT, measure="seconds")
                found.add(0, 1.0, **place, method=cerias_fig10.BY_CUT, measure="proved")
        for n in cerias_fig10.OF_PRODUCTS:
            place = {"table": "Products", "weights": weights, "axis": "columns", "at": n}
            found.add(0, 2.0, **place, method=cerias_fig10.BY_PROBING, measure="seconds")
            found.add(0, seconds, **place, method=cerias_fig10.BY_CUT, measure="seconds")
            found.add(0, 1.0, **place, method=cerias_fig10.BY_CUT, measure="proved")
    return found


def test_figure_10_as_published_holds_and_otherwise_not():
    def judged(**of):
        return verdicts(cerias_fig10.claims(made_up_fig10(**of)))

    held = ["held"] * 6
    assert judged() == held
    assert judged(risk=1.2) == ["not held", *held[1:]]
    assert judged(seconds=3.0) == ["held", "not held", "not held", *held[3:]]
    assert judged(utility=0.2) == [*held[:3], "not held", *held[4:]]
    assert judged(interior=0.1) == [*held[:4], "not held", "held"]
    assert judged(log_risk=1.2) == [*held[:5], "not held"]
    text = cerias_fig10.table(made_up_fig10())
    assert "| Model II | 8 columns | Lagrangian | 1 | 0.610 | 90.0% | 1 |" in text
    assert "| Products | Model II | 30 | Lagrangian, proofs and cuts | 1 | 100.0% |" in text


# ---- quick runs, and records -----------------------------------------------------------------------------


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.NAME)
def test_a_quick_run_measures_judges_and_draws(script, data_folder, tmp_path, monkeypatch):
    monkeypatch.setenv("SFUMATO_DATA", str(data_folder))
    monkeypatch.setattr(record, "ROOT", tmp_path)
    out = tmp_path / "docs" / "reproduction"
    monkeypatch.setattr(sys, "argv", [script.NAME, "--quick", "--out", str(out)])
    script.main()
    document = json.loads((out / f"{script.NAME}.json").read_text(encoding="utf-8"))
    assert document["quick"]
    assert all(
        finding["what"] for claim in document["claims"][record.NO_LEARNERS] for finding in claim["findings"]
    )
    assert (out / f"{script.NAME}.png").stat().st_size > 10_000
    assert record.read_points(out / f"{script.NAME}.csv")
    assert "(a quick run: no evidence)" in out.with_suffix(".md").read_text(encoding="utf-8")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.NAME)
def test_every_figure_is_on_record_in_full(script):
    folder = REPRODUCTION.parent / "docs" / "reproduction"
    document = json.loads((folder / f"{script.NAME}.json").read_text(encoding="utf-8"))
    assert not document["quick"]
    assert (folder / f"{script.NAME}.png").stat().st_size > 10_000
    assert record.read_points(folder / f"{script.NAME}.csv")


def test_figure_9_on_record_names_the_search_that_it_measured():
    folder = REPRODUCTION.parent / "docs" / "reproduction"
    points = record.read_points(folder / f"{cerias_fig9.NAME}.csv")
    assert {point["method"] for point in points} == {
        "k-anonymity", "Exact", "Genetic, repaired", "Row-join probing",
    }  # fmt: skip
    assert "as published" not in (folder / f"{cerias_fig9.NAME}.md").read_text(encoding="utf-8")
