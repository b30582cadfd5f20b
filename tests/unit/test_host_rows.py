"""Tiling of SoftMax, LogSoftMax and RmsNorm, and temporary sizes of reductions and CumSum, asked by a host program.

The numbers are what the formulas of asc-devkit give for architecture 2201 (impl/adv_api/tiling), worked out by hand.
"""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from ask_host import ask

_TILING_H = """
#include "register/tilingdata_base.h"
#include "tiling/tiling_api.h"
namespace optiling {
BEGIN_TILING_DATA_DEF(AskTilingData)
  TILING_DATA_FIELD_DEF_ARR(uint32_t, 34, sizes);
  TILING_DATA_FIELD_DEF_STRUCT(SoftMaxTiling, softmax);
  TILING_DATA_FIELD_DEF_STRUCT(LogSoftMaxTiling, logSoftmax);
  TILING_DATA_FIELD_DEF_STRUCT(RmsNormTiling, rmsNorm);
  TILING_DATA_FIELD_DEF_STRUCT(SoftMaxTiling, flash);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(Ask, AskTilingData)
}
"""
_BODY = """
  uint32_t n[34] = {};
  const ge::Shape rows({100, 64}), batch({2, 16, 64}), tall({300, 40});
  n[0] = GetSoftMaxMaxTmpSize(rows, 4, false);
  n[1] = GetSoftMaxMinTmpSize(rows, 4, false);
  n[2] = GetLogSoftMaxMaxTmpSize(rows, 2, false);
  n[3] = GetLogSoftMaxMinTmpSize(rows, 2, false);
  GetReduceMaxMaxMinTmpSize(tall, ge::DT_FLOAT, ReducePattern::RA, true, false, n[4], n[5]);
  GetReduceMaxMaxMinTmpSize(tall, ge::DT_FLOAT, ReducePattern::AR, true, false, n[6], n[7]);
  GetReduceMinMaxMinTmpSize(ge::Shape({3, 8}), ge::DT_FLOAT, ReducePattern::AR, true, false, n[8], n[9]);
  GetReduceMinMaxMinTmpSize(tall, ge::DT_FLOAT16, ReducePattern::RA, true, true, n[10], n[11]);
  GetReduceProdMaxMinTmpSize(tall, ge::DT_FLOAT, ReducePattern::AR, true, false, n[12], n[13]);
  GetReduceProdMaxMinTmpSize(ge::Shape({1, 32}), ge::DT_FLOAT, ReducePattern::AR, true, false, n[14], n[15]);
  GetCumSumMaxMinTmpSize(rows, 2, true, false, n[16], n[17]);
  GetCumSumMaxMinTmpSize(rows, 2, false, false, n[18], n[19]);
  GetRmsNormMaxMinTmpSize(batch, 4, n[20], n[21]);
  GetRmsNormMaxMinTmpSize(batch, 2, n[22], n[23]);
  const ge::Shape long_rows({24, 1024}), many({512, 64});
  n[24] = GetSoftMaxFlashV2MaxTmpSize(rows, 4, 4, true);
  n[25] = GetSoftMaxFlashV2MinTmpSize(rows, 4, 4, true);
  n[26] = GetSoftMaxFlashV2MaxTmpSize(rows, 2, 4, true);
  n[27] = GetSoftMaxFlashV2MinTmpSize(rows, 2, 2, false, false, true);
  n[28] = GetSoftMaxFlashV2MaxTmpSize(many, 4, 4, true, true);
  n[29] = GetSoftMaxFlashV2MinTmpSize(long_rows, 2, 4, true, true);
  tiling::SoftMaxTiling plain;
  SoftMaxFlashV2TilingFunc(many, 4, 4, 100 * 72 * 4, plain, true, true);
  n[30] = plain.splitM;
  n[31] = IsBasicBlockInSoftMax(plain, 4);
  SoftMaxFlashV2TilingFunc(rows, 4, 4, 30 * 72 * 4, data.flash, true);
  n[32] = IsBasicBlockInSoftMax(data.flash, 4);
  SoftMaxFlashV2TilingFunc(rows, 2, 2, 30 * (32 + 64 + 64) * 4, plain, true, false, true);
  n[33] = plain.splitM;
  data.set_sizes(n);
  SoftMaxTilingFunc(rows, 4, 30 * (8 + 64 + 64) * 4, data.softmax);
  LogSoftMaxTilingFunc(ge::Shape({96, 64}), 4, 30 * (8 + 64 + 64) * 4, data.logSoftmax);
  if (!GetRmsNormTilingInfo(batch, ge::Shape({2, 16, 60}), 4 * (5 * 64 + 8), 4, data.rmsNorm)) return ge::GRAPH_FAILED;
  RmsNormTiling other;
  if (GetRmsNormTilingInfo(batch, batch, 64, 4, other)) return ge::GRAPH_FAILED;                // too little room
  if (GetRmsNormTilingInfo(rows, rows, 65536, 4, other)) return ge::GRAPH_FAILED;               // not B, S, H
  if (GetRmsNormTilingInfo(tall, tall, 65536, 4, other, true)) return ge::GRAPH_FAILED;
"""


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> list[int]:
    """The tiling data that the program decides, as 32-bit words."""
    structs, found = ask(tmp_path_factory.mktemp("ask"), _TILING_H, _BODY)
    assert structs == {"AskTilingData", "SoftMaxTiling", "LogSoftMaxTiling", "RmsNormTiling"}
    return found


