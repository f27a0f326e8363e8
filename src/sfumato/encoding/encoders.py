"""Columns as small integers: encode once, then integers only.

A quasi-identifier becomes *codes* and a *domain* that says what they mean. Numbers and dates without a
hierarchy are ordered: their codes ascend with their values, 0 being missing where a cell is missing. All
others are trees: a code is a leaf of the hierarchy, so that every node of it is a range of codes.

A column in memory is encoded at once (``encode_axis``, ``encode_label``, ``encode_number``). One that is read
batch by batch is first *observed* and then encoded, by an encoder that decides as those functions do: whatever
the batches, domain and codes are the same.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any
from unicodedata import category, normalize

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.errors import HierarchyError, InputError, TableError, number_of
from sfumato.kernels.axes import NO_NUMBER, Axes
from sfumato.policy.hierarchy import tree as hierarchy
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.schema import Attribute, Kind, Role
from sfumato.table import cells as table_cells
from sfumato.table.distinct import Dictionary, NumberFile, Numbers, at, places
from sfumato.table.source import UNKNOWN, Source
from sfumato.table.spill import Spill, size_of

Codes = NDArray[np.uint32]
Floats = NDArray[np.float64]

EXACT_LIMIT = 2**53
"""Whole numbers below this are exact as floats; this one is also what its successor is rounded to."""

NO_RANGE = (0.0, -1.0)
"""The outer ends of a column that is missing everywhere: a range that holds nothing."""

MISSING = -math.inf
"""Where a missing cell stands among the values of an ordered domain: before all of them."""


N_DIGITS = 7
"""Decimals that a number may have, and none, for its codes to be exact."""

SURELY_WHOLE = 2**53 // 10 ** (N_DIGITS - 1)
"""Whole numbers below this stay exact when they are scaled."""

HALF, LOW_HALF = np.uint64(32), np.uint64(0xFFFFFFFF)


@dataclass(frozen=True, slots=True, eq=False)
class OrderedDomain:
    """Values in ascending order; code i is ``values[i]``, or ``origin + i * step`` where ``values`` is None.

    Very many values stay in a file, of which ``values`` is a map: look at it through ``value``, for it holds
    positions, where missing stands with the least value.

    ``low`` and ``high`` are the outer ends that a release may show: the declared bounds, or the range of
    the table. ``grid`` is the distance of neighbouring values (1 for whole numbers and days), None if any
    number can occur. With ``has_missing`` code 0 is missing. If it ``is_declared``, it follows from the policy
    alone, and a cell that is no number or date is missing too.
    """

    attribute: Attribute
    low: float
    high: float
    grid: float | None
    has_missing: bool
    n_codes: int
    values: Floats | None
    origin: float = 0.0
    is_declared: bool = False

    def value(self, code: Any) -> Any:
        """The value of each code; missing is -inf."""
        codes = np.asarray(code)
        grid = self.grid or 1.0
        found = _grid_points(self.origin, grid, codes) if self.values is None else at(self.values, codes)
        return np.where(codes == 0, MISSING, found) if self.has_missing else found


def _grid_points(origin: float, step: float, codes: NDArray[Any]) -> Floats:
    """``origin + codes * step``; of decimals the floats nearest to them: 0.3, not 0.1 + 0.2.

    >>> _grid_points(0.0, 0.1, np.array([3]))
    array([0.3])
    """
    if _is_whole((origin, step)):
        return np.asarray(origin + codes * step)
    first, stride = Fraction(repr(origin)), Fraction(repr(step))
    scale = math.lcm(first.denominator, stride.denominator)
    return np.asarray((int(first * scale) + codes.astype(np.int64) * int(stride * scale)) / scale)


@dataclass(frozen=True, slots=True)
class TreeDomain:
    """The leaves of a hierarchy, numbered from left to right; missing is the last leaf, if any is missing.

    If it ``is_declared``, it follows from the policy alone, and a cell that no leaf stands for is missing too.
    """

    attribute: Attribute
    hierarchy: Hierarchy
    has_missing: bool
    is_declared: bool = False

    @property
    def n_codes(self) -> int:
        return self.hierarchy.n_leaves


Domain = OrderedDomain | TreeDomain


@dataclass(frozen=True, slots=True)
class Scale:
    """How a number column is told in 32 bits: value = origin + unit * code.

    ``is_exact`` if that holds to the last bit; otherwise codes are the nearest of 2^32 - 1 steps.
    """

    origin: float
    unit: float
    is_exact: bool

    @property
    def exact_unit(self) -> Fraction:
        """The unit as a fraction: 1/10, not the float beside it."""
        return Fraction(self.unit).limit_denominator(10**6) if self.is_exact else Fraction(self.unit)


@dataclass(frozen=True, slots=True)
class Measure(Scale):
    """A number column in 32 bits."""

    codes: Codes


def encode_axis(source: Source, attribute: Attribute) -> tuple[Domain, Codes]:
    """Domain and codes of one quasi-identifier."""
    column = source.column(attribute.name)
    if attribute.is_ordered:
        return _encode_ordered(table_cells.ordered(column, attribute), attribute)
    return _encode_tree(column, attribute)


def encode_label(source: Source, attribute: Attribute) -> tuple[Codes, int]:
    """Codes of a class label or sensitive category, and how many there are; missing is a value of its own.

    >>> from sfumato.table.opening import open_table
    >>> table = open_table(pa.table({"x": ["b", None, "a", "b"]}))
    >>> encode_label(table, Attribute("x", role="sensitive"))
    (array([1, 2, 0, 1], dtype=uint32), 3)
    """
    return _label_codes(source.column(attribute.name), attribute)


def _label_codes(column: Any, attribute: Attribute) -> tuple[Codes, int]:
    if attribute.kind is Kind.CATEGORY:
        cells = table_cells.texts(column, attribute)
        if (
            attribute.role is Role.SENSITIVE
        ):  # what looks alike makes no diversity, and what is not seen is missing
            seen = look_of(cells.dictionary)
            plain = pc.if_else(pc.equal(seen, ""), None, seen).dictionary_encode()
            cells = pa.DictionaryArray.from_arrays(plain.indices.take(cells.indices), plain.dictionary)
    else:  # one number is one value, however its cells spell it
        cells = table_cells.ordered(column, attribute).dictionary_encode()
    ranks = pc.rank(cells.dictionary, sort_keys="ascending", tiebreaker="dense").to_numpy(
        zero_copy_only=False
    )
    codes, n = _spread(cells, ranks.astype(np.int64) - 1)
    return codes, n


def look_of(texts: pa.Array) -> pa.Array:
    r"""What texts look like: without blanks around them, characters that are not seen, and other forms of a letter.

    By Unicode's NFKC; then characters of the category Cf go, and what has met is composed again. Case stays.

    >>> look_of(pa.array(["fl\u00adu", "\ufb02u", " flu\u200b", "Flu"])).to_pylist()
    ['flu', 'flu', 'flu', 'Flu']
    """
    if not pc.all(pc.string_is_ascii(texts), min_count=0).as_py():
        texts = pa.array([_without_format(text) for text in texts.to_pylist()], pa.string())
    return pc.utf8_trim_whitespace(texts)


def _without_format(text: str | None) -> str | None:
    if text is None or text.isascii():
        return text
    seen = (letter for letter in normalize("NFKC", text) if category(letter) != "Cf")
    return normalize("NFKC", "".join(seen))


def encode_number(source: Source, attribute: Attribute, *, missing: int | None = None) -> Measure:
    """A number as 32-bit code: exactly where its decimals allow. Missing becomes ``missing``, or the mean."""
    cells = table_cells.numbers(source.column(attribute.name), attribute)
    present = _present(cells)
    if len(present) == 0:
        return Measure(0.0, 1.0, True, np.full(len(cells), missing or 0, dtype=np.uint32))
    extent = Extent(attribute)
    extent.add(present)
    rest = present - extent.base if extent.base else present
    base, unit = _units(extent, lambda digits: _is_whole_at(rest, digits))
    wide = _number_codes(present, base, unit)
    missing = _mean_code(int(wide.sum()), len(wide)) if missing is None else missing
    codes = _with_missing(wide.astype(np.uint32), _is_null(cells), missing)
    return Measure(base + unit.origin, unit.unit, unit.is_exact, codes)


def axes_of(
    domains: tuple[Domain, ...],
    *,
    split_only: tuple[str, ...] | None = None,
    ranks: tuple[Floats, NDArray[np.int64]] | None = None,
) -> Axes:
    """The domains as the kernels see them.

    ``ranks`` are the real positions of all ranked domains where they stay in a file, and where each axis begins.
    """
    trees = [domain.hierarchy if isinstance(domain, TreeDomain) else None for domain in domains]
    sizes = [0 if tree is None else tree.n_nodes for tree in trees]
    offsets = np.cumsum([0, *sizes])
    given = [
        (int(offset), tree) for offset, tree in zip(offsets[:-1], trees, strict=True) if tree is not None
    ]
    n_children = [np.bincount(tree.parent[1:], minlength=tree.n_nodes) for _, tree in given]
    child = [offset + 1 + np.argsort(tree.parent[1:], kind="stable") for offset, tree in given]
    counts = _joined(n_children, np.int64)
    position, starts = _ranks(domains) if ranks is None else ranks
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
        position_start=starts,
        position=position,
        least_code=np.array([_least_code(domain) for domain in domains], dtype=np.int64),
        width=np.array([_width(domain) for domain in domains]),
    )


# ---- ordered columns -------------------------------------------------------------------------------


def _encode_ordered(cells: pa.Array, attribute: Attribute) -> tuple[OrderedDomain, Codes]:
    extent = Extent(attribute)
    extent.add_cells(cells)
    domain = extent.grid_domain()
    if domain is not None:
        return domain, _grid_codes(cells, domain)
    is_missing = _is_null(cells)
    distinct, codes = _ranked(_present(cells))
    domain = extent.ranked_domain(np.append([MISSING] * extent.has_missing, distinct))
    return domain, _with_missing((codes + extent.has_missing).astype(np.uint32), is_missing)


@dataclass(slots=True)
class Extent:
    """What decides on the codes of a number column, gathered batch by batch."""

    attribute: Attribute
    n_rows: int = 0
    n_present: int = 0
    least: int | float = 0
    greatest: int | float = 0
    is_int: bool = True
    is_whole: bool = True
    n_outside: int = 0
    n_off: int = 0

    def add_cells(self, cells: pa.Array) -> NDArray[Any]:
        """Look at some more cells; returns those that are there."""
        present = _present(cells)
        self.n_rows += len(cells) - len(present)
        self.add(present)
        return present

    def add(self, present: NDArray[Any]) -> None:
        """Look at some more numbers, none of them missing."""
        self.n_rows += len(present)
        if len(present) == 0:
            return
        least, greatest = (found.item() + 0 for found in (present.min(), present.max()))  # -0.0 + 0 is 0.0
        self.least = min(self.least, least) if self.n_present else least
        self.greatest = max(self.greatest, greatest) if self.n_present else greatest
        self.n_present += len(present)
        self.is_int = self.is_int and present.dtype.kind == "i"
        if self.is_whole and present.dtype.kind != "i":
            self.is_whole = bool(np.all(present == np.rint(present)))
        if self.attribute.bounds is not None:
            low, high = self.attribute.bounds
            if least < low or greatest > high:
                self.n_outside += int(np.count_nonzero((present < low) | (present > high)))
        if self.attribute.step is not None:
            self.n_off += _count_off(present, self.attribute)

    @property
    def has_missing(self) -> bool:
        return self.n_present < self.n_rows

    @property
    def base(self) -> int:
        """What is taken off whole numbers first: beyond 2^53 floats would lose digits."""
        return int(self.least) if self.is_int else 0

    def outer_ends(self) -> tuple[float, float]:
        """The declared bounds, or the range of the table; raises if a cell lies outside."""
        attribute = self.attribute
        if self.n_present == 0:
            return attribute.bounds or NO_RANGE
        if max(abs(self.least), abs(self.greatest)) >= EXACT_LIMIT:  # as a float, 2^53 + 1 is 2^53
            raise TableError(
                f"Column {attribute.name!r} holds numbers of 2^53 or beyond, which are not exact; "
                "treat it as a category."
            )
        if attribute.bounds is None:
            return float(self.least), float(self.greatest)
        if self.n_outside:
            raise TableError(
                f"Column {attribute.name!r} has {number_of(self.n_outside, 'cell')} outside its declared bounds; "
                "widen the bounds, or mend the cells."
            )
        low, high = attribute.bounds
        return float(low), float(high)

    def grid(self) -> float | None:
        """The distance of neighbouring values, if there is one: the declared step, or 1 for whole numbers."""
        attribute = self.attribute
        if attribute.step is None:
            return (
                1.0 if self.is_whole and (attribute.bounds is None or _is_whole(attribute.bounds)) else None
            )
        if self.n_off:
            raise TableError(
                f"Column {attribute.name!r} has {number_of(self.n_off, 'cell')} off its declared step; "
                "leave the step out, or mend the cells."
            )
        return float(attribute.step)

    def n_steps(self) -> int | None:
        """How many steps of a grid of whole numbers the values span, None if they are not on one."""
        grid = self.grid()
        if grid is None or self.n_present == 0 or not _is_whole((grid, float(self.least))):
            return None
        return int(np.rint((self.greatest - self.least) / grid))

    def looks_ranked(self, n_rows: int) -> bool:
        """Are codes likely to be ranks, if the table has that many rows?"""
        if self.n_off or max(abs(self.least), abs(self.greatest)) >= EXACT_LIMIT:
            return False
        n_steps = self.n_steps()
        return n_steps is None or n_steps >= 2 * max(n_rows, self.n_rows)

    def grid_domain(self) -> OrderedDomain | None:
        """The domain whose codes are steps of a grid, None where these would be too many."""
        (low, high), grid, n_steps = self.outer_ends(), self.grid(), self.n_steps()
        if grid is None or n_steps is None or n_steps >= 2 * self.n_rows:
            return None
        shift, first = int(self.has_missing), float(self.least)
        return OrderedDomain(
            self.attribute, low, high, grid, self.has_missing, n_steps + 1 + shift, None, first - shift * grid
        )

    def ranked_domain(self, known: Floats) -> OrderedDomain:
        """The domain whose codes are ranks of the values that occur, missing being the first."""
        low, high = self.outer_ends()
        return OrderedDomain(self.attribute, low, high, self.grid(), self.has_missing, len(known), known)


def _grid_codes(cells: pa.Array, domain: OrderedDomain) -> Codes:
    present, grid = _present(cells), domain.grid or 1.0
    if present.dtype.kind == "i" and grid == 1.0:
        codes = present - int(domain.origin)
    else:
        codes = np.rint((present - domain.origin) / grid).astype(np.int64)
    return _with_missing(codes.astype(np.uint32), _is_null(cells))


class OrderedEncoder:
    """An ordered quasi-identifier, batch by batch."""

    is_raw = False

    def __init__(
        self,
        attribute: Attribute,
        *,
        n_rows: int = UNKNOWN,
        spill: Spill | None = None,
        memory: int = 1 << 62,
    ) -> None:
        self.attribute, self.expected_rows = attribute, n_rows
        self.extent = Extent(attribute)
        self.numbers = Numbers(spill, memory)
        self._n_collected = 0
        self.domain: OrderedDomain | None = None
        self.place: slice | None = None

    def observe(self, cells: pa.Array, _first_row: int) -> None:
        """Look at a batch."""
        present = self.extent.add_cells(cells)
        if self.extent.n_present and self.extent.looks_ranked(self.expected_rows):
            self._collect(present)

    @property
    def needs_more(self) -> bool:
        """Must all batches be looked at again? Their values turned out to be ranks only on the way."""
        return self.extent.grid_domain() is None and self._n_collected < self.extent.n_present

    def start_again(self) -> None:
        self.numbers.drop()
        self._n_collected = 0

    def observe_again(self, cells: pa.Array) -> None:
        self._collect(_present(cells))

    def _collect(self, present: NDArray[Any]) -> None:
        self.numbers.add(present)
        self._n_collected += len(present)

    @property
    def is_large(self) -> bool:
        """Are the values ranks and too many for memory?"""
        return self.numbers.is_large and self.extent.grid_domain() is None

    def finish(self, ranks: NumberFile | None = None) -> OrderedDomain:
        """The domain. Ranks that are too many for memory, and any others where ``ranks`` are given, go to that file."""
        self.domain = self.extent.grid_domain()
        if self.domain is None:
            if ranks is None:
                known = np.append([MISSING] * self.extent.has_missing, self.numbers.values())
            else:
                missing = np.full(int(self.extent.has_missing), float(self.extent.least))
                self.place = ranks.append(itertools.chain([missing], self.numbers.blocks()))
                known = ranks.map()[self.place]
            self.domain = self.extent.ranked_domain(known)
        self.numbers.drop()
        return self.domain

    @property
    def ends(self) -> None:
        """All codes of its domain may occur."""
        return

    def codes(self, cells: pa.Array) -> Codes:
        assert self.domain is not None
        if self.domain.values is None:
            return _grid_codes(cells, self.domain)
        found = places(self.domain.values, _present(cells)).astype(
            np.uint32
        )  # the last of equals: no missing
        return _with_missing(found, _is_null(cells))


def _ranked(values: NDArray[Any]) -> tuple[Floats, NDArray[np.int64]]:
    """The distinct values, ascending, and the rank of each; by marking where whole numbers lie close. -0.0 is 0.0."""
    if values.dtype.kind == "i" and len(values):
        low, high = int(values.min()), int(values.max())
        if high - low < 16 * len(values):
            seen = np.zeros(high - low + 1, dtype=np.bool_)
            seen[values - low] = True
            rank = np.cumsum(seen) - 1
            return (np.flatnonzero(seen) + low).astype(np.float64), rank[values - low]
    distinct, codes = np.unique(values, return_inverse=True)
    return distinct.astype(np.float64) + 0.0, codes.astype(np.int64)


def _count_off(present: NDArray[Any], attribute: Attribute) -> int:
    """How many numbers are not on the declared step."""
    start = attribute.bounds[0] if attribute.bounds else 0.0
    steps = (present - start) / (attribute.step or 1.0)
    return int(np.count_nonzero(np.abs(steps - np.rint(steps)) > 1e-9 * np.maximum(1.0, np.abs(steps))))


def _is_whole(bounds: tuple[float, float]) -> bool:
    return all(float(end).is_integer() for end in bounds)


# ---- trees -----------------------------------------------------------------------------------------


def _encode_tree(column: Any, attribute: Attribute) -> tuple[TreeDomain, Codes]:
    if attribute.kind is Kind.CATEGORY:
        return _tree_of(table_cells.texts(column, attribute), attribute)
    raw = table_cells.ordered(column, attribute)
    extent = Extent(replace(attribute, step=None))
    extent.add_cells(raw)
    return _tree_of(raw.dictionary_encode(), with_bounds(attribute, extent))


def _tree_of(
    cells: pa.DictionaryArray, attribute: Attribute, n_rows: NDArray[np.int64] | None = None
) -> tuple[TreeDomain, Codes]:
    """The domain and each cell's code. A cell may stand for several rows."""
    values = values_of(cells, attribute)
    tree = hierarchy.build(attribute, values)
    has_missing = cells.null_count > 0
    domain = TreeDomain(attribute, tree.with_missing() if has_missing else tree, has_missing)
    return domain, codes_in(domain, cells, n_rows)


