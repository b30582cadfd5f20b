"""An element that each turn of a loop reads and sets again: kept in a variable, and set once behind the loop."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from .....sources.cpp import Function, walk
from ...reading.api import root
from ...reading.kernel_program import LOOPS, ApiCall, KernelProgram, flat
from ..motif import Change

_KEPT = "keptElement"
_WORD = re.compile(r"[A-Za-z_]\w*")
_SETS = ("assignment_expression", "update_expression", "init_declarator")
_Element = tuple[str, str]  # tensor, index


def kept_elements(kernel: KernelProgram) -> Iterator[Change]:
    """Loops of the scalar unit alone, as far as that tensor is concerned; the innermost ones."""
    for f in kernel.functions:
        for loop in walk(f.body):
            if loop.type not in LOOPS or loop.parent is None or loop.parent.type != "compound_statement":
                continue
            inside = list(walk(loop))
            if any(n.type == "return_statement" or (n.type in LOOPS and n != loop) for n in inside):
                continue
            calls = [kernel.call_at(f, n) for n in inside if n.type == "call_expression"]
            for element, (reads, sets) in _elements(calls).items():
                if reads and sets and _is_fixed(kernel, f, inside, element) and _alone(calls, inside, element):
                    yield _kept(kernel, f, loop, element, reads, sets)


def _elements(calls: list[ApiCall]) -> dict[_Element, tuple[list[ApiCall], list[ApiCall]]]:
    """The elements that are read and set, and where."""
    out: dict[_Element, tuple[list[ApiCall], list[ApiCall]]] = {}
    for call in calls:
        if call.name in ("GetValue", "SetValue") and call.args and call.receiver:
            read_or_set = out.setdefault((call.receiver, flat(call.args[0])), ([], []))
            read_or_set[call.name == "SetValue"].append(call)
    return out


def _is_fixed(kernel: KernelProgram, f: Function, inside: list[Node], element: _Element) -> bool:
    """Is it the same element in each turn?"""
    names = set(_WORD.findall(" ".join(element)))
    if "(" in element[1]:
        return False
    for node in inside:
        if node.type in _SETS and node.named_children:
            left = node.named_children[0]
            if root(kernel.text(f.path, left).removeprefix("this->")) in names:
                return False
    return True


def _alone(calls: list[ApiCall], inside: list[Node], element: _Element) -> bool:
    """Does nothing else in the loop set anything of the tensor, nor have to do with it but for reading values?"""
    tensor = root(element[0].removeprefix("this->"))
    known = 0
    for call in calls:
        if call.name in ("GetValue", "SetValue") and root(call.receiver.removeprefix("this->")) == tensor:
            if call.name == "SetValue" and (call.receiver != element[0] or flat(call.args[0]) != element[1]):
                return False
            if call.name == "SetValue" and (call.statement is None or len(call.args) != 2):
                return False
            known += 1
    named = [n for n in inside if n.type in ("identifier", "field_identifier") and (n.text or b"").decode() == tensor]
    return len(named) == known


def _kept(
    kernel: KernelProgram, f: Function, loop: Node, element: _Element, reads: list[ApiCall], sets: list[ApiCall]
) -> Change:
    tensor, index = element
    edits = [kernel.replace(f.path, c.node, _KEPT) for c in reads if not _within(c.node, sets)]
    for call in sets:
        assert call.statement is not None
        value = call.arguments[1]
        text = kernel.text(f.path, value)
        for node in sorted((c.node for c in reads if _within(c.node, [call])), key=lambda n: -n.start_byte):
            start, end = node.start_byte - value.start_byte, node.end_byte - value.start_byte
            whole = text.encode()
            text = (whole[:start] + _KEPT.encode() + whole[end:]).decode()
        edits.append(kernel.replace(f.path, call.statement, f"{_KEPT} = {text};"))
    edits.append(kernel.before(f.path, loop, f"{{ auto {_KEPT} = {tensor}.GetValue({index});"))
    edits.append(kernel.after(f.path, loop, f"{tensor}.SetValue({index}, {_KEPT}); }}"))
    change = f"{tensor}[{index}] in {f.name} kept over the turns of a loop"
    return Change(f"{kernel.site(f, loop)}/{tensor}[{index}]", change, tuple(edits))


def _within(node: Node, calls: list[ApiCall]) -> bool:
    return any(c.node.start_byte <= node.start_byte and node.end_byte <= c.node.end_byte for c in calls)
