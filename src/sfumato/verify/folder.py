r"""Does a table keep its promise? Judged from published rows and policy alone.

Nothing here knows how a release was made: groups are found by comparing cells, and every requirement is
computed anew from its definition [LDR08, definitions 2.1 to 2.4], not by the code that the methods use.

- A *group* is the rows that agree in every published quasi-identifier cell, and in every statistic that is
  published beside them, as they stand in the file: null, NaN and an empty text are three values (in CSV they
  are one: an empty cell), and -0.0 is another number than 0.0. A missing cell matches only cells that are
  missing in the same way. Rows that another tool calls suppressed (``*`` throughout) are rows like any
  others: what is published is judged.
- A sensitive value is a text, number or date, as the policy declares the column; missing is one more.
- Finer groups and merged sensitive values make every requirement harder to meet, so wherever a reading
  of the cells is in doubt the stricter one is taken.

``verify_folder`` re-checks a release of ours, ``verify_table`` judges a table that any tool made.

What a verdict cannot say: someone who may rewrite the whole folder, hashes included, can lower a promise
everywhere at once. The folder is then a consistent release with that weaker promise, and it is judged by it.
A certificate protects against mistakes and partial tampering; who issued it must be known by other means.
"""

from __future__ import annotations

import csv
import math
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sfumato.errors import InputError, TableError, number_of
from sfumato.machine import free_memory
from sfumato.policy import file as policy_file
from sfumato.policy import yaml
from sfumato.policy.document import Policy
from sfumato.policy.options.risk_utility import RiskUtilityOptions
from sfumato.policy.requirements import Needs, Requirement
from sfumato.policy.schema import Attribute, Kind, Role, Schema
from sfumato.policy.workload import Classify
from sfumato.release.certificate import Certificate, Claim, Claims, missing_rule
from sfumato.release.folder import (
    CERTIFICATE,
    CERTIFIED,
    POLICY,
    RECODINGS,
    RELEASES,
    REPORT,
    older_sha256_of,
    read_piece,
    sha256_of,
)
from sfumato.table.cells import as_stored, texts
from sfumato.table.csv_file import open_own_csv
from sfumato.table.formulas import read_escaped
from sfumato.table.opening import open_table
from sfumato.table.reading import AS_USUAL, Reading, open_as
from sfumato.table.source import INDEX_OF_PANDAS, UNKNOWN, Source
from sfumato.table.stored import FiledRows
from sfumato.verify import figures as verify_figures
from sfumato.verify import files as verify_files
from sfumato.verify import recoding as verify_recoding
from sfumato.verify import statistics as verify_summary
from sfumato.verify.cells import Detail, DistinctCells, claim_of
from sfumato.verify.checks import Check, Verdict, equal, what_is_left, without_stop
from sfumato.verify.columns import box_columns, check_columns, group_columns, published_names, raw_names
from sfumato.verify.diffgen import counts as verify_private
from sfumato.verify.groups import codes_of, folded
from sfumato.verify.portions import SHARE, Evidence, Judged, NoRoom, Portions, collected, rows_at_once
from sfumato.verify.requirements import measure_groups
from sfumato.verify.risk_utility import boxes as verify_tradeoff
from sfumato.verify.risk_utility import risk, sampling
from sfumato.verify.statistics import Finding

FIGURE_TOLERANCE = 1e-9
"""Relative, both ways: how far a claimed figure may lie from the recomputed one."""

VERSION = re.compile(r"[\w.+-]{1,60}", re.ASCII)
BYTES_PER_ROW, BYTES_PER_CELL = 48, 12
"""Memory that judging all rows at once takes; of a CSV file, that many times its size."""

