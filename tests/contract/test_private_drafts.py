"""``profile --private``: a draft that declares every domain, marks what it read, and publishes as it stands."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import InputError
from sfumato.examples.demo import patients
from sfumato.policy.document import Policy
from sfumato.policy.options.diffgen import DiffGenOptions
from sfumato.policy.schema import Role
from sfumato.profiling.private import MARK
from sfumato.profiling.profile import profile
from sfumato.table.write import write_table

N = 120
ODD = pa.table(
    {
        "id": [f"P{i:05d}" for i in range(N)],
        "Age": [str(20 + i % 50) for i in range(N)],
        "dose": [f"{0.31 + i * 0.0013:.4f}" for i in range(N)],
        "huge": [str(9 * 10**15 + i % 40 * 7919) for i in range(N)],
        "income": [str(1_000_000_000 * (i % 90) + i) for i in range(N)],
        "born": [f"{1950 + i % 40}-0{1 + i % 9}-1{i % 9}" for i in range(N)],
        "band": [["20-29", "30-39", "40-49"][i % 3] for i in range(N)],
        "notes": [f"he came in on day {i} and felt a bit better" for i in range(N)],
        "nothing": [None] * N,
        "same": ["x"] * N,
        "town": [["Ulm", "Köln: Süd", "no", "?", "Rare"][min(i % 4, 3) if i else 4] for i in range(N)],
        "ill": ["yes" if i % 3 else "no" for i in range(N)],
    }
)


def draft_private_policy(table):
    return profile(table, private=True).to_yaml()


@pytest.mark.parametrize("table", [ODD, patients(300, seed=3)], ids=["odd", "patients"])
def test_a_private_draft_publishes_as_it_stands(table, tmp_path):
    policy = Policy.parse(draft_private_policy(table))
    assert isinstance(policy.method, DiffGenOptions)
    policy.check_columns(table.column_names)
    release = sf.publish(table, policy, seed=1)
    release.write(tmp_path / "out")
    assert sf.verify_folder(tmp_path / "out").ok


def test_every_declaration_that_can_be_proposed_is_there():
    schema = Policy.parse(draft_private_policy(ODD)).schema
    assert schema.names(Role.QUASI_IDENTIFIER) == ("Age", "dose", "income", "born", "band", "same", "town")
    assert (schema["Age"].bounds, schema["Age"].step) == ((0, 110), 1)
    assert (schema["dose"].bounds, schema["dose"].step) == ((0.3, 0.48), 0.001)
    assert schema["band"].values == ("20-29", "30-39", "40-49")
    assert schema["town"].missing_values == ("?",)
    assert schema["ill"].values == ("no", "yes")
    assert {name: schema[name].role for name in ("id", "notes", "nothing", "huge")} == {
        "id": Role.IDENTIFIER,
        "notes": Role.DROP,
        "nothing": Role.DROP,
        "huge": Role.DROP,
    }


def test_what_was_read_from_the_table_is_marked_and_nothing_else():
    text = re.sub(r"\n  # (?!REPLACE)", " ", draft_private_policy(ODD))  # a comment on one line
    marked = set(re.findall(rf"  # {MARK}: .*\n  (\w+):", text))
    assert marked == {"dose", "income", "born", "band", "same", "town", "ill"}


def test_no_bound_is_the_day_of_a_person_and_no_value_is_that_of_few():
    policy = Policy.parse(draft_private_policy(ODD)).as_dict()["attributes"]
    assert policy["born"]["bounds"] == ["1950-01-01", "1989-12-31"]
    assert "Rare" not in draft_private_policy(ODD)
    assert policy["town"]["values"] == ["Köln: Süd", "Ulm", "no"]
    words = " ".join(draft_private_policy(ODD).replace("#", "").split())
    assert "values (without 1 value of fewer than 5 rows, which become missing)" in words


def test_values_are_declared_as_cells_spell_them():
    """Cells of files with a blank after each comma begin with one, and a value without it would have no row."""
    rows = pa.table(
        {"work": [" Private", " State"] * 40, "income": [" <=50K", " <=50K", " >50K", " >50K"] * 20}
    )
    attributes = Policy.parse(draft_private_policy(rows)).schema
    assert attributes["work"].values == (" Private", " State")
    assert attributes["income"].values == (" <=50K", " >50K")


def test_a_column_of_very_many_values_asks_for_a_hierarchy():
    n = 1100 * 5
    table = pa.table(
        {
            "job": [f"job {i % 1100}" for i in range(n)],
            "sex": ["m", "f"] * (n // 2),
            "ill": ["y", "n", "n", "y"] * (n // 4),
        }
    )
    text = draft_private_policy(table)
    assert Policy.parse(text).schema["job"].role is Role.DROP
    assert "declare a hierarchy of them" in " ".join(text.replace("#", "").split())


@pytest.mark.parametrize(
    "columns", [{"age": list(range(40))}, {"ill": ["y", "n"] * 20}, {"a": [1.5] * 9, "b": [2.5] * 9}]
)
def test_a_table_without_a_class_is_refused_in_a_sentence(columns):
    with pytest.raises(InputError, match=r"^No column of the table can be the class of a private release"):
        draft_private_policy(pa.table(columns))


def test_the_command_drafts_it(sfumato, tmp_path):
    write_table(ODD, tmp_path / "t.csv")
    done = sfumato("profile", tmp_path / "t.csv", "--private", "--out", tmp_path / "private.yaml")
    assert (done.code, "Read it, then: sfumato publish" in done.err + done.out) == (0, True)
    assert Policy.read(tmp_path / "private.yaml") == Policy.parse(draft_private_policy(tmp_path / "t.csv"))
    assert sfumato("profile", tmp_path / "t.csv").out != (tmp_path / "private.yaml").read_text()
