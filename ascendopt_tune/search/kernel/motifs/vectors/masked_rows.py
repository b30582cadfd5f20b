"""Rows that are computed a repeat after the other, ``Mul(y[row * n], ..., mask, repeats, strides)``: their columns made
the instructions, the rows the repeats.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ...reading.affine import affine, fixed
from ...reading.api import BINARY, SCALAR, root
from ...reading.counted import CountedLoop
from ...reading.kernel_program import ApiCall, KernelProgram

_MOST = 255  # repeats of one instruction, and blocks from one to the next
_FIELDS = {
    3: ("dstBlkStride", "src0BlkStride", "src1BlkStride", "dstRepStride", "src0RepStride", "src1RepStride"),
    2: ("dstBlkStride", "srcBlkStride", "dstRepStride", "srcRepStride"),
}


def is_masked(call: ApiCall) -> bool:
    """Is it an instruction with a mask, a number of repeats and strides?"""
    return len(call.args) == 6 and call.name in BINARY | SCALAR


def masked_row(
    kernel: KernelProgram, loop: CountedLoop, call: ApiCall, names: Mapping[str, str], types: Mapping[str, str]
) -> tuple[list[str], str] | None:
    """(conditions, the instruction for all rows in a loop over what were its repeats)."""
    tensors = 3 if call.name in BINARY else 2
    *operands, mask, repeats, params = call.args
    strides = _strides(kernel, call, params, tensors)
    kind = types.get(root(call.args[0].removeprefix("this->")))
    places = [affine(a, loop.name, loop.first, names) for a in operands[:tensors]]
    still = [a for a, p in zip(operands, places, strict=False) if p is None]
    still += [*operands[tensors:], mask, repeats, *(strides or ()), loop.bound, loop.first]
    if strides is None or kind is None or "int4" in kind or places[0] is None:
        return None
    if not all(fixed(a, loop.name, names) for a in still) or places[0].step.strip("() ") == mask.strip("() "):
        return None  # the second: a loop over columns already
    size, blocks, apart = f"static_cast<int64_t>(sizeof({kind}))", strides[:tensors], strides[tensors:]
    conditions = ["rowsAtOnce > 1", f"rowsAtOnce <= {_MOST}", f"static_cast<int64_t>({repeats}) <= rowsAtOnce"]
    for step in dict.fromkeys(p.step for p in places if p is not None):
        distance = f"static_cast<int64_t>({step}) * {size}"
        conditions += [f"{distance} % 32 == 0", f"{distance} >= 0", f"{distance} <= {_MOST * 32}"]
    args, moved = [], []
    for operand, place, by in zip(operands[:tensors], places, apart, strict=True):
        column = f"column * static_cast<int64_t>({by}) * 32 / {size}"
        args.append(f"{operand}[{column}]" if place is None else f"{place.tensor}[{place.start} + {column}]")
        moved.append("0" if place is None else f"static_cast<uint8_t>(({place.step}) * sizeof({kind}) / 32)")
    shape = "BinaryRepeatParams" if tensors == 3 else "UnaryRepeatParams"
    given = f"AscendC::{shape}({', '.join([*blocks, *moved])})"
    one = call.spelled(call.name, *args, *operands[tensors:], mask, "static_cast<uint8_t>(rowsAtOnce)", given)
    return conditions, f"for (int64_t column = 0; column < static_cast<int64_t>({repeats}); column++) {{ {one}; }}"


def _strides(kernel: KernelProgram, call: ApiCall, params: str, tensors: int) -> tuple[str, ...] | None:
    """Blocks from block to block and from repeat to repeat, written out or set once each, a field after the other."""
    fields = _FIELDS[tensors]
    listed = re.fullmatch(r"(?:\w+)?\{([^{}]*)\}", params, re.DOTALL)
    if listed is not None:
        parts = tuple(p.strip() for p in listed[1].split(","))
        return parts if len(parts) == len(fields) else None
    text = kernel.text(call.path, call.function.body)
    if not re.fullmatch(r"\w+", params) or not re.search(rf"RepeatParams\s+{params}\s*;", text):
        return None
    set_to = [re.findall(rf"\b{params}\.{field}\s*=\s*([^;]+);", text) for field in fields]
    return tuple(values[0] for values in set_to) if all(len(values) == 1 for values in set_to) else None