CSV_COPIES = 4
MOST_ZIPPED = 1032
"""How much longer than its gzip-ed file a text can be."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


# ---- what is measured ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Measured:
    """One requirement: the figure of the worst group, and how many groups fail it."""

    requirement: Requirement
    achieved: float
    n_failing: int

    @property
    def holds(self) -> bool:
        return self.n_failing == 0


@dataclass(frozen=True, slots=True)
class Measures:
    """Everything about published rows that a certificate claims."""

    rows: int
    groups: int
    requirements: tuple[Measured, ...]
    details: Mapping[str, Detail] = field(default_factory=dict)
    """How much the cells of each quasi-identifier tell."""
    one_value: Mapping[str, int] = field(default_factory=dict)
    """Of each column without a required diversity, the rows of groups that share one value of it."""
    respelled: Mapping[str, int] = field(default_factory=dict)
    """Of each sensitive column whose values are counted, at least how many of them are other spellings of others."""


@dataclass(frozen=True, slots=True)
class Examined:
    """What was found in published rows that were judged by a policy.

    ``sha256`` is that of their file, where they came from one: whoever finds the same file again need not read
    all rows again. ``cells`` are those of each quasi-identifier.
    """

    measures: Measures
    statistics: tuple[Finding, ...]
    policy: Policy
    cells: Mapping[str, DistinctCells] = field(default_factory=dict)
    sha256: str = ""


def measure(table: Any, policy: Policy, *, memory: int | None = None) -> Measures:
    """Rows, groups and the figure that each requirement of the policy reaches.

    ``table`` is any table of published rows; its quasi-identifier cells are taken as they stand. A file that
    does not fit in ``memory`` (bytes; half of what is free if not given) is judged in portions.

    >>> policy = Policy.parse("{attributes: {age: {role: quasi-identifier}}, require: [k-anonymity: 2]}")
    >>> found = measure(pa.table({"age": ["[0, 9]", "[10, 19]", "[0, 9]"]}), policy)
    >>> found.groups, found.requirements
    (2, (Measured(requirement=KAnonymity(k=2), achieved=1.0, n_failing=1),))
    """
    memory = _memory(memory)
    if isinstance(table, FiledRows):
        source = _opened(table.path, table.format, memory, policy)
    else:
        source = table if isinstance(table, Source) else open_table(table, lazy=not _is_small(table, memory))
    return _examined(source, policy, memory, None, with_statistics=False).measures


def examine(
    rows: FiledRows, policy: Policy, *, memory: int | None = None, scratch: Path | None = None
) -> Examined:
    """What ``verify_folder`` will find in published rows that are in a file.

    ``scratch`` is a folder for what does not fit in ``memory``.
    """
    rows.sha256 = sha256_of(rows.path)
    memory = _memory(memory)
    source = _opened(rows.path, rows.format, memory, policy)
    return replace(_examined(source, policy, memory, scratch), sha256=rows.sha256)


def _examined(
    source: Source,
    policy: Policy,
    memory: int,
    scratch: Path | None,
    *,
    with_statistics: bool = True,
    beside: verify_recoding.Held | None = None,
) -> Examined:
    """What is found in the rows of a table; the recoding ``beside`` it sees all groups, too."""
    judged = _judged_columns(source.names, policy, with_statistics=with_statistics)
    if _fits(source, judged, memory):
        source = replace(source, read=cache(source.read))  # columns are looked at more than once
        evidence = Evidence.of_rows(source, judged)
        return _merged([_found(evidence, policy, with_statistics=with_statistics, beside=beside)], source)
    portions = Portions(judged, memory=memory, folder=scratch or _folder_for_files(source))
    try:
        n_rows = rows_at_once(memory, len(judged.names))
        collected(source.batches(judged.names, rows=n_rows, memory=memory // SHARE), portions)
        found = [
            _found(Evidence.of(lines, judged), policy, with_statistics=with_statistics, beside=beside)
            for lines in portions
        ]
        return _merged(found, source)
    finally:
        portions.close()


def _judged_columns(names: Sequence[str], policy: Policy, *, with_statistics: bool) -> Judged:
    schema = policy.schema
    of = {item: schema[item.of] for item in policy.requirements if item.of is not None}
    is_mean = {item: Needs.MOMENTS in item.needs for item in of}
    numbers_of = [attribute for item, attribute in of.items() if is_mean[item]]
    bare = [attribute for attribute in undiversified(policy) if attribute.name in names]
    numbers_of += [attribute for attribute in bare if attribute.kind is Kind.NUMBER]
    if with_statistics:
        others = [schema[name] for name in schema.names(Role.SENSITIVE, Role.OTHER)]
        numbers_of += [a for a in others if {*verify_summary.names_of(a, policy.statistics)} & {*names}]
    return Judged(
        cells=group_columns(policy, names),
        values=list(
            dict.fromkeys(
                [
                    *(attribute.name for item, attribute in of.items() if not is_mean[item]),
                    *(attribute.name for attribute in bare if attribute.kind is not Kind.NUMBER),
                ]
            )
        ),
        numbers=list({attribute.name: attribute for attribute in numbers_of}.values()),
    )


def _found(
    evidence: Evidence, policy: Policy, *, with_statistics: bool, beside: verify_recoding.Held | None
) -> Examined:
    groups = evidence.groups
    if beside is not None:
        beside.see(evidence)
    measured = tuple(_measured(requirement, evidence, policy.schema) for requirement in policy.requirements)
    has_any = with_statistics and policy.statistics
    statistics = tuple(verify_summary.checks(evidence, policy)) if has_any else ()
    one_value = {
        attribute.name: _rows_of_one_value(evidence, attribute)
        for attribute in undiversified(policy)
        if attribute.name in evidence.source.names or attribute.name in evidence.moments
    }
    measures = Measures(
        int(groups.size.sum()),
        groups.n,
        measured,
        one_value=one_value,
        respelled=_respelled(evidence, policy),
    )
    return Examined(measures, statistics, policy, _distinct_cells(evidence, policy.schema))


def _distinct_cells(evidence: Evidence, schema: Schema) -> dict[str, DistinctCells]:
    return {
        attribute.name: DistinctCells.of(map(evidence.labels, names), evidence.groups.size)
        for attribute, names in box_columns(schema, evidence.source.names)
    }


def undiversified(policy: Policy) -> tuple[Attribute, ...]:
    """The sensitive columns and classes, published as they are, of which no diversity is required."""
    diverse = {requirement.of for requirement in policy.requirements}
    classes = {name for task in policy.workload if isinstance(task, Classify) for name in task.targets}
    return tuple(
        attribute
        for attribute in policy.schema.published
        if (attribute.role is Role.SENSITIVE or (attribute.role is Role.OTHER and attribute.name in classes))
        and attribute.name not in diverse
    )


def _rows_of_one_value(evidence: Evidence, attribute: Attribute) -> int:
    """How many rows stand in groups whose rows all have the same value; missing is a value like others."""
    groups = evidence.groups
    if attribute.name in evidence.moments:
        moments = evidence.moments[attribute.name]
        least, most = moments.ends
        is_one = (moments.count == 0) | ((moments.count == groups.size) & (least == most))
    else:
        values = codes_of(evidence.source.column(attribute.name), attribute)
        is_one = groups.share_one(values.of_row)
    return int(groups.size[is_one].sum())


def _respelled(evidence: Evidence, policy: Policy) -> dict[str, int]:
    """How many spellings of sensitive values count as a value that they look like."""
    found = {}
    for requirement in policy.requirements:
        attribute = None if requirement.of is None else policy.schema[requirement.of]
        if attribute is not None and attribute.kind is Kind.CATEGORY:
            cells = texts(evidence.source.column(attribute.name), attribute)
            n_values = len(folded(cells).dictionary)
            if len(cells.dictionary) > n_values:
                found[attribute.name] = len(cells.dictionary) - n_values
    return found


def _merged(parts: Sequence[Examined], source: Source) -> Examined:
    """Of portions of whole groups: sums, and the worst of the worst."""
    if not parts:
        raise TableError(f"{source.where} has no rows; a table needs at least one.")
    measures = [part.measures for part in parts]
    requirements = tuple(
        Measured(
            items[0].requirement,
            items[0].requirement.worst(np.array([item.achieved for item in items])),
            sum(item.n_failing for item in items),
        )
        for items in zip(*(found.requirements for found in measures), strict=True)
    )
    rows, groups = sum(found.rows for found in measures), sum(found.groups for found in measures)
    statistics = tuple(
        Finding(found[0].claim, sum(item.n_wrong for item in found), groups)
        for found in zip(*(part.statistics for part in parts), strict=True)
    )
    policy = parts[0].policy
    one_value = {name: sum(found.one_value[name] for found in measures) for name in measures[0].one_value}
    cells = {name: DistinctCells.joined([part.cells[name] for part in parts]) for name in parts[0].cells}
    details = {name: found.detail(policy.schema[name]) for name, found in cells.items()}
    names = {name for found in measures for name in found.respelled}
    respelled = {name: max(found.respelled.get(name, 0) for found in measures) for name in sorted(names)}
    found = Measures(rows, groups, requirements, details, one_value, respelled)
    return Examined(found, statistics, policy)


# ---- how much fits in memory ------------------------------------------------------------------------


def _memory(given: int | None) -> int:
    return free_memory() // 2 if given is None else given


def _is_small(table: Any, memory: int) -> bool:
    """Whether a file of text may be read in one go; anything else says itself how large it is."""
    if isinstance(table, str | Path) and Path(table).is_file():
        longer = MOST_ZIPPED if _begins(Path(table), b"\x1f\x8b") else 1
        return CSV_COPIES * longer * Path(table).stat().st_size <= memory
    return True


def _begins(path: Path, magic: bytes) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(magic)) == magic
    except OSError:  # whoever reads it says why
        return False


def _fits(source: Source, judged: Judged, memory: int) -> bool:
    if source.stream is None:  # it is in memory
        return True
    n_bytes = BYTES_PER_ROW + BYTES_PER_CELL * len(judged.names)
    return source.n_rows != UNKNOWN and source.n_rows * n_bytes <= memory


def _opened(path: Path, word: str, memory: int, policy: Policy) -> Source:
    """The rows of a release folder, as they were before cells like formulas were marked."""
    source = _opened_as_stored(path, word, memory)
    return read_escaped(source) if policy.escapes_formulas else source


def _opened_as_stored(path: Path, word: str, memory: int) -> Source:
    """The rows of a release folder; an InputError if they are not of the format that their name says."""
    source = open_own_csv(path, lazy=not _is_small(path, memory)) if word == "csv" else open_table(path)
    if source.kind != word:
        raise InputError(f"{path.name} is not {word} inside.")
    return source


def _folder_for_files(source: Source) -> Path:
    """Beside the table's own folder if that can be written, else where temporary files belong."""
    beside = Path(source.where).resolve().parent.parent
    return beside if os.access(beside, os.W_OK) else Path(tempfile.gettempdir())


