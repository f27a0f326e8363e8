"""Where records come from: commits, raw trials, and what a quick run gives."""

import gzip
import json
import re
import subprocess
import sys
from argparse import Namespace
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

REPRODUCTION = Path(__file__).resolve().parents[2] / "reproduction"
sys.path.insert(0, str(REPRODUCTION))

import diffgen_fig4_split  # noqa: E402 - found by the line above
import run_all  # noqa: E402
import tods_fig07  # noqa: E402
from lab import provenance, record, staleness, trials  # noqa: E402
from lab.record import Claim, Measured  # noqa: E402

RECORDS = REPRODUCTION.parent / "docs" / "reproduction"

# ---- commits ---------------------------------------------------------------------------------------------


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository with one commit, in place of this one."""
    for folder in provenance.CODE:
        tmp_path.joinpath(folder).mkdir()
        tmp_path.joinpath(folder, "code.py").write_text("1", encoding="utf-8")
    author = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "."], [*author, "commit", "-q", "-m", "first"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    monkeypatch.setattr(provenance.sfumato, "__file__", str(tmp_path / "src" / "__init__.py"))
    return tmp_path


def test_a_record_is_written_from_a_commit(repository):
    provenance.refuse_uncommitted(repository / "docs" / "reproduction")
    assert re.fullmatch("[0-9a-f]{12}", provenance.commit())


@pytest.mark.parametrize("folder", provenance.CODE)
def test_a_record_is_refused_from_changes_that_are_not_committed(repository, folder):
    repository.joinpath(folder, "code.py").write_text("2", encoding="utf-8")
    with pytest.raises(SystemExit, match="not committed"):
        provenance.refuse_uncommitted(repository / "docs" / "reproduction")
    provenance.refuse_uncommitted(repository / "build" / "reproduction")  # no record: nothing is refused


def test_a_record_is_refused_of_trials_that_were_measured_before_a_commit(repository):
    with pytest.raises(SystemExit, match="Measure again"):
        provenance.refuse_uncommitted(repository / "docs" / "reproduction", "01dd1f32fce8 0724317b8017+")


def test_a_record_is_refused_of_a_program_that_stands_elsewhere(repository, monkeypatch):
    monkeypatch.setattr(provenance.sfumato, "__file__", "/somewhere/else/__init__.py")
    with pytest.raises(SystemExit, match="imported from elsewhere"):
        provenance.refuse_uncommitted(repository / "docs" / "reproduction")


def test_a_script_refuses_before_it_measures(repository, monkeypatch):
    repository.joinpath("src", "new.py").write_text("", encoding="utf-8")
    monkeypatch.setattr(record, "ROOT", repository)
    monkeypatch.setattr(sys, "argv", ["tods_fig99"])
    with pytest.raises(SystemExit, match="not committed"):
        record.options("A figure.")


# ---- raw trials ------------------------------------------------------------------------------------------


def some_trials(folder, learners, values):
    given = Namespace(out=folder, learners=[learners], seed=1, quick=False, trials=None, at=None)
    found = Measured("learners", "method")
    for method, numbers in values.items():
        for trial, value in enumerate(numbers):
            found.add(trial, value, learners=learners, method=method)
    found.stamp.update(seed=1, version="0.1", commit="1234567e10")
    tested = record.greater(
        "TDS > Median", *(found.of(learners=learners, method=m) for m in values), alpha=0.05
    )
    claims = {learners: [Claim("it is better", (tested,))]}
    record.save(given, "tods_fig99", "A title", "A set-up.", found, claims)
    return tested


def test_t_and_p_can_be_computed_again_from_the_trials_that_are_kept(tmp_path):
    folder = tmp_path / "reproduction"
    said = some_trials(folder, "weka", {"TDS": [0.5, 0.625, 0.75], "Median": [0.25, 0.5, 0.375]})
    some_trials(folder, "scikit-learn", {"TDS": [0.1, 0.2, 0.4], "Median": [0.3, 0.2, 0.4]})
    assert {entry["learners"] for entry in record.read_trials(folder, "tods_fig99")} == {
        "weka",
        "scikit-learn",
    }
    given = Namespace(out=folder, learners=["weka"], seed=1, quick=False, again=True)
    again = record.measured(given, "tods_fig99", ("learners", "method"), list)
    first, second = (again.of(learners="weka", method=method) for method in ("TDS", "Median"))
    assert record.greater("TDS > Median", first, second, alpha=0.05) == said
    assert again.stamp == {"seed": 1, "version": "0.1", "commit": "1234567e10"}


def test_the_same_trials_are_the_same_bytes(tmp_path):
    values = {"TDS": [0.5, 0.625], "Median": [0.25, 0.5]}
    for name in ("a", "b"):
        some_trials(tmp_path / name, "weka", values)
    first, second = (tmp_path / name / "tods_fig99.trials.csv.gz" for name in ("a", "b"))
    assert first.read_bytes() == second.read_bytes()
    assert gzip.decompress(first.read_bytes()).decode().startswith("learners,method,trial,value,seed,version")


def test_without_any_trials_nothing_is_judged_again(tmp_path):
    given = Namespace(out=tmp_path, learners=["weka"], seed=1, quick=False, again=True)
    with pytest.raises(SystemExit, match="measure it"):
        record.measured(given, "tods_fig98", ("method",), list)


def test_a_record_says_on_which_commit_it_was_measured_and_whose_trials_are_kept(tmp_path):
    folder = tmp_path / "reproduction"
    some_trials(folder, "weka", {"TDS": [0.5, 0.625], "Median": [0.25, 0.5]})
    document = json.loads(folder.joinpath("tods_fig99.json").read_text("utf-8"))
    assert (document["measured"], document["trials"]) == ({"1234567e10": ""}, ["weka"])


# ---- quick runs ------------------------------------------------------------------------------------------


@pytest.fixture
def quick(tmp_path, monkeypatch):
    """Numbers of quick runs as they are told here, and the figures that were run for them."""
    told: dict[str, Any] = {}
    ran: list[str] = []

    def run(figure):
        ran.append(figure)
        return dict(told[figure])

    monkeypatch.setattr(staleness, "quick_numbers", run)
    return told, ran


def records_of(folder, numbers):
    for figure, values in numbers.items():
        document = {"commit": "01dd1f32fce8", "date": "2026-11-16", "numbers": values}
        folder.joinpath(f"{figure}.quick.json").write_text(json.dumps(document), "utf-8")


def test_a_figure_is_stale_when_its_quick_run_gives_other_numbers(repository, quick, capsys):
    told, _ = quick
    records_of(repository, {"tods_fig12": {"k=5": 0.5, "k=10": 0.25}, "tods_fig13": {"k=5": 1.0}})
    told.update(tods_fig12={"k=5": 0.5, "k=10": 0.75}, tods_fig13={"k=5": 1.0})
    done = run_all.Progress("quick", repository / "build")
    assert run_all.tell_stale(["tods_fig12", "tods_fig13", "tods_fig06"], done, repository) == 1
    said = capsys.readouterr().out.splitlines()
    assert said == [
        "tods_fig12: STALE, 1 of 2 numbers differ",
        "    k=10: 0.25 on record, 0.75 now",
        "tods_fig13: gives the numbers that it gave at 01dd1f32fce8",
        "tods_fig06: no numbers of a quick run are kept beside it",
    ]
    told["tods_fig12"]["k=10"] = 0.25
    again = run_all.Progress("quick", repository / "elsewhere")
    assert run_all.tell_stale(["tods_fig12"], again, repository) == 0


def test_a_point_that_came_or_went_makes_a_figure_stale():
    assert staleness.differences({"a": 1.0}, {}) == ["a: 1 on record, none now"]
    assert staleness.differences({}, {"a": 1.0}) == ["a: none on record, 1 now"]


def test_what_was_stopped_goes_on_at_the_same_commit_and_begins_again_at_another(repository, quick):
    told, ran = quick
    told.update(tods_fig12={"k=5": 0.5}, tods_fig13={"k=5": 1.0})
    records_of(repository, told)
    state = repository / "build"
    run_all.tell_stale(["tods_fig12"], run_all.Progress("quick", state), repository)
    run_all.tell_stale(["tods_fig12", "tods_fig13"], run_all.Progress("quick", state), repository)
    assert ran == ["tods_fig12", "tods_fig13"]
    repository.joinpath("src", "code.py").write_text("2", encoding="utf-8")
    for _ in range(2):  # with changes that are not committed, nothing is taken over
        run_all.tell_stale(["tods_fig12"], run_all.Progress("quick", state), repository)
    assert ran == ["tods_fig12", "tods_fig13", "tods_fig12", "tods_fig12"]


def test_seconds_and_secret_draws_are_no_numbers_that_repeat():
    points = [
        {"measure": "CPU", "k": 5, "mean": 1.0, "commit": "x"},
        {"measure": "reads", "k": 5, "mean": 3.0, "commit": "x"},
    ]
    assert staleness.repeatable(points) == {"measure=reads k=5": 3.0}
    assert not staleness.repeatable([{"measure": "accuracy", "randomness": "secret", "mean": 80.0}])


def test_every_script_of_a_figure_is_among_those_that_are_run():
    assert {"tods_fig06", "tods_fig24", "diffgen_extra", "cerias_fig10", "tods_fig07_areas"} <= set(
        staleness.figures()
    )
    assert "run_all" not in staleness.figures()


def test_an_unknown_figure_is_said_to_be_none(capsys):
    with pytest.raises(SystemExit):
        run_all.asked(["tods_fig99"])
    assert "no script is called tods_fig99" in capsys.readouterr().err


def test_numbers_of_a_quick_run_are_kept_beside_every_record():
    on_record = {path.stem for path in RECORDS.glob("*.csv")}
    assert on_record >= {"tods_fig07", "tods_fig07_areas", "tods_fig17", "tods_fig23"}
    assert {name for name in on_record if not (staleness.kept(RECORDS, name) or {}).get("numbers")} == set()


@pytest.mark.slow
def test_the_quick_run_of_figure_12_still_gives_its_numbers():
    kept = staleness.kept(RECORDS, "tods_fig12")
    assert kept is not None
    assert staleness.differences(kept["numbers"], staleness.quick_numbers("tods_fig12")) == []


def judged_of_areas(found, learners):
    return tods_fig07.census_claims(found, learners, trials.FEW_AREAS)


@pytest.mark.parametrize(
    ("name", "judge"),
    [
        ("tods_fig07_areas", judged_of_areas),
        ("diffgen_fig4_split", lambda found, _: diffgen_fig4_split.claims(found)),
    ],
)
def test_every_t_and_p_on_record_is_that_of_the_trials_beside_it(name, judge, monkeypatch):
    monkeypatch.setattr(record, "_saved", lambda *_: Path("nowhere"))
    document = json.loads(RECORDS.joinpath(f"{name}.json").read_text("utf-8"))
    kept = record.read_trials(RECORDS, name)
    keys = tuple(key for key in kept[0] if key not in ("trial", "value", *record.STAMP))
    assert document["trials"] == list(document["claims"])
    for learners, on_record in document["claims"].items():
        given = Namespace(out=RECORDS, learners=[learners], seed=1, quick=False, again=True)
        found = record.measured(given, name, keys, list)
        judged = [
            {"text": claim.text, "findings": [asdict(f) for f in claim.findings], "verdict": claim.verdict}
            for claim in judge(found, learners)
        ]
        assert judged == on_record
        assert any(", t = " in finding["statistic"] for claim in judged for finding in claim["findings"])
