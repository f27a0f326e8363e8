"""The pages of the record: a short one of verdicts, and one for each figure.

``docs/reproduction.md`` and ``docs/reproduction/<figure>.md`` are written from the records beside them, from
``preamble.md``, and from what people wrote: ``reasons.json`` (why a claim did not hold) and ``tolerances.json``
(what a verdict allows for), both by figure and by how the claim begins.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

OURS = "(sfumato's, not the paper's) "
"""How a claim begins that is not the paper's."""

NO_LEARNERS = "none"
"""In place of the learners where a figure has no models."""

PAPERS = {
    "tods": ("TODS", "Workload-aware anonymization (TODS 2008)"),
    "diffgen": ("DiffGen", "DiffGen (KDD 2011)"),
    "cerias": ("CERIAS", "Risk and utility (CERIAS 2012-1)"),
}
WEKA = "weka"
LEARNERS = {"scikit-learn": "scikit-learn", WEKA: "Weka"}
HERE = Path(__file__).parent

Record = Mapping[str, Any]
Claim = Mapping[str, Any]


def records(folder: Path) -> dict[str, Record]:
    """Every figure on record, by the name of its script."""
    paths = sorted((path for path in folder.glob("*.json") if "." not in path.stem), key=_in_order)
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in paths}


def _in_order(path: Path) -> list[tuple[str, int]]:
    """Figure 10 after figure 9."""
    return [(word, int(number or 0)) for word, number in re.findall(r"(\D+)(\d*)", path.stem)]


def write(folder: Path) -> None:
    """The page of verdicts beside the folder, and in it the page of each figure."""
    found = records(folder)
    verdicts = "\n".join([_words("preamble.md"), *_summary(found), *_tables(found, folder.name), ""])
    folder.with_suffix(".md").write_text(verdicts, encoding="utf-8")
    (folder / "setup.md").write_text(_words("setup.md"), encoding="utf-8")
    for name, record in found.items():
        quick = folder / f"{name}.quick.json"
        known = json.loads(quick.read_text(encoding="utf-8")) if quick.exists() else None
        (folder / f"{name}.md").write_text(_page(name, record, known), encoding="utf-8")


def _words(name: str) -> str:
    return HERE.joinpath(name).read_text(encoding="utf-8")


# ---- verdicts ------------------------------------------------------------------------------------------


def _by_text(record: Record) -> dict[str, dict[str, Claim]]:
    """Claims by their words, then by learners."""
    out: dict[str, dict[str, Claim]] = {}
    for learners, claims in record["claims"].items():
        for claim in claims:
            out.setdefault(claim["text"], {})[learners] = claim
    return out


def _held(claim: Claim) -> tuple[int, int]:
    return sum(finding["holds"] for finding in claim["findings"]), len(claim["findings"])


def _verdict(claim: Claim | None) -> str:
    """How many of how many comparisons hold; bold where it is not all of them."""
    if claim is None:
        return ""
    n_held, n = _held(claim)
    return f"{n_held} of {n}" if n_held == n else f"**{n_held} of {n}**"


def _summary(found: Mapping[str, Record]) -> list[str]:
    """One sentence on the papers' claims, one on ours."""
    out = []
    for whose, is_ours in (("Of the papers' {} claims", False), ("Of our own {} claims", True)):
        full, part, none = 0, 0, 0
        for record in found.values():
            for text, of in _by_text(record).items():
                if text.startswith(OURS) != is_ours:
                    continue
                counts = [_held(claim) for claim in of.values()]
                n_held, n = (sum(column) for column in zip(*counts, strict=True))
                full, part, none = full + (n_held == n), part + (0 < n_held < n), none + (n_held == 0)
        out.append(
            f"{whose.format(full + part + none)} {full} held in every comparison, {part} in some, {none} in none."
        )
    return [" ".join(out), ""]


def _tables(found: Mapping[str, Record], folder: str) -> Iterator[str]:
    for prefix, (_, title) in PAPERS.items():
        of_paper = {name: record for name, record in found.items() if name.startswith(f"{prefix}_")}
        rows = list(_rows(of_paper, folder, ours=False))
        if rows:
            yield from (f"## {title}", "", *_head("the paper's claim"), *rows, "")
    rows = list(_rows(found, folder, ours=True))
    if rows:
        yield from ("## Claims of our own", "", *_head("claim"), *rows)


def _head(claim: str) -> tuple[str, str]:
    return f"| figure | {claim} | held in | with Weka |", "|---|---|---|---|"


