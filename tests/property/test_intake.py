"""Whatever the batches, domains, codes and what the kernels are told are the same; a table in memory is one batch."""

from __future__ import annotations

import gzip
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from blocks import read_by
from growing import AS_PUBLISHED, Prepared, UncheckedPolicy, prepare_by
from hypothesis import event, example, given, settings
from hypothesis import strategies as st
from mondrian_cases import FEATURE_WORKLOADS, WORKLOADS, Case, big_case, reachable_cases

from sfumato.encoding.domain import OrderedDomain
from sfumato.engines.scan import Intake
from sfumato.errors import SfumatoError
from sfumato.methods.mondrian.problem import Problem, problem_of
from sfumato.policy import predicate
from sfumato.policy.options.mondrian import MondrianOptions
from sfumato.policy.requirements import EntropyDiversity, KAnonymity, RecursiveDiversity, VarianceDiversity
from sfumato.policy.schema import Attribute, Kind, Role, Schema
from sfumato.policy.workload import Classify, Regress, Select
from sfumato.release.query import select
from sfumato.table.opening import open_table
from sfumato.table.source import Source
from sfumato.table.spill import Spill

SALARY_FEATURES = st.sampled_from([["salary"], ["salary", "colour"], ["height", "salary"]])
FORMATS = ("frame", "parquet", "csv", "csv.gz", "arrow", "parts")


@dataclass
class Taken:
    """What an intake gives."""

    problem: Problem
    rows: Any
    payload: list[Any]
    intake: Intake


