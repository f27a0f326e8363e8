"""Figure 22 of [LDR08]: what sampling costs InfoGain splitting, as conditional entropy of the class."""

from __future__ import annotations

from lab import record, rothko, sampling, studies
from lab.sampling import Panel

NAME = "tods_fig22"
PANELS = (Panel("Synthetic, C2", "C2", studies.CLASS), Panel("Census", None, studies.CLASS))


def main() -> None:
    given = rothko.options(__doc__, runs=False)
    found = sampling.measured(given, NAME, "Figure 22", PANELS)
    figure = record.save(
        given, NAME, "Sampling and InfoGain splitting",
        sampling.setup(given, "the class is function C2, or the wage class of Census"),
        found, {record.NO_LEARNERS: sampling.claims(found, given, PANELS)},
    )  # fmt: skip
    sampling.draw(
        figure, given.out / f"{NAME}.png", PANELS, given, lambda _panel: "Conditional entropy (bits)"
    )


if __name__ == "__main__":
    main()
