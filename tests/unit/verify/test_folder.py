"""Where a table could hide in a release folder: every such place is looked into.

The attacker may rewrite the certificate, too, so that all hashes are those of the files.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from tampering import edit_certificate, rehash

import sfumato as sf
from sfumato.cli import commands
from sfumato.errors import InputError, PolicyError, VerificationFailed
from sfumato.policy import yaml
from sfumato.policy.document import Policy
from sfumato.policy.options.risk_utility import RiskUtilityOptions
from sfumato.recoding import tree_file
from sfumato.recoding.large_tree import LargeRecoding
from sfumato.release.folder import older_sha256_of, sha256_of
from sfumato.release.release import Release
from sfumato.report import render
from sfumato.report import rows as report_rows
from sfumato.table.write import compact
from sfumato.verify.files import Hidden, _chunks, _dictionary_length
from sfumato.verify.folder import verify_folder

RAW = "name,age,disease\nAnn,23,flu\nBob,25,cold\n"
NOTHING_ELSE = "the folder holds the files of a release and nothing else"
POLICY = """
attributes:
  name: {role: identifier}
  age: {role: quasi-identifier, type: number}
  zip: {role: quasi-identifier, hierarchy: {mask: 5}}
  sex: {role: quasi-identifier}
  disease: {role: sensitive}
  note: {role: other, passes: unique}
