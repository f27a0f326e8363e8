"""Comparison of several policies on the same table: the risk of each, and its utility.

Risk here is that of someone who knows that a person is in the release and knows all quasi-identifiers:
1 / size of the group, the largest over all rows and the mean; with a ``unit`` 1 / people of the group, as in the claims
of a release; where boxes are chosen row by row, 1 / rows of the side table that fit the box, whatever the weights. A
differentially private release has no groups, and epsilon stands in place of the risk. Utility is that of
:mod:`sfumato.evaluation`, on the same folds for every setting, so that differences between settings are paired.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sfumato import methods
from sfumato.comparison.result import Comparison, Setting
from sfumato.comparison.settings import combinations, read_vary, vary_policy
from sfumato.comparison.show import as_html
from sfumato.encoding.encoders import encode_people
from sfumato.errors import PolicyError, PromiseError
from sfumato.evaluation.experiment import Experiment, Setup, check_method, points_of, prepare, unit_of
from sfumato.evaluation.intervals import paired_test
from sfumato.evaluation.protocol import score_nothing, score_raw, score_release
from sfumato.evaluation.result import PairedTest
from sfumato.methods.risk_utility.together import count_alike
from sfumato.policy.document import Policy
from sfumato.progress import Progress, no_progress, showing
from sfumato.release.certificate import SmallGroups
from sfumato.table.reading import AS_USUAL, Reading


def compare(
    table: Any,
    policy: Policy | Mapping[str, Any] | str | Path,
    vary: Mapping[str, Sequence[object]] | Sequence[str],
    *,
    folds: int = 3,
    models: Sequence[str] | None = None,
    learn_from: str | None = None,
    seed: int = 0,
    learners: str = "scikit-learn",
    threads: int | None = None,
    reading: Reading = AS_USUAL,
    progress: Progress | bool = no_progress,
) -> Comparison:
    """Compare settings of a policy: the risk of each on the whole table, and its utility on held-out rows.

    ``vary`` says what differs, such as ``{"k": [2, 5, 10], "workload": ["on", "off"]}``, or the same in the words of the
    command line, ``["k=2,5,10"]``; every combination is tried. One that cannot be met is a setting with a problem, not
    an error. A comparison looks at raw rows, so it is for the owner's eyes; nothing of it is published.

    The other arguments are those of :func:`sfumato.evaluate`.
    """
    with showing(progress) as told:
        setup = Setup(folds, None, models, learn_from, seed, learners, threads, reading)
        return _compare(table, Policy.of(policy), read_vary(vary), setup, told)


def _compare(
    table: Any, policy: Policy, vary: Mapping[str, Sequence[str]], setup: Setup, progress: Progress
) -> Comparison:
    chosen = combinations(policy, vary)
    experiment = prepare(table, policy, setup)
    policy = experiment.policy
    count = _Count(progress, each=1 + experiment.n_fits, total=1 + len(chosen))
    raw, nothing = tuple(score_raw(experiment, count.tick)), tuple(score_nothing(experiment))
    count.next()
    settings = []
    for choices in chosen:
        settings.append(_setting(policy, choices, experiment, count.tick))
        count.next()
    protocol = {**experiment.protocol, "learn_from": points_of(policy, setup.learn_from)}
    words = tuple(dict.fromkeys([*vary, *(word for choices in chosen for word in choices)]))
    return Comparison(
        policy.as_dict(),
        protocol,
        words,
        tuple(settings),
        raw,
        nothing,
        tuple(_tests(settings)),
        page=as_html,
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


def _setting(
    policy: Policy, choices: Mapping[str, str], experiment: Experiment, tick: Callable[[], None]
) -> Setting:
    try:
        chosen = vary_policy(policy, choices)
        if chosen.is_private:
            scores, measures = score_release(experiment, chosen, tick)
            return Setting(choices, scores=tuple(scores), measures=measures)
        check_method(chosen.method)
        risks = _risks(experiment, chosen)
        scores, measures = score_release(experiment, chosen, tick)
    except (PolicyError, PromiseError) as error:
        return Setting(choices, problem=str(error))
    return Setting(choices, **risks, scores=tuple(scores), measures=measures)


def _risks(experiment: Experiment, policy: Policy) -> dict[str, Any]:
    """The risks of a release of the whole table, over its rows, and how many groups or boxes there are."""
    threads = experiment.setup.threads
    if policy.method.is_row_by_row:
        alike, n_boxes = count_alike(experiment.source, policy, threads=threads)
        mean = math.fsum(1 / alike) / len(alike)
        return {"largest_risk": 1 / int(alike.min()), "mean_risk": mean, "groups": n_boxes}
    groups = methods.partition(experiment.source, policy, threads=threads)
    size, unit = groups.size, unit_of(policy)
    if unit is not None:
        size = groups.count_people(encode_people(experiment.source, unit)[0])
    risk = SmallGroups.of(size).risk(rows=int(size.sum()), groups=len(size))
    return {"largest_risk": risk.largest, "mean_risk": risk.mean, "groups": len(size)}


def _tests(settings: Sequence[Setting]) -> Iterator[PairedTest]:
    """Settings that differ in one of the choices that both have, target by target and model by model."""
    met = [setting for setting in settings if setting.problem is None]
    for one, other in itertools.combinations(met, 2):
        common = one.choices.keys() & other.choices.keys()  # of two methods not all: k here, epsilon there
        if sum(one.choices[word] != other.choices[word] for word in common) == 1:
            for first, second in zip(one.scores, other.scores, strict=True):
                test = paired_test(first, second, names=(one.name, other.name), one_sided=False)
                yield from () if test is None else (test,)
