"""Groups that are compared with the published rows where some are left out: rounds undo what a naive twin undoes.

A group that is close to the whole table need not be close to what is published.
"""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from typing import Any

import mondrian_cases as published
import pyarrow as pa
import pytest
from blocks import read_by
from mondrian_cases import Case, cut
from naive_mondrian import Mondrian, satisfies
from naive_people import MondrianOfPeople
from tree_runs import Groups, grown_by_run, ordered, scan, with_numbers

import sfumato as sf
from sfumato.engines.disk import DiskEngine
from sfumato.engines.engine import Resources
from sfumato.engines.memory import MemoryEngine
from sfumato.engines.protocol import Engine, Room
from sfumato.methods.groups import find_chunks
from sfumato.methods.mondrian import tree_run
from sfumato.methods.mondrian.own_reference import undo_splits
from sfumato.methods.mondrian.taken_back import Undone
from sfumato.methods.mondrian.tree_run import TreeRun
from sfumato.policy.document import Policy
from sfumato.policy.options.mondrian import MondrianOptions
from sfumato.policy.requirements import KAnonymity, TCloseness
from sfumato.policy.schema import Attribute, Role, Schema
from sfumato.policy.suppress import Suppress
from sfumato.policy.unit import Unit
from sfumato.randomness import seeded
from sfumato.table.opening import open_table
from sfumato.table.spill import Spill

N_TABLES = 60
FEW = Room(1 << 30, 6, 200)
"""More than six rows make a node whose split is chosen from counts."""
LIST_ROOM = Room(1 << 30, 100, 200, row_bytes=1 << 20)
WHO = "who"


def grown(table: Any, policy: Policy, engine: Engine) -> tuple[Groups, Undone]:
    """The groups of a run after all rounds, and what these undid."""

    def start(**options: Any) -> tuple[TreeRun, Engine]:
        return TreeRun(engine, table, policy, random=seeded(1), **options), engine

    undone = undo_splits(start, table, policy)
    found: dict[Any, list[int]] = {}
    run, _ = start(undone=undone)
    for chunk in find_chunks(run, engine):
        boxes = zip(published.boxes_of(chunk.groups), published.members_of(chunk.groups), strict=True)
        names = None if chunk.payload is None else chunk.payload["row"].to_numpy()
        for box, members in boxes:
            numbers = list(members) if names is None else names[list(members)].tolist()
            found.setdefault(box, []).extend(numbers)
    return ordered(found.items()), undone


def grown_here(table: pa.Table, policy: Policy, room: Room | None = None) -> tuple[Groups, Undone]:
    engine = MemoryEngine(room, threads=1)
    return grown(scan(open_table(table), policy, engine.room), policy, engine)


def grown_on_disk(table: pa.Table, policy: Policy, room: Room) -> tuple[Groups, Undone]:
    with pytest.MonkeyPatch.context() as patch, Spill() as spill:
        read_by(patch, 7)
        encoded = scan(open_table(table), policy, room, Resources(spill=spill, memory=1 << 24))
        engine = DiskEngine(spill, encoded.layout, room, writer_bytes=1 << 12, threads=1)
        return grown(encoded, policy, engine)


def twin_of(case: Case, people: list[int] | None) -> Mondrian:
    given_to_all: Any = (case.rows, [quasi.axis for quasi in case.quasi], case.requirements, case.workload)
    options: Any = {
        "cut": cut, "split_only": case.options.split_only, "standardize": case.options.standardize,
        "median_below_gain": case.options.median_below_gain,
    }  # fmt: skip
    if people is None:
        return Mondrian(*given_to_all, **options)
    return MondrianOfPeople(people, *given_to_all, **options)


def skewed_case(number: int) -> Case:
    """A table with rare values whose people are ill more often, so that without them the whole table is another one."""
    chance = random.Random(number)
    rows: list[dict[str, Any]] = []
    for value in "ab" + "c" * (chance.random() < 0.3):
        for _ in range(chance.choice([8, 12, 24])):
            rows.append({"q2": value, "ill": chance.random() < 0.15 + 0.3 * (value == "b")})
    rows += [{"q2": value, "ill": chance.random() < 0.8} for value in "defghijk"[: chance.randrange(3, 9)]]
    chance.shuffle(rows)
    for row in rows:
        row.update(dict.fromkeys(("job", "class", "colour", "since"), None), hours=1, wage=1.0, height=1.5)
        row.update(q0=chance.randrange(6), disease="flu" if row["ill"] else chance.choice("xy"))
        row.update(salary=chance.randrange(5) + 3 * row.pop("ill"))
    asked = TCloseness(chance.choice([0.15, 0.2, 0.25, 0.3]), of="disease")
    if number % 3 == 0:
        asked = TCloseness(chance.choice([0.1, 0.15, 0.2]), of="salary", distance="ordered")
    quasi = [published.close_integers("q0"), published.flat("q2")][number % 2 :]
    return Case(rows, quasi, [KAnonymity(3), asked], [], MondrianOptions(variant="paper"))


