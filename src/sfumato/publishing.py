"""The one path: table + policy -> verified release."""

from __future__ import annotations

import math
import os
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, date, datetime
from fractions import Fraction
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sfumato import report
from sfumato.errors import InputError, InternalError, number_of
from sfumato.evaluation.result import Evaluation
from sfumato.methods import partition
from sfumato.policy import predicate
from sfumato.policy.column_names import bound_names
from sfumato.policy.document import Policy
from sfumato.policy.options.diffgen import DiffGenOptions
from sfumato.policy.options.risk_utility import LAGRANGIAN, Absolute, RiskUtilityOptions
from sfumato.policy.schema import Role
from sfumato.policy.workload import Select
from sfumato.privacy import account, mechanisms
from sfumato.progress import Progress, no_progress, showing
from sfumato.randomness import generator
from sfumato.recoding import statistics
from sfumato.recoding.groups import Partition
from sfumato.recoding.large_tree import LargeRecoding
from sfumato.recoding.rows import published_rows
from sfumato.release.certificate import Certificate, Claims, Privacy, Sampling, percent
from sfumato.release.folder import check_target, sha256_of
from sfumato.release.query import select
from sfumato.release.release import Release
from sfumato.table import cells, formulas, opening, write
from sfumato.table.allowance import TooLarge, allowing, memory_allowed
from sfumato.table.reading import AS_USUAL, Reading, open_as
from sfumato.table.source import UNKNOWN, Source, release_format
from sfumato.table.spill import Spill, size_of
from sfumato.table.stored import FiledRows
from sfumato.verify.cells import Detail
from sfumato.verify.checks import Check, Verdict
from sfumato.verify.diffgen import counts
from sfumato.verify.folder import verify_folder
from sfumato.verify.measure import Measures, claims, examine, measure, verify_measures
from sfumato.verify.risk_utility import boxes as verify_tradeoff
from sfumato.verify.risk_utility import sampling

if TYPE_CHECKING:
    from sfumato.methods.specialization.diffgen.release import Drawn

BYTES_PER_CELL = 4
COPIES = 3
"""Memory that publishing takes, in encoded tables."""
TEXT_COPIES = 4
"""And for text, in bytes of its file."""
ZIPPED = 6
"""How much longer text is than its gzip-ed file."""
UNFORESEEN = 3
"""How much more than its text made expect the rows of a table that was read may take: cells can be short."""


def publish(
    table: Any,
    policy: Policy | Mapping[str, Any] | str | Path,
    *,
    evaluation: Evaluation | None = None,
    seed: int | None = None,
    threads: int | None = None,
    file_format: str | None = None,
    engine: str = "auto",
    memory: int | None = None,
    ledger: str | PathLike[str] | None = None,
    side_table: Any = None,
    reading: Reading = AS_USUAL,
    progress: Progress | bool = no_progress,
) -> Release:
    """A verified release of ``table``: a frame (pandas, Polars, Arrow, DuckDB) or a path.

    The policy may be a path, too, or a dict that is laid out as its YAML document is.

    Without a ``seed`` the order of the published rows is secret; with one it can be repeated. An
    ``evaluation`` of the same policy goes into the certificate's figures and the report. ``engine`` is auto, memory
    or disk, and ``memory`` the bytes that may be taken for what grows with the table; by itself, a table that
    would not fit is published by way of the disk.

    >>> rows = pa.table({"age": ["23", "25", "41", "44"], "disease": ["flu", "cold", "flu", "asthma"]})
    >>> policy = Policy.parse('''
    ... attributes: {age: {role: quasi-identifier, type: number}, disease: {role: sensitive}}
    ... require: [k-anonymity: 2]
    ... ''')
    >>> release = publish(rows, policy)
    >>> release.table.column("age").to_pylist()
    ['[23, 25]', '[23, 25]', '[26, 44]', '[26, 44]']

    By a differentially private method (``diffgen``) nothing of the table is published but what was drawn, and with a
    ``seed`` the release is not private. A ``ledger`` is a file in which all private releases of a table are written
    down, before anything is drawn.

    By ``risk-utility`` each row is generalized for itself, and risk is counted against a ``side_table``: a frame or a
    path, in place of the one that the policy names.

    A ``reading`` says what cannot be seen from the text of a table: its encoding, a decimal comma, the format of dates.
    ``progress=True`` shows on standard error how far it is; a function is told so instead.
    """
    with showing(progress) as told:
        job = _job(
            table, Policy.of(policy), evaluation, seed, threads, file_format, told, reading, ledger,
            side_table=side_table,
        )  # fmt: skip
        return _published(job, job.budget(engine, memory), memory)


