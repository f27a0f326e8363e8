"""What figures 22 and 23 share: quality of Rothko-S's partitionings for several sample sizes."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lab import pictures, record, rothko, studies, trials
from lab.record import Claim, Finding, Measured
from lab.studies import Study
from sfumato.evaluation import measures
from sfumato.examples.agrawal import agrawal
from sfumato.policy.schema import Kind
from sfumato.randomness import seeded_block

SAMPLES = (1_000, 2_500, 5_000, 10_000, 25_000, 50_000)
KS = (10, 100, 1_000)
N_TABLES, N_ROWS = 10, 100_000
LARGE = 10_000
"""Samples of so many rows and more are called large."""

QUALITY, NONMINIMAL = "quality", "nonminimal"
VERY_SMALL = 0.1
"""Of the effect of k: a difference below this share is called very small."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture of a figure: a function of the generator, or the Census table and its target."""

    title: str
    function: str | None
    target: str

    @property
    def criterion(self) -> str:
        return "InfoGain" if self.target == studies.CLASS and self.is_classified else "Regression"

    @property
    def is_classified(self) -> bool:
        return self.function is None or self.function.startswith("C")

    def study(self, number: int, n_rows: int, seed: int) -> Study:
        if self.function is None:
            return studies.census(min(n_rows, studies.CENSUS_ROWS), seed)
        drawn = int(seeded_block(seed, number).integers(2**62))
        rows = pa.Table.from_batches(agrawal(n_rows, function=self.function, seed=drawn))
        kind = Kind.CATEGORY if self.is_classified else Kind.NUMBER
        quasi = studies.agrawal_attributes(hierarchies=False)
        return Study("Agrawal", rows, quasi, (studies.target(studies.CLASS, kind),))


def trial(
    panel: Panel, number: int, n_rows: int, k: int, samples: Sequence[int], seed: int
) -> list[dict[str, Any]]:
    """Quality of the partitionings of one table, and whether they may be coarser than they need to be."""
    study = panel.study(number, n_rows, seed)
    policy = study.policy(panel.criterion, k=k, targets=(panel.target,))
    out = []
    for n in (*samples, study.table.num_rows):
        found = rothko.sampled(study.table, policy, min(n, study.table.num_rows), seed=number)
        values = {QUALITY: quality(panel, found, study), NONMINIMAL: float(found.is_nonminimal)}
        x = n if n in samples else ALL
        out += [
            {"trial": number, "value": value, "panel": panel.title, "measure": name, "k": k, "sample": x}
            for name, value in values.items()
        ]
    return out


ALL = 0
"""In place of a sample size: every row."""


def quality(panel: Panel, found: rothko.Sampled, study: Study) -> float:
    """Conditional entropy of a class [LDR08, equation 1], mean squared error of a number [equation 2]."""
    group, target = found.group(study.features), found.rows[panel.target]
    if panel.criterion == "InfoGain":
        codes = target.combine_chunks()
        codes = codes if pa.types.is_dictionary(codes.type) else codes.dictionary_encode()
        return measures.conditional_entropy(
            group, codes.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        )
    return measures.mean_squared_error(group, target.to_numpy().astype(np.float64))


def measured(given: Namespace, name: str, title: str, panels: Sequence[Panel]) -> Measured:
    n_tables, n_rows, ks, samples = plan(given)
    tasks = []
    for panel in panels:
        for number in range(1 if panel.function is None else n_tables):
            for k in ks:
                asked = (panel, number, n_rows, k, samples, given.seed)
                tasks.append(
                    (
                        rothko.folder_of(given, name),
                        json.dumps([name, *map(str, asked)]),
                        given.fresh,
                        trial,
                        *asked,
                    )
                )
    return record.measured(
        given, name, ("panel", "measure", "k", "sample"),
        lambda: trials.run(rothko.kept, tasks, processes=given.processes, title=title),
    )  # fmt: skip


def plan(given: Namespace) -> tuple[int, int, tuple[int, ...], tuple[int, ...]]:
    """Number of tables, of rows, values of k, sizes of samples."""
    if given.quick:
        return given.trials or 2, 4_000, (10, 100), given.at or (200, 1_000)
    return given.trials or N_TABLES, N_ROWS, KS, given.at or SAMPLES


