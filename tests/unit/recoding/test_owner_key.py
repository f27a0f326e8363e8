"""The file of the owner's key: what is wrong with it is a sentence, and what is in it is never said."""

from __future__ import annotations

import os

import pytest

from sfumato.errors import InputError
from sfumato.recoding.owner_key import read_key

SECRET = b"0123456789abcdef-secret"


def write(path, content: bytes = SECRET, mode: int = 0o600) -> str:
    path.write_bytes(content)
    path.chmod(mode)
    return str(path)


def test_a_key_is_its_bytes(tmp_path):
    assert read_key(write(tmp_path / "k", SECRET + b"\n"), "id") == SECRET + b"\n"


def test_a_missing_file_is_told_with_how_to_make_one(tmp_path):
    with pytest.raises(
        InputError, match=r"'owner.key' of column 'id' does not exist; make one with: .*head -c 32"
    ):
        read_key(str(tmp_path / "owner.key"), "id")


@pytest.mark.skipif(os.name != "posix", reason="modes of files are those of POSIX")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644])
def test_a_file_that_others_can_read_is_refused(tmp_path, mode):
    with pytest.raises(
        InputError, match="can be read by others; allow only yourself \\(chmod 600 k\\)\\."
    ) as refused:
        read_key(write(tmp_path / "k", mode=mode), "id")
    assert "secret" not in str(refused.value).replace("secret key", "")


def test_a_short_key_is_refused_without_saying_it(tmp_path):
    with pytest.raises(InputError, match="is shorter than 16 bytes") as refused:
        read_key(write(tmp_path / "k", SECRET[:15]), "id")
    assert "0123" not in str(refused.value)


def test_what_is_no_file_or_far_too_long_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_key(str(tmp_path), "id")
    with pytest.raises(InputError, match="is longer than"):
        read_key(write(tmp_path / "k", bytes(1 << 17)), "id")
