"""The input of the estimator: rows in whatever form they come, targets beside them, and their schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.errors import InputError, notice, number_of
from sfumato.policy.requirements import Requirement
from sfumato.policy.schema import Attribute, Kind, Role, Schema
from sfumato.policy.workload import Classify, Predict, Regress, Task
from sfumato.table import opening
from sfumato.table.cells import is_text
from sfumato.table.frames import frame_kind
from sfumato.table.source import Source

Columns = Mapping[str, pa.ChunkedArray]


class EstimatorError(InputError, ValueError):
    """An error in the input that scikit-learn and its users expect to be a ValueError."""


def open_input(given: Any) -> Source:
    """The table behind a frame, a path, an array or nested lists."""
    if hasattr(given, "toarray") and hasattr(given, "nnz"):
        raise EstimatorError("A sparse matrix cannot be recoded; give its dense array (toarray).")
    is_array = isinstance(given, list | tuple | np.ndarray) or (
        hasattr(given, "__array__") and frame_kind(given) is None
    )
    if not is_array:
        return opening.open_table(given)
    array = np.asarray(given)
    if array.ndim != 2:
        raise EstimatorError(
            f"Expected 2D array, got {array.ndim}D array instead. Reshape your data, X.reshape(-1, 1) for one column."
        )
    if array.dtype.kind == "c":
        raise EstimatorError("Complex data not supported: give real numbers.")
    for size, word in zip(array.shape, ("sample", "feature"), strict=True):
        if not size:
            raise EstimatorError(
                f"0 {word}(s) (shape={array.shape}) while a minimum of 1 is required by Mondrian."
            )
    return opening.open_table(array)


def add_targets(source: Source, y: Any, workload: tuple[Task, ...]) -> tuple[Source, tuple[Task, ...]]:
    """The table with ``y`` as the targets of the workload, and the workload, which follows from ``y`` if there is none.

    Columns of the table that are a target, by their name or by all of their cells, are left out.
    """
    if y is None:
        return source, workload
    asked = _names_of(workload)
    targets = _name_targets(y, source, asked)
    workload = workload or tuple(_task_on(name, cells) for name, cells in targets.items())
    if not _names_of(workload):
        return source, workload  # no task asks for a target
    same = [name for name in source.names if _is_one_of(name, source, targets)]
    for name in same:
        if name not in asked:
            notice(f"Column {name!r} of X is the target, by its name or its cells: it is left out.")
    kept = [name for name in source.names if name not in same]

    def read(name: str) -> pa.ChunkedArray:
        return targets[name] if name in targets else source.column(name)

    return replace(source, names=(*kept, *targets), read=read, stream=None), workload


def _is_one_of(name: str, source: Source, targets: Columns) -> bool:
    cells = _as_plain_text(source.column(name)) if name not in targets else None
    return cells is None or any(cells.equals(_as_plain_text(target)) for target in targets.values())


def _as_plain_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Text of one type, however it is stored; all else as it is."""
    return column.cast(pa.string()) if is_text(column.type) else column


def make_schema(
    table: Source,
    given: Schema | None,
    workload: Sequence[Task],
    requirements: Sequence[Requirement],
    *,
    gone: frozenset[str],
) -> Schema:
    """The schema of a table with its targets, without columns that are ``gone``.

    If none is given, all columns are quasi-identifiers except targets and sensitive columns, which a requirement names.
    """
    sensitive = {getattr(requirement, "of", None) for requirement in requirements}
    targets = _names_of(workload)

    def declare(name: str) -> Attribute:
        role = Role.QUASI_IDENTIFIER if name not in targets else Role.OTHER
        kind = _kind_of(table.column(name).type)
        return Attribute(name, Role.SENSITIVE if name in sensitive else role, kind)

    if given is None:
        return Schema(tuple(map(declare, table.names)))
    kept = [item for item in given if item.name not in gone or item.name in table.names]
    new = [declare(name) for name in targets if name in table.names and given.find(name) is None]
    return Schema((*(_as_target(item) if item.name in targets else item for item in kept), *new))


def _name_targets(y: Any, source: Source, wanted: Sequence[str]) -> dict[str, pa.ChunkedArray]:
    """The columns of ``y``, by the names that the workload has for them, or by their own."""
    given = _columns_of(y)
    for cells in given.values():
        if len(cells) != source.n_rows:
            raise EstimatorError(
                f"Found input variables with inconsistent numbers of samples: X has {number_of(source.n_rows, 'row')}, "
                f"and y {len(cells):,}."
            )
    if not wanted or set(wanted) == set(given):
        return given
    if len(wanted) != len(given):
        raise EstimatorError(
            f"The workload has {number_of(len(wanted), 'target')} ({', '.join(map(repr, wanted))}), "
            f"and y {number_of(len(given), 'column')}."
        )
    return dict(zip(wanted, given.values(), strict=True))


def _columns_of(y: Any) -> dict[str, pa.ChunkedArray]:
    """The columns of a series, a frame, an array or a list; one without a name is called y."""
    if frame_kind(y) not in (None, "numpy", "arrow"):  # a series is an arrow exporter, too
        frame = opening.open_table(y)
        return {name: frame.column(name) for name in frame.names}
    name = getattr(y, "name", None)
    cells = np.asarray(y)
    if cells.ndim not in (1, 2):
        raise EstimatorError("y must be the column of a target, or a frame of several.")
    table = opening.open_table(cells.reshape(len(cells), -1))
    if len(table.names) > 1:
        return {f"y{i}": table.column(own) for i, own in enumerate(table.names)}
    return {name if isinstance(name, str) and name else "y": table.column("x0")}


def _names_of(workload: Sequence[Task]) -> list[str]:
    """The targets of a workload, each once."""
    predictions = [task for task in workload if isinstance(task, Predict)]
    return list(dict.fromkeys(name for task in predictions for name in task.targets))


def _as_target(attribute: Attribute) -> Attribute:
    """The attribute in a role that a target can have: sensitive, or other, but never a quasi-identifier."""
    return attribute if attribute.role is Role.SENSITIVE else replace(attribute, role=Role.OTHER)


def _kind_of(dtype: pa.DataType) -> Kind:
    """Numbers and dates by their type; truth values and everything else are categories."""
    value = dtype.value_type if pa.types.is_dictionary(dtype) else dtype
    if pa.types.is_integer(value) or pa.types.is_floating(value) or pa.types.is_decimal(value):
        return Kind.NUMBER if value is dtype else Kind.CATEGORY
    return Kind.DATE if pa.types.is_date(value) or pa.types.is_timestamp(value) else Kind.CATEGORY


def _task_on(name: str, cells: pa.ChunkedArray) -> Task:
    """The task for a target: floats are numbers to predict, anything else are labels to classify."""
    kind = cells.type
    is_float = pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return Regress(name) if is_float else Classify(name)
