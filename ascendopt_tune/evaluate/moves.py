"""Outputs whose elements are moved and not computed: copies, transpositions, gathers, masks, pads.

CANN's precision standard asks of them for the same bits, the sign of zeros included. Nobody says of an operator that it
moves: it is seen in what the original does. Whatever the inputs hold, each element is one of theirs, or one of a few
constants; and with every float negated the former are negated, too, the latter as they were. A maximum, a sort or a
clamp takes others then, and what is computed is no element of the inputs in all trials.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import ml_dtypes
import numpy as np

from ..device.launch import Arrays, as_tuple
from ..sources.arguments import Array

_CONSTANTS = 4  # different values of an output that come from no input: what is filled in, or padded with


def negated(arrays: Sequence[Arrays], kept: Sequence[bool]) -> list[Arrays]:
    """The inputs with every float's sign turned, but for those that are kept."""

    def one(array: Array) -> Array:
        return (-array).astype(array.dtype) if is_float(array) else array

    made: list[Arrays] = []
    for argument, keep in zip(arrays, kept, strict=True):
        if keep or argument is None:
            made.append(argument)
        else:
            made.append(tuple(map(one, argument)) if isinstance(argument, tuple) else one(argument))
    return made


def of_inputs(output: Array, inputs: Sequence[Arrays]) -> bool:
    """Whether all elements but a few constants are elements of inputs of the same dtype; NaN is like NaN."""
    same = [a for a in tensors(inputs) if a.dtype == output.dtype]
    if not is_float(output) or not same:
        return False
    strange = output.reshape(-1)[~_among(output, same)]
    return len(np.unique(_bits(strange[strange == strange]))) <= _CONSTANTS


def turned(output: Array, other: Array, inputs: Sequence[Arrays]) -> bool:
    """Whether ``other``, what comes of the negated inputs, is ``output`` with the sign of all elements turned that are
    elements of the inputs, and with a few constants as they were."""
    if output.shape != other.shape or output.dtype != other.dtype:
        return False
    before, after = _bits(output).reshape(-1), _bits(other).reshape(-1)
    sign = before.dtype.type(1 << (8 * before.itemsize - 1))
    flipped, kept = after == before ^ sign, after == before
    among = _among(output, [a for a in tensors(inputs) if a.dtype == output.dtype])
    return bool(np.all(np.where(flipped, among, kept)) and flipped.any()) and len(np.unique(before[kept])) <= _CONSTANTS


def same_but_nan(one: Array, other: Array) -> bool:
    """Whether two arrays are equal bit by bit, but for NaN, which is like NaN."""
    return bool(np.all((_bits(one) == _bits(other)) | ((one != one) & (other != other))))


def exact(expected: Array, leeway: Array | None) -> Array:
    """Leeways of an output that is moved: nothing else will do, where anything was asked of it."""
    free = np.zeros(expected.shape, np.float32) if leeway is None else leeway
    return np.where(free < np.inf, np.float32(-np.inf), free)


def tensors(arguments: Sequence[Arrays]) -> Iterator[Array]:
    for argument in arguments:
        yield from as_tuple(argument)


def is_float(array: Array) -> bool:
    return bool(array.dtype.kind == "f" or array.dtype == ml_dtypes.bfloat16)


def _among(output: Array, inputs: Sequence[Array]) -> Array:
    """Which elements are elements of the inputs, bit by bit."""
    found = _bits(output).reshape(-1)
    if found.itemsize == 2:
        there = np.zeros(1 << 16, bool)
        for array in inputs:
            there[_bits(array).reshape(-1)] = True
        return there[found]
    return np.isin(found, np.concatenate([_bits(a).reshape(-1) for a in inputs]))


def _bits(array: Array) -> Array:
    return np.ascontiguousarray(array).view(f"u{array.itemsize}")
