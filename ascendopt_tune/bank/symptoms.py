"""What a slow kernel shows: the retrieval key of an experience, and the query Stage II asks the bank with.

Both are the same text, made the same way: the diagnosis of the profile, then what the syntax trees show of the code
that runs again and again. Nothing in it knows of motifs; it says what is there, not what to do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from tree_sitter import Node

from ..chip import Chip
from ..diagnosis import diagnose
from ..motifs import KernelProgram
from ..motifs.api import COPY, VECTOR, reads, root, writes
from ..motifs.kernel_program import Call, loops_around
from ..profile import Profile
from ..source import walk

_QUEUE = re.compile(r"\bTQue\w*\s*<")
_REDUCTIONS = frozenset(n for n in VECTOR if "Reduce" in n)


def symptoms(profile: Profile, chip: Chip, kernel: KernelProgram) -> str:
    """The text. ``profile`` is the kernel's own, taken on ``chip``."""
    told = diagnose(profile, chip)
    also = [f.text for f in told.findings[2:]]  # the paragraph has the first two
    code = "; ".join(code_facts(kernel))
    return " ".join([told.paragraph, *(f"{text}." for text in also), f"In the code: {code}." if code else ""]).strip()


def code_facts(kernel: KernelProgram) -> Iterator[str]:
    """Short phrases on the code that runs more than once, in a fixed order."""
    calls = [c for c in kernel.calls if kernel.repeated(c.function, c.node)]
    vector = [c for c in calls if c.name in VECTOR]
    copies = [c for c in calls if c.name in COPY]
    yield from _barriers(calls, vector)
    yield from _buffers(kernel)
    yield from _scalar(kernel, calls)
    yield from _copies(kernel, copies)
    yield from _vector(kernel, vector)


def _many(n: int, what: str) -> str:
    return f"{'one' if n == 1 else 'several' if n < 6 else 'many'} {what}"


def _barriers(calls: Sequence[Call], vector: Sequence[Call]) -> Iterator[str]:
    def of(pipe: str) -> int:
        return sum(c.name in ("PipeBarrier", "pipe_barrier") and pipe in c.template + "".join(c.args) for c in calls)

    if n := of("PIPE_ALL"):
        yield _many(n, "repeated barriers of all pipes (PIPE_ALL)")
    if n := of("PIPE_V"):
        share = n / max(1, len(vector))
        how = "fewer barriers than" if share < 0.7 else "about one barrier for each of" if share < 1.3 else "more than"
        yield f"{how} the repeated vector instructions (PIPE_V)"
    if n := sum(c.name == "SetFlag" for c in calls):
        yield _many(n, "repeated flags between pipes (SetFlag, WaitFlag)")
    if n := sum(c.name in ("SyncAll", "IBSet", "IBWait") for c in calls):
        yield _many(n, "repeated meetings of cores (SyncAll)")


def _buffers(kernel: KernelProgram) -> Iterator[str]:
    """How many buffers queues get, as far as literals and named constants tell."""
    named = {c.name: c.value for c in kernel.constants}
    queues = {name for text in kernel.files.values() for name in _declared_queues(text)}
    numbers: dict[str, int] = {}
    for c in kernel.named("InitBuffer"):
        if len(c.args) == 3 and root(c.args[0]) in queues:
            number = c.args[1].strip()
            value = int(number) if number.isdecimal() else named.get(number.split("::")[-1])
            what = "unknown" if value is None else "one" if value == 1 else "two" if value == 2 else "several"
            numbers[what] = numbers.get(what, 0) + 1
    for what, n in sorted(numbers.items()):
        if what != "unknown":
            yield f"{_many(n, 'queues')} of {what}_buffer each"


def _declared_queues(text: str) -> Iterator[str]:
    for found in _QUEUE.finditer(text):
        declaration = text[found.start() : text.find(";", found.start())]
        yield from re.findall(r"\b([A-Za-z_]\w*)\b(?=\s*(?:[,\[]|$))", declaration.rpartition(">")[2])