def claims(found: Measures) -> Claims:
    """What a certificate may claim of published rows: what ``verify`` will find.

    Twelve digits of each figure: the last ones of a sum depend on the order of the rows, which is secret.
    """
    requirements = tuple(
        Claim(item.requirement.as_policy(), item.requirement.figure, float(f"{item.achieved:.12g}"))
        for item in found.requirements
    )
    return Claims(
        rows=found.rows,
        groups=found.groups,
        requirements=requirements,
        cells=claim_of(found.details.values()),
        one_value=found.one_value,
    )


def _measured(requirement: Requirement, evidence: Evidence, schema: Schema) -> Measured:
    achieved, holds = measure_groups(requirement, evidence, schema)
    return Measured(requirement, requirement.worst(achieved), int(np.count_nonzero(~holds)))


# ---- the verdict -----------------------------------------------------------------------------------


NOTHING_PROMISED = Check(
    "nothing is promised", True, "the policy requires nothing of the groups", is_note=True
)


def _promises(found: Measures) -> Iterator[Check]:
    if not found.requirements:
        yield NOTHING_PROMISED
    for item in found.requirements:
        figure = f"{item.requirement.figure} is {item.achieved:.12g}"
        failing = "" if item.holds else f", and {item.n_failing:,} of {found.groups:,} groups fail"
        yield Check(f"{item.requirement} holds", item.holds, f"the {figure}{failing}")
    for name, n in found.respelled.items():
        claim = f"values of {name!r} that look alike count as one"
        yield Check(claim, True, f"{n:,} or more are other spellings of one", is_note=True)


