"""The release folder: whole or not at all, the same bytes each time, a certificate that is read strictly."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sfumato.errors import InputError, InternalError, TableError, VerificationFailed
from sfumato.policy.document import Policy
from sfumato.policy.options.risk_utility import Absolute
from sfumato.publishing import publish
from sfumato.release import folder as folder_module
from sfumato.release import release as module
from sfumato.release.certificate import CellsClaim, Certificate, Claim, Claims, UtilityClaim, document
from sfumato.release.certificate import certificate as certificate_module
from sfumato.release.folder import check_target, hashes_of, sha256_of
from sfumato.release.release import Release
from sfumato.table.spill import Spill
from sfumato.table.stored import FiledRows
from sfumato.table.write import write_table
from sfumato.verify.folder import verify_folder

POLICY = Policy.parse("""
attributes:
  id: {role: identifier}
  age: {role: quasi-identifier, type: number, bounds: [0, 110]}
  city: {role: quasi-identifier, hierarchy: {tree: {"*": {Süd: [Ulm, Köln]}}}}
  disease: {role: sensitive}
require: [k-anonymity: 2]
""")
TABLE = pa.table(
    {"age": ["[0, 50]", "[0, 50]", None, None], "city": ["Süd"] * 4, "disease": ["flu", "", "cold", "flu"]}
)
CLAIMS = Claims(rows=4, groups=2, requirements=(Claim({"k-anonymity": 2}, "smallest group", 2.0),))


class FakeRecoding:
    def __init__(self, *names, error=None):
        self.names, self.error = names, error

    def write(self, folder):
        for name in self.names:
            (folder / name).write_text("{}")
        if self.error:
            raise self.error


def a_release(**changes) -> Release:
    certificate, recoding = Certificate.of(POLICY, CLAIMS), FakeRecoding("recoding.json")
    whole = Release(TABLE, certificate, POLICY, recoding, format="csv", report="<p>é")
    return replace(whole, **changes)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# ---- the folder ------------------------------------------------------------------------------------


def test_a_release_folder_holds_its_pieces_and_nothing_else(tmp_path):
    a_release().write(tmp_path / "out")
    expected = ["certificate.json", "policy.yaml", "recoding.json", "release.csv", "report.html"]
    assert names(tmp_path / "out") == expected
    assert names(tmp_path) == ["out"]


def test_the_certificate_names_the_hash_of_every_piece_but_itself(tmp_path):
    written = a_release().write(tmp_path / "out")
    on_disk = Certificate.from_json((tmp_path / "out" / "certificate.json").read_bytes())
    assert on_disk == written
    assert list(written.claims.sha256) == ["release.csv", "policy.yaml", "recoding.json", "report.html"]
    assert written.claims.sha256 == hashes_of(tmp_path / "out")
    assert a_release().certificate.claims.sha256 == {}


@pytest.mark.parametrize("format_", ["csv", "parquet"])
def test_the_same_release_is_the_same_bytes(tmp_path, format_):
    a_release(format=format_).write(tmp_path / "one")
    a_release(format=format_).write(tmp_path / "two")
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


@pytest.mark.parametrize("format_", ["csv", "parquet"])
def test_a_release_reads_back(tmp_path, format_):
    written = a_release(format=format_, recoding=None).write(tmp_path / "out")
    back = Release.read(tmp_path / "out")
    assert (back.certificate, back.policy, back.format, back.report) == (written, POLICY, format_, "<p>é")
    assert back.recoding is None
    assert back.table.column("age").to_pylist() == ["[0, 50]", "[0, 50]", None, None]
    assert back.table.column("disease").to_pylist()[0] == "flu"


def test_an_empty_cell_of_a_csv_release_reads_as_missing(tmp_path):
    a_release(recoding=None).write(tmp_path / "out")
    assert Release.read(tmp_path / "out").table.column("disease").to_pylist() == ["flu", None, "cold", "flu"]


def test_a_release_says_in_one_line_what_it_is():
    assert repr(a_release()) == "<Release of 4 rows in 2 groups: 2-anonymity>"


def test_what_is_no_release_is_not_read(tmp_path):
    with pytest.raises(InputError, match=r"There is no folder .*nowhere"):
        Release.read(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"has no certificate.json; is it a release folder\?"):
        Release.read(tmp_path)
    a_release().write(tmp_path / "out")
    (tmp_path / "out" / "release.csv").unlink()
    with pytest.raises(InputError, match="holds no rows"):
        Release.read(tmp_path / "out")
    (tmp_path / "out" / "certificate.json").unlink()
    (tmp_path / "out" / "certificate.json").mkdir()
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        Release.read(tmp_path / "out")


def test_the_table_is_of_the_kind_that_came_in():
    assert isinstance(a_release(kind="pandas").table, pd.DataFrame)
    assert isinstance(a_release(kind="polars").table, pl.DataFrame)
    assert a_release(kind="csv").table.equals(TABLE)
    assert list(a_release(kind="pandas").table["city"]) == ["Süd"] * 4


def test_a_report_can_be_added_and_no_cell_shows_in_the_repr():
    release = a_release(report=None).with_report("<p>")
    assert release.report == "<p>"
    assert "flu" not in repr(release)


def test_a_release_that_brings_its_own_check_is_judged_by_it(tmp_path):
    def check(folder):
        raise VerificationFailed(["It is false."])

    with pytest.raises(VerificationFailed):
        a_release(check=check).write(tmp_path / "out")
    a_release(check=check).write(tmp_path / "out", check=lambda folder: None)
    assert names(tmp_path) == ["out"]


def test_an_unknown_format_is_refused():
    with pytest.raises(InputError, match="csv or parquet"):
        a_release(format="xlsx")


def test_a_recoding_that_writes_what_does_not_belong_is_a_bug_of_ours(tmp_path):
    with pytest.raises(InternalError, match="does not belong"):
        a_release(recoding=FakeRecoding("raw.csv")).write(tmp_path / "out")
    assert names(tmp_path) == []


# ---- what stands in the way ------------------------------------------------------------------------


def test_an_existing_folder_is_refused_and_left_alone(tmp_path):
    a_release().write(tmp_path / "out")
    before = contents(tmp_path / "out")
    with pytest.raises(InputError, match=r"out already exists; name another one, or allow it to be replaced"):
        a_release(report="other").write(tmp_path / "out")
    assert contents(tmp_path / "out") == before
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="already exists"):
        check_target(tmp_path / "empty")


@pytest.mark.parametrize("can_exchange", [True, False])
def test_an_earlier_release_is_replaced_when_that_is_allowed(tmp_path, monkeypatch, can_exchange):
    if not can_exchange:
        monkeypatch.setattr(folder_module, "exchange", lambda one, other: False)
    a_release(format="parquet").write(tmp_path / "out")
    a_release().write(tmp_path / "out", overwrite=True)
    assert "release.csv" in names(tmp_path / "out")
    assert "release.parquet" not in names(tmp_path / "out")
    assert names(tmp_path) == ["out"]


def test_an_empty_folder_is_replaced_when_that_is_allowed(tmp_path):
    (tmp_path / "out").mkdir()
    a_release().write(tmp_path / "out", overwrite=True)
    assert "certificate.json" in names(tmp_path / "out")
    assert names(tmp_path) == ["out"]


def test_a_folder_that_is_no_release_is_never_overwritten(tmp_path):
    (tmp_path / "thesis.doc").write_text("years of work")
    with pytest.raises(InputError, match="is no release, so it is not overwritten"):
        a_release().write(tmp_path, overwrite=True)
    assert names(tmp_path) == ["thesis.doc"]


def test_a_release_with_someone_elses_files_in_it_is_never_overwritten(tmp_path):
    a_release().write(tmp_path / "out")
    (tmp_path / "out" / ".DS_Store").touch()
    check_target(tmp_path / "out", overwrite=True)
    for name in ("notes.txt", ".git"):
        (tmp_path / "out" / name).write_text("mine")
        with pytest.raises(InputError, match=r"more than a release \(1 other file\)"):
            a_release().write(tmp_path / "out", overwrite=True)
        assert (tmp_path / "out" / name).read_text() == "mine"
        (tmp_path / "out" / name).unlink()


def test_a_file_in_the_way_is_refused(tmp_path):
    (tmp_path / "out").touch()
    with pytest.raises(InputError, match="it is a file"):
        a_release().write(tmp_path / "out", overwrite=True)


def test_a_folder_within_no_folder_is_refused(tmp_path):
    with pytest.raises(InputError, match="make it first"):
        a_release().write(tmp_path / "no" / "out")
    assert names(tmp_path) == []


def test_a_path_that_cannot_be_one_is_refused_in_a_sentence(tmp_path):
    with pytest.raises(InputError, match="cannot be written: File name too long"):
        check_target(tmp_path / ("x" * 300))


def test_a_link_to_a_folder_stays_a_link(tmp_path):
    a_release(format="parquet").write(tmp_path / "real")
    (tmp_path / "link").symlink_to("real")
    a_release().write(tmp_path / "link", overwrite=True)
    assert (tmp_path / "link").is_symlink()
    assert "release.csv" in names(tmp_path / "real")


def test_a_long_name_is_a_name(tmp_path):
    a_release().write(tmp_path / ("é" * 120))
    assert names(tmp_path) == ["é" * 120]


# ---- whole or not at all ---------------------------------------------------------------------------


def test_the_check_sees_the_complete_folder_before_it_has_its_name(tmp_path):
    seen = []

    def check(folder):
        seen.append((folder.parent.parent, names(folder), (tmp_path / "out").exists()))

    a_release().write(tmp_path / "out", check=check)
    assert seen == [(tmp_path, names(tmp_path / "out"), False)]


@pytest.mark.parametrize(
    "error", [VerificationFailed(["It is false."]), KeyboardInterrupt(), InternalError("bug")]
)
def test_a_failing_check_or_ctrl_c_leaves_nothing_behind_and_the_old_release_as_it_was(tmp_path, error):
    def check(folder):
        raise error

    with pytest.raises(type(error)):
        a_release().write(tmp_path / "out", check=check)
    assert names(tmp_path) == []
    a_release().write(tmp_path / "out")
    before = contents(tmp_path / "out")
    with pytest.raises(type(error)):
        a_release(report="other").write(tmp_path / "out", overwrite=True, check=check)
    assert contents(tmp_path / "out") == before
    assert names(tmp_path) == ["out"]


def test_a_full_disk_is_one_sentence_and_leaves_nothing_behind(tmp_path):
    full = FakeRecoding("recoding.json", error=OSError(errno.ENOSPC, "x"))
    with pytest.raises(InputError, match=r"out cannot be written: No space left on device\.$"):
        a_release(recoding=full).write(tmp_path / "out")
    assert names(tmp_path) == []


def test_an_error_about_the_rows_names_the_folder_that_was_asked_for(tmp_path, monkeypatch):
    def fail(table, path):
        raise TableError(f"{path} cannot be written: No space left on device.")

    monkeypatch.setattr(module, "write_table", fail)
    with pytest.raises(TableError) as caught:
        a_release().write(tmp_path / "out")
    assert str(caught.value).startswith(f"{tmp_path / 'out' / 'release.csv'} cannot be written")
    assert names(tmp_path) == []


@pytest.mark.parametrize("error", [OSError(errno.EIO, "x"), KeyboardInterrupt()])
def test_a_failure_between_the_two_renames_puts_the_old_release_back(tmp_path, monkeypatch, error):
    a_release().write(tmp_path / "out")
    before = contents(tmp_path / "out")
    rename, renamed = folder_module.rename_new, []

    def fail_on_the_second(source, target):
        renamed.append(target)
        if len(renamed) == 2:
            raise error
        return rename(source, target)

    monkeypatch.setattr(folder_module, "exchange", lambda one, other: False)
    monkeypatch.setattr(folder_module, "rename_new", fail_on_the_second)
    with pytest.raises((InputError, KeyboardInterrupt)):
        a_release(report="other").write(tmp_path / "out", overwrite=True)
    assert contents(tmp_path / "out") == before
    assert names(tmp_path) == ["out"]


def test_ctrl_c_while_the_old_release_is_removed_does_not_leave_half_of_it(tmp_path, monkeypatch):
    a_release().write(tmp_path / "out")
    rmtree, calls = folder_module.shutil.rmtree, []

    def interrupted(folder, **options):
        calls.append(folder)
        if len(calls) == 1:
            raise KeyboardInterrupt
        rmtree(folder, **options)

    monkeypatch.setattr(folder_module.shutil, "rmtree", interrupted)
    with pytest.raises(KeyboardInterrupt):
        a_release(report="new").write(tmp_path / "out", overwrite=True)
    assert names(tmp_path) == ["out"]
    assert (tmp_path / "out" / "report.html").read_text() == "new"


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="asks Linux which file is synced")
def test_everything_is_on_the_disk_before_the_name_is(tmp_path, monkeypatch):
    synced, rename, fsync = [], folder_module.rename_new, os.fsync

    def remember_sync(descriptor):
        synced.append(os.path.realpath(f"/proc/self/fd/{descriptor}"))
        fsync(descriptor)

    def remember_rename(source, target):
        synced.append("rename")
        return rename(source, target)

    monkeypatch.setattr(folder_module.os, "fsync", remember_sync)
    monkeypatch.setattr(folder_module, "rename_new", remember_rename)
    a_release().write(tmp_path / "out")
    last = synced.index("rename")
    before = {Path(path).name for path in synced[:last]}
    assert set(names(tmp_path / "out")) <= before
    assert synced[-1] == str(tmp_path)


# ---- what appears while a run is at work -----------------------------------------------------------


def without_system_calls(monkeypatch):
    """As where neither Linux nor macOS renames."""
    monkeypatch.setattr("sfumato.table.files.ctypes.CDLL", lambda *_, **__: object())


@pytest.mark.parametrize("is_linux", [True, False])
@pytest.mark.parametrize("is_filled", [True, False])
def test_a_folder_that_appears_meanwhile_is_left_alone(tmp_path, monkeypatch, is_linux, is_filled):
    if not is_linux:
        without_system_calls(monkeypatch)

    def appear(_folder):
        (tmp_path / "out").mkdir()
        if is_filled:
            (tmp_path / "out" / "thesis.doc").write_text("years of work")

    with pytest.raises(InputError, match=r"out appeared while this run was at work and stays as it is"):
        a_release().write(tmp_path / "out", check=appear)
    assert names(tmp_path) == ["out"]
    assert names(tmp_path / "out") == ["thesis.doc"] * is_filled


@pytest.mark.parametrize("is_linux", [True, False])
@pytest.mark.parametrize("began_with", ["nothing", "a release"])
def test_overwrite_looks_again_at_what_it_replaces(tmp_path, monkeypatch, is_linux, began_with):
    if not is_linux:
        without_system_calls(monkeypatch)
    if began_with == "a release":
        a_release().write(tmp_path / "out")

    def appear(_folder):
        if began_with == "a release":
            (tmp_path / "out").rename(tmp_path / "moved")
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "thesis.doc").write_text("years of work")

    with pytest.raises(InputError, match="is no release, so it is not overwritten"):
        a_release().write(tmp_path / "out", overwrite=True, check=appear)
    assert names(tmp_path) == ["moved", "out"][began_with == "nothing" :]
    assert names(tmp_path / "out") == ["thesis.doc"]


@pytest.mark.parametrize("is_linux", [True, False])
def test_a_release_that_appears_meanwhile_is_replaced_when_that_is_allowed(tmp_path, monkeypatch, is_linux):
    if not is_linux:
        without_system_calls(monkeypatch)
    new = a_release(report="new")
    new.write(tmp_path / "out", overwrite=True, check=lambda _: a_release().write(tmp_path / "out"))
    assert (tmp_path / "out" / "report.html").read_text() == "new"
    assert names(tmp_path) == ["out"]


def test_nothing_is_published_inside_a_release(tmp_path):
    a_release().write(tmp_path / "out")
    before = contents(tmp_path / "out")
    for inside in ("inner", "no/inner", "../out/inner"):
        with pytest.raises(InputError, match="out is a release, and nothing else belongs there"):
            a_release().write(tmp_path / "out" / inside)
    assert contents(tmp_path / "out") == before


# ---- hashes ----------------------------------------------------------------------------------------


# ---- rows in a file --------------------------------------------------------------------------------


def a_filed_release(folder: Path, format_="csv", **changes) -> Release:
    path = folder / f"some-rows.{format_}"
    write_table(TABLE, path)
    return a_release(rows=FiledRows(path, format_), format=format_, **changes)


@pytest.mark.parametrize("format_", ["csv", "parquet"])
def test_rows_in_a_file_are_released_as_rows_in_memory_are(tmp_path, format_):
    (tmp_path / "rows").mkdir()
    release = a_filed_release(tmp_path / "rows", format_, recoding=None)
    release.write(tmp_path / "filed")
    a_release(format=format_, recoding=None).write(tmp_path / "held")
    assert contents(tmp_path / "filed") == contents(tmp_path / "held")
    assert release.rows.path.exists()  # somebody else's: it was copied
    assert release.rows.n_rows == 4
    assert release.table.equals(Release.read(tmp_path / "held").table)
    assert str(release) == str(a_release())


def test_rows_in_a_spill_folder_are_taken_along(tmp_path):
    with Spill(tmp_path / "out") as spill:
        release = a_filed_release(spill.folder)
        inode = release.rows.path.stat().st_ino
        release.write(tmp_path / "out", within=spill.folder)
    assert release.rows.path == tmp_path / "out" / "release.csv"
    assert release.rows.path.stat().st_ino == inode
    assert names(tmp_path) == ["out"]
    assert release.table.num_rows == 4


def test_rows_in_a_spill_folder_survive_a_check_that_fails(tmp_path):
    def check(_folder):
        raise VerificationFailed(["It is false."])

    with Spill(tmp_path / "out") as spill:
        release = a_filed_release(spill.folder)
        with pytest.raises(VerificationFailed):
            release.write(tmp_path / "out", within=spill.folder, check=check)
        assert release.rows.path.parent == spill.folder
        assert release.table.num_rows == 4
    assert names(tmp_path) == []


def test_a_hash_that_is_known_is_not_computed_again_but_must_be_right(tmp_path):
    release = a_filed_release(tmp_path)
    release.rows.sha256 = sha256_of(release.rows.path)
    certificate = release.write(tmp_path / "out")
    assert certificate.claims.sha256["release.csv"] == sha256_of(tmp_path / "out" / "release.csv")
    release.rows.sha256 = "0" * 64
    release.write(tmp_path / "forged")
    assert "its SHA-256 differs" in str(verify_folder(tmp_path / "forged").failures[0])


def test_a_file_of_one_format_is_no_release_of_another(tmp_path):
    with pytest.raises(InputError, match="in a file already, as csv"):
        replace(a_filed_release(tmp_path), format="parquet")


def test_a_large_release_is_read_without_its_rows(tmp_path, monkeypatch):
    a_release(recoding=None).write(tmp_path / "out")
    held = Release.read(tmp_path / "out")
    monkeypatch.setattr(module, "free_memory", lambda: 1)
    filed = Release.read(tmp_path / "out")
    assert isinstance(held.rows, pa.Table)
    assert isinstance(filed.rows, FiledRows)
    assert filed.table.equals(held.table)


def test_what_a_killed_run_left_is_removed_by_the_next(tmp_path):
    code = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    script = f"""
