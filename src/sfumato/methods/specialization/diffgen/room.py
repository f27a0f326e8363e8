"""How many cells a grid may have: a public cap, judged by public cuts alone."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sfumato.methods.specialization.loop import Candidate


class GridRoom:
    """The pieces of each axis so far, and the most cells that their grid may have.

    >>> from sfumato.methods.specialization.loop import Piece
    >>> halves = Candidate(Piece(0, 0, 9), (Piece(0, 0, 4), Piece(0, 4, 9)))
    >>> room = GridRoom([1, 3], most=7)
    >>> room.admits(0, 2), room.admits(0, 3)
    (True, False)
    """

    def __init__(self, n_pieces: Sequence[int], most: int) -> None:
        self.n_pieces, self.most = list(n_pieces), most

    @property
    def n_cells(self) -> int:
        return math.prod(self.n_pieces)

    def admits(self, axis: int, n_parts: int) -> bool:
        """Would the grid have no more cells if a piece of this axis had so many parts?"""
        return self.n_cells + self.n_new(axis, n_parts) <= self.most

    def n_new(self, axis: int, n_parts: int) -> int:
        """How many more cells that would be."""
        return self.n_cells // self.n_pieces[axis] * (n_parts - 1)

    def take(self, candidate: Candidate) -> None:
        self.n_pieces[candidate.piece.axis] += len(candidate.parts) - 1
