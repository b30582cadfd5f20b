"""A host program that is asked something: its tiling data are the answers."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

from ascendopt_tune.build.host import compile_host
from ascendopt_tune.build.toolkit import virtual
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.chip import load_chip
from ascendopt_tune.sources.project import load_project

_HOST = """
#include "ask_tiling.h"
#include "register/op_def_registry.h"
namespace optiling {
struct AskCompileInfo {};
static ge::graphStatus Tiling(gert::TilingContext* context) {
  AskTilingData data;
  using namespace AscendC;
BODY
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
_SIZES = """
#include "register/tilingdata_base.h"
#include "tiling/tiling_api.h"
namespace optiling {
BEGIN_TILING_DATA_DEF(AskTilingData)
  TILING_DATA_FIELD_DEF_ARR(uint32_t, COUNT, sizes);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(Ask, AskTilingData)
}
"""
_KERNEL = """
#include "kernel_operator.h"
extern "C" __global__ __aicore__ void ask(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {}
"""


def answers(folder: Path, asked: Mapping[str, Sequence[int]], setup: str) -> dict[str, tuple[int, ...]]:
    """What the functions of host programs answer, for each question in C++ as many numbers as ``asked`` has: a call
    that sets ``a`` and ``b``, or an expression. ``setup``: statements before them, which have ``platform``."""
    count = str(sum(map(len, asked.values())))
    lines = [f"  uint32_t n[{count}] = {{}}, *next = n, a = 0, b = 0;"]
    lines.append("  auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());")
    lines.append(setup)
    for question, expected in asked.items():
        lines.append(f"  {question}; *next++ = a; *next++ = b;" if len(expected) == 2 else f"  *next++ = {question};")
    lines.append("  data.set_sizes(n);")
    _, words = ask(folder, _SIZES.replace("COUNT", count), "\n".join(lines))
    found = iter(words)
    return {question: tuple(next(found) for _ in expected) for question, expected in asked.items()}


def ask(folder: Path, tiling_h: str, body: str) -> tuple[set[str], list[int]]:
    """Names of the tiling structs, and the tiling data as 32-bit words.

    ``tiling_h`` defines ``AskTilingData``; ``body`` fills ``data``, of that class.
    """
    texts = {"op_host/ask_tiling.h": tiling_h, "op_host/ask.cpp": _HOST.replace("BODY", body)}
    for path, text in {**texts, "op_kernel/ask.cpp": _KERNEL}.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text)
    operator = load_project(folder)
    program = compile_host(operator, operator.baseline, virtual(), folder / "built")
    structs = {s.name for s in program.describe().tiling_structs}
    x = TensorSpec("float32", (8,))
    data = program.tiling(Case((x,), (x,)), load_chip("ascend910b2")).data
    return structs, list(struct.unpack(f"<{len(data) // 4}I", data))
