"""What every method has in common: the interface, the table of methods, and what they are handed."""

from __future__ import annotations

import inspect
import subprocess
import sys
from dataclasses import FrozenInstanceError
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

from sfumato.errors import InputError, InternalError
from sfumato.methods import METHODS, partition
from sfumato.methods.protocol import Draft, Extras, Grouping, Method, Seed, charge_nobody, refuse_side_table
from sfumato.policy.document import Policy
from sfumato.policy.options import OPTIONS
from sfumato.policy.requirements import KAnonymity
from sfumato.table.opening import open_table

GROUPING = {"mondrian", "tds"}
TABLE = pa.table({"age": [20, 21, 40, 41], "class": ["a", "b", "a", "b"]})
AGE = "{role: quasi-identifier, type: number, bounds: [0, 110], step: 1}"
ATTRIBUTES = f"{{age: {AGE}, class: {{role: other, values: [a, b]}}}}"


def policy_of(method: str) -> Policy:
    return Policy.parse(
        f"{{attributes: {ATTRIBUTES}, require: [k-anonymity: 2], workload: [classify: class], method: {method}}}"
    )


def parameters(function: object) -> list[tuple[str, object, object]]:
    assert callable(function)
    own = inspect.signature(function).parameters.values()
    return [(each.name, each.kind, each.default) for each in own if each.name != "self"]


def test_every_method_that_a_policy_can_name_is_there():
    assert set(METHODS) == set(OPTIONS)
    assert len(METHODS) == len(OPTIONS)
    with pytest.raises(KeyError):
        METHODS["median"]


@pytest.mark.parametrize("name", OPTIONS)
def test_every_method_has_the_interface(name):
    method = METHODS[name]
    assert isinstance(method.only_in_memory, bool)
    assert parameters(method.draft) == parameters(Method.draft)
    assert parameters(method.check) == parameters(Method.check)
    assert isinstance(method, Grouping) == (name in GROUPING)


@pytest.mark.parametrize("name", sorted(GROUPING))
def test_a_method_that_makes_groups_divides_the_rows_into_groups_that_satisfy_the_requirement(name):
    method = METHODS[name]
    assert isinstance(method, Grouping)
    assert parameters(method.partition) == parameters(Grouping.partition)
    groups = partition(open_table(TABLE), policy_of(name), threads=1)
    assert sorted(groups.row_numbers.tolist()) == [0, 1, 2, 3]
    assert groups.size.sum() == 4
    assert (groups.size >= KAnonymity(2).k).all()


def test_the_groups_of_a_method_that_makes_none_are_an_error_of_ours():
    policy = Policy.parse(
        f"{{attributes: {ATTRIBUTES}, workload: [classify: class], method: {{diffgen: {{epsilon: 1}}}}}}"
    )
    with pytest.raises(InternalError, match="The method diffgen makes no groups"):
        partition(open_table(TABLE), policy)


def test_methods_are_imported_when_they_are_asked_for():
    program = """
import sys
from sfumato.methods import METHODS
list(METHODS)
print("sfumato.methods.mondrian.method" in sys.modules)
METHODS["mondrian"]
print("sfumato.methods.mondrian.method" in sys.modules, "sfumato.methods.risk_utility.method" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    assert done.stdout == "False\nTrue False\n"


@pytest.mark.parametrize("name", sorted(set(OPTIONS) - {"risk-utility"}))
def test_a_method_without_use_for_a_side_table_refuses_it_before_the_table_is_opened(name):
    policy, unopened = policy_of("mondrian"), object()
    METHODS[name].check(unopened, policy, Extras())
    with pytest.raises(InputError, match="A side table is for the method risk-utility"):
        METHODS[name].check(unopened, policy, Extras(side_table=TABLE))


@pytest.mark.parametrize("side_table", ["", [], 0, pa.table({}), "voters.csv"])
def test_even_an_empty_side_table_is_refused(side_table):
    refuse_side_table(Extras())
    with pytest.raises(InputError):
        refuse_side_table(Extras(side_table=side_table))


def test_a_seed_repeats_and_no_seed_does_not():
    assert Seed(7).generator().random(3).tolist() == Seed(7).generator().random(3).tolist()
    assert Seed(7).generator().random() != Seed(8).generator().random()
    assert Seed(0).generator().random() == Seed(0).generator().random()  # 0 is a seed, too
    assert Seed().generator().random() != Seed().generator().random()


def test_without_a_ledger_nobody_is_charged():
    assert Extras().charge is charge_nobody
    charge: Any = charge_nobody
    assert charge(Fraction(1)) is None
    assert charge(Fraction(1), Fraction(1, 10**6)) is None


def test_a_draft_promises_nothing_that_it_was_not_given():
    policy = policy_of("mondrian")
    draft, other = Draft(TABLE, policy), Draft(TABLE, policy)
    assert (draft.recoding, draft.claims, draft.privacy, draft.reason, draft.missing) == (None,) * 4 + ((),)
    assert draft.figures == {}
    assert draft.figures is not other.figures
    with pytest.raises(FrozenInstanceError):
        draft.rows = TABLE.slice(1)  # type: ignore[misc]
