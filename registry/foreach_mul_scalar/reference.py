"""What foreach_mul_scalar computes: products in float32, rounded once."""

from collections.abc import Sequence

from torch import Tensor


def reference(x: Sequence[Tensor], scalar: Tensor) -> list[Tensor]:
    return [(t.float() * scalar).to(t.dtype) for t in x]
