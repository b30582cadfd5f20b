# ruff: noqa: E501  (lines of C++ are as long as they are)
"""Wrong variants of operators on cube cores and on both kinds together, and right ones of as unusual ideas."""

from __future__ import annotations

from collections.abc import Iterator

from wrong_by_hand import Fault

_Edit = tuple[str, str, str]
_Table = dict[str, tuple[str, tuple[_Edit, ...]]]


def _k(old: str, new: str) -> _Edit:
    return "kernel", old, new


def _h(old: str, new: str) -> _Edit:
    return "host", old, new


def _one(inputs: str, *edits: _Edit) -> tuple[str, tuple[_Edit, ...]]:
    return inputs, edits


# ---- products of int8 ----
_Q = "a=int8[197,300] b=int8[77,300] scale=int64[77]"
_Q_MMAD = "    Mmad(sums, aLocal, bLocal, params);"
_QUANT: _Table = {
    "k without its last element": _one(_Q, _k("params.k = length;", "params.k = length - (length % DEPTH != 0);")),
    "k without its last base block": _one("a=int8[97,1100] b=int8[77,1100] scale=int64[77]", _k("for (uint32_t k = 0; k < t.k; k += widthK) {", "for (uint32_t k = 0; k + t.baseK < t.k; k += widthK) {")),
    "sums begin with what was there": _one(_Q, _k("params.cmatrixInitVal = first;", "params.cmatrixInitVal = false;")),
    "sums begin anew in every block of k": _one(_Q, _k("params.cmatrixInitVal = first;", "params.cmatrixInitVal = true;")),
    "the scale of the first column for all": _one(_Q, _k("params.quantPre = QuantMode_t::VDEQF16;", "params.quantPre = QuantMode_t::DEQF16; params.deqScalar = static_cast<uint64_t>(static_cast<uint32_t>(scaleGm.GetValue(0)));")),
    "scales of the block before": _one("a=int8[197,300] b=int8[513,300] scale=int64[513]", _k("scaleGm[2ULL * n], params);", "scaleGm[2ULL * (n >= t.baseN ? n - t.baseN : n)], params);")),
    "the last scale left out": _one(_Q, _k("params.dValue = 2 * columns;", "params.dValue = 2 * (columns - 1);")),
    "the last row of a block left out": _one(_Q, _k("params.mSize = rows;", "params.mSize = rows - 1;")),
    "the last column left out": _one(_Q, _k("params.nSize = columns;", "params.nSize = columns - (n + columns == t.n);")),
    "rows shifted by one": _one(_Q, _k("aGm[static_cast<uint64_t>(m) * t.k + k], params);", "aGm[static_cast<uint64_t>(m > 0 ? m - 1 : 0) * t.k + k], params);")),
    "b of the first block for all": _one("a=int8[16,300] b=int8[513,300] scale=int64[513]", _k("bGm[static_cast<uint64_t>(n) * t.k + k], params);", "bGm[static_cast<uint64_t>(n - firstN) * t.k + k], params);")),
    "no order of sums": _one("a=int8[16,300] b=int8[77,300] scale=int64[77]", _k("if (CeilDiv(rows, SIDE) * CeilDiv(columns, SIDE) < SUMS_IN_ORDER) {", "if (CeilDiv(rows, SIDE) * CeilDiv(columns, SIDE) < 0) {")),
    "a core that does nothing": _one(_Q, _k("  op.Process();", "  if (GetBlockIdx() != 1) op.Process();")),
    "negative products only": _one(_Q, _k("params.quantPre = QuantMode_t::VDEQF16;", "params.quantPre = QuantMode_t::VDEQF16; params.reluEn = true;")),
}  # fmt: skip