def _published(job: _Job, budget: int | None, memory: int | None) -> Release:
    """The release of a job, in memory or, with the ``budget`` of a run on disk, by way of it."""
    if budget is None:
        with allowing(memory), _telling_what_was_charged(job):
            return job.in_memory()
    spill = Spill().__enter__()
    try:
        with _telling_what_was_charged(job):
            release = job.on_disk(budget, spill)
    except BaseException:
        spill.__exit__(None, None, None)
        raise
    weakref.finalize(release.rows, spill.__exit__, None, None, None)  # the file lives as long as the release
    return release


def publish_to(
    folder: str | PathLike[str],
    table: Any,
    policy: Policy | Mapping[str, Any] | str | Path,
    *,
    overwrite: bool = False,
    evaluation: Evaluation | None = None,
    seed: int | None = None,
    threads: int | None = None,
    file_format: str | None = None,
    engine: str = "auto",
    memory: int | None = None,
    ledger: str | PathLike[str] | None = None,
    side_table: Any = None,
    reading: Reading = AS_USUAL,
    progress: Progress = no_progress,
) -> Release:
    """``publish`` into a folder, which appears when it is complete and verified, or not at all."""
    check_target(folder, overwrite=overwrite)
    job = _job(
        table, Policy.of(policy), evaluation, seed, threads, file_format, progress, reading, ledger, str(folder),
        side_table=side_table,
    )  # fmt: skip
    job.check_target = partial(check_target, folder, overwrite=overwrite)
    budget = job.budget(engine, memory)
    if budget is None:
        with allowing(memory), _telling_what_was_charged(job):
            release = job.in_memory()
            cells.give_back_memory()
            progress("writing and verifying", 0, 1)
            release.write(folder, overwrite=overwrite)
        return release
    with _telling_what_was_charged(job), Spill(Path(folder)) as spill:
        release = job.on_disk(budget, spill)
        cells.give_back_memory()
        progress("writing and verifying", 0, 1)
        release.write(folder, overwrite=overwrite, within=spill.folder)
    if isinstance(release.recoding, LargeRecoding):
        release = replace(release, recoding=release.recoding.at(Path(folder)))
    return release


@contextmanager
def _telling_what_was_charged(job: _Job) -> Iterator[None]:
    """Add to an error that ends a run what the run had cost by then."""
    try:
        yield
    except BaseException as error:
        if job.charged:
            error.add_note(job.charged)
        raise


