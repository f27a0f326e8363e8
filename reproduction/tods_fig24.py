"""Figure 24 of [LDR08]: nodes that Rothko-S prunes, with its hypothesis tests and (in brackets) without."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
from lab import pictures, record, rothko, studies, trials
from lab.record import Claim, Finding, Measured
from lab.studies import Study

from sfumato.errors import InternalError
from sfumato.examples.agrawal import agrawal
from sfumato.policy.requirements import KAnonymity, RecursiveDiversity, Requirement, VarianceDiversity
from sfumato.policy.schema import Kind
from sfumato.randomness import seeded_block

NAME = "tods_fig24"
N_ROWS = 100_000
SAMPLES = (100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000)
HEIGHT = 8
EXCESSIVE = 0.05
"""A share of the groups: more splits undone than that are called excessive."""

PRUNED, NONMINIMAL, GROUPS = "splits undone", "nonminimal", "groups"
A_PAIR = 2
"""The engine counts the nodes that vanish. All attributes are numbers, so that every split has two children with rows
of the sample, and nodes vanish in pairs: their number is always even. The paper's entries are odd as often as not; it
counts the nodes whose split was undone, one for each pair."""


def k_anonymity(k: float) -> Requirement:
    return KAnonymity(int(k))


def diversity(l: float) -> Requirement:  # noqa: E741 - the letter of the definition
    return RecursiveDiversity(c=1, l=int(l), of="zipcode")


def variance(v: float) -> Requirement:
    return VarianceDiversity(at_least=v, of="salary")


PRINTED = {
    "a": """
        68 (1384)   x (x)     x (x)   x (x)
        30 (1110)   7 (97)    x (x)   x (x)
        11 (419)    12 (55)   x (x)   x (x)
        0 (0)       5 (6)     x (x)   x (x)
        0 (0)       2 (1)     1 (3)   x (x)
        0 (0)       0 (0)     1 (4)   x (x)
        0 (0)       0 (0)     0 (0)   x (x)
        0 (0)       0 (0)     0 (0)   0 (0)
    """,
    "b": """
        97 (631)    x (x)     x (x)   x (x)
        65 (87)     x (x)     8 (67)  x (x)
        2 (763)     x (111)   2 (32)  x (x)
        112 (91)    1 (170)   1 (33)  x (16)
        0 (0)       0 (2)     1 (0)   0 (2)
        0 (0)       0 (2)     0 (0)   0 (9)
        0 (0)       0 (1)     0 (0)   0 (0)
        0 (0)       0 (1)     0 (0)   0 (0)
    """,
    "c": """
        x (x)       x (x)     x (x)
        x (510)     x (x)     x (x)
        x (443)     x (434)   x (x)
        0 (456)     x (372)   x (x)
        0 (0)       0 (87)    x (146)
        0 (0)       0 (0)     0 (47)
        0 (0)       0 (0)     0 (5)
        0 (0)       0 (2)     0 (7)
    """,
    "d": """
        x (x)       x (x)     x (x)
        x (396)     x (x)     x (x)
        x (599)     x (457)   x (x)
        0 (402)     0 (405)   x (278)
        0 (18)      0 (66)    x (169)
        0 (0)       0 (0)     0 (6)
        0 (0)       0 (0)     0 (13)
        0 (0)       0 (0)     0 (17)
    """,
}
"""The paper's own tables, a line for each sample size."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One of the four tables of the figure: for which requirement, and of which column."""

    part: str
    title: str
    letter: str
    values: tuple[float, ...]
    require: Callable[[float], Requirement]
    sensitive: str | None = None
    salary: str = "uniform"

    def study(self, number: int, n_rows: int, seed: int) -> Study:
        drawn = int(seeded_block(seed, number).integers(2**62))
        rows = pa.Table.from_batches(agrawal(n_rows, seed=drawn, salary=self.salary))
        quasi = studies.agrawal_attributes(hierarchies=False)
        targets = [studies.target(studies.CLASS)]
        if self.sensitive:
            kind = Kind.NUMBER if self.sensitive == "salary" else Kind.CATEGORY
            targets.append(studies.target(self.sensitive, kind))
        return Study("Agrawal", rows, tuple(a for a in quasi if a.name != self.sensitive), tuple(targets))

    def paper(self) -> dict[tuple[int, float], str]:
        """The printed entries by n and value: with tests, and in brackets without.

        >>> PANELS[0].paper()[250, 100]
        '7 (97)'
        """
        cells = {}
        for n, line in zip(SAMPLES, PRINTED[self.part].strip().splitlines(), strict=True):
            words = line.split()
            pairs = [f"{one} {two}" for one, two in zip(words[::2], words[1::2], strict=True)]
            cells.update({(n, value): pair for value, pair in zip(self.values, pairs, strict=False)})
        return cells


