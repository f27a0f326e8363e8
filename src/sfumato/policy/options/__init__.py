"""What each method can be told in a policy: ``mondrian``, ``tds``, ``diffgen``, ``risk_utility``.

Each class of options answers the questions of :class:`MethodOptions` (``method``). ``sampling_plan`` belongs to the
private form of ``risk_utility``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sfumato.policy.model import OneOf, OrNothing
from sfumato.policy.options.diffgen import DiffGenOptions
from sfumato.policy.options.method import MethodOptions
from sfumato.policy.options.mondrian import MondrianOptions
from sfumato.policy.options.risk_utility import RiskUtilityOptions
from sfumato.policy.options.tds import TdsOptions
from sfumato.policy.rules import ChoiceRule, Either

OPTIONS: Mapping[str, type[MethodOptions]] = {
    options.name: options for options in (MondrianOptions, TdsOptions, DiffGenOptions, RiskUtilityOptions)
}
"""The options of each method, by its name in a policy."""

DEFAULT_METHOD = MondrianOptions.name
"""The method of a policy that names none."""


def kinds_in(document: Any) -> Iterator[type[MethodOptions]]:
    """The options of the methods that a document names under ``method``; none of what is no such document.

    >>> [kind.__name__ for kind in kinds_in({"tds": {}})], list(kinds_in(5))
    (['TdsOptions'], [])
    """
    names = document if isinstance(document, Mapping) else ()
    return (OPTIONS[name] for name in names if name in OPTIONS)


_SAYS = (
    "must be the name of one method, such as mondrian, or that name with its options, such as {mondrian: {standardize: "
    "true}}."
)
METHOD = Either(
    "How the groups are found: the name of a method, or the name with its options.",
    says=_SAYS,
    one=ChoiceRule(words=tuple(OPTIONS)),
    other=OneOf(says=_SAYS, keys={name: OrNothing(part=options) for name, options in OPTIONS.items()}),
)
"""What a policy may say under ``method``."""

__all__ = ["DEFAULT_METHOD", "METHOD", "OPTIONS", "MethodOptions", "kinds_in"]
