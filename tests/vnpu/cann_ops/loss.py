"""Operators of cann-ops's folder ``loss``."""

from __future__ import annotations

import torch
from torch.nn import functional

from .table import FLOATS, Fault, Row


def mse(x: torch.Tensor, target: torch.Tensor, reduction: str) -> torch.Tensor:
    return functional.mse_loss(x, target, reduction=reduction)


def cross_entropy(
    x: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None,
    reduction: str,
    ignore_index: int,
    label_smoothing: float,
    **_: object,
) -> tuple[torch.Tensor | None, ...]:
    options = {"reduction": reduction, "ignore_index": ignore_index, "label_smoothing": label_smoothing}
    return functional.cross_entropy(x, target, weight, **options), x.log_softmax(1), None, None


def cross_entropy_grad(
    grad: torch.Tensor,
    log_prob: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None,
    *_: None,
    reduction: str,
    **__: object,
) -> torch.Tensor:
    share = torch.ones_like(log_prob[:, 0]) if weight is None else weight[target]
    if reduction == "mean":
        grad = grad / share.sum()
    chosen = functional.one_hot(target, log_prob.shape[1])
    return (log_prob.exp() - chosen) * (grad * share)[:, None]


def log_softmax(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0)).log_softmax(-1)


def ctc_values(steps: int, batch: int, classes: int, lengths: tuple[int, ...]) -> dict[int, object]:
    """What the forward operator leaves for the backward one: inputs 1 to 6."""
    log_probs = log_softmax(steps, batch, classes)
    generator = torch.Generator().manual_seed(1)
    targets = torch.randint(1, classes, (batch, max(lengths)), generator=generator)
    inputs = [steps] * batch
    nll, log_alpha = torch._ctc_loss(log_probs, targets, inputs, list(lengths))
    for i, length in enumerate(lengths):
        log_alpha[i, :, 2 * length + 1 :] = -torch.inf  # torch leaves them as they were
    return {1: log_probs, 2: targets, 3: inputs, 4: lengths, 5: nll, 6: log_alpha}


ENTROPY = {"ignore_index": -100, "label_smoothing": 0.0, "lse_square_scale_for_zloss": 0.0}
ALPHA = {"blank": 0, "reduction": "mean", "zero_infinity": False}

ROWS = (
    Row("loss/mse_loss_v2", "T[64,300] T[64,300] -> T[1]", mse, FLOATS, attrs={"reduction": "mean"}),
    Row("loss/mse_loss_v2", "T[64,300] T[64,300] -> T[64,300]", mse, FLOATS, attrs={"reduction": "none"}),
    Row("loss/mse_loss_v2", "T[3,5,7] T[3,5,7] -> T[1]", mse, FLOATS, attrs={"reduction": "sum"}),
    Row("loss/cross_entropy_loss", "T[64,1024] int64[64] float32[1024] -> T[1] T[64,1024] - -", cross_entropy, FLOATS,
        attrs={**ENTROPY, "reduction": "mean", "return_zloss": False}, domain={1: (0, 1023), 2: (0.5, 2)}),
    Row("loss/cross_entropy_loss", "T[37,301] int64[37] - -> T[37] T[37,301] - -", cross_entropy, FLOATS,
        attrs={**ENTROPY, "reduction": "none", "label_smoothing": 0.1, "return_zloss": False}, domain={1: (0, 300)}),
    Row("loss/cross_entropy_loss_grad", "T[1] T[2560,512] int64[2560] float32[512] - - -> T[2560,512]",
        cross_entropy_grad, ("bfloat16", "float16", "float32"), attrs={**ENTROPY, "reduction": "mean"},
        domain={1: (-8, 0), 2: (0, 511), 3: (0.5, 2)}),
    Row("loss/cross_entropy_loss_grad", "T[2560] T[2560,331] int64[2560] - - - -> T[2560,331]",
        cross_entropy_grad, FLOATS, attrs={**ENTROPY, "reduction": "none"},
        domain={1: (-8, 0), 2: (0, 330)}),
)  # fmt: skip

FAULTS = (
    # What one step stores the next one loads, and nothing orders the copies.
    Fault("loss/ctc_loss_v3_grad", "T[4] T[16,4,32] S[4,8] S[4] S[4] T[4] T[4,16,17] -> T[16,4,32]",
        "is not ordered after the write by DataCopyPad", "float32/int64", attrs=ALPHA,
        values=ctc_values(16, 4, 32, (8, 5, 8, 3))),
)  # fmt: skip
