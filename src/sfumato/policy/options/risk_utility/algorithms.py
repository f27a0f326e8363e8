"""Parameters of single algorithms: Algorithms 1 and 2 of the paper, and private sampling [FEB12]."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, ClassVar

from sfumato.policy.kinds import as_plain
from sfumato.policy.model import Part
from sfumato.policy.rules import ChoiceRule, Exact, ListOf, Whole

REPAIRED, PAPER = "repaired", "paper"
VARIANTS = (REPAIRED, PAPER)

DEFAULT_SIGMA_1 = Fraction(1, 2)
ALGORITHM_3 = 3
"""What the paper has for private sampling, if not Algorithm 4."""

SIGMA = "must be a number between 0 and 1 and one above 1, such as [0.5, 5]."


@dataclass(frozen=True, slots=True)
class ApproximationOptions(Part):
    """Algorithm 1 [FEB12, section 2.4]: consecutive bounds on the weight differ by the factor 1 + ``epsilon``.

    ``sigma`` is of the variant paper alone: a drawn generalization is accepted if it has sigma_1 of the utility asked for
    and sigma_2 times the bound at most. None is 1/2, and a sigma_2 that suits the threshold.
    """

    epsilon: Annotated[
        Fraction,
        Exact(
            "Consecutive bounds on the weight differ by the factor 1 + epsilon.",
            fractions=False, least=0.001, below=1, says="must be a number from 0.001 to below 1, such as 0.1.",
        ),
    ] = Fraction(1, 10)  # fmt: skip
    sigma: Annotated[
        tuple[Fraction, Fraction] | None,
        ListOf(
            "Variant paper: what is drawn must have sigma_1 of the utility asked for, and sigma_2 times the bound on "
            "the weight at most.",
            says=SIGMA,
            item=Exact(fractions=False, above=0, most=1e9, says="must be a number above 0 and up to 1e9."),
            least=2,
            most=2,
        ),
    ] = None
    meaning: ClassVar[str] = "Parameters of Algorithm 1, for optimizer: approximation."
    says: ClassVar[str] = "must be parameters, such as {epsilon: 0.1}."

    @property
    def sigma_1(self) -> Fraction:
        return DEFAULT_SIGMA_1 if self.sigma is None else self.sigma[0]

    def as_policy(self) -> dict[str, Any]:
        options: dict[str, Any] = {"epsilon": as_plain(self.epsilon)}
        if self.sigma is not None:
            options["sigma"] = list(map(as_plain, self.sigma))
        return options


def least_acceptance(share: Fraction, sigma_1: float | Fraction, sigma_2: float | Fraction) -> float:
    """The bound on the chance that a drawn level set is accepted, by Markov's inequality [FEB12, proof of theorem 3]."""
    theta = float(share)
    return 1 - (1 - theta) / (1 - theta * float(sigma_1)) - 1 / float(sigma_2)


_TO_10000 = "must be a whole number from 1 to 10000."


@dataclass(frozen=True, slots=True)
class GeneticOptions(Part):
    """Algorithm 2 [FEB12, section 2.5]: paths of a population, and how often children are made."""

    population: Annotated[int, Whole("Paths of a population.", least=1, most=10_000, says=_TO_10000)] = 50
    generations: Annotated[
        int, Whole("How often children are made.", least=1, most=10_000, says=_TO_10000)
    ] = 50
    meaning: ClassVar[str] = "Parameters of Algorithm 2, for optimizer: genetic."
    says: ClassVar[str] = "must be parameters, such as {population: 50, generations: 50}."

    def as_policy(self) -> dict[str, Any]:
        return {"population": self.population, "generations": self.generations}


PAPER_ALONE = f"only variant: {PAPER} has it; leave it out."


@dataclass(frozen=True, slots=True)
class PrivateSampling(Part):
    """Rows are drawn, and boxes published only if enough of them were drawn [FEB12, section 3; LQS12].

    ``sample`` is the chance of a row to be drawn; None lets the method choose. ``algorithm`` is of the variant paper
    alone: 3 enumerates the generalizations of a row, 4 walks in a polytope.
    """

    epsilon: Annotated[
        Fraction,
        Exact(
            "The privacy budget: the smaller, the more private.", least=0.001, most=50,
            says="must be a number from 0.001 to 50, such as 1.0; the smaller, the more private.",
        ),
    ]  # fmt: skip
    delta: Annotated[
        Fraction,
        Exact(
            "The chance that the promise fails.", above=0, below=1,
            says="must be a number between 0 and 1, such as 1.0e-6.",
        ),
    ]  # fmt: skip
    sample: Annotated[
        Fraction | None,
        Exact(
            "The chance that a row is drawn; without it the method chooses.", above=0, below=1,
            says="must be a number between 0 and 1, such as 0.5.",
        ),
    ] = None  # fmt: skip
    variant: Annotated[
        str,
        ChoiceRule(
            "As repaired (needs a public side-table), or as printed (for study: nothing is promised).",
            words=VARIANTS,
        ),
    ] = REPAIRED
    algorithm: Annotated[
        int,
        Whole(
            "Variant paper: Algorithm 3 by enumeration, or with the walks of Algorithm 4.",
            least=3, most=4, says="must be 3 or 4.",
        ),
    ] = ALGORITHM_3  # fmt: skip
    meaning: ClassVar[str] = (
        "Differentially private: rows are drawn, and boxes published if enough of them were drawn."
    )
    says: ClassVar[str] = "must be a mapping, such as {epsilon: 1.0, delta: 1.0e-6}."
    absent: ClassVar[Mapping[str, str]] = {
        "epsilon": "the key 'epsilon' is missing; say, for example, epsilon: 1.0.",
        "delta": "the key 'delta' is missing; say, for example, delta: 1.0e-6.",
    }

    @classmethod
    def complain(cls, given: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
        if given.get("variant", REPAIRED) != PAPER and "algorithm" in given:
            yield ("algorithm",), PAPER_ALONE

    def as_policy(self) -> dict[str, Any]:
        options: dict[str, Any] = {"epsilon": as_plain(self.epsilon), "delta": as_plain(self.delta)}
        if self.sample is not None:
            options["sample"] = as_plain(self.sample)
        options["variant"] = self.variant
        if self.variant == PAPER:
            options["algorithm"] = self.algorithm
        return options
