"""How much of each column was lost, and what keeps it so.

The loss of a cell is taken apart, from what nothing could help to what was decided:

- its label is wider than the values of its group: ``wide``;
- no label that has the value and k rows of the whole table is narrower: ``rare``;
- the rest is what keeps its group from being divided along the column: too few rows alike, because other columns told
  them apart (``few``); a requirement; or nothing, for a division would hold, but was not made (``undone``).

A row that was left out loses everything. The parts add up to the NCP of the column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.encoding.encoders import encode_people
from sfumato.errors import number_of
from sfumato.methods.lost.divisions import POSSIBLE, TOGETHER, TOO_FEW, Runs, find_obstacles
from sfumato.methods.lost.values import ColumnValues, TreeValues, values_of
from sfumato.methods.refusals import PartStatistics, choose_statistics
from sfumato.policy.document import Policy
from sfumato.policy.requirements import Needs, Requirement
from sfumato.recoding.axis import Axis, BoxEnds, DistinctBoxes
from sfumato.recoding.loss import Shares, WholeTree, boxes_along, shares_of, worst_first, write_share
from sfumato.recoding.recoder import Partition
from sfumato.table.combinations import number_combinations
from sfumato.table.source import Source

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


ROUNDOFF = 1e-12

LEAST_TOLD = 0.01
"""Parts of a loss that are less of it are not told in words."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of what a column lost: the ``share`` of the column, and why, in a few words and in a sentence."""

    kind: str
    share: float
    words: str


@dataclass(frozen=True, slots=True)
class LostColumn:
    """What a column lost, and why.

    ``rare_rows`` is the share of rows whose value fewer than ``k`` rows of the table have, or people if groups count
    people; ``n_rare`` of ``n_values`` values are such.
    """

    name: str
    ncp: float
    parts: tuple[Part, ...]
    k: int
    rare_rows: float
    n_rare: int
    n_values: int
    counts_people: bool = False

    def __str__(self) -> str:
        """A line for the owner."""
        parts = sorted(self.parts, key=lambda part: -part.share)
        why = [
            f"{write_share(part.share)} {part.words}" for part in parts if part.share >= LEAST_TOLD * self.ncp
        ]
        told = f" ({', '.join(why)})" if why else ""
        return f"{self.name} {write_share(self.ncp)}{told}{self.tell_rare(before='; ')}"

    @property
    def enough(self) -> str:
        """How many rows or people a value has that is not too rare."""
        return number_of(self.k, "person", "people") if self.counts_people else number_of(self.k, "row")

    def tell_rare(self, *, before: str = "") -> str:
        """How many values are too rare, in words; nothing if none is."""
        if not self.n_rare:
            return ""
        share = f"{100 * self.rare_rows:.1f}%" if self.rare_rows >= 0.001 else "under 0.1%"
        return (
            f"{before}{self.n_rare:,} of {number_of(self.n_values, 'value')}, with {share} of the rows, "
            f"{'has' if self.n_rare == 1 else 'have'} fewer than {self.enough} in the whole table"
        )


@dataclass(frozen=True, slots=True, eq=False)
class GroupedRows:
    """The rows of a table in the groups that they are published in.

    ``rows`` are those that are published, ``group`` the group of each, and ``boxes`` those of the groups along each axis.
    ``n_rows`` is that of the whole table.
    """

    axes: Sequence[Axis]
    rows: Ints
    group: Ints
    boxes: Sequence[DistinctBoxes]
    n_rows: int

    @classmethod
    def of_partition(cls, groups: Partition, n_rows: int) -> GroupedRows:
        """Those of a table that was just published; groups that are published alike are one."""
        ends = groups.recoding.ends(groups.leaf)
        return cls._of(
            groups.recoding.axes,
            groups.row_numbers.astype(np.int64),
            np.repeat(np.arange(len(groups.size)), groups.size),
            boxes_along(ends),
            n_rows,
        )

    @classmethod
    def of_rows(cls, axes: Sequence[Axis], ends: BoxEnds, rows: Ints, n_rows: int) -> GroupedRows:
        """Those of a recoding that gives these ``rows`` of a table boxes with these ends."""
        return cls._of(axes, rows, np.arange(len(rows)), boxes_along(ends), n_rows)

    @classmethod
    def _of(
        cls, axes: Sequence[Axis], rows: Ints, place: Ints, boxes: Sequence[DistinctBoxes], n_rows: int
    ) -> GroupedRows:
        alike = number_combinations([along.which for along in boxes], in_order=False)
        first = alike.first_rows()
        kept = [along._replace(which=along.which[first]) for along in boxes]
        return cls(axes, rows, alike.number[place], kept, n_rows)


