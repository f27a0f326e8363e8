"""Hierarchies of the library in whole releases: published, verified, applied, asked, and refused where they must be."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import HierarchyError, InputError, PolicyError
from sfumato.policy.hierarchy.library.codes import find_path
from sfumato.verify.folder import verify_folder

N = 400
DIAGNOSES = ["250.83", "250", "8", "38.9", "V57.1", "E909", "V92", "401.9", "410.71", "428.0", "486", "780.2"]
ZIPS = ["53715", "53703", "53201", "03601", "02139", "02142", "94110", "94111", "89001"]


def stays(n: int = N) -> pa.Table:
    drawn = random.Random(3)
    return pa.table(
        {
            "diagnosis": [
                drawn.choice(DIAGNOSES[:4] if drawn.random() < 0.6 else DIAGNOSES) for _ in range(n)
            ],
            "zip": [drawn.choice(ZIPS) for _ in range(n)],
            "country": [drawn.choice(["DE", "FR", "KE", "US", None]) for _ in range(n)],
            "age": [drawn.randrange(100) for _ in range(n)],
            "cost": [drawn.choice(["low", "high"]) for _ in range(n)],
        }
    )


TABLE = stays()
COLUMNS = """
attributes:
  diagnosis: {role: quasi-identifier, hierarchy: {library: icd9}}
  zip:       {role: quasi-identifier, hierarchy: {library: us-zip}}
  country:   {role: quasi-identifier, hierarchy: {library: countries}}
  age:       {role: quasi-identifier, type: number, hierarchy: {library: ages}}
  cost:      {role: sensitive}
"""


def policy(rest: str, columns: str = COLUMNS) -> sf.Policy:
    return sf.Policy.parse(f"{columns}\n{rest}")


def check(folder: Path) -> None:
    verify_folder(folder).raise_if_failed()


def covers(label: str | None, text: str | None, name: str) -> bool:
    """Does a published label stand for a code? By the code's own path, whatever the tree of the release."""
    return label == text if text is None or label is None else label in find_path(name, text)


@pytest.mark.parametrize("method", ["mondrian", "{mondrian: {criterion: median}}", "tds"])
def test_a_release_verifies_by_itself_and_each_label_stands_for_its_row(method, tmp_path):
    given = "require: [k-anonymity: 8]\n" + f"method: {method}"
    if method == "tds":
        given += "\nworkload: [classify: cost]"
    release = sf.publish(TABLE, policy(given), seed=1)
    release.write(tmp_path / "out")
    check(tmp_path / "out")
    assert "library: icd9" in (tmp_path / "out" / "policy.yaml").read_text()
    rows = release.recoding.apply(TABLE).to_pylist()
    for row, raw in zip(rows, TABLE.to_pylist(), strict=True):
        for name, library in (("diagnosis", "icd9"), ("zip", "us-zip")):
            assert row[name].removesuffix(" or missing") == "*" or covers(row[name], raw[name], library)
    assert any(len(find_path("icd9", raw["diagnosis"])) > 3 and "-" in row["diagnosis"]
               for row, raw in zip(rows, TABLE.to_pylist(), strict=True)) or method == "tds"  # fmt: skip


def test_codes_that_were_never_seen_are_generalized_by_their_rule(tmp_path):
    release = sf.publish(TABLE, policy("require: [k-anonymity: 8]"), seed=1)
    new = pa.table({"diagnosis": ["250.01", "no code", "V99"], "zip": ["53799", "89399", "abc"],
                    "country": ["DE", "XX", None], "age": [20, 30, 119]})  # fmt: skip
    rows = release.recoding.apply(new).to_pylist()
    assert covers(rows[0]["diagnosis"], "250.01", "icd9")
    assert covers(rows[0]["zip"], "53799", "us-zip")


def test_a_release_is_asked_for_codes_and_refuses_labels_of_several():
    release = sf.publish(TABLE, policy("require: [k-anonymity: 8]"), seed=1)
    true = sum(code == "8" for code in TABLE["diagnosis"].to_pylist())
    answer = release.query("COUNT(*) WHERE diagnosis = '8'")
    assert answer.low <= true <= answer.high
    with pytest.raises(PolicyError, match="a label of several values"):
        release.query("COUNT(*) WHERE diagnosis = '250.*'")


def test_a_value_that_is_no_code_is_counted_and_not_named():
    table = TABLE.set_column(
        0, "diagnosis", pa.array(["flu", "flu", "cold", *TABLE["diagnosis"].to_pylist()[3:]])
    )
    with pytest.raises(
        InputError, match=r"Column 'diagnosis' has 3 cells \(2 distinct values\) that its hierarchy lacks"
    ):
        sf.publish(table, policy("require: [k-anonymity: 8]"))


def test_a_wrong_name_is_a_sentence_with_the_right_ones(tmp_path):
    with pytest.raises(PolicyError, match=r"'icd-9' is not one of ages, countries.*Did you mean 'icd9'\?"):
        policy("require: [k-anonymity: 8]", COLUMNS.replace("icd9", "icd-9"))


def test_a_library_of_texts_is_not_for_numbers_nor_ages_for_texts():
    for old, new in (("type: number, hierarchy: {library: ages}", "type: number, hierarchy: {library: icd9}"),
                     ("hierarchy: {library: us-zip}", "hierarchy: {library: ages}")):  # fmt: skip
        with pytest.raises(HierarchyError, match="library is not for a column of type"):
            policy("require: [k-anonymity: 8]", COLUMNS.replace(old, new))


def test_risk_utility_publishes_and_verifies_codes(tmp_path):
    table = TABLE.select(["diagnosis", "zip", "country"])
    given = COLUMNS.split("  age:", maxsplit=1)[0] + "method: {risk-utility: {utility-at-least: 0.5}}"
    release = sf.publish(table, sf.Policy.parse(given), seed=1)
    release.write(tmp_path / "out")
    check(tmp_path / "out")


PRIVATE = """
attributes:
  diagnosis: {role: quasi-identifier, hierarchy: {library: icd9}VALUES}
  country:   {role: quasi-identifier, hierarchy: {library: countries}}
  age:       {role: quasi-identifier, type: number, hierarchy: {library: ages}}
  cost:      {role: sensitive, values: [low, high]}
workload: [classify: cost]
method: {diffgen: {epsilon: 1}}
"""


def test_under_differential_privacy_codes_must_be_declared_and_lists_are():
    with pytest.raises(PolicyError, match="values"):
        sf.Policy.parse(PRIVATE.replace("VALUES", ""))
    declared = sf.Policy.parse(PRIVATE.replace("VALUES", ", values: ['250.83', '250', '8', V57.1, E909]"))
    release = sf.publish(TABLE.drop_columns(["zip"]), declared, seed=1)
    assert set(release.table.column_names) >= {"diagnosis", "country", "age"}
