"""DiffGen beside AIM and MST: bins, files, judgement. The peers themselves never run here."""

import doctest
import os
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

REPRODUCTION = Path(__file__).resolve().parents[2] / "reproduction"
sys.path.insert(0, str(REPRODUCTION))

import diffgen_peers as beside  # noqa: E402 - found by the line above
from lab import private, record, samples  # noqa: E402
from lab.private import BOOSTED, TREE  # noqa: E402
from lab.record import Measured  # noqa: E402
from peers import ask  # noqa: E402
from peers.ask import AIM, MST, Job  # noqa: E402


@pytest.mark.parametrize("module", [samples, ask], ids=lambda module: module.__name__)
def test_examples(module):
    done = doctest.testmod(module)
    assert (done.failed, done.attempted > 0) == (0, True)


# ---- what the peers see ----------------------------------------------------------------------------------


PERSON = {
    "age": 39, "workclass": "State-gov", "fnlwgt": 77_516, "education": "Bachelors", "education-num": 13,
    "marital-status": "Never-married", "occupation": "Adm-clerical", "relationship": "Not-in-family",
    "race": "White", "sex": "Male", "capital-gain": 2_174, "capital-loss": 0, "hours-per-week": 40,
    "native-country": "United-States", "salary-class": "<=50K",
}  # fmt: skip


def people(**changes):
    """As many people as a change has values."""
    n = max(len(values) for values in changes.values())
    return pa.table({name: changes.get(name, [value] * n) for name, value in PERSON.items()})


def test_bins_are_public_and_within_the_declared_bounds():
    assert set(ask.BINS) == set(private.NUMBERS)
    for name, begins in ask.BINS.items():
        low, high, _ = private.NUMBERS[name]
        assert low < begins[0]
        assert begins[-1] <= high
        assert (np.diff(begins) > 0).all()


def test_a_bin_begins_with_its_first_value():
    codes = ask.codes(
        people(age=[15, 19, 20, 24, 25, 95], **{"capital-gain": [0, 1, 999, 1_000, 50_000, 100_000]})
    )
    assert codes["age"].to_pylist() == [0, 0, 1, 1, 2, 15]
    assert codes["capital-gain"].to_pylist() == [0, 1, 1, 2, 14, 14]


def test_a_category_is_its_place_among_the_declared_ones():
    names = sorted(["Male", "Female"])
    codes = ask.codes(people(sex=["Male", "Female"], **{"salary-class": [">50K", "<=50K"]}))
    assert codes["sex"].to_pylist() == [names.index("Male"), names.index("Female")]
    assert codes["salary-class"].to_pylist() == [1, 0]
    assert codes.column_names == list(PERSON)
    assert all(codes[name][0].as_py() < size for name, size in ask.domain().items())


def test_the_domain_is_what_is_declared():
    sizes = ask.domain()
    assert (sizes["age"], sizes["education"], sizes["native-country"], sizes["salary-class"]) == (
        16,
        16,
        41,
        2,
    )


@pytest.mark.data
def test_every_row_of_adult_has_a_code(data_folder, monkeypatch):
    monkeypatch.setenv("SFUMATO_DATA", str(data_folder))
    train, test = ask.parts()
    assert (train.num_rows, test.num_rows) == (30_162, 15_060)
    for part in (train, test):
        for name, size in ask.domain().items():
            codes = part[name].to_numpy()
            assert 0 <= codes.min() <= codes.max() < size
    found = private.scores(TREE, *ask.as_they_are())
    assert 84.5 < found["accuracy"] < 86
    assert 88 < found["AUC"] < 92


# ---- asking ----------------------------------------------------------------------------------------------


