"""Writes programs of the tile language: scopes of lines, and expressions of nodes in them.

A node's text goes to the outermost scope in which what it is made of is known: what varies along the lanes is a tile,
everything else a scalar. A node that two others use gets a name.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import sympy

from .axes import Axis, Normalized, Placed
from .graph import COMPARISONS, Graph, Node, NotGenerated, Size

_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_WORDS = {
    "add": "added", "sub": "difference", "mul": "product", "div": "quotient", "where": "chosen", "neg": "negative",
    "maximum": "at_least", "minimum": "at_most", "pick": "picked", "abs": "size_of", "sum": "total", "max": "largest",
    "min": "smallest", "prod": "factors", "sqrt": "root",
}  # fmt: skip
_LONG = 88  # of an expression; longer ones get names for their parts
_SCALAR_BY_TILE = frozenset({"exp", "log", "tanh", "sigmoid", "erf", "rsqrt", "reciprocal"})


@dataclass
class Scope:
    """Lines of one block; ``values``: nodes by what the text calls them."""

    depth: int
    lines: list[str] = field(default_factory=list)
    values: dict[Node, str] = field(default_factory=dict)


@dataclass
class HostText:
    """What the kernel is given: sizes by name, in order, and tensors for partial results."""

    scalars: dict[str, Size] = field(default_factory=dict)
    workspaces: dict[str, str] = field(default_factory=dict)


class Writer:
    """Writes one kernel's body. ``lane``: the axis that tiles run along."""

    def __init__(self, graph: Graph, normalized: Normalized, lane: Axis | None) -> None:
        self.graph, self.normalized, self.lane = graph, normalized, lane
        self.users = graph.users()
        self.host = HostText()
        self.scopes = [Scope(1)]
        self.names = {i.name for i in graph.inputs} | {f"{graph.name}", "tl", "core", "cores", "tile", "n", "at", "y"}
        self.index: dict[Axis, tuple[str, int]] = {}  # the loop variable and the scope it is known in
        self.together: list[tuple[tuple[Axis, ...], str]] = []  # axes that one variable counts
        self.lane_scope = 0
        self.lane_count, self.lane_at = "n", "at"
        self.done: dict[Node, tuple[str, int]] = {}  # reductions: their name and scope
        self.rows: tuple[Axis, str, str] | None = None  # of tiles with two axes: the axis, its first row, how many
        self.spare: dict[str, str | None] = {}
        self.called: dict[Node, str] = {}  # a node keeps its name in every pass
        self.backwards = False  # the loops of the next pass run from the end
        self.saving = False  # tiles take the names of those that nobody needs any more
        self.using: dict[Node, list[Node]] = {}
        for n in graph.nodes():
            for a in n.nodes:
                self.using.setdefault(a, []).append(n)

    # -- lines --------------------------------------------------------------------------------------------------------

    @property
    def here(self) -> int:
        return len(self.scopes) - 1

    def add(self, *lines: str, scope: int | None = None) -> None:
        target = self.scopes[-1 if scope is None else scope]
        target.lines += ["    " * target.depth + line for line in lines]

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """A loop or branch. What its body needs from outside is written before it."""
        self.scopes.append(Scope(self.scopes[-1].depth + 1))
        at = len(self.scopes) - 1
        yield
        inner = self.scopes.pop()
        self.add(head)
        self.scopes[-1].lines += inner.lines
        self.index = {a: v for a, v in self.index.items() if v[1] < at}

    @property
    def text(self) -> str:
        return "\n".join(self.scopes[0].lines) + "\n"

    def name(self, wanted: str) -> str:
        found, k = wanted, 1
        while found in self.names:
            k += 1
            found = f"{wanted}{k}"
        self.names.add(found)
        return found

    # -- sizes and places ---------------------------------------------------------------------------------------------

    def size(self, size: Size, wanted: str = "count") -> str:
        """A size as the kernel may say it: a number, or the name of a parameter."""
        if size.is_Integer:
            return str(int(size))
        for name, known in self.host.scalars.items():
            if known == size:
                return name
        name = self.name(wanted)
        self.host.scalars[name] = size
        return name

    def axis(self, axis: Axis) -> str:
        return self.size(axis.size, axis.name or "size")

    def offset(self, placed: Placed, lanes: bool, picked: Mapping[Axis, str] | None = None) -> str:
        """Where a tensor's part begins, from its first element on; ``picked``: indices that something else decides."""
        text = ""
        axes = list(placed.axes)
        while axes:
            run = next(
                (
                    (group, variable)
                    for group, variable in self.together
                    if tuple(a for a, _, _ in axes[: len(group)]) == group
                    and all(full == a.size and start == 0 for a, full, start in axes[: len(group)])
                ),
                None,
            )
            if run is not None:
                count, variable = len(run[0]), run[1]
                sizes = [self.size(a.size, a.name) for a in run[0]]
                text = variable if not text else f"({text}) * {' * '.join(sizes)} + {variable}"
                axes = axes[count:]
                continue
            axis, full, start = axes.pop(0)
            if axis is self.lane and lanes:
                if axes:
                    raise NotGenerated("a tensor whose lanes are not contiguous has no schedule.")
                variable = self.lane_at
            elif picked and axis in picked:
                variable = picked[axis]
            else:
                variable = self.index[axis][0]
            if start != 0:
                variable = f"({variable} + {self.size(start, 'start')})"
            if text in ("", "0"):
                text = variable
            else:
                wide = self.size(full, axis.name if full == axis.size else f"{axis.name}_all")
                one = f"{tight(text)} * {wide}" if wide != "1" else text
                text = one if variable == "0" else f"{one} + {variable}"
        return text or "0"

    def scope_of(self, node: Node) -> int:
        """The outermost scope in which the node can be computed."""
        found = self.done[node][1] if node in self.done else 0
        for a in self.normalized.of[node]:
            if a is self.lane:
                found = max(found, self.lane_scope)
            else:
                found = max(found, self.index[a][1])
        if node in self.done:
            return found
        if node.op in ("input", "number", "scalar"):
            return found
        made_of = node.args[1:] if node.op == "pick" else node.nodes  # of a tensor that is picked from only an element
        return max([found, *(self.scope_of(n) for n in made_of)])

    def is_tile(self, node: Node) -> bool:
        return self.lane is not None and self.lane in self.normalized.of[node]

    # -- values -------------------------------------------------------------------------------------------------------

    def value(self, argument: Any, scope: int | None = None, whole: bool = False) -> str:
        """The text of a node, number or size in a scope (this one); ``whole``: numbers are integers."""
        at = self.here if scope is None else scope
        if isinstance(argument, Node) and argument.op == "number":
            argument = argument.args[0]
        if isinstance(argument, (int, float)):
            return str(int(argument)) if whole else number(argument)
        if isinstance(argument, sympy.Expr):
            return self.size(argument)
        node: Node = argument
        if node in self.done:
            return self.done[node][0]
        if node.op == "scalar":
            return node.name
        if node.op in ("reshape", "permute"):
            return self.value(node.args[0], at)
        for s in self.scopes[: at + 1]:
            if node in s.values:
                return s.values[node]
        own = min(self.scope_of(node), at)
        text = self._text(node, own)
        inline = self.users.get(node, 0) <= 1 and own == at and len(text) < _LONG and node.op != "input"
        if inline or text.isidentifier():
            return text
        name = self.called.get(node) or self._unneeded(node, own) or self.name(self._word(node))
        self.called[node] = name
        self.add(f"{name} = {text}", scope=own)
        self.scopes[own].values[node] = name
        return name

    def _unneeded(self, node: Node, scope: int) -> str:
        """The name of a tile that nobody needs once the node is computed, where tiles are to be saved."""
        if not self.saving or not self.is_tile(node):
            return ""
        for a, name in self.scopes[scope].values.items():
            if self.is_tile(a) and a.op != "pick" and a.dtype == node.dtype and self._gone(a, node):
                del self.scopes[scope].values[a]
                return name
        return ""

    def _gone(self, a: Node, node: Node) -> bool:
        """Whether all that uses ``a`` is done, or goes into the node."""
        users = self.using.get(a, [])
        return (
            a not in self.graph.outputs
            and bool(users)
            and all(u is node or u in self.done or self._gone(u, node) for u in users)
        )

    def _word(self, node: Node) -> str:
        if node.op == "input":
            return f"{node.name}_tile" if self.is_tile(node) else f"{node.name}_value"
        return _WORDS.get(node.op, node.op)

    def _text(self, node: Node, scope: int) -> str:
        if node.op == "input":
            return self._load(node, scope)
        if node.op == "pick":
            return self._picked(node, scope)
        if node.op == "where":
            return self._where(node, scope)
        if node.op in COMPARISONS:
            a, b = (self.value(x, scope, _whole(node)) for x in node.args)
            test = f"{tight(a)} {COMPARISONS[node.op]} {tight(b)}"
            return f"tl.where({test}, 1.0, 0.0)" if self.is_tile(node) else f"1.0 if {test} else 0.0"
        args = [self.value(a, scope, _whole(node)) for a in node.args]
        inverse = _inverse(node.args[1]) if node.op == "div" and self.is_tile(node) else None
        if inverse is not None:  # a tile is divided by tiles alone, at half the rate
            return f"{operand(args[0], 'mul', 0)} * {number(inverse)}"
        if node.op in _SIGNS:
            return f"{operand(args[0], node.op, 0)} {_SIGNS[node.op]} {operand(args[1], node.op, 1)}"
        if node.op in ("maximum", "minimum"):
            short = node.op[:3]
            return f"tl.{node.op}({', '.join(args)})" if self.is_tile(node) else f"{short}({', '.join(args)})"
        if node.op == "neg":
            return f"-{tight(args[0])}"
        if self.is_tile(node):
            return f"tl.{node.op}({args[0]})"
        return self._scalar(node.op, args[0], scope)

    def _scalar(self, op: str, x: str, scope: int) -> str:
        """Of one number: the scalar unit has roots; other functions are the vector unit's."""
        if op == "sqrt":
            return f"tl.sqrt({x})"
        if op == "rsqrt":
            return f"1.0 / tl.sqrt({x})"
        if op == "reciprocal":
            return f"1.0 / {tight(x)}"
        if op == "abs":
            return f"max({x}, -{tight(x)})"
        if op == "relu":
            return f"max({x}, 0.0)"
        if op not in _SCALAR_BY_TILE:
            raise NotGenerated(f"{op} of one number has no rule.")
        name = self.name(op)
        self.add(f"{name} = tl.{op}(tl.full(8, {x}))", scope=scope)
        return f"tl.extract_scalar({name}, 0)"

    def _where(self, node: Node, scope: int) -> str:
        test, yes, no = node.args
        texts = [self.value(a, scope, _whole(node, 1)) for a in (yes, no)]
        if isinstance(test, Node) and test.op in COMPARISONS and test not in self.done:
            a, b = (self.value(x, scope, _whole(test)) for x in test.args)
            text = f"{tight(a)} {COMPARISONS[test.op]} {tight(b)}"
        else:
            text = f"{tight(self.value(test, scope))} > 0.5"
        if not self.is_tile(node):
            return f"{texts[0]} if {text} else {texts[1]}"
        if isinstance(test, Node) and not self.is_tile(test):  # one number decides for the whole tile
            text = f"tl.full({self.lane_count}, {self.value(test, scope)}) > 0.5"
        return f"tl.where({text}, {texts[0]}, {texts[1]})"

    def _load(self, node: Node, scope: int) -> str:
        placed = self.normalized.placed[node]
        tensor = node.info["tensor"]
        if self.is_tile(node) and self.rows is not None and self.rows[0] in placed.names:
            return f"tl.load({tensor}{_plus(self.offset(placed, True))} + {self._two_axes(placed)})"
        if self.is_tile(node):
            pointer = f"{tensor}{_plus(self.offset(placed, True))} + tl.arange(0, {self.lane_count})"
            if node.dtype == "bool":
                name = self.spare.setdefault(node.name, None) or self.name(f"{node.name}_half")
                self.spare[node.name] = name
                self.add(f"{name} = tl.load({pointer}, dtype=tl.float16)", scope=scope)
                return f"tl.cast({name}, tl.float32)"
            if not node.dtype.startswith(("float", "bfloat")):
                raise NotGenerated(f"arithmetic on {node.dtype} has no rule.")
            return f"tl.load({pointer})"
        return self._element(f"{tensor}{_plus(self.offset(placed, False))}", node.name, scope)

    def _two_axes(self, placed: Placed) -> str:
        assert self.rows is not None
        axis, _, count = self.rows
        names = placed.names
        behind = placed.axes[names.index(axis) + 1 :]
        stride = " * ".join(self.size(full, a.name) for a, full, _ in behind)
        return f"tl.arange(0, {count})[:, None] * {tight(stride)} + tl.arange(0, {self.lane_count})[None, :]"

    def _element(self, pointer: str, name: str, scope: int) -> str:
        one = self.spare.setdefault(name, None) or self.name(f"{name}_one")
        self.spare[name] = one
        self.add(f"{one} = tl.load({pointer} + tl.arange(0, 1))", scope=scope)
        return f"tl.extract_scalar({one}, 0)"

    def _picked(self, node: Node, scope: int) -> str:
        """One element of a row, where an index says."""
        source, index = node.args
        placed = self.normalized.placed[source]
        axis = next(a for a in placed.names if a not in self.normalized.of[node])
        if self.is_tile(index):
            return self._gathered(node, axis, scope)
        at = self.value(index, scope)
        if not at.isidentifier():
            name = self.name("index")
            self.add(f"{name} = {at}", scope=scope)
            at = name
        tensor = source.info["tensor"]
        if self.is_tile(node):
            offset = _plus(self.offset(placed, True, {axis: at}))
            return f"tl.load({tensor}{offset} + tl.arange(0, {self.lane_count}))"
        return self._element(f"{tensor}{_plus(self.offset(placed, False, {axis: at}))}", node.name, scope)

    def _gathered(self, node: Node, axis: Axis, scope: int) -> str:
        """Elements of a whole line of the source, which is loaded where its other axes are known."""
        source, index = node.args
        placed = self.normalized.placed[source]
        wrapped = False
        while index.op in ("reshape", "wrap"):
            wrapped |= index.op == "wrap"
            index = index.args[0]
        if placed.names[-1] is not axis or index.op != "input":
            raise NotGenerated("indices into an axis before the last, that vary along the lanes, have no schedule.")
        length = self.size(axis.size, axis.name or "length")
        line = self.spare.get(f"{source.name} line") or self.name(f"{source.name}_line")
        if f"{source.name} line" not in self.spare:
            pointer = f"{source.info['tensor']}{_plus(self.offset(placed, False, {axis: '0'}))}"
            others = [self.index[a][1] for a in placed.names if a is not axis]
            self.add(f"{line} = tl.load({pointer} + tl.arange(0, {length}))", scope=max([0, *others]))
        self.spare[f"{source.name} line"] = line
        at = self.spare.get(f"{index.name} index") or self.name(f"{index.name}_tile")
        self.spare[f"{index.name} index"] = at
        pointer = f"{index.info['tensor']}{_plus(self.offset(self.normalized.placed[index], True))}"
        self.add(f"{at} = tl.load({pointer} + tl.arange(0, {self.lane_count}), dtype=tl.int32)", scope=scope)
        if wrapped:  # negative ones count from the end
            far, near = self.name(f"{index.name}_number"), self.name(f"{index.name}_wrapped")
            self.add(f"{far} = tl.cast({at}, tl.float32)", scope=scope)
            self.add(f"{far} = tl.where({far} < 0.0, {far} + float({length}), {far})", scope=scope)
            self.add(f"{near} = tl.cast({far}, tl.int32)", scope=scope)
            at = near
        return f"tl.gather({line}, {at})"

    # -- results ------------------------------------------------------------------------------------------------------

    def store(self, i: int) -> None:
        """Output ``i``, in this scope."""
        node, placed = self.graph.outputs[i], self.normalized.outputs[i]
        tensor = self.output(i)
        if self.lane is not None and self.lane in placed.names:
            value = self.value(node)
            if not self.is_tile(node):
                value = f"tl.full({self.lane_count}, {value})"
            if node.dtype in ("int32", "int64"):
                self.add(f"numbers{i} = {value}", f"whole{i} = tl.cast(numbers{i}, tl.int32)")
                value = f"whole{i}"
            if node.dtype == "bool":
                self.add(f"bits{i} = {value}", f"half_bits{i} = tl.cast(bits{i}, tl.float16)")
                value = f"half_bits{i}"
            self.add(f"tl.store({tensor}{_plus(self.offset(placed, True))} + tl.arange(0, {self.lane_count}), {value})")
            return
        value = self.value(node)
        self.add(f"tl.store({tensor}{_plus(self.offset(placed, False))} + tl.arange(0, 1), tl.full(8, {value}))")

    def output(self, i: int) -> str:
        return self.graph.output_names[i]


