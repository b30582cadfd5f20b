"""The gate on real kernels: the good one passes, each broken one fails for its own reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ascendopt_tune.build import toolkit
from ascendopt_tune.errors import CaseError, HostProgramError
from ascendopt_tune.evaluate.evaluator import Evaluator, ProcessLimits
from ascendopt_tune.evaluate.execute import LaunchPlan, measure
from ascendopt_tune.evaluate.gate import Checked, Gate
from ascendopt_tune.evaluate.outputs import shared_arrays
from ascendopt_tune.evaluate.protocol import ArrayFile
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.operator import Operator, Pair
from ascendopt_tune.nouns.outcome import (
    CompileFailed,
    Deadlock,
    Hazard,
    LaunchFailed,
    OutOfBounds,
    Timed,
    WrongResult,
    outcome_from_json,
    outcome_to_json,
)
from ascendopt_tune.sources.project import load_direct, load_project

DATA = Path(__file__).parent / "data_evaluate"
KERNEL, HOST = "op_kernel/twice.cpp", "op_host/twice.cpp"
CASE = Case((TensorSpec("float16", (37, 129)),), (TensorSpec("float16", (37, 129)),))


@pytest.fixture(scope="module")
def operator() -> Operator:
    # The reference works on anything that can be multiplied, so that no torch is needed here.
    return replace(load_project(DATA / "twice", ["--cce-auto-sync=off"]), reference=None)


@pytest.fixture(scope="module")
def evaluator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluator]:
    with Evaluator(
        toolkit.virtual(), limits=ProcessLimits(run_s=20), workers=2, build_dir=tmp_path_factory.mktemp("build")
    ) as e:
        yield e


@pytest.fixture(scope="module")
def gate(operator: Operator, evaluator: Evaluator) -> Gate:
    return Gate(operator, CASE, evaluator)


def changed(pair: Pair, path: str, old: str, new: str) -> Pair:
    text = {**pair.kernel, **pair.tiling}[path]
    assert old in text
    if path in pair.kernel:
        return pair.with_kernel(path, text.replace(old, new))
    return pair.with_tiling(path, text.replace(old, new))


def kernel_with(gate: Gate, old: str, new: str) -> Checked:
    return gate.evaluate(changed(gate.operator.baseline, KERNEL, old, new))


def line_of(operator: Operator, text: str) -> int:
    return next(i for i, line in enumerate(operator.baseline.kernel[KERNEL].splitlines(), 1) if text in line)


def test_the_good_kernel_is_timed_and_correct(gate: Gate) -> None:
    checked = gate.evaluate(gate.operator.baseline)
    assert isinstance(checked.outcome, Timed), checked.outcome
    assert checked.outcome.profile.task_duration_us > 0
    assert checked.profile is not None
    assert checked.profile.block_dim == 4
    assert checked.checks >= 5
    assert set(checked.timings_s) == {"compile", "tiling", "execute", "launch", "launch_cpu", "check"}
    first = gate.trials()[0].inputs[0]
    assert not isinstance(first, tuple)
    assert first is not None
    np.testing.assert_array_equal(checked.outputs["y"], first.load() * np.float16(2))
    assert checked.tiling is not None
    assert checked.tiling.block_dim == 4
    assert checked.binary.startswith(b"\x7fELF")


def test_a_changed_tiling_program_finds_the_kernel_compiled(gate: Gate) -> None:
    gate.evaluate(gate.operator.baseline)
    other = gate.evaluate(changed(gate.operator.baseline, HOST, "TILE = 1024", "TILE = 1024 / 2"))
    assert isinstance(other.outcome, Timed)
    assert other.result.reused == ("kernel",)
    again = gate.evaluate(changed(gate.operator.baseline, HOST, "TILE = 1024", "TILE = 1024 / 2"))
    assert again.result.reused == ("tiling", "kernel")


def test_another_number_in_the_tiling_program_compiles_nothing(gate: Gate) -> None:
    baseline = gate.evaluate(gate.operator.baseline)
    other = gate.evaluate(changed(gate.operator.baseline, HOST, "TILE = 1024", "TILE = 512"))
    assert other.result.reused == ("tiling", "kernel")
    assert baseline.tiling is not None
    assert other.tiling is not None
    assert other.tiling.data != baseline.tiling.data


def test_modelled_time_is_the_same_every_time(gate: Gate) -> None:
    pairs = dict.fromkeys(range(3), gate.operator.baseline)
    times = {c.outcome.profile.task_duration_us for _, c in gate.evaluate_many(pairs) if isinstance(c.outcome, Timed)}
    assert len(times) == 1


def test_wrong_result(gate: Gate) -> None:
    outcome = kernel_with(gate, "Add(yLocal, xLocal, xLocal, count)", "Mul(yLocal, xLocal, xLocal, count)").outcome
    assert isinstance(outcome, WrongResult)
    assert "output y" in outcome.reason
    assert "expected" in outcome.reason
    assert "seed" in outcome.reason


def test_a_process_that_copied_expected_values_serves_no_more(operator: Operator, evaluator: Evaluator) -> None:
    """Another candidate's process would be forked from it, and could find them."""

    def processes() -> set[str]:
        pid = evaluator.server_pid
        return set(Path(f"/proc/{pid}/task/{pid}/children").read_text().split())

    gate = Gate(operator, CASE, evaluator)
    wrong = changed(operator.baseline, KERNEL, "Add(yLocal, xLocal, xLocal", "Mul(yLocal, xLocal, xLocal")
    assert isinstance(gate.evaluate(operator.baseline).outcome, Timed)
    before = processes()
    assert isinstance(gate.evaluate(operator.baseline).outcome, Timed)
    assert before & processes()  # equal bytes are compared where they are
    for _ in range(evaluator.workers + 1):
        assert isinstance(gate.evaluate(wrong).outcome, WrongResult)
    assert not before & processes()


