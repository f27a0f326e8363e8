"""Bad input: exit 2 and one sentence without a cell's value, nothing written; an unmet requirement: exit 1."""

from __future__ import annotations

import gzip
import importlib
import io
import math
import shutil
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commandline import POLICY, names

import sfumato as sf
from sfumato.errors import InputError, InternalError, SfumatoError

publishing = importlib.import_module("sfumato.publishing")  # the name itself is the function

SECRET = "SECRET-CELL"  # a cell that no message may quote

HEADER = "age,sex,disease\n"
ROWS = f"31,f,{SECRET}\n45,m,flu\n" * 5
SMALL = """\
attributes:
  age:     {role: quasi-identifier, type: number}
  sex:     {role: quasi-identifier}
  disease: {role: sensitive}
require:
  - k-anonymity: 2
"""


def csv(rows: str, header: str = HEADER) -> bytes:
    return (header + rows).encode()


def parquet(**columns) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    return file.getvalue()


def ipc(**columns) -> bytes:
    file = io.BytesIO()
    table = pa.table(columns)
    with pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    return file.getvalue()


COLUMNS = {"age": [31, 45] * 500, "sex": ["f", "m"] * 500, "disease": [SECRET, "flu"] * 500}
MANY_ROWS = "".join(f"{31 + i % 60},f,{SECRET}{i * i % 991}\n" for i in range(5000))

BAD_TABLES = {
    # name of the file, its bytes, and words of the sentence
    "an empty file": ("t.csv", b"", "empty"),
    "blank lines alone": ("t.csv", b"\n\n\r\n", "empty"),
    "a byte order mark alone": ("t.csv", b"\xef\xbb\xbf", "empty"),
    "a header alone": ("t.csv", csv(""), "no rows"),
    "a header alone, gzip-ed": ("t.csv.gz", gzip.compress(csv("")), "no rows"),
    "a Parquet file without rows": ("t.parquet", parquet(age=[], sex=[], disease=[]), "no rows"),
    "a row with a cell too many": ("t.csv", csv(ROWS + f"31,f,{SECRET},{SECRET}\n"), "Row 11 "),
    "a row with a cell too few": ("t.csv", csv(f"31,{SECRET}\n" + ROWS), "Row 1 "),
    "text in a number column": ("t.csv", csv(ROWS + f"{SECRET},f,flu\n"), "column 'age' has 1 cell"),
    "an infinite number": ("t.csv", csv(ROWS + f"inf,f,{SECRET}\n"), "column 'age' has 1 cell"),
    "an infinite number in Parquet": (
        "t.parquet",
        parquet(age=[1.5, math.inf, -math.inf], sex=["f"] * 3, disease=[SECRET] * 3),
        "column 'age' has 2 cells with an infinite number",
    ),
    "a number that overflows": ("t.csv", csv(ROWS + f"1e999,f,{SECRET}\n"), "column 'age'"),
    "a number beyond 2^53": ("t.csv", csv(ROWS + f"9007199254740993,f,{SECRET}\n"), "column 'age'"),
    "two columns of one name": ("t.csv", csv(f"31,f,flu,{SECRET}\n", "age,sex,disease,sex\n"), "same name"),
    "a column without a name": ("t.csv", csv(f"31,f,flu,{SECRET}\n", "age,sex,disease,\n"), "column 4"),
    "no header but numbers": ("t.csv", csv("31,1,2\n", "45,1,2\n"), "header"),
    "a gzip file cut short": ("t.csv.gz", gzip.compress(csv(MANY_ROWS))[:-900], "cut-off"),
    "a gzip file with a wrong checksum": (
        "t.csv.gz",
        gzip.compress(csv(MANY_ROWS))[:-8] + bytes(8),
        "damaged",
    ),
    "gzip of nothing": ("t.csv.gz", gzip.compress(b""), "empty"),
    "a Parquet file cut short": ("t.parquet", parquet(**COLUMNS)[:-40], "damaged"),
    "a Parquet file cut to its first bytes": ("t.parquet", parquet(**COLUMNS)[:6], "damaged"),
    "an Arrow file cut short": ("t.arrow", ipc(**COLUMNS)[:-100], "damaged"),
    "binary rubbish": ("t.csv", bytes(range(256)) * 20, "not a table"),
    "binary rubbish named Parquet": ("t.parquet", bytes(range(256)) * 20, "parquet"),
    "rubbish behind the magic of Parquet": ("t.parquet", b"PAR1" + bytes(range(256)) * 9 + b"PAR1", "damaged"),
    "text that is not UTF-8": ("t.csv", csv(ROWS) + b"31,f,\x81" + SECRET.encode() + b"\n", "UTF-8"),
    "UTF-16": ("t.csv", csv(ROWS).decode().encode("utf-16"), "UTF-16"),
    "a spreadsheet": ("t.csv", b"PK\x03\x04" + csv(ROWS), "spreadsheet"),
    "a quote that is never closed": ("t.csv", csv(ROWS + f'31,f,"{SECRET}\n' + ROWS), "quote"),
    "a list in a cell": (
        "t.parquet",
        parquet(age=[1, 2], sex=[[SECRET], [SECRET]], disease=["a", "b"]),
        "column 'sex'",
    ),
    "dates in a number column": (
        "t.parquet",
        parquet(age=pa.array([1, 2], pa.date32()), sex=["f", "m"], disease=[SECRET] * 2),
        "column 'age'",
    ),
    "text that is not UTF-8 in Parquet": (
        "t.parquet",
        parquet(age=[1, 2], sex=pa.array([b"\xff", b"m"]), disease=[SECRET] * 2),
        "UTF-8",
    ),
}  # fmt: skip


