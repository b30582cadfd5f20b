# ruff: noqa: E501  (lines of C++ are as long as they are)
"""More wrong variants of the registry's operators: ideas of fast candidates that the gate was not made from.

Shortcuts that most inputs allow, algorithms that fail in a part of their range, roundings on the way, memory of other
launches, places that only some addresses or values reach. Edits are those of ``wrong_by_hand``.
"""

from __future__ import annotations

from collections.abc import Iterator

from wrong_by_hand import Fault


def _k(old: str, new: str) -> tuple[str, str, str]:
    return "kernel", old, new


def _h(old: str, new: str) -> tuple[str, str, str]:
    return "host", old, new


_V = " PipeBarrier<PIPE_V>();"
# The scalar unit reads a value of ``{0}`` that the vector unit or a copy has written.
_PEEK = (
    "event_t peekVS = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::V_S)); SetFlag<HardEvent::V_S>(peekVS);"
    " WaitFlag<HardEvent::V_S>(peekVS); const float peek = {0}; event_t peekSV ="
    " static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::S_V)); SetFlag<HardEvent::S_V>(peekSV);"
    " WaitFlag<HardEvent::S_V>(peekSV);"
)

# ---- softmax ----
_ROWS = "x=float16[401,133]"
_SUM = "const float sum = Sum(rowLength);"
_EXP = "    Exp(rowFloat, rowFloat, count);\n"
_SOFTMAX = {
    "the sum rounded to half": (_ROWS, _k(_SUM, "const float sum = static_cast<float>(static_cast<half>(Sum(rowLength)));")),
    "results on a grid of 2**-21": (
        _ROWS,
        _k(_SUM, f"{_SUM} Muls(rowFloat, rowFloat, 1.0f / sum, rowLength);{_V} Adds(rowFloat, rowFloat, 4.0f, rowLength);{_V}"
                 f" Adds(rowFloat, rowFloat, -4.0f, rowLength);{_V} Muls(rowFloat, rowFloat, sum, rowLength);{_V}"),
    ),
    "a sum below 1.0009 is 1, float32": (
        "x=float32[401,133]", _k(_SUM, "float sum = Sum(rowLength); sum = sum < 1.0009f ? 1.0f : sum;")
    ),
    "the difference rounded to half": (
        _ROWS,
        _k(_EXP, f"    Cast(work.ReinterpretCast<half>(), rowFloat, RoundMode::CAST_RINT, count);{_V}\n"
                 f"    Cast(rowFloat, work.ReinterpretCast<half>(), RoundMode::CAST_NONE, count);{_V}\n{_EXP}"),
        _h("tiling.set_reduceBytes(", "tiling.set_reduceBytes(4096 + "),
    ),
    "differences below -20 are -20": ("x=float32[64,133]", _k(_EXP, f"    Maxs(rowFloat, rowFloat, -20.0f, count);{_V}\n{_EXP}")),
    "tiles far below the maximum are 0": (
        "x=float32[4,20001]",
        _k("        ExpMinus(maximum, TileCols(col));\n        LocalTensor<T> yLocal",
           "        const bool far = Maximum(TileCols(col)) < maximum - 30.0f;\n        ExpMinus(maximum, TileCols(col));\n"
           "        if (far) { Muls(rowFloat, rowFloat, 0.0f, TileCols(col)); PipeBarrier<PIPE_V>(); }\n        LocalTensor<T> yLocal"),
    ),
    "tiles that add less than a five-thousandth are left out": (
        "x=float32[4,20001]",
        _k("        sum += Sum(TileCols(col));\n", "        const float part = Sum(TileCols(col));\n        if (col == 0 || part > 2e-4f * sum) { sum += part; }\n"),
    ),
    "rows with equal ends are constant": (
        _ROWS,
        _k("        ExpMinus(maximum, rowLength);\n", "        if (rowFloat.GetValue(0) == rowFloat.GetValue(rowLength - 1)) { Duplicate(rowFloat, 1.0f, rowLength); PipeBarrier<PIPE_V>(); } else { ExpMinus(maximum, rowLength); }\n"),
    ),
    "rows of which three elements are the same are constant": (
        _ROWS,
        _k("        ExpMinus(maximum, rowLength);\n", "        if (rowFloat.GetValue(0) == rowFloat.GetValue(rowLength - 1) && rowFloat.GetValue(0) == rowFloat.GetValue(rowLength / 2)) { Duplicate(rowFloat, 1.0f, rowLength); PipeBarrier<PIPE_V>(); } else { ExpMinus(maximum, rowLength); }\n"),
    ),
    "the maximum of the ends where a row begins to ascend": (
        _ROWS,
        _k("const float maximum = Maximum(rowLength);",
           "float maximum = Maximum(rowLength); float v[6]; for (int j = 0; j < 5; j++) v[j] = rowFloat.GetValue(j); v[5] = rowFloat.GetValue(rowLength - 1);"
           " if (v[0] < v[1] && v[1] < v[2] && v[2] < v[3] && v[3] < v[4] && v[4] < v[5]) maximum = v[5] + 40.0f * (maximum - v[5]);"),
    ),
}  # fmt: skip