def values_of(cells: pa.DictionaryArray, attribute: Attribute) -> Any:
    """The distinct values of cells as hierarchies know them: texts, float64 numbers or datetime64[D] dates."""
    if attribute.kind is Kind.CATEGORY:
        return cells.dictionary.to_pylist()
    values = cells.dictionary.to_numpy(zero_copy_only=False)
    return values.astype("datetime64[D]" if attribute.kind is Kind.DATE else np.float64)


def codes_in(domain: TreeDomain, cells: pa.DictionaryArray, n_rows: NDArray[np.int64] | None = None) -> Codes:
    """The code of each cell; those that the hierarchy lacks are refused. A cell may stand for several rows."""
    tree, attribute = domain.hierarchy, domain.attribute
    leaves = hierarchy.locate(attribute, tree, values_of(cells, attribute)).astype(np.int64)
    _refuse_unknown(cells, leaves, attribute, n_rows)
    return _spread(cells, leaves, missing=tree.n_leaves - 1)[0]


def with_bounds(attribute: Attribute, extent: Extent) -> Attribute:
    """A number without declared bounds takes the table's range; cells outside declared ones are refused."""
    if extent.n_present == 0:
        return replace(attribute, bounds=attribute.bounds or (0.0, 1.0))
    low, high = extent.outer_ends()
    if attribute.kind is not Kind.NUMBER or attribute.bounds is not None:
        return attribute
    high = high if low < high else low + 1
    if _is_whole((low, high)) and not extent.is_whole:
        high += 0.5  # whole bounds would declare whole numbers
    return replace(attribute, bounds=(low, high))


