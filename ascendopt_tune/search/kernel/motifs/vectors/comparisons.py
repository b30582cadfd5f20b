"""Comparisons that are computed: a difference clamped to the smallest number and multiplied until it is 1.

``Max(y, a, b); Sub(y, b, y); Abs(y, y); Mins(y, y, tiny); Muls(y, y, large); ...`` is 1 where a is larger than b and 0
elsewhere, ``Adds(y, y, -1); Abs(y, y)`` the opposite. Compare and Select do the same with ones.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from ...reading.api import is_barrier, root
from ...reading.classes import merged, unused, with_member
from ...reading.declared import local_kinds
from ...reading.kernel_program import ApiCall, Block, KernelProgram, flat
from ...reading.room import room
from ..motif import Change, Motif

_CLASS_NAME, _MEMBER = "Comparisons", "comparisons"
_NOT = {"NE": "EQ", "GT": "LE", "LT": "GE"}
_TINY = 1e-6
_ROOM = 4096  # bytes, a bit an element
_CLASS = """\
#ifndef COMPARISONS
#define COMPARISONS
// 1 where a comparison of two tensors holds, 0 elsewhere.
class Comparisons {
 public:
  template <AscendC::CMPMODE MODE, typename T>
  __aicore__ inline void Choose(const AscendC::LocalTensor<T>& y, const AscendC::LocalTensor<T>& a,
                                const AscendC::LocalTensor<T>& b, uint32_t count) {
    constexpr uint32_t LANES = 256 / sizeof(T), BLOCK = 32 / sizeof(T);
    const uint32_t whole = count / LANES * LANES;
    // What is left over is compared with some of what is in front of it, as Compare takes whole repeats.
    const uint32_t last = count < LANES ? 0 : (count - LANES + BLOCK - 1) / BLOCK * BLOCK;
    const uint32_t behind = (whole / 8 + 31) / 32 * 32;
    if (behind + 32 > size) {
      size = behind + 32;
      AscendC::GetTPipePtr()->InitBuffer(memory, size);
    }
    const AscendC::LocalTensor<uint8_t> holds = memory.Get<uint8_t>();
    AscendC::PipeBarrier<PIPE_V>();
    if (whole > 0) AscendC::Compare(holds, a, b, MODE, whole);
    if (whole < count) AscendC::Compare(holds[behind], a[last], b[last], MODE, LANES);
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Duplicate(y, static_cast<T>(1), static_cast<int32_t>(count));
    AscendC::PipeBarrier<PIPE_V>();
    const T none = static_cast<T>(0);
    if (whole > 0) AscendC::Select(y, holds, y, none, AscendC::SELMODE::VSEL_TENSOR_SCALAR_MODE, whole);
    if (whole < count) {
      AscendC::PipeBarrier<PIPE_V>();
      AscendC::Select(y[last], holds[behind], y[last], none, AscendC::SELMODE::VSEL_TENSOR_SCALAR_MODE, count - last);
    }
    AscendC::PipeBarrier<PIPE_V>();
  }

 private:
  AscendC::TBuf<AscendC::TPosition::VECCALC> memory;
  uint32_t size = 0;
};
#endif

"""


@dataclass(frozen=True)
class _Comparison:
    """Statements of a block that are one comparison of ``a`` and ``b``."""

    block: Block
    statements: tuple[Node, ...]
    mode: str
    y: str
    a: str
    b: str
    count: str


def _value(kernel: KernelProgram, text: str) -> float | None:
    """The number that an operand is, through casts and one constant."""
    bare = re.sub(r"^(?:static_cast<\w+>|\(\s*\w+\s*\)(?=.))\s*", "", flat(text)).strip("() ")
    for _ in range(2):
        try:
            return float(re.sub(r"(?<=[\d.])[fF]$", "", bare))
        except ValueError:
            found = {
                m[1].decode()
                for s in kernel.program.files.values()
                for m in re.finditer(rb"\b" + re.escape(bare.encode()) + rb"\s*=\s*([-+\w.]+)\s*;", s.data)
            }
            bare = next(iter(found)) if len(found) == 1 else ""
    return None


class _Reader:
    """Takes instructions of one chain in order."""

    def __init__(self, kernel: KernelProgram, calls: Sequence[ApiCall]) -> None:
        self.kernel, self.calls, self.at = kernel, calls, 0

    def next(self, *names: str) -> ApiCall | None:
        """The next instruction where it has one of the names."""
        found = self.calls[self.at] if self.at < len(self.calls) else None
        if (
            found is None
            or found.name not in names
            or len(found.args) != (3 if found.name in ("Abs", "Duplicate") else 4)
        ):
            return None
        self.at += 1
        return found

    def on(self, y: str, *names: str) -> ApiCall | None:
        """The next instruction where it has one of the names and is y's own."""
        at, found = self.at, self.next(*names)
        if found is not None and [flat(a) for a in found.args[:2]] != [y, y]:
            self.at = at
            return None
        return found

    def number(self, call: ApiCall) -> float:
        value = _value(self.kernel, call.args[2])
        return math.nan if value is None else value


