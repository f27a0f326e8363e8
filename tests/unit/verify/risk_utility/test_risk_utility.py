"""What verify finds in a risk-utility release, whole and after tampering, and against its side table."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pyarrow as pa
import pyarrow.csv as pv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tampering import edit_certificate, rehash
from tradeoff_cases import trees
from tradeoff_releases import POLICY, people, release_of

from sfumato.errors import HierarchyError, InputError
from sfumato.methods.risk_utility import model
from sfumato.policy.document import Policy
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.options.risk_utility import MODELS, UTILITIES, Weights
from sfumato.policy.schema import Attribute, Kind, Role
from sfumato.release.certificate import Certificate, Claims
from sfumato.release.certificate.document import claims_document
from sfumato.release.folder import hashes_of
from sfumato.release.release import Release
from sfumato.release.strict_json import dump
from sfumato.table.opening import open_table
from sfumato.table.write import write_table
from sfumato.verify.folder import verify_folder
from sfumato.verify.risk_utility import risk
from sfumato.verify.risk_utility.boxes import Boxes, claims_of
from sfumato.verify.risk_utility.claims import RISKS_ARE_WEIGHTED
from sfumato.verify.risk_utility.labels import LabelColumn
from sfumato.verify.risk_utility.risk import Between, Readings, Risks, count_rows_in_boxes
from sfumato.verify.table import verify_table

PEOPLE = people()
SIDE = people(60, seed=2)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A release against its own table, and one against another table, in folders that tests copy."""
    folder = tmp_path_factory.mktemp("made")
    write_table(SIDE.drop_columns(["name", "disease"]), folder / "side.csv")
    write_table(PEOPLE, folder / "people.csv")
    release_of(PEOPLE).write(folder / "own")
    outside = POLICY.replace("0.5}", "0.5, side-table: side.csv}")
    release_of(PEOPLE, outside, folder / "side.csv").write(folder / "outside")
    return folder


@pytest.fixture
def copy_of(made, tmp_path):
    def copied(name: str):
        copy = tmp_path / name
        copy.mkdir()
        for file in (made / name).iterdir():
            (copy / file.name).write_bytes(file.read_bytes())
        return copy

    return copied


@pytest.fixture
def folder(copy_of):
    return copy_of("own")


def change_figures(folder, change) -> None:
    edit_certificate(folder, lambda document: change(document["figures"]["tradeoff"]))


def change_rows(folder, change) -> None:
    """Change the published rows, a list of mappings, in place."""
    path = folder / "release.csv"
    strings = pv.ConvertOptions(
        strings_can_be_null=True, column_types=dict.fromkeys(PEOPLE.column_names, pa.string())
    )
    rows = pv.read_csv(path, convert_options=strings).to_pylist()
    change(rows)
    write_table(
        pa.table({name: pa.array([row[name] for row in rows], pa.string()) for name in rows[0]}), path
    )
    rehash(folder)


def failed(folder, side=None) -> list[str]:
    return [f"{check.claim}: {check.detail}" for check in verify_folder(folder, side_table=side).failures]


def has(found: list[str], words: str) -> bool:
    return any(words in sentence for sentence in found)


# ---- whole ----------------------------------------------------------------------------------------------------


def test_a_release_as_it_was_made_passes_and_says_what_the_folder_does_not_tell(folder):
    verdict = verify_folder(folder)
    assert verdict.ok
    notes = [check.claim for check in verdict.checks if check.is_note]
    assert "this is not k-anonymity" in notes
    assert "owner's word: risk, which was not recomputed" in notes
    assert any("depends on what they were" in note for note in notes), "jobs have uneven depth"


@pytest.mark.parametrize("name", ["own", "outside"])
def test_with_its_side_table_the_risk_is_recomputed_too(made, name):
    table = made / ("people.csv" if name == "own" else "side.csv")
    verdict = verify_folder(made / name, side_table=table)
    assert verdict.ok, verdict.failures
    claims = [check.claim for check in verdict.checks]
    assert any(claim.startswith("the mean risk is") for claim in claims)
    assert ("the side table is the file that was used" in claims) == (name == "outside")
    assert any("risk of the raw rows" in claim for claim in claims) == (name == "own")


