"""A risk-utility release as its owner and its readers meet it: in Python, in the folder, by the command."""

from __future__ import annotations

import itertools
import json
import math
import operator
from fractions import Fraction

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from commandline import names
from rowwise_people import (
    QUASI,
    chain,
    covers,
    depth,
    is_lacking,
    least_risk,
    people,
    policy_text,
    raw_utility,
    risk,
    utility,
)

import sfumato as sf
from sfumato.cli.promises import promises
from sfumato.errors import InputError
from sfumato.policy.document import Policy
from sfumato.policy.options.risk_utility import LAGRANGIAN, LOG_RISK, MOST_UTILITY, SERVES, THRESHOLD
from sfumato.publishing import Request, publish_to
from sfumato.release.release import Release
from sfumato.table.write import write_table
from sfumato.verify.folder import verify_folder

PEOPLE, OTHERS = people(), people(50, seed=2)
ROWS, SIDE = PEOPLE.to_pylist(), OTHERS.to_pylist()
PRICES = {
    THRESHOLD: "",
    LAGRANGIAN: ", lambda: 0.02, floor: 0.5",
    LOG_RISK: ", lambda: 1, floor: 0.5",
    MOST_UTILITY: ", risk-at-most: 0.25",
}
FITTING = [(optimizer, objective) for optimizer, served in SERVES.items() for objective in served]


def policy_of(options: str = "", more: str = "") -> Policy:
    return Policy.parse(policy_text(options, more))


def by_row(release: Release) -> list[dict]:
    """The published rows in the order of the table: column ``row`` tells."""
    return sorted(release.rows.to_pylist(), key=lambda row: int(row["row"]))


def boxes(release: Release) -> list[tuple]:
    return [tuple(row[name] for name in QUASI) for row in by_row(release)]


# ---- every optimizer and objective ---------------------------------------------------------------------------


@pytest.mark.parametrize(("optimizer", "objective"), FITTING)
def test_every_optimizer_publishes_ancestors_of_each_row_and_verifies(optimizer, objective, tmp_path):
    policy = policy_of(f"optimizer: {optimizer}, objective: {objective}{PRICES[objective]}")
    release = publish_to(tmp_path / "out", PEOPLE, policy, Request(seed=1, side_table=OTHERS))
    published = by_row(release)
    assert len(published) == len(ROWS)
    for row, box in zip(ROWS, published, strict=True):
        assert all(box[name] in chain(name, row[name]) for name in QUASI)
        assert box["disease"] == row["disease"]
        assert not {"id", "caution"} & set(box)
        if objective == THRESHOLD:
            assert utility(box) >= Fraction(3, 5) * raw_utility(row)
    verify_folder(tmp_path / "out", side_table=OTHERS).raise_if_failed()
    figures = release.certificate.figures["tradeoff"]
    assert figures["rows"] == len(ROWS)
    assert figures["side table"] == {"rows": len(SIDE), "own": False, "sha256": None}
    risks = [
        risk(box, SIDE, own=int(is_lacking(row, SIDE))) for row, box in zip(ROWS, boxes(release), strict=True)
    ]
    if objective == MOST_UTILITY:
        assert max(risks) <= Fraction(1, 4)
    if objective in (THRESHOLD, MOST_UTILITY):  # no floor
        assert figures["risk"]["mean"] == pytest.approx(float(sum(risks) / len(risks)))
        assert figures["risk"]["greatest"] == pytest.approx(float(max(risks)))


@pytest.mark.parametrize("share", ["0", "0.5", "6/8", "1"])
@pytest.mark.parametrize("optimizer", ["exact", "auto"])
def test_the_exact_optimum_is_that_of_looking_at_all_boxes(share, optimizer):
    release = sf.publish(PEOPLE, policy_of(f"optimizer: {optimizer}, utility-at-least: {share}"))
    found = [risk(box, ROWS) for box in boxes(release)]
    assert found == [least_risk(row, ROWS, Fraction(share)) for row in ROWS]
    figures = release.certificate.figures["tradeoff"]
    assert figures["proved"] == figures["rows"] == len(ROWS)
    assert figures["optimizer"] == "exact"


def test_only_rows_that_are_proved_are_called_so():
    for optimizer, proved in (("probing", 0), ("exact", len(ROWS))):
        release = sf.publish(PEOPLE, policy_of(f"optimizer: {optimizer}"))
        assert release.certificate.figures["tradeoff"]["proved"] == proved
        assert f"optimal: proved for {proved} of 60 rows" in list(promises(release))


