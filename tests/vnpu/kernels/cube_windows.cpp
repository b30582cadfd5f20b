// LoadData of a convolution's windows for test_cube_windows.py: what was loaded, times one, leaves as rows.
#include "kernel_operator.h"

using namespace AscendC;

template <typename T>
GlobalTensor<T> global(GM_ADDR p) {
  GlobalTensor<T> t;
  t.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(p));
  return t;
}
uint32_t Up(uint32_t a, uint32_t b) { return (a + b - 1) / b * b; }

struct WindowCase {
  uint32_t bytes, height, width, channels, left, right, top, bottom;  // bytes: of the image
  uint32_t firstRow, rows, firstColumn, columns;
  uint32_t stepX, stepY, windowW, windowH, dilationX, dilationY;
  uint32_t toB, transpose, by;  // by: registers are set by 0 the call, 1 and 2 (the packed form) the kernel
  uint32_t repeatStride, repeatTimes, repeatMode, boundary;
  uint32_t m, n, k;   // of the product with one
  uint32_t leaveOut;  // bit 0 MTE2_MTE1, bit 1 MTE1_M, bit 2 SetFmatrix
  int32_t padding;
};

constexpr IsResetLoad3dConfig kNothing = {false, false};

template <typename T>
void Load(const LocalTensor<T>& l0, const LocalTensor<T>& image, const WindowCase& p) {
  const uint8_t pad[4] = {uint8_t(p.left), uint8_t(p.right), uint8_t(p.top), uint8_t(p.bottom)};
  SetLoadDataRepeat(LoadDataRepeatParam(p.repeatStride, p.repeatTimes, p.repeatMode));
  SetLoadDataBoundary(p.boundary);
  if (p.by != 0) {
    if (!(p.leaveOut & 4)) SetFmatrix(p.height, p.width, pad, FmatrixMode::FMATRIX_LEFT);
    SetLoadDataPaddingValue(static_cast<T>(p.padding));
  }
  if (p.by == 2) {
    LoadData3DParamsV2Pro pro;
    pro.channelSize = p.channels;
    pro.enTranspose = p.transpose;
    pro.extConfig = uint64_t(p.firstRow) << 48 | uint64_t(p.firstColumn) << 32 | uint64_t(p.rows) << 16 | p.columns;
    pro.filterConfig = uint64_t(p.dilationY) << 40 | uint64_t(p.dilationX) << 32 | uint64_t(p.windowH) << 24 |
                       p.windowW << 16 | p.stepY << 8 | p.stepX;
    return LoadData(l0, image, pro);
  }
  const LoadData3DParamsV2<T> v2(pad, p.height, p.width, p.channels, p.columns, p.rows, p.firstColumn, p.firstRow,
                                 p.stepX, p.stepY, p.windowW, p.windowH, p.dilationX, p.dilationY, p.transpose, false,
                                 static_cast<T>(p.padding), false, false, false);
  if (p.by == 1)
    LoadData<T, kNothing>(l0, image, v2);
  else
    LoadData(l0, image, v2);
}

template <HardEvent event>
void Order(bool leftOut) {
  if (leftOut) return;
  SetFlag<event>(EVENT_ID0);
  WaitFlag<event>(EVENT_ID0);
}

template <typename T, typename C>
void Windows(GM_ADDR image, GM_ADDR one, GM_ADDR out, const WindowCase& p) {
  LocalTensor<T> l1(TPosition::A1, 0, 262144 / sizeof(T)), ones(TPosition::B1, 262144, 262144 / sizeof(T));
  LocalTensor<T> a2(TPosition::A2, 0, 65536 / sizeof(T)), b2(TPosition::B2, 0, 65536 / sizeof(T));
  LocalTensor<C> c(TPosition::CO1, 0, 131072 / sizeof(C));
  constexpr uint32_t c0 = 32 / sizeof(T);
  DataCopy(l1, global<T>(image), p.bytes / sizeof(T));
  // kDirectionAlign takes two of float's columns of fractals at a time from L0A.
  const uint32_t tall = Up(p.toB ? p.m : p.n, 16), wide = Up(p.k, p.toB && p.transpose ? 16 : c0) / c0;
  DataCopy(ones, global<T>(one), Nd2NzParams(1, p.k, p.k, 0, p.k, tall, 1, 0));
  Order<HardEvent::MTE2_MTE1>(p.leaveOut & 1);
  if (p.toB) {
    Load(b2, l1, p);
    for (uint32_t i = 0; i < tall / 16; i++)
      LoadData(a2[i * wide * 16 * c0], ones[i * 16 * c0], LoadData2DParams(0, wide, tall / 16, 0, 0, false, 0));
  } else {
    Load(a2, l1, p);
    LoadData(b2, ones, LoadData2DParams(0, tall / 16 * wide, 1, 0, 0, false, 0));
  }
  Order<HardEvent::MTE1_M>(p.leaveOut & 2);
  MmadParams product(p.m, p.n, p.k, 0, false, true);
  product.kDirectionAlign = p.transpose;
  Mmad(c, a2, b2, product);
  Order<HardEvent::M_FIX>(false);
  Fixpipe<C, C, CFG_ROW_MAJOR>(global<C>(out), c, FixpipeParamsV220(p.n, p.m, Up(p.m, 16), p.n, false));
}
extern "C" __global__ __cube__ void windows_float16(GM_ADDR image, GM_ADDR one, GM_ADDR out, WindowCase p) {
  Windows<half, float>(image, one, out, p);
}
extern "C" __global__ __cube__ void windows_bfloat16(GM_ADDR image, GM_ADDR one, GM_ADDR out, WindowCase p) {
  Windows<bfloat16_t, float>(image, one, out, p);
}
extern "C" __global__ __cube__ void windows_float32(GM_ADDR image, GM_ADDR one, GM_ADDR out, WindowCase p) {
  Windows<float, float>(image, one, out, p);
}
extern "C" __global__ __cube__ void windows_int8(GM_ADDR image, GM_ADDR one, GM_ADDR out, WindowCase p) {
  Windows<int8_t, int32_t>(image, one, out, p);
}
// To L0B, which takes none of them.
extern "C" __global__ __cube__ void windows_wrong(GM_ADDR image, GM_ADDR one, GM_ADDR out, WindowCase p) {
  LocalTensor<int8_t> l1(TPosition::A1, 0, 1024), b2(TPosition::B2, 0, 1024);
  Load(b2, l1, p);
}

// One load, alone.
extern "C" __global__ __cube__ void windows_alone(GM_ADDR out, WindowCase p) {
  LocalTensor<half> l1(TPosition::A1, 0, 32768), a2(TPosition::A2, 0, 32768), b2(TPosition::B2, 0, 32768);
  Fill(l1, InitConstValueParams<half>(1, 2048, 0, half(1)));
  PipeBarrier<PIPE_ALL>();
  Load(p.toB ? b2 : a2, l1, p);
}
