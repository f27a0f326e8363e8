"""The folder of a release: its files, their hashes, and how it appears whole or not at all.

::

    out/
      release.csv or release.parquet   the rows
      certificate.json                 what is claimed of them, and the SHA-256 of what lies beside it
      policy.yaml                      the policy, complete in itself
      recoding.json (recoding.parquet) how further rows are recoded
      report.html                      for people

The folder is put together under a temporary name and renamed when it is complete and checked. Nothing in it
tells where or from which seed it was made; the certificate may tell the day, but not of a differentially private
release.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from sfumato.errors import InputError, TableError, number_of
from sfumato.table.files import exchange, rename_new
from sfumato.table.spill import Spill

CERTIFICATE = "certificate.json"
POLICY = "policy.yaml"
REPORT = "report.html"
RELEASES = {"csv": "release.csv", "parquet": "release.parquet"}
RECODINGS = ("recoding.json", "recoding.parquet")
CERTIFIED = (*RELEASES.values(), POLICY, *RECODINGS, REPORT)
"""The files whose SHA-256 the certificate may name, in the order in which it does."""


LITTER = (".DS_Store",)
"""What a desktop leaves in any folder that someone looks at."""


def sha256_of(path: Path) -> str:
    """SHA-256 of a file in hexadecimal digits; of a folder of parts, over lines of name and hash as sha256sum has them.

    >>> import tempfile
    >>> empty = Path(tempfile.mkdtemp(), "empty")
    >>> empty.touch()
    >>> sha256_of(empty)[:16], sha256_of(empty.parent)[:16]
    ('e3b0c44298fc1c14', 'a9e456cbcd4f490b')
    """
    if path.is_dir():
        lines = [f"{digest}  {name}\n" for name, digest in _hashes_of_parts(path)]
        return hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def older_sha256_of(path: Path) -> str:
    """What the first versions took for a folder of parts: the hash over the sorted hashes, whatever their names."""
    hashes = sorted(digest for _, digest in _hashes_of_parts(path))
    return hashlib.sha256("".join(hashes).encode("ascii")).hexdigest()


def _hashes_of_parts(folder: Path) -> list[tuple[str, str]]:
    parts = sorted(part for part in folder.rglob("*") if part.is_file())
    return [(part.relative_to(folder).as_posix(), sha256_of(part)) for part in parts]


def hashes_of(folder: Path, known: Mapping[str, str] | None = None) -> dict[str, str]:
    """SHA-256 of each file of a release that a certificate names, as they stand in the folder.

    Those that are ``known`` are taken as they are.
    """
    there = [name for name in CERTIFIED if (folder / name).exists()]
    return {name: (known or {}).get(name) or sha256_of(folder / name) for name in there}


def read_piece(folder: Path, name: str) -> bytes:
    """The bytes of one file of a release folder."""
    try:
        return (folder / name).read_bytes()
    except FileNotFoundError:
        where = f"{folder} has no {name}" if folder.is_dir() else f"There is no folder {folder}"
        raise InputError(f"{where}; is it a release folder?") from None
    except OSError as error:
        raise InputError(f"{folder / name} cannot be read: {_reason(error)}.") from None


def check_target(folder: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Raise unless a release may be written to ``folder``. Ask before the work, not after it."""
    try:
        _check_target(Path(folder), overwrite=overwrite)
    except OSError as error:
        raise InputError(f"{folder} cannot be written: {_reason(error)}.") from None


def _check_target(folder: Path, *, overwrite: bool) -> None:
    target = folder.resolve()
    check_outside(target.parent)
    if not target.exists():
        if not target.parent.is_dir():
            raise InputError(
                f"{folder} cannot be written: there is no folder {target.parent}; make it first."
            )
        return
    if not target.is_dir():
        raise InputError(f"{folder} cannot be written: it is a file; name a folder.")
    if not overwrite:
        raise InputError(
            f"The folder {folder} already exists; name another one, or allow it to be replaced (--overwrite)."
        )
    _check_replaceable(target, folder)


