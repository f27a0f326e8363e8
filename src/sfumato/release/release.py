"""A release: the published rows, the certificate that says what they promise, and the folder that holds both.

::

    out/
      release.csv or release.parquet   the rows
      certificate.json                 what is claimed of them, and the SHA-256 of what lies beside it
      policy.yaml                      the policy, complete in itself
      recoding.json (recoding.parquet) how further rows are recoded
      report.html                      for people

The folder is put together under a temporary name and renamed when it is complete and checked. Nothing in it
tells where or from which seed it was made; the certificate may tell the day, but not of a differentially private
release.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import re
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from fractions import Fraction
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from sfumato import notebook
from sfumato.errors import InputError, InternalError, TableError, number_of
from sfumato.machine import free_memory
from sfumato.policy.document import Policy
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.options.risk_utility import Absolute, AtLeast, RiskUtilityOptions
from sfumato.policy.schema import Attribute, Kind, Role, Schema
from sfumato.recoding import tree as recodings
from sfumato.release.query import answers
from sfumato.release.query.answers import Answer
from sfumato.table import formulas
from sfumato.table.renames import exchange, rename_new
from sfumato.table.source import TEXT_KINDS, UNKNOWN, Source, hand_back, is_text, numbers, write_table
from sfumato.table.spill import Spill
from sfumato.table.stored import FiledRows

FORMAT = 1
CERTIFICATE = "certificate.json"
POLICY = "policy.yaml"
REPORT = "report.html"
RELEASES = {"csv": "release.csv", "parquet": "release.parquet"}
RECODINGS = ("recoding.json", "recoding.parquet")
CERTIFIED = (*RELEASES.values(), POLICY, *RECODINGS, REPORT)
"""The files whose SHA-256 the certificate may name, in the order in which it does."""

MISSING = "own-value: a missing quasi-identifier matches only missing"
MISSING_OR_UNDECLARED = (
    "own-value: a cell that is missing or cannot be read, and a category that was not declared, are missing; a number "
    "outside its bounds is moved to the nearer one; a row without a declared class is left out"
)
MISSING_OR_UNDECLARED_BOXES = (
    "own-value: a cell that is missing or cannot be read, and a value that was not declared, are missing, which is a "
    "value of its own below the root; a number outside its bounds is moved to the nearer one"
)
"""The same of a differentially private release, where no cell may be an error."""

NO_PROMISE = "nothing is promised"

DEFINITION = "epsilon-differential privacy"
DEFINITION_WITH_DELTA = "(epsilon, delta)-differential privacy, in both directions"
NEIGHBOURS = "one row added or removed"
FROM_NOBODY = "secret"
"""How the statement about the randomness begins if the release is private."""

IN_MEMORY = 16
"""Rows are left in their file if so many times its size is more than the memory that is free."""

USEFUL = 0.5
"""A release that can be expected to hold less than this part of the drawn rows is of little use."""

PICTURES = ("picture", "risk", "ledger")
"""The section of a report, by its method, whose picture a notebook shows."""

LITTER = (".DS_Store",)
"""What a desktop leaves in any folder that someone looks at."""

_SHA256 = re.compile(r"[0-9a-f]{64}")
_FRACTION = re.compile(r"(-?\d{1,4000})(?:/([1-9]\d{0,3999}))?", re.ASCII)
_EPOCH = date(1970, 1, 1)


class WritableRecoding(Protocol):
    """How further rows are recoded; it knows how to write itself into a release folder."""

    def write(self, folder: Path) -> None: ...


# ---- the certificate -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Claim:
    """One requirement, as the policy writes it, and the figure that the worst group reaches.

    ``achieved`` is infinite where no finite figure is enough; JSON knows no infinity and holds null then.
    """

    requirement: Mapping[str, Any]
    figure: str
    achieved: float


@dataclass(frozen=True, slots=True)
class UtilityClaim:
    """What the published rows of a risk-utility release tell, in all and at least.

    ``at_least`` is the share of its utility that each row keeps, or the utility that it has, None if none is promised.
    ``mean`` and ``least`` are None where the folder does not tell: it takes the values of the table. ``missing`` are the
    columns that have a leaf for missing cells.
    """

    measure: str
    at_least: AtLeast | None
    mean: float | None
    least: float | None
    missing: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        return {"measure": self.measure, "at-least": self._at_least(), "mean": self.mean, "least": self.least}

    def _at_least(self) -> Any:
        if self.at_least is None:
            return None
        return {"value": str(self.at_least)} if isinstance(self.at_least, Absolute) else str(self.at_least)


@dataclass(frozen=True, slots=True)
class CellsClaim:
    """How many of ``all`` published cells of quasi-identifiers are exact or narrowed; the others tell nothing (``*``).

    An empty cell tells that a value is missing, and counts as exact.
    """

    exact: int
    narrowed: int
    all: int

    def __str__(self) -> str:
        """The shares, for people.

        >>> str(CellsClaim(exact=1, narrowed=7, all=1000))
        '0.1% exact, 0.7% narrowed, 99.2% *'
        """
        parts = {"exact": self.exact, "narrowed": self.narrowed, "*": self.nothing}
        return ", ".join(f"{percent(n, self.all)} {word}" for word, n in parts.items())

    @property
    def nothing(self) -> int:
        return self.all - self.exact - self.narrowed

    def as_dict(self) -> dict[str, int]:
        return {"exact": self.exact, "narrowed": self.narrowed, "all": self.all}


def percent(part: int, whole: int) -> str:
    """A share in per cent with one decimal; 0 and 100 only if it is nothing or everything.

    >>> percent(1, 3), percent(1, 10_000), percent(9_999, 10_000), percent(3, 3)
    ('33.3%', '0.1%', '99.9%', '100%')
    """
    if part in (0, whole):
        return "100%" if part else "0%"
    return f"{min(max(100 * part / whole, 0.1), 99.9):.1f}%"


@dataclass(frozen=True, slots=True)
class Claims:
    """What can be checked from the release folder alone.

    ``sha256`` is empty until the release is written: it is of the files, not of the rows. The groups of a
    differentially private release are the cells of its grid, and ``counted`` is the sum of its counts. Those of a
    risk-utility release are the distinct boxes, its suppressed rows are published as roots throughout, and it has a
    claim of ``utility``. ``cells`` says how much is left; a differentially private release and one of an older version
    has none. ``one_value`` counts, for each column of which no diversity is required, the rows of groups that share one
    value of it.
    """

    rows: int
    groups: int
    requirements: tuple[Claim, ...] = ()
    suppressed: int = 0
    sha256: Mapping[str, str] = field(default_factory=dict)
    counted: int | None = None
    utility: UtilityClaim | None = None
    cells: CellsClaim | None = None
    one_value: Mapping[str, int] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        hashes = {name: self.sha256[name] for name in CERTIFIED if name in self.sha256}
        if self.counted is not None:
            return {"rows": self.rows, "cells": self.groups, "counted": self.counted, "sha256": hashes}
        cells = {} if self.cells is None else {"cells": self.cells.as_dict()}
        if self.utility is not None:
            return {
                "rows": self.rows,
                "suppressed": self.suppressed,
                "groups": self.groups,
                **cells,
                "utility": self.utility.as_dict(),
                "missing": list(self.utility.missing),
                "sha256": hashes,
            }
        requirements = [
            {
                "requirement": dict(claim.requirement),
                "figure": claim.figure,
                "achieved": float(claim.achieved) if math.isfinite(claim.achieved) else None,
            }
            for claim in self.requirements
        ]
        return {
            "rows": self.rows,
            "suppressed": self.suppressed,
            "groups": self.groups,
            **cells,
            **({"one-value": dict(self.one_value)} if self.one_value else {}),
            "requirements": requirements,
            "sha256": hashes,
        }


@dataclass(frozen=True, slots=True)
class Sampling:
    """How rows were drawn: each with this ``chance``, and boxes published if at least so many rows had them.

    ``side_rows`` and ``side_sha256`` are of the public side table. ``outlook`` is the share of its own rows whose box is
    drawn often enough on average, were it the table: None where that was not computed. It depends on nothing secret.
    """

    chance: Fraction
    least: int
    side_rows: int
    side_sha256: str | None = None
    outlook: float | None = None

    @property
    def is_useful(self) -> bool:
        """Can most drawn rows be expected to be published, as far as anybody knows?"""
        return self.outlook is None or self.outlook >= USEFUL

    def as_dict(self) -> dict[str, Any]:
        return {
            "chance": str(self.chance),
            "least": self.least,
            "side table": {"rows": self.side_rows, "sha256": self.side_sha256},
            "outlook": self.outlook,
        }


@dataclass(frozen=True, slots=True)
class Privacy:
    """What a differentially private release cost, in exact fractions of epsilon, draw by draw.

    Each line of the ``ledger`` is one draw: what was drawn, of what, by which mechanism, its share and its scale, and
    the result where nothing else in the release tells it.
    ``randomness`` says where the noise came from, and ``public`` what was declared and not read from the table.
    Where rows were drawn (``sampling``), ``delta`` is the one that is reached.
    """

    epsilon: Fraction
    composition: str
    ledger: tuple[Mapping[str, Any], ...]
    spent: Fraction
    unspent: Fraction
    randomness: str
    public: tuple[str, ...]
    delta: Fraction = Fraction(0)
    sampling: Sampling | None = None

    @property
    def is_secret(self) -> bool:
        """Was the noise secret? Whoever can repeat it can take it away."""
        return self.randomness.startswith(FROM_NOBODY)

    @property
    def definition(self) -> str:
        return DEFINITION if self.sampling is None else DEFINITION_WITH_DELTA

    @property
    def promise(self) -> str:
        """The numbers of the promise, for people."""
        delta = "" if self.sampling is None else f", delta {float(self.delta):.6g}"
        return f"epsilon {self.epsilon}{delta}, {NEIGHBOURS}"

    def as_dict(self) -> dict[str, Any]:
        return {
            "definition": self.definition,
            "neighbours": NEIGHBOURS,
            "epsilon": str(self.epsilon),
            **({"delta": str(self.delta), "sampling": self.sampling.as_dict()} if self.sampling else {}),
            "composition": self.composition,
            "ledger": [dict(draw) for draw in self.ledger],
            "spent": str(self.spent),
            "unspent": str(self.unspent),
            "randomness": self.randomness,
            "public": list(self.public),
        }


def this_version() -> str:
    """The version of sfumato that runs."""
    try:
        return metadata.version("sfumato")
    except metadata.PackageNotFoundError:  # run from a checkout that is not installed
        return "0+unknown"


@dataclass(frozen=True, slots=True, repr=False)
class Certificate:
    """What a release says about itself, for machines.

    ``claims`` can be recomputed from the folder; ``figures`` are statements of the run that cannot, and so is the day
    on which it was ``made``. A differentially private release tells none.

    >>> policy = Policy.parse("{attributes: {age: {role: quasi-identifier}}, require: []}")
    >>> certificate = Certificate.of(policy, Claims(rows=10, groups=2))
    >>> certificate.promises_nothing, Certificate.from_json(certificate.to_json()) == certificate
    (True, True)
    """

    policy: Mapping[str, Any]
    method: Mapping[str, Any]
    claims: Claims
    figures: Mapping[str, Any] = field(default_factory=dict)
    missing: str = MISSING
    version: str = field(default_factory=this_version)
    privacy: Privacy | None = None
    made: date | None = None

    @classmethod
    def of(
        cls,
        policy: Policy,
        claims: Claims,
        *,
        figures: Mapping[str, Any] | None = None,
        privacy: Privacy | None = None,
        made: date | None = None,
    ) -> Certificate:
        return cls(
            policy.as_dict(),
            policy.method.as_policy(),
            claims,
            dict(figures or {}),
            missing_rule(policy),
            privacy=privacy,
            made=made,
        )

    def __repr__(self) -> str:
        return f"<Certificate of {self.counts}: {self.promise}>"

    def _repr_html_(self) -> str:
        return self.card("A certificate", notebook.paragraphs(self.left))

    def card(self, heading: str, *parts: str) -> str:
        """The promise and the counts as HTML for a notebook, with further parts below."""
        claims = self.claims
        words = ("draws" if self.privacy else "rows", "cells" if claims.counted is not None else "groups")
        figures = [(words[0] if claims.counted is None else "rows of counts", f"{claims.rows:,}")]
        figures.append((words[1], f"{claims.groups:,}"))
        figures += [("rows suppressed", f"{claims.suppressed:,}")] if claims.suppressed else []
        figures += [("is the sum of the counts", f"{claims.counted:,}")] if claims.counted is not None else []
        achieved = [
            (notebook.worded(claim.requirement), claim.figure, f"{claim.achieved:,.6g}")
            for claim in claims.requirements
        ]
        return notebook.card(
            heading,
            "Nothing is promised." if self.promises_nothing else f"Promised: {self.promise}.",
            figures,
            notebook.table(("Required", "Worst group", "Achieved"), achieved) if achieved else "",
            *parts,
        )

    @property
    def left(self) -> tuple[str, ...]:
        """How much the cells still tell, in a sentence, if it is claimed."""
        return (f"Cells of the quasi-identifiers: {self.claims.cells}.",) if self.claims.cells else ()

    @property
    def counts(self) -> str:
        """What was published, in a few words."""
        claims = self.claims
        if claims.counted is not None:
            return f"counts in {number_of(claims.groups, 'cell')}"
        if self.privacy is not None:
            return f"{number_of(claims.rows, 'drawn row')} in {number_of(claims.groups, 'box', 'boxes')}"
        return f"{number_of(claims.rows, 'row')} in {number_of(claims.groups, 'group')}"

    @property
    def promise(self) -> str:
        """What is promised, in a few words."""
        if self.promises_nothing:
            return NO_PROMISE
        if self.privacy is not None:
            return self.privacy.promise
        if self.claims.utility is not None:
            at_least = self.claims.utility.at_least
            of_whom = "" if isinstance(at_least, Absolute) else " of each row's"
            return f"utility at least {at_least}{of_whom}"
        return ", ".join(notebook.worded(claim.requirement) for claim in self.claims.requirements)

    @property
    def promises_nothing(self) -> bool:
        if self.privacy is not None:
            return not self.privacy.is_secret
        if self.claims.utility is not None:
            return self.claims.utility.at_least is None
        return not self.claims.requirements

    def to_json(self) -> str:
        """The same text for the same certificate, to the last byte."""
        document = {
            "sfumato": self.version,
            "format": FORMAT,
            **({"made": self.made.isoformat()} if self.made else {}),
            **({"promise": NO_PROMISE} if self.promises_nothing else {}),
            "method": self.method,
            "policy": self.policy,
            "missing": self.missing,
            **({"privacy": self.privacy.as_dict()} if self.privacy else {}),
            "claims": self.claims.as_dict(),
            "figures": self.figures,
        }
        try:
            return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        except (TypeError, ValueError):
            raise InternalError("A figure of the certificate is not plain JSON.") from None

    @classmethod
    def from_json(cls, text: str | bytes) -> Certificate:
        """The certificate in a JSON text. An InputError says what is wrong with one that is none."""
        data = _fields(_parsed(text), "it", _CERTIFICATE, optional=("made", "promise", "privacy"))
        if data["format"] != FORMAT:
            raise _rubbish(f"format is {data['format']}, and this version reads {FORMAT} only")
        privacy = _privacy(data["privacy"]) if "privacy" in data else None
        found = cls(
            data["policy"],
            data["method"],
            _claims_by_method(data["claims"], data["method"], is_private=privacy is not None),
            data["figures"],
            data["missing"],
            data["sfumato"],
            privacy,
            _made(data, is_private=privacy is not None),
        )
        if data.get("promise") != (NO_PROMISE if found.promises_nothing else None):
            why = "where nothing is required" if privacy is None else "where the randomness is not secret"
            raise _rubbish(f"promise must be {NO_PROMISE!r} {why}, and absent otherwise")
        return found


def public_of(policy: Policy) -> tuple[str, ...]:
    """What a differentially private release takes from the policy and not from the table, a sentence each."""
    sentences = [f"{attribute.name}: {_declared(attribute)}" for attribute in policy.schema.published]
    if isinstance(policy.method, RiskUtilityOptions):
        return (*sentences, "the side table: all of it", "the options of the method: all of them")
    options = policy.method.as_policy()[policy.method.name]
    if "cuts" in options:
        sentences.append("the cuts: all of them")
    return (*sentences, f"the cells of the grid: at most {options['max-cells']:,}")


def _declared(attribute: Attribute) -> str:
    if attribute.is_ordered and attribute.bounds is not None:
        low, high = attribute.bounds
        if attribute.kind is Kind.DATE:
            first, last = (_EPOCH + timedelta(days=int(day)) for day in (low, high))
            return f"days from {first} to {last} in steps of {attribute.step or 1:g}"
        return f"numbers from {low:.15g} to {high:.15g} in steps of {attribute.step:.15g}"
    if attribute.hierarchy is None or attribute.hierarchy == "flat":
        return f"{len(attribute.values or ()):,} values"
    is_given = isinstance(attribute.hierarchy, Hierarchy)
    return f"a hierarchy of {attribute.hierarchy.n_leaves:,} values" if is_given else "a hierarchy by a rule"


def missing_rule(policy: Policy) -> str:
    """How missing values are matched, in words."""
    if not policy.is_private:
        return MISSING
    has_boxes = isinstance(policy.method, RiskUtilityOptions)
    return MISSING_OR_UNDECLARED_BOXES if has_boxes else MISSING_OR_UNDECLARED


_CERTIFICATE: dict[str, tuple[type, ...]] = {
    "sfumato": (str,),
    "format": (int,),
    "made": (str,),
    "promise": (str,),
    "method": (dict,),
    "policy": (dict,),
    "missing": (str,),
    "privacy": (dict,),
    "claims": (dict,),
    "figures": (dict,),
}
_CLAIMS: dict[str, tuple[type, ...]] = {
    "rows": (int,),
    "suppressed": (int,),
    "groups": (int,),
    "cells": (dict,),
    "one-value": (dict,),
    "requirements": (list,),
    "sha256": (dict,),
}
_CLAIMS_OF_CELLS: dict[str, tuple[type, ...]] = {
    "rows": (int,),
    "cells": (int,),
    "counted": (int,),
    "sha256": (dict,),
}
_CLAIMS_OF_BOXES: dict[str, tuple[type, ...]] = {
    "rows": (int,),
    "suppressed": (int,),
    "groups": (int,),
    "cells": (dict,),
    "utility": (dict,),
    "missing": (list,),
    "sha256": (dict,),
}
_OPTIONAL_CLAIMS = ("cells", "one-value")
_CELLS: dict[str, tuple[type, ...]] = {"exact": (int,), "narrowed": (int,), "all": (int,)}
_UTILITY: dict[str, tuple[type, ...]] = {
    "measure": (str,),
    "at-least": (str, dict, type(None)),
    "mean": (int, float, type(None)),
    "least": (int, float, type(None)),
}
_PRIVACY: dict[str, tuple[type, ...]] = {
    "definition": (str,),
    "neighbours": (str,),
    "epsilon": (str,),
    "delta": (str,),
    "sampling": (dict,),
    "composition": (str,),
    "ledger": (list,),
    "spent": (str,),
    "unspent": (str,),
    "randomness": (str,),
    "public": (list,),
}
_SAMPLING: dict[str, tuple[type, ...]] = {
    "chance": (str,),
    "least": (int,),
    "side table": (dict,),
    "outlook": (int, float, type(None)),
}
_SIDE_TABLE: dict[str, tuple[type, ...]] = {"rows": (int,), "sha256": (str, type(None))}
_DRAW: dict[str, tuple[type, ...]] = {
    "draw": (str,),
    "of": (str,),
    "mechanism": (str,),
    "share": (str,),
    "scale": (str,),
    "result": (int,),
}
_CLAIM: dict[str, tuple[type, ...]] = {
    "requirement": (dict,),
    "figure": (str,),
    "achieved": (int, float, type(None)),
}
_KINDS = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    dict: "a mapping",
    list: "a list",
    type(None): "null",
}


def _rubbish(what: str) -> InputError:
    return InputError(f"{CERTIFICATE} is no certificate of a release: {what}.")


def _parsed(text: str | bytes) -> Any:
    try:
        return json.loads(
            text.decode("utf-8") if isinstance(text, bytes) else text,
            object_pairs_hook=_without_repeats,
            parse_constant=_refuse_constant,
            parse_float=_finite,
        )
    except UnicodeDecodeError:
        raise _rubbish("it is not UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise _rubbish(f"its JSON is cut off or wrong in line {error.lineno}") from None
    except (ValueError, RecursionError):  # a number of thousands of digits; brackets without end
        raise _rubbish("its JSON cannot be read") from None


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A key that stands twice means one thing to one reader and another to the next."""
    if len(dict(pairs)) < len(pairs):
        raise _rubbish("a key stands twice in one mapping")
    return dict(pairs)


