# ruff: noqa: E501  (lines of C++ are as long as they are)
"""Right variants by the same hand: other tilings, orders, block shapes and other correct synchronization."""

from __future__ import annotations

from collections.abc import Iterator

from wrong_by_hand import Fault

_Edit = tuple[str, str, str]
_Table = dict[str, tuple[str, tuple[_Edit, ...], str]]


def _k(old: str, new: str) -> _Edit:
    return "kernel", old, new


def _h(old: str, new: str) -> _Edit:
    return "host", old, new


def _f(old: str, new: str) -> _Edit:
    return "fields", old, new


def _one(inputs: str, *edits: _Edit, attrs: str = "") -> tuple[str, tuple[_Edit, ...], str]:
    return inputs, edits, attrs


_MATMUL: _Table = {
    "L1 freed before it is loaded": _one("a=float16[300,1100] b=float16[1100,520]", _k("      LocalTensor<In> bTiles = b1.template DeQue<In>();\n", "      LocalTensor<In> bTiles = b1.template DeQue<In>();\n      a1.FreeTensor(aTiles);\n"), _k("      a1.FreeTensor(aTiles);\n      b1.FreeTensor(bTiles);\n    }", "      b1.FreeTensor(bTiles);\n    }")),
    "L0B freed before the product": _one("a=float16[300,1100] b=float16[1100,520]", _k("    a2.FreeTensor(aLocal);\n    b2.FreeTensor(bLocal);\n", "    a2.FreeTensor(aLocal);\n"), _k("    MmadParams params;\n", "    b2.FreeTensor(bLocal);\n    MmadParams params;\n")),
    "k from its end": _one("a=float16[300,1100] b=float16[1100,520]", _k("for (uint32_t k = 0; k < t.k; k += widthK) {\n      const uint32_t depth = Min(widthK, t.k - k);\n", "const uint32_t steps = (t.k + widthK - 1) / widthK;\n    for (uint32_t s = steps; s > 0; s--) {\n      const uint32_t k = (s - 1) * widthK;\n      const uint32_t depth = Min(widthK, t.k - k);\n"), _k("k + inner == 0", "s == steps && inner == 0")),
    "k from another place in every core": _one("a=float16[64,1100] b=float16[1100,1200]", _k("for (uint32_t k = 0; k < t.k; k += widthK) {\n      const uint32_t depth = Min(widthK, t.k - k);\n", "const uint32_t steps = (t.k + widthK - 1) / widthK;\n    for (uint32_t s = 0; s < steps; s++) {\n      const uint32_t k = (s + GetBlockIdx()) % steps * widthK;\n      const uint32_t depth = Min(widthK, t.k - k);\n"), _k("k + inner == 0", "s + inner == 0")),
    "blocks of n before those of m": _one("a=float16[300,1100] b=float16[1100,520]", _k("for (uint32_t n = firstN; n < endN; n += t.baseN) {\n      const uint32_t columns = Min(t.baseN, endN - n);", "for (uint32_t i = 0, many = (endN - firstN + t.baseN - 1) / t.baseN; i < many; i++) {\n      const uint32_t n = firstN + (many - 1 - i) * t.baseN;\n      const uint32_t columns = Min(t.baseN, endN - n);")),
    "small blocks": _one("a=float16[300,1100] b=float16[1100,520]", _h("BASE_M = 128", "BASE_M = 32"), _h("BASE_N = 256", "BASE_N = 48")),
    "deep": _one("a=float16[300,1100] b=float16[1100,520]", _h("BASE_K = 64", "BASE_K = 128"), _h("STEP_K = 4", "STEP_K = 1"), _h("L0_BUFFERS = 2", "L0_BUFFERS = 1")),
    "one buffer in L1": _one("a=float16[300,1100] b=float16[1100,520]", _h("L1_BUFFERS = 2", "L1_BUFFERS = 1")),
    "one buffer in L0": _one("a=float16[300,1100] b=float16[1100,520]", _h("L0_BUFFERS = 2", "L0_BUFFERS = 1")),
    "base k of 16": _one("a=float16[300,1100] b=float16[1100,520]", _h("BASE_K = 64", "BASE_K = 16"), _h("STEP_K = 4", "STEP_K = 3")),
    "tall blocks": _one("a=float16[300,1100] b=float16[1100,520]", _h("BASE_M = 128", "BASE_M = 256"), _h("BASE_N = 256", "BASE_N = 128"), _h("BASE_K = 64", "BASE_K = 32")),
    "one core": _one("a=float16[300,1100] b=float16[1100,520]", _h("platform.GetCoreNumAic();", "1;")),
    "cores without work": _one("a=float16[197,300] b=float16[300,77]", _h("context->SetBlockDim(CeilDiv(m, singleM) * CeilDiv(n, singleN));", "context->SetBlockDim(CeilDiv(m, singleM) * CeilDiv(n, singleN) + 3);")),
    "rows dealt evenly": _one("a=float16[300,300] b=float16[300,77]", _h("const uint32_t singleM = CeilDiv(mBlocks, alongM) * baseM;", "const uint32_t singleM = CeilDiv(m, coreNum);")),
    "one accumulator": _one("a=float16[300,1100] b=float16[1100,520]", _h("2ULL * baseM * baseN * sizeof(float) <= L0C_BYTES ? 2 : 1", "1")),
    "a barrier after each product": _one("a=float16[300,1100] b=float16[1100,520]", _k("    if (Tiles(rows) * Tiles(columns) < SUMS_IN_ORDER) {", "    if (true) {")),
    "a barrier of all pipes in each step": _one("a=float16[197,300] b=float16[300,77]", _k("      CopyIn(m, n, k, rows, columns, depth);\n", "      CopyIn(m, n, k, rows, columns, depth);\n      PipeBarrier<PIPE_ALL>();\n")),
    "unit flags": _one("a=float16[300,1100] b=float16[1100,520]", _k("    params.n = columns;", "    params.n = columns;\n    params.unitFlag = last ? 3 : 2;"), _k("    params.dstStride = t.n;", "    params.dstStride = t.n;\n    params.unitFlag = 3;"), _k("        Load(aTiles,", "        last = k + inner + length >= t.k;\n        Load(aTiles,"), _k("  uint32_t firstM, firstN, endM, endN;", "  uint32_t firstM, firstN, endM, endN;\n  bool last = false;")),
    "b before a": _one("a=float16[300,1100] b=float16[1100,520]", _k("    a2.EnQue(aLocal);\n    b2.EnQue(bLocal);", "    b2.EnQue(bLocal);\n    a2.EnQue(aLocal);")),
    "in steps of n when biased": _one("a=float16[64,512] b=float16[1024,512] bias=float16[1024]", _h("BASE_N = 256", "BASE_N = 96"), attrs="transpose_b=true"),
    "steps of a that are 0 don't count": _one("a=float16[197,300] b=float16[300,77]", _k("      CopyIn(m, n, k, rows, columns, depth);\n", "      bool zero = k > 0;\n      for (uint32_t r = 0; r < rows && zero; r++)\n        for (uint32_t i = 0; i < depth && zero; i++) zero = static_cast<float>(aGm.GetValue(static_cast<uint64_t>(m + r) * t.k + k + i)) == 0.0f;\n      if (zero) continue;\n      CopyIn(m, n, k, rows, columns, depth);\n")),
    "fields of 16 bits": _one("a=float16[300,1100] b=float16[1100,520]", _f("TILING_DATA_FIELD_DEF(uint32_t, baseN);", "TILING_DATA_FIELD_DEF(uint16_t, baseN);"), _f("TILING_DATA_FIELD_DEF(uint32_t, m);", "TILING_DATA_FIELD_DEF(uint16_t, m);")),
    "offsets of 32 bits": _one("a=float16[300,1100] b=float16[1100,520]", _k("DataCopy(aTiles, aGm[static_cast<uint64_t>(m) * t.k + k], params);", "DataCopy(aTiles, aGm[m * t.k + k], params);")),
    "k baked in": _one("a=float16[197,300] b=float16[300,77]", _k("      CopyIn(m, n, k, rows, columns, depth);\n", "      t.k = 300;\n      CopyIn(m, n, k, rows, columns, depth);\n")),
}  # fmt: skip

