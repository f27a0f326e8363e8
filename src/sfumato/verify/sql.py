"""The requirements of a policy as SQL, for a warehouse that holds the published rows in a table ``release``.

Each requirement is one statement, written out below in DuckDB's SQL and translated by sqlglot. It returns the groups that
fail: no row means that the requirement holds. Nothing is run here, and no row is read.

Ties are decided as ``verify`` decides them: counts are compared as whole numbers, entropy and variance with the
tolerances of :mod:`sfumato.verify.requirements`. Numbers are read in double precision.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sfumato.errors import InputError
from sfumato.policy.document import Policy
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.output import Form
from sfumato.policy.requirements import (
    DistinctDiversity,
    EntropyDiversity,
    KAnonymity,
    RecursiveDiversity,
    Requirement,
    TCloseness,
    VarianceDiversity,
)
from sfumato.policy.schema import Attribute, Kind, Schema
from sfumato.release.certificate import Certificate
from sfumato.release.folder import CERTIFICATE, RELEASES, read_piece
from sfumato.table.cells import NUMBER
from sfumato.table.reading import AS_USUAL, Reading, open_as
from sfumato.verify.checks import without_stop
from sfumato.verify.requirements import ENTROPY_TOLERANCE, VARIANCE_TOLERANCE
from sfumato.verify.rows import (
    check_columns,
    group_columns,
    published_names,
    raw_names,
    read_header,
    stored_names,
)

DIALECTS = ("duckdb", "spark", "snowflake", "bigquery", "postgres")

HEADER = """\
-- Requirements of the policy, for a table named release that holds the published rows.
-- Each statement returns the groups that fail; no row means that the requirement holds.
-- Cells count as they stand: texts that only look alike are different values here (no NFKC folding; sfumato verify
-- folds sensitive values and says where that merges some), and 0.0 and -0.0 are one number."""

NO_SQL = "-- The claims of this policy ({}) have no SQL: sfumato verify checks them in the release folder."
NO_SQL_FOR = (
    "-- requirement: {}\n-- It has no SQL, as the policy does not list the values: sfumato verify checks it."
)
WITHOUT_SQL: Mapping[Form, str] = {
    Form.COUNTS: "differential privacy",
    Form.SAMPLE: "differential privacy",
    Form.BOXES: "risk and utility of single rows",
}
"""What is claimed of releases that no statement about groups can check, by what their rows are."""
NO_PEOPLE = "-- Groups count people, and a release does not say whose its rows are: no SQL can count them."
NOTHING_REQUIRED = "-- The policy requires nothing of the groups."

# ---- the definitions -------------------------------------------------------------------------------
#
# {cells} are the columns that tell groups apart, {value} is the sensitive value of a row, null where it is missing.
# {partition} is {cells}, as texts in BigQuery, which divides no rows by floats. Other names are of results, and get
# another where a published column has the same.

K_ANONYMITY = """
SELECT {cells}, COUNT(*) AS {n_rows}
FROM release
GROUP BY {cells}
HAVING COUNT(*) < {k}
"""

DISTINCT_DIVERSITY = """
WITH sensitive AS (SELECT {cells}, {value} AS {sensitive_value} FROM release),
distinct_values AS (SELECT {cells}, {sensitive_value} FROM sensitive GROUP BY {cells}, {sensitive_value})
SELECT {cells}, COUNT(*) AS {n_values}
FROM distinct_values
GROUP BY {cells}
HAVING COUNT(*) < {l}
"""

EQUAL_CLOSENESS = """
WITH sensitive AS (SELECT {cells}, {value} AS {sensitive_value} FROM release),
whole AS (SELECT {sensitive_value}, COUNT(*) AS {n_in_table} FROM sensitive GROUP BY {sensitive_value}),
counts AS (
  SELECT {cells}, {sensitive_value}, COUNT(*) AS {n_rows}, SUM(COUNT(*)) OVER (PARTITION BY {partition}) AS {n_in_group}
  FROM sensitive
  GROUP BY {cells}, {sensitive_value}
),
gaps AS (
  SELECT {cells}, {n_in_group}, (SELECT COUNT(*) FROM release) AS {n_all},
    ABS({n_rows} * (SELECT COUNT(*) FROM release) - {n_in_group} * whole.{n_in_table})
      - {n_in_group} * whole.{n_in_table} AS {gap}
  FROM counts JOIN whole ON counts.{sensitive_value} IS NOT DISTINCT FROM whole.{sensitive_value}
)
SELECT {cells}, (SUM({gap}) + MAX({n_in_group} * {n_all})) / (2e0 * MAX({n_in_group} * {n_all})) AS {distance}
FROM gaps
GROUP BY {cells}
HAVING (SUM({gap}) + MAX({n_in_group} * {n_all})) * {denominator} > 2 * MAX({n_in_group} * {n_all}) * {numerator}
"""
"""Half of the sum of |p - q|, times the rows of group and table; a value that a group lacks adds q."""

GROUPS_WITH_NUMBERS = """
WITH sensitive AS (SELECT {cells}, {value} AS {sensitive_value} FROM release),
counts AS (
  SELECT {cells}, {sensitive_value}, COUNT(*) AS {n_rows}
  FROM sensitive
  GROUP BY {cells}, {sensitive_value}
),
numbered AS (
  SELECT {cells}, {sensitive_value}, {n_rows}, DENSE_RANK() OVER (ORDER BY {cells}) AS {group_number}
  FROM counts
),
all_groups AS (
  SELECT {cells}, {group_number}, SUM({n_rows}) AS {n_in_group}
  FROM numbered
  GROUP BY {cells}, {group_number}
),
"""
"""Groups get numbers, so that they can be joined without comparing all their cells."""

PLACES_OF_NUMBERS = """
places AS (
  SELECT {group_number}, {n_rows}, 0 AS {is_unlisted},
    DENSE_RANK() OVER (ORDER BY CASE WHEN {sensitive_value} IS NULL THEN 1 ELSE 0 END, {in_order}) AS {place}
  FROM numbered
),
"""
"""Every value that occurs has a place in the order, from 1 without gaps; missing has the last."""

PLACES_OF_LABELS = """
places AS (
  SELECT {group_number}, {n_rows},
    CASE WHEN {sensitive_value} IS NOT NULL AND listed.{listed_value} IS NULL THEN 1 ELSE 0 END AS {is_unlisted},
    DENSE_RANK() OVER (ORDER BY CASE WHEN {sensitive_value} IS NULL THEN 1 ELSE 0 END, listed.{position}) AS {place}
  FROM numbered
  LEFT JOIN (VALUES {listed_values}) AS listed({listed_value}, {position})
    ON numbered.{sensitive_value} = listed.{listed_value}
),
"""
"""The same by the order that the policy declares."""

DISTANCE_IN_ORDER = """
whole AS (SELECT {place}, SUM({n_rows}) AS {n_in_table} FROM places GROUP BY {place}),
gaps AS (
  SELECT all_groups.{group_number}, whole.{place},
    COALESCE(places.{n_rows}, 0) * (SELECT COUNT(*) FROM release) - all_groups.{n_in_group} * whole.{n_in_table} AS {gap}
  FROM all_groups CROSS JOIN whole
  LEFT JOIN places ON places.{group_number} = all_groups.{group_number} AND places.{place} = whole.{place}
),
moves AS (
  SELECT {group_number}, ABS(SUM({gap}) OVER (PARTITION BY {group_number} ORDER BY {place})) AS {moved}
  FROM gaps
),
works AS (SELECT {group_number}, SUM({moved}) AS {work} FROM moves GROUP BY {group_number}),
longest AS (
  SELECT CASE WHEN COUNT(*) > 1 THEN COUNT(*) - 1 ELSE 1 END * (SELECT COUNT(*) FROM release) AS {most_work}
  FROM whole
)
SELECT {cells}, {work} / (1e0 * {n_in_group} * {most_work}) AS {distance}
FROM all_groups
JOIN works ON works.{group_number} = all_groups.{group_number}
CROSS JOIN longest
WHERE {work} * {denominator} > {n_in_group} * {most_work} * {numerator}
  OR all_groups.{group_number} IN (SELECT {group_number} FROM places WHERE {is_unlisted} = 1)