def test_temporary_sizes_of_rows(words: list[int]) -> None:
    assert words[:4] == [100 * 136 * 4, 136 * 4, 100 * (16 + 64 + 64) * 4, (16 + 64 + 64) * 4]
    assert words[4:12] == [256 * 160] * 2 + [300 * 32] * 2 + [0] * 4
    assert words[12:16] == [(32 + 300 * 8) * 4 + 256] * 2 + [(32 + 8) * 4 + 256] * 2
    assert words[16:20] == [112 * 64 * 6, 16 * 64 * 6, 25600, 25600]
    assert words[20:24] == [(2048 + 32) * 4, (64 + 8) * 4, (4096 + 32) * 4, (128 + 8) * 4]


def test_softmax_tiling(words: list[int]) -> None:
    # 100 rows are no groups of eight: 24 of the 30 that fit, and what is left
    assert words[34:50] == [100, 64, 6400, 100, 8, 800, 24, 64, 1536, 24, 8, 192, 4, 4, 256, 32]
    # 96 are: 24 divides them
    assert words[50:66] == [96, 64, 6144, 96, 8, 768, 24, 64, 1536, 24, 8, 192, 4, 0, 0, 0]


def test_rms_norm_tiling(words: list[int]) -> None:
    reciprocal = struct.unpack("<f", struct.pack("<I", words[70]))[0]
    assert reciprocal == pytest.approx(1 / 60)
    assert words[66:70] + words[71:78] == [2, 16, 64, 60, 320, 5, 8, 6, 1920, 128, 2]


def test_softmax_flash_tiling(words: list[int]) -> None:
    assert words[24:28] == [100 * 72 * 4, 72 * 4, 100 * (16 + 64 + 64) * 4, 16 * (32 + 64 + 64) * 4]
    # basic blocks: half of the rows until they are fewer than 256 repeats; rows of 1024 take a second repeat
    assert words[28:30] == [128 * 72 * 4, 8 * (8 + 1024 + 128) * 4]
    assert words[30:34] == [64, 1, 0, 16]
    assert words[78:94] == [100, 64, 6400, 100, 8, 800, 24, 64, 1536, 24, 8, 192, 4, 4, 256, 32]


_SHARED_H = """
#include "kernel_tiling/kernel_tiling.h"
#include "register/tilingdata_base.h"
namespace optiling {
struct Shared {  // as the kernel has it
  SoftMaxTiling softmax;
  uint32_t more;
  LogSoftMaxTiling logSoftmax;
};
}
#include "tiling/tiling_api.h"
namespace optiling {
BEGIN_TILING_DATA_DEF(AskTilingData)
  TILING_DATA_FIELD_DEF_ARR(uint32_t, 6, sizes);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(Ask, AskTilingData)
}
"""
_SHARED_BODY = """
  Shared shared{};
  SoftMaxTilingFunc(ge::Shape({100, 64}), 4, 30 * (8 + 64 + 64) * 4, shared.softmax);
  SoftMaxTiling registered;
  SoftMaxTilingFunc(ge::Shape({100, 64}), 4, 30 * (8 + 64 + 64) * 4, registered);
  LogSoftMaxTilingFunc(ge::Shape({96, 64}), 4, 30 * (8 + 64 + 64) * 4, shared.logSoftmax);
  uint32_t n[6] = {sizeof(shared), shared.softmax.splitM, registered.get_splitM(), uint32_t(registered.GetDataSize()),
                   shared.logSoftmax.srcM, shared.logSoftmax.splitM};
  data.set_sizes(n);
"""


def test_a_struct_in_front_of_tiling_api_has_the_kernels_tilings(tmp_path: Path) -> None:
    """ops-transformer's sparse_lightning_indexer_kl_loss_grad: in namespace optiling SoftMaxTiling is the tiling class
    behind that header, and the kernel's struct before it, as in CANN."""
    _, words = ask(tmp_path, _SHARED_H, _SHARED_BODY)
    assert words == [136, 24, 24, 64, 96, 24]
