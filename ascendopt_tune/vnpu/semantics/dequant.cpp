// AscendDequant: one body, with the summed cost of the steps that its page shows: Cast to float, a Mul for each row,
// Cast to the result's type (asc-devkit, AscendDequant).
#include "vnpu/adv_quant.h"

#include "composite.h"

namespace vnpu {
namespace {

float scale_of(const Dequant& d, uint32_t column) {
  if (d.scale == nullptr) return d.one;
  if (d.scale_dtype == DType::BF16) return bfloat16_to_float(static_cast<const uint16_t*>(d.scale)[column]);
  if (d.scale_dtype == DType::U64)  // the upper half is for Fixpipe
    return bits_to_float(static_cast<uint32_t>(static_cast<const uint64_t*>(d.scale)[column]));
  return static_cast<const float*>(d.scale)[column];
}

void store_as(const Dequant& d, uint64_t place, float value) {
  if (d.dtype == DType::BF16)
    static_cast<uint16_t*>(d.dst)[place] = float_to_bfloat16(value);
  else
    store_float(d.dst, place, d.dtype, value);
}

// Checks and declares the operands; `pitch`: of the result's rows, in elements.
void declare_dequant(LocalCall& call, const Dequant& d, uint64_t pitch) {
  const uint64_t least = (64 + uint64_t(d.n) + d.n + 8) * sizeof(float), most = least + (d.m - 1) * uint64_t(d.n) * 4;
  call.require(d.work == nullptr || d.work_bytes >= least,
               "sharedTmpBuffer has " + std::to_string(d.work_bytes) + " B, the least that " +
                   "GetAscendDequantMaxMinTmpSize says is " + std::to_string(least));
  call.read(d.src, uint64_t(d.count) * 4, "srcTensor", kBlockBytes, d.m, uint64_t(d.n) * 4);
  if (d.scale) call.read(d.scale, uint64_t(d.count) * dtype_size(d.scale_dtype), "deqScale");
  // What lies behind calCount in a row is left as it is: nothing says what the device leaves there.
  const uint32_t size = dtype_size(d.dtype);
  call.write(d.dst, uint64_t(d.count) * size, "dstTensor", kBlockBytes, d.m, pitch * size);
  if (d.work) call.write(d.work, std::min(d.work_bytes, most), "sharedTmpBuffer");
}

}  // namespace

void dequantize(const Dequant& given) {
  LocalCall call("AscendDequant", VNPU_PC);
  Dequant d = given;
  call.require(d.n % 8 == 0, "n = " + std::to_string(d.n) + " elements of int32_t have to be a multiple of 32 B");
  call.require(d.count >= 1 && d.count <= d.n,
               "calCount = " + std::to_string(d.count) + " has to be in 1..n = " + std::to_string(d.n));
  if (d.m == 0) return;
  const uint32_t block = kBlockBytes / dtype_size(d.dtype);
  if (d.single_row && d.m == 1 && d.count % block == 0 && d.n % d.count == 0) {
    d.m = d.n / d.count;
    d.n = d.count;
  }
  const uint64_t pitch = (uint64_t(d.n) + block - 1) / block * block;
  declare_dequant(call, d, pitch);
  for (uint32_t r = 0; r < d.m; r++)
    for (uint32_t c = 0; c < d.count; c++)
      store_as(d, r * pitch + c,
               static_cast<float>(static_cast<const int32_t*>(d.src)[uint64_t(r) * d.n + c]) * scale_of(d, c));
  Composite cost(call.core);
  const double all = repeats_of(uint64_t(d.m) * d.n, 4);
  cost.add("Cast", all, d.dtype == DType::F32 ? 1 : 2);
  if (d.scale && d.scale_dtype != DType::F32) cost.add("Cast", repeats_of(d.count, 4));
  cost.add_heads(d.scale ? "Mul" : "Muls", d.m, d.m * repeats_of(d.count, 4));
  call.issue(cost.work());
  call.core.barrier(Pipe::V);
  leave_whole_mask(call.core);
}

}  // namespace vnpu
