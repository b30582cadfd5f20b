"""Operators of cann-ops's folders ``norm``, ``quant`` and ``optim`` that are wrong by themselves.

Most came about when raw instructions were rewritten as API calls, which mean something else:

* ``ReduceSum(x, x, x, n)`` with a number of repeats where the count form wants the number of elements (it sets its own
  mask: AscendC reference, ReduceSum, isSetMask), so that ``GetAccVal()`` holds the sum of a few elements;
* ``RepeatReduceSum(x, x, 1, 1, 0, 0, 1, 1)``, whose source block stride of 0 reads one block eight times.

Outputs that these sums decide are compared with what they should be: normalized values are quantized with a scale of 1.
"""

from __future__ import annotations

from typing import Any

import torch

from .norm import add_layer_norm_grad, add_rms_norm
from .table import Fault, Tensors, clip_int8, dynamic_quant, layer_norm

Tensor = torch.Tensor


def rms_norm_quant(a: Tensor, b: Tensor, gamma: Tensor, *_: Tensor, epsilon: float, **__: Any) -> Tensors:
    y, _rstd, x = add_rms_norm(a, b, gamma, epsilon)
    return clip_int8(y), clip_int8(y), x


def rms_norm_dynamic_quant(a: Tensor, b: Tensor, gamma: Tensor, s1: Tensor, s2: Tensor, epsilon: float) -> Tensors:
    y, _rstd, x = add_rms_norm(a, b, gamma, epsilon)
    (y1, scale1), (y2, scale2) = dynamic_quant(y * s1), dynamic_quant(y * s2)
    return y1, y2, x, scale1, scale2


def layer_norm_of_sum(
    a: Tensor, b: Tensor, gamma: Tensor, beta: Tensor, bias: Tensor | None, epsilon: float
) -> Tensors:
    x = a + b + (0 if bias is None else bias)
    return layer_norm(x, epsilon)[0] * gamma + beta, x


def layer_norm_dynamic_quant(
    a: Tensor, b: Tensor, gamma: Tensor, beta: Tensor, bias: Tensor | None, s1: Tensor, s2: Tensor, *_: Tensor,
    epsilon: float, **__: Any,
) -> Tensors:  # fmt: skip
    y, x = layer_norm_of_sum(a, b, gamma, beta, bias, epsilon)
    (y1, scale1), (y2, scale2) = dynamic_quant(y * s1), dynamic_quant(y * s2)
    return y1, y2, x, scale1, scale2


ONES, ZEROS = [1] * 96, [0] * 96
RMS = {"axis": -1, "epsilon": 1e-6, "div_mode": True}
WRONG = "are wrong"
ADAM = {"lr": 0.1, "beta1": 0.9, "beta2": 0.99, "weight_decay": 0.1, "eps": 0.01, "amsgrad": False, "maximize": False}

FAULTS = (
    Fault("norm/add_layer_norm_grad",
        "T[16,96] T[16,96] T[16,96] float32[16,1] float32[16,1] T[96] - -> T[16,96] float32[96] float32[96]", WRONG,
        domain={3: (0.5, 2)}, reference=add_layer_norm_grad),
    Fault("norm/add_rms_norm_quant",
        "T[80,96] T[80,96] T[96] float32[96] float32[96] int32[96] int32[96] -> int8[80,96] int8[80,96] T[80,96]",
        WRONG, "float16", attrs=RMS, values={3: ONES, 4: ONES, 5: ZEROS, 6: ZEROS}, reference=rms_norm_quant),
    Fault("norm/add_rms_norm_quant_v2",
        "T[80,96] T[80,96] T[96] float32[96] float32[96] int32[96] int32[96] T[96] -> int8[80,96] int8[80,96] "
        "T[80,96]", WRONG, "float16", attrs=RMS, values={3: ONES, 4: ONES, 5: ZEROS, 6: ZEROS, 7: ZEROS},
        reference=rms_norm_quant),
    Fault("norm/add_rms_norm_dynamic_quant",
        "T[16,96] T[16,96] T[96] T[96] T[96] -> int8[16,96] int8[16,96] T[16,96] float32[16] float32[16]", WRONG,
        "float16", attrs={"epsilon": 1e-6}, values={3: ONES, 4: ONES}, reference=rms_norm_dynamic_quant),
    Fault("norm/add_layer_norm_quant",
        "T[16,96] T[16,96] T[96] T[96] - T[96] T[96] - - -> int8[16,96] int8[16,96] T[16,96] float32[16] float32[16]",
        WRONG, "float16", attrs={"quant_mode": "dynamic", "epsilon": 1e-5, "additional_output": True},
        values={5: ONES, 6: ONES}, reference=layer_norm_dynamic_quant),
    # It wants compile information and registers no TilingParse: it counts on the operator of that name inside CANN.
    Fault("quant/dynamic_quant", "T[16,512] T[512] - -> int8[16,512] float32[16]", "compileInfo is nullptr", "float16",
        attrs={"dst_type": 2}),
    # Its TilingParse leaves the number of cores 0, by which its tiling function divides.
    Fault("optim/apply_adam_wv2", "T[16,512] T[16,512] T[16,512] T[16,512] float32[1] - ->",
        "the tiling function was ended by signal 8", attrs=ADAM),
)  # fmt: skip
