"""DiffGen: a differentially private release for classification [MCFY11].

One cut per attribute is pushed down by draws that favour useful candidates; then every cell of the grid of cuts gets
a noisy count per class, the empty ones too. From the counts on, everything is computed from what was drawn. Why it
is differentially private: ``proof.md``, beside this file.

Nothing here reads a domain from the rows, and nothing that depends on rows leaves but by way of a mechanism that
the ledger was charged for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.encoding.declared import cut_of
from sfumato.encoding.domain import Domain, OrderedDomain
from sfumato.engines.protocol import Asked, Engine, Rows
from sfumato.engines.start import start_engine
from sfumato.methods.specialization.column_counts import ColumnPlan
from sfumato.methods.specialization.diffgen.counts import RowCountPlan
from sfumato.methods.specialization.diffgen.paper import PaperChooser
from sfumato.methods.specialization.diffgen.plan import ROW_COUNT, BudgetPlan, CellLimit, specializations_for
from sfumato.methods.specialization.diffgen.scores import InfoGain, Max
from sfumato.methods.specialization.diffgen.tuned import ClassifiedRows, TunedCutter, mesh_of
from sfumato.methods.specialization.loop import NO_NODE, CutGrid, Piece, push_down, specialize
from sfumato.policy.options.diffgen import PAPER, SMOOTH, Cut, DiffGenOptions
from sfumato.privacy.ledger import Draw, Ledger
from sfumato.privacy.mechanisms import DISCRETE_LAPLACE, Mechanisms
from sfumato.progress import Progress, no_progress

Ints = NDArray[np.int64]
AllCuts = tuple[tuple[Piece, ...], ...]

COUNTS, ROWS = "counts", "rows"
PAPER_SPECIALIZATIONS = 10


@dataclass(frozen=True, slots=True, eq=False)
class DrawnCuts:
    """What was drawn, and all that may be published.

    grid    the cuts
    counts  (cells, classes) int64, none negative: cells in the order of their pieces, the first axis slowest
    ledger  every draw and its share
    """

    grid: CutGrid
    counts: Ints
    ledger: Ledger


def draw(
    rows: Rows,
    domains: Sequence[Domain],
    n_classes: int,
    options: DiffGenOptions,
    mechanisms: Mechanisms,
    *,
    engine: Engine | None = None,
    progress: Progress = no_progress,
) -> DrawnCuts:
    """Draw cuts and counts of rows (codes of every domain, then the class) that live in an ``engine``."""
    ledger = Ledger(options.epsilon)
    table = ClassifiedRows(start_engine() if engine is None else engine, rows, domains, n_classes)
    if options.cuts is not None:
        cuts = given_cuts(options.cuts, domains)
        share = ledger.unspent
    elif options.variant == PAPER:
        cuts = _cut_as_published(table, options, mechanisms, ledger, progress)
        share = ledger.epsilon / 2
    else:
        cuts = _cut_as_tuned(table, options, mechanisms, ledger, progress)
        share = ledger.unspent
    progress("counting", 0, 1)
    exact = table.count_cells(mesh_of(cuts))
    ledger.charge(Draw(COUNTS, "", DISCRETE_LAPLACE, share, 1 / share))
    noisy = mechanisms.discrete_laplace(exact.ravel(), 1 / share).reshape(exact.shape)
    is_paper = options.cuts is None and options.variant == PAPER
    counts = np.maximum(noisy, 0) if is_paper else with_total(noisy)
    return DrawnCuts(CutGrid.of(cuts, domains), counts, ledger)


def _cut_as_published(
    table: ClassifiedRows, options: DiffGenOptions, mechanisms: Mechanisms, ledger: Ledger, progress: Progress
) -> AllCuts:
    """The cuts of the variant paper, by counts of columns alone, gathered in one pass."""
    domains = table.domains
    plan = ColumnPlan(
        [domain.n_codes for domain in domains], labels=[len(domains)], n_classes=[table.n_classes]
    )
    (counts,) = table.engine.gather(table.rows, Asked([plan]))
    h = options.specializations
    chooser = PaperChooser(
        counts,
        domains,
        InfoGain(table.n_classes) if options.score == "infogain" else Max(),
        specializations=PAPER_SPECIALIZATIONS if h is None else h,
        limit=CellLimit([1] * len(domains), options.max_cells),
        ledger=ledger,
        mechanisms=mechanisms,
        progress=progress,
    )
    return specialize(domains, chooser)


def _cut_as_tuned(
    table: ClassifiedRows, options: DiffGenOptions, mechanisms: Mechanisms, ledger: Ledger, progress: Progress
) -> AllCuts:
    """The cuts of the variant tuned, in passes over the rows."""
    h = options.specializations
    if h is None:
        h = specializations_for(ledger.epsilon, _noisy_rows(table, mechanisms, ledger))
    cutter = TunedCutter(
        table,
        options.score or SMOOTH,
        plan=BudgetPlan.of(ledger.unspent, h),
        limit=CellLimit([1] * len(table.domains), options.max_cells),
        ledger=ledger,
        mechanisms=mechanisms,
        progress=progress,
    )
    return push_down(table.domains, cutter)


def _noisy_rows(table: ClassifiedRows, mechanisms: Mechanisms, ledger: Ledger) -> int:
    """A noisy number of rows: the exact one is as secret as any other count."""
    share = ROW_COUNT * ledger.epsilon
    exact = np.array(table.engine.gather(table.rows, Asked([RowCountPlan()])), dtype=np.int64)
    ledger.charge(Draw(ROWS, "", DISCRETE_LAPLACE, share, 1 / share))
    noisy = int(mechanisms.discrete_laplace(exact, 1 / share)[0])
    ledger.note(noisy)
    return noisy


# ---- cuts that the owner gives ---------------------------------------------------------------------


def given_cuts(given: Mapping[str, Cut], domains: Sequence[Domain]) -> AllCuts:
    """The cuts that a policy gives: where pieces of a number begin, the nodes of a hierarchy, or every value."""
    return tuple(_given_cut(a, domain, given.get(domain.attribute.name)) for a, domain in enumerate(domains))


def _given_cut(a: int, domain: Domain, given: Cut | None) -> tuple[Piece, ...]:
    if isinstance(domain, OrderedDomain):
        ends = np.append(() if given is None else cut_of(domain, given), domain.n_codes).astype(np.int64)
        lows = np.append([0], ends[:-1])
        return tuple(
            Piece(a, low, high, NO_NODE) for low, high in zip(lows.tolist(), ends.tolist(), strict=True)
        )
    tree = domain.hierarchy
    nodes = [0] if given is None else cut_of(domain, given).tolist()
    return tuple(Piece(a, int(tree.low[node]), int(tree.high[node]), node) for node in nodes)


# ---- counts that can be published ------------------------------------------------------------------


def with_total(noisy: Ints) -> Ints:
    """Counts without negative ones that add up, class by class, to what the noisy ones add up to.

    The same number is taken off all of them, as much as clipping negative ones would add; these are the nearest such
    counts by least squares [DSSC08].

    >>> with_total(np.array([[9, -1], [-4, 5], [1, 0]])).T.tolist()
    [[6, 0, 0], [0, 4, 0]]
    """
    out = np.empty_like(noisy)
    for c, counts in enumerate(noisy.T):
        out[:, c] = _nearest(counts, max(int(counts.sum()), 0))
    return out


def _nearest(counts: Ints, total: int) -> Ints:
    """The nearest counts that are not negative and have this total, whole numbers."""
    falling = np.sort(counts)[::-1]
    above = np.cumsum(falling) - total
    n = int(np.flatnonzero(falling * np.arange(1, len(counts) + 1) > above)[-1]) + 1 if total else 0
    if n == 0:
        return np.zeros_like(counts)
    off = Fraction(int(above[n - 1]), n)
    out = np.maximum(counts - -(-off.numerator // off.denominator), 0)
    largest = np.argsort(-counts, kind="stable")[: total - int(out.sum())]
    out[largest] += 1
    return out