class TreeEncoder:
    """A category with a hierarchy, batch by batch."""

    is_raw = True

    def __init__(self, attribute: Attribute, *, memory: int = 1 << 62) -> None:
        self.attribute = attribute
        self.dictionary = Dictionary(attribute, memory)
        self.domain: TreeDomain | None = None
        self._code: Codes = np.zeros(0, dtype=np.uint32)

    def observe(self, column: pa.Array, first_row: int) -> None:
        """Look at a batch of cells as they are stored."""
        self.dictionary.add(column, first_row)

    def finish(self) -> TreeDomain:
        cells = table_cells.texts(self.dictionary.column(), self.attribute)
        self.domain, self._code = _tree_of(cells, self.attribute, self.dictionary.count)
        return self.domain

    @property
    def ends(self) -> tuple[int, int] | None:
        """Least and greatest code, where they are known."""
        return (int(self._code.min()), int(self._code.max())) if len(self._code) else None

    def codes(self, column: pa.Array) -> Codes:
        return self.dictionary.codes(column, self._code)


class NumberTreeEncoder:
    """A number or date with a hierarchy, batch by batch.

    Its distinct values are kept as long as they fit; a hierarchy that is not made of them can do without.
    """

    is_raw = False

    def __init__(self, attribute: Attribute, *, memory: int = 1 << 62) -> None:
        self.attribute, self.memory = attribute, memory
        self.extent = Extent(replace(attribute, step=None))
        self.numbers: Numbers | None = Numbers()
        self.domain: TreeDomain | None = None
        self._values: Floats = np.zeros(0)
        self._code: Codes = np.zeros(0, dtype=np.uint32)

    def observe(self, cells: pa.Array, _first_row: int) -> None:
        """Look at a batch."""
        present = self.extent.add_cells(cells)
        if self.numbers is not None:
            self.numbers.add(present)
            if 100 * self.numbers.n_held > self.memory:  # what they become in Python weighs that much
                self._let_values_go(self.numbers)

    def _let_values_go(self, numbers: Numbers) -> None:
        if len(numbers.values()) * 100 <= self.memory:
            return
        declared = self.attribute.hierarchy
        if declared == "flat" or (isinstance(declared, Mapping) and "dates" in declared):
            raise InputError(
                f"Column {self.attribute.name!r} has over {numbers.n_held:,} different values, too many for a "
                f"hierarchy in {size_of(self.memory)}; allow more --memory, declare another hierarchy, or none."
            )
        self.numbers = None

    def finish(self) -> TreeDomain:
        attribute = with_bounds(self.attribute, self.extent)
        self._values = np.zeros(0) if self.numbers is None else self.numbers.values()
        kind = pa.int64() if attribute.kind is Kind.DATE else pa.float64()
        values = pa.array(self._values).cast(kind)
        if self.extent.has_missing:
            values = pa.concat_arrays([values, pa.nulls(1, kind)])
        self.domain, self._code = _tree_of(values.dictionary_encode(), attribute)
        return self.domain

    @property
    def ends(self) -> tuple[int, int] | None:
        """Least and greatest code, where they are known."""
        if self.numbers is None:
            return None
        return (int(self._code.min()), int(self._code.max())) if len(self._code) else None

    def codes(self, cells: pa.Array) -> Codes:
        assert self.domain is not None
        present = _present(cells)
        if self.numbers is not None:
            found = self._code[np.searchsorted(self._values, present)]
        else:
            attribute, tree = self.domain.attribute, self.domain.hierarchy
            distinct, at = np.unique(present, return_inverse=True)
            kind = "datetime64[D]" if attribute.kind is Kind.DATE else np.float64
            leaves = hierarchy.locate(attribute, tree, distinct.astype(kind)).astype(np.int64)
            _refuse_unknown(pa.array(distinct).dictionary_encode(), leaves, attribute)
            found = leaves.astype(np.uint32)[at]
        return _with_missing(found, _is_null(cells), self.domain.n_codes - 1)


