"""What silu computes: in float32, rounded once."""

from torch import Tensor


def reference(x: Tensor) -> Tensor:
    wide = x.float()
    return (wide / (1.0 + (-wide).exp())).to(x.dtype)
