"""How useful a release is, as its certificate says: how well targets are predicted, and what conditions return.

These are figures of the run. They were computed from the table that went in, and cannot be recomputed from
the release.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sfumato.errors import InputError, enumerate_names, number_of
from sfumato.evaluation.metrics import ACCURACY, NAMES, OF_CLASSES, OF_NUMBERS
from sfumato.evaluation.result import (
    NOTHING,
    RAW,
    RELEASE,
    Evaluation,
    ModelScore,
    PairedTest,
    format_with_interval,
)
from sfumato.policy.workload import Aggregate, Classify, Select, Task
from sfumato.report.svg import decimal, nice_step, shorten, tag

# ---- what it is for --------------------------------------------------------------------------------


def purpose(task: Task) -> str:
    """A task, as the end of "made ...".

    >>> purpose(Classify("income", weight=2)), purpose(Select("age >= 40"))
    ('to predict the class income (weight 2)', 'to select the rows where age >= 40')
    >>> purpose(Classify(["income", "smoker"]))
    'to predict the classes income and smoker'
    """
    if isinstance(task, Aggregate):
        return f"to answer {' and '.join(_ANSWERS[word] for word in task.statistics)}"
    weight = "" if task.weight == 1 else f" (weight {task.weight:g})"
    if isinstance(task, Select):
        return f"to select the rows where {task.where}{weight}"
    names = enumerate_names(task.targets)
    jointly = " jointly" if isinstance(task, Classify) and task.joint and len(task.targets) > 1 else ""
    features = f" from {', '.join(task.features)}" if task.features else ""
    kind = ("class", "classes") if isinstance(task, Classify) else ("number", "numbers")
    return f"to predict the {kind[len(task.targets) > 1]} {names}{jointly}{features}{weight}"


_ANSWERS = {"range": "least and greatest values", "mean": "sums and averages"}

# ---- conditions ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Selection:
    """A condition: the rows that fulfil it, and those that the release returns for it."""

    where: str
    true: int
    returned: int

    @property
    def surplus(self) -> int:
        return self.returned - self.true


def selections_of(figures: Mapping[str, Any]) -> list[Selection]:
    """The conditions that the certificate has figures of; none if they are not of this kind."""
    try:
        return [
            Selection(str(item["where"]), int(item["true"]), int(item["returned"]))
            for item in figures.get("imprecision", ())
        ]
    except (KeyError, TypeError, ValueError):
        return []


# ---- targets ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ModelLine:
    """One model: its scores from the release and from the raw table, and what the target alone gives."""

    model: str
    release: ModelScore
    raw: ModelScore | None
    nothing: ModelScore | None
    against_raw: PairedTest | None
    against_nothing: PairedTest | None

    @property
    def scores(self) -> tuple[ModelScore, ...]:
        return (self.release,) if self.raw is None else (self.raw, self.release)

    @property
    def kept(self) -> float | None:
        """The share of what raw rows gain over nothing that the release keeps.

        None if they gain no more than the width of their own interval: a share of noise says nothing.
        """
        if self.raw is None or self.nothing is None:
            return None
        sign = 1 if self.release.more_is_better else -1
        gain = sign * (self.raw.mean - self.nothing.mean)
        if self.raw.lacks_interval or gain <= (self.raw.half_width or 0.0):
            return None
        return sign * (self.release.mean - self.nothing.mean) / gain


@dataclass(frozen=True, slots=True)
class OtherMetric:
    """A metric beside the leading one: each model with its scores from nothing, from the release and from raw rows."""

    name: str
    more_is_better: bool
    lines: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class TargetUtility:
    """The models of one target; ``nothing`` is the score of a guess that looks at no column."""

    target: str
    metric: str
    lines: tuple[ModelLine, ...]
    nothing: ModelScore | None
    others: tuple[OtherMetric, ...] = ()

    @property
    def metric_name(self) -> str:
        return NAMES[self.metric]

    @property
    def is_accuracy(self) -> bool:
        return self.metric == ACCURACY

    def text(self, value: float) -> str:
        """A score for people: accuracy in per cent."""
        return f"{100 * value:.1f} %" if self.is_accuracy else f"{value:,.4g}"

    def with_spread(self, score: ModelScore | None) -> str:
        if score is None:
            return "–"
        spread = score.half_width
        if spread is None:
            return self.text(score.mean)
        return (
            f"{self.text(score.mean)} ± {100 * spread:.1f}"
            if self.is_accuracy
            else f"{self.text(score.mean)} ± {spread:,.2g}"
        )

    @property
    def best(self) -> ModelLine:
        """The model that does best from the release."""
        sign = 1 if self.is_accuracy else -1
        return max(self.lines, key=lambda line: sign * line.release.mean)

    @property
    def sentence(self) -> str:
        """The best model in words."""
        line = self.best
        what = "predicts right in" if self.is_accuracy else "is off by"
        of_rows = " of the rows held out" if self.is_accuracy else " on average, on rows held out"
        parts = [f"From the release, {_article(line.model)} {what} {self.text(line.release.mean)}{of_rows}"]
        if line.raw is not None:
            parts.append(f"from raw rows {self.text(line.raw.mean)}")
        if self.nothing is not None:
            guess = "always saying the most frequent class" if self.is_accuracy else "always saying the mean"
            parts.append(f"{guess} {self.text(self.nothing.mean)}")
        return "; ".join(parts) + "."


@dataclass(frozen=True, slots=True)
class Utility:
    """The evaluation of a release: models by target, how they were measured, and other measures."""

    targets: tuple[TargetUtility, ...]
    protocol: str
    measures: tuple[tuple[str, str], ...]

    @property
    def has_intervals(self) -> bool:
        """One table to test on shows no spread."""
        return any(line.release.half_width is not None for target in self.targets for line in target.lines)

    @property
    def lacks_intervals(self) -> bool:
        """Was it measured by a version that stored none?"""
        return any(line.release.lacks_interval for target in self.targets for line in target.lines)


def utility_of(figures: Mapping[str, Any]) -> Utility | None:
    """The evaluation in the certificate; None if there is none, or none that this version reads."""
    if "utility" not in figures:
        return None
    try:
        found = Evaluation.from_dict({**figures["utility"], "policy": {}})
    except (InputError, TypeError):
        return None
    goals = dict.fromkeys((score.target, score.metric) for score in found.scores if score.is_leading)
    targets = tuple(_target(found, *goal) for goal in goals)
    measures = tuple((name, f"{value:,.5g}") for name, value in found.measures.items())
    return Utility(tuple(filter(None, targets)), _protocol(found.protocol), measures)


def _target(found: Evaluation, target: str, metric: str) -> TargetUtility | None:
    """A target by its leading metric, with the others beside it."""
    lines, nothing = _lines(found, target, metric)
    beside = [each for each in (OF_CLASSES if metric == ACCURACY else OF_NUMBERS) if each != metric]
    others = tuple(filter(None, (_other(found, target, each) for each in beside)))
    return TargetUtility(target, metric, lines, nothing, others) if lines else None


def _other(found: Evaluation, target: str, metric: str) -> OtherMetric | None:
    lines, nothing = _lines(found, target, metric)
    if not lines:
        return None
    rows = tuple(
        (
            line.model,
            *("–" if s is None else format_with_interval(s) for s in (nothing, line.release, line.raw)),
        )
        for line in lines
    )
    return OtherMetric(NAMES[metric], lines[0].release.more_is_better, rows)


def _lines(found: Evaluation, target: str, metric: str) -> tuple[tuple[ModelLine, ...], ModelScore | None]:
    """The models of a target by one metric, and the score of a guess."""
    scores = [score for score in found.scores if (score.target, score.metric) == (target, metric)]
    raw = {score.model: score for score in scores if score.data == RAW}
    nothing = next((score for score in scores if score.data == NOTHING), None)
    tests = {
        (test.model, test.second): test
        for test in found.tests
        if (test.target, test.metric, test.first) == (target, metric, RELEASE)
    }
    lines = tuple(
        ModelLine(
            score.model,
            score,
            raw.get(score.model),
            nothing,
            tests.get((score.model, RAW)),
            tests.get((score.model, NOTHING)),
        )
        for score in scores
        if score.data == RELEASE
    )
    return lines, nothing


def _protocol(protocol: Mapping[str, Any]) -> str:
    """How it was measured, in words.

    >>> _protocol({"folds": 10, "learners": "weka", "rows": 500})
    'Measured by 10-fold cross-validation on 500 rows with models of weka.'
    """
    folds, test_rows, rows = (protocol.get(key) for key in ("folds", "test_rows", "rows"))
    how = f"by {folds}-fold cross-validation" if folds else "on a test table"
    many = f" of {number_of(int(test_rows), 'row')}" if test_rows and not folds else ""
    of_rows = f" on {number_of(int(rows), 'row')}" if rows and folds else ""
    models = f" with models of {protocol['learners']}" if protocol.get("learners") else ""
    return f"Measured {how}{many}{of_rows}{models}."


def _article(model: str) -> str:
    """A model in a sentence.

    >>> _article("decision-tree"), _article("naive-bayes"), _article("linear-svm")
    ('a decision tree', 'naive Bayes', 'a linear SVM')
    """
    words = name_of(model)
    return words if words.startswith(("naive", "linear regression")) else f"a {words}"


def name_of(model: str) -> str:
    """A model by name, for people."""
    return model.replace("-", " ").replace("bayes", "Bayes").replace("svm", "SVM")


def significance(test: PairedTest | None) -> str:
    """A paired test for people."""
    if test is None:
        return "–"
    return "p < .001" if test.p < 0.001 else f"p = {test.p:.3f}".replace("0.", ".", 1)


def published_statistics(statistics: Sequence[str]) -> str:
    """The statistics of groups, in words.

    >>> published_statistics(["range", "mean"])
    'the least and the greatest value and the mean'
    """
    return " and ".join(_STATISTICS[word] for word in statistics)


_STATISTICS = {"range": "the least and the greatest value", "mean": "the mean"}

# ---- pictures --------------------------------------------------------------------------------------


WIDTH, LABELS, EDGE = 440.0, 122.0, 14.0  # of the picture, its labels, and what is kept free on the right
LINE, TOP = 40.0, 30.0
OFFSET = {RAW: -7.0, RELEASE: 7.0}
"""The two scores of a model stand below each other, so that none hides the other."""

WORDS = {RELEASE: "from the release", RAW: "from raw rows", NOTHING: "from nothing"}
SELECTION = 150.0


def draw_scores(target: TargetUtility) -> Markup:
    """Each model's score from the release, from raw rows and from nothing, with 95 % intervals."""
    low, high, step = _range(target)

    def place(value: float) -> float:
        share = (value - low) / (high - low)
        return LABELS + (WIDTH - LABELS - EDGE) * min(max(share, 0.0), 1.0)

    bottom = TOP + LINE * len(target.lines)
    parts = [*_legend(target), *_grid(target, low, high, step, bottom)]
    if target.nothing is not None:
        guess = tag("title", f"{WORDS[NOTHING]}: {target.with_spread(target.nothing)}")
        at_guess = f"M{decimal(place(target.nothing.mean))} {TOP:g}V{bottom:g}"
        parts.append(tag("path", guess, d=at_guess, class_="nothing"))
    for at, line in enumerate(target.lines):
        middle = TOP + LINE * (at + 0.5)
        name = shorten(name_of(line.model), 18)
        parts.append(tag("text", name, x=LABELS - 12, y=middle + 4, text_anchor="end", class_="label"))
        parts += [_mark(target, line, score, place, middle + OFFSET[score.data]) for score in line.scores]
    better = "better →" if target.is_accuracy else "← better"
    anchor, x = ("end", WIDTH - EDGE) if target.is_accuracy else ("start", LABELS)
    parts.append(
        tag("text", f"{target.metric_name}, {better}", x=x, y=bottom + 36, text_anchor=anchor, class_="axis")
    )
    about = f"The {target.metric_name} of {len(target.lines)} models of {shorten(target.target, 60)}; a table follows."
    return tag(
        "svg", *parts, viewBox=f"0 0 {WIDTH:g} {bottom + 44:g}", role="img", aria_label=about, class_="scores"
    )


