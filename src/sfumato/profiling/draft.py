"""Draft of a policy: what the columns of a table seem to be, with a reason beside every guess.

1. Each column is guessed by itself (:mod:`sfumato.profiling.guess`).
2. A column that another one gives away gets the role of that one.
3. The rows that combinations of columns single out are counted, to show the reader what is at stake.

The draft publishes as it stands. It quotes no cell, except usual texts for a missing value.
"""

from __future__ import annotations

import itertools
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato import notebook
from sfumato.errors import TableError, enumerate_names, number_of, short
from sfumato.policy.document import Policy
from sfumato.policy.requirements import EntropyDiversity, KAnonymity, Requirement, VarianceDiversity
from sfumato.policy.schema import Kind, Role
from sfumato.policy.yaml import dump
from sfumato.profiling.facts import ColumnFacts, Shape, measure
from sfumato.profiling.guess import Guess, K, add_declaration, guess, percent
from sfumato.progress import Progress, no_progress
from sfumato.table.allowance import Gauge
from sfumato.table.reading import AS_USUAL, Reading
from sfumato.table.source import Source

BYTES_PER_ROW, BYTES_PER_CELL = 64, 8
"""Memory that looking at all columns takes, one after the other."""


@dataclass(frozen=True, slots=True)
class Uniqueness:
    """How many rows some columns single out: nobody else has the same values in all of them."""

    names: tuple[str, ...]
    n_rows: int


@dataclass(frozen=True, slots=True, repr=False)
class PolicyDraft:
    """Draft of a policy: a guess for each column, and the combinations of columns that single out most rows."""

    n_rows: int
    columns: tuple[Guess, ...]
    uniqueness: tuple[Uniqueness, ...]  # by all quasi-identifiers; then by the worst three and two
    reading: Reading = AS_USUAL  # how the table's text was read

    def __repr__(self) -> str:
        return f"<Draft of a policy for {number_of(self.n_rows, 'row')}: {self.roles}>"

    @property
    def roles(self) -> str:
        """How many columns have each role."""
        return count_roles(found.role for found in self.columns)

    def to_yaml(self) -> str:
        """The draft as a policy with comments."""
        return "\n".join(_lines(self)) + "\n"

    def policy(self) -> Policy:
        """The policy that it drafts, which publishes as it stands."""
        return Policy.parse(self.to_yaml())

    def _repr_html_(self) -> str:
        lines = [
            (
                found.name,
                str(found.role),
                str(found.kind),
                " ".join(filter(None, (describe_cells(found), *found.why))),
            )
            for found in self.columns
        ]
        return notebook.card(
            "A draft of a policy",
            "It publishes as it stands, but it is a guess: read it (to_yaml) before you publish (policy).",
            [("rows", f"{self.n_rows:,}"), ("columns", f"{len(self.columns):,}")],
            notebook.table(("Column", "Role", "Type", "Why"), lines),
        )


def draft_of(table: Source, reading: Reading, progress: Progress = no_progress) -> PolicyDraft:
    """The draft for a table that is open.

    >>> import pyarrow as pa
    >>> from sfumato.table.opening import open_table
    >>> table = open_table(pa.table({"age": [31, 31, 45, 45, 60], "disease": ["a", "b", "a", "b", "a"]}))
    >>> draft = draft_of(table, AS_USUAL)
    >>> [(guess.name, guess.role.value) for guess in draft.columns]
    [('age', 'quasi-identifier'), ('disease', 'sensitive')]
    """
    Gauge(table.where).foresee(table.n_rows * (BYTES_PER_ROW + BYTES_PER_CELL * len(table.names)))
    guesses = []
    for i, name in enumerate(table.names):
        progress("profiling", i, len(table.names))
        guesses.append(guess(measure(table, name)))
    guesses = _ensure_quasi_identifier(_align_roles(guesses))
    known = [found.facts for found in guesses if found.role is Role.QUASI_IDENTIFIER]
    return PolicyDraft(table.n_rows, tuple(guesses), tuple(_find_uniqueness(known)), reading)


def count_roles(roles: Iterable[Role]) -> str:
    """How many columns have each role, the most frequent first.

    >>> count_roles([Role.OTHER, Role.IDENTIFIER, Role.IDENTIFIER])
    '2 identifiers, 1 other'
    """
    nouns = (Role.IDENTIFIER, Role.QUASI_IDENTIFIER)
    return ", ".join(
        number_of(n, role) if role in nouns else f"{n:,} {role}" for role, n in Counter(roles).most_common()
    )


# ---- columns together ------------------------------------------------------------------------------------


def _align_roles(guesses: list[Guess]) -> list[Guess]:
    """Give a column that another one gives away the role of that one: else it would undo what is done to the other."""
    published = [found for found in guesses if found.role.is_published and found.facts.n_distinct > 1]
    protected = [found for found in published if found.role in (Role.QUASI_IDENTIFIER, Role.SENSITIVE)]
    return [_align_role(found, protected) if found in published else found for found in guesses]


