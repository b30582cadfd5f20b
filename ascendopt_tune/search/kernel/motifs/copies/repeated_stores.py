"""A row that is stored again and again, a copy each time: made many in the Unified Buffer, and stored at once.

A store costs its issue however short it is; a block of one costs a fifth of that. A vector instruction whose source has
stride 0 makes a row many.

1. A loop does nothing but store one tensor to places that lie evenly apart (row_copies.py reads such loops).
2. Rows of at most 2 KB are copied to a room of the kernel's own and leave as the blocks of one DataCopyPad; what is
   longer, or overlaps, is stored as before. The room has two halves, so that the next rows are made while these leave.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .....sources.cpp import walk
from ...reading.affine import fixed
from ...reading.api import root
from ...reading.classes import merged, unused, with_member
from ...reading.counted import CountedLoop, counted_loops
from ...reading.declared import element_types
from ...reading.kernel_program import ApiCall, KernelProgram
from ...reading.room import room
from ...reading.turn import rows_of, usable
from ..motif import Change, Motif
from .row_copies import BEGIN, CopyingTurn, length_of, of_many, place_of, turn_of_copies

_NAME, _MEMBER = "SpreadRow", "spreadRow"
_ROOM = 8192  # bytes
_CLASS = f"""\
#ifndef SPREAD_ROW
#define SPREAD_ROW
// A row, stored several times at once.
class {_NAME} {{
 public:
  static constexpr int64_t MOST = 2048;  // bytes of a row
  // times rows of so many bytes, which leave a gap of as many between them.
  template <typename T>
  __aicore__ inline void Store(const AscendC::GlobalTensor<T>& to, const AscendC::LocalTensor<T>& row, int64_t times,
                               int64_t bytes, int64_t gap) {{
    if (!made) {{
      AscendC::GetTPipePtr()->InitBuffer(memory, {_ROOM});
      for (int i = 0; i < 2; i++) {{
        left[i] = AscendC::GetTPipePtr()->AllocEventID<AscendC::HardEvent::MTE3_V>();
      }}
      made = true;
    }}
    const AscendC::LocalTensor<uint16_t> one = row.template ReinterpretCast<uint16_t>();
    const int64_t blocks = (bytes + 31) / 32, most = HALF / (32 * blocks);
    event_t loaded = static_cast<event_t>(AscendC::GetTPipePtr()->FetchEventID(AscendC::HardEvent::MTE2_V));
    AscendC::SetFlag<AscendC::HardEvent::MTE2_V>(loaded);
    AscendC::WaitFlag<AscendC::HardEvent::MTE2_V>(loaded);
    AscendC::PipeBarrier<PIPE_V>();
    for (int64_t first = 0; first < times; first += most) {{
      const int64_t rows = times - first < most ? times - first : most;
      half = 1 - half;
      if (waits[half]) {{
        AscendC::WaitFlag<AscendC::HardEvent::MTE3_V>(left[half]);
      }}
      const AscendC::LocalTensor<uint16_t> rooms = memory.Get<uint16_t>()[half * (HALF / 2)];
      for (int64_t at = 0; at < blocks; at += 8) {{
        const uint64_t lanes = static_cast<uint64_t>(blocks - at < 8 ? blocks - at : 8) * 16;
        AscendC::Copy(rooms[at * 16], one[at * 16], lanes, static_cast<uint8_t>(rows),
                      AscendC::CopyRepeatParams(1, 1, static_cast<uint16_t>(blocks), 0));
      }}
      event_t there = static_cast<event_t>(AscendC::GetTPipePtr()->FetchEventID(AscendC::HardEvent::V_MTE3));
      AscendC::SetFlag<AscendC::HardEvent::V_MTE3>(there);
      AscendC::WaitFlag<AscendC::HardEvent::V_MTE3>(there);
      AscendC::DataCopyPad(to[first * (bytes + gap) / static_cast<int64_t>(sizeof(T))], rooms.ReinterpretCast<T>(),
                           AscendC::DataCopyExtParams{{static_cast<uint16_t>(rows), static_cast<uint32_t>(bytes), 0,
                                                      static_cast<uint32_t>(gap), 0}});
      AscendC::SetFlag<AscendC::HardEvent::MTE3_V>(left[half]);
      waits[half] = true;
    }}
  }}
  __aicore__ inline ~{_NAME}() {{
    for (int i = 0; i < 2; i++) {{
      if (waits[i]) {{
        AscendC::WaitFlag<AscendC::HardEvent::MTE3_V>(left[i]);
      }}
    }}
  }}

