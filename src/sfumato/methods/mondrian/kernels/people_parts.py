"""Parts of a split by loss, where the number of people is all that is required of them."""

from __future__ import annotations

import numpy as np

from sfumato.kernels.compile import inner
from sfumato.methods.mondrian.kernels.frequency import child_of, first_reaching
from sfumato.methods.mondrian.kernels.people import is_first, new_token, people_within

FEW_CHILDREN = 8
"""Children whose people are counted in a pass each; of more, rows are sorted by child first."""


@inner(borrows=True)
def are_few_to_look_at(top, m, grid, people, scratch):
    """Do the rows alone tell of all children of ``top`` but a few whether they have enough people?"""
    if people is None:
        return False
    code, rows_to, parent = scratch.code, scratch.total[0], grid.node[top]
    n, i = np.int64(0), np.int64(0)
    while i < m:
        child = grid.node[grid.child[parent.child_start + child_of(parent, grid, code[i])]]
        j = i + first_reaching(code[i:m], child.high)
        rows = rows_to[j - 1] - (rows_to[i - 1] if i > 0 else 0)
        n += people.least <= rows < people.enough
        i = j
    return n <= FEW_CHILDREN


@inner(borrows=True)
def fill_stands_of_people(part, axis, top, m, grid, people, scratch):
    """``fill_stands`` of a few children, without sorting the rows.

    scratch.is_fine[0, :m]   OUT  is each code in the rest?
    """
    if people is None:
        return True
    code, rows_to, parent = scratch.code, scratch.total[0], grid.node[top]
    stands, in_rest = scratch.listed_splits.stands, scratch.is_fine[0]
    n_left, i = np.int64(0), np.int64(0)
    while i < m:
        which = child_of(parent, grid, code[i])
        child = grid.node[grid.child[parent.child_start + which]]
        j = i + first_reaching(code[i:m], child.high)
        rows = rows_to[j - 1] - (rows_to[i - 1] if i > 0 else 0)
        stands[which] = rows >= people.enough or (
            rows >= people.least
            and people_within(part, axis, child.low, child.high, True, people, scratch.stamps)
        )
        for t in range(i, j):
            in_rest[t] = not stands[which]
        n_left += 0 if stands[which] else rows
        i = j
    if n_left == 0 or n_left >= people.enough:
        return True
    token, n = new_token(people, scratch.stamps), np.int64(0)
    for i in range(part.shape[0] if n_left >= people.least else 0):
        if in_rest[first_reaching(code[:m], np.int64(part[i, axis]))] and is_first(
            part[i, people.column], token, people, scratch.stamps
        ):
            n += 1
            if n >= people.least:
                return True
    return False
