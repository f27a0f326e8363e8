"""Cells that come along with codes, and conditions that are counted: the same whoever sees which batch when."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from merging import gather_in_parts, ways_to_gather

from sfumato.encoding.batches import FileBatch
from sfumato.encoding.encoders import TreeEncoder
from sfumato.engines import payload
from sfumato.engines.payload import Payload
from sfumato.engines.scan import ConditionCounts
from sfumato.policy.document import Policy
from sfumato.table import distinct
from sfumato.table.opening import open_table

POLICY = Policy.parse("""
attributes:
  age: {role: quasi-identifier, type: number}
  job: {role: quasi-identifier}
  few: {role: other}
  many: {role: sensitive}
  wage: {role: other, type: number}
  flag: {role: other}
require: []
workload: [aggregate: [range, mean], select: "age >= 3", select: "job in ('a', 'b') and age < 2"]
""")


@st.composite
def tables(draw: Any) -> pa.Table:
    n = draw(st.integers(1, 30))

    def column(cells: st.SearchStrategy[Any], kind: pa.DataType) -> pa.Array:
        return pa.array(draw(st.lists(st.one_of(st.none(), cells), min_size=n, max_size=n)), kind)

    texts = column(st.sampled_from(["x", "yy", "", "\u00e9"]), pa.string())
    return pa.table(
        {
            "age": column(st.integers(0, 5), pa.int64()),
            "job": column(st.sampled_from(["a", "b", "c"]), pa.string()),
            "few": texts.dictionary_encode() if draw(st.booleans()) else texts,
            "many": column(st.text("abc", min_size=1, max_size=6), pa.string()),
            "wage": column(st.one_of(st.integers(0, 9).map(str), st.just("2.5")), pa.string()),
            "flag": column(st.booleans(), pa.bool_()),
        }
    )


def batch_of(table: pa.Table, start: int, end: int) -> FileBatch:
    batch = table.slice(start, end - start).combine_chunks().to_batches()[0]
    return FileBatch(batch, POLICY.schema, first_row=start)


@given(tables(), st.data(), st.integers(0, 9))
@settings(max_examples=100, deadline=None)
def test_the_payload_is_the_same_in_any_blocks_and_order_and_by_any_merges(table, data, few):
    source, n = open_table(table), table.num_rows

    def add(state: Payload, start: int, end: int) -> None:
        state.observe(batch_of(table, start, end))

    def facts_of(state: Payload) -> Any:
        state.finish()
        taken = state.take_from(batch_of(table, 0, n))
        return (
            state.kinds, state.n_bytes(n), state.decoded_bytes(n), taken.schema, taken.to_pydict(),
            [column.dictionary.to_pylist() for column in taken.columns if isinstance(column, pa.DictionaryArray)],
        )  # fmt: skip

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distinct, "FEW", few)
        patch.setattr(payload, "MOST_TEXT", 700)  # six or seven texts
        whole = Payload(source, POLICY)
        add(whole, 0, n)
        expected = facts_of(whole)
        found = gather_in_parts(data.draw(ways_to_gather(n)), lambda: Payload(source, POLICY), add)
        assert facts_of(found) == expected
    event(f"{len(expected[-1])} dictionaries")


@given(tables(), st.data())
@settings(max_examples=50, deadline=None)
def test_conditions_are_counted_alike_in_any_blocks_and_order_and_by_any_merges(table, data):
    job = TreeEncoder(POLICY.schema["job"])
    job.observe(table.column("job"), 0)
    job.finish()
    found = gather_in_parts(
        data.draw(ways_to_gather(table.num_rows)),
        lambda: ConditionCounts(POLICY, [job]),
        lambda state, start, end: state.add(batch_of(table, start, end)),
    )
    rows = [(row["age"], row["job"]) for row in table.to_pylist()]
    true = [
        sum(age is not None and age >= 3 for age, _ in rows),
        sum(age is not None and age < 2 and job in ("a", "b") for age, job in rows),
    ]
    assert found.counts == true
