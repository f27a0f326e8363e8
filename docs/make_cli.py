#!/usr/bin/env python
"""The reference of the command line, made from ``--help``. Renew it with

python docs/make_cli.py > docs/cli.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click

from sfumato.cli import commands

WIDTH = 100
"""Columns of the help, whatever the terminal."""


def reference() -> str:
    """Every command with its help, as Markdown."""
    return "# The command line\n" + "".join(_pages(commands, "sfumato", None))


def _pages(command: click.Command, name: str, parent: click.Context | None) -> Iterator[str]:
    context = click.Context(
        command,
        parent,
        name,
        terminal_width=WIDTH,
        max_content_width=WIDTH,
        help_option_names=["-h", "--help"],
    )
    yield f"\n## {context.command_path}\n\n```text\n{context.get_help()}\n```\n"
    if isinstance(command, click.Group):
        for word in command.list_commands(context):
            one = command.get_command(context, word)
            if one is not None and not one.hidden:
                yield from _pages(one, word, context)


if __name__ == "__main__":
    sys.stdout.write(reference())
