"""Publish a table about people without publishing the people in it.

Before
    :func:`profile` looks at a table and drafts a policy for it.

The one path
    :func:`publish` takes a table and a :class:`Policy` and returns a verified :class:`Release`. A :class:`Reading`
    says how the text of a table is written, where that cannot be seen.

What to say in a policy
    :class:`Schema` of the columns; requirements :class:`KAnonymity`, :class:`EntropyDiversity`,
    :class:`RecursiveDiversity`, :class:`VarianceDiversity`; tasks :class:`Classify`, :class:`Regress`,
    :class:`Select`, :class:`Aggregate`.

For models and pipelines
    :class:`Mondrian` learns a :class:`Recoding` from some rows and recodes any others.

For measuring
    :func:`evaluate` trains models on what a policy would publish, and tests them on held-out rows; :func:`compare`
    does so for many settings, and shows utility against risk.

For checking
    :func:`verify_folder` and :func:`verify_table` judge a release, or a table of any other tool, by its rows.

A map of the package, from the bottom up: ``errors``; ``randomness`` and ``kernels`` (compiled loops);
``schema``; ``hierarchy``; ``requirement``, ``workload`` and ``policy``; ``tables`` (any table as Arrow, opened by a
``reading``) and ``spill`` (what does not fit in memory); ``encoding`` (columns as small integers); ``recoding``,
``cuts``, ``selection``, ``answers`` and ``release``; ``engines`` and ``verify``; ``intake`` (a file as blocks of codes);
``mondrian`` (with ``rothko``, for tables larger than memory), ``specialization`` and ``tradeoff`` (a box for each row);
``methods``; ``evaluate``; ``compare``; ``report``; ``publish`` and ``large``; ``cli``. Imports go down this list only.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.compare import compare
    from sfumato.evaluate import evaluate
    from sfumato.hierarchy import Hierarchy
    from sfumato.mondrian.estimator import Mondrian
    from sfumato.policy import Policy
    from sfumato.profile import profile
    from sfumato.publish import publish
    from sfumato.reading import Reading
    from sfumato.recoding import Recoding
    from sfumato.release import Release
    from sfumato.requirement import EntropyDiversity, KAnonymity, RecursiveDiversity, VarianceDiversity
    from sfumato.schema import Attribute, Schema
    from sfumato.verify import verify_folder, verify_table
    from sfumato.workload import Aggregate, Classify, Regress, Select

_HOMES = {
    "Aggregate": "workload",
    "Attribute": "schema",
    "Classify": "workload",
    "EntropyDiversity": "requirement",
    "Hierarchy": "hierarchy",
    "KAnonymity": "requirement",
    "Mondrian": "mondrian.estimator",
    "Policy": "policy",
    "Reading": "reading",
    "Recoding": "recoding",
    "RecursiveDiversity": "requirement",
    "Regress": "workload",
    "Release": "release",
    "Schema": "schema",
    "Select": "workload",
    "VarianceDiversity": "requirement",
    "compare": "compare",
    "evaluate": "evaluate",
    "profile": "profile",
    "publish": "publish",
    "verify_folder": "verify",
    "verify_table": "verify",
}

__all__ = [
    "Aggregate",
    "Attribute",
    "Classify",
    "EntropyDiversity",
    "Hierarchy",
    "KAnonymity",
    "Mondrian",
    "Policy",
    "Reading",
    "Recoding",
    "RecursiveDiversity",
    "Regress",
    "Release",
    "Schema",
    "Select",
    "VarianceDiversity",
    "compare",
    "evaluate",
    "profile",
    "publish",
    "verify_folder",
    "verify_table",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for: the command line starts quickly."""
    if name not in _HOMES:
        raise AttributeError(f"module 'sfumato' has no attribute {name!r}")
    return getattr(importlib.import_module(f"sfumato.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)


class _Package(ModuleType):
    """Importing the module ``sfumato.publish`` must not hide the function of that name."""

    def __setattr__(self, name: str, value: Any) -> None:
        is_hiding = name in _HOMES and isinstance(value, ModuleType)
        super().__setattr__(name, getattr(value, name) if is_hiding else value)


sys.modules[__name__].__class__ = _Package
