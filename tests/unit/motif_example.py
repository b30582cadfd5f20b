"""What an example of a motif is, and the kernel that most of them are made of."""

from __future__ import annotations

from dataclasses import dataclass

_KERNEL = """
template <typename T>
class Kernel {{
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, const Tiling& tiling, TPipe* pipe) {{
    tileLength = tiling.tileLength;
    total = tiling.total;
    pipe->InitBuffer(inQueue, 2, tileLength * sizeof(T));
    pipe->InitBuffer(outQueue, 2, tileLength * sizeof(T));
    pipe->InitBuffer(workBuf, tileLength * sizeof(float));
    xGm.SetGlobalBuffer((__gm__ T*)x);
    yGm.SetGlobalBuffer((__gm__ T*)y);
  }}
  __aicore__ inline void Process() {{
{process}
  }}

 private:
  __aicore__ inline void CopyIn(uint32_t offset) {{
    LocalTensor<T> xLocal = inQueue.AllocTensor<T>();
    {copy_in}
    inQueue.EnQue(xLocal);
  }}
  __aicore__ inline void Compute(uint32_t n) {{
    LocalTensor<T> xLocal = inQueue.DeQue<T>();
    LocalTensor<T> yLocal = outQueue.AllocTensor<T>();
{compute}
    outQueue.EnQue(yLocal);
  }}
  __aicore__ inline void CopyOut(uint32_t offset) {{
    LocalTensor<T> yLocal = outQueue.DeQue<T>();
    DataCopy(yGm[offset], yLocal, tileLength);
    outQueue.FreeTensor(yLocal);
  }}
  TQue<QuePosition::VECIN, 1> inQueue;
  TQue<QuePosition::VECOUT, 1> outQueue;
  TBuf<QuePosition::VECCALC> workBuf;
  GlobalTensor<T> xGm, yGm;
  uint32_t tileLength, total;
}};

extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {{
  GET_TILING_DATA(data, tiling);
  TPipe pipe;
  Kernel<float> op;
  op.Init(x, y, data, &pipe);
  op.Process();
}}
"""
PROCESS = """    for (uint32_t offset = 0; offset < total; offset += tileLength) {
      CopyIn(offset);
      Compute(tileLength);
      CopyOut(offset);
    }"""
_COMPUTE = """    Exp(yLocal, xLocal, n);
    inQueue.FreeTensor(xLocal);"""
HOST = """
static ge::graphStatus TilingFunc(gert::TilingContext* context) {
  const uint32_t cores = platform.GetCoreNumAiv();
  constexpr uint32_t ALIGN_BYTES = 512;
  const uint32_t part = (total / cores + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
  context->SetBlockDim(cores);
  return ge::GRAPH_SUCCESS;
}
"""


def kernel(
    compute: str = _COMPUTE, process: str = PROCESS, copy_in: str = "DataCopy(xLocal, xGm[offset], tileLength);"
) -> dict[str, str]:
    return {"op_kernel/kernel.cpp": _KERNEL.format(process=process, compute=compute, copy_in=copy_in)}


@dataclass(frozen=True)
class Example:
    """``weak``: a regular expression that the kernel or tiling program matches without the optimization only."""

    motif: str
    weak: str
    kernel: dict[str, str]
    auto_sync: bool = True
    host: str = HOST

    @property
    def tiling(self) -> dict[str, str]:
        return {"op_host/kernel.cpp": self.host}
