"""A small table of people with every kind of column, and what it may be published for."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sfumato.policy.document import Policy

CONDITION = "age >= 40 and sex = 'Male' or city = 'Kiel' and age between 20 and 30"


def people(n: int = 400, seed: int = 3) -> pa.Table:
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, n)
    hours = np.clip(rng.normal(45 - np.abs(age - 45) / 3, 6, n).round(), 0, 80)
    return pa.table(
        {
            "name": [f"person {i}" for i in range(n)],
            "age": pa.array(age, mask=rng.random(n) < 0.03),
            "sex": rng.choice(["Male", "Female"], n),
            "city": pa.array(rng.choice(["Bonn", "Kiel", "Jena"], n), mask=rng.random(n) < 0.05),
            "born": pa.array((age * -365 + rng.integers(0, 365, n)).astype(np.int32)).cast(pa.date32()),
            "disease": rng.choice(["flu", "gout", "asthma", "cold"], n),
            "hours": pa.array(hours, mask=rng.random(n) < 0.02),
            "income": np.where(hours + rng.normal(0, 4, n) > 40, "high", "low"),
        }
    )


PEOPLE = people()

ATTRIBUTES = """
attributes:
  name:    {role: identifier}
  age:     {role: quasi-identifier, type: number, bounds: [0, 110], step: 1}
  sex:     {role: quasi-identifier}
  city:    {role: quasi-identifier, hierarchy: {tree: {"*": {North: [Kiel], Middle: [Bonn, Jena]}}}}
  born:    {role: quasi-identifier, type: date}
  disease: {role: sensitive}
  hours:   {role: sensitive, type: number}
  income:  {role: other}
"""
WORKLOADS = {
    "nothing": "[]",
    "classify": "[classify: income]",
    "regress": "[regress: hours]",
    "select": f'[select: "{CONDITION}"]',
    "select, then classify": f'[select: {{where: "{CONDITION}", weight: 2}}, select: age < 30, classify: income]',
    "features": "[classify: {target: income, features: [age, hours, disease]}]",
    "features of a number, sensitive target": "[regress: {target: hours, features: [age, income]}, classify: disease]",
    "aggregate": "[classify: income, aggregate: [range, mean]]",
}  # fmt: skip
REQUIREMENTS = {
    "k": "[k-anonymity: 5]",
    "k and l": "[k-anonymity: 4, recursive-diversity: {c: 3, l: 2, of: disease}]",
    "l": "[entropy-diversity: {l: 2.5, of: disease}, variance-diversity: {at-least: 4, of: hours}]",
}


def the_policy(method: str, workload: str, required: str, output: str | None = None) -> Policy:
    """The policy of PEOPLE with this method (as YAML), one of WORKLOADS and one of REQUIREMENTS."""
    values = f"output: {{values: {output}}}\n" if output else ""
    return Policy.parse(
        f"{ATTRIBUTES}require: {REQUIREMENTS[required]}\nworkload: {WORKLOADS[workload]}\nmethod: {method}\n{values}"
    )
