"""Re-checks a release folder: every claim of its certificate is computed anew from what lies in the folder.

What the checks cannot show: someone who may rewrite the whole folder, hashes included, can lower a promise everywhere at
once. The folder is then a consistent release with that weaker promise, and it is checked against that. A certificate
protects against mistakes and partial tampering; who issued it must be known by other means.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from sfumato.errors import InputError, TableError
from sfumato.policy import file as policy_file
from sfumato.policy import yaml
from sfumato.policy.document import Policy
from sfumato.policy.output import Form
from sfumato.release.certificate import Certificate, Claims, missing_rule
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
from sfumato.table.cells import give_back_memory
from sfumato.table.csv_file import open_own_csv
from sfumato.table.formulas import read_escaped
from sfumato.table.reading import AS_USUAL, Reading
from sfumato.table.source import Source
from sfumato.table.stored import FiledRows
from sfumato.verify import files as verify_files
from sfumato.verify.cells import FoundGroups
from sfumato.verify.checks import (
    Check,
    Unfit,
    Verification,
    check_details,
    check_equal,
    describe_columns,
    without_stop,
)
from sfumato.verify.figures import check_figures
from sfumato.verify.measure import (
    Measures,
    RequirementResult,
    RowFindings,
    check_promises,
    claims,
    examine_release,
    shown_figures,
)
from sfumato.verify.people import OWNERS_WORD, check_claims_of_people
from sfumato.verify.portions import NoRoom
from sfumato.verify.recoding import RecodingMatch, read_recoding
from sfumato.verify.recount import RawTable, recount
from sfumato.verify.rows import (
    allowed_memory,
    columns_to_check,
    fits_in_memory,
    open_stored_rows,
    published_names,
    read_header,
    stored_names,
)
from sfumato.verify.warehouse import NoAnswer, OpenWarehouse, measure_by_sql, refuse_without_sql, unseen

FIGURE_TOLERANCE = 1e-9
"""Relative, both ways: how far a claimed figure may lie from the recomputed one."""

VERSION = re.compile(r"[\w.+-]{1,60}", re.ASCII)


def verify_folder(
    folder: str | Path,
    *,
    memory: int | None = None,
    known: RowFindings | None = None,
    scratch: Path | None = None,
    side_table: Any = None,
    warehouse: OpenWarehouse | None = None,
    table: Any = None,
    reading: Reading = AS_USUAL,
) -> Verification:
    """Check a release folder: recompute every claim of its certificate from what lies in it.

    ``ok`` of the result says whether all holds, ``checks`` has the lines. Whatever is wrong with a release is a failed
    claim; a folder that is no release at all is an InputError.

    ``memory``: rows that do not fit in so many bytes (half of what is free if not given) are checked in portions, which
    are written to ``scratch``, or beside the folder.

    ``side_table``: the table that a risk-utility release was made with, a path or a frame; its risk is then recomputed.
    One that lacks a column is an InputError.

    ``table``: the raw table, a path or a frame, in which the people of groups are counted again; ``reading`` says how its
    text is written.

    ``warehouse``: who opens the Parquet files of the rows in a warehouse, where SQL decides what is claimed of them.

    ``known``: what ``examine`` just found in the very same rows. If the file that lies here has their hash, they are not
    read again.
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
    groups: list[FoundGroups] = []
    checks = tuple(
        _check_folder(
            path, allowed_memory(memory), known, scratch, side_table, warehouse, groups, table, reading
        )
    )
    return Verification(checks, groups[0] if groups else None)


