"""Places that a loop's counter moves by the same step each turn: ``x[base + i * stride]``, however that is written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tree_sitter import Node

from ....sources.cpp import parse

_WORD = re.compile(r"[A-Za-z_]\w*")
_SUM, _PRODUCT = ("+", "-"), "*"
_CAST = re.compile(r"static_cast<[\w:\s]+>|(?:unsigned|u?int(?:8|16|32|64)_t|int|long|size_t)")
_WIDE = re.compile(r"\b(?:u?int64_t|size_t|long)\b")


@dataclass(frozen=True)
class AffinePlace:
    """``tensor[start]`` in the first turn; each turn is ``step`` elements further. Expressions are texts."""

    tensor: str
    start: str
    step: str


def affine(operand: str, counter: str, first: str, names: Mapping[str, str]) -> AffinePlace | None:
    """The operand as a place that moves with ``counter``, from ``first`` on; None if it stays, or moves unevenly.

    ``names``: variables of the turn and what they are set to, in terms of the counter.
    """
    tensor, index = indexed(operand)
    varying = {counter, *names}
    if index is None or varying & set(_WORD.findall(tensor)):
        return None
    expression = _expression(resolved(index, names))
    if expression is None or not _mentions(expression, counter) or not _is_affine(expression, counter):
        return None
    step = _step(expression, counter)
    parts = [p for p in (_at_zero(expression, counter), f"({first}) * ({step})" if first != "0" else "") if p]
    return AffinePlace(tensor, " + ".join(parts) or "0", step)


def indexed(operand: str) -> tuple[str, str | None]:
    """``x`` and ``e`` of ``x[e]``, the last brackets; None for an operand without any."""
    if not operand.endswith("]"):
        return operand, None
    depth = 0
    for at_ in range(len(operand) - 1, -1, -1):
        depth += (operand[at_] == "]") - (operand[at_] == "[")
        if depth == 0:
            return operand[:at_].strip(), operand[at_ + 1 : -1].strip()
    return operand, None


def resolved(text: str, names: Mapping[str, str]) -> str:
    """The expression with the turn's variables replaced by what they are set to."""
    for name, value in reversed(list(names.items())):
        text = at(text, name, value)
    return text


def at(text: str, name: str, value: str) -> str:
    """The expression with ``value`` for a variable (not for a member of that name)."""
    # A name in parentheses in front of * or & would be read as a type.
    written = value if re.fullmatch(r"(?:this->)?\w+", value) else f"({value})"
    return re.sub(rf"(?<![.\w])(?<!->){re.escape(name)}\b", lambda _: written, text)


def fixed(text: str, counter: str, names: Mapping[str, str]) -> bool:
    """Is the expression the same in every turn?"""
    return {counter, *names}.isdisjoint(_WORD.findall(text))


def _expression(text: str) -> Node | None:
    """The syntax tree of an expression; None if it isn't one."""
    root = parse("expression.cpp", f"auto value = {text};").tree.root_node
    node = root.named_children[0] if root.named_children and not root.has_error else None
    declarator = node.child_by_field_name("declarator") if node is not None else None
    return declarator.child_by_field_name("value") if declarator is not None else None


def _mentions(node: Node, name: str) -> bool:
    return name in _WORD.findall((node.text or b"").decode())


def _is_affine(node: Node, name: str) -> bool:
    """Sums, differences, and products of which one factor at most has the variable."""
    if not _mentions(node, name) or node.type == "identifier":
        return True
    inner = _cast(node)
    if inner is not None:
        return _mentions(inner, name) and _is_affine(inner, name)
    if node.type in ("parenthesized_expression", "unary_expression"):
        return _is_affine(node.named_children[-1], name)
    if node.type != "binary_expression":
        return False
    left, operator, right = (node.child_by_field_name(f) for f in ("left", "operator", "right"))
    if left is None or operator is None or right is None:
        return False
    if operator.type == _PRODUCT and _mentions(left, name) and _mentions(right, name):
        return False
    return operator.type in (*_SUM, _PRODUCT) and _is_affine(left, name) and _is_affine(right, name)


