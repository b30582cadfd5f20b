"""How a number is used in its expression: what tells a buffer count from an alignment without knowing its name.

``usage`` climbs from the number (or from a constant's name) to the operator that takes it and returns a label:
``divides``, ``numerator``, ``multiplies``, ``modulus``, ``subtracts``, ``adds``, ``threshold``, ``equality``,
``bound`` (min/max), ``align``, ``divisor`` (ceil/div helpers), ``argument``, ``direct`` (assigned, passed or returned
as it is), ``direct:<sink>``, ``index`` and ``fact`` (an argument of a query). Where the other operand carries a tag (UB
size, core count) it is appended: ``divides:ub``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from ...sources.cpp import Function
from .flow import Flow

_THROUGH = ("parenthesized_expression", "cast_expression", "condition_clause")
_OPERATORS = {"*": "multiplies", "%": "modulus", "+": "adds", "-": "subtracts", "/": "divides"}


def integer(text: str) -> int | None:
    """The value of an integer expression of literals (``16 * 1024``, ``0x20u``, ``size_t(8)`` by cast), or None."""
    plain = re.sub(r"static_cast\s*<[^<>]*>|\(\s*(?:u?int\d*_t|size_t|int|unsigned)\s*\)|'", "", text)
    plain = re.sub(r"\b(0[xX][0-9a-fA-F]+|\d+)[uUlL]*\b", r"\1", plain).strip().strip("{}").strip()
    if not re.fullmatch(r"(?:0[xX][0-9a-fA-F]+|\d+|[\s()*+-]|<<)+", plain) or not re.search(r"\d", plain):
        return None
    total: int | None = None
    for term in re.sub(r"[()]", "", plain).split("*"):  # products (and one shift) are all that constants use
        parts = term.split("<<")
        if not all(re.fullmatch(r"\s*(?:0[xX][0-9a-fA-F]+|\d+)\s*", p) for p in parts) or len(parts) > 2:
            return None
        value = int(parts[0].strip(), 0 if "x" in parts[0].lower() else 10)
        value <<= int(parts[1]) if len(parts) == 2 and int(parts[1]) < 40 else 0
        total = value if total is None else total * value
    return total


def _tagged(flow: Flow, path: str, label: str, other: Node | None, function: Function | None) -> str:
    if other is None:
        return label
    tags = flow.expression_tags(path, other, function)
    return f"{label}:ub" if "ub" in tags else f"{label}:core" if tags == {"core"} else label


def usage(flow: Flow, path: str, node: Node, function: Function | None) -> Iterator[str]:
    """The labels of one use (usually one label)."""
    while (parent := node.parent) is not None:
        if parent.type == "argument_list":
            call = parent.parent
            if call is None or call.type != "call_expression":
                yield "direct"
                return
            label = _argument_label(flow, path, call, parent.named_children.index(node), function)
            if label:
                yield label
                return
            node = call
        elif _passes_on(parent, node):
            node = parent
        else:
            yield from _taken(flow, path, parent, node, function)
            return


def _passes_on(parent: Node, node: Node) -> bool:
    """Whether ``parent`` has the value of ``node``, so that what takes it is further up."""
    if parent.type == "conditional_expression":
        return parent.child_by_field_name("condition") != node
    return parent.type in _THROUGH or (parent.type == "initializer_list" and len(parent.named_children) == 1)


_TAKES = {
    "init_declarator": "direct",
    "field_declaration": "direct",
    "return_statement": "direct",
    "preproc_def": "direct",
    "subscript_argument_list": "index",
    "case_statement": "equality",
}


def _taken(flow: Flow, path: str, parent: Node, node: Node, function: Function | None) -> Iterator[str]:
    """Labels by what ``parent`` does with ``node``."""
    if parent.type == "binary_expression":
        yield from _operand_labels(flow, path, parent, node, function)
    elif parent.type == "assignment_expression":
        if parent.child_by_field_name("right") == node:
            operator, left = _operator(flow, path, parent, "="), parent.child_by_field_name("left")
            label = _OPERATORS.get(operator[0], "other")
            yield "direct" if operator == "=" else _tagged(flow, path, label, left, function)
    elif parent.type in _TAKES:
        yield _TAKES[parent.type]


def _operator(flow: Flow, path: str, node: Node, default: str) -> str:
    operator = node.child_by_field_name("operator")
    return flow.program.text(path, operator) if operator is not None else default


def _operand_labels(flow: Flow, path: str, parent: Node, node: Node, function: Function | None) -> Iterator[str]:
    left, right = parent.child_by_field_name("left"), parent.child_by_field_name("right")
    operator, on_right = _operator(flow, path, parent, ""), right == node
    other = left if on_right else right
    if operator in ("==", "!="):
        yield "equality"
    elif operator in ("<", ">", "<=", ">="):
        yield _tagged(flow, path, "threshold", other, function)
    elif operator == "/" and not on_right:
        yield _tagged(flow, path, "numerator", right, function)
    elif operator in _OPERATORS and (on_right or operator in "*+"):
        yield _tagged(flow, path, _OPERATORS[operator], other, function)
        if operator == "*" and _divides_ub(flow, path, parent, function):
            yield "divides:ub"


def _divides_ub(flow: Flow, path: str, node: Node, function: Function | None, variables: int = 1) -> bool:
    """Does the term end up in the divisor of a quantity of UB bytes, directly or through ``variables`` variables?"""
    while (parent := node.parent) is not None:
        operator = _operator(flow, path, parent, "=")
        if parent.type == "binary_expression" and operator == "/" and parent.child_by_field_name("right") == node:
            left = parent.child_by_field_name("left")
            return left is not None and "ub" in flow.expression_tags(path, left, function)
        if parent.type in ("init_declarator", "assignment_expression") and operator == "=" and variables > 0:
            target = parent.child_by_field_name("declarator") or parent.child_by_field_name("left")
            key = flow.target(path, target, function)
            uses = flow.uses.get(key, []) if key is not None else []
            return any(_divides_ub(flow, q, use, f, variables - 1) for q, use, f in uses)
        if parent.type not in _THROUGH and not (parent.type == "binary_expression" and operator in "*+"):
            return False
        node = parent
    return False


def _argument_label(flow: Flow, path: str, call: Node, position: int, function: Function | None) -> str:
    """Label of argument ``position`` of ``call``; "" when the call only converts its argument."""
    name = flow.called(path, call)
    if name in ("static_cast", "uint32_t", "uint64_t", "int64_t", "int32_t", "size_t"):
        return ""
    callee = call.child_by_field_name("function")
    for sink in flow.sinks:
        if sink.path == path and sink.value.parent == call.child_by_field_name("arguments"):
            return "direct:" + sink.kind
    if callee is not None and callee.type == "template_function" and "_cast" in flow.program.text(path, callee):
        return ""
    if name in ("min", "max"):
        arguments = call.child_by_field_name("arguments")
        others = [a for i, a in enumerate(arguments.named_children) if i != position] if arguments is not None else []
        return _tagged(flow, path, "bound", others[0] if others else None, function)
    if callee is not None and callee.type == "field_expression" and name not in flow._by_name:
        return "fact"
    if position >= 1 and re.search("align|floor|round", name, re.IGNORECASE):
        return "align"
    if position >= 1 and re.search("ceil|div", name, re.IGNORECASE):
        return "divisor"
    return "argument"
