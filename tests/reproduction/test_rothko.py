"""The scripts of the figures on tables larger than memory: plans, judgement and pictures, mostly on made-up runs."""

import doctest
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from sfumato.policy.options.mondrian import MondrianOptions

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "reproduction"), str(ROOT / "benchmarks")]

import io_model  # noqa: E402 - found by the line above
import tods_fig17  # noqa: E402
import tods_fig18  # noqa: E402
import tods_fig19  # noqa: E402
import tods_fig20  # noqa: E402
import tods_fig21  # noqa: E402
import tods_fig22  # noqa: E402
import tods_fig23  # noqa: E402
import tods_fig24  # noqa: E402
import watch  # noqa: E402
from lab import pictures, record, rothko, sampling, studies  # noqa: E402
from lab.pages import OURS  # noqa: E402
from lab.rothko import Run, S, T  # noqa: E402

from sfumato.policy.document import Policy  # noqa: E402
from sfumato.publishing import publish  # noqa: E402
from sfumato.randomness import seeded  # noqa: E402

OF_RUNS = (tods_fig17, tods_fig18, tods_fig19, tods_fig20, tods_fig21)
OF_RELEASES = (tods_fig22, tods_fig23, tods_fig24)
ON_CENSUS = (tods_fig22, tods_fig23)


def by_name(script):
    return script.NAME


@pytest.mark.parametrize(
    "module", [io_model, pictures, rothko, tods_fig24], ids=lambda module: module.__name__
)
def test_examples(module):
    done = doctest.testmod(module)
    assert (done.failed, done.attempted > 0) == (0, True)


# ---- the model -------------------------------------------------------------------------------------------


def naive_levels(n_rows, sample, k):
    """The definition in section 5.3.2, level by level."""
    p0, n = k / n_rows, min(sample, n_rows)
    error = 1.959963984540054 * np.sqrt(p0 * (1 - p0) / (n - 1) * (n_rows - n) / n_rows)
    return max([x for x in range(60) if 2.0**-x - p0 >= error], default=0)


@pytest.mark.parametrize("n_rows", [100_000, 5_000_000, 50_000_000, 123_456_789])
@pytest.mark.parametrize("sample", [100, 2_500, 99_999])
@pytest.mark.parametrize("k", [2, 10, 1000, 60_000])
def test_levels_are_the_most_that_pass_the_test(n_rows, sample, k):
    assert io_model.levels_s(n_rows, sample, k) == naive_levels(n_rows, sample, k)


def test_heights_are_exact_at_powers_of_two():
    assert [io_model.height(n, 1) for n in (1, 2, 3, 4, 5, 2**40, 2**40 + 1)] == [0, 1, 2, 2, 3, 40, 41]
    with pytest.raises(ValueError, match="At least one frequency group"):
        io_model.repartitions_t(10, 1, 0)


def test_the_model_stands_beside_a_certificate(tmp_path, capsys, monkeypatch):
    for method in (T, S):
        io = {"method": method, "reads": 2.5, "writes": 1.0, "levels": 1}
        asked = {"mondrian": {"frequency-groups": 8} if method == T else {}}
        certificate = {
            "claims": {"rows": 50_000_000},
            "figures": {"io": io},
            "policy": {"require": [{"k-anonymity": 1000}], "method": asked},
        }
        (tmp_path / method).mkdir()
        (tmp_path / method / "certificate.json").write_text(json.dumps(certificate))
    monkeypatch.setattr(sys, "argv", ["io_model.py", str(tmp_path / T), str(tmp_path / S)])
    io_model.main()
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[-3:] for line in lines[1:]] == [
        ["2.50", "1.00", "1"],
        ["8.00", "2.00", "2"],
        ["2.50", "1.00", "1"],
        ["3.00", "1.00", "1"],
    ]


# ---- a process, watched ----------------------------------------------------------------------------------


def python(text):
    return [sys.executable, "-c", text]