@contextmanager
def written(table: pa.Table, form: str, *, rows: int = 1000):
    """The table in a file, opened without being read, and opened as it is in memory."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"t.{form}"
        if form == "frame":
            yield open_table(table), open_table(table)
            return
        if form == "parquet":
            pq.write_table(table, path, row_group_size=rows)
        elif form == "parts":
            path.mkdir()
            for i, start in enumerate(range(0, table.num_rows, max(rows, table.num_rows // 3 + 1))):
                part = table.slice(start, max(rows, table.num_rows // 3 + 1))
                pq.write_table(part, path / f"{i}.parquet", row_group_size=rows)
        elif form == "arrow":
            with pa.ipc.new_file(path, table.schema) as file:
                file.write_table(table, max_chunksize=rows)
        else:
            data = pa.BufferOutputStream()
            pacsv.write_csv(table, data)
            content = data.getvalue().to_pybytes()
            path.write_bytes(gzip.compress(content) if form.endswith("gz") else content)
        yield open_table(path, lazy=True), open_table(path)


def taken(source: Source, policy: Any, *, rows: int = 1000, memory: int = 1 << 24, **scan: Any) -> Taken:
    with pytest.MonkeyPatch.context() as patch, Spill() as spill:
        read_by(patch, rows)
        found = Intake.in_batches(source, policy, spill=spill, memory=memory)
        found.scan(**scan)
        problem = problem_of(found, found.axes(policy.method.split_only), policy, policy.method)
        blocks = list(found.blocks())
        matrix = np.concatenate([block.rows for block in blocks])
        assert all(len(block.rows) <= rows for block in blocks)
        return Taken(problem, matrix, [block.payload for block in blocks], found)


def asked(
    schema: Schema, requirements: Any = (), workload: Any = (), options: MondrianOptions | None = None
) -> Any:
    """A policy for these columns, without its checks."""
    return UncheckedPolicy(schema, tuple(requirements), tuple(workload), options or AS_PUBLISHED)


def policy_of(case: Case) -> Any:
    return asked(case.schema(), case.requirements, case.workload, case.options)


def in_memory(source: Source, policy: Any) -> Prepared:
    return prepare_by(policy, source, threads=1)


def assert_same(found: Taken, expected: Prepared) -> None:
    for one, other in zip(found.problem.domains, expected.domains, strict=True):
        assert type(one) is type(other)
        assert one.attribute == other.attribute
        assert (one.has_missing, one.n_codes) == (other.has_missing, other.n_codes)
        if isinstance(one, OrderedDomain):
            assert (one.low, one.high, one.grid, one.origin) == (
                other.low,
                other.high,
                other.grid,
                other.origin,
            )
            assert (one.values is None) == (other.values is None)
            if one.values is not None:
                assert one.values.tobytes() == other.values.tobytes()
        else:
            assert one.hierarchy == other.hierarchy
    for name in expected.axes._fields:
        array, wanted = getattr(found.problem.axes, name), getattr(expected.axes, name)
        assert np.array_equal(array, wanted), name
        assert array.dtype == wanted.dtype
        assert array.flags.writeable, "another signature of every kernel"
    assert_same_fields(found.problem.targets, expected.targets)
    assert_same_fields(found.problem.rules, expected.rules)
    assert (found.problem.cells is None) == (expected.cells is None)
    if expected.cells is not None:
        assert_same_fields(found.problem.cells, expected.cells)
    assert (found.problem.queries is None) == (expected.queries is None)
    if expected.queries is not None:
        assert_same_fields(found.problem.queries, expected.queries)
    assert found.intake.n_columns == expected.engine.rows.shape[1] - 1
    rows = expected.engine.rows[:, :-1]
    assert np.array_equal(found.rows, rows)
    greatest = found.rows.max(axis=0)
    assert all(code <= bound for code, bound in zip(greatest, found.intake.greatest, strict=True))


def assert_same_fields(one: Any, other: Any) -> None:
    assert (one is None) == (other is None)
    for name, mine, theirs in zip(getattr(other, "_fields", ()), one or (), other or (), strict=True):
        if hasattr(theirs, "_fields"):
            assert_same_fields(mine, theirs)
        else:
            assert np.array_equal(mine, theirs), (name, mine, theirs)


# ---- random tables ---------------------------------------------------------------------------------


@given(
    reachable_cases(workloads=st.one_of(WORKLOADS, FEATURE_WORKLOADS)),
    st.sampled_from(FORMATS),
    st.integers(1, 9),
    st.integers(1, 9),
)
@settings(max_examples=80, deadline=None)
def test_a_table_in_batches_is_encoded_as_one_in_memory(case: Case, form: str, group: int, rows: int):
    policy = policy_of(case)
    event(form)
    with written(case.table(), form, rows=group) as (lazy, whole):
        assert_same(taken(lazy, policy, rows=rows), in_memory(whole, policy))


@given(
    reachable_cases(
        workloads=st.lists(
            st.one_of(
                st.builds(Classify, st.just("class"), features=SALARY_FEATURES),
                st.builds(Regress, st.just("hours"), features=SALARY_FEATURES),
                st.just(Classify("salary")),
                st.just(Regress("salary")),
            ),
            min_size=1,
            max_size=3,
        )
    ),
    st.lists(
        st.sampled_from(
            [
                EntropyDiversity(1.0, of="salary"),
                RecursiveDiversity(3.0, 1, of="salary"),
                VarianceDiversity(0.0, of="salary"),
            ]
        ),
        min_size=1,
    ),
    st.integers(1, 9),
)
@settings(max_examples=60, deadline=None)
def test_a_number_may_be_sensitive_a_feature_and_a_target_at_once(case: Case, promised: Any, rows: int):
    policy = policy_of(case.asking([*case.requirements, *promised]))
    with written(case.table(), "frame") as (lazy, whole):
        assert_same(taken(lazy, policy, rows=rows), in_memory(whole, policy))


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    "workload",
    [
        [Classify(["class", "job"], joint=True), Regress("hours")],
        [Classify("disease", features=["colour", "height", "since"]), Regress("hours", features=["height"])],
        [Select("q0 between 20 and 90 or q2 = 'a'"), Select("q3 > 1000"), Select("q1 >= '2021-01-01'")],
    ],
)
def test_larger_tables_too(workload, form):
    case = big_case(
        3, workload, [KAnonymity(3), EntropyDiversity(2, of="disease"), VarianceDiversity(10, of="salary")]
    )
    policy = policy_of(case)
    with written(case.table(), form, rows=70) as (lazy, whole):
        found = taken(lazy, policy, rows=33)
        assert_same(found, in_memory(whole, policy))
        conditions = [predicate.parse(task.where, policy.schema) for task in policy.selections]
        true = [int(select.matches(each, whole, policy.schema).sum()) for each in conditions]
        assert found.intake.true_counts == true


# ---- one column ------------------------------------------------------------------------------------

WHOLE = st.one_of(
    st.integers(-5, 5), st.integers(-1000, 1000), st.integers(-(10**12), 10**12), st.integers(0, 2**33)
)
CELLS = {
    "whole": WHOLE,
    "float": st.one_of(WHOLE.map(float), st.floats(-1e9, 1e9), st.sampled_from([0.0, -0.0, 0.5, 2.0**40])),
    "decimal": st.integers(-(10**5), 10**5).map(lambda x: x / 100),
    "huge": st.one_of(st.integers(-(2**62), 2**62).map(float), st.floats(-1e150, 1e150)),
    "day": st.integers(-(10**4), 10**4).map(lambda n: date(1970, 1, 1) + timedelta(n)),
}
TYPES = {"whole": pa.int64(), "day": pa.date32()}


@st.composite
def columns(draw: Any, *words: str) -> tuple[str, pa.Array]:
    word = draw(st.sampled_from(words))
    cells = draw(st.lists(st.one_of(CELLS[word], st.none()), min_size=1, max_size=40))
    if draw(st.booleans()):
        cells = [cell for cell in cells if cell is not None] or [None]
    return word, pa.array(cells, TYPES.get(word, pa.float64()))


def schema_of(**given: Any) -> Schema:
    return Schema.of(x={"role": "quasi-identifier", **given}, y="other")


HIERARCHIES = st.sampled_from([None, "flat", {"intervals": [5, 50]}, {"intervals": [0.5]}, {"balanced": 2}])


@given(columns("whole", "float", "decimal"), HIERARCHIES, st.integers(1, 7), st.sampled_from(FORMATS))
@settings(max_examples=100, deadline=None)
def test_numbers_with_and_without_hierarchies(column, hierarchy, rows, form):
    word, cells = column
    if hierarchy and word != "decimal":
        cells = pa.array(
            [None if x is None else min(max(x, -300), 300) for x in cells.to_pylist()], cells.type
        )
    policy = asked(schema_of(kind="number", hierarchy=hierarchy), ())
    same_or_same_fault(pa.table({"x": cells, "y": ["a"] * len(cells)}), policy, form, rows)


@given(columns("day"), st.sampled_from([None, "flat", {"dates": ["month", "year"]}]), st.integers(1, 7))
@settings(max_examples=60, deadline=None)
def test_dates_with_and_without_hierarchies(column, hierarchy, rows):
    policy = asked(schema_of(kind="date", hierarchy=hierarchy), ())
    same_or_same_fault(pa.table({"x": column[1], "y": ["a"] * len(column[1])}), policy, "frame", rows)


@given(
    columns("whole", "float", "decimal"),
    st.sampled_from([(None, 2), ((-50, 50), None), ((0, 1000), 5), ((0.5, 99.5), None), ((0, 10), 0.1)]),
    st.integers(1, 7),
)
@settings(max_examples=100, deadline=None)
def test_declared_bounds_and_steps(column, declared, rows):
    bounds, step = declared
    policy = asked(schema_of(kind="number", bounds=bounds, step=step), ())
    same_or_same_fault(pa.table({"x": column[1], "y": ["a"] * len(column[1])}), policy, "frame", rows)


@given(columns("whole", "float", "decimal", "huge"), st.integers(1, 7), st.sampled_from([0.0, 0.1, 5.0]))
@example(("float", pa.array([2.0**60, 1.0, None, 0.5])), 1, 0.0)
@example(("whole", pa.array([2**33, 0, None])), 1, 0.0)
@example(("huge", pa.array([2.0**62, -(2.0**62)])), 1, 0.0)
@settings(max_examples=100, deadline=None)
def test_numbers_to_be_predicted_and_to_be_diverse(column, rows, at_least):
    _, cells = column
    schema = Schema.of(
        x={"role": "quasi-identifier", "kind": "number"},
        t={"role": "other", "kind": "number"},
        s={"role": "sensitive", "kind": "number"},
    )
    table = pa.table({"x": [1] * len(cells), "t": cells, "s": cells})
    policy = asked(schema, (VarianceDiversity(at_least, of="s"),), (Regress("t"), Regress("s", weight=2)))
    same_or_same_fault(table, policy, "frame", rows)
    same_or_same_fault(table, asked(schema, (), (Regress("t"),)), "frame", rows)


LABELS = st.one_of(
    st.lists(
        st.one_of(st.none(), st.sampled_from(["a", "b", " a", "é", "e\u0301", "", "?"])), min_size=1
    ).map(lambda cells: pa.array(cells, pa.string())),
    st.lists(st.one_of(st.none(), st.sampled_from([1.0, 2.0, 2.5, float("nan")])), min_size=1).map(
        lambda cells: pa.array(cells, pa.float64())
    ),
    st.lists(st.one_of(st.none(), st.integers(0, 3)), min_size=1).map(
        lambda cells: pa.array(cells, pa.int8())
    ),
    st.lists(st.booleans(), min_size=1).map(pa.array),
)


@given(LABELS, st.integers(1, 7), st.sampled_from(["category", "number"]))
@settings(max_examples=150, deadline=None)
def test_labels_and_categories_however_they_are_stored(cells, rows, kind):
    """What a cell is called may depend on the others: 2.0 is 2 unless there is a 2.5."""
    schema = Schema(
        (
            Attribute("x", Role.QUASI_IDENTIFIER, Kind.CATEGORY, missing_values=("?",)),
            Attribute("s", Role.SENSITIVE, Kind(kind), missing_values=("?",)),
            Attribute("o", Role.OTHER, Kind.CATEGORY),
        )
    )
    table = pa.table({"x": cells, "s": cells, "o": cells})
    policy = asked(
        schema, (EntropyDiversity(1, of="s"),), (Classify(["s", "o"]), Select("x = '2' or x = 'a'"))
    )
    same_or_same_fault(table, policy, "frame", rows)


def same_or_same_fault(table: pa.Table, policy: Any, form: str, rows: int) -> None:
    with written(table, form, rows=rows) as (lazy, whole):
        fault, expected = None, None
        try:
            expected = in_memory(whole, policy)
        except SfumatoError as error:
            fault = error
        if fault is not None or expected is None:
            event("refused")
            assert fault is not None
            with pytest.raises(type(fault)) as caught:
                taken(lazy, policy, rows=rows)
            assert str(caught.value) == str(fault)
            return
        found = taken(lazy, policy, rows=rows)
        assert_same(found, expected)
        for task, count in zip(policy.selections, found.intake.true_counts, strict=True):
            condition = predicate.parse(task.where, policy.schema)
            assert count == select.matches(condition, whole, policy.schema).sum()