def _refuse_constant(word: str) -> float:
    raise _rubbish(f"it holds {word}, which is no number")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _rubbish("it holds a number that is too large")
    return number


def _fields(
    value: Any, place: str, kinds: Mapping[str, tuple[type, ...]], *, optional: tuple[str, ...] = ()
) -> dict[str, Any]:
    """``value`` itself, if it is a mapping of exactly these keys and kinds. (True is no whole number.)"""
    if type(value) is not dict:
        raise _rubbish(f"{place} must be a mapping")
    for name, allowed in kinds.items():
        if name not in value and name not in optional:
            raise _rubbish(f"{place} lacks {name!r}")
        if name in value and type(value[name]) not in allowed:
            raise _rubbish(f"{name!r} must be {' or '.join(_KINDS[kind] for kind in allowed)}")
    if n_unknown := len(value.keys() - kinds.keys()):
        raise _rubbish(f"{place} has {number_of(n_unknown, 'key')} too many")
    return value


def _made(data: Mapping[str, Any], *, is_private: bool) -> date | None:
    if "made" not in data:
        return None
    if is_private:
        raise _rubbish("'made' is told of a differentially private release")
    try:
        found = date.fromisoformat(data["made"])
    except ValueError:
        found = None
    if found is None or found.isoformat() != data["made"]:
        raise _rubbish("'made' must be a day such as 2024-03-05")
    return found


