"""Temporary sizes of composed high-level APIs, asked by a host program.

The numbers are what the formulas of asc-devkit give for architecture 2201 (impl/adv_api/tiling), worked out by hand.
"""

from __future__ import annotations

import struct
from pathlib import Path

from ascendopt_tune.build.host import compile_host
from ascendopt_tune.build.toolkit import virtual
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.chip import load_chip
from ascendopt_tune.sources.project import load_project

# A question, and (max, min); or, of one that returns a number, that.
_ASKED: dict[str, tuple[int, ...]] = {
    "GetSwishTmpSize(rows, 4, false, a, b)": (0, 0),
    "GetSiluTmpSize(rows, 2, false, a, b)": (0, 0),
    "GetSwiGLUMaxMinTmpSize(rows, 2, a, b, false)": (6 * 6400 * 2, 6 * 256),
    "GetSwiGLUMaxMinTmpSize(rows, 4, a, b, false)": (0, 0),
    "GetSwiGLUTmpBufferFactorSize(2, a, b)": (6, 0),
    "GetReGluMaxMinTmpSize(rows, 2, false, a, b)": (6 * 6400 * 2, 6 * 256),
    "GetReGluMaxMinTmpSize(rows, 4, false, a, b)": (256, 256),
    "GetGeGLUMaxMinTmpSize(few, 2, false, a, b)": (4 * 256, 4 * 256),
    "GetGeluMaxMinTmpSize(rows, 2, a, b)": (3 * 6400 * 4, 3 * 256),
    "GetGeluMaxMinTmpSize(few, 4, a, b)": (3 * 256, 3 * 256),
    "GetSumMaxMinTmpSize(6400, 4, false, a, b)": (416, 416),  # 100 repeats, whole blocks of 8
    "GetReduceSumMaxMinTmpSize(rows, ge::DT_FLOAT, ReducePattern::AR, true, false, a, b)": (0, 0),
    "GetReduceSumMaxMinTmpSize(wide, ge::DT_FLOAT, ReducePattern::AR, true, false, a, b)": (16 * 128 * 4,) * 2,
    "GetReduceSumMaxMinTmpSize(wide, ge::DT_FLOAT, ReducePattern::RA, true, false, a, b)": (8 * 256 * 4,) * 2,
    "GetReduceSumMaxMinTmpSize(wide, ge::DT_FLOAT, ReducePattern::RA, true, true, a, b)": (0, 0),
    # The documentation's own example, and rows that are no whole blocks.
    "GetBroadCastMaxMinTmpSize(platform, ge::Shape({1024, 1}), ge::Shape({1024, 16}), 2, false, a, b)": (
        1024 * 32, 16 * 32,
    ),
    "GetBroadCastMaxMinTmpSize(platform, ge::Shape({20, 1}), ge::Shape({20, 9}), 4, false, a, b)": (
        24 * 32 + 20 * 64, 8 * (32 + 64),
    ),
    "GetBroadCastMaxMinTmpSize(platform, ge::Shape({1, 32}), ge::Shape({20, 32}), 4, false, a, b)": (32, 32),
    "GetBroadCastMaxMinTmpSize(platform, ge::Shape({1, 32}), ge::Shape({20, 32}), 1, false, a, b)": (42 * 32 + 32,) * 2,
    "GetBroadCastMaxMinTmpSize(platform, ge::Shape({1}), ge::Shape({99}), 2, false, a, b)": (0, 0),
    "GetSelectWithBytesMaskMaxMinTmpSize(rows, one, 2, rows, 1, true, a, b)": (6400 * 2 + 512, 4096 * 2 + 512),
    "GetSelectWithBytesMaskMaxMinTmpSize(one, few, 2, ge::Shape({2, 32}), 1, false, a, b)": (1024 + 32,) * 2,
    "GetConcatTmpSize(platform, 64, 4)": (0,),
    "GetSortTmpSize(platform, 64, 4)": (512,),
    "GetSortTmpSize(platform, 64, 2)": (512,),
    "GetArithProgressionMaxMinTmpSize(a, b)": (0, 0),
    "GetPowerMaxMinTmpSize(rows, rows, false, 4, false, a, b)": (4 * 25600 + 256, 4 * 256 + 256),
    "GetPowerMaxMinTmpSize(rows, ge::Shape({1}), false, 2, false, a, b)": (14 * 12800 + 256, 7 * 256 + 256),
    "GetPowerMaxMinTmpSize(ge::Shape({1}), rows, true, 4, false, a, b)": (7 * 25600, 7 * 256),
    "GetPowerTmpBufferFactorSize(true, true, false, 2, a, b)": (14, 256),
    "GetExpMaxMinTmpSize(rows, 2, false, a, b)": (4 * 25600, 4 * 256),
    "GetExpMaxMinTmpSize(rows, 4, true, a, b)": (2 * 25600, 2 * 256),
    "GetExpTmpBufferFactorSize(2, a, b)": (8, 0),
    "GetLgammaMaxMinTmpSize(rows, 2, false, a, b)": (26 * 12800, 26 * 256),
    "GetLgammaTmpBufferFactorSize(2, a, b)": (13, 0),
}  # fmt: skip
_TILING_H = """
#include "register/tilingdata_base.h"
#include "tiling/tiling_api.h"
namespace optiling {
BEGIN_TILING_DATA_DEF(AskTilingData)
  TILING_DATA_FIELD_DEF_ARR(uint32_t, COUNT, sizes);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(Ask, AskTilingData)
}
"""
_HOST = """
#include "ask_tiling.h"
#include "register/op_def_registry.h"
namespace optiling {
struct AskCompileInfo {};
static ge::graphStatus Tiling(gert::TilingContext* context) {
  using namespace AscendC;
  AskTilingData data;
  uint32_t n[COUNT] = {}, *next = n, a = 0, b = 0;
  auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
  const ge::Shape rows({100, 64}), few({4, 8}), wide({16, 256}), one({1});
QUESTIONS
  data.set_sizes(n);
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
OP_ADD(Ask, optiling::AskCompileInfo);
}
"""
_KERNEL = """
#include "kernel_operator.h"
extern "C" __global__ __aicore__ void ask(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {}
"""


def test_temporary_sizes(tmp_path: Path) -> None:
    wanted = [n for answer in _ASKED.values() for n in answer]
    lines = [
        f"  {question}; *next++ = a; *next++ = b;" if len(answer) == 2 else f"  *next++ = {question};"
        for question, answer in _ASKED.items()
    ]
    host = _HOST.replace("QUESTIONS", "\n".join(lines))
    for path, text in {
        "op_host/ask_tiling.h": _TILING_H, "op_host/ask.cpp": host, "op_kernel/ask.cpp": _KERNEL
    }.items():  # fmt: skip
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text.replace("COUNT", str(len(wanted))))
    operator = load_project(tmp_path)
    program = compile_host(operator, operator.baseline, virtual(), tmp_path / "built")
    x = TensorSpec("float32", (8,))
    data = program.tiling(Case((x,), (x,)), load_chip("ascend910b2")).data
    found = iter(struct.unpack(f"<{len(data) // 4}I", data))
    answers = {question: tuple(next(found) for _ in answer) for question, answer in _ASKED.items()}
    assert answers == _ASKED