import sys
sys.path[:0] = {sys.path!r}
from pathlib import Path
from sfumato.release.release import put_in_place
with put_in_place(Path({str(tmp_path / "out")!r}), overwrite=False) as folder:
    (folder / "release.csv").write_text("half")
    {code}
"""
    done = subprocess.run([sys.executable, "-c", script], check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(names(tmp_path)) == 1
    a_release().write(tmp_path / "other")
    assert names(tmp_path) == ["other"]


def test_the_hash_of_a_folder_of_parts_depends_on_their_contents_and_names(tmp_path):
    for folder, parts in (("one", "ab"), ("same", "ab"), ("renamed", "ba"), ("changed", "ab")):
        (tmp_path / folder).mkdir()
        for name, content in zip(parts, "xz" if folder == "changed" else "xy", strict=True):
            (tmp_path / folder / f"part-{name}.parquet").write_text(content)
    one, same, renamed, changed = (
        sha256_of(tmp_path / folder) for folder in ("one", "same", "renamed", "changed")
    )
    assert one == same
    assert len({one, renamed, changed}) == 3


# ---- the certificate -------------------------------------------------------------------------------


def test_the_keys_of_a_certificate_stand_in_a_fixed_order():
    document = json.loads(a_release().certificate.to_json())
    assert list(document) == ["sfumato", "format", "method", "policy", "missing", "claims", "figures"]
    assert list(document["claims"]) == ["rows", "suppressed", "groups", "requirements", "sha256"]
    assert document["claims"]["requirements"] == [
        {"requirement": {"k-anonymity": 2}, "figure": "smallest group", "achieved": 2.0}
    ]
    assert Policy.from_dict(document["policy"]) == POLICY


def test_a_certificate_reads_back_and_gives_the_same_bytes():
    claims = replace(CLAIMS, sha256={"policy.yaml": "0" * 64, "release.csv": "a" * 64})
    certificate = Certificate.of(POLICY, claims, figures={"imprecision": 0.25})
    back = Certificate.from_json(certificate.to_json().encode())
    assert back == certificate
    assert back.to_json() == certificate.to_json()
    assert "Köln" in certificate.to_json()


def test_a_certificate_without_requirements_says_that_nothing_is_promised():
    certificate = Certificate.of(POLICY, Claims(rows=4, groups=2))
    assert json.loads(certificate.to_json())["promise"] == "nothing is promised"
    assert certificate.promises_nothing
    assert Certificate.from_json(certificate.to_json()) == certificate
    assert not a_release().certificate.promises_nothing


def test_an_infinite_figure_is_null_in_json():
    claims = replace(CLAIMS, requirements=(Claim({"k-anonymity": 2}, "f", float("inf")),))
    certificate = Certificate.of(POLICY, claims)
    assert json.loads(certificate.to_json())["claims"]["requirements"][0]["achieved"] is None
    assert Certificate.from_json(certificate.to_json()) == certificate


@pytest.mark.parametrize("figure", [float("nan"), object()])
def test_a_figure_that_json_cannot_hold_is_a_bug_of_ours(figure):
    with pytest.raises(InternalError):
        Certificate.of(POLICY, CLAIMS, figures={"x": figure}).to_json()


def edited(path: str, value: object = None, *, drop: bool = False) -> str:
    """The certificate with one value changed; ``path`` is keys with dots between."""
    document = json.loads(a_release().certificate.to_json())
    at, (*around, last) = document, path.split(".")
    for key in around:
        at = at[int(key)] if key.isdigit() else at[key]
    if drop:
        del at[last]
    else:
        at[last] = value
    return json.dumps(document)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "cut off or wrong in line 1"),
        (a_release().certificate.to_json()[:-20], "cut off or wrong in line"),
        (b"\xff\xfe", "not UTF-8"),
        (b"\x00\x01\x02", "cut off or wrong"),
        ("[]", "it must be a mapping"),
        ("null", "it must be a mapping"),
        ('{"a": 1, "a": 2}', "a key stands twice"),
        ('{"a": NaN}', "holds NaN"),
        ('{"a": -Infinity}', "holds -Infinity"),
        ('{"a": 1e999}', "too large"),
        ('{"a": ' + "9" * 5000 + "}", "cannot be read"),
        ("[" * 200_000, "cannot be read"),
        (edited("sfumato", drop=True), "it lacks 'sfumato'"),
        (edited("claims.rows", drop=True), "'claims' lacks 'rows'"),
        (edited("secret", 1), "it has 1 key too many"),
        (edited("claims.seconds", 1), "'claims' has 1 key too many"),
        (edited("format", 2), "format is 2, and this version reads 1 only"),
        (edited("format", True), "'format' must be a whole number"),
        (edited("claims", []), "'claims' must be a mapping"),
        (edited("claims.rows", "4"), "'rows' must be a whole number"),
        (edited("claims.rows", 4.0), "'rows' must be a whole number"),
        (edited("claims.groups", -1), "'groups' is below 0"),
        (edited("claims.requirements", {}), "'requirements' must be a list"),
        (edited("claims.requirements.0.achieved", "2"), "must be a whole number or a number or null"),
        (edited("claims.requirements.0.achieved", 10**400), "'achieved' is too large"),
        (edited("claims.requirements.0.figure", None), "'figure' must be a text"),
        (edited("claims.requirements.0.extra", 1), "an item of 'requirements' has 1 key too many"),
        (
            edited("claims.sha256", {"../../etc/passwd": "0" * 64}),
            "64 hexadecimal digits for files of a release",
        ),
        (edited("claims.sha256", {"release.csv": "0" * 63}), "64 hexadecimal digits"),
        (edited("claims.sha256", {"release.csv": 0}), "64 hexadecimal digits"),
        (edited("promise", "nothing is promised"), "promise must be"),
        (edited("claims.requirements", []), "promise must be"),
    ],
)
def test_rubbish_is_no_certificate(text, sentence):
    with pytest.raises(InputError) as caught:
        Certificate.from_json(text)
    assert str(caught.value).startswith("certificate.json is no certificate of a release: ")
    assert sentence in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("at_least", [None, Fraction(3, 5), Absolute(Fraction(5, 2))])
def test_a_threshold_of_utility_is_written_and_read_as_it_is(at_least):
    policy = Policy.parse("{attributes: {age: {role: quasi-identifier}}, method: {risk-utility: {}}}")
    utility = UtilityClaim("depth", at_least, 0.75, None, ("age",))
    certificate = Certificate.of(policy, Claims(4, 2, utility=utility, cells=CellsClaim(1, 2, 4)))
    written = json.loads(certificate.to_json())["claims"]
    spelled = {"value": "5/2"} if isinstance(at_least, Absolute) else at_least and "3/5"
    assert written["utility"] == {"measure": "depth", "at-least": spelled, "mean": 0.75, "least": None}
    assert list(written) == ["rows", "suppressed", "groups", "cells", "utility", "missing", "sha256"]
    assert Certificate.from_json(certificate.to_json()) == certificate


@pytest.mark.parametrize("kind", [document.GroupClaims, document.CountClaims, document.BoxClaims])
def test_the_schema_of_a_certificate_is_generated_and_allows_no_other_key(kind):
    schema = document.CertificateDocument.__class_getitem__(kind).model_json_schema(by_alias=True)
    claims = schema["$defs"][kind.__name__]
    assert schema["additionalProperties"] is claims["additionalProperties"] is False
    assert {"sfumato", "format", "claims"} < {*schema["required"]}
    assert "made" not in schema["required"]
    assert {"rows", "sha256"} < {*claims["required"]} <= {*claims["properties"]}


def test_any_cut_of_a_certificate_is_refused():
    text = a_release().certificate.to_json().rstrip()
    for end in range(0, len(text), 7):
        with pytest.raises(InputError):
            Certificate.from_json(text[:end])


def test_the_version_is_known_or_said_to_be_unknown(monkeypatch):
    def not_found(name):
        raise certificate_module.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(certificate_module.metadata, "version", not_found)
    assert Certificate.of(POLICY, CLAIMS).version == "0+unknown"
    monkeypatch.setattr(certificate_module.metadata, "version", lambda name: "1.2.3")
    assert Certificate.of(POLICY, CLAIMS).version == "1.2.3"


# ---- what looks alike, and what rides along ----


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_values_that_look_alike_are_no_diversity_and_are_published_as_they_are(engine):
    """Two groups of five by age; one has the flu in five spellings that look alike."""
    policy = Policy.parse("""
