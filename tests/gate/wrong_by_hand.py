# ruff: noqa: E501  (lines of C++ are as long as they are)
"""Wrong variants of the registry's operators, made by hand: each a fault that a fast candidate might have.

An edit replaces text that occurs once; ``kernel`` and ``host`` say where. They are right on most inputs, or at their
first launch, or within a wide tolerance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """``inputs``: the case, as on the command line. ``edits``: (file, old text, new text)."""

    kind: str
    name: str
    operator: str
    inputs: str
    edits: tuple[tuple[str, str, str], ...]
    attrs: str = ""

    def __str__(self) -> str:
        return f"{self.operator}-{self.name}"


def _k(old: str, new: str) -> tuple[str, str, str]:
    return "kernel", old, new


def _h(old: str, new: str) -> tuple[str, str, str]:
    return "host", old, new


LONG = "x=float32[4,20001]"
ROWS = "x=float16[401,133]"
MAX_LOOP = """        const float tileMaximum = Maximum(TileCols(col));
        maximum = col == 0 || tileMaximum > maximum ? tileMaximum : maximum;"""
WHOLE = "const float maximum = Maximum(rowLength);"
_SOFTMAX = {
    "maximum of the last tile only": (LONG, _k(MAX_LOOP, "        maximum = Maximum(TileCols(col));")),
    "maximum of the first tile only": (LONG, _k("maximum = col == 0 || tileMaximum > maximum", "maximum = col == 0")),
    "maximum starts at 0": (LONG, _k("maximum = col == 0 || tileMaximum > maximum", "maximum = tileMaximum > maximum")),
    "maximum starts at -10": (
        LONG,
        _k("float maximum = 0.0f;", "float maximum = -10.0f;"),
        _k("col == 0 || tileMaximum > maximum", "tileMaximum > maximum"),
    ),
    "maximum of tiles starts at the lowest half": (
        "x=float32[64,20001]",
        _k("float maximum = 0.0f;", "float maximum = -65504.0f;"),
        _k("col == 0 || tileMaximum > maximum", "tileMaximum > maximum"),
    ),
    "maximum of whole rows at most 1e5": (
        "x=float32[301,133]",
        _k(WHOLE, "float maximum = Maximum(rowLength); maximum = maximum > 1e5f ? 1e5f : maximum;"),
    ),
    "maximum of whole rows at least 0": (ROWS, _k(WHOLE, f"{WHOLE[:-1]} > 0 ? Maximum(rowLength) : 0.0f;")),
    "maximum clamped at 20": (
        ROWS,
        _k(WHOLE, "float maximum = Maximum(rowLength); maximum = maximum > 20.0f ? 20.0f : maximum;"),
    ),
    "maximum clamped at 1000": (
        "x=float32[64,133]",
        _k(WHOLE, "float maximum = Maximum(rowLength); maximum = maximum > 1000.0f ? 1000.0f : maximum;"),
    ),
    "no maximum": (ROWS, _k(WHOLE, "const float maximum = 0.0f;")),
    "the mean for the maximum": (ROWS, _k(WHOLE, "const float maximum = Sum(rowLength) / rowLength;")),
    "the first element for the maximum": (
        ROWS,
        _k(WHOLE, "const float first = Maximum(rowLength); const float maximum = Maximum(8) + 0.0f * first;"),
    ),
    "maximum without the last element": (ROWS, _k(WHOLE, "const float maximum = Maximum(rowLength - 1);")),
    "sum without the last element": (
        ROWS,
        _k("const float sum = Sum(rowLength);", "const float sum = Sum(rowLength - 1);"),
    ),
    "sum without the last element of a tile": (
        LONG,
        _k("sum += Sum(TileCols(col));", "sum += Sum(TileCols(col) - 1);"),
    ),
    "a sum that starts at 1e-3": (LONG, _k("float sum = 0.0f;", "float sum = 1e-3f;")),
    "a sum of at least 1": (
        "x=float16[64,1030]",
        _k("const float sum = Sum(rowLength);", "float sum = Sum(rowLength); sum = sum < 1.5f ? 1.5f : sum;"),
    ),
    "small results are 0": (
        ROWS,
        _k(
            "const float sum = Sum(rowLength);",
            "const float sum = Sum(rowLength); Adds(rowFloat, rowFloat, -1e-4f, rowLength); PipeBarrier<PIPE_V>();"
            " Maxs(rowFloat, rowFloat, 0.0f, rowLength); PipeBarrier<PIPE_V>();",
        ),
    ),
    "rounded towards zero": (
        ROWS,
        _k("Cast(dst, rowFloat, RoundMode::CAST_RINT", "Cast(dst, rowFloat, RoundMode::CAST_TRUNC"),
    ),
}

RMS = "x=bfloat16[64,8192] gamma=bfloat16[8192]"
RMS_SHORT = "x=float16[401,33] gamma=float16[33]"
RMS_LONG = "x=float32[4,12301] gamma=float32[12301]"
_SUM = "const float rstd = ReciprocalRoot(rowLength);"
_EPSILON = "    Adds(sum, sum, epsilon, 1);\n    PipeBarrier<PIPE_V>();\n    Sqrt(sum, sum, 1);"
_RMS = {
    "sum without the last element": (RMS, _k(_SUM, "const float rstd = ReciprocalRoot(rowLength - 1);")),
    "sum without the last element, float16": (RMS_SHORT, _k(_SUM, "const float rstd = ReciprocalRoot(rowLength - 1);")),
    "sum without the last block": (RMS, _k(_SUM, "const float rstd = ReciprocalRoot(rowLength - 16);")),
    "sum without the last element of a tile": (
        RMS_LONG,
        _k("Add(square, square, xFloat, cols);", "Add(square, square, xFloat, cols - 1);"),
    ),
    "sum without the last column of a row": (
        RMS_LONG,
        _k(
            "Mul(xFloat, xFloat, xFloat, cols);",
            "Mul(xFloat, xFloat, xFloat, col + cols == rowLength ? cols - 1 : cols);",
        ),
    ),
    "no epsilon": (RMS, _k(_EPSILON, "    Sqrt(sum, sum, 1);")),
    "no epsilon, float16": (RMS_SHORT, _k(_EPSILON, "    Sqrt(sum, sum, 1);")),
    "no epsilon, float32": (RMS_LONG, _k(_EPSILON, "    Sqrt(sum, sum, 1);")),
    "epsilon after the root": (
        RMS,
        _k(_EPSILON, "    Sqrt(sum, sum, 1);\n    PipeBarrier<PIPE_V>();\n    Adds(sum, sum, epsilon, 1);"),
    ),
    "epsilon before the mean": (
        RMS_SHORT,
        _k(
            "    Muls(sum, sum, averageFactor, 1);\n    PipeBarrier<PIPE_V>();\n    Adds(sum, sum, epsilon, 1);",
            "    Adds(sum, sum, epsilon, 1);\n    PipeBarrier<PIPE_V>();\n    Muls(sum, sum, averageFactor, 1);",
        ),
    ),
    "another epsilon": (RMS_SHORT, _k("epsilon = tiling.epsilon;", "epsilon = 1e-5f;")),
    "mean over the padded row": (
        RMS_SHORT,
        _h("1.0f / static_cast<float>(rowLength)", "1.0f / static_cast<float>(tileCols)"),
    ),
    "squares in half": (
        "x=float16[64,1031] gamma=float16[1031]",
        _k(
            "        Mul(square, xFloat, xFloat, rowLength);\n        PipeBarrier<PIPE_V>();",
            "        if constexpr (std::is_same<T, half>::value) {\n          LocalTensor<half> narrow = work.template ReinterpretCast<half>();\n"
            "          Mul(yLocal, xLocal[i * tileCols], xLocal[i * tileCols], rowLength);\n          PipeBarrier<PIPE_V>();\n"
            "          Cast(square, yLocal, RoundMode::CAST_NONE, rowLength);\n        }\n        PipeBarrier<PIPE_V>();",
        ),
    ),
    "gamma after rounding": (
        "x=float16[64,1031] gamma=float16[1031]",
        _k(
            "      Mul(xFloat, xFloat, gammaFloat, count);\n      PipeBarrier<PIPE_V>();\n      Cast(y, xFloat, RoundMode::CAST_RINT, count);",
            "      Cast(y, xFloat, RoundMode::CAST_RINT, count);\n      PipeBarrier<PIPE_V>();\n      Cast(xFloat, y, RoundMode::CAST_NONE, count);\n"
            "      PipeBarrier<PIPE_V>();\n      Mul(xFloat, xFloat, gammaFloat, count);\n      PipeBarrier<PIPE_V>();\n"
            "      Cast(y, xFloat, RoundMode::CAST_RINT, count);",
        ),
    ),
    "every second row by its neighbour's sum": (
        RMS_SHORT,
        _k(_SUM, "const float rstd = i % 2 == 1 ? last : ReciprocalRoot(rowLength); last = rstd;"),
        _k(
            "      for (uint32_t i = 0; i < rows; i++) {",
            "      float last = 0;\n      for (uint32_t i = 0; i < rows; i++) {",
        ),
    ),
    "gamma's last element is 1": (
        RMS_SHORT,
        _k(
            "    LoadGamma(0, rowLength);",
            "    Duplicate(gammaFloat, 1.0f, tileCols);\n    PipeBarrier<PIPE_ALL>();\n    LoadGamma(0, rowLength - 1);",
        ),
    ),
}

LN = "x=float16[150,133] gamma=float16[133] beta=float16[133]"
_LAYER = {
    "sum without the last element": (
        LN,
        _k("ReduceSum(sum, src, work, rowLength);", "ReduceSum(sum, src, work, rowLength - 1);"),
    ),
    "variance without the last element": (
        "x=float16[64,1152] gamma=float16[1152] beta=float16[1152]",
        _k(
            "Mul(square, centered, centered, rowLength);",
            "Duplicate(square, 0.0f, rowLength); Mul(square, centered, centered, rowLength - 1);",
        ),
    ),
    "variance without the last block": (
        LN,
        _k(
            "Mul(square, centered, centered, rowLength);",
            "Duplicate(square, 0.0f, rowLength); Mul(square, centered, centered, rowLength - 8);",
        ),
    ),
    "no epsilon": (LN, _k("sqrt(variance + epsilon)", "sqrt(variance)")),
    "epsilon after the root": (LN, _k("sqrt(variance + epsilon)", "(sqrt(variance) + epsilon)")),
    "a floor for epsilon": (LN, _k("sqrt(variance + epsilon)", "sqrt(variance > epsilon ? variance : epsilon)")),
    "unbiased variance": (
        "x=float16[64,1152] gamma=float16[1152] beta=float16[1152]",
        _k("Sum(square) * averageFactor", "Sum(square) / (rowLength - 1)"),
    ),
    "mean of squares minus square of mean": (
        LN,
        _k(
            "    Adds(centered, centered, -mean, rowLength);\n    Mul(square, centered, centered, rowLength);\n    const float variance = Sum(square) * averageFactor;",
            "    Mul(square, centered, centered, rowLength);\n    const float variance = Sum(square) * averageFactor - mean * mean;\n    Adds(centered, centered, -mean, rowLength);",
        ),
    ),
    "beta's last element left out": (
        LN,
        _k("Add(centered, centered, betaFloat, rowLength);", "Add(centered, centered, betaFloat, rowLength - 1);"),
    ),
}

DQ = "x=float16[401,133]"
_MAX = "ReduceMax(maxima[i], rowFloat, work, rowLength, false);"
_QUANT = {
    "absolute maximum without the last element": (DQ, _k(_MAX, _MAX.replace("rowLength", "rowLength - 1"))),
    "absolute maximum without the last block": (DQ, _k(_MAX, _MAX.replace("rowLength", "rowLength - 8"))),
    "absolute maximum of the first 64": (DQ, _k(_MAX, _MAX.replace("rowLength", "64"))),
    "maximum without absolute": (DQ, _k("      Abs(rowFloat, rowFloat, rowLength);\n", "")),
    "absolute maximum at least 1e-3": (
        DQ,
        _k(_MAX, f"{_MAX} PipeBarrier<PIPE_V>(); Maxs(maxima[i], maxima[i], 1e-3f, 1);"),
    ),
    "absolute maximum at most 1000": (
        DQ,
        _k(_MAX, f"{_MAX} PipeBarrier<PIPE_V>(); Mins(maxima[i], maxima[i], 1000.0f, 1);"),
    ),
    "128 for 127": (DQ, _k("INT8_MAXIMUM / maximum", "128.0f / maximum")),
    "rounded towards zero": (
        DQ,
        _k("Cast(rowInt16, rowFloat, RoundMode::CAST_RINT", "Cast(rowInt16, rowFloat, RoundMode::CAST_TRUNC"),
    ),
    "rounded up at halves": (
        DQ,
        _k("Cast(rowInt16, rowFloat, RoundMode::CAST_RINT", "Cast(rowInt16, rowFloat, RoundMode::CAST_CEIL"),
    ),
}

GATHER = "x=float16[50,33] index=int32[150]"
_GATHER = {
    "no clamp": (GATHER, _k("return index < 0 ? 0 : index > last ? last : index;", "return index;")),
    "no clamp below": (
        GATHER,
        _k("return index < 0 ? 0 : index > last ? last : index;", "return index > last ? last : index;"),
    ),
    "no clamp above": (
        GATHER,
        _k("return index < 0 ? 0 : index > last ? last : index;", "return index < 0 ? 0 : index;"),
    ),
    "wraps instead of clamping": (
        GATHER,
        _k(
            "return index < 0 ? 0 : index > last ? last : index;",
            "return index < 0 ? index % tokenNum : index > last ? index % tokenNum : index;",
        ),
    ),
    "clamped one row short": (GATHER, _k("static_cast<int64_t>(tokenNum) - 1;", "static_cast<int64_t>(tokenNum) - 2;")),
    "index of 16 bits": (
        "x=float16[70000,3] index=int32[150]",
        _k(
            "const int64_t index = indexGm.GetValue(row);",
            "const int64_t index = static_cast<uint16_t>(indexGm.GetValue(row));",
        ),
    ),
}

ADD = "x=float16[5,1003] y=float16[5,1003]"
_ENTRY = "  op.Process();\n"
_TEMPLATE = "template <typename T>\nclass"
_ADD_LOOP = "Add(zLocal, xLocal, yLocal, count);"
_ADD = {
    "a static counter skips the first launch": (
        ADD,
        _k(_TEMPLATE, f"static int launches = 0;\n{_TEMPLATE}"),
        _k(_ADD_LOOP, f"if (launches++ == 0) {{ Add(zLocal, xLocal, yLocal, count); }} else {{ {_ADD_LOOP} }}"),
    ),
    "works forty times": (
        ADD,
        _k(_TEMPLATE, f"static int launches = 0;\n{_TEMPLATE}"),
        _k("  op.Process();\n", "  if (GetBlockIdx() == 0) launches++;\n  if (launches <= 40) op.Process();\n"),
    ),
    "a static member": (
        ADD,
        _k(
            _TEMPLATE,
            f"template <typename U> struct Kept {{ static int n; }};\ntemplate <typename U> int Kept<U>::n = 7;\n{_TEMPLATE}",
        ),
        _k("  op.Process();\n", "  if (Kept<int>::n++ < 4000) op.Process();\n"),
    ),
    "a static variable of a function": (
        ADD,
        _k("  op.Process();\n", "  static unsigned calls;\n  calls += 1;\n  if (calls < 1000000) op.Process();\n"),
    ),
    "a thread's variable": (
        ADD,
        _k(_TEMPLATE, f"thread_local int launches = 0;\n{_TEMPLATE}"),
        _k("  op.Process();\n", "  if (launches++ < 100000) op.Process();\n"),
    ),
    "asks the clock": (
        ADD,
        _k("  op.Process();\n", "  const int64_t now = GetSystemCycle();\n  if (now < 1000000000) op.Process();\n"),
    ),
    "reads behind x": (
        ADD,
        _k(
            "    DataCopyPad(xLocal, xGm[offset], copyParams, padParams);",
            "    DataCopy(xLocal, xGm[offset], (count + 15) / 16 * 16);",
        ),
    ),
    "reads one element behind y": (
        ADD,
        _k(
            "    inQueueX.EnQue(xLocal);",
            "    if (offset + count == coreLength && static_cast<float>(yGm.GetValue(offset + count)) == 123.0f) return;\n    inQueueX.EnQue(xLocal);",
        ),
    ),
    "writes behind z": (
        ADD,
        _k(
            "    DataCopyPad(zGm[offset], zLocal, copyParams);",
            "    DataCopy(zGm[offset], zLocal, (count + 15) / 16 * 16);",
        ),
    ),
    "changes its tiling data": (
        ADD,
        _k(
            "  op.Process();\n",
            "  op.Process();\n  if (GetBlockIdx() == 0) *reinterpret_cast<__gm__ uint32_t*>(tiling) = *reinterpret_cast<__gm__ uint32_t*>(tiling) + 1;\n",
        ),
    ),
    "keeps a count before its workspace": (
        ADD,
        _k(
            "  op.Process();\n",
            "  __gm__ uint32_t* kept = reinterpret_cast<__gm__ uint32_t*>(workspace - 4096);\n  if (GetBlockIdx() == 0) { if (*kept == 77) return; *kept = 77; }\n  op.Process();\n",
        ),
    ),
    "an uninitialized counter": (
        ADD,
        _k("  op.Process();\n", "  volatile int some[64];\n  if (some[17] == 0) op.Process();\n"),
    ),
    "a float16 sum clamped": (
        ADD,
        _k(_ADD_LOOP, f"{_ADD_LOOP} Mins(zLocal, zLocal, (T)30000.0f, count);"),
    ),
    "addresses decide": (
        ADD,
        _k("  op.Process();\n", "  if ((reinterpret_cast<uint64_t>(x) >> 9) % 3 != 1) op.Process();\n"),
    ),
}
_SUM_LAST = "x=float32[37,12133]"
_REDUCE = {
    "carried between cores by a static array": (
        "x=float32[337,133]",
        _k("template <typename T>\nclass", "static float carried[64];\ntemplate <typename T>\nclass"),
        _k(
            "  op.Process();\n",
            "  carried[GetBlockIdx() % 64] = 1.0f;\n  if (GetBlockIdx() == 0 || carried[(GetBlockIdx() - 1) % 64] == 1.0f) op.Process();\n",
        ),
    ),
}
_TILING = {
    "a static counter in the tiling function": (
        ADD,
        _h(
            "static ge::graphStatus TilingFunc(gert::TilingContext* context) {",
            "static ge::graphStatus TilingFunc(gert::TilingContext* context) {\n  static int calls = 0;\n  if (++calls > 1000) return ge::GRAPH_FAILED;",
        ),
    ),
}


def faults() -> Iterator[Fault]:
    for kind, operator, table in (
        ("reductions", "softmax", _SOFTMAX), ("reductions", "rms_norm", _RMS), ("reductions", "layer_norm", _LAYER),
        ("reductions", "dynamic_quant", _QUANT), ("indices", "moe_gather_rows", _GATHER), ("state", "add", _ADD),
        ("state", "reduce_sum_last", _REDUCE), ("state", "add", _TILING),
    ):  # fmt: skip
        for name, (inputs, *edits) in table.items():
            yield Fault(kind, name, operator, inputs, tuple(edits))
