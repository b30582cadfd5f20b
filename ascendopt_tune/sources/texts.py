"""Reading an operator's sources as texts: what all that look for them here have in common."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from ..errors import OperatorError
from ..files import read_plain
from ..nouns.operator import SOURCE_LIMIT

SOURCES = (".cpp", ".cc")
HEADERS = (".h", ".hpp", ".inc", ".inl")
KERNEL_SOURCES = (".cpp", ".cc", ".asc")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
# A macro that is a number.
NUMBER = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+(\d+)[uUlL]*\s*$", re.MULTILINE)
# What registers a tiling function.
TILING = re.compile(r"\bIMPL_OP(_OPTILING)?\b|\bSetTiling\b")
_REGISTERED = re.compile(r"\bIMPL_OP(?:_OPTILING)?\s*\(\s*(\w+)\s*\)")
_OTHER_LIBRARIES = re.compile(r'"opdev/(?:make_)?op_executor\.h"|^\s*REG_OP\s*\(', re.MULTILINE)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def tilings_of(texts: Iterable[str]) -> list[str]:
    """The operators that these texts register a tiling function for by name."""
    return sorted({name for text in texts for name in _REGISTERED.findall(COMMENT.sub(" ", text))})


def read(file: Path) -> str:
    """The text of a source; OperatorError where it can't be read, or is no plain file of a size that sources have."""
    try:
        return read_plain(file, SOURCE_LIMIT).decode("utf-8-sig", errors="replace")  # its mark is none of C++'s
    except OSError as e:
        raise OperatorError(f"{file} can't be read: {e.strerror}.") from e


def is_foreign(path: Path, text: str) -> bool:
    """Hand-written aclnn interfaces and graph nodes belong to other libraries and need headers nobody else does."""
    if {"op_api", "op_graph"} & set(path.parts):
        return True
    return path.name.startswith("aclnn_") or path.stem.endswith("_l0") or bool(_OTHER_LIBRARIES.search(text))