_QUANT_MATMUL: _Table = {
    "one scale where all are alike": _one("a=int8[197,300] b=int8[77,300] scale=int64[77]", _k("    FixpipeParamsV220 params;\n", "    bool alike = true;\n    for (uint32_t i = 1; i < columns; i++) alike = alike && scaleGm.GetValue(2ULL * n) == scaleGm.GetValue(2ULL * (n + i));\n    FixpipeParamsV220 params;\n"), _k("    params.quantPre = QuantMode_t::VDEQF16;\n    Fixpipe<half, int32_t, CFG_ROW_MAJOR>(cGm[static_cast<uint64_t>(m) * t.n + n], sums, words.Get<uint64_t>(), params);\n", "    if (alike) {\n      params.quantPre = QuantMode_t::DEQF16;\n      params.deqScalar = static_cast<uint32_t>(scaleGm.GetValue(2ULL * n));\n      Fixpipe<half, int32_t, CFG_ROW_MAJOR>(cGm[static_cast<uint64_t>(m) * t.n + n], sums, params);\n      PipeBarrier<PIPE_FIX>();\n      co1.FreeTensor(sums);\n      return;\n    }\n    params.quantPre = QuantMode_t::VDEQF16;\n    Fixpipe<half, int32_t, CFG_ROW_MAJOR>(cGm[static_cast<uint64_t>(m) * t.n + n], sums, words.Get<uint64_t>(), params);\n")),
    "k in whole tiles, which are filled with zeros": _one("a=int8[197,300] b=int8[77,300] scale=int64[77]", _k("params.k = length;", "params.k = CeilDiv(length, DEPTH) * DEPTH;")),
    "deep steps": _one("a=int8[150,1100] b=int8[1300,1100] scale=int64[1300]", _h("STEP_K = 4", "STEP_K = 2"), _h("BASE_K = 128", "BASE_K = 64")),
    "blocks of 64 columns": _one("a=int8[150,1100] b=int8[1300,1100] scale=int64[1300]", _h("BASE_N = 256", "BASE_N = 64")),
    "rows dealt evenly": _one("a=int8[197,300] b=int8[77,300] scale=int64[77]", _h("const uint32_t singleM = CeilDiv(mBlocks, alongM) * baseM;", "const uint32_t singleM = CeilDiv(m, 7u);")),
    "k from its end": _one("a=int8[150,1100] b=int8[1300,1100] scale=int64[1300]", _k("for (uint32_t k = 0; k < t.k; k += widthK) {\n", "const uint32_t steps = CeilDiv(t.k, widthK);\n    for (uint32_t s = 0; s < steps; s++) {\n      const uint32_t k = (steps - 1 - s) * widthK;\n"), _k("k + inner == 0", "s + inner == 0")),
}  # fmt: skip

