"""Loops: what doesn't change moved out, values kept, the next tile asked for early, long tiles."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from .....sources.cpp import Edit, walk
from ...reading.affine import at
from ...reading.api import ACCUMULATING, COPY, ELEMENTWISE, VECTOR, root, writes
from ...reading.classes import members
from ...reading.counted import counted_loops
from ...reading.declared import global_tensors
from ...reading.kernel_program import ApiCall, Block, BlockStep, KernelProgram
from ..motif import Change, Motif
from .asked_ahead import changes, moved_on
from .carried_values import carried_values
from .kept_elements import kept_elements
from .loads_first import loads_first

_FILLS = frozenset(["CreateVecIndex", "Duplicate"])
_WORD = re.compile(r"[A-Za-z_]\w*")
_QUEUE = re.compile(r"((?:AscendC::)?TQue\s*<\s*[\w:]+\s*,\s*)(\w+)\s*>")


# -- what doesn't change -----------------------------------------------------------------------------------------------


def _varying(kernel: KernelProgram, block: Block, loop: Node) -> set[str]:
    """Names that something in the loop declares, assigns, counts or gives other memory."""
    path, out = block.function.path, set()
    for node in walk(loop):
        if node.type == "assignment_expression":
            left = node.child_by_field_name("left")
            out.add(root(kernel.text(path, left).removeprefix("this->")) if left is not None else "")
        elif node.type == "update_expression":
            out |= set(_WORD.findall(kernel.text(path, node)))
        elif node.type == "call_expression":
            call = kernel.call_at(block.function, node)
            if call.name == "SetGlobalBuffer":  # other memory by the same name
                out.add(root(call.receiver.removeprefix("this->")))
        elif node.type == "declaration":
            out |= {n for n in map(_declared, kernel.text(path, node).split(";")) if n}
    return out


def _declared(text: str) -> str:
    found = re.match(r"[\w:\s<>,&*]*?\b(\w+)\s*(?:=|\{|\(|$)", text)
    return found[1] if found else ""


def _loads(kernel: KernelProgram, step: BlockStep, tensors: set[str]) -> bool:
    """An instruction that fills, loads or makes a tensor out of others, or a call of the kernel's own that is given a
    GlobalTensor.
    """
    call = step.call
    if call is None or call.receiver or len(call.args) < 2:
        return False
    if call.name in COPY | _FILLS:
        return True
    if call.name in ELEMENTWISE - ACCUMULATING:
        return root(call.args[0]) not in map(root, call.args[1:])
    return call.name in {f.name for f in kernel.functions} and any(root(a) in tensors for a in call.args)


def _reads_value(kernel: KernelProgram, block: Block, step: BlockStep) -> str | None:
    """The variable of ``T v = x.GetValue(i);``."""
    text = kernel.text(block.function.path, step.node)
    found = re.fullmatch(r"(?:const\s+)?\w+\s+(\w+)\s*=\s*[\w.>-]+\.GetValue\([^;]*\)\s*;", text)
    return found[1] if step.node.type == "declaration" and found else None


def _invariant_faster(kernel: KernelProgram) -> Iterator[Change]:
    tensors = global_tensors(kernel)
    for block in kernel.blocks:
        loop = block.node.parent
        if loop is None or loop.type not in ("for_statement", "while_statement") or loop.parent is None:
            continue
        if loop.parent.type != "compound_statement":
            continue
        path = block.function.path
        varying = _varying(kernel, block, loop)
        for i, step in enumerate(block.steps):
            value = _reads_value(kernel, block, step)
            if value is None and not _loads(kernel, step, tensors):
                continue
            text = kernel.text(path, step.node)
            names = set(_WORD.findall(text))
            if names & (varying - {value}) or _touched(kernel, block, step, i, tensors):
                continue
            edits = (kernel.delete(path, step.node), kernel.before(path, loop, text))
            change = f"{_title(text)} of {block.function.name} moved out of the loop"
            yield Change(kernel.site(block.function, step.node), change, edits)


def _touched(kernel: KernelProgram, block: Block, step: BlockStep, i: int, tensors: set[str]) -> bool:
    """Does another statement of the loop's body write what this one writes, or what it reads?"""
    if step.call is not None:
        mine = {root(a) for a in step.call.args if root(a) not in tensors}
    else:
        mine = {root(kernel.text(block.function.path, step.node).partition("=")[2].strip())}
    own = {f.name for f in kernel.functions}
    for k, other in enumerate(block.steps):
        if k == i:
            continue
        for node in walk(other.node):
            if node.type != "call_expression":
                continue
            call = kernel.call_at(block.function, node)
            written = writes(call) if call.name in VECTOR | COPY else frozenset[str]()
            if call.name in own or call.name in ("EnQue", "FreeTensor", "SetValue", "DeQue"):
                written |= {root(a) for a in call.args} | {root(call.receiver)}
            if written & mine:
                return True
    return False


