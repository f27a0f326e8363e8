"""Generalization hierarchies: trees whose leaves are values and whose nodes are sets of them.

The leaves are numbered from left to right (their *codes*), so every node is a range ``[low, high)`` of
codes, and a box needs no more than two integers per column.

A :class:`Hierarchy` comes from a tree, from paths, from levels (ARX, anjana), or from a file (:func:`read`,
:func:`write`). What a policy declares (:mod:`~sfumato.policy.hierarchy.declarations`) builds one.

No error here names a label: a label may be the value of a cell.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import HierarchyError, InternalError
from sfumato.policy.hierarchy import files
from sfumato.policy.hierarchy.files import MAX_HEIGHT, ROOT, Label

Nodes = NDArray[np.int32]
Ints = NDArray[np.int64]
Node = int | np.integer[Any]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Hierarchy:
    """A tree of labels over the values of a column, from the single values up to the root.

    Nodes are numbered depth first: node 0 is the root, and a node comes before its children. Only ``labels`` and
    ``parent`` are given; the rest follows from them. :meth:`from_tree` reads nested dicts. A label is ``None`` for the
    leaf of missing values. Sibling labels are distinct, and so are the labels of leaves (until :meth:`prune`);
    otherwise a label may stand in several places. Equality and hash are by content.

    >>> places = Hierarchy.from_tree({"*": {"North": ["a", "b"], "South": ["c"]}})
    >>> places.labels
    ('*', 'North', 'a', 'b', 'South', 'c')
    >>> places.low.tolist(), places.high.tolist()
    ([0, 0, 0, 1, 2, 2], [3, 2, 1, 2, 3, 3])
    >>> places
    Hierarchy(n_leaves=3, height=2)
    """

    labels: tuple[Label, ...]
    parent: Nodes
    depth: Nodes = field(init=False)
    low: Nodes = field(init=False)
    high: Nodes = field(init=False)
    leaf_nodes: Nodes = field(init=False)

    def __post_init__(self) -> None:
        parent = np.array(self.parent, dtype=np.int32)
        n_nodes = len(self.labels)
        own = np.arange(n_nodes, dtype=np.int32)
        if len(parent) != n_nodes or not n_nodes or parent[0] != -1:
            raise InternalError("A hierarchy needs one parent per label, and -1 for the root.")
        if not np.all((parent[1:] >= 0) & (parent[1:] < own[1:])):
            raise InternalError("A node of a hierarchy stands before its parent.")
        depth, last = _depths(parent), _last_descendants(parent)
        is_leaf = last == own
        low = (np.cumsum(is_leaf) - is_leaf).astype(np.int32)
        high = low[last] + np.int32(1)
        covered = np.bincount(parent[1:], weights=(high - low)[1:], minlength=n_nodes)
        if not np.array_equal(covered[~is_leaf], (high - low)[~is_leaf]):
            raise InternalError("The nodes of a hierarchy are not in depth-first order.")
        if depth.max() > MAX_HEIGHT:
            raise HierarchyError(f"It has more than {MAX_HEIGHT} levels.")
        arrays = {"parent": parent, "depth": depth, "low": low, "high": high, "leaf_nodes": own[is_leaf]}
        for name, array in arrays.items():
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Hierarchy):
            return NotImplemented
        return self.labels == other.labels and np.array_equal(self.parent, other.parent)

    def __hash__(self) -> int:
        return hash((self.labels, self.parent.tobytes()))

    def __repr__(self) -> str:
        """Sizes only: labels may be cells, and a repr ends up in logs."""
        return f"Hierarchy(n_leaves={self.n_leaves}, height={self.height})"

    @property
    def n_nodes(self) -> int:
        return len(self.labels)

    @property
    def n_leaves(self) -> int:
        return len(self.leaf_nodes)

    @property
    def height(self) -> int:
        """Steps from the root to the deepest leaf."""
        return int(self.depth.max())

    def children(self, node: Node) -> Nodes:
        """The children of a node, from left to right."""
        end = self.leaf_nodes[self.high[node] - 1] + 1
        return np.flatnonzero(self.parent[node + 1 : end] == node).astype(np.int32) + np.int32(node + 1)

    def path(self, node: Node) -> tuple[Label, ...]:
        """The labels from the root down to ``node``: what names a node in any hierarchy that has it."""
        labels = []
        while node >= 0:
            labels.append(self.labels[node])
            node = self.parent[node]
        return tuple(reversed(labels))

    def descend(self, path: Sequence[Label]) -> int:
        """The deepest node that ``path`` leads to, labels from the root down.

        >>> places = Hierarchy.from_tree({"*": {"North": ["a", "b"], "South": ["c"]}})
        >>> places.descend(("*", "North", "unheard of")), places.descend(("else", "North"))
        (1, 0)
        """
        node = 0
        if not path or path[0] != self.labels[0]:
            return node
        for label in path[1:]:
            found = [child for child in self.children(node).tolist() if self.labels[child] == label]
            if not found:
                break
            node = found[0]
        return node

    def with_missing(self) -> Hierarchy:
        """The same hierarchy with a leaf for missing values, the last child of the root.

        All codes stay as they are, so missing is the last code. (A root that is itself the only leaf
        therefore hands its label down to a leaf of its own.)
        """
        if None in self.labels:
            return self
        given = (self.labels[0],) if self.n_nodes == 1 else ()
        labels = (*self.labels, *given, None)
        return Hierarchy(labels, np.append(self.parent, [0] * (len(given) + 1)))

    def prune(self, nodes: Iterable[int] | Nodes) -> tuple[Hierarchy, Nodes]:
        """The hierarchy of these nodes and their ancestors alone, and where each old node went (-1: nowhere).

        Nothing is merged: a node and its only remaining child stay two nodes, even under one label, and
        nodes of one label in different branches may have become leaves. ``from_tree(..., pruned=True)``
        reads such a tree back.

        >>> places = Hierarchy.from_tree({"*": {"North": ["a", "b"], "South": ["c"]}})
        >>> pruned, new = places.prune([3])
        >>> pruned.as_tree(), new.tolist()
        ({'*': {'North': ['b']}}, [0, 1, -1, 2, -1, -1])
        """
        keep = np.zeros(self.n_nodes, dtype=np.bool_)
        keep[0] = True
        wanted = np.unique(
            np.asarray(nodes if isinstance(nodes, np.ndarray) else list(nodes), dtype=np.int64)
        )
        while len(wanted := wanted[~keep[wanted]]):
            keep[wanted] = True
            wanted = np.unique(self.parent[wanted])
        kept = np.flatnonzero(keep)
        new = np.full(self.n_nodes, -1, dtype=np.int32)
        new[kept] = np.arange(len(kept), dtype=np.int32)
        parent = np.append([-1], new[self.parent[kept[1:]]])
        return Hierarchy(tuple(self.labels[node] for node in kept.tolist()), parent), new

    def find_cut(self, depth: int) -> Nodes:
        """The nodes at this depth, and the leaves above it, from left to right.

        >>> places = Hierarchy.from_tree({"*": {"North": ["a", "b"], "c": None}})
        >>> places.find_cut(1).tolist()
        [1, 4]
        """
        is_leaf = np.zeros(self.n_nodes, dtype=np.bool_)
        is_leaf[self.leaf_nodes] = True
        return np.flatnonzero((self.depth == depth) | (is_leaf & (self.depth < depth))).astype(np.int32)

    def cut(self, depth: int) -> Hierarchy:
        """The hierarchy without what lies deeper. Leaves may then have one label in different branches.

        >>> Hierarchy.from_tree({"*": {"North": ["a", "b"], "c": None}}).cut(1).as_tree()
        {'*': ['North', 'c']}
        """
        kept = np.flatnonzero(self.depth <= depth)
        new = np.cumsum(self.depth <= depth) - 1
        parent = np.append([-1], new[self.parent[kept[1:]]])
        return Hierarchy(tuple(self.labels[node] for node in kept.tolist()), parent)

    @classmethod
    def flat(cls, values: Iterable[str]) -> Hierarchy:
        """Every value under one root, in the order given.

        >>> Hierarchy.flat(["Male", "Female"]).as_tree()
        {'*': ['Male', 'Female']}
        """
        labels = (ROOT, *values)
        _refuse_repeated(labels[1:], "Values that stand more than once: {n}.")
        return (
            cls((ROOT,), np.array([-1]))
            if labels == (ROOT, ROOT)
            else cls(labels, _flat_parents(len(labels)))
        )

    @classmethod
    def from_tree(cls, tree: Mapping[Any, Any] | Sequence[Any], *, pruned: bool = False) -> Hierarchy:
        """A nested mapping of labels, with lists or ``None`` where the leaves are.

        One key at the top is the root; several stand below an extra root ``*``. A list may mix leaves,
        mappings of inner nodes and, as the last one below the root, ``None`` for missing values.
        An only child that repeats its parent's label is merged into it, and leaf labels must be distinct;
        a ``pruned`` tree, however, is taken as it stands.

        >>> Hierarchy.from_tree({"North": ["a", "b"], "South": {"c": None}}).as_tree()
        {'*': {'North': ['a', 'b'], 'South': ['c']}}
        """
        return _assemble(*files.of_tree(tree), pruned=pruned)

    @classmethod
    def from_paths(cls, rows: Iterable[Sequence[str]]) -> Hierarchy:
        """One row per leaf: the labels from the root down to it. Children stand in order of appearance.

        >>> Hierarchy.from_paths([("*", "North", "a"), ("*", "South", "c"), ("*", "North", "b")]).as_tree()
        {'*': {'North': ['a', 'b'], 'South': ['c']}}
        """
        return _assemble(*files.of_paths(rows))

    @classmethod
    def from_levels(cls, rows: Iterable[Sequence[str]]) -> Hierarchy:
        """Rows as ARX has them: a leaf, then ever more general labels, the top last; all of one length.

        A node is a label at a level: one label at a level must imply one label at the next. The last of
        several rows for one leaf counts. A top level of more than one label gets an extra root ``*``.

        >>> Hierarchy.from_levels([("a", "North", "*"), ("b", "North", "*"), ("c", "c", "*")]).as_tree()
        {'*': {'North': ['a', 'b'], 'c': None}}
        """
        return _assemble(*files.of_levels(rows))

    def as_tree(self) -> dict[Label, Any]:
        """The nested form that :meth:`from_tree` reads: mappings, lists and texts, for JSON and YAML."""
        inner: list[list[int]] = [[] for _ in self.labels]
        for node, parent in enumerate(self.parent.tolist()[1:], start=1):
            inner[parent].append(node)
        below: list[Any] = [None] * self.n_nodes
        for node in reversed(range(self.n_nodes)):
            children = inner[node]
            if children and all(below[child] is None for child in children):
                below[node] = [self.labels[child] for child in children]
            elif None in (self.labels[child] for child in children):  # no key of a mapping can be None
                below[node] = [
                    self.labels[child] if below[child] is None else {self.labels[child]: below[child]}
                    for child in children
                ]
            elif children:
                below[node] = {self.labels[child]: below[child] for child in children}
        return {self.labels[0]: below[0]}

    def as_levels(self) -> list[tuple[Label, ...]]:
        """One row per leaf, from the leaf to the root, as :meth:`from_levels` reads them.

        A leaf that is less deep than others repeats its own label.

        >>> Hierarchy.from_tree({"*": {"North": ["a", "b"], "c": None}}).as_levels()
        [('a', 'North', '*'), ('b', 'North', '*'), ('c', 'c', '*')]
        """
        rows, height = [], self.height
        for node in self.leaf_nodes.tolist():
            path = self.path(node)
            rows.append((path[-1],) * (height + 1 - len(path)) + path[::-1])
        return rows


def _depths(parent: Nodes) -> Nodes:
    """Each node's distance from the root, by jumps that double."""
    jump = np.maximum(parent, 0)
    depth = np.ones(len(parent), dtype=np.int32)
    depth[0] = 0
    while jump.any():
        depth += depth[jump]
        jump = jump[jump]
    return depth


