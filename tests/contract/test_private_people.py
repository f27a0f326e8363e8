"""Private releases of people with several rows: the promise is for people, and verify holds it to that."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import private_people
import pyarrow as pa
import pytest
import sampled_people
from tampering import edit_certificate

import sfumato as sf
from sfumato.errors import PolicyError
from sfumato.policy.unit import Unit

MOST = 3
TABLE = private_people.people().set_column(
    0, "name", pa.array([f"person {i * i % 100}" if i % 10 else "" for i in range(600)])
)
"""Each of some people has up to 60 rows; every tenth row has no person."""


def the_policy(**options):
    return replace(private_people.the_policy(**options), unit=Unit("name", MOST))


def count_bounded(most=MOST):
    """Rows with a declared class that can be read at most, counted by hand."""
    names = TABLE["name"].to_pylist()
    rows = {name: names.count(name) for name in set(names) - {""}}
    return names.count("") + sum(min(n, most) for n in rows.values())


@pytest.fixture(params=["paper", "tuned", "counted"])
def options(request):
    """Every kind of ledger; a ``counted`` one begins with a noisy number of rows."""
    variant = "paper" if request.param == "paper" else "tuned"
    return {"variant": variant} | ({} if request.param == "counted" else {"specializations": 4})


def test_a_release_is_verified_and_promised_to_people(options, tmp_path):
    release = sf.publish(TABLE, the_policy(**options), seed=4)
    privacy = release.certificate.privacy
    assert privacy.neighbours == "one person added or removed, of whom at most 3 rows are read"
    assert privacy.spent + privacy.unspent == privacy.epsilon == 1
    assert "name: tells people apart; at most 3 rows of each, drawn at random" in privacy.public
    release.write(tmp_path / "out")
    assert sf.verify_folder(tmp_path / "out").ok
    document = json.loads((tmp_path / "out" / "certificate.json").read_text())
    assert document["privacy"]["rows-at-most"] == MOST
    assert document["policy"]["unit"] == {"column": "name", "rows-at-most": MOST}


def test_a_person_has_no_more_rows_than_the_policy_says():
    """Without noise to speak of, the counts add up to the rows that may be read."""
    release = sf.publish(TABLE, the_policy(epsilon=1e9, specializations=1), seed=4)
    n_classless = sum(value not in ("low", "high") for value in TABLE["income"].to_pylist())
    assert (
        count_bounded() - n_classless
        <= release.certificate.claims.counted
        <= count_bounded()
        < TABLE.num_rows
    )


def test_noise_is_as_many_times_as_large_as_a_person_may_have_rows(options):
    of_people = sensitivities(sf.publish(TABLE, the_policy(**options), seed=4))
    of_rows = sensitivities(sf.publish(TABLE, private_people.the_policy(**options), seed=4))
    assert of_people == {draw: MOST * sensitivity for draw, sensitivity in of_rows.items()}


def sensitivities(release):
    """Share times scale, of each kind of draw: what the noise hides."""
    return {
        draw["draw"]: Fraction(draw["share"]) * Fraction(draw["scale"])
        for draw in release.certificate.privacy.ledger
    }


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["privacy"].pop("rows-at-most"),
        lambda d: d["privacy"].update({"rows-at-most": 2}),
        lambda d: d["privacy"].update(
            {"rows-at-most": 2, "neighbours": "one person added or removed, of whom at most 2 rows are read"}
        ),
        lambda d: d["privacy"].update(neighbours="one row added or removed"),
        lambda d: d["policy"]["unit"].update({"rows-at-most": 2}),
        lambda d: d["policy"].pop("unit"),
    ],
)
def test_another_promise_than_that_of_the_policy_is_found(change, tmp_path):
    sf.publish(TABLE, the_policy(specializations=4), seed=4).write(tmp_path / "out")
    edit_certificate(tmp_path / "out", change)
    assert not sf.verify_folder(tmp_path / "out").ok


def test_noise_of_rows_that_is_certified_for_people_is_found(tmp_path):
    """A release of rows whose policy and certificate are rewritten, as if it were one of people."""
    release = sf.publish(TABLE, private_people.the_policy(specializations=4), seed=4)
    people = the_policy(specializations=4)
    privacy = release.certificate.privacy
    assert privacy is not None
    privacy = replace(privacy, rows_at_most=MOST)
    forged = replace(release.certificate, policy=people.as_dict(), privacy=privacy)
    replace(release, certificate=forged, policy=people, check=None).write(tmp_path / "out")
    failed = [check.claim for check in sf.verify_folder(tmp_path / "out").failures]
    assert "every share and scale is as the formula of the method says" in failed


def test_memory_and_disk_read_the_same_rows(options):
    here = sf.publish(TABLE, the_policy(**options), seed=4)
    there = sf.publish(TABLE, the_policy(**options), seed=4, engine="disk", memory=1 << 26)
    assert here.table.equals(there.table)


def test_no_unit_is_an_error():
    """Whatever the cells of the unit are: an error would depend on them."""
    for cells in ([None] * 600, [""] * 600, [b"\xff\xfe"] * 600, np.arange(600), [0.1] * 600):
        sf.publish(TABLE.set_column(0, "name", pa.array(cells)), the_policy(specializations=1), seed=1)


@pytest.mark.parametrize(
    ("policy", "unit", "words"),
    [
        (private_people.the_policy(), Unit("name"), "rows-at-most: 4"),
        (sampled_people.policy(), Unit("name"), "rows-at-most: 1"),
        (sampled_people.policy(), Unit("name", 2), "write rows-at-most: 1"),
    ],
)
def test_rows_of_people_must_be_bounded(policy, unit, words):
    with pytest.raises(PolicyError, match=words):
        replace(policy, unit=unit)


# ---- risk-utility ------------------------------------------------------------------------------------


def test_private_risk_utility_draws_from_one_row_of_each_person(tmp_path):
    table, side = sampled_people.people(), sampled_people.people(seed=2, public=True)
    names = pa.array([f"person {i % 1500}" for i in range(table.num_rows)])
    table = (
        table.set_column(table.column_names.index("name"), "name", names)
        if "name" in table.column_names
        else (table.append_column("name", names))
    )
    policy = replace(sampled_people.policy(), unit=Unit("name", 1))
    release = sf.publish(table, policy, seed=3, side_table=side)
    assert release.certificate.privacy.rows_at_most == 1
    assert 0 < release.certificate.claims.rows < 1500
    release.write(tmp_path / "out")
    assert sf.verify_folder(tmp_path / "out").ok
