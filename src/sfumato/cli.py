"""The ``sfumato`` command: one function per subcommand, nothing computed here."""

from __future__ import annotations

import functools
import math
import os
import re
import shlex
import shutil
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from sfumato.errors import (
    InputError,
    InternalError,
    MissingExtra,
    Notice,
    NotYet,
    PromiseError,
    SfumatoError,
    did_you_mean,
    number_of,
    printable,
)

if TYPE_CHECKING:
    from sfumato.policy.document import Policy
    from sfumato.table.reading import Reading
    from sfumato.verify.checks import Verdict

LATER_COMMANDS = {
    "risk": "re-identification risk and simulated attacks",
    "serve": "the workbench in a browser",
}
AS_USUAL = {"encoding": None, "decimal": None, "dates": None}
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
DEMO_MARK = ".made-by-sfumato-demo"
LEAST_MEMORY = 4_000_000
CLOSED_PIPE = 141
"""What a shell shows of a program that SIGPIPE ended: neither done nor a verdict."""


def main() -> None:
    """Run the command. A mistake of the user's ends in one sentence; a traceback never shows a cell."""
    from sfumato.table.spill import remove_kept  # noqa: PLC0415

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
        with _notices_on_stderr():
            commands.main(arguments, prog_name="sfumato", standalone_mode=False)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except SystemExit:
        return CLOSED_PIPE  # click's own answer to a reader that left, as in sfumato verify out | head -1
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - a traceback may hold a cell
        is_abort = isinstance(
            error, click.exceptions.Abort
        )  # click's word for Ctrl-C, without the notes of it
        cause = (error.__cause__ if is_abort else None) or error
        sentence, code = _judge(cause)
        return _complain(" ".join((sentence, *_notes_of(cause))), code)
    return 0


def _notes_of(error: BaseException) -> Sequence[str]:
    """What was added to an error on its way, such as what stays charged to a ledger."""
    return getattr(error, "__notes__", ())


def _judge(error: BaseException) -> tuple[str, int]:
    """What to say of an error, and the exit code."""
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
    return _where(error), InternalError.exit_code  # its message may hold a cell


