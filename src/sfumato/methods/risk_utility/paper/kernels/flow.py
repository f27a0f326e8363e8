"""Maximum flow and minimum cut, by Dinic's algorithm, in whole numbers.

Arcs come in pairs: arc 2q leads somewhere, arc 2q + 1 back. ``residual`` is what an arc can still carry; what one
direction carries the other can take back. Sums of finite capacities must stay below 2^62.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.compile import inner, kernel

ENDLESS = np.int64(1) << np.int64(62)
"""The capacity of an arc that no minimum cut goes through."""

UNKNOWN, SOURCE, SINK = 0, 1, 2
"""Sides of a cut."""


class Network(NamedTuple):
    """Nodes and arcs. Node i is left by the arcs ``arcs[start[i] : start[i + 1]]``."""

    tail: NDArray[np.int32]  # (arcs / 2,) where arc 2q begins
    head: NDArray[np.int32]  # (arcs / 2,) where it ends
    start: NDArray[np.int64]  # (nodes + 1,)
    arcs: NDArray[np.int32]  # (arcs,) numbers of arcs


@kernel
def fill_star(network):
    """List the arcs that leave each node, by tails and heads.

    network  Network, its ``start`` and ``arcs``  OUT
    """
    tail, head, start, arcs = network
    start[:] = 0
    for q in range(len(tail)):
        start[tail[q] + 1] += 1
        start[head[q] + 1] += 1
    for node in range(len(start) - 1):
        start[node + 1] += start[node]
    fill = start[:-1].copy()
    for q in range(len(tail)):
        arcs[fill[tail[q]]] = 2 * q
        fill[tail[q]] += 1
        arcs[fill[head[q]]] = 2 * q + 1
        fill[head[q]] += 1


@inner
def end_of(network, arc):
    """The node that an arc leads to."""
    return network.tail[arc >> 1] if arc & 1 else network.head[arc >> 1]


@inner
def fill_distances(network, residual, source, sink, distance, queue):
    """How many arcs that are not full lead from the source to each node, -1 where none do. Is the sink reached?"""
    start, arcs = network.start, network.arcs
    distance[:] = -1
    distance[source] = 0
    queue[0] = source
    first, last = 0, 1
    while first < last:
        node = queue[first]
        first += 1
        for at in range(start[node], start[node + 1]):
            to = end_of(network, arcs[at])
            if residual[arcs[at]] > 0 and distance[to] < 0:
                distance[to] = distance[node] + 1
                if to == sink:
                    return True
                queue[last] = to
                last += 1
    return False


@kernel
def push_flow(network, source, sink, residual):
    """Send as much as possible from the source to the sink; returns how much.

    network   Network                IN
    residual  (arcs,)         int64  IN+OUT
    """
    start, arcs = network.start, network.arcs
    n = len(start) - 1
    distance, queue = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
    path = np.empty(n, dtype=np.int32)
    pushed = np.int64(0)
    while fill_distances(network, residual, source, sink, distance, queue):
        at = start[:-1].copy()
        node, length = np.int64(source), 0
        while True:
            if node == sink:
                least, where = ENDLESS, 0
                for i in range(length):
                    if residual[path[i]] < least:
                        least, where = residual[path[i]], i
                for i in range(length):
                    residual[path[i]] -= least
                    residual[path[i] ^ 1] += least
                pushed += least
                length = where  # back to the arc that is full
                node = end_of(network, path[where] ^ 1)
                continue
            while at[node] < start[node + 1]:
                arc = arcs[at[node]]
                to = end_of(network, arc)
                if residual[arc] > 0 and distance[to] == distance[node] + 1:
                    break
                at[node] += 1
            if at[node] < start[node + 1]:
                path[length] = arcs[at[node]]
                length += 1
                node = np.int64(end_of(network, arcs[at[node]]))
            elif node == source:
                break
            else:
                length -= 1
                node = np.int64(end_of(network, path[length] ^ 1))
                at[node] += 1
    return pushed


@kernel
def spread_side(network, residual, at_least, node, side, out):
    """Put a node, and all that must go with it, on one side of a cut.

    An arc that can carry more than ``at_least`` is not cut: what it leads to is on the side of the source with its tail,
    and its tail is on the side of the sink with what it leads to.

    network   Network                         IN
    residual  (arcs,)                 int64   IN
    out       (nodes,) sides          uint8   IN+OUT
    """
    start, arcs = network.start, network.arcs
    queue = np.empty(len(out), dtype=np.int32)
    queue[0] = node
    out[node] = side
    first, last = 0, 1
    while first < last:
        here = queue[first]
        first += 1
        for at in range(start[here], start[here + 1]):
            arc = arcs[at]
            to = end_of(network, arc)
            uncut = residual[arc] if side == SOURCE else residual[arc ^ 1]
            if out[to] == UNKNOWN and uncut > at_least:
                out[to] = side
                queue[last] = to
                last += 1


__all__ = ["ENDLESS", "SINK", "SOURCE", "UNKNOWN", "Network", "fill_star", "push_flow", "spread_side"]
