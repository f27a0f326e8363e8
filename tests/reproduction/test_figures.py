"""The scripts of the figures: their tables, their judgement, their records; and small trials of each, Weka included."""

import ast
import doctest
import importlib
import json
import re
import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow as pa
import pytest

from sfumato.examples.agrawal_functions import label_rows
from sfumato.policy import predicate
from sfumato.randomness import seeded, seeded_block
from sfumato.release.query import select
from sfumato.table.opening import open_table

REPRODUCTION = Path(__file__).resolve().parents[2] / "reproduction"
sys.path.insert(0, str(REPRODUCTION))

import tods_fig06  # noqa: E402 - found by the line above
import tods_fig07  # noqa: E402
import tods_fig08  # noqa: E402
import tods_fig09  # noqa: E402
import tods_fig10  # noqa: E402
import tods_fig11  # noqa: E402
import tods_fig12  # noqa: E402
import tods_fig13  # noqa: E402
from lab import pages, record, staleness, studies, trials  # noqa: E402
from lab.pages import OURS  # noqa: E402
from lab.record import Claim, Finding, Measured  # noqa: E402
from lab.trials import Fold  # noqa: E402

SCRIPTS = (
    tods_fig06, tods_fig07, tods_fig08, tods_fig09, tods_fig10, tods_fig11, tods_fig12, tods_fig13,
)  # fmt: skip
LEARNERS = ("scikit-learn", "weka")


def lacking(script: ModuleType, text: str) -> list[str]:
    """What a script asks of modules, step by step, that they do not have."""
    out = []
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.expr):
            continue
        names: list[str] = []
        inner: ast.expr = node
        while isinstance(inner, ast.Attribute):
            names, inner = [inner.attr, *names], inner.value
        found = getattr(script, inner.id, None) if isinstance(inner, ast.Name) else None
        for name in names:
            if not isinstance(found, ModuleType):
                break
            if not hasattr(found, name):
                out.append(f"{script.__name__}, line {node.lineno}: {found.__name__} has no {name}")
                break
            found = getattr(found, name)
    return sorted(set(out))  # a.b.c holds a.b


@pytest.mark.parametrize("path", sorted(REPRODUCTION.glob("*.py")), ids=lambda path: path.stem)
def test_scripts_ask_modules_for_what_they_have(path):
    assert lacking(importlib.import_module(path.stem), path.read_text(encoding="utf-8")) == []


def test_what_a_module_lacks_is_found():
    assert lacking(tods_fig09, "points.NumberColumn(1)\ntrials.tables.open_table(2)\n") == [
        "tods_fig09, line 2: lab.trials has no tables"
    ]


def small_fold(study="Census"):
    return Fold(study, number=0, n_folds=3, n_rows=1_500, seed=1)


# ---- judgement -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("module", [pages, record, staleness, studies])
def test_examples_of_the_record(module):
    done = doctest.testmod(module)
    assert (done.failed, done.attempted > 0) == (0, True)


def finding(*, holds):
    return Finding("", holds, "")


@pytest.mark.parametrize(
    ("holds", "verdict"),
    [
        ([True, True], ("held in 2 of 2", "held")),
        ([False, False], ("held in 0 of 2", "not held")),
        ([True, False, True], ("held in 2 of 3", "held in part")),
    ],
)
def test_a_verdict_says_how_many_findings_hold_of_how_many(holds, verdict):
    claim = Claim("", tuple(finding(holds=each) for each in holds))
    assert (claim.verdict, claim.outcome) == verdict


def test_the_verdict_of_a_figure_is_that_of_the_paper_s_claims():
    theirs, ours = (
        Claim(text, (finding(holds=holds),)) for text, holds in (("", True), (f"{OURS}it", False))
    )
    assert record.Figure("", "", "", claims={"none": [theirs, ours]}).verdict == "held in 1 of 1"
    assert record.Figure("", "", "", claims={"none": [ours]}).verdict == "held in 0 of 1"