def _range(target: TargetUtility) -> tuple[float, float, float]:
    """The ends of the axis and the distance of its lines; an error is never below nothing."""
    shown = [score for line in target.lines for score in line.scores]
    ends = [score.mean + sign * (score.half_width or 0.0) for score in shown for sign in (-1, 1)]
    ends += [] if target.nothing is None else [target.nothing.mean]
    low, high = min(ends), max(ends)
    room = 0.04 * (high - low) or 0.05 * max(abs(high), 1e-9)
    low, high = max(low - room, 0.0), high + room
    step = nice_step(high - low, 5)
    return low, (min(high, 1.0) if target.is_accuracy else high), step


def _grid(target: TargetUtility, low: float, high: float, step: float, bottom: float) -> Iterator[Markup]:
    digits = max(0, -math.floor(math.log10(100 * step if target.is_accuracy else step) + 1e-9))
    for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1):
        x = LABELS + (WIDTH - LABELS - EDGE) * (i * step - low) / (high - low)
        value = f"{100 * i * step:.{digits}f} %" if target.is_accuracy else f"{i * step:,.{digits}f}"
        yield tag("path", d=f"M{x:.1f} {TOP:g}V{bottom:g}", class_="grid")
        yield tag("text", value, x=x, y=bottom + 17, text_anchor="middle", class_="label")


