"""Figure 23 of [LDR08]: what sampling costs Regression splitting, as weighted mean squared error of the target."""

from __future__ import annotations

from lab import record, rothko, sampling, studies
from lab.sampling import Panel

NAME = "tods_fig23"
PANELS = (
    Panel("Synthetic, R7", "R7", studies.CLASS),
    Panel("Synthetic, R10", "R10", studies.CLASS),
    Panel("Census", None, studies.WAGE),
)


def main() -> None:
    given = rothko.options(__doc__, runs=False)
    found = sampling.measured(given, NAME, "Figure 23", PANELS)
    figure = record.save(
        given, NAME, "Sampling and Regression splitting",
        sampling.setup(given, "the target is function R7 or R10, or the wage of Census"),
        found, {record.NO_LEARNERS: sampling.claims(found, given, PANELS)},
    )  # fmt: skip
    sampling.draw(figure, given.out / f"{NAME}.png", PANELS, given, lambda _panel: "WMSE")


if __name__ == "__main__":
    main()
