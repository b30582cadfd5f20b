"""Which AscendC calls a kernel uses, with their signatures, and what else there is.

Signatures are those of the virtual NPU's headers, which are AscendC's: what is not among them can't be run here.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from functools import cache

from ..build.toolkit import VNPU, host_compiler

_FUNCTION = re.compile(
    r"__attribute__\(\(always_inline\)\) inline (?P<type>[\w:<>, ]+?[&*]?) "
    r"(?P<name>[A-Z]\w*)\((?P<parameters>[^{};]*?)\) \{"
)
_QUALIFIER = re.compile(r"\bconst |&|^void ")
_CALLED = re.compile(r"\b([A-Z]\w*)\s*(?:<[^;<>(){}]*>)?\s*\(")
_BOOKKEEPING = frozenset(
    ("AllocTensor", "FreeTensor", "EnQue", "DeQue", "Get", "GetWithOffset")
)  # the kernel shows them
_SIGNATURE, _OVERLOADS, _USED = 230, 4, 24  # characters; of a name; names that are used
#: What often takes the place of loops and of pairs of calls, in any kernel.
_OFTEN = (
    "MulAddDst",
    "Axpy",
    "Duplicate",
    "Brcb",
    "Copy",
    "Gather",
    "WholeReduceSum",
    "WholeReduceMax",
    "BlockReduceMax",
)


@cache
def _signatures() -> dict[str, tuple[str, ...]]:
    """By name, the declarations of what takes or gives tensors, in the order of the headers."""
    header = VNPU / "include" / "kernel_operator.h"
    command = [host_compiler(), "-E", "-P", "-std=c++17", f"-I{VNPU / 'include'}", "-x", "c++", str(header)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found: dict[str, list[str]] = {}
    for match in _FUNCTION.finditer(" ".join(done.stdout.split())):
        text = f"{match['type']} {match['name']}({' '.join(match['parameters'].split())})"
        listed = found.setdefault(match["name"], [])
        if text not in listed:
            listed.append(text)
    tensors = {name: tuple(text for text in texts if "Tensor<" in text) for name, texts in found.items()}
    return {name: texts for name, texts in tensors.items() if texts and name not in _BOOKKEEPING}


def api_facts(texts: Iterable[str]) -> tuple[list[str], list[str]]:
    """Declarations of the calls in ``texts`` (C++ of a kernel) and of some that often help; the names of all others.

    Raises:
        ToolchainError: there is no compiler.
    """
    known = _signatures()
    called = [name for name in dict.fromkeys(n for text in texts for n in _CALLED.findall(text)) if name in known]
    told = [(name, _OVERLOADS) for name in called[:_USED]] + [(name, 1) for name in _OFTEN if name not in called]
    listed = [short for name, count in told for short in _simplest(known[name], count)]
    return listed, [name for name in known if name not in dict(told)]


def _simplest(signatures: tuple[str, ...], count: int) -> list[str]:
    """The shortest overloads, in short: qualifiers say nothing to who calls. One with repeats shows the most."""
    plain = [_QUALIFIER.sub("", s) for s in signatures if "[]" not in s] or [_QUALIFIER.sub("", signatures[0])]
    plain.sort(key=len)
    if count == 1:
        plain = [s for s in plain if "repeatTime" in s] or plain
    return [s for s in plain[:count] if len(s) <= _SIGNATURE] or [f"{plain[0][:_SIGNATURE]} ..."]
