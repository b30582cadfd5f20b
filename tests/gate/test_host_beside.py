"""A host program beside the kernel: what only it calls isn't judged; the same in the kernel is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from ascendopt_tune.build.toolkit import virtual
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.operator import ParamDef, Signature
from ascendopt_tune.nouns.outcome import CompileFailed, Outcome, Timed
from ascendopt_tune.sources.project import load_direct

TEXT = """\
#include <cstdio>
#include "kernel_operator.h"
bool Told(const char* path) {
  fprintf(stdout, "[ERROR] no such file\\n");
  return path != nullptr;
}
__global__ __vector__ void one(__gm__ uint8_t* x, __gm__ uint8_t* y) {
  AscendC::GlobalTensor<float> from, to;
  from.SetGlobalBuffer((__gm__ float*)x);
  to.SetGlobalBuffer((__gm__ float*)y);
  to.SetValue(0, from.GetValue(0));
  // here
}
int main() { return Told("input.bin") ? 0 : 1; }
"""


@pytest.mark.parametrize("called", ["", "Told(nullptr);"], ids=["by the host program", "by the kernel"])
def test_who_calls_decides(tmp_path: Path, called: str) -> None:
    file = tmp_path / "one.asc"
    file.write_text(TEXT.replace("// here", called))
    spec = TensorSpec("float32", (1,))
    signature = Signature("one", (ParamDef("x", ("float32",)),), (ParamDef("y", ("float32",)),), has_tiling=False)
    with Evaluator(virtual(), "ascend910b2", workers=1) as evaluator:
        operator = load_direct(file, "one", 1)
        outcome: Outcome = (
            Gate(operator, Case((spec,), (spec,)), evaluator, signature=signature).build(operator.baseline).outcome
        )
    if called:
        assert isinstance(outcome, CompileFailed), outcome
        assert "fwrite" in outcome.reason
    else:
        assert isinstance(outcome, Timed), outcome
