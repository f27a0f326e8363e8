"""Mistakes of a policy: what is wrong, where it stands, and all of them in one error.

A check raises a :class:`Misfit`; :class:`Mistakes` collects those of many checks, so that an author sees all of them
at once. One mistake is one sentence; several are a list with a line for each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from sfumato.errors import HierarchyError, InputError, PolicyError, short
from sfumato.policy.yaml import Where

MOST_LISTED = 100
"""Mistakes that one error lists; of more, the number is said."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """What is wrong with a value. ``says_where``: the sentence names the place itself."""

    where: Where
    sentence: str
    kind: type[InputError] = PolicyError
    says_where: bool = False
    line: int | None = None

    def words(self) -> str:
        """The sentence, with the place before it."""
        place_first = [place(self.where)] if self.where and not self.says_where else []
        return ": ".join([*place_first, self.sentence])


class Misfit(PolicyError):  # noqa: N818 - what it is, not that it is an error
    """A value that does not fit, and where it stands; whoever knows the file adds its name and line."""

    def __init__(self, where: Where, sentence: str) -> None:
        self.where, self.sentence = where, sentence
        self.mistakes = (Mistake(where, sentence),)
        super().__init__(Origin().about(Mistake(where, sentence)))


class Unsure(Misfit):
    """A value that cannot be checked: what it refers to is a mistake itself, and is reported as such."""

    def __init__(self, where: Where, sentence: str) -> None:
        super().__init__(where, sentence)
        self.mistakes = ()


class PolicyMistakes(PolicyError):  # noqa: N818 - reads as a sentence
    """Several mistakes of one policy, in the order in which they stand there.

    >>> both = [Mistake(("title",), "must be one line."), Mistake(("output",), "must be a mapping.")]
    >>> print(PolicyMistakes(both))
    The policy has 2 mistakes:
      title: must be one line.
      output: must be a mapping.
    >>> print(PolicyMistakes(both[:1]))
    Policy: title: must be one line.
    """

    def __init__(self, mistakes: Iterable[Mistake], origin: Origin | None = None) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__((origin or Origin()).list(self.mistakes))


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a policy comes from: the name of its file, and the line of each value where known."""

    name: str = "Policy"
    lines: Mapping[Where, int] = field(default_factory=dict)

    def line(self, where: Where) -> int | None:
        """The line of a value, or of the nearest one around it."""
        while where and where not in self.lines:
            where = where[:-1]
        return self.lines.get(where)

    def of_columns(self) -> Origin:
        """The same with the lines of columns alone."""
        return Origin(
            self.name, {w: n for w, n in self.lines.items() if len(w) == 2 and w[0] == "attributes"}
        )

    def line_of(self, mistake: Mistake) -> int | None:
        return self.line(mistake.where) if mistake.line is None else mistake.line

    def about(self, mistake: Mistake) -> str:
        """One mistake in a sentence, with file, line and place before it."""
        line = self.line_of(mistake)
        return f"{self.name}{'' if line is None else f', line {line}'}: {mistake.words()}"

    def list(self, mistakes: Iterable[Mistake]) -> str:
        """Several mistakes, a line for each; a single one is a sentence."""
        ordered = sorted(mistakes, key=lambda mistake: self.line_of(mistake) or 0)
        if len(ordered) == 1:
            return self.about(ordered[0])
        head = "The policy" if self.name == "Policy" else self.name
        lines = [f"{head} has {len(ordered):,} mistakes:"]
        for mistake in ordered[:MOST_LISTED]:
            line = self.line_of(mistake)
            lines.append(f"  {'' if line is None else f'line {line}: '}{mistake.kind(mistake.words())}")
        more = len(ordered) - MOST_LISTED
        return "\n".join([*lines, *([f"  and {more:,} more."] if more > 0 else [])])

    def error(self, mistakes: Iterable[Mistake]) -> InputError:
        """The error for one mistake, or for several."""
        found = tuple(dict.fromkeys(mistakes))
        if len(found) > 1:
            return PolicyMistakes(found, self)
        error = found[0].kind(self.about(found[0]))
        error.mistakes = found
        return error


class Mistakes:
    """Collects what checks complain about.

    >>> mistakes = Mistakes()
    >>> with mistakes.collect():
    ...     raise Misfit(("title",), "must be one line.")
    >>> mistakes.found[0].words()
    'title: must be one line.'
    """

    def __init__(self, found: Iterable[Mistake] = ()) -> None:
        self.found = list(found)

    @contextmanager
    def collect(self) -> Iterator[None]:
        """Keep what the block complains about, and go on after it."""
        try:
            yield
        except (Misfit, PolicyMistakes) as error:
            self.found += error.mistakes

    @contextmanager
    def collect_hierarchy(self, name: str) -> Iterator[None]:
        """The same for the hierarchy of a column."""
        with self.collect():
            try:
                yield
            except HierarchyError as error:
                where = ("attributes", name, "hierarchy")
                self.found.append(Mistake(where, _without_column(error, name), HierarchyError))

    def find_broken(self, *start: str) -> set[str | int]:
        """The next key of every mistake that stands below ``start``."""
        depth = len(start)
        return {m.where[depth] for m in self.found if len(m.where) > depth and m.where[:depth] == start}

    def is_broken(self, *where: str | int) -> bool:
        """Is there a mistake at ``where``, or below it?"""
        return any(mistake.where[: len(where)] == where for mistake in self.found)

    def is_unreadable(self, *where: str | int) -> bool:
        """Is there a mistake at ``where`` itself? Then nothing is said of what stands below it, whatever that is."""
        return any(mistake.where == where for mistake in self.found)


@contextmanager
def at_hierarchy(name: str, where: Where) -> Iterator[None]:
    """Say of a faulty hierarchy of a column where it is declared."""
    try:
        yield
    except HierarchyError as error:
        raise Misfit(where, _without_column(error, name)) from None


def _without_column(error: HierarchyError, name: str) -> str:
    return str(error).removeprefix(f"The hierarchy of column {name!r}: ")


# --- words ------------------------------------------------------------------------------------------------

_ITEMS = {"require": "requirement", "workload": "task"}


def place(where: Where) -> str:
    """Where a value stands, in words.

    >>> place(("attributes", "age", "hierarchy", "mask")), place(("require", 0, "k-anonymity"))
    ("column 'age', hierarchy mask", 'requirement 1, k-anonymity')
    """
    if not where:
        return "the policy"
    head, rest = str(where[0]), where[1:]
    if rest and head == "attributes":
        head, rest = f"column {short(str(rest[0]))}", rest[1:]
    elif rest and head in _ITEMS and isinstance(rest[0], int):
        head, rest = f"{_ITEMS[head]} {rest[0] + 1}", rest[1:]
    else:
        return " ".join([head, *_words(rest)])
    return ", ".join([head, *([" ".join(_words(rest))] if rest else [])])


def _words(where: Where) -> list[str]:
    return [f"item {key + 1}" if isinstance(key, int) else short(key)[1:-1] for key in where]
