"""Differentially private sampling by risk and utility; why it is private: ``proof.md``, in this folder."""