_MATMUL_GELU: _Table = {
    "one block dim for each vector core": _one("a=float16[300,100] b=float16[100,77]", _h("(tiling.cube.get_usedCoreNum() + VECTORS - 1) / VECTORS", "2 * platform.GetCoreNumAic()")),
    "blocks counted along n": _one("a=float16[300,100] b=float16[100,277]", _k("const uint32_t down = (rows + t.baseM - 1) / t.baseM;", "const uint32_t down = (columns + t.baseN - 1) / t.baseN;"), _h("cube.SetDim(coreNum);", "cube.SetDim(1);")),
    "exponent at most 88": _one("a=float16[197,300] b=float16[300,77]", _k("    Exp(d, d, count);\n", "    Mins(d, d, 88.0f, count);\n    PipeBarrier<PIPE_V>();\n    Exp(d, d, count);\n")),
    "base k of 64": _one("a=float16[197,300] b=float16[300,77]", _h("BASE_K = -1;", "BASE_K = 64;")),
    "blocks of 64 by 96": _one("a=float16[197,300] b=float16[300,77]", _h("BASE_M = 128", "BASE_M = 64"), _h("BASE_N = 128", "BASE_N = 96")),
    "four vector cores": _one("a=float16[197,300] b=float16[300,77]", _h("cube.SetDim(coreNum);", "cube.SetDim(4);")),
    "the square times x first": _one("a=float16[197,300] b=float16[300,77]", _k("    Muls(d, d, CUBED, count);\n    PipeBarrier<PIPE_V>();\n    Adds(d, d, 1.0f, count);\n    PipeBarrier<PIPE_V>();\n    Mul(d, d, x, count);\n    PipeBarrier<PIPE_V>();\n    Muls(d, d, FACTOR, count);\n", "    Muls(d, d, CUBED * FACTOR, count);\n    PipeBarrier<PIPE_V>();\n    Adds(d, d, FACTOR, count);\n    PipeBarrier<PIPE_V>();\n    Mul(d, d, x, count);\n")),
    "results double buffered": _one("a=float16[300,100] b=float16[100,277]", _k("pipe->InitBuffer(results, 1,", "pipe->InitBuffer(results, 2,"), _k("TQue<TPosition::VECOUT, 1> results;", "TQue<TPosition::VECOUT, 2> results;"), _h("BASE_M = 128", "BASE_M = 64")),
    "sums double buffered": _one("a=float16[300,100] b=float16[100,277]", _k("pipe->InitBuffer(sums, 1,", "pipe->InitBuffer(sums, 2,"), _k("TQue<TPosition::VECIN, 1> sums;", "TQue<TPosition::VECIN, 2> sums;"), _h("BASE_M = 128", "BASE_M = 64")),
    "half as much space of L1": _one("a=float16[197,300] b=float16[300,77]", _h("cube.SetBufferSpace(-1, -1, -1);", "cube.SetBufferSpace(256 * 1024, -1, -1);")),
}  # fmt: skip

