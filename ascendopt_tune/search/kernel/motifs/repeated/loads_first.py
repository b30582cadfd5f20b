"""Functions that load a tile and go on with it, taken apart: the loads first, so that a loop can ask for them early.

1. A function begins by calling those that copy in, or by taking tensors from queues, copying into them and giving them
   on. What it does with the tile comes behind.
2. Its callers do the loads in front of it: by the same calls, or by a new method that has the function's parameters.
3. The kernel that comes of it is asked for loops whose copies may be issued a turn ahead (asked_ahead.py); what is
   changed are the lines that differ.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from tree_sitter import Node

from .....sources.cpp import Edit, Function, apply_edits, breaks_syntax
from ...reading.affine import resolved
from ...reading.api import COPY
from ...reading.counted import counted_loops
from ...reading.kernel_program import CLASSES, ApiCall, KernelProgram
from ..motif import Change, whole_lines
from .asked_ahead import changes

_WORD = re.compile(r"[A-Za-z_]\w*")
_TAKEN = re.compile(
    r"((?:(?:AscendC::)?LocalTensor\s*<[^;=]*>|auto)\s+)?(\w+)\s*=\s*(?:this->)?\w+\s*\.\s*"
    r"(?:template\s+)?AllocTensor\b.*;"
)
_SET = re.compile(r"(?:const\s+)?[A-Za-z_][\w:]*\s+([A-Za-z_]\w*)\s*=\s*([^;{}]+);", re.DOTALL)
_CALLED = re.compile(r"[A-Za-z_]\w*(?:<[\w:]+>)?(?=\s*\()")
_LOAD = "LoadFor"


@dataclass(frozen=True)
class _Apart:
    """A function, the edits that leave it without its loads, and what does them: a call in terms of its parameters."""

    function: Function
    edits: tuple[Edit, ...]
    loads: tuple[str, ...]
    names: tuple[str, ...]  # of the functions that are called


def loads_first(kernel: KernelProgram, fetchers: Collection[str], single: Collection[str]) -> Iterator[Change]:
    """Loops that call such a function, its loads issued a turn ahead."""
    looped = {s.call.name for loop in counted_loops(kernel) for s in loop.block.steps if s.call is not None}
    known = {change.site for change in changes(kernel, fetchers, single)}
    for f in kernel.functions:
        of = kernel.class_of(f)
        twins = [g for g in kernel.functions if g.name == f.name and kernel.class_of(g) == of]
        if f.name not in looped or f.name in fetchers or len(twins) != 1 or not of:
            continue
        apart = _by_calls(kernel, f, fetchers) or _by_itself(kernel, f)
        if apart is None:
            continue
        edits = _at_callers(kernel, apart)
        if not edits:
            continue
        try:
            files = apply_edits(kernel.files, (*apart.edits, *edits))
        except ValueError:
            continue
        if breaks_syntax(kernel.files, files):
            continue
        after = replace(kernel, files=files)
        new = {n for n in apart.names if n.startswith(_LOAD)}
        alone = {*single, *(new if _into_one(kernel, f) else ())}
        for change in changes(after, {*apart.names}, alone):
            if change.site in known:
                continue
            whole = apply_edits(files, change.edits)
            yield Change(
                f"{change.site}/{f.name}", f"{change.change}; {f.name} loads first", whole_lines(kernel, whole)
            )


def _into_one(kernel: KernelProgram, f: Function) -> bool:
    """Has a queue that the function takes a tensor from one buffer?"""
    asked = {c.receiver.removeprefix("this->") for c in kernel.calls_of(f) if c.name == "AllocTensor"}
    ones = {"1", *(c.name for c in kernel.constants if c.value == 1)}
    made = [c for c in kernel.named("InitBuffer") if len(c.args) == 3 and c.args[0].removeprefix("this->") in asked]
    return any(c.args[1] in ones or not c.args[1].isdigit() for c in made)


# -- taking apart ------------------------------------------------------------------------------------------------------


def _head(kernel: KernelProgram, f: Function) -> tuple[dict[str, str], list[Node], list[Node]]:
    """(what the declarations in front set, those that only name buffers aside; them; the statements behind them)."""
    names: dict[str, str] = {}
    nodes = [n for n in f.body.named_children if n.type != "comment"]
    declared: list[Node] = []
    for k, node in enumerate(nodes):
        text = kernel.text(f.path, node)
        found = _SET.fullmatch(text)
        named = node.type == "declaration" and ".Get<" in text.replace("template ", "")
        if found is not None and not _CALLED.search(found[2]):
            names[found[1]] = resolved(found[2], names)
        elif not named:
            return names, declared, nodes[k:]
        declared.append(node)
    return names, declared, []


def _by_calls(kernel: KernelProgram, f: Function, fetchers: Collection[str]) -> _Apart | None:
    """The function begins by calling those that copy in."""
    names, declared, behind = _head(kernel, f)
    calls: list[ApiCall] = []
    for node in behind:
        call = kernel.call_of(f, node)
        if call is None or call.name not in fetchers or call.receiver not in ("", "this"):
            break
        calls.append(call)
    local = {w for n in declared for w in _WORD.findall(kernel.text(f.path, n).partition("=")[0])} - set(names)
    if not calls or len(calls) == len(behind):
        return None
    texts = [resolved(kernel.text(f.path, c.node), names) for c in calls]
    if local & {w for t in texts for w in _WORD.findall(t)}:
        return None
    edits = tuple(kernel.delete(f.path, c.statement) for c in calls if c.statement is not None)
    return _Apart(f, edits, tuple(f"{t};" for t in texts), tuple(c.name for c in calls))


def _by_itself(kernel: KernelProgram, f: Function) -> _Apart | None:
    """The function begins by copying into tensors that it takes from queues, in the body of its class."""
    parent = f.node.parent.parent if f.node.parent is not None else None
    declarator = f.node.child_by_field_name("declarator")
    listed = declarator.child_by_field_name("parameters") if declarator is not None else None
    if parent is None or parent.type not in CLASSES or listed is None or len(f.parameters) != listed.named_child_count:
        return None
    _, declared, behind = _head(kernel, f)
    end = _loaded(kernel, f, behind)
    left = _left(kernel, f, behind[:end], behind[end:]) if 0 < end < len(behind) else None
    if left is None:
        return None
    space = kernel.indent(f.path, f.node)
    body = f"\n{space}  ".join(kernel.text(f.path, n) for n in (*declared, *behind[:end]))
    name = f"{_LOAD}{f.name}"
    method = f"__aicore__ inline void {name}{kernel.text(f.path, listed)} {{\n{space}  {body}\n{space}}}"
    edits = (*left, _in_front(kernel, f, f"{method}\n{space}"))
    return _Apart(f, edits, (f"{name}({', '.join(f.parameters)});",), (name,))


def _taken(kernel: KernelProgram, f: Function, node: Node) -> re.Match[str] | None:
    """``x = queue.AllocTensor<T>();``, with a type in front or none."""
    return _TAKEN.fullmatch(" ".join(kernel.text(f.path, node).split()))


def _loaded(kernel: KernelProgram, f: Function, nodes: list[Node]) -> int:
    """How many of the statements take tensors of their own, copy into them and give them on."""
    taken: set[str] = set()
    end = 0
    for k, node in enumerate(nodes):
        call, found = kernel.call_of(f, node), _taken(kernel, f, node)
        if found is not None:
            if found[1] is None:
                return 0
            taken.add(found[2])
        elif call is not None and call.name == "EnQue" and call.args and call.args[0] in taken:
            end = k + 1
        elif node.type != "declaration" and not _copies(kernel, f, call, taken):
            break
    return end


def _left(kernel: KernelProgram, f: Function, loads: list[Node], behind: list[Node]) -> tuple[Edit, ...] | None:
    """The edits that leave the rest; None where that needs what was loaded other than by taking it from the queue."""
    rest = " ".join(kernel.text(f.path, n) for n in behind)
    edits: list[Edit] = []
    for node in loads:
        found = _taken(kernel, f, node)
        if found is None:
            edits += [kernel.delete(f.path, node)] if node.type != "declaration" else []
        elif re.search(rf"\b{found[2]}\s*=", rest) is not None:
            if "auto" in found[1]:
                return None
            edits.append(kernel.replace(f.path, node, f"{found[1].strip()} {found[2]};"))
        elif re.search(rf"\b{found[2]}\b", rest) is not None:
            return None
        else:
            edits.append(kernel.delete(f.path, node))
    return tuple(edits)


def _in_front(kernel: KernelProgram, f: Function, text: str) -> Edit:
    """``text`` in front of a method and of what stands before it in its line."""
    data = kernel.program.files[f.path].data
    line = data.rfind(b"\n", 0, f.node.start_byte) + 1
    start = line + len(data[line : f.node.start_byte]) - len(data[line : f.node.start_byte].lstrip())
    return Edit(f.path, start, start, text)


def _copies(kernel: KernelProgram, f: Function, call: ApiCall | None, taken: Collection[str]) -> bool:
    """Does a statement copy into one of the tensors: a copy, or a function of the kernel's that is one?"""
    if call is None or not call.args or _WORD.findall(call.args[0])[:1] not in [[t] for t in taken]:
        return False
    own = [g for g in kernel.functions if g.name == call.name]
    inside = {c.name for g in own for c in kernel.calls_of(g)}
    queues = {"AllocTensor", "DeQue", "EnQue", "FreeTensor", "SetFlag", "GetValue"}
    return call.name in COPY or (bool(inside & COPY) and not inside & queues)


def _at_callers(kernel: KernelProgram, apart: _Apart) -> tuple[Edit, ...]:
    """The loads in front of each call of the function; nothing where one is no statement, or another class calls it."""
    f = apart.function
    others = {kernel.class_of(g) for g in kernel.functions if g.name == f.name} - {kernel.class_of(f)}
    edits: list[Edit] = []
    for call in kernel.named(f.name):
        if kernel.class_of(call.function) in others:
            continue
        s = call.statement
        plain = s is not None and s.parent is not None and s.parent.type == "compound_statement"
        if not plain or s is None or len(call.args) != len(f.parameters) or call.receiver not in ("", "this"):
            return ()
        names = dict(zip(f.parameters, call.args, strict=True))
        if any(p in _WORD.findall(a) for p in names for q, a in names.items() if p != q):
            return ()
        edits.append(kernel.before(call.path, s, " ".join(resolved(t, names) for t in apart.loads)))
    return tuple(edits)
