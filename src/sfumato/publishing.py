"""The one path: table + policy -> method -> certificate -> verify -> report -> release."""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa

from sfumato import report
from sfumato.engines.engine import (
    AUTO,
    SPARK,
    EngineChoice,
    Resources,
    bytes_needed,
    choose_engine,
    estimate_bytes,
    is_frame_of_spark,
)
from sfumato.engines.start import look_at_columns
from sfumato.errors import InputError
from sfumato.evaluation.result import Evaluation
from sfumato.machine import day_of_making
from sfumato.methods import METHODS
from sfumato.methods.protocol import Draft, Extras, Method, Seed
from sfumato.policy.document import Policy
from sfumato.policy.schema import Role
from sfumato.privacy.account import RunCharge
from sfumato.progress import Progress, no_progress, showing
from sfumato.randomness import run_key
from sfumato.recoding.large_tree import LargeRecoding
from sfumato.recoding.pseudonyms import Pseudonyms
from sfumato.release.certificate import NO_ANONYMIZATION, Certificate
from sfumato.release.folder import check_target
from sfumato.release.release import Release
from sfumato.report.remarks import losses_of, notices_of, remarks_of, tell_left_out
from sfumato.table import opening
from sfumato.table.allowance import TooLarge, allowing
from sfumato.table.cells import give_back_memory
from sfumato.table.reading import AS_USUAL, Reading, open_as
from sfumato.table.shifted_dates import shift_dates
from sfumato.table.source import UNKNOWN, Source, release_format
from sfumato.table.spill import Spill
from sfumato.table.write import compact
from sfumato.verify.cells import FoundGroups
from sfumato.verify.checks import Verification
from sfumato.verify.drafts import DraftFinding, DraftRows, examine_draft
from sfumato.verify.folder import verify_folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What an owner asks for beside table and policy, as :func:`publish` explains it."""

    evaluation: Evaluation | None = None
    seed: int | None = None
    threads: int | None = None
    file_format: str | None = None
    engine: str = AUTO
    memory: int | None = None
    ledger: str | PathLike[str] | None = None
    side_table: Any = None
    reading: Reading = AS_USUAL
    progress: Progress = no_progress
    explains: bool = False
    """Should the release say what each column lost, and why? That takes some seconds for a million rows."""


NOTHING_MORE = Request()


def publish(
    table: Any,
    policy: Policy | Mapping[str, Any] | str | Path,
    *,
    evaluation: Evaluation | None = None,
    seed: int | None = None,
    threads: int | None = None,
    file_format: str | None = None,
    engine: str = AUTO,
    memory: int | None = None,
    ledger: str | PathLike[str] | None = None,
    side_table: Any = None,
    reading: Reading = AS_USUAL,
    progress: Progress | bool = no_progress,
) -> Release:
    """Publish a table: the release meets the policy's requirements, and has been verified.

    ``table`` is a frame (pandas, Polars, Arrow, DuckDB, Spark) or a path; ``policy`` is a :class:`Policy`, a dict laid
    out as its YAML document, or a path. If a requirement cannot be met, a ``PromiseError`` says by how much.

    >>> rows = pa.table({"age": ["23", "25", "41", "44"], "disease": ["flu", "cold", "flu", "asthma"]})
    >>> policy = Policy.parse('''
    ... attributes: {age: {role: quasi-identifier, type: number}, disease: {role: sensitive}}
    ... require: [k-anonymity: 2]
    ... ''')
    >>> release = publish(rows, policy)
    >>> release.table.column("age").to_pylist()
    ['[23, 25]', '[23, 25]', '[41, 44]', '[41, 44]']

    ``seed``: repeats the order of the published rows, which is secret without one. A differentially private release
    with a seed is not private.

    ``evaluation``: what :func:`evaluate` found for the same policy, for the certificate's figures and the report.

    ``engine``, ``memory``: where the rows live (auto, memory, disk or spark), and how many bytes may be taken for what
    grows with the table, on Spark by each task. A table that would not fit goes by way of the disk by itself.

    ``file_format``: csv or parquet, of the file of rows; as the input if not given.

    ``ledger``: a file that adds up what all private releases of a table spend, and keeps a budget.

    ``side_table``: for ``risk-utility``, the table that risk is counted against, in place of the policy's own.

    ``reading``: what cannot be seen from the text of a table, such as its encoding or a decimal comma.

    ``progress``: True shows on standard error how far the run is; a function is called with (stage, done, total).
    """
    with showing(progress) as told:
        request = Request(
            evaluation=evaluation, seed=seed, threads=threads, file_format=file_format, engine=engine,
            memory=memory, ledger=ledger, side_table=side_table, reading=reading, progress=told,
        )  # fmt: skip
        run = _Run.of(table, Policy.of(policy), request, RunCharge(request.ledger))
        with run.charge.note_failures():
            if run.choice.budget is not None:
                return _publish_on_disk(run, run.choice.budget)
            with allowing(memory):
                return run.in_memory()


def _publish_on_disk(run: _Run, budget: int) -> Release:
    """A release whose rows are in a file that lives as long as the release."""
    spill = Spill().__enter__()
    try:
        release = run.on_disk(budget, spill)
    except BaseException:
        spill.__exit__(None, None, None)
        raise
    weakref.finalize(release.rows, spill.__exit__, None, None, None)
    return release


def publish_to(
    folder: str | PathLike[str],
    table: Any,
    policy: Policy | Mapping[str, Any] | str | Path,
    request: Request = NOTHING_MORE,
    *,
    overwrite: bool = False,
) -> Release:
    """``publish`` into a folder, which appears when it is complete and verified, or not at all."""
    is_free = partial(check_target, folder, overwrite=overwrite)
    is_free()
    run = _Run.of(table, Policy.of(policy), request, RunCharge(request.ledger, str(folder), is_free))
    if run.choice.budget is None:
        with allowing(request.memory), run.charge.note_failures():
            release = run.in_memory()
            _announce_writing(request.progress)
            release.write(folder, overwrite=overwrite)
        return release
    with run.charge.note_failures(), Spill(Path(folder)) as spill:
        release = run.on_disk(run.choice.budget, spill)
        _announce_writing(request.progress)
        release.write(folder, overwrite=overwrite, within=spill.folder)
    if isinstance(release.recoding, LargeRecoding):
        release = replace(release, recoding=release.recoding.at(Path(folder)))
    return release


def _announce_writing(progress: Progress) -> None:
    give_back_memory()
    progress("writing and verifying", 0, 1)


@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    """One table on its way to a release.

    ``table`` is a path, a DataFrame of Spark, or opened already, for some can be read but once.
    """

    table: Any
    policy: Policy
    request: Request
    charge: RunCharge
    method: Method
    choice: EngineChoice
    made: date | None

    @classmethod
    def of(cls, table: Any, policy: Policy, request: Request, charge: RunCharge) -> _Run:
        """Everything that can be decided, and found fault with, before the table is read."""
        method = METHODS[policy.method.name]
        method.check(table, policy, Extras(request.side_table))
        if request.ledger is not None and (request.seed is not None or not policy.is_private):
            raise InputError(
                "--ledger keeps no account of a run with --seed, which is not private. Leave out --seed."
                if policy.is_private
                else "--ledger is only for differentially private releases, and this policy makes none. Leave it out."
            )
        made = day_of_making(request.seed)
        if isinstance(table, str | PathLike):
            given: Any = os.fsdecode(table)
        elif is_frame_of_spark(table):
            given, request = (
                table,
                replace(request, engine=SPARK if request.engine == AUTO else request.engine),
            )
            if request.engine != SPARK:
                raise InputError("A DataFrame of Spark is published on Spark; leave out the engine.")
        else:
            given, policy = _open(table, policy, request.reading)
        choice = choose_engine(
            request.engine,
            request.memory,
            partial(_bytes_needed, given, policy, request.reading),
            is_endless=given == "-",
            only_in_memory=policy.method.name if method.only_in_memory else "",
        )
        return cls(given, policy, request, charge, method, choice, made)

    def in_memory(self) -> Release:
        """The release of a table that fits, which may turn out to be larger than its file looks."""
        try:
            source, policy = self._open_table()
        except TooLarge as error:
            raise TooLarge(error.where, error.most, self.choice.way_out) from None
        self.choice.check(bytes_needed(source.n_rows, len(policy.schema.published)))
        return self._release(source, policy, Resources(self.request.threads))

    def on_disk(self, budget: int, spill: Spill) -> Release:
        """The release of a table of any size; its rows are in a file of the spill folder."""
        if self.choice.is_spark:
            return self._on_spark(budget, spill)
        source, policy = self._open_table(lazy=True, spool=spill.path("stdin"))
        return self._release(source, policy, Resources(self.request.threads, spill, budget))

    def _on_spark(self, budget: int, spill: Spill) -> Release:
        """The release of a table whose slices are read and published by the tasks of a cluster."""
        from sfumato.engines.spark import session as spark  # noqa: PLC0415 - few have it

        jobs = spark.start_jobs(self.table, spill.folder, progress=self.request.progress)
        with jobs:
            if is_frame_of_spark(self.table):
                stored = jobs.store_frame(self.table)
                source, policy = _open(stored, self.policy, self.request.reading, lazy=True)
            else:
                source, policy = self._open_table(lazy=True, spool=spill.path("stdin"))
                source = jobs.with_slices(source)
            return self._release(source, policy, Resources(self.request.threads, spill, budget, jobs))

    def _open_table(self, **options: Any) -> tuple[Source, Policy]:
        if isinstance(self.table, Source):
            return self.table, self.policy
        return _open(self.table, self.policy, self.request.reading, **options)

    def _release(self, source: Source, policy: Policy, engine: Resources) -> Release:
        request = self.request
        file_format = request.file_format or ("parquet" if self.choice.is_spark else release_format(source))
        policy.check_columns(source.names)
        if request.evaluation is not None:
            request.evaluation.check_policy(policy)
            if source.n_rows != UNKNOWN:
                request.evaluation.check_rows(source.n_rows)
        pseudonyms = Pseudonyms.of(policy, request.seed)
        source = shift_dates(source, policy.schema, run_key(request.seed))
        looked = (
            None if policy.is_private else look_at_columns(source, policy, engine, progress=request.progress)
        )
        if looked is not None:
            looked.refuse()
        draft = self.method.draft(
            source,
            policy,
            engine,
            chance=Seed(request.seed),
            extras=Extras(request.side_table, self.charge, file_format, pseudonyms),
            progress=request.progress,
        )
        if isinstance(draft.rows, pa.Table):
            draft = replace(draft, rows=compact(draft.rows))
        give_back_memory()
        request.progress("verifying", 0, 1)
        told = {} if looked is None else looked.as_figures()
        if policy.schema.names(Role.PSEUDONYM):
            told["pseudonyms"] = NO_ANONYMIZATION
        draft = replace(draft, figures={**draft.figures, **told})
        release, groups = self._verify(draft, engine, file_format, source.kind)
        if looked is not None:
            release = replace(release, notices=(*looked.notices(), *release.notices))
        give_back_memory()
        request.progress("reporting", 0, 1)
        return release.with_report(report.render(release, groups))

    def _verify(
        self, draft: Draft, engine: Resources, file_format: str, kind: str
    ) -> tuple[Release, FoundGroups | None]:
        """The release of a draft of which every claim was found to be true, and the groups that were found."""
        memory, scratch = (None, None) if engine.spill is None else (engine.memory, engine.spill.folder)
        policy, rows = draft.policy, draft.rows
        found = examine_draft(
            DraftRows(
                rows, policy, draft.recoding, draft.claims, draft.missing, draft.people, memory, scratch
            )
        )
        claims = replace(found.claims, suppressed=draft.suppressed) if draft.suppressed else found.claims
        figures = dict(draft.figures)
        if self.request.evaluation is not None:
            self.request.evaluation.check_rows(found.claims.rows + draft.suppressed)
            utility = self.request.evaluation.as_dict().items()
            figures["utility"] = {key: part for key, part in utility if key != "policy"}
        is_private = draft.privacy is not None  # then nothing is said that was not drawn, not even the day
        made = None if is_private else self.made
        certificate = Certificate.of(policy, claims, figures=figures, privacy=draft.privacy, made=made)
        Verification(tuple(found.checks(certificate))).raise_if_failed()
        release = Release(
            rows,
            certificate,
            policy,
            draft.recoding,
            file_format,
            kind,
            check=partial(_check_folder, memory=memory, scratch=scratch, known=found.known),
        )
        if not is_private:
            release = _with_remarks(release, found, draft, explains=self.request.explains)
        return release, found.groups


def _open(table: Any, policy: Policy, reading: Reading, **options: Any) -> tuple[Source, Policy]:
    """The table, and the policy with its patterns replaced by the columns that they stand for."""
    source = open_as(table, policy.schema, reading, is_private=policy.is_private, **options)
    return source, policy.expand(source.names)


def _bytes_needed(table: str | Source, policy: Policy, reading: Reading) -> int:
    """About how much memory publishing a table takes."""
    if table == "-":
        return 0
    source = (
        table
        if isinstance(table, Source)
        else opening.open_table(
            table, lazy=True, may_be_empty=True, any_text=policy.is_private, encoding=reading.encoding
        )
    )
    return estimate_bytes(source, len(policy.schema.published))


def _check_folder(folder: Path, **known: Any) -> None:
    verify_folder(folder, **known).raise_if_failed()


def _with_remarks(release: Release, found: DraftFinding, draft: Draft, *, explains: bool) -> Release:
    """The release with what the owner should know of it."""
    notices = notices_of(found.claims, found.details, release.policy.method.form, draft.reason)
    losses: list[str] = []
    if explains:
        losses = list(losses_of(draft.figures)) if draft.losses is None else draft.losses()
    return replace(
        release,
        remarks=(
            *tell_left_out(release.certificate.claims, release.policy),
            *remarks_of(found.claims, found.details),
        ),
        notices=tuple(notices),
        losses=tuple(losses),
    )


__all__ = ["Request", "publish", "publish_to"]