class _Job:
    """One table to be published, by whichever engine."""

    otherwise = ", let the rows live on disk (--engine disk)"

    check_target: Callable[[], None] = staticmethod(lambda: None)
    """Raises if the folder of the release cannot be written any more."""
    charged = ""
    """What the ledger was charged, in a sentence."""

    def __init__(
        self,
        table: Any,
        policy: Policy,
        evaluation: Evaluation | None,
        seed: int | None,
        threads: int | None,
        file_format: str | None,
        progress: Progress,
        reading: Reading,
        ledger: str | PathLike[str] | None = None,
        name: str = "in memory",
    ) -> None:
        self.policy, self.evaluation = policy, evaluation
        self.side_table: Any = None
        self.limit: int | None = None
        self.ledger, self.name = None if ledger is None else Path(ledger), name
        self.reading, self.seed, self.threads, self.file_format, self.progress = (
            reading,
            seed,
            threads,
            file_format,
            progress,
        )
        self.made = day_of_making(seed)  # before the work, so that a mistake costs nothing
        self.path = os.fsdecode(table) if isinstance(table, str | PathLike) else None
        self.frame = self._open(table) if self.path is None else None  # some can be read but once

    def _open(self, table: Any, **options: Any) -> Source:
        source = open_as(
            table, self.policy.schema, self.reading, is_private=self.policy.is_private, **options
        )
        self.policy = self.policy.expand(source.names)
        return source

    def budget(self, engine: str, memory: int | None) -> int | None:
        """The memory of a run on disk; None if the table is published in memory."""
        if engine not in ("auto", "memory", "disk"):
            raise InputError("The engine is auto, memory or disk.")
        limit = memory or memory_allowed()
        self.limit = None if engine == "memory" and memory is None else limit
        if engine == "disk":
            return limit
        if self.path == "-" and engine == "auto" and memory is not None:
            return limit  # nobody knows how much will come
        needed = self._needed()
        if needed <= limit or (engine == "memory" and memory is None):
            return None
        if engine == "memory":
            raise self._too_large(needed, limit)
        return limit

    def _too_large(self, needed: int, limit: int) -> InputError:
        return InputError(
            f"Publishing in memory takes about {size_of(needed)}, and --memory allows {size_of(limit)}; "
            "allow more, or let the rows live on disk (--engine disk)."
        )

    def _held(self) -> Source:
        """The table, read; it may turn out to be larger than its file looks."""
        try:
            source = self.frame or self._open(self.path)
        except TooLarge as error:
            raise TooLarge(error.where, error.most, self.otherwise) from None
        if self.limit is not None and (needed := self._needed_for(source)) > UNFORESEEN * self.limit:
            raise self._too_large(needed, self.limit)
        return source

    def _needed(self) -> int:
        """About how much memory publishing takes there."""
        if self.path == "-":
            return 0
        source = self.frame or opening.open_table(
            self.path,
            lazy=True,
            may_be_empty=True,
            any_text=self.policy.is_private,
            encoding=self.reading.encoding,
        )
        if source.n_rows == UNKNOWN:  # of text, which is longer than its codes
            path = Path(source.where)
            n_bytes = path.stat().st_size if path.is_file() else 0
            return TEXT_COPIES * n_bytes * (ZIPPED if path.suffix.lower() == ".gz" else 1)
        return self._needed_for(source)

    def _needed_for(self, source: Source) -> int:
        return source.n_rows * (len(self.policy.schema.published) + 1) * BYTES_PER_CELL * COPIES

    def _charge(self, ledger: Path, epsilon: Fraction, delta: Fraction = Fraction(0)) -> None:
        """Write the cost into the ledger, if there is still a place for the release."""
        self.check_target()
        account.charge(ledger, self.name, epsilon, delta)
        cost = f"Epsilon {epsilon}" + (f" and delta {float(delta):.6g}" if delta else "")
        self.charged = f"{cost} of this run stays charged to {ledger}: rows were drawn before this happened."

    def in_memory(self) -> Release:
        """The release of a table that fits."""
        source = self._held()
        policy = self.policy
        _check(policy, source, self.evaluation)
        groups = partition(source, policy, threads=self.threads, progress=self.progress)
        cells.give_back_memory()
        self.progress("publishing", 0, 1)
        rows = published_rows(source, policy, groups, generator(self.seed).random(source.n_rows))
        figures: dict[str, Any] = {"splits": groups.recoding.n_splits()}
        if policy.selections:
            figures["imprecision"] = [
                _imprecision(task, source, policy, groups, rows) for task in policy.selections
            ]
        recoding = groups.recoding if policy.keeps_recoding else None
        measures = measure(rows, policy)
        release = self._release(rows, source, recoding, measures, figures)
        notices = tuple(_notices(measures, partial(_reason, source, policy, groups)))
        return self._reported(replace(release, check=_verified, notices=notices))

    def on_disk(self, memory: int, spill: Spill) -> Release:
        """The release of a table of any size; its rows are in a file of the spill folder."""
        from sfumato.methods.on_disk import write_rows  # noqa: PLC0415 - most tables are not large

        source = self.frame or self._open(self.path, lazy=True, spool=spill.path("stdin"))
        policy = self.policy
        _check(policy, source, self.evaluation)
        file_format = self.file_format or release_format(source)
        written = write_rows(
            source,
            policy,
            spill.path("release").with_suffix(f".{file_format}"),
            spill=spill,
            memory=memory,
            seed=self.seed,
            threads=self.threads,
            progress=self.progress,
        )
        if self.evaluation is not None:
            _check_evaluated_rows(self.evaluation, written.n_rows)
        figures: dict[str, Any] = {"splits": written.n_splits}
        if policy.selections:
            each = zip(policy.selections, written.returned, written.true, strict=True)
            figures["imprecision"] = [_surplus(task, returned, true) for task, returned, true in each]
        figures["io"] = written.io
        cells.give_back_memory()
        rows = FiledRows(written.path, file_format, n_rows=written.n_rows, is_escaped=policy.escapes_formulas)
        self.progress("verifying", 0, 1)
        found = examine(rows, policy, memory=memory, scratch=spill.folder)
        release = self._release(rows, source, written.recoding, found.measures, figures)
        check = partial(_verified, memory=memory, known=found, scratch=spill.folder)
        return self._reported(replace(release, check=check, notices=tuple(_notices(found.measures))))

    def _release(
        self,
        rows: pa.Table | FiledRows,
        source: Source,
        recoding: Any,
        measures: Measures,
        figures: dict[str, Any],
    ) -> Release:
        """The release of published rows that have been judged, without its report."""
        verify_measures(measures).raise_if_failed()
        if self.evaluation is not None:
            utility = self.evaluation.as_dict().items()
            figures["utility"] = {key: part for key, part in utility if key != "policy"}
        return Release(
            write.compact(rows) if isinstance(rows, pa.Table) else rows,
            Certificate.of(self.policy, claims(measures), figures=figures, made=self.made),
            self.policy,
            recoding,
            format=self.file_format or release_format(source),
            kind=source.kind,
            remarks=tuple(_remarks(claims(measures), measures.details)),
        )

    def _reported(self, release: Release) -> Release:
        cells.give_back_memory()
        self.progress("reporting", 0, 1)
        return release.with_report(report.render(release))


