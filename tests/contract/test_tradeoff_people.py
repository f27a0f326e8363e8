"""Risk-utility with a unit: risk counts people of the side table, each once, however many rows they have."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest
from rowwise_people import QUASI, covers, people, policy_text
from tampering import edit_certificate

import sfumato as sf
from sfumato.errors import InputError, PolicyError, TableError
from sfumato.policy.document import Policy
from sfumato.policy.options.risk_utility import APPROXIMATION, CUT, GENETIC, PROBING

WHO = "unit: id\n"


def stays(n: int, n_people: int, seed: int) -> pa.Table:
    """Rows of people who have several, about half of them alike."""
    table = people(n, seed=seed)
    places = [i * 7 % n_people for i in range(n)]
    table = table.set_column(0, "id", pa.array([f"person-{place}" for place in places]))
    same = table.take(pa.array([place if i % 2 else i for i, place in enumerate(places)]))
    for name in QUASI:
        table = table.set_column(table.schema.get_field_index(name), name, same[name])
    return table


TABLE, OTHERS = stays(60, 25, 1), stays(50, 20, 2)


def people_in(box: dict, side: pa.Table) -> int:
    """How many people have a row in a box, by sets."""
    rows = side.to_pylist()
    return len({row["id"] for row in rows if covers([box[name] for name in QUASI], row)})


def publish(options: str = "", more: str = WHO, **others: object) -> sf.Release:
    return sf.publish(TABLE, Policy.parse(policy_text(options, more)), seed=1, **others)


@pytest.mark.parametrize("side", [None, OTHERS])
@pytest.mark.parametrize(
    "options",
    [
        "",
        "objective: most-utility, risk-at-most: 0.25",
        "objective: log-risk, lambda: 1, floor: 0.5",
        "optimizer: exact",
    ],
)
def test_the_risk_of_a_release_is_that_of_people(side, options, tmp_path):
    """With weights that are all alike, risk is one over the people of a box, and of the row if it is lacking."""
    alike = "weights: model-2" + (f", {options}" if options else "")
    release = publish(alike, side_table=side)
    against = TABLE if side is None else side
    figures = release.certificate.figures["tradeoff"]
    floor = 0.5 if "floor" in options else 0
    published = sorted(release.table.to_pylist(), key=lambda row: int(row["row"]))
    known = {tuple(row[name] for name in QUASI) for row in against.to_pylist()}
    found = []
    for box, raw in zip(published, TABLE.to_pylist(), strict=True):
        lacking = tuple(raw[name] for name in QUASI) not in known
        found.append((1 + floor) / max(people_in(box, against) + lacking, 1))
    assert figures["risk"]["mean"] == pytest.approx(sum(found) / len(found), rel=1e-8)
    assert figures["risk"]["greatest"] == pytest.approx(max(found), rel=1e-8)
    assert figures["side table"]["people"] == len({*against["id"].to_pylist()})
    assert figures["side table"]["rows"] == against.num_rows
    release.write(tmp_path / "out")
    checked = sf.verify_folder(tmp_path / "out", side_table=against)
    assert not checked.failures
    assert any("whom risk counts" in check.claim for check in checked.checks)


def test_a_side_table_that_does_not_say_whose_its_rows_are_counts_rows(tmp_path):
    rows = OTHERS.drop_columns(["id"])
    release, of_rows = publish(side_table=rows), publish(side_table=OTHERS, more="")
    figures = release.certificate.figures["tradeoff"]
    assert "people" not in figures["side table"]
    assert figures["risk"] == of_rows.certificate.figures["tradeoff"]["risk"]
    release.write(tmp_path / "out")
    assert not sf.verify_folder(tmp_path / "out", side_table=rows).failures
    wrong = sf.verify_folder(tmp_path / "out", side_table=OTHERS)
    assert [check.claim for check in wrong.failures] == ["risk counts whom the certificate says"]


@pytest.mark.parametrize("optimizer", [PROBING, GENETIC, APPROXIMATION, CUT])
def test_an_optimizer_that_adds_up_rows_says_which_one_does_not(optimizer):
    options = f"optimizer: {optimizer}"
    if optimizer == CUT:
        options += ", objective: lagrangian, lambda: 0.02, floor: 0.5"
    with pytest.raises(InputError, match="say optimizer: auto, or unit: row"):
        publish(options)


@pytest.mark.parametrize("optimizer", [PROBING, GENETIC])
def test_people_with_rows_that_are_alike_add_up(optimizer):
    """Everybody has the rows of their first one, twice."""
    once = people(40)
    twice = pa.concat_tables([once, once])
    policy = Policy.parse(policy_text(f"optimizer: {optimizer}", WHO))
    alone = Policy.parse(policy_text(f"optimizer: {optimizer}"))
    found = sf.publish(twice, policy, seed=1).certificate.figures["tradeoff"]
    assert found["side table"] == {"rows": 80, "people": 40, "own": True, "sha256": None}
    assert found["risk"] == sf.publish(once, alone, seed=1).certificate.figures["tradeoff"]["risk"]


def test_a_side_table_with_rows_of_nobody_is_refused():
    ids = pa.array([None, *OTHERS["id"].to_pylist()[1:]])
    with pytest.raises(TableError, match=r"side table.*the unit, is missing in 1 row"):
        publish(side_table=OTHERS.set_column(0, "id", ids))


def test_the_private_variant_of_the_paper_counts_rows():
    private = (
        "side-table: o.csv, private: {epsilon: 1, delta: 1.0e-6, variant: paper, algorithm: 3}, floor: 1"
    )
    with pytest.raises(PolicyError, match="counts rows, and no people"):
        Policy.parse(policy_text(private, WHO), folder=None)


@pytest.mark.parametrize(
    "change",
    [
        lambda side: side.update(people=24),
        lambda side: side.pop("people"),
        lambda side: side.update(people=True),
    ],
)
def test_a_certificate_that_counts_others_is_found(change, tmp_path, sfumato):
    publish(side_table=OTHERS).write(tmp_path / "out")
    pa_csv.write_csv(OTHERS, tmp_path / "others.csv")
    edit_certificate(tmp_path / "out", lambda document: change(document["figures"]["tradeoff"]["side table"]))
    assert sfumato("verify", tmp_path / "out", "--side-table", tmp_path / "others.csv").code == 1


def test_the_report_and_the_command_say_people(tmp_path, sfumato):
    pa_csv.write_csv(TABLE, tmp_path / "stays.csv")
    (tmp_path / "policy.yaml").write_text(policy_text("", WHO), encoding="utf-8")
    done = sfumato(
        "publish", tmp_path / "stays.csv", "--policy", tmp_path / "policy.yaml", "--out", tmp_path / "out"
    )
    assert done.code == 0, done.err
    report = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "60 rows of 25 people" in report
    document = json.loads((tmp_path / "out" / "certificate.json").read_text(encoding="utf-8"))
    assert document["figures"]["tradeoff"]["side table"]["people"] == 25
    done = sfumato("apply", tmp_path / "out", tmp_path / "stays.csv", "--side-table", tmp_path / "stays.csv",
                   "--out", tmp_path / "more.csv")  # fmt: skip
    assert done.code == 0, done.err
