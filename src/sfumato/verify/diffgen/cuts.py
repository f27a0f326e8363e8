"""The cuts of a private release, read anew and compared with the domains that its policy declares.

Missing is a value of every domain: below all numbers, and in a hierarchy part of the last child on the way down.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.policy.document import Policy
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.kinds import as_date, read_day
from sfumato.policy.options.diffgen import DiffGenOptions
from sfumato.policy.output import Output, bound_names
from sfumato.policy.schema import Attribute, Kind
from sfumato.verify.checks import Unfit
from sfumato.verify.risk_utility.labels import declared_tree

OR_MISSING = " or missing"
FIELDS = {"format", "kind", "output", "groups", "attributes", "thresholds"}
AXIS = {"name", "missing", "declared", "kind"}
ORDERED, TREE = {"low", "high", "grid"}, {"bounds", "labels", "parent"}
LEAVES = "leaves"
ANY = object()
"""A cut that was drawn may be any."""

NEAR = Fraction(1, 10**6)
"""How far a threshold may lie from its grid point, in steps: it is stored as a float."""


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """The pieces of one attribute's cut: by column, what every piece is published as; and how often it was split."""

    name: str
    labels: Mapping[str, Sequence[str | None]]
    numbers: Mapping[str, Sequence[float | None]]
    n_pieces: int
    n_splits: int
    n_single: int = 0
    """Pieces of an ordered attribute that hold one value, or missing alone."""


def cuts_of(policy: Policy, document: Any) -> list[Cut]:
    """The cuts that a recoding says, if they divide the declared domains; Illegal if they do not.

    Cuts that the owner gave must be those.
    """
    if not isinstance(document, dict) or (document.get("format"), document.get("kind")) != (1, "cuts"):
        raise Unfit("it is no recoding by cuts")
    _check_fields(document, FIELDS)
    if document.get("output") != str(policy.output):
        raise Unfit("its output is not that of the policy")
    entries, thresholds = document.get("attributes"), document.get("thresholds")
    quasi = policy.schema.quasi_identifiers
    if not isinstance(entries, list) or not isinstance(thresholds, list) or len(thresholds) != len(entries):
        raise Unfit("it lacks the attributes, or their thresholds")
    names = [entry.get("name") if isinstance(entry, dict) else None for entry in entries]
    if names != [attribute.name for attribute in quasi]:
        raise Unfit("its attributes are not the quasi-identifiers")
    given = policy.options_for(DiffGenOptions).cuts
    found = []
    for attribute, entry, points in zip(quasi, entries, thresholds, strict=True):
        try:
            wanted = ANY if given is None else given.get(attribute.name)
            if attribute.is_ordered:
                found.append(_ordered_cut(attribute, entry, points, wanted, policy.output))
            else:
                found.append(_tree_cut(attribute, entry, points, wanted))
        except Unfit as error:
            raise Unfit(f"{error} (column {attribute.name!r})") from None
        except (KeyError, TypeError, ValueError, OverflowError):
            raise Unfit(f"the cut of column {attribute.name!r} cannot be read") from None
    return found


def _ordered_cut(
    attribute: Attribute, entry: Mapping[str, Any], points: Any, wanted: Any, output: Output
) -> Cut:
    """Thresholds ascend on the declared grid; missing lies below all numbers."""
    _check_fields(entry, AXIS | ORDERED)
    assert attribute.bounds is not None  # a private policy declares them
    low, high = map(_exact, attribute.bounds)
    step = _exact(attribute.step or 1)
    said = {key: _exact(entry[key]) for key in ("low", "high", "grid")}
    if not _has_missing(entry, "ordered") or said != {"low": low, "high": high, "grid": step}:
        raise Unfit("bounds or step are not those that were declared")
    places = [-1 if point is None else _place(point, low, step) for point in points]
    n_steps = int((high - low) / step)
    if any(not -1 <= place < n_steps for place in places):
        raise Unfit("a threshold leaves nothing on one side")
    if any(place >= after for place, after in pairwise(places)):
        raise Unfit("thresholds do not ascend")
    if not _is_wanted(places, wanted, low, step, n_steps):
        raise Unfit("it is not the cut that the owner gave")
    firsts = [low] + [low if point is None else _exact(point) + step for point in points]
    lasts = [None if point is None else _exact(point) for point in points] + [high]
    ends = list(zip(map(float, firsts), (None if end is None else float(end) for end in lasts), strict=True))
    name, labels, numbers = attribute.name, {}, {}
    if output.has_labels:
        written = [None if last is None else _interval(first, last, attribute.kind) for first, last in ends]
        labels[name] = [f"{written[0]}{OR_MISSING}" if written[0] else None, *written[1:]]
    if output.has_bounds:
        low_name, high_name = bound_names(name)
        numbers = {low_name: [None, *(first for first, _ in ends[1:])], high_name: [end for _, end in ends]}
    sizes = np.diff([-2, *places, n_steps])
    return Cut(name, labels, numbers, len(ends), len(points), int(np.sum(sizes == 1)))


