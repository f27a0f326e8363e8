"""Rows as codes of declared domains: what every differentially private method reads.

A domain follows from the policy alone, and every cell has a code in it, whatever it holds: a number or date
outside the bounds counts as the nearer bound, one between two points of the grid as the point above it, and a cell
that is missing, unreadable or of no declared value is missing. A row whose class is not declared is left out.

So no error depends on a cell, and a row's codes depend on no other row: to add or remove one changes nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.encoding.batches import BLOCK_ROWS, Block
from sfumato.encoding.cells import distinct_cells, is_null, spread_codes
from sfumato.encoding.domain import Codes, Domain, OrderedDomain, TreeDomain
from sfumato.encoding.row_bound import DrawKeys, choose_rows
from sfumato.policy.document import Policy
from sfumato.policy.hierarchy.declared import leaf_codes, with_missing
from sfumato.policy.options import diffgen
from sfumato.policy.options.diffgen import LEAVES, Cut, class_values, grid_of, n_codes
from sfumato.policy.schema import Attribute, Schema
from sfumato.table.cells import lenient_ordered, lenient_texts
from sfumato.table.source import UNKNOWN, Source

__all__ = [
    "DeclaredRows",
    "HeldRows",
    "bound_rows",
    "cut_of",
    "domains_of",
    "encode_by_domains",
    "hold_rows",
    "not_as_declared",
    "tree_domains_of",
    "with_missing",
]


# ---- domains ---------------------------------------------------------------------------------------


def domains_of(schema: Schema) -> tuple[Domain, ...]:
    """The declared domain of each quasi-identifier; missing is part of it.

    >>> age = {"role": "quasi-identifier", "kind": "number", "bounds": (18, 65), "step": 1}
    >>> (domain,) = domains_of(Schema.of(age=age))
    >>> domain.n_codes, domain.value([0, 1, 48]).tolist()
    (49, [-inf, 18.0, 65.0])
    """
    return tuple(_domain_of(attribute) for attribute in schema.quasi_identifiers)


def _domain_of(attribute: Attribute) -> Domain:
    if not attribute.is_ordered:
        return TreeDomain(
            attribute, with_missing(attribute.build_declared_hierarchy()), has_missing=True, is_declared=True
        )
    low, high, step = grid_of(attribute)
    return OrderedDomain(
        attribute,
        float(low),
        float(high),
        grid=float(step),
        has_missing=True,
        n_codes=n_codes(attribute),
        values=None,
        origin=float(low - step),
        is_declared=True,
    )


def tree_domains_of(schema: Schema) -> tuple[TreeDomain, ...]:
    """The declared hierarchy of each quasi-identifier; missing is a value of its own, the last child of the root.

    >>> (domain,) = tree_domains_of(Schema.of(sex={"role": "quasi-identifier", "values": ("Male", "Female")}))
    >>> domain.hierarchy.as_tree()
    {'*': ['Male', 'Female', None]}
    """
    return tuple(
        TreeDomain(
            attribute, attribute.build_declared_hierarchy().with_missing(), has_missing=True, is_declared=True
        )
        for attribute in schema.quasi_identifiers
    )


def cut_of(domain: Domain, cut: Cut) -> NDArray[np.int64]:
    """A cut that the policy gives, in codes.

    On an ordered domain the first code of each piece but the first, ascending; on a tree the nodes of its
    hierarchy, from left to right. Missing goes with the first piece, or the last node; at the leaves it is alone.

    >>> age = {"role": "quasi-identifier", "kind": "number", "bounds": (18, 65), "step": 1}
    >>> cut_of(domains_of(Schema.of(age=age))[0], (40,)).tolist()
    [23]
    """
    attribute = domain.attribute
    if isinstance(domain, OrderedDomain):
        if cut == LEAVES:
            return np.arange(1, domain.n_codes)
        return np.array(diffgen.ordered_cut(attribute, cut), dtype=np.int64) + 1
    if cut == LEAVES:
        return domain.hierarchy.leaf_nodes.astype(np.int64)
    return np.array(diffgen.tree_cut(attribute, attribute.build_declared_hierarchy(), cut), dtype=np.int64)


# ---- cells -----------------------------------------------------------------------------------------


def _encode_cells(domain: Domain, column: Any) -> Codes:
    """The code of each cell of a quasi-identifier. No cell is refused, and none depends on another."""
    if isinstance(domain, OrderedDomain):
        return _encode_ordered(domain, column)
    cells, values = distinct_cells(column, domain.attribute, leniently=True)
    return spread_codes(cells, leaf_codes(domain.attribute, domain.hierarchy, values), domain.n_codes - 1)


def _encode_ordered(domain: OrderedDomain, column: Any) -> Codes:
    """The code of each cell: the first point of the grid that is not below it; 0 for missing."""
    cells = lenient_ordered(column, domain.attribute)
    values = np.asarray(cells.fill_null(0).to_numpy(zero_copy_only=False))
    low, step = domain.low, domain.grid or 1.0
    if values.dtype.kind == "i" and low.is_integer() and step.is_integer():
        values = np.clip(values, int(low), int(domain.high)) - int(low)
        codes = values + 1 if step == 1.0 else -(-values // int(step)) + 1
    else:
        codes = _first_not_below(domain, np.clip(values.astype(np.float64), low, domain.high))
    is_missing = is_null(cells)
    if is_missing is not None:
        codes[is_missing] = 0
    return np.asarray(codes, dtype=np.uint32)


def _first_not_below(domain: OrderedDomain, values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Codes of values within the bounds: an estimate, at most one off, put right by the points themselves."""
    step = domain.grid or 1.0
    codes = np.ceil((values - domain.low) / step).astype(np.int64) + 1
    codes = np.clip(codes, 1, domain.n_codes - 1)
    codes -= (codes > 1) & (domain.value(codes - 1) >= values)
    codes += (codes < domain.n_codes - 1) & (domain.value(codes) < values)
    return codes


