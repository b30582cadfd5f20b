"""The parameters of an operator definition (OpDef), by name and in order, read from the host source's syntax tree."""

from __future__ import annotations

import keyword
from dataclasses import dataclass
from pathlib import Path

from tree_sitter import Node

from ..errors import OperatorError
from ..sources.cpp import parse, walk

_CALLS = ("Input", "Output", "Attr")


@dataclass(frozen=True)
class OpDefinition:
    """``op_type`` is the class, as in OP_ADD; the others are names in the definition's order."""

    op_type: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attrs: tuple[str, ...]


def read_definition(text: str, file: Path) -> OpDefinition:
    """The definition in ``host_operator_src``.

    Raises:
        OperatorError: no class derives from OpDef, or a parameter's name is no literal.
    """
    source = parse("host_operator_src", text)
    for node in walk(source.tree.root_node):
        if node.type != "class_specifier":
            continue
        name = node.child_by_field_name("name")
        base = next((c for c in node.named_children if c.type == "base_class_clause"), None)
        if name is None or base is None or "OpDef" not in source.text(base):
            continue
        found: dict[str, list[str]] = {call: [] for call in _CALLS}
        for call in sorted((n for n in walk(node) if n.type == "call_expression"), key=_behind):
            method, argument = _called(call)
            if method in found:
                if argument is None or not argument.isidentifier() or keyword.iskeyword(argument):
                    line = call.start_point[0] + 1
                    raise OperatorError(
                        f"{file}: host_operator_src line {line}: the name of an {method} is no literal with a name.",
                        'Name every parameter as Input("x").',
                    )
                found[method].append(argument)
        return OpDefinition(source.text(name), *(tuple(found[call]) for call in _CALLS))
    raise OperatorError(f"{file}: host_operator_src has no class that derives from OpDef.", "It defines the operator.")


def _behind(call: Node) -> int:
    """Where the call's own arguments begin: calls of a chain stand inside one another."""
    arguments = call.child_by_field_name("arguments")
    return arguments.start_byte if arguments is not None else call.start_byte


def _called(call: Node) -> tuple[str, str | None]:
    """(method, its only argument if that is a string literal) of ``this->Input("x")``."""
    function, arguments = call.child_by_field_name("function"), call.child_by_field_name("arguments")
    field = function.child_by_field_name("field") if function is not None else None
    if field is None or arguments is None or function is None:
        return "", None
    receiver = function.child_by_field_name("argument")
    if receiver is None or receiver.type != "this":
        return "", None
    values = arguments.named_children
    literal = values[0] if len(values) == 1 and values[0].type == "string_literal" else None
    spelled = (literal.text or b"").decode()[1:-1] if literal is not None else None
    return (field.text or b"").decode(), spelled
