"""Cells that come along with encoded rows: those that are published as they are, and numbers for statistics."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.encoding.batches import Batch
from sfumato.encoding.domain import Codes
from sfumato.encoding.extent import Extent
from sfumato.policy.document import Policy
from sfumato.policy.schema import Attribute, Kind, Role
from sfumato.recoding import statistics
from sfumato.recoding.recoder import pass_on
from sfumato.table.distinct import Dictionary
from sfumato.table.source import Source

MOST_TEXT = 1 << 18
"""Bytes of the different texts of a published column up to which it is kept by a dictionary."""


class Payload:
    """Columns that come along with the codes: published as they are, or needed for statistics of each group.

    First ``observe`` every batch of the table and ``finish``; then ``take_from`` any batch. If the payload is not
    stored, because the table itself is at hand, only the types of statistics are learned.
    """

    def __init__(self, source: Source, policy: Policy, *, is_stored: bool = True) -> None:
        schema = policy.schema
        self.schema = schema
        self.published = [name for name in source.names if is_stored and _comes_along(schema[name], policy)]
        measured = [name for name in source.names if statistics.names_of(schema[name], policy)]
        self.measured = [name for name in measured if name not in self.published]
        self.names = [*self.published, *self.measured]
        self._extents = {name: Extent(_drop_bounds(schema[name])) for name in measured}
        self._texts = {name: Dictionary(Attribute(name, Role.OTHER)) for name in self.published}
        self._bytes = dict.fromkeys(self.names, 0)
        self._code: dict[str, Codes] = {}
        self._dictionary: dict[str, pa.Array] = {}

    @property
    def kinds(self) -> dict[str, pa.DataType]:
        """The types of the numbers and dates that statistics are taken of: one for the whole column."""
        return {name: _choose_type(extent) for name, extent in self._extents.items()}

    def observe(self, batch: Batch) -> None:
        for name in self.published:
            column = _passed_on(batch.raw(name), name)
            if not _is_text(column.type):
                self._texts.pop(name, None)
            if name in self._texts:
                self._texts[name].add(column, batch.first_row)
            self._bytes[name] += _decoded_bytes(column)
        self._drop_large()
        for name, extent in self._extents.items():
            extent.add_cells(batch.cells(name))

    def merge(self, other: Payload) -> None:
        """Observe the batches that another one has observed."""
        self._texts = {name: texts for name, texts in self._texts.items() if name in other._texts}
        for name, texts in self._texts.items():
            texts.merge(other._texts[name])
        self._drop_large()
        for name, extent in self._extents.items():
            extent.merge(other._extents[name])
        for name in self.names:
            self._bytes[name] += other._bytes[name]

    def _drop_large(self) -> None:
        """Do without the dictionaries that do not pay: every file of rows would hold them."""
        self._texts = {name: texts for name, texts in self._texts.items() if texts.held <= MOST_TEXT}

    def finish(self) -> None:
        for texts in self._texts.values():
            texts.finish()
        self._drop_large()
        for name, texts in self._texts.items():
            order = pc.sort_indices(texts.values).to_numpy()
            rank = np.empty(len(order) + 1, dtype=np.uint32)
            rank[order] = np.arange(len(order))
            rank[-1] = len(order)  # missing
            self._code[name] = rank
            self._dictionary[name] = texts.values.take(pa.array(order))
            texts.n_missing = 1  # so that the last code is that of missing

    def n_bytes(self, n_rows: int) -> int:
        """About how many bytes the payload of all rows takes on disk."""
        width = {name: _index_type(len(self._dictionary[name])).bit_width // 8 for name in self._code}
        return sum(
            n_rows * width[name] if name in width else self._bytes[name] or 8 * n_rows for name in self.names
        )

    def decoded_bytes(self, n_rows: int) -> int:
        """About how many bytes the payload of one row takes once its texts are spelled out."""
        return sum(self._bytes[name] or 8 * n_rows for name in self.names) // max(n_rows, 1)

    def take_from(self, batch: Batch) -> pa.RecordBatch | None:
        """The payload of some rows, None if there is none."""
        if not self.names:
            return None
        columns = [self._column(name, batch) for name in self.names]
        return pa.RecordBatch.from_arrays(columns, self.names)

    def _column(self, name: str, batch: Batch) -> pa.Array:
        if name in self.measured:
            kind = self.kinds[name]
            cells = batch.cells(name)
            return cells.cast(pa.int32()).cast(kind) if pa.types.is_date(kind) else cells.cast(kind)
        column = _passed_on(batch.raw(name), name)
        if name not in self._code:
            return column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column
        codes = self._texts[name].codes(column, self._code[name])
        dictionary = self._dictionary[name]
        is_missing = codes == len(dictionary)
        kind = _index_type(len(dictionary))
        indices = pa.array(codes, mask=is_missing if is_missing.any() else None).cast(kind, safe=False)
        return pa.DictionaryArray.from_arrays(indices, dictionary)


def _comes_along(attribute: Attribute, policy: Policy) -> bool:
    """Is a column published as it is, or needed to tell whose pseudonyms are?"""
    if attribute.name == policy.person and policy.schema.names(Role.PSEUDONYM):
        return True
    return attribute.role.is_published and attribute.role is not Role.QUASI_IDENTIFIER


def _decoded_bytes(column: pa.Array) -> int:
    """Bytes of a column, its texts spelled out: those of each cell, whatever cells are beside it."""
    kind = column.type.value_type if isinstance(column, pa.DictionaryArray) else column.type
    if not _is_text(kind):
        return len(column) * max(int(kind.bit_width) // 8, 1)
    if isinstance(column, pa.DictionaryArray):
        lengths = pc.binary_length(column.dictionary).take(column.indices)
    else:
        lengths = pc.binary_length(column)
    return 4 * len(column) + int(pc.sum(lengths).as_py() or 0)


def _drop_bounds(attribute: Attribute) -> Attribute:
    """The attribute without what is declared about its values."""
    return Attribute(attribute.name, attribute.role, attribute.kind)


def _choose_type(extent: Extent) -> pa.DataType:
    if extent.attribute.kind is Kind.DATE:
        return pa.date32()
    return pa.int64() if extent.is_int else pa.float64()


def _index_type(n: int) -> pa.DataType:
    """The narrowest type for places in a dictionary of ``n`` texts."""
    return pa.int8() if n <= 1 << 7 else pa.int16() if n <= 1 << 15 else pa.int32()


def _is_text(kind: pa.DataType) -> bool:
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(value) or pa.types.is_large_string(value))


def _passed_on(column: pa.Array, name: str) -> pa.Array:
    return pass_on(pa.chunked_array([column]), name).chunk(0)
