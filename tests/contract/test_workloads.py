"""Every purpose by every method, end to end: published, verified, read again, asked, applied."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from people import CONDITION, PEOPLE, REQUIREMENTS, WORKLOADS, the_policy

import sfumato as sf
from sfumato.errors import InputError
from sfumato.evaluation.intervals import make_score
from sfumato.evaluation.metrics import ACCURACY
from sfumato.evaluation.result import RELEASE, Evaluation
from sfumato.policy import predicate
from sfumato.release.query.select import matches
from sfumato.table.opening import open_table

CASES = [
    *[("mondrian", workload, required) for workload in WORKLOADS for required in REQUIREMENTS],
    *[("tds", workload, "k") for workload in WORKLOADS if "classify" in workload or workload == "aggregate"],
]


@pytest.mark.parametrize(("method", "workload", "required"), CASES)
def test_a_release_for_any_purpose_is_verified_read_asked_and_applied(method, workload, required, tmp_path):
    policy = the_policy(method, workload, required)
    release = sf.publish(PEOPLE, policy, seed=1)
    release.write(tmp_path / "out")
    assert sf.verify_folder(tmp_path / "out").ok

    again = sf.Release.read(tmp_path / "out")
    assert again.policy == policy
    true = matches(predicate.parse(CONDITION, policy.schema), open_table(PEOPLE), policy.schema)
    returned = release.select(CONDITION)
    assert again.select(CONDITION).num_rows == returned.num_rows >= np.count_nonzero(true)
    found = release.query("COUNT(*)", where=CONDITION)
    assert found.low <= np.count_nonzero(true) <= found.high == returned.num_rows or policy.statistics
    assert again.query("COUNT(*)", where=CONDITION) == found

    recoded = release.recoding.apply(PEOPLE)
    quasi = ("age", "sex", "city", "born")
    boxes = [sorted(map(str, zip(*(t.column(name).to_pylist() for name in quasi), strict=True)))
             for t in (release.table, recoded)]  # fmt: skip
    assert boxes[0] == boxes[1]  # the published rows are those that the recoding gives


@pytest.mark.parametrize("method", ["mondrian", "tds"])
@pytest.mark.parametrize("output", ["labels", "bounds", "both", "summary"])
def test_every_output_selects_the_same_rows(method, output, tmp_path):
    release = sf.publish(PEOPLE, the_policy(method, "classify", "k", output), seed=1)
    release.write(tmp_path / "out")
    labels = sf.publish(PEOPLE, the_policy(method, "classify", "k"), seed=1)
    same = ["disease", "hours", "income"]
    assert release.select(CONDITION).select(same).equals(labels.select(CONDITION).select(same))


def test_the_certificate_and_the_report_tell_the_imprecision_of_each_predicate():
    release = sf.publish(PEOPLE, the_policy("mondrian", "select, then classify", "k"))
    first, second = release.certificate.figures["imprecision"]
    assert (first["where"], second["where"]) == (CONDITION, "age < 30")
    for found in (first, second):
        true = matches(
            predicate.parse(found["where"], release.policy.schema), open_table(PEOPLE), release.policy.schema
        )
        assert found["true"] == np.count_nonzero(true)
        assert found["returned"] == release.select(found["where"]).num_rows
        assert found["imprecision"] == found["returned"] - found["true"]
        assert f"{found['returned']:,}" in release.report
    assert "age &lt; 30" in release.report


def test_selection_splits_lower_the_imprecision():
    def imprecision(workload: str) -> int:
        release = sf.publish(PEOPLE, the_policy("mondrian", workload, "k"))
        true = matches(
            predicate.parse(CONDITION, release.policy.schema), open_table(PEOPLE), release.policy.schema
        )
        return release.select(CONDITION).num_rows - int(np.count_nonzero(true))

    assert imprecision("select") < min(imprecision("nothing"), imprecision("classify"))


EVALUATION = Evaluation(
    policy={},
    protocol={"folds": 3},
    scores=(make_score("income", "decision-tree", RELEASE, ACCURACY, (0.7, 0.8, 0.75), (0.8, 0.8, 0.8)),),
    measures={"average group size": 7.5},
)


def test_an_evaluation_of_the_policy_goes_into_certificate_and_report(tmp_path):
    policy = the_policy("mondrian", "classify", "k")
    evaluation = replace(EVALUATION, policy=policy.as_dict())
    release = sf.publish(PEOPLE, policy, evaluation=evaluation)
    release.write(tmp_path / "out")
    held = json.loads((tmp_path / "out" / "certificate.json").read_text())["figures"]["utility"]
    assert Evaluation.from_dict({**held, "policy": policy.as_dict()}) == evaluation
    assert "decision-tree" in release.report.replace("decision tree", "decision-tree")
    assert sf.verify_folder(tmp_path / "out").ok


def test_an_evaluation_of_another_policy_is_refused():
    evaluation = replace(EVALUATION, policy=the_policy("mondrian", "classify", "k and l").as_dict())
    with pytest.raises(InputError, match="another policy"):
        sf.publish(PEOPLE, the_policy("mondrian", "classify", "k"), evaluation=evaluation)


def test_an_evaluation_of_another_table_is_refused():
    policy = the_policy("mondrian", "classify", "k")
    evaluation = replace(EVALUATION, policy=policy.as_dict(), protocol={"folds": 3, "rows": 399})
    with pytest.raises(InputError, match="another table"):
        sf.publish(PEOPLE, policy, evaluation=evaluation)
