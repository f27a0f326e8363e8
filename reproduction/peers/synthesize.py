"""Synthetic rows of a peer of DiffGen: runs in an environment of its own (requirements.txt), and talks by files.

    python synthesize.py FOLDER

FOLDER holds ``rows.csv`` (codes from 0, one column for each attribute) and ``job.json``: ``domain`` (how many codes each
column has), ``rows`` (how many to make), ``fit`` (when the last fit ends: ``steps``, ``tolerance``, ``rounds``) and
``jobs``, a list of ``file``, ``peer``, ``epsilon``, ``delta`` and ``settings`` of the model. Each job leaves its rows in
``file`` and what it took in ``file``.json, written last; a job whose ``.json`` is there already is not run again.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any, ClassVar

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import pandas as pd
from dpmm.models.aim import AIMGM
from dpmm.models.base.mbi import FactoredInference
from dpmm.models.base.mechanisms import mechanism
from dpmm.models.mst import MSTGM

PEERS = {"AIM": AIMGM, "MST": MSTGM}


class LastFit(FactoredInference):
    """The fit that the synthetic rows are drawn from, gone on with until it no longer changes.

    dpmm makes its last model from all measurements anew, with a fixed number of steps, however far from the end that
    stops. Here ``steps`` more follow until the loss falls by less than the share ``tolerance``, or for ``rounds`` rounds.
    """

    steps: ClassVar[int]
    tolerance: ClassVar[float]
    rounds: ClassVar[int]
    losses: ClassVar[list[float]] = []  # after each round of the last job

    def __init__(self, domain: Any, **options: Any) -> None:
        super().__init__(domain, **{**options, "iters": self.steps, "warm_start": True})

    def estimate(self, measurements: Any, **options: Any) -> Any:
        losses: list[float] = []
        while len(losses) < self.rounds:
            super().estimate(measurements, **options)
            losses.append(self._marginal_loss(self.model.marginals)[0])
            if len(losses) > 1 and losses[-2] - losses[-1] < self.tolerance * losses[-2]:
                break
        type(self).losses = losses
        return self.model


mechanism.FactoredInference = LastFit  # where dpmm looks it up for its last fit, and for that alone


def main() -> None:
    folder = Path(sys.argv[1])
    order = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    for name, value in order["fit"].items():
        setattr(LastFit, name, value)
    rows = pd.read_csv(folder / "rows.csv")
    for job in order["jobs"]:
        made = folder / job["file"]
        done = made.with_suffix(".json")
        if done.exists():
            continue
        start = time.process_time()
        model = PEERS[job["peer"]](epsilon=job["epsilon"], delta=job["delta"], n_jobs=1, **job["settings"])
        model.set_domain(order["domain"])
        model.check_fit(rows)
        model.fit(rows)
        synthetic = model.generate(n_records=order["rows"])
        synthetic[list(rows.columns)].to_csv(made, index=False)
        taken = {"seconds": round(time.process_time() - start, 1), "losses": LastFit.losses}
        done.write_text(json.dumps(taken) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