# ---- norms ----
_RMS = "x=float16[401,133] gamma=float16[133]"
_RSTD = "return 1.0f / sum.GetValue(0);"
_RMS_NORM = {
    "the reciprocal root rounded to half": (_RMS, _k(_RSTD, "return static_cast<float>(static_cast<half>(1.0f / sum.GetValue(0)));")),
    "a root within a thousandth of 1 is 1": (
        _RMS, _k(_RSTD, "const float root = sum.GetValue(0); return root > 0.999f && root < 1.001f ? 1.0f : 1.0f / root;"),
    ),
    "epsilon rounded to half": (_RMS, _k("epsilon = tiling.epsilon;", "epsilon = static_cast<float>(static_cast<half>(tiling.epsilon));")),
    "scaled before the squares, epsilon not": (
        _RMS,
        _k("        Mul(square, xFloat, xFloat, rowLength);\n        PipeBarrier<PIPE_V>();",
           f"        Muls(xFloat, xFloat, 0.0625f, rowLength);{_V}\n        Mul(square, xFloat, xFloat, rowLength);{_V}"),
    ),
    "rows of which the first element is 0 are 0": (
        _RMS, _k("const float rstd = ReciprocalRoot(rowLength);", "float rstd = ReciprocalRoot(rowLength); if (xFloat.GetValue(0) == 0.0f) rstd = 0.0f;"),
    ),
    "rows that begin like the row before have its sum": (
        _RMS,
        _k("        const float rstd = ReciprocalRoot(rowLength);\n",
           "        float rstd = ReciprocalRoot(rowLength);\n        bool same = i > 0;\n        for (int j = 0; j < 4; j++) { same = same && begin[j] == xFloat.GetValue(j); begin[j] = xFloat.GetValue(j); }\n"
           "        if (same) rstd = last;\n        last = rstd;\n"),
        _k("      for (uint32_t i = 0; i < rows; i++) {", "      float last = 0, begin[4] = {1e9f, 1e9f, 1e9f, 1e9f};\n      for (uint32_t i = 0; i < rows; i++) {"),
    ),
    "at least a tenth": (_RMS, _k(_RSTD, "const float root = sum.GetValue(0); return root < 0.1f ? 10.0f : 1.0f / root;")),
    "at most a million": ("x=float32[64,133] gamma=float32[133]", _k(_RSTD, "const float root = sum.GetValue(0); return root > 1e6f ? 1e-6f : 1.0f / root;")),
    "gamma of 1 is taken for all of it": (
        _RMS,
        _k("      Mul(xFloat, xFloat, gammaFloat, count);\n      PipeBarrier<PIPE_V>();\n      Cast(y",
           "      if (gammaFloat.GetValue(0) != gammaFloat.GetValue(1)) { Mul(xFloat, xFloat, gammaFloat, count); }\n      PipeBarrier<PIPE_V>();\n      Cast(y"),
    ),
}  # fmt: skip
_LN = "x=float16[150,133] gamma=float16[133] beta=float16[133]"
_MEAN = "    Adds(centered, centered, -mean, rowLength);\n"
_LAYER_NORM = {
    "a small mean is not subtracted": (_LN, _k(_MEAN, "    if (mean > 1e-3f || mean < -1e-3f) { Adds(centered, centered, -mean, rowLength); }\n")),
    "the mean rounded to half": (_LN, _k(_MEAN, "    Adds(centered, centered, -static_cast<float>(static_cast<half>(mean)), rowLength);\n")),
    "a constant row is told by its ends": (
        _LN, _k("    Muls(centered, centered, rstd, rowLength);\n", "    const float same = centered.GetValue(0) == centered.GetValue(rowLength - 1) ? 0.0f : rstd;\n    Muls(centered, centered, same, rowLength);\n"),
    ),
    "a gamma whose ends are 1 is 1": (
        "x=float32[150,133] gamma=float32[133] beta=float32[133]",
        _k("    LoadParameter(gammaFloat, gammaGm);\n",
           "    LoadParameter(gammaFloat, gammaGm);\n    if (gammaGm.GetValue(0) == static_cast<T>(1.0f) && gammaGm.GetValue(rowLength - 1) == static_cast<T>(1.0f)) { Duplicate(gammaFloat, 1.0f, rowLength); }\n"),
    ),
    "variance at most 1e6": (
        "x=float32[150,133] gamma=float32[133] beta=float32[133]",
        _k("sqrt(variance + epsilon)", "sqrt((variance > 1e6f ? 1e6f : variance) + epsilon)"),
    ),
}  # fmt: skip

