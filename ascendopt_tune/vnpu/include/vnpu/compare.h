// Comparison to bits, selection by bits, and the compare mask register.
#pragma once
#include "device.h"

namespace vnpu {

enum class CompareMode : uint8_t { LT = 0, GT, EQ, LE, GE, NE };

// Bit i of `dst` (bytes, first lane in the lowest bit) = src0[i] cmp src1[i]. The mask is ignored on architecture 2201,
// results of repeats follow each other. In the count form elements beyond the last whole repeat are left out.
void compare(void* dst, const Operand& src0, const Operand& src1, CompareMode mode, const Lanes& lanes,
             const char* api);
void compare_scalar(void* dst, const Operand& src, const Scalar& scalar, CompareMode mode, const Lanes& lanes,
                    const char* api);
// One repeat into the compare mask register.
void compare_to_register(const Operand& src0, const Operand& src1, CompareMode mode, const Lanes& lanes);
void read_compare_mask(void* dst);
void write_compare_mask(const void* src);

// What Select in modes 2 (bits of a tensor for two tensors) and 1 (a scalar) does first: an immediate, the tensor's
// address or the scalar, fills a part of the 8 KB that the reference keeps for it, and from there the compare mask
// register. `lanes` are those of the selection.
void prepare_select(const void* bits, const Lanes& lanes);
void prepare_select_scalar(const Scalar& scalar, DType dtype, const Lanes& lanes);
// dst = bit ? src0 : src1. Bits come from `bits`, `per_repeat` new ones each repeat, or, where `bits` is null, from the
// compare mask register, the same ones each repeat.
void select(const Operand& dst, const void* bits, const Operand& src0, const Operand& src1, const Lanes& lanes);
void select_scalar(const Operand& dst, const void* bits, const Operand& src0, const Scalar& src1, const Lanes& lanes);
// The scalar is what the compare mask register holds (Select without mask operands, mode 1).
void select_register(const Operand& dst, const void* bits, const Operand& src0, const Lanes& lanes);

// SelectWithBytesMask: one mask byte (or wider element) per element, rows of `mask_last` of which `src_last` are used.
// dst = mask element == 0 ? tensor : scalar, or the other way round.
struct BytesMask {
  const void* mask = nullptr;
  DType mask_dtype = DType::None;
  uint32_t rows = 0, src_last = 0, mask_last = 0;
  bool scalar_where_zero = false;
  const void* shared = nullptr;
  uint32_t shared_bytes = 0;
};
void select_bytes(const Operand& dst, const Operand& src, const Scalar& scalar, const BytesMask& form);

}  // namespace vnpu
