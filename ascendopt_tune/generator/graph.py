"""What a torch module is once it is captured: a list of primitive operations with symbolic shapes.

Sizes are sympy expressions in the sizes of the inputs, so that what is generated serves every shape the module does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import sympy

from ..errors import AscendOptError

#: A size: an expression of sympy, which has no types of its own.
Size: TypeAlias = Any

#: Elementwise primitives, as the tile language has them.
POINTWISE = frozenset({
    "add", "sub", "mul", "div", "maximum", "minimum", "abs", "neg", "relu", "exp", "log", "sqrt", "rsqrt", "reciprocal",
    "tanh", "sigmoid", "erf", "where",
})  # fmt: skip
COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
#: Reductions and where they begin.
REDUCTIONS = {"sum": 0.0, "max": -float("inf"), "min": float("inf"), "prod": 1.0, "argmax": 0.0, "argmin": 0.0}


class NotGenerated(AscendOptError):
    """No rule makes a program of this module; the text says which part of it."""

    def __init__(self, message: str, hint: str = "Write the program in the tile language (docs/dsl.md).") -> None:
        super().__init__(message, hint)


@dataclass(frozen=True, eq=False)
class Node:
    """One primitive.

    ``op``: ``input``; an elementwise one of POINTWISE or COMPARISONS; a reduction (``info["dims"]``, which stay as
    axes of length 1); ``scan`` (``kind``, ``dim``, ``reverse``); ``window`` (``kind`` and a list per axis); ``pick``
    (one element along ``dim`` by an index); ``reshape``; ``permute`` (``order``); ``pad`` (``dim``, ``before``,
    ``value``); ``flip`` (``dims``); ``joined`` (``args`` one behind the other along ``dim``), which no graph has. An
    input's ``info`` has ``tensor``, and ``start`` and ``full`` per axis where it is a part of that tensor.
    """

    op: str
    args: tuple[Any, ...]
    shape: tuple[Size, ...]
    dtype: str
    name: str
    info: Mapping[str, Any] = field(default_factory=dict)

    @property
    def nodes(self) -> tuple[Node, ...]:
        return tuple(a for a in self.args if isinstance(a, Node))


@dataclass(frozen=True)
class Input:
    """A tensor the program is given, or (``shape`` None) a number: a float that the module's caller passes."""

    name: str
    shape: tuple[Size, ...] | None
    dtype: str
    example: tuple[int, ...] = ()
    parameter: str = ""  # its name in the module's state
    value: float = 0.0


@dataclass(frozen=True)
class OutputPart:
    """What an output is of result number ``result``: all of it (``dim`` None), or what begins at ``start`` of its axis
    ``dim``, which has ``full`` elements."""

    result: int
    dim: int | None = None
    start: Size = 0
    full: Size = 0


@dataclass(frozen=True)
class Graph:
    """A module: ``inputs`` in the order of the program's parameters, ``outputs``, and what sizes stand for.

    ``parts``: one for each output, in order of results; empty where every output is a result of its own.
    """

    name: str
    inputs: tuple[Input, ...]
    outputs: tuple[Node, ...]
    sizes: Mapping[sympy.Symbol, int]  # the example's
    parts: tuple[OutputPart, ...] = ()

    def part(self, i: int) -> OutputPart:
        return self.parts[i] if self.parts else OutputPart(i)

    @property
    def output_names(self) -> list[str]:
        """By what name the program knows the result that each output is, or is a part of."""
        base = "out" if any(n.name.startswith("y") for n in self.inputs) else "y"
        numbers = [self.part(i).result for i in range(len(self.outputs))]
        return [base if len(set(numbers)) == 1 else f"{base}{n}" for n in numbers]

    def results(self) -> dict[str, tuple[tuple[Size, ...], str]]:
        """Shape and dtype of each result, by its name."""
        found: dict[str, tuple[tuple[Size, ...], str]] = {}
        for i, (name, node) in enumerate(zip(self.output_names, self.outputs, strict=True)):
            part = self.part(i)
            shape = tuple(part.full if d == part.dim else s for d, s in enumerate(node.shape))
            found.setdefault(name, (shape, node.dtype))
        return found

    def nodes(self) -> list[Node]:
        """All nodes, arguments first."""
        return list(ordered(self.outputs))

    def users(self) -> dict[Node, int]:
        """How often each node is used; an output once more."""
        count: dict[Node, int] = {}
        for n in self.nodes():
            for a in n.nodes:
                count[a] = count.get(a, 0) + 1
        for o in self.outputs:
            count[o] = count.get(o, 0) + 1
        return count

    def number(self, size: Size) -> int:
        """A size at the example's shapes."""
        return int(size.subs(dict(self.sizes)))


def ordered(outputs: Sequence[Node]) -> Iterator[Node]:
    """Nodes behind these, arguments first."""
    seen: set[Node] = set()
    stack = [(n, False) for n in reversed(outputs)]
    while stack:
        node, ready = stack.pop()
        if node in seen:
            continue
        if ready:
            seen.add(node)
            yield node
            continue
        stack.append((node, True))
        stack += [(a, False) for a in reversed(node.nodes) if a not in seen]


def product(sizes: Sequence[Size]) -> Size:
    total: Size = sympy.Integer(1)
    for s in sizes:
        total = total * s
    return total


def same(a: Size, b: Size) -> bool:
    return bool(sympy.simplify(a - b) == 0)