@contextmanager
def _notices_on_stderr() -> Iterator[None]:
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
            _say(f"note: {message}", err=True)
        said.add(str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("always", Notice)
        usual, warnings.showwarning = warnings.showwarning, show
        yield


def _say(text: str, *, err: bool = False) -> None:
    """Print a line, or several; names and conditions in it cannot steer the terminal."""
    click.echo(printable(text), err=err)


def _complain(sentence: str, code: int) -> int:
    _say(f"sfumato: {sentence}", err=True)
    return code


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


class _Commands(click.Group):
    """The subcommands; a wrong one ends with the one that was perhaps meant."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        word = args[0] if args else ""
        if word and not word.startswith("-") and self.get_command(ctx, word) is None:
            meant = OTHER_WORDS.get(word)
            hint = f" Did you mean {meant!r}?" if meant else did_you_mean(word, self.list_commands(ctx))
            ctx.fail(f"No such command: {word}.{hint}")
        return super().resolve_command(ctx, args)


def _where(error: BaseException) -> str:
    """An unexpected error without its message, which could hold a cell: its type and place only."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}" if trace else "unknown"
    return f"This is a bug in sfumato ({type(error).__name__} at {place}); nothing was written. Please report it."


def _allow_memory(context: click.Context, _option: click.Parameter, size: str | None) -> int | None:
    """Bytes that may be taken; every table that the command reads is held to them."""
    from sfumato.table.allowance import allowing  # noqa: PLC0415

    memory = None if size is None else parse_size(size)
    context.with_resource(allowing(memory))
    return memory


_memory_option = partial(
    click.option, "--memory", metavar="SIZE", callback=_allow_memory,
    help="Most memory for what grows with the data, such as 2GB; half of what is free if not given.",
)  # fmt: skip


@click.group(
    cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(version("sfumato"), prog_name="sfumato")
def commands() -> None:
    """Publish a table about people without publishing the people in it.

    TABLE is a CSV file (delimiter sniffed, .gz too), Parquet (file, folder or glob), Arrow IPC, .xlsx,
    sqlite:///file.db#table, duckdb:///file.db#table, postgresql://host/database#table,
    or - for CSV on standard input.
    """


_overwrite = click.option("--overwrite", is_flag=True, help="Replace what is there already.")


@commands.command()
@click.option(
    "--out",
    default="sfumato-demo",
    show_default=True,
    type=click.Path(path_type=Path),
    help="Folder to make.",
)
def demo(out: Path) -> None:
    """Run the whole job on a generated hospital table."""
    from sfumato.examples import demo as example  # noqa: PLC0415 - each command imports what it needs: --help stays quick

    _claim_demo_folder(out)
    table, policy, release = out / "patients.csv", out / "policy.yaml", out / "release"
    _say(f"The table: 10,000 generated hospital stays, {table}")
    example.write_example(out)
    if release.exists():
        shutil.rmtree(release)
    _say("\nWhat will such a release be good for? Measured on held-out rows:")
    measured = _measure_demo(str(table), policy, out / "evaluation.json")
    _say("\nThe release, and every claim of it checked again:")
    _publish(
        str(table), policy, release, seed=None, threads=None, file_format=None, overwrite=False, quiet=False,
        evaluation=measured,
    )  # fmt: skip
    verify.callback(release=str(release), policy=None, side_table=None, **AS_USUAL)  # type: ignore[misc]
    _say(
        f"\nLook at\n  {release / 'report.html'}    what was promised and what happened, with pictures\n"
        f"  {release / 'release.csv'}    the rows that can be published\n"
        f"  {out / 'private.yaml'}    the same patients under differential privacy; see docs/differential-privacy.md\n"
        f"  {out / 'personal.yaml'}    a box for each patient; see docs/risk-utility.md\n"
        f"  {policy}    what the owner asked for; change it and run\n"
        f"  sfumato publish {table} --policy {policy} --out my-release"
    )


def _measure_demo(table: str, policy: Path, out: Path) -> Path | None:
    """The demo goes on without an evaluation where scikit-learn is not installed."""
    out.unlink(missing_ok=True)
    try:
        evaluate.callback(  # type: ignore[misc]
            **AS_USUAL, table=table, policy=policy, folds=3, test=None, out=out, models=None, learn_from=None,
            learners="scikit-learn", seed=0, threads=None, overwrite=False, quiet=False,
        )  # fmt: skip
    except MissingExtra as error:
        _say(f"  left out here. {error}")
        return None
    return out


def _claim_demo_folder(folder: Path) -> None:
    if folder.exists() and not (folder / DEMO_MARK).exists() and any(folder.iterdir()):
        raise InputError(f"{folder} was not made by an earlier demo and stays as it is; give another --out.")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / DEMO_MARK).write_text("sfumato demo may overwrite this folder.\n", encoding="utf-8")


def _reading_options(command: Callable[..., None]) -> Callable[..., None]:
    """How the text of TABLE is written, for every command that reads one: one value, ``reading``."""

    @functools.wraps(command)
    def with_reading(*, encoding: str | None, decimal: str | None, dates: str | None, **rest: Any) -> None:
        from sfumato.table.reading import Reading  # noqa: PLC0415

        command(reading=Reading(encoding, decimal, dates), **rest)

    options = (
        click.option("--encoding", metavar="NAME",
                     help="Of TABLE, if it is no UTF-8, such as latin-1; recognized if not given."),
        click.option("--decimal", metavar="SIGN",
                     help="The decimal sign of its numbers, . or ,; recognized if not given."),
        click.option("--dates", metavar="FORMAT",
                     help="How its dates are written, such as %d.%m.%Y, which is recognized; else as 2024-03-05."),
    )  # fmt: skip
    for option in reversed(options):
        with_reading = option(with_reading)
    return with_reading


@commands.command()
@click.argument("table")
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), help="File to write; else standard output."
)
@click.option(
    "--private",
    is_flag=True,
    help="Draft a policy for a private release (DiffGen), with every domain declared.",
)
@_memory_option(expose_value=False)
@_overwrite
@_reading_options
def profile(table: str, out: Path | None, reading: Reading, *, private: bool, overwrite: bool) -> None:
    """Look at TABLE and draft a policy for it, each guess with its reason.

    The draft publishes as it stands, but it is a guess: read it before you publish. With --private it holds bounds and
    values that were read from the table, each marked: replace them by public knowledge.
    """
    from sfumato.profiling.profile import profile as look_at  # noqa: PLC0415
    from sfumato.table.databases import without_secrets  # noqa: PLC0415
    from sfumato.table.files import check_file_target, replace_atomically  # noqa: PLC0415

    if out is not None:
        _check_own_file(out, table)
        check_file_target(out, overwrite=overwrite)
    draft = look_at(table, private=private, reading=reading).to_yaml()
    if out is None:
        click.echo(draft.encode(), nl=False)  # a policy is UTF-8, whatever the terminal is
        return
    with replace_atomically(out, overwrite=overwrite) as temporary:
        temporary.write_text(draft, encoding="utf-8")
    options = f"--policy {out}{reading.as_options} --out release"
    _say(f"Wrote {out}. Read it, then: sfumato publish {shlex.quote(without_secrets(table))} {options}")