def _check_replaceable(found: Path, folder: Path) -> None:
    """Raise unless the folder ``found``, called ``folder``, is empty or a release and nothing else."""
    names = {path.name for path in found.iterdir()}
    if names and CERTIFICATE not in names:
        raise InputError(f"The folder {folder} is no release, so it is not overwritten; name another one.")
    foreign = names - {*CERTIFIED, CERTIFICATE, *LITTER}
    if foreign:
        files = number_of(len(foreign), "other file")
        raise InputError(
            f"The folder {folder} holds more than a release ({files}), "
            "so it is not overwritten; move them away, or name another folder."
        )


def check_outside(folder: Path) -> None:
    """Raise if ``folder`` is a release or lies in one: nothing but what its certificate names belongs there."""
    for each in (folder, *folder.resolve().parents):
        if (each / CERTIFICATE).exists() and (each / POLICY).exists():
            raise InputError(f"{each} is a release, and nothing else belongs there; give another --out.")


@contextmanager
def put_in_place(
    folder: str | os.PathLike[str], *, overwrite: bool, within: Path | None = None
) -> Iterator[Path]:
    """Yield a new folder; it takes its place on success, and is removed on any failure.

    It lies in a folder of temporary files beside ``folder``, so that the next run removes what a killed one left.
    """
    check_target(folder, overwrite=overwrite)
    target = Path(folder).resolve()  # a link stays a link
    with ExitStack() as stack:
        try:
            if within is None:
                _check_writable(target.parent)
                within = stack.enter_context(Spill(target)).folder
            temporary = within / f"release-{uuid.uuid4().hex[:12]}"
            stack.callback(_remove, temporary)
            temporary.mkdir()
            yield temporary
            _sync(temporary)
            _move(temporary, target, Path(folder), overwrite=overwrite)
            _sync_folder(target.parent)
        except TableError as error:
            raise TableError(str(error).replace(str(temporary), str(folder))) from None
        except OSError as error:
            raise InputError(f"{folder} cannot be written: {_reason(error)}.") from None


def _check_writable(folder: Path) -> None:
    if not os.access(folder, os.W_OK):
        raise PermissionError(errno.EACCES, "")


def _move(temporary: Path, target: Path, folder: Path, *, overwrite: bool) -> None:
    """Rename into place. What stood there before has the temporary name afterwards, and is removed with it.

    A folder that appeared since the work began is not replaced, and with ``overwrite`` only if it is a release. Folders
    are exchanged in one step where the system can, so that even a crash leaves the old release or the new one.
    Elsewhere there is a moment between two renames when a crash leaves both under other names; any failure short of a
    crash puts the old one back.
    """
    try:
        rename_new(temporary, target)
    except FileExistsError:
        if not overwrite:
            raise InputError(
                f"The folder {folder} appeared while this run was at work and stays as it is; nothing was written. "
                "Name another one, or allow it to be replaced (--overwrite)."
            ) from None
        _replace(temporary, target, folder)


def _replace(temporary: Path, target: Path, folder: Path) -> None:
    """Put a folder in the place of a release. What was there is looked at once it cannot change its name any more."""
    if not exchange(temporary, target):
        _swap(temporary, target, folder)
        return
    try:
        _check_replaceable(temporary, folder)
    except BaseException:
        exchange(temporary, target)
        raise


def _swap(temporary: Path, target: Path, folder: Path) -> None:
    aside = target.with_name(f".{target.name[:40]}.sfumato-{uuid.uuid4().hex[:12]}-old")
    try:
        target.rename(aside)
        _check_replaceable(aside, folder)
        rename_new(temporary, target)
    except BaseException:
        if aside.exists() and temporary.exists():
            rename_new(aside, target)
        raise
    finally:
        if not temporary.exists():
            _remove(aside)


def _remove(folder: Path) -> None:
    try:
        shutil.rmtree(folder, ignore_errors=True)
    except BaseException:  # Ctrl-C in the middle of it
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _sync(folder: Path) -> None:
    """Everything in the folder is on the disk before its name is."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
        else:
            _sync_folder(path)
    _sync_folder(folder)


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):  # Windows opens no folders
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _reason(error: OSError) -> str:
    return os.strerror(error.errno or errno.EIO)
