"""A single value that is fetched by a copy: the scalar unit reads it from global memory itself.

1. The copy moves one element, and of the tensor it goes to element 0 is read, and nothing else is.
2. Read in the function of the copy, the value is a variable there, and the tensor and its flag go. Handed on by a
   queue, the scalar unit puts it into the queue's tensor, so that whoever takes it out finds it where it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from .....sources.cpp import Edit, Function, walk
from ...reading.affine import indexed
from ...reading.api import COPY, root
from ...reading.classes import merged
from ...reading.declared import element_types, global_tensors, listed
from ...reading.kernel_program import ApiCall, KernelProgram, flat, where
from ..motif import Change, Motif
from ..waiting.flags import pairs

_VALUE = "copiedValue"
_GOT = ("AllocTensor", "Get", "DeQue")
_GIVEN = ("EnQue", "FreeTensor")
_WRITES = COPY | frozenset(["InitOutput", "InitGlobalMemory", "Fill"])
_CAST = re.compile(r"static_cast<[\w:]+>|(?<!sizeof)\(u?int\d+_t\)|AscendC::|this->|\s|U\b")
_ONE = re.compile(r"\(*1\)*")
_SIZE = re.compile(r"\(*(?:1\*)?sizeof\(\w+\)(?:\*1)?\)*")
_INLINE = re.compile(r"(?:(?:AscendC::)?DataCopy\w*Params\s*)?[{(](.*)[})]", re.DOTALL)
_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class _Use:
    """Where a tensor's name stands: ``kind`` is ``made``, ``given``, ``read``, ``copied`` or ``other``."""

    kind: str
    node: Node
    call: ApiCall | None
    function: Function


@dataclass(frozen=True)
class _Fetched:
    """A copy of one element to ``tensor``, which nobody uses but by ``uses``."""

    call: ApiCall
    statement: Node
    tensor: str
    value: str  # the read that does the same
    uses: tuple[_Use, ...]


# -- copies of one element ---------------------------------------------------------------------------------------------


def _fields(kernel: KernelProgram, call: ApiCall) -> Iterator[list[str]]:
    """What a copy's parameters are set to: in place, else in its function, else in the file."""
    third = call.args[2].strip()
    inline = _INLINE.fullmatch(third)
    if inline is not None:
        yield listed(inline[1])
        return
    name = re.escape(third.removeprefix("this->"))
    braces = re.compile(rf"(?<![\w.]){name}\b\s*=?\s*(?:[\w:]+\s*)?(?:\{{([^{{}};]*)\}}|\(([^{{}};]*)\))\s*;")
    for text in (kernel.text(call.path, call.function.node), kernel.files[call.path]):
        found = [listed(m[1] or m[2] or "") for m in braces.finditer(text)]
        count, length = (re.findall(rf"\b{name}\.{field}\s*=\s*([^;]+);", text) for field in ("blockCount", "blockLen"))
        if found or length:
            yield from found if not length else ([c, n] for c in count or ["1"] for n in length)
            return


def of_one(kernel: KernelProgram, call: ApiCall) -> bool:
    """Does the copy move one element?"""
    if call.name != "DataCopyPad" or len(call.args) < 3:
        return False
    listed = [[_CAST.sub("", part) for part in fields] for fields in _fields(kernel, call)]
    return bool(listed) and all(len(p) > 1 and _ONE.fullmatch(p[0]) and _SIZE.fullmatch(p[1]) for p in listed)


# -- uses of a tensor --------------------------------------------------------------------------------------------------


def _scope(kernel: KernelProgram, f: Function, name: str) -> list[Function]:
    """The functions that a tensor's name means the same in: its own where it is declared there, else its class's."""
    declared = re.compile(rf"(?:\bLocalTensor\s*<[^;=()]*>|\bauto)\s*&?\s*{re.escape(name)}\b")
    if declared.search(kernel.text(f.path, f.node)):
        return [f]
    of = kernel.class_of(f)
    return [g for g in kernel.functions if of and kernel.class_of(g) == of] or [f]


def _uses(kernel: KernelProgram, f: Function, name: str) -> list[_Use]:
    """Every place a local tensor is named."""
    return [
        _use(kernel, g, node)
        for g in _scope(kernel, f, name)
        for node in walk(g.body)
        if node.type in ("identifier", "field_identifier") and kernel.text(g.path, node) == name
    ]


