"""Buffers: two per queue, held no longer than needed, and no copies between them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from .....sources.cpp import Edit
from ...reading.api import ACCUMULATING, ELEMENTWISE, SCALAR, UNARY, VECTOR, is_barrier, root
from ...reading.declared import global_tensors
from ...reading.kernel_program import ApiCall, Block, BlockStep, KernelProgram
from ..motif import Change, Motif
from ..vectors.choices import copies, made_in_its_branch
from ..vectors.one_element import unread
from .copies_alike import copies_alike
from .copies_within import taken_as_they_are
from .queues import RING
from .rows_per_turn import QUEUE

_QUEUE_OF_ONE = re.compile(rb"([(,]\s*(?:const\s+)?)?\b(?:AscendC::)?TQue\s*<\s*[\w:]+\s*,\s*(1)\s*>")
_INTEGER_PARAMETER = re.compile(r"[<,]\s*(?:u?int\d*(?:_t)?|size_t)\s+(\w+)\s*(?:=\s*(\d+))?\s*(?=[,>])")
_ACQUIRE = re.compile(r"\.\s*(?:template\s+)?(?:AllocTensor|DeQue)\s*<")


# -- double buffering --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _QueueBuffers:
    """``pipe.InitBuffer(queue, number, bytes)``, or ``queue.Begin(number, bytes)`` of a ring (queues.py): the argument
    ``place`` is the number."""

    call: ApiCall
    queue: str
    place: int

    @property
    def number(self) -> str:
        return self.call.args[self.place]


def _queue_buffers(kernel: KernelProgram) -> list[_QueueBuffers]:
    made = [c for c in kernel.named("InitBuffer") if len(c.args) == 3 and kernel.class_of(c.function) != QUEUE]
    queues = [_QueueBuffers(c, c.args[0], 1) for c in made]
    rings = [_QueueBuffers(c, c.receiver, 0) for c in kernel.named("Begin") if c.receiver and len(c.args) == 2]
    return queues + [r for r in rings if _is_ring(kernel, r.queue)]


def _is_ring(kernel: KernelProgram, name: str) -> bool:
    """Is ``name`` declared as a queue that goes round, or as one of rows?"""
    declared = re.compile(rf"\b(?:{RING}|{QUEUE})\s*<[^;]*>[\s\w,]*\b{re.escape(root(name))}\b".encode())
    return any(declared.search(s.data) for s in kernel.program.files.values())


def _single_faster(kernel: KernelProgram) -> Iterator[Change]:
    parameters = _parameters_of_one(kernel)
    single = [q for q in _queue_buffers(kernel) if _is_one(kernel, q, parameters) and not _filled_once(kernel, q)]
    names = {q.number for q in _queue_buffers(kernel)}
    for constant in kernel.constants:
        types = _said_twice(kernel, constant.name) if constant.value == 1 and constant.name in names else None
        if types is not None:
            edits = (Edit(constant.path, constant.start, constant.end, "2"), *types)
            yield Change(f"constant/{constant.name}", f"{constant.name} 1 -> 2: two buffers a queue", edits)
    yield from _numbers(kernel, single, "2", "two buffers")


def _parameters_of_one(kernel: KernelProgram) -> set[str]:
    """Integer parameters of templates that are 1 by default, or have no default."""
    texts = (s.data.decode("utf-8", "replace") for s in kernel.program.files.values())
    found = (m.groups() for text in texts for m in _INTEGER_PARAMETER.finditer(text))
    return {name for name, default in found if default in (None, "1")}


def _is_one(kernel: KernelProgram, made: _QueueBuffers, parameters: set[str]) -> bool:
    """Is the number 1, or a template's parameter that may be: no class is named with another one?

    Nobody can tell what a macro gives that holds the list of parameters.
    """
    if made.number not in parameters:
        return made.number == "1"
    ones = {"1", *(c.name for c in kernel.constants if c.value == 1)}
    return kernel.given(made.call.function, made.number) <= ones


def _said_twice(kernel: KernelProgram, name: str) -> tuple[Edit, ...] | None:
    """Where functions spell the type of a queue with a 1 for the constant, the constant in its place.

    None where other queues have that 1 as well.
    """
    files = kernel.program.files.items()
    if not any(re.search(rb"\bTQue\s*<\s*[\w:]+\s*,\s*%s\s*>" % name.encode(), s.data) for _, s in files):
        return ()
    found = [(path, m) for path, s in files for m in _QUEUE_OF_ONE.finditer(s.data)]
    given = [Edit(path, *m.span(2), name) for path, m in found if m[1]]
    return tuple(given) if not given or len(given) == len(found) else None


def _filled_once(kernel: KernelProgram, made: _QueueBuffers) -> bool:
    """Is the queue's tensor asked for outside of every loop? A second buffer would never be used."""
    queue = made.queue.removeprefix("this->")
    asked = [c for c in kernel.named("AllocTensor") if c.receiver.removeprefix("this->") == queue]
    return bool(asked) and not any(kernel.repeated(c.function, c.node) for c in asked)


