"""What all releases of one table have cost together: epsilon adds up, and only the owner can remember.

An account is a small JSON file of the owner's, outside any release. Each private release is written into it before
anything is drawn, and stays there whatever becomes of the run. With a ``budget`` in it, releases that would cost
more are refused::

    {"budget": "2", "releases": [{"release": "out", "epsilon": "1/2"}]}
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


def charge(path: Path, release: str, epsilon: Fraction) -> None:
    """Write a release into the account, which is begun if it is not there; raises if the budget does not allow it."""
    with _alone(path):
        document = _read(path)
        spent = sum((_number(entry["epsilon"], path) for entry in document["releases"]), Fraction(0))
        budget = document.get("budget")
        if budget is not None and spent + epsilon > _number(budget, path):
            raise BudgetExceeded(epsilon, spent=spent, budget=_number(budget, path), where=str(path))
        document["releases"].append({"release": release, "epsilon": str(epsilon)})
        with replace_atomically(path) as temporary:
            temporary.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {"releases": []}
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        document.setdefault("releases", [])
        if all(isinstance(entry["epsilon"], str) for entry in document["releases"]):
            return dict(document)
    except OSError:
        raise InputError(f"{path} cannot be read.") from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        pass
    raise InputError(f"{path} is no ledger of releases; name another file, or mend it.")


def _number(text: Any, path: Path) -> Fraction:
    try:
        number = Fraction(str(text))
    except (ValueError, ZeroDivisionError):
        number = Fraction(-1)
    if number < 0:
        raise InputError(f"{path} holds an epsilon that is no number of at least 0; mend it.")
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
