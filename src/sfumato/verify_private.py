r"""Does a differentially private release say what it may? Judged from its folder and its policy alone.

Nothing here knows how the release was drawn. The declared domains are read from the policy anew, and from them
follows what can be seen of an output:

- the *cuts* divide each declared domain: thresholds on its grid, nodes of its hierarchy that cover it once;
- every cell of the grid of cuts is there with every class, the empty ones too [MCFY11, section 4.2], and each count
  is a whole number of at least 0;
- the *ledger* holds one draw for each specialization and one for the counts, each share and scale as the method's
  formula says, and what was spent and what was not sum to epsilon, in exact fractions.

What no output can show is the randomness: that it was secret, and followed the laws that the ledger names.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato import hierarchy as hierarchies
from sfumato.errors import InputError
from sfumato.filed import FiledRows
from sfumato.hierarchy import Hierarchy
from sfumato.policy import Policy
from sfumato.release import Certificate, Claims
from sfumato.schema import Attribute, Kind
from sfumato.tables import texts
from sfumato.verify_checks import Check, equal

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

OR_MISSING = " or missing"
COUNT = "count"
WHOLE_NUMBER = r"^[0-9]{1,18}$"
NEAR = Fraction(1, 10**6)
"""How far a threshold may lie from its grid point, in steps: it is stored as a float."""

_EPOCH = date(1970, 1, 1)

RANDOMNESS = Check(
    "the randomness itself cannot be checked from an output",
    True,
    "that it was secret and followed the laws of the ledger is taken at the certificate's word",
)
SEEDED = Check("nothing is promised", True, "the noise was not secret, and whoever can repeat it can take it away")


class Illegal(Exception):  # noqa: N818 - reads as a sentence, and never leaves this module
    """What is wrong with a recoding."""


# ---- the cut of one attribute ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """The pieces of one attribute's cut: by column, what every piece is published as; and how often it was split."""

    labels: Mapping[str, Sequence[str | None]]
    numbers: Mapping[str, Sequence[float | None]]
    n_pieces: int
    n_splits: int


def cuts_of(policy: Policy, document: Any) -> list[Cut]:
    """The cuts that a recoding says, if they divide the declared domains; Illegal if they do not."""
    if not isinstance(document, dict) or (document.get("format"), document.get("kind")) != (1, "cuts"):
        raise Illegal("it is no recoding by cuts")
    if document.get("output") != str(policy.output):
        raise Illegal("its output is not that of the policy")
    entries, thresholds = document.get("attributes"), document.get("thresholds")
    quasi = policy.schema.quasi_identifiers
    if not isinstance(entries, list) or not isinstance(thresholds, list) or len(thresholds) != len(entries):
        raise Illegal("it lacks the attributes, or their thresholds")
    names = [entry.get("name") if isinstance(entry, dict) else None for entry in entries]
    if names != [attribute.name for attribute in quasi]:
        raise Illegal("its attributes are not the quasi-identifiers")
    found = []
    for attribute, entry, points in zip(quasi, entries, thresholds, strict=True):
        try:
            read = _ordered_cut if attribute.is_ordered else _tree_cut
            found.append(read(attribute, entry, points, policy))
        except Illegal as error:
            raise Illegal(f"{error} (column {attribute.name!r})") from None
        except (KeyError, TypeError, ValueError, OverflowError):
            raise Illegal(f"the cut of column {attribute.name!r} cannot be read") from None
    return found


def _ordered_cut(attribute: Attribute, entry: Mapping[str, Any], points: Any, policy: Policy) -> Cut:
    """Thresholds ascend on the declared grid; missing lies below all numbers."""
    assert attribute.bounds is not None  # a private policy declares them
    low, high = map(_exact, attribute.bounds)
    step = _exact(attribute.step or 1)
    said = {key: _exact(entry[key]) for key in ("low", "high", "grid")}
    if entry["kind"] != "ordered" or said != {"low": low, "high": high, "grid": step} or entry["missing"] is not True:
        raise Illegal("bounds or step are not those that were declared")
    places = [-1 if point is None else _place(point, low, step) for point in points]
    if any(place < -1 or place >= (high - low) / step for place in places):
        raise Illegal("a threshold leaves nothing on one side")
    if any(place >= after for place, after in zip(places, places[1:], strict=False)):
        raise Illegal("thresholds do not ascend")
    if None in points[1:]:
        raise Illegal("a threshold is missing")
    firsts = [low] + [low if point is None else _exact(point) + step for point in points]
    lasts = [None if point is None else _exact(point) for point in points] + [high]
    ends = list(zip(map(float, firsts), (None if end is None else float(end) for end in lasts), strict=True))
    name, labels, numbers = attribute.name, {}, {}
    if policy.output.has_labels:
        written = [None if last is None else _interval(first, last, attribute.kind) for first, last in ends]
        labels[name] = [f"{written[0]}{OR_MISSING}" if written[0] else None, *written[1:]]
    if policy.output.has_bounds:
        numbers = {f"{name}_low": [None, *(first for first, _ in ends[1:])], f"{name}_high": [end for _, end in ends]}
    return Cut(labels, numbers, len(ends), len(points))