class _PrivateJob(_Job):
    """One table to be published by a differentially private method."""

    def in_memory(self) -> Release:
        """The release of a table that fits."""
        source = self._held()
        drawn = self._drawn(source)
        self.progress("publishing", 0, 1)
        return self._of(drawn, source, pa.concat_tables(drawn.tables()), _verified)

    def on_disk(self, memory: int, spill: Spill) -> Release:
        """The release of a table of any size; its rows are in a file of the spill folder."""
        source = self.frame or self._open(self.path, lazy=True, spool=spill.path("stdin"))
        drawn = self._drawn(source, spill=spill, memory=memory)
        self.progress("publishing", 0, 1)
        file_format = self.file_format or release_format(source)
        path = spill.path("release").with_suffix(f".{file_format}")
        with write.TableWriter(path) as writer:
            for part in drawn.tables():
                writer.append(formulas.escape(part) if self.policy.escapes_formulas else part)
        rows = FiledRows(path, file_format, n_rows=writer.n_rows, is_escaped=self.policy.escapes_formulas)
        rows.sha256 = sha256_of(path)
        return self._of(drawn, source, rows, partial(_verified, memory=memory, scratch=spill.folder))

    def _drawn(self, source: Source, **where: Any) -> Drawn:
        from sfumato.methods.specialization.diffgen.release import drawn_from  # noqa: PLC0415 - most releases are of another method

        self.policy.check_columns(source.names)
        _check_private(self.policy, self.evaluation)
        chance = mechanisms.secret() if self.seed is None else mechanisms.seeded(self.seed)
        assert isinstance(self.policy.method, DiffGenOptions)
        if self.ledger is not None:
            self._charge(self.ledger, self.policy.method.epsilon)
        return drawn_from(source, self.policy, chance=chance, progress=self.progress, **where)

    def _of(
        self, drawn: Drawn, source: Source, rows: pa.Table | FiledRows, check: Callable[[Path], None]
    ) -> Release:
        """The release of what was drawn, judged as it will be when it is read again."""
        cells.give_back_memory()
        certificate = Certificate.of(self.policy, drawn.claims, privacy=drawn.privacy)
        names = rows.column_names
        self.progress("verifying", 0, 1)
        verdict = counts.checks(self.policy, certificate, drawn.recoding.as_document(), rows, names)
        Verdict(tuple(verdict)).raise_if_failed()
        file_format = self.file_format or release_format(source)
        release = Release(
            rows, certificate, self.policy, drawn.recoding, file_format, source.kind, check=check
        )
        return self._reported(release)