# ---- a product and gelu ----
_G = "a=float16[197,300] b=float16[300,77]"
_GELU: _Table = {
    "without the cube": _one(_G, _k("    Muls(d, d, CUBED, count);", "    Muls(d, d, 0.0f, count);")),
    "another constant": _one(_G, _k("CUBED = 0.044715f", "CUBED = 0.0447f"), _k("FACTOR = -1.5957691216f", "FACTOR = -1.59f")),
    "x sigmoid(1.702 x)": _one(_G, _k("    Muls(d, d, CUBED, count);", "    Muls(d, d, 0.0f, count);"), _k("FACTOR = -1.5957691216f", "FACTOR = -1.702f")),
    "relu": _one(_G, _k("    Div(x, x, d, count);", "    Maxs(x, x, 0.0f, count);")),
    "the product rounded to half": _one(_G, _k("    Mul(d, x, x, count);", "    Cast(y, x, RoundMode::CAST_RINT, count);\n    PipeBarrier<PIPE_V>();\n    Cast(x, y, RoundMode::CAST_NONE, count);\n    PipeBarrier<PIPE_V>();\n    Mul(d, x, x, count);")),
    "rounded towards zero": _one(_G, _k("RoundMode::CAST_RINT,\n             Min", "RoundMode::CAST_TRUNC,\n             Min")),
    "the last row not written": _one(_G, _k("static_cast<uint16_t>(high), static_cast<uint32_t>(wide", "static_cast<uint16_t>(high > 1 ? high - 1 : 1), static_cast<uint32_t>(wide")),
    "no gelu for the last element": _one("a=float16[197,300] b=float16[300,80]", _k("    Div(x, x, d, count);", "    Div(x, x, d, count - 1);")),
    "negative results are 0 below -3": _one(_G, _k("    Exp(d, d, count);", "    Mins(d, d, 4.787307f, count);\n    PipeBarrier<PIPE_V>();\n    Exp(d, d, count);")),
    "large values pass as they are": _one(_G, _k("    Exp(d, d, count);", "    Maxs(d, d, -4.0f, count);\n    PipeBarrier<PIPE_V>();\n    Exp(d, d, count);")),
    "the exponent clamped at 80": _one("a=bfloat16[97,300] b=bfloat16[300,77]", _k("    Exp(d, d, count);", "    Mins(d, d, 20.0f, count);\n    PipeBarrier<PIPE_V>();\n    Exp(d, d, count);")),
    "k without its last element": _one(_G, _k("mm.SetTail(rows, columns, t.singleCoreK);", "mm.SetTail(rows, columns, t.singleCoreK - 1);")),
    "a block twice": _one("a=float16[397,300] b=float16[300,277]", _k("const uint32_t m = block % down * t.baseM, n", "const uint32_t m = (block == 1 ? 0 : block) % down * t.baseM, n"), _h("cube.SetDim(coreNum);", "cube.SetDim(2);")),
    "a core that does nothing": _one(_G, _k("  op.Process();\n", "  if (GetBlockIdx() != 1) op.Process();\n")),
    "no barrier before the division": _one(_G, _k("    Adds(d, d, 1.0f, count);\n    PipeBarrier<PIPE_V>();\n    Div", "    Adds(d, d, 1.0f, count);\n    Div")),
}  # fmt: skip

