"""Elements of global memory that the scalar unit moves one by one: moved by copies, a piece at a time.

1. From global memory to the Unified Buffer, or back: one DataCopyPad, where the place in the Unified Buffer is whole
   blocks of 32 bytes from its beginning, which is asked when the kernel runs.
2. From global memory to global memory, and a value set there at places that follow each other or are a fixed step
   apart: through room of its own in the Unified Buffer (``ElementsInPieces``). The data cache doesn't see what copies
   store, so a tensor is moved so by all loops of its class, and by nothing else there that is the scalar unit's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from .....sources.cpp import Edit
from ...reading.affine import indexed
from ...reading.api import root
from ...reading.classes import merged, with_member
from ...reading.declared import element_types, local_kinds
from ...reading.element_loops import BACK, Element, ElementLoop, element_loops
from ...reading.kernel_program import KernelProgram
from ..motif import Change, Motif

_PIECES, _MEMBER, TURNS = "ElementsInPieces", "elementsInPieces", "turnsAtOnce"
_CLASS = f"""\
#ifndef ELEMENTS_IN_PIECES
#define ELEMENTS_IN_PIECES
// Moves elements of global memory through the Unified Buffer a piece at a time, and sets them to a value.
class {_PIECES} {{
 public:
  template <typename T>
  __aicore__ inline void Copy(const AscendC::GlobalTensor<T>& to, const AscendC::GlobalTensor<T>& of, int64_t count) {{
    Begin();
    const AscendC::GlobalTensor<uint8_t> target = Bytes(to), source = Bytes(of);
    for (int64_t i = 0; i < count * static_cast<int64_t>(sizeof(T)); i += PIECE) {{
      const AscendC::DataCopyExtParams some{{1, Piece(count * sizeof(T) - i), 0, 0, 0}};
      AscendC::LocalTensor<uint8_t> piece = pieces.AllocTensor<uint8_t>();
      AscendC::DataCopyPad(piece, source[i], some, AscendC::DataCopyPadExtParams<uint8_t>{{false, 0, 0, 0}});
      pieces.EnQue(piece);
      piece = pieces.DeQue<uint8_t>();
      AscendC::DataCopyPad(target[i], piece, some);
      pieces.FreeTensor(piece);
    }}
  }}
  template <typename T, typename V>
  __aicore__ inline void Fill(const AscendC::GlobalTensor<T>& to, V value, int64_t count) {{
    Set<T>(static_cast<T>(value));
    const AscendC::GlobalTensor<uint8_t> target = Bytes(to);
    for (int64_t i = 0; i < count * static_cast<int64_t>(sizeof(T)); i += PIECE) {{
      const AscendC::DataCopyExtParams some{{1, Piece(count * sizeof(T) - i), 0, 0, 0}};
      AscendC::DataCopyPad(target[i], filled.Get<uint8_t>(), some);
    }}
  }}
  // Elements that are `step` apart: each from a block of its own.
  template <typename T, typename V>
  __aicore__ inline void Fill(const AscendC::GlobalTensor<T>& to, V value, int64_t count, int64_t step) {{
    Set<T>(static_cast<T>(value));
    const AscendC::GlobalTensor<uint8_t> target = Bytes(to);
    const uint32_t gap = static_cast<uint32_t>((step - 1) * sizeof(T));
    for (int64_t i = 0; i < count; i += PIECE / 32) {{
      const uint16_t blocks = static_cast<uint16_t>(count - i < PIECE / 32 ? count - i : PIECE / 32);
      const AscendC::DataCopyExtParams some{{blocks, static_cast<uint32_t>(sizeof(T)), 0, gap, 0}};
      AscendC::DataCopyPad(target[i * step * sizeof(T)], filled.Get<uint8_t>(), some);
    }}
  }}

 private:
  static constexpr int64_t PIECE = 4096;  // bytes