def test_greater_asks_one_side_at_its_level():
    low = np.array([0.5, 0.6, 0.55, 0.5])
    high = low + np.array([0.1, 0.12, 0.1, 0.09])
    assert record.greater("", high, low, alpha=0.001).holds
    assert not record.greater("", low, high, alpha=0.999).holds
    assert not record.greater("", high, low, alpha=1e-6).holds
    assert record.greater("", high, low, alpha=0.05).statistic.startswith("0.64 against 0.5375, t = 16.")


def test_greater_needs_no_spread():
    low = np.array([0.5, 0.25])
    assert record.greater("", low + 0.5, low, alpha=0.05).holds
    assert not record.greater("", low, low, alpha=0.05).holds


def test_points_carry_the_interval_of_the_mean():
    found = Measured("method")
    for trial, value in enumerate([1.0, 2.0, 3.0]):
        found.add(trial, value, method="TDS")
    (point,) = found.points()
    assert point["mean"] == 2.0
    assert point["half_width"] == pytest.approx(2.484, abs=1e-3)
    assert point["trials"] == 3
    with pytest.raises(KeyError):
        found.add(0, 1.0, k=5)


# ---- records ---------------------------------------------------------------------------------------------


def saved(folder, learners, value, *, holds=True):
    given = Namespace(out=folder, learners=[learners], seed=1, quick=False, trials=None, at=(5,))
    found = Measured("learners", "k")
    found.add(0, value, learners=learners, k=5)
    found.add(1, value + 0.25, learners=learners, k=5)
    found.stamp.update(seed=1, version="0.1", commit="1234567e10")
    claims = {learners: [Claim("it rises", (Finding("k = 5", holds, "p = .5"),))]}
    return record.save(given, "tods_fig99", "A title", "A set-up.", found, claims)


def test_a_run_with_one_of_the_learners_keeps_the_record_of_the_other(tmp_path):
    folder = tmp_path / "reproduction"
    saved(folder, "weka", 0.25)
    saved(folder, "scikit-learn", 0.5)
    figure = saved(folder, "weka", 0.75, holds=False)
    assert [(p["learners"], p["mean"]) for p in figure.points] == [("scikit-learn", 0.625), ("weka", 0.875)]
    assert list(figure.claims) == ["scikit-learn", "weka"]
    assert figure.verdict == "held in 1 of 2"
    assert all(
        (point["trials"], point["seed"], point["commit"]) == (2, 1, "1234567e10") for point in figure.points
    )
    assert record.read_points(folder / "tods_fig99.csv") == figure.points
    verdicts = (tmp_path / "reproduction.md").read_text(encoding="utf-8")
    place = "[figure 99](reproduction/tods_fig99.md)"
    assert f"| {place} | it rises | 1 of 1 | **0 of 1** |" in verdicts
    page = folder.joinpath("tods_fig99.md").read_text(encoding="utf-8")
    assert "Reduced to save time: scikit-learn: only at 5. weka: only at 5." in page
    assert "![A title](tods_fig99.png)" in page
    assert "Measured at commit `1234567e10`. Raw trials are kept beside it" in page


def test_claims_of_our_own_stand_apart_from_the_paper_s(tmp_path):
    folder = tmp_path / "reproduction"
    given = Namespace(out=folder, learners=["none"], seed=1, quick=False, trials=None, at=None)
    found = Measured("k")
    found.add(0, 1.0, k=5)
    found.stamp.update(seed=1, version="0.1", commit="1234567e10")
    both = [Claim(text, (finding(holds=True),)) for text in ("it rises", f"{OURS}it falls")]
    record.save(given, "tods_fig99", "A title", "A set-up.", found, {"none": both})
    theirs, ours = (tmp_path / "reproduction.md").read_text("utf-8").split("## Claims of our own")
    assert ("| it rises | 1 of 1 |  |" in theirs, "it falls" in theirs) == (True, False)
    assert "| it falls | 1 of 1 |" in ours
    theirs, ours = folder.joinpath("tods_fig99.md").read_text("utf-8").split("## What we claim")
    assert ("### It rises" in theirs, "### It falls" in ours) == (True, True)


