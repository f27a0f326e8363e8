"""Which few columns are enough to find a row: minimal sample uniques, and the SUDA scores of rows and columns.

A *minimal sample unique* is a set of columns by which a row is alone, and by no smaller part of which it is. SUDA
[EMMG05; MHK08] scores a row by how many it has and how small they are. The sets are searched depth first, the columns
from the last to the first, so that all parts of a set come before it; a row that is alone by some columns needs no
further ones, so groups only shrink on the way. No row is compared with another: groups are divided column by column.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.risk.kernels.refine import add_minimal, refine_groups

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

Scores = Literal["elliot", "ihsn"]
SCORES: tuple[Scores, ...] = ("elliot", "ihsn")
"""Two definitions of a score are in use; ``score_of`` has both."""

MOST_COLUMNS = 62
"""A set of columns is the bits of a number."""

MOST_ROWS = np.iinfo(np.int32).max


@dataclass(frozen=True, slots=True, eq=False)
class MinimalUniques:
    """Pairs of a row and a minimal set of columns by which it is alone.

    row      (pairs,) its number
    columns  (pairs,) the set, a bit for each column
    """

    row: NDArray[np.int32]
    columns: Ints
    n_rows: int
    n_columns: int

    @property
    def size(self) -> Ints:
        """How many columns each has."""
        return np.bitwise_count(self.columns).astype(np.int64)

    def has(self, column: int) -> NDArray[np.bool_]:
        """Which of them have a column."""
        return (self.columns >> column & 1).astype(np.bool_)

    def score_rows(self, score: Floats) -> Floats:
        """The score of each row, where ``score`` is that of each pair."""
        return np.bincount(self.row, score, minlength=self.n_rows).astype(np.float64)

    def share_columns(self, score: Floats) -> list[float | None]:
        """How much of the score of all rows each column has a part in, as a share; None where there is no score."""
        whole = float(score.sum())
        return [
            float(score[self.has(column)].sum()) / whole if whole else None
            for column in range(self.n_columns)
        ]


def score_of(size: int, *, of: int, most: int, scores: Scores = "elliot") -> float:
    r"""The score of one minimal sample unique of ``size`` columns, ``of`` so many, if up to ``most`` were searched.

    .. math:: \prod_{i=size}^{\min(most, of - 1)} (of - i) \quad \text{(elliot)}, \qquad
              (2^{of - size} - 1) \Big/ \binom{of}{size} \quad \text{(ihsn)}

    *elliot* is that of the paper [EMMG05], which sdcMicro takes by default; *ihsn* that of the program of the
    International Household Survey Network, which sdcMicro takes with ``original_scores=FALSE``: the number of larger
    sets that a row is alone by, too, over the number of sets of the same size.

    >>> [score_of(size, of=8, most=3) for size in (1, 2, 3)]
    [210.0, 30.0, 5.0]
    >>> [score_of(size, of=4, most=4, scores="ihsn") for size in (1, 2, 3, 4)]
    [1.75, 0.5, 0.25, 0.0]
    """
    if scores == "elliot":
        return float(math.prod(of - i for i in range(size, min(most, of - 1) + 1)))
    return float((2 ** (of - size) - 1) / math.comb(of, size))


def find_minimal_uniques(
    columns: Sequence[NDArray[Any]], *, most: int, person: NDArray[Any] | None = None
) -> MinimalUniques:
    """All minimal sample uniques of at most ``most`` columns; a column holds codes from 0 on.

    ``person`` says whose each row is: a row is alone where no other person has the same. Without it each row is
    somebody's own.

    >>> found = find_minimal_uniques([np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1])], most=2)
    >>> found.row.tolist(), found.columns.tolist()
    ([0, 1], [2, 3])
    """
    n_rows = len(columns[0])
    if len(columns) > MOST_COLUMNS or n_rows > MOST_ROWS:
        raise InputError(
            f"Minimal sample uniques are searched in at most {MOST_COLUMNS} columns and {MOST_ROWS:,} rows."
        )
    owner = np.arange(n_rows) if person is None else person
    search = _Search([column.astype(np.int32) for column in columns], owner.astype(np.int32), most)
    search.visit(0, np.arange(n_rows, dtype=np.int32), np.array([n_rows]), 0)
    return search.found()


class _Search:
    """A search, with what was found so far and room to work in."""

    def __init__(self, columns: Sequence[NDArray[np.int32]], owner: NDArray[np.int32], most: int) -> None:
        n_rows, n_codes = len(owner), 1 + max(int(column.max(initial=0)) for column in columns)
        self.columns, self.owner, self.most = columns, owner, most
        self.count, self.place = np.zeros(n_codes, dtype=np.int64), np.empty(n_codes, dtype=np.int64)
        self.first = np.empty(n_codes, dtype=np.int32)
        self.last = np.full(n_rows, -1)
        self.before, self.columns_of = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        self.row_of = np.empty(0, dtype=np.int32)
        self.n_found = np.zeros(1, dtype=np.int64)

    def visit(self, chosen: int, rows: NDArray[np.int32], ends: Ints, start: int) -> None:
        """Look at all sets of the columns that are ``chosen`` and further ones from ``start`` on.

        rows, ends  the groups of rows that several people share by the columns that are chosen
        """
        for column in range(len(self.columns) - 1, start - 1, -1):
            wider = chosen | 1 << column
            kept, kept_ends, alone = self._refine(rows, ends, column)
            self._note(alone, wider)
            if wider.bit_count() < self.most and len(kept):
                self.visit(wider, kept, kept_ends, column + 1)

    def _refine(
        self, rows: NDArray[np.int32], ends: Ints, column: int
    ) -> tuple[NDArray[np.int32], Ints, NDArray[np.int32]]:
        kept, alone = np.empty_like(rows), np.empty_like(rows)
        kept_ends = np.empty(len(rows), dtype=np.int64)
        n_out = np.empty(3, dtype=np.int64)
        refine_groups(
            rows, ends, self.columns[column], self.owner,
            self.count, self.place, self.first, kept, kept_ends, alone, n_out,
        )  # fmt: skip
        n_rows, n_groups, n_alone = n_out.tolist()
        return kept[:n_rows], kept_ends[:n_groups].copy(), alone[:n_alone]

    def _note(self, alone: NDArray[np.int32], columns: int) -> None:
        room = int(self.n_found[0]) + len(alone)
        if room > len(self.row_of):
            room = max(2 * len(self.row_of), room)
            self.before, self.row_of, self.columns_of = (
                np.concatenate([known, np.empty(room - len(known), dtype=known.dtype)])
                for known in (self.before, self.row_of, self.columns_of)
            )
        add_minimal(alone, columns, self.last, self.before, self.row_of, self.columns_of, self.n_found)

    def found(self) -> MinimalUniques:
        n = int(self.n_found[0])
        return MinimalUniques(self.row_of[:n], self.columns_of[:n], len(self.owner), len(self.columns))