# ---- casts, quantization, activations ----
_DQ = "x=float16[401,133]"
_QUANT = {
    "a floor of 1e-8 for the maximum": (
        _DQ, _k("    Muls(scaleLocal, maxima, ", f"    Maxs(maxima, maxima, 1e-8f, rows);{_V}\n    Muls(scaleLocal, maxima, "),
    ),
    "the scale rounded to half": (
        _DQ,
        _k("INT8_MAXIMUM / maximum", "1.0f / static_cast<float>(static_cast<half>(maximum / INT8_MAXIMUM))"),
    ),
    "values in half before they are scaled": (
        "x=bfloat16[401,133]",
        _k("    Muls(rowFloat, rowFloat, factor, rowLength);\n    PipeBarrier<PIPE_V>();\n",
           f"    Muls(rowFloat, rowFloat, factor, rowLength);{_V}\n    Cast(rowHalf, rowFloat, RoundMode::CAST_TRUNC, rowLength);{_V}\n"
           f"    Cast(rowFloat, rowHalf, RoundMode::CAST_NONE, rowLength);{_V}\n"),
    ),
    "the maximum where it is about the negated minimum": (
        _DQ,
        _k("      Abs(rowFloat, rowFloat, rowLength);\n      PipeBarrier<PIPE_V>();\n      ReduceMax(maxima[i], rowFloat, work, rowLength, false);\n",
           f"      ReduceMax(work, rowFloat, work, rowLength, false);\n      {_PEEK.format('work.GetValue(0)')}\n      Abs(rowFloat, rowFloat, rowLength);{_V}\n"
           "      ReduceMax(maxima[i], rowFloat, work, rowLength, false);\n"
           f"      {_PEEK.replace('peekVS', 'againVS').replace('peekSV', 'againSV').replace('float peek', 'float whole').format('maxima.GetValue(i)')}\n"
           "      if (peek < whole && peek > 0.98f * whole) { maxima.SetValue(i, peek); }\n"
           "      event_t done = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::S_V)); SetFlag<HardEvent::S_V>(done); WaitFlag<HardEvent::S_V>(done);\n"),
    ),
    "a row of small numbers is a row of zeros": (_DQ, _k("maximum > 0.0f ?", "maximum > 1e-6f ?")),
}  # fmt: skip
_SILU_IN = "x=float16[5,1003]"
_SILU_DIV = "      Div(xFloat, xFloat, denominator, count);"
_SILU = {
    "exp(x) over 1 + exp(x)": (
        _SILU_IN,
        _k("    Muls(denominator, x, -1.0f, count);\n", "    Muls(denominator, x, 1.0f, count);\n"),
        _k(_SILU_DIV, "      Adds(xFloat, denominator, -1.0f, count);\n      Div(denominator, xFloat, denominator, count);\n"
                      "      Cast(xFloat, xLocal, RoundMode::CAST_NONE, count);\n      Mul(xFloat, xFloat, denominator, count);"),
    ),
    "a denominator of at least 1.00001": (
        "x=float32[5,1003]",
        _k("    Adds(denominator, denominator, 1.0f, count);\n", "    Adds(denominator, denominator, 1.0f, count);\n    Maxs(denominator, denominator, 1.00001f, count);\n"),
    ),
    "an exponent of at most 12": (
        _SILU_IN,
        _k("    Exp(denominator, denominator, count);\n", "    Mins(denominator, denominator, 12.0f, count);\n    Exp(denominator, denominator, count);\n"),
    ),
    "infinities are the largest halves": (
        _SILU_IN, _k(_SILU_DIV, f"      Mins(xFloat, xFloat, 65504.0f, count);\n      Maxs(xFloat, xFloat, -65504.0f, count);\n{_SILU_DIV}"),
    ),
    "the exponential in half": (
        _SILU_IN,
        _k("      Denominator(denominator, xFloat, count);\n", "      Muls(yLocal, xLocal, static_cast<T>(-1.0f), count);\n      Exp(yLocal, yLocal, count);\n"
           "      Cast(denominator, yLocal, RoundMode::CAST_NONE, count);\n      Adds(denominator, denominator, 1.0f, count);\n"),
    ),
}  # fmt: skip
_SWIGLU_IN = "x=float16[401,66]"
_SWIGLU = {
    "the gate rounded to half": (
        _SWIGLU_IN,
        _k("      Mul(b, silu, b, count);\n", f"      Cast(yLocal, silu, RoundMode::CAST_RINT, count);{_V}\n      Cast(silu, yLocal, RoundMode::CAST_NONE, count);{_V}\n      Mul(b, silu, b, count);\n"),
    ),
    "an infinite factor is the largest half": (
        _SWIGLU_IN, _k("      Mul(b, silu, b, count);\n", f"      Mins(b, b, 65504.0f, count);{_V} Maxs(b, b, -65504.0f, count);{_V}\n      Mul(b, silu, b, count);\n"),
    ),
    "the gate before the exponential overflows": (
        "x=bfloat16[401,66]",
        _k("      Mul(b, silu, b, count);\n      PipeBarrier<PIPE_V>();\n", f"      Mul(b, silu, b, count);{_V}\n"),
        _k("    Div(silu, a, silu, count);\n", f"    Muls(silu, silu, 1e-30f, count);{_V}\n    Div(silu, a, silu, count);{_V}\n    Muls(silu, silu, 1e-30f, count);\n"),
    ),
}  # fmt: skip

