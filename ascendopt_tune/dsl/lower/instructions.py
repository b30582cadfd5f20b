"""What an operation on tiles becomes: AscendC calls with a count, in order; a barrier goes between dependent ones."""

from __future__ import annotations

from dataclasses import dataclass

from ..ir import DType

_BOTH = {"add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "maximum": "Max", "minimum": "Min"}
_SCALAR = {"add": "Adds", "mul": "Muls", "maximum": "Maxs", "minimum": "Mins"}
_UNARY = {"abs": "Abs", "exp": "Exp", "log": "Ln", "sqrt": "Sqrt", "relu": "Relu"}
_MODES = {"lt": "LT", "le": "LE", "gt": "GT", "ge": "GE", "eq": "EQ", "ne": "NE"}
FILL, MASK, API = "fillTile", "maskTile", "apiTile"
INDEX, OFFSET, SCAN = "indexTile", "offsetTile", "scanTile"


@dataclass(frozen=True)
class Call:
    """One call: its text, what it writes and what it reads (names of tensors); ``scratch`` is overwritten besides.

    ``value``: of a fill of the tile for scalars.
    """

    text: str
    writes: str
    reads: tuple[str, ...]
    scratch: str = ""
    value: str = ""


def calls(name: str, dst: str, args: list[tuple[str, bool]], count: str, dtype: DType, source: DType) -> list[Call]:
    """The calls of one operation.

    Args:
        args: operands as C++, and whether each is a tile.
        count: elements.
        dtype, source: of the destination, and of the tiles that are read.
    """
    texts = [t for t, _ in args]
    tiles = tuple(t for t, tile in args if tile)
    if name in _BOTH:
        return _binary(name, dst, args, count, dtype)
    if name in _UNARY:
        return [Call(f"{_UNARY[name]}({dst}, {texts[0]}, {count});", dst, tiles)]
    if name == "neg":
        return [Call(f"Muls({dst}, {texts[0]}, {_literal('-1.0f', dtype)}, {count});", dst, tiles)]
    if name == "copy":
        zero = "0" if dtype.name == "int32" else _literal("0.0f", dtype)
        if dtype.name == "int32":
            return [Call(f"Adds({dst}, {texts[0]}, {zero}, {count});", dst, tiles)]
        return [Call(f"Muls({dst}, {texts[0]}, {_literal('1.0f', dtype)}, {count});", dst, tiles)]
    if name == "fill":
        return [Call(f"Duplicate({dst}, {_literal(texts[0], dtype)}, {count});", dst, ())]
    if name == "cast":
        return [convert(dst, texts[0], count, dtype, source)]
    if name in ("reciprocal", "rsqrt"):
        first = [Call(f"Sqrt({dst}, {texts[0]}, {count});", dst, tiles)] if name == "rsqrt" else []
        below = dst if first else texts[0]
        return [*first, _fill("1.0f", count, dtype), Call(f"Div({dst}, {FILL}, {below}, {count});", dst, (FILL, below))]
    if name == "sigmoid":
        return [
            Call(f"Muls({dst}, {texts[0]}, -1.0f, {count});", dst, tiles),
            Call(f"Exp({dst}, {dst}, {count});", dst, (dst,)),
            Call(f"Adds({dst}, {dst}, 1.0f, {count});", dst, (dst,)),
            _fill("1.0f", count, dtype),
            Call(f"Div({dst}, {FILL}, {dst}, {count});", dst, (FILL, dst)),
        ]
    if name.startswith("cum"):
        kind = f"'{'s' if 'sum' in name else 'p'}', {'true' if name.endswith('_back') else 'false'}"
        text = f"ScanTile<{kind}>({dst}, {texts[0]}, {INDEX}, {OFFSET}, {SCAN}, {count});"
        return [Call(text, dst, tiles, SCAN)]
    if name == "iota":
        return [Call(f"CreateVecIndex({dst}, static_cast<int32_t>(0), static_cast<uint32_t>({count}));", dst, ())]
    if name in ("gather", "take", "take_rows"):
        return _gathered(name, dst, texts, count)
    if name == "tanh":  # 1 - 2 / (exp(2x) + 1): neither end overflows to anything but its limit
        return [
            Call(f"Muls({dst}, {texts[0]}, 2.0f, {count});", dst, tiles),
            Call(f"Exp({dst}, {dst}, {count});", dst, (dst,)),
            Call(f"Adds({dst}, {dst}, 1.0f, {count});", dst, (dst,)),
            _fill("-2.0f", count, dtype),
            Call(f"Div({dst}, {FILL}, {dst}, {count});", dst, (FILL, dst)),
            Call(f"Adds({dst}, {dst}, 1.0f, {count});", dst, (dst,)),
        ]
    if name == "erf":
        return [Call(f"Erf({dst}, {texts[0]}, {API}, {count});", dst, tiles, API)]
    return _where(name.removeprefix("where_"), dst, args, count, dtype)


def _gathered(name: str, dst: str, texts: list[str], count: str) -> list[Call]:
    """Elements of a tile by their offsets in bytes; of take_rows, ``count`` is the tile's rows, columns and pitch."""
    if name == "take_rows":
        return [Call(f"TakeRows({dst}, {', '.join(texts)}, {count});", dst, (texts[0],))]
    if name == "gather":
        of, index, *start = texts
        base = f"static_cast<uint32_t>(({start[0]}) * 4)" if start else "0u"
        first = Call(f"Muls({OFFSET}, {index}, static_cast<int32_t>(4), {count});", OFFSET, (index,))
    else:
        of, begin, step, count = texts
        base = f"static_cast<uint32_t>(({begin}) * 4)"
        first = Call(f"Muls({OFFSET}, {INDEX}, static_cast<int32_t>({step} * 4), {count});", OFFSET, (INDEX,))
    return [
        first,
        Call(f"Gather({dst}, {of}, {OFFSET}.ReinterpretCast<uint32_t>(), {base}, {count});", dst, (of, OFFSET)),
    ]


def convert(dst: str, src: str, count: str, dtype: DType, source: DType) -> Call:
    """A copy into another dtype, rounded to the nearest (ties to even) where that loses something."""
    if dtype == source:
        one = "0" if dtype.name == "int32" else _literal("0.0f", dtype)
        if dtype.name in ("int32",):
            return Call(f"Adds({dst}, {src}, {one}, {count});", dst, (src,))
        if dtype.size in (4, 2) and dtype.floating and dtype.name != "bfloat16":
            return Call(f"Muls({dst}, {src}, {_literal('1.0f', dtype)}, {count});", dst, (src,))
        return Call(f"DataCopy({dst}, {src}, CeilAlign({count}, {32 // dtype.size}));", dst, (src,))
    wider = source.size < dtype.size and (source.name, dtype.name) != ("float16", "int32")
    mode = "CAST_NONE" if wider or source.name == "int64" else "CAST_RINT"
    return Call(f"Cast({dst}, {src}, RoundMode::{mode}, {count});", dst, (src,))


def _binary(name: str, dst: str, args: list[tuple[str, bool]], count: str, dtype: DType) -> list[Call]:
    (a, a_tile), (b, b_tile) = args
    if a_tile and b_tile:
        return [Call(f"{_BOTH[name]}({dst}, {a}, {b}, {count});", dst, (a, b))]
    if name in _SCALAR:
        tile, scalar = (a, b) if a_tile else (b, a)
        return [Call(f"{_SCALAR[name]}({dst}, {tile}, {_literal(scalar, dtype)}, {count});", dst, (tile,))]
    if name == "sub" and a_tile:
        return [Call(f"Adds({dst}, {a}, {_literal(f'-({b})', dtype)}, {count});", dst, (a,))]
    if name == "sub":
        minus = "-1" if dtype.name == "int32" else _literal("-1.0f", dtype)
        return [
            Call(f"Muls({dst}, {b}, {minus}, {count});", dst, (b,)),
            Call(f"Adds({dst}, {dst}, {_literal(a, dtype)}, {count});", dst, (dst,)),
        ]
    if a_tile:
        return [_fill(b, count, dtype), Call(f"Div({dst}, {a}, {FILL}, {count});", dst, (a, FILL))]
    return [_fill(a, count, dtype), Call(f"Div({dst}, {FILL}, {b}, {count});", dst, (FILL, b))]


def _where(op: str, dst: str, args: list[tuple[str, bool]], count: str, dtype: DType) -> list[Call]:
    """Comparisons read whole repeats of 256 bytes: what lies behind the tile's end decides nothing."""
    (a, _), (b, b_tile), (yes, yes_tile), (no, no_tile) = args
    whole = f"CeilAlign({count}, {256 // dtype.size})"
    out = []
    if b_tile:
        out.append(Call(f"Compare({MASK}, {a}, {b}, CMPMODE::{_MODES[op]}, {whole});", MASK, (a, b)))
    else:
        out.append(
            Call(f"CompareScalar({MASK}, {a}, {_literal(b, dtype)}, CMPMODE::{_MODES[op]}, {whole});", MASK, (a,))
        )
    if not yes_tile:
        out.append(_fill(yes, count, dtype))
        yes = FILL
    if no_tile:
        select = f"Select({dst}, {MASK}, {yes}, {no}, SELMODE::VSEL_TENSOR_TENSOR_MODE, {count});"
        return [*out, Call(select, dst, (MASK, yes, no))]
    select = f"Select({dst}, {MASK}, {yes}, {_literal(no, dtype)}, SELMODE::VSEL_TENSOR_SCALAR_MODE, {count});"
    return [*out, Call(select, dst, (MASK, yes))]


def _fill(value: str, count: str, dtype: DType) -> Call:
    text = _literal(value, dtype)
    return Call(f"Duplicate({FILL}, {text}, {count});", FILL, (), "", text)


def _literal(text: str, dtype: DType) -> str:
    """A scalar operand of the tile's type."""
    return text if dtype.name == "float32" else f"static_cast<{dtype.cpp}>({text})"
