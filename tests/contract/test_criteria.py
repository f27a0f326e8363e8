"""What splits are chosen by, beside what is required, in memory and on disk: labels cover, groups hold, engines agree.

Rows are judged by their published labels, by code that shares nothing with the program: ``naive_loss`` reads labels, and
``naive_mondrian`` says whether a group holds.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from itertools import combinations
from typing import Any

import naive_loss
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from naive_mondrian import satisfies
from people import ATTRIBUTES, WORKLOADS, people

import sfumato as sf


def make_table() -> pa.Table:
    """People with jobs, most of them rare."""
    table = people(240)
    jobs = np.random.default_rng(5).choice(list("abcdefgh"), 240, p=[0.4, 0.3, 0.1, *[0.04] * 5])
    return table.append_column("job", pa.array(jobs)).append_column("row", pa.array(range(240)))


TABLE = make_table()
ROWS = TABLE.to_pylist()
QUASI = ("age", "sex", "city", "born", "job")
ON_DISK = ("rows-in-memory: 40", "frequency-groups: 2")
"""So little that nodes are counted level by level, a few at a time."""

CRITERIA = {
    "loss": ((), "nothing"),
    "loss, without a list": (("refine: none",), "nothing"),
    "loss, without rests": (("rest: false",), "nothing"),
    "loss in place of a task": (("criterion: loss",), "classify"),
    "median": (("criterion: median",), "nothing"),
    "a class and loss": ((), "classify"),
    "a class and loss, without rests": (("rest: false",), "classify"),
    "a number and loss": ((), "regress"),
    "Median as published": (("variant: paper",), "nothing"),
    "InfoGain as published": (("variant: paper",), "classify"),
    "Regression as published": (("variant: paper",), "regress"),
}  # fmt: skip
MAY_HAVE_LISTS = ("loss", "loss, without rests")
LIKE_LOSS = ("loss in place of a task", "loss, without a list")
"""May be the same as loss: the first must, and a list is kept only where it loses less."""
REQUIRED = {
    "k": "[k-anonymity: 5]",
    "distinct": "[distinct-diversity: {l: 3, of: disease}]",
    "entropy": "[entropy-diversity: {l: 2.5, of: disease}, k-anonymity: 3]",
    "recursive": "[recursive-diversity: {c: 1.5, l: 2, of: disease}]",
    "close": "[t-closeness: {t: 0.3, of: disease, distance: equal}]",
    "close by rank": "[t-closeness: {t: 0.2, of: hours, distance: ordered}]",
    "spread": "[variance-diversity: {at-least: 9, of: hours}]",
}


def policy_of(criterion: str, required: str, more: tuple[str, ...] = ()) -> sf.Policy:
    options, workload = CRITERIA[criterion]
    beside = "  job: {role: quasi-identifier}\n  row: {role: other, type: number, passes: unique}\n"
    return sf.Policy.parse(
        f"{ATTRIBUTES}{beside}require: {REQUIRED[required]}\n"
        f"workload: {WORKLOADS[workload]}\nmethod: {{mondrian: {{{', '.join((*options, *more))}}}}}\n"
    )


@cache
def in_memory(criterion: str, required: str) -> sf.Release:
    return sf.publish(TABLE, policy_of(criterion, required), seed=1)


def labels_of(release: sf.Release) -> list[tuple[Any, ...]]:
    """The published quasi-identifiers of each row, in the order of the table; a cell without text is missing."""
    rows = release.table.sort_by("row")
    assert rows.column("row").to_pylist() == list(range(len(ROWS)))
    cells = [rows.column(name).cast(pa.string()).to_pylist() for name in QUASI]
    return [tuple(cell or None for cell in row) for row in zip(*cells, strict=True)]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "people.parquet"
    pq.write_table(TABLE, path, row_group_size=97)
    return path


@pytest.fixture(scope="module")
def columns() -> dict[str, naive_loss.Column]:
    cells = {name: [row[name] for row in ROWS] for name in QUASI}
    return {
        "age": naive_loss.NumberColumn(cells["age"], (0, 110)),
        "sex": naive_loss.flat(cells["sex"]),
        "city": naive_loss.in_tree(cells["city"], {"North": ["Kiel"], "Middle": ["Bonn", "Jena"]}),
        "born": naive_loss.NumberColumn(cells["born"]),
        "job": naive_loss.flat(cells["job"]),
    }


@pytest.mark.parametrize("required", REQUIRED)
@pytest.mark.parametrize("criterion", CRITERIA)
def test_labels_cover_and_groups_of_equal_labels_hold(criterion, required, columns):
    release = in_memory(criterion, required)
    groups = defaultdict(list)
    for labels, row in zip(labels_of(release), ROWS, strict=True):
        groups[labels].append(row)
        for (name, column), label in zip(columns.items(), labels, strict=True):
            assert column.covers(label, column.cells[row["row"]]), (name, label)
    assert len(groups) == release.certificate.claims.groups > 1
    for requirement in release.policy.requirements:
        assert all(satisfies(rows, requirement, ROWS) for rows in groups.values())


@pytest.mark.parametrize("required", REQUIRED)
@pytest.mark.parametrize("criterion", CRITERIA)
def test_levels_on_disk_give_the_boxes_of_memory(criterion, required, path):
    no_list = (
        ("refine: none",) if criterion in MAY_HAVE_LISTS else ()
    )  # and there is none with rows-in-memory
    expected = sf.publish(TABLE, policy_of(criterion, required, no_list), seed=1)
    found = sf.publish(path, policy_of(criterion, required, ON_DISK), seed=1, engine="disk", memory=4_000_000)
    assert found.certificate.figures["io"]["levels"] >= 2
    assert labels_of(found) == labels_of(expected)
    assert found.certificate.claims == expected.certificate.claims


def test_the_criteria_differ_from_each_other():
    """Or one of them would be no more than the name of another."""
    seen = {criterion: tuple(labels_of(in_memory(criterion, "k"))) for criterion in CRITERIA}
    distinct = [criterion for criterion in CRITERIA if criterion not in LIKE_LOSS]
    for one, other in combinations(distinct, 2):
        assert seen[one] != seen[other], (one, other)
