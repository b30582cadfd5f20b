"""Expressions compared and taken apart by their nodes, not their text: spaces and parentheses make no difference."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from ...sources.cpp import walk


def peeled(node: Node) -> Node:
    """The expression without parentheses around it."""
    while node.type == "parenthesized_expression" and len(node.named_children) == 1:
        node = node.named_children[0]
    return node


def same(one: Node, two: Node) -> bool:
    """Whether both are written alike, but for spaces, comments and the parentheses around them."""
    return _tokens(peeled(one)) == _tokens(peeled(two))


def _tokens(node: Node) -> list[bytes]:
    return [n.text or b"" for n in walk(node) if not n.children and n.type != "comment"]


def terms(node: Node, sign: int = 1) -> Iterator[tuple[int, Node]]:
    """(1 or -1, term) of a sum or difference, in source order; parentheses around parts of it are looked into."""
    bare = peeled(node)
    if bare.type == "binary_expression":
        operator = bare.child_by_field_name("operator")
        left, right = bare.child_by_field_name("left"), bare.child_by_field_name("right")
        if operator is not None and operator.type in "+-" and left is not None and right is not None:
            yield from terms(left, sign)
            yield from terms(right, sign if operator.type == "+" else -sign)
            return
    yield sign, node


Terms = list[tuple[int, Node]]


def ceiled(dividend: Node, divisor: Node) -> Terms | None:
    """The terms of ``n``, where the dividend is a ceiling division's, ``n + divisor - 1`` in any order; else None."""
    left = list(terms(dividend))
    added = next((i for i, (sign, n) in enumerate(left) if sign > 0 and same(n, divisor)), None)
    one = next((i for i, (sign, n) in enumerate(left) if sign < 0 and peeled(n).text == b"1"), None)
    if added is None or one is None:
        return None
    found = [term for i, term in enumerate(left) if i not in (added, one)]
    return found if found and found[0][0] > 0 else None


def written(sum_of: Terms) -> str:
    """The terms as one expression; the first is positive."""
    if len(sum_of) == 1:
        return (peeled(sum_of[0][1]).text or b"").decode()
    return "".join((" + " if s > 0 else " - ") + (n.text or b"").decode() for s, n in sum_of).removeprefix(" + ")


def mentions(node: Node, other: Node) -> bool:
    """Whether ``other`` is a part of the expression."""
    return any(same(n, other) for n in walk(node) if n.is_named)
