"""What a kernel takes by value: a number, or a plain struct of numbers, its own files' or the toolkit's TCubeTiling.

Programs that launch a kernel with ``<<<>>>`` often hand it its tiling data like that.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterable
from functools import cache
from typing import Any, TypeAlias

from ..errors import CaseError
from ..nouns.case import AttrValue
from ..paths import vnpu

NUMBERS: dict[str, type[ctypes._SimpleCData[Any]]] = {
    "bool": ctypes.c_bool,
    "int8_t": ctypes.c_int8, "uint8_t": ctypes.c_uint8, "int16_t": ctypes.c_int16, "uint16_t": ctypes.c_uint16,
    "int32_t": ctypes.c_int32, "int": ctypes.c_int32, "uint32_t": ctypes.c_uint32, "unsigned": ctypes.c_uint32,
    "unsigned int": ctypes.c_uint32, "int64_t": ctypes.c_int64, "uint64_t": ctypes.c_uint64, "long": ctypes.c_int64,
    "unsigned long": ctypes.c_uint64, "size_t": ctypes.c_size_t, "float": ctypes.c_float, "double": ctypes.c_double,
}  # fmt: skip
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_FIELD = re.compile(r"([\w:][\w:\s]*?)\s*\b(\w+)\s*(?:\[\s*(\d+)\s*\])?\s*(?:=[^;]*|\{[^;{}]*\})?")

ByValue: TypeAlias = "ctypes._SimpleCData[Any] | ctypes.Structure"


def by_value(name: str, c_type: str, value: AttrValue, texts: Iterable[str]) -> ByValue:
    """The value as the parameter ``name`` of a kernel takes it: a struct's are listed in its fields' order.

    ``texts``: the kernel's files.

    Raises:
        CaseError: a type that can't be passed, or another number of values than the struct has.
    """
    plain = _plain(c_type)
    if plain in NUMBERS and isinstance(value, bool | int | float):
        return NUMBERS[plain](value)
    fields = _fields(plain, texts)
    if fields is None:
        raise CaseError(
            f"parameter {name} has type {c_type}, which can't be passed by value.",
            f"Types that can: {', '.join(NUMBERS)}, structs of these that the kernel's own files define, TCubeTiling, "
            "and 0 for a pointer that is null.",
        )
    listed = value if isinstance(value, tuple) else (value,)
    wanted = sum(count or 1 for _, _, count in fields)
    if len(listed) != wanted or any(isinstance(v, str) for v in listed):
        shown = ", ".join(f"{field}[{count}]" if count else field for field, _, count in fields)
        raise CaseError(
            f"parameter {name} is a {plain} of {wanted} numbers ({shown}); {len(listed)} are given.",
            f"Write --attr {name}=1,2,3, the fields in their order.",
        )
    members = [(field, kind * count if count else kind) for field, kind, count in fields]
    made: ctypes.Structure = type(plain, (ctypes.Structure,), {"_fields_": members})()
    rest = list(listed)
    for field, kind, count in fields:
        numbers = [float(v) if kind in (ctypes.c_float, ctypes.c_double) else int(v) for v in rest[: count or 1]]
        del rest[: count or 1]
        setattr(made, field, (kind * count)(*numbers) if count else numbers[0])
    return made


def takes_value(c_type: str, texts: Iterable[str]) -> bool:
    """Is a parameter of that type a number or a struct, so that it can't be the address of a tensor?"""
    plain = _plain(c_type)
    return plain in NUMBERS or _fields(plain, texts) is not None


def _plain(c_type: str) -> str:
    words = (word for word in c_type.replace("&", " ").split() if word not in ("const", "struct"))
    return " ".join(words).rpartition("::")[2]


def _fields(name: str, texts: Iterable[str]) -> list[tuple[str, type[ctypes._SimpleCData[Any]], int]] | None:
    """(field, number, how many, 0 for one that is no list) of the struct, None where there is none that can be read."""
    bodies = [
        found[1] or found[2]
        for text in texts
        for found in re.finditer(
            rf"\bstruct\s+{re.escape(name)}\s*\{{([^{{}}]*(?:\{{[^{{}};]*\}}[^{{}}]*)*)\}}\s*;|"
            rf"\btypedef\s+struct\s*\w*\s*\{{([^{{}}]*)\}}\s*{re.escape(name)}\s*;",
            _COMMENT.sub(" ", text),
        )
    ]
    if not bodies and name == "TCubeTiling":
        return [(field, ctypes.c_int32, 0) for field in _cube_tiling()]
    if len(set(bodies)) != 1:
        return None
    fields = []
    for statement in bodies[0].split(";"):
        found = _FIELD.fullmatch(statement.strip())
        if found is None and statement.strip():
            return None
        if found is not None:
            kind = NUMBERS.get(_plain(found[1].replace("std::", "")))
            if kind is None:
                return None
            fields.append((found[2], kind, int(found[3] or 0)))
    return fields or None


@cache
def _cube_tiling() -> tuple[str, ...]:
    """The fields of the toolkit's own struct of a Matmul's tiling, whose header says FIELD(name) for each."""
    header = vnpu() / "include" / "kernel_tiling" / "cube_tiling_data.h"
    return tuple(re.findall(r"^  FIELD\((\w+)\)", header.read_text(encoding="utf-8"), re.MULTILINE))
