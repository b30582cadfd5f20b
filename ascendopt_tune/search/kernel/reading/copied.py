"""Copies between global memory and the Unified Buffer: which calls are some, and how many bytes one moves."""

from __future__ import annotations

import re

from .api import COPY, root
from .declared import listed
from .kernel_program import ApiCall, KernelProgram
from .steady import Steady

_INLINE = re.compile(r"(?:(?:AscendC::)?DataCopy\w*Params\s*)?[{(](.*)[})]", re.DOTALL)
_ONE = re.compile(r"(?:static_cast<\w+>\(|\(\w+\))?\(?1U?\)*")


def is_copy(facts: Steady, call: ApiCall) -> bool:
    """Is it a copy, or a function that is given where to, where from and how many elements, and copies them?

    What else such a function could be given is left at what it is by default.
    """
    if call.name in COPY:
        return True
    of = [g for g in facts.own.get(call.name, ()) if len(g.parameters) >= len(call.args) == 3]
    return bool(of) and all(
        any(
            c.name in COPY and [root(a) for a in c.args[:2]] == list(g.parameters[:2]) for c in facts.kernel.calls_of(g)
        )
        for g in of
    )


def bytes_of(kernel: KernelProgram, call: ApiCall, kind: str) -> str | None:
    """Bytes of a copy of one block, an expression; None for others. ``kind``: the type of its elements."""
    if len(call.args) < 3:
        return None
    third, files = call.args[2].strip(), kernel.files[call.path]
    if call.name not in COPY:
        return f"({third}) * sizeof({kind})"
    if call.name == "DataCopy":
        structure = re.search(r"Params|^\{", third) or re.search(rf"Params\s+{re.escape(third)}\b", files)
        return f"({third}) * sizeof({kind})" if len(call.args) == 3 and not structure else None
    inline = _INLINE.fullmatch(third)
    if inline is not None:
        fields = listed(inline[1])
        return fields[1] if len(fields) > 3 and _ONE.fullmatch(fields[0]) else None
    name = re.escape(third.removeprefix("this->"))
    given = re.compile(
        rf"(?<![\w.]){name}\b\s*=?\s*(?:[\w:]+\s*)?[{{(]([^;{{}}]*)[)}}]\s*;|{name}\.blockCount\s*=([^;]*);"
    )
    for text in (kernel.text(call.path, call.function.node), files):
        counts = [listed(m[1])[0] if m[1] else m[2] for m in given.finditer(text)]
        if counts:
            return f"{third}.blockLen" if all(_ONE.fullmatch(c.strip()) for c in counts) else None
    return None