def _claims_by_method(value: Any, method: Mapping[str, Any], *, is_private: bool) -> Claims:
    if RiskUtilityOptions.name in method:
        if is_private and "cells" in value:
            raise _rubbish("'cells' is claimed of a differentially private release")
        return _claims_of_boxes(value)
    return _claims_of_cells(value) if is_private else _claims(value)


def _claims(value: Any) -> Claims:
    data = _counted(value, _CLAIMS)
    return Claims(
        rows=data["rows"],
        groups=data["groups"],
        requirements=tuple(_claim(item) for item in data["requirements"]),
        suppressed=data["suppressed"],
        sha256=data["sha256"],
        cells=_cells_claim(data),
        one_value=data.get("one-value", {}),
    )


def _cells_claim(data: Mapping[str, Any]) -> CellsClaim | None:
    return CellsClaim(**_fields(data["cells"], "'cells'", _CELLS)) if "cells" in data else None


def _claims_of_cells(value: Any) -> Claims:
    data = _counted(value, _CLAIMS_OF_CELLS)
    return Claims(data["rows"], data["cells"], sha256=data["sha256"], counted=data["counted"])


def _claims_of_boxes(value: Any) -> Claims:
    data = _counted(value, _CLAIMS_OF_BOXES)
    utility = _fields(data["utility"], "'utility'", _UTILITY)
    if not all(isinstance(name, str) for name in data["missing"]):
        raise _rubbish("'missing' must be a list of columns")
    try:
        mean, least = (None if utility[key] is None else float(utility[key]) for key in ("mean", "least"))
    except OverflowError:
        raise _rubbish("a utility is too large") from None
    at_least = _at_least(utility)
    claimed = UtilityClaim(utility["measure"], at_least, mean, least, tuple(data["missing"]))
    return Claims(
        data["rows"],
        data["groups"],
        suppressed=data["suppressed"],
        sha256=data["sha256"],
        utility=claimed,
        cells=_cells_claim(data),
    )


