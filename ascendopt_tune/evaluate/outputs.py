"""Outputs on their way out of the confined process: memory that it shares with the worker, for one trial at a time."""

from __future__ import annotations

import mmap
from collections.abc import Sequence

import numpy as np

from ..device.launch import Arrays
from ..nouns.case import Argument, TensorSpec, flatten
from ..sources.arguments import Array, numpy_dtype

_ALIGNMENT = 64  # bytes, of every tensor


def shared_arrays(arguments: Sequence[Argument]) -> tuple[Arrays, ...]:
    """Arrays for the data of these parameters, in memory that processes forked from this one share with it."""
    dtypes = [(spec, numpy_dtype(spec.dtype)) for spec in flatten(arguments)]
    sizes = [-(-spec.numel * dtype.itemsize // _ALIGNMENT) * _ALIGNMENT for spec, dtype in dtypes]
    memory = np.frombuffer(mmap.mmap(-1, max(sum(sizes), 1)), np.uint8)
    used = 0

    def one(spec: TensorSpec) -> Array:
        nonlocal used
        dtype = numpy_dtype(spec.dtype)
        begin, used = used, used + -(-spec.numel * dtype.itemsize // _ALIGNMENT) * _ALIGNMENT
        return memory[begin : begin + spec.numel * dtype.itemsize].view(dtype).reshape(spec.shape)

    def of(argument: Argument) -> Arrays:
        if argument is None:
            return None
        return one(argument) if isinstance(argument, TensorSpec) else tuple(map(one, argument))

    return tuple(map(of, arguments))
