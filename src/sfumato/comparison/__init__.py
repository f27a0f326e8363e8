"""Comparison of settings: the risk and the utility of each, as a table, a picture and advice on which to choose.

``frontier`` has :func:`compare`, ``settings`` what can be varied, ``result`` what comes back; ``show``, ``picture`` and
``write`` present it, ``advice`` chooses.
"""

from __future__ import annotations

from sfumato.comparison.advice import guidance
from sfumato.comparison.frontier import compare
from sfumato.comparison.result import Comparison, Setting
from sfumato.comparison.settings import parse_vary
from sfumato.comparison.show import as_text

__all__ = ["Comparison", "Setting", "as_text", "compare", "guidance", "parse_vary"]