  __aicore__ inline void Begin() {{
    if (!made) {{
      AscendC::GetTPipePtr()->InitBuffer(pieces, 2, PIECE);
      AscendC::GetTPipePtr()->InitBuffer(filled, PIECE);
      made = true;
    }}
  }}
  __aicore__ inline uint32_t Piece(int64_t left) {{ return static_cast<uint32_t>(left < PIECE ? left : PIECE); }}
  template <typename T>
  __aicore__ inline AscendC::GlobalTensor<uint8_t> Bytes(const AscendC::GlobalTensor<T>& of) {{
    AscendC::GlobalTensor<uint8_t> bytes;
    bytes.SetGlobalBuffer((__gm__ uint8_t*)of.GetPhyAddr());
    return bytes;
  }}
  template <AscendC::HardEvent event>
  __aicore__ inline void Wait() {{
    const event_t id = static_cast<event_t>(AscendC::GetTPipePtr()->FetchEventID(event));
    AscendC::SetFlag<event>(id);
    AscendC::WaitFlag<event>(id);
  }}
  // Fills the room for values, where it isn't full of this one.
  template <typename T>
  __aicore__ inline void Set(T value) {{
    uint64_t bits = 0;
    *reinterpret_cast<T*>(&bits) = value;
    Begin();
    if (size == sizeof(T) && bits == held) {{
      return;
    }}
    size = sizeof(T);
    held = bits;
    if constexpr (sizeof(T) == 8) {{
      Wait<AscendC::HardEvent::MTE3_S>();
      for (uint32_t i = 0; i < PIECE / 8; i++) {{
        filled.Get<uint64_t>().SetValue(i, bits);
      }}
      Wait<AscendC::HardEvent::S_MTE3>();
    }} else {{
      Wait<AscendC::HardEvent::MTE3_V>();
      if constexpr (sizeof(T) == 4) {{
        AscendC::Duplicate(filled.Get<uint32_t>(), static_cast<uint32_t>(bits), PIECE / 4);
      }} else {{
        const uint16_t two = static_cast<uint16_t>(sizeof(T) == 1 ? bits * 257 : bits);
        AscendC::Duplicate(filled.Get<uint16_t>(), two, PIECE / 2);
      }}
      Wait<AscendC::HardEvent::V_MTE3>();
    }}
  }}

  AscendC::TQueBind<AscendC::TPosition::VECIN, AscendC::TPosition::VECOUT, 1> pieces;
  AscendC::TBuf<AscendC::TPosition::VECCALC> filled;
  uint64_t held = 0;
  uint32_t size = 0;
  bool made = false;
}};
#endif

"""


class Tensors:
    """Element types of a kernel's tensors, and what its classes do with values of global ones."""

    def __init__(self, kernel: KernelProgram) -> None:
        self.kernel, self.outside = kernel, element_types(kernel)
        self._everywhere = local_kinds(kernel.files.values())

    def is_global(self, name: str) -> bool:
        return root(name.removeprefix("this->")) in self.outside

    def kinds(self, loop: ElementLoop, name: str) -> set[str]:
        name = root(name.removeprefix("this->"))
        if name in self.outside:
            return {self.outside[name]}
        here = local_kinds([self.kernel.text(loop.function.path, loop.function.node)])
        return here.get(name) or self._everywhere.get(name, set())

    def suits(self, loop: ElementLoop, element: Element) -> bool:
        """Is the element moved as it is, from another tensor?"""
        target = self.kinds(loop, element.target)
        if element.grows == BACK or element.rises != "0":
            return False
        if len(target) != 1 or not element.source:
            return len(target) == 1
        return self.kinds(loop, element.source) == target and element.kinds <= target and element.grows == "1"


def _calls(kernel: KernelProgram, of: str, name: str) -> set[str]:
    """Names in the receivers of the calls ``name`` that a class has."""
    return {root(c.receiver.removeprefix("this->")) for c in kernel.named(name) if kernel.class_of(c.function) == of}


# -- between global memory and the Unified Buffer ----------------------------------------------------------------------


def _one_copy(tensors: Tensors, loop: ElementLoop, element: Element) -> tuple[str, str]:
    """(what has to hold, the copy) for all turns of an element that is moved in or out; first empty where nothing."""
    inward = tensors.is_global(element.source)
    kind = next(iter(tensors.kinds(loop, element.target)))
    inside = element.index if inward else element.read
    _, start = indexed(element.target if inward else element.source)
    inside = f"({start}) + {inside}" if start is not None else inside
    aligned = f"(static_cast<int64_t>({inside}) * sizeof({kind})) % 32 == 0"
    params = f"AscendC::DataCopyExtParams{{1, static_cast<uint32_t>({TURNS} * sizeof({kind})), 0, 0, 0}}"
    args = [f"{element.target}[{element.index}]", f"{element.source}[{element.read}]", params]
    if inward:
        args.append(f"AscendC::DataCopyPadExtParams<{kind}>{{false, 0, 0, 0}}")
    return "" if _starts(loop, inside) else aligned, f"AscendC::DataCopyPad({', '.join(args)});"