def test_personal_weights_and_a_side_table_count_as_the_definitions_say():
    policy = policy_of("weights: {column: caution}, utility-at-least: 0.5")
    release = sf.publish(PEOPLE, policy, side_table=OTHERS)
    wanted = [least_risk(row, SIDE, Fraction(1, 2), factor=row["caution"]) for row in ROWS]
    found = [
        risk(box, SIDE, own=int(is_lacking(row, SIDE)), factor=row["caution"])
        for row, box in zip(ROWS, boxes(release), strict=True)
    ]
    assert found == wanted
    assert release.certificate.figures["tradeoff"]["lacking"] == sum(is_lacking(row, SIDE) for row in ROWS)


def values_of_all_boxes(row: dict, value) -> dict[tuple, float]:
    """What an objective, a function of utility and risk, gives to each box of a row with weights ``model-2``."""
    boxes = itertools.product(*(chain(name, row[name]) for name in QUASI))
    covered = {box: sum(covers(box, other) for other in ROWS) for box in boxes}
    return {
        box: value(sum(map(depth, QUASI, box)), row["caution"] / n_covered)
        for box, n_covered in covered.items()
    }


@pytest.mark.parametrize(
    ("optimizer", "objective"), [case for case in FITTING if case[1] in (LAGRANGIAN, LOG_RISK)]
)
def test_personal_weights_of_model_2_need_no_floor_where_one_divides_by_risk(optimizer, objective, tmp_path):
    price = {LAGRANGIAN: 0.1, LOG_RISK: 2.0}[objective]
    value = {
        LAGRANGIAN: lambda utility, risk: price / risk + utility,
        LOG_RISK: lambda utility, risk: utility - price * math.log(risk),
    }[objective]
    policy = policy_of(
        f"optimizer: {optimizer}, objective: {objective}, lambda: {price}, "
        "weights: {model: model-2, column: caution}"
    )
    release = publish_to(tmp_path / "out", PEOPLE, policy, Request(seed=1))
    verify_folder(tmp_path / "out", side_table=PEOPLE).raise_if_failed()
    figures = release.certificate.figures["tradeoff"]
    for row, box in zip(ROWS, boxes(release), strict=True):
        values = values_of_all_boxes(row, value)
        assert box in values
        if figures["proved"] == len(ROWS):
            assert values[box] == pytest.approx(max(values.values()), rel=1e-9)
    assert figures["proved"] == (0 if optimizer == "probing" else len(ROWS))


def test_a_row_that_worries_about_nothing_needs_a_floor_where_one_divides_by_risk(sfumato, here):
    careless = PEOPLE.set_column(
        PEOPLE.column_names.index("caution"), "caution", pa.array([0, *PEOPLE["caution"].to_pylist()[1:]])
    )
    write_table(careless, here / "people.csv")
    for objective in (LAGRANGIAN, LOG_RISK):
        options = f"objective: {objective}, lambda: 1, weights: {{model: model-2, column: caution}}"
        (here / "policy.yaml").write_text(policy_text(options), encoding="utf-8")
        done = sfumato("publish", "people.csv", "--policy", "policy.yaml", "--out", "out")
        assert done.code == 2
        assert "1 row has only weights of 0" in done.err
        assert "floor: 0.1" in done.err


# ---- what goes in and comes out ------------------------------------------------------------------------------


@pytest.mark.parametrize("output", ["labels", "bounds", "both"])
@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_every_output_in_every_format_is_verified_and_read_again(output, file_format, tmp_path):
    table, side = tmp_path / f"people.{file_format}", tmp_path / f"others.{file_format}"
    write_table(PEOPLE, table)
    write_table(OTHERS, side)
    policy = policy_of("", f"output: {{values: {output}}}\n")
    release = publish_to(tmp_path / "out", table, policy, Request(side_table=side))
    ages = {"labels": ["age"], "bounds": ["age_low", "age_high"], "both": ["age", "age_low", "age_high"]}[
        output
    ]
    assert release.rows.column_names == [*ages, "zip", "job", "disease", "row"]
    assert names(tmp_path / "out") == sorted(
        [f"release.{file_format}", "certificate.json", "policy.yaml", "report.html"]
    )
    assert Release.read(tmp_path / "out").table.num_rows == len(ROWS)
    verify_folder(tmp_path / "out", side_table=side).raise_if_failed()
    assert len(release.certificate.figures["tradeoff"]["side table"]["sha256"]) == 64
    for row, published in zip(ROWS, by_row(release), strict=True):
        if output != "labels" and row["age"] is not None:
            low, high = published["age_low"], published["age_high"]
            assert low is None or low <= row["age"]
            assert row["age"] <= high


