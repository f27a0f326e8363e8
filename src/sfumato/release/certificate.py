"""The certificate of a release: what is claimed of its rows, and how that is written and read."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction
from importlib import metadata
from typing import Any

from sfumato import notebook
from sfumato.errors import InputError, InternalError, number_of
from sfumato.policy.days import as_date
from sfumato.policy.document import Policy
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.options.risk_utility import Absolute, AtLeast, RiskUtilityOptions
from sfumato.policy.schema import Attribute, Kind
from sfumato.release.folder import CERTIFICATE, CERTIFIED

FORMAT = 1


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


USEFUL = 0.5
"""A release that can be expected to hold less than this part of the drawn rows is of little use."""


_SHA256 = re.compile(r"[0-9a-f]{64}")
_FRACTION = re.compile(r"(-?\d{1,4000})(?:/([1-9]\d{0,3999}))?", re.ASCII)


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
            first, last = map(as_date, (low, high))
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
