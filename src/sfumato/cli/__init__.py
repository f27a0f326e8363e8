"""The ``sfumato`` command: a module for each subcommand, nothing computed here."""

from __future__ import annotations

import gc
import os
import signal
import sys
from contextlib import suppress

import click

from sfumato.cli.absent import keep_absent
from sfumato.cli.console import notices_on_stderr, say
from sfumato.cli.failures import explain
from sfumato.cli.group import LazyGroup
from sfumato.table.spill import remove_kept

MANY_OBJECTS = 400_000
"""New objects after which Python looks for unused ones: more than the modules of a command make, which all stay. By
itself it does so after 700, again and again while they are imported: a tenth of a second of each command."""

PLAIN_MEMORY = ("ARROW_DEFAULT_MEMORY_POOL", "system")
"""Arrow asks the C library for memory, which hands large pieces back when they are freed. Arrow's own allocator keeps
them: a fifth of the peak of publishing a million rows. To be set before Arrow is imported."""

CLOSED_PIPE = 141
"""What a shell shows of a program that SIGPIPE ended: neither done nor a verdict."""


def main() -> None:
    """Run the command. A mistake of the user's ends in one sentence; a traceback never shows a cell."""
    gc.set_threshold(MANY_OBJECTS)
    os.environ.setdefault(*PLAIN_MEMORY)
    keep_absent()
    _clean_up_when_killed()
    code = run(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):  # there is none, or nobody reads it any more
            stream.flush()
    # Not sys.exit: a thread of Arrow may still hold the file that it read, and meeting it while Python shuts
    # down aborts or hangs the process, after all is said and done (apache/arrow issues 34314 and 50482).
    # So nothing that was to be done at the end is done by itself.
    remove_kept()
    os._exit(code)


def _clean_up_when_killed() -> None:
    """A kill or a closed terminal ends the command as Ctrl-C does, unless it is told to ignore it (nohup)."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)


def run(arguments: list[str]) -> int:
    """The exit code: 0 done, 1 a requirement does not hold or cannot be met, 2 wrong usage or bad input."""
    try:
        with notices_on_stderr():
            commands.main(arguments, prog_name="sfumato", standalone_mode=False)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except SystemExit:
        return CLOSED_PIPE  # click's own answer to a reader that left, as in sfumato verify out | head -1
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - a traceback may hold a cell
        sentence, code = explain(error)
        say(f"sfumato: {sentence}", err=True)
        return code
    return 0


@click.group(
    cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(package_name="sfumato", prog_name="sfumato")
def commands() -> None:
    """Publish a table about people without publishing the people in it.

    TABLE is a CSV file (delimiter sniffed, .gz too), Parquet (file, folder or glob), Arrow IPC, .xlsx,
    sqlite:///file.db#table, duckdb:///file.db#table, postgresql://host/database#table,
    or - for CSV on standard input.
    """


__all__ = ["CLOSED_PIPE", "commands", "main", "run"]
