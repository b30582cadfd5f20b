"""``ModelNew`` followed from the task's inputs to its call of the binding, over its syntax tree; it is never executed.

What is followed: attributes of ``self``, parameters and buffers made by torch's constructors, sub-modules of torch.nn
(for their parameters), conditions, conversions and views of tensors, and calls of ``custom_ops_lib``. Everything else
is refused with its line.
"""

from __future__ import annotations

import ast
import builtins
import math
import operator as op
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Never

import torch

from ..errors import OperatorError
from .values import CONSTANT, FAULTS, LIMIT, Origin, Tracked, Unknown, attribute, broadcast, call_method, with_origin

_LIBRARY = "custom_ops_lib"
_MAKERS = ("ones", "zeros", "empty", "full", "tensor", "rand", "randn", "arange", "eye", "linspace", "as_tensor")
_VALUES = {"tensor": 0, "as_tensor": 0, "full": 1}  # which argument of a maker is what it holds
_PLAIN = ("int", "float", "bool", "len", "tuple", "list", "min", "max", "abs", "sum", "range", "str", "round", "sorted")

#: (name in the binding, arguments, keywords) -> what the binding returns.
Call = Callable[[str, Sequence[Any], Mapping[str, Any]], Any]


class _Return(Exception):
    def __init__(self, value: Any) -> None:
        self.value = value


