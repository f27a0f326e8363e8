"""A release: the published rows, with the certificate that says what they promise. It answers questions, and is
written.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from sfumato import notebook
from sfumato.errors import InputError, InternalError, TableError
from sfumato.machine import free_memory
from sfumato.policy.document import Policy
from sfumato.policy.schema import Kind, Role, Schema
from sfumato.recoding import tree as recodings
from sfumato.release.certificate import Certificate
from sfumato.release.folder import (
    CERTIFICATE,
    CERTIFIED,
    POLICY,
    RECODINGS,
    RELEASES,
    REPORT,
    hashes_of,
    put_in_place,
    read_piece,
)
from sfumato.release.query import answers
from sfumato.release.query.answers import Answer
from sfumato.table import formulas
from sfumato.table.cells import give_back_memory, is_text, numbers
from sfumato.table.source import TEXT_KINDS, UNKNOWN, Source
from sfumato.table.stored import FiledRows
from sfumato.table.write import hand_back, write_table

IN_MEMORY = 16
"""Rows are left in their file if so many times its size is more than the memory that is free."""


PICTURES = ("picture", "risk", "ledger")
"""The section of a report, by its method, whose picture a notebook shows."""


class WritableRecoding(Protocol):
    """How further rows are recoded; it knows how to write itself into a release folder."""

    def write(self, folder: Path) -> None: ...


def _with_numbers(rows: pa.Table, schema: Schema) -> pa.Table:
    """The rows with numbers where a column of numbers is published as it is, and all of its texts are such."""
    for attribute in schema:
        name = attribute.name
        if (
            attribute.kind is not Kind.NUMBER
            or attribute.role is Role.QUASI_IDENTIFIER
            or name not in rows.column_names
        ):
            continue
        if is_text(rows.schema.field(name).type):
            with suppress(TableError):  # a text that was never read as a number stays one
                found = numbers(rows.column(name), attribute)
                rows = rows.set_column(rows.column_names.index(name), name, found)
    return rows


@dataclass(frozen=True, slots=True, repr=False)
class Release:
    """What is published: rows, certificate, policy, recoding and report.

    ``table`` has the rows in the kind of frame that came in, :meth:`write` makes the folder, and :meth:`read` opens one.
    :meth:`select` and :meth:`query` ask it for rows, counts and averages; ``recoding.apply`` recodes further rows.

    ``rows`` is as it will be on disk (a table, or rows in a file if they are too many). ``format`` (csv or parquet) is
    that of the file, ``report`` is HTML, and ``check`` looks at every folder before it appears. ``remarks`` say how much
    is left, from published rows; ``notices`` are for the owner alone, and so is what each column lost and why, the
    ``losses``, if somebody asked for them. None of these is written.
    """

    rows: pa.Table | FiledRows
    certificate: Certificate
    policy: Policy
    recoding: WritableRecoding | None = None
    format: str = "parquet"
    kind: str = "pyarrow"
    report: str | None = None
    check: Callable[[Path], None] | None = field(default=None, compare=False)
    remarks: tuple[str, ...] = field(default=(), compare=False)
    notices: tuple[str, ...] = field(default=(), compare=False)
    losses: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        if self.format not in RELEASES:
            raise InputError("The rows of a release are written as csv or parquet.")
        if isinstance(self.rows, FiledRows) and self.rows.format != self.format:
            raise InputError(f"The rows of the release are in a file already, as {self.rows.format}.")

    def __repr__(self) -> str:
        certificate = self.certificate
        requirements = ", ".join(map(str, self.policy.requirements))
        is_required = requirements and certificate.privacy is None and certificate.claims.utility is None
        return f"<Release of {certificate.counts}: {requirements if is_required else certificate.promise}>"

    def _repr_html_(self) -> str:
        """The promise, the counts and the picture of the report, for a notebook."""
        return self.certificate.card(
            "A release",
            notebook.paragraphs(self.remarks or self.certificate.left),
            _picture_in(self.report) if self.report else "",
        )

    @property
    def table(self) -> Any:
        """The rows as the kind of frame that was published (pandas, Polars, ...); all of them in memory."""
        return self._hand_back(self.rows.load() if isinstance(self.rows, FiledRows) else self.rows)

    def select(self, where: str) -> Any:
        """Every row whose box overlaps the predicate, as the kind of frame that ``table`` is."""
        return self._hand_back(answers.select(self, where))

    def _hand_back(self, rows: pa.Table) -> Any:
        """The rows, of which there may be none, as the kind of frame that came in.

        Cells of a file of text are text in a release, too; here those of number columns are numbers.
        """
        if self.kind in TEXT_KINDS:
            rows = _with_numbers(rows, self.policy.schema)
        nobody = Source(tuple(rows.column_names), UNKNOWN, self.kind, "the release", rows.column)
        return hand_back(rows, nobody)

    @property
    def n_left_out(self) -> int:
        """Rows of the table that the policy let be left out; none where each row has a box of its own."""
        return self.certificate.claims.suppressed if self.policy.leaves_rows_out else 0

    def query(self, question: str, where: str | None = None) -> Answer:
        """COUNT(*), or SUM, AVG, MIN or MAX of a column, over the rows that ``where`` selects."""
        return answers.query(self, question, where)

    def with_report(self, report: str) -> Release:
        return replace(self, report=report)

    def write(
        self,
        folder: str | os.PathLike[str],
        *,
        overwrite: bool = False,
        check: Callable[[Path], None] | None = None,
        within: Path | None = None,
    ) -> Certificate:
        """Write the release folder, whole or not at all, and return the certificate as it stands there.

        ``check`` (else the release's own) is called with the complete folder while it still has its
        temporary name; if it raises, nothing is published. ``overwrite`` replaces an earlier release and
        nothing else. ``within`` is the folder of a :class:`~sfumato.table.spill.Spill` beside the target, where the
        release is put together; rows in a file that lies there are not copied, and from then on lie in the
        release.
        """
        check = check or self.check
        with put_in_place(folder, overwrite=overwrite, within=within) as temporary:
            certificate = self._write_into(temporary, within)
            if check is not None:
                give_back_memory()  # of writing: checking reads all rows again
                check(temporary)
        if isinstance(self.rows, FiledRows) and within is not None and within in self.rows.path.parents:
            self.rows.path = Path(folder).resolve() / RELEASES[self.format]
        return certificate

    def _write_into(self, folder: Path, within: Path | None) -> Certificate:
        known = {}
        if isinstance(self.rows, FiledRows):
            known[RELEASES[self.format]] = self.rows.sha256
            _bring(self.rows.path, folder / RELEASES[self.format], within)
        else:
            rows = formulas.escape(self.rows) if self.policy.escapes_formulas else self.rows
            write_table(rows, folder / RELEASES[self.format])
        _write_text(folder / POLICY, self.policy.to_yaml())
        if self.recoding is not None:
            self.recoding.write(folder)
        if self.report is not None:
            _write_text(folder / REPORT, self.report)
        if {path.name for path in folder.iterdir()} - {*CERTIFIED}:
            raise InternalError("A recoding wrote a file that does not belong into a release.")
        claims = replace(self.certificate.claims, sha256=hashes_of(folder, known))
        certificate = replace(self.certificate, claims=claims)
        _write_text(folder / CERTIFICATE, certificate.to_json())
        return certificate

    @classmethod
    def read(cls, folder: str | os.PathLike[str], *, is_lazy: bool = False) -> Release:
        """The release in a folder, taken at its word: ``verify`` is what checks it.

        Empty cells of a CSV file are missing. Rows that would fill the memory stay in their file; if ``is_lazy``, any do.
        """
        path = Path(folder)
        certificate = Certificate.from_json(read_piece(path, CERTIFICATE))
        format_ = next((word for word, name in RELEASES.items() if (path / name).exists()), None)
        if format_ is None:
            raise InputError(f"{path} holds no rows: neither {' nor '.join(RELEASES.values())} is there.")
        policy = Policy.of_release(path / POLICY)
        has_recoding = (path / RECODINGS[0]).exists()
        rows = FiledRows(path / RELEASES[format_], format_, is_escaped=policy.escapes_formulas)
        return cls(
            rows=rows if is_lazy or _is_large(rows.path) else rows.load(),
            certificate=certificate,
            policy=policy,
            recoding=recodings.read(path, policy.schema) if has_recoding else None,
            format=format_,
            report=read_piece(path, REPORT).decode("utf-8", "replace") if (path / REPORT).exists() else None,
        )


def _picture_in(report: str) -> str:
    """The picture that a report begins with, as an image with the report's own style; nothing where there is none.

    Its colours are those of the light page, whatever the notebook's are.
    """
    style = report.partition("<style>")[2].partition("</style>")[0]
    light = style[: style.find("}") + 1]
    for name in PICTURES:
        section = report.partition(f'<section id="{name}"')[2].partition("</section>")[0]
        _, start, rest = section.partition("<svg")
        if start:
            return notebook.picture(f"{start}{rest.partition('</svg>')[0]}</svg>", style + light)
    return ""


def _is_large(path: Path) -> bool:
    """Whether rows should stay in their file, or folder of parts."""
    parts = path.rglob("*") if path.is_dir() else [path]
    return IN_MEMORY * sum(part.stat().st_size for part in parts if part.is_file()) > free_memory()


def _bring(path: Path, target: Path, within: Path | None) -> None:
    """The file under another name: without a copy if it is one of our own, with one if it is somebody's."""
    bring = _link if within is not None and within in path.parents else shutil.copyfile
    if path.is_dir():
        shutil.copytree(path, target, copy_function=bring)
    else:
        bring(path, target)


def _link(path: str | Path, target: str | Path) -> None:
    try:
        os.link(path, target)
    except OSError:  # a file system without links
        shutil.copyfile(path, target)


def _write_text(path: Path, text: str) -> None:
    path.write_bytes(text.encode("utf-8"))  # no line ends of the platform: same release, same bytes
