"""The glossary against the code: each word stands once and is used; words that it replaces are in no name."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
SOURCES = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "src").rglob("*.py"))}


def entries_of(glossary: str) -> list[str]:
    """The words that are explained."""
    first_cells = [line.split("|")[1] for line in glossary.splitlines() if line.startswith("| **")]
    return [word for cell in first_cells for word in re.findall(r"\*\*([^*]+)\*\*", cell)]


def replaced_words(glossary: str) -> dict[str, str]:
    """Words that no name may hold, each with the word to use."""
    found: dict[str, str] = {}
    for line in glossary.splitlines():
        if line.startswith("| **"):
            cells = line.split("|")
            word = re.findall(r"\*\*([^*]+)\*\*", cells[1])[0]
            found |= dict.fromkeys(re.findall(r"`([^`]+)`", cells[3]), word)
    return found


def words_of(name: str) -> str:
    """A name as plain words.

    >>> words_of("KeyAttribute"), words_of("_is_record")
    (' key attribute ', ' is record ')
    """
    return " " + " ".join(re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)).lower() + " "


def names_in(sources: dict[Path, str]) -> Iterator[tuple[Path, str]]:
    """Modules, classes and functions."""
    for path, text in sources.items():
        yield path, path.stem
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                yield path, node.name


def names_with_replaced_words(sources: dict[Path, str], glossary: str) -> list[str]:
    replaced = {
        words_of(word.replace("-", " ")).strip(): (word, use)
        for word, use in replaced_words(glossary).items()
    }
    return [
        f"{path.name}: {name} says {word!r}; the glossary's word is {use!r}."
        for path, name in names_in(sources)
        for spelled, (word, use) in replaced.items()
        if f" {spelled} " in words_of(name) or f" {spelled}s " in words_of(name)
    ]


def unused_entries(sources: dict[Path, str], glossary: str) -> list[str]:
    text = plain(" ".join(sources.values()))
    return [word for word in entries_of(glossary) if f" {plain(word)}" not in text]


def plain(text: str) -> str:
    """Small letters with single blanks between words."""
    return re.sub(r"[\W_]+", " ", text).lower()


def test_no_word_is_explained_twice():
    assert [word for word, times in Counter(entries_of(GLOSSARY)).items() if times > 1] == []
    assert len(entries_of(GLOSSARY)) > 60


def test_every_word_is_used_by_the_code():
    assert unused_entries(SOURCES, GLOSSARY) == []


def test_no_name_holds_a_word_that_the_glossary_replaces():
    wrong = names_with_replaced_words(SOURCES, GLOSSARY)
    assert not wrong, "\n" + "\n".join(wrong)


def test_no_word_is_both_used_and_replaced():
    assert set(entries_of(GLOSSARY)) & set(replaced_words(GLOSSARY)) == set()


# ---- the checks can fail -----------------------------------------------------------------------------

SMALL = "| **row** | a line | `record`, tuple |\n| **box** | ranges | `hyper-box` |\n"


def test_a_replaced_word_is_found_in_names_of_every_kind():
    sources = {
        Path("records.py"): "class KeptRecord: ...\ndef tuple_of(): ...\ndef hyper_box(): 'a box, a row'\n"
    }
    assert names_with_replaced_words(sources, SMALL) == [
        "records.py: records says 'record'; the glossary's word is 'row'.",
        "records.py: KeptRecord says 'record'; the glossary's word is 'row'.",
        "records.py: hyper_box says 'hyper-box'; the glossary's word is 'box'.",
    ]


def test_a_word_that_nobody_uses_is_found():
    assert unused_entries({Path("a.py"): "def rows(): ..."}, SMALL) == ["box"]
