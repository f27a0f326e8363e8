"""Runs of Mondrian on any engine, and the groups that they find, so that those of two engines can be compared."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from blocks import read_by
from growing import UncheckedPolicy
from mondrian_cases import Case, boxes_of, members_of

from sfumato.engines.disk import DiskEngine
from sfumato.engines.engine import Resources
from sfumato.engines.memory import MemoryEngine
from sfumato.engines.protocol import Engine, Room
from sfumato.engines.reservoir import seed_of_part
from sfumato.engines.scan import Intake
from sfumato.engines.start import HERE, scan_table
from sfumato.methods.groups import find_chunks
from sfumato.methods.mondrian.sample import SAMPLE_SEED, choose_sample_size
from sfumato.methods.mondrian.tree_run import TreeRun
from sfumato.policy.document import Policy
from sfumato.policy.options.mondrian import ROTHKO_S, MondrianOptions
from sfumato.policy.schema import Attribute, Role, Schema
from sfumato.policy.suppress import Suppress
from sfumato.randomness import seeded
from sfumato.table.opening import open_table
from sfumato.table.source import Source
from sfumato.table.spill import Spill

Groups = list[tuple[Any, list[int]]]


def ordered(found: Iterable[tuple[Any, Iterable[int]]]) -> Groups:
    """Groups as (box, row numbers), in the order of their rows."""
    return sorted(((box, sorted(members)) for box, members in found), key=lambda group: group[1])


def sampled(case: Case, **options: Any) -> Case:
    """The same case by Rothko-S: half of the rows decide first."""
    return replace(case, options=replace(case.options, scale=ROTHKO_S, **{"sample": 0.5, **options}))


def with_numbers(case: Case, suppress: Suppress | None = None) -> tuple[pa.Table, Policy]:
    """The table and policy of a case, with the number of each row as a column that is published.

    As many rows as ``suppress`` says may be left out.
    """
    table, quasi = case.table(), case.schema()
    table = table.append_column("row", pa.array(np.arange(table.num_rows)))
    schema = Schema((*quasi, Attribute("row", Role.OTHER)))
    policy = UncheckedPolicy(schema, tuple(case.requirements), tuple(case.workload), case.options)
    return table, replace(policy, suppress=suppress)


def scan(source: Source, policy: Policy, room: Room, chosen: Resources = HERE) -> Intake:
    """The scanned table; a sample of it is drawn if the policy asks for one, and then rows are numbered."""
    options = policy.options_for(MondrianOptions)
    size = choose_sample_size(source.n_rows, options, room.rows) if options.scale == ROTHKO_S else 0
    return scan_table(source, policy, chosen, sample=size, seed=seed_of_part(SAMPLE_SEED, 0))


def grown_whole(case: Case) -> Groups:
    """The groups of growth in memory, depth first."""
    found = case.partition()
    return ordered(zip(boxes_of(found), members_of(found), strict=True))


def grown_by_run(table: Intake, policy: Policy, engine: Engine) -> Groups:
    """The groups that a run finds on an engine; rows are numbered by their payload, or else by the engine."""
    run = TreeRun(engine, table, policy, random=seeded(1))
    found: dict[Any, list[int]] = {}
    for chunk in find_chunks(run, engine):
        names = None if chunk.payload is None else chunk.payload["row"].to_numpy()
        for box, members in zip(boxes_of(chunk.groups), members_of(chunk.groups), strict=True):
            numbers = list(members) if names is None else names[list(members)].tolist()
            found.setdefault(box, []).extend(numbers)  # a group that does not fit comes in parts
    return ordered(found.items())


def grown_in_memory(case: Case, engine: MemoryEngine, suppress: Suppress | None = None) -> Groups:
    """The groups that a run finds on an engine that has the rows at hand."""
    table, policy = with_numbers(case, suppress)
    return grown_by_run(scan(open_table(table), policy, engine.room), policy, engine)


def grown_here(table: pa.Table, policy: Policy, room: Room | None = None) -> Groups:
    """The groups of a table in memory; from counts where there is little ``room``."""
    engine = MemoryEngine(room, threads=1)
    return grown_by_run(scan(open_table(table), policy, engine.room), policy, engine)


def grown_on_disk(table: pa.Table, policy: Policy, room: Room) -> Groups:
    """The groups of a table that is read seven rows at a time and lies on disk."""
    with pytest.MonkeyPatch.context() as patch, Spill() as spill:
        read_by(patch, 7)
        encoded = scan(open_table(table), policy, room, Resources(spill=spill, memory=1 << 24))
        engine = DiskEngine(spill, encoded.layout, room, writer_bytes=1 << 12, threads=1)
        return grown_by_run(encoded, policy, engine)
