"""DiffGen in plain Python: slow, short and as [MCFY11] says it. The tests compare the fast one with it.

Nothing is imported from sfumato. Everything is counted anew, row by row, for every score. Nothing is random: whoever
runs it hands over ``pick``, which is shown the scores of a list of candidates and says which of them is drawn.

A row is a tuple of codes and, last, its class. An attribute is a ``Number`` of codes 0, 1, ... or a tree: a leaf is
its code, a node the tuple of its children.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial

Row = tuple[int, ...]
Tree = int | tuple["Tree", ...]


@dataclass(frozen=True)
class Number:
    n_codes: int


Attribute = Number | Tree
Pick = Callable[[str, list[int]], int]


@dataclass(frozen=True)
class Piece:
    """Codes of one attribute; of a tree also the node that covers them."""

    axis: int
    codes: tuple[int, ...]
    node: Tree | None = None

    def children(self) -> tuple[Piece, ...]:
        below = self.node if isinstance(self.node, tuple) else ()
        return tuple(Piece(self.axis, leaves(node), node) for node in below)

    def halves(self, n_left: int) -> tuple[Piece, ...]:
        return Piece(self.axis, self.codes[:n_left]), Piece(self.axis, self.codes[n_left:])


def leaves(node: Tree) -> tuple[int, ...]:
    return (node,) if isinstance(node, int) else tuple(code for child in node for code in leaves(child))


def root(axis: int, attribute: Attribute) -> Piece:
    if isinstance(attribute, Number):
        return Piece(axis, tuple(range(attribute.n_codes)))
    return Piece(axis, leaves(attribute), attribute)


# ---- scores ----------------------------------------------------------------------------------------


def classes_in(rows: Sequence[Row], piece: Piece) -> Counter[int]:
    return Counter(row[-1] for row in rows if row[piece.axis] in piece.codes)


def most(classes: Counter[int]) -> int:
    return max(classes.values(), default=0)


def entropy(classes: Counter[int]) -> float:
    n = classes.total()
    return -sum(count / n * math.log2(count / n) for count in classes.values() if count)


def gini(classes: Counter[int]) -> Fraction:
    """Rows times Gini impurity."""
    n = classes.total()
    return n - Fraction(sum(count * count for count in classes.values()), n) if n else Fraction(0)


def max_score(rows: Sequence[Row], piece: Piece, parts: Sequence[Piece]) -> int:
    """[MCFY11, equation 4]."""
    return sum(most(classes_in(rows, part)) for part in parts)


def infogain(rows: Sequence[Row], piece: Piece, parts: Sequence[Piece]) -> int:
    """[MCFY11, equation 3], in units of 2^-20; the last unit may be another one by rounding."""
    here = classes_in(rows, piece)
    if not here:
        return 0
    below = [classes_in(rows, part) for part in parts]
    gain = entropy(here) - sum(part.total() / here.total() * entropy(part) for part in below)
    return math.floor(2**20 * max(gain, 0.0))


def marginal_gain(rows: Sequence[Row], piece: Piece, parts: Sequence[Piece]) -> int:
    """A mutant: by how much Max grows. One row may raise it for one candidate and lower it for another."""
    return max_score(rows, piece, parts) - most(classes_in(rows, piece))


MARGINAL = {"max": max_score, "infogain": infogain, "marginal gain": marginal_gain}


def smoothed(classes: Counter[int], by: Fraction) -> Fraction:
    """The maximum over shares q of classes of sum q n_c + n (1 - sum q^2) by: by the classes whose share is not 0."""
    n = classes.total()
    best = Fraction(most(classes))  # all for one class; the only one where nothing is smoothed
    for k in range(1, len(classes) + 1 if by else 0):
        for counts in itertools.combinations(classes.values(), k):
            level = (sum(counts) - 2 * by * n) / k  # where the slope is the same for all of them
            q = [(count - level) / (2 * by * n) for count in counts]
            if all(share >= 0 for share in q):
                pure = sum(share * count for share, count in zip(q, counts, strict=True))
                best = max(best, pure + n * (1 - sum(share * share for share in q)) * by)
    return best


def smooth_purity(classes: Counter[int], by: Fraction) -> int:
    return math.floor(2**20 * smoothed(classes, by))


PURITY: dict[str, Callable[[Counter[int]], int]] = {
    "max": most,
    "gini": lambda classes: -math.floor(2**20 * gini(classes)),
}


# ---- the two variants ------------------------------------------------------------------------------


@dataclass
class Run:
    """What comes of a run: the cut of each attribute, what was charged for draws, and the counts that get noise."""

    rows: Sequence[Row]
    attributes: Sequence[Attribute]
    n_classes: int
    epsilon: Fraction
    h: int | None
    max_cells: int
    pick: Pick
    cuts: list[list[Piece]] = field(init=False)
    charged: list[tuple[str, Fraction]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.cuts = [[root(axis, attribute)] for axis, attribute in enumerate(self.attributes)]

    def has_room(self, axis: int, n_parts: int) -> bool:
        sizes = [len(cut) for cut in self.cuts]
        sizes[axis] += n_parts - 1
        return math.prod(sizes) <= self.max_cells

    def replace(self, piece: Piece, parts: Sequence[Piece]) -> None:
        self.cuts[piece.axis] = after(self.cuts[piece.axis], piece, parts)

    def counts(self) -> list[list[int]]:
        """The rows of every cell and class, cells in the order of their pieces."""
        number = Counter((cell_of(self.cuts, row), row[-1]) for row in self.rows)
        return [[number[cell, c] for c in range(self.n_classes)] for cell in cells(self.cuts)]


def after(cut: Sequence[Piece], piece: Piece, parts: Sequence[Piece]) -> list[Piece]:
    return sorted([*(one for one in cut if one != piece), *parts], key=lambda one: one.codes)


def cell_of(cuts: Sequence[Sequence[Piece]], row: Row) -> tuple[int, ...]:
    return tuple(
        next(i for i, piece in enumerate(cut) if code in piece.codes)
        for cut, code in zip(cuts, row, strict=False)
    )


def cells(cuts: Sequence[Sequence[Piece]]) -> Iterator[tuple[int, ...]]:
    if not cuts:
        yield ()
        return
    for first in range(len(cuts[0])):
        yield from ((first, *rest) for rest in cells(cuts[1:]))


def paper(run: Run, score: str) -> Run:
    """[MCFY11, Algorithm 1]."""
    n_numbers = sum(isinstance(attribute, Number) for attribute in run.attributes)
    share = run.epsilon / (2 * (n_numbers + 2 * run.h)) if run.h else None
    candidates: list[tuple[Piece, tuple[Piece, ...]]] = []
    score_of = MARGINAL[score]

    def offer(piece: Piece) -> None:
        if isinstance(run.attributes[piece.axis], Number):
            splits = [piece.halves(n) for n in range(1, len(piece.codes))]
            if splits:
                drawn = run.pick("split point", [score_of(run.rows, piece, parts) for parts in splits])
                candidates.append((piece, splits[drawn]))
        elif piece.children():
            candidates.append((piece, piece.children()))

    for (piece,) in run.cuts if run.h else []:
        if isinstance(run.attributes[piece.axis], Number) and len(piece.codes) > 1:
            run.charged.append(("split point", share))
        offer(piece)
    for left in reversed(range(run.h)):
        here = [(piece, parts) for piece, parts in candidates if run.has_room(piece.axis, len(parts))]
        if not here:
            break
        run.charged.append(("specialization", share))
        piece, parts = here[run.pick("specialization", [score_of(run.rows, *each) for each in here])]
        candidates.remove((piece, parts))
        run.replace(piece, parts)
        if left:
            is_number = isinstance(run.attributes[piece.axis], Number)
            if is_number and any(len(part.codes) > 1 for part in parts):
                run.charged.append(("split point", share))  # their rows are disjoint
            for part in parts:
                offer(part)
    run.charged.append(("counts", run.epsilon / 2))
    return run


def specializations_for(epsilon: Fraction, n_rows: int) -> int:
    return min(max(round(4 * math.log10(epsilon * max(n_rows, 1))) - 8, 3), 20)


def tuned(run: Run, score: str) -> Run:
    """One list of nodes and thresholds, each node with the same mass; scored by the purity of the whole grid, less a
    penalty for new cells. Without a number of specializations it follows from a noisy number of rows.
    """
    left = run.epsilon
    if run.h is None:
        run.charged.append(("rows", left / 100))
        run.h = specializations_for(left, len(run.rows))
        left -= left / 100
    penalty = Fraction(1, 5) / (Fraction(3, 10) * left) if run.h else None
    for step in range(run.h):
        by = Fraction(
            math.floor(Fraction(8 * (run.h - 1 - step), run.h - 1) + Fraction(1, 2)) if run.h > 1 else 4, 16
        )
        purity = PURITY.get(score) or partial(smooth_purity, by=by)
        candidates: list[tuple[Piece, tuple[Piece, ...]]] = []
        for cut in run.cuts:
            for piece in cut:
                if isinstance(run.attributes[piece.axis], Number):
                    n = len(piece.codes)
                    n_bins = min(n, 257)
                    of_piece = [piece.halves(n * i // n_bins) for i in range(1, n_bins)]
                else:
                    of_piece = [piece.children()] if piece.children() else []
                if of_piece and run.has_room(piece.axis, len(of_piece[0])):
                    repeats = max(1, 256 // len(of_piece))
                    candidates += [(piece, parts) for parts in of_piece for _ in range(repeats)]
        if not candidates:
            break
        run.charged.append(("specialization", Fraction(7, 10) * left / run.h))
        price = penalty * (1 if score == "max" else 2**20)
        scores = {each: score_after(run, *each, purity, price) for each in dict.fromkeys(candidates)}
        run.replace(*candidates[run.pick("specialization", [scores[each] for each in candidates])])
    run.charged.append(("counts", run.epsilon - sum((share for _, share in run.charged), Fraction(0))))
    return run


def score_after(
    run: Run, piece: Piece, parts: Sequence[Piece], purity: Callable[[Counter[int]], int], price: Fraction
) -> int:
    cuts = [*run.cuts]
    cuts[piece.axis] = after(cuts[piece.axis], piece, parts)
    classes: dict[tuple[int, ...], Counter[int]] = {}
    for row in run.rows:
        classes.setdefault(cell_of(cuts, row), Counter())[row[-1]] += 1
    n_new = len(list(cells(cuts))) - len(list(cells(run.cuts)))
    return sum(purity(counted) for counted in classes.values()) - math.floor(price * n_new)