@pytest.mark.parametrize("counts_people", [False, True])
def test_the_rounds_undo_what_the_naive_twin_undoes(counts_people):
    n_undone = 0
    for number in range(N_TABLES):
        case, people = skewed_case(number), None
        table, policy = with_numbers(case, Suppress(Fraction(1, 2)))
        everyone = range(len(case.rows))
        if counts_people:
            people = [random.Random(f"{number} {i}").randrange(len(case.rows) * 2 // 3) for i in everyone]
            table = table.append_column(WHO, pa.array([f"p{person}" for person in people]))
            schema = Schema((*policy.schema, Attribute(WHO, Role.IDENTIFIER)))
            policy = replace(policy, schema=schema, unit=Unit(WHO))
        twin = twin_of(case, people)
        twin.share = Fraction(1, 2)
        root = twin.grow()
        n_undone += twin.undo_far_groups(root) > 0
        expected = ordered((tuple(leaf.box), leaf.members) for leaf in root.leaves())
        for room in (None, FEW):
            assert grown_here(table, policy, room)[0] == expected, number
    assert n_undone > N_TABLES // 20


def listed_policy(case: Case, refine: str, *, counts_people: bool) -> tuple[pa.Table, dict[str, Any]]:
    """The table and the policy of a case that is split by loss."""
    closest = case.requirements[1].as_policy()
    kinds = {"q0": {"type": "number", "bounds": [0, 9]}, "q2": {}}
    attributes: dict[str, Any] = {
        quasi.axis.name: {"role": "quasi-identifier", **kinds[quasi.axis.name]} for quasi in case.quasi
    }
    attributes |= {"disease": {"role": "sensitive"}, "salary": {"role": "sensitive", "type": "number"}}
    attributes |= {
        "row": {"role": "other", "type": "number", "passes": "unique"},
        WHO: {"role": "identifier"},
    }
    names = [name for name in attributes if name not in ("row", WHO)]
    n_rows = len(case.rows)
    table = pa.table({name: [row[name] for row in case.rows] for name in names}).append_column(
        "row", pa.array(range(n_rows))
    )
    people = [random.Random(f"{closest} {i}").randrange(n_rows * 2 // 3) for i in range(n_rows)]
    table = table.append_column(WHO, pa.array([f"p{person}" for person in people]))
    policy = {
        "attributes": attributes,
        "require": [{"k-anonymity": 3}, closest],
        "method": {"mondrian": {"criterion": "loss", "refine": refine}},
        "unit": WHO if counts_people else "row",
        "suppress": {"at-most": "50%"},
    }
    return table, policy


@pytest.mark.parametrize("counts_people", [False, True])
@pytest.mark.parametrize("refine", ["none", "list"])
def test_every_engine_undoes_the_same_and_every_release_is_close_to_itself(
    refine, counts_people, monkeypatch, tmp_path
):
    """Lists are those of blocks of 15 rows; ``publish`` raises if a group is too far from what it publishes."""
    monkeypatch.setattr(tree_run, "BLOCK_ROWS", 15)
    n_undone = 0
    for number in range(0, N_TABLES, 2):
        table, plain = listed_policy(skewed_case(number), refine, counts_people=counts_people)
        policy = Policy.from_dict(plain)
        room = LIST_ROOM if refine == "list" else FEW
        groups, undone = grown_here(table, policy)
        n_undone += bool(undone.top or undone.below)
        assert grown_here(table, policy, room)[0] == groups, number
        if number % 6 == 0:
            assert grown_on_disk(table, policy, room)[0] == groups, number
            release = sf.publish(table, policy)
            release.write(tmp_path / str(number))
            assert not sf.verify_folder(tmp_path / str(number), table=table).failures
    assert n_undone > 0


@pytest.mark.parametrize("number", [43, 132])
def test_cells_of_a_list_are_taken_back(number):
    case = skewed_case(number)
    table, plain = listed_policy(case, "list", counts_people=False)
    policy = Policy.from_dict(plain)
    groups, undone = grown_here(table, policy)
    (below,) = undone.below.values()
    assert below.cells > 0
    before = run_once(table, policy)
    assert len(before) > len(groups)
    assert is_close_to_itself(case, groups)
    assert not is_close_to_itself(case, before)


def run_once(table: pa.Table, policy: Policy) -> Groups:
    """The groups where nothing is undone."""
    engine = MemoryEngine(threads=1)
    return grown_by_run(scan(open_table(table), policy, engine.room), policy, engine)


def is_close_to_itself(case: Case, groups: Groups) -> bool:
    """Do all groups hold beside the rows of all groups?"""
    published_rows = [case.rows[i] for _, rows in groups for i in rows]
    return all(
        satisfies([case.rows[i] for i in rows], item, published_rows)
        for _, rows in groups
        for item in case.requirements
    )
