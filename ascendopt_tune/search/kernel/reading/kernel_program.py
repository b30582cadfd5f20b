"""What motifs know of a kernel: its syntax trees, and the facts read from them. No operator has a name here.

1. ``KernelProgram.program`` parses the kernel's files (sources/cpp.py keeps the last few).
2. *Live* functions are those the kernel's entry can reach: by names mentioned in bodies and in classes, branches of
   other tiling keys left out when the key is known. What can't be resolved counts as reachable.
3. ``calls`` are the AscendC calls of live functions in source order; ``repeated`` tells what runs more than once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar, cast

from tree_sitter import Node

from ....nouns.chip import Chip
from ....sources.cpp import Edit, Function, SourceProgram, program_of, walk

LOOPS = ("for_statement", "while_statement", "do_statement", "for_range_loop")
CLASSES = ("class_specifier", "struct_specifier")
_ENTRY = re.compile(r"\b__global__\b")
_KEY = re.compile(r"^\(?\s*TILING_KEY_IS\(\s*(\d+)[uUlL]*\s*\)\s*\)?$")
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)((?:[^\n\\]|\\.|\\\r?\n)*)", re.MULTILINE)
_WORD = re.compile(r"\b[A-Za-z_]\w*\b")
_GIVEN = re.compile(r"\b([A-Za-z_]\w*)\s*<([^<>;{}]*)>")
_ASSIGNED = re.compile(r"\b([A-Za-z_]\w*)\s*=\s*(\w+)\s*[,;}]")

T = TypeVar("T")
Where = tuple[str, int, int]  # path, first byte, byte behind the last


@dataclass(frozen=True)
class ApiCall:
    """A call: ``name`` without namespace, receiver and template arguments; ``receiver`` is ``q`` in ``q.EnQue(x)``."""

    path: str
    node: Node
    name: str
    template: str
    receiver: str
    args: tuple[str, ...]
    function: Function

    @property
    def statement(self) -> Node | None:
        """The expression statement that is this call and nothing else, or None."""
        parent = self.node.parent
        return parent if parent is not None and parent.type == "expression_statement" else None

    @property
    def arguments(self) -> tuple[Node, ...]:
        found = self.node.child_by_field_name("arguments")
        return tuple(found.named_children) if found is not None else ()

    def spelled(self, name: str, *args: str) -> str:
        """A call of ``name`` with these arguments, in the namespace this call names."""
        called = self.node.child_by_field_name("function")
        text = (called.text or b"").decode("utf-8", "replace") if called is not None else ""
        return f"{'AscendC::' if text.startswith('AscendC::') else ''}{name}({', '.join(args)})"


@dataclass(frozen=True)
class BlockStep:
    """A statement of a block; ``call`` if it is a call and nothing else."""

    node: Node
    call: ApiCall | None


@dataclass(frozen=True)
class Block:
    """The statements between two braces, in order."""

    function: Function
    node: Node
    steps: tuple[BlockStep, ...]


@dataclass(frozen=True)
class NamedConstant:
    """A number with a name: ``constexpr int32_t BUFFER_NUM = 2;`` or ``#define BUFFER_NUM 2``."""

    path: str
    name: str
    value: int
    start: int
    end: int