@pytest.fixture
def few(monkeypatch):
    """Few people in place of Adult: the married earn more."""
    n = 40
    rows = people(
        age=list(range(20, 20 + n)),
        **{
            "marital-status": ["Married-civ-spouse", "Divorced"] * (n // 2),
            "salary-class": [">50K", "<=50K"] * (n // 2),
        },
    )
    parts = ask.codes(rows), ask.codes(rows.slice(0, 10))
    monkeypatch.setattr(ask, "parts", lambda: parts)
    return parts


FAKE = """
import numpy as np

class FactoredInference:
    def __init__(self, domain, iters, warm_start=False, prng=None):
        self.options = (iters, warm_start)
        self.left = 64.0
    def estimate(self, measurements):
        self.left /= 2
        counts = np.zeros(1)
        self.groups, self.measured = {"c": [(None, counts, 1, "c")]}, {id(counts): (np.ones(1), counts)}
        self.model = type("Model", (), {"marginals": {"c": Cell(2 * (1000 + self.left))}})

class Cell:  # its loss is half of its square
    domain = type("Domain", (), {"shape": (1,)})
    def __init__(self, square):
        self.values = np.array([square**0.5])
    def project(self, attributes):
        return self

class Fake:
    def __init__(self, *, epsilon, delta, n_jobs, **settings):
        self.given = (epsilon, delta, n_jobs, settings)
    def set_domain(self, domain):
        self.domain = domain
    def check_fit(self, rows):
        assert (rows.max() < [self.domain[name] for name in rows]).all()
    def fit(self, rows):
        from dpmm.models.base.mechanisms import mechanism
        self.rows = rows
        engine = mechanism.FactoredInference(domain=None, iters=7, prng=None)
        engine.estimate([])
        self.engine = engine
    def generate(self, n_records):
        print("made", *self.given, n_records, *self.engine.options)
        return self.rows[self.rows.columns[::-1]]
"""


def synthesize(folder, library):
    """Run the script of the peers with a stand-in for dpmm, which cannot live in this environment."""
    for name, text in {
        "models/aim.py": FAKE + "AIMGM = Fake\n",
        "models/mst.py": FAKE + "MSTGM = Fake\n",
        "models/base/mbi/__init__.py": FAKE,
        "models/base/mbi/factor.py": "class Factor:\n    __iadd__ = lambda self, other: self\n",
        "models/base/mechanisms/mechanism.py": "",
    }.items():
        module = library / "dpmm" / name
        module.parent.mkdir(parents=True, exist_ok=True)
        module.write_text(text)
    done = subprocess.run(
        [sys.executable, str(REPRODUCTION / "peers" / "synthesize.py"), str(folder)],
        env={**os.environ, "PYTHONPATH": str(library)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.splitlines()


@pytest.mark.slow
def test_the_other_environment_is_talked_to_by_files(few, tmp_path):
    jobs, folder = [Job(AIM, 0.25, 0), Job(MST, 1, 3)], tmp_path / "rows"
    ask.write(jobs, folder, quick=False)
    mst = "made 1 1e-09 1 {} 30000 250 True"
    assert synthesize(folder, tmp_path) == [
        "made 0.25 1e-09 1 {'max_model_size': 4, 'n_iters': 100} 30000 250 True",
        mst,
    ]
    for job in jobs:
        assert pyarrow.csv.read_csv(folder / job.file).equals(few[0])
        taken = ask.taken(job, folder)
        assert taken is not None
        assert taken["CPU seconds"] >= 0
        assert taken["rounds of the last fit"] == 3  # 1032, 1016, 1008: the last is less than 1% lower
    (folder / jobs[1].file).with_suffix(".json").unlink()
    assert synthesize(folder, tmp_path) == [mst]  # and the other is not made again


def test_synthetic_rows_are_judged_on_the_test_rows(few, tmp_path):
    job = Job(AIM, 1, 0)
    assert beside.trial_of_peer(job, tmp_path) == []
    pyarrow.csv.write_csv(few[0], tmp_path / job.file)
    (tmp_path / job.file).with_suffix(".json").write_text('{"seconds": 12.5, "losses": [3.0, 2.0]}')

    def scores():
        entries = beside.trial_of_peer(job, tmp_path)
        return {(e["measure"], e["model"]): e["value"] for e in entries}

    assert scores() == {
        ("accuracy", TREE): 100.0, ("AUC", TREE): 100.0, ("accuracy", BOOSTED): 100.0, ("AUC", BOOSTED): 100.0,
        ("CPU seconds", ""): 12.5, ("rounds of the last fit", ""): 2.0,
    }  # fmt: skip
    turned = few[0].set_column(14, "salary-class", pa.array(1 - few[0]["salary-class"].to_numpy()))
    pyarrow.csv.write_csv(turned, tmp_path / job.file)
    assert scores()["accuracy", TREE] == 0.0
    assert scores()["AUC", BOOSTED] == 0.0


def test_the_first_run_of_everything_comes_before_the_second():
    asked = beside.jobs(Namespace(trials=2, quick=False))
    assert len(set(asked)) == 2 * 2 * 2
    assert [job.number for job in asked] == [0] * 4 + [1] * 4
    assert len({job.file for job in asked}) == 8


# ---- judgement -------------------------------------------------------------------------------------------


def measured(level):
    """Runs of all methods around the score that ``level`` says."""
    found = Measured(*beside.KEYS)
    for method in (beside.TUNED, beside.IN_BINS, AIM, MST):
        for measure in beside.SCORES:
            for model in beside.MODELS:
                for number, away in enumerate([-0.1, 0.0, 0.1]):
                    value = level(method, measure, model) + away
                    found.extend([beside.entry(number, value, measure, model, method, 1)])
    for method in (beside.ORIGINAL, beside.ORIGINAL_IN_BINS, beside.MAJORITY):
        for measure in beside.SCORES:
            found.extend([beside.entry(0, 85.0, measure, model, method, "") for model in beside.MODELS])
    for peer in (AIM, MST):
        found.extend([beside.entry(0, 12.0, "CPU seconds", "", peer, 1)])
        found.extend([beside.entry(0, 3.0, "rounds of the last fit", "", peer, 1)])
    return found


def verdicts(level):
    return [claim.outcome for claim in beside.claims(measured(level), [1])]


def test_each_peer_is_judged_by_each_score():
    assert verdicts(lambda method, *_: 84.0 if method == beside.TUNED else 80.0) == ["held"] * 4
    assert verdicts(lambda *_: 80.0) == ["not held"] * 4
    aim_boosted = verdicts(lambda method, _, model: 85.0 if (method, model) == (AIM, BOOSTED) else
                           84.0 if method == beside.TUNED else 80.0)  # fmt: skip
    assert aim_boosted == ["held in part", "held in part", "held", "held"]


def test_runs_are_compared_as_independent_ones():
    first, second = np.array([84.0, 84.2, 84.1, 84.1]), np.array([82.0, 82.4])
    finding = samples.above("", first, second)
    assert finding.holds
    assert finding.statistic == "84.10 ± 0.08 against 82.20 ± 0.28, t = 9.31, p = .029"
    assert not samples.above("", second, first).holds
    level = samples.above("", np.full(2, 80.0), np.full(3, 79.0))
    assert (level.holds, level.statistic) == (True, "80.00 against 79.00, the same in every run")


def test_the_table_says_which_promise_is_the_weaker_one():
    lines = beside.table(measured(lambda *_: 82.0), [1]).splitlines()
    assert "| AIM, (epsilon, 1e-9) | decision tree | accuracy | 3 | 82.00 ± 0.10 |" in lines
    assert "AIM: 12 to 12 CPU seconds a table, 3 to 3 rounds of 250 steps in the last fit." in lines


def test_trials_of_peers_that_are_on_record_are_not_made_again(tmp_path):
    given = Namespace(fresh=False, quick=False, out=tmp_path, learners=[beside.LEARNERS])
    found = Measured(*beside.KEYS)
    found.stamp.update(seed=1, version="0", commit="c")
    found.extend(
        [
            beside.entry(0, 80.0, "accuracy", TREE, AIM, 0.5),
            beside.entry(0, 84.0, "accuracy", TREE, beside.TUNED, 0.5),
        ]
    )
    record._write_trials(given, beside.NAME, found)
    (kept,) = beside.kept(given)
    assert (kept["method"], kept["epsilon"], kept["trial"], kept["value"]) == (AIM, 0.5, 0, 80.0)
    given.fresh = True
    assert beside.kept(given) == []


# ---- the bins --------------------------------------------------------------------------------------------


@pytest.mark.data
def test_diffgen_runs_on_the_bins_of_the_peers(data_folder, monkeypatch):
    monkeypatch.setenv("SFUMATO_DATA", str(data_folder))
    domains, codes = beside.binned()
    sizes = {domain.attribute.name: domain.n_codes for domain in domains}
    for name in ask.BINS:
        assert len(np.unique(codes[:, list(sizes).index(name)])) <= ask.domain()[name] <= sizes[name]
    found = beside.trial(beside.IN_BINS, 1, 0, 1, 3_000)
    assert {entry["measure"] for entry in found} == set(beside.SCORES)
    assert all(60 < entry["value"] < 95 for entry in found)