def _use(kernel: KernelProgram, f: Function, node: Node) -> _Use:
    parent = node.parent
    if parent is not None and parent.type == "field_expression" and kernel.text(f.path, parent).startswith("this->"):
        node, parent = parent, parent.parent
    if parent is None:
        return _Use("other", node, None, f)
    if parent.type in ("init_declarator", "assignment_expression"):
        value = parent.child_by_field_name("value") or parent.child_by_field_name("right")
        call = kernel.call_at(f, value) if value is not None and value.type == "call_expression" else None
        first = parent.named_children[0] == node
        return _Use("made" if first and call is not None and call.name in _GOT else "other", parent, call, f)
    if parent.type == "declaration":
        return _Use("made", parent, None, f)
    if parent.type == "argument_list" and parent.parent is not None and parent.parent.type == "call_expression":
        call = kernel.call_at(f, parent.parent)
        if call.name in _GIVEN and len(call.args) == 1:
            return _Use("given", call.node, call, f)
        return _Use("copied" if call.name in COPY and call.arguments[0] == node else "other", call.node, call, f)
    return _read(kernel, f, node, parent)


def _read(kernel: KernelProgram, f: Function, node: Node, parent: Node) -> _Use:
    """``x.GetValue(0)`` or ``x(0)``, of the name at ``node``."""
    called = parent if parent.type == "call_expression" else parent.parent
    if called is None or called.type != "call_expression":
        return _Use("other", node, None, f)
    call = kernel.call_at(f, called)
    of = called.child_by_field_name("function") in (node, parent)
    reads = of and call.args == ("0",) and (parent.type == "call_expression" or call.name == "GetValue")
    return _Use("read" if reads else "other", called, call, f)


def _written(kernel: KernelProgram) -> set[tuple[str, str]]:
    """(class, GlobalTensor) of those that some function stores to, or that are given to functions of the kernel."""
    own = {f.name.partition("<")[0] for f in kernel.functions}
    out: set[tuple[str, str]] = set()
    for c in kernel.calls:
        names = c.args[:1] if c.name in _WRITES else c.args if c.name in own else ()
        names = (c.receiver,) if c.name == "SetValue" else names
        out |= {(kernel.class_of(c.function), root(a.removeprefix("this->"))) for a in names}
    return out


def _memory(kernel: KernelProgram, of: str) -> dict[str, set[str]]:
    """Names in the address of each GlobalTensor of a class."""
    out: dict[str, set[str]] = {}
    for c in kernel.named("SetGlobalBuffer"):
        if kernel.class_of(c.function) == of and c.args:
            address = re.sub(r"\w+_cast\b|\([^()]*__gm__[^()]*\)|<[^<>]*>", " ", c.args[0])
            out.setdefault(root(c.receiver), set()).update(_WORD.findall(address)[:1])
    return out


def _fetched(kernel: KernelProgram) -> Iterator[_Fetched]:
    """Copies of one element from a tensor that the kernel doesn't store to, to one of which only element 0 is read."""
    types, tensors, written = element_types(kernel), global_tensors(kernel), _written(kernel)
    for call in kernel.named("DataCopyPad"):
        if call.statement is None or not kernel.repeated(call.function, call.node) or not of_one(kernel, call):
            continue
        source, index = indexed(call.args[1])
        name, of = root(source.removeprefix("this->")), kernel.class_of(call.function)
        tensor = call.args[0].removeprefix("this->")
        if name not in tensors or name not in types or not re.fullmatch(r"\w+", tensor) or (of, name) in written:
            continue
        memory = _memory(kernel, of)
        stored = set().union(*(memory.get(other, set()) for where_, other in written if where_ == of))
        uses = _uses(kernel, call.function, tensor)
        if memory.get(name, set()) & stored or any(u.kind == "other" for u in uses):
            continue
        if sum(u.kind == "copied" for u in uses) != 1:
            continue
        yield _Fetched(call, call.statement, tensor, f"{source}.GetValue({index or '0'})", tuple(uses))


# -- changing ----------------------------------------------------------------------------------------------------------


def _inside(node: Node, outer: Node | None) -> bool:
    return outer is not None and outer.start_byte <= node.start_byte and node.end_byte <= outer.end_byte


def _variable(kernel: KernelProgram, fetched: _Fetched, number: int) -> tuple[Edit, ...] | None:
    """The value in a variable; None where the tensor is handed on, or read where the variable isn't known."""
    f, path = fetched.call.function, fetched.call.path
    reads = [u for u in fetched.uses if u.kind == "read"]
    here = all(
        where(u.function) == where(f)
        and u.node.start_byte > fetched.statement.end_byte
        and _inside(u.node, fetched.statement.parent)
        for u in reads
    )
    if not reads or not here or any(u.call is not None and u.call.name == "EnQue" for u in fetched.uses):
        return None
    name = f"{_VALUE}{number}"
    edits = [kernel.replace(path, fetched.statement, f"const auto {name} = {fetched.value};")]
    edits += [kernel.replace(path, u.node, name) for u in reads]
    held = [u for u in fetched.uses if u.kind in ("made", "given")]
    if all(where(u.function) == where(f) for u in held):
        edits += [kernel.delete(path, s) for u in held if (s := _statement(u.node)) is not None]
    return tuple(edits)


