"""The options that several commands share, each declared once.

Nothing heavy is imported until a command runs.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypedDict

import click

from sfumato.errors import InputError

Command = Callable[..., None]
LEAST_MEMORY = 64_000_000


def together(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Several options as one decorator; the help lists them in this order."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


# ---- memory ------------------------------------------------------------------------------------------


def _allow_memory(context: click.Context, _option: click.Parameter, size: str | None) -> int | None:
    """Bytes that may be taken; every table that the command reads is held to them."""
    from sfumato.table.allowance import allowing

    memory = None if size is None else parse_size(size)
    context.with_resource(allowing(memory))
    return memory


def parse_size(text: str) -> int:
    """Bytes of a size such as 512MB or 2GB; at least 64MB.

    >>> parse_size("512MB")
    512000000
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kMGT]?i?B)\s*", text, re.IGNORECASE)
    if not found:
        raise InputError("--memory must be a size such as 512MB or 2GB.")
    number, unit = found.groups()
    base = 1024 if "i" in unit.lower() else 1000
    size = int(float(number) * base ** "bkmgt".index(unit[0].lower()))
    if size < LEAST_MEMORY:
        raise InputError(f"--memory must be at least {LEAST_MEMORY // 1_000_000}MB.")
    return size


memory_option = partial(
    click.option, "--memory", metavar="SIZE", callback=_allow_memory,
    help="Most memory for what grows with the data, such as 2GB; half of what is free if not given.",
)  # fmt: skip

# ---- single options ----------------------------------------------------------------------------------

policy_option = click.option(
    "--policy", required=True, type=click.Path(path_type=Path), help="The policy, a YAML file."
)
table_file_option = click.option(
    "--out", required=True, type=click.Path(path_type=Path), help="File to write: .csv, .csv.gz or .parquet."
)
overwrite_option = click.option("--overwrite", is_flag=True, help="Replace what is there already.")
threads_option = click.option("--threads", type=click.IntRange(min=1), help="All cores if not given.")
quiet_option = click.option("--quiet", is_flag=True, help="Print nothing but errors.")

# ---- how the text of a table is written ----------------------------------------------------------------

_reading_options = together(
    click.option("--encoding", metavar="NAME",
                 help="Of TABLE, if it is no UTF-8, such as latin-1; recognized if not given."),
    click.option("--decimal", metavar="SIGN",
                 help="The decimal sign of its numbers, . or ,; recognized if not given."),
    click.option("--dates", metavar="FORMAT",
                 help="How its dates are written, such as %d.%m.%Y, which is recognized; else as 2024-03-05."),
)  # fmt: skip


def reading_options(command: Command) -> Command:
    """How the text of TABLE is written, for every command that reads one: one value, ``reading``."""

    @functools.wraps(command)
    def with_reading(*, encoding: str | None, decimal: str | None, dates: str | None, **rest: Any) -> None:
        from sfumato.table.reading import Reading

        command(reading=Reading(encoding, decimal, dates), **rest)

    return _reading_options(with_reading)


# ---- models --------------------------------------------------------------------------------------------


class Learning(TypedDict, total=False):
    """Which models learn from a release, and how, in the words of ``evaluate`` and ``compare``."""

    models: Sequence[str] | None
    learn_from: str | None
    learners: str
    seed: int
    threads: int | None


_learning_options = together(
    click.option("--models", metavar="A,B", help="Models to try; all that fit the workload if not given."),
    click.option("--learn-from", type=click.Choice(["corners", "midpoint", "sample"]),
                 help="How boxes become points; corners if not given."),
    click.option("--learners", type=click.Choice(["scikit-learn", "weka"]), default="scikit-learn",
                 show_default=True, help="Whose models; weka needs the extra of that name."),
    click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True,
                 help="Same seed, same folds and models."),
    threads_option,
    memory_option(expose_value=False),
    quiet_option,
)  # fmt: skip


def learning_options(command: Command) -> Command:
    """What ``evaluate`` and ``compare`` share: one value, ``learning``, and ``quiet``."""

    @functools.wraps(command)
    def with_learning(*, models: str | None, **rest: Any) -> None:
        given = {word: rest.pop(word) for word in ("learn_from", "learners", "seed", "threads")}
        command(learning={"models": _names_in(models), **given}, **rest)

    return _learning_options(with_learning)


def _names_in(models: str | None) -> list[str] | None:
    return None if models is None else [name.strip() for name in models.split(",") if name.strip()]


# ---- files to write --------------------------------------------------------------------------------------


def check_own_file(out: Path, *inputs: object) -> None:
    """Never write over what is read, nor into a release."""
    from sfumato.release.folder import check_outside

    for given in inputs:
        if given is not None and out.exists() and Path(str(given)).exists() and out.samefile(str(given)):
            raise InputError(f"{out} is read by this command; give another --out.")
    check_outside(out.parent)
