"""A kernel that is launched by itself loads a struct of its own from global memory, as CANN's header lets it."""

from __future__ import annotations

from pathlib import Path

import ascendopt_tune  # noqa: F401  # isort: skip  (before torch, which loads torch_npu)
from direct_launch import Direct, run_kernel

from ascendopt_tune.build import toolkit
from ascendopt_tune.evaluate.evaluator import Evaluator

KERNEL = """
#include "kernel_operator.h"
using namespace AscendC;
struct Sizes { int32_t rows, columns; };
extern "C" __global__ __aicore__ void scale(GM_ADDR x, GM_ADDR tiling, GM_ADDR y) {
  GET_TILING_DATA_WITH_STRUCT(Sizes, shape, tiling);
  const uint32_t all = shape.rows * shape.columns;
  GlobalTensor<float> from, to;
  from.SetGlobalBuffer((__gm__ float*)x);
  to.SetGlobalBuffer((__gm__ float*)y);
  LocalTensor<float> t(TPosition::VECCALC, 0, all);
  DataCopy(t, from, all);
  SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
  WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
  Muls(t, t, float(shape.rows), all);
  SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
  WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
  DataCopy(to, t, all);
}
"""


def test_a_launched_kernel_loads_a_struct(tmp_path: Path) -> None:
    (tmp_path / "scale.cpp").write_text(KERNEL)
    direct = Direct("scale.cpp", "scale", 1, "x=float32[64] tiling=int32[2]", "y=float32[64]",
                    lambda x, tiling: x * int(tiling[0]), domain={"tiling": {"values": [4, 16]}})  # fmt: skip
    with Evaluator(toolkit.virtual(), workers=1, build_dir=tmp_path / "build") as evaluator:
        run_kernel(direct, evaluator, tmp_path)


IN_A_NAMESPACE = """
#include "kernel_operator.h"
namespace ops {
struct Shape { uint32_t all; };
namespace rows {
struct Sizes { float factor; uint32_t all; };
// A brace in words before it: namespace other.
template <typename T>
__global__ __aicore__ void scale(GM_ADDR x, GM_ADDR y, Sizes sizes) {
  AscendC::GlobalTensor<T> from, to;
  from.SetGlobalBuffer((__gm__ T*)x);
  to.SetGlobalBuffer((__gm__ T*)y);
  AscendC::LocalTensor<T> t(AscendC::TPosition::VECCALC, 0, sizes.all);
  AscendC::DataCopy(t, from, sizes.all);
  AscendC::SetFlag<AscendC::HardEvent::MTE2_V>(EVENT_ID0);
  AscendC::WaitFlag<AscendC::HardEvent::MTE2_V>(EVENT_ID0);
  AscendC::Muls(t, t, T(sizes.factor), sizes.all);
  AscendC::SetFlag<AscendC::HardEvent::V_MTE3>(EVENT_ID0);
  AscendC::WaitFlag<AscendC::HardEvent::V_MTE3>(EVENT_ID0);
  AscendC::DataCopy(to, t, sizes.all);
}
}  // namespace rows
}  // namespace ops
"""


def test_a_template_in_a_namespace_takes_its_struct_by_value(tmp_path: Path) -> None:
    (tmp_path / "scale.cpp").write_text(IN_A_NAMESPACE)
    direct = Direct("scale.cpp", "scale<half>", 1, "x=float16[64]", "y=float16[64]", lambda x: x * 2,
                    {"sizes": (2.0, 64)})  # fmt: skip
    with Evaluator(toolkit.virtual(), workers=1, build_dir=tmp_path / "build") as evaluator:
        run_kernel(direct, evaluator, tmp_path)
