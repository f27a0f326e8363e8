"""The engine `disk`: the boxes of the engine `memory` by Rothko-T, and a release that holds by Rothko-S."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from people import PEOPLE, REQUIREMENTS, WORKLOADS, people, the_policy

import sfumato as sf
from sfumato.errors import InputError
from sfumato.table.write import write_table

QUASI = ("age", "sex", "city", "born")
LITTLE = 4_000_000
TINY = "rows-in-memory: 40, frequency-groups: 2"


def rows_of(table: pa.Table) -> Counter[tuple[object, ...]]:
    """The rows in any order; what is missing may be an empty text."""
    cells = [[None if cell == "" else cell for cell in column.to_pylist()] for column in table.columns]
    return Counter(zip(*cells, strict=True))


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "people.parquet"
    pq.write_table(PEOPLE, path, row_group_size=97)
    return path


@pytest.mark.parametrize("required", REQUIREMENTS)
@pytest.mark.parametrize("workload", WORKLOADS)
def test_rothko_t_publishes_what_the_engine_in_memory_does(workload, required, path):
    in_memory = sf.publish(PEOPLE, the_policy("mondrian", workload, required), seed=1)
    on_disk = sf.publish(
        path,
        the_policy(f"{{mondrian: {{{TINY}}}}}", workload, required),
        seed=1,
        engine="disk",
        memory=LITTLE,
    )
    assert rows_of(on_disk.table) == rows_of(in_memory.table)
    io = on_disk.certificate.figures["io"]
    assert io["levels"] >= 2
    assert io["repartitions"] >= 2
    mine, theirs = (dict(release.certificate.figures) for release in (on_disk, in_memory))
    mine.pop("io")
    assert mine == theirs
    assert on_disk.certificate.claims == in_memory.certificate.claims


def test_a_number_that_is_sensitive_and_a_feature_is_cut_on_disk_as_it_is_in_memory(path):
    asked = (sf.KAnonymity(4), sf.EntropyDiversity(2, of="hours"))
    mine, theirs = (
        replace(the_policy(method, "features", "k"), requirements=asked)
        for method in (f"{{mondrian: {{{TINY}}}}}", "mondrian")
    )
    on_disk = sf.publish(path, mine, engine="disk", memory=LITTLE)
    assert rows_of(on_disk.table) == rows_of(sf.publish(PEOPLE, theirs).table)


@pytest.mark.parametrize("role", ["quasi-identifier", "sensitive", "other"])
def test_a_column_without_any_value_or_type_is_published_as_in_memory(role, tmp_path):
    table = pa.table({"age": range(40), "job": pa.nulls(40), "ill": ["yes", "no"] * 20})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=7)
    features = "[age]" if role == "quasi-identifier" else "[job]"
    policy = sf.Policy.parse(
        "attributes: {age: {role: quasi-identifier, type: number}, ill: {role: other}, "
        f"job: {{role: {role}}}}}\n"
        "require: [k-anonymity: 5]\n"
        f"workload: [classify: ill, classify: {{target: ill, features: {features}}}]"
    )
    on_disk = sf.publish(tmp_path / "t.parquet", policy, engine="disk", memory=LITTLE)
    assert rows_of(on_disk.table) == rows_of(sf.publish(tmp_path / "t.parquet", policy).table)


SAMPLED = "scale: rothko-s, rows-in-memory: 60"


ENGINES = {"disk": {"engine": "disk", "memory": LITTLE}, "memory": {"engine": "memory"}}
"""Rothko-S draws the same samples on every engine."""


def groups_of_a_verified_release(policy: sf.Policy, engine: str, path: Path, folder: Path) -> list[list[int]]:
    """The row numbers of the groups of a release that is verified, and passes on the other columns."""
    release = sf.publish(path, policy, seed=1, **ENGINES[engine])
    release.write(folder)
    assert sf.verify_folder(folder).ok
    rows = release.table
    assert rows.num_rows == PEOPLE.num_rows
    passed_on = ["disease", "hours", "income"]
    assert rows_of(rows.select(passed_on)) == rows_of(PEOPLE.select(passed_on))
    boxes = release.recoding.apply(PEOPLE)
    of_box: dict[tuple[object, ...], list[int]] = {}
    for i, box in enumerate(zip(*(boxes.column(name).to_pylist() for name in QUASI), strict=True)):
        of_box.setdefault(box, []).append(i)
    assert len(of_box) == release.certificate.claims.groups
    return list(of_box.values())


@pytest.mark.parametrize("required", REQUIREMENTS)
@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("engine", ENGINES)
def test_rothko_s_keeps_every_promise(engine, workload, required, path, tmp_path):
    policy = the_policy(f"{{mondrian: {{{SAMPLED}}}}}", workload, required)
    assert len(groups_of_a_verified_release(policy, engine, path, tmp_path / "out")) > 1


@pytest.mark.parametrize("required", REQUIREMENTS)
@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("engine", ENGINES)
def test_rothko_s_as_published_keeps_every_promise_and_leaves_no_group_that_could_be_split(
    engine, workload, required, path, tmp_path
):
    """Only as published is every group split that can be: loss also asks what a split saves."""
    policy = the_policy(f"{{mondrian: {{variant: paper, {SAMPLED}}}}}", workload, required)
    groups = groups_of_a_verified_release(policy, engine, path, tmp_path / "out")
    in_memory = the_policy("{mondrian: {variant: paper}}", workload, required)
    for members in groups[::5]:
        assert sf.publish(PEOPLE.take(members), in_memory).certificate.claims.groups == 1


ROOMY = 512_000_000
"""Memory in which no tree of a sample is cut off."""


@pytest.mark.parametrize("required", REQUIREMENTS)
@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize(
    "options",
    [
        SAMPLED,
        "scale: rothko-s, rows-in-memory: 100, sample: 30, fallback: none",
        "scale: rothko-s, sample: 0.3",
        "scale: rothko-s, sample: 200, max-height: 2, tests: false",
    ],
)
def test_rothko_s_finds_the_same_boxes_in_memory_and_on_disk(options, workload, required, path):
    policy = the_policy(f"{{mondrian: {{{options}}}}}", workload, required)
    on_disk = sf.publish(path, policy, seed=1, engine="disk", memory=ROOMY)
    in_memory = sf.publish(PEOPLE, policy, seed=1, engine="memory")
    assert rows_of(in_memory.table) == rows_of(on_disk.table)
    assert in_memory.certificate.claims == on_disk.certificate.claims
    theirs, mine = on_disk.certificate.figures, in_memory.certificate.figures
    assert mine["splits"] == theirs["splits"]
    for figure in ("pruned", "fallbacks", "nonminimal", "stopped-by-height"):
        assert mine["io"].get(figure, 0) == theirs["io"][figure]
    assert (mine["io"]["engine"], mine["io"]["method"]) == ("memory", "rothko-s")


def test_a_sample_that_is_not_asked_for_is_not_drawn_where_all_rows_are_in_memory(path):
    """As the paper says: if the table fits in memory, the sample is the table."""
    expected = sf.publish(path, the_policy("mondrian", "classify", "k"), seed=1)
    for options in ("scale: rothko-s", "scale: rothko-s, sample: 400", "sample: 0.1"):
        release = sf.publish(path, the_policy(f"{{mondrian: {{{options}}}}}", "classify", "k"), seed=1)
        assert release.table.equals(expected.table)
        assert "io" not in release.certificate.figures


@pytest.mark.parametrize("engine", ENGINES)
def test_a_sample_depends_on_the_seed_and_on_nothing_else(engine, path):
    policy = the_policy("{mondrian: {scale: rothko-s, sample: 60}}", "classify", "k")

    def boxes(table, **options):
        return rows_of(sf.publish(table, policy, **(ENGINES[engine] | options)).table)

    expected = boxes(path)
    assert boxes(PEOPLE, threads=1) == boxes(path, seed=0) == expected
    assert boxes(path, seed=5) != expected


@pytest.mark.parametrize("engine", ENGINES)
def test_without_fallback_what_a_sample_does_not_decide_stays_together(engine, path):
    def publish(fallback: str) -> sf.Release:
        options = f"{{mondrian: {{scale: rothko-s, rows-in-memory: 20, fallback: {fallback}}}}}"
        policy = the_policy(options, "nothing", "k")
        policy = replace(policy, requirements=(sf.KAnonymity(45),))
        return sf.publish(path, policy, seed=1, **ENGINES[engine])

    left, done = publish("none"), publish("rothko-t")
    mine, theirs = (release.certificate.figures["io"] for release in (left, done))
    assert mine["nonminimal"] > 0
    assert mine.get("fallbacks", 0) == 0 < theirs["fallbacks"]
    assert theirs.get("nonminimal", 0) == 0
    assert left.certificate.claims.groups < done.certificate.claims.groups


@pytest.mark.parametrize("kind", ["parquet", "csv", "csv.gz", "arrow", "frame"])
def test_every_kind_of_table_is_read_piece_by_piece(kind, tmp_path):
    table = PEOPLE
    file = tmp_path / f"people.{kind}"
    if kind == "parquet":
        pq.write_table(table, file, row_group_size=50)
    elif kind.startswith("csv"):
        write_table(table, file)
    elif kind == "arrow":
        with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=64)
    given = table if kind == "frame" else file
    policy = the_policy(f"{{mondrian: {{{TINY}}}}}", "classify", "k and l")
    on_disk = sf.publish(given, policy, seed=1, engine="disk", memory=LITTLE)
    in_memory = sf.publish(given, the_policy("mondrian", "classify", "k and l"), seed=1)
    assert rows_of(on_disk.table) == rows_of(in_memory.table)


@pytest.mark.parametrize("output", ["labels", "bounds", "both", "summary"])
def test_every_output_is_that_of_the_engine_in_memory(output, path):
    mine = sf.publish(
        path, the_policy(f"{{mondrian: {{{TINY}}}}}", "regress", "k", output), engine="disk", memory=LITTLE
    )
    theirs = sf.publish(path, the_policy("mondrian", "regress", "k", output))
    assert rows_of(mine.table) == rows_of(theirs.table)
    assert mine.table.schema.types == theirs.table.schema.types


def test_tds_makes_the_same_cuts_on_disk(path):
    for workload in ("classify", "aggregate"):
        mine = sf.publish(path, the_policy("tds", workload, "k"), engine="disk", memory=LITTLE)
        theirs = sf.publish(PEOPLE, the_policy("tds", workload, "k"))
        assert rows_of(mine.table) == rows_of(theirs.table)
        assert mine.certificate.figures["splits"] == theirs.certificate.figures["splits"]
        assert mine.certificate.figures["io"]["method"] == "tds"


def test_a_group_larger_than_memory_is_published_whole_with_its_statistics(tmp_path):
    same = pa.table({"age": [40] * 300 + [50] * 7, "hours": [float(i % 9) for i in range(307)]})
    pq.write_table(same, tmp_path / "same.parquet", row_group_size=31)
    text = "{attributes: {age: {role: quasi-identifier, type: number}, hours: {role: other, type: number}}, "
    text += "require: [k-anonymity: 5], workload: [{aggregate: [range, mean]}]"
    in_memory = sf.publish(same, sf.Policy.parse(text + "}"))
    on_disk = sf.publish(
        tmp_path / "same.parquet",
        sf.Policy.parse(text + ", method: {mondrian: {rows-in-memory: 20}}}"),
        engine="disk",
        memory=LITTLE,
    )
    assert rows_of(on_disk.table) == rows_of(in_memory.table)


def test_without_a_recoding_no_tree_is_kept(path, tmp_path):
    policy = the_policy(f"{{mondrian: {{{TINY}}}}}", "aggregate", "k").as_dict()
    policy["output"]["recoding"] = False
    release = sf.publish(path, sf.Policy.from_dict(policy), engine="disk", memory=LITTLE)
    assert release.recoding is None
    release.write(tmp_path / "out")
    assert not (tmp_path / "out" / "recoding.json").exists()
    assert sf.verify_folder(tmp_path / "out").ok
    kept = sf.publish(path, the_policy("mondrian", "aggregate", "k"))
    assert rows_of(release.table) == rows_of(kept.table)


def test_the_engine_is_chosen_by_the_memory_that_it_would_take(path):
    policy = the_policy("{mondrian: {refine: none}}", "nothing", "k")
    assert "io" not in sf.publish(path, policy).certificate.figures
    many = pa.concat_tables([people(5000, seed) for seed in range(10)])
    assert "io" in sf.publish(many, policy, memory=LITTLE).certificate.figures
    with pytest.raises(InputError, match="--engine disk"):
        sf.publish(many, policy, engine="memory", memory=LITTLE)


def test_a_seed_repeats_the_bytes_and_none_repeats_the_boxes(path):
    policy = the_policy(f"{{mondrian: {{{SAMPLED}}}}}", "classify", "k")
    first, second = (sf.publish(path, policy, seed=5, engine="disk", memory=LITTLE) for _ in range(2))
    assert first.table.equals(second.table)
    third, fourth = (sf.publish(path, policy, engine="disk", memory=LITTLE) for _ in range(2))
    assert rows_of(third.table) == rows_of(fourth.table)
    assert not third.table.equals(fourth.table)


@pytest.mark.parametrize("engine", ["auto", "disk"])
def test_a_table_that_can_be_read_but_once_is_read_once(engine):
    reader = pa.RecordBatchReader.from_batches(PEOPLE.schema, PEOPLE.to_batches(max_chunksize=90))
    policy = the_policy("mondrian", "nothing", "k")
    release = sf.publish(reader, policy, engine=engine)
    assert rows_of(release.table) == rows_of(sf.publish(PEOPLE, policy).table)


def test_long_texts_are_not_copied_into_every_file(tmp_path):
    n = 2_000
    texts = pa.table({"x": list(range(n)), "note": [f"{i:05}" * 200 for i in range(n)]})
    pq.write_table(texts, tmp_path / "t.parquet")
    policy = sf.Policy.parse(
        "{attributes: {x: {role: quasi-identifier, type: number}, note: {role: other, passes: unique}}, "
        "require: [k-anonymity: 5], method: {mondrian: {rows-in-memory: 100}}}"
    )
    release = sf.publish(tmp_path / "t.parquet", policy, engine="disk", memory=LITTLE)
    io = release.certificate.figures["io"]
    assert 2_000_000 < io["encoded-bytes"] < 3_000_000
    assert io["writes"] < 5
    wide = sf.publish(
        tmp_path / "t.parquet",
        sf.Policy.from_dict(policy.as_dict() | {"method": {"mondrian": {"refine": "none"}}}),
        engine="disk",
        memory=LITTLE,
    )
    assert wide.certificate.figures["io"]["rows-in-memory"] < 2_000  # rows of a kilobyte take room


def test_a_hierarchy_of_many_children_needs_no_more_files_than_may_be_open(tmp_path):
    many = pa.table({"job": [f"job {i % 700}" for i in range(2_100)]})
    pq.write_table(many, tmp_path / "t.parquet")
    text = "{attributes: {job: {role: quasi-identifier}}, require: [k-anonymity: 2]"
    on_disk = sf.publish(
        tmp_path / "t.parquet",
        sf.Policy.parse(text + ", method: {mondrian: {rows-in-memory: 100}}}"),
        engine="disk",
        memory=LITTLE,
    )
    assert rows_of(on_disk.table) == rows_of(sf.publish(many, sf.Policy.parse(text + "}")).table)
    assert on_disk.certificate.claims.groups == 700


def test_one_row_in_memory_is_enough():
    same = pa.table({"x": [1] * 9 + [2] * 4})
    policy = sf.Policy.parse(
        "{attributes: {x: {role: quasi-identifier, type: number}}, require: [k-anonymity: 2], "
        "method: {mondrian: {rows-in-memory: 1}}}"
    )
    assert sf.publish(same, policy, engine="disk", memory=LITTLE).certificate.claims.groups == 2


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_share_of_the_rows_is_drawn_whether_or_not_their_number_is_known(
    engine, kind, tmp_path, monkeypatch
):
    from sfumato.methods.mondrian import tree_run

    sizes = []
    grow = tree_run.grow_on_sample

    def note_and_grow(rows, *rest, **more):
        sizes.append(len(rows))
        return grow(rows, *rest, **more)

    monkeypatch.setattr(tree_run, "grow_on_sample", note_and_grow)
    write_table(people(1_000), tmp_path / f"t.{kind}")
    policy = the_policy("{mondrian: {scale: rothko-s, rows-in-memory: 300, sample: 0.2}}", "nothing", "k")
    sf.publish(tmp_path / f"t.{kind}", policy, **ENGINES[engine])
    assert sizes[0] == 200


@pytest.mark.parametrize("fallback", ["rothko-t", "none"])
def test_a_table_that_fits_in_memory_is_grown_from_all_rows_where_its_sample_decides_nothing(fallback, path):
    options = f"{{mondrian: {{scale: rothko-s, sample: 8, fallback: {fallback}}}}}"
    expected = sf.publish(path, the_policy("mondrian", "classify", "l"), seed=1)
    for chosen in ({"engine": "disk", "memory": ROOMY}, {"engine": "memory"}):
        release = sf.publish(path, the_policy(options, "classify", "l"), seed=1, **chosen)
        assert rows_of(release.table) == rows_of(expected.table)
        assert release.certificate.figures["io"]["fallbacks"] == 1