class _TradeoffJob(_Job):
    """One table whose rows are each generalized for themselves, in memory."""

    otherwise = ""

    def budget(self, engine: str, memory: int | None) -> int | None:
        """None: rows are compared with all others again and again, so they are in memory."""
        if engine not in ("auto", "memory"):
            raise InputError("risk-utility compares all rows with each other, in memory; leave out --engine.")
        self.limit = memory
        if memory is not None and (needed := self._needed()) > memory:
            raise self._too_large(needed, memory)
        return None

    def _too_large(self, needed: int, limit: int) -> InputError:
        return InputError(
            f"Publishing by risk-utility takes about {size_of(needed)} of memory, and --memory allows "
            f"{size_of(limit)}; allow more, or give it fewer rows."
        )

    def in_memory(self) -> Release:
        """The release, without a recoding: it would tell raw rows from boxes."""
        from sfumato.methods.risk_utility.release import outcome_of, with_side_table  # noqa: PLC0415 - most have another method

        source = self._held()
        self.policy.check_columns(source.names)
        if self.evaluation is not None:
            raise InputError("An evaluation is of a workload, and risk-utility serves none; leave it out.")
        policy, side = with_side_table(self.policy, self.side_table)
        found = outcome_of(
            source, policy, side, random=generator(self.seed), threads=self.threads, progress=self.progress
        )
        cells.give_back_memory()
        self.progress("verifying", 0, 1)
        missing = found.encoded.with_missing
        boxes = verify_tradeoff.Boxes.of(found.rows, found.policy, missing)
        certificate = Certificate.of(
            found.policy,
            verify_tradeoff.claims_of(boxes),
            figures={verify_tradeoff.TRADEOFF: found.figures},
            made=self.made,
        )
        verdict = verify_tradeoff.checks(boxes, certificate.claims, certificate.figures)
        release = self._certified(found.rows, certificate, found.policy, source, verdict)
        details = boxes.details()
        measures = Measures(certificate.claims.rows, certificate.claims.groups, (), details)
        return replace(
            release,
            remarks=tuple(_remarks(certificate.claims, details)),
            notices=tuple(_notices(measures, advice=RAISE_UTILITY)),
        )

    def _certified(
        self,
        rows: pa.Table,
        certificate: Certificate,
        policy: Policy,
        source: Source,
        verdict: Iterable[Check],
    ) -> Release:
        """The release of rows that were judged as they will be when they are read again."""
        Verdict(tuple(verdict)).raise_if_failed()
        rows = write.compact(rows)
        file_format = self.file_format or release_format(source)
        release = Release(rows, certificate, policy, None, file_format, source.kind, check=_verified)
        return self._reported(release)


class _SampledJob(_TradeoffJob):
    """One table of which rows are drawn, each with a box that depends on it and a public side table."""

    def in_memory(self) -> Release:
        """The release, without a recoding."""
        from sfumato.methods.risk_utility.private import release as private_sampling  # noqa: PLC0415 - most releases are of another method
        from sfumato.methods.risk_utility.release import with_side_table  # noqa: PLC0415

        source = self._held()
        self.policy.check_columns(source.names)
        _check_no_evaluation(self.evaluation)
        policy, side = with_side_table(self.policy, self.side_table)
        if side is None:
            raise InternalError("A private risk-utility policy has a side table.")
        policy = private_sampling.prepared(policy, side)
        coins = mechanisms.secret_coins() if self.seed is None else mechanisms.seeded(self.seed)
        if self.ledger is not None:
            cost = private_sampling.plan_of(policy)
            self._charge(self.ledger, cost.epsilon, cost.delta)
        drawn = private_sampling.drawn_from(
            source, policy, side, coins=coins, threads=self.threads, progress=self.progress
        )
        cells.give_back_memory()
        self.progress("verifying", 0, 1)
        options = verify_tradeoff.options_of(drawn.policy)
        missing = drawn.policy.schema.names(Role.QUASI_IDENTIFIER)
        boxes = verify_tradeoff.Boxes.of(drawn.rows, drawn.policy, missing)
        claims = verify_tradeoff.claims_of(boxes)
        certificate = Certificate.of(drawn.policy, claims, privacy=drawn.privacy)
        verdict = sampling.checks(boxes, drawn.rows, certificate, options)
        return self._certified(drawn.rows, certificate, drawn.policy, source, verdict)


