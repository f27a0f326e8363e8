"""A table and a side table as a problem: one domain for each column, codes, personal weights.

What the release is checked by must follow from its own policy, so that policy is *closed* (:func:`close_policy`): a
number or date without a hierarchy gets one, and without bounds the range of both tables
(docs/decisions/0014-risk-utility.md).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.encoding.cells import cells_by_value, values_of
from sfumato.encoding.domain import Codes, TreeDomain
from sfumato.encoding.encoders import PersonEncoder, codes_in, tree_domain
from sfumato.encoding.extent import Extent, with_bounds
from sfumato.errors import InputError, PolicyError, TableError, number_of, of_side_table
from sfumato.methods.risk_utility.problem import GREATEST_COUNT, LatticeProblem, MostUtility, problem_of
from sfumato.policy.document import Policy
from sfumato.policy.hierarchy.declarations import (
    DAYS_TO_YEARS,
    Balanced,
    Dates,
    Declaration,
    Intervals,
    Mask,
    widen_from,
)
from sfumato.policy.hierarchy.files import ROOT
from sfumato.policy.options.risk_utility import MOST_UTILITY, THRESHOLD, Absolute, RiskUtilityOptions, Weights
from sfumato.policy.schema import Attribute, Kind, Schema
from sfumato.recoding.recoder import is_text
from sfumato.table import cells as table_cells
from sfumato.table.source import Source

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_POINTS = 1 << 16
"""Values of a number without a hierarchy that are leaves of one; where there are more, intervals are."""

N_INTERVALS = 64
"""Into how many intervals such a number is divided, about."""


@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """A table as a problem. ``schema`` is that of the closed policy; domains are those of its quasi-identifiers."""

    schema: Schema
    domains: tuple[TreeDomain, ...]
    problem: LatticeProblem

    @property
    def with_missing(self) -> tuple[str, ...]:
        """The columns that have a leaf for missing cells."""
        return tuple(domain.attribute.name for domain in self.domains if domain.has_missing)


# ---- closing the policy ------------------------------------------------------------------------------------


def close_policy(policy: Policy, source: Source, side: Source | None = None) -> Policy:
    """The policy with a hierarchy and bounds for every number and date, as the release holds it."""
    return replace(policy, schema=close_schema(policy.schema, source, side))


def close_schema(schema: Schema, source: Source, side: Source | None = None) -> Schema:
    """Columns without a hierarchy get one, and numbers and dates without bounds the range of both tables.

    >>> from sfumato.table.opening import open_table
    >>> ages = open_table(pa.table({"age": [23, 41]}))
    >>> close_schema(Schema.of(age={"role": "quasi-identifier", "kind": "number"}), ages)["age"].bounds
    (23.0, 41.0)
    """
    check_side(schema, side)
    quasi = {attribute.name for attribute in schema.quasi_identifiers if attribute.kind is not Kind.CATEGORY}
    return Schema(
        tuple(
            _close_attribute(attribute, source, side) if attribute.name in quasi else attribute
            for attribute in schema
        )
    )


def _close_attribute(attribute: Attribute, source: Source, side: Source | None) -> Attribute:
    if attribute.hierarchy is not None and not attribute.hierarchy.is_rule:
        return attribute
    extent = Extent(replace(attribute, step=None))
    extent.add_cells(table_cells.ordered(source.column(attribute.name), attribute))
    extent.outer_ends()  # raises if the table has a cell outside its bounds
    if side is not None:
        with of_side_table():
            extent.add_cells(table_cells.ordered(side.column(attribute.name), attribute))
            extent.outer_ends()
    if attribute.kind is Kind.DATE:
        first = int(extent.least) if extent.n_present else 0
        bounds = attribute.bounds or (first, max(first + 1, int(extent.greatest)))
        return replace(attribute, bounds=bounds, hierarchy=attribute.hierarchy or DAYS_TO_YEARS)
    if attribute.finest is not None and attribute.hierarchy is None:
        return _close_in_slices(attribute, extent)
    found = with_bounds(attribute, extent)
    return found if found.hierarchy is not None else replace(found, hierarchy=_halve_range(found, extent))


def _close_in_slices(attribute: Attribute, extent: Extent) -> Attribute:
    """A number that is never finer than a width, as intervals of that width; without bounds they begin at a multiple."""
    width = float(attribute.finest or 1)
    low, high = attribute.bounds or (
        width * math.floor(float(extent.least) / width), width * (math.floor(float(extent.greatest) / width) + 1)
    )  # fmt: skip
    return replace(attribute, bounds=(low, high), hierarchy=widen_from(width, low, high))


def _halve_range(attribute: Attribute, extent: Extent) -> Declaration:
    """``{balanced: 2}``; or where single values would be too many, or are none of its grid, intervals that double."""
    low, high = attribute.bounds or (0.0, 1.0)
    is_whole = float(low).is_integer() and float(high).is_integer()
    if attribute.step is None and not is_whole:
        return Balanced(2)
    has_points = attribute.step is not None or extent.is_whole
    if has_points and (high - low) / (attribute.step or 1) < MOST_POINTS:
        return Balanced(2)
    width = _round_number((high - low) / N_INTERVALS)
    widths = [width * 2**i for i in range(N_INTERVALS.bit_length() - 1)]
    return Intervals(tuple(int(each) if each == int(each) else float(each) for each in widths))


def _round_number(least: float) -> Decimal:
    """The first of 1, 2, 5, 10, 20, ... (or their decimals) that is not below.

    >>> [str(_round_number(number)) for number in (0.0123, 3.0, 781.25)]
    ['0.02', '5', '1.0E+3']
    """
    unit = Decimal(1).scaleb(Decimal(repr(float(least))).adjusted())
    return next(unit * times for times in (1, 2, 5, 10) if float(unit * times) >= least)


# ---- codes -----------------------------------------------------------------------------------------------


def encode_tables(
    source: Source,
    schema: Schema,
    options: RiskUtilityOptions,
    side: Source | None = None,
    unit: str | None = None,
) -> Encoded:
    """The problem of a table: rows, side table, utilities and weights.

    ``unit`` is the column of the person that a row is about: people of the side table are counted, if it is there.

    ``schema`` need not be closed. In code, utilities and personal factors may be functions.
    """
    schema = close_schema(schema, source, side)
    domains, columns, others = [], [], []
    for attribute in schema.quasi_identifiers:
        domain, codes, side_codes = _encode_both(attribute, source, side)
        check_leaf_weights(domain, options.weights)
        domains.append(domain)
        columns.append(codes)
        others.append(side_codes)
    factor = _factors_of(source, schema, options)
    problem = problem_of(
        domains,
        np.stack(columns, axis=1),
        None if side is None else np.stack(others, axis=1),
        utility=options.utility,
        weights=options.weights,
        floor=float(options.floor),
        factor=factor,
        person=_people_of(side or source, unit, schema, is_side=side is not None),
    )
    _check_divisors(problem, options)
    _check_reachable(problem, options)
    _check_limit(problem, options)
    return Encoded(schema, tuple(domains), problem)


def _people_of(source: Source, unit: str | None, schema: Schema, *, is_side: bool) -> Ints | None:
    """Whose each row of the side table is; None if rows count, or the side table does not say."""
    if unit is None or unit not in source.names:
        return None
    with of_side_table() if is_side else nullcontext():
        people, cells = PersonEncoder(schema[unit]), source.column(unit).combine_chunks()
        people.observe(cells, 0)
        people.finish()
        return people.codes(cells).astype(np.int64)


def check_side(schema: Schema, side: Source | None) -> None:
    """Raise if a side table lacks a quasi-identifier, or has more rows than can be counted."""
    if side is None:
        return
    lacking = [attribute.name for attribute in schema.quasi_identifiers if attribute.name not in side.names]
    if lacking:
        more = f" and {len(lacking) - 1:,} more" if len(lacking) > 1 else ""
        raise TableError(
            f"The side table has no column {lacking[0]!r}{more}, and it needs every quasi-identifier of the policy; "
            "add it, or give the column another role."
        )
    if side.n_rows >= GREATEST_COUNT:
        raise InputError(f"The side table has {GREATEST_COUNT:,} rows or more; take a sample of it.")


def _encode_both(
    attribute: Attribute, source: Source, side: Source | None
) -> tuple[TreeDomain, Codes, Codes]:
    """One domain of a column for both tables, and the codes of each."""
    cells, others = _cells_of_both(attribute, source, side)
    _check_not_generalized(attribute, cells)
    values = values_of(cells, attribute)
    if attribute.kind is Kind.CATEGORY and others is not None:
        attribute.build_hierarchy(values)  # whatever is wrong with one table is said of that table
        with of_side_table():
            strangers = values_of(others, attribute)
            attribute.build_hierarchy(strangers)
        values = sorted({*values, *strangers})
    elif others is not None:
        values = np.union1d(values, values_of(others, attribute))
    has_periods = isinstance(attribute.hierarchy, Dates)
    tree = attribute.build_declared_hierarchy() if has_periods else attribute.build_hierarchy(values)
    has_missing = cells.null_count > 0 or (others is not None and others.null_count > 0)
    domain = tree_domain(attribute, tree, has_missing=has_missing)
    codes = codes_in(domain, cells)
    if others is None:
        return domain, codes, codes
    with of_side_table():
        return domain, codes, codes_in(domain, others)


def _check_not_generalized(attribute: Attribute, cells: pa.DictionaryArray) -> None:
    """Raise if a value that the policy does not list looks like a generalized one: nobody could tell them apart."""
    if attribute.kind is not Kind.CATEGORY or not attribute.declaration.is_open(attribute):
        return
    is_mask = isinstance(attribute.hierarchy, Mask)
    texts = cells.dictionary.to_pylist()
    is_alike = np.array([text.endswith(ROOT) if is_mask else text == ROOT for text in [*texts, ""]])
    at = cells.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False)
    if n_alike := int(is_alike[at].sum()):
        which = "end in" if is_mask else "read"
        raise TableError(
            f"Column {attribute.name!r} has {number_of(n_alike, 'cell')} that {which} {ROOT!r}, which is also how a "
            "generalized cell is published. Declare all values of the column, or change these cells."
        )


def _cells_of_both(
    attribute: Attribute, source: Source, side: Source | None
) -> tuple[pa.DictionaryArray, pa.DictionaryArray | None]:
    """The cells of a column in both tables; numbers and the like that are categories are spelled alike."""
    column = source.column(attribute.name)
    if side is None:
        return cells_by_value(column, attribute), None
    other = side.column(attribute.name)
    if attribute.kind is Kind.CATEGORY and column.type == other.type and not is_text(column.type):
        both = cells_by_value(pa.chunked_array(column.chunks + other.chunks), attribute)
        return both.slice(0, len(column)), both.slice(len(column))
    with of_side_table():
        others = cells_by_value(other, attribute)
    return cells_by_value(column, attribute), others


# ---- weights of rows ---------------------------------------------------------------------------------------


def check_leaf_weights(domain: TreeDomain, weights: Weights) -> None:
    """Raise if weights are given to labels that are no values of the column."""
    given = weights.attributes.get(domain.attribute.name)
    if not isinstance(given, Mapping):
        return
    tree = domain.hierarchy
    leaves = {tree.labels[node] for node in tree.leaf_nodes.tolist()}
    if strange := len(given.keys() - leaves):
        raise PolicyError(
            f"{strange} of the labels that are given weights are no values of column {domain.attribute.name!r}; "
            "mend them, or leave them out."
        )


def _factors_of(source: Source, schema: Schema, options: RiskUtilityOptions) -> Floats | None:
    """The personal factors (rows, quasi-identifiers) of all rows, None if weights are not personal."""
    weights = options.weights
    if weights.column is None:
        return None
    names = [attribute.name for attribute in schema.quasi_identifiers]
    if callable(weights.column):
        given = weights.column(pa.table({name: source.column(name) for name in source.names}))
        found = np.array(_broadcast(np.asarray(given, dtype=np.float64), (source.n_rows, len(names))))
        if not np.all(np.isfinite(found) & (found >= 0)):
            raise InputError("The function of personal weights must give finite numbers of at least 0.")
    else:
        found = np.ones((source.n_rows, len(names)))
        for quasi, name in weights.columns():
            numbers = _read_factors(source, schema[name])
            if quasi is None:
                found *= numbers[:, None]
            else:
                found[:, names.index(quasi)] *= numbers
    return found


def _check_divisors(problem: LatticeProblem, options: RiskUtilityOptions) -> None:
    """Raise if a row that is suppressed weighs nothing, where one divides by that."""
    if not options.divides_by_risk and options.private is None:
        return
    weight = problem.weight_of(np.arange(problem.n), np.broadcast_to(problem.top(), problem.rows.shape))
    if n_none := int(problem.n_alike[weight <= 0].sum()):
        what = f"objective {options.objective}" if options.divides_by_risk else "variant paper"
        raise InputError(
            f"{number_of(n_none, 'row')} {'has' if n_none == 1 else 'have'} only weights of 0 (or too small to count), "
            f"and the {what} divides by the weights. Set a floor, for example floor: 0.1."
        )


def _check_reachable(problem: LatticeProblem, options: RiskUtilityOptions) -> None:
    """Raise if a row has less utility as it is than is asked for: then definition 1 has no solution for it."""
    asked = options.utility_at_least
    if options.objective != THRESHOLD or not isinstance(asked, Absolute):
        return
    is_below = problem.raw_utility < problem.need(asked)
    if n_below := int(problem.n_alike[is_below].sum()):
        least = float(problem.raw_utility.min()) * problem.utility_unit
        has, they_are = ("has", "it is") if n_below == 1 else ("have", "they are")
        raise InputError(
            f"utility-at-least asks for {float(asked.value):.6g}, and {number_of(n_below, 'row')} {has} less even as "
            f"{they_are}; ask for at most {least:.6g}, or for a share of each row's own, such as utility-at-least: 0.6."
        )


def _check_limit(problem: LatticeProblem, options: RiskUtilityOptions) -> None:
    """Raise if a row has more risk than is allowed even when it is suppressed: nothing has less."""
    if options.objective != MOST_UTILITY or options.risk_at_most is None:
        return
    top = problem.suppressed(np.arange(problem.n))
    is_above = ~problem.allows(MostUtility(options.risk_at_most), top.covered, top.weight)
    if n_above := int(problem.n_alike[is_above].sum()):
        has, they_are = ("has", "it is") if n_above == 1 else ("have", "they are")
        raise InputError(
            f"risk-at-most asks for {float(options.risk_at_most):.6g}, and {number_of(n_above, 'row')} {has} more even "
            f"when {they_are} suppressed: up to {float(problem.risk(top).max()):.6g}, by the floor or by weights of "
            "roots. Allow more risk, or take a smaller floor or other weights."
        )


def _broadcast(given: Floats, shape: tuple[int, int]) -> Floats:
    """A number for each row and quasi-identifier, of what a function gave."""
    try:
        return np.broadcast_to(given[:, None] if given.ndim == 1 else given, shape)
    except ValueError:
        raise InputError(
            "The function of personal weights must give a number for each row, or one for each row and quasi-identifier."
        ) from None


def _read_factors(source: Source, attribute: Attribute) -> Floats:
    """A column of personal weights: numbers of at least 0, none missing."""
    cells = table_cells.numbers(source.column(attribute.name), attribute)
    if cells.null_count:
        raise TableError(
            f"Column {attribute.name!r} holds personal weights and is missing in {number_of(cells.null_count, 'row')}; "
            "fill it in (1 is the weight of the others)."
        )
    numbers = np.asarray(cells.to_numpy(zero_copy_only=False)).astype(np.float64)
    if n_negative := int(np.count_nonzero(numbers < 0)):
        raise TableError(
            f"Column {attribute.name!r} holds personal weights, and {n_negative:,} of them are below 0; mend them."
        )
    if len(numbers) and numbers.max() > 1e9:
        raise TableError(f"Column {attribute.name!r} holds personal weights above 1e9; divide them all.")
    return numbers


__all__ = ["Encoded", "check_leaf_weights", "check_side", "close_policy", "close_schema", "encode_tables"]
