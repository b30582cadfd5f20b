"""Which AscendC calls a kernel uses, with their signatures, and what else there is.

Signatures are those of the virtual NPU's headers, which are AscendC's: what is not among them can't be run here.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from functools import cache

from ..build.libraries import VNPU
from ..build.toolkit import host_compiler

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
_COPIES = {"DataCopy": 7}  # in and out, each whole or strided, and within the Unified Buffer
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
#: What takes the place of element-wise scalar code: arithmetic, and what puts elements elsewhere.
_INSTEAD_OF_SCALARS = (
    "Add",
    "Sub",
    "Mul",
    "Muls",
    "Max",
    "Cast",
    "Compare",
    "Select",
    "GatherMask",
    "CreateVecIndex",
    "ShiftRight",
    "ReduceSum",
)
_SCALAR = re.compile(r"\b[GS]etValue\s*\(")
_OF_CUBES = re.compile(r"Nd2Nz|CO12|SliceInfo")  # overloads that only who has one already asks for
_ON_CUBE_CORES = re.compile(
    r"Data(?:Copy$|Cache)|Load|Mmad|Fix|SetFix|Init|Fill|SyncAll|Set(?:Tensor|Bias|Quant|Local|Work)|Iterate|Get\w*C$|Alloc"
)
_DEFINED = re.compile(r"\binline\s+[\w:<>,&*\s]+?\b([A-Z]\w*)\s*\([^;{}]*\)\s*(?:const\s*)?\{")


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


def api_facts(texts: Iterable[str], kind: str = "aiv") -> tuple[list[str], list[str]]:
    """Declarations of the calls in ``texts`` (C++ of a kernel) and of some that often help; the names of all others.

    ``kind``: of the cores that the kernel runs on (``aic``: cube cores alone, which have no vector instructions).

    Raises:
        ToolchainError: there is no compiler.
    """
    texts = list(texts)
    known = _known(texts, kind)
    own = {name for text in texts for name in _DEFINED.findall(text)}
    called = [
        n for n in dict.fromkeys(n for text in texts for n in _CALLED.findall(text)) if n in known and n not in own
    ]
    told = {name: _simplest(known[name], _COPIES.get(name, _OVERLOADS)) for name in called[:_USED]}
    for name in () if kind == "aic" else _OFTEN:
        told.setdefault(name, _simplest(known[name], 1, "repeatTime"))
    if kind != "aic" and any(map(_SCALAR.search, texts)):
        for name in _INSTEAD_OF_SCALARS:
            told.setdefault(name, _simplest(known[name], 1, "count"))
    return [short for listed in told.values() for short in listed], [name for name in known if name not in told]


def _known(texts: Iterable[str], kind: str) -> dict[str, tuple[str, ...]]:
    """The declarations that a kernel on such cores may use."""
    known = _signatures()
    if kind == "aic":
        return {name: all_of for name, all_of in known.items() if _ON_CUBE_CORES.match(name)}
    if any(_OF_CUBES.search(text) for text in texts):
        return known
    return {name: tuple(s for s in all_of if not _OF_CUBES.search(s)) or all_of for name, all_of in known.items()}


def _simplest(signatures: tuple[str, ...], count: int, having: str = "") -> list[str]:
    """The shortest overloads, without qualifiers, which say nothing to who calls: those with this parameter, if any."""
    plain = [_QUALIFIER.sub("", s) for s in signatures if "[]" not in s] or [_QUALIFIER.sub("", signatures[0])]
    plain.sort(key=len)
    plain = [s for s in plain if having in s] or plain
    return [s for s in plain[:count] if len(s) <= _SIGNATURE] or [f"{plain[0][:_SIGNATURE]} ..."]
