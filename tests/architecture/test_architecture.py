"""The shape of the package, read from its source: who may import whom, and what may stand where.

Every check is a function of sources (``{module: text}``), so the tests below can show on a few lines of
made-up source that it fails when it should, before they apply it to the package itself.
"""

from __future__ import annotations

import ast
import graphlib
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from sfumato.policy.options import OPTIONS

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "sfumato"

LAYERS = """
    __main__
    cli | serve
    publishing | checking
    profiling, comparison, examples
    report
    evaluation | risk
    methods | verify
    engines | privacy
    release
    recoding
    encoding
    table
    policy
    progress
    kernels | randomness | machine | notebook
    errors
"""
"""Packages and modules directly under ``sfumato``, highest first. An import goes down, never up. On one
line ``|`` parts strangers, who never import each other; ``,`` parts neighbours, who may, one way only."""

PUBLIC_NAMES: tuple[str, ...] = (
    "Aggregate",
    "Attribute",
    "Classify",
    "DistinctDiversity",
    "EntropyDiversity",
    "Hierarchy",
    "KAnonymity",
    "Mondrian",
    "Policy",
    "Reading",
    "Recoding",
    "RecursiveDiversity",
    "Regress",
    "Release",
    "Schema",
    "Select",
    "TCloseness",
    "VarianceDiversity",
    "compare",
    "evaluate",
    "profile",
    "publish",
    "risk",
    "verify_folder",
    "verify_table",
)
"""``sfumato.__all__``, sorted. What stands here is promised to users: change it on purpose only."""

MINIMUM_TESTS = 2501
"""Test functions under ``tests/``. Raise it when there are more: tests must not vanish in silence."""

ALGORITHMS = (
    "sfumato.methods",
    "sfumato.engines",
    "sfumato.privacy",
    "sfumato.kernels",
    "sfumato.recoding",
    "sfumato.encoding",
    "sfumato.table.distinct",
    "sfumato.table.sorted_runs",
    "sfumato.release.query",
)
"""What ``verify`` must not reach, however indirectly: it would repeat their mistakes instead of finding them."""

RECKONED_ANEW = "sfumato.policy.options.sampling_plan"
"""A policy checks itself by it, so ``verify`` reaches it; but no module of ``verify`` imports it."""

PRIVATE = (
    "sfumato.methods.specialization.diffgen",
    "sfumato.methods.risk_utility.private",
    "sfumato.privacy.ledger",
    "sfumato.privacy.account",
    "sfumato.encoding.declared",
    "sfumato.recoding.counts",
    "sfumato.policy.hierarchy.declared",
    "sfumato.policy.options.sampling_plan",
)
"""Modules of the private release: what is random in them is drawn by Mechanisms, and in no other way."""

METHODS = ("mondrian", "tds", "diffgen", "risk-utility")
"""The methods, as a policy names them."""

HOMES_OF_METHODS = (
    "sfumato.policy.options",
    "sfumato.methods",
    "sfumato.verify.diffgen",
    "sfumato.verify.risk_utility",
    "sfumato.report.diffgen",
    "sfumato.report.risk_utility",
    "sfumato.report.sampled",
    "sfumato.cli.promises",
)
"""Where a method may be known by its name: it itself, its options, and who checks and shows its releases. All others
find those in a table, by the form of a release, or ask the options a question."""

# ---- reading sources ------------------------------------------------------------------------------


def sources_of(folder: Path) -> dict[str, str]:
    """Source text by dotted module name; a package goes by its own name, without ``__init__``."""
    found = {}
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path.read_text(encoding="utf-8")
    return found


SOURCES = sources_of(PACKAGE)


def is_package(module: str, sources: dict[str, str]) -> bool:
    return module == "sfumato" or any(other.startswith(f"{module}.") for other in sources)


def imports_of(module: str, sources: dict[str, str]) -> tuple[tuple[str, int], ...]:
    """Everything that a module imports anywhere, functions included, as (dotted name, line).

    ``from a import b`` counts as ``a.b``; so does the use of ``np.random`` as ``numpy.random``.
    """
    parent = module if is_package(module, sources) else module.rpartition(".")[0]
    return imports_in(sources[module], parent)


@cache
def imports_in(text: str, parent: str) -> tuple[tuple[str, int], ...]:
    """Those of a source text that stands in a package; most checks ask for all of them."""
    return tuple(_imports_in(ast.parse(text), parent))


