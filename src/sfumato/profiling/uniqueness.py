"""Which rows stand alone by some columns, because no other row has the same values in all of them.

A column adds to that what it adds to what is known already: a row that stands alone stays so, whatever is added, so each
step looks only at the rows that are left. Up to :data:`MOST_COUNTED` rows are counted, of a larger table a random sample,
in which more rows stand alone than in the whole.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sfumato.profiling.facts import ColumnFacts
from sfumato.randomness import seeded
from sfumato.table.combinations import number_combinations

MOST_COUNTED = 1_000_000
"""Rows in which combinations of columns are counted."""
MOST_SHOWN = 12
"""Columns for which the worst two and three more are sought."""
MOST_ADDED = 6
"""Columns that are tried as the second and third one more: those that add most by themselves."""

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Uniqueness:
    """How many rows some columns single out: nobody else has the same values in all of them."""

    names: tuple[str, ...]
    n_rows: int


@dataclass(frozen=True, slots=True)
class Added:
    """Rows that stand alone by the known columns and this one; by the worst one more too; and by the worst two more."""

    name: str
    one: int
    two: int
    three: int


@dataclass(frozen=True, slots=True)
class Ranking:
    """What each column adds to the rows that the ``known`` ones single out, the worst first.

    ``n_alone`` of ``n_rows`` stand alone by the known columns. ``rest`` are columns that add no more than those shown.
    """

    known: tuple[str, ...]
    n_alone: int
    n_rows: int
    added: tuple[Added, ...]
    rest: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All columns that were ranked, in order."""
        return (*(column.name for column in self.added), *self.rest)


NOT_RANKED = Ranking((), 0, 0, ())


def sample_rows(columns: Sequence[ColumnFacts]) -> tuple[ColumnFacts, ...]:
    """The same columns in :data:`MOST_COUNTED` rows at random, always the same ones; all rows if there are no more."""
    most = MOST_COUNTED
    if not columns or columns[0].n_rows <= most:
        return tuple(columns)
    rows = np.sort(seeded(0).choice(columns[0].n_rows, most, replace=False))
    return tuple(replace(facts, n_rows=most, codes=facts.codes[rows]) for facts in columns)


# ---- what is at stake ----------------------------------------------------------------------------------


def find_uniqueness(columns: Sequence[ColumnFacts]) -> Iterator[Uniqueness]:
    """Rows that are unique by all columns, by the worst three and by the worst two.

    The worst three are looked for among those that extend one of the worst pairs, which is where
    they are in practice, and only among the twelve columns with the most values.
    """
    if not columns:
        return
    yield count_alone(columns)
    ranked = sorted(columns, key=lambda facts: -facts.n_codes)[:12]
    pairs = _worst_first(itertools.combinations(ranked, 2)) if len(columns) > 2 else []
    if len(columns) > 3:
        extended = ((*pair, more) for pair, _ in pairs[:3] for more in ranked if more not in pair)
        yield _worst_first(extended)[0][1]
    if pairs:
        yield pairs[0][1]


def _worst_first(
    candidates: Iterable[tuple[ColumnFacts, ...]],
) -> list[tuple[tuple[ColumnFacts, ...], Uniqueness]]:
    counted = [(candidate, count_alone(candidate)) for candidate in candidates]
    return sorted(counted, key=lambda item: -item[1].n_rows)


def count_alone(columns: Sequence[ColumnFacts]) -> Uniqueness:
    """Rows whose combination of codes occurs once."""
    left = _Left.of(columns[0].n_rows).without_alone(*columns)
    return Uniqueness(tuple(facts.name for facts in columns), columns[0].n_rows - len(left.rows))


# ---- what each column adds -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Left:
    """The rows that do not stand alone by some columns, and the number of each one's combination of values."""

    rows: Ints
    number: Ints
    n: int

    @classmethod
    def of(cls, n_rows: int) -> _Left:
        return cls(np.arange(n_rows), np.zeros(n_rows, dtype=np.int64), 1)

    def without_alone(self, *columns: ColumnFacts) -> _Left:
        """The rows that do not stand alone by these columns either."""
        left = self
        for facts in columns:
            left = left._add(facts)
        return left

    def _add(self, facts: ColumnFacts) -> _Left:
        codes = facts.codes[self.rows].astype(np.int64)
        size = self.n * facts.n_codes
        if size <= 4 * len(self.rows) or size < 1 << 16:
            key, n = self.number * facts.n_codes + codes, size
        else:
            found = number_combinations([self.number, codes], in_order=False)
            key, n = found.number, found.n
        kept = np.bincount(key, minlength=n)[key] > 1
        return _Left(self.rows[kept], key[kept], n)

    def n_left(self, *columns: ColumnFacts) -> int:
        return len(self.without_alone(*columns).rows)


def rank_columns(known: Sequence[ColumnFacts], others: Sequence[ColumnFacts]) -> Ranking:
    """What each of the other columns adds to what the known ones single out.

    The second and third more are the worst ones, sought one after the other among those that add most by themselves.
    Where every column is known, each is compared with none.
    """
    if not others:
        known, others = (), known
    n_rows = others[0].n_rows if others else 0
    left = _Left.of(n_rows).without_alone(*known)
    by_itself = sorted((left.n_left(facts), facts.name) for facts in others)
    facts_of = {facts.name: facts for facts in others}
    worst = [facts_of[name] for _, name in by_itself[: MOST_ADDED + 2]]
    added = []
    for n_left, name in by_itself[:MOST_SHOWN]:
        step = left.without_alone(facts_of[name])
        two, second = _find_worst(step, worst, {name}, n_left)
        three = (
            two
            if second is None
            else _find_worst(step.without_alone(second), worst, {name, second.name}, two)[0]
        )
        added.append(Added(name, n_rows - n_left, n_rows - two, n_rows - three))
    return Ranking(
        tuple(facts.name for facts in known),
        n_rows - len(left.rows),
        n_rows,
        tuple(added),
        tuple(name for _, name in by_itself[MOST_SHOWN:]),
    )


def _find_worst(
    left: _Left, columns: Sequence[ColumnFacts], but: set[str], n_left: int
) -> tuple[int, ColumnFacts | None]:
    """How many rows are left with the column that leaves fewest, and this column."""
    counted = [(left.n_left(facts), facts.name, facts) for facts in columns if facts.name not in but]
    return min(counted, key=lambda item: item[:2])[::2] if counted else (n_left, None)