def _cast(node: Node) -> Node | None:
    """What a cast to an integer is of, however it is written; None for anything else."""
    if node.type == "cast_expression":
        return node.named_children[-1]
    called, given = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    if node.type != "call_expression" or called is None or given is None or given.named_child_count != 1:
        return None
    return given.named_children[0] if _CAST.fullmatch((called.text or b"").decode()) else None


def _kept(node: Node, inner: Node | None, text: str) -> str:
    """``text`` in the cast of ``inner`` that ``node`` is, where that is to 64 bits: products behind it need them."""
    given = (inner.text or b"").decode() if inner is not None else ""
    cast = (node.text or b"").decode().removesuffix(")").removesuffix(given).rstrip("( \n")
    return f"static_cast<int64_t>({text})" if inner is not None and _WIDE.search(cast) else text


def _text(node: Node) -> str:
    text = (node.text or b"").decode()
    return f"({text})" if node.type in ("binary_expression", "conditional_expression") else text


def _step(node: Node, name: str) -> str:
    """What an affine expression grows by when the variable does by 1."""
    if node.type == "identifier":
        return "1"
    inner = _cast(node)
    if inner is not None or node.type == "parenthesized_expression":
        return _kept(node, inner, _step(inner or node.named_children[-1], name))
    if node.type == "unary_expression":
        return f"{(node.text or b'').decode()[0]}({_step(node.named_children[-1], name)})"
    left, operator, right = (node.child_by_field_name(f) for f in ("left", "operator", "right"))
    assert left is not None
    assert operator is not None
    assert right is not None
    parts = [_step(side, name) if _mentions(side, name) else "" for side in (left, right)]
    if operator.type == _PRODUCT:
        factor = _text(right if parts[0] else left)
        grows = parts[0] or parts[1]
        return factor if grows == "1" else f"({grows}) * {factor}"
    if parts[0] and parts[1]:
        return f"({parts[0]}) {operator.type} ({parts[1]})"
    return parts[0] or (parts[1] if operator.type == "+" else f"-({parts[1]})")


def _at_zero(node: Node, name: str) -> str:
    """An affine expression where the variable is 0; empty for 0 itself."""
    if not _mentions(node, name):
        return (node.text or b"").decode()
    if node.type == "identifier":
        return ""
    of = _cast(node)
    if of is not None or node.type == "parenthesized_expression":
        inner = _at_zero(of or node.named_children[-1], name)
        return _kept(node, of, f"({inner})") if inner else ""
    if node.type == "unary_expression":
        inner = _at_zero(node.named_children[-1], name)
        return f"{(node.text or b'').decode()[0]}({inner})" if inner else ""
    left, operator, right = (node.child_by_field_name(f) for f in ("left", "operator", "right"))
    assert left is not None
    assert operator is not None
    assert right is not None
    one, two = _at_zero(left, name), _at_zero(right, name)
    if operator.type == _PRODUCT:
        return f"({one}) * ({two})" if one and two else ""
    if not two:
        return one
    return f"{one} {operator.type} ({two})" if one else two if operator.type == "+" else f"-({two})"


def growth(text: str, steps: Mapping[str, str]) -> str | None:
    """What an expression grows by a turn, where its variables do as ``steps`` says; None where that changes."""
    expression = _expression(text)
    if expression is None:
        return None
    parts = []
    for name, step in steps.items():
        if not _mentions(expression, name):
            continue
        factor = _step(expression, name) if _is_affine(expression, name) else name
        factor = re.sub(r"static_cast<int64_t>\((\w+)\)", r"\1", factor)
        if set(steps) & set(_WORD.findall(factor)):
            return None
        parts.append(step if factor == "1" else factor if step == "1" else f"({factor}) * ({step})")
    return " + ".join(parts) or "0"
