"""What all releases of one table have cost together: epsilons and deltas add up, and only the owner can remember.

An account is a small JSON file of the owner's, outside any release. Each private release is written into it before
anything is drawn, and stays there whatever becomes of the run. With a ``budget`` in it, releases that would cost
more are refused::

    {"budget": "2", "releases": [{"release": "out", "epsilon": "1/2"}]}
    {"budget": {"epsilon": "2", "delta": "1e-6"}, "releases": [{"release": "out", "epsilon": "1", "delta": "1e-7"}]}

A budget that says nothing of delta allows none. Two names of one account, where one is a link, are one account.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

from sfumato.errors import BudgetExceeded, InputError
from sfumato.table.files import replace_atomically
from sfumato.table.locks import hold_lock, open_plain

_NUMBER = re.compile(
    r"\d{1,4000}(/\d{1,4000})?|\d{0,400}(\.\d{0,400})?(e[+-]?\d{1,3})?", re.ASCII | re.IGNORECASE
)
"""Fractions and decimals of a size that nobody has to wait for, unlike 1e999999999."""


def charge(path: Path, release: str, epsilon: Fraction, delta: Fraction = Fraction(0)) -> None:
    """Write a release into the account, which is begun if it is not there; raises if the budget does not allow it."""
    asked = {"epsilon": epsilon, "delta": delta}
    account = _resolve(path)  # sentences name it as the user does
    with _alone(account, path):
        document = _read(account, path)
        for word, allowed in _budget(document, path).items():
            entries = document["releases"]
            spent = sum((_number(entry.get(word, "0"), path, word) for entry in entries), Fraction(0))
            if spent + asked[word] > allowed:
                raise BudgetExceeded(asked[word], spent=spent, budget=allowed, where=str(path), word=word)
        paid = {word: str(number) for word, number in asked.items() if number or word == "epsilon"}
        document["releases"].append({"release": release, **paid})
        with replace_atomically(account) as temporary:
            temporary.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _budget(document: dict[str, Any], path: Path) -> dict[str, Fraction]:
    """What may be spent of each, nothing where there is no budget; every release is looked at all the same."""
    for entry in document["releases"]:
        for word in ("epsilon", "delta"):
            _number(entry.get(word, "0"), path, word)
    if strange := [word for word in document if word not in ("budget", "releases")]:
        raise InputError(
            f"{path} holds {strange[0]!r}, and a ledger has a budget and releases alone; mend it."
        )
    given = document.get("budget")
    if given is None:
        return {}
    by_word = given if isinstance(given, dict) else {"epsilon": given}
    if "epsilon" not in by_word or {*by_word} - {"epsilon", "delta"}:
        raise InputError(f"{path} holds a budget that is neither a number nor epsilon and delta; mend it.")
    return {word: _number(by_word.get(word, "0"), path, word) for word in ("epsilon", "delta")}


def _resolve(path: Path) -> Path:
    """The file that a name leads to."""
    try:
        return path.resolve(strict=path.is_symlink())  # a link to nowhere is a mistake, not a new account
    except (OSError, RuntimeError):
        raise InputError(f"{path} is a link that leads nowhere; name the ledger itself.") from None


def _read(account: Path, path: Path) -> dict[str, Any]:
    try:
        with os.fdopen(open_plain(account), "rb") as file:
            if os.fstat(file.fileno()).st_nlink > 1:
                raise InputError(
                    f"{path} has a second name (a hard link), by which charges would be lost; give the ledger one name."
                )
            text = file.read()
    except FileNotFoundError:
        return {"releases": []}
    except OSError:
        raise InputError(f"{path} cannot be read.") from None
    try:
        document = json.loads(text.decode("utf-8"), object_pairs_hook=_without_repeats)
    except _KeyTwice as error:
        raise InputError(f"{path} holds the key {error.args[0]!r} twice in one place; mend it.") from None
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict) or not _are_releases(document.setdefault("releases", [])):
        raise InputError(f"{path} is no ledger of releases; name another file, or mend it.")
    return document


class _KeyTwice(Exception):  # noqa: N818 - not for users
    """JSON says what such a document means to nobody."""


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        names = [name for name, _ in pairs]
        raise _KeyTwice(next(name for name in names if names.count(name) > 1))
    return document


def _are_releases(entries: Any) -> bool:
    return isinstance(entries, list) and all(
        isinstance(entry, dict)
        and isinstance(entry.get("epsilon"), str)
        and isinstance(entry.get("delta", ""), str)
        for entry in entries
    )


def _number(text: Any, path: Path, word: str) -> Fraction:
    try:
        number = Fraction(str(text)) if _NUMBER.fullmatch(str(text).strip()) else Fraction(-1)
    except (ValueError, ZeroDivisionError):
        number = Fraction(-1)
    if number < 0:
        which = "an epsilon" if word == "epsilon" else "a delta"
        raise InputError(f"{path} holds {which} that is no number of at least 0, or far too large; mend it.")
    return number


@contextmanager
def _alone(account: Path, path: Path) -> Iterator[None]:
    """No other run reads the account between our reading and our writing it."""
    lock = account.with_name(f".{account.name}.lock")
    with ExitStack() as stack:
        try:
            stack.enter_context(hold_lock(lock))
        except OSError:
            reason = (
                " (something else has the name of its lock)" if lock.is_symlink() or lock.exists() else ""
            )
            raise InputError(
                f"{path} cannot be written{reason}; name a file in a folder that can be."
            ) from None
        yield


__all__ = ["charge"]
