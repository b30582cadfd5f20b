// Cube cores: tiles on their way to L1, L0A and L0B (AscendC reference, matrix computation, bringing matrices in).
#pragma once
#include "data_copy.h"

namespace AscendC {

// Lengths and strides of the source in elements; dstNzC0Stride and dstNzNStride in 32-byte blocks.
struct Nd2NzParams {
  Nd2NzParams() = default;
  Nd2NzParams(uint16_t num, uint16_t rows, uint16_t columns, uint16_t srcMatrix, uint16_t srcRow, uint16_t dstC0,
              uint16_t dstN, uint16_t dstMatrix)
      : ndNum(num),
        nValue(rows),
        dValue(columns),
        srcNdMatrixStride(srcMatrix),
        srcDValue(srcRow),
        dstNzC0Stride(dstC0),
        dstNzNStride(dstN),
        dstNzMatrixStride(dstMatrix) {}
  uint16_t ndNum = 0, nValue = 0, dValue = 0, srcNdMatrixStride = 0, srcDValue = 0, dstNzC0Stride = 0, dstNzNStride = 0,
           dstNzMatrixStride = 0;
};
// Of other architectures: kernels name it where they are compiled for those alone.
struct LoadData2DParamsV2 {
  uint32_t mStartPosition = 0, kStartPosition = 0;
  uint16_t mStep = 0, kStep = 0;
  int32_t srcStride = 0;
  uint16_t dstStride = 0;
  bool ifTranspose = false;
  uint8_t sid = 0;
};
template <typename T>
ASCENDC_INLINE void LoadData(const LocalTensor<T>&, const LocalTensor<T>&, const LoadData2DParamsV2&) {
  static_assert(!std::is_same_v<T, T>,
                "AscendC::LoadData with LoadData2DParamsV2 does not exist on architecture 2201 (Atlas A2 and A3), "
                "which the virtual NPU models");
}
// Counted in tiles of 512 bytes; dstGap from the end of one to the start of the next.
struct LoadData2DParams {
  LoadData2DParams() = default;
  LoadData2DParams(uint16_t start, uint8_t repeats, uint16_t src, uint8_t sidIn, uint16_t gap, bool transpose,
                   uint8_t mode)
      : startIndex(start),
        dstGap(gap),
        srcStride(src),
        ifTranspose(transpose),
        repeatTimes(repeats),
        sid(sidIn),
        addrMode(mode) {}
  uint16_t startIndex = 0, dstGap = 0, srcStride = 0;
  bool ifTranspose = false;
  uint8_t repeatTimes = 0, sid = 0, addrMode = 0;
};
using LoadData2dParams = LoadData2DParams;
// startIndex and srcStride in squares, the gaps in tiles.
struct LoadData2dTransposeParams {
  LoadData2dTransposeParams() = default;
  LoadData2dTransposeParams(uint16_t start, uint8_t repeats, uint16_t src, uint16_t gap, uint16_t fracGap,
                            uint8_t mode = 0)
      : startIndex(start), repeatTimes(repeats), srcStride(src), dstGap(gap), dstFracGap(fracGap), addrMode(mode) {}
  uint16_t startIndex = 0;
  uint8_t repeatTimes = 0;
  uint16_t srcStride = 0, dstGap = 0, dstFracGap = 0;
  uint8_t addrMode = 0;
};
// blockNum and dstGap in 32-byte blocks (L1) or tiles of 512 bytes (L0A, L0B).
template <typename T>
struct InitConstValueParams {
  InitConstValueParams() = default;
  InitConstValueParams(uint16_t repeats, uint16_t blocks, uint16_t gap, T value)
      : repeatTimes(repeats), blockNum(blocks), dstGap(gap), initValue(value) {}
  InitConstValueParams(uint16_t repeats, T value) : repeatTimes(repeats), initValue(value) {}
  uint16_t repeatTimes = 0, blockNum = 0, dstGap = 0;
  T initValue{};
};

namespace detail {
template <typename T>
constexpr bool is_tile_type() {
  return std::is_same_v<T, half> || std::is_same_v<T, bfloat16_t> || std::is_same_v<T, float> ||
         (std::is_integral_v<T> && sizeof(T) <= 4);
}
template <typename T>
constexpr bool is_loaded_type() {
  return is_tile_type<T>() || vnpu::is_half_byte<T>;
}
ASCENDC_INLINE vnpu::TileLoad tile_load(const LoadData2DParams& p) {
  return {p.startIndex, p.repeatTimes, p.srcStride, p.dstGap, p.ifTranspose, p.addrMode != 0};
}

// GM -> UB, a copy for each block of columns (AscendC reference, DataCopy from GM to UB with ND2NZ: made of other
// copies). Covered is what its page and CANN's header (DataCopyGM2UBSingleImpl) both say.
template <typename T>
ASCENDC_INLINE void rows_to_local_tiles(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const Nd2NzParams& p) {
  constexpr uint32_t c0 = 32 / sizeof(T), most = 255;
  const bool one = p.ndNum == 1 && p.dstNzNStride == 1 && p.srcNdMatrixStride == 0 && p.dstNzMatrixStride == 0;
  if (!one || sizeof(T) > 2 || (p.nValue > most && p.srcDValue != p.dValue))
    vnpu::unsupported("DataCopy",
                      "with Nd2NzParams to the Unified Buffer: one matrix of elements of 1 or 2 bytes, dstNzNStride 1, "
                      "strides of matrices 0, and at most 255 rows where srcDValue isn't dValue; of others the page "
                      "and CANN's header say different things");
  for (uint32_t column = 0; column < p.dValue; column += c0) {
    const uint32_t wide = column + c0 < p.dValue ? c0 : p.dValue - column;
    for (uint32_t row = 0; row < p.nValue; row += most) {
      const uint32_t rows = row + most < p.nValue ? most : p.nValue - row;
      const DataCopyExtParams shape(static_cast<uint16_t>(rows), wide * sizeof(T), (p.srcDValue - wide) * sizeof(T), 0,
                                    0);
      DataCopyPad(dst[column * p.dstNzC0Stride + row * c0], src[uint64_t(row) * p.dValue + column], shape,
                  DataCopyPadExtParams<T>{});
    }
  }
}
template <typename T>
ASCENDC_INLINE vnpu::RowsToTiles rows_to_tiles(const Nd2NzParams& p) {
  vnpu::RowsToTiles s;
  s.matrices = p.ndNum;
  s.rows = p.nValue;
  s.row_bytes = p.dValue * sizeof(T);
  s.row_stride = p.srcDValue * sizeof(T);
  s.matrix_stride = p.srcNdMatrixStride * sizeof(T);
  s.tile_row_stride = p.dstNzNStride * uint64_t(32);
  s.column_stride = p.dstNzC0Stride * uint64_t(32);
  s.tiled_matrix_stride = p.dstNzMatrixStride * sizeof(T);
  return s;
}
}  // namespace detail

// ---- GM -> L1, rows become tiles; of int4b_t bytes are counted, as the device moves bytes ----
template <typename T>
ASCENDC_INLINE void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const Nd2NzParams& p) {
  static_assert(detail::is_loaded_type<T>(),
                "AscendC::DataCopy with Nd2NzParams: this type is not covered by the virtual NPU");
  if (p.ndNum == 0 || p.nValue == 0 || p.dValue == 0) return;
  constexpr uint16_t most = 16384;  // AscendC reference, DataCopy with Nd2NzParams
  if (p.ndNum > 4095 || p.nValue > most || p.dstNzC0Stride > most || p.dstNzNStride > most)
    vnpu::misuse("DataCopy", "with Nd2NzParams ndNum is at most 4095, nValue, dstNzC0Stride and dstNzNStride 16384");
  vnpu::RowsToTiles s = detail::rows_to_tiles<T>(p);
  s.cached = src.IsCached();
  if (detail::memory_of(dst.position()) == vnpu::Memory::UB) {
    if constexpr (!vnpu::is_half_byte<T>) return detail::rows_to_local_tiles(dst, src, p);
  }
  if (detail::memory_of(dst.position()) != vnpu::Memory::L1)
    vnpu::misuse("DataCopy", "with Nd2NzParams the destination has to be in L1 or in the Unified Buffer");
  if (detail::is_l1_of_other(dst)) return vnpu::ask_for_l1(dst.pointer(), src.pointer(), s, "DataCopy");
  vnpu::copy_rows_to_tiles(dst.pointer(), src.pointer(), s, "DataCopy");
}
// ---- UB -> L1, of a vector core whose cube core copies for it; rows that follow each other ----
template <typename T>
ASCENDC_INLINE void DataCopy(const LocalTensor<T>& dst, const LocalTensor<T>& src, const Nd2NzParams& p) {
  if (!detail::is_l1_of_other(dst))
    vnpu::unsupported("DataCopy",
                      "with Nd2NzParams and two local tensors is for TSCM of a vector core in a mixed kernel");
  if (p.ndNum != 1 || p.srcDValue != p.dValue)
    vnpu::misuse("DataCopy",
                 "with Nd2NzParams from the Unified Buffer ndNum is 1, and rows follow each other without gaps");
  if (p.nValue == 0 || p.dValue == 0) return;
  vnpu::ask_for_l1_from_local(dst.pointer(), src.pointer(), detail::rows_to_tiles<T>(p), "DataCopy");
}