attributes: {age: {role: quasi-identifier, type: number}, ill: {role: sensitive}}
require: [k-anonymity: 2, entropy-diversity: {l: 2, of: ill}]
""")
    spelled = ["flu", "f\u200blu", "\ufb02u", "flu\ufeff", "fl\u00adu"]
    table = pa.table(
        {"age": [20] * 5 + [60] * 5, "ill": [*spelled, "cold", "asthma", "cold", "asthma", "flu"]}
    )
    release = publish(table, policy, engine=engine)
    assert release.certificate.claims.groups == 1
    assert sorted(release.table.column("ill").to_pylist()) == sorted(table.column("ill").to_pylist())


def test_rows_hold_dictionaries_in_an_order_of_their_own(tmp_path):
    """The order of the input's rows would undo the shuffling."""
    ills = ["rash", "flu", "cold", "asthma"] * 10
    write_table(pa.table({"age": [str(20 + i) for i in range(40)], "ill": ills}), tmp_path / "t.csv")
    for promise in ("require: [k-anonymity: 2]", "method: {risk-utility: {utility-at-least: 0.3}}"):
        role = "sensitive" if "require" in promise else "drop"
        policy = Policy.parse(f"""
attributes: {{age: {{role: quasi-identifier, type: number, hierarchy: {{intervals: [10, 20]}}}}, ill: {{role: {role}}}}}
{promise}
""")
        rows = publish(tmp_path / "t.csv", policy).rows
        encoded = [column for column in rows.columns if pa.types.is_dictionary(column.type)]
        assert encoded
        for column in encoded:
            for chunk in column.chunks:
                values = chunk.dictionary.to_pylist()
                assert values == sorted(values)
                assert set(values) == {cell for cell in chunk.to_pylist() if cell is not None}
