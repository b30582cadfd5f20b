"""Buffers that are made and not used, or used in a branch for some types only: they aren't made, or in that branch.

What is made for nothing costs the scalar unit the time of an InitBuffer, a buffer, before the first copy is issued.

1. A queue's or a TBuf's *uses* are all places that name it but for InitBuffer, in the methods of its class and of those
   derived from it.
2. A use that stands in ``if constexpr`` needs the buffer where its condition holds; one in a method that is called from
   such branches only needs it where one of theirs holds.
3. Conditions speak of the class' own template parameters, so that they mean the same where the buffer is made.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product

from tree_sitter import Node

from .....sources.cpp import Edit, Function
from ...reading.classes import Members, family_members, title_of
from ...reading.kernel_program import ApiCall, KernelProgram, flat
from ..motif import Change, Motif

_DECLARED = re.compile(r"(?:AscendC::)?(?:TQue|TQueBind|TBuf)\s*<[^;]*>", re.DOTALL)
_WORD = re.compile(r"[A-Za-z_]\w*")
_KNOWN = frozenset(
    [
        "std",
        "AscendC",
        "is_same",
        "is_same_v",
        "IsSameType",
        "IsSame",
        "value",
        "sizeof",
        "half",
        "float",
        "bfloat16_t",
        "bool",
        "true",
        "false",
        "int8_t",
        "uint8_t",
        "int16_t",
        "uint16_t",
        "int32_t",
        "uint32_t",
        "int64_t",
        "uint64_t",
        "float16_t",
        "float32_t",
        "bfloat16",
        "int",
        "unsigned",
        "double",
    ]
)
_CALLS_DEEP = 4  # methods that are called from methods
_IS_SAME = re.compile(r"\(\s*(?:\w+::)?(?:is_same|is_same_v|IsSameType|IsSame)<\s*(\w+)\s*,\s*\w+\s*>(?:::value)?\s*\)")
_ASKED = 8  # conditions that are looked at in all combinations
_MOST = 4  # conditions, one or another of which needs the buffer

Conditions = frozenset[str]  # what has to hold, all of it; none: always


@dataclass(frozen=True)
class _Made:
    """A buffer, and the calls that make it."""

    line: Members
    name: str
    calls: tuple[ApiCall, ...]
    needed: frozenset[str]  # where it is needed: one of these; none: nowhere


class _Branches:
    """Under which conditions, known when the kernel is compiled, a class' methods and their parts run."""

    def __init__(self, kernel: KernelProgram, own: Iterable[Function]) -> None:
        self._kernel = kernel
        self._own = {f.name: f for f in own}
        self._often = Counter(f.name for f in own)
        self._calls: dict[str, list[ApiCall]] = {}
        for f in own:
            for c in kernel.calls_in(f):
                if c.name in self._own:
                    self._calls.setdefault(c.name, []).append(c)

    def of(self, f: Function, node: Node, deep: int = 0) -> set[Conditions]:
        """The alternatives under which ``node`` runs; one without conditions: it always may."""
        here = self.around(f, node)
        calls = self._calls.get(f.name, [])
        if deep == _CALLS_DEEP or not calls or self._often[f.name] > 1:
            return {here}
        return {here | outer for c in calls for outer in self.of(c.function, c.node, deep + 1)}

    def around(self, f: Function, node: Node) -> Conditions:
        """What has to hold in its own function for ``node`` to be compiled."""
        found = set[str]()
        inner, branch = node, node.parent
        local = {
            w for p in self._kernel.text(f.path, f.node).partition("{")[0].split("template")[1:] for w in _typed(p)
        }
        while branch is not None and branch.start_byte >= f.node.start_byte:
            if branch.type == "if_statement":
                text = self._kernel.text(f.path, branch)
                condition = branch.child_by_field_name("condition")
                if condition is not None and condition != inner and re.match(r"if\s+constexpr\b", text):
                    said = flat(self._kernel.text(f.path, condition))
                    if not local & set(_WORD.findall(said)):
                        then = branch.child_by_field_name("consequence")
                        found.add(said if then is not None and then.start_byte == inner.start_byte else f"!{said}")
            inner, branch = branch, branch.parent
        return frozenset(found)


def _typed(parameters: str) -> set[str]:
    """Names of the template parameters in front of a function."""
    head = parameters.partition("<")[2].partition(">")[0]
    return {p.split()[-1] for p in head.split(",") if p.split()}


def _parameters(kernel: KernelProgram, path: str, node: Node) -> set[str]:
    """Template parameters of the class around ``node``."""
    around: Node | None = node
    while around is not None and around.type != "template_declaration":
        around = around.parent
    listed = around.child_by_field_name("parameters") if around is not None else None
    return (
        {kernel.text(path, n).split("=")[0].split()[-1] for n in listed.named_children} if listed is not None else set()
    )


