"""Hierarchies in plain data, as a policy writes them: a word, or a builder with its option."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sfumato.errors import HierarchyError, did_you_mean
from sfumato.policy.hierarchy.declarations import Balanced, Dates, Declaration, Flat, Given, Intervals, Mask
from sfumato.policy.hierarchy.library.codes import WORD, declare_from_library
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.kinds import Kind

BUILDERS: dict[str, Callable[[Any], Declaration]] = {
    Mask.word: Mask,
    Dates.word: Dates,
    Intervals.word: Intervals,
    Balanced.word: Balanced,
    Given.word: lambda tree: Given(Hierarchy.from_tree(tree)),
    WORD: declare_from_library,
}
"""Declarations with an option, by their word."""


def declare(given: Any, kind: Kind) -> Declaration | None:
    """The declaration that is given in plain data, for a column of this kind; None if none is.

    >>> declare({"mask": 5}, Kind.CATEGORY), declare("flat", Kind.DATE), declare(None, Kind.NUMBER)
    (Mask(n_characters=5), Flat(), None)
    """
    found = _read(given)
    if found is not None and kind not in found.kinds:
        raise HierarchyError(f"{found.word} is not for a column of type {kind}.")
    return found


def _read(given: Any) -> Declaration | None:
    if given is None or isinstance(given, Declaration):
        return given
    if isinstance(given, Hierarchy):
        return Given(given)
    if isinstance(given, str) and given == Flat.word:
        return Flat()
    if not isinstance(given, Mapping) or len(given) != 1:
        raise HierarchyError("It must be flat, a hierarchy that was read, or one builder such as {mask: 5}.")
    ((word, option),) = given.items()
    if word not in BUILDERS:
        known = ", ".join(BUILDERS)
        raise HierarchyError(f"There is no builder {word!r}, but {known}.{did_you_mean(str(word), BUILDERS)}")
    return BUILDERS[word](option)