def _last_descendants(parent: Nodes) -> Nodes:
    """Each node's last descendant (a leaf is its own), by jumps that double."""
    last = np.arange(len(parent), dtype=np.int32)
    np.maximum.at(last, parent[1:], last[1:].copy())
    while not np.array_equal(further := last[last], last):
        last = further
    return last


def _flat_parents(n_nodes: int) -> Nodes:
    parent = np.zeros(n_nodes, dtype=np.int32)
    parent[0] = -1
    return parent


def _refuse_repeated(labels: Iterable[Label], sentence: str) -> None:
    repeated = sum(count > 1 for count in Counter(labels).values())
    if repeated:
        raise HierarchyError(sentence.format(n=repeated))


def _assemble(labels: Sequence[Label], parents: Sequence[int], *, pruned: bool = False) -> Hierarchy:
    """Nodes in any order in which parents come first -> a checked hierarchy in preorder."""
    children: list[list[int]] = [[] for _ in labels]
    for node, parent in enumerate(parents):
        if parent >= 0:
            children[parent].append(node)
    ordered: list[Label] = []
    parent_of: list[int] = []
    stack = [(0, -1)]
    while stack:
        node, above = stack.pop()
        while not pruned and len(children[node]) == 1 and labels[children[node][0]] == labels[node]:
            node = children[node][0]
        below = children[node]
        if len({labels[child] for child in below}) < len(below):
            _refuse_repeated((labels[child] for child in below), "Labels that repeat under one parent: {n}.")
        stack.extend((child, len(ordered)) for child in reversed(below))
        ordered.append(labels[node])
        parent_of.append(above)
    built = Hierarchy(tuple(ordered), np.array(parent_of))
    if not pruned:
        leaves = [built.labels[node] for node in built.leaf_nodes.tolist()]
        _refuse_repeated(leaves, "Leaf labels that stand more than once: {n}. Each value needs one place.")
    if None in built.labels[:-1] or (built.labels[-1] is None and built.parent[-1] != 0):
        raise HierarchyError("A null (for missing values) may only be the last child of the root.")
    return built


