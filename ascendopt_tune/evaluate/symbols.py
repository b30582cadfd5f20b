"""What a compiled kernel may refer to: the virtual NPU's functions, and what a compiler adds. Nothing else links it to
the process it runs in, so a candidate can neither call the system nor change the virtual NPU's options.

An object is read here, not loaded: loading runs its initializers. Layout: ELF-64 as in ``elf.h``, little endian.
"""

from __future__ import annotations

import functools
import re
import struct
from collections.abc import Iterator

from ..build.toolkit import GUARD_FUNCTIONS, kernel_functions

_POINTER = 8  # bytes; one entry of .init_array is the C runtime's own
_LIBM = (
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "copysign", "cos", "cosh", "erf",
    "erfc", "exp", "exp2", "expm1", "fabs", "floor", "fma", "fmax", "fmin", "fmod", "frexp", "hypot", "ldexp",
    "lgamma", "log", "log10", "log1p", "log2", "logb", "lrint", "lround", "modf", "nearbyint", "pow", "remainder",
    "rint", "round", "scalbn", "sin", "sincos", "sinh", "sqrt", "tan", "tanh", "tgamma", "trunc",
)  # fmt: skip
_PLAIN = frozenset(
    ("__cxa_finalize", "__gmon_start__", "_ITM_registerTMCloneTable", "_ITM_deregisterTMCloneTable",
     "_Unwind_Resume", "__gxx_personality_v0", "__stack_chk_fail", "__cxa_pure_virtual",
     *GUARD_FUNCTIONS, *_LIBM, *(f"{name}f" for name in _LIBM))
)  # fmt: skip
#: libgcc's arithmetic: conversions between types of numbers, wide products and quotients.
_ARITHMETIC = re.compile(
    r"__(?:(?:extend|trunc|float|floatun|fix|fixuns)[hsdtxbi]f?[hsdtxbi][if]2?|u?(?:div|mod|mul)[dt]i3)"
)
_VNPU = re.compile(r"_ZN4vnpu(\d+)(\w+)")


def violations(binary: bytes) -> list[str]:
    """What the kernel binary refers to and may not, in words; empty when there is nothing.

    Raises:
        ValueError: it is no shared object of this kind of machine.
    """
    found = sorted({name for name in undefined(binary) if not _allowed(name)})
    texts = [f"the function {name}" for name in found]
    if len(section(binary, ".init_array")) > _POINTER:
        texts.append("code that runs when the kernel is loaded (initializers of global variables)")
    return texts


def _allowed(name: str) -> bool:
    own = _VNPU.match(name)
    if own is not None:
        return own[2][: int(own[1])] in _machine()
    return name in _PLAIN or _ARITHMETIC.fullmatch(name) is not None


@functools.cache
def _machine() -> frozenset[str]:
    return frozenset(kernel_functions())


def undefined(binary: bytes) -> Iterator[str]:
    """Names of the dynamic symbols that the object takes from others."""
    strings, table = section(binary, ".dynstr"), section(binary, ".dynsym")
    for name, _, _, where, _, _ in struct.iter_unpack("<IBBHQQ", table[24:]):  # the first entry is empty
        if where == 0:
            yield strings[name : strings.index(b"\0", name)].decode()


def section(binary: bytes, name: str) -> bytes:
    """The section's bytes; empty when there is none. Raises ValueError for what is no ELF-64 object."""
    if binary[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not an ELF-64 object of a little-endian machine")
    try:
        (at,) = struct.unpack_from("<Q", binary, 40)
        size, count, names = struct.unpack_from("<HHH", binary, 58)
        headers = [struct.unpack_from("<IIQQQQ", binary, at + i * size) for i in range(count)]
        *_, strings, length = headers[names]
        texts = binary[strings : strings + length]
        for text, _, _, _, offset, length in headers:
            if texts[text : texts.index(b"\0", text)] == name.encode():
                return binary[offset : offset + length]
    except (struct.error, IndexError) as e:
        raise ValueError(f"a damaged ELF object: {e}") from e
    return b""