def test_memory_bytes_and_words_of_a_process(tmp_path):
    path = tmp_path / "file"
    text = f"import time; x = b'1' * 90_000_000; open({str(path)!r}, 'wb').write(x); print('done'); time.sleep(.2)"
    seen = watch.watch(python(text))
    assert (seen.code, seen.out) == (0, "done\n")
    assert 90_000_000 < seen.peak < 150_000_000
    assert seen.asked_written >= 90_000_000
    assert seen.wall > 0.2
    assert 0 < seen.cpu < seen.wall + 0.5


def test_memory_of_children_counts():
    child = "x = b'1' * 60_000_000; import time; time.sleep(.3)"
    text = f"import subprocess, sys; x = b'1' * 60_000_000; subprocess.run([sys.executable, '-c', {child!r}])"
    assert watch.watch(python(text)).peak > 120_000_000


def test_a_process_is_killed_when_its_time_has_come():
    seen = watch.watch(python("import time; time.sleep(60)"), kill_after=0.2)
    assert seen.code == -9
    assert 0.2 <= seen.wall < 10
    assert watch.watch(python("pass"), kill_after=60).code == 0


def test_the_last_line_of_an_error_is_kept():
    seen = watch.watch(python("import sys; sys.stderr.write('one\\ntwo\\n'); sys.exit(2)"))
    assert (seen.code, seen.sentence) == (2, "two")


# ---- runs ------------------------------------------------------------------------------------------------


def test_policies_of_runs_are_policies():
    for run in (Run(T, frequency_groups=8), Run(S, sample=1000, criterion="InfoGain"), Run(rothko.MEMORY)):
        policy = Policy.parse(run.policy())
        assert len(policy.schema.quasi_identifiers) == 9
        assert bool(policy.workload) == (run.criterion == "InfoGain")
    asked = Policy.parse(Run(T, frequency_groups=8).policy()).options_for(MondrianOptions)
    assert (asked.variant, asked.scale) == ("paper", T)
    assert (asked.frequency_groups, asked.rows_in_memory) == (8, 2_000_000)


def test_the_model_of_a_run_is_that_of_its_method():
    assert Run(T, frequency_groups=8).model() == {"reads": 8, "writes": 2}
    assert Run(S, sample=250_000).model() == {"reads": 3, "writes": 1}


def test_results_are_kept_and_measured_again_only_when_asked(tmp_path):
    calls = []

    def work(value):
        calls.append(value)
        return [{"value": value}]

    first = rothko.kept(str(tmp_path), "a key", False, work, 1)
    assert rothko.kept(str(tmp_path), "a key", False, work, 2) == first
    assert first[0]["value"] == 1
    assert first[0]["commit"]
    assert rothko.kept(str(tmp_path), "a key", True, work, 3)[0]["value"] == 3
    assert rothko.kept(str(tmp_path), "another", False, work, 4)[0]["value"] == 4
    assert calls == [1, 3, 4]


@pytest.mark.parametrize("script", OF_RUNS, ids=by_name)
def test_the_plan_of_a_figure_is_the_paper_s(script, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "argv", [script.NAME, "--out", str(tmp_path)])
    given = rothko.options("")
    plan = script.runs(given) if script is tods_fig17 else script.asked(given)
    text = repr(plan)
    largest = 10_000_000 if script in (tods_fig17, tods_fig20) else 50_000_000
    assert f"n_rows={largest}," in text
    assert f"n_rows={largest * 10}" not in text
    assert "rows_in_memory=2000000" in text
    if script is tods_fig20:
        assert all(f"k={k}," in text for k in (10, 100, 1_000, 10_000))
    else:
        assert "k=1000," in text


# ---- figures on made-up runs -----------------------------------------------------------------------------


def made_up(run, seed, tables, scratch):
    """A run that behaves as the paper's: as the model says, a little slower with each read, out of memory at its cap."""
    if run.method == rothko.MEMORY:
        failed = run.n_rows > 2_000
        return [{**clock(run.n_rows / 1e4), "code": int(failed), "peak": 4e8, "groups": 0, "io": {}}]
    model = run.model()
    seconds = run.n_rows / 1e4 * (1 + model["reads"]) * (1 if run.criterion == "Median" else 2) + 100 / run.k
    table = 44 * run.n_rows
    io = {**model, "levels": model["writes"], "encoded-bytes": table}
    return [{**clock(seconds), "code": 0, "peak": 5e8, "groups": 7, "io": io}]


