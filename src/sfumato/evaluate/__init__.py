"""How well a release serves its purpose: models learned from it, judged on rows it has never seen."""

from __future__ import annotations

from sfumato.evaluate.protocol import evaluate
from sfumato.evaluation import Evaluation, PairedTest, Score

__all__ = ["Evaluation", "PairedTest", "Score", "evaluate"]
