"""A reference of torch, run with a float64 for every float in it, and a little off where other arithmetic may be.

Two kinds of "off". *Order*: what a sum comes to depends on the order of its terms, and one that cancels by more than
any small change of its terms tells. *Approximations*: of what no float32 holds, and of functions that every program
computes in its own way, nobody can say on which side of an exact half it comes to lie.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_WELL_OFF = 2.0**-14  # of what is to be told from what is exact: relative, of a step's result
#: Of a float32 sum, in any order, relative to the sum of its terms' magnitudes: four roundings of all of it. Trees,
#: sums by lanes and chunks lose less than one, a scalar sum of a hundred sorted numbers up to three.
_ORDER = 2.0**-22
_ROUNDINGS = 2.0**-22  # to float32, two of them
_SUMS = frozenset({"sum", "mean"})
_DIVISIONS = frozenset({"div", "true_divide", "__truediv__", "divide"})  # by a tensor they may be by its reciprocal
# What one program computes by a series and another by an instruction; the result may be exact in one of them by chance.
_APPROXIMATE = frozenset((
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sigmoid",
    "tanh", "silu", "gelu", "erf", "erfc", "softmax", "log_softmax", "softplus",
    "mish", "elu", "selu", "sqrt", "rsqrt", "reciprocal", "__rtruediv__", "__rdiv__",
    "pow", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
    "cosh", "std", "var", "norm", "layer_norm", "logsumexp", "logsigmoid",
))  # fmt: skip


def in_float64(noise: int = 0, sign: int = 0, approximate: bool = False, float32: bool = False) -> Any:
    """Within it, what torch is asked to make a float of less precision becomes a float64.

    Args:
        noise: a seed; what float32 doesn't hold of a step's result is off by up to ``_WELL_OFF`` of it.
        sign: 1 or -1; a sum is off by what its order may come to, in one direction or the other.
        approximate: with ``noise``, results of functions that others compute in another way are off, too.
        float32: with ``noise``, they are off by no more than a rounding or two to float32, and equal ones alike.
    """
    import torch
    from torch.overrides import TorchFunctionMode

    narrow = {torch.float16, torch.bfloat16, torch.float32}
    methods = {torch.Tensor.float, torch.Tensor.half, torch.Tensor.bfloat16}
    generator = torch.Generator().manual_seed(noise)

    def widened(value: Any) -> Any:
        return torch.float64 if isinstance(value, torch.dtype) and value in narrow else value

    def noisy(result: Any, name: str, args: tuple[Any, ...]) -> Any:
        for one in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(one, torch.Tensor) and one.dtype == torch.float64:
                off = _off(one, name, args) if approximate else one.float().double() != one
                if float32:
                    one.copy_(torch.where(off, one * (1 + _by_value(one, noise) * _ROUNDINGS), one))
                elif bool(off.any()):
                    amount = (torch.rand(one.shape, generator=generator) - 0.5) * (2 * _WELL_OFF)
                    one.copy_(torch.where(off, (one * (1 + amount)).float().double(), one))
        return result

    def ordered(result: Any, func: Any, args: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        if not (isinstance(result, torch.Tensor) and result.dtype == torch.float64 and "out" not in named):
            return result
        most = func(args[0].to(torch.float64).abs(), *args[1:], **named)  # bools have no magnitude
        amount = torch.rand(result.shape, generator=generator, dtype=torch.float64) - 0.5
        return result + most * (sign * _ORDER) * (amount + 0.5 * torch.sign(amount))

    class Wide(TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
        ) -> Any:
            if func in methods:
                return args[0].double()
            if func is torch.Tensor.view:  # as another dtype: its bits
                return func(*args, **(kwargs or {}))
            named = {key: widened(value) for key, value in (kwargs or {}).items()}
            arguments = tuple(map(widened, args))
            result, name = func(*arguments, **named), getattr(func, "__name__", "")
            if noise:
                return noisy(result, name, arguments)
            return ordered(result, func, arguments, named) if sign and name in _SUMS and arguments else result

    return Wide()


def _by_value(values: Any, seed: int) -> Any:
    """Numbers from -1 to 1 that look random: equal ones of equal values, whose results are equal in any arithmetic."""
    import torch

    words = (values.contiguous().view(torch.int64) ^ (seed * 0x51ED)) * 0x2545F4914F6CDD1D  # wraps
    return ((words >> 33) & 0xFFFF).double() / 32767.5 - 1.0


def _off(result: Any, name: str, args: tuple[Any, ...]) -> Any:
    """Where another right program may come to something else than a float64 result."""
    import torch

    held = result.float().double() != result
    if name in _APPROXIMATE or (name in _DIVISIONS and isinstance(args[1], torch.Tensor)):
        return torch.ones_like(held)
    if name in _DIVISIONS:
        return held | ((args[0] * _reciprocal(args[1])).float().double() != result)
    if name == "mean":
        count = args[0].numel() // max(1, result.numel())
        return held | ((result * count * _reciprocal(count)).float().double() != result)
    return held


def _reciprocal(value: float) -> float:
    """As float32 has it."""
    import numpy as np

    return float(np.float32(1.0 / value))
