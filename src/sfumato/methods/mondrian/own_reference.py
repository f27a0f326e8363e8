"""Groups that are compared with the published rows, where some rows are left out.

Growth compares groups with the whole table, since nobody knows yet which rows will go. What is published is compared with
itself: rounds of growth find what is published and which groups are too far from it, and undo the last split of each.
Such a split parts its rows no more, and leaves none of them out. Of a list the cells are taken back from the first one
that fails on, or the last one if those do that no cell took. A split that was undone stays so, and a table that is one
group is as it is itself: so the rounds end. Growth depends on each node alone, so all else grows as before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.encoding.targets import Columns, Label
from sfumato.engines.protocol import Asked, Block, EncodedTable, Engine, Loaded
from sfumato.kernels.nodes import Nodes
from sfumato.methods.mondrian.sample import find_parents
from sfumato.methods.mondrian.taken_back import NO_SPLIT, NOTHING_UNDONE, TakenBack, Undone, Way, way_of
from sfumato.methods.people import CELLS_AT_ONCE, PeopleCells
from sfumato.policy.document import Policy
from sfumato.policy.requirements import GroupStats, Needs, Requirement
from sfumato.table.combinations import number_combinations
from sfumato.table.spill import Spill

Ints = NDArray[np.int64]
Codes = NDArray[np.uint32]


class CountedGroups(NamedTuple):
    """Groups below a leaf of the top: how often each value counts in them, and the rows left out beside them."""

    path: Way
    nodes: Nodes | None
    origin: Ints | None
    n_cells: int | None
    """Cells of a list, but for what none of them took; None if this is a tree."""
    values: Mapping[str, Ints]
    left_out: Codes


class ComparedColumn(NamedTuple):
    """A sensitive column in which groups are compared: its place in the row matrix, and among counts of pairs."""

    name: str
    place: int
    first: int
    n_values: int


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """What is needed of a table to compare its groups; ``person`` is the place of the person's code, None: rows count."""

    columns: tuple[ComparedColumn, ...]
    person: int | None

    @classmethod
    def of(cls, columns: Columns, requirements: Sequence[Requirement]) -> Comparison | None:
        """None if no requirement compares groups with all rows."""
        counted = [item.of for item in requirements if Needs.VALUES in item.needs and item.of is not None]
        found, first = [], 0
        for name in dict.fromkeys(counted):
            n_values = len(columns.count(Label(name)))
            if any(compares(item) and item.of == name for item in requirements):
                found.append(ComparedColumn(name, columns.place(Label(name)), first, n_values))
            first += n_values
        person = None if columns.person is None else columns.place(columns.person)
        return cls(tuple(found), person) if found else None

    @property
    def places(self) -> list[int]:
        """The columns of the row matrix that are looked at: that of people, if these count, and those compared."""
        return [*([] if self.person is None else [self.person]), *(column.place for column in self.columns)]


def compares(requirement: Requirement) -> bool:
    """Does a requirement compare groups with all rows?"""
    return Needs.REFERENCE in requirement.needs


@dataclass(frozen=True, slots=True, eq=False)
class CountGroups:
    """Count the values in the groups that a work finds, and publish nothing."""

    work: Any
    comparison: Comparison

    def __call__(self, part: Loaded) -> CountedGroups:
        codes = {place: part.rows[:, place].copy() for place in self.comparison.places}
        cells = PeopleCells(codes, part.numbers)
        chunk, note = self.work(part)
        rows = cells.find(chunk.groups)
        group = np.repeat(np.arange(len(chunk.groups.size)), chunk.groups.size)
        lines = np.stack([codes[place] for place in self.comparison.places], axis=1)
        left_out = lines[:0] if len(rows) == len(lines) else np.delete(lines, rows, axis=0)
        values = {
            column.name: self._count(column, group, lines[rows], note.pairs)
            for column in self.comparison.columns
        }
        return CountedGroups(way_of(self.work.path), note.nodes, note.origin, note.n_cells, values, left_out)

    def _count(self, column: ComparedColumn, group: Ints, lines: Codes, pairs: Ints | None) -> Ints:
        """(groups, values) how often each value counts in each group; ``pairs`` are those of a large group of people."""
        n_groups, m = int(group[-1]) + 1, column.n_values
        if pairs is not None:
            return pairs[None, column.first : column.first + m]
        value = lines[:, self.comparison.places.index(column.place)]
        if self.comparison.person is not None:
            first = number_combinations([group, lines[:, 0], value], in_order=False).first_rows()
            group, value = group[first], value[first]
        counts = np.bincount(group * m + value, minlength=n_groups * m)
        return counts.reshape(n_groups, m).astype(np.int64)


# ---- what is published ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class PairPlan:
    """Count the rows of some pairs of person and value in the whole table; ``keys`` are those pairs, ascending."""

    person: int
    column: ComparedColumn
    keys: Ints
    n_bytes: int = 0

    def new(self, _room: int, _spill: Spill | None) -> PairCounts:
        """No row yet."""
        return PairCounts(self, np.zeros(len(self.keys), dtype=np.int64))

    def answer(self, state: PairCounts) -> Ints:
        """The rows of each pair."""
        return state.n_rows