def _place(point: Any, low: Fraction, step: Fraction) -> int:
    """The number of a grid point, counted from the lower bound."""
    steps = (_exact(point) - low) / step
    if abs(steps - round(steps)) > NEAR:
        raise Illegal("a threshold is off the declared grid")
    return round(steps)


def _exact(number: Any) -> Fraction:
    """The number that its decimal text says."""
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise TypeError
    return Fraction(str(number))


def _interval(first: float, last: float, kind: Kind) -> str:
    one, other = _text(first, kind), _text(last, kind)
    return one if first == last else f"[{one}, {other}]"


def _text(number: float, kind: Kind) -> str:
    """A number or date as it is published: 5, 0.25, 2024-03-05."""
    if kind is Kind.DATE:
        return (_EPOCH + timedelta(days=int(number))).isoformat()
    is_whole = number.is_integer() and abs(number) < 2**53
    return str(int(number)) if is_whole else pa.scalar(number).cast(pa.string()).as_py()


def _tree_cut(attribute: Attribute, entry: Mapping[str, Any], points: Any, policy: Policy) -> Cut:  # noqa: ARG001 - as above
    """Nodes of the declared hierarchy; wherever one is divided, all its children are there, in their order."""
    bounds = None if attribute.bounds is None else list(attribute.bounds)
    if entry["kind"] != "tree" or points != [] or entry["bounds"] != bounds or entry["missing"] is not True:
        raise Illegal("it is cut at thresholds, or bounds are not those that were declared")
    labels, parent = entry["labels"], entry["parent"]
    if len(labels) != len(parent) or parent[0] != -1:
        raise Illegal("its nodes are no tree")
    below: list[list[int]] = [[] for _ in labels]
    for node, above in enumerate(parent[1:], start=1):
        if not 0 <= above < node:
            raise Illegal("its nodes are no tree")
        below[above].append(node)
    tree = _Declared.of(attribute)
    if labels[0] != tree.hierarchy.labels[0]:
        raise Illegal("its root is not that of the declared hierarchy")
    order: list[int] = []
    waiting = [(0, tree.root)]
    while waiting:
        node, place = waiting.pop()
        order.append(node)
        if not below[node]:
            continue
        children = tree.children(place)
        if [labels[child] for child in below[node]] != [label for label, _ in children]:
            raise Illegal("a node is divided otherwise than in the declared hierarchy")
        places = [place for _, place in children]
        waiting += reversed(list(zip(below[node], places, strict=True)))
    if order != list(range(len(labels))):
        raise Illegal("its nodes are not in order")
    leaves = [node for node in order if not below[node]]
    cells = [labels[node] for node in leaves]
    return Cut({attribute.name: cells}, {}, len(leaves), len(labels) - len(leaves))


Place = tuple[int, bool]
"""A node of the declared hierarchy, and whether missing belongs to it."""


@dataclass(frozen=True, slots=True)
class _Declared:
    """A declared hierarchy, to which missing belongs: to the last child of every node on the way down to it."""

    hierarchy: Hierarchy
    has_own: bool
    """Has the hierarchy a leaf for missing values itself?"""

    @classmethod
    def of(cls, attribute: Attribute) -> _Declared:
        days: Any = ()
        if attribute.kind is Kind.DATE and attribute.bounds is not None:
            first, last = attribute.bounds
            days = np.arange(int(first), int(last) + 1).astype("datetime64[D]")
        tree = hierarchies.build(attribute, days)
        return cls(tree, None in tree.labels)

    @property
    def root(self) -> Place:
        return 0, not self.has_own

    def children(self, place: Place) -> list[tuple[str | None, Place]]:
        """The children of a node, as a recoding calls them."""
        node, has_missing = place
        tree = self.hierarchy
        found: list[tuple[str | None, Place]] = [
            (tree.labels[child], (child, False)) for child in tree.children(node).tolist()
        ]
        if not has_missing:
            return found
        if not found:
            return [(tree.labels[node], (node, False)), (None, (node, False))]
        label, (last, _) = found[-1]
        return [*found[:-1], (f"{label}{OR_MISSING}", (last, True))]


