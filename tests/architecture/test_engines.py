"""A method never asks which engine it runs on: it knows the verbs of ``engines.protocol``, and what there is room for."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "src" / "sfumato"

BLIND = ("methods/specialization", "methods/mondrian")
"""Folders of methods that must not know engines."""

STARTS = {"methods/mondrian/method.py"}
"""Modules that start the engine that was chosen, and hand it to an algorithm."""

OWN = ("engines.memory", "engines.disk", "engines.local", "engines.scan")
"""Modules of single engines."""

OWN_NAMES = {
    "engines.engine": {"DISK", "MEMORY", "AUTO"},
    "engines.rows": {"KeptRows", "PartWriter", "StoredRows", "load_rows"},
}
"""What else belongs to single engines, by the module that it stands in."""


def knowledge_of_engines(text: str) -> list[str]:
    """Where a module imports a single engine, or asks for a spill folder or an engine's name."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            home = node.module.removeprefix("sfumato.")
            names = [alias.name for alias in node.names]
            if home in OWN or (home == "engines" and any(f"engines.{name}" in OWN for name in names)):
                found.append(f"line {node.lineno}: imports {node.module}")
            if OWN_NAMES.get(home, set()) & set(names):
                found.append(f"line {node.lineno}: imports what belongs to one engine")
        if isinstance(node, ast.Import) and any(
            alias.name.removeprefix("sfumato.") in OWN for alias in node.names
        ):
            found.append(f"line {node.lineno}: imports an engine")
        if isinstance(node, ast.Compare | ast.If | ast.IfExp | ast.Call):
            asked = node.test if isinstance(node, ast.If | ast.IfExp) else node
            if isinstance(asked, ast.Call) and not (
                isinstance(asked.func, ast.Name) and asked.func.id == "isinstance"
            ):
                continue
            for part in ast.walk(asked):
                name = (
                    part.attr
                    if isinstance(part, ast.Attribute)
                    else part.id
                    if isinstance(part, ast.Name)
                    else ""
                )
                if name == "spill" or name.endswith("Engine"):
                    found.append(f"line {node.lineno}: asks for {name}")
    return found


@pytest.mark.parametrize("folder", BLIND)
def test_no_method_asks_which_engine_it_runs_on(folder):
    modules = [
        module
        for module in sorted((ROOT / folder).rglob("*.py"))
        if str(module.relative_to(ROOT)) not in STARTS
    ]
    assert len(modules) > 5
    wrong = {
        str(module.relative_to(ROOT)): found
        for module in modules
        if (found := knowledge_of_engines(module.read_text(encoding="utf-8")))
    }
    assert not wrong


@pytest.mark.parametrize(
    "text",
    [
        "from sfumato.engines.memory import MemoryEngine",
        "from sfumato.engines import disk",
        "import sfumato.engines.disk",
        "from sfumato.engines.rows import PartWriter, RowLayout",
        "from sfumato.engines.engine import DISK, Resources",
        "x = 1 if engine.spill is None else 2",
        "if spill:\n    pass",
        "known = isinstance(engine, DiskEngine)",
    ],
)
def test_a_method_that_asks_is_found(text):
    assert knowledge_of_engines(text)


@pytest.mark.parametrize(
    "text",
    [
        "from sfumato.engines.protocol import Asked, Engine",
        "from sfumato.engines.engine import Resources",
        "from sfumato.engines.rows import RowLayout",
        "if rows.n_rows <= engine.room.rows:\n    pass",
        "def new(room, spill):\n    return Counts.new(9, room=room, spill=spill)",
    ],
)
def test_a_method_that_uses_the_verbs_is_not(text):
    assert not knowledge_of_engines(text)
