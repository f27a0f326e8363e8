"""What processes that tests of Spark start have in common."""

from __future__ import annotations

import os
from pathlib import Path


def python_path() -> str:
    """Where such a process finds modules: what tests have made, and then where this process finds its own."""
    return os.pathsep.join([str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])])
