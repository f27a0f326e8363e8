"""Columns as small integers: encode once, then integers only.

A quasi-identifier becomes *codes* and a *domain* that says what they mean. Numbers and dates without a
hierarchy are ordered: their codes ascend with their values, 0 being missing where a cell is missing. All
others are trees: a code is a leaf of the hierarchy, so that every node of it is a range of codes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato import hierarchy, tables
from sfumato.errors import HierarchyError, TableError
from sfumato.hierarchy import Hierarchy
from sfumato.kernels.problem import NO_NUMBER, Axes
from sfumato.schema import Attribute, Kind, Role
from sfumato.tables import Source

Codes = NDArray[np.uint32]
Floats = NDArray[np.float64]

EXACT_LIMIT = 2**53
"""Whole numbers below this are exact as floats; this one is also what its successor is rounded to."""

NO_RANGE = (0.0, -1.0)
"""The outer ends of a column that is missing everywhere: a range that holds nothing."""

MISSING = -math.inf
"""Where a missing cell stands among the values of an ordered domain: before all of them."""


@dataclass(frozen=True, slots=True, eq=False)
class OrderedDomain:
    """Values in ascending order; code i is ``values[i]``, or ``origin + i * step`` where ``values`` is None.

    ``low`` and ``high`` are the outer ends that a release may show: the declared bounds, or the range of
    the table. ``grid`` is the distance of neighbouring values (1 for whole numbers and days), None if any
    number can occur. With ``has_missing`` code 0 is missing.
    """

    attribute: Attribute
    low: float
    high: float
    grid: float | None
    has_missing: bool
    n_codes: int
    values: Floats | None
    origin: float = 0.0

    def value(self, code: Any) -> Any:
        """The value of each code; missing is -inf."""
        codes = np.asarray(code)
        if self.values is not None:
            return self.values[codes]
        found = self.origin + codes * (self.grid or 1.0)
        return np.where(codes == 0, MISSING, found) if self.has_missing else found


@dataclass(frozen=True, slots=True)
class TreeDomain:
    """The leaves of a hierarchy, numbered from left to right; missing is the last leaf, if any is missing."""

    attribute: Attribute
    hierarchy: Hierarchy
    has_missing: bool

    @property
    def n_codes(self) -> int:
        return self.hierarchy.n_leaves


Domain = OrderedDomain | TreeDomain


@dataclass(frozen=True, slots=True)
class Measure:
    """A number column in 32 bits: value = origin + unit * code.

    ``is_exact`` if that holds to the last bit; otherwise codes are the nearest of 2^32 - 1 steps.
    """

    codes: Codes
    origin: float
    unit: float
    is_exact: bool

    @property
    def exact_unit(self) -> Fraction:
        """The unit as a fraction: 1/10, not the float beside it."""
        return Fraction(self.unit).limit_denominator(10**6) if self.is_exact else Fraction(self.unit)


def encode_axis(source: Source, attribute: Attribute) -> tuple[Domain, Codes]:
    """Domain and codes of one quasi-identifier."""
    column = source.column(attribute.name)
    if attribute.is_ordered:
        return _encode_ordered(tables.ordered(column, attribute), attribute)
    return _encode_tree(column, attribute)


def encode_label(source: Source, attribute: Attribute) -> tuple[Codes, int]:
    """Codes of a class label or sensitive category, and how many there are; missing is a value of its own.

    >>> table = tables.open_table(pa.table({"x": ["b", None, "a", "b"]}))
    >>> encode_label(table, Attribute("x", role="sensitive"))
    (array([1, 2, 0, 1], dtype=uint32), 3)
    """
    column = source.column(attribute.name)
    if attribute.kind is Kind.CATEGORY:
        cells = tables.texts(column, attribute)
        if attribute.role is Role.SENSITIVE:  # blanks and Unicode compositions make no diversity
            plain = pc.utf8_trim_whitespace(pc.utf8_normalize(cells.dictionary, "NFC")).dictionary_encode()
            cells = pa.DictionaryArray.from_arrays(plain.indices.take(cells.indices), plain.dictionary)
    else:  # one number is one value, however its cells spell it
        cells = tables.ordered(column, attribute).dictionary_encode()
    ranks = pc.rank(cells.dictionary, sort_keys="ascending", tiebreaker="dense").to_numpy(
        zero_copy_only=False
    )
    codes, n = _spread(cells, ranks.astype(np.int64) - 1)
    return codes, n


def encode_number(source: Source, attribute: Attribute, *, missing: int | None = None) -> Measure:
    """A number as 32-bit code: exactly where its decimals allow. Missing becomes ``missing``, or the mean."""
    cells = tables.numbers(source.column(attribute.name), attribute)
    is_missing = _is_null(cells)
    values = _filled(cells)
    present = values[~is_missing] if is_missing is not None else values
    if len(present) == 0:
        return Measure(np.full(len(values), missing or 0, dtype=np.uint32), 0.0, 1.0, is_exact=True)
    base = int(present.min()) if present.dtype.kind == "i" else 0  # beyond 2^53 floats would lose digits
    values, present = values - base, present - base
    origin, unit, is_exact = _units(present, attribute)
    codes = np.rint((values - origin) / unit).astype(np.int64)
    if is_missing is not None:
        codes[is_missing] = int(np.rint(codes[~is_missing].mean())) if missing is None else missing
    return Measure(codes.astype(np.uint32), base + origin, unit, is_exact)


def axes_of(domains: tuple[Domain, ...], *, split_only: tuple[str, ...] | None = None) -> Axes:
    """The domains as the kernels see them."""
    trees = [domain.hierarchy if isinstance(domain, TreeDomain) else None for domain in domains]
    sizes = [0 if tree is None else tree.n_nodes for tree in trees]
    offsets = np.cumsum([0, *sizes])
    given = [
        (int(offset), tree) for offset, tree in zip(offsets[:-1], trees, strict=True) if tree is not None
    ]
    n_children = [np.bincount(tree.parent[1:], minlength=tree.n_nodes) for _, tree in given]
    child = [offset + 1 + np.argsort(tree.parent[1:], kind="stable") for offset, tree in given]
    counts = _joined(n_children, np.int64)
    positions = [_positions(domain) for domain in domains]
    starts = np.cumsum([0, *(len(position) for position in positions)])[:-1]
    names = [domain.attribute.name for domain in domains]
    return Axes(
        is_tree=np.array([tree is not None for tree in trees]),
        may_split=np.array([split_only is None or name in split_only for name in names]),
        root=offsets[:-1].astype(np.int64),
        node_low=_joined([tree.low for _, tree in given], np.int64),
        node_high=_joined([tree.high for _, tree in given], np.int64),
        child_start=np.cumsum(counts) - counts,
        n_children=counts,
        child=_joined(child, np.int64),
        position_start=np.array(
            [start if len(position) else -1 for start, position in zip(starts, positions, strict=True)],
            dtype=np.int64,
        ),
        position=_joined(positions, np.float64),
        least_code=np.array([_least_code(domain) for domain in domains], dtype=np.int64),
        width=np.array([_width(domain) for domain in domains]),
    )


# ---- ordered columns -------------------------------------------------------------------------------


def _encode_ordered(cells: pa.Array, attribute: Attribute) -> tuple[OrderedDomain, Codes]:
    is_missing = _is_null(cells)
    shift = 0 if is_missing is None else 1
    values = _filled(cells)
    present = values if is_missing is None else values[~is_missing]
    low, high = _outer_ends(present, attribute)
    grid = _grid(present, attribute)
    if grid is not None and len(present) and _is_whole((grid, first := float(present.min()))):
        steps = np.rint((present - first) / grid).astype(np.int64)
        if int(steps.max()) < 2 * len(values):
            n_codes = int(steps.max()) + 1 + shift
            domain = OrderedDomain(
                attribute, low, high, grid, bool(shift), n_codes, None, origin=first - shift * grid
            )
            return domain, _with_missing((steps + shift).astype(np.uint32), is_missing)
    distinct, codes = _ranked(present)
    known = np.append([MISSING] * shift, distinct)
    domain = OrderedDomain(attribute, low, high, grid, bool(shift), len(known), known)
    return domain, _with_missing((codes + shift).astype(np.uint32), is_missing)


def _ranked(values: NDArray[Any]) -> tuple[Floats, NDArray[np.int64]]:
    """The distinct values, ascending, and the rank of each; by marking where whole numbers lie close."""
    if values.dtype.kind == "i" and len(values):
        low, high = int(values.min()), int(values.max())
        if high - low < 16 * len(values):
            seen = np.zeros(high - low + 1, dtype=np.bool_)
            seen[values - low] = True
            rank = np.cumsum(seen) - 1
            return (np.flatnonzero(seen) + low).astype(np.float64), rank[values - low]
    distinct, codes = np.unique(values, return_inverse=True)
    return distinct.astype(np.float64), codes.astype(np.int64)


def _outer_ends(present: NDArray[Any], attribute: Attribute) -> tuple[float, float]:
    if len(present) == 0:
        return attribute.bounds or NO_RANGE
    least, greatest = float(present.min()), float(present.max())
    if max(abs(least), abs(greatest)) >= EXACT_LIMIT:  # as a float, 2^53 + 1 is 2^53
        raise TableError(
            f"Column {attribute.name!r} holds numbers of 2^53 or beyond, which are not exact; treat it as a category."
        )
    if attribute.bounds is None:
        return least, greatest
    low, high = attribute.bounds
    outside = int(np.count_nonzero((present < low) | (present > high)))
    if outside:
        raise TableError(
            f"Column {attribute.name!r} has {outside:,} cells outside its declared bounds; "
            "widen the bounds, or mend the cells."
        )
    return float(low), float(high)


def _grid(present: NDArray[Any], attribute: Attribute) -> float | None:
    """The distance of neighbouring values, if there is one: the declared step, or 1 for whole numbers."""
    if attribute.step is None:
        is_whole = present.dtype.kind == "i" or bool(np.all(present == np.rint(present)))
        return 1.0 if is_whole and (attribute.bounds is None or _is_whole(attribute.bounds)) else None
    start = attribute.bounds[0] if attribute.bounds else 0.0
    steps = (present - start) / attribute.step
    off = int(np.count_nonzero(np.abs(steps - np.rint(steps)) > 1e-9 * np.maximum(1.0, np.abs(steps))))
    if off:
        raise TableError(
            f"Column {attribute.name!r} has {off:,} cells that are not on its declared step; "
            "leave the step out, or mend the cells."
        )
    return float(attribute.step)


def _is_whole(bounds: tuple[float, float]) -> bool:
    return all(float(end).is_integer() for end in bounds)


# ---- trees -----------------------------------------------------------------------------------------


def _encode_tree(column: Any, attribute: Attribute) -> tuple[TreeDomain, Codes]:
    if attribute.kind is Kind.CATEGORY:
        cells = tables.texts(column, attribute)
        values: Any = cells.dictionary.to_pylist()
    else:
        raw = tables.ordered(column, attribute)
        attribute = _with_bounds(attribute, raw.drop_null().to_numpy(zero_copy_only=False))
        cells = raw.dictionary_encode()
        values = cells.dictionary.to_numpy(zero_copy_only=False)
        values = values.astype("datetime64[D]") if attribute.kind is Kind.DATE else values.astype(np.float64)
    tree = hierarchy.build(attribute, values)
    leaves = hierarchy.locate(attribute, tree, values).astype(np.int64)
    _refuse_unknown(cells, leaves, attribute)
    has_missing = cells.null_count > 0
    codes, _ = _spread(cells, leaves, missing=tree.n_leaves)
    return TreeDomain(attribute, tree.with_missing() if has_missing else tree, has_missing), codes


def _with_bounds(attribute: Attribute, values: NDArray[Any]) -> Attribute:
    """A number without declared bounds takes the table's range; cells outside declared ones are refused."""
    if len(values) == 0:
        return replace(attribute, bounds=attribute.bounds or (0.0, 1.0))
    low, high = _outer_ends(values, attribute)
    if attribute.kind is not Kind.NUMBER or attribute.bounds is not None:
        return attribute
    high = high if low < high else low + 1
    if _is_whole((low, high)) and not np.array_equal(values, np.rint(values)):
        high += 0.5  # whole bounds would declare whole numbers
    return replace(attribute, bounds=(low, high))


