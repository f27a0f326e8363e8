"""The account of all private releases of one table: epsilons and deltas add up, and only the owner can remember.

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
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    ConfigDict,
    Field,
    PlainValidator,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from sfumato.errors import BudgetExceeded, InputError
from sfumato.release.strict_json import (
    DocumentError,
    RepeatedKeyError,
    StrictDocument,
    check,
    parse,
    wrong,
    wrong_as_a_whole,
)
from sfumato.table.files import hold_lock, open_plain, replace_atomically

_NUMBER = re.compile(
    r"\d{1,4000}(/\d{1,4000})?|\d{0,400}(\.\d{0,400})?(e[+-]?\d{1,3})?", re.ASCII | re.IGNORECASE
)
"""Fractions and decimals of a size that nobody has to wait for, unlike 1e999999999."""


def _read_amount(given: Any, info: ValidationInfo) -> Fraction:
    try:
        number = Fraction(str(given)) if _NUMBER.fullmatch(str(given).strip()) else Fraction(-1)
    except (ValueError, ZeroDivisionError):
        number = Fraction(-1)
    if number < 0:
        which = "an epsilon" if info.field_name == "epsilon" else "a delta"
        raise wrong_as_a_whole(f"it holds {which} that is no number of at least 0, or far too large")
    return number


Amount = Annotated[Fraction, PlainValidator(_read_amount), WithJsonSchema({"type": ["string", "number"]})]


class Cost(StrictDocument):
    """An epsilon and a delta: what a release cost, or what may be spent."""

    epsilon: Amount
    delta: Amount = Fraction(0)


class Entry(Cost):
    """One release. It may say more than what it cost."""

    model_config = ConfigDict(extra="allow")

    @model_validator(mode="before")
    @classmethod
    def _check_texts(cls, entry: Any) -> Any:
        """A release is written down in texts, and its exact fractions are no JSON numbers."""
        if isinstance(entry, dict) and not all(
            isinstance(entry.get(word, ""), str) for word in cls.model_fields
        ):
            raise wrong("must have epsilon and delta as texts")
        return entry


class Account(StrictDocument):
    """What the releases of one table have cost, and what they may cost together."""

    budget: Cost | None = None
    releases: Annotated[tuple[Entry, ...], Field(strict=False)] = ()

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, document: Any) -> Any:
        strange = (
            [word for word in document if word not in cls.model_fields] if isinstance(document, dict) else []
        )
        if strange:
            raise wrong_as_a_whole(f"it holds {strange[0]!r}, and a ledger has a budget and releases alone")
        return document

    @field_validator("budget", mode="before")
    @classmethod
    def _read_budget(cls, given: Any) -> Any:
        """A single number is an epsilon."""
        if not isinstance(given, dict):
            return None if given is None else {"epsilon": given}
        if "epsilon" not in given or {*given} - {*Cost.model_fields}:
            raise wrong_as_a_whole("it holds a budget that is neither a number nor epsilon and delta")
        return given

    def check_budget(self, asked: Mapping[str, Fraction], where: str) -> None:
        """Raise if a release that costs as much as is asked would exceed the budget."""
        if self.budget is None:
            return
        for word, cost in asked.items():
            spent = sum((getattr(entry, word) for entry in self.releases), Fraction(0))
            allowed = getattr(self.budget, word)
            if spent + cost > allowed:
                raise BudgetExceeded(cost, spent=spent, budget=allowed, where=where, word=word)


# ---- the file -----------------------------------------------------------------------------------------


def charge(path: Path, release: str, epsilon: Fraction, delta: Fraction = Fraction(0)) -> None:
    """Write a release into the account, which is begun if it is not there; raises if the budget does not allow it."""
    asked = {"epsilon": epsilon, "delta": delta}
    file = _resolve(path)  # sentences name it as the user does
    with _alone(file, path):
        document = _read(file, path)
        _check(document, path).check_budget(asked, str(path))
        paid = {word: str(number) for word, number in asked.items() if number or word == "epsilon"}
        document.setdefault("releases", []).append({"release": release, **paid})
        with replace_atomically(file) as temporary:
            temporary.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


@dataclass(slots=True)
class RunCharge:
    """Charges what a run costs to the owner's account, if there is one; a run that then fails says so."""

    account: str | os.PathLike[str] | None
    name: str = "in memory"
    check_target: Callable[[], None] = lambda: None
    """Raises if the folder of the release cannot be written any more."""
    note: str = ""

    def __call__(self, epsilon: Fraction, delta: Fraction = Fraction(0), /) -> None:
        """Charge the account, if there is still a place for the release."""
        if self.account is None:
            return
        account = Path(self.account)
        self.check_target()
        charge(account, self.name, epsilon, delta)
        cost = f"Epsilon {epsilon}" + (f" and delta {float(delta):.6g}" if delta else "")
        self.note = f"{cost} of this run stays charged to {account}: rows were drawn before this happened."

    @contextmanager
    def note_failures(self) -> Iterator[None]:
        """Add to an error that ends the run what the run had cost by then."""
        try:
            yield
        except BaseException as error:
            if self.note:
                error.add_note(self.note)
            raise


def _check(document: Any, path: Path) -> Account:
    try:
        return check(Account, document)
    except DocumentError as error:
        raise _no_ledger(path, error) from None


def _no_ledger(path: Path, why: DocumentError) -> InputError:
    return InputError(f"{path} is no ledger of releases: {why}; name another file, or mend it.")


def _resolve(path: Path) -> Path:
    """The file that a name leads to."""
    try:
        return path.resolve(strict=path.is_symlink())  # a link to nowhere is a mistake, not a new account
    except (OSError, RuntimeError):
        raise InputError(f"{path} is a link that leads nowhere; name the ledger itself.") from None


def _read(file: Path, path: Path) -> Any:
    """The document as its owner wrote it: what is read is written back as it stands."""
    try:
        with os.fdopen(open_plain(file), "rb") as opened:
            if os.fstat(opened.fileno()).st_nlink > 1:
                raise InputError(
                    f"{path} has a second name (a hard link), by which charges would be lost; give the ledger one name."
                )
            text = opened.read()
    except FileNotFoundError:
        return {}
    except OSError:
        raise InputError(f"{path} cannot be read.") from None
    try:
        return parse(text)
    except RepeatedKeyError as error:
        raise InputError(f"{path} holds the key {error.key!r} twice in one place; mend it.") from None
    except DocumentError as error:
        raise _no_ledger(path, error) from None


@contextmanager
def _alone(file: Path, path: Path) -> Iterator[None]:
    """No other run reads the account between our reading and our writing it."""
    lock = file.with_name(f".{file.name}.lock")
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


__all__ = ["RunCharge", "charge"]
