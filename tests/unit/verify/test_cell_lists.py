"""A list of cells in a recoding: each cell contains its label, or verify finds out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tampering import rehash

import sfumato as sf
from sfumato.verify.folder import verify_folder

POLICY: dict[str, Any] = {
    "attributes": {
        "age": {"role": "quasi-identifier", "type": "number", "bounds": [0, 63], "step": 1},
        "dose": {"role": "quasi-identifier", "type": "number"},
        "place": {
            "role": "quasi-identifier",
            "hierarchy": {"tree": {"*": {"N": ["a", "b"], "S": {"t": ["c"]}}}},
        },
    },
    "require": [{"k-anonymity": 3}],
    "method": {"mondrian": {"refine": "list"}},
}
LIST = 3
"""The axis of nodes that are divided by a list."""


def people() -> pa.Table:
    random = np.random.default_rng(4)
    n = 120
    dose = random.choice([0.5, 0.75, 1.1, 2.0], n)
    return pa.table(
        {
            "age": random.integers(0, 16, n) * 4,
            "dose": pa.array(dose, mask=random.random(n) < 0.2),
            "place": random.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2]),
        }
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    sf.publish(people(), POLICY, seed=1).write(tmp_path / "out")
    return tmp_path / "out"


def edit(folder: Path, change: Callable[[dict[str, Any]], object]) -> list[str]:
    """The failures after a change of the recoding."""
    path = folder / "recoding.json"
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    rehash(folder)
    return [f"{check.claim}: {check.detail}" for check in verify_folder(folder).failures]


def test_the_list_of_a_release_is_as_it_should_be(folder: Path) -> None:
    nodes = json.loads((folder / "recoding.json").read_text())["nodes"]
    assert nodes["axis"][0] == LIST
    cells = [place for place, level in enumerate(nodes["level_0"]) if level >= 0]
    assert len(cells) > 10
    assert any(nodes["key_1"][cell] == -1 for cell in cells), "no cell of missing doses is tested"
    assert edit(folder, lambda _: None) == []


def in_cell(name: str, change: Callable[[int], int], *, where: Callable[[int], bool] = lambda _: True) -> Any:
    """Another level or key of the first cell that fits."""

    def tamper(document: dict[str, Any]) -> None:
        nodes = document["nodes"]
        cell = next(i for i, level in enumerate(nodes["level_0"]) if level >= 0 and where(nodes[name][i]))
        nodes[name][cell] = change(nodes[name][cell])

    return tamper


def in_levels(number: int, **changes: Any) -> Any:
    return lambda document: document["attributes"][number]["levels"].update(changes)


def twice(document: dict[str, Any]) -> None:
    """The first cell has the level and key of the second."""
    nodes = document["nodes"]
    first, second = [i for i, level in enumerate(nodes["level_0"]) if level >= 0][:2]
    for name in nodes:
        if name.startswith(("level", "key", "low", "high", "missing", "value", "cover")):
            nodes[name][first] = nodes[name][second]


def split_by_nothing(document: dict[str, Any]) -> None:
    for name in [name for name in document["nodes"] if name.startswith(("level", "key"))]:
        document["nodes"][name] = [-1] * len(document["nodes"]["axis"])


DOES_NOT_CONTAIN = "a cell of a list does not contain its label"
NO_LIST = "a cell stands where no list is, or has no level"


@pytest.mark.parametrize(
    ("change", "detail"),
    [
        (in_cell("key_0", lambda key: key + 5), DOES_NOT_CONTAIN),
        (in_cell("level_0", lambda _: 99), DOES_NOT_CONTAIN),
        (in_cell("key_1", lambda _: 0, where=lambda key: key == -1), DOES_NOT_CONTAIN),
        (in_cell("key_1", lambda _: -1, where=lambda key: key > 0), DOES_NOT_CONTAIN),
        (in_cell("key_2", lambda _: 0, where=lambda key: key > 0), DOES_NOT_CONTAIN),
        (in_cell("level_2", lambda level: level + 2, where=lambda level: level == 0), DOES_NOT_CONTAIN),
        (in_cell("level_0", lambda _: -1), NO_LIST),
        (in_cell("key_0", lambda _: -7), DOES_NOT_CONTAIN),
        (split_by_nothing, "a list has children that are no cells"),
        (twice, "a cell stands in a list twice"),
        (in_levels(0, step=0), "the levels of a number do not hold what is published"),
        (in_levels(0, steps=3), "the levels of a number do not hold what is published"),
        (in_levels(0, lower=10), "the levels of a number do not hold what is published"),
        (in_levels(1, lower=1e300), "the levels of a number do not hold what is published"),
        (in_levels(0, raw=1), "it has fields that no recoding has, or lacks some"),
        (in_levels(2, height=1), "the levels of a hierarchy are not its own"),
        (in_levels(2, raw=1), "the levels of a hierarchy are not its own"),
        (lambda document: document["attributes"][2].pop("levels"), "only some of its attributes have levels"),
        (
            lambda document: [entry.pop("levels") for entry in document["attributes"]],
            "its nodes have other columns",
        ),
        (lambda document: document["nodes"].pop("key_1"), "its nodes have other columns"),
    ],
)
def test_a_cell_tells_no_more_than_its_label(folder: Path, change: Any, detail: str) -> None:
    failures = edit(folder, change)
    assert failures == [f"the recoding can be read: {detail}"]
