"""One contract for every release, whatever is required, what it is for, how it looks and what came in."""

from __future__ import annotations

import importlib
import itertools
import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from commandline import names

import sfumato as sf
from sfumato.errors import InputError, VerificationFailed
from sfumato.examples.demo import hierarchies, patients
from sfumato.methods.mondrian import tree_run
from sfumato.policy.options.mondrian import MondrianOptions
from sfumato.table.write import write_table

publishing = importlib.import_module("sfumato.publishing")  # the name itself is the function

N = 240
ATTRIBUTES = f"""
attributes:
  patient_id:       {{role: identifier}}
  insurance_number: {{role: drop}}
  age:              {{role: quasi-identifier, type: number, bounds: [0, 110], step: 1}}
  sex:              {{role: quasi-identifier, values: [Female, Male]}}
  zip:              {{role: quasi-identifier, hierarchy: {{mask: 5}}}}
  education:        {{role: quasi-identifier, hierarchy: {{tree: {json.dumps(hierarchies()["education"].as_tree())}}}}}
  admitted:         {{role: quasi-identifier, type: date}}
  smoker:           {{role: quasi-identifier}}
  diagnosis:        {{role: sensitive}}
  charge:           {{role: sensitive, type: number, passes: unique}}
  length_of_stay:   {{role: other, type: number}}
  readmitted:       {{role: other}}
  row:              {{role: other, passes: unique}}
"""
UNTOUCHED = ("diagnosis", "charge", "length_of_stay", "readmitted", "row")

REQUIREMENTS = {
    "k": "[k-anonymity: 5]",
    "entropy": "[entropy-diversity: {l: 2.5, of: diagnosis}]",
    "recursive": "[recursive-diversity: {c: 2, l: 3, of: diagnosis}]",
    "variance": "[variance-diversity: {at-least: 2.0e+7, of: charge}]",
    "all": "[k-anonymity: 4, entropy-diversity: {l: 2, of: diagnosis}, recursive-diversity: {c: 4, l: 2, of: diagnosis},"
    " variance-diversity: {at-least: 1.0e+6, of: charge}]",
    "nothing": "[]",
}
WORKLOADS = {
    "median": "[]",
    "infogain": "[classify: readmitted]",
    "regression": "[regress: length_of_stay]",
    "joint": "[classify: {targets: [readmitted, smoker], joint: true}]",
    "mixture": "[classify: {targets: [readmitted, sex], weight: 2}, regress: {targets: [length_of_stay, age]}]",
}
OUTPUTS = ("labels", "bounds", "both")


def the_policy(requirement: str = "k", workload: str = "median", output: str = "labels") -> sf.Policy:
    chosen = f"require: {REQUIREMENTS[requirement]}\nworkload: {WORKLOADS[workload]}"
    return sf.Policy.parse(f"{ATTRIBUTES}\n{chosen}\noutput: {{values: {output}}}")


def raw(n_rows: int = N) -> pa.Table:
    """Patients, with a column that tells each input row: it shows in what order rows come out."""
    drawn = patients(n_rows, seed=19930526).drop_columns(["occupation", "marital_status"])
    return drawn.append_column("row", pa.array([f"r{i:05d}" for i in range(n_rows)]))


TABLE = raw()


def as_csv(table: pa.Table, folder: Path) -> Path:
    write_table(table, folder / "t.csv")
    return folder / "t.csv"


def as_parquet(table: pa.Table, folder: Path) -> Path:
    pq.write_table(table, folder / "t.parquet")
    return folder / "t.parquet"


KINDS = {
    "pyarrow": (lambda table, _: table, pa.Table),
    "pandas": (lambda table, _: table.to_pandas(), pd.DataFrame),
    "polars": (lambda table, _: pl.from_arrow(table), pl.DataFrame),
    "duckdb": (lambda table, _: duckdb.from_arrow(table), duckdb.DuckDBPyRelation),
    "csv": (as_csv, pa.Table),
    "parquet": (as_parquet, pa.Table),
}

