"""The commands by name, each a module of this package that is imported when it is asked for.

So ``sfumato --help`` and ``sfumato verify`` start without what only ``publish`` needs.
"""

from __future__ import annotations

import importlib
from typing import Any

import click

from sfumato.errors import NotYet, did_you_mean

COMMANDS = {
    "apply": "Recode further rows of TABLE with the recoding of RELEASE, a folder.",
    "compare": "Try settings on TABLE and show the risk-utility frontier.",
    "demo": "Run the whole job on a generated hospital table.",
    "evaluate": "Measure on held-out rows what releases of TABLE are good for.",
    "generate": "Make the synthetic data of the papers.",
    "profile": "Look at TABLE and draft a policy for it, each guess with its reason.",
    "publish": "Make a verified release of TABLE.",
    "query": "Answer QUESTION from RELEASE, a folder, with the bounds that are certain.",
    "report": "Lay the raw table beside RELEASE, a folder, for its owner alone.",
    "risk": "Re-identification risk of RELEASE, a folder, or with --policy of any TABLE.",
    "select": "Write the rows of RELEASE, a folder, that may match CONDITION.",
    "verify": "Re-check RELEASE, a folder, from its published rows; or with --policy any table by its cells.",
}
"""The commands, and the first line of the help of each, which a test compares with the command's own."""
LATER_COMMANDS = {"serve": "the workbench in a browser"}
OTHER_WORDS = {
    "anonymize": "publish",
    "anonymise": "publish",
    "release": "publish",
    "check": "verify",
    "init": "profile",
    "draft": "profile",
    "recode": "apply",
}
"""What some call a command of ours."""


class LazyGroup(click.Group):
    """The subcommands; a wrong one ends with the one that was perhaps meant."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The names of all commands."""
        return sorted((*COMMANDS, *LATER_COMMANDS))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """The command of a name, imported now; None if there is none."""
        if cmd_name in LATER_COMMANDS:
            return _later(cmd_name)
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(importlib.import_module(f"sfumato.cli.{cmd_name}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """Write what the commands do, without importing one."""
        room = formatter.width - 6 - max(map(len, COMMANDS))  # what click leaves for one line of help
        lines = [
            (name, click.Command(name, help=line).get_short_help_str(room)) for name, line in COMMANDS.items()
        ]
        with formatter.section("Commands"):
            formatter.write_dl(lines)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first word names."""
        word = args[0] if args else ""
        if word and not word.startswith("-") and word not in self.list_commands(ctx):
            meant = OTHER_WORDS.get(word)
            hint = f" Did you mean {meant!r}?" if meant else did_you_mean(word, self.list_commands(ctx))
            ctx.fail(f"No such command: {word}.{hint}")
        return super().resolve_command(ctx, args)


def _later(name: str) -> click.Command:
    """A command of a later version, which says so."""

    def refuse(**_: Any) -> None:
        raise NotYet(f"sfumato {name} ({LATER_COMMANDS[name]})")

    settings = {"ignore_unknown_options": True, "allow_extra_args": True}
    return click.Command(name, callback=refuse, hidden=True, context_settings=settings)
