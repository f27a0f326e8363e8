"""Text of a comparison: one line for each setting and target, then the advice."""

from __future__ import annotations

from collections.abc import Iterator

from sfumato import notebook
from sfumato.comparison.advice import format_risk, guidance
from sfumato.comparison.picture import drawing_of, svg_of
from sfumato.comparison.result import Comparison, Setting
from sfumato.evaluation.loss import NCP, OF_LOSS
from sfumato.evaluation.metrics import NAMES
from sfumato.evaluation.result import format_with_interval
from sfumato.evaluation.show import align


def as_text(found: Comparison) -> str:
    """The table, without the training figures that the CSV has, and what to choose."""
    how = found.protocol
    heading = f"{how['folds']} folds of {how['rows']:,} rows by {how['learners']}; seed {how['seed']}."
    if found.counts_people:
        heading += " Groups count people, and their risk is that of people."
    advice = "\n".join(f"- {line}" for line in guidance(found))
    return "\n\n".join(block for block in (heading, *_tables(found), _problems(found), advice) if block)


def as_html(found: Comparison) -> str:
    """The advice, the risk and the utility of each setting, and the picture, for a notebook."""
    models = [(score.target, score.model) for score in found.leading]
    lines = [
        (
            setting.name,
            *_risks(setting),
            *(format_with_interval(setting.score(*names)) for names in models),
            *(_loss(setting, what) for what in OF_LOSS),
        )
        for setting in found.met
    ]
    if found.met:
        none = [""] * len(OF_LOSS)
        lines.append(("raw data", "", "", *(format_with_interval(score) for score in found.leading), *none))
    heads = ("", "largest risk", "mean risk", *(f"{target}: {model}" for target, model in models), *OF_LOSS)
    return notebook.card(
        "A comparison",
        "For the owner's eyes: it was computed from raw rows, and none of it is in a release.",
        [("settings", f"{len(found.settings):,}"), ("can be met", f"{len(found.met):,}")],
        notebook.table(heads, lines),
        notebook.paragraphs([*filter(None, _problems(found).split("\n")), *guidance(found)]),
        notebook.picture(svg_of(drawing_of(found))) if found.met else "",
    )


def _problems(found: Comparison) -> str:
    """Each problem once, with the settings that have it."""
    names: dict[str, list[str]] = {}
    for setting in found.settings:
        if setting.problem is not None:
            names.setdefault(setting.problem, []).append(setting.name)
    return "\n".join(f"{'; '.join(which)} cannot be published: {problem}" for problem, which in names.items())


def _tables(found: Comparison) -> Iterator[str]:
    if not found.met:
        return
    for target in dict.fromkeys(score.target for score in found.leading):
        models = [score.model for score in found.leading if score.target == target]
        nothing = found.of_nothing(target)
        shown = not all(setting.is_private for setting in found.met)
        lines = [("", *(("largest risk", "mean risk") if shown else ()), *models, NCP)]
        lines += [
            (setting.name, *(_risks(setting) if shown else ()),
             *(format_with_interval(setting.score(target, model)) for model in models),
             _loss(setting, NCP))
            for setting in found.met
        ]  # fmt: skip
        none = ("", "") if shown else ()
        lines.append(
            ("raw data", *none, *(format_with_interval(found.of_raw(target, model)) for model in models), "")
        )
        lines.append(("nothing", *none, *[format_with_interval(nothing)] * len(models), ""))
        yield "\n".join([f"{target}: {NAMES[nothing.metric]}", *align(lines, indent=2)])
    if not found.leading:
        lines = [("", "largest risk", "mean risk", *OF_LOSS)]
        lines += [(s.name, *_risks(s), *(_loss(s, what) for what in OF_LOSS)) for s in found.met]
        yield "\n".join(align(lines, indent=2))


def _loss(setting: Setting, what: str) -> str:
    """What the labels of a setting lose; nothing where it was not measured."""
    return f"{setting.losses[what]:.4f}" if what in setting.losses else ""


def _risks(setting: Setting) -> tuple[str, str]:
    """The largest and the mean risk; of a private setting neither."""
    return (
        ("", "")
        if setting.is_private
        else (format_risk(setting.largest_risk), format_risk(setting.mean_risk))
    )
