"""Synthetic rows of a peer of DiffGen: runs in an environment of its own (requirements.txt), and talks by files.

    python synthesize.py FOLDER

FOLDER holds ``rows.csv`` (codes from 0, one column for each attribute) and ``job.json``: ``domain`` (how many codes each
column has), ``rows`` (how many to make), ``fit`` (when the last fit ends: ``steps``, ``tolerance``, ``rounds``) and
``jobs``, a list of ``file``, ``peer``, ``epsilon``, ``delta`` and ``settings`` of the model. Each job leaves its rows in
``file`` and what it took in ``file``.json, written last; a job whose ``.json`` is there already is not run again.
"""

# ruff: noqa: PD011 - the values of a factor are an array
import json
import os
import sys
import time
from pathlib import Path
from typing import Any, ClassVar

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import numpy as np
import pandas as pd
from dpmm.models import aim
from dpmm.models.aim import AIMGM
from dpmm.models.base.mbi import FactoredInference
from dpmm.models.base.mbi.factor import Factor
from dpmm.models.base.mechanisms import mechanism
from dpmm.models.mst import MSTGM

PEERS = {"AIM": AIMGM, "MST": MSTGM}

# ---- the same arithmetic with less overhead ---------------------------------------------------------------


def _factor(domain: Any, values: Any) -> Factor:
    """A factor without the checks of its constructor."""
    made = object.__new__(Factor)
    made.domain, made.values = domain, values
    return made


def _expand(factor: Factor, domain: Any) -> Factor:
    """A factor over more attributes; numpy stretches it where it is used."""
    if factor.domain.attrs == domain.attrs:
        return factor
    own = sorted(factor.domain.attrs, key=domain.attrs.index)
    values = factor.values.transpose([factor.domain.attrs.index(attribute) for attribute in own])
    sizes = [size if name in own else 1 for name, size in zip(domain.attrs, domain.shape, strict=True)]
    return _factor(domain, values.reshape(sizes))


def _add(one: Factor, other: Any) -> Factor:
    if np.isscalar(other):
        return _factor(one.domain, other + one.values)
    domain = one.domain.merge(other.domain)
    return _factor(domain, _expand(one, domain).values + _expand(other, domain).values)


def _log_sum(factor: Factor, attributes: Any = None) -> Any:
    """The logarithm of sums of exponentials over attributes, or over all."""
    axes = None if attributes is None else factor.domain.axes(attributes)
    most = factor.values.max(axis=axes, keepdims=True)
    most[np.isneginf(most)] = 0
    with np.errstate(divide="ignore"):
        sums = np.log(np.exp(factor.values - most).sum(axis=axes, keepdims=True)) + most
    if attributes is None:
        return sums.item()
    return _factor(factor.domain.marginalize(attributes), np.squeeze(sums, axis=axes))


Factor.expand, Factor.__add__, Factor.logsumexp = _expand, _add, _log_sum


class Fit(FactoredInference):
    """dpmm's fit; its measurements are single cells, each times a number, so no matrix is needed to apply them."""

    def fix_measurements(self, measurements: Any) -> Any:
        fixed = []
        for query, counts, noise, attributes in super().fix_measurements(measurements):
            cells = np.arange(self.domain.size(attributes))
            times = query @ np.ones(len(cells))
            if not np.allclose(query @ cells, times * cells):
                message = "a peer measures something else than single cells"
                raise ValueError(message)
            fixed.append((query, counts, noise, attributes, times))
        self.measured = {id(counts): (times / noise, counts / noise) for _, counts, noise, _, times in fixed}
        return [found[:4] for found in fixed]

    def _marginal_loss(self, marginals: Any, metric: Any = None) -> Any:  # noqa: ARG002 - as dpmm has it
        loss, gradient = 0.0, {}
        for clique in marginals:
            marginal = marginals[clique]
            slope = _factor(marginal.domain, np.zeros(marginal.domain.shape))
            for _, counts, _, attributes in self.groups[clique]:
                times, wanted = self.measured[id(counts)]
                seen = marginal.project(attributes)
                apart = times * seen.values.ravel() - wanted
                loss += 0.5 * (apart @ apart)
                slope += _factor(seen.domain, (times * apart).reshape(seen.domain.shape))
            gradient[clique] = slope
        return float(loss), type(marginals)(gradient)


# ---- the last fit -----------------------------------------------------------------------------------------


class LastFit(Fit):
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


aim.FactoredInference = Fit
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
