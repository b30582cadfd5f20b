"""What an ATen operator becomes: one function each, from its arguments to primitives.

Arguments are nodes, numbers, or sizes (sympy). torch.export has decomposed everything else before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import sympy

from .build import ONE, GraphBuilder
from .graph import Node, NotGenerated, Size, product, same

Rule = Callable[..., Any]
RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    def keep(function: Rule) -> Rule:
        for n in names:
            RULES[n] = function
        return function

    return keep


for _name in ("clone", "alias", "detach", "lift_fresh_copy", "contiguous"):
    RULES[_name] = lambda b, x, **_: x


@rule("scalar_tensor", "full")
def _scalar(b: GraphBuilder, *args: Any, **_: Any) -> Any:
    shape, value = args if len(args) == 2 else ((), args[0])
    return b.full(_sizes(shape), float(value))


@rule("full_like")
def _full_like(b: GraphBuilder, x: Node, value: float, **_: Any) -> Any:
    return b.full(x.shape, float(value))


# -- reductions -------------------------------------------------------------------------------------------------------

for _name, _kind in (("sum", "sum"), ("mean", "mean"), ("amax", "max"), ("amin", "min"), ("prod", "prod")):

    def _reduction(
        b: GraphBuilder, x: Node, dims: Any = None, keep: bool = False, *, _op: str = _kind, **_: Any
    ) -> Any:
        return b.reduce(_op, x, _dims(dims), keep)

    RULES[_name] = _reduction


@rule("max", "min")
def _max(b: GraphBuilder, *args: Any, **_: Any) -> Any:
    raise NotGenerated("max and min with indices have no rule.")


def _place_of(kind: str) -> Rule:
    """Where the largest (or smallest) is along an axis: the first of several."""

    def made(b: GraphBuilder, x: Node, dim: int | None = None, keep: bool = False) -> Any:
        if dim is None:
            raise NotGenerated(f"{kind} of all elements has no rule.")
        dim %= len(x.shape)
        shape = tuple(ONE if d == dim else s for d, s in enumerate(x.shape))
        found = Node(kind, (x,), shape, "int64", b.name, {"dims": (dim,)})
        return found if keep else b.reshape(found, [s for d, s in enumerate(x.shape) if d != dim])

    return made


RULES["argmax"], RULES["argmin"] = _place_of("argmax"), _place_of("argmin")


def _values_only(kind: str) -> Rule:
    """max and min along an axis give values and indices; who uses only the values doesn't need more."""

    def made(b: GraphBuilder, x: Node, dim: int | None = None, keep: bool = False) -> Any:
        values = b.reduce(kind, x, _dims(dim), keep)
        return values if dim is None else (values,)

    return made


RULES["max"], RULES["min"] = _values_only("max"), _values_only("min")


@rule("linalg_vector_norm")
def _norm(b: GraphBuilder, x: Node, order: Any = 2, dims: Any = None, keep: bool = False, **_: Any) -> Any:
    if order == 2:
        return b.point("sqrt", b.reduce("sum", b.mul(x, x), _dims(dims), keep))
    size = b.point("abs", x)
    if order == 1:
        return b.reduce("sum", size, _dims(dims), keep)
    if order in (float("inf"), -float("inf")):
        return b.reduce("max" if order > 0 else "min", size, _dims(dims), keep)
    raise NotGenerated(f"the norm of order {order} has no rule.")


@rule("var")
def _var(b: GraphBuilder, x: Node, dims: Any = None, correction: Any = 1, keepdim: bool = False) -> Any:
    chosen = _dims(dims)
    centred = b.sub(x, b.reduce("mean", x, chosen, True))
    over = [x.shape[d] for d in (chosen or range(len(x.shape)))]
    total = b.reduce("sum", b.mul(centred, centred), chosen, keepdim)
    count = product(over) - (1 if correction is None else correction)
    return b.div(total, float(int(count)) if count.is_Integer else count)


@rule("_softmax")
def _softmax(b: GraphBuilder, x: Node, dim: int, half: bool = False) -> Any:
    e = b.point("exp", b.sub(x, b.reduce("max", x, [dim], True)))
    return b.mul(e, b.point("reciprocal", b.reduce("sum", e, [dim], True)))  # of at least 1: it doesn't overflow


@rule("_log_softmax")
def _log_softmax(b: GraphBuilder, x: Node, dim: int, half: bool = False) -> Any:
    shifted = b.sub(x, b.reduce("max", x, [dim], True))
    return b.sub(shifted, b.point("log", b.reduce("sum", b.point("exp", shifted), [dim], True)))


# -- normalizations ---------------------------------------------------------------------------------------------------


