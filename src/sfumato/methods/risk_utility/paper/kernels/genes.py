"""The operators of the genetic search of [FEB12, section 2.5], and the search of one row.

A chromosome is a *path*: the columns that are specialized one after the other, one step each, on the way from the
greatest generalization down to a frontier node. Steps, near rows and measures are those of
:mod:`sfumato.methods.risk_utility.kernels.neighbours`. Random numbers come from a counter (Marsaglia's xorshift) that
begins at a number of the caller's, so that a row's search depends on nothing but that.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.compile import inner, kernel
from sfumato.methods.risk_utility.kernels.neighbours import Measure, copy_to, covers, is_better, measure
from sfumato.methods.risk_utility.kernels.probe import fill_nearest, join, probe_scratch


class Evolution(NamedTuple):
    """How the search of one row goes."""

    n_generations: int
    n_probes: int  # members that begin as paths of their own
    is_improved: bool  # no two members at one node, mutation anywhere, near rows joined to begin with
    is_printed: bool  # parents by utility, first feasible nodes
    whole: int  # the utility of the row as it is


class Members(NamedTuple):
    """A population."""

    gene: NDArray[np.uint16]  # (members, longest path) columns
    n_genes: NDArray[np.int64]  # (members,)
    node: NDArray[np.uint8]  # (members, columns) the steps of the node that the path leads to
    covered: NDArray[np.int64]  # (members,) of that node; this and the next two are its Measure
    weight: NDArray[np.int64]  # (members,)
    loss: NDArray[np.int64]  # (members,)


@inner
def _below(counter, n):
    """A random whole number from 0 to n - 1; the counter, never 0, moves on.

    counter  (1,)  uint64  IN+OUT
    """
    bits = counter[0]
    bits ^= bits << np.uint64(13)
    bits ^= bits >> np.uint64(7)
    bits ^= bits << np.uint64(17)
    counter[0] = bits
    return np.int64(bits >> np.uint64(11)) % n


@kernel
def fill_path(steps, budget, genes, is_printed, counter, node, out):
    """Follow a path from the top until a frontier node: its length.

    What lies beyond a frontier node is cut off, and a path that does not reach one is completed at random: the two
    special cases of Figure 6. A gene whose column is specialized already to the end is skipped. The first feasible node
    of the path is a frontier node of the paper. Unless that is wanted as printed, genes that it does not need are taken
    back, the last first, so that all nodes above it are infeasible.

    steps       Steps
    budget      the utility that may be lost              int64   IN
    genes       (any number,) columns                     uint16  IN
    is_printed  the first feasible node                   bool    IN
    counter     (1,) of random numbers                    uint64  IN+OUT
    node        (columns,) steps                          uint8   OUT
    out         (longest path,) columns                   uint16  OUT
    """
    n, loss, n_left = 0, np.int64(0), np.int64(0)
    for a in range(len(node)):
        node[a] = steps.n[a] - 1
        loss += steps.loss[a, node[a]]
        n_left += node[a] > 0
    at = 0
    while loss > budget:
        if at < len(genes):
            a = np.int64(genes[at])
            at += 1
            if node[a] == 0:
                continue
        else:
            a, skip = -1, _below(counter, n_left)
            while skip >= 0:
                a += 1
                skip -= node[a] > 0
        loss += steps.loss[a, node[a] - 1] - steps.loss[a, node[a]]
        node[a] -= 1
        n_left -= node[a] == 0
        out[n] = a
        n += 1
    return n if is_printed else _take_back(steps, budget, loss, n, node, out)


@inner
def _take_back(steps, budget, loss, n, node, out):
    """Generalize while it is feasible, along the path, the last gene first: its length."""
    for back in range(n):
        a = out[n - 1 - back]
        more = steps.loss[a, node[a] + 1] - steps.loss[a, node[a]]
        if loss + more <= budget:
            loss += more
            node[a] += 1
            out[n - 1 - back] = len(node)
    kept = 0
    for at in range(n):
        if out[at] < len(node):
            out[kept] = out[at]
            kept += 1
    return kept


@kernel
def fill_mutant(steps, genes, is_anywhere, counter, out):
    """A path with one gene changed: near its middle, within an eighth of its length; or anywhere.

    steps        Steps
    genes        (length,) columns          uint16  IN
    is_anywhere  the place of the mutation  bool    IN
    counter      (1,) of random numbers     uint64  IN+OUT
    out          (length,) columns          uint16  OUT
    """
    n, n_columns = len(genes), len(steps.n)
    for at in range(n):
        out[at] = genes[at]
    n_others = np.int64(0)
    for a in range(n_columns):
        n_others += steps.n[a] > 1
    if n == 0 or n_others < 2:
        return
    spread = n // 8
    at = _below(counter, n) if is_anywhere else n // 2 - spread + _below(counter, 2 * spread + 1)
    a, skip = -1, _below(counter, n_others - 1)
    while skip >= 0:
        a += 1
        skip -= steps.n[a] > 1 and a != genes[at]
    out[at] = a


@kernel
def fill_crossover(genes, others, out):
    """The first half of a path and the second half of another: its length.

    genes   (length,) columns            uint16  IN
    others  (length of other,) columns   uint16  IN
    out     (longest path,) columns      uint16  OUT
    """
    n, first = len(genes) // 2, len(others) // 2
    for at in range(n):
        out[at] = genes[at]
    for at in range(first, len(others)):
        out[n + at - first] = others[at]
    return n + len(others) - first


@inner(borrows=True)
def _set_member(problem, genes, is_printed, counter, members, i):
    """Member ``i`` becomes what these genes lead to; its node is measured."""
    node, vector, n_rows = members.node[i], problem.near.vector, problem.near.n_rows
    members.n_genes[i] = fill_path(
        problem.steps, problem.budget, genes, is_printed, counter, node, members.gene[i]
    )
    covered = np.int64(problem.own)
    for j in range(len(n_rows)):
        if covers(node, vector, j):
            covered += n_rows[j]
    found = measure(problem, covered, node)
    members.covered[i], members.weight[i], members.loss[i] = found.covered, found.weight, found.loss


@inner(borrows=True)
def _fill_order(members, n, out):
    """The first n members, best first; of equals the older.

    out  (n,)  int64  OUT
    """
    covered, weight, loss = members.covered, members.weight, members.loss
    for i in range(n):
        at, one = i, Measure(covered[i], weight[i], loss[i])
        while at > 0:
            j = out[at - 1]
            if not is_better(one, Measure(covered[j], weight[j], loss[j])):
                break
            out[at] = j
            at -= 1
        out[at] = i


@inner
def _draw_rank(counter, n):
    """A rank from 0 (best) to n - 1, each with a chance in proportion to n minus itself."""
    drawn = _below(counter, n * (n + 1) // 2)
    rank = 0
    while drawn >= n - rank:
        drawn -= n - rank
        rank += 1
    return rank


@kernel
def draw_by_utility(counter, members, n, whole):
    """One of the first n members, each with a chance in direct proportion to its utility (section 2.5, Selection).

    counter  (1,) of random numbers           uint64  IN+OUT
    members  Members                                  IN
    n        how many                         int64   IN
    whole    the utility of the row as it is  int64   IN
    """
    total = 0.0
    for i in range(n):
        total += np.float64(whole - members.loss[i])
    if total <= 0.0:
        return _below(counter, n)
    drawn = np.float64(_below(counter, np.int64(1) << 53)) / np.float64(np.int64(1) << 53) * total
    for i in range(n - 1):
        drawn -= np.float64(whole - members.loss[i])
        if drawn < 0.0:
            return i
    return n - 1


@inner
def _draw_parent(counter, members, n, is_printed, whole):
    """A member that has children: by the rank of its risk, or as printed."""
    return draw_by_utility(counter, members, n, whole) if is_printed else _draw_rank(counter, n)


@inner
def _is_repeated(members, order, kept, i):
    """Is a member's node that of one of those kept?"""
    for f in range(kept):
        j, a = order[f], 0
        while a < members.node.shape[1] and members.node[i, a] == members.node[j, a]:
            a += 1
        if a == members.node.shape[1]:
            return True
    return False


