"""What the report and the command say of rests, of slices without bounds, and of tasks that are not served."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest
from click.testing import CliRunner

import sfumato as sf
from sfumato.cli import commands
from sfumato.report.rests import Rest, rest_of

QUASI = {"role": "quasi-identifier"}
COUNTRIES = {"country": ["US"] * 4 + ["Peru"] * 2 + ["Cuba"]}
JOBS = {"tree": {"*": {"Art": ["Dancer", "Writer", "Painter"], "Law": ["Judge", "Notary"]}}}


def policy_of(*, k: int = 3, workload=(), output=None, method=None, **attributes) -> sf.Policy:
    plain = {
        "attributes": attributes,
        "require": [{"k-anonymity": k}],
        "workload": list(workload),
        "method": {"mondrian": {"refine": "none"}} if method is None else {"mondrian": method},
        "output": output or {},
    }
    return sf.Policy.from_dict(plain)


def words(release: sf.Release, what: str) -> str:
    """The paragraph of the report with that id, without marks; empty if there is none."""
    found = re.search(rf'<p[^>]* id="{what}">(.*?)</p>', release.report, re.DOTALL)
    return unescape(re.sub(r"<[^>]+>", "", found[1])) if found else ""


def test_a_rest_is_shown_by_the_release_s_own_label():
    made = sf.publish(pa.table(COUNTRIES), policy_of(country=QUASI))
    assert rest_of(made.recoding) == Rest("country", "*", "US")
    told = words(made, "rest")
    assert "Here US was told apart in country, and the rows that were left keep the label *" in told
    assert "Cuba" not in made.report, "a value of the table that no label shows"


def test_a_rest_within_a_hierarchy_has_the_label_of_its_node():
    jobs = ["Dancer"] * 4 + ["Writer", "Painter"] * 2 + ["Judge"] * 4
    made = sf.publish(pa.table({"job": jobs}), policy_of(k=4, job={**QUASI, "hierarchy": JOBS}))
    assert sorted(set(made.table.column("job").to_pylist())) == ["Art", "Dancer", "Judge"]
    assert rest_of(made.recoding) == Rest("job", "Art", "Dancer")


@pytest.mark.parametrize(
    ("table", "method"),
    [
        pytest.param({"country": ["US"] * 4 + ["Peru"] * 3}, None, id="all parts hold"),
        pytest.param({"country": ["US"] * 4}, None, id="one group"),
        pytest.param(COUNTRIES, {"rest": False}, id="no rests"),
        pytest.param(COUNTRIES, {"variant": "paper"}, id="as published"),
    ],
)
def test_a_release_without_a_rest_says_nothing_of_rests(table, method):
    made = sf.publish(pa.table(table), policy_of(country=QUASI, method=method))
    assert rest_of(made.recoding) is None
    assert words(made, "rest") == ""


def test_numbers_without_bounds_are_named_where_slices_hang_on_the_table():
    table = pa.table(
        {"age": [30, 31, 32, 61, 62, 63], "born": ["1990-01-01", "1991-01-01", "1992-01-01"] * 2}
    )
    age, born = {**QUASI, "type": "number"}, {**QUASI, "type": "date"}
    told = words(sf.publish(table, policy_of(age=age, born=born)), "bounds")
    assert told.startswith("'age', 'born' have no declared bounds, so the ends of their ranges come from")
    told = words(sf.publish(table.select(["age"]), policy_of(age=age)), "bounds")
    assert told.startswith("'age' has no declared bounds, so the ends of its ranges come from")
    assert not re.search(r"\d", told), "no value of the table"


@pytest.mark.parametrize(
    ("age", "output", "method"),
    [
        ({"bounds": [0, 110]}, {}, None),
        ({"hierarchy": {"intervals": [10, 50]}}, {}, None),
        ({}, {"numbers": "boxes"}, None),
        ({}, {"numbers": "range"}, None),
        ({}, {}, {"variant": "paper"}),
    ],
)
def test_nothing_is_advised_where_bounds_are_known_or_labels_have_no_slices(age, output, method):
    policy = policy_of(age={**QUASI, "type": "number", **age}, output=output, method=method)
    assert words(sf.publish(pa.table({"age": [30, 31, 32, 61, 62, 63]}), policy), "bounds") == ""


def publish_by_command(tmp_path: Path, policy: sf.Policy, table: pa.Table, *more: str) -> str:
    pa_csv.write_csv(table, tmp_path / "rows.csv")
    (tmp_path / "policy.yaml").write_text(policy.to_yaml())
    asked = [
        "publish",
        str(tmp_path / "rows.csv"),
        "--policy",
        str(tmp_path / "policy.yaml"),
        "--out",
        str(tmp_path / "out"),
    ]
    done = CliRunner().invoke(commands, [*asked, *more])
    assert done.exit_code == 0, done.output
    return done.stderr


def test_publish_advises_on_stderr_and_not_if_it_is_to_be_quiet(tmp_path):
    policy = policy_of(age={**QUASI, "type": "number"})
    table = pa.table({"age": [30, 31, 32, 61, 62, 63]})
    told = publish_by_command(tmp_path, policy, table)
    assert "note: 'age' has no declared bounds" in told
    assert not set(re.findall(r"\d+", told)) & {"30", "31", "32", "61", "62", "63"}
    assert "bounds" not in publish_by_command(tmp_path, policy, table, "--quiet", "--overwrite")


def test_a_criterion_beside_a_workload_says_that_the_tasks_are_not_served(tmp_path):
    table = pa.table({"sex": ["f", "m"] * 6, "ill": ["yes", "no", "no"] * 4})
    given = {"workload": [{"classify": "ill"}], "sex": QUASI, "ill": {"role": "other"}}
    overriding = policy_of(method={"criterion": "loss"}, **given)
    assert "note: The criterion of the method decides in place" in publish_by_command(
        tmp_path, overriding, table
    )
    assert "which are measured and not served" in sf.publish(table, overriding).report
    assert "not served" not in sf.publish(table, policy_of(**given)).report


def test_the_report_says_what_no_task_means():
    table = pa.table({"sex": ["f", "m"] * 6})
    assert "cells tell as much as they can" in sf.publish(table, policy_of(sex=QUASI)).report
    median = sf.publish(table, policy_of(sex=QUASI, method={"criterion": "median"})).report
    assert "boxes are halved along their widest side" in median
