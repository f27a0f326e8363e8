"""What this machine has: memory, cores, and the day."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import UTC, date, datetime
from pathlib import Path

from sfumato.errors import InputError


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


def day_of_making(seed: int | None) -> date | None:
    """The day for certificate and report: that of SOURCE_DATE_EPOCH, or today; none of a run that can be repeated."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if not given:
        return None if seed is not None else datetime.now(UTC).date()
    try:
        return datetime.fromtimestamp(int(given), UTC).date()
    except (ValueError, OverflowError, OSError):
        raise InputError(
            "SOURCE_DATE_EPOCH must be a number of seconds since 1970, such as 1735689600; mend it, or unset it."
        ) from None


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
