"""The recoding of a release of groups, read anew and compared with its rows.

A recoding says how further rows are recoded: a tree of splits, or one cut for each attribute. It may tell no more than
the rows do, so

- its boxes are the boxes that the rows show, all of them and no others;
- the nodes of its hierarchies are nodes of those that the policy declares, down to labels that rows have;
- every field has the one form that it is written in, and nothing stands beside the fields.

Shares nothing with the modules that make recodings and apply them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sfumato.errors import InputError, number_of
from sfumato.policy.document import Policy
from sfumato.policy.hierarchy.declarations import Given
from sfumato.policy.output import Output, bound_names, missing_name
from sfumato.policy.schema import Attribute, Kind, Role
from sfumato.release.folder import RECODINGS, read_piece
from sfumato.table.cells import ordered
from sfumato.verify.cell_lists import NodeLevels, NumberSteps, check_lists
from sfumato.verify.checks import Check, Unfit
from sfumato.verify.exclusions import MISSING
from sfumato.verify.files import Hidden, check_parquet, read_json
from sfumato.verify.groups import Combinations, GroupedRows
from sfumato.verify.statistics import span_of
from sfumato.verify.tree_boxes import AxisShape, BoxEnds, StoredTree

DOCUMENT, NODES = RECODINGS
FORMAT, FORMAT_OF_RESTS = 1, 2
OR_MISSING = " or missing"
EXACT = 2**53
MOST_DAYS = np.iinfo(np.int32).max
TREE = {"format", "output", "attributes", "nodes"}
CUTS = {"format", "kind", "output", "groups", "attributes", "thresholds"}
ORDERED_AXIS = {"name", "missing", "kind", "low", "high", "grid"}
TREE_AXIS = {"name", "missing", "kind", "bounds", "labels", "parent"}
BYTES_PER_END = 24
"""Memory for the box of a node along one axis while boxes are worked out."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