def _refuse_unknown(cells: pa.DictionaryArray, leaves: NDArray[np.int64], attribute: Attribute) -> None:
    unknown = leaves < 0
    if not unknown.any():
        return
    indices = cells.indices.drop_null().to_numpy(zero_copy_only=False)
    n_cells = int(np.count_nonzero(unknown[indices]))
    what = "declared values lack" if attribute.values and attribute.hierarchy is None else "hierarchy lacks"
    way_out = "add them, or declare them under missing-values"
    if isinstance(attribute.hierarchy, Mapping) and "balanced" in attribute.hierarchy:
        way_out = "whole bounds mean whole numbers, so declare a step that the cells have"
    raise HierarchyError(
        f"Column {attribute.name!r} has {n_cells:,} cells ({int(unknown.sum()):,} distinct values) that its "
        f"{what}; {way_out}."
    )


# ---- small pieces ----------------------------------------------------------------------------------


def _spread(
    cells: pa.DictionaryArray, codes: NDArray[np.int64], *, missing: int | None = None
) -> tuple[Codes, int]:
    """Each cell's code from the codes of the dictionary; missing cells get the next one."""
    n = len(codes)
    known = np.append(codes, n if missing is None else missing).astype(np.uint32)
    indices = pc.fill_null(cells.indices, n).to_numpy(zero_copy_only=False)
    return known[indices], n + (1 if cells.null_count else 0)


