"""What a box for each row costs, and how good it is: Adult (45,222 rows, 8 columns) and products (400,000 x 30).

    SFUMATO_DATA=... python benchmarks/bench_tradeoff.py [--repeats 3] [--only adult lagrangian probing excess private]

- ``adult``: the exact optimum of all rows (threshold, personal weights, log-risk, Lagrangian) in CPU seconds of one
  thread, beside its twin, which searches each row alone (prefix sums, on sampled rows, extrapolated to all).
- ``lagrangian``: the Lagrangian of 20,000 sampled products, in rows proved per second.
- ``probing``: row-join probing of sampled products, in milliseconds per row with the scan for near rows. What all rows
  would cost is extrapolated, here and above, and said.
- ``excess``: risk above the exact optimum, of the genetic search (repaired, and improved) and of probing: on Adult, and
  on rows of the products that branch and bound proved.
- ``private``: one half of Adult the public side table, the other released: how much of it is published.

CPU seconds of this process, the least of the repeats; kernels are compiled before. One JSON line for each measure, then a
table with the targets of the design.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "reproduction"))

from lab import excess, private_tradeoff, row_by_row, tradeoff_studies, tradeoff_tables
from lab.tradeoff_studies import PRODUCTS, clocked

from sfumato.methods.risk_utility.optimizers import exact, probing
from sfumato.methods.risk_utility.paper import lagrangian
from sfumato.methods.risk_utility.problem import (
    Ints,
    Lagrangian,
    LatticeProblem,
    LogRisk,
    Solution,
    Threshold,
    problem_of,
)
from sfumato.policy.options.risk_utility import HARMONIC, MODEL_1, MODEL_2, Weights
from sfumato.randomness import seeded

C = Fraction(3, 5)
C_OF_PRODUCTS = Fraction(4, 5)
N_TWIN, N_LAGRANGIAN, N_PROBED = 500, 20_000, 500
N_ADULT_EXCESS, N_PRODUCTS_EXCESS = 300, 60


class Results:
    """Prints each measure as a JSON line, and all of them as a table in the end."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, str, str]] = []

    def tell(self, measure: str, value: float, unit: str, target: str = "", **more: Any) -> None:
        machine = f"{platform.machine()}, {os.cpu_count()} cores"
        line = {"bench": "tradeoff", "measure": measure, "value": float(f"{value:.4g}"), "unit": unit, **more}
        print(json.dumps({**line, **({"target": target} if target else {}), "machine": machine}), flush=True)
        self.rows.append((measure, f"{value:.4g} {unit}", target))

    def show(self) -> None:
        widths = [max(len(row[i]) for row in self.rows) for i in range(3)]
        print()
        for row in self.rows:
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def fastest(what: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """CPU seconds of the fastest of some runs, and what it gave."""
    return min((clocked(what) for _ in range(repeats)), key=lambda found: found[0])


# ---- Adult ---------------------------------------------------------------------------------------------


def personal(n_rows: int, n_columns: int) -> np.ndarray:
    """Personal factors: every owner and column one of four."""
    return seeded(1).choice([0.5, 1.0, 2.0, 5.0], size=(n_rows, n_columns))


def bench_adult(results: Results, repeats: int) -> None:
    domains, codes = tradeoff_tables.adult()
    plain = problem_of(domains, codes, weights=Weights(HARMONIC))
    floored = problem_of(domains, codes, weights=Weights(HARMONIC), floor=1.0)
    owned = problem_of(domains, codes, weights=Weights(HARMONIC), factor=personal(*codes.shape))
    threshold = Threshold(C)
    price = Fraction(floored.lambda_0()).limit_denominator(10**12)
    exact.solve(plain, threshold, threads=1)  # compiles
    exact.solve(owned, threshold, threads=1)
    seconds, best = fastest(lambda: exact.solve(plain, threshold, threads=1), repeats)
    results.tell(
        "Adult, exact threshold, all rows", seconds, "CPU s", "<= 2", rows=len(codes), distinct=plain.n,
        proved=int(best.is_proved.sum()),
    )  # fmt: skip
    twin(results, plain, threshold, seconds)
    for what, problem, objective, target in (
        ("personal weights, threshold", owned, threshold, "<= 3"),
        ("log-risk, lambda = 1", floored, LogRisk(Fraction(1)), ""),
        ("Lagrangian, lambda = lambda_0", floored, Lagrangian(price), ""),
    ):
        exact.solve(problem, objective, threads=1)
        taken, found = fastest(partial(exact.solve, problem, objective, threads=1), repeats)
        results.tell(
            f"Adult, exact, {what}, all rows",
            taken,
            "CPU s",
            target,
            proved=int(found.is_proved.sum()),
            rows=problem.n,
        )


def twin(results: Results, problem: LatticeProblem, objective: Threshold, seconds: float) -> None:
    """Every row alone: the same optimum, by prefix sums over its own lattice."""
    which = np.sort(seeded(2).choice(problem.n, N_TWIN, replace=False))
    row_by_row.by_prefix_sums(problem, objective, which[:2])
    taken, alone = clocked(lambda: row_by_row.by_prefix_sums(problem, objective, which))
    together = exact.solve(problem, objective, which=which, threads=1)
    assert np.array_equal(problem.risk(alone), problem.risk(together))
    every = taken / len(which) * problem.n
    results.tell(
        "Adult, each row alone by prefix sums, all rows", every, "CPU s", "", timed_rows=N_TWIN,
        extrapolated_to=problem.n,
    )  # fmt: skip
    results.tell("Adult, each row alone / one cube", every / seconds, "times")


# ---- products ------------------------------------------------------------------------------------------


def bench_lagrangian(results: Results, repeats: int) -> None:
    for weights, (model, floor) in {
        "harmonic, floor 0.1": (HARMONIC, 0.1), "Model I, floor 1": (MODEL_1, 1.0), "Model II": (MODEL_2, 0.0),
    }.items():  # fmt: skip
        problem = tradeoff_studies.problem(
            PRODUCTS, tradeoff_studies.N_COLUMNS[PRODUCTS], model=model, floor=floor
        )
        which = tradeoff_studies.sampled(problem, N_LAGRANGIAN, seeded(3))
        objective = Lagrangian(Fraction(problem.lambda_0()).limit_denominator(10**12))
        lagrangian.solve(problem, objective, which=which[:10], threads=1)  # compiles
        taken, found = fastest(partial(lagrangian.solve, problem, objective, which=which, threads=1), repeats)
        proved = int(found.is_proved.sum())
        results.tell(
            f"400,000 x 30, Lagrangian at lambda_0, {weights}", proved / taken, "rows proved per CPU s",
            ">= 10,000" if floor else "", rows=len(which), proved=proved, seconds=round(taken, 3),
            seconds_of_all=_of_all(taken, which, problem),
        )  # fmt: skip


def bench_probing(results: Results, repeats: int) -> None:
    problem = tradeoff_studies.problem(PRODUCTS, tradeoff_studies.N_COLUMNS[PRODUCTS])
    which = tradeoff_studies.sampled(problem, N_PROBED, seeded(4))
    objective = Threshold(C_OF_PRODUCTS)
    probing.solve(problem, objective, which=which[:2], threads=1)
    taken, _ = fastest(partial(probing.solve, problem, objective, which=which, threads=1), repeats)
    results.tell(
        f"400,000 x 30, row-join probing with its scan, c = {float(C_OF_PRODUCTS):g}", 1e3 * taken / len(which),
        "CPU ms per row", "<= 6", rows=len(which), seconds_of_all=_of_all(taken, which, problem),
    )  # fmt: skip


def _of_all(taken: float, which: Ints, problem: LatticeProblem) -> float:
    """What all rows would take, extrapolated."""
    return round(taken / len(which) * problem.n, 1)


# ---- how good ------------------------------------------------------------------------------------------


def bench_excess(results: Results, _: int) -> None:
    problem = excess.adult_problem()
    for share in (Fraction(9, 17), Fraction(12, 17)):
        objective = Threshold(share)
        least = exact.solve(problem, objective, which=excess.sampled(problem, N_ADULT_EXCESS))
        _tell_excess(results, f"Adult, c = {share}", problem, objective, least, N_ADULT_EXCESS)
    problem = excess.products_problem()
    objective = Threshold(C_OF_PRODUCTS)
    least = excess.proved(problem, objective, excess.sampled(problem, N_PRODUCTS_EXCESS))
    _tell_excess(results, f"400,000 x 30, c = {C_OF_PRODUCTS}", problem, objective, least, N_PRODUCTS_EXCESS)


def _tell_excess(
    results: Results, where: str, problem: LatticeProblem, objective: Threshold, least: Solution, tried: int
) -> None:
    for found in excess.measure(problem, objective, least):
        target = "<= 7" if found.search == "probing" else ""
        more = {
            "rows_tried": tried,
            "rows_with_known_optimum": found.rows,
            "milliseconds": round(found.milliseconds, 2),
        }
        results.tell(
            f"{where}, {found.search}: mean excess", 100 * found.mean, "%", target,
            worst=f"{found.worst:.1%}", within_7_percent=f"{found.within:.1%}", **more,
        )  # fmt: skip


def bench_private(results: Results, _: int) -> None:
    for found in private_tradeoff.outcomes():
        is_judged = found.at_least == Fraction(6, 17) and found.plan.s == Fraction(1, 2)
        results.tell(
            f"Adult, half public, private, c = {found.at_least}, s = {float(found.plan.s):g}: drawn rows published",
            100 * found.share, "%", ">= 90" if is_judged else "", k0=found.plan.k0,
            delta=f"{float(found.plan.delta):.2e}", boxes=found.boxes, mean_utility=round(found.utility, 3),
        )  # fmt: skip


PARTS = {
    "adult": bench_adult,
    "lagrangian": bench_lagrangian,
    "probing": bench_probing,
    "excess": bench_excess,
    "private": bench_private,
}


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--repeats", type=int, default=3)
    given.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    options = given.parse_args()
    results = Results()
    for name in options.only:
        PARTS[name](results, options.repeats)
    results.show()


if __name__ == "__main__":
    main()
