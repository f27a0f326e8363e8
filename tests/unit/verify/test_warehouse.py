"""What SQL measures in a warehouse is what is measured here; DuckDB is the warehouse."""

from __future__ import annotations

from contextlib import contextmanager

import duckdb
import pyarrow as pa
import pytest
from sql_engines import decoded

from sfumato.errors import InputError, TableError
from sfumato.policy.document import Policy
from sfumato.publishing import publish
from sfumato.table import formulas
from sfumato.table.opening import open_table
from sfumato.verify import warehouse as warehouses
from sfumato.verify.measure import examine_source
from sfumato.verify.passed import count_alone_in
from sfumato.verify.table import verify_table
from sfumato.verify.warehouse import measure_by_sql


class DuckDB:
    dialect, table = "duckdb", "published_rows"

    def __init__(self, rows: pa.Table) -> None:
        self._base = duckdb.connect()
        self._base.register(self.table, decoded(rows))

    def ask(self, statement: str) -> pa.Table:
        return self._base.sql(statement).to_arrow_table()


@contextmanager
def opened(rows):
    yield DuckDB(rows)


REQUIREMENTS = {
    "k-anonymity": 2,
    "distinct-diversity": {"l": 2, "of": "disease"},
    "entropy-diversity": {"l": 1.5, "of": "disease"},
    "recursive-diversity": {"c": 2, "l": 2, "of": "disease"},
    "variance-diversity": {"at-least": 1, "of": "charge"},
    "t-closeness": {"t": 0.5, "of": "disease"},
}
ATTRIBUTES = {
    "age": {"role": "quasi-identifier", "type": "number"},
    "zip": {"role": "quasi-identifier"},
    "disease": {"role": "sensitive"},
    "charge": {"role": "sensitive", "type": "number"},
    "day": {"role": "sensitive", "type": "date", "missing-values": ["?"]},
}


def rows_of(n: int = 60) -> pa.Table:
    return pa.table(
        {
            "age": [i * 7 % 50 for i in range(n)],
            "zip": [str(i * i % 4) for i in range(n)],
            "disease": [["flu", "cold", "gout", None][i * i % 7 % 4] for i in range(n)],
            "charge": [float(i * 13 % 17) for i in range(n)],
            "day": [["2024-03-05", "2024-03-05 10:30", "?", "1999-01-01"][i % 4] for i in range(n)],
        }
    )


def measured(rows, policy):
    return examine_source(open_table(rows), policy, 1 << 30, None).measures


def same(found, expected):
    assert (found.rows, found.groups) == (expected.rows, expected.groups)
    for own, other in zip(found.requirements, expected.requirements, strict=True):
        assert own.n_failing == other.n_failing
        assert own.achieved == pytest.approx(other.achieved, rel=1e-12)
    assert found.details == expected.details
    assert found.one_value == expected.one_value
    assert found.respelled == expected.respelled


@pytest.mark.parametrize("word", REQUIREMENTS)
@pytest.mark.parametrize("values", ["labels", "bounds", "both"])
def test_a_release_is_measured_as_it_is_here(word, values):
    policy = Policy.of(
        {"attributes": ATTRIBUTES, "require": [{"k-anonymity": 3}], "output": {"values": values}}
    )
    rows = publish(rows_of(), policy, seed=1).table
    asked = Policy.of(
        {"attributes": ATTRIBUTES, "require": [{word: REQUIREMENTS[word]}], "output": {"values": values}}
    )
    same(measure_by_sql(DuckDB(rows), asked), measured(rows, asked))


def test_cells_like_formulas_are_read_without_their_mark():
    attributes = {
        "zip": {"role": "quasi-identifier"},
        "grade": {"role": "sensitive", "values": ["+a", "-1", "'=b"]},
    }
    require = [{"t-closeness": {"t": 0.5, "of": "grade", "distance": "ordered"}}]
    policy = Policy.of({"attributes": attributes, "require": require, "output": {"formulas": "escape"}})
    rows = pa.table({"zip": ["a", "a", "b", "=c"], "grade": ["+a", "-1", "'=b", "+a"]})
    same(measure_by_sql(DuckDB(formulas.escape(rows)), policy), measured(rows, policy))


def test_rows_that_are_alone_are_counted_as_they_are_here():
    policy = Policy.of({"attributes": ATTRIBUTES, "require": [], "output": {"formulas": "escape"}})
    rows = rows_of(200).set_column(2, "disease", pa.array(["=flu", "", None, "cold", "gout"] * 40))
    rows = rows.set_column(
        3, "charge", pa.array([*[0.0, -0.0, float("nan"), None], *(i % 40 for i in range(196))], pa.float64())
    )
    found = measure_by_sql(DuckDB(formulas.escape(rows)), policy, is_release=True).alone
    assert found == count_alone_in(rows, policy)
    assert 0 < found.rows < 200
    assert measure_by_sql(DuckDB(rows.select(["age", "zip"])), policy, is_release=True).alone is None


def test_too_many_spellings_are_refused_and_not_passed(monkeypatch):
    monkeypatch.setattr(warehouses, "MOST_RESPELLED", 1)
    policy = Policy.of({"attributes": ATTRIBUTES, "require": [REQUIREMENTS_OF_DISEASE]})
    rows = rows_of(4).set_column(2, "disease", pa.array(["flu", "flu ", " flu", "cold"]))
    with pytest.raises(
        InputError, match="'disease' has 2 values that may look like others, too many for SQL"
    ):
        measure_by_sql(DuckDB(rows), policy)


REQUIREMENTS_OF_DISEASE = {"distinct-diversity": REQUIREMENTS["distinct-diversity"]}


def test_an_index_of_pandas_and_a_table_without_rows_are_found():
    policy = Policy.of({"attributes": {"zip": {"role": "quasi-identifier"}}, "require": [{"k-anonymity": 1}]})
    rows = pa.table({"zip": ["a"], "__index_level_0__": [0]})
    found = verify_table(rows, policy, warehouse=opened)
    assert [check.claim for check in found.failures] == ["no index of pandas is stored"]
    with pytest.raises(TableError, match="has no rows"):
        verify_table(rows.slice(0, 0), policy, warehouse=opened)
