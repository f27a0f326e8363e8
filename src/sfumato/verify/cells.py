"""How much the published cells of quasi-identifiers tell: the value, a part of its range, or nothing.

Everything is read from the labels and the policy. A cell is

- *exact* if it is a single value;
- *nothing* (``*``) if it is the root of its hierarchy, or a range over all that the column has: its declared bounds,
  or without bounds the least and the greatest end that is published;
- *missing* if it is empty: that tells that there was no value;
- *narrowed* otherwise. So is a label that cannot be read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.policy.hierarchy.files import ROOT
from sfumato.policy.kinds import read_day
from sfumato.policy.schema import Attribute, Kind, Role
from sfumato.release.certificate import CellsClaim
from sfumato.table.cells import texts
from sfumato.verify.exclusions import RestLabel
from sfumato.verify.finest import are_labels_too_fine, are_numbers_too_fine
from sfumato.verify.groups import group, sum_rows, with_missing

Ints = NDArray[np.int64]
Ends = tuple[float, float]
Range = Ends | str | None
"""The two ends of a range; the label where they cannot be read; None where a cell is missing."""

EXACT, NARROWED, NOTHING, MISSING = range(4)
OR_MISSING = " or missing"

NEARLY_ALL = 0.95
"""A column that is ``*`` in this share of the rows tells nearly nothing."""

_RANGE = re.compile(r"[\[(](.+), (.+)[\])]")
_DAY = re.compile(r"\d{4,}-\d\d-\d\d")


@dataclass(frozen=True, slots=True)
class Detail:
    """How many rows have a cell of each kind in one column."""

    exact: int
    narrowed: int
    nothing: int
    missing: int
    too_fine: int | None = field(default=None, repr=False)
    """Rows whose cell is finer than the policy lets any be; None where it sets no limit."""

    @property
    def rows(self) -> int:
        return self.exact + self.narrowed + self.nothing + self.missing

    @property
    def is_hidden(self) -> bool:
        """Is the column ``*`` nearly everywhere?"""
        return self.rows > 0 and self.nothing >= NEARLY_ALL * self.rows

    @classmethod
    def of(cls, levels: Sequence[int] | Ints, rows: Ints) -> Detail:
        """Of cells of these levels, each of which so many rows have.

        >>> Detail.of([EXACT, NOTHING, EXACT], np.array([5, 3, 1]))
        Detail(exact=6, narrowed=0, nothing=3, missing=0)
        """
        return cls(*sum_rows(rows, np.asarray(levels, dtype=np.int64), 4).tolist())


def label_or_bounds(attribute: Attribute, columns: Sequence[str]) -> Sequence[str]:
    """Of the columns that are published of a quasi-identifier its label, or the others if there is none.

    >>> age = Attribute("age", "quasi-identifier", Kind.NUMBER)
    >>> label_or_bounds(age, ["age", "age_low", "age_high"]), label_or_bounds(age, ["age_low", "age_high"])
    (['age'], ['age_low', 'age_high'])
    """
    return columns[:1] if columns[0] == attribute.name else columns


def claim_of(details: Iterable[Detail]) -> CellsClaim:
    """What a certificate claims of all quasi-identifiers together."""
    held = list(details)
    return CellsClaim(
        exact=sum(detail.exact + detail.missing for detail in held),
        narrowed=sum(detail.narrowed for detail in held),
        all=sum(detail.rows for detail in held),
    )


@dataclass(frozen=True, slots=True, eq=False)
class FoundGroups:
    """The groups of published rows, for whoever asks for more than the checks: verify groups rows, nobody does again.

    One line for each group: its ``cells``, as they are stored, and its ``size`` in rows. ``details`` say how
    much the cells of each quasi-identifier tell.
    """

    cells: pa.Table
    size: NDArray[np.int64]
    details: Mapping[str, Detail]


# ---- the distinct cells of a column ------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class DistinctCells:
    """The distinct cells of one quasi-identifier, and how many ``rows`` have each.

    ``columns`` are texts: its label, or its two bounds, with a third that says whether missing is among them.
    """

    columns: tuple[pa.Array, ...]
    rows: Ints

    @classmethod
    def of(cls, columns: Iterable[Any], rows: Ints) -> DistinctCells:
        held = [
            column if isinstance(column, pa.DictionaryArray) else texts(column, Attribute("", Role.OTHER))
            for column in columns
        ]
        codes = [with_missing(column) for column in held]
        if len(held) == 1:  # its texts are told apart already
            known = pa.concat_arrays([held[0].dictionary, pa.nulls(1, pa.string())])
            return cls((known,), sum_rows(rows, codes[0].of_row, codes[0].n))
        found = group(codes)
        one = pa.array(found.one_row)
        plain = (column.take(one).cast(pa.string()) for column in held)
        return cls(tuple(plain), sum_rows(rows, found.of_row, found.n))

    @classmethod
    def join(cls, parts: Sequence[DistinctCells]) -> DistinctCells:
        if len(parts) == 1:
            return parts[0]
        columns = [pa.concat_arrays(same) for same in zip(*(part.columns for part in parts), strict=True)]
        return cls.of(columns, np.concatenate([part.rows for part in parts]))

    def detail(self, attribute: Attribute, *, excludes: bool = False) -> Detail:
        """How much these cells tell; ``excludes``: labels of rests say what they exclude."""
        found = self._detail(attribute, excludes=excludes)
        if attribute.finest is None:
            return found
        if attribute.is_ordered:
            are_so = are_numbers_too_fine(attribute, self._ends(attribute))
        else:
            are_so = are_labels_too_fine(attribute, self.columns[0].to_pylist(), excludes=excludes)
        return replace(found, too_fine=int(self.rows[are_so].sum()))

    def _detail(self, attribute: Attribute, *, excludes: bool) -> Detail:
        if attribute.is_ordered:
            levels = _levels_as_written(self.columns[0], attribute) if len(self.columns) == 1 else None
            if levels is not None:
                return Detail.of(levels, self.rows)
            return Detail.of(_ordered_levels(list(self._ends(attribute)), attribute.bounds), self.rows)
        level = level_of(attribute, excludes=excludes)
        return Detail.of([level(label) for label in self.columns[0].to_pylist()], self.rows)

    def _ends(self, attribute: Attribute) -> Iterable[Range]:
        read: Callable[[str], float] = read_day if attribute.kind is Kind.DATE else float
        if len(self.columns) == 1:
            return [_parse_range(label, read) for label in self.columns[0].to_pylist()]
        lows, highs, *flags = (column.to_pylist() for column in self.columns)
        if flags:
            return [
                _from_flagged(low, high, flag, read)
                for low, high, flag in zip(lows, highs, *flags, strict=True)
            ]
        both = zip(lows, highs, strict=True)  # no low end where missing belongs to the range
        outer = [_parse_range(low, read) for low in lows if low]
        least = min((ends[0] for ends in outer if isinstance(ends, tuple)), default=-math.inf)
        if attribute.bounds is not None:
            least = attribute.bounds[0]
        return [_from_bounds(low, high, least, read) for low, high in both]


# ---- ranges ------------------------------------------------------------------------------------------


class _OrMissing(tuple[float, float]):
    """The ends of a range that a missing value may stand in, too."""

    __slots__ = ()


def _parse_range(label: str | None, read: Callable[[str], float]) -> Range:
    """The ends of a range, or of a single value; a label that cannot be read stays as it is.

    >>> [_parse_range(label, float) for label in ("[17, 24] or missing", "25", "young", None)]
    [(17.0, 24.0), (25.0, 25.0), 'young', None]
    """
    if not label:
        return None
    plain = label.removesuffix(OR_MISSING)
    found = _RANGE.fullmatch(plain)
    try:
        ends = (read(found[1]), read(found[2])) if found else (read(plain), read(plain))
    except ValueError:
        return label
    return ends if plain == label else _OrMissing(ends)


def _from_bounds(low: str | None, high: str | None, least: float, read: Callable[[str], float]) -> Range:
    if not high:
        return None
    try:
        return (read(low), read(high)) if low else _OrMissing((least, read(high)))
    except ValueError:
        return high


def _from_flagged(low: str | None, high: str | None, flag: str | None, read: Callable[[str], float]) -> Range:
    """The ends of a range whose flag says whether a missing value may stand in it, too.

    >>> [_from_flagged("17", "24", flag, float) for flag in ("false", "true")], _from_flagged("", "", "true", float)
    ([(17.0, 24.0), (17.0, 24.0)], None)
    """
    if not high:
        return None
    try:
        ends = read(low or ""), read(high)
    except ValueError:
        return high
    return _OrMissing(ends) if flag == "true" else ends


def _levels_as_written(labels: pa.Array, attribute: Attribute) -> Ints | None:
    """What ``_ordered_levels`` finds, all labels at once; None unless all can be read, as they are in our releases.

    >>> age = Attribute("age", "quasi-identifier", Kind.NUMBER)
    >>> _levels_as_written(pa.array(["[17, 24]", "25", "(17, 90.5] or missing", None]), age).tolist()
    [1, 0, 2, 3]
    >>> _levels_as_written(pa.array(["[17, 24]", "young"]), age)
    """
    is_known = _flags(pc.not_equal(labels, "").fill_null(False))
    known = labels if is_known.all() else labels.filter(pa.array(is_known))
    or_missing = pc.ends_with(known, OR_MISSING)
    if or_missing.true_count:
        known = pc.if_else(or_missing, pc.utf8_slice_codeunits(known, 0, -len(OR_MISSING)), known)
    is_range = pc.and_(
        pc.or_(pc.starts_with(known, "["), pc.starts_with(known, "(")),
        pc.or_(pc.ends_with(known, "]"), pc.ends_with(known, ")")),
    )
    if is_range.true_count:
        known = pc.if_else(is_range, pc.utf8_slice_codeunits(known, 1, -1), known)
    parts = pc.split_pattern(known, ", ")
    n_ends = 1 + _flags(is_range)
    if not np.array_equal(pc.list_value_length(parts), n_ends):
        return None
    try:
        found = parts.flatten()
        days = found.cast(pa.date32()).cast(pa.int32()) if attribute.kind is Kind.DATE else found
        numbers = days.cast(pa.float64()).to_numpy()
    except pa.ArrowInvalid:
        return None
    if np.isnan(numbers).any():
        return None
    last = np.cumsum(n_ends) - 1
    low, high = numbers[last + 1 - n_ends], numbers[last]
    least, most = attribute.bounds or (low.min(initial=math.inf), high.max(initial=-math.inf))
    is_exact = (low == high) & ~_flags(or_missing)
    is_all = (low <= least) & (high >= most)
    levels = np.full(len(labels), MISSING, dtype=np.int64)
    levels[is_known] = np.where(is_exact, EXACT, np.where(is_all, NOTHING, NARROWED))
    return levels


def _flags(cells: pa.Array) -> NDArray[np.bool_]:
    return np.asarray(cells.to_numpy(zero_copy_only=False), dtype=np.bool_)


def _ordered_levels(cells: Sequence[Range], bounds: Ends | None) -> list[int]:
    known = [ends for ends in cells if isinstance(ends, tuple)]
    if bounds is None and known:
        bounds = min(low for low, _ in known), max(high for _, high in known)
    least, most = bounds or (0.0, 0.0)

    def level(ends: Range) -> int:
        if ends is None:
            return MISSING
        if isinstance(ends, str):
            return NARROWED if ends.strip(ROOT) else NOTHING
        if ends[0] == ends[1] and not isinstance(ends, _OrMissing):
            return EXACT
        return NOTHING if ends[0] <= least and ends[1] >= most else NARROWED

    return [level(ends) for ends in cells]


# ---- labels of hierarchies ---------------------------------------------------------------------------


def level_of(attribute: Attribute, *, excludes: bool = False) -> Callable[[str | None], int]:
    """Tells of a label of the column's hierarchy how much it tells; one that ``excludes`` something tells a part.

    >>> [level_of(Attribute("zip", "quasi-identifier", hierarchy={"mask": 5}))(x) for x in ("53715", "53***", "*", None)]
    [0, 1, 2, 3]
    """
    is_value, root = attribute.declaration.make_value_test(), attribute.declaration.root

    def level(label: str | None) -> int:
        if not label:
            return MISSING
        if label == root or not label.strip(ROOT):
            return NOTHING
        if excludes and RestLabel.read(label):
            return NARROWED
        return EXACT if is_value(label) else NARROWED

    return level


__all__ = ["Detail", "DistinctCells", "FoundGroups", "claim_of", "label_or_bounds", "level_of"]
