"""The bundled example behaves like a real table, fits its policy, and is written whole."""

import datetime as dt
import re
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from click.testing import CliRunner
from scipy.stats import chi2_contingency

from sfumato.cli import commands
from sfumato.cli.demo import DEMO_MARK
from sfumato.errors import InputError
from sfumato.examples.demo import MISSING, POLICY, hierarchies, patients, stays, write_example
from sfumato.policy.document import Policy
from sfumato.policy.hierarchy import tree as hierarchy
from sfumato.policy.hierarchy.declarations import Given
from sfumato.policy.schema import Role
from sfumato.table.cells import texts
from sfumato.table.opening import open_table


@pytest.fixture(scope="module")
def table():
    return patients()


@pytest.fixture(scope="module")
def frame(table):
    return table.to_pandas()


@pytest.fixture
def example(tmp_path):
    write_example(tmp_path / "example", n_rows=300)
    return tmp_path / "example"


def p_of_independence(frame, left, right):
    return chi2_contingency(frame.groupby([left, right]).size().unstack(fill_value=0)).pvalue


def test_the_same_seed_gives_the_same_patients_and_another_seed_others(table):
    assert table.num_rows == 10_000
    assert patients() == table
    assert patients(50, seed=1) != patients(50, seed=2)


def test_both_identifiers_are_unique(table):
    for name in ("patient_id", "insurance_number"):
        assert pc.count_distinct(table[name]).as_py() == table.num_rows
        assert table[name].null_count == 0


def test_patient_numbers_do_not_give_away_the_order_of_rows(frame):
    assert not frame["patient_id"].is_monotonic_increasing
    assert abs(np.corrcoef(frame["patient_id"].str[1:].astype(int), frame.index)[0, 1]) < 0.05


def test_a_few_cells_of_four_quasi_identifiers_are_missing_and_no_others(table):
    for name in table.column_names:
        share = table[name].null_count / table.num_rows
        if name in MISSING:
            assert MISSING[name] / 2 < share < MISSING[name] * 2
        else:
            assert share == 0


def test_zip_codes_have_five_digits_and_cluster_by_area(frame):
    assert frame["zip"].str.fullmatch(r"\d{5}").all()
    assert frame["zip"].str.startswith("0").mean() > 0.3
    assert 50 < frame["zip"].nunique() < 100
    assert frame["zip"].str[:3].nunique() == 12


def test_children_neither_work_nor_marry_nor_smoke(frame):
    children = frame[frame["age"] < 16]
    assert len(children) > 500
    assert set(children["occupation"].dropna()) == {"Child", "Student"}
    assert set(children["marital_status"].dropna()) == {"Single"}
    assert set(children["smoker"]) == {"no"}


def test_work_depends_on_schooling(frame):
    physicians = frame[frame["occupation"] == "Physician"]["education"].dropna()
    assert set(physicians) <= {"Master's degree", "Professional degree", "Doctorate"}
    cleaners = frame[frame["occupation"] == "Cleaner"]["education"].dropna()
    assert len(physicians) > 20
    assert len(cleaners) > 50
    assert not set(cleaners) & {"Master's degree", "Professional degree", "Doctorate"}


@pytest.mark.parametrize(
    ("cause", "effect"),
    [
        ("smoker", "diagnosis"),
        ("sex", "diagnosis"),
        ("sex", "marital_status"),
        ("smoker", "readmitted"),
        ("diagnosis", "readmitted"),
        ("education", "smoker"),
    ],
)
def test_what_should_depend_does(frame, cause, effect):
    """Chi-square on adults; independent columns would be called dependent once in a million seeds."""
    assert p_of_independence(frame[frame["age"] >= 25], cause, effect) < 1e-6


def test_what_has_no_reason_to_depend_does_not(frame):
    """The same test at the same rate of false alarm, 1e-6, so that the one above can fail."""
    frame = frame.assign(area=frame["zip"].str[:3])
    assert p_of_independence(frame, "sex", "smoker") > 1e-6
    assert p_of_independence(frame, "area", "sex") > 1e-6