class _Self:
    """``self``: what ``__init__`` assigned to it."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}


class _Library:
    """``custom_ops_lib``, or one of its functions."""

    def __init__(self, name: str = "") -> None:
        self.name = name


class Module:
    """``ModelNew`` of ``model_src``; :meth:`forward` after :meth:`build`."""

    def __init__(self, text: str, file: Path, call: Call) -> None:
        self._file, self._call = file, call
        self._at: ast.AST = ast.Module([], [])
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError) as e:
            raise OperatorError(f"{file}: model_src is no Python: {e}.", "It defines the class ModelNew.") from e
        classes = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "ModelNew"]
        if len(classes) != 1:
            raise OperatorError(f"{file}: model_src defines no class ModelNew.", "MultiKernelBench runs that class.")
        self._methods = {n.name: n for n in classes[0].body if isinstance(n, ast.FunctionDef)}
        self._functions = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}
        if "forward" not in self._methods:
            raise OperatorError(f"{file}: ModelNew has no forward.", "MultiKernelBench calls it.")
        self._globals: dict[str, Any] = {}
        for node in ast.walk(tree):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                self._import(node)
        for statement in tree.body:
            if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
                self._globals |= {t.id: statement.value.value for t in statement.targets if isinstance(t, ast.Name)}
        self._self = _Self()
        self._env: dict[str, Any] = {}

    def build(self, inputs: Sequence[Any]) -> None:
        """Follows ``__init__`` with these arguments. Raises OperatorError: something in it isn't followed."""
        if "__init__" in self._methods:
            self._guarded(self._methods["__init__"], inputs, "constructor")

    def forward(self, inputs: Sequence[Any]) -> Any:
        """What ``forward`` returns for these inputs. Raises OperatorError: something in it isn't followed."""
        return self._guarded(self._methods["forward"], inputs, "input")

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of forward's parameters."""
        return tuple(a.arg for a in self._methods["forward"].args.args[1:])

    def _guarded(self, method: ast.FunctionDef, args: Sequence[Any], kind: str) -> Any:
        names = [a.arg for a in method.args.args[1:]]
        given = [_named(value, Origin(kind, name)) for name, value in zip(names, args, strict=False)]
        given += list(args[len(names) :])
        try:
            return self._run(method, [self._self, *given], {}, kind)
        except Unknown as e:
            self._refuse(f"{e} is not followed")
        except FAULTS as e:
            self._refuse(f"fails on the task's inputs: {type(e).__name__}: {e}")

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            path = alias.name if isinstance(node, ast.Import) else f"{node.module}.{alias.name}"
            name = alias.asname or alias.name.split(".")[0]
            whole = alias.asname is not None or isinstance(node, ast.ImportFrom)
            if path == _LIBRARY:
                self._globals[name] = _Library()
            elif path.split(".")[0] in ("torch", "math"):
                self._globals[name] = _resolved(path if whole else path.split(".")[0])

    # -- statements ----------------------------------------------------------------------------------------------------

    def _run(self, function: ast.FunctionDef, args: Sequence[Any], keywords: Mapping[str, Any], kind: str = "") -> Any:
        a = function.args
        outer, self._env = self._env, {}
        try:
            names = [p.arg for p in (*a.posonlyargs, *a.args)]
            defaults = dict(zip(names[len(names) - len(a.defaults) :], a.defaults, strict=True))
            kw_defaults = zip((p.arg for p in a.kwonlyargs), a.kw_defaults, strict=True)
            defaults |= {name: value for name, value in kw_defaults if value is not None}
            if len(args) > len(names) and a.vararg is None:
                raise Unknown(f"a call of {function.name} with {len(args)} arguments")
            self._env |= dict(zip(names, args, strict=False)) | dict(keywords)
            for name in (*names, *(p.arg for p in a.kwonlyargs)):
                if name not in self._env:
                    if name not in defaults:
                        raise Unknown(f"a call of {function.name} without {name}")
                    value = self._value(defaults[name])
                    self._env[name] = with_origin(value, Origin(kind, name)) if kind else value
            if a.vararg is not None:
                self._env[a.vararg.arg] = tuple(args[len(names) :])
            if a.kwarg is not None:
                self._env[a.kwarg.arg] = {}
            try:
                for statement in function.body:
                    self._execute(statement)
            except _Return as found:
                return found.value
            return None
        finally:
            self._env = outer

    def _execute(self, node: ast.stmt) -> None:
        self._at = node
        run = getattr(self, f"_run_{type(node).__name__.lower()}", None)
        if run is None:
            raise Unknown(_short(node))
        run(node)

    def _execute_all(self, nodes: Iterable[ast.stmt]) -> None:
        for node in nodes:
            self._execute(node)

    def _run_return(self, node: ast.Return) -> None:
        raise _Return(self._value(node.value) if node.value is not None else None)

    def _run_expr(self, node: ast.Expr) -> None:
        self._value(node.value)

    def _run_assign(self, node: ast.Assign) -> None:
        value = self._value(node.value)
        for target in node.targets:
            self._assign(target, value)

    def _run_annassign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._assign(node.target, self._value(node.value))

    def _run_augassign(self, node: ast.AugAssign) -> None:
        value = _operation(node.op)(self._value(_loaded(node.target)), self._value(node.value))
        self._assign(node.target, value)

    def _run_if(self, node: ast.If) -> None:
        self._execute_all(node.body if self._value(node.test) else node.orelse)

    def _run_for(self, node: ast.For) -> None:
        for value in _listed(self._value(node.iter)):
            self._assign(node.target, value)
            self._execute_all(node.body)

    def _run_with(self, node: ast.With) -> None:
        self._execute_all(node.body)  # torch.no_grad() and its kind

    def _run_raise(self, node: ast.Raise) -> None:
        self._refuse(f"raises on the task's inputs: {ast.unparse(node)[:120]}")

    def _run_assert(self, node: ast.Assert) -> None:
        if not self._value(node.test):
            self._refuse(f"asserts on the task's inputs: {ast.unparse(node)[:120]}")

    def _run_nothing(self, node: ast.stmt) -> None:
        """What says nothing about values."""

    _run_pass = _run_import = _run_importfrom = _run_nothing

    def _assign(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            self._env[target.id] = value
        elif isinstance(target, ast.Attribute) and isinstance(owner := self._value(target.value), _Self):
            owner.values[target.attr] = _named(value, Origin("parameter", target.attr), parameters=True)
        elif isinstance(target, (ast.Tuple, ast.List)):
            for one, part in zip(target.elts, value, strict=True):
                self._assign(one, part)
        else:
            raise Unknown(_short(target))

    # -- expressions ---------------------------------------------------------------------------------------------------

    def _value(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return self._name(node.id)
        if isinstance(node, ast.Attribute):
            return self._attribute(self._value(node.value), node.attr)
        if isinstance(node, ast.Call):
            return self._called(node)
        if isinstance(node, (ast.Tuple, ast.List)):
            items: list[Any] = []
            for element in node.elts:
                starred = isinstance(element, ast.Starred)
                found = self._value(element.value if isinstance(element, ast.Starred) else element)
                items += list(found) if starred else [found]
            return tuple(items) if isinstance(node, ast.Tuple) else items
        if isinstance(node, ast.BinOp):
            return self._plain(_operation(node.op), node, self._value(node.left), self._value(node.right))
        if isinstance(node, ast.UnaryOp):
            return self._plain(_UNARY[type(node.op)], node, self._value(node.operand))
        if isinstance(node, ast.BoolOp):
            return self._either(node)
        if isinstance(node, ast.Compare):
            return self._compared(node)
        if isinstance(node, ast.IfExp):
            return self._value(node.body if self._value(node.test) else node.orelse)
        if isinstance(node, ast.Subscript):
            return self._subscript(node)
        if isinstance(node, ast.JoinedStr):
            return ast.unparse(node)  # a message
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)) and len(node.generators) == 1:
            return self._comprehension(node)
        raise Unknown(_short(node))

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp) -> list[Any]:
        one = node.generators[0]
        found = []
        for value in _listed(self._value(one.iter)):
            self._assign(one.target, value)
            if all(self._value(test) for test in one.ifs):
                found.append(self._value(node.elt))
        return found

    def _name(self, name: str) -> Any:
        for scope in (self._env, self._globals):
            if name in scope:
                return scope[name]
        if name in _PLAIN or name in ("isinstance", "super", "hasattr"):
            return getattr(builtins, name)
        if name in self._functions:
            return self._functions[name]
        raise Unknown(f"the name {name}")

    def _attribute(self, owner: Any, name: str) -> Any:
        if isinstance(owner, _Self):
            if name in owner.values:
                return owner.values[name]
            if name in self._methods:
                return self._methods[name]
            if name in ("register_buffer", "register_parameter"):
                return self._register
            if name == "training":
                return True
            raise Unknown(f"self.{name}")
        if isinstance(owner, _Library):
            return _Library(name)
        if isinstance(owner, _Part):
            return owner.attribute(name)
        if owner is torch or owner is math or (isinstance(owner, type(torch)) and owner.__name__.startswith("torch")):
            return getattr(owner, name)
        if isinstance(owner, Tracked) and name not in ("shape", "dtype", "ndim", "T", "data", "device"):
            return _Method(owner, name)
        if isinstance(owner, Tracked):
            return attribute(owner, name)
        if isinstance(owner, list):
            return _Method(owner, name)
        raise Unknown(f"the attribute {name} of {owner!r:.40}")

    def _register(self, name: str, value: Any, **_: Any) -> None:
        self._self.values[name] = _named(value, Origin("parameter", name), parameters=True)

    def _called(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Call):
            inner = node.func.value.func
            if isinstance(inner, ast.Name) and inner.id == "super":
                return None
        function = self._value(node.func)
        args: list[Any] = []
        for a in node.args:
            args += list(self._value(a.value)) if isinstance(a, ast.Starred) else [self._value(a)]
        keywords = {k.arg: self._value(k.value) for k in node.keywords if k.arg is not None}
        if isinstance(function, _Library):
            return self._call(function.name, args, keywords)
        if isinstance(function, _Method):
            return call_method(function.owner, function.name, args, keywords)
        if isinstance(function, ast.FunctionDef):
            bound = [self._self] if function.name in self._methods and isinstance(node.func, ast.Attribute) else []
            return self._run(function, [*bound, *args], keywords)
        if function is self._register or function == self._register:
            return self._register(*args, **keywords)
        if not callable(function):
            raise Unknown(f"a call of {function!r:.40}")
        return self._library_call(function, args, keywords)

    def _library_call(self, function: Callable[..., Any], args: list[Any], keywords: dict[str, Any]) -> Any:
        """A function of Python or torch: constructors, views of tensors, and arithmetic of numbers."""
        name = getattr(function, "__name__", "")
        for known, answer in _ANSWERS:
            if function is known:
                return answer(args)
        if isinstance(function, type) and issubclass(function, torch.nn.Module):
            if function.__module__.startswith("torch.nn."):
                return function(*args, **keywords)
            raise Unknown(f"the module {name}")
        if getattr(torch, name, None) is function and name in _MAKERS:
            keywords = {k: v for k, v in keywords.items() if k != "device"}
            tensor = function(*(_bare(a) for a in args), **{k: _bare(v) for k, v in keywords.items()})
            return Tracked(tensor.detach(), _origin_in(args[_VALUES[name]]) if name in _VALUES else CONSTANT)
        if args and isinstance(args[0], Tracked):
            return call_method(args[0], name, args[1:], keywords)
        if name in _PLAIN or getattr(math, name, None) is function:
            found = function(*args, **keywords)
            same = name in ("int", "float") and len(args) == 1 and found == args[0]
            return with_origin(found, args[0].origin) if same and hasattr(args[0], "origin") else found
        raise Unknown(f"the function {name or function}")

    def _plain(self, function: Callable[..., Any], node: ast.expr, *values: Any) -> Any:
        if any(isinstance(v, Tracked) for v in values):
            raise Unknown(f"{_short(node)}, which computes with a tensor,")
        return function(*values)

    def _either(self, node: ast.BoolOp) -> Any:
        value = None
        for one in node.values:
            value = self._value(one)
            if bool(value) != isinstance(node.op, ast.And):
                break
        return value

    def _compared(self, node: ast.Compare) -> bool:
        left = self._value(node.left)
        for symbol, right_node in zip(node.ops, node.comparators, strict=True):
            right = self._value(right_node)
            if isinstance(symbol, (ast.Is, ast.IsNot)):
                holds = (left is right) == isinstance(symbol, ast.Is)
            elif isinstance(symbol, (ast.In, ast.NotIn)):
                holds = (left in right) == isinstance(symbol, ast.In)
            else:
                holds = bool(self._plain(_COMPARED[type(symbol)], node, left, right))
            if not holds:
                return False
            left = right
        return True

    def _subscript(self, node: ast.Subscript) -> Any:
        owner = self._value(node.value)
        if isinstance(owner, Tracked):
            raise Unknown(f"{_short(node)}, a part of a tensor,")
        if isinstance(node.slice, ast.Slice):
            part = node.slice
            ends = [None if e is None else self._value(e) for e in (part.lower, part.upper, part.step)]
            return owner[slice(*ends)]
        return owner[self._value(node.slice)]

    def _refuse(self, what: str) -> Never:
        line = getattr(self._at, "lineno", 0)
        raise OperatorError(
            f"{self._file}: model_src line {line} {what}.",
            "ModelNew may keep parameters and numbers, convert and reshape tensors, and call custom_ops_lib.",
        )


