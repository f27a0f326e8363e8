"""Text and table of an evaluation: means for a terminal, all folds for a spreadsheet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from sfumato.evaluation.loss import NCP, OF_LOSS, by_column
from sfumato.evaluation.metrics import ACCURACY, NAMES
from sfumato.evaluation.result import (
    NOTHING,
    RAW,
    RELEASE,
    Evaluation,
    ModelScore,
    PairedTest,
    format_score,
    format_with_interval,
)


def as_text(found: Evaluation) -> str:
    """The means with their intervals, the tests, and the general measures, in aligned columns."""
    blocks = [_heading(found)]
    blocks += ["\n".join(_target(found, target)) for target in found.targets]
    blocks.append("\n".join(["Of the training releases:", *align(_measures(found), indent=2)]))
    if columns := lost_by_column(found.measures):
        blocks.append("\n".join(["What each column lost, most first:", *align(columns, indent=2)]))
    return "\n\n".join([*blocks, *found.remarks])


def as_table(found: Evaluation) -> pa.Table:
    """A line for each score of each fold, then one for each measure (a mean over the folds)."""
    lines: list[tuple[Any, ...]] = [
        (score.target, score.model, score.data, score.metric, fold, test, train)
        for score in found.scores
        for fold, (test, train) in enumerate(zip(score.test, score.train, strict=True), start=1)
    ]
    lines += [(None, None, RELEASE, name, None, None, value) for name, value in found.measures.items()]
    names = ("target", "model", "data", "metric", "fold", "test", "train")
    kinds = (*[pa.string()] * 4, pa.int64(), pa.float64(), pa.float64())
    columns = list(zip(*lines, strict=True)) or [()] * len(names)
    return pa.table([pa.array(list(c), kind) for c, kind in zip(columns, kinds, strict=True)], names)


def _heading(found: Evaluation) -> str:
    how = found.protocol
    held = (
        f"{how['folds']} folds of" if "folds" in how else f"{how['test_rows']:,} rows held out, learned from"
    )
    what = (
        f"learned from {how['learn_from']} by {how['learners']}" if found.scores else "no target to predict"
    )
    return f"{held} {how['rows']:,} rows; {what}; seed {how['seed']}."


def _target(found: Evaluation, target: str) -> Iterator[str]:
    """The leading metric with its tests, and below it the others."""
    scores = [score for score in found.scores if score.target == target and score.is_leading]
    better = "higher is better" if scores[0].more_is_better else "lower is better"
    interval = " ± half of the 95% interval" if scores[0].half_width is not None else ""
    yield f"{target}: {NAMES[scores[0].metric]} on held-out rows{interval}; {better}"
    nothing = next(score for score in scores if score.data == NOTHING)
    lines = [("", "release", "raw data", "nothing", "release - raw", "beats nothing", "in training")]
    for score in scores:
        if score.data != RELEASE:
            continue
        raw = found.score(target, score.model, RAW)
        tests = {
            test.second: test
            for test in found.tests
            if (test.target, test.model, test.metric) == (target, score.model, score.metric)
        }
        lines.append(
            (
                score.model, format_with_interval(score), format_with_interval(raw), format_with_interval(nothing),
                f"{_with_sign(score.mean - raw.mean, score.metric)}{_p(tests.get(RAW))}",
                _beats(score, nothing, tests.get(NOTHING)),
                f"{format_score(score.train_mean, score.metric)}, raw {format_score(raw.train_mean, score.metric)}",
            )
        )  # fmt: skip
    yield from align(lines, indent=2)
    others = dict.fromkeys(s.metric for s in found.scores if s.target == target and not s.is_leading)
    beside = [line for metric in others for line in _beside(found, target, metric)]
    yield from align([("", "release", "raw data", "nothing"), *beside], indent=2) if beside else ()


def _beside(found: Evaluation, target: str, metric: str) -> Iterator[tuple[str, ...]]:
    """Another metric of a target: the scores alone."""
    scores = [score for score in found.scores if (score.target, score.metric) == (target, metric)]
    better = "higher is better" if scores[0].more_is_better else "lower is better"
    nothing = next(score for score in scores if score.data == NOTHING)
    yield f"{NAMES[metric]} ({better})", "", "", ""
    for score in scores:
        if score.data == RELEASE:
            raw = found.score(target, score.model, RAW, metric)
            yield f"  {score.model}", *map(format_with_interval, (score, raw, nothing))


def _with_sign(value: float, metric: str) -> str:
    return f"{100 * value:+.1f}" if metric == ACCURACY else f"{value:+,.3g}"


def _p(test: PairedTest | None) -> str:
    if test is None:
        return ""
    return " (p < .001)" if test.p < 0.001 else f" (p = {test.p:.3f})"


def _beats(score: ModelScore, nothing: ModelScore, test: PairedTest | None) -> str:
    is_ahead = score.mean > nothing.mean if score.more_is_better else score.mean < nothing.mean
    return f"{'yes' if is_ahead and (test is None or test.p < 0.05) else 'no'}{_p(test)}"


def _measures(found: Evaluation) -> list[tuple[str, str]]:
    """The measures that are not of a single column: those stand in a table of their own."""
    of_columns = {f"{what} of {name}" for what in OF_LOSS for name in by_column(found.measures, what)}
    return [(name, f"{value:,.6g}") for name, value in found.measures.items() if name not in of_columns]


def lost_by_column(measures: Mapping[str, float]) -> list[tuple[str, ...]]:
    """A line for each column with what it lost, the highest NCP first, under a line of names; none without any.

    >>> lost_by_column({"ncp": 0.4, "ncp of age": 0.3, "ncp of sex": 0.5})
    [('', 'ncp'), ('sex', '0.5000'), ('age', '0.3000')]
    """
    known = {what: found for what in OF_LOSS if (found := by_column(measures, what))}
    lines = [
        (name, *(f"{found[name]:.4f}" if name in found else "" for found in known.values()))
        for name in by_column(measures, NCP)
    ]
    return [("", *known), *lines] if lines else []


def align(lines: Sequence[Sequence[str]], *, indent: int = 0) -> list[str]:
    """Columns side by side, as wide as their widest cell.

    >>> align([("a", "b"), ("long", "c")], indent=1)
    [' a     b', ' long  c']
    """
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        (
            " " * indent + "  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
