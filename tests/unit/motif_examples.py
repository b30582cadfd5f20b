"""Small kernels in a strong form, for each motif: what its removal shows, and what the motif takes away again."""

from __future__ import annotations

import re
from pathlib import Path

from motif_example import HOST, PROCESS, Example, kernel

from ascendopt_tune.search.kernel.motifs import find
from ascendopt_tune.search.kernel.reading.kernel_program import KernelProgram

_EARLY = """    if (0 < total) { uint32_t offset = 0; CopyIn(offset); }
    for (uint32_t offset = 0; offset < total; offset += tileLength) {
      if (offset + tileLength < total) { CopyIn((offset + tileLength)); }
      Compute(tileLength);
      CopyOut(offset);
    }"""
_IN_LOOP = """    for (uint32_t offset = 0; offset < total; offset += tileLength) {
      LocalTensor<T> tile = workBuf.Get<T>();
      DataCopy(tile, xGm[offset], tileLength);
      DataCopy(yGm[offset], tile, tileLength);
    }"""
_CONSTANTS = f'#define AOT_CONSTANT_TILING\n#include "kernel_operator.h"\n{kernel()["op_kernel/kernel.cpp"]}'
_X = "xGm.SetGlobalBuffer((__gm__ T*)x);"
_HINTED = kernel()["op_kernel/kernel.cpp"].replace(
    _X, f"{_X}\n    xGm.SetL2CacheHint(AscendC::CacheMode::CACHE_MODE_DISABLE);"
)
_ALIKE = kernel(copy_in="if (inQueue.Wants(0, tileLength)) { DataCopy(xLocal, xGm, tileLength); }")
_HELD = (
    _ALIKE["op_kernel/kernel.cpp"]
    .replace("pipe->InitBuffer(inQueue, 2, ", "inQueue.Begin(2, ")
    .replace("TQue<QuePosition::VECIN, 1> inQueue", "HeldTile<TQue<QuePosition::VECIN, 1>, 1> inQueue")
)
_SPREAD = """    for (uint32_t offset = 0; offset < total; offset += tileLength) {
      LocalTensor<T> tile = workBuf.Get<T>();
      if (tileLength <= SpreadRow::MOST) {
        spreadRow0.Store(yGm[offset], tile, total, tileLength * sizeof(T), 0);
      } else {
        for (uint32_t i = 0; i < total; i++) {
          DataCopy(yGm[offset + i * tileLength], tile, tileLength);
        }
      }
    }"""
_WORK = "pipe->InitBuffer(workBuf, tileLength * sizeof(float));"
_PARTS = (
    kernel()["op_kernel/kernel.cpp"]
    .replace(
        _WORK,
        "pipe->InitBuffer(workBuf.memory, SharedBuffer::Bytes(tileLength * sizeof(float), 64));\n"
        "    SharedBuffer::Place(workBuf.memory, 0, workBuf, tileLength * sizeof(float), smallBuf, 64);",
    )
    .replace("TBuf<QuePosition::VECCALC> workBuf;", "SharedBuffer workBuf, smallBuf;")
    .replace(
        "    Exp(yLocal, xLocal, n);", "    Exp(workBuf.Get<T>(), xLocal, n);\n    Exp(smallBuf.Get<T>(), xLocal, 8);"
    )
)
_BOUND = kernel(process=PROCESS.replace("      Compute(tileLength);\n", ""))["op_kernel/kernel.cpp"]
_BOUND = re.sub(r"  __aicore__ inline void Compute.*?\n  }\n", "", _BOUND, flags=re.DOTALL)
_BOUND = re.sub(r" +pipe->InitBuffer\(outQueue.*\n| +TQue<QuePosition::VECOUT.*\n", "", _BOUND)
_BOUND = _BOUND.replace("outQueue", "inQueue").replace(
    "TQue<QuePosition::VECIN, 1>", "TQueBind<TPosition::VECIN, TPosition::VECOUT, 1>"
)
_FOR_SOME = kernel("    if constexpr (sizeof(T) == 2) { Exp(workBuf.Get<T>(), xLocal, n); }")[
    "op_kernel/kernel.cpp"
].replace(_WORK, f"if constexpr (sizeof(T) == 2) {{ {_WORK} }}")
_FIELDS = f"""BEGIN_TILING_DATA_DEF(Tiling)
TILING_DATA_FIELD_DEF(uint32_t, tileLength);
TILING_DATA_FIELD_DEF_ARR(int64_t, 8, strides);
END_TILING_DATA_DEF;
{HOST}"""


