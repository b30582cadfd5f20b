"""Sizes of a case: shapes, attributes and values that are written with letters, and what the letters are at a size.

``decode``: what one step of a decoding model works on, launch and prologue; ``medium``; ``large``: more than a launch
can hide. Elements are those of the largest input or output.
"""

from __future__ import annotations

import ast
import operator
import random
import re
from collections.abc import Callable, Mapping
from typing import Any

DECODE, MEDIUM, LARGE = "decode", "medium", "large"
SIZES = (DECODE, MEDIUM, LARGE)
#: Size -> (least, most) elements of the largest tensor. The most of decode and the least of large are what they are
#: by definition; the others keep cases of one size comparable.
ELEMENTS = {DECODE: (1 << 13, 1 << 16), MEDIUM: (950_000, 1_100_000), LARGE: (1 << 24, 21 << 20)}

_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}
_SHAPE = re.compile(r"\[([^\]]*)\]")

Letters = Mapping[str, int]


def shape(text: str, letters: Letters) -> str:
    """``float16[2,h,w+3]`` with its axes in numbers. Raises ValueError for an axis that isn't one."""
    return _SHAPE.sub(
        lambda found: "[" + ",".join(str(number(axis, letters)) for axis in found[1].split(",")) + "]", text
    )


def filled(value: Any, letters: Letters) -> Any:
    """A value of the table in numbers: texts that begin with ``=`` are worked out, wherever they stand in it."""
    if isinstance(value, str):
        return _value(value[1:], letters) if value.startswith("=") else value
    if isinstance(value, list):
        return [filled(v, letters) for v in value]
    return {k: filled(v, letters) for k, v in value.items()} if isinstance(value, dict) else value


def number(text: str, letters: Letters) -> int:
    """Whole numbers, letters, ``+ - * //``. Raises ValueError for anything else, and for a letter nobody gives."""

    def of(node: ast.expr) -> int:
        match node:
            case ast.Constant(value=int(n)):
                return n
            case ast.Name(id=letter) if letter in letters:
                return letters[letter]
            case ast.BinOp(left, op, right) if type(op) in _OPERATORS:
                return _OPERATORS[type(op)](of(left), of(right))
        raise ValueError(f"{text!r} is no number of {dict(letters)}")

    return of(ast.parse(text.strip(), mode="eval").body)


def _value(text: str, letters: Letters) -> Any:
    name, bracket, rest = text.partition("(")
    if name not in _LISTS or not bracket:
        return number(text, letters)
    return _LISTS[name](*(number(n, letters) for n in rest.removesuffix(")").split(",")))


def _permutation(count: int) -> list[int]:
    order = list(range(count))
    random.Random(0).shuffle(order)
    return order


def _twice(count: int) -> list[int]:
    order = _permutation(count // 2)
    return [order[i] for i in range(0, len(order) - 1, 2) for i in (i, i + 1, i, i + 1)]


def _steps(count: int, step: int) -> list[int]:
    return [i * step for i in range(count)]


def _same(count: int, value: int) -> list[int]:
    return [value] * count


_LISTS: dict[str, Callable[..., list[int]]] = {
    "permutation": _permutation,
    "twice": _twice,
    "steps": _steps,
    "same": _same,
}