def _invariant_slower(kernel: KernelProgram) -> Iterator[Change]:
    tensors = global_tensors(kernel)
    for block in kernel.blocks:
        for i, step in enumerate(block.steps):
            if step.node.type not in ("for_statement", "while_statement"):
                continue
            body = step.node.child_by_field_name("body")
            if body is None or body.type != "compound_statement" or not body.named_children:
                continue
            path = block.function.path
            varying = _varying(kernel, block, step.node)
            for before in block.steps[max(0, i - 4) : i]:
                text = kernel.text(path, before.node)
                if not _loads(kernel, before, tensors) or set(_WORD.findall(text)) & varying:
                    continue
                edits = (kernel.delete(path, before.node), kernel.before(path, body.named_children[0], text))
                change = f"{_title(text)} of {block.function.name} done again in every turn of the loop"
                yield Change(kernel.site(block.function, before.node), change, edits)


def _title(text: str) -> str:
    return text.partition("(")[0].split("=")[0].strip()


# -- values that are read again ----------------------------------------------------------------------------------------


def _value_reads(kernel: KernelProgram, block: Block, step: BlockStep) -> list[tuple[str, Node]]:
    path = block.function.path
    nested = [n for n in walk(step.node) if n.type == "call_expression"]
    calls = [kernel.call_at(block.function, n) for n in nested]
    return [(kernel.text(path, c.node), c.node) for c in calls if c.name == "GetValue" and c.receiver]


def _value_faster(kernel: KernelProgram) -> Iterator[Change]:
    for block in kernel.blocks:
        if not kernel.repeated(block.function, block.node):
            continue
        path = block.function.path
        taken = set(_WORD.findall(kernel.text(path, block.function.node)))
        runs: dict[str, list[tuple[BlockStep, Node]]] = {}
        for step in block.steps:
            if step.node.type not in ("expression_statement", "declaration"):
                yield from _kept(kernel, block, runs, taken)
                yield from _in_condition(kernel, block, step, taken)
                runs = {}
                continue
            for text, node in _value_reads(kernel, block, step):
                runs.setdefault(text, []).append((step, node))
            call = step.call
            if call is not None and call.name in VECTOR | COPY | {"SetValue", "DeQue", "WaitFlag", "SyncAll"}:
                written = writes(call) | {root(call.receiver)} if call.receiver else writes(call)
                for text in [t for t in runs if root(t) in written]:
                    yield from _kept(kernel, block, {text: runs.pop(text)}, taken)
        yield from _kept(kernel, block, runs, taken)
    yield from kept_elements(kernel)
    yield from carried_values(kernel)


def _kept(
    kernel: KernelProgram, block: Block, runs: dict[str, list[tuple[BlockStep, Node]]], taken: set[str]
) -> Iterator[Change]:
    path = block.function.path
    for text, places in runs.items():
        if len(places) < 2:
            continue
        names = set(_WORD.findall(text))
        changed = {_declared(kernel.text(path, s.node)) for s, _ in places[:1] if s.node.type == "declaration"}
        if names & changed:
            continue
        name = next(n for n in (f"value{i}" for i in range(len(taken) + 1)) if n not in taken)
        edits = [kernel.before(path, places[0][0].node, f"const auto {name} = {text};")]
        edits += [kernel.replace(path, node, name) for _, node in places]
        site = f"{kernel.site(block.function, places[0][0].node)}/{text[:40]}"
        yield Change(site, f"{text} in {block.function.name} read once instead of {len(places)} times", tuple(edits))


