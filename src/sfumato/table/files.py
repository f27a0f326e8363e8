"""Files that appear whole or not at all, names that change in one step, and locks.

``os.rename`` replaces files and empty folders without a word. Linux (``renameat2``) and macOS (``renamex_np``)
can refuse instead, and exchange two names. Elsewhere, and on file systems that cannot, names are claimed by ways
that fail if something is there already.

Whoever holds a lock file is alone. Only plain files are opened, never what a link leads to, nor a pipe.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sfumato.errors import TableError


def check_file_target(path: str | os.PathLike[str], *, overwrite: bool = True) -> Path:
    """Where ``path`` leads; raise if no file can be there. Ask before long work."""
    target = Path(path).resolve()  # a link stays a link
    if target.exists() and not target.is_file():
        raise TableError(f"{path} cannot be written: it is not a file.")
    if target.exists() and not overwrite:
        raise _in_the_way(path)
    if not target.parent.is_dir():
        raise TableError(f"{path} cannot be written: there is no folder {target.parent}; make it first.")
    return target


def _in_the_way(path: str | os.PathLike[str]) -> TableError:
    return TableError(f"{path} already exists; name another file, or allow it to be replaced (--overwrite).")


def take_place(temporary: Path, target: Path, path: str | os.PathLike[str], *, overwrite: bool) -> None:
    """Give a complete file its name. Without ``overwrite`` one that appeared meanwhile stays as it is."""
    if overwrite:
        temporary.replace(target)
        return
    try:
        rename_new(temporary, target)
    except FileExistsError:
        raise _in_the_way(path) from None


@contextmanager
def replace_atomically(path: str | os.PathLike[str], *, overwrite: bool = True) -> Iterator[Path]:
    """Yield a temporary name beside ``path``; rename it on success, remove it on any failure or Ctrl-C.

    A file that is there already is replaced, or refused without ``overwrite``.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with replace_atomically(folder / "a.txt") as temporary:
    ...     _ = temporary.write_text("whole")
    >>> [path.name for path in folder.iterdir()]
    ['a.txt']
    """
    target = check_file_target(path, overwrite=overwrite)
    temporary = place_beside(target)
    try:
        with while_writing(path):
            yield temporary
            with temporary.open("rb+") as file:
                sync_file(file)
            take_place(temporary, target, path, overwrite=overwrite)
    finally:
        temporary.unlink(missing_ok=True)


def place_beside(target: Path) -> Path:
    """A temporary name in the same folder."""
    return target.with_name(f".sfumato-{uuid.uuid4().hex}.tmp")


def sync_file(file: Any) -> None:
    """Wait until what was written is on the disk."""
    file.flush()
    os.fsync(file.fileno())


@contextmanager
def while_writing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Every way in which writing fails, a full disk included, as one sentence."""
    try:
        yield
    except OSError as error:
        raise TableError(f"{path} cannot be written: {os.strerror(error.errno or errno.EIO)}.") from None


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


def try_lock(descriptor: int) -> bool:
    """Lock an open file unless somebody else holds it; returns whether it is locked now."""
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