def test_a_frame_is_a_side_table_too(made):
    assert verify_folder(made / "own", side_table=PEOPLE).ok


def test_where_all_leaves_are_worth_the_same_the_promise_is_certain_for_all_rows(tmp_path):
    even = POLICY.replace("farmer: null", "Field: [farmer]").replace("{mask: 3}", "flat")
    table = people(missing=False)
    ages = pa.array([[20, 21, 22, 23][i % 4] for i in range(table.num_rows)])
    release_of(table.set_column(1, "age", ages), even).write(tmp_path / "even")
    found = [check for check in verify_folder(tmp_path / "even").checks if "every row keeps" in check.claim]
    assert found[0].passed
    assert found[0].detail == "whatever the rows were, for 40 of 40"


# ---- tampered -------------------------------------------------------------------------------------------------


def test_a_box_that_was_made_finer_is_found(folder):
    def finer(rows):
        row = next(row for row in rows if row["job"] == "*")
        row["job"] = "boss"

    change_rows(folder, finer)
    assert has(failed(folder), "the mean utility")
    assert has(failed(folder, PEOPLE), "the mean utility")


def test_a_box_below_its_threshold_is_found_even_if_all_claims_are_made_to_fit(folder):
    def coarser(rows):
        rows[0].update(age="*", zip="*", admitted="*", job="Office")

    change_rows(folder, coarser)
    certificate = Certificate.from_json((folder / "certificate.json").read_text())
    policy = Policy.read(folder / "policy.yaml")
    rows = open_table(folder / "release.csv")
    table = pa.table({name: rows.column(name) for name in rows.names})
    missing = certificate.claims.utility.missing
    claims = dump(claims_document(claims_of(Boxes.of(table, policy, missing))))
    edit_certificate(
        folder, lambda document: document["claims"].update({**claims, "sha256": hashes_of(folder)})
    )
    found = failed(folder)
    assert has(found, "every row keeps at least 0.5 of the way from suppressed to raw utility: 1 rows cannot")
    assert not has(found, "the mean utility")


@pytest.mark.parametrize(
    ("column", "label"),
    [("age", "[0, 99]"), ("age", "24.5"), ("job", "pilot"), ("zip", "5*3*"), ("admitted", "2023"), ("job", None)],
)  # fmt: skip
def test_a_label_that_its_hierarchy_lacks_is_found(folder, column, label):
    change_rows(folder, lambda rows: rows[1].update({column: label}))
    assert has(
        failed(folder),
        f"every label is a node of its column's hierarchy: column {column!r} has others in 1 rows",
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda claims: claims.update(rows=41), "the release holds 41 rows"),
        (lambda claims: claims.update(groups=3), "the rows form 3 groups"),
        (lambda claims: claims.update(suppressed=2), "the number of suppressed rows is 2"),
        (lambda claims: claims["utility"].update(mean=7.5), "the mean utility of the published rows is 7.5"),
        (lambda claims: claims["utility"].update(least=6), "the least utility of the published rows is 6"),
        (lambda claims: claims["utility"].update(mean=None), "the mean utility of the published rows is not known"),
        (lambda claims: claims["utility"].update(measure="log"), "as the policy measures and bounds it"),
        (lambda claims: claims["utility"].update({"at-least": "1/3"}), "as the policy measures and bounds it"),
        (lambda claims: claims.update(missing=["age", "zip", "nobody"]), "A leaf for missing cells is claimed"),
        (lambda claims: claims.update(missing=["job", "age", "zip"]), "cells are missing where the certificate says so"),
    ],
)  # fmt: skip
def test_claims_that_were_changed_are_found(folder, change, words):
    edit_certificate(folder, lambda document: change(document["claims"]))
    found = failed(folder, PEOPLE)
    assert has(found, words), found


def test_a_utility_lowered_in_the_policy_alone_is_found(folder):
    path = folder / "policy.yaml"
    path.write_text(path.read_text().replace("utility-at-least: 0.5", "utility-at-least: 0.25"))
    rehash(folder)
    assert has(failed(folder), "the certificate and policy.yaml speak of one policy: they differ")