def run_on(sfumato, here, data: tuple[str, bytes], text: str):
    """``publish``, in a folder that must be as it was afterwards."""
    name, content = data
    (here / name).write_bytes(content)
    (here / "policy.yaml").write_text(text, encoding="utf-8")
    before = names(here)
    done = sfumato("publish", name, "--policy", "policy.yaml", "--out", "out")
    assert names(here) == before
    assert done.out == ""
    assert SECRET not in done.err
    return done


def test_the_table_that_the_cases_below_spoil_is_a_good_one(sfumato, here):
    (here / "t.csv").write_bytes(csv(ROWS))
    (here / "policy.yaml").write_text(SMALL)
    assert sfumato("publish", "t.csv", "--policy", "policy.yaml", "--out", "out").code == 0
    assert SECRET in (here / "out" / "release.csv").read_text()


@pytest.mark.parametrize("case", BAD_TABLES)
def test_a_bad_table_is_refused_in_one_sentence(sfumato, here, case):
    name, content, words = BAD_TABLES[case]
    done = run_on(sfumato, here, (name, content), SMALL)
    assert done.code == 2
    assert words.lower() in done.sentence.lower()


@pytest.mark.parametrize("case", [case for case in BAD_TABLES if "column 'age'" not in BAD_TABLES[case][2]])
def test_profile_refuses_a_bad_table_in_one_sentence(sfumato, here, case):
    name, content, _ = BAD_TABLES[case]
    (here / name).write_bytes(content)
    done = sfumato("profile", name, "--out", "draft.yaml")
    assert SECRET not in done.err + done.out
    if case in ("a list in a cell", "text that is not UTF-8 in Parquet"):  # whose draft leaves the column out
        return
    assert done.code == 2
    assert done.sentence
    assert done.out == ""
    assert names(here) == [name]


@pytest.mark.parametrize("case", ["an empty file", "a row with a cell too many", "text in a number column"])
def test_standard_input_is_refused_like_a_file(sfumato, here, case):
    (here / "policy.yaml").write_text(SMALL)
    done = sfumato("publish", "-", "--policy", "policy.yaml", "--out", "out", stdin=BAD_TABLES[case][1])
    assert done.code == 2
    assert SECRET not in done.sentence
    assert names(here) == ["policy.yaml"]


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{word}: &{word} [{', '.join(['*' + before] * 9)}]\n"
    for before, word in zip("abcdefgh", "bcdefghi", strict=True)
)