def _job(table: Any, policy: Policy, *options: Any, side_table: Any = None) -> _Job:
    kind = _PrivateJob if policy.is_private else _Job
    if isinstance(policy.method, RiskUtilityOptions):
        kind = _SampledJob if policy.is_private else _TradeoffJob
        if policy.is_private:
            _check_public(policy.method.side_path if side_table is None else side_table, table)
    elif side_table is not None:
        raise InputError("A side table is for the method risk-utility; leave it out, or name that method.")
    job = kind(table, policy, *options)
    job.side_table = side_table
    if job.ledger is not None and (job.seed is not None or not policy.is_private):
        raise InputError(
            "A ledger is of differentially private releases, and this one is none: "
            + ("leave out --seed." if policy.is_private else "leave out --ledger.")
        )
    return job


def day_of_making(seed: int | None) -> date | None:
    """The day for certificate and report: that of SOURCE_DATE_EPOCH, or today; none of a run that can be repeated."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if not given:
        return None if seed is not None else datetime.now(UTC).date()
    try:
        return datetime.fromtimestamp(int(given), UTC).date()
    except (ValueError, OverflowError, OSError):
        raise InputError(
            "SOURCE_DATE_EPOCH must be a number of seconds since 1970, such as 1735689600; mend it, or unset it."
        ) from None


# ---- what is left ------------------------------------------------------------------------------------


ASK_FOR_LESS = "ask for less, give hierarchies more levels, or drop another quasi-identifier"
RAISE_UTILITY = "raise utility-at-least, give smaller weights, or hierarchies with more levels"


def _hidden(details: Mapping[str, Detail]) -> dict[str, str]:
    """The columns that are ``*`` nearly everywhere, and in how many rows, in per cent."""
    return {
        name: percent(detail.nothing, detail.rows) for name, detail in details.items() if detail.is_hidden
    }


def _remarks(claimed: Claims, details: Mapping[str, Detail]) -> Iterator[str]:
    """How much published rows tell; all of it follows from them."""
    yield f"cells of the quasi-identifiers: {claimed.cells}"
    if hidden := _hidden(details):
        columns = ", ".join(f"{name} {share}" for name, share in hidden.items())
        yield f"* nearly everywhere (share of the rows): {columns}"
    shared = {name: n_rows for name, n_rows in claimed.one_value.items() if n_rows}
    for name, n_rows in shared.items():
        yield (
            f"{percent(n_rows, claimed.rows)} of the rows stand in groups that share one value of {name!r}: "
            "no diversity of it is required"
        )
    if others := ", ".join(repr(name) for name in claimed.one_value if name not in shared):
        yield f"no group shares one value of {others}, though no diversity is required there"


def _notices(
    measures: Measures, reason: Callable[[str], str] | None = None, advice: str = ASK_FOR_LESS
) -> Iterator[str]:
    """What the owner should know of a release that tells little, and what to try."""
    hidden = _hidden(measures.details)
    if measures.groups == 1 and measures.rows > 1:
        yield f"All {measures.rows:,} rows are one group: the quasi-identifiers tell nobody apart."
    for name, share in hidden.items():
        yield f"{name!r} is * in {share} of the rows{': ' + reason(name) if reason else ''}."
    if hidden:
        yield f"To keep more of {'it' if len(hidden) == 1 else 'them'}, {advice}."


def _reason(source: Source, policy: Policy, groups: Partition, name: str) -> str:
    """Which requirement keeps a column whole, and how near a split comes to being allowed."""
    from sfumato.methods.mondrian.refusals import refusals_of  # noqa: PLC0415 - most releases tell something

    found = refusals_of(source, policy, groups, name)
    return "; ".join(map(str, found)) or "no requirement alone refuses to split it in most groups"


def _verified(folder: Path, **known: Any) -> None:
    verify_folder(folder, **known).raise_if_failed()


def _imprecision(
    task: Select, source: Source, policy: Policy, groups: Partition, rows: pa.Table
) -> dict[str, Any]:
    """How many rows the condition asks for, and how many the release returns [LDR08, section 3.2]."""
    condition = predicate.parse(task.where, policy.schema)
    returned, true, _ = select.imprecision(condition, source, policy.schema, rows, groups.recoding, policy)
    return _surplus(task, returned, true)


def _surplus(task: Select, returned: int, true: int) -> dict[str, Any]:
    return {"where": task.where, "true": true, "returned": returned, "imprecision": returned - true}


def columns_with_formulas(release: Release) -> tuple[str, ...]:
    """The columns whose cells a spreadsheet would run, of a release that keeps them as they are.

    Nothing is said of a differentially private one.
    """
    if release.policy.escapes_formulas or release.policy.is_private:
        return ()
    rows = release.rows
    return formulas.columns_with_formulas(rows.tables() if isinstance(rows, FiledRows) else [rows])


def promises(release: Release) -> Iterator[str]:
    """What the release promises, a line each."""
    privacy = release.certificate.privacy
    if privacy is not None:
        yield from _private_promises(privacy)
        return
    if isinstance(release.policy.method, RiskUtilityOptions):
        yield from _tradeoff_lines(release)
        return
    if release.certificate.promises_nothing:
        yield "Nothing is promised: the policy requires nothing."
    for requirement, claim in zip(
        release.policy.requirements, release.certificate.claims.requirements, strict=True
    ):
        yield f"{requirement}: {claim.figure} {claim.achieved:,.6g}"


ALL_OR_NOTHING = 0.95
"""A share of the rows so large that hardly any has a generalization between raw and suppressed."""


def _tradeoff_lines(release: Release) -> Iterator[str]:
    """What each row was given, what it is worth, and what is not so good about it."""
    options, found = release.policy.method, release.certificate.figures[verify_tradeoff.TRADEOFF]
    assert isinstance(options, RiskUtilityOptions)
    if options.private is not None:
        study = found["published"]
        yield (
            f"No privacy is claimed: this is Algorithm {study['algorithm']} of the paper, for study; boxes cover at "
            f"least {study['covered']:,} rows."
        )
    share, n_rows = found["share"], found["rows"]
    yield (
        f"utility of each row{_asked(options)}: {_no_more_than(share['least'])} or more, "
        f"{share['mean']:.0%} on average"
    )
    risk, raw = found["risk"], found["raw risk"]
    yield (
        f"risk on average {risk['mean']:.4g}, of the rows as they are {raw['mean']:.4g}; "
        f"at most {risk['greatest']:.4g} and {raw['greatest']:.4g}"
    )
    yield f"proved best for their owners: {found['proved']:,} of {number_of(n_rows, 'row')}"
    yield f"optimizer {found['optimizer']}: {found['reason']}"
    if found["suppressed"]:
        yield f"suppressed, published as roots alone: {number_of(found['suppressed'], 'row')}"
    if found["raw"]:
        yield f"published as they are, with all their quasi-identifiers: {number_of(found['raw'], 'row')}"
    if found["lacking"]:
        yield f"not in the side table: {number_of(found['lacking'], 'row')}, each counted beside those that it has"
    if options.objective == LAGRANGIAN and found["raw"] + found["suppressed"] >= ALL_OR_NOTHING * n_rows:
        yield (
            f"The Lagrangian leaves rows as they are ({found['raw']:,} here) or suppresses them "
            f"({found['suppressed']:,}), "
            "and hardly ever anything between; try objective: threshold, or log-risk."
        )


def _asked(options: RiskUtilityOptions) -> str:
    """What each row was asked to keep of its utility.

    >>> _asked(RiskUtilityOptions())
    ', from suppressed to raw, at least 3/5'
    """
    promised, asked = options.promised, options.utility_at_least
    if promised is None:
        return ", from suppressed to raw, as it pays"
    part = f" (sigma_1 times the {asked} asked for)" if promised != asked else ""
    if isinstance(promised, Absolute):
        return f" at least {promised}{part}; from suppressed to raw"
    return f", from suppressed to raw, at least {promised}{part}"


def _no_more_than(share: float) -> str:
    """A share in percent, rounded down, but not for the last bit of a float.

    >>> _no_more_than(0.29), _no_more_than(2 / 3), _no_more_than(1.0)
    ('29%', '66.6%', '100%')
    """
    return f"{math.floor(1000 * share + 1e-6) / 10:g}%"


def _private_promises(privacy: Privacy) -> Iterator[str]:
    if not privacy.is_secret:
        yield f"Nothing is promised: {privacy.randomness}."
    else:
        yield f"{privacy.definition}: {privacy.promise} (one person is one row)"
    if privacy.sampling is not None:
        yield from _sampling_lines(privacy.sampling)
        return
    unspent = f", {privacy.unspent} unspent" if privacy.unspent else ""
    yield f"ledger: {privacy.spent} spent on {number_of(len(privacy.ledger), 'draw')}{unspent}"


def _sampling_lines(found: Sampling) -> Iterator[str]:
    yield (
        f"each row was drawn with a chance of {found.chance}, and boxes that fewer than {found.least:,} of the drawn "
        "rows have are not published"
    )
    if found.outlook is None:
        return
    told = f"{found.outlook:.1%} of the rows of a table like the side table have a box that is drawn often enough"
    yield told if found.is_useful else f"these numbers make the release of little use: only {told}"


def _check_private(policy: Policy, evaluation: Evaluation | None) -> None:
    """What a differentially private release may not hold."""
    _check_names(policy)
    _check_no_evaluation(evaluation)
    if not policy.keeps_recoding:
        raise InputError(
            "A differentially private release says how further rows are recoded: that was paid for, and tells nothing "
            "more; leave out recoding: false."
        )


def _check_public(side_table: Any, table: Any) -> None:
    """That a side table is public is the owner's word; but it is not the table itself."""
    is_same = side_table is table
    if isinstance(side_table, str | PathLike) and isinstance(table, str | PathLike):
        one, other = os.fsdecode(side_table), os.fsdecode(table)
        is_same = one == other  # an address of a database, too
        with suppress(OSError):  # whatever cannot be read is told when it is opened
            is_same = is_same or Path(one).samefile(other)
    if is_same:
        raise InputError(
            "The side table is the table itself, and a private release takes all of its side table for public; give it "
            "one that has no rows of the table."
        )


