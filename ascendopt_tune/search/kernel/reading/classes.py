"""Members of a kernel's classes, and classes that motifs bring along: their text in front of what needs them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tree_sitter import Node

from ....sources.cpp import Edit, Function
from .kernel_program import CLASSES, KernelProgram

_WORD = re.compile(r"[A-Za-z_]\w*")
_ANY = re.compile(r".*", re.DOTALL)
_HEAD_MACRO = re.compile(rb"(?:^|\n)([A-Z][A-Z0-9]*_[A-Z0-9_]+)\s*$")  # the head of a template, as a macro


@dataclass(frozen=True)
class Members:
    """Members declared in one line: the declaration, its type, what the type matched, and names (none of arrays)."""

    path: str
    node: Node
    type: Node
    found: re.Match[str]
    names: tuple[str, ...]


def members(kernel: KernelProgram, of_type: re.Pattern[str]) -> Iterator[Members]:
    """Those whose whole type matches, in all files."""
    for path, node, kind in kernel.fields:
        found = of_type.fullmatch(kernel.text(path, kind))
        if found is not None:
            declared = node.children_by_field_name("declarator")
            plain = all(d.type == "field_identifier" for d in declared)
            yield Members(path, node, kind, found, tuple(kernel.text(path, d) for d in declared) if plain else ())


def is_of(kernel: KernelProgram, line: Members, f: Function) -> bool:
    """Are the members of the class that a method belongs to?"""
    held = kernel.class_node(f)
    return held is not None and held[0] == line.path and held[1].start_byte <= line.node.start_byte < held[1].end_byte


def title_of(kernel: KernelProgram, line: Members) -> str:
    """The name of the class that has the members."""
    node = line.node
    while node.parent is not None and node.type not in CLASSES:
        node = node.parent
    return kernel.title(line.path, node)


def may_use(kernel: KernelProgram, line: Members, f: Function) -> bool:
    """Is a function of the members' class, or of one of another name? Specializations share a name, not members."""
    return kernel.class_of(f) != title_of(kernel, line) or is_of(kernel, line, f)


def families(kernel: KernelProgram) -> dict[str, frozenset[str]]:
    """Class -> itself and all that are derived from it."""
    bases: dict[str, set[str]] = {}
    for path, node in kernel.class_nodes:
        clause = next((c for c in node.children if c.type == "base_class_clause"), None)
        text = kernel.text(path, clause) if clause is not None else ""
        bases.setdefault(kernel.title(path, node), set()).update(_WORD.findall(text))
    out = {name: {name} for name in bases}
    for _ in bases:  # as deep as classes are derived
        grown = {n: {d for d, of in bases.items() if d in found or of & found} for n, found in out.items()}
        if grown == out:
            break
        out = grown
    return {name: frozenset(found) for name, found in out.items()}


def family_members(
    kernel: KernelProgram, of_type: re.Pattern[str]
) -> Iterator[tuple[Members, frozenset[str], list[Function]]]:
    """(members of a type, those of their names that their class' family has once, the methods of that family).

    Of classes that live methods are of; a family is a class with those derived from it.
    """
    family_of, live = families(kernel), {kernel.class_of(f) for f in kernel.functions}
    often: Counter[tuple[str, str]] = Counter()
    for line in members(kernel, _ANY):
        often.update((title_of(kernel, line), name) for name in line.names)
    methods: dict[str, list[Function]] = {}
    for f in kernel.program.functions:
        methods.setdefault(kernel.class_of(f), []).append(f)
    for line in members(kernel, of_type):
        family = family_of.get(title_of(kernel, line), frozenset())
        if family & live:
            once = frozenset(n for n in line.names if sum(often[c, n] for c in family) == 1)
            yield line, once, [f for c in sorted(family) for f in methods.get(c, ())]


def numbered(sites: dict[str, int], site: str) -> str:
    """The site, with a number from its second time on; ``sites`` counts."""
    sites[site] = sites.get(site, 0) + 1
    return f"{site} ({sites[site]})" if sites[site] > 1 else site


def in_front(kernel: KernelProgram, path: str, node: Node, name: str, text: str) -> Edit | None:
    """The class ``name`` in front of what ``node`` stands in; nothing where the file has it already."""
    if f"class {name}" in kernel.program.files[path].data.decode("utf-8", "replace"):
        return None
    top = node
    while top.parent is not None and top.parent.parent is not None and not top.parent.type.startswith("preproc"):
        top = top.parent
    macro = _HEAD_MACRO.search(kernel.program.files[path].data[: top.start_byte])
    start = macro.start(1) if macro is not None else top.start_byte
    return Edit(path, start, start, text)


def with_member(kernel: KernelProgram, f: Function, name: str, text: str, declared: str) -> tuple[Edit, ...]:
    """``declared`` as a member of the class of a method, and the text of the member's own class ``name``.

    Raises ValueError where the method's class isn't known (``KernelProgram.class_node``).
    """
    found = kernel.class_node(f)
    body = found[1].child_by_field_name("body") if found is not None else None
    if found is None or body is None:
        raise ValueError(f"{f.name} is of no known class")
    path, node = found
    end = body.end_byte - 1
    written = in_front(kernel, path, node, name, text)
    return (*([written] if written is not None else ()), Edit(path, end, end, f"\n public:\n  {declared}\n"))


def merged(edits: Iterable[Edit]) -> tuple[Edit, ...]:
    """The edits, equal ones once, with what is inserted at one place put together in its order."""
    inserted: dict[tuple[str, int], str] = {}
    rest = []
    for e in dict.fromkeys(edits):
        if e.start == e.end:
            inserted[e.path, e.start] = inserted.get((e.path, e.start), "") + e.text
        else:
            rest.append(e)
    return (*rest, *(Edit(path, at, at, text) for (path, at), text in inserted.items()))


def unused(kernel: KernelProgram, member: str) -> int:
    """The first number that makes a name of ``member`` which no file has, nor a higher one."""
    name = re.compile(rf"\b{member}(\d+)\b".encode())
    taken = [int(i) for s in kernel.program.files.values() for i in name.findall(s.data)]
    return max(taken, default=-1) + 1
