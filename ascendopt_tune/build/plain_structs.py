"""Tiling data that are a plain struct of the kernel's own header, as CANN's operators have them today.

Host and kernel include the same header, so that the compiler knows the layout; what has to be known here is whether its
values may be constants: numbers, no long lists, nothing with a meaning of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tree_sitter import Node

from ..sources.cpp import SourceProgram, program_of, walk
from .constants import LONGEST, NUMBERS

# Bytes of numbers as host and device both have them.
_NUMBERS = NUMBERS | {
    "char": 1, "short": 2, "int": 4, "unsigned": 4, "unsigned int": 4, "long": 8, "unsigned long": 8, "long long": 8,
    "unsigned long long": 8, "size_t": 8,
}  # fmt: skip
_NAMED = re.compile(r"\b(?:constexpr|const)\b[^;={}()]*?\b(\w+)\s*=\s*(\d+)[uUlL]*\s*;|#\s*define\s+(\w+)\s+\(?(\d+)")


def plain_structs(files: Mapping[str, str]) -> frozenset[str]:
    """Names of the structs that kernel files define and that have nothing but numbers in them, and lists of at most
    ``constants.LONGEST`` bytes; names that are defined twice are left out.
    """
    program = program_of(files)
    counts = {m[1] or m[3]: int(m[2] or m[4]) for text in files.values() for m in _NAMED.finditer(text)}
    found: dict[str, list[tuple[str, Node]]] = {}
    for path, node in _definitions(program):
        found.setdefault(_name(program, path, node), []).append((path, node))
    plain: set[str] = set()
    grown = True
    while grown:  # a struct of structs is plain once they are
        more = {
            name
            for name, (one, *others) in found.items()
            if name not in plain and not others and _is_plain(program, *one, counts, plain)
        }
        plain |= more
        grown = bool(more)
    return frozenset(plain)


def _definitions(program: SourceProgram) -> Iterator[tuple[str, Node]]:
    for path, source in program.files.items():
        for node in walk(source.tree.root_node):
            if node.type == "struct_specifier" and node.child_by_field_name("body") is not None:
                yield path, node


def _name(program: SourceProgram, path: str, node: Node) -> str:
    name = node.child_by_field_name("name")
    return program.text(path, name) if name is not None else ""


def _is_plain(program: SourceProgram, path: str, node: Node, counts: Mapping[str, int], plain: set[str]) -> bool:
    body = node.child_by_field_name("body")
    bases = any(child.type == "base_class_clause" for child in node.children)
    fields = [child for child in body.named_children if child.type != "comment"] if body is not None else []
    return bool(fields) and not bases and all(_is_number(program, path, f, counts, plain) for f in fields)


def _is_number(program: SourceProgram, path: str, field: Node, counts: Mapping[str, int], plain: set[str]) -> bool:
    """Does the declaration declare numbers, short lists of them, or a plain struct?"""
    kind = field.child_by_field_name("type") if field.type == "field_declaration" else None
    if kind is None or any(child.type == "bitfield_clause" for child in field.children):
        return False
    type_ = program.text(path, kind).removeprefix("std::")
    bytes_ = _NUMBERS.get(type_, 0)
    if not bytes_ and type_ not in plain:
        return False
    for declared in field.children_by_field_name("declarator"):
        if declared.type == "field_identifier":
            continue
        length = re.fullmatch(r"\w+\s*\[\s*(\w+)\s*\]", program.text(path, declared))
        if length is None or not bytes_:
            return False
        count = int(length[1]) if length[1].isdigit() else counts.get(length[1], LONGEST + 1)
        if count * bytes_ > LONGEST:
            return False
    return True
