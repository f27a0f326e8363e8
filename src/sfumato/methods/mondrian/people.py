"""Numbers for the people of some rows, and for pairs of person and value, as kernels count them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.methods.mondrian.kernels.problem import Rules
from sfumato.table.combinations import number_combinations

Codes = NDArray[np.uint32]


def count_pair_columns(rules: Rules) -> int:
    """How many columns of numbers of pairs the requirement needs."""
    sensitive = rules.sensitive
    if sensitive is None or sensitive.people is None:
        return 0
    return len(sensitive.values) + len(sensitive.variance)


def person_column(rules: Rules) -> int | None:
    """The column that says whose a row is; None if rows count."""
    people = None if rules.sensitive is None else rules.sensitive.people
    return None if people is None else people.column


SPARSE = 4
"""People are numbered anew if there may be more than so many per row: each has a stamp."""


def number_people(rows: Codes, rules: Rules) -> None:
    """Number the people of these rows closely, and write the numbers of pairs into their columns.

    rows   (n, columns) with columns for pairs, see ``People``
    """
    sensitive = rules.sensitive
    if sensitive is None or sensitive.people is None:
        return
    people = sensitive.people
    person = rows[:, people.column]
    if int(person.max(initial=0)) > SPARSE * len(rows):
        rows[:, people.column] = number_combinations([person], in_order=False).number
    columns = [*sensitive.values["column"].tolist(), *sensitive.variance["column"].tolist()]
    for place, column in enumerate(columns, start=people.pairs):
        rows[:, place] = number_combinations([person, rows[:, column]], in_order=False).number


def new_stamps(rows: Codes, rules: Rules) -> NDArray[np.int32] | None:
    """A stamp for each of the people and pairs that ``number_people`` found, see ``kernels.people``; None: rows count."""
    sensitive = rules.sensitive
    if sensitive is None or sensitive.people is None:
        return None
    people = sensitive.people
    numbers = [people.column, *range(people.pairs, people.pairs + count_pair_columns(rules))]
    return np.zeros((2, int(rows[:, numbers].max(initial=0)) + 2), dtype=np.int32)
