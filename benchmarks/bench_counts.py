"""How long counts of many keys take: a table, or sorted runs in little memory, against sorting all keys at once.

    python benchmarks/bench_counts.py --rows 1e7 --keys 1e7 --memory 64 512

Each line is one JSON object: CPU seconds of adding, walking once and walking again, and what was written.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from sfumato.engines.counts import Counts
from sfumato.randomness import seeded
from sfumato.table.spill import Spill

BLOCK = 65_536


def seconds(work: Callable[[], Any]) -> float:
    """CPU seconds that it takes."""
    began = time.process_time()
    work()
    return round(time.process_time() - began, 3)


def walk(counts: Counts) -> int:
    return sum(len(keys) for keys, _ in counts.chunks())


def add_all(counts: Counts, keys: Any, words: Any) -> None:
    for first in range(0, len(keys), BLOCK):
        some = slice(first, first + BLOCK)
        counts.add(keys[some], None if words is None else words[some])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=float, default=1e7)
    parser.add_argument("--keys", type=float, default=1e7)
    parser.add_argument("--memory", type=int, nargs="+", default=[64, 512], help="MB")
    parser.add_argument("--words", type=int, nargs="+", default=[1, 2])
    options = parser.parse_args()
    n, n_keys = int(options.rows), int(options.keys)
    keys = seeded(1).permutation(n_keys).astype(np.uint64)[:n]
    keys = np.concatenate([keys, seeded(2).integers(0, n_keys, n - len(keys)).astype(np.uint64)])
    print(json.dumps({"np.sort": seconds(lambda: np.sort(keys))}))
    for memory in options.memory:
        for n_words in options.words:
            words = None if n_words == 1 else np.ones((n, n_words), dtype=np.int64)
            for _ in range(2):  # the first time kernels are compiled
                with Spill() as spill:
                    counts = Counts.new(n_keys, n_words=n_words, room=memory << 20, spill=spill)
                    found: dict[str, Any] = {
                        "memory": memory, "words": n_words, "kind": type(counts).__name__,
                        "add": seconds(lambda: add_all(counts, keys, words)),  # noqa: B023 - called at once
                        "walk": seconds(lambda: walk(counts)),  # noqa: B023 - called at once
                        "again": seconds(lambda: walk(counts)),  # noqa: B023 - called at once
                        "written": spill.counters.bytes_written,
                    }  # fmt: skip
            found["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
            print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
