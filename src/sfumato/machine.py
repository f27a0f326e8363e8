"""What this machine has."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def free_memory() -> int:
    """Bytes of memory that can be taken without anybody being pushed out; a guess where the system does not say.

    >>> free_memory() > 0
    True
    """
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return min(int(line.split()[1]) * 1024, _memory_of_control_group())
    with suppress(OSError, ValueError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    return 2 << 30


def n_cores() -> int:
    """Cores that this process may use; 1 where the system does not say.

    >>> n_cores() >= 1
    True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


def _memory_of_control_group() -> int:
    """What the control group of this process still allows."""
    folder = Path("/sys/fs/cgroup")
    with suppress(OSError, ValueError):
        limit = (folder / "memory.max").read_text(encoding="ascii").strip()
        if limit != "max":
            used = int((folder / "memory.current").read_text(encoding="ascii"))
            lines = (folder / "memory.stat").read_text(encoding="ascii").splitlines()
            kinds = {word: int(n) for word, n in (line.split() for line in lines)}
            cache = kinds.get("inactive_file", 0) + kinds.get("active_file", 0)  # given up when needed
            return max(int(limit) - used + cache, 0)
    return 1 << 62
