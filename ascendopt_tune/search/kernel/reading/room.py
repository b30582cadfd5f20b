"""Room in the Unified Buffer that a kernel needs besides what its tiling program reckons with."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ....sources.cpp import Edit
from .kernel_program import KernelProgram

_ASKED = re.compile(r"\bGetCoreMemSize\s*\(\s*[\w:]*\bUB\s*,\s*([\w.>-]+)\s*\)\s*;")


def room(kernel: KernelProgram, size: int) -> Iterator[Edit]:
    """The tiling program reckons with ``size`` bytes of UB less, where it asks for the length."""
    for path, text in kernel.tiling.items():
        for found in _ASKED.finditer(text):
            at = len(text[: found.end()].encode())
            yield Edit(path, at, at, f" {found[1]} -= {size};")
