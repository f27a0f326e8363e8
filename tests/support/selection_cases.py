"""Random selections over the tables of ``mondrian_cases``, as the kernels and as the naive twin see them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import naive_mondrian as naive
import numpy as np
from growing import Prepared
from hypothesis import strategies as st
from mondrian_cases import Case, reachable_cases

from sfumato.encoding.domain import OrderedDomain
from sfumato.methods.mondrian.kernels.problem import Queries
from sfumato.recoding.recoder import Partition
from sfumato.recoding.splits import RecodingPlan
from sfumato.recoding.tree import recoding_of


@dataclass(frozen=True)
class Selecting:
    """A table, what is asked of it, and some selections as the kernels and as the twin see them."""

    case: Case
    ranges: list[list[tuple[int, int]]]  # of codes, per query and attribute
    weights: list[int]

    def problem(self, threads: int = 1) -> Prepared:
        return self.case.problem(threads)

    def queries(self) -> Queries:
        ranges = np.array(self.ranges, dtype=np.int64).reshape(len(self.ranges), len(self.case.quasi), 2)
        return Queries(ranges[:, :, 0].copy(), ranges[:, :, 1].copy(), np.array(self.weights, dtype=np.int64))

    def partition(self, threads: int = 1) -> Partition:
        problem = self.problem(threads)
        nodes = problem.engine.grow(replace(problem, cells=None, queries=self.queries()))
        covers = problem.engine.covers(nodes, problem.axes)
        leaf = np.flatnonzero(nodes.axis < 0)
        leaf = leaf[np.argsort(nodes.start[leaf])]
        return Partition(
            recoding_of(nodes, covers, RecodingPlan(problem.domains, problem.axes.root)),
            leaf,
            (nodes.end - nodes.start)[leaf],
            problem.engine.row_numbers(),
        )

    def twin_queries(self) -> list[naive.Query]:
        domains = self.problem().domains
        return [
            naive.Query(
                tuple(side(domain, *ends) for domain, ends in zip(domains, query, strict=True)),
                Fraction(weight),
            )
            for query, weight in zip(self.ranges, self.weights, strict=True)
        ]

    def twin(self) -> naive.Mondrian:
        twin = self.case.twin()
        twin.queries = self.twin_queries()
        return twin


def side(domain: Any, low: int, high: int) -> Any:
    """A range of codes as values, or as leaves."""
    if isinstance(domain, OrderedDomain):

        def value(code: int) -> float:
            return math.inf if code >= domain.n_codes else float(domain.value(code))

        return value(low), value(high)
    tree = domain.hierarchy
    leaf = {
        int(tree.low[node]): node for node in range(tree.n_nodes) if tree.high[node] - tree.low[node] == 1
    }
    leaf |= {
        int(tree.low[node]): node for node in range(tree.n_nodes) if node not in set(tree.parent.tolist())
    }
    return frozenset(tree.path(leaf[code]) for code in range(low, min(high, tree.n_leaves - 1) + 1))


@st.composite
def selecting(draw: Any, **options: Any) -> Selecting:
    case = draw(reachable_cases(**options))
    domains = Selecting(case, [], []).problem().domains

    def ends(domain: Any) -> tuple[int, int]:
        last = domain.n_codes if isinstance(domain, OrderedDomain) else domain.n_codes - 1
        if draw(st.booleans()):
            return 0, last
        return tuple(sorted((draw(st.integers(0, last)), draw(st.integers(0, last)))))

    n = draw(st.integers(1, 4))
    ranges = [[ends(domain) for domain in domains] for _ in range(n)]
    return Selecting(case, ranges, draw(st.lists(st.integers(1, 5), min_size=n, max_size=n)))
