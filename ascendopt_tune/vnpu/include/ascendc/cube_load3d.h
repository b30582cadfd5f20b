// Cube cores: LoadData of the places of a convolution's window, and its registers (AscendC reference, LoadData 3D).
#pragma once
#include "cube_load.h"
#include "vnpu/cube_windows.h"

namespace AscendC {

constexpr int32_t PAD_SIZE = 4;
enum class FmatrixMode : uint8_t { FMATRIX_LEFT = 0, FMATRIX_RIGHT = 1 };

// padList: left, right, top, bottom. Positions and extensions in rows and elements of the matrix of windows.
template <typename T>
struct LoadData3DParamsV2 {
  LoadData3DParamsV2() = default;
  LoadData3DParamsV2(const uint8_t pad[PAD_SIZE], uint16_t height, uint16_t width, uint16_t channels, uint16_t kExtent,
                     uint16_t mExtent, uint16_t kStart, uint16_t mStart, uint8_t stepW, uint8_t stepH, uint8_t windowW,
                     uint8_t windowH, uint8_t dilationW, uint8_t dilationH, bool transpose, bool smallK, T padding,
                     bool wideW = false, bool wideH = false, bool right = false)
      : l1H(height),
        l1W(width),
        channelSize(channels),
        kExtension(kExtent),
        mExtension(mExtent),
        kStartPt(kStart),
        mStartPt(mStart),
        strideW(stepW),
        strideH(stepH),
        filterW(windowW),
        filterH(windowH),
        dilationFilterW(dilationW),
        dilationFilterH(dilationH),
        enTranspose(transpose),
        enSmallK(smallK),
        padValue(padding),
        filterSizeW(wideW),
        filterSizeH(wideH),
        fMatrixCtrl(right) {
    for (int32_t i = 0; i < PAD_SIZE; i++) padList[i] = pad[i];
  }
  uint8_t padList[PAD_SIZE] = {0};
  uint16_t l1H = 0, l1W = 0, channelSize = 0, kExtension = 0, mExtension = 0, kStartPt = 0, mStartPt = 0;
  uint8_t strideW = 1, strideH = 1, filterW = 1, filterH = 1, dilationFilterW = 1, dilationFilterH = 1;
  bool enTranspose = false, enSmallK = false;
  T padValue{};
  bool filterSizeW = false, filterSizeH = false;  // 256 more
  bool fMatrixCtrl = false;
};
// The same in packed fields: m and k position and extension; dilation, filter and stride, height above width.
struct LoadData3DParamsV2Pro {
  LoadData3DParamsV2Pro() = default;
  LoadData3DParamsV2Pro(uint16_t channels, bool transpose, bool smallK, bool wideW, bool wideH, bool right,
                        uint64_t extent, uint64_t filter)
      : channelSize(channels),
        enTranspose(transpose),
        enSmallK(smallK),
        filterSizeW(wideW),
        filterSizeH(wideH),
        fMatrixCtrl(right),
        extConfig(extent),
        filterConfig(filter) {}
  uint16_t channelSize = 0;
  bool enTranspose = false, enSmallK = false, filterSizeW = false, filterSizeH = false, fMatrixCtrl = false;
  uint64_t extConfig = 0;
  uint64_t filterConfig = 0x10101010101;
};
template <typename T>
struct LoadData3DParamsV1 {
  static_assert(!std::is_same_v<T, T>,
                "AscendC::LoadData with LoadData3DParamsV1 does not exist on architecture 2201 (Atlas A2 and A3), "
                "which the virtual NPU models");
};
struct LoadDataRepeatParam {
  LoadDataRepeatParam() = default;
  LoadDataRepeatParam(uint16_t stride, uint8_t times, uint8_t mode)
      : repeatStride(stride), repeatTime(times), repeatMode(mode) {}
  uint16_t repeatStride = 0;
  uint8_t repeatTime = 1, repeatMode = 0;
};
// Which registers a call sets itself.
struct IsResetLoad3dConfig {
  bool isSetFMatrix = true, isSetPadding = true;
};
inline constexpr IsResetLoad3dConfig IS_RESER_LOAD3D_DEFAULT_CONFIG = {true, true};
inline constexpr IsResetLoad3dConfig CONV3D_LOAD3DV2_DEFAULT_CONFIG = {true, true};

namespace detail {
template <typename T>
ASCENDC_INLINE void load_windows(const LocalTensor<T>& dst, const LocalTensor<T>& src, const vnpu::WindowLoad& load,
                                 bool small) {
  static_assert(is_loaded_type<T>(), "AscendC::LoadData of this type is not covered by the virtual NPU");
  if (small) vnpu::misuse("LoadData", "enSmallK does not exist on architecture 2201");
  vnpu::load_windows(memory_of(dst.position()), dst.pointer(), src.pointer_in(vnpu::Memory::L1), load,
                     vnpu::dtype_of<T>(), "LoadData");
}
template <typename T>
uint32_t padding_bits(T value) {
  if constexpr (vnpu::is_half_byte<T>) {
    return (value.bits & 15) * 0x1111u;
  } else if constexpr (sizeof(T) == 1) {
    const auto byte = static_cast<uint8_t>(value);
    return byte | static_cast<uint32_t>(byte) << 8;
  } else {
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof value < sizeof bits ? sizeof value : sizeof bits);
    return bits;
  }
}
}  // namespace detail