_GROUPED_MATMUL: _Table = {
    "blocks as if all groups were full": _one("a=bfloat16[300,100] b=bfloat16[3,100,300] counts=int64[3]", _k("      first += rows;\n", "      first += rows;\n      block = group == 1 ? block - 1 : block;\n")),
    "counts by their lower words": _one("a=float16[97,300] b=float16[5,300,77] counts=int64[5]", _k("countsGm.SetGlobalBuffer((__gm__ int64_t*)counts, t.groups);", "countsGm.SetGlobalBuffer((__gm__ int32_t*)counts, 2 * t.groups);"), _k("GlobalTensor<int64_t> countsGm;", "GlobalTensor<int32_t> countsGm;"), _k("countsGm.GetValue(group)", "countsGm.GetValue(2 * group)")),
    "goes through groups without rows": _one("a=float16[97,300] b=float16[5,300,77] counts=int64[5]", _k("group < t.groups && first < t.m; group++", "group < t.groups; group++")),
    "all cores": _one("a=float16[97,300] b=float16[5,300,77] counts=int64[5]", _h("context->SetBlockDim(std::min(coreNum, mostBlocks));", "context->SetBlockDim(coreNum);")),
    "one core": _one("a=float16[97,300] b=float16[5,300,77] counts=int64[5]", _h("context->SetBlockDim(std::min(coreNum, mostBlocks));", "context->SetBlockDim(1);")),
    "blocks of 16 rows": _one("a=float16[97,300] b=float16[5,300,77] counts=int64[5]", _h("BASE_M = 128", "BASE_M = 16")),
    "blocks dealt in pairs": _one("a=bfloat16[300,100] b=bfloat16[3,100,300] counts=int64[3]", _h("BASE_M = 128", "BASE_M = 32"), _k("block % GetBlockNum() == GetBlockIdx()", "block / 2 % GetBlockNum() == GetBlockIdx()")),
    "groups from the last on": _one("a=float16[97,300] b=float16[5,300,77] counts=int64[5]", _k("    uint32_t first = 0, block = 0;\n    for (uint32_t group = 0; group < t.groups && first < t.m; group++) {\n      const uint32_t rows = Rows(group, first);\n", "    uint32_t block = 0;\n    for (uint32_t left = t.groups; left > 0; left--) {\n      const uint32_t group = left - 1;\n      uint32_t first = 0;\n      for (uint32_t g = 0; g < group; g++) first += Rows(g, first);\n      const uint32_t rows = Rows(group, first);\n"), _k("      first += rows;\n", "")),
    "a group in one tile by one barrier": _one("a=float16[97,300] b=float16[5,300,77] counts=int64[5]", _k("    if (Tiles(rows) * Tiles(columns) < SUMS_IN_ORDER) {", "    if (length < t.baseK || Tiles(rows) * Tiles(columns) < SUMS_IN_ORDER) {")),
}  # fmt: skip