# ---- a table that any tool made --------------------------------------------------------------------


def judged(found: Measures) -> Verdict:
    """Do the rows that were measured satisfy every requirement?"""
    return Verdict(tuple(_promises(found)))


def verify_table(
    table: Any, policy: Policy | Mapping[str, Any], *, memory: int | None = None, reading: Reading = AS_USUAL
) -> Verdict:
    """Judge a table by its cells as they stand: a path or frame of any kind, made by any tool.

    Columns that are not published may be there only if they tell nothing (ARX leaves them as ``*``).
    A column that the policy does not name is refused, and so is a table without the quasi-identifiers
    (each as one column, or as its ``_low`` and ``_high``) and the columns of the requirements. A file that does
    not fit in ``memory`` is judged in portions. ``reading`` says how its text is written; quasi-identifiers are
    compared as they stand all the same.
    """
    policy = Policy.of(policy)
    if policy.is_private:
        raise InputError(
            "No table shows by itself that it is differentially private: that lies in how it was drawn. "
            "Verify the release folder, whose certificate holds the ledger."
        )
    if isinstance(policy.method, RiskUtilityOptions):
        raise InputError(
            "A table alone does not show the risk and utility of its rows: a certificate says what they are counted by. "
            "Verify the release folder, with --side-table for the risk."
        )
    memory = _memory(memory)
    compared = Schema(
        tuple(Attribute(a.name, a.role) if a.role is Role.QUASI_IDENTIFIER else a for a in policy.schema)
    )
    source = open_as(table, compared, reading, lazy=not _is_small(table, memory))
    policy = policy.expand(raw_names(source.names, policy))
    check_columns(source.names, policy)
    found = _examined(source, policy, memory, None)
    return Verdict(
        (
            _removed(source, policy),
            _without_index(_stored_names(table)),
            *_promises(found.measures),
            *_summaries(found),
        )
    )


