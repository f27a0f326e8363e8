"""Mondrian as an estimator in scikit-learn's manner. It needs no scikit-learn, and works in its pipelines."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.errors import did_you_mean
from sfumato.methods.mondrian.estimator_input import EstimatorError, add_targets, make_schema, open_input
from sfumato.methods.mondrian.method import partition
from sfumato.policy.document import Policy
from sfumato.policy.options.mondrian import MondrianOptions
from sfumato.policy.output import Narrowing, Output
from sfumato.policy.requirements import Requirement
from sfumato.policy.schema import Schema
from sfumato.policy.workload import Task
from sfumato.table.frames import array_names
from sfumato.table.source import Source
from sfumato.table.write import hand_back

DEFAULTS: Mapping[str, Any] = {
    "schema": None,
    "workload": (),
    "options": None,
    "output": "labels",
    "numbers": None,
    "rest_labels": None,
    "threads": None,
}
"""The parameters that may be left out."""
CONTAINERS = ("default", "pandas", "polars")


class Mondrian:
    """Mondrian as an estimator of scikit-learn: learns a recoding from some rows, and recodes any others.

    The constructor only stores; ``fit`` learns ``recoding_``; ``transform`` recodes rows of the same columns
    and promises nothing. To publish the fitted rows themselves, verified, use :func:`sfumato.publish`.

    Without a ``schema`` each column is a quasi-identifier: a number, a date or a category by its dtype. ``y`` is the
    target of the ``workload``; without a workload its labels stay predictable as by :class:`Classify`, and its floats as
    by :class:`Regress`. ``numbers`` and ``rest_labels`` are what a policy says of its output. No target is ever among the
    columns that ``transform`` gives, not even one that is in ``X``.

    >>> from sfumato.policy.requirements import KAnonymity
    >>> model = Mondrian(requirement=KAnonymity(2)).fit(pa.table({"age": [20, 25, 40, 41]}))
    >>> model.transform(pa.table({"age": [24, 99]})).column("age").to_pylist()
    ['[20, 25]', '[40, 41]']
    """

    def __init__(
        self,
        *,
        requirement: Requirement | Sequence[Requirement],
        schema: Schema | None = None,
        workload: Sequence[Task] = (),
        options: MondrianOptions | None = None,
        output: str = "labels",
        numbers: Narrowing | str | Mapping[str, int] | None = None,
        rest_labels: str | None = None,
        threads: int | None = None,
    ) -> None:
        self.requirement = requirement
        self.schema = schema
        self.workload = workload
        self.options = options
        self.output = output
        self.numbers = numbers
        self.rest_labels = rest_labels
        self.threads = threads

    def __repr__(self) -> str:
        given = {
            name: value
            for name, value in self.get_params().items()
            if name not in DEFAULTS or value is not DEFAULTS[name]
        }
        return f"Mondrian({', '.join(f'{name}={value!r}' for name, value in given.items())})"

    # -- learning and recoding -----------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: N803 - scikit-learn's name
        """Learn the recoding of these rows: a frame, a path, or an array of two dimensions.

        ``y`` is the target, or a frame of several. Without it, targets are columns of ``X``.
        """
        source = open_input(X)
        given = self.requirement
        requirements = tuple(given) if isinstance(given, Sequence) else (given,)
        table, workload = add_targets(source, y, tuple(self.workload))
        gone = frozenset(source.names) - frozenset(table.names)
        options = self.options or MondrianOptions()
        policy = Policy(
            make_schema(table, self.schema, workload, requirements, gone=gone),
            requirements,
            workload,
            options,
            Output(self.output),
            numbers=self.numbers,  # type: ignore[arg-type]  # a policy takes it as it is written, too
            rest_labels=self.rest_labels,
        ).expand(table.names)
        policy.check_columns(table.names)
        self.recoding_ = partition(table, policy, threads=self.threads).recoding
        self.left_out_ = gone.union(*(task.targets for task in policy.predictions))
        self._note_columns(source)
        return self

    def _note_columns(self, source: Source) -> None:
        """Remember what came in, and what ``transform`` makes of it."""
        self.n_features_in_ = len(source.names)
        if source.kind != "numpy":
            self.feature_names_in_ = np.array(source.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_  # of an earlier fit
        first = source.take(np.zeros(1, dtype=np.int64))
        self._names_out = tuple(self._recode(first).column_names)

    def transform(self, X: Any) -> Any:  # noqa: N803 - scikit-learn's name
        """Recode any rows. The frame is of the kind that came in, with its index, unless ``set_output`` says otherwise.

        It needs the quasi-identifiers only. Targets are left out, as are identifiers and dropped columns; all others
        pass through.
        """
        self._check_fitted()
        source = self._rename_as_fitted(open_input(X))
        wanted = self._container()
        kind = source.kind if wanted == "default" else wanted
        return hand_back(self._recode(source), replace(source, kind=kind))

    def _rename_as_fitted(self, source: Source) -> Source:
        """The table by the names that ``fit`` saw. Arrays have none, so their columns count by their order."""
        has_names = hasattr(self, "feature_names_in_")
        if source.kind != "numpy" and has_names:
            return source
        if len(source.names) != self.n_features_in_:
            raise EstimatorError(
                f"X has {len(source.names)} features, but Mondrian is expecting {self.n_features_in_} features as input."
            )
        names = tuple(self.feature_names_in_) if has_names else array_names(self.n_features_in_)
        before = dict(zip(names, source.names, strict=True))
        return replace(source, names=names, read=lambda name: source.column(before[name]), stream=None)

    def _recode(self, source: Source) -> pa.Table:
        table = self.recoding_.apply_to(source)
        return table.drop_columns([name for name in table.column_names if name in self.left_out_])

    def fit_transform(self, X: Any, y: Any = None) -> Any:  # noqa: N803 - scikit-learn's name
        """Learn the recoding of these rows, and recode them."""
        return self.fit(X, y).transform(X)

    # -- what scikit-learn asks for ------------------------------------------------------------------

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The columns that ``transform`` makes of the columns that ``fit`` saw."""
        self._check_fitted()
        seen = getattr(self, "feature_names_in_", None)
        if input_features is not None and len(input_features) != self.n_features_in_:
            raise EstimatorError(
                f"input_features should have length equal to number of features ({self.n_features_in_})."
            )
        if input_features is None:
            return np.array(self._names_out, dtype=object)
        if seen is not None and list(input_features) != list(seen):
            raise EstimatorError("input_features is not equal to feature_names_in_.")
        return np.array(self._names_out, dtype=object)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Have ``transform`` give a pandas or a Polars frame; by default it is of the kind that came in."""
        if transform is None:
            return self
        if transform not in CONTAINERS:
            raise EstimatorError(f"transform is one of {', '.join(CONTAINERS)}.")
        self._sklearn_output_config = {"transform": transform}  # of this name, clones keep it
        return self

    def _container(self) -> str:
        """The kind of frame that was asked for: of this model, or of scikit-learn for all estimators."""
        own: dict[str, str] = getattr(self, "_sklearn_output_config", {})
        if "transform" not in own and (sklearn := sys.modules.get("sklearn")) is not None:
            return str(sklearn.get_config().get("transform_output", "default"))
        return own.get("transform", "default")

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002, FBT001, FBT002 - scikit-learn's signature
        """The constructor's arguments."""
        return {name: getattr(self, name) for name in ("requirement", *DEFAULTS)}

    def set_params(self, **parameters: Any) -> Self:
        """Change constructor arguments."""
        known = self.get_params()
        for name, value in parameters.items():
            if name not in known:
                raise EstimatorError(f"Mondrian has no parameter {name!r}.{did_you_mean(name, known)}")
            setattr(self, name, value)
        return self

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise _not_fitted()("This Mondrian has not been fitted; call fit first.")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "recoding_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags  # noqa: PLC0415 - it is who asks

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(preserves_dtype=[]),
            input_tags=InputTags(string=True, categorical=True, allow_nan=True),
        )


def _not_fitted() -> type[EstimatorError]:
    """The class of error for a model that was not fitted: where scikit-learn is in use, also its own."""
    exceptions = sys.modules.get("sklearn.exceptions")
    bases = (EstimatorError,) if exceptions is None else (EstimatorError, exceptions.NotFittedError)
    return type("NotFitted", bases, {})
