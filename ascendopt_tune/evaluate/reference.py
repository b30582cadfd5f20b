"""Expected outputs from an operator's reference: a function of CPU torch tensors, run in the tuner's process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from ..arguments import Array, numpy_dtype
from ..case import Argument, Case, TensorSpec
from ..device.launch import Arrays
from ..errors import OperatorError
from ..operator import Operator

if TYPE_CHECKING:
    import torch


def expected_outputs(operator: Operator, case: Case, inputs: Sequence[Arrays]) -> tuple[Arrays, ...]:
    """One entry per output of ``case``, in its dtype and shape.

    The reference is called with one argument per input (a tensor, a list of tensors, or None) and the attributes by
    name; it returns a tensor, a list, or a tuple with one of these per output.

    Raises:
        OperatorError: the reference fails, or gives other outputs than the case has; the text says which.
    """
    assert operator.reference is not None
    attrs = dict(case.attrs)
    try:
        results = operator.reference(*(_tensors(a) for a in inputs), **attrs)
    except Exception as error:
        raise OperatorError(
            f"the reference of {operator.name} fails on {case}: {type(error).__name__}: {error}.",
            "Correct reference.py; it gets one tensor (or list) per input and the attributes by name.",
        ) from error
    if len(case.outputs) == 1 and not (isinstance(results, tuple) and len(results) == 1):
        results = (results,)
    if len(results) != len(case.outputs):
        raise OperatorError(f"the reference of {operator.name} gives {len(results)} outputs, not {len(case.outputs)}.")
    return tuple(_arrays(operator, i, r, a) for i, (r, a) in enumerate(zip(results, case.outputs, strict=True)))


def _tensors(arrays: Arrays) -> Any:
    if arrays is None:
        return None
    return [to_tensor(a) for a in arrays] if isinstance(arrays, tuple) else to_tensor(arrays)


def to_tensor(array: Array) -> torch.Tensor:
    """A torch tensor with a copy of the array; bfloat16 included."""
    import torch

    copied = np.array(array)
    if copied.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(copied.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(copied)


def to_array(tensor: torch.Tensor) -> Array:
    """The array of a torch tensor's values; bfloat16 as ml_dtypes'."""
    import torch

    plain = tensor.detach().cpu().contiguous()
    if plain.dtype == torch.bfloat16:
        return plain.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return np.asarray(plain.numpy())


def _arrays(operator: Operator, i: int, result: Any, argument: Argument) -> Arrays:
    if argument is None:
        return None
    if isinstance(argument, tuple):
        result = result if isinstance(result, (list, tuple)) else [result]
        if len(result) != len(argument):
            raise OperatorError(
                f"output {i} of the reference of {operator.name} has {len(result)} tensors, not {len(argument)}."
            )
        return tuple(_array(operator, i, r, spec) for r, spec in zip(result, argument, strict=True))
    return _array(operator, i, result, argument)


def _array(operator: Operator, i: int, result: Any, spec: TensorSpec) -> Array:
    array = to_array(result)
    if array.size != spec.numel:
        raise OperatorError(
            f"output {i} of the reference of {operator.name} has shape {list(array.shape)}; the case says {spec}."
        )
    with np.errstate(over="ignore"):  # what the dtype can't hold is infinity
        return array.astype(numpy_dtype(spec.dtype)).reshape(spec.shape)