def _summaries(found: Examined) -> list[Check]:
    return [Check(item.claim, not item.n_wrong, item.detail) for item in found.statistics]


def _removed(source: Source, policy: Policy) -> Check:
    hidden = [name for name in policy.schema.names(Role.IDENTIFIER, Role.DROP) if name in source.names]
    telling = [name for name in hidden if _tells_apart(source, name)]
    tell = "tells" if len(telling) == 1 else "tell"
    detail = f"{_columns(telling)} still {tell} rows apart" if telling else ""
    return Check("no column that the policy leaves out tells rows apart", not telling, detail)


def _tells_apart(source: Source, name: str) -> bool:
    """Whether a column has two different cells, as they stand."""
    known: set[Any] = set()
    for batch in source.batches([name]):
        cells = as_stored(batch.column(name), Attribute(name, Role.OTHER))
        known.update(cells.dictionary.to_pylist(), [None] * (cells.null_count > 0))
        if len(known) > 1:
            return True
    return False


def _without_index(names: Sequence[str]) -> Check:
    found = any(INDEX_OF_PANDAS.fullmatch(name) for name in names)
    return Check("no index of pandas is stored", not found, "pandas stored its index" if found else "")


def _stored_names(table: Any) -> list[str]:
    """The columns of a Parquet file, a folder of them or an Arrow table, the index of pandas included.

    Reading a table leaves an index out, so it must be looked for in the file itself.
    """
    if isinstance(table, pa.Table | pa.RecordBatch):
        return list(table.schema.names)
    if not isinstance(table, str | Path):
        return []
    path = Path(table)
    files = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
    return list(dict.fromkeys(name for file in files for name in _names_in_parquet(file)))


def _names_in_parquet(path: Path) -> list[str]:
    try:
        return list(pq.read_schema(path).names)
    except (OSError, pa.ArrowException):  # of another format
        return []


def _columns(names: Sequence[str]) -> str:
    more = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
    return f"column {names[0]!r}{more}"


# ---- a release folder ------------------------------------------------------------------------------


def verify_folder(
    folder: str | Path,
    *,
    memory: int | None = None,
    known: Examined | None = None,
    scratch: Path | None = None,
    side_table: Any = None,
) -> Verdict:
    """Recompute every claim of a release folder from what lies in it.

    A folder that is none, or no release at all, is an InputError; whatever is wrong with a release is a
    failed claim. Rows that do not fit in ``memory`` (bytes; half of what is free if not given) are judged in
    portions, which are written to ``scratch``, or beside the folder. ``known`` is what ``examine`` just found
    in the very same rows; if the file that lies here has their hash, they are not read again. The risk of a
    risk-utility release is recomputed from the ``side_table`` that it was made with, a path or a table of any kind;
    one that lacks a column is an InputError.
    """
    path = Path(folder)
    if not path.is_dir():
        if path.exists():
            raise InputError(
                f"{path} is a file, not a release folder; to judge a table give its --policy too."
            )
        raise InputError(f"There is no folder {path}; check the path.")
    if not any((path / name).exists() for name in (CERTIFICATE, *RELEASES.values())):
        raise InputError(f"The folder {path} is no release: it holds neither rows nor a certificate.")
    return Verdict(tuple(_folder_checks(path, _memory(memory), known, scratch, side_table)))


