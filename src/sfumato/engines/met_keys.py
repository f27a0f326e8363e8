"""Which keys were met, in bounded memory: one pass over the rows, wherever they lie."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.engines.counts import STEP, Counts, Keys
from sfumato.table.spill import Spill


class MetKeys:
    """The keys below ``n_keys`` that were met, however often; see ``Counts``, which says how often.

    They stand in a table of flags if there is ``room`` for it. ``add`` and ``merge`` may come in any order.

    >>> met = MetKeys(10, room=10, spill=None)
    >>> met.add(np.array([7, 3, 7], dtype=np.uint64))
    >>> [keys.tolist() for keys in met.chunks()]
    [[3, 7]]
    """

    def __init__(self, n_keys: int, *, room: int, spill: Spill | None) -> None:
        self.n_keys, self.room, self.spill = n_keys, room, spill
        self._flags: NDArray[np.bool_] | None = None
        self._counts: Counts | None = None
        if n_keys <= room:
            self._flags = np.zeros(n_keys, dtype=np.bool_)
        else:
            self._counts = Counts.new(n_keys, room=room, spill=spill)

    def add(self, keys: Keys) -> None:
        """These were met."""
        if self._flags is not None:
            self._flags[keys] = True
        elif self._counts is not None:
            self._counts.add(keys)

    def merge(self, other: MetKeys) -> None:
        """Those of another one were met, too."""
        if self._flags is not None and other._flags is not None:
            self._flags |= other._flags
            return
        for keys in other.chunks():
            self.add(keys)

    def chunks(self, *, together: int = 1) -> Iterator[Keys]:
        """The keys, ascending and each once; those of one quotient by ``together`` are in one chunk."""
        if self._counts is not None:
            yield from (keys for keys, _ in self._counts.chunks(together=together))
        elif self._flags is not None:
            step = max(STEP // together, 1) * together
            for first in range(0, self.n_keys, step):
                found = np.flatnonzero(self._flags[first : first + step])
                if len(found):
                    yield (first + found).astype(np.uint64)

    def discard(self) -> None:
        """Remove the files: nobody will look at them again."""
        if self._counts is not None:
            self._counts.discard()

    def __getstate__(self) -> dict[str, Any]:
        """On its way to be merged, a flag is a bit."""
        flags = None if self._flags is None else np.packbits(self._flags)
        return {**self.__dict__, "_flags": flags}

    def __setstate__(self, given: dict[str, Any]) -> None:
        vars(self).update(given)
        if (bits := given["_flags"]) is not None:
            self._flags = np.unpackbits(bits, count=self.n_keys).view(np.bool_)
