"""A reduction that leaves its one result where it is wanted, which the scalar unit took there.

``ReduceSum(s, x, w, n)``, a wait for the scalar unit, ``t.SetValue(i, s.GetValue(0))`` and a wait back are
``ReduceSum(t[i], x, w, n)``: a reduction's target begins at any element.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from .....sources.cpp import Edit
from ...reading.affine import indexed
from ...reading.api import is_barrier, root
from ...reading.declared import local_kinds
from ...reading.kernel_program import ApiCall, Block, BlockStep, KernelProgram, flat
from ..motif import Change, Motif
from .one_element import unread

_COUNTED = ("ReduceSum", "ReduceMax", "ReduceMin")
_FIRST = re.compile(
    r"(?:\([\w:]+\)\s*|static_cast<[\w:]+>\s*\(\s*)?((?:this->)?\w+(?:\[[^\]]*\])?)\.GetValue\(\s*(?:0u?)?\s*\)\)?"
)
_DECLARED = re.compile(r"(?:const\s+)?(?:float|half|auto)\s+(\w+)\s*=\s*([^;]+);")
_EVENT = re.compile(r"\b(?:event_t|TEventID|FetchEventID|AllocEventID)\b")
_FLAGS = ("SetFlag", "WaitFlag")
_PLAIN_KINDS = frozenset({"half", "bfloat16_t", "int64_t", *(f"{u}int{n}_t" for n in (8, 16, 32) for u in ("", "u"))})


@dataclass(frozen=True)
class _Taken:
    """A reduction's result that the scalar unit sets elsewhere: steps of a block between its statement and the last
    that is for nothing else.
    """

    block: Block
    reduction: ApiCall
    target: str
    gone: tuple[Node, ...]


def _setters(kernel: KernelProgram) -> dict[str, tuple[int, int, int]]:
    """The kernel's own functions that set one element and do nothing else: name -> where tensor, index, value are."""
    out: dict[str, tuple[int, int, int] | None] = {}
    for f in kernel.functions:
        nodes = [n for n in f.body.named_children if n.type != "comment"]
        call = kernel.call_of(f, nodes[0]) if len(nodes) == 1 else None
        if call is None or call.name != "SetValue" or len(call.args) != 2:
            continue
        found = [
            next((i for i, p in enumerate(f.parameters) if re.search(rf"\b{p}\b", text)), -1)
            for text in (call.receiver, *call.args)
        ]
        places = (found[0], found[1], found[2])
        name = f.name.partition("<")[0].strip()
        out[name] = places if -1 not in places and out.get(name, places) == places else None
    return {name: places for name, places in out.items() if places is not None}


def _set(call: ApiCall | None, setters: dict[str, tuple[int, int, int]]) -> tuple[str, str, str] | None:
    """(tensor, index, value) where a call sets one element."""
    if call is None:
        return None
    if call.name == "SetValue" and len(call.args) == 2:
        return call.receiver, call.args[0], call.args[1]
    if call.name in setters and not call.receiver and len(call.args) == 3:
        tensor, index, value = (call.args[i] for i in setters[call.name])
        return tensor, index, value
    return None


def _is_one(call: ApiCall) -> bool:
    """Is it a reduction to one element?"""
    if call.name in _COUNTED and not call.receiver:
        return len(call.args) == 4 or (len(call.args) == 5 and call.args[4] in ("false", "0"))
    only = call.name == "WholeReduceSum" or "ORDER_ONLY_VALUE" in call.args[-1:][0] if call.args else False
    return call.name.startswith("WholeReduce") and only and len(call.args) > 6 and flat(call.args[3]) == "1"


def _reducing(kernel: KernelProgram) -> frozenset[str]:
    """The kernel's own functions that hand on to a reduction to one element, whose target is their first parameter."""
    direct: set[str] = set()
    rest: dict[str, set[str]] = {}
    for f in kernel.functions:
        target = f.parameters[:1]
        calls = [c for c in kernel.calls_of(f) if c.statement is not None and not is_barrier(c, "PIPE_V")]
        one = len(calls) == 1 and calls[0].args[:1] == tuple(target) and len(calls[0].args) == len(f.parameters)
        if one and _is_one(calls[0]):
            direct.add(f.name)
        else:
            rest.setdefault(f.name, set()).add(calls[0].name if one else "")
    return frozenset(n for n in direct if not rest.get(n, set()) - direct)


def _flag(step: BlockStep, event: str) -> bool:
    call = step.call
    return call is not None and call.name in _FLAGS and event in call.template


def _is_event(kernel: KernelProgram, block: Block, step: BlockStep) -> bool:
    text = kernel.text(block.function.path, step.node)
    return step.node.type == "comment" or (step.node.type == "declaration" and _EVENT.search(text) is not None)


