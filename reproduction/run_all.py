"""Measure all figures of the papers, or tell which records no longer hold.

    python reproduction/run_all.py              every figure that was not measured at this commit
    python reproduction/run_all.py --stale      a small run of each: does it still give the numbers on record?
    python reproduction/run_all.py --keep       a small run of each, its numbers kept beside the record
    python reproduction/run_all.py --pages      the pages once more, from the records as they are

Stop it when you like: what is done is kept under build, and the next start goes on. Names of figures choose some.
"""

from __future__ import annotations

import json
import subprocess
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lab import pages, provenance, staleness
from lab.provenance import ROOT

RECORDS = ROOT / "docs" / "reproduction"
SHOWN = 3
"""Differences of a stale figure that are printed."""


class Progress:
    """What was done at this commit, by figure; it is forgotten where files have changed since."""

    def __init__(self, what: str, folder: Path) -> None:
        self._commit = provenance.commit()
        self._path = folder / f"{what}-{self._commit}.json"
        self._done: dict[str, Any] = {}
        if self._path.exists() and not self._commit.endswith(provenance.CHANGED):
            self._done = json.loads(self._path.read_text(encoding="utf-8"))

    def once(self, figure: str, work: Callable[[], Any]) -> Any:
        """The result of ``work``, now or from the last start."""
        if figure not in self._done:
            self._done[figure] = work()
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.write_text(json.dumps(self._done), encoding="utf-8")
        return self._done[figure]


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def measure(figure: str) -> int:
    """Run the script of a figure in full."""
    script = str(staleness.SCRIPTS / f"{figure}.py")
    return subprocess.run([sys.executable, script], check=True).returncode  # noqa: S603 - our own script


def tell_stale(figures: Sequence[str], done: Progress, records: Path) -> int:
    """A line for each figure; 1 if any is stale."""
    code = 0
    for figure in figures:
        before = staleness.kept(records, figure)
        if before is None:
            say(f"{figure}: no numbers of a quick run are kept beside it")
            continue
        now = done.once(figure, partial(staleness.quick_numbers, figure))
        found = staleness.differences(before["numbers"], now)
        if not found:
            say(f"{figure}: gives the numbers that it gave at {before['commit']}")
            continue
        code = 1
        say(f"{figure}: STALE, {len(found)} of {len(before['numbers'])} numbers differ")
        for line in found[:SHOWN]:
            say(f"    {line}")
    return code


def asked(words: Sequence[str] | None = None) -> Namespace:
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("figures", nargs="*", metavar="FIGURE", help="such as tods_fig06 (default: all)")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--stale", action="store_true", help="tell which figures no longer give their numbers")
    what.add_argument("--keep", action="store_true", help="keep the numbers of quick runs beside the records")
    what.add_argument("--pages", action="store_true", help="write the pages again")
    given = parser.parse_args(words)
    unknown = sorted(set(given.figures) - set(staleness.figures()))
    if unknown:
        parser.error(f"no script is called {', '.join(unknown)}; there are {', '.join(staleness.figures())}")
    given.figures = given.figures or staleness.figures()
    return given


def main() -> int:
    given = asked()
    state = ROOT / "build" / "run_all"
    if given.pages:
        pages.write(RECORDS)
        return 0
    quick = Progress("quick", state)
    if given.stale:
        return tell_stale(given.figures, quick, RECORDS)
    provenance.refuse_uncommitted(RECORDS)
    full = Progress("full", state)
    for figure in given.figures:
        if not given.keep:
            say(f"{figure}: measuring")
            full.once(figure, partial(measure, figure))
        numbers = quick.once(figure, partial(staleness.quick_numbers, figure))
        staleness.keep(RECORDS, figure, numbers)
        say(f"{figure}: {len(numbers)} numbers of a quick run are kept")
    pages.write(RECORDS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
