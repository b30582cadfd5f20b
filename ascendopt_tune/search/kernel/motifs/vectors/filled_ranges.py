"""Elements of the Unified Buffer that a loop of the scalar unit sets to one value, or to numbers that rise by a step.

A vector instruction begins at a block of 32 bytes. What lies in the first block is set through a mask, the rest by
count; types of one and of eight bytes stay with the scalar unit. Numbers that rise are those of CreateVecIndex, times a
step, where they begin at a block.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...reading.api import COPY, root
from ...reading.classes import in_front, merged
from ...reading.element_loops import BACK, Element, ElementLoop, element_loops
from ...reading.kernel_program import ApiCall, KernelProgram
from ..copies.copied_elements import TURNS, Tensors, gone_on, least
from ..motif import Change

_NAME = "SetElements"
_FUNCTION = f"""\
#ifndef SET_ELEMENTS
#define SET_ELEMENTS
// Sets `count` elements from `first` on to a value, wherever they begin.
class {_NAME} {{
 public:
  template <typename T, typename V>
  __aicore__ static inline void Of(const AscendC::LocalTensor<T>& of, int64_t first, int64_t count, V value) {{
    AscendC::LocalTensor<T> tensor = of;
    if constexpr (sizeof(T) != 2 && sizeof(T) != 4) {{
      for (int64_t i = first; i < first + count; i++) {{
        tensor.SetValue(i, static_cast<T>(value));
      }}
    }} else {{
      constexpr int64_t BLOCK = 32 / static_cast<int64_t>(sizeof(T));
      const int64_t skipped = first % BLOCK;
      int64_t begin = first - skipped;
      int64_t left = count;
      if (skipped > 0) {{
        const int64_t here = BLOCK - skipped < count ? BLOCK - skipped : count;
        uint64_t mask[2] = {{((1ull << here) - 1) << skipped, 0}};
        AscendC::Duplicate(tensor[begin], static_cast<T>(value), mask, 1, 1, 8);
        begin += BLOCK;
        left -= here;
      }}
      if (left > 0) {{
        AscendC::Duplicate(tensor[begin], static_cast<T>(value), static_cast<int32_t>(left));
      }}
    }}
  }}
  // Sets them to `start`, `start + step`, and so on.
  template <typename T>
  __aicore__ static inline void Rising(const AscendC::LocalTensor<T>& of, int64_t first, int64_t count, int64_t start,
                                       int64_t step) {{
    AscendC::LocalTensor<T> tensor = of;
    if (sizeof(T) != 4 || first % 8 != 0) {{
      for (int64_t i = 0; i < count; i++) {{
        tensor.SetValue(first + i, static_cast<T>(start + i * step));
      }}
      return;
    }}
    if constexpr (AscendC::IsSameType<T, uint32_t>::value) {{
      Numbers(tensor[first].template ReinterpretCast<int32_t>(), count, start, step);
    }} else {{
      Numbers(tensor[first], count, start, step);
    }}
  }}
  template <typename T>
  __aicore__ static inline void Numbers(AscendC::LocalTensor<T> to, int64_t count, int64_t start, int64_t step) {{
    const int32_t length = static_cast<int32_t>(count);
    AscendC::CreateVecIndex(to, static_cast<T>(step == 1 ? start : 0), static_cast<uint32_t>(count));
    if (step != 1) {{
      AscendC::PipeBarrier<PIPE_V>();
      AscendC::Muls(to, to, static_cast<T>(step), length);
      AscendC::PipeBarrier<PIPE_V>();
      AscendC::Adds(to, to, static_cast<T>(start), length);
    }}
  }}
  template <AscendC::HardEvent event>
  __aicore__ static inline void Wait() {{
    const event_t id = static_cast<event_t>(AscendC::GetTPipePtr()->FetchEventID(event));
    AscendC::SetFlag<event>(id);
    AscendC::WaitFlag<event>(id);
  }}
}};
#endif

