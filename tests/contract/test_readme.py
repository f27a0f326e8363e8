"""What the documents say is what the program does: the README's commands run, the command line is as described."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import click
import pytest
from commandline import environment, without_compiling

from sfumato import cli
from sfumato.cli.group import COMMANDS, LATER_COMMANDS
from sfumato.examples.demo import write_example

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"

SETTING_UP = ("make", "git", "cd", ".")
"""Commands that set up a machine or a shell: `make test` is this very run, `.` a matter of the shell."""


@dataclass
class Typed:
    """A command that a document shows, and the lines that it shows below it."""

    command: str
    shown: list[str] = field(default_factory=list)


def commands(text: str) -> list[Typed]:
    """What a reader types, in the order in which it stands in console blocks.

    A block may also show output: lines without a dollar. Three dots stand for any lines.
    """
    found: list[Typed] = []
    for block in re.findall(r"^```console\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append(Typed(line[2:].strip()))
            else:
                found[-1].shown.append(line)
    return found


def shows(shown: list[str], printed: list[str]) -> bool:
    """Is what a document shows what was printed? Nothing, if it shows nothing."""
    if not shown:
        return True
    pattern = "".join(r"(?:.*\n)*?" if line == "..." else re.escape(line) + r"\n" for line in shown)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in printed)) is not None


def test_commands_are_found_in_console_blocks_alone():
    text = "```console\n$ one\noutput\n$ two\n```\n```yaml\n$ no\n```\n$ no\n```console\n$ three # why\n```\n"
    assert commands(text) == [Typed("one", ["output"]), Typed("two"), Typed("three # why")]


def test_output_is_shown_as_it_is_printed_or_left_out_by_dots():
    printed = ["ok    one", "ok    two", "ok    three"]
    assert shows(printed, printed)
    assert shows([], printed)
    assert shows(["...", "ok    two", "..."], printed)
    for shown in (
        printed[:2],
        ["...", "ok    two"],
        ["ok    One", "..."],
        ["...", "ok    three", "ok    two", "..."],
    ):
        assert not shows(shown, printed)


def test_the_readme_shows_how_to_set_up_and_how_to_use_it():
    typed = [one.command for one in commands(README.read_text(encoding="utf-8"))]
    assert typed[0] == "make demo"
    assert [line for line in typed if line.startswith("make ")] == [
        "make demo",
        "make test",
    ]  # these do all the set-up
    used = {line.split()[1] for line in typed if line.startswith("sfumato ")}
    assert used >= {"profile", "publish", "verify", "apply", "evaluate", "compare"}


@pytest.mark.parametrize(
    "document",
    [
        "README.md",
        "docs/differential-privacy.md",
        "docs/evaluate.md",
        "docs/queries.md",
        "docs/risk.md",
        "docs/risk-utility.md",
        "docs/verify.md",
    ],
)
def test_the_commands_of_a_document_run_in_order(document, tmp_path):
    write_example(tmp_path / "sfumato-demo")  # as `make demo` leaves it
    typed = commands((ROOT / document).read_text(encoding="utf-8"))
    to_run = [one for one in typed if one.command.split()[0] not in SETTING_UP]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    for one in to_run:
        done = subprocess.run(
            one.command,
            shell=True,
            cwd=tmp_path,
            env={**environment(), "PATH": path},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert (done.returncode, without_compiling(done.stderr)) == (0, ""), one.command
        assert shows(one.shown, done.stdout.splitlines()), f"{one.command} printed:\n{done.stdout}"
    assert to_run


@pytest.mark.parametrize(
    "document",
    ["README.md", "CONTRIBUTING.md", *(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))],
)
def test_links_between_documents_lead_somewhere(document):
    text = (ROOT / document).read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text)
    broken = [link for link in links if not ((ROOT / document).parent / link).exists()]
    assert not broken


def anchors_of(text: str) -> set[str]:
    """The names by which a page's headings can be linked to."""
    headings = re.findall(
        r"^#+ (.+)$", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE), flags=re.MULTILINE
    )
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}


def test_an_anchor_is_a_heading_without_signs():
    text = "# A title: with signs\n```\n# no\n```\n## Two `words`\n"
    assert anchors_of(text) == {"a-title-with-signs", "two-words"}


@pytest.mark.parametrize(
    "document", ["README.md", *(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]
)
def test_links_to_parts_of_documents_lead_to_headings(document):
    page = ROOT / document
    links = re.findall(r"\]\(([^)#:\s]*)#([^)]*)\)", page.read_text(encoding="utf-8"))
    broken = [
        f"{other}#{anchor}"
        for other, anchor in links
        if anchor not in anchors_of(((page.parent / other) if other else page).read_text(encoding="utf-8"))
    ]
    assert not broken


def test_the_recipes_name_files_that_are_there():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = [name for name in re.findall(r"`([\w/.]+(?:/|\.py))`", text) if "NAME" not in name]
    roots = (ROOT, ROOT / "src", ROOT / "src" / "sfumato", ROOT / "src" / "sfumato" / "methods" / "mondrian")
    assert len(named) > 30
    assert [name for name in named if not any((root / name).exists() for root in roots)] == []


def test_the_reference_of_the_command_line_is_what_help_says():
    """Renew it with: python docs/make_cli.py > docs/cli.md."""
    reference = runpy.run_path(str(ROOT / "docs" / "make_cli.py"))["reference"]()
    assert (ROOT / "docs" / "cli.md").read_text(encoding="utf-8") == reference


def test_the_help_of_all_commands_says_of_each_what_its_own_help_begins_with():
    context = click.Context(cli.commands)
    for name, line in COMMANDS.items():
        command = cli.commands.get_command(context, name)
        assert command.name == name
        assert command.help.splitlines()[0] == line
    assert {*COMMANDS, *LATER_COMMANDS} == set(cli.commands.list_commands(context))


def test_the_help_of_all_commands_imports_none_of_them():
    program = "import sys; from sfumato import cli; cli.run(['--help']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    loaded = done.stdout.splitlines()[-1].split()
    assert "sfumato.cli.group" in loaded
    assert {f"sfumato.cli.{name}" for name in COMMANDS}.isdisjoint(loaded)
    assert {"pyarrow", "numpy", "numba"}.isdisjoint(loaded)


@pytest.mark.parametrize("arguments", [*([name] for name in COMMANDS), ["generate", "agrawal"]], ids=" ".join)
def test_the_help_of_a_command_imports_nothing_that_takes_long(arguments):
    program = f"import sys; from sfumato import cli; cli.run([*{arguments}, '--help']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    assert done.stdout.startswith("Usage: sfumato")
    loaded = done.stdout.splitlines()[-1].split()
    assert f"sfumato.cli.{arguments[0]}" in loaded
    assert {"pandas", "numba", "pyarrow", "numpy", "pydantic", "pydantic_core"}.isdisjoint(loaded)


def test_the_reference_names_every_command_and_option_of_this_version():
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    for name in ("demo", "profile", "publish", "verify", "apply", "generate agrawal"):
        assert f"\n## sfumato {name}\n" in text
    for option in (
        "--engine", "--memory", "--format", "--seed", "--threads", "--ledger", "--quiet", "--verbose", "--overwrite",
        "--side-table", "--rows", "--function", "--salary", "--vary-constants",
    ):  # fmt: skip
        assert f"  {option} " in text
