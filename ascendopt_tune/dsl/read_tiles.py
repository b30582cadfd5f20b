"""Reads what makes or moves tiles: loads, stores, operations, reductions, and expressions of them."""

from __future__ import annotations

import ast

from .ir import FLOAT32, INT32, Buffer, DType, Expr, Load, Op, Reduce, ScalarType, Store, num, var
from .ops import ALIASES, CONVERSIONS, OPS, REDUCTIONS
from .read_names import Names

_BINARY = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div"}
_COMPARE = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne"}
_LOAD = {"other", "dtype", "before", "after"}
_MAKE = {"load", "zeros", "full", "where", "take", "take_rows", "gather", "iota"}  # make tiles whatever they are given
Value = str | Expr  # a buffer, or a scalar


class Tiles(Names):
    """Tile expressions become one operation each, into buffers with a name."""

    def _own(self, node: ast.AST, name: str, dtype: DType, shape: tuple[Expr, ...]) -> None:
        """``name`` is a tile from now on, as it may have been before."""
        if name in self._body.types:
            raise self._error(node, f"{name!r} is a scalar and becomes a tile.", "Use another name.")
        known = self._buffers.get(name)
        if known is None:
            self._buffers[name] = Buffer(name, dtype, shape, getattr(node, "lineno", 0))
        elif (known.dtype, known.shape) != (dtype, shape):
            text = f"the tile {name!r} changes its {'dtype' if known.dtype != dtype else 'length'}."
            raise self._error(node, text, "Use another name.")

    def _alloc(self, name: str, call: ast.Call) -> None:
        if name in self._buffers:
            raise self._error(call, f"the buffer {name!r} is allocated twice.", "Allocate it once, before the loops.")
        args = list(call.args) + [k.value for k in call.keywords if k.arg == "dtype"]
        if not 1 <= len(args) <= 2:
            raise self._error(call, "tl.alloc_ub takes a length, or a tuple (rows, columns), and a dtype.")
        dtype = self._dtype(args[1]) if len(args) == 2 else FLOAT32
        nodes = args[0].elts if isinstance(args[0], ast.Tuple) else [args[0]]
        if not 1 <= len(nodes) <= 2:
            raise self._error(call, f"a buffer has one or two axes, {name!r} has {len(nodes)}.")
        shape = tuple(self._bound(n, self._integer(n, f"the length of {name!r}")) for n in nodes)
        self._own(call, name, dtype, shape)

    def _load(self, call: ast.Call, name: str | None) -> str:
        """``name`` is who gets the value, None for a buffer that is named in the call."""
        self._within(call, "copyin")
        keywords = {k.arg: k.value for k in call.keywords}
        if len(call.args) != (2 if name is None else 1) or set(keywords) - _LOAD:
            raise self._error(call, f"{ast.unparse(call)!r}: a load is tl.load(pointer, buffer, other=...) or a value.")
        tensor, region = self._pointer(call.args[0])
        other = self._scalar(keywords["other"]) if "other" in keywords else None
        if name is None:
            buffer = self._tile(call.args[1])
        else:
            stored = self._tensors[tensor]
            wide = FLOAT32 if stored.name in ("float16", "bfloat16") else stored
            dtype = self._dtype(keywords["dtype"]) if "dtype" in keywords else wide
            counts = [region.count] if region.rows is None else [region.rows, region.count]
            shape = tuple(self._bound(call, c) for c in counts)
            buffer = name or self._temporary(call, dtype, shape)
            if name:
                self._own(call, name, dtype, shape)
        if region.rows is not None and len(self._buffers[buffer].shape) != 2:
            raise self._error(
                call, f"two axes are loaded into {buffer!r}, which has one.", "tl.alloc_ub((rows, columns))."
            )
        self._convertible(call, self._tensors[tensor], self._buffers[buffer].dtype)
        ends = [self._integer(keywords[k], k) if k in keywords else None for k in ("before", "after")]
        if any(e is not None for e in ends):
            if other is None or name is not None or region.rows is not None:
                hint = "tl.load(pointer, buffer, before=b, after=a, other=0.0), of one axis."
                raise self._error(call, "before= and after= need a buffer and other=.", hint)
            ends = [e or num(0) for e in ends]
        self._body.out.append(Load(call.lineno, tensor, region, buffer, other, *ends))
        return buffer

    def _convertible(self, node: ast.AST, source: DType, to: DType) -> None:
        if source != to and (source.name, to.name) not in CONVERSIONS:
            ways = ", ".join(sorted(b for a, b in CONVERSIONS if a == source.name)) or "nothing"
            text = f"{source.name} can't be converted to {to.name}."
            raise self._error(node, text, f"It can be to {ways}; go by float32 or int32 where one step isn't there.")

    def _store(self, call: ast.Call, atomic: str) -> None:
        self._within(call, "copyout")
        if len(call.args) != 2 or call.keywords:
            raise self._error(call, f"{ast.unparse(call)!r}: a store is tl.store(pointer, tile).")
        tensor, region = self._pointer(call.args[0])
        value = self._value(call.args[1], "")
        if isinstance(value, Expr):
            buffer = self._temporary(call, self._wide(tensor), (num(8),))
            self._operation(call, "fill", [value], buffer)
            value = buffer
        self._convertible(call, self._buffers[value].dtype, self._tensors[tensor])
        self._body.out.append(Store(call.lineno, tensor, region, value, atomic))

    def _wide(self, tensor: str) -> DType:
        stored = self._tensors[tensor]
        return FLOAT32 if stored.name in ("float16", "bfloat16") else stored

    def _reduce(self, call: ast.Call, name: str, dst: str | None, src: str) -> str:
        self._within(call, "compute")
        if name not in REDUCTIONS:
            raise self._error(call, f"there is no reduction {name!r}.", f"There are {', '.join(REDUCTIONS)}.")
        axes = [k.value for k in call.keywords if k.arg == "axis"]
        axis = self._axis(axes[0], src) if axes else None
        source = self._buffers[src]
        if source.dtype.name != "float32":
            raise self._error(call, f"{src!r} is {source.dtype.name}; reductions are of float32.", "Cast it first.")
        if name == "prod" and axis != 0:
            text = "a product is taken over the rows of a tile with two axes."
            raise self._error(call, text, "Give axis=0, or multiply tile by tile.")
        if axis is None and len(source.shape) == 2:
            text = f"{src!r} has two axes; which one is reduced?"
            raise self._error(call, text, "Give axis=0 or axis=1, and reduce what comes out once more.")
        if dst is None:
            shape = (num(8),) if axis is None else (source.shape[1 - axis],)
            dst = self._temporary(call, source.dtype, shape)
        self._body.out.append(Reduce(call.lineno, name, dst, src, axis))
        return dst

    def _axis(self, node: ast.expr, src: str) -> int:
        axis = node.value if isinstance(node, ast.Constant) else None
        if not isinstance(axis, int) or axis not in (0, 1) or len(self._buffers[src].shape) != 2:
            text = f"axis={ast.unparse(node)} of {src!r}, which has {len(self._buffers[src].shape)} axes."
            raise self._error(node, text, "axis is 0 or 1 and the tile has two axes; without it everything is reduced.")
        return axis

    def _operation(self, call: ast.AST, name: str, args: list[Value], dst: str | None, to: DType | None = None) -> str:
        self._within(call, "compute")
        rule = OPS[name]
        if len(args) != len(rule.operands):
            raise self._error(call, f"{name} takes {len(rule.operands)} operands, here are {len(args)}.")
        tiles = [a for a in args if isinstance(a, str)]
        for letter, a in zip(rule.operands, args, strict=True):
            if (letter == "t") != isinstance(a, str) and letter != "b":
                what = "a tile" if letter == "t" else "a scalar"
                raise self._error(call, f"an operand of {name} has to be {what}.")
        if not tiles and name not in ("fill", "iota"):
            raise self._error(
                call, f"{name} has no tile among its operands.", "Scalars have + - * / and tl.min, tl.max."
            )
        if dst is None:
            first = self._buffers[tiles[0]]
            over = tiles if rule.in_place else []
            dst = self._result(call, over, to or first.dtype, first.shape)
        if dst in tiles and not rule.in_place:
            raise self._error(call, f"{name} can't write over its operand {dst!r}.", "Give it a buffer of its own.")
        if name == "cast":
            self._convertible(call, self._buffers[tiles[0]].dtype, self._buffers[dst].dtype)
        dtypes = {self._buffers[b].dtype for b in tiles} | ({self._buffers[dst].dtype} if name != "cast" else set())
        if len(dtypes) > 1:
            names = ", ".join(f"{b} {self._buffers[b].dtype.name}" for b in dict.fromkeys([*tiles, dst]))
            raise self._error(
                call, f"{name} of tiles of several dtypes: {names}.", "Convert one by tl.cast(tile, dtype)."
            )
        bad = [d.name for d in dtypes if d.name not in rule.dtypes]
        if bad:
            hint = f"It takes {', '.join(rule.dtypes)}; load it as tl.float32 or convert it by tl.cast."
            raise self._error(call, f"{name} of {bad[0]} tiles isn't in the language.", hint)
        self._body.out.append(Op(getattr(call, "lineno", 0), name, dst, tuple(args)))
        return dst

    def _result(self, call: ast.AST, tiles: list[str], dtype: DType, shape: tuple[Expr, ...]) -> str:
        """Where a value goes: over a temporary among its own operands, else into a new one."""
        for b in tiles:
            if b in self._taken and self._buffers[b].dtype == dtype and self._buffers[b].shape == shape:
                return b
        return self._temporary(call, dtype, shape)

    def _value(self, node: ast.expr, name: str) -> Value:
        """A tile (by name) or a scalar; what makes a tile may put it into ``name`` at once."""
        if isinstance(node, ast.Name) and node.id in self._buffers:
            return self._tile(node)
        if isinstance(node, ast.BinOp) and type(node.op) in _BINARY and self._has_tile(node):
            args = [self._operand(node.left), self._operand(node.right)]
            return self._operation(node, _BINARY[type(node.op)], args, None)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and self._has_tile(node):
            return self._operation(node, "neg", [self._operand(node.operand)], None)
        if isinstance(node, ast.Call):
            found = self._call_value(node, name)
            if found is not None:
                return found
        if isinstance(node, ast.Compare) and self._has_tile(node):
            raise self._error(node, "a comparison of tiles is no value.", "Choose with it: tl.where(a < b, yes, no).")
        return self._scalar(node)

    def _call_value(self, call: ast.Call, name: str) -> Value | None:
        called = self._called(call)
        called = ALIASES.get(called, called)
        if called == "load":
            return self._load(call, name)
        if called in ("zeros", "full"):
            return self._full(call, called, name)
        if called in ("cumsum", "cumprod") and call.args:
            return self._scan(call, called)
        if called == "take":
            return self._take(call, name)
        if called == "take_rows":
            return self._take_rows(call, name)
        if called == "gather":
            return self._gather(call)
        if called == "iota":
            return self._iota(call, name)
        if called == "where" and len(call.args) == 3:
            return self._where(call)
        if called == "cast" and len(call.args) == 2:
            return self._operation(call, "cast", [self._tile(call.args[0])], None, self._dtype(call.args[1]))
        if called.startswith("reduce_"):
            return self._reduce(call, called.removeprefix("reduce_"), None, self._operand_tile(call.args[0]))
        if called in REDUCTIONS and call.args and self._has_tile(call.args[0]) and len(call.args) == 1:
            tile = self._reduce(call, called, None, self._operand_tile(call.args[0]))
            return tile if any(k.arg == "axis" for k in call.keywords) else self._element(call, tile)
        names = {"max": "maximum", "min": "minimum"}
        called = names.get(called, called) if self._has_tile(call) else called
        if called in OPS and self._has_tile(call):
            return self._operation(call, called, [self._operand(a) for a in call.args], None)
        return None

    def _full(self, call: ast.Call, called: str, name: str) -> str:
        args = list(call.args)
        want = 1 if called == "zeros" else 2
        dtype = FLOAT32
        for node in [*args[want:], *(k.value for k in call.keywords if k.arg == "dtype")]:
            dtype = self._dtype(node)
        if len(args) < want:
            raise self._error(call, f"tl.{called} takes a length{' and a value' if want == 2 else ''}.")
        count = self._integer(args[0], "the length")
        shape = (self._bound(call, count),)
        value = num(0.0 if dtype.floating else 0) if called == "zeros" else self._scalar(args[1])
        if name:
            self._own(call, name, dtype, shape)
        dst = self._operation(call, "fill", [value], name or self._temporary(call, dtype, shape))
        if (count,) != shape:  # as many as are in use, of a buffer that holds more
            self._body.out[-1] = Op(call.lineno, "fill", dst, (value, count))
        return dst

    def _scan(self, call: ast.Call, called: str) -> str:
        back = [k.value for k in call.keywords if k.arg == "reverse"]
        if len(call.args) != 1 or len(back) != len(call.keywords) or not all(isinstance(b, ast.Constant) for b in back):
            raise self._error(call, f"tl.{called} takes a tile, and reverse=True.", f"tl.{called}(v).")
        tile = self._operand_tile(call.args[0])
        if len(self._buffers[tile].shape) != 1:
            raise self._error(call, f"{tile!r} has two axes; a scan runs along one.", "Load a row at a time.")
        reverse = bool(back and isinstance(back[0], ast.Constant) and back[0].value)
        return self._operation(call, f"{called}_back" if reverse else called, [tile], None)

    def _take(self, call: ast.Call, name: str) -> str:
        if len(call.args) != 4 or call.keywords:
            raise self._error(call, "tl.take takes a tile, a start, a step and a count.", "tl.take(v, 0, 2, n).")
        tile = self._operand_tile(call.args[0])
        start, step, count = (self._integer(a, "an argument of tl.take") for a in call.args[1:])
        source = self._buffers[tile]
        if len(source.shape) != 1:
            raise self._error(call, f"{tile!r} has two axes; tl.take is for one.", "Load a row at a time.")
        shape = (self._bound(call, count),)
        if name and name != tile:
            self._own(call, name, source.dtype, shape)
        dst = name if name and name != tile else self._temporary(call, source.dtype, shape)
        return self._operation(call, "take", [tile, start, step, count], dst)

    def _take_rows(self, call: ast.Call, name: str) -> str:
        if len(call.args) != 5 or call.keywords:
            text = "tl.take_rows takes a tile, a start, a step, a count, and what stands where there are no rows."
            raise self._error(call, text, "tl.take_rows(v, 0, 2, n, 0.0).")
        tile = self._operand_tile(call.args[0])
        numbers = [self._integer(a, "an argument of tl.take_rows") for a in call.args[1:4]]
        source = self._buffers[tile]
        if len(source.shape) != 2:
            raise self._error(call, f"{tile!r} has one axis; tl.take_rows is for two.", "Single elements: tl.take.")
        shape = (self._bound(call, numbers[2]), source.shape[1])
        own = bool(name) and name != tile
        if own:
            self._own(call, name, source.dtype, shape)
        dst = name if own else self._temporary(call, source.dtype, shape)
        return self._operation(call, "take_rows", [tile, *numbers, self._scalar(call.args[4])], dst)

    def _gather(self, call: ast.Call) -> str:
        self._within(call, "compute")
        if len(call.args) not in (2, 4) or call.keywords:
            text = "tl.gather takes a tile and an int32 tile of places, and a start and a count."
            raise self._error(call, text, "tl.gather(v, index), tl.gather(v, index, start, n).")
        tile, index = (self._operand_tile(a) for a in call.args[:2])
        part = tuple(self._integer(a, "an argument of tl.gather") for a in call.args[2:])
        source, where = self._buffers[tile], self._buffers[index]
        if source.dtype.name != "float32" or where.dtype.name != "int32" or len(where.shape) != 1:
            text = f"tl.gather of {tile!r} ({source.dtype.name}) by {index!r} ({where.dtype.name})."
            raise self._error(call, text, "It takes a float32 tile, and an int32 tile of one axis.")
        dst = self._temporary(call, source.dtype, where.shape)
        self._body.out.append(Op(call.lineno, "gather", dst, (tile, index, *part)))
        return dst

    def _iota(self, call: ast.Call, name: str) -> str:
        if len(call.args) != 1 or call.keywords:
            raise self._error(call, "tl.iota takes a length.", "tl.iota(n): 0, 1, 2, ...")
        count = self._integer(call.args[0], "the length")
        shape = (self._bound(call, count),)
        if name:
            self._own(call, name, INT32, shape)
        return self._operation(call, "iota", [count], name or self._temporary(call, INT32, shape))

    def _where(self, call: ast.Call) -> str:
        test = call.args[0]
        if not isinstance(test, ast.Compare) or len(test.ops) != 1 or type(test.ops[0]) not in _COMPARE:
            raise self._error(call, "the first argument of tl.where is one comparison.", "tl.where(a < b, yes, no).")
        left, right = self._operand(test.left), self._operand(test.comparators[0])
        op = _COMPARE[type(test.ops[0])]
        if isinstance(left, Expr):  # the tile goes first
            left, right = right, left
            op = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}.get(op, op)
        return self._operation(call, f"where_{op}", [left, right, *(self._operand(a) for a in call.args[1:])], None)

    def _operand(self, node: ast.expr) -> Value:
        return self._value(node, "")

    def _operand_tile(self, node: ast.expr) -> str:
        found = self._operand(node)
        if isinstance(found, Expr):
            raise self._error(node, f"{ast.unparse(node)!r} is a scalar where a tile is needed.")
        return found

    def _tile(self, node: ast.expr) -> str:
        if not isinstance(node, ast.Name) or node.id not in self._buffers:
            text = f"{ast.unparse(node)!r} is no tile."
            raise self._error(node, text, "Allocate it by tl.alloc_ub, or assign it first.")
        return node.id

    def _has_tile(self, node: ast.AST) -> bool:
        """Whether a tile takes part, other than as the source of one scalar."""
        if isinstance(node, ast.Name):
            return node.id in self._buffers
        if isinstance(node, ast.Call):
            called = self._called(node)
            if called == "extract_scalar":
                return False
            if called in REDUCTIONS and len(node.args) == 1 and not any(k.arg == "axis" for k in node.keywords):
                return False
            if called in _MAKE or called.startswith("reduce_"):
                return True
        return any(self._has_tile(n) for n in ast.iter_child_nodes(node))

    def _special(self, node: ast.expr) -> Expr | None:
        if isinstance(node, ast.Name) and node.id in self._buffers:
            text = f"the tile {node.id!r} stands where a scalar is needed."
            raise self._error(node, text, "One element of it: tl.extract_scalar(tile, i).")
        if not isinstance(node, ast.Call):
            return Expr("num", "float", (), float("inf")) if self._attribute(node) == "inf" else None
        called = self._called(node)
        if called in ("program_id", "num_programs"):
            return Expr(called, "int")
        if called == "extract_scalar":
            return self._hoisted(node, self._extract(node))
        if called in REDUCTIONS and len(node.args) == 1 and self._has_tile(node.args[0]):
            found = self._call_value(node, "")
            assert isinstance(found, Expr)
            return found
        return None

    def _extract(self, call: ast.Call) -> Expr:
        self._within(call, "compute")
        if len(call.args) != 2:
            raise self._error(call, "tl.extract_scalar takes a tile and an index.")
        buffer = self._tile(call.args[0])
        kind: ScalarType = "float" if self._buffers[buffer].dtype.floating else "int"
        return Expr("extract", kind, (self._integer(call.args[1], "the index"),), buffer)

    def _element(self, call: ast.Call, tile: str) -> Expr:
        return self._hoisted(call, Expr("extract", "float", (num(0),), tile))

    def _hoisted(self, node: ast.AST, e: Expr) -> Expr:
        """Reading an element has its own statement: it makes the scalar unit wait."""
        name = self._fresh("element", node)
        self._let(node, name, e)
        return var(name, e.type)