def test_age_and_disease_drive_cost_and_return(frame):
    charge = frame.groupby("diagnosis")["charge"].mean()
    assert charge["Lung cancer"] > 3 * charge["Asthma"]
    returns = (frame["readmitted"] == "yes").groupby(frame["age"] >= 65).mean()
    assert returns[True] > 2 * returns[False] > 0
    assert frame["charge"].min() > 0


def test_diseases_are_many_and_none_rules(frame):
    shares = frame["diagnosis"].value_counts(normalize=True)
    assert len(shares) == 12
    assert shares.max() < 0.2
    assert shares.min() > 0.02


def test_admissions_are_days_of_two_years_with_coughs_in_winter(table, frame):
    assert table.schema.field("admitted").type == pa.date32()
    assert frame["admitted"].min() >= dt.date(2023, 1, 1)
    assert frame["admitted"].max() <= dt.date(2024, 12, 31)
    month = frame["admitted"].map(lambda day: day.month)
    coughs = frame["diagnosis"].isin(["Pneumonia", "COPD", "Asthma"])
    assert (month[coughs] <= 2).mean() > 1.5 * (month[~coughs] <= 2).mean()


def test_no_rows_are_refused():
    with pytest.raises(InputError, match="at least 1 row"):
        patients(0)


def test_the_hierarchies_hold_every_value_and_no_other(table):
    for name, tree in hierarchies().items():
        leaves = {tree.labels[node] for node in tree.leaf_nodes.tolist()}
        assert leaves == set(table[name].drop_null().to_pylist())
        assert tree.height == 3


def test_the_policy_names_every_column_and_covers_every_value(example, table):
    policy = Policy.read(example / "policy.yaml")
    policy.check_columns(table.column_names)
    source = open_table(example / "patients.csv")
    for attribute in policy.schema:
        if attribute.values:
            words = texts(source.column(attribute.name), attribute).dictionary.to_pylist()
            assert set(words) <= set(attribute.values)
    assert policy.schema.names(Role.SENSITIVE) == ("diagnosis", "charge")
    assert len(policy.schema.quasi_identifiers) == 8
    assert [requirement.word for requirement in policy.requirements] == [
        "k-anonymity", "entropy-diversity", "variance-diversity",
    ]  # fmt: skip


