"""Scalar expressions: read from Python's syntax tree, evaluated, and written as C++."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..errors import did_you_mean
from .errors import DslError
from .ir import Expr, Number, ScalarType, num
from .ops import ALIASES, OPS, REDUCTIONS

_BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Div: "/", ast.Mod: "%"}
_COMPARE = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
#: Functions of scalars: number of arguments (None: two or more), type of the result (None: of the arguments).
FUNCTIONS: dict[str, tuple[int | None, ScalarType | None]] = {
    "min": (None, None), "max": (None, None), "align": (2, "int"), "ceil_div": (2, "int"),
    "sqrt": (1, "float"), "float": (1, "float"), "int": (1, "int"),
}  # fmt: skip


def _floor_div(a: int, b: int) -> int:
    if b == 0:
        raise ZeroDivisionError
    return a // b


def _divide(a: float, b: float) -> float:
    """As the device divides: by zero to an infinity, or no number."""
    with np.errstate(all="ignore"):
        return float(np.float32(a) / np.float32(b))


_EVALUATE: dict[str, Callable[..., Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": _divide, "//": _floor_div,
    "%": operator.mod, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "==": operator.eq, "!=": operator.ne, "neg": operator.neg, "not": operator.not_,
    "min": min, "max": max, "align": lambda a, b: -(-a // b) * b, "ceil_div": lambda a, b: -(-a // b),
    "sqrt": lambda a: math.sqrt(a) if a >= 0 else math.nan, "float": float, "int": int,
}  # fmt: skip
#: How tightly C++ binds what an expression becomes.
_TIGHT = {"*": 5, "/": 5, "//": 5, "%": 5, "+": 4, "-": 4, "<": 3, "<=": 3, ">": 3, ">=": 3, "==": 2, "!=": 2,
          "and": 1, "or": 0, "if": -1}  # fmt: skip


def _single(value: float) -> float:
    """Rounded to float32, which scalars are on the device."""
    with np.errstate(all="ignore"):
        return float(np.float32(value))


def evaluate(e: Expr, values: Callable[[Expr], Any]) -> Any:
    """The value of an expression; ``values`` answers for what only the surroundings know (var, dim, extract, ...).

    Raises:
        ZeroDivisionError: a division by zero.
    """
    if e.op == "num":
        return e.value
    if e.op == "and":
        return all(evaluate(a, values) for a in e.args)
    if e.op == "or":
        return any(evaluate(a, values) for a in e.args)
    if e.op == "if":
        return evaluate(e.args[1] if evaluate(e.args[0], values) else e.args[2], values)
    if e.op in _EVALUATE:
        value = _EVALUATE[e.op](*(evaluate(a, values) for a in e.args))
        return _single(value) if e.type == "float" else value
    return values(e)


def cpp(e: Expr, leaf: Callable[[Expr], str], outer: int = -2) -> str:
    """The expression as C++; ``leaf`` writes what only the surroundings know."""
    if e.op == "num":
        return number_text(e.value)
    if e.op in ("min", "max"):
        text = cpp(e.args[0], leaf)
        for a in e.args[1:]:
            kind = "float" if e.type == "float" else "int64_t"
            text = f"{e.op.capitalize()}Of<{kind}>({text}, {cpp(a, leaf)})"
        return text
    if e.op in ("align", "ceil_div"):
        name = {"align": "CeilAlign", "ceil_div": "CeilDiv"}[e.op]
        return f"{name}({cpp(e.args[0], leaf)}, {cpp(e.args[1], leaf)})"
    if e.op in ("float", "int"):
        return f"static_cast<{'float' if e.op == 'float' else 'int64_t'}>({cpp(e.args[0], leaf)})"
    if e.op == "sqrt":
        return f"static_cast<float>(sqrt(static_cast<float>({cpp(e.args[0], leaf)})))"  # C's own gives a double
    if e.op == "neg":
        return f"-{cpp(e.args[0], leaf, 6)}"
    if e.op == "not":
        return f"!{cpp(e.args[0], leaf, 6)}"
    if e.op not in _TIGHT:
        return leaf(e)
    tight = _TIGHT[e.op]
    if e.op == "if":
        test, yes, no = (cpp(a, leaf, 0) for a in e.args)
        text = f"{test} ? {yes} : {no}"
    else:
        sign = {"//": "/", "and": "&&", "or": "||"}.get(e.op, e.op)
        left, right = e.args[0], e.args[1]
        parts = [cpp(left, leaf, tight), *(cpp(a, leaf, tight + 1) for a in e.args[1:])]
        if e.op == "/" and left.type == right.type == "int":
            parts[0] = f"static_cast<float>({cpp(left, leaf)})"
        text = f" {sign} ".join(parts)
    return f"({text})" if tight < outer else text


def number_text(value: Number | str) -> str:
    """A literal of C++."""
    if isinstance(value, float):
        if math.isinf(value) or math.isnan(value):
            return "NAN" if math.isnan(value) else "INFINITY" if value > 0 else "-INFINITY"
        text = repr(value)
        return (text if "." in text or "e" in text else text + ".0") + "f"
    return str(value)


#: Functions of the language that make no scalar; somebody may have meant one of them.
_OTHERS = (
    *(*OPS, *ALIASES, *REDUCTIONS),
    *("load", "store", "zeros", "full", "where", "take", "take_rows", "gather", "iota", "arange", "split", "cores"),
)


class Reader:
    """Reads scalar expressions of one function.

    Args:
        file: the user's file, for messages.
        types: the scalars there are, by name.
        constants: numbers of the file itself.
        special: answers for calls and attributes that only the function knows; None for those it doesn't.
    """

    def __init__(
        self,
        file: str,
        types: Mapping[str, ScalarType],
        constants: Mapping[str, Number],
        special: Callable[[ast.expr], Expr | None],
    ) -> None:
        self._file, self._types, self._constants, self._special = file, types, constants, special

    def read(self, node: ast.expr) -> Expr:
        """Raises DslError for anything that is no scalar expression."""
        known = self._special(node)
        if known is not None:
            return known
        if isinstance(node, ast.Constant) and isinstance(node.value, (bool, int, float)):
            return num(int(node.value) if isinstance(node.value, bool) else node.value)
        if isinstance(node, ast.Name):
            return self._name(node)
        if isinstance(node, ast.BinOp):
            return self._binary(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Not)):
            a = self.read(node.operand)
            if isinstance(node.op, ast.Not):
                return Expr("not", "bool", (a,))
            return num(-a.value) if a.op == "num" and not isinstance(a.value, str) else Expr("neg", a.type, (a,))
        if isinstance(node, ast.Compare):
            return self._compare(node)
        if isinstance(node, ast.BoolOp):
            return Expr("and" if isinstance(node.op, ast.And) else "or", "bool", tuple(map(self.read, node.values)))
        if isinstance(node, ast.IfExp):
            test, yes, no = self.read(node.test), self.read(node.body), self.read(node.orelse)
            return Expr("if", _joined(yes, no), (test, yes, no))
        if isinstance(node, ast.Call):
            return self._call(node)
        raise self._error(node, f"{ast.unparse(node)!r} is no scalar.", "Use numbers, scalars, + - * / // %, min, max.")

    def integer(self, node: ast.expr, what: str) -> Expr:
        """An expression that has to be whole. Raises DslError."""
        e = self.read(node)
        if e.type != "int":
            text = f"{what} is {ast.unparse(node)!r}, which is no integer."
            raise self._error(node, text, "Divide with //, or write tl.int(...).")
        return e

    def _name(self, node: ast.Name) -> Expr:
        if node.id in self._types:
            return Expr("var", self._types[node.id], (), node.id)
        if node.id in self._constants:
            return num(self._constants[node.id])
        hint = "Assign it before, in this block or around it; a value that a loop or branch made ends with it."
        raise self._error(node, f"there is no scalar {node.id!r} here.", hint)

    def _binary(self, node: ast.BinOp) -> Expr:
        op = _BINARY.get(type(node.op))
        if op is None:
            text = f"{ast.unparse(node)!r} uses an operator that isn't in the language."
            raise self._error(node, text, "There are + - * / // and %.")
        a, b = self.read(node.left), self.read(node.right)
        if op in ("//", "%") and "float" in (a.type, b.type):
            raise self._error(node, f"{ast.unparse(node)!r}: // and % are for integers.", "Use / for floats.")
        return Expr(op, "float" if op == "/" else _joined(a, b), (a, b))

    def _compare(self, node: ast.Compare) -> Expr:
        ops = [_COMPARE.get(type(o)) for o in node.ops]
        if None in ops:
            raise self._error(node, f"{ast.unparse(node)!r} is no comparison of numbers.", "Use < <= > >= == !=.")
        sides = [self.read(n) for n in (node.left, *node.comparators)]
        parts = [Expr(str(o), "bool", (a, b)) for o, a, b in zip(ops, sides, sides[1:], strict=False)]
        return parts[0] if len(parts) == 1 else Expr("and", "bool", tuple(parts))

    def _call(self, node: ast.Call) -> Expr:
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if name not in FUNCTIONS or node.keywords:
            near = "" if name in _OTHERS else did_you_mean(name, (*FUNCTIONS, *_OTHERS))
            text = f"{ast.unparse(node)!r} is no function of scalars.{near}"
            raise self._error(node, text, f"There are {', '.join(FUNCTIONS)}.")
        count, kind = FUNCTIONS[name]
        args = tuple(map(self.read, node.args))
        if len(args) != count and not (count is None and len(args) > 1):
            raise self._error(node, f"{name} takes {count or 'two or more'} arguments, here are {len(args)}.")
        if kind == "int" and name != "int" and any(a.type != "int" for a in args):
            raise self._error(node, f"{name} is for integers, here is {ast.unparse(node)!r}.")
        return Expr(name, kind or _joined(*args), args)

    def _error(self, node: ast.AST, text: str, hint: str = "") -> DslError:
        return DslError(text, hint, self._file, getattr(node, "lineno", 0))


def _joined(*of: Expr) -> ScalarType:
    return "float" if any(e.type == "float" for e in of) else "int"
