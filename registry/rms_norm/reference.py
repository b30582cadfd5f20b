"""What rms_norm computes: in float32, rounded once."""

from torch import Tensor


def reference(x: Tensor, gamma: Tensor, epsilon: float = 1e-6) -> Tensor:
    wide = x.float()
    mean = wide.double().square().mean(dim=-1, keepdim=True).float()
    return (wide / (mean + epsilon).sqrt() * gamma.float()).to(x.dtype)