EACH = list(itertools.product(REQUIREMENTS, WORKLOADS, OUTPUTS))
CASES = [  # each with one kind of frame in turn, and every kind with every output
    *((*case, list(KINDS)[i % len(KINDS)]) for i, case in enumerate(EACH)),
    *(("all", "mixture", output, kind) for output in OUTPUTS for kind in KINDS),
]


def published(requirement: str, workload: str, output: str, kind: str, folder: Path) -> sf.Release:
    make, _ = KINDS[kind]
    return sf.publish(make(TABLE, folder), the_policy(requirement, workload, output))


@pytest.mark.parametrize(("requirement", "workload", "output", "kind"), CASES)
def test_every_release_keeps_the_contract(tmp_path, requirement, workload, output, kind):
    release = published(requirement, workload, output, kind, tmp_path)
    assert isinstance(release.table, KINDS[kind][1])
    rows = release.rows
    check_columns(rows.column_names, output)
    check_rows(rows)
    check_boxes(rows, output)
    check_order(rows)
    release.write(tmp_path / "out")
    verdict = sf.verify_folder(tmp_path / "out")
    assert verdict.ok, verdict.failures
    assert release.format == ("csv" if kind == "csv" else "parquet")


def check_columns(columns: list[str], output: str) -> None:
    """Identifiers and dropped columns are gone, the others stand where they stood."""
    expected = []
    for name in TABLE.column_names:
        if name in ("age", "admitted") and output != "labels":
            expected += ([name] if output == "both" else []) + [f"{name}_low", f"{name}_high"]
            expected += [f"{name}_missing"] if TABLE.column(name).null_count else []
        elif name not in ("patient_id", "insurance_number"):
            expected.append(name)
    assert columns == expected


def check_rows(rows: pa.Table) -> None:
    """Untouched columns hold the same rows, each as often as before."""
    assert multiset(rows.select(UNTOUCHED)) == multiset(TABLE.select(UNTOUCHED))


def multiset(table: pa.Table) -> Counter:
    columns = [column.cast(pa.string()).to_pylist() for column in table.columns]
    return Counter(zip(*columns, strict=True))


def check_order(rows: pa.Table) -> None:
    order = [int(cell[1:]) for cell in rows.column("row").to_pylist()]
    assert order != sorted(order)
    assert order != sorted(order, reverse=True)


# ---- each row lies in its published box ----------------------------------------------------------------

ENDS = re.compile(r"(?:[\[(](?P<low>[^,]+), (?P<high>[^\]]+)\]|(?P<one>.+?))(?P<missing> or missing)?")


def check_boxes(rows: pa.Table, output: str) -> None:
    """What is published of a row is true of it. The column ``row`` finds the raw one."""
    by_row = {row["row"]: row for row in TABLE.to_pylist()}
    trees = {"education": hierarchies()["education"]}
    for found in rows.to_pylist():
        given = by_row[found["row"]]
        for name in ("age", "admitted"):
            if output != "bounds":
                assert within_label(found[name], given[name]), name
            if output != "labels":
                ends = found[f"{name}_low"], found[f"{name}_high"]
                assert within_bounds(*ends, given[name], may_miss=found.get(f"{name}_missing", False)), name
        assert found["zip"] == "*" or re.fullmatch(re.escape(found["zip"]).replace(r"\*", "."), given["zip"])
        assert found["sex"] in ("*", given["sex"])
        assert found["smoker"] in ("*", given["smoker"])
        assert is_above(found["education"], given["education"], trees["education"])


def within_label(label: str | None, value) -> bool:
    if label is None:
        return value is None
    found = ENDS.fullmatch(label)
    assert found is not None
    if value is None:
        return bool(found["missing"])
    if found["one"]:
        return found["one"] == str(value)
    low, high = (type_of(value)(found[end]) for end in ("low", "high"))
    return low <= value <= high


def type_of(value):
    return int if isinstance(value, int) else type(value).fromisoformat


