"""Where things lie and who takes them: bank groups in UB, alignment in global memory, how many cores work."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from ....sources.cpp import Edit, program_of, walk
from .kernel_program import ApiCall, KernelProgram
from .motif import Change, Motif

_ROUND = re.compile(r"\(\((.*)\) \+ 511\) / 512 \* 512", re.DOTALL)
_SHIFT = " + 32"  # bytes: the next bank group
_CUBE = re.compile(r"\bT(?:Que|QueBind|Buf)\s*<[^>]*\b(?:A1|A2|B1|B2|C1|C2|CO1|CO2|TSCM)\b")


# -- bank groups -------------------------------------------------------------------------------------------------------


def _buffers(kernel: KernelProgram) -> list[ApiCall]:
    """Calls that give a queue or a buffer its bytes in the Unified Buffer."""
    elsewhere = _of_cube_cores(kernel)
    return [c for c in kernel.named("InitBuffer") if len(c.args) in (2, 3) and c.args[0] not in elsewhere]


def _of_cube_cores(kernel: KernelProgram) -> set[str]:
    """Names of queues and buffers that are declared at a position of a cube core: ``TQue<TPosition::A1, 2> a1``."""
    names = set()
    for source in kernel.program.files.values():
        for node in walk(source.tree.root_node):
            kind = node.child_by_field_name("type") if node.type in ("field_declaration", "declaration") else None
            if kind is not None and _CUBE.search(source.text(kind)):
                names |= {source.text(n) for n in node.children_by_field_name("declarator")}
    return names


def _sized(kernel: KernelProgram, call: ApiCall, text: str) -> Edit:
    return kernel.replace(call.path, call.arguments[-1], text)


def _banks_faster(kernel: KernelProgram) -> Iterator[Change]:
    calls = _buffers(kernel)
    rounded = [(c, m[1]) for c in calls if (m := _ROUND.fullmatch(c.args[-1]))]
    shifted = any(c.args[-1].endswith(_SHIFT) for c in calls)
    plain = [(c, f"{_summand(c.args[-1])}{_SHIFT}") for c in calls if not rounded and not shifted]
    for site, found, what in (("whole", rounded, "no longer rounded up"), ("shift", plain, "32 bytes longer")):
        for part, chosen in (("each", found), ("second", found[1::2])):
            if chosen:
                edits = tuple(_sized(kernel, c, size) for c, size in chosen)
                yield Change(f"{site}/{part}", f"{len(chosen)} of {len(calls)} buffers {what}", edits)


def _banks_slower(kernel: KernelProgram) -> Iterator[Change]:
    calls = [c for c in _buffers(kernel) if not _ROUND.fullmatch(c.args[-1])]
    edits = []
    for c in calls:
        size = c.args[-1].removesuffix(_SHIFT)
        edits.append(_sized(kernel, c, f"(({size}) + 511) / 512 * 512"))
    if len(calls) > 1:
        yield Change("all", f"{len(calls)} buffers start in the same bank group", tuple(edits))


def _summand(text: str) -> str:
    return text if re.fullmatch(r"[\w\s*+().>:-]+", text) else f"({text})"


# -- the tiling program's numbers --------------------------------------------------------------------------------------


def _host_nodes(kernel: KernelProgram, kind: str) -> Iterator[tuple[str, Node, str]]:
    program = program_of(kernel.tiling)
    for path, source in program.files.items():
        for node in walk(source.tree.root_node):
            if node.type == kind:
                yield path, node, source.text(node)


def _tiling_change(site: str, change: str, edits: list[Edit]) -> Iterator[Change]:
    if edits:
        yield Change(site, change, (), tuple(edits))


def _alignments(kernel: KernelProgram, numbers: tuple[int, ...]) -> Iterator[tuple[str, Node, int]]:
    """Literals of the tiling program that something is rounded to, with the name or the expression saying so."""
    for path, node, text in _host_nodes(kernel, "number_literal"):
        found = re.fullmatch(r"(\d+)[uUlL]*", text)
        if found is None or int(found[1]) not in numbers or node.parent is None:
            continue
        around = program_of(kernel.tiling).files[path].text(node.parent)
        if re.search(r"align|block_?(size|bytes)|BYTE", around, re.IGNORECASE):
            yield path, node, int(found[1])


def _alignment_faster(kernel: KernelProgram) -> Iterator[Change]:
    for path, node, number in _alignments(kernel, (32,)):
        edit = Edit(path, node.start_byte, node.end_byte, "512")
        line = f"{path}:{program_of(kernel.tiling).files[path].text(node.parent or node)[:40]}"
        yield Change(line, f"cores start at multiples of 512 bytes, not of {number}", (), (edit,))


def _alignment_slower(kernel: KernelProgram) -> Iterator[Change]:
    edits = [Edit(path, n.start_byte, n.end_byte, "32") for path, n, _ in _alignments(kernel, (256, 512))]
    yield from _tiling_change("alignment", "cores start at multiples of 32 bytes", edits)


BANK_GROUPS = Motif(
    name="bank-groups",
    title="Operands in different bank groups",
    description="Two operands of one instruction that start in the same of UB's 16 bank groups (address bits 5 to 8) "
    "are read one after the other. Buffers of 32 bytes more shift the ones behind them into other groups.",
    bottlenecks=("bank conflicts", "vector"),
    preconditions="UB has room for the bytes in between.",
    faster=_banks_faster,
    slower=_banks_slower,
    together="no",
)

ALIGNMENT_512 = Motif(
    name="alignment-512",
    title="Cores start at multiples of 512 bytes",
    description="Global memory is handled in windows of 512 bytes. A core whose part starts inside of one pays for "
    "two; parts that are multiples of 512 bytes pay once.",
    bottlenecks=("memory bandwidth", "copies", "small copies"),
    preconditions="The number is used to round parts of global memory, not sizes in UB.",
    faster=_alignment_faster,
    slower=_alignment_slower,
    together="no",
)