def _refuse_unknown(
    cells: pa.DictionaryArray,
    leaves: NDArray[np.int64],
    attribute: Attribute,
    n_rows: NDArray[np.int64] | None = None,
) -> None:
    unknown = leaves < 0
    if not unknown.any():
        return
    is_unknown = np.append(unknown, False)[
        cells.indices.fill_null(len(unknown)).to_numpy(zero_copy_only=False)
    ]
    n_cells = int(is_unknown.sum() if n_rows is None else n_rows[is_unknown].sum())
    what = "declared values lack" if attribute.values and attribute.hierarchy is None else "hierarchy lacks"
    way_out = "add them, or declare them under missing-values"
    if isinstance(attribute.hierarchy, Mapping) and "balanced" in attribute.hierarchy:
        way_out = "whole bounds mean whole numbers, so declare a step that the cells have"
    raise HierarchyError(
        f"Column {attribute.name!r} has {number_of(n_cells, 'cell')} "
        f"({number_of(int(unknown.sum()), 'distinct value')}) that its "
        f"{what}; {way_out}."
    )


# ---- labels and numbers beside the quasi-identifiers -----------------------------------------------


class LabelEncoder:
    """A class label or sensitive category, batch by batch. ``count`` is the number of rows of each code."""

    is_raw = True

    def __init__(self, attribute: Attribute, *, memory: int = 1 << 62) -> None:
        self.attribute = attribute
        self.dictionary = Dictionary(attribute, memory)
        self.count: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._code: Codes = np.zeros(0, dtype=np.uint32)

    def observe(self, column: pa.Array, first_row: int) -> None:
        """Look at a batch of cells as they are stored."""
        self.dictionary.add(column, first_row)

    def finish(self) -> None:
        words = self.dictionary
        column = words.column()
        try:
            self._code, n = _label_codes(column, self.attribute)
        except table_cells.UnreadableCells as fault:
            raise fault.among(words.count, words.first) from None
        self.count = np.zeros(n, dtype=np.int64)
        np.add.at(self.count, self._code, words.count)

    def codes(self, column: pa.Array) -> Codes:
        return self.dictionary.codes(column, self._code)


