"""DiffGen: a differentially private release for classification; why it is private: ``proof.md``, in this folder."""

from sfumato.methods.specialization.diffgen.draw import DrawnCuts, draw

__all__ = ["DrawnCuts", "draw"]
