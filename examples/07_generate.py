"""torch.compile that makes operators: pointwise and row subgraphs of a block in Llama's style, judged by the gate.

Nothing is written by hand: what AOTAutograd traces is cut into subgraphs, rules write a program for each, and its
operator serves where it is right and faster than its calls one by one. On the virtual NPU all times are modelled.
"""

from __future__ import annotations

import ascendopt_tune as aot  # before torch: it is what lets torch_npu start without CANN

import torch  # isort: skip
from torch import nn
from torch.nn import functional

WIDTH, HEADS, HIDDEN = 256, 4, 512


class Norm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class Block(nn.Module):
    """Attention and a gated feed-forward part, each behind a norm and beside a residual."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Norm(WIDTH), Norm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate, self.up = nn.Linear(WIDTH, HIDDEN, bias=False), nn.Linear(WIDTH, HIDDEN, bias=False)
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(self.first(x)).unflatten(-1, (3, HEADS, -1)).permute(1, 2, 0, 3)
        attended = torch.softmax(q @ k.transpose(-1, -2) * (WIDTH // HEADS) ** -0.5, -1) @ v
        x = x + self.out(attended.permute(1, 0, 2).flatten(1))
        y = self.second(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


def main() -> None:
    torch.manual_seed(0)
    block, x = Block().npu(), torch.randn(128, WIDTH).npu()
    with torch.no_grad():
        expected = block(x)
        compiled = torch.compile(block, backend="ascendopt", fullgraph=True, options={"generate": True})
        for _ in range(3):  # the first call of an operator is compared with its subgraph
            torch.testing.assert_close(compiled(x).cpu(), expected.cpu(), rtol=1e-4, atol=1e-4)
    print(aot.subgraphs())


if __name__ == "__main__":
    main()
