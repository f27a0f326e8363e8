"""Encoders of columns: each observes its column batch by batch, decides on a domain, and encodes batch by batch.

Numbers and dates without a hierarchy are ordered: their codes ascend with their values, 0 being missing where a cell
is missing. All other quasi-identifiers are trees: a code is a leaf of the hierarchy, so that every node of it is a
range of codes. Class labels and sensitive categories are numbered in the order of their values, missing last.

A table in memory is one batch. Whatever the batches, domain and codes are the same. An encoder has a ``domain`` once it
has finished.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.encoding.batches import OnePass, WholeTable, encode_whole
from sfumato.encoding.cells import is_null, look_of, present_cells, put_missing, spread_codes, values_of
from sfumato.encoding.domain import MISSING, Codes, Domain, Floats, OrderedDomain, TreeDomain
from sfumato.encoding.extent import Extent, with_bounds
from sfumato.encoding.finest import in_slices, represent_cells, represented
from sfumato.errors import HierarchyError, InputError, TableError, number_of
from sfumato.policy.finest import FinestSlices
from sfumato.policy.hierarchy.declarations import Balanced
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.requirements import Needs, Reference, Requirement
from sfumato.policy.schema import Attribute, Kind, Role, Schema
from sfumato.table import cells as table_cells
from sfumato.table.distinct import Dictionary, NumberFile, Numbers, find_places
from sfumato.table.source import UNKNOWN, Source
from sfumato.table.spill import Spill, size_of

UNBOUNDED = 1 << 62
"""Bytes that an encoder may take where nobody counts them."""


def encode_axis(source: Source, attribute: Attribute) -> tuple[Domain, Codes]:
    """Domain and codes of one quasi-identifier of a table in memory."""
    encoder = axis_encoder(attribute, n_rows=source.n_rows)
    codes = encode_whole(encoder, WholeTable(source, Schema((attribute,))))
    return encoder.domain, codes


def encode_label(source: Source, attribute: Attribute) -> tuple[Codes, LabelEncoder]:
    """Codes of a class label or sensitive category, and what is known of them; missing is a value of its own.

    >>> from sfumato.table.opening import open_table
    >>> table = open_table(pa.table({"x": ["b", None, "a", "b"]}))
    >>> codes, known = encode_label(table, Attribute("x", role="sensitive"))
    >>> codes, known.count
    (array([1, 2, 0, 1], dtype=uint32), array([1, 2, 1]))
    """
    encoder = LabelEncoder(attribute)
    return encode_whole(encoder, WholeTable(source, Schema((attribute,)))), encoder


def encode_people(source: Source, attribute: Attribute) -> tuple[Codes, pa.Array]:
    """The number of each row's person, and what the people are called, in any order."""
    encoder = PersonEncoder(attribute)
    return encode_whole(encoder, WholeTable(source, Schema((attribute,)))), encoder.known


def axis_encoder(
    attribute: Attribute, *, n_rows: int = UNKNOWN, spill: Spill | None = None, memory: int = UNBOUNDED
) -> OrderedEncoder | TreeEncoder | NumberTreeEncoder:
    """The encoder of a quasi-identifier."""
    if attribute.is_ordered:
        return OrderedEncoder(attribute, n_rows=n_rows, spill=spill, memory=memory)
    kind = TreeEncoder if attribute.kind is Kind.CATEGORY else NumberTreeEncoder
    return kind(attribute, memory=memory)


# ---- ordered columns -------------------------------------------------------------------------------


