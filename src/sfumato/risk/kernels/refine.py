"""Groups of rows that are divided by one more column, and which of the rows that are then alone are new."""

from __future__ import annotations

from sfumato.kernels.late import Late


@Late
def refine_groups(rows, ends, codes, owner, count, place, first, out_rows, out_ends, alone, n_out):
    """Divide each group by a column.

    A row is alone where no other person has its code in its group; it is left out of the groups. What is written are
    the beginnings of three arrays, which have room for all rows.

    rows      (n,) row numbers, group by group                int32  IN
    ends      (groups,) where each group ends in ``rows``     int64  IN
    codes     (all rows,) of the column                       int32  IN
    owner     (all rows,) whose each row is                   int32  IN
    count     (codes,) zeros                                  int64  IN, zeros again afterwards
    place     (codes,) room to work                           int64  OUT
    first     (codes,) room to work                           int32  OUT
    out_rows  (n,) row numbers of the new groups              int32  OUT
    out_ends  (n,) where each new group ends                  int64  OUT
    alone     (n,) row numbers                                int32  OUT
    n_out     (3,) rows and groups that are left, rows alone  int64  OUT
    """
    n_rows = n_groups = n_alone = start = 0
    for group in range(ends.shape[0]):
        end = ends[group]
        for i in range(start, end):
            code = codes[rows[i]]
            if count[code] == 0:
                first[code] = owner[rows[i]]
                place[code] = -1  # as long as it is one person's
            elif first[code] != owner[rows[i]]:
                place[code] = 0
            count[code] += 1
        for i in range(start, end):
            row = rows[i]
            code = codes[row]
            if place[code] < 0:
                alone[n_alone] = row
                n_alone += 1
                continue
            if count[code] > 0:  # the first row of a new group
                place[code] = n_rows
                n_rows += count[code]
                out_ends[n_groups] = n_rows
                n_groups += 1
                count[code] = 0
            out_rows[place[code]] = row
            place[code] += 1
        for i in range(start, end):
            count[codes[rows[i]]] = 0
        start = end
    n_out[0], n_out[1], n_out[2] = n_rows, n_groups, n_alone


@Late
def add_minimal(alone, columns, last, before, row_of, columns_of, n_found):
    """Note the rows that are alone by a set of columns, and by no part of it.

    All parts of the set must have been looked at before.

    alone       (n,) row numbers                                        int32  IN
    columns     the set, a bit for each column                          int64  IN
    last        (all rows,) the last that was noted of a row, or -1     int64  IN+OUT
    before      (room,) of each that is noted, the one before it        int64  IN+OUT
    row_of      (room,) its row                                         int32  IN+OUT
    columns_of  (room,) its set of columns                              int64  IN+OUT
    n_found     (1,) how many are noted                                 int64  IN+OUT
    """
    at = n_found[0]
    for row in alone:
        other = last[row]
        while other >= 0 and columns_of[other] & columns != columns_of[other]:
            other = before[other]
        if other < 0:
            before[at] = last[row]
            row_of[at] = row
            columns_of[at] = columns
            last[row] = at
            at += 1
    n_found[0] = at
