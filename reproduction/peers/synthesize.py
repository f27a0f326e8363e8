"""Synthetic rows of a peer of DiffGen: runs in an environment of its own (requirements.txt), and talks by files.

    python synthesize.py FOLDER

FOLDER holds ``rows.csv`` (codes from 0, one column for each attribute) and ``job.json``: ``domain`` (how many codes each
column has), ``rows`` (how many to make) and ``jobs``, a list of ``file``, ``peer``, ``epsilon``, ``delta`` and
``settings`` of the model. Each job leaves its rows in ``file`` and the CPU seconds that it took in
``file``.seconds; one whose seconds are there already is not run again.
"""

import json
import os
import sys
import time
from pathlib import Path

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import pandas as pd
from dpmm.models.aim import AIMGM
from dpmm.models.mst import MSTGM

PEERS = {"AIM": AIMGM, "MST": MSTGM}


def main() -> None:
    folder = Path(sys.argv[1])
    order = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    rows = pd.read_csv(folder / "rows.csv")
    for job in order["jobs"]:
        made = folder / job["file"]
        taken = made.with_suffix(".seconds")
        if taken.exists():
            continue
        start = time.process_time()
        model = PEERS[job["peer"]](epsilon=job["epsilon"], delta=job["delta"], n_jobs=1, **job["settings"])
        model.set_domain(order["domain"])
        model.check_fit(rows)
        model.fit(rows)
        synthetic = model.generate(n_records=order["rows"])
        synthetic[list(rows.columns)].to_csv(made, index=False)
        taken.write_text(f"{time.process_time() - start:.1f}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