// Limit of LoadData: 3D: channels that fill whole blocks.

// ---- L1 -> L0A, L0B; GM -> L1, L0A, L0B ----
template <typename T>
ASCENDC_INLINE void LoadData(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LoadData2DParams& params) {
  static_assert(detail::is_loaded_type<T>(), "AscendC::LoadData of this type is not covered by the virtual NPU");
  vnpu::load_tiles(detail::memory_of(dst.position()), dst.pointer(), src.pointer_in(vnpu::Memory::L1),
                   detail::tile_load(params), vnpu::dtype_of<T>(), "LoadData");
}
template <typename T>
ASCENDC_INLINE void LoadData(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const LoadData2DParams& params) {
  static_assert(detail::is_tile_type<T>(),
                "AscendC::LoadData from global memory: this type is not covered by the virtual NPU, or not on "
                "architecture 2201");
  if (params.ifTranspose) vnpu::misuse("LoadData", "tiles from global memory can't be transposed on the way");
  vnpu::load_tiles_from_gm(detail::memory_of(dst.position()), dst.pointer(), src.pointer(), detail::tile_load(params),
                           "LoadData");
}
template <typename T>
ASCENDC_INLINE void LoadDataWithTranspose(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                                          const LoadData2dTransposeParams& p) {
  static_assert(detail::is_loaded_type<T>(),
                "AscendC::LoadDataWithTranspose of this type is not covered by the virtual NPU");
  vnpu::load_squares(detail::memory_of(dst.position()), dst.pointer(), src.pointer_in(vnpu::Memory::L1),
                     {p.startIndex, p.repeatTimes, p.srcStride, p.dstGap, p.dstFracGap, p.addrMode != 0},
                     vnpu::dtype_of<T>(), "LoadDataWithTranspose");
}