def build_from_ranges(
    n_leaves: int, levels: Sequence[Ints], label_ranges: Callable[[Ints, Ints], list[str]]
) -> Hierarchy:
    """The tree of ranges of leaves, which ``label_ranges`` names; ``levels`` are the starts of each level's ranges.

    Levels go from the coarsest to the finest. A range that a coarser level has already is one node with it. Nodes are
    numbered level by level, so sorting them by start (stably: coarser first) gives the preorder.
    """
    n_nodes = 1
    owner = np.zeros(n_leaves, dtype=np.int64)  # the deepest node so far above each leaf
    end_at = np.full(n_leaves, -1)  # where the narrowest range so far that starts at a leaf ends
    columns = [np.array([[0], [n_leaves], [-1]])]
    for starts in levels:
        ends = np.append(starts[1:], n_leaves)
        is_new = end_at[starts] != ends
        end_at[starts] = ends
        nodes = owner[starts]
        columns.append(np.stack([starts[is_new], ends[is_new], nodes[is_new]]))
        nodes[is_new] = np.arange(n_nodes, n_nodes + is_new.sum())
        n_nodes += int(is_new.sum())
        owner = np.repeat(nodes, ends - starts)
    low, high, parent = np.concatenate(columns, axis=1)
    order = np.argsort(low, kind="stable")
    place = np.empty(n_nodes, dtype=np.int64)
    place[order] = np.arange(n_nodes)
    below = order[1:]
    labels = (ROOT, *label_ranges(low[below], high[below]))
    return Hierarchy(labels, np.append([-1], place[parent[below]]).astype(np.int32))