"""
"""From each place to the next moves what the group has too much or too little up to there: a cumulative sum.

A group with a value that the policy does not list fails.
"""

DISTANCE_IN_TREE = """
listed AS (SELECT * FROM (VALUES {listed_nodes}) AS nodes({listed_value}, {node}, {weight})),
by_node AS (
  SELECT {group_number}, {node}, {weight}, SUM({n_rows}) AS {n_rows}
  FROM numbered JOIN listed ON numbered.{sensitive_value} IS NOT DISTINCT FROM listed.{listed_value}
  GROUP BY {group_number}, {node}, {weight}
),
whole AS (SELECT {node}, {weight}, SUM({n_rows}) AS {n_in_table} FROM by_node GROUP BY {node}, {weight}),
gaps AS (
  SELECT all_groups.{group_number}, whole.{weight} * ABS(
    COALESCE(by_node.{n_rows}, 0) * (SELECT COUNT(*) FROM release) - all_groups.{n_in_group} * whole.{n_in_table}
  ) AS {gap}
  FROM all_groups CROSS JOIN whole
  LEFT JOIN by_node ON by_node.{group_number} = all_groups.{group_number} AND by_node.{node} = whole.{node}
),
works AS (SELECT {group_number}, SUM({gap}) AS {work} FROM gaps GROUP BY {group_number}),
longest AS (SELECT {twice_height} * COUNT(*) AS {most_work} FROM release)
SELECT {cells}, {work} / (1e0 * {n_in_group} * {most_work}) AS {distance}
FROM all_groups
LEFT JOIN works ON works.{group_number} = all_groups.{group_number}
CROSS JOIN longest
WHERE {work} * {denominator} > {n_in_group} * {most_work} * {numerator}
  OR all_groups.{group_number} IN (
    SELECT {group_number} FROM numbered
    WHERE {sensitive_value} IS NOT NULL
      AND {sensitive_value} NOT IN (SELECT {listed_value} FROM listed WHERE {listed_value} IS NOT NULL)
  )
