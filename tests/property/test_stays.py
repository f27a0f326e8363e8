"""The demo's stays of patients under random policies: each group holds by its patients, as an own judge counts."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from stays_policies import NUMBER, PERSON, holds, judge, random_policy

import sfumato as sf
from sfumato.errors import PromiseError
from sfumato.examples.demo import STAYS_POLICY, stays


def table_of(number: int) -> pa.Table:
    """Stays with their row numbers."""
    drawn = stays(random.Random(number).choice([30, 60, 120, 200]), seed=number)
    return drawn.append_column(NUMBER, pa.array(range(drawn.num_rows)))


@pytest.mark.parametrize("start", range(0, 500, 50))
def test_no_group_of_500_random_tables_and_policies_has_too_few_patients(start):
    n_groups, n_published = 0, 0
    for number in range(start, start + 50):
        engine = ("memory", "disk")[number % 2]
        table, policy = table_of(number), random_policy(number)
        rows = table.to_pylist()
        options = policy["method"]["mondrian"]
        if engine == "disk" and options:  # a list is made of all rows at once
            options["rows-in-memory"] = random.Random(number).choice([5, 20, 1000])
        if not holds(rows, policy["require"], rows):
            with pytest.raises(PromiseError):
                sf.publish(table, policy, engine=engine)
            continue
        release = sf.publish(table, policy, engine=engine, memory=1 << 26 if engine == "disk" else None)
        n_groups += judge(release.table.to_pylist(), rows, policy)
        n_published += 1
        assert release.certificate.claims.people == len({row[PERSON] for row in rows})
    assert n_published > 40
    assert n_groups > 4 * n_published


def test_the_stays_of_the_demo_have_enough_patients_in_each_group():
    drawn = stays()
    table = drawn.append_column(NUMBER, pa.array(range(drawn.num_rows)))
    policy = sf.Policy.parse(STAYS_POLICY).as_dict()
    policy["attributes"][NUMBER] = {"role": "other", "type": "number", "passes": "unique"}
    published = sf.publish(table, policy).table.to_pylist()
    assert judge(published, table.to_pylist(), policy) > 200


def test_the_judge_finds_groups_that_have_enough_rows_and_too_few_patients():
    """As they were published before groups counted people."""
    drawn = stays()
    table = drawn.append_column(NUMBER, pa.array(range(drawn.num_rows)))
    policy = sf.Policy.parse(STAYS_POLICY).as_dict()
    policy["attributes"][NUMBER] = {"role": "other", "type": "number", "passes": "unique"}
    published = sf.publish(table, {**policy, "unit": "row"}).table.to_pylist()
    with pytest.raises(AssertionError):
        judge(published, table.to_pylist(), policy)
