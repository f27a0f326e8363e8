"""DiffGen's tuned choice: candidates are scored by the purity of the whole grid, node and split point drawn as one.

The score of a candidate is the purity of all cells after it, so one row changes it in one cell only, and for all
candidates in the same direction; see ``proof.md``. It needs the rows of every cell, so each specialization
costs passes over the rows: one that counts cells, one that counts bins of every axis by cell.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.encoding.domain import Domain, OrderedDomain
from sfumato.engines.protocol import Asked, Engine, Rows
from sfumato.methods.specialization.diffgen.counts import BinPlan, CellPlan
from sfumato.methods.specialization.diffgen.paper import SPECIALIZATION
from sfumato.methods.specialization.diffgen.plan import BudgetPlan, CellLimit
from sfumato.methods.specialization.kernels.purity import BITS, GINI, MAX, PieceBins, add_gains
from sfumato.methods.specialization.loop import Candidate, Piece, parts_of
from sfumato.methods.specialization.mesh import Mesh
from sfumato.privacy.ledger import Draw, Ledger
from sfumato.privacy.mechanisms import PERMUTE_AND_FLIP, Mechanisms
from sfumato.progress import Progress, no_progress

Ints = NDArray[np.int64]

MOST_THRESHOLDS = 256
"""Places where a piece of an ordered axis may be divided: points of its grid at equal distances."""

MASS = 256
"""How often a node stands in the list that is drawn from, its thresholds taken together."""

SCORES = {"max": MAX, "gini": GINI}

UNIT = {"max": 1, "gini": 1 << BITS, "smooth": 1 << BITS}
"""What one row is in a score."""

SENSITIVITY = {"max": Fraction(1), "gini": Fraction(2 << BITS), "smooth": Fraction(1 << BITS)}
"""By how much one row changes the purity of a grid, always in one direction."""

MOST_PENALTY = 1 << 62
"""The most that a candidate can lose for its new cells: a larger one would not fit 64 bits, and changes nothing."""

BYTES = 256 << 20
"""Memory for counts of bins by cell, unless the engine says how much there is."""


@dataclass(frozen=True, slots=True, eq=False)
class ClassifiedRows:
    """Rows of codes, one of each domain, then the class, and the engine that they live in."""

    engine: Engine
    rows: Rows
    domains: Sequence[Domain]
    n_classes: int

    def count_cells(self, mesh: Mesh) -> Ints:
        """The rows (cells, classes) of every cell of a mesh, in one pass."""
        (counts,) = self.engine.gather(self.rows, Asked([CellPlan(mesh, self.n_classes)]))
        return counts


class TunedCutter:
    """The cutter of the tuned variant; ``plan`` says how often, and at what cost."""

    def __init__(
        self,
        table: ClassifiedRows,
        score: str,
        *,
        plan: BudgetPlan,
        limit: CellLimit,
        ledger: Ledger,
        mechanisms: Mechanisms,
        progress: Progress = no_progress,
    ) -> None:
        self.table, self.domains, self.n_classes = table, table.domains, table.n_classes
        self.score = score
        self.plan, self.limit = plan, limit
        self.ledger, self.mechanisms = ledger, mechanisms
        self.memory, self.progress = table.engine.room.bytes_or(BYTES), progress
        self.cuts: list[list[Piece]] = [[] for _ in table.domains]
        self.n_taken = 0

    def offer(self, piece: Piece) -> None:
        self.cuts[piece.axis] = sorted([*self.cuts[piece.axis], piece])

    def choose(self) -> Candidate | None:
        """Drawn by permute-and-flip from all thresholds and nodes whose parts are within the limit of cells."""
        self.progress("specializing", self.n_taken, self.plan.specializations)
        if self.n_taken == self.plan.specializations:
            return None
        nodes = [node for cut in self.cuts for node in self._nodes(cut)]
        if not nodes:
            return None
        scores = self._scores(nodes)
        entries = np.concatenate([node.entries(i) for i, node in enumerate(nodes)])
        start = np.cumsum([0, *(node.n_candidates for node in nodes)])
        share = self.plan.share
        scale = SENSITIVITY[self.score] / share
        self.ledger.charge(Draw(SPECIALIZATION, "", PERMUTE_AND_FLIP, share, scale))
        chosen = self.mechanisms.permute_and_flip(scores[start[entries[:, 0]] + entries[:, 1]], scale)
        which, candidate = entries[chosen].tolist()
        taken: Candidate = nodes[which].candidate(candidate)
        self.cuts[taken.piece.axis].remove(taken.piece)
        self.limit.take(taken)
        self.n_taken += 1
        return taken

    def _nodes(self, cut: Sequence[Piece]) -> list[Node]:
        """The pieces of a cut that can be divided."""
        found = [node for i, piece in enumerate(cut) if (node := Node.of(piece, i, self.domains)) is not None]
        return [node for node in found if self.limit.admits(node.piece.axis, node.n_parts)]

    def _scores(self, nodes: Sequence[Node]) -> Ints:
        """What each candidate gains, less what the noise in its new cells costs: a public number."""
        penalties = [
            min(
                int(
                    UNIT[self.score]
                    * self.plan.cell_penalty
                    * self.limit.n_new(node.piece.axis, node.n_parts)
                ),
                MOST_PENALTY,
            )
            for node in nodes
        ]
        gains: Ints = self._gains(nodes) - np.repeat(penalties, [node.n_candidates for node in nodes])
        return gains

    def _score(self) -> int:
        """How purity is counted now, as kernels know it."""
        return SCORES.get(self.score, smoothness(self.n_taken, self.plan.specializations))

    def _gains(self, nodes: Sequence[Node]) -> Ints:
        """What each candidate of each node adds to the purity of the grid, one after the other."""
        mesh = mesh_of(self.cuts)
        counted = np.flatnonzero(self.table.count_cells(mesh).any(axis=1))
        place = mesh.places(counted.astype(np.uint64)[:, None])
        first = np.cumsum([0, *(domain.n_codes for domain in self.domains)])[:-1]
        bin_of_code, begin = self._bins(nodes, first)
        n_candidates = np.array([node.n_candidates for node in nodes])
        pieces = PieceBins(
            begin[:-1],
            begin[1:],
            np.array([node.is_tree for node in nodes]),
            np.array([node.piece.axis for node in nodes]),
            np.array([node.place for node in nodes]),
            np.cumsum(n_candidates) - n_candidates,
        )
        gains = np.zeros(int(n_candidates.sum()), dtype=np.int64)
        step = max(1, self.memory // (4 * int(begin[-1]) * self.n_classes))
        for low in range(0, len(counted), step):
            cells = slice(low, low + step)
            number = np.full(self.limit.n_cells, -1, dtype=np.int32)
            number[counted[cells]] = np.arange(len(counted[cells]))
            shape = int(begin[-1]), len(counted[cells]), self.n_classes
            plan = BinPlan(mesh, number, first, bin_of_code, shape)
            (counts,) = self.table.engine.gather(self.table.rows, Asked([plan]))
            add_gains(counts, place[cells], pieces, self._score(), _most_rows(self.n_classes), gains)
        return gains

    def _bins(self, nodes: Sequence[Node], first: Ints) -> tuple[NDArray[np.int32], Ints]:
        """The bin of each code of every axis, and where the bins of each node begin."""
        begin = np.cumsum([0, *(len(node.ends) for node in nodes)])
        out = np.full(sum(domain.n_codes for domain in self.domains), -1, dtype=np.int32)
        for node, bins in zip(nodes, begin.tolist(), strict=False):
            widths = np.diff(node.ends, prepend=node.piece.low)
            at = first[node.piece.axis] + node.piece.low
            out[at : at + int(widths.sum())] = np.repeat(bins + np.arange(len(widths)), widths)
        return out, begin


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A piece that can be divided, the ``place``-th of its cut; its bins are between ``ends``.

    That of a hierarchy is one candidate, with a part for each bin. That of an ordered axis is as many as it has
    thresholds.

    >>> whole = Node(Piece(0, 0, 3), 0, np.array([1, 2, 3]), is_tree=False)
    >>> whole.n_candidates, whole.candidate(1).ends
    (2, (2, 3))
    """

    piece: Piece
    place: int
    ends: Ints
    is_tree: bool
    parts: tuple[Piece, ...] = ()

    @classmethod
    def of(cls, piece: Piece, place: int, domains: Sequence[Domain]) -> Node | None:
        """None if it cannot be divided."""
        domain = domains[piece.axis]
        if isinstance(domain, OrderedDomain):
            if piece.high - piece.low < 2:
                return None
            return cls(piece, place, _equal_ends(piece.low, piece.high), is_tree=False)
        parts = parts_of(piece, domain, _nowhere)
        if not parts:
            return None
        return cls(piece, place, np.array([part.high for part in parts]), is_tree=True, parts=parts)

    @property
    def n_parts(self) -> int:
        return len(self.parts) if self.is_tree else 2

    @property
    def n_candidates(self) -> int:
        return 1 if self.is_tree else len(self.ends) - 1

    def entries(self, number: int) -> Ints:
        """Lines (number, candidate) of the list that is drawn from."""
        repeats = max(1, MASS // self.n_candidates)
        candidates = np.repeat(np.arange(self.n_candidates), repeats)
        return np.stack([np.full(len(candidates), number), candidates], axis=1)

    def candidate(self, number: int) -> Candidate:
        if self.is_tree:
            return Candidate(self.piece, self.parts)
        axis, low, high = self.piece.axis, self.piece.low, self.piece.high
        end = int(self.ends[number])
        return Candidate(self.piece, (Piece(axis, low, end), Piece(axis, end, high)))


def smoothness(step: int, n_steps: int) -> int:
    """Of Max, in 16ths: as Gini is at first, where most splits change no majority, and none in the last step.

    >>> [smoothness(step, 5) for step in range(5)], smoothness(0, 1)
    ([8, 6, 4, 2, 0], 4)
    """
    if n_steps == 1:
        return 4
    return (16 * (n_steps - 1 - step) + n_steps - 1) // (2 * (n_steps - 1))


def _most_rows(n_classes: int) -> int:
    """Rows of a class in a cell that count: with so many of each, no product in a score reaches 2^63."""
    return math.isqrt((1 << 62) // (128 * (n_classes + 1))) // n_classes


def _nowhere(_piece: Piece) -> None:
    """A hierarchy has no thresholds."""


def _equal_ends(low: int, high: int) -> Ints:
    """The ends of the bins of [low, high): of every code, or at equal distances.

    >>> _equal_ends(3, 7).tolist(), len(_equal_ends(0, 1000))
    ([4, 5, 6, 7], 257)
    """
    n_bins = min(high - low, MOST_THRESHOLDS + 1)
    return low + np.arange(1, n_bins + 1) * (high - low) // n_bins


def mesh_of(cuts: Sequence[Sequence[Piece]]) -> Mesh:
    """The cells between cuts, numbered in the order of their pieces, the first axis slowest."""
    return Mesh.of([np.array([piece.high for piece in cut]) for cut in cuts])
