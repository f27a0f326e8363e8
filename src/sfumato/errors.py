"""The error family. Every message is one sentence or two: what, where, what to do.

::

    SfumatoError
    ├── InputError             exit 2: the caller can mend it
    │   ├── TableError         a table that cannot be read or written
    │   ├── HierarchyError     a hierarchy that is not one
    │   ├── PolicyError        a policy that cannot be followed
    │   ├── MissingExtra       a package that an optional part needs is not installed
    │   └── NotYet             a planned option that this version lacks
    ├── PromiseError           exit 1: a requirement does not hold or cannot be met
    │   ├── RequirementUnreachable
    │   ├── RiskTooHigh
    │   └── VerificationFailed
    └── InternalError          exit 3: a bug of ours, never the user's fault

A :class:`Notice` is a warning: something that was recognized in a table, and said.

No message holds the value of a cell: columns, counts and positions only.
"""

from __future__ import annotations

import difflib
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any


class SfumatoError(Exception):
    """Anything that sfumato raises on purpose."""

    exit_code = 2


class InputError(SfumatoError):
    """The table, the policy or the command line is wrong, and the caller can mend it."""

    mistakes: tuple[Any, ...] = ()
    """Those of a policy, each with its place (:class:`sfumato.policy.mistakes.Mistake`)."""


class TableError(InputError):
    """A table that cannot be read or written."""


class HierarchyError(InputError):
    """A generalization hierarchy that cannot be read or does not fit its column."""


class PolicyError(InputError):
    """A policy that is malformed, or does not fit the table."""


class MissingExtra(InputError):  # noqa: N818 - reads as a sentence
    """A part of sfumato needs packages that come with an extra.

    >>> raise MissingExtra("evaluate", "Learning from a release")
    Traceback (most recent call last):
    ...
    sfumato.errors.MissingExtra: Learning from a release needs an extra: pip install "sfumato[evaluate]"
    """

    def __init__(self, extra: str, what: str) -> None:
        self.extra, self.what = extra, what
        super().__init__(f'{what} needs an extra: pip install "sfumato[{extra}]"')


class NotYet(InputError):  # noqa: N818 - "not yet" is the whole message
    """An option that the policy format has and this version does not."""

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(f"{what} is planned but not yet part of this version of sfumato.")


class PromiseError(SfumatoError):
    """A requirement does not hold or cannot be met."""

    exit_code = 1


class RequirementUnreachable(PromiseError):  # noqa: N818 - reads as a sentence
    """No recoding of these rows can satisfy the requirement."""

    def __init__(self, requirement: object, *, best: str, n_rows: int) -> None:
        self.requirement, self.best, self.n_rows = requirement, best, n_rows
        super().__init__(
            f"{requirement} cannot be met: even one single group of all {number_of(n_rows, 'row')} has only {best}. "
            "Ask for less, or add rows."
        )


class VerificationFailed(PromiseError):  # noqa: N818 - reads as a sentence
    """A release does not keep a claim; ``claims`` names each one that failed."""

    def __init__(self, failures: Iterable[str]) -> None:
        self.failures = tuple(failures)
        super().__init__("Verification failed: " + " ".join(self.failures))


class RiskTooHigh(PromiseError):  # noqa: N818 - reads as a sentence
    """The largest risk is above the limit that was asked for.

    >>> raise RiskTooHigh(0.5, 0.09)
    Traceback (most recent call last):
    ...
    sfumato.errors.RiskTooHigh: The largest risk is 0.5, above the limit of 0.09 (--at-most).
    """

    def __init__(self, largest: float, limit: float) -> None:
        self.largest, self.limit = largest, limit
        super().__init__(f"The largest risk is {largest:.3g}, above the limit of {limit:g} (--at-most).")


class BudgetExceeded(PromiseError):  # noqa: N818 - reads as a sentence
    """All releases of a table together would cost more than the owner allows."""

    def __init__(
        self, asked: Fraction, *, spent: Fraction, budget: Fraction, where: str, word: str = "epsilon"
    ) -> None:
        self.asked, self.spent, self.budget = asked, spent, budget
        nothing_more = (
            "Nothing more of this table can be published within it"
            if word == "epsilon"
            else "Nothing more with a delta above 0 can be published within it"
            + " (a budget that says nothing of delta allows none)" * (budget == 0)
        )
        super().__init__(
            f"A release of {word} {asked} would exceed the budget of {where}: {spent} of {budget} is spent. "
            + (nothing_more if spent >= budget else f"Ask for a smaller {word}")
            + "; what was published cannot be taken back."
        )


class PaperCannotPublish(PromiseError):  # noqa: N818 - reads as a sentence
    """The parameters of the paper's algorithm leave nothing that may be published."""

    def __init__(self, bound: str, *, n_rows: int) -> None:
        self.n_rows = n_rows
        super().__init__(
            f"The variant paper publishes boxes that cover more than {bound} rows (equation 10), and nothing of this "
            f"table of {n_rows:,} rows does, with enough utility: its parameters are none for a table like this. Take "
            "the variant repaired, with a public side-table; fewer columns or a smaller sample ask for fewer rows."
        )


class InternalError(SfumatoError):
    """A bug in sfumato."""

    exit_code = 3


class Notice(UserWarning):
    """Something that was recognized in a table, or looks odd there: not an error, but worth knowing.

    The command prints it on standard error; in Python it is a warning. It holds no cell.
    """


def notice(sentence: str) -> None:
    """Tell the user a :class:`Notice`."""
    warnings.warn(sentence, Notice, stacklevel=2)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint naming the nearest known word, or nothing.

    >>> did_you_mean("quasi-identifer", ["identifier", "quasi-identifier"])
    " Did you mean 'quasi-identifier'?"
    >>> did_you_mean("xyz", ["age"])
    ''
    """
    near = nearest(word, known)
    return f" Did you mean {near[0]!r}?" if near else ""


def number_of(n: int, thing: str, things: str = "") -> str:
    """How many of something, in words.

    >>> number_of(1, "cell"), number_of(1200, "row"), number_of(2, "box", "boxes")
    ('1 cell', '1,200 rows', '2 boxes')
    """
    return f"{n:,} {thing if n == 1 else things or thing + 's'}"


def enumerate_names(names: Sequence[str]) -> str:
    """Names in a sentence.

    >>> enumerate_names(["age", "sex", "zip"])
    'age, sex and zip'
    """
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def short(text: str) -> str:
    """A key or a word in quotes, cut to the length of a word.

    >>> short("quasi-identifer"), short("x" * 100)[-8:]
    ("'quasi-identifer'", "xxxx...'")
    """
    return repr(text if len(text) <= 60 else text[:57] + "...")


def printable(text: str) -> str:
    r"""Text that does to a terminal what it says, and nothing else: what steers one is written as an escape.

    >>> print(printable("job = '\x1b[2J'"))
    job = '\x1b[2J'
    """
    steering = ("Cc", "Cf", "Cs", "Zl", "Zp")
    return "".join(
        ascii(letter)[1:-1] if unicodedata.category(letter) in steering and letter != "\n" else letter
        for letter in text
    )


def nearest(word: str, known: Iterable[str]) -> list[str]:
    """The known word that looks most like it, if any does."""
    return difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)


@contextmanager
def of_side_table() -> Iterator[None]:
    """Say of an error that the side table has it."""
    try:
        yield
    except (TableError, HierarchyError) as error:
        raise TableError(f"In the side table: {error}") from None
