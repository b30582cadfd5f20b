"""What a kernel's reader knows of names: scalars, buffers, dtypes, pointers, and how long a tile is at most."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

from .errors import DslError
from .ir import DTYPES, Buffer, DType, Expr, Let, Number, Region, ScalarType, Statement, num
from .scalar import FUNCTIONS, Reader

BLOCKS = {"copyin": "tl.load", "compute": "operations on tiles", "copyout": "tl.store and atomics"}


@dataclass
class Body:
    """What is being read: its statements, and the scalars in sight."""

    out: list[Statement] = field(default_factory=list)
    types: dict[str, ScalarType] = field(default_factory=dict)


class Names(ABC):
    """The state of reading one kernel, and what asks or changes names.

    Args:
        file: the user's file, for messages.
        tl: the names under which the file knows the language.
        constants: numbers of the file itself.
        tensors: parameters that are global memory, with their dtype; the others are scalars of ``types``.
    """

    def __init__(
        self,
        file: str,
        tl: set[str],
        constants: Mapping[str, Number],
        tensors: Mapping[str, DType],
        types: Mapping[str, ScalarType],
    ) -> None:
        self._file, self._tl, self._constants, self._tensors = file, tl, constants, dict(tensors)
        self._parameters = set(types)
        self._buffers: dict[str, Buffer] = {}
        self._defined: dict[str, list[Expr]] = {}
        self._body = Body(types=dict(types))
        self._loops: set[str] = set()
        self._block: str | None = None
        self._blocks_used = False
        self._free: list[str] = []  # temporaries that nothing needs any more
        self._taken: list[str] = []  # temporaries of the statement at hand
        self._born: set[str] = set()  # those of them that are new
        self._numbers = 0

    @abstractmethod
    def _special(self, node: ast.expr) -> Expr | None:
        """A scalar that only tiles or cores know; None for any other."""

    def _scalar(self, node: ast.expr) -> Expr:
        return Reader(self._file, self._body.types, self._constants, self._special).read(node)

    def _integer(self, node: ast.expr, what: str) -> Expr:
        return Reader(self._file, self._body.types, self._constants, self._special).integer(node, what)

    def _let(self, node: ast.AST, name: str, e: Expr) -> None:
        if name in self._buffers:
            raise self._error(node, f"{name!r} is a tile and becomes a scalar.", "Use another name.")
        known = self._body.types.get(name)
        if known is not None and known != e.type:
            if (known, e.type) != ("float", "int"):
                hint = f"Begin with {name} = 0.0, or convert by tl.int(...)."
                raise self._error(node, f"{name!r} is {known} and becomes {e.type}.", hint)
            e = Expr("float", "float", (e,))
        self._body.types[name] = e.type
        self._defined.setdefault(name, []).append(e)
        self._body.out.append(Let(getattr(node, "lineno", 0), name, e))

    def _bound(self, node: ast.AST, e: Expr) -> Expr:
        """What ``e`` is at most, in parameters of the kernel alone: how long a buffer has to be."""
        found = self._at_most(e, set())
        if found is None:
            text = "how long this tile is at most can't be seen before the kernel runs."
            raise self._error(node, text, "Bound it by a parameter: n = tl.min(tile, left).")
        return found

    def _at_most(self, e: Expr, seen: set[str]) -> Expr | None:
        if all(str(v) in self._parameters for v in e.variables()) and not any(
            x.op in ("extract", "program_id", "num_programs") for x in e.walk()
        ):
            return e
        if e.op == "var" and e.value not in seen:
            of = self._defined.get(str(e.value), [])
            bounds = [self._at_most(d, seen | {str(e.value)}) for d in of]
            known = list(dict.fromkeys(b for b in bounds if b is not None))
            if not of or None in bounds:
                return None
            return known[0] if len(known) == 1 else Expr("max", "int", tuple(known))
        if e.op == "min":
            return next((b for a in e.args if (b := self._at_most(a, seen)) is not None), None)
        if e.op == "align":
            inner = self._at_most(e.args[0], seen)
            return Expr("align", "int", (inner, e.args[1])) if inner is not None else None
        return None

    def _pointer(self, node: ast.expr) -> tuple[str, Region]:
        """``tensor + offset + tl.arange(0, n)``, or with two aranges for two axes."""
        terms = _terms(node)
        tensors = [t for t, _ in terms if isinstance(t, ast.Name) and t.id in self._tensors]
        lanes = [t for t, _ in terms if t not in tensors and self._arange(t) is not None]
        if len(tensors) != 1 or not 1 <= len(lanes) <= 2 or any(s < 0 for t, s in terms if t in [*tensors, *lanes]):
            hint = "Write tensor + offset + tl.arange(0, n); irregular indices need tl.gather, which isn't there yet."
            raise self._error(node, f"{ast.unparse(node)!r} is no pointer.", hint)
        offset = self._offset([(t, sign) for t, sign in terms if t not in tensors and t not in lanes])
        found = {axis: (count, stride) for axis, count, stride in filter(None, map(self._arange, lanes))}
        if len(lanes) == 1 and set(found) == {None}:
            count, stride = found[None]
            if stride is not None:
                text = f"{ast.unparse(node)!r} takes single elements, a stride apart."
                raise self._error(
                    node, text, "Take rows: tl.arange(0, R)[:, None] * stride + tl.arange(0, C)[None, :]."
                )
            return tensors[0].id, Region(offset, count)
        if set(found) != {0, 1} or found[1][1] is not None:
            text = f"{ast.unparse(node)!r} is no tile of rows."
            hint = "Write tl.arange(0, R)[:, None] * stride + tl.arange(0, C)[None, :]."
            raise self._error(node, text, hint)
        return tensors[0].id, Region(offset, found[1][0], found[0][0], found[0][1] or num(1))

    def _offset(self, terms: list[tuple[ast.expr, int]]) -> Expr:
        """The sum of (term, sign)."""
        offset: Expr | None = None
        for t, sign in terms:
            e = self._integer(t, "an offset")
            first = e if sign > 0 else Expr("neg", "int", (e,))
            offset = first if offset is None else Expr("+" if sign > 0 else "-", "int", (offset, e))
        return offset or num(0)

    def _arange(self, node: ast.expr) -> tuple[int | None, Expr, Expr | None] | None:
        """(axis, count, stride) of ``tl.arange(0, n)``, with ``[:, None]`` or ``[None, :]``, times a stride."""
        stride = None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            for lanes, factor in ((node.left, node.right), (node.right, node.left)):
                inner = self._arange(lanes)
                if inner is not None and inner[2] is None:
                    return inner[0], inner[1], self._integer(factor, "a stride")
            return None
        axis = None
        if isinstance(node, ast.Subscript):
            text = ast.unparse(node.slice).strip("()").replace(" ", "")
            axis = {":,None": 0, "None,:": 1}.get(text)
            if axis is None:
                return None
            node = node.value
        if not isinstance(node, ast.Call) or self._called(node) != "arange":
            return None
        if len(node.args) != 2 or not (isinstance(node.args[0], ast.Constant) and node.args[0].value == 0):
            raise self._error(
                node, f"{ast.unparse(node)!r}: lanes count from 0.", "Write tl.arange(0, n), add the rest."
            )
        return axis, self._integer(node.args[1], "the end of tl.arange"), stride

    def _within(self, node: ast.AST, block: str) -> None:
        if self._blocks_used and self._block != block:
            where = f"in tl.{self._block}()" if self._block else "outside a block"
            hint = f"Put it into `with tl.{block}():`, or write the kernel without blocks."
            raise self._error(node, f"{BLOCKS[block]} {where}.", hint)

    def _temporary(self, node: ast.AST, dtype: DType, shape: tuple[Expr, ...]) -> str:
        for name in self._free:
            if (self._buffers[name].dtype, self._buffers[name].shape) == (dtype, shape):
                self._free.remove(name)
                self._taken.append(name)
                return name
        self._numbers += 1
        name = f"tile{self._numbers}"
        while name in self._buffers or name in self._body.types:
            name += "_"
        self._buffers[name] = Buffer(name, dtype, shape, getattr(node, "lineno", 0))
        self._taken.append(name)
        self._born.add(name)
        return name

    def _fresh(self, name: str, node: ast.AST) -> str:
        found, k = name, 1
        while found in self._body.types or found in self._buffers or found in self._defined:
            k += 1
            found = f"{name}{k}"
        return found

    def _dtype(self, node: ast.expr) -> DType:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id in self._tl and node.attr in DTYPES:
                return DTYPES[node.attr]
            if node.value.id in self._tensors and node.attr == "dtype":
                return self._tensors[node.value.id]
        text = f"{ast.unparse(node)!r} is no dtype."
        raise self._error(node, text, f"There are {', '.join(f'tl.{d}' for d in DTYPES)}, and tensor.dtype.")

    def _called(self, node: ast.expr) -> str:
        """The name of a function of the language that is called, else nothing."""
        if isinstance(node, ast.Call):
            return self._attribute(node.func)
        return ""

    def _attribute(self, node: ast.expr) -> str:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in self._tl:
            return node.attr
        if isinstance(node, ast.Name) and node.id in FUNCTIONS:
            return node.id
        return ""

    def _error(self, node: ast.AST, text: str, hint: str = "") -> DslError:
        return DslError(text, hint, self._file, getattr(node, "lineno", 0))


def _terms(node: ast.expr, sign: int = 1) -> list[tuple[ast.expr, int]]:
    """What is added (1) and subtracted (-1)."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        return [*_terms(node.left, sign), *_terms(node.right, sign if isinstance(node.op, ast.Add) else -sign)]
    return [(node, sign)]


def sum_of(*of: Expr) -> Expr:
    total = of[0]
    for e in of[1:]:
        total = Expr("+", "int", (total, e))
    return total