def _at_least(utility: Mapping[str, Any]) -> AtLeast | None:
    given = utility["at-least"]
    if given is None:
        return None
    if isinstance(given, dict):
        return Absolute(_fraction(_fields(given, "'at-least'", {"value": (str,)}), "value"))
    return _fraction(utility, "at-least")


def _counted(value: Any, kinds: Mapping[str, tuple[type, ...]]) -> dict[str, Any]:
    """``claims`` whose numbers are none below 0, and whose hashes are hashes."""
    data = _fields(value, "'claims'", kinds, optional=_OPTIONAL_CLAIMS if "groups" in kinds else ())
    for name, allowed in kinds.items():
        if allowed == (int,) and data[name] < 0:
            raise _rubbish(f"{name!r} is below 0")
    for name in _OPTIONAL_CLAIMS:
        numbers = data[name].values() if "groups" in kinds and name in data else ()
        if any(type(n) is not int or n < 0 for n in numbers):
            raise _rubbish(f"{name!r} must hold whole numbers of 0 or more")
    for name, digest in data["sha256"].items():
        if name not in CERTIFIED or not isinstance(digest, str) or not _SHA256.fullmatch(digest):
            raise _rubbish("'sha256' must give 64 hexadecimal digits for files of a release")
    return data


def _privacy(value: Any) -> Privacy:
    data = _fields(value, "'privacy'", _PRIVACY, optional=("delta", "sampling"))
    if ("delta" in data) != ("sampling" in data):
        raise _rubbish("'privacy' must have both 'delta' and 'sampling', or neither")
    definition = DEFINITION_WITH_DELTA if "sampling" in data else DEFINITION
    for name, said in (("definition", definition), ("neighbours", NEIGHBOURS)):
        if data[name] != said:
            raise _rubbish(f"{name!r} must be {said!r}")
    if not all(isinstance(sentence, str) for sentence in data["public"]):
        raise _rubbish("'public' must be a list of texts")
    ledger = [
        _fields(draw, "an item of 'ledger'", _DRAW, optional=("of", "result")) for draw in data["ledger"]
    ]
    for draw in ledger:
        for name in ("share", "scale"):
            _fraction(draw, name)
    return Privacy(
        _fraction(data, "epsilon"),
        data["composition"],
        tuple(ledger),
        _fraction(data, "spent"),
        _fraction(data, "unspent"),
        data["randomness"],
        tuple(data["public"]),
        _fraction(data, "delta") if "delta" in data else Fraction(0),
        _sampling(data["sampling"]) if "sampling" in data else None,
    )


