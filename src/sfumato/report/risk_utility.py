"""The report of a risk-utility release: what each row was given, what it still tells, and how risky it is.

Everything is computed from the published rows and the certificate. Risk is told as the certificate states it: the side
table is not in the folder, and this report looks at nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import jinja2
import numpy as np
from numpy.typing import NDArray

from sfumato.policy.options.risk_utility import (
    DEPTH,
    HARMONIC,
    INVERSE,
    LAGRANGIAN,
    LOG,
    MODEL_2,
    MOST_UTILITY,
    PAPER,
    THRESHOLD,
    Absolute,
    RiskUtilityOptions,
)
from sfumato.policy.schema import Role
from sfumato.report.page import (
    ReportedRelease,
    ReportSummary,
    hidden_of,
    list_names,
    options_of,
    share,
    template,
    write_certificate,
)
from sfumato.report.risk_utility_pictures import (
    BarPart,
    Place,
    UtilityRange,
    part_bar,
    plane_of_risk_and_utility,
    risk_range,
    risks_histogram,
    shares_histogram,
)
from sfumato.report.utility import draw_scores, name_of, significance, utility_of
from sfumato.verify.risk_utility.boxes import Boxes, Utilities, promised_share
from sfumato.verify.risk_utility.claims import TRADEOFF, WEIGHTED, RunFigures

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

N_BARS = 50
ALIKE = ((1, 1), (2, 4), (5, 9), (10, 49), (50, None))
"""How many published rows share a box."""


def render_tradeoff(release: ReportedRelease) -> str:
    """The report of a risk-utility release, as HTML."""
    claims, figures = release.certificate.claims, RunFigures.of(release.certificate.figures[TRADEOFF])
    options = release.policy.options_for(RiskUtilityOptions)
    missing = claims.utility.missing if claims.utility is not None else ()
    boxes = Boxes.of(release.rows, release.policy, missing)
    utilities = Utilities.of(boxes)
    alike = alike_of(boxes)
    return _template().render(
        release=release,
        claims=claims,
        figures=figures,
        said=release.certificate.figures[TRADEOFF],
        study=release.certificate.figures[TRADEOFF].get("published"),
        options=options,
        is_threshold=options.objective == THRESHOLD,
        threshold=_threshold_words(options),
        has_line=promised_share(options) is not None,
        summary=summarize(options, figures),
        position=position(options, figures),
        risks=risks_histogram(figures.histogram, limit_of(options)) if figures.histogram else None,
        limit=limit_of(options),
        weighted=WEIGHTED if figures.is_above_one else None,
        kept=None if isinstance(utilities, str) else kept_of(utilities, options),
        unknown=utilities if isinstance(utilities, str) else None,
        columns=columns_of(boxes),
        hidden=hidden_of(boxes.details()),
        can_be_recounted=boxes.factor is not None,
        alike=alike,
        n_alone=alike[0].n,
        proved=part_bar(
            [
                BarPart("proved: nothing better exists", "exact", figures.proved),
                BarPart("the best that was found", "narrowed", figures.rows - figures.proved),
            ]
        ),
        words=OptionsInWords.of(options, release.policy.schema.names(Role.QUASI_IDENTIFIER)),
        sensitive=release.policy.schema.names(Role.SENSITIVE),
        others=release.policy.schema.names(Role.OTHER),
        utility=utility_of(release.certificate.figures),
        settings=options_of(release.policy),
        certificate=write_certificate(release.certificate),
    )


@cache
def _template() -> jinja2.Template:
    return template(
        "tradeoff.html",
        listed=list_names,
        risk=risk,
        risk_range=risk_range,
        times=times,
        scores=draw_scores,
        model=name_of,
        significance=significance,
    )


def risk(number: float) -> str:
    """A risk as people read it.

    >>> risk(0.33466), risk(4.0), risk(0.0), risk(0.0000123)
    ('0.335', '4', '0', '1.23e-05')
    """
    return f"{number:.3g}"


def times(before: float, after: float) -> str:
    """How many times lower.

    >>> times(4.0, 0.5), times(4.0, 0.0), times(0.0, 0.0), times(3.0, 2.9)
    ('8 times lower', 'gone', 'as it was', '1.03 times lower')
    """
    if before <= after:
        return "as it was"
    if after == 0:
        return "gone"
    ratio = before / after
    return f"{ratio:,.0f} times lower" if ratio >= 10 else f"{ratio:.3g} times lower"


def summarize(options: RiskUtilityOptions, figures: RunFigures) -> ReportSummary:
    (before, worst_before), (after, worst) = figures.raw_risk, figures.risk
    fallen = (
        f"The mean risk was {risk(before)} for the rows as they are, and is {risk(after)} now; the greatest was "
        f"{risk(worst_before)}, and is {risk(worst)}."
    )
    if figures.is_above_one:
        fallen += f" {WEIGHTED}"
    if options.private is not None:
        return ReportSummary(
            "bad",
            f"No privacy is claimed: this is the paper's Algorithm {options.private.algorithm}, for study.",
            f"Its boxes were drawn at random, and yet a single row can decide which are possible. {fallen} "
            "Do not publish it as a private release.",
        )
    not_groups = "This is not k-anonymity: a box may be that of one row."
    limit = limit_of(options)
    if limit is not None:
        what = "as much as that allows" if figures.proved == figures.rows else "as much as was found"
        return ReportSummary(
            "good",
            f"Every row has a risk of at most {risk(limit)}, and tells {what}.",
            f"{fallen} {not_groups}",
        )
    if options.objective != THRESHOLD:
        return ReportSummary(
            "none",
            "Nothing is promised: risk and utility were weighed against each other, row by row.",
            fallen,
        )
    kept = _kept_words(options)
    best = (
        "at the least risk there is" if figures.proved == figures.rows else "at the least risk that was found"
    )
    return ReportSummary("good", f"{kept}, {best}.", f"{fallen} {not_groups}")


def limit_of(options: RiskUtilityOptions) -> float | None:
    """The risk that no row exceeds by promise."""
    return None if options.risk_at_most is None else float(options.risk_at_most)


def _kept_words(options: RiskUtilityOptions) -> str:
    promised = options.promised
    if isinstance(promised, Absolute):
        return f"Every row has a utility of {float(promised.value):.6g} or more"
    return f"Every row keeps {100 * float(promised or 0):.3g}\N{NO-BREAK SPACE}% of what it tells"


# ---- words -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OptionsInWords:
    """The options in plain words."""

    utility: str
    weight: str
    objective: str

    @classmethod
    def of(cls, options: RiskUtilityOptions, names: Sequence[str]) -> OptionsInWords:
        return cls(_utility_words(options), _weight_words(options, names), _objective_words(options))


_UTILITY = {
    DEPTH: "how many steps below the root of its hierarchy it lies",
    INVERSE: "one over the number of values that it may stand for",
    LOG: "the logarithm of how many times fewer values it may stand for than the root",
}


def _utility_words(options: RiskUtilityOptions) -> str:
    if isinstance(options.utility, str):
        return _UTILITY[options.utility]
    assert isinstance(options.utility, Mapping)
    named = list_names(list(options.utility))
    return f"a number that the owner gave for its depth (in {named}), or else how many steps below the root it lies"


def _weight_words(options: RiskUtilityOptions, names: Sequence[str]) -> str:
    weights = options.weights
    if weights.model == MODEL_2:
        words = f"every value weighs 1/{len(names)}, also a root"
    elif weights.model == HARMONIC:
        words = "a value weighs 1, a more general one the less the more values it may stand for, and a root nothing"
    else:
        words = "every value weighs 1, and a root nothing"
    if weights.attributes:
        words += f"; the owner gave other weights for {list_names(list(weights.attributes))}"
    if weights.column is not None:
        words += "; each row has weights of its own"
    if options.floor:
        words += f"; {float(options.floor):.6g} is added for every row"
    return words


def _objective_words(options: RiskUtilityOptions) -> str:
    if options.objective == THRESHOLD:
        least = f"the box of least risk among those that keep at least {_threshold_words(options)}"
        if options.is_algorithm_1:
            least += f", {float(options.approximation.sigma_1):.3g} times what was asked for,"
        return f"{least} (the paper's algorithm, for study)" if options.variant == PAPER else least
    if options.objective == MOST_UTILITY:
        return f"the box of most utility among those with a risk of at most {float(options.risk_at_most or 0):.6g}"
    price = f"{float(options.price or 0):.6g}"
    if options.objective == LAGRANGIAN:
        power = f"to the power of {options.kappa}" if options.kappa != 1 else "itself"
        return f"the box with the greatest sum of {price} / risk and its utility {power}"
    return f"the box with the greatest utility less {price} times the logarithm of its risk"


def _threshold_words(options: RiskUtilityOptions) -> str:
    """The least utility of a row.

    >>> _threshold_words(RiskUtilityOptions())
    '60 % of the way from telling nothing (every value a root) to telling all (the row as it is)'
    """
    promised = options.promised
    if isinstance(promised, Absolute):
        return f"a utility of {float(promised.value):.6g}"
    way = "of the way from telling nothing (every value a root) to telling all (the row as it is)"
    return f"{100 * float(promised or 0):.3g} % {way}"


# ---- pictures ----------------------------------------------------------------------------------------------


def position(options: RiskUtilityOptions, figures: RunFigures) -> Any:
    """Where the release lies between the rows as they are and nothing told."""
    places = [
        Place("as they are", "raw", 1.0, *figures.raw_risk),
        Place("published", "release", figures.share[0], *figures.risk, least=figures.share[1]),
    ]
    weights = options.weights
    root = 1.0 if weights.model == MODEL_2 else 0.0
    if not root or (weights.column is None and not weights.attributes):
        top = (root + float(options.floor)) / max(figures.side_people or figures.side_rows, 1)
        places.append(Place("nothing told", "told", 0.0, top, top))
    return plane_of_risk_and_utility(places, _line(options))


def _line(options: RiskUtilityOptions) -> float | None:
    """Where the share of utility that is promised is drawn."""
    promised = promised_share(options)
    return None if promised is None else float(promised)


@dataclass(frozen=True, slots=True)
class UtilityKept:
    """How much of its utility each row keeps: a picture, and whether the boxes tell it for certain."""

    picture: Any
    bars: list[UtilityRange]
    is_certain: bool


def kept_of(utilities: Utilities, options: RiskUtilityOptions) -> UtilityKept:
    low, high = utilities.shares()
    count = utilities.boxes.count
    line = _line(options)
    if line is not None:
        low = np.maximum(low, min(line, 1.0))
    at = np.clip((N_BARS * low + 1e-9).astype(np.int64), 0, N_BARS - 1)
    rows = np.bincount(at, weights=count, minlength=N_BARS).astype(np.int64)
    bars = [UtilityRange(i / N_BARS, (i + 1) / N_BARS, int(n)) for i, n in enumerate(rows.tolist())]
    return UtilityKept(
        shares_histogram(bars, line), [bar for bar in bars if bar.n], bool(np.allclose(low, high))
    )


@dataclass(frozen=True, slots=True)
class ColumnLevels:
    """How far the values of one column were generalized."""

    name: str
    height: int
    tones: list[BarPart]
    picture: Any

    @property
    def words(self) -> str:
        n_rows = sum(tone.n for tone in self.tones)
        return " · ".join(f"{tone.name} {share(tone.n, n_rows)}" for tone in self.tones if tone.n)


def columns_of(boxes: Boxes) -> list[ColumnLevels]:
    """Of each column, the rows at each level: as they are, so many steps up, not told, missing."""
    found = []
    for a, (column, own) in enumerate(zip(boxes.columns, boxes.nodes, strict=True)):
        rows = np.bincount(boxes.of_line[:, a], weights=boxes.count, minlength=len(own)).astype(np.int64)
        tree, height = column.tree, column.tree.height
        is_leaf = np.isin(np.arange(tree.n_nodes), tree.leaf_nodes)
        counts = dict.fromkeys(
            ["as it is", *(steps_up(i) for i in range(1, height)), "not told", "missing"], 0
        )
        for nodes, n in zip(own, rows.tolist(), strict=True):
            node = nodes[0]
            if tree.labels[node] is None:
                word = "missing"
            elif node == 0:
                word = "not told"
            else:
                word = "as it is" if is_leaf[node] else steps_up(height - int(tree.depth[node]))
            counts[word] += n
        tones = [BarPart(word, _tone(word), n, _paleness(word, height)) for word, n in counts.items()]
        found.append(ColumnLevels(column.attribute.name, height, tones, part_bar(tones)))
    return found


def steps_up(n: int) -> str:
    return "1 step up" if n == 1 else f"{n} steps up"


def _tone(word: str) -> str:
    return {"as it is": "exact", "not told": "whole", "missing": "missing"}.get(word, "narrowed")


def _paleness(word: str, height: int) -> float:
    """Steps up are the paler the further up."""
    if "up" not in word:
        return 1.0
    return 1.0 - 0.65 * (int(word.split(maxsplit=1)[0]) - 1) / max(height - 2, 1)


@dataclass(frozen=True, slots=True)
class Alike:
    """Rows whose box that many published rows share."""

    label: str
    n: int
    picture: Any


def alike_of(boxes: Boxes) -> list[Alike]:
    """How many published rows have a box that so many share."""
    _, at = np.unique(boxes.of_line, axis=0, return_inverse=True)
    size = np.bincount(at.ravel(), weights=boxes.count).astype(np.int64)
    found = []
    for first, last in ALIKE:
        n = int(size[(size >= first) & (size <= (last or size.max()))].sum())
        label = f"{first}" if first == last else f"{first} or more" if last is None else f"{first} to {last}"
        rest = BarPart("others", "rest", boxes.n_rows - n)
        found.append(Alike(label, n, part_bar([BarPart(label, "exact", n), rest])))
    return found


__all__ = ["render_tradeoff"]