# ---- products of groups ----
_P = "a=float16[97,300] b=float16[5,300,77] counts=int64[5]"
_GROUPED: _Table = {
    "all rows to the first expert": _one(_P, _k("bGm[(static_cast<uint64_t>(group) * t.k + k)", "bGm[(static_cast<uint64_t>(0) * t.k + k)")),
    "the last expert's rows by the one before": _one(_P, _k("bGm[(static_cast<uint64_t>(group) * t.k + k)", "bGm[(static_cast<uint64_t>(group + 1 == t.groups && group ? group - 1 : group) * t.k + k)")),
    "as many rows for every expert": _one(_P, _k("return Min(static_cast<uint32_t>(countsGm.GetValue(group)), t.m - first);", "return Min(static_cast<uint32_t>(t.m / t.groups), t.m - first);")),
    "rows left over are dropped": _one(_P, _k("    if (group + 1 == t.groups) {\n      return t.m - first;\n    }\n", "")),
    "counts of 8 bits": _one("a=float16[997,48] b=float16[3,48,33] counts=int64[3]", _k("static_cast<uint32_t>(countsGm.GetValue(group))", "static_cast<uint32_t>(countsGm.GetValue(group) & 15)")),
    "an expert without rows ends it": _one(_P, _k("      const uint32_t rows = Rows(group, first);\n", "      const uint32_t rows = Rows(group, first);\n      if (rows == 0) break;\n")),
    "counts beyond the rows": _one(_P, _k("return Min(static_cast<uint32_t>(countsGm.GetValue(group)), t.m - first);", "return static_cast<uint32_t>(countsGm.GetValue(group));")),
    "k without its last element": _one(_P, _k("params.k = length;", "params.k = length - (length % SIDE != 0);")),
    "sums begin anew": _one(_P, _k("params.cmatrixInitVal = first;", "params.cmatrixInitVal = true;")),
    "sums go on from the block before": _one(_P, _k("params.cmatrixInitVal = first;", "params.cmatrixInitVal = false;")),
    "the last column left out": _one(_P, _k("params.nSize = columns;", "params.nSize = columns - (n + columns == t.n);")),
    "the last row of a group left out": _one(_P, _k("params.mSize = rows;", "params.mSize = rows > 1 ? rows - 1 : rows;")),
    "blocks of every second core": _one(_P, _k("if (block % GetBlockNum() == GetBlockIdx()) {", "if (block % GetBlockNum() == (GetBlockIdx() & ~1u)) {")),
    "no order of sums": _one(_P, _k("if (Tiles(rows) * Tiles(columns) < SUMS_IN_ORDER) {", "if (Tiles(rows) * Tiles(columns) < 0) {")),
}  # fmt: skip

# ---- attention ----
_F = "q=bfloat16[3,77,40] k=bfloat16[3,133,40] v=bfloat16[3,133,40]"
_FH = "q=float16[3,77,40] k=float16[3,333,40] v=float16[3,333,40]"
_SCALED, _CAUSAL = "scale=0.15811388300841897 causal=false", "scale=0.15811388300841897 causal=true"
_FLASH: _Table = {
    "the maximum of the last block only": _one(_FH, _k("    Max(now, now, old, mine);\n", "")),
    "the maximum starts at 0": _one(_FH, _k("Duplicate(maximumBuf.Get<float>(), MASKED,", "Duplicate(maximumBuf.Get<float>(), 0.0f,")),
    "the sum doesn't shrink": _one(_FH, _k("    Mul(total, total, factorBuf.Get<float>(), mine);\n    PipeBarrier<PIPE_V>();\n", "")),
    "products don't shrink": _one(_FH, _k("      Mul(sum[column], sum[column], block, wide, mine, {1, 1, 0, pitch, pitch, 1});\n", "")),
    "shrinks by the half": _one(_FH, _k("    Exp(factor, factor, mine);\n", "    Muls(factor, factor, 0.999f, mine);\n    PipeBarrier<PIPE_V>();\n    Exp(factor, factor, mine);\n")),
    "the last key doesn't count": _one(_F, _k("uint32_t visible = columns;", "uint32_t visible = columns - (key + columns == this->seen);")),
    "keys behind the last one count": _one(_F, _k("uint32_t visible = columns;", "uint32_t visible = Align(columns, FLOATS);")),
    "a query sees one key more": _one(_FH, _k("+ begin + row + 1;", "+ begin + row + 2;")),
    "a query doesn't see itself": _one(_FH, _k("+ begin + row + 1;", "+ begin + row;")),
    "the mask of the first block's rows": _one("q=float16[2,177,40] k=float16[2,333,40] v=float16[2,333,40]", _k("const uint32_t sees = this->t.keys - this->t.queries + this->first + begin + row + 1;", "const uint32_t sees = this->t.keys - this->t.queries + begin + row + 1;")),
    "scaled twice": _one(_F, _k("    Muls(s, s, this->t.scale, mine * width);", "    Muls(s, s, this->t.scale * 1.01f, mine * width);")),
    "no scale": _one(_F, _k("    Muls(s, s, this->t.scale, mine * width);", "    Muls(s, s, 1.0f, mine * width);")),
    "not divided": _one(_F, _k("Div(sum[column], sum[column], block,", "Adds(sum[column], sum[column], 0.0f,"), _k("mine, {1, 1, 0, pitch, pitch, 1});\n    }\n    PipeBarrier<PIPE_V>();\n    Cast", "mine, {1, 1, pitch, pitch});\n    }\n    PipeBarrier<PIPE_V>();\n    Cast")),
    "weights below 1e-4 are 0": _one(_FH, _k("    Total(s);\n", "    Adds(s, s, -1e-4f, mine * width);\n    PipeBarrier<PIPE_V>();\n    Maxs(s, s, 0.0f, mine * width);\n    PipeBarrier<PIPE_V>();\n    Total(s);\n")),
    "differences below -15 are -15": _one(_FH, _k("    Exp(s, s, mine * width);\n", "    Maxs(s, s, -15.0f, mine * width);\n    PipeBarrier<PIPE_V>();\n    Exp(s, s, mine * width);\n")),
    "the second vector core's rows are the first's": _one(_F, _k("Slot(step) + begin * width], copy,", "Slot(step)], copy,")),
    "weights before they are there": _one(_F, _k("        CrossCoreWaitFlag(WEIGHTS);\n", "")),
    "scores before they are there": _one(_F, _k("        CrossCoreWaitFlag(SCORES);\n", "")),
    "products before they are there": _one(_F, _k("        CrossCoreWaitFlag(PRODUCTS);\n", "")),
    "one slot for all steps": _one(_FH, _k("return step % SLOTS * static_cast<uint64_t>(t.blockQ) * t.blockK;", "return 0 * step * static_cast<uint64_t>(t.blockQ);")),
    "a block of keys left out when its scores are small": _one(_FH, _k("        CrossCoreWaitFlag(PRODUCTS);\n        if (mine > 0) {", "        CrossCoreWaitFlag(PRODUCTS);\n        if (mine > 0 && (key == 0 || newBuf.Get<float>().GetValue(0) > 1e-3f)) {")),
    "the last columns of v left out": _one(_F, _k("for (uint32_t column = 0; column < this->t.depth; column += REPEAT) {\n      const uint64_t wide = Min(REPEAT, this->t.depth - column);", "for (uint32_t column = 0; column < this->t.depth; column += REPEAT) {\n      const uint64_t wide = Min(REPEAT, this->t.depth - column) - 1;")),
    "the depth without its last element": _one(_F, _k("Product(this->scores[this->Slot(step)], columns, this->t.depth, this->t.blockK);", "Product(this->scores[this->Slot(step)], columns, this->t.depth - 1, this->t.blockK);")),
}  # fmt: skip
_WITH_CAUSAL = ("a query sees", "a query doesn't", "the mask of")