def _comparison(reader: _Reader) -> tuple[str, str, str, str] | None:
    """(mode, y, a, b) of a chain that starts here; the reader stands behind it."""
    most = reader.next("Max", "Min")
    sub = reader.next("Sub")
    if sub is None:
        return None
    y, p, q = (flat(a) for a in sub.args[:3])
    apart = reader.on(y, "Abs") is not None
    mode, a, b = "NE", p, q
    if most is not None:
        pair = [flat(x) for x in most.args[1:3]]
        side = q if p == y else p
        if flat(most.args[0]) != y or y not in (p, q) or side not in pair or side == y or pair[0] == pair[1]:
            return None
        a, b = side, pair[1 - pair.index(side)]
        mode = "LT" if most.name == "Max" else "GT"
        sure = apart or (mode == "GT") == (q == y)
    else:
        sure = apart
    least = reader.on(y, "Mins")
    if least is None:
        return None
    if not apart and reader.on(y, "Maxs") is not None:
        if reader.number(reader.calls[reader.at - 1]) != 0 or most is not None:
            return None
        mode, sure = "GT", True
    one = reader.number(least)
    factors = 0
    while one < 1 and (scaled := reader.on(y, "Muls")) is not None:
        one *= reader.number(scaled)
        factors += 1
    if not sure or not factors or reader.number(least) > _TINY or not math.isclose(one, 1, rel_tol=1e-3):
        return None
    return _inverted(reader, mode, y), y, a, b


def _inverted(reader: _Reader, mode: str, y: str) -> str:
    """The mode, or the opposite one where y is taken from 1 behind it."""
    at = reader.at
    minus = reader.on(y, "Adds")
    if minus is not None and reader.number(minus) == -1 and reader.on(y, "Abs") is not None:
        return _NOT[mode]
    reader.at = at
    ones, sub = reader.next("Duplicate"), reader.next("Sub")
    from_one = ones is not None and sub is not None and _value(reader.kernel, ones.args[1]) == 1
    if from_one and ones is not None and sub is not None:
        from_one = [flat(x) for x in sub.args[:3]] == [y, flat(ones.args[0]), y]
    if from_one:
        return _NOT[mode]
    reader.at = at
    return mode


def _found(kernel: KernelProgram) -> Iterator[_Comparison]:
    everywhere = local_kinds(s.data.decode("utf-8", "replace") for s in kernel.program.files.values())
    for block in kernel.blocks:
        steps = [s for s in block.steps if s.call is None or not is_barrier(s.call, "PIPE_V")]
        kinds = {**everywhere, **local_kinds([kernel.text(block.function.path, block.function.node)])}
        i = 0
        while i < len(steps):
            calls: list[ApiCall] = []
            for step in steps[i:]:
                if step.call is None:
                    break
                calls.append(step.call)
            reader = _Reader(kernel, calls)
            found = _comparison(reader) if calls and calls[0].name in ("Max", "Min", "Sub") else None
            counts = {flat(c.args[-1]) for c in calls[: reader.at]}
            if found is not None and len(counts) == 1 and not kinds.get(root(found[1]), {"?"}) - {"half", "float"}:
                nodes = tuple(s.node for s in steps[i : i + reader.at])
                yield _Comparison(block, nodes, *found, next(iter(counts)))
                i += reader.at
            else:
                i += 1


def _faster(kernel: KernelProgram) -> Iterator[Change]:
    room_for_bits = tuple(room(kernel, _ROOM))
    for number, found in enumerate(_found(kernel), unused(kernel, _MEMBER)):
        f = found.block.function
        try:
            edits = list(with_member(kernel, f, _CLASS_NAME, _CLASS, f"{_CLASS_NAME} {_MEMBER}{number};"))
        except ValueError:
            continue
        first, last = found.statements[0].start_byte, found.statements[-1].start_byte
        chain = [s.node for s in found.block.steps if first < s.node.start_byte <= last]
        call = f"{_MEMBER}{number}.Choose<AscendC::CMPMODE::{found.mode}>"
        text = f"{call}({found.y}, {found.a}, {found.b}, {found.count});"
        edits += [kernel.delete(f.path, n) for n in chain]
        edits.append(kernel.replace(f.path, found.statements[0], text))
        change = f"{len(found.statements)} instructions of {f.name} made a comparison"
        yield Change(kernel.site(f, found.statements[0]), change, merged(edits), room_for_bits)


def _slower(kernel: KernelProgram) -> Iterator[Change]:
    for call in kernel.named("Choose"):
        mode = re.search(r"CMPMODE::(LE|GE)", call.template)
        if mode is None or len(call.args) != 4 or call.statement is None or not call.receiver.startswith(_MEMBER):
            continue
        y, a, b, n = call.args
        larger = (a, b) if mode[1] == "GE" else (b, a)
        barrier = "" if kernel.auto_sync else " PipeBarrier<PIPE_V>();"
        lines = [
            f"Max({y}, {a}, {b}, {n});",
            f"Sub({y}, {larger[0]}, {y}, {n});",
            f"Abs({y}, {y}, {n});",
            f"Mins({y}, {y}, 1.1754943508222875e-38f, {n});",
            *(f"Muls({y}, {y}, {factor}, {n});" for factor in ("1125899906842624.0f",) * 2 + ("67108864.0f",)),
            f"Adds({y}, {y}, -1.0f, {n});",
            f"Abs({y}, {y}, {n});",
        ]
        text = f"\n{kernel.indent(call.path, call.statement)}".join(line + barrier for line in lines)
        edit = kernel.replace(call.path, call.statement, text)
        yield Change(
            kernel.site(call.function, call.statement), f"a comparison of {call.function.name} computed", (edit,)
        )


COMPARISON = Motif(
    name="comparison",
    title="Compare in place of arithmetic",
    description="A comparison as a difference that is clamped to the smallest number and multiplied until it is 1 "
    "costs seven to nine passes. Compare, ones and Select are three.",
    bottlenecks=("vector", "vector barriers", "short vector instructions"),
    preconditions="half or float; UB has room for a bit an element; differences below the smallest normal number and "
    "of infinities, and NaN, come out as the comparison has them.",
    faster=_faster,
    slower=_slower,
)
