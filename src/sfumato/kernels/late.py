"""Kernels that are compiled when they are first called: whoever only imports them does not load numba.

Loading numba takes longer than most commands that need no loop over rows.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cached_property
from typing import Any


class Late:
    """A kernel that Python calls, and no other kernel does.

    ``plain`` is the same function as it is written.
    """

    def __init__(self, function: Callable[..., None]) -> None:
        self.plain = function

    @cached_property
    def _compiled(self) -> Callable[..., None]:
        from sfumato.kernels.compile import kernel  # noqa: PLC0415 - loads numba, which is put off until now

        compiled: Callable[..., None] = kernel(self.plain)
        return compiled

    @property
    def for_few(self) -> Callable[..., None]:
        """The same, to be called with few numbers: without numba it is done sooner than numba would be loaded."""
        return self if "numba" in sys.modules else self.plain

    @property
    def is_loaded(self) -> bool:
        """Whether it was called before."""
        return "_compiled" in self.__dict__

    def __call__(self, *arrays: Any) -> None:
        self._compiled(*arrays)


__all__ = ["Late"]