@inner
def _survive(members, order, n_members, is_distinct, out):
    """The best members are the next population, in order; no two at one node, if they must be distinct and can.

    order  (pool,)  int64    IN+OUT
    out    Members           OUT
    """
    kept, n = 0, len(order)
    if is_distinct:
        late = 0
        repeated = np.empty(n, np.int64)
        for f in range(n):
            i = order[f]
            if _is_repeated(members, order, kept, i):
                repeated[late] = i
                late += 1
            else:
                order[kept] = i
                kept += 1
        for f in range(late):
            order[kept + f] = repeated[f]
    for f in range(n_members):
        i, length = order[f], members.n_genes[order[f]]
        out.n_genes[f] = length
        for at in range(length):
            out.gene[f, at] = members.gene[i, at]
        for a in range(members.node.shape[1]):
            out.node[f, a] = members.node[i, a]
        out.covered[f], out.weight[f], out.loss[f] = members.covered[i], members.weight[i], members.loss[i]


@inner
def _fill_path_to(steps, node, counter, out):
    """The columns to be specialized from the top down to a node, in random order: how many."""
    n = 0
    for a in range(len(node)):
        for _ in range(node[a], steps.n[a] - 1):
            at = _below(counter, n + 1)
            out[n] = out[at]
            out[at] = a
            n += 1
    return n