@dataclass(slots=True)
class Sums:
    """Exact sums of whole numbers: how many, their sum, the sum of their squares, and the greatest."""

    n: int = 0
    total: int = 0
    squares: int = 0
    greatest: int = 0

    def add(self, numbers: NDArray[Any]) -> None:
        """Look at some more, at most 2^31 at a time, each between -2^32 and 2^32.

        >>> sums = Sums()
        >>> sums.add(np.array([2**32 - 1, 1], dtype=np.uint32))
        >>> sums.squares == (2**32 - 1) ** 2 + 1
        True
        """
        if len(numbers) == 0:
            return
        wide = numbers.astype(np.int64)
        greatest = int(wide.max())
        self.greatest = max(self.greatest, greatest) if self.n else greatest
        self.n += len(numbers)
        self.total += int(wide.sum())
        square = np.abs(wide).astype(np.uint64)
        square *= square
        self.squares += (int((square >> HALF).sum()) << 32) + int((square & LOW_HALF).sum())

    def moved(self, by: int) -> Sums:
        """The sums of the same numbers, each greater by so much."""
        squares = self.squares + 2 * by * self.total + self.n * by * by
        return Sums(self.n, self.total + self.n * by, squares, self.greatest + by)

    def with_number(self, number: int, n: int) -> Sums:
        """With one more number, which stands n times."""
        greatest = number if not self.n else max(self.greatest, number) if n else self.greatest
        return Sums(self.n + n, self.total + n * number, self.squares + n * number * number, greatest)

    @property
    def squared_errors(self) -> int:
        """The sum of squared differences from the mean, times n."""
        return self.n * self.squares - self.total * self.total