def _check_folder(
    folder: Path,
    memory: int,
    known: RowFindings | None,
    scratch: Path | None,
    side_table: Any,
    warehouse: OpenWarehouse | None,
    groups: list[FoundGroups],
    table: Any,
    reading: Reading,
) -> Iterator[Check]:
    strangers = verify_files.find_others(folder)
    if {name.partition("/")[0] for name in strangers} & {CERTIFICATE, *CERTIFIED}:  # links are not followed
        yield verify_files.check_nothing_else(strangers)
        return
    try:
        certificate = Certificate.from_json(read_piece(folder, CERTIFICATE))
        policy = Policy.from_dict(certificate.policy, None)
    except InputError as error:
        yield Check("the certificate is readable and complete", False, without_stop(error))
        return
    if side_table is not None and not policy.method.is_row_by_row:
        raise InputError("Only a risk-utility release has a risk against a side table; leave it out.")
    if warehouse is not None:
        refuse_without_sql(policy)
    raw = None if table is None else RawTable.open(table, policy, reading)
    yield _check_certificate(certificate)
    yield _check_policy(folder, certificate, policy)
    yield from _check_policy_file(folder, policy)
    yield _check_promise(certificate, policy)
    hashes = _hash_files(folder, certificate.claims)
    yield from _check_files(folder, certificate.claims, hashes)
    yield verify_files.check_nothing_else(strangers)
    if (folder / REPORT).exists():
        yield REPORT_NOT_CHECKED
    if not policy.is_private:
        yield check_figures(certificate.figures, policy)
    for word, name in RELEASES.items():
        if name in certificate.claims.sha256 and (folder / name).exists():
            is_known = known is not None and (known.sha256, known.policy) == (hashes[name], policy)
            found = known if is_known else None
            rows = CertifiedRows(
                folder / name,
                word,
                certificate,
                policy,
                found,
                memory,
                scratch,
                side_table,
                warehouse,
                groups,
                raw,
            )
            yield from ROW_CHECKS[policy.method.form](rows)


@dataclass(frozen=True, slots=True, eq=False)
class CertifiedRows:
    """A file of rows in a release folder, and all that it is checked with."""

    path: Path
    word: str
    """csv or parquet."""
    certificate: Certificate
    policy: Policy
    known: RowFindings | None
    """What was just found in the very same rows."""
    memory: int
    scratch: Path | None
    side_table: Any
    warehouse: OpenWarehouse | None
    """Who opens the rows in a warehouse, if SQL decides what is claimed of them."""
    groups: list[FoundGroups]
    """The groups of the rows are put here, where they are found in memory."""
    raw: RawTable | None = None
    """The raw table, in which people and rows that were left out are counted again."""

    @property
    def folder(self) -> Path:
        return self.path.parent

    def names(self) -> Sequence[str]:
        """The columns, as the file says."""
        return read_header(self.path) if self.word == "csv" else stored_names(self.path)

    def open(self) -> FiledRows:
        return FiledRows(self.path, self.word, is_escaped=self.policy.escapes_formulas)

    def measure_in(self, opening: OpenWarehouse) -> RowFindings:
        """What a warehouse finds in the rows; a TableError if a cell is at fault, NoAnswer for anything else."""
        try:
            with opening(self.path) as warehouse:
                return RowFindings(measure_by_sql(warehouse, self.policy, is_release=True), (), self.policy)
        except TableError:
            raise
        except InputError as error:
            raise NoAnswer(str(error)) from None


def _check_certificate(certificate: Certificate) -> Check:
    claim = "the certificate is readable and complete"
    if sum(name in certificate.claims.sha256 for name in RELEASES.values()) != 1:
        return Check(claim, False, "it does not name one release file and its SHA-256")
    if POLICY not in certificate.claims.sha256:
        return Check(claim, False, f"it lacks the SHA-256 of {POLICY}")
    if not VERSION.fullmatch(certificate.version):
        return Check(claim, False, "it does not say which version made it")
    return Check(claim, True)


def _check_policy(folder: Path, certificate: Certificate, policy: Policy) -> Check:
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


def _check_policy_file(folder: Path, policy: Policy) -> Iterator[Check]:
    """A policy file is what it says, written as a release writes it: no comment stands in it."""
    with suppress(InputError):  # said of the policy already
        text = read_piece(folder, POLICY)
        is_plain = text == _as_bytes(policy.to_yaml())
        if not is_plain and text != _as_bytes(yaml.dump(policy_file.load(text).data)):
            detail = "it has comments, or is written in another way than those of releases"
            yield Check(f"{POLICY} holds a policy and nothing else", False, detail)


def _as_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _check_promise(certificate: Certificate, policy: Policy) -> Check:
    claimed = [(claim.requirement, claim.figure) for claim in certificate.claims.requirements]
    required = [(item.as_policy(), item.figure) for item in policy.requirements]
    is_same = claimed == required and policy.is_private == (certificate.privacy is not None)
    return Check("the certificate claims what the policy requires", is_same, "" if is_same else "they differ")


def _hash_files(folder: Path, claimed: Claims) -> dict[str, str]:
    """The SHA-256 of each file that is certified and there; none of one that cannot be read."""
    found = {}
    for name in claimed.sha256:
        with suppress(OSError):
            found[name] = sha256_of(folder / name) if (folder / name).exists() else ""
            if (folder / name).is_dir() and older_sha256_of(folder / name) == claimed.sha256[name]:
                found[name] = claimed.sha256[name]
    return found


