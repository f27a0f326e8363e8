"""``sfumato compare``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sfumato.cli.console import progress_bar, say
from sfumato.cli.options import Learning, learning_options, overwrite_option, policy_option, reading_options
from sfumato.errors import PromiseError

if TYPE_CHECKING:
    from sfumato.table.reading import Reading


@click.command()
@click.argument("table")
@policy_option
@click.option("--vary", "vary", multiple=True, required=True, metavar="WORD=A,B,...",
              help="k, l, epsilon, method, suppress, workload (on, off), or an option of a method (criterion, "
                   "specializations, score, utility-at-least, risk-at-most, lambda, kappa), such as k=2,5,10; may stand "
                   "several times.")  # fmt: skip
@click.option(
    "--folds", type=click.IntRange(min=2), default=3, show_default=True, help="Parts to hold out in turn."
)
@click.option(
    "--out", default="frontier", show_default=True, type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the results.",
)  # fmt: skip
@overwrite_option
@learning_options
@reading_options
def compare(
    table: str,
    policy: Path,
    vary: tuple[str, ...],
    folds: int,
    out: Path,
    learning: Learning,
    reading: Reading,
    *,
    overwrite: bool,
    quiet: bool,
) -> None:
    """Try settings on TABLE and show the risk-utility frontier.

    Writes frontier.csv, frontier.json and frontier.svg, and frontier.png where matplotlib is installed.
    For the owner's eyes: none of it is in a release.
    """
    from sfumato.comparison import as_text, parse_vary
    from sfumato.comparison import compare as try_settings
    from sfumato.comparison.write import check_target, write_comparison
    from sfumato.policy.document import Policy

    chosen, rules = parse_vary(vary), Policy.read(policy)
    check_target(out, overwrite=overwrite)
    with progress_bar(quiet=quiet) as progress:
        found = try_settings(
            table, rules, chosen, folds=folds, reading=reading, progress=progress, **learning
        )
    paths = write_comparison(found, out)
    if not quiet:
        say(as_text(found))
        say(f"\nWrote {', '.join(map(str, paths))}.")
    if not found.met:
        raise PromiseError("None of these settings can be met; ask for less, or add rows.")
