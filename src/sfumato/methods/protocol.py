"""The interface of methods: each drafts a release, and knows nothing of certificates, verifying, reports and folders."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from sfumato.engines.engine import Resources
from sfumato.errors import InputError
from sfumato.methods.people import CountedPeople
from sfumato.policy.document import Policy
from sfumato.progress import Progress
from sfumato.randomness import Random, generator
from sfumato.recoding.pseudonyms import Pseudonyms
from sfumato.recoding.recoder import Partition
from sfumato.release.certificate import Claims, Privacy
from sfumato.table.reading import Reading
from sfumato.table.source import Source
from sfumato.table.stored import FiledRows


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """What a method would publish; nothing of it has been verified yet."""

    rows: pa.Table | FiledRows
    policy: Policy
    """The policy of the release: the owner's, with whatever the method had to settle."""
    recoding: Any = None
    """How further rows are recoded; None if the release has no recoding."""
    claims: Claims | None = None
    """Claims about counts; None for rows, whose claims are recounted when they are verified."""
    figures: Mapping[str, Any] = field(default_factory=dict)
    """Figures of the run, for the certificate."""
    privacy: Privacy | None = None
    """What was spent, if a differentially private mechanism drew the rows."""
    suppressed: int = 0
    """How many rows of the table are left out."""
    missing: tuple[str, ...] = ()
    """Columns in which cells may be missing, where each row has a box of its own."""
    reason: Callable[[str], str] | None = None
    """Says why a column was not split at all. It is for the owner alone."""
    people: CountedPeople | None = None
    """What its groups reach, if they count people, whom the rows do not tell."""
    losses: Callable[[], list[str]] | None = None
    """Says what each column lost, and why; None if the rows are not at hand. It is for the owner alone."""


@dataclass(frozen=True, slots=True)
class Seed:
    """Where randomness comes from: a ``number``, so that the run can be repeated, or None for a secret."""

    number: int | None = None

    def generator(self) -> Random:
        """The generator for the order of published rows."""
        return generator(self.number)


class Charge(Protocol):
    """Writes the cost of a private release into the owner's ledger, before anything is drawn."""

    def __call__(self, epsilon: Fraction, delta: Fraction = Fraction(0), /) -> None: ...


def charge_nobody(_epsilon: Fraction, _delta: Fraction = Fraction(0), /) -> None:
    """Charge nothing: there is no ledger."""


@dataclass(frozen=True, slots=True)
class Extras:
    """What only some methods need: a side table, a ledger to charge, and the format of rows that are written to disk."""

    side_table: Any = None
    charge: Charge = charge_nobody
    file_format: str = "parquet"
    pseudonyms: Pseudonyms | None = None
    """The keys of the run, for columns of pseudonyms."""


class Method(Protocol):
    """A way from a table and a policy to a release."""

    @property
    def only_in_memory(self) -> bool:
        """Has it no engine on disk, so that without Spark all rows must fit in memory?"""

    def check(self, table: Any, policy: Policy, extras: Extras) -> None:
        """Raise if table, policy and extras do not fit together. The table is not opened yet."""

    def draft(
        self,
        source: Source,
        policy: Policy,
        engine: Resources,
        *,
        chance: Seed,
        extras: Extras,
        progress: Progress,
    ) -> Draft:
        """Draft the release of a table, whose columns are those of the policy."""


@runtime_checkable
class Grouping(Method, Protocol):
    """A method whose rows form groups, which can be had without publishing them."""

    def partition(
        self, source: Source, policy: Policy, *, threads: int | None, progress: Progress
    ) -> Partition:
        """Divide the rows into groups that satisfy every requirement."""


@runtime_checkable
class RowByRow(Method, Protocol):
    """A method that finds a box for each row, so that further rows are generalized anew against a side table."""

    def apply_to_file(
        self,
        policy: Policy,
        table: Any,
        out: Path,
        side_table: Any,
        *,
        reading: Reading,
        overwrite: bool,
        progress: Progress,
    ) -> int:
        """Write further rows to a file, each with its own box; how many."""


def refuse_side_table(extras: Extras) -> None:
    """Raise if there is a side table: the method has no use for one."""
    if extras.side_table is not None:
        raise InputError("A side table is for the method risk-utility; leave it out, or name that method.")