def _sampling(value: Any) -> Sampling:
    data = _fields(value, "'sampling'", _SAMPLING)
    side = _fields(data["side table"], "'side table'", _SIDE_TABLE)
    if side["sha256"] is not None and not _SHA256.fullmatch(side["sha256"]):
        raise _rubbish("the side table's 'sha256' must be 64 hexadecimal digits")
    if min(data["least"], side["rows"]) < 0 or not 0 <= (data["outlook"] or 0) <= 1:
        raise _rubbish("a number of 'sampling' is none that it can be")
    return Sampling(_fraction(data, "chance"), data["least"], side["rows"], side["sha256"], data["outlook"])


def _fraction(data: Mapping[str, str], name: str) -> Fraction:
    """An exact fraction in the one way in which it is written."""
    found = _FRACTION.fullmatch(data[name])
    number = Fraction(int(found[1]), int(found[2] or 1)) if found else None
    if number is None or str(number) != data[name]:
        raise _rubbish(f"{name!r} must be a fraction in lowest terms, such as 1/52")
    return number


def _claim(value: Any) -> Claim:
    data = _fields(value, "an item of 'requirements'", _CLAIM)
    achieved = data["achieved"]
    try:
        return Claim(data["requirement"], data["figure"], math.inf if achieved is None else float(achieved))
    except OverflowError:
        raise _rubbish("'achieved' is too large") from None


