"""Operators of cann-ops's folder ``math`` that work element by element."""

from __future__ import annotations

import torch

from .table import COARSE, FLOATS, HF, POSITIVE, Row, gelu_tanh


def gelu_grad(dy: torch.Tensor, x: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
    leaf = x.clone().requires_grad_()
    return torch.autograd.grad(gelu_tanh(leaf), leaf, dy)[0]


def angle(x: torch.Tensor) -> torch.Tensor:
    return torch.angle(x) if x.is_complex() or x.is_floating_point() else torch.where(x < 0, torch.pi, 0.0)


def kl_div_target_grad(
    g: torch.Tensor, x: torch.Tensor, t: torch.Tensor, reduction: int, log_target: bool
) -> torch.Tensor:
    scale = 1 / x.numel() if reduction == 1 else 1.0
    return scale * g * (t.exp() * (t + 1 - x) if log_target else torch.where(t > 0, t.log() + 1 - x, 0.0))


def spence(x: torch.Tensor) -> torch.Tensor:
    """The integral of log(t) / (1 - t) from 1 to x, by Simpson's rule over 4096 steps."""
    steps = torch.linspace(0, 1, 4097, dtype=torch.float64)
    t = 1 + (x.reshape(-1, 1) - 1) * steps
    values = torch.where((t - 1).abs() < 1e-12, -1.0, t.log() / (1 - t).where((t - 1).abs() >= 1e-12, 1.0))
    weights = torch.full((4097,), 2.0, dtype=torch.float64)
    weights[1::2] = 4
    weights[0] = weights[-1] = 1
    return ((values * weights).sum(1) * (x.reshape(-1) - 1) / 4096 / 3).reshape(x.shape)


BOUNDS = {1: (-1.0, -0.1), 2: (0.1, 1.0)}
INT_BOUNDS = {1: (-50, -10), 2: (10, 50)}
# dtype -> number of ge::DataType, what the attribute dst_type holds.
NUMBERS = {"float32": 0, "float16": 1, "int8": 2, "int32": 3, "uint8": 4, "int16": 6, "int64": 9, "bool": 12,
           "bfloat16": 27}  # fmt: skip
CASTS = {
    "float16": "float32 int8 int32 int16 uint8 bool bfloat16",
    "float32": "float16 bfloat16 int32 int64 bool int8 uint8 int16",
    "int32": "float32 float16 bfloat16 int8 uint8 int16 int64 bool",
    "int8": "float16 float32 int32 uint8 bool bfloat16 int16 int64",
    "uint8": "float16 float32 int32 int8 int16 bfloat16 int64",
    "bool": "float16 float32 int32 int8 uint8 bfloat16 int64",
    "int64": "float16 float32 int8 int32 uint8 bool int16 bfloat16",
    "bfloat16": "float16 float32 int8 int32 uint8 bool",
    "int16": "float16 float32 int8 int32 uint8 int64",
}


def cast(x: torch.Tensor, dst_type: int) -> torch.Tensor:
    target = next(name for name, number in NUMBERS.items() if number == dst_type)
    return x.to(getattr(torch, target))


CAST_ROWS = tuple(
    Row("math/cast", "S[8,2048] -> T[8,2048]", cast, (f"{target}/{source}",), attrs={"dst_type": NUMBERS[target]},
        domain={0: (0, 100)} if "uint8" in (source, target) else {})
    for source, targets in CASTS.items() for target in targets.split()
)  # fmt: skip

TAIL = "T[7,2045] -> T[7,2045]"
WHOLE = "T[8,2048] -> T[8,2048]"
BOTH = (WHOLE, TAIL)
WHOLE2 = "T[8,2048] T[8,2048] -> T[8,2048]"
TAIL2 = "T[7,2045] T[7,2045] -> T[7,2045]"
# Tails of less than whole blocks are read past the tensor's allocation: these operators round up to 256 bytes.
COMPARED = ("T[8,2048] T[8,2048] -> bool[8,2048]", "T[4,96] T[4,96] -> bool[4,96]")
TERMS = tuple(f"T{s} T{s} T{s} T[1] -> T{s}" for s in ("[32,64]", "[33,77]"))
POWERS = tuple(f"T{s} T[1] -> T{s}" for s in ("[8,2048]", "[7,2045]"))
CLIPPED = tuple(f"T{s} T[1] T[1] -> T{s}" for s in ("[8,2048]", "[7,2045]"))
GRADS = tuple(f"T{s} T{s} T{s} -> T{s}" for s in ("[32,512]", "[33,77]"))


def clip(x: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> torch.Tensor:
    return torch.minimum(torch.maximum(x, low), high)


ROWS = (
    Row("math/abs", BOTH, torch.abs, (*FLOATS, "int32", "int64", "complex64")),
    Row("math/add_custom", (WHOLE2, TAIL2), torch.add, (*HF, "int32", "int8"), domain={0: (-50, 50), 1: (-50, 50)}),
    Row("math/addcdiv", TERMS, lambda x, a, b, v: x + v * a / b, FLOATS, domain={2: (0.5, 4)}),
    # Bit for bit ((a * b) * v + x) with every step rounded to float16: at worst 1.2 of the usual tolerances off.
    Row("math/addcmul", TERMS, lambda x, a, b, v: x + v * a * b, (*FLOATS, "int32"), tolerance=COARSE),
    Row("math/angle_v2", BOTH, angle, HF),
    # Complex numbers: whole tiles of 2816 on 40 cores, the last tile's offset is wrong otherwise.
    Row("math/angle_v2", "complex64[40,2816] -> float32[40,2816]", angle),
    Row("math/angle_v2", "T[40,256] -> float32[40,256]", angle,
        ("bool", "uint8", "int8", "int16", "int32", "int64")),
    Row("math/clip_by_value", CLIPPED, clip, HF, domain=BOUNDS),
    Row("math/clip_by_value", CLIPPED[0], clip, ("int32",), domain=INT_BOUNDS),
    Row("math/clip_by_value_v2", CLIPPED, clip, FLOATS, domain=BOUNDS),
    Row("math/clip_by_value_v2", CLIPPED[0], clip, ("int32",), domain=INT_BOUNDS),
    Row("math/cos", BOTH, torch.cos, FLOATS),
    Row("math/sin", BOTH, torch.sin, FLOATS),
    Row("contrib/math/exp", BOTH, lambda x, base, scale, shift: torch.exp(x * scale + shift), FLOATS,
        attrs={"base": -1.0, "scale": 1.0, "shift": 0.0}),
    Row("contrib/math/exp", WHOLE, lambda x, base, scale, shift: base ** (x * scale + shift),
        attrs={"base": 2.0, "scale": 0.5, "shift": 0.25}, tolerance=COARSE),
    Row("math/equal", COMPARED, torch.eq, (*FLOATS, "int8", "uint8", "int32", "uint32"),
        domain={0: (0, 3), 1: (0, 3)}),
    Row("math/greater_equal", COMPARED, torch.ge, (*HF, "int32")),
    Row("math/less", COMPARED, torch.lt, (*FLOATS, "int8", "uint8", "int32", "int64")),
    Row("math/less_equal", COMPARED, torch.le, (*HF, "int8", "int32")),
    Row("math/fast_gelu", BOTH, lambda x: x * torch.sigmoid(1.702 * x), HF, tolerance=COARSE),
    Row("math/gcd", (WHOLE2, "T[16,100] T[16,100] -> T[16,100]"), torch.gcd, ("int16", "int32", "int64")),
    Row("math/gelu", BOTH, gelu_tanh, FLOATS, tolerance={"float32": 1e-3}),
    Row("math/gelu_grad", GRADS, gelu_grad, FLOATS),
    Row("math/heaviside", (WHOLE2, "T[5,256] T[5,256] -> T[5,256]"), torch.heaviside, HF),
    Row("math/is_finite", tuple(c.replace("> T", "> bool") for c in BOTH), torch.isfinite, FLOATS),
    Row("math/is_inf", tuple(c.replace("> T", "> bool") for c in BOTH), torch.isinf, FLOATS),
    Row("math/kl_div_target_backward", GRADS, kl_div_target_grad, FLOATS, attrs={"reduction": 2, "log_target": False},
        domain={2: (0.1, 4)}, tolerance=COARSE),
    Row("math/kl_div_target_backward", GRADS[0], kl_div_target_grad, attrs={"reduction": 1, "log_target": True},
        domain={2: (-4, 1)}, tolerance=COARSE),
    Row("math/lerp", GRADS, torch.lerp, FLOATS),
    Row("math/logical_not", tuple(c.replace("T", "bool") for c in BOTH), torch.logical_not),
    Row("math/logical_or", tuple(c.replace("T", "bool") for c in (WHOLE2, TAIL2)), torch.logical_or),
    Row("math/muls", ("T[8,2048] float32[1] -> T[8,2048]", "T[7,2045] float32[1] -> T[7,2045]"), torch.mul,
        (*FLOATS, "complex64")),
    Row("math/muls", "T[8,2048] float32[1] -> T[8,2048]", lambda x, v: x * v.to(x.dtype), ("int16", "int32"),
        values={1: [3]}, columns_left_out={5: "casts int64 to float32 with CAST_NONE, which does nothing"}),
    Row("math/neg", BOTH, torch.neg, (*FLOATS, "int32", "int8")),
    # The exponent is one number, of -2, -1, -1/2, 1/2, 2 and 3.
    Row("math/pows", POWERS, torch.pow, FLOATS, values={1: [3]}),
    Row("math/pows", POWERS, torch.pow, FLOATS, values={1: [-0.5]}, domain={0: (0.1, 4)}),
    Row("math/rsqrt", BOTH, torch.rsqrt, FLOATS, domain=POSITIVE),
    # Compare's unit are whole 256 bytes, here of float32.
    Row("math/spence", (WHOLE, "T[11,64] -> T[11,64]"), spence, HF, domain={0: (0.05, 1.95)}),
    Row("math/sqrt", BOTH, torch.sqrt, FLOATS, domain={0: (0, 8)}),
    Row("math/sub_frameworklaunch", (WHOLE2, "T[8,2000] T[8,2000] -> T[8,2000]"), torch.sub),
    Row("math/swish", BOTH, lambda x, scale: x * torch.sigmoid(scale * x), FLOATS, attrs={"scale": 1.0}),
    Row("math/tanh", BOTH, torch.tanh, FLOATS),
    # 8 cores of 16 pieces each, whatever is left is not computed.
    Row("math/unalign_add", (WHOLE2, "T[3,2048] T[3,2048] -> T[3,2048]"), torch.add),
    # One tile: tiles of more are no whole 256 bytes, the unit of Compare.
    Row("math/xlogy", ("T[2,2048] T[2,2048] -> T[2,2048]", "T[9,128] T[9,128] -> T[9,128]"), torch.xlogy, HF,
        domain={1: (0.1, 8)}),
    *CAST_ROWS,
)  # fmt: skip
