"""An answer in words: its value, what is certain, and how it was found."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any

import pyarrow as pa

from sfumato.errors import number_of
from sfumato.policy.document import Policy
from sfumato.policy.output import Form
from sfumato.release.query.answers import Answer, QueriedRelease, parse_question, query

FORMAT = 1
"""Of the file of an answer."""

Figure = float | date | None


@dataclass(frozen=True, slots=True)
class ExplainedAnswer:
    """A question to a release and its answer.

    ``rows`` says how many published rows the condition selects. ``left_out`` rows of the table are not published; a COUNT
    may be as much higher. ``notes`` say what else must be known to read it.
    """

    question: str
    function: str
    answer: Answer
    rows: Answer
    is_private: bool
    left_out: int
    notes: tuple[str, ...] = ()
    is_sampled: bool = False

    @property
    def is_count(self) -> bool:
        return self.function == "COUNT"

    @property
    def how(self) -> str:
        """How it was found, in words."""
        if self.is_private:
            if self.is_sampled:
                return "an estimate of the published rows, which were drawn at random: of the table nothing is certain"
            return "an estimate from counts with noise, of which nothing is certain"
        sure, possible = int(self.rows.low or 0), int(self.rows.high or 0)  # type: ignore[arg-type]
        if not possible:
            return "no published row can match"
        if sure == possible and (self.is_count or self.answer.low == self.answer.high):
            return f"exact: {number_of(sure, 'row')} {_verb(sure)}, and no other can"
        told = f"an estimate: {_match_for_certain(sure)}, {possible - sure:,} more may and count in part"
        if sure == possible:
            told = f"an estimate: {_match_for_certain(sure)}, but their values are known as ranges only"
        if sure == 0 and self.function not in ("COUNT", "SUM"):
            told += "; least and most are for the case that one does"
        return told

    def lines(self) -> list[str]:
        """What is printed."""
        figures = {"value": self.answer.value}
        if not self.is_private:
            figures |= {"least": self.answer.low, "most": self.answer.high}
        width = max(len(write_figure(figure)) for figure in figures.values())
        found = [self.question]
        found += [f"  {word:<5}  {write_figure(figure):>{width}}" for word, figure in figures.items()]
        found.append(f"  how    {self.how}")
        found += [f"  note   {note}" for note in self.notes]
        if self.left_out:
            are = "it is" if self.left_out == 1 else "they are"
            beside = f"{are} counted in most" if self.is_count else f"{are} not in these figures"
            found.append(
                f"  note   {number_of(self.left_out, 'row')} of the table {_was(self.left_out)} left out of the release; "
                f"{beside}"
            )
        return found

    def as_dict(self) -> dict[str, Any]:
        """The answer as plain data; dates as text."""
        value, low, high = map(_plain, self.answer)
        return {
            "format": FORMAT,
            "question": self.question,
            "value": value,
            "least": low,
            "most": high,
            "rows": {"value": self.rows.value, "least": self.rows.low, "most": self.rows.high},
            "left-out": self.left_out,
            "how": self.how,
        }

    def to_json(self) -> str:
        """The answer as a JSON document."""
        return json.dumps(self.as_dict(), indent=2, ensure_ascii=False) + "\n"

    def as_table(self) -> pa.Table:
        """The answer as a table of one row."""
        document = self.as_dict()
        rows = document.pop("rows")
        del document["format"]
        return pa.table(
            {key: [cell] for key, cell in document.items()}
            | {f"rows-{key}": [cell] for key, cell in rows.items()}
        )


def ask(release: QueriedRelease, question: str) -> ExplainedAnswer:
    """The answer to a question such as ``AVG(charge) WHERE age >= 65``, with what is known of its rows."""
    function, column, where = parse_question(question)
    answer = query(release, question)
    rows = answer if function == "COUNT" else query(release, "COUNT(*)", where)
    left_out = release.n_left_out
    if isinstance(rows.high, int):
        rows = rows._replace(high=rows.high - left_out)
    return ExplainedAnswer(
        " ".join(question.split()),
        function,
        answer,
        rows,
        release.policy.is_private,
        left_out,
        tuple(_notes(release.policy, function, column)),
        release.policy.method.form is Form.SAMPLE,
    )


def _notes(policy: Policy, function: str, column: str) -> Iterator[str]:
    if function == "COUNT":
        if policy.person is not None:
            yield "rows are counted, not people"
    elif (shift := policy.schema[column].shift) is not None:
        yield f"the dates of {column!r} are shifted by a secret number of days, at most {shift.within}"


def write_figure(figure: Figure) -> str:
    """A number or a day for people.

    >>> [write_figure(each) for each in (1234567.0, 12345.678, 0.123456789, 40.0, None)]
    ['1,234,567', '12,345.68', '0.123457', '40', 'none']
    """
    if figure is None:
        return "none"
    if isinstance(figure, date):
        return figure.isoformat()
    if float(figure).is_integer():
        return f"{figure:,.0f}"
    return f"{figure:,.2f}" if abs(figure) >= 1000 else f"{figure:.6g}"


def _plain(figure: Figure) -> float | str | None:
    return figure.isoformat() if isinstance(figure, date) else figure


def _match_for_certain(n: int) -> str:
    return f"{number_of(n, 'row')} {_verb(n)} for certain" if n else "no row matches for certain"


def _verb(n: int) -> str:
    return "matches" if n == 1 else "match"


def _was(n: int) -> str:
    return "was" if n == 1 else "were"
