"""The one path: table + policy -> verified release."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa

from sfumato import predicate, report, selection, summary, tables
from sfumato.errors import InputError, NotYet
from sfumato.evaluate.result import Evaluation
from sfumato.methods import partition
from sfumato.partition import Partition, Progress, no_progress
from sfumato.policy import Policy
from sfumato.published import published_rows
from sfumato.randomness import generator
from sfumato.release import Certificate, Release, check_target
from sfumato.tables import Source
from sfumato.verify import claims, judged, measure, verify_folder
from sfumato.workload import Select

BYTES_PER_CELL = 4
COPIES = 3
"""Memory that publishing takes, in encoded tables."""


def publish(
    table: Any,
    policy: Policy | str | Path,
    *,
    evaluation: Evaluation | None = None,
    seed: int | None = None,
    threads: int | None = None,
    file_format: str | None = None,
    memory: int | None = None,
    progress: Progress = no_progress,
) -> Release:
    """A verified release of ``table``: a frame (pandas, Polars, Arrow, DuckDB) or a path; so may the policy be.

    Without a ``seed`` the order of the published rows is secret; with one it can be repeated. An
    ``evaluation`` of the same policy goes into the certificate's figures and the report.

    >>> rows = pa.table({"age": ["23", "25", "41", "44"], "disease": ["flu", "cold", "flu", "asthma"]})
    >>> policy = Policy.parse('''
    ... attributes: {age: {role: quasi-identifier, type: number}, disease: {role: sensitive}}
    ... require: [k-anonymity: 2]
    ... ''')
    >>> release = publish(rows, policy)
    >>> release.table.column("age").to_pylist()
    ['[23, 25]', '[23, 25]', '[26, 44]', '[26, 44]']
    """
    policy = Policy.of(policy)
    source = tables.open_table(table)
    policy.check_columns(source.names)
    _check_names(policy)
    _check_evaluation(evaluation, policy, source)
    _check_memory(source, policy, memory)
    groups = partition(source, policy, threads=threads, progress=progress)
    tables.give_back_memory()
    progress("publishing", 0, 1)
    rows = published_rows(source, policy, groups, generator(seed).random(source.n_rows))
    measures = measure(rows, policy)
    judged(measures).raise_if_failed()
    figures = _figures(source, policy, groups, rows, evaluation)
    certificate = Certificate.of(policy, claims(measures), figures=figures)
    release = Release(
        rows,
        certificate,
        policy,
        groups.recoding,
        format=file_format or tables.release_format(source),
        kind=source.kind,
        check=lambda folder: verify_folder(folder).raise_if_failed(),
    )
    tables.give_back_memory()
    progress("reporting", 0, 1)
    return release.with_report(report.render(release))


def publish_to(
    folder: str | PathLike[str],
    table: Any,
    policy: Policy | str | Path,
    *,
    overwrite: bool = False,
    progress: Progress = no_progress,
    **options: Any,
) -> Release:
    """``publish`` into a folder, which appears when it is complete and verified, or not at all."""
    check_target(folder, overwrite=overwrite)
    release = publish(table, policy, progress=progress, **options)
    tables.give_back_memory()
    progress("writing and verifying", 0, 1)
    release.write(folder, overwrite=overwrite)
    return release


def _figures(
    source: Source, policy: Policy, groups: Partition, rows: pa.Table, evaluation: Evaluation | None
) -> dict[str, Any]:
    """What the certificate says of the run, beyond what the release itself shows."""
    figures: dict[str, Any] = {"splits": groups.recoding.n_splits()}
    if policy.selections:
        figures["imprecision"] = [
            _imprecision(task, source, policy, groups, rows) for task in policy.selections
        ]
    if evaluation is not None:
        figures["utility"] = {key: part for key, part in evaluation.as_dict().items() if key != "policy"}
    return figures


def _imprecision(
    task: Select, source: Source, policy: Policy, groups: Partition, rows: pa.Table
) -> dict[str, Any]:
    """How many rows the condition asks for, and how many the release returns [LDR08, section 3.2]."""
    condition = predicate.parse(task.where, policy.schema)
    returned, true, surplus = selection.imprecision(
        condition, source, policy.schema, rows, groups.recoding, policy
    )
    return {"where": task.where, "true": true, "returned": returned, "imprecision": surplus}


def promises(release: Release) -> Iterator[str]:
    """What the release promises, a line each."""
    if release.certificate.promises_nothing:
        yield "Nothing is promised: the policy requires nothing."
    for requirement, claim in zip(
        release.policy.requirements, release.certificate.claims.requirements, strict=True
    ):
        yield f"{requirement}: {claim.figure} {claim.achieved:,.6g}"


def _check_names(policy: Policy) -> None:
    """Published bounds and statistics need names of their own."""
    summary.check_names(policy)
    if not policy.output.has_bounds:
        return
    for attribute in policy.schema.quasi_identifiers:
        for name in (f"{attribute.name}_low", f"{attribute.name}_high"):
            if attribute.is_ordered and name in policy.schema:
                raise InputError(
                    f"Column {name!r} of the table has the name of a published bound; rename it, or publish labels."
                )


def _check_evaluation(evaluation: Evaluation | None, policy: Policy, source: Source) -> None:
    if evaluation is None:
        return
    if Policy.from_dict(evaluation.policy) != policy:
        raise InputError(
            "The evaluation was made with another policy than this release; evaluate with this one first."
        )
    if "folds" in evaluation.protocol and evaluation.protocol.get("rows", source.n_rows) != source.n_rows:
        raise InputError(
            "The evaluation was made of another table than this release; evaluate this one first."
        )


def _check_memory(source: Source, policy: Policy, memory: int | None) -> None:
    needed = source.n_rows * (len(policy.schema.published) + 1) * BYTES_PER_CELL * COPIES
    if memory is not None and needed > memory:
        raise NotYet(
            f"Publishing {source.n_rows:,} rows in {memory / 1e6:,.0f} MB (about {needed / 1e6:,.0f} MB are "
            "needed in memory; the engine for larger tables)"
        )


__all__ = ["promises", "publish", "publish_to", "published_rows"]
