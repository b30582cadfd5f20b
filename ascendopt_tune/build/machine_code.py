"""What a kernel's machine code may do: nothing that the virtual NPU doesn't see.

Two looks, neither at the source. One at the instructions: none but what a compiler makes of plain C++ for one thread,
no jump or call to where a register says, no frame whose size is computed. The other at the compiler's own listing of
every function it makes code of, taken after it has put the checks of addresses in (vnpu/core/guard.h): no function
without checks, none with compiler options of its own, and nothing that g++ is known to leave unchecked, which is a part
of a complex number, builtin functions that store, and machine code in the source.

The instructions are known of x86-64; on another machine only the listing is looked at.
"""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ..errors import ToolchainError
from . import elf

#: Bytes of a frame: less than what lies unused behind a kernel's stack (vnpu/core/fiber.cpp).
FRAME_LIMIT = 768 << 10
_SHOWN = 3  # findings of one kind that are told

_WIDTH = "[bwlq]?"
#: What g++ makes of scalar code for x86-64 without extensions. A store is either checked before it, or its frame's own.
_X86_64 = re.compile(
    "|".join(
        (
            rf"(mov|add|sub|and|or|xor|cmp|test|adc|sbb|neg|not|inc|dec|i?mul|i?div|sh[lr]|sa[lr]|ro[lr]|rc[lr]){_WIDTH}",
            rf"(shld|shrd|lea|bt|bts|btr|btc|bsf|tzcnt|bsr|bswap|push|pop|call|ret|leave|jmp){_WIDTH}",
            r"movabs|movs[bwl][wlq]|movz[bwl][wlq]|cmov\w+|set\w+|j\w+|cltq|cqto|cltd|cwtl|cwtd|cbtw|ctw|nop[wl]?|endbr64|ud2",
            r"mov(ss|sd|[au]ps|[au]pd|dqa|dqu|d|q|hlps|lhps|[hl]p[sd]|mskp[sd])",
            r"(add|sub|mul|div|min|max|sqrt|andn?|or|xor|cmp\w*|ucomi|comi|unpck[hl]|shuf|round)[sp][sd]",
            r"cvt\w+|p(add|sub|mull|mulh|mulhu|muludq|mull|madd|avg|min|max|cmpeq|cmpgt|sll|srl|sra|and|andn|or|xor)\w*",
            r"p(unpck\w+|shuf\w+|ack\w+|insrw|extrw|movmskb|sadbw)",
            r"f(ld[stl1zcwpien2g]*|st|stp\w*|ild\w*|istp?\w*|i?addp?\w*|i?subr?p?\w*|i?mulp?\w*|i?divr?p?\w*|chs|abs|xch|u?comi?p?p?\w*"
            r"|sqrt|nstcw|nstsw|wait|rndint|cmov\w+)",
        )
    )
)
_STRINGS = re.compile(r"rep (stos|movs)")  # a structure copied or cleared; the check before covers all of it
_PREFIXES = re.compile(r"^(?:(?:data16|cs|notrack|bnd|repz(?= ret)|rep(?= ret)) )+")
_PADDING = re.compile(r"(?:(?:data16|cs) )*(?:nop[wl]?.*|xchg +%ax,%ax|ret)|")
_LINE = re.compile(r"^ +([0-9a-f]+):\t(.*)$", re.MULTILINE)
_STACK_POINTER = re.compile(r"(?:^|,)%[er]?spl?$")
_STACK_BY = re.compile(r"\$-?0x([0-9a-f]+),%rsp")
_STACK_TO = re.compile(r"-?0x([0-9a-f]{1,5})\(%(?:rbp|rsp|r10)\),%rsp")
_STACK_ALIGNED = re.compile(r"\$0xf{13,}[0-9a-f]{2,3},%rsp")


def refused_instructions(kernel: elf.Object, binary: bytes) -> list[str]:
    """What the object's instructions do and may not, in words. Raises ToolchainError without a disassembler."""
    if binary[18:20] != b"\x3e\x00":  # EM_X86_64
        return []
    found: dict[str, None] = {}
    with tempfile.NamedTemporaryFile(suffix=".o") as file:
        file.write(binary)
        file.flush()
        command = [_disassembler(), "-d", "--no-show-raw-insn", "-j", ".text", file.name]
        text = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False).stdout
    functions = [range(s.address, s.address + s.bytes) for s in kernel.symbols if s.type == elf.FUNCTION]
    within = range(0)
    for match in _LINE.finditer(text):
        address, line = int(match[1], 16), match[2].split("#")[0].strip()
        if address not in within:
            within = next((f for f in functions if address in f), range(0))
        if address not in within and not _PADDING.fullmatch(line):
            found["machine code outside of its functions"] = None
        for finding in _wrong(line):
            found[finding] = None
    return list(found)[:_SHOWN]


def _wrong(line: str) -> Iterator[str]:
    if _PADDING.fullmatch(line):
        return
    plain = _PREFIXES.sub("", line)
    name, _, operands = plain.partition(" ")
    operands = operands.split("<")[0].strip()
    if plain == "(bad)" or not (name == "" or _X86_64.fullmatch(name) or _STRINGS.match(plain)):
        yield f"the instruction {plain.split()[0] if name != 'rep' else plain}"
    elif name in ("call", "jmp") and operands.startswith("*"):
        yield "a call through a pointer (a virtual function, a pointer to a function)"
    if "%fs:" in operands or "%gs:" in operands or re.search(r"%[cdefgs]s$", operands):
        yield "memory of its thread"
    if _STACK_POINTER.search(operands) and not (
        name in ("push", "cmp", "test") or f"{name} {operands}" == "mov %rbp,%rsp" or _in_bounds(name, operands)
    ):
        yield f"a stack frame whose size is computed or larger than {FRAME_LIMIT >> 10} KiB"