def _imports_in(tree: ast.Module, parent: str) -> Iterator[tuple[str, int]]:
    alias = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                alias[name.asname or name.name] = name.name
                yield name.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            origin = node.module or ""
            if node.level:
                packages = parent.split(".")
                origin = ".".join([*packages[: len(packages) - node.level + 1], *filter(None, [node.module])])
            for name in node.names:
                yield f"{origin}.{name.name}", node.lineno
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            yield from (
                (str(given.value), node.lineno) for given in node.args if isinstance(given, ast.Constant)
            )
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in alias:
            yield f"{alias[node.value.id]}.{node.attr}", node.lineno


def own_imports_of(module: str, sources: dict[str, str]) -> Iterator[tuple[str, int]]:
    """The imports of ``sfumato`` itself, each as the module that it names or takes a name from.

    A module of LAYERS that is not written yet counts as one.
    """
    modules = {*sources, *(f"sfumato.{name}" for name in layers())}
    for name, line in imports_of(module, sources):
        if within(name, "sfumato"):
            while name not in modules and "." in name:
                name = name.rpartition(".")[0]  # noqa: PLW2901 - from a name in a module up to the module
            if name != module:
                yield name, line


def line_of(node: ast.AST) -> int:
    """Where an expression, a statement or a pattern stands."""
    assert isinstance(node, ast.expr | ast.stmt | ast.pattern)
    return node.lineno


def within(name: str, *tops: str) -> bool:
    """``name`` is one of ``tops``, or inside one."""
    return any(name == top or name.startswith(f"{top}.") for top in tops)


def unit(module: str) -> str:
    """The entry of LAYERS that a module belongs to; the package's own ``__init__`` is ``sfumato``."""
    return module.split(".")[1] if "." in module else module


def layers() -> dict[str, tuple[int, int]]:
    """Each unit's layer (0 is the highest) and, within it, which strangers' camp it is in."""
    place = {"sfumato": (-1, 0)}
    for depth, line in enumerate(LAYERS.strip().splitlines()):
        for camp, neighbours in enumerate(line.split("|")):
            for name in neighbours.split(","):
                place[name.strip()] = (depth, camp)
    return place


# ---- checks: each gives a list of sentences, empty when all is well ---------------------------------


def wrong_directions(sources: dict[str, str]) -> list[str]:
    place, wrong = layers(), []
    for module in sources:
        if unit(module) not in place:
            wrong.append(f"{module} has no place in LAYERS: add {unit(module)!r} where it belongs.")
            continue
        depth, camp = place[unit(module)]
        for target, line in own_imports_of(module, sources):
            if unit(target) == unit(module) or unit(target) not in place:
                continue
            other_depth, other_camp = place[unit(target)]
            if other_depth < depth:
                wrong.append(f"{module}, line {line}: imports {target}, which is above it.")
            elif other_depth == depth and other_camp != camp:
                wrong.append(f"{module}, line {line}: imports {target}, which is a stranger beside it.")
    return wrong


def cycles(sources: dict[str, str]) -> list[str]:
    graph = {module: {target for target, _ in own_imports_of(module, sources)} for module in sources}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return ["Modules import each other: " + " <- ".join(error.args[1])]
    return []


def reach_of(start: str, sources: dict[str, str]) -> dict[str, str]:
    """Every module that an import of ``start`` runs, however indirectly, each with the one that imports it."""
    came_from = {start: ""}
    waiting = [start]
    while waiting:
        module = waiting.pop()
        for target, _ in own_imports_of(module, sources):
            parts = target.split(".")
            for i in range(
                2, len(parts) + 1
            ):  # the packages that it stands in run, too; sfumato's own loads nothing
                name = ".".join(parts[:i])
                if name in sources and name not in came_from:
                    came_from[name] = module
                    waiting.append(name)
    return came_from


def algorithms_in_verify(sources: dict[str, str]) -> list[str]:
    """What verify reaches and must not, with the way there."""
    wrong = []
    for module in sources:
        if unit(module) == "verify":
            came_from = reach_of(module, sources)
            for target in sorted(came_from):
                if within(target, *ALGORITHMS) or (target == RECKONED_ANEW and came_from[target] == module):
                    way = [target]
                    while way[-1] != module:
                        way.append(came_from[way[-1]])
                    wrong.append(f"{' > '.join(reversed(way))}: verify must not reach {target}.")
    return wrong


