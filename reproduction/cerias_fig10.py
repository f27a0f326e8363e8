"""Figure 10 of [FEB12]: the Lagrangian against the threshold: time and risk, over columns and over utility.

The price lambda is found by bisection, so that the mean utility of all rows reaches that of the threshold's optimum.
Where rows jump from raw to suppressed all at once there is no such price; the nearest one whose utility still reaches
it is taken then, and the jump is reported.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from lab import pictures, record, row_by_row, tradeoff_studies
from lab.record import Claim, Finding, Measured
from lab.tradeoff_studies import ADULT, N_COLUMNS, PRODUCTS, in_words

from sfumato.methods.risk_utility.optimizers import exact, probing
from sfumato.methods.risk_utility.paper import lagrangian
from sfumato.methods.risk_utility.problem import (
    Ints,
    Lagrangian,
    LatticeProblem,
    LogRisk,
    Objective,
    Solution,
    Threshold,
)
from sfumato.policy.options.risk_utility import HARMONIC, MODEL_2

NAME = "cerias_fig10"
COLUMNS, UTILITIES = "columns", "utility"
AT = {COLUMNS: (2, 4, 6, 8), UTILITIES: (0.2, 0.4, 0.6, 0.8)}
C = 0.6
"""The threshold where the number of columns varies."""

WEIGHTS = {"Harmonic, floor 1": (HARMONIC, 1.0), "Model II": (MODEL_2, 0.0)}
THRESHOLD, LAGRANGIAN, LOG_RISK = "Threshold", "Lagrangian", "Log-risk (ours)"
METHODS = (THRESHOLD, LAGRANGIAN, LOG_RISK)
BY_ROW, BY_PROBING, BY_CUBE, BY_CUT = (
    "Threshold, row by row", "Threshold, probing", "Threshold, one cube", "Lagrangian, proofs and cuts",
)  # fmt: skip
OF_PRODUCTS = (5, 10, 20, 30)
N_BY_ROW, N_PROBED, N_PROVED, N_CUT = 200, 100, 2_000, 1_000
"""Rows that are timed, where not all are."""

NEAR = 0.02
"""A mean utility within this of the threshold's reaches it."""

COMPARABLE = 0.1
"""Risks within a tenth are called comparable here."""

N_HALVINGS = 40
CLOSE = 1e-7
"""Prices that differ by less than this share of them are one."""

KEYS = ("table", "weights", "axis", "at", "method", "measure")


# ---- a price for a utility -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Priced:
    """The solution at the highest price found whose mean utility is high enough; and utility just beyond that price."""

    solution: Solution
    price: float
    utility: float
    beyond: float


def mean_share(problem: LatticeProblem, solution: Solution) -> float:
    return float(
        np.average(tradeoff_studies.share(problem, solution), weights=problem.n_alike[solution.which])
    )


def priced(problem: LatticeProblem, objective: Callable[[Fraction], Objective], goal: float) -> Priced:
    """Utility falls as the price of risk rises; the price is bisected on a logarithmic scale."""
    middle, wide = (problem.lambda_0(), 2.0) if objective is Lagrangian else (1.0, 2.0**8)
    low, high = middle / wide, middle * wide
    best: Priced | None = None
    beyond = 0.0
    for _ in range(N_HALVINGS):
        price = float(np.sqrt(low * high))
        found = exact.solve(problem, objective(Fraction(price).limit_denominator(10**12)), threads=1)
        utility = mean_share(problem, found)
        if utility >= goal:
            best, low = Priced(found, price, utility, beyond), price
        else:
            beyond, high = utility, price
        if best is not None and (best.utility - goal < NEAR / 4 or high / low < 1 + CLOSE):
            break
    assert best is not None
    return Priced(best.solution, best.price, best.utility, beyond)


# ---- trials --------------------------------------------------------------------------------------------


def entry(
    value: float, table: str, weights: str, axis: str, at: float, method: str, measure: str
) -> dict[str, Any]:
    return {
        "trial": 0, "value": float(value), "table": table, "weights": weights, "axis": axis, "at": at,
        "method": method, "measure": measure,
    }  # fmt: skip