class NumberEncoder:
    """A number column as 32-bit codes, batch by batch; missing becomes ``missing``, or the mean.

    ``sums`` are those of all codes but ``NO_NUMBER``. Whole numbers are added up as they come; of others all
    batches must be looked at again, once the scale is known.
    """

    is_raw = False

    def __init__(self, attribute: Attribute, *, missing: int | None = None) -> None:
        self.attribute, self.missing = attribute, missing
        self.extent = Extent(replace(attribute, bounds=None, step=None))
        self.scale = Scale(0.0, 1.0, is_exact=True)
        self.sums = Sums()
        self._rest = (0, self.scale)  # what is taken off first, and the scale of the rest
        self._is_whole_at = [True] * N_DIGITS
        self._reference: int | None = None
        self._is_summed = True

    def observe(self, cells: pa.Array, _first_row: int) -> None:
        """Look at a batch."""
        present = self.extent.add_cells(cells)
        if len(present) == 0:
            return
        is_int = present.dtype.kind == "i"
        if is_int:
            self._add_up(present)
        if not is_int or max(abs(int(present.min())), abs(int(present.max()))) >= SURELY_WHOLE:
            floats = present.astype(np.float64)
            for digits, is_whole in enumerate(self._is_whole_at):
                self._is_whole_at[digits] = is_whole and _is_whole_at(floats, digits)

    def _add_up(self, present: NDArray[Any]) -> None:
        if self._reference is None:
            self._reference = int(present.min())
        reach = max(abs(int(present.min()) - self._reference), abs(int(present.max()) - self._reference))
        self._is_summed = self._is_summed and reach < 2**32
        if self._is_summed:
            self.sums.add(present - self._reference)

    def settle(self) -> None:
        """All batches have been seen: choose the scale."""
        if self.extent.n_present == 0:
            return
        base, rest = self._rest = _units(
            self.extent, lambda digits: self.extent.is_int or self._is_whole_at[digits]
        )
        self.scale = Scale(base + rest.origin, rest.unit, rest.is_exact)
        self._is_summed = self._is_summed and self.extent.is_int and rest.is_exact
        if self._reference is not None and self._is_summed:
            self.sums = self.sums.moved(self._reference - base)

    @property
    def needs_more(self) -> bool:
        """Must all batches be looked at again?"""
        return self.extent.n_present > 0 and not self._is_summed

    def start_again(self) -> None:
        self.sums = Sums()

    def observe_again(self, cells: pa.Array) -> None:
        self.sums.add(_number_codes(_present(cells), *self._rest))

    def finish(self) -> None:
        n_missing = self.extent.n_rows - self.extent.n_present
        if self.missing is None:
            self.missing = _mean_code(self.sums.total, self.sums.n) if self.sums.n else 0
        if self.missing != NO_NUMBER:
            self.sums = self.sums.with_number(self.missing, n_missing)

    @property
    def greatest(self) -> int:
        """The greatest code."""
        has_missing = self.extent.n_present < self.extent.n_rows
        return int(NO_NUMBER) if has_missing and self.missing == NO_NUMBER else self.sums.greatest

    def codes(self, cells: pa.Array) -> Codes:
        codes = _number_codes(_present(cells), *self._rest)
        return _with_missing(codes.astype(np.uint32), _is_null(cells), self.missing or 0)