def imports_outside_home(sources: dict[str, str], names: tuple[str, ...], home: str) -> list[str]:
    return [
        f"{module}, line {line}: {name} belongs in {home} alone."
        for module in sources
        if not within(module, home)
        for name, line in imports_of(module, sources)
        if within(name, *names)
    ]


def other_random_sources(sources: dict[str, str], private: tuple[str, ...]) -> list[str]:
    """What could draw past the ledger: ``sfumato.randomness``, or any random module of others."""
    sources_of_chance = (
        "sfumato.randomness",
        "numpy.random",
        "secrets",
        "random",
        "scipy.stats",
        "opendp",
        "os.urandom",
    )
    return [
        f"{module}, line {line}: draws by {name}, not by sfumato.privacy.mechanisms."
        for module in sources
        if within(module, *private)
        for name, line in imports_of(module, sources)
        if within(name, *sources_of_chance)
    ]


COMPILING = ("sfumato.kernels.compile", "sfumato.kernels.late", "sfumato.kernels.watch")
"""No kernels: how and when they are compiled, where they are kept, and who is told."""


def is_kernel(module: str) -> bool:
    """It stands in a folder ``kernels``: the one that all share, or that of a method."""
    return within(module, "sfumato") and "kernels" in module.split(".")


def foreign_imports_of_kernels(sources: dict[str, str]) -> list[str]:
    allowed = ("__future__", "collections.abc", "math", "typing", "numpy", "numba")
    return [
        f"{module}, line {line}: a kernel must not import {name}."
        for module in sources
        if is_kernel(module) and module not in COMPILING
        for name, line in imports_of(module, sources)
        if not within(name, *allowed) and not is_kernel(name)
    ]


def raw_declarations(sources: dict[str, str]) -> list[str]:
    """Places that take a hierarchy's declaration apart as plain data, where its methods should be asked."""

    def is_declaration(node: ast.AST) -> bool:
        return isinstance(node, ast.Attribute) and node.attr == "hierarchy"

    def is_raw(node: ast.AST) -> bool:
        match node:
            case ast.Call(func=ast.Name("isinstance"), args=[subject, kinds]) if is_declaration(subject):
                return any(word in ast.unparse(kinds).split(" | ") for word in ("dict", "Mapping", "str"))
            case ast.Subscript(value=subject) | ast.Match(subject=subject):
                return is_declaration(subject)
            case ast.Compare(left=left, comparators=[right]) if is_declaration(left) or is_declaration(right):
                return any(
                    isinstance(side, ast.Constant) and side.value is not None for side in (left, right)
                )
        return False

    return [
        f"{module}, line {line_of(node)}: a hierarchy is taken apart; ask its declaration."
        for module, text in sources.items()
        if not within(module, "sfumato.policy.hierarchy")
        for node in ast.walk(ast.parse(text))
        if is_raw(node)
    ]


def known_methods(sources: dict[str, str]) -> list[str]:
    """Places that ask which method a policy names, where its options should be asked what they want to know."""

    def is_kind(text: str) -> bool:
        kinds = (name.replace("-", "") + "options" for name in METHODS)
        return text.rpartition(".")[2].lower() in kinds

    def has_kind(node: ast.AST) -> bool:
        return any(
            is_kind(ast.unparse(inner))
            for inner in ast.walk(node)
            if isinstance(inner, ast.Name | ast.Attribute)
        )

    def has_name(*nodes: ast.AST | None) -> bool:
        return any(
            isinstance(inner, ast.Constant) and inner.value in METHODS
            for node in nodes
            if node is not None
            for inner in ast.walk(node)
        )

    def is_known(node: ast.AST) -> bool:
        match node:
            case ast.Call(func=ast.Name("isinstance" | "issubclass"), args=[_, kinds]):
                return has_kind(kinds)
            case ast.Call(func=ast.Attribute(attr="options_for"), args=[kind]):
                return has_kind(kind)
            case ast.Call(func=ast.Attribute(attr="get"), args=[key, *_]):
                return has_name(key)
            case ast.Attribute(value=kind, attr="name"):
                return is_kind(ast.unparse(kind))
            case ast.Compare(left=left, comparators=rights):
                return has_name(left, *rights) or any(is_kind(ast.unparse(side)) for side in (left, *rights))
            case ast.MatchClass(cls=kind):
                return is_kind(ast.unparse(kind))
            case ast.MatchValue(value=found) | ast.Subscript(slice=found):
                return has_name(found)
        return False

    return [
        f"{module}, line {line_of(node)}: asks which method it is; ask its options, or find it by its form."
        for module, text in sources.items()
        if not within(module, *HOMES_OF_METHODS)
        for node in ast.walk(ast.parse(text))
        if is_known(node)
    ]


