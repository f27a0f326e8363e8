"""Top-down specialization in plain Python: slow, short and obviously right. The tests compare the fast one with it.

Nothing is imported from sfumato. Everything is counted anew, row by row, in every round [FWY05].
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

MISSING = -math.inf
"""A missing cell among the values of an ordered attribute: its own value, before all others."""

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Interval:
    """The values low < x <= high of an ordered attribute; nothing limits the ends None."""

    low: float | None
    high: float | None

    def holds(self, cell: Any) -> bool:
        x = MISSING if cell is None else cell
        return (self.low is None or x > self.low) and (self.high is None or x <= self.high)


@dataclass(frozen=True)
class Node:
    """A node of a hierarchy by the labels from the root down to it, with the paths of the leaves below."""

    path: tuple[Any, ...]
    leaves: tuple[tuple[Any, ...], ...]

    def holds(self, cell: Any) -> bool:
        return any(leaf[-1] == cell for leaf in self.leaves)

    def children(self) -> list[Node]:
        depth = len(self.path) + 1
        below = dict.fromkeys(leaf[:depth] for leaf in self.leaves if len(leaf) >= depth)
        return [Node(path, tuple(leaf for leaf in self.leaves if leaf[:depth] == path)) for path in below]


Piece = Interval | Node


@dataclass(frozen=True)
class Candidate:
    axis: int
    order: int  # among the pieces of its attribute's cut
    piece: Piece
    parts: tuple[Piece, ...]


class TopDown:
    """``roots`` has an attribute's whole domain each, ``targets`` (names, weight): several names are one label.

    ``people``, if they count, are those of the rows, and ``share`` is how many rows and people may be left out.
    """

    def __init__(
        self,
        rows: Sequence[Row],
        roots: Mapping[str, Piece],
        k: int,
        targets: Sequence[tuple[tuple[str, ...], float]],
        *,
        people: Sequence[Any] | None = None,
        share: Fraction = Fraction(0),
    ) -> None:
        self.rows, self.names, self.k = rows, list(roots), k
        self.people = range(len(rows)) if people is None else people
        self.share = share
        self.targets = targets if len(targets) > 1 else [(targets[0][0], 1.0)]
        self.cuts: list[list[Piece]] = [[root] for root in roots.values()]
        self.taken: list[tuple[int, list[int]]] = []  # attribute and sizes of the parts, in order

    def run(self) -> list[list[Piece]]:
        while candidates := [candidate for candidate in self.candidates() if self.is_valid(candidate)]:
            best = min(candidates, key=self.rank)
            self.taken.append((best.axis, [len(self.members(best.axis, part)) for part in best.parts]))
            cut = self.cuts[best.axis]
            at = cut.index(best.piece)
            cut[at : at + 1] = best.parts
        return self.cuts

    def candidates(self) -> Iterator[Candidate]:
        """The beneficial ones, valid or not."""
        for axis, cut in enumerate(self.cuts):
            for order, piece in enumerate(cut):
                members = self.members(axis, piece)
                if all(
                    len({self.label(row, names) for row in members}) <= 1 for names, _weight in self.targets
                ):
                    continue
                parts = self.halves(axis, piece) if isinstance(piece, Interval) else piece.children()
                if parts:
                    yield Candidate(axis, order, piece, tuple(parts))

    def halves(self, axis: int, piece: Interval) -> list[Piece]:
        """Divided where the gain is greatest."""
        name = self.names[axis]
        members = self.members(axis, piece)
        values = sorted({MISSING if row[name] is None else row[name] for row in members})
        splits = [
            (Interval(piece.low, threshold), Interval(threshold, piece.high)) for threshold in values[:-1]
        ]
        ranked = sorted(splits, key=lambda parts: (-self.gain(axis, piece, parts), self.largest(axis, parts)))
        return list(ranked[0]) if ranked else []

    # -- score -------------------------------------------------------------------------------------

    def rank(self, candidate: Candidate) -> tuple[Any, ...]:
        largest = self.largest(candidate.axis, candidate.parts)
        filled = [part for part in candidate.parts if self.members(candidate.axis, part)]
        score = math.inf if len(filled) == 1 else self.score(candidate)
        return -score, largest, candidate.axis, candidate.order

    def score(self, candidate: Candidate) -> Fraction:
        loss = self.anonymity(self.cuts) - self.anonymity(self.after(candidate))
        gain = max(self.gain(candidate.axis, candidate.piece, candidate.parts), 0)
        return Fraction(gain) / (len(self.members(candidate.axis, candidate.piece)) * (loss + 1))

    def gain(self, axis: int, piece: Piece, parts: Sequence[Piece]) -> float:
        """InfoGain times the number of rows, in units of 2^-20 bit."""
        total = 0.0
        for names, weight in self.targets:
            whole = minus_entropy([self.label(row, names) for row in self.members(axis, piece)])
            inside = [
                minus_entropy([self.label(row, names) for row in self.members(axis, part)]) for part in parts
            ]
            total += weight * (sum(inside) - whole)
        return total

    def largest(self, axis: int, parts: Sequence[Piece]) -> int:
        return max(len(self.members(axis, part)) for part in parts)

    # -- groups ------------------------------------------------------------------------------------

    def is_valid(self, candidate: Candidate) -> bool:
        """Do all groups have k people, but for those that may be left out together?"""
        out = [i for group in self.groups(self.after(candidate)) if not self.stands(group) for i in group]
        people = {self.people[i] for i in out}
        is_allowed = len(out) <= self.share * len(self.rows) and len(people) <= self.share * len(
            {*self.people}
        )
        return not out or (is_allowed and len(out) < len(self.rows))

    def stands(self, group: Sequence[int]) -> bool:
        return len({self.people[i] for i in group}) >= self.k

    def groups(self, cuts: Sequence[Sequence[Piece]]) -> list[list[int]]:
        found: dict[tuple[Piece, ...], list[int]] = {}
        for i, row in enumerate(self.rows):
            found.setdefault(self.box(row, cuts), []).append(i)
        return list(found.values())

    def after(self, candidate: Candidate) -> list[list[Piece]]:
        cuts = [list(cut) for cut in self.cuts]
        cuts[candidate.axis].remove(candidate.piece)
        cuts[candidate.axis] += candidate.parts
        return cuts

    def anonymity(self, cuts: Sequence[Sequence[Piece]]) -> int:
        smallest = min(map(len, self.groups(cuts)))
        return max(smallest, self.k) if self.share * len(self.rows) >= 1 else smallest

    def box(self, row: Row, cuts: Sequence[Sequence[Piece]]) -> tuple[Piece, ...]:
        found = []
        for name, cut in zip(self.names, cuts, strict=True):
            (piece,) = (piece for piece in cut if piece.holds(row[name]))
            found.append(piece)
        return tuple(found)

    def members(self, axis: int, piece: Piece) -> list[Row]:
        return [row for row in self.rows if piece.holds(row[self.names[axis]])]

    def label(self, row: Row, names: tuple[str, ...]) -> tuple[Any, ...]:
        return tuple(row[name] for name in names)


def information(x: int) -> int:
    """x log2 x in fixed point, 20 binary digits after the point."""
    return round(x * math.log2(x) * 2**20) if x else 0


def minus_entropy(classes: Sequence[Any]) -> int:
    """Minus the entropy of the labels times their number."""
    return sum(map(information, Counter(classes).values())) - information(len(classes))