"""


def filled_ranges(kernel: KernelProgram) -> Iterator[Change]:
    """Loops that do nothing else, of whatever step, but those whose one Duplicate needs no such function."""
    tensors = Tensors(kernel)
    for loop in element_loops(kernel):
        if loop.left is not None or not all(_is_filled(tensors, loop, e) for e in loop.elements):
            continue
        path = loop.function.path
        space = kernel.indent(path, loop.node)
        barrier = ["PipeBarrier<PIPE_ALL>();"]
        lines = ["{", *([f"  {loop.head}"] if loop.head else []), *(f"  {x}" for x in least(TURNS, loop.turns))]
        lines.append(f"  if ({TURNS} > 0) {{")
        before, behind = _waits(kernel, loop) if kernel.auto_sync else (barrier, barrier)
        steps = (*before, *map(_call, loop.elements), *behind, *gone_on(loop))
        text = f"\n{space}".join([*lines, *(f"    {step}" for step in steps), "  }", "}"])
        edits = [kernel.replace(path, loop.node, text)]
        written = in_front(kernel, path, loop.node, _NAME, _FUNCTION)
        targets = ", ".join(dict.fromkeys(e.target for e in loop.elements))
        change = f"elements of {targets} in {loop.function.name} set at once"
        if written is not None:
            edits.insert(0, written)
        yield Change(f"{kernel.site(loop.function, loop.node)}/filled", change, merged(edits))


def _waits(kernel: KernelProgram, loop: ElementLoop) -> tuple[list[str], list[str]]:
    """Flags for what the function copies there without a queue: only the scalar unit is waited for by the compiler."""
    targets = {root(e.target.removeprefix("this->")) for e in loop.elements}
    before, behind = list[str](), list[str]()
    calls = [c for c in kernel.calls_of(loop.function) if len(c.args) > 0]
    queued = any(c.name == "EnQue" and root(c.args[0]) in targets for c in calls if _follows(c, loop))
    for call in (c for c in calls if c.name in COPY and len(c.args) > 1):
        to, of = (root(a.removeprefix("this->")) for a in call.args[:2])
        if to in targets and call.node.end_byte <= loop.node.start_byte:
            before = [f"{_NAME}::Wait<AscendC::HardEvent::MTE2_V>();"]
        if of in targets and _follows(call, loop) and not queued:
            behind = [f"{_NAME}::Wait<AscendC::HardEvent::V_MTE3>();"]
    return before, behind


def _follows(call: ApiCall, loop: ElementLoop) -> bool:
    return call.node.start_byte >= loop.node.end_byte


def _is_filled(tensors: Tensors, loop: ElementLoop, element: Element) -> bool:
    """Is it set to one value in the Unified Buffer, next to the one before, in all turns?"""
    known = tensors.kinds(loop, element.target)
    plain = not element.source and not element.first and not element.last and element.grows in ("1", BACK)
    if element.rises != "0" and (element.grows == BACK or not _are_numbers(element, known)):
        return False
    return plain and len(known) == 1 and not tensors.is_global(element.target)


def _are_numbers(element: Element, kinds: set[str]) -> bool:
    """Are they integers, also of a type that has others?"""
    written = f"{element.value} {element.rises}"
    integers = not re.search(r"\d\.|\.\d|/|\bfloat\b|\bhalf\b|[sS]cale", written)
    return kinds <= {"int32_t", "uint32_t", "int"} or (kinds == {"float"} and integers)


def _call(element: Element) -> str:
    if element.rises != "0":
        start, step = (f"static_cast<int64_t>({text})" for text in (element.value, element.rises))
        call = f"{_NAME}::Rising({element.target}, {element.index}, {TURNS}, {start}, {step});"
        return f"{element.when} {{ {call} }}" if element.when else call
    back = f" - ({TURNS} - 1)" if element.grows == BACK else ""
    call = f"{_NAME}::Of({element.target}, {element.index}{back}, {TURNS}, {element.value});"
    return f"{element.when} {{ {call} }}" if element.when else call