def _align_role(found: Guess, protected: Sequence[Guess]) -> Guess:
    determining = [
        other for other in protected if other is not found and determines(other.facts, found.facts)
    ]
    if not determining:
        return found
    owner = min(determining, key=lambda other: (other.facts.n_distinct, other.role is Role.SENSITIVE))
    other = short(owner.name)
    if determines(found.facts, owner.facts):
        why = f"It says the same as {other} in other words: dropping one of the two loses nothing."
    else:
        why = f"Each value of {other} goes with one value here."
    if found.role is not Role.OTHER:
        return replace(found, why=(*found.why, why))
    shared = f"{why} So it has the role of {other}, which it would give away."
    return add_declaration(replace(found, role=owner.role, why=(shared,)))


def determines(left: ColumnFacts, right: ColumnFacts) -> bool:
    """Whether each value of ``left`` always goes with one value of ``right``, and not by mere rarity."""
    if right.n_codes > left.n_codes or left.n_codes * 10 > left.n_rows:
        return False
    if left.n_codes < 2 or right.n_codes < 2:
        return False
    for rows in (slice(0, 2_000), slice(None)):  # nearly all pairs fail at once
        seen = np.full(left.n_codes, -1, dtype=np.int64)
        seen[left.codes[rows]] = right.codes[rows]
        if not np.array_equal(seen[left.codes[rows]], right.codes[rows]):
            return False
    return True


def _ensure_quasi_identifier(guesses: list[Guess]) -> list[Guess]:
    """Make the most telling column a quasi-identifier if no column looks like one: a policy needs one."""
    if any(found.role is Role.QUASI_IDENTIFIER for found in guesses):
        return guesses
    if all(found.facts.shape is Shape.NESTED for found in guesses):
        raise TableError(
            "No column of the table has cells that a policy can read; there is nothing to publish."
        )
    preference = [Role.OTHER, Role.SENSITIVE, Role.DROP, Role.IDENTIFIER]

    def plausible(found: Guess) -> tuple[bool, bool, int, int]:
        is_constant = found.facts.n_distinct < 2
        is_usable = found.facts.shape is not Shape.NESTED
        return is_usable, not is_constant, -preference.index(found.role), found.facts.n_distinct

    chosen = max(guesses, key=plausible)
    why = "No column looks like what others know of a person, and a policy needs one: this is a mere guess."
    new = add_declaration(replace(chosen, role=Role.QUASI_IDENTIFIER, why=(why,)))
    return [new if found is chosen else found for found in guesses]


def _find_uniqueness(columns: Sequence[ColumnFacts]) -> Iterator[Uniqueness]:
    """Rows that are unique by all columns, by the worst three and by the worst two.

    The worst three are looked for among those that extend one of the worst pairs, which is where
    they are in practice, and only among the twelve columns with the most values.
    """
    if not columns:
        return
    yield _count_unique(columns)
    ranked = sorted(columns, key=lambda facts: -facts.n_codes)[:12]
    pairs = _worst_first(itertools.combinations(ranked, 2)) if len(columns) > 2 else []
    if len(columns) > 3:
        extended = ((*pair, more) for pair, _ in pairs[:3] for more in ranked if more not in pair)
        yield _worst_first(extended)[0][1]
    if pairs:
        yield pairs[0][1]


def _worst_first(
    candidates: Iterable[tuple[ColumnFacts, ...]],
) -> list[tuple[tuple[ColumnFacts, ...], Uniqueness]]:
    counted = [(candidate, _count_unique(candidate)) for candidate in candidates]
    return sorted(counted, key=lambda item: -item[1].n_rows)


def _count_unique(columns: Sequence[ColumnFacts]) -> Uniqueness:
    """Rows whose combination of codes occurs once, found on one packed integer per row."""
    key: NDArray[np.int64] = np.zeros(columns[0].n_rows, dtype=np.int64)
    size = 1
    for facts in columns:
        if size * facts.n_codes >= 2**62:
            distinct, key = np.unique(key, return_inverse=True)
            size = len(distinct)
        size *= facts.n_codes
        key = key * facts.n_codes + facts.codes
    return Uniqueness(tuple(facts.name for facts in columns), _n_alone(key, size))


def _n_alone(key: NDArray[np.int64], size: int) -> int:
    if size <= 4 * len(key):
        return int((np.bincount(key, minlength=size) == 1).sum())
    ordered = np.sort(key)
    is_new = np.concatenate(([True], ordered[1:] != ordered[:-1], [True]))
    return int((is_new[1:] & is_new[:-1]).sum())


# ---- the text ----------------------------------------------------------------------------------------

_WIDTH = 100
MANY = 12
"""With more quasi-identifiers than this, each costs the others much detail."""