@commands.command()
@click.argument("table")
@click.option("--policy", required=True, type=click.Path(path_type=Path), help="The policy, a YAML file.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder of the release.")
@click.option("--engine", type=click.Choice(["auto", "memory", "disk", "spark"]), default="auto", show_default=True,
              help="Where the rows live while they are worked on; auto is memory where they fit there.")  # fmt: skip
@_memory_option()
@click.option(
    "--format",
    "file_format",
    type=click.Choice(["csv", "parquet"]),
    help="Of the release; as the input if not given.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    help="Repeat the order of rows exactly; secret otherwise. A differentially private release is not private then.",
)
@click.option("--threads", type=click.IntRange(min=1), help="All cores if not given.")
@click.option(
    "--ledger",
    type=click.Path(path_type=Path),
    help="A JSON file of yours that adds up the epsilon of all private releases of the table, and keeps a budget.",
)
@click.option(
    "--evaluation",
    type=click.Path(path_type=Path),
    help="What `sfumato evaluate --out FILE.json` measured, for certificate and report.",
)
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
@click.option("--verbose", is_flag=True, help="Print figures of the run.")
@click.option("--overwrite", is_flag=True, help="Replace an earlier release.")
@_reading_options
def publish(
    table: str,
    policy: Path,
    out: Path,
    engine: str,
    memory: int | None,
    file_format: str | None,
    seed: int | None,
    threads: int | None,
    ledger: Path | None,
    evaluation: Path | None,
    reading: Reading,
    *,
    quiet: bool,
    verbose: bool,
    overwrite: bool,
) -> None:
    """Make a verified release of TABLE."""
    if engine == "spark":
        raise NotYet(f"--engine {engine}")
    _publish(
        table, policy, out, seed=seed, threads=threads, file_format=file_format, overwrite=overwrite, quiet=quiet,
        verbose=verbose, engine=engine, memory=memory, evaluation=evaluation,
        ledger=ledger, reading=reading,
    )  # fmt: skip


