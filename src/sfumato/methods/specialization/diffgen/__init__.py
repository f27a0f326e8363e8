"""DiffGen: a differentially private release for classification; why it is private: ``proof.md``, in this folder."""

from sfumato.methods.specialization.diffgen.draw import Drawn, draw

__all__ = ["Drawn", "draw"]
