"""Sources of a library are compiled several at a time (build/libraries.py): what each keeps to itself has a name of its
own there. Else two helpers are overloads of each other, and a call finds the other file's without a word."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest
from tree_sitter import Node, Parser

from ascendopt_tune.build.libraries import PARTS, VNPU, joined, libraries
from ascendopt_tune.sources.cpp import LANGUAGE

INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
DEFINE = re.compile(r"^[ \t]*#[ \t]*(define|undef)[ \t]+(\w+)", re.MULTILINE)
WHICH_LINKAGE = re.compile(r"(?<!define )(?<!undef )\bVNPU_(?:API|WRAP)\b")  # the grammar takes them for types
PRAGMA = re.compile(r"^[ \t]*#[ \t]*pragma\b.*", re.MULTILINE)
TYPES = ("struct_specifier", "class_specifier", "union_specifier", "enum_specifier")
#: What declarations stand in that are no scope of their own, or a namespace's.
AROUND = ("linkage_specification", "declaration_list", "template_declaration", "preproc_if", "preproc_ifdef",
          "preproc_else", "preproc_elif")  # fmt: skip
#: Declarators whose name is another scope's: a member, a function of a namespace, a specialization; or an operator.
ELSEWHERE = ("qualified_identifier", "template_function", "operator_name", "destructor_name", "operator_cast")


@dataclass
class Text:
    """What a source or header declares at namespace scope, and what it calls."""

    own: dict[str, int] = field(default_factory=dict)  # what no other file can link to: name -> line
    shared: dict[str, tuple[str, int]] = field(default_factory=dict)  # the others -> namespace, line
    anywhere: set[str] = field(default_factory=set)  # members, parameters and variables as well
    calls: dict[str, int] = field(default_factory=dict)  # by the name alone -> line
    opened: set[str] = field(default_factory=set)  # namespaces that it is `using` for all that follows
    macros: dict[str, int] = field(default_factory=dict)  # left defined at its end
    pragmas: list[int] = field(default_factory=list)
    unread: list[int] = field(default_factory=list)  # what the grammar makes nothing of


def words(node: Node) -> str:
    return (node.text or b"").decode()


def line(node: Node) -> int:
    return node.start_point.row + 1


def name_of(declarator: Node | None) -> str | None:
    while declarator is not None and declarator.type not in ELSEWHERE:
        if declarator.type in ("identifier", "type_identifier", "field_identifier"):
            return words(declarator)
        inner = declarator.child_by_field_name("declarator")
        declarator = inner or next((c for c in declarator.named_children if c.type.endswith(("declarator", *ELSEWHERE))
                                    or c.type.endswith("identifier")), None)  # fmt: skip
    return None


def declared_by(node: Node) -> Iterator[str]:
    """Names that one declaration, definition or type introduces into the scope it stands in."""
    kind = node if node.type in TYPES else node.child_by_field_name("type")
    if kind is not None and kind.type in TYPES and (body := kind.child_by_field_name("body")) is not None:
        name = kind.child_by_field_name("name")
        if name is not None and name.type == "type_identifier":
            yield words(name)
        if kind.type == "enum_specifier" and not any(c.type in ("class", "struct") for c in kind.children):
            yield from (words(c.named_children[0]) for c in body.named_children if c.type == "enumerator")
    if node.type in ("function_definition", "declaration", "type_definition"):
        yield from filter(None, map(name_of, node.children_by_field_name("declarator")))
    if node.type in ("alias_declaration", "namespace_alias_definition"):
        yield words(node.named_children[0])


def at_scope(node: Node, namespace: str = "", own: bool = False) -> Iterator[tuple[Node, str, bool]]:
    """Declarations at namespace scope, with their namespace, and whether they are the file's own."""
    for child in node.children:
        if child.type == "namespace_definition":
            name, body = child.child_by_field_name("name"), child.child_by_field_name("body")
            assert body is not None
            inner = namespace if name is None else f"{namespace}::{words(name)}"
            yield from at_scope(body, inner, own or name is None)
        elif child.type in AROUND:
            yield from at_scope(child, namespace, own)
        else:
            static = any(c.type == "storage_class_specifier" and words(c) == "static" for c in child.children)
            yield child, namespace, own or static


