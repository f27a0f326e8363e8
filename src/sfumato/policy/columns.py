"""The columns that the rest of a policy refers to by name."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.errors import did_you_mean
from sfumato.policy.mistakes import Misfit, Unsure
from sfumato.policy.schema import Attribute, Schema
from sfumato.policy.yaml import Where, short


@dataclass(frozen=True, slots=True)
class BrokenAttribute(Attribute):
    """A column whose declaration has mistakes: nothing that refers to it can be judged."""


def declared_column(name: str, schema: Schema, path: Where) -> Attribute:
    """The column of that name; a :class:`Misfit` if the policy declares none."""
    attribute = schema.find(name)
    if attribute is None:
        hint = did_you_mean(name, schema.names())
        raise Misfit(path, f"column {short(name)} does not stand under attributes.{hint}")
    if isinstance(attribute, BrokenAttribute):
        raise Unsure(path, f"column {short(name)} has mistakes of its own.")
    return attribute