class OrderedEncoder:
    """A number or date without a hierarchy: codes are steps of a grid, or ranks of the values that occur.

    The first batch that may have to be ranked waits for a second one: if none comes, its values are ranked at once.
    """

    is_raw = False
    domain: OrderedDomain

    def __init__(
        self,
        attribute: Attribute,
        *,
        n_rows: int = UNKNOWN,
        spill: Spill | None = None,
        memory: int = UNBOUNDED,
    ) -> None:
        self.attribute, self.expected_rows = attribute, n_rows
        self.slices = FinestSlices.of(attribute)
        self.extent = Extent(attribute if self.slices is None else represented(attribute, self.slices))
        self.numbers = Numbers(spill, memory)
        self.place: slice | None = None
        self._n_collected = 0
        self._waiting: pa.Array | None = None
        self._ranks: NDArray[np.int64] | None = None
        self._first_seen: tuple[pa.Array, pa.Array] | None = None

    def _represent(self, cells: pa.Array) -> pa.Array:
        """Each cell as the greatest value of its finest slice; of the first batch once, as it may be the only one."""
        if self.slices is None:
            return cells
        if self._first_seen is not None and self._first_seen[0] is cells:
            return self._first_seen[1]
        found = represent_cells(cells, self.slices)
        if self.extent.n_rows == 0:
            self._first_seen = cells, found
        return found

    def observe(self, cells: pa.Array, _first_row: int) -> None:
        cells = self._represent(cells)
        self.extent.add_cells(cells)
        if self.extent.n_present and self.extent.looks_ranked(self.expected_rows):
            self._collect(cells)

    def merge(self, other: OrderedEncoder) -> None:
        self.extent.merge(other.extent)
        self.merge_again(other)

    def settle(self) -> bool:
        """Must all batches be observed again? They must if only a later one showed that values have to be ranked."""
        if self.extent.grid_domain() is not None or self._n_collected == self.extent.n_present:
            return False
        self.numbers.drop()
        self._n_collected, self._waiting = 0, None
        return True

    def observe_again(self, cells: pa.Array) -> None:
        self._collect(self._represent(cells))

    def merge_again(self, other: OrderedEncoder) -> None:
        self._collect_waiting()
        other._collect_waiting()
        self.numbers.merge(other.numbers)
        self._n_collected += other._n_collected

    def _collect(self, cells: pa.Array) -> None:
        n_present = len(cells) - cells.null_count
        if self._n_collected == 0:
            self._waiting = cells
        elif n_present:
            self._collect_waiting()
            self.numbers.add(present_cells(cells))
        self._n_collected += n_present

    def _collect_waiting(self) -> None:
        if self._waiting is not None:
            self.numbers.add(present_cells(self._waiting))
            self._waiting = None

    @property
    def is_large(self) -> bool:
        """Are the values ranks and too many for memory?"""
        return self.numbers.is_large and self.extent.grid_domain() is None

    def finish(self, ranks: NumberFile | None = None) -> None:
        """Decide. Ranks that are too many for memory, and any others where ``ranks`` are given, go to that file."""
        grid = self.extent.grid_domain()
        self.domain = grid or self.extent.ranked_domain(self._known_values(ranks))
        if self.slices is not None:
            self.domain = in_slices(self.domain, self.attribute, self.slices)
        self.numbers.drop()

    def _known_values(self, ranks: NumberFile | None) -> Floats:
        """The values that occur, missing being the first."""
        if ranks is not None:
            self._collect_waiting()
            missing = np.full(int(self.extent.has_missing), float(self.extent.least))
            self.place = ranks.append(itertools.chain([missing], self.numbers.blocks()))
            return ranks.map()[self.place]
        if self._waiting is None:
            distinct = self.numbers.values()
        else:
            distinct, self._ranks = _rank(present_cells(self._waiting))
        return np.append([MISSING] * self.extent.has_missing, distinct)

    @property
    def ends(self) -> None:
        """All codes of its domain may occur."""
        return

    def codes(self, cells: pa.Array) -> Codes:
        cells = self._represent(cells)
        if self.domain.values is None:
            found = _grid_codes(present_cells(cells), self.domain)
        elif self._ranks is not None and cells is self._waiting:
            found = self._ranks + self.domain.has_missing
        else:  # of equal values the last: in a file code 0, which is missing, has the least value, too
            found = find_places(self.domain.values, present_cells(cells))
        return put_missing(found.astype(np.uint32), is_null(cells))


def _grid_codes(present: NDArray[Any], domain: OrderedDomain) -> NDArray[np.int64]:
    grid = domain.grid or 1.0
    if present.dtype.kind == "i" and grid == 1.0:
        return present - int(domain.origin)
    return np.rint((present - domain.origin) / grid).astype(np.int64)


def _rank(values: NDArray[Any]) -> tuple[Floats, NDArray[np.int64]]:
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


# ---- trees -----------------------------------------------------------------------------------------