def _folder_checks(
    folder: Path, memory: int, known: Examined | None, scratch: Path | None, side_table: Any
) -> Iterator[Check]:
    strangers = verify_files.others(folder)
    if {name.partition("/")[0] for name in strangers} & {CERTIFICATE, *CERTIFIED}:  # links are not followed
        yield verify_files.nothing_else(strangers)
        return
    try:
        certificate = Certificate.from_json(read_piece(folder, CERTIFICATE))
        policy = Policy.from_dict(certificate.policy, None)
    except InputError as error:
        yield Check("the certificate is readable and complete", False, without_stop(error))
        return
    has_boxes = isinstance(policy.method, RiskUtilityOptions)
    if side_table is not None and not has_boxes:
        raise InputError("Only a risk-utility release has a risk against a side table; leave it out.")
    yield _complete(certificate)
    yield _same_policy(folder, certificate, policy)
    yield from _more_than_policy(folder, policy)
    yield _same_promise(certificate, policy)
    hashes = _hashes(folder, certificate.claims)
    yield from _files(folder, certificate.claims, hashes)
    yield verify_files.nothing_else(strangers)
    if (folder / REPORT).exists():
        yield REPORT_NOT_CHECKED
    if not policy.is_private:
        yield verify_figures.check(certificate.figures, policy)
    for word, name in RELEASES.items():
        if name in certificate.claims.sha256 and (folder / name).exists():
            is_known = known is not None and (known.sha256, known.policy) == (hashes[name], policy)
            if has_boxes:
                yield from _boxes(folder, folder / name, word, certificate, policy, side_table)
                continue
            if policy.is_private:
                yield from _private(folder, folder / name, word, certificate, policy)
                continue
            path, found = folder / name, known if is_known else None
            yield from _rows(path, word, certificate.claims, policy, found, memory, scratch)


def _complete(certificate: Certificate) -> Check:
    claim = "the certificate is readable and complete"
    if sum(name in certificate.claims.sha256 for name in RELEASES.values()) != 1:
        return Check(claim, False, "it does not name one release file and its SHA-256")
    if POLICY not in certificate.claims.sha256:
        return Check(claim, False, f"it lacks the SHA-256 of {POLICY}")
    if not VERSION.fullmatch(certificate.version):
        return Check(claim, False, "it does not say which version made it")
    return Check(claim, True)


def _same_policy(folder: Path, certificate: Certificate, policy: Policy) -> Check:
    claim = f"the certificate and {POLICY} speak of one policy"
    try:
        text = read_piece(folder, POLICY)
        is_same = text == _as_bytes(policy.to_yaml()) or Policy.parse(text, None) == policy
    except InputError as error:
        return Check(claim, False, without_stop(error))
    if not is_same:
        return Check(claim, False, "they differ")
    if certificate.method != policy.method.as_policy():
        return Check(claim, False, "the certificate names another method, or other options of it")
    if certificate.missing != missing_rule(policy):
        return Check(claim, False, "the certificate says otherwise how missing values were matched")
    return Check(claim, True)


def _more_than_policy(folder: Path, policy: Policy) -> Iterator[Check]:
    """A policy file is what it says, written as a release writes it: no comment stands in it."""
    with suppress(InputError):  # said of the policy already
        text = read_piece(folder, POLICY)
        is_plain = text == _as_bytes(policy.to_yaml())
        if not is_plain and text != _as_bytes(yaml.dump(policy_file.load(text).data)):
            detail = "it has comments, or is written in another way than those of releases"
            yield Check(f"{POLICY} holds a policy and nothing else", False, detail)


def _as_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _same_promise(certificate: Certificate, policy: Policy) -> Check:
    claimed = [(claim.requirement, claim.figure) for claim in certificate.claims.requirements]
    required = [(item.as_policy(), item.figure) for item in policy.requirements]
    is_same = claimed == required and policy.is_private == (certificate.privacy is not None)
    return Check("the certificate claims what the policy requires", is_same, "" if is_same else "they differ")


def _hashes(folder: Path, claimed: Claims) -> dict[str, str]:
    """The SHA-256 of each file that is certified and there; none of one that cannot be read."""
    found = {}
    for name in claimed.sha256:
        with suppress(OSError):
            found[name] = sha256_of(folder / name) if (folder / name).exists() else ""
            if (folder / name).is_dir() and older_sha256_of(folder / name) == claimed.sha256[name]:
                found[name] = claimed.sha256[name]
    return found