def trial(
    problem: LatticeProblem, weights: str, axis: str, at: float, c: float, seed: int
) -> list[dict[str, Any]]:
    """Risks of the three objectives at the same mean utility, and what each costs."""
    place = (ADULT, weights, axis, at)
    objective = Threshold(tradeoff_studies.as_share(c))
    by_cube, least = tradeoff_studies.clocked(lambda: exact.solve(problem, objective, threads=1))
    goal = mean_share(problem, least)
    found = {
        THRESHOLD: Priced(least, 0.0, goal, 0.0),
        LAGRANGIAN: priced(problem, Lagrangian, goal),
        LOG_RISK: priced(problem, LogRisk, goal),
    }
    out = []
    for method, at_price in found.items():
        solution = at_price.solution
        is_raw, is_top = (
            np.all(solution.levels == 0, axis=1),
            np.all(solution.levels == problem.top(), axis=1),
        )
        measures = {
            "risk": np.average(problem.risk(solution), weights=problem.n_alike),
            "utility": at_price.utility,
            "beyond": at_price.beyond,
            "price": at_price.price,
            "interior": np.average(~is_raw & ~is_top, weights=problem.n_alike),
        }
        out += [entry(value, *place, method, measure) for measure, value in measures.items()]
    some = tradeoff_studies.sampled(problem, N_BY_ROW, tradeoff_studies.stream(seed, axis, at))
    by_row, _ = tradeoff_studies.clocked(lambda: row_by_row.by_prefix_sums(problem, objective, some))
    price = Fraction(found[LAGRANGIAN].price).limit_denominator(10**12)
    more = tradeoff_studies.sampled(problem, N_CUT, tradeoff_studies.stream(seed, axis, at))
    by_cut, cut = tradeoff_studies.clocked(
        lambda: lagrangian.solve(problem, Lagrangian(price), which=more, threads=1)
    )
    out += [
        entry(by_cube, *place, BY_CUBE, "seconds"),
        entry(by_row / len(some) * problem.n, *place, BY_ROW, "seconds"),
        entry(by_cut / len(more) * problem.n, *place, BY_CUT, "seconds"),
        entry(cut.is_proved.mean(), *place, BY_CUT, "proved"),
    ]
    return out


def trial_of_products(problem: LatticeProblem, weights: str, seed: int) -> list[dict[str, Any]]:
    """Sampled rows; seconds are of all rows, extrapolated."""
    place = (PRODUCTS, weights, COLUMNS, problem.n_columns)

    def rows(n: int) -> Ints:
        return tradeoff_studies.sampled(
            problem, n, tradeoff_studies.stream(seed, PRODUCTS, problem.n_columns)
        )

    few, many = rows(N_PROBED), rows(N_PROVED)
    objective = Threshold(tradeoff_studies.as_share(0.8))
    price = Fraction(problem.lambda_0()).limit_denominator(10**12)
    by_probing, _ = tradeoff_studies.clocked(lambda: probing.solve(problem, objective, which=few, threads=1))
    by_cut, cut = tradeoff_studies.clocked(
        lambda: lagrangian.solve(problem, Lagrangian(price), which=many, threads=1)
    )
    return [
        entry(by_probing / len(few) * problem.n, *place, BY_PROBING, "seconds"),
        entry(by_cut / len(many) * problem.n, *place, BY_CUT, "seconds"),
        entry(cut.is_proved.mean(), *place, BY_CUT, "proved"),
    ]


def run(given: Namespace) -> Iterator[list[dict[str, Any]]]:
    n_rows = 1_000 if given.quick else None
    most = 4 if given.quick else N_COLUMNS[ADULT]
    for weights, (model, floor) in WEIGHTS.items():
        for table, judge in ((ADULT, partial(trial, axis=COLUMNS, at=4, c=C)), (PRODUCTS, trial_of_products)):
            small = tradeoff_studies.problem(table, 4, model=model, floor=floor, n_rows=500)
            judge(small, weights=weights, seed=given.seed)  # compiles what there is to compile
        for n in (2, 4) if given.quick else AT[COLUMNS]:
            problem = tradeoff_studies.problem(ADULT, n, model=model, floor=floor, n_rows=n_rows)
            found = trial(problem, weights, COLUMNS, n, C, given.seed)
            again = [
                {**each, "axis": UTILITIES, "at": C} for each in found
            ]  # of the last, which has all columns
            yield found
        problem = tradeoff_studies.problem(ADULT, most, model=model, floor=floor, n_rows=n_rows)
        for c in (0.4, 0.8) if given.quick else AT[UTILITIES]:
            yield (
                again if c == C and not given.quick else trial(problem, weights, UTILITIES, c, c, given.seed)
            )
        for n in (3, 5) if given.quick else OF_PRODUCTS:
            problem = tradeoff_studies.problem(PRODUCTS, n, model=model, floor=floor, n_rows=n_rows)
            yield trial_of_products(problem, weights, given.seed)


# ---- judgement -----------------------------------------------------------------------------------------


def points_of(found: Measured) -> list[tuple[str, str, float]]:
    """(weights, axis, at) of all points of Adult, in the order of the figure."""
    seen = {
        (point["weights"], point["axis"], point["at"]) for point in found.points() if point["table"] == ADULT
    }
    return sorted(seen, key=lambda place: (list(WEIGHTS).index(place[0]), place[1], place[2]))


