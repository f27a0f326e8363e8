"""What the command says on the terminal: lines, notices, and how far the work is."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

import click

from sfumato import progress
from sfumato.errors import Notice, printable


def say(text: str, *, err: bool = False) -> None:
    """Print a line, or several; names and conditions in it cannot steer the terminal."""
    click.echo(printable(text), err=err)


@contextmanager
def notices_on_stderr() -> Iterator[None]:
    """What was recognized in a table is said once, unless the user wants to hear nothing but errors."""
    said: set[str] = set()

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if not issubclass(category, Notice):
            usual(message, category, filename, lineno, file, line)
            return
        context = click.get_current_context(silent=True)
        is_quiet = context is not None and context.params.get("quiet", False)
        if str(message) not in said and not is_quiet:
            say(f"note: {message}", err=True)
        said.add(str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("always", Notice)
        usual, warnings.showwarning = warnings.showwarning, show
        yield


@contextmanager
def progress_bar(*, quiet: bool) -> Iterator[progress.Progress]:
    """A bar on a terminal; when piped, a word where the user would wait for half a minute."""
    if quiet:
        yield progress.no_progress
    elif sys.stderr.isatty():
        with progress.bar() as told:
            yield told
    else:
        with progress.telling_of_compiling():
            yield progress.no_progress
