"""What make installs is pinned, to the file."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PIN = re.compile(r"([a-z0-9.-]+)==(\S+)((?: \\\n    --hash=sha256:[0-9a-f]{64})*)\n")


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def sections() -> dict[str, dict[str, int]]:
    """The number of hashes by name, by section of constraints.txt."""
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    parts = re.split(r"^# (build|core|evaluate|dev|make)\n", text, flags=re.MULTILINE)
    found = {}
    for name, lines in zip(parts[1::2], parts[2::2], strict=True):
        pins = list(PIN.finditer(lines))
        assert PIN.sub("", lines).strip() == "", "nothing but pins"
        found[name] = {normalized(pin[1]): pin[3].count("--hash") for pin in pins}
    return found


def test_every_pin_has_hashes_and_stands_once():
    found = sections()
    assert list(found) == ["build", "core", "evaluate", "dev", "make"]
    names = [name for pins in found.values() for name in pins]
    assert len(names) == len(set(names))
    assert not [name for pins in found.values() for name, n_hashes in pins.items() if not n_hashes]
    assert found["core"]["numpy"] > 10, "for other systems and versions of Python, too"


def test_every_dependency_is_pinned_where_make_looks_for_it():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = sections()
    extras = project["optional-dependencies"]
    core = set(found["build"]) | set(found["core"])
    assert named(project["dependencies"], extras) <= core
    assert named(extras["evaluate"], extras) <= core | set(found["evaluate"])
    assert named(extras["dev"], extras) <= core | set(found["evaluate"]) | set(found["dev"])


def named(lines: list[str], extras: dict[str, list[str]]) -> set[str]:
    names: set[str] = set()
    for line in lines:
        if inner := re.fullmatch(r"sfumato\[(.*)\]", line):
            names |= {name for extra in inner[1].split(",") for name in named(extras[extra], extras)}
        else:
            name = re.match(r"[A-Za-z0-9_.-]+", line)
            assert name is not None
            names.add(normalized(name[0]))
    return names


def test_another_file_than_the_one_that_was_pinned_is_refused(tmp_path):
    (tmp_path / "thing-1-py3-none-any.whl").write_bytes(b"not what it was")
    (tmp_path / "pins").write_text(f"thing==1 --hash=sha256:{'0' * 64}\n")
    done = subprocess.run(
        [
            sys.executable, "-m", "pip", "install", "--no-index", "--find-links", tmp_path, "--require-hashes",
            "--target", tmp_path / "out", "-r", tmp_path / "pins",
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "DO NOT MATCH THE HASHES" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "is_wanted"),
    [
        ("numpy-2.4.6-cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl", True),
        ("numpy-2.4.6-cp314-cp314-macosx_14_0_arm64.whl", True),
        ("numpy-2.4.6-cp312-cp312-musllinux_1_2_aarch64.whl", True),
        ("numpy-2.4.6-cp39-abi3-macosx_11_0_x86_64.whl", True),
        ("numpy-2.4.6-py3-none-any.whl", True),
        ("numpy-2.4.6.tar.gz", True),
        ("numpy-2.4.6-cp310-cp310-manylinux_2_28_x86_64.whl", False),
        ("numpy-2.4.6-cp314-cp314t-manylinux_2_28_x86_64.whl", False),
        ("numpy-2.4.6-cp312-cp312-win_amd64.whl", False),
        ("numpy-2.4.5-py3-none-any.whl", False),
        ("numpy_doc-2.4.6-py3-none-any.whl", False),
        ("numpy-2.4.6.exe", False),
    ],
)
def test_files_that_a_supported_python_could_install_are_hashed(name, is_wanted):
    script = runpy.run_path(str(ROOT / ".ci" / "constraints.py"))
    link = script["Link"](f"https://example.org/{name}")
    assert script["_is_of"](link, "numpy", "2.4.6") is is_wanted