def _files(folder: Path, claimed: Claims, hashes: Mapping[str, str]) -> Iterator[Check]:
    for name in CERTIFIED:
        claim = f"the file {name} is as it was certified"
        is_there = (folder / name).exists()
        if not is_there and name not in claimed.sha256:
            continue
        if not is_there:
            yield Check(claim, False, "it is not there")
        elif name not in claimed.sha256:
            yield Check(claim, False, "the certificate does not name it")
        elif name not in hashes:
            yield Check(claim, False, "it cannot be read")
        else:
            is_same = hashes[name] == claimed.sha256[name]
            yield Check(claim, is_same, "" if is_same else "its SHA-256 differs")


REPORT_NOT_CHECKED = Check("the report is not checked", True, is_note=True)
"""Reports are another part of the program, which ``verify`` shares nothing with; the command line renders it again."""


def _only_rows(
    path: Path,
    word: str,
    source: Source | None = None,
    keep: Sequence[str] = (),
    kept: dict[str, pa.ChunkedArray] | None = None,
) -> Check:
    """Whatever a file of rows holds is in its rows; ``source`` is the file, if it is open.

    Columns to ``keep`` that are read on the way are put into ``kept``.
    """
    claim = f"{path.name} holds its rows and nothing else"
    try:
        if word == "csv":
            verify_files.check_csv(path, source or open_own_csv(path, lazy=True, may_be_empty=True))
        else:
            found = verify_files.check_parquet(path, keep)
            if kept is not None:
                kept.update(found)
    except verify_files.Hidden as hidden:
        return Check(claim, False, f"it holds {hidden}")
    except InputError as error:
        return Check(claim, False, without_stop(error))
    except (OSError, ValueError, pa.ArrowException):
        return Check(claim, False, "it cannot be read")
    return Check(claim, True)


def _private(
    folder: Path, path: Path, word: str, certificate: Certificate, policy: Policy
) -> Iterator[Check]:
    """The claims of a differentially private release."""
    yield _only_rows(path, word)
    claim = "recoding and rows can be read"
    try:
        document = verify_files.read_json(read_piece(folder, RECODINGS[0]))
        names = _header(path) if word == "csv" else _stored_names(path)
    except InputError as error:
        yield Check(claim, False, without_stop(error))
        return
    except (OSError, ValueError, RecursionError, csv.Error):
        yield Check(claim, False, "they are damaged")
        return
    rows = FiledRows(path, word, is_escaped=policy.escapes_formulas)
    yield from verify_private.checks(policy, certificate, document, rows, names)


def _boxes(
    folder: Path, path: Path, word: str, certificate: Certificate, policy: Policy, side_table: Any
) -> Iterator[Check]:
    """The claims of a risk-utility release."""
    has_recoding = any((folder / name).exists() for name in RECODINGS)
    detail = "there is one, and it would map raw rows to boxes" if has_recoding else ""
    yield Check("the folder holds no recoding", not has_recoding, detail)
    yield _only_rows(path, word)
    claim = "the rows can be read and measured"
    claimed = certificate.claims
    try:
        columns = _published_columns(_header(path) if word == "csv" else _stored_names(path), policy)
        yield columns
        if not columns.passed:
            return
        missing = claimed.utility.missing if claimed.utility is not None else ()
        rows = FiledRows(path, word, is_escaped=policy.escapes_formulas)
        boxes = verify_tradeoff.Boxes.of(rows, policy, missing)
        if policy.is_private:
            options = verify_tradeoff.options_of(policy)
            found = list(sampling.checks(boxes, rows, certificate, options, side_table))
        else:
            found = list(verify_tradeoff.checks(boxes, claimed, certificate.figures))
    except InputError as error:
        yield Check(claim, False, without_stop(error))
        return
    except (OSError, ValueError, csv.Error, pa.ArrowException):
        yield Check(claim, False, f"{path.name} cannot be read")
        return
    yield from found
    if policy.is_private:
        return
    if side_table is None:
        yield verify_tradeoff.NO_SIDE_TABLE
    elif all(check.passed for check in found):
        figures = verify_tradeoff.Figures.of(certificate.figures[verify_tradeoff.TRADEOFF])
        yield from risk.checks(boxes, figures, side_table)