def _starts(loop: ElementLoop, index: str) -> bool:
    """Is the first turn's index 0?"""
    head = loop.head.rstrip(";").replace(" ", "")
    return bool(head) and head.endswith(f"{index}=0") and index.isidentifier()


def _may_move(kernel: KernelProgram, tensors: Tensors, loop: ElementLoop) -> bool:
    """Is each element moved in or out as it is, and does the scalar unit leave the tensor in global memory alone?"""
    of = kernel.class_of(loop.function)
    set_, read = _calls(kernel, of, "SetValue"), _calls(kernel, of, "GetValue")
    for e in loop.elements:
        sides = tensors.is_global(e.target), bool(e.source) and tensors.is_global(e.source)
        if not e.source or sides[0] == sides[1] or e.first or e.last or e.when or not tensors.suits(loop, e):
            return False
        outside = root((e.target if sides[0] else e.source).removeprefix("this->"))
        if outside in (read if sides[0] else set_):
            return False  # lines of the data cache
    return loop.left is None and not {e.target for e in loop.elements} & {e.source for e in loop.elements}


def _moved(kernel: KernelProgram, tensors: Tensors, loop: ElementLoop) -> Change:
    """The loop as copies between global memory and the Unified Buffer."""
    elements = loop.elements
    path, space = loop.function.path, kernel.indent(loop.function.path, loop.node)
    found = [_one_copy(tensors, loop, e) for e in elements]
    conditions = [f"{TURNS} > 0", *dict.fromkeys(c for c, _ in found if c)]
    barrier = [] if kernel.auto_sync else ["PipeBarrier<PIPE_ALL>();"]
    steps = [*barrier, *(copy for _, copy in found), *barrier, *gone_on(loop)]
    lines = [
        "{",
        *([f"  {loop.head}"] if loop.head else []),
        *(f"  {line}" for line in least(TURNS, loop.turns)),
        f"  if ({' && '.join(conditions)}) {{",
        *(f"    {step}" for step in steps),
    ]
    if len(conditions) > 1:
        lines += ["  } else {", f"    {kernel.text(path, loop.node)}"]
    text = f"\n{space}".join([*lines, "  }", "}"])
    targets = ", ".join(dict.fromkeys(e.target for e in elements))
    change = f"elements of {targets} in {loop.function.name} moved by {'copies' if len(found) > 1 else 'a copy'}"
    return Change(kernel.site(loop.function, loop.node), change, (kernel.replace(path, loop.node, text),))


def least(name: str, bounds: Sequence[str]) -> list[str]:
    """The declaration of a number: the least of them."""
    lines = [f"int64_t {name} = {bounds[0]};"]
    return lines + [f"{name} = {bound} < {name} ? {bound} : {name};" for bound in bounds[1:]]


def gone_on(loop: ElementLoop, turns: str = TURNS) -> list[str]:
    return [f"{name} += {turns}{'' if step == '1' else f' * ({step})'};" for name, step in loop.steps.items()]


# -- in global memory --------------------------------------------------------------------------------------------------


def _in_pieces(kernel: KernelProgram, loop: ElementLoop) -> Edit:
    """The loop as calls of ``ElementsInPieces``."""
    path, space = loop.function.path, kernel.indent(loop.function.path, loop.node)
    lines = ["{", *([f"  {loop.head}"] if loop.head else []), *(f"  {line}" for line in least(TURNS, loop.turns))]
    if loop.left is not None:
        left = loop.left[0]
        lines += [f"  const int64_t allTurns = {TURNS};", f"  {TURNS} = {left} < {TURNS} ? {left} : {TURNS};"]
    lines.append(f"  if ({TURNS} > 0) {{")
    lines += [f"    {line}" for element in loop.elements for line in _piece(element)]
    lines += [f"    {line}" for line in gone_on(loop)]
    lines.append("  }")
    if loop.left is not None and loop.left[1] == "return;":
        lines.append(f"  if ({TURNS} < allTurns) {{ return; }}")
    return kernel.replace(path, loop.node, f"\n{space}".join([*lines, "}"]))