# ---- hashes ----------------------------------------------------------------------------------------


def sha256_of(path: Path) -> str:
    """SHA-256 of a file in hexadecimal digits; of a folder of parts, over lines of name and hash as sha256sum has them.

    >>> import tempfile
    >>> empty = Path(tempfile.mkdtemp(), "empty")
    >>> empty.touch()
    >>> sha256_of(empty)[:16], sha256_of(empty.parent)[:16]
    ('e3b0c44298fc1c14', 'a9e456cbcd4f490b')
    """
    if path.is_dir():
        lines = [f"{digest}  {name}\n" for name, digest in _hashes_of_parts(path)]
        return hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def older_sha256_of(path: Path) -> str:
    """What the first versions took for a folder of parts: the hash over the sorted hashes, whatever their names."""
    hashes = sorted(digest for _, digest in _hashes_of_parts(path))
    return hashlib.sha256("".join(hashes).encode("ascii")).hexdigest()


def _hashes_of_parts(folder: Path) -> list[tuple[str, str]]:
    parts = sorted(part for part in folder.rglob("*") if part.is_file())
    return [(part.relative_to(folder).as_posix(), sha256_of(part)) for part in parts]


def hashes_of(folder: Path, known: Mapping[str, str] | None = None) -> dict[str, str]:
    """SHA-256 of each file of a release that a certificate names, as they stand in the folder.

    Those that are ``known`` are taken as they are.
    """
    there = [name for name in CERTIFIED if (folder / name).exists()]
    return {name: (known or {}).get(name) or sha256_of(folder / name) for name in there}


# ---- the release -----------------------------------------------------------------------------------


def _with_numbers(rows: pa.Table, schema: Schema) -> pa.Table:
    """The rows with numbers where a column of numbers is published as it is, and all of its texts are such."""
    for attribute in schema:
        name = attribute.name
        if (
            attribute.kind is not Kind.NUMBER
            or attribute.role is Role.QUASI_IDENTIFIER
            or name not in rows.column_names
        ):
            continue
        if is_text(rows.schema.field(name).type):
            with suppress(TableError):  # a text that was never read as a number stays one
                found = numbers(rows.column(name), attribute)
                rows = rows.set_column(rows.column_names.index(name), name, found)
    return rows


