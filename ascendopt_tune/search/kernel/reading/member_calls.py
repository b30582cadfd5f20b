"""Calls that name a member of a class, such as a queue, and edits of them and of its declaration."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from tree_sitter import Node

from ....sources.cpp import Edit, Function, walk
from .classes import Members, family_members
from .kernel_program import ApiCall, KernelProgram

_TAKEN = re.compile(r"(?:[^=;]*\bLocalTensor\s*<[^;=]*>\s*|auto\s+)?(?:this->)?(\w+)\s*=[^=].*", re.DOTALL)
_NAMES = ("identifier", "field_identifier")


def _last(name: str) -> str:
    return name.removeprefix("this->")


def member_uses(kernel: KernelProgram, own: Iterable[Function], name: str) -> list[ApiCall] | None:
    """The calls that name a member; None where it is named otherwise."""
    out: list[ApiCall] = []
    for f in own:
        for node in walk(f.body):
            if node.type not in _NAMES or kernel.text(f.path, node) != name:
                continue
            call = _call_around(kernel, f, node)
            if call is None or not (_last(call.receiver) == name or _last(call.args[0] if call.args else "") == name):
                return None
            out.append(call)
    return out


def _call_around(kernel: KernelProgram, f: Function, node: Node) -> ApiCall | None:
    while node.type != "call_expression":
        if node.parent is None or node.type in ("expression_statement", "compound_statement", "declaration"):
            return None
        node = node.parent
    return kernel.call_at(f, node)


def members_of_type(kernel: KernelProgram, of_type: re.Pattern[str]) -> Iterator[tuple[Members, str, list[Function]]]:
    for line, once, own in family_members(kernel, of_type):
        for name in (n for n in line.names if n in once):
            yield line, name, own


def statement_of(node: Node) -> Node:
    while node.parent is not None and node.parent.type not in ("compound_statement", "else_clause", "if_statement"):
        node = node.parent
    return node


def taken_as(kernel: KernelProgram, taken: ApiCall) -> str | None:
    """The name that a tensor is taken under: the only one of its statement."""
    found = _TAKEN.fullmatch(kernel.text(taken.path, statement_of(taken.node)))
    return found[1] if found is not None else None


def declared_as(kernel: KernelProgram, line: Members, names: Iterable[str], kind: str) -> Edit:
    """Some of the members of a line declared as of another type."""
    other = [n for n in line.names if n in names]
    if len(other) == len(line.names):
        return kernel.replace(line.path, line.type, kind)
    rest = ", ".join(n for n in line.names if n not in other)
    space = kernel.indent(line.path, line.node)
    text = f"{kernel.text(line.path, line.type)} {rest};\n{space}{kind} {', '.join(other)};"
    return kernel.replace(line.path, line.node, text)


def renamed(kernel: KernelProgram, call: ApiCall, name: str) -> Edit:
    called = call.node.child_by_field_name("function")
    node = next(n for n in walk(called or call.node) if n.type in _NAMES and kernel.text(call.path, n) == call.name)
    return kernel.replace(call.path, node, name)
