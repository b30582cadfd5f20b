"""A Llama-style decoder of the registry's operators: warmed up for prefill and decoding before it serves.

The operators run as they are written first; ``aot.install()`` takes them over, ``aot.warmup`` finds out which cases the
model calls, tunes them and loads the results. On the virtual NPU all times are modelled.

``--cubes``: in half, with matmuls and attention as operators of the registry, too, on cube cores.
``--compile``: compiled as well.
"""

from __future__ import annotations

import sys

import ascendopt_tune as aot  # before torch: it is what lets torch_npu start without CANN

import torch  # isort: skip
from torch import nn  # isort: skip

LAYERS, WIDTH, HEADS, LONGEST, VOCABULARY = 2, 64, 2, 32, 100
HEAD = WIDTH // HEADS

aot.registry_ops()
ops = torch.ops.ascendopt


class Linear(nn.Linear):
    """torch's own, or in half the registry's."""

    def __init__(self, wide: int, to: int) -> None:
        super().__init__(wide, to, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ops.matmul(x, self.weight, None, True) if x.dtype == torch.float16 else super().forward(x)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ParameterList(nn.Parameter(torch.rand(WIDTH) + 0.5) for _ in range(2))
        self.qkv, self.out = Linear(WIDTH, 3 * WIDTH), Linear(WIDTH, WIDTH)
        self.up, self.down = Linear(WIDTH, 4 * WIDTH), Linear(2 * WIDTH, WIDTH)
        self.register_buffer("keys", torch.zeros(LONGEST, HEADS, HEAD))
        self.register_buffer("values", torch.zeros(LONGEST, HEADS, HEAD))

    def forward(
        self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, places: torch.Tensor, seen: int
    ) -> torch.Tensor:
        query, key, value = self.qkv(ops.rms_norm(x, self.norms[0])).view(-1, 3, HEADS, HEAD).unbind(1)
        self.keys.index_copy_(0, places, ops.rope(key.contiguous(), cos, sin))
        self.values.index_copy_(0, places, value)
        query = ops.rope(query.contiguous(), cos, sin)
        attend = self.on_cubes if x.dtype == torch.float16 else self.by_hand
        x = ops.add(x, self.out(attend(query, places, seen).reshape(-1, WIDTH)))
        return ops.add(x, self.down(ops.swiglu(self.up(ops.rms_norm(x, self.norms[1])))))

    def by_hand(self, query: torch.Tensor, places: torch.Tensor, seen: int) -> torch.Tensor:
        scores = torch.einsum("qhd,khd->hqk", query, self.keys) / HEAD**0.5
        later = torch.arange(LONGEST, device=query.device) > places[:, None]
        scores = ops.softmax(scores.masked_fill(later, -1e4).contiguous())
        return torch.einsum("hqk,khd->qhd", scores, self.values)

    def on_cubes(self, query: torch.Tensor, places: torch.Tensor, seen: int) -> torch.Tensor:
        heads = [t.transpose(0, 1).contiguous() for t in (query, self.keys[:seen], self.values[:seen])]
        return ops.flash_attention(*heads, HEAD**-0.5, True).transpose(0, 1)


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.head = nn.Embedding(VOCABULARY, WIDTH), Linear(WIDTH, VOCABULARY)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.Parameter(torch.ones(WIDTH))
        angles = torch.outer(torch.arange(LONGEST), 10000.0 ** (-torch.arange(0, HEAD, 2) / HEAD)).repeat(1, 2)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(self, tokens: torch.Tensor, places: torch.Tensor, seen: int) -> torch.Tensor:
        x = self.tokens(tokens)
        for block in self.blocks:
            x = block(x, self.cos[places], self.sin[places], places, seen)
        return self.head(ops.rms_norm(x, self.norm))


def inputs(first: int, count: int) -> tuple[torch.Tensor, torch.Tensor, int]:
    """``count`` tokens from place ``first`` on (prefill has many, decoding one), and how many keys there are then."""
    places = torch.arange(first, first + count)
    return (places * 7 % VOCABULARY).npu(), places.npu(), first + count


def main() -> None:
    torch.manual_seed(0)
    model, near = Decoder().npu().eval(), 1e-3
    if "--cubes" in sys.argv:
        model, near = model.half(), 1e-2
    with torch.no_grad():
        as_written = [model(*inputs(0, 16)), model(*inputs(16, 1))]
        aot.install()
        report = aot.warmup(model, [inputs(0, 16), inputs(16, 1)])
        print(report)
        tuned = [model(*inputs(0, 16)), model(*inputs(16, 1))]
        if "--compile" in sys.argv:
            compiled = torch.compile(model, backend="eager", fullgraph=True, dynamic=False)
            tuned += [compiled(*inputs(0, 16)), compiled(*inputs(16, 1))]
    for a, b in zip(as_written * 2, tuned, strict=False):
        torch.testing.assert_close(b.cpu(), a.cpu(), rtol=near, atol=near)
    print("the answers are those of before")
    print(aot.status())


if __name__ == "__main__":
    main()
