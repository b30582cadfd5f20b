"""Operators of cann-ops's folder ``math``."""

from __future__ import annotations

import torch

from .table import COARSE, FLOATS, HF, POSITIVE, Row, gelu_tanh


def gelu_grad(dy: torch.Tensor, x: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
    leaf = x.clone().requires_grad_()
    return torch.autograd.grad(gelu_tanh(leaf), leaf, dy)[0]


ROWS = (
    Row("math/abs", "T[7,1000] -> T[7,1000]", torch.abs, (*FLOATS, "int32", "int64")),
    Row("math/add_custom", "T[8,2048] T[8,2048] -> T[8,2048]", torch.add, (*HF, "int32", "int8"),
        domain={0: (-50, 50), 1: (-50, 50)}),
    Row("math/addcdiv", "T[33,77] T[33,77] T[33,77] T[1] -> T[33,77]", lambda x, a, b, v: x + v * a / b, FLOATS,
        domain={2: (0.5, 4)}),
    Row("math/addcmul", "T[33,77] T[33,77] T[33,77] T[1] -> T[33,77]", lambda x, a, b, v: x + v * a * b, FLOATS),
    Row("math/clip_by_value", "T[7,2045] T[1] T[1] -> T[7,2045]", lambda x, a, b: torch.minimum(torch.maximum(x, a),
        b), HF,
        domain={1: (-1, -0.1), 2: (0.1, 1)}),
    Row("math/clip_by_value_v2", "T[7,2045] T[1] T[1] -> T[7,2045]", lambda x, a, b: torch.minimum(torch.maximum(x,
        a), b), FLOATS,
        domain={1: (-1, -0.1), 2: (0.1, 1)}),
    Row("math/cos", "T[17,333] -> T[17,333]", torch.cos, FLOATS),
    Row("math/sin", "T[17,333] -> T[17,333]", torch.sin, FLOATS),
    Row("math/equal", "T[8,2048] T[8,2048] -> bool[8,2048]", torch.eq, (*FLOATS, "int8", "int32")),
    Row("math/less", "T[8,2048] T[8,2048] -> bool[8,2048]", torch.lt, (*FLOATS, "int8", "int32", "int64")),
    Row("math/fast_gelu", "T[7,2045] -> T[7,2045]", lambda x: x * torch.sigmoid(1.702 * x), HF, tolerance=COARSE),
    Row("math/gelu", "T[7,2045] -> T[7,2045]", gelu_tanh, FLOATS, tolerance={"float32": 1e-3}),
    Row("math/is_finite", "T[7,2045] -> bool[7,2045]", torch.isfinite, FLOATS),
    Row("math/is_inf", "T[7,2045] -> bool[7,2045]", torch.isinf, FLOATS),
    Row("math/lerp", "T[33,77] T[33,77] T[33,77] -> T[33,77]", torch.lerp, FLOATS),
    Row("math/logical_not", "bool[7,2045] -> bool[7,2045]", torch.logical_not),
    Row("math/logical_or", "bool[7,2045] bool[7,2045] -> bool[7,2045]", torch.logical_or),
    Row("math/muls", "T[7,2045] float32[1] -> T[7,2045]", torch.mul, FLOATS),
    Row("math/neg", "T[7,2045] -> T[7,2045]", torch.neg, (*HF, "int32", "int8")),
    Row("math/rsqrt", "T[7,2045] -> T[7,2045]", torch.rsqrt, FLOATS, domain=POSITIVE),
    Row("math/sqrt", "T[7,2045] -> T[7,2045]", torch.sqrt, FLOATS, domain={0: (0, 8)}),
    Row("math/swish", "T[7,2045] -> T[7,2045]", lambda x, scale: x * torch.sigmoid(scale * x), FLOATS,
        attrs={"scale": 1.0}),
    Row("math/tanh", "T[7,2045] -> T[7,2045]", torch.tanh, FLOATS),
    Row("math/tril", "T[64,96] -> T[64,96]", torch.tril, HF, attrs={"diagonal": 0}),
    Row("math/triu", "T[64,96] -> T[64,96]", torch.triu, HF, attrs={"diagonal": 0}),
    Row("math/heaviside", "T[7,2048] T[7,2048] -> T[7,2048]", torch.heaviside, HF),
    Row("math/gelu_grad", "T[7,2048] T[7,2048] T[7,2048] -> T[7,2048]", gelu_grad, FLOATS),
    Row("math/snrm2", "T[5000] -> T[1]", lambda x, n, incx: x.norm(), ("float32",), attrs={"n": 5000, "incx": 1}),
    Row("math/scopy", "T[5000] -> T[5000]", lambda x, n, incx, incy: x, ("float32",), attrs={"n": 5000, "incx": 1,
        "incy": 1}),
    Row("math/unalign_add", "T[8,2048] T[8,2048] -> T[8,2048]", torch.add),
    Row("math/sub_frameworklaunch", "T[8,2048] T[8,2048] -> T[8,2048]", torch.sub),
    Row("math/gcd", "T[16,100] T[16,100] -> T[16,100]", torch.gcd, ("int16", "int32")),
    Row("math/cast", "float32[100,100] -> float16[100,100]", lambda x, dst_type: x, attrs={"dst_type": 1}),
    Row("math/cast", "float16[100,100] -> float32[100,100]", lambda x, dst_type: x, attrs={"dst_type": 0}),
    Row("math/cast", "float32[100,100] -> int32[100,100]", lambda x, dst_type: x.trunc().to(torch.int32),
        attrs={"dst_type": 3}),
    Row("math/kl_div_target_backward", "T[32,512] T[32,512] T[32,512] -> T[32,512]",
        lambda g, x, t, reduction, log_target: g * (t.log() + 1 - x), ("float16", "float32"),
        attrs={"reduction": 2, "log_target": False}, domain={2: (0.1, 4)}, tolerance=COARSE),
)  # fmt: skip
