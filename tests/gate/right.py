# ruff: noqa: E501  (lines of C++ are as long as they are)
"""Right variants of the registry's operators: what a search proposes and what a person would write.

``RETILED`` changes numbers of tiling programs, ``REWRITTEN`` kernels by hand (each with another rounding, or order of
sums, that is as good); the motifs' rewrites of every kernel, in both directions, come on top.
"""

from __future__ import annotations

from collections.abc import Iterator

from ascendopt_tune.nouns.operator import Operator, Pair
from ascendopt_tune.search.kernel.motifs import MOTIFS
from ascendopt_tune.search.kernel.reading.kernel_program import KernelProgram

# Operator -> constants of its tiling program and other values they may have.
RETILED: dict[str, dict[str, tuple[str, ...]]] = {
    "add": {"TILE_LENGTH = 2048": ("32", "128", "512", "1024", "4096"), "BUFFER_NUM = 2": ("1",)},
    "dynamic_quant": {"TILE_LENGTH = 4096": ("128", "256", "1024", "2048", "8192"), "BUFFER_NUM = 2": ("1",)},
    "foreach_mul_scalar": {"UB_RESERVED = 4096": ("8192", "65536", "131072"), "BUFFER_NUM = 2": ("1",)},
    "layer_norm": {"UB_RESERVED = 1024": ("2048", "65536"), "BUFFER_NUM = 2": ("1",)},
    "masked_fill": {"TILE_LENGTH = 4096": ("128", "256", "1024", "2048"), "BUFFER_NUM = 2": ("1",)},
    "moe_gather_rows": {"TILE_BYTES = 16 * 1024": ("64", "128", "1024", "8 * 1024", "32 * 1024"),
                        "BUFFER_NUM = 2": ("1",)},
    "reduce_sum_last": {"TILE_LENGTH = 4096": ("64", "128", "256", "1024"), "ROWS_PER_LOOP = 128": ("3", "8", "64"),
                        "BUFFER_NUM = 2": ("1",)},
    "rms_norm": {"SPLIT_TILE_COLS = 2048": ("64", "256", "1024", "3072"), "MAX_ROWS_PER_LOOP = 4095": ("1", "2", "7"),
                 "BUFFER_NUM = 2": ("1",)},
    "rope": {"TILE_LENGTH = 4096": ("512", "1024", "2048"), "BUFFER_NUM = 2": ("1",)},
    "silu": {"UB_RESERVED = 8 * 1024": ("16 * 1024", "64 * 1024", "128 * 1024"), "BUFFER_NUM = 2": ("1",)},
    "softmax": {"TILE_LENGTH = 4096": ("128", "256", "1024", "2048", "6144"), "BUFFER_NUM = 2": ("1",)},
    "quant_matmul": {"BASE_M = 128": ("16", "64"), "BASE_N = 256": ("32", "128"), "BASE_K = 128": ("32", "64"),
                     "STEP_K = 4": ("1", "2"), "L1_BUFFERS = 2": ("1",), "L0_BUFFERS = 2": ("1",)},
    "matmul_gelu": {"BASE_M = 128": ("16", "64"), "BASE_N = 128": ("32", "64")},
    "grouped_matmul": {"BASE_M = 128": ("16", "64"), "BASE_N = 256": ("32", "128"), "BASE_K = 64": ("16", "32"),
                       "STEP_K = 4": ("1", "2"), "L1_BUFFERS = 2": ("1",), "L0_BUFFERS = 2": ("1",)},
    "flash_attention": {"BLOCK_Q = 128": ("32", "64")},  # of BLOCK_K see docs/gate.md, what is known
    "swiglu": {"TILE_LENGTH = 2048": ("64", "256", "1024", "3072"), "MAX_ROWS_PER_LOOP = 4095": ("1", "3"),
               "BUFFER_NUM = 2": ("1",)},
}  # fmt: skip

_CORES = "platform.GetCoreNumAiv()"
_CAPPED = (f"{_CORES} / 2", f"({_CORES} > 7 ? 7 : {_CORES})", f"({_CORES} > 1 ? 1 : {_CORES})", f"{_CORES} - 1")

_WHOLE = "const float maximum = Maximum(rowLength);"
_RECIPROCAL_Y = """      Muls(rowFloat, rowFloat, factor, count);
      PipeBarrier<PIPE_V>();
      Cast(dst, rowFloat, RoundMode::CAST_RINT, count);"""