def test_a_utility_lowered_everywhere_but_in_the_claim_is_found(folder):
    path = folder / "policy.yaml"
    path.write_text(path.read_text().replace("utility-at-least: 0.5", "utility-at-least: 0.25"))

    def lower(document):
        for method in (document["method"], document["policy"]["method"]):
            method["risk-utility"]["utility-at-least"] = 0.25

    edit_certificate(folder, lower)
    rehash(folder)
    assert failed(folder) == ["utility is claimed as the policy measures and bounds it: they differ"]


def test_other_weights_in_the_whole_folder_are_found_by_the_side_table(folder):
    path = folder / "policy.yaml"
    path.write_text(path.read_text().replace("model-1", "harmonic"))

    def other(document):
        for method in (document["method"], document["policy"]["method"]):
            method["risk-utility"]["weights"] = "harmonic"

    edit_certificate(folder, other)
    rehash(folder)
    assert not failed(folder)
    assert has(failed(folder, PEOPLE), "the mean risk is")


def test_a_recoding_in_the_folder_is_found(folder):
    (folder / "recoding.json").write_text("{}")
    rehash(folder)
    assert failed(folder) == [
        "the folder holds no recoding: there is one, and it would map raw rows to boxes"
    ]


def test_a_release_without_its_rows_is_found(folder):
    path = folder / "release.csv"
    path.write_text(path.read_text().partition("\n")[0] + "\n")
    rehash(folder)
    assert has(failed(folder), "the release holds any rows")


def test_a_column_too_many_is_found(folder):
    def more(rows):
        for i, row in enumerate(rows):
            row["name"] = f"p{i}"

    change_rows(folder, more)
    assert has(failed(folder), "the columns are those that the policy publishes: 1 column too many")


@pytest.mark.parametrize(
    "change",
    [
        lambda figures: figures.pop("risk"),
        lambda figures: figures.update(rows=41),
        lambda figures: figures.update(suppressed=1),
        lambda figures: figures.update(raw=1),
        lambda figures: figures.update(proved=41),
        lambda figures: figures.update(lacking=1),
        lambda figures: figures["risk"].update(mean=9.0),
        lambda figures: figures["share"].update(mean=0.99),
        lambda figures: figures["share"].update(least=0.4),
        lambda figures: figures["side table"].update(own=False),
        lambda figures: figures["side table"].update(rows=39),
        lambda figures: figures["risk"].update(mean="0.3"),
        lambda figures: figures.update(rows=True),
    ],
)
def test_figures_that_cannot_be_are_found_without_a_side_table(folder, change):
    change_figures(folder, change)
    assert has(failed(folder), "the figures of risk and utility are there, and the rows can have them")


@pytest.mark.parametrize(
    ("kind", "word", "words"),
    [
        ("risk", "mean", "the mean risk is"),
        ("risk", "greatest", "the greatest risk is"),
        ("raw risk", "mean", "the mean risk of the raw rows is"),
        ("raw risk", "greatest", "the greatest risk of the raw rows is"),
    ],
)
def test_a_risk_that_was_changed_is_found_by_the_side_table(folder, kind, word, words):
    change_figures(folder, lambda figures: figures[kind].update({word: figures[kind][word] * 0.999999}))
    assert not failed(folder)
    found = failed(folder, PEOPLE)
    assert len(found) == 1
    assert has(found, words)


@pytest.mark.parametrize("kind", ["raw", "published"])
def test_a_histogram_that_was_changed_is_found_by_the_side_table(folder, kind):
    def move(figures):
        having = [each for each in figures["histogram"] if each[kind]]
        having[-1][kind] -= 1
        having[0][kind] += 1

    change_figures(folder, move)
    found = failed(folder, PEOPLE)
    assert has(found, "the histogram of risk is what the rows have: it is another") or has(
        found, "the figures of risk and utility are there, and the rows can have them"
    )


def test_a_histogram_of_more_rows_than_there_are_is_found(folder):
    change_figures(folder, lambda figures: figures["histogram"][-1].update(published=1000))
    assert has(failed(folder), "the figures of risk and utility are there, and the rows can have them")