def _listed(values: Any) -> list[Any]:
    """What a loop goes through."""
    if len(values) > LIMIT:
        raise Unknown(f"a loop of more than {LIMIT} rounds")
    return list(values)


def _power(base: Any, exponent: Any) -> Any:
    if abs(exponent) > 64:
        raise Unknown(f"the power {base} ** {exponent}")
    return base**exponent


def _product(a: Any, b: Any) -> Any:
    count = b if isinstance(a, (list, tuple, str)) else a if isinstance(b, (list, tuple, str)) else 0
    if count > LIMIT:
        raise Unknown(f"a list of {count} elements")
    return a * b


class _Method:
    def __init__(self, owner: Any, name: str) -> None:
        self.owner, self.name = owner, name


class _Part:
    """A sub-module of torch.nn: its parameters, buffers and numbers are looked at, it isn't called."""

    def __init__(self, module: torch.nn.Module, path: str) -> None:
        self.module, self.path = module, path

    def attribute(self, name: str) -> Any:
        found = getattr(self.module, name, None)
        if isinstance(found, torch.Tensor):
            return Tracked(found.detach(), Origin("parameter", f"{self.path}.{name}"))
        if isinstance(found, torch.nn.Module):
            return _Part(found, f"{self.path}.{name}")
        if found is None or isinstance(found, (bool, int, float, str, tuple)):
            return found
        raise Unknown(f"{name} of a {type(self.module).__name__}")