def test_tail_that_is_one_element_short(gate: Gate) -> None:
    last = "count = end - at < t.tile ? end - at"
    outcome = kernel_with(gate, last, f"{last} - 1").outcome
    assert isinstance(outcome, WrongResult)
    assert "nothing was written there" in outcome.reason


def test_read_past_the_end(gate: Gate, operator: Operator) -> None:
    outcome = kernel_with(gate, "xGm[at], params", "xGm[at + 512], params").outcome
    assert isinstance(outcome, OutOfBounds), outcome
    assert f"{KERNEL}:{line_of(operator, 'xGm[at]')} " in outcome.reason


def test_write_behind_the_output(gate: Gate) -> None:
    # Inside the allocation, so the launch itself goes through.
    old = "PipeBarrier<PIPE_ALL>();"
    new = old + "\n    if (end == t.total) { yGm.SetValue((t.total + 15) / 16 * 16, DTYPE_X(1)); }"
    outcome = kernel_with(gate, old, new).outcome
    assert isinstance(outcome, OutOfBounds), outcome
    assert "behind y" in outcome.reason


def test_write_to_an_input(gate: Gate) -> None:
    outcome = kernel_with(gate, "DataCopyPad(yGm[at], yLocal, params);", "DataCopyPad(yGm[at], yLocal, params);"
                          "DataCopyPad(xGm[at], yLocal, params);").outcome  # fmt: skip
    assert isinstance(outcome, OutOfBounds | Hazard), outcome
    if isinstance(outcome, OutOfBounds):
        assert "the input x" in outcome.reason


def test_missing_synchronization_names_both_accesses(gate: Gate, operator: Operator) -> None:
    lines = "    SetFlag<HardEvent::MTE2_V>(EVENT_ID0);\n    WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);\n"
    checked = kernel_with(gate, lines, "\n\n")
    outcome = checked.outcome
    assert isinstance(outcome, Hazard), outcome
    assert f"{KERNEL}:{line_of(operator, 'DataCopyPad(xLocal')} " in outcome.reason
    assert f"{KERNEL}:{line_of(operator, 'Add(yLocal')} " in outcome.reason
    assert "MTE2_V" in outcome.reason
    assert "UB bytes" in outcome.reason
    assert checked.hazards
    assert checked.hazards[0]["memory"] == "UB"


def test_cores_that_write_the_same_need_no_order(gate: Gate) -> None:
    # Every core computes everything: the writes meet, their bytes don't differ.
    everything = ("const uint32_t begin = GetBlockIdx() * t.perCore;", "const uint32_t begin = 0;")
    all_of_it = ("const uint32_t end = begin + t.perCore < t.total ? begin + t.perCore : t.total;",
                 "const uint32_t end = t.total;")  # fmt: skip
    pair = changed(changed(gate.operator.baseline, KERNEL, *everything), KERNEL, *all_of_it)
    assert isinstance(gate.evaluate(pair).outcome, Timed)
    other = changed(pair, KERNEL, "Add(yLocal, xLocal, xLocal, count);",
                    "Muls(yLocal, xLocal, DTYPE_X(GetBlockIdx() + 2), count);")  # fmt: skip
    outcome = gate.evaluate(other).outcome
    assert isinstance(outcome, Hazard)
    assert "on cores 0 and 1" in outcome.reason


