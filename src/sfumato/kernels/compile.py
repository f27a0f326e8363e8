"""How kernels are compiled: ``@kernel`` on those that Python calls, ``@inner`` on those that only kernels call.

Compiled code is kept on disk between runs, in a folder named after a hash of all kernel sources. numba
itself looks only at the file of the function that is called and would go on using old callees; and it
writes beside the source, which a read-only installation forbids. NUMBA_CACHE_DIR, if set, is obeyed.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numba
from numba import njit


def cache_folder() -> Path:
    """Where compiled kernels are kept: the user's cache, one folder per version of the sources."""
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    base = (
        os.environ.get("NUMBA_CACHE_DIR")
        or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sfumato"
    )
    return Path(base) / f"kernels-{digest.hexdigest()[:16]}"


def is_warm() -> bool:
    """Have the kernels been compiled on this machine before?"""
    return any(cache_folder().glob("**/*.nbi"))


numba.config.CACHE_DIR = str(cache_folder())

kernel = njit(cache=True, nogil=True, error_model="numpy")
"""Arrays in, arrays out, without the interpreter's lock; a division by zero is the caller's business."""

inner = njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""A kernel that only kernels call: without the way in from Python, which takes longer to compile than most of them."""