def _in_condition(kernel: KernelProgram, block: Block, step: BlockStep, taken: set[str]) -> Iterator[Change]:
    """Values that a condition reads and what it decides on reads again; of a condition that reads them in any case."""
    condition = step.node.child_by_field_name("condition") if step.node.type == "if_statement" else None
    if condition is None or re.search(r"&&|\|\||\?", kernel.text(block.function.path, condition)):
        return
    asked = {kernel.text(block.function.path, n) for n in walk(condition) if n.type == "call_expression"}
    written, changed = _written_in(kernel, block, step.node), _varying(kernel, block, step.node)
    runs: dict[str, list[tuple[BlockStep, Node]]] = {}
    for text, node in _value_reads(kernel, block, step):
        if text in asked and root(text) not in written and not set(_WORD.findall(text)) & changed:
            runs.setdefault(text, []).append((step, node))
    yield from _kept(kernel, block, runs, taken)


def _written_in(kernel: KernelProgram, block: Block, node: Node) -> set[str]:
    """Names of tensors that calls below a node may write; those given to the kernel's own functions are among them."""
    own, out = {f.name for f in kernel.functions}, set[str]()
    for call in (kernel.call_at(block.function, n) for n in walk(node) if n.type == "call_expression"):
        if call.name in VECTOR | COPY:
            out |= writes(call)
        elif call.name in own or call.name in ("SetValue", "DeQue", "AllocTensor", "FreeTensor"):
            out |= {root(a) for a in call.args} | {root(call.receiver)}
    return out


def _value_slower(kernel: KernelProgram) -> Iterator[Change]:
    for block in kernel.blocks:
        if not kernel.repeated(block.function, block.node):
            continue
        path = block.function.path
        for i, step in enumerate(block.steps):
            name = _reads_value(kernel, block, step)
            if name is None:
                continue
            value = kernel.text(path, step.node).partition("=")[2].strip().removesuffix(";")
            uses = [
                n
                for later in block.steps[i + 1 :]
                for n in walk(later.node)
                if n.type == "identifier" and kernel.text(path, n) == name
            ]
            if len(uses) < 2:
                continue
            edits = (kernel.delete(path, step.node), *(kernel.replace(path, n, value) for n in uses))
            change = f"{name} in {block.function.name} read anew at each of {len(uses)} uses"
            yield Change(kernel.site(block.function, step.node), change, edits)


# -- the next tile asked for early -------------------------------------------------------------------------------------


def _fetchers(kernel: KernelProgram) -> set[str]:
    """The kernel's own functions that only copy in: they enqueue and take nothing from a queue."""
    calls: dict[str, set[str]] = {}
    for c in kernel.calls:
        calls.setdefault(c.function.name, set()).add(c.name)
    queues = {"AllocTensor", "DeQue", "EnQue", "FreeTensor"}
    copies = COPY | {f for f, names in calls.items() if names & COPY and not names & (queues | VECTOR)}
    return {f for f, names in calls.items() if "EnQue" in names and names & copies and "DeQue" not in names}


def _ones(kernel: KernelProgram) -> set[str]:
    return {"1", *(c.name for c in kernel.constants if c.value == 1)}


def _deeper(kernel: KernelProgram, fetcher: str) -> Iterator[Edit]:
    """The queues that the function puts tiles into hold two: the next one is put in before the last one is taken."""
    given = {root(c.receiver) for c in kernel.named("EnQue") if c.function.name == fetcher}
    for queue in members(kernel, _QUEUE):
        if queue.found[2] in _ones(kernel) and given.intersection(queue.names):
            yield kernel.replace(queue.path, queue.type, f"{queue.found[1]}2>")


