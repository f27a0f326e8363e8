"""NCP in certificates: by hand, against labels read as text, and the same on every engine."""

from __future__ import annotations

import random
from fractions import Fraction

import naive_loss
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.schema import Attribute, Kind
from sfumato.recoding.axis import DistinctBoxes, OrderedAxis, TreeAxis
from sfumato.recoding.loss import UNIT, LostDetail, WholeTree, measure_loss

NAN, INF = np.nan, np.inf

# ---- by hand -----------------------------------------------------------------------------------------


def boxes_of(low, high=None, missing=None):
    low = np.array(low, dtype=np.float64)
    high = np.zeros(len(low)) if high is None else np.array(high, dtype=np.float64)
    missing = np.isnan(low) if missing is None else np.array(missing)
    return DistinctBoxes(np.arange(len(low), dtype=np.int32), low, high, missing)


def test_ranges_cost_their_share_of_the_column_and_missing_beside_them_everything():
    """[0, 24] or missing with 1 of 4 rows missing, [25, 49], 50, missing alone, on 0 .. 100."""
    age = OrderedAxis(Attribute("age", "quasi-identifier", Kind.NUMBER), 0, 100, 1.0, has_missing=True)
    boxes = boxes_of([NAN, 24, 49, -INF], [24, 49, 50, -INF])
    size, missing = np.array([4, 3, 2, 5]), {"age": np.array([1, 0, 0, 5])}
    lost = measure_loss([age], [boxes], size, missing, {})
    assert lost.rows == 14
    assert lost.columns["age"] == pytest.approx(UNIT * (3 * 0.24 + 1 + 3 * 0.24))
    assert lost.ncp == pytest.approx((3 * 0.24 + 1 + 3 * 0.24) / 14)


def test_nodes_cost_their_share_of_all_leaves_and_leaves_nothing():
    """The recoding has lost the nodes that it does not use; the whole tree has 5 leaves."""
    whole = Hierarchy.from_tree({"*": {"North": ["a", "b"], "South": ["c", "d", "e"]}})
    pruned, _ = whole.prune([1, 4, 6])
    assert pruned.labels == ("*", "North", "South", "d")
    town = TreeAxis(Attribute("town", "quasi-identifier", Kind.CATEGORY), pruned, has_missing=False)
    boxes = boxes_of([0, 1, 2, 3])
    lost = measure_loss([town], [boxes], np.array([1, 10, 100, 1000]), {}, {"town": WholeTree(whole)})
    assert lost.columns["town"] / UNIT == pytest.approx(1 + 10 * 2 / 5 + 100 * 3 / 5)


def test_a_column_of_one_value_loses_nothing():
    day = OrderedAxis(Attribute("day", "quasi-identifier", Kind.DATE), 7, 7, 1.0, has_missing=False)
    lost = measure_loss([day], [boxes_of([NAN], [INF])], np.array([3]), {}, {})
    assert lost.as_dict() == {"ncp": 0.0, "columns": {"day": 0.0}}


def test_parts_add_up_in_any_order_to_the_last_bit():
    chance = random.Random(1)
    parts = [LostDetail(3, {"x": chance.randrange(3 * UNIT), "y": 1}) for _ in range(200)]
    found = []
    for _ in range(5):
        chance.shuffle(parts)
        total = LostDetail(0, {"x": 0, "y": 0})
        for part in parts:
            total += part
        found.append(total.as_dict())
    assert all(one == found[0] for one in found)
    assert list(found[0]["columns"]) == ["x", "y"]


# ---- against the labels --------------------------------------------------------------------------------

TREE = {"ab": ["a", "b"], "cde": ["c", "d", "e"]}
COLUMNS = {
    "whole": ("type: number", lambda r: r.randrange(9), naive_loss.NumberColumn),
    "bounded": (
        "type: number, bounds: [0, 99]",
        lambda r: r.randrange(30),
        lambda cells: naive_loss.NumberColumn(cells, (0.0, 99.0)),
    ),
    "real": ("type: number", lambda r: r.randrange(40) / 8, naive_loss.NumberColumn),
    "day": ("type: date", lambda r: f"2020-01-{r.randrange(1, 29):02}", naive_loss.NumberColumn),
    "flat": ("hierarchy: flat", lambda r: r.choice("abcd"), naive_loss.flat),
    "declared": (
        "values: [a, b, c, d, e, f]",
        lambda r: r.choice("abc"),
        lambda cells: naive_loss.declared(cells, "abcdef"),
    ),
    "tree": (
        "hierarchy: {tree: {'*': {ab: [a, b], cde: [c, d, e]}}}",
        lambda r: r.choice("abcde"),
        lambda cells: naive_loss.in_tree(cells, TREE),
    ),
    "zip": ("hierarchy: {mask: 2}", lambda r: f"{r.randrange(4)}{r.randrange(3)}", naive_loss.masked),
}

