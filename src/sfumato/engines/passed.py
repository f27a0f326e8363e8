"""What is to be known of columns before they are published as they are, and of identifiers that repeat.

A column that tells most rows apart, or names people, is not published as it is unless its owner says that it is so on
purpose. Everything is counted in one pass, wherever the rows live, and exactly; a differentially private method is
never asked, for nothing here is paid for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.encoding.batches import Batch
from sfumato.engines.raw import RawTable
from sfumato.errors import InputError, enumerate_names, number_of, short
from sfumato.policy.document import Policy
from sfumato.policy.requirements import Needs
from sfumato.policy.schema import Attribute, Role
from sfumato.policy.workload import Regress
from sfumato.recoding.recoder import pass_on
from sfumato.release.certificate import percent
from sfumato.table.alone import AloneRows, number_cells
from sfumato.table.cells import lenient_texts
from sfumato.table.identifiers import content_identifier, identifying_word
from sfumato.table.spill import Spill

FEWEST_ROWS = 20
"""A table of fewer rows is too small to tell a column that is nearly unique from any other."""

MOST_ALONE, SOME_ALONE = 0.5, 0.05
"""A column by which a larger share of the rows is alone is refused, or named."""

PASSES = "passes"
"""What the certificate calls these figures."""

GLANCE = 2000
"""So many cells are looked at to tell what they are: the first of the table that are there."""

MOST_NAMED = 10
"""Columns that a sentence names; of more, the number is said."""

Keys = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class PassedFindings:
    """What was found: shares of the rows, and columns."""

    alone: dict[str, float]
    """The share of the rows that are alone by each column."""
    reasons: dict[str, str]
    """Why a column must not be published as it is unless that is on purpose."""
    named: dict[str, str]
    """Why a column is named, and published."""
    repeats: dict[str, float]
    """The share of the rows whose value of an identifier other rows have, where there are any."""

    def refuse(self) -> None:
        """Raise if a column must not be published as it is."""
        if not self.reasons:
            return
        listed = [f"{short(name)} ({reason})" for name, reason in self.reasons.items()]
        more = f" and {len(listed) - MOST_NAMED:,} more" if len(listed) > MOST_NAMED else ""
        is_one = len(listed) == 1
        subject = (
            "Column" if is_one else f"{number_of(len(listed), 'column')} would be published as they are:"
        )
        verb = " would be published as it is" if is_one else ""
        raise InputError(
            f"{subject} {', '.join(listed[:MOST_NAMED])}{more}{verb}. Give {'it' if is_one else 'each'} another role "
            "(quasi-identifier generalizes, drop leaves out), or say passes: unique where it is on purpose."
        )

    def notices(self) -> Iterator[str]:
        """What the owner should know."""
        for name, reason in self.named.items():
            yield f"{name!r} is published as it is, and {reason}."
        if self.repeats:
            listed = enumerate_names([repr(name) for name in self.repeats])
            what, it = (
                ("an identifier has", "it") if len(self.repeats) == 1 else ("identifiers have", "one of them")
            )
            yield (
                f"{listed}: {what} values that several rows share, and groups count rows, not people. If {it} tells "
                "people apart, declare it as unit; if not, unit: row ends this warning."
            )

    def as_figures(self) -> dict[str, Any]:
        """For the certificate: shares of the rows, by column; empty if there is nothing to say."""
        alone = {name: round(share, 4) for name, share in self.alone.items() if share > SOME_ALONE}
        repeats = {name: round(share, 4) for name, share in self.repeats.items()}
        told = {key: shares for key, shares in (("alone", alone), ("repeats", repeats)) if shares}
        return {PASSES: told} if told else {}


class FirstCells:
    """The first :data:`GLANCE` cells of a column that are there, whatever batches they come in, and in which order.

    >>> first = FirstCells()
    >>> first.add(70, pa.array(["b", "c"]))
    >>> first.add(0, pa.array(["a"]))
    >>> first.cells().to_pylist(), first.lacks_before(70)
    (['a', 'b', 'c'], True)
    """

    def __init__(self) -> None:
        self._of_batch: dict[int, pa.Array] = {}

    def lacks_before(self, row: int) -> bool:
        """Are there fewer in the batches before this row?"""
        return sum(len(cells) for first, cells in self._of_batch.items() if first < row) < GLANCE

    def add(self, first_row: int, cells: pa.Array) -> None:
        """Look at the first cells of a batch."""
        self._of_batch[first_row] = cells
        self._drop_later()

    def merge(self, other: FirstCells) -> None:
        """Look at the batches that another one has seen."""
        self._of_batch |= other._of_batch
        self._drop_later()

    def _drop_later(self) -> None:
        self._of_batch = {row: cells for row, cells in self._of_batch.items() if self.lacks_before(row)}

    def cells(self) -> pa.Array:
        """The cells, in the order of the table."""
        ordered = [cells for _, cells in sorted(self._of_batch.items(), key=lambda item: item[0])]
        return pa.concat_arrays([pa.array([], pa.string()), *ordered]).slice(0, GLANCE)


class PassedColumns:
    """Looks at batches of a table, in any order, on any number of states that are then merged.

    ``memory`` is for all that grows with the rows; what does not fit goes to a ``spill`` folder.
    """

    def __init__(self, policy: Policy, *, spill: Spill | None = None, memory: int = 1 << 62) -> None:
        schema = policy.schema
        self.person = policy.person
        self.passed = [attribute for attribute in schema.passed if attribute.passes is None]
        unknown = policy.unit is None
        self.identifiers = (
            [a for a in schema if a.role in (Role.IDENTIFIER, Role.PSEUDONYM)] if unknown else []
        )
        watched = [*self.passed, *self.identifiers]
        self.alone = {a.name: AloneRows(spill, memory // max(2 * len(watched), 1)) for a in watched}
        self.present = dict.fromkeys(self.alone, 0)
        self.glance = {a.name: FirstCells() for a in self.passed}
        self.n_rows = 0

    @property
    def names(self) -> list[str]:
        """The columns that are looked at; none if there is nothing to find out."""
        beside = [self.person] if self.person is not None and self.alone else []
        return list(dict.fromkeys([*self.alone, *beside]))

    def add(self, batch: Batch) -> None:
        """Look at a batch."""
        rows = np.arange(batch.first_row, batch.first_row + batch.n_rows).astype(np.uint64)
        owners = rows if self.person is None else _people(batch, self.person, rows)
        for attribute in (*self.passed, *self.identifiers):
            name = attribute.name
            cells = pass_on(as_chunks(batch.raw(name)), name)
            values, is_there = number_cells(cells, attribute)
            self.alone[name].add(values[is_there], owners[is_there])
            self.present[name] += int(is_there.sum())
            if name in self.glance and self.glance[name].lacks_before(batch.first_row):
                first = cells.take(pa.array(np.flatnonzero(is_there)[:GLANCE]))
                texts = lenient_texts(first, Attribute(name, attribute.role))
                self.glance[name].add(batch.first_row, texts.dictionary_decode())
            batch.forget(name)
        self.n_rows += batch.n_rows

    def merge(self, other: PassedColumns) -> None:
        """Look at the batches that another one has seen."""
        for name, alone in self.alone.items():
            alone.merge(other.alone[name])
            self.present[name] += other.present[name]
        for name, seen in other.glance.items():
            self.glance[name].merge(seen)
        self.n_rows += other.n_rows

    def find(self, policy: Policy) -> PassedFindings:
        """What was found, once all batches have been seen."""
        found = {name: alone.count() for name, alone in self.alone.items()}
        is_small = self.n_rows < FEWEST_ROWS
        alone = {a.name: 0.0 if is_small else found[a.name].alone / self.n_rows for a in self.passed}
        reasons: dict[str, str] = {}
        named: dict[str, str] = {}
        for name, share in alone.items():
            identifies = self._identifies(name, found[name].values)
            is_refused = (identifies or share > MOST_ALONE) and name not in _measured(policy)
            if identifies or share > SOME_ALONE:
                (reasons if is_refused else named)[name] = identifies or self._tell(found[name].alone)
        repeats = {
            a.name: (self.present[a.name] - found[a.name].alone) / self.n_rows
            for a in self.identifiers
            if found[a.name].alone < self.present[a.name]
        }
        return PassedFindings(alone, reasons, named, repeats)

    def _identifies(self, name: str, n_values: int) -> str:
        """Why a column looks like a direct identifier; "" if it does not."""
        if word := identifying_word(name, n_values, self.n_rows):
            return f'its name says "{word}"'
        kind = content_identifier(self.glance[name].cells().unique())
        return kind and f"its values look like {kind}"

    def _tell(self, n_alone: int) -> str:
        whom = "row" if self.person is None else "person"
        return f"{percent(n_alone, self.n_rows)} of the rows have a value that no other {whom} has"


def look_at_passed(raw: RawTable, looking: PassedColumns, policy: Policy) -> PassedFindings | None:
    """One pass over the columns that are published as they are; None if there is nothing to find out."""
    if not looking.names:
        return None
    raw.show(looking.names, looking, stage="looking at columns")
    return looking.find(policy)


def _measured(policy: Policy) -> frozenset[str]:
    """Numbers that a variance or a regression is about: nearly unique by what they are."""
    targets = {name for task in policy.workload if isinstance(task, Regress) for name in task.targets}
    return frozenset(
        targets | {item.of for item in policy.requirements if item.of and Needs.MOMENTS in item.needs}
    )


def as_chunks(column: Any) -> pa.ChunkedArray:
    """A column of a batch, whether that is a piece of a table or all of it."""
    return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])


def _people(batch: Batch, person: str, rows: Keys) -> Keys:
    """A number for the person of each row; a row of nobody is a person of its own."""
    number, is_there = number_cells(batch.raw(person), batch.schema[person])
    return np.where(is_there, number, rows)
