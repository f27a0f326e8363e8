"""``sfumato query``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sfumato.cli.console import say
from sfumato.cli.options import check_own_file, overwrite_option
from sfumato.errors import InputError

if TYPE_CHECKING:
    from sfumato.release.query.explained import ExplainedAnswer


@click.command()
@click.argument("release", type=click.Path(path_type=Path))
@click.argument("question")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False),
              help="Write the answer to this file, too: .json, .csv, .csv.gz or .parquet.")  # fmt: skip
@overwrite_option
def query(release: Path, question: str, out: Path | None, *, overwrite: bool) -> None:
    """Answer QUESTION from RELEASE, a folder, with the bounds that are certain.

    QUESTION is COUNT(*), or SUM, AVG, MIN or MAX of a column, such as "AVG(charge) WHERE age >= 65". It is
    about published rows. The folder is taken at its word: sfumato verify checks it.
    """
    from sfumato.release.query.explained import ask
    from sfumato.release.release import Release
    from sfumato.table.files import check_file_target

    if out is not None:
        if not out.name.endswith((".json", ".csv", ".csv.gz", ".parquet")):
            raise InputError("--out writes .json, .csv, .csv.gz or .parquet.")
        check_own_file(out)
        check_file_target(out, overwrite=overwrite)
    found = ask(Release.read(release), question)
    if out is not None:
        _write(found, out, overwrite=overwrite)
    for line in found.lines():
        say(line)


def _write(found: ExplainedAnswer, out: Path, *, overwrite: bool) -> None:
    from sfumato.table.files import replace_atomically
    from sfumato.table.write import write_table

    if out.suffix != ".json":
        write_table(found.as_table(), out, overwrite=overwrite)
        return
    with replace_atomically(out, overwrite=overwrite) as temporary:
        temporary.write_text(found.to_json(), encoding="utf-8")