# ---- small pieces ----------------------------------------------------------------------------------


def _spread(
    cells: pa.DictionaryArray, codes: NDArray[np.int64], *, missing: int | None = None
) -> tuple[Codes, int]:
    """Each cell's code from the codes of the dictionary; missing cells get the next one."""
    n = len(codes)
    known = np.append(codes, n if missing is None else missing).astype(np.uint32)
    indices = pc.fill_null(cells.indices, n).to_numpy(zero_copy_only=False)
    return known[indices], n + (1 if cells.null_count else 0)


def _with_missing(codes: Codes, is_missing: NDArray[np.bool_] | None, missing: int = 0) -> Codes:
    if is_missing is None:
        return codes
    out = np.full(len(is_missing), missing, dtype=np.uint32)
    out[~is_missing] = codes
    return out


def _is_null(cells: pa.Array) -> NDArray[np.bool_] | None:
    if cells.null_count == 0:
        return None
    return np.asarray(cells.is_null().to_numpy(zero_copy_only=False))


def _present(cells: pa.Array) -> NDArray[Any]:
    """The cells that are not missing."""
    return np.asarray((cells.drop_null() if cells.null_count else cells).to_numpy(zero_copy_only=False))


def _is_whole_at(present: NDArray[Any], digits: int) -> bool:
    """Have these numbers no more decimals than that?"""
    scale = 10**digits
    if digits == 0 and present.dtype.kind == "i":
        return True
    scaled = present * float(scale)
    np.rint(scaled, out=scaled)
    scaled /= scale
    return np.array_equal(scaled, present)


