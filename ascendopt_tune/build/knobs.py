"""Knobs: the numbers of a tiling program, lifted out of its text into a table that is read when it runs.

A search mostly changes numbers. ``lift`` turns a pair's host sources into a text without them and a table of their
values; programs are compiled and found again by that text, so another number runs no compiler. What stands in the
table has the type and the value that the literal had, so the program decides what the user's text decides.

A literal stays where it is when C++ wants a constant there (array bounds, template arguments, case labels, static
assertions, enumerators, constexpr functions, the preprocessor), or where it may mean more than a number: zero (a null
pointer) and arguments of macros. A ``constexpr`` constant becomes a ``const`` one unless its name is used where a
constant is wanted. What the rules here can't see the compiler tells: see ``blamed``.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from tree_sitter import Node, Query

from ..sources.cpp import LANGUAGE, SourceFile, captured, declared_name, parse

#: A literal of a pair's text: its file and its running number among the file's candidates.
Place = tuple[str, int]

_CONSTANT_WANTED = frozenset([
    "template_argument_list", "template_parameter_list", "static_assert_declaration", "enumerator", "bitfield_clause",
    "decltype", "attribute_declaration", "alignas_qualifier", "alignas_specifier", "noexcept", "subscript_designator",
])  # fmt: skip
_CONSTANT_FIELDS = {
    "array_declarator": "size", "case_statement": "value", "preproc_if": "condition", "preproc_elif": "condition",
}  # fmt: skip
_KINDS = _CONSTANT_WANTED | _CONSTANT_FIELDS.keys() | {
    "number_literal", "preproc_def", "declaration", "field_declaration", "function_definition", "lambda_expression",
    "class_specifier", "struct_specifier", "if_statement", "call_expression",
}  # fmt: skip
_NODES = Query(  # versions of the grammar know some of them by another name
    LANGUAGE, f"[{' '.join(f'({k})' for k in sorted(_KINDS) if LANGUAGE.id_for_node_kind(k, True))}] @node"
)
_NUMBER = re.compile(
    r"(?P<digits>0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)(?P<suffix>[uUlL]*)"
    r"|(?P<real>(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][+-]?\d+)?)(?P<float>[fF]?)"
)
_NAME = re.compile(r"[A-Za-z_]\w*")
_MACRO_NAME = re.compile(r"[A-Z][A-Z0-9_]*")
_PER_FILE = 1024
_LIMITS = {"int": 1 << 31, "unsigned": 1 << 32, "long": 1 << 63, "unsigned long": 1 << 64}


@dataclass(frozen=True)
class Lifted:
    """``files`` without their numbers; ``table``: the bits of each, in 64, as ``files`` index them."""

    files: Mapping[str, str]
    table: tuple[int, ...]


@dataclass(frozen=True)
class _Literal:
    place: Place
    start: int
    end: int
    line: int
    c_type: str
    bits: int
    constant: _Constant | None  # whose initializer it stands in


@dataclass(eq=False)
class _Constant:
    """A const or constexpr variable. ``keyword``: where ``constexpr`` stands, and what replaces it."""

    names: frozenset[str]
    uses: frozenset[str]  # every name in its declaration
    keyword: tuple[int, int, str] | None
    literals: list[_Literal] = field(default_factory=list)


@dataclass
class _File:
    source: SourceFile
    literals: list[_Literal] = field(default_factory=list)
    constants: list[_Constant] = field(default_factory=list)
    wanted: set[str] = field(default_factory=set)  # names used where a constant is wanted


def lift(files: Mapping[str, str], inline: frozenset[Place] = frozenset()) -> Lifted:
    """The files without their numbers, and the numbers.

    Args:
        files: path -> text of a pair's host sources.
        inline: literals that stay where they are.
    """
    read = [_read(path, files[path]) for path in sorted(files)]
    kept = _kept(read, inline)
    loose = _loose([c for f in read for c in f.constants if c not in kept])
    table: list[int] = []
    out = {}
    for i, f in enumerate(read):
        edits: list[tuple[int, int, str]] = [c.keyword for c in f.constants if c in loose and c.keyword is not None]
        loose_literals = [x for x in f.literals if x.place not in inline and x.constant not in kept]
        # Every file has its part of the table, so that a literal more in one changes no other.
        for index, x in enumerate(loose_literals[:_PER_FILE], i * _PER_FILE):
            edits.append((x.start, x.end, _expression(x.c_type, index)))
            table += [0] * (index - len(table)) + [x.bits]
        out[f.source.path] = _edited(f.source.data, edits)
    return Lifted(out, tuple(table))


def _kept(read: Sequence[_File], inline: frozenset[Place]) -> set[_Constant]:
    """Constants that stay: those wanted as such, or with a literal that stays, and what these are made of."""
    constants = [c for f in read for c in f.constants]
    wanted = {name for f in read for name in f.wanted}
    kept: set[_Constant] = set()
    while True:
        more = [
            c for c in constants if c not in kept and (c.names & wanted or any(x.place in inline for x in c.literals))
        ]
        if not more:
            return kept
        kept.update(more)
        wanted.update(name for c in more for name in c.uses)


def _loose(constants: Sequence[_Constant]) -> set[_Constant]:
    """Those that lose their constexpr: a number of theirs is lifted, or they are made of such a one."""
    loose = {c for c in constants if c.literals}
    while True:
        names = {name for c in loose for name in c.names}
        more = [c for c in constants if c not in loose and c.uses & names]
        if not more:
            return loose
        loose.update(more)


def blamed(files: Mapping[str, str], lines: Iterable[tuple[str, int]], names: Iterable[str]) -> frozenset[Place]:
    """The literals on these (path, line) and those of the constants of these names: what a compiler complains about."""
    at, called = set(lines), set(names)
    return frozenset(
        x.place
        for path in files
        for x in _read(path, files[path]).literals
        if (path, x.line) in at or (x.constant is not None and x.constant.names & called)
    )


def every(files: Mapping[str, str]) -> frozenset[Place]:
    """All literals that ``lift`` may lift."""
    return frozenset(x.place for path in files for x in _read(path, files[path]).literals)


def _expression(c_type: str, index: int) -> str:
    if c_type in ("float", "double"):
        return f"(({c_type})vnpu_knob_real({index}))"
    return f"(({c_type})vnpu_knobs[{index}])"


def _edited(data: bytes, edits: list[tuple[int, int, str]]) -> str:
    parts, at = [], 0
    for start, end, text in sorted(edits):
        parts += [data[at:start], text.encode()]
        at = end
    return b"".join([*parts, data[at:]]).decode()


# -- reading ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Scope:
    """What holds up to byte ``end``: the constant in whose declaration it is, and where that stands."""

    end: int
    constant: _Constant | None = None
    local: bool = False
    in_class: bool = False


@lru_cache(maxsize=64)  # a text is asked for again with other literals inline, and mostly only one file changes
def _read(path: str, text: str) -> _File:
    """Literals and constants of a file. Most nodes of a tree say nothing here, so a query picks those that do."""
    out = _File(parse(path, text))
    root = out.source.tree.root_node
    scopes = [_Scope(root.end_byte + 1)]
    closed: list[tuple[int, int]] = []  # what nothing is lifted from
    for node in captured(_NODES, root):
        while scopes[-1].end <= node.start_byte:
            scopes.pop()
        closed = [(start, end) for start, end in closed if end > node.start_byte]
        if not any(start <= node.start_byte for start, _ in closed):
            closed += _visit(out, node, scopes)
    return out


def _visit(out: _File, node: Node, scopes: list[_Scope]) -> Iterator[tuple[int, int]]:
    """Takes the node in; yields the parts of it where C++ wants constants. May add the scope that the node opens."""
    kind, scope = node.type, scopes[-1]
    if kind == "number_literal":
        _literal(out, node, scope.constant)
    elif kind == "preproc_def":
        yield node.start_byte, node.end_byte
    elif kind in _CONSTANT_WANTED or (kind == "function_definition" and _keyword(node, "constexpr") is not None):
        yield _want(out, node)
    elif kind in ("declaration", "field_declaration"):
        constant = _constant(out, node, scope.local, scope.in_class) or scope.constant
        scopes.append(replace(scope, end=node.end_byte, constant=constant))
    elif kind == "function_definition":
        scopes.append(_Scope(node.end_byte, None, True, False))
    elif kind == "lambda_expression":
        scopes.append(_Scope(node.end_byte, scope.constant, True, False))
    elif kind in ("class_specifier", "struct_specifier"):
        scopes.append(_Scope(node.end_byte, scope.constant, False, True))
    else:
        wanted = _wanted_child(node, out.source)
        if wanted is not None:
            yield _want(out, wanted)


def _want(out: _File, node: Node) -> tuple[int, int]:
    out.wanted.update(_NAME.findall(out.source.text(node)))
    return node.start_byte, node.end_byte


def _wanted_child(node: Node, source: SourceFile) -> Node | None:
    """The child that C++ wants to be constant, or that a macro may do with as it likes."""
    field_name = _CONSTANT_FIELDS.get(node.type)
    if node.type == "if_statement" and any(c.type == "constexpr" for c in node.children):
        field_name = "condition"
    if node.type == "call_expression":
        function = node.child_by_field_name("function")
        if function is not None and _MACRO_NAME.fullmatch(source.text(function)):
            field_name = "arguments"
    return node.child_by_field_name(field_name) if field_name else None


def _keyword(node: Node, word: str) -> Node | None:
    kinds = ("type_qualifier", "storage_class_specifier")
    return next((c for c in node.children if c.type in kinds and c.text == word.encode()), None)


def _constant(out: _File, node: Node, local: bool, in_class: bool) -> _Constant | None:
    constexpr, const = _keyword(node, "constexpr"), _keyword(node, "const")
    if constexpr is None and const is None:
        return None
    names: set[str] = set()
    for child in node.children_by_field_name("declarator"):
        declarator = child.child_by_field_name("declarator") if child.type == "init_declarator" else child
        name = declared_name(declarator)
        if name is not None and (child.type == "init_declarator" or in_class):
            names.add(out.source.text(name))
    if not names:
        return None
    if constexpr is None and in_class:
        out.wanted.update(names)  # initialized in the class: C++ wants a constant
    edit = None
    if constexpr is not None:
        words = [] if const is not None else ["const"]
        has_storage = any(c.type == "storage_class_specifier" and c != constexpr for c in node.children)
        if in_class:
            words.insert(0, "inline")
        elif not local and not has_storage:
            words.insert(0, "static")
        edit = (constexpr.start_byte, constexpr.end_byte, " ".join(words))
    constant = _Constant(frozenset(names), frozenset(_NAME.findall(out.source.text(node))), edit)
    out.constants.append(constant)
    return constant


def _literal(out: _File, node: Node, constant: _Constant | None) -> None:
    typed = _typed(out.source.text(node))
    if typed is None or _NAME.match(out.source.data[node.end_byte : node.end_byte + 1].decode("ascii", "replace")):
        return  # a name behind it makes it a literal of the user's own
    place = (out.source.path, len(out.literals))
    x = _Literal(place, node.start_byte, node.end_byte, node.start_point[0] + 1, *typed, constant)
    out.literals.append(x)
    if constant is not None:
        constant.literals.append(x)


def _typed(text: str) -> tuple[str, int] | None:
    """(C++ type, bits) of a literal, or None for one that isn't lifted. [lex.icon], [lex.fcon] for LP64."""
    found = _NUMBER.fullmatch(text.replace("'", ""))
    if found is None:
        return None
    if found["real"]:
        value = float(found["real"])
        bits: int = struct.unpack("Q", struct.pack("d", value))[0]
        if found["float"] and (abs(value) > 3.4e38 or bits & 0x1FFFFFFF == 0x10000000):
            return None  # rounding it twice might not be rounding it once
        return "float" if found["float"] else "double", bits
    digits, suffix = found["digits"], found["suffix"].lower()
    octal = len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()
    decimal = digits[0] != "0"
    value_of = int(digits, 8) if octal else int(digits, 0)
    if value_of == 0:
        return None
    types = ["int", "unsigned", "long", "unsigned long"]
    if "u" in suffix:
        types = ["unsigned", "unsigned long"]
    elif decimal:
        types = ["int", "long"]
    longs = suffix.count("l")
    if longs:
        types = [t for t in types if "long" in t]
    c_type = next((t for t in types if value_of < _LIMITS[t]), None)
    if c_type is None:
        return None
    return c_type.replace("long", "long long") if longs == 2 else c_type, value_of


def names_in(log: str) -> Iterator[str]:
    """Names that a compiler's messages quote."""
    for quoted in re.findall(r"[‘'`]([^’']+)[’']", log):
        yield from _NAME.findall(quoted)
