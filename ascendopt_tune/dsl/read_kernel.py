"""Reads a kernel function's statements; tiles become named buffers, tile expressions one operation each."""

from __future__ import annotations

import ast
from dataclasses import replace

from .ir import (
    Buffer,
    Expr,
    For,
    If,
    Insert,
    Kernel,
    Let,
    Load,
    Op,
    Reduce,
    ScalarType,
    Statement,
    Store,
    Sync,
    num,
    var,
)
from .ops import ALIASES, OPS
from .read_names import BLOCKS, Body, sum_of
from .read_tiles import Tiles


class KernelReader(Tiles):
    """Reads one kernel; the arguments are :class:`Names`'."""

    def read(self, node: ast.FunctionDef) -> Kernel:
        """Raises DslError."""
        self._blocks_used = any(isinstance(n, ast.With) for n in ast.walk(node))
        self._statements(node.body)
        parameters = tuple(a.arg for a in node.args.args)
        out = tuple(self._body.out)
        return Kernel(node.name, parameters, out, self._buffers, frozenset(self._tensors), node.lineno)

    def _statements(self, nodes: list[ast.stmt]) -> None:
        for node in nodes:
            self._statement(node)
            self._free += self._taken
            self._taken, self._born = [], set()

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            return
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            self._assign(node, node.targets[0], node.value)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            load = ast.copy_location(ast.Name(node.target.id, ast.Load()), node)
            self._assign(node, node.target, ast.copy_location(ast.BinOp(load, node.op, node.value), node))
        elif isinstance(node, ast.For):
            self._for(node)
        elif isinstance(node, ast.If):
            test = self._scalar(node.test)
            body, orelse = self._inner(node.body), self._inner(node.orelse)
            self._body.out.append(If(node.lineno, test, body, orelse))
        elif isinstance(node, ast.With):
            self._with(node)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            self._call_statement(node.value)
        else:
            text = f"{ast.unparse(node).splitlines()[0]!r} is no statement of a kernel."
            raise self._error(node, text, "There are assignments, for, if, with blocks, and calls of tl.")

    def _inner(self, nodes: list[ast.stmt], loop: tuple[str, ScalarType] | None = None) -> tuple[Statement, ...]:
        outer = self._body
        self._body = Body(types=dict(outer.types))
        if loop is not None:
            self._body.types[loop[0]] = loop[1]
        self._statements(nodes)
        out = tuple(self._body.out)
        self._body = outer
        return out

    def _for(self, node: ast.For) -> None:
        if not isinstance(node.target, ast.Name) or node.orelse or not isinstance(node.iter, ast.Call):
            raise self._error(node, "a loop is `for name in range(...)` or `in tl.split(...)`.")
        name, call = node.target.id, node.iter
        called = self._called(call)
        if isinstance(call.func, ast.Name) and call.func.id == "range" and 1 <= len(call.args) <= 3:
            ends = [self._integer(a, "an end of range") for a in call.args]
            start, stop = (num(0), ends[0]) if len(ends) == 1 else (ends[0], ends[1])
            step = ends[2] if len(ends) == 3 else num(1)
        elif called == "range" and 1 <= len(call.args) <= 3:
            return self._for(ast.copy_location(ast.For(node.target, _named(call, "range"), node.body, []), node))
        elif called == "split":
            start, stop, step = *self._split(call, name), num(1)
            if any(k.arg == "unit" for k in call.keywords):
                step = self._integer(call.keywords[0].value, "unit")
        else:
            text = f"a loop can't run over {ast.unparse(node.iter)!r}."
            raise self._error(node, text, "Use range(...) or tl.split(n, core, cores).")
        if name in self._body.types or name in self._tensors or name in self._buffers:
            raise self._error(node, f"the loop's variable {name!r} has another meaning already.", "Rename it.")
        self._loops.add(name)
        body = self._inner(node.body, (name, "int"))
        self._body.out.append(For(node.lineno, name, start, stop, step, body))

    def _split(self, call: ast.Call, name: str) -> tuple[Expr, Expr]:
        """First and end of a core's share; the first cores take one unit more each."""
        if len(call.args) != 3:
            raise self._error(
                call, "tl.split takes three arguments: n, core, cores.", "tl.split(n, core, cores, unit=8)."
            )
        n, core, cores = (self._integer(a, "an argument of tl.split") for a in call.args)
        unit = [self._integer(k.value, "unit") for k in call.keywords if k.arg == "unit"]
        units = Expr("ceil_div", "int", (n, unit[0])) if unit else n
        share, rest = self._fresh(f"{name}_share", call), self._fresh(f"{name}_rest", call)
        first, end = self._fresh(f"{name}_first", call), self._fresh(f"{name}_end", call)
        self._let(call, share, Expr("//", "int", (units, cores)))
        self._let(call, rest, Expr("%", "int", (units, cores)))
        begin = sum_of(Expr("*", "int", (core, var(share))), Expr("min", "int", (core, var(rest))))
        more = Expr("if", "int", (Expr("<", "bool", (core, var(rest))), num(1), num(0)))
        self._let(call, first, begin)
        self._let(call, end, sum_of(var(first), var(share), more))
        if not unit:
            return var(first), var(end)
        return (
            Expr("*", "int", (var(first), unit[0])),
            Expr("min", "int", (n, Expr("*", "int", (var(end), unit[0])))),
        )

    def _with(self, node: ast.With) -> None:
        call = node.items[0].context_expr
        name = self._called(call) if isinstance(call, ast.Call) else ""
        if len(node.items) != 1 or name not in BLOCKS:
            raise self._error(node, f"a block is one of {', '.join(f'tl.{b}()' for b in BLOCKS)}.")
        if self._block is not None:
            raise self._error(node, f"a block in a block: tl.{name} in tl.{self._block}.", "Close the outer one first.")
        self._block = name
        self._statements(node.body)
        self._block = None

    def _assign(self, node: ast.stmt, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple):
            return self._assign_several(node, target, value)
        if not isinstance(target, ast.Name):
            text = f"{ast.unparse(target)!r} can't be assigned to."
            raise self._error(node, text, "Elements of a buffer are set by tl.insert_scalar(buffer, i, value).")
        name = target.id
        if name in self._tensors or name in self._loops or name in self._parameters:
            what = "a tensor" if name in self._tensors else "a parameter or a loop's variable"
            raise self._error(node, f"{name!r} is {what} and can't be assigned.", "Use another name.")
        called = self._called(value) if isinstance(value, ast.Call) else ""
        if called == "alloc_ub":
            assert isinstance(value, ast.Call)
            return self._alloc(name, value)
        if called == "extract_scalar" and name not in self._buffers:
            assert isinstance(value, ast.Call)
            return self._let(node, name, self._extract(value))
        found = self._value(value, name)
        if isinstance(found, Expr):
            self._let(node, name, found)
        elif found != name:
            self._name_tile(node, name, found)

    def _assign_several(self, node: ast.stmt, target: ast.Tuple, value: ast.expr) -> None:
        names = [t.id for t in target.elts if isinstance(t, ast.Name)]
        if len(names) != len(target.elts):
            raise self._error(node, f"{ast.unparse(target)!r}: only names can be assigned.")
        if isinstance(value, ast.Call) and self._called(value) == "split" and len(names) == 2:
            for name, e in zip(names, self._split(value, names[0]), strict=True):
                self._let(node, name, e)
        elif isinstance(value, ast.Tuple) and len(value.elts) == len(names):
            for name, v in zip(names, value.elts, strict=True):
                self._assign(node, ast.Name(name, ast.Store()), v)
        else:
            raise self._error(node, f"{ast.unparse(value)!r} has not one value for each of {', '.join(names)}.")

    def _name_tile(self, node: ast.AST, name: str, found: str) -> None:
        """``name = tile`` where the tile has a name of its own already: a copy."""
        source = self._buffers[found]
        if found in self._born and name not in self._buffers:  # a temporary that nobody else has had gets the name
            self._taken.remove(found)
            self._born.remove(found)
            del self._buffers[found]
            self._buffers[name] = Buffer(name, source.dtype, source.shape, source.line)
            self._body.out = [_renamed(s, found, name) for s in self._body.out]
            return
        self._own(node, name, source.dtype, source.shape)
        last = self._body.out[-1]
        mine = found in self._taken and isinstance(last, Op) and last.dst == found
        if mine and isinstance(last, Op) and (OPS[last.name].in_place or name not in last.args):
            self._body.out[-1] = replace(last, dst=name)  # the last operation writes where the value belongs
            return
        self._body.out.append(Op(getattr(node, "lineno", 0), "copy", name, (found,)))

    def _call_statement(self, call: ast.Call) -> None:
        name = self._called(call)
        name = ALIASES.get(name, name)
        args = call.args
        if name == "load":
            self._load(call, None)
        elif name in ("store", "atomic_add", "atomic_max", "atomic_min"):
            self._store(call, "" if name == "store" else name.removeprefix("atomic_"))
        elif name == "sync_all":
            self._body.out.append(Sync(call.lineno))
        elif name == "insert_scalar" and len(args) == 3:
            self._within(call, "compute")
            buffer = self._tile(args[0])
            index = self._integer(args[1], "the index")
            self._body.out.append(Insert(call.lineno, buffer, index, self._scalar(args[2])))
        elif name.startswith("reduce_") and len(args) >= 2:
            self._reduce(call, name.removeprefix("reduce_"), self._tile(args[0]), self._tile(args[1]))
        elif name in OPS and len(args) >= 2:
            dst = self._tile(args[0])
            self._operation(call, name, [self._operand(a) for a in args[1:]], dst)
        else:
            text = f"{ast.unparse(call)!r} is no call of the language."
            hint = "With a destination first: tl.exp(dst, src); as a value: dst = tl.exp(src). docs/dsl.md lists all."
            raise self._error(call, text, hint)


def _named(call: ast.Call, name: str) -> ast.Call:
    return ast.copy_location(ast.Call(ast.Name(name, ast.Load()), call.args, []), call)


def _renamed(s: Statement, old: str, new: str) -> Statement:
    """The statement with another name of a buffer."""

    def of(name: str) -> str:
        return new if name == old else name

    if isinstance(s, Op):
        return replace(s, dst=of(s.dst), args=tuple(of(a) if isinstance(a, str) else a for a in s.args))
    if isinstance(s, Reduce):
        return replace(s, dst=of(s.dst), src=of(s.src))
    if isinstance(s, (Load, Store, Insert)):
        return replace(s, buffer=of(s.buffer))
    if isinstance(s, Let) and s.value.op == "extract" and s.value.value == old:
        return replace(s, value=replace(s.value, value=new))
    return s
