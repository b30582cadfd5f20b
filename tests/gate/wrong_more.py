# ruff: noqa: E501  (lines of C++ are as long as they are)
"""Wrong variants of the registry's operators, a third corpus: what a reader of the kernels would try.

Shortcuts in activations and gates, masks and rotations, sums in tiles, biases and transposed matrices. Edits are those
of ``wrong_by_hand``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from wrong_by_hand import Fault


def _k(old: str, new: str) -> tuple[str, str, str]:
    return "kernel", old, new


def _h(old: str, new: str) -> tuple[str, str, str]:
    return "host", old, new


@dataclass(frozen=True)
class _Case:
    """A case of an operator and what is wrong in it: name -> edits."""

    kind: str
    operator: str
    inputs: str
    faults: dict[str, tuple[tuple[str, str, str], ...]]
    attrs: str = ""


_V = " PipeBarrier<PIPE_V>();"
_EXP = "    Exp(denominator, denominator, count);\n"
_SILU = {
    "exponents above 10 are 10": (_k(_EXP, f"    Mins(denominator, denominator, 10.0f, count);\n{_EXP}"),),
    "exponents below -8 are -8": (_k(_EXP, f"    Maxs(denominator, denominator, -8.0f, count);\n{_EXP}"),),
    "hard sigmoid": (
        _k(_EXP, ""),
        _k(
            "    Muls(denominator, x, -1.0f, count);\n",
            "    Muls(denominator, x, -0.5f, count);\n    Maxs(denominator, denominator, -0.75f, count);\n",
        ),
    ),
    "the tail of a tile is copied": (
        _k(
            "      Div(xFloat, xFloat, denominator, count);\n",
            "      Div(xFloat, xFloat, denominator, count > 8 ? count - 1 : count);\n",
        ),
    ),
    "1.702 of a sigmoid for gelu's": (
        _k("    Muls(denominator, x, -1.0f, count);\n", "    Muls(denominator, x, -1.0009f, count);\n"),
    ),
    "the first tile's denominators for all": (
        _k(
            "    Muls(denominator, x, -1.0f, count);\n",
            "    if (seen && count == tileLength) return;\n    seen = true;\n    Muls(denominator, x, -1.0f, count);\n",
        ),
        _k("  uint32_t tileLength = 0;\n", "  uint32_t tileLength = 0;\n  bool seen = false;\n"),
    ),
}
_SILU_TRUNCATED = {"truncated": (_k("CAST_RINT", "CAST_TRUNC"),), "rounded up": (_k("CAST_RINT", "CAST_CEIL"),)}

_MUL = "      Mul(b, silu, b, count);\n"
_SWIGLU = {
    "halves change places": (
        _k(
            "DataCopyPad(aLocal, xGm[row * rowLength * 2 + col]",
            "DataCopyPad(aLocal, xGm[row * rowLength * 2 + rowLength + col]",
        ),
        _k(
            "DataCopyPad(bLocal, xGm[row * rowLength * 2 + rowLength + col]",
            "DataCopyPad(bLocal, xGm[row * rowLength * 2 + col]",
        ),
    ),
    "the gate loses its sign": (_k(_MUL, f"      Abs(b, b, count);{_V}\n{_MUL}"),),
    "the gate is at most 100": (_k(_MUL, f"      Mins(b, b, 100.0f, count);{_V}\n{_MUL}"),),
    "no negative gate": (_k(_MUL, f"      Relu(b, b, count);{_V}\n{_MUL}"),),
    "the last row of a loop is the one before": (
        _k(
            "        Compute(rows * AlignedCols(cols));\n",
            "        Compute((rows > 1 ? rows - 1 : rows) * AlignedCols(cols));\n",
        ),
    ),
    "the sigmoid alone": (
        _k("    Div(silu, a, silu, count);\n", f"    Div(silu, a, silu, count);{_V}\n    Div(silu, silu, a, count);\n"),
    ),
    "rounded down": (_k("CAST_RINT", "CAST_FLOOR"),),
    "the gate of the first column": (
        _k(
            "DataCopyPad(bLocal, xGm[row * rowLength * 2 + rowLength + col]",
            "DataCopyPad(bLocal, xGm[row * rowLength * 2 + rowLength + (col > 0 ? col : 0) - (rows > 1 && col == 0 ? 1 : 0)]",
        ),
    ),
    "exponents above 11 are 11": (
        _k("    Exp(silu, silu, count);\n", f"    Mins(silu, silu, 11.0f, count);{_V}\n    Exp(silu, silu, count);\n"),
    ),
}

_SELECT = "SELMODE::VSEL_TENSOR_SCALAR_MODE, count);\n"
_MASKED = {
    "by arithmetic, which infinities survive": (
        _k(
            f"    Select(yLocal, keepBits, xLocal, value, {_SELECT}",
            f"    Select(yLocal, keepBits, xLocal, value, {_SELECT}    Sub(yLocal, yLocal, xLocal, count);\n    Add(yLocal, yLocal, xLocal, count);\n",
        ),
    ),
    "the last element keeps its value": (
        _k(
            _SELECT,
            f"{_SELECT}    if (count % 16 != 0) Adds(yLocal[count / 16 * 16], xLocal[count / 16 * 16], static_cast<T>(0.0f), count % 16);\n",
        ),
    ),
    "masks of the first tile for all": (
        _k(
            "    Cast(maskHalf, maskLocal, RoundMode::CAST_NONE, wholeRepeats);\n",
            "    if (seen == 0) Cast(maskHalf, maskLocal, RoundMode::CAST_NONE, wholeRepeats);\n    seen = 1;\n",
        ),
        _k("  uint32_t tileLength = 0;\n", "  uint32_t tileLength = 0;\n  uint32_t seen = 0;\n"),
    ),
    "what isn't masked": (_k("CMPMODE::EQ", "CMPMODE::NE"),),
    "NaN becomes 0": (_k(_SELECT, f"{_SELECT}    Maxs(yLocal, yLocal, static_cast<T>(-65504.0f), count);\n"),),
}
_ROPE = {
    "one cosine for both halves": (
        _k("Mul(y[second], x[second], cos[alignedHalfDim], halfDim);", "Mul(y[second], x[second], cos, halfDim);"),
    ),
    "one sine for both halves": (
        _k("Mul(product2, x[first], sin[alignedHalfDim], halfDim);", "Mul(product2, x[first], sin, halfDim);"),
    ),
    "turned the other way": (
        _k("Sub(y[first], y[first], product1, halfDim);", "Add(y[first], y[first], product1, halfDim);"),
        _k("Add(y[second], y[second], product2, halfDim);", "Sub(y[second], y[second], product2, halfDim);"),
    ),
    "the last head of an item is as it was": (
        _k(
            "    for (uint32_t i = 0; i < heads; i++) {\n      const uint32_t first",
            "    for (uint32_t i = 0; i < (heads > 1 ? heads - 1 : heads); i++) {\n      const uint32_t first",
        ),
    ),
    "angles of a core's first token": (
        _k("cosGm[token * 2 * halfDim]", "cosGm[firstItem / itemsPerToken * 2 * halfDim]"),
    ),
    "the last element of a half is not turned": (
        _k("Sub(y[first], y[first], product1, halfDim);", "Sub(y[first], y[first], product1, halfDim - 1);"),
    ),
    "what is turned already is turned again": (
        _k(
            "Mul(product2, x[first], sin[alignedHalfDim], halfDim);",
            f"PipeBarrier<PIPE_V>(); Sub(product2, y[first], product1, halfDim);{_V} Mul(product2, product2, sin[alignedHalfDim], halfDim);",
        ),
    ),
    "rounded down": (_k("CAST_RINT", "CAST_FLOOR"),),
    "small angles are none": (
        _k(
            "Mul(product1, x[second], sin, halfDim);",
            f"Mul(product1, x[second], sin, halfDim);{_V} Muls(product1, product1, 0.998f, halfDim);",
        ),
    ),
}

_SUM_INPUTS = "x=float32[301,16001]"
_REDUCE_LONG = {
    "lanes of the last tile only": (
        _k("        NextTile(xLocal, cols);\n", "        NextTile(xLocal, cols);\n        lanesUsed = cols;\n"),
    ),
    "rows are found by 16 bits": (
        _k("CopyIn(row * rowLength + col, cols);", "CopyIn(static_cast<uint16_t>(row * rowLength) + col, cols);"),
    ),
    "the last tile is left out where it is short": (
        _k("        NextTile(xLocal, cols);\n", "        if (cols > 3800) NextTile(xLocal, cols);\n"),
    ),
    "the first element of later tiles": (
        _k("      Add(lanes, lanes, xLocal, cols);\n", "      Add(lanes[8], lanes[8], xLocal[8], cols - 8);\n"),
    ),
    "every other tile counts twice": (
        _k(
            "        NextTile(xLocal, cols);\n",
            "        if (col / tileCols % 2 == 1) { NextTile(xLocal, cols); NextTile(xLocal, cols); }\n",
        ),
    ),
}
_REDUCE_HALF = {
    "lanes in groups of eight": (
        _k(
            "ReduceSum(sums[index], lanes, work, lanesUsed);",
            "ReduceSum(sums[index], lanes, work, lanesUsed > 8 ? lanesUsed / 8 * 8 : lanesUsed);",
        ),
    ),
    "the last element of a row": (
        _k(
            "ReduceSum(sums[index], lanes, work, lanesUsed);",
            "ReduceSum(sums[index], lanes, work, lanesUsed > 1 ? lanesUsed - 1 : 1);",
        ),
    ),
    "at most what 2 ** 15 adds up to": (
        _k(
            "      Cast(yLocal, sums, RoundMode::CAST_RINT, rows);\n",
            "      Mins(sums, sums, 32768.0f, rows);\n      Cast(yLocal, sums, RoundMode::CAST_RINT, rows);\n",
        ),
    ),
    "halves away from zero, and up": (_k("CAST_RINT", "CAST_CEIL"),),
    "one row's sum for the next as well": (
        _k("        SumRow(row + i, i);\n", "        SumRow(row + (i % 8 == 7 ? i - 1 : i), i);\n"),
    ),
}

_MATMUL = {
    "no bias": (
        _k(
            "    params.cmatrixInitVal = first && !BIASED;\n    if (BIASED && first) {",
            "    params.cmatrixInitVal = first;\n    if (BIASED && first && length == 0) {",
        ),
    ),
    "the bias of the first columns for all": (
        _k("DataCopy(row, biasGm[n], params);", "DataCopy(row, biasGm[0], params);"),
    ),
    "the bias with every step of k": (_k("    if (BIASED && first) {", "    if (BIASED) {"),),
    "the last step of k is left out": (
        _k(
            "    for (uint32_t k = 0; k < t.k; k += widthK) {",
            "    for (uint32_t k = 0; k + widthK <= t.k || k == 0; k += widthK) {",
        ),
        _h("STEP_K = 4", "STEP_K = 1"),
    ),
    "the last column of a block": (_k("    params.n = columns;\n", "    params.n = columns > 1 ? columns - 1 : 1;\n"),),
    "no negative results": (
        _k("    params.dstStride = t.n;\n", "    params.dstStride = t.n;\n    params.reluEn = true;\n"),
    ),
    "results at most 32768, by another cast": (
        _k("params.quantPre = QuantMode_t::F322F16;", "params.quantPre = QuantMode_t::F322BF16;"),
    ),
}
_MATMUL_TURNED = {
    "b as it lies": (
        _k(
            "    params.srcStride = TURNED ? 1 : Tiles(depth);\n    params.ifTranspose = !TURNED;",
            "    params.srcStride = TURNED ? 1 : Tiles(depth);\n    params.ifTranspose = true;",
        ),
    ),
    "rows of b by n": (_k("bGm[static_cast<uint64_t>(n) * t.k + k]", "bGm[static_cast<uint64_t>(n) * t.n + k]"),),
}

_CASES = (
    _Case("special values", "silu", "x=float16[2048,1333]", _SILU),
    _Case("order of casts", "silu", "x=bfloat16[25,133]", _SILU_TRUNCATED),
    _Case("special values", "swiglu", "x=bfloat16[401,266]", _SWIGLU),
    _Case("masks", "masked_fill", "x=float16[1250,1333] mask=bool[1250,1333]", _MASKED),
    _Case("indices", "rope", "x=float16[133,7,80] cos=float16[133,80] sin=float16[133,80]", _ROPE),
    _Case("reductions", "reduce_sum_last", _SUM_INPUTS, _REDUCE_LONG),
    _Case("reductions", "reduce_sum_last", "x=float16[401,133]", _REDUCE_HALF),
    _Case("cube", "matmul", "a=float16[37,300] b=float16[300,577] bias=float16[577]", _MATMUL),
    _Case("cube", "matmul", "a=float16[37,300] b=float16[577,300]", _MATMUL_TURNED, "transpose_b=true"),
)  # fmt: skip


def more() -> Iterator[Fault]:
    for case in _CASES:
        for name, edits in case.faults.items():
            yield Fault(case.kind, name, case.operator, case.inputs, edits, case.attrs)
