"""What motifs make of a kernel's text, for tests."""

from __future__ import annotations

from ascendopt_tune.search.kernel.motifs import find
from ascendopt_tune.search.kernel.reading.kernel_program import KernelProgram


def after(motif: str, code: str, auto_sync: bool = False) -> list[str]:
    """The kernel with each of the motif's rewrites."""
    before = KernelProgram({"k.cpp": code}, {}, None, auto_sync)
    return [r.kernel(before)["k.cpp"] for r in find(motif).optimize(before)]
