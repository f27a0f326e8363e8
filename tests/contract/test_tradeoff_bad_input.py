"""Bad input to risk-utility: one sentence that says what is wrong, where and what to do; never a cell; nothing written."""

# ruff: noqa: E501 - tables of sentences: one case, one line

from __future__ import annotations

import pyarrow as pa
import pytest
from commandline import names
from rowwise_people import policy_text

from sfumato.table.write import write_table

SECRET = "SECRET-CELL"  # a cell that no message may quote

ROWS = {
    "id": [SECRET, "2", "3"],
    "age": ["0", "5", "7"],
    "zip": ["531", "533", "571"],
    "job": ["clerk", "boss", "farmer"],
    "disease": ["flu", "flu", "cold"],
    "caution": ["1", "2", "5"],
    "row": ["0", "1", "2"],
}
SIDE = {name: ROWS[name] for name in ("age", "zip", "job")}
WITH_SIDE = "side-table: side.csv"
PRIVATE = "private: {epsilon: 1.0, delta: 1.0e-6}"

BAD_OPTIONS = {
    "c above 1": ("utility-at-least: 1.2", "utility-at-least: must be from 0 to 1"),
    "c below 0": ("utility-at-least: -0.2", "utility-at-least: must be from 0 to 1"),
    "floor 0 with the Lagrangian": ("objective: lagrangian, lambda: 1, floor: 0", "add a floor, such as floor: 0.1"),
    "no floor with the Lagrangian": ("objective: lagrangian, lambda: 1", "add a floor, such as floor: 0.1"),
    "no floor with log-risk": ("objective: log-risk, lambda: 1, weights: harmonic", "add a floor"),
    "no lambda": ("objective: lagrangian, floor: 1", "needs the price of risk, such as lambda: 1.0"),
    "lambda 0": ("objective: lagrangian, floor: 1, lambda: 0", "lambda: must be a number above 0"),
    "negative weight of a column": ("weights: {attributes: {age: -1}}", "must be a weight, a number from 0 to 1e9"),
    "negative weight of a value": ("weights: {model: harmonic, attributes: {job: {boss: -1}}}", "must be a weight"),
    "weight of no value": ("weights: {model: harmonic, attributes: {job: {bos: 1}}}", "1 of the labels that are given weights are no values of column 'job'"),
    "weights of no column": ("weights: {column: cautoin}", "Did you mean 'caution'?"),
    "weights in an identifier": ("weights: {column: id}", "has the role identifier"),
    "weights in a quasi-identifier": ("weights: {column: age}", "has the role quasi-identifier"),
    "weights in a text": ("weights: {column: disease}", "add type: number to it"),
    "unknown optimizer": ("optimizer: exakt", "Did you mean 'exact'?"),
    "optimizer of another objective": ("optimizer: cut", "cut serves the objective lagrangian only"),
    "no limit of risk": ("objective: most-utility", "needs a limit, such as risk-at-most: 0.05"),
    "a limit below 0": ("objective: most-utility, risk-at-most: -1", "risk-at-most: must be a number from 0 to 1e9"),
    "a limit of another objective": ("risk-at-most: 0.1", "only the objective most-utility has it"),
    "a threshold beside a limit": ("objective: most-utility, risk-at-most: 0.1, utility-at-least: 0.5", "only the objective threshold has it"),
    "a price beside a limit": ("objective: most-utility, risk-at-most: 0.1, lambda: 1", "the objective most-utility has no price of risk"),
    "a limit by the genetic search": ("objective: most-utility, risk-at-most: 0.1, optimizer: genetic", "for most-utility choose auto or exact or probing"),
    "a limit that no row can keep": ("objective: most-utility, risk-at-most: 0.1, floor: 1", "3 rows have more even when they are suppressed: up to 0.333333"),
    "a limit in private": (f"objective: most-utility, risk-at-most: 0.1, {WITH_SIDE}, {PRIVATE}", "may have no solution for a row, and an error would tell of that row"),
    "a limit for the paper's sampling": ("objective: most-utility, risk-at-most: 0.1, private: {epsilon: 1.0, delta: 1.0e-6, variant: paper}", "the paper knows no objective most-utility"),
    "kappa not whole": ("objective: lagrangian, lambda: 1, floor: 1, kappa: 0.5", "kappa: must be a whole number"),
    "utility that falls": ("utility: {zip: [3, 1]}", "must not fall from the root to the leaves"),
    "unknown option": ("utlity: log", "Did you mean 'utility'?"),
    "private without a side table": (PRIVATE, "it needs a public side-table"),
    "private with other columns": (f"{WITH_SIDE}, {PRIVATE}", "publishes quasi-identifiers alone"),
    "no such side table": ("side-table: nowhere.csv", "In the side table: There is no file or folder"),
}  # fmt: skip


def write(here, options: str, *, rows=None, side=None, more: str = "", policy: str | None = None) -> None:
    text = policy_text(options, more) if policy is None else policy
    (here / "policy.yaml").write_text(text, encoding="utf-8")
    write_table(pa.table(ROWS | (rows or {})), here / "t.csv")
    write_table(pa.table(side or SIDE), here / "side.csv")


def refused(sfumato, here, *options: str) -> str:
    done = sfumato("publish", "t.csv", "--policy", "policy.yaml", "--out", "out", *options)
    assert done.code == 2, done
    assert SECRET not in done.err
    assert names(here) == ["policy.yaml", "side.csv", "t.csv"]
    return done.sentence


