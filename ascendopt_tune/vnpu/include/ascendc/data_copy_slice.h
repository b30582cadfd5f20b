// DataCopy of slices of a multi-dimensional tensor (AscendC reference, slice data copy between GM and UB). The device
// does it in software: one strided copy per row of the slice.
#pragma once
#include "data_copy.h"

namespace AscendC {

// One axis of a slice, the innermost axis first. `burstLen` is in 32-byte blocks and counts on the innermost axis
// alone; the others are in elements (axis 0) or in units of their axis. `stride`: between the end of one piece and the
// next.
struct SliceInfo {
  SliceInfo() = default;
  SliceInfo(uint32_t start, uint32_t end, uint32_t gap, uint32_t blocks, uint32_t shape = 0)
      : startIndex(start), endIndex(end), stride(gap), burstLen(blocks), shapeValue(shape) {}
  uint32_t startIndex = 0, endIndex = 0, stride = 0, burstLen = 0, shapeValue = 0;
};

namespace detail {

constexpr uint32_t kSliceAxes = 8;

// Lengths of the axes: the slice's own, or the tensor's where the slice doesn't say (`given`).
struct SliceShape {
  SliceShape(const SliceInfo* slice, uint32_t axes, bool given, const ShapeInfo& tensor) {
    for (uint32_t i = 0; i < axes; i++) length[i] = given ? slice[i].shapeValue : tensor.shape[i];
  }
  uint64_t length[kSliceAxes] = {};
};

// Where row `row` of a slice begins, in elements.
ASCENDC_INLINE uint64_t slice_row(const SliceInfo* slice, const SliceShape& shape, uint32_t axes, uint32_t row,
                                  const uint32_t* counts) {
  uint64_t at = slice[0].startIndex, unit = 1;
  for (uint32_t i = 1; i < axes; i++) {
    unit *= shape.length[i - 1];
    at += unit * (slice[i].startIndex + uint64_t(row % counts[i]) * (1 + slice[i].stride));
    row /= counts[i];
  }
  return at;
}

// Calls copy(first destination element, first source element, pieces) for every row. The source slice says whether the
// slices or the tensors give the lengths of the axes.
template <typename T, typename Copy>
ASCENDC_INLINE void copy_slices(const SliceInfo* dst, const ShapeInfo& dst_tensor, const SliceInfo* src,
                                const ShapeInfo& src_tensor, uint32_t axes, Copy copy) {
  if (axes == 0 || axes > kSliceAxes) vnpu::misuse("DataCopy", "dimValue of a slice has to be 1 to 8");
  if (src[0].burstLen == 0 || src[0].burstLen != dst[0].burstLen)
    vnpu::misuse("DataCopy", "burstLen of source and destination slice has to be the same, and not 0");
  const bool given = src[0].shapeValue != 0;
  const SliceShape dst_shape(dst, axes, given, dst_tensor), src_shape(src, axes, given, src_tensor);
  const uint64_t piece = uint64_t(src[0].burstLen) * 32 / sizeof(T) + src[0].stride;
  vnpu::CopyShape shape;
  shape.bursts = static_cast<uint32_t>((uint64_t(src[0].endIndex) - src[0].startIndex + 1 + src[0].stride) / piece);
  shape.burst_bytes = uint64_t(src[0].burstLen) * 32;
  shape.src_stride = shape.burst_bytes + uint64_t(src[0].stride) * sizeof(T);
  shape.dst_stride = shape.burst_bytes + uint64_t(dst[0].stride) * sizeof(T);
  uint32_t counts[kSliceAxes] = {1}, rows = 1;
  for (uint32_t i = 1; i < axes; i++) {
    counts[i] = (src[i].endIndex - src[i].startIndex + 1 + src[i].stride) / (1 + src[i].stride);
    rows *= counts[i];
  }
  for (uint32_t row = 0; row < rows; row++)
    copy(slice_row(dst, dst_shape, axes, row, counts), slice_row(src, src_shape, axes, row, counts), shape);
}

}  // namespace detail

template <typename T>
ASCENDC_INLINE void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const SliceInfo dstSliceInfo[],
                             const SliceInfo srcSliceInfo[], const uint32_t dimValue = 1) {
  detail::copy_slices<T>(dstSliceInfo, dst.GetShapeInfo(), srcSliceInfo, src.GetShapeInfo(), dimValue,
                         [&](uint64_t d, uint64_t s, const vnpu::CopyShape& shape) __attribute__((always_inline)) {
                           vnpu::copy_gm_to_local(dst.pointer() + d, src.pointer() + s, shape, "DataCopy");
                         });
}
template <typename T>
ASCENDC_INLINE void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const SliceInfo dstSliceInfo[],
                             const SliceInfo srcSliceInfo[], const uint32_t dimValue = 1) {
  detail::copy_slices<T>(dstSliceInfo, dst.GetShapeInfo(), srcSliceInfo, src.GetShapeInfo(), dimValue,
                         [&](uint64_t d, uint64_t s, const vnpu::CopyShape& shape) __attribute__((always_inline)) {
                           vnpu::copy_local_to_gm(dst.pointer() + d, src.pointer() + s, shape, "DataCopy");
                         });
}

}  // namespace AscendC