def _piece(element: Element) -> list[str]:
    """The call for one element, in the turns that set it."""
    lines, skipped, count = list[str](), "", TURNS
    bound = element.first or element.last
    if bound:
        lines = [
            "{",
            *(f"  {line}" for line in least("turned", [bound, TURNS])),
            "  turned = turned < 0 ? 0 : turned;",
        ]
        count = f"{TURNS} - turned" if element.first else "turned"
        skipped = f" + turned * ({element.grows})" if element.first else ""
    place = f"{element.target}[{element.index}{skipped}]"
    if element.source:
        call = f"{_MEMBER}.Copy({place}, {element.source}[{element.read}{skipped}], {count});"
    else:
        step = "" if element.grows == "1" else f", {element.grows}"
        call = f"{_MEMBER}.Fill({place}, {element.value}, {count}{step});"
    call = f"{element.when} {{ {call} }}" if element.when else call
    return [*lines, f"  {call}", "}"] if bound else [call]


def _of_one_class(kernel: KernelProgram, tensors: Tensors, loops: Sequence[ElementLoop]) -> list[ElementLoop]:
    """Those of a class whose targets no other code of it sets, and that read no tensor that it sets."""
    of = kernel.class_of(loops[0].function)
    read, kept = _calls(kernel, of, "GetValue"), list(loops)
    while True:
        inside = {e.call.node.start_byte for loop in kept for e in loop.elements}
        others = {
            root(c.receiver.removeprefix("this->"))
            for c in kernel.named("SetValue")
            if kernel.class_of(c.function) == of and c.node.start_byte not in inside
        }
        set_ = _calls(kernel, of, "SetValue")
        good = [
            loop
            for loop in kept
            if all(
                root(e.target.removeprefix("this->")) not in others | read
                and root(e.source.removeprefix("this->")) not in set_
                for e in loop.elements
            )
        ]
        if len(good) == len(kept):
            return good
        kept = good


def _faster(kernel: KernelProgram) -> Iterator[Change]:
    tensors = Tensors(kernel)
    by_class: dict[str, list[ElementLoop]] = {}
    for loop in element_loops(kernel):
        if _may_move(kernel, tensors, loop):
            yield _moved(kernel, tensors, loop)
        if all(_between(tensors, loop, e) for e in loop.elements):
            by_class.setdefault(kernel.class_of(loop.function), []).append(loop)
    for of, loops in by_class.items():
        found = _of_one_class(kernel, tensors, loops) if of else []
        if not found:
            continue
        try:
            member = with_member(kernel, found[0].function, _PIECES, _CLASS, f"{_PIECES} {_MEMBER};")
        except ValueError:
            continue
        edits = [*member, *(_in_pieces(kernel, loop) for loop in found)]
        targets = ", ".join(dict.fromkeys(e.target for loop in found for e in loop.elements))
        names = ", ".join(dict.fromkeys(loop.function.name for loop in found))
        yield Change(f"{names}/{targets}", f"elements of {targets} in {names} set a piece at a time", merged(edits))


def _between(tensors: Tensors, loop: ElementLoop, element: Element) -> bool:
    """Is the element set in global memory, to a value or to what is elsewhere there?"""
    sides = [element.target, *([element.source] if element.source else [])]
    return all(map(tensors.is_global, sides)) and tensors.suits(loop, element)


def _slower(kernel: KernelProgram) -> Iterator[Change]:
    """A load of so many elements as a loop of the scalar unit."""
    types: Mapping[str, str] = element_types(kernel)
    for call in kernel.named("DataCopy"):
        s = call.statement
        if s is None or len(call.args) != 3 or not kernel.repeated(call.function, call.node):
            continue
        to, of, count = call.args
        if root(of.removeprefix("this->")) not in types or root(to.removeprefix("this->")) in types or "aram" in count:
            continue
        barrier = "" if kernel.auto_sync else "PipeBarrier<PIPE_ALL>();"
        step = f"{to}.SetValue(element, {of}.GetValue(element));"
        text = f"{barrier} for (uint32_t element = 0; element < {count}; element++) {{ {step} }} {barrier}".strip()
        change = f"{to} in {call.function.name} loaded element by element"
        yield Change(kernel.site(call.function, s), change, (kernel.replace(call.path, s, text),))


COPIED_ELEMENTS = Motif(
    name="copied-elements",
    title="Copies instead of elements of global memory",
    description="GetValue and SetValue of a GlobalTensor take the scalar unit tens of cycles an element, hundreds for "
    "each line of 64 bytes. A copy moves 64 bytes a cycle; what has no place in the Unified Buffer, or is set to a "
    "value, goes through a piece of it.",
    bottlenecks=("scalar", "scalar round trips", "no overlap", "copies"),
    preconditions="Elements follow each other, or are set to one value at a fixed step; there is room for 12 KB where "
    "both places are in global memory; no other code of the class reads or sets them by the scalar unit.",
    faster=_faster,
    slower=_slower,
)
