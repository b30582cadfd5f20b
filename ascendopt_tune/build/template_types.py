"""The kernel's type (which cores run it) where it is one of the template arguments that the tiling key is made of."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from ..sources.texts import COMMENT, NUMBER

_DECLARED = re.compile(r"^\s*ASCENDC_TPL_ARGS_DECL\s*\(", re.MULTILINE)
_ARGUMENT = re.compile(r"\s*ASCENDC_TPL_(\w+)_DECL\s*\((.*)\)\s*", re.DOTALL)
_WIDTH = re.compile(r"(?:ASCENDC_TPL_)?(\d+)(?:_BW)?")
_BITS = {"BOOL": 1, "DTYPE": 8, "DATATYPE": 8, "FORMAT": 8, "KERNEL_TYPE": 8}


def kernel_type_of(texts: Collection[str], key: int) -> str:
    """``KERNEL_TYPE_MIX_AIC_1_2`` or the like, as ``key`` says by ASCENDC_TPL_KERNEL_TYPE_DECL; empty where the texts
    declare no such argument, or none that the key has a value for."""
    texts = [COMMENT.sub(" ", text) for text in texts]
    for text in texts:
        for found in _DECLARED.finditer(text):
            shift = 0
            for kind, given in _arguments(text, found.end()):
                if kind == "KERNEL_TYPE":
                    code = key >> shift & 0xFF
                    named = given[1:][code : code + 1]
                    return "".join(named).replace("ASCENDC_TPL_", "KERNEL_TYPE_", 1)
                width = _bits(kind, given, texts)
                if width is None:
                    break
                shift += width
    return ""


def _bits(kind: str, given: list[str], texts: Collection[str]) -> int | None:
    """How many bits of the key an argument takes."""
    if kind != "UINT":
        return _BITS.get(kind)
    if (told := _WIDTH.fullmatch(given[1])) is not None:
        return int(told[1])
    return next((int(number) for text in texts for name, number in NUMBER.findall(text) if name == given[1]), None)


def _arguments(text: str, begin: int) -> Iterator[tuple[str, list[str]]]:
    """(kind, what is in its parentheses) of each argument that is declared from ``begin`` on."""
    parts = _split(text, begin)
    for part in parts[1:]:  # behind the operator's name
        if (found := _ARGUMENT.fullmatch(part)) is not None:
            yield found[1], [p.strip() for p in _split(found[2] + ")", 0)]


def _split(text: str, begin: int) -> list[str]:
    """What commas divide, up to the parenthesis that closes."""
    depth, start, parts = 0, begin, []
    for at in range(begin, len(text)):
        if text[at] in "([{":
            depth += 1
        elif text[at] in ")]}":
            depth -= 1
        if depth < 0 or (depth == 0 and text[at] == ","):
            parts.append(text[start:at])
            start = at + 1
        if depth < 0:
            break
    return parts