def test_a_value_that_a_core_overwrites_is_a_race(gate: Gate) -> None:
    # The second write of every core is the same everywhere, the first is not: an order exists that leaves it.
    begin = "const uint32_t begin = GetBlockIdx() * t.perCore;"
    end = "const uint32_t end = begin + t.perCore < t.total ? begin + t.perCore : t.total;"
    body = "DataCopyPad(yGm[at], yLocal, params);"
    pair = changed(gate.operator.baseline, KERNEL, begin, "const uint32_t begin = 0;")
    pair = changed(pair, KERNEL, end, "const uint32_t end = t.total;")
    first = "DataCopyPad(yGm[at], xLocal, params); PipeBarrier<PIPE_ALL>(); "
    outcome = gate.evaluate(changed(pair, KERNEL, body, first + body)).outcome
    assert isinstance(outcome, Hazard)


def test_stale_output(gate: Gate) -> None:
    outcome = kernel_with(gate, "DataCopyPad(yGm[at], yLocal, params);", "").outcome
    assert isinstance(outcome, WrongResult)
    assert "nothing was written there" in outcome.reason


def test_early_exit_of_some_cores(gate: Gate) -> None:
    outcome = kernel_with(gate, "TPipe pipe;", "if (GetBlockIdx() == 3) return;\n  TPipe pipe;").outcome
    assert isinstance(outcome, WrongResult)


def test_result_that_lives_on_uninitialized_workspace(gate: Gate) -> None:
    outcome = kernel_with(
        gate,
        "Add(yLocal, xLocal, xLocal, count)",
        "GlobalTensor<float> w; w.SetGlobalBuffer((__gm__ float*)workspace);\n"
        "    if (w.GetValue(0) == 0) Add(yLocal, xLocal, xLocal, count)",
    ).outcome
    assert isinstance(outcome, Hazard)
    assert "GlobalTensor::GetValue" in outcome.reason
    assert "nobody has written" in outcome.reason


@pytest.mark.parametrize("size", ["1ul << 50", "-(16ul << 20)", "-(16ul << 20) - 512", "-1ul"])
def test_a_workspace_that_there_is_no_memory_for(gate: Gate, size: str) -> None:
    """Sizes that wrap to nothing, or to a few bytes, included."""
    pair = changed(gate.operator.baseline, HOST, "GetWorkspaceSizes(1)[0] = 64", f"GetWorkspaceSizes(1)[0] = {size}")
    outcome = gate.evaluate(pair).outcome
    assert isinstance(outcome, LaunchFailed)
    assert "aclrtMalloc" in outcome.reason


def test_kernel_compile_error_has_the_users_file_and_line(gate: Gate, operator: Operator) -> None:
    outcome = kernel_with(gate, "TPipe pipe;", "TPipe pipe; undeclared_thing = 1;").outcome
    assert isinstance(outcome, CompileFailed)
    assert outcome.part == "kernel"
    assert f"{operator.root / KERNEL}:{line_of(operator, 'TPipe pipe;')}" in outcome.reason + outcome.log


def test_tiling_compile_error_has_the_users_file_and_line(gate: Gate, operator: Operator) -> None:
    pair = changed(operator.baseline, HOST, "TwiceTilingData tiling;", "TwiceTilingDat tiling;")
    outcome = gate.evaluate(pair).outcome
    assert isinstance(outcome, CompileFailed)
    assert outcome.part == "tiling"
    assert f"{operator.root / HOST}:" in outcome.reason


def test_case_that_the_tiling_function_refuses(operator: Operator, evaluator: Evaluator) -> None:
    spec = TensorSpec("float16", (0, 8))
    outcome = Gate(operator, Case((spec,), (spec,)), evaluator).evaluate(operator.baseline).outcome
    assert isinstance(outcome, LaunchFailed)
    assert outcome.reason.startswith("the tiling function refused the case")
    assert "x is empty" in outcome.reason


def test_dtype_that_no_column_has(operator: Operator, evaluator: Evaluator) -> None:
    spec = TensorSpec("int32", (8,))
    with pytest.raises(CaseError, match="int32"):
        Gate(operator, Case((spec,), (spec,)), evaluator).evaluate(operator.baseline)


def test_unified_buffer_overflow(gate: Gate) -> None:
    outcome = gate.evaluate(changed(gate.operator.baseline, HOST, "TILE = 1024", "TILE = 131072")).outcome
    assert isinstance(outcome, OutOfBounds)
    assert "Unified Buffer" in outcome.reason