@inner
def _join_seeds(problem, n_seeds, counter, genes, members):
    """The first members are nearest rows with others joined to them: how many."""
    near = problem.near
    seeds, x = np.empty(n_seeds, np.int64), np.empty(near.vector.shape[1], np.uint8)
    n_seeds = fill_nearest(near, seeds)
    scratch = probe_scratch(problem)
    for i in range(n_seeds):
        copy_to(near.vector[seeds[i]], x)
        join(problem, scratch, x)
        length = _fill_path_to(problem.steps, x, counter, genes)
        _set_member(problem, genes[:length], False, counter, members, i)
    return n_seeds


@inner
def _fill_children(problem, how, counter, members, genes, pool):
    """Half as many children as members by mutation, as many by crossover, and immigrants at the end of the pool."""
    n = len(members.n_genes)
    n_half = n // 2
    for i in range(n, n + n_half):
        parent = _draw_parent(counter, members, n, how.is_printed, how.whole)
        length = members.n_genes[parent]
        fill_mutant(problem.steps, members.gene[parent, :length], how.is_improved, counter, genes)
        _set_member(problem, genes[:length], how.is_printed, counter, pool, i)
    for i in range(n + n_half, n + 2 * n_half, 2):
        one = _draw_parent(counter, members, n, how.is_printed, how.whole)
        two = _draw_parent(counter, members, n, how.is_printed, how.whole)
        for child in range(min(2, n + 2 * n_half - i)):
            length = fill_crossover(
                members.gene[one, : members.n_genes[one]], members.gene[two, : members.n_genes[two]], genes
            )
            _set_member(problem, genes[:length], how.is_printed, counter, pool, i + child)
            one, two = two, one
    for i in range(n + 2 * n_half, len(pool.n_genes)):
        _set_member(problem, genes[:0], how.is_printed, counter, pool, i)


@kernel
def evolve(problem, how, counter, members, pool, out):
    """The genetic search of one row, Algorithm 2: the measure of the best node.

    In each generation half as many members as there are come from mutations, as many from crossovers, and a tenth are
    immigrants, random paths; the best of all of them survive. Parents are taken by the rank of their risk; as printed,
    by their utility.

    problem  RowProblem                              IN
    how      Evolution                               IN
    counter  (1,) of random numbers           uint64 IN+OUT
    members  Members, the population                 SCRATCH
    pool     Members, it and its children            SCRATCH
    out      (columns,) steps of the best node uint8 OUT
    """
    n, n_all = len(members.n_genes), len(pool.n_genes)
    genes = np.empty(2 * pool.gene.shape[1], np.uint16)
    order = np.empty(n_all, np.int64)
    first = 0
    if how.is_improved:
        first = _join_seeds(problem, n // 2, counter, genes, pool)
    for i in range(first, n):
        length = pool.n_genes[0] if i >= how.n_probes else 0
        genes[:length] = pool.gene[0, :length]
        _set_member(problem, genes[:length], how.is_printed, counter, pool, i)
    _fill_order(pool, n, order)
    _survive(pool, order[:n], n, how.is_improved, members)
    for _ in range(how.n_generations):
        for i in range(n):
            order[i] = i
        _survive(members, order[:n], n, False, pool)
        _fill_children(problem, how, counter, members, genes, pool)
        _fill_order(pool, n_all, order)
        _survive(pool, order, n, how.is_improved, members)
    copy_to(members.node[0], out)
    return Measure(members.covered[0], members.weight[0], members.loss[0])


__all__ = ["Evolution", "Members", "draw_by_utility", "evolve", "fill_crossover", "fill_mutant", "fill_path"]