def _rows(
    path: Path,
    word: str,
    claimed: Claims,
    policy: Policy,
    known: Examined | None,
    memory: int,
    scratch: Path | None,
) -> Iterator[Check]:
    claim = "the rows can be read and measured"
    beside = None if known else _recoding_beside(path, word, policy, memory)
    held = beside if isinstance(beside, verify_recoding.Held) else None
    try:
        source = _opened_as_stored(path, word, 0 if known else memory)
        columns = _published_columns(_header(path) if word == "csv" else _stored_names(path), policy)
        yield columns
        if not known and columns.passed:
            judged = _judged_columns(source.names, policy, with_statistics=True)
            kept: dict[str, pa.ChunkedArray] = {}
            yield _only_rows(path, word, source, judged.names if _fits(source, judged, memory) else (), kept)
            source = _with_columns(source, kept)
        source = read_escaped(source) if policy.escapes_formulas else source
        held = held if columns.passed else None
        examined = known or _examined(source, policy, memory, scratch, beside=held)
    except NoRoom:  # that is not the release's fault
        raise
    except InputError as error:
        yield Check(claim, False, without_stop(error))
        return
    except (OSError, ValueError, csv.Error):  # a header that open_table could make sense of, and we cannot
        yield Check(claim, False, f"the columns of {path.name} cannot be read")
        return
    found = examined.measures
    yield Check(claim, True)
    yield equal("the release holds {}", claimed.rows, found.rows, of="row")
    yield _suppressed(claimed.suppressed)
    yield equal("the rows form {}", claimed.groups, found.groups, of="group")
    yield from _promises(found)
    figures = [
        _same_figure(item, claimed_item.achieved)
        for item, claimed_item in zip(found.requirements, claimed.requirements, strict=False)
    ]
    yield from (check for check in figures if not check.passed)  # what is as claimed was said above
    yield from what_is_left(claimed, claims(found))
    yield from _summaries(examined)
    if isinstance(beside, Check):
        yield beside
    elif held is not None:
        yield from held.checks()


def _recoding_beside(
    path: Path, word: str, policy: Policy, memory: int
) -> verify_recoding.Held | Check | None:
    """The recoding in the folder, to be held against the rows; what is wrong with it; None if there is none."""
    folder, claim = path.parent, "the recoding can be read"
    is_there = [(folder / name).exists() for name in RECODINGS]
    if not any(is_there):
        return None
    if not policy.keeps_recoding:
        return Check("the folder holds no recoding", False, "the policy wants none")
    try:
        recoding = verify_recoding.read(folder, policy, memory)
        if recoding is None:
            detail = "it does not fit in memory"
            return Check("the recoding is not held against the rows", True, detail, is_note=True)
        return verify_recoding.Held(recoding, policy, is_csv=word == "csv")
    except verify_recoding.Unfit as fault:
        return Check(claim, False, str(fault))


def _with_columns(source: Source, known: Mapping[str, pa.ChunkedArray]) -> Source:
    """The same table, of which some columns have been read."""

    def read(name: str) -> pa.ChunkedArray:
        return known[name] if name in known else source.read(name)

    return replace(source, read=read)


def _suppressed(claimed: int) -> Check:
    """Rows that are not there cannot be counted; this version's policies let none be left out."""
    if claimed:
        return Check(f"{claimed:,} rows were suppressed", False, "the policy lets none be")
    return Check(
        "owner's word: no row was suppressed", True, "rows that are left out leave no trace", is_note=True
    )


def _published_columns(names: Sequence[str], policy: Policy) -> Check:
    """Exactly the columns that the policy publishes, in the form that its output says, in any order."""
    if isinstance(policy.method, RiskUtilityOptions):
        expected = [n for a in policy.schema.published for n in verify_tradeoff.published_names(a, policy)]
    else:
        expected = published_names(policy)
    lacking = [name for name in expected if name not in names]
    extra = len(names) - len(expected) + len(lacking)
    details = [
        *([f"{_columns(lacking)} is not there"] if lacking else []),
        *([f"{number_of(extra, 'column')} too many"] if extra else []),
    ]
    return Check("the columns are those that the policy publishes", not details, ", and ".join(details))


def _header(path: Path) -> list[str]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return next(csv.reader(file), [])


def _same_figure(item: Measured, claimed: float) -> Check:
    is_same = math.isclose(item.achieved, claimed, rel_tol=FIGURE_TOLERANCE)
    claim = f"the {item.requirement.figure} is {claimed:.12g} for {item.requirement}"
    return Check(claim, is_same, "" if is_same else f"it is {item.achieved:.12g}")