_FLASH_ATTENTION: _Table = {
    "scores two steps ahead in three slots": _one("q=float16[2,128,64] k=float16[2,384,64] v=float16[2,384,64]", _k("      Score(q, 0, step);\n", "      Score(q, 0, step);\n      if (this->t.blockK < this->seen) Score(q, this->t.blockK, step + 1);\n"), _k("        if (key + this->t.blockK < this->seen) {\n          Score(q, key + this->t.blockK, step + 1);\n        }\n", "        if (key + 2 * this->t.blockK < this->seen) {\n          Score(q, key + 2 * this->t.blockK, step + 2);\n        }\n"), _k("SLOTS = 2; ", "SLOTS = 3; "), _h("SLOTS = 2; ", "SLOTS = 3; "), attrs="scale=0.15811388300841897 causal=false"),
    "products shrink only where any row's do": _one("q=float16[4,40,128] k=float16[4,512,128] v=float16[4,512,128]", _k("    LocalTensor<float> sum = sumBuf.Get<float>(), block = blockBuf.Get<float>();\n    Brcb(block, factorBuf", "    LocalTensor<float> sum = sumBuf.Get<float>(), block = blockBuf.Get<float>();\n    SetFlag<HardEvent::V_S>(EVENT_ID5);\n    WaitFlag<HardEvent::V_S>(EVENT_ID5);\n    bool same = true;\n    for (uint32_t i = 0; i < mine; i++) same = same && factorBuf.Get<float>().GetValue(i) == 1.0f;\n    Brcb(block, factorBuf"), _k("      Mul(sum[column], sum[column], block, wide, mine, {1, 1, 0, pitch, pitch, 1});\n", "      if (!same) Mul(sum[column], sum[column], block, wide, mine, {1, 1, 0, pitch, pitch, 1});\n"), attrs="scale=0.15811388300841897 causal=false"),
    "v copied before the wait": _one("q=float16[2,128,64] k=float16[2,384,64] v=float16[2,384,64]", _k("    CopyIn(p, this->weights[this->Slot(step)], this->rows, length, this->t.blockK);\n    CopyIn(v, vGm[RowOf(key)], length, this->t.depth, this->t.depth);\n", "    CopyIn(v, vGm[RowOf(key)], length, this->t.depth, this->t.depth);\n    CrossCoreWaitFlag(WEIGHTS);\n    CopyIn(p, this->weights[this->Slot(step)], this->rows, length, this->t.blockK);\n"), _k("        CrossCoreWaitFlag(WEIGHTS);\n        Multiply", "        Multiply"), attrs="scale=0.15811388300841897 causal=false"),
    "whole blocks of keys": _one("q=float16[2,177,40] k=float16[2,177,40] v=float16[2,177,40]", _k("t.keys - t.queries + first + rows : t.keys;", "Min(t.keys, Align(t.keys - t.queries + first + rows, t.blockK)) : t.keys;"), attrs="scale=0.15811388300841897 causal=true"),
    "scores after the products": _one("q=float16[2,177,40] k=float16[2,333,40] v=float16[2,333,40]", _k("        if (key + this->t.blockK < this->seen) {\n          Score(q, key + this->t.blockK, step + 1);\n        }\n        CrossCoreWaitFlag(WEIGHTS);\n        Multiply(key, step);\n", "        CrossCoreWaitFlag(WEIGHTS);\n        Multiply(key, step);\n        if (key + this->t.blockK < this->seen) {\n          Score(q, key + this->t.blockK, step + 1);\n        }\n"), attrs="scale=0.15811388300841897 causal=false"),
    "slots counted from each block of queries": _one("q=float16[50,16,16] k=float16[50,150,16] v=float16[50,150,16]", _k("      Score(q, 0, step);\n", "      step = 0;\n      Score(q, 0, step);\n"), _k("      Begin();\n", "      Begin();\n      step = 0;\n"), attrs="scale=0.15811388300841897 causal=false"),
    "blocks of 64 keys": _one("q=float16[2,177,40] k=float16[2,333,40] v=float16[2,333,40]", _h("BLOCK_K = 128", "BLOCK_K = 64"), attrs="scale=0.15811388300841897 causal=false"),
    "all groups": _one("q=bfloat16[3,77,40] k=bfloat16[3,133,40] v=bfloat16[3,133,40]", _h("const uint32_t groups = std::min(coreNum, heads * CeilDiv(queries, blockQ));", "const uint32_t groups = coreNum;"), attrs="scale=0.15811388300841897 causal=false"),
    "one group": _one("q=bfloat16[3,77,40] k=bfloat16[3,133,40] v=bfloat16[3,133,40]", _h("const uint32_t groups = std::min(coreNum, heads * CeilDiv(queries, blockQ));", "const uint32_t groups = 1;"), attrs="scale=0.15811388300841897 causal=false"),
    "heads from the last on": _one("q=bfloat16[3,77,40] k=bfloat16[3,133,40] v=bfloat16[3,133,40]", _k("    head = item / blocks;", "    head = t.heads - 1 - item / blocks;"), attrs="scale=0.15811388300841897 causal=false"),
    "total of the rounded weights": _one("q=float16[2,177,40] k=float16[2,333,40] v=float16[2,333,40]", _k("    Total(s);\n    LocalTensor<T> w = weightsOut.template AllocTensor<T>();\n    Cast(w, s, RoundMode::CAST_RINT, mine * width);\n", "    LocalTensor<T> w = weightsOut.template AllocTensor<T>();\n    Cast(w, s, RoundMode::CAST_RINT, mine * width);\n    PipeBarrier<PIPE_V>();\n    Cast(s, w, RoundMode::CAST_NONE, mine * width);\n    PipeBarrier<PIPE_V>();\n    Total(s);\n"), attrs="scale=0.15811388300841897 causal=false"),
    "the larger workspace": _one("q=bfloat16[3,77,40] k=bfloat16[3,133,40] v=bfloat16[3,133,40]", _h("groups * (scores + products);", "2 * groups * (scores + products);"), attrs="scale=0.15811388300841897 causal=false"),
    "sums not cleared behind the first block": _one("q=float16[50,16,16] k=float16[50,150,16] v=float16[50,150,16]", _k("      Begin();\n", "      if (item == this->group) {\n        Begin();\n      } else {\n        Duplicate(maximumBuf.Get<float>(), MASKED, Align(share, REPEAT));\n        Duplicate(totalBuf.Get<float>(), 0.0f, Align(share, REPEAT));\n        PipeBarrier<PIPE_V>();\n      }\n"), attrs="scale=0.15811388300841897 causal=false"),
    "factor by the reciprocal of its opposite": _one("q=float16[2,177,40] k=float16[2,333,40] v=float16[2,333,40]", _k("    Sub(factor, old, now, mine);\n", "    Sub(factor, now, old, mine);\n    PipeBarrier<PIPE_V>();\n    Muls(factor, factor, -1.0f, mine);\n"), attrs="scale=0.15811388300841897 causal=false"),
    "scores of 10 steps flagged ahead": _one("q=float16[1,16,64] k=float16[1,1280,64] v=float16[1,1280,64]", _k("      Score(q, 0, step);\n", "      for (uint32_t key = 0, s = step; key < this->seen; key += this->t.blockK, s++) Score(q, key, s);\n"), _k("        if (key + this->t.blockK < this->seen) {\n          Score(q, key + this->t.blockK, step + 1);\n        }\n", ""), _k("SLOTS = 2; ", "SLOTS = 32; "), _h("SLOTS = 2; ", "SLOTS = 32; "), attrs="scale=0.15811388300841897 causal=false"),
    "one vector core with all queries": _one("q=float16[2,177,40] k=float16[2,333,40] v=float16[2,333,40]", _k("KERNEL_TYPE_MIX_AIC_1_2", "KERNEL_TYPE_MIX_AIC_1_1"), _k("VECTORS = 2;", "VECTORS = 1;"), _h("BLOCK_Q = 128", "BLOCK_Q = 64"), attrs="scale=0.15811388300841897 causal=false"),
}  # fmt: skip

_FOREACH_MUL_SCALAR: _Table = {
    "a copy where the scalar is 1": _one("x.0=float16[3,33] x.1=float16[1] x.2=float16[40,50] scalar=float32[1]", _k("      Muls(xFloat, xFloat, scalar, count);\n", "      if (scalar != 1.0f) Muls(xFloat, xFloat, scalar, count);\n")),
}  # fmt: skip

_TABLES = {
    "matmul": _MATMUL,
    "quant_matmul": _QUANT_MATMUL,
    "matmul_gelu": _MATMUL_GELU,
    "grouped_matmul": _GROUPED_MATMUL,
    "flash_attention": _FLASH_ATTENTION,
    "foreach_mul_scalar": _FOREACH_MUL_SCALAR,
}


def right_from_outside() -> Iterator[Fault]:
    for operator, table in _TABLES.items():
        for name, (inputs, edits, attrs) in table.items():
            yield Fault("outside", name, operator, inputs, edits, attrs)