def test_a_row_above_its_limit_of_risk_is_found_by_the_side_table(tmp_path):
    limited = POLICY.replace("{utility-at-least: 0.5}", "{objective: most-utility, risk-at-most: 0.3}")
    release_of(PEOPLE, limited).write(tmp_path / "out")
    assert verify_folder(tmp_path / "out", side_table=PEOPLE).ok
    greatest = json.loads((tmp_path / "out" / "certificate.json").read_text(encoding="utf-8"))["figures"]
    assert greatest["tradeoff"]["risk"]["greatest"] > 0.2

    def lower(document):
        document["policy"]["method"]["risk-utility"]["risk-at-most"] = 0.2
        document["method"]["risk-utility"]["risk-at-most"] = 0.2
        document["claims"]["utility"]["risk-at-most"] = "1/5"
        document["figures"]["tradeoff"]["risk"] = {"mean": 0.15, "greatest": 0.2}

    path = tmp_path / "out" / "policy.yaml"
    path.write_text(
        path.read_text(encoding="utf-8").replace("risk-at-most: 0.3", "risk-at-most: 0.2"), encoding="utf-8"
    )
    edit_certificate(tmp_path / "out", lower)
    rehash(tmp_path / "out")
    found = [check for check in verify_folder(tmp_path / "out", side_table=PEOPLE).checks if not check.passed]
    assert "every row has a risk of at most 0.2" in [check.claim for check in found]


def test_a_row_that_the_side_table_lacks_counts_itself_below_its_limit(tmp_path):
    limited = POLICY.replace("{utility-at-least: 0.5}", "{objective: most-utility, risk-at-most: 0.3}")
    release_of(PEOPLE, limited, SIDE).write(tmp_path / "out")
    found = verify_folder(tmp_path / "out", side_table=SIDE)
    found.raise_if_failed()
    assert "every row has a risk of at most 0.3" in [check.claim for check in found.checks]


def test_another_side_table_is_found(copy_of, made, tmp_path):
    folder = copy_of("outside")
    other = tmp_path / "other.csv"
    write_table(people(61, seed=3), other)
    found = failed(folder, other)
    assert has(found, "the side table has 60 rows: there are 61")
    assert has(found, "the side table is the file that was used: its SHA-256 differs")
    change_figures(folder, lambda figures: figures["side table"].update(sha256="0" * 64))
    assert failed(folder, made / "side.csv") == [
        "the side table is the file that was used: its SHA-256 differs"
    ]


def test_rows_in_whose_box_nobody_is_must_be_counted_as_lacking(copy_of, made):
    folder = copy_of("outside")
    raw = POLICY.replace("0.5}", "1.0, side-table: side.csv}")
    release_of(PEOPLE, raw, made / "side.csv").write(folder, overwrite=True)
    assert not failed(folder, made / "side.csv")
    change_figures(folder, lambda figures: figures.update(lacking=0))
    assert has(
        failed(folder, made / "side.csv"), "the side table lacks 0 rows: it has nobody in the boxes of"
    )


def test_a_mean_risk_outside_what_the_lacking_rows_allow_is_found(copy_of, made):
    folder = copy_of("outside")
    figures = json.loads((folder / "certificate.json").read_text())["figures"]["tradeoff"]
    assert 0 < figures["lacking"] < 40
    change_figures(folder, lambda figures: figures["risk"].update(mean=figures["risk"]["mean"] * 0.8))
    found = failed(folder, made / "side.csv")
    assert has(found, "it lies between")


# ---- what cannot be known ----------------------------------------------------------------------------------------


def test_an_open_column_has_no_claim_of_utility_by_leaves_but_the_side_table_tells(tmp_path):
    policy = POLICY.replace("0.5}", "0.5, utility: log, weights: harmonic}")
    release_of(PEOPLE, policy).write(tmp_path / "log")
    assert json.loads((tmp_path / "log/certificate.json").read_text())["claims"]["utility"]["mean"] is None
    verdict = verify_folder(tmp_path / "log")
    assert verdict.ok
    assert any("it depends on how many values column 'zip' has" in check.detail for check in verdict.checks)
    known = verify_folder(tmp_path / "log", side_table=PEOPLE)
    assert known.ok
    claims = [check.claim for check in known.checks]
    assert any("every row keeps" in claim for claim in claims)
    assert any("the mean risk is" in claim for claim in claims)
    change_figures(tmp_path / "log", lambda figures: figures["share"].update(mean=0.999))
    assert has(failed(tmp_path / "log", PEOPLE), "the shares of utility are what these boxes can have")