def _scalar(kernel: KernelProgram, calls: Sequence[Call]) -> Iterator[str]:
    elements = [c for c in calls if c.name in ("GetValue", "SetValue")]
    looped = [c for c in elements if _innermost(c)]
    if looped:
        yield _many(len(looped), "element accesses in loops (GetValue, SetValue)")
    if rest := len(elements) - len(looped):
        yield _many(rest, "repeated single element accesses (GetValue, SetValue)")
    divisions = 0
    for f in kernel.functions:
        for node in walk(f.body):
            operator = node.child_by_field_name("operator") if node.type == "binary_expression" else None
            if operator is not None and kernel.text(f.path, operator) in "/%" and loops_around(node, f):
                divisions += 1
    if divisions:
        yield _many(divisions, "scalar divisions in loops")


def _innermost(call: Call) -> list[Node]:
    return loops_around(call.node, call.function)


def _depth(kernel: KernelProgram, call: Call) -> int:
    """Loops around a call: those of its function, and one more where that is called from a loop."""
    return len(_innermost(call)) + kernel.repeated(call.function, call.function.body)


def _copies(kernel: KernelProgram, copies: Sequence[Call]) -> Iterator[str]:
    padded = sum(c.name == "DataCopyPad" for c in copies)
    if padded:
        yield f"{_many(padded, 'repeated copies')} that count bytes (DataCopyPad)"
    if plain := len(copies) - padded:
        yield f"{_many(plain, 'repeated copies')} of whole blocks (DataCopy)"
    locals_ = {c.function.name for c in kernel.named("AllocTensor", "DeQue")}
    inner = [c for c in copies if c.function.name in locals_ and _innermost(c)]
    if inner:
        yield _many(len(inner), "copies in a loop inside a tile, one piece at a time")


def _vector(kernel: KernelProgram, vector: Sequence[Call]) -> Iterator[str]:
    if not vector:
        yield "no repeated vector instruction"
        return
    if n := sum(_depth(kernel, c) > 1 for c in vector):
        yield _many(n, "vector instructions in inner loops")
    facts = {
        "casts (Cast)": lambda c: c.name == "Cast",
        "fills (Duplicate)": lambda c: c.name in ("Duplicate", "CreateVecIndex"),
        "reductions": lambda c: c.name in _REDUCTIONS,
        "divisions (Div)": lambda c: c.name == "Div",
        "selections (Compare, Select, Gather)": lambda c: c.name.startswith(("Compare", "Select", "Gather")),
        "fused instructions (Axpy, MulAddDst, FusedMulAdd)": lambda c: c.name in _FUSED,
        "moves inside UB (copies, Adds 0, Muls 1)": _moves,
        "products by a scalar (Muls)": lambda c: c.name == "Muls" and not _moves(c),
    }
    for what, is_one in facts.items():
        if n := sum(map(is_one, vector)):
            yield _many(n, f"repeated {what}")
    if n := sum(_feeds(a, b) for a, b in pairwise(vector)):
        yield _many(n, "products that the next instruction adds (Mul, Add)")


_FUSED = frozenset({"Axpy", "FusedMulAdd", "FusedMulAddRelu", "MulAddDst", "AddRelu", "SubRelu", "AddReluCast"})


def _moves(call: Call) -> bool:
    """Does the instruction only move data inside UB?"""
    number = re.sub(r"static_cast<\w+>|[()fFuUT]|\.0*$", "", call.args[2]) if len(call.args) > 2 else ""
    return call.name == "Copy" or (call.name == "Adds" and number == "0") or (call.name == "Muls" and number == "1")


def _feeds(first: Call, second: Call) -> bool:
    """A product that is added by the instruction behind it."""
    product = first.name in ("Mul", "Muls") and second.name in ("Add", "Adds")
    return product and first.function == second.function and bool(writes(first) & reads(second))