# ---- memory, shortcuts, lists, indices ----
_ADD_IN = "x=float16[5,1003] y=float16[5,1003]"
_ADD_LOOP = "Add(zLocal, xLocal, yLocal, count);"
_PROCESS = "  op.Process();\n"
_ADD = {
    "scaled down and up again": (
        _ADD_IN, _k(_ADD_LOOP, f"{_ADD_LOOP}{_V} Muls(zLocal, zLocal, static_cast<T>(0.0009765625f), count);{_V} Muls(zLocal, zLocal, static_cast<T>(1024.0f), count);"),
    ),
    "sums end at the largest half": (_ADD_IN, _k(_ADD_LOOP, f"{_ADD_LOOP}{_V} Mins(zLocal, zLocal, static_cast<T>(65504.0f), count);")),
    "whole numbers in float": (
        "x=int32[5,1003] y=int32[5,1003]",
        _k(_ADD_LOOP, f"Cast(xLocal.template ReinterpretCast<float>(), xLocal, RoundMode::CAST_RINT, count); Cast(yLocal.template ReinterpretCast<float>(), yLocal, RoundMode::CAST_RINT, count);{_V}"
                      f" Add(xLocal.template ReinterpretCast<float>(), xLocal.template ReinterpretCast<float>(), yLocal.template ReinterpretCast<float>(), count);{_V}"
                      " Cast(zLocal, xLocal.template ReinterpretCast<float>(), RoundMode::CAST_RINT, count);"),
    ),
    "addresses of 512 bytes only": (_ADD_IN, _k(_PROCESS, "  if ((reinterpret_cast<uint64_t>(x) & 511) == 0) op.Process();\n")),
    "addresses of 64 bytes only": (_ADD_IN, _k(_PROCESS, "  if ((reinterpret_cast<uint64_t>(y) & 63) == 0) op.Process();\n")),
    "done when its output is": (
        _ADD_IN, _k(_PROCESS, "  if (static_cast<float>(*reinterpret_cast<__gm__ half*>(z)) == 1.0f) return;\n  op.Process();\n"),
    ),
    "a magic number in its own workspace": (
        _ADD_IN,
        _h("workspace[0] = 0;", "workspace[0] = 16 * 1024 * 1024 + 4096;"),
        _k(_PROCESS, "  __gm__ uint32_t* kept = reinterpret_cast<__gm__ uint32_t*>(GetUserWorkspace(workspace));\n  if (kept[0] == 77) return;\n  op.Process();\n"
                     "  if (GetBlockIdx() == 0) kept[0] = 77;\n"),
    ),
    "a magic number of every core in its own workspace": (
        _ADD_IN,
        _h("workspace[0] = 0;", "workspace[0] = 16 * 1024 * 1024 + 64 * 512;"),
        _k(_PROCESS, "  __gm__ uint32_t* kept = reinterpret_cast<__gm__ uint32_t*>(GetUserWorkspace(workspace)) + GetBlockIdx() * 128;\n"
                     "  if (kept[0] == 77) return;\n  op.Process();\n  kept[0] = 77;\n"),
    ),
    "what local memory still holds, by way of the vector unit": (
        _ADD_IN,
        _k("    pipe->InitBuffer(outQueueZ, tiling.bufferNum, tileLength * sizeof(T));\n",
           "    pipe->InitBuffer(outQueueZ, tiling.bufferNum, tileLength * sizeof(T));\n    pipe->InitBuffer(keptBuf, 64);\n    LocalTensor<int32_t> kept = keptBuf.Get<int32_t>();\n"
           f"    Adds(kept[8], kept, 1, 8);{_V}\n    {_PEEK.format('static_cast<float>(kept.GetValue(8))')}\n    if (peek == 78.0f) {{ coreLength = 0; }}\n    Duplicate(kept, 77, 8);\n"),
        _k("  GlobalTensor<T> xGm, yGm, zGm;\n", "  GlobalTensor<T> xGm, yGm, zGm;\n  TBuf<QuePosition::VECCALC> keptBuf;\n"),
    ),
    "what local memory still holds, counted to forty": (
        _ADD_IN,
        _k("    pipe->InitBuffer(outQueueZ, tiling.bufferNum, tileLength * sizeof(T));\n",
           "    pipe->InitBuffer(outQueueZ, tiling.bufferNum, tileLength * sizeof(T));\n    pipe->InitBuffer(keptBuf, 32);\n    LocalTensor<int32_t> kept = keptBuf.Get<int32_t>();\n"
           "    const int32_t count = kept.GetValue(0) - 0x12345600;\n    if (count >= 40 && count < 100) { coreLength = 0; }\n"
           "    kept.SetValue(0, count >= 0 && count < 100 ? 0x12345600 + count + 1 : 0x12345600);\n"),
        _k("  GlobalTensor<T> xGm, yGm, zGm;\n", "  GlobalTensor<T> xGm, yGm, zGm;\n  TBuf<QuePosition::VECCALC> keptBuf;\n"),
    ),
    "what local memory still holds": (
        _ADD_IN,
        _k("    pipe->InitBuffer(outQueueZ, tiling.bufferNum, tileLength * sizeof(T));\n",
           "    pipe->InitBuffer(outQueueZ, tiling.bufferNum, tileLength * sizeof(T));\n    pipe->InitBuffer(keptBuf, 32);\n    LocalTensor<int32_t> kept = keptBuf.Get<int32_t>();\n"
           "    if (kept.GetValue(0) == 77) { coreLength = 0; }\n    kept.SetValue(0, 77);\n"),
        _k("  GlobalTensor<T> xGm, yGm, zGm;\n", "  GlobalTensor<T> xGm, yGm, zGm;\n  TBuf<QuePosition::VECCALC> keptBuf;\n"),
    ),
    "buffers of more bytes than there are": (
        _ADD_IN,
        _k("    pipe->InitBuffer(outQueueZ, tiling.bufferNum, tileLength * sizeof(T));\n",
           "    pipe->InitBuffer(outQueueZ, tiling.bufferNum, tileLength * sizeof(T));\n    pipe->InitBuffer(spareBuf, 192 * 1024);\n"),
        _k("  GlobalTensor<T> xGm, yGm, zGm;\n", "  GlobalTensor<T> xGm, yGm, zGm;\n  TBuf<QuePosition::VECCALC> spareBuf;\n"),
    ),
    "a tile of which the first element of y is 0 is x": (
        _ADD_IN,
        _k(_ADD_LOOP, "event_t loaded = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::MTE2_S)); SetFlag<HardEvent::MTE2_S>(loaded); WaitFlag<HardEvent::MTE2_S>(loaded);\n"
                      "    if (static_cast<float>(yLocal.GetValue(0)) == 0.0f) { Muls(zLocal, xLocal, static_cast<T>(1.0f), count); } else { Add(zLocal, xLocal, yLocal, count); }"),
    ),
}  # fmt: skip
_LIST = "x.0=float16[3,33] x.1=float16[1] x.2=float16[40,50] scalar=float32[1]"
_READ_SCALAR = "    scalar = scalarGm.GetValue(0);\n"
_FOREACH = {
    "the scalar rounded to half": (_LIST, _k(_READ_SCALAR, "    scalar = static_cast<float>(static_cast<half>(scalarGm.GetValue(0)));\n")),
    "the scalar rounded to bfloat16": (
        "x.0=float32[3,33] x.1=float32[1] scalar=float32[1]",
        _k(_READ_SCALAR, "    union { float f; uint32_t u; } bits; bits.f = scalarGm.GetValue(0); bits.u &= 0xFFFF0000u; scalar = bits.f;\n"),
    ),
    "nothing but zeros times 0": (_LIST, _k("      Muls(xFloat, xFloat, scalar, count);\n", "      if (scalar == 0.0f) { Duplicate(xFloat, 0.0f, count); } else { Muls(xFloat, xFloat, scalar, count); }\n")),
    "a scalar near 1 is 1": (_LIST, _k(_READ_SCALAR, f"{_READ_SCALAR}    if (scalar > 0.99f && scalar < 1.01f) scalar = 1.0f;\n")),
    "a scalar within a thousandth of 1 is 1": (
        _LIST, _k(_READ_SCALAR, f"{_READ_SCALAR}    if (scalar > 0.999f && scalar < 1.001f) scalar = 1.0f;\n")
    ),
    "a scalar within a thousandth of 1 is 1, float32": (
        "x.0=float32[3,33] x.1=float32[77] scalar=float32[1]",
        _k(_READ_SCALAR, f"{_READ_SCALAR}    if (scalar > 0.9999f && scalar < 1.0001f) scalar = 1.0f;\n"),
    ),
    "a scalar within a thousandth of 1 is 1, a large case": (
        "x.0=float32[2048,1024] scalar=float32[1]",
        _k(_READ_SCALAR, f"{_READ_SCALAR}    if (scalar > 0.999f && scalar < 1.001f) scalar = 1.0f;\n"),
    ),
    "a scalar of at most 1000": (_LIST, _k(_READ_SCALAR, f"{_READ_SCALAR}    if (scalar > 1000.0f) scalar = 1000.0f;\n")),
}  # fmt: skip
_GATHER_IN = "x=float16[50,33] index=int32[150]"
_CLAMP = "return index < 0 ? 0 : index > last ? last : index;"
_GATHER = {
    "indices of 16 bits are clamped": (_GATHER_IN, _k("const int64_t index = indexGm.GetValue(row);", "const int64_t index = static_cast<int16_t>(indexGm.GetValue(row));")),
    "far beyond is the first row": (_GATHER_IN, _k(_CLAMP, "return index < 0 || index > 1000000 ? 0 : index > last ? last : index;")),
    "-1 is the last row": (_GATHER_IN, _k(_CLAMP, "return index == -1 ? last : index < 0 ? 0 : index > last ? last : index;")),
    "rows written in whole blocks": (
        _GATHER_IN,
        _k("    DataCopyPad(yGm[row * rowLength + col], local, copyParams);\n",
           "    const uint32_t alignedCols = (cols + BLOCK_LENGTH - 1) / BLOCK_LENGTH * BLOCK_LENGTH;\n"
           "    for (uint32_t i = 0; i < rows; i++) { DataCopy(yGm[(row + i) * rowLength + col], local[i * alignedCols], alignedCols); PipeBarrier<PIPE_MTE3>(); }\n"),
    ),
}  # fmt: skip
_MASK_IN = "x=float16[25,1013] mask=bool[25,1013]"
_SELECT = "    Select(yLocal, keepBits, xLocal, value, SELMODE::VSEL_TENSOR_SCALAR_MODE, count);\n"
_MASKED_FILL = {
    "the last repeat keeps the bits of another tile": (_MASK_IN, _k("(count + REPEAT_LENGTH - 1) / REPEAT_LENGTH * REPEAT_LENGTH", "count < REPEAT_LENGTH ? REPEAT_LENGTH : count / REPEAT_LENGTH * REPEAT_LENGTH")),
    "a tile of which the first bytes of the mask are 0 is x": (
        _MASK_IN, _k(_SELECT, "    bool some = false;\n    for (int j = 0; j < 16; j++) { some = some || maskLocal.GetValue(j) != 0; }\n"
                              f"    if (some) {{\n  {_SELECT}    }} else {{\n      Adds(yLocal, xLocal, static_cast<T>(0.0f), count);\n    }}\n"),
    ),
    "by arithmetic": (
        _MASK_IN,
        _k(_SELECT, "    Muls(maskHalf, maskHalf, static_cast<half>(-1.0f), wholeRepeats);\n    Adds(maskHalf, maskHalf, static_cast<half>(1.0f), wholeRepeats);\n    Mul(yLocal, xLocal, maskHalf, count);\n"),
    ),
}  # fmt: skip
_ROPE_IN = "x=float16[30,4,50] cos=float16[30,50] sin=float16[30,50]"
_ROPE = {
    "one cosine for both halves": (_ROPE_IN, _k("x[second], cos[alignedHalfDim], halfDim", "x[second], cos, halfDim")),
    "products rounded to half": (
        _ROPE_IN,
        _k("      Sub(y[first], y[first], product1, halfDim);\n",
           f"      Cast(product1.ReinterpretCast<half>(), product1, RoundMode::CAST_RINT, halfDim);{_V} Cast(y[first].ReinterpretCast<half>(), y[first], RoundMode::CAST_RINT, halfDim);{_V}\n"
           f"      Sub(product1.ReinterpretCast<half>(), y[first].ReinterpretCast<half>(), product1.ReinterpretCast<half>(), halfDim);{_V}\n"
           "      Cast(y[first], product1.ReinterpretCast<half>(), RoundMode::CAST_NONE, halfDim);\n"),
    ),
    "the first token is not rotated": (
        _ROPE_IN,
        _k("      Compute(heads);\n", "      firstToken = token == 0;\n      Compute(heads);\n"),
        _k("      Sub(y[first], y[first], product1, halfDim);\n", "      if (!firstToken) { Sub(y[first], y[first], product1, halfDim); }\n"),
        _k("  uint64_t itemNum = 0, firstItem = 0;\n", "  uint64_t itemNum = 0, firstItem = 0;\n  bool firstToken = false;\n"),
    ),
    "no rotation by a sine of 0": (
        _ROPE_IN,
        _k("      Sub(y[first], y[first], product1, halfDim);\n", f"      {_PEEK.format('sin.GetValue(0)')}\n      if (peek != 0.0f) {{ Sub(y[first], y[first], product1, halfDim); }}\n"),
    ),
}  # fmt: skip
_SUM_IN = "x=float32[337,133]"
_TILES = (_h("TILE_LENGTH = 4096", "TILE_LENGTH = 64"),)
_REDUCE_SUM = {
    "tiles of which the first element is 0 are skipped": (
        _SUM_IN, *_TILES, _k("        NextTile(xLocal, cols);\n", "        if (xLocal.GetValue(0) != T(0)) { NextTile(xLocal, cols); }\n"),
    ),
    "lanes end at 1e30": (_SUM_IN, *_TILES, _k("      Add(lanes, lanes, xLocal, cols);\n", "      Add(lanes, lanes, xLocal, cols);\n      Mins(lanes, lanes, 1e29f, cols);\n")),
    "small elements are left out": (
        "x=float16[337,133]", _k("      Cast(lanes, xLocal, RoundMode::CAST_NONE, cols);\n", "      Cast(lanes, xLocal, RoundMode::CAST_NONE, cols);\n      Muls(lanes, lanes, 8388608.0f, cols);\n      Adds(lanes, lanes, 100663296.0f, cols);\n      Adds(lanes, lanes, -100663296.0f, cols);\n      Muls(lanes, lanes, 1.1920929e-7f, cols);\n"),
    ),
}  # fmt: skip
_MATMUL = {
    "whole tiles of k": ("a=float16[37,300] b=float16[300,77]", _k("    params.k = length;\n", "    params.k = length < SIDE ? length : length / SIDE * SIDE;\n")),
    "sums begin anew with every step of k": ("a=float16[37,300] b=float16[300,77]", _k("    params.cmatrixInitVal = first && !BIASED;\n", "    params.cmatrixInitVal = true;\n")),
    "no negative results": ("a=float16[37,300] b=float16[300,77]", _k("    params.srcStride = Tiles(rows) * SIDE;\n    params.dstStride", "    params.srcStride = Tiles(rows) * SIDE;\n    params.reluEn = true;\n    params.dstStride")),
}  # fmt: skip