def _affine(b: GraphBuilder, y: Node, weight: Node | None, bias: Node | None, shape: Sequence[Size]) -> Node:
    if weight is not None:
        y = b.mul(y, b.reshape(weight, shape))
    return b.add(y, b.reshape(bias, shape)) if bias is not None else y


@rule("native_layer_norm")
def _layer_norm(b: GraphBuilder, x: Node, shape: Sequence[Any], weight: Any, bias: Any, eps: float) -> Any:
    rank = len(shape)
    y = b.normalized(x, range(-rank, 0), eps)
    return (_affine(b, y, weight, bias, x.shape[-rank:]),)


@rule("native_group_norm")
def _group_norm(
    b: GraphBuilder, x: Node, weight: Any, bias: Any, n: Any, c: Any, inner: Any, groups: int, eps: float
) -> Any:
    channels = x.shape[1]
    split = b.reshape(x, [x.shape[0], sympy.Integer(groups), channels / groups, *x.shape[2:]])
    y = b.normalized(split, range(2, len(split.shape)), eps)
    per_channel = [ONE, sympy.Integer(groups), channels / groups, *[ONE] * (len(x.shape) - 2)]
    return (b.reshape(_affine(b, y, weight, bias, per_channel), x.shape),)


@rule("_native_batch_norm_legit_functional")
def _batch_norm(
    b: GraphBuilder, x: Node, weight: Any, bias: Any, mean: Any, var: Any, training: bool, momentum: float, eps: float
) -> Any:
    per_channel = [ONE, x.shape[1], *[ONE] * (len(x.shape) - 2)]
    if training:
        y = b.normalized(x, [d for d in range(len(x.shape)) if d != 1], eps)
    else:
        scale = b.point("rsqrt", b.add(b.reshape(var, per_channel), eps))
        y = b.mul(b.sub(x, b.reshape(mean, per_channel)), scale)
    return (_affine(b, y, weight, bias, per_channel),)


@rule("_native_batch_norm_legit")
def _batch_norm_bare(
    b: GraphBuilder, x: Node, weight: Any, bias: Any, training: bool, momentum: float, eps: float
) -> Any:
    return _batch_norm(b, x, weight, bias, None, None, True, momentum, eps)


@rule("_native_batch_norm_legit_no_training")
def _batch_norm_still(
    b: GraphBuilder, x: Node, weight: Any, bias: Any, mean: Any, var: Any, momentum: float, eps: float
) -> Any:
    return _batch_norm(b, x, weight, bias, mean, var, False, momentum, eps)


# -- views ------------------------------------------------------------------------------------------------------------


@rule("view", "_unsafe_view", "reshape")
def _view(b: GraphBuilder, x: Node, shape: Sequence[Any]) -> Any:
    sizes = _sizes(shape)
    if any(s == -1 for s in sizes):
        known = product([s for s in sizes if s != -1])
        sizes = [product(x.shape) / known if s == -1 else s for s in sizes]
    return b.reshape(x, sizes)


@rule("unsqueeze")
def _unsqueeze(b: GraphBuilder, x: Node, dim: int) -> Any:
    at = dim % (len(x.shape) + 1)
    return b.reshape(x, [*x.shape[:at], ONE, *x.shape[at:]])


@rule("squeeze")
def _squeeze(b: GraphBuilder, x: Node, dims: Any = None) -> Any:
    chosen = [d % len(x.shape) for d in (_dims(dims) or range(len(x.shape)))] if x.shape else []
    return b.reshape(x, [s for d, s in enumerate(x.shape) if not (d in chosen and s == 1)])


@rule("expand")
def _expand(b: GraphBuilder, x: Node, shape: Sequence[Any], **_: Any) -> Any:
    return b.expand(x, _sizes(shape))


@rule("permute")
def _permute(b: GraphBuilder, x: Node, order: Sequence[int]) -> Any:
    return b.permute(x, order)


@rule("t")
def _t(b: GraphBuilder, x: Node) -> Any:
    return b.permute(x, range(len(x.shape) - 1, -1, -1))


@rule("transpose")
def _transpose(b: GraphBuilder, x: Node, one: int, two: int) -> Any:
    order = list(range(len(x.shape)))
    order[one], order[two] = order[two], order[one]
    return b.permute(x, order)


@rule("select")
def _select(b: GraphBuilder, x: Node, dim: int, index: int) -> Any:
    dim %= len(x.shape)
    start = sympy.sympify(index) if index >= 0 else x.shape[dim] + index
    part = b.slice(x, dim, start, ONE)
    return b.reshape(part, [s for d, s in enumerate(x.shape) if d != dim])