def _computing(*lines: str) -> dict[str, str]:
    return kernel("\n".join(f"    {line}" for line in (*lines, "inQueue.FreeTensor(xLocal);")))


_CUBE = """
class Product {
 public:
  __aicore__ inline void Process() {
    for (uint32_t k = 0; k < total; k++) {
      Load(aQueue.DeQue<half>(), bQueue.AllocTensor<half>());
    }
  }
  __aicore__ inline void Load(const LocalTensor<half>& tiles, const LocalTensor<half>& to) {
    LoadData2DParams params;
    params.repeatTimes = rows;
    params.srcStride = pitch;
    LoadData(to[first * 256], tiles, params);
  }
  TQue<TPosition::A1, 1> aQueue;
  TQue<TPosition::A2, 1> bQueue;
  uint32_t rows, pitch, first, total;
};
extern "C" __global__ __aicore__ void kernel(GM_ADDR x) { Product op; op.Process(); }
"""
_OBJECT = """
template <typename A, typename B, typename C>
class Product {
 public:
  Matmul<A, B, C, C, CFG_MDL> mm;
};
extern "C" __global__ __aicore__ void kernel(GM_ADDR x) { Product<A, B, C> op; op.mm.IterateAll(c); }
"""
_BOTH_KINDS = """
class Vector {
 public:
  __aicore__ inline void Process() {
    uint32_t taken = 0;
    for (uint32_t i = 0; i < total; i++) {
      CrossCoreWaitFlag(0);
      Weigh(i);
      CrossCoreSetFlag<2, PIPE_MTE3>(1);
      if (taken++ > 0) {
        CrossCoreWaitFlag(2);
        AddUp();
      }
    }
    if (taken > 0) {
      CrossCoreWaitFlag(2);
      AddUp();
    }
  }
  __aicore__ inline void Weigh(uint32_t i) {
    LocalTensor<float> x = work.Get<float>();
    DataCopy(x, scores[i * n], n);
    Exp(factor.Get<float>(), x, n);
    DataCopy(weights[i * n], x, n);
  }
  __aicore__ inline void AddUp() {
    LocalTensor<float> x = work.Get<float>();
    DataCopy(x, products, n);
    Mul(x, x, factor.Get<float>(), n);
    Add(sum.Get<float>(), sum.Get<float>(), x, n);
  }
  __aicore__ inline void Init(TPipe* pipe) {
    pipe->InitBuffer(work, 512);
    pipe->InitBuffer(factor, 512);
    pipe->InitBuffer(sum, 512);
  }
  TBuf<TPosition::VECCALC> work, factor, sum;
  GlobalTensor<float> scores, weights, products;
  uint32_t total, n;
};
class Cube {
 public:
  __aicore__ inline void Process() {
    for (uint32_t i = 0; i < total; i++) {
      Score(i);
      CrossCoreSetFlag<2, PIPE_FIX>(0);
      CrossCoreWaitFlag(1);
      Multiply(i);
      CrossCoreSetFlag<2, PIPE_FIX>(2);
    }
  }
  uint32_t total;
};
extern "C" __global__ __aicore__ void kernel(GM_ADDR x) {
  if ASCEND_IS_AIC { Cube op; op.Process(); }
  if ASCEND_IS_AIV { TPipe pipe; Vector op; op.Init(&pipe); op.Process(); }
}
"""
_RING = """
template <AscendC::TPosition POSITION, AscendC::HardEvent FULL, AscendC::HardEvent FREE>
class FlaggedQueue {};
class Kernel {
 public:
  __aicore__ inline void Init() { inQueue.Begin(2, n * sizeof(half)); }
  __aicore__ inline void Process() {
    for (uint32_t i = 0; i < total; i++) {
      LocalTensor<half> x = inQueue.AllocTensor<half>();
      DataCopy(x, xGm[i * n], n);
      inQueue.EnQue(x);
      x = inQueue.DeQue<half>();
      Exp(y, x, n);
      inQueue.FreeTensor(x);
    }
  }
  FlaggedQueue<TPosition::VECIN, AscendC::HardEvent::MTE2_V, AscendC::HardEvent::V_MTE2> inQueue;
  uint32_t n, total;
};
extern "C" __global__ __aicore__ void kernel(GM_ADDR x) { TPipe pipe; Kernel op; op.Init(); op.Process(); }
"""
_DEALT = """
template <typename T>
class Kernel {
 public:
  __aicore__ inline void Process() {
    const uint32_t share =
        (AscendC::GetSubBlockIdx() * AscendC::GetBlockNum() + AscendC::GetBlockIdx() / AscendC::GetTaskRatio());
    mm.SetTensorA(aGm[share * n]);
    mm.IterateAll(cGm[share * n]);
  }
  Matmul<T, T, T> mm;
};
extern "C" __global__ __aicore__ void kernel(GM_ADDR x) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
  Kernel<A> op;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), op.mm, &tiling);
  op.Process();
}
"""
_GROUPS = """#include <algorithm>
static ge::graphStatus TilingFunc(gert::TilingContext* context) {
  context->SetBlockDim(std::min<uint32_t>(
      2 * ((used + 1) / 2), platform_ascendc::PlatformAscendC(context->GetPlatformInfo()).GetCoreNumAic()));
  return ge::GRAPH_SUCCESS;
}
"""
_TOLD = """
class Rows {
 public:
  __aicore__ inline void Process() {
    if ASCEND_IS_AIC {
      Multiply();
      PipeBarrier<PIPE_ALL>();
      CrossCoreSetFlag<2, PIPE_FIX>(0);
    }
    if ASCEND_IS_AIV {
      PipeBarrier<PIPE_ALL>();
      CrossCoreWaitFlag(0);
      Activate(GetBlockIdx() / GetTaskRatio());
    }
  }
  __aicore__ inline void Multiply() { Fixpipe(products[GetBlockIdx() * n], sums, params); }
  __aicore__ inline void Activate(uint32_t group) { DataCopy(x, products[group * n], n); }
};
extern "C" __global__ __aicore__ void kernel(GM_ADDR x) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
  Rows op;
  op.Process();
}
"""
_ROWS = """
class Product {
 public:
  __aicore__ inline void Init(GM_ADDR a, uint64_t rows, uint64_t length) {
    aGm.SetGlobalBuffer((__gm__ half*)a, rows * length);
  }
  __aicore__ inline void CopyIn(const LocalTensor<half>& to, uint64_t m, uint64_t k, uint64_t length) {
    Nd2NzParams params;
    params.srcDValue = length;
    DataCopy(to, aGm[m * length + k], params);
  }
  GlobalTensor<half> aGm;
};
extern "C" __global__ __aicore__ void kernel(GM_ADDR a, GM_ADDR c, GM_ADDR workspace, GM_ADDR tiling) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
  Product op;
  op.Init(a, rows, length);
  op.CopyIn(to, 0, 0, length);
}
"""
_NO_WORKSPACE = """
static ge::graphStatus TilingFunc(gert::TilingContext* context) {
  size_t* workspace = context->GetWorkspaceSizes(1);
  workspace[0] = 0;
  return ge::GRAPH_SUCCESS;
}
"""