def _with_room(kernel: KernelProgram) -> set[str]:
    """Those whose queues may have a second buffer: one tile is still held when the next is asked for."""
    ones = _ones(kernel)
    made: dict[str, set[str]] = {}
    for c in kernel.named("InitBuffer"):
        if len(c.args) == 3:
            made.setdefault(root(c.args[0]), set()).add(c.args[1])
    single = {queue for queue, numbers in made.items() if numbers <= ones}
    return _fetchers(kernel) - {c.function.name for c in kernel.named("AllocTensor") if root(c.receiver) in single}


def _early_faster(kernel: KernelProgram) -> Iterator[Change]:
    fetchers, anyone = _with_room(kernel), _fetchers(kernel)
    moved = moved_on(kernel, anyone)
    for loop in counted_loops(kernel):
        if (loop.block.function.path, loop.node.start_byte) in moved:
            continue
        steps, path = loop.block.steps, loop.block.function.path
        index = next((i for i, s in enumerate(steps) if s.node.type != "declaration"), len(steps))
        fetch = [s for s in steps if s.call is not None and s.call.name in fetchers]
        if len(fetch) != 1 or index >= len(steps) - 1 or steps[index] is not fetch[0]:
            continue
        if loop.node.parent is None or loop.node.parent.type != "compound_statement":
            continue
        ahead = [kernel.text(path, s.node) for s in steps[: index + 1]]
        later = [at(text, loop.name, f"{loop.name} + {loop.step}") for text in ahead]
        head = f"{loop.type} {loop.name} = {loop.first};"
        start = f"if ({loop.first} < {loop.bound}) {{ {head} {' '.join(ahead)} }}"
        inside = f"if ({loop.name} + {loop.step} < {loop.bound}) {{ {' '.join(later)} }}"
        name = fetch[0].call.name if fetch[0].call else ""
        issued = (kernel.before(path, loop.node, start), kernel.replace(path, fetch[0].node, inside))
        edits = (*issued, *_deeper(kernel, name))
        site = f"{loop.block.function.name}/{name}"
        yield Change(site, f"{loop.block.function.name} asks for the next tile before it works on this one", edits)
    yield from changes(kernel, anyone, anyone - fetchers)
    yield from loads_first(kernel, anyone, anyone - fetchers)


def _early_slower(kernel: KernelProgram) -> Iterator[Change]:
    fetchers = _fetchers(kernel)
    for block in kernel.blocks:
        for first, loop in zip(block.steps, block.steps[1:], strict=False):
            body = loop.node.child_by_field_name("body") if loop.node.type == "for_statement" else None
            call = _guarded(kernel, block, first.node, fetchers)
            if body is None or call is None:
                continue
            inner = [n for n in body.named_children if _guarded(kernel, block, n, {call.name}) is not None]
            if len(inner) != 1:
                continue
            path = block.function.path
            text = kernel.text(path, call.node)
            edits = (kernel.delete(path, first.node), kernel.replace(path, inner[0], f"{text};"))
            site = f"{block.function.name}/{call.name}"
            yield Change(site, f"{block.function.name} asks for a tile when it needs it", edits)


def _guarded(kernel: KernelProgram, block: Block, node: Node, names: set[str]) -> ApiCall | None:
    """The call that closes ``if (...) { declarations; call }``."""
    branch = node.child_by_field_name("consequence") if node.type == "if_statement" else None
    if branch is None or not branch.named_children or node.child_by_field_name("alternative") is not None:
        return None
    call = kernel.call_of(block.function, branch.named_children[-1])
    return call if call is not None and call.name in names else None


# -- long tiles --------------------------------------------------------------------------------------------------------

_HALF = re.compile(r"\((.*)\)\s*/\s*2\s*\+\s*\(\1\)\s*%\s*2", re.DOTALL)


