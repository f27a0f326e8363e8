"""Pictures in the layout of the paper's figures, all in one quiet style."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

COLORS = {
    "Original": "#4d4d4d",
    "InfoGain": "#1f6f8b",
    "Regression": "#1f6f8b",
    "Selection": "#1f6f8b",
    "TDS": "#d98b2b",
    "Median": "#a23b4a",
    "Median on age and salary": "#d98b2b",
    "In memory": "#4d4d4d",
    "Rothko-S": "#1f6f8b",
    "Rothko-T (1)": "#a23b4a",
    "Rothko-T (4)": "#d98b2b",
    "Rothko-T (8)": "#d98b2b",
    "Reads": "#1f6f8b",
    "Writes": "#d98b2b",
    "user": "#1f6f8b",
    "kernel": "#d98b2b",
    "waiting": "#c9c9c9",
    "tuned": "#1f6f8b",
    "paper": "#a23b4a",
}
IN_LINE = "in line for a core"
COLORS[IN_LINE] = "#f2f2f2"

SHADES = ("#a23b4a", "#d98b2b", "#1f6f8b", "#4d4d4d", "#7a9e4f")
"""For series that are numbers, such as k."""

MARKERS = {"Original": "", "TDS": "s", "Median": "^", "Median on age and salary": "s"}

NAMES = {
    ("decision-tree", "scikit-learn"): "Decision tree (scikit-learn)",
    ("decision-tree", "weka"): "J48 (Weka)",
    ("naive-bayes", "scikit-learn"): "Naive Bayes (ours)",
    ("naive-bayes", "weka"): "Naive Bayes (Weka)",
    ("random-forest", "scikit-learn"): "Random forest (scikit-learn)",
    ("random-forest", "weka"): "Random forest (Weka)",
    ("linear-svm", "scikit-learn"): "Linear SVM (scikit-learn)",
    ("linear-svm", "weka"): "SMO (Weka)",
    ("linear-regression", "scikit-learn"): "Linear regression (scikit-learn)",
    ("linear-regression", "weka"): "Linear regression (Weka)",
    ("regression-tree", "scikit-learn"): "Regression tree (scikit-learn)",
    ("regression-tree", "weka"): "M5P (Weka)",
}

STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": "#e5e5e5",
    "axes.axisbelow": True,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
}


@contextmanager
def sheet(
    path: Path, n_rows: int, n_columns: int, *, size: tuple[float, float] = (3.6, 2.7)
) -> Iterator[Any]:
    """A figure of so many panels (as a matrix of axes), saved on leaving."""
    import matplotlib as mpl  # noqa: PLC0415 - comes with the extra, and is slow to import

    mpl.use("Agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415

    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            n_rows, n_columns, figsize=(size[0] * n_columns, size[1] * n_rows), squeeze=False
        )
        yield axes
        figure.savefig(path, dpi=130, metadata={"Software": None})
        plt.close(figure)


def pick(points: Iterable[Mapping[str, Any]], **of: Any) -> list[Mapping[str, Any]]:
    return [point for point in points if all(point[key] == value for key, value in of.items())]


def lines(
    axes: Any,
    points: Sequence[Mapping[str, Any]],
    *,
    x: str,
    series: str,
    names: Sequence[str],
    log: bool = False,
) -> None:
    """One line with error bars for each series; a series without x is a level line."""
    for name in names:
        chosen = [point for point in points if point[series] == name]
        if not chosen:
            continue
        color = COLORS.get(name, "#4d4d4d")
        if any(point[x] == "" for point in chosen):
            axes.axhline(chosen[0]["mean"], color=color, linestyle="--", linewidth=1, label=name)
            continue
        chosen.sort(key=lambda point: float(point[x]))
        axes.errorbar(
            [float(point[x]) for point in chosen],
            [point["mean"] for point in chosen],
            yerr=[point["half_width"] for point in chosen],
            color=color, label=name, marker=MARKERS.get(name, "o"), markersize=4, linewidth=1.3, capsize=2,
        )  # fmt: skip
    if log:
        axes.set_xscale("log")
        ticks = sorted({float(point[x]) for point in points if point[x] != ""})
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()


def bars(
    axes: Any,
    points: Sequence[Mapping[str, Any]],
    *,
    groups: Sequence[str],
    series: Sequence[str],
    group: str,
) -> None:
    """Bars side by side, as in the paper's figure 6."""
    width = 0.8 / len(series)
    for i, name in enumerate(series):
        chosen = {point[group]: point for point in points if point["method"] == name}
        at = [g + (i - (len(series) - 1) / 2) * width for g in range(len(groups))]
        axes.bar(
            at, [chosen[g]["mean"] for g in groups], width, yerr=[chosen[g]["half_width"] for g in groups],
            color=COLORS[name], label=name, error_kw={"linewidth": 0.8},
        )  # fmt: skip
    axes.set_xticks(range(len(groups)), groups)


NEAR = 1.5
"""Numbers of rows within this factor stand too close on an axis for both to be named."""


def sizes(axes: Any, ticks: Iterable[float], *, last: str = "") -> None:
    """A logarithmic axis of numbers of rows, each named unless the next is too near; ``last`` names the largest."""
    chosen = sorted(set(ticks))
    names = [in_short(n) for n in chosen]
    if last:
        names[-1] = last.replace(" ", "\n")
    named = [
        (n, name)
        for n, name, after in zip(chosen, names, [*chosen[1:], math.inf], strict=True)
        if after > NEAR * n
    ]
    axes.set_xscale("log")
    axes.set_xticks([n for n, _ in named], [name for _, name in named])
    axes.minorticks_off()


def in_short(n: float) -> str:
    """A number of rows as an axis names it.

    >>> in_short(500), in_short(2_500), in_short(250_000), in_short(2_000_000)
    ('500', '2.5k', '250k', '2M')
    """
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if n >= size:
            return f"{n / size:g}{letter}"
    return f"{n:g}"


def stacked(
    axes: Any, points: Sequence[Mapping[str, Any]], *, x: str, parts: Sequence[str], names: Mapping[Any, str]
) -> None:
    """One bar for each x of ``names``, made of its parts, as in the paper's figures 19 to 21.

    The bars end at the wall time; what the parts leave of it is the time that the process stood in line for a core.
    """
    value = {(point["measure"], point[x]): point["mean"] for point in points}
    height = [0.0] * len(names)
    for part in (*parts, IN_LINE):
        more = [
            value["wall", at] - low if part == IN_LINE else value[part, at]
            for low, at in zip(height, names, strict=True)
        ]
        hatch = {"hatch": "///", "edgecolor": "#9a9a9a", "linewidth": 0} if part == IN_LINE else {}
        axes.bar(range(len(names)), more, 0.6, bottom=height, color=COLORS[part], label=part, **hatch)
        height = [low + part for low, part in zip(height, more, strict=True)]
    axes.set_xticks(range(len(names)), list(names.values()))


def same_height(panels: Iterable[Any]) -> None:
    """All panels from the lowest to the highest of what any shows, so that nothing is cut off."""
    panels = list(panels)
    ends = [panel.get_ylim() for panel in panels]
    for panel in panels:
        panel.set_ylim(min(low for low, _ in ends), max(high for _, high in ends))


def legend(panel: Any) -> None:
    """The series of one panel, named once above all panels."""
    handles, names = panel.get_legend_handles_labels()
    panel.figure.legend(handles, names, loc="outside upper center", ncols=len(names))
