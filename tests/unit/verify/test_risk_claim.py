"""The risk of re-identification that a certificate claims: counted by hand, in portions, by SQL, and forged."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import InputError
from sfumato.release.certificate import Certificate, RiskClaim, SmallGroups
from sfumato.table.stored import FiledRows
from sfumato.verify.measure import claims, examine, measure

SIZES = {"a": 2, "b": 4, "c": 5, "d": 10, "e": 11, "f": 20}
"""Rows of each value of the only quasi-identifier."""

POLICY = """
attributes: {group: {role: quasi-identifier}, disease: {role: sensitive}}
require: [k-anonymity: 2]
"""


@pytest.fixture(scope="module")
def release():
    group = [name for name, n in SIZES.items() for _ in range(n)]
    rows = pa.table({"group": group, "disease": ["flu", "cold"] * (len(group) // 2)})
    return sf.publish(rows, sf.Policy.parse(POLICY), seed=1)


def test_the_risk_is_one_in_the_rows_of_a_group(release):
    n = sum(SIZES.values())
    assert release.certificate.claims.risk == RiskClaim(
        largest=1 / 2, mean=6 / n, above={"1/5": 6 / n, "1/11": 21 / n, "1/20": 32 / n}
    )
    by_row = [1 / size for size in SIZES.values() for _ in range(size)]
    assert release.certificate.claims.risk.mean == pytest.approx(np.mean(by_row))


def test_rows_in_portions_have_the_same_risk(release, tmp_path):
    release.write(tmp_path / "out")
    path = tmp_path / "out" / "release.parquet"
    in_portions = examine(FiledRows(path, "parquet"), release.policy, memory=1, scratch=tmp_path).measures
    assert in_portions.small == measure(release.rows, release.policy).small == SmallGroups(2, (6, 21, 32))


def test_the_certificate_keeps_every_digit(release):
    read = Certificate.from_json(release.certificate.to_json())
    assert (
        read.claims.risk
        == release.certificate.claims.risk
        == claims(measure(release.rows, release.policy)).risk
    )


@pytest.mark.parametrize(
    "change", [{"largest": 1 / 3}, {"mean": 0.1}, {"above": {"1/5": 0.0, "1/11": 0.0, "1/20": 0.0}}]
)
def test_a_false_claim_of_risk_fails(release, tmp_path, change):
    certificate = release.certificate
    forged = replace(certificate.claims, risk=replace(certificate.claims.risk, **change))
    replace(release, certificate=replace(certificate, claims=forged), check=None).write(tmp_path / "out")
    (failure,) = sf.verify_folder(tmp_path / "out").failures
    assert failure.claim.startswith("the risk of re-identification is 1 in")
    assert failure.detail.startswith("it is 1 in 2 at most")


def test_a_claim_that_differs_beyond_the_shown_digits_says_so(release, tmp_path):
    certificate = release.certificate
    risk = replace(certificate.claims.risk, mean=certificate.claims.risk.mean + 1e-9)
    forged = replace(certificate, claims=replace(certificate.claims, risk=risk))
    replace(release, certificate=forged, check=None).write(tmp_path / "out")
    (failure,) = sf.verify_folder(tmp_path / "out").failures
    assert failure.detail == "it differs in digits that are not shown"


@pytest.mark.parametrize(
    "risk",
    [
        {"largest": 2, "mean": 0.1, "above": {"1/5": 0, "1/11": 0, "1/20": 0}},
        {"largest": 0.5, "mean": 0.1, "above": {"1/5": 0, "1/20": 0}},
        {"largest": 0.5, "mean": None, "above": {"1/5": 0, "1/11": 0, "1/20": 0}},
        {"largest": 0.5, "mean": 0.1},
    ],
)
def test_a_certificate_with_a_risk_that_is_none_is_refused(release, risk):
    document = json.loads(release.certificate.to_json())
    document["claims"]["risk"] = risk
    with pytest.raises(InputError, match="no certificate"):
        Certificate.from_json(json.dumps(document))


def test_an_older_certificate_claims_no_risk(release, tmp_path):
    older = replace(release.certificate, claims=replace(release.certificate.claims, risk=None))
    replace(release, certificate=older, check=None).write(tmp_path / "out")
    assert sf.verify_folder(tmp_path / "out").ok