def _publish(
    table: str,
    policy: Path,
    out: Path,
    *,
    seed: int | None,
    threads: int | None,
    file_format: str | None,
    overwrite: bool,
    quiet: bool,
    verbose: bool = False,
    engine: str = "auto",
    memory: int | None = None,
    evaluation: Path | None = None,
    ledger: Path | None = None,
    reading: Reading | None = None,
) -> None:
    from sfumato.evaluation.result import Evaluation  # noqa: PLC0415
    from sfumato.policy.document import Policy  # noqa: PLC0415
    from sfumato.publishing import columns_with_formulas, promises, publish_to  # noqa: PLC0415
    from sfumato.table.reading import Reading  # noqa: PLC0415

    utility = None if evaluation is None else Evaluation.from_json(evaluation.read_bytes())
    with _progress_bar(quiet=quiet) as progress:
        release = publish_to(
            out, table, Policy.read(policy), seed=seed, threads=threads, file_format=file_format,
            overwrite=overwrite, engine=engine, memory=memory, evaluation=utility, ledger=ledger, progress=progress,
            reading=reading or Reading(),
        )  # fmt: skip
    claims, privacy = release.certificate.claims, release.certificate.privacy
    if privacy is not None and not privacy.is_secret:
        _say(f"sfumato: {out} is {privacy.randomness}: publish without --seed.", err=True)
    if quiet:
        return
    if privacy is None:
        words = ("group",) if claims.utility is None else ("box", "different boxes")
        groups = number_of(claims.groups, *words)
        _say(f"{out}: {number_of(claims.rows, 'row')} in {groups}, verified.")
    elif privacy.sampling is not None:
        rows = number_of(claims.rows, "drawn row")
        boxes = number_of(claims.groups, "box", "boxes")
        nothing = "" if claims.rows else " Nothing was drawn often enough to be published."
        _say(f"{out}: {rows} in {boxes}, verified.{nothing}")
    else:
        _say(f"{out}: counts in {number_of(claims.groups, 'cell')} that sum to {claims.counted:,}, verified.")
    for line in (*promises(release), *release.remarks):
        _say(f"  {line}")
    for notice in release.notices:
        _say(f"warning: {notice}", err=True)
    if named := columns_with_formulas(release):
        columns = ", ".join(map(repr, named))
        _say(
            f"note: cells of {columns} begin with =, @, +, - or a tab, which spreadsheets run as formulas; "
            "output: {formulas: escape} puts ' before them.",
            err=True,
        )
    figures = dict(release.certificate.figures)
    for found in figures.pop("imprecision", ()):
        _say(
            f"  select {found['where']}: {number_of(found['returned'], 'row')} returned for {found['true']:,} "
            f"(imprecision {found['imprecision']:,})"
        )
    for word in ("utility", "tradeoff"):  # the owner has the one already, and the other stands above
        figures.pop(word, None)
    if whole := figures.get("io", {}).get("nonminimal"):
        _say(
            f"  {number_of(whole, 'group')} could perhaps be divided further: the sample was too small to tell."
        )
    if verbose:
        for name, figure in figures.items():
            if isinstance(figure, dict):
                told = {word: number for word, number in figure.items() if number != 0}
                figure = ", ".join(f"{word} {_plain(number)}" for word, number in told.items())  # noqa: PLW2901
            _say(f"  {name}: {figure}")


@commands.command()
@click.argument("release")
@click.option(
    "--policy", type=click.Path(path_type=Path), help="Judge a table that any tool made by this policy."
)
@click.option(
    "--side-table",
    metavar="TABLE",
    help="The table that a risk-utility release was made with: recompute its risk.",
)
@_memory_option()
@_reading_options
def verify(
    release: str, policy: Path | None, side_table: str | None, reading: Reading, memory: int | None = None
) -> None:
    """Re-check RELEASE, a folder, from its published rows; or with --policy any table by its cells."""
    from sfumato.policy.document import Policy  # noqa: PLC0415
    from sfumato.verify import folder as verifying  # noqa: PLC0415

    if policy is not None and side_table is not None:
        raise InputError(
            "--side-table is for a release folder, which says how risk is counted; leave out --policy."
        )
    if policy is None and reading.as_options:
        raise InputError(f"A release is UTF-8, and says how it is written; leave out{reading.as_options}.")
    if policy is not None:
        verdict = verifying.verify_table(release, Policy.read(policy), memory=memory, reading=reading)
    else:
        verdict = verifying.verify_folder(Path(release), side_table=side_table, memory=memory)
        verdict = _with_report(verdict, Path(release))
    for check in verdict.checks:
        _say(f"{check.mark:<4}  {check.claim}{': ' + check.detail if check.detail else ''}")
    verdict.raise_if_failed()


def _with_report(verdict: Verdict, folder: Path) -> Verdict:
    """The verdict on a folder, with one on its report in place of the note that nobody has looked at it.

    What a report of another version looks like, this one does not know.
    """
    from sfumato import report  # noqa: PLC0415 - most commands need none
    from sfumato.release.certificate import this_version  # noqa: PLC0415
    from sfumato.release.folder import REPORT  # noqa: PLC0415
    from sfumato.release.release import Release  # noqa: PLC0415
    from sfumato.verify.checks import Check, Verdict  # noqa: PLC0415
    from sfumato.verify.folder import REPORT_NOT_CHECKED  # noqa: PLC0415

    if not verdict.ok or REPORT_NOT_CHECKED not in verdict.checks:
        return verdict
    release = Release.read(folder)
    made_by, here = release.certificate.version, this_version()
    if made_by == here:
        given = (folder / REPORT).read_bytes()
        # a recoding that did not fit in the memory of its run left the report without a picture of it
        ways = (release, replace(release, recoding=None))
        is_same = any(given == report.render(way).encode("utf-8") for way in ways)
        check = Check(
            "the report is what the release is rendered as", is_same, "" if is_same else "it is another"
        )
    else:
        check = replace(REPORT_NOT_CHECKED, detail=f"it was made by version {made_by}, and this is {here}")
    return Verdict(tuple(check if one is REPORT_NOT_CHECKED else one for one in verdict.checks))