@pytest.mark.parametrize(("weights", "is_told"), [("model-1", True), ("model-2", False)])
def test_risks_above_one_come_with_a_word_on_weights(tmp_path, weights, is_told):
    release_of(PEOPLE, POLICY.replace("0.5}", f"0.5, weights: {weights}}}")).write(tmp_path / "out")
    verdict = verify_folder(tmp_path / "out", side_table=PEOPLE)
    assert verdict.ok
    assert (RISKS_ARE_WEIGHTED in verdict.checks) == is_told


def test_weights_by_leaves_are_not_known_of_an_open_column_if_rows_are_lacking(tmp_path):
    policy = POLICY.replace("0.5}", "0.5, weights: harmonic, side-table: side.csv}")
    release_of(PEOPLE, policy, SIDE).write(tmp_path / "out")
    notes = [check for check in verify_folder(tmp_path / "out", side_table=SIDE).checks if check.is_note]
    assert any(note.claim == "risk cannot be recomputed" and "'zip'" in note.detail for note in notes)


@pytest.mark.parametrize("role", ["other", "drop"])
def test_personal_weights_are_recomputed_if_they_are_published(tmp_path, role):
    policy = POLICY.replace("0.5}", "0.5, weights: {model: model-1, column: {zip: caution}}}")
    policy = policy.replace("method:", f"  caution: {{role: {role}, type: number}}\nmethod:")
    table = PEOPLE.append_column("caution", pa.array([1.0, 2.5] * 20))
    release_of(table, policy).write(tmp_path / "own")
    verdict = verify_folder(tmp_path / "own", side_table=table)
    assert verdict.ok
    is_recomputed = any(check.claim.startswith("the mean risk is") for check in verdict.checks)
    assert is_recomputed == (role == "other")
    if is_recomputed:
        change_figures(
            tmp_path / "own", lambda figures: figures["risk"].update(mean=figures["risk"]["mean"] * 0.99)
        )
        assert has(failed(tmp_path / "own", table), "the mean risk is")


@pytest.mark.parametrize("greatest", [3.0, 1e6, 1e9])
def test_personal_weights_far_from_each_other_are_recomputed(tmp_path, greatest):
    policy = """
attributes:
  job: {role: quasi-identifier, hierarchy: {tree: {"*": {Office: [clerk, boss, page], Field: [farmer, smith]}}}}
  age: {role: quasi-identifier, type: number, bounds: [0, 99], step: 1}
  caution: {role: other, type: number}
method: {risk-utility: {utility-at-least: 0.5, weights: {model: harmonic, column: caution}}}
"""
    rng = np.random.default_rng(3)
    table = pa.table(
        {
            "job": rng.choice(["clerk", "boss", "page", "farmer", "smith"], 200).tolist(),
            "age": rng.integers(20, 60, 200).tolist(),
            "caution": [1.0, greatest] * 100,
        }
    )
    release_of(table, policy).write(tmp_path / "own")
    assert not failed(tmp_path / "own", table)


def test_great_utilities_are_promised_as_small_ones(tmp_path):
    policy = POLICY.replace("0.5}", "0.3, utility: {job: [0, 0.1, 1.0e+9], age: [0, 3.3e+8, 1.0e+9]}}")
    release_of(PEOPLE, policy).write(tmp_path / "out")
    assert not failed(tmp_path / "out", PEOPLE)


def test_without_a_threshold_no_utility_is_promised(tmp_path):
    policy = POLICY.replace("{utility-at-least: 0.5}", "{objective: log-risk, lambda: 1, floor: 0.5}")
    release_of(PEOPLE, policy).write(tmp_path / "out")
    document = json.loads((tmp_path / "out/certificate.json").read_text())
    assert document["promise"] == "nothing is promised"
    assert document["claims"]["utility"]["at-least"] is None
    verdict = verify_folder(tmp_path / "out", side_table=PEOPLE)
    assert verdict.ok
    assert "no utility is promised" in [check.claim for check in verdict.checks]


