"""What matmul computes."""

from torch import Tensor


def reference(a: Tensor, b: Tensor) -> Tensor:
    return (a.double() @ b.double()).to(a.dtype)
