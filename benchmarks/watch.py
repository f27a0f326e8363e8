"""One command, watched from outside: memory, CPU, bytes, and what it printed.

Peak memory is the process's own high-water mark (``VmHWM``), read every few milliseconds, or the memory of the
process and its children together where that is more. (What ``wait4`` calls the peak starts with the parent's.)
CPU is that of ``wait4``. Bytes are read from ``/proc/PID/io`` once the process has ended and before it is waited
for: ``asked`` are those of read and write calls, ``disk`` those that reached the disk; what the page cache or a
memory map served is in neither.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

PAGE = os.sysconf("SC_PAGE_SIZE")
TICK = 0.01
"""Seconds between two looks at the process's memory."""


@dataclass(frozen=True, slots=True)
class Watched:
    """What a command took, in seconds and bytes."""

    code: int
    wall: float
    user: float
    kernel: float
    queued: float
    peak: int
    asked_read: int
    asked_written: int
    disk_read: int
    disk_written: int
    out: str
    err: str

    @property
    def cpu(self) -> float:
        return self.user + self.kernel

    @property
    def waiting(self) -> float:
        """Wall time in which nothing of the process ran, less what its first thread stood in line for a core.

        In a process of one thread that is the wait for the disk.
        """
        return max(0.0, self.wall - self.cpu - self.queued)

    @property
    def sentence(self) -> str:
        """The last line of what it said."""
        lines = [line for line in self.err.splitlines() if line.strip()]
        return lines[-1] if lines else ""

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "cpu": self.cpu, "waiting": self.waiting}


def sfumato(*arguments: object) -> list[str]:
    """The command of the package that this Python finds."""
    return [sys.executable, "-m", "sfumato", *map(str, arguments)]


def watch(
    command: Sequence[str],
    *,
    limits: dict[int, int] | None = None,
    kill_after: float | None = None,
    environment: dict[str, str] | None = None,
) -> Watched:
    """Run ``command`` to its end, or kill it and its children after so many seconds.

    ``limits`` are of ``resource``: RLIMIT_DATA caps memory, RLIMIT_FSIZE the size of a file.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        start = time.perf_counter()
        process = subprocess.Popen(
            command,
            stdout=out,
            stderr=err,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            env=None if environment is None else os.environ | environment,
        )
        for what, most in (limits or {}).items():
            resource.prlimit(process.pid, what, (most, most))
        peak = _Peak(process.pid)
        ended = signal.signal(signal.SIGTERM, _end)
        try:
            if kill_after is not None:
                _kill_after(process.pid, kill_after, start)
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        except BaseException:
            _kill_group(process.pid)
            raise
        finally:
            signal.signal(signal.SIGTERM, ended)
            wall = time.perf_counter() - start
            peak.stop()
            moved = _io(process.pid)
            queued = _queued(process.pid)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        return Watched(
            code=process.returncode,
            wall=wall,
            user=used.ru_utime,
            kernel=used.ru_stime,
            queued=queued,
            peak=peak.most,
            asked_read=moved.get("rchar", 0),
            asked_written=moved.get("wchar", 0),
            disk_read=moved.get("read_bytes", 0),
            disk_written=moved.get("write_bytes", 0),
            out=out.read().decode(errors="replace"),
            err=err.read().decode(errors="replace"),
        )


def _end(_number: int, _frame: object) -> None:
    """Whoever ends this process ends the one that it watches."""
    raise SystemExit(1)


def _kill_after(pid: int, seconds: float, start: float) -> None:
    """SIGKILL at that moment, unless the process has ended before."""
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        left = seconds - (time.perf_counter() - start)
        if left <= 0:
            _kill_group(pid)
            return
        time.sleep(min(left, 0.005))


def _kill_group(pid: int) -> None:
    """The process that was started here, and its children: it leads a group of its own."""
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


class _Peak:
    """A thread that looks at a process's memory until it is told to stop."""

    def __init__(self, pid: int) -> None:
        self.most = 0
        self._pid = pid
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._stopped.wait(TICK):
            with suppress(OSError):
                together = sum(_resident(pid) for pid in _family(self._pid))
                self.most = max(self.most, together, _high_water(self._pid))

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()


def _family(pid: int) -> Iterator[int]:
    yield pid
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):
            for child in (task / "children").read_text(encoding="ascii").split():
                yield from _family(int(child))


def _resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * PAGE


def _high_water(pid: int) -> int:
    for text in Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace").splitlines():
        if text.startswith("VmHWM:"):
            return int(text.split()[1]) * 1024
    return 0


def _io(pid: int) -> dict[str, int]:
    try:
        text = Path(f"/proc/{pid}/io").read_text(encoding="ascii")
    except OSError:
        return {}
    return {key: int(value) for key, value in (each.split(": ") for each in text.splitlines())}


def _queued(pid: int) -> float:
    """Seconds that the first thread stood in line for a core; 0 where the kernel does not say."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[1]) / 1e9
    except (OSError, IndexError):
        return 0.0


def forget(path: Path) -> None:
    """Drop a file from the page cache, so that the next command reads it from the disk."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