def _tiled() -> tuple[dict[str, str], str]:
    """The product with its rows made tiles first: what is generated there is nothing to write by hand."""
    path, host = "op_kernel/kernel.cpp", "op_host/kernel.cpp"
    rows = KernelProgram({path: _ROWS}, {host: _NO_WORKSPACE})
    (rewrite,) = find("tiles-first").optimize(rows)
    return rewrite.kernel(rows), rewrite.tiling(rows)[host]


def _rows_a_turn() -> dict[str, str]:
    """Two turns' worth of rows in one, made of a row a turn."""
    turn = "for (uint32_t i = 0; i < total; i++) { CopyIn(i); Compute(tileLength); CopyOut(i); }"
    (text,) = kernel(process=turn, copy_in="DataCopy(xLocal, xGm[offset * tileLength], tileLength);").values()
    row = KernelProgram({"op_kernel/kernel.cpp": text.replace("yGm[offset]", "yGm[offset * tileLength]")})
    first, *_ = find("rows-per-turn").optimize(row)
    return first.kernel(row)


def _loaded_ahead() -> dict[str, str]:
    """Rows that are stored where a list says, several of them loaded at once."""
    turn = "for (uint32_t i = 0; i < total; i++) { CopyIn(i); Compute(tileLength); CopyOut(xGm.GetValue(i)); }"
    copy_in = "DataCopy(xLocal, xGm[offset * tileLength], tileLength);"
    first, *_ = find("loaded-ahead").optimize(KernelProgram(kernel(process=turn, copy_in=copy_in)))
    return first.kernel(KernelProgram(kernel(process=turn, copy_in=copy_in)))