require: [k-anonymity: 5]
workload: [classify: disease]
"""


def patients(n: int = 120) -> pa.Table:
    random = np.random.default_rng(7)
    return pa.table(
        {
            "name": [f"n{i}" for i in range(n)],
            "age": random.integers(20, 80, n),
            "zip": [f"{zip_code:05}" for zip_code in random.integers(53700, 53740, n)],
            "sex": random.choice(["f", "m"], n),
            "disease": random.choice(["flu", "cold", "gout"], n),
            "note": random.choice(["a, b", "c"], n),
        }
    )


@pytest.fixture(scope="module")
def published():
    """The same release, as CSV and as Parquet."""
    policy = Policy.parse(POLICY)
    return {word: sf.publish(patients(), policy, seed=1, file_format=word) for word in ("csv", "parquet")}


@pytest.fixture(params=["csv", "parquet"])
def folder(request, published, tmp_path):
    published[request.param].write(tmp_path / "out")
    return tmp_path / "out"


@pytest.fixture
def parquet(published, tmp_path):
    published["parquet"].write(tmp_path / "out")
    return tmp_path / "out"


@pytest.fixture
def csv(published, tmp_path):
    published["csv"].write(tmp_path / "out")
    return tmp_path / "out"


@pytest.fixture
def parts(parquet):
    """The release with its rows in a folder of two parts."""
    table = pq.read_table(parquet / "release.parquet")
    (parquet / "release.parquet").unlink()
    (parquet / "release.parquet").mkdir()
    for number, part in enumerate((table.slice(0, 50), table.slice(50))):
        pq.write_table(compact(part), parquet / "release.parquet" / f"part-{number}.parquet")
    rehash(parquet)
    return parquet


def failed(folder):
    return [check.claim for check in verify_folder(folder).failures]


def only_rows(folder):
    (path,) = folder.glob("release.*")
    return f"{path.name} holds its rows and nothing else"


def test_a_release_hides_nothing(folder):
    assert failed(folder) == []
    claims = [(check.mark, check.claim) for check in verify_folder(folder).checks]
    assert ("ok", NOTHING_ELSE) in claims
    assert ("ok", only_rows(folder)) in claims
    assert ("ok", "the boxes of the recoding are those of the rows") in claims
    assert ("note", "the report is not checked") in claims


def test_groups_are_found_once_and_lent_to_the_report(folder, monkeypatch):
    claims = Release.read(folder).certificate.claims
    groups = verify_folder(folder).groups
    assert groups is not None
    assert (len(groups.size), groups.size.sum()) == (claims.groups, claims.rows)
    assert verify_folder(folder, memory=1).groups is None  # measured in portions
    monkeypatch.setattr(report_rows, "SMALL", 10)
    text = render(Release.read(folder))
    (folder / "report.html").write_text(text, encoding="utf-8")
    rehash(folder)
    monkeypatch.setattr(report_rows, "lines_of", None)
    said = CliRunner().invoke(commands, ["verify", str(folder)])
    assert "the report is what the release is rendered as" in said.output.lower()
    assert said.exit_code == 0


def test_every_line_is_said_once(folder):
    sentences = [f"{check.claim}: {check.detail}" for check in verify_folder(folder).checks]
    assert len(sentences) == len(set(sentences))
    assert sum("smallest group" in sentence for sentence in sentences) == 1


# ---- files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["raw.csv", ".DS_Store", "_raw.parquet", "release.csv.bak", "Report.html"])
def test_another_file_is_found(folder, name):
    (folder / name).write_text(RAW)
    rehash(folder)
    (failure,) = verify_folder(folder).failures
    assert (failure.claim, failure.detail) == (
        NOTHING_ELSE,
        f"1 other file, folder or link, the first {name!r}",
    )


def test_an_empty_folder_is_found(folder):
    (folder / "sub").mkdir()
    assert failed(folder) == [NOTHING_ELSE]


@pytest.mark.parametrize(
    "name", ["raw.csv", "_raw.parquet", ".raw.parquet", "_SUCCESS", "sub/raw.parquet", "sub/raw.csv"]
)
def test_another_file_among_parts_is_found(parts, name):
    assert failed(parts) == []
    path = parts / "release.parquet" / name
    path.parent.mkdir(exist_ok=True)
    if path.suffix == ".parquet":
        pq.write_table(patients(5), path)
    else:
        path.write_text(RAW)
    rehash(parts)
    assert failed(parts) == [NOTHING_ELSE]


@pytest.mark.parametrize(
    "name", ["report.html", "recoding.json", "policy.yaml", "certificate.json", "raw.csv"]
)
def test_a_link_is_found_and_not_followed(csv, tmp_path, name):
    target = tmp_path / "elsewhere"
    (csv / name).replace(target) if (csv / name).exists() else target.write_text(RAW)
    (csv / name).symlink_to(target)
    assert failed(csv) == [NOTHING_ELSE]


def test_a_link_among_parts_is_found(parts, tmp_path):
    part = parts / "release.parquet" / "part-1.parquet"
    part.replace(tmp_path / "part.parquet")
    part.symlink_to(tmp_path / "part.parquet")
    assert failed(parts) == [NOTHING_ELSE]


def test_a_pipe_in_place_of_a_file_is_found_and_not_opened(csv):
    (csv / "report.html").unlink()
    os.mkfifo(csv / "report.html")
    assert failed(csv) == [NOTHING_ELSE]


def test_comments_of_a_policy_are_found(csv):
    path = csv / "policy.yaml"
    path.write_text(path.read_text() + "".join(f"# {line}\n" for line in RAW.splitlines()))
    rehash(csv)
    assert failed(csv) == ["policy.yaml holds a policy and nothing else"]


def test_a_policy_as_an_earlier_version_wrote_it_is_one(csv):
    """It had no key for what was new later."""
    path = csv / "policy.yaml"
    document = Policy.parse(path.read_bytes(), None).as_dict()
    del document["workload"][0], document["missing"]
    edit_certificate(csv, lambda certificate: certificate.update(policy={**document, "missing": "own-value"}))
    path.write_text(yaml.dump(document))
    rehash(csv)
    assert "policy.yaml holds a policy and nothing else" not in failed(csv)


# ---- rows ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\nm", '\n"m"', 1).replace(",m,", ',"m",', 1),
        lambda text: text.replace("\n", "\r\n", 3),
        lambda text: text.replace("\n", "\r", 5).replace("\r", "\n", 1),
        lambda text: text.replace('a, b"', 'a, "b', 3),
        lambda text: text.replace("\n", "\n\n", 3),
        lambda text: "\ufeff" + text,
        lambda text: text.replace(",c\n", ',"c"\n', 1),
        lambda text: text.removesuffix("\n"),
    ],
    ids=[
        "quotes",
        "line ends",
        "carriage returns",
        "quotes within cells",
        "blank lines",
        "byte order mark",
        "last column",
        "no last line end",
    ],
)
def test_csv_is_written_in_one_way(csv, change):
    path = csv / "release.csv"
    text = path.read_bytes().decode()
    assert change(text) != text
    path.write_bytes(change(text).encode())
    rehash(csv)
    assert only_rows(csv) in failed(csv)


@pytest.mark.parametrize(
    "cells", [['say "a"', "b, c", "d\ne"], ["a\rb", "b, c", "d\ne"], [" ,", "\n,", ",\n"]]
)
def test_quotes_are_no_fault_where_cells_need_them(tmp_path, cells):
    table = patients().set_column(5, "note", pa.array(cells * 40))
    release = sf.publish(table, Policy.parse(POLICY), seed=1, file_format="csv")
    release.write(tmp_path / "out")
    assert failed(tmp_path / "out") == []
    path = tmp_path / "out" / "release.csv"
    path.write_bytes(path.read_bytes().replace(b",flu,", b',"flu",', 1))
    rehash(tmp_path / "out")
    assert failed(tmp_path / "out") == [only_rows(tmp_path / "out")]


def rewrite(folder, change=lambda table: table, **options):
    path = folder / "release.parquet"
    pq.write_table(change(pq.read_table(path)), path, **options)
    rehash(folder)


def with_unused(table):
    """Its diseases, with the raw table in a dictionary."""
    encoded = table.column("disease").combine_chunks().dictionary_encode()
    values = pa.concat_arrays([encoded.dictionary, pa.array([RAW])])
    return table.set_column(
        table.column_names.index("disease"),
        "disease",
        pa.DictionaryArray.from_arrays(encoded.indices, values),
    )


def with_note(column):
    return lambda table: table.set_column(table.column_names.index("note"), "note", column)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda table: table.replace_schema_metadata({"raw": RAW}), "metadata beside its columns"),
        (
            lambda table: table.cast(
                pa.schema([field.with_metadata({"raw": RAW}) for field in table.schema])
            ),
            "metadata beside its columns",
        ),
        (with_unused, "values of column 'disease' that no row has"),
        (with_note(pa.array([{"raw": RAW}] * 120)), "Column 'note' is stored as struct<raw: string>"),
        (with_note(pa.array([[RAW]] * 120)), "Column 'note' is stored as list<"),
    ],
    ids=["metadata", "metadata of a field", "dictionary", "struct", "list"],
)
def test_parquet_holds_its_rows_alone(parquet, change, found):
    rewrite(parquet)
    assert failed(parquet) == []
    rewrite(parquet, change)
    (failure,) = [check for check in verify_folder(parquet).failures if check.claim == only_rows(parquet)]
    assert found in failure.detail


@pytest.mark.parametrize("n", [1, 2, 63, 64, 1000])
def test_a_dictionary_of_numbers_says_how_long_it_is(tmp_path, n):
    """Arrow gives such columns as plain numbers, so the length is read from the page itself."""
    path = tmp_path / "numbers.parquet"
    pq.write_table(pa.table({"x": np.arange(5 * n) % n}), path)
    (chunk,) = _chunks(pq.read_metadata(path))
    assert _dictionary_length(path, chunk.dictionary_page_offset) == n
    with pytest.raises(Hidden, match="cannot be read"):
        _dictionary_length(path, 0)


def test_bytes_that_no_column_has_are_found(parquet):
    path = parquet / "release.parquet"
    content = path.read_bytes()
    length = int.from_bytes(content[-8:-4], "little")
    footer = len(content) - length - 8
    path.write_bytes(content[:footer] + RAW.encode() + content[footer:])
    rehash(parquet)
    (failure,) = verify_folder(parquet).failures
    assert (failure.claim, failure.detail) == (only_rows(parquet), "it holds bytes that belong to no column")


def test_a_path_of_another_file_is_found(parquet):
    """Footers may say where a column lies, and readers pass over it."""
    path = parquet / "release.parquet"
    content, footer = path.read_bytes(), pa.BufferOutputStream()
    metadata = pq.read_metadata(path)
    metadata.set_file_path(RAW)
    metadata.write_metadata_file(footer)
    length = int.from_bytes(content[-8:-4], "little")
    path.write_bytes(content[: -length - 8] + footer.getvalue().to_pybytes()[4:])
    rehash(parquet)
    assert failed(parquet) == [only_rows(parquet)]


def test_a_forged_description_of_the_columns_is_found(parquet):
    """Arrow's own schema is metadata as well, and has room for more."""
    table = pq.read_table(parquet / "release.parquet")
    message = pa.schema(table.schema, metadata={"raw": RAW}).serialize().to_pybytes()
    stored = table.replace_schema_metadata({"ARROW:schema": base64.b64encode(message)})
    pq.write_table(stored, parquet / "release.parquet")
    rehash(parquet)
    assert failed(parquet) == [only_rows(parquet)]


