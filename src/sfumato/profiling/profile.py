"""``sfumato profile``: look at any table and draft a policy for it."""

from __future__ import annotations

from typing import Any

from sfumato.profiling.draft import PolicyDraft
from sfumato.profiling.private import PrivateDraft, private_draft_of
from sfumato.profiling.settle import draft_of, first_draft_of
from sfumato.progress import Progress, no_progress, showing
from sfumato.table.reading import AS_USUAL, Reading, open_undeclared


def profile(
    table: Any, *, private: bool = False, reading: Reading = AS_USUAL, progress: Progress | bool = no_progress
) -> PolicyDraft | PrivateDraft:
    """Draft a policy for a table (a path or a frame), each guess with its reason.

    Read ``draft.to_yaml()``, which is what ``sfumato profile`` writes, before you publish with ``draft.policy()``.

    ``private``: draft a policy for a private release (DiffGen). It holds bounds and values that were read from the
    table: replace them by public knowledge.

    ``reading``: how the text of the table is written. ``progress``: True shows how far the run is.

    >>> import pyarrow as pa
    >>> profile(pa.table({"age": [31, 31, 45, 45, 60], "disease": ["a", "b", "a", "b", "a"]}))
    <Draft of a policy for 5 rows: 1 quasi-identifier, 1 sensitive>
    """
    with showing(progress) as told:
        source, known = open_undeclared(table, reading)
        if private:
            return private_draft_of(first_draft_of(source, known, told), source)
        return draft_of(source, known, told)


__all__ = ["PolicyDraft", "PrivateDraft", "profile"]
