"""Operators of cann-ops's folder ``norm``."""

from __future__ import annotations

import torch

from .table import FLOATS, HF, TWICE, Row, layer_norm


def rms(x: torch.Tensor, epsilon: float) -> torch.Tensor:
    return torch.rsqrt(x.square().mean(-1, keepdim=True) + epsilon)


def add_rms_norm(a: torch.Tensor, b: torch.Tensor, gamma: torch.Tensor, epsilon: float) -> tuple[torch.Tensor, ...]:
    x = a + b
    return x * rms(x, epsilon) * gamma, rms(x, epsilon), x


def rms_norm_grad(
    dy: torch.Tensor, x: torch.Tensor, rstd: torch.Tensor, gamma: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    g = dy * gamma
    dx = rstd * (g - x * rstd * (g * x * rstd).mean(-1, keepdim=True))
    return dx, (dy * x * rstd).sum(0)


def group_norm(
    x: torch.Tensor, gamma: torch.Tensor, beta: torch.Tensor, groups: int, eps: float
) -> tuple[torch.Tensor, ...]:
    flat = x.reshape(x.shape[0], groups, -1)
    _, mean, rstd = layer_norm(flat, eps)
    return torch.nn.functional.group_norm(x, groups, gamma, beta, eps), mean, rstd


def group_norm_silu(
    x: torch.Tensor, gamma: torch.Tensor, beta: torch.Tensor, num_groups: int, eps: float, activate_silu: bool
) -> tuple[torch.Tensor, ...]:
    y, mean, rstd = group_norm(x, gamma, beta, num_groups, eps)
    return (torch.nn.functional.silu(y) if activate_silu else y), mean, rstd


ROWS = (
    Row("norm/add_rms_norm", "T[16,1024] T[16,1024] T[1024] -> T[16,1024] float32[16,1] T[16,1024]", add_rms_norm,
        FLOATS,
        attrs={"epsilon": 1e-6}, tolerance=TWICE),
    Row("norm/add_rms_norm", "T[7,100] T[7,100] T[100] -> T[7,100] float32[7,1] T[7,100]", add_rms_norm, FLOATS,
        attrs={"epsilon": 1e-6}, tolerance=TWICE),
    Row("norm/add_rms_norm_cast",
        "T[16,1024] T[16,1024] T[1024] -> float32[16,1024] T[16,1024] float32[16,1] T[16,1024]",
        lambda a, b, g, epsilon: (add_rms_norm(a, b, g, epsilon)[0], *add_rms_norm(a, b, g, epsilon)),
        ("float16", "bfloat16"), attrs={"epsilon": 1e-6}, tolerance={"float32": 4e-3}),
    Row("norm/inplace_add_rms_norm", "T[16,1024] T[16,1024] T[1024] -> T[16,1024] float32[16,1] T[16,1024]",
        add_rms_norm,
        FLOATS, attrs={"epsilon": 1e-6}, tolerance=TWICE),
    Row("norm/rms_norm_grad", "T[16,512] T[16,512] float32[16,1] T[512] -> T[16,512] float32[512]", rms_norm_grad,
        FLOATS,
        domain={2: (0.5, 2)}),
    Row("norm/group_norm_silu", "T[2,32,8,8] T[32] T[32] -> T[2,32,8,8] T[2,8] T[2,8]", group_norm_silu, HF,
        attrs={"num_groups": 8, "eps": 1e-5, "activate_silu": True}),
)  # fmt: skip