def named(weights: str, axis: str, at: float) -> str:
    """A point in words.

    >>> named("Model II", "columns", 8), named("Model II", "utility", 0.4)
    ('Model II, 8 columns', 'Model II, c = 0.4')
    """
    return f"{weights}, " + (f"{at:g} columns" if axis == COLUMNS else f"c = {at:g}")


def claims(found: Measured) -> list[Claim]:
    def value(method: str, measure: str, weights: str, axis: str, at: float, table: str = ADULT) -> float:
        return float(
            found.of(table=table, weights=weights, axis=axis, at=at, method=method, measure=measure)[0]
        )

    def comparable(method: str, place: tuple[str, str, float]) -> Finding:
        risk, least = value(method, "risk", *place), value(THRESHOLD, "risk", *place)
        reached = value(method, "utility", *place)
        return Finding(
            f"{named(*place)}: at most {COMPARABLE:.0%} above",
            risk <= (1 + COMPARABLE) * least,
            f"{risk:.3g} at utility {reached:.2f} against {least:.3g} at {value(THRESHOLD, 'utility', *place):.2f}",
        )

    def faster(place: tuple[str, str, float], of: str) -> Finding:
        seconds, others = value(BY_CUT, "seconds", *place), value(of, "seconds", *place)
        return Finding(
            f"{named(*place)}: faster than {of.lower()}",
            seconds < others,
            f"{in_words(seconds)} s against {in_words(others)} s",
        )

    def faster_there(weights: str, n: int) -> Finding:
        seconds, others = (
            value(method, "seconds", weights, COLUMNS, n, PRODUCTS) for method in (BY_CUT, BY_PROBING)
        )
        return Finding(
            f"products, {weights}, {n} columns: faster than {BY_PROBING.lower()}",
            seconds < others,
            f"{in_words(seconds)} s against {in_words(others)} s for all rows",
        )

    def reached(place: tuple[str, str, float]) -> Finding:
        """Is there a price at which the mean utility is that of the threshold?"""
        goal = value(THRESHOLD, "utility", *place)
        utility, beyond = value(LAGRANGIAN, "utility", *place), value(LAGRANGIAN, "beyond", *place)
        return Finding(
            f"{named(*place)}: within {NEAR:g} of {goal:.3f}",
            utility - goal <= NEAR,
            f"{utility:.3f}, and {beyond:.3f} just beyond that price",
        )

    def between(place: tuple[str, str, float]) -> Finding:
        share = value(LAGRANGIAN, "interior", *place)
        what = f"{named(*place)}: at least half of the rows neither raw nor suppressed"
        return Finding(what, share >= 0.5, f"{share:.1%} of the rows")

    places = points_of(found)
    wide = sorted({(p["weights"], p["at"]) for p in found.points() if p["table"] == PRODUCTS})
    return [
        Claim(
            "both have comparable risks: the Lagrangian's at the mean utility of the threshold",
            tuple(comparable(LAGRANGIAN, place) for place in places),
        ),
        Claim(
            "the Lagrangian is significantly faster than the threshold algorithm: searched row by row",
            tuple(faster(place, BY_ROW) for place in places),
        ),
        Claim(
            "the Lagrangian is significantly faster than the threshold algorithm: by sfumato's optimizers",
            (*(faster(place, BY_CUBE) for place in places), *(faster_there(*at) for at in wide)),
        ),
        Claim(
            "(sfumato's, not the paper's) a price exists at which the mean utility is that of the threshold",
            tuple(reached(place) for place in places),
        ),
        Claim(
            "(sfumato's, not the paper's) the Lagrangian publishes rows between raw and suppressed",
            tuple(between(place) for place in places),
        ),
        Claim(
            "(sfumato's, not the paper's) log-risk has risks comparable to the threshold's at the same mean utility",
            tuple(comparable(LOG_RISK, place) for place in places),
        ),
    ]