"""
"""What a group has too much or too little at each node below the root, times how much higher its parent stands.

That is twice the paper's sum: at a node, min(too much, too little) of its children is half of the sum of |p - q| over
them, less half of its own. A group with a value that the policy does not list fails.
"""

ENTROPY_DIVERSITY = """
WITH sensitive AS (SELECT {cells}, {value} AS {sensitive_value} FROM release),
counts AS (
  SELECT {cells}, CAST(COUNT(*) AS DOUBLE) AS {n_rows}
  FROM sensitive
  GROUP BY {cells}, {sensitive_value}
),
entropies AS (
  SELECT {cells}, LN(SUM({n_rows})) - SUM({n_rows} * LN({n_rows})) / SUM({n_rows}) AS {entropy}
  FROM counts
  GROUP BY {cells}
)
SELECT {cells}, EXP({entropy}) AS {as_equally_frequent_values}
FROM entropies
WHERE {entropy} < LN(CAST({l} AS DOUBLE)) - {tolerance}
"""
"""The entropy of values that n_1, n_2, ... of n rows have: ln n - (n_1 ln n_1 + n_2 ln n_2 + ...) / n."""

RECURSIVE_DIVERSITY = """
WITH sensitive AS (SELECT {cells}, {value} AS {sensitive_value} FROM release),
counts AS (
  SELECT {cells}, {sensitive_value}, COUNT(*) AS {n_rows}
  FROM sensitive
  GROUP BY {cells}, {sensitive_value}
),
places AS (
  SELECT {cells}, {n_rows}, ROW_NUMBER() OVER (PARTITION BY {partition} ORDER BY {n_rows} DESC) AS {place}
  FROM counts
),
sums AS (
  SELECT {cells}, MAX({n_rows}) AS {most_frequent}, SUM(CASE WHEN {place} >= {l} THEN {n_rows} ELSE 0 END) AS {tail}
  FROM places
  GROUP BY {cells}
)
SELECT {cells}, {most_frequent}, {tail}
FROM sums
WHERE {most_frequent} * {denominator} >= {tail} * {numerator}
"""
"""The most frequent value against c times those from the l-th most frequent on, where c is a fraction."""

VARIANCE_DIVERSITY = """
WITH sensitive AS (SELECT {cells}, {value} AS {sensitive_value} FROM release),
moved AS (
  SELECT {cells}, {sensitive_value} - MIN({sensitive_value}) OVER (PARTITION BY {partition}) AS {above_least}
  FROM sensitive
),
variances AS (
  SELECT {cells}, COALESCE(VAR_POP({above_least}), 0) AS {variance}
  FROM moved
  GROUP BY {cells}
)
SELECT {cells}, {variance}
FROM variances
WHERE {variance} < CAST({at_least} AS DOUBLE) * {almost_one}
"""
"""Numbers are moved to begin at 0 in each group: that changes no variance, and keeps small differences of large ones."""


def _fraction(requirement: RecursiveDiversity) -> dict[str, Any]:
    """The numbers of recursive diversity; (c, 1)-diversity always holds, as if c were infinite."""
    c = requirement.exact_c
    numerator, denominator = (1, 0) if requirement.l == 1 else (c.numerator, c.denominator)
    return {"l": requirement.l, "numerator": numerator, "denominator": denominator}


def _closeness(requirement: TCloseness) -> dict[str, Any]:
    return {"numerator": requirement.exact_t.numerator, "denominator": requirement.exact_t.denominator}


DEFINITIONS: Mapping[type[Requirement], tuple[str, Callable[[Any], Mapping[str, Any]]]] = {
    KAnonymity: (K_ANONYMITY, lambda it: {"k": it.k}),
    DistinctDiversity: (DISTINCT_DIVERSITY, lambda it: {"l": it.l}),
    EntropyDiversity: (ENTROPY_DIVERSITY, lambda it: {"l": it.l, "tolerance": ENTROPY_TOLERANCE}),
    RecursiveDiversity: (RECURSIVE_DIVERSITY, _fraction),
    TCloseness: (EQUAL_CLOSENESS, _closeness),
    VarianceDiversity: (
        VARIANCE_DIVERSITY,
        lambda it: {"at_least": it.at_least, "almost_one": 1 - VARIANCE_TOLERANCE},
    ),
}
"""The statement of each requirement, and the numbers to fill in; other distances than equal have their own."""

INFINITE = "CAST('Infinity' AS DOUBLE)"
FIGURES: Mapping[type[Requirement], str] = {
    KAnonymity: "{n_rows}",
    DistinctDiversity: "{n_values}",
    EntropyDiversity: "{as_equally_frequent_values}",
    RecursiveDiversity: f"CASE WHEN {{tail}} = 0 THEN {INFINITE} ELSE CAST({{most_frequent}} AS DOUBLE) / {{tail}} END",
    TCloseness: "{distance}",
    VarianceDiversity: "{variance}",
}
"""The figure of a group, of what the statement returns."""

TOO_MUCH: Mapping[type[Requirement], Mapping[str, Any]] = {
    KAnonymity: {"k": 2**62},
    DistinctDiversity: {"l": 2**62},
    EntropyDiversity: {"l": 1e300},
    RecursiveDiversity: {"numerator": 0, "denominator": 1},
    TCloseness: {"numerator": -1, "denominator": 1},
    VarianceDiversity: {"at_least": 1e300},
}
"""Numbers that no group reaches: all of them fail, so that the statement returns the figure of each."""


def _define(requirement: Requirement, policy: Policy) -> tuple[str, Mapping[str, Any]]:
    """The statement of a requirement, and what is to be filled in beside names."""
    text, numbers = DEFINITIONS[type(requirement)]
    fields = numbers(requirement)
    if not isinstance(requirement, TCloseness) or requirement.distance == "equal":
        return text, fields
    attribute = policy.schema[requirement.of]
    if requirement.distance == "hierarchical":
        return GROUPS_WITH_NUMBERS + DISTANCE_IN_TREE, {**fields, **_list_nodes(attribute)}
    if attribute.kind is Kind.CATEGORY:
        text = GROUPS_WITH_NUMBERS + PLACES_OF_LABELS + DISTANCE_IN_ORDER
        return text, {**fields, "listed_values": _list_values(attribute)}
    return GROUPS_WITH_NUMBERS + PLACES_OF_NUMBERS + DISTANCE_IN_ORDER, fields


def _list_values(attribute: Attribute) -> str:
    """The values that the policy lists, each with its position in their order, as rows of SQL.

    >>> _list_values(Attribute("grade", "sensitive", values=["good", "bad"]))
    "('good', 0), ('bad', 1)"
    """
    tree = attribute.build_hierarchy(())
    return ", ".join(f"({write_literal(label)}, {leaf})" for label, leaf in _find_leaves(attribute, tree))


def _list_nodes(attribute: Attribute) -> dict[str, Any]:
    """Every value with each node above it and below the root: rows of value, node, and how much higher its parent is.

    >>> _list_nodes(Attribute("job", "sensitive", hierarchy={"tree": {"*": {"Art": ["Dancer"]}}}))["listed_nodes"]
    "('Dancer', 2, 1), ('Dancer', 1, 1), (NULL, 3, 2)"
    """
    tree = attribute.build_hierarchy(()).with_missing()
    height = [0] * tree.n_nodes
    parent = tree.parent.tolist()
    for node in range(tree.n_nodes - 1, 0, -1):
        height[parent[node]] = max(height[parent[node]], height[node] + 1)
    rows = []
    for label, leaf in [*_find_leaves(attribute, tree), (None, tree.n_leaves - 1)]:
        node = int(tree.leaf_nodes[leaf])
        while node:
            rows.append(f"({write_literal(label)}, {node}, {height[parent[node]] - height[node]})")
            node = parent[node]
    return {"listed_nodes": ", ".join(rows), "twice_height": 2 * height[0]}


def _find_leaves(attribute: Attribute, tree: Hierarchy) -> list[tuple[str, int]]:
    """The values at the leaves of a hierarchy, and the leaf of each."""
    labels = [tree.labels[node] for node in tree.leaf_nodes.tolist()]
    known = list(dict.fromkeys(label for label in labels if label is not None))
    return list(zip(known, attribute.locate(tree, known).tolist(), strict=True))


def has_sql(requirement: Requirement, schema: Schema) -> bool:
    """Is the requirement printed as SQL? A distance by an order or hierarchy that the table makes is not."""
    if not isinstance(requirement, TCloseness) or requirement.distance == "equal":
        return True
    attribute = schema[requirement.of]
    return attribute.kind is not Kind.CATEGORY or attribute.declaration.is_complete(attribute)


# ---- what is printed -------------------------------------------------------------------------------


def sql_of_folder(folder: Path, dialect: str) -> str:
    """The requirements of the policy that a release was made by."""
    try:
        policy = Policy.from_dict(Certificate.from_json(read_piece(folder, CERTIFICATE)).policy, None)
    except InputError as error:
        raise InputError(f"The certificate in {folder} cannot be read: {without_stop(error)}.") from None
    return sql_of(policy, published_names(policy, _columns_in(folder)), dialect)


def _columns_in(folder: Path) -> Sequence[str]:
    """The columns of the rows in a release folder; none if there are no rows, which ``verify`` will say."""
    try:
        if (folder / RELEASES["csv"]).exists():
            return read_header(folder / RELEASES["csv"])
    except (OSError, ValueError, csv.Error):
        raise InputError(f"The columns of {folder / RELEASES['csv']} cannot be read.") from None
    return stored_names(folder / RELEASES["parquet"])


def sql_of_table(table: Any, policy: Policy, dialect: str, *, reading: Reading = AS_USUAL) -> str:
    """The requirements of a policy, of a table that any tool made; only its header is looked at."""
    names = open_as(table, policy.schema, reading, lazy=True).names
    policy = policy.expand(raw_names(names, policy))
    check_columns(names, policy)
    return sql_of(policy, names, dialect)


def sql_of(policy: Policy, names: Sequence[str], dialect: str) -> str:
    r"""All that is printed of a policy and a release with columns of these names.

    >>> policy = Policy.parse("{attributes: {zip: {role: quasi-identifier}}, require: [k-anonymity: 2]}")
    >>> print("\n".join(sql_of(policy, ["zip"], "postgres").splitlines()[-9:]))
    -- requirement: k-anonymity 2
    SELECT
      "zip",
      COUNT(*) AS "n_rows"
    FROM release
    GROUP BY
      "zip"
    HAVING
      COUNT(*) < 2
    """
    if policy.person is not None:
        return f"{HEADER}\n{NO_PEOPLE}"
    if policy.method.form in WITHOUT_SQL:
        return f"{HEADER}\n{NO_SQL.format(WITHOUT_SQL[policy.method.form])}"
    if not policy.requirements:
        return f"{HEADER}\n{NOTHING_REQUIRED}"
    lacking = [item for item in policy.requirements if not has_sql(item, policy.schema)]
    notes = [NO_SQL_FOR.format(_words(item)) for item in lacking]
    printed = [f"-- requirement: {name}\n{text}" for name, text in statements(policy, names, dialect)]
    joined = [";\n\n".join(printed)] if printed else []  # none after the last: dbt takes a statement without
    return "\n\n".join([HEADER, *notes, *joined])


def statements(policy: Policy, names: Sequence[str], dialect: str) -> Iterator[tuple[str, str]]:
    """Each requirement that has SQL as a line of words, and its statement."""
    for requirement in (item for item in policy.requirements if has_sql(item, policy.schema)):
        text = _statement(requirement, policy, names, dialect)
        yield _words(requirement), translate(text, dialect)


def count_failing(requirement: Requirement, policy: Policy, names: Sequence[str]) -> str:
    """How many groups its statement returns, ``n_groups``, in DuckDB's SQL."""
    return f"SELECT COUNT(*) AS n_groups FROM ({_statement(requirement, policy, names)}) AS failing"


