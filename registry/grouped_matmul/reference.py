"""What grouped_matmul computes: rows of a times the matrix of the expert they are of.

counts[g] rows are of expert g, as long as there are any; the last expert has those that are left.
"""

import torch
from torch import Tensor


def reference(a: Tensor, b: Tensor, counts: Tensor) -> Tensor:
    ends = counts.cumsum(0)[:-1]
    expert = (torch.arange(a.shape[0], device=a.device)[:, None] >= ends).sum(1, keepdim=True)
    c = a.double() @ b[0].double()
    for g in range(1, b.shape[0]):
        c = torch.where(expert == g, a.double() @ b[g].double(), c)
    return c.to(a.dtype)
