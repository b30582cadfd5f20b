"""A launcher's call as straight-line code, for calls without lists, fills, workspace or arguments that are changed.

What a launcher does in loops over its plan is written out for the one plan, and compiled: half the time of a call.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ...nouns.case import TensorSpec
from .binding import CallPlan, Fresh


def straight(
    plan: CallPlan, forms: Sequence[Sequence[Any]], several_results: bool, names: dict[str, Any]
) -> Callable[..., Any] | None:
    """A launcher's ``call(args, kwargs)`` as one function that raises what it does; None if the plan needs more.

    Args:
        forms: (shape, strides, dtype) of the tensors of each output.
        names: what the code refers to, by name (launcher.py).
    """
    if (
        any(not isinstance(place, Fresh) for place in plan.outputs)
        or any(value is not None and not isinstance(value, TensorSpec) for value in plan.case.inputs)
        or not all(isinstance(number, int) for number in plan.returned)
    ):
        return None
    names["empty"] = torch.empty
    several = torch.npu.device_count() > 1  # type: ignore[attr-defined]
    lines = ["if current() != index: elsewhere()"] if several else []
    lines.append("if lost: check_lost(args, kwargs)")
    addresses, parameters = [], []
    for i, pick in enumerate(plan.inputs):
        if pick is None:
            parameters.append("0")
            continue
        value = f"args[{pick}]" if isinstance(pick, int) else f"kwargs[{pick!r}]"
        lines.append(f"p{i} = {value}.data_ptr()")
        addresses.append(f"p{i}")
        parameters.append(f"p{i}")
    for i, ((shape, _, dtype),) in enumerate(forms):
        names[f"dtype{i}"] = dtype
        sizes = ", ".join(map(str, shape)) or "()"  # one by one: torch takes longer to look into a tuple
        lines.append(f"z{i} = empty({sizes}, dtype=dtype{i}, device=device)")
        parameters.append(f"z{i}.data_ptr()")
    if addresses:
        lines.append(f"if ({' | '.join(addresses)}) & 31: misaligned()")
    parameters.append("areas.get(stream) or area_of(stream)")
    names["pack"] = struct.Struct(f"@{len(parameters)}N").pack_into  # in one go: an item of a ctypes array takes longer
    lines += [
        "stream = stream_of(index)",
        "slot = pop() if slots else words_of_a_launch()",
        f"pack(slot[0], 0, {', '.join(parameters)})",
        "code = launch(function, block_dim, stream, None, slot[1], None)",
        "push(slot)",
        "if code: fail(code, args, kwargs)",
    ]
    results = [f"z{number}" for number in plan.returned]
    if several_results:
        lines.append(f"return container([{', '.join(results)}])")
    else:
        lines.append(f"return {results[0] if results else None}")
    body = "\n    ".join(lines)
    exec(f"def call(args, kwargs):\n    {body}", names)
    function: Callable[..., Any] = names["call"]
    return function