def _units(extent: Extent, is_whole_at: Callable[[int], bool]) -> tuple[int, Scale]:
    """What is taken off first, and the scale of the rest: the first power of ten that makes all whole, if one fits."""
    base = extent.base
    origin = float(extent.least - base)
    span = float(extent.greatest - base) - origin
    if not math.isfinite(span):
        raise TableError(
            f"The numbers of column {extent.attribute.name!r} lie too far apart; drop or mend the largest."
        )
    room = float(NO_NUMBER) - 1
    for digits in range(N_DIGITS):
        scale = 10**digits
        if span * scale > room:
            break
        if abs(origin) * scale < EXACT_LIMIT and is_whole_at(digits):
            return base, Scale(origin, 1.0 / scale, is_exact=True)
    return base, Scale(origin, max(span / room, float(np.finfo(np.float64).tiny)), is_exact=False)


def _number_codes(present: NDArray[Any], base: int, scale: Scale) -> NDArray[np.int64]:
    """The codes of numbers that are there."""
    steps = (present - base if base else present) - scale.origin
    steps /= scale.unit
    return np.rint(steps, out=steps).astype(np.int64)


def _mean_code(total: int, n: int) -> int:
    """The nearest code to the mean, exactly."""
    return round(Fraction(total, n))


def _ranks(domains: tuple[Domain, ...]) -> tuple[Floats, NDArray[np.int64]]:
    """Real positions of the codes of all ranked domains, and where those of each axis begin: -1 if nowhere."""
    positions = [_positions(domain) for domain in domains]
    starts = np.cumsum([0, *(len(position) for position in positions)])[:-1]
    return _joined(positions, np.float64), np.where([len(each) > 0 for each in positions], starts, -1)


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
        least = min(_least_code(domain), domain.n_codes - 1)
        width = float(domain.values[-1] - domain.values[least]) if domain.n_codes > 1 else 0.0
    return width if width > 0 else 1.0


def _joined(arrays: list[Any], dtype: Any) -> Any:
    return np.concatenate(arrays).astype(dtype) if arrays else np.zeros(0, dtype=dtype)