class TreeEncoder(OnePass):
    """A category with a hierarchy: codes are its leaves."""

    is_raw = True
    domain: TreeDomain

    def __init__(self, attribute: Attribute, *, memory: int = UNBOUNDED) -> None:
        self.attribute = attribute
        self.dictionary = Dictionary(attribute, memory)
        self._code: Codes = np.zeros(0, dtype=np.uint32)

    def observe(self, column: pa.Array, first_row: int) -> None:
        self.dictionary.add(column, first_row)

    def merge(self, other: TreeEncoder) -> None:
        self.dictionary.merge(other.dictionary)

    def finish(self) -> None:
        cells = table_cells.texts(self.dictionary.column(), self.attribute)
        self.domain, self._code = _build_tree(cells, self.attribute, self.dictionary.count)

    @property
    def ends(self) -> tuple[int, int] | None:
        """Least and greatest code, where they are known."""
        return (int(self._code.min()), int(self._code.max())) if len(self._code) else None

    def codes(self, column: pa.Array) -> Codes:
        return self.dictionary.codes(column, self._code)


class NumberTreeEncoder(OnePass):
    """A number or date with a hierarchy: codes are its leaves.

    Its distinct values are kept as long as they fit; a hierarchy that is not made of them can do without.
    """

    is_raw = False
    domain: TreeDomain

    def __init__(self, attribute: Attribute, *, memory: int = UNBOUNDED) -> None:
        self.attribute, self.memory = attribute, memory
        self.extent = Extent(replace(attribute, step=None))
        self.numbers: Numbers | None = Numbers()
        self._values: Floats = np.zeros(0)
        self._code: Codes = np.zeros(0, dtype=np.uint32)
        self._seen: tuple[pa.Array, pa.DictionaryArray] | None = None

    def observe(self, cells: pa.Array, _first_row: int) -> None:
        self.extent.add_cells(cells)
        if self.numbers is not None:
            self.numbers.add(present_cells(self._with_dictionary(cells).dictionary))
            self._let_values_go(self.numbers)

    def merge(self, other: NumberTreeEncoder) -> None:
        self.extent.merge(other.extent)
        if self.numbers is None or other.numbers is None:
            self.numbers = None
        else:
            self.numbers.merge(other.numbers)
            self._let_values_go(self.numbers)

    def _with_dictionary(self, cells: pa.Array) -> pa.DictionaryArray:
        """The cells by their distinct values; found once if the same batch is observed and then encoded."""
        if self._seen is None or self._seen[0] is not cells:
            self._seen = cells, cells.dictionary_encode()
        return self._seen[1]

    def _let_values_go(self, numbers: Numbers) -> None:
        """Do without the distinct values, if they are too many; an error if the hierarchy is made of them."""
        if 100 * numbers.n_held <= self.memory or 100 * len(numbers.values()) <= self.memory:
            return  # what they become in Python weighs that much
        if not self.attribute.declaration.is_complete(self.attribute):
            raise InputError(
                f"Column {self.attribute.name!r} has over {numbers.n_held:,} different values, too many for a "
                f"hierarchy in {size_of(self.memory)}; allow more --memory, declare another hierarchy, or none."
            )
        self.numbers = None

    def finish(self) -> None:
        attribute = with_bounds(self.attribute, self.extent)
        self._values = np.zeros(0) if self.numbers is None else self.numbers.values()
        kind = pa.int64() if attribute.kind is Kind.DATE else pa.float64()
        values = pa.array(self._values).cast(kind)
        if self.extent.has_missing:
            values = pa.concat_arrays([values, pa.nulls(1, kind)])
        self.domain, self._code = _build_tree(values.dictionary_encode(), attribute)

    @property
    def ends(self) -> tuple[int, int] | None:
        """Least and greatest code, where they are known."""
        if self.numbers is None:
            return None
        return (int(self._code.min()), int(self._code.max())) if len(self._code) else None

    def codes(self, cells: pa.Array) -> Codes:
        known = self._with_dictionary(cells)
        if self.numbers is None:
            return codes_in(self.domain, known)
        code = self._code[np.searchsorted(self._values, known.dictionary.to_numpy(zero_copy_only=False))]
        return spread_codes(known, code, missing=self.domain.n_codes - 1)


def _build_tree(
    cells: pa.DictionaryArray, attribute: Attribute, n_rows: NDArray[np.int64] | None = None
) -> tuple[TreeDomain, Codes]:
    """The domain and each cell's code. A cell may stand for several rows."""
    built = attribute.build_hierarchy(values_of(cells, attribute))
    domain = tree_domain(attribute, built, has_missing=cells.null_count > 0)
    return domain, codes_in(domain, cells, n_rows)


def tree_domain(attribute: Attribute, tree: Hierarchy, *, has_missing: bool) -> TreeDomain:
    """The leaves of a hierarchy, and one more where a cell is missing."""
    return TreeDomain(attribute, tree.with_missing() if has_missing else tree, has_missing)