METHODS = ("mondrian", "{mondrian: {criterion: loss, refine: none}}", "{mondrian: {variant: paper}}", "tds")
ON_SLICES = METHODS[:2]
"""Those that narrow numbers to slices, of a range that is rounded where it is not declared."""


def draw_case(seed: int):
    """A table with row numbers, its policy, and its columns as the twin reads them."""
    chance = random.Random(seed)
    names = chance.sample(sorted(COLUMNS), chance.randrange(1, 5))
    n, share = chance.randrange(12, 90), chance.choice([0, 0.1, 0.4])
    cells = {
        name: [None if chance.random() < share else COLUMNS[name][1](chance) for _ in range(n)]
        for name in names
    }
    method = chance.choice(METHODS)
    policy = sf.Policy.parse(
        "attributes:\n"
        + "".join(f"  {name}: {{role: quasi-identifier, {COLUMNS[name][0]}}}\n" for name in names)
        + f"""  row: {{role: other, type: number, passes: unique}}
  kind: {{role: other}}
require: [k-anonymity: {chance.randrange(2, 8)}]
workload: [classify: kind]
method: {method}
"""
    )
    beside = {"row": list(range(n)), "kind": [chance.choice("+-") for _ in range(n)]}
    columns = {name: read_column(name, own, rounded=method in ON_SLICES) for name, own in cells.items()}
    return pa.table(cells | beside), policy, columns


def read_column(name: str, cells: list, *, rounded: bool):
    """A column as the twin reads it."""
    read = COLUMNS[name][2]
    return read(cells, rounded=rounded) if read is naive_loss.NumberColumn else read(cells)


def labels_of(release, names) -> dict[str, list]:
    rows = release.table.sort_by("row")
    return {name: rows.column(name).cast(pa.string()).to_pylist() for name in names}


@pytest.mark.parametrize("seed", range(60))
def test_the_certificate_says_what_its_labels_lose(seed):
    table, policy, columns = draw_case(seed)
    release = sf.publish(table, policy, seed=seed)
    expected = naive_loss.ncp(columns, labels_of(release, columns))
    told = release.certificate.figures["loss"]
    assert told["columns"] == pytest.approx({name: float(value) for name, value in expected.items()})
    assert told["ncp"] == pytest.approx(float(sum(expected.values(), Fraction(0)) / len(expected)))
    assert list(told["columns"].values()) == sorted(told["columns"].values(), reverse=True)


def test_the_cases_are_of_every_kind():
    """Both methods, ranges beside missing cells, missing alone: else the test above shows little."""
    seen = set()
    for seed in range(60):
        table, policy, columns = draw_case(seed)
        release = sf.publish(table, policy, seed=seed)
        for name, labels in labels_of(release, columns).items():
            seen |= {policy.method.name, name, *("missing" for label in labels if label is None)}
            seen |= {"mixed" for label in labels if label and label.endswith(naive_loss.OR_MISSING)}
    assert seen >= {"mondrian", "tds", "missing", "mixed", *COLUMNS}


@pytest.mark.parametrize("method", ["{mondrian: {rows-in-memory: 40, frequency-groups: 2}}", "tds"])
def test_rows_on_disk_lose_what_they_lose_in_memory(method, tmp_path):
    chance = random.Random(3)
    n = 30_000 if method == "tds" else 400  # too many for memory
    table = pa.table(
        {
            "age": [None if chance.random() < 0.2 else chance.randrange(80) for _ in range(n)],
            "dose": [None if chance.random() < 0.1 else chance.random() for _ in range(n)],
            "town": [chance.choice("abcdef") for _ in range(n)],
            "ill": [chance.choice(["yes", "no"]) for _ in range(n)],
        }
    )
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=37)
    policy = sf.Policy.parse(f"""
attributes:
  age: {{role: quasi-identifier, type: number}}
  dose: {{role: quasi-identifier, type: number}}
  town: {{role: quasi-identifier}}
  ill: {{role: other}}
require: [k-anonymity: 4]
workload: [classify: ill]
method: {method}
""")
    in_memory = sf.publish(table, policy)
    on_disk = sf.publish(tmp_path / "t.parquet", policy, engine="disk", memory=4_000_000)
    assert on_disk.certificate.figures["io"]["rows-in-memory"] < n
    assert on_disk.certificate.figures["loss"] == in_memory.certificate.figures["loss"]
    assert 0 < in_memory.certificate.figures["loss"]["ncp"] < 1