# ---- the rows --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """The cuts together with the classes: what the lines of the release must be."""

    cuts: Sequence[Cut]
    target: str
    classes: Sequence[str]

    @classmethod
    def of(cls, policy: Policy, cuts: Sequence[Cut]) -> Grid:
        target = policy.schema[policy.predictions[0].targets[0]]
        tree = hierarchies.build(target, ())
        leaves = [tree.labels[node] for node in tree.leaf_nodes.tolist()]
        return cls(cuts, target.name, [label for label in leaves if label is not None])

    @property
    def shape(self) -> tuple[int, ...]:
        return (*(cut.n_pieces for cut in self.cuts), len(self.classes))

    @property
    def n_cells(self) -> int:
        return math.prod(self.shape[:-1])

    def columns(self, policy: Policy) -> list[str]:
        """The columns of the release, in the order of the policy."""
        quasi = [attribute.name for attribute in policy.schema.quasi_identifiers]
        by_name = {name: [*cut.labels, *cut.numbers] for name, cut in zip(quasi, self.cuts, strict=True)}
        by_name[self.target] = [self.target]
        names = [name for attribute in policy.schema.published for name in by_name[attribute.name]]
        return [*names, COUNT] if policy.rows == "counts" else names

    def expected(self) -> Iterator[_Expected]:
        for place, cut in enumerate(self.cuts):
            for name, labels in cut.labels.items():
                yield _Expected.of_texts(name, place, labels)
            for name, numbers in cut.numbers.items():
                yield _Expected.of_numbers(name, place, numbers)
        yield _Expected.of_texts(self.target, len(self.cuts), self.classes)


@dataclass(frozen=True, slots=True, eq=False)
class _Expected:
    """What a column holds: the distinct cells that it may, and which of them each piece has."""

    name: str
    place: int
    cells: pa.Array
    of_piece: Ints

    @classmethod
    def of_texts(cls, name: str, place: int, labels: Sequence[str | None]) -> _Expected:
        encoded = pa.array(labels, pa.string()).dictionary_encode(null_encoding="encode")
        return cls(name, place, encoded.dictionary, encoded.indices.to_numpy().astype(np.int64))

    @classmethod
    def of_numbers(cls, name: str, place: int, numbers: Sequence[float | None]) -> _Expected:
        return cls(name, place, pa.array(numbers, pa.float64()), np.arange(len(numbers)))

    @property
    def tells_apart(self) -> bool:
        return len(self.cells) == len(self.of_piece)

    def found(self, column: Any) -> Ints:
        """Which of the cells each row has; -1 where it is none of them."""
        cells = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        if not pa.types.is_dictionary(cells.type):
            cells = cells.dictionary_encode()
        values = cells.dictionary
        if pa.types.is_date(values.type):
            values = values.cast(pa.date32()).cast(pa.int32())
        elif self.cells.type == pa.float64() and pa.types.is_string(values.type):
            values = _as_numbers(values)
        known = pc.index_in(values.cast(self.cells.type), value_set=self.cells).fill_null(-1)
        none = pc.index_in(pa.nulls(1, self.cells.type), value_set=self.cells).fill_null(-1)
        codes = np.append(known.to_numpy(), none.to_numpy()).astype(np.int64)
        return codes[cells.indices.fill_null(len(values)).to_numpy(zero_copy_only=False)]


def _as_numbers(written: pa.Array) -> pa.Array:
    """Numbers or dates of CSV."""
    try:
        return written.cast(pa.float64())
    except pa.ArrowInvalid:
        return written.cast(pa.date32()).cast(pa.int32())


@dataclass(slots=True)
class _Found:
    """What all rows together are."""

    rows: int = 0
    strange: int = 0
    """Rows that are not the line that should stand there, or are no line of the grid."""
    is_sorted: bool = True
    no_counts: int = 0
    counted: int = 0


