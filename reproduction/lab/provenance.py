"""Where a record comes from: the commit that measured it, which must hold everything that was run."""

from __future__ import annotations

import subprocess
from pathlib import Path

import sfumato

ROOT = Path(__file__).resolve().parent.parent.parent
CODE = ("src", "reproduction", "benchmarks")
"""What a figure is measured with."""

CHANGED = "+"
"""At the end of a commit's name: files were changed since."""

UNKNOWN = "unknown"


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603, S607 - fixed words
    return done.stdout.strip()


def commit() -> str:
    """The commit that the results come from; + where files were changed since."""
    try:
        changed = _git("status", "--porcelain", "--", *CODE)
        return _git("rev-parse", "--short=12", "HEAD") + (CHANGED if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return UNKNOWN


def date_of(name: str) -> str:
    """The day of a commit, or nothing where it is not known here."""
    try:
        return _git("show", "-s", "--format=%cs", name.removesuffix(CHANGED))
    except (OSError, subprocess.CalledProcessError):
        return ""


def refuse_uncommitted(out: Path, measured_at: str = "") -> None:
    """End the script if its record goes into the repository and does not come from a commit.

    ``measured_at`` names the commits of trials that were measured before, with blanks between them.
    """
    if not out.resolve().is_relative_to(ROOT / "docs"):
        return
    if not Path(sfumato.__file__).resolve().is_relative_to(ROOT / "src"):
        raise SystemExit(f"The record would name a commit of {ROOT}, but sfumato is imported from elsewhere.")
    now = commit()
    if now == UNKNOWN or now.endswith(CHANGED):
        raise SystemExit(
            f"Records in {out} come from a commit, and {', '.join(CODE)} hold changes that are not committed. "
            "Commit them first, or write elsewhere with --out."
        )
    if any(name == UNKNOWN or name.endswith(CHANGED) for name in measured_at.split()):
        raise SystemExit(
            f"These trials were measured with changes that were not committed ({measured_at}). Measure again."
        )
