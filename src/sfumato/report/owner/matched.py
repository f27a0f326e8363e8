"""Which rows of the raw table a release holds, found by recoding them all and comparing with what is published."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError, did_you_mean, number_of, short
from sfumato.methods.lost.reasons import GroupedRows
from sfumato.policy.output import Form
from sfumato.recoding.recoder import Recoder
from sfumato.release.release import Release
from sfumato.table.combinations import number_combinations, number_texts
from sfumato.table.source import Source
from sfumato.table.stored import FiledRows

Ints = NDArray[np.int64]


def check_table(release: Release, source: Source) -> None:
    """Raise unless the table has the columns that the release publishes, and as many rows as it must have."""
    lacking = [each.name for each in release.policy.schema.published if each.name not in source.names]
    if lacking:
        raise InputError(
            f"The table has no column {short(lacking[0])}, which the release publishes; is it the table that the release "
            f"was made from?{did_you_mean(lacking[0], source.names)}"
        )
    claims, form = release.certificate.claims, release.policy.method.form
    if form is Form.SAMPLE:
        raise InputError(
            "The rows of this release were drawn at random, from boxes that many rows share; they cannot be laid beside "
            "the table."
        )
    expected = claims.rows + release.n_left_out
    if form is not Form.COUNTS and source.n_rows != expected:
        raise InputError(
            f"The table has {number_of(source.n_rows, 'row')}, and the release was made from {expected:,}; "
            "is it the table that it was made from?"
        )


def group_published(release: Release, source: Source) -> GroupedRows:
    """The rows of the table that are published, in their groups; of rows that are recoded alike the first ones are."""
    if not isinstance(release.recoding, Recoder):
        raise InputError(
            "The release has no recoding, so what became of the rows of the table cannot be told."
        )
    ends = release.recoding.box_ends(source)
    recoded = release.recoding.columns_of(ends)
    names = sorted(recoded)
    rows = release.rows
    published = rows.load(names) if isinstance(rows, FiledRows) else rows.select(names)
    n = source.n_rows
    codes = [number_texts(recoded[name], published.column(name)) for name in names]
    both = number_combinations(codes, in_order=False)
    key, other = both.number[:n], both.number[n:]
    room = np.bincount(other, minlength=both.n)
    if (np.bincount(key, minlength=both.n) < room).any():
        raise InputError(
            "Recoded, the rows of the table are not those of the release; is it the table that it was made from?"
        )
    order = np.argsort(key, kind="stable")
    in_order = key[order]
    rank = np.arange(n) - np.searchsorted(in_order, in_order)
    found = np.sort(order[rank < room[in_order]])
    return GroupedRows.of_rows(release.recoding.axes, ends.take(found), found, n)