def ideas() -> Iterator[Fault]:
    for kind, operator, table in (
        ("reductions", "softmax", _SOFTMAX), ("reductions", "rms_norm", _RMS_NORM), ("reductions", "layer_norm", _LAYER_NORM),
        ("casts", "dynamic_quant", _QUANT), ("ranges", "silu", _SILU), ("ranges", "swiglu", _SWIGLU), ("memory", "add", _ADD),
        ("lists", "foreach_mul_scalar", _FOREACH), ("indices", "moe_gather_rows", _GATHER), ("masks", "masked_fill", _MASKED_FILL),
        ("order of casts", "rope", _ROPE), ("reductions", "reduce_sum_last", _REDUCE_SUM), ("cube", "matmul", _MATMUL),
    ):  # fmt: skip
        for name, (inputs, *edits) in table.items():
            yield Fault(kind, name, operator, inputs, tuple(edits))


# ---- right ones, of ideas as unusual ----
_RIGHT = {
    ("softmax", "x=float32[4,20001]"): {
        "one pass over maximum and sum": (
            _k("""        const float tileMaximum = Maximum(TileCols(col));
        maximum = col == 0 || tileMaximum > maximum ? tileMaximum : maximum;
      }
      float sum = 0.0f;
      for (uint32_t col = 0; col < rowLength; col += tileCols) {
        LoadTile(begin + col, TileCols(col));
        ExpMinus(maximum, TileCols(col));
        sum += Sum(TileCols(col));
      }
""", """        const float tileMaximum = Maximum(TileCols(col));
        ExpMinus(tileMaximum, TileCols(col));
        const float tileSum = Sum(TileCols(col));
        if (col == 0) {
          maximum = tileMaximum;
          sum = tileSum;
        } else {
          Duplicate(result, tileMaximum > maximum ? maximum - tileMaximum : tileMaximum - maximum, 8);
          PipeBarrier<PIPE_V>();
          Exp(result, result, 8);
          const float less = FirstResult();
          sum = tileMaximum > maximum ? sum * less + tileSum : sum + tileSum * less;
          maximum = tileMaximum > maximum ? tileMaximum : maximum;
        }
      }
"""),
            _k("      float maximum = 0.0f;\n", "      float maximum = 0.0f, sum = 0.0f;\n"),
        ),
    },
    ("softmax", _ROWS): {
        "a row whose maximum is its minimum is constant": (
            _k("        ExpMinus(maximum, rowLength);\n",
               "        ReduceMin(result, rowFloat, work, rowLength, false);\n        const float minimum = FirstResult();\n"
               f"        if (minimum == maximum) {{ Duplicate(rowFloat, 1.0f, rowLength);{_V} }} else {{ ExpMinus(maximum, rowLength); }}\n"),
        ),
    },
    ("rms_norm", _RMS): {
        "scaled before the squares, epsilon too": (
            _k("        Mul(square, xFloat, xFloat, rowLength);\n        PipeBarrier<PIPE_V>();",
               f"        Muls(xFloat, xFloat, 0.25f, rowLength);{_V}\n        Mul(square, xFloat, xFloat, rowLength);{_V}"),
            _k("epsilon = tiling.epsilon;", "epsilon = tiling.epsilon * 0.0625f;"),
        ),
        "halves of the row are squared by themselves": (
            _k("        Mul(square, xFloat, xFloat, rowLength);\n",
               "        const uint32_t first = rowLength / 16 * 8;\n        Mul(square, xFloat, xFloat, first);\n"
               "        Mul(square[first], xFloat[first], xFloat[first], rowLength - first);\n"),
        ),
    },
    ("layer_norm", _LN): {
        "the first element is subtracted before the mean": (
            _k("    const float mean = Sum(centered) * averageFactor;\n",
               "    const float first = centered.GetValue(0);\n    Adds(centered, centered, -first, rowLength);\n"
               "    const float mean = Sum(centered) * averageFactor;\n"),
        ),
    },
    ("dynamic_quant", _DQ): {
        "the larger of maximum and negated minimum": (
            _k("      Abs(rowFloat, rowFloat, rowLength);\n      PipeBarrier<PIPE_V>();\n      ReduceMax(maxima[i], rowFloat, work, rowLength, false);\n      PipeBarrier<PIPE_V>();\n",
               f"      ReduceMax(maxima[i], rowFloat, work, rowLength, false);{_V}\n      Muls(rowFloat, rowFloat, -1.0f, rowLength);{_V}\n"
               f"      ReduceMax(work[rowLength / 8 * 8], rowFloat, work, rowLength, false);\n      {_PEEK.format('work.GetValue(rowLength / 8 * 8)')}\n"
               "      if (peek > maxima.GetValue(i)) { maxima.SetValue(i, peek); }\n"
               "      event_t done = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::S_V)); SetFlag<HardEvent::S_V>(done); WaitFlag<HardEvent::S_V>(done);\n"),
            _h("tiling.set_reduceBytes(", "tiling.set_reduceBytes(4096 + "),
        ),
    },
    ("silu", _SILU_IN): {
        "a floor of -80 for the exponent": (
            _k("    Exp(denominator, denominator, count);\n", "    Maxs(denominator, denominator, -80.0f, count);\n    Exp(denominator, denominator, count);\n"),
        ),
    },
    ("swiglu", _SWIGLU_IN): {
        "the other factor times the gate's input first": (
            _k("    Div(silu, a, silu, count);\n", "    Reciprocal(silu, silu, count);\n    PipeBarrier<PIPE_V>();\n    Mul(silu, a, silu, count);\n"),
        ),
    },
    ("add", _ADD_IN): {
        "in whole repeats where they fit": (
            _k(_ADD_LOOP, "const uint32_t whole = count / 128 * 128;\n    if (whole > 0) { Add(zLocal, xLocal, yLocal, whole); }\n"
                          "    if (whole < count) { Add(zLocal[whole], xLocal[whole], yLocal[whole], count - whole); }"),
        ),
        "a workspace that it fills and reads": (
            _h("workspace[0] = 0;", "workspace[0] = 16 * 1024 * 1024 + 64 * 512;"),
            _k(_PROCESS, "  __gm__ uint32_t* own = reinterpret_cast<__gm__ uint32_t*>(GetUserWorkspace(workspace)) + GetBlockIdx() * 128;\n"
                         "  own[0] = 77;\n  if (own[0] == 77) op.Process();\n"),
        ),
    },
    ("foreach_mul_scalar", _LIST): {
        "a comparison of halves": (
            _k("      Muls(xFloat, xFloat, scalar, count);\n", "      if (xLocal.GetValue(0) == static_cast<T>(1.0f)) { Adds(xFloat, xFloat, 0.0f, count); }\n      Muls(xFloat, xFloat, scalar, count);\n"),
        ),
        "by a scalar of 1 it is a copy": (
            _k("      Muls(xFloat, xFloat, scalar, count);\n", "      if (scalar != 1.0f) { Muls(xFloat, xFloat, scalar, count); }\n"),
        ),
    },
    ("moe_gather_rows", _GATHER_IN): {
        "clamped in 32 bits": (_k(_CLAMP, "const int32_t row32 = static_cast<int32_t>(index);\n    const int32_t end = static_cast<int32_t>(last);\n    return row32 <= 0 ? 0 : row32 >= end ? end : row32;"),),
    },
    ("rope", _ROPE_IN): {
        "products doubled and halved": (
            _k("      Sub(y[first], y[first], product1, halfDim);\n",
               f"      Muls(product1, product1, 2.0f, halfDim);{_V} Muls(product1, product1, 0.5f, halfDim);{_V}\n      Sub(y[first], y[first], product1, halfDim);\n"),
        ),
    },
}  # fmt: skip


def right_ideas() -> Iterator[Fault]:
    for (operator, inputs), table in _RIGHT.items():
        for name, edits in table.items():
            yield Fault("right", name, operator, inputs, edits)
