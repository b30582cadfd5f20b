// Umbrella header of the tiling interfaces. The classes of the high-level APIs' tilings are names of namespace optiling
// where this is included, and only there: a struct that kernel and host share, written in that namespace before it,
// has the plain structs of kernel_tiling/kernel_tiling.h in it.
#pragma once
#include "tiling/tiling_interfaces.h"

namespace optiling {
using api_tilings::BatchNormTiling;
using api_tilings::ConfusionTransposeTiling;
using api_tilings::DeepNormTiling;
using api_tilings::GroupNormTiling;
using api_tilings::LayerNormGradBetaTiling;
using api_tilings::LayerNormGradTiling;
using api_tilings::LayerNormSeparateTiling;
using api_tilings::LayerNormTiling;
using api_tilings::LogSoftMaxTiling;
using api_tilings::PadTiling;
using api_tilings::RmsNormTiling;
using api_tilings::SoftMaxTiling;
using api_tilings::TCubeTiling;
using api_tilings::TopkTiling;
using api_tilings::UnPadTiling;
}  // namespace optiling
