"""What a compiled kernel may be: one small rule each, on the object as it would be loaded.

Kernels run beside the virtual NPU, in one process. What links them to it are the names they refer to, what the loader
does for them, and machine code (machine_code.py). A rule names what it found in words that end the sentence "the kernel
uses what no header of AscendC offers: ...".
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from . import elf
from .libraries import GUARD_FUNCTIONS, kernel_functions
from .machine_code import outside_the_listing, refused_instructions

_LIBM = (
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "copysign", "cos", "cosh", "erf",
    "erfc", "exp", "exp2", "expm1", "fabs", "floor", "fma", "fmax", "fmin", "fmod", "hypot", "ldexp",
    "lgamma", "log", "log10", "log1p", "log2", "logb", "lrint", "lround", "nearbyint", "pow", "remainder",
    "rint", "round", "scalbn", "sin", "sinh", "sqrt", "tan", "tanh", "tgamma", "trunc",
)  # fmt: skip
_PLAIN = frozenset(("__cxa_pure_virtual", *GUARD_FUNCTIONS, *_LIBM, *(f"{name}f" for name in _LIBM)))
#: The unwinder asks it what a frame wants to be done. Calling it is another thing.
_PERSONALITY = "__gxx_personality_v0"
#: libgcc's arithmetic: conversions between types of numbers, comparisons of halves, wide products and quotients.
_ARITHMETIC = re.compile(
    r"__(?:(?:extend|trunc|float|floatun|fix|fixuns)[hsdtxbi][fi][hsdtxbi][if]2?|(?:float|floatun)[dt]i[hsdtxb]f"
    r"|(?:eq|ne|lt|le|gt|ge|unord)[hdst]f2"
    r"|u?(?:div|mod|mul|divmod)[dt]i[34]|(?:popcount|clz|ctz|ffs|parity|clrsb|bswap)[sdt]i2)"
)
_VNPU = re.compile(r"_ZN4vnpu(\d+)(\w+)")
_POINTER_RELOCATIONS = {1, 257}  # R_X86_64_64, R_AARCH64_ABS64: an address in data, as exception tables have it
_CHOOSING_RELOCATIONS = {37, 1032}  # R_X86_64_IRELATIVE, R_AARCH64_IRELATIVE: the loader calls a function for each

#: Dynamic tags whose functions the loader calls, and those that bring other objects into the process.
_RUN_TAGS = {12: "DT_INIT", 13: "DT_FINI", 25: "DT_INIT_ARRAY", 26: "DT_FINI_ARRAY", 32: "DT_PREINIT_ARRAY"}
_RUN_SECTIONS = re.compile(r"\.(init|fini|ctors|dtors|init_array|fini_array|preinit_array)(\.\d+)?")
_OTHER_TAGS = {15: "DT_RPATH", 29: "DT_RUNPATH", 22: "DT_TEXTREL", 0x6FFFFEFC: "DT_AUDIT", 0x6FFFFEFB: "DT_DEPAUDIT",
               0x7FFFFFFD: "DT_AUXILIARY", 0x7FFFFFFF: "DT_FILTER"}  # fmt: skip
_CODE_SECTIONS = (".text", ".plt", ".plt.got", ".plt.sec")


def violations(binary: bytes, listing: str | None = None) -> list[str]:
    """What the kernel binary has and may not have, in words; empty when there is nothing.

    Args:
        listing: the compiler's listing of the functions in it (machine_code.py), where it gives one.

    Raises:
        ValueError: it is no shared object of this kind of machine.
    """
    kernel = elf.read(binary)
    found = [text for rule in _RULES for text in rule(kernel)]
    found += refused_instructions(kernel, binary)
    if listing is not None:
        found += outside_the_listing(kernel, listing)
    return found


def uses_system_workspace(binary: bytes) -> bool:
    """Whether the kernel asks for the workspace that the system keeps (a library's object, GetSysWorkSpacePtr)."""
    return any("system_workspace" in s.name for s in elf.read(binary).dynamic_symbols[1:] if s.section is None)


@functools.cache
def rules_version() -> str:
    """Changes with the rules, so that what an older version found harmless is looked at again."""
    here = Path(__file__).parent
    texts = [(here / f"{name}.py").read_bytes() for name in ("elf", "machine_code", "object")]
    return hashlib.sha256(b"\0".join(texts)).hexdigest()[:16]


# -- rules ------------------------------------------------------------------------------------------------------------


def _unknown_functions(kernel: elf.Object) -> Iterator[str]:
    taken = {s.name for s in kernel.dynamic_symbols[1:] if s.section is None}
    yield from (f"the function {name}" for name in sorted(taken) if not _allowed(name) and name != _PERSONALITY)
    if any(name == _PERSONALITY and kind not in _POINTER_RELOCATIONS for kind, name in kernel.relocations):
        yield f"the function {_PERSONALITY}"


def _own_versions(kernel: elf.Object) -> Iterator[str]:
    """Its own function in the place of one that the machine answers with: the checks of its addresses, for instance."""
    for s in kernel.symbols[1:]:
        if s.section is not None and (_allowed(s.name) or s.name.startswith(("__asan_", "__wrap_"))):
            yield f"its own version of {s.name}"


def _code_at_loading(kernel: elf.Object) -> Iterator[str]:
    """Constructors, destructors, initializers of global variables: in any of the loader's lists."""
    sections = [s.name for s in kernel.sections if _RUN_SECTIONS.fullmatch(s.name) and s.bytes]
    tags = [_RUN_TAGS[tag] for tag, _ in kernel.dynamic if tag in _RUN_TAGS]
    if sections or tags:
        yield f"code that runs when the kernel is loaded or unloaded ({', '.join(sections or tags)})"


def _chosen_functions(kernel: elf.Object) -> Iterator[str]:
    symbols = (*kernel.symbols, *kernel.dynamic_symbols)
    if any(s.type == elf.CHOSEN_AT_LOADING for s in symbols) or any(
        kind in _CHOOSING_RELOCATIONS for kind, _ in kernel.relocations
    ):
        yield "a function that is chosen when the kernel is loaded (ifunc, target_clones)"


def _other_objects(kernel: elf.Object) -> Iterator[str]:
    for tag, _ in kernel.dynamic:
        if tag in _OTHER_TAGS:
            yield f"an instruction to the loader ({_OTHER_TAGS[tag]})"


def _memory_that_is_both(kernel: elf.Object) -> Iterator[str]:
    both = elf.SEGMENT_WRITABLE | elf.SEGMENT_EXECUTABLE
    if any(s.flags & both == both for s in kernel.segments):
        yield "memory that can be written and executed"


def _data_among_code(kernel: elf.Object) -> Iterator[str]:
    for section in kernel.sections:
        if section.flags & elf.EXECUTABLE and section.name not in _CODE_SECTIONS:
            yield f"code in the section {section.name}"
    for symbol in kernel.symbols:
        place = kernel.sections[symbol.section] if symbol.section is not None else None
        if place is not None and place.flags & elf.EXECUTABLE and symbol.name:
            if symbol.type == elf.DATA:
                yield f"data among its code ({symbol.name})"
            elif place.name != ".text":
                yield f"the function {symbol.name} in the section {place.name}"


_RULES: tuple[Callable[[elf.Object], Iterator[str]], ...] = (
    _unknown_functions,
    _own_versions,
    _code_at_loading,
    _chosen_functions,
    _other_objects,
    _memory_that_is_both,
    _data_among_code,
)


def _allowed(name: str) -> bool:
    own = _VNPU.match(name)
    if own is not None:
        return own[2][: int(own[1])] in _machine()
    return name in _PLAIN or _ARITHMETIC.fullmatch(name) is not None


@functools.cache
def _machine() -> frozenset[str]:
    return frozenset(kernel_functions())