def test_a_side_table_without_a_column_is_refused(made):
    with pytest.raises(InputError, match="has no column 'zip', which risk is counted by"):
        verify_folder(made / "own", side_table=PEOPLE.drop_columns(["zip"]))


def test_a_side_table_with_values_of_no_hierarchy_is_refused(made):
    strange = PEOPLE.set_column(3, "job", pa.array(["pilot"] * 40))
    with pytest.raises(
        InputError, match=r"Column 'job' of .* has 40 cells that the hierarchy of the release lacks"
    ):
        verify_folder(made / "own", side_table=strange)


def test_only_risk_utility_releases_have_a_side_table(tmp_path):
    policy = Policy.parse("{attributes: {age: {role: quasi-identifier, type: number}}, require: []}")
    rows = pa.table({"age": ["[1, 2]"] * 2})
    Release(rows, Certificate.of(policy, Claims(rows=2, groups=1)), policy).write(tmp_path / "out")
    with pytest.raises(InputError, match="Only a risk-utility release has a risk against a side table"):
        verify_folder(tmp_path / "out", side_table=PEOPLE)


def test_a_table_alone_is_not_judged_by_a_risk_utility_policy():
    with pytest.raises(InputError, match="A table alone does not show the risk and utility of its rows"):
        verify_table(PEOPLE, Policy.parse(POLICY))


def test_a_policy_that_is_not_closed_is_refused():
    with pytest.raises(HierarchyError, match="declares no hierarchy of column 'age', or no bounds of it"):
        LabelColumn.of(Attribute("age", Role.QUASI_IDENTIFIER, Kind.NUMBER), has_missing=False)


# ---- all kinds of policies ------------------------------------------------------------------------------------------


@given(
    st.sampled_from(UTILITIES),
    st.sampled_from(MODELS),
    st.sampled_from(["0", "1/3", "0.6", "1"]),
    st.sampled_from(["labels", "bounds", "both"]),
    st.booleans(),
    st.booleans(),
    st.integers(0, 99),
)  # fmt: skip
@settings(max_examples=25)
def test_whatever_the_options_verify_agrees_with_the_definitions(
    tmp_path_factory, utility, weights, share, output, is_outside, is_parquet, seed
):
    side = people(25, seed=seed + 1) if is_outside else None
    method = f"utility-at-least: {share}, utility: {utility}, weights: {weights}, floor: {seed % 2 / 4}"
    policy = POLICY.replace("utility-at-least: 0.5", method + (", side-table: x.csv" if is_outside else ""))
    policy = policy.replace(
        "zip: {role: quasi-identifier,", "zip: {role: quasi-identifier, values: ['531', '533', '571', '5b'],"
    )
    table = people(20, seed=seed, missing=seed % 3 > 0)
    release = release_of(
        table,
        policy + f"output: {{values: {output}}}\n",
        side,
        file_format="parquet" if is_parquet else "csv",
    )
    folder = tmp_path_factory.mktemp("any") / "release"
    release.write(folder)
    assert (
        Certificate.from_json((folder / "certificate.json").read_text()).claims.utility
        == release.certificate.claims.utility
    )
    verdict = verify_folder(folder, side_table=table if side is None else side)
    assert verdict.ok, verdict.failures
    assert any(check.claim.startswith("the mean risk is") for check in verdict.checks)


def test_bounds_that_do_not_belong_to_their_label_are_found(tmp_path):
    release_of(PEOPLE, POLICY + "output: {values: both}\n").write(tmp_path / "own")
    path = tmp_path / "own/release.csv"
    lines = path.read_text().splitlines()
    at = lines[0].split(",").index("age_high")
    cells = next(line for line in lines[1:] if not line.startswith('"')).split(",")
    lines[lines.index(",".join(cells))] = ",".join([*cells[:at], "59", *cells[at + 1 :]])
    path.write_text("\n".join(lines) + "\n")
    rehash(tmp_path / "own")
    assert has(failed(tmp_path / "own"), "every label is a node of its column's hierarchy: column 'age'")


