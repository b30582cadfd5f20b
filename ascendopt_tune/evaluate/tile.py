"""What a pair's host program says of a case: definition, names of tensors, tiling; and whether that can be launched.

:func:`describe_and_tile` runs the program's code: in a confined process.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ..build.host import HostDescription, HostProgram, TilingResult
from ..errors import CaseError, HostProgramError
from ..nouns.chip import load_chip
from ..nouns.operator import Signature
from ..nouns.outcome import LaunchFailed
from ..sources.arguments import Array
from .protocol import ArrayFile, EvaluateRequest, Tiled
from .verdict import Failed

_INPUT_LIMIT = 1 << 20  # bytes of value-depend inputs that are read for the tiling function


def describe_and_tile(program: HostProgram, request: EvaluateRequest) -> Tiled:
    chip = load_chip(request.chip)
    description = program.describe(short_soc(request.chip))
    values: dict[int, Array] = {}
    for i, param in enumerate(description.signature.inputs):
        given = request.trials[0].inputs[i] if request.trials else None
        if param.value_depend and isinstance(given, ArrayFile):
            array = given.load()
            if array.nbytes <= _INPUT_LIMIT:
                values[i] = np.array(array)
    case = replace(request.case, outputs=request.case.outputs[: len(description.signature.outputs)])
    tiling = program.tiling(case, chip, values)
    changed = _changed_by_a_call(program, lambda: program.tiling(case, chip, values), tiling)
    initial = request.operator.settings.get("initial", {})
    if initial:
        defined = itertools.zip_longest(description.signature.outputs, tiling.initial_values)
        tiling = replace(tiling, initial_values=tuple(initial.get(p.name, value) for p, value in defined))
    return Tiled(description, tiling, program.ran(), changed)


def _changed_by_a_call(program: HostProgram, call: Callable[[], TilingResult], first: TilingResult) -> tuple[str, ...]:
    """Static variables that another call of the tiling function changes, or what else it decides the second time."""
    before = program.state()
    try:
        same = call() == first
    except HostProgramError:
        same = False
    after = program.state()
    changed = tuple(name for name in before if before[name] != after[name])
    return changed if changed or same else ("what an earlier call left",)


def launchable(tiled: Tiled) -> tuple[HostDescription, TilingResult]:
    """Both answers; raises Failed for a launch that can't be."""
    block_dim = tiled.result.block_dim
    if not 1 <= block_dim <= 65535:
        raise Failed(LaunchFailed(f"the tiling function set block dim {block_dim}; it has to be 1..65535"))
    return tiled.description, tiled.result


def names_of(request: EvaluateRequest, signature: Signature | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of inputs and outputs. Without signature: a direct kernel's pointers, inputs before outputs."""
    if signature is not None:
        outputs = (*(p.name for p in signature.outputs), *request.operator.in_place)
        return tuple(p.name for p in signature.inputs), outputs
    case, direct = request.case, request.operator.direct
    attrs = dict(case.attrs)
    pointers = [n for n, _ in direct.parameters if n not in attrs and n != "workspace"] if direct is not None else []
    if len(pointers) != len(case.inputs) + len(case.outputs):
        raise CaseError(
            f"{request.operator.entry} has the tensor parameters {', '.join(pointers)}; the case has "
            f"{len(case.inputs)} inputs and {len(case.outputs)} outputs.",
            "Name every tensor parameter once, as input or output.",
        )
    return tuple(pointers[: len(case.inputs)]), tuple(pointers[len(case.inputs) :])


def short_soc(chip: str) -> str:
    return str(load_chip(chip).values.get("chip.short_soc", "ascend910b"))
