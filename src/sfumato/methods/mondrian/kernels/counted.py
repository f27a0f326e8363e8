"""Kernels that choose a split from counts, as Python calls them: those of ``choose``, ``cells`` and ``select``.

An axis comes in stretches of ascending codes. ``scratch.code`` and ``scratch.total`` hold the codes of one that occur,
and the running totals up to each, from the first code of the axis on; n, x and node are those of ``score_thresholds``.
"""

from __future__ import annotations

import numpy as np

from sfumato.kernels.compile import kernel
from sfumato.kernels.information import information
from sfumato.methods.mondrian.kernels.cells import (
    add_sums_of_group,
    clear_group,
    information_of_group,
    squares_of_group,
    walk_information,
    walk_squares,
)
from sfumato.methods.mondrian.kernels.choose import choose_axis, take_balanced, take_children, take_threshold
from sfumato.methods.mondrian.kernels.loss import (
    first_step,
    last_step,
    nothing_yet,
    step_of,
    take_all_children,
    walk_nodes,
    walk_thresholds,
)
from sfumato.methods.mondrian.kernels.scores import (
    gains_too_little,
    score_of_children,
    score_thresholds,
    within_limit,
)
from sfumato.methods.mondrian.kernels.select import add_ends, cost_of_children, fill_active, fill_costs

NO_SHIFT = np.int64(0)


@kernel
def choose_in_stretch(axis, m, n, x, node, bins, targets, rules, table, scratch, best):
    """``choose_axis`` of a stretch."""
    return choose_axis(axis, m, n, x, node, NO_SHIFT, None, bins, targets, rules, table, scratch, best)


@kernel
def balance_in_stretch(axis, m, n, bins, rules, scratch, best):
    """``take_balanced`` of a stretch."""
    return take_balanced(None, bins, axis, m, n, rules, scratch, best)


@kernel
def take_in_stretch(axis, m, n, bins, rules, scratch, best):
    """``take_threshold`` of a stretch whose thresholds have their scores in ``scratch.score``."""
    first, last = within_limit(scratch.total[0, :m], n, NO_SHIFT, rules.least_rows)
    if first >= last:
        return best
    return take_threshold(None, bins, axis, m, n, first, last, rules, scratch, best)


@kernel
def score_stretch(m, n, x, node, targets, least_rows, table, scratch):
    """``score_thresholds`` of a stretch."""
    return score_thresholds(m, n, x, node, NO_SHIFT, targets, targets.several, least_rows, table, scratch)


@kernel
def take_parts(axis, m, score, largest, bins, rules, scratch, best):
    """``take_children`` of an axis with a hierarchy."""
    return take_children(None, bins, axis, m, score, largest, rules, scratch, best)


@kernel
def score_parts(words, node, targets, table, scores):
    """``score_of_children``."""
    return score_of_children(words, node, targets, table, scores)


@kernel
def is_gain_too_little(score, unsplit, n, gain_scale, least_gain):
    """``gains_too_little``."""
    return gains_too_little(score, unsplit, n, gain_scale, least_gain)


# ---- loss ------------------------------------------------------------------------------------------


@kernel
def steps_of(axis, least, greatest, low, high, grid, loss, out):
    """What ``walk_thresholds`` must know of a node: the ends of its values and of its box are given by codes."""
    out[0], out[1] = step_of(least, axis, grid, loss), step_of(greatest, axis, grid, loss)
    out[2], out[3] = first_step(low, axis, grid, loss), last_step(high, axis, grid, loss)


@kernel
def thresholds_by_loss(axis, m, n, facts, missing, node, grid, targets, rules, loss, table, scratch):
    """List the candidates of ``walk_thresholds`` of a stretch, whose last code only says what comes next."""
    best = nothing_yet(n)
    return walk_thresholds(
        axis, m, n, facts, missing, node, True, grid, targets, rules, loss, table, scratch, best
    )[0]


@kernel
def nodes_by_loss(axis, top, m, n, node, grid, targets, rules, loss, table, scratch):
    """List the candidates of ``walk_nodes``."""
    best = nothing_yet(n)
    return walk_nodes(axis, top, m, n, node, True, grid, targets, rules, loss, table, scratch, best)[0]


@kernel
def children_by_loss(axis, top, m, n, node, leaves_rest, grid, targets, loss, table, scratch, stands):
    """``take_all_children``, of which these stand alone."""
    for child in range(stands.shape[0]):
        scratch.listed_splits.stands[child] = stands[child]
    best = nothing_yet(n)
    return take_all_children(axis, top, m, n, node, leaves_rest, grid, targets, loss, table, scratch, best)


# ---- cells -----------------------------------------------------------------------------------------


@kernel
def information_of_ids(counts, table):
    """The score of a label in a node as one part; counts is that of ``walk_information``."""
    score = np.int64(0)
    for i in range(counts.shape[0]):
        score += information(counts[i, 1], table) - information(counts[i, 3], table)
    return score


@kernel
def walk_label(entries, ends, weight, counts, score, table, out):
    """``walk_information`` of a stretch."""
    return walk_information(None, None, entries, ends, 0, 0, weight, counts, score, table, out)


@kernel
def walk_number(entries, ends, weight, scale, counts, score, out):
    """``walk_squares`` of a stretch."""
    return walk_squares(None, None, entries, ends, 0, 0, weight, scale, counts, score, out)


@kernel
def add_label_of_group(entries, counts, table):
    """``information_of_group``."""
    return information_of_group(None, None, entries, 0, entries.of.shape[0], 0, 0, counts, table)


@kernel
def clear_label_of_group(entries, counts):
    """``clear_group``."""
    clear_group(None, None, entries, 0, entries.of.shape[0], 0, 0, counts)


@kernel
def add_number_of_group(entries, counts):
    """``add_sums_of_group``."""
    add_sums_of_group(None, None, entries, 0, entries.of.shape[0], 0, 0, counts)


@kernel
def take_number_of_group(entries, scale, counts):
    """``squares_of_group``."""
    return squares_of_group(None, None, entries, 0, entries.of.shape[0], 0, scale, counts)


# ---- selections ------------------------------------------------------------------------------------


@kernel
def find_active(queries, region, out):
    """``fill_active``."""
    return fill_active(queries, region, out)


@kernel
def fill_stretch_costs(axis, m, n, before, rows_before, active, queries, scratch):
    """``add_ends`` and ``fill_costs`` of a stretch; returns how many thresholds there are then."""
    m = add_ends(axis, active, queries, before, rows_before, m, scratch.code, scratch.total[0])
    fill_costs(axis, m, n, active, queries, scratch)
    return m


@kernel
def cost_of_parts(axis, parent, m, active, queries, grid, scratch):
    """``cost_of_children``; scratch.code says which child of ``parent`` each is."""
    return cost_of_children(axis, parent, m, active, queries, grid, scratch)
