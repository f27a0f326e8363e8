"""What processes that tests of Spark start have in common."""

from __future__ import annotations

import os
from pathlib import Path

from sfumato.engines.spark import jobs


def python_path() -> str:
    """Where such a process finds modules: what tests have made, and then where this process finds its own."""
    return os.pathsep.join([str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])])


def cut_small_tables() -> None:
    """Let this process use a task for each slot of Spark, however few rows there are."""
    jobs.LEAST_ROWS = 1