def _single_slower(kernel: KernelProgram) -> Iterator[Change]:
    several = {c.name for c in kernel.constants if c.value > 1}
    double = [q for q in _queue_buffers(kernel) if (q.number != "1" if q.number.isdigit() else _may_be_two(q, several))]
    yield from _numbers(kernel, double, "1", "one buffer")


def _may_be_two(queue: _QueueBuffers, several: set[str]) -> bool:
    """Is the number a constant above 1, or something of the tiling data?"""
    return queue.number in several or not re.fullmatch(r"[A-Z_0-9]+", queue.number)


def _numbers(kernel: KernelProgram, queues: list[_QueueBuffers], number: str, what: str) -> Iterator[Change]:
    edits = tuple(kernel.replace(q.call.path, q.call.arguments[q.place], number) for q in queues)
    if len(queues) > 1:
        yield Change("all", f"{what} for each of {len(queues)} queues", edits)
    for q, edit in zip(queues, edits, strict=True):
        yield Change(f"{q.call.function.name}/{q.queue}", f"{what} for {q.queue}", (edit,))


# -- lifetimes ---------------------------------------------------------------------------------------------------------


def _released(step: BlockStep) -> str | None:
    """The tensor that a ``queue.FreeTensor(x)`` gives back."""
    call = step.call
    return root(call.args[0]) if call is not None and call.name == "FreeTensor" and len(call.args) == 1 else None


def _acquired(kernel: KernelProgram, block: Block, step: BlockStep) -> str | None:
    """The tensor that ``LocalTensor<T> x = queue.AllocTensor<T>();`` (or DeQue) declares."""
    if step.node.type != "declaration":
        return None
    text = kernel.text(block.function.path, step.node)
    found = re.match(r"[\w:\s<>,&]*?\b(\w+)\s*=", text)
    return found[1] if found and _ACQUIRE.search(text) else None


def _names_of(kernel: KernelProgram, block: Block, name: str) -> re.Pattern[str]:
    """The tensor's name and those declared from it in the block (views of the same bytes)."""
    names = [name]
    for step in block.steps:
        text = kernel.text(block.function.path, step.node)
        made = re.match(r"[\w:\s<>,&]*?\b(\w+)\s*=", text) if step.node.type == "declaration" else None
        if made and made[1] not in names and re.search(rf"=.*\b(?:{'|'.join(names)})\b", text, re.DOTALL):
            names.append(made[1])
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})\b")


def _lifetime_faster(kernel: KernelProgram) -> Iterator[Change]:
    everything: list[Edit] = []
    singles: list[Change] = []
    for block in kernel.blocks:
        if not kernel.repeated(block.function, block.node):
            continue
        moves = [*_late_frees(kernel, block), *_early_acquisitions(kernel, block)]
        for name, statement, target, after in moves:
            text = kernel.text(block.function.path, statement)
            place = kernel.after if after else kernel.before
            edits = (kernel.delete(block.function.path, statement), place(block.function.path, target, text))
            what = "given back right behind its last use" if after else "asked for right before its first use"
            site = kernel.site(block.function, statement)
            singles.append(Change(site, f"{name} in {block.function.name} is {what}", edits))
            everything += edits
    if len(singles) > 1:
        yield Change("all", f"{len(singles)} tensors held no longer than needed", tuple(everything))
    yield from singles


