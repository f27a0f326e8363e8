"""A method never asks which engine it runs on: it knows the verbs of ``engines.protocol``, and what there is room for."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "src" / "sfumato"

KNOWING = ("engines", "publishing.py", "checking.py", "cli")
"""Where engines are told apart; whoever else works with rows must not know which it is."""

OWN = ("engines.memory", "engines.disk", "engines.local")
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


def modules_below(folder: Path) -> dict[str, str]:
    """The text of each module by its path below the package."""
    return {
        module.relative_to(ROOT).as_posix(): module.read_text(encoding="utf-8")
        for module in sorted(folder.rglob("*.py"))
    }


def test_no_method_asks_which_engine_it_runs_on():
    modules = modules_below(ROOT / "methods")
    assert len(modules) > 50
    assert not {name: found for name, text in modules.items() if (found := knowledge_of_engines(text))}


def test_nobody_but_publishing_checking_and_the_commands_names_an_engine():
    others = {
        name: text for name, text in modules_below(ROOT).items() if name.partition("/")[0] not in KNOWING
    }
    assert len(others) > 250
    wrong = {
        name: found
        for name, text in others.items()
        if (found := [each for each in knowledge_of_engines(text) if "imports" in each])
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