@dataclass(frozen=True, slots=True, repr=False)
class Release:
    """What is published.

    ``rows`` is as it will be on disk (a table, or rows in a file if they are too many), ``table`` the same in
    the kind of frame that came in. ``format`` (csv or parquet) is that of the file, ``report`` is HTML, and
    ``check`` judges every folder before it appears. ``remarks`` say how much is left, from published rows;
    ``notices`` are for the owner alone. Neither is written.
    """

    rows: pa.Table | FiledRows
    certificate: Certificate
    policy: Policy
    recoding: WritableRecoding | None = None
    format: str = "parquet"
    kind: str = "pyarrow"
    report: str | None = None
    check: Callable[[Path], None] | None = field(default=None, compare=False)
    remarks: tuple[str, ...] = field(default=(), compare=False)
    notices: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        if self.format not in RELEASES:
            raise InputError("The rows of a release are written as csv or parquet.")
        if isinstance(self.rows, FiledRows) and self.rows.format != self.format:
            raise InputError(f"The rows of the release are in a file already, as {self.rows.format}.")

    def __repr__(self) -> str:
        certificate = self.certificate
        requirements = ", ".join(map(str, self.policy.requirements))
        is_required = requirements and certificate.privacy is None and certificate.claims.utility is None
        return f"<Release of {certificate.counts}: {requirements if is_required else certificate.promise}>"

    def _repr_html_(self) -> str:
        """The promise, the counts and the picture of the report, for a notebook."""
        return self.certificate.card(
            "A release",
            notebook.paragraphs(self.remarks or self.certificate.left),
            _picture_in(self.report) if self.report else "",
        )

    @property
    def table(self) -> Any:
        """The rows as the kind of frame that was published (pandas, Polars, ...); all of them in memory."""
        return self._handed_back(self.rows.load() if isinstance(self.rows, FiledRows) else self.rows)

    def select(self, where: str) -> Any:
        """Every row whose box overlaps the predicate, as the kind of frame that ``table`` is."""
        return self._handed_back(answers.select(self, where))

    def _handed_back(self, rows: pa.Table) -> Any:
        """The rows, of which there may be none, as the kind of frame that came in.

        Cells of a file of text are text in a release, too; here those of number columns are numbers.
        """
        if self.kind in TEXT_KINDS:
            rows = _with_numbers(rows, self.policy.schema)
        nobody = Source(tuple(rows.column_names), UNKNOWN, self.kind, "the release", rows.column)
        return hand_back(rows, nobody)

    def query(self, question: str, where: str | None = None) -> Answer:
        """COUNT(*), or SUM, AVG, MIN or MAX of a column, over the rows that ``where`` selects."""
        return answers.query(self, question, where)

    def with_report(self, report: str) -> Release:
        return replace(self, report=report)

    def write(
        self,
        folder: str | os.PathLike[str],
        *,
        overwrite: bool = False,
        check: Callable[[Path], None] | None = None,
        within: Path | None = None,
    ) -> Certificate:
        """Write the release folder, whole or not at all, and return the certificate as it stands there.

        ``check`` (else the release's own) is called with the complete folder while it still has its
        temporary name; if it raises, nothing is published. ``overwrite`` replaces an earlier release and
        nothing else. ``within`` is the folder of a :class:`~sfumato.table.spill.Spill` beside the target, where the
        release is put together; rows in a file that lies there are not copied, and from then on lie in the
        release.
        """
        check = check or self.check
        with _put_in_place(folder, overwrite=overwrite, within=within) as temporary:
            certificate = self._write_into(temporary, within)
            if check is not None:
                check(temporary)
        if isinstance(self.rows, FiledRows) and within is not None and within in self.rows.path.parents:
            self.rows.path = Path(folder).resolve() / RELEASES[self.format]
        return certificate

    def _write_into(self, folder: Path, within: Path | None) -> Certificate:
        known = {}
        if isinstance(self.rows, FiledRows):
            known[RELEASES[self.format]] = self.rows.sha256
            _bring(self.rows.path, folder / RELEASES[self.format], within)
        else:
            rows = formulas.escape(self.rows) if self.policy.escapes_formulas else self.rows
            write_table(rows, folder / RELEASES[self.format])
        _write_text(folder / POLICY, self.policy.to_yaml())
        if self.recoding is not None:
            self.recoding.write(folder)
        if self.report is not None:
            _write_text(folder / REPORT, self.report)
        if {path.name for path in folder.iterdir()} - {*CERTIFIED}:
            raise InternalError("A recoding wrote a file that does not belong into a release.")
        claims = replace(self.certificate.claims, sha256=hashes_of(folder, known))
        certificate = replace(self.certificate, claims=claims)
        _write_text(folder / CERTIFICATE, certificate.to_json())
        return certificate

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> Release:
        """The release in a folder, taken at its word: ``verify`` is what checks it.

        Empty cells of a CSV file are missing. Rows that would fill the memory stay in their file.
        """
        path = Path(folder)
        certificate = Certificate.from_json(read_piece(path, CERTIFICATE))
        format_ = next((word for word, name in RELEASES.items() if (path / name).exists()), None)
        if format_ is None:
            raise InputError(f"{path} holds no rows: neither {' nor '.join(RELEASES.values())} is there.")
        policy = Policy.of_release(path / POLICY)
        has_recoding = (path / RECODINGS[0]).exists()
        rows = FiledRows(path / RELEASES[format_], format_, is_escaped=policy.escapes_formulas)
        return cls(
            rows=rows if _is_large(rows.path) else rows.load(),
            certificate=certificate,
            policy=policy,
            recoding=recodings.read(path, policy.schema) if has_recoding else None,
            format=format_,
            report=read_piece(path, REPORT).decode("utf-8", "replace") if (path / REPORT).exists() else None,
        )


def _picture_in(report: str) -> str:
    """The picture that a report begins with, as an image with the report's own style; nothing where there is none.

    Its colours are those of the light page, whatever the notebook's are.
    """
    style = report.partition("<style>")[2].partition("</style>")[0]
    light = style[: style.find("}") + 1]
    for name in PICTURES:
        section = report.partition(f'<section id="{name}"')[2].partition("</section>")[0]
        _, start, rest = section.partition("<svg")
        if start:
            return notebook.picture(f"{start}{rest.partition('</svg>')[0]}</svg>", style + light)
    return ""


def read_piece(folder: Path, name: str) -> bytes:
    """The bytes of one file of a release folder."""
    try:
        return (folder / name).read_bytes()
    except FileNotFoundError:
        where = f"{folder} has no {name}" if folder.is_dir() else f"There is no folder {folder}"
        raise InputError(f"{where}; is it a release folder?") from None
    except OSError as error:
        raise InputError(f"{folder / name} cannot be read: {_reason(error)}.") from None


def _is_large(path: Path) -> bool:
    """Whether rows should stay in their file, or folder of parts."""
    parts = path.rglob("*") if path.is_dir() else [path]
    return IN_MEMORY * sum(part.stat().st_size for part in parts if part.is_file()) > free_memory()


def _bring(path: Path, target: Path, within: Path | None) -> None:
    """The file under another name: without a copy if it is one of our own, with one if it is somebody's."""
    if within is not None and within in path.parents:
        with suppress(OSError):  # a file system without links
            os.link(path, target)
            return
    if path.is_dir():
        shutil.copytree(path, target)
    else:
        shutil.copyfile(path, target)