def _named(value: Any, origin: Origin, parameters: bool = False) -> Any:
    """``value`` with its origin; what an attribute of ``self`` keeps of the constructor keeps that origin."""
    if isinstance(value, torch.nn.Module):
        return _Part(value, origin.name)
    if isinstance(value, (list, tuple)) and value and all(isinstance(v, torch.Tensor) for v in value):
        return [with_origin(v, Origin(origin.kind, f"{origin.name}.{i}")) for i, v in enumerate(value)]
    if parameters:
        return replace(value, origin=origin) if isinstance(value, Tracked) and value.origin == CONSTANT else value
    return with_origin(value, origin)


def _origin_in(value: Any) -> Origin:
    """The origin of the numbers a tensor was made of, where they have one in common."""
    origins = {getattr(v, "origin", CONSTANT) for v in (value if isinstance(value, (list, tuple)) else [value])}
    return origins.pop() if len(origins) == 1 else CONSTANT


def _bare(value: Any) -> Any:
    """What torch takes for a value that is followed."""
    if isinstance(value, Tracked):
        return value.tensor
    if isinstance(value, (list, tuple)):
        return type(value)(_bare(v) for v in value)
    return value


def _is_instance(value: Any, kinds: Any) -> bool:
    for kind in kinds if isinstance(kinds, tuple) else (kinds,):
        if kind is torch.Tensor and isinstance(value, Tracked):
            return True
        if kind in (int, float, bool, str, list, tuple, dict) and isinstance(value, kind):
            return True
    return False