def read(path: str | os.PathLike[str]) -> Hierarchy:
    """A hierarchy from a file: ARX CSV (``;``), comma CSV of that shape, JSON tree, anjana's levels."""
    with name_errors(f"Hierarchy file {os.fspath(path)!r}"):
        return _assemble(*files.load(Path(path)))


def write(hierarchy: Hierarchy, path: str | os.PathLike[str], *, levels: bool = False) -> None:
    """Write ARX CSV (``.csv``) or a JSON tree (``.json``); with ``levels`` anjana's form of either.

    Uneven depths are padded with the leaf's label in all but the JSON tree. What would not read back as
    the same hierarchy (such as one label at several places of a level) is refused.
    """
    with name_errors(f"Hierarchy file {os.fspath(path)!r}"):
        path = Path(path)
        text = _text(hierarchy, path.suffix.lower(), levels=levels)
        _check_reads_back(hierarchy, text, is_json=path.suffix.lower() == ".json")
        files.write_whole(path, text)


def _text(hierarchy: Hierarchy, suffix: str, *, levels: bool) -> str:
    if suffix == ".csv":
        return files.delimited_text(hierarchy.as_levels(), delimiter="," if levels else ";")
    if suffix != ".json":
        raise HierarchyError("The name of a hierarchy file must end in .csv or .json.")
    if not levels:
        return json.dumps(hierarchy.as_tree(), ensure_ascii=False, indent=1) + "\n"
    rows = hierarchy.as_levels()
    columns = (
        list(zip(*rows, strict=True)) if hierarchy.height else rows * 2
    )  # one level would read as a tree
    return json.dumps(dict(enumerate(columns)), ensure_ascii=False) + "\n"


def _check_reads_back(hierarchy: Hierarchy, text: str, *, is_json: bool) -> None:
    try:
        is_same = _assemble(*files.parse(text, is_json=is_json)) == hierarchy
    except HierarchyError:
        is_same = False
    if not is_same:
        raise HierarchyError("This format cannot hold this hierarchy; write it as a JSON tree (.json).")


@contextlib.contextmanager
def name_errors(what: str) -> Iterator[None]:
    """Say of which hierarchy an error speaks."""
    try:
        yield
    except HierarchyError as error:
        raise HierarchyError(f"{what}: {error}") from None