def _check_files(folder: Path, claimed: Claims, hashes: Mapping[str, str]) -> Iterator[Check]:
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


def _check_file(
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


def _check_counts(given: CertifiedRows) -> Iterator[Check]:
    """The claims of counts in the cells of a grid."""
    from sfumato.verify.diffgen.counts import check_counts  # noqa: PLC0415 - few releases need it

    yield _check_file(given.path, given.word)
    claim = "recoding and rows can be read"
    try:
        document = verify_files.read_json(read_piece(given.folder, RECODINGS[0]))
        names = given.names()
    except InputError as error:
        yield Check(claim, False, without_stop(error))
        return
    except (OSError, ValueError, RecursionError, csv.Error):
        yield Check(claim, False, "they are damaged")
        return
    yield from check_counts(given.policy, given.certificate, document, given.open(), names)


def _check_boxes(given: CertifiedRows) -> Iterator[Check]:
    """The claims of boxes that were chosen row by row; of all rows, or of those that were drawn."""
    from sfumato.verify.risk_utility import claims as own  # noqa: PLC0415 - few releases need it
    from sfumato.verify.risk_utility.boxes import Boxes, box_names  # noqa: PLC0415
    from sfumato.verify.risk_utility.risk import check_risk  # noqa: PLC0415
    from sfumato.verify.risk_utility.sampling import check_sample  # noqa: PLC0415

    policy, certificate, side_table = given.policy, given.certificate, given.side_table
    has_recoding = any((given.folder / name).exists() for name in RECODINGS)
    detail = "there is one, and it would map raw rows to boxes" if has_recoding else ""
    yield Check("the folder holds no recoding", not has_recoding, detail)
    yield _check_file(given.path, given.word)
    claim = "the rows can be read and measured"
    claimed = certificate.claims
    try:
        published = [n for a in policy.schema.published for n in box_names(a, policy)]
        columns = _check_columns(given.names(), published)
        yield columns
        if not columns.passed:
            return
        missing = claimed.utility.missing if claimed.utility is not None else ()
        rows = given.open()
        boxes = Boxes.of(rows, policy, missing)
        if policy.is_private:
            found = list(check_sample(boxes, rows, certificate, side_table))
        else:
            found = list(own.check_boxes(boxes, claimed, certificate.figures))
    except InputError as error:
        yield Check(claim, False, without_stop(error))
        return
    except (OSError, ValueError, csv.Error, pa.ArrowException):
        yield Check(claim, False, f"{given.path.name} cannot be read")
        return
    yield from found
    if policy.is_private:
        return
    if side_table is None:
        yield own.NO_SIDE_TABLE
    elif all(check.passed for check in found):
        figures = own.RunFigures.of(certificate.figures[own.TRADEOFF])
        yield from check_risk(boxes, figures, side_table)


def _check_groups(given: CertifiedRows) -> Iterator[Check]:
    """The claims of rows in groups."""
    path, word, policy, known, memory = given.path, given.word, given.policy, given.known, given.memory
    claimed, claim = given.certificate.claims, "the rows can be read and measured"
    beside = None if known else _read_recoding(path, word, policy, memory)
    held = beside if isinstance(beside, RecodingMatch) else None
    try:
        source = open_stored_rows(path, word, 0 if known else memory)
        columns = _check_columns(given.names(), published_names(policy, given.names()))
        yield columns
        if not known and columns.passed:
            checked = columns_to_check(source.names, policy, with_statistics=True)
            kept: dict[str, pa.ChunkedArray] = {}
            is_kept = given.warehouse is None and fits_in_memory(source, checked, memory)
            yield _check_file(path, word, source, checked.names if is_kept else (), kept)
            source = _with_columns(source, kept)
        source = read_escaped(source) if policy.escapes_formulas else source
        held = held if columns.passed else None
        if given.warehouse is not None:
            examined = given.measure_in(given.warehouse)
        else:
            examined = known or examine_release(source, policy, memory, given.scratch, beside=held)
    except (NoRoom, NoAnswer):  # that is not the release's fault
        raise
    except InputError as error:
        yield Check(claim, False, without_stop(error))
        return
    except (OSError, ValueError, csv.Error):  # a header that open_table could make sense of, and we cannot
        yield Check(claim, False, f"the columns of {path.name} cannot be read")
        return
    if examined.groups is not None:
        given.groups.append(examined.groups)
    found = examined.measures
    yield Check(claim, True)
    yield check_equal("the release holds {}", claimed.rows, found.rows, of="row")
    suppressed = _check_suppressed(claimed, policy)
    if given.raw is None or held is None or not suppressed.is_note:
        yield suppressed
    yield check_equal("the rows form {}", claimed.groups, found.groups, of="group")
    yield from _check_promises(found, given, held)
    yield from check_details(claimed, claims(found))
    yield from examined.statistic_checks()
    if isinstance(beside, Check):
        yield beside
    elif given.warehouse is None and held is not None:
        yield from held.checks()
    if given.warehouse is not None:
        yield from unseen(policy, has_recoding=held is not None)


def _check_promises(found: Measures, given: CertifiedRows, held: RecodingMatch | None) -> Iterator[Check]:
    """Every requirement with its figure, by the rows; of people by what rows show, or by the raw table."""
    claimed, policy = given.certificate.claims, given.policy
    promised = list(check_promises(found))
    if not found.counts_people and claimed.unit is None:
        pairs = zip(found.requirements, claimed.requirements, strict=False)
        figures = [_check_figure(item, claim.achieved) for item, claim in pairs]
        promised += [check for check in figures if not check.passed]  # what is as claimed was said before
    else:
        promised += check_claims_of_people(claimed, policy, shown_figures(found))
    if given.raw is not None and held is not None and all(check.passed for check in promised):
        counted = recount(given.raw, held, policy, claimed)
        promised = [*(check for check in promised if not check.claim.startswith(OWNERS_WORD)), *counted]
    yield from promised


def _read_recoding(path: Path, word: str, policy: Policy, memory: int) -> RecodingMatch | Check | None:
    """The recoding in the folder, to be compared with the rows; or what is wrong with it; None if there is none."""
    folder, claim = path.parent, "the recoding can be read"
    is_there = [(folder / name).exists() for name in RECODINGS]
    if not any(is_there):
        return None
    if not policy.keeps_recoding:
        return Check("the folder holds no recoding", False, "the policy wants none")
    try:
        recoding = read_recoding(folder, policy, memory)
        give_back_memory()  # of a tree of many nodes: rows are read next
        if recoding is None:
            detail = "it does not fit in memory"
            return Check("the recoding is not held against the rows", True, detail, is_note=True)
        return RecodingMatch(recoding, policy, is_csv=word == "csv")
    except Unfit as fault:
        return Check(claim, False, str(fault))


def _with_columns(source: Source, known: Mapping[str, pa.ChunkedArray]) -> Source:
    """The same table, of which some columns have been read."""

    def read(name: str) -> pa.ChunkedArray:
        return known[name] if name in known else source.read(name)

    return replace(source, read=read)


def _check_suppressed(claimed: Claims, policy: Policy) -> Check:
    """Rows that are not there cannot be counted, but that they are no more than the policy allows can be checked."""
    n_left = claimed.suppressed
    if n_left and (policy.suppress is None or not policy.leaves_rows_out):
        return Check(f"{n_left:,} rows were suppressed", False, "the policy lets none be")
    if n_left and policy.suppress is not None:
        were = "row was" if n_left == 1 else "rows were"
        most = policy.suppress.most_rows(claimed.rows + n_left)
        if n_left > most:
            return Check(f"{n_left:,} {were} left out", False, f"the policy allows at most {most:,}")
        why = "rows that are left out leave no trace"
        return Check(f"owner's word: {n_left:,} {were} left out", True, why, is_note=True)
    return Check(
        "owner's word: no row was suppressed", True, "rows that are left out leave no trace", is_note=True
    )


def _check_columns(names: Sequence[str], expected: Sequence[str]) -> Check:
    """Exactly the columns that the policy publishes, in the form that its output says, in any order."""
    detail = describe_columns(names, expected)
    return Check("the columns are those that the policy publishes", not detail, detail)


def _check_figure(item: RequirementResult, claimed: float) -> Check:
    is_same = math.isclose(item.achieved, claimed, rel_tol=FIGURE_TOLERANCE)
    claim = f"{item.requirement.describe_worst(claimed)} for {item.requirement}"
    return Check(claim, is_same, "" if is_same else f"it is {item.achieved:.12g}")


ROW_CHECKS: Mapping[Form, Callable[[CertifiedRows], Iterator[Check]]] = {
    Form.GROUPS: _check_groups,
    Form.COUNTS: _check_counts,
    Form.BOXES: _check_boxes,
    Form.SAMPLE: _check_boxes,
}
"""How the rows in a folder are checked, by what they are."""