def explain_losses(source: Source, policy: Policy, groups: GroupedRows) -> list[LostColumn]:
    """What each quasi-identifier lost and why, those that lost most first; ``source`` is the raw table."""
    k = max([1, *(item.fewest_rows for item in policy.requirements)])
    others = [
        (item, choose_statistics(item, source, policy, groups.rows.astype(np.uint32)))
        for item in policy.requirements
        if _needs_more_than_rows(item, policy)
    ]
    person = None if policy.person is None else encode_people(source, policy.schema[policy.person])[0]
    found = {
        axis.attribute.name: _explain_column(source, policy, groups, a, k, others, person)
        for a, axis in enumerate(groups.axes)
    }
    return [found[name] for name in worst_first({name: column.ncp for name, column in found.items()})]


def _needs_more_than_rows(item: Requirement, policy: Policy) -> bool:
    """Does it ask for more than a number of rows?"""
    return item.needs is not Needs.COUNT or policy.person is not None


def _explain_column(
    source: Source,
    policy: Policy,
    groups: GroupedRows,
    a: int,
    k: int,
    others: Sequence[tuple[Requirement, PartStatistics]],
    person: NDArray[np.uint32] | None,
) -> LostColumn:
    axis = groups.axes[a]
    values = values_of(source, policy, axis)
    value = values.of_row[groups.rows]
    runs = Runs.of(groups.group, value, len(values.count))
    tree = WholeTree(values.tree) if isinstance(values, TreeValues) else None
    lost = _take_apart(
        runs, values, shares_of(axis, groups.boxes[a], tree), groups.boxes[a].which.astype(np.int64), k
    )
    obstacle = find_obstacles(runs, values, k, others, value)[runs.group]
    total = max(groups.n_rows, 1)

    def sum_up(shares: Floats, of: NDArray[np.bool_] | slice = slice(None)) -> float:
        return float(shares[of] @ runs.size[of]) / total

    n_left_out = groups.n_rows - len(groups.rows)
    parts = [
        Part("left out", n_left_out / total, "in rows that were left out"),
        Part("rare", sum_up(lost.rare), "because values are too rare in the whole table"),
        Part("few", sum_up(lost.rest, obstacle == TOO_FEW), "because other columns left too few rows alike"),
        *(
            Part("requirement", sum_up(lost.rest, obstacle == number), f"because {item} refuses")
            for number, (item, _) in enumerate(others)
        ),
        Part(
            "together",
            sum_up(lost.rest, obstacle == TOGETHER),
            "because several requirements together refuse",
        ),
        Part(
            "undone",
            sum_up(lost.rest, obstacle == POSSIBLE),
            "though a division would hold: the method made others",
        ),
        Part("wide", sum_up(lost.wide), "because labels are wider than the values under them"),
    ]
    is_rare = (values.count if person is None else _count_people(values, person)) < k
    there = values.count > 0
    return LostColumn(
        axis.attribute.name,
        sum(part.share for part in parts),
        tuple(part for part in parts if part.share > ROUNDOFF),
        k,
        float(values.count[is_rare].sum()) / total,
        int(np.count_nonzero(is_rare & there)),
        int(np.count_nonzero(there)),
        person is not None,
    )


def _count_people(values: ColumnValues, person: NDArray[np.uint32]) -> Ints:
    """How many people have each value."""
    pairs = number_combinations([values.of_row, person], in_order=False)
    return np.bincount(values.of_row[pairs.first_rows()], minlength=len(values.count))


@dataclass(frozen=True, slots=True, eq=False)
class _Shares:
    """What each cell of a run lost, in three parts."""

    wide: Floats
    rare: Floats
    rest: Floats


def _take_apart(runs: Runs, values: ColumnValues, label: Shares, which: Ints, k: int) -> _Shares:
    is_missing = runs.value < values.n_missing
    n_groups = len(runs.first)
    has_missing = np.zeros(n_groups, dtype=np.bool_)
    has_missing[runs.group[is_missing]] = True
    first = runs.value[np.minimum(runs.first + has_missing, runs.last)]
    last = runs.value[runs.last]
    is_missing_alone = last < values.n_missing
    narrow = np.where(is_missing_alone, 0.0, values.share_between(first, last))[runs.group]
    narrow = np.where(is_missing, ~is_missing_alone[runs.group], narrow)
    box = which[runs.group]
    whole = np.where(is_missing & label.is_mixed[box], 1.0, label.share[box])
    narrow = np.minimum(narrow, whole)  # but for roundoff it is narrower
    least = np.minimum(values.least_share(k)[runs.value], narrow)
    return _Shares(whole - narrow, least, narrow - least)


__all__ = ["GroupedRows", "LostColumn", "Part", "explain_losses"]