PANELS = (
    Panel("a", "k-Anonymity", "k", (10, 100, 1_000, 10_000), k_anonymity),
    Panel("b", "l-Diversity", "l", (2, 4, 6, 8), diversity, "zipcode"),
    Panel("c", "Variance diversity, uniform", "v", (1.1e9, 1.2e9, 1.3e9), variance, "salary"),
    Panel("d", "Variance diversity, normal", "v", (7e7, 8e7, 9e7), variance, "salary", "normal"),
)


def trial(part: str, value: float, n: int, number: int, n_rows: int, seed: int) -> list[dict[str, Any]]:
    """One entry of the figure's table a, b, c or d."""
    panel = next(panel for panel in PANELS if panel.part == part)
    study = panel.study(number, n_rows, seed)
    policy = study.policy("Median", sensitive=panel.sensitive)
    out = []
    for tests in (True, False):
        found = rothko.sampled(
            study.table,
            policy,
            n,
            require=[panel.require(value)],
            tests=tests,
            max_height=HEIGHT,
            seed=number,
        )
        undone, left = divmod(found.io["pruned"], A_PAIR)
        if left:
            raise InternalError("A split into two was undone and left one of its nodes.")
        measures = {PRUNED: undone, NONMINIMAL: found.is_nonminimal, GROUPS: found.n_groups}
        out += [
            {
                "trial": number, "value": float(count), "panel": panel.title, "parameter": value, "n": n,
                "tests": "yes" if tests else "no", "measure": name,
            }
            for name, count in measures.items()
        ]  # fmt: skip
    return out


class Entries:
    """The entries of the figure: means over the tables."""

    def __init__(self, found: Measured, panels: Sequence[Panel], samples: Sequence[int]) -> None:
        self._found = found
        self.panels = panels
        self.samples = samples

    def of(self, measure: str, panel: Panel, value: float, n: int, *, tests: bool) -> float:
        where = {"panel": panel.title, "parameter": value, "n": n, "tests": "yes" if tests else "no"}
        return float(self._found.of(measure=measure, **where).mean())

    def has(self, panel: Panel, value: float, n: int) -> bool:
        """Was this entry measured?"""
        try:
            self.of(PRUNED, panel, value, n, tests=True)
        except KeyError:
            return False
        return True

    def is_marked(self, panel: Panel, value: float, n: int, *, tests: bool) -> bool:
        return self.of(NONMINIMAL, panel, value, n, tests=tests) > 0

    def text(self, panel: Panel, value: float, n: int) -> str:
        """As the paper prints an entry: x where a partitioning may not be minimal; a dash where it was not measured."""
        if not self.has(panel, value, n):
            return "-"
        words = []
        for tests in (True, False):
            pruned = self.of(PRUNED, panel, value, n, tests=tests)
            words.append("x" if self.is_marked(panel, value, n, tests=tests) else f"{pruned:.4g}")
        return f"{words[0]} ({words[1]})"


def claims(entries: Entries) -> list[Claim]:
    fewer, tame, falls = [], [], []
    for panel in entries.panels:
        cells = [(v, n) for v in panel.values for n in entries.samples if entries.has(panel, v, n)]
        if not cells:
            continue
        total = [
            sum(entries.of(PRUNED, panel, *cell, tests=tests) for cell in cells) for tests in (True, False)
        ]
        fewer.append(
            Finding(
                f"{panel.title}: fewer splits undone in all with tests",
                total[0] < total[1],
                f"{total[0]:g} against {total[1]:g}",
            )
        )
        for value, n in cells:
            pruned, groups = (entries.of(name, panel, value, n, tests=True) for name in (PRUNED, GROUPS))
            if pruned and not entries.is_marked(panel, value, n, tests=True):
                tame.append(
                    Finding(
                        f"{panel.title}, n = {n:,}, {panel.letter} = {value:g}: splits undone at most 5% of the groups",
                        pruned <= EXCESSIVE * groups, f"{pruned:g} splits, {groups:,.0f} groups",
                    )
                )  # fmt: skip
        # a column that is not whole would count as fewer
        samples = [n for n in entries.samples if all(entries.has(panel, v, n) for v in panel.values)]
        if len(samples) > 1:
            falls += [
                _falls(entries, panel, samples, tests=tests, rule=rule)
                for tests in (True, False)
                for rule in RULES
            ]
    tame = tame or [Finding("no split is undone with tests", True, "none")]
    judged = [
        Claim("the tests prune less than the naive approach", tuple(fewer)),
        Claim("even small samples do not lead to an excessive amount of pruning", tuple(tame)),
        Claim("nonminimality and pruning decrease with the size of the sample", tuple(falls)),
    ]
    return [claim for claim in judged if claim.findings]


RULES = ("x marks never rise with n", "fewer undone by the larger half of samples")


