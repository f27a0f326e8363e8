"""``sfumato evaluate``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sfumato.cli.console import progress_bar, say
from sfumato.cli.options import (
    Learning,
    check_own_file,
    learning_options,
    overwrite_option,
    policy_option,
    reading_options,
)
from sfumato.errors import InputError

if TYPE_CHECKING:
    from sfumato.evaluation.result import Evaluation
    from sfumato.policy.document import Policy
    from sfumato.table.reading import Reading


@click.command()
@click.argument("table")
@policy_option
@click.option("--folds", type=click.IntRange(min=2), help="Parts to hold out in turn; 10 if not given.")
@click.option("--test", metavar="TABLE", help="A table of further rows to test on, in place of folds.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False),
              help="File to write: .json (for publish --evaluation), .csv, .csv.gz or .parquet.")  # fmt: skip
@overwrite_option
@learning_options
@reading_options
def evaluate(
    table: str,
    policy: Path,
    folds: int | None,
    test: str | None,
    out: Path | None,
    learning: Learning,
    reading: Reading,
    *,
    overwrite: bool,
    quiet: bool,
) -> None:
    """Measure on held-out rows what releases of TABLE are good for.

    Models learn from recoded rows, from the raw data and from nothing, and are tested on rows that neither
    they nor the recoding have seen. For the owner's eyes: nothing of it is in a release unless
    publish --evaluation puts it there.
    """
    if folds is not None and test is not None:
        raise InputError("Give --folds or --test, not both.")
    measure(
        table, policy, folds=folds or 10, test=test, out=out, learning=learning, reading=reading,
        overwrite=overwrite, quiet=quiet,
    )  # fmt: skip


def measure(
    table: str,
    policy: Path,
    *,
    folds: int,
    test: str | None = None,
    out: Path | None = None,
    learning: Learning | None = None,
    reading: Reading,
    overwrite: bool = False,
    quiet: bool = False,
) -> None:
    """Evaluate releases of a table, write what was found to a file and show it."""
    from sfumato.evaluation import show
    from sfumato.evaluation.protocol import evaluate as evaluate_table
    from sfumato.policy.document import Policy
    from sfumato.table.files import check_file_target

    if out is not None and not out.name.endswith((".json", ".csv", ".csv.gz", ".parquet")):
        raise InputError("--out writes .json (for publish --evaluation), .csv, .csv.gz or .parquet.")
    if out is not None:
        check_own_file(out, table, policy, test)
        check_file_target(out, overwrite=overwrite)
    chosen = Policy.read(policy)
    with progress_bar(quiet=quiet) as progress:
        found = evaluate_table(
            table, chosen, folds=folds, test=test, reading=reading, progress=progress, **(learning or {})
        )
    if out is not None:
        _write(found, out, overwrite=overwrite)
    if not quiet:
        say(show.as_text(found))
        for line in _not_as_declared(table, chosen, reading):
            say(line)


def _write(found: Evaluation, out: Path, *, overwrite: bool) -> None:
    from sfumato.evaluation import show
    from sfumato.table.files import replace_atomically
    from sfumato.table.write import write_table

    if out.suffix != ".json":
        write_table(show.as_table(found), out, overwrite=overwrite)
        return
    with replace_atomically(out, overwrite=overwrite) as temporary:
        temporary.write_text(found.to_json(), encoding="utf-8")


def _not_as_declared(table: str, policy: Policy, reading: Reading) -> Iterator[str]:
    """What an owner should know before a private release, which says nothing of it."""
    if not policy.is_private or table == "-":  # stdin has been read
        return
    from sfumato.encoding.declared import not_as_declared
    from sfumato.table.reading import open_as

    source = open_as(table, policy.schema, reading, is_private=True)
    policy = policy.expand(source.names)
    found = not_as_declared(source, policy)
    quasi = {attribute.name for attribute in policy.schema.quasi_identifiers}
    cells = [f"{name} {n:,}" for name, n in found.items() if name in quasi]
    if cells:
        yield f"Cells that are not as declared, taken as missing or as the nearest bound: {', '.join(cells)}."
    for name, n in found.items():
        if name not in quasi:
            yield f"Rows without a declared {name}, which are left out: {n:,}."