def within_bounds(low, high, value, *, may_miss) -> bool:
    """A missing value may stand only where that is said beside the bounds, and alone where there are none."""
    if value is None:
        return may_miss and (low is None) == (high is None)
    return high is not None and low is not None and low <= value <= high


def is_above(label: str | None, value: str | None, tree: sf.Hierarchy) -> bool:
    if value is None or label is None:
        return label == "*" or value is label
    (leaf,) = [node for node in tree.leaf_nodes.tolist() if tree.labels[node] == value]
    return label in tree.path(leaf)


@pytest.mark.parametrize("output", OUTPUTS)
def test_the_check_of_boxes_can_fail(output):
    rows = sf.publish(TABLE, the_policy(output=output)).rows
    check_boxes(rows, output)
    at = rows.column_names.index("row")
    turned = np.roll(np.array(rows.column("row").to_pylist()), 5)
    with pytest.raises(AssertionError):
        check_boxes(rows.set_column(at, "row", pa.array(turned)), output)


# ---- order and by-products ------------------------------------------------------------------------------


def order_of(release: sf.Release) -> list[str]:
    return release.rows.column("row").to_pylist()


def test_a_release_of_one_group_is_in_random_order():
    """Spearman's rank correlation with the input is near 0; 0.3 is 4.6 standard deviations away."""
    policy = replace(the_policy(), requirements=(sf.KAnonymity(N),))
    release = sf.publish(TABLE, policy)
    assert release.certificate.claims.groups == 1
    place = np.array([int(cell[1:]) for cell in order_of(release)])
    assert abs(np.corrcoef(place, np.arange(N))[0, 1]) < 0.3
    assert order_of(sf.publish(TABLE, policy)) != order_of(release)


def test_the_order_within_a_group_is_uniform():
    """Groups of 2: the earlier row comes first half the time (4 standard deviations on either side)."""
    table = pa.table({"age": np.repeat(np.arange(1000), 2), "row": np.arange(2000)})
    policy = sf.Policy.parse(
        "{attributes: {age: {role: quasi-identifier, type: number}, row: {role: other, passes: unique}}, "
        "require: [k-anonymity: 2]}"
    )
    release = sf.publish(table, policy, seed=1)
    assert release.certificate.claims.groups == 1000
    rows = release.rows.column("row").to_numpy().reshape(1000, 2)
    assert abs(int((rows[:, 0] < rows[:, 1]).sum()) - 500) < 64