def prints(sources: dict[str, str]) -> list[str]:
    return [
        f"{module}, line {node.lineno}: prints; only cli does."
        for module, text in sources.items()
        if unit(module) != "cli"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in {"print", "builtins.print", "rich.print", "pprint"}
    ]


CITATION = re.compile(r"\[([A-Z]{1,5}\d\d[a-z]?)\b([^\[\]]*)\]")
KEY = re.compile(r"\b[A-Z]{1,5}\d\d[a-z]?\b")


def cited_in(text: str) -> set[str]:
    """Keys of all citations: ``[LDR08]``, ``[LDR08, section 2]``, ``[LDR06a; LDR08, page 3]``."""
    return {key for cited in CITATION.finditer(text) for key in KEY.findall(cited[0])}


def unknown_citations(sources: dict[str, str], references: str) -> list[str]:
    known = set(re.findall(r"^- \*\*\[(\w+)\]\*\*", references, flags=re.MULTILINE))
    return [
        f"{module}, line {node.lineno}: [{key}] is not in docs/references.md."
        for module, text in sources.items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        for key in sorted(cited_in(node.value.value) - known)
    ]


def declared_names(text: str) -> list[str] | None:
    """``__all__`` as written, or None where there is none."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if "__all__" in map(ast.unparse, targets):
                return list(ast.literal_eval(node.value))
    return None


def number_of_tests(folder: Path) -> int:
    return sum(
        isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        for path in folder.rglob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    )


def files_of_the_repository() -> list[Path]:
    """Everything that git tracks or would track."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    return [path for name in listed.split("\0") if name and (path := ROOT / name).is_file()]


# ---- the package keeps the rules ------------------------------------------------------------------


def report(wrong: list[str]) -> None:
    assert not wrong, "\n" + "\n".join(wrong)


def test_imports_go_down_the_layers():
    assert SOURCES
    report(wrong_directions(SOURCES))


def test_no_modules_import_each_other_in_a_circle():
    report(cycles(SOURCES))


def test_verify_reaches_no_algorithm():
    report(algorithms_in_verify(SOURCES))


def test_randomness_has_one_door():
    home = "sfumato.randomness"
    assert home in SOURCES
    report(imports_outside_home(SOURCES, ("numpy.random", "secrets", "random"), home))


def test_opendp_has_one_door():
    home = "sfumato.privacy.mechanisms"
    assert home in SOURCES
    report(imports_outside_home(SOURCES, ("opendp",), home))


def test_private_draws_are_made_through_mechanisms_alone():
    assert all(module in SOURCES for module in PRIVATE)
    report(other_random_sources(SOURCES, PRIVATE))


def test_pyspark_is_imported_by_its_engine_alone():
    home = "sfumato.engines.spark"
    assert home in SOURCES
    report(imports_outside_home(SOURCES, ("pyspark",), home))


def test_kernels_import_numpy_and_numba_only():
    report(foreign_imports_of_kernels(SOURCES))


def test_hierarchies_are_asked_and_not_taken_apart():
    report(raw_declarations(SOURCES))


def test_nobody_asks_which_method_it_is():
    report(known_methods(SOURCES))


def test_the_methods_are_these():
    assert tuple(OPTIONS) == METHODS


def test_the_library_never_prints():
    report(prints(SOURCES))


def test_the_public_names_are_these():
    names = declared_names(SOURCES.get("sfumato", ""))
    if names is None:
        pytest.skip("sfumato has no __all__ yet")
    assert tuple(sorted(names)) == PUBLIC_NAMES, f"pin it in PUBLIC_NAMES: {tuple(sorted(names))}"


def test_every_public_name_is_there():
    names = declared_names(SOURCES.get("sfumato", ""))
    if names is None:
        pytest.skip("sfumato has no __all__ yet")
    import sfumato

    assert [name for name in names if not hasattr(sfumato, name)] == []


def test_every_citation_is_in_the_references():
    report(unknown_citations(SOURCES, (ROOT / "docs" / "references.md").read_text(encoding="utf-8")))