def _found(kernel: KernelProgram) -> Iterator[_Made]:
    constants = {c.name for c in kernel.constants}
    for line, once, own in family_members(kernel, _DECLARED):
        branches = _Branches(kernel, own)
        visible = _parameters(kernel, line.path, line.node) | _KNOWN | constants
        for name in sorted(once):
            made = tuple(
                c
                for f in own
                for c in kernel.calls_in(f)
                if _makes(c, name) and not branches.around(c.function, c.node)
            )
            needs = {need for f in own for n in _named(f.body, name) if not _is_made(n) for need in branches.of(f, n)}
            words = {w for need in needs for said in need for w in _WORD.findall(said)}
            if made and len(needs) <= _MOST and words <= visible and not _always(needs):
                yield _Made(line, name, made, frozenset(_least(needs)))


def _always(uses: set[Conditions]) -> bool:
    """Does one of the alternatives hold whatever each condition's answer is?"""
    asked = sorted({said.removeprefix("!") for need in uses for said in need})
    if not uses or len(asked) > _ASKED:
        return bool(uses)
    answers = (dict(zip(asked, yes, strict=True)) for yes in product((False, True), repeat=len(asked)))
    return all(any(all(a[s.removeprefix("!")] != s.startswith("!") for s in need) for need in uses) for a in answers)


def _least(uses: set[Conditions]) -> Iterator[str]:
    """The alternatives without those that others include; what a type isn't goes without saying where it is one."""
    shorter = {_without_others(need) for need in uses}
    for need in sorted(shorter, key=sorted):
        if not any(other < need for other in shorter):
            yield " && ".join(sorted(need))


def _without_others(need: Conditions) -> Conditions:
    types = {m[1] for said in need if (m := _IS_SAME.fullmatch(said)) is not None}
    return frozenset(
        said
        for said in need
        if not said.startswith("!") or (m := _IS_SAME.fullmatch(said[1:])) is None or m[1] not in types
    )


def _makes(call: ApiCall, name: str) -> bool:
    made = call.name == "InitBuffer" and len(call.args) in (2, 3) and call.statement is not None
    return made and call.args[0].removeprefix("this->") == name


def _named(node: Node, name: str) -> Iterator[Node]:
    """Places that name it."""
    todo = [node]
    wanted = name.encode()
    while todo:
        n = todo.pop()
        if n.type in ("identifier", "field_identifier") and n.text == wanted:
            yield n
        todo += n.children


def _is_made(node: Node) -> bool:
    """Does it stand as what InitBuffer makes?"""
    at: Node | None = node
    while at is not None and at.type != "argument_list":
        at = at.parent
    called = at.parent.child_by_field_name("function") if at is not None and at.parent is not None else None
    first = at.named_children[0] if at is not None and at.named_children else None
    within = first is not None and first.start_byte <= node.start_byte < first.end_byte
    return within and called is not None and (called.text or b"").endswith(b"InitBuffer")


def _faster(kernel: KernelProgram) -> Iterator[Change]:
    for found in _found(kernel):
        edits = list[Edit]()
        for call in found.calls:
            assert call.statement is not None
            if not found.needed:
                edits.append(kernel.delete(call.path, call.statement))
                continue
            several = len(found.needed) > 1
            when = " || ".join(f"({said})" if several and "&&" in said else said for said in sorted(found.needed))
            when = when if not several and "&&" not in when and not when.startswith("!") else f"({when})"
            text = f"if constexpr {when} {{ {kernel.text(call.path, call.statement)} }}"
            edits.append(kernel.replace(call.path, call.statement, text))
        what = "isn't made: nobody uses it" if not found.needed else "is made where it is used"
        owner = title_of(kernel, found.line)
        yield Change(f"{owner}/{found.name}", f"{found.name} of {owner} {what}", tuple(edits))


def _slower(kernel: KernelProgram) -> Iterator[Change]:
    """What is made in a branch for some types only, made for all."""
    for call in kernel.named("InitBuffer"):
        block = call.statement.parent if call.statement is not None else None
        branch = block.parent if block is not None and block.type == "compound_statement" else None
        if block is None or branch is None or branch.type != "if_statement" or len(block.named_children) != 1:
            continue
        alone = branch.child_by_field_name("alternative") is None
        if alone and re.match(r"if\s+constexpr\b", kernel.text(call.path, branch)):
            edit = kernel.replace(call.path, branch, kernel.text(call.path, block.named_children[0]))
            change = f"{call.args[0]} made in every case"
            yield Change(f"{call.function.name}/{call.args[0]}", change, (edit,))


UNNEEDED_BUFFERS = Motif(
    name="unneeded-buffers",
    title="No buffers that nobody uses",
    description="Each InitBuffer takes the scalar unit some tens of cycles, a buffer of a queue, before the first copy "
    "is issued. Buffers that no method uses aren't made, and those that branches "
    "for some types use are made for these.",
    bottlenecks=("launch", "scalar", "no overlap"),
    preconditions="What the branches ask is known when the kernel is compiled, by the class' template parameters.",
    faster=_faster,
    slower=_slower,
)
