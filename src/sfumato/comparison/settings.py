"""Settings of a comparison: ``k=2,5,10`` and other choices, turned into policies."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeGuard

from sfumato.errors import InputError, did_you_mean
from sfumato.policy.document import Policy
from sfumato.policy.kinds import read_exactly
from sfumato.policy.model import rules_of
from sfumato.policy.options import OPTIONS, MethodOptions
from sfumato.policy.output import Output
from sfumato.policy.requirements import REQUIREMENTS, KAnonymity
from sfumato.policy.schema import Attribute, Role, Schema
from sfumato.policy.suppress import SHARE, Suppress
from sfumato.policy.unit import Unit
from sfumato.policy.workload import Aggregate, Select
from sfumato.policy.yaml import core

METHODS = tuple(OPTIONS)
OF_GROUPS = ("k", "l")
"""Words that say what must hold of groups; private releases have none, and boxes that are chosen row by row are none.
``epsilon`` is for private ones alone."""
OPTION_WORDS = (
    "criterion", "specializations", "score", "utility-at-least", "risk-at-most", "lambda", "kappa",
)  # fmt: skip
"""Options of methods that can be varied, by their names in a policy; a method without one is tried as it is."""


def parse_vary(given: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The settings to try, from texts such as ``k=2,5,10``.

    >>> parse_vary(["k=2,5", "method=mondrian,tds"])
    {'k': ('2', '5'), 'method': ('mondrian', 'tds')}
    """
    found: dict[str, tuple[str, ...]] = {}
    for text in given:
        word, sign, values = text.partition("=")
        word, choices = word.strip(), tuple(v.strip() for v in values.split(",") if v.strip())
        if word not in _CHECKS:
            hint = did_you_mean(word, _CHECKS) or f" Known are {', '.join(_CHECKS)}."
            raise InputError(f"--vary knows no {word!r}.{hint}")
        if not sign or not choices:
            raise InputError(f"--vary {word} needs values, such as {word}={_EXAMPLES[word]}.")
        if word in found:
            raise InputError(f"--vary {word} stands twice; give all its values at once, separated by commas.")
        for choice in choices:
            _CHECKS[word](choice)
        found[word] = tuple(dict.fromkeys(choices))
    if not found:
        raise InputError("Nothing is varied; say --vary k=2,5,10,50, for example.")
    return found


def _is_list(given: object) -> TypeGuard[Iterable[object]]:
    return isinstance(given, Iterable) and not isinstance(given, str)