def _mark(
    target: TargetUtility, line: ModelLine, score: ModelScore, place: Callable[[float], float], y: float
) -> Markup:
    x, spread = place(score.mean), score.half_width
    about = tag("title", f"{name_of(line.model)}, {WORDS[score.data]}: {target.with_spread(score)}")
    parts = [about]
    if spread:
        left, right = place(score.mean - spread), place(score.mean + spread)
        ends = f"M{left:.1f} {y - 3:g}v6M{left:.1f} {y:g}H{right:.1f}M{right:.1f} {y - 3:g}v6"
        parts.append(tag("path", d=ends, class_="spread"))
    return tag("g", *parts, _glyph(score.data, x, y), class_=f"score {score.data}")


def _glyph(data: str, x: float, y: float) -> Markup:
    """A full square, a hollow circle or a broken line: told apart without colours."""
    if data == RELEASE:
        return tag("rect", x=x - 5, y=y - 5, width=10, height=10, class_="glyph")
    if data == RAW:
        return tag("circle", cx=x, cy=y, r=5, class_="glyph")
    return tag("path", d=f"M{decimal(x)} {decimal(y - 8)}v16", class_="nothing")


def _legend(target: TargetUtility) -> Iterator[Markup]:
    x = 6.0
    for data, words in WORDS.items():
        if data == NOTHING and target.nothing is None:
            continue
        yield tag("g", _glyph(data, x, 10), class_=f"score {data}")
        yield tag("text", words, x=x + 12, y=14, class_="label")
        x += 38 + 6.3 * len(words)


def draw_selection(selection: Selection, most: int) -> Markup:
    """The rows that are returned: those that fulfil the condition, and the surplus."""
    scale = SELECTION / max(most, 1)
    true, surplus = scale * selection.true, scale * selection.surplus
    told = f"{selection.true:,} of {selection.returned:,} returned rows fulfil the condition"
    return tag(
        "svg",
        tag("rect", width=true, height=14, class_="level exact"),
        tag("rect", x=true, width=surplus, height=14, class_="level narrowed"),
        tag("rect", width=true + surplus, height=14, class_="level-frame"),
        viewBox=f"-1 -1 {SELECTION + 2:g} 16",
        role="img",
        aria_label=told,
        class_="levels",
    )