def _whole(node: Node, first: int = 0) -> bool:
    """Whether an operation is one of integers."""
    kinds = [a.dtype for a in node.args[first:] if isinstance(a, Node) and a.op != "number"]
    return bool(kinds) and not any(k.startswith(("float", "bfloat", "bool")) for k in kinds)


def _inverse(divisor: Any) -> float | None:
    """One over a number, where a product with it is as good as the quotient."""
    if isinstance(divisor, Node) and divisor.op == "number":
        divisor = divisor.args[0]
    good = isinstance(divisor, (int, float)) and 1e-30 < abs(divisor) < 1e30
    return 1.0 / float(divisor) if good else None


def number(value: float) -> str:
    if math.isinf(value):
        return "tl.inf" if value > 0 else "-tl.inf"
    if math.isnan(value):
        return "0.0 / 0.0"
    return repr(float(value))


def size_text(size: Any, names: Mapping[Any, str]) -> str:
    """A size as an expression of integers."""
    if size.is_Integer:
        return str(int(size))
    if size.is_Symbol:
        return names[size]
    if isinstance(size, sympy.floor) or type(size).__name__ == "floor":
        return _quotient(size.args[0], names)
    if size.is_Add:
        parts = sorted(size.args, key=lambda e: (e.is_number, str(e)))
        text = size_text(parts[0], names)
        for p in parts[1:]:
            negative = p.could_extract_minus_sign()
            text += f" - {_factor(-p, names)}" if negative else f" + {size_text(p, names)}"
        return text
    if size.is_Mul:
        if sympy.denom(size) != 1:
            return _quotient(size, names)
        return " * ".join(_factor(f, names) for f in size.args)
    if size.is_Pow and size.exp.is_Integer and size.exp > 0:
        return " * ".join([_factor(size.base, names)] * int(size.exp))
    raise NotGenerated(f"the size {size} has no text.")