def _behind(
    kernel: KernelProgram, block: Block, i: int, setters: dict[str, tuple[int, int, int]]
) -> tuple[str, tuple[Node, ...]] | None:
    """(target, statements) of what the scalar unit does with the result of the reduction that step i is."""
    call = block.steps[i].call
    assert call is not None
    gone: list[Node] = []
    name = ""
    for j in range(i + 1, len(block.steps)):
        step = block.steps[j]
        text = flat(kernel.text(block.function.path, step.node))
        taken, declared = _set(step.call, setters), _DECLARED.fullmatch(text)
        if (step.call is not None and is_barrier(step.call, "PIPE_V")) or _flag(step, "HardEvent::V_S"):
            gone.append(step.node)
        elif taken is not None:
            tensor, index, value = taken
            read = _FIRST.fullmatch(flat(value))
            if value != name and (read is None or flat(read[1]) != flat(call.args[0])):
                return None
            gone.append(step.node)
            rest = _ended(kernel, block, j)
            return f"{tensor}[{index}]", (*gone, *rest)
        elif declared is not None and (read := _FIRST.fullmatch(declared[2])) is not None and not name:
            if flat(read[1]) != flat(call.args[0]) or _uses(kernel, block, declared[1]) != 2:
                return None
            name = declared[1]
            gone.append(step.node)
        elif not _is_event(kernel, block, step) and not _flag(step, "HardEvent::S_V"):
            return None
    return None


def _uses(kernel: KernelProgram, block: Block, name: str) -> int:
    return len(re.findall(rf"\b{name}\b", kernel.text(block.function.path, block.node)))


def _ended(kernel: KernelProgram, block: Block, j: int) -> list[Node]:
    """The wait of the vector pipe behind step j."""
    gone: list[Node] = []
    for step in block.steps[j + 1 :]:
        if _flag(step, "HardEvent::S_V"):
            gone.append(step.node)
        elif not _is_event(kernel, block, step):
            break
    return gone if len(gone) == 2 else []


def _taken(kernel: KernelProgram) -> Iterator[_Taken]:
    setters, reducing = _setters(kernel), _reducing(kernel)
    everywhere = local_kinds(s.data.decode("utf-8", "replace") for s in kernel.program.files.values())
    for block in kernel.blocks:
        kinds: dict[str, set[str]] | None = None
        for i, step in enumerate(block.steps):
            if step.call is None or not (_is_one(step.call) or (step.call.name in reducing and step.call.args)):
                continue
            found = _behind(kernel, block, i, setters)
            if found is None or not kernel.repeated(block.function, block.node):
                continue
            kinds = kinds or {**everywhere, **local_kinds([kernel.text(block.function.path, block.function.node)])}
            source, target = root(step.call.args[0]), root(found[0])
            one, two = kinds.get(source, set()), kinds.get(target, set())
            alike = one == two or not (one | two) & _PLAIN_KINDS
            behind = found[1][-1].end_byte
            if one and two and alike and (source == target or unread(kernel, block.function, source, behind)):
                yield _Taken(block, step.call, found[0], found[1])


def _faster(kernel: KernelProgram) -> Iterator[Change]:
    for taken in _taken(kernel):
        f, call = taken.block.function, taken.reduction
        edits: list[Edit] = [kernel.delete(call.path, n) for n in taken.gone[:-1]]
        barrier = "" if kernel.auto_sync else "PipeBarrier<PIPE_V>();"
        edits.append(
            kernel.replace(call.path, taken.gone[-1], barrier) if barrier else kernel.delete(call.path, taken.gone[-1])
        )
        edits.append(kernel.replace(call.path, call.arguments[0], taken.target))
        site = kernel.site(f, call.statement or call.node)
        yield Change(site, f"{call.name} of {f.name} writes {taken.target} itself", tuple(edits))


def _slower(kernel: KernelProgram) -> Iterator[Change]:
    for call in kernel.named("ReduceSum"):
        s = call.statement
        if s is None or len(call.args) != 4 or not kernel.repeated(call.function, call.node):
            continue
        tensor, index = indexed(call.args[0])
        work = call.args[2]
        if index is None or root(work) == root(tensor) or "[" in work:
            continue
        waits = ["", ""]
        if not kernel.auto_sync:
            waits = [
                f"SetFlag<HardEvent::{e}>(EVENT_ID0); WaitFlag<HardEvent::{e}>(EVENT_ID0);" for e in ("V_S", "S_V")
            ]
        text = " ".join(w for w in (waits[0], f"{tensor}.SetValue({index}, {work}.GetValue(0));", waits[1]) if w)
        edits = (kernel.replace(call.path, call.arguments[0], work), kernel.after(call.path, s, text))
        yield Change(
            kernel.site(call.function, s), f"the scalar unit takes the sum of {call.function.name} away", edits
        )


RESULT_IN_PLACE = Motif(
    name="result-in-place",
    title="A reduction writes its result where it is wanted",
    description="A sum or an extreme value that the scalar unit reads and sets in another tensor: the vector pipe runs "
    "empty, and waits until that is done. The reduction's target is that element.",
    bottlenecks=("scalar round trips", "waits between pipes", "vector barriers", "no overlap"),
    preconditions="Both tensors are of one type; nobody else reads the result where it was.",
    faster=_faster,
    slower=_slower,
)
