"""Makes nodes: shapes, and what can be said simpler before it is scheduled."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import sympy

from .graph import COMPARISONS, POINTWISE, Node, NotGenerated, Size, product, same

ONE = sympy.Integer(1)


class GraphBuilder:
    """Makes the nodes of one module; ``name`` is that of the next ones. ``example``: what sizes are in the example."""

    def __init__(self, example: Mapping[Size, int]) -> None:
        self.name = "value"
        self.example = dict(example)
        #: Sizes that a rule demands to be others, by the symbol that goes.
        self.equal: dict[Size, Size] = {}
        #: Parts of inputs, each one node however often it is asked for.
        self._cut: dict[tuple[Node, int, Size, Size], Node] = {}

    def demand(self, size: Size, wanted: Size) -> None:
        """The two are equal: shapes where they aren't are refused. Raises NotGenerated: they never are."""
        size, wanted = size.subs(self.equal), wanted.subs(self.equal)
        if same(size, wanted):
            return
        if not size.is_Symbol and not wanted.is_Symbol:
            raise NotGenerated(f"sizes that differ ({size} and {wanted}) have no rule here.")
        gone, kept = (size, wanted) if size.is_Symbol else (wanted, size)
        self.equal = {k: v.subs({gone: kept}) for k, v in self.equal.items()} | {gone: kept}

    def shares(self, size: Size, sizes: Sequence[Size]) -> list[Size]:
        """Pieces of a free size: equal ones where the example's are, so that what is no multiple is refused."""
        size, count = size.subs(self.equal), len(sizes)
        if not size.is_Symbol or count < 2 or self.example[size] % count:
            return list(sizes)
        share = sympy.Symbol(f"{size.name}_{count}", integer=True, positive=True)
        if any(not same(s.subs(self.equal).subs({size: count * share}), share) for s in sizes):
            return list(sizes)
        self.example[share] = self.example[size] // count
        self.equal = {k: v.subs({size: count * share}) for k, v in self.equal.items()} | {size: count * share}
        return [share] * count

    # -- elementwise --------------------------------------------------------------------------------------------------

    def point(self, op: str, *args: Any, dtype: str = "") -> Node:
        """An elementwise operation; shapes are broadcast."""
        nodes = [a for a in args if isinstance(a, Node)]
        if lead := next((n for n in nodes if n.op == "joined"), None):
            return self._over_pieces(op, args, lead, dtype)
        if op in ("add", "sub", "mul", "div") and len(args) == 2:
            kept = _neutral(op, args[0], args[1])
            if kept is not None and isinstance(kept, Node):
                return kept
        if op == "where" and _is_nan(args[0]) and isinstance(args[1], float) and args[1] != args[1]:
            return self.as_node(args[2])  # y made of x is not a number where x isn't
        shape = broadcast([n.shape for n in nodes])
        kind = "bool" if op in COMPARISONS else dtype or _joined(nodes)
        return Node(op, args, shape, kind, self.name)

    def _over_pieces(self, op: str, args: Sequence[Any], lead: Node, dtype: str) -> Node:
        """An elementwise operation of what is joined: that of each piece and of what the other operands have there."""
        dim = lead.info["dim"] - len(lead.shape)  # from the end, where shapes are broadcast
        made, start = [], sympy.Integer(0)
        for k, piece in enumerate(lead.args):
            size = piece.shape[dim]
            at = [self._at_piece(a, dim, k, start, size) if isinstance(a, Node) else a for a in args]
            made.append(self.point(op, *at, dtype=dtype))
            start = start + size
        return self.joined(made, len(made[0].shape) + dim)

    def _at_piece(self, x: Node, dim: int, k: int, start: Size, size: Size) -> Node:
        if x.op == "joined" and x.info["dim"] == len(x.shape) + dim:
            if k < len(x.args) and same(x.args[k].shape[dim], size):
                piece: Node = x.args[k]
                return piece
            raise NotGenerated("what was joined of pieces of different lengths has no rule together.")
        return self._part(x, dim, start, size)

    def joined(self, pieces: Sequence[Node], dim: int) -> Node:
        """One behind the other along an axis. They stay apart: each is computed, and stored, for itself."""
        flat = [p for x in pieces for p in (x.args if x.op == "joined" and x.info["dim"] == dim else (x,))]
        if any(p.op == "joined" for p in flat):
            raise NotGenerated("cat along one axis of what was put together along another has no rule.")
        if any(p.shape[dim] == 1 for p in flat):
            raise NotGenerated("cat of pieces of one element has no rule.")
        shape = list(broadcast([p.shape for p in flat]))
        shape[dim] = sum((p.shape[dim] for p in flat), sympy.Integer(0))
        return Node("joined", tuple(flat), tuple(shape), _joined(flat), self.name, {"dim": dim})

    def as_node(self, a: Any) -> Node:
        return a if isinstance(a, Node) else self.full((), a)

    def full(self, shape: Sequence[Size], value: float) -> Node:
        return Node("number", (value,), tuple(shape), "float32", self.name)

    def add(self, a: Any, b: Any) -> Node:
        return self.point("add", a, b)

    def sub(self, a: Any, b: Any) -> Node:
        return self.point("sub", a, b)

    def mul(self, a: Any, b: Any) -> Node:
        for x, y in ((a, b), (b, a)):
            if isinstance(y, Node) and y.op == "sigmoid" and y.args[0] is x:  # x / (1 + exp(-x)) is shorter
                return self.div(x, self.add(self.point("exp", self.point("neg", x)), 1.0))
        return self.point("mul", a, b)

    def div(self, a: Any, b: Any) -> Node:
        return self.point("div", a, b)

    def where(self, test: Node, yes: Any, no: Any) -> Node:
        return self.point("where", test, yes, no)

    def clamp(self, x: Any, low: Any, high: Any) -> Node:
        if low is not None:
            x = self.point("maximum", x, low)
        return self.point("minimum", x, high) if high is not None else x

    def power(self, x: Any, exponent: Any) -> Node:
        """By products and roots where the exponent is a number; else of a base that isn't negative."""
        if isinstance(exponent, Node):
            raised = self.point("exp", self.mul(exponent, self.point("log", x)))
            return self.where(self.point("eq", exponent, 0.0), 1.0, raised)
        if not isinstance(x, Node):
            return self.point("exp", self.mul(exponent, math.log(x)))
        if exponent == 0.5:
            return self.point("sqrt", x)
        if exponent == -0.5:
            return self.point("rsqrt", x)
        if exponent < 0:
            return self.point("reciprocal", self.power(x, -exponent))
        if exponent != int(exponent) or exponent > 16 or exponent == 0:
            raise NotGenerated(f"pow with the exponent {exponent} has no rule.")
        half = x if exponent < 4 else self.power(x, int(exponent) // 2)
        if exponent >= 4:
            square = self.mul(half, half)
            return square if int(exponent) % 2 == 0 else self.mul(square, x)
        found = x
        for _ in range(int(exponent) - 1):
            found = self.mul(found, x)
        return found

    def expm1(self, x: Any) -> Node:
        """exp(x) - 1; a series near 0, where the difference would lose its digits."""
        series = self.add(self.mul(x, 1.0 / 6), 0.5)  # either way about 2e-6 of it is lost at most
        series = self.add(self.mul(series, x), 1.0)
        near = self.point("lt", self.point("abs", x), 0.03)
        return self.where(near, self.mul(series, x), self.sub(self.point("exp", x), 1.0))

    def log1p(self, x: Any) -> Node:
        """log(1 + x), with what 1 + x loses put back; of an exponential without: 6e-8 at most are lost."""
        if isinstance(x, Node) and x.op == "exp":
            return self.point("log", self.add(x, 1.0))
        u = self.add(x, 1.0)
        exact = self.mul(self.point("log", u), self.div(x, self.sub(u, 1.0)))
        return self.where(self.point("eq", u, 1.0), x, exact)

    # -- reductions ---------------------------------------------------------------------------------------------------

    def reduce(self, kind: str, x: Node, dims: Sequence[int] | None, keep: bool) -> Node:
        """Over these axes (None or empty: all); ``kind``: of REDUCTIONS, or mean."""
        rank = len(x.shape)
        chosen = sorted({d % rank for d in dims}) if dims else list(range(rank))
        if kind == "mean":
            count = product([x.shape[d] for d in chosen])
            return self.div(self.reduce("sum", x, dims, keep), self._number(count))
        shape = tuple(ONE if d in chosen else s for d, s in enumerate(x.shape))
        found = x if not chosen or all(x.shape[d] == 1 for d in chosen) else None
        found = found or Node(kind, (x,), shape, x.dtype, self.name, {"dims": tuple(chosen)})
        if keep:
            return found
        return self.reshape(found, [s for d, s in enumerate(x.shape) if d not in chosen])

    @staticmethod
    def _number(count: Size) -> Any:
        return float(int(count)) if count.is_Integer else count

    def normalized(self, x: Node, dims: Sequence[int], eps: float) -> Node:
        """(x - mean) / sqrt(variance + eps) over these axes; the variance in a second pass, as exact as can be."""
        centred = self.sub(x, self.reduce("mean", x, dims, True))
        variance = self.reduce("mean", self.mul(centred, centred), dims, True)
        return self.mul(centred, self.point("rsqrt", self.add(variance, eps)))

    # -- views --------------------------------------------------------------------------------------------------------

    def reshape(self, x: Node, shape: Sequence[Size]) -> Node:
        wanted = tuple(shape)
        if len(wanted) == len(x.shape) and all(map(same, wanted, x.shape)):
            return x
        if x.op == "number":
            return self.full(wanted, x.args[0])
        if x.op == "joined":
            dim = x.info["dim"] - len(x.shape)
            if len(wanted) < -dim or not all(map(same, wanted[dim:], x.shape[dim:])):
                raise NotGenerated("a reshape of the axis along which pieces were put together has no rule.")
            pieces = [self.reshape(p, [*wanted[:dim], *p.shape[dim:]]) for p in x.args]
            return self.joined(pieces, len(wanted) + dim)
        return Node("reshape", (x,), wanted, x.dtype, self.name)

    def permute(self, x: Node, order: Sequence[int]) -> Node:
        rank = len(x.shape)
        order = [o % rank for o in order]
        if x.op == "joined":
            return self.joined([self.permute(p, order) for p in x.args], order.index(x.info["dim"]))
        return Node("permute", (x,), tuple(x.shape[o] for o in order), x.dtype, self.name, {"order": tuple(order)})

    def expand(self, x: Node, shape: Sequence[Size]) -> Node:
        """Elementwise operations broadcast by themselves; only the number of axes is made equal."""
        return self.reshape(x, [ONE] * (len(shape) - len(x.shape)) + list(x.shape))

    def slice(self, x: Node, dim: int, start: Size, size: Size) -> Node:
        """``size`` elements from ``start`` along an axis: of what the input has, so it is pushed towards inputs."""
        dim %= len(x.shape)
        if same(size, x.shape[dim]):
            return x
        shape = (*x.shape[:dim], size, *x.shape[dim + 1 :])
        if x.op == "number":
            return self.full(shape, x.args[0])
        if x.op == "input":
            begin = list(x.info.get("start", [sympy.Integer(0)] * len(x.shape)))
            full = x.info.get("full", x.shape)
            begin[dim] = begin[dim] + start
            info = {**x.info, "start": tuple(begin), "full": tuple(full)}
            return self._cut.setdefault((x, dim, start, size), Node("input", (), shape, x.dtype, x.name, info))
        if x.op == "pad" and x.info["dim"] != dim:
            return self.pad(self.slice(x.args[0], dim, start, size), x.info["dim"], x.info["before"], x.info["value"])
        if x.op in POINTWISE or x.op in COMPARISONS:
            parts = [self._part(a, dim - len(x.shape), start, size) if isinstance(a, Node) else a for a in x.args]
            return self.point(x.op, *parts, dtype=x.dtype if x.dtype == "bool" else "")
        raise NotGenerated(f"a part of what {x.op} gives has no rule.")

    def _part(self, x: Node, dim: int, start: Size, size: Size) -> Node:
        """Of an operand that may be broadcast; ``dim``: from the end."""
        return x if -dim > len(x.shape) or x.shape[dim] == 1 else self.slice(x, dim, start, size)

    def pad(self, x: Node, dim: int, before: int, value: float) -> Node:
        """Elements in front; what a scan begins with, in front of its results, is a scan with one element more."""
        shape = list(x.shape)
        shape[dim] = shape[dim] + before
        info = x.info if x.op == "scan" else {}
        plain = not info.get("reverse") and not info.get("before")
        if before == 1 and plain and info.get("dim") == dim and value == {"sum": 0.0, "prod": 1.0}[info["kind"]]:
            return Node("scan", x.args, tuple(shape), x.dtype, self.name, {**info, "before": 1, "value": value})
        return Node("pad", (x,), tuple(shape), x.dtype, self.name, {"dim": dim, "before": before, "value": value})

    def pick(self, x: Node, dim: int, index: Node) -> Node:
        """Elements along an axis, where an index says: of the input, and what is computed from it.

        ``index``: of the same rank; as many elements as it has along ``dim``; along other axes as many as x, or one.
        """
        if x.shape[dim] == 1:
            return x
        if x.op == "input":
            shape = tuple(
                i if d == dim or s == 1 else s for d, (s, i) in enumerate(zip(x.shape, index.shape, strict=True))
            )
            return Node("pick", (x, index), shape, x.dtype, self.name, {"dim": dim})
        if x.op in POINTWISE and all(len(a.shape) == len(x.shape) for a in x.nodes):
            return self.point(x.op, *(self.pick(a, dim, index) if isinstance(a, Node) else a for a in x.args))
        raise NotGenerated(f"an index into what {x.op} gives has no rule.")

    def flip(self, x: Node, dims: Sequence[int]) -> Node:
        """A scan between two flips is a scan from the other end."""
        chosen = tuple(sorted(d % len(x.shape) for d in dims))
        if x.op == "flip" and x.info["dims"] == chosen:
            return self.as_node(x.args[0])
        if x.op == "scan" and chosen == (x.info["dim"],):
            inner = self.flip(x.args[0], dims)
            if inner.op != "flip":
                return Node("scan", (inner,), x.shape, x.dtype, x.name, {**x.info, "reverse": not x.info["reverse"]})
        return Node("flip", (x,), x.shape, x.dtype, self.name, {"dims": chosen})


def broadcast(shapes: Sequence[tuple[Size, ...]]) -> tuple[Size, ...]:
    rank = max((len(s) for s in shapes), default=0)
    found: list[Size] = [ONE] * rank
    for s in shapes:
        for i, size in enumerate(s):
            at = rank - len(s) + i
            if size != 1:
                found[at] = size
    return tuple(found)


def _neutral(op: str, a: Any, b: Any) -> Any:
    """The operand that an operation with 0 or 1 leaves as it is."""
    number = {"add": 0, "sub": 0, "mul": 1, "div": 1}[op]
    if isinstance(b, (int, float)) and b == number:
        return a
    if isinstance(a, (int, float)) and a == number and op in ("add", "mul"):
        return b
    return None


def _is_nan(a: Any) -> bool:
    return isinstance(a, Node) and a.op == "ne" and a.args[0] is a.args[1]


def _joined(nodes: Sequence[Node]) -> str:
    kinds = [n.dtype for n in nodes if n.dtype != "bool"]
    floating = [k for k in kinds if k.startswith(("float", "bfloat"))]
    return (floating or kinds or ["float32"])[0]
