"""Unmodified operators on cube cores beside published times, and what their sources need of the virtual NPU.

With a checkout of ops-transformer (``ASCENDOPT_OPS_TRANSFORMER``) CANN's GroupedMatmul runs: its values against the
formula, and a row against what docs/cube_time.md says.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_cube import default_options, device, launch

import ascendopt_tune  # noqa: F401  # isort: skip  (before torch, which loads torch_npu)
import torch

from ascendopt_tune.build import toolkit
from ascendopt_tune.errors import DeviceError, KernelCompileError
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.fidelity import operators
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.chip import DEFAULT_CHIP, FLUSHED, WARM
from ascendopt_tune.nouns.outcome import Timed
from ascendopt_tune.settings import settings
from ascendopt_tune.sources.project import load_project

__all__ = ["default_options"]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "cube_time.md"


def test_rows_are_read_and_asked_for_by_name() -> None:
    rows = operators.read(operators.ON_CUBES)
    assert len({r.id for r in rows}) == len(rows) == 26
    assert all(r.task_duration_us > 0 and r.repository in operators.checkouts() for r in rows)
    assert not {r.id for r in rows} & {r.id for r in operators.known([])}
    assert operators.chosen(["grouped_matmul"], operators.known(["grouped_matmul"])) == rows[:14]


def multiply_groups(x: Any, weight: Any, bias: Any, *rest: Any, transpose_weight: bool, **_: Any) -> Any:
    """Each group's rows, which end where the list says, by its matrix."""
    ends, out, begin = rest[4].tolist(), [], 0
    for group, end in enumerate(ends):
        w = weight[0][group].double()
        product = x[0][begin:end].double() @ (w.T if transpose_weight else w)
        out.append(product + bias[0][group].double() if bias[0].numel() else product)
        begin = end
    return [torch.cat(out)]


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("biased", [False, True])
def test_values_of_canns_grouped_matmul(tmp_path: Path, turned: bool, biased: bool) -> None:
    checkout = settings().ops_transformer
    if checkout is None:
        pytest.skip("ASCENDOPT_OPS_TRANSFORMER is not set")
    ends, k, n = [40, 40, 67], 96, 160
    none = [("uint64", 0), ("float32", 0), ("float16", 0), ("float16", 0)]
    inputs = ((TensorSpec("float16", (ends[-1], k)),),
              (TensorSpec("float16", (3, n, k) if turned else (3, k, n)),),
              (TensorSpec("float16", (3, n) if biased else (0,)),),
              *((TensorSpec(dtype, (size,)),) for dtype, size in none),
              TensorSpec("int64", (3,)), None)  # fmt: skip
    attrs = {"split_item": 2, "dtype": 0, "transpose_weight": turned, "transpose_x": False, "group_type": 0,
             "group_list_type": 0, "act_type": 0}  # fmt: skip
    case = Case(inputs, ((TensorSpec("float16", (ends[-1], n)),),), tuple(attrs.items()))
    operator = load_project(checkout / "gmm/grouped_matmul")
    domain = {"group_list": {"values": ends}}
    operator = replace(operator, reference=multiply_groups, settings={**operator.settings, "domain": domain})
    with Evaluator(toolkit.virtual(), DEFAULT_CHIP, workers=1) as evaluator:
        signature = evaluator.describe(operator).signature
        outcome = Gate(operator, case, evaluator, signature=signature).evaluate(operator.baseline).outcome
    assert isinstance(outcome, Timed), outcome
    assert outcome.profile.kind == "aic"


@pytest.mark.parametrize("name", ["grouped_matmul/18", "grouped_matmul/12"])
def test_a_row_is_what_the_page_says(name: str) -> None:
    if settings().ops_transformer is None:
        pytest.skip("ASCENDOPT_OPS_TRANSFORMER is not set")
    (one,) = operators.run(operators.chosen([name], operators.known([name])))
    line = next(text for text in PAGE.read_text().splitlines() if text.startswith(f"| {name} |"))
    for state, said in zip((FLUSHED, WARM), re.findall(r"\| ([\d.]+) \| [+-]", line), strict=True):
        assert f"{one.profiles[state].task_duration_us:.1f}" == said


# ---- what such sources have that the reference doesn't ask for ----

HEAD = """
#include "kernel_operator.h"
using namespace AscendC;
"""
FORMS = (
    HEAD
    + """
#define ON_THE_CORE __forceinline__ [aicore]
#define ON_BOTH __forceinline__ [host, aicore]
struct Cell {
  ON_THE_CORE Cell(int value) : value_(value) {}
  ON_THE_CORE
  ~Cell() {}
  ON_BOTH static int next(const int* numbers, int aicore) { return numbers[aicore] + 1; }
  int value_;
};
extern "C" __global__ __aicore__ void forms(GM_ADDR out) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  SetNextTaskStart();
  WaitPreTaskEnd();
  const int numbers[] = {3, 4};
  Cell cell(Cell::next(numbers, 1));
  GlobalTensor<int32_t> y;
  y.SetGlobalBuffer((__gm__ int32_t*)out);
  y.SetValue(0, cell.value_);
}
"""
)


def test_attributes_in_brackets_and_tasks_that_are_fused() -> None:
    """`[aicore]` is an attribute, an index of that name stays one; calls for fused kernels do nothing."""
    binary = device().load(device().compile(FORMS, "forms.cpp", []))
    out = np.zeros(8, np.int32)
    launch("forms", [], out, binary=binary)
    assert out[0] == 5


NEVER = (
    HEAD
    + """
template <typename T>
struct Copier {
  __aicore__ inline void raw(uint64_t word, T* from, T* to) {
    set_fpc(word);
    set_nd_para(word);
    copy_matrix_cc_to_gm(to, from, 0);
  }
};
extern "C" __global__ __aicore__ void never(GM_ADDR out) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
  %s
}
"""
)


def test_instructions_below_the_api_are_known_and_refused_where_they_are_called() -> None:
    device().compile(NEVER % "Copier<half> copier; (void)copier;", "never.cpp", [])
    with pytest.raises(KernelCompileError, match="set_fpc is not covered"):
        device().compile(NEVER % "Copier<half>().raw(0, nullptr, nullptr);", "never.cpp", [])


HALVES = (
    HEAD
    + """
extern "C" __global__ __aicore__ void halves(GM_ADDR out) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
  LocalTensor<half> a(TPosition::A2, 0, 256), b(TPosition::B2, 0, 256), c(TPosition::CO1, 0, 256);
  MmadParams p;
  p.m = p.n = p.k = 16;
  Mmad(c, a, b, p);
}
"""
)


def test_a_product_of_halves_to_halves_compiles_and_is_refused_at_the_call() -> None:
    binary = device().load(device().compile(HALVES, "halves.cpp", []))
    with pytest.raises(DeviceError, match="half to half is not on architecture 2201"):
        launch("halves", [], np.zeros(8, np.float16), binary=binary)
