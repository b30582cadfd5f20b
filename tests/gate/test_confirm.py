"""The last look at a winner: the whole gate in a fresh process, on inputs that no candidate has met."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ascendopt_tune.build import toolkit
from ascendopt_tune.evaluate import evaluator as evaluator_module
from ascendopt_tune.evaluate.evaluator import Evaluator, ProcessLimits
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.evaluate.protocol import ArrayFile, GateTrial
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.operator import Pair
from ascendopt_tune.nouns.outcome import Timed, WrongResult
from ascendopt_tune.sources.project import load_project

DATA = Path(__file__).parents[1] / "vnpu" / "data_evaluate"
KERNEL = "op_kernel/twice.cpp"
SPEC = TensorSpec("float32", (11,))


@pytest.fixture(scope="module")
def gate() -> Iterator[Gate]:
    with Evaluator(toolkit.virtual(), limits=ProcessLimits(run_s=20), workers=1) as evaluator:
        gate = Gate(load_project(DATA / "twice", ["--cce-auto-sync=off"]), Case((SPEC,), (SPEC,)), evaluator)
        assert isinstance(gate.evaluate(gate.operator.baseline).outcome, Timed)
        yield gate


def array(argument: object) -> np.ndarray:
    assert isinstance(argument, ArrayFile)
    return argument.load()


def literal(value: float) -> str:
    """A float in C++."""
    if np.isfinite(value):
        return f"{float(value).hex()}f"
    return '__builtin_nanf("")' if np.isnan(value) else f"{'-' if value < 0 else ''}__builtin_inff()"


def knows_the_answers(gate: Gate) -> Pair:
    """A kernel that tells the shown inputs apart by two elements, and writes the results it was given."""
    branches = []
    for trial in gate.trials():
        assert trial.expected is not None
        expected = ", ".join(map(literal, array(trial.expected[0])))
        first, last = (f"{float(array(trial.inputs[0])[i]).hex()}f" for i in (0, -1))
        told = f"first == {first} && last == {last}"
        branches.append(f"  if ({told}) {{ const float a[] = {{{expected}}}; Write(yGm, a); return; }}")
    kernel = f"""\
#include "kernel_operator.h"
using namespace AscendC;
__aicore__ inline void Write(GlobalTensor<float>& y, const float* a) {{
  for (int i = 0; i < {SPEC.numel}; i++) y.SetValue(i, a[i]);
}}
extern "C" __global__ __aicore__ void twice(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {{
  if (GetBlockIdx() != 0) return;
  GlobalTensor<float> xGm, yGm;
  xGm.SetGlobalBuffer((__gm__ float*)x);
  yGm.SetGlobalBuffer((__gm__ float*)y);
  const float first = xGm.GetValue(0), last = xGm.GetValue({SPEC.numel - 1});
{chr(10).join(branches)}
}}
"""
    return gate.operator.baseline.with_kernel(KERNEL, kernel)


def test_hard_coded_results_pass_on_the_shown_inputs_and_are_not_confirmed(gate: Gate) -> None:
    pair = knows_the_answers(gate)
    shown = gate.evaluate(pair).outcome
    assert isinstance(shown, Timed), shown
    outcome = gate.confirm(pair).outcome
    assert isinstance(outcome, WrongResult), outcome
    assert "nothing was written there" in outcome.reason


def test_the_original_is_confirmed(gate: Gate) -> None:
    confirmed = gate.confirm(gate.operator.baseline)
    assert isinstance(confirmed.outcome, Timed)
    assert confirmed.checks == len(gate.trials())


def test_it_runs_in_another_process_on_other_inputs(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    servers: list[int | None] = []
    trials: list[tuple[list[np.ndarray], ...]] = []

    class Seen(Evaluator):
        def evaluate(self, request):  # type: ignore[no-untyped-def]
            trials.append(tuple([array(a) for a in t.inputs] for t in request.trials))
            result = super().evaluate(request)
            servers.append(self.server_pid)
            return result

    monkeypatch.setattr(evaluator_module, "Evaluator", Seen)
    gate.confirm(gate.operator.baseline)
    assert None not in servers
    assert gate._evaluator.server_pid not in servers
    shown: tuple[GateTrial, ...] = gate.trials()
    for old, new in zip(shown, trials[-1], strict=True):
        if old.distribution != "zeros":
            assert not np.array_equal(array(old.inputs[0]), new[0])