def test_what_is_drawn_again_keeps_its_points_and_the_claims_that_need_trials(tmp_path):
    folder = tmp_path / "reproduction"
    saved(folder, "weka", 0.25)
    points = folder.joinpath("tods_fig99.csv").read_bytes()
    given = Namespace(out=folder, learners=["weka"], seed=1, quick=False, redraw=True)
    found = record.measured(given, "tods_fig99", ("learners", "k"), list)
    assert found.of(learners="weka", k=5).tolist() == [0.375]
    by_means = Claim("it is low", (finding(holds=True),), from_means=True)
    tested = [Claim(text, (finding(holds=False),)) for text in ("it rises", "it was never tested")]
    figure = record.save(given, "tods_fig99", "A title", "Once more.", found, {"weka": [*tested, by_means]})
    assert [(claim.text, claim.outcome) for claim in figure.claims["weka"]] == [
        ("it rises", "held"), ("it is low", "held"),
    ]  # fmt: skip
    assert folder.joinpath("tods_fig99.csv").read_bytes() == points
    assert "Once more." in folder.joinpath("tods_fig99.md").read_text("utf-8")


DOCS = REPRODUCTION.parent / "docs"


def test_the_pages_are_what_the_records_say(tmp_path):
    copy = tmp_path / "reproduction"
    copy.mkdir()
    for path in (DOCS / "reproduction").glob("*.json"):
        copy.joinpath(path.name).write_bytes(path.read_bytes())
    pages.write(copy)
    assert (tmp_path / "reproduction.md").read_text("utf-8") == (DOCS / "reproduction.md").read_text("utf-8")
    written = {path.name: path.read_text("utf-8") for path in copy.glob("*.md")}
    assert written == {path.name: path.read_text("utf-8") for path in (DOCS / "reproduction").glob("*.md")}


def test_all_verdicts_are_read_in_five_minutes():
    text = (DOCS / "reproduction.md").read_text("utf-8")
    text = re.sub(r"\]\([^)]*\)|\d+ of \d+", "", text)  # addresses and verdicts are not read word by word
    assert len(re.findall(r"[A-Za-z][\w'-]*", text)) < 5 * 270


def test_every_claim_on_record_states_its_tolerance():
    for name, document in pages.records(DOCS / "reproduction").items():
        for claims in document["claims"].values():
            for claim in claims:
                assert pages.notes("tolerances.json", name, claim), (name, claim["text"])


def test_reasons_and_tolerances_are_of_claims_on_record():
    texts = {
        name: [claim["text"] for claims in document["claims"].values() for claim in claims]
        for name, document in pages.records(DOCS / "reproduction").items()
    }
    for file in ("reasons.json", "tolerances.json"):
        written = json.loads((REPRODUCTION / "lab" / file).read_text("utf-8"))
        lost = [
            (name, start)
            for name, starts in written.items()
            if name in texts
            for start in starts
            if not any(text.startswith(start) for text in texts[name])
        ]
        assert not lost


def test_nothing_is_said_to_be_the_paper_s_that_it_does_not_say():
    everything = "".join(path.read_text("utf-8") for path in (DOCS / "reproduction").glob("*.md"))
    assert "5 and 50 million" not in everything


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.NAME)
def test_every_figure_is_on_record_in_full(script):
    folder = REPRODUCTION.parent / "docs" / "reproduction"
    document = json.loads((folder / f"{script.NAME}.json").read_text(encoding="utf-8"))
    assert not document["quick"]
    has_models = hasattr(script, "MODEL") or hasattr(script, "MODELS")
    assert set(document["claims"]) == (set(LEARNERS) if has_models else {record.NO_LEARNERS})
    assert (folder / f"{script.NAME}.png").stat().st_size > 10_000
    assert record.read_points(folder / f"{script.NAME}.csv")


# ---- tables ----------------------------------------------------------------------------------------------


