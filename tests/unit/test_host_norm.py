"""Tilings and temporary sizes of the normalizing APIs and of SoftmaxGrad, asked by a host program.

The numbers are what the formulas of asc-devkit give for architecture 2201 (impl/adv_api/tiling/normalization and
activation), worked out by hand.
"""

from __future__ import annotations

import struct

import pytest
from ask_host import ask

_TILING_H = """
#include "register/tilingdata_base.h"
#include "tiling/tiling_api.h"
namespace optiling {
BEGIN_TILING_DATA_DEF(AskTilingData)
  TILING_DATA_FIELD_DEF_ARR(uint32_t, 30, sizes);
  TILING_DATA_FIELD_DEF_STRUCT(LayerNormTiling, layerNorm);
  TILING_DATA_FIELD_DEF_STRUCT(LayerNormSeparateTiling, rstd);
  TILING_DATA_FIELD_DEF_STRUCT(LayerNormGradTiling, grad);
  TILING_DATA_FIELD_DEF_STRUCT(LayerNormGradBetaTiling, gradBeta);
  TILING_DATA_FIELD_DEF_STRUCT(BatchNormTiling, batch);
  TILING_DATA_FIELD_DEF_STRUCT(DeepNormTiling, deep);
  TILING_DATA_FIELD_DEF_STRUCT(GroupNormTiling, group);
  TILING_DATA_FIELD_DEF_STRUCT(SoftMaxTiling, softmax);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(Ask, AskTilingData)
}
"""
_BODY = """
  uint32_t n[30] = {};
  const ge::Shape batch({2, 16, 64, 60}), rows({10, 50}), bsh({2, 16, 64}), images({2, 8, 5, 2});
  GetLayerNormMaxMinTmpSize(batch, 4, false, n[0], n[1]);
  GetLayerNormMaxMinTmpSize(batch, 4, true, n[2], n[3]);
  GetLayerNormMaxMinTmpSize(rows, 2, false, true, false, n[4], n[5]);
  GetNormalizeMaxMinTmpSize(rows, 4, 4, false, true, false, n[6], n[7]);
  GetWelfordUpdateMaxMinTmpSize(ge::Shape({1, 100}), 2, 4, false, false, n[8], n[9]);
  GetWelfordUpdateMaxMinTmpSize(ge::Shape({1, 100}), 4, 4, true, false, n[10], n[11]);
  GetWelfordFinalizeMaxMinTmpSize(ge::Shape({104}), 4, false, n[12], n[13]);
  GetLayerNormGradMaxMinTmpSize(batch, 4, false, n[14], n[15]);
  GetLayerNormGradMaxMinTmpSize(batch, 2, false, n[16], n[17]);
  GetLayerNormGradBetaMaxMinTmpSize(batch, 2, false, n[18], n[19]);
  GetBatchNormMaxMinTmpSize(bsh, bsh, 4, false, n[20], n[21]);
  GetDeepNormMaxMinTmpSize(bsh, 4, true, false, n[22], n[23]);
  GetGroupNormMaxMinTmpSize(images, 4, false, 4, n[24], n[25]);
  n[26] = GetSoftMaxGradMaxTmpSize(ge::Shape({100, 64}), 2, false, false);
  n[27] = GetSoftMaxGradMinTmpSize(ge::Shape({100, 64}), 4, true, false);
  n[28] = GetBatchNormMaxMinTmpSize(ge::Shape({7, 1, 64}), ge::Shape({7, 1, 64}), 4, false, n[29], n[29], true);
  data.set_sizes(n);
  GetLayerNormNDTilingInfo(batch, 4096, 2, false, data.layerNorm);
  GetLayerNormNDTilingInfo(rows, 4096, 4, false, true, data.rstd);
  GetLayerNormGradNDTilingInfo(batch, 12288, 4, false, data.grad);
  GetLayerNormGradBetaNDTilingInfo(batch, 4096, 2, false, data.gradBeta);
  if (!GetBatchNormNDTilingInfo(bsh, bsh, 16384, 4, false, data.batch)) return ge::GRAPH_FAILED;
  if (GetBatchNormNDTilingInfo(bsh, bsh, 1024, 4, false, data.batch)) return ge::GRAPH_FAILED;
  if (!GetDeepNormTilingInfo(bsh, bsh, 8192, 4, true, true, data.deep)) return ge::GRAPH_FAILED;
  if (GetDeepNormTilingInfo(bsh, bsh, 512, 4, true, false, data.deep)) return ge::GRAPH_FAILED;
  GetGroupNormNDTilingInfo(images, 1024, 4, false, 4, data.group);
  SoftMaxGradTilingFunc(ge::Shape({100, 64}), 4, 30 * (16 + 64 + 64) * 4, data.softmax);
"""


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> list[int]:
    """The tiling data that the program decides, as 32-bit words."""
    structs, found = ask(tmp_path_factory.mktemp("ask"), _TILING_H, _BODY)
    names = "LayerNorm LayerNormSeparate LayerNormGrad LayerNormGradBeta BatchNorm DeepNorm GroupNorm SoftMax"
    assert structs == {"AskTilingData", *(f"{name}Tiling" for name in names.split())}
    return found