# ---- right ones ----
_RIGHT: dict[str, _Table] = {
    "quant_matmul": {
        "a barrier after every product": _one(_Q, _k("if (CeilDiv(rows, SIDE) * CeilDiv(columns, SIDE) < SUMS_IN_ORDER) {", "if (true) {")),
        "the words by way of the flag behind them": _one("a=int8[197,300] b=int8[513,300] scale=int64[513]", _k("    SetFlag<HardEvent::MTE2_FIX>(there);\n    WaitFlag<HardEvent::MTE2_FIX>(there);\n", "")),
        "b first": _one(_Q, _k("    a1.EnQue(aTiles);\n    b1.EnQue(bTiles);\n", "    b1.EnQue(bTiles);\n    a1.EnQue(aTiles);\n")),
        "cores the other way round": _one(_Q, _k("firstM = GetBlockIdx() % alongM * t.singleM;\n    firstN = GetBlockIdx() / alongM * t.singleN;", "const uint32_t alongN = CeilDiv(t.n, t.singleN);\n    firstM = GetBlockIdx() / alongN * t.singleM;\n    firstN = GetBlockIdx() % alongN * t.singleN;")),
        "small blocks": _one(_Q, _h("BASE_M = 128", "BASE_M = 32"), _h("BASE_N = 256", "BASE_N = 48"), _h("BASE_K = 128", "BASE_K = 64")),
    },
    "matmul_gelu": {
        "times the reciprocal": _one(_G, _k("    Div(x, x, d, count);", "    Reciprocal(d, d, count);\n    PipeBarrier<PIPE_V>();\n    Mul(x, x, d, count);")),
        "the cube first": _one(_G, _k("    Mul(d, x, x, count);\n    PipeBarrier<PIPE_V>();\n    Muls(d, d, CUBED, count);", "    Muls(d, x, CUBED, count);\n    PipeBarrier<PIPE_V>();\n    Mul(d, d, x, count);")),
        "small blocks": _one(_G, _h("BASE_M = 128", "BASE_M = 32"), _h("BASE_N = 128", "BASE_N = 48")),
        "one group": _one(_G, _h("cube.SetDim(coreNum);", "cube.SetDim(2);")),
    },
    "grouped_matmul": {
        "a barrier after every product": _one(_P, _k("if (Tiles(rows) * Tiles(columns) < SUMS_IN_ORDER) {", "if (true) {")),
        "blocks from the other end of the cores": _one(_P, _k("if (block % GetBlockNum() == GetBlockIdx()) {", "if (block % GetBlockNum() == GetBlockNum() - 1 - GetBlockIdx()) {")),
        "blocks of every group from the first core on": _one(_P, _k("      const uint32_t rows = Rows(group, first);\n", "      const uint32_t rows = Rows(group, first);\n      block = 0;\n")),
        "rows before columns": _one(_P, _k("      for (uint32_t n = 0; n < t.n; n += t.baseN) {\n        for (uint32_t m = 0; m < rows; m += t.baseM, block++) {", "      for (uint32_t m = 0; m < rows; m += t.baseM) {\n        for (uint32_t n = 0; n < t.n; n += t.baseN, block++) {")),
        "small blocks": _one(_P, _h("BASE_M = 128", "BASE_M = 32"), _h("BASE_N = 256", "BASE_N = 48"), _h("BASE_K = 64", "BASE_K = 32")),
    },
    "flash_attention": {
        "the mask after the scale": _one(_FH, _k("    Mask(s, begin, key, columns);\n    Muls(s, s, this->t.scale, mine * width);\n    PipeBarrier<PIPE_V>();\n", "    Muls(s, s, this->t.scale, mine * width);\n    PipeBarrier<PIPE_V>();\n    Mask(s, begin, key, columns);\n")),
        "the sum added the other way round": _one(_FH, _k("    Add(total, total, now, mine);", "    Add(total, now, total, mine);")),
        "short blocks of queries": _one(_FH, _h("BLOCK_Q = 128", "BLOCK_Q = 32")),
        "the result times the reciprocal": _one(_FH, _k("    Brcb(block, totalBuf.Get<float>(), CeilDiv(mine, FLOATS), {1, FLOATS});\n    PipeBarrier<PIPE_V>();\n", "    Duplicate(newBuf.Get<float>(), 1.0f, mine);\n    PipeBarrier<PIPE_V>();\n    Div(totalBuf.Get<float>(), newBuf.Get<float>(), totalBuf.Get<float>(), mine);\n    PipeBarrier<PIPE_V>();\n    Brcb(block, totalBuf.Get<float>(), CeilDiv(mine, FLOATS), {1, FLOATS});\n    PipeBarrier<PIPE_V>();\n"), _k("      Div(sum[column], sum[column], block,", "      Mul(sum[column], sum[column], block,")),
    },
}  # fmt: skip


def _attrs(operator: str, name: str) -> str:
    if operator != "flash_attention":
        return ""
    return _CAUSAL if name.startswith(_WITH_CAUSAL) else _SCALED


def cube_faults() -> Iterator[Fault]:
    for operator, table in (
        ("quant_matmul", _QUANT), ("matmul_gelu", _GELU), ("grouped_matmul", _GROUPED), ("flash_attention", _FLASH),
    ):  # fmt: skip
        for name, (inputs, edits) in table.items():
            yield Fault("cube", name, operator, inputs, edits, _attrs(operator, name))


def right_on_cubes() -> Iterator[Fault]:
    for operator, table in _RIGHT.items():
        for name, (inputs, edits) in table.items():
            yield Fault("cube", name, operator, inputs, edits, _attrs(operator, name))
