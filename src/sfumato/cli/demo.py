"""``sfumato demo``: the other commands on a generated table."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sfumato.cli.console import say
from sfumato.cli.evaluate import measure
from sfumato.cli.publish import make_release
from sfumato.cli.verify import check_folder
from sfumato.errors import InputError, MissingExtra

if TYPE_CHECKING:
    from sfumato.evaluation.result import Evaluation

DEMO_MARK = ".made-by-sfumato-demo"
STAYS_RELEASE = "stays-release"
OF_PEOPLE = " holds of people"
"""How verify ends a claim that it decides by the raw table."""


@click.command()
@click.option(
    "--out",
    default="sfumato-demo",
    show_default=True,
    type=click.Path(path_type=Path),
    help="Folder to make.",
)
def demo(out: Path) -> None:
    """Run the whole job on a generated hospital table."""
    from sfumato.examples.demo import write_example
    from sfumato.publishing import Request

    _claim_folder(out)
    table, policy, release = out / "patients.csv", out / "policy.yaml", out / "release"
    for earlier in (release, out / STAYS_RELEASE):
        if earlier.exists():
            shutil.rmtree(earlier)
    say(f"The table: 10,000 generated hospital stays, {table}")
    write_example(out)
    say("\nWhat will such a release be good for? Measured on held-out rows:")
    measured = _measure(str(table), policy, out / "evaluation.json")
    say("\nThe release, and every claim of it checked again:")
    make_release(str(table), policy, release, Request(evaluation=measured))
    check_folder(release)
    say("\nPatients who came back stand in several rows; then groups count patients (unit: patient_id):")
    _publish_stays(out)
    say(
        f"\nLook at\n  {release / 'report.html'}    what was promised and what happened, with pictures\n"
        f"  {release / 'release.csv'}    the rows that can be published\n"
        f"  {out / 'stays.yaml'}    a policy for people with several rows, released in {out / STAYS_RELEASE}\n"
        f"  {out / 'private.yaml'}    the same patients under differential privacy; see docs/differential-privacy.md\n"
        f"  {out / 'personal.yaml'}    a box for each patient; see docs/risk-utility.md\n"
        f"  {policy}    what the owner asked for; change it and run\n"
        f"  sfumato publish {table} --policy {policy} --out my-release"
    )


def _publish_stays(folder: Path) -> None:
    """Publish the table of stays, and count the people of each group again, in the raw table."""
    from sfumato.checking import verify_folder
    from sfumato.publishing import Request

    table, release = folder / "stays.csv", folder / STAYS_RELEASE
    make_release(str(table), folder / "stays.yaml", release, Request())
    verdict = verify_folder(release, table=str(table))
    verdict.raise_if_failed()
    counted = [f"{each.claim}, {each.detail}" for each in verdict.checks if each.claim.endswith(OF_PEOPLE)]
    say(f"  counted again in {table}: {'; '.join(counted)}")


def _claim_folder(folder: Path) -> None:
    if folder.exists() and not (folder / DEMO_MARK).exists() and any(folder.iterdir()):
        raise InputError(f"{folder} was not made by an earlier demo and stays as it is; give another --out.")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / DEMO_MARK).write_text("sfumato demo may overwrite this folder.\n", encoding="utf-8")


def _measure(table: str, policy: Path, out: Path) -> Evaluation | None:
    """The demo goes on without an evaluation where scikit-learn is not installed."""
    from sfumato.evaluation.result import Evaluation
    from sfumato.table.reading import AS_USUAL

    out.unlink(missing_ok=True)
    try:
        measure(table, policy, folds=3, out=out, reading=AS_USUAL)
    except MissingExtra as error:
        say(f"  left out here. {error}")
        return None
    return Evaluation.from_json(out.read_bytes())
