"""Where cores' parts lie in global memory."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from .....sources.cpp import Edit, program_of, walk
from ...reading.kernel_program import KernelProgram
from ..motif import Change, Motif


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