def _falls(entries: Entries, panel: Panel, samples: Sequence[int], *, tests: bool, rule: str) -> Finding:
    """Over all columns of a panel, at the sample sizes of which every entry was measured."""
    what = f"{panel.title}, {'with' if tests else 'without'} tests: {rule}"
    if rule == RULES[0]:
        marks = [sum(entries.is_marked(panel, v, n, tests=tests) for v in panel.values) for n in samples]
        return Finding(what, all(a >= b for a, b in pairwise(marks)), ", ".join(map(str, marks)))
    half = len(samples) // 2
    pruned = [sum(entries.of(PRUNED, panel, v, n, tests=tests) for v in panel.values) for n in samples]
    small, large = sum(pruned[:half]), sum(pruned[half:])
    return Finding(what, large < small or small == large == 0, f"{large:g} against {small:g}")


def markdown(entries: Entries) -> str:
    """The paper's table with ours above its own."""
    parts = []
    for panel in entries.panels:
        paper = panel.paper()
        lines = [
            f"| {panel.title}: n | " + " | ".join(f"{panel.letter} = {v:g}" for v in panel.values) + " |"
        ]
        lines.append("|---" * (len(panel.values) + 1) + "|")
        for n in entries.samples:
            cells = []
            for value in panel.values:
                printed = paper.get((n, value))
                theirs = f"<br>*{printed}*" if printed else ""
                cells.append(entries.text(panel, value, n) + theirs)
            lines.append(f"| {n:,} | " + " | ".join(cells) + " |")
        parts.append("\n".join(lines))
    return "\n\n".join(["Splits undone here; the paper's entry below in italics.", *parts])


def draw(entries: Entries, path: Path) -> None:
    with pictures.sheet(path, 2, 2, size=(4.6, 3.6)) as axes:
        for axis, panel in zip(axes.flat, entries.panels, strict=True):
            axis.set_axis_off()
            axis.set(xlim=(-0.7, len(panel.values)), ylim=(len(entries.samples) + 0.3, -1.2))
            title = f"({panel.part}) {panel.title}"
            axis.text((len(panel.values) - 1) / 2, -1.05, title, ha="center", weight="bold")
            axis.text(-0.5, -0.4, "n", style="italic", ha="center")
            paper = panel.paper()
            for line, n in enumerate(entries.samples):
                axis.text(-0.5, line + 0.4, f"{n:,}", ha="center")
            for column, value in enumerate(panel.values):
                place = column + 0.3
                axis.text(place, -0.4, f"{panel.letter} = {value:g}", style="italic", ha="center")
                for line, n in enumerate(entries.samples):
                    axis.text(place, line + 0.3, entries.text(panel, value, n), ha="center", fontsize=8)
                    axis.text(
                        place,
                        line + 0.72,
                        paper.get((n, value), ""),
                        ha="center",
                        fontsize=6,
                        color="#8a8a8a",
                    )


def _more(parser: ArgumentParser) -> None:
    parser.add_argument("--unfinished", action="store_true", help="record what is measured so far, and end")


def main() -> None:
    given = record.options(__doc__ or "", learners=(), more=_more)
    n_rows = 5_000 if given.quick else N_ROWS
    samples = given.at or ((500, 1_000) if given.quick else SAMPLES)
    panels = [replace(panel, values=panel.values[:2]) for panel in PANELS] if given.quick else PANELS
    n_tables = given.trials or 1
    folder = rothko.folder_of(given, NAME)
    tasks = []
    for panel in panels:
        for value in panel.values:
            for n in samples:
                for number in range(n_tables):
                    asked = (panel.part, value, n, number, n_rows, given.seed)
                    task = (folder, json.dumps([NAME, *asked]), given.fresh, trial, *asked)
                    if not given.unfinished or rothko.kept_path(*task[:2]).exists():
                        tasks.append(task)
    found = record.measured(
        given, NAME, ("panel", "parameter", "n", "tests", "measure"),
        lambda: trials.run(rothko.kept, tasks, processes=given.processes, title="Figure 24"),
    )  # fmt: skip
    entries = Entries(found, panels, samples)
    record.save(
        given, NAME, "Nodes pruned by Rothko-S",
        f"Median, {n_tables} generated table(s) of {n_rows:,} rows; the sample fills the memory, and the rows are "
        f"repartitioned at the latest when the tree is {HEIGHT} levels high. An entry is the number of splits that "
        "pruning undid: the paper calls it nodes pruned, and since many of its entries are odd, it cannot mean the nodes "
        "that vanish, which come in pairs. In brackets: without hypothesis tests. "
        "x: the partitioning may not be minimal (`fallback: none`). Gray in the picture: the entries that the paper "
        f"prints. {'A dash: not measured. ' if given.unfinished else ''}Attributes that are sensitive are no "
        "quasi-identifiers here.",
        found, {record.NO_LEARNERS: claims(entries)}, table=markdown(entries),
    )  # fmt: skip
    draw(entries, given.out / f"{NAME}.png")


if __name__ == "__main__":
    main()