def _rows(found: Mapping[str, Record], folder: str, *, ours: bool) -> Iterator[str]:
    for name, record in found.items():
        shown = label(name) if ours else label(name).partition(" ")[2]
        place = f"[{shown}]({folder}/{name}.md)"
        note = " (a quick run: no evidence)" if record["quick"] else ""
        for text, of in _by_text(record).items():
            if text.startswith(OURS) == ours:
                first = next((claim for learners, claim in of.items() if learners != WEKA), None)
                cells = (place, text.removeprefix(OURS), _verdict(first) + note, _verdict(of.get(WEKA)))
                yield f"| {' | '.join(cells)} |"
                place = ""


def label(name: str) -> str:
    """The name of a script in words.

    >>> label("tods_fig06"), label("diffgen_extra"), label("tods_fig07_areas")
    ('TODS figure 6', 'DiffGen extra', 'TODS figure 7, areas')
    """
    paper, *words = name.split("_")
    number = words[0].removeprefix("fig")
    first = words[0] if number == words[0] else "figure " + number.lstrip("0")
    return ", ".join([f"{PAPERS[paper][0]} {first}", *words[1:]])


# ---- one figure ----------------------------------------------------------------------------------------


def _page(name: str, record: Record, quick: Record | None) -> str:
    lines = [
        f"# {label(name)}: {_first_small(record['title'])}",
        "",
        "[All verdicts](../reproduction.md)",
        "",
    ]
    lines += [
        record["setup"],
        "",
        f"{_age(record)} {_small_run(record, quick)} [How tables and learners were set up](setup.md).",
        "",
    ]
    less = [f"{learners}: {what}." for learners, what in sorted(record["reduced"].items()) if what]
    lines += [f"Reduced to save time: {' '.join(less).replace('none: ', '')}", ""] if less else []
    lines += [f"![{record['title']}]({name}.png)", ""]
    lines += [record["table"], ""] if "table" in record else []
    claims = [
        (learners, claim) for learners, of_learners in record["claims"].items() for claim in of_learners
    ]
    for title, ours in (("What the paper claims", False), ("What we claim", True)):
        chosen = [pair for pair in claims if pair[1]["text"].startswith(OURS) == ours]
        if chosen:
            lines += [f"## {title}", ""]
            lines += [line for pair in chosen for line in _claim(name, *pair)]
    return "\n".join(lines)


def _first_small(title: str) -> str:
    return (
        title
        if title[:2].isupper() or title.startswith(("Rothko", "DiffGen"))
        else title[0].lower() + title[1:]
    )


def _age(record: Record) -> str:
    """When and from what the figure was measured, and whether its trials are kept."""
    places = []
    for commit, date in record["measured"].items():
        changed = " with changes that were not committed" if commit.endswith("+") else ""
        places.append(f"commit `{commit.removesuffix('+')}`" + (f" of {date}" if date else "") + changed)
    kept = set(record["trials"])
    if kept == set(record["claims"]):
        trials = "Raw trials are kept beside it (`.trials.csv.gz`)."
    elif kept:
        trials = f"Raw trials are kept of {', '.join(sorted(kept))} only (`.trials.csv.gz`)."
    else:
        trials = "Its raw trials were not kept, so t and p cannot be computed again from this folder."
    return f"Measured at {', '.join(places)}. {trials}"


def _small_run(record: Record, quick: Record | None) -> str:
    """Since when the numbers of a small run are kept, by which the record is found stale."""
    if quick is None:
        return "No numbers of a small run are kept beside it."
    later = (
        "" if quick["commit"] in record["measured"] else ", not of the commit that the figure was measured at"
    )
    when = f"commit `{quick['commit']}` of {quick['date']}"
    return f"The numbers of a small run by which it is found stale (`.quick.json`) are of {when}{later}."


def _claim(name: str, learners: str, claim: Claim) -> list[str]:
    text = claim["text"].removeprefix(OURS)
    who = "" if learners == NO_LEARNERS else f" ({LEARNERS[learners]})"
    lines = [f"### {text[0].upper()}{text[1:]}{who}", ""]
    n_held, n = _held(claim)
    words = [f"**Held in {n_held} of {n}.**", *notes("tolerances.json", name, claim)]
    words += notes("reasons.json", name, claim) if n_held < n else []
    lines += [" ".join(words), "", "| compared | outcome | holds |", "|---|---|---|"]
    lines += [
        f"| {finding['what']} | {finding['statistic']} | {'yes' if finding['holds'] else 'no'} |"
        for finding in claim["findings"]
    ]
    return [*lines, ""]


def notes(file: str, name: str, claim: Claim) -> Sequence[str]:
    """What a person wrote of a claim, by figure and by how the claim begins."""
    of_figure = json.loads(_words(file)).get(name, {})
    return [words for start, words in of_figure.items() if claim["text"].startswith(start)][:1]