@rule("slice")
def _slice(b: GraphBuilder, x: Node, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    if step != 1:
        raise NotGenerated(f"a slice in steps of {step} has no rule.")
    size = x.shape[dim]
    first = sympy.sympify(start or 0)
    last = size if end is None or (isinstance(end, int) and end > 1 << 60) else sympy.sympify(end)
    first, last = (v + size if v.is_Integer and v < 0 else v for v in (first, last))
    return b.slice(x, dim, first, last - first)


@rule("split_with_sizes")
def _split(b: GraphBuilder, x: Node, sizes: Sequence[Any], dim: int = 0) -> Any:
    shares = b.shares(x.shape[dim], _sizes(sizes))
    starts = [sum(shares[:k], sympy.Integer(0)) for k in range(len(shares))]
    return tuple(b.slice(x, dim, start, size) for start, size in zip(starts, shares, strict=True))


@rule("cat")
def _cat(b: GraphBuilder, tensors: Sequence[Node], dim: int = 0) -> Any:
    first, *rest = tensors
    dim %= len(first.shape)
    if len(rest) == 1 and first.op == "number" and first.shape[dim].is_Integer:
        return b.pad(rest[0], dim, int(first.shape[dim]), first.args[0])
    return b.joined(tensors, dim)


@rule("flip")
def _flip(b: GraphBuilder, x: Node, dims: Sequence[int]) -> Any:
    return b.flip(x, dims)


# -- scans, windows, indices ------------------------------------------------------------------------------------------


def _scan(kind: str) -> Rule:
    def made(b: GraphBuilder, x: Node, dim: int, **_: Any) -> Any:
        info = {"kind": kind, "dim": dim % len(x.shape), "reverse": False}
        shape = x.shape
        if x.op == "pad" and x.info["dim"] == info["dim"] and x.info["before"] == 1:
            info |= {"before": 1, "value": x.info["value"]}
            x = x.args[0]
        return Node("scan", (x,), shape, "float32" if x.dtype == "bool" else x.dtype, b.name, info)

    return made


RULES["cumsum"], RULES["cumprod"] = _scan("sum"), _scan("prod")


def window(b: GraphBuilder, kind: str, x: Node, rank: int, **of: Sequence[int]) -> Node:
    """Windows over the last ``rank`` axes: kernel, stride, padding and dilation per axis."""
    lists = {name: [int(v[0] if len(v) == 1 else v[i]) for i in range(rank)] for name, v in of.items()}
    shape = list(x.shape)
    for i in range(rank):
        k, s, p, d = (lists[n][i] for n in ("kernel", "stride", "padding", "dilation"))
        at = len(shape) - rank + i
        shape[at] = sympy.floor((shape[at] + 2 * p - d * (k - 1) - 1) / sympy.Integer(s)) + 1
    return Node("window", (x,), tuple(shape), x.dtype, b.name, {"kind": kind, **lists})


def _pool(kind: str, rank: int) -> Rule:
    def average(
        b: GraphBuilder, x: Node, kernel: Any, stride: Any = (), padding: Any = (0,), ceil: bool = False,
        counted: bool = True, divisor: Any = None,
    ) -> Any:  # fmt: skip
        if ceil or (not counted and any(padding)):
            raise NotGenerated("average pooling that rounds up or doesn't count its padding has no rule.")
        total = window(b, "sum", x, rank, kernel=kernel, stride=stride or kernel, padding=padding, dilation=(1,))
        count = 1
        for i in range(rank):
            count *= total.info["kernel"][i]
        return b.mul(total, 1.0 / (divisor or count))

    def largest(
        b: GraphBuilder, x: Node, kernel: Any, stride: Any = (), padding: Any = (0,), dilation: Any = (1,),
        ceil: bool = False,
    ) -> Any:  # fmt: skip
        if ceil:
            raise NotGenerated("max pooling that rounds up has no rule.")
        return (window(b, "max", x, rank, kernel=kernel, stride=stride or kernel, padding=padding, dilation=dilation),)

    return average if kind == "sum" else largest


for _rank in (1, 2, 3):
    RULES[f"avg_pool{_rank}d"] = _pool("sum", _rank)
    RULES[f"max_pool{_rank}d_with_indices"] = _pool("max", _rank)


@rule("gather")
def _gather(b: GraphBuilder, x: Node, dim: int, index: Node, **_: Any) -> Any:
    dim %= len(x.shape)
    for d, size in enumerate(index.shape):  # a smaller index takes from the first elements of the other axes
        if d != dim and not same(size, x.shape[d]):
            x = b.slice(x, d, sympy.Integer(0), size)
    return b.pick(x, dim, index)


@rule("index_select")
def _index_select(b: GraphBuilder, x: Node, dim: int, index: Node) -> Any:
    dim %= len(x.shape)
    return b.pick(x, dim, b.reshape(index, [index.shape[0] if d == dim else ONE for d in range(len(x.shape))]))


@rule("embedding")
def _embedding(b: GraphBuilder, weight: Node, index: Node, *_: Any) -> Any:
    rows = b.pick(weight, 0, b.reshape(index, [product(index.shape), ONE]))
    return b.reshape(rows, [*index.shape, weight.shape[1]])


@rule("take_along_dim")
def _take_along_dim(b: GraphBuilder, x: Node, index: Node, dim: int) -> Any:
    """Negative indices count from the end."""
    dim %= len(x.shape)
    wrapped = Node("wrap", (index,), index.shape, index.dtype, index.name, {"size": x.shape[dim]})
    return _gather(b, x, dim, wrapped)


# -- into places that an index says, and other sizes: each has a schedule of its own -----------------------------------


def _scattered(b: GraphBuilder, x: Node, dim: int, index: Node, source: Node, add: bool) -> Node:
    """Updates in their order; what isn't along ``dim`` is as long in all three."""
    if not isinstance(source, Node) or len(source.shape) != len(x.shape):
        raise NotGenerated("a scatter of one value has no rule.")
    dim %= len(x.shape)
    for d, size in enumerate(source.shape):
        b.demand(size, x.shape[d] if d != dim else index.shape[min(d, len(index.shape) - 1)])
    for d, size in enumerate(index.shape if len(index.shape) == len(x.shape) > 1 else ()):
        b.demand(size, source.shape[d])
    info = {"dim": dim, "add": add}
    return Node("scatter", (x, index, source), x.shape, x.dtype, b.name, info)


@rule("scatter")
def _scatter(b: GraphBuilder, x: Node, dim: int, index: Node, source: Any) -> Any:
    return _scattered(b, x, dim, index, source, False)


@rule("scatter_add")
def _scatter_add(b: GraphBuilder, x: Node, dim: int, index: Node, source: Node) -> Any:
    return _scattered(b, x, dim, index, source, True)


@rule("index_copy")
def _index_copy(b: GraphBuilder, x: Node, dim: int, index: Node, source: Node) -> Any:
    return _scattered(b, x, dim, index, source, False)


@rule("index_put")
def _index_put(b: GraphBuilder, x: Node, indices: Sequence[Any], values: Node, accumulate: bool = False) -> Any:
    if len(indices) != 1 or indices[0] is None:
        raise NotGenerated("an index_put along another axis than the first has no rule.")
    return _scattered(b, x, 0, indices[0], values, accumulate)


def _resize(mode: str, rank: int) -> Rule:
    def made(b: GraphBuilder, x: Node, size: Any, *more: Any) -> Any:
        *align, factors = more
        lead = x.shape[: len(x.shape) - rank]
        spatial = x.shape[len(lead) :]
        if factors is not None and any(f != int(f) for f in factors):
            raise NotGenerated(f"a resize by the factors {factors} has no rule; whole ones have.")
        outs = _sizes(size) if size is not None else [s * int(f) for s, f in zip(spatial, factors, strict=True)]
        info = {"mode": mode, "align": bool(align and align[0]), "rank": rank}
        return Node("resize", (x,), (*lead, *outs), x.dtype, b.name, info)

    return made


for _rank, _word in ((1, "linear"), (2, "bilinear"), (3, "trilinear")):
    RULES[f"upsample_{_word}{_rank}d"] = _resize("linear", _rank)
    RULES[f"upsample_nearest{_rank}d"] = _resize("nearest", _rank)
RULES["upsample_bicubic2d"] = _resize("cubic", 2)
RULES["_upsample_bilinear2d_aa"] = _resize("antialias", 2)


@rule("bitwise_and", "logical_and")
def _and(b: GraphBuilder, x: Any, y: Any) -> Any:
    return _bits(b, "mul", x, y)


@rule("bitwise_or", "logical_or")
def _or(b: GraphBuilder, x: Any, y: Any) -> Any:
    return _bits(b, "maximum", x, y)


def _bits(b: GraphBuilder, op: str, x: Node, y: Node) -> Node:
    if (x.dtype, y.dtype) != ("bool", "bool"):
        raise NotGenerated(f"bits of {x.dtype} have no rule.")
    return b.point(op, x, y, dtype="bool")


def _dims(dims: Any) -> list[int] | None:
    if dims is None:
        return None
    return [dims] if isinstance(dims, int) else list(dims)


def _sizes(of: Sequence[Any]) -> list[Size]:
    return [sympy.sympify(s) for s in of]