def test_nothing_but_the_build_script_names_the_folder_beside_the_checkout():
    folder = b"sha" + b"red"  # spelt so that this file does not name it
    named = re.compile(rb"\.\./" + folder + rb"\b|\b" + folder + rb"/")
    files = [path for path in files_of_the_repository() if path != ROOT / ".ci" / "run"]
    assert [str(path.relative_to(ROOT)) for path in files if named.search(path.read_bytes())] == []


def test_no_tests_have_vanished():
    assert number_of_tests(ROOT / "tests") >= MINIMUM_TESTS


# ---- the checks can fail ----------------------------------------------------------------------------


def package(**modules: str) -> dict[str, str]:
    """Sources of a made-up package; ``__`` in a name stands for the dot."""
    made = {f"sfumato.{name.replace('__', '.')}": text for name, text in modules.items()}
    return {"sfumato": ""} | dict.fromkeys((f"sfumato.{unit(name)}" for name in made), "") | made


@pytest.mark.parametrize(
    "text",
    [
        "import sfumato.publishing",
        "from sfumato import publishing",
        "from sfumato.publishing import publish",
        "from . import publishing",
        "from .publishing import publish",
        "def later():\n    from sfumato.publishing import publish",
        "import importlib\nimportlib.import_module('sfumato.publishing')",
    ],
)
def test_an_import_upwards_is_found_however_it_is_written(text):
    sources = package(publishing="", policy=text)
    assert wrong_directions(sources) == [
        f"sfumato.policy, line {text.count(chr(10)) + 1}: imports sfumato.publishing, which is above it."
    ]


def test_an_import_from_inside_a_package_is_judged_by_the_package():
    sources = package(
        engines__memory="from ..methods.grow import grow", methods__grow="from .tree import Tree"
    )
    assert wrong_directions(sources | {"sfumato.methods.tree": ""}) == [
        "sfumato.engines.memory, line 1: imports sfumato.methods.grow, which is above it."
    ]


def test_the_package_itself_is_above_its_modules():
    assert wrong_directions(package(policy="from sfumato import Policy")) == [
        "sfumato.policy, line 1: imports sfumato, which is above it."
    ]


def test_imports_downwards_and_of_neighbours_are_right():
    sources = package(
        profiling="from sfumato import examples, errors",
        examples="from sfumato.policy.workload import Task",
        policy__workload="",
        errors="",
    )
    assert wrong_directions(sources) == []
    assert cycles(sources) == []


def test_strangers_are_found():
    assert wrong_directions(package(kernels="", randomness="import sfumato.kernels")) == [
        "sfumato.randomness, line 1: imports sfumato.kernels, which is a stranger beside it."
    ]


def test_a_module_without_a_layer_is_found():
    assert wrong_directions(package(utils="")) == [
        "sfumato.utils has no place in LAYERS: add 'utils' where it belongs."
    ]


def test_a_circle_of_neighbours_is_found():
    circle = package(
        profiling="from sfumato import examples", examples="def f():\n    from .profiling import look"
    )
    assert len(cycles(circle)) == 1


def test_a_circle_inside_a_package_is_found():
    circle = package(mondrian="from .grow import grow", mondrian__grow="from sfumato.mondrian import Tree")
    assert len(cycles(circle)) == 1


@pytest.mark.parametrize("algorithm", ["methods", "engines", "kernels", "recoding", "encoding"])
def test_an_algorithm_in_verify_is_found(algorithm):
    sources = package(verify=f"from sfumato import {algorithm}", **{algorithm: ""})
    assert algorithms_in_verify(sources) == [
        f"sfumato.verify > sfumato.{algorithm}: verify must not reach sfumato.{algorithm}."
    ]


def test_an_algorithm_that_verify_reaches_through_others_is_found():
    sources = package(
        verify="from sfumato.release import folder",
        release__folder="def f():\n    from sfumato.table import source",
        table="import sfumato.encoding.cells",
        table__source="",
        encoding__cells="",
    )
    ways = [
        "sfumato.verify > sfumato.release.folder > sfumato.table > sfumato.encoding",
        "sfumato.verify > sfumato.release.folder > sfumato.table > sfumato.encoding.cells",
    ]
    assert algorithms_in_verify(sources) == [
        f"{way}: verify must not reach {way.rpartition(' ')[2]}." for way in ways
    ]


