"""A kernel file that binds its kernel to PyTorch, without what is PyTorch's.

Such a file has a kernel, and beside it functions over ``at::Tensor`` that launch it and macros that register them. Who
compiles the kernel alone has neither their headers nor a use for them.
"""

from __future__ import annotations

import re

_LIBRARIES = r"(?:ATen|c10|caffe2|torch|torch_npu|pybind11)"
_HEADER = re.compile(rf"^[ \t]*#[ \t]*include[ \t]*[<\"](?:{_LIBRARIES}/[^>\"\n]*|Python\.h)[>\"]", re.MULTILINE)
_THEIRS = re.compile(
    r"\b(?:at|at_npu|c10|c10_npu|torch|torch_npu|pybind11)\s*::|\b(?:TORCH|PYBIND11)_[A-Z_]+\s*\("
    r"|\busing\s+namespace\s+(?:at|c10|torch|pybind11)\s*;|=\s*(?:at|c10|torch|pybind11)\s*;"
)
_NO_CODE = re.compile(
    r"//[^\n]*|/\*.*?\*/|R\"(?P<d>[^()\s\\]{0,16})\(.*?\)(?P=d)\"|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)+'"
    r"|^[ \t]*#(?:[^\n\\]|\\\n|\\.)*",
    re.DOTALL | re.MULTILINE,
)
_BLOCK = re.compile(r"\s*(?:(?:inline\s+)?namespace\b[^;={}()]*|extern\s*)\{")  # whose insides are declarations again
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\\n|\\.)*", re.MULTILINE)


def without_torch(text: str) -> str:
    """``text`` without headers of PyTorch and without declarations that name something of it; lines keep their
    numbers. A file that includes none of these headers is as it was."""
    if not _HEADER.search(text):
        return text
    text = _HEADER.sub(lambda m: " " * len(m[0]), text)
    code = _NO_CODE.sub(lambda m: _blank(m[0]), text)
    for start, end in _declarations(code):
        if _THEIRS.search(code, start, end):
            text = text[:start] + _without_code(text[start:end]) + text[end:]
    return text


def _declarations(code: str) -> list[tuple[int, int]]:
    """Where each declaration outside of functions and types begins and ends; ``code`` has no comments and texts."""
    found = []
    start = at = depth = 0
    while at < len(code):
        char = code[at]
        if char == "{" and depth == 0 and _BLOCK.fullmatch(code, start, at + 1):
            start = at + 1
        elif char in "{(":
            depth += 1
        elif char in "})" and depth:
            depth -= 1
            if char == "}" and depth == 0:
                found.append((start, at + 1))
                start = at + 1
        elif char in "};" and depth == 0:
            found.append((start, at + 1 if char == ";" else at))
            start = at + 1
        at += 1
    return found


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def _without_code(text: str) -> str:
    """Lines without what they say, but for the preprocessor's."""
    kept, at = "", 0
    for directive in _DIRECTIVE.finditer(text):
        kept += _blank(text[at : directive.start()]) + directive[0]
        at = directive.end()
    return kept + _blank(text[at:])
