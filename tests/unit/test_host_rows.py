"""Tiling of SoftMax, LogSoftMax and RmsNorm, and temporary sizes of reductions and CumSum, asked by a host program.

The numbers are what the formulas of asc-devkit give for architecture 2201 (impl/adv_api/tiling), worked out by hand.
"""

from __future__ import annotations

import struct

import pytest

from ascendopt_tune.build.host import compile_host
from ascendopt_tune.build.toolkit import virtual
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.chip import load_chip
from ascendopt_tune.sources.project import load_project

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
_HOST = """
#include "ask_tiling.h"
#include "register/op_def_registry.h"
namespace optiling {
static ge::graphStatus Tiling(gert::TilingContext* context) {
  AskTilingData data;
  using namespace AscendC;
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
  context->SetBlockDim(1);
  data.SaveToBuffer(context->GetRawTilingData()->GetData(), context->GetRawTilingData()->GetCapacity());
  context->GetRawTilingData()->SetDataSize(data.GetDataSize());
  return ge::GRAPH_SUCCESS;
}
}
namespace ops {
class Ask : public OpDef {
 public:
  explicit Ask(const char* name) : OpDef(name) {
    this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
    this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
    this->AICore().SetTiling(optiling::Tiling);
    this->AICore().AddConfig("ascend910b");
  }
};
OP_ADD(Ask);
}
"""
_KERNEL = """
#include "kernel_operator.h"
extern "C" __global__ __aicore__ void ask(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {}
"""


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> list[int]:
    """The tiling data that the program decides, as 32-bit words."""
    folder = tmp_path_factory.mktemp("ask")
    for path, text in {
        "op_host/ask_tiling.h": _TILING_H, "op_host/ask.cpp": _HOST, "op_kernel/ask.cpp": _KERNEL
    }.items():  # fmt: skip
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text)
    operator = load_project(folder)
    program = compile_host(operator, operator.baseline, virtual(), tmp_path_factory.mktemp("built"))
    structs = {s.name for s in program.describe().tiling_structs}
    assert structs == {"AskTilingData", "SoftMaxTiling", "LogSoftMaxTiling", "RmsNormTiling"}
    x = TensorSpec("float32", (8,))
    data = program.tiling(Case((x,), (x,)), load_chip("ascend910b2")).data
    return list(struct.unpack(f"<{len(data) // 4}I", data))


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