def test_pairs_share_the_constants_that_are_drawn():
    train, test = studies.agrawal_pair({"class": "C2", "F": "C7"}, 4_000, seeded(3), vary=("C2",))
    assert train.table.column_names == [*train.features, "class", "F"]
    for study in (train, test):
        columns = {name: study.table[name].to_numpy() for name in train.features}
        assert (study.table["F"].to_numpy() == np.where(label_rows("C7", columns), "A", "B")).all()
        assert (study.table["class"].to_numpy() != np.where(label_rows("C2", columns), "A", "B")).any()
    share = [np.mean(study.table["class"].to_numpy() == "A") for study in (train, test)]
    assert share[0] == pytest.approx(share[1], abs=0.05)
    assert train.table["age"] != test.table["age"]


def test_training_rows_hold_both_classes_however_narrow_the_constants():
    for number in range(60):
        train, _ = studies.agrawal_pair({"class": "C2"}, 5, seeded_block(2, number), vary=("C2",))
        assert len(set(train.table["class"].to_pylist())) == 2


def test_the_three_conditions_are_function_c2():
    study = studies.agrawal_table(5_000, seeded(4))
    source, schema = open_table(study.table), study.schema()
    found = [
        select.matches(predicate.parse(text, schema), source, schema) for text in studies.c2_predicates()
    ]
    is_a = study.table["class"].to_numpy() == "A"
    assert (np.sum(found, axis=0) == is_a).all()


@pytest.mark.data
def test_census_is_as_large_and_as_uneven_as_the_paper_s(data_folder, monkeypatch):
    monkeypatch.setenv("SFUMATO_DATA", str(data_folder))
    study = studies.census(studies.CENSUS_ROWS, record.SEED)
    assert study.table.num_rows == 49_657
    low = study.table.filter(pa.compute.equal(study.table["class"], "low"))
    assert low.num_rows / 49_657 == pytest.approx(0.56, abs=0.01)
    assert low["wage"].to_numpy().max() < study.table["wage"].to_numpy().max()
    assert pa.compute.min(study.table["wage"]).as_py() > 0
    assert study.table.column_names == [*study.features, "class", "wage"]
    assert all(column.null_count == 0 for column in study.table.columns)


@pytest.mark.data
def test_folds_hold_out_every_row_once_and_classes_evenly(data_folder, monkeypatch):
    monkeypatch.setenv("SFUMATO_DATA", str(data_folder))
    parts = [fold.open() for fold in trials.folds("Contraceptives", quick=True, seed=1)]
    assert sum(part.test.num_rows for part in parts) == 1_473
    assert all(part.train.num_rows + part.test.num_rows == 1_473 for part in parts)
    shares = [np.bincount(part.truth("class").test) for part in parts]
    assert np.ptp(shares, axis=0).max() <= 1


# ---- trials ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_trial_of_figure_6_with_both_learners():
    entries = tods_fig06.trial("C2", 0, LEARNERS, 1)
    assert len(entries) == 2 * 4 * 4
    score = {(e["learners"], e["model"], e["method"]): e["value"] for e in entries}
    for learners in LEARNERS:
        assert score[learners, "decision-tree", "Original"] > 0.9
        assert score[learners, "decision-tree", "InfoGain"] > score[learners, "decision-tree", "Median"]
    assert score["scikit-learn", "naive-bayes", "TDS"] == score["weka", "naive-bayes", "TDS"]


@pytest.mark.slow
def test_a_trial_of_figure_10_gives_a_square_for_each_model():
    order = tods_fig10.FUNCTIONS
    entries = tods_fig10.trial(0, (order, order[::-1]), ("scikit-learn",), 1)
    assert len(entries) == 2 * 7 * 7
    full = [e["value"] for e in entries if e["model"] == "decision-tree" and e["included"] == 7]
    assert full == pytest.approx(full[::-1])  # both orders end with the same anonymization


