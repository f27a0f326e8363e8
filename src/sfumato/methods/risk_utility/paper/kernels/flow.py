"""Maximum flow and minimum cut, by Dinic's algorithm, in whole numbers.

Arcs come in pairs: arc 2q leads somewhere, arc 2q + 1 back. ``room`` is what an arc can still carry; what one direction
carries the other can take back. Sums of finite capacities must stay below 2^62.
"""

from __future__ import annotations

import numpy as np

from sfumato.kernels.compile import inner, kernel

ENDLESS = np.int64(1) << np.int64(62)
"""The capacity of an arc that no minimum cut goes through."""

UNKNOWN, SOURCE, SINK = 0, 1, 2
"""Sides of a cut."""


@kernel
def fill_star(tail, head, start, arcs):
    """The arcs that leave each node, as lists one after the other.

    tail, head  (arcs / 2,) of the arcs 2q                   int32  IN
    start       (nodes + 1,) where a node's arcs begin       int64  OUT
    arcs        (arcs,) numbers of arcs                      int32  OUT
    """
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
def other_end(tail, head, arc):
    return tail[arc >> 1] if arc & 1 else head[arc >> 1]


@inner
def fill_distances(tail, head, start, arcs, room, source, sink, distance, queue):
    """How many arcs with room lead from the source to each node, -1 where none do; ends where the sink is found."""
    distance[:] = -1
    distance[source] = 0
    queue[0] = source
    first, last = 0, 1
    while first < last:
        node = queue[first]
        first += 1
        for at in range(start[node], start[node + 1]):
            to = other_end(tail, head, arcs[at])
            if room[arcs[at]] > 0 and distance[to] < 0:
                distance[to] = distance[node] + 1
                if to == sink:
                    return True
                queue[last] = to
                last += 1
    return False


@kernel
def push_flow(tail, head, start, arcs, source, sink, room):
    """Send as much as possible from the source to the sink; returns how much.

    tail, head  (arcs / 2,)    int32  IN
    start       (nodes + 1,)   int64  IN
    arcs        (arcs,)        int32  IN
    room        (arcs,)        int64  IN+OUT
    """
    n = len(start) - 1
    distance, queue = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
    path = np.empty(n, dtype=np.int32)
    pushed = np.int64(0)
    while fill_distances(tail, head, start, arcs, room, source, sink, distance, queue):
        at = start[:-1].copy()
        node, length = np.int64(source), 0
        while True:
            if node == sink:
                least, where = ENDLESS, 0
                for i in range(length):
                    if room[path[i]] < least:
                        least, where = room[path[i]], i
                for i in range(length):
                    room[path[i]] -= least
                    room[path[i] ^ 1] += least
                pushed += least
                length = where  # back to the arc that is full
                node = other_end(tail, head, path[where] ^ 1)
                continue
            while at[node] < start[node + 1]:
                arc = arcs[at[node]]
                to = other_end(tail, head, arc)
                if room[arc] > 0 and distance[to] == distance[node] + 1:
                    break
                at[node] += 1
            if at[node] < start[node + 1]:
                path[length] = arcs[at[node]]
                length += 1
                node = np.int64(other_end(tail, head, arcs[at[node]]))
            elif node == source:
                break
            else:
                length -= 1
                node = np.int64(other_end(tail, head, path[length] ^ 1))
                at[node] += 1
    return pushed


@kernel
def spread_side(tail, head, start, arcs, room, at_least, node, side, out):
    """Put a node, and all that must go with it, on one side of a cut.

    An arc with room for more than ``at_least`` is not cut: what it leads to is on the side of the source with its tail,
    and its tail is on the side of the sink with what it leads to. out (nodes,) uint8   IN+OUT.
    """
    queue = np.empty(len(out), dtype=np.int32)
    queue[0] = node
    out[node] = side
    first, last = 0, 1
    while first < last:
        here = queue[first]
        first += 1
        for at in range(start[here], start[here + 1]):
            arc = arcs[at]
            to = other_end(tail, head, arc)
            uncut = room[arc] if side == SOURCE else room[arc ^ 1]
            if out[to] == UNKNOWN and uncut > at_least:
                out[to] = side
                queue[last] = to
                last += 1


__all__ = ["ENDLESS", "SINK", "SOURCE", "UNKNOWN", "fill_star", "push_flow", "spread_side"]
