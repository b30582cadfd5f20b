"""What host programs miss because it stands in sources for other architectures, which are left out.

Their functions are called behind a question for the chip, so nobody calls them here; but a program has to be whole.
"""

from __future__ import annotations

import re
from collections.abc import Collection

UNDEFINED = re.compile(r"undefined reference to `([^']+)'")
_DATA = ("_ZTV", "_ZTI", "_ZTS")  # virtual tables and what is known of types at run time
_HEAD = """#include <cstdio>
#include <cstdlib>
extern "C" __attribute__((used, noreturn)) void vnpu_elsewhere() {
  std::fputs("a function of the tiling program for another architecture was called\\n", stderr);
  std::abort();
}
"""


def explains(log: str, names: Collection[str]) -> bool:
    """Is all that the linker misses, by its message, a function or class of these names?"""
    missing = {_last_name(text) for text in UNDEFINED.findall(log)}
    return bool(missing) and missing <= set(names)


def _last_name(text: str) -> str:
    """``f`` of ``a::f(int)``; ``C`` of ``vtable for a::C`` and ``a::C::~C()``."""
    name = text.partition("(")[0].rpartition(" ")[2]
    return name.rpartition("::")[2].lstrip("~")


def stubs(log: str) -> str:
    """C++ that defines the symbols of a linker's message without demangling; calling one ends the program."""
    lines = []
    for symbol in sorted(set(UNDEFINED.findall(log))):
        body = ".zero 1024" if symbol.startswith(_DATA) else "jmp vnpu_elsewhere"
        section = ".data" if symbol.startswith(_DATA) else ".text"
        lines.append(f'asm("{section}\\n.globl {symbol}\\n{symbol}: {body}\\n.text");')
    return _HEAD + "\n".join(lines) + "\n"
