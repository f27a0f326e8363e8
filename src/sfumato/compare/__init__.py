"""The risk-utility frontier, as a table, a picture and advice."""

from __future__ import annotations

from sfumato.compare.advice import guidance
from sfumato.compare.frontier import compare
from sfumato.compare.result import Comparison, Setting
from sfumato.compare.settings import parse_vary
from sfumato.compare.show import as_text

__all__ = ["Comparison", "Setting", "as_text", "compare", "guidance", "parse_vary"]