def find_worst(requirement: Requirement, policy: Policy, names: Sequence[str]) -> str:
    """The figure of the ``worst`` group: the statement returns all groups if its numbers are too much for any."""
    kind, cells = type(requirement), group_columns(policy, names)
    figure = FIGURES[kind].format_map(
        {word: quote_name(_free(word, cells)) for word in _words_in(FIGURES[kind])}
    )
    worst = "MAX" if requirement.is_better_smaller else "MIN"
    text = _statement(requirement, policy, names, **TOO_MUCH[kind])
    return f"SELECT CAST({worst}({figure}) AS DOUBLE) AS worst FROM ({text}) AS found"


def _statement(
    requirement: Requirement, policy: Policy, names: Sequence[str], dialect: str = "duckdb", **other: Any
) -> str:
    """The statement of a requirement in DuckDB's SQL; ``other`` numbers stand in place of its own."""
    text, given = _define(requirement, policy)
    attribute = None if requirement.of is None else policy.schema[requirement.of]
    return fill_in(text, policy, names, dialect, attribute, **{**given, **other})


def fill_in(
    text: str,
    policy: Policy,
    names: Sequence[str],
    dialect: str = "duckdb",
    of: Attribute | None = None,
    **given: Any,
) -> str:
    """A statement about groups, and the values ``of`` a column, with all names filled in."""
    cells = group_columns(policy, names)
    quoted = [quote_name(name) for name in cells]
    parts = [f"CAST({name} AS TEXT)" for name in quoted] if dialect == "bigquery" else quoted
    fields = {word: quote_name(_free(word, cells)) for word in _words_in(text)}
    fields |= {"cells": ", ".join(quoted), "partition": ", ".join(parts), **given}
    if of is not None:
        fields["value"] = _value(of)
        value = fields.get("sensitive_value", "")
        fields["in_order"] = f"CAST({value} AS DATE)" if of.kind is Kind.DATE else value
    return text.format_map(fields)