def _write_text(path: Path, text: str) -> None:
    path.write_bytes(text.encode("utf-8"))  # no line ends of the platform: same release, same bytes


# ---- a folder that appears whole or not at all -----------------------------------------------------


def check_target(folder: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Raise unless a release may be written to ``folder``. Ask before the work, not after it."""
    try:
        _check_target(Path(folder), overwrite=overwrite)
    except OSError as error:
        raise InputError(f"{folder} cannot be written: {_reason(error)}.") from None


def _check_target(folder: Path, *, overwrite: bool) -> None:
    target = folder.resolve()
    check_outside(target.parent)
    if not target.exists():
        if not target.parent.is_dir():
            raise InputError(
                f"{folder} cannot be written: there is no folder {target.parent}; make it first."
            )
        return
    if not target.is_dir():
        raise InputError(f"{folder} cannot be written: it is a file; name a folder.")
    if not overwrite:
        raise InputError(
            f"The folder {folder} already exists; name another one, or allow it to be replaced (--overwrite)."
        )
    _check_replaceable(target, folder)


def _check_replaceable(found: Path, folder: Path) -> None:
    """Raise unless the folder ``found``, called ``folder``, is empty or a release and nothing else."""
    names = {path.name for path in found.iterdir()}
    if names and CERTIFICATE not in names:
        raise InputError(f"The folder {folder} is no release, so it is not overwritten; name another one.")
    foreign = names - {*CERTIFIED, CERTIFICATE, *LITTER}
    if foreign:
        files = number_of(len(foreign), "other file")
        raise InputError(
            f"The folder {folder} holds more than a release ({files}), "
            "so it is not overwritten; move them away, or name another folder."
        )


def check_outside(folder: Path) -> None:
    """Raise if ``folder`` is a release or lies in one: nothing but what its certificate names belongs there."""
    for each in (folder, *folder.resolve().parents):
        if (each / CERTIFICATE).exists() and (each / POLICY).exists():
            raise InputError(f"{each} is a release, and nothing else belongs there; give another --out.")


@contextmanager
def _put_in_place(
    folder: str | os.PathLike[str], *, overwrite: bool, within: Path | None = None
) -> Iterator[Path]:
    """Yield a new folder; it takes its place on success, and is removed on any failure.

    It lies in a folder of temporary files beside ``folder``, so that the next run removes what a killed one left.
    """
    check_target(folder, overwrite=overwrite)
    target = Path(folder).resolve()  # a link stays a link
    with ExitStack() as stack:
        try:
            if within is None:
                _check_writable(target.parent)
                within = stack.enter_context(Spill(target)).folder
            temporary = within / f"release-{uuid.uuid4().hex[:12]}"
            stack.callback(_remove, temporary)
            temporary.mkdir()
            yield temporary
            _sync(temporary)
            _move(temporary, target, Path(folder), overwrite=overwrite)
            _sync_folder(target.parent)
        except TableError as error:
            raise TableError(str(error).replace(str(temporary), str(folder))) from None
        except OSError as error:
            raise InputError(f"{folder} cannot be written: {_reason(error)}.") from None


def _check_writable(folder: Path) -> None:
    if not os.access(folder, os.W_OK):
        raise PermissionError(errno.EACCES, "")


def _move(temporary: Path, target: Path, folder: Path, *, overwrite: bool) -> None:
    """Rename into place. What stood there before has the temporary name afterwards, and is removed with it.

    A folder that appeared since the work began is not replaced, and with ``overwrite`` only if it is a release. Folders
    are exchanged in one step where the system can, so that even a crash leaves the old release or the new one.
    Elsewhere there is a moment between two renames when a crash leaves both under other names; any failure short of a
    crash puts the old one back.
    """
    try:
        rename_new(temporary, target)
    except FileExistsError:
        if not overwrite:
            raise InputError(
                f"The folder {folder} appeared while this run was at work and stays as it is; nothing was written. "
                "Name another one, or allow it to be replaced (--overwrite)."
            ) from None
        _replace(temporary, target, folder)


def _replace(temporary: Path, target: Path, folder: Path) -> None:
    """Put a folder in the place of a release. What was there is looked at once it cannot change its name any more."""
    if not exchange(temporary, target):
        _swap(temporary, target, folder)
        return
    try:
        _check_replaceable(temporary, folder)
    except BaseException:
        exchange(temporary, target)
        raise


def _swap(temporary: Path, target: Path, folder: Path) -> None:
    aside = target.with_name(f".{target.name[:40]}.sfumato-{uuid.uuid4().hex[:12]}-old")
    try:
        target.rename(aside)
        _check_replaceable(aside, folder)
        rename_new(temporary, target)
    except BaseException:
        if aside.exists() and temporary.exists():
            rename_new(aside, target)
        raise
    finally:
        if not temporary.exists():
            _remove(aside)


def _remove(folder: Path) -> None:
    try:
        shutil.rmtree(folder, ignore_errors=True)
    except BaseException:  # Ctrl-C in the middle of it
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _sync(folder: Path) -> None:
    """Everything in the folder is on the disk before its name is."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
        else:
            _sync_folder(path)
    _sync_folder(folder)


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):  # Windows opens no folders
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _reason(error: OSError) -> str:
    return os.strerror(error.errno or errno.EIO)