def test_statistics_are_those_of_the_rows(parquet):
    rewrite(parquet, write_statistics=True)
    assert failed(parquet) == []


# ---- certificate, policy and recoding --------------------------------------------------------------


def scores(test, n_models=1):
    """An evaluation in ten folds whose scores are a column of a table."""
    each = {"target": "disease", "data": "release", "metric": "accuracy", "test": test, "train": []}
    found = [{**each, "model": f"tree {i}"} for i in range(n_models)]
    utility = {"format": 1, "protocol": {"folds": 10}, "scores": found, "measures": {}, "tests": []}
    return {"utility": utility}


def test_scores_of_each_fold_are_figures_of_a_run(folder):
    edit_certificate(folder, lambda document: document["figures"].update(scores([0.5] * 10)))
    assert failed(folder) == []


def test_a_certificate_that_says_nothing_of_loss_is_still_read(folder):
    edit_certificate(folder, lambda document: document["figures"].pop("loss"))
    assert failed(folder) == []


@pytest.mark.parametrize("ncp", ["ncp", "normalized certainty penalty"])
def test_measures_of_columns_are_figures_of_a_run(ncp, folder):
    found = scores([])
    found["utility"]["measures"] = {
        ncp: 0.5,
        "ncp of age": 0.5,
        "entropy loss of age": 0.5,
        "query error": 9.0,
    }
    edit_certificate(folder, lambda document: document["figures"].update(found))
    assert failed(folder) == []