_RSTD = "const float rstd = 1.0f / sqrt(variance + epsilon);"
_SILU_DIV = "      Div(xFloat, xFloat, denominator, count);"
REWRITTEN: dict[str, dict[str, tuple[tuple[str, str], ...]]] = {
    "softmax": {
        "maximum of halves": ((_WHOLE, """float maximum = Maximum(rowLength / 2);
        LocalTensor<float> rest = rowFloat;
        for (uint32_t j = rowLength / 2 / 8 * 8; j < rowLength; j += 8) {
          ReduceMax(result, rowFloat[j], work, rowLength - j < 8 ? rowLength - j : 8, false);
          const float other = FirstResult();
          maximum = other > maximum ? other : maximum;
        }"""),),
        "an upper bound for the maximum": ((_WHOLE, "const float maximum = Maximum(rowLength) + 0.5f;"),),
        "division by the sum": (
            ("FromFloat(yLocal[i * tileCols], 1.0f / sum, rowLength);", "FromFloat(yLocal[i * tileCols], sum, rowLength);"),
            ("""      Muls(rowFloat, rowFloat, factor, count);
      PipeBarrier<PIPE_V>();
      Cast(dst""", """      const float inverse = 1.0f / factor;
      Muls(rowFloat, rowFloat, inverse, count);
      PipeBarrier<PIPE_V>();
      Cast(dst"""),
            ("FromFloat(yLocal, 1.0f / sum, TileCols(col));", "FromFloat(yLocal, sum, TileCols(col));"),
            ("      Muls(dst, rowFloat, factor, count);", "      Muls(dst, rowFloat, 1.0f / factor, count);"),
        ),
        "the sum in pieces": (("const float sum = Sum(rowLength);", """float sum = 0.0f;
        for (uint32_t j = 0; j < rowLength; j += 64) {
          ReduceSum(result, rowFloat[j], work, rowLength - j < 64 ? rowLength - j : 64);
          sum += FirstResult();
        }"""),),
        "the sum backwards": (("const float sum = Sum(rowLength);", """float sum = 0.0f;
        for (int32_t j = (rowLength - 1) / 64 * 64; j >= 0; j -= 64) {
          ReduceSum(result, rowFloat[j], work, rowLength - j < 64 ? rowLength - j : 64);
          sum = FirstResult() + sum;
        }"""),),
    },
    "rms_norm": {
        "root of the reciprocal": (("return 1.0f / sum.GetValue(0);", "const float root = sum.GetValue(0); return 1.0f / root;"),),
        "reciprocal root by the scalar unit": (
            ("    Sqrt(sum, sum, 1);\n", ""),
            ("return 1.0f / sum.GetValue(0);", "return 1.0f / sqrt(sum.GetValue(0));"),
        ),
        "gamma first": (
            ("""    Muls(xFloat, xFloat, rstd, count);
    PipeBarrier<PIPE_V>();
    if constexpr (std::is_same<T, float>::value) {
      Mul(y, xFloat, gammaFloat, count);""", """    Mul(xFloat, xFloat, gammaFloat, count);
    PipeBarrier<PIPE_V>();
    if constexpr (std::is_same<T, float>::value) {
      Muls(y, xFloat, rstd, count);"""),
            ("      Mul(xFloat, xFloat, gammaFloat, count);\n      PipeBarrier<PIPE_V>();\n      Cast(y",
             "      Muls(xFloat, xFloat, rstd, count);\n      PipeBarrier<PIPE_V>();\n      Cast(y"),
        ),
        "division by the count": (("    Muls(sum, sum, averageFactor, 1);",
                                   "    Muls(sum, sum, averageFactor * 4.0f, 1);\n    PipeBarrier<PIPE_V>();\n    Muls(sum, sum, 0.25f, 1);"),),
        "the squares scaled before they are added": (
            ("        Mul(square, xFloat, xFloat, rowLength);\n        PipeBarrier<PIPE_V>();",
             "        Mul(square, xFloat, xFloat, rowLength);\n        PipeBarrier<PIPE_V>();\n        Muls(square, square, 0.5f, rowLength);\n        PipeBarrier<PIPE_V>();\n        Adds(square, square, 0.0f, rowLength);\n        PipeBarrier<PIPE_V>();\n        Muls(square, square, 2.0f, rowLength);\n        PipeBarrier<PIPE_V>();"),
        ),
    },
    "layer_norm": {
        "reciprocal root": ((_RSTD, "const float root = sqrt(variance + epsilon);\n    const float rstd = 1.0f / root;"),),
        "mean by division": (("const float mean = Sum(centered) * averageFactor;", "const float mean = Sum(centered) / static_cast<float>(rowLength);"),),
        "variance by division": (("const float variance = Sum(square) * averageFactor;", "const float variance = Sum(square) / static_cast<float>(rowLength);"),),
        "gamma times the root first": (("    Muls(centered, centered, rstd, rowLength);\n    Mul(centered, centered, gammaFloat, rowLength);",
                                        "    Mul(centered, centered, gammaFloat, rowLength);\n    Muls(centered, centered, rstd, rowLength);"),),
        "the mean in two steps": (("    Adds(centered, centered, -mean, rowLength);", "    Adds(centered, centered, -mean, rowLength);\n    const float rest = Sum(centered) * averageFactor;\n    Adds(centered, centered, -rest, rowLength);"),),
    },
    "dynamic_quant": {
        "maximum and minimum": (("      Abs(rowFloat, rowFloat, rowLength);\n      PipeBarrier<PIPE_V>();\n",
                                 "      Mul(rowFloat, rowFloat, rowFloat, rowLength);\n      PipeBarrier<PIPE_V>();\n      Cast(rowFloat, xLocal[i * alignedLength], RoundMode::CAST_NONE, rowLength);\n      PipeBarrier<PIPE_V>();\n      Abs(rowFloat, rowFloat, rowLength);\n      PipeBarrier<PIPE_V>();\n"),),
        "the scale by division": (("INT8_MAXIMUM / maximum", "1.0f / (maximum * (1.0f / INT8_MAXIMUM))"),),
    },
    "silu": {
        "times the reciprocal": ((_SILU_DIV, "      Reciprocal(denominator, denominator, count);\n      Mul(xFloat, xFloat, denominator, count);"),),
        "the sign by subtraction": (("    Muls(denominator, x, -1.0f, count);", "    Duplicate(denominator, 0.0f, count);\n    Sub(denominator, denominator, x, count);"),),
        "one added first": (("    Adds(denominator, denominator, 1.0f, count);", "    Adds(denominator, denominator, 0.5f, count);\n    Adds(denominator, denominator, 0.5f, count);"),),
    },
    "swiglu": {
        "gate times the other first": (("    Div(silu, a, silu, count);", "    Reciprocal(silu, silu, count);\n    PipeBarrier<PIPE_V>();\n    Mul(silu, silu, a, count);"),),
        "factors in the other order": (("Mul(b, silu, b, count);", "Mul(b, b, silu, count);"),),
    },
    "rope": {
        "factors in the other order": (("      Mul(product1, x[second], sin, halfDim);", "      Mul(product1, sin, x[second], halfDim);"),),
        "the negative added": (("      Sub(y[first], y[first], product1, halfDim);", "      Muls(product1, product1, -1.0f, halfDim);\n      PipeBarrier<PIPE_V>();\n      Add(y[first], y[first], product1, halfDim);"),),
    },
    "reduce_sum_last": {
        "added the other way round": (("      Add(lanes, lanes, xLocal, cols);", "      Add(lanes, xLocal, lanes, cols);"),),
        "summed in pieces": (("    ReduceSum(sums[index], lanes, work, lanesUsed);", "    float total = 0.0f;\n    for (uint32_t j = 0; j < lanesUsed; j += 64) {\n      ReduceSum(work, lanes[j], work[64], lanesUsed - j < 64 ? lanesUsed - j : 64);\n      total += work.GetValue(0);\n    }\n    sums.SetValue(index, total);"),),
    },
    "add": {"the other way round": (("Add(zLocal, xLocal, yLocal, count);", "Add(zLocal, yLocal, xLocal, count);"),)},
    "foreach_mul_scalar": {},
    "masked_fill": {},
    "moe_gather_rows": {
        "clamped by minimum and maximum": (("return index < 0 ? 0 : index > last ? last : index;",
                                            "const int64_t low = index < last ? index : last;\n    return low > 0 ? low : 0;"),),
    },
}  # fmt: skip


