"""Renaming that the operating system does in one step: never over something else, or as an exchange.

``os.rename`` replaces files and empty folders without a word. Linux (``renameat2``) and macOS (``renamex_np``)
can refuse instead, and exchange two names. Elsewhere, and on file systems that cannot, names are claimed by ways
that fail if something is there already.
"""

from __future__ import annotations

import ctypes
import errno
import os
from contextlib import suppress
from pathlib import Path

_AT_FDCWD = -100
_LINUX = {"new": 1, "exchange": 2}
_MACOS = {"exchange": 2, "new": 4}
"""The flags of renameat2 and of renamex_np."""

_UNABLE = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM)
"""What systems, file systems and the sandboxes of containers answer if they do not know the flag."""


def rename_new(source: Path, target: Path) -> None:
    """Rename a file or folder; raises FileExistsError if anything has the name ``target``."""
    error = _rename("new", source, target)
    if error == 0:
        return
    if error not in _UNABLE:
        raise OSError(error, os.strerror(error), str(target))
    if os.name == "nt":
        source.rename(target)  # which replaces nothing there
    else:
        _claim(source, target)


def exchange(one: Path, other: Path) -> bool:
    """Exchange two names in one step; False where the system or the file system cannot."""
    return _rename("exchange", one, other) == 0


def _claim(source: Path, target: Path) -> None:
    """Make an empty file or folder of that name, which fails if there is anything, and replace it."""
    is_folder = source.is_dir()
    if is_folder:
        target.mkdir()
    else:
        target.touch(exist_ok=False)
    try:
        source.replace(target)  # fails if the folder was filled since
    except BaseException as error:
        with suppress(OSError):
            if is_folder:
                target.rmdir()
            else:
                target.unlink()
        if isinstance(error, OSError) and target.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target)) from None
        raise


def _rename(how: str, source: Path, target: Path) -> int:
    """0, or the number of the error; ENOSYS where the system has no such call."""
    try:
        system = ctypes.CDLL(None, use_errno=True)
    except (OSError, TypeError):  # Windows
        return errno.ENOSYS
    names = os.fsencode(source), os.fsencode(target)
    if hasattr(system, "renameat2"):
        done = system.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], ctypes.c_uint(_LINUX[how]))
    elif hasattr(system, "renamex_np"):
        done = system.renamex_np(*names, ctypes.c_uint(_MACOS[how]))
    else:
        return errno.ENOSYS
    return 0 if done == 0 else ctypes.get_errno()


__all__ = ["exchange", "rename_new"]
