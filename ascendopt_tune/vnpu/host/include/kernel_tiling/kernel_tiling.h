// What a structure shared by tiling function and kernel includes: the integer types, the tiling of the high-level
// matrix multiplication, of SoftMax, Transpose and TopK, and what operators of several chips keep for their
// communication, opaque and of CANN's size.
#pragma once
#include <cstdint>

#include "kernel_tiling/cube_tiling_data.h"
#include "kernel_tiling/norm_tiling_data.h"
#include "kernel_tiling/softmax_tiling_data.h"
#include "kernel_tiling/sort_tiling_data.h"
#include "kernel_tiling/transform_data.h"

using AscendC::tiling::BatchNormTiling;
using AscendC::tiling::ConfusionTransposeTiling;
using AscendC::tiling::DeepNormTiling;
using AscendC::tiling::GroupNormTiling;
using AscendC::tiling::LayerNormGradBetaTiling;
using AscendC::tiling::LayerNormGradTiling;
using AscendC::tiling::LayerNormSeparateTiling;
using AscendC::tiling::LayerNormTiling;
using AscendC::tiling::LogSoftMaxTiling;
using AscendC::tiling::PadTiling;
using AscendC::tiling::RmsNormTiling;
using AscendC::tiling::SoftMaxTiling;
using AscendC::tiling::TCubeTiling;
using AscendC::tiling::TopkTiling;
using AscendC::tiling::UnPadTiling;

struct Mc2InitTiling {
  uint8_t reserved[64] = {};
};

struct Mc2CcTiling {
  uint8_t reserved[280] = {};
};