def _late_frees(kernel: KernelProgram, block: Block) -> Iterator[tuple[str, Node, Node, bool]]:
    for i, step in enumerate(block.steps):
        name = _released(step)
        if name is None:
            continue
        used = _names_of(kernel, block, name)
        texts = [kernel.text(block.function.path, s.node) for s in block.steps[:i]]
        last = max((k for k, text in enumerate(texts) if used.search(text)), default=-1)
        between = [s for s in block.steps[last + 1 : i] if _released(s) is None]
        if last >= 0 and any(_works(s) for s in between):
            yield name, step.node, block.steps[last].node, True


def _early_acquisitions(kernel: KernelProgram, block: Block) -> Iterator[tuple[str, Node, Node, bool]]:
    for i, step in enumerate(block.steps):
        name = _acquired(kernel, block, step)
        if name is None:
            continue
        used = re.compile(rf"\b{name}\b")
        texts = [kernel.text(block.function.path, s.node) for s in block.steps[i + 1 :]]
        first = next((k for k, text in enumerate(texts) if used.search(text)), -1)
        between = block.steps[i + 1 : i + 1 + first]
        if first > 0 and any(_works(s) for s in between):
            yield name, step.node, block.steps[i + 1 + first].node, False


def _works(step: BlockStep) -> bool:
    """Does the statement take time of a pipe? Declarations and releases of other tensors don't."""
    return step.node.type not in ("declaration", "comment") and _released(step) is None


def _lifetime_slower(kernel: KernelProgram) -> Iterator[Change]:
    for block in kernel.blocks:
        if not kernel.repeated(block.function, block.node) or len(block.steps) < 3:
            continue
        last = block.steps[-1].node
        if last.type == "return_statement":
            continue
        for i, step in enumerate(block.steps):
            name = _released(step)
            if name is not None and any(_works(s) for s in block.steps[i + 1 :]):
                text = kernel.text(block.function.path, step.node)
                edits = (kernel.delete(block.function.path, step.node), kernel.after(block.function.path, last, text))
                site = kernel.site(block.function, step.node)
                yield Change(site, f"{name} in {block.function.name} is held until the end", edits)


# -- copies between buffers --------------------------------------------------------------------------------------------


def _is_copy(call: ApiCall | None) -> bool:
    return call is not None and call.statement is not None and copies(call)


def _next_work(block: Block, i: int) -> tuple[int, BlockStep] | None:
    """The first statement behind ``i`` that is no barrier of the vector pipe."""
    for k in range(i + 1, len(block.steps)):
        call = block.steps[k].call
        if call is None or not is_barrier(call, "PIPE_V"):
            return k, block.steps[k]
    return None


def _copied_faster(kernel: KernelProgram) -> Iterator[Change]:
    for block in kernel.blocks:
        for i, step in enumerate(block.steps):
            found = _next_work(block, i)
            if found is None or not _is_copy(step.call) or found[1].call is None:
                continue
            copy, user = step.call, found[1].call
            assert copy is not None
            target, source = copy.args[0], copy.args[1]
            if user.name not in VECTOR or user.args[0] != target or target not in user.args[1:]:
                continue
            path = block.function.path
            edits = [kernel.delete(path, s.node) for s in block.steps[i : found[0]]]
            edits += [kernel.replace(path, n, source) for n in user.arguments[1:] if kernel.text(path, n) == target]
            site = kernel.site(block.function, step.node)
            yield Change(site, f"{user.name} in {block.function.name} reads {source} itself, not a copy", tuple(edits))


def _results_faster(kernel: KernelProgram) -> Iterator[Change]:
    """What an instruction makes and a copy behind it takes elsewhere is made there."""
    outside = global_tensors(kernel)
    for block in kernel.blocks:
        for i, step in enumerate(block.steps):
            copy = step.call
            if copy is None or not _is_copy(copy) or outside & {root(a) for a in copy.args[:2]}:
                continue
            target, source = copy.args[:2]
            made = _maker(kernel, block, i, target, source)
            if made is None or made.args[-1] != copy.args[-1]:
                continue
            edits = (kernel.replace(made.path, made.arguments[0], target), kernel.delete(copy.path, step.node))
            site = kernel.site(block.function, step.node)
            yield Change(f"{site}/made", f"{made.name} in {block.function.name} writes {target} itself", edits)


