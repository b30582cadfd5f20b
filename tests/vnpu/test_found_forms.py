"""What kernels of people outside use that no operator here did: pools of buffers, structs by value, null pointers,
the device compiler's own spelling of __aicore__, preloaded lines, tiling data that are returned.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from ascendopt_tune.build.host import compile_host
from ascendopt_tune.build.toolkit import virtual
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.evaluate.gate import Checked, Gate
from ascendopt_tune.nouns.case import AttrValue, TensorSpec
from ascendopt_tune.nouns.chip import load_chip
from ascendopt_tune.nouns.outcome import Timed
from ascendopt_tune.sources.arguments import build_case, direct_signature
from ascendopt_tune.sources.project import load_direct, load_project

_POOLS = """
#include "kernel_operator.h"
using namespace AscendC;

extern "C" __global__ __aicore__ void pools(GM_ADDR x, GM_ADDR y, int32_t bytes) {
  TPipe pipe;
  TBufPool<TPosition::VECCALC> all;
  TBufPool<TPosition::VECCALC, 3> first, second;
  TQue<TPosition::VECIN, 1> in, in_again;
  TQue<TPosition::VECOUT, 1> out, out_again;
  TBuf<TPosition::VECCALC> kept, scratch;
  GlobalTensor<float> from, to;
  from.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(x), 128);
  to.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(y), 128);
  const uint32_t sizes[] = {2, 64};
  from.SetShapeInfo(ShapeInfo(2, sizes, DataFormat::ND));
  GlobalTensor<uint64_t> line;
  line.SetGlobalBuffer(reinterpret_cast<__gm__ uint64_t*>(x), 64);
  DataCachePreload(line, static_cast<int64_t>(64));
  const float last = from.GetValue(from.GetShapeInfo().shape[1] - 47);

  pipe.InitBufPool(all, 2048);
  all.InitBuffer(kept, 256);
  all.InitBufPool(first, bytes);
  all.InitBufPool(second, bytes, first);

  first.InitBuffer(in, 1, 256);
  first.InitBuffer(out, 1, 256);
  LocalTensor<float> value = in.AllocTensor<float>();
  DataCopy(value, from, 64);
  in.EnQue(value);
  value = in.DeQue<float>();
  LocalTensor<float> result = out.AllocTensor<float>();
  Exp(result, value, 64);
  Adds(kept.Get<float>(), value, last, 64);
  out.EnQue(result);
  in.FreeTensor(value);
  result = out.DeQue<float>();
  DataCopy(to, result, 64);
  out.FreeTensor(result);
  first.Reset();

  second.InitBuffer(in_again, 1, 256);
  second.InitBuffer(out_again, 1, 256);
  second.InitBuffer(scratch, 256);
  value = in_again.AllocTensor<float>();
  DataCopy(value, from[64], 64);
  in_again.EnQue(value);
  value = in_again.DeQue<float>();
  result = out_again.AllocTensor<float>();
  Adds(scratch.Get<float>(), kept.Get<float>(), 1.0f, 64);
  Add(result, value, scratch.Get<float>(), 64);
  out_again.EnQue(result);
  in_again.FreeTensor(value);
  result = out_again.DeQue<float>();
  DataCopy(to[64], result, 64);
  out_again.FreeTensor(result);
  second.Reset();
}
"""
_VALUES = """
#include "kernel_operator.h"
#define __aicore__ [aicore]
struct Part { int32_t first; uint8_t kind; float factor; int64_t count[2]; };
inline __aicore__ int64_t both(const Part& part) { return part.count[0] + part.count[1]; }