@pytest.mark.parametrize(
    "figures",
    [
        {"raw": RAW},
        {"splits": {"age": RAW}},
        {"splits": {RAW: 1}},
        {"imprecision": [{"where": RAW, "true": 1, "returned": 1, "imprecision": 0}]},
        {"io": {"engine": RAW}},
        {"io": {"raw": 1}},
        {"utility": {"format": 1, "protocol": {}, "scores": [], "measures": {RAW: 1.0}, "tests": []}},
        {"tradeoff": {"optimizer": RAW}},
        {"splits": {"age": 10**40}},
        {"loss": {"ncp": 23.0, "columns": {}}},
        {"loss": {"ncp": 0.5, "columns": {"age": -0.1}}},
        {"loss": {"ncp": 0.5, "columns": {"disease": 0.5}}},
        {"loss": {"ncp": 0.5, "columns": {"age": 0.5}, "rows": 23}},
        {"loss": {"columns": {"age": 0.5}}},
        scores([23.0, 25.0] * 50),
        scores([0.5] * 10, n_models=200),
    ],
)
def test_figures_are_those_of_a_run(folder, figures):
    edit_certificate(folder, lambda document: document["figures"].update(figures))
    assert failed(folder) == ["the figures are those that a run states"]


def test_a_version_is_no_place_for_a_table(folder):
    edit_certificate(folder, lambda document: document.update(sfumato=RAW))
    assert failed(folder) == ["the certificate is readable and complete"]