def _measured(rows: pa.Table | FiledRows, grid: Grid, *, is_expanded: bool) -> _Found:
    found, last = _Found(), 0
    expected, shape = list(grid.expected()), grid.shape
    tells_apart = all(column.tells_apart for column in expected)
    n_lines = math.prod(shape)
    for part in rows.tables() if isinstance(rows, FiledRows) else [rows]:
        cells = [column.found(part.column(column.name)) for column in expected]
        if is_expanded:
            is_strange = np.any([codes < 0 for codes in cells], axis=0)
            if tells_apart and not is_strange.any():
                digits = {column.place: codes for column, codes in zip(expected, cells, strict=True)}
                lines = np.ravel_multi_index([digits[place] for place in range(len(shape))], shape)
                found.is_sorted &= bool(np.all(np.diff(lines, prepend=last) >= 0))
                last = int(lines[-1]) if len(lines) else last
            found.counted += part.num_rows
        else:
            at = np.arange(found.rows, found.rows + part.num_rows)
            digits = np.unravel_index(np.minimum(at, n_lines - 1), shape)
            is_strange = at >= n_lines
            for column, codes in zip(expected, cells, strict=True):
                is_strange |= column.of_piece[digits[column.place]] != codes
            counts, is_none = _counts(part.column(COUNT))
            found.no_counts += int(is_none.sum())
            found.counted += sum(map(int, counts[~is_none].tolist())) if len(counts) else 0
        found.strange += int(is_strange.sum())
        found.rows += part.num_rows
    return found


def _counts(column: Any) -> tuple[Ints, NDArray[np.bool_]]:
    """The counts, and which of them are no whole numbers of at least 0."""
    cells = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if not pa.types.is_integer(cells.type):
        written = texts(cells, Attribute(COUNT, "other")).cast(pa.string())
        is_count = pc.match_substring_regex(written, WHOLE_NUMBER).fill_null(False)
        cells = pc.if_else(is_count, written, "-1").cast(pa.int64())
    counts = cells.fill_null(-1).cast(pa.int64()).to_numpy()
    return counts, counts < 0


def row_checks(rows: pa.Table | FiledRows, names: Sequence[str], policy: Policy, grid: Grid, claimed: Claims) -> Iterator[Check]:
    """The grid is complete, its counts are counts, and both are what the certificate claims."""
    columns = grid.columns(policy)
    is_same = list(names) == columns
    yield Check("the columns are those that the policy publishes", is_same, "" if is_same else _difference(names, columns))
    is_expanded = policy.rows != "counts"
    claim = "every row stands for a line of the grid" if is_expanded else "every cell of the grid is there with every class"
    if not {*columns} <= {*names}:
        yield Check(claim, False, "a column is not there")
        return
    try:
        found = _measured(rows, grid, is_expanded=is_expanded)
    except (InputError, OSError, pa.ArrowException):
        yield Check(claim, False, "the rows cannot be read")
        return
    n_lines = math.prod(grid.shape)
    if is_expanded:
        detail = f"{found.strange:,} do not" if found.strange else "" if found.is_sorted else "they are not in its order"
    else:
        detail = f"there are {found.rows:,} rows in place of {n_lines:,}" if found.rows != n_lines else ""
        detail = detail or (f"{found.strange:,} rows are not what should stand there" if found.strange else "")
    yield Check(claim, not detail, detail)
    if not is_expanded:
        detail = f"{found.no_counts:,} are not" if found.no_counts else ""
        yield Check("every count is a whole number of at least 0", not detail, detail)
    yield equal("the release holds {} rows", claimed.rows, found.rows)
    yield equal("the grid has {} cells", claimed.groups, grid.n_cells)
    counted = -1 if claimed.counted is None else claimed.counted
    yield equal("the counts sum to {}", counted, found.counted, f"they sum to {found.counted:,}")


def _difference(names: Sequence[str], columns: Sequence[str]) -> str:
    lacking = [name for name in columns if name not in names]
    n_more = len(names) - len(columns) + len(lacking)
    details = [
        *([f"column {lacking[0]!r} is not there"] if lacking else []),
        *([f"there are {n_more:,} more"] if n_more else []),
    ]
    return ", and ".join(details) or "they stand in another order"