def everything(node: Node) -> Iterator[Node]:
    yield node
    for child in node.named_children:
        yield from everything(child)


def read(text: str) -> Text:
    found = Text()
    tree = Parser(LANGUAGE).parse(WHICH_LINKAGE.sub("", text).encode())
    for node, namespace, own in at_scope(tree.root_node):
        if node.type == "using_declaration" and "namespace" in words(node).split():
            found.opened.add(words(node).split()[-1].rstrip(";"))
        if node.type == "ERROR":
            found.unread.append(line(node))
        for name in declared_by(node):
            if own:
                found.own.setdefault(name, line(node))
            else:
                found.shared.setdefault(name, (namespace, line(node)))
    for node in everything(tree.root_node):
        if node.type.endswith("declarator") or node.type.endswith("declaration"):
            found.anywhere.update(
                filter(None, (name_of(d) for d in (node, *node.children_by_field_name("declarator"))))
            )
        if node.type == "call_expression" and (called := node.child_by_field_name("function")) is not None:
            if called.type == "template_function":
                called = called.child_by_field_name("name") or called
            if called.type == "identifier":
                found.calls.setdefault(words(called), line(node))
    for match in DEFINE.finditer(text):
        if match[1] == "define":
            found.macros[match[2]] = text.count("\n", 0, match.start()) + 1
        else:
            found.macros.pop(match[2], None)
    found.pragmas = [text.count("\n", 0, m.start()) + 1 for m in PRAGMA.finditer(text) if "once" not in m[0]]
    return found


def clashes(sources: Mapping[str, str], headers: Mapping[str, str]) -> list[str]:
    """What the texts of a library's sources, by name, have that means something else when they are one text."""
    read_headers = {name: parsed(text) for name, text in headers.items()}
    read_sources = {name: parsed(text) for name, text in sources.items()}
    places: dict[str, list[tuple[str, str, int]]] = defaultdict(list)  # of headers' names: namespace, file, line
    for file, header in read_headers.items():
        for name, (namespace, at) in header.shared.items():
            places[name].append((namespace, file, at))
        for name, at in header.own.items():
            places[name].append(("", file, at))
    found, first = [], {}
    for file, source in read_sources.items():
        own = dict(source.own)
        # What no header declares is known to this file alone, whatever its linkage.
        own |= {name: at for name, (namespace, at) in source.shared.items()
                if not any(namespace == other for other, *_ in places.get(name, ()))}  # fmt: skip
        for name, at in own.items():
            others = [f"{other}:{there}" for _, other, there in places.get(name, ())]
            others += [first[name]] if name in first else []
            found += [f"{name}: {file}:{at} and {other}" for other in others]
            first.setdefault(name, f"{file}:{at}")
    # A call of what its file doesn't declare, a function of the C library for one, would find another file's own.
    known = {name for header in read_headers.values() for name in header.anywhere} | places.keys()
    for file, text in (*read_sources.items(), *read_headers.items()):
        for name, at in text.calls.items():
            if name in first and name not in text.anywhere | text.own.keys() | text.shared.keys() | known:
                found.append(f"{name}: {first[name]}, and {file}:{at} calls another one")
    opened = {f"::{namespace}" for source in read_sources.values() for namespace in source.opened}
    for name, where in places.items():
        spaces = {namespace for namespace, *_ in where}
        if spaces & opened and len(spaces & (opened | {""})) > 1:
            found.append(f"{name}: " + " and ".join(f"{file}:{at}" for _, file, at in where) + ", of opened namespaces")
    for file, source in read_sources.items():
        found += [f"{file}:{at} leaves {name} defined" for name, at in source.macros.items()]
        found += [f"{file}:{at}: a #pragma holds for the sources behind it" for at in source.pragmas]
        found += [f"{file}:{at} can't be read" for at in source.unread]
    return found


parsed = cache(read)


