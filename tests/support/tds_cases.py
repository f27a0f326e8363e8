"""Random small tables for top-down specialization, and what is noted of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import naive_tds as naive
import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from sfumato.engines.memory import MemoryEngine
from sfumato.engines.protocol import Engine
from sfumato.engines.start import scan_table
from sfumato.methods.groups import hold_groups
from sfumato.methods.specialization.best_score import BestScore
from sfumato.methods.specialization.grid_run import GridRun
from sfumato.methods.specialization.group_rule import GroupRule, HeldPeople
from sfumato.methods.specialization.groups import CountedGroups, HeldGroups
from sfumato.methods.specialization.loop import Candidate
from sfumato.methods.specialization.tds import partition
from sfumato.policy.document import Policy
from sfumato.policy.options.tds import TdsOptions
from sfumato.policy.output import Output
from sfumato.policy.requirements import KAnonymity
from sfumato.policy.schema import Attribute, Kind, Role, Schema
from sfumato.policy.suppress import Suppress
from sfumato.policy.unit import Unit
from sfumato.policy.workload import Classify
from sfumato.randomness import seeded
from sfumato.recoding.axis import OrderedAxis
from sfumato.recoding.cuts import Cuts
from sfumato.recoding.recoder import Partition
from sfumato.table.opening import open_table


@dataclass(frozen=True)
class Case:
    rows: list[dict[str, Any]]
    attributes: list[Attribute]
    roots: Mapping[str, naive.Piece]
    k: int
    workload: list[Classify]
    output: Output = Output.LABELS
    people: list[str] | None = None
    """Whose each row is, if people count."""
    share: Fraction | None = None
    """How many rows may be left out."""

    @property
    def policy(self) -> Policy:
        others = [Attribute("class", Role.OTHER), Attribute("job", Role.SENSITIVE)]
        if self.people is not None:
            others.append(Attribute("who", Role.IDENTIFIER))
        return Policy(
            Schema((*self.attributes, *others)),
            (KAnonymity(self.k),),
            tuple(self.workload),
            TdsOptions(),
            self.output,
            unit=None if self.people is None else Unit("who"),
            suppress=None if self.share is None else Suppress(self.share),
        )

    def table(self, rows: list[dict[str, Any]] | None = None) -> pa.Table:
        rows = self.rows if rows is None else rows
        types = {
            attribute.name: pa.float64() if attribute.kind is Kind.NUMBER else pa.string()
            for attribute in self.policy.schema
        }
        return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in types.items()})

    def partition(self, rows: list[dict[str, Any]] | None = None) -> Partition:
        return partition(open_table(self.table(rows)), self.policy)

    def twin(self) -> naive.TopDown:
        targets = [
            (names, task.weight)
            for task in self.workload
            for names in ([task.targets] if task.joint else [(name,) for name in task.targets])
        ]
        return naive.TopDown(
            self.rows, self.roots, self.k, targets, people=self.people, share=self.share or Fraction(0)
        )

    def grow(self, *, keeps_all: bool = False) -> Partition:
        """The groups of one run, which is compared with no other."""
        table, engine = scan_table(open_table(self.table()), self.policy), MemoryEngine()
        return hold_groups(GridRun(engine, table, self.policy, random=seeded(1), keeps_all=keeps_all), engine)


SHAPES = st.recursive(st.none(), lambda below: st.lists(below, min_size=1, max_size=4), max_leaves=9).filter(
    lambda tree: tree is not None
)


def nested(shape: Any, label: str, path: tuple[str, ...], leaves: list[tuple[str, ...]]) -> Any:
    """The shape as a policy spells a tree; the paths of its leaves are added to ``leaves`` from left to right."""
    path = (*path, label)
    if shape is None:
        leaves.append(path)
        return None
    return {f"{label}{i}": nested(below, f"{label}{i}", path, leaves) for i, below in enumerate(shape)}


@st.composite
def cases(draw: Any, *, max_rows: int = 24) -> Case:
    n_rows = draw(st.integers(1, max_rows))
    attributes, roots, columns = [], {}, {}
    for i in range(draw(st.integers(1, 3))):
        name = f"q{i}"
        kind = draw(st.sampled_from(["whole", "real", "tree", "flat"]))
        if kind in ("whole", "real"):
            cells: st.SearchStrategy[Any] = (
                st.integers(0, 9) if kind == "whole" else st.sampled_from([-1.5, 0.0, 0.1, 0.3, 7.25, 900.0])
            )
            attributes.append(Attribute(name, Role.QUASI_IDENTIFIER, Kind.NUMBER))
            leaves: list[tuple[Any, ...]] = []
        elif kind == "tree":
            leaves = []
            tree = nested(draw(SHAPES), "n", (), leaves)
            attributes.append(Attribute(name, Role.QUASI_IDENTIFIER, hierarchy={"tree": {"n": tree}}))
            cells = st.sampled_from([leaf[-1] for leaf in leaves])
        else:
            attributes.append(Attribute(name, Role.QUASI_IDENTIFIER))
            cells, leaves = st.sampled_from("abcd"), []
        if draw(st.booleans()):
            cells = st.one_of(cells, cells, st.none())
        columns[name] = draw(st.lists(cells, min_size=n_rows, max_size=n_rows))
        if kind == "flat":
            values = sorted({cell for cell in columns[name] if cell is not None})
            leaves = [("*", value) for value in values or ["*"]]  # a hierarchy has at least one leaf
        root = "n" if kind == "tree" else "*"
        missing = [(root, None)] if None in columns[name] else []
        roots[name] = (
            naive.Node((root,), (*leaves, *missing))
            if kind in ("tree", "flat")
            else naive.Interval(None, None)
        )
    for name, cells in (("class", st.sampled_from("xyz")), ("job", st.sampled_from("mn"))):
        columns[name] = draw(st.lists(st.one_of(cells, cells, st.none()), min_size=n_rows, max_size=n_rows))
    workload = draw(
        st.one_of(
            st.just([Classify("class")]),
            st.just([Classify(["class", "job"], joint=True)]),
            st.just([Classify("class", weight=0.3), Classify("job", weight=2)]),
            st.just([Classify(["class", "job"])]),
        )
    )
    rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    k = draw(st.integers(1, min(5, n_rows)))
    return Case(rows, attributes, roots, k, workload, draw(st.sampled_from(list(Output))))


@st.composite
def people_cases(draw: Any, *, max_rows: int = 24, leaves_rows_out: bool | None = None) -> Case:
    """Cases whose rows are of fewer people, or of which some may be left out, or both."""
    case = draw(cases(max_rows=max_rows))
    n = len(case.rows)
    leaves = draw(st.booleans()) if leaves_rows_out is None else leaves_rows_out
    share = (
        draw(st.sampled_from([Fraction(1, 20), Fraction(1, 5), Fraction(1, 2), Fraction(1)]))
        if leaves
        else None
    )
    if leaves and draw(st.booleans()):
        return replace(case, share=share)
    n_people = draw(st.integers(1, n))
    people = draw(st.lists(st.integers(0, n_people - 1), min_size=n, max_size=n))
    k = min(case.k, len({*people}))
    rows = [{**row, "who": f"p{who}"} for row, who in zip(case.rows, people, strict=True)]
    return replace(case, rows=rows, people=[row["who"] for row in rows], k=k, share=share)


def cuts_of(found: Partition) -> Cuts:
    """The recoding of a partition by top-down specialization: a cut for each attribute."""
    assert isinstance(found.recoding, Cuts)
    return found.recoding


def spelled(cuts: Cuts) -> list[Any]:
    """The cut of each attribute as thresholds, or as the paths of its nodes."""
    return [
        [float(x) for x in cuts.thresholds[a]]
        if isinstance(axis, OrderedAxis)
        else [axis.nodes.path(node) for node in axis.nodes.leaf_nodes]
        for a, axis in enumerate(cuts.axes)
    ]


def chooser_in_memory(table: pa.Table, policy: Policy) -> tuple[BestScore, Any, Any]:
    """The chooser over rows in memory, their codes axis by axis, and the domains."""
    encoded, engine = scan_table(open_table(table), policy), MemoryEngine()
    rows = engine.load(encoded)
    gains = GridRun(engine, encoded, policy, random=seeded(1))._gains(rows)
    codes = np.ascontiguousarray(rows.rows.T[: len(encoded.domains)])
    rule = GroupRule.of(policy, encoded.columns, keeps_all=False)
    people = None if rule.person is None else HeldPeople(rows.rows[:, rule.person], rule.n_people)
    groups = HeldGroups(codes, [domain.n_codes for domain in encoded.domains], rule, people=people)
    return BestScore(gains, groups, rule=rule), codes, encoded.domains


def chooser_in_passes(engine: Engine, rows: Any, policy: Policy) -> tuple[BestScore, CountedGroups]:
    """The chooser over rows that are counted in passes."""
    run = GridRun(engine, rows, policy, random=seeded(1))
    gains, rule = run._gains(rows), GroupRule.of(policy, rows.columns, keeps_all=False)
    groups = CountedGroups(engine, rows, gains, rows.domains, rule=rule, memory=run.memory)
    return BestScore(gains, groups, rule=rule), groups


def noting(chooser: BestScore, codes: Any) -> list[tuple[int, list[int]]]:
    """Where it will note what it takes: the attribute and the sizes of the parts."""
    taken: list[tuple[int, list[int]]] = []
    take = chooser.take

    def noted(number: int, candidate: Candidate) -> None:
        take(number, candidate)
        column = codes[candidate.piece.axis]
        sizes = [int(((column >= part.low) & (column < part.high)).sum()) for part in candidate.parts]
        taken.append((candidate.piece.axis, sizes))

    replaced: Any = chooser
    replaced.take = noted
    return taken
