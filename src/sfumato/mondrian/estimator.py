"""Mondrian as an estimator in scikit-learn's manner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from sfumato import tables
from sfumato.errors import InputError, did_you_mean
from sfumato.mondrian.grow import partition
from sfumato.policy import MondrianOptions, Output, Policy
from sfumato.requirement import Requirement
from sfumato.schema import Schema
from sfumato.workload import Task


class Mondrian:
    """Learn a recoding from some rows, recode any others.

    The constructor only stores; ``fit`` learns ``recoding_``; ``transform`` recodes rows of the same columns
    and promises nothing. To publish the fitted rows themselves, verified, use :func:`sfumato.publish`.

    >>> import pyarrow as pa
    >>> from sfumato.requirement import KAnonymity
    >>> schema = Schema.of(age={"role": "quasi-identifier", "kind": "number"})
    >>> model = Mondrian(requirement=KAnonymity(2), schema=schema).fit(pa.table({"age": [20, 25, 40, 41]}))
    >>> model.transform(pa.table({"age": [24, 99]})).column("age").to_pylist()
    ['[20, 25]', '[26, 41]']
    """

    def __init__(
        self,
        *,
        requirement: Requirement | Sequence[Requirement],
        schema: Schema,
        workload: Sequence[Task] = (),
        options: MondrianOptions | None = None,
        output: str = "labels",
        threads: int | None = None,
    ) -> None:
        self.requirement = requirement
        self.schema = schema
        self.workload = workload
        self.options = options
        self.output = output
        self.threads = threads

    def fit(self, table: Any, y: object = None) -> Self:  # noqa: ARG002 - scikit-learn's signature
        """Learn the recoding of these rows."""
        source = tables.open_table(table)
        given = self.requirement
        options = self.options or MondrianOptions()
        policy = Policy(
            self.schema,
            tuple(given) if isinstance(given, Sequence) else (given,),
            tuple(self.workload),
            options,
            Output(self.output),
        )
        policy.check_columns(source.names)
        self.recoding_ = partition(
            source,
            policy.schema,
            policy.requirements,
            workload=policy.workload,
            options=options,
            output=policy.output,
            threads=self.threads,
        ).recoding
        return self

    def transform(self, table: Any) -> Any:
        """Recode any rows; the frame is of the kind that came in."""
        if not hasattr(self, "recoding_"):
            raise InputError("This Mondrian has not been fitted; call fit first.")
        return self.recoding_.apply(table)

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002, FBT001, FBT002 - scikit-learn's signature
        """The constructor's arguments."""
        names = ("requirement", "schema", "workload", "options", "output", "threads")
        return {name: getattr(self, name) for name in names}

    def set_params(self, **parameters: Any) -> Self:
        """Change constructor arguments."""
        known = self.get_params()
        for name, value in parameters.items():
            if name not in known:
                raise InputError(f"Mondrian has no parameter {name!r}.{did_you_mean(name, known)}")
            setattr(self, name, value)
        return self
