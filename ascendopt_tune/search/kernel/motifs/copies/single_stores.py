"""A single value that the scalar unit sets and a copy stores: in a slot of its own, so that nothing waits for it.

With one place for the value the next one waits until the store before has read it, a round trip a turn. Slots are gone
round, and waited for once a round.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tree_sitter import Node

from .....sources.cpp import Edit, walk
from ...reading.affine import indexed
from ...reading.api import root
from ...reading.classes import merged, with_member
from ...reading.declared import element_types, global_tensors
from ...reading.kernel_program import ApiCall, Block, BlockStep, KernelProgram, where
from ..motif import Change, Motif
from ..waiting.flags import pairs
from .single_values import of_one

_NAME, _MEMBER = "StoresOfValues", "storesOfValues"
_BETWEEN = ("SetAtomicAdd", "SetAtomicMax", "SetAtomicMin", "SetAtomicNone")
_CLASS = f"""\
#ifndef STORES_OF_VALUES
#define STORES_OF_VALUES
// Stores single values to global memory, each from a slot of its own.
class {_NAME} {{
 public:
  template <typename T, typename V>
  __aicore__ inline void Put(const AscendC::GlobalTensor<T>& to, V value) {{
    AscendC::LocalTensor<T> slot = Next<T>();
    slot.SetValue(0, static_cast<T>(value));
    Wait<AscendC::HardEvent::S_MTE3>();
    AscendC::DataCopyPad(to, slot, AscendC::DataCopyExtParams{{1, static_cast<uint32_t>(sizeof(T)), 0, 0, 0}});
  }}
  // The next slot, when the store before from there is done.
  template <typename T>
  __aicore__ inline AscendC::LocalTensor<T> Next() {{
    if (!made) {{
      AscendC::GetTPipePtr()->InitBuffer(slots, SLOTS * 32);
      made = true;
    }}
    if (taken == SLOTS) {{
      Wait<AscendC::HardEvent::MTE3_S>();
      taken = 0;
    }}
    return slots.Get<T>()[taken++ * (32 / sizeof(T))];
  }}

 private:
  static constexpr uint32_t SLOTS = 64;

  template <AscendC::HardEvent event>
  __aicore__ inline void Wait() {{
    const event_t id = static_cast<event_t>(AscendC::GetTPipePtr()->FetchEventID(event));
    AscendC::SetFlag<event>(id);
    AscendC::WaitFlag<event>(id);
  }}
  AscendC::TBuf<AscendC::TPosition::VECCALC> slots;
  uint32_t taken = 0;
  bool made = false;
}};
#endif

