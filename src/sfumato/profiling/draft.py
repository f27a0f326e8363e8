"""Draft of a policy: what the columns of a table seem to be, with a reason beside every guess.

How it comes about is in :mod:`sfumato.profiling.settle`; how it is written stands here. The draft publishes as it
stands. It quotes no cell, except usual texts for a missing value.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sfumato import notebook
from sfumato.errors import enumerate_names, number_of, short
from sfumato.policy.document import Policy
from sfumato.policy.requirements import EntropyDiversity, KAnonymity, Requirement, VarianceDiversity
from sfumato.policy.schema import Kind, Role
from sfumato.policy.unit import Unit
from sfumato.policy.yaml import dump
from sfumato.profiling.facts import Shape
from sfumato.profiling.guess import Guess, K, percent
from sfumato.profiling.uniqueness import NOT_RANKED, Ranking, Uniqueness
from sfumato.table.reading import AS_USUAL, Reading


@dataclass(frozen=True, slots=True)
class People:
    """The column that numbers people who have several rows each; ``objection`` says why groups do not count them."""

    name: str
    n: int
    objection: str = ""

    @property
    def is_counted(self) -> bool:
        return not self.objection


@dataclass(frozen=True, slots=True)
class Trial:
    """A sample of the rows, divided into groups by the draft: where each quasi-identifier said nothing (``*``)."""

    n_rows: int
    stars: Mapping[str, float]


@dataclass(frozen=True, slots=True, repr=False)
class PolicyDraft:
    """Draft of a policy: a guess for each column, and what is at stake.

    ``uniqueness`` counts the rows that all quasi-identifiers single out, then the worst three and two of them;
    ``ranking`` says what each column adds to that. ``reading`` is how the table's text was read.
    """

    n_rows: int
    columns: tuple[Guess, ...]
    reading: Reading = AS_USUAL
    uniqueness: tuple[Uniqueness, ...] = ()
    ranking: Ranking = NOT_RANKED
    trial: Trial | None = None
    people: People | None = None

    def __repr__(self) -> str:
        return f"<Draft of a policy for {number_of(self.n_rows, 'row')}: {self.roles}>"

    @property
    def roles(self) -> str:
        """How many columns have each role."""
        return count_roles(found.role for found in self.columns)

    @property
    def published(self) -> tuple[Guess, ...]:
        """The columns that a release has."""
        return tuple(found for found in self.columns if found.role.is_published)

    @property
    def silent(self) -> frozenset[str]:
        """The columns that said nothing in most rows of the trial."""
        stars = {} if self.trial is None else self.trial.stars
        return frozenset(name for name, share in stars.items() if share >= MUCH)

    @property
    def counted(self) -> People | None:
        """The people whom groups count; None if they count rows."""
        return self.people if self.people is not None and self.people.is_counted else None

    def to_yaml(self) -> str:
        """The draft as a policy with comments."""
        return "\n".join(_lines(self)) + "\n"

    def policy(self) -> Policy:
        """The policy that it drafts, which publishes as it stands."""
        return Policy.parse(self.to_yaml())

    def summary(self) -> Iterator[str]:
        """What each column adds to the rows that stand alone, and how many columns have each role."""
        if self.ranking.added:
            yield from ranking_lines(self)
        yield f"Drafted: {self.roles}."

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
        ranks = list(_ranking_cells(self))
        return notebook.card(
            "A draft of a policy",
            "It publishes as it stands, but it is a guess: read it (to_yaml) before you publish (policy).",
            [("rows", f"{self.n_rows:,}"), ("columns", f"{len(self.columns):,}")],
            notebook.table(("Column", "Role", "Type", "Why"), lines),
            notebook.table(ranks[0], ranks[1:]) if self.ranking.added else "",
        )


def count_roles(roles: Iterable[Role]) -> str:
    """How many columns have each role, the most frequent first.

    >>> count_roles([Role.OTHER, Role.IDENTIFIER, Role.IDENTIFIER])
    '2 identifiers, 1 other'
    """
    nouns = (Role.IDENTIFIER, Role.QUASI_IDENTIFIER)
    return ", ".join(
        number_of(n, role) if role in nouns else f"{n:,} {role}" for role, n in Counter(roles).most_common()
    )


# ---- the text ----------------------------------------------------------------------------------------

_WIDTH = 100
MANY = 12
"""With more quasi-identifiers than this, each costs the others much detail."""
LONGEST_NAME = 40
MUCH = 0.5
"""A column that said nothing in so many rows of the trial is told of."""
MOST_CLASSES = 10
"""Values of a column that is offered as a target."""


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
    if draft.ranking.added:
        yield from (f"# {line}".rstrip() for line in ranking_lines(draft))
        yield ""
    if any(found.is_unknown for found in draft.columns):
        yield from comment(
            "Where a name says nothing, the column is generalized like what others know of a person. Say other if nobody "
            "outside can have it, or if it is what to predict: it then passes as it is. Say sensitive if nobody should "
            "learn it, and drop if nobody needs it."
        )
        yield ""
    yield "attributes:"
    for found in draft.columns:
        yield from _attribute_lines(found, draft)
    yield ""
    yield from _people_lines(draft)
    yield from _require_lines(draft)
    yield from _workload_lines(draft)
    yield "method: mondrian"


def _uniqueness_lines(draft: PolicyDraft) -> Iterator[str]:
    if not draft.uniqueness:
        return
    n_rows = draft.ranking.n_rows or draft.n_rows
    yield from comment(
        "Rows that stand alone, because no other row has the same values, before anything is done:"
    )
    if draft.n_rows > n_rows:
        yield from comment(_sample(n_rows))
    for number, unique in enumerate(draft.uniqueness):
        names = enumerate_names([short(name) for name in unique.names])
        if number == 0 and len(unique.names) > 1:
            names = f"all {len(unique.names)} quasi-identifiers together"
        share = percent(unique.n_rows / n_rows)
        yield from comment(f"- by {names}: {unique.n_rows:,} of {n_rows:,} ({share})", hanging="  ")
    if len(draft.uniqueness[0].names) > MANY:
        yield from comment(
            "So many quasi-identifiers cost each other detail. Drop what nobody needs; make other what nobody outside "
            "can know."
        )
    yield ""


def ranking_lines(draft: PolicyDraft) -> Iterator[str]:
    """What each column adds to the rows that stand alone, as a table for the terminal."""
    ranking = draft.ranking
    if ranking.known:
        columns = number_of(len(ranking.known), "column")
        share = percent(ranking.n_alone / ranking.n_rows)
        alone = f"{ranking.n_alone:,} of {ranking.n_rows:,} rows stand alone ({share})"
        yield f"By what others know, going by the names ({columns}), {alone}."
    if not ranking.starts_afresh:
        yield "So many do with one column more, and with the worst two and three:"
    else:
        yield "Rows that stand alone by one column, and with the worst one and two more:"
    if draft.n_rows > ranking.n_rows:
        yield _sample(ranking.n_rows)
    lines = list(_ranking_cells(draft))
    width = max(len(line[0]) for line in lines)
    for name, one, two, three, role in lines:
        yield f"  {name:<{width}} {one:>11} {two:>11} {three:>11}  {role}"
    if ranking.rest:
        yield f"  and {number_of(len(ranking.rest), 'column')} that add no more than these"


def _sample(n_rows: int) -> str:
    return f"Counted in a sample of {n_rows:,} rows, of which more stand alone than of all."


def _ranking_cells(draft: PolicyDraft) -> Iterator[tuple[str, str, str, str, str]]:
    """The head and the lines of that table."""
    ranking = draft.ranking
    afresh, added = ("alone", "one more", "two more"), ("one more", "two more", "three more")
    more = afresh if ranking.starts_afresh else added
    yield "column", *more, "drafted as"
    role_of = {found.name: found.role for found in draft.columns}
    for column in ranking.added:
        name = column.name if len(column.name) <= LONGEST_NAME else column.name[: LONGEST_NAME - 3] + "..."
        one, two, three = (percent(n / ranking.n_rows) for n in (column.one, column.two, column.three))
        yield name if name.isprintable() else repr(name), one, two, three, str(role_of[column.name])


def _attribute_lines(found: Guess, draft: PolicyDraft) -> Iterator[str]:
    yield ""
    words = (describe_cells(found), *found.why, _describe_trial(found, draft.trial))
    yield from comment(" ".join(filter(None, words)), indent="  ")
    yield from entry_lines("attributes", {found.name: found.as_policy()})


def _describe_trial(found: Guess, trial: Trial | None) -> str:
    """How much of a column was lost in the trial, if it was much."""
    share = 0.0 if trial is None else trial.stars.get(found.name, 0.0)
    if trial is None or share < MUCH:
        return ""
    return f"In a trial on {number_of(trial.n_rows, 'row')} it said nothing (*) in {percent(share)} of them."


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


def _people_lines(draft: PolicyDraft) -> Iterator[str]:
    people = draft.people
    if people is None:
        return
    said = f"{short(people.name)} numbers people who have several rows each"
    line = dump({"unit": Unit(people.name).as_policy()}).strip()
    if people.is_counted:
        yield from comment(f"{said}: groups count people, and not rows.")
        yield line
    else:
        yield from comment(
            f"{said}. Groups count rows, so a person with many can fill one alone. The next line has them count people; "
            f"it is no part of the draft, because {people.objection}."
        )
        yield f"# {line}"
    yield ""


def _require_lines(draft: PolicyDraft) -> Iterator[str]:
    people = draft.counted
    k = min(K, draft.n_rows if people is None else people.n)
    of_them = "of them" if people is None else "people"
    yield from comment(f"Every group of rows that the release cannot tell apart has at least {k} {of_them}.")
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
    targets = [
        found
        for found in draft.published
        if 2 <= found.facts.n_distinct <= MOST_CLASSES and _may_be_target(found)
    ]
    if not targets:
        return
    yield from comment(
        "What should stay predictable? Uncomment a target, and groups are chosen to preserve it. A quasi-identifier "
        "that is one gets the role other: it then passes as it is."
    )
    yield "# workload:"
    for found in targets[-5:]:  # the class to predict usually stands last
        yield f"#   - {_one_line({'classify': found.name})}"
    yield ""


def _may_be_target(found: Guess) -> bool:
    return found.role is not Role.QUASI_IDENTIFIER or found.is_unknown


def comment(text: str, *, indent: str = "", hanging: str = "") -> list[str]:
    start = f"{indent}# "
    return textwrap.wrap(
        text, _WIDTH, initial_indent=start, subsequent_indent=start + hanging, break_long_words=False
    )
