"""The methods: each is a package that drafts releases (``mondrian``, ``specialization``, ``risk_utility``).

``protocol`` says what a method is. ``METHODS`` has them by their names in a policy, and imports one when it is asked
for. Methods whose rows form groups share ``groups`` (from groups to published rows), ``refusals`` (why a column was not
split) and ``lost`` (what labels lose, and why). None of them knows where the rows live: that is for ``engines``.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping

from sfumato.errors import InternalError
from sfumato.methods.protocol import Grouping, Method, RowByRow
from sfumato.policy.document import Policy
from sfumato.progress import Progress, no_progress
from sfumato.recoding.recoder import Partition
from sfumato.table.source import Source


class _Methods(Mapping[str, Method]):
    """Methods by name, each imported when it is asked for."""

    def __init__(self, homes: Mapping[str, str]) -> None:
        self._homes = homes

    def __getitem__(self, name: str) -> Method:
        method: Method = importlib.import_module(f"sfumato.methods.{self._homes[name]}").METHOD
        return method

    def __iter__(self) -> Iterator[str]:
        return iter(self._homes)

    def __len__(self) -> int:
        return len(self._homes)


METHODS: Mapping[str, Method] = _Methods(
    {
        "mondrian": "mondrian.method",
        "tds": "specialization.tds",
        "diffgen": "specialization.diffgen.method",
        "risk-utility": "risk_utility.method",
    }
)
"""Every method, by its name in a policy."""


def partition(
    source: Source, policy: Policy, *, threads: int | None = None, progress: Progress = no_progress
) -> Partition:
    """Divide the rows into groups that satisfy every requirement, by the method of the policy."""
    method = METHODS[policy.method.name]
    if not isinstance(method, Grouping):
        raise InternalError(f"The method {policy.method.name} makes no groups.")
    return method.partition(source, policy, threads=threads, progress=progress)


def row_by_row(policy: Policy) -> RowByRow:
    """The method of a policy whose releases have no recoding: it generalizes further rows anew."""
    method = METHODS[policy.method.name]
    if not isinstance(method, RowByRow):
        raise InternalError(f"Rows are recoded, and not generalized anew, by {policy.method.name}.")
    return method


__all__ = ["METHODS", "partition", "row_by_row"]
