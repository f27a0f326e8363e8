"""The owner's key, which makes pseudonyms: a file that nobody else can read, and that is in no release."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from sfumato.errors import InputError, short

SHORTEST = 16
"""Bytes of a key at least."""

LONGEST = 1 << 16


def read_key(path: str, column: str) -> bytes:
    """The bytes of a key; an InputError says what is wrong with the file, and never what is in it."""
    where = f"The key file {short(Path(path).name)} of column {short(column)}"
    try:
        with Path(path).open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            key = file.read(LONGEST + 1)
    except FileNotFoundError:
        raise InputError(
            f"{where} does not exist; make one with: (umask 077; head -c 32 /dev/urandom > {Path(path).name}), keep it, "
            "and give it to nobody."
        ) from None
    except OSError as error:
        raise InputError(f"{where} cannot be read: {os.strerror(error.errno or 5)}.") from None
    if os.name == "posix" and mode & (stat.S_IRGRP | stat.S_IROTH):
        raise InputError(f"{where} can be read by others; allow only yourself (chmod 600 {Path(path).name}).")
    if not SHORTEST <= len(key) <= LONGEST:
        size = "shorter than" if len(key) < SHORTEST else "longer than"
        limit = SHORTEST if len(key) < SHORTEST else LONGEST
        raise InputError(f"{where} is {size} {limit:,} bytes; make another one (head -c 32 /dev/urandom).")
    return key
