"""Pseudonyms of published rows: none leads from one group to another, or tells few people by their number of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.errors import number_of
from sfumato.policy.document import Policy
from sfumato.policy.requirements import DistinctDiversity, KAnonymity
from sfumato.policy.schema import Role
from sfumato.table.source import Source
from sfumato.verify.checks import Check
from sfumato.verify.groups import cells_of, group
from sfumato.verify.people import shown_by_rows
from sfumato.verify.portions import SHARE, Portions, collect, rows_at_once
from sfumato.verify.rows import CheckedColumns, fits_in_memory, group_columns

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Linked:
    """What the pseudonyms of a column tell.

    across  pseudonyms that stand in several groups
    thin    in how many groups there is a number of rows that fewer than k pseudonyms have, or, where rows share one,
            that too few sensitive values go with
    beside  in how many groups rows share one, and rows share one of a column before it, too
    """

    across: int
    thin: int
    beside: int = 0


@dataclass(frozen=True, slots=True)
class _Least:
    """What the pseudonyms of a group with one number of rows must reach, as far as rows show it.

    k       how many there are at least
    values  of sensitive columns: how many different values go with them
    """

    k: int
    values: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, policy: Policy) -> _Least:
        shown = [shown_by_rows(item) for item in policy.requirements]
        values: dict[str, int] = {}
        for item in shown:
            if isinstance(item, DistinctDiversity):
                values[item.of] = max(item.l, values.get(item.of, 0))
        k = max((item.k for item in shown if isinstance(item, KAnonymity)), default=1)
        return cls(k, tuple(values.items()))


def find_linked(source: Source, policy: Policy, memory: int, scratch: Path) -> dict[str, Linked]:
    """What the pseudonyms of each column tell, where anything is required of groups."""
    names = policy.schema.names(Role.PSEUDONYM) if policy.requirements else ()
    cells = group_columns(policy, source.names)
    if not names:
        return {}
    least = _Least.of(policy)
    beside = [*names, *dict(least.values)]
    both = CheckedColumns([*cells, *beside], (), ())
    if fits_in_memory(source, both, memory):
        keys = pa.table([source.column(one) for one in both.cells], both.cells)
        return _look_at([(keys, None)], cells, names, least)
    parts = _portions(source, CheckedColumns(cells, beside, ()), memory, scratch)
    within = _look_at(parts, cells, names, least)
    across = {}
    for name in names:
        parts = _portions(source, CheckedColumns([name], cells, ()), memory, scratch)
        across[name] = _look_at(parts, cells, [name], _Least(least.k, ()))
    return {name: replace(within[name], across=across[name][name].across) for name in names}


def _portions(
    source: Source, checked: CheckedColumns, memory: int, scratch: Path
) -> Iterator[tuple[pa.Table, Ints]]:
    portions = Portions(checked, memory=memory, folder=scratch)
    try:
        n_rows = rows_at_once(memory, len(checked.names))
        collect(source.batches(checked.names, rows=n_rows, memory=memory // SHARE), portions)
        for lines in portions:
            yield lines.keys, lines.n_rows
    finally:
        portions.close()


def _look_at(
    parts: Iterator[tuple[pa.Table, Ints]] | list[tuple[pa.Table, None]],
    cells: Sequence[str],
    names: Sequence[str],
    least: _Least,
) -> dict[str, Linked]:
    found = dict.fromkeys(names, Linked(0, 0))
    for keys, n_rows in parts:
        if not keys.num_rows:
            continue
        groups = group([cells_of(keys.column(one), one) for one in cells])
        weight = np.ones(keys.num_rows, dtype=np.int64) if n_rows is None else n_rows
        is_shared = np.zeros(groups.n, dtype=np.bool_)
        for name in names:
            who = cells_of(keys.column(name), name)
            pairs, of_row = np.unique(groups.of_row * who.n + who.of_row, return_inverse=True)
            at, size = pairs // who.n, np.bincount(of_row, weight).astype(np.int64)
            classes, of_pair, n_people = np.unique(
                np.stack([at, size]), axis=1, return_inverse=True, return_counts=True
            )
            shares = np.bincount(at[size > 1], minlength=groups.n) > 0
            fails = n_people < least.k
            for column, fewest in least.values:
                value = cells_of(keys.column(column), column)
                seen = np.unique(of_pair.reshape(-1)[of_row] * value.n + value.of_row) // value.n
                fails |= (np.bincount(seen, minlength=len(fails)) < fewest) & shares[classes[0]]
            found[name] = Linked(
                found[name].across + int((np.bincount(pairs % who.n) > 1).sum()),
                found[name].thin + len(np.unique(classes[0][fails])),
                found[name].beside + int((shares & is_shared).sum()),
            )
            is_shared |= shares
    return found


def check_linked(found: Mapping[str, Linked]) -> Iterator[Check]:
    """Whether pseudonyms leave the groups what is required of them."""
    for number, (name, linked) in enumerate(found.items()):
        detail = (
            f"{number_of(linked.across, 'pseudonym stands', 'pseudonyms stand')} in several; "
            "scope: group gives a person another one in each group"
        )
        claim = f"every pseudonym of {name!r} stands in one group"
        yield Check(claim, not linked.across, detail if linked.across else "")
        detail = number_of(linked.thin, "group fails", "groups fail")
        claim = f"in every group as many and as different people as required have each number of rows, by {name!r}"
        yield Check(claim, not linked.thin, detail if linked.thin else "")
        if number:
            detail = number_of(linked.beside, "group fails", "groups fail")
            claim = f"where rows share a pseudonym of {name!r}, they share none of a column before it"
            yield Check(claim, not linked.beside, detail if linked.beside else "")
        detail = "whoever has the key of its owner can make it again"
        yield Check(
            f"{name!r} holds pseudonyms, and a pseudonym is no anonymization", True, detail, is_note=True
        )
