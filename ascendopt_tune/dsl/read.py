"""Reads a program: a file's text becomes a :class:`Program`. Nothing of the file is executed."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from ..files import read_source
from .errors import DslError
from .ir import (
    DTYPES,
    FLOAT32,
    Attribute,
    Check,
    DType,
    Expr,
    Host,
    Knob,
    Let,
    Load,
    Number,
    Program,
    ScalarType,
    Store,
    Tensor,
    num,
    walk,
)
from .read_kernel import KernelReader
from .scalar import Reader

_MODULE = "ascendopt_tune.dsl"


def read_file(path: Path, name: str | None = None) -> Program:
    """The program in a file. Raises DslError: a rule is broken, or it can't be read."""
    try:
        text = read_source(path)
    except OSError as error:
        hint = "Name a file with a program in the tile language (docs/dsl.md)."
        raise DslError(f"{path} can't be read: {error.strerror}.", hint, str(path)) from error
    return read_text(text, str(path), name)


def read_text(text: str, file: str = "<program>", name: str | None = None) -> Program:
    """The program in a text; ``name``: of the host function, where there are several.

    Raises:
        DslError: a rule is broken.
    """
    try:
        module = ast.parse(text)
    except SyntaxError as error:
        raise DslError(f"{error.msg}.", "This is Python's syntax.", file, error.lineno or 1) from None
    tl = _names_of_the_language(module)
    functions = {n.name: n for n in module.body if isinstance(n, ast.FunctionDef)}
    hosts = [f for f in functions.values() if "host" in _decorators(f, tl)]
    kernels = {n: f for n, f in functions.items() if _decorators(f, tl) & {"kernel", "ascend_kernel"}}
    if name is not None:
        hosts = [f for f in hosts if f.name == name]
    if len(hosts) != 1:
        found = ", ".join(f.name for f in hosts) or "none"
        hint = "Mark the function that launches with @tl.host; name one of several."
        raise DslError(f"a program has one host function, here: {found}.", hint, file, 1)
    return _Reading(file, text, tl, _constants(module), kernels).program(hosts[0])


def _names_of_the_language(module: ast.Module) -> set[str]:
    names = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            names |= {a.asname for a in node.names if a.name in (_MODULE, "tile.language") and a.asname}
        if isinstance(node, ast.ImportFrom) and node.module == _MODULE.rpartition(".")[0]:
            names |= {a.asname or a.name for a in node.names if a.name == "dsl"}
    return names or {"tl"}


def _decorators(function: ast.FunctionDef, tl: set[str]) -> set[str]:
    found = set()
    for d in function.decorator_list:
        node = d.func if isinstance(d, ast.Call) else d
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in tl:
            found.add(node.attr)
        elif isinstance(node, ast.Name):
            found.add(node.id)
    return found


def _constants(module: ast.Module) -> dict[str, Number]:
    return {
        n.targets[0].id: n.value.value
        for n in module.body
        if isinstance(n, ast.Assign) and len(n.targets) == 1 and isinstance(n.targets[0], ast.Name)
        if isinstance(n.value, ast.Constant) and isinstance(n.value.value, (int, float))
    }


