"""What quant_matmul computes: rows of a times rows of b, each column of the result by its scale.

A word of the scale holds a float32 in its lower half, of which the device reads 10 bits of fraction.
"""

import torch
from torch import Tensor

_READ = 0xFFFFE000
_LARGEST = 65504.0  # of a half: beyond it the result stays there


def reference(a: Tensor, b: Tensor, scale: Tensor) -> Tensor:
    factors = (scale & _READ).to(torch.int32).view(torch.float32)
    c = (a.double() @ b.double().t()) * factors.double()
    return c.clamp(-_LARGEST, _LARGEST).to(torch.float16)