# ---- nodes --------------------------------------------------------------------------------------------------------


@given(trees(), st.sampled_from(UTILITIES), st.sampled_from(MODELS), st.integers(1, 4))
def test_utilities_and_weights_are_those_of_the_optimizers(tree, utility, weights, n_columns):
    attribute = Attribute("x", Role.QUASI_IDENTIFIER, hierarchy=tree)
    leaves = [label for label in (tree.labels[node] for node in tree.leaf_nodes) if label]
    by_leaf = {label: [0.0, 0.5, 3.0][i % 3] for i, label in enumerate(leaves)}
    given_weights = Weights(weights, {"x": by_leaf if weights == "harmonic" else 2.0})
    column = LabelColumn.of(attribute, has_missing=False)
    np.testing.assert_allclose(column.utility(utility), model.utilities(attribute, tree, utility))
    np.testing.assert_allclose(
        column.weight(given_weights, n_columns), model.weights(attribute, tree, given_weights, n_columns=n_columns)
    )  # fmt: skip


def test_a_label_at_several_nodes_is_read_as_each_of_them_and_the_strictest_counts(tmp_path):
    tree = '{"*": {a: {b: [c, d]}, e: {a: [f, g]}}}'
    policy = f"""
attributes:
  x: {{role: quasi-identifier, hierarchy: {{tree: {tree}}}}}
  y: {{role: quasi-identifier, values: [u, v]}}
method: {{risk-utility: {{utility-at-least: 0.6}}}}
"""
    table = pa.table({"x": ["c", "c", "d", "f", "g", "g"], "y": ["u", "v", "u", "v", "u", "v"]})
    closed = Policy.parse(policy)
    rows = pa.table({"x": ["a", "b", "a"], "y": ["u", "u", "v"]})
    boxes = Boxes.of(rows, closed, ())
    assert [len(found) for found in boxes.nodes[0]] == [2, 1]
    claims = claims_of(boxes)
    assert claims.utility is not None
    assert (claims.utility.least, claims.utility.mean) == (3.0 - 1, pytest.approx(7 / 3))
    release_of(table, policy).write(tmp_path / "out")
    assert verify_folder(tmp_path / "out", side_table=table).ok


def test_an_open_mask_may_hide_values_of_any_length():
    column = LabelColumn.of(
        Attribute("zip", Role.QUASI_IDENTIFIER, hierarchy={"mask": 4}), has_missing=False, labels=["*"]
    )
    assert sorted(column.tree.depth[column.tree.leaf_nodes].tolist()) == [1, 2, 3, 4]


# ---- counting -------------------------------------------------------------------------------------------------------


@st.composite
def boxes_and_rows(draw):
    n_columns = draw(st.integers(1, 4))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_boxes, n_rows = draw(st.integers(0, 30)), draw(st.integers(0, 30))
    codes = random.integers(0, 6, (n_rows, n_columns))
    low = random.integers(0, 6, (n_boxes, n_columns))
    return low, low + random.integers(0, 5, low.shape), codes, random.integers(1, 4, n_rows)


@given(boxes_and_rows(), st.sampled_from([0, 20, 1 << 18]))
def test_the_rows_within_boxes_are_those_that_a_look_at_every_pair_finds(case, at_once):
    low, high, codes, count = case
    naive = [
        sum(
            int(n)
            for row, n in zip(codes.tolist(), count.tolist(), strict=True)
            if all(a <= code < b for a, code, b in zip(one, row, other, strict=True))
        )
        for one, other in zip(low.tolist(), high.tolist(), strict=True)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(risk, "AT_ONCE", at_once)
        assert count_rows_in_boxes(low, high, codes, count).tolist() == naive


@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(0, 3), st.integers(1, 5)), min_size=1, max_size=4),
    st.data(),
)
def test_the_mean_risk_lies_between_what_any_choice_of_lacking_rows_gives(lines, data):
    """Each line: how many rows, how many the side table has in its box, and its weight."""
    count = np.array([n for n, _, _ in lines])
    n_alone = sum(n for n, have, _ in lines if have == 0)
    n_lacking = data.draw(st.integers(n_alone, int(count.sum())))
    rows = [(have, weight) for n, have, weight in lines for _ in range(n)]
    open_rows = [i for i, (have, _) in enumerate(rows) if have]
    found = []
    for chosen in itertools.combinations(open_rows, n_lacking - n_alone):
        risks = [weight / (have + (have == 0 or i in chosen)) for i, (have, weight) in enumerate(rows)]
        found.append((math.fsum(risks) / len(risks), max(risks)))
    boxes = type("Lines", (), {"count": count, "n_rows": int(count.sum())})
    readings = Readings(
        np.arange(len(lines)),
        np.array([float(weight) for _, _, weight in lines]),
        np.array([have for _, have, _ in lines]),
    )
    told = Risks.of(boxes, readings, n_lacking)  # type: ignore[arg-type]
    means, greatest = zip(*found, strict=True)
    assert told.n_alone == n_alone
    assert math.isclose(told.mean.low, min(means))
    assert math.isclose(told.mean.high, max(means))
    assert told.greatest.low <= min(greatest) * (1 + 1e-12)
    assert told.greatest.high >= max(greatest) * (1 - 1e-12)