def one_line(text: str) -> str:
    """As it may stand in a comment of C++ or in a text of it."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split()).rstrip("\\ ")


class _Reading:
    def __init__(
        self,
        file: str,
        text: str,
        tl: set[str],
        constants: Mapping[str, Number],
        kernels: Mapping[str, ast.FunctionDef],
    ) -> None:
        self._file, self._text, self._tl, self._constants, self._kernels = file, text, tl, constants, kernels
        self._tensors: dict[str, Tensor] = {}
        self._attributes: dict[str, Attribute] = {}
        self._types: dict[str, ScalarType] = {}
        self._steps: list[Let | Check | Knob] = []
        self._ranks: dict[str, tuple[int, int]] = {}
        self._declared: dict[str, tuple[tuple[Expr, ...], DType]] = {}
        self._launch: ast.Call | None = None

    def program(self, node: ast.FunctionDef) -> Program:
        self._parameters(node)
        for s in node.body:
            self._statement(s)
        if self._launch is None:
            raise self._error(
                node, f"{node.name} launches nothing.", "Write my_kernel[tl.cores(n)](tensors..., numbers...)."
            )
        kernel_node, arguments, cores = self._read_launch(self._launch)
        names = [a.arg for a in kernel_node.args.args]
        given = dict(zip(names, arguments, strict=True))
        tensors = {n: self._tensors[a].dtype for n, a in given.items() if isinstance(a, str)}
        types = {n: a.type for n, a in given.items() if isinstance(a, Expr)}
        kernel = KernelReader(self._file, self._tl, self._constants, tensors, types).read(kernel_node)
        self._inferable()
        self._kinds({str(given[s.tensor]) for s in walk(kernel.body) if isinstance(s, Store)}, node)
        read = {str(given[s.tensor]) for s in walk(kernel.body) if isinstance(s, Load)}
        host = Host(
            node.name, self._tensors, self._attributes, tuple(self._steps), self._ranks, cores, arguments, node.lineno,
            ast.get_docstring(node) or "",
        )  # fmt: skip
        unused = [t.name for t in self._tensors.values() if t.kind == "input" and t.name not in read]
        for t in unused:
            if any(x.op in ("dim", "numel") and x.value == t for x in _expressions(host)):
                continue
            raise self._error(node, f"the input {t!r} is never loaded.", "Leave it out.")
        return Program(host, kernel, self._file, self._text)

    # -- the host function --------------------------------------------------------------------------------------------

    def _parameters(self, node: ast.FunctionDef) -> None:
        a = node.args
        if a.vararg or a.kwarg or a.posonlyargs:
            raise self._error(node, f"{node.name} has *args or **kwargs.", "Name every tensor and every attribute.")
        defaults = dict(zip([p.arg for p in a.args][len(a.args) - len(a.defaults) :], a.defaults, strict=True))
        defaults |= {p.arg: d for p, d in zip(a.kwonlyargs, a.kw_defaults, strict=True) if d is not None}
        for p in [*a.args, *a.kwonlyargs]:
            if p.arg not in defaults:
                dtype = self._dtype(p.annotation) if p.annotation is not None else FLOAT32
                self._tensors[p.arg] = Tensor(p.arg, dtype, "input", None, p.lineno)
                continue
            value = self._reader().read(defaults[p.arg])
            if value.op != "num" or isinstance(value.value, str):
                raise self._error(p, f"the default of attribute {p.arg!r} is no number.")
            self._attributes[p.arg] = Attribute(p.arg, value.type, value.value)
            self._types[p.arg] = value.type

    def _statement(self, s: ast.stmt) -> None:
        if (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)) or isinstance(s, (ast.Return, ast.Pass)):
            return
        if isinstance(s, ast.Assert):
            text = s.msg.value if isinstance(s.msg, ast.Constant) else ast.unparse(s.test)
            self._steps.append(Check(self._reader().read(s.test), one_line(str(text)), s.lineno))
        elif isinstance(s, ast.Assign) and len(s.targets) == 1:
            self._assign(s, s.targets[0], s.value)
        elif isinstance(s, ast.Expr) and isinstance(s.value, ast.Call):
            call = s.value
            if isinstance(call.func, ast.Subscript):
                if self._launch is not None:
                    raise self._error(
                        s, "a second launch.", "A program launches one kernel; meet by tl.sync_all() in it."
                    )
                self._launch = call
            elif self._called(call) == "output":
                self._output(call)
            else:
                raise self._error(s, f"{ast.unparse(s)!r} is no call of a host function.")
        else:
            text = f"{ast.unparse(s).splitlines()[0]!r} is no statement of a host function."
            hint = "There are assignments, assert, tl.output, one launch and return; choose by `a if test else b`."
            raise self._error(s, text, hint)

    def _assign(self, s: ast.stmt, target: ast.expr, value: ast.expr) -> None:
        shape_of = self._shape_of(value)
        if isinstance(target, ast.Tuple) and shape_of is not None:
            names = [t.id for t in target.elts if isinstance(t, ast.Name)]
            if len(names) != len(target.elts):
                raise self._error(s, f"{ast.unparse(target)!r}: only names can be assigned.")
            known = self._ranks.setdefault(shape_of, (len(names), s.lineno))
            if known[0] != len(names):
                raise self._error(s, f"{shape_of} has {known[0]} axes in line {known[1]} and {len(names)} here.")
            for axis, name in enumerate(names):
                self._let(s, name, Expr("dim", "int", (num(axis),), shape_of))
            return
        if not isinstance(target, ast.Name):
            raise self._error(s, f"{ast.unparse(target)!r} can't be assigned.")
        name, called = target.id, self._called(value)
        if called == "knob":
            assert isinstance(value, ast.Call)
            self._knob(value, name)
        elif called in ("empty", "workspace", "empty_like"):
            assert isinstance(value, ast.Call)
            self._made(value, name, called)
        else:
            self._let(s, name, self._reader().read(value))

    def _let(self, s: ast.AST, name: str, e: Expr) -> None:
        if name in self._types or name in self._tensors:
            raise self._error(s, f"{name!r} is assigned twice.", "Names of a host function keep one meaning.")
        self._types[name] = e.type
        self._steps.append(Let(getattr(s, "lineno", 0), name, e))

    def _knob(self, call: ast.Call, name: str) -> None:
        keywords = {k.arg: k.value for k in call.keywords}
        if len(call.args) != 2 or not isinstance(call.args[0], ast.Constant) or set(keywords) - {"why"}:
            raise self._error(call, "tl.knob takes a name and a default.", 'tl.knob("TILE_LENGTH", 4096, why="...").')
        e = self._reader().integer(call.args[1], "the default of a knob")
        limit = None
        if e.op == "min" and any(a.op == "num" for a in e.args):
            rest = tuple(a for a in e.args if a.op != "num")
            limit = rest[0] if len(rest) == 1 else Expr("min", "int", rest)
            e = min((a for a in e.args if a.op == "num"), key=lambda a: float(a.value))
        if e.op != "num" or not isinstance(e.value, int):
            text = f"a knob's default is a number, or the smaller of one and something: {ast.unparse(call.args[1])!r}."
            raise self._error(call, text, "min(8192, tl.align(cols, 8)).")
        why = keywords.get("why")
        text = one_line(str(why.value)) if isinstance(why, ast.Constant) else ""
        if not re.fullmatch(r"[A-Z][A-Z0-9_]*", str(call.args[0].value)):
            raise self._error(call, f"{call.args[0].value!r} is no name of a knob.", "Capitals: TILE_LENGTH.")
        self._types[name] = "int"
        self._steps.append(Knob(str(call.args[0].value), name, e.value, limit, text, call.lineno))

    def _made(self, call: ast.Call, name: str, called: str) -> None:
        if name in self._types or name in self._tensors:
            raise self._error(call, f"{name!r} is assigned twice.")
        if called == "empty_like":
            like = self._tensor_named(call.args[0] if call.args else call)
            shape: tuple[Expr, ...] | None = (Expr("shape", "int", (), like.name),)
            dtype = like.dtype
        else:
            shape, dtype = self._shape(call, call.args)
        kind: Literal["workspace", "output"] = "workspace" if called == "workspace" else "output"
        self._tensors[name] = Tensor(name, dtype, kind, shape, call.lineno)

    def _output(self, call: ast.Call) -> None:
        tensor = self._tensor_named(call.args[0] if call.args else call)
        self._declared[tensor.name] = self._shape(call, call.args[1:])

    def _shape(self, call: ast.Call, args: list[ast.expr]) -> tuple[tuple[Expr, ...], DType]:
        nodes = [*args, *(k.value for k in call.keywords if k.arg == "dtype")]
        if not 1 <= len(nodes) <= 2:
            raise self._error(call, f"{ast.unparse(call)!r}: a shape and a dtype are needed.")
        dtype = self._dtype(nodes[1]) if len(nodes) == 2 else FLOAT32
        like = self._shape_of(nodes[0])
        if like is not None:
            return (Expr("shape", "int", (), like),), dtype
        axes = nodes[0].elts if isinstance(nodes[0], (ast.Tuple, ast.List)) else [nodes[0]]
        return tuple(self._reader().integer(n, "an axis") for n in axes), dtype

    def _inferable(self) -> None:
        """Shapes of outputs are made of the inputs' shapes alone: they are inferred without a device or a knob."""
        steps: dict[str, Expr] = {}
        for step in self._steps:
            if isinstance(step, Let):
                steps[step.name] = step.value.substitute(steps)
        declared = {name: shape for name, (shape, _) in self._declared.items()}
        declared |= {t.name: t.shape for t in self._tensors.values() if t.kind == "output" and t.shape is not None}
        for name, shape in declared.items():
            for e in shape:
                bad = [x for x in e.substitute(steps).walk() if x.op in ("var", "cores", "num_cores", "ub_bytes")]
                if bad:
                    what = str(bad[0].value) if bad[0].op == "var" else f"tl.{bad[0].op}"
                    text = f"the shape of {name!r} depends on {what!r}."
                    hint = "It may use the inputs' shapes, and no knob, attribute or number of cores."
                    raise DslError(text, hint, self._file, self._tensors[name].line)

    def _kinds(self, stored: set[str], node: ast.FunctionDef) -> None:
        """Parameters that the kernel stores to are outputs; their shape is the first input's unless it is said."""
        inputs = [t for t in self._tensors.values() if t.kind == "input" and t.name not in stored]
        for t in list(self._tensors.values()):
            if t.kind == "input" and t.name in stored:
                if not inputs:
                    raise self._error(node, f"{t.name!r} is stored to, and there is no input to take its shape from.")
                shape, dtype = self._declared.get(t.name, ((Expr("shape", "int", (), inputs[0].name),), t.dtype))
                self._tensors[t.name] = Tensor(t.name, dtype, "output", shape, t.line)
            elif t.kind == "output" and t.name not in stored:
                raise self._error(node, f"the output {t.name!r} is never stored to.", "Store to it, or leave it out.")
        if not any(t.kind == "output" for t in self._tensors.values()):
            raise self._error(node, "the program has no output.", "Store to a parameter, or to y = tl.empty(...).")

    def _read_launch(self, call: ast.Call) -> tuple[ast.FunctionDef, tuple[str | Expr, ...], Expr]:
        assert isinstance(call.func, ast.Subscript)
        name = ast.unparse(call.func.value)
        if name not in self._kernels:
            raise self._error(call, f"there is no kernel {name!r}.", f"There are {', '.join(self._kernels) or 'none'}.")
        kernel = self._kernels[name]
        parameters = [a.arg for a in kernel.args.args]
        if kernel.args.defaults or kernel.args.kwonlyargs or kernel.args.vararg or kernel.args.kwarg or call.keywords:
            raise self._error(call, f"{name} is launched with positional arguments only, without defaults.")
        if len(call.args) != len(parameters):
            text = f"{name} has {len(parameters)} parameters, the launch gives {len(call.args)}."
            raise self._error(call, text, f"They are {', '.join(parameters)}.")
        cores = self._reader().integer(call.func.slice, "the number of cores")
        arguments: list[str | Expr] = []
        for a in call.args:
            if isinstance(a, ast.Name) and a.id in self._tensors:
                if a.id in arguments:
                    raise self._error(a, f"{a.id!r} is given twice.", "A tensor goes to one parameter.")
                arguments.append(a.id)
            else:
                arguments.append(self._reader().read(a))
        missing = [t for t in self._tensors if t not in arguments]
        for t in missing:
            if not any(x.op in ("dim", "numel") and x.value == t for s in self._steps for x in _of_step(s)):
                raise self._error(call, f"the tensor {t!r} isn't given to {name}.")
        return kernel, tuple(arguments), cores

    # -- expressions --------------------------------------------------------------------------------------------------

    def _reader(self) -> Reader:
        return Reader(self._file, self._types, self._constants, self._special)

    def _special(self, node: ast.expr) -> Expr | None:
        if isinstance(node, ast.Subscript):
            tensor = self._shape_of(node.value)
            if tensor is not None:
                axis = self._reader().read(node.slice)
                if axis.op != "num" or not isinstance(axis.value, int):
                    raise self._error(node, f"{ast.unparse(node)!r}: the axis has to be a number.")
                return Expr("dim", "int", (axis,), tensor)
        target = node.func if isinstance(node, ast.Call) and not node.args else node
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
            if target.attr == "numel" and target.value.id in self._tensors:
                return Expr("numel", "int", (), target.value.id)
            if target.attr == "inf" and target.value.id in self._tl:
                return num(float("inf"))
        called = self._called(node)
        if called == "cores" and isinstance(node, ast.Call):
            limit = [self._reader().integer(a, "the limit of tl.cores") for a in node.args]
            return Expr("cores", "int", tuple(limit[:1]))
        if called in ("ub_bytes", "num_cores"):
            return Expr(called, "int")
        return None

    def _shape_of(self, node: ast.expr) -> str | None:
        if isinstance(node, ast.Attribute) and node.attr == "shape" and isinstance(node.value, ast.Name):
            return node.value.id if node.value.id in self._tensors else None
        return None

    def _tensor_named(self, node: ast.AST) -> Tensor:
        if isinstance(node, ast.Name) and node.id in self._tensors:
            return self._tensors[node.id]
        raise self._error(node, "a tensor is needed here.", f"There are {', '.join(self._tensors)}.")

    def _dtype(self, node: ast.expr) -> DType:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id in self._tl and node.attr in DTYPES:
                return DTYPES[node.attr]
            if node.attr == "dtype" and node.value.id in self._tensors:
                return self._tensors[node.value.id].dtype
        text = f"{ast.unparse(node)!r} is no dtype."
        raise self._error(node, text, f"There are {', '.join(f'tl.{d}' for d in DTYPES)}.")

    def _called(self, node: ast.expr) -> str:
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            return ""
        owner = node.func.value
        return node.func.attr if isinstance(owner, ast.Name) and owner.id in self._tl else ""

    def _error(self, node: ast.AST, text: str, hint: str = "") -> DslError:
        return DslError(text, hint, self._file, getattr(node, "lineno", 0))


def _of_step(step: Let | Check | Knob) -> list[Expr]:
    if isinstance(step, Let):
        return list(step.value.walk())
    if isinstance(step, Check):
        return list(step.test.walk())
    return list(step.limit.walk()) if step.limit is not None else []


def _expressions(host: Host) -> list[Expr]:
    found = [e for step in host.steps for e in _of_step(step)]
    for a in (*host.arguments, host.cores):
        if isinstance(a, Expr):
            found += a.walk()
    return found