def test_a_seed_repeats_the_order_and_nothing_else_does(tmp_path):
    policy = the_policy()
    one, two, three = (sf.publish(TABLE, policy, seed=seed) for seed in (5, 5, 6))
    assert order_of(one) == order_of(two) != order_of(three)
    assert one.rows.equals(two.rows)
    assert boxes(one) == boxes(three)
    for name, release in (("one", one), ("two", two)):
        release.write(tmp_path / name)
    assert all(
        (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()
        for file in names(tmp_path / "one")
    )


CATEGORIES = [f"c{i * 37 % 101:03d}" for i in range(100)]  # neither in this order nor sorted in the release


def with_categories(n_rows: int = 1000) -> pa.Table:
    """A passed-on column whose first cells list its categories in the order of the input."""
    cells = [CATEGORIES[i % 100] for i in range(n_rows)]
    return pa.table({"age": [i * 7 % 50 for i in range(n_rows)], "ward": cells, "row": range(n_rows)})


WARDS = sf.Policy.parse("""
attributes:
  age:  {role: quasi-identifier, type: number}
  ward: {role: other}
  row:  {role: other, passes: unique}
require: [k-anonymity: 10]
""")


@pytest.mark.parametrize(
    "kind", ["csv", "parquet", "pyarrow", "dictionary", "pandas", "categorical", "polars", "enum"]
)
def test_dictionaries_hold_neither_the_order_of_the_input_nor_unused_values(tmp_path, kind):
    table = with_categories()
    unused = [*CATEGORIES, "SECRET-CELL"]
    frame = {
        "csv": lambda: as_csv(table, tmp_path),
        "parquet": lambda: as_parquet(table, tmp_path),
        "pyarrow": lambda: table,
        "dictionary": lambda: table.set_column(
            1, "ward", table["ward"].cast(pa.dictionary(pa.int32(), pa.string())).combine_chunks()
        ),
        "pandas": table.to_pandas,
        "categorical": lambda: table.to_pandas().assign(
            ward=lambda frame: pd.Categorical(frame["ward"], categories=unused)
        ),
        "polars": lambda: pl.from_arrow(table),
        "enum": lambda: pl.from_arrow(table).with_columns(pl.col("ward").cast(pl.Enum(unused))),
    }[kind]()
    release = sf.publish(frame, WARDS, file_format="parquet")
    release.write(tmp_path / "out")
    file = tmp_path / "out" / "release.parquet"
    ward = pq.ParquetFile(file, read_dictionary=["ward"]).read(["ward"]).column("ward").combine_chunks()
    kept = ward.dictionary.to_pylist()
    cells = ward.cast(pa.string()).to_pylist()
    assert sorted(kept) == sorted(CATEGORIES)
    assert kept in (sorted(kept), list(dict.fromkeys(cells)))
    assert kept != CATEGORIES
    assert "SECRET-CELL" not in str(dictionaries(release.table))


def dictionaries(frame) -> list:
    """The categories that a returned frame carries along."""
    if isinstance(frame, pd.DataFrame):
        return [
            list(frame[name].cat.categories)
            for name in frame
            if isinstance(frame[name].dtype, pd.CategoricalDtype)
        ]
    table = frame.to_arrow() if isinstance(frame, pl.DataFrame) else frame
    return [
        column.chunk(0).dictionary.to_pylist()
        for column in table.columns
        if pa.types.is_dictionary(column.type)
    ]


def test_parquet_carries_nothing_that_links_back(tmp_path):
    frame = TABLE.to_pandas().set_index("patient_id", drop=False).rename_axis("SECRET-INDEX")
    frame.attrs["owner"] = "SECRET-OWNER"
    annotated = pa.Table.from_pandas(frame.rename_axis(None)).replace_schema_metadata({"k": "SECRET-META"})
    annotated = annotated.cast(
        pa.schema(
            [field.with_metadata({"note": "SECRET-FIELD"}) for field in annotated.schema],
            {"k": "SECRET-META"},
        )
    )
    pq.write_table(annotated, tmp_path / "annotated.parquet")
    for i, given in enumerate((frame, annotated, tmp_path / "annotated.parquet")):
        release = sf.publish(given, the_policy(output="both"))
        release.write(tmp_path / f"out{i}")
        file = pq.ParquetFile(tmp_path / f"out{i}" / "release.parquet")
        assert set(file.metadata.metadata or {}) <= {b"ARROW:schema"}
        assert file.schema_arrow.metadata is None
        assert all(field.metadata is None for field in file.schema_arrow)
        for group in range(file.metadata.num_row_groups):
            part = file.metadata.row_group(group)
            assert not part.sorting_columns
            chunks = [part.column(i) for i in range(part.num_columns)]
            assert not any(chunk.is_stats_set or chunk.has_column_index for chunk in chunks)
        for path in (tmp_path / f"out{i}").iterdir():
            assert b"SECRET" not in path.read_bytes(), path.name
        assert "patient_id" not in release.rows.column_names


def test_the_index_of_pandas_is_neither_read_nor_handed_back():
    frame = TABLE.to_pandas()
    shuffled = frame.set_axis([f"id{i}" for i in range(N)]).rename_axis("who")
    for given in (frame, shuffled, frame.set_index(["sex", "zip"], drop=False)):
        back = sf.publish(given, the_policy()).table
        assert isinstance(back.index, pd.RangeIndex)
        assert back.index.name is None
        assert not back.attrs
        assert list(back.columns) == [
            name for name in TABLE.column_names if name not in ("patient_id", "insurance_number")
        ]


@pytest.mark.parametrize("format_", ["csv", "parquet"])
def test_no_cell_of_a_removed_column_is_in_any_file(tmp_path, format_):
    release = sf.publish(TABLE, the_policy(), file_format=format_)
    release.write(tmp_path / "out")
    removed = {*TABLE["patient_id"].to_pylist(), *TABLE["insurance_number"].to_pylist()}
    for path in (tmp_path / "out").iterdir():
        words = set(re.findall(rb"[A-Za-z]?\d{6,}", path.read_bytes()))
        assert not words & {word.encode() for word in removed}, path.name
    texts = pa.concat_arrays([column.cast(pa.string()).combine_chunks() for column in release.rows.columns])
    assert not pc.any(pc.is_in(texts, value_set=pa.array(sorted(removed)))).as_py()


def test_nothing_but_the_rows_holds_raw_quasi_identifiers(tmp_path):
    """Neither recoding nor certificate nor policy nor report lists the zip codes or days of the table."""
    release = sf.publish(TABLE, replace(the_policy(), requirements=(sf.KAnonymity(20),)))
    release.write(tmp_path / "out")
    published = {str(cell) for column in release.rows.columns for cell in column.to_pylist()}
    hidden = {*TABLE["zip"].to_pylist()} - published
    assert len(hidden) > 30
    for name in ("recoding.json", "certificate.json", "policy.yaml", "report.html"):
        words = set(re.findall(r"\b\d{5}\b", (tmp_path / "out" / name).read_text()))
        assert not words & hidden, name


# ---- same input, same boxes -----------------------------------------------------------------------------


def boxes(release: sf.Release) -> Counter:
    """The published quasi-identifiers, without their order."""
    return multiset(
        release.rows.drop_columns([name for name in UNTOUCHED if name in release.rows.column_names])
    )


@pytest.mark.parametrize("workload", WORKLOADS)
def test_the_boxes_depend_on_the_rows_alone(tmp_path, workload):
    """Not on the order of rows, the kind of frame, the chunks or the number of threads."""
    policy = the_policy("all", workload)
    expected = boxes(sf.publish(TABLE, policy))
    shuffled = TABLE.take(np.random.default_rng(1).permutation(N))
    chunked = pa.concat_tables([TABLE.slice(start, 7) for start in range(0, N, 7)])
    for other in (shuffled, TABLE.slice(100, 140), chunked):
        if len(other) == N:
            assert boxes(sf.publish(other, policy)) == expected
        else:
            assert boxes(sf.publish(other, policy)) != expected  # so the test can fail
    for threads in (1, 3):
        assert boxes(sf.publish(TABLE, policy, threads=threads)) == expected
    for make, _ in KINDS.values():
        assert boxes(sf.publish(make(TABLE, tmp_path), policy)) == expected


def test_columns_in_another_order_give_the_same_boxes():
    """The policy names the attributes, and its order breaks ties."""
    policy = the_policy("all", "infogain")
    one, two = (sf.publish(table, policy).rows for table in (TABLE, TABLE.select(TABLE.column_names[::-1])))
    assert two.column_names == one.column_names[::-1]
    assert multiset(two.select(one.column_names)) == multiset(one)


def test_the_recoding_gives_the_published_rows_their_published_cells():
    release = sf.publish(TABLE, the_policy("all", "mixture", "both"))
    again = release.recoding.apply(TABLE)
    assert multiset(again) == multiset(release.rows)
    assert again.column("row").to_pylist() == TABLE.column("row").to_pylist()


@pytest.mark.parametrize("kind", ["pyarrow", "pandas", "polars", "duckdb"])
def test_apply_and_transform_hand_back_the_kind_of_frame_that_came_in(tmp_path, kind):
    make, expected = KINDS[kind]
    policy = the_policy()
    release = sf.publish(TABLE, policy)
    assert isinstance(release.recoding.apply(make(TABLE, tmp_path)), expected)
    model = sf.Mondrian(requirement=policy.requirements, schema=policy.schema).fit(make(TABLE, tmp_path))
    back = model.transform(make(TABLE, tmp_path))
    assert isinstance(back, expected)
    assert multiset(pa.table(back) if kind == "duckdb" else as_arrow(back)) == multiset(release.rows)


def as_arrow(frame) -> pa.Table:
    if isinstance(frame, pd.DataFrame):
        return pa.Table.from_pandas(frame, preserve_index=False)
    return frame.to_arrow() if isinstance(frame, pl.DataFrame) else frame


# ---- the estimator --------------------------------------------------------------------------------------


def an_estimator(**changes) -> sf.Mondrian:
    policy = the_policy()
    given = {
        "requirement": [sf.KAnonymity(5)],
        "schema": policy.schema,
        "workload": [sf.Classify("readmitted")],
    }
    return sf.Mondrian(**{**given, **changes})


def test_the_constructor_only_stores():
    """Even nonsense: it is ``fit`` that looks at it."""
    names = (
        "requirement", "schema", "workload", "options", "output", "numbers", "rest_labels", "threads"
    )  # fmt: skip
    things = {name: object() for name in names}
    model = sf.Mondrian(**things)
    assert model.get_params() == things
    assert all(getattr(model, name) is thing for name, thing in things.items())
    assert vars(model) == things
    make: Any = sf.Mondrian
    with pytest.raises(TypeError):
        make(sf.KAnonymity(5), the_policy().schema)  # options are never positional


def test_parameters_can_be_read_and_set():
    model = an_estimator()
    assert model.set_params(output="bounds", threads=1) is model
    assert (model.get_params()["output"], model.threads) == ("bounds", 1)
    assert model.get_params(deep=False) == model.get_params(deep=True)
    with pytest.raises(InputError, match=r"no parameter 'outputs'.*Did you mean 'output'"):
        model.set_params(outputs="labels")


def test_scikit_learn_can_clone_it():
    base = pytest.importorskip("sklearn.base")
    fitted = an_estimator().fit(TABLE)
    copy = base.clone(fitted)
    assert isinstance(copy, sf.Mondrian)
    assert copy.get_params() == fitted.get_params()
    assert not hasattr(copy, "recoding_")
    assert copy.fit(TABLE).transform(TABLE).equals(fitted.transform(TABLE))


def test_fit_returns_the_model_and_learns_what_publish_publishes():
    model = an_estimator()
    assert model.fit(TABLE) is model
    policy = replace(the_policy(), requirements=(sf.KAnonymity(5),), workload=(sf.Classify("readmitted"),))
    published = sf.publish(TABLE, policy).rows
    assert multiset(model.recoding_.apply(TABLE)) == multiset(published)
    assert multiset(model.transform(TABLE)) == multiset(published.drop_columns(["readmitted"]))  # the target


def test_transform_needs_the_quasi_identifiers_only():
    model = an_estimator().fit(TABLE)
    quasi = [attribute.name for attribute in the_policy().schema.quasi_identifiers]
    assert model.transform(TABLE.select(quasi)).column_names == quasi
    with pytest.raises(InputError, match="not been fitted"):
        an_estimator().transform(TABLE)


# ---- whole or not at all --------------------------------------------------------------------------------


def test_a_release_is_verified_before_it_appears(tmp_path):
    release = sf.publish(TABLE, the_policy())
    lone = pa.array(["nowhere", *release.rows.column("smoker").cast(pa.string()).to_pylist()[1:]])
    at = release.rows.column_names.index("smoker")
    tampered = replace(release, rows=release.rows.set_column(at, "smoker", lone))
    with pytest.raises(VerificationFailed, match="5-anonymity holds is false: the smallest group is 1"):
        tampered.write(tmp_path / "out")
    assert names(tmp_path) == []
    release.write(tmp_path / "out")
    with pytest.raises(VerificationFailed):
        tampered.write(tmp_path / "out", overwrite=True)
    assert sf.verify_folder(tmp_path / "out").ok
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("fault", ["a row lost", "a row twice", "a column more", "a claim too good"])
def test_no_fault_of_the_rows_or_claims_is_written(tmp_path, fault):
    release = sf.publish(TABLE, the_policy())
    claims = release.certificate.claims
    broken = {
        "a row lost": lambda: replace(release, rows=release.rows.slice(1)),
        "a row twice": lambda: replace(
            release, rows=pa.concat_tables([release.rows, release.rows.slice(0, 1)])
        ),
        "a column more": lambda: replace(release, rows=release.rows.append_column("id", pa.array(range(N)))),
        "a claim too good": lambda: replace(
            release,
            certificate=replace(
                release.certificate,
                claims=replace(claims, requirements=(replace(claims.requirements[0], achieved=99.0),)),
            ),
        ),
    }[fault]()
    with pytest.raises(VerificationFailed):
        broken.write(tmp_path / "out")
    assert names(tmp_path) == []


def test_a_partition_that_breaks_the_promise_is_caught_by_verify(tmp_path, monkeypatch):
    """Were the algorithm wrong, verify (which knows nothing of it) would say so before anything is written."""

    honest = tree_run.problem_of

    def careless(table, axes, policy, options):
        return honest(table, axes, replace(policy, requirements=(sf.KAnonymity(1),)), options)

    monkeypatch.setattr(tree_run, "problem_of", careless)
    with pytest.raises(VerificationFailed, match="5-anonymity holds is false"):
        publishing.publish_to(tmp_path / "out", TABLE, the_policy())
    assert names(tmp_path) == []


def test_a_written_release_can_be_read_and_applied(tmp_path):
    release = sf.publish(TABLE, the_policy("all", "infogain"))
    certificate = release.write(tmp_path / "out")
    back = sf.Release.read(tmp_path / "out")
    assert back.certificate == certificate
    assert multiset(back.rows) == multiset(release.rows)
    more = raw(500).slice(N)
    assert multiset(back.recoding.apply(more)) == multiset(release.recoding.apply(more))


# ---- columns that are passed on, and options ------------------------------------------------------------

PASSED = sf.Policy.parse(
    "{attributes: {age: {role: quasi-identifier, type: number}, x: {role: other, passes: unique}}, "
    "require: [k-anonymity: 5]}"
)
STORED = {
    "missing throughout": pa.nulls(20),
    "a view": pa.array(["a", "b"] * 10, pa.string_view()),
    "runs": pa.RunEndEncodedArray.from_arrays([10, 20], ["a", "b"]),
    "a dictionary with a missing value": pa.DictionaryArray.from_arrays(
        pa.array([0, 1] * 10), pa.array(["a", None])
    ),
    "a dictionary of numbers": pa.array([7, 5] * 10).dictionary_encode(),
    "bytes of text": pa.array([b"a", b"b"] * 10),
    "truth": pa.array([True, False] * 10),
    "not a number": pa.array([float("nan"), float("inf")] * 10),
    "a decimal": pa.array(range(20)).cast(pa.decimal128(21, 2)),
    "times": pa.array(range(20), pa.timestamp("ns", tz="Europe/Berlin")),
    "durations": pa.array(range(20), pa.duration("s")),
    "numbers beyond 2^63": pa.array([2**64 - 1] * 20, pa.uint64()),
    "texts that need quotes": pa.array(['x"y', "x,y", "x\ny", " ", ""] * 4),
}
REFUSED = {
    "lists": pa.array([[1, 2]] * 20),
    "structures": pa.array([{"a": 1}] * 20),
    "bytes": pa.array([b"\xff\xfe"] * 20),
}


@pytest.mark.parametrize("format_", ["csv", "parquet"])
@pytest.mark.parametrize("case", STORED)
def test_a_column_is_passed_on_however_it_is_stored(tmp_path, case, format_):
    table = pa.table({"age": range(20), "x": STORED[case]})
    release = sf.publish(table, PASSED, file_format=format_)
    release.write(tmp_path / "out")
    assert release.rows.num_rows == 20
    assert release.recoding.apply(table).num_rows == 20


@pytest.mark.parametrize("case", REFUSED)
def test_a_column_without_one_text_per_cell_is_refused(case):
    table = pa.table({"age": range(20), "x": REFUSED[case]})
    with pytest.raises(InputError, match="Column 'x'"):
        sf.publish(table, PASSED)
    fitted = sf.publish(table.set_column(1, "x", pa.array(range(20))), PASSED)
    with pytest.raises(InputError, match="Column 'x'"):
        fitted.recoding.apply(table)


def test_a_further_column_with_the_name_of_a_bound_is_refused():
    release = sf.publish(TABLE, the_policy(output="bounds"))
    with pytest.raises(InputError, match="'age_low'"):
        release.recoding.apply(TABLE.append_column("age_low", pa.array(range(N))))


def test_only_the_attributes_of_split_only_are_split():
    policy = replace(the_policy(), method=MondrianOptions(split_only=("age", "smoker")))
    splits = sf.publish(TABLE, policy).recoding.n_splits()
    assert {name for name, n in splits.items() if n} == {"age", "smoker"}


def test_fractions_between_whole_ends_have_a_balanced_hierarchy_too():
    policy = sf.Policy.parse(
        "{attributes: {bmi: {role: quasi-identifier, type: number, hierarchy: {balanced: 2}}}, require: [k-anonymity: 2]}"
    )
    assert sf.publish(pa.table({"bmi": [15.0, 22.5, 23.1, 60.0]}), policy).certificate.claims.rows == 4


@pytest.mark.parametrize("task", [sf.Classify("same"), sf.Regress("one")])
def test_a_target_that_never_varies_does_no_harm(task):
    table = pa.table({"age": range(20), "same": ["a"] * 20, "one": [1] * 20})
    policy = sf.Policy(
        sf.Schema.of(
            age={"role": "quasi-identifier", "kind": "number"},
            same="other",
            one={"role": "other", "kind": "number"},
        ),
        (sf.KAnonymity(5),),
        (task,),
        MondrianOptions(standardize=True),
    )
    assert sf.publish(table, policy).certificate.claims.groups == 4


def test_publish_raises_if_the_method_broke_its_requirement(monkeypatch):
    honest = tree_run.problem_of

    def sabotaged(table, axes, policy, options):
        return honest(table, axes, replace(policy, requirements=(sf.KAnonymity(1),)), options)

    monkeypatch.setattr(tree_run, "problem_of", sabotaged)
    policy = sf.Policy.parse(
        "{attributes: {age: {role: quasi-identifier, type: number}}, require: [k-anonymity: 2]}"
    )
    with pytest.raises(VerificationFailed, match="2-anonymity"):
        sf.publish(pa.table({"age": [1, 2, 3, 4]}), policy)


def test_a_release_recodes_further_rows_without_their_identifiers():
    policy = sf.Policy.parse(
        "{attributes: {id: {role: identifier}, age: {role: quasi-identifier, type: number}}, require: [k-anonymity: 2]}"
    )
    table = pa.table({"id": ["a", "b", "c", "d"], "age": [1, 2, 3, 4]})
    assert sf.publish(table, policy).recoding.apply(table).column_names == ["age"]


@pytest.mark.parametrize("names", [("a;b", "c"), ("1", "2"), (" a", "b"), ("a|b|c|d", "e")])
def test_column_names_that_look_like_something_else_are_verified_as_they_stand(tmp_path, names):
    attributes = {names[0]: {"role": "quasi-identifier"}, names[1]: {"role": "other"}}
    policy = sf.Policy.from_dict({"attributes": attributes, "require": [{"k-anonymity": 2}]})
    table = pa.table({names[0]: ["x", "x", "y", "y"], names[1]: ["1|2|3|4", "b;c", "c", "d"]})
    sf.publish(table, policy, file_format="csv").write(tmp_path / "out")
    sf.verify_folder(tmp_path / "out").raise_if_failed()
