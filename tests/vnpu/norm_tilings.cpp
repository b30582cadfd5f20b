// Tilings and temporary sizes of the normalizing APIs, for tests that ask with numbers.
#include <cstring>

#include "tiling/tiling_api.h"

using namespace AscendC;

namespace {

template <typename Plain, typename Class>
void same(const Plain& plain, const Class& held, uint32_t* words) {
  Plain saved;
  held.SaveToBuffer(&saved, sizeof saved);
  if (held.GetDataSize() != sizeof plain || std::memcmp(&saved, &plain, sizeof plain) != 0) std::abort();
  std::memcpy(words, &plain, sizeof plain);
}

}  // namespace

// `w`: bytes of temporary memory, size of the type, reuse, then the shape. Words of the tiling; whether there is one.
extern "C" int layer_norm(const int32_t* w, uint32_t* words) {
  const ge::Shape shape({w[3], w[4], w[5], w[6]});
  tiling::LayerNormTiling plain;
  optiling::LayerNormTiling held;
  GetLayerNormNDTilingInfo(shape, w[0], w[1], w[2] != 0, plain);
  GetLayerNormNDTillingInfo(shape, w[0], w[1], w[2] != 0, held);
  same(plain, held, words);
  return plain.oneTmpSize > 0;
}
extern "C" int layer_norm_rstd(const int32_t* w, uint32_t* words) {
  tiling::LayerNormSeparateTiling plain;
  optiling::LayerNormSeparateTiling held;
  GetLayerNormNDTilingInfo(ge::Shape({w[3], w[4]}), w[0], w[1], w[2] != 0, true, plain);
  GetLayerNormNDTilingInfo(ge::Shape({w[3], w[4]}), w[0], w[1], w[2] != 0, true, held);
  same(plain, held, words);
  return plain.oneTmpSize > 0;
}
extern "C" int layer_norm_grad(const int32_t* w, uint32_t* words) {
  const ge::Shape shape({w[3], w[4], w[5], w[6]});
  tiling::LayerNormGradTiling plain;
  optiling::LayerNormGradTiling held;
  GetLayerNormGradNDTilingInfo(shape, w[0], w[1], w[2] != 0, plain);
  GetLayerNormGradNDTilingInfo(shape, w[0], w[1], w[2] != 0, held);
  same(plain, held, words);
  return plain.oneCalSize > 0;
}
extern "C" int layer_norm_grad_beta(const int32_t* w, uint32_t* words) {
  const ge::Shape shape({w[3], w[4], w[5], w[6]});
  tiling::LayerNormGradBetaTiling plain;
  optiling::LayerNormGradBetaTiling held;
  GetLayerNormGradBetaNDTilingInfo(shape, w[0], w[1], w[2] != 0, plain);
  GetLayerNormGradBetaNDTilingInfo(shape, w[0], w[1], w[2] != 0, held);
  same(plain, held, words);
  return plain.oneCalSize > 0;
}
// And the number of batches, and whether it is in basic blocks.
extern "C" int batch_norm(const int32_t* w, uint32_t* words) {
  const ge::Shape shape({w[3], w[4], w[5]}), origin({w[6], w[4], w[5]});
  tiling::BatchNormTiling plain;
  optiling::BatchNormTiling held;
  const bool there = GetBatchNormNDTilingInfo(shape, origin, w[0], w[1], w[2] != 0, plain, w[7] != 0);
  if (there != GetBatchNormNDTilingInfo(shape, origin, w[0], w[1], w[2] != 0, held, w[7] != 0)) std::abort();
  same(plain, held, words);
  return there;
}
// And the valid elements of a row, and whether it is in basic blocks.
extern "C" int deep_norm(const int32_t* w, uint32_t* words) {
  const ge::Shape shape({w[3], w[4], w[5]}), origin({w[3], w[4], w[6]});
  tiling::DeepNormTiling plain;
  optiling::DeepNormTiling held;
  const bool there = GetDeepNormTilingInfo(shape, origin, w[0], w[1], w[2] != 0, w[7] != 0, plain);
  if (there != GetDeepNormTilingInfo(shape, origin, w[0], w[1], w[2] != 0, w[7] != 0, held)) std::abort();
  same(plain, held, words);
  return there;
}
// And the number of groups.
extern "C" int group_norm(const int32_t* w, uint32_t* words) {
  const ge::Shape shape({w[3], w[4], w[5], w[6]});
  tiling::GroupNormTiling plain;
  optiling::GroupNormTiling held;
  GetGroupNormNDTilingInfo(shape, w[0], w[1], w[2] != 0, w[7], plain);
  GetGroupNormNDTilingInfo(shape, w[0], w[1], w[2] != 0, w[7], held);
  same(plain, held, words);
  return plain.oneTmpSize > 0;
}