@pytest.mark.parametrize(
    "text",
    [
        "import numpy.random",
        "from numpy import random",
        "from numpy.random import default_rng",
        "import numpy as np\nnp.random.default_rng()",
        "import secrets",
        "from secrets import randbits",
        "import random",
    ],
)
def test_a_second_door_to_randomness_is_found(text):
    sources = package(table=text, randomness=text)
    found = imports_outside_home(sources, ("numpy.random", "secrets", "random"), "sfumato.randomness")
    assert found
    assert all(sentence.startswith("sfumato.table, line") for sentence in found)


@pytest.mark.parametrize(
    "text",
    [
        "from sfumato import randomness",
        "from sfumato.randomness import secret",
        "import opendp.prelude as dp",
        "import os\nos.urandom(8)",
        "from scipy import stats\nstats.norm.rvs()",
        "import numpy as np\ndef f():\n    return np.random.laplace()",
    ],
)
def test_a_draw_past_the_mechanisms_is_found(text):
    found = other_random_sources(package(ledger=text, table=text), ("sfumato.ledger",))
    assert found
    assert all(sentence.startswith("sfumato.ledger, line") for sentence in found)


def test_a_foreign_import_of_a_kernel_is_found():
    kernel = "import numpy as np\nfrom numba import njit\nfrom sfumato.kernels import count\nimport pyarrow\n"
    assert foreign_imports_of_kernels(package(kernels__grow=kernel, kernels__count="")) == [
        "sfumato.kernels.grow, line 4: a kernel must not import pyarrow."
    ]


def test_a_print_is_found_outside_the_command_line_and_not_in_a_doctest():
    sources = package(cli="print(1)", table='def f():\n    """>>> print(1)"""\n    print(2)\n')
    assert prints(sources) == ["sfumato.table, line 3: prints; only cli does."]


@pytest.mark.parametrize(
    "text",
    [
        "isinstance(attribute.hierarchy, Mapping)",
        "isinstance(self.attribute.hierarchy, dict | list)",
        "'mask' in attribute.hierarchy",
        "attribute.hierarchy['mask']",
        "attribute.hierarchy == 'flat'",
        "match attribute.hierarchy:\n    case {'mask': n}:\n        pass",
    ],
)
def test_a_hierarchy_taken_apart_is_found(text):
    assert len(raw_declarations(package(table=text, policy__hierarchy__tree=text))) == 1


def test_questions_to_a_hierarchy_are_fine():
    text = (
        "attribute.hierarchy is None\nisinstance(attribute.hierarchy, Mask)\nattribute.hierarchy.as_policy()"
    )
    assert raw_declarations(package(table=text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "isinstance(policy.method, DiffGenOptions)",
        "isinstance(policy.method, options.TdsOptions | MondrianOptions)",
        "isinstance(policy.method, (TdsOptions, int))",
        "type(policy.method) is RiskUtilityOptions",
        "policy.options_for(DiffGenOptions)",
        "PRIVATE = DiffGenOptions.name",
        "policy.method.name == 'diffgen'",
        "name in ('tds', 'diffgen')",
        "'diffgen' in document.get('method', {})",
        "document['method']['risk-utility']",
        "document.get('mondrian')",
        "match policy.method:\n    case TdsOptions():\n        pass",
        "match policy.method.name:\n    case 'tds':\n        pass",
    ],
)
def test_a_question_which_method_it_is_is_found(text):
    assert len(known_methods(package(table=text, methods__mondrian__method=text))) == 1


def test_questions_to_options_are_fine():
    text = (
        "isinstance(method, MethodOptions)\npolicy.method.is_private\nPAGES[policy.method.form]\n"
        "METHODS[policy.method.name]\n{'diffgen': {'epsilon': 1}}\nDiffGenOptions(epsilon)"
    )
    assert known_methods(package(table=text)) == []


def test_an_unknown_citation_is_found():
    references = "- **[LDR08]** LeFevre and others.\n"
    sources = package(
        tree='"""Known [LDR08, section 2], unknown [LDR06a; LDR08, page 3]; not one: [0, 5) x[C2]."""'
    )
    assert unknown_citations(sources, references) == [
        "sfumato.tree, line 1: [LDR06a] is not in docs/references.md."
    ]


def test_names_are_read_from_any_form_of_all():
    assert declared_names("__all__ = ['b', 'a']") == ["b", "a"]
    assert declared_names("__all__: list[str] = ['a']") == ["a"]
    assert declared_names("names = ['a']") is None