@pytest.mark.parametrize("case", BAD_OPTIONS)
def test_a_bad_option_is_refused_in_one_sentence(sfumato, here, case):
    options, words = BAD_OPTIONS[case]
    write(here, options)
    assert words in refused(sfumato, here)


BAD_REST = {
    "requirements": ("require: [k-anonymity: 2]\n", "promises nothing of groups"),
    "a task": ("workload: [aggregate: [mean]]\n", "serves no task"),
    "summaries": ("output: {values: summary}\n", "makes no groups to summarize"),
    "counts": ("output: {rows: counts}\n", "only diffgen publishes counts"),
}


@pytest.mark.parametrize("case", BAD_REST)
def test_what_single_rows_cannot_serve_is_refused(sfumato, here, case):
    more, words = BAD_REST[case]
    write(here, "", more=more)
    assert words in refused(sfumato, here)


BAD_SIDES = {
    "a column is missing": ({name: SIDE[name] for name in ("age", "job")}, "The side table has no column 'zip'"),
    "all columns are missing": ({"x": ["1"]}, "The side table has no column 'age' and 2 more"),
    "a category that the hierarchy lacks": (SIDE | {"job": ["clerk", SECRET, SECRET]}, "In the side table: Column 'job' has 2 cells (1 distinct value) that its hierarchy lacks"),
    "a number outside the bounds": (SIDE | {"age": ["9", "5", "7"]}, "In the side table: Column 'age' has 1 cell outside its declared bounds"),
    "no number": (SIDE | {"age": [SECRET, "5", "7"]}, "In the side table: Column 'age' has 1 cell without a readable number"),
    "a text too long for its mask": (SIDE | {"zip": [SECRET, "533", "571"]}, "In the side table: The hierarchy of column 'zip': Values longer than the 3 characters"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_SIDES)
def test_a_side_table_that_does_not_fit_is_told_as_such(sfumato, here, case):
    side, words = BAD_SIDES[case]
    write(here, WITH_SIDE, side=side)
    assert refused(sfumato, here).startswith(words)


@pytest.mark.parametrize("content", [b"", b"age,zip,job\n", b"\xff\xfe\x00broken", b"PAR1 cut off"])
def test_a_file_that_is_no_side_table_is_told_as_such(sfumato, here, content):
    write(here, WITH_SIDE)
    (here / "side.csv").write_bytes(content)
    assert refused(sfumato, here).startswith("In the side table: ")


BAD_ROWS = {
    "weights missing": ({"caution": ["1", "", "5"]}, "Column 'caution' holds personal weights and is missing in 1 row"),
    "weights negative": ({"caution": ["1", "-2", "-5"]}, "Column 'caution' holds personal weights, and 2 of them are below 0"),
    "weights no numbers": ({"caution": ["1", SECRET, "5"]}, "Column 'caution' has 1 cell without a readable number"),
    "weights without end": ({"caution": ["1", "inf", "5"]}, "Column 'caution' has 1 cell with"),
    "an unknown category": ({"job": ["clerk", SECRET, "boss"]}, "Column 'job' has 1 cell "),
    "outside the bounds": ({"age": ["0", "8", "7"]}, "Column 'age' has 1 cell outside its declared bounds"),
    "no number": ({"age": [SECRET, "5", "7"]}, "Column 'age' has 1 cell without a readable number"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_ROWS)
def test_cells_that_do_not_fit_are_counted(sfumato, here, case):
    rows, words = BAD_ROWS[case]
    write(here, "weights: {column: caution}", rows=rows)
    assert refused(sfumato, here).startswith(words)


def test_a_published_bound_needs_a_name_of_its_own(sfumato, here):
    text = policy_text("", "output: {values: bounds}\n").replace("  row: ", "  age_low: ")
    write(here, "", policy=text)
    write_table(pa.table(ROWS).rename_columns([*list(ROWS)[:-1], "age_low"]), here / "t.csv")
    assert "Column 'age_low' of the table has the name of a published bound" in refused(sfumato, here)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--engine", "disk"), "risk-utility works in memory or on Spark, not on disk; leave out --engine."),
        (("--ledger", "spent.json"), "this policy makes none. Leave it out."),
    ],
)
def test_options_of_the_command_that_do_not_fit(sfumato, here, options, words):
    write(here, "")
    assert words in refused(sfumato, here, *options)


def test_a_table_that_does_not_fit_in_the_memory_allowed_is_refused(sfumato, here, monkeypatch):
    monkeypatch.setattr("sfumato.cli.options.LEAST_MEMORY", 4_000_000)  # a small table will do
    write(here, "")
    many = {name: cells * 20_000 for name, cells in ROWS.items()}
    write_table(pa.table(many), here / "t.csv")
    sentence = refused(sfumato, here, "--memory", "4MB")
    assert sentence.startswith("Publishing by risk-utility takes about ")
    assert sentence.endswith("and --memory allows 4 MB; allow more, or give it fewer rows.")


def test_a_column_that_the_policy_does_not_name_is_refused(sfumato, here):
    write(here, "", policy=policy_text().replace("  row:     {role: other, passes: unique}\n", ""))
    assert "has column 'row', which the policy does not name" in refused(sfumato, here)


def test_a_side_table_of_another_method_is_refused():
    import sfumato as sf

    policy = sf.Policy.parse("{attributes: {age: {role: quasi-identifier}}, require: []}")
    with pytest.raises(sf.errors.InputError, match="A side table is for the method risk-utility"):
        sf.publish(pa.table({"age": ["1"]}), policy, side_table=pa.table({"age": ["1"]}))
