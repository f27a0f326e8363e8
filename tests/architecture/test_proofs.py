"""Every proof names the code that it is about, with a fingerprint: who changes the code reads the proof again.

A ``proof.md`` ends in a table, one line for each function or class::

    | 3 | `sfumato.privacy.ledger.Ledger` | `0123456789ab` |

The fingerprint is that of the code alone. Docstrings, comments on lines of their own, line breaks and indentation do not
count.
"""

from __future__ import annotations

import ast
import hashlib
import re
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PROOFS = sorted((ROOT / "src").rglob("proof.md"))
LINE = re.compile(
    r"^\| *(?P<step>\S+) *\| *`(?P<name>sfumato[\w.]+)` *\| *`(?P<fingerprint>\w*)` *\|$", re.MULTILINE
)


class Proved(NamedTuple):
    """One line of the table."""

    step: str
    name: str
    fingerprint: str


def proved_in(proof: str) -> list[Proved]:
    return [Proved(*found.group("step", "name", "fingerprint")) for found in LINE.finditer(proof)]


def source_of(name: str, folder: Path) -> str:
    """The text of the module, function, class or method of this dotted name."""
    parts = name.split(".")
    for n_parts in range(len(parts), 0, -1):
        path = folder.joinpath(*parts[:n_parts]).with_suffix(".py")
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            return part_of(text, parts[n_parts:])
    raise LookupError(f"{name} is not there any more: find what the step is about now.")


def part_of(text: str, path: list[str]) -> str:
    node: ast.AST = ast.parse(text)
    for name in path:
        found = [
            child
            for child in ast.iter_child_nodes(node)
            if isinstance(child, ast.FunctionDef | ast.ClassDef) and child.name == name
        ]
        if not found:
            raise LookupError(f"{'.'.join(path)} is not there any more: find what the step is about now.")
        node = found[-1]
    return without_words(text, node)


def without_words(text: str, node: ast.AST) -> str:
    """The code of a node, without docstrings, comments on lines of their own, and white space."""
    lines = text.splitlines()
    words = {
        number
        for inner in ast.walk(node)
        if isinstance(inner, ast.Expr)
        and isinstance(inner.value, ast.Constant)
        and isinstance(inner.value.value, str)
        for number in range(inner.lineno, (inner.end_lineno or inner.lineno) + 1)
    }
    first, last = (1, len(lines)) if isinstance(node, ast.Module) else (node.lineno, node.end_lineno)  # type: ignore[attr-defined]
    code = [
        lines[number - 1]
        for number in range(first, last + 1)
        if number not in words and not lines[number - 1].lstrip().startswith("#")
    ]
    return re.sub(r",(?=[)\]}])", "", re.sub(r"\s+", "", "".join(code)))


def fingerprint_of(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()[:12]


def changed_since_proved(proof: str, folder: Path) -> list[str]:
    """A sentence for each line of the table that does not fit the code."""
    wrong = []
    for step, name, stated in proved_in(proof):
        try:
            found = fingerprint_of(source_of(name, folder))
        except LookupError as error:
            wrong.append(f"step {step}: {error}")
            continue
        if found != stated:
            wrong.append(
                f"step {step}: {name} has changed. Read the step again beside it, then write `{found}`."
            )
    return wrong


# ---- the package -------------------------------------------------------------------------------------


def test_there_are_proofs():
    assert len(PROOFS) >= 2


@pytest.mark.parametrize("proof", PROOFS, ids=lambda path: path.parent.name)
def test_proved_code_is_as_it_was_when_it_was_proved(proof):
    wrong = changed_since_proved(proof.read_text(encoding="utf-8"), ROOT / "src")
    assert not wrong, f"\n{proof.relative_to(ROOT)}:\n" + "\n".join(wrong)


@pytest.mark.parametrize("proof", PROOFS, ids=lambda path: path.parent.name)
def test_every_step_of_a_proof_names_its_code(proof):
    text = proof.read_text(encoding="utf-8")
    steps = set(re.findall(r"^## (\d+)\. ", text, flags=re.MULTILINE))
    of_code = {line.step for line in proved_in(text)}
    without = set(re.findall(r"^No code of their own: steps? ([\d, and]+)", text, flags=re.MULTILINE))
    explained = {number for words in without for number in re.findall(r"\d+", words)}
    assert steps == of_code | explained


# ---- the checks can fail -----------------------------------------------------------------------------

BEFORE = '''
class Ledger:
    """Every draw."""

    def charge(self, share: int) -> None:
        """Take it off."""
        self.left -= share
'''


@pytest.fixture
def module(tmp_path):
    path = tmp_path / "sfumato" / "ledger.py"
    path.parent.mkdir()
    path.write_text(BEFORE, encoding="utf-8")
    return path


def proof_of(name: str, fingerprint: str) -> str:
    return f"| step | code | fingerprint |\n|---|---|---|\n| 3 | `sfumato.{name}` | `{fingerprint}` |\n"


@pytest.mark.parametrize("name", ["ledger", "ledger.Ledger", "ledger.Ledger.charge"])
def test_a_change_of_code_is_found_and_a_change_of_words_is_not(module, tmp_path, name):
    stated = fingerprint_of(source_of(f"sfumato.{name}", tmp_path))
    proof = proof_of(name, stated)
    assert changed_since_proved(proof, tmp_path) == []
    module.write_text(
        BEFORE.replace("Take it off.", "Take a share off.").replace(
            "share: int)", "\n        share: int,\n    )"
        ),
        encoding="utf-8",
    )
    assert changed_since_proved(proof, tmp_path) == []
    module.write_text(BEFORE.replace("-= share", "-= share // 2"), encoding="utf-8")
    changed = fingerprint_of(source_of(f"sfumato.{name}", tmp_path))
    assert changed_since_proved(proof, tmp_path) == [
        f"step 3: sfumato.{name} has changed. Read the step again beside it, then write `{changed}`."
    ]


def test_code_that_is_gone_is_found(module, tmp_path):
    assert changed_since_proved(proof_of("ledger.Ledger.refund", "0"), tmp_path) == [
        "step 3: Ledger.refund is not there any more: find what the step is about now."
    ]
    module.unlink()
    assert changed_since_proved(proof_of("ledger.Ledger", "0"), tmp_path) == [
        "step 3: sfumato.ledger.Ledger is not there any more: find what the step is about now."
    ]