def _stored_together() -> dict[str, str]:
    """Rows that come from where a list says, several of them stored at once."""
    computed = "CopyIn(xGm.GetValue(i)); Compute(tileLength); CopyOut(i * tileLength);"
    turn = f"for (uint32_t i = 0; i < total; i++) {{ {computed} }}"
    first, *_ = find("stored-together").optimize(KernelProgram(kernel(process=turn)))
    return first.kernel(KernelProgram(kernel(process=turn)))


_TILES, _WORKSPACE = _tiled()
_PARAMS = "DataCopyExtParams{4, static_cast<uint32_t>(64 * sizeof(T)), static_cast<uint32_t>(64 * sizeof(T)), 0, 0}"
_HANDED_OVER = """
class Product {
 public:
  __aicore__ inline void Init(TPipe* pipe) { pipe->InitBuffer(co1, 131072); }
  __aicore__ inline void Process() {
    SetMMRowMajor();
    LocalTensor<float> sums = co1.Get<float>();
    for (uint32_t k = 0; k < length; k += step) {
      MmadParams params(m, n, step, false, 0, false, false, false);
      params.unitFlag = k + step >= length ? 3 : 2;
      Mmad(sums, a, b, params);
    }
    FixpipeParamsV220 out(n, m, m, n, false);
    out.unitFlag = 3;
    Fixpipe(cGm, sums, out);
  }
  TBuf<TPosition::CO1> co1;
};
extern "C" __global__ __aicore__ void kernel(GM_ADDR c) {
  TPipe pipe;
  Product op;
  op.Init(&pipe);
  op.Process();
}
"""

_FILLED = """    {
      const uint64_t fillShare = (static_cast<uint64_t>(total) / GetBlockNum() / 128 + 1) * 128;
      const uint64_t fillBegin = GetBlockIdx() * fillShare;
      if (fillBegin < static_cast<uint64_t>(total)) {
        auto filled = yGm[fillBegin];
        const uint64_t fillLeft = static_cast<uint64_t>(total) - fillBegin;
        InitGlobalMemory(filled, fillShare < fillLeft ? fillShare : fillLeft, 0.0f);
      }
    }"""
_BY_HAND = Path(__file__).parents[1] / "vnpu" / "motif_forms_halves" / "tiles_by_hand.cpp"
_HALVES = next(
    r.kernel(kernel)["op_kernel/kernel.cpp"]
    for kernel in [KernelProgram({"op_kernel/kernel.cpp": _BY_HAND.read_text()})]
    for r in find("ping-pong").optimize(kernel)
    if r.site.endswith("/halves")
)