def edit_recoding(folder, change):
    path = folder / "recoding.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    change(document)
    path.write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")
    rehash(folder)


@pytest.mark.parametrize("text", [RAW, "{}", '{"raw": 1}', "[]", json.dumps({"raw": RAW})])
def test_a_recoding_of_something_else_is_found(folder, text):
    (folder / "recoding.json").write_text(text)
    rehash(folder)
    assert failed(folder) == ["the recoding can be read"]


def add(name, text=RAW):
    return lambda document: document.update({name: text})


def of_axis(number, **changes):
    return lambda document: document["attributes"][number].update(changes)


def more_labels(document):
    axis = document["attributes"][2]
    axis["labels"].append(RAW)
    axis["parent"].append(0)


def other_parent(document):
    axis = document["attributes"][1]
    axis["labels"][1] = RAW


def other_threshold(document):
    at = next(i for i, point in enumerate(document["nodes"]["threshold"]) if point is not None)
    document["nodes"]["threshold"][at] += 1


def another_column(document):
    document["nodes"]["raw"] = document["nodes"]["axis"]


def in_leaves(document):
    nodes = document["nodes"]
    at = nodes["axis"].index(-1)
    nodes["threshold"][at] = 23.0


def covers_of_splits(document):
    """Numbers where no box has any use for them."""
    nodes = document["nodes"]
    nodes["cover_2"] = [
        0 if axis in (0, 1) else cover for axis, cover in zip(nodes["axis"], nodes["cover_2"], strict=True)
    ]


@pytest.mark.parametrize(
    "change",
    [
        add("raw"),
        add("format", 1),
        add("format", 9),
        of_axis(0, raw=RAW),
        of_axis(0, low=23.5),
        of_axis(0, grid=2),
        of_axis(0, low=10**400),
        of_axis(0, high=1e308),
        of_axis(0, grid=10**400),
        of_axis(1, bounds=[23, 25]),
        covers_of_splits,
        of_axis(0, name=RAW),
        more_labels,
        other_parent,
        other_threshold,
        another_column,
        in_leaves,
    ],
)
def test_a_recoding_tells_no_more_than_the_rows(folder, change):
    edit_recoding(folder, change)
    assert set(failed(folder)) & {
        "the recoding can be read",
        "the boxes of the recoding are those of the rows",
    }


@pytest.mark.parametrize("changes", [{"low": 1e30}, {"high": 10**12}, {"grid": 1e300}])
def test_days_that_no_calendar_has_are_a_fault_of_the_recoding(tmp_path, changes):
    born = pa.array([f"{1930 + i % 60}-0{1 + i % 9}-11" for i in range(120)])
    policy = POLICY.replace("name: {role: identifier}", "name: {role: quasi-identifier, type: date}")
    sf.publish(patients().set_column(0, "name", born), Policy.parse(policy), seed=1).write(tmp_path / "out")
    assert failed(tmp_path / "out") == []
    edit_recoding(tmp_path / "out", of_axis(0, **changes))
    assert failed(tmp_path / "out") == ["the recoding can be read"]


def test_a_key_that_stands_twice_is_found(folder):
    path = folder / "recoding.json"
    path.write_text('{"format": "raw",' + path.read_text().removeprefix("{"))
    rehash(folder)
    assert failed(folder) == ["the recoding can be read"]


def test_a_file_of_nodes_that_no_recoding_names_is_found(folder):
    pq.write_table(patients(5), folder / "recoding.parquet")
    rehash(folder)
    assert failed(folder) == ["the recoding can be read"]


