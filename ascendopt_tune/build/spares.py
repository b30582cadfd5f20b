"""Sources of neighbouring operators that host programs need for a function or two.

One library of a repository holds the host programs of all its operators. What one of them inherits from a neighbour, or
calls of it, is found there by a linker; here such sources are compiled when a function that they define is missing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ..sources.texts import COMMENT, read
from .elsewhere import UNDEFINED


def defining(log: str, sources: Sequence[Path]) -> list[Path]:
    """Those of ``sources`` that define one of the functions and classes that a linker's message calls undefined."""
    wanted = [_definition(text) for text in sorted(set(UNDEFINED.findall(log)))]
    if not wanted:  # it isn't the linker that complains
        return []
    texts = {source: COMMENT.sub(" ", read(source)) for source in sources}
    return [source for source, text in texts.items() if any(w.search(text) for w in wanted)]


def _definition(symbol: str) -> re.Pattern[str]:
    """How a definition of ``a::C::f(int)``, of ``a::f(int)`` or of a class by ``vtable for a::C`` begins."""
    names = symbol.partition("(")[0].rpartition(" ")[2].split("::")
    if symbol.startswith(("vtable for ", "typeinfo for ")):
        return re.compile(rf"\b{re.escape(names[-1])}\s*::\s*~?\w+\s*\(")
    method = "::".join(names[-2:])
    free = rf"^[A-Za-z_][\w:<>&*\s]*?\b{re.escape(names[-1])}\s*\([^;{{}}]*\)\s*(?:const\s*)?{{"
    return re.compile(rf"\b{re.escape(method)}\s*\([^;{{}}]*\)[^;{{}}]*{{|{free}", re.MULTILINE)
