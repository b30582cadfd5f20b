"""A store that the next load waits for in its own turn: waited for one turn later, while the next tile is loaded.

``SetFlag<MTE3_MTE2>; WaitFlag<MTE3_MTE2>`` at the end of a turn keeps the next tile's copy in behind this tile's copy
out. Where tiles take turns between two buffers, the copy in has to stay behind the copy out of the turn before only:
the flag of this turn is set, that of the turn before is waited for, with an event id for odd and one for even turns.
What is under way at the end is waited for behind the loop, or where the object that holds the count ends.

A queue of two buffers takes turns already. A TBuf that is taken anew in each turn is made two halves. Where flags for
two halves are there, but set and waited for again for each row, they stand around the loop over rows (flags_around.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tree_sitter import Node

from .....sources.cpp import Edit, Function, walk
from ...reading.api import COPY, root
from ...reading.declared import global_tensors
from ...reading.kernel_program import ApiCall, Block, KernelProgram, loops_around
from ..motif import Change, Motif
from .flags import pairs
from .flags_around import set_once

_MEANT = "HardEvent::MTE3_MTE2"
_FLAG = "AscendC::HardEvent::MTE3_MTE2"
_COUNT, _IDS = "storesUnderWay", "storeDone"
_NEW = f"static_cast<event_t>(AscendC::GetTPipePtr()->AllocEventID<{_FLAG}>())"
_BEFORE = f"AscendC::WaitFlag<{_FLAG}>({_IDS}[({_COUNT} + 1) % 2]);"
_GIVE_BACK = " ".join(f"AscendC::GetTPipePtr()->ReleaseEventID<{_FLAG}>({_IDS}[{i}]);" for i in (0, 1))
_TAKEN = re.compile(r"(LocalTensor\s*<[^=;]*>\s*|auto\s+)(\w+)\s*=\s*((?:this->)?\w+)\s*\.\s*(?:template\s+)?Get\s*<")
_LARGE = 1 << 15  # bytes of a buffer that are a share of UB rather than of a row
_BLOCK = 32  # bytes

_Pair = tuple[Block, Node, Node]


def _stores(kernel: KernelProgram) -> Iterator[tuple[Function, list[_Pair]]]:
    """By function: pairs behind a copy that make the next load wait for the store of the same turn."""
    found: dict[tuple[str, int], tuple[Function, list[_Pair]]] = {}
    for block, set_flag, wait_flag, event in pairs(kernel):
        f = block.function
        copied = (c.name in COPY and c.node.start_byte < set_flag.start_byte for c in kernel.calls_of(f))
        if event == _MEANT and _COUNT not in kernel.text(f.path, f.node) and any(copied):
            found.setdefault((f.path, f.node.start_byte), (f, []))[1].append((block, set_flag, wait_flag))
    yield from found.values()


def _faster(kernel: KernelProgram) -> Iterator[Change]:
    in_class: dict[tuple[str, int], tuple[Node, str, list[_Pair]]] = {}
    for f, found in _stores(kernel):
        by_loop: dict[int, tuple[Node, list[_Pair]]] = {}
        for pair in found:
            around = loops_around(pair[0].node, f)
            if around:
                by_loop.setdefault(around[-1].start_byte, (around[-1], []))[1].append(pair)
            elif (holder := _class(kernel, f)) is not None:
                path, node = holder
                in_class.setdefault((path, node.start_byte), (node, f.name, []))[2].append(pair)
        for loop, mine in by_loop.values():
            yield from _in_loop(kernel, f, loop, mine)
    for (path, _), (node, name, mine) in in_class.items():
        yield from _in_class(kernel, path, node, name, mine)
    yield from set_once(kernel)


def _deferred(kernel: KernelProgram, found: Sequence[_Pair], first: str) -> list[Edit]:
    """The flag of this turn set, that of the turn before waited for; ``first``: what the first turn does besides."""
    edits = []
    for block, set_flag, wait_flag in found:
        lines = [f"AscendC::SetFlag<{_FLAG}>({_IDS}[{_COUNT} % 2]);", f"if ({_COUNT} > 0) {{ {_BEFORE} }}"]
        lines = [*([first] if first else []), *lines, f"{_COUNT}++;"]
        text = f"\n{kernel.indent(block.function.path, set_flag)}".join(lines)
        edits.append(kernel.replace(block.function.path, set_flag, text))
        if wait_flag != set_flag:
            edits.append(kernel.delete(block.function.path, wait_flag))
    return edits


def _in_loop(kernel: KernelProgram, f: Function, loop: Node, found: Sequence[_Pair]) -> Iterator[Change]:
    """Counted by a variable of the function that has the loop."""
    if loop.parent is None or loop.parent.type != "compound_statement":
        return
    if any(n.type in ("return_statement", "goto_statement") for n in walk(loop)):
        return
    edits = _deferred(kernel, found, "")
    edits.append(kernel.before(f.path, loop, f"uint32_t {_COUNT} = 0; event_t {_IDS}[2] = {{{_NEW}, {_NEW}}};"))
    end = f"if ({_COUNT} > 0) {{ {_BEFORE} }} {_GIVE_BACK}"
    edits.append(kernel.after(f.path, loop, end))
    title = f"the copy out of {f.name} is waited for one turn later"
    site = f"{f.name}@{len(found)}"
    yield Change(site, title, tuple(edits))
    halves = _halves(kernel, found)
    if halves:
        yield Change(f"{site}/halves", f"{title}; its buffer made two", (*edits, *halves))


def _halves(kernel: KernelProgram, found: Sequence[_Pair]) -> list[Edit]:
    """Each TBuf taken in a turn made two, as long as it was; a named share of UB in its length is halved for that."""
    taken = list(_taken(kernel, found))
    buffers = {match[3].removeprefix("this->") for _, _, match in taken}
    lengths = [c for c in kernel.named("InitBuffer") if len(c.args) == 2 and c.args[0] in buffers]
    if not taken or {c.args[0] for c in lengths} != buffers:
        return []
    edits = [kernel.replace(path, step, _half(match, kernel.text(path, step))) for path, step, match in taken]
    words = {w for c in lengths for w in re.findall(r"\w+", c.args[1])}
    shares = [c for c in kernel.constants if c.name in words and c.value >= _LARGE]
    edits += [kernel.replace(c.path, c.arguments[1], f"2 * ({c.args[1]})") for c in lengths]
    return [*edits, *(Edit(c.path, c.start, c.end, str(c.value // 2 // _BLOCK * _BLOCK)) for c in shares)]


def _taken(kernel: KernelProgram, found: Sequence[_Pair]) -> Iterator[tuple[str, Node, re.Match[str]]]:
    """Declarations of tensors that are a whole TBuf, in the blocks of the pairs."""
    for path, step in ((pair[0].function.path, step.node) for pair in found for step in pair[0].steps):
        match = _TAKEN.match(kernel.text(path, step)) if step.type == "declaration" else None
        if match is not None:
            yield path, step, match


def _half(taken: re.Match[str], declaration: str) -> str:
    """The declaration of a tensor as one half of a buffer, in turn."""
    kind, name = taken[1], taken[2]
    start = f"{_COUNT} % 2 * ({name}Both.GetSize() / 2 / {_BLOCK} * {_BLOCK})"
    return f"auto {name}Both = {declaration.partition('=')[2].strip()} {kind}{name} = {name}Both[{start}];"


def _class(kernel: KernelProgram, f: Function) -> tuple[str, Node] | None:
    """The class of a method, where it has no destructor and nothing of this motif."""
    found = kernel.class_node(f)
    text = kernel.text(*found) if found is not None else "~"
    return None if "~" in text or _COUNT in text else found


def _in_class(kernel: KernelProgram, path: str, holder: Node, name: str, found: Sequence[_Pair]) -> Iterator[Change]:
    """Counted by a member: the function is called once a turn."""
    title, body = holder.child_by_field_name("name"), holder.child_by_field_name("body")
    if title is None or body is None:
        return
    first = f"if ({_COUNT} == 0) {{ {_IDS}[0] = {_NEW}; {_IDS}[1] = {_NEW}; }}"
    edits = _deferred(kernel, found, first)
    called = kernel.text(path, title).partition("<")[0].strip()
    members = (
        f"\nprivate:\n    uint32_t {_COUNT} = 0;\n    event_t {_IDS}[2];\n"
        f"public:\n    __aicore__ inline ~{called}() {{ if ({_COUNT} > 0) {{ {_BEFORE} {_GIVE_BACK} }} }}\n"
    )
    kept = "private:\n" if holder.type == "class_specifier" else ""
    edits.append(Edit(path, body.start_byte + 1, body.start_byte + 1, members + kept))
    change = f"the copy out of {name} is waited for one turn later"
    yield Change(f"{called}::{name}@{len(found)}", change, tuple(edits))


def _slower(kernel: KernelProgram) -> Iterator[Change]:
    """Each store of repeated code waited for in its own turn."""
    outside = global_tensors(kernel)
    for call in kernel.calls:
        if call.name not in COPY or not call.args or root(call.args[0].removeprefix("this->")) not in outside:
            continue
        statement = call.statement
        if statement is None or statement.parent is None or statement.parent.type != "compound_statement":
            continue
        if kernel.repeated(call.function, call.node) and not _waited(kernel, call):
            name = "storeEvent"
            lines = [
                f"event_t {name} = static_cast<event_t>(AscendC::GetTPipePtr()->FetchEventID({_FLAG}));",
                f"AscendC::SetFlag<{_FLAG}>({name});",
                f"AscendC::WaitFlag<{_FLAG}>({name});",
            ]
            text = f"\n{kernel.indent(call.path, statement)}".join(lines)
            site = kernel.site(call.function, statement)
            change = f"the copy out of {call.function.name} is waited for at once"
            yield Change(site, change, (kernel.after(call.path, statement, text),))


def _waited(kernel: KernelProgram, call: ApiCall) -> bool:
    text = kernel.text(call.path, call.function.node)
    return "MTE3_MTE2" in text or "storeEvent" in text


DEFERRED_WAIT = Motif(
    name="deferred-wait",
    title="The copy out is waited for one turn later",
    description="A flag from MTE3 to MTE2 that is set and waited for in the same turn keeps the next copy in behind "
    "this copy out, and two buffers never overlap. With an event for odd and one for even turns the copy in "
    "waits for the copy out of the turn before only. Flags that a loop over rows sets anew for each row, and waits for "
    "at its end, are set and waited for once around it.",
    bottlenecks=("no overlap", "copies", "small copies", "memory bandwidth", "vector", "scalar round trips"),
    preconditions="Tiles take turns between two buffers: a queue's, or the halves of one.",
    faster=_faster,
    slower=_slower,
    together="no",
)
