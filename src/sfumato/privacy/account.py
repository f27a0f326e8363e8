"""What all releases of one table have cost together: epsilons and deltas add up, and only the owner can remember.

An account is a small JSON file of the owner's, outside any release. Each private release is written into it before
anything is drawn, and stays there whatever becomes of the run. With a ``budget`` in it, releases that would cost
more are refused::

    {"budget": "2", "releases": [{"release": "out", "epsilon": "1/2"}]}
    {"budget": {"epsilon": "2", "delta": "1e-6"}, "releases": [{"release": "out", "epsilon": "1", "delta": "1e-7"}]}

A budget that says nothing of delta allows none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

from sfumato.errors import BudgetExceeded, InputError
from sfumato.tables import replace_atomically

try:
    import fcntl
except ImportError:  # Windows has no such lock; two runs at once are then the owner's business
    fcntl = None  # type: ignore[assignment]


def charge(path: Path, release: str, epsilon: Fraction, delta: Fraction = Fraction(0)) -> None:
    """Write a release into the account, which is begun if it is not there; raises if the budget does not allow it."""
    asked = {"epsilon": epsilon, "delta": delta}
    with _alone(path):
        document = _read(path)
        for word, allowed in _budget(document, path).items():
            entries = document["releases"]
            spent = sum((_number(entry.get(word, "0"), path, word) for entry in entries), Fraction(0))
            if spent + asked[word] > allowed:
                raise BudgetExceeded(asked[word], spent=spent, budget=allowed, where=str(path), word=word)
        paid = {word: str(number) for word, number in asked.items() if number or word == "epsilon"}
        document["releases"].append({"release": release, **paid})
        with replace_atomically(path) as temporary:
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


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {"releases": []}
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        document.setdefault("releases", [])
        entries = document["releases"]
        if all(
            isinstance(entry["epsilon"], str) and isinstance(entry.get("delta", ""), str) for entry in entries
        ):
            return dict(document)
    except OSError:
        raise InputError(f"{path} cannot be read.") from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        pass
    raise InputError(f"{path} is no ledger of releases; name another file, or mend it.")


def _number(text: Any, path: Path, word: str) -> Fraction:
    try:
        number = Fraction(str(text))
    except (ValueError, ZeroDivisionError):
        number = Fraction(-1)
    if number < 0:
        which = "an epsilon" if word == "epsilon" else "a delta"
        raise InputError(f"{path} holds {which} that is no number of at least 0; mend it.")
    return number


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """No other run reads the account between our reading and our writing it."""
    if fcntl is None:
        yield
        return
    lock = path.with_name(f".{path.name}.lock")
    try:
        file = lock.open("wb")
    except OSError:
        raise InputError(f"{path} cannot be written; name a file in a folder that can be.") from None
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


__all__ = ["charge"]
