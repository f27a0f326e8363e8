"""``sfumato verify``."""

from __future__ import annotations

import functools
import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli.console import say
from sfumato.cli.options import (
    Command,
    check_own_file,
    memory_option,
    overwrite_option,
    reading_options,
    together,
)
from sfumato.errors import InputError, VerificationFailed, printable

if TYPE_CHECKING:
    from sfumato.table.reading import Reading
    from sfumato.verify.checks import Check, Verification

FORMAT = 1
"""Of the file of checks."""

OWNERS_WORD = "owner's word: "

DIALECTS = ("duckdb", "spark", "snowflake", "bigquery", "postgres")
"""Those of :data:`sfumato.verify.sql.DIALECTS`, which a test compares: the help is shown without importing it."""


@dataclass(frozen=True, slots=True)
class Telling:
    """How the checks are told: whether an owner's word is enough, and the file that they are written to."""

    strict: bool = False
    out: Path | None = None
    overwrite: bool = False

    def check(self, *inputs: object) -> None:
        """Refuse a file that may not be written, before any work."""
        if self.out is None:
            return
        if self.out.suffix != ".json":
            raise InputError("--out writes a .json file.")
        from sfumato.table.files import check_file_target

        check_own_file(self.out, *inputs)
        check_file_target(self.out, overwrite=self.overwrite)

    def tell(self, verdict: Verification) -> None:
        """Print every check, write the file, and raise if one fails."""
        for check in verdict.checks:
            say(f"{check.mark:<4}  {check.claim}{': ' + check.detail if check.detail else ''}")
        unshown = [
            check.claim.removeprefix(OWNERS_WORD) for check in verdict.checks if _is_owners_word(check)
        ]
        self._write(verdict, is_ok=verdict.ok and not (self.strict and unshown))
        verdict.raise_if_failed()
        if self.strict and unshown:
            claims = "; ".join(unshown)
            raise VerificationFailed(
                [f"with --strict nothing may rest on the owner's word, and this does: {claims}."]
            )

    def _write(self, verdict: Verification, *, is_ok: bool) -> None:
        if self.out is None:
            return
        from sfumato.table.files import replace_atomically

        checks = [{"mark": item.mark, "claim": item.claim, "detail": item.detail} for item in verdict.checks]
        document = {"format": FORMAT, "ok": is_ok, "checks": checks}
        with replace_atomically(self.out, overwrite=self.overwrite) as temporary:
            temporary.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def _is_owners_word(check: Check) -> bool:
    return check.mark == "note" and check.claim.startswith(OWNERS_WORD)


_telling_options = together(
    click.option("--strict", is_flag=True, help="Exit with 1 if anything rests on the owner's word."),
    click.option("--out", type=click.Path(path_type=Path, dir_okay=False),
                 help="Write the checks to this .json file, too."),
    overwrite_option,
)  # fmt: skip


def telling_options(command: Command) -> Command:
    """How the checks are told: one value, ``telling``."""

    @functools.wraps(command)
    def with_telling(*, strict: bool, out: Path | None, overwrite: bool, **rest: Any) -> None:
        command(telling=Telling(strict, out, overwrite), **rest)

    return _telling_options(with_telling)


@click.command()
@click.argument("release")
@click.option(
    "--policy", type=click.Path(path_type=Path), help="Check a table that any tool made against this policy."
)
@click.option(
    "--side-table",
    metavar="TABLE",
    help="The table that a risk-utility release was made with: recompute its risk.",
)
@click.option(
    "--table",
    metavar="TABLE",
    help="The raw table: count again the people of groups, and rows that were left out.",
)
@click.option(
    "--sql",
    "dialect",
    type=click.Choice(DIALECTS),
    help="Print the requirements as SQL for a warehouse that holds the rows in a table release; run nothing.",
)
@click.option("--engine", type=click.Choice(["auto", "spark"]), default="auto", show_default=True,
              help="Who decides the requirements: sfumato, or Spark on Parquet, by the SQL of --sql spark.")  # fmt: skip
