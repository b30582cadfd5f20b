"""What a turn reads as the end of its part, the next turn reads as the start of its own: carried over in a variable.

``for (i = a; i < b; i++) { from = offsets.GetValue(i); to = offsets.GetValue(i + 1); ... }`` reads each element twice.
The first one is read in front of the loop, and each turn hands on what it read last. Both are read in every turn; the
kernel writes neither, and names nothing else there anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from .....sources.cpp import Edit, Function, walk
from ...reading.api import root
from ...reading.counted import CountedLoop, counted_loops
from ...reading.kernel_program import KernelProgram, flat
from ...reading.steady import Steady
from ..motif import Change

_NAME = "carriedValue"
_WORD = re.compile(r"[A-Za-z_]\w*")
_ALWAYS = frozenset(  # a read below nothing but these is made whenever its statement runs
    [
        *("expression_statement", "declaration", "init_declarator", "assignment_expression", "binary_expression"),
        *("call_expression", "argument_list", "parenthesized_expression", "cast_expression", "field_expression"),
        *("unary_expression", "compound_literal_expression", "initializer_list"),
    ]
)


def carried_values(kernel: KernelProgram) -> Iterator[Change]:
    """Loops that count by ones and read the same elements as their next turn."""
    facts = kernel.once(Steady)
    for loop in counted_loops(kernel):
        alone = loop.node.parent is not None and loop.node.parent.type == "compound_statement"
        if loop.step != "1" or not alone or loop.name in _WORD.findall(loop.bound):
            continue
        f = loop.block.function
        reads = _reads(kernel, f, loop)
        for text, places in reads.items():
            later = _at(loop.name, text, f"{loop.name} + 1")
            if later in reads and _both_always(loop, places, reads[later]) and _steady(facts, f, loop, text):
                yield _carried(kernel, f, loop, text, places, reads[later])


def _at(counter: str, text: str, index: str) -> str | None:
    """A read with another index; None where the counter is more there than an addend."""
    found = list(re.finditer(rf"\b{counter}\b", text))
    if len(found) != 1:
        return None
    before, behind = text[: found[0].start()].rstrip(), text[found[0].end() :].lstrip()
    if before[-1:] not in ("(", "+", "[") or behind[:1] not in (")", "+", "]"):
        return None
    return text[: found[0].start()] + index + text[found[0].end() :]


def _reads(kernel: KernelProgram, f: Function, loop: CountedLoop) -> dict[str, list[Node]]:
    """Elements that the loop reads, by their text: of tensors by GetValue, of memory by pointer."""
    out: dict[str, list[Node]] = {}
    for node in walk(loop.block.node):
        is_read = node.type == "pointer_expression" and kernel.text(f.path, node).startswith("*(")
        if node.type == "call_expression":
            call = kernel.call_at(f, node)
            is_read = call.name == "GetValue" and len(call.args) == 1 and bool(call.receiver)
        if is_read:
            out.setdefault(flat(kernel.text(f.path, node)), []).append(node)
    return out


def _both_always(loop: CountedLoop, *reads: list[Node]) -> bool:
    """Is each of them read in every turn, whatever else is?"""

    def always(node: Node) -> bool:
        parent = node.parent
        while parent is not None and parent != loop.block.node:
            if parent.type not in _ALWAYS or any(c.type in ("&&", "||", "?") for c in parent.children):
                return False
            parent = parent.parent
        return True

    return all(any(map(always, places)) for places in reads)


def _steady(facts: Steady, f: Function, loop: CountedLoop, text: str) -> bool:
    """Does nothing in the loop write the tensor, or name anything else by what the read names?"""
    kernel = facts.kernel
    inside = list(walk(loop.block.node))
    words = set(_WORD.findall(text)) - {"this", "GetValue"}
    declared = {w for n in inside if n.type == "init_declarator" for w in _WORD.findall(kernel.text(f.path, n))[:1]}
    changed = {
        root(kernel.text(f.path, n.named_children[0]))
        for n in inside
        if n.type in ("assignment_expression", "update_expression") and n.named_children
    }
    turns = facts.turns_of(f, loop.block.node.named_children[0]) if loop.block.node.named_children else None
    if turns is None or loop.name in changed or words & (declared | changed):
        return False
    if (words - {loop.name}) & turns.assigned or _NAME in text:
        return False
    name = root(text)
    written = any(turns.hold(c.function, c.node) and facts.written(c, name) for c in kernel.calls)
    return not written and name not in (facts.stored & _global_names(kernel))


def _global_names(kernel: KernelProgram) -> set[str]:
    """Names that a global tensor is given memory under."""
    return {root(c.receiver) for c in kernel.named("SetGlobalBuffer")}


def _carried(
    kernel: KernelProgram, f: Function, loop: CountedLoop, text: str, first: list[Node], later: list[Node]
) -> Change:
    data = kernel.program.files[f.path].data.decode("utf-8", "replace")
    number = 0
    while f"{_NAME}{number}" in data:
        number += 1
    carried, this = f"{_NAME}{number}", f"{_NAME}{number}OfThis"
    begin = _at(loop.name, text, f"({loop.first})")
    asked = f"({loop.first}) < {loop.bound}"
    at = loop.block.node.start_byte + 1
    indent = kernel.indent(f.path, loop.node)
    start = f"\n{indent}  const auto {this} = {carried};\n{indent}  {carried} = {kernel.text(f.path, later[0])};"
    edits = [
        kernel.before(f.path, loop.node, f"auto {carried} = {asked} ? {begin} : 0;"),
        Edit(f.path, at, at, start),
        *(kernel.replace(f.path, n, this) for n in first),
        *(kernel.replace(f.path, n, carried) for n in later),
    ]
    change = f"{flat(text)[:60]} of {f.name} is what the turn before read last"
    return Change(f"{kernel.site(f, loop.node)}/{flat(text)[:40]}", change, tuple(edits))