// ---- registers ----
// The reference names FMATRIX_LEFT alone. CANN's own code for 2201 (asc-devkit, conv3d_bp_input) and catlass describe
// the right matrix by the other register, which fMatrixCtrl then chooses.
ASCENDC_INLINE void SetFmatrix(uint16_t l1H, uint16_t l1W, const uint8_t padList[4], const FmatrixMode& fmatrixMode) {
  vnpu::set_window_image({l1H, l1W, padList[0], padList[1], padList[2], padList[3]},
                         fmatrixMode == FmatrixMode::FMATRIX_RIGHT);
}
// Its name in the toolkit's inner headers.
ASCENDC_INLINE void Load3DSetFMatrixCal(uint16_t l1H, uint16_t l1W, const uint8_t padList[4]) {
  SetFmatrix(l1H, l1W, padList, FmatrixMode::FMATRIX_LEFT);
}
ASCENDC_INLINE void Load3DSetFMatrixBCal(uint16_t l1H, uint16_t l1W, const uint8_t padList[4]) {
  SetFmatrix(l1H, l1W, padList, FmatrixMode::FMATRIX_RIGHT);
}
template <typename T>
ASCENDC_INLINE void SetLoadDataPaddingValue(const T padValue) {
  vnpu::set_window_padding(detail::padding_bits(padValue));
}
ASCENDC_INLINE void SetLoadDataBoundary(uint32_t boundaryValue) { vnpu::set_window_boundary(boundaryValue); }
ASCENDC_INLINE void SetLoadDataRepeat(const LoadDataRepeatParam& p) {
  vnpu::set_window_repeat(p.repeatStride, p.repeatTime, p.repeatMode != 0);
}

// What a configuration in a function becomes (runtime/rtc_constants.cpp): g++ 12 fails on one that is an argument
// there.
namespace detail {
template <bool sets_image, bool sets_padding>
inline constexpr IsResetLoad3dConfig kLoad3dConfig = {sets_image, sets_padding};
}  // namespace detail

// ---- L1 -> L0A, L0B ----
template <typename T, const IsResetLoad3dConfig& defaultConfig = IS_RESER_LOAD3D_DEFAULT_CONFIG, typename U = T>
ASCENDC_INLINE void LoadData(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LoadData3DParamsV2<U>& p) {
  static_assert(std::is_same_v<T, U>, "AscendC::LoadData: the padding's type has to be the tensors'");
  if constexpr (defaultConfig.isSetFMatrix) SetFmatrix(p.l1H, p.l1W, p.padList, FmatrixMode::FMATRIX_LEFT);
  if constexpr (defaultConfig.isSetPadding) SetLoadDataPaddingValue(p.padValue);
  vnpu::WindowLoad w;
  w.channels = p.channelSize;
  w.first_row = p.mStartPt;
  w.rows = p.mExtension;
  w.first_column = p.kStartPt;
  w.columns = p.kExtension;
  w.step_y = p.strideH;
  w.step_x = p.strideW;
  w.window_h = p.filterH + (p.filterSizeH ? 256u : 0u);
  w.window_w = p.filterW + (p.filterSizeW ? 256u : 0u);
  w.dilation_y = p.dilationFilterH;
  w.dilation_x = p.dilationFilterW;
  w.transpose = p.enTranspose;
  w.right_image = p.fMatrixCtrl;
  detail::load_windows(dst, src, w, p.enSmallK);
}
template <typename T>
ASCENDC_INLINE void LoadData(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LoadData3DParamsV2Pro& p) {
  const auto byte = [&](uint32_t shift) { return static_cast<uint32_t>(p.filterConfig >> shift & 0xff); };
  const auto word = [&](uint32_t shift) { return static_cast<uint32_t>(p.extConfig >> shift & 0xffff); };
  vnpu::WindowLoad w;
  w.channels = p.channelSize;
  w.first_row = word(48);
  w.rows = word(16);
  w.first_column = word(32);
  w.columns = word(0);
  w.step_y = byte(8);
  w.step_x = byte(0);
  w.window_h = byte(24) + (p.filterSizeH ? 256u : 0u);
  w.window_w = byte(16) + (p.filterSizeW ? 256u : 0u);
  w.dilation_y = byte(40);
  w.dilation_x = byte(32);
  w.transpose = p.enTranspose;
  w.right_image = p.fMatrixCtrl;
  detail::load_windows(dst, src, w, p.enSmallK);
}

}  // namespace AscendC
