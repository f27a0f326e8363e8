"""Facts about the cells of a column: how they can be read, how many values there are, how many rows stand alone.

Everything is measured on the column's distinct texts and the number of rows that hold each, never row by row.
:class:`ColumnFacts` holds counts, lengths and ends. The only cells in it are the two ends of a number, which
:mod:`sfumato.profiling.guess` rounds before they are written anywhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.errors import InputError, TableError
from sfumato.policy.hierarchy.library.proposals import Proposal, proposals
from sfumato.policy.schema import MISSING_TEXTS, Attribute, Kind, Role
from sfumato.table.cells import dates, numbers, texts
from sfumato.table.identifiers import content_identifier
from sfumato.table.source import Source

OFTEN_AN_ANSWER = ("None", "none")
"""Conventional texts for a missing value that are a fair answer too, such as about allergies."""

GLANCE = 200
"""Distinct texts that are looked at first: most columns that hold no numbers show it at once."""

MOST_DIGITS = 3
"""Digits of whole numbers that are padded with zeros; longer ones are codes."""

Codes = NDArray[np.unsignedinteger[Any]]


class Shape(StrEnum):
    """What the texts of a column look like."""

    NESTED = "nested"  # lists, structures, durations: no policy can read a cell
    EMPTY = "empty"
    NUMBER = "number"
    NEARLY_NUMBER = "nearly number"  # numbers, but for a few texts
    DATE = "date"
    ODD_DATE = "odd date"  # a date that is not written as 2024-03-05
    INTERVAL = "interval"  # 20-29, [0-10), >90: somebody has generalized it
    MASKED = "masked"  # 537**
    CODE = "code"  # letters and digits, one word
    PROSE = "prose"
    TEXT = "text"


FEW_CODES, FEWEST_LETTERS = 20, 3
WITH_LIBRARY = (Shape.NUMBER, Shape.NEARLY_NUMBER, Shape.CODE, Shape.TEXT)
"""Shapes of which the library may have a hierarchy."""


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """What is known of one column without reading its name."""

    name: str
    n_rows: int
    shape: Shape
    n_missing: int = 0
    n_distinct: int = 0
    n_alone: int = 0  # rows whose value no other row has
    missing_texts: tuple[str, ...] = ()
    says_none: bool = False
    width: int = 0  # of the longest text
    is_fixed_width: bool = False
    is_digits: bool = False
    has_leading_zeros: bool = False
    has_stars: bool = False
    is_whole: bool = False
    ends: tuple[float, float] = field(default=(0.0, 0.0), repr=False)  # of numbers: cells
    n_at_ends: tuple[int, int] = (0, 0)
    years: tuple[int, int] = (0, 0)  # the first and last of dates
    content: str = ""  # what the values are if they lead straight to a person
    library: str = ""  # the hierarchy of the library that knows all values
    codes: Codes = field(default_factory=lambda: np.empty(0, np.uint8), repr=False, compare=False)

    @property
    def n_present(self) -> int:
        return self.n_rows - self.n_missing

    @property
    def n_years(self) -> int:
        return self.years[1] - self.years[0] + 1

    @property
    def is_unique(self) -> bool:
        """Every cell that is there has a value of its own."""
        return self.n_distinct == self.n_present and self.n_present > 1

    @property
    def share_alone(self) -> float:
        return self.n_alone / self.n_rows

    @property
    def n_codes(self) -> int:
        """Distinct values, and missing as one more."""
        return self.n_distinct + (self.n_missing > 0)

    @property
    def is_exact(self) -> bool:
        """Numbers small enough that neighbours differ: others have no bounds, and are refused as numbers."""
        return max(map(abs, self.ends)) < 2**53

    @property
    def is_padded(self) -> bool:
        """Short whole numbers of one width, filled up with zeros, such as 00 to 99."""
        return (
            self.shape is Shape.CODE
            and self.has_leading_zeros
            and self.is_fixed_width
            and self.width <= MOST_DIGITS
        )

    @property
    def kind(self) -> Kind:
        if self.shape is Shape.NUMBER:
            return Kind.NUMBER
        return Kind.DATE if self.shape is Shape.DATE else Kind.CATEGORY


@dataclass(frozen=True, slots=True)
class _Values:
    """The distinct texts of a column, the rows that hold each, and each row's place among them."""

    texts: pa.Array
    n_rows_with: NDArray[np.int64]
    codes: NDArray[np.int32]  # -1 is missing