def translate(text: str, dialect: str) -> str:
    """DuckDB's SQL as another warehouse writes it."""
    import sqlglot  # noqa: PLC0415 - takes a fifth of a second, and few need it

    [written] = sqlglot.transpile(text, read="duckdb", write=dialect, pretty=True)
    return written


def _words_in(text: str) -> list[str]:
    return re.findall(r"\{(\w+)\}", text)


def _words(requirement: Requirement) -> str:
    r"""The requirement as a policy writes it, on one line whatever its columns are called.

    >>> _words(EntropyDiversity(3, of="ill\nness"))
    'entropy-diversity l 3, of "ill\\nness"'
    """
    [(word, given)] = requirement.as_policy().items()
    if not isinstance(given, Mapping):
        return f"{word} {given}"
    return f"{word} " + ", ".join(f"{key} {json.dumps(item)}" for key, item in given.items())


def _value(attribute: Attribute) -> str:
    """The sensitive value of a row: null where the cell is empty or a text that the policy declares as missing."""
    text = f"CAST({quote_name(attribute.name)} AS TEXT)"
    if attribute.kind is not Kind.NUMBER:
        return without_words(text, ["", *attribute.missing_values])
    absent = [float(word) for word in attribute.missing_values if re.fullmatch(NUMBER, word.strip())]
    words = [word.strip().lower() for word in attribute.missing_values]
    number = f"CAST({without_words(f'LOWER(TRIM({text}))', ['', 'nan', *words])} AS DOUBLE)"
    for each in absent:
        number = f"NULLIF({number}, {each!r})"
    return number


def without_words(text: str, missing: Sequence[str]) -> str:
    for word in dict.fromkeys(missing):
        text = f"NULLIF({text}, {write_literal(word)})"
    return text


def write_literal(text: str | None) -> str:
    """A text as SQL writes it."""
    return "NULL" if text is None else "'{}'".format(text.replace("'", "''"))


def quote_name(name: str) -> str:
    return '"{}"'.format(name.replace('"', '""'))


def _free(word: str, names: Sequence[str]) -> str:
    """A name for a result that no published column has, in upper or lower case.

    >>> _free("share", ["zip", "Share"])
    'share_'
    """
    taken = {name.lower() for name in names}
    while word in taken:
        word += "_"
    return word