def _in_bounds(name: str, operands: str) -> bool:
    """Whether the stack pointer moves by a number, within a frame's limit, or back to where the frame says."""
    if name == "and":
        return _STACK_ALIGNED.fullmatch(operands) is not None
    if name == "lea":
        moved = _STACK_TO.fullmatch(operands)
        return moved is not None and int(moved[1], 16) <= FRAME_LIMIT
    size = _STACK_BY.fullmatch(operands)
    return name.startswith(("add", "sub")) and size is not None and abs(_signed(int(size[1], 16))) <= FRAME_LIMIT


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


@functools.cache
def _disassembler() -> str:
    found = shutil.which("objdump")
    if found is None:
        raise ToolchainError(
            "objdump is not on PATH: kernels are looked at before they are loaded.",
            "Install binutils; it comes with g++.",
        )
    return found


# -- the listing ------------------------------------------------------------------------------------------------------

_HEADER = re.compile(r"^;; Function .* \((\S+?)(?:, funcdef_no=.*)?\)(?: \(.*\))?$", re.MULTILINE)
_BUILTIN = re.compile(r"\b__(?:builtin|sync|atomic)_\w+(?= \()")
#: Builtins that store nothing, or are checked: the compiler's checks are before them, or the linker wraps them.
_CHECKED = re.compile(
    r"__builtin_(?:memcpy|memmove|memset|unreachable|trap|expect\w*|constant_p|object_size|prefetch|eh_pointer|eh_filter"
    r"|unwind_resume|eh_copy_values|cxa_end_cleanup|__asan_handle_no_return|frame_address|return_address|assume_aligned|is_constant_evaluated|launder"
    r"|(?:clz|ctz|ffs|popcount|parity|clrsb)(?:l|ll|imax)?|bswap\d+|abort"
    r"|(?:huge_val|inf|nans?|signbit|is(?:nan|inf_sign|inf|finite|normal|greater|greaterequal|less|lessequal|lessgreater"
    r"|unordered)|fpclassify|copysign|f?abs|labs|llabs|sqrt|floor|ceil|trunc|round|roundeven|rint|nearbyint|l?lrint"
    r"|l?lround|i?floor|i?ceil|fm(?:a|in|ax|od)|exp[m12]*|log(?:10|1p|2|b)?|pow[i]?|a?(?:sin|cos|tan)h?|atan2|erfc?|cbrt"
    r"|hypot|[lt]gamma|ldexp|scalbl?n|remainder|modf|frexp|sincos|cexpi)(?:[fl]|f16|f32|f64|f128|f32x|f64x)?)"
)
_COMPLEX = re.compile(r"(?:REALPART|IMAGPART)_EXPR <(?!\w+(?:\(D\))?>)")
_OWN_OPTIONS = re.compile(
    r"^__attribute__\(\(.*\b(?:optimize|target\w*|no_sanitize\w*|naked|no_instrument\w*) ?[(,)]", re.MULTILINE
)
# It reads what a launch passes, which is not the kernel's. Its void** is short for one that a void* stands before.
_ENTRY = re.compile(r"_ZN4vnpu5EntryIX.*EE4callEP(?:Pv|S[0-9A-Z]*_)")


def outside_the_listing(kernel: elf.Object, listing: str) -> list[str]:
    """What the compiler's listing has and may not, and functions of the object that it doesn't have, in words."""
    found: dict[str, None] = {}
    listed = set()
    heads = list(_HEADER.finditer(listing))
    functions = [s for s in kernel.symbols if s.type == elf.FUNCTION and s.section is not None]
    there = {s.name for s in functions}
    for head, following in zip(heads, [*heads[1:], None], strict=True):
        listed.add(head[1])
        if there and head[1] not in there:  # the linker has dropped it, as what a host program beside the kernel calls
            continue
        for finding in _unchecked(listing[head.end() : following.start() if following else len(listing)]):
            found[finding] = None
    places = {s.address for s in functions if s.name in listed or _ENTRY.fullmatch(s.name)}
    for symbol in functions:
        if symbol.address not in places:  # a constructor has two names, of which one is listed
            found[f"the function {symbol.name}, which its compiler didn't check"] = None
    return list(found)[:_SHOWN]


def _unchecked(body: str) -> Iterator[str]:
    for match in _BUILTIN.finditer(body):
        if not _CHECKED.fullmatch(match[0]):
            yield f"the builtin function {match[0]}"
    if _COMPLEX.search(body):
        yield "a part of a complex number in memory"
    if "__asm__" in body:
        yield "machine code of its own"
    if _OWN_OPTIONS.search(body):
        yield "a function with compiler options of its own (optimize, target)"
    if "_ZN4vnpu" in body:
        yield "inner functions of the virtual NPU"


def read_listing(path: Path) -> str:
    """What the compiler has written to ``path`` (see ``--vnpu-listing`` in vnpu/runtime/rtc.h), and removes it."""
    text = ""
    for part in (path, path.with_name(path.name + "0")):
        if part.exists():
            text += part.read_text(encoding="utf-8", errors="replace")
            part.unlink()
    return text
