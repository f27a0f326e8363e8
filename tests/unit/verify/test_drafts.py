"""Rows that are about to be published: what may be claimed of them, and what is found if other things are claimed."""

from __future__ import annotations

from dataclasses import replace

import private_people
import pyarrow as pa
import pytest
import sampled_people
import tradeoff_releases

import sfumato as sf
from sfumato.errors import InternalError
from sfumato.policy.document import Policy
from sfumato.policy.output import Form
from sfumato.release.folder import sha256_of
from sfumato.release.release import Release
from sfumato.table.stored import FiledRows
from sfumato.verify.drafts import EXAMINERS, DraftFinding, DraftRows, examine_draft

GROUPS = """
attributes: {age: {role: quasi-identifier, type: number}, zip: {role: quasi-identifier}, ill: {role: sensitive}}
require: [k-anonymity: 3]
"""
ROWS = pa.table({"age": [1, 2, 3, 7, 8, 9] * 3, "zip": ["a", "b"] * 9, "ill": ["flu", "gout", "flu"] * 6})


def publish_groups() -> Release:
    return sf.publish(ROWS, Policy.parse(GROUPS), seed=1)


def publish_counts() -> Release:
    return sf.publish(private_people.people(), private_people.the_policy(columns=("age", "sex")), seed=1)


def publish_boxes() -> Release:
    return tradeoff_releases.release_of(tradeoff_releases.people())


def publish_sample() -> Release:
    side = sampled_people.people(public=True)
    return sf.publish(sampled_people.people(), sampled_people.policy(), side_table=side, seed=1)


RELEASES = {
    Form.GROUPS: publish_groups,
    Form.COUNTS: publish_counts,
    Form.BOXES: publish_boxes,
    Form.SAMPLE: publish_sample,
}


def draft_of(release: Release) -> DraftRows:
    """The draft that a release was made of."""
    claims = release.certificate.claims
    missing = () if claims.utility is None else claims.utility.missing
    given = claims if claims.counted is not None else None
    return DraftRows(release.rows, release.policy, release.recoding, given, missing)


def failures(found: DraftFinding, release: Release, **claims: int) -> list[str]:
    """The claims of a certificate that are found to be false, if it claims these things in place of the true ones."""
    certificate = replace(release.certificate, claims=replace(found.claims, **claims))
    return [check.claim for check in found.checks(certificate) if not check.passed]


def test_every_form_of_rows_has_an_examiner():
    assert {*EXAMINERS} == {*Form} == {*RELEASES}


@pytest.mark.parametrize("form", Form)
def test_what_may_be_claimed_is_what_a_release_claims(form):
    release = RELEASES[form]()
    assert release.policy.method.form is form
    found = examine_draft(draft_of(release))
    assert found.claims == replace(release.certificate.claims, sha256={})
    assert failures(found, release) == []


@pytest.mark.parametrize("form", [Form.COUNTS, Form.BOXES, Form.SAMPLE])
def test_a_certificate_that_claims_other_numbers_is_refused(form):
    release = RELEASES[form]()
    found = examine_draft(draft_of(release))
    assert failures(found, release, rows=found.claims.rows + 1) == [
        f"the release holds {found.claims.rows + 1:,} rows"
    ]


def test_groups_that_are_too_small_are_found():
    release = publish_groups()
    strict = Policy.parse(GROUPS.replace("k-anonymity: 3", "k-anonymity: 19"))
    found = examine_draft(replace(draft_of(release), policy=strict))
    assert failures(found, release) == ["19-anonymity holds"]


def test_a_box_outside_the_hierarchies_is_found():
    release = publish_boxes()
    jobs = pa.array(["pilot", *release.rows.column("job").to_pylist()[1:]])
    rows = release.rows.set_column(release.rows.column_names.index("job"), "job", jobs)
    found = examine_draft(replace(draft_of(release), rows=rows))
    assert failures(found, release) == ["every label is a node of its column's hierarchy"]


def test_details_are_told_of_all_columns_but_of_no_private_release():
    assert {*examine_draft(draft_of(publish_groups())).details} == {"age", "zip"}
    assert {*examine_draft(draft_of(publish_boxes())).details} == {"age", "zip", "job", "admitted"}
    for release in (publish_counts(), publish_sample()):
        assert examine_draft(draft_of(release)).details == {}


def test_rows_in_a_file_are_known_afterwards_by_their_hash(tmp_path):
    release = publish_groups()
    in_memory = examine_draft(draft_of(release))
    assert in_memory.known is None
    release.write(tmp_path / "out")
    rows = FiledRows(tmp_path / "out/release.parquet", "parquet")
    found = examine_draft(replace(draft_of(release), rows=rows, memory=1 << 20, scratch=tmp_path))
    assert found.claims == in_memory.claims
    assert found.known is not None
    assert found.known.sha256 == rows.sha256 == sha256_of(rows.path)
    assert found.known.policy == release.policy


def test_counts_without_claims_are_a_mistake_of_the_method():
    with pytest.raises(InternalError, match="Counts come with claims"):
        examine_draft(replace(draft_of(publish_counts()), claims=None))