@pytest.mark.parametrize(
    ("frame", "kind"),
    [(PEOPLE, pa.Table), (PEOPLE.to_pandas(), pd.DataFrame), (pl.from_arrow(PEOPLE), pl.DataFrame)],
)
def test_the_release_is_of_the_kind_of_frame_that_came_in(frame, kind):
    release = sf.publish(frame, policy_of(), seed=1, side_table=frame)
    assert isinstance(release.table, kind)
    wanted = sf.publish(PEOPLE, policy_of(), seed=1, side_table=PEOPLE)
    assert release.rows.to_pylist() == wanted.rows.to_pylist()


@pytest.mark.parametrize("optimizer", ["auto", "genetic"])
def test_the_same_table_has_the_same_boxes_and_with_a_seed_the_same_bytes(optimizer, tmp_path):
    policy = policy_of(f"optimizer: {optimizer}")
    first, second = (sf.publish(PEOPLE, policy) for _ in range(2))
    assert boxes(first) == boxes(second)
    assert first.rows.column("row").to_pylist() != second.rows.column("row").to_pylist()
    for name in ("one", "two"):
        publish_to(tmp_path / name, PEOPLE, policy, Request(seed=3))
    assert names(tmp_path / "one") == names(tmp_path / "two")
    for name in names(tmp_path / "one"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name


def test_the_order_of_the_table_is_not_kept_and_does_not_matter():
    release = sf.publish(PEOPLE, policy_of(), seed=1)
    order = release.rows.column("row").to_pylist()
    assert order != sorted(order, key=int)
    turned = sf.publish(PEOPLE.take(pa.array(range(len(ROWS) - 1, -1, -1))), policy_of(), seed=1)
    assert boxes(turned) == boxes(release)


# ---- the folder ------------------------------------------------------------------------------------------------


def test_a_side_table_is_read_beside_the_policy_and_told_by_name_and_hash(sfumato, here):
    (here / "data").mkdir()
    write_table(PEOPLE, here / "people.csv")
    write_table(OTHERS.select(list(QUASI)), here / "data" / "voters.csv")
    (here / "data" / "policy.yaml").write_text(policy_text("side-table: voters.csv"), encoding="utf-8")
    done = sfumato("publish", "people.csv", "--policy", "data/policy.yaml", "--out", "out")
    assert (done.code, done.err) == (0, "")
    assert "not in the side table: " in done.out
    certificate = json.loads((here / "out" / "certificate.json").read_text(encoding="utf-8"))
    assert certificate["method"]["risk-utility"]["side-table"] == "voters.csv"
    assert certificate["figures"]["tradeoff"]["side table"]["own"] is False
    (here / "data" / "voters.csv").rename(here / "moved.csv")
    assert sfumato("verify", "out").code == 0  # the folder needs no outside file
    assert sfumato("verify", "out", "--side-table", "moved.csv").code == 0
    assert str(here) not in (here / "out" / "policy.yaml").read_text(encoding="utf-8")


def test_the_policy_of_the_release_is_closed_and_publishes_the_same_boxes(tmp_path):
    text = policy_text().replace(", bounds: [0, 7]", "")
    release = publish_to(tmp_path / "out", PEOPLE, Policy.parse(text))
    assert "bounds" in (tmp_path / "out" / "policy.yaml").read_text(encoding="utf-8")
    again = sf.publish(PEOPLE, tmp_path / "out" / "policy.yaml")
    assert boxes(again) == boxes(release)
    assert again.policy == release.policy


def test_the_command_says_what_rows_risk_and_are_worth(sfumato, here):
    write_table(PEOPLE, here / "people.csv")
    (here / "policy.yaml").write_text(policy_text("utility-at-least: 0.5"), encoding="utf-8")
    done = sfumato("publish", "people.csv", "--policy", "policy.yaml", "--out", "out", "--verbose")
    assert (done.code, done.err) == (0, "")
    for words in (
        "out: 60 rows in ", " different boxes, verified.", "utility: each row keeps at least ", " (50% was asked), ",
        "risk of a row, before and after: ", " on average, ", "Risks are weighted", "optimal: proved for 60 of 60 rows",
        "optimizer exact: the cube of all generalizations has about ",
    ):  # fmt: skip
        assert words in done.out
    assert sfumato("apply", "out", "people.csv", "--out", "x.csv").code == 2
    assert names(here) == ["out", "people.csv", "policy.yaml"]


def test_most_utility_keeps_its_limit_for_each_row_and_verify_counts_it(sfumato, here):
    write_table(PEOPLE, here / "people.csv")
    text = policy_text("objective: most-utility, risk-at-most: 0.25")
    (here / "policy.yaml").write_text(text, encoding="utf-8")
    done = sfumato("publish", "people.csv", "--policy", "policy.yaml", "--out", "out")
    assert (done.code, done.err) == (0, "")
    assert " (0.25 is allowed)" in done.out
    certificate = json.loads((here / "out" / "certificate.json").read_text(encoding="utf-8"))
    assert certificate["claims"]["utility"]["risk-at-most"] == "1/4"
    assert "promise" not in certificate
    assert certificate["figures"]["tradeoff"]["risk"]["greatest"] <= 0.25
    verified = sfumato("verify", "out", "--side-table", "people.csv")
    assert verified.code == 0
    assert "ok    every row has a risk of at most 0.25" in verified.out
    assert "ok    the histogram of risk is what the rows have" in verified.out
    raised = text.replace("0.25", "0.5")
    (here / "out" / "policy.yaml").write_text(raised, encoding="utf-8")
    assert sfumato("verify", "out").code == 1


@pytest.mark.parametrize("limit", [Fraction(0), Fraction(1, 20), Fraction(1, 4), Fraction(1, 3), Fraction(3)])
@pytest.mark.parametrize("optimizer", ["auto", "exact", "probing"])
def test_no_box_of_most_utility_has_more_risk_and_no_other_tells_more(limit, optimizer):
    options = f"objective: most-utility, risk-at-most: {limit}, optimizer: {optimizer}"
    found = boxes(sf.publish(PEOPLE, policy_of(options)))
    utilities = [sum(map(depth, QUASI, box)) for box in found]
    best = [
        max(
            sum(map(depth, QUASI, box))
            for box in itertools.product(*(chain(name, row[name]) for name in QUASI))
            if risk(box, ROWS) <= limit
        )
        for row in ROWS
    ]
    assert all(risk(box, ROWS) <= limit for box in found)
    assert utilities == best or optimizer == "probing"
    assert all(map(operator.le, utilities, best))


def test_a_lagrangian_of_all_or_nothing_is_called_that():
    options = "objective: lagrangian, lambda: {}, floor: 1"
    for price, words in (("0.0001", "as they are (60 here)"), ("1000", "suppresses them (60)")):
        lines = list(promises(sf.publish(PEOPLE, policy_of(options.format(price)))))
        assert words in lines[-1]
        assert "log-risk" in lines[-1]
    lines = list(promises(sf.publish(PEOPLE, policy_of("objective: log-risk, lambda: 1, floor: 1"))))
    assert not any("Lagrangian" in line for line in lines)


def test_suppressed_rows_are_counted():
    release = sf.publish(PEOPLE, policy_of("utility-at-least: 0"))
    assert boxes(release) == [("*",) * 3] * len(ROWS)
    assert release.certificate.claims.suppressed == len(ROWS)
    assert "suppressed, published as roots alone: 60 rows" in list(promises(release))


@pytest.mark.parametrize("options", ["utility-at-least: 1", "objective: log-risk, lambda: 0.001, floor: 1"])
def test_rows_that_are_published_as_they_are_are_counted(options):
    lines = list(promises(sf.publish(PEOPLE, policy_of(options))))
    assert "published as they are, with all their quasi-identifiers: 60 rows" in lines


def test_too_many_generalizations_for_the_cube_are_probed_and_it_is_said(monkeypatch):
    from sfumato.methods.risk_utility import optimize

    monkeypatch.setattr(optimize, "AFFORDABLE", 1)
    cases = {
        "": ("probing", "branch and bound of at most"),
        "objective: log-risk, lambda: 1, floor: 1": ("probing", "row-join probing"),
        "objective: lagrangian, lambda: 1, floor: 1": ("cut", "certificates and cuts"),
    }
    for options, (optimizer, why) in cases.items():
        figures = sf.publish(PEOPLE, policy_of(options)).certificate.figures["tradeoff"]
        assert figures["optimizer"] == optimizer
        assert why in figures["reason"]
        assert "generalized rows" in figures["reason"]
    monkeypatch.setattr(optimize, "ENDLESS", 1)
    with pytest.raises(InputError, match=r"say optimizer: auto, or give fewer quasi-identifiers\.$"):
        sf.publish(PEOPLE, policy_of("optimizer: exact"))


def test_progress_is_told():
    told: list[str] = []
    sf.publish(PEOPLE, policy_of(), progress=lambda stage, _done, _total: told.append(stage))
    assert list(dict.fromkeys(told)) == ["encoding", "generalizing", "publishing", "verifying", "reporting"]
