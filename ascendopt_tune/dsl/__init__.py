"""The tile language: operators as two Python functions, run on numpy as they are and lowered to AscendC by rules.

::

    import ascendopt_tune.dsl as tl

    @tl.kernel
    def scale_kernel(x, y, n, tile, factor):
        core, cores = tl.program_id(0), tl.num_programs(0)
        first, last = tl.split(n, core, cores, unit=8)
        for at in range(first, last, tile):
            count = min(tile, last - at)
            v = tl.load(x + at + tl.arange(0, count))
            tl.store(y + at + tl.arange(0, count), v * factor)

    @tl.host
    def scale(x, y, factor=2.0):
        n = x.numel
        tile = tl.knob("TILE_LENGTH", 4096)
        scale_kernel[tl.cores(tl.ceil_div(n, 8))](x, y, n, tile, factor)

The functions are never called: the text is read (docs/dsl.md has every rule). ``scale(x=array)`` interprets it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..evaluate.reference import to_array, to_tensor
from .errors import DslError
from .interpret import interpret
from .ir import DTYPES, Number, Program
from .launch import Machine, launch_of
from .read import read_file, read_text

if TYPE_CHECKING:
    import torch


class HostFunction:
    """What ``@tl.host`` makes of a function: the program in its file."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._file = inspect.getsourcefile(function)
        self.__name__, self.__doc__ = function.__name__, function.__doc__

    @cached_property
    def program(self) -> Program:
        """Raises DslError."""
        if self._file is None:
            raise DslError(f"the source of {self.__name__} can't be found.", "Write it to a file.")
        return read_file(Path(self._file), self.__name__)

    def __call__(self, attributes: Mapping[str, Number] | None = None, **inputs: Any) -> dict[str, Any]:
        """Interprets the program on numpy arrays, given by name. Raises DslError."""
        return interpret(self.program, inputs, attributes)


class KernelFunction:
    """What ``@tl.kernel`` makes of a function; it runs only as a part of its host function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.__name__, self.__doc__ = function.__name__, function.__doc__

    def __getitem__(self, cores: object) -> Callable[..., Any]:
        raise DslError(
            f"the kernel {self.__name__} is launched outside a host function.",
            "Mark the function around with @tl.host.",
        )


def on_tensors(
    program: Program, inputs: Mapping[str, torch.Tensor], attributes: Mapping[str, Number] | None = None
) -> dict[str, torch.Tensor]:
    """:func:`interpret` for torch's tensors on the CPU. Raises DslError."""
    arrays = {name: to_array(tensor) for name, tensor in inputs.items()}
    return {name: to_tensor(array) for name, array in interpret(program, arrays, attributes).items()}


host = HostFunction
kernel = ascend_kernel = KernelFunction


def __getattr__(name: str) -> Any:
    if name in DTYPES:
        return DTYPES[name]
    raise AttributeError(f"{name} is a word of the language; it means something only in a kernel or a host function")


__all__ = [
    "DslError",
    "HostFunction",
    "KernelFunction",
    "Machine",
    "Program",
    "ascend_kernel",
    "host",
    "interpret",
    "kernel",
    "launch_of",
    "on_tensors",
    "read_file",
    "read_text",
]
