"""``certificate.json``: a model of the document, by which certificates are written, read and refused.

Three kinds of claims are written: of groups of rows, of counts in the cells of a grid (DiffGen), and of boxes that were
chosen row by row (risk-utility). Which one stands in a certificate follows from its method.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import asdict
from datetime import date
from fractions import Fraction
from typing import Annotated, Any, Generic, Self, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    PlainValidator,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from sfumato.policy.options import kinds_in
from sfumato.policy.options.risk_utility import Absolute, AtLeast
from sfumato.release.certificate.claims import (
    RISK_LIMITS,
    AloneClaim,
    CellsClaim,
    Claim,
    Claims,
    RiskClaim,
    UtilityClaim,
)
from sfumato.release.certificate.privacy import (
    DEFINITION,
    DEFINITION_WITH_DELTA,
    Privacy,
    Sampling,
    describe_neighbours,
)
from sfumato.release.folder import CERTIFIED
from sfumato.release.strict_json import (
    ABSENT,
    Count,
    NumberOrNull,
    StrictDocument,
    check,
    dump,
    parse,
    unless_none,
    wrong,
    wrong_as_a_whole,
)

FORMAT = 1

_SHA256 = re.compile(r"[0-9a-f]{64}")
_FRACTION = re.compile(r"(-?\d{1,4000})(?:/([1-9]\d{0,3999}))?", re.ASCII)


# ---- kinds of values ----------------------------------------------------------------------------------


def _read_fraction(text: Any) -> Fraction:
    """An exact fraction in the one way in which it is written."""
    found = _FRACTION.fullmatch(text) if isinstance(text, str) else None
    number = Fraction(int(found[1]), int(found[2] or 1)) if found else None
    if number is None or str(number) != text:
        raise wrong("must be a fraction in lowest terms, such as 1/52")
    return number


def _read_day(text: Any) -> date:
    try:
        found = date.fromisoformat(text)
    except (TypeError, ValueError):
        found = None
    if found is None or found.isoformat() != text:
        raise wrong("must be a day such as 2024-03-05")
    return found


def _read_at_least(given: Any) -> AtLeast | None:
    if isinstance(given, dict) and list(given) == ["value"]:
        return Absolute(_read_fraction(given["value"]))
    return None if given is None else _read_fraction(given)


def _write_at_least(at_least: AtLeast | None) -> Any:
    if at_least is None:
        return None
    return {"value": str(at_least)} if isinstance(at_least, Absolute) else str(at_least)


def _check_hash(digest: Any) -> Any:
    if digest is not None and not (isinstance(digest, str) and _SHA256.fullmatch(digest)):
        raise wrong("must be 64 hexadecimal digits or null")
    return digest


def _check_hashes(hashes: Any) -> Any:
    for name, digest in hashes.items() if isinstance(hashes, dict) else ():
        if name not in CERTIFIED or not isinstance(digest, str) or not _SHA256.fullmatch(digest):
            raise wrong("must give 64 hexadecimal digits for files of a release")
    return hashes


def _check_counts(counts: Any) -> Any:
    for count in counts.values() if isinstance(counts, dict) else ():
        if type(count) is not int or count < 0:
            raise wrong("must hold whole numbers of 0 or more")
    return counts


def _check_share(share: float | None) -> float | None:
    if share is not None and not 0 <= share <= 1:
        raise wrong("must be a number from 0 to 1 or null")
    return share


def _read_chance(share: Any) -> Any:
    if type(share) not in (int, float) or not 0 <= share <= 1:
        raise wrong("must be a number from 0 to 1")
    return float(share)


def _check_limits(above: dict[str, float]) -> dict[str, float]:
    if list(above) != [f"1/{limit}" for limit in RISK_LIMITS]:
        raise wrong(f"must hold shares above {', '.join(f'1/{limit}' for limit in RISK_LIMITS)}")
    return above


_FRACTION_SCHEMA = {"type": "string", "pattern": r"^-?\d+(/[1-9]\d*)?$"}

Exact = Annotated[
    Fraction, PlainValidator(_read_fraction), PlainSerializer(str), WithJsonSchema(_FRACTION_SCHEMA)
]
Day = Annotated[
    date,
    PlainValidator(_read_day),
    PlainSerializer(date.isoformat),
    WithJsonSchema({"type": "string", "format": "date"}),
]
Threshold = Annotated[
    Any,
    PlainValidator(_read_at_least),
    PlainSerializer(_write_at_least),
    WithJsonSchema(
        {
            "anyOf": [
                _FRACTION_SCHEMA,
                {"type": "object", "properties": {"value": _FRACTION_SCHEMA}, "required": ["value"]},
                {"type": "null"},
            ]
        }
    ),
]
HashOrNull = Annotated[str | None, BeforeValidator(_check_hash)]
Hashes = Annotated[dict[str, str], BeforeValidator(_check_hashes)]
Counts = Annotated[dict[str, int], BeforeValidator(_check_counts)]
ShareOrNull = Annotated[NumberOrNull, AfterValidator(_check_share)]
Bound = Annotated[int, Field(ge=1)]
Chance = Annotated[float, BeforeValidator(_read_chance)]
SharesAbove = Annotated[dict[str, Chance], AfterValidator(_check_limits)]
Texts = Annotated[tuple[str, ...], Field(strict=False)]


# ---- claims -------------------------------------------------------------------------------------------


class ClaimDocument(StrictDocument):
    """One requirement and what the worst group reaches; null stands for infinity."""

    requirement: dict[str, Any]
    figure: str
    achieved: NumberOrNull

    @classmethod
    def of(cls, claim: Claim) -> Self:
        achieved = float(claim.achieved) if math.isfinite(claim.achieved) else None
        return cls.model_construct(
            requirement=dict(claim.requirement), figure=claim.figure, achieved=achieved
        )

    def value(self) -> Claim:
        return Claim(self.requirement, self.figure, math.inf if self.achieved is None else self.achieved)


class CellsDocument(StrictDocument):
    """How many cells are exact or narrowed, of all."""

    exact: Count
    narrowed: Count
    all: Count


class RiskDocument(StrictDocument):
    """The risk of the rows in groups, and the share of them above some limits."""

    largest: Chance
    mean: Chance
    above: SharesAbove


class AloneDocument(StrictDocument):
    """How many rows are alone by the columns that are published as they are."""

    columns: Count
    rows: Count


class UtilityDocument(StrictDocument):
    """What the rows of a risk-utility release keep of their utility."""

    measure: str
    at_least: Threshold = Field(alias="at-least")
    risk_at_most: Exact = Field(default=ABSENT, alias="risk-at-most")
    mean: NumberOrNull
    least: NumberOrNull


class GroupClaims(StrictDocument):
    """Claims of groups of rows."""

    rows: Count
    unit: str = ABSENT
    people: Count = ABSENT
    suppressed: Count
    groups: Count
    risk: RiskDocument = ABSENT
    cells: CellsDocument = ABSENT
    one_value: Counts = Field(default=ABSENT, alias="one-value")
    alone_by_passed: AloneDocument = Field(default=ABSENT, alias="alone-by-passed")
    requirements: Annotated[tuple[ClaimDocument, ...], Field(strict=False)]
    sha256: Hashes

    @classmethod
    def of(cls, claims: Claims) -> Self:
        return cls.model_construct(
            rows=claims.rows,
            **unless_none(unit=claims.unit, people=claims.people),
            suppressed=claims.suppressed,
            groups=claims.groups,
            **unless_none(
                risk=claims.risk and RiskDocument.model_construct(**asdict(claims.risk)),
                cells=_cells_document(claims.cells),
                one_value=dict(claims.one_value) or None,
                alone_by_passed=_alone_document(claims.alone_by_passed),
            ),
            requirements=tuple(map(ClaimDocument.of, claims.requirements)),
            sha256=_in_order(claims.sha256),
        )

    def value(self) -> Claims:
        return Claims(
            self.rows,
            self.groups,
            tuple(claim.value() for claim in self.requirements),
            self.suppressed,
            self.sha256,
            cells=_cells_claim(self.cells),
            one_value=self.one_value or {},
            risk=None if self.risk is None else RiskClaim(**dict(self.risk)),
            unit=self.unit,
            people=self.people,
            alone_by_passed=_alone_claim(self.alone_by_passed),
        )

    @model_validator(mode="after")
    def _check_people(self) -> Self:
        if (self.unit is None) != (self.people is None):
            raise wrong_as_a_whole("'claims' must have both 'unit' and 'people', or neither")
        return self


class CountClaims(StrictDocument):
    """Claims of counts in the cells of a grid."""

    rows: Count
    cells: Count
    counted: Count
    sha256: Hashes

    @classmethod
    def of(cls, claims: Claims) -> Self:
        return cls.model_construct(
            rows=claims.rows, cells=claims.groups, counted=claims.counted, sha256=_in_order(claims.sha256)
        )

    def value(self) -> Claims:
        return Claims(self.rows, self.cells, sha256=self.sha256, counted=self.counted)


class BoxClaims(StrictDocument):
    """Claims of boxes that were chosen row by row."""

    rows: Count
    suppressed: Count
    groups: Count
    cells: CellsDocument = ABSENT
    alone_by_passed: AloneDocument = Field(default=ABSENT, alias="alone-by-passed")
    utility: UtilityDocument
    missing: Texts
    sha256: Hashes

    @classmethod
    def of(cls, claims: Claims) -> Self:
        assert claims.utility is not None
        utility = unless_none(risk_at_most=claims.utility.risk_at_most) | {
            name: getattr(claims.utility, name) for name in ("measure", "at_least", "mean", "least")
        }
        return cls.model_construct(
            rows=claims.rows,
            suppressed=claims.suppressed,
            groups=claims.groups,
            **unless_none(
                cells=_cells_document(claims.cells), alone_by_passed=_alone_document(claims.alone_by_passed)
            ),
            utility=UtilityDocument.model_construct(**utility),
            missing=claims.utility.missing,
            sha256=_in_order(claims.sha256),
        )

    def value(self) -> Claims:
        return Claims(
            self.rows,
            self.groups,
            suppressed=self.suppressed,
            sha256=self.sha256,
            utility=UtilityClaim(**dict(self.utility), missing=self.missing),
            cells=_cells_claim(self.cells),
            alone_by_passed=_alone_claim(self.alone_by_passed),
        )


ClaimsDocument = GroupClaims | CountClaims | BoxClaims


def _cells_document(cells: CellsClaim | None) -> CellsDocument | None:
    return None if cells is None else CellsDocument.model_construct(**asdict(cells))


def _cells_claim(cells: CellsDocument | None) -> CellsClaim | None:
    return None if cells is None else CellsClaim(**dict(cells))


def _alone_document(alone: AloneClaim | None) -> AloneDocument | None:
    return None if alone is None else AloneDocument.model_construct(**asdict(alone))


def _alone_claim(alone: AloneDocument | None) -> AloneClaim | None:
    return None if alone is None else AloneClaim(**dict(alone))


def _in_order(hashes: Mapping[str, str]) -> dict[str, str]:
    return {name: hashes[name] for name in CERTIFIED if name in hashes}


def claims_document(claims: Claims) -> ClaimsDocument:
    """Claims as they are written."""
    if claims.counted is not None:
        return CountClaims.of(claims)
    return GroupClaims.of(claims) if claims.utility is None else BoxClaims.of(claims)


def kind_of_claims(method: Any, *, is_private: bool) -> type[ClaimsDocument]:
    """What must be claimed of the releases of a method, whose options stand under its name."""
    if any(options.is_row_by_row for options in kinds_in(method)):
        return BoxClaims
    return CountClaims if is_private else GroupClaims


# ---- privacy ------------------------------------------------------------------------------------------


class DrawDocument(StrictDocument):
    """One draw of the ledger."""

    draw: str
    of: str = ABSENT
    mechanism: str
    share: Exact
    scale: Exact
    result: int = ABSENT


class SideTableDocument(StrictDocument):
    """The public side table."""

    rows: Count
    sha256: HashOrNull


class SamplingDocument(StrictDocument):
    """How rows were drawn."""

    chance: Exact
    least: Count
    side_table: SideTableDocument = Field(alias="side table")
    outlook: ShareOrNull

    @classmethod
    def of(cls, sampling: Sampling) -> Self:
        side = SideTableDocument.model_construct(rows=sampling.side_rows, sha256=sampling.side_sha256)
        return cls.model_construct(
            chance=sampling.chance, least=sampling.least, side_table=side, outlook=sampling.outlook
        )

    def value(self) -> Sampling:
        return Sampling(self.chance, self.least, self.side_table.rows, self.side_table.sha256, self.outlook)


class PrivacyDocument(StrictDocument):
    """What a differentially private release cost. Where rows were drawn, it has a delta."""

    definition: str
    neighbours: str
    rows_at_most: Bound = Field(default=ABSENT, alias="rows-at-most")
    epsilon: Exact
    delta: Exact = ABSENT
    sampling: SamplingDocument = ABSENT
    composition: str
    ledger: Annotated[tuple[DrawDocument, ...], Field(strict=False)]
    spent: Exact
    unspent: Exact
    randomness: str
    public: Texts

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        if (self.delta is None) != (self.sampling is None):
            raise wrong_as_a_whole("'privacy' must have both 'delta' and 'sampling', or neither")
        definition = DEFINITION if self.sampling is None else DEFINITION_WITH_DELTA
        neighbours = describe_neighbours(self.rows_at_most)
        for name, said in (("definition", definition), ("neighbours", neighbours)):
            if getattr(self, name) != said:
                raise wrong_as_a_whole(f"{name!r} must be {said!r}")
        return self

    @classmethod
    def of(cls, privacy: Privacy) -> Self:
        drawn: dict[str, Any] = {}
        if privacy.sampling is not None:
            drawn = {"delta": privacy.delta, "sampling": SamplingDocument.of(privacy.sampling)}
        return cls.model_construct(
            definition=privacy.definition,
            neighbours=privacy.neighbours,
            **unless_none(rows_at_most=privacy.rows_at_most),
            epsilon=privacy.epsilon,
            **drawn,
            composition=privacy.composition,
            ledger=tuple(DrawDocument.model_construct(**draw) for draw in privacy.ledger),
            spent=privacy.spent,
            unspent=privacy.unspent,
            randomness=privacy.randomness,
            public=privacy.public,
        )

    def value(self) -> Privacy:
        return Privacy(
            self.epsilon,
            self.composition,
            tuple(map(dump, self.ledger)),
            self.spent,
            self.unspent,
            self.randomness,
            self.public,
            self.delta or Fraction(0),
            self.sampling.value() if self.sampling else None,
            self.rows_at_most,
        )


# ---- the whole ----------------------------------------------------------------------------------------

C = TypeVar("C", GroupClaims, CountClaims, BoxClaims)


class CertificateDocument(StrictDocument, Generic[C]):
    """A certificate as it is written. ``promise`` is there only to say that nothing is promised."""

    sfumato: str
    format: int
    made: Day = ABSENT
    promise: str = ABSENT
    method: dict[str, Any]
    policy: dict[str, Any]
    missing: str
    privacy: PrivacyDocument = ABSENT
    claims: C
    figures: dict[str, Any]

    @field_validator("format")
    @classmethod
    def _check_format(cls, number: int) -> int:
        if number != FORMAT:
            raise wrong_as_a_whole(f"format is {number}, and this version reads {FORMAT} only")
        return number

    @model_validator(mode="after")
    def _check_private(self) -> Self:
        if self.privacy is not None:
            if self.made is not None:
                raise wrong_as_a_whole("'made' is told of a differentially private release")
            for name in ("cells", "alone_by_passed") if isinstance(self.claims, BoxClaims) else ():
                if getattr(self.claims, name) is not None:
                    key = name.replace("_", "-")
                    raise wrong_as_a_whole(f"{key!r} is claimed of a differentially private release")
        return self


def read(text: str | bytes) -> CertificateDocument[Any]:
    """The document in a JSON text; a DocumentError says what is wrong with one that is none."""
    data = parse(text)
    found = data if isinstance(data, dict) else {}
    claims = kind_of_claims(found.get("method"), is_private="privacy" in found)
    return check(CertificateDocument[claims], data)  # type: ignore[valid-type] # chosen at run time