def _check_no_evaluation(evaluation: Evaluation | None) -> None:
    if evaluation is not None:
        raise InputError(
            "A differentially private release holds no evaluation: it is computed from rows outside epsilon. "
            "Leave it out, and keep it to yourself."
        )


def _check(policy: Policy, source: Source, evaluation: Evaluation | None) -> None:
    """Everything that can be said before the work."""
    policy.check_columns(source.names)
    _check_names(policy)
    _check_evaluation(evaluation, policy, source)


def _check_names(policy: Policy) -> None:
    """Published bounds and statistics need names of their own."""
    statistics.check_names(policy)
    if not policy.output.has_bounds:
        return
    for attribute in policy.schema.quasi_identifiers:
        for name in bound_names(attribute.name):
            if attribute.is_ordered and name in policy.schema:
                raise InputError(
                    f"Column {name!r} of the table has the name of a published bound; rename it, or publish labels."
                )


def _check_evaluation(evaluation: Evaluation | None, policy: Policy, source: Source) -> None:
    if evaluation is None:
        return
    if Policy.from_dict(evaluation.policy, None) != policy:
        raise InputError(
            "The evaluation was made with another policy than this release; evaluate with this one first."
        )
    _check_evaluated_rows(evaluation, source.n_rows)


def _check_evaluated_rows(evaluation: Evaluation, n_rows: int) -> None:
    if "folds" in evaluation.protocol and n_rows not in (UNKNOWN, evaluation.protocol.get("rows", n_rows)):
        raise InputError(
            "The evaluation was made of another table than this release; evaluate this one first."
        )


__all__ = ["columns_with_formulas", "promises", "publish", "publish_to", "published_rows"]
