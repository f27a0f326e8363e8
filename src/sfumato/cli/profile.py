"""``sfumato profile``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sfumato.cli.console import progress_bar, say
from sfumato.cli.options import check_own_file, memory_option, overwrite_option, reading_options

if TYPE_CHECKING:
    from sfumato.table.reading import Reading


@click.command()
@click.argument("table")
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), help="File to write; else standard output."
)
@click.option(
    "--private",
    is_flag=True,
    help="Draft a policy for a private release (DiffGen), with every domain declared.",
)
@memory_option(expose_value=False)
@overwrite_option
@reading_options
def profile(table: str, out: Path | None, reading: Reading, *, private: bool, overwrite: bool) -> None:
    """Look at TABLE and draft a policy for it, each guess with its reason.

    It shows what each column adds to the rows that stand alone. The draft publishes as it stands, but it is a guess: read
    it before you publish. With --private it holds bounds and values that were read from the table, each marked: replace
    them by public knowledge.
    """
    from sfumato.profiling.profile import profile as draft_policy
    from sfumato.table.databases import without_secrets
    from sfumato.table.files import check_file_target, replace_atomically

    if out is not None:
        check_own_file(out, table)
        check_file_target(out, overwrite=overwrite)
    with progress_bar(quiet=False) as progress:
        draft = draft_policy(table, private=private, reading=reading, progress=progress)
    text = draft.to_yaml()
    if out is None:
        click.echo(text.encode(), nl=False)  # a policy is UTF-8, whatever the terminal is
        return
    with replace_atomically(out, overwrite=overwrite) as temporary:
        temporary.write_text(text, encoding="utf-8")
    for line in draft.summary():
        say(line)
    options = f"--policy {out}{reading.as_options} --out release"
    say(f"Wrote {out}. Read it, then: sfumato publish {shlex.quote(without_secrets(table))} {options}")
