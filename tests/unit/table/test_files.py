"""Renaming that replaces nothing, by the system's own call and without one."""

from __future__ import annotations

import errno

import pytest

from sfumato.table import files as table_files
from sfumato.table.files import exchange, rename_new


@pytest.fixture(params=["the system's call", "no such call", "a file system that cannot"])
def way(request, monkeypatch):
    if request.param == "no such call":
        monkeypatch.setattr(table_files.ctypes, "CDLL", lambda *_, **__: object())
    elif request.param == "a file system that cannot":
        monkeypatch.setattr(table_files, "_rename", lambda *_: errno.EINVAL)
    return request.param


def make(path, kind, text="mine"):
    if kind == "folder":
        path.mkdir()
        (path / "inside").write_text(text)
    else:
        path.write_text(text)


def text_of(path):
    return (path / "inside" if path.is_dir() else path).read_text()


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_free_name_is_taken(tmp_path, way, kind):
    make(tmp_path / "a", kind)
    rename_new(tmp_path / "a", tmp_path / "b")
    assert [path.name for path in tmp_path.iterdir()] == ["b"]
    assert text_of(tmp_path / "b") == "mine"


@pytest.mark.parametrize("kind", ["file", "folder"])
@pytest.mark.parametrize("other", ["file", "folder", "empty folder", "link to nowhere"])
def test_a_name_that_is_taken_is_left_alone(tmp_path, way, kind, other):
    make(tmp_path / "a", kind)
    if other == "empty folder":
        (tmp_path / "b").mkdir()
    elif other == "link to nowhere":
        (tmp_path / "b").symlink_to("nowhere")
    else:
        make(tmp_path / "b", other, "theirs")
    with pytest.raises(FileExistsError):
        rename_new(tmp_path / "a", tmp_path / "b")
    assert text_of(tmp_path / "a") == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]
    if other in ("file", "folder"):
        assert text_of(tmp_path / "b") == "theirs"


def test_a_folder_that_is_filled_after_it_was_claimed_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(table_files, "_rename", lambda *_: errno.ENOSYS)
    make(tmp_path / "a", "folder")
    mkdir = type(tmp_path).mkdir

    def fill(self, *arguments, **options):
        mkdir(self, *arguments, **options)
        (self / "inside").write_text("theirs")

    monkeypatch.setattr(type(tmp_path), "mkdir", fill)
    with pytest.raises(FileExistsError):
        rename_new(tmp_path / "a", tmp_path / "b")
    assert (text_of(tmp_path / "a"), text_of(tmp_path / "b")) == ("mine", "theirs")


def test_other_errors_stay_what_they_are(tmp_path, way):
    make(tmp_path / "a", "file")
    with pytest.raises(FileNotFoundError):
        rename_new(tmp_path / "a", tmp_path / "nowhere" / "b")
    assert text_of(tmp_path / "a") == "mine"


def test_names_are_exchanged_in_one_step_where_the_system_can(tmp_path):
    make(tmp_path / "a", "folder", "from a")
    make(tmp_path / "b", "folder", "from b")
    if not exchange(tmp_path / "a", tmp_path / "b"):
        pytest.skip("this system or file system exchanges no folders")
    assert (text_of(tmp_path / "a"), text_of(tmp_path / "b")) == ("from b", "from a")
    assert exchange(tmp_path / "a", tmp_path / "nowhere") is False


def test_a_system_without_exchange_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(table_files.ctypes, "CDLL", lambda *_, **__: object())
    assert exchange(tmp_path, tmp_path / "b") is False
