"""``sfumato select``."""

from __future__ import annotations

from pathlib import Path

import click

from sfumato.cli.console import say
from sfumato.cli.options import check_own_file, overwrite_option, table_file_option
from sfumato.errors import number_of


@click.command()
@click.argument("release", type=click.Path(path_type=Path))
@click.argument("condition")
@table_file_option
@overwrite_option
def select(release: Path, condition: str, out: Path, *, overwrite: bool) -> None:
    """Write the rows of RELEASE, a folder, that may match CONDITION.

    CONDITION is such as "age >= 65 and sex = 'F'". A row may match if its ranges and labels allow it, so no
    published row that matches is left out. The folder is taken at its word: sfumato verify checks it.
    """
    from sfumato.release.query.answers import query
    from sfumato.release.release import Release
    from sfumato.table import formulas
    from sfumato.table.files import check_file_target
    from sfumato.table.write import write_table

    check_own_file(out)
    check_file_target(out, overwrite=overwrite)
    read = Release.read(release)
    rows = read.select(condition)
    sure = query(read, "COUNT(*)", condition).low
    write_table(formulas.escape(rows) if read.policy.escapes_formulas else rows, out, overwrite=overwrite)
    certain = "" if sure is None else f", {sure:,} of them for certain"
    say(f"{out}: {number_of(len(rows), 'row')} that may match{certain}.")
    if read.n_left_out:
        say(f"  {number_of(read.n_left_out, 'row')} of the table left out of the release may match, too.")
