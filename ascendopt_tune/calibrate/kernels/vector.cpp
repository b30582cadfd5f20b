// One vector instruction `times` times in a row on the same tensors, `repeats` repeats each: what its pipe needs for
// it. Built without automatic synchronization: nothing here depends on anything. A line ROW(number, "row", call) per
// row of the chip file's table of instructions, CASE for anything else; microbenchmarks.py reads them here.
#include "kernel_operator.h"

using namespace AscendC;

// Bytes of UB. Sources lie in bank groups that don't meet, the destination in banks of its own.
constexpr uint32_t kX = 0, kY = 65536 + 256, kZ = 131072 + 256, kBytes = 40960;

template <typename T>
struct Tensors {
  LocalTensor<T> x{TPosition::VECCALC, kX, kBytes / sizeof(T)}, y{TPosition::VECCALC, kY, kBytes / sizeof(T)},
      z{TPosition::VECCALC, kZ, kBytes / sizeof(T)};
};

#define ROW(NUMBER, ROW_OF_TABLE, CALL)        \
  case NUMBER:                                 \
    for (uint32_t i = 0; i < times; i++) CALL; \
    break;

#define CASE ROW

extern "C" __global__ __aicore__ void vector(uint32_t which, uint32_t times, uint32_t repeats) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  Tensors<float> f;
  Tensors<half> h;
  Tensors<int16_t> s;
  Tensors<int32_t> w;
  Tensors<uint32_t> u;
  const uint8_t r = static_cast<uint8_t>(repeats);
  const BinaryRepeatParams two(1, 1, 1, 8, 8, 8);
  const UnaryRepeatParams one(1, 1, 8, 8), widen(1, 1, 8, 4), narrow(1, 1, 4, 8);
  const uint16_t length = static_cast<uint16_t>(8 * repeats), lengths[] = {length, length, length, length};
  const MrgSort4Info lists(lengths, false, 15, 1);
  const uint16_t between = repeats > 1 ? 16 : 0;
  uint64_t kept = 0, to[16], from[16];
  for (uint32_t i = 0; i < 16; i++) {
    to[i] = reinterpret_cast<uint64_t>(h.z[16 * i].GetPhyAddr());
    from[i] = reinterpret_cast<uint64_t>(h.x[16 * i].GetPhyAddr());
  }
  Duplicate(w.x, 0, static_cast<int32_t>(kBytes / 4));
  Duplicate(w.y, 0, static_cast<int32_t>(kBytes / 4));
  PipeBarrier<PIPE_V>();
  switch (which) {
    ROW(0, "default", Abs(f.z, f.x, 64, r, one))
    ROW(1, "Add.any", Add(f.z, f.x, f.y, 64, r, two))
    ROW(2, "Sub.any", Sub(f.z, f.x, f.y, 64, r, two))
    ROW(3, "Mul.any", Mul(f.z, f.x, f.y, 64, r, two))
    ROW(4, "Max.any", Max(f.z, f.x, f.y, 64, r, two))
    ROW(5, "Min.any", Min(f.z, f.x, f.y, 64, r, two))
    ROW(6, "And.any", And(s.z, s.x, s.y, 128, r, two))
    ROW(7, "Or.any", Or(s.z, s.x, s.y, 128, r, two))
    ROW(8, "Not.any", Not(s.z, s.x, 128, r, one))
    ROW(9, "Div.float", Div(f.z, f.x, f.y, 64, r, two))
    ROW(10, "Div.half", Div(h.z, h.x, h.y, 128, r, two))
    ROW(11, "Exp.float", Exp(f.z, f.x, 64, r, one))
    ROW(12, "Exp.half", Exp(h.z, h.x, 128, r, one))
    ROW(13, "Ln.float", Ln(f.z, f.x, 64, r, one))
    ROW(14, "Ln.half", Ln(h.z, h.x, 128, r, one))
    ROW(15, "Sqrt.float", Sqrt(f.z, f.x, 64, r, one))
    ROW(16, "Sqrt.half", Sqrt(h.z, h.x, 128, r, one))
    ROW(17, "Rsqrt.any", Rsqrt(f.z, f.x, 64, r, one))
    ROW(18, "Reciprocal.any", Reciprocal(f.z, f.x, 64, r, one))
    ROW(19, "Relu.any", Relu(f.z, f.x, 64, r, one))
    ROW(20, "LeakyRelu.any", LeakyRelu(f.z, f.x, 0.5f, 64, r, one))
    ROW(21, "Adds.any", Adds(f.z, f.x, 0.5f, 64, r, one))
    ROW(22, "Muls.any", Muls(f.z, f.x, 0.5f, 64, r, one))
    ROW(23, "Maxs.any", Maxs(f.z, f.x, 0.5f, 64, r, one))
    ROW(24, "Mins.any", Mins(f.z, f.x, 0.5f, 64, r, one))
    ROW(25, "Cast.any", Cast(f.z, h.x, RoundMode::CAST_NONE, 64, r, widen))
    ROW(40, "Cast.half", Cast(h.z, f.x, RoundMode::CAST_RINT, 64, r, narrow))
    ROW(26, "MulAddDst.any", MulAddDst(f.z, f.x, f.y, 64, r, two))
    ROW(27, "ReduceRepeat.any", WholeReduceMax(f.z, f.x, 64, repeats, 1, 1, 8))
    ROW(38, "ReduceRepeatSum.any", WholeReduceSum(f.z, f.x, 64, repeats, 1, 1, 8))
    ROW(39, "ReduceRepeatSum.half", WholeReduceSum(h.z, h.x, 128, repeats, 1, 1, 8))
    ROW(48, "ReduceAccumulate.any", ReduceSum(f.z, f.x, f.y, 64 * repeats))
    ROW(49, "ReduceAccumulate.half", ReduceSum(h.z, h.x, h.y, 128 * repeats))
    ROW(46, "ReduceDataBlockSum.half", BlockReduceSum(h.z, h.x, repeats, 128, 1, 1, 8))
    ROW(47, "ReduceDataBlockSum.any", BlockReduceSum(f.z, f.x, repeats, 64, 1, 1, 8))
    ROW(28, "ReduceDataBlock.half", BlockReduceMax(h.z, h.x, repeats, 128, 1, 1, 8))
    ROW(29, "ReduceDataBlock.any", BlockReduceMax(f.z, f.x, repeats, 64, 1, 1, 8))
    ROW(30, "ReducePairElem.any", PairReduceSum(f.z, f.x, repeats, 64, 1, 1, 8))
    ROW(31, "Gather.any", Gather(f.z, f.x, u.y, 0, 64 * repeats))
    ROW(32, "Gatherb.any", Gatherb(u.z, u.x, u.y, r, {1, 8}))
    ROW(33, "GatherMask.any", GatherMask(f.z, f.x, 1, false, 0, {1, static_cast<uint16_t>(repeats), 8, 0}, kept))
    ROW(41, "Duplicate.any", Duplicate(f.z, 1.0f, 64, r, 1, 8))
    ROW(42, "Copy.any", Copy(f.z, f.x, 64, r, {1, 1, 8, 8}))
    ROW(43, "DataCopy.any", DataCopy(f.z, f.x, 64 * repeats))
    ROW(44, "Brcb.any", Brcb(f.z, f.x, r, {1, 8}))
    ROW(45, "SetCmpMask.any", SetCmpMask(f.x))
    ROW(34, "Sort32.any", Sort32(f.z, f.x, u.y, repeats))
    ROW(35, "MrgSort.any", MrgSort(f.z, {f.x, f.x[4096], f.y, f.y[4096]}, lists))
    CASE(100, "sources in one bank group", Add(f.z, f.x, f.x[4096], 64, r, two))
    CASE(101, "destination in a source's bank", Add(f.x[8192 - 64 * 8], f.x, f.y, 64, r, two))
    ROW(37, "Transpose.any", Transpose(h.z, h.x))
    ROW(36, "TransDataTo5HD.any", TransDataTo5HD<half>(to, from, {false, false, r, between, between}))
  }
  PipeBarrier<PIPE_ALL>();
}
