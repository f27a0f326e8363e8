"""How kernels are compiled: ``@kernel`` if Python calls them, ``@inner`` if only kernels do.

Compiled code is kept on disk between runs, in a folder named after a hash of all kernel sources. numba
itself looks only at the file of the function that is called and would go on using old callees; and it
writes beside the source, which a read-only installation forbids. NUMBA_CACHE_DIR, if set, is obeyed.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numba


@cache
def cache_folder() -> Path:
    """Where compiled kernels are kept: the user's cache, one folder per version of the sources.

    Where that cannot be written, a folder of the user's own among the temporary ones.
    """
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    users = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "sfumato"
    folder = Path(os.environ.get("NUMBA_CACHE_DIR") or users) / f"kernels-{digest.hexdigest()[:16]}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass
    return Path(tempfile.mkdtemp(prefix="sfumato-kernels-"))


def is_warm() -> bool:
    """Have the kernels been compiled on this machine before?"""
    return any(cache_folder().glob("**/*.nbi"))


config: Any = numba.config
config.CACHE_DIR = str(cache_folder())

njit: Any = numba.njit

kernel = njit(cache=True, nogil=True, error_model="numpy")
"""Arrays in, arrays out, without the interpreter's lock; a division by zero is the caller's business."""

inner = njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""Without the way in from Python, which takes longer to compile than most of them."""