def _maker(kernel: KernelProgram, block: Block, i: int, target: str, source: str) -> ApiCall | None:
    """The instruction in front of step ``i`` that makes ``source``; None where either is used otherwise in between, or
    ``source`` is used behind the step.
    """
    path = block.function.path
    used = _names_of(kernel, block, root(source))
    taken = re.compile(rf"\b{re.escape(root(target))}\b")
    behind = [s for s in block.steps[i + 1 :] if used.search(kernel.text(path, s.node))]
    if any(_released(s) is None for s in behind) or root(target) == root(source):
        return None
    f = block.function
    if block.node != f.body and not unread(kernel, f, root(source), block.node.end_byte):
        return None
    for step in reversed(block.steps[:i]):
        text = kernel.text(path, step.node)
        call = step.call
        if call is not None and call.name in ELEMENTWISE - ACCUMULATING and call.args[0] == source:
            return call if not taken.search(text) else None
        if used.search(text) or taken.search(text):
            return None
    return None


def _extra_faster(kernel: KernelProgram) -> Iterator[Change]:
    yield from _copied_faster(kernel)
    yield from _results_faster(kernel)
    yield from made_in_its_branch(kernel)
    done = {c.edits[0].start for c in _copied_faster(kernel)}
    yield from (c for c in taken_as_they_are(kernel) if c.edits[0].start not in done)
    yield from copies_alike(kernel)


def _copied_slower(kernel: KernelProgram) -> Iterator[Change]:
    for call in kernel.calls:
        if call.name not in UNARY | SCALAR or call.statement is None or not kernel.repeated(call.function, call.node):
            continue
        if len(call.args) != (3 if call.name in UNARY else 4) or root(call.args[0]) == root(call.args[1]):
            continue
        if _is_copy(call):
            continue
        target, source, count = call.args[0], call.args[1], call.args[-1]
        lines = f"{call.spelled('DataCopy', target, source, count)};\n{kernel.indent(call.path, call.statement)}"
        if not kernel.auto_sync:
            lines += f"PipeBarrier<PIPE_V>();\n{kernel.indent(call.path, call.statement)}"
        start = call.statement.start_byte
        edits = (Edit(call.path, start, start, lines), kernel.replace(call.path, call.arguments[1], target))
        site = kernel.site(call.function, call.statement)
        yield Change(site, f"{call.name} in {call.function.name} works on a copy of {source}", edits)


DOUBLE_BUFFER = Motif(
    name="double-buffer",
    title="Two buffers a queue",
    description="With one buffer a queue the copy of the next tile waits until this tile is computed. With two "
    "(InitBuffer with 2) copies and computation overlap.",
    bottlenecks=("no overlap", "copies", "memory bandwidth", "small copies"),
    preconditions="Twice the queue's bytes fit into UB; the loop takes several tiles.",
    faster=_single_faster,
    slower=_single_slower,
    together="no",
)

BUFFER_LIFETIME = Motif(
    name="buffer-lifetime",
    title="Tensors are held no longer than needed",
    description="FreeTensor right behind the last use lets the next copy start earlier; DeQue and AllocTensor right "
    "before the first use let the work in front of it go on while a copy is under way.",
    bottlenecks=("no overlap", "copies", "scalar round trips"),
    preconditions="Nothing between the two places uses the tensor, under whatever name.",
    faster=_lifetime_faster,
    slower=_lifetime_slower,
)

EXTRA_COPY = Motif(
    name="extra-copy",
    title="Work on the data where they are",
    description="A copy within UB (DataCopy, Adds by 0, Muls by 1) in front of an instruction that could read the "
    "original, or behind one that could write the copy, costs a pass over the data; nearly every vector instruction "
    "takes different source and destination.",
    bottlenecks=("vector", "vector barriers", "short vector instructions"),
    preconditions="Source and copy have the same type; the instruction may read and write different tensors.",
    faster=_extra_faster,
    slower=_copied_slower,
    through_calls=True,
)