def clock(seconds):
    parts = {"user": 0.6 * seconds, "kernel": 0.1 * seconds, "waiting": 0.05 * seconds, "cpu": 0.7 * seconds}
    moved = dict.fromkeys(("asked_read", "asked_written", "disk_read", "disk_written"), 1e6)
    return {**parts, **moved, "wall": seconds, "sentence": ""}


def everything_holds(document):
    """Of what the paper claims."""
    return all(
        finding["holds"]
        for claim in document["claims"]["none"]
        if not claim["text"].startswith(OURS)
        for finding in claim["findings"]
    )


def play(script, folder, monkeypatch, *options):
    """Run a script here, with everything that it writes in ``folder``."""
    for module in (record, rothko):
        monkeypatch.setattr(module, "ROOT", folder)
    out = folder / "docs" / "reproduction"
    monkeypatch.setattr(
        sys, "argv", [script.NAME, "--quick", "--processes", "1", "--out", str(out), *options]
    )
    script.main()
    assert (out / f"{script.NAME}.png").stat().st_size > 10_000
    points = record.read_points(out / f"{script.NAME}.csv")
    assert all({"trials", "seed", "version", "commit"} <= set(point) for point in points)
    document = json.loads((out / f"{script.NAME}.json").read_text("utf-8"))
    assert f"[figure {script.NAME[-2:]}]" in (out.parent / "reproduction.md").read_text("utf-8")
    return document, points


@pytest.mark.parametrize("script", OF_RUNS, ids=by_name)
def test_a_figure_of_runs_that_are_as_the_paper_says_holds(script, tmp_path, monkeypatch):
    monkeypatch.setattr(rothko, "measure", made_up)
    document, points = play(script, tmp_path, monkeypatch)
    assert everything_holds(document), json.dumps(document["claims"], indent=1)
    again, _ = play(script, tmp_path, monkeypatch, "--again")
    assert again == document
    assert len(points) >= 10


@pytest.mark.parametrize("script", OF_RUNS[1:], ids=by_name)
def test_a_figure_of_runs_that_are_the_other_way_round_does_not(script, tmp_path, monkeypatch):
    def contrary(run, seed, tables, scratch):
        (found,) = made_up(run, seed, tables, scratch)
        seconds = 1e4 / found["wall"]
        io = {**found["io"], "reads": 40 - 3 * found["io"]["reads"], "writes": 5 + found["io"]["writes"]}
        slow = clock(seconds * (1 if run.method == T else 3) * (run.k / 100))
        return [{**found, **slow, "io": io}]

    monkeypatch.setattr(rothko, "measure", contrary)
    document, _ = play(script, tmp_path, monkeypatch)
    assert not everything_holds(document)


def test_a_measured_run_carries_what_was_seen(tmp_path, monkeypatch):
    run = replace(Run(rothko.MEMORY), n_rows=3_000, k=20)
    (found,) = rothko.measure(run, 1, str(tmp_path), None)
    assert (found["code"], found["io"]) == (0, {})
    assert found["groups"] > 50
    assert found["peak"] > 50_000_000
    assert [path.name for path in tmp_path.iterdir()] == ["agrawal_C2_1_3000.parquet"]
    with pytest.raises(SystemExit, match=r"In memory, 3,000 rows: sfumato: .*even one single group"):
        rothko.measure(replace(run, k=5_000), 1, str(tmp_path), None)
    (capped,) = rothko.measure(replace(run, cap=40_000_000), 1, str(tmp_path), None)
    assert capped["code"] != 0


# ---- figures on made-up releases -------------------------------------------------------------------------


def in_memory(table, policy, n, *, require=None, tests=True, max_height=None, seed, memory=0):
    """The release of the in-memory engine; pruned nodes as the paper has them."""
    asked = policy if require is None else replace(policy, requirements=tuple(require))
    release = publish(table, asked, seed=seed, threads=1)
    pruned = 100_000 // n * (0 if tests else 1)
    io = {"pruned": pruned, "nonminimal": 0}
    return rothko.Sampled(release.rows, release.certificate.claims.groups, io)


