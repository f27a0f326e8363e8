r"""The analytical model of [LDR08, section 5.3]: how often Rothko reads and writes the whole table.

    python benchmarks/io_model.py --rows 50e6 --rows-in-memory 2e6 --k 1000       # the model alone
    python benchmarks/io_model.py RELEASE [RELEASE ..] [--frequency-groups 8]     # beside what runs measured

:math:`\|R\|` is ``n_rows``, TM ``rows_in_memory``, F_CACHE ``frequency_groups``. Reads and writes are in tables:
the paper multiplies them by :math:`|R|`, the blocks of one table. Trees are binary, balanced and complete, and
k is far below TM. Measured figures are those of a release's certificate, in tables of encoded rows.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from statistics import NormalDist

ALPHA = 0.05
"""The level of the tests in the paper's section 6."""

ROWS_IN_MEMORY = 2_000_000
"""TM in the paper's section 6."""


# ---- Rothko-T ------------------------------------------------------------------------------------------


def height(n_rows: int, rows_in_memory: int) -> int:
    r"""Levels of the tree before each leaf fits in memory: :math:`\max(0, \lceil \log_2(\|R\| / TM) \rceil)`.

    25 memories full need 5 levels, 32 the same 5, one row more 6.

    >>> height(50_000_000, 2_000_000), height(64_000_000, 2_000_000), height(64_000_001, 2_000_000)
    (5, 5, 6)
    >>> height(2_000_000, 2_000_000), height(10, 2_000_000)
    (0, 0)
    """
    memories = -(-n_rows // rows_in_memory)
    return max(0, (memories - 1).bit_length())


def repartitions_t(n_rows: int, rows_in_memory: int, frequency_groups: int) -> int:
    r"""How often Rothko-T writes the table: :math:`\lceil height / (\lfloor \log_2 F\_CACHE \rfloor + 1) \rceil`.

    At height 5 with 1, 2, 4, 8 and 16 groups: ceilings of 5/1, 5/2, 5/3, 5/4 and 5/5.

    >>> [repartitions_t(50_000_000, 2_000_000, groups) for groups in (1, 2, 3, 4, 8, 16)]
    [5, 3, 3, 2, 2, 1]
    """
    if frequency_groups < 1:
        raise ValueError(f"At least one frequency group must fit in memory, got {frequency_groups}.")
    return -(-height(n_rows, rows_in_memory) // frequency_groups.bit_length())


def reads_t(n_rows: int, rows_in_memory: int, frequency_groups: int) -> int:
    """A scan for each level, one for each repartition, and a last one that brings the leaves into memory.

    >>> [reads_t(50_000_000, 2_000_000, groups) for groups in (1, 2, 4, 8)]
    [11, 9, 8, 8]
    >>> reads_t(1_000_000, 2_000_000, 1)
    1
    """
    repartitions = repartitions_t(n_rows, rows_in_memory, frequency_groups)
    return height(n_rows, rows_in_memory) + repartitions + 1


def writes_t(n_rows: int, rows_in_memory: int, frequency_groups: int) -> int:
    """Every repartition writes the table once.

    >>> [writes_t(50_000_000, 2_000_000, groups) for groups in (1, 2, 4, 8)]
    [5, 3, 2, 2]
    """
    return repartitions_t(n_rows, rows_in_memory, frequency_groups)


# ---- Rothko-S ------------------------------------------------------------------------------------------


def levels_s(n_rows: float, sample: int, k: int, *, alpha: float = ALPHA) -> int:
    r"""Levels that a sample of n rows allows with confidence, by the test of section 5.2.1 on binary splits.

    .. math:: \max x: 2^{-x} - p_0 \geq z_{\alpha/2} \sqrt{\frac{p_0 (1 - p_0)}{n - 1} \frac{N - n}{N}}, \; p_0 = k / N

    50 million rows, 2 million of them drawn, k = 1000: p0 is 2e-5, the standard error 3.098e-6, and
    2e-5 + 1.96 * 3.098e-6 = 2.607e-5 lies between 2^-16 and 2^-15.

    >>> levels_s(50_000_000, 2_000_000, 1000)
    15

    100,000 rows, k = 1000 (p0 = .01): 100 rows have a standard error of .00999 and ask for .0296, 2^-5;
    the whole table asks for .01, 2^-6.

    >>> levels_s(100_000, 100, 1000), levels_s(100_000, 100_000, 1000)
    (5, 6)
    >>> levels_s(100_000, 100, 90_000)
    0
    """
    p0 = k / n_rows
    n = min(sample, n_rows)
    variance = p0 * (1 - p0) / (n - 1) * (n_rows - n) / n_rows
    least = p0 + NormalDist().inv_cdf(1 - alpha / 2) * math.sqrt(variance)
    return max(0, math.floor(-math.log2(least)))


def repartitions_s(
    n_rows: float, rows_in_memory: int, k: int, *, sample: int | None = None, alpha: float = ALPHA
) -> int:
    """How often Rothko-S writes the table; 0 too where no split is certain and the partitioning stays coarse.

    The sample is as large as the memory unless ``sample`` says otherwise.

    >>> repartitions_s(50_000_000, 2_000_000, 1000), repartitions_s(1_000_000, 2_000_000, 1000)
    (1, 0)

    100 rows of 100,000, k = 250: p0 = .0025, a standard error of .0050, together .0123, which allows 6 levels.
    100,000 / 64 = 1562.5 rows do not fit yet: p0 = .16, an error of .0357, together .230, 2 levels.
    390.6 rows do not fit either: p0 = .64, an error of .0416, together .722: no split is certain any more.

    >>> repartitions_s(100_000, 100, 250)
    2
    """
    if n_rows <= rows_in_memory:
        return 0
    levels = levels_s(n_rows, sample or rows_in_memory, k, alpha=alpha)
    if levels == 0:
        return 0
    return 1 + repartitions_s(n_rows / 2**levels, rows_in_memory, k, sample=sample, alpha=alpha)


def reads_s(
    n_rows: int, rows_in_memory: int, k: int, *, sample: int | None = None, alpha: float = ALPHA
) -> int:
    """A scan for the first sample; then, for each repartition, one to divide the rows and one to sample the parts.

    >>> reads_s(50_000_000, 2_000_000, 1000), reads_s(1_000_000, 2_000_000, 1000)
    (3, 1)
    """
    return 2 * repartitions_s(n_rows, rows_in_memory, k, sample=sample, alpha=alpha) + 1


def writes_s(
    n_rows: int, rows_in_memory: int, k: int, *, sample: int | None = None, alpha: float = ALPHA
) -> int:
    """Every repartition writes the table once.

    >>> writes_s(50_000_000, 2_000_000, 1000), writes_s(100_000, 100, 250)
    (1, 2)
    """
    return repartitions_s(n_rows, rows_in_memory, k, sample=sample, alpha=alpha)


# ---- beside what was measured --------------------------------------------------------------------------

HEAD = f"{'':<34} {'reads':>7} {'writes':>7} {'repartitions':>13}"


def line(name: str, reads: float, writes: float, repartitions: float | None) -> str:
    """One line of the table.

    >>> line("Rothko-S, model", 3, 1, 1).split()
    ['Rothko-S,', 'model', '3.00', '1.00', '1']
    """
    times = "" if repartitions is None else f"{repartitions:g}"
    return f"{name:<34} {reads:>7.2f} {writes:>7.2f} {times:>13}"


def model_lines(
    n_rows: int, rows_in_memory: int, k: int, frequency_groups: int, sample: int | None
) -> list[str]:
    t = n_rows, rows_in_memory, frequency_groups
    s = n_rows, rows_in_memory, k
    return [
        line(f"Rothko-T, {frequency_groups} groups, model", reads_t(*t), writes_t(*t), repartitions_t(*t)),
        line("Rothko-S, model", reads_s(*s, sample=sample), writes_s(*s, sample=sample),
             repartitions_s(*s, sample=sample)),
    ]  # fmt: skip


def measured_lines(folder: Path, rows_in_memory: int | None, frequency_groups: int | None) -> list[str]:
    """A release of the disk engine: what its certificate counted, and the model of its own method beside it.

    What the model must be told is what the policy says, or the run, or else the paper's.
    """
    certificate = json.loads((folder / "certificate.json").read_text(encoding="utf-8"))
    found = certificate["figures"].get("io")
    if found is None:
        raise SystemExit(
            f"{folder}: the certificate has no figures of I/O; was it published with --engine disk?"
        )
    method = certificate["policy"].get("method", {})
    asked = method.get("mondrian", {}) if isinstance(method, dict) else {}
    in_memory = rows_in_memory or asked.get("rows-in-memory") or found.get("rows-in-memory") or ROWS_IN_MEMORY
    n_rows = certificate["claims"]["rows"]
    out = [
        line(
            f"{found['method']}, {n_rows:,} rows, measured", found["reads"], found["writes"], found["levels"]
        )
    ]
    if found["method"] == "rothko-t":
        groups = frequency_groups or asked.get("frequency-groups") or 1
        t = n_rows, in_memory, groups
        out.append(line(f"  model, {groups} groups", reads_t(*t), writes_t(*t), repartitions_t(*t)))
    else:
        k = next(
            (each["k-anonymity"] for each in certificate["policy"]["require"] if "k-anonymity" in each), 1
        )
        s = n_rows, in_memory, k
        sample = asked.get("sample")
        out.append(
            line(
                f"  model, k = {k:,}",
                reads_s(*s, sample=sample),
                writes_s(*s, sample=sample),
                repartitions_s(*s, sample=sample),
            )
        )
    return out


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    number = lambda text: int(float(text))  # noqa: E731 - 50e6 is how such numbers are typed
    parser.add_argument("releases", nargs="*", type=Path, help="folders published with --engine disk")
    parser.add_argument("--rows", type=number, default=50_000_000)
    parser.add_argument("--rows-in-memory", type=number, help="default: the certificate's, or 2 million")
    parser.add_argument(
        "--frequency-groups", type=int, help="default: the policy's; without releases 1, 2, 4 and 8"
    )
    parser.add_argument("--k", type=int, default=1000)
    parser.add_argument("--sample", type=number, help="default: as many as fit in memory")
    options = parser.parse_args()
    print(HEAD)
    for folder in options.releases:
        print("\n".join(measured_lines(folder, options.rows_in_memory, options.frequency_groups)))
    if not options.releases:
        for groups in (options.frequency_groups,) if options.frequency_groups else (1, 2, 4, 8):
            in_memory = options.rows_in_memory or ROWS_IN_MEMORY
            found = model_lines(options.rows, in_memory, options.k, groups, options.sample)
            print(found[0])
        print(found[1])


if __name__ == "__main__":
    main()