def _check_fields(entry: Mapping[str, Any], fields: set[str]) -> None:
    if entry.keys() != fields:
        raise Unfit("it has fields that no recoding has, or lacks some")


def _has_missing(entry: Mapping[str, Any], kind: str) -> bool:
    """Is the axis of this kind, missing a value of it, and anything that was not declared missing?"""
    return entry["kind"] == kind and entry["missing"] is True and entry["declared"] is True


def _is_wanted(places: Sequence[int], wanted: Any, low: Fraction, step: Fraction, n_steps: int) -> bool:
    """Is a cut at these grid points the one that the owner gave? A list says where pieces begin."""
    if wanted is ANY:
        return True
    if wanted == LEAVES:
        return list(places) == list(range(-1, n_steps))
    begins = [read_day(begin) if isinstance(begin, str) else begin for begin in wanted or ()]
    return list(places) == [_place(begin, low, step) - 1 for begin in begins]


def _place(point: Any, low: Fraction, step: Fraction) -> int:
    """The number of a grid point, counted from the lower bound."""
    steps = (_exact(point) - low) / step
    if abs(steps - round(steps)) > NEAR:
        raise Unfit("a threshold is off the declared grid")
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
        return as_date(number).isoformat()
    is_whole = number.is_integer() and abs(number) < 2**53
    return str(int(number)) if is_whole else pa.scalar(number).cast(pa.string()).as_py()


def _tree_cut(attribute: Attribute, entry: Mapping[str, Any], points: Any, wanted: Any) -> Cut:
    """Nodes of the declared hierarchy; wherever one is divided, all its children are there, in their order."""
    _check_fields(entry, AXIS | TREE)
    bounds = None if attribute.bounds is None else list(attribute.bounds)
    if not _has_missing(entry, "tree") or points != [] or entry["bounds"] != bounds:
        raise Unfit("it is cut at thresholds, or bounds are not those that were declared")
    labels, parent = entry["labels"], entry["parent"]
    if len(labels) != len(parent) or parent[0] != -1:
        raise Unfit("its nodes are no tree")
    below: list[list[int]] = [[] for _ in labels]
    for node, above in enumerate(parent[1:], start=1):
        if not 0 <= above < node:
            raise Unfit("its nodes are no tree")
        below[above].append(node)
    tree = _DeclaredTree.of(attribute)
    if labels[0] != tree.hierarchy.labels[0]:
        raise Unfit("its root is not that of the declared hierarchy")
    order: list[int] = []
    plain: list[str] = []
    is_whole = True
    waiting = [(0, tree.root)]
    while waiting:
        node, place = waiting.pop()
        order.append(node)
        children = tree.children(place)
        if not below[node]:
            is_whole &= not children
            plain.append(str(tree.hierarchy.labels[place[0]]))
            continue
        if [labels[child] for child in below[node]] != [label for label, _ in children]:
            raise Unfit("a node is divided otherwise than in the declared hierarchy")
        places = [place for _, place in children]
        waiting += reversed(list(zip(below[node], places, strict=True)))
    if order != list(range(len(labels))):
        raise Unfit("its nodes are not in order")
    leaves = [node for node in order if not below[node]]
    cells = [labels[node] for node in leaves]
    if wanted == LEAVES:
        is_wanted = is_whole
    else:
        is_wanted = len(leaves) == 1 if wanted is None else wanted is ANY or sorted(plain) == sorted(wanted)
    if not is_wanted:
        raise Unfit("it is not the cut that the owner gave")
    return Cut(attribute.name, {attribute.name: cells}, {}, len(leaves), len(labels) - len(leaves))


Place = tuple[int, bool]
"""A node of the declared hierarchy, and whether missing belongs to it."""


@dataclass(frozen=True, slots=True)
class _DeclaredTree:
    """A declared hierarchy, to which missing belongs: to the last child of every node on the way down to it."""

    hierarchy: Hierarchy
    has_own: bool
    """Has the hierarchy a leaf for missing values itself?"""

    @classmethod
    def of(cls, attribute: Attribute) -> _DeclaredTree:
        tree = declared_tree(attribute)
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


def classes_of(policy: Policy) -> tuple[str, list[str]]:
    """The column of the classes, and all of them in the order in which they were declared."""
    target = policy.schema[policy.predictions[0].targets[0]]
    if target.values is not None:
        return target.name, list(target.values)
    tree = target.build_hierarchy(())
    labels = [tree.labels[node] for node in tree.leaf_nodes.tolist()]
    return target.name, [label for label in labels if label is not None]