@dataclass(frozen=True)
class KernelProgram:
    """A parsed kernel with the facts motifs need; equal inputs give equal facts.

    ``tiling``: the tiling program's files, for motifs that change both; ``chip``: its numbers (None: unknown);
    ``auto_sync``: built with the compiler's automatic synchronization; ``tiling_key``: the key the case's tiling leads
    to (None: unknown, every branch is live).
    """

    files: Mapping[str, str]
    tiling: Mapping[str, str] = field(default_factory=dict)
    chip: Chip | None = None
    auto_sync: bool = True
    tiling_key: int | None = None

    # -- texts ---------------------------------------------------------------------------------------------------------

    @cached_property
    def program(self) -> SourceProgram:
        return program_of(self.files)

    def text(self, path: str, node: Node) -> str:
        return self.program.text(path, node)

    # -- what is reachable ---------------------------------------------------------------------------------------------

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        """Live functions, in source order; all of them when the entry isn't found."""
        entries = [f for f in self.program.functions if _ENTRY.search(self._head(f))]
        if not entries:
            return self.program.functions
        mentioned: set[str] = set()
        live: set[Where] = set()
        pending = [w for f in entries for w in self._mentions(f)]
        live |= {where(f) for f in entries}
        while pending:
            word = pending.pop()
            if word in mentioned:
                continue
            mentioned.add(word)
            pending += self._macros.get(word, ())
            pending += self._class_words.get(word, ())
            for f in self._by_name.get(word, ()):
                if self.class_of(f) in mentioned | {""} and where(f) not in live:
                    live.add(where(f))
                    pending += self._mentions(f)
            # Methods of a class that was mentioned only now, whose names were mentioned before.
            for f in self._by_class.get(word, ()):
                if f.name in mentioned and where(f) not in live:
                    live.add(where(f))
                    pending += self._mentions(f)
        return tuple(f for f in self.program.functions if where(f) in live)

    def _head(self, f: Function) -> str:
        data = self.program.files[f.path].data
        start = max(data.rfind(b";", 0, f.node.start_byte), data.rfind(b"}", 0, f.node.start_byte)) + 1
        return data[start : f.body.start_byte].decode("utf-8", "replace")

    @cached_property
    def _by_name(self) -> dict[str, list[Function]]:
        out: dict[str, list[Function]] = {}
        for f in self.program.functions:
            out.setdefault(f.name.partition("<")[0], []).append(f)
        return out

    @cached_property
    def _by_class(self) -> dict[str, list[Function]]:
        out: dict[str, list[Function]] = {}
        for f in self.program.functions:
            out.setdefault(self.class_of(f), []).append(f)
        return out

    def class_of(self, f: Function) -> str:
        """The class a function belongs to (also when defined outside of it), or an empty string."""
        if where(f) not in self._classes_of:
            self._classes_of[where(f)] = self._class_of(f)
        return self._classes_of[where(f)]

    @cached_property
    def _classes_of(self) -> dict[Where, str]:
        return {}  # filled as functions are asked for

    def _class_of(self, f: Function) -> str:
        node = f.node.parent
        while node is not None:
            if node.type in CLASSES:
                name = node.child_by_field_name("name")
                return self.text(f.path, name).partition("<")[0].strip() if name is not None else ""
            node = node.parent
        declarator = f.node.child_by_field_name("declarator")
        if declarator is None:
            return ""
        qualified = self.text(f.path, declarator).split("(")[0].split("::")
        words = re.sub(r"<.*", "", qualified[-2], flags=re.DOTALL).split() if len(qualified) > 1 else []
        return words[-1] if words else ""  # `::f` is a function of no class

    def class_node(self, f: Function) -> tuple[str, Node] | None:
        """(path, node) of the class of a method, with its body; None where there isn't exactly one of the name."""
        if where(f) not in self._nodes_of:
            self._nodes_of[where(f)] = self._class_node(f)
        return self._nodes_of[where(f)]

    @cached_property
    def _nodes_of(self) -> dict[Where, tuple[str, Node] | None]:
        return {}  # filled as functions are asked for

    def _class_node(self, f: Function) -> tuple[str, Node] | None:
        node = f.node.parent
        while node is not None and node.type not in CLASSES:
            node = node.parent
        if node is not None:
            return (f.path, node) if node.child_by_field_name("body") is not None else None
        name = self.class_of(f)
        found = [(path, n) for path, n in self.class_nodes if name and self.title(path, n) == name]
        return found[0] if len(found) == 1 else None

    @cached_property
    def class_nodes(self) -> tuple[tuple[str, Node], ...]:
        """Definitions of classes that have a body, in all files."""
        return tuple(
            (path, node)
            for path, source in self.program.files.items()
            for node in walk(source.tree.root_node)
            if node.type in CLASSES and node.child_by_field_name("body") is not None
        )

    @cached_property
    def fields(self) -> tuple[tuple[str, Node, Node], ...]:
        """(path, declaration, its type) of members of classes, in all files."""
        return tuple(
            (path, node, kind)
            for path, source in self.program.files.items()
            for node in walk(source.tree.root_node)
            if node.type == "field_declaration" and (kind := node.child_by_field_name("type")) is not None
        )

    def title(self, path: str, node: Node) -> str:
        """The name of a class without its template arguments."""
        name = node.child_by_field_name("name")
        return self.text(path, name).partition("<")[0].strip() if name is not None else ""

    def given(self, f: Function, parameter: str) -> frozenset[str]:
        """What the files give a template parameter of a method's class; nothing where it isn't one."""
        found = self.class_node(f)
        head = found[1].parent if found is not None else None
        if found is None or head is None or head.type != "template_declaration":
            return frozenset()
        listed = head.child_by_field_name("parameters")
        parameters = [self.text(found[0], n).split()[-1] for n in listed.named_children] if listed is not None else []
        if parameter not in parameters:
            return frozenset()
        place = parameters.index(parameter)
        lists = self._arguments.get(self.title(*found), ())
        return frozenset(args[place].strip() for args in lists if place < len(args))

    @cached_property
    def _arguments(self) -> dict[str, list[list[str]]]:
        """By name in front of a ``<``, the lists of template arguments that the files give it."""
        out: dict[str, list[list[str]]] = {}
        for source in self.program.files.values():
            for name, args in _GIVEN.findall(source.data.decode("utf-8", "replace")):
                out.setdefault(name, []).append(args.split(","))
        return out

    @cached_property
    def _class_words(self) -> dict[str, set[str]]:
        """Class name -> words of its text outside of function bodies: base classes, types of fields."""
        out: dict[str, set[str]] = {}
        for path, node in self.class_nodes:
            body = node.child_by_field_name("body")
            if body is None or node.child_by_field_name("name") is None:
                continue
            head = self.program.files[path].data[node.start_byte : body.start_byte].decode("utf-8", "replace")
            fields = [self.text(path, c) for c in body.named_children if c.type == "field_declaration"]
            out.setdefault(self.title(path, node), set()).update(_WORD.findall("\n".join([head, *fields])))
        return out

    @cached_property
    def _macros(self) -> dict[str, list[str]]:
        return {
            name: _WORD.findall(body)
            for source in self.program.files.values()
            for name, body in _MACRO.findall(source.data.decode("utf-8", "replace"))
        }

    def _mentions(self, f: Function) -> set[str]:
        """Words in the function, its head included, without the branches of other tiling keys."""
        data = bytearray(self.program.files[f.path].data)
        for start, end in self._dead_ranges(f):
            data[start:end] = b" " * (end - start)
        return set(_WORD.findall(data[f.node.start_byte : f.node.end_byte].decode("utf-8", "replace")))

    def _dead_ranges(self, f: Function) -> Iterator[tuple[int, int]]:
        if self.tiling_key is None or b"TILING_KEY_IS" not in self.program.files[f.path].data:
            return
        for node in walk(f.body):
            if node.type != "if_statement":
                continue
            condition, branch = node.child_by_field_name("condition"), node.child_by_field_name("consequence")
            found = _KEY.match(self.text(f.path, condition)) if condition is not None else None
            if found and branch is not None and int(found[1]) != self.tiling_key:
                yield branch.start_byte, branch.end_byte

    # -- calls ---------------------------------------------------------------------------------------------------------

    @cached_property
    def calls(self) -> tuple[ApiCall, ...]:
        return tuple(c for f in self.functions for c in self._live_calls_in(f))

    def calls_of(self, f: Function) -> Iterator[ApiCall]:
        """Those in the body of one live function."""
        return iter(self._calls_by_function.get(where(f), ()))

    @cached_property
    def _calls_by_function(self) -> dict[Where, list[ApiCall]]:
        out: dict[Where, list[ApiCall]] = {}
        for c in self.calls:
            out.setdefault(where(c.function), []).append(c)
        return out

    def named(self, *names: str) -> Iterator[ApiCall]:
        return (c for c in self.calls if c.name in names)

    def calls_in(self, f: Function) -> tuple[ApiCall, ...]:
        """Those in the body of any function, reachable or not."""
        if where(f) not in self._calls_in:
            nodes = (n for n in walk(f.body) if n.type == "call_expression")
            self._calls_in[where(f)] = tuple(self.call_at(f, n) for n in nodes)
        return self._calls_in[where(f)]

    @cached_property
    def _calls_in(self) -> dict[Where, tuple[ApiCall, ...]]:
        return {}  # filled as functions are asked for

    def _live_calls_in(self, f: Function) -> Iterator[ApiCall]:
        dead = list(self._dead_ranges(f))
        return (c for c in self.calls_in(f) if not any(a <= c.node.start_byte < b for a, b in dead))

    def call_at(self, f: Function, node: Node) -> ApiCall:
        """The call expression ``node`` of function ``f``."""
        called = node.child_by_field_name("function")
        text = self.text(f.path, called) if called is not None else ""
        bare = re.sub(r"<.*>$", "", text, flags=re.DOTALL).strip()
        template = text[len(bare) :].strip()
        receiver, _, name = re.sub(r"\btemplate\s+", "", bare).rpartition(".")
        if "->" in name:
            receiver, _, name = bare.replace("template ", "").rpartition("->")
        arguments = node.child_by_field_name("arguments")
        args = tuple(self.text(f.path, a) for a in arguments.named_children) if arguments is not None else ()
        return ApiCall(f.path, node, name.split("::")[-1].strip(), template, receiver.strip(), args, f)

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """Every ``{...}`` of live functions, outer ones first."""
        out = []
        for f in self.functions:
            dead = list(self._dead_ranges(f))
            for node in walk(f.body):
                if node.type == "compound_statement" and not any(a <= node.start_byte < b for a, b in dead):
                    out.append(Block(f, node, tuple(BlockStep(s, self.call_of(f, s)) for s in node.named_children)))
        return tuple(out)

    def call_of(self, f: Function, statement: Node | None) -> ApiCall | None:
        """The call that a statement is, or None when it is something else."""
        if statement is None or statement.type != "expression_statement" or not statement.named_children:
            return None
        node = statement.named_children[0]
        return self.call_at(f, node) if node.type == "call_expression" else None

    # -- what runs more than once --------------------------------------------------------------------------------------

    @cached_property
    def _repeated_functions(self) -> frozenset[str]:
        """Names of functions that are called, directly or not, from inside a loop."""
        known = {f.name for f in self.functions}
        out: set[str] = set()
        pending = [c.name for c in self.calls if c.name in known and loops_around(c.node, c.function)]
        while pending:
            name = pending.pop()
            if name not in out:
                out.add(name)
                pending += [c.name for c in self.calls if c.function.name == name and c.name in known]
        return frozenset(out)

    def repeated(self, f: Function, node: Node) -> bool:
        """Does ``node`` lie in a loop, or in a function that is called from one?"""
        return f.name in self._repeated_functions or bool(loops_around(node, f))

    def once(self, make: Callable[[KernelProgram], T]) -> T:
        """What ``make`` says of this program, asked once: for facts that several motifs want (``once(Steady)``)."""
        if make not in self._made:
            self._made[make] = make(self)
        return cast(T, self._made[make])

    @cached_property
    def _made(self) -> dict[Callable[[KernelProgram], Any], Any]:
        return {}

    # -- names ---------------------------------------------------------------------------------------------------------

    @cached_property
    def words_assigned(self) -> dict[str, set[str]]:
        """By name, the numbers and names that stand alone behind a ``=`` of its, in any file."""
        out: dict[str, set[str]] = {}
        for source in self.program.files.values():
            for name, word in _ASSIGNED.findall(source.data.decode("utf-8", "replace")):
                out.setdefault(name, set()).add(word)
        return out

    @cached_property
    def constants(self) -> tuple[NamedConstant, ...]:
        """Integer constants of all files with a literal as their value."""
        declared = re.compile(rb"\b(?:const|constexpr)\b[^;={}()]*?\b(\w+)\s*=\s*(\d+)[uUlL]*\s*;")
        defined = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+\(?(\d+)[uUlL]*\)?[ \t]*\r?$", re.MULTILINE)
        return tuple(
            NamedConstant(path, m[1].decode(), int(m[2]), m.start(2), m.end(2))
            for path, source in self.program.files.items()
            for pattern in (declared, defined)
            for m in pattern.finditer(source.data)
        )

    def site(self, f: Function, node: Node) -> str:
        """A name of the place that survives edits elsewhere: function and text, numbered where that repeats."""
        text = flat(self.text(f.path, node))
        twins = [n for n in self._texts.get((f.path, f.node.start_byte, text), ()) if n < node.start_byte]
        return f"{f.name}/{text[:60]}" + (f"#{len(twins) + 1}" if twins else "")

    @cached_property
    def _texts(self) -> dict[tuple[str, int, str], list[int]]:
        out: dict[tuple[str, int, str], list[int]] = {}
        for f in self.functions:
            for node in walk(f.body):
                if node.type in (*LOOPS, "expression_statement", "declaration", "call_expression"):
                    out.setdefault((f.path, f.node.start_byte, flat(self.text(f.path, node))), []).append(
                        node.start_byte
                    )
        return out

    # -- edits ---------------------------------------------------------------------------------------------------------

    def replace(self, path: str, node: Node, text: str) -> Edit:
        return Edit(path, node.start_byte, node.end_byte, text)

    def delete(self, path: str, statement: Node) -> Edit:
        """The statement taken out, with its line where it has one of its own."""
        if statement.parent is None or statement.parent.type not in ("compound_statement", "translation_unit"):
            return Edit(path, statement.start_byte, statement.end_byte, ";")
        data = self.program.files[path].data
        start, end = statement.start_byte, statement.end_byte
        line = data.rfind(b"\n", 0, start) + 1
        stop = data.find(b"\n", end)
        if stop >= 0 and not data[line:start].strip() and not data[end:stop].strip():
            return Edit(path, line, stop + 1, "")
        return Edit(path, start, end, "")

    def indent(self, path: str, node: Node) -> str:
        """The white space in front of the line ``node`` starts in."""
        data = self.program.files[path].data
        line = data[data.rfind(b"\n", 0, node.start_byte) + 1 : node.start_byte]
        return line[: len(line) - len(line.lstrip())].decode()

    def before(self, path: str, statement: Node, text: str) -> Edit:
        """``text`` as a line of its own in front of the statement."""
        return Edit(path, statement.start_byte, statement.start_byte, f"{text}\n{self.indent(path, statement)}")

    def after(self, path: str, statement: Node, text: str) -> Edit:
        """``text`` as a line of its own behind the statement."""
        return Edit(path, statement.end_byte, statement.end_byte, f"\n{self.indent(path, statement)}{text}")


def where(f: Function) -> Where:
    return f.path, f.node.start_byte, f.node.end_byte


def flat(text: str) -> str:
    """The text with every run of white space made one space."""
    return " ".join(text.split())


def loops_around(node: Node, f: Function) -> list[Node]:
    """Loops of ``f`` whose body holds ``node``, the innermost first."""
    out = []
    inner, parent = node, node.parent
    while parent is not None and parent.start_byte >= f.node.start_byte and inner != f.node:
        if parent.type in LOOPS and parent.child_by_field_name("body") == inner:
            out.append(parent)
        inner, parent = parent, parent.parent
    return out


def siblings(statement: Node) -> list[Node]:
    """The statements of the block that ``statement`` is in, itself included."""
    return [c for c in statement.parent.named_children if c.type != "comment"] if statement.parent is not None else []


def neighbour(statement: Node, step: int) -> Node | None:
    """The statement ``step`` places further in the same block, or None."""
    block = siblings(statement)
    index = next((i for i, c in enumerate(block) if c.start_byte == statement.start_byte), -1) + step
    return block[index] if 0 <= index < len(block) else None
