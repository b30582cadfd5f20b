"""mHC's post and its gradients in the full formula (arXiv 2512.24880). T tokens, N streams, D elements."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

STREAMS = 4


class Post(nn.Module):
    """out[t,n] = x[t] post[t,n] + sum over k of comb[t,k,n] res[t,k]; the factors post and comb are float32."""

    def forward(self, x: torch.Tensor, res: torch.Tensor, post: torch.Tensor, comb: torch.Tensor) -> torch.Tensor:
        mixed = (comb[:, :, :, None] * res[:, :, None, :].float()).sum(1)
        return (x[:, None, :].float() * post[:, :, None] + mixed).to(x.dtype)


class GradX(nn.Module):
    """dx[t] = sum over n of post[t,n] g[t,n]."""

    def forward(self, g: torch.Tensor, post: torch.Tensor) -> torch.Tensor:
        return (g.float() * post[:, :, None]).sum(1).to(g.dtype)


class GradRes(nn.Module):
    """dres[t,k] = sum over n of comb[t,k,n] g[t,n]."""

    def forward(self, g: torch.Tensor, comb: torch.Tensor) -> torch.Tensor:
        return (g[:, None, :, :].float() * comb[:, :, :, None]).sum(2).to(g.dtype)


class GradPost(nn.Module):
    """dpost[t,n] = <x[t], g[t,n]>."""

    def forward(self, x: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
        return (x[:, None, :].float() * g.float()).sum(-1)


class GradComb(nn.Module):
    """dcomb[t,k,n] = <res[t,k], g[t,n]>."""

    def forward(self, res: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
        return (res[:, :, None, :].float() * g[:, None, :, :].float()).sum(-1)


class PostGrad(nn.Module):
    """All four gradients of post: dx, dres, dpost, dcomb."""

    def __init__(self) -> None:
        super().__init__()
        self.x, self.res, self.post, self.comb = GradX(), GradRes(), GradPost(), GradComb()

    def forward(
        self, g: torch.Tensor, x: torch.Tensor, res: torch.Tensor, post: torch.Tensor, comb: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        return self.x(g, post), self.res(g, comb), self.post(x, g), self.comb(res, g)


def inputs(tokens: int, width: int, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """x, res, g in ``dtype``; post and comb in float32."""
    draw = torch.Generator().manual_seed(0)

    def of(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=draw)

    wide = {"x": of(tokens, width), "res": of(tokens, STREAMS, width), "g": of(tokens, STREAMS, width)}
    factors = {"post": of(tokens, STREAMS), "comb": of(tokens, STREAMS, STREAMS)}
    return {**{k: v.to(dtype) for k, v in wide.items()}, **factors}


#: By name: the module, and its inputs' names.
MODULES: dict[str, tuple[Callable[[], nn.Module], tuple[str, ...]]] = {
    "mhc_post": (Post, ("x", "res", "post", "comb")),
    "mhc_grad_x": (GradX, ("g", "post")),
    "mhc_grad_res": (GradRes, ("g", "comb")),
    "mhc_grad_post": (GradPost, ("x", "g")),
    "mhc_grad_comb": (GradComb, ("res", "g")),
    "mhc_post_grad": (PostGrad, ("g", "x", "res", "post", "comb")),
}
