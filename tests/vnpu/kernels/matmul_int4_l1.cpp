// The high-level Matmul of int4 that the kernel itself has brought to L1 as tiles (TPosition A1 and B1).
#define ASCENDC_CUBE_ONLY
#include "kernel_operator.h"
#include "lib/matmul_intf.h"

using namespace AscendC;

// Rows of `columns` elements of which two share a byte: they are copied as bytes.
__aicore__ inline void bring(const LocalTensor<int8_t>& to, const GlobalTensor<int8_t>& from, int32_t rows,
                             int32_t columns) {
  Nd2NzParams p{};
  p.ndNum = p.dstNzNStride = 1;
  p.nValue = rows;
  p.dValue = p.srcDValue = columns / 2;
  p.dstNzC0Stride = (rows + 15) / 16 * 16;
  DataCopy(to, from, p);
}

extern "C" __global__ __cube__ void int4_in_l1(GM_ADDR a, GM_ADDR b, GM_ADDR c, TCubeTiling t) {
  TPipe pipe;
  TBuf<TPosition::A1> room;
  pipe.InitBuffer(room, 256 * 1024);
  LocalTensor<int8_t> left = room.Get<int8_t>(), right = room.Get<int8_t>()[128 * 1024];
  GlobalTensor<int8_t> from_a, from_b;
  GlobalTensor<int32_t> result;
  from_a.SetGlobalBuffer(reinterpret_cast<__gm__ int8_t*>(a));
  from_b.SetGlobalBuffer(reinterpret_cast<__gm__ int8_t*>(b));
  result.SetGlobalBuffer(reinterpret_cast<__gm__ int32_t*>(c));
  MatmulImpl<MatmulType<TPosition::A1, CubeFormat::NZ, int4b_t>, MatmulType<TPosition::B1, CubeFormat::NZ, int4b_t>,
             MatmulType<TPosition::GM, CubeFormat::ND, int32_t>, MatmulType<TPosition::GM, CubeFormat::ND, int32_t>>
      mm;
  mm.SetSubBlockIdx(0);
  mm.Init(&t, &pipe);
  bring(left, from_a, t.M, t.Ka);
  bring(right, from_b, t.Kb, t.N);
#ifndef LEFT_OUT
  const auto id = GetTPipePtr()->FetchEventID(HardEvent::MTE2_MTE1);
  SetFlag<HardEvent::MTE2_MTE1>(id);
  WaitFlag<HardEvent::MTE2_MTE1>(id);
#endif
  mm.SetOrgShape(t.M, t.N, t.Ka, t.Kb, t.N);
  mm.SetTensorA(left.ReinterpretCast<int4b_t>(), false);
  mm.SetTensorB(right.ReinterpretCast<int4b_t>(), false);
  mm.SetTail(t.singleCoreM, t.singleCoreN, t.singleCoreK);
  mm.IterateAll(result);
  mm.End();
}
