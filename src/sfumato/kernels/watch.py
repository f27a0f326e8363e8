"""Tells watchers how far the compiling of kernels is. It loads nothing, so a command can watch before numba is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Watcher = Callable[[int, int], None]
"""Called with the number of functions that are compiled by now, and the most that there can be."""

_watchers: list[Watcher] = []


@contextmanager
def watch_compiling(watcher: Watcher) -> Iterator[None]:
    """Have ``watcher`` called before the first function is compiled and after each one."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)


def tell(done: int, most: int) -> None:
    """Tell whoever watches."""
    for watcher in tuple(_watchers):
        watcher(done, most)
