"""What nobody reads isn't made, and what nobody needs isn't loaded.

1. An instruction whose whole target the next one writes anew is left out.
2. Zeros made of a tensor, ``x - x`` or ``x * 0``, are filled in; a queue's tile that was loaded for it alone isn't.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from .....sources.cpp import Edit, Function
from ...reading.api import ACCUMULATING, ELEMENTWISE, UNARY, root
from ...reading.declared import local_types
from ...reading.kernel_program import ApiCall, Block, KernelProgram, siblings
from ..motif import Change, Motif

_WORD = re.compile(r"[A-Za-z_]\w*")
_VIEW = re.compile(r"[\w:\s<>,&]*?\b(\w+)\s*=\s*([A-Za-z_][\w.]*)")
_NOUGHT = re.compile(r"(?:\([\w:]+\)|static_cast<[\w:]+>|[A-Za-z]\w*)?\(?0(?:\.0*)?[fF]?\)?")
_ASKS = re.compile(r"=\s*(?:this->)?(\w+)\s*\.\s*(?:template\s+)?DeQue\s*<[^;]*;")


def _whole(call: ApiCall) -> bool:
    """Is it an elementwise instruction in its count form that writes its target and doesn't read it?"""
    count = {"Duplicate": 3, "Cast": 4}.get(call.name, 3 if call.name in UNARY else 4)
    written = call.name in ELEMENTWISE - ACCUMULATING and len(call.args) == count
    return written and "," not in call.template.replace("<T, T>", "")


# -- written twice -----------------------------------------------------------------------------------------------------


def _aliases(kernel: KernelProgram, f: Function, name: str) -> set[str]:
    """Names of tensors of the function that are made of the same tensor or buffer as ``name``, itself included."""
    made = {m[1]: root(m[2]) for n in f.body.named_children if (m := _VIEW.match(kernel.text(f.path, n)))}
    source = made.get(name, name)
    return {name, source, *(n for n, of in made.items() if of in (name, source))}


def _written_anew(kernel: KernelProgram, block: Block, i: int, call: ApiCall) -> bool:
    """Does an instruction behind step ``i`` write the whole target before anything can read it?"""
    target, count = call.args[0], call.args[-1]
    own = _aliases(kernel, block.function, root(target))
    for step in block.steps[i + 1 :]:
        names = set(_WORD.findall(kernel.text(block.function.path, step.node)))
        if step.call is None and step.node.type != "comment":
            return False
        if own.isdisjoint(names):
            continue
        later = step.call
        if later is None or not _whole(later) or later.args[0] != target or later.args[-1] != count:
            return False
        others = set(_WORD.findall(" ".join(later.args[1:])))
        return own.isdisjoint(others) and not _given_twice(kernel, block.function, own, others)
    return False


def _given_twice(kernel: KernelProgram, f: Function, own: set[str], others: set[str]) -> bool:
    """May a caller give one tensor for a parameter of each set?"""
    places = [[i for i, p in enumerate(f.parameters) if p in names] for names in (own, others)]
    if not all(places):
        return False
    calls = [c for c in kernel.named(f.name) if len(c.args) == len(f.parameters)]
    return not calls or any(root(c.args[i]) == root(c.args[j]) for c in calls for i in places[0] for j in places[1])


def _dead_writes(kernel: KernelProgram) -> Iterator[Change]:
    for block in kernel.blocks:
        for i, step in enumerate(block.steps):
            call = step.call
            if call is None or not _whole(call) or not _written_anew(kernel, block, i, call):
                continue
            site = kernel.site(block.function, step.node)
            change = f"{call.name} in {block.function.name}, whose result is written over, left out"
            yield Change(site, change, (kernel.delete(block.function.path, step.node),))


# -- zeros of what was loaded ------------------------------------------------------------------------------------------