def test_a_kernel_that_waits_for_a_flag_nobody_sets(gate: Gate, operator: Operator) -> None:
    outcome = kernel_with(gate, "TPipe pipe;", "TPipe pipe; WaitFlag<HardEvent::MTE2_V>(0);").outcome
    assert isinstance(outcome, Deadlock)
    assert "WaitFlag<MTE2_V> on event 0 has no SetFlag before it" in outcome.reason
    assert f"{KERNEL}:{line_of(operator, 'TPipe pipe;')}" in outcome.reason
    assert outcome.advice.startswith("Set the flag before every wait for it")
    assert outcome.advice in outcome.reason
    assert outcome_from_json(outcome_to_json(outcome)) == outcome


def test_a_meeting_that_not_all_blocks_come_to(gate: Gate) -> None:
    outcome = kernel_with(gate, "TPipe pipe;", "TPipe pipe; if (GetBlockIdx() != 1) SyncAll();").outcome
    assert isinstance(outcome, Deadlock)
    assert "3 of 4 cores" in outcome.reason
    assert outcome.advice.startswith("Let every block call it equally often")


def test_confirm_uses_fresh_inputs(gate: Gate) -> None:
    confirmed = gate.confirm(gate.operator.baseline)
    assert isinstance(confirmed.outcome, Timed)
    hard_coded = changed(gate.operator.baseline, HOST, "TILE = 1024", "TILE = 256")
    assert isinstance(gate.confirm(hard_coded).outcome, Timed)


def test_fingerprint_tells_equal_launches(gate: Gate) -> None:
    base = gate.operator.baseline
    commented = changed(base, HOST, "TwiceTilingData tiling;", "TwiceTilingData tiling;  // the same")
    other = changed(base, HOST, "TILE = 1024", "TILE = 512")
    assert gate.fingerprint(base) == gate.fingerprint(commented) != gate.fingerprint(other)
    assert gate.fingerprint(changed(base, HOST, "TwiceTilingData tiling;", "nonsense")) is None


def test_launches_that_are_prepared_have_the_names_they_have_else(gate: Gate) -> None:
    base = gate.operator.baseline
    others = [changed(base, HOST, "TILE = 1024", f"TILE = {n}") for n in ("128 * 2", "no_such_name")]
    with gate._evaluator.fresh() as evaluator:
        alike = Gate(gate.operator, CASE, evaluator)
        alike.prepare([base, *others, base])
        assert [alike.fingerprint(p) for p in (base, *others)] == [gate.fingerprint(p) for p in (base, *others)]


def test_describe_and_infer_outputs(operator: Operator, evaluator: Evaluator) -> None:
    description = evaluator.describe(operator)
    assert [p.name for p in description.signature.inputs] == ["x"]
    assert evaluator.infer_outputs(operator, CASE.inputs, ()) == CASE.outputs
    broken = changed(operator.baseline, HOST, "OP_ADD(Twice);", "")
    with pytest.raises(HostProgramError):
        evaluator.describe(operator, broken)


def test_the_users_arrays_are_the_first_trial(operator: Operator, evaluator: Evaluator) -> None:
    x = np.arange(37 * 129, dtype=np.float16).reshape(37, 129)
    checked = Gate(operator, CASE, evaluator, arrays={"x": x}).evaluate(operator.baseline)
    np.testing.assert_array_equal(checked.outputs["y"], x * np.float16(2))
    with pytest.raises(CaseError, match="x"):
        Gate(operator, CASE, evaluator, arrays={"x": x[1:]}).evaluate(operator.baseline)


def test_measurement_by_events_is_interleaved(operator: Operator, evaluator: Evaluator, tmp_path: Path) -> None:
    """What a real NPU is measured by, here with the virtual NPU's events."""
    gate = Gate(operator, CASE, evaluator)
    base = gate.evaluate(operator.baseline)
    other = gate.evaluate(changed(operator.baseline, HOST, "TILE = 1024", "TILE = 64"))
    assert isinstance(base.outcome, Timed)
    assert isinstance(other.outcome, Timed)
    assert base.result.launchable is not None
    plan = LaunchPlan(
        toolkit=evaluator.toolkit,
        chip=evaluator.chip,
        operator=operator,
        case=CASE,
        names=(("x",), ("y",)),
        launchable=base.result.launchable,
        trials=gate.trials(),
        measure=True,
        incumbent=other.result.launchable,
        folder=tmp_path,
        outputs=shared_arrays(CASE.outputs),
    )
    told: list[dict[str, Any]] = []
    measured = measure(plan, told.append)
    (left,) = told  # what the timed launches left is checked as well
    assert left["timed"]
    assert not left["damage"]
    assert measured["candidate_us"] == pytest.approx(base.outcome.profile.task_duration_us, rel=0.01)
    assert measured["incumbent_us"] == pytest.approx(other.outcome.profile.task_duration_us, rel=0.01)
    assert measured["repeats"] > 10
    assert measured["candidate_spread_us"] == pytest.approx(0, abs=0.01)


