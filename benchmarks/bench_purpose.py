"""What the mixed score does for several classes, for numbers and for selections, beside the criteria as published.

    SFUMATO_DATA=... OMP_NUM_THREADS=1 python benchmarks/bench_purpose.py                     # all of it, some 30 minutes
    SFUMATO_DATA=... python benchmarks/bench_purpose.py --part numbers --table "adult hours" --k 10
    SFUMATO_DATA=... python benchmarks/bench_purpose.py --out docs/purpose.md                 # the tables

The releases are read from their labels by the code of ``bench_loss``, and checked as there. A model of 60 rounds learns
from each and predicts test rows that were recoded by the release's own rule. Measures: for classes the mean AUC of each
against the others, and accuracy; for numbers R^2 and the mean absolute error; for selections the rows that they return
beside those asked for, over those asked for. Beside them NCP and the median error of COUNT queries.

The difference of two settings has a 95% interval by a paired bootstrap: of the test rows, and for selections of the
released ones. Where it lies wholly below 0, the published criterion is the better one for that table. Each release is one
JSON line.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from loss_measures import N_RESAMPLES, N_ROUNDS, Floats, Published, describe_rows
from loss_tables import CLASS, Study
from numpy.typing import NDArray
from purpose_tables import CLASSES, FIRST_LOOKED_AT, NUMBERS, SELECTED, Selection, draw_selections
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

import sfumato as sf
from sfumato.randomness import seeded

KS = (5, 10, 50, 100)
PAPER: dict[str, Any] = {"mondrian": {"variant": "paper"}}
MIXED: dict[str, Any] = {"mondrian": {"loss-weight": 0.1}}
SERVED: dict[str, Any] = {"mondrian": {}}
"""Selections alone have no key that would ask for what is below them: it is loss."""

Measures = dict[str, Floats]
"""Each measure on the rows as they are, and then on resampled ones; more is better."""


@dataclass(frozen=True)
class Purpose:
    """A study with its tasks, and how well a release serves them; the first measure is the task's own."""

    study: Study
    workload: Sequence[Mapping[str, Any]]
    settings: Mapping[str, Any]
    measure: Callable[[Published, Any], Measures]

    def publish(self, k: int, method: Any) -> tuple[Published, Any, float]:
        given = self.study.policy(k, method=method) | {"workload": list(self.workload)}
        policy = sf.Policy.from_dict(given)
        start = time.process_time()
        release = sf.publish(self.study.released, policy)
        seconds = time.process_time() - start
        published = Published.read(self.study, release.table)
        published.check(k)
        return published, release.recoding, seconds


@dataclass(frozen=True)
class Line:
    """The figures of one release."""

    table: str
    k: int
    setting: str
    measures: Mapping[str, float]
    ncp: float
    count_error: float
    groups: int
    cpu: float


@dataclass(frozen=True)
class Difference:
    """By how much one setting serves better than another, in each measure, with the ends of its 95% interval."""

    table: str
    k: int
    of: Mapping[str, tuple[float, float, float]]

    @property
    def loses(self) -> bool:
        """Does it serve worse in the task's own measure, whatever the test rows?"""
        return next(iter(self.of.values()))[2] < 0


# ---- measures ------------------------------------------------------------------------------------------------


def resamples(n: int) -> Iterator[Floats]:
    """How often each row counts: once, and then as often as it is drawn."""
    yield np.ones(n)
    random = seeded(7)
    for _ in range(N_RESAMPLES):
        yield np.bincount(random.integers(0, n, n), minlength=n).astype(np.float64)


def measure_classes(published: Published, recoding: Any) -> Measures:
    study = published.study
    classes, target = np.unique(study.released[CLASS].to_numpy(str), return_inverse=True)
    indicators = [target == c for c in range(len(classes))]
    train, test = describe_rows(published, recoding.apply(study.test), indicators)
    model = HistGradientBoostingClassifier(max_iter=N_ROUNDS, random_state=0).fit(train, target)
    chance = model.predict_proba(test)
    truth = study.test[CLASS].to_numpy(str)
    areas = [Area(truth == name, chance[:, c]) for c, name in enumerate(classes) if (truth == name).any()]
    is_right = classes[np.argmax(chance, axis=1)] == truth
    found = [
        (statistics.fmean(area.of(weight) for area in areas), np.average(is_right, weights=weight))
        for weight in resamples(len(truth))
    ]
    return dict(zip(("AUC", "accuracy"), np.array(found).T, strict=True))


