"""Publish a table about people without publishing the people in it.

Before
    :func:`profile` looks at a table and drafts a policy for it.

The one path
    :func:`publish` takes a table and a :class:`Policy` and returns a verified :class:`Release`. A :class:`Reading`
    says how the text of a table is written, where that cannot be seen.

What to say in a policy
    :class:`Schema` of the columns; requirements :class:`KAnonymity`, :class:`EntropyDiversity`,
    :class:`RecursiveDiversity`, :class:`VarianceDiversity`, :class:`DistinctDiversity`, :class:`TCloseness`; tasks
    :class:`Classify`, :class:`Regress`, :class:`Select`, :class:`Aggregate`.

For models and pipelines
    :class:`Mondrian` learns a :class:`Recoding` from some rows and recodes any others.

For measuring
    :func:`evaluate` trains models on what a policy would publish, and tests them on held-out rows; :func:`compare`
    does so for many settings, and shows utility against risk. :func:`risk` says how far a table or a release can be
    traced to people.

For checking
    :func:`verify_folder` and :func:`verify_table` check a release, or a table of any other tool, by its rows.

The packages, from the top down; an import goes down this list only: ``cli``, one function for each command;
``publishing``, the one path, and ``checking``; ``profiling``, ``comparison``, ``examples``; ``report``; ``evaluation``
and ``risk``, strangers to each other; ``methods`` (Mondrian, specialization, risk-utility) and ``verify``, which never
meet; ``engines`` and ``privacy``; ``release``; ``recoding``; ``encoding``; ``table``; ``policy``; ``kernels``, what
compiled loops share. Each says in its first lines what it is for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.checking import verify_folder, verify_table
    from sfumato.comparison import compare
    from sfumato.evaluation.protocol import evaluate
    from sfumato.methods.mondrian.estimator import Mondrian
    from sfumato.policy.document import Policy
    from sfumato.policy.hierarchy.tree import Hierarchy
    from sfumato.policy.requirements import (
        DistinctDiversity,
        EntropyDiversity,
        KAnonymity,
        RecursiveDiversity,
        TCloseness,
        VarianceDiversity,
    )
    from sfumato.policy.schema import Attribute, Schema
    from sfumato.policy.workload import Aggregate, Classify, Regress, Select
    from sfumato.profiling.profile import profile
    from sfumato.publishing import publish
    from sfumato.recoding.tree import Recoding
    from sfumato.release.release import Release
    from sfumato.risk.assess import risk
    from sfumato.table.reading import Reading

_HOMES = {
    "Aggregate": "policy.workload",
    "Attribute": "policy.schema",
    "Classify": "policy.workload",
    "DistinctDiversity": "policy.requirements",
    "EntropyDiversity": "policy.requirements",
    "Hierarchy": "policy.hierarchy.tree",
    "KAnonymity": "policy.requirements",
    "Mondrian": "methods.mondrian.estimator",
    "Policy": "policy.document",
    "Reading": "table.reading",
    "Recoding": "recoding.tree",
    "RecursiveDiversity": "policy.requirements",
    "Regress": "policy.workload",
    "Release": "release.release",
    "Schema": "policy.schema",
    "Select": "policy.workload",
    "TCloseness": "policy.requirements",
    "VarianceDiversity": "policy.requirements",
    "compare": "comparison",
    "evaluate": "evaluation.protocol",
    "profile": "profiling.profile",
    "publish": "publishing",
    "risk": "risk.assess",
    "verify_folder": "checking",
    "verify_table": "checking",
}

__all__ = [
    "Aggregate",
    "Attribute",
    "Classify",
    "DistinctDiversity",
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
    "TCloseness",
    "VarianceDiversity",
    "compare",
    "evaluate",
    "profile",
    "publish",
    "risk",
    "verify_folder",
    "verify_table",
]

importlib.import_module("sfumato.risk")
globals().pop(
    "risk"
)  # the package; imported once, it never takes the place of the function of its name again


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for: the command line starts quickly."""
    if name not in _HOMES:
        raise AttributeError(f"module 'sfumato' has no attribute {name!r}")
    return getattr(importlib.import_module(f"sfumato.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
