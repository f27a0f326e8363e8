"""A method never asks which engine it runs on: it knows the verbs of ``engines.protocol``, and what there is room for."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "src" / "sfumato"

KNOWING = ("engines", "publishing.py", "checking.py", "cli")
"""Where engines are told apart; whoever else works with rows must not know which it is."""

OWN = ("engines.memory", "engines.disk", "engines.local", "engines.spark")
"""Modules of single engines, and packages."""

OWN_NAMES = {
    "engines.engine": {"DISK", "MEMORY", "AUTO", "SPARK"},
    "engines.rows": {"KeptRows", "PartWriter", "StoredRows", "load_rows"},
}
"""What else belongs to single engines, by the module that it stands in."""

RESOURCES = ("spill", "jobs")
"""By which engines are told apart: see ``engines.engine.Resources``."""


def belongs_to_one_engine(module: str) -> bool:
    """Is it a module of a single engine, or something in one?"""
    name = module.removeprefix("sfumato.")
    return any(name == own or name.startswith(f"{own}.") for own in OWN)


def knowledge_of_engines(text: str) -> list[str]:
    """Where a module imports a single engine, or asks for an engine's name or what only some engines have."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            home = node.module.removeprefix("sfumato.")
            names = [alias.name for alias in node.names]
            if any(belongs_to_one_engine(f"{home}.{name}") for name in names):
                found.append(f"line {node.lineno}: imports {node.module}")
            if OWN_NAMES.get(home, set()) & set(names):
                found.append(f"line {node.lineno}: imports what belongs to one engine")
        if isinstance(node, ast.Import) and any(belongs_to_one_engine(alias.name) for alias in node.names):
            found.append(f"line {node.lineno}: imports an engine")
        if isinstance(node, ast.Attribute) and node.attr in RESOURCES:
            found.append(f"line {node.lineno}: asks for {node.attr}")
        found += [f"line {part.lineno}: asks for {part.id}" for part in names_asked_for(node)]
    return found


def names_asked_for(node: ast.AST) -> list[ast.Name]:
    """Names of engines, and of what only some have, in a comparison, a condition or an ``isinstance``.

    A name may be that of a parameter, which a plan is free to hand on; so it counts only where something depends on it.
    """
    asked = node.test if isinstance(node, ast.If | ast.IfExp) else node
    is_question = isinstance(asked, ast.Compare) or asked is not node
    if isinstance(asked, ast.Call):
        is_question = isinstance(asked.func, ast.Name) and asked.func.id == "isinstance"
    if not is_question:
        return []
    return [
        part
        for part in ast.walk(asked)
        if isinstance(part, ast.Name) and (part.id in RESOURCES or part.id.endswith("Engine"))
    ]


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
        "from sfumato.engines.engine import SPARK",
        "from sfumato.engines import spark",
        "from sfumato.engines.spark import session",
        "from sfumato.engines.spark.engine import SparkEngine",
        "import sfumato.engines.spark.jobs as cluster",
        "def draft():\n    from sfumato.engines.spark.engine import start_spark",
        "x = 1 if engine.spill is None else 2",
        "x = 1 if chosen.jobs is None else 2",
        "is_cluster = engine.jobs is not None",
        "sink = open_sink(engine.spill)",
        "if engine.jobs:\n    pass",
        "if not jobs:\n    pass",
        "if spill:\n    pass",
        "if spill is not None:\n    pass",
        "known = isinstance(engine, DiskEngine)",
        "if isinstance(engine, SparkEngine):\n    pass",
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
        "from sfumato.engines.memory_plan import MemoryPlan",
        "import sfumato.engines.memory_plan",
        "from sfumato.table.spill import Spill",
        "if rows.n_rows <= engine.room.rows:\n    pass",
        "def new(room, spill):\n    return Counts.new(9, room=room, spill=spill)",
    ],
)
def test_a_method_that_uses_the_verbs_is_not(text):
    assert not knowledge_of_engines(text)