def variants(operator: Operator, tiling_key: int | None = None) -> Iterator[tuple[str, Pair]]:
    """Names and pairs. A motif's rewrite may lack an order of pipes, which other checks refuse; its values are right."""
    name, base = operator.name, operator.baseline
    host = f"op_host/{name}.cpp"
    for old, values in RETILED.get(name, {}).items():
        assert base.tiling[host].count(old) == 1, (name, old)
        for value in values:
            new = f"{old.partition(' = ')[0]} = {value}"
            yield f"retiled: {new}", base.with_tiling(host, base.tiling[host].replace(old, new))
    tiling = base.tiling.get(host, "")
    if tiling.count(_CORES) == 1 and f"{_CORES} /" not in tiling:  # half of one core is none
        for cores in _CAPPED:
            yield f"retiled: {cores}", base.with_tiling(host, base.tiling[host].replace(_CORES, cores))
    for what, edits in REWRITTEN.get(name, {}).items():
        text = base.kernel[operator.kernel_main]
        for old, new in edits:
            assert text.count(old) == 1, (name, what, old, text.count(old))
            text = text.replace(old, new)
        yield f"by hand: {what}", base.with_kernel(operator.kernel_main, text)
    program = KernelProgram(base.kernel, tiling=base.tiling, auto_sync=operator.auto_sync, tiling_key=tiling_key)
    for motif in MOTIFS:
        for direction in (motif.optimize, motif.rewind):
            for rewrite in direction(program):
                pair = Pair({**base.tiling, **rewrite.tiling(program)}, {**base.kernel, **rewrite.kernel(program)})
                yield f"motif: {direction.__name__} {motif.name} {rewrite.site} {rewrite.change}", pair
