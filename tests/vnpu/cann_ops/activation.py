"""Operators of cann-ops's folder ``activation``."""

from __future__ import annotations

import torch

from .table import FLOATS, HF, Row, dynamic_quant, gelu_tanh, halves


def swi_glu(x: torch.Tensor, dim: int) -> torch.Tensor:
    a, b = halves(x, dim)
    return a * torch.sigmoid(a) * b


def swi_glu_grad(grad: torch.Tensor, x: torch.Tensor, dim: int) -> torch.Tensor:
    a, b = halves(x, dim)
    s = torch.sigmoid(a)
    return torch.cat([grad * b * s * (1 + a * (1 - s)), grad * a * s], dim)


def ge_glu(x: torch.Tensor, dim: int, approximate: int, activate_left: bool) -> tuple[torch.Tensor, torch.Tensor]:
    left, right = halves(x, dim)
    active, other = (left, right) if activate_left else (right, left)
    gelu = gelu_tanh(active) if approximate else torch.nn.functional.gelu(active)
    return other * gelu, gelu


ROWS = (
    Row("activation/swi_glu", "T[17,768] -> T[17,384]", swi_glu, FLOATS, attrs={"dim": -1}),
    Row("activation/swi_glu", "T[5,62] -> T[5,31]", swi_glu, FLOATS, attrs={"dim": -1}),
    Row("activation/swi_glu_grad", "T[17,384] T[17,768] -> T[17,768]", swi_glu_grad, FLOATS, attrs={"dim": -1}),
    Row("activation/ge_glu_v2", "T[32,512] -> T[32,256] T[32,256]", ge_glu, FLOATS,
        attrs={"dim": -1, "approximate": 1, "activate_left": False}),
    Row("activation/gelu_quant", "T[16,512] T[512] - -> int8[16,512] float32[16]",
        lambda x, s, o, **_: dynamic_quant(gelu_tanh(x) * s), HF, attrs={"approximate": "tanh",
        "quant_mode": "dynamic"},
        domain={1: (0.5, 2)}),
)  # fmt: skip
