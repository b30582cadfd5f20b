"""Modules of our own, at least one per schedule; each names the schedule it should get, and small example inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

Example = tuple[Callable[[], nn.Module], Callable[[], list[Any]], str]


class Of(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *tensors: Any) -> Tensor:
        return self.function(*tensors)


class Scaled(nn.Module):
    def forward(self, x: Tensor, factor: float) -> Tensor:
        return functional.gelu(x) * factor


class ChannelNorm(nn.Module):
    """Groups of channels, with a gain and a bias per channel."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(2, 6)

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.norm(x))


class Momentum(nn.Module):
    def forward(self, weight: Tensor, gradient: Tensor, velocity: Tensor) -> Tensor:
        return weight - 0.1 * (0.9 * velocity + gradient) / (gradient.square().sqrt() + 1e-3)


class MiddleProduct(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.prod(x, dim=1)


def softmax_of_rows(x: Tensor) -> Tensor:
    return torch.softmax(x * 0.5, dim=-1)


def label_loss(scores: Tensor, labels: Tensor) -> Tensor:
    return functional.cross_entropy(scores, labels)


def exclusive(x: Tensor) -> Tensor:
    return torch.cumsum(torch.cat([torch.zeros_like(x[:, :1]), x], dim=1), dim=1)


def exclusive_behind(x: Tensor) -> Tensor:
    return torch.cat([torch.zeros_like(x[:, :1]), torch.cumsum(x[:, :-1], dim=1)], dim=1)


def from_the_end(x: Tensor) -> Tensor:
    return torch.cumprod(x.flip([1]), dim=1).flip([1])


def rows_added(x: Tensor, index: Tensor, source: Tensor) -> Tensor:
    return x.index_add(0, index, source)


def rows_put(x: Tensor, index: Tensor, source: Tensor) -> Tensor:
    return x.index_copy(0, index, source)


def resized(to: float | tuple[int, ...], mode: str, align: bool | None) -> Callable[[Tensor], Tensor]:
    named = {"size" if isinstance(to, tuple) else "scale_factor": to}
    return lambda x: functional.interpolate(x, mode=mode, align_corners=align, **named)  # type: ignore[arg-type]


def halved(x: Tensor) -> Tensor:
    return functional.interpolate(x, size=(10, 13), mode="bilinear", antialias=True)


def indices(below: int, *shape: int) -> Tensor:
    return torch.randint(0, below, shape, generator=torch.Generator().manual_seed(2))


def draw(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


def rotary(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """As model code writes it: halves exchanged, one of them turned around."""
    half = x.shape[-1] // 2
    return x * cosine + torch.cat((-x[..., half:], x[..., :half]), -1) * sine


def rotary_halves(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    one, two = x[..., :32], x[..., 32:]
    return torch.cat((one * cosine - two * sine, two * cosine + one * sine), -1)


def beside(a: Tensor, b: Tensor) -> Tensor:
    return torch.cat((torch.softmax(a, -1), torch.sigmoid(b)), -1)


def below(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    return torch.relu(torch.cat((a * 2, b + 1), 0)), torch.exp(a)


def flat_heads(a: Tensor, b: Tensor) -> Tensor:
    return torch.cat((a, b, a * 0.5), -1).flatten(0, 1) + 1


def gated(x: Tensor) -> Tensor:
    gate, value = x.chunk(2, -1)
    return functional.silu(gate) * value


def thirds_changed(x: Tensor) -> Tensor:
    one, two, three = x.chunk(3, 1)
    return torch.cat((three, torch.tanh(one), two), 1)


MODULES: dict[str, Example] = {
    "scaled": (Scaled, lambda: [draw(40, 300), 1.5], "map"),
    "momentum": (Momentum, lambda: [draw(30, 70), draw(30, 70), draw(30, 70)], "map"),
    "with_bias": (lambda: Of(lambda x, b: torch.tanh(x + b)), lambda: [draw(30, 4, 70), draw(4, 1)], "map"),
    "rotary": (lambda: Of(rotary), lambda: [draw(2, 4, 30, 64), draw(30, 64), draw(30, 64)], "several"),
    "rotary_halves": (lambda: Of(rotary_halves), lambda: [draw(2, 4, 30, 64), draw(30, 32), draw(30, 32)], "map"),
    "gated": (lambda: Of(gated), lambda: [draw(30, 180)], "map"),
    "thirds_changed": (lambda: Of(thirds_changed), lambda: [draw(5, 30, 40)], "map"),
    "beside": (lambda: Of(beside), lambda: [draw(30, 90), draw(30, 70)], "several"),
    "below": (lambda: Of(below), lambda: [draw(30, 90), draw(20, 90)], "several"),
    "flat_heads": (lambda: Of(flat_heads), lambda: [draw(3, 30, 90), draw(3, 30, 70)], "several"),
    "softmax_of_rows": (lambda: Of(softmax_of_rows), lambda: [draw(90, 130)], "rows"),
    "channel_norm": (ChannelNorm, lambda: [draw(30, 6, 9, 11)], "rows"),
    "batch_norm": (lambda: nn.BatchNorm1d(5), lambda: [draw(30, 5, 40)], "rows"),
    "label_loss": (lambda: Of(label_loss), lambda: [draw(90, 12), torch.arange(90) % 12], "rows"),
    "shared_norm": (lambda: Of(lambda x: x / x.abs().sum(-1, keepdim=True)), lambda: [draw(4, 70000)], "shared"),
    "mean_square": (lambda: Of(lambda a, b: (a - b).square().mean()), lambda: [draw(50, 70), draw(50, 70)], "shared"),
    "middle_product": (MiddleProduct, lambda: [draw(6, 20, 90)], "middle"),
    "unit_channels": (lambda: Of(lambda x: x / x.norm(dim=1, keepdim=True)), lambda: [draw(6, 5, 9, 10)], "middle"),
    "exclusive": (lambda: Of(exclusive), lambda: [draw(30, 90)], "scan"),
    "exclusive_behind": (lambda: Of(exclusive_behind), lambda: [draw(30, 90)], "scan"),
    "from_the_end": (lambda: Of(from_the_end), lambda: [draw(30, 90)], "scan"),
    "down": (lambda: Of(lambda x: torch.cumsum(x, dim=0)), lambda: [draw(30, 90)], "scan"),
    "pooled": (lambda: nn.AvgPool2d(3, 2, 1), lambda: [draw(2, 3, 14, 40)], "window"),
    "place_of_largest": (lambda: Of(lambda x: torch.argmax(x, 1)), lambda: [draw(6, 20, 90)], "middle"),
    "wrapped": (
        lambda: Of(lambda x, i: torch.take_along_dim(x, i, 1)),
        lambda: [draw(9, 70), indices(70, 9, 40)],
        "map",
    ),
    "rows_added": (lambda: Of(rows_added), lambda: [draw(20, 90), indices(20, 50), draw(50, 90)], "scatter"),
    "rows_put": (lambda: Of(rows_put), lambda: [draw(20, 9, 5), indices(20, 50), draw(50, 9, 5)], "scatter"),
    "scattered": (
        lambda: Of(lambda x, i, s: x.scatter_add(1, i, s)),
        lambda: [draw(6, 90), indices(90, 6, 40), draw(6, 40)],
        "scatter",
    ),
    "twice_as_large": (lambda: Of(resized(2.0, "bilinear", False)), lambda: [draw(2, 3, 9, 12)], "resize"),
    "nearest_of_four": (lambda: Of(resized(4.0, "nearest", None)), lambda: [draw(2, 3, 9)], "resize"),
    "cubic": (lambda: Of(resized((11, 17), "bicubic", True)), lambda: [draw(2, 3, 9, 12)], "resize"),
    "volumes": (lambda: Of(resized(2.0, "trilinear", True)), lambda: [draw(2, 3, 4, 5, 6)], "resize"),
    "antialiased": (lambda: Of(halved), lambda: [draw(2, 3, 20, 24)], "resize"),
    "largest": (lambda: nn.MaxPool1d(4, 2, 2, 2), lambda: [draw(2, 3, 50)], "window"),
}