// The most and the least bytes of temporary memory; `w` without them.
extern "C" int layer_norm_sizes(const int32_t* w, uint32_t* most) {
  GetLayerNormMaxMinTmpSize(ge::Shape({w[2], w[3], w[4], w[5]}), w[0], w[1] != 0, most[0], most[1]);
  return 1;
}
extern "C" int layer_norm_rstd_sizes(const int32_t* w, uint32_t* most) {
  GetLayerNormMaxMinTmpSize(ge::Shape({w[2], w[3]}), w[0], w[1] != 0, true, false, most[0], most[1]);
  return 1;
}
// The second number is the size of gamma's type.
extern "C" int normalize_sizes(const int32_t* w, uint32_t* most) {
  GetNormalizeMaxMinTmpSize(ge::Shape({w[2], w[3]}), w[1], w[0], false, true, false, most[0], most[1]);
  return 1;
}
extern "C" int update_sizes(const int32_t* w, uint32_t* most) {
  GetWelfordUpdateMaxMinTmpSize(ge::Shape({w[2], w[3]}), w[0], 4, w[1] != 0, false, most[0], most[1]);
  return 1;
}
extern "C" int finalize_sizes(const int32_t* w, uint32_t* most) {
  GetWelfordFinalizeMaxMinTmpSize(ge::Shape({w[2]}), w[0], w[1] != 0, most[0], most[1]);
  return 1;
}
extern "C" int layer_norm_grad_sizes(const int32_t* w, uint32_t* most) {
  GetLayerNormGradMaxMinTmpSize(ge::Shape({w[2], w[3], w[4], w[5]}), w[0], w[1] != 0, most[0], most[1]);
  return 1;
}
extern "C" int layer_norm_grad_beta_sizes(const int32_t* w, uint32_t* most) {
  GetLayerNormGradBetaMaxMinTmpSize(ge::Shape({w[2], w[3], w[4], w[5]}), w[0], w[1] != 0, most[0], most[1]);
  return 1;
}
extern "C" int batch_norm_sizes(const int32_t* w, uint32_t* most) {
  const ge::Shape shape({w[2], w[3], w[4]}), origin({w[5], w[3], w[4]});
  return GetBatchNormMaxMinTmpSize(shape, origin, w[0], w[1] != 0, most[0], most[1], w[6] != 0);
}
extern "C" int deep_norm_sizes(const int32_t* w, uint32_t* most) {
  return GetDeepNormMaxMinTmpSize(ge::Shape({w[2], w[3], w[4]}), w[0], w[1] != 0, w[6] != 0, most[0], most[1]);
}
extern "C" int group_norm_sizes(const int32_t* w, uint32_t* most) {
  GetGroupNormMaxMinTmpSize(ge::Shape({w[2], w[3], w[4], w[5]}), w[0], w[1] != 0, w[6], most[0], most[1]);
  return 1;
}

// `w`: bytes, size of the type, whether the sums alone, or an update, then rows and columns.
extern "C" int softmax_grad(const int32_t* w, uint32_t* words) {
  tiling::SoftMaxTiling plain;
  optiling::SoftMaxTiling held;
  SoftMaxGradTilingFunc(ge::Shape({w[3], w[4]}), w[1], w[0], plain, w[2] != 0);
  SoftMaxGradTilingFunc(ge::Shape({w[3], w[4]}), w[1], w[0], held, w[2] != 0);
  same(plain, held, words);
  return plain.splitM > 0;
}
extern "C" int softmax_flash(const int32_t* w, uint32_t* words) {
  tiling::SoftMaxTiling plain;
  optiling::SoftMaxTiling held;
  SoftMaxFlashTilingFunc(ge::Shape({w[3], w[4]}), w[1], w[0], plain, w[2] != 0);
  SoftMaxFlashTilingFunc(ge::Shape({w[3], w[4]}), w[1], w[0], held, w[2] != 0);
  same(plain, held, words);
  return plain.splitM > 0;
}
extern "C" int softmax_grad_sizes(const int32_t* w, uint32_t* most) {
  most[0] = GetSoftMaxGradMaxTmpSize(ge::Shape({w[2], w[3]}), w[0], w[1] != 0, false);
  most[1] = GetSoftMaxGradMinTmpSize(ge::Shape({w[2], w[3]}), w[0], w[1] != 0, false);
  return 1;
}
extern "C" int softmax_flash_sizes(const int32_t* w, uint32_t* most) {
  most[0] = GetSoftMaxFlashMaxTmpSize(ge::Shape({w[2], w[3]}), w[0], w[1] != 0, false);
  most[1] = GetSoftMaxFlashMinTmpSize(ge::Shape({w[2], w[3]}), w[0], w[1] != 0, false);
  return 1;
}