def measure(source: Source, name: str) -> ColumnFacts:
    """Look at one column of a table."""
    column = source.column(name)
    attribute = Attribute(name, Role.OTHER)
    try:
        encoded = texts(column, attribute)
    except TableError:
        return ColumnFacts(name, source.n_rows, Shape.NESTED)
    if pa.types.is_duration(column.type):  # it has a text, which looks like a number, and is none
        return ColumnFacts(name, source.n_rows, Shape.NESTED)
    codes = encoded.indices.fill_null(-1).to_numpy()
    counts = np.bincount(codes + 1, minlength=len(encoded.dictionary) + 1)[1:]
    return _measure_values(name, _Values(encoded.dictionary, counts, codes))


def _measure_values(name: str, values: _Values) -> ColumnFacts:
    conventional = _find_usual_missing(values.texts)
    present = _take_as_missing(values, conventional)
    shape, measured = _shape(name, present.texts)
    says_none = False
    if shape not in (Shape.NUMBER, Shape.DATE):
        words = pc.utf8_trim_whitespace(values.texts)
        answers = pc.is_in(words, value_set=pa.array(OFTEN_AN_ANSWER)).to_numpy(zero_copy_only=False)
        says_none = bool((conventional & answers).any())
        conventional &= ~answers
        present = _take_as_missing(values, conventional)
        shape = Shape.TEXT if shape is Shape.EMPTY and len(present.texts) else shape
    lengths = pc.utf8_length(present.texts).to_numpy()
    return ColumnFacts(
        name,
        len(values.codes),
        shape,
        n_missing=int((present.codes < 0).sum()),
        n_distinct=len(present.texts),
        n_alone=int((present.n_rows_with == 1).sum()),
        missing_texts=tuple(sorted(values.texts.filter(pa.array(conventional)).to_pylist())),
        says_none=says_none,
        width=int(lengths.max(initial=0)),
        is_fixed_width=bool(lengths.size and lengths.min() == lengths.max()),
        is_digits=_all(present.texts, r"^\d+$"),
        has_leading_zeros=_any(present.texts, r"^0\d"),
        has_stars=_any(present.texts, r"\*"),
        content=content_identifier(present.texts),
        library=_find_library(name, shape, present.texts),
        codes=_narrow(present.codes, len(present.texts)),
        **_ends(shape, measured, present.n_rows_with),
    )


def _find_usual_missing(words: pa.Array) -> NDArray[np.bool_]:
    """Which texts usually stand for a missing value; spaces around them do not matter."""
    known = pa.array(["", *MISSING_TEXTS])
    found = pc.is_in(pc.utf8_trim_whitespace(words), value_set=known)
    return np.array(found.to_numpy(zero_copy_only=False), dtype=np.bool_)


def _take_as_missing(values: _Values, missing: NDArray[np.bool_]) -> _Values:
    """The same column with some of its texts read as missing."""
    if not missing.any():
        return values
    new = np.where(missing, -1, np.cumsum(~missing) - 1).astype(np.int32)
    codes = np.append(new, np.int32(-1))[values.codes]
    return _Values(values.texts.filter(pa.array(~missing)), values.n_rows_with[~missing], codes)


def _find_library(name: str, shape: Shape, words: pa.Array) -> str:
    """The hierarchy of the library that fits the name and has a place for every value; "" if none has.

    Codes fit many a hierarchy by chance, so their column must be named like one, or they must vary as diagnoses do.
    """
    if shape not in WITH_LIBRARY or not proposals(name, words[:GLANCE].to_pylist()):
        return ""
    values = words.to_pylist()
    is_telling = shape is Shape.TEXT or _vary_as_diagnoses(values)
    fitting = (found for found in proposals(name, values) if found.is_named or is_telling)
    return next((found.name for found in fitting if _has_place_for(found, values)), "")


def _vary_as_diagnoses(values: list[str]) -> bool:
    """Many codes of several letters, with dots or of several lengths. Numbers of people have one form."""
    has_form = any("." in value for value in values) or len({len(value) for value in values}) > 1
    return has_form and len(values) > FEW_CODES and len({value[0] for value in values}) >= FEWEST_LETTERS


def _has_place_for(found: Proposal, values: list[str]) -> bool:
    try:
        attribute = Attribute("", Role.QUASI_IDENTIFIER, hierarchy=found.as_policy)
        return bool((attribute.locate(attribute.build_hierarchy(values), values) >= 0).all())
    except InputError:
        return False


def _narrow(codes: NDArray[np.int32], n_distinct: int) -> Codes:
    """Codes in as few bytes as they need; missing is the last one."""
    return np.where(codes < 0, n_distinct, codes).astype(np.min_scalar_type(n_distinct))