@commands.command()
@click.argument("release", type=click.Path(path_type=Path))
@click.argument("table")
@click.option(
    "--out", required=True, type=click.Path(path_type=Path), help="File to write: .csv, .csv.gz or .parquet."
)
@_memory_option()
@click.option(
    "--side-table",
    metavar="TABLE",
    help="For a risk-utility release: further rows are optimized anew against it.",
)
@_overwrite
@_reading_options
def apply(
    release: Path,
    table: str,
    out: Path,
    memory: int | None,
    side_table: str | None,
    reading: Reading,
    *,
    overwrite: bool,
) -> None:
    """Recode further rows of TABLE with the recoding of RELEASE, a folder.

    Needs the quasi-identifiers only; identifier and drop columns are left out, the rest passes through.
    Recoded rows carry no promise. A risk-utility release has no recoding and needs a --side-table.
    """
    from sfumato.policy.document import Policy  # noqa: PLC0415
    from sfumato.policy.options.risk_utility import RiskUtilityOptions  # noqa: PLC0415

    if not release.is_dir():
        raise InputError(f"{release} is not a release folder.")
    _check_own_file(out, table, side_table)
    policy = Policy.of_release(release / "policy.yaml")
    if isinstance(policy.method, RiskUtilityOptions):
        n_rows = _generalize_anew(
            policy, table, out, side_table, reading, has_memory=memory is not None, overwrite=overwrite
        )
        _say(f"{out}: {number_of(n_rows, 'row')} generalized anew, without a promise.")
        return
    if side_table is not None:
        raise InputError(
            "--side-table is for risk-utility releases, and this one has a recoding; leave it out."
        )
    from sfumato.recoding.tree_file import apply_to_file  # noqa: PLC0415

    n_rows = apply_to_file(
        release,
        policy.schema,
        table,
        out,
        memory=memory,
        reading=reading,
        overwrite=overwrite,
        is_escaped=policy.escapes_formulas,
    )
    _say(f"{out}: {number_of(n_rows, 'row')} recoded, without a promise.")


def _generalize_anew(
    policy: Policy,
    table: str,
    out: Path,
    side_table: str | None,
    reading: Reading,
    *,
    has_memory: bool,
    overwrite: bool,
) -> int:
    from sfumato.methods.risk_utility.apply import apply_to_file  # noqa: PLC0415

    if has_memory:
        raise InputError("Rows are optimized in memory, all at once; leave out --memory.")
    with _progress_bar(quiet=False) as progress:
        return apply_to_file(
            policy, table, out, side_table, reading=reading, overwrite=overwrite, progress=progress
        )


def _learning_options(command: Callable[..., None]) -> Callable[..., None]:
    """What ``evaluate`` and ``compare`` share."""
    options = (
        click.option("--models", metavar="A,B", help="Models to try; all that fit the workload if not given."),
        click.option("--learn-from", type=click.Choice(["corners", "midpoint", "sample"]),
                     help="How boxes become points; corners if not given."),
        click.option("--learners", type=click.Choice(["scikit-learn", "weka"]), default="scikit-learn",
                     show_default=True, help="Whose models; weka needs the extra of that name."),
        click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True,
                     help="Same seed, same folds and models."),
        click.option("--threads", type=click.IntRange(min=1), help="All cores if not given."),
        _memory_option(expose_value=False),
        click.option("--quiet", is_flag=True, help="Print nothing but errors."),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def _named(models: str | None) -> list[str] | None:
    return None if models is None else [name.strip() for name in models.split(",") if name.strip()]


@commands.command()
@click.argument("table")
@click.option("--policy", required=True, type=click.Path(path_type=Path), help="The policy, a YAML file.")
@click.option("--folds", type=click.IntRange(min=2), help="Parts to hold out in turn; 10 if not given.")
@click.option("--test", help="A table of further rows to judge by, in place of folds.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False),
              help="File to write: .json (for publish --evaluation), .csv, .csv.gz or .parquet.")  # fmt: skip