def test_a_trial_of_figure_12_measures_three_ways():
    entries = tods_fig12.trial(0, 50, 1)
    found = {entry["method"]: entry["value"] for entry in entries}
    assert list(found) == list(tods_fig12.METHODS)
    assert found["Selection"] < found[tods_fig12.RESTRICTED] < found["Median"]


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("learners", LEARNERS)
def test_trials_on_real_tables(data_folder, monkeypatch, learners):
    monkeypatch.setenv("SFUMATO_DATA", str(data_folder))
    fold, cmc = small_fold(), small_fold("Contraceptives")
    assert {e["method"] for e in tods_fig07.trial(fold, 10, (learners,))} == set(tods_fig07.METHODS)
    of_original = tods_fig07.trial_of_original(cmc, (learners,))
    assert [e["method"] for e in of_original] == ["Original"]
    for entry in tods_fig07.trial(cmc, 10, (learners,)):
        assert 0.3 < entry["value"] < 0.7
    errors = {e["method"]: e["value"] for e in tods_fig09.trial(fold, 50, (learners,))}
    assert all(10_000 < error < 100_000 for error in errors.values())
    found = {e["measure"]: e["value"] for e in tods_fig11.trial(fold, 1.5, (learners,))}
    assert found["conditional entropy"] > np.log2(1.5)
    dropped = tods_fig13.trial_of_projection(cmc, "TDS", (learners,))
    assert [entry["n"] for entry in dropped] == list(range(9))


@pytest.mark.data
def test_figure_8_measures_entropy_and_size(data_folder, monkeypatch):
    monkeypatch.setenv("SFUMATO_DATA", str(data_folder))
    found = {(e["method"], e["measure"]): e["value"] for e in tods_fig08.trial(small_fold(), 10)}
    assert all(found[method, "average group size"] >= 10 for method in tods_fig08.METHODS)
    assert found["InfoGain", "conditional entropy"] < found["Median", "conditional entropy"] < 1


@pytest.mark.data
def test_one_group_of_figure_13_is_the_plain_recoding(data_folder, monkeypatch):
    monkeypatch.setenv("SFUMATO_DATA", str(data_folder))
    part = small_fold().open()
    features = part.study.features
    plain = part.recode(part.study.policy("InfoGain", k=50))
    random = seeded(5)
    nobody = [np.zeros(table.num_rows, dtype=np.int64) for table in (part.train, part.test)]
    alone = tods_fig13._together([plain.columns], features, *nobody)
    expected = plain.points(features)
    assert np.array_equal(alone.train.numbers, expected.train.numbers)
    assert np.array_equal(alone.test.numbers, expected.test.numbers)
    of_train, of_test = (random.integers(2, size=len(rows)) for rows in nobody)
    both = [
        trials.recode(
            part.train.filter(of_train == g),
            part.test.filter(of_test == g),
            part.study.policy("Median", k=50),
        )
        for g in range(2)
    ]
    mixed = tods_fig13._together([each.columns for each in both], features, of_train, of_test)
    for g, each in enumerate(both):
        assert np.array_equal(mixed.train.numbers[of_train == g], each.points(features).train.numbers)
        assert np.array_equal(mixed.test.numbers[of_test == g], each.points(features).test.numbers)


@pytest.mark.data
def test_features_are_ranked_by_what_they_tell(data_folder, monkeypatch):
    monkeypatch.setenv("SFUMATO_DATA", str(data_folder))
    part = small_fold().open()
    ranking = trials.ranked(part.study, part.train, "class")
    assert sorted(ranking) == sorted(part.study.features)
    assert ranking.index("hours") < ranking.index("disability")


@pytest.mark.slow
def test_a_script_runs_from_the_command_line_and_again_from_its_saved_trials(tmp_path):
    command = [
        sys.executable,
        str(REPRODUCTION / "tods_fig12.py"),
        "--quick",
        "--trials",
        "2",
        "--processes",
        "1",
    ]
    command += ["--out", str(tmp_path / "reproduction")]
    seen = []
    for options in ([], ["--again"]):
        done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        seen.append((tmp_path / "reproduction.md").read_text(encoding="utf-8"))
    assert seen[0] == seen[1]
    assert "(a quick run: no evidence)" in seen[0]
    assert (tmp_path / "reproduction" / "tods_fig12.png").exists()


def test_every_row_of_the_verdicts_has_a_cell_for_each_column():
    page = (REPRODUCTION.parent / "docs" / "reproduction.md").read_text(encoding="utf-8")
    widths = {line.count(" | ") for line in page.splitlines() if line.startswith("| ")}
    assert widths == {3}