// `idx`: two bits for each element, of the same tiles. Tiles and indices lie without gaps.
template <typename T, typename U>
ASCENDC_INLINE void LoadDataWithSparse(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<U>& idx,
                                       const LoadData2DParams& p) {
  static_assert(std::is_same_v<T, int8_t> && std::is_same_v<U, uint8_t>,
                "AscendC::LoadDataWithSparse takes int8_t, and indices of uint8_t");
  vnpu::load_tiles_and_places(dst.pointer(), src.pointer(), idx.pointer(), p.startIndex, p.repeatTimes,
                              "LoadDataWithSparse");
}

// ---- constants ----
template <typename T>
ASCENDC_INLINE void Fill(const LocalTensor<T>& dst, const InitConstValueParams<T>& p) {
  static_assert(detail::is_tile_type<T>() && sizeof(T) >= 2, "AscendC::Fill takes types of 2 or 4 bytes");
  if (vnpu::asks_for_l1()) return;  // asc-devkit, dav_c220, InitL1BufferCal
  uint32_t value = 0;
  std::memcpy(&value, &p.initValue, sizeof(T));
  vnpu::fill_blocks(detail::memory_of(dst.position()), dst.pointer(), p.repeatTimes, p.blockNum, p.dstGap, value,
                    sizeof(T), "Fill");
}
// Its older name.
template <typename T>
ASCENDC_INLINE void InitConstValue(const LocalTensor<T>& dst, const InitConstValueParams<T>& p) {
  Fill(dst, p);
}

}  // namespace AscendC