def test_the_private_policy_declares_every_value_and_is_that_of_the_guide(example, table):
    policy = Policy.read(example / "private.yaml")
    policy.check_columns(table.column_names)
    assert policy.is_private
    for attribute in policy.schema:
        found = set(table[attribute.name].drop_null().to_pylist())
        if attribute.values:
            assert set(attribute.values) == found
        if attribute.hierarchy:
            assert isinstance(attribute.hierarchy, Given)
            tree = attribute.hierarchy.tree
            assert {tree.labels[node] for node in tree.leaf_nodes.tolist()} == found
        if attribute.bounds:
            assert attribute.bounds[0] <= min(found) <= max(found) <= attribute.bounds[1]
    guide = Path(__file__).parents[3] / "docs" / "differential-privacy.md"
    (written,) = re.findall(
        r"^```yaml\n(.*?)^```", guide.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    assert Policy.parse(written, example) == policy


def test_the_policy_for_a_box_of_each_row_is_that_of_the_guide(example, table):
    policy = Policy.read(example / "personal.yaml")
    policy.check_columns(table.column_names)
    assert policy.method.name == "risk-utility"
    assert not policy.is_private
    guide = Path(__file__).parents[3] / "docs" / "risk-utility.md"
    written, *_ = re.findall(
        r"^```yaml\n(.*?)^```", guide.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    assert Policy.parse(written, example) == policy


def test_the_example_is_eight_files_that_hold_what_the_functions_return(example):
    files = sorted(str(path.relative_to(example)) for path in example.rglob("*") if path.is_file())
    assert files == [
        "hierarchies/education.csv", "hierarchies/occupation.csv", "patients.csv", "personal.yaml", "policy.yaml",
        "private.yaml", "stays.csv", "stays.yaml",
    ]  # fmt: skip
    assert (example / "policy.yaml").read_text(encoding="utf-8") == POLICY
    for name, tree in hierarchies().items():
        assert hierarchy.read(example / "hierarchies" / f"{name}.csv") == tree
    source = open_table(example / "patients.csv")
    assert source.names == tuple(patients(1).column_names)
    assert source.n_rows == 300
    assert source.column("zip").to_pylist() == patients(300)["zip"].to_pylist()
    assert open_table(example / "stays.csv").column("zip").to_pylist() == stays(150)["zip"].to_pylist()


def test_writing_the_example_again_gives_the_same_bytes(example):
    before = {path: path.read_bytes() for path in example.rglob("*") if path.is_file()}
    write_example(example, n_rows=300)
    assert {path: path.read_bytes() for path in example.rglob("*") if path.is_file()} == before


def test_the_policy_says_what_the_release_is_for(example):
    policy = Policy.read(example / "policy.yaml")
    assert [task.word for task in policy.workload] == ["select", "classify"]
    (condition,) = policy.selections
    rows = patients()
    true = pc.and_(pc.greater_equal(rows["age"], 65), pc.equal(rows["smoker"], "yes"))
    assert condition.where == "age >= 65 and smoker = 'yes'"
    assert 300 < pc.sum(true).as_py() < 1000


# ---- stays -------------------------------------------------------------------------------------------


def test_patients_of_stays_come_back_and_are_told_apart_by_their_numbers():
    frame = stays().to_pandas()
    of_one = frame.groupby("patient_id").size()
    assert (len(frame), len(of_one)) == (5_000, 3_000)
    assert (of_one == 1).mean() > 0.5
    assert of_one.max() >= 5
    zips = frame.groupby("patient_id")["zip"].nunique()
    assert (zips == 1).all()
    together = frame["patient_id"] == frame["patient_id"].shift()
    assert together.mean() < 0.01  # their rows are not side by side
    assert stays(200) == stays(200) != stays(200, seed=1)
    assert stays(1).num_rows == 1


def test_no_stays_are_refused():
    with pytest.raises(InputError, match="at least 1 row"):
        stays(0)


def test_the_policy_of_stays_counts_patients_and_covers_every_value(example):
    policy = Policy.read(example / "stays.yaml")
    policy.check_columns(stays(1).column_names)
    assert policy.person == "patient_id"
    frame = stays().to_pandas()
    for attribute in policy.schema:
        if attribute.values:
            assert set(frame[attribute.name]) <= set(attribute.values)


# ---- sfumato demo ------------------------------------------------------------------------------------


def run_demo(folder) -> tuple[str, str]:
    done = CliRunner().invoke(commands, ["demo", "--out", str(folder)], catch_exceptions=False)
    assert done.exit_code == 0
    return done.output, (folder / "release" / "report.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_demo_evaluates_publishes_and_verifies(tmp_path):
    said, report = run_demo(tmp_path / "demo")
    assert "readmitted: accuracy on held-out rows" in said
    assert "10,000 rows in" in said
    assert "select age >= 65 and smoker = 'yes':" in said
    assert "FAIL" not in said
    assert "5,000 rows of 3,000 people in" in said
    again = re.search(
        r"counted again in .*stays.csv: 10-anonymity holds of people, the smallest group has (\d+) people",
        said,
    )
    assert again is not None
    assert int(again[1]) >= 10
    rows = (tmp_path / "demo" / "stays-release" / "release.csv").read_text(encoding="utf-8").splitlines()
    assert len(rows) == 5_001
    assert "patient_id" not in rows[0]
    assert "Measured by 3-fold cross-validation on 10,000 rows" in report
    assert "What the conditions of the workload return" in report


@pytest.mark.slow
def test_the_demo_without_scikit_learn_says_what_to_install_and_goes_on(tmp_path, monkeypatch):
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / DEMO_MARK).touch()
    (tmp_path / "demo" / "evaluation.json").write_text("of an earlier run")
    for name in [name for name in sys.modules if name.partition(".")[0] == "sklearn"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    said, report = run_demo(tmp_path / "demo")
    assert 'pip install "sfumato[evaluate]"' in said
    assert "10,000 rows in" in said
    assert "Not measured for this release." in report
    assert not (tmp_path / "demo" / "evaluation.json").exists()