def reached(source: Path, seen: set[Path]) -> None:
    """Adds the source and the project's headers that it includes, directly or not."""
    if source in seen:
        return
    seen.add(source)
    for name in INCLUDE.findall(source.read_text()):
        folders = (source.parent, VNPU / "include", VNPU / "host" / "include", VNPU)
        file = next((f / name for f in folders if (f / name).exists()), None)
        assert file is not None, f"{source}: {name}"
        reached(file.resolve(), seen)


@pytest.mark.parametrize("library", libraries())
def test_names_of_a_library_are_used_once(library: str) -> None:
    sources = libraries()[library]
    files: set[Path] = set()
    for source in sources:
        reached(source, files)
    texts = {str(file.relative_to(VNPU)): file.read_text() for file in sorted(files)}
    own = [str(source.relative_to(VNPU)) for source in sources]
    assert len(texts) > len(own) > 5
    assert clashes({f: texts[f] for f in own}, {f: t for f, t in texts.items() if f not in own}) == []


WINDOWS = (
    "namespace vnpu {\nnamespace {\nuint32_t up(uint32_t n, uint32_t size) { return (n + size - 1) / size; }\n}\n}"
)
OPERAND = "namespace vnpu {\ninline int32_t up(int32_t n, int32_t to) { return (n + to - 1) / to * to; }\n}\n"


def test_a_helper_that_a_header_has_too_is_found() -> None:
    """Joined, these two gave 18 wrong products: calls with numbers of the other sign took the other one."""
    assert clashes({"windows.cpp": WINDOWS}, {"operand.h": OPERAND}) == ["up: windows.cpp:3 and operand.h:2"]


@pytest.mark.parametrize(
    ("one", "other", "name"),
    [
        ("namespace { int f(int x) { return x; } }", "namespace n {\nstatic int f(long x) { return 1; }\n}", "f"),
        ("namespace n { namespace { template <typename T> T f(T x) { return x; } } }", "static int f = 1;", "f"),
        ("namespace { constexpr int kSize = 2, *p = nullptr; }", "namespace n { namespace { int* p; } }", "p"),
        ("namespace { struct Part { int x; }; }", "namespace n { namespace { enum class Part { A }; } }", "Part"),
        ("namespace { enum Kind { A, B }; }", "namespace { using B = int; }", "B"),
        ("namespace n { double known_to_nobody(int); }", "namespace { int known_to_nobody(); }", "known_to_nobody"),
        ("namespace { float exp(float x); }", "float f(double x) { return exp(x); }", "exp"),
        ("namespace { float pow2(float x); }", "int f() { return pow2<int>(1); }", "pow2"),
        ("#define SIZE 1\nint a = SIZE;", "", "SIZE"),
        ("#pragma GCC optimize(0)", "", "pragma"),
    ],
)
def test_what_is_found(one: str, other: str, name: str) -> None:
    found = clashes({"a.cpp": one, "b.cpp": other}, {})
    assert len(found) == 1, found
    assert name in found[0]


def test_names_of_opened_namespaces_are_found() -> None:
    headers = {"a.h": "namespace n { int fail(long); }", "b.h": "int fail(int);"}
    assert clashes({"a.cpp": "using namespace n;"}, headers) != []
    assert clashes({"a.cpp": "namespace n { int x = 1; }"}, headers) == []


def test_what_is_no_clash() -> None:
    one = """
#define SIZE(x) 1
namespace n {
namespace { struct Part { int size; void f(); }; void Part::f() { int other = 1; } int own(int up) { return up; } }
template <> int declared<int>(int x) { return own(x); }
int declared(int x) { return std::exp(x); }
}
#undef SIZE
"""
    other = """
#define SIZE 2
namespace n { int f() { int own = 1; return own; } int Known::own() { return own(); } }
#undef SIZE
"""
    header = "namespace n { int declared(int); int f(); struct Known { int own(); }; }"
    assert clashes({"a.cpp": one, "b.cpp": other}, {"n.h": header}) == []


def test_sources_are_joined_alike_everywhere() -> None:
    for library, sources in libraries().items():
        parts = joined(sources, PARTS[library])
        assert [source for part in parts for source in part] == sources == sorted(sources)
        sizes = [sum(source.stat().st_size for source in part) for part in parts]
        assert len(parts) == PARTS[library]
        assert max(sizes) < 1.5 * min(sizes), (library, sizes)
