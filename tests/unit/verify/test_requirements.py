"""The definitions of ``verify``, where they are not seen through whole tables."""

from __future__ import annotations

import pyarrow as pa

from sfumato.policy.document import Policy
from sfumato.verify.requirements import count_whole_columns

POLICY = """
attributes: {zip: {role: quasi-identifier}, pay: {role: sensitive, type: number}}
require: [t-closeness: {t: 0.2, of: pay}]
"""


def counts(*pieces: list[str | None]) -> dict[float | None, int]:
    """How many rows have each value, of a column in pieces of text."""
    columns = [pa.chunked_array([pa.array(own, pa.string())]) for own in pieces]
    whole = count_whole_columns(Policy.parse(POLICY), lambda _: columns)["pay"]
    assert whole.n_rows == sum(map(len, pieces))
    return dict(zip(whole.values.to_pylist(), whole.count.tolist(), strict=True))


def test_values_are_counted_over_all_pieces_of_a_column():
    assert counts(["1", "2", "1"], ["2", "", "3"], ["1.0"]) == {1: 3, 2: 2, 3: 1, None: 1}


def test_whole_numbers_of_one_piece_are_those_of_another_with_fractions():
    assert counts(["1", "2"], ["2.5", "1"], ["-0.0", "0"], ["2"]) == {1: 2, 2: 2, 2.5: 1, 0: 2}


def test_a_column_without_any_value_has_missing_ones_alone():
    assert counts(["", None], [""]) == {None: 3}
