"""What the options of a method may ask of the rest of their policy."""

from __future__ import annotations

from typing import Protocol

from sfumato.policy.output import Output
from sfumato.policy.requirements import Requirement
from sfumato.policy.schema import Schema
from sfumato.policy.workload import Task


class RestOfPolicy(Protocol):
    """A policy, as far as its method looks at it."""

    @property
    def schema(self) -> Schema: ...

    @property
    def requirements(self) -> tuple[Requirement, ...]: ...

    @property
    def workload(self) -> tuple[Task, ...]: ...

    @property
    def output(self) -> Output: ...

    @property
    def rows(self) -> str: ...
