"""Operators of cann-ops's folder ``activation``."""

from __future__ import annotations

from typing import Any

import torch

from .table import FLOATS, Row, clip_int8, dynamic_quant, gelu_tanh, halves

Tensor = torch.Tensor


def swi_glu(x: Tensor, dim: int) -> Tensor:
    a, b = halves(x, dim)
    return a * torch.sigmoid(a) * b


def swi_glu_grad(grad: Tensor, x: Tensor, dim: int) -> Tensor:
    a, b = halves(x, dim)
    s = torch.sigmoid(a)
    return torch.cat([grad * b * s * (1 + a * (1 - s)), grad * a * s], dim)


def gelu(x: Tensor, approximate: int) -> Tensor:
    return gelu_tanh(x) if approximate else torch.nn.functional.gelu(x)


def ge_glu(x: Tensor, dim: int, approximate: int, activate_left: bool) -> tuple[Tensor, Tensor]:
    left, right = halves(x, dim)
    active, other = (left, right) if activate_left else (right, left)
    activated = gelu(active, approximate)
    return other * activated, activated


def ge_glu_grad(dy: Tensor, x: Tensor, activated: Tensor, dim: int, approximate: int, activate_left: bool) -> Tensor:
    """``activated`` is what the forward operator returned beside its result, here any tensor."""
    left, right = halves(x, dim)
    active, other = (left, right) if activate_left else (right, left)
    leaf = active.clone().requires_grad_()
    (slope,) = torch.autograd.grad(gelu(leaf, approximate).sum(), leaf)
    grads = [dy * other * slope, dy * activated]
    return torch.cat(grads if activate_left else grads[::-1], dim)


def gelu_quant(x: Tensor, scale: Tensor, offset: Tensor | None, approximate: str, quant_mode: str) -> Any:
    y = gelu(x, approximate == "tanh") * scale
    return dynamic_quant(y) if quant_mode == "dynamic" else (clip_int8(y + (0 if offset is None else offset)), None)


def dequant_swiglu_quant(
    x: Tensor, weight_scale: Tensor | None, activation_scale: Tensor | None, bias: Tensor | None,
    quant_scale: Tensor | None, quant_offset: Tensor | None, groups: Tensor | None, *, activate_left: bool,
    quant_mode: str,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """``groups``: how many rows each group has; a group has its own row of the scales."""
    rows = torch.arange(x.shape[0])
    group = torch.bucketize(rows, torch.cumsum(groups, 0), right=True) if groups is not None else None

    def of_row(scale: Tensor) -> Tensor:
        return scale if group is None else scale[group]

    values = x.double()
    if bias is not None and not bias.is_floating_point():
        values = values + bias
    if weight_scale is not None:
        values = values * of_row(weight_scale)
    if activation_scale is not None:
        values = values * activation_scale.reshape(-1, 1)
    if bias is not None and bias.is_floating_point():
        values = values + bias
    left, right = halves(values, -1)
    active, other = (left, right) if activate_left else (right, left)
    y = torch.nn.functional.silu(active) * other
    if quant_mode == "static":
        assert quant_scale is not None
        assert quant_offset is not None
        return clip_int8(y / quant_scale + quant_offset), torch.zeros(x.shape[0])
    return dynamic_quant(y if quant_scale is None else y * of_row(quant_scale))


GELU_GRAD = {"dim": -1, "approximate": 1, "activate_left": False}

ROWS = (
    Row("activation/swi_glu", ("T[17,768] -> T[17,384]", "T[5,62] -> T[5,31]"), swi_glu, FLOATS, attrs={"dim": -1}),
    Row("activation/swi_glu_grad", ("T[17,384] T[17,768] -> T[17,768]", "T[5,31] T[5,62] -> T[5,62]"), swi_glu_grad,
        FLOATS, attrs={"dim": -1}),
    Row("activation/ge_glu_v2", ("T[32,512] -> T[32,256] T[32,256]", "T[5,62] -> T[5,31] T[5,31]"), ge_glu, FLOATS,
        attrs={"dim": -1, "approximate": 1, "activate_left": False}),
    Row("activation/ge_glu_grad_v2",
        ("T[32,256] T[32,512] T[32,256] -> T[32,512]", "T[5,31] T[5,62] T[5,31] -> T[5,62]"), ge_glu_grad, FLOATS,
        attrs=GELU_GRAD),
    Row("activation/ge_glu_grad_v2", "T[5,31] T[5,62] T[5,31] -> T[5,62]", ge_glu_grad, ("float32",),
        attrs={**GELU_GRAD, "approximate": 0, "activate_left": True}),
    Row("activation/gelu_quant", ("T[16,512] T[512] - -> int8[16,512] float32[16]",
        "T[7,100] T[100] - -> int8[7,100] float32[7]"), gelu_quant, FLOATS,
        attrs={"approximate": "tanh", "quant_mode": "dynamic"}, domain={1: (0.5, 2)}),
    Row("activation/dequant_swiglu_quant",
        ("int32[16,512] float32[512] float32[16] T[512] float32[256] float32[256] - -> int8[16,256] float32[16]",
         "int32[7,192] float32[192] float32[7] T[192] float32[96] float32[96] - -> int8[7,96] float32[7]"),
        dequant_swiglu_quant, ("float32", "float16", "bfloat16", "int32"),
        attrs={"activate_left": True, "quant_mode": "dynamic"}, domain={1: (0.005, 0.02), 2: (0.5, 2), 4: (0.5, 2)},
        tolerance={"int8": {"atol": 1}}),
    Row("activation/dequant_swiglu_quant", "T[16,512] - - - float32[256] - - -> int8[16,256] float32[16]",
        dequant_swiglu_quant, ("float16", "bfloat16"), attrs={"activate_left": True, "quant_mode": "dynamic"},
        domain={4: (0.5, 2)}, tolerance={"int8": {"atol": 1}}),
    *(
        Row("activation/dequant_swiglu_quant",
            f"int32[16,512] float32[4,512] float32[16,1] - {scale}[4,256] - {index}[4] -> int8[16,256] float32[16]",
            dequant_swiglu_quant, attrs={"activate_left": left, "quant_mode": "dynamic"},
            domain={1: (0.005, 0.02), 2: (0.5, 2), 4: (0.5, 2)}, values={6: [3, 4, 1, 8]},
            tolerance={"int8": {"atol": 1}})
        for scale, index, left in (("float32", "int32", True), ("float16", "int64", False))
    ),
)  # fmt: skip
