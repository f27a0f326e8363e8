"""The extra experiment of DiffGen: its cuts and its judgement."""

import doctest
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sfumato.encoding.declared import domains_of
from sfumato.methods.specialization.diffgen.draw import given_cuts

REPRODUCTION = Path(__file__).resolve().parents[2] / "reproduction"
sys.path.insert(0, str(REPRODUCTION))

import diffgen_extra as extra  # noqa: E402 - found by the line above
from lab import private, record  # noqa: E402
from lab.private import UCI, Split  # noqa: E402
from lab.record import Measured  # noqa: E402


def test_examples():
    done = doctest.testmod(extra)
    assert (done.failed, done.attempted > 0) == (0, True)


# ---- cuts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", list(extra.OWNERS))
def test_the_owner_s_cuts_cover_every_declared_value_once(method):
    domains = domains_of(private.schema())
    cuts = given_cuts(extra.OWNERS[method], domains)
    for domain, pieces in zip(domains, cuts, strict=True):
        assert [piece.low for piece in pieces] == [0, *(piece.high for piece in pieces[:-1])]
        assert pieces[-1].high == domain.n_codes
        assert (len(pieces) > 1) == (domain.attribute.name in extra.OWNERS[method])


def test_all_attributes_are_all_of_them_and_few_in_the_order_of_the_table():
    assert extra.columns_of(extra.ALL) == list(range(14))
    assert [private.COLUMNS[a] for a in extra.columns_of(5)] == [
        "age", "education", "marital-status", "occupation", "sex",
    ]  # fmt: skip


@pytest.mark.data
def test_trials_on_part_of_adult(data_folder, monkeypatch):
    monkeypatch.setenv("SFUMATO_DATA", str(data_folder))
    split = Split(UCI, 0, n_rows=3_000)
    cells = {}
    for method, n in (
        (extra.CONTINGENCY, 3),
        (extra.AS_PUBLISHED, 4),
        *((cut, extra.ALL) for cut in extra.OWNERS),
    ):
        found = {e["measure"]: e["value"] for e in extra.trial(method, n, 1, split, 1)}
        cells[method] = found["cells"]
        assert 60 < found["accuracy"] < 90
    assert cells[extra.CONTINGENCY] == 17 * 8 * 15
    assert [cells[cut] for cut in extra.OWNERS] == [
        3 * 3 * 3 * 2 * 3,
        4 * 2 * 3 * 3 * 3 * 2 * 2 * 4,
        8 * 2 * 2 * 4,
    ]


# ---- judgement -------------------------------------------------------------------------------------------


def measured(level):
    """Runs of all methods around the accuracy that ``level`` says."""
    found = Measured(*extra.KEYS)
    asked = [(method, n) for n in extra.SIZES for method in (extra.CONTINGENCY, *extra.VARIANTS)]
    asked += [(method, extra.ALL) for method in (*extra.VARIANTS, *extra.OWNERS)]
    for method, n in asked:
        for number, away in enumerate([-0.1, 0.0, 0.1]):
            found.extend([extra.entry(number, level(method, n) + away, "accuracy", method, n, 1)])
            found.extend([extra.entry(number, 100.0 * n, "cells", method, n, 1)])
    for method, n in ((extra.ORIGINAL, extra.ALL), (extra.MAJORITY, 0)):
        found.extend([extra.entry(0, 85.0, "accuracy", method, n, "")])
    for n in extra.SIZES:
        found.extend([extra.entry(0, 80.0 + n, "accuracy", extra.ORIGINAL, n, "")])
    return found


def as_expected(method, n):
    falls = {3: 82.0, 4: 81.0, 5: 77.0}
    owners = dict(zip(extra.OWNERS, (82.0, 80.0, 76.0), strict=True))
    return {extra.CONTINGENCY: falls.get(n), **owners}.get(method) or 83.0


def verdicts(found):
    return [claim.outcome for claim in extra.claims(found, [1])]


def test_claims_hold_where_the_numbers_say_so():
    assert verdicts(measured(as_expected)) == ["held"] * 3


def test_claims_can_fail():
    assert verdicts(measured(lambda *_: 80.0)) == ["not held"] * 3
    flat = measured(lambda method, n: 84.0 if method == extra.CONTINGENCY else as_expected(method, n))
    assert verdicts(flat) == ["not held", "held", "held"]
    first = next(iter(extra.OWNERS))
    ahead = measured(lambda method, n: 84.0 if method == first else as_expected(method, n))
    assert verdicts(ahead) == ["held", "held", "held in part"]


def test_the_table_has_a_line_for_each_method():
    lines = extra.table(measured(as_expected), [1]).splitlines()
    assert "| Contingency table | 5 | 500 | 3 | 77.00 ± 0.10 |" in lines
    assert "| Owner's cut: Who they are | 14 | 1,400 | 3 | 76.00 ± 0.10 |" in lines


# ---- the record ------------------------------------------------------------------------------------------


def test_the_experiment_is_on_record_in_full():
    folder = REPRODUCTION.parent / "docs" / "reproduction"
    document = json.loads((folder / f"{extra.NAME}.json").read_text(encoding="utf-8"))
    assert not document["quick"]
    assert (folder / f"{extra.NAME}.png").stat().st_size > 10_000
    (claims,) = document["claims"].values()
    assert [claim["text"] for claim in claims] == [
        claim.text for claim in extra.claims(measured(as_expected), [1])
    ]
    assert len(claims) == 3


def test_the_record_has_the_methods_of_the_script_and_no_others():
    points = record.read_points(REPRODUCTION.parent / "docs" / "reproduction" / f"{extra.NAME}.csv")
    every = (extra.CONTINGENCY, *extra.VARIANTS, *extra.OWNERS)
    lines = {(extra.ORIGINAL, ""), (extra.MAJORITY, "")}
    drawn = {(method, epsilon) for method in every for epsilon in extra.EPSILONS}
    seen = {
        measure: {(point["method"], point["epsilon"]) for point in points if point["measure"] == measure}
        for measure in {point["measure"] for point in points}
    }
    assert seen == {"accuracy": drawn | lines, "cells": drawn}


@pytest.mark.data
@pytest.mark.slow
def test_the_script_runs_from_the_command_line(data_folder, tmp_path):
    out = tmp_path / "reproduction"
    command = [sys.executable, str(REPRODUCTION / "diffgen_extra.py"), "--quick", "--out", str(out)]
    environment = {**os.environ, "SFUMATO_DATA": str(data_folder)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "(a quick run: no evidence)" in (tmp_path / "reproduction.md").read_text(encoding="utf-8")
    assert (out / f"{extra.NAME}.png").exists()
