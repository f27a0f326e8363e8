"""The loop of top-down specialization: one cut per attribute, pushed down one candidate at a time.

Every attribute starts as one piece, its whole domain. A piece that has parts (the children of a node of its
hierarchy; the two sides of a threshold) is a *candidate*; taking it replaces it by its parts, which may be
candidates in turn [FWY05, Algorithm 1; MCFY11, Algorithm 1]. What a method adds is which candidate to take, when
to stop, and where to divide a number: a :class:`Cutter`. The loop itself never looks at a row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.encoding.domain import Domain, OrderedDomain
from sfumato.policy.output import Output
from sfumato.recoding.axis import Axis, OrderedAxis, TreeAxis, axis_of
from sfumato.recoding.cuts import Cuts

NO_NODE = -1


@dataclass(frozen=True, slots=True, order=True)
class Piece:
    """The codes [low, high) of one axis; on a tree axis also the node of the hierarchy that covers just them."""

    axis: int
    low: int
    high: int
    node: int = NO_NODE


@dataclass(frozen=True, slots=True)
class Candidate:
    """A piece of a cut and what it would be replaced by, in the order of their codes.

    >>> Candidate(Piece(0, 0, 9), (Piece(0, 0, 4), Piece(0, 4, 9))).ends
    (4, 9)
    """

    piece: Piece
    parts: tuple[Piece, ...]

    @property
    def ends(self) -> tuple[int, ...]:
        return tuple(part.high for part in self.parts)


class Cutter(Protocol):
    """What a method adds to the loop: it is shown the pieces of the cuts, and says which candidate to take."""

    def offer(self, piece: Piece) -> None:
        """Consider a new piece."""

    def choose(self) -> Candidate | None:
        """The candidate to take next, one of the pieces offered and not yet taken; None: stop."""


def push_down(domains: Sequence[Domain], cutter: Cutter) -> tuple[tuple[Piece, ...], ...]:
    """The pieces of each attribute's cut when the cutter stops, in the order of their codes."""
    cuts = [{_root(a, domain)} for a, domain in enumerate(domains)]
    for (root,) in map(tuple, cuts):
        cutter.offer(root)
    while (taken := cutter.choose()) is not None:
        cuts[taken.piece.axis].remove(taken.piece)
        cuts[taken.piece.axis].update(taken.parts)
        for part in taken.parts:
            cutter.offer(part)
    return tuple(tuple(sorted(cut)) for cut in cuts)


class Chooser(Protocol):
    """What a method adds that knows, as soon as a piece appears, the one place where it would divide it.

    Candidates are numbered in the order in which they appear.
    """

    def threshold(self, piece: Piece) -> int | None:
        """The last code that goes left where a piece of an ordered axis is divided; None: it is not."""

    def offer(self, number: int, candidate: Candidate) -> None:
        """Consider a new candidate."""

    def choose(self) -> int | None:
        """The candidate to take next, one of those offered and not yet taken; None: stop."""

    def take(self, number: int, candidate: Candidate) -> None:
        """Note that a candidate is taken; its parts are offered next."""


def specialize(domains: Sequence[Domain], chooser: Chooser) -> tuple[tuple[Piece, ...], ...]:
    """The pieces of each attribute's cut when the chooser stops, in the order of their codes."""
    return push_down(domains, _NumberedCutter(domains, chooser))


class _NumberedCutter:
    """A chooser as a cutter: pieces become numbered candidates."""

    def __init__(self, domains: Sequence[Domain], chooser: Chooser) -> None:
        self.domains, self.chooser = domains, chooser
        self.candidates: list[Candidate] = []

    def offer(self, piece: Piece) -> None:
        parts = parts_of(piece, self.domains[piece.axis], self.chooser.threshold)
        if parts:
            self.chooser.offer(len(self.candidates), Candidate(piece, parts))
            self.candidates.append(Candidate(piece, parts))

    def choose(self) -> Candidate | None:
        number = self.chooser.choose()
        if number is None:
            return None
        self.chooser.take(number, self.candidates[number])
        return self.candidates[number]


def _root(a: int, domain: Domain) -> Piece:
    return Piece(a, 0, domain.n_codes, NO_NODE if isinstance(domain, OrderedDomain) else 0)


def parts_of(piece: Piece, domain: Domain, threshold: Callable[[Piece], int | None]) -> tuple[Piece, ...]:
    """What a piece would be replaced by, in the order of codes; nothing if it cannot be divided."""
    if isinstance(domain, OrderedDomain):
        last = threshold(piece)
        if last is None:
            return ()
        return Piece(piece.axis, piece.low, last + 1), Piece(piece.axis, last + 1, piece.high)
    tree = domain.hierarchy
    children = tree.children(piece.node).tolist()
    return tuple(Piece(piece.axis, int(tree.low[node]), int(tree.high[node]), node) for node in children)


