"""Boxes that were chosen row by row, as models learn from them: risk-utility has no recoding.

The rows to learn from are generalized by the policy, each against the side table that it names, or else against all of
them. Held-out rows are generalized anew, against the same table: a row that it lacks counts itself, as in ``apply``.
Numbers and dates have the hierarchies that a release of both parts would have.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.encoding.cells import cells_by_value, values_of
from sfumato.encoding.domain import TreeDomain
from sfumato.evaluation import points
from sfumato.evaluation.loss import ENTROPY_LOSS, NCP, of_columns, share_of, sum_of_logs
from sfumato.evaluation.points import RowBoxes
from sfumato.evaluation.result import RISKS
from sfumato.methods.risk_utility.publish import leaf_ends
from sfumato.methods.risk_utility.release import figures_of
from sfumato.methods.risk_utility.together import OwnBoxes, generalize_tables
from sfumato.policy.document import Policy
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.schema import Attribute, Kind, Schema
from sfumato.recoding.axis import OrderedAxis, TreeAxis
from sfumato.recoding.loss import WholeTree
from sfumato.table.combinations import number_combinations
from sfumato.table.source import Source

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class GeneralizedParts:
    """The rows to learn from and the held-out ones, generalized one by one; ``boxes`` are of both, in this order."""

    train: OwnBoxes
    boxes: RowBoxes
    columns: Mapping[str, points.Column]

    @classmethod
    def of(cls, train: Source, test: Source, policy: Policy, *, threads: int | None) -> GeneralizedParts:
        parts = generalize_tables([train, test], policy, threads=threads)
        schema = parts[0].found.schema
        trees = _whole_trees([train, test], schema)
        names = [attribute.name for attribute in schema.quasi_identifiers]
        return cls(parts[0], _boxes(parts, trees), points.read([train], schema, names))

    def group_of_row(self) -> Ints:
        """Which rows to learn from share a box."""
        return number_combinations(list(self.train.node.T)).number

    def measures(self) -> dict[str, float]:
        """Risk and utility of the rows to learn from, before and after, and what their cells lose."""
        figures = figures_of(self.train.found.problem, self.train.optimum, None)
        risks = [figures[when][what] for what in ("mean", "greatest") for when in ("raw risk", "risk")]
        return {
            **dict(zip(RISKS, risks, strict=True)),
            "mean share of utility": figures["share"]["mean"],
            "least share of utility": figures["share"]["least"],
            **self._ncp(),
            **self._entropy_loss(),
        }

    def _ncp(self) -> dict[str, float]:
        """Of a category the leaves that a cell covers, of a number the width of its range, over those of the column."""
        n = len(self.train.node)
        lost = {}
        for a, axis in enumerate(self.boxes.axes):
            first, last = self.boxes.first[:n, a], self.boxes.last[:n, a]
            if isinstance(axis, TreeAxis):
                covered = last - first + 1
                share = np.where(covered > 1, covered / axis.nodes.n_leaves, 0.0)
            else:
                span = axis.high - axis.low
                share = np.nan_to_num((last - first) / span) if span > 0 else np.zeros(n)
            lost[axis.attribute.name] = float(share.mean())
        return of_columns(NCP, math.fsum(lost.values()) / len(lost), lost)

    def _entropy_loss(self) -> dict[str, float]:
        """The bits that cells leave open: log2 of the rows below a node, over those with the very value of the row."""
        lost, most = {}, {}
        for a, domain in enumerate(self.train.found.domains):
            tree, name = domain.hierarchy, domain.attribute.name
            total = np.concatenate(
                [[0], np.cumsum(np.bincount(self.train.code[:, a], minlength=tree.n_leaves))]
            )
            node = self.train.node[:, a]
            covered = total[tree.high[node]] - total[tree.low[node]]
            _, count = np.unique(self.columns[name].cells, return_counts=True)
            known, ones = sum_of_logs(count, count), np.ones_like(node)
            lost[name] = sum_of_logs(ones, covered) - known
            most[name] = sum_of_logs(ones, np.full_like(node, len(node))) - known
        columns = {name: share_of(lost[name], most[name]) for name in lost}
        whole = share_of(math.fsum(lost.values()), math.fsum(most.values()))
        return of_columns(ENTROPY_LOSS, whole, columns)


def _whole_trees(sources: Sequence[Source], schema: Schema) -> dict[str, WholeTree]:
    """The hierarchies of categories, with the values of all tables, and a leaf for missing if any is."""
    trees = {}
    for attribute in schema.quasi_identifiers:
        if not _has_ends(attribute):
            cells = [cells_by_value(source.column(attribute.name), attribute) for source in sources]
            values = sorted({value for own in cells for value in values_of(own, attribute)})
            tree = attribute.build_hierarchy(values)
            has_missing = any(own.null_count for own in cells)
            trees[attribute.name] = WholeTree(tree.with_missing() if has_missing else tree)
    return trees


def _has_ends(attribute: Attribute) -> bool:
    """Do the nodes of a column have a first and a last value? Else they are sets of leaves. The schema is closed."""
    return attribute.kind is not Kind.CATEGORY and attribute.declaration.is_rule


def _boxes(parts: Sequence[OwnBoxes], trees: Mapping[str, WholeTree]) -> RowBoxes:
    domains = parts[0].found.domains
    axes: list[OrderedAxis | TreeAxis] = []
    ends = []
    for a, domain in enumerate(domains):
        name = domain.attribute.name
        nodes = [part.node[:, a] for part in parts]
        own = [part.found.domains[a] for part in parts]
        if name in trees:
            axes.append(TreeAxis(domain.attribute, trees[name].hierarchy, has_missing=True))
            ends.append([_leaves(trees[name], each, node) for each, node in zip(own, nodes, strict=True)])
        else:
            axes.append(_ordered_axis(domain))
            ends.append([_values(each, node) for each, node in zip(own, nodes, strict=True)])
    first, last = (
        np.stack([np.concatenate([part[side] for part in column]) for column in ends], axis=1)
        for side in (0, 1)
    )
    return RowBoxes(tuple(axes), {name: tree.hierarchy for name, tree in trees.items()}, first, last)


def _leaves(whole: WholeTree, domain: TreeDomain, node: Ints) -> tuple[Floats, Floats]:
    """The codes of the first and the last leaf below nodes, in the whole hierarchy."""
    kept, new = domain.hierarchy.prune(np.unique(node))
    first, end = whole.leaves_of(kept, new[node].astype(np.float64))
    return first.astype(np.float64), end.astype(np.float64) - 1


def _values(domain: TreeDomain, node: Ints) -> tuple[Floats, Floats]:
    """The first and the last value of nodes; NaN where missing is all that they cover."""
    tree: Hierarchy = domain.hierarchy
    lows, highs = (np.asarray(ends, dtype=np.float64) for ends in leaf_ends(domain))
    n = len(lows)
    is_missing = (tree.low >= n)[node]
    first, last = lows[np.minimum(tree.low, n - 1)][node], highs[np.minimum(tree.high, n) - 1][node]
    return np.where(is_missing, np.nan, first), np.where(is_missing, np.nan, last)


def _ordered_axis(domain: TreeDomain) -> OrderedAxis:
    lows, highs = leaf_ends(domain)
    grid = domain.attribute.step or (1.0 if lows.dtype.kind == "i" else None)
    return OrderedAxis(domain.attribute, float(lows[0]), float(highs[-1]), grid, has_missing=True)


__all__ = ["GeneralizedParts"]