@_overwrite
@_learning_options
@_reading_options
def evaluate(
    table: str,
    policy: Path,
    folds: int | None,
    test: str | None,
    out: Path | None,
    models: str | None,
    learn_from: str | None,
    learners: str,
    seed: int,
    threads: int | None,
    reading: Reading,
    *,
    overwrite: bool,
    quiet: bool,
) -> None:
    """Measure on held-out rows what releases of TABLE are good for.

    Models learn from recoded rows, from the raw data and from nothing, and are judged on rows that neither
    they nor the recoding have seen. For the owner's eyes: nothing of it is in a release unless
    publish --evaluation puts it there.
    """
    from sfumato.evaluation import show  # noqa: PLC0415
    from sfumato.evaluation.protocol import evaluate as measure  # noqa: PLC0415
    from sfumato.policy.document import Policy  # noqa: PLC0415
    from sfumato.table.files import check_file_target, replace_atomically  # noqa: PLC0415
    from sfumato.table.write import write_table  # noqa: PLC0415

    if folds is not None and test is not None:
        raise InputError("Give --folds or --test, not both.")
    if out is not None and not out.name.endswith((".json", ".csv", ".csv.gz", ".parquet")):
        raise InputError("--out writes .json (for publish --evaluation), .csv, .csv.gz or .parquet.")
    if out is not None:
        _check_own_file(out, table, policy, test)
        check_file_target(out, overwrite=overwrite)
    chosen = Policy.read(policy)
    with _progress_bar(quiet=quiet) as progress:
        found = measure(
            table, chosen, folds=folds or 10, test=test, models=_named(models), learn_from=learn_from,
            seed=seed, learners=learners, threads=threads, reading=reading, progress=progress,
        )  # fmt: skip
    if out is not None and out.suffix == ".json":
        with replace_atomically(out, overwrite=overwrite) as temporary:
            temporary.write_text(found.to_json(), encoding="utf-8")
    elif out is not None:
        write_table(show.as_table(found), out, overwrite=overwrite)
    if not quiet:
        _say(show.as_text(found))
        for line in _not_as_declared(table, chosen, reading):
            _say(line)


def _not_as_declared(table: str, policy: Policy, reading: Reading) -> Iterator[str]:
    """What an owner should know before a private release, which says nothing of it."""
    from sfumato.encoding.declared import not_as_declared  # noqa: PLC0415
    from sfumato.table.reading import open_as  # noqa: PLC0415

    if not policy.is_private or table == "-":  # stdin has been read
        return
    source = open_as(table, policy.schema, reading, is_private=True)
    policy = policy.expand(source.names)
    found = not_as_declared(source, policy)
    quasi = {attribute.name for attribute in policy.schema.quasi_identifiers}
    cells = [f"{name} {n:,}" for name, n in found.items() if name in quasi]
    if cells:
        yield f"Cells that are not as declared, taken as missing or as the nearest bound: {', '.join(cells)}."
    for name, n in found.items():
        if name not in quasi:
            yield f"Rows without a declared {name}, which are left out: {n:,}."


@commands.command()
@click.argument("table")
@click.option("--policy", required=True, type=click.Path(path_type=Path), help="The policy, a YAML file.")
@click.option("--vary", "vary", multiple=True, required=True, metavar="WORD=A,B,...",
              help="k, l, epsilon, method or workload (on, off), such as k=2,5,10; may stand several times.")  # fmt: skip
@click.option(
    "--folds", type=click.IntRange(min=2), default=3, show_default=True, help="Parts to hold out in turn."
)
@click.option(
    "--out", default="frontier", show_default=True, type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the results.",
)  # fmt: skip
@_overwrite
@_learning_options
@_reading_options
def compare(
    table: str,
    policy: Path,
    vary: tuple[str, ...],
    folds: int,
    out: Path,
    models: str | None,
    learn_from: str | None,
    learners: str,
    seed: int,
    threads: int | None,
    reading: Reading,
    *,
    overwrite: bool,
    quiet: bool,
) -> None:
    """Try settings on TABLE and show the risk-utility frontier.

    Writes frontier.csv, frontier.json and frontier.svg, and frontier.png where matplotlib is installed.
    For the owner's eyes: none of it is in a release.
    """
    from sfumato.comparison import as_text, parse_vary  # noqa: PLC0415
    from sfumato.comparison import compare as try_all  # noqa: PLC0415
    from sfumato.comparison.write import check_target, write_comparison  # noqa: PLC0415
    from sfumato.policy.document import Policy  # noqa: PLC0415

    chosen, rules = parse_vary(vary), Policy.read(policy)
    check_target(out, overwrite=overwrite)
    with _progress_bar(quiet=quiet) as progress:
        found = try_all(
            table, rules, chosen, folds=folds, models=_named(models),
            learn_from=learn_from, seed=seed, learners=learners, threads=threads, reading=reading, progress=progress,
        )  # fmt: skip
    paths = write_comparison(found, out)
    if not quiet:
        _say(as_text(found))
        _say(f"\nWrote {', '.join(map(str, paths))}.")
    if not found.met:
        raise PromiseError("None of these settings can be met; ask for less, or add rows.")


