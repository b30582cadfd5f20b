"""Kernels in slow/, written by hand as somebody new to AscendC writes them: none is mined or made by a rewind.

The head of each file says what it computes, its case, and the class of its opportunity, in the words of
in_the_wild.csv; both were written down before anything was asked about it. ``FORMULAS`` is what the first line says, in
torch.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from ascendopt_tune.nouns.case import Argument, Case, TensorSpec
from ascendopt_tune.nouns.operator import Operator, Signature
from ascendopt_tune.sources.arguments import direct_signature, parse_domain, parse_tensor
from ascendopt_tune.sources.project import load_direct

FOLDER = Path(__file__).with_name("slow")
_CASE = re.compile(r"^// case: (.*) -> (.*), (\d+) blocks$", re.MULTILINE)
_LINE = re.compile(r"^// (class|domain): (.*)$", re.MULTILINE)

_Tensor = Any  # torch.Tensor; torch's own annotations don't survive arithmetic with numbers


def _ones_like_rows(x: _Tensor) -> _Tensor:
    return torch.cat([x + 0.5, x + 0.5], dim=1)


FORMULAS: dict[str, Callable[..., _Tensor]] = {
    "always_padded": lambda x: x + 1,
    "barrier_everywhere": lambda x: torch.log(x * x + 1),
    "bias_by_row": lambda x, bias: x + bias,
    "cast_twice": lambda x: x * torch.exp(x),
    "copy_then_exp": lambda x: torch.exp(x) - 1,
    "depth_one": lambda x, y: torch.maximum(x, y) - torch.minimum(x, y),
    "divided_by_tensor": lambda x: x / 255,
    "expanded_row": lambda x, gamma: x * gamma,
    "filled_constant": lambda x: torch.relu(x + 3) * 0.166667,
    "flags_and_queues": lambda x: 2 * x,
    "freed_at_the_end": lambda x: 1 - 2 / (torch.exp(2 * x) + 1),
    "gamma_cast_again": lambda x, gamma: x * gamma,
    "gamma_every_row": lambda x, gamma: x * gamma,
    "index_twice": lambda table, index: table[index.long()] * (2 - index.long() % 2)[:, None],
    "into_columns": _ones_like_rows,
    "left_half": lambda x: torch.relu(x[:, :256]),
    "mean_by_row": lambda x: x - x.mean(1, keepdim=True),
    "multiply_then_add": lambda a, b, c: a * b + c,
    "old_barrier": lambda x, y: x + y,
    "one_buffer_rows": torch.exp,
    "ones_every_turn": lambda x: 1 / (1 + x.abs()),
    "read_twice": lambda x: x / (x.abs().sum(1, keepdim=True) + 1),
    "result_copied": lambda x, y: x * y,
    "running_row_sum": lambda x: x.reshape(8, 128, 128).sum(1),
    "scalar_relu": torch.relu,
    "scalar_row_sum": lambda x: x.sum(1, keepdim=True).repeat(1, 8),
    "scalar_scale": lambda x, y0: x * 0.125 + y0,
    "scale_by_max": lambda x: x / (x.abs().amax(1, keepdim=True) + 1e-3),
    "scale_from_gm": lambda x, scale: x * scale[0],
    "single_queue": lambda x: x * x + 1,
    "small_rows": lambda x: torch.relu(3 * x),
    "small_tile_chain": lambda x: 1 / (1 + torch.exp(-x)),
    "tiny_tiles": torch.abs,
    "two_scalings": lambda x: x * 0.125 + 3,
    "waits_for_store": lambda x: torch.sqrt(x.abs()),
}


@dataclasses.dataclass(frozen=True)
class HandWritten:
    """A slow kernel: its operator, its case, and the class of the opportunity that was written into it."""

    name: str
    wanted: str
    operator: Operator
    case: Case
    signature: Signature


def names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.cpp"))


def wanted(name: str) -> str:
    """The class that the head of a file names."""
    return dict(_LINE.findall((FOLDER / f"{name}.cpp").read_text()))["class"]


def read(name: str) -> HandWritten:
    """A kernel as an operator with its case. The formula is its reference."""
    path = FOLDER / f"{name}.cpp"
    text = path.read_text()
    case = _CASE.search(text)
    assert case is not None, f"{path} has no case"
    said = dict(_LINE.findall(text))
    inputs, outputs = (dict(map(parse_tensor, case[i].split())) for i in (1, 2))
    operator = load_direct(path, name, int(case[3]))
    signature = direct_signature(operator, inputs, outputs, {})
    domain = dict([parse_domain(said["domain"], signature)]) if "domain" in said else {}
    operator = dataclasses.replace(
        operator, reference=_reference(name, tuple(outputs.values())), settings={"domain": domain}
    )
    arguments: tuple[tuple[Argument, ...], ...] = (tuple(inputs.values()), tuple(outputs.values()))
    return HandWritten(name, said["class"], operator, Case(*arguments), signature)


def _reference(name: str, outputs: tuple[TensorSpec, ...]) -> Callable[..., Any]:
    """The formula in float64, rounded once."""
    dtype = getattr(torch, outputs[0].dtype)

    def reference(*inputs: _Tensor, **attrs: Any) -> _Tensor:
        return FORMULAS[name](*(x.double() for x in inputs)).to(dtype)

    return reference
