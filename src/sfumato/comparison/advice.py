"""Advice on which setting to choose: the most private one that the folds do not show to be less useful."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from sfumato.comparison.result import MEASURE, Comparison, Setting
from sfumato.evaluation.intervals import half_width
from sfumato.evaluation.metrics import NAMES
from sfumato.evaluation.result import OUTSIDE_THE_BUDGET, ModelScore, format_score, format_with_interval
from sfumato.policy.kinds import read_exactly

SCALES = {
    "epsilon": -1, "k": 1, "l": 1, "utility-at-least": -1, "risk-at-most": -1, "lambda": 1, "specializations": -1,
}  # fmt: skip
"""Words whose values are numbers: the more (-1: the less), the more private."""


def guidance(found: Comparison) -> tuple[str, ...]:
    """The advice: a few sentences for each target, then what holds for all."""
    return tuple(_sentences(found))


def _sentences(found: Comparison) -> Iterator[str]:
    if not found.met:
        yield "None of these settings can be met; ask for less, or add rows."
        return
    for target in dict.fromkeys(score.target for score in found.leading):
        told = _advise_on_target(found, target, best_model(found, target))
        yield from (sentence if sentence.startswith(target) else _capital(sentence) for sentence in told)
    if not found.leading:
        yield from _advise_without_target(found)
    if len(found.met) < len(found.settings):
        n = len(found.settings) - len(found.met)
        yield f"{n} of {len(found.settings)} settings cannot be met."
    if any(setting.is_private for setting in found.settings):
        yield OUTSIDE_THE_BUDGET


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def best_model(found: Comparison, target: str) -> str:
    """The model that does best on these releases: the advice is about this one, the table shows all."""
    models = [score.model for score in found.leading if score.target == target]
    return min(models, key=lambda model: sum(_loss(setting.score(target, model)) for setting in found.met))


def series(found: Comparison) -> list[tuple[str, list[Setting]]]:
    """Settings that differ in one scale only (epsilon, k, else l), each line named and in the order of more privacy."""
    lines: dict[tuple[str | None, str], list[Setting]] = {}
    for setting in found.met:
        scale = scale_of(setting)
        rest = ", ".join(f"{word}={choice}" for word, choice in setting.choices.items() if word != scale)
        lines.setdefault((scale, rest), []).append(setting)
    for (scale, _), line in lines.items():
        if scale is not None:
            line.sort(key=lambda setting: SCALES[scale] * read_exactly(setting.choices[scale]))
    return [(name, line) for (_, name), line in lines.items()]


def scale_of(setting: Setting) -> str | None:
    """The scale that a setting is placed on in its series."""
    return next((word for word in SCALES if word in setting.choices), None)


def knee(settings: Sequence[Setting], target: str, model: str) -> Setting:
    """The most private setting that is not shown to be less useful than the best, fold by fold.

    "Shown" is by the error bars: the 95% interval of the paired difference lies on one side of 0.
    """
    best = min((setting.score(target, model) for setting in settings), key=_loss)
    good = [setting for setting in settings if not _is_worse(setting.score(target, model), best)]
    return min(good, key=lambda setting: (*_exposure(setting), _loss(setting.score(target, model))))


def _exposure(setting: Setting) -> tuple[float, float]:
    """How far a setting is from private: its epsilon, or its largest risk and then its mean risk."""
    return setting.exposure, 0.0 if setting.is_private else setting.mean_risk


def _loss(score: ModelScore) -> float:
    return -score.mean if score.more_is_better else score.mean


def _is_worse(score: ModelScore, best: ModelScore) -> bool:
    sign = 1 if score.more_is_better else -1
    lost = [sign * (b - s) for s, b in zip(score.test, best.test, strict=True)]
    return sum(lost) / len(lost) > (half_width(lost) or 0.0)


def _advise_on_target(found: Comparison, target: str, model: str) -> Iterator[str]:
    raw, nothing = found.of_raw(target, model), found.of_nothing(target)
    yield (
        f"{target} ({model}, {NAMES[raw.metric]}): the raw data reach {format_with_interval(raw)}, "
        f"publishing nothing {format_with_interval(nothing)}."
    )
    worth = [s for s in found.met if _is_worse(nothing, s.score(target, model))]
    if not worth:
        yield "No setting is shown to beat publishing nothing: for this target none is worth its risk."
        return
    kinds = sorted({setting.is_private for setting in found.met})
    for is_private in kinds:
        among = "" if len(kinds) == 1 else f"Of the {'private settings' if is_private else 'groups'}: "
        if some := [setting for setting in worth if setting.is_private == is_private]:
            yield from (among + sentence for sentence in _recommend(some, target, model))
        else:
            yield f"{among}no setting is shown to beat publishing nothing."


def _recommend(settings: Sequence[Setting], target: str, model: str) -> Iterator[str]:
    """One setting to take, and what more privacy would cost."""
    best = min(settings, key=lambda setting: (_loss(setting.score(target, model)), *_exposure(setting)))
    chosen, safest = knee(settings, target, model), min(settings, key=_exposure)
    take = f"take {_describe(chosen, target, model)}"
    if chosen is best:
        yield f"{take}. It is the most useful of these settings."
    else:
        yield (
            f"{take}. It is more private than {best.name} ({format_with_interval(best.score(target, model))}), and these "
            "folds do not show that it is less useful."
        )
    if safest is chosen:
        return
    end = safest.score(target, model)
    if _loss(end) > _loss(chosen.score(target, model)):
        yield f"more privacy costs more than the error bars: {format_score(end.mean, end.metric)} at {safest.name}."
    else:  # the chosen one may lose more, but differs so much from fold to fold that nobody can tell
        yield (
            f"more private still is {safest.name} ({format_with_interval(end)}), but these folds show that it is less "
            f"useful than {best.name}."
        )


def _on_scale(setting: Setting) -> str:
    word = scale_of(setting)
    assert word is not None  # a series of several settings has one
    return f"{word}={setting.choices[word]}"


def _describe(setting: Setting, target: str, model: str) -> str:
    risks = "" if setting.is_private else f"; {_risks(setting)}"
    return f"{setting.name} ({format_with_interval(setting.score(target, model))}{risks})"


def _risks(setting: Setting) -> str:
    return f"largest risk {format_risk(setting.largest_risk)}, mean {format_risk(setting.mean_risk)}"


def format_risk(value: float) -> str:
    """A risk as one in so many.

    >>> format_risk(0.1), format_risk(0.0377)
    ('1 in 10', '1 in 26.5')
    """
    return f"1 in {1 / value:,.3g}" if value > 0.001 else f"1 in {1 / value:,.0f}"


def _advise_without_target(found: Comparison) -> Iterator[str]:
    yield (
        "The workload has no target to predict, so utility is measured by the share of its column's range that a "
        "published cell covers (normalized certainty penalty; less is better)."
    )
    for name, line in series(found):
        steps = [
            (_penalty_of(after) - _penalty_of(before), before, after) for before, after in pairwise(line)
        ]
        if steps and name != line[0].name:
            cost, before, after = max(steps, key=lambda step: step[0])
            where = f"With {name}, the" if name else "The"
            span = f"from {_on_scale(before)} to {_on_scale(after)}"
            yield f"{where} dearest step to more privacy is {span}: {100 * cost:+.1f} points."
    finest = min(found.met, key=lambda s: (_penalty_of(s), s.largest_risk))
    safest = min(found.met, key=lambda s: (s.largest_risk, s.mean_risk, _penalty_of(s)))
    for what, setting in (("Cells are finest", finest), ("Risk is least", safest)):
        yield f"{what} with {setting.name} ({100 * _penalty_of(setting):.1f}%; {_risks(setting)})."


def _penalty_of(setting: Setting) -> float:
    return (setting.measures or {})[MEASURE]