"""


def _stores(kernel: KernelProgram) -> Iterator[tuple[Block, int, int]]:
    """(block, place of what sets element 0, place of what copies it to global memory) of each such store."""
    tensors = global_tensors(kernel)
    for block in kernel.blocks:
        if not kernel.repeated(block.function, block.node):
            continue
        for i, step in enumerate(block.steps):
            call = step.call
            if call is None or call.name != "SetValue" or len(call.args) != 2 or call.args[0] != "0":
                continue
            found = _copied(kernel, block.steps, i, call, tensors)
            if found is not None and _alone(kernel, block, call.receiver):
                yield block, i, found


def _copied(kernel: KernelProgram, steps: Sequence[BlockStep], i: int, set_: ApiCall, tensors: set[str]) -> int | None:
    """Where the element is stored; None where something else comes first."""
    own = {f.name.partition("<")[0] for f in kernel.functions}
    for k in range(i + 1, len(steps)):
        call = steps[k].call
        if call is None:
            if steps[k].node.type not in ("comment", "declaration"):
                return None
        elif call.name == "DataCopyPad" and len(call.args) == 3 and call.args[1] == set_.receiver:
            target, _ = indexed(call.args[0])
            return k if root(target.removeprefix("this->")) in tensors and of_one(kernel, call) else None
        elif call.name not in (*_BETWEEN, "SetFlag", "WaitFlag", "set_flag", "wait_flag") and not (
            call.name in own and "S_MTE3" in f"{call.template}{call.args}"
        ):
            return None
    return None


def _alone(kernel: KernelProgram, block: Block, tensor: str) -> bool:
    """Is the tensor, in its function, only set and stored once, and got and given back?"""
    f, name = block.function, root(tensor.removeprefix("this->"))
    if tensor.removeprefix("this->") != name:
        return False
    named = [n for n in walk(f.body) if n.type in ("identifier", "field_identifier") and kernel.text(f.path, n) == name]
    uses = [_use(n) for n in named]
    return uses.count("used") == 2 and "other" not in uses


def _use(node: Node) -> str:
    """``used`` for what is set or stored, ``held`` for what gets the tensor or gives it back, else ``other``."""
    parent = node.parent
    if parent is None or parent.type in ("init_declarator", "declaration"):
        return "held"
    if parent.type == "argument_list" and parent.parent is not None:
        called = (parent.parent.text or b"").partition(b"(")[0]
        return "used" if b"DataCopyPad" in called else "held" if b"FreeTensor" in called else "other"
    return "used" if parent.type == "field_expression" and (parent.text or b"").endswith(b"SetValue") else "other"


def _faster(kernel: KernelProgram) -> Iterator[Change]:
    by_class: dict[str, list[tuple[Block, int, int]]] = {}
    for block, i, k in _stores(kernel):
        by_class.setdefault(kernel.class_of(block.function), []).append((block, i, k))
    waits = list(pairs(kernel))
    for found in by_class.values():
        first, _, copy = found[0]
        try:
            member = _member(kernel, first)
        except ValueError:
            continue
        edits = [*member, *(e for block, i, k in found for e in _put(kernel, block, i, k, waits))]
        names = ", ".join(dict.fromkeys(block.function.name for block, _, _ in found))
        site = kernel.site(first.function, first.steps[copy].node)
        yield Change(site, f"single values of {names} stored side by side", merged(edits))


def _put(
    kernel: KernelProgram, block: Block, i: int, k: int, waits: Sequence[tuple[Block, Node, Node, str]]
) -> Iterator[Edit]:
    """The store as a call of ``Put``, without the waits around it."""
    path, set_, copy = block.function.path, block.steps[i], block.steps[k]
    assert set_.call is not None
    assert copy.call is not None
    yield kernel.delete(path, set_.node)
    if i > 0 and f"{_MEMBER}.Next<" in kernel.text(path, block.steps[i - 1].node):
        yield kernel.delete(path, block.steps[i - 1].node)  # the slot that was taken for it
    yield kernel.replace(path, copy.node, f"{_MEMBER}.Put({copy.call.args[0]}, {set_.call.args[1]});")
    behind = next((s.node for s in block.steps[k + 1 :] if s.node.type not in ("comment", "declaration")), None)
    for other, one, two, event in waits:
        if where(other.function) != where(block.function) or other.node != block.node:
            continue
        inside = event == "HardEvent::S_MTE3" and set_.node.end_byte <= one.start_byte < copy.node.start_byte
        if inside or (event == "HardEvent::MTE3_S" and behind is not None and one == behind):
            yield from (kernel.delete(path, n) for n in dict.fromkeys((one, two)))


def _member(kernel: KernelProgram, block: Block) -> tuple[Edit, ...]:
    found = kernel.class_node(block.function)
    if found is not None and f"{_NAME} {_MEMBER};" in kernel.text(*found):
        return ()
    return with_member(kernel, block.function, _NAME, _CLASS, f"{_NAME} {_MEMBER};")


def _slower(kernel: KernelProgram) -> Iterator[Change]:
    """``Put`` as what it does, with a wait behind it."""
    for call in kernel.named("Put"):
        s = call.statement
        if s is None or call.receiver != _MEMBER or len(call.args) != 2:
            continue
        kind = element_types(kernel).get(root(call.args[0].removeprefix("this->")), "float")
        lines = [
            f"{{ auto single = {_MEMBER}.Next<{kind}>();",
            f"single.SetValue(0, {call.args[1]});",
            "SetFlag<HardEvent::S_MTE3>(EVENT_ID0); WaitFlag<HardEvent::S_MTE3>(EVENT_ID0);",
            f"DataCopyPad({call.args[0]}, single, DataCopyExtParams{{1, sizeof({kind}), 0, 0, 0}});",
            "SetFlag<HardEvent::MTE3_S>(EVENT_ID0); WaitFlag<HardEvent::MTE3_S>(EVENT_ID0); }",
        ]
        text = f"\n{kernel.indent(call.path, s)}".join(lines)
        change = f"single values of {call.function.name} waited for one by one"
        yield Change(kernel.site(call.function, s), change, (kernel.replace(call.path, s, text),))


SINGLE_STORE = Motif(
    name="single-store",
    title="Single values are stored side by side",
    description="A value that the scalar unit sets in the Unified Buffer and a copy stores, in a loop: with one place "
    "for it the next value waits until the store before has read it. Slots of 32 bytes, gone round and waited for once "
    "a round, let stores follow each other.",
    bottlenecks=("scalar round trips", "small copies", "no overlap", "copies", "scalar"),
    preconditions="The tensor is used for nothing else in its function; 2 KB of the Unified Buffer are free.",
    faster=_faster,
    slower=_slower,
)
