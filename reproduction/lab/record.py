"""What a script leaves behind: a CSV of the points of its figure, the claims as judged, and a row of the page.

Per set of learners the results stand on their own: a run with one of them replaces its part of the record and
keeps the other's. ``docs/reproduction.md`` is written anew from all records in ``docs/reproduction``.
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

from lab.provenance import ROOT, commit, date_of, refuse_uncommitted

SEED = 20080801
"""The month of the paper."""

STAMP = ("seed", "version", "commit")

NO_LEARNERS = "none"
"""In place of the learners where a figure has no models."""

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
    """A sentence of the paper, and what was found here."""

    text: str
    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> str:
        """From all findings together.

        >>> Claim("", (Finding("", True, ""), Finding("", False, ""))).verdict
        'held in part'
        """
        return verdict_of([HELD if finding.holds else NOT_HELD for finding in self.findings])


def verdict_of(verdicts: Iterable[str]) -> str:
    seen = set(verdicts)
    return seen.pop() if len(seen) == 1 else IN_PART


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
        return verdict_of(claim.verdict for claims in self.claims.values() for claim in claims)


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
    """Write CSV and claims (``claims`` by learners), then the page; gives all that is on record.

    ``table`` is a table of the figure in Markdown, where the picture does not say it all.
    """
    refuse_uncommitted(given.out, measured.stamp["commit"])
    given.out.mkdir(parents=True, exist_ok=True)
    _write_trials(given, name, measured)
    new = [{**_tidy(point), **measured.stamp} for point in measured.points()]
    old = [
        point
        for point in read_points(given.out / f"{name}.csv")
        if "learners" in point and point["learners"] not in given.learners
    ]
    points = sorted([*old, *new], key=lambda point: str(point.get("learners", "")))
    (given.out / f"{name}.csv").write_text(_csv(points), encoding="utf-8")
    path = given.out / f"{name}.json"
    kept = _read_claims(path) if old else {}
    judged = {**kept, **claims}
    figure = Figure(name, title, setup, points, {learners: judged[learners] for learners in sorted(judged)})
    reduced = {**(json.loads(path.read_text(encoding="utf-8"))["reduced"] if old else {}), **_reduced(given)}
    commits = sorted({name for point in points for name in str(point["commit"]).split()})
    document = {
        "title": title,
        "setup": setup,
        "quick": given.quick,
        "reduced": reduced,
        "measured": {name: date_of(name) for name in commits},
        "trials": sorted({entry.get("learners", NO_LEARNERS) for entry in read_trials(given.out, name)}),
        "verdict": figure.verdict,
        **({"table": table} if table else {}),
        "claims": {
            learners: [{**asdict(claim), "verdict": claim.verdict} for claim in of]
            for learners, of in figure.claims.items()
        },
    }
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    write_page(given.out)
    return figure


def _reduced(given: Namespace) -> dict[str, str]:
    """What was left out of a run, in words."""
    less = [f"{given.trials} trials only"] if given.trials else []
    less += ["only at " + ", ".join(f"{x:g}" for x in given.at)] if given.at else []
    less += [f"{given.rows:,} rows only"] if getattr(given, "rows", None) else []
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


# ---- the page ------------------------------------------------------------------------------------------


def write_page(folder: Path) -> None:
    """The page beside the folder: what ``preamble.md`` says, a row for each record, then each figure."""
    records = [
        (path.stem, json.loads(path.read_text(encoding="utf-8"))) for path in sorted(folder.glob("*.json"))
    ]
    preamble = Path(__file__).with_name("preamble.md").read_text(encoding="utf-8")
    rows = ["| figure | the paper's claim | what came out here | verdict |", "|---|---|---|---|"]
    rows += [_row(name, record) for name, record in records]
    sections = [_section(name, record, folder.name) for name, record in records]
    page = "\n".join([preamble, *rows, "", *sections])
    folder.with_suffix(".md").write_text(page, encoding="utf-8")


def _row(name: str, record: Mapping[str, Any]) -> str:
    texts, outcomes = [], []
    by_text: dict[str, dict[str, Mapping[str, Any]]] = {}
    for learners, claims in record["claims"].items():
        for claim in claims:
            by_text.setdefault(claim["text"], {})[learners] = claim
    for number, (text, claims) in enumerate(by_text.items(), start=1):
        mark = f"({number}) " if len(by_text) > 1 else ""
        texts.append(mark + text)
        outcomes.append(mark + "; ".join(_outcome(learners, claim) for learners, claim in claims.items()))
    label = _label(name)
    anchor = label.lower().replace(" ", "-")
    note = " (a quick run: no evidence)" if record["quick"] else ""
    return f"| [{label}](#{anchor}) | {'<br>'.join(texts)} | {'<br>'.join(outcomes)} | **{record['verdict']}**{note} |"


def _outcome(learners: str, claim: Mapping[str, Any]) -> str:
    n_held = sum(finding["holds"] for finding in claim["findings"])
    who = "" if learners == NO_LEARNERS else f"{learners}: "
    worst = _hardest(claim["findings"])
    return f"{who}{claim['verdict']}, {n_held} of {len(claim['findings'])} ({worst['what']}: {worst['statistic']})"


def _hardest(findings: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The first that fails; the first of all where none does."""
    return next((finding for finding in findings if not finding["holds"]), findings[0])


def _section(name: str, record: Mapping[str, Any], folder: str) -> str:
    lines = [f"## {_label(name)}", "", f"**{record['title']}.** {record['setup']}", ""]
    less = [f"{learners}: {what}." for learners, what in sorted(record["reduced"].items()) if what]
    lines += [f"Reduced to save time: {' '.join(less)}", ""] if less else []
    lines += [f"![{record['title']}]({folder}/{name}.png)", ""]
    lines += [record["table"], ""] if "table" in record else []
    lines += [f"Points: [{name}.csv]({folder}/{name}.csv).", ""]
    for learners, claims in record["claims"].items():
        for claim in claims:
            who = "" if learners == NO_LEARNERS else f" ({learners})"
            text = claim["text"][0].upper() + claim["text"][1:]
            lines += [f"{text}{who}: **{claim['verdict']}**." + _why(name, claim), ""]
            lines += ["| compared | outcome | holds |", "|---|---|---|"]
            lines += [
                f"| {finding['what']} | {finding['statistic']} | {'yes' if finding['holds'] else 'no'} |"
                for finding in claim["findings"]
            ]
            lines.append("")
    return "\n".join(lines)


def _why(name: str, claim: Mapping[str, Any]) -> str:
    """A person's explanation of a claim that did not hold, from ``reasons.json``: figure, start of the claim, words."""
    reasons = json.loads(Path(__file__).with_name("reasons.json").read_text(encoding="utf-8"))
    found = [why for start, why in reasons.get(name, {}).items() if claim["text"].startswith(start)]
    return f" {found[0]}" if found and claim["verdict"] != HELD else ""


PAPERS = {"tods": "TODS", "diffgen": "DiffGen", "cerias": "CERIAS"}


def _label(name: str) -> str:
    """The name of a script in words.

    >>> _label("tods_fig06"), _label("diffgen_extra")
    ('TODS figure 6', 'DiffGen extra')
    """
    paper, _, what = name.partition("_")
    number = what.removeprefix("fig")
    return f"{PAPERS[paper]} {what if number == what else 'figure ' + number.lstrip('0')}"
