"""What a script leaves behind: a CSV of the points of its figure, the claims as judged, and a row of the page.

Per set of learners the results stand on their own: a run with one of them replaces its part of the record and
keeps the other's. The pages are written anew from all records in ``docs/reproduction``.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab import pages
from lab.pages import NO_LEARNERS, OURS
from lab.provenance import ROOT, commit, date_of, refuse_uncommitted

SEED = 20080801
"""The month of the paper."""

STAMP = ("seed", "version", "commit")

HELD, IN_PART, NOT_HELD = "held", "held in part", "not held"


def options(
    description: str,
    *,
    learners: Sequence[str] = ("scikit-learn", "weka"),
    more: Callable[[ArgumentParser], None] | None = None,
) -> Namespace:
    """The options that all scripts share; ``more`` adds those of some."""
    parser = ArgumentParser(description=description)
    parser.add_argument(
        "--quick", action="store_true", help="few and small trials, to see that all of it runs"
    )
    parser.add_argument("--seed", type=int, default=SEED, help=f"default {SEED}")
    parser.add_argument("--processes", type=int, default=2, help="default 2")
    parser.add_argument(
        "--again", action="store_true", help="judge and draw the saved trials, measure nothing"
    )
    parser.add_argument(
        "--redraw",
        action="store_true",
        help="draw the points on record, and judge again what their means suffice for; measure nothing",
    )
    parser.add_argument("--fresh", action="store_true", help="measure again what earlier runs have kept")
    parser.add_argument("--trials", type=int, help="fewer pairs or tables than the paper's")
    parser.add_argument("--at", type=float, nargs="+", help="only these k, l or n of the figure's axis")
    parser.add_argument(
        "--out", type=Path, help="folder of the record; the page is beside it (default: docs)"
    )
    if learners:
        parser.add_argument(
            "--learners", nargs="+", choices=learners, default=list(learners), help="default: all of them"
        )
    if more is not None:
        more(parser)
    given = parser.parse_args()
    if given.at is not None:
        given.at = tuple(int(x) if x == int(x) else x for x in given.at)
    if not learners:
        given.learners = [NO_LEARNERS]
    if given.out is None:
        given.out = ROOT / ("build/reproduction" if given.quick else "docs/reproduction")
    refuse_uncommitted(given.out)
    return given


# ---- measurements --------------------------------------------------------------------------------------


class Measured:
    """Numbers by what they are of, one for each trial; ``stamp`` says where they come from.

    >>> found = Measured("method")
    >>> found.add(0, 0.5, method="TDS"); found.add(1, 0.7, method="TDS")
    >>> found.of(method="TDS").tolist()
    [0.5, 0.7]
    """

    def __init__(self, *keys: str) -> None:
        self.keys = keys
        self.stamp: dict[str, Any] = {}
        self._values: dict[tuple[Any, ...], dict[Any, float]] = {}

    def add(self, trial: Any, value: float, **of: Any) -> None:
        self._values.setdefault(self._place(of), {})[trial] = value

    def extend(self, entries: Iterable[Mapping[str, Any]]) -> None:
        """Entries with ``trial``, ``value`` and the keys."""
        for entry in entries:
            self.add(**entry)

    def of(self, **of: Any) -> NDArray[np.float64]:
        """The values in the order of their trials."""
        found = self._values[self._place(of)]
        return np.array([found[trial] for trial in sorted(found)])

    def _place(self, of: Mapping[str, Any]) -> tuple[Any, ...]:
        if set(of) != set(self.keys):
            raise KeyError(f"{sorted(of)} are not {sorted(self.keys)}")
        return tuple(of[key] for key in self.keys)

    def trials(self) -> list[dict[str, Any]]:
        """Every number with its trial and what it is of."""
        return [
            {**dict(zip(self.keys, place, strict=True)), "trial": trial, "value": value}
            for place, found in self._values.items()
            for trial, value in found.items()
        ]

    def points(self) -> list[dict[str, Any]]:
        """One line for each point of the figure: mean, its 95% interval, spread and number of trials."""
        out = []
        for place, found in self._values.items():
            values = np.array(list(found.values()))
            deviation = float(values.std(ddof=1)) if len(values) > 1 else math.nan
            out.append({
                **dict(zip(self.keys, place, strict=True)),
                "mean": float(values.mean()),
                "half_width": _t_quantile(len(values)) * deviation / math.sqrt(len(values)),
                "deviation": deviation,
                "trials": len(values),
            })  # fmt: skip
        return out


def measured(
    given: Namespace, name: str, keys: tuple[str, ...], run: Callable[[], Iterable[list[dict[str, Any]]]]
) -> Measured:
    """What ``run`` measures, trial by trial, saved under ``build``; or, with ``--again``, what was saved.

    An entry that was kept from an earlier run brings its own ``commit``.
    """
    found = Measured(*keys)
    if getattr(given, "redraw", False):
        return _means_on_record(given, name, keys)
    if given.again:
        document = _measured_before(given, name)
    else:
        now = commit()
        entries = [dict(entry) for entries in run() for entry in entries]
        commits = {entry.pop("commit", now): None for entry in entries} or {now: None}
        document = {
            "stamp": {"seed": given.seed, "version": version("sfumato"), "commit": " ".join(commits)},
            "entries": entries,
        }
        _saved(given, name).parent.mkdir(parents=True, exist_ok=True)
        _saved(given, name).write_text(json.dumps(document), encoding="utf-8")
    found.stamp.update(document["stamp"])
    found.extend(document["entries"])
    return found


def _means_on_record(given: Namespace, name: str, keys: tuple[str, ...]) -> Measured:
    """The means of a record in place of the trials."""
    found = Measured(*keys)
    for point in read_points(given.out / f"{name}.csv"):
        found.add(0, point["mean"], **{key: point[key] for key in keys})
        found.stamp = {key: point[key] for key in STAMP}
    if not found.stamp:
        raise SystemExit(f"There is no record of {name} in {given.out}: measure it.")
    return found


def _measured_before(given: Namespace, name: str) -> dict[str, Any]:
    """The trials under ``build``, or else those that are kept beside the record."""
    path = _saved(given, name)
    if path.exists():
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return document
    kept = [
        entry
        for entry in read_trials(given.out, name)
        if entry.get("learners", NO_LEARNERS) in given.learners
    ]
    if not kept:
        raise SystemExit(f"No trials of {name} are kept, under build or in {given.out}: measure it.")
    stamps = [{key: entry.pop(key) for key in STAMP} for entry in kept]
    commits = dict.fromkeys(stamp["commit"] for stamp in stamps)
    return {"stamp": {**stamps[0], "commit": " ".join(commits)}, "entries": kept}


def saved(given: Namespace, name: str) -> list[dict[str, Any]]:
    """The trials of the last run, each with the commit that it comes from, for a run that keeps some of them."""
    document = json.loads(_saved(given, name).read_text(encoding="utf-8"))
    return [{**entry, "commit": document["stamp"]["commit"]} for entry in document["entries"]]


def _saved(given: Namespace, name: str) -> Path:
    return (
        ROOT
        / "build"
        / ("trials-quick" if given.quick else "trials")
        / f"{name}-{'-'.join(given.learners)}.json"
    )


def _t_quantile(n: int) -> float:
    from scipy.stats import t  # noqa: PLC0415 - slow to import, and needed once all trials are done

    return float(t.ppf(0.975, n - 1)) if n > 1 else math.nan


# ---- claims --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Finding:
    """One comparison that a claim rests on."""

    what: str
    holds: bool
    statistic: str


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of the paper, or of ours, and what was found here.

    ``from_means`` says that its findings compare means alone: they can be judged without the trials.
    """

    text: str
    findings: tuple[Finding, ...]
    from_means: bool = False

    @property
    def verdict(self) -> str:
        """How many of the findings hold, and of how many.

        >>> Claim("", (Finding("", True, ""), Finding("", False, ""))).verdict
        'held in 1 of 2'
        """
        return f"held in {sum(finding.holds for finding in self.findings)} of {len(self.findings)}"

    @property
    def outcome(self) -> str:
        """In a word: of all findings, of some, of none."""
        seen = {finding.holds for finding in self.findings}
        return IN_PART if len(seen) > 1 else HELD if seen.pop() else NOT_HELD

    @property
    def is_ours(self) -> bool:
        return self.text.startswith(OURS)


