"""How a run that failed is explained: one sentence without a cell of the table, and an exit code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from sfumato.errors import InternalError, SfumatoError, did_you_mean

IN_POLICY = {
    "k": "require: [k-anonymity: 5]",
    "l": "require: [entropy-diversity: {of: COLUMN, l: 3}]",
    "epsilon": "method: {diffgen: {epsilon: 1}}",
    "method": "method: mondrian",
    "quasi-identifiers": "attributes: {COLUMN: {role: quasi-identifier}}",
    "qi": "attributes: {COLUMN: {role: quasi-identifier}}",
    "sensitive": "attributes: {COLUMN: {role: sensitive}}",
}
"""What is asked for in the policy and not on the command line, and how."""


def explain(error: BaseException) -> tuple[str, int]:
    """What to say of an error, with the notes that it collected, and the exit code."""
    is_abort = isinstance(error, click.exceptions.Abort)  # click's word for Ctrl-C, without the notes of it
    cause = (error.__cause__ if is_abort else None) or error
    sentence, code = _sentence_of(cause)
    return " ".join((sentence, *_notes_of(cause))), code


def _notes_of(error: BaseException) -> Sequence[str]:
    """What was added to an error on its way, such as what stays charged to a ledger."""
    return getattr(error, "__notes__", ())


def _sentence_of(error: BaseException) -> tuple[str, int]:
    match error:
        case click.exceptions.Abort() | KeyboardInterrupt():
            return f"Interrupted; {'no release' if _notes_of(error) else 'nothing'} was written.", 130
        case click.ClickException():
            return _wrong_usage(error), 2
        case SfumatoError():
            return str(error), error.exit_code
        case MemoryError():
            return "There is not enough memory for this table; give it fewer rows or columns.", 2
        case OSError():
            where = error.filename or "A file"
            return f"{where} cannot be read or written: {error.strerror or 'the system refuses'}.", 2
    return _bug(error), InternalError.exit_code


def _wrong_usage(error: click.ClickException) -> str:
    """What click has to say, in one line. Where no command was given that is the help, which keeps its lines."""
    message = error.format_message()
    if not isinstance(error, click.UsageError) or error.ctx is None:
        return message
    if message == error.ctx.get_help():
        return f"A command is missing.\n\n{message}"
    if isinstance(error, click.NoSuchOption):
        message = f"No such option: {error.option_name}.{_hint_of_option(error.option_name, error.ctx)}"
    return f"{' '.join(message.split())} See {error.ctx.command_path} --help."


def _hint_of_option(name: str, context: click.Context) -> str:
    """Where what was asked for belongs, or the option that was perhaps meant."""
    word = name.lstrip("-")
    if word in IN_POLICY:
        return f" It stands in the policy: {IN_POLICY[word]}."
    return did_you_mean(name, [each for option in context.command.params for each in option.opts])


def _bug(error: BaseException) -> str:
    """An unexpected error without its message, which could hold a cell: its type and place only."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}" if trace else "unknown"
    return f"This is a bug in sfumato ({type(error).__name__} at {place}); nothing was written. Please report it."