def test_groups_are_told_apart_by_all_columns():
    rows = pa.table(
        {"a": ["x", "x", "y", "y", "x"], "b": pa.array(["1", "2", "1", "1", "1"]).dictionary_encode()}
    )
    group = rothko.Sampled(rows, 3, {}).group(("a", "b"))
    assert len(set(group)) == 3
    assert group[0] == group[4]
    assert group[2] == group[3]


def test_quality_is_that_of_the_paper_s_equations():
    study = studies.agrawal_table(2_000, seeded(1))
    found = in_memory(study.table, study.policy("InfoGain", k=100), 100, seed=0)
    panel = tods_fig22.PANELS[0]
    entropy = sampling.quality(panel, found, study)
    rows = found.rows.to_pandas()
    expected = 0.0
    for _, group in rows.groupby(list(study.features), observed=True):
        share = group["class"].value_counts(normalize=True).to_numpy()
        share = share[share > 0]
        expected -= len(group) / len(rows) * float((share * np.log2(share)).sum())
    assert entropy == pytest.approx(expected)
    numeric = tods_fig23.PANELS[0].study(0, 2_000, 1)
    found = in_memory(numeric.table, numeric.policy("Regression", k=100), 100, seed=0)
    error = sampling.quality(tods_fig23.PANELS[0], found, numeric)
    rows = found.rows.to_pandas()
    grouped = rows.groupby(list(numeric.features), observed=True)["class"]
    assert error == pytest.approx(((rows["class"] - grouped.transform("mean")) ** 2).mean())


def test_the_paper_s_table_is_whole():
    cells = [cell for panel in tods_fig24.PANELS for cell in panel.paper().values()]
    assert len(cells) == 8 * (4 + 4 + 3 + 3)
    assert sum("x" in cell.split()[0] for cell in cells) == 43


def test_figure_24_shows_ours_above_the_paper_s(tmp_path, monkeypatch):
    monkeypatch.setattr(rothko, "sampled", in_memory)
    document, points = play(tods_fig24, tmp_path, monkeypatch)
    assert everything_holds(document)
    assert "| 500 | 0 (100)<br>*11 (419)* |" in document["table"]
    assert {point["tests"] for point in points} == {"yes", "no"}
    page = (tmp_path / "docs" / "reproduction" / "tods_fig24.md").read_text("utf-8")
    assert document["table"] in page


def test_figure_24_leaves_out_what_is_not_measured_yet(tmp_path, monkeypatch):
    monkeypatch.setattr(rothko, "sampled", in_memory)
    play(tods_fig24, tmp_path, monkeypatch, "--at", "500")
    monkeypatch.setattr(rothko, "sampled", None)  # nothing more is measured
    document, points = play(tods_fig24, tmp_path, monkeypatch, "--unfinished")
    assert {point["n"] for point in points} == {500}
    assert "| 1,000 | -<br>*0 (0)* |" in document["table"]
    assert "A dash: not measured." in document["setup"]
    assert document["reduced"] == {"none": "what is not measured is left out"}
    assert len(document["claims"]["none"][0]["findings"]) == len(tods_fig24.PANELS)


def test_every_entry_of_figure_24_is_on_record():
    folder = Path(__file__).resolve().parents[2] / "docs" / "reproduction"
    points = record.read_points(folder / "tods_fig24.csv")
    seen = {(p["panel"], p["parameter"], p["n"], p["tests"]) for p in points}
    assert seen == {
        (panel.title, value, n, tests)
        for panel in tods_fig24.PANELS
        for value in panel.values
        for n in tods_fig24.SAMPLES
        for tests in ("yes", "no")
    }
    document = json.loads((folder / "tods_fig24.json").read_text("utf-8"))
    assert document["reduced"] == {"none": ""}
    assert "A dash" not in document["setup"]


