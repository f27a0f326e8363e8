"""The report in a real browser, when one is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace

import pyarrow as pa
import pytest

from sfumato.policy.document import Policy
from sfumato.publishing import publish
from sfumato.report import render

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ATTACK = "<img src=x onerror=\"document.title='broken'\"><script>document.title='broken'</script>"

SCORE = {"target": ATTACK, "metric": "accuracy", "test": [0.7, 0.8], "train": [0.9, 0.9]}
UTILITY = {
    "format": 1,
    "protocol": {"folds": 2, "rows": 80, "learners": ATTACK},
    "scores": [{**SCORE, "model": ATTACK, "data": data} for data in ("release", "raw", "nothing")],
    "measures": {ATTACK: 1.5},
    "tests": [],
}


@pytest.fixture(scope="module")
def browser() -> str:
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("needs a browser: install chromium")
    return found


def shown(browser: str, page, folder, *options: str) -> str:
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}", *options]
    done = subprocess.run([*command, page.as_uri()], capture_output=True, text=True, timeout=120, check=True)
    return done.stdout


def test_a_report_with_hostile_labels_is_shown_and_runs_nothing(browser, tmp_path):
    rows = pa.table(
        {"x": [ATTACK, "b", "c", "d"] * 20, "y": [str(i % 7) for i in range(80)], ATTACK: ["a", "b"] * 40}
    )
    attributes = {
        "x": {"role": "quasi-identifier"},
        "y": {"role": "quasi-identifier", "type": "number"},
        ATTACK: {"role": "other"},
    }
    condition = ATTACK.replace("'", "''")
    workload = [{"classify": ATTACK}, {"select": f"x = '{condition}'"}, {"aggregate": ["range", "mean"]}]
    policy = Policy.from_dict(
        {"attributes": attributes, "require": [{"k-anonymity": 2}], "workload": workload}
    )
    release = publish(rows, policy, seed=1)
    release = replace(
        release,
        certificate=replace(release.certificate, figures=release.certificate.figures | {"utility": UTILITY}),
    )
    (tmp_path / "out").mkdir()  # no release: these figures would not be published
    (tmp_path / "out" / "report.html").write_text(render(release), encoding="utf-8")
    dom = shown(browser, tmp_path / "out" / "report.html", tmp_path / "profile", "--dump-dom")
    assert "<title>Release report: The promise holds for all 80 rows.</title>" in dom
    assert "<script" not in dom
    assert "<img" not in dom
    for kind, n in {"painting": 1, "scores": 1, "column": 3, "histogram": 1}.items():
        assert dom.count(f'class="{kind}"') == n, kind
    check_picture(browser, tmp_path)


def check_picture(browser: str, folder) -> None:
    picture, page = folder / "report.png", folder / "out" / "report.html"
    shown(browser, page, folder / "profile", f"--screenshot={picture}", "--window-size=1000,1600")
    assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert picture.stat().st_size > 20_000  # a blank page has about 5,000


def test_the_report_of_a_private_release_with_hostile_labels_is_shown_and_runs_nothing(browser, tmp_path):
    attributes = {
        ATTACK: {"role": "quasi-identifier", "values": [ATTACK, "b", "c"]},
        "y": {"role": "quasi-identifier", "type": "number", "bounds": [0, 9], "step": 1},
        "class": {"role": "other", "values": [ATTACK, "other"]},
    }
    options = {"epsilon": 2, "variant": "paper", "specializations": 3}
    policy = Policy.from_dict(
        {"attributes": attributes, "workload": [{"classify": "class"}], "method": {"diffgen": options}}
    )
    rows = pa.table({ATTACK: [ATTACK, "b"] * 40, "y": list(range(8)) * 10, "class": [ATTACK, "other"] * 40})
    publish(rows, policy, seed=1).write(tmp_path / "out")
    dom = shown(browser, tmp_path / "out" / "report.html", tmp_path / "profile", "--dump-dom")
    assert "<title>Release report: Not private: the noise can be repeated.</title>" in dom
    assert "<script" not in dom
    assert "<img" not in dom
    assert dom.count('class="budget"') == 1
    assert dom.count('class="classes"') >= 3  # the whole, and at least one attribute that was cut
    check_picture(browser, tmp_path)


def test_the_report_of_a_risk_utility_release_with_hostile_labels_is_shown_and_runs_nothing(
    browser, tmp_path
):
    attributes = {
        ATTACK: {"role": "quasi-identifier"},
        "y": {"role": "quasi-identifier", "type": "number"},
        "z": {"role": "sensitive"},
    }
    method = {"risk-utility": {"utility-at-least": 0.6}}
    policy = Policy.from_dict({"attributes": attributes, "method": method})
    rows = pa.table({ATTACK: [ATTACK, "b"] * 40, "y": list(range(8)) * 10, "z": [ATTACK, "other"] * 40})
    publish(rows, policy, seed=1).write(tmp_path / "out")
    dom = shown(browser, tmp_path / "out" / "report.html", tmp_path / "profile", "--dump-dom")
    assert "<title>Release report: Every row keeps 60" in dom
    assert "<script" not in dom
    assert "<img" not in dom
    for kind, n in {"position": 1, "shares": 1, "parts": 8}.items():  # two columns, five sizes, and the proof
        assert dom.count(f'class="{kind}"') == n, kind
    check_picture(browser, tmp_path)
