"""What cells cost: the prices that splits by loss go by, as kernels read them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.encoding.domain import Domain, OrderedDomain
from sfumato.encoding.slices import ALL, Slices, slices_of
from sfumato.kernels.information import information_of
from sfumato.methods.mondrian.kernels.problem import LOSS_AXIS, TASK, UNIT, Loss, table
from sfumato.policy.output import BOXES, GRID, RANGE, Narrowing


def compile_loss(
    domains: Sequence[Domain],
    slices: Sequence[Slices | None],
    weights: Sequence[float],
    *,
    tasks: Sequence[tuple[float, float, float]],
    n_rows: int,
    has_rest: bool,
    loss_weight: float,
) -> Loss:
    """The loss of a table.

    slices        of each ordered column, None of the others
    weights       of each column; the greatest counts 1
    tasks         (weight, information of the whole table, chance) of each target
    loss_weight   of detail beside them, in the mixed score
    """
    largest = max(weights)
    records = [
        _axis_of(domain, own, weight / largest)
        for domain, own, weight in zip(domains, slices, weights, strict=True)
    ]
    weight, whole = (loss_weight, float(UNIT * n_rows * len(domains))) if tasks else (1.0, 1.0)
    row = sum(int(np.rint(UNIT * own / largest)) for own in weights)
    return Loss(table(LOSS_AXIS, records), table(TASK, list(tasks)), weight, whole, has_rest, row)


def slice_numbers(domains: Sequence[Domain], numbers: Narrowing) -> list[Slices | None]:
    """The public slices of each ordered column, that labels are narrowed to; of boxes they have no width."""
    n_slices = {GRID: numbers.slices, BOXES: None, RANGE: ALL}[numbers.kind]
    return [slices_of(domain, n_slices) if isinstance(domain, OrderedDomain) else None for domain in domains]


def _axis_of(domain: Domain, slices: Slices | None, weight: float) -> tuple[int | float, ...]:
    """A record of LOSS_AXIS."""
    if not isinstance(domain, OrderedDomain) or slices is None:
        reach = domain.n_codes - 1
        return price_of(reach, weight), reach, 0, reach, 0, 0.0, 1.0, True
    shift = round((domain.origin - slices.lower) / slices.step) if domain.values is None else 0
    return (
        price_of(slices.n_steps, weight), slices.n_steps, slices.in_slice, domain.n_codes - 1, shift,
        slices.lower, slices.step, slices.is_stepped,
    )  # fmt: skip


def price_of(reach: int, weight: float) -> int:
    """The price of a step, or a leaf, of a column that reaches so far.

    >>> price_of(4, 1.0) == UNIT // 4, price_of(0, 1.0)
    (True, 0)
    """
    return int(np.rint(UNIT / reach * weight)) if reach > 0 else 0


def chance_of(n_rows: int, n_classes: int) -> float:
    """Half of log2 of the rows, for each class but one, in fixed point: what a split tells of a label by chance alone."""
    return int(information_of(np.array([n_rows]))[0]) / (2 * n_rows) * (n_classes - 1)