def _quotient(size: Any, names: Mapping[Any, str]) -> str:
    top, bottom = sympy.fraction(sympy.together(size))
    return f"{tight(size_text(top, names))} // {tight(size_text(bottom, names))}"


def _factor(size: Any, names: Mapping[Any, str]) -> str:
    text = size_text(size, names)
    return f"({text})" if " " in text else text


def _plus(offset: str) -> str:
    return "" if offset == "0" else f" + {offset}"


def tight(text: str) -> str:
    plain = text.replace(".", "").replace("_", "").replace("e-", "e") if text[:1].isdigit() else text.replace("_", "")
    return text if plain.isalnum() or _closed(text) else f"({text})"


def _closed(text: str) -> bool:
    """Whether the text is one call or one pair of brackets."""
    if not text.endswith(")"):
        return False
    start = text.index("(")
    if not text[:start].replace(".", "").replace("_", "").isalnum() and text[:start]:
        return False
    depth = 0
    for i, c in enumerate(text[start:]):
        depth += {"(": 1, ")": -1}.get(c, 0)
        if depth == 0:
            return start + i == len(text) - 1
    return False


def operand(text: str, op: str, side: int) -> str:
    """With brackets where the operation binds tighter than the text."""
    if tight(text) == text:
        return text
    if op == "add" and side == 0 and " if " not in text:
        return text
    if op == "mul" and side == 0 and not any(s in text for s in (" + ", " - ", " if ", "<", ">")):
        return text
    return f"({text})"