EXAMPLES = (
    Example("full-barrier", r"PipeBarrier<PIPE_ALL>", kernel()),
    Example("full-barrier", r"PipeBarrier<PIPE_ALL>", kernel(), auto_sync=False),
    Example("vector-barrier", r"PipeBarrier<PIPE_V>", _computing("Exp(yLocal, xLocal, n);", "Abs(yLocal, yLocal, n);")),
    Example(
        "vector-barrier",
        r"PipeBarrier<PIPE_V>",
        _computing("LocalTensor<T> w = workBuf.Get<T>();", "Exp(yLocal, xLocal, n);", "Abs(w, xLocal, n);"),
        auto_sync=False,
    ),
    Example("flag-pair", r"WaitFlag<HardEvent::V_S>", kernel()),
    Example("deferred-wait", r"WaitFlag<[\w:]+MTE3_MTE2>\(storeEvent\)", kernel()),
    Example("deferred-wait", r"WaitFlag<[\w:]+MTE3_MTE2>\(storeEvent\)", kernel(process=_IN_LOOP)),
    Example("deferred-answer", r"PIPE_MTE3>\(1\);\s*CrossCoreWaitFlag", {"op_kernel/kernel.cpp": _BOTH_KINDS}),
    Example("cross-core-flags", r"SyncAll<false>", {"op_kernel/kernel.cpp": _TOLD}),
    Example("constant-tiling", r"\A\s*#include", {"op_kernel/kernel.cpp": _CONSTANTS}, host=_FIELDS),
    Example("double-buffer", r"InitBuffer\(inQueue, 1,", kernel()),
    Example("early-fetch", r"\{\s*CopyIn\(offset\);", kernel(process=_EARLY)),
    Example(
        "buffer-lifetime",
        r"Abs\(yLocal, yLocal, n\);\s*(?:outQueue.EnQue\(yLocal\);\s*)?inQueue\.FreeTensor",
        kernel("    Exp(yLocal, xLocal, n);\n    inQueue.FreeTensor(xLocal);\n    Abs(yLocal, yLocal, n);"),
    ),
    Example(
        "strided-copy",
        r"for \(uint32_t line",
        kernel(copy_in=f"DataCopyPad(xLocal, xGm[offset], {_PARAMS}, DataCopyPadExtParams<T>{{false, 0, 0, 0}});"),
    ),
    Example(
        "single-value",
        r"DataCopyPad\(xLocal",
        kernel(
            "    Duplicate(yLocal, xLocal.GetValue(0), n);\n    inQueue.FreeTensor(xLocal);",
            copy_in="xLocal.SetValue(0, xGm.GetValue(offset));",
        ),
    ),
    Example(
        "single-store",
        r"MTE3_S>\(EVENT_ID0\)",
        kernel(process="    for (; offset < total; offset++) { storesOfValues.Put(yGm[offset], xGm.GetValue(0)); }"),
    ),
    Example("copy-without-pad", r"DataCopyPad\(xLocal", kernel()),
    Example("merged-loads", r"oneTile\.repeatTimes = 1;\s*for", {"op_kernel/kernel.cpp": _CUBE}),
    Example("large-packets", r"CFG_NORM", {"op_kernel/kernel.cpp": _OBJECT}),
    Example(
        "needless-meeting", r"SyncAll\(\);\s*SyncAll\(\);", kernel(process=f"{PROCESS}\n    SyncAll();\n{PROCESS}")
    ),
    Example("shared-fill", r"GetBlockIdx\(\) == 0", kernel(process=f"{_FILLED}\n    SyncAll();\n{PROCESS}")),
    Example("rows-per-turn", r"i < total; i\+\+", _rows_a_turn()),
    Example("loaded-ahead", r"\n +DataCopy\(xLocal, xGm\[", _loaded_ahead()),
    Example("stored-together", r"\n +DataCopy\(yGm\[", _stored_together()),
    Example("tiles-first", r"DataCopy\(to, aGm\[", _TILES, host=_WORKSPACE),
    Example("unit-flag", r"SetFlag<HardEvent::M_FIX>", {"op_kernel/kernel.cpp": _HANDED_OVER}),
    Example("rings-for-queues", r"TQue<TPosition::VECIN, 1> inQueue", {"op_kernel/kernel.cpp": _RING}),
    Example("groups-first", r"SetBlockDim\(\(used", {"op_kernel/kernel.cpp": _DEALT}, host=_GROUPS),
    Example("scalar-loop", r"yLocal\.SetValue", _computing("Add(yLocal, xLocal, xLocal, n);")),
    Example("scalar-loop", r"yLocal\.SetValue", _computing("Muls(yLocal, xLocal, 2.0f, n);")),
    Example("scalar-loop", r"yLocal\.SetValue", _computing("Duplicate(yLocal, 1.0f, n);")),
    Example("copied-elements", r"xLocal\.SetValue", kernel()),
    Example(
        "comparison",
        r"Mins\(w, w, 1\.1754",
        _computing(
            "LocalTensor<float> w = workBuf.Get<float>();",
            "comparisons0.Choose<AscendC::CMPMODE::LE>(w, xLocal, zLocal, n);",
        ),
    ),
    Example(
        "row-stages",
        r"row0First \+= 1\)|stage0First \+= 1\)",
        _computing(
            "for (uint32_t stage0First = 0; stage0First < rows; stage0First += ResultsOfRows::ROWS) {",
            "const uint32_t stage0Behind =",
            "stage0First + ResultsOfRows::ROWS < rows ? stage0First + ResultsOfRows::ROWS : rows;",
            "rowResults0.Reduce<true>(xLocal[stage0First * n], 0, stage0Behind - stage0First, n, n);",
            "}",
        ),
    ),
    Example(
        "result-in-place",
        r"yLocal\.SetValue\(at, w\.GetValue\(0\)\)",
        _computing("LocalTensor<T> w = workBuf.Get<T>();", "ReduceSum(yLocal[at], xLocal, w, n);"),
    ),
    *(
        Example(
            "one-element",
            weak,
            _computing(
                *("LocalTensor<float> w = workBuf.Get<float>();", "ReduceSum(w, xLocal, yLocal, n);"),
                f"Muls(yLocal, xLocal, {value}, n);",
            ),
        )
        for weak, value in [
            (r"Adds\(w, w, epsilon, 1\);", "1.0f / sqrt(w.GetValue(0) + epsilon)"),
            (r"Muls\(w, w, share, 1\);", "w.GetValue(0) * share"),
            (r"Sqrt\(w, w, 1\);", "1.0f / sqrt(w.GetValue(0))"),
        ]
    ),
    Example("merged-rows", r"for \(uint32_t part", _computing("Add(yLocal, xLocal, xLocal, n);")),
    Example("merged-rows", r"for \(uint32_t part", _computing("Cast(yLocal, xLocal, RoundMode::CAST_NONE, n);")),
    Example(
        "independent-neighbours",
        r"Exp\(yLocal, xLocal, n\);\s*Abs\(yLocal, yLocal, n\);",
        _computing(
            "LocalTensor<T> w = workBuf.Get<T>();",
            *("Exp(yLocal, xLocal, n);", "Ln(w, xLocal, n);", "Abs(yLocal, yLocal, n);", "Sqrt(w, w, n);"),
        ),
    ),
    Example("fused-multiply-add", r"Muls\(", _computing("Axpy(yLocal, xLocal, 2.0f, n);")),
    Example("fused-multiply-add", r"\bMul\(", _computing("FusedMulAdd(yLocal, xLocal, xLocal, n);")),
    Example("fused-multiply-add", r"\bMul\(", _computing("MulAddDst(yLocal, xLocal, yLocal, n);")),
    *(
        Example("fused-scalars", weak, _computing("Abs(yLocal, xLocal, n);", f"fusedScalars0.{call};"))
        for weak, call in [
            (
                r"Muls\([^;]*;[^;]*Adds\(",
                "ScaleAndAdd(yLocal, fusedScalars0.Kept(yLocal, 0, 3), fusedScalars0.Anew(yLocal, 1, b), n)",
            ),
            (r"Muls\([^;]*;[^;]*Add\(", "TimesScalar(yLocal, fusedScalars0.Kept(yLocal, 0, 3.0f), xLocal, n)"),
            (r"Mul\([^;]*;[^;]*Adds\(", "PlusScalar(yLocal, xLocal, fusedScalars0.Anew(yLocal, 0, b), n)"),
        ]
    ),
    Example("chained-instructions", r"\bRelu\(", _computing("AddRelu(yLocal, xLocal, xLocal, n);")),
    Example("chained-instructions", r"Muls\([^;]*;\s*Muls", _computing("Muls(yLocal, xLocal, 3.0f, n);")),
    Example("scalar-operand", r"Duplicate\(", _computing("Adds(yLocal, xLocal, 1.0f, n);")),
    Example("extra-copy", r"DataCopy\(yLocal, xLocal, n\)", kernel()),
    Example(
        "first-term",
        r"Duplicate\(yLocal, 0.0f, n\);\s*for",
        _computing(
            "if (!(0 < terms)) { Duplicate(yLocal, 0.0f, n); }",
            "for (uint32_t term = 0; term < terms; term++) {",
            "  if (term == 0) { Muls(yLocal, xLocal, factor, n); } else { Axpy(yLocal, xLocal, factor, n); }",
            "}",
        ),
    ),
    Example("unread-results", r"Exp\(yLocal, xLocal, n\);\s*Exp\(yLocal, xLocal, n\);", kernel()),
    Example(
        "fewer-casts",
        r"ReinterpretCast<int32_t>",
        _computing(
            "LocalTensor<float> w = workBuf.Get<float>();",
            *("LocalTensor<half> h = w.ReinterpretCast<half>();", "LocalTensor<int8_t> b = outBytes;"),
            *("Cast(h, w, RoundMode::CAST_ODD, n);", "Cast(b, h, RoundMode::CAST_RINT, n);"),
        ),
    ),
    Example(
        "rounding-cast",
        r"ReinterpretCast<int32_t>",
        _computing("LocalTensor<float> w = workBuf.Get<float>();", "Cast(w, xLocal, RoundMode::CAST_FLOOR, n);"),
    ),
    Example(
        "scale-behind-sum",
        r"Muls\(w, w, mean, n\)",
        _computing(
            "LocalTensor<float> w = workBuf.Get<float>();",
            *("Mul(w, xLocal, xLocal, n);", "ReduceSum(yLocal, w, xLocal, n);", "Muls(yLocal, yLocal, mean, 1);"),
            "Adds(yLocal, yLocal, 1.0f, 1);",
        ),
    ),
    Example(
        "loop-invariant",
        r"\{\s*Duplicate\(ones",
        kernel(process=f"    LocalTensor<T> ones = workBuf.Get<T>();\n    Duplicate(ones, 1.0f, 64);\n{PROCESS}"),
    ),
    Example(
        "done-once",
        r";\s*Duplicate\(ones",
        _computing(
            "LocalTensor<T> ones = workBuf.Get<T>();",
            "auto keptTensor0At = keptTensor0.In(ones, n);",
            "if (keptTensor0.anew) { Duplicate(keptTensor0At, 1.0f, n); }",
            "Div(yLocal, keptTensor0At, xLocal, n);",
            "Exp(ones, yLocal, n);",
        ),
    ),
    Example(
        "kept-value",
        r"xLocal\.GetValue\(0\)[^;]*xLocal\.GetValue\(0\)",
        _computing("const float first = xLocal.GetValue(0);", "Adds(yLocal, xLocal, first * first, n);"),
    ),
    Example(
        "cast-once",
        r"(Cast\(wide, xLocal, [^;]*;)\s*(?:PipeBarrier<PIPE_V>\(\);\s*)?Cast\(wide, xLocal,",
        _computing(
            "LocalTensor<float> wide = workBuf.Get<float>();",
            "Cast(wide, xLocal, RoundMode::CAST_NONE, n);",
            "Exp(yLocal, wide, n);",
        ),
    ),
    Example("held-tile", r"\n +DataCopy\(xLocal, xGm, ", {"op_kernel/kernel.cpp": _HELD}),
    Example("known-value", r"xGm\.GetValue", _computing("Adds(yLocal, xLocal, knownValue0.Of(xGm, 0), n);")),
    Example("repeated-stores", r"tile = workBuf.Get<T>\(\);\s*\{?\s*for", kernel(process=_SPREAD)),
    Example("shared-buffers", r"InitBuffer\(smallBuf", {"op_kernel/kernel.cpp": _PARTS}),
    Example(
        "whole-copy",
        r"DataCopyPad\(xLocal\[blocks\]",
        kernel(
            copy_in="""const uint32_t blocks = tileLength / 8 * 8, rest = tileLength - blocks;
    if ((blocks != 0) && !(rest != 0)) { DataCopy(xLocal, xGm[offset], blocks); }
    if (rest != 0) {
      DataCopyExtParams params{1, static_cast<uint32_t>((blocks) * sizeof(xLocal.GetValue(0))) + (rest), 0, 0, 0};
      DataCopyPad(xLocal, xGm[offset], params, padding);
    }"""
        ),
    ),
    Example("bound-queue", r"DataCopy\(moved, loaded", {"op_kernel/kernel.cpp": _BOUND}),
    Example("unneeded-buffers", r"\n +pipe->InitBuffer\(workBuf", {"op_kernel/kernel.cpp": _FOR_SOME}),
    Example("tile-length", r"% 2", kernel()),
    Example("bank-groups", r"/ 512 \* 512", kernel()),
    Example("alignment-512", r"ALIGN_BYTES = 32", kernel()),
    Example(
        "add-tree",
        r"ReduceSum\(yLocal, xLocal, xLocal, addends\)",
        _computing(
            "int32_t addends = n;",
            "while (addends > 64) {",
            "  const int32_t lower = ((addends + 1) / 2 + 63) / 64 * 64;",
            "  Add(xLocal, xLocal, xLocal[lower], addends - lower);",
            "  addends = lower;",
            "}",
            "WholeReduceSum(yLocal, xLocal, addends, 1, 1, 1, 8);",
        ),
    ),
    Example("cache-hint", r"\(__gm__ T\*\)x\);\s*yGm", {"op_kernel/kernel.cpp": _HINTED}),
    Example("ping-pong", r"PingPong<2, 2, 0>", {"op_kernel/kernel.cpp": _HALVES}),
    Example(
        "unqueued-tensors",
        r"workBuf\.AllocTensor",
        _computing("LocalTensor<T> w = workBuf.Get<T>();", "Exp(w, xLocal, n);", "Abs(yLocal, w, n);"),
    ),
)
