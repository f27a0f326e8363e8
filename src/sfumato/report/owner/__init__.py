"""The owner's report: the raw table and its release side by side, what was left out, and why.

It holds facts of the raw table, so it is for the owner alone: never a part of a release, and never put beside one.
"""

from sfumato.report.owner.page import render_owner

__all__ = ["render_owner"]
