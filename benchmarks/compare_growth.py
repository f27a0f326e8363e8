"""Growth of this version and of another one, by turns: read the ratios.

    git worktree add /tmp/other COMMIT
    python benchmarks/compare_growth.py /tmp/other                    # 1M rows, five turns; a quarter of an hour
    python benchmarks/compare_growth.py /tmp/other --rows 1e5 --turns 3

Timed are the papers' criteria, as in ``bench_mondrian.py``. Each turn is a process of its own, in which the version's
own ``bench_mondrian.growth`` prepares the rows; timed is the method that grows the tree, after a run that loads its
kernels. CPU seconds, of two threads together. Shown are the median of the turns of each, and the median and the ends
of the ratios of turns that followed each other.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]

TURN = """
import json, sys, time
from pathlib import Path
tree, n_rows = Path(sys.argv[1]), int(sys.argv[2])
sys.path[:0] = [str(tree / "src"), str(tree / "benchmarks")]
import sfumato
assert Path(sfumato.__file__).is_relative_to(tree)
from bench_mondrian import growth, table_of
from sfumato.policy.requirements import RecursiveDiversity
from sfumato.policy.workload import Classify, Regress
try:
    from sfumato.methods.mondrian.memory import TreeGrower as Grower
except ImportError:
    from sfumato.methods.mondrian.memory import MemoryEngine as Grower
spent, grow = [], Grower.grow

def timed(self, *args, **kwargs):
    start = time.process_time()
    try:
        return grow(self, *args, **kwargs)
    finally:
        spent.append(time.process_time() - start)

Grower.grow = timed
diverse = {"more": [RecursiveDiversity(1, 3, of="region")]}
CASES = {
    "Median": {}, "InfoGain": {"workload": [Classify("class")]}, "Regression": {"workload": [Regress("wealth")]},
    "Median, recursive": diverse, "InfoGain, recursive": {"workload": [Classify("class")], **diverse},
    "class and number": {"workload": [Classify("class"), Regress("wealth")]},
}
table, small = table_of(n_rows), table_of(2_000)
found = {}
for name, given in CASES.items():
    growth(small, 10, repeats=1, **given)
    for k in (10, 1000):
        for threads in (1, 2):
            spent.clear()
            growth(table, k, threads=threads, repeats=2, **given)
            found[f"{name}, k = {k}, threads {threads}"] = min(spent)
print(json.dumps(found))
"""


def run_turn(tree: Path, n_rows: int) -> dict[str, float]:
    environment = {**os.environ, "PYTHONPATH": f"{tree / 'src'}"}
    command = [sys.executable, "-c", TURN, str(tree), str(n_rows)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("other", type=Path, help="the folder of another version")
    parser.add_argument("--rows", type=lambda text: int(float(text)), default=1_000_000)
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    for tree in (options.other.resolve(), HERE):
        run_turn(tree, 2_000)  # compiles
    turns = []
    for number in range(options.turns):
        turns.append((run_turn(options.other.resolve(), options.rows), run_turn(HERE, options.rows)))
        print(f"turn {number + 1} of {options.turns}", file=sys.stderr, flush=True)
    print(
        f"{options.rows:,} rows, {options.turns} turns: other, here (CPU s), here / other (least, greatest)"
    )
    for case in turns[0][0]:
        ratios = [here[case] / other[case] for other, here in turns]
        other, here = (statistics.median(turn[side][case] for turn in turns) for side in (0, 1))
        print(
            f"  {case:38} {other:7.3f} {here:7.3f}   {statistics.median(ratios):.2f} "
            f"({min(ratios):.2f}, {max(ratios):.2f})"
        )


if __name__ == "__main__":
    main()