@telling_options
@memory_option()
@reading_options
def verify(
    release: str,
    policy: Path | None,
    side_table: str | None,
    table: str | None,
    dialect: str | None,
    engine: str,
    telling: Telling,
    memory: int | None,
    reading: Reading,
) -> None:
    """Re-check RELEASE, a folder, from its published rows; or with --policy any table by its cells."""
    from sfumato.checking import verify_table
    from sfumato.policy.document import Policy

    if policy is not None and side_table is not None:
        raise InputError(
            "--side-table is for a release folder, which says how risk is counted; leave out --policy."
        )
    if policy is not None and table is not None:
        raise InputError(
            "--table is for a release folder, whose recoding says which group a row is in; leave out --policy."
        )
    if policy is None and table is None and reading.as_options:
        raise InputError(f"A release is UTF-8, and says how it is written; leave out{reading.as_options}.")
    if dialect is not None:
        _print_sql(
            release,
            policy,
            dialect,
            reading=reading,
            is_only_sql=telling == Telling() and not side_table and not table and engine == "auto",
        )
        return
    telling.check(release, policy, side_table, table)
    if policy is None:
        check_folder(
            Path(release),
            side_table=side_table,
            table=table,
            reading=reading,
            memory=memory,
            telling=telling,
            engine=engine,
        )
    else:
        telling.tell(
            verify_table(release, Policy.read(policy), engine=engine, memory=memory, reading=reading)
        )


def check_folder(
    folder: Path,
    *,
    side_table: str | None = None,
    table: str | None = None,
    reading: Reading | None = None,
    memory: int | None = None,
    telling: Telling | None = None,
    engine: str = "auto",
) -> None:
    """Verify the release in a folder, its report too; print every check, and raise if one fails.

    A report is rendered from the groups, which stay on Spark if they are found there.
    """
    from sfumato.checking import verify_folder

    how = {} if reading is None else {"reading": reading}
    verdict = verify_folder(folder, side_table=side_table, memory=memory, engine=engine, table=table, **how)
    (telling or Telling()).tell(verdict if engine == "spark" else _with_report(verdict, folder))


def _print_sql(
    release: str, policy: Path | None, dialect: str, *, reading: Reading, is_only_sql: bool
) -> None:
    from sfumato.policy.document import Policy
    from sfumato.verify.sql import sql_of_folder, sql_of_table

    if not is_only_sql:
        raise InputError(
            "--sql runs nothing; leave out --side-table, --table, --engine, --strict, --out and --overwrite."
        )
    if policy is None:
        text = sql_of_folder(Path(release), dialect)
    else:
        text = sql_of_table(release, Policy.read(policy), dialect, reading=reading)
    click.echo(printable(text) if sys.stdout.isatty() else text)  # names as they are, except on a terminal


def _with_report(verdict: Verification, folder: Path) -> Verification:
    """The verdict on a folder, with one on its report in place of the note that nobody has looked at it.

    What a report of another version looks like, this one does not know.
    """
    from sfumato import report
    from sfumato.recoding.large_tree import LargeRecoding
    from sfumato.recoding.splits import NODES
    from sfumato.recoding.tree import Recoding
    from sfumato.release.certificate import this_version
    from sfumato.release.folder import REPORT
    from sfumato.release.release import Release
    from sfumato.verify.checks import Check, Verification
    from sfumato.verify.folder import REPORT_NOT_CHECKED

    if not verdict.ok or REPORT_NOT_CHECKED not in verdict.checks:
        return verdict
    release = Release.read(folder, is_lazy=True)
    made_by, here = release.certificate.version, this_version()
    if made_by == here:
        given = (folder / REPORT).read_bytes()
        ways = [release]
        if isinstance(
            release.recoding, Recoding
        ):  # if its run had less memory, the report has no picture of it
            known = release.recoding
            unseen = LargeRecoding(known.axes, folder / NODES, known.output, known.left_out, memory=1)
            ways.append(replace(release, recoding=unseen))
        is_same = any(given == report.render(way, verdict.groups).encode("utf-8") for way in ways)
        check = Check(
            "the report is what the release is rendered as", is_same, "" if is_same else "it is another"
        )
    else:
        check = replace(REPORT_NOT_CHECKED, detail=f"it was made by version {made_by}, and this is {here}")
    return Verification(tuple(check if one is REPORT_NOT_CHECKED else one for one in verdict.checks))
