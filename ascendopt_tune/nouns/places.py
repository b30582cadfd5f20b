"""Files in messages, for readers who don't have this machine."""

from __future__ import annotations

import re

_ABSOLUTE = re.compile(r"(?<![\w.])/(?:[\w.+-]+/)+([\w.+-]+)")  # a path, and the file's name in it
_OWN = re.compile(r"(?<![\w.])/(?:[\w.+-]+/)+?(op_(?:host|kernel)/)")  # a file of an operator's folder


def without_paths(text: str) -> str:
    """Names the operator's files from its folder on (``op_kernel/...``), others by their names alone."""
    return _ABSOLUTE.sub(r"\1", _OWN.sub(r"\1", text))
