"""``evaluate`` and ``compare`` as a user meets them."""

from __future__ import annotations

import json

import pyarrow.csv as pacsv
import pytest
from commandline import POLICY, names, on_terminal, people

from sfumato.evaluation.result import Evaluation
from sfumato.policy.document import Policy
from sfumato.table.opening import open_table
from sfumato.table.write import write_table

FEW = ("--models", "decision-tree", "--folds", 2)


@pytest.fixture
def table(here):
    write_table(people(300), here / "people.csv")
    return here / "people.csv"


@pytest.fixture
def policy(here):
    path = here / "policy.yaml"
    path.write_text(POLICY + "workload: [classify: disease]\n", encoding="utf-8")
    return path


def test_evaluate_prints_a_table_and_writes_nothing(sfumato_process, here, table, policy):
    done = sfumato_process("evaluate", table, "--policy", policy, *FEW)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(
        "2 folds of 300 rows; learned from corners by scikit-learn; seed 0.\n\ndisease: accuracy"
    )
    assert "decision-tree" in done.out
    assert "average group size" in done.out
    assert names(here) == ["people.csv", "policy.yaml"]


def test_evaluate_writes_json_that_reads_back(sfumato, here, table, policy):
    done = sfumato("evaluate", table, "--policy", policy, *FEW, "--out", "e.json", "--quiet", "--seed", 3)
    assert (done.code, done.out, done.err) == (0, "", "")
    found = Evaluation.from_json((here / "e.json").read_bytes())
    assert found.policy == Policy.read(policy).as_dict()
    assert found.protocol == {
        "folds": 2, "rows": 300, "seed": 3, "learners": "scikit-learn", "learn_from": "corners",
    }  # fmt: skip


def test_evaluate_writes_csv_of_all_folds(sfumato, here, table, policy):
    assert sfumato("evaluate", table, "--policy", policy, *FEW, "--out", "e.csv").code == 0
    lines = pacsv.read_csv(here / "e.csv").to_pylist()
    assert [(line["data"], line["metric"], line["fold"]) for line in lines[:18]] == [
        (data, metric, fold)
        for data in ("release", "raw", "nothing")
        for metric in ("accuracy", "auc", "brier")
        for fold in (1, 2)
    ]


def test_evaluate_takes_a_table_to_test_on_and_a_way_to_learn(sfumato, here, table, policy):
    write_table(people(80), here / "test.csv")
    options = ("--test", "test.csv", "--models", "naive-bayes", "--learn-from", "sample", "--threads", 1)
    done = sfumato("evaluate", table, "--policy", policy, *options)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("80 rows held out, learned from 300 rows; learned from sample")


def test_evaluate_reads_a_table_from_standard_input(sfumato, table, policy):
    done = sfumato("evaluate", "-", "--policy", policy, *FEW, stdin=table.read_bytes())
    assert (done.code, done.err) == (0, "")


def test_evaluate_shows_progress_on_a_terminal(table, policy):
    code, shown = on_terminal(["evaluate", str(table), "--policy", str(policy), *map(str, FEW)])
    assert code == 0
    assert b"evaluating" in shown


@pytest.mark.parametrize(
    ("options", "words", "code"),
    [
        (("--folds", 2, "--test", "people.csv"), "Give --folds or --test, not both.", 2),
        (("--out", "e.txt"), "--out writes .json", 2),
        (
            ("--out", "nowhere/e.json", "--test", "nowhere.csv"),
            "there is no folder",
            2,
        ),  # said before the work
        (("--models", "decision-trees"), "Did you mean 'decision-tree'?", 2),
        (("--models", ","), "No model is named", 2),
        (("--folds", 400), "300 rows cannot be divided into 400 folds", 2),
        (("--folds", 1), "--folds", 2),
        (("--test", "nowhere.csv"), "nowhere.csv", 2),
        (("--learn-from", "middle"), "'corners', 'midpoint', 'sample'", 2),
        (("--learners", "spss"), "'scikit-learn', 'weka'", 2),
    ],
)
def test_mistakes_with_evaluate_are_one_sentence(sfumato, here, table, policy, options, words, code):
    done = sfumato("evaluate", table, "--policy", policy, *options)
    assert (done.code, done.out) == (code, "")
    assert words in done.sentence
    assert names(here) == ["people.csv", "policy.yaml"]


def test_folds_too_small_for_k_are_exit_code_1(sfumato, table, policy):
    policy.write_text(policy.read_text().replace("k-anonymity: 5", "k-anonymity: 200"))
    done = sfumato("evaluate", table, "--policy", policy, *FEW)
    assert done.code == 1
    assert "(150 of 300 rows) cannot satisfy 200-anonymity" in done.sentence


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("id", "role identifier and is not published"),
        ("nothing", "does not stand under attributes"),
        ("sex", "'sex' is both target and quasi-identifier"),
    ],
)
def test_what_cannot_be_a_target_is_said(sfumato, table, policy, target, words):
    policy.write_text(POLICY + f"workload: [classify: {target}]\n")
    done = sfumato("evaluate", table, "--policy", policy, *FEW)
    assert (done.code, words in done.sentence) == (2, True)


