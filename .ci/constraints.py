"""Pins with hashes, for ``make constraints``.

``hash`` copies a list of pins (name==version, one a line) from stdin to stdout, each with the SHA-256 of every file that
the registry offers for it: wheels for Linux and macOS and the supported versions of Python, and the sources. They come
from the registry that pip is set up for, by pip's own client; nothing is downloaded.

``check FOLDER`` reads the wheels in a folder and fails if one of them needs, on another system or a newer Python,
a package that is not among them: ``make`` would refuse it there, since it has no hash.
"""

from __future__ import annotations

import email
import itertools
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

from pip._internal.commands import create_command
from pip._internal.index.collector import parse_links
from pip._internal.models.link import Link
from pip._vendor.packaging.requirements import Requirement
from pip._vendor.packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
SYSTEMS = ("linux", "darwin")
_PLATFORM = re.compile(r"any|(many|musl)linux.*_(x86_64|aarch64)|macosx_.*")
_PYTHON = re.compile("py3|" + "|".join("cp" + version.replace(".", "") for version in PYTHONS))
_PIN = re.compile(r"([A-Za-z0-9._-]+)==(\S+)")


def add_hashes() -> None:
    client = create_command("download")
    options, _ = client.parse_args(["a-name-is-expected"])
    with client.main_context():
        collector = client._build_package_finder(options, client.get_default_session(options))._link_collector
        for line in sys.stdin:
            pin = _PIN.fullmatch(line.strip())
            print(line.rstrip() if pin is None else _hashed(*pin.groups(), collector))


def _hashed(name: str, version: str, collector: object) -> str:
    found = {
        link.hash
        for link in _links(name, collector)
        if link.hash_name == "sha256" and _is_of(link, name, version)
    }
    if not found:
        sys.exit(f"The registry tells no SHA-256 of {name} {version}.")
    return " \\\n".join([f"{name}=={version}", *(f"    --hash=sha256:{one}" for one in sorted(found))])


def _links(name: str, collector: object) -> Iterator[Link]:
    for place in collector.search_scope.get_index_urls_locations(name):
        page = collector.fetch_response(Link(place))
        if page is not None:
            yield from parse_links(page)


def _is_of(link: Link, name: str, version: str) -> bool:
    """Is it a file of this version that some supported Python on Linux or macOS could install?"""
    try:
        if not link.is_wheel:
            found, its = parse_sdist_filename(link.filename)
            return found == canonicalize_name(name) and str(its) == version
        found, its, _, tags = parse_wheel_filename(link.filename)
    except ValueError:  # of a form that nobody installs any more
        return False
    return found == canonicalize_name(name) and str(its) == version and any(map(_is_supported, tags))


def _is_supported(tag: object) -> bool:
    python = tag.abi == "abi3" or (_PYTHON.fullmatch(tag.interpreter) and not tag.abi.endswith("t"))
    return bool(python and _PLATFORM.fullmatch(tag.platform))


def check(folder: Path) -> None:
    wheels = sorted(folder.glob("*.whl"))
    pinned = {canonicalize_name(wheel.name.split("-")[0]) for wheel in wheels}
    for wheel, (system, python) in itertools.product(wheels, itertools.product(SYSTEMS, PYTHONS)):
        where = {
            "sys_platform": system,
            "python_version": python,
            "python_full_version": f"{python}.0",
            "extra": "",
        }
        where["platform_system"] = {"linux": "Linux", "darwin": "Darwin"}[system]
        for needed in _needs(wheel):
            if canonicalize_name(needed.name) not in pinned and (
                needed.marker is None or needed.marker.evaluate(where)
            ):
                sys.exit(
                    f"{wheel.name} needs {needed.name} on {system} with Python {python}, and it is not pinned."
                )


def _needs(wheel: Path) -> list[Requirement]:
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", name))
        metadata = email.message_from_bytes(archive.read(name))
    return [Requirement(line) for line in metadata.get_all("Requires-Dist", [])]


if __name__ == "__main__":
    if sys.argv[1] == "hash":
        add_hashes()
    else:
        check(Path(sys.argv[2]))