def test_figure_24_counts_splits_that_were_undone_and_not_the_nodes_that_vanish(monkeypatch):
    seen = []

    def kept(*arguments, **options):
        seen.append(sampled(*arguments, **options))
        return seen[-1]

    sampled = rothko.sampled
    monkeypatch.setattr(rothko, "sampled", kept)
    entries = tods_fig24.trial("a", 10, 500, 0, 5_000, record.SEED)
    undone = [e["value"] for e in entries if e["measure"] == tods_fig24.PRUNED]
    assert [2 * count for count in undone] == [found.io["pruned"] for found in seen]
    assert any(count % 2 for count in undone)  # as the paper's are, which nodes of pairs cannot be


def test_figure_24_marks_what_may_not_be_minimal_and_judges_pruning(tmp_path, monkeypatch):
    def contrary(table, policy, n, *, tests, **options):
        found = in_memory(table, policy, n, tests=not tests, **options)
        return replace(found, io={**found.io, "nonminimal": int(n == 1_000 and tests)})

    monkeypatch.setattr(rothko, "sampled", contrary)
    document, _ = play(tods_fig24, tmp_path, monkeypatch)
    fewer, tame, falls = document["claims"]["none"]
    assert fewer["verdict"] == "held in 0 of 4"
    assert not all(finding["holds"] for finding in tame["findings"])
    assert [finding["holds"] for finding in falls["findings"][:3:2]] == [False, True]
    assert "| 1,000 | x (0)<br>*0 (0)* |" in document["table"]


@pytest.mark.data
@pytest.mark.parametrize("script", ON_CENSUS, ids=by_name)
def test_figures_of_sampling(script, tmp_path, monkeypatch, data_folder):
    monkeypatch.setenv("SFUMATO_DATA", str(data_folder))
    monkeypatch.setattr(rothko, "sampled", in_memory)
    document, points = play(script, tmp_path, monkeypatch)
    assert all(
        f["holds"] for f in document["claims"]["none"][2]["findings"]
    )  # no sample was drawn: only k matters
    assert {point["panel"] for point in points} == {panel.title for panel in script.PANELS}
    assert list(Path(rothko.folder_of(type("given", (), {"quick": True}), script.NAME)).iterdir())


# ---- the real thing, in small ----------------------------------------------------------------------------


@pytest.mark.slow
def test_quick_runs_of_figures_that_share_runs(tmp_path, monkeypatch):
    for script in OF_RUNS:
        document, points = play(script, tmp_path, monkeypatch, "--tables", str(tmp_path / "tables"))
        assert document["quick"]
        if script is tods_fig18:
            counted = [p["mean"] for p in points if p["source"] == "counted" and p["measure"] == "reads"]
            assert all(1 <= reads < 30 for reads in counted)
    assert len(list((tmp_path / "build" / "runs-quick").iterdir())) == 14


@pytest.mark.slow
def test_a_quick_run_of_figure_24(tmp_path, monkeypatch):
    document, points = play(tods_fig24, tmp_path, monkeypatch)
    assert document["quick"]
    assert any(p["mean"] > 0 for p in points if p["measure"] == tods_fig24.PRUNED and p["tests"] == "no")


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize("script", ON_CENSUS, ids=by_name)
def test_a_quick_run_with_census(script, tmp_path, monkeypatch, data_folder):
    monkeypatch.setenv("SFUMATO_DATA", str(data_folder))
    document, points = play(script, tmp_path, monkeypatch)
    assert {p["sample"] for p in points} == {0, 200, 1_000}
    assert len(document["claims"]["none"]) == 3


@pytest.mark.parametrize("number", range(17, 25))
def test_every_figure_on_large_tables_is_on_record(number):
    folder = ROOT / "docs" / "reproduction"
    document = json.loads((folder / f"tods_fig{number}.json").read_text(encoding="utf-8"))
    assert not document["quick"]
    assert set(document["claims"]) == {record.NO_LEARNERS}
    assert (folder / f"tods_fig{number}.png").stat().st_size > 10_000
    assert record.read_points(folder / f"tods_fig{number}.csv")
