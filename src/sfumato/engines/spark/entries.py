"""What Spark sends to workers: functions that call the module ``worker`` there, or say why they cannot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from sfumato.engines.spark.worker import versions


def work_on(plan: str) -> Any:
    """For ``mapInArrow``: each number is a task of a plan."""
    call = call_there("work_on", plan)

    def work(batches: Any) -> Any:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from call(number)

    return work


def merge_states(plan: str) -> Any:
    """For ``applyInArrow``: the states of each key."""
    call = call_there("merge_states", plan)
    return in_batches(lambda key, batches: call(batches))  # noqa: ARG005 - the rows have the key, too


def work_handed(plan: str) -> Any:
    """For ``applyInArrow``: each key is a task of a plan, and its rows are the files that it needs."""
    call = call_there("work_handed", plan)
    return in_batches(lambda key, batches: call(key[0].as_py(), batches))


def merge_handed(plan: str) -> Any:
    """For ``applyInArrow``: the states of each key, and the files that they speak of."""
    call = call_there("merge_handed", plan)
    return in_batches(lambda key, batches: call(batches))  # noqa: ARG005


def store_rows(names: list[str]) -> Any:
    """For ``mapInArrow``: rows of a DataFrame, and what its columns are called."""
    call = call_there("store_rows", names)

    def store(batches: Any) -> Any:
        from pyspark import TaskContext  # noqa: PLC0415 - on the worker

        context = TaskContext.get()
        assert context is not None  # inside a task
        yield from call(context.partitionId(), batches)

    return store


def call_there(name: str, *given: object) -> Any:
    """A function of ``worker``, to be called on a worker with what is ``given`` and more.

    It is nested, so that it is sent itself and not by its name: where sfumato is missing, or is another, it can still
    answer.
    """
    wanted = versions()

    def call(*more: object) -> Any:
        import pickle  # noqa: PLC0415 - on the worker

        import pyarrow as pa  # noqa: PLC0415

        said = ""
        try:
            from sfumato.engines.spark import worker  # noqa: PLC0415

            found = worker.versions()
        except Exception as error:  # noqa: BLE001 - whatever it is, sfumato cannot be used there
            lacking = error.name if isinstance(error, ImportError) else None
            lacking = lacking or f"something that sfumato needs ({type(error).__name__})"
            said = f"A worker of the cluster lacks {lacking}: install sfumato[spark] there."
        else:
            if found != wanted:
                said = (
                    "A worker of the cluster has other versions than this machine "
                    f"({', '.join(found)} there; {', '.join(wanted)} here): install the same on both."
                )
        if said:
            answer = [[0], [0], [0], [True], [pickle.dumps(said)], [""]]
            yield pa.record_batch(answer, ["key", "task", "piece", "is_failure", "data", "name"])
        else:
            yield from getattr(worker, name)(*given, *more)

    return call


def in_batches(function: Any) -> Any:
    """A function of a key and its rows; by its annotations Spark knows that these come in batches."""
    batches = Iterator[pa.RecordBatch]
    function.__annotations__ = {"key": tuple[pa.Scalar, ...], "batches": batches, "return": batches}
    return function
