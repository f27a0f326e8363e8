"""Random small tables for DiffGen, mechanisms that do as they are told and note what they are asked, and neighbours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from typing import Any

import naive_diffgen as naive
import numpy as np
from blocks import BlockRows

from sfumato.encoding.domain import Domain, OrderedDomain, TreeDomain
from sfumato.methods.specialization.diffgen import DrawnCuts, draw
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.options.diffgen import DiffGenOptions
from sfumato.policy.schema import Attribute, Kind, Role

VARIANTS = [("paper", "max"), ("paper", "infogain"), ("tuned", "max"), ("tuned", "gini"), ("tuned", "smooth")]


@dataclass(frozen=True)
class Case:
    rows: tuple[naive.Row, ...]
    attributes: tuple[naive.Attribute, ...]
    n_classes: int
    options: DiffGenOptions

    def draw(
        self, mechanisms: Any, *, rows: Sequence[naive.Row] | None = None, block: int = 65_536
    ) -> DrawnCuts:
        codes = np.array(self.rows if rows is None else rows, dtype=np.uint32)
        held = BlockRows(codes.reshape(-1, len(self.attributes) + 1), size=block)
        return draw(held, domains_of(self.attributes), self.n_classes, self.options, mechanisms)

    def neighbours(self, random: np.random.Generator, n: int) -> list[Case]:
        """Tables with one row more or one row less, drawn without repeating a row to leave out."""
        without = random.permutation(len(self.rows))[: n // 2].tolist()
        less = [self.rows[:i] + self.rows[i + 1 :] for i in without]
        more = [
            (*self.rows, row) for row in random_rows(random, n - len(less), self.attributes, self.n_classes)
        ]
        return [replace(self, rows=rows) for rows in less + more]

    def twin(self, pick: naive.Pick, *, score: str | None = None) -> naive.Run:
        options = self.options
        score = score or options.score
        run = naive.Run(
            self.rows,
            self.attributes,
            self.n_classes,
            options.epsilon,
            options.specializations,
            options.max_cells,
            pick,
        )
        if options.variant == "paper":
            return naive.paper(run, score)
        return naive.tuned(run, score)


@cache
def domains_of(attributes: tuple[naive.Attribute, ...]) -> tuple[Domain, ...]:
    return tuple(_domain(f"a{i}", attribute) for i, attribute in enumerate(attributes))


def _domain(name: str, attribute: naive.Attribute) -> Domain:
    if isinstance(attribute, naive.Number):  # code 0 is missing
        number = Attribute(name, Role.QUASI_IDENTIFIER, Kind.NUMBER)
        return OrderedDomain(number, 1, attribute.n_codes - 1, 1.0, True, attribute.n_codes, None, 0.0)
    category = Attribute(name, Role.QUASI_IDENTIFIER, Kind.CATEGORY)
    return TreeDomain(category, Hierarchy.from_tree({"any": _tree(attribute)}), False)


def _tree(node: naive.Tree) -> dict[str, Any]:
    return {
        f"leaf {child}" if isinstance(child, int) else f"node {naive.leaves(child)} {i}": (
            {} if isinstance(child, int) else _tree(child)
        )
        for i, child in enumerate(node)
    }


@dataclass
class Told:
    """Mechanisms that take the place that ``pick`` says, add no noise, and note everything."""

    pick: Callable[[list[int]], int]
    asked: list[tuple[str, np.ndarray, Fraction]] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    statement: str = "told"

    def exponential(self, scores, scale):
        return self._select("exponential", scores, scale)

    def permute_and_flip(self, scores, scale):
        return self._select("permute-and-flip", scores, scale)

    def discrete_laplace(self, counts, scale):
        self.asked.append(("discrete Laplace", counts.copy(), scale))
        return counts.copy()

    def _select(self, law, scores, scale):
        self.asked.append((law, scores.copy(), scale))
        self.places.append(self.pick(scores.tolist()))
        return self.places[-1]


def following(places: Sequence[int]) -> Callable[[list[int]], int]:
    """Places one after the other, then the first."""
    left = list(places)
    return lambda _scores: left.pop(0) if left else 0


def anywhere(random: np.random.Generator) -> Callable[[list[int]], int]:
    return lambda scores: int(random.integers(len(scores)))


# ---- random cases ----------------------------------------------------------------------------------


def random_case(
    random: np.random.Generator,
    variant: str,
    score: str,
    *,
    n_rows: int = 12,
    least: int = 0,
    most: int = 4,
    epsilon: Any = None,
) -> Case:
    attributes = tuple(random_attribute(random) for _ in range(random.integers(1, 4)))
    n_classes = int(random.integers(2, 4))
    options = DiffGenOptions(
        Fraction(epsilon or random.choice(["1/10", "1", "2", "16"])),
        variant=variant,
        score=score,
        specializations=int(random.integers(least, most + 1)),
        max_cells=int(random.choice([6, 1000])),
    )
    rows = random_rows(random, int(random.integers(0, n_rows + 1)), attributes, n_classes)
    return Case(tuple(rows), attributes, n_classes, options)


def random_attribute(random: np.random.Generator) -> naive.Attribute:
    if random.random() < 0.5:
        return naive.Number(int(random.integers(1, 7)))
    shapes = [(0, 1), (0, 1, 2), ((0, 1), 2), ((0, 1), (2, 3)), ((0, (1, 2)), 3), ((0,), (1, 2)), (0,)]
    return shapes[random.integers(len(shapes))]


def random_rows(
    random: np.random.Generator, n: int, attributes: Sequence[naive.Attribute], n_classes: int
) -> list[naive.Row]:
    sizes = [len(naive.root(i, attribute).codes) for i, attribute in enumerate(attributes)]
    return [tuple(row) for row in random.integers(0, [*sizes, n_classes], (n, len(sizes) + 1)).tolist()]
