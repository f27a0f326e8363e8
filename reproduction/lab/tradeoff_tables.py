"""Adult as a problem of risk and utility: its complete rows, in codes of the hierarchies that ARX ships for it."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lab.studies import data_folder
from sfumato.encoding.domain import Codes, TreeDomain
from sfumato.encoding.encoders import encode_axis
from sfumato.policy.document import Policy
from sfumato.table.opening import open_table

QUASI_IDENTIFIERS = (
    "sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation", "salary-class",
)  # fmt: skip
"""In the order of ARX's examples. The first 8 are those of most studies."""

N_COMPLETE = 45_222


def adult_policy(n_columns: int = 8) -> dict[str, object]:
    """The columns as a policy declares them: its ``attributes``; the rest of the policy is the caller's."""
    folder = data_folder() / "adult_hierarchies" / "arx"
    return {
        name: {"role": "quasi-identifier", "hierarchy": str(folder / f"adult_hierarchy_{name}.csv")}
        for name in QUASI_IDENTIFIERS[:n_columns]
    }


@cache
def adult_table() -> pa.Table:
    """The complete rows, as texts."""
    source = open_table(data_folder() / "adult" / "adult.csv.gz")
    table = pa.table({name: source.column(name).cast(pa.string()) for name in source.names})
    for name in table.column_names:
        table = table.filter(pc.not_equal(table[name], "?"))
    assert len(table) == N_COMPLETE
    return table


@cache
def adult(n_columns: int = 8) -> tuple[tuple[TreeDomain, ...], Codes]:
    """The hierarchies of the first columns, and all complete rows in their codes: what ``problem_of`` takes."""
    policy = Policy.from_dict({"attributes": adult_policy(n_columns), "require": [{"k-anonymity": 2}]})
    source = open_table(adult_table())
    domains, codes = zip(*(encode_axis(source, column) for column in policy.schema.attributes), strict=True)
    return domains, np.stack(codes, axis=1)