@pytest.mark.parametrize("values", ["labels", "bounds", "both", "summary"])
@pytest.mark.parametrize("memory", [None, 1], ids=["at once", "portions"])
def test_the_recoding_is_held_against_rows_in_every_form(tmp_path, values, memory):
    policy = Policy.parse(POLICY + f"output: {{values: {values}}}\n")
    for word in ("csv", "parquet"):
        sf.publish(patients(), policy, file_format=word).write(tmp_path / word)
        held = [
            check
            for check in verify_folder(tmp_path / word, memory=memory).checks
            if "recoding" in check.claim
        ]
        shown = "ok" if memory is None else held[-1].mark
        assert held
        assert held[-1].mark == shown
        assert verify_folder(tmp_path / word, memory=memory).ok


def test_a_recoding_of_dates_missing_cells_and_hierarchies_passes(tmp_path):
    random = np.random.default_rng(3)
    n = 400
    days = np.datetime64("2020-01-01") + random.integers(0, 900, n)
    table = pa.table(
        {
            "day": pa.array(days.astype("datetime64[D]")),
            "month": pa.array(days.astype("datetime64[D]")),
            "dose": pa.array([None if x < 0.1 else x for x in random.random(n).round(2)]),
            "grade": pa.array(random.integers(0, 50, n)),
            "city": random.choice(["a", "b", "c", None], n),
            "ward": random.choice(["w1", "w2", "w3"], n),
        }
    )
    policy = Policy.parse(
        """
        attributes:
          day: {role: quasi-identifier, type: date}
          month: {role: quasi-identifier, type: date, hierarchy: {dates: [month, quarter, year]}}
          dose: {role: quasi-identifier, type: number}
          grade: {role: quasi-identifier, type: number, bounds: [0, 50], hierarchy: {intervals: [5, 10, 50]}}
          city: {role: quasi-identifier, hierarchy: {tree: {"*": {north: [a, b], south: [c, d]}}}}
          ward: {role: quasi-identifier, values: [w1, w2, w3, w4]}
        require: [k-anonymity: 3]
        """
    )
    for word in ("csv", "parquet"):
        sf.publish(table, policy, file_format=word).write(tmp_path / word)
        assert failed(tmp_path / word) == []


def test_shared_cuts_are_held_against_the_rows_too(tmp_path):
    policy = Policy.parse(POLICY + "method: tds\n")
    sf.publish(patients(), policy, seed=1).write(tmp_path / "out")
    assert failed(tmp_path / "out") == []
    edit_recoding(tmp_path / "out", lambda document: document.update(groups=99))
    assert failed(tmp_path / "out") == ["the boxes of the recoding are those of the rows"]


# ---- names of files --------------------------------------------------------------------------------


def with_path(document):
    document["attributes"]["zip"]["hierarchy"] = "/etc/passwd"


def test_the_policy_of_a_release_opens_no_file(folder):
    """Neither verify nor apply nor reading tells of what lies elsewhere, be it there or not."""
    edit_certificate(folder, lambda document: with_path(document["policy"]))
    policy = json.loads((folder / "certificate.json").read_text())["policy"]
    (folder / "policy.yaml").write_text(json.dumps(policy))
    rehash(folder)
    (failure,) = verify_folder(folder).failures
    assert "the policy of a release names no file" in failure.detail
    with pytest.raises(PolicyError, match="names no file"):
        Release.read(folder)
    arguments = ["apply", str(folder), str(folder / "policy.yaml"), "--out", str(folder.parent / "x.csv")]
    assert "names no file" in str(CliRunner().invoke(commands, arguments).exception)


def test_a_side_table_that_a_release_names_is_not_sought():
    given = """
    attributes: {age: {role: quasi-identifier, hierarchy: {tree: {"*": [a, b]}}}}
    require: []
    method: {risk-utility: {utility-at-least: 0.5, side-table: /etc/passwd}}
    """
    assert Policy.parse(given, None).options_for(RiskUtilityOptions).side_path is None
    assert Policy.parse(given, "/home").options_for(RiskUtilityOptions).side_path == "/etc/passwd"


