"""What is the same in each turn, done once: filled, loaded or cast into a tensor of its own, read from then on.

``loop-invariant`` moves a statement in front of its loop. Where the loop is in ``Process`` and the statement in a
method that it calls, or where others write the same scratch buffer, nothing can be moved. Here the statement stays
where it is, but does its work the first time only (``if (kept.anew)``), into memory of its own, a member of the class;
who read the scratch buffer up to where it is written again reads that. What was only done for it (a load into a queue's
tensor that is cast) is left out with it. Where what it is made of gets new content, in an outer loop, it is done again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tree_sitter import Node

from .....sources.cpp import Edit, Function, walk
from ...reading.api import BINARY, SCALAR, UNARY, is_barrier, root
from ...reading.classes import merged, numbered, unused
from ...reading.declared import global_tensors
from ...reading.kernel_program import ApiCall, KernelProgram, Where, neighbour, where
from ...reading.readers import Readers, Unclear
from ...reading.steady import Event, Steady, Turns
from ..motif import Change, Motif
from . import taken_once
from .kept_tensors import MEMBER, QUEUED, fills_the_same, member_of

_WITH_SCALARS = ("Add", "Max", "Min", "Mul", "Sub")
_HELD = re.compile(rf"auto ({MEMBER}\d+)At = {MEMBER}\d+\.In\((.*), [^,]*\);", re.DOTALL)
_COMPUTED = BINARY | SCALAR | UNARY | {"Cast"}
# Arguments of the forms with a count.
_COUNT = {n: 3 if n in UNARY else 4 for n in _COMPUTED} | {"Duplicate": 3, "CreateVecIndex": 3}


@dataclass
class _Kept:
    """An instruction to be done once; ``guarded``: statements that are left out with it, itself among them."""

    fill: ApiCall
    target: str
    count: str
    readers: list[Node]
    guarded: list[Node] = field(default_factory=list)
    remade: list[Event] = field(default_factory=list)  # where what it is made of gets new content

    @property
    def function(self) -> Function:
        return self.fill.function

    @property
    def statement(self) -> Node:
        found = self.fill.statement
        assert found is not None
        return found

    @property
    def title(self) -> str:
        return self.fill.name

    def edits(self, kernel: KernelProgram, member: str) -> Iterator[Edit]:
        return _edits(kernel, self, member)


# -- finding -----------------------------------------------------------------------------------------------------------


class _Finder:
    def __init__(self, kernel: KernelProgram) -> None:
        self.kernel, self.facts, self.tensors = kernel, kernel.once(Steady), global_tensors(kernel)

    def found(self) -> Iterator[_Kept | taken_once.Taken]:
        if any(c.name in ("Reset", "Destroy") and "ipe" in c.receiver for c in self.kernel.calls):
            return  # memory is dealt out anew
        loaded: set[int] = set()
        kept = [k for c in self.kernel.calls if (k := self._of(c)) is not None]
        for k in kept:
            loaded |= {n.start_byte for n in k.guarded if k.statement != n}
        yield from (k for k in kept if k.statement.start_byte not in loaded)
        taken = taken_once.found(self.kernel, self.facts, self.tensors)
        yield from (t for t in taken if t.statement.start_byte not in loaded)

    def _of(self, call: ApiCall) -> _Kept | None:
        statement = call.statement
        if statement is None or statement.parent is None or statement.parent.type != "compound_statement":
            return None
        f = call.function
        held = self.kernel.class_node(f)
        turns = self.facts.turns_of(f, call.node) if held is not None and self.kernel.repeated(f, call.node) else None
        count = self._count(call)
        if turns is None or not count:
            return None
        kept = _Kept(call, call.args[0], count, [], [statement])
        if not self._same(turns, kept) or any(self.kernel.class_node(g) != held for g, _ in kept.remade):
            return None
        try:
            kept.readers = Readers(self.facts, call, call.args[0]).found
        except Unclear:
            return None
        return kept if kept.readers and not self._takes_a_scalar(kept) else None

    def _takes_a_scalar(self, kept: _Kept) -> bool:
        """Is a constant read by one instruction that takes it as a scalar (``scalar-operand``)?"""
        reader = kept.readers[0].parent.parent if kept.readers[0].parent is not None else None
        if kept.fill.name != "Duplicate" or len(kept.readers) > 1 or reader is None:
            return False
        return self.kernel.call_at(kept.function, reader).name in _WITH_SCALARS

    def _count(self, call: ApiCall) -> str:
        """How many elements the instruction writes; empty where it is none that could be kept."""
        if call.receiver or len(call.args) < 3 or root(call.args[0]) in self.tensors:
            return ""
        if call.name in _COUNT:
            return call.args[-1] if len(call.args) == _COUNT[call.name] else ""
        if root(call.args[1]) not in self.tensors or len(call.args) > 4:
            return ""
        last = call.args[2]
        if call.name == "DataCopyPad" or (call.name != "DataCopy" and call.name not in self.facts.own):
            return ""
        declared = re.search(rf"Params\b[^;()=]*\b{re.escape(last)}\b", self.kernel.text(call.path, call.function.node))
        return "" if declared or last.startswith("{") or len(call.args) > 3 else last

    def _same(self, turns: Turns, kept: _Kept) -> bool:
        """Is what the instruction makes the same in all turns?"""
        call, f = kept.fill, kept.function
        if call.name not in _COMPUTED:
            return fills_the_same(self.facts, self.tensors, call)
        if call.name in SCALAR and not self._is_fixed(call, call.args[2]):
            return False
        for operand in call.args[1 : 3 if call.name in BINARY else 2]:
            source = root(operand)
            if source == root(call.args[0]) or not self.facts.number(turns, f, operand.replace(source, "0", 1)):
                return False
            remade = self.facts.steady(turns, f, source, call.node)
            if remade is None:
                return call.name == "Cast" and self._loaded(kept, source)
            kept.remade += remade
        kept.remade = list(dict.fromkeys(kept.remade))
        return True

    def _is_fixed(self, call: ApiCall, number: str) -> bool:
        turns = self.facts.all_turns_of(call.function, call.node)
        return turns is not None and self.facts.number(turns, call.function, number)

    # -- what is loaded for it -----------------------------------------------------------------------------------------

    def _loaded(self, kept: _Kept, source: str) -> bool:
        """Is the source loaded or filled for this instruction only, from what stays the same? That is left out, too."""
        f, fill = kept.function, kept.fill.statement
        assert fill is not None
        if self._loaded_before(kept, source):
            return True
        names, guarded = {source}, [fill]
        taken = [(n, v) for n, v in self.facts.made(f).get(source, ()) if "DeQue" in v]
        if taken:
            found = QUEUED.match(taken[0][1].strip()) if len(taken) == 1 else None
            given = [
                root(c.args[0])
                for c in self.kernel.calls_of(f)
                if found is not None
                and c.name == "EnQue"
                and c.receiver == found[1]
                and c.args
                and c.node.start_byte < taken[0][0].start_byte
            ]
            if not given:
                return False
            names.add(given[-1])
        fills = 0
        for s in self._statements(f, names):
            if s == fill:
                continue
            what = self._part(f, s, names)
            if what is None or (s.start_byte > fill.start_byte and what != "free"):
                return False
            fills += what == "fill"
            if what != "place":
                guarded.append(s)
        kept.guarded = sorted(guarded, key=lambda n: n.start_byte)
        return fills > 0

    def _loaded_before(self, kept: _Kept, source: str) -> bool:
        """Is a scratch tensor loaded right before, and nobody else reads what is loaded then?"""
        f, fill = kept.function, kept.fill.statement
        assert fill is not None
        if any("DeQue" in value for _, value in self.facts.made(f).get(source, ())):
            return False
        mentions = [s for s in self._statements(f, {source}) if s.type != "declaration"]
        i = mentions.index(fill)
        if i == 0 or self._part(f, mentions[i - 1], {source}) != "fill":
            return False
        behind = self._part(f, mentions[i + 1], {source}) if i + 1 < len(mentions) else "free"
        kept.guarded = [mentions[i - 1], fill]
        return behind in ("fill", "free")

    def _statements(self, f: Function, names: set[str]) -> list[Node]:
        """The simple statements of a function that mention a tensor."""
        mention = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(names)))})\b")
        kinds = ("expression_statement", "declaration", "return_statement")
        return [n for n in walk(f.body) if n.type in kinds and mention.search(self.kernel.text(f.path, n))]

    def _part(self, f: Function, s: Node, names: set[str]) -> str | None:
        """What a statement does for a tensor that is loaded; ``place``: says where it lies."""
        call = self.kernel.call_of(f, s)
        if call is None:
            values = [v for n in names for t, v in self.facts.made(f).get(n, ()) if t.start_byte == s.start_byte]
            if s.type == "declaration" and not values:
                return "place"
            if len(values) != 1:
                return None
            return "taken" if QUEUED.match(values[0].strip()) else "place" if "GetValue" not in values[0] else None
        if call.name in ("EnQue", "FreeTensor"):
            return "free" if call.name == "FreeTensor" else "given"
        if root(call.args[0] if call.args else "") not in names or any(root(a) in names for a in call.args[1:]):
            return None
        return "fill" if fills_the_same(self.facts, self.tensors, call) else None


# -- changing ----------------------------------------------------------------------------------------------------------


def _edits(kernel: KernelProgram, kept: _Kept, member: str) -> Iterator[Edit]:
    path, place = kept.fill.path, f"{member}At"
    first = _common([*kept.guarded, *kept.readers])
    yield Edit(
        path,
        first.start_byte,
        first.start_byte,
        f"auto {place} = {member}.In({kept.target}, {kept.count});\n{kernel.indent(path, first)}",
    )
    for s in kept.guarded:
        yield from _guarded(kernel, kept, s, f"if ({member}.anew)")
    yield kernel.replace(path, kept.fill.arguments[0], place)
    for node in kept.readers:
        yield kernel.replace(path, node, place)
    for f, node in kept.remade:
        statement = node
        while statement.parent is not None and statement.parent.type != "compound_statement":
            statement = statement.parent
        yield kernel.after(f.path, statement, f"{member}.Forget();")
    yield from member_of(kernel, kept.function, member)


def _common(guarded: Sequence[Node]) -> Node:
    """The first statement of the innermost block that holds all of them, which is one of them or has one in it."""
    first = guarded[0]
    while first.parent is not None:
        block = first.parent
        whole = all(block.start_byte <= n.start_byte < block.end_byte for n in guarded)
        if block.type == "compound_statement" and whole:
            break
        first = block
    return first


def _guarded(kernel: KernelProgram, kept: _Kept, s: Node, condition: str) -> Iterator[Edit]:
    path = kept.fill.path
    value = next((v for v in walk(s) if v.type == "init_declarator"), None) if s.type == "declaration" else None
    if value is None:
        last = _barrier_behind(kernel, kept) if s == kept.fill.statement else None
        yield Edit(path, s.start_byte, s.start_byte, f"{condition} {{ ")
        end = (last or s).end_byte
        yield Edit(path, end, end, " }")
        return
    name, made = (value.child_by_field_name(n) for n in ("declarator", "value"))
    assert name is not None
    assert made is not None
    variable, text = kernel.text(path, name), kernel.text(path, made)
    found = QUEUED.match(text.strip())
    kind = found[2] if found is not None else ""
    yield kernel.replace(path, s, f"AscendC::LocalTensor<{kind}> {variable}; {condition} {{ {variable} = {text}; }}")


def _barrier_behind(kernel: KernelProgram, kept: _Kept) -> Node | None:
    """The barrier behind the instruction, where one in front of it makes it needless without the instruction."""
    statement, f = kept.fill.statement, kept.function
    assert statement is not None
    calls = [kernel.call_of(f, neighbour(statement, step)) for step in (-1, 1)]
    if not all(c is not None and is_barrier(c, "PIPE_V") for c in calls):
        return None
    return calls[1].statement if calls[1] is not None else None


def _faster(kernel: KernelProgram) -> Iterator[Change]:
    """All places, those of a function, and each one."""
    found = list(_Finder(kernel).found())
    first = unused(kernel, MEMBER)
    by_function: dict[Where, list[int]] = {}
    for i, k in enumerate(found):
        by_function.setdefault(where(k.function), []).append(i)
    groups = [list(range(len(found)))] if len(by_function) > 1 else []
    groups += [p for p in by_function.values() if len(p) > 1] + [[i] for p in by_function.values() for i in p]
    sites: dict[str, int] = {}
    for group in groups:
        f = found[group[0]].function
        edits = merged(e for i in group for e in found[i].edits(kernel, f"{MEMBER}{first + i}"))
        if len(group) == len(found) and len(by_function) > 1:
            site, change = "all", f"{len(group)} steps that are the same in each turn done once"
        elif len(group) > 1:
            site = f"{kernel.class_of(f)}::{f.name}"
            change = f"{len(group)} steps of {f.name} that are the same in each turn done once"
        else:
            site = kernel.site(f, found[group[0]].statement)
            change = f"{found[group[0]].title} of {f.name} done once, into a tensor of its own"
        yield Change(numbered(sites, site), change, edits)


def _slower(kernel: KernelProgram) -> Iterator[Change]:
    """Done in each turn again, into the scratch tensor; the memory stays."""
    for f in kernel.functions:
        for node in (n for n in walk(f.body) if n.type == "declaration"):
            found = _HELD.fullmatch(kernel.text(f.path, node))
            if found is None:
                continue
            member, edits = found[1], [kernel.delete(f.path, node)]
            for n in walk(f.body):
                if n.type == "identifier" and kernel.text(f.path, n) == f"{member}At" and not _is_within(n, node):
                    edits.append(kernel.replace(f.path, n, found[2]))
                elif n.type == "if_statement" and kernel.text(f.path, n).startswith(f"if ({member}.anew) {{"):
                    branch = n.child_by_field_name("consequence")
                    if branch is not None and branch.named_children:
                        edits.append(Edit(f.path, n.start_byte, branch.named_children[0].start_byte, ""))
                        edits.append(Edit(f.path, branch.named_children[-1].end_byte, n.end_byte, ""))
            yield Change(f"{f.name}/{member}", f"what {member} holds made in each turn of {f.name}", tuple(edits))


def _is_within(n: Node, outer: Node) -> bool:
    return outer.start_byte <= n.start_byte < outer.end_byte


DONE_ONCE = Motif(
    name="done-once",
    title="Filled, loaded and cast once, and kept",
    description="A constant filled, a parameter loaded or cast anew in each turn, in a method that the loop calls or "
    "into a buffer that others overwrite, is done the first time only, into memory of its own that is read from then "
    "on; the load and the queue's calls that were for it only are left out with it.",
    bottlenecks=("vector", "copies", "small copies", "short vector instructions", "vector barriers", "scalar"),
    preconditions="UB has room for the result; what it is made of changes nowhere else than where the text says so.",
    faster=_faster,
    slower=_slower,
    together="no",
)
