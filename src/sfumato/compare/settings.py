"""What a comparison varies: words such as k=2,5,10 into policies."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sfumato.errors import InputError, NotYet, PolicyError, did_you_mean
from sfumato.policy import Method, MondrianOptions, Policy, TdsOptions
from sfumato.requirement import EntropyDiversity, KAnonymity, RecursiveDiversity, Requirement

LATER_METHODS = ("diffgen", "risk-utility")
METHODS: dict[str, Method] = {"mondrian": MondrianOptions(), "tds": TdsOptions()}


def parse_vary(given: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The settings to try, from texts such as ``k=2,5,10``.

    >>> parse_vary(["k=2,5", "method=mondrian,tds"])
    {'k': ('2', '5'), 'method': ('mondrian', 'tds')}
    """
    found: dict[str, tuple[str, ...]] = {}
    for text in given:
        word, sign, values = text.partition("=")
        word, choices = word.strip(), tuple(v.strip() for v in values.split(",") if v.strip())
        if word not in _CHANGES:
            hint = did_you_mean(word, _CHANGES) or f" Known are {', '.join(_CHANGES)}."
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


def variant(policy: Policy, choices: Mapping[str, str]) -> Policy:
    """The policy with these choices made."""
    for word, choice in choices.items():
        policy = _CHANGES[word](policy, choice)
    return policy


def _with_k(policy: Policy, choice: str) -> Policy:
    others = tuple(item for item in policy.requirements if not isinstance(item, KAnonymity))
    return replace(policy, requirements=(KAnonymity(int(choice)), *others))


def _with_l(policy: Policy, choice: str) -> Policy:
    return replace(policy, requirements=tuple(_diversity(item, choice) for item in policy.requirements))


def _diversity(item: Requirement, choice: str) -> Requirement:
    if isinstance(item, EntropyDiversity):
        return replace(item, l=float(choice))
    if isinstance(item, RecursiveDiversity):
        if not float(choice).is_integer():
            raise PolicyError(f"{item.word} needs a whole number l.")
        return replace(item, l=int(float(choice)))
    return item


def _with_method(policy: Policy, choice: str) -> Policy:
    return policy if policy.method.name == choice else replace(policy, method=METHODS[choice])


def _with_workload(policy: Policy, choice: str) -> Policy:
    return policy if choice == "on" else replace(policy, workload=())


_CHANGES: dict[str, Callable[[Policy, str], Policy]] = {
    "k": _with_k,
    "l": _with_l,
    "method": _with_method,
    "workload": _with_workload,
    "epsilon": lambda policy, _choice: policy,
}
_EXAMPLES = {
    "k": "2,5,10,50",
    "l": "1.5,2,3",
    "method": "mondrian,tds",
    "workload": "on,off",
    "epsilon": "0.5,1",
}


def _check_k(choice: str) -> None:
    if not choice.isdecimal() or int(choice) < 1:
        raise InputError("--vary k needs whole numbers of at least 1, such as k=2,5,10,50.")


def _check_l(choice: str) -> None:
    try:
        number = float(choice)
    except ValueError:
        number = math.nan
    if not 1 <= number < math.inf:
        raise InputError("--vary l needs numbers of at least 1, such as l=1.5,2,3.")


def _check_method(choice: str) -> None:
    if choice in LATER_METHODS:
        raise NotYet(f"--vary method={choice}")
    if choice not in METHODS:
        hint = did_you_mean(choice, METHODS) or f" Known are {', '.join(METHODS)}."
        raise InputError(f"--vary method knows no {choice!r}.{hint}")


def _check_workload(choice: str) -> None:
    if choice not in ("on", "off"):
        raise InputError("--vary workload takes on and off: workload=on,off.")


def _check_epsilon(_choice: str) -> None:
    raise NotYet("--vary epsilon (it comes with the method diffgen)")


_CHECKS: dict[str, Callable[[str], None]] = {
    "k": _check_k,
    "l": _check_l,
    "method": _check_method,
    "workload": _check_workload,
    "epsilon": _check_epsilon,
}