def _ends(shape: Shape, measured: Any, n_rows_with: NDArray[np.int64]) -> dict[str, Any]:
    """The ends of numbers and how many rows stand at them; the years that dates span."""
    if shape is Shape.DATE:
        days = pc.min_max(measured).as_py()
        return {"years": (days["min"].year, days["max"].year)}
    if measured is None:
        return {}
    found = measured.to_numpy()
    low, high = found.min(), found.max()
    return {
        "is_whole": pa.types.is_integer(measured.type),
        "ends": (float(low), float(high)),
        "n_at_ends": (int(n_rows_with[found == low].sum()), int(n_rows_with[found == high].sum())),
    }


def _shape(name: str, words: pa.Array) -> tuple[Shape, Any]:
    """What distinct texts look like, and their numbers or dates where they are such."""
    if not len(words):
        return Shape.EMPTY, None
    if _all(words, r"^\d+$") and _any(words, r"^0\d"):  # 02139 is no number, but 07 may be one
        is_short = pc.max(pc.utf8_length(words)).as_py() <= MOST_DIGITS
        return Shape.CODE, numbers(words, Attribute(name, Role.OTHER)) if is_short else None
    for shape, read in ((Shape.NUMBER, numbers), (Shape.DATE, dates)):
        try:
            read(words[:GLANCE], Attribute(name, Role.OTHER))
            return shape, read(words, Attribute(name, Role.OTHER))
        except TableError:
            continue
    return _text_shape(words), None


_NUMBER = r"[-+]?\d+([.,]\d+)?"
_INTERVAL = re.compile(rf"[\[(\]]?\s*({_NUMBER})\s*(?:-|–|,|;|:|to|\.\.)\s*({_NUMBER})\s*[\])\[]?")
_OPEN_END = re.compile(
    r"(?:[<>≤≥]=?|under|over|below|above|up to)\s*[\d.,]+\s*\w?|[\d.,]+\s*\w?\s*\+", re.IGNORECASE
)
_DAY_FIRST = r"\d{1,2}[./-]\d{1,2}[./-](\d{4}|\d{2})"
_YEAR_FIRST = r"\d{4}[./]\d{1,2}[./]\d{1,2}"
_NAMED_MONTH = r"\d{1,2}[ -][A-Za-z]{3,9}[ -]\d{2,4}"
_ODD_DATE = rf"^\s*({_DAY_FIRST}|{_YEAR_FIRST}|{_NAMED_MONTH})\b"


def _text_shape(words: pa.Array) -> Shape:
    few = words.to_pylist() if len(words) <= GLANCE else []
    if few and all(_is_interval(word.strip()) for word in few):
        return Shape.INTERVAL
    if _all(words, r"^[^*]*\*+$"):
        return Shape.MASKED
    if _all(words, _ODD_DATE):
        return Shape.ODD_DATE
    if _share(words, r"^\s*[-+]?\d+(\.\d*)?\s*$") > 0.9:
        return Shape.NEARLY_NUMBER
    if _all(words, r"^[\w./:@+-]*\d[\w./:@+-]*$"):
        return Shape.CODE
    if _is_prose(words):
        return Shape.PROSE
    return Shape.TEXT


def _is_interval(word: str) -> bool:
    """Whether a text is a range of numbers, or open at one end.

    >>> [_is_interval(word) for word in ("[0-10)", "20-29", "[17, 25[", ">90", "85+", "2024-03", "555-1234")]
    [True, True, True, True, True, False, True]
    """
    if found := _INTERVAL.fullmatch(word):
        return float(found[1].replace(",", ".")) < float(found[3].replace(",", "."))
    return bool(_OPEN_END.fullmatch(word))


def _is_prose(words: pa.Array) -> bool:
    """Sentences: five words or more on average."""
    return bool(pc.mean(pc.count_substring_regex(words, r"\s+")).as_py() >= 4)


def _all(words: pa.Array, pattern: str) -> bool:
    glance = pc.match_substring_regex(words[:GLANCE], pattern)
    return bool(
        len(words) and pc.all(glance).as_py() and pc.all(pc.match_substring_regex(words, pattern)).as_py()
    )


def _any(words: pa.Array, pattern: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(words, pattern), min_count=0).as_py())


def _share(words: pa.Array, pattern: str) -> float:
    return float(pc.mean(pc.match_substring_regex(words, pattern).cast(pa.int8())).as_py())
