"""``sfumato verify``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from sfumato import report
from sfumato.cli.console import say
from sfumato.cli.options import memory_option, reading_options
from sfumato.errors import InputError
from sfumato.policy.document import Policy
from sfumato.release.certificate import this_version
from sfumato.release.folder import REPORT
from sfumato.release.release import Release
from sfumato.table.reading import Reading
from sfumato.verify.checks import Check, Verdict
from sfumato.verify.folder import REPORT_NOT_CHECKED, verify_folder, verify_table


@click.command()
@click.argument("release")
@click.option(
    "--policy", type=click.Path(path_type=Path), help="Judge a table that any tool made by this policy."
)
@click.option(
    "--side-table",
    metavar="TABLE",
    help="The table that a risk-utility release was made with: recompute its risk.",
)
@memory_option()
@reading_options
def verify(
    release: str, policy: Path | None, side_table: str | None, memory: int | None, reading: Reading
) -> None:
    """Re-check RELEASE, a folder, from its published rows; or with --policy any table by its cells."""
    if policy is not None and side_table is not None:
        raise InputError(
            "--side-table is for a release folder, which says how risk is counted; leave out --policy."
        )
    if policy is None and reading.as_options:
        raise InputError(f"A release is UTF-8, and says how it is written; leave out{reading.as_options}.")
    if policy is None:
        check_folder(Path(release), side_table=side_table, memory=memory)
    else:
        _tell(verify_table(release, Policy.read(policy), memory=memory, reading=reading))


def check_folder(folder: Path, *, side_table: str | None = None, memory: int | None = None) -> None:
    """Verify the release in a folder, its report too; print every check, and raise if one fails."""
    verdict = verify_folder(folder, side_table=side_table, memory=memory)
    _tell(_with_report(verdict, folder))


def _tell(verdict: Verdict) -> None:
    for check in verdict.checks:
        say(f"{check.mark:<4}  {check.claim}{': ' + check.detail if check.detail else ''}")
    verdict.raise_if_failed()


def _with_report(verdict: Verdict, folder: Path) -> Verdict:
    """The verdict on a folder, with one on its report in place of the note that nobody has looked at it.

    What a report of another version looks like, this one does not know.
    """
    if not verdict.ok or REPORT_NOT_CHECKED not in verdict.checks:
        return verdict
    release = Release.read(folder)
    made_by, here = release.certificate.version, this_version()
    if made_by == here:
        given = (folder / REPORT).read_bytes()
        # a recoding that did not fit in the memory of its run left the report without a picture of it
        ways = (release, replace(release, recoding=None))
        is_same = any(given == report.render(way).encode("utf-8") for way in ways)
        check = Check(
            "the report is what the release is rendered as", is_same, "" if is_same else "it is another"
        )
    else:
        check = replace(REPORT_NOT_CHECKED, detail=f"it was made by version {made_by}, and this is {here}")
    return Verdict(tuple(check if one is REPORT_NOT_CHECKED else one for one in verdict.checks))
