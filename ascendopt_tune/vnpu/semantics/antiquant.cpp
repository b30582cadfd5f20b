// AscendAntiQuant: one body, with the summed cost of the steps that its page shows: casts, an Add and a Mul for each
// row (asc-devkit, AscendAntiQuant). Half is rounded after each step, bfloat16 is computed in float.
#include "vnpu/adv_quant.h"

#include "composite.h"

namespace vnpu {
namespace {

float given(const AntiQuant& a, const void* values, uint64_t i) {
  const uint16_t bits = static_cast<const uint16_t*>(values)[i];
  return a.dtype == DType::BF16 ? bfloat16_to_float(bits) : half_to_float(bits);
}

float source_value(const AntiQuant& a, uint64_t i) {
  const auto* bytes = static_cast<const int8_t*>(a.src);
  if (a.src_dtype == DType::I8) return bytes[i];
  const int8_t pair = bytes[i / 2];
  return static_cast<float>(i % 2 ? pair >> 4 : static_cast<int8_t>(pair << 4) >> 4);
}

uint16_t converted(const AntiQuant& a, float x, float offset, float scale) {
  if (a.dtype == DType::BF16) return float_to_bfloat16((x + offset) * scale);
  return float_to_half(half_to_float(float_to_half(x + offset)) * scale);
}

void declare_antiquant(LocalCall& call, const AntiQuant& a) {
  const uint64_t elements = uint64_t(a.rows) * a.columns;
  call.read(a.src, a.src_dtype == DType::I8 ? elements : elements / 2, "src");
  const uint64_t shared = elements / a.share * 2;
  if (a.scale) call.read(a.scale, shared, "scale");
  if (a.offset) call.read(a.offset, shared, "offset");
  call.write(a.dst, elements * 2, "dst");
  if (a.work) call.write(a.work, a.work_bytes, "sharedTmpBuffer");
}

Composite antiquant_cost(const AntiQuant& a, Core& core) {
  Composite cost(core);
  const bool wide = a.dtype == DType::BF16;
  const DType type = wide ? DType::F32 : DType::F16;
  const uint32_t size = wide ? 4 : 2;
  const double row = repeats_of(a.columns, size);
  cost.add("Cast", repeats_of(uint64_t(a.rows) * a.columns, size), wide ? 3 : 1);
  if (a.offset != nullptr || a.one_offset != 0) cost.add_heads(a.scale ? "Add" : "Adds", a.rows, a.rows * row, type);
  cost.add_heads(a.scale ? "Mul" : "Muls", a.rows, a.rows * row, type);
  return cost;
}

}  // namespace

void antiquantize(const AntiQuant& a) {
  LocalCall call("AscendAntiQuant", VNPU_PC);
  if (call.core.kind == CoreKind::Cube) return;
  call.require(a.rows > 0 && a.columns > 0, "src has no whole rows of k elements");
  call.require(a.src_dtype == DType::I8 || a.columns % 2 == 0, "rows of int4b_t have an even number of elements");
  declare_antiquant(call, a);
  auto* dst = static_cast<uint16_t*>(a.dst);
  for (uint32_t r = 0; r < a.rows; r++)
    for (uint32_t c = 0; c < a.columns; c++) {
      const uint64_t i = uint64_t(r) * a.columns + c;
      const uint64_t of =
          a.transposed ? uint64_t(r) * (a.columns / a.share) + c / a.share : uint64_t(r / a.share) * a.columns + c;
      dst[i] = converted(a, source_value(a, i), a.offset ? given(a, a.offset, of) : a.one_offset,
                         a.scale ? given(a, a.scale, of) : a.one_scale);
    }
  call.issue(antiquant_cost(a, call.core).work());
  call.core.barrier(Pipe::V);
  leave_whole_mask(call.core);
}

}  // namespace vnpu