# ---- the cuts that are found -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class CutGrid:
    """The cuts as values and nodes; where each of their pieces ends, and its place."""

    axes: tuple[Axis, ...]
    thresholds: tuple[NDArray[np.float64], ...]
    ends: tuple[NDArray[np.int64], ...]
    place: tuple[NDArray[np.int64], ...]

    @classmethod
    def of(cls, cuts: Sequence[Sequence[Piece]], domains: Sequence[Domain]) -> CutGrid:
        axes, thresholds, places = [], [], []
        all_ends = [np.array([piece.high for piece in cut]) for cut in cuts]
        for cut, ends, domain in zip(cuts, all_ends, domains, strict=True):
            nodes = np.array([piece.node for piece in cut])
            axis, new = axis_of(domain, nodes)
            axes.append(axis)
            if isinstance(domain, OrderedDomain):
                thresholds.append(domain.value(ends[:-1] - 1))
                places.append(np.arange(len(cut)))
            else:
                thresholds.append(np.zeros(0))
                places.append(new[nodes].astype(np.int64))
        return cls(tuple(axes), tuple(thresholds), tuple(all_ends), tuple(places))

    def places(self, codes: NDArray[np.uint32]) -> NDArray[np.int64]:
        """The places (rows, axes) of rows whose codes are given axis by axis."""
        return np.stack(
            [
                place[np.searchsorted(ends, here, side="right")]
                for place, ends, here in zip(self.place, self.ends, codes, strict=True)
            ],
            axis=1,
        )

    def recoding(self, n_groups: int, output: Output, left_out: frozenset[str]) -> Cuts:
        """The recoding of a release with these cuts."""
        return Cuts(self.axes, self.thresholds, n_groups, output, left_out)


@dataclass(frozen=True, slots=True, eq=False)
class StandingGrid:
    """A grid that shows no piece which no published group has, and where each place of the grid went; -1: nowhere."""

    axes: tuple[Axis, ...]
    thresholds: tuple[NDArray[np.float64], ...]
    holes: tuple[NDArray[np.int64], ...]
    """The pieces of ordered axes that nothing has. Neighbours are one piece, so that no cut between them is shown."""
    new_place: tuple[NDArray[np.int64], ...]

    @classmethod
    def of(cls, grid: CutGrid, stands: Sequence[NDArray[np.bool_]]) -> StandingGrid:
        """``stands`` says of each place of each axis whether a published group has it."""
        axes: list[Axis] = []
        thresholds, holes, places = [], [], []
        for axis, points, own in zip(grid.axes, grid.thresholds, stands, strict=True):
            if isinstance(axis, TreeAxis):
                kept, new = axis.nodes.prune(np.flatnonzero(own))
                axes.append(replace(axis, nodes=kept))
                thresholds.append(points)
                holes.append(np.zeros(0, dtype=np.int64))
                places.append(new.astype(np.int64))
            else:
                narrowed, shown, place = _show_standing(axis, points, own)
                axes.append(narrowed)
                thresholds.append(shown)
                holes.append(np.setdiff1d(np.arange(len(shown) + 1), place[own]))
                places.append(place)
        return cls(tuple(axes), tuple(thresholds), tuple(holes), tuple(places))

    def move(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """The places (groups, axes) of groups that stand, as the recoding has them."""
        return np.stack([new[own] for new, own in zip(self.new_place, places.T, strict=True)], axis=1)

    def recoding(self, n_groups: int, output: Output, left_out: frozenset[str]) -> Cuts:
        """The recoding of a release; it leaves out rows that no piece has."""
        return Cuts(
            self.axes, self.thresholds, n_groups, output, left_out, leaves_rows_out=True, holes=self.holes
        )


def _show_standing(
    axis: OrderedAxis, thresholds: NDArray[np.float64], stands: NDArray[np.bool_]
) -> tuple[OrderedAxis, NDArray[np.float64], NDArray[np.int64]]:
    """An axis, its thresholds beside pieces that stand, and the new place of each piece; ends of others are not shown."""
    is_shown = stands[:-1] | stands[1:]
    if not stands[0]:
        axis = replace(axis, has_missing=False)
        is_shown &= ~np.isneginf(thresholds)  # missing alone was the first piece
    if not stands[1:].any() and np.isneginf(thresholds[:1]).any():  # missing alone is there, and no value
        return replace(axis, low=0.0, high=-1.0), np.zeros(0), np.zeros(len(stands), dtype=np.int64)
    place = np.append(0, np.cumsum(is_shown))
    shown = thresholds[is_shown]
    if len(shown) and 0 not in place[stands]:
        axis = replace(axis, low=float(shown[0]))
    if len(shown) and place[-1] not in place[stands]:
        axis = replace(axis, high=float(shown[-1]))
    return axis, shown, place