def encode_by_domains(
    source: Source, domains: Sequence[Domain], kept: NDArray[np.bool_] | None = None
) -> Codes:
    """The codes (rows, domains) of all rows of a table, or of those that are ``kept``."""
    none = np.empty((0, len(domains)), dtype=np.uint32)
    rows = np.concatenate([none, *_encode_batches(source, _encoded(domains))])
    return rows if kept is None else rows[kept]


EncodedColumn = tuple[str, Callable[[Any], Codes]]
"""The name of a column, and what makes codes of its cells."""


def _encoded(domains: Sequence[Domain]) -> list[EncodedColumn]:
    return [(domain.attribute.name, partial(_encode_cells, domain)) for domain in domains]


def _encode_batches(
    source: Source, columns: Sequence[EncodedColumn], *, memory: int | None = None
) -> Iterator[Codes]:
    """One pass over a table: the codes (rows, columns) of some rows at a time."""
    for batch in source.batches([name for name, _ in columns], rows=BLOCK_ROWS, memory=memory):
        rows = np.empty((batch.num_rows, len(columns)), dtype=np.uint32)
        for at, (_, encode) in enumerate(columns):
            rows[:, at] = encode(batch.column(at))
        yield rows


class _Class:
    """The cells of the class as codes: those of the declared values in their order, and then one for all other cells."""

    def __init__(self, attribute: Attribute) -> None:
        self.attribute = attribute
        self.values = class_values(attribute)
        self._code = {value: code for code, value in enumerate(self.values)}

    def codes(self, column: Any) -> Codes:
        cells = lenient_texts(column, self.attribute)
        other = len(self.values)
        found = [self._code.get(text, other) for text in cells.dictionary.to_pylist()]
        return spread_codes(cells, np.array(found, dtype=np.int64), other)


# ---- rows ------------------------------------------------------------------------------------------