class Area:
    """The area under the ROC curve of a score, for any weights of the rows."""

    def __init__(self, truth: NDArray[np.bool_], score: Floats) -> None:
        self.order = np.argsort(score, kind="stable")
        ordered = score[self.order]
        self.starts = np.flatnonzero(np.append(True, ordered[1:] > ordered[:-1]))
        self.truth = truth[self.order]

    def of(self, weight: Floats) -> float:
        own = weight[self.order]
        positive = np.add.reduceat(own * self.truth, self.starts)
        negative = np.add.reduceat(own * ~self.truth, self.starts)
        below = np.cumsum(negative) - negative / 2
        both = positive.sum() * negative.sum()
        return float(positive @ below / both) if both else 0.5


def measure_numbers(published: Published, recoding: Any) -> Measures:
    study = published.study
    target = study.released[CLASS].to_numpy(np.float64)
    train, test = describe_rows(published, recoding.apply(study.test), [target])
    model = HistGradientBoostingRegressor(max_iter=N_ROUNDS, random_state=0).fit(train, target)
    truth = study.test[CLASS].to_numpy(np.float64)
    away = truth - model.predict(test)
    found = []
    for weight in resamples(len(truth)):
        spread = (truth - np.average(truth, weights=weight)) ** 2
        found.append((1 - weight @ away**2 / (weight @ spread), -np.average(np.abs(away), weights=weight)))
    return dict(zip(("R2", "minus MAE"), np.array(found).T, strict=True))


def measure_selections(selections: Sequence[Selection], published: Published) -> Measures:
    """Minus the rows that selections return too many, over those asked for; a row is returned if its labels overlap."""
    asked = np.array([one.matches(published.study.released) for one in selections])
    returned = np.array([find_returned(one, published) for one in selections])
    assert (returned >= asked).all(), "a selection misses a row"
    found = [
        -((returned & ~asked) @ weight).sum() / (asked @ weight).sum() for weight in resamples(asked.shape[1])
    ]
    return {"minus imprecision": np.array(found)}


def find_returned(one: Selection, published: Published) -> NDArray[np.bool_]:
    found = np.ones(len(published.study.released), dtype=bool)
    for name, values in one.asked.items():
        cells = published.cells[name]
        column = cells.column
        is_asked = np.zeros(cells.n_values, dtype=bool)
        if isinstance(values[0], int):
            is_asked[values[0] - column.low : values[1] - column.low + 1] = True
        else:
            is_asked[[column.leaves.index(value) for value in values]] = True
        found &= (cells.inside @ is_asked > 0)[cells.codes]
    return found


# ---- purposes ------------------------------------------------------------------------------------------------


def of_target(study: Study) -> Purpose:
    measure = measure_classes if study.task == "classify" else measure_numbers
    return Purpose(study, [{study.task: CLASS}], {"mixed": MIXED, "published": PAPER}, measure)


def of_selections(study: Study, *, has_class: bool) -> Purpose:
    selections = draw_selections(study)
    tasks: list[Any] = [{"select": one.as_policy()} for one in selections]

    def measure(published: Published, recoding: Any) -> Measures:
        found = measure_selections(selections, published)
        return found | measure_classes(published, recoding)

    tasks += [{"classify": CLASS}] if has_class else []
    return Purpose(study, tasks, {"mixed": MIXED if has_class else SERVED, "published": PAPER}, measure)


PARTS: dict[str, tuple[Mapping[str, Callable[[], Study]], Callable[[Study], Purpose]]] = {
    "classes": (CLASSES, of_target),
    "numbers": (NUMBERS, of_target),
    "selections": (SELECTED, lambda study: of_selections(study, has_class=False)),
    "selections and a class": (SELECTED, lambda study: of_selections(study, has_class=True)),
    "first": (FIRST_LOOKED_AT, of_target),
}