extern "C" __global__ __aicore__ void values(GM_ADDR x, GM_ADDR bias, GM_ADDR y, Part part) {
  REGISTER_TILING_DEFAULT(Part);
  AscendC::GlobalTensor<float> from, to;
  from.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(x));
  to.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(y));
  for (int64_t i = 0; i < both(part); i++)
    to.SetValue(i, from.GetValue(part.first + i) * part.factor + part.kind + (bias == nullptr ? 0.0f : 100.0f));
  AscendC::DataCacheCleanAndInvalid<float, AscendC::CacheLine::ENTIRE_DATA_CACHE>(to);
}
"""
_RETURNED = """
#include "register/tilingdata_base.h"
#include "register/op_def_registry.h"
namespace optiling {
BEGIN_TILING_DATA_DEF(Inner)
TILING_DATA_FIELD_DEF(uint32_t, rows);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(InnerOp, Inner)
BEGIN_TILING_DATA_DEF(Outer)
TILING_DATA_FIELD_DEF(uint32_t, length);
TILING_DATA_FIELD_DEF_STRUCT(Inner, inner);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(Kept, Outer)
static Outer made(uint32_t length) {
  Outer data;
  data.set_length(length);
  data.inner.set_rows(length + 1);
  return data;
}
static ge::graphStatus TilingFunc(gert::TilingContext* context) {
  Outer first = made(7);
  Outer second(first);
  second.set_length(8);
  first.inner.set_rows(100);
  second.SaveToBuffer(context->GetRawTilingData()->GetData(), context->GetRawTilingData()->GetCapacity());
  context->GetRawTilingData()->SetDataSize(second.GetDataSize());
  context->SetBlockDim(1);
  return ge::GRAPH_SUCCESS;
}
}  // namespace optiling
namespace ops {
class Kept : public OpDef {
 public:
  explicit Kept(const char* name) : OpDef(name) {
    this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
    this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
    this->AICore().SetTiling(optiling::TilingFunc);
    this->AICore().AddConfig("ascend910b");
  }
};
OP_ADD(Kept);
}  // namespace ops
"""
X = np.linspace(-2, 2, 128, dtype=np.float32)
SPEC = TensorSpec("float32", (128,))


@pytest.fixture(scope="module")
def evaluator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluator]:
    with Evaluator(virtual(), "ascend910b4", workers=1, build_dir=tmp_path_factory.mktemp("build")) as made:
        yield made


def _run(evaluator: Evaluator, folder: Path, name: str, text: str, attrs: dict[str, AttrValue], y: int) -> Checked:
    (folder / f"{name}.cpp").write_text(text)
    operator = load_direct(folder / f"{name}.cpp", name, 1)
    inputs, outputs = {"x": SPEC}, {"y": TensorSpec("float32", (y,))}
    signature = direct_signature(operator, inputs, outputs, attrs)
    case = build_case(signature, inputs, attrs, outputs, None)
    gate = Gate(operator, case, evaluator, signature=signature, arrays={"x": X})
    return gate.evaluate(operator.baseline)


def test_pools_that_share_a_part_take_turns(evaluator: Evaluator, tmp_path: Path) -> None:
    checked = _run(evaluator, tmp_path, "pools", _POOLS, {"bytes": 768}, 128)
    assert isinstance(checked.outcome, Timed), checked.outcome
    expected = np.concatenate([np.exp(X[:64]), X[64:] + X[:64] + X[17] + 1])
    np.testing.assert_allclose(checked.outputs["y"], expected, rtol=1e-6, atol=1e-6)


def test_a_pool_has_no_more_than_its_part(evaluator: Evaluator, tmp_path: Path) -> None:
    outcome = _run(evaluator, tmp_path, "pools", _POOLS, {"bytes": 480}, 128).outcome
    assert "the pool has less memory left" in getattr(outcome, "reason", ""), outcome


def test_structs_null_pointers_and_core_marks(evaluator: Evaluator, tmp_path: Path) -> None:
    checked = _run(evaluator, tmp_path, "values", _VALUES, {"bias": 0, "part": (5, 2, 0.5, 7, 9)}, 16)
    assert isinstance(checked.outcome, Timed), checked.outcome
    np.testing.assert_allclose(checked.outputs["y"], X[5:21] * np.float32(0.5) + 2, rtol=1e-6)


def test_tiling_data_are_copied_with_what_they_hold(tmp_path: Path) -> None:
    for part in ("op_host", "op_kernel"):
        (tmp_path / "kept" / part).mkdir(parents=True)
    (tmp_path / "kept" / "op_host" / "kept.cpp").write_text(_RETURNED)
    kernel = 'extern "C" __global__ __aicore__ void kept(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {}\n'
    (tmp_path / "kept" / "op_kernel" / "kept.cpp").write_text(kernel)
    operator = load_project(tmp_path / "kept")
    with closing(compile_host(operator, operator.baseline, virtual(), tmp_path / "out")) as program:
        case = build_case(program.describe().signature, {"x": SPEC}, {}, {"y": SPEC}, None)
        data = program.tiling(case, load_chip("ascend910b4")).data
    assert np.frombuffer(data, np.uint32).tolist()[::2] == [8, 8]
