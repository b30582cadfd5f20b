"""Data flow of a tiling program: who defines what, what is read where, and what reaches the launch.

Flow-insensitive and by name, which is enough to *propose* edits (the gate decides whether they are right): a local
variable or parameter is known by its function and name, everything else (members, globals, constants, tiling fields)
by name alone.

1. Collect definitions: initialisers, assignments, ``set_<field>`` calls, arguments bound to parameters, results of
   functions, variables handed to a call to be filled.
2. Collect sinks: block dim, tiling key, tiling fields, workspace.
3. ``reach`` walks backwards from each kind of sink; ``tags`` walks forwards from the platform (UB size, core count) and
   from the case (shapes, dtypes).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tree_sitter import Node

from ...sources.cpp import Function, SourceFile, SourceProgram, declared_name, walk

Key = tuple[str, str]  # (function scope or "", name)

# Where a key is read: (path, node, function).
Uses = dict[Key, list[tuple[str, Node, Function | None]]]

_BLOCK_DIM = ("SetBlockDim", "SetSimdNumBlocks")
# Member functions whose result is a fact about the platform or the call; source: CANN's tiling and platform API.
_FACTS: dict[str, str] = {
    "GetCoreNum": "core",
    "GetCoreNumAiv": "core",
    "GetCoreNumAic": "core",
    "GetCoreNumVector": "core",
    "GetShapeSize": "shape",
    "GetDim": "shape",
    "GetDimNum": "shape",
    "GetStorageShape": "shape",
    "GetOriginShape": "shape",
    "GetDataType": "dtype",
}


@dataclass(frozen=True)
class Definition:
    """``key`` may take the value of ``value`` (an expression of ``function``), set by ``statement``.

    ``kind``: ``init``, ``assign``, ``constant`` (file or class scope), ``define`` (#define), ``field`` (tiling field),
    ``argument`` (bound to a parameter), ``return``, ``filled`` (the call writes into the variable), ``alias`` (the
    callee writes through parameter ``alias``).
    """

    key: Key
    kind: str
    path: str
    value: Node
    statement: Node
    function: Function | None
    alias: Key | None = None


@dataclass(frozen=True)
class Sink:
    """An expression that decides the launch; ``kind``: ``block_dim``, ``tiling_key``, ``field`` or ``workspace``."""

    kind: str
    name: str
    path: str
    value: Node
    function: Function


@dataclass
class Flow:
    program: SourceProgram
    definitions: dict[Key, list[Definition]] = field(default_factory=lambda: defaultdict(list))
    sinks: list[Sink] = field(default_factory=list)
    reach: dict[Key, set[str]] = field(default_factory=lambda: defaultdict(set))  # key -> kinds of sinks it feeds
    tags: dict[Key, set[str]] = field(default_factory=lambda: defaultdict(set))  # key -> "ub", "core", "shape", "dtype"
    uses: Uses = field(default_factory=lambda: defaultdict(list))
    _locals: dict[str, frozenset[str]] = field(default_factory=dict)
    _by_name: dict[str, list[Function]] = field(default_factory=lambda: defaultdict(list))
    _structs: frozenset[str] = frozenset()

    # -- names -------------------------------------------------------------------------------------------------

    def scope(self, function: Function) -> str:
        return f"{function.path}:{function.node.start_byte}"

    def key(self, name: str, function: Function | None) -> Key:
        if function is not None and name in self._locals[self.scope(function)]:
            return self.scope(function), name
        return "", name

    def target(self, path: str, node: Node | None, function: Function | None) -> Key | None:
        """The key an lvalue writes: ``x``, ``x[i]``, ``*x``, ``this->x``, ``s.x``, ``s->x``."""
        while node is not None:
            if node.type == "identifier":
                return self.key(self.program.text(path, node), function)
            if node.type == "qualified_identifier":
                node = node.child_by_field_name("name")
            elif node.type == "field_expression":
                name = node.child_by_field_name("field")
                return ("", self.program.text(path, name)) if name is not None else None
            elif node.type in ("subscript_expression", "pointer_expression"):
                node = node.child_by_field_name("argument")
            elif node.type == "parenthesized_expression":
                node = next(iter(node.named_children), None)
            else:
                return None
        return None

    def reads(self, path: str, node: Node, function: Function | None) -> Iterator[tuple[Key, Node]]:
        """Every key the expression reads, with the node that names it."""
        stack = [node]
        while stack:
            top = stack.pop()
            if top.type == "identifier":
                yield self.key(self.program.text(path, top), function), top
            elif top.type == "qualified_identifier":
                name = self.program.text(path, top).split("::")[-1]
                yield ("", name), top
            elif top.type == "field_expression":
                name_node, base = top.child_by_field_name("field"), top.child_by_field_name("argument")
                name = self.program.text(path, name_node) if name_node is not None else ""
                if top.parent is not None and top.parent.type == "call_expression" and _callee(top.parent) == top:
                    if name.startswith("get_"):
                        yield ("", "field:" + name[4:]), top
                    elif base is not None:
                        stack.append(base)
                else:
                    yield ("", name), top
            elif top.type == "call_expression":
                callee = _callee(top)
                name = self.called(path, top)
                if name in self._by_name:
                    yield ("return", name), top
                elif callee is not None and callee.type != "identifier":
                    stack.append(callee)
                arguments = top.child_by_field_name("arguments")
                if arguments is not None:
                    stack.append(arguments)
            else:
                stack.extend(top.named_children)

    def called(self, path: str, call: Node) -> str:
        """The unqualified name of the function a call names, without template arguments."""
        callee = _callee(call)
        text = self.program.text(path, callee) if callee is not None else ""
        return re.split(r"::|\.|->", re.sub(r"<.*", "", text, flags=re.DOTALL))[-1].strip()

    # -- what an expression is made of ---------------------------------------------------------------------------

    def expression_tags(self, path: str, node: Node, function: Function | None) -> set[str]:
        out = self._facts(path, node)
        for key, _ in self.reads(path, node, function):
            out |= self.tags.get(key, set())
        return out

    def _facts(self, path: str, node: Node) -> set[str]:
        out: set[str] = set()
        for n in walk(node):
            if n.type == "call_expression":
                name = self.called(path, n)
                if name in _FACTS:
                    out.add(_FACTS[name])
                elif name == "GetCoreMemSize" and re.search(r"\bUB\b", self.program.text(path, n)):
                    out.add("ub")
            elif n.type == "sizeof_expression":
                out.add("dtype")
        return out

    def conditions(self, node: Node, function: Function | None) -> Iterator[Node]:
        """The conditions of the if, switch and loop statements around ``node`` inside its function."""
        top = node.parent
        while top is not None and function is not None and top != function.node:
            if top.type in ("if_statement", "switch_statement", "while_statement", "for_statement"):
                condition = top.child_by_field_name("condition")
                if condition is not None:
                    yield condition
            top = top.parent


def _callee(call: Node) -> Node | None:
    return call.child_by_field_name("function")


def arguments_of(call: Node) -> list[Node]:
    arguments = call.child_by_field_name("arguments")
    return [a for a in arguments.named_children if a.type != "comment"] if arguments is not None else []


def _struct_names(program: SourceProgram) -> frozenset[str]:
    """Types that hold tiling data: declared by CANN's macros, registered, or asked for with GetTilingData<T>."""
    pattern = re.compile(
        r"BEGIN_TILING_DATA_DEF\(\s*(\w+)|REGISTER_TILING_DATA_CLASS\(\s*\w+\s*,\s*(\w+)"
        r"|REGISTER_TILING_DEFAULT\(\s*([\w:]+)|GetTilingData\s*<\s*([\w:]+)"
    )
    found = (m for s in program.files.values() for m in pattern.finditer(s.data.decode("utf-8", "replace")))
    return frozenset(name.split("::")[-1] for m in found for name in m.groups() if name)


def _collect_file_scope(flow: Flow, source: SourceFile) -> None:
    inside = [(f.node.start_byte, f.node.end_byte) for f in flow.program.functions if f.path == source.path]
    for node in walk(source.tree.root_node):
        if node.type == "preproc_def":
            name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
            if name is not None and value is not None:
                flow.definitions["", source.text(name)].append(
                    Definition(("", source.text(name)), "define", source.path, value, node, None)
                )
        elif node.type in ("init_declarator", "field_declaration", "enumerator"):
            if any(a <= node.start_byte < b for a, b in inside):
                continue
            value = node.child_by_field_name("value") or node.child_by_field_name("default_value")
            identifier = (
                node.child_by_field_name("name")
                if node.type == "enumerator"
                else declared_name(node.child_by_field_name("declarator"))
            )
            if identifier is not None and value is not None and node.type != "enumerator":
                key = ("", source.text(identifier))
                flow.definitions[key].append(Definition(key, "constant", source.path, value, node, None))


class _Collected:
    """What one function defines and where it writes tiling data."""

    def __init__(self, flow: Flow, function: Function) -> None:
        self.flow, self.function, self.path = flow, function, function.path
        self.plain: set[Key] = set()  # variables of a tiling struct type: writing a member is a sink
        self.spaces: set[Key] = set()  # variables that hold GetWorkspaceSizes(n)

    def define(self, key: Key | None, kind: str, value: Node, statement: Node, alias: Key | None = None) -> None:
        if key is not None:
            one = Definition(key, kind, self.path, value, statement, self.function, alias)
            self.flow.definitions[key].append(one)

    def text(self, node: Node) -> str:
        return self.flow.program.text(self.path, node)

    def declaration(self, node: Node) -> None:
        kind = node.child_by_field_name("type")
        name = re.sub(r"<.*", "", self.text(kind)).split("::")[-1] if kind is not None else ""
        for declarator in node.children_by_field_name("declarator"):
            identifier = declared_name(declarator)
            if identifier is not None and (name in self.flow._structs or "GetTilingData" in self.text(declarator)):
                self.plain.add(self.flow.key(self.text(identifier), self.function))

    def initializer(self, node: Node) -> None:
        value, identifier = node.child_by_field_name("value"), declared_name(node.child_by_field_name("declarator"))
        if value is not None and identifier is not None:
            key = self.flow.key(self.text(identifier), self.function)
            self.define(key, "init", value, node.parent or node)
            if "GetWorkspaceSizes" in self.text(value):
                self.spaces.add(key)

    def assignment(self, node: Node) -> None:
        left, value = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is None or value is None:
            return
        target = self.flow.target(self.path, left, self.function)
        self.define(target, "assign", value, node.parent or node)
        if left.type == "field_expression":
            base = self.flow.target(self.path, left.child_by_field_name("argument"), self.function)
            member = left.child_by_field_name("field")
            if base in self.plain and member is not None:
                self.flow.sinks.append(Sink("field", self.text(member), self.path, value, self.function))
        elif target in self.spaces and left.type in ("subscript_expression", "pointer_expression"):
            self.flow.sinks.append(Sink("workspace", "workspace", self.path, value, self.function))

    def returned(self, node: Node) -> None:
        if node.named_children:
            self.define(("return", self.function.name), "return", node.named_children[0], node)


def _collect_function(flow: Flow, function: Function) -> None:
    found = _Collected(flow, function)
    reads: dict[str, Callable[[Node], None]] = {
        "declaration": found.declaration,
        "parameter_declaration": found.declaration,
        "init_declarator": found.initializer,
        "assignment_expression": found.assignment,
        "return_statement": found.returned,
        "call_expression": lambda node: _collect_call(flow, function, node, found.define),
    }
    for node in walk(function.node):
        if node.type in reads:
            reads[node.type](node)


def _collect_call(flow: Flow, function: Function, call: Node, define: object) -> None:
    assert callable(define)
    path, name, arguments = function.path, flow.called(function.path, call), arguments_of(call)
    callee = _callee(call)
    member = callee is not None and callee.type == "field_expression"
    if name in _BLOCK_DIM and len(arguments) == 1:
        flow.sinks.append(Sink("block_dim", "block_dim", path, arguments[0], function))
    elif name == "SetTilingKey" and len(arguments) == 1:
        flow.sinks.append(Sink("tiling_key", "tiling_key", path, arguments[0], function))
    elif member and name.startswith("set_") and len(arguments) == 1:
        flow.sinks.append(Sink("field", name[4:], path, arguments[0], function))
        define(("", "field:" + name[4:]), "field", arguments[0], call.parent or call)
    elif name in flow._by_name:
        for callee_function in flow._by_name[name]:
            if len(callee_function.parameters) < len(arguments):
                continue
            for i, argument in enumerate(arguments):
                inner = (flow.scope(callee_function), callee_function.parameters[i])
                flow.definitions[inner].append(Definition(inner, "argument", path, argument, call, function))
                if callee_function.by_reference[i]:
                    define(flow.target(path, argument, function), "alias", argument, call, inner)
    elif call.parent is not None and call.parent.type == "expression_statement":
        for argument in arguments:
            if argument.type in ("identifier", "field_expression", "pointer_expression"):
                define(flow.target(path, argument, function), "filled", call, call.parent)


def _unseen_fields(flow: Flow) -> None:
    """Where no statement writes a tiling field, a header outside the pair does, from the members it declares."""
    if any(s.kind == "field" for s in flow.sinks):
        return
    for key, definitions in list(flow.definitions.items()):
        declared = any(d.kind in ("constant", "define") for d in definitions)
        if key[0] == "" and not declared and not key[1].startswith("field:"):
            for d in definitions:
                if d.kind == "assign" and d.function is not None:
                    flow.sinks.append(Sink("field", key[1], d.path, d.value, d.function))


class _Reach:
    """Goes back from the sinks of one kind to every variable that leads to them."""

    def __init__(self, flow: Flow, kind: str) -> None:
        self.flow, self.kind = flow, kind
        self._queue: list[Key] = []

    def run(self) -> None:
        for sink in self.flow.sinks:
            if sink.kind == self.kind:
                self._expression(sink.path, sink.value, sink.function)
                self._conditions(sink.path, sink.value, sink.function)
        while self._queue:
            for definition in self.flow.definitions.get(self._queue.pop(), ()):
                self._definition(definition)

    def _definition(self, d: Definition) -> None:
        if d.alias is not None:
            self._key(d.alias)
        if d.kind not in ("alias", "define"):
            self._expression(d.path, d.value, d.function)
        if d.kind == "define":
            for word in re.findall(r"[A-Za-z_]\w*", self.flow.program.text(d.path, d.value)):
                if ("", word) in self.flow.definitions:
                    self._key(("", word))
        self._conditions(d.path, d.statement, d.function)

    def _key(self, key: Key) -> None:
        if self.kind not in self.flow.reach[key]:
            self.flow.reach[key].add(self.kind)
            self._queue.append(key)

    def _expression(self, path: str, node: Node, function: Function | None) -> None:
        for key, _ in self.flow.reads(path, node, function):
            self._key(key)

    def _conditions(self, path: str, node: Node, function: Function | None) -> None:
        for condition in self.flow.conditions(node, function):
            self._expression(path, condition, function)


def _backward(flow: Flow) -> None:
    for kind in ("block_dim", "tiling_key", "field", "workspace"):
        _Reach(flow, kind).run()


def _collect_uses(flow: Flow) -> None:
    for function in flow.program.functions:
        for key, node in flow.reads(function.path, function.body, function):
            flow.uses[key].append((function.path, node, function))
    for definitions in list(flow.definitions.values()):
        for d in definitions:
            if d.kind == "constant":
                for key, node in flow.reads(d.path, d.value, None):
                    flow.uses[key].append((d.path, node, None))


def _pure(flow: Flow, function: Function) -> bool:
    """A helper of its arguments alone (``CeilDiv``): a call has the tags of its own arguments."""
    if not function.parameters or flow._facts(function.path, function.body):
        return False
    for key, _ in flow.reads(function.path, function.body, function):
        kinds = {d.kind for d in flow.definitions.get(key, ())}
        if key[0] == "" and not kinds <= {"constant", "define"}:
            return False
    return True


def _forward(flow: Flow) -> None:
    pure = {name for name, functions in flow._by_name.items() if all(_pure(flow, f) for f in functions)}
    every = [
        d for key in list(flow.definitions) for d in flow.definitions[key] if key not in {("return", n) for n in pure}
    ]
    facts = [flow._facts(d.path, d.value) if d.kind != "define" else set() for d in every]
    read = [
        [k for k, _ in flow.reads(d.path, d.value, d.function)] if d.kind not in ("define", "alias", "filled") else []
        for d in every
    ]
    changed = True
    while changed:
        changed = False
        for d, fact, keys in zip(every, facts, read, strict=True):
            new = set(fact)
            for key in [*keys, *([d.alias] if d.alias else [])]:
                new |= flow.tags.get(key, set())
            if not new <= flow.tags[d.key]:
                flow.tags[d.key] |= new
                changed = True


def analyse(program: SourceProgram) -> Flow:
    """The data flow of ``program``; no sinks are found when it has no tiling function."""
    flow = Flow(program)
    flow._structs = _struct_names(program)
    for function in program.functions:
        names = {p for p in function.parameters if p}
        for node in walk(function.body):
            if node.type in ("declaration", "for_range_loop"):
                for declarator in node.children_by_field_name("declarator"):
                    identifier = declared_name(declarator)
                    if identifier is not None:
                        names.add(program.text(function.path, identifier))
        flow._locals[flow.scope(function)] = frozenset(names)
        flow._by_name[function.name].append(function)
    for source in program.files.values():
        _collect_file_scope(flow, source)
    for function in program.functions:
        _collect_function(flow, function)
    _unseen_fields(flow)
    _collect_uses(flow)
    _backward(flow)
    _forward(flow)
    return flow
