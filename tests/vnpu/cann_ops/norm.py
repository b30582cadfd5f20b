"""Operators of cann-ops's folder ``norm``.

Not every path of these operators is right, so that shapes are chosen that take one that is: see norm_faults.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .table import FLOATS, TWICE, Row, Tensors, clip_int8, layer_norm

Tensor = torch.Tensor
HB = ("float16", "bfloat16")
MIXED = ("float16/float32", "bfloat16/float32")  # parameters in float32 beside shorter data
POSITIVE_RSTD = (0.5, 2.0)


# ---- root mean square ----
def rms(x: Tensor, epsilon: float) -> Tensor:
    return torch.rsqrt(x.square().mean(-1, keepdim=True) + epsilon)


def add_rms_norm(a: Tensor, b: Tensor, gamma: Tensor, epsilon: float) -> Tensors:
    x = a + b
    return x * rms(x, epsilon) * gamma, rms(x, epsilon), x


def rms_norm_grad(dy: Tensor, x: Tensor, rstd: Tensor, gamma: Tensor) -> Tensors:
    g = dy * gamma
    dx = rstd * (g - x * rstd * (g * x * rstd).mean(-1, keepdim=True))
    return dx, (dy * x * rstd).sum(0)


# ---- layer norm ----
def affine(x: Tensor, gamma: Tensor | None, beta: Tensor | None) -> Tensor:
    return (x if gamma is None else x * gamma) + (0 if beta is None else beta)


def layer_norm_v4(x: Tensor, shape: Tensor, gamma: Tensor | None, beta: Tensor | None, epsilon: float) -> Tensors:
    dims = tuple(range(x.dim() - shape.numel(), x.dim()))
    mean = x.mean(dims, keepdim=True)
    rstd = torch.rsqrt(x.var(dims, correction=0, keepdim=True) + epsilon)
    return affine((x - mean) * rstd, gamma, beta), mean, rstd


def add_layer_norm(
    a: Tensor, b: Tensor, gamma: Tensor, beta: Tensor, bias: Tensor | None, epsilon: float, additional_output: bool
) -> Tensors:
    x = a + b + (0 if bias is None else bias)
    y, mean, rstd = layer_norm(x, epsilon)
    return y * gamma + beta, mean, rstd, x


def quantize_add_layer_norm(
    a: Tensor, b: Tensor, gamma: Tensor, beta: Tensor, bias: Tensor, scale: Tensor, zero: Tensor, epsilon: float,
    **_: Any,
) -> Tensors:  # fmt: skip
    x = a + b + bias
    y = layer_norm(x, epsilon)[0] * gamma + beta
    return clip_int8(y / scale + zero), x


def dua_quantize_add_layer_norm(
    a: Tensor, b: Tensor, gamma: Tensor, beta: Tensor, bias: Tensor, s1: Tensor, s2: Tensor, z1: Tensor, z2: Tensor,
    epsilon: float, **_: Any,
) -> Tensors:  # fmt: skip
    x = a + b + bias
    y = layer_norm(x, epsilon)[0] * gamma + beta
    return clip_int8(y / s1 + z1), clip_int8(y / s2 + z2), x


def norm_grad(g: Tensor, x: Tensor, mean: Tensor, rstd: Tensor) -> Tensor:
    """Gradient of ``(x - mean) * rstd`` over the last axis, for the gradient ``g`` of the result."""
    xhat = (x - mean) * rstd
    return rstd * (g - g.mean(-1, keepdim=True) - xhat * (g * xhat).mean(-1, keepdim=True))


def add_layer_norm_grad(
    dy: Tensor, x1: Tensor, x2: Tensor, rstd: Tensor, mean: Tensor, gamma: Tensor, dsum: Tensor | None
) -> Tensors:
    x = x1 + x2
    dx = norm_grad(dy * gamma, x, mean, rstd) + (0 if dsum is None else dsum)
    return dx, (dy * (x - mean) * rstd).sum(0), dy.sum(0)


def deep_norm(x: Tensor, gx: Tensor, beta: Tensor, gamma: Tensor, alpha: float, epsilon: float) -> Tensors:
    y, mean, rstd = layer_norm(alpha * x + gx, epsilon)
    return mean, rstd, y * gamma + beta


def deep_norm_grad(
    dy: Tensor, x: Tensor, gx: Tensor, gamma: Tensor, mean: Tensor, rstd: Tensor, alpha: float
) -> Tensors:
    sums = alpha * x + gx
    dgx = norm_grad(dy * gamma, sums, mean, rstd)
    return alpha * dgx, dgx, dy.sum(0), (dy * (sums - mean) * rstd).sum(0)


# ---- group norm ----
def group_norm(x: Tensor, gamma: Tensor | None, beta: Tensor | None, groups: int, eps: float) -> Tensors:
    flat = x.reshape(x.shape[0], groups, -1)
    _, mean, rstd = layer_norm(flat, eps)
    return torch.nn.functional.group_norm(x, groups, gamma, beta, eps), mean, rstd


def group_norm_silu(
    x: Tensor, gamma: Tensor | None, beta: Tensor | None, num_groups: int, eps: float, activate_silu: bool
) -> Tensors:
    y, mean, rstd = group_norm(x, gamma, beta, num_groups, eps)
    return (torch.nn.functional.silu(y) if activate_silu else y), mean, rstd


def group_norm_swish(
    x: Tensor, gamma: Tensor, beta: Tensor, num_groups: int, eps: float, activate_swish: bool, swish_scale: float,
    **_: Any,
) -> Tensors:  # fmt: skip
    y, mean, rstd = group_norm(x, gamma, beta, num_groups, eps)
    return (y * torch.sigmoid(swish_scale * y) if activate_swish else y), mean, rstd


def group_norm_grad(
    dy: Tensor, mean: Tensor, rstd: Tensor, x: Tensor, gamma: Tensor, num_groups: int, **_: Any
) -> Tensors:
    n, c = x.shape[:2]
    per_group = (n, num_groups, -1)
    m, r = mean.reshape(n, num_groups, 1), rstd.reshape(n, num_groups, 1)
    xhat = ((x.reshape(per_group) - m) * r).reshape(n, c, -1)
    g = dy.reshape(n, c, -1)
    dx = norm_grad((g * gamma[:, None]).reshape(per_group), x.reshape(per_group), m, r)
    return dx.reshape(x.shape), (g * xhat).sum((0, 2)), g.sum((0, 2))


def group_norm_swish_grad(
    dy: Tensor, mean: Tensor, rstd: Tensor, x: Tensor, gamma: Tensor, beta: Tensor, num_groups: int,
    swish_scale: float, **_: Any,
) -> Tensors:  # fmt: skip
    n, c = x.shape[:2]
    m, r = mean.reshape(n, num_groups, 1), rstd.reshape(n, num_groups, 1)
    xhat = ((x.reshape(n, num_groups, -1) - m) * r).reshape(n, c, -1)
    y = xhat * gamma[:, None] + beta[:, None]
    s = torch.sigmoid(swish_scale * y)
    g = dy.reshape(n, c, -1) * (s + swish_scale * y * s * (1 - s))
    return group_norm_grad(g.reshape(x.shape), mean, rstd, x, gamma, num_groups)


def batch_norm_v3(
    x: Tensor, weight: Tensor, bias: Tensor, mean: Tensor, var: Tensor, epsilon: float, momentum: float,
    is_training: bool,
) -> Tensors:  # fmt: skip
    over, shape = (0, *range(2, x.dim())), (1, -1, *[1] * (x.dim() - 2))
    batch_mean, batch_var = x.mean(over), x.var(over, correction=0)
    rstd = torch.rsqrt(batch_var + epsilon)
    y = (x - batch_mean.reshape(shape)) * rstd.reshape(shape) * weight.reshape(shape) + bias.reshape(shape)
    n = x.numel() // x.shape[1]
    running_var = (1 - momentum) * var + momentum * batch_var * n / (n - 1)
    # The last output is called save_rstd; what this operator saves is the variance.
    return y, (1 - momentum) * mean + momentum * batch_mean, running_var, batch_mean, batch_var


def cases(pattern: str, *sizes: dict[str, int]) -> tuple[str, ...]:
    """The pattern with its letters in brackets replaced, once for every set of sizes."""
    texts = []
    for size in sizes:
        text = pattern
        for name, n in size.items():
            text = text.replace(f"{{{name}}}", str(n))
        texts.append(text)
    return tuple(texts)


def sizes(**columns: tuple[int, ...]) -> tuple[dict[str, int], ...]:
    return tuple(dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))


QUANTIZE = {"dtype": 2, "axis": -1, "epsilon": 1e-5, "additional_output": True}
# Beside a half a quotient rounds either way; computed in float16 on the way, or from values rounded to bfloat16.
ROUNDED = {"int8": {"atol": 1, "ratio": 0.02}}
BLOCKS = sizes(n=(16, 7), d=(1024, 128))  # whole repeats
ND = sizes(n=(16, 7), d=(1024, 100))
SHORT = sizes(n=(16, 7), d=(96, 100))
GROUPS = {"num_groups": 8, "eps": 1e-5}
SWISH = {**GROUPS, "data_format": "NCHW", "activate_swish": True, "swish_scale": 1.0}
GROUP_GRAD = {"num_groups": 4, "data_format": "NCHW", "dx_is_require": True, "dgamma_is_require": True,
              "dbeta_is_require": True}  # fmt: skip
SWISH_GRAD = {"num_groups": 4, "data_format": "NCHW", "swish_scale": 1.0, "dgamma_is_require": True,
              "dbeta_is_require": True}  # fmt: skip
NCHW = sizes(n=(2, 3), c=(32, 16), h=(8, 5), w=(8, 7))


def cast(reference: Callable[..., Tensors]) -> Callable[..., Tensors]:
    """The first output twice: in float32, and in the dtype of the data."""

    def both(*arguments: Any, **attrs: Any) -> Tensors:
        outputs = reference(*arguments, **attrs)
        return outputs[0], *outputs

    return both


ROWS = (
    Row("norm/add_rms_norm", cases("T[{n},{d}] T[{n},{d}] T[{d}] -> T[{n},{d}] float32[{n},1] T[{n},{d}]", *ND),
        add_rms_norm, FLOATS, attrs={"epsilon": 1e-6}, tolerance=TWICE),
    Row("norm/add_rms_norm_cast",
        cases("T[{n},{d}] T[{n},{d}] T[{d}] -> float32[{n},{d}] T[{n},{d}] float32[{n},1] T[{n},{d}]", *ND),
        cast(add_rms_norm), HB, attrs={"epsilon": 1e-6}, tolerance={"float32": 4e-3}),
    Row("norm/inplace_add_rms_norm",
        cases("T[{n},{d}] T[{n},{d}] T[{d}] -> T[{n},{d}] float32[{n},1] T[{n},{d}]", *ND),
        add_rms_norm, FLOATS, attrs={"epsilon": 1e-6}, tolerance=TWICE),
    # Rows of 1024 take another reduction, which sums one block eight times (a source block stride of 0).
    Row("norm/rms_norm_grad",
        cases("T[{n},{d}] T[{n},{d}] float32[{n},1] S[{d}] -> T[{n},{d}] float32[{d}]",
              *sizes(n=(16, 7), d=(512, 100))),
        rms_norm_grad, (*FLOATS, *MIXED), domain={2: POSITIVE_RSTD}),
    *(
        Row("norm/layer_norm_v4",
            f"T[{n},{d}] int32[1] S[{d}] S[{d}] -> T[{n},{d}] float32[{n},1] float32[{n},1]",
            layer_norm_v4, ("float32", "float16/float32", "float16", "bfloat16/float32", "bfloat16"),
            attrs={"epsilon": 1e-5}, values={1: d})
        for n, d in ((256, 44), (300, 13))
    ),
    Row("norm/inplace_add_layer_norm",
        cases("T[{n},{d}] T[{n},{d}] T[{d}] T[{d}] - -> T[{n},{d}] float32[{n},1] float32[{n},1] T[{n},{d}]", *SHORT),
        add_layer_norm, ("float16", "bfloat16", "float32"), attrs={"epsilon": 1e-5, "additional_output": True}),
    # With one scale for all (axis 65535) it converts integers to float16 and never sets the scale of that.
    Row("norm/quantize_add_layer_norm",
        cases("T[{n},{d}] T[{n},{d}] T[{d}] T[{d}] T[{d}] T[{d}] T[{d}] -> int8[{n},{d}] T[{n},{d}]", *BLOCKS),
        quantize_add_layer_norm, ("bfloat16",), attrs=QUANTIZE, domain={5: (0.1, 0.2), 6: (-3, 3)}, tolerance=ROUNDED,
        columns_left_out={0: "reads its float32 scales as float16", 2: "casts float32 to float32 with CAST_NONE"}),
    Row("norm/dua_quantize_add_layer_norm",
        cases("T[{n},{d}] T[{n},{d}] T[{d}] T[{d}] T[{d}] T[{d}] T[{d}] T[{d}] T[{d}] -> int8[{n},{d}] int8[{n},{d}] "
              "T[{n},{d}]", *BLOCKS),
        dua_quantize_add_layer_norm, ("bfloat16",), attrs=QUANTIZE,
        domain={5: (0.1, 0.2), 6: (0.1, 0.2), 7: (-3, 3), 8: (-3, 3)}, tolerance=ROUNDED,
        columns_left_out=dict.fromkeys((0, 1), "its kernel is written for bfloat16 alone")),
    Row("norm/deep_norm",
        cases("T[{n},{d}] T[{n},{d}] T[{d}] T[{d}] -> float32[{n},1] float32[{n},1] T[{n},{d}]", *SHORT),
        deep_norm, FLOATS, attrs={"alpha": 0.3, "epsilon": 1e-6}),
    Row("norm/deep_norm_grad",
        cases("T[{n},{d}] T[{n},{d}] T[{n},{d}] T[{d}] float32[{n},1] float32[{n},1] -> T[{n},{d}] T[{n},{d}] "
              "float32[{d}] float32[{d}]", *SHORT),
        deep_norm_grad, FLOATS, attrs={"alpha": 0.3}, domain={5: POSITIVE_RSTD}),
    Row("norm/group_norm_silu",
        cases("T[{n},{c},{h},{w}] S[{c}] S[{c}] -> T[{n},{c},{h},{w}] T[{n},8] T[{n},8]", *NCHW),
        group_norm_silu, (*FLOATS, *MIXED), attrs={**GROUPS, "activate_silu": True}),
    Row("norm/group_norm_swish",
        cases("T[{n},{c},{h},{w}] S[{c}] S[{c}] -> T[{n},{c},{h},{w}] S[{n},8] S[{n},8]", *NCHW),
        group_norm_swish, (*FLOATS, *MIXED), attrs=SWISH),
    Row("norm/group_norm_grad",
        cases("T[{n},{c},{h},{w}] T[{n},4] T[{n},4] T[{n},{c},{h},{w}] T[{c}] -> T[{n},{c},{h},{w}] T[{c}] T[{c}]",
              *NCHW),
        group_norm_grad, FLOATS, attrs=GROUP_GRAD, domain={2: POSITIVE_RSTD}),
    Row("norm/group_norm_swish_grad",
        cases("T[{n},{c},{h},{w}] T[{n},4] T[{n},4] T[{n},{c},{h},{w}] T[{c}] T[{c}] -> T[{n},{c},{h},{w}] T[{c}] "
              "T[{c}]", *NCHW),
        group_norm_swish_grad, FLOATS, attrs=SWISH_GRAD, domain={2: POSITIVE_RSTD}),
    Row("norm/batch_norm_v3",
        cases("T[{n},{c},{h},{w}]:NCHW S[{c}] S[{c}] float32[{c}] float32[{c}] -> T[{n},{c},{h},{w}]:NCHW float32[{c}] "
              "float32[{c}] float32[{c}] float32[{c}]", *NCHW),
        batch_norm_v3, (*FLOATS, *MIXED), attrs={"epsilon": 1e-5, "momentum": 0.1, "is_training": True},
        domain={4: (0.5, 2)}),
)  # fmt: skip
