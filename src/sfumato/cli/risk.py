"""``sfumato risk``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sfumato.cli.console import progress_bar, say
from sfumato.cli.options import check_own_file, memory_option, overwrite_option, quiet_option, reading_options
from sfumato.errors import InputError, RiskTooHigh

if TYPE_CHECKING:
    from sfumato.risk.result import Risk
    from sfumato.table.reading import Reading

SCORES = ("elliot", "ihsn")
"""Those of :data:`sfumato.risk.minimal_uniques.SCORES`, which a test compares: the help is shown without importing it."""


@click.command()
@click.argument("release", metavar="RELEASE|TABLE")
@click.option(
    "--policy", type=click.Path(path_type=Path), help="For a TABLE: what its quasi-identifiers are."
)
@click.option(
    "--table", metavar="TABLE", help="The raw table of a release whose groups count people: count them in it."
)
@click.option(
    "--population", metavar="TABLE", help="A table of the population, which holds everybody of the other one."
)
@click.option(
    "--sampling-fraction", type=float, metavar="F", help="The share of the population that the table is of."
)
@click.option("--weight", metavar="COLUMN", help="Survey weights: how many people each row stands for.")
@click.option(
    "--suda", type=click.IntRange(min=1), metavar="SIZE",
    help="Which columns do it: search minimal sample uniques of up to SIZE columns, such as 3.",
)  # fmt: skip
@click.option(
    "--suda-scores", type=click.Choice(SCORES), default="elliot", show_default=True,
    help="How they are scored: as in the paper, or as in the program of the IHSN.",
)  # fmt: skip
@click.option(
    "--at-most", type=float, metavar="RISK", help="Exit with 1 if the largest risk is above, such as 0.09."
)
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), help="File to write, too: .json or .html."
)
@overwrite_option
@memory_option(expose_value=False)
@quiet_option
@reading_options
def risk(
    release: str,
    policy: Path | None,
    table: str | None,
    population: str | None,
    sampling_fraction: float | None,
    weight: str | None,
    suda: int | None,
    suda_scores: str,
    at_most: float | None,
    out: Path | None,
    reading: Reading,
    *,
    overwrite: bool,
    quiet: bool,
) -> None:
    """Re-identification risk of RELEASE, a folder, or with --policy of any TABLE.

    The prosecutor's risk; with --population, --sampling-fraction or --weight the journalist's and marketer's, too. The
    limit of --at-most is for the largest risk: the journalist's where the population is known, else the prosecutor's.
    For the owner's eyes.
    """
    from sfumato.risk.assess import risk as assess_risk
    from sfumato.table.files import check_file_target

    if at_most is not None and not 0 < at_most <= 1:
        raise InputError("--at-most is a risk: above 0, and at most 1.")
    if out is not None:
        if out.suffix not in (".json", ".html"):
            raise InputError("--out writes .json or .html.")
        check_own_file(out, release, policy, table, population)
        check_file_target(out, overwrite=overwrite)
    with progress_bar(quiet=quiet):
        found = assess_risk(
            release,
            policy,
            table=table,
            population=population,
            sampling_fraction=sampling_fraction,
            weight=weight,
            suda=suda,
            suda_scores=suda_scores,
            reading=reading,
        )
    if out is not None:
        _write(found, out, overwrite=overwrite)
    if not quiet:
        say(str(found))
    if at_most is not None and found.largest > at_most:
        raise RiskTooHigh(found.largest, at_most)


def _write(found: Risk, out: Path, *, overwrite: bool) -> None:
    from sfumato.table.files import replace_atomically

    if out.suffix == ".html":
        from sfumato.report.risk import render_risk

        text = render_risk(found)
    else:
        text = found.to_json()
    with replace_atomically(out, overwrite=overwrite) as temporary:
        temporary.write_text(text, encoding="utf-8")
