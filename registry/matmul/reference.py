"""What matmul computes: rows of a times columns of b (rows where b is transposed), and a bias for each column."""

from torch import Tensor


def reference(a: Tensor, b: Tensor, bias: Tensor | None = None, transpose_b: bool = False) -> Tensor:
    c = a.double() @ (b.double().t() if transpose_b else b.double())
    return (c if bias is None else c + bias.double()).to(a.dtype)
