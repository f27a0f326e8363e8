"""Recoding by shared cuts: each attribute is divided once, for all rows alike [LDR08, footnote 2].

A row's box is a cell of the grid that the cuts make, so an attribute is recoded without looking at any other.
What :mod:`sfumato.recoding.recoder` says of further rows holds here attribute by attribute.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.encoding.domain import MISSING
from sfumato.policy.output import Output
from sfumato.policy.schema import Schema
from sfumato.recoding.axis import (
    Axis,
    BoxEnds,
    Floats,
    OrderedAxis,
    TreeAxis,
    axis_as_dict,
    axis_from_dict,
    distinct_boxes,
    labels_of,
)
from sfumato.recoding.recoder import Places, Recoder, RowCells
from sfumato.table.files import replace_atomically

FORMAT = 1
KIND = "cuts"
"""How a recoding on disk says that it is one of these."""

NO_PIECE = -1
"""The place of a missing number where none was: the whole axis."""

NOWHERE = -2
"""The place, on all axes, of a row that is left out."""

LEAVES_OUT = "leaves-rows-out"
HOLES = "holes"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Cuts(Recoder):
    """One cut per attribute. ``apply`` recodes any rows and promises nothing.

    On an ordered axis ``thresholds`` ascend, and values up to one lie below it (-inf: missing alone does). On a
    tree axis there are none: its hierarchy ends where the cut is, so that its leaves are the cut.

    A place is a line with one number per axis: the piece between thresholds, or the node of the hierarchy.
    ``n_groups`` cells of the grid held rows when the cuts were made; of a differentially private release, it is all
    cells of the grid.

    If it ``leaves_rows_out``, a row is left out whose value is in no piece: in one of the ``holes`` between thresholds,
    or below no node of the cut.
    """

    axes: tuple[Axis, ...]
    thresholds: tuple[Floats, ...]
    n_groups: int
    output: Output = Output.LABELS
    left_out: frozenset[str] = frozenset()
    leaves_rows_out: bool = False
    holes: tuple[NDArray[np.int64], ...] = ()

    def __post_init__(self) -> None:
        for axis, thresholds in zip(self.axes, self.thresholds, strict=True):
            if isinstance(axis, TreeAxis) and len(thresholds):
                raise ValueError(f"The hierarchy of {axis.attribute.name!r} is cut at nodes, not thresholds.")
            if not all(low < high for low, high in pairwise(thresholds.tolist())):
                raise ValueError(f"The thresholds of {axis.attribute.name!r} do not ascend.")

    @property
    def has_lists(self) -> bool:
        """Does a list of cells take the place of splits?"""
        return False

    @property
    def has_overlaps(self) -> bool:
        """May a label cover values that other groups were told apart by?"""
        return False

    def n_splits(self) -> dict[str, int]:
        """How often each quasi-identifier was split."""
        return {
            axis.attribute.name: len(thresholds)
            if isinstance(axis, OrderedAxis)
            else axis.nodes.n_nodes - axis.nodes.n_leaves
            for axis, thresholds in zip(self.axes, self.thresholds, strict=True)
        }

    def path_ends(self, places: Places) -> BoxEnds:
        """The ends (places, axes) of the boxes of these places; nothing is told apart from a rest."""
        low = np.asarray(places).astype(np.float64)
        high = np.full(low.shape, np.inf)
        for a, axis in enumerate(self.axes):
            if isinstance(axis, OrderedAxis):
                lows, highs = self._ordered_pieces(a)
                low[:, a], high[:, a] = (
                    np.append(lows, np.nan)[places[:, a]],  # NO_PIECE is the last
                    np.append(highs, axis.top)[places[:, a]],
                )
        has_missing = np.array([axis.has_missing for axis in self.axes])
        return BoxEnds(low, high, (np.isnan(low) & has_missing) | np.isneginf(high))

    def _ordered_pieces(self, a: int) -> tuple[Floats, Floats]:
        axis, thresholds = self.axes[a], self.thresholds[a]
        assert isinstance(axis, OrderedAxis)
        return np.append([np.nan], thresholds), np.append(thresholds, axis.top)

    def _group_ends(self, a: int) -> BoxEnds:
        axis = self.axes[a]
        if isinstance(axis, OrderedAxis):
            low, high = self._ordered_pieces(a)
            ends = BoxEnds(low, high, (np.isnan(low) & axis.has_missing) | np.isneginf(high))
            return ends.take(np.delete(np.arange(len(low)), self._holes(a)))
        nodes = axis.nodes.leaf_nodes.astype(np.float64)
        return BoxEnds(nodes, np.full(len(nodes), np.inf), np.zeros(len(nodes), dtype=np.bool_))

    def piece_columns(self, a: int) -> dict[str, pa.Array]:
        """The published columns of the pieces of axis ``a``, a line each, in the order of their codes."""
        return self.columns_along(a, distinct_boxes(*self._group_ends(a)))

    def piece_labels(self, a: int) -> pa.Array:
        """What the pieces of axis ``a`` are called; null is missing alone."""
        return labels_of(self.axes[a], self._group_ends(a))

    def _holes(self, a: int) -> NDArray[np.int64]:
        return self.holes[a] if self.holes else np.zeros(0, dtype=np.int64)

    def _locate(self, cells: RowCells) -> tuple[NDArray[np.int64], Any]:
        places = np.empty((cells.n_rows, len(self.axes)), dtype=np.int64)
        for a, axis in enumerate(self.axes):
            name = axis.attribute.name
            if isinstance(axis, TreeAxis):
                places[:, a] = cells.nodes[name]
            else:
                found = np.searchsorted(self.thresholds[a], cells.values[name], side="left")
                is_strange = cells.strange[name] | (self.leaves_rows_out & (cells.values[name] > axis.top))
                places[:, a] = np.where(is_strange, NO_PIECE, found)
        if self.leaves_rows_out:
            places[self._is_nowhere(places)] = NOWHERE
        return places, slice(None)

    def _is_nowhere(self, places: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of these places are in no piece along some axis?"""
        out = np.zeros(len(places), dtype=np.bool_)
        for a, axis in enumerate(self.axes):
            if isinstance(axis, TreeAxis):
                out |= ~np.isin(places[:, a], axis.nodes.leaf_nodes)
            else:
                out |= np.isin(places[:, a], [NO_PIECE, *self._holes(a)])
        return out

    def _ends_anywhere(self, places: Places) -> BoxEnds:
        is_out = places[:, 0] == NOWHERE
        ends = self.path_ends(np.maximum(places, 0))
        for a in [a for a, axis in enumerate(self.axes) if isinstance(axis, OrderedAxis)]:
            ends.low[is_out, a], ends.high[is_out, a], ends.missing[is_out, a] = np.nan, np.inf, True
        return ends

    def _keep_somewhere(self, places: Places, at: Any) -> tuple[NDArray[np.int64], Places, Any]:
        rows = np.flatnonzero(places[:, 0] != NOWHERE)
        return rows, places[rows], at

    # -- on disk -----------------------------------------------------------------------------------

    def write(self, folder: Path) -> None:
        """Write ``recoding.json``."""
        text = json.dumps(self.as_document(), ensure_ascii=False, allow_nan=False)
        with replace_atomically(folder / "recoding.json") as temporary:
            temporary.write_text(text, encoding="utf-8")

    def as_document(self) -> dict[str, Any]:
        """The cuts in plain mappings and lists, for JSON."""
        return {
            "format": FORMAT,
            "kind": KIND,
            "output": str(self.output),
            "groups": self.n_groups,
            "attributes": [axis_as_dict(axis) for axis in self.axes],
            "thresholds": [
                [None if x == MISSING else x for x in thresholds.tolist()] for thresholds in self.thresholds
            ],
            **(
                {LEAVES_OUT: True, HOLES: [self._holes(a).tolist() for a in range(len(self.axes))]}
                if self.leaves_rows_out
                else {}
            ),
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any], schema: Schema) -> Cuts:
        """The cuts that ``write`` wrote; ValueError, KeyError or TypeError if it did not."""
        return cls(
            tuple(axis_from_dict(entry, schema) for entry in document["attributes"]),
            tuple(
                np.array([MISSING if x is None else x for x in thresholds], dtype=np.float64)
                for thresholds in document["thresholds"]
            ),
            int(document["groups"]),
            Output(document["output"]),
            schema.left_out,
            bool(document.get(LEAVES_OUT, False)),
            tuple(np.array(own, dtype=np.int64) for own in document.get(HOLES, ())),
        )
