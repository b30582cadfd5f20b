"""A call through the C++ binding: from the arguments of Python to those of ``EXEC_NPU_CMD``.

The binding's syntax tree (tree-sitter) is walked with the call's own tensors: it computes sizes, allocates outputs,
converts and reshapes inputs, and calls the operator once. Whatever else it does (an operator of ATen, one of CANN's
own) is refused with its line, because the operator's sources don't compute the result then.
"""

from __future__ import annotations

import operator as op
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Never

import torch
from tree_sitter import Node, Parser

from ..errors import OperatorError
from ..sources.cpp import LANGUAGE, declared_name, walk
from .definition import OpDefinition
from .values import (
    CONSTANT,
    FAULTS,
    LIMIT,
    Origin,
    TensorOptions,
    Tracked,
    Unknown,
    broadcast,
    call_method,
    make,
    shifted,
    with_origin,
)

_DTYPES = {
    "kFloat": torch.float32, "kFloat32": torch.float32, "Float": torch.float32,
    "kHalf": torch.float16, "kFloat16": torch.float16, "Half": torch.float16,
    "kBFloat16": torch.bfloat16, "BFloat16": torch.bfloat16,
    "kDouble": torch.float64, "kFloat64": torch.float64, "Double": torch.float64,
    "kInt": torch.int32, "kInt32": torch.int32, "Int": torch.int32,
    "kLong": torch.int64, "kInt64": torch.int64, "Long": torch.int64,
    "kShort": torch.int16, "kInt16": torch.int16, "Short": torch.int16,
    "kChar": torch.int8, "kInt8": torch.int8, "Char": torch.int8,
    "kByte": torch.uint8, "kUInt8": torch.uint8, "Byte": torch.uint8,
    "kBool": torch.bool, "Bool": torch.bool,
}  # fmt: skip
_CONSTANTS = {"nullopt": None, "nullptr": None}
_INTEGERS = ("int", "int32_t", "int64_t", "uint32_t", "uint64_t", "size_t", "long", "unsigned", "int8_t", "int16_t")
_FLOATS = ("double", "float")


@dataclass(frozen=True)
class BindingLaunch:
    """``inputs``, ``attrs`` and ``outputs`` of the operator by name, as EXEC_NPU_CMD is given them. An input is a
    tensor, a list of tensors or None, an output one of the first two."""

    inputs: dict[str, Any]
    attrs: dict[str, Any]
    outputs: dict[str, Any]


class _Return(Exception):
    def __init__(self, value: Any) -> None:
        self.value = value


