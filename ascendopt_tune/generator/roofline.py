"""Baseline R: what a module's ATen calls take at the least, one after the other.

No kernel is looked at: a call is launched on as many cores as suit it best, and moves its inputs and outputs once, at
the cores' bandwidth or the chip's. Eager execution takes longer, so what is faster than this is faster than eager.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..nouns.chip import Chip, load_chip

if TYPE_CHECKING:
    import torch

_NUMBERS = (
    "mte2.bytes_per_cycle", "core.clock_mhz", "launch.fetch_us", "launch.tiling_us", "launch.base_us",
    "launch.core_head_us", "memory.hbm_gb_per_s", "core.aiv",
)  # fmt: skip
_FREE = ("empty", "scalar_tensor", "lift_fresh", "detach", "_local_scalar_dense")  # no kernel


@dataclass(frozen=True)
class AtenCall:
    """A call that launches something: its tensors and results as (dtype, shape), every other argument in order, and
    the bytes that it moves at the least."""

    name: str
    tensors: tuple[tuple[str, tuple[int, ...]], ...]
    results: tuple[tuple[str, tuple[int, ...]], ...]
    numbers: tuple[Any, ...] = ()
    bytes: int = 0


def aten_calls(module: torch.nn.Module, inputs: Sequence[Any]) -> list[AtenCall]:
    """The calls of a forward pass that launch something. Nothing is computed."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    found: list[AtenCall] = []

    def specs(value: Any) -> tuple[tuple[str, tuple[int, ...]], ...]:
        tensors = [t for t in _flat(value) if isinstance(t, torch.Tensor)]
        return tuple((str(t.dtype).removeprefix("torch."), tuple(t.shape)) for t in tensors)

    class Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
        ) -> Any:
            result = func(*args, **(kwargs or {}))
            name = str(func).split(".")[1]
            if not func.is_view and name not in _FREE:
                tensors = [t for t in _flat([args, kwargs, result]) if isinstance(t, torch.Tensor)]
                distinct = {id(t): t for t in tensors}
                count = sum(t.numel() * t.element_size() for t in distinct.values())
                rest = tuple(a for a in args if not isinstance(a, torch.Tensor))
                found.append(AtenCall(name, specs([args, kwargs]), specs(result), rest, count))
            return result

    meta = copy.deepcopy(module).to("meta")
    given = [t.to("meta") if isinstance(t, torch.Tensor) else t for t in inputs]
    with torch.no_grad(), Watch():  # type: ignore[no-untyped-call]
        meta(*given)
    return found


def roofline_us(module: torch.nn.Module, inputs: Sequence[Any], chip: str) -> float:
    """The sum over the module's calls, in us of the chip's modelled bandwidth and launch."""
    part = load_chip(chip)
    return sum(call_us(part, call.bytes) for call in aten_calls(module, inputs))


def call_us(chip: Chip, count: int) -> float:
    """The least time of a launch that moves so many bytes: starting cores costs time, and so does having few."""
    of = {key: float(chip.values[key]) for key in _NUMBERS}
    core = of["mte2.bytes_per_cycle"] * of["core.clock_mhz"]  # bytes in a us
    start = of["launch.fetch_us"] + of["launch.tiling_us"]
    fixed = of["launch.base_us"] + of["launch.core_head_us"] + float(chip.values.get("launch.operator_head_us", 0))
    return min(
        fixed + cores * start + count / min(cores * core, of["memory.hbm_gb_per_s"] * 1e3)
        for cores in range(1, int(of["core.aiv"]) + 1)
    )


def _flat(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return _flat(list(value.values()))
    if isinstance(value, (list, tuple)):
        return [x for v in value for x in _flat(v)]
    return [value]
