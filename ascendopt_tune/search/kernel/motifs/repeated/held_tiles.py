"""Queues whose tensor holds the same in each turn: filled once, and held.

A list that all rows need, loaded for each of them, or a tile of one constant that is stored again and again: whoever
fills the queue's tensor does so the first time only, and the queue hands out that tensor from then on.

1. Every tensor that the queue hands out to be filled is filled by instructions that are the same in each turn: loads of
   the same range of global memory, which nobody writes, constants, casts of such.
2. Nobody writes the tensors that are taken from the queue, nor asks the queue for anything but its four calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from .....sources.cpp import Edit, Function
from ...reading.api import root
from ...reading.classes import Members, is_of, members, merged, title_of
from ...reading.declared import global_tensors
from ...reading.kernel_program import ApiCall, KernelProgram, where
from ...reading.steady import Steady
from ..buffers.queues import MAKE, RING, as_own, queues_again, unguarded
from ..motif import Change, Motif
from .kept_tensors import fills_the_same

HELD = "HeldTile"  # their class
_ASKED = ("AllocTensor", "EnQue", "DeQue", "FreeTensor")
_QUEUES = re.compile(rf"(?:(?:AscendC::)?TQue|{RING})\s*<\s*(?:\w+::)*(?:VECIN|VECOUT)\s*,[^;<>]*>")
_HELD = re.compile(rf"{HELD}\s*<(.*),\s*\d+\s*>", re.DOTALL)
_TAKEN = re.compile(r"^(?:this->)?(\w+)\s*\.\s*(?:template\s+)?(AllocTensor|DeQue)\b")
_CLASS = f"""\
#ifndef HELD_TILE
#define HELD_TILE
// A queue whose tensor holds the same each time: filled once, by so many instructions, and held from then on.
template <typename QUEUED, uint32_t FILLS>
class {HELD} {{
 public:
  __aicore__ inline void Begin(uint32_t count, uint32_t bytes) {{ Make(queue, count, bytes, 0); }}
  // Is instruction `i` to be done: at first, and where it fills more than it has.
  __aicore__ inline bool Wants(uint32_t i, uint64_t count) {{
    anew[i] = count > held[i];
    if (anew[i]) {{
      held[i] = count;
      longer = used;
      if (longer) AscendC::PipeBarrier<PIPE_ALL>();
    }}
    return anew[i];
  }}
  __aicore__ inline bool Wanted(uint32_t i) {{ return anew[i]; }}
  template <typename T>
  __aicore__ inline AscendC::LocalTensor<T> AllocTensor() {{
    if (!taken) whole = queue.template AllocTensor<T>().template ReinterpretCast<uint8_t>();
    taken = true;
    return whole.template ReinterpretCast<T>();
  }}
  template <typename T>
  __aicore__ inline void EnQue(const AscendC::LocalTensor<T>& tensor) {{
    if (!given) queue.EnQue(tensor);
    if (longer) AscendC::PipeBarrier<PIPE_ALL>();
    longer = false;
  }}
  template <typename T>
  __aicore__ inline AscendC::LocalTensor<T> DeQue() {{
    if (!given) whole = queue.template DeQue<T>().template ReinterpretCast<uint8_t>();
    given = true;
    return whole.template ReinterpretCast<T>();
  }}
  template <typename T>
  __aicore__ inline void FreeTensor(const AscendC::LocalTensor<T>&) {{ used = true; }}

 private:
{MAKE}
  QUEUED queue;
  AscendC::LocalTensor<uint8_t> whole;
  bool taken = false, given = false, used = false, longer = false, anew[FILLS] = {{}};
  uint64_t held[FILLS] = {{}};
}};
#endif

