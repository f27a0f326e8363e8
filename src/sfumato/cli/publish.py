"""``sfumato publish``, and what it says of a release."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sfumato.cli.console import progress_bar, say
from sfumato.cli.options import memory_option, policy_option, quiet_option, reading_options, threads_option
from sfumato.errors import number_of

if TYPE_CHECKING:
    from sfumato.publishing import Request
    from sfumato.release.release import Release
    from sfumato.table.reading import Reading


@click.command()
@click.argument("table")
@policy_option
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder of the release.")
@click.option("--engine", type=click.Choice(["auto", "memory", "disk", "spark"]), default="auto", show_default=True,
              help="Where the rows live while they are worked on; auto is memory if they fit, else disk.")  # fmt: skip
@memory_option()
@click.option(
    "--format",
    "file_format",
    type=click.Choice(["csv", "parquet"]),
    help="Of the release; as the input if not given.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    help="Repeat the order of rows exactly; secret otherwise. A differentially private release is not private then.",
)
@threads_option
@click.option(
    "--ledger",
    type=click.Path(path_type=Path),
    help="A JSON file of yours that adds up the epsilon of all private releases of the table, and keeps a budget.",
)
@click.option(
    "--evaluation",
    type=click.Path(path_type=Path),
    help="What `sfumato evaluate --out FILE.json` measured, for certificate and report.",
)
@quiet_option
@click.option("--verbose", is_flag=True, help="Print figures of the run, and what each column lost and why.")
@click.option("--overwrite", is_flag=True, help="Replace an earlier release.")
@reading_options
def publish(
    table: str,
    policy: Path,
    out: Path,
    engine: str,
    memory: int | None,
    file_format: str | None,
    seed: int | None,
    threads: int | None,
    ledger: Path | None,
    evaluation: Path | None,
    reading: Reading,
    *,
    quiet: bool,
    verbose: bool,
    overwrite: bool,
) -> None:
    """Make a verified release of TABLE."""
    from sfumato.evaluation.result import Evaluation
    from sfumato.publishing import Request

    request = Request(
        evaluation=None if evaluation is None else Evaluation.from_json(evaluation.read_bytes()),
        seed=seed,
        threads=threads,
        file_format=file_format,
        engine=engine,
        memory=memory,
        ledger=ledger,
        reading=reading,
    )
    make_release(table, policy, out, request, overwrite=overwrite, quiet=quiet, verbose=verbose)


def make_release(
    table: str,
    policy: Path,
    out: Path,
    request: Request,
    *,
    overwrite: bool = False,
    quiet: bool = False,
    verbose: bool = False,
) -> None:
    """Publish a table into a folder, and say what the release is."""
    from sfumato.policy.document import Policy
    from sfumato.publishing import publish_to

    with progress_bar(quiet=quiet) as progress:
        shown = replace(request, progress=progress, explains=verbose and not quiet)
        release = publish_to(out, table, Policy.read(policy), shown, overwrite=overwrite)
    privacy = release.certificate.privacy
    if privacy is not None and not privacy.is_secret:
        say(f"sfumato: {out} is {privacy.randomness}: publish without --seed.", err=True)
    if not quiet:
        _describe(release, out, verbose=verbose)


def _describe(release: Release, out: Path, *, verbose: bool) -> None:
    from sfumato.cli.promises import promises
    from sfumato.report.remarks import advise_bounds, tell_overridden

    say(f"{out}: {_size_of(release)}")
    for line in (*promises(release), *release.remarks):
        say(f"  {line}")
    for notice in release.notices:
        say(f"warning: {notice}", err=True)
    for line in release.losses:
        say(f"lost: {line}", err=True)
    for advice in (advise_bounds(release.policy), tell_overridden(release.policy)):
        if advice:
            say(f"note: {advice}", err=True)
    if named := _columns_with_formulas(release):
        columns = ", ".join(map(repr, named))
        say(
            f"note: cells of {columns} begin with =, @, +, - or a tab, which spreadsheets run as formulas; "
            "output: {formulas: escape} puts ' before them.",
            err=True,
        )
    _describe_figures(release, verbose=verbose)


def _columns_with_formulas(release: Release) -> tuple[str, ...]:
    """The columns whose cells a spreadsheet would run, of a release that keeps them as they are.

    Nothing is said of a differentially private one.
    """
    from sfumato.table.formulas import columns_with_formulas
    from sfumato.table.stored import FiledRows

    if release.policy.escapes_formulas or release.policy.is_private:
        return ()
    rows = release.rows
    return columns_with_formulas(rows.tables() if isinstance(rows, FiledRows) else [rows])


def _size_of(release: Release) -> str:
    """How many rows, groups or counts the release holds."""
    claims, privacy = release.certificate.claims, release.certificate.privacy
    if privacy is None:
        words = ("group",) if claims.utility is None else ("box", "different boxes")
        of = "" if claims.people is None else f" of {number_of(claims.people, 'person', 'people')}"
        return f"{number_of(claims.rows, 'row')}{of} in {number_of(claims.groups, *words)}, verified."
    if privacy.sampling is not None:
        rows = number_of(claims.rows, "drawn row")
        boxes = number_of(claims.groups, "box", "boxes")
        nothing = "" if claims.rows else " Nothing was drawn often enough to be published."
        return f"{rows} in {boxes}, verified.{nothing}"
    return f"counts in {number_of(claims.groups, 'cell')} that sum to {claims.counted:,}, verified."


def _describe_figures(release: Release, *, verbose: bool) -> None:
    figures = dict(release.certificate.figures)
    for found in figures.pop("imprecision", ()):
        say(
            f"  select {found['where']}: {number_of(found['returned'], 'row')} returned for {found['true']:,} "
            f"(imprecision {found['imprecision']:,})"
        )
    for word in ("utility", "tradeoff"):  # the owner has the one already, and the other stands above
        figures.pop(word, None)
    if whole := figures.get("io", {}).get("nonminimal"):
        say(
            f"  {number_of(whole, 'group')} may be larger than necessary: the sample was too small to split them. "
            "Use a larger sample, or fallback: rothko-t."
        )
    if not verbose:
        return
    for name, figure in figures.items():
        told = figure
        if isinstance(figure, dict):
            told = ", ".join(f"{word} {_plain(number)}" for word, number in figure.items() if number != 0)
        say(f"  {name}: {told}")


def _plain(number: object) -> str:
    return f"{number:,}" if isinstance(number, int | float) and not isinstance(number, bool) else str(number)