class Binding:
    """The functions that ``python_bind_src`` exports; ``launch`` is the operator's call, once there was one."""

    def __init__(self, text: str, definition: OpDefinition, file: Path) -> None:
        self._data = text.encode()
        self._definition, self._file = definition, file
        root = Parser(LANGUAGE).parse(self._data).root_node
        self._functions: dict[str, Node] = {}
        for node in walk(root):
            if node.type == "function_definition":
                name = declared_name(_declarator(node))
                if name is not None:
                    self._functions.setdefault(self._text(name), node)
        self._exported = dict(self._exports(root))
        self._env: dict[str, Any] = {}
        self._at = root
        self.launch: BindingLaunch | None = None

    def call(self, name: str, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """What the exported function ``name`` returns.

        Raises:
            OperatorError: it isn't exported, or does something that isn't followed; the text says what and the line.
        """
        if name not in self._exported:
            known = ", ".join(self._exported) or "nothing"
            raise OperatorError(f"{self._file}: python_bind_src exports no {name}.", f"It exports {known}.")
        try:
            return self._run(self._exported[name], args, keywords)
        except Unknown as e:
            self._refuse(f"{e} is not followed")
        except FAULTS as e:
            self._refuse(f"fails on these inputs: {type(e).__name__}: {e}")

    # -- functions -----------------------------------------------------------------------------------------------------

    def _exports(self, root: Node) -> list[tuple[str, str]]:
        """(name in Python, C++ function) of every ``m.def`` below PYBIND11_MODULE."""
        found = []
        for node in walk(root):
            if node.type != "call_expression" or not self._text(node).startswith("m.def"):
                continue
            arguments = _arguments(node)
            if len(arguments) >= 2 and arguments[0].type == "string_literal":
                found.append((self._text(arguments[0])[1:-1], self._text(arguments[1]).lstrip("& \n")))
        return found

    def _run(self, function: str, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        node = self._functions.get(function.split("::")[-1])
        body = node.child_by_field_name("body") if node is not None else None
        declarator = _declarator(node) if node is not None else None
        parameters = declarator.child_by_field_name("parameters") if declarator is not None else None
        if node is None or body is None or parameters is None:
            raise Unknown(f"the function {function}, which has no body here,")
        outer, self._env = self._env, {}
        try:
            given = list(args)
            for p in parameters.named_children:
                if p.type not in ("parameter_declaration", "optional_parameter_declaration"):
                    continue
                identifier = declared_name(p.child_by_field_name("declarator"))
                name = self._text(identifier) if identifier is not None else ""
                default = p.child_by_field_name("default_value")
                if given:
                    value = given.pop(0)
                elif name in keywords:
                    value = keywords[name]
                elif default is not None:
                    value = self._value(default)
                else:
                    raise Unknown(f"the call without its parameter {name}")
                self._env[name] = self._converted(value, self._text(p.child_by_field_name("type")))
            if given:
                raise Unknown(f"the call of {function} with {len(args)} arguments")
            try:
                self._execute(body)
            except _Return as found:
                return found.value
            return None
        finally:
            self._env = outer

    # -- statements ----------------------------------------------------------------------------------------------------

    def _execute(self, node: Node) -> None:
        self._at = node
        kind = node.type
        if kind == "compound_statement":
            for child in node.named_children:
                self._execute(child)
        elif kind == "declaration":
            self._declare(node)
        elif kind == "expression_statement":
            for child in node.named_children:
                self._value(child)
        elif kind == "return_statement":
            children = node.named_children
            raise _Return(self._value(children[0]) if children else None)
        elif kind == "if_statement":
            branch = "consequence" if self._value(_field(node, "condition")) else "alternative"
            chosen = node.child_by_field_name(branch)
            if chosen is not None:
                self._execute(chosen.named_children[0] if chosen.type == "else_clause" else chosen)
        elif kind == "for_statement":
            self._loop(node)
        elif kind == "for_range_loop":
            name = declared_name(_field(node, "declarator"))
            for value in list(self._value(_field(node, "right"))):
                self._env[self._text(name)] = value
                self._execute(_field(node, "body"))
        elif kind not in ("comment", "using_declaration", "alias_declaration"):
            raise Unknown(f"the statement {self._short(node)}")

    def _loop(self, node: Node) -> None:
        start = node.child_by_field_name("initializer")
        if start is not None:
            self._declare(start) if start.type == "declaration" else self._value(start)
        condition, update = node.child_by_field_name("condition"), node.child_by_field_name("update")
        for _ in range(LIMIT):
            if condition is not None and not self._value(condition):
                return
            self._execute(_field(node, "body"))
            if update is not None:
                self._value(update)
        raise Unknown(f"a loop of more than {LIMIT} rounds")

    def _declare(self, node: Node) -> None:
        type_name = self._text(node.child_by_field_name("type"))
        if "Guard" in type_name or "Stream" in type_name:
            return
        for child in node.children_by_field_name("declarator"):
            name = declared_name(child)
            if name is None:
                raise Unknown(f"the declaration {self._short(node)}")
            value: Any = [] if "vector" in type_name else None
            if child.type == "init_declarator":
                given = _field(child, "value")
                value = self._made(type_name, given) if given.type == "argument_list" else self._value(given)
            elif child.type == "function_declarator":  # `at::IntArrayRef sizes(shape);` reads like a function
                value = self._made(type_name, _field(child, "parameters"))
            self._env[self._text(name)] = self._converted(value, type_name)

    def _made(self, type_name: str, arguments: Node) -> Any:
        """What a constructor with ``arguments`` makes."""
        values = [self._value(a) for a in arguments.named_children]
        return self._constructed(type_name, values)

    def _constructed(self, type_name: str, values: list[Any]) -> Any:
        if "vector" in type_name and values and isinstance(values[0], int):
            if values[0] > LIMIT:
                raise Unknown(f"a vector of {values[0]} elements")
            return (values[1:] or [0]) * values[0]
        if "TensorOptions" in type_name:
            return TensorOptions(torch.float32)
        return values[0] if values else None

    def _converted(self, value: Any, type_name: str) -> Any:
        """The value as the C++ type holds it; a number that fits stays the same object, with its origin."""
        plain = type_name.replace("const", "").strip()
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return list(value) if isinstance(value, (list, tuple)) and "vector" in type_name else value
        if plain == "bool":
            return bool(value)
        if plain in _INTEGERS and not isinstance(value, int):
            return int(value)
        if plain in _FLOATS and not isinstance(value, float):
            return with_origin(float(value), getattr(value, "origin", CONSTANT))
        return value

    # -- expressions ---------------------------------------------------------------------------------------------------

    def _value(self, node: Node) -> Any:
        kind = node.type
        if kind in _LITERALS:
            return _LITERALS[kind](self._text(node))
        if kind in ("identifier", "qualified_identifier", "type_identifier"):
            return self._named(node)
        if kind == "call_expression":
            return self._called(node)
        if kind in ("parenthesized_expression", "condition_clause", "optional_type_descriptor"):
            return self._value(node.named_children[-1])
        if kind in ("initializer_list", "argument_list"):
            return [self._value(c) for c in node.named_children if c.type != "comment"]
        if kind == "compound_literal_expression":
            return self._constructed(self._text(_field(node, "type")), [self._value(_field(node, "value"))])
        if kind == "parameter_declaration":  # an argument of what reads like a function
            return self._value(_field(node, "type"))
        if kind == "binary_expression":
            return self._binary(node)
        if kind == "unary_expression":
            value = self._value(_field(node, "argument"))
            return _UNARY[self._operator(node)](value)
        if kind == "pointer_expression":
            return self._value(_field(node, "argument"))
        if kind == "conditional_expression":
            branch = "consequence" if self._value(_field(node, "condition")) else "alternative"
            return self._value(_field(node, branch))
        if kind == "cast_expression":
            return self._converted(self._value(_field(node, "value")), self._text(_field(node, "type")))
        if kind == "subscript_expression":
            owner, index = self._subscript(node)
            return owner[index]
        if kind in ("assignment_expression", "update_expression"):
            return self._assign(node)
        raise Unknown(self._short(node))

    def _named(self, node: Node) -> Any:
        name = self._text(node)
        if name in self._env:
            return self._env[name]
        last = name.split("::")[-1]
        if "::" in name or last in _DTYPES:
            if last in _DTYPES:
                return _DTYPES[last]
            if last in _CONSTANTS:
                return _CONSTANTS[last]
        raise Unknown(f"the name {name}")

    def _operator(self, node: Node) -> str:
        found = node.child_by_field_name("operator")
        return self._text(found) if found is not None else ""

    def _binary(self, node: Node) -> Any:
        symbol = self._operator(node)
        left = self._value(_field(node, "left"))
        if symbol in ("&&", "||"):
            return bool(left and self._value(_field(node, "right")) if symbol == "&&" else left or
                        self._value(_field(node, "right")))  # fmt: skip
        right = self._value(_field(node, "right"))
        if isinstance(left, Tracked) or isinstance(right, Tracked) or symbol not in _BINARY:
            raise Unknown(self._short(node))
        return _BINARY[symbol](left, right)

    def _subscript(self, node: Node) -> tuple[Any, Any]:
        owner = self._value(_field(node, "argument"))
        indices = node.child_by_field_name("indices") or node.child_by_field_name("index")
        if indices is None or not isinstance(owner, (list, tuple)):
            raise Unknown(self._short(node))
        index = self._value(indices.named_children[0] if indices.type == "subscript_argument_list" else indices)
        return owner, index

    def _assign(self, node: Node) -> Any:
        target = node.child_by_field_name("left") or _field(node, "argument")
        symbol = self._operator(node) or "="
        if node.type == "update_expression":
            value = self._value(target) + (1 if symbol == "++" else -1)
        else:
            value = self._value(_field(node, "right"))
            if symbol != "=":
                if symbol[:-1] not in _BINARY:
                    raise Unknown(self._short(node))
                value = _BINARY[symbol[:-1]](self._value(target), value)
        if target.type == "identifier":
            self._env[self._text(target)] = value
        elif target.type == "subscript_expression":
            owner, index = self._subscript(target)
            owner[index] = value
        else:
            raise Unknown(self._short(node))
        return value

    # -- calls ---------------------------------------------------------------------------------------------------------

    def _called(self, node: Node) -> Any:
        function = _field(node, "function")
        arguments = _arguments(node)
        name = self._text(function)
        if name == "EXEC_NPU_CMD":
            return self._launched(arguments)
        if name.startswith("TORCH_CHECK"):
            return self._checked(arguments)
        if function.type == "field_expression":
            owner = self._value(_field(function, "argument"))
            method = self._text(_field(function, "field")).partition("<")[0]
            return call_method(owner, method, [self._value(a) for a in arguments], {})
        values = [self._value(a) for a in arguments]
        bare = name.partition("<")[0]
        if bare in ("static_cast", "reinterpret_cast"):
            return self._converted(values[0], name[len(bare) + 1 : -1])
        if "::" not in bare and bare in self._functions:
            return self._run(bare, values, {})
        if name in (*_INTEGERS, *_FLOATS):
            return self._converted(values[0], name)
        return self._library(name, bare, values)

    def _library(self, name: str, bare: str, values: list[Any]) -> Any:
        """A function of ATen or of the standard library."""
        last = bare.split("::")[-1]
        options = next((v for v in values[1:] if isinstance(v, (TensorOptions, torch.dtype))), None)
        dtype = options.dtype if isinstance(options, TensorOptions) else options
        fills = {"empty": None, "zeros": 0.0, "ones": 1.0}
        stem = last.removesuffix("_like")
        if stem in fills or stem == "full":
            like = values[0] if isinstance(values[0], Tracked) else None
            fill = float(values[1]) if stem == "full" else fills[stem]
            shape = like.shape if like is not None else values[0]
            return make(shape, dtype or (like.tensor.dtype if like is not None else torch.float32), fill)
        if last == "broadcast_tensors":
            return broadcast(values[0])
        if last in ("max", "min") and all(isinstance(v, (int, float)) for v in values):
            return max(values) if last == "max" else min(values)
        if last in ("make_tuple", "tie", "forward_as_tuple", "tuple"):
            return tuple(values)
        if last in ("vector", "IntArrayRef", "SmallVector", "TensorOptions", "optional", "ArrayRef", "string"):
            return self._constructed(last, values)
        if last == "move" and len(values) == 1:
            return values[0]
        if values and isinstance(values[0], Tracked):
            try:
                return call_method(values[0], last, values[1:], {})
            except Unknown:
                pass
        raise Unknown(f"the function {name}")

    def _checked(self, arguments: Sequence[Node]) -> None:
        """TORCH_CHECK: what it asks for has to hold, where the reader can tell."""
        try:
            holds = bool(self._value(arguments[0]))
        except Unknown:
            return
        if not holds:
            message = " ".join(self._text(a) for a in arguments[1:]) or self._text(arguments[0])
            self._refuse(f"doesn't take these inputs: {message}")

    def _launched(self, arguments: Sequence[Node]) -> None:
        called = self._text(arguments[0])
        d = self._definition
        if called != f"aclnn{d.op_type}":
            self._refuse(f"calls {called}, which is not the operator of the sources ({d.op_type})")
        if self.launch is not None:
            self._refuse(f"calls {called} a second time")
        values = [self._value(a) for a in arguments[1:]]
        names = (*d.inputs, *d.attrs, *d.outputs)
        if len(values) != len(names):
            self._refuse(f"gives {called} {len(values)} arguments; its definition has {len(names)}: {', '.join(names)}")
        given = dict(zip(names, values, strict=True)) if len(set(names)) == len(names) else {}
        if not given:
            self._refuse(f"calls {called}, whose definition has an input and an output of one name: {', '.join(names)}")
        outputs: dict[str, Any] = {}
        for name in d.outputs:
            value = given[name]
            listed = value if isinstance(value, list) else [value]
            if not all(isinstance(v, Tracked) and v.made for v in listed):
                self._refuse(f"gives {called} the output {name}, which it did not allocate itself")
            told = [name] if listed is not value else [f"{name}.{i}" for i in range(len(listed))]
            made = [replace(v, origin=Origin("output", n), made=False) for v, n in zip(listed, told, strict=True)]
            outputs[name] = made if listed is value else made[0]
            self._replace(value, outputs[name])
        self.launch = BindingLaunch({n: given[n] for n in d.inputs}, {n: given[n] for n in d.attrs}, outputs)

    def _replace(self, old: Any, new: Any) -> None:
        for name, value in self._env.items():
            if value is old:
                self._env[name] = new
            elif isinstance(value, list):
                self._env[name] = [new if v is old else v for v in value]

    # -- texts ---------------------------------------------------------------------------------------------------------

    def _text(self, node: Node | None) -> str:
        return "" if node is None else self._data[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def _short(self, node: Node) -> str:
        return "`" + " ".join(self._text(node).split())[:80] + "`"

    def _refuse(self, what: str) -> Never:
        line = self._at.start_point[0] + 1
        raise OperatorError(
            f"{self._file}: python_bind_src line {line} {what}.",
            "A binding may convert, reshape and broadcast inputs, allocate outputs, and call the operator once.",
        )


def _number(text: str) -> int | float:
    plain = text.replace("'", "").lower()
    if plain.startswith("0x"):
        return int(plain.rstrip("ul"), 16)
    digits = plain.rstrip("ulf")
    return float(digits) if set(digits) & set(".e") or plain.endswith("f") else int(digits)


_LITERALS: dict[str, Callable[[str], Any]] = {
    "number_literal": _number,
    "true": lambda _: True,
    "false": lambda _: False,
    "null": lambda _: None,
    "string_literal": lambda text: text[1:-1],
}


_UNARY: dict[str, Callable[[Any], Any]] = {"-": op.neg, "!": op.not_, "+": op.pos}


def _divided(a: Any, b: Any) -> Any:
    """C++: between integers towards zero."""
    if isinstance(a, int) and isinstance(b, int):
        quotient = abs(a) // abs(b)
        return quotient if (a >= 0) == (b >= 0) else -quotient
    return a / b


_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": op.add, "-": op.sub, "*": op.mul, "/": _divided, "%": lambda a, b: a - b * _divided(a, b),
    "==": op.eq, "!=": op.ne, "<": op.lt, "<=": op.le, ">": op.gt, ">=": op.ge,
    "<<": shifted, ">>": op.rshift, "&": op.and_, "|": op.or_,
}  # fmt: skip


def _field(node: Node, name: str) -> Node:
    found = node.child_by_field_name(name)
    if found is None:
        raise Unknown("a text that is no C++ here,")
    return found


def _arguments(call: Node) -> list[Node]:
    found = call.child_by_field_name("arguments")
    return [c for c in found.named_children if c.type != "comment"] if found is not None else []


def _declarator(function: Node) -> Node | None:
    """The declarator with the parameters of a function definition."""
    node = function.child_by_field_name("declarator")
    while node is not None and node.type != "function_declarator":
        node = node.child_by_field_name("declarator") or next(iter(node.named_children), None)
    return node
