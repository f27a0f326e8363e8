"""Pseudonyms and shifted dates of a release: what they hide, what they would tell otherwise, and what is refused."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml

import sfumato as sf
from sfumato.errors import InputError, VerificationFailed
from sfumato.table.write import write_table

N, K = 600, 4
START = dt.date(2024, 1, 1)


def stays() -> pa.Table:
    """Stays of patients, who have one to four; the age of a patient is that at each stay."""
    rng = np.random.default_rng(8)
    who = np.repeat(np.arange(N), rng.integers(1, 5, N))[:N]
    return pa.table(
        {
            "id": [f"patient {i}" for i in who],
            "age": rng.integers(0, 90, len(who)),
            "zip": rng.choice(["A", "B", "C"], len(who)),
            "ill": rng.choice(["flu", "cold", "gout"], len(who)),
            "seen": pa.array([START + dt.timedelta(int(day)) for day in rng.integers(0, 60, len(who))]),
        }
    )


STAYS = stays()
IDS = STAYS.column("id").to_pylist()


@pytest.fixture
def key(tmp_path):
    path = tmp_path / "owner.key"
    path.write_bytes(b"a secret key of the owner, 32 b.")
    path.chmod(0o600)
    return path


def policy(key=None, **changes: Any) -> dict[str, Any]:
    pseudonym = {"role": "pseudonym", **({} if key is None else {"key": str(key)})}
    attributes: dict[str, Any] = {
        "id": pseudonym,
        "age": {"role": "quasi-identifier", "type": "number", "bounds": [0, 90]},
        "zip": {"role": "quasi-identifier"},
        "ill": {"role": "sensitive"},
        "seen": {"role": "drop", "type": "date"},
    }
    for name, change in changes.items():
        attributes[name] = {**attributes[name], **change}
    return {"attributes": attributes, "require": [{"k-anonymity": K}]}


def lines_of(release) -> list[tuple[tuple[str, str], str]]:
    """The group and the pseudonym of each published row."""
    age, zip_, who = (release.table.column(name).to_pylist() for name in ("age", "zip", "id"))
    return [((a, z), p) for a, z, p in zip(age, zip_, who, strict=True)]


def alone_by_their_groups(lines) -> int:
    """How many pseudonyms are alone by the set of groups that they stand in, with their number of rows in each.

    Whoever knows when a person was there, and how old, knows these groups: that many people are found.
    """
    groups: dict[str, Counter] = defaultdict(Counter)
    for group, who in lines:
        groups[who][group] += 1
    told = Counter(tuple(sorted(own.items())) for own in groups.values())
    return sum(told[tuple(sorted(own.items()))] < K for own in groups.values())


def test_one_pseudonym_in_all_groups_finds_people_and_another_in_each_finds_nobody(key):
    """The attack: every group has K rows, and yet most people are alone by the set of groups that they are in."""
    known = policy(id={"role": "other", "passes": "unique"})
    linked = sf.publish(
        STAYS, {**known, "unit": "row"}
    )  # what scope: release would publish, under another name
    n_people = len(set(IDS))
    assert min(Counter(group for group, _ in lines_of(linked)).values()) >= K
    assert alone_by_their_groups(lines_of(linked)) > 0.5 * n_people
    release = sf.publish(STAYS, policy(key))
    assert alone_by_their_groups(lines_of(release)) == 0
    assert not {who for _, who in lines_of(release)} & set(IDS)


def test_the_scope_release_is_refused_where_it_links_groups_and_kept_where_nothing_is_required(key):
    everywhere = policy(key, id={"scope": "release"})
    with pytest.raises(VerificationFailed, match="stand in several; scope: group gives a person another one"):
        sf.publish(STAYS, everywhere)
    free = sf.publish(STAYS, {**everywhere, "require": []})
    assert len({who for _, who in lines_of(free)}) == len(set(IDS))
    one_row_each = STAYS.take([IDS.index(name) for name in dict.fromkeys(IDS)])
    kept = [
        sf.publish(one_row_each, everywhere) for _ in range(2)
    ]  # all rows of each person lie in one group
    first, second = ({who for _, who in lines_of(release)} for release in kept)
    assert first == second


def test_two_releases_do_not_link(key):
    first, second = ({who for _, who in lines_of(sf.publish(STAYS, policy(key)))} for _ in range(2))
    assert not first & second


def test_who_has_two_rows_in_a_group_of_three_is_not_told_by_them(key):
    """k = 2, A has two rows and B one: p, p, q would find A."""
    table = pa.table(
        {"id": ["A", "A", "B"], "age": [30] * 3, "zip": ["A"] * 3, "ill": ["x"] * 3, "seen": [START] * 3}
    )
    asked = {**policy(key), "require": [{"k-anonymity": 2}]}
    assert len(set(sf.publish(table, asked).table.column("id").to_pylist())) == 3
    fair = pa.concat_tables([table, table.slice(2)])  # two rows each
    assert len(set(sf.publish(fair, asked).table.column("id").to_pylist())) == 2


def shared_rows(release, name: str) -> int:
    """How many rows share their pseudonym."""
    told = Counter(release.table.column(name).to_pylist())
    return sum(n for n in told.values() if n > 1)


CASES = pa.table(  # two cases of two rows in each of forty groups, both of one person or of two, and others of one row
    {
        "person": [f"{g} {who if g % 2 else min(who, 1)}" for g in range(40) for who in (1, 1, 2, 2, 0, -1)],
        "case": [f"{g} {case}" for g in range(40) for case in (1, 1, 2, 2, 3, 4)],
        "zip": [f"{g}" for g in range(40) for _ in range(6)],
    }
)


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_two_cases_of_one_person_do_not_share_where_people_are_counted(tmp_path, key, engine):
    """Who knows that a person has a case of two rows must not find all of its rows, though two cases have as many."""
    write_table(CASES, tmp_path / "t.csv")
    asked = {
        "attributes": {
            "person": {"role": "identifier"},
            "case": {"role": "pseudonym", "key": str(key)},
            "zip": {"role": "quasi-identifier"},
        },
        "require": [{"k-anonymity": 2}],
    }
    rows, people = ({**asked, "unit": unit} for unit in ("row", "person"))
    assert shared_rows(sf.publish(tmp_path / "t.csv", rows, engine=engine), "case") == 40 * 4
    assert shared_rows(sf.publish(tmp_path / "t.csv", people, engine=engine), "case") == 20 * 4


def test_a_doctor_with_many_patients_shares_none_and_two_doctors_do(key):
    table = pa.table(
        {
            "patient": [f"p{i}" for i in range(24)],
            "doctor": ["A"] * 8 + ["B", "C"] * 4 + ["D", "E", "F", "F"] * 2,
            "zip": ["1"] * 8 + ["2"] * 8 + ["3"] * 8,
        }
    )
    asked = {
        "attributes": {
            "patient": {"role": "identifier"},
            "doctor": {"role": "pseudonym", "key": str(key)},
            "zip": {"role": "quasi-identifier"},
        },
        "require": [{"k-anonymity": 2}],
        "unit": "patient",
    }
    assert shared_rows(sf.publish(table, asked), "doctor") == 8  # those of zip 2


def test_of_two_columns_rows_share_one_in_a_group(key, tmp_path):
    """Together they would tell how many cases a person has, and of how many rows each."""
    table = pa.table(
        {
            "person": ["A", "A", "B", "B"] * 2,
            "case": ["a1", "a2", "b1", "b1", "c", "c", "d", "d"],
            "zip": ["1"] * 4 + ["2"] * 4,
        }
    )
    pseudonym = {"role": "pseudonym", "key": str(key)}
    asked = {
        "attributes": {"case": pseudonym, "person": pseudonym, "zip": {"role": "quasi-identifier"}},
        "require": [{"k-anonymity": 2}],
        "unit": "row",
    }
    release = sf.publish(table, asked)
    assert (shared_rows(release, "case"), shared_rows(release, "person")) == (4, 4)
    release.write(tmp_path / "r")
    assert sf.verify_folder(tmp_path / "r").ok


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_the_key_is_in_no_file_of_the_release_and_verify_says_what_a_pseudonym_is(here, sfumato, key, engine):
    write_table(STAYS, here / "t.csv")
    (here / "owner.key").write_bytes(key.read_bytes())
    (here / "owner.key").chmod(0o600)
    (here / "p.yaml").write_text(yaml.safe_dump(policy("owner.key")))
    assert sfumato("publish", "t.csv", "--policy", "p.yaml", "--out", "r", "--engine", engine).code == 0
    for path in (here / "r").iterdir():
        assert key.read_bytes() not in path.read_bytes()
        assert b"owner.key" not in path.read_bytes()
        assert b"patient 1" not in path.read_bytes()
    document = json.loads((here / "r/certificate.json").read_text())
    assert document["figures"]["pseudonyms"].startswith("A pseudonym is no anonymization")
    assert "key" not in document["policy"]["attributes"]["id"]
    found = sfumato("verify", "r")
    assert found.code == 0
    assert "ok    every pseudonym of 'id' stands in one group" in found.out
    assert "note  'id' holds pseudonyms, and a pseudonym is no anonymization" in found.out
    report = (here / "r/report.html").read_text()
    assert "holds pseudonyms. A pseudonym is no anonymization" in report
    assert "replaced by pseudonyms" in report
    applied = sfumato("apply", "r", "t.csv", "--out", "more.csv")
    assert applied.code == 0
    assert (here / "more.csv").read_text().splitlines()[0] == "age,zip,ill"


def test_verify_finds_a_pseudonym_that_was_carried_over(tmp_path, key):
    release = sf.publish(STAYS, policy(key))
    who = release.rows.column("id").to_pylist()
    last = release.rows.num_rows - 1
    who[last] = who[0]
    changed = release.rows.set_column(0, "id", pa.array(who))
    folder = tmp_path / "out"
    with pytest.raises(VerificationFailed, match=r"every pseudonym of 'id' stands in one group is false"):
        type(release)(
            changed, release.certificate, release.policy, release.recoding, check=release.check
        ).write(folder)


@pytest.mark.parametrize(
    ("mode", "said"),
    [(None, "does not exist; make one with"), (0o644, "can be read by others; allow only yourself")],
)
def test_a_key_that_is_missing_or_open_is_a_sentence(here, sfumato, mode, said):
    write_table(STAYS, here / "t.csv")
    (here / "p.yaml").write_text(yaml.safe_dump(policy("owner.key")))
    if mode is not None:
        (here / "owner.key").write_bytes(bytes(32))
        (here / "owner.key").chmod(mode)
    refused = sfumato("publish", "t.csv", "--policy", "p.yaml", "--out", "r")
    assert refused.code == 2
    assert said in refused.sentence
    assert not (here / "r").exists()


def test_private_and_row_by_row_methods_publish_neither():
    private = {"diffgen": {"epsilon": 1}}
    for method, role in ((private, "pseudonym"), ("risk-utility", "pseudonym")):
        given = {
            **policy(),
            "method": method,
            "require": [],
            "workload": [{"classify": "ill"}] if method == private else [],
        }
        with pytest.raises(
            InputError, match=rf"publishes no pseudonyms; give the column the {role and 'role'}"
        ):
            sf.Policy.from_dict(given)
    shifted = policy(id={"role": "identifier"}, seen={"role": "other", "shift": {"within": 3, "per": "id"}})
    with pytest.raises(InputError, match="publishes no column as it is, shifted or not"):
        sf.Policy.from_dict({**shifted, "method": private, "require": [], "workload": [{"classify": "ill"}]})


# ---- shifted dates -----------------------------------------------------------------------------------

SHIFTED = policy(id={"role": "identifier"}, seen={"role": "other", "shift": {"within": 30, "per": "id"}})


def test_all_dates_of_a_person_are_shifted_alike_by_at_most_as_much_as_is_said():
    rows = [f"row {i}" for i in range(STAYS.num_rows)]
    asked = json.loads(json.dumps(SHIFTED))
    asked["attributes"]["row"] = {"role": "other", "passes": "unique"}
    release = sf.publish(STAYS.append_column("row", pa.array(rows)), asked)
    place = {row: at for at, row in enumerate(rows)}
    raw, shifts = STAYS.column("seen").to_pylist(), defaultdict(set)
    for row, day in zip(*(release.table.column(name).to_pylist() for name in ("row", "seen")), strict=True):
        shifts[IDS[place[row]]].add((day - raw[place[row]]).days)
    assert all(len(own) == 1 for own in shifts.values())
    drawn = [next(iter(own)) for own in shifts.values()]
    assert -30 <= min(drawn) < -20
    assert 20 < max(drawn) <= 30
    assert "shifted by a secret number of days, at most 30" in (release.report or "")
    assert "published, with dates shifted" in (release.report or "")


def test_a_seed_repeats_the_shifts_on_every_engine_and_without_one_they_are_secret(tmp_path):
    write_table(STAYS, tmp_path / "t.csv")
    days = {}
    for run, (engine, seed) in enumerate((("memory", 5), ("disk", 5), ("memory", None))):
        release = sf.publish(tmp_path / "t.csv", SHIFTED, engine=engine, seed=seed)
        days[run] = sorted(map(str, release.table.column("seen").to_pylist()))
    assert days[0] == days[1] != days[2]


def test_a_date_of_nobody_is_an_error_that_names_the_columns():
    ids = [None if i < 3 else name for i, name in enumerate(IDS)]
    with pytest.raises(InputError, match="'seen' is shifted per 'id', which is missing in 3 rows at least"):
        sf.publish(STAYS.set_column(0, "id", pa.array(ids)), SHIFTED)


def test_apply_leaves_shifted_dates_out(here, sfumato):
    write_table(STAYS, here / "t.csv")
    sf.publish(here / "t.csv", SHIFTED).write(here / "r")
    assert sfumato("apply", "r", "t.csv", "--out", "more.csv").code == 0
    assert (here / "more.csv").read_text().splitlines()[0] == "age,zip,ill"
