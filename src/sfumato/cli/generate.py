"""``sfumato generate``: a command for each generator."""

from __future__ import annotations

import math
from pathlib import Path

import click

from sfumato.cli.console import progress_bar, say
from sfumato.cli.options import check_own_file, overwrite_option, table_file_option
from sfumato.errors import InputError, number_of


@click.group()
def generate() -> None:
    """Make the synthetic data of the papers."""


@generate.command()
@click.option("--rows", required=True, metavar="N", help="Number of rows, such as 100000 or 1e6.")
@table_file_option
@click.option(
    "--function",
    default="C2",
    show_default=True,
    help="What labels the rows: C1 to C10 give classes, R7 and R10 numbers.",
)
@overwrite_option
@click.option("--seed", type=click.IntRange(min=0), help="Same seed, same rows.")
@click.option(
    "--salary",
    default="uniform",
    show_default=True,
    help="Distribution of salaries: uniform, or normal with variance 1.1e8.",
)
@click.option(
    "--vary-constants", is_flag=True, help="Draw the constants of C1 to C6 at random, once for the table."
)
def agrawal(
    rows: str,
    out: Path,
    function: str,
    seed: int | None,
    salary: str,
    *,
    overwrite: bool,
    vary_constants: bool,
) -> None:
    """The nine attributes of Agrawal et al. and a class."""
    from sfumato.examples.agrawal import write_agrawal

    n_rows = parse_count(rows)
    check_own_file(out)
    with progress_bar(quiet=False) as progress:
        done = 0

        def count(n: int) -> None:
            nonlocal done
            done += n
            progress("generating", done, n_rows)

        write_agrawal(
            n_rows,
            out,
            function=function,
            seed=seed,
            salary=salary,
            vary_constants=vary_constants,
            overwrite=overwrite,
            progress=count,
        )
    say(f"{out}: {number_of(n_rows, 'row')}.")


def parse_count(text: str) -> int:
    """A whole number, also as 1e6 or 1_000_000.

    >>> parse_count("1e6")
    1000000
    """
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 1 <= number < math.inf or number != int(number):
        raise InputError("--rows must be a whole number of at least 1, such as 100000 or 1e6.")
    return int(number)
