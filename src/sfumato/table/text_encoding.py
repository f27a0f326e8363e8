"""Text files in other encodings than UTF-8: recognized where that is safe, and read as UTF-8.

Western European text (latin-1, or cp1252, which has the same letters and a few signs more) is the one encoding
that is recognized: its bytes are hardly ever valid UTF-8. Anything else has to be named.
"""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO

from sfumato.errors import InputError, TableError, did_you_mean, notice

UTF8 = "utf-8"
WESTERN = "cp1252"
LATIN_1 = "iso8859-1"

COMMON = (UTF8, "latin-1", WESTERN, "utf-16", "iso-8859-15", "cp850", "cp1250", "mac-roman")
"""Encodings that are suggested for a name that none has."""

NAME_IT = "name its encoding (--encoding), or save the table as UTF-8"
"""What can be done about text that is not UTF-8."""

BLOCK_BYTES = 1 << 20
MOST_ACCIDENTS = 0.1
"""A text is no UTF-8 if it has at most so many letters of valid UTF-8 for each fault: they are accidents then."""

_CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_LETTERS = re.compile(r"[^\x00-\x7f\ufffd]")


def check_encoding(name: str) -> str:
    """The codec of a name; an error with a suggestion if there is none of text.

    Text that is said to be latin-1 is read as cp1252, as browsers do: where they differ, latin-1 has control
    characters that no table means, and cp1252 has quotes, dashes and the euro sign.

    >>> check_encoding("UTF8"), check_encoding("Latin1")
    ('utf-8', 'cp1252')
    """
    try:
        codec = codecs.lookup(name)
        is_text = isinstance("".encode(codec.name), bytes)
    except (LookupError, UnicodeError, TypeError, ValueError):
        is_text = False
    if not is_text:
        hint = did_you_mean(str(name), COMMON) or " Common ones are utf-8, latin-1 and cp1252."
        raise InputError(f"There is no text encoding {name!r}.{hint}")
    if codec.name == LATIN_1:
        return WESTERN
    return UTF8 if codec.name in ("utf-8-sig", "ascii") else codec.name


def is_western(blocks: Iterable[bytes]) -> bool:
    r"""Whether a text is no UTF-8, and reads well as Western European.

    >>> is_western([b"M\xfcller\n"]), is_western(["Müller\n".encode()]), is_western([b"\x81\n"])
    (True, False, False)
    """
    decoder = codecs.getincrementaldecoder(UTF8)("replace")
    n_letters = n_faults = 0
    for block in blocks:
        if _CONTROLS.search(block):
            return False
        if block.isascii() and not decoder.getstate()[0]:
            continue
        try:
            block.decode(WESTERN)
        except UnicodeDecodeError:
            return False
        text = decoder.decode(block)
        n_faults += text.count("\ufffd")
        n_letters += len(_LETTERS.findall(text))
    n_faults += decoder.decode(b"", final=True).count("\ufffd")
    return n_faults > 0 and n_letters <= MOST_ACCIDENTS * n_faults


def is_utf8(head: bytes) -> bool:
    """Whether a text begins as UTF-8; its last character may be cut off."""
    try:
        codecs.getincrementaldecoder(UTF8)().decode(head)
    except UnicodeDecodeError:
        return False
    return True


def notice_western(where: str) -> None:
    """Say that a file was taken for Western European text."""
    notice(
        f"{where} is not UTF-8; it is read as {WESTERN} (Western European, latin-1). "
        "If that is wrong, name its encoding (--encoding)."
    )


class Utf8Stream(io.RawIOBase):
    """The text of a stream as UTF-8, whatever encoding it has.

    A byte that is none in that encoding ends the reading with a sentence, unless ``any_text`` will do: it becomes
    the replacement character then, so that nobody learns of it.
    """

    def __init__(self, stream: Any, encoding: str, where: str, *, any_text: bool) -> None:
        self._stream, self._encoding, self._where = stream, encoding, where
        self._decoder = codecs.getincrementaldecoder(encoding)("replace" if any_text else "strict")
        self._ready = b""
        self._n_lines = 1
        self._is_first, self._has_ended = True, False

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """At most ``size`` bytes; none at the end."""
        while not self._ready and not self._has_ended:
            self._ready = self._next()
        out, self._ready = self._ready[:size], self._ready[size:]
        return out

    def _next(self) -> bytes:
        block = self._stream.read(BLOCK_BYTES)
        self._has_ended = not block
        try:
            text = self._decoder.decode(block, final=self._has_ended)
        except UnicodeDecodeError as error:
            line = self._n_lines + bytes(error.object[: error.start]).count(b"\n")
            raise TableError(
                f"{self._where} is no {self._encoding} text in line {line:,}; {NAME_IT}."
            ) from None
        self._n_lines += block.count(b"\n")
        if self._is_first and text:
            text, self._is_first = text.removeprefix("\ufeff"), False
        return text.encode(UTF8, "replace")  # half a character of UTF-16 is none


def blocks_of(
    open_bytes: Callable[[], BinaryIO], unzip: Callable[[BinaryIO], tuple[bytes, Any]]
) -> Iterator[bytes]:
    """The bytes of a text, block by block, from its beginning."""
    with open_bytes() as file:
        head, rest = unzip(file)
        yield head
        while block := rest.read(BLOCK_BYTES):
            yield bytes(block)