def as_float(word: int) -> float:
    number: float = struct.unpack("<f", struct.pack("<I", word))[0]
    return number


def test_temporary_sizes_of_norms(words: list[int]) -> None:
    rows = 2 * 16 * 64 * 4
    assert words[:4] == [3 * rows + 256, 3 * 256 + 256, 2 * rows + 256, 2 * 256 + 256]
    # 10 rows of 50 half, which with their rest are 64 (of float 56): 4 rows of Normalize, and the variances
    assert words[4:8] == [2 * 256 + 2 * 16 * 256 + 64, 4 * 256 + 64, 2 * 224 + 2 * 16 * 224, 2 * 224]
    assert words[8:14] == [2 * 768, 768, 2 * 256, 256, (2 * 64 + 2 * 104) * 4, 1024]
    assert words[14:18] == [6 * 64 * 64 * 4, 6 * rows, 9 * 64 * 64 * 2, 9 * rows // 2]
    assert words[18:22] == [4 * rows, 4 * 256, 3 * rows + 2 * 4096, 3 * 2 * 32 + 2 * 4096]
    # planes of 10 floats take 16; 2 channels are a group
    assert words[22:26] == [2 * rows + 256, 2 * 256 + 256, 3 * 2 * 8 * 16 * 4 + 64, 3 * 2 * 16 * 4 + 64]
    assert words[26:29] == [100 * (32 + 3 * 64 + 64) * 4, (8 + 64 + 64) * 4, 0]


def test_layer_norm_tilings(words: list[int]) -> None:
    # half: 64 of the 1024 floats are means and variances; 5 rows of 64 fit three times
    t = words[30:56]
    assert t[:13] == [2, 16, 64, 60, 2048, 32, 3, 0, 32, 32, 32, 1024, 320]
    assert t[13:25] == [64, 384, 704, 6, 320, 128, 1920, 5, 2, 30, 320, 5]
    assert as_float(t[25]) == pytest.approx(1 / 60)
    # 10 rows of 56 with 50 valid: 16 floats of variances, 9 rows twice
    t = words[56:82]
    assert t[:6] == [10, 50, 0, 0, 0, 0]
    assert t[6:16] == [560, 10, 2, 0, 16, 1024, 504, 16, 520, 0]
    assert t[16:25] == [1, 504, 56, 504, 9, 1, 9, 504, 9]
    assert as_float(t[25]) == pytest.approx(1 / 50)


def test_gradient_tilings(words: list[int]) -> None:
    # 3072 floats: 512 six times, 8 rows of 64
    t = words[82:112]
    assert t[:10] == [12288, 2, 16, 64, 60, 512, 8, 4, 0, 0]
    assert t[10:28] == [0, 512, 512, 512, 1024, 512, 1536, 512, 2048, 512, 2560, 512, 0, 512, 0, 512, 0, 512]
    assert as_float(t[28]) == pytest.approx(1 / 60)
    assert as_float(t[29]) == pytest.approx(2 / 60)
    # 1024 floats, 128 of them for sums, the rest for 7 rows twice
    t = words[112:132]
    assert t[:9] == [1024, 2, 16, 64, 60, 2048, 32, 448, 2]
    assert t[9:20] == [4, 256, 1792, 4, 448, 7, 0, 64, 128, 576, 0, 0][:11]


def test_tilings_of_batches_and_groups(words: list[int]) -> None:
    # 4096 floats, 1365 three times: whole blocks of 2 * 8
    t = words[132:152]
    assert t[:16] == [2, 1024, 0, 1024, 4096, 1360, 0, 1360, 2720, 1, 688, 680, 344, 680, 1360, 680]
    assert (as_float(t[16]), t[17:]) == (0.5, [4, 85, 64])
    # reuse keeps two: 1024 each, 16 rows of 64
    t = words[152:178]
    assert t[:7] == [2, 16, 64, 64, 2048, 32, 2]
    assert t[11:25] == [2048, 1024, 0, 1024, 2048, 2, 1024, 0, 2048, 16, 0, 32, 1024, 16]
    # 256 floats, 85 three times: two groups of 32
    t = words[178:208]
    assert t[:10] == [2, 8, 10, 4, 2, 16, 32, 256, 8, 3]
    assert t[14:28] == [256, 64, 0, 64, 128, 4, 64, 0, 256, 2, 0, 8, 64, 2]
    assert as_float(t[28]) == pytest.approx(1 / 20)
    assert t[29] & 255 == 1
    assert words[208:224] == [100, 64, 6400, 100, 8, 800, 24, 64, 1536, 24, 8, 192, 4, 4, 256, 32]