# ---- one run -------------------------------------------------------------------------------------------------


@dataclass
class Results:
    """What was found of each part."""

    lines: dict[str, list[Line]] = field(default_factory=dict)
    differences: dict[str, list[Difference]] = field(default_factory=dict)


def run(results: Results, part: str, purpose: Purpose, k: int) -> None:
    found: dict[str, Measures] = {}
    for name, method in purpose.settings.items():
        published, recoding, seconds = purpose.publish(k, method)
        found[name] = purpose.measure(published, recoding)
        line = Line(
            purpose.study.name,
            k,
            name,
            measures={measure: round(float(values[0]), 5) for measure, values in found[name].items()},
            ncp=round(statistics.fmean(published.ncp().values()), 5),
            count_error=round(float(statistics.median(published.count_errors())), 5),
            groups=published.n_groups,
            cpu=round(seconds, 2),
        )
        print(json.dumps({"bench": "purpose", "part": part, **asdict(line)}), flush=True)
        results.lines.setdefault(part, []).append(line)
    difference = Difference(purpose.study.name, k, compare(found["mixed"], found["published"]))
    print(
        json.dumps({"bench": "purpose", "part": part, **asdict(difference), "loses": difference.loses}),
        flush=True,
    )
    results.differences.setdefault(part, []).append(difference)


def compare(one: Measures, other: Measures) -> dict[str, tuple[float, float, float]]:
    found = {}
    for name, values in one.items():
        away = values - other[name]
        low, high = np.quantile(away[1:], [0.025, 0.975])
        found[name] = tuple(round(float(x), 5) for x in (away[0], low, high))
    return found


def as_markdown(results: Results) -> Iterator[str]:
    """For each part a table: a line per table, the k one after another."""
    for part, lines in results.lines.items():
        ks = sorted({line.k for line in lines})
        names = list(lines[0].measures)
        shown = [name.removeprefix("minus ") for name in names]
        yield f"**{part}** (k = {' / '.join(map(str, ks))}; mixed, published)\n"
        yield (
            "| table | "
            + " | ".join([*shown, f"{shown[0]}: mixed better by (95% interval)", "NCP", "COUNT error"])
            + " |"
        )
        yield "|" + "---|" * (len(names) + 4)
        for table in dict.fromkeys(line.table for line in lines):
            own = [line for line in lines if line.table == table]
            cells = [pair(own, ks, lambda line, name=name: abs(line.measures[name])) for name in names]
            away = [each for each in results.differences[part] if each.table == table]
            cells.append(" / ".join("{:+.3f} ({:+.3f}, {:+.3f})".format(*each.of[names[0]]) for each in away))
            cells += [pair(own, ks, lambda line: line.ncp), pair(own, ks, lambda line: line.count_error)]
            yield f"| {table} | " + " | ".join(cells) + " |"
        yield ""


def pair(lines: Sequence[Line], ks: Sequence[int], figure: Callable[[Line], float]) -> str:
    """The figure of both settings, at each k."""
    of = {(line.k, line.setting): figure(line) for line in lines}
    return "; ".join(" / ".join(show(of[k, setting]) for k in ks) for setting in ("mixed", "published"))


def show(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    usual = [part for part in PARTS if part != "first"]
    parser.add_argument("--part", nargs="+", choices=PARTS, default=usual)
    parser.add_argument("--table", nargs="+", help="some of the part's tables")
    parser.add_argument("--k", nargs="+", type=int, default=list(KS))
    parser.add_argument("--out", type=Path, help="write the tables to this Markdown file")
    options = parser.parse_args()
    results = Results()
    for part in options.part:
        loaders, purpose_of = PARTS[part]
        for name, load in loaders.items():
            if options.table and name not in options.table:
                continue
            purpose = purpose_of(load())
            for k in options.k:
                run(results, part, purpose, k)
    text = "\n".join(as_markdown(results))
    print("\n" + text)
    if options.out:
        options.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