def table(found: Measured) -> str:
    """Risk, utility, and rows between raw and suppressed, of the three objectives; then the time of all rows."""
    rows = [
        "| weights | point | method | mean risk | mean utility | neither raw nor suppressed | lambda |",
        "|---" * 7 + "|",
    ]
    for place in points_of(found):
        at = dict(zip(("weights", "axis", "at"), place, strict=True))
        for method in METHODS:
            risk, utility, interior, price = (
                found.of(table=ADULT, **at, method=method, measure=measure)[0]
                for measure in ("risk", "utility", "interior", "price")
            )
            cost = "" if method == THRESHOLD else f"{price:.4g}"
            point = named(*place).removeprefix(f"{place[0]}, ")
            rows.append(
                f"| {place[0]} | {point} | {method} | {risk:.4g} | {utility:.3f} | {interior:.1%} | {cost} |"
            )
    rows += [
        "",
        "| table | weights | columns | method | CPU seconds of all rows | proved |",
        "|---" * 6 + "|",
    ]
    timed = [p for p in found.points() if p["measure"] == "seconds" and p["axis"] == COLUMNS]
    for p in sorted(timed, key=lambda p: (p["table"], list(WEIGHTS).index(p["weights"]), p["at"])):
        proved = ""
        if p["method"] == BY_CUT:
            of = {key: p[key] for key in KEYS if key != "measure"}
            proved = f"{found.of(**of, measure='proved')[0]:.1%}"
        rows.append(
            f"| {p['table']} | {p['weights']} | {p['at']:g} | {p['method']} | {in_words(p['mean'])} | {proved} |"
        )
    return "\n".join(rows)


# ---- picture -------------------------------------------------------------------------------------------

STYLES = {
    THRESHOLD: ("#1f6f8b", "o", "-"),
    LAGRANGIAN: ("#a23b4a", "s", "-"),
    LOG_RISK: ("#7a9e4f", "D", "--"),
    BY_CUBE: ("#1f6f8b", "o", "-"),
    BY_ROW: ("#4d4d4d", "x", ":"),
    BY_PROBING: ("#d98b2b", "^", "-"),
    BY_CUT: ("#a23b4a", "s", "-"),
}


def draw(figure: record.Figure, out: Path) -> None:
    """A row of panels for each risk model: time by columns (Adult, products), risk by columns, risk by utility."""
    with pictures.sheet(out / f"{NAME}.png", len(WEIGHTS), 4, size=(3.5, 3.0)) as axes:
        for row, weights in zip(axes, WEIGHTS, strict=True):
            points = pictures.pick(figure.points, weights=weights)
            adult, products = (pictures.pick(points, table=name) for name in (ADULT, PRODUCTS))
            _panel(row[0], pictures.pick(adult, axis=COLUMNS, measure="seconds"), (BY_CUBE, BY_ROW, BY_CUT))
            row[0].set(title=f"(a) Time, Adult, {weights}", xlabel="Columns", ylabel="CPU seconds, all rows")
            _panel(row[1], pictures.pick(products, axis=COLUMNS, measure="seconds"), (BY_PROBING, BY_CUT))
            row[1].set(title=f"(a) Time, products, {weights}", xlabel="Columns")
            for panel, axis, label in ((row[2], COLUMNS, "Columns"), (row[3], UTILITIES, "Utility (share)")):
                _panel(panel, pictures.pick(adult, axis=axis, measure="risk"), METHODS)
                panel.set(title=f"(b) Risk by {axis}", xlabel=label)
            row[2].set_ylabel("Mean risk")
        for panel in axes[0]:
            panel.legend(fontsize=7)


def _panel(panel: Any, points: Sequence[Any], methods: Sequence[str]) -> None:
    for method in methods:
        chosen = sorted(pictures.pick(points, method=method), key=lambda point: float(point["at"]))
        color, marker, line = STYLES[method]
        panel.plot(
            [point["at"] for point in chosen], [point["mean"] for point in chosen], color=color, marker=marker,
            linestyle=line, markersize=4, linewidth=1.2, label=method,
        )  # fmt: skip
    panel.set_yscale("log")
    panel.set_xticks(sorted({point["at"] for point in points}))


def main() -> None:
    given = record.options(__doc__, learners=())
    found = record.measured(given, NAME, KEYS, lambda: run(given))
    figure = record.save(
        given, NAME, "The Lagrangian against the threshold",
        f"Adult: all rows, all three objectives solved exactly; c = {C:g} where columns vary, 8 columns where c "
        "varies; kappa = 1. The Lagrangian needs a weight above 0 for suppressed rows: harmonic weights with a floor "
        "of 1, or Model II. Lambda is bisected until the mean utility of all rows is at least that of the "
        f"threshold's optimum (which is above c: depths are whole numbers) and within {NEAR / 4:g} of it, or jumps. "
        "Time is CPU seconds of one thread for all rows. The cube solves all of them; the row-by-row search (prefix "
        f"sums) is timed on {N_BY_ROW} sampled rows, the Lagrangian's proofs and cuts, at the lambda found, on "
        f"{N_CUT:,}; on the product table (c = 0.8, lambda = lambda_0) probing on {N_PROBED} and the Lagrangian on "
        f"{N_PROVED:,}; these are extrapolated.",
        found, {record.NO_LEARNERS: claims(found)}, table=table(found),
    )  # fmt: skip
    draw(figure, given.out)


if __name__ == "__main__":
    main()