def read_vary(given: Mapping[str, Sequence[object]] | Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The settings to try, as texts or as values of Python.

    >>> read_vary({"k": [2, 5], "workload": "on"})
    {'k': ('2', '5'), 'workload': ('on',)}
    >>> read_vary({"k": 5})
    {'k': ('5',)}
    """
    if not isinstance(given, Mapping):
        return parse_vary([given] if isinstance(given, str) else given)
    lists = {word: list(own) if _is_list(own) else [own] for word, own in given.items()}
    return parse_vary([f"{word}={','.join(map(str, own))}" for word, own in lists.items()])


# ---- combinations ----------------------------------------------------------------------------------------


def combinations(policy: Policy, vary: Mapping[str, Sequence[str]]) -> list[dict[str, str]]:
    """Every combination of what is varied, each once, without the words that its method does not know.

    A private one always names its epsilon.

    >>> policy = Policy.parse("{attributes: {age: {role: quasi-identifier}}, require: [k-anonymity: 5]}")
    >>> combinations(policy, {"method": ["tds", "diffgen"], "epsilon": ["0.5", "1"]})
    [{'method': 'tds'}, {'method': 'diffgen', 'epsilon': '0.5'}, {'method': 'diffgen', 'epsilon': '1'}]
    """
    _check_words(policy, vary)
    found: dict[tuple[tuple[str, str], ...], None] = {}
    for chosen in itertools.product(*vary.values()):
        choices = dict(zip(vary, chosen, strict=True))
        own = choices.get("method", policy.method.name)
        for word in OPTION_WORDS:
            if not has_option(own, word):
                choices.pop(word, None)
        if not OPTIONS[own].may_leave_rows_out:
            choices.pop("suppress", None)
        if not _makes_groups(own):
            choices = {word: choice for word, choice in choices.items() if word not in OF_GROUPS}
        if OPTIONS[own].spends_epsilon:
            choices["epsilon"] = choices.get("epsilon") or _epsilon_of(policy)
        else:
            choices.pop("epsilon", None)
        found[tuple(choices.items())] = None
    return [dict(items) for items in found]


def _check_words(policy: Policy, vary: Mapping[str, Sequence[str]]) -> None:
    """Raise where a word fits none of the methods, or a method lacks what makes it private."""
    methods = vary.get("method", (policy.method.name,))
    for word in OPTION_WORDS:
        if word in vary and not any(has_option(name, word) for name in methods):
            raise InputError(
                f"--vary {word} is an option that none of these methods has: {', '.join(methods)}."
            )
    if "suppress" in vary and not any(OPTIONS[name].may_leave_rows_out for name in methods):
        raise InputError(f"None of these methods leaves rows out: {', '.join(methods)}; leave out suppress.")
    others = [name for name in methods if _makes_groups(name)]
    has_private = any(OPTIONS[name].spends_epsilon for name in methods)
    if "epsilon" in vary and not has_private:
        raise InputError(
            "epsilon is what the method diffgen spends, and no setting has that method; "
            "add --vary method=diffgen, or name it in the policy."
        )
    if has_private and "epsilon" not in vary and not policy.is_private:
        raise InputError("The method diffgen needs an epsilon; say --vary epsilon=0.1,0.5,1, for example.")
    for word in OF_GROUPS:
        if word in vary and not others:
            instead = "epsilon" if has_private else "utility-at-least or risk-at-most"
            raise InputError(
                f"{word} is required of groups of rows, and the method {methods[0]} makes none; vary {instead}."
            )
    if others and not _makes_groups(policy.method.name) and "k" not in vary:
        raise InputError(f"The method {others[0]} needs a requirement; say --vary k=5,10, for example.")
    with_l = [word for word, kind in REQUIREMENTS.items() if "l" in {one.word for one in kind.parameters()}]
    if "l" in vary and not any(item.word in with_l for item in policy.requirements):
        raise InputError(f"The policy requires no diversity whose l could vary; add {' or '.join(with_l)}.")


def _makes_groups(name: str) -> bool:
    """Does a method divide the rows into groups, of which something can be required?"""
    return not OPTIONS[name].spends_epsilon and not OPTIONS[name].is_row_by_row


def _epsilon_of(policy: Policy) -> str:
    return str(policy.method.as_policy()[policy.method.name]["epsilon"])


def has_option(method: str, word: str) -> bool:
    """Has a method an option of this name in a policy?"""
    return word in rules_of(OPTIONS[method])


# ---- policies --------------------------------------------------------------------------------------------


def vary_policy(policy: Policy, choices: Mapping[str, str]) -> Policy:
    """The policy with these choices made."""
    name = choices.get("method", policy.method.name)
    if OPTIONS[name].spends_epsilon:
        policy = _as_private(policy, name, choices["epsilon"])
    else:
        policy = _as_groups(policy, name) if _makes_groups(name) else _as_rows(policy, name)
    for word, choice in choices.items():
        if word in _CHANGES:
            policy = _CHANGES[word](policy, choice)
    options = {word: choice for word, choice in choices.items() if word in OPTION_WORDS}
    return _with_options(policy, options) if options else policy


def _with_options(policy: Policy, options: Mapping[str, str]) -> Policy:
    """The policy with these options of its method, as if they were written in it."""
    method: Any = policy.method
    given = method.as_policy().get(method.name, {})
    read = OPTIONS[method.name].of(
        {**given, **{word: core(text) for word, text in options.items()}}, policy.schema, None
    )
    fields = [rules_of(type(method))[word].field for word in options]
    return replace(policy, method=replace(method, **{field: getattr(read, field) for field in fields}))


def _as_private(policy: Policy, name: str, epsilon: str) -> Policy:
    """The policy for the same table and class under differential privacy.

    Only boxes and the class are published, so requirements, tasks without a target and other columns are left out.
    """
    given = policy.method.as_policy().get(name, {})
    options = OPTIONS[name].of({**given, "epsilon": read_exactly(epsilon)}, policy.schema, None)
    if policy.method.name == name:
        return replace(policy, method=options)
    kept = {name for task in policy.predictions for name in task.targets}
    return replace(
        policy,
        schema=Schema(tuple(_drop_unless(attribute, kept) for attribute in _schema_for(options, policy))),
        requirements=(),
        workload=tuple(task for task in policy.workload if not isinstance(task, Select | Aggregate)),
        method=options,
        output=Output.LABELS if policy.output is Output.SUMMARY else policy.output,
        numbers=None,
        rest_labels=None,
        suppress=None,
    )


def _drop_unless(attribute: Attribute, kept: set[str]) -> Attribute:
    attribute = _as_identifier(attribute)
    if attribute.role in (Role.SENSITIVE, Role.OTHER) and attribute.name not in kept:
        return replace(attribute, role=Role.DROP, passes=None, shift=None)
    return attribute


def _as_identifier(attribute: Attribute) -> Attribute:
    """The column removed, where it holds pseudonyms: methods without groups publish none."""
    if attribute.role is not Role.PSEUDONYM:
        return attribute
    return replace(attribute, role=Role.IDENTIFIER, key=None, scope=None)


def _as_unit(policy: Policy) -> Unit | None:
    """The unit of a method that bounds the rows of nobody."""
    return None if policy.unit is None else replace(policy.unit, rows_at_most=None)


def _as_groups(policy: Policy, name: str) -> Policy:
    if policy.method.name == name:
        return policy
    options = OPTIONS[name].of({}, policy.schema, None)
    schema = _schema_for(options, policy)
    suppress = policy.suppress if options.may_leave_rows_out else None
    return replace(
        policy,
        schema=schema,
        method=options,
        rows="counts",
        numbers=None,
        rest_labels=None,
        suppress=suppress,
        unit=_as_unit(policy),
    )


def _as_rows(policy: Policy, name: str) -> Policy:
    """The policy for boxes that are chosen row by row: nothing is required of groups, and tasks are measured alone."""
    if policy.method.name == name:
        return policy
    options = OPTIONS[name].of({}, policy.schema, None)
    return replace(
        policy,
        schema=Schema(tuple(map(_as_identifier, _schema_for(options, policy)))),
        requirements=(),
        workload=policy.predictions,
        method=options,
        output=Output.LABELS if policy.output is Output.SUMMARY else policy.output,
        rows="counts",
        numbers=None,
        rest_labels=None,
        suppress=None,
        unit=_as_unit(policy),
    )


def _schema_for(options: MethodOptions, policy: Policy) -> Schema:
    """The columns, without weights where the method does not look at them."""
    if options.object_to_weights() is None:
        return policy.schema
    return Schema(tuple(replace(attribute, weight=1) for attribute in policy.schema))


def _with_k(policy: Policy, choice: str) -> Policy:
    others = tuple(item for item in policy.requirements if not isinstance(item, KAnonymity))
    return replace(policy, requirements=(KAnonymity(int(choice)), *others))


def _with_l(policy: Policy, choice: str) -> Policy:
    return replace(policy, requirements=tuple(item.vary("l", float(choice)) for item in policy.requirements))


def _with_workload(policy: Policy, choice: str) -> Policy:
    return policy if choice == "on" else replace(policy, workload=())


def _with_suppress(policy: Policy, choice: str) -> Policy:
    return replace(policy, suppress=Suppress(SHARE.accept(_share_of(choice))))


def _share_of(choice: str) -> str | float:
    """A share as a policy has it: a text in per cent, or a number."""
    return choice if choice.endswith("%") else _number(choice)


_CHANGES: dict[str, Callable[[Policy, str], Policy]] = {
    "k": _with_k,
    "l": _with_l,
    "workload": _with_workload,
    "suppress": _with_suppress,
}
_EXAMPLES = {
    "k": "2,5,10,50",
    "l": "1.5,2,3",
    "method": "mondrian,tds",
    "workload": "on,off",
    "epsilon": "0.1,0.5,1",
    "criterion": "loss,median",
    "suppress": "0,1%,2%",
    "specializations": "4,8,12",
    "score": "max,gini",
    "utility-at-least": "0.4,0.6,0.8",
    "risk-at-most": "0.05,0.1,0.2",
    "lambda": "0.5,1,2",
    "kappa": "1,2",
}


# ---- words -----------------------------------------------------------------------------------------------


def _check_k(choice: str) -> None:
    if not choice.isdecimal() or int(choice) < 1:
        raise InputError("--vary k needs whole numbers of at least 1, such as k=2,5,10,50.")


def _check_l(choice: str) -> None:
    if not 1 <= _number(choice) < math.inf:
        raise InputError("--vary l needs numbers of at least 1, such as l=1.5,2,3.")


def _check_method(choice: str) -> None:
    if choice not in METHODS:
        hint = did_you_mean(choice, METHODS) or f" Known are {', '.join(METHODS)}."
        raise InputError(f"--vary method knows no {choice!r}.{hint}")


def _check_workload(choice: str) -> None:
    if choice not in ("on", "off"):
        raise InputError("--vary workload takes on and off: workload=on,off.")


def _check_epsilon(choice: str) -> None:
    if not 0 < _number(choice) < math.inf:
        raise InputError("--vary epsilon needs numbers above 0, such as epsilon=0.1,0.5,1.")


def _checks_name(word: str, of_what: str) -> Callable[[str], None]:
    def check(choice: str) -> None:
        if not choice.replace("-", "").isalpha():
            raise InputError(f"--vary {word} takes names of {of_what}, such as {word}={_EXAMPLES[word]}.")

    return check


def _checks_number(word: str, least: float, most: float, *, is_whole: bool = False) -> Callable[[str], None]:
    what = "whole numbers" if is_whole else "numbers"
    span = f"of at least {least:g}" if most == math.inf else f"from {least:g} to {most:g}"

    def check(choice: str) -> None:
        if not least <= _number(choice) <= most or (is_whole and not choice.isdecimal()):
            raise InputError(f"--vary {word} needs {what} {span}, such as {word}={_EXAMPLES[word]}.")

    return check


def _check_suppress(choice: str) -> None:
    if not SHARE.fits(_share_of(choice)):
        raise InputError("--vary suppress takes shares of the rows, at most 100%, such as suppress=0,1%,2%.")


def _number(text: str) -> float:
    """A number, or a fraction such as 6/17."""
    try:
        return float(read_exactly(text))
    except (ValueError, ZeroDivisionError, OverflowError):
        return math.nan


_CHECKS: dict[str, Callable[[str], None]] = {
    "k": _check_k,
    "l": _check_l,
    "method": _check_method,
    "workload": _check_workload,
    "epsilon": _check_epsilon,
    "suppress": _check_suppress,
    "criterion": _checks_name("criterion", "criteria"),
    "specializations": _checks_number("specializations", 0, 10_000, is_whole=True),
    "score": _checks_name("score", "scores"),
    "utility-at-least": _checks_number("utility-at-least", 0, 1),
    "risk-at-most": _checks_number("risk-at-most", 0, 1e9),
    "lambda": _checks_number("lambda", 0, 1e12),
    "kappa": _checks_number("kappa", 0, 9, is_whole=True),
}
