"""The formats of hierarchies, as plain data: texts and files in and out, no tree yet.

Everything that is read ends up as a :data:`Listing`: the label and the parent of each node, parents first.
:mod:`sfumato.policy.hierarchy.tree` makes checked trees of listings, and is where callers should go.

No error here names a label: a label may be the value of a cell.
"""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from sfumato.errors import HierarchyError

ROOT = "*"
"""The label of a root that nobody named."""

MAX_LEAVES = 1_000_000
MAX_NODES = 2 * MAX_LEAVES
MAX_HEIGHT = 256
"""Deeper trees are mistakes, and overrun the stack of every JSON reader."""

Label = str | None
Listing = tuple[list[Label], list[int]]

_NOT_TEXT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_END = "\x1a"  # no text that gets this far holds it


def load(path: Path) -> Listing:
    """Read a file of any of the formats, told apart by what is in it."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise HierarchyError("There is no such file.") from None
    except OSError as error:
        raise HierarchyError(f"It cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise HierarchyError("It is not a text file in UTF-8.") from None
    return parse(text, is_json=path.suffix.lower() == ".json")


def parse(text: str, *, is_json: bool = False) -> Listing:
    r"""Read the text of a file: JSON if it looks so (or must be), else delimited lines.

    >>> parse("a;North;*\nb;North;*\n")
    (['*', 'North', 'a', 'b'], [-1, 0, 1, 1])
    >>> parse('{"*": {"North": ["a", "b"]}}')
    (['*', 'North', 'a', 'b'], [-1, 0, 1, 1])
    """
    if _NOT_TEXT.search(text):
        raise HierarchyError("It holds control characters: is it a text file?")
    if is_json or re.match(r'\s*\{\s*["}]', text):
        return _of_json(text)
    rows = list(_read_lines(text))
    return of_levels((row for _, row in rows), lines=[line for line, _ in rows])


def _read_lines(text: str) -> Iterator[tuple[int, list[str]]]:
    """Line number and trimmed fields of each line that is not blank; quotes as in ARX and RFC 4180."""
    delimiter = _delimiter(text)
    lines = itertools.chain(io.StringIO(text, newline=""), [_END])  # an open quote would swallow the end
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
    while True:
        line = reader.line_num + 1
        try:
            fields = [value.strip() for value in next(reader, [""])]
        except csv.Error:
            raise HierarchyError(f"Line {line} is not delimited text.") from None
        if fields == [_END]:
            return
        if any(_END in value for value in fields):
            raise HierarchyError(f"Line {line} opens a quote that is never closed.")
        if fields not in ([], [""]):
            yield line, fields


def _delimiter(text: str) -> str:
    """``;`` as ARX writes it, or a comma: by the first line that is not blank, quoted parts apart."""
    bare = re.sub(r'"[^"]*"', "", text).lstrip()
    return ";" if ";" in bare.partition("\n")[0] else ","


def _of_json(text: str) -> Listing:
    try:
        data = json.loads(
            text,
            object_pairs_hook=_refuse_twins,
            parse_int=str,
            parse_float=str,
            parse_constant=_refuse_constant,
        )
    except json.JSONDecodeError as error:
        raise HierarchyError(f"It is not JSON: line {error.lineno}, column {error.colno}.") from None
    except RecursionError:
        raise HierarchyError(f"It is nested more than {MAX_HEIGHT} deep.") from None
    if not isinstance(data, dict):
        raise HierarchyError("It must be a JSON object: a tree, or levels named 0, 1, and so on.")
    is_levels = len(data) > 1 and list(data) == [str(level) for level in range(len(data))]
    labels, parents = _of_level_arrays(list(data.values())) if is_levels else of_tree(data)
    try:
        "".join(label or "" for label in labels).encode()
    except UnicodeEncodeError:
        raise HierarchyError("It holds half characters (lone surrogates).") from None
    return labels, parents


def _refuse_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object as a mapping; an error if two of its labels are the same."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise HierarchyError(f"Labels that repeat under one parent: {len(pairs) - len(found)}.")
    return found


def _refuse_constant(_: str) -> NoReturn:
    raise HierarchyError("NaN and Infinity cannot be labels.")


def _of_level_arrays(levels: Sequence[Any]) -> Listing:
    """As anjana: one array per level, aligned by position; an entry per value, or per row of a table."""
    if not all(isinstance(level, list) for level in levels) or len({len(level) for level in levels}) > 1:
        raise HierarchyError("Its levels must be lists of one length.")
    rows = [[_label(value) for value in row] for row in zip(*levels, strict=True)]
    return of_levels(rows, last_wins=False)


def of_tree(tree: Mapping[Any, Any] | Sequence[Any]) -> Listing:
    """A nested mapping of labels; see :meth:`sfumato.policy.hierarchy.tree.Hierarchy.from_tree`."""
    top = _entries(tree)
    if not top:
        raise HierarchyError("It is empty.")
    start = top[0] if len(top) == 1 and isinstance(tree, Mapping) else (ROOT, tree)
    labels: list[Label] = []
    parents: list[int] = []
    stack: list[tuple[Label, Any, int, int]] = [(*start, -1, 0)]
    while stack:
        label, below, parent, depth = stack.pop()
        if depth > MAX_HEIGHT:
            raise HierarchyError(f"It is nested more than {MAX_HEIGHT} deep, or contains itself.")
        if len(labels) == MAX_NODES:
            raise HierarchyError(f"It has more than {MAX_NODES:,} nodes.")
        node = len(labels)
        labels.append(label)
        parents.append(parent)
        stack.extend((*entry, node, depth + 1) for entry in reversed(_entries(below)))
    return labels, parents


def _entries(below: Any) -> list[tuple[Label, Any]]:
    """The children that a piece of a nested tree stands for: label, and what is below it."""
    if below is None:
        return []
    if isinstance(below, Mapping):
        return [(_label(key), value) for key, value in below.items()]
    if isinstance(below, str) or not isinstance(below, Sequence):
        raise HierarchyError("Below a label there must be a mapping, a list of labels, or nothing.")
    found: list[tuple[Label, Any]] = []
    for item in below:
        if isinstance(item, Mapping):
            found.extend(_entries(item))
        else:
            found.append((None if item is None else _label(item), None))
    return found


def _label(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise HierarchyError("A label must be a text or a number.")
    text = value if isinstance(value, str) else as_text(value)
    if not text:
        raise HierarchyError("A label is empty.")
    return text


def as_text(number: float) -> str:
    """A number as its shortest text.

    >>> as_text(5.0), as_text(-0.25), as_text(1e300)
    ('5', '-0.25', '1e+300')
    """
    if isinstance(number, int) or (number.is_integer() and abs(number) < 1e16):
        return str(int(number))
    return repr(float(number))


def of_paths(rows: Iterable[Sequence[str]]) -> Listing:
    """One row per leaf, from the root down; see :meth:`sfumato.policy.hierarchy.tree.Hierarchy.from_paths`."""
    node_of: dict[tuple[int, str], int] = {}
    ends = set()
    for row in rows:
        node = -1
        for label in row:
            node = node_of.setdefault((node, label), len(node_of))
        ends.add(node)
    parents = [parent for parent, _ in node_of]
    if parents.count(-1) != 1 or -1 in ends:
        raise HierarchyError("Its paths do not all start at one root.")
    if inner := len(ends.intersection(parents)):
        raise HierarchyError(f"Paths that end at a node which other paths run through: {inner}.")
    return [label for _, label in node_of], parents


def of_levels(
    rows: Iterable[Sequence[str]], *, lines: Sequence[int] | None = None, last_wins: bool = True
) -> Listing:
    """One row per leaf, from the leaf up; see :meth:`sfumato.policy.hierarchy.tree.Hierarchy.from_levels`.

    ``lines`` are the lines of a file where rows stand, for messages. Of several rows of a leaf the last one holds, or
    without ``last_wins`` they must be the same.
    """
    rows = list(rows)
    places = [f"Row {i}" for i in range(1, len(rows) + 1)] if lines is None else [f"Line {i}" for i in lines]
    _check_shape(rows, places)
    used = {row[0]: i for i, row in enumerate(rows)}.values() if last_wins else range(len(rows))
    above: list[dict[str, str]] = [{} for _ in rows[0]]  # per level: label -> its label one level up
    for i in used:
        for level, (label, up) in enumerate(zip(rows[i], (*rows[i][1:], ROOT), strict=True)):
            if above[level].setdefault(label, up) != up:
                raise HierarchyError(
                    f"{places[i]} gives a label of field {level + 1} another label in field {level + 2} than "
                    "an earlier row does. One label must always lead to the same next one."
                )
    return _stack_levels(above)


def _check_shape(rows: Sequence[Sequence[str]], places: Sequence[str]) -> None:
    if not rows:
        raise HierarchyError("It is empty.")
    if len(rows) > MAX_LEAVES:
        raise HierarchyError(f"It has more than {MAX_LEAVES:,} rows.")
    for row, place in zip(rows, places, strict=True):
        if len(row) != len(rows[0]):
            raise HierarchyError(
                f"{place} has {len(row)} fields, {places[0].lower()} has {len(rows[0])}. "
                "Every row needs the same number of levels."
            )
        if not all(row):
            raise HierarchyError(f"{place} has an empty field.")


def _stack_levels(above: Sequence[Mapping[str, str]]) -> Listing:
    """Levels, leaves first, as nodes, top first; a top of several labels gets a root of its own."""
    labels: list[Label] = [ROOT] if len(above[-1]) > 1 else []
    parents = [-1] * len(labels)
    node_of = dict.fromkeys(labels, 0)
    for level in reversed(above):
        first = len(labels)
        parents.extend(node_of.get(up, -1) for up in level.values())
        labels.extend(level)
        node_of = {label: first + i for i, label in enumerate(level)}
    return labels, parents


def delimited_text(rows: Iterable[Sequence[Label]], *, delimiter: str = ";") -> str:
    r"""Rows of levels as ARX writes them. A field that could be taken for two is quoted.

    >>> delimited_text([("a", "b, c", "*")])
    'a;"b, c";*\n'
    """
    quotable = re.compile(r'[;,"\r\n]|^\s|\s$')
    return "".join(
        delimiter.join('"' + v.replace('"', '""') + '"' if quotable.search(v) else v for v in map(str, row))
        + "\n"
        for row in rows
    )


def write_whole(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        raise HierarchyError(f"It cannot be written: {error.strerror}.") from None
    finally:
        with contextlib.suppress(OSError):
            part.unlink()