def test_tensor_lists_and_outputs_in_place(evaluator: Evaluator) -> None:
    listed = (TensorSpec("float32", (5, 3)), TensorSpec("float32", (70,)), TensorSpec("float32", (1,)))
    operator = load_project(DATA / "negate_lists", ["--cce-auto-sync=off"])
    checked = Gate(operator, Case((listed, listed), (listed, listed)), evaluator).evaluate(operator.baseline)
    assert isinstance(checked.outcome, Timed), checked.outcome
    gate = Gate(operator, Case((listed, listed), (listed, listed)), evaluator)
    inputs = gate.trials()[0].inputs
    for i in range(3):
        x, y = inputs[0], inputs[1]
        assert isinstance(x, tuple)
        assert isinstance(y, tuple)
        np.testing.assert_array_equal(checked.outputs[f"z.{i}"], -x[i].load())
        np.testing.assert_array_equal(checked.outputs[f"y.{i}"], -y[i].load())


def test_an_operator_without_outputs_changes_its_input(operator: Operator, evaluator: Evaluator) -> None:
    pair = changed(operator.baseline, KERNEL, "GM_ADDR x, GM_ADDR y, GM_ADDR workspace", "GM_ADDR x, GM_ADDR workspace")
    pair = changed(pair, KERNEL, "(__gm__ DTYPE_X*)y", "(__gm__ DTYPE_X*)x")
    host = operator.baseline.tiling[HOST]
    output = host[host.index("this->Output") : host.index("this->SetInferShape")]
    pair = changed(changed(pair, HOST, output, ""), HOST, "this->SetInferShape(ge::InferShape);", "")
    undeclared = Case(CASE.inputs, ())
    refused = Gate(replace(operator, baseline=pair), undeclared, evaluator).evaluate(pair).outcome
    assert isinstance(refused, OutOfBounds)
    assert "the input x" in refused.reason
    gate = Gate(replace(operator, baseline=pair, settings={"in_place": ["x"]}), CASE, evaluator)
    checked = gate.evaluate(pair)
    assert isinstance(checked.outcome, Timed), checked.outcome
    first = gate.trials()[0].inputs[0]
    assert isinstance(first, ArrayFile)
    np.testing.assert_array_equal(checked.outputs["x"], first.load() * np.float16(2))


def test_initial_values_are_there_before_the_kernel(operator: Operator, evaluator: Evaluator) -> None:
    pair = changed(operator.baseline, KERNEL, "const uint32_t begin =", "return;\n  const uint32_t begin =")
    pair = changed(pair, HOST, 'this->Output("y")', 'this->Output("y").InitValue(ScalarVar(ScalarType::FLOAT32, 1.5))')
    pair = changed(pair, HOST, "context->SetBlockDim(", "context->SetNeedAtomic(true);\n  context->SetBlockDim(")
    checked = Gate(replace(operator, baseline=pair), CASE, evaluator).evaluate(pair)
    assert isinstance(checked.outcome, Timed), checked.outcome
    assert np.all(checked.outputs["y"] == 1.5)


def test_direct_launch_with_a_scalar(evaluator: Evaluator, tmp_path: Path) -> None:
    file = tmp_path / "fill.cpp"
    file.write_text(
        '#include "kernel_operator.h"\n'
        'extern "C" __global__ __aicore__ void fill(GM_ADDR out, uint32_t count, float value) {\n'
        "  AscendC::GlobalTensor<float> gm;\n"
        "  gm.SetGlobalBuffer((__gm__ float*)out);\n"
        "  for (uint32_t i = AscendC::GetBlockIdx(); i < count; i += AscendC::GetBlockNum())\n"
        "    gm.SetValue(i * 16, value);\n"
        "}\n"
    )
    operator = load_direct(file, "fill", 2)
    assert operator.direct is not None
    case = Case((), (TensorSpec("float32", (4, 16)),), (("count", 4), ("value", 2.5)))
    checked = Gate(operator, case, evaluator).evaluate(operator.baseline)
    (output,) = checked.outputs.values()
    np.testing.assert_array_equal(output[:, 0], np.full(4, 2.5, np.float32))
