"""Tiling and temporary sizes of TopK and of the high-level Transpose, asked by a host program.

The numbers are what the formulas of asc-devkit give for architecture 2201 (impl/adv_api/tiling), worked out by hand.
"""

from __future__ import annotations

import pytest
from ask_host import ask

_TILING_H = """
#include "register/tilingdata_base.h"
#include "tiling/tiling_api.h"
namespace optiling {
BEGIN_TILING_DATA_DEF(AskTilingData)
  TILING_DATA_FIELD_DEF_ARR(uint32_t, 24, sizes);
  TILING_DATA_FIELD_DEF_STRUCT(TopkTiling, normal);
  TILING_DATA_FIELD_DEF_STRUCT(TopkTiling, narrow);
  TILING_DATA_FIELD_DEF_STRUCT(ConfusionTransposeTiling, matrix);
  TILING_DATA_FIELD_DEF_STRUCT(ConfusionTransposeTiling, swap);
  TILING_DATA_FIELD_DEF_STRUCT(ConfusionTransposeTiling, join);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(Ask, AskTilingData)
}
"""
_BODY = """
  uint32_t n[24] = {};
  const auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
  bool told = GetTopKMaxMinTmpSize(platform, 512, 3, false, true, TopKMode::TOPK_NORMAL, true, 4, n[0], n[1]);
  told = told && GetTopKMaxMinTmpSize(platform, 512, 3, false, false, TopKMode::TOPK_NORMAL, false, 2, n[2], n[3]);
  told = told && GetTopKMaxMinTmpSize(platform, 32, 5, false, false, TopKMode::TOPK_NSMALL, false, 2, n[4], n[5]);
  told = told && GetTopKMaxMinTmpSize(platform, 32, 5, false, true, TopKMode::TOPK_NSMALL, true, 4, n[6], n[7]);
  if (!told) return ge::GRAPH_FAILED;
  TopKConfig radix;
  radix.algo = TopKAlgo::RADIX_SELECT;  // of Ascend 950 alone
  if (GetTopKMaxMinTmpSize(512, 3, 4, false, true, TopKMode::TOPK_NORMAL, true, ge::DT_FLOAT, radix, n[8], n[9]))
    return ge::GRAPH_FAILED;
  TopKTilingFunc(platform, 512, 3, 10, 4, false, TopKMode::TOPK_NORMAL, true, data.normal);
  TopKTilingFunc(platform, 32, 5, 9, 2, true, TopKMode::TOPK_NSMALL, false, data.narrow);
  tiling::TopkTiling plain;
  TopKTilingFunc(platform, 512, 3, 10, 2, false, TopKMode::TOPK_NORMAL, true, plain);
  n[10] = plain.tmpLocalSize;
  n[11] = plain.srcIndexOffset;
  n[12] = plain.maskOffset;
  GetTransposeMaxMinTmpSize(ge::Shape({1, 2, 60, 32}), 2, 1, n[14], n[15]);
  GetConfusionTransposeMaxMinTmpSize(ge::Shape({1, 2, 64, 32}), 4, 6, n[16], n[17]);
  GetTransposeMaxMinTmpSize(ge::Shape({64, 32}), 4, 7, n[18], n[19]);
  data.set_sizes(n);
  GetConfusionTransposeOnlyTilingInfo(ge::Shape({64, 32}), 0, 4, data.matrix);
  GetTransposeTilingInfo(ge::Shape({3, 2, 60, 20}), 1536, 2, 1, data.swap);
  GetConfusionTransposeTilingInfo(ge::Shape({3, 2, 60, 20}), 0, 4, 5, data.join);
"""


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> list[int]:
    """The tiling data that the program decides, as 32-bit words."""
    structs, found = ask(tmp_path_factory.mktemp("ask"), _TILING_H, _BODY)
    assert structs == {"AskTilingData", "TopkTiling", "ConfusionTransposeTiling"}
    return found


def test_temporary_sizes(words: list[int]) -> None:
    assert words[:4] == [16 * 512] * 2 + [20 * 512] * 2
    assert words[4:8] == [160 * 8 + 64 + 2 * 160 * 4] * 2 + [160 * 8 + 64] * 2
    assert words[8:10] == [0, 0]
    assert words[14:20] == [64 * 16 * 2, 512, 2048, 2048, 0, 0]


def test_topk_tiling(words: list[int]) -> None:
    assert words[24:42] == [5 * 512, 3 * 512, 1024, 16, 128, 16, 16, 48, 20, 40, 2, 4, 6, 2, 1024, 1, 2048, 128]
    assert words[10:13] == [10 * 512, 8 * 512, 3 * 16]
    # Small mode, half, smallest: records, values turned round, patterns; nine records' bits
    narrow = words[52:80]
    assert narrow[:3] == [640 + 160 + 32, 160, 640]
    assert (narrow[7], narrow[18], narrow[19]) == (45, 800, 0)
    assert narrow[20:24] == [0, 0, 0x2AAAA, 0]
    assert narrow[24:28] == [0x1111_1111, 1, 0, 0]


def test_transpose_tiling(words: list[int]) -> None:
    assert words[80:86] == [8, 64, 32, 4, 64, 4]
    # 768 elements of temporary memory hold 48 of 64 rows of a tile
    assert words[98:114] == [16, 3, 2, 32, 64, 2, 768, 48, 1024, 1, 256, 2048, 4096, 64, 32, 3072]
    assert words[116:131] == [8, 3, 2, 20, 40, 3, 4, 2, 48, 1024, 768, 384, 4096, 3072, 2]
