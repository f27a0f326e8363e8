"""Keeps out packages that others import only to see whether they are there.

Arrow imports pandas when cells first become an array, in case they are to be pandas' own; numba imports the linear
algebra of scipy, in case a kernel multiplies matrices. Together they are a quarter of the start of a command, which
hands no frames to Arrow, and whose kernels work without scipy. Whoever else asks for these packages gets them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType

IN_VAIN = {"pandas": ("sfumato", "pyarrow"), "scipy": ("numba",), "scipy.linalg": ("numba",)}
"""Packages, and those whose code asks for them in vain. Arrow's own is compiled: its caller seems to ask."""


class _Absent(MetaPathFinder):
    """Finds nothing; says that a package is not there to whoever would ask in vain."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002 - finders are asked so
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> None:
        if fullname in IN_VAIN and _asker() in IN_VAIN[fullname]:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


def _asker() -> str:
    """The package whose code is about to import something."""
    frame = sys._getframe(2)  # noqa: SLF001 - the only way to see who asks
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("importlib"):
        frame = frame.f_back
    name: str = frame.f_globals.get("__name__", "")
    return name.partition(".")[0]


def keep_absent() -> None:
    """For a process of our own: a notebook may have other plans."""
    sys.meta_path.insert(0, _Absent())
