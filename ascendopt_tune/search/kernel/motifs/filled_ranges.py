"""Elements of the Unified Buffer that a loop of the scalar unit sets to one value: Duplicate, wherever they begin.

A vector instruction begins at a block of 32 bytes. What lies in the first block is set through a mask, the rest by
count; types of one and of eight bytes stay with the scalar unit.
"""

from __future__ import annotations

from collections.abc import Iterator

from .api import COPY, root
from .classes import in_front, merged
from .copied_elements import TURNS, Tensors, gone_on, least
from .element_loops import BACK, Element, ElementLoop, element_loops
from .kernel_program import ApiCall, KernelProgram
from .motif import Change

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
    return plain and len(known) == 1 and not tensors.is_global(element.target)


def _call(element: Element) -> str:
    back = f" - ({TURNS} - 1)" if element.grows == BACK else ""
    call = f"{_NAME}::Of({element.target}, {element.index}{back}, {TURNS}, {element.value});"
    return f"{element.when} {{ {call} }}" if element.when else call
