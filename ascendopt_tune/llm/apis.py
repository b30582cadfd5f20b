"""Which AscendC calls a kernel uses, with their signatures, and what else there is near them.

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
_CALLED = re.compile(r"\b([A-Z]\w*)\s*(?:<[^;<>(){}]*>)?\s*\(")
_SIGNATURE, _OVERLOADS, _USED, _NEAR = 170, 2, 24, 30  # characters; of a name; names with signatures; names alone
_STEM = 4  # letters that names near each other begin or end with


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
    return {name: tuple(texts) for name, texts in found.items() if any("Tensor<" in text for text in texts)}


def api_facts(texts: Iterable[str]) -> tuple[list[str], list[str]]:
    """Declarations of the calls in ``texts`` (C++ of a kernel), the simplest overloads, and names of others like them.

    Raises:
        ToolchainError: there is no compiler.
    """
    known = _signatures()
    called = {name: None for text in texts for name in _CALLED.findall(text) if name in known}
    used = [short for name in list(called)[:_USED] for short in _simplest(known[name])]
    near = [name for name in known if name not in called and any(_alike(name, other) for other in called)]
    return used, near[:_NEAR]


def _simplest(signatures: tuple[str, ...]) -> list[str]:
    return [s for s in sorted(signatures, key=len)[:_OVERLOADS] if len(s) <= _SIGNATURE] or [
        f"{signatures[0][:_SIGNATURE]} ..."
    ]


def _alike(one: str, other: str) -> bool:
    stem = min(_STEM, len(one), len(other))
    return one[:stem] == other[:stem] or (stem == _STEM and one[-stem:] == other[-stem:])
