"""The same table under several policies: what each risks and what it yields.

Risk here is that of someone who knows that a person is in the release and knows all quasi-identifiers:
1 / size of the group, the largest over all rows and the mean. Utility is that of :mod:`sfumato.evaluate`,
on the same folds for every setting, so that differences between settings are paired.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from sfumato import methods
from sfumato.compare.result import Comparison, Setting
from sfumato.compare.settings import variant
from sfumato.errors import InputError, PolicyError, PromiseError
from sfumato.evaluate.protocol import score_nothing, score_raw, score_release
from sfumato.evaluate.result import PairedTest, paired_test
from sfumato.evaluate.trial import Trial, points_of, trial_of
from sfumato.partition import Progress, no_progress
from sfumato.policy import Policy
from sfumato.requirement import EntropyDiversity, RecursiveDiversity


def compare(
    table: Any,
    policy: Policy,
    vary: Mapping[str, Sequence[str]],
    *,
    folds: int = 3,
    models: Sequence[str] | None = None,
    learn_from: str | None = None,
    seed: int = 0,
    learners: str = "scikit-learn",
    threads: int | None = None,
    progress: Progress = no_progress,
) -> Comparison:
    """Every combination of what is varied: its risk on the whole table, its utility on held-out rows.

    ``vary`` is what :func:`sfumato.compare.settings.parse_vary` gives. A combination that cannot be met is a
    setting with a problem, not an error. Nothing of this is published: a comparison looks at raw rows.
    """
    _check_diversity(policy, vary)
    trial = trial_of(
        table,
        policy,
        folds=folds,
        models=models,
        learn_from=learn_from,
        seed=seed,
        learners=learners,
        threads=threads,
    )
    combinations = [dict(zip(vary, chosen, strict=True)) for chosen in itertools.product(*vary.values())]
    count = _Count(progress, each=1 + trial.n_fits, total=1 + len(combinations))
    raw, nothing = tuple(score_raw(trial, count.tick)), tuple(score_nothing(trial))
    count.next()
    settings = []
    for choices in combinations:
        settings.append(_setting(policy, choices, trial, count.tick))
        count.next()
    protocol = {**trial.protocol, "learn_from": points_of(policy, learn_from)}
    return Comparison(
        policy.as_dict(), protocol, tuple(vary), tuple(settings), raw, nothing, tuple(_tests(settings))
    )


class _Count:
    """Progress over stretches of equal length, of which some end early."""

    def __init__(self, progress: Progress, *, each: int, total: int) -> None:
        self._progress, self._each, self._total = progress, each, each * total
        self._done, self._end = 0, each
        progress("comparing", 0, self._total)

    def tick(self) -> None:
        self._done += 1
        self._progress("comparing", self._done, self._total)

    def next(self) -> None:
        self._done, self._end = self._end, self._end + self._each
        self._progress("comparing", self._done, self._total)


def _check_diversity(policy: Policy, vary: Mapping[str, Sequence[str]]) -> None:
    has_l = any(isinstance(item, EntropyDiversity | RecursiveDiversity) for item in policy.requirements)
    if "l" in vary and not has_l:
        raise InputError(
            "The policy requires no diversity whose l could vary; add entropy-diversity or recursive-diversity."
        )


def _setting(policy: Policy, choices: Mapping[str, str], trial: Trial, tick: Callable[[], None]) -> Setting:
    try:
        chosen = variant(policy, choices)
        size = methods.partition(trial.source, chosen, threads=trial.threads).size
        scores, measures = score_release(trial, chosen, tick)
    except (PolicyError, PromiseError) as error:
        return Setting(choices, problem=str(error))
    return Setting(
        choices,
        largest_risk=1 / int(size.min()),
        mean_risk=len(size) / int(size.sum()),  # over the rows: each group's risks add up to 1
        groups=len(size),
        scores=tuple(scores),
        measures=measures,
    )


def _tests(settings: Sequence[Setting]) -> Iterator[PairedTest]:
    """Settings that differ in one choice alone, target by target and model by model."""
    met = [setting for setting in settings if setting.problem is None]
    for one, other in itertools.combinations(met, 2):
        if sum(one.choices[word] != other.choices[word] for word in one.choices) == 1:
            for first, second in zip(one.scores, other.scores, strict=True):
                test = paired_test(first, second, names=(one.name, other.name), one_sided=False)
                yield from () if test is None else (test,)
