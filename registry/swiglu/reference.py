"""What swiglu computes: in float32, rounded once."""

from torch import Tensor


def reference(x: Tensor) -> Tensor:
    a, b = x.float().chunk(2, dim=-1)
    return (a / (1.0 + (-a).exp()) * b).to(x.dtype)
