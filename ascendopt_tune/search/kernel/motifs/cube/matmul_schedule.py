"""The schedule of the high-level Matmul: several base blocks of k in one copy to L1, where its template says so.

``Matmul<A, B, C>`` has the Norm schedule, which copies a base block at a time; with ``CFG_MDL`` it copies the steps
that the tiling names (stepKa, stepKb) at once.
"""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from .....sources.cpp import walk
from ...reading.kernel_program import KernelProgram
from ..motif import Change, Motif

_OBJECTS = frozenset(["Matmul", "MatmulImpl"])
_CONFIG = 4  # which template argument says the schedule; the bias' type, in front of it, is as C's if it isn't given
_NORM, _LARGE = "CFG_NORM", "CFG_MDL"


def _objects(kernel: KernelProgram) -> Iterator[tuple[str, Node, list[Node]]]:
    """(path, the type's list of template arguments, the arguments) of each type of a Matmul object."""
    for path, source in kernel.program.files.items():
        for node in walk(source.tree.root_node):
            if node.type != "template_type":
                continue
            name, arguments = node.child_by_field_name("name"), node.child_by_field_name("arguments")
            if name is None or arguments is None or kernel.text(path, name) not in _OBJECTS:
                continue
            given = [c for c in arguments.named_children if c.type != "comment"]
            if len(given) >= _CONFIG - 1:
                yield path, arguments, given


def _says(kernel: KernelProgram, path: str, given: list[Node]) -> str:
    return kernel.text(path, given[_CONFIG]).rpartition(":")[2].strip() if len(given) > _CONFIG else _NORM


def _faster(kernel: KernelProgram) -> Iterator[Change]:
    for path, arguments, given in _objects(kernel):
        if _says(kernel, path, given) != _NORM:
            continue
        kept = [kernel.text(path, n) for n in given]
        bias = kept[_CONFIG - 1] if len(kept) >= _CONFIG else kept[_CONFIG - 2]
        whole = [*kept[: _CONFIG - 1], bias, _LARGE, *kept[_CONFIG + 1 :]]
        edit = kernel.replace(path, arguments, f"<{', '.join(whole)}>")
        yield Change(f"{path}/{_place(kernel, path, arguments)}", "Matmul copies several base blocks at once", (edit,))


def _slower(kernel: KernelProgram) -> Iterator[Change]:
    for path, arguments, given in _objects(kernel):
        if _says(kernel, path, given) == _LARGE:
            edit = kernel.replace(path, given[_CONFIG], _NORM)
            yield Change(f"{path}/{_place(kernel, path, arguments)}", "Matmul copies one base block at a time", (edit,))


def _place(kernel: KernelProgram, path: str, arguments: Node) -> str:
    """Which of the file's Matmul types this is."""
    return str(sum(p == path and a.start_byte < arguments.start_byte for p, a, _ in _objects(kernel)))


LARGE_PACKETS = Motif(
    name="large-packets",
    title="Matmul with large packets",
    description="The high-level Matmul's Norm schedule copies one base block at a time to L1, and pays the scalar unit "
    "for each; CFG_MDL copies as many along k as the tiling says at once, and the next ones beside the products.",
    bottlenecks=("waits between pipes", "copies", "small copies", "scalar", "waits between cores"),
    preconditions="The tiling's steps and depths fit L1; K isn't copied by a callback that counts on one block.",
    faster=_faster,
    slower=_slower,
)