def _zeros(kernel: KernelProgram) -> Iterator[Change]:
    for call in kernel.named("Sub", "Muls"):
        s = call.statement
        if s is None or len(call.args) != 4 or root(call.args[0]) == root(call.args[1]):
            continue
        nothing = call.args[1] == call.args[2] if call.name == "Sub" else _NOUGHT.fullmatch(call.args[2]) is not None
        kind = local_types([kernel.text(call.path, call.function.node)]).get(root(call.args[0]))
        unloaded = _unloaded(kernel, call) if nothing and kind is not None else ()
        if unloaded:
            text = call.spelled("Duplicate", call.args[0], f"static_cast<{kind}>(0)", call.args[3])
            change = f"zeros of {call.function.name} filled in, nothing loaded for them"
            edits = (kernel.replace(call.path, s, f"{text};"), *unloaded)
            yield Change(f"{kernel.site(call.function, s)}/zeros", change, edits)


def _unloaded(kernel: KernelProgram, call: ApiCall) -> tuple[Edit, ...]:
    """The edits that leave out the load of what the call alone reads; none where anything else needs it."""
    f, source = call.function, call.args[1]
    own = [n for n in f.body.named_children if source in _WORD.findall(kernel.text(f.path, n))]
    asked = next((m for n in own if (m := _ASKS.search(kernel.text(f.path, n))) and n.type == "declaration"), None)
    rest = [n for n in own if n.type != "declaration" and n != call.statement]
    freed = [n for n in rest if (c := kernel.call_of(f, n)) is not None and c.name == "FreeTensor"]
    if asked is None or len(own) != 3 or len(freed) != 1 or len(rest) != 1:
        return ()
    loads = _loads(kernel, f, asked[1])
    if not loads:
        return ()
    gone = [n for n in own if n != call.statement]
    return (*(kernel.delete(f.path, n) for n in gone), *(kernel.delete(path, n) for path, n in loads))


def _loads(kernel: KernelProgram, f: Function, queue: str) -> list[tuple[str, Node]]:
    """The call in front of each call of ``f`` that loads the queue's tile and does nothing else; nothing if any is not.

    ``f``'s class has one function of the name, and one that loads.
    """
    out: list[tuple[str, Node]] = []
    for call in kernel.named(f.name):
        if call.statement is None or kernel.class_of(call.function) != kernel.class_of(f):
            return []
        before = [n for n in siblings(call.statement) if n.start_byte < call.statement.start_byte]
        load = kernel.call_of(call.function, before[-1]) if before else None
        if load is None or load.receiver not in ("", "this") or not _only_loads(kernel, f, load.name, queue):
            return []
        out.append((call.path, before[-1]))
    return out


def _only_loads(kernel: KernelProgram, f: Function, name: str, queue: str) -> bool:
    """Does the one function of that name in the class put a tile into the queue, and nothing else?"""
    found = [g for g in kernel.functions if g.name == name and kernel.class_of(g) == kernel.class_of(f)]
    if len(found) != 1:
        return False
    calls = [c for c in kernel.calls_of(found[0]) if c.name in ("AllocTensor", "EnQue")]
    given = {c.receiver.removeprefix("this->") for c in calls}
    others = {c.name for c in kernel.calls_of(found[0])} - {"AllocTensor", "EnQue", "DataCopy", "DataCopyPad"}
    return given == {queue} and not others


# -- both directions ---------------------------------------------------------------------------------------------------


def _faster(kernel: KernelProgram) -> Iterator[Change]:
    yield from _dead_writes(kernel)
    yield from _zeros(kernel)


def _slower(kernel: KernelProgram) -> Iterator[Change]:
    """An instruction done twice: the first result is written over."""
    for call in kernel.calls:
        s = call.statement
        if s is None or s.parent is None or s.parent.type != "compound_statement" or not _whole(call):
            continue
        if not kernel.repeated(call.function, call.node) or root(call.args[0]) in map(root, call.args[1:]):
            continue
        change = f"{call.name} in {call.function.name} done twice"
        yield Change(kernel.site(call.function, s), change, (kernel.before(call.path, s, kernel.text(call.path, s)),))


UNREAD_RESULTS = Motif(
    name="unread-results",
    title="What nobody reads isn't made",
    description="An instruction whose whole target is written anew before anybody reads it costs a pass over the data; "
    "zeros as x - x or x * 0 cost a load of x besides.",
    bottlenecks=("vector", "memory bandwidth", "copies", "short vector instructions", "vector barriers"),
    preconditions="No other name is one of the target's bytes; zeros for infinite x, which x - x isn't, are what is "
    "meant.",
    faster=_faster,
    slower=_slower,
    through_calls=True,
)
