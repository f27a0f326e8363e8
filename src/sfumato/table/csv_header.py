"""What the first lines of a text show: whether there is a header above the rows, and whether it is a table at all."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

_JSON = re.compile(rb'\s*(\{\s*(["}]|\Z)|\[\s*([{\["\]]|-?\d|true|false|null|\Z))')
_NUMBER_OR_DATE = re.compile(
    r"[+-]?[\d.,]*\d[\d.,]*([eE][+-]?\d+)?|\d{1,4}[-./]\d{1,2}[-./]\d{1,4}([T ][\d:.]+)?"
)


def looks_like_json(head: bytes) -> bool:
    r"""Whether a text begins as JSON does.

    >>> looks_like_json(b'[{"age": 30}]'), looks_like_json(b'{"age": 30}\n'), looks_like_json(b"[id],[age]\n")
    (True, True, False)
    """
    return _JSON.match(head) is not None


def lacks_header(header: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first line is a row like those below it.

    Above columns of numbers and dates stand numbers and dates, and they do not ascend like years; or a text comes again
    below itself. Where there is nothing but text, most of it does.

    >>> lacks_header(["39", "Private"], [["50", "Private"], ["38", "Private"]])
    True
    >>> lacks_header(["country", "2019", "2020"], [["Chad", "1", "2"], ["Mali", "3", "4"]])
    False
    """
    names = [name.strip() for name in header]
    columns = [
        [cell.strip() for cell in column]
        for column in zip(*(r for r in rows if len(r) == len(names)), strict=True)
    ]
    if not columns:
        return False
    each = list(zip(names, columns, strict=True))
    telling = [name for name, column in each if _are_numbers_or_dates(column)]
    if not all(map(_is_number_or_date, telling)):
        return False
    texts = [(name, column) for name, column in each if not _are_numbers_or_dates(column)]
    n_again = sum(bool(name) and column.count(name) > 1 for name, column in texts)
    if telling:
        return n_again > 0 or not _ascend(telling)
    return len(texts) > 1 and 2 * n_again > len(texts)


def _is_number_or_date(text: str) -> bool:
    return _NUMBER_OR_DATE.fullmatch(text) is not None


def _are_numbers_or_dates(cells: Sequence[str]) -> bool:
    present = [cell for cell in cells if cell]
    return bool(present) and all(map(_is_number_or_date, present))


def _ascend(names: Sequence[str]) -> bool:
    """Whether names are whole numbers that ascend, as those of years do."""
    if not all(name.isdecimal() for name in names):
        return False
    numbers = list(map(int, names))
    return all(first < second for first, second in itertools.pairwise(numbers))