def _lines(draft: PolicyDraft) -> Iterator[str]:
    yield from comment(
        f"A draft by sfumato profile for a table of {number_of(draft.n_rows, 'row')} and "
        f"{number_of(len(draft.columns), 'column')}. "
        "Every role below is a guess from the column's name and the look of its cells, and the reason "
        "stands above it: read each one, you know the table better. No cell is quoted here."
    )
    if draft.reading.as_options:
        yield from comment(f"The table was read with{draft.reading.as_options}.")
    if draft.n_rows < K:
        yield from comment(f"With fewer than {K} rows, {K}-anonymity cannot be met.")
    yield ""
    yield from _uniqueness_lines(draft)
    yield "attributes:"
    for found in draft.columns:
        yield from _attribute_lines(found)
    yield ""
    yield from _require_lines(draft)
    yield from _workload_lines(draft)
    yield "method: mondrian"


def _uniqueness_lines(draft: PolicyDraft) -> Iterator[str]:
    if not draft.uniqueness:
        return
    yield from comment(
        "Rows that stand alone, because no other row has the same values, before anything is done:"
    )
    for number, unique in enumerate(draft.uniqueness):
        names = enumerate_names([short(name) for name in unique.names])
        if number == 0 and len(unique.names) > 1:
            names = f"all {len(unique.names)} quasi-identifiers together"
        share = percent(unique.n_rows / draft.n_rows)
        yield from comment(f"- by {names}: {unique.n_rows:,} of {draft.n_rows:,} ({share})", hanging="  ")
    if len(draft.uniqueness[0].names) > MANY:
        yield from comment(
            "So many quasi-identifiers cost each other detail. Make other what nobody outside can know."
        )
    yield ""


def _attribute_lines(found: Guess) -> Iterator[str]:
    yield ""
    yield from comment(" ".join(filter(None, (describe_cells(found), *found.why))), indent="  ")
    yield from entry_lines("attributes", {found.name: found.as_policy()})


def entry_lines(section: str, content: Any) -> list[str]:
    """The lines of one entry of a section, without the section's own."""
    return dump({section: content}).splitlines()[1:]


def _one_line(item: dict[str, Any]) -> str:
    return " ".join(line.strip() for line in entry_lines("", item))


def describe_cells(found: Guess) -> str:
    """The counts of a column in words: its values, what is missing, and what singles rows out."""
    facts = found.facts
    if facts.shape in (Shape.NESTED, Shape.EMPTY):
        return ""
    values = number_of(facts.n_distinct, "value")
    parts = [
        values + (f", {percent(facts.n_missing / facts.n_rows)} missing" if facts.n_missing else "") + "."
    ]
    if facts.missing_texts and found.role.is_published:
        parts.append("Texts that usually mean missing are listed.")
    if facts.says_none and found.role.is_published:
        parts.append('A text such as "none" is taken for an answer; list it if it means missing.')
    if facts.share_alone > 0.05 and found.role in (Role.SENSITIVE, Role.OTHER):
        alone = percent(facts.share_alone)
        parts.append(
            f"Published as it is, although {alone} of the rows have a value of their own: round it first?"
        )
    return " ".join(parts)


def _require_lines(draft: PolicyDraft) -> Iterator[str]:
    k = min(K, draft.n_rows)
    yield from comment(f"Every group of rows that the release cannot tell apart has at least {k} of them.")
    yield "require:"
    yield f"  - {_one_line(KAnonymity(k).as_policy())}"
    sensitive = [
        found for found in draft.columns if found.role is Role.SENSITIVE and found.facts.n_distinct > 1
    ]
    labels = [found for found in sensitive if found.kind is Kind.CATEGORY]
    amounts = [found for found in sensitive if found.kind is Kind.NUMBER]
    if sensitive:
        yield from comment(
            "A group of people who all share one sensitive value gives it away. Uncomment what fits "
            "(a variance is in squared units; 1 only holds the place):",
            indent="  ",
        )
    suggested: list[Requirement] = [EntropyDiversity(2, of=found.name) for found in labels]
    suggested += [VarianceDiversity(1, of=found.name) for found in amounts]
    yield from (f"  # - {_one_line(item.as_policy())}" for item in suggested)
    yield ""


def _workload_lines(draft: PolicyDraft) -> Iterator[str]:
    """Tasks as comments, to choose from: no look at a table can tell what a release is for."""
    roles = (Role.OTHER, Role.SENSITIVE)
    targets = [found for found in draft.columns if found.role in roles and 2 <= found.facts.n_distinct <= 10]
    if not targets:
        return
    yield from comment(
        "What should stay predictable? Uncomment a target, and groups are chosen to preserve it:"
    )
    yield "# workload:"
    for found in targets[-5:]:  # the class to predict usually stands last
        yield f"#   - {_one_line({'classify': found.name})}"
    yield ""


def comment(text: str, *, indent: str = "", hanging: str = "") -> list[str]:
    start = f"{indent}# "
    return textwrap.wrap(
        text, _WIDTH, initial_indent=start, subsequent_indent=start + hanging, break_long_words=False
    )