def greater(what: str, first: NDArray[np.float64], second: NDArray[np.float64], *, alpha: float) -> Finding:
    """Is ``first`` above ``second``, by a one-tailed paired t-test at level ``alpha``?"""
    from scipy.stats import ttest_rel  # noqa: PLC0415

    difference = first - second
    means = f"{first.mean():.4g} against {second.mean():.4g}"
    if len(difference) < 2 or np.ptp(difference) == 0:
        return Finding(what, bool(difference.mean() > 0), f"{means}, the same difference in every trial")
    t, p = (float(x) for x in ttest_rel(first, second, alternative="greater"))
    return Finding(what, p < alpha, f"{means}, t = {t:.2f}, p {small(p)}")


def small(p: float) -> str:
    """How a p-value is written.

    >>> small(0.0002), small(0.031)
    ('< .001', '= .031')
    """
    return "< .001" if p < 0.001 else f"= {p:.3f}".replace("0.", ".")


# ---- files ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a paper as it was measured here."""

    name: str
    title: str
    setup: str
    points: list[dict[str, Any]] = field(default_factory=list)
    claims: dict[str, list[Claim]] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """Of the paper's claims; of ours where it has none."""
        every = [claim for claims in self.claims.values() for claim in claims]
        chosen = [claim for claim in every if not claim.is_ours] or every
        return Claim("", tuple(finding for claim in chosen for finding in claim.findings)).verdict