def _tile_values(kernel: KernelProgram) -> Iterator[tuple[str, list[tuple[str, Node]]]]:
    """(name of a loop's step, the expressions it is set to)."""
    seen = set()
    for loop in counted_loops(kernel):
        name = loop.step.removeprefix("this->")
        if not re.fullmatch(r"[A-Za-z_]\w*", name) or name in seen:
            continue
        seen.add(name)
        values = []
        for f in kernel.functions:
            for node in walk(f.body):
                left = node.child_by_field_name("left" if node.type == "assignment_expression" else "declarator")
                right = node.child_by_field_name("right" if node.type == "assignment_expression" else "value")
                if node.type not in ("assignment_expression", "init_declarator") or left is None or right is None:
                    continue
                if kernel.text(f.path, left).removeprefix("this->") == name:
                    values.append((f.path, right))
        if values:
            yield name, values


def _tile_faster(kernel: KernelProgram) -> Iterator[Change]:
    for name, values in _tile_values(kernel):
        halves = [(p, n, _HALF.fullmatch(kernel.text(p, n))) for p, n in values]
        if all(h for _, _, h in halves):
            edits = tuple(kernel.replace(p, n, h[1]) for p, n, h in halves if h)
            yield Change(f"{name}/whole", f"{name} is no longer halved", edits)
        elif not any("* 2" in kernel.text(p, n) for p, n in values):
            edits = tuple(kernel.replace(p, n, f"({kernel.text(p, n)}) * 2") for p, n in values)
            yield Change(f"{name}/double", f"{name} doubled", edits)


def _tile_slower(kernel: KernelProgram) -> Iterator[Change]:
    for name, values in _tile_values(kernel):
        texts = [kernel.text(p, n) for p, n in values]
        if any(_HALF.fullmatch(t) or (t.strip().isdigit() and int(t) < 2) for t in texts):
            continue
        halves = [f"({t}) / 2 + ({t}) % 2" for t in texts]
        edits = tuple(Edit(p, n.start_byte, n.end_byte, h) for (p, n), h in zip(values, halves, strict=True))
        yield Change(f"{name}/half", f"{name} halved: twice as many turns", edits)


LOOP_INVARIANT = Motif(
    name="loop-invariant",
    title="What doesn't change is done once",
    description="A constant tensor filled, a parameter loaded or cast, or a value read in every turn of a loop, though "
    "nothing it depends on changes there, is moved in front of the loop.",
    bottlenecks=("vector", "copies", "small copies", "scalar", "scalar round trips", "memory bandwidth"),
    preconditions="Nothing else in the loop writes the tensor; it stays allocated over all turns.",
    faster=_invariant_faster,
    slower=_invariant_slower,
)

KEPT_VALUE = Motif(
    name="kept-value",
    title="A value is read once",
    description="GetValue takes the scalar unit 10 cycles from UB and hundreds from GM when the line isn't cached; a "
    "value that is used again belongs into a variable, also over the turns of a loop that reads and sets it each time, "
    "or whose next turn begins with what this one ends with.",
    bottlenecks=("scalar", "scalar round trips"),
    preconditions="Nothing writes the element between the reads.",
    faster=_value_faster,
    slower=_value_slower,
)

EARLY_FETCH = Motif(
    name="early-fetch",
    title="The next tile is asked for before this one is computed",
    description="Where the scalar unit waits for a result (GetValue, a flag), it issues nothing, and where it has "
    "loads and products to issue, nothing else. A copy of the next tile that was issued before overlaps with that.",
    bottlenecks=("scalar round trips", "no overlap", "scalar", "waits between pipes"),
    preconditions="The queue has two buffers, or room for a second one; copying in does nothing but copy, and what it "
    "goes by in the next turn is known in this one.",
    faster=_early_faster,
    slower=_early_slower,
    together="no",
)

TILE_LENGTH = Motif(
    name="tile-length",
    title="Long tiles",
    description="Every turn of a loop pays instruction heads, barriers and queue operations. Longer tiles pay them "
    "less often, as far as UB allows.",
    bottlenecks=("short vector instructions", "small copies", "vector barriers", "scalar", "copies"),
    preconditions="All buffers of the longer tile fit into UB.",
    faster=_tile_faster,
    slower=_tile_slower,
    together="no",
)
