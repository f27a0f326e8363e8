"""The boxes of a release without a recoding, where each row has a box of its own: they are read from its labels.

The policy of such a release declares a hierarchy of every quasi-identifier. A label names a node of it, or several that
share the label; of a hierarchy that was made from the table it is known which values a label fits.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from sfumato.policy.document import Policy
from sfumato.policy.hierarchy.declarations import Mask, NumberRanges
from sfumato.policy.hierarchy.files import ROOT
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.output import bound_names
from sfumato.policy.schema import Attribute, Kind, Role
from sfumato.recoding.axis import Axis, BoxEnds, OrderedAxis, TreeAxis, distinct_boxes
from sfumato.release.query.select import published_numbers
from sfumato.table import cells as table_cells

HIDDEN = "\ufffe"
"""What stands for a character that a mask hides: no text of a table has it."""


@dataclass(frozen=True, slots=True, eq=False)
class LabelledBoxes:
    """The boxes along some columns, each with its label; it answers as a recoding does."""

    axes: tuple[Axis, ...]
    boxes: tuple[tuple[pa.Array, BoxEnds], ...]

    @classmethod
    def of(
        cls, rows: pa.Table, policy: Policy, names: Sequence[str], with_missing: Collection[str]
    ) -> LabelledBoxes:
        """The boxes that rows have in the columns ``names``; cells may be missing in those ``with_missing``."""
        found = [
            _read_bounds(rows, policy.schema[name], has_missing=name in with_missing)
            if _has_only_bounds(rows, name)
            else _read_labels(rows, policy.schema[name], has_missing=name in with_missing)
            for name in names
        ]
        return cls(tuple(axis for axis, _, _ in found), tuple((labels, ends) for _, labels, ends in found))

    def pieces(self, a: int) -> tuple[pa.Array, BoxEnds]:
        """The boxes along axis ``a``: published label, and ends."""
        return self.boxes[a]


def _has_only_bounds(rows: pa.Table, name: str) -> bool:
    return name not in rows.column_names and bound_names(name)[0] in rows.column_names


def _read_labels(
    rows: pa.Table, attribute: Attribute, *, has_missing: bool
) -> tuple[TreeAxis, pa.Array, BoxEnds]:
    """Every node that a published label may stand for."""
    column = table_cells.texts(rows.column(attribute.name), Attribute(attribute.name, Role.OTHER))
    labels = [*column.dictionary.to_pylist(), *([None] if column.null_count else [])]
    tree = _build_tree(attribute, labels)
    tree = tree.with_missing() if has_missing else tree
    used = np.flatnonzero(np.isin(np.array(tree.labels, dtype=object), labels))
    pruned, new = tree.prune(used)
    nodes = new[used].astype(np.float64)
    shown = pa.array([tree.labels[node] for node in used.tolist()], pa.string())
    nothing = np.zeros(len(used))
    return (
        TreeAxis(attribute, pruned, has_missing),
        shown,
        BoxEnds(nodes, nothing, nothing.astype(np.bool_)),
    )


def _build_tree(attribute: Attribute, labels: Sequence[str | None]) -> Hierarchy:
    """The hierarchy that the policy declares; of an open one the part that has the labels."""
    declaration = attribute.declaration
    if not declaration.is_open(attribute):
        return attribute.build_declared_hierarchy()
    shown = [label for label in labels if label is not None and label != ROOT]
    if isinstance(declaration, Mask):
        return attribute.build_hierarchy(sorted({_unmask(label) for label in shown}))
    if attribute.kind is not Kind.CATEGORY:
        return attribute.build_hierarchy(
            np.array(shown, dtype="datetime64[D]" if attribute.kind is Kind.DATE else "float64")
        )
    return attribute.build_hierarchy(sorted(set(shown)))


def _unmask(label: str) -> str:
    """A value that a mask would publish as this label, in time."""
    kept = label.rstrip(ROOT)
    return kept + HIDDEN * (len(label) - len(kept)) if kept else label


def _read_bounds(
    rows: pa.Table, attribute: Attribute, *, has_missing: bool
) -> tuple[OrderedAxis, pa.Array, BoxEnds]:
    """Boxes that are published by their least and greatest value alone.

    Both belong to the box: where the upper end of an interval does not, that makes it wider by one point.
    """
    plain = replace(attribute, hierarchy=None)
    low, high = (published_numbers(rows, name, attribute.kind) for name in bound_names(attribute.name))
    is_missing = np.isnan(high)
    missing = np.isnan(low) & ~is_missing
    least, greatest = attribute.bounds or (float(np.nanmin(low)), float(np.nanmax(high)))
    axis = OrderedAxis(plain, least, greatest, _find_step(attribute), has_missing, shows_least=True)
    ends = distinct_boxes(
        np.where(is_missing | missing, -np.inf, low), np.where(is_missing, -np.inf, high), missing
    ).ends
    return axis, axis.labels(*ends), ends


def _find_step(attribute: Attribute) -> float | None:
    if attribute.kind is Kind.DATE:
        return 1.0
    declaration = attribute.declaration
    return declaration.make_grid(attribute).step if isinstance(declaration, NumberRanges) else None
