"""Motifs of Stage II: structural rewrites of kernels, each in both directions (motif.py says what they promise)."""

from __future__ import annotations

from .barriers import FULL_BARRIER, VECTOR_BARRIER
from .kernel_program import KernelProgram
from .motif import Motif, Rewrite

MOTIFS: tuple[Motif, ...] = (FULL_BARRIER, VECTOR_BARRIER)


def find(name: str) -> Motif:
    """The motif of that name. Raises KeyError if there is none."""
    for motif in MOTIFS:
        if motif.name == name:
            return motif
    raise KeyError(name)


__all__ = ["MOTIFS", "KernelProgram", "Motif", "Rewrite", "find"]
