"""What an elementwise ATen operator becomes, as aten.py: whatever torch.export has not decomposed."""

from __future__ import annotations

import math
from typing import Any

from .aten import RULES, rule
from .build import GraphBuilder
from .graph import Node, NotGenerated

for _name in ("exp", "log", "sqrt", "rsqrt", "reciprocal", "tanh", "sigmoid", "erf", "abs", "neg", "relu"):
    RULES[_name] = lambda b, x, _op=_name: b.point(_op, x)
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    RULES[_name] = lambda b, x, y, _op=_name: b.point(_op, x, y)
RULES["mul"] = lambda b, x, y: b.mul(x, y)
for _name in ("div", "maximum", "minimum"):
    RULES[_name] = lambda b, x, y, _op=_name: b.point(_op, x, y)


@rule("add")
def _add(b: GraphBuilder, x: Any, y: Any, alpha: Any = 1) -> Any:
    return b.add(x, y if alpha == 1 else b.mul(y, alpha))


@rule("sub")
def _sub(b: GraphBuilder, x: Any, y: Any, alpha: Any = 1) -> Any:
    return b.sub(x, y if alpha == 1 else b.mul(y, alpha))


@rule("rsub")
def _rsub(b: GraphBuilder, x: Any, y: Any, alpha: Any = 1) -> Any:
    return b.sub(y, x if alpha == 1 else b.mul(x, alpha))


@rule("pow")
def _pow(b: GraphBuilder, x: Any, exponent: Any) -> Any:
    return b.power(x, exponent)


@rule("where")
def _where(b: GraphBuilder, test: Node, yes: Any, no: Any) -> Any:
    return b.where(test, yes, no)


@rule("isnan")
def _isnan(b: GraphBuilder, x: Node) -> Any:
    return b.point("ne", x, x)


@rule("clamp")
def _clamp(b: GraphBuilder, x: Any, low: Any = None, high: Any = None) -> Any:
    return b.clamp(x, low, high)


@rule("clamp_min")
def _clamp_min(b: GraphBuilder, x: Any, low: Any) -> Any:
    return b.clamp(x, low, None)


@rule("hardtanh")
def _hardtanh(b: GraphBuilder, x: Any, low: float = -1.0, high: float = 1.0) -> Any:
    return b.clamp(x, low, high)


@rule("expm1")
def _expm1(b: GraphBuilder, x: Any) -> Any:
    return b.expm1(x)


@rule("log1p")
def _log1p(b: GraphBuilder, x: Any) -> Any:
    return b.log1p(x)


@rule("elu")
def _elu(b: GraphBuilder, x: Any, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Any:
    """CANN's own form: what exp(x) - 1 loses near 0 is 6e-8 at most."""
    bent = b.sub(b.point("exp", b.mul(b.point("minimum", x, 0.0), input_scale)), 1.0)
    return b.add(b.mul(b.point("relu", x), scale), b.mul(bent, alpha * scale))


@rule("leaky_relu")
def _leaky_relu(b: GraphBuilder, x: Any, slope: float = 0.01) -> Any:
    return b.where(b.point("gt", x, 0.0), x, b.mul(x, slope))


#: Polynomial whose exponential is the normal distribution's upper tail, 1 - Phi(x), for x from 0 on; fitted so that x
#: times it is off by 4.4e-7 at most (6.4e-7 in float32). A third of the instructions that erf takes.
_UPPER_TAIL = (-0.69317323, -0.79766536, -0.31884247, -0.035924006, 0.0049106409, -0.00032807302)


@rule("gelu")
def _gelu(b: GraphBuilder, x: Any, approximate: str = "none") -> Any:
    if approximate == "tanh":
        inner = b.mul(b.add(x, b.mul(b.power(x, 3), 0.044715)), 0.7978845608028654)
        return b.mul(b.mul(x, 0.5), b.add(b.point("tanh", inner), 1.0))
    size = b.point("minimum", b.point("abs", x), 100.0)
    exponent = b.mul(size, _UPPER_TAIL[-1])
    for coefficient in _UPPER_TAIL[-2:0:-1]:
        exponent = b.mul(b.add(exponent, coefficient), size)
    tail = b.point("exp", b.add(exponent, _UPPER_TAIL[0]))
    return b.sub(b.point("relu", x), b.mul(size, tail))


#: From here on a float32 has no digits behind the point: what is added is rounded to a whole number, ties to even.
_WHOLE = float(1 << 23)


def _rounded_size(b: GraphBuilder, x: Any) -> tuple[Node, Node]:
    """The absolute value, and the whole number nearest to it."""
    size = b.point("abs", x)
    whole = b.sub(b.add(size, _WHOLE), _WHOLE)
    return size, b.where(b.point("lt", size, _WHOLE), whole, size)


def _signed(b: GraphBuilder, size: Node, x: Any) -> Node:
    return b.where(b.point("lt", x, 0.0), b.point("neg", size), size)


@rule("round")
def _round(b: GraphBuilder, x: Any, decimals: int = 0) -> Any:
    if decimals:
        scale = 10.0**decimals
        return b.div(_round(b, b.mul(x, scale)), scale)
    return _signed(b, _rounded_size(b, x)[1], x)


@rule("floor")
def _floor(b: GraphBuilder, x: Any) -> Any:
    near = _round(b, x)
    return b.where(b.point("gt", near, x), b.sub(near, 1.0), near)


@rule("ceil")
def _ceil(b: GraphBuilder, x: Any) -> Any:
    near = _round(b, x)
    return b.where(b.point("lt", near, x), b.add(near, 1.0), near)


@rule("trunc")
def truncated(b: GraphBuilder, x: Any) -> Any:
    """Towards 0, as a conversion to a whole number does."""
    size, near = _rounded_size(b, x)
    return _signed(b, b.where(b.point("gt", near, size), b.sub(near, 1.0), near), x)


@rule("frac")
def _frac(b: GraphBuilder, x: Any) -> Any:
    return b.sub(x, truncated(b, x))


@rule("sign", "sgn")
def _sign(b: GraphBuilder, x: Any) -> Any:
    return b.where(b.point("gt", x, 0.0), 1.0, b.where(b.point("lt", x, 0.0), -1.0, 0.0))


@rule("exp2")
def _exp2(b: GraphBuilder, x: Any) -> Any:
    return b.point("exp", b.mul(x, math.log(2)))


@rule("log2")
def _log2(b: GraphBuilder, x: Any) -> Any:
    return b.mul(b.point("log", x), 1 / math.log(2))


@rule("log10")
def _log10(b: GraphBuilder, x: Any) -> Any:
    return b.mul(b.point("log", x), 1 / math.log(10))


@rule("sinh")
def _sinh(b: GraphBuilder, x: Any) -> Any:
    """By exp(|x|) - 1, which keeps its digits near 0."""
    risen = b.expm1(b.point("abs", x))
    return _signed(b, b.mul(b.add(risen, b.div(risen, b.add(risen, 1.0))), 0.5), x)


@rule("cosh")
def _cosh(b: GraphBuilder, x: Any) -> Any:
    risen = b.point("exp", b.point("abs", x))
    return b.mul(b.add(risen, b.point("reciprocal", risen)), 0.5)


@rule("bitwise_not", "logical_not")
def _not(b: GraphBuilder, x: Node) -> Any:
    if x.dtype != "bool":
        raise NotGenerated(f"bits of {x.dtype} have no rule.")
    return b.point("sub", 1.0, x, dtype="bool")
