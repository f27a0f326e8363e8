"""The frontier as a picture: risk to the right, utility upwards, error bars, raw data and nothing as lines.

Differentially private settings have panels of their own, with epsilon to the right: the two are not one scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sfumato.compare.advice import scale_of, series
from sfumato.compare.result import MEASURE, Comparison, Setting
from sfumato.evaluate.result import ACCURACY
from sfumato.tables import replace_atomically

INKS = ("#1f6f8b", "#c8553d", "#6a7b3c", "#7a5c99", "#b08900", "#4a4a4a")
"""One for each series, told apart also in grey print by the marks."""
MARKS = ("o", "s", "^", "D", "v", "P")
GREY = "#8a8a86"
STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.labelcolor": "#33332f",
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "xtick.color": "#55554f",
    "ytick.color": "#55554f",
    "svg.hashsalt": "sfumato",  # the same picture gives the same bytes
    "svg.fonttype": "none",
}
RISK = "largest risk of a row: 1 / size of its group  (less to the left)"
EPSILON = "epsilon  (more private to the left)"
CHARACTERS_PER_INCH = 14
"""Of the legend, in its size of letters."""


def draw(found: Comparison, folder: Path) -> tuple[Path, ...]:
    """Write ``frontier.png`` and ``frontier.svg``; where no setting can be met there is neither."""
    paths = (folder / "frontier.png", folder / "frontier.svg")
    if not found.met:
        for path in paths:
            path.unlink(missing_ok=True)  # of an earlier comparison
        return ()
    import matplotlib as mpl  # noqa: PLC0415 - comes with an extra
    from matplotlib.figure import Figure  # noqa: PLC0415

    with mpl.rc_context(STYLE):
        figure = _figure(found, Figure)
        for path in paths:
            with replace_atomically(path) as temporary:
                dated = {"Date": None} if path.suffix == ".svg" else {"Software": None}
                figure.savefig(temporary, format=path.suffix[1:], dpi=150, metadata=dated)
    return paths


def _figure(found: Comparison, make: Any) -> Any:
    """A line of panels for each target, one for each model; without a target one panel of the measure.

    Where there are private settings and others, each model has two.
    """
    kinds = sorted({setting.is_private for setting in found.met})
    named: list[tuple[str | None, str | None]] = [(score.target, score.model) for score in found.raw]
    panels = [(is_private, *names) for is_private in kinds for names in named or [(None, None)]]
    targets = list(dict.fromkeys(target for _, target, _ in panels))
    n_columns = max(sum(target == one for _, one, _ in panels) for target in targets)
    figure = make(figsize=(max(5.6, 3.4 * n_columns + 0.6), 3.1 * len(targets) + 0.9), layout="constrained")
    shared = "col" if len(kinds) > 1 else "all"
    grid = figure.subplots(len(targets), n_columns, squeeze=False, sharex=shared, sharey="row")
    seen = dict.fromkeys(targets, 0)
    for is_private, target, model in panels:
        axes = grid[targets.index(target), seen[target]]
        seen[target] += 1
        _panel(axes, found, target, model, is_private=is_private)
        if len(kinds) > 1:
            axes.set_xlabel(EPSILON if is_private else RISK, fontsize=7.5)
        if seen[target] == 1:
            axes.set_ylabel(_utility_label(found, target))
    for line, target in zip(grid, targets, strict=True):
        for spare in line[seen[target] :]:
            spare.remove()
    for column in range(n_columns):
        lowest = max(row for row, target in enumerate(targets) if column < seen[target])
        grid[lowest, column].tick_params(labelbottom=True)
    if len(kinds) == 1:
        figure.supxlabel(EPSILON if kinds[0] else RISK, fontsize=9)
    shown = dict(
        pair for axes in grid[0] for pair in zip(*reversed(axes.get_legend_handles_labels()), strict=True)
    )
    if len(names := [name for name, _ in series(found) if name]) > 1:
        width = max(map(len, names)) + 6  # in characters, the mark before a name included
        n_wide = max(1, min(len(names), int(CHARACTERS_PER_INCH * figure.get_figwidth()) // width))
        handles = [shown[name] for name in names]
        figure.legend(handles, names, loc="outside upper left", ncols=n_wide, frameon=False)
    return figure


def _utility_label(found: Comparison, target: str | None) -> str:
    if target is None:
        return f"{MEASURE}\n(less is better)"
    metric = found.of_nothing(target).metric
    return f"{target}: {metric}" + (", %" if metric == ACCURACY else "\n(less is better)")


def _panel(axes: Any, found: Comparison, target: str | None, model: str | None, *, is_private: bool) -> None:
    from matplotlib.ticker import FixedLocator, LogLocator, NullLocator  # noqa: PLC0415 - comes with an extra

    axes.set_xscale("log")
    axes.set_title(model or "", color="#33332f")
    axes.grid(axis="y", color="#e6e4de", linewidth=0.7)
    axes.set_axisbelow(True)
    lines = [
        (number, name, line)
        for number, (name, line) in enumerate(series(found))
        if line[0].is_private == is_private
    ]
    tried = sorted({setting.exposure for _, _, line in lines for setting in line})
    if len(tried) == 1:  # there is no range to make room around
        axes.set_xlim(tried[0] / 2, tried[0] * 2)
    for order, (number, name, line) in enumerate(lines):
        ink, mark = INKS[number % len(INKS)], MARKS[number % len(MARKS)]
        x = [setting.exposure for setting in line]
        y, bars = _heights(line, target, model)
        axes.errorbar(
            x, y, yerr=bars, color=ink, marker=mark, markersize=4.5, linewidth=1.2, elinewidth=0.9, capsize=2.5,
            label=name,
        )  # fmt: skip
        is_told = not is_private and (order == 0 or len(lines) == 2)
        if is_told:  # more would hide each other, and points of one value lie close; epsilons stand below
            _write_names(axes, line, x, y, ink, below=order == 1)
    if target is not None and model is not None:
        _reference(axes, found.of_raw(target, model), "raw", "--")
        _reference(axes, found.of_nothing(target), "nothing", ":")
    axes.margins(x=0.16, y=0.18)
    axes.xaxis.set_major_locator(
        FixedLocator(tried) if is_private else LogLocator(subs=(1, 2, 5), numticks=99)
    )
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(_plainly if is_private else _one_in)
    axes.tick_params(axis="x", labelsize=7.5)


def _heights(
    line: Sequence[Setting], target: str | None, model: str | None
) -> tuple[list[float], list[float]]:
    if target is None or model is None:
        return [(setting.measures or {})[MEASURE] for setting in line], [0.0] * len(line)
    scores = [setting.score(target, model) for setting in line]
    scale = 100 if scores[0].metric == ACCURACY else 1
    return [scale * score.mean for score in scores], [scale * (score.half_width or 0.0) for score in scores]


def _write_names(
    axes: Any, line: Sequence[Setting], x: Sequence[float], y: Sequence[float], ink: str, *, below: bool
) -> None:
    """The value of the scale beside each point; every choice where there is no scale."""
    for setting, at, height in zip(line, x, y, strict=True):
        scale = scale_of(setting)
        text = setting.name if scale is None else f"{scale}={setting.choices[scale]}"
        axes.annotate(
            text,
            (at, height),
            xytext=(4, -11 if below else 5),
            textcoords="offset points",
            fontsize=7.5,
            color=ink,
        )


def _reference(axes: Any, score: Any, text: str, style: str) -> None:
    height = score.mean * (100 if score.metric == ACCURACY else 1)
    axes.axhline(height, color=GREY, linewidth=0.9, linestyle=style, zorder=1)
    axes.annotate(
        text, (1, height), xycoords=("axes fraction", "data"), xytext=(3, 0), textcoords="offset points",
        ha="left", va="center", fontsize=7, color="#6b6b66", annotation_clip=False,
    )  # fmt: skip


def _plainly(value: float, _place: int) -> str:
    return f"{value:g}"


def _one_in(value: float, _place: int) -> str:
    return f"1/{1 / value:,.0f}" if 0 < value <= 1 else ""