def _with_missing(codes: Codes, is_missing: NDArray[np.bool_] | None) -> Codes:
    if is_missing is None:
        return codes
    out = np.zeros(len(is_missing), dtype=np.uint32)
    out[~is_missing] = codes
    return out


def _is_null(cells: pa.Array) -> NDArray[np.bool_] | None:
    if cells.null_count == 0:
        return None
    return np.asarray(cells.is_null().to_numpy(zero_copy_only=False))


def _filled(cells: pa.Array) -> NDArray[Any]:
    return np.asarray((cells.fill_null(0) if cells.null_count else cells).to_numpy(zero_copy_only=False))


def _units(present: NDArray[Any], attribute: Attribute) -> tuple[float, float, bool]:
    """Origin and unit of a 32-bit code: the first power of ten that makes all values whole, if one fits."""
    origin = float(present.min())
    span = float(present.max()) - origin
    if not math.isfinite(span):
        raise TableError(
            f"The numbers of column {attribute.name!r} lie too far apart; drop or mend the largest."
        )
    room = float(NO_NUMBER) - 1
    for digits in range(7):
        scale = 10**digits
        if span * scale > room:
            break
        scaled = np.rint(present * scale)
        if np.array_equal(scaled / scale, present) and abs(origin) * scale < EXACT_LIMIT:
            return origin, 1.0 / scale, True
    return origin, max(span / room, float(np.finfo(np.float64).tiny)), False


def _positions(domain: Domain) -> Floats:
    """Real positions of the codes of a ranked domain; missing stands with the least value."""
    if isinstance(domain, TreeDomain) or domain.values is None:
        return np.zeros(0)
    if not domain.has_missing:
        return domain.values
    return np.append(domain.values[1:2] if domain.n_codes > 1 else [0.0], domain.values[1:])


def _least_code(domain: Domain) -> int:
    return 1 if isinstance(domain, OrderedDomain) and domain.has_missing else 0


def _width(domain: Domain) -> float:
    """Width of the whole table on one axis: leaves or values spanned; 1 where nothing is."""
    if isinstance(domain, TreeDomain) or domain.values is None:
        width = float(domain.n_codes - 1 - _least_code(domain))
    else:
        positions = _positions(domain)
        width = float(positions[-1] - positions[0])
    return width if width > 0 else 1.0


def _joined(arrays: list[Any], dtype: Any) -> Any:
    return np.concatenate(arrays).astype(dtype) if arrays else np.zeros(0, dtype=dtype)
