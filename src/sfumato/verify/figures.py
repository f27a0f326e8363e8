"""Checks the figures of a certificate: each statement of the run is in its own place and of its own kind.

They cannot be computed again, but whatever else stands among them does not belong there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from sfumato.policy.document import Policy
from sfumato.policy.schema import Role
from sfumato.release.certificate import NO_ANONYMIZATION
from sfumato.verify.checks import Check

WORD = re.compile(r"[\w ().+'-]{1,60}", re.ASCII)
"""The name of a model, a metric or an engine."""

SHA256 = re.compile(r"[0-9a-f]{64}")
LONGEST = 400
"""Characters of a sentence of the run."""

LARGEST = 2**64
"""Whole numbers of a run are below it: it counts rows and bytes."""

MOST_LINES = 100
"""Scores of one target, and tests of them: some models, each on a few kinds of data."""

Fits = Callable[[Any], bool]


def is_number(value: Any) -> bool:
    return type(value) is float or is_whole(value)


def is_share(value: Any) -> bool:
    return is_number(value) and 0 <= value <= 1


def is_whole(value: Any) -> bool:
    return type(value) is int and abs(value) < LARGEST


def is_word(value: Any) -> bool:
    return isinstance(value, str) and WORD.fullmatch(value) is not None


def is_hash(value: Any) -> bool:
    return isinstance(value, str) and SHA256.fullmatch(value) is not None


def is_sentence(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= LONGEST


def mapping(**fits: Fits) -> Fits:
    """A mapping of exactly these keys (``_`` stands for a blank or a hyphen), each with what fits it."""
    return lambda value: some_of(**fits)(value) and len(value) == len(fits)


def some_of(**fits: Fits) -> Fits:
    """A mapping that need not have all of these keys."""

    def is_such(value: Any) -> bool:
        if not isinstance(value, dict):
            return False
        spelled = {re.sub(r"[ -]", "_", key): item for key, item in value.items()}
        is_known = spelled.keys() <= fits.keys() and len(spelled) == len(value)
        return is_known and all(fits[key](item) for key, item in spelled.items())

    return is_such


def by_name(known: Callable[[str], bool], fits: Fits) -> Fits:
    return lambda value: (
        isinstance(value, dict) and all(known(key) and fits(item) for key, item in value.items())
    )


def items(fits: Fits) -> Fits:
    return lambda value: isinstance(value, list) and all(map(fits, value))


def either(*fits: Fits) -> Fits:
    return lambda value: any(fit(value) for fit in fits)


def is_none(value: Any) -> bool:
    return value is None


def is_flag(value: Any) -> bool:
    return isinstance(value, bool)


COUNTED = (
    "rows_in_memory", "input_passes", "input_bytes", "encoded_bytes", "passes", "bytes_read", "bytes_written", "spills",
    "repartitions", "levels", "frequency_groups", "pieces", "pruned", "stopped_by_tree", "stopped_by_statistics",
    "stopped_by_buffers", "stopped_by_height", "fallbacks", "nonminimal", "reads", "writes",
)  # fmt: skip
"""What a run on disk counts; not every version counts all of it."""

MEASURES = (
    "average group size", "discernibility", "ncp", "entropy loss", "query error", "rows left out", "test rows left out",
    "mean risk before", "mean risk", "greatest risk before", "greatest risk", "mean share of utility",
    "least share of utility", "normalized certainty penalty",
)  # fmt: skip
MEASURES_OF = (
    "conditional entropy of", "weighted mean squared error of", "imprecision of",
    "ncp of", "entropy loss of", "query error of",
)  # fmt: skip
"""What an evaluation measures beside scores; the latter each of a column or a condition. The last of the former is what
older versions called ncp."""


def _shapes(policy: Policy) -> dict[str, Fits]:
    names = {attribute.name for attribute in policy.schema}
    quasi = {attribute.name for attribute in policy.schema.quasi_identifiers}
    passed = {attribute.name for attribute in policy.schema.passed}
    identifiers = {*policy.schema.names(Role.IDENTIFIER, Role.PSEUDONYM)}
    has_pseudonyms = bool(policy.schema.names(Role.PSEUDONYM))
    conditions = {task.where for task in policy.selections}

    def is_condition(value: Any) -> bool:
        return isinstance(value, str) and value in conditions

    def is_target(value: Any) -> bool:
        """A column, with words behind it where several tasks have the same."""
        return isinstance(value, str) and any(value == name or value.startswith(f"{name} ") for name in names)

    def is_measure(value: str) -> bool:
        of = [value.removeprefix(f"{what} ") for what in MEASURES_OF if value.startswith(f"{what} ")]
        return value in MEASURES or any(is_target(one) or is_condition(one) for one in of)

    score: dict[str, Fits] = {
        "target": is_target, "model": is_word, "data": is_word, "metric": is_word,
        "test": items(is_number), "train": items(is_number),
    }  # fmt: skip
    utility = mapping(
        format=is_whole,
        protocol=some_of(folds=is_whole, test_rows=is_whole, rows=is_whole, seed=is_whole,
                         learners=is_word, learn_from=is_word),
        scores=items(either(mapping(**score), mapping(**score, half_width=either(is_number, is_none)))),
        measures=by_name(is_measure, is_number),
        tests=items(mapping(target=is_target, model=is_word, metric=is_word, first=is_word, second=is_word,
                            difference=is_number, t=either(is_number, is_none), p=is_number, one_sided=is_flag)),
    )  # fmt: skip
    return {
        "splits": by_name(names.__contains__, is_whole),
        "loss": mapping(ncp=is_share, columns=by_name(quasi.__contains__, is_share)),
        "passes": some_of(
            alone=by_name(passed.__contains__, is_share), repeats=by_name(identifiers.__contains__, is_share)
        ),
        "pseudonyms": lambda value: has_pseudonyms and value == NO_ANONYMIZATION,
        "imprecision": items(
            mapping(where=is_condition, true=is_whole, returned=is_whole, imprecision=is_whole)
        ),
        "io": some_of(engine=is_word, method=is_word, **dict.fromkeys(COUNTED, is_number)),
        "utility": lambda value: utility(value) and _has_no_more_lines(value),
        "tradeoff": _tradeoff,
    }


def _has_no_more_lines(utility: Mapping[str, Any]) -> bool:
    """Whether scores are few, and one number of each fold: more would be the column of a table."""
    n_folds = utility["protocol"].get("folds", 1)
    lines = [*utility["scores"], *utility["tests"]]
    by_target = Counter(line["target"] for line in lines)
    return all(n <= MOST_LINES for n in by_target.values()) and all(
        len(score[key]) in (0, n_folds) for score in utility["scores"] for key in ("test", "train")
    )


def _tradeoff(value: Any) -> bool:
    """Risk and utility of single rows; ``risk_utility.claims`` compares their numbers with the rows."""
    ends = {"risk": "greatest", "raw_risk": "greatest", "share": "least"}
    pairs = {key: mapping(mean=is_number, **{end: is_number}) for key, end in ends.items()}
    bins = items(mapping(at_most=is_number, raw=is_whole, published=is_whole))
    study = mapping(privacy=is_sentence, algorithm=is_whole, t=is_whole, covered=is_whole, beta=is_number,
                    tau_1=is_number, eta=is_number, nats=is_number,
                    **{"epsilon'": is_number})  # fmt: skip
    side: dict[str, Fits] = {"rows": is_whole, "own": is_flag, "sha256": either(is_none, is_hash)}
    whole = mapping(
        optimizer=is_word, reason=is_sentence, proved=is_whole, rows=is_whole, suppressed=is_whole, raw=is_whole,
        lacking=is_whole, side_table=either(mapping(**side), mapping(people=is_whole, **side)), **pairs,
    )  # fmt: skip
    if not isinstance(value, dict):
        return False
    return (
        whole({key: item for key, item in value.items() if key not in ("histogram", "published")})
        and study(value.get("published", {})) == ("published" in value)
        and bins(value.get("histogram", []))
    )


def check_figures(figures: Mapping[str, Any], policy: Policy) -> Check:
    """The figures are those that a run states, and nothing else."""
    shapes = _shapes(policy)
    strange = sum(name not in shapes or not shapes[name](given) for name, given in figures.items())
    detail = f"{strange:,} of {len(figures):,} are unknown, or hold something else" if strange else ""
    return Check("the figures are those that a run states", not strange, detail)