BAD_POLICIES = {
    "an unknown key": (SMALL + "requires: []\n", "'requires' is unknown"),
    "an unknown key of a column": (SMALL.replace("type: number", "typ: number"), "Did you mean 'type'?"),
    "an unknown role": (SMALL.replace("sensitive", "sensible"), "Did you mean 'sensitive'?"),
    "an unknown requirement": (SMALL.replace("k-anonymity", "k-anonymty"), "k-anonymity"),
    "a tag": (SMALL.replace("[k-", "[k-") + 'workload: !!python/object/apply:os.system ["touch owned"]\n', "tag"),
    "a tag on a scalar": (SMALL.replace("2", "!!int 2"), "tag"),
    "an alias bomb": (BOMB + SMALL, "alias"),
    "an anchor alone": (SMALL.replace("{role: sensitive}", "&x {role: sensitive}"), "anchor"),
    "two documents": (SMALL + "---\n" + SMALL, "document"),
    "a key twice": (SMALL + "require: []\n", "twice"),
    "a column twice": (SMALL.replace("  sex:", "  age: {role: drop}\n  sex:"), "twice"),
    "no YAML at all": ("attributes: [unclosed\n", "line"),
    "an empty policy": ("", "empty"),
    "a list": ("- a\n- b\n", "mapping"),
    "no require": (SMALL.partition("require:")[0], "'require' is missing"),
    "no attributes": ("require: []\n", "'attributes' is missing"),
    "k of 0": (SMALL.replace("k-anonymity: 2", "k-anonymity: 0"), "k-anonymity"),
    "k below 0": (SMALL.replace("k-anonymity: 2", "k-anonymity: -3"), "k-anonymity"),
    "k of ten in letters": (SMALL.replace("k-anonymity: 2", "k-anonymity: ten"), "k-anonymity"),
    "k in quotes": (SMALL.replace("k-anonymity: 2", 'k-anonymity: "10"'), "k-anonymity"),
    "k of two and a half": (SMALL.replace("k-anonymity: 2", "k-anonymity: 2.5"), "k-anonymity"),
    "k of true": (SMALL.replace("k-anonymity: 2", "k-anonymity: true"), "k-anonymity"),
    "an infinite k": (SMALL.replace("k-anonymity: 2", "k-anonymity: .inf"), "finite"),
    "l below 1": (SMALL.replace("k-anonymity: 2", "entropy-diversity: {l: 0.5, of: disease}"), "l"),
    "t above 1": (SMALL.replace("k-anonymity: 2", "t-closeness: {t: 2, of: disease}"), "t: must be a number from 0 to 1"),
    "diversity of a column that is not sensitive": (
        SMALL.replace("k-anonymity: 2", "entropy-diversity: {l: 2, of: sex}"),
        "sensitive",
    ),
    "variance of a text": (
        SMALL.replace("k-anonymity: 2", "variance-diversity: {at-least: 1, of: disease}"),
        "number",
    ),
    "a missing hierarchy file": (
        SMALL.replace("sex:     {role: quasi-identifier", "sex:     {role: quasi-identifier, hierarchy: no/such.csv"),
        "no/such.csv",
    ),
    "a hierarchy that lacks values": (
        SMALL.replace("disease: {role: sensitive}", 'disease: {role: quasi-identifier, hierarchy: {tree: {"*": [flu]}}}'),
        "column 'disease' has 5 cells",
    ),
    "values that lack one": (
        SMALL.replace("disease: {role: sensitive}", "disease: {role: quasi-identifier, values: [flu]}"),
        "column 'disease' has 5 cells",
    ),
    "a mask that is too short": (
        SMALL.replace("disease: {role: sensitive}", "disease: {role: quasi-identifier, hierarchy: {mask: 3}}"),
        "column 'disease'",
    ),
    "bounds reversed": (SMALL.replace("type: number", "type: number, bounds: [110, 0]"), "bounds"),
    "equal bounds": (SMALL.replace("type: number", "type: number, bounds: [31, 31]"), "bounds"),
    "bounds of a category": (
        SMALL.replace("sex:     {role: quasi-identifier", "sex:     {role: quasi-identifier, bounds: [0, 1]"),
        "bounds",
    ),
    "a cell outside bounds": (
        SMALL.replace("type: number", "type: number, bounds: [0, 40]"),
        "column 'age' has 5 cells outside",
    ),
    "a cell off the step": (
        SMALL.replace("type: number", "type: number, bounds: [0, 100], step: 10"),
        "column 'age' has 10 cells",
    ),
    "interval widths that do not nest": (
        SMALL.replace("type: number", "type: number, bounds: [0, 100], hierarchy: {intervals: [10, 15]}"),
        "intervals",
    ),
    "a column that the policy does not name": (
        SMALL.replace("  disease: {role: sensitive}\n", ""),
        "has column 'disease', which the policy does not name",
    ),
    "a column that the table lacks": (
        SMALL.replace("disease:", "diseases:"),
        "Did you mean 'disease'?",
    ),
    "no quasi-identifier": (SMALL.replace("quasi-identifier", "other"), "quasi-identifier"),
    "a target that the table lacks": (SMALL + "workload: [classify: outcome]\n", "'outcome'"),
    "a target that is dropped": (
        SMALL.replace("role: sensitive", "role: drop") + "workload: [classify: disease]\n",
        "not published",
    ),
    "a regression of a text": (SMALL + "workload: [regress: disease]\n", "number"),
    "a weight of 0": (SMALL + "workload: [classify: {target: disease, weight: 0}]\n", "above 0"),
    "an unknown output": (SMALL + "output: {values: centroids}\n", "labels"),
    "a unit that is a quasi-identifier": (SMALL + "unit: age\n", "has the role quasi-identifier"),
    "a unit that is published": (SMALL + "unit: disease\n", "give it that role"),
    "a unit that no column is called": (SMALL + "unit: agee\n", "Did you mean 'age'?"),
    "a bound on rows without differential privacy": (
        SMALL + "unit: {column: age, rows-at-most: 4}\n", "only differentially private methods",
    ),
    "a unit that is a list": (SMALL + "unit: [age]\n", "or row"),
    "a published bound that has the name of a column": (
        SMALL.replace("  sex:  ", "  age_low:") + "output: {values: bounds}\n",
        "age_low",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_POLICIES)
def test_a_bad_policy_is_refused_in_one_sentence(sfumato, here, case):
    text, words = BAD_POLICIES[case]
    content = csv(ROWS, HEADER.replace("sex", "age_low") if "age_low" in words else HEADER)
    done = run_on(sfumato, here, ("t.csv", content), text)
    assert done.code == 2
    assert words.lower() in done.sentence.lower()
    assert not (here / "owned").exists()


LATER = {"suppress": "suppress: {at-most: 1%}\n"}
LATER_REQUIREMENTS = {
    "alpha-k": "{alpha: 0.5, k: 2, of: disease}",
    "beta-likeness": "{beta: 1, of: disease}",
    "delta-disclosure": "{delta: 1, of: disease}",
    "delta-presence": "{min: 0.1, max: 0.9}",
    "k-map": "5",
}


@pytest.mark.parametrize("word", [*LATER, *LATER_REQUIREMENTS])
def test_what_later_versions_offer_is_not_yet_rather_than_unknown(sfumato, here, word):
    if word in LATER:
        text = SMALL + LATER[word]
    else:
        text = SMALL.replace("k-anonymity: 2", f"{word}: {LATER_REQUIREMENTS[word]}")
    done = run_on(sfumato, here, ("t.csv", csv(ROWS)), text)
    assert done.code == 2
    assert "not yet part of this version" in done.sentence
    assert word in done.sentence


# ---- files that are not there, or may not be ------------------------------------------------------------


@pytest.mark.parametrize("name", ["nowhere.csv", "nowhere/*.parquet", "no such folder/"])
def test_a_table_that_is_not_there_is_named(sfumato, here, policy, name):
    done = sfumato("publish", name, "--policy", policy, "--out", "out")
    assert done.code == 2
    assert name.rstrip("/") in done.sentence


@pytest.mark.parametrize("name", ["nowhere.yaml", "."])
def test_a_policy_that_is_not_there_is_named(sfumato, here, table, name):
    done = sfumato("publish", table, "--policy", name, "--out", "out")
    assert done.code == 2
    assert repr(name) in done.sentence
    assert names(here) == ["people.csv"]


def test_an_existing_folder_is_refused_before_the_work(sfumato, here, policy, monkeypatch):
    (here / "out").mkdir()
    (here / "out" / "mine.txt").write_text("mine")
    monkeypatch.setattr(publishing, "publish", None)  # not even called
    done = sfumato("publish", "nowhere.csv", "--policy", policy, "--out", "out")
    assert done.code == 2
    assert "already exists" in done.sentence
    done = sfumato("publish", "nowhere.csv", "--policy", policy, "--out", "out", "--overwrite")
    assert done.code == 2
    assert "is no release" in done.sentence
    assert names(here / "out") == ["mine.txt"]


def test_a_release_cannot_be_written_where_a_file_is_or_no_folder(sfumato, here, table, policy):
    done = sfumato("publish", table, "--policy", policy, "--out", "no/such/out")
    assert (done.code, "there is no folder" in done.sentence) == (2, True)
    done = sfumato("publish", table, "--policy", policy, "--out", table)
    assert (done.code, "it is a file" in done.sentence) == (2, True)
    assert names(here) == ["people.csv", "policy.yaml"]


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that not even root may write to")
def test_a_folder_that_may_not_be_written_is_named(sfumato, here, table, policy):
    done = sfumato("publish", table, "--policy", policy, "--out", "/proc/out")
    assert (done.code, "/proc/out cannot be written" in done.sentence) == (2, True)


def test_a_full_disk_is_one_sentence(sfumato, here, table, policy, monkeypatch):
    def fail(*_, **__):
        raise OSError(28, "No space left on device", SECRET)

    monkeypatch.setattr("sfumato.release.release.write_table", fail)
    done = sfumato("publish", table, "--policy", policy, "--out", "out")
    assert (done.code, "No space left" in done.sentence) == (2, True)
    assert names(here) == ["people.csv", "policy.yaml"]


def test_too_little_memory_is_one_sentence(sfumato, here, table, policy, monkeypatch):
    def fail(*_, **__):
        raise MemoryError(SECRET)

    monkeypatch.setattr("sfumato.methods.mondrian.method.scan_table", fail)
    done = sfumato("publish", table, "--policy", policy, "--out", "out")
    assert (done.code, "memory" in done.sentence, SECRET in done.err) == (2, True, False)


# ---- requirements that cannot be met --------------------------------------------------------------------

UNREACHABLE = {
    "k-anonymity: 100": "has only 60 rows",
    "entropy-diversity: {l: 20, of: disease}": "equally frequent values",
    "recursive-diversity: {c: 0.01, l: 3, of: disease}": "needs a c above",
    "variance-diversity: {at-least: 1.0e+15, of: charge}": "has only a variance of",
}


@pytest.mark.parametrize("requirement", UNREACHABLE)
def test_an_unreachable_requirement_says_by_how_much_and_writes_nothing(sfumato, here, table, requirement):
    text = POLICY.replace("k-anonymity: 5", requirement).replace("{role: other, ", "{role: sensitive, ")
    (here / "policy.yaml").write_text(text)
    done = sfumato("publish", table, "--policy", "policy.yaml", "--out", "out")
    assert done.code == 1
    assert done.out == ""
    assert "cannot be met: even one single group of all 60 rows has only" in done.sentence
    assert UNREACHABLE[requirement] in done.sentence
    assert names(here) == ["people.csv", "policy.yaml"]


def test_one_unreachable_requirement_among_others_is_enough(sfumato, here, table):
    (here / "policy.yaml").write_text(POLICY + "  - entropy-diversity: {l: 20, of: disease}\n")
    done = sfumato("publish", table, "--policy", "policy.yaml", "--out", "out")
    assert (done.code, "entropy 20-diversity of 'disease'" in done.sentence) == (1, True)


def test_an_earlier_release_survives_a_failed_one(sfumato, here, table, policy, release):
    before = {path.name: path.read_bytes() for path in release.iterdir()}
    policy.write_text(POLICY.replace("k-anonymity: 5", "k-anonymity: 100"))
    done = sfumato("publish", table, "--policy", policy, "--out", release, "--overwrite")
    assert done.code == 1
    assert {path.name: path.read_bytes() for path in release.iterdir()} == before


# ---- bugs of ours ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [ValueError, KeyError, RuntimeError, AssertionError, pa.ArrowInvalid])
def test_an_unexpected_error_shows_its_place_but_not_its_words(
    sfumato, here, table, policy, monkeypatch, error
):
    def fail(*_, **__):
        raise error(SECRET)

    monkeypatch.setattr("sfumato.methods.mondrian.method.scan_table", fail)
    done = sfumato("publish", table, "--policy", policy, "--out", "out")
    assert done.code == InternalError.exit_code == 3
    assert "This is a bug in sfumato" in done.sentence
    assert f"{error.__name__} at test_bad_input.py:" in done.sentence
    assert SECRET not in done.err
    assert names(here) == ["people.csv", "policy.yaml"]


@pytest.mark.parametrize("command", ["profile", "verify", "apply"])
def test_other_commands_do_not_show_its_words_either(sfumato, release, monkeypatch, command):
    def fail(*_, **__):
        raise ValueError(SECRET)

    inside, *arguments = {
        "profile": ("profiling.roles.measure", "people.csv"),
        "verify": ("verify.folder._check_folder", release),
        "apply": ("recoding.recoder.known_nodes", release, "people.csv", "--out", "more.csv"),
    }[command]
    monkeypatch.setattr(f"sfumato.{inside}", fail)
    done = sfumato(command, *arguments)
    assert (done.code, done.out) == (3, "")
    assert SECRET not in done.sentence


# ---- in Python: no cell in an exception, not even in one that it hides ----------------------------------


def everything_said(error: BaseException | None) -> str:
    """The words of an exception and of all that a traceback would show beside it."""
    said = ""
    while error is not None:
        said += f"{error} {error.args} "
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return said


@pytest.mark.parametrize("case", BAD_TABLES)
def test_exceptions_about_tables_hold_no_cell(here, case):
    name, content, _ = BAD_TABLES[case]
    (here / name).write_bytes(content)
    with pytest.raises(InputError) as caught:
        sf.publish(here / name, sf.Policy.parse(SMALL))
    assert SECRET not in everything_said(caught.value)


@pytest.mark.parametrize("make", [pa.table, pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize(
    "spoilt",
    [
        {"age": [SECRET, "2", "3", "4"]},
        {"age": [1.0, 2.0, 3.0, math.inf]},
        {"sex": [None, "m", "f", "x"]},
        {"disease": ["a", "b", SECRET, SECRET]},
    ],
)  # fmt: skip
def test_exceptions_about_frames_hold_no_cell(make, spoilt):
    policy = sf.Policy.parse("""
    attributes:
      age:     {role: quasi-identifier, type: number}
      sex:     {role: quasi-identifier, values: [m, f]}
      disease: {role: quasi-identifier, hierarchy: {tree: {"*": [a, b]}}}
    require: [k-anonymity: 2]
    """)
    good = {"age": ["1", "2", "3", "4"], "sex": ["m", "m", "f", "f"], "disease": ["a", "b", "a", "b"]}
    assert sf.publish(make(good), policy).certificate.claims.rows == 4
    with pytest.raises(InputError) as caught:
        sf.publish(make({**good, **spoilt}), policy)
    assert SECRET not in everything_said(caught.value)


@pytest.mark.parametrize("thing", [None, 5, {"age": [1]}, [1, 2], b"t.csv"])
def test_what_is_no_table_is_refused(thing):
    with pytest.raises(SfumatoError, match="path or a frame"):
        sf.publish(thing, sf.Policy.parse(SMALL))


def test_a_damaged_release_is_bad_input_or_a_failed_claim_but_never_a_bug(sfumato, here, release):
    for name in names(release):
        damaged = here / "damaged"
        shutil.copytree(release, damaged)
        content = (damaged / name).read_bytes()
        for text in (b"", content[: len(content) // 2], bytes(range(256)), b"[]", b"{}", b"null"):
            (damaged / name).write_bytes(text)
            done = sfumato("verify", damaged)
            assert done.code == 1, (name, text[:20])
            done = sfumato("apply", damaged, "people.csv", "--out", "more.csv", "--overwrite")
            assert done.code == (2 if name in ("recoding.json", "policy.yaml") else 0), (name, text[:20])
        shutil.rmtree(damaged)


def test_a_recoding_without_its_nodes_is_refused_rather_than_applied(sfumato, here, release):
    (release / "recoding.json").write_text('{"format": 1, "output": "labels", "attributes": [], "nodes": {}}')
    done = sfumato("apply", release, "people.csv", "--out", "recoded.csv")
    assert done.code == 2
    assert done.sentence
    assert not (here / "recoded.csv").exists()
