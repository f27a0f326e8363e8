"""Labels of rests that say what they exclude, such as ``* (not US, Peru)``, taken apart.

Shares nothing with the modules that write such labels.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

MISSING = "missing"
"""What labels call missing cells that they exclude."""

_FORM = re.compile(r"(?P<node>.+) \(not (?P<names>.+)\)", re.DOTALL)
_COMMA = ", "


class RestLabel(NamedTuple):
    """The label of the node that covers a rest, and the names of what is not among its rows, as they stand."""

    node: str
    names: str

    @classmethod
    def read(cls, label: str) -> RestLabel | None:
        """The label taken apart; None if it excludes nothing.

        >>> RestLabel.read("* (not US, Peru)"), RestLabel.read("US")
        (RestLabel(node='*', names='US, Peru'), None)
        """
        found = _FORM.fullmatch(label)
        return None if found is None else cls(found["node"], found["names"])

    def find_excluded(self, is_name: Callable[[str], bool]) -> frozenset[str]:
        """The names that are surely meant: a name may hold commas, so there may be several readings.

        >>> RestLabel("*", "US, Peru").find_excluded({"US", "Peru", "US, Peru", "Cuba"}.__contains__)
        frozenset()
        >>> sorted(RestLabel("*", "US, West, Peru").find_excluded({"US, West", "Peru"}.__contains__))
        ['Peru', 'US, West']
        """
        parts = self.names.split(_COMMA)
        sure: list[frozenset[str] | None] = [None] * len(parts) + [frozenset()]
        for start in reversed(range(len(parts))):
            for end in range(start + 1, len(parts) + 1):
                name, after = _COMMA.join(parts[start:end]), sure[end]
                if after is not None and is_name(name):
                    known = sure[start]
                    sure[start] = (after | {name}) if known is None else known & (after | {name})
        return sure[0] or frozenset()