class DeclaredRows:
    """The rows of a table, encoded anew in each pass: codes of the quasi-identifiers, then of the class.

    ``n_rows`` counts those with a declared class, once a pass is over. It is as private as the rows are. ``kept`` says of
    each row of the table whether it may be read, if people have several; None: all may.
    """

    def __init__(
        self,
        source: Source,
        policy: Policy,
        *,
        memory: int | None = None,
        kept: NDArray[np.bool_] | None = None,
    ) -> None:
        target = policy.schema[diffgen.target_of(policy.workload)]
        self.source, self.memory, self.kept = source, memory, kept
        self.domains = domains_of(policy.schema)
        self.target = _Class(target)
        self.class_values = self.target.values
        self.n_rows = UNKNOWN

    def blocks(self, *, payload: bool = False) -> Iterator[Block]:  # noqa: ARG002 - nothing raw comes along
        """One pass over the table; blocks have no payload."""
        n_read, n_rows, n_classes = 0, 0, len(self.class_values)
        columns = [*_encoded(self.domains), (self.target.attribute.name, self.target.codes)]
        for rows in _encode_batches(self.source, columns, memory=self.memory):
            is_read = rows[:, -1] < n_classes
            if self.kept is not None:
                is_read &= self.kept[n_read : n_read + len(rows)]
            n_read += len(rows)
            kept = rows if is_read.all() else rows[is_read]
            n_rows += len(kept)
            if len(kept):
                yield Block(kept, None)
        self.n_rows = n_rows


def bound_rows(
    source: Source, policy: Policy, row_keys: Callable[[], DrawKeys], *, memory: int | None = None
) -> NDArray[np.bool_] | None:
    """Which rows may be read, where the policy counts people and bounds their rows; None: all of them."""
    if policy.person is None or policy.rows_at_most is None:
        return None
    return choose_rows(source, policy.schema[policy.person], policy.rows_at_most, row_keys(), memory=memory)


class HeldRows:
    """The rows of a table, all of them encoded and in memory: (rows, axes + 1), C order."""

    def __init__(self, rows: Codes, domains: tuple[Domain, ...], values: tuple[str, ...]) -> None:
        self.rows, self.domains, self.class_values = rows, domains, values

    @property
    def n_rows(self) -> int:
        return len(self.rows)

    def blocks(self, *, payload: bool = False) -> Iterator[Block]:  # noqa: ARG002 - nothing raw comes along
        """One pass over them; blocks have no payload."""
        for start in range(0, len(self.rows), BLOCK_ROWS):
            yield Block(self.rows[start : start + BLOCK_ROWS], None)


def hold_rows(source: Source, policy: Policy) -> HeldRows:
    """The rows of a table that fits in memory, encoded once."""
    rows = DeclaredRows(source, policy)
    none = np.empty((0, len(rows.domains) + 1), dtype=np.uint32)
    return HeldRows(
        np.concatenate([none, *(block.rows for block in rows.blocks())]), rows.domains, rows.class_values
    )


def not_as_declared(source: Source, policy: Policy) -> dict[str, int]:
    """How many cells of each column are not as declared, missing ones aside; of the class how many rows are left out.

    For the owner alone: it is computed from the rows, and nobody paid for it.

    >>> from sfumato.table.opening import open_table
    >>> policy = Policy.parse('''
    ... attributes: {sex: {role: quasi-identifier, values: [Male, Female]}, ill: {role: other, values: ["yes", "no"]}}
    ... workload: [classify: ill]
    ... method: {diffgen: {epsilon: 1}}
    ... ''')
    >>> not_as_declared(open_table(pa.table({"sex": ["male", "Male", None], "ill": ["no", "no", None]})), policy)
    {'sex': 1, 'ill': 1}
    """
    rows = DeclaredRows(source, policy)
    found = {domain.attribute.name: 0 for domain in rows.domains}
    target = rows.target.attribute
    found[target.name] = 0
    for batch in source.batches(list(found)):
        for name, domain in zip(found, rows.domains, strict=False):
            found[name] += _count_strange(domain, batch.column(name))
        found[target.name] += int(
            np.sum(rows.target.codes(batch.column(target.name)) == len(rows.class_values))
        )
    return {name: n for name, n in found.items() if n}


def _count_strange(domain: Domain, column: Any) -> int:
    """Cells that are there, and unreadable, unknown or outside the bounds."""
    attribute = domain.attribute
    is_missing = lenient_texts(column, attribute).is_null().to_numpy(zero_copy_only=False)
    missing = 0 if isinstance(domain, OrderedDomain) else domain.n_codes - 1
    is_strange = (_encode_cells(domain, column) == missing) & ~is_missing
    if attribute.bounds is not None:
        values = lenient_ordered(column, attribute).cast(pa.float64()).to_numpy(zero_copy_only=False)
        low, high = attribute.bounds
        is_strange |= (values < low) | (values > high)  # NaN, which is missing, is neither
    return int(is_strange.sum())