@dataclass(slots=True, eq=False)
class PairCounts:
    """The state of a ``PairPlan``."""

    plan: PairPlan
    n_rows: Ints

    def add(self, block: Block) -> None:
        """Add some rows."""
        rows, plan = block.rows, self.plan
        key = rows[:, plan.person].astype(np.int64) * plan.column.n_values + rows[:, plan.column.place]
        at = np.minimum(np.searchsorted(plan.keys, key), len(plan.keys) - 1)
        self.n_rows += np.bincount(at[plan.keys[at] == key], minlength=len(plan.keys))

    def merge(self, other: PairCounts) -> None:
        """Add the rows of another state."""
        self.n_rows += other.n_rows


def count_published(
    engine: Engine, table: EncodedTable, comparison: Comparison, left_out: Codes
) -> dict[str, Ints]:
    """How often each value counts in what is published: in rows, or pairs of person and value."""
    found = {}
    for place, column in enumerate(comparison.columns):
        counts = table.columns.count_pairs(Label(column.name)).astype(np.int64)
        if comparison.person is None:
            gone = left_out[:, place]
        else:
            pairs = left_out[:, 0].astype(np.int64) * column.n_values + left_out[:, 1 + place]
            keys, n_left = np.unique(pairs, return_counts=True)
            asked = Asked([PairPlan(comparison.person, column, keys)])
            (n_rows,) = engine.gather(engine.open(table), asked, stage="counting")
            gone = keys[n_left == n_rows] % column.n_values
        found[column.name] = counts - np.bincount(gone, minlength=column.n_values)
    return found


# ---- rounds -----------------------------------------------------------------------------------------


def undo_splits(start: Callable[..., tuple[Any, Engine]], table: EncodedTable, policy: Policy) -> Undone:
    """What must be undone so that all groups hold beside what is published; ``start`` begins a run."""
    comparison, undone = Comparison.of(table.columns, policy.requirements), NOTHING_UNDONE
    while comparison is not None:
        run, engine = start(undone=undone)
        works = ((rows, CountGroups(work, comparison)) for rows, work in run.works())
        groups = list(engine.finish(works))
        left_out = np.concatenate([*(each.left_out for each in groups), run.rows_left_out()])
        if len(left_out) == 0:
            return Undone(undone.top, undone.below)
        published = count_published(engine, table, comparison, left_out)
        failing = dict(_find_failing(_join(groups), published, table, policy.requirements))
        undone = Undone(undone.top, undone.below, published)
        if not failing:
            break
        undone = _undo(undone, failing)
    return undone


def _join(groups: Sequence[CountedGroups]) -> Iterator[CountedGroups]:
    """The same, but a large group that came in several parts is one."""
    known: dict[Way, CountedGroups] = {}
    for each in groups:
        if each.path in known:
            values = {name: known[each.path].values[name] + own for name, own in each.values.items()}
            known[each.path] = each._replace(values=values)
        else:
            known[each.path] = each
    yield from known.values()


def _find_failing(
    groups: Iterator[CountedGroups],
    published: Mapping[str, Ints],
    table: EncodedTable,
    requirements: Sequence[Requirement],
) -> Iterator[tuple[Way, tuple[CountedGroups, Ints]]]:
    """The groups that are too far from what is published, by their places."""
    asked = [(item, item.of) for item in requirements if compares(item) and item.of is not None]
    references = [
        (item, name, table.columns.labels[name].reference_for(item, published[name])) for item, name in asked
    ]
    for each in groups:
        fails = np.zeros(len(next(iter(each.values.values()))), dtype=np.bool_)
        for item, name, reference in references:
            values = each.values[name]
            step = max(1, CELLS_AT_ONCE // values.shape[1])
            for start in range(0, len(values), step):
                own = values[start : start + step]
                fails[start : start + step] |= ~item.holds(
                    GroupStats(own.sum(axis=1), values=own, reference=reference)
                )
        if fails.any():
            yield each.path, (each, np.flatnonzero(fails))


def _undo(undone: Undone, failing: Mapping[Way, tuple[CountedGroups, Ints]]) -> Undone:
    """With the last splits of failing groups undone."""
    top, below = set(undone.top), dict(undone.below)
    for path, (groups, fails) in failing.items():
        nodes, known = groups.nodes, below.get(path, NO_SPLIT)
        if nodes is None or len(nodes.axis) == 1:
            top.add(path[:-1])
            continue
        if groups.n_cells is not None:
            kept = min(int(fails.min()), groups.n_cells - 1)
            below[path] = TakenBack(cells=kept) if kept > 0 else TakenBack(frozenset([0]))
            continue
        leaves = np.flatnonzero(nodes.axis < 0)
        by_start = leaves[np.argsort(nodes.start[leaves])]
        parents = find_parents(nodes)[by_start[fails]]
        origin = parents if groups.origin is None else groups.origin[parents]
        below[path] = TakenBack(known.whole | frozenset(origin.tolist()))
    return Undone(frozenset(top), below, undone.published)
