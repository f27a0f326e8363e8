"""``sfumato apply``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli.console import progress_bar, say
from sfumato.cli.options import check_own_file, memory_option, overwrite_option, reading_options
from sfumato.errors import InputError, number_of

if TYPE_CHECKING:
    from sfumato.policy.document import Policy
    from sfumato.progress import Progress
    from sfumato.recoding.recoder import Applied
    from sfumato.table.reading import Reading


@click.command()
@click.argument("release", type=click.Path(path_type=Path))
@click.argument("table")
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path),
    help="File to write: .csv, .csv.gz or .parquet; on Spark a folder of parts, .parquet.",
)
@click.option("--engine", type=click.Choice(["auto", "spark"]), default="auto", show_default=True,
              help="Who recodes the rows: this process, or the tasks of a cluster.")  # fmt: skip
@memory_option()
@click.option(
    "--side-table",
    metavar="TABLE",
    help="For a risk-utility release: further rows are optimized anew against it.",
)
@overwrite_option
@reading_options
def apply(
    release: Path,
    table: str,
    out: Path,
    engine: str,
    memory: int | None,
    side_table: str | None,
    reading: Reading,
    *,
    overwrite: bool,
) -> None:
    """Recode further rows of TABLE with the recoding of RELEASE, a folder.

    Needs the quasi-identifiers only. Columns that are identifiers, pseudonyms, shifted dates or dropped are left out,
    the rest passes through. Rows go down the tree of splits, not to a label that fits: several may. Where the tree
    never saw a value, the label may not contain it. Recoded rows carry no promise. A risk-utility release has no
    recoding and needs a --side-table.
    """
    from sfumato.policy.document import Policy

    if not release.is_dir():
        raise InputError(f"{release} is not a release folder.")
    check_own_file(out, table, side_table)
    policy = Policy.of_release(release / "policy.yaml")
    if not policy.method.has_recoding:
        from sfumato.methods import row_by_row

        if memory is not None:
            raise InputError("Rows are optimized in memory, all at once; leave out --memory.")
        if engine != "auto":
            raise InputError("Rows are optimized by this process; leave out --engine.")
        with progress_bar(quiet=False) as progress:
            n_rows = row_by_row(policy).apply_to_file(
                policy, table, out, side_table, reading=reading, overwrite=overwrite, progress=progress
            )
        say(f"{out}: {number_of(n_rows, 'row')} generalized anew, without a promise.")
        return
    if side_table is not None:
        raise InputError(
            "--side-table is for risk-utility releases, and this one has a recoding; leave it out."
        )
    with progress_bar(quiet=engine == "auto") as progress:
        applied = _apply(
            release, policy, table, out, engine,
            memory=memory, reading=reading, overwrite=overwrite, progress=progress,
        )  # fmt: skip
    left_out = ""
    if policy.leaves_rows_out:
        left_out = f", {number_of(applied.n_left_out, 'row')} left out"
    say(f"{out}: {number_of(applied.n_rows, 'row')} recoded{left_out}, without a promise.")


def _apply(
    release: Path, policy: Policy, table: str, out: Path, engine: str, *, progress: Progress, **options: Any
) -> Applied:
    """Recode the rows by the engine that was asked for."""
    options["is_escaped"] = policy.escapes_formulas
    if engine == "spark":
        from sfumato.engines.spark.apply import apply_on_spark

        return apply_on_spark(release, policy.schema, table, out, progress=progress, **options)
    from sfumato.recoding.tree_file import apply_to_file

    return apply_to_file(release, policy.schema, table, out, **options)
