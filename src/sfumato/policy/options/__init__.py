"""What each method can be told in a policy: ``mondrian``, ``tds``, ``diffgen``, ``risk_utility``.

Each class of options answers the same questions: ``name``, ``form`` (what its published rows are), ``has_recoding``
(are further rows recoded as these were?), ``is_private`` (is the release differentially private?),
``publishes_counts`` (may a row stand for many?), ``promise`` (what it promises by itself, None if the requirements
say), ``promises_itself`` (may a policy leave out its requirements?), ``reads_workload`` (does it ask anything of the
tasks?); it is made by ``of`` from what a policy says, ``check`` collects what is wrong with it and with the rest of
the policy, and ``as_policy`` writes it down. ``sampling_plan`` belongs to the private form of ``risk_utility``.
"""

from __future__ import annotations

from collections.abc import Mapping

from sfumato.policy.model import ChoiceRule, Either, OneOf, OrNothing
from sfumato.policy.options.diffgen import DiffGenOptions
from sfumato.policy.options.mondrian import MondrianOptions
from sfumato.policy.options.risk_utility import RiskUtilityOptions
from sfumato.policy.options.tds import TdsOptions

MethodOptions = MondrianOptions | TdsOptions | DiffGenOptions | RiskUtilityOptions

OPTIONS: Mapping[str, type[MethodOptions]] = {
    options.name: options for options in (MondrianOptions, TdsOptions, DiffGenOptions, RiskUtilityOptions)
}
"""The options of each method, by its name in a policy."""

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