def test_compare_prints_a_table_with_advice_and_writes_four_files(sfumato_process, here, table, policy):
    arguments = ("--vary", "k=2,10,301", "--vary", "workload=on,off", *FEW, "--out", "frontier")
    done = sfumato_process("compare", table, "--policy", policy, *arguments)
    assert (done.code, done.err) == (0, "")
    assert "k=2, workload=on" in done.out
    assert (
        "k=301, workload=on; k=301, workload=off cannot be published: 301-anonymity cannot be met" in done.out
    )
    assert "\n- disease (decision-tree, accuracy): the raw data reach" in done.out
    assert names(here / "frontier") == ["frontier.csv", "frontier.json", "frontier.png", "frontier.svg"]
    document = json.loads((here / "frontier" / "frontier.json").read_text())
    assert [setting["choices"]["k"] for setting in document["settings"]] == [
        "2",
        "2",
        "10",
        "10",
        "301",
        "301",
    ]
    assert pacsv.read_csv(here / "frontier" / "frontier.csv").num_rows == 4 * 3 + 2  # a line for each metric


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--vary", "kk=2"), "Did you mean 'k'?"),
        (("--vary", "k=two"), "whole numbers"),
        (("--vary", "l=2"), "no diversity whose l could vary"),
        (("--vary", "epsilon=1"), "add --vary method=diffgen"),
        (("--vary", "method=diffgen"), "needs an epsilon"),
        (("--vary", "kappa=1"), "--vary kappa is an option that none of these methods has: mondrian"),
        (
            ("--vary", "method=risk-utility", "--vary", "k=2"),
            "the method risk-utility makes none; vary utility-at-least",
        ),
        ((), "Missing option '--vary'"),
        (("--vary", "k=2", "--models", "oracle"), "There is no model 'oracle'"),
    ],
)
def test_mistakes_with_compare_are_one_sentence_and_write_nothing(
    sfumato, here, table, policy, options, words
):
    done = sfumato("compare", table, "--policy", policy, *options, "--out", "frontier")
    assert (done.code, done.out) == (2, "")
    assert words in done.sentence
    assert names(here) == ["people.csv", "policy.yaml"]


def test_compare_writes_over_no_file(sfumato, here, table, policy):
    done = sfumato("compare", table, "--policy", policy, "--vary", "k=2", "--out", "people.csv")
    assert done.code == 2
    assert names(here) == ["people.csv", "policy.yaml"]


def test_compare_without_a_folder_takes_one_named_frontier(sfumato, here, table, policy):
    assert sfumato("compare", table, "--policy", policy, "--vary", "k=2", *FEW).code == 0
    assert names(here / "frontier") == ["frontier.csv", "frontier.json", "frontier.png", "frontier.svg"]


def test_compare_fails_where_no_setting_can_be_met(sfumato, here, table, policy):
    done = sfumato("compare", table, "--policy", policy, "--vary", "k=301,400", *FEW, "--out", "frontier")
    assert (done.code, "None of these settings can be met" in done.sentence) == (1, True)
    assert names(here / "frontier") == ["frontier.csv", "frontier.json"]


@pytest.mark.parametrize("name", ["e.csv", "e.csv.gz", "e.parquet"])
def test_evaluate_writes_tables_of_any_format(sfumato, here, table, policy, name):
    assert sfumato("evaluate", table, "--policy", policy, *FEW, "--out", name, "--quiet").code == 0
    assert open_table(here / name).n_rows > 0


def test_nothing_is_written_over_what_is_read(sfumato, here, table, policy):
    before = table.read_bytes()
    done = sfumato("evaluate", table, "--policy", policy, *FEW, "--out", "./people.csv")
    assert (done.code, "is read by this command" in done.sentence) == (2, True)
    assert sfumato("publish", table, "--policy", policy, "--out", "release").code == 0
    done = sfumato("apply", "release", table, "--out", "people.csv")
    assert (done.code, "is read by this command" in done.sentence) == (2, True)
    assert table.read_bytes() == before


def test_nothing_else_is_written_into_a_release(sfumato, here, table, policy):
    assert sfumato("publish", table, "--policy", policy, "--out", "release").code == 0
    before = names(here / "release")
    for arguments in (
        ("evaluate", table, "--policy", policy, *FEW, "--out", "release/e.json"),
        ("compare", table, "--policy", policy, *FEW, "--vary", "k=2", "--out", "release"),
        ("apply", "release", table, "--out", "release/more.csv"),
    ):
        done = sfumato(*arguments)
        assert (done.code, "nothing else belongs there" in done.sentence) == (2, True)
    assert names(here / "release") == before


def test_before_a_private_release_the_owner_hears_of_cells_that_are_not_as_declared(sfumato, here):
    policy = """
attributes:
  sex: {role: quasi-identifier, values: [Male, Female]}
  age: {role: quasi-identifier, type: number, bounds: [0, 99], step: 1}
  ill: {role: other, values: ["yes", "no"]}
workload: [classify: ill]
method: {diffgen: {epsilon: 1}}
"""
    (here / "policy.yaml").write_text(policy)
    lines = [
        f"{sex},{age},{ill}" for sex in ("Male", "Female") for age in range(20, 60) for ill in ("yes", "no")
    ]
    strange = ["male,30,yes", "Male,300,no", "Female,-1,no", ",40,yes", "Male,41,maybe"]
    (here / "table.csv").write_text("\n".join(["sex,age,ill", *lines, *strange, ""]))
    arguments = (
        "evaluate",
        "table.csv",
        "--policy",
        "policy.yaml",
        "--folds",
        2,
        "--models",
        "decision-tree",
    )
    done = sfumato(*arguments)
    assert done.code == 0
    assert "taken as missing or as the nearest bound: sex 1, age 2.\n" in done.out
    assert "Rows without a declared ill, which are left out: 1.\n" in done.out
    assert not any(word in done.out for word in ("300", "maybe"))
    (here / "table.csv").write_text("\n".join(["sex,age,ill", *lines, ""]))
    assert "declared" not in sfumato(*arguments).out
