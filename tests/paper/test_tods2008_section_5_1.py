"""Figure 14 of [LDR08]: how Rothko-T walks a table of which two frequency groups fit in memory."""

from __future__ import annotations

import pyarrow as pa

import sfumato as sf
from sfumato.publishing import publish

AT_ONCE = 16

POLICY = sf.Policy.parse(f"""
attributes: {{x: {{role: quasi-identifier, type: number}}, id: {{role: other, passes: unique}}}}
require: [k-anonymity: 1]
method: {{mondrian: {{variant: paper, rows-in-memory: {AT_ONCE}, frequency-groups: 2}}}}
""")


def walk(n_rows: int) -> tuple[list[tuple[str, int]], dict[str, int]]:
    """The passes of Rothko-T as they were begun, (what for, over how many rows), and the figures of the run."""
    passes: list[tuple[str, int]] = []
    last = 0

    def progress(stage: str, done: int, total: int) -> None:
        nonlocal last
        if stage in ("counting", "dividing") and (done == total or done < last or not passes):
            passes.append((stage, total))
        last = done

    table = pa.table({"x": list(range(n_rows)), "id": [str(i) for i in range(n_rows)]})
    release = publish(table, POLICY, engine="disk", memory=4_000_000, progress=progress)
    assert release.certificate.claims.groups == n_rows
    return passes, dict(release.certificate.figures["io"])


def test_the_walk_of_figure_14():
    """R is scanned for the group of node 1, again for those of 2 and 3, and then divided into R1 .. R4."""
    passes, io = walk(128)
    assert passes[:3] == [("counting", 128), ("counting", 128), ("dividing", 128)]
    # the procedure is then called on each: one group of 32 rows, and two parts of 16 that fit in memory
    assert passes[3:] == 4 * [("counting", 32), ("dividing", 32)]
    assert io["frequency-groups"] == 1 + 2 + 4
    assert io["repartitions"] == 1 + 4
    assert io["levels"] == 2
    assert io["pieces"] == 8


def test_its_io_is_that_of_the_model():
    """height = 3, repartitions = ceil(3 / (log2(2) + 1)) = 2: reads 3 + 2 + 1 times and writes 2 times [5.3.1].

    The first pass, which learns the domains, and the encoded table, which is written down once, come on top. Files
    of 16 rows consist mostly of their format, so passes are counted in rows.
    """
    passes, io = walk(128)
    reads = sum(n for _, n in passes) + 128  # each part is loaded once
    assert reads == (3 + 2 + 1) * 128
    assert io["input-passes"] == 2
    assert io["spills"] == 1 + 4 + 8
