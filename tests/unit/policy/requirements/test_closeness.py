"""t-closeness: the paper's examples, three distances, monotonicity, releases and what tampering does to them."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import naive_mondrian as naive
import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from growing import prepare
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from tampering import rehash

import sfumato as sf
from sfumato.errors import HierarchyError, PolicyError
from sfumato.kernels.compile import kernel
from sfumato.methods.mondrian.kernels.rules import TWO, part_holds
from sfumato.methods.mondrian.memory import new_scratch
from sfumato.policy.requirements import GroupStats, TCloseness
from sfumato.policy.schema import Attribute, Schema
from sfumato.table.opening import open_table
from sfumato.verify.folder import verify_folder
from sfumato.verify.measure import measure

SALARY = Attribute("salary", "sensitive", type="number")
DISEASES = {
    "*": {
        "respiratory": ["flu", "pneumonia", "bronchitis"],
        "digestive": {"stomach": ["ulcer", "gastritis"], "colon": ["colitis", "cancer"]},
    }
}
DISEASE = Attribute("disease", "sensitive", hierarchy={"tree": DISEASES})
LEAVES = ["flu", "pneumonia", "bronchitis", "ulcer", "gastritis", "colitis", "cancer"]


def distance_of(kind, attribute, table, *groups):
    """The distance of groups of values from a table of them."""
    values = sorted(set(table) - {None}) + [None] * (None in table)
    asked = TCloseness(0.5, of=attribute.name, distance=kind)
    count = Counter(table)
    reference = asked.reference(attribute, {value: count[value] for value in values})
    counts = np.array([[list(group).count(value) for value in values] for group in groups])
    return asked.measure(GroupStats(counts.sum(axis=1), values=counts, reference=reference)).tolist()


def test_salaries_of_the_paper_have_its_distances():
    table = range(3, 12)
    assert distance_of("ordered", SALARY, table, [3, 4, 5], [6, 8, 11]) == pytest.approx([0.375, 1 / 6])
    assert distance_of("equal", SALARY, table, [3, 4, 5], [6, 8, 11]) == pytest.approx([2 / 3, 2 / 3])


def test_a_hierarchy_makes_diseases_of_one_kind_less_far_apart():
    # one level up is 1/3 of the way, two are 2/3; the halves of respiratory and digestive are 3/7 and 4/7
    table = LEAVES
    near, far = distance_of("hierarchical", DISEASE, table, ["flu", "ulcer"], ["ulcer", "gastritis"])
    assert near < far < distance_of("equal", DISEASE, table, ["ulcer", "gastritis"])[0]
    # 3/7 of the rows cross the root (1), 2/7 cross digestive (2/3): 3/7 + 4/21 of the way
    assert far == pytest.approx(3 / 7 + 2 / 3 * 2 / 7)


def test_a_missing_value_is_one_more_and_stands_last():
    assert distance_of("equal", SALARY, [1, 2, None, None], [None], [1, 2, None, None]) == [0.5, 0.0]
    assert distance_of("ordered", SALARY, [1, 2, None], [1]) == pytest.approx([0.5])
    assert distance_of("hierarchical", DISEASE, ["flu", None], ["flu"]) == pytest.approx([0.5])


def test_values_are_ordered_as_they_are_declared():
    pain = Attribute("pain", "sensitive", values=("none", "some", "much"))
    assert distance_of("ordered", pain, ["none", "some", "much"], ["none"], ["some"]) == pytest.approx(
        [0.5, 1 / 3]
    )


COUNTS = st.lists(st.integers(0, 9), min_size=7, max_size=7).filter(any)


@given(st.sampled_from(["equal", "ordered", "hierarchical"]), COUNTS, COUNTS, COUNTS)
def test_t_closeness_is_monotone(kind, one, other, rest):
    table = np.add(np.add(one, other), rest)
    asked = TCloseness(0.5, of="disease", distance=kind)
    values = sorted(LEAVES)
    reference = asked.reference(DISEASE, dict(zip(values, table.tolist(), strict=True)))
    counts = np.array([one, other, np.add(one, other)])
    first, second, union = asked.measure(GroupStats(counts.sum(axis=1), values=counts, reference=reference))
    assert union <= max(first, second) + 1e-12


@pytest.mark.parametrize("t", [-0.1, 1.1, True, "0.2", float("nan")])
def test_t_is_a_number_from_0_to_1(t):
    with pytest.raises(PolicyError, match="t-closeness t: must be a number from 0 to 1"):
        TCloseness(t, of="d")


@pytest.mark.parametrize(
    ("column", "asked", "sentence"),
    [
        ({"role": "sensitive"}, "ordered", "has no order"),
        ({"role": "sensitive"}, "hierarchical", "no category with a hierarchy"),
        ({"role": "sensitive", "type": "number"}, "hierarchical", "no category with a hierarchy"),
        ({"role": "other"}, "equal", "role sensitive"),
        ({"role": "sensitive"}, "far", "'far' is not one of equal, ordered, hierarchical"),
    ],
)
def test_what_a_distance_needs_of_its_column_is_said(column, asked, sentence):
    with pytest.raises(PolicyError, match=sentence):
        policy_of(column, {"t": 0.2, "of": "s", "distance": asked})


def policy_of(column, asked, **more):
    attributes = {"x": {"role": "quasi-identifier", "type": "number"}, "s": column}
    return sf.Policy.of({"attributes": attributes, "require": [{"t-closeness": asked}], **more})


COLUMNS = {
    "equal": {"role": "sensitive"},
    "ordered": {"role": "sensitive", "type": "number"},
    "hierarchical": {"role": "sensitive", "hierarchy": {"tree": DISEASES}},
}


def people(kind, n=300, seed=3):
    random = np.random.default_rng(seed)
    x = random.integers(0, 60, n)
    drawn = np.clip(random.normal(x / 12, 2), 0, 6).astype(int)
    return pa.table({"x": x, "s": drawn if kind == "ordered" else [LEAVES[i] for i in drawn]})


@pytest.mark.parametrize("kind", COLUMNS)
def test_a_release_keeps_every_group_close_and_verify_agrees(kind, tmp_path):
    table = people(kind)
    policy = policy_of(COLUMNS[kind], {"t": 0.3, "of": "s", "distance": kind})
    release = sf.publish(table, policy, seed=1)
    release.write(tmp_path / "out")
    assert sf.verify_folder(tmp_path / "out").ok
    [claim] = release.certificate.claims.requirements
    assert release.certificate.claims.groups > 1
    assert 0 < claim.achieved <= 0.3
    tighter = policy_of(COLUMNS[kind], {"t": claim.achieved - 1e-6, "of": "s", "distance": kind})
    assert not measure(release.table, tighter).requirements[0].holds


@pytest.mark.parametrize("kind", COLUMNS)
def test_a_table_on_disk_gives_the_groups_of_memory(kind, tmp_path):
    pa_csv.write_csv(people(kind, n=3000), tmp_path / "people.csv")
    policy = policy_of(
        COLUMNS[kind], {"t": 0.3, "of": "s", "distance": kind}, method={"mondrian": {"rows-in-memory": 300}}
    )
    found = []
    for engine in ("memory", "disk"):
        release = sf.publish(tmp_path / "people.csv", policy, engine=engine, seed=1)
        found.append(Counter(release.table.to_pandas()["x"].tolist()))
    assert found[0] == found[1]
    assert len(found[0]) > 1


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0, 1, 2, 5, None])), min_size=1, max_size=20),
       st.sampled_from(["equal", "ordered"]), st.sampled_from([0, 0.1, 0.25, 0.3, 0.5, 1]))  # fmt: skip
@settings(deadline=None)
def test_verify_decides_as_the_naive_twin(rows, kind, t):
    policy = policy_of(COLUMNS["ordered"], {"t": t, "of": "s", "distance": kind})
    table = pa.table({"x": [f"[{x}]" for x, _ in rows], "s": pa.array([s for _, s in rows], pa.int64())})
    groups: dict[int, list[dict[str, int | None]]] = {}
    for x, s in rows:
        groups.setdefault(x, []).append({"s": s})
    every = [{"s": s} for _, s in rows]
    failing = sum(
        not naive.satisfies(group, TCloseness(t, of="s", distance=kind), every) for group in groups.values()
    )
    [found] = measure(table, policy).requirements
    assert found.n_failing == failing
    exact = max(
        naive.distance([row["s"] for row in group], [s for _, s in rows], kind) for group in groups.values()
    )
    assert Fraction(found.achieved) == pytest.approx(float(exact))


# ---- whatever the distance, by its definition ------------------------------------------------------


def transport(kind, values, group, table):
    """The least work of turning one list of values into the other, by linear programming."""
    m = len(values)
    cost = np.array([[far_apart(kind, values, a, b) for b in values] for a in values])
    sums = [np.kron(np.eye(m), np.ones(m)), np.kron(np.ones(m), np.eye(m))]
    shares = [[side.count(value) / len(side) for value in values] for side in (group, table)]
    found = linprog(cost.ravel(), A_eq=np.vstack(sums), b_eq=np.concatenate(shares), method="highs")
    return found.fun


def far_apart(kind, values, a, b):
    if kind == "equal" or a == b:
        return float(a != b)
    if kind == "ordered":
        return abs(values.index(a) - values.index(b)) / (len(values) - 1)
    one, other = path_to(a), path_to(b)
    common = max(i for i, (x, y) in enumerate(zip(one, other, strict=False)) if x == y)
    return {("*",): 3, ("*", "digestive"): 2}.get(tuple(one[: common + 1]), 1) / 3


def path_to(value, tree=None, above=()):
    """The labels from the root to a value; a missing one is below the root."""
    if value is None:
        return ["*", None]
    for label, below in (tree or DISEASES).items():
        if isinstance(below, list) and value in below:
            return [*above, label, value]
        if isinstance(below, dict) and (found := path_to(value, below, (*above, label))):
            return found
    return None


CELLS = st.sampled_from([*LEAVES, None])


@given(st.lists(CELLS, min_size=1, max_size=6), st.lists(CELLS, max_size=9), st.sampled_from([*COLUMNS]))
@settings(deadline=None, max_examples=60)
def test_distances_are_the_least_work(group, others, kind):
    table = group + others
    values = [value for value in [*LEAVES, None] if value in table]
    expected = transport(kind, values, group, table)
    assert distance_of(kind, DISEASE, table, group) == [pytest.approx(expected, abs=1e-9)]
    rows = pa.table({"x": ["[0]"] * len(group) + ["[1]"] * len(others), "s": pa.array(table, pa.string())})
    policy = policy_of(COLUMNS["hierarchical"], {"t": 1, "of": "s", "distance": kind})
    rest = [transport(kind, values, others, table)] if others else []
    assert measure(rows, policy).requirements[0].achieved == pytest.approx(max(expected, *rest, 0), abs=1e-9)


@kernel
def holds_of(rows, order, first, last, rules, scratch):
    return part_holds(rows, order, first, last, TWO, rules, scratch)


@given(st.lists(CELLS, min_size=2, max_size=16), st.integers(1, 15), st.sampled_from([*COLUMNS]), st.data())
@settings(deadline=None)
def test_kernels_decide_as_the_requirement_does_also_where_the_distance_is_t(cells, last, kind, data):
    last = min(last, len(cells))
    [figure] = distance_of(kind, DISEASE, cells, cells[:last])
    t = data.draw(st.sampled_from([0, 0.1, 0.25, 0.5, round(figure, 3), figure]))
    asked = TCloseness(min(t, 1), of="s", distance=kind)
    schema = Schema((Attribute("x", "quasi-identifier", type="number"), replace(DISEASE, name="s")))
    table = pa.table({"x": range(len(cells)), "s": pa.array(cells, pa.string())})
    problem = prepare(open_table(table), schema, [asked], threads=1)
    rows = problem.engine.rows
    scratch = new_scratch(rows, problem, widest=int(problem.engine.codes.max()) + 1)
    found = holds_of(rows, np.arange(len(cells)), 0, last, problem.rules, scratch)
    count = Counter(cells)
    whole = {value: count[value] for value in [*sorted(LEAVES), None] if value in count}
    reference = asked.reference(schema["s"], whole)
    values = np.array([[cells[:last].count(value) for value in whole]])
    group = GroupStats(np.array([last]), values=values, reference=reference)
    floor = replace(asked, t=math.floor(asked.exact_t * 10**9) / 10**9)  # more digits are rounded down
    assert found == floor.holds(group)[0]
    assert asked.holds(group)[0] or not found


# ---- tampering -------------------------------------------------------------------------------------


@pytest.mark.parametrize("memory", [None, 1])
@pytest.mark.parametrize("kind", COLUMNS)
def test_a_tampered_release_is_found_out(kind, memory, tmp_path):
    policy = policy_of(COLUMNS[kind], {"t": 0.3, "of": "s", "distance": kind})
    sf.publish(people(kind), policy, seed=1).write(tmp_path / "out")
    assert verify_folder(tmp_path / "out", memory=memory).ok
    path = tmp_path / "out" / "release.parquet"
    rows = pq.read_table(path)
    # values change places, so that the whole table stays as it is: the largest come to the first group
    order = np.argsort(np.array(rows.column("s").to_pylist()), kind="stable")[::-1]
    group = np.array([str(cell) for cell in rows.column("x").to_pylist()])
    moved = np.empty(len(order), dtype=np.int64)
    moved[np.argsort(group != group[0], kind="stable")] = order
    pq.write_table(rows.set_column(1, "s", rows.column("s").take(pa.array(moved))), path)
    rehash(tmp_path / "out")
    failures = verify_folder(tmp_path / "out", memory=memory).failures
    assert any("0.3-closeness" in check.claim for check in failures)


def test_a_value_that_the_hierarchy_lacks_is_refused_without_naming_it():
    policy = policy_of(COLUMNS["hierarchical"], {"t": 0.3, "of": "s", "distance": "ordered"})
    table = pa.table({"x": ["[0]", "[1]"], "s": ["flu", "plague"]})
    for refused in (
        lambda: measure(table, policy),
        lambda: sf.publish(pa.table({"x": [0, 1], "s": table["s"]}), policy),
    ):
        with pytest.raises(HierarchyError, match="1 sensitive value that its hierarchy") as caught:
            refused()
        assert "plague" not in str(caught.value)


@pytest.mark.parametrize("kind", ["equal", "ordered"])
def test_days_and_missing_values_have_distances_too(kind, tmp_path):
    days = pa.array([19_000, 19_001, None, None] * 10, pa.int32()).cast(pa.date32())
    policy = policy_of({"role": "sensitive", "type": "date"}, {"t": 0.1, "of": "s", "distance": kind})
    release = sf.publish(pa.table({"x": [*range(4)] * 10, "s": days}), policy, seed=1)
    release.write(tmp_path / "out")
    assert sf.verify_folder(tmp_path / "out").ok
    only = policy_of(COLUMNS["hierarchical"], {"t": 0, "of": "s", "distance": "hierarchical"})
    release = sf.publish(pa.table({"x": [*range(4)], "s": pa.nulls(4, pa.string())}), only, seed=1)
    assert release.certificate.claims.requirements[0].achieved == 0
