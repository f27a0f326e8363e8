"""``sfumato report``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sfumato.cli.console import say
from sfumato.cli.options import check_own_file, memory_option, overwrite_option, reading_options
from sfumato.errors import InputError

if TYPE_CHECKING:
    from sfumato.table.reading import Reading


@click.command()
@click.argument("release", type=click.Path(path_type=Path))
@click.option("--raw", metavar="TABLE", required=True, help="The table that the release was made from.")
@click.option(
    "--out", required=True, type=click.Path(path_type=Path, dir_okay=False), help="File to write: .html."
)
@overwrite_option
@memory_option(expose_value=False)
@reading_options
def report(release: Path, raw: str, out: Path, reading: Reading, *, overwrite: bool) -> None:
    """Lay the raw table beside RELEASE, a folder, for its owner alone.

    Before and after for each column, what was left out, and why. The page holds facts of the raw table: it is never
    written into a release, and must not be published.
    """
    from sfumato.release.release import Release
    from sfumato.report.owner import render_owner
    from sfumato.table.files import check_file_target, replace_atomically
    from sfumato.table.reading import open_as

    if out.suffix != ".html":
        raise InputError("--out writes an .html file.")
    check_own_file(out, raw)
    check_file_target(out, overwrite=overwrite)
    read = Release.read(release)
    page = render_owner(read, open_as(raw, read.policy.schema, reading, is_private=read.policy.is_private))
    with replace_atomically(out, overwrite=overwrite) as temporary:
        temporary.write_text(page, encoding="utf-8")
    say(f"{out}: for the owner alone; it holds facts of the raw table. Do not publish it.")