 private:
  static constexpr int64_t HALF = {_ROOM // 2};
  AscendC::TBuf<AscendC::TPosition::VECCALC> memory;
  AscendC::TEventID left[2];
  bool waits[2] = {{}}, made = false;
  int half = 0;
}};
#endif

"""


def _store(loop: CountedLoop, call: ApiCall, turn: CopyingTurn, types: Mapping[str, str]) -> tuple[str, str] | None:
    """(condition, arguments of ``Store``) for all turns of the loop."""
    kinds = [types.get(root(a.removeprefix("this->"))) for a in call.args[:2]]
    to = place_of(call.args[0], loop, turn.names)
    if to is None or kinds[0] is None or kinds[1] is not None:
        return None
    length, conditions = length_of(call, kinds[0])
    if length is None or not all(fixed(a, loop.name, turn.names) for a in (*call.args[1:], loop.bound, loop.first)):
        return None
    size = f"static_cast<int64_t>({length})"
    far = f"static_cast<int64_t>({to.step}) * static_cast<int64_t>(sizeof({kinds[0]}))"
    conditions += ["rowsAtOnce > 1", f"{size} > 0", f"{size} <= {_NAME}::MOST", f"{far} >= {size}"]
    given = [f"{to.tensor}[{to.start}]", call.args[1], "rowsAtOnce", size, f"{far} - {size}"]
    return " && ".join(conditions), ", ".join(given)


def _spread(kernel: KernelProgram) -> Iterator[tuple[CountedLoop, CopyingTurn, str, str]]:
    types = element_types(kernel)
    for loop in counted_loops(kernel):
        often = kernel.repeated(loop.block.function, loop.node)  # else it clears something, by long copies
        turn = turn_of_copies(kernel, loop) if often and usable(kernel, loop) else None
        if turn is None or turn.choice is not None or len(turn.calls) != 1 or of_many(turn, turn.calls[0]):
            continue
        found = _store(loop, turn.calls[0], turn, types)
        if found is not None and kernel.class_of(loop.block.function):
            yield loop, turn, *found


def _faster(kernel: KernelProgram) -> Iterator[Change]:
    for number, (loop, turn, condition, given) in enumerate(_spread(kernel), unused(kernel, _MEMBER)):
        f = loop.block.function
        member = f"{_MEMBER}{number}"
        try:
            edits = list(with_member(kernel, f, _NAME, _CLASS, f"{_NAME} {member};"))
        except ValueError:
            continue
        first = "".join(f" {text}" for text in turn.first)
        done = " ".join([f"{member}.Store({given});", *turn.last])
        whole = (
            f"{{ {rows_of(loop)}{first} if ({condition}) {{ {done} }} else {{ {kernel.text(f.path, loop.node)} }} }}"
        )
        edits.append(kernel.replace(f.path, loop.node, whole.replace(BEGIN, "")))
        site, change = kernel.site(f, loop.node), f"a row of {f.name} made many, and stored at once"
        yield Change(f"{site}/spread", change, merged(edits))
        shorter = tuple(room(kernel, _ROOM))
        if shorter:
            yield Change(f"{site}/spread/room", f"{change}, tiles shorter by that", merged(edits), shorter)


def _slower(kernel: KernelProgram) -> Iterator[Change]:
    """The loop that was kept for longer rows, in any case."""
    for f in kernel.functions:
        for node in walk(f.body):
            condition = node.child_by_field_name("condition") if node.type == "if_statement" else None
            other = node.child_by_field_name("alternative") if condition is not None else None
            if condition is None or other is None or f"{_NAME}::MOST" not in kernel.text(f.path, condition):
                continue
            edit = kernel.replace(f.path, node, kernel.text(f.path, other.named_children[-1]))
            yield Change(kernel.site(f, node), f"a row of {f.name} stored one by one", (edit,))


REPEATED_STORES = Motif(
    name="repeated-stores",
    title="A row stored many times leaves as one",
    description="A loop stores the same row to places that lie evenly apart: each store pays its issue. A vector "
    "instruction with a source of stride 0 makes the row many, and one DataCopyPad stores them all.",
    bottlenecks=("small copies", "copies", "no overlap"),
    preconditions="Rows have at most 2 KB and don't overlap where they go; 8 KB of the Unified Buffer are free.",
    faster=_faster,
    slower=_slower,
)