# ---- axes ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ThresholdAxis:
    """A number or date that is split by thresholds: ``low`` < x <= ``high``, a low of NaN that nothing limits."""

    attribute: Attribute
    low: float
    high: float
    grid: float | None
    has_missing: bool
    is_closed: bool = False
    """Labels begin with a value of their rows."""
    levels: NumberSteps | None = None
    """Of the cells of lists, if there are any."""
    is_flagged: bool = False
    """A column beside the bounds says whether missing is among the values; else the low bound is empty then."""

    @property
    def shape(self) -> AxisShape:
        return AxisShape(math.nan, -math.inf if self.low > self.high else math.inf)

    def cells(self, ends: BoxEnds, output: Output) -> dict[str, pa.Array]:
        """What boxes are published as, by column."""
        name, kind, low, high = self.attribute.name, self.attribute.kind, ends.low, ends.high
        is_missing, is_first = np.isneginf(high), np.isnan(low) | np.isneginf(low)
        known = np.where(is_first, 0, low)
        first = np.where(is_first, self.low, known if self.is_closed else self._after(known))
        last = np.where(np.isinf(high), self.high, high)
        may_miss = np.isnan(low) & self.has_missing if ends.missing is None else ends.missing & ~is_missing
        out: dict[str, pa.Array] = {}
        if output.has_labels:
            one, other = _write_numbers(first, kind), _write_numbers(last, kind)
            opening = (
                "[" if self.grid is not None or self.is_closed else pc.if_else(pa.array(is_first), "[", "(")
            )
            label = pc.binary_join_element_wise(opening, one, ", ", other, "]", "")
            label = pc.if_else(pa.array(first == last), other, label)
            if may_miss.any():
                ending = pc.if_else(pa.array(may_miss), OR_MISSING, "")
                label = pc.binary_join_element_wise(label, ending, "")
            out[name] = pc.if_else(pa.array(is_missing), None, label) if is_missing.any() else label
        if output.has_bounds:
            low_name, high_name = bound_names(name)
            out[low_name] = pa.array(first, mask=is_missing if self.is_flagged else is_missing | may_miss)
            out[high_name] = pa.array(last, mask=is_missing)
        if self.is_flagged:
            out[missing_name(name)] = pa.array(
                np.where(is_missing | may_miss, "true", "false").astype(object)
            )
        return out

    def _after(self, values: Floats) -> Floats:
        """The next value on the grid, added up in decimals."""
        if self.grid is None:
            return values
        if float(self.grid).is_integer():
            return values + self.grid
        step = Decimal(repr(self.grid))
        return np.array([float(Decimal(repr(value)) + step) for value in values.tolist()], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class NodeAxis:
    """A column that is split along its hierarchy; with ``excludes``, labels of rests say what they exclude."""

    attribute: Attribute
    labels: Sequence[str | None]
    parent: Sequence[int]
    excludes: bool = False
    levels: NodeLevels | None = None

    @property
    def shape(self) -> AxisShape:
        return AxisShape(0.0, 0.0, len(self.labels), self.excludes)

    def cells(self, ends: BoxEnds, _output: Output) -> dict[str, pa.Array]:
        """What boxes are published as: the label of their node, and what it excludes."""
        labels = [self.labels[node] for node in ends.low.astype(np.int64).tolist()]
        for box, excluded in enumerate(self._name_excluded(ends)):
            if excluded:
                names = (MISSING if name is None else name for name in excluded)
                labels[box] = f"{labels[box]} (not {', '.join(names)})"
        return {self.attribute.name: pa.array(labels, pa.string())}

    def _name_excluded(self, ends: BoxEnds) -> list[list[str | None]]:
        """The labels of what was told apart below the node of each box, in the order of the hierarchy."""
        boxes = zip(ends.low.astype(np.int64).tolist(), ends.told, strict=True) if self.excludes else ()
        return [
            [self.labels[other] for other in sorted(told) if self._is_below(other, node)]
            for node, told in boxes
        ]

    def _is_below(self, other: int, node: int) -> bool:
        while other > node:
            other = self.parent[other]
            if other == node:
                return True
        return False

    @property
    def ends(self) -> set[str | None]:
        """The labels of nodes that have no other below."""
        inner = set(self.parent)
        return {label for node, label in enumerate(self.labels) if node not in inner}


Axis = ThresholdAxis | NodeAxis


def _write_numbers(values: Floats, kind: Kind) -> pa.Array:
    """Numbers and dates as they are published: 5, 0.25, 2024-03-05."""
    if kind is Kind.DATE:
        if not np.all(np.abs(values) <= MOST_DAYS):
            raise Unfit("it has days that no calendar has")
        return pa.array(values.astype(np.int32)).cast(pa.date32()).cast(pa.string())
    is_whole = (values == np.rint(values)) & (np.abs(values) < EXACT)
    whole = pa.array(np.where(is_whole, values, 0).astype(np.int64)).cast(pa.string())
    return (
        whole if is_whole.all() else pc.if_else(pa.array(is_whole), whole, pa.array(values).cast(pa.string()))
    )


def _axis(entry: Any, attribute: Attribute, *, excludes: bool) -> Axis:
    """One attribute of the document, compared with the policy; KeyError, TypeError or ValueError if it is none.

    ``excludes``: labels of rests say what they exclude.
    """
    if not isinstance(entry, dict) or type(entry.get("missing")) is not bool:
        raise TypeError
    if attribute.is_ordered:
        _expect_keys(entry, ORDERED_AXIS | ({"closed", "flagged", "levels"} & entry.keys()))
        numbers = [entry["low"], entry["high"], *([] if entry["grid"] is None else [entry["grid"]])]
        if entry["kind"] != "ordered" or not all(type(number) in (int, float) for number in numbers):
            raise TypeError
        low, high, *grid = map(_finite, numbers)
        is_closed, is_flagged = (entry.get(key, False) is True for key in ("closed", "flagged"))
        has_slices = attribute.finest is not None
        levels = (
            NumberSteps.of(entry["levels"], low, high, entry["missing"], has_slices=has_slices)
            if "levels" in entry
            else None
        )
        grid_step = grid[0] if grid else None
        return ThresholdAxis(attribute, low, high, grid_step, entry["missing"], is_closed, levels, is_flagged)
    _expect_keys(entry, TREE_AXIS | ({"excluding"} if excludes else set()) | ({"levels"} & entry.keys()))
    axis = NodeAxis(attribute, entry["labels"], entry["parent"], excludes)
    if entry.get("excluding", excludes) is not excludes:
        raise TypeError
    if entry["kind"] != "tree" or len(axis.labels) != len(axis.parent) or list(axis.parent[:1]) != [-1]:
        raise TypeError
    if "levels" in entry:
        axis = replace(axis, levels=NodeLevels.of(entry["levels"], axis.parent))
    attribute = replace(attribute, bounds=_bounds(entry["bounds"], attribute))
    _check_nodes(axis, attribute, has_missing=entry["missing"])
    return replace(axis, attribute=attribute)


def _finite(number: float) -> float:
    if not math.isfinite(number):
        raise ValueError
    return float(number)


def _bounds(given: Any, attribute: Attribute) -> tuple[float, float] | None:
    """The bounds of a hierarchy by a rule: those that are declared, and only of a number perhaps the table's."""
    declared = attribute.bounds
    if given is None:
        return declared
    low, high = map(_finite, given)
    if (attribute.kind is not Kind.NUMBER or declared is not None) and (low, high) != declared:
        raise Unfit(f"column {attribute.name!r} has other bounds than are declared")
    return low, high


def _expect_keys(entry: Any, keys: set[str]) -> None:
    if not isinstance(entry, dict) or entry.keys() != keys:
        raise Unfit("it has fields that no recoding has, or lacks some")


def _check_nodes(axis: NodeAxis, attribute: Attribute, *, has_missing: bool) -> None:
    """Every node is one of the declared hierarchy, or the leaf of missing cells."""
    tree = attribute.build_label_hierarchy(_leaf_values(axis, attribute))
    below = {(int(above), tree.labels[node]): node for node, above in enumerate(tree.parent.tolist())}
    found = [below.get((-1, axis.labels[0]))]
    for label, parent in zip(axis.labels[1:], axis.parent[1:], strict=True):
        above = found[parent] if 0 <= parent < len(found) else None
        is_missing = label is None and has_missing
        found.append(None if above is None else above if is_missing else below.get((above, label)))
    if None in found:
        raise Unfit(f"column {attribute.name!r} has a node that its declared hierarchy has not")


def _leaf_values(axis: NodeAxis, attribute: Attribute) -> Any:
    """Values of the column that have the lowest nodes above them: hierarchies by a rule are built from these."""
    labels = sorted(label for label in axis.ends if label is not None and label != axis.labels[0])
    if attribute.kind is Kind.CATEGORY or isinstance(attribute.hierarchy, Given):
        return labels
    first = [span_of(label, attribute).low for label in labels]
    if not all(map(math.isfinite, first)):
        raise Unfit(f"column {attribute.name!r} has a node that its declared hierarchy has not")
    is_date = attribute.kind is Kind.DATE
    return np.array(first).astype("int64").astype("datetime64[D]") if is_date else np.array(first)


LEAVES_OUT, HOLES = "leaves-rows-out", "holes"
"""Say that a row is left out whose value no branch names, unless a rest takes it; or no piece of a cut, or a hole."""


# ---- the document ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class ReadRecoding:
    """A recoding as its folder has it: the boxes of a ``tree``, or of cuts, without one, the pieces of each axis."""

    axes: Sequence[Axis]
    ends: Sequence[BoxEnds]
    n_groups: int
    tree: StoredTree | None = None
    has_holes: bool = False
    """Are all pieces of cuts those of groups, and rows in none of them left out?"""

    @property
    def is_tree(self) -> bool:
        return self.tree is not None


def read_recoding(folder: Path, policy: Policy, memory: int) -> ReadRecoding | None:
    """The recoding of a release folder; None of a tree that takes more memory. Unfit says what is wrong with it."""
    try:
        document = read_json(read_piece(folder, DOCUMENT))
        is_cuts = "kind" in document
        leaves_out = policy.leaves_rows_out
        of_left_out = ({LEAVES_OUT, HOLES} if is_cuts else {LEAVES_OUT}) if leaves_out else set()
        _expect_keys(document, (CUTS if is_cuts else TREE) | of_left_out)
        has_format = not leaves_out or document[LEAVES_OUT] is True
        has_file = not is_cuts and document["nodes"] == NODES
        if has_file != (folder / NODES).exists():
            raise Unfit(f"{NODES} is there without need, or is not there")
        has_rests = not is_cuts and document["format"] == FORMAT_OF_RESTS
        has_format &= has_rests or document["format"] == FORMAT
        if not has_format or document["output"] != str(policy.output):
            raise Unfit("its format or output is another")
        quasi = policy.schema.quasi_identifiers
        entries = document["attributes"]
        if [entry["name"] for entry in entries] != [attribute.name for attribute in quasi]:
            raise Unfit("its attributes are not the quasi-identifiers")
        excludes = policy.excludes_in_labels and not is_cuts
        axes = [_axis(*pair, excludes=excludes) for pair in zip(entries, quasi, strict=True)]
        if is_cuts:
            return _cut_recoding(document, axes)
        if has_file:
            footer = pq.read_metadata(folder / NODES)
            fits = footer.num_rows * len(axes) * BYTES_PER_END <= memory
            names = footer.schema.names
            known = check_parquet(folder / NODES, names if fits else ())
            if not fits:
                return None
            rest = pq.read_table(folder / NODES, columns=[name for name in names if name not in known])
            nodes = pa.table({name: known[name] if name in known else rest.column(name) for name in names})
            return _tree_recoding(nodes, axes, has_rests=has_rests)
        return _tree_recoding(pa.table(document["nodes"]), axes, has_rests=has_rests)
    except Hidden as error:
        raise Unfit(f"{NODES} holds {error}") from None
    except (InputError, OSError, ValueError, KeyError, TypeError, IndexError, OverflowError, RecursionError,
            pa.ArrowException):  # fmt: skip
        raise Unfit("it cannot be read") from None


def _tree_recoding(nodes: pa.Table, axes: Sequence[Axis], *, has_rests: bool) -> ReadRecoding:
    levels = [axis.levels for axis in axes if axis.levels is not None]
    if levels and (len(levels) < len(axes) or not has_rests):
        raise Unfit("only some of its attributes have levels")
    tree = StoredTree.of(nodes, [axis.shape for axis in axes], has_rests=has_rests, has_lists=bool(levels))
    ends = tree.leaf_ends()
    if levels:
        check_lists(tree, levels, ends)
    return ReadRecoding(axes, ends, int(np.count_nonzero(tree.axis < 0)), tree)


def _cut_recoding(document: Mapping[str, Any], axes: Sequence[Axis]) -> ReadRecoding:
    if (
        document["kind"] != "cuts"
        or type(document["groups"]) is not int
        or len(document["thresholds"]) != len(axes)
    ):
        raise TypeError
    thresholds = [
        np.array([-math.inf if point is None else float(point) for point in points], dtype=np.float64)
        for points in document["thresholds"]
    ]
    for axis, points in zip(axes, thresholds, strict=True):
        if (isinstance(axis, NodeAxis) and len(points)) or not np.all(np.diff(points) > 0):
            raise Unfit("its thresholds do not ascend")
    holes = document.get(HOLES, [[]] * len(axes))
    if len(holes) != len(axes):
        raise TypeError
    ends = [_pieces(*own) for own in zip(axes, thresholds, holes, strict=True)]
    return ReadRecoding(axes, ends, document["groups"], has_holes=HOLES in document)


def _pieces(axis: Axis, points: Floats, holes: Sequence[int]) -> BoxEnds:
    """The pieces of a cut: those between thresholds but for holes, or the lowest nodes of the hierarchy."""
    if holes and (
        not isinstance(axis, ThresholdAxis)
        or any(type(hole) is not int for hole in holes)
        or holes != sorted({*holes} & {*range(len(points) + 1)})
    ):
        raise TypeError
    if isinstance(axis, ThresholdAxis):
        low, high = np.append(math.nan, points), np.append(points, axis.shape.high)
        return BoxEnds(np.delete(low, holes), np.delete(high, holes)) if holes else BoxEnds(low, high)
    inner = set(axis.parent)
    leaves = np.array([node for node in range(len(axis.labels)) if node not in inner], dtype=np.float64)
    return BoxEnds(leaves, leaves)


# ---- boxes and rows --------------------------------------------------------------------------------


class AxisCells:
    """The distinct cells that boxes have along one axis, and how to find those of published rows."""

    def __init__(self, axis: Axis, ends: BoxEnds, output: Output, *, may_flag: bool) -> None:
        self.kind = axis.attribute.kind
        self.flag = (
            missing_name(axis.attribute.name) if may_flag and isinstance(axis, ThresholdAxis) else None
        )
        cells = axis.cells(ends, output)
        encoded = {name: column.dictionary_encode("encode") for name, column in cells.items()}
        self.known = {name: column.dictionary for name, column in encoded.items()}
        places = {name: column.indices.to_numpy().astype(np.int64) for name, column in encoded.items()}
        self.combined, of_ends = None, places[next(iter(places))]
        if len(places) > 1:
            combined, of_ends = np.unique(self._key(places), return_inverse=True)
            self.combined = pa.array(combined)
        self.of_box = of_ends if ends.of_box is None else of_ends[ends.of_box]

    def __len__(self) -> int:
        return len(next(iter(self.known.values())) if self.combined is None else self.combined)

    def _key(self, places: Mapping[str, Ints]) -> Ints:
        key = np.zeros(len(next(iter(places.values()))), dtype=np.int64)
        for name, place in places.items():
            key = np.where((key < 0) | (place < 0), -1, key * len(self.known[name]) + place)
        return key

    def find(self, rows: GroupedRows, *, is_csv: bool) -> Ints:
        """The piece of each group; -1 where no box has such cells."""
        if self.flag is not None and (self.flag in rows.source.names) != (self.flag in self.known):
            return np.full(rows.groups.n, -1)  # one of the two does not say where missing is
        places: dict[str, Ints] = {}
        for name, known in self.known.items():
            if pa.types.is_string(known.type):
                cells = rows.labels(name)
                values = cells.dictionary
                values = pc.if_else(pc.equal(values, ""), None, values) if is_csv else values
                missing = pc.index(known.is_null(), value=True).as_py()
                of_value = np.append(_places(values, known), missing)
                places[name] = of_value[cells.indices.fill_null(len(values)).to_numpy()]
            else:
                column = rows.source.column(name).take(pa.array(rows.groups.one_row))
                numbers = ordered(column, Attribute(name, Role.OTHER, self.kind)).cast(pa.float64())
                places[name] = _places(numbers, known)
        if self.combined is None:
            return places[next(iter(places))]
        return _places(pa.array(self._key(places)), self.combined)


def _places(cells: pa.Array, known: pa.Array) -> Ints:
    return np.asarray(pc.index_in(cells, value_set=known).fill_null(-1).to_numpy(), dtype=np.int64)


class RecodingMatch:
    """Compares the boxes of a recoding with groups of rows: does every group have a box, and every box a group?"""

    def __init__(self, recoding: ReadRecoding, policy: Policy, *, is_csv: bool) -> None:
        self.recoding, self.is_csv = recoding, is_csv
        self.n_strange = 0
        self.is_tree = recoding.is_tree
        may_flag = policy.output.has_bounds and policy.method.flags_missing
        self.pieces = [
            AxisCells(axis, ends, policy.output, may_flag=may_flag)
            for axis, ends in zip(recoding.axes, recoding.ends, strict=True)
        ]
        self.seen = [np.zeros(len(pieces), dtype=np.bool_) for pieces in self.pieces]
        self.boxes = Combinations.of([pieces.of_box for pieces in self.pieces]) if self.is_tree else None
        self.has_group = np.zeros(0 if self.boxes is None else self.boxes.n, dtype=np.bool_)
        self.grid: set[tuple[int, ...]] = set()
        self._published: list[tuple[list[Ints], Ints]] = []

    def add(self, rows: GroupedRows) -> None:
        """Look up the boxes of some groups."""
        lines = []
        for pieces, seen in zip(self.pieces, self.seen, strict=True):
            found = pieces.find(rows, is_csv=self.is_csv)
            seen[found[found >= 0]] = True
            lines.append(found)
        self._published.append((lines, rows.groups.size))
        if self.boxes is None:
            matrix = np.stack(lines, axis=1)
            self.n_strange += int(np.any(matrix < 0, axis=1).sum())
            self.grid.update(map(tuple, np.unique(matrix, axis=0).tolist()))
            return
        found = self.boxes.find(lines)
        self.n_strange += int((found < 0).sum())
        self.has_group[found[found >= 0]] = True

    def published(self) -> tuple[list[Ints], Ints]:
        """The distinct cells that each published group has along each axis, and its rows."""
        lines = [np.concatenate(own) for own in zip(*(lines for lines, _ in self._published), strict=True)]
        return lines, np.concatenate([size for _, size in self._published])

    def checks(self) -> Iterator[Check]:
        """The boxes are those of the rows, and so are the labels of the hierarchies."""
        detail = ""
        n_idle = int((~self.has_group).sum()) if self.is_tree else self._idle_pieces()
        what = "boxes" if self.is_tree else "pieces of a cut"
        if self.n_strange:
            detail = f"none of its boxes is that of {number_of(self.n_strange, 'group')}"
        elif n_idle:
            detail = f"no row has {n_idle:,} of its {what}"
        elif not self.is_tree and len(self.grid) != self.recoding.n_groups:
            detail = f"it says {self.recoding.n_groups:,} groups, and there are {len(self.grid):,}"
        elif self.is_tree and (idle := self._idle_labels()):
            detail = f"no row has {idle:,} of the labels in its hierarchies"
        yield Check("the boxes of the recoding are those of the rows", not detail, detail)

    def _idle_pieces(self) -> int:
        """Pieces that no row has, unless they are declared."""
        n = 0
        for axis, seen in zip(self.recoding.axes, self.seen, strict=True):
            attribute = axis.attribute
            is_declared = isinstance(attribute.hierarchy, Given) or attribute.values is not None
            is_declared |= attribute.kind is not Kind.CATEGORY and isinstance(axis, NodeAxis)
            is_declared &= not self.recoding.has_holes  # or they would show what was left out
            n += 0 if is_declared else int((~seen).sum())
        return n

    def _idle_labels(self) -> int:
        """Lowest labels of hierarchies that no row has. Nothing lies below them, so that none excludes anything."""
        n = 0
        for axis, pieces, seen in zip(self.recoding.axes, self.pieces, self.seen, strict=True):
            if isinstance(axis, NodeAxis):
                (known,) = pieces.known.values()
                shown = {known[int(at)].as_py() for at in np.flatnonzero(seen)}
                n += len(axis.ends - shown)
        return n