def test_a_figure_says_what_it_is_or_between_what_it_lies():
    assert str(Between(1.5, 1.5)) == "it is 1.5"
    assert str(Between(1.0, 1.5)) == "it lies between 1 and 1.5"


def test_a_mapping_of_utilities_by_depth_is_recomputed(tmp_path):
    policy = POLICY.replace("0.5}", "0.5, utility: {zip: [0, 1, 5]}}")
    release_of(PEOPLE, policy).write(tmp_path / "own")
    claims = json.loads((tmp_path / "own/certificate.json").read_text())["claims"]
    assert claims["utility"]["measure"] == "by depth"
    assert verify_folder(tmp_path / "own", side_table=PEOPLE).ok


def test_rows_of_roots_throughout_are_counted_as_suppressed():
    number = "type: number, bounds: [0, 9], hierarchy: {balanced: 3}"
    date = "type: date, bounds: [2024-01-01, 2024-12-31], hierarchy: {dates: [year]}"
    closed = Policy.parse(POLICY.replace("type: number", number).replace("type: date", date))
    cells = {"age": ["*", "*", "5"], "zip": ["*"] * 3, "job": ["*"] * 3, "admitted": ["*"] * 3}
    claims = claims_of(Boxes.of(pa.table(cells), closed, ()))
    assert (claims.rows, claims.groups, claims.suppressed) == (3, 2, 2)


def test_a_root_and_its_only_child_have_the_same_bounds_and_either_may_be_meant(tmp_path):
    policy = POLICY.replace("0.5}", "0, weights: model-2}") + "output: {values: bounds}\n"
    release_of(people(missing=False), policy).write(tmp_path / "out")
    document = json.loads((tmp_path / "out/certificate.json").read_text())
    assert document["claims"]["suppressed"] == 40
    assert document["figures"]["tradeoff"]["suppressed"] == 0, "all days are of one year, and that is told"
    assert verify_folder(tmp_path / "out", side_table=people(missing=False)).ok


def test_boxes_that_weigh_little_are_not_blamed_for_the_rounding_of_the_run(tmp_path):
    policy = """
attributes: {x: {role: quasi-identifier, type: number, bounds: [0, 999], hierarchy: {balanced: 2}}}
method: {risk-utility: {utility-at-least: 0.1, weights: harmonic}}
"""
    table = pa.table({"x": list(range(0, 1000, 37))})
    release_of(table, policy).write(tmp_path / "out")
    assert verify_folder(tmp_path / "out", side_table=table).ok
    change_figures(
        tmp_path / "out", lambda figures: figures["risk"].update(mean=figures["risk"]["mean"] * 0.99999)
    )
    assert has(failed(tmp_path / "out", table), "the mean risk is")


def test_a_hierarchy_with_its_own_leaf_for_missing_cells_is_taken_as_it_is():
    tree = Hierarchy.from_tree({"*": ["a", "b", None]})
    column = LabelColumn.of(Attribute("x", Role.QUASI_IDENTIFIER, hierarchy=tree), has_missing=True)
    assert column.nodes(None) == (3,)
