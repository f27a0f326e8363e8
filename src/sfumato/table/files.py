"""Files that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sfumato.errors import TableError
from sfumato.table.renames import rename_new


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
    return target.with_name(f".sfumato-{uuid.uuid4().hex}.tmp")


def sync_file(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())


@contextmanager
def while_writing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Every way in which writing fails, a full disk included, as one sentence."""
    try:
        yield
    except OSError as error:
        raise TableError(f"{path} cannot be written: {os.strerror(error.errno or errno.EIO)}.") from None