def claims(found: Measured, given: Namespace, panels: Sequence[Panel]) -> list[Claim]:
    _, _, ks, samples = plan(given)
    sizes = (*samples, ALL)

    def values(panel: Panel, k: int, n: int) -> Any:
        return found.of(panel=panel.title, measure=QUALITY, k=k, sample=n)

    better, tiny, less = [], [], []
    for panel in panels:
        mean = {(k, n): float(values(panel, k, n).mean()) for k in ks for n in sizes}
        effect = min(mean[b, n] - mean[a, n] for a, b in pairwise(ks) for n in sizes)
        whole = mean[ks[-1], ALL] - mean[ks[0], ALL]
        for k in ks:
            what = f"{panel.title}, k = {k:,}"
            series = [mean[k, n] for n in sizes]
            n_rises = sum(high > low for low, high in pairwise(series))
            better.append(
                Finding(
                    f"{what}: never rises along the series",
                    n_rises == 0,
                    f"rises at {n_rises} of {len(series) - 1} steps: {', '.join(f'{value:.4g}' for value in series)}",
                )
            )
            large = [n for n in samples if n >= LARGE] or samples[-1:]
            spread = np.ptp([mean[k, n] for n in (*large, ALL)])
            tiny.append(
                Finding(
                    f"{what}, samples of {large[0]:,} rows and more: spread below a tenth of the effect of k",
                    bool(spread <= VERY_SMALL * whole), f"{spread:.3g}, k makes {whole:.3g}",
                )
            )  # fmt: skip
            spread = np.ptp([mean[k, n] for n in sizes])
            less.append(
                Finding(
                    f"{what}, all sample sizes: spread below the least effect of a step of k",
                    bool(spread < effect), f"{spread:.3g} against {effect:.3g}",
                )
            )  # fmt: skip
    return [
        Claim(
            "a larger sample improves quality: entropy or error never rises along a series",
            tuple(better),
            from_means=True,
        ),
        Claim("between large samples the difference is very small", tuple(tiny), from_means=True),
        Claim("the sample size matters much less than k", tuple(less), from_means=True),
    ]


def draw(
    figure: record.Figure,
    path: Path,
    panels: Sequence[Panel],
    given: Namespace,
    label: Callable[[Panel], str],
) -> None:
    """A line for each k; partitionings that may not be minimal are circled."""
    _, _, ks, _ = plan(given)
    with pictures.sheet(path, 1, len(panels), size=(3.8, 3)) as axes:
        for axis, panel in zip(axes[0], panels, strict=True):
            of_panel = pictures.pick(figure.points, panel=panel.title)
            n_rows = min(plan(given)[1], studies.CENSUS_ROWS) if panel.function is None else plan(given)[1]

            def at(point: Mapping[str, Any], n_rows: int = n_rows) -> int:
                return int(point["sample"] or n_rows)

            for k, color in zip(ks, pictures.SHADES, strict=False):
                of_k = pictures.pick(of_panel, k=k)
                line = sorted(pictures.pick(of_k, measure=QUALITY), key=at)
                circled = {
                    at(point) for point in pictures.pick(of_k, measure=NONMINIMAL) if point["mean"] > 0
                }
                axis.errorbar(
                    [at(point) for point in line], [point["mean"] for point in line],
                    yerr=[point["half_width"] for point in line], color=color, label=f"k = {k:,}", marker="o",
                    markersize=3.5, linewidth=1.3, capsize=2,
                )  # fmt: skip
                marked = [point for point in line if at(point) in circled]
                axis.plot(
                    [at(point) for point in marked], [point["mean"] for point in marked], "o", markersize=11,
                    markerfacecolor="none", markeredgecolor=color,
                )  # fmt: skip
            pictures.sizes(axis, [at(point) for point in of_panel], last="all rows")
            axis.set(title=panel.title, xlabel="Sample size", ylabel=label(panel))
            axis.set_ylim(0, 1.08 * axis.get_ylim()[1])  # circles of the highest points are whole
        pictures.legend(axes[0][0])


def setup(given: Namespace, what: str) -> str:
    n_tables, n_rows, _, samples = plan(given)
    return (
        f"{n_tables} generated tables of {n_rows:,} rows, and one of Census; {what}. The sample fills the memory: a "
        f"sample of {samples[0]:,} rows means that {samples[0]:,} rows fit. The last point of a line is the whole "
        "table in memory. Circled: at least one of the partitionings may not be minimal (`fallback: none`, as in the "
        "paper). The paper prints neither its sample sizes nor its k."
    )
