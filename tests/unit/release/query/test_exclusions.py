"""Questions to a release whose labels say what they exclude, held against the labels as anybody would read them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.encoding.encoders import encode_axis
from sfumato.evaluation.loss import ReleasedGroups, rows_covered
from sfumato.evaluation.points import find_boxes
from sfumato.methods import partition
from sfumato.policy.document import Policy
from sfumato.policy.predicate import parse
from sfumato.randomness import seeded
from sfumato.recoding.axis import labels_of
from sfumato.release.query.select import overlaps
from sfumato.table.opening import open_table

TREE = {
    "*": {
        "America": ["US", "Peru", "Cuba"],
        "Europe": {"North": ["Norway", "Latvia"], "Italy": None},
        "Togo": None,
    }
}
BELOW = {
    "America": {"US", "Peru", "Cuba"},
    "North": {"Norway", "Latvia"},
    "Europe": {"Norway", "Latvia", "Italy"},
}
LEAVES = ["US", "Peru", "Cuba", "Norway", "Latvia", "Italy", "Togo"]
BELOW["*"] = set(LEAVES)


def read(label: str | None) -> set[str | None]:
    """The values that a label stands for."""
    if label is None:
        return {None}
    found = re.fullmatch(r"(.+?) \(not (.+)\)", label)
    node, names = (found[1], found[2].split(", ")) if found else (label, [])
    values = BELOW.get(node, {node}) | ({None} if node == "*" else set())
    excluded = set().union(*({None} if name == "missing" else BELOW.get(name, {name}) for name in names))
    return values - excluded


def publish(cells: list[str | None], k: int = 2, hierarchy: Any = None, **more: Any) -> Any:
    country = {"role": "quasi-identifier", **({} if hierarchy is None else {"hierarchy": hierarchy})}
    policy = {
        "attributes": {"country": country, "row": {"role": "other", "type": "number", "passes": "unique"}},
        "require": [{"k-anonymity": k}],
        "method": {"mondrian": {"refine": "none"}},
        "output": {"rest-labels": "excluding", **more},
    }
    table = pa.table({"country": pa.array(cells, pa.string()), "row": range(len(cells))})
    return sf.publish(table, policy), Policy.of(policy), open_table(table)


CELLS = st.lists(st.sampled_from([*LEAVES, "US", "US", "Italy", None]), min_size=2, max_size=40)


@settings(max_examples=60)
@given(CELLS, st.integers(1, 4), st.sets(st.sampled_from(LEAVES), min_size=1), st.booleans())
def test_a_rest_has_the_values_that_its_label_says_and_no_others(cells, k, asked, negated):
    k = min(k, len(cells))
    release, policy, _ = publish(cells, k, {"tree": TREE})
    where = f"country {'not in' if negated else 'in'} ({', '.join(repr(name) for name in sorted(asked))})"
    selected = set(LEAVES) - asked if negated else asked
    found = overlaps(parse(where, policy.schema), release.table, release.recoding, policy)
    for row, label in enumerate(release.table.column("country").to_pylist()):
        values = read(label)
        if None not in cells:
            values -= {None}
        assert found.touches[row] == bool(values & selected)
        assert found.is_inside[row] == (values <= selected)
        assert found.share[row] == pytest.approx(len(values & selected) / len(values))
    sizes = release.query(f"COUNT(*) WHERE {where}")
    true = sum(cell in selected for cell in cells)
    assert sizes.low <= true <= sizes.high
    assert release.select(where).num_rows == found.touches.sum()


def test_of_a_flat_column_a_rest_cannot_be_what_it_excludes_and_may_be_anything_else():
    release, _, _ = publish(["US"] * 4 + ["Peru"] * 2 + ["Cuba"], 3)
    assert release.query("COUNT(*) WHERE country = 'US'") == (4, 4, 4)
    assert release.query("COUNT(*) WHERE country <> 'US'") == (3, 3, 3)
    chile = release.query("COUNT(*) WHERE country = 'Chile'")
    assert (chile.low, chile.high) == (0, 3)
    assert release.select("country = 'US'").num_rows == 4


def test_a_masked_rest_has_as_many_texts_as_fit_it_and_are_not_excluded():
    """Below 1* (not 10) nine texts of two digits are left, of which 11 is one."""
    release, _, _ = publish(["10"] * 4 + ["11", "12", "13"] + ["20"] * 4, 3, {"mask": 2})
    assert set(release.table.column("country").to_pylist()) == {"10", "1* (not 10)", "20"}
    assert release.query("COUNT(*) WHERE country = '11'") == (pytest.approx(3 / 9), 0, 3)
    assert release.query("COUNT(*) WHERE country = '10'") == (4, 4, 4)


def test_ends_of_numbers_are_those_of_the_leaves_that_are_left():
    ages = {"tree": {"*": {"young": ["1", "5", "9"], "old": ["70", "80", "90"]}}}
    age = {"role": "quasi-identifier", "type": "number", "hierarchy": ages}
    policy = {
        "attributes": {"age": age},
        "require": [{"k-anonymity": 3}],
        "method": {"mondrian": {"refine": "none"}},
        "output": {"rest-labels": "excluding"},
    }
    release = sf.publish(pa.table({"age": [90] * 4 + [1, 5, 70]}), policy)
    assert set(release.table.column("age").to_pylist()) == {"90", "* (not 90)"}
    assert release.query("MAX(age) WHERE age < 90").high == 80
    assert release.query("COUNT(*) WHERE age >= 85") == (4, 4, 4)


# ---- what is measured ------------------------------------------------------------------------------


def measured(cells: list[str | None], k: int = 3) -> tuple[Any, Any, Any]:
    _, policy, source = publish(cells, k, {"tree": TREE})
    groups = partition(source, policy)
    return groups, source, policy


def test_rows_covered_are_those_with_a_value_that_the_label_has():
    """So the entropy loss is less than that of covering labels, and NCP, which is of the nodes, is the same."""
    groups, source, policy = measured(
        ["US"] * 3 + ["Peru", "Norway", "Togo", "Cuba", "Italy", "Latvia", "Togo"]
    )
    found = ReleasedGroups.of(groups, source)
    covered = rows_covered(found.axes[0], found.boxes[0], found.columns[0], found.trees["country"])
    cells = source.column("country").to_pylist()
    texts = labels_of(found.axes[0], found.boxes[0].ends).to_pylist()
    assert covered.tolist() == [sum(cell in read(text) for cell in cells) for text in texts]
    assert any("(not " in text for text in texts)
    other = partition(source, Policy.of({**policy.as_dict(), "output": {"values": "labels"}}))
    assert ReleasedGroups.of(other, source).ncp() == found.ncp()
    assert (
        ReleasedGroups.of(other, source).entropy_loss()["entropy loss"] > found.entropy_loss()["entropy loss"]
    )


def test_sampled_points_are_values_that_labels_do_not_exclude():
    cells = ["US"] * 6 + ["Norway"] * 5 + ["Peru", "Togo", "Cuba", "Italy", "Latvia", "Togo"]
    groups, source, _ = measured(cells)
    boxes = find_boxes(groups.recoding, source)
    domain, _ = encode_axis(source, groups.recoding.axes[0].attribute)
    leaves = [domain.hierarchy.labels[node] for node in domain.hierarchy.leaf_nodes.tolist()]
    texts = groups.recoding.apply_to(source).column("country").to_pylist()
    assert any("(not " in text for text in texts)
    drawn: list[set[str]] = [set() for _ in texts]
    for seed in range(40):
        codes = boxes.columns("sample", seeded(seed))["country"]["country"].cells
        for row, code in enumerate(np.asarray(codes).tolist()):
            drawn[row].add(leaves[code])
    assert all(values <= read(text) for values, text in zip(drawn, texts, strict=True))
    assert set().union(*drawn) == set(cells) | {leaf for text in texts for leaf in read(text) if leaf}
