"""What moe_gather_rows computes: y[i] = x[index[i]], an index outside of x taken to the nearest row."""

from torch import Tensor


def reference(x: Tensor, index: Tensor) -> Tensor:
    return x[index.reshape(-1).long().clamp(0, x.shape[0] - 1)]