"""


@dataclass(frozen=True)
class _Held:
    """A queue, where it is made, and the instructions that fill its tensors, each with what they need."""

    line: Members
    name: str
    made: tuple[ApiCall, ...]
    fills: tuple[tuple[ApiCall, ...], ...]  # the last one of each fills the tensor


class _Finder:
    def __init__(self, kernel: KernelProgram) -> None:
        self.kernel, self.facts, self.tensors = kernel, kernel.once(Steady), global_tensors(kernel)
        self.named: dict[str, list[ApiCall]] = {}  # calls of a queue, and those that are given it
        for c in kernel.calls:
            for name in {c.receiver.removeprefix("this->"), *(a.removeprefix("this->") for a in c.args)}:
                self.named.setdefault(name, []).append(c)

    def found(self) -> Iterator[_Held]:
        for line in members(self.kernel, _QUEUES):
            for name in line.names:
                held = self._held(line, name)
                if held is not None:
                    yield held

    def _held(self, line: Members, name: str) -> _Held | None:
        """The queue, where it may hold what it is given."""
        ours = [c for c in self.named.get(name, ()) if is_of(self.kernel, line, c.function)]
        asked = [c for c in ours if c.name in _ASKED]
        made = tuple(c for c in ours if c.name in ("InitBuffer", "Begin") and c.statement is not None)
        if not made or len(asked) + len(made) < len(ours):
            return None
        places = {where(c.function): c.function for c in asked}
        fills = {at: self._fills(f, name) for at, f in places.items()}
        filled = [found for found in fills.values() if found]
        handed = sum(c.name == "AllocTensor" for c in asked)
        if None in fills.values() or len(filled) != 1 or filled[0] is None or handed > len(filled[0]):
            return None
        return _Held(line, name, made, tuple(filled[0]))

    def _fills(self, f: Function, name: str) -> list[tuple[ApiCall, ...]] | None:
        """What fills the queue's tensors in a method; None where that isn't the same each turn."""
        fills: list[tuple[ApiCall, ...]] = []
        for variable, values in self.facts.made(f).items():
            taken = {m[2] for _, v in values if (m := _TAKEN.match(v)) and m[1] == name}
            names = (variable, *self.facts.views(f, variable)) if taken else ()
            found = [self._fill(f, c) for n in names for c in self.facts.writers(f, n)]
            if "AllocTensor" in taken and (not found or not self.kernel.repeated(f, values[0][0])):
                return None
            if None in found or (found and "AllocTensor" not in taken):
                return None
            fills += [x for x in found if x is not None and x not in fills]
        return fills

    def _fill(self, f: Function, call: ApiCall) -> tuple[ApiCall, ...] | None:
        """An instruction that fills a tensor with the same each time, behind those that are done for it only."""
        if call.statement is None:
            return None
        if fills_the_same(self.facts, self.tensors, call):
            return (call,)
        if call.name != "Cast" or len(call.args) != 4 or not self._counted(call, call.args[3]):
            return None
        source = root(call.args[1])
        made = list(self.facts.writers(f, source))
        first = made[0] if len(made) == 1 else None
        if first is None or first.name != "Duplicate" or first.statement is None:
            return None
        return (first, call) if fills_the_same(self.facts, self.tensors, first) else None

    def _counted(self, call: ApiCall, count: str) -> bool:
        return not re.search(r"GetValue|DeQue", count) and bool(call.statement)


def _count(kernel: KernelProgram, call: ApiCall) -> str:
    """How much it fills; 1 where the instruction says it by a structure, which is the same each time."""
    if call.name in ("Duplicate", "Cast"):
        return call.args[-1] if len(call.args) < 5 else "1"
    last = call.args[2] if len(call.args) > 2 else "1"
    structure = re.search(rf"Params\b[^;()=]*\b{re.escape(last)}\b", kernel.text(call.path, call.function.node))
    return "1" if structure or last.startswith("{") or call.name == "DataCopyPad" else last


def _edits(kernel: KernelProgram, held: _Held) -> Iterator[Edit]:
    yield from as_own(kernel, held.line, held.name, HELD, _CLASS, f", {len(held.fills)}")
    for call in held.made:
        if call.name == "InitBuffer":
            yield kernel.replace(call.path, call.node, f"{call.args[0]}.Begin({', '.join(call.args[1:])})")
    for i, fill in enumerate(held.fills):
        for k, call in enumerate(fill):
            assert call.statement is not None
            asks = f"Wants({i}, {_count(kernel, call)})" if k == 0 else f"Wanted({i})"
            yield from _around(call.path, call.statement, f"if ({held.name}.{asks}) {{ ")


def _around(path: str, statement: Node, condition: str) -> tuple[Edit, Edit]:
    return (
        Edit(path, statement.start_byte, statement.start_byte, condition),
        Edit(path, statement.end_byte, statement.end_byte, " }"),
    )


def _faster(kernel: KernelProgram) -> Iterator[Change]:
    for held in _Finder(kernel).found():
        change = f"{held.name} is filled once and held"
        yield Change(f"{title_of(kernel, held.line)}::{held.name}", change, merged(_edits(kernel, held)))


def _slower(kernel: KernelProgram) -> Iterator[Change]:
    """A queue that is filled in each turn."""
    asks = ("Wants", "Wanted")
    return queues_again(kernel, _HELD, lambda c: unguarded(c) if c.name in asks else (), "is filled in each turn")


HELD_TILE = Motif(
    name="held-tile",
    title="A tile that stays the same is filled once",
    description="A queue that is given the same range of global memory, or the same constant, in each turn is filled "
    "the first time only, and hands out that tensor from then on.",
    bottlenecks=("copies", "small copies", "memory bandwidth", "vector", "scalar"),
    preconditions="Nobody writes what is loaded, nor the tensors that are taken from the queue.",
    faster=_faster,
    slower=_slower,
)
