"""Random tables, policies and predicates of every kind of quasi-identifier, and what is published of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from sfumato import methods
from sfumato.policy.document import Policy
from sfumato.recoding import statistics
from sfumato.table.opening import open_table


def quoted(value):
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


TREE = "hierarchy: {tree: {'*': {ab: [a, b], cd: [c, d, e]}}}"
ATTRIBUTES = {
    "whole": "type: number",
    "bounded": "type: number, bounds: [0, 9]",
    "real": "type: number",
    "day": "type: date",
    "flat": "hierarchy: flat",
    "declared": "values: [a, b, c, d, e, f]",
    "tree": TREE,
    "zip": "hierarchy: {mask: 2}",
    "grid": "type: number, bounds: [0, 8], hierarchy: {intervals: [2, 4]}",
    "months": "type: date, hierarchy: {dates: [month, year]}",
    "codes": "type: number, hierarchy: flat",
}
WORDS: dict[str, Sequence[Any]] = {
    "whole": [0, 1, 2, 5, 8],
    "bounded": [1, 2, 3, 8],
    "real": [0.5, 1.0, 2.25, 7.5],
    "day": ["2020-01-30", "2020-01-31", "2020-02-02"],
    "flat": ["a", "b", "c"],
    "declared": ["a", "b", "c"],
    "tree": ["a", "b", "c", "d", "e"],
    "zip": ["11", "12", "21", "3"],
    "grid": [0.0, 1.0, 2.0, 3.0, 5.0, 8.0],
    "months": ["2020-01-30", "2020-01-31", "2020-02-02", "2021-02-02"],
    "codes": [1.0, 2.0, 5.0],
}
ORDERED = ("whole", "bounded", "real", "day", "grid", "months", "codes")


@st.composite
def releases(draw, outputs=("labels", "bounds", "both", "summary")):
    """A table with a column ``size`` beside its quasi-identifiers, its policy, and a predicate."""
    names = draw(st.lists(st.sampled_from(sorted(ATTRIBUTES)), min_size=1, max_size=3, unique=True))
    n = draw(st.integers(1, 14))
    cell = {name: st.sampled_from(WORDS[name]) | st.none() for name in names}
    columns = {name: draw(st.lists(cell[name], min_size=n, max_size=n)) for name in names}
    lines = "\n".join(f"  {name}: {{role: quasi-identifier, {ATTRIBUTES[name]}}}" for name in names)
    k, output = draw(st.integers(1, min(n, 4))), draw(st.sampled_from(outputs))
    method = draw(st.sampled_from(["mondrian", "tds\nworkload: [classify: kind]"]))
    policy = Policy.parse(f"""
attributes:
{lines}
  size: {{role: other, type: number}}
  kind: {{role: other}}
require: [k-anonymity: {k}]
output: {{values: {output}}}
method: {method}
""")
    where = draw(conditions_on(names))
    types = {name: pa.string() if isinstance(WORDS[name][0], str) else pa.float64() for name in names}
    table = pa.table({name: pa.array(cells, types[name]) for name, cells in columns.items()})
    sizes = st.lists(st.integers(-9, 9) | st.none(), min_size=n, max_size=n)
    kinds = st.lists(st.sampled_from(["+", "-"]), min_size=n, max_size=n)
    table = table.append_column("size", pa.array(draw(sizes), pa.int64()))
    return table.append_column("kind", pa.array(draw(kinds))), policy, where


def conditions_on(names):
    @st.composite
    def one(draw):
        name = draw(st.sampled_from(names))
        value = st.sampled_from([*WORDS[name], *([1.5] if isinstance(WORDS[name][0], float) else [])]).map(
            quoted
        )
        shapes = ["{} = {}", "{} <> {}", "{} is null", "{} is not null", "{} in ({}, {})"]
        if name in ORDERED:
            shapes += ["{} < {}", "{} >= {}", "{} > {}", "{} between {} and {}", "{} not between {} and {}"]
        return draw(st.sampled_from(shapes)).format(name, draw(value), draw(value))

    return st.recursive(
        one(),
        lambda inner: st.tuples(inner, st.sampled_from(["and", "or", "and not"]), inner).map(
            lambda x: f"({x[0]} {x[1]} ({x[2]}))"
        ),
        max_leaves=4,
    )


def published(table, policy):
    """The published quasi-identifiers in the order of the rows of the table, with the recoding."""
    source = open_table(table)
    groups = methods.partition(source, policy)
    columns = groups.columns()
    order = np.argsort(groups.row_numbers)
    if policy.statistics:
        columns |= statistics.columns(source, policy, groups)
    rows = pa.table(columns).take(pa.array(order))
    for name in ("size", "kind"):
        if name in source.names:
            rows = rows.append_column(name, source.column(name))
    return source, rows, groups.recoding
