"""Lock files: whoever holds one is alone. Only plain files are opened, never what a link leads to, nor a pipe."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: two runs at once are then the owner's business
    fcntl = None  # type: ignore[assignment]

CAN_LOCK = fcntl is not None


@contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Wait until nobody else holds the lock file ``path``, which is made for the purpose and removed afterwards."""
    if not CAN_LOCK:
        yield
        return
    while True:
        descriptor = open_plain(path, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if not _is_at(descriptor, path):
                continue  # the one before us removed it when it was done
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
            return
        finally:
            os.close(descriptor)


def take(descriptor: int) -> bool:
    """Lock an open file, if nobody else holds it."""
    if not CAN_LOCK:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def open_plain(path: Path, flags: int = os.O_RDONLY) -> int:
    """Open a plain file. Links are not followed, and pipes and devices are an error at once: nobody waits for them."""
    flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    descriptor = os.open(path, flags, 0o600)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), str(path))
    return descriptor


def _is_at(descriptor: int, path: Path) -> bool:
    """Is the open file still the one of that name?"""
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


__all__ = ["CAN_LOCK", "hold_lock", "open_plain", "take"]