def codes_in(domain: TreeDomain, cells: pa.DictionaryArray, n_rows: NDArray[np.int64] | None = None) -> Codes:
    """The code of each cell; those that the hierarchy lacks are refused. A cell may stand for several rows."""
    tree, attribute = domain.hierarchy, domain.attribute
    leaves = attribute.locate(tree, values_of(cells, attribute)).astype(np.int64)
    _refuse_unknown(cells, leaves, attribute, n_rows)
    return spread_codes(cells, leaves, missing=tree.n_leaves - 1)


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
    if isinstance(attribute.hierarchy, Balanced):
        way_out = "whole bounds mean whole numbers, so declare a step that the cells have"
    raise HierarchyError(
        f"Column {attribute.name!r} has {number_of(n_cells, 'cell')} "
        f"({number_of(int(unknown.sum()), 'distinct value')}) that its "
        f"{what}; {way_out}."
    )


# ---- labels ----------------------------------------------------------------------------------------


class LabelEncoder(OnePass):
    """A class label or sensitive category, missing being a value of its own. ``count`` has the rows of each code."""

    is_raw = True

    def __init__(self, attribute: Attribute, *, memory: int = UNBOUNDED) -> None:
        self.attribute = attribute
        self.dictionary = Dictionary(attribute, memory)
        self.count: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._code: Codes = np.zeros(0, dtype=np.uint32)
        self._known: pa.Array = pa.nulls(0)

    def observe(self, column: pa.Array, first_row: int) -> None:
        self.dictionary.add(column, first_row)

    def merge(self, other: LabelEncoder) -> None:
        self.dictionary.merge(other.dictionary)

    def finish(self) -> None:
        known = self.dictionary
        try:
            cells = _label_cells(known.column(), self.attribute)
        except table_cells.UnreadableCells as fault:
            raise fault.among(known.count, known.first) from None
        self._known = cells.dictionary
        ranks = pc.rank(cells.dictionary, sort_keys="ascending", tiebreaker="dense").to_numpy()
        n_values = len(ranks)
        self._code = spread_codes(cells, ranks.astype(np.int64) - 1, missing=n_values)
        self.count = np.zeros(n_values + (cells.null_count > 0), dtype=np.int64)
        np.add.at(self.count, self._code, known.count)

    def reference_for(
        self, requirement: Requirement, count: NDArray[np.int64] | None = None
    ) -> Reference | None:
        """What a requirement compares groups with, if it does: the values of the whole table.

        ``count`` says how often each value counts there; its rows if None. A value that does not count is none.
        """
        if Needs.REFERENCE not in requirement.needs:
            return None
        values = [*self._known.take(pc.sort_indices(self._known)).to_pylist(), None]
        counts = self.count if count is None else count
        used = np.flatnonzero(counts)
        found = requirement.reference(self.attribute, {values[code]: int(counts[code]) for code in used})
        if found is None or len(used) == len(counts):
            return found
        return replace(found, counts=counts, order=used[found.order])

    def codes(self, column: pa.Array) -> Codes:
        return self.dictionary.codes(column, self._code)


class PersonEncoder(LabelEncoder):
    """The people that rows are about. Ids that look alike are one person: two would be more than there may be."""

    def __init__(self, attribute: Attribute, *, memory: int = UNBOUNDED) -> None:
        super().__init__(replace(attribute, role=Role.SENSITIVE), memory=memory)

    @property
    def known(self) -> pa.Array:
        """The people, in any order."""
        return self._known

    def finish(self) -> None:
        super().finish()
        if n_missing := int(self.count[len(self._known) :].sum()):
            raise TableError(
                f"Column {self.attribute.name!r}, the unit, is missing in {number_of(n_missing, 'row')}, so nobody can "
                "tell whose they are; fill it in, or leave these rows out."
            )


def _label_cells(column: Any, attribute: Attribute) -> pa.DictionaryArray:
    """Cells told apart as labels are, null where missing."""
    if attribute.kind is not Kind.CATEGORY:  # one number is one value, however its cells spell it
        return table_cells.ordered(column, attribute).dictionary_encode()
    cells = table_cells.texts(column, attribute)
    if attribute.role is not Role.SENSITIVE:
        return cells
    seen = look_of(cells.dictionary)  # what looks alike makes no diversity, and what is not seen is missing
    plain = pc.if_else(pc.equal(seen, ""), None, seen).dictionary_encode()
    return pa.DictionaryArray.from_arrays(plain.indices.take(cells.indices), plain.dictionary)
