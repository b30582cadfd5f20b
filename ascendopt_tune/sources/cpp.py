"""Reading and editing a tiling or kernel program as text with a syntax tree (tree-sitter), never as a compiler would.

1. ``parse`` blanks out what C++ grammar can't see through (statement macros such as ``OP_CHECK(x, return ...)``,
   registration macros, address qualifiers such as ``__gm__``), and gives ``if ASCEND_IS_AIC`` its parentheses, byte for
   byte, so that every offset in the tree is an offset in the user's text.
2. ``SourceProgram`` holds the files of one program with their functions; ``program_of`` keeps the last few, because a
   search asks for the same parent again and again.
3. ``apply_edits`` replaces byte ranges; ``syntax_errors`` tells whether an edit broke the text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import tree_sitter_cpp
from tree_sitter import Language, Node, Parser, Query, QueryCursor, Tree

from .conditions import unused_branches

LANGUAGE = Language(tree_sitter_cpp.language())

# What looks like a macro, as CANN spells them: upper case with an underscore, and a call, or nothing, behind it.
_MACRO = re.compile(rb"\b([A-Z][A-Z0-9]*_[A-Z0-9_]+)[ \t]*(\(|;|(?=\r?\n))")
_QUALIFIER = re.compile(
    rb"\b(?:__(?:host_)?aicore__|__global__|__gm__|__ubuf__|__c[abc]?(?:buf)?__|__local_mem__|__BLOCK_LOCAL__|__inline__"
    rb"|__tiling_data_ptr__|__force_inline__|__restrict(?:__)?|__simd_\w+__|__(?:in|out|inout)_pipe__\([A-Z0-9]*\))(?!\w)"
)
# ``q.template FreeTensor(x)``: a call that deduces its arguments, for which the grammar wants them written.
_DEDUCED = re.compile(rb"(?:\.|->)\s*(template)\s+\w+\s*\(")
_LAUNCH = re.compile(rb"<<<[^;{}]*?>>>")  # ``kernel<<<blocks, l2, stream>>>(x)``
_TO_MEMBER = re.compile(rb"->(\*)\w+\s*\)")  # ``(object->*method)(...)``
# AscendC's conditions about the kind of core, which have their parentheses in the macro.
_KIND_OF_CORE = re.compile(rb"\bif(?:[ \t]+constexpr)?\s+(?:AscendC::)?(ASCEND_IS_(?:NOT_)?AI[CV])\b")
# ``OP_CHECK_IF(GetPlatform(context, cores) != OK, OP_LOGE(...), return FAILED)``: what it asks is done all the same.
_ASKS = re.compile(rb"\w*(?:CHECK|_IF)\w*")
_DEFINED = re.compile(rb"\b([A-Za-z_]\w*)\s*\([^;{}()]*\)\s*(?:const\s*)?\{")
_OWN_CALL = re.compile(rb"(?<![\w.>:])([A-Za-z_]\w*)\s*\(")
_DECLARES = re.compile(rb"\s*[A-Za-z~]")  # behind a macro on a line of its own: a template's head, where it runs
_CONTINUED = re.compile(rb"[ \t\r\n]*(?:[.&|+\-*/<>=,?]|->)(?:[^;{}]|\{[^;{}]*\})*;")
_SKIP = re.compile(rb"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'", re.DOTALL)
_COMMA = re.compile(_SKIP.pattern + rb"|[(){}\[\],]", re.DOTALL)
_SKIP_OR_BRACKET = re.compile(_SKIP.pattern + rb"|[()]", re.DOTALL)
_DIRECTIVE = re.compile(rb"^[ \t]*#(?:[^\n\\]|\\.|\\\r?\n)*", re.MULTILINE)
_SPACES = bytes(0x0A if byte == 0x0A else 0x20 for byte in range(256))  # each byte's place, line breaks as they are
_ZEROS = re.compile(rb"00+")
_TO_ZERO = bytes.maketrans(b"123456789", b"000000000")
_MANY = 64  # nodes below one, from which on they are kept
_FUNCTIONS = Query(LANGUAGE, "(function_definition) @node")


@dataclass(frozen=True)
class Edit:
    """Replace bytes ``start:end`` of the UTF-8 text of file ``path`` by ``text``."""

    path: str
    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Function:
    """A function definition: its unqualified name, its node and the names of its parameters in order."""

    path: str
    name: str
    node: Node
    parameters: tuple[str, ...]
    by_reference: tuple[bool, ...]  # parameter i is a reference or a pointer: the callee may write through it

    @property
    def body(self) -> Node:
        found = self.node.child_by_field_name("body")
        assert found is not None, "only definitions with a body are collected"
        return found


@dataclass(frozen=True)
class SourceFile:
    path: str
    data: bytes
    tree: Tree = field(compare=False)

    def text(self, node: Node) -> str:
        return self.data[node.start_byte : node.end_byte].decode("utf-8", "replace")


@dataclass(frozen=True)
class SourceProgram:
    """The parsed files of one program, in path order, and every function defined in them."""

    files: Mapping[str, SourceFile]
    functions: tuple[Function, ...]

    def text(self, path: str, node: Node) -> str:
        return self.files[path].text(node)


def walk(node: Node) -> Iterator[Node]:
    """``node`` and everything below it, in source order."""
    return iter(_below(node)) if node.descendant_count > _MANY else _walked(node)


def _walked(node: Node) -> Iterator[Node]:
    stack = [node]
    while stack:
        top = stack.pop()
        yield top
        stack.extend(reversed(top.children))


@lru_cache(maxsize=1024)  # each motif walks the same functions, and most of it is making the nodes' objects
def _below(node: Node) -> tuple[Node, ...]:
    return tuple(_walked(node))


def captured(query: Query, node: Node) -> list[Node]:
    """What the query calls ``@node``, in source order; who holds another one comes before it. Faster than ``walk``."""
    found = QueryCursor(query).captures(node).get("node", [])
    return sorted(found, key=lambda n: (n.start_byte, -n.end_byte))  # stable, for two of the same text


def _closing(data: bytearray, opening: int) -> int:
    """Offset just behind the parenthesis that closes the one at ``opening``; -1 if there is none."""
    depth = 0
    for found in _SKIP_OR_BRACKET.finditer(data, opening):
        depth += {b"(": 1, b")": -1}.get(found.group(), 0)
        if depth == 0:
            return found.end()
    return -1


def _asked(data: bytearray, opening: int, end: int) -> tuple[int, int] | None:
    """The first argument of a call whose parentheses are at ``opening`` and in front of ``end``; None if it is the only
    one."""
    depth = 0
    for found in _COMMA.finditer(data, opening, end):
        depth += {b"(": 1, b"[": 1, b"{": 1, b")": -1, b"]": -1, b"}": -1}.get(found.group(), 0)
        if depth == 1 and found.group() == b",":
            return opening + 1, found.start()
    return None


def _blank(data: bytearray, start: int, end: int) -> None:
    data[start:end] = data[start:end].translate(_SPACES)


def _starts_statement(data: bytearray, at: int, directive_ends: Sequence[int]) -> bool:
    """May a statement start at ``at``? ``directive_ends``: where directives end, ascending."""
    solid = len(data[:at].rstrip())
    last = bisect_right(directive_ends, at)
    return (
        not solid
        or data[solid - 1] in b";{}"
        or (data[solid - 1] in b":" and data[solid - 2 : solid - 1] != b":")
        or (data[solid - 1] in b")" and b"\n" in data[solid:at])
        or (last > 0 and directive_ends[last - 1] >= solid)
    )


def _blank_macro(out: bytearray, start: int, opening: int, end: int, defined: set[bytes]) -> None:
    """The macro call without what it does; what it asks first stays, where that calls one of the ``defined``."""
    asked = _asked(out, opening, end) if defined else None
    if asked is not None and defined.intersection(_OWN_CALL.findall(out, *asked)):
        _blank(out, start, asked[0])
        out[asked[1]] = 0x3B  # a statement of its own
        _blank(out, asked[1] + 1, end)
        return
    _blank(out, start, end)
    # A macro whose value is used (`IMPL_OP(X).Tiling(f);`) is no whole statement: the rest would be left hanging.
    rest = _CONTINUED.match(out, end)
    if rest:
        _blank(out, end, rest.end())


def _without_macros(data: bytes) -> bytes:
    """The text with statement macros and comments replaced by spaces; same length, same line breaks."""
    out = bytearray(data)
    for found in _SKIP.finditer(data):
        if found.group().startswith((b"//", b"/*")):
            _blank(out, found.start(), found.end())
    for start, end in unused_branches(bytes(out)):
        _blank(out, start, end)
    for found in _QUALIFIER.finditer(bytes(out)):
        _blank(out, found.start(), found.end())
    for found in _DEDUCED.finditer(bytes(out)):
        _blank(out, *found.span(1))
    for found in _LAUNCH.finditer(bytes(out)):
        _blank(out, *found.span())
    for found in _TO_MEMBER.finditer(bytes(out)):
        out[found.start(1)] = 0x5F  # a name's character: no reader of the tree follows such a call
    for found in _KIND_OF_CORE.finditer(bytes(out)):
        out[found.start(1)], out[found.end(1) - 1] = b"()"
    directives = [m.span() for m in _DIRECTIVE.finditer(out)]
    starts, ends = [a for a, _ in directives], [b for _, b in directives]
    defined = set(_DEFINED.findall(bytes(out))) - {b"if", b"for", b"while", b"switch"}
    for found in _MACRO.finditer(bytes(out)):
        start, opening = found.start(1), found.start(2)
        before = bisect_right(starts, start)
        if (before and start < ends[before - 1]) or out[start] == 0x20:
            continue
        if not _starts_statement(out, start, ends):
            continue
        bare = found.group(2) != b"("
        alone = found.group(2) == b"" and _DECLARES.match(out, found.end())
        if bare and not (alone or found.group(1).startswith(b"END_")):
            continue
        end = found.end() if bare else _closing(out, opening)
        if end < 0:
            continue
        _blank_macro(out, start, opening, end, defined if _ASKS.fullmatch(found.group(1)) else set())
    return bytes(out)


_READ_BYTES = 1 << 20
_DEPTH = 256  # what the C++ standard recommends that compilers allow
_BRACKETS = re.compile(rb"[][(){}<>]")
_OPERATORS = re.compile(rb"(?:[-+!~*&?:]\s*|if\s*\(\w*\)\s*|else\s+|#if.*\n){4096}")


def _too_deep(data: bytes) -> bool:
    """Whether brackets, or operators of one operand, are nested deeper than anybody nests them: queries of the tree
    take time by the square of its depth. ``<`` is mostly a comparison, so many may be open."""
    limits = dict(zip(b"({[<", (_DEPTH, _DEPTH, _DEPTH, 8 * _DEPTH), strict=True))
    if _OPERATORS.search(data) is not None:
        return True
    if all(data.count(bracket) <= limit for bracket, limit in limits.items()):
        return False
    opened = dict.fromkeys(limits, 0)
    closing = dict(zip(b")}]>", b"({[<", strict=True))
    for match in _BRACKETS.finditer(data):
        bracket = data[match.start()]
        if bracket in opened:
            opened[bracket] += 1
            if opened[bracket] > limits[bracket]:
                return True
        else:
            opened[closing[bracket]] -= opened[closing[bracket]] > 0
    return False


@lru_cache(maxsize=32)  # what proposes a text looks at it first, and what evaluates it once more
def parse(path: str, text: str) -> SourceFile:
    """The file with its syntax tree; never fails, since tree-sitter recovers from what it can't read. What is nested
    too deeply or too long for any hand to have written it has an empty tree: nobody looks for anything in it."""
    data = text.encode()
    read = b"" if len(data) > _READ_BYTES or _too_deep(data) else _without_macros(data)
    return SourceFile(path, data, Parser(LANGUAGE).parse(read))


def syntax_errors(source: SourceFile) -> int:
    """How many nodes the parser marked as an error or had to invent."""
    found, stack = 0, [source.tree.root_node]
    while stack:
        node = stack.pop()
        found += node.type == "ERROR" or node.is_missing
        stack.extend(c for c in node.children if c.has_error)
    return found


def declared_name(node: Node | None) -> Node | None:
    """The identifier inside a declarator (through pointers, references, arrays and initialisers), or None."""
    while node is not None and node.type not in ("identifier", "field_identifier"):
        inner = node.child_by_field_name("declarator")
        if inner is None and node.type in ("reference_declarator", "parenthesized_declarator"):
            inner = next((c for c in node.named_children), None)
        if inner is None and node.type == "qualified_identifier":
            inner = node.child_by_field_name("name")
        node = inner
    return node


def _functions(source: SourceFile) -> Iterator[Function]:
    for node in captured(_FUNCTIONS, source.tree.root_node):
        if node.child_by_field_name("body") is None:
            continue
        declarator = node.child_by_field_name("declarator")
        while declarator is not None and declarator.type != "function_declarator":
            declarator = declarator.child_by_field_name("declarator") or next(iter(declarator.named_children), None)
        if declarator is None:
            continue
        name = (
            source.text(declarator.child_by_field_name("declarator") or declarator)
            .split("(")[0]
            .split("::")[-1]
            .strip()
        )
        names: list[str] = []
        references: list[bool] = []
        parameters = declarator.child_by_field_name("parameters")
        for parameter in parameters.named_children if parameters is not None else ():
            if parameter.type in ("parameter_declaration", "optional_parameter_declaration"):
                inner = parameter.child_by_field_name("declarator")
                identifier = declared_name(inner)
                names.append(source.text(identifier) if identifier is not None else "")
                references.append(inner is not None and inner.type in ("reference_declarator", "pointer_declarator"))
        yield Function(source.path, name, node, tuple(names), tuple(references))


@lru_cache(maxsize=128)
def _program(files: tuple[tuple[str, str], ...]) -> SourceProgram:
    parsed = {path: parse(path, text) for path, text in files}
    return SourceProgram(parsed, tuple(f for source in parsed.values() for f in _functions(source)))


def program_of(files: Mapping[str, str]) -> SourceProgram:
    """The parsed program of ``files`` (path -> text)."""
    return _program(tuple(sorted(files.items())))


def tiling_functions(program: SourceProgram) -> tuple[Function, ...]:
    """Functions that set the block dim: a tiling function itself, or a helper it calls for that."""
    return tuple(
        f
        for f in program.functions
        if any(
            n.type == "field_expression" and program.text(f.path, n).endswith(("SetBlockDim", "SetSimdNumBlocks"))
            for n in walk(f.body)
        )
    )


def apply_edits(files: Mapping[str, str], edits: Sequence[Edit]) -> dict[str, str]:
    """The files with ``edits`` applied.

    Raises:
        ValueError: two edits overlap, or one lies outside its file.
    """
    out = dict(files)
    for path in sorted({e.path for e in edits}):
        data = files[path].encode()
        end = len(data)
        for e in sorted((e for e in edits if e.path == path), key=lambda e: (e.start, e.end), reverse=True):
            if not 0 <= e.start <= e.end <= end:
                raise ValueError(f"edit {e.start}:{e.end} of {path} overlaps another one or lies outside the file")
            data = data[: e.start] + e.text.encode() + data[e.end :]
            end = e.start
        out[path] = data.decode()
    return out


def breaks_syntax(before: Mapping[str, str], after: Mapping[str, str]) -> bool:
    """Does the changed text have more syntax errors than the text it was made from?"""
    changed: Iterable[str] = (path for path in after if not _same_shape(before.get(path, ""), after[path]))
    return any(_errors(p, after[p]) > _errors(p, before.get(p, "")) for p in changed)


def _same_shape(one: str, other: str) -> bool:
    """Do the texts differ in nothing but digits? Much of what a search tries does, and needs no parser."""
    return one == other or _without_digits(one) == _without_digits(other)


def _without_digits(text: str) -> bytes:
    """The text with one digit for a row of them, always the same."""
    return _ZEROS.sub(b"0", text.encode().translate(_TO_ZERO))


@lru_cache(maxsize=1024)
def _errors(path: str, text: str) -> int:
    """A search makes many texts from one, and proposes the same text more than once."""
    return syntax_errors(parse(path, text))