def _statement(node: Node) -> Node | None:
    while node.type not in ("declaration", "expression_statement"):
        if node.parent is None:
            return None
        node = node.parent
    return node


def _read_alone(kernel: KernelProgram, fetched: _Fetched) -> bool:
    """Is element 0 all that is read of what comes out of the queue that the tensor is put into?"""
    of = kernel.class_of(fetched.call.function)
    queues = {u.call.receiver for u in fetched.uses if u.call is not None and u.call.name == "EnQue"}
    if len(queues) != 1:
        return False
    queue, taken = next(iter(queues)), 0
    for call in kernel.named("DeQue"):
        if call.receiver != queue or kernel.class_of(call.function) != of:
            continue
        holder = call.node.parent
        name = holder.named_children[0] if holder is not None else None
        if holder is None or name is None or holder.type not in ("init_declarator", "assignment_expression"):
            return False
        uses = _uses(kernel, call.function, kernel.text(call.path, name).removeprefix("this->"))
        if any(u.kind == "other" for u in uses) or not any(u.kind == "read" for u in uses):
            return False
        taken += 1
    return taken > 0


def _without_waits(kernel: KernelProgram, f: Function, known: set[str]) -> Iterator[Edit]:
    """Flags from loads to the scalar unit go, where it reads no other tensor's values in the function."""
    tensors = global_tensors(kernel) | known
    if any(c.name == "GetValue" and root(c.receiver.removeprefix("this->")) not in tensors for c in kernel.calls_of(f)):
        return
    for block, set_flag, wait_flag, event in pairs(kernel):
        if where(block.function) == where(f) and event == "HardEvent::MTE2_S":
            yield from (kernel.delete(f.path, n) for n in dict.fromkeys((set_flag, wait_flag)))


def _faster(kernel: KernelProgram) -> Iterator[Change]:
    by_function: dict[tuple[str, int, int], list[_Fetched]] = {}
    for fetched in _fetched(kernel):
        by_function.setdefault(where(fetched.call.function), []).append(fetched)
    for found in by_function.values():
        f, edits, names, known = found[0].call.function, list[Edit](), list[str](), set[str]()
        for fetched in found:
            changed = _variable(kernel, fetched, len(names))
            if changed is not None:
                known.add(fetched.tensor)
            elif _read_alone(kernel, fetched):
                text = f"{fetched.call.args[0]}.SetValue(0, {fetched.value});"
                changed = (kernel.replace(fetched.call.path, fetched.statement, text),)
            if changed is not None:
                edits += changed
                names.append(root(fetched.value.removeprefix("this->")))
        if edits:
            edits += _without_waits(kernel, f, known)
            site = kernel.site(f, found[0].statement)
            change = f"single values of {', '.join(dict.fromkeys(names))} in {f.name} read without a copy"
            yield Change(site, change, merged(edits))


def _slower(kernel: KernelProgram) -> Iterator[Change]:
    """``x.SetValue(0, gm.GetValue(i))`` as a copy of one element."""
    tensors, types = global_tensors(kernel), element_types(kernel)
    for call in kernel.named("SetValue"):
        s = call.statement
        if s is None or len(call.args) != 2 or call.args[0] != "0" or call.arguments[1].type != "call_expression":
            continue
        read = kernel.call_at(call.function, call.arguments[1])
        kind = types.get(root(read.receiver))
        if read.name != "GetValue" or root(read.receiver) not in tensors or root(call.receiver) in tensors or not kind:
            continue
        params = f"DataCopyExtParams{{1, static_cast<uint32_t>(sizeof({kind})), 0, 0, 0}}"
        pad = f"DataCopyPadExtParams<{kind}>{{false, 0, 0, 0}}"
        text = call.spelled("DataCopyPad", call.receiver, f"{read.receiver}[{read.args[0]}]", params, pad)
        change = f"{flat(kernel.text(call.path, read.node))} of {call.function.name} fetched by a copy"
        yield Change(kernel.site(call.function, s), change, (kernel.replace(call.path, s, f"{text};"),))


SINGLE_VALUE = Motif(
    name="single-value",
    title="A single value is read where it lies",
    description="A copy of one element, and a wait for it, before the scalar unit reads it: the latency of a load for "
    "each value. GetValue of the GlobalTensor reads it through the data cache, whose lines hold the next ones.",
    bottlenecks=("scalar round trips", "small copies", "no overlap", "copies", "scalar"),
    preconditions="The kernel doesn't store to that tensor; nothing but the scalar unit reads the value.",
    faster=_faster,
    slower=_slower,
)
