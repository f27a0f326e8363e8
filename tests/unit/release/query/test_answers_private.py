"""Answers from counts that carry noise: estimates, and no bounds."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sfumato import Policy, publish
from sfumato.errors import InputError
from sfumato.randomness import seeded
from sfumato.release.query.answers import Answer
from sfumato.release.release import Release

POLICY = """
attributes:
  age:  {role: quasi-identifier, type: number, bounds: [0, 99], step: 1}
  town: {role: quasi-identifier, hierarchy: {tree: {North: [a, b], South: [c, d]}}}
  seen: {role: quasi-identifier, type: date, bounds: [2020-01-01, 2020-12-31], hierarchy: {dates: [day, month]}}
  ill:  {role: other, values: ["no", "yes"]}
workload: [classify: ill]
method: {diffgen: {epsilon: 1.0e+6, cuts: {age: [40, 60], town: [a, b, c, d]}}}
"""


def people(n_rows=400):
    random = seeded(4)
    return pa.table(
        {
            "age": random.integers(0, 100, n_rows),
            "town": pa.array(
                [*np.array(["a", "b", "c", "d"])[random.integers(0, 4, n_rows - 20)], *[None] * 20]
            ),
            "seen": np.datetime64("2020-01-01") + random.integers(0, 366, n_rows),
            "ill": np.array(["no", "yes"])[random.integers(0, 2, n_rows)],
        }
    )


@pytest.fixture(scope="module", params=["counts", "expanded", "on disk"])
def release(request, tmp_path_factory):
    """So much epsilon that there is hardly any noise: answers can be compared with the table."""
    rows = "expanded" if request.param == "expanded" else "counts"
    policy = Policy.parse(POLICY + f"output: {{rows: {rows}}}\n")
    engine = "disk" if request.param == "on disk" else "memory"
    return publish(people(), policy, seed=1, engine=engine)


def test_counts_add_up_and_have_no_bounds(release):
    table = people().to_pandas()
    assert release.query("COUNT(*)") == Answer(400, None, None)
    assert release.query("COUNT(*)", "age >= 40") == Answer(int((table.age >= 40).sum()), None, None)
    both = release.query("COUNT(*)", "age >= 60 and town = 'a'")
    assert both == Answer(int(((table.age >= 60) & (table.town == "a")).sum()), None, None)


def test_missing_shares_the_box_of_the_last_value(release):
    """The cut does not part missing from the last value, d: half of that box each."""
    table = people().to_pandas()
    n_last = int((table.town == "d").sum()) + 20
    assert release.query("COUNT(*)", "town = 'd'").value == pytest.approx(n_last / 2)
    assert release.query("COUNT(*)", "town is null").value == pytest.approx(n_last / 2)
    assert release.query("COUNT(*)", "town = 'North'").value == int(table.town.isin(["a", "b"]).sum())


def test_boxes_that_a_condition_cuts_count_in_part(release):
    table = people().to_pandas()
    n_old = int((table.age >= 60).sum())
    assert release.query("COUNT(*)", "age >= 80").value == pytest.approx(n_old / 2)
    assert release.query("COUNT(*)", "seen <= '2020-01-31'").value == pytest.approx(400 * 31 / 367)


def test_sums_and_averages_are_weighted_by_counts(release):
    table = people().to_pandas()
    middle = np.select([table.age < 40, table.age < 60], [19.5, 49.5], 79.5)
    average = release.query("AVG(age) where age is not null")
    assert average.value == pytest.approx(middle.mean(), rel=0.02)  # missing takes a share of the first box
    assert (average.low, average.high) == (None, None)
    assert release.query("SUM(age) where age >= 40").value == pytest.approx(middle[table.age >= 40].sum())


@pytest.mark.parametrize("function", ["MIN", "MAX"])
def test_least_and_greatest_are_refused(release, function):
    with pytest.raises(InputError, match="of these a private release tells nothing"):
        release.query(f"{function}(age)")


def test_a_selection_returns_lines_with_their_counts(release):
    found = release.select("age >= 60 and town = 'c'")
    is_expanded = release.policy.rows == "expanded"
    n_rows = int(((people().to_pandas().age >= 60) & (people().to_pandas().town == "c")).sum())
    assert found.num_rows == (n_rows if is_expanded else 2)
    if not is_expanded:
        assert sum(found["count"].to_pylist()) == n_rows


def test_a_release_without_any_count_answers_none(tmp_path):
    policy = Policy.parse(POLICY)
    nobody = publish(people().slice(0, 0), policy, seed=1)
    assert nobody.query("COUNT(*)", "age >= 40") == Answer(0, None, None)
    assert nobody.query("AVG(age)", "age >= 40") == Answer(None, None, None)
    assert nobody.query("SUM(age)") == Answer(0.0, None, None)


def test_a_release_read_from_its_folder_answers_alike(tmp_path):
    made = publish(people(), Policy.parse(POLICY), seed=1)
    made.write(tmp_path / "release")
    read = Release.read(tmp_path / "release")
    for where in ("age >= 50", "town = 'd'", "seen between '2020-03-01' and '2020-04-30'"):
        assert read.query("COUNT(*)", where) == made.query("COUNT(*)", where)