def save(
    given: Namespace,
    name: str,
    title: str,
    setup: str,
    measured: Measured,
    claims: dict[str, list[Claim]],
    *,
    table: str = "",
) -> Figure:
    """Write CSV, trials and claims (``claims`` by learners), then the pages; gives all that is on record.

    ``table`` is a table of the figure in Markdown, where the picture does not say it all.
    """
    path = given.out / f"{name}.json"
    if getattr(given, "redraw", False):
        refuse_uncommitted(given.out)
        kept = json.loads(path.read_text(encoding="utf-8"))
        points = read_points(given.out / f"{name}.csv")
        judged = _judged_by_means(_read_claims(path), claims)
        table, quick, reduced = kept.get("table", ""), kept["quick"], kept["reduced"]
    else:
        refuse_uncommitted(given.out, measured.stamp["commit"])
        given.out.mkdir(parents=True, exist_ok=True)
        _write_trials(given, name, measured)
        new = [{**_tidy(point), **measured.stamp} for point in measured.points()]
        others = [
            point
            for point in read_points(given.out / f"{name}.csv")
            if "learners" in point and point["learners"] not in given.learners
        ]
        points = sorted([*others, *new], key=lambda point: str(point.get("learners", "")))
        (given.out / f"{name}.csv").write_text(_csv(points), encoding="utf-8")
        judged = {**(_read_claims(path) if others else {}), **claims}
        before = json.loads(path.read_text(encoding="utf-8"))["reduced"] if others else {}
        quick, reduced = given.quick, {**before, **_reduced(given)}
    figure = Figure(name, title, setup, points, {learners: judged[learners] for learners in sorted(judged)})
    commits = sorted({commit for point in points for commit in str(point["commit"]).split()})
    document = {
        "title": title,
        "setup": setup,
        "quick": quick,
        "reduced": reduced,
        "measured": {commit: date_of(commit) for commit in commits},
        "trials": sorted({entry.get("learners", NO_LEARNERS) for entry in read_trials(given.out, name)}),
        "verdict": figure.verdict,
        **({"table": table} if table else {}),
        "claims": {
            learners: [
                {
                    "text": claim.text,
                    "findings": [asdict(finding) for finding in claim.findings],
                    "verdict": claim.verdict,
                }
                for claim in of
            ]
            for learners, of in figure.claims.items()
        },
    }
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    pages.write(given.out)
    return figure


def _judged_by_means(
    on_record: dict[str, list[Claim]], new: dict[str, list[Claim]]
) -> dict[str, list[Claim]]:
    """The claims in their order now: those that means suffice for as judged now, others as they are on record."""
    out = {}
    for learners, claims in on_record.items():
        kept = {claim.text: claim for claim in claims}
        now = new.get(learners, [])
        if not now:
            out[learners] = claims
            continue
        out[learners] = [
            claim if claim.from_means else kept[claim.text]
            for claim in now
            if claim.from_means or claim.text in kept
        ]
    return out


def _reduced(given: Namespace) -> dict[str, str]:
    """What was left out of a run, in words."""
    less = [f"{given.trials} trials only"] if given.trials else []
    less += ["only at " + ", ".join(f"{x:g}" for x in given.at)] if given.at else []
    less += [f"{given.rows:,} rows only"] if getattr(given, "rows", None) else []
    less += ["what is not measured is left out"] if getattr(given, "unfinished", False) else []
    return dict.fromkeys(given.learners, "; ".join(less))


def read_points(path: Path) -> list[dict[str, Any]]:
    """Lines of a CSV, compressed or not, with numbers as numbers; none where there is no file."""
    if not path.exists():
        return []
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8", newline="") as file:
        return [
            {key: text if key in ("version", "commit") else _value(text) for key, text in line.items()}
            for line in csv.DictReader(file)
        ]


def read_trials(folder: Path, name: str) -> list[dict[str, Any]]:
    """The trials that are kept beside a record, from which every t and p can be computed again."""
    return read_points(_trials_path(folder, name))


def _trials_path(folder: Path, name: str) -> Path:
    return folder / f"{name}.trials.csv.gz"


def _write_trials(given: Namespace, name: str, measured: Measured) -> None:
    """Keep the trials of these learners, and of others what is kept already."""
    others = [
        entry
        for entry in read_trials(given.out, name)
        if "learners" in entry and entry["learners"] not in given.learners
    ]
    new = [{**entry, **{key: measured.stamp[key] for key in STAMP}} for entry in measured.trials()]
    text = _csv([*others, *new])
    with gzip.GzipFile(_trials_path(given.out, name), "wb", mtime=0) as file:  # the same bytes every time
        file.write(text.encode())


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _tidy(point: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: float(f"{value:.6g}") if isinstance(value, float) and key != "x" else value
        for key, value in point.items()
    }


def _csv(points: Sequence[Mapping[str, Any]]) -> str:
    file = io.StringIO()
    writer = csv.DictWriter(file, list(points[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(points)
    return file.getvalue()


def _read_claims(path: Path) -> dict[str, list[Claim]]:
    if not path.exists():
        return {}
    document = json.loads(path.read_text(encoding="utf-8"))
    return {
        learners: [
            Claim(claim["text"], tuple(Finding(**finding) for finding in claim["findings"]))
            for claim in claims
        ]
        for learners, claims in document["claims"].items()
    }