def test_hashes_of_parts_go_with_their_names(parts):
    folder = parts / "release.parquet"
    before = sha256_of(folder)
    (folder / "part-0.parquet").rename(folder / "part-2.parquet")
    assert sha256_of(folder) != before
    assert "the file release.parquet is as it was certified" in failed(parts)


def test_the_hash_of_parts_of_the_first_versions_is_still_read(parts):
    rows = parts / "release.parquet"
    hashes = sorted(hashlib.sha256(path.read_bytes()).hexdigest() for path in rows.iterdir())
    older = hashlib.sha256("".join(hashes).encode()).hexdigest()
    assert older == older_sha256_of(rows)
    edit_certificate(parts, lambda document: document["claims"]["sha256"].update({"release.parquet": older}))
    assert failed(parts) == []


# ---- the report ------------------------------------------------------------------------------------


def lines_of_verify(folder):
    done = CliRunner().invoke(commands, ["verify", str(folder)])
    return done.exception, done.output.splitlines()


def test_the_command_renders_the_report_again(folder):
    error, lines = lines_of_verify(folder)
    assert error is None
    assert "ok    the report is what the release is rendered as" in lines
    assert not any("the report is not checked" in line for line in lines)
    assert all(line.startswith(("ok  ", "FAIL", "note")) for line in lines)
    (folder / "report.html").write_text(RAW)
    rehash(folder)
    error, lines = lines_of_verify(folder)
    assert isinstance(error, VerificationFailed)
    assert "FAIL  the report is what the release is rendered as: it is another" in lines


@pytest.mark.parametrize(
    "n_copies", [1, 40_000]
)  # a small release, and one of which the report takes a sample
@pytest.mark.parametrize("format_", ["csv", "parquet"])
def test_cells_that_a_file_writes_otherwise_leave_the_report_as_it_is(tmp_path, format_, n_copies):
    table = pa.table(
        {
            "age": [1, 2, 3, 4] * n_copies,
            "ill": ["flu", "", None, "  "] * n_copies,
            "charge": [1.5, None, float("nan"), 2.0] * n_copies,
            "seen": pa.array([0, None, 1, 0] * n_copies, pa.timestamp("us")),
        }
    )
    attributes = {"age": {"role": "quasi-identifier", "type": "number"}, "ill": {"role": "sensitive"}}
    attributes |= {"charge": {"role": "other", "type": "number"}, "seen": {"role": "other"}}
    policy = {"attributes": attributes, "require": [{"k-anonymity": 2}]}
    sf.publish(table, policy, seed=1, file_format=format_).write(tmp_path / "release")
    error, lines = lines_of_verify(tmp_path / "release")
    assert error is None
    assert "ok    the report is what the release is rendered as" in lines


def test_a_report_that_could_not_draw_a_large_recoding_is_rendered_alike(tmp_path, monkeypatch):
    """Whoever publishes in little memory has a tree on disk, and whoever verifies may have it in memory."""
    monkeypatch.setattr(tree_file, "bytes_per_node", lambda _: 1 << 40)
    table = pa.table({"age": [1, 2, 3, 4] * 40_000})  # so many that the report takes a sample
    policy = {
        "attributes": {"age": {"role": "quasi-identifier", "type": "number"}},
        "require": [{"k-anonymity": 2}],
        "method": {"mondrian": {"refine": "none"}},
    }
    release = sf.publish(table, policy, engine="disk", memory=64_000_000)
    assert isinstance(release.recoding, LargeRecoding)
    release.write(tmp_path / "release")
    error, lines = lines_of_verify(tmp_path / "release")
    assert error is None
    assert "ok    the report is what the release is rendered as" in lines


def test_the_report_of_another_version_is_not_judged(folder):
    edit_certificate(folder, lambda document: document.update(sfumato="0.0.1"))
    error, lines = lines_of_verify(folder)
    assert error is None
    assert any(
        line.startswith("note  the report is not checked: it was made by version 0.0.1") for line in lines
    )


def test_a_folder_that_is_none_is_bad_input(tmp_path):
    with pytest.raises(InputError):
        verify_folder(tmp_path / "nowhere")