def _resolved(path: str) -> Any:
    """A module or attribute of torch or math; None where there is no such thing."""
    parts = path.split(".")
    found: Any = torch if parts[0] == "torch" else math
    for part in parts[1:]:
        found = getattr(found, part, None)
    return found


def _loaded(target: ast.expr) -> ast.expr:
    """An assigned place, to be read."""
    return ast.parse(ast.unparse(target), mode="eval").body


def _short(node: ast.AST) -> str:
    return "`" + " ".join(ast.unparse(node).split())[:80] + "`"


_OPERATIONS: dict[type[ast.operator], Callable[..., Any]] = {
    ast.Add: op.add, ast.Sub: op.sub, ast.Mult: _product, ast.Div: op.truediv, ast.FloorDiv: op.floordiv,
    ast.Mod: op.mod, ast.Pow: _power,
}  # fmt: skip
_UNARY: dict[type[ast.unaryop], Callable[..., Any]] = {
    ast.USub: op.neg, ast.UAdd: op.pos, ast.Not: op.not_, ast.Invert: op.inv,
}  # fmt: skip
_COMPARED: dict[type[ast.cmpop], Callable[..., Any]] = {
    ast.Eq: op.eq, ast.NotEq: op.ne, ast.Lt: op.lt, ast.LtE: op.le, ast.Gt: op.gt, ast.GtE: op.ge,
}  # fmt: skip


def _operation(symbol: ast.operator) -> Callable[..., Any]:
    if type(symbol) not in _OPERATIONS:
        raise Unknown(f"the operator {type(symbol).__name__}")
    return _OPERATIONS[type(symbol)]


# What these answer, given their arguments, without being called.
_ANSWERS: tuple[tuple[object, Callable[[list[Any]], Any]], ...] = (
    (isinstance, lambda args: _is_instance(args[0], args[1])),
    (hasattr, lambda args: False),
    (torch.nn.Parameter, lambda args: args[0]),
    (torch.nn.parameter.Parameter, lambda args: args[0]),
    (torch.no_grad, lambda args: None),
    (torch.inference_mode, lambda args: None),
    (torch.broadcast_tensors, broadcast),
)