@commands.group()
def generate() -> None:
    """Make the synthetic data of the papers."""


@generate.command()
@click.option("--rows", required=True, metavar="N", help="Number of rows, such as 100000 or 1e6.")
@click.option(
    "--out", required=True, type=click.Path(path_type=Path), help="File to write: .csv, .csv.gz or .parquet."
)
@click.option(
    "--function",
    default="C2",
    show_default=True,
    help="What labels the rows: C1 to C10 give classes, R7 and R10 numbers.",
)
@_overwrite
@click.option("--seed", type=click.IntRange(min=0), help="Same seed, same rows.")
@click.option(
    "--salary",
    default="uniform",
    show_default=True,
    help="Distribution of salaries: uniform, or normal with variance 1.1e8.",
)
@click.option(
    "--vary-constants", is_flag=True, help="Draw the constants of C1 to C6 at random, once for the table."
)
def agrawal(
    rows: str,
    out: Path,
    function: str,
    seed: int | None,
    salary: str,
    *,
    overwrite: bool,
    vary_constants: bool,
) -> None:
    """The nine attributes of Agrawal et al. and a class."""
    from sfumato.examples import agrawal as generating  # noqa: PLC0415

    n_rows = parse_count(rows)
    _check_own_file(out)
    with _progress_bar(quiet=False) as progress:
        done = 0

        def count(n: int) -> None:
            nonlocal done
            done += n
            progress("generating", done, n_rows)

        generating.write_agrawal(
            n_rows,
            out,
            function=function,
            seed=seed,
            salary=salary,
            vary_constants=vary_constants,
            overwrite=overwrite,
            progress=count,
        )
    _say(f"{out}: {number_of(n_rows, 'row')}.")


def _check_own_file(out: Path, *inputs: object) -> None:
    """Never write over what is read, nor into a release."""
    from sfumato.release.folder import check_outside  # noqa: PLC0415

    for given in inputs:
        if given is not None and out.exists() and Path(str(given)).exists() and out.samefile(str(given)):
            raise InputError(f"{out} is read by this command; give another --out.")
    check_outside(out.parent)


def _later(name: str, purpose: str) -> click.Command:
    def refuse(**_: Any) -> None:
        raise NotYet(f"sfumato {name} ({purpose})")

    settings = {"ignore_unknown_options": True, "allow_extra_args": True}
    return click.Command(name, callback=refuse, hidden=True, context_settings=settings)


for _name, _purpose in LATER_COMMANDS.items():
    commands.add_command(_later(_name, _purpose))


def parse_count(text: str) -> int:
    """A whole number, also as 1e6 or 1_000_000.

    >>> parse_count("1e6")
    1000000
    """
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 1 <= number < math.inf or number != int(number):
        raise InputError("--rows must be a whole number of at least 1, such as 100000 or 1e6.")
    return int(number)


def _plain(number: object) -> str:
    return f"{number:,}" if isinstance(number, int | float) and not isinstance(number, bool) else str(number)


def parse_size(text: str) -> int:
    """Bytes of a size such as 512MB or 2GB; at least 4MB.

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
        raise InputError("--memory must be at least 4MB.")
    return size


@contextmanager
def _progress_bar(*, quiet: bool) -> Iterator[Callable[[str, int, int], None]]:
    """A bar on a terminal; when piped, a word where the user would wait for half a minute."""
    from sfumato import progress  # noqa: PLC0415

    if quiet:
        yield progress.no_progress
    elif sys.stderr.isatty():
        with progress.bar() as told:
            yield told
    else:
        with progress.telling_of_compiling():
            yield progress.no_progress


__all__ = ["commands", "main", "parse_count", "parse_size", "run"]
