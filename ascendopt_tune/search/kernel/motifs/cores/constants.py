"""Tiling data as constants: a line in the kernel asks for them, the build knows them (build/constants.py)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .....build.constants import ASKED, LONGEST
from .....build.plain_structs import plain_structs
from .....sources.cpp import Edit
from ...reading.kernel_program import KernelProgram
from ..motif import Change, Motif

_LOADS = re.compile(r"\bGET_TILING_DATA(?:_WITH_STRUCT|_MEMBER)?\s*\(")
_OWN = re.compile(r"\b(?:GET_TILING_DATA(?:_WITH_STRUCT|_MEMBER)|REGISTER_TILING_DEFAULT)\s*\(\s*([\w:]+)")
_STRUCT = re.compile(r"\bBEGIN_TILING_DATA_DEF\s*\(\s*\w+\s*\)(.*?)\bEND_TILING_DATA_DEF\b", re.DOTALL)
_LIST = re.compile(r"\bTILING_DATA_FIELD_DEF_ARR\s*\(\s*(\w+)\s*,\s*(\w+)\s*,")
_FIELD = re.compile(r"\bTILING_DATA_FIELD_DEF\w*\s*\(")
_ENTRY = re.compile(r"\b__global__\b")
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include\b", re.MULTILINE)
_LINE = re.compile(rf"^[ \t]*#[ \t]*define[ \t]+{ASKED}\b[^\n]*\n", re.MULTILINE)
_BYTES = {"8": 1, "16": 2, "32": 4, "64": 8}


def _in_memory(kernel: KernelProgram, struct: str) -> bool:
    """Is a list of the struct too long to be constants, or of unknown length?"""
    host = KernelProgram(kernel.tiling).constants
    for kind, length in _LIST.findall(struct):
        count = int(length) if length.isdigit() else next((c.value for c in host if c.name == length), LONGEST + 1)
        bits = re.search(r"\d+", kind)
        if count * _BYTES.get(bits[0] if bits else "", 4) > LONGEST:
            return True
    return False


def _faster(kernel: KernelProgram) -> Iterator[Change]:
    structs = [found for text in kernel.tiling.values() for found in _STRUCT.findall(text) if _FIELD.search(found)]
    texts = kernel.files.values()
    own = {m[1].rpartition("::")[2] for text in texts for m in _OWN.finditer(text)}
    if all(_in_memory(kernel, s) for s in structs) and not own & plain_structs(kernel.files):
        return
    if any(_LINE.search(text) for text in texts) or not any(_LOADS.search(text) for text in texts):
        return  # often by a macro, which the syntax tree doesn't look into
    for path, text in sorted(kernel.files.items()):
        if _ENTRY.search(text):
            first = _INCLUDE.search(text)
            at = len(text[: first.start()].encode()) if first is not None else 0
            line = f"#define {ASKED}  // the case's tiling data, by the build\n"
            yield Change("constants", "tiling data are constants of the build", (Edit(path, at, at, line),))
            return


def _slower(kernel: KernelProgram) -> Iterator[Change]:
    for path, source in kernel.program.files.items():
        text = source.data.decode("utf-8", "replace")
        found = _LINE.search(text)
        if found is not None:
            start, end = (len(text[:at].encode()) for at in found.span())
            yield Change("constants", "tiling data are loaded in each launch", (Edit(path, start, end, ""),))
            return


CONSTANT_TILING = Motif(
    name="constant-tiling",
    title="Tiling data as constants of the build",
    description="GET_TILING_DATA copies the tiling data to UB and takes them to the stack 8 bytes at a time, and every "
    "core asks for the same address when it starts. A kernel that is compiled for one case has them as constants, as "
    "the operator compiler does for static shapes.",
    bottlenecks=("launch", "scalar", "no overlap"),
    preconditions="The pair is compiled for each case; lists in the tiling data have at most 64 bytes; no input's "
    "values decide the tiling.",
    faster=_faster,
    slower=_slower,
)
