"""What reduce_sum_last computes: added up exactly enough, rounded once."""

from torch import Tensor


def reference(x: Tensor) -> Tensor:
    return x.double().sum(dim=-1).to(x.dtype)
