"""How far a run is: told to whoever asks, and shown to whoever looks.

Long functions take ``progress``: a function that is told each stage, or True, to have it shown on standard error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sfumato.errors import InputError, printable
from sfumato.kernels.watch import watch_compiling

Progress = Callable[[str, int, int], None]
"""Told the name of a stage, how much of it is done, and how much there is."""


def no_progress(_stage: str, _done: int, _total: int) -> None:
    """For callers who do not look."""


@contextmanager
def showing(progress: Progress | bool) -> Iterator[Progress]:  # noqa: FBT001 - the option of our functions, handed on
    """What a function tells its ``progress``: nobody, a function of the caller's, or with True a bar.

    In a terminal and in a notebook it is a bar, elsewhere a line for each stage.
    """
    if callable(progress):
        yield progress
    elif progress is True:
        with bar() if can_show_a_bar() else lines() as told:
            yield told
    elif progress is False:
        yield no_progress
    else:
        raise InputError("progress is True, False, or a function of a stage, what is done, and the whole.")


def can_show_a_bar() -> bool:
    """Does somebody look at a terminal or a notebook?"""
    return sys.stderr.isatty() or _is_notebook()


def _is_notebook() -> bool:
    shell = sys.modules.get("IPython")
    running = shell.get_ipython() if shell is not None else None
    return running is not None and type(running).__name__ == "ZMQInteractiveShell"


@contextmanager
def bar() -> Iterator[Progress]:
    """A bar that is gone when all is done; compiling is a stage of it."""
    from rich.console import Console  # noqa: PLC0415 - most runs show none
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415
    from rich.progress import Progress as Bars  # noqa: PLC0415

    columns: tuple[Any, ...] = (
        TextColumn("{task.description:<24}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
    )
    console = Console() if _is_notebook() else Console(stderr=True)
    with Bars(*columns, console=console, transient=True) as bars:
        task = bars.add_task("starting", total=None)
        shown = ""

        def progress(stage: str, done: int, total: int) -> None:
            nonlocal shown
            if stage != shown:
                bars.reset(task, description=stage, total=total)
                shown = stage
            bars.update(task, completed=done, total=total)

        is_said = False

        def compiling(done: int, most: int) -> None:
            nonlocal is_said
            if not is_said:
                bars.console.print(about_compiling(), style="dim")
                is_said = True
            progress("compiling", done, most)

        with watch_compiling(compiling):
            yield progress


@contextmanager
def lines() -> Iterator[Progress]:
    """A line for each stage, where nobody could see a bar."""
    shown = ""

    def progress(stage: str, _done: int, _total: int) -> None:
        nonlocal shown
        if stage != shown:
            _say(f"sfumato: {stage}")
            shown = stage

    with telling_of_compiling():
        yield progress


@contextmanager
def telling_of_compiling() -> Iterator[None]:
    """A line when the inner loops begin to be compiled, and one for each quarter of them."""
    quarter = -1

    def say(done: int, most: int) -> None:
        nonlocal quarter
        before, quarter = quarter, max(quarter, 4 * done // max(most, 1))
        if before < 0:
            _say(about_compiling())
        elif quarter > before:
            _say(f"Compiled {25 * quarter}% of all that could be needed.")

    with watch_compiling(say):
        yield


def about_compiling() -> str:
    """That the inner loops are compiled, and how often one has to wait for it."""
    from sfumato.kernels.compile import cache_folder, wanted_folder  # noqa: PLC0415 - loaded by now

    if cache_folder() is not None:
        return "Compiling the inner loops: once for this version and machine, for half a minute or more."
    return (
        "Compiling the inner loops: in every run, for half a minute or more, because others can write to "
        f"{wanted_folder().parent}, or you cannot. Name a folder of your own: NUMBA_CACHE_DIR=FOLDER."
    )


def _say(text: str) -> None:
    sys.stderr.write(printable(text) + "\n")
