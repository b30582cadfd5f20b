"""No wrong variant that was made by hand passes, and no right one of as unusual an idea is refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import chain
from typing import Any

import pytest
import torch
from wrong_by_hand import Fault, faults
from wrong_cube import cube_faults, right_on_cubes
from wrong_ideas import ideas, right_ideas
from wrong_more import more

from ascendopt_tune.build import toolkit
from ascendopt_tune.evaluate.evaluator import Evaluator, ProcessLimits
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.operator import Pair
from ascendopt_tune.nouns.outcome import CompileFailed, OutOfBounds, Timed, WrongResult
from ascendopt_tune.sources.arguments import build_case, parse_attrs, parse_tensor
from ascendopt_tune.sources.registry import load_operator

ALL = list(faults())
# CI runs those that one check alone finds, and every tenth of the others.
_ALWAYS_OF_IDEAS = re.compile(
    r"^add-(addresses of 64|what local memory|a tile of which|a workspace|buffers of more)|ends are 1 is 1"
    r"|five-thousandth|of halves"
)
_ALWAYS = re.compile(r"a static|clock|behind [xz]|tiling data|workspace|uninitialized|no clamp$|no epsilon$")


class Bench:
    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator
        self.gate = cache(self._gate)

    def _gate(self, name: str, inputs: str, attrs: str = "") -> Gate:
        operator = load_operator(name)
        signature = self.evaluator.describe(operator).signature
        given = parse_attrs(attrs.split(), signature)
        case = build_case(
            signature, dict(map(parse_tensor, inputs.split())), given, {},
            lambda inputs, attrs: self.evaluator.infer_outputs(operator, inputs, attrs),
        )  # fmt: skip
        gate = Gate(operator, case, self.evaluator)
        baseline = gate.evaluate(operator.baseline).outcome
        assert isinstance(baseline, Timed), baseline
        return gate

    @staticmethod
    def pair(gate: Gate, fault: Fault) -> Pair:
        operator = gate.operator
        pair = operator.baseline
        for part, old, new in fault.edits:
            path = operator.kernel_main if part == "kernel" else f"op_host/{operator.name}.cpp"
            text = (pair.kernel if part == "kernel" else pair.tiling)[path]
            assert text.count(old) == 1, (str(fault), old, text.count(old))
            text = text.replace(old, new)
            pair = pair.with_kernel(path, text) if part == "kernel" else pair.with_tiling(path, text)
        return pair


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with Evaluator(toolkit.virtual(), limits=ProcessLimits(run_s=20), workers=2) as evaluator:
        yield Bench(evaluator)


def test_a_value_that_the_case_leaves_open_is_not_baked_in(bench: Bench) -> None:
    operator = load_operator("rms_norm")
    x, gamma = TensorSpec("float16", (40, 33)), TensorSpec("float16", (33,))
    open_, fixed = Case((x, gamma), (x,)), Case((x, gamma), (x,), (("epsilon", 1e-6),))
    text = operator.baseline.kernel[operator.kernel_main]
    assert "epsilon = tiling.epsilon;" in text
    baked = operator.baseline.with_kernel(
        operator.kernel_main, text.replace("epsilon = tiling.epsilon;", "epsilon = 1e-6f;")
    )
    assert isinstance(Gate(operator, fixed, bench.evaluator).evaluate(baked).outcome, Timed)
    outcome = Gate(operator, open_, bench.evaluator).evaluate(baked).outcome
    assert isinstance(outcome, WrongResult), outcome
    assert "with epsilon=0.001" in outcome.reason
    assert isinstance(Gate(operator, open_, bench.evaluator).evaluate(operator.baseline).outcome, Timed)


@pytest.mark.parametrize(
    ("dtype", "used", "found_with"),
    [
        pytest.param("float16", "tiling.value < 0 ? 0 : tiling.value", "-0.6339746", id="a dropped sign"),
        pytest.param("float16", "tiling.value * tiling.value < 1e-6f ? 0 : tiling.value", "0.000488", id="a default"),
        pytest.param("float32", "static_cast<half>(tiling.value)", "0.5176381", id="rounded to half"),
        pytest.param("float32", "static_cast<int32_t>(tiling.value * 4096.0f) / 4096.0f", "0.5176381", id="on a grid"),
    ],
)
def test_a_value_that_the_case_leaves_open_counts(bench: Bench, dtype: str, used: str, found_with: str) -> None:
    operator = load_operator("masked_fill")
    x, mask = TensorSpec(dtype, (25, 33)), TensorSpec("bool", (25, 33))
    text = operator.baseline.kernel[operator.kernel_main]
    assert "static_cast<T>(tiling.value);" in text
    wrong = text.replace("static_cast<T>(tiling.value);", f"static_cast<T>({used});")
    gate = Gate(operator, Case((x, mask), (x,)), bench.evaluator)
    outcome = gate.evaluate(operator.baseline.with_kernel(operator.kernel_main, wrong)).outcome
    assert isinstance(outcome, WrongResult), outcome
    assert f"with value={found_with}" in outcome.reason
    assert isinstance(gate.evaluate(operator.baseline).outcome, Timed)


def test_the_rule_of_rounding_is_that_of_the_reference_at_halves(bench: Bench) -> None:
    """z = round(x * y), which lies on halves where x is a multiple of one and y a power of two."""
    operator = load_operator("add")
    host, main = "op_host/add.cpp", operator.kernel_main
    tiling, kernel = operator.baseline.tiling[host], operator.baseline.kernel[main]
    types = "ge::DT_FLOAT16, ge::DT_FLOAT, ge::DT_INT32"
    assert tiling.count(types) == 3
    tiling = tiling.replace(types, "ge::DT_FLOAT", 2).replace(types, "ge::DT_INT32")
    kernel = kernel.replace(
        "    Add(zLocal, xLocal, yLocal, count);\n",
        "    Mul(xLocal, xLocal, yLocal, count);\n    PipeBarrier<PIPE_V>();\n"
        "    Cast(zLocal.template ReinterpretCast<int32_t>(), xLocal, RoundMode::CAST_RINT, count);\n",
    )
    tiling = re.sub(r"ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND", "ge::FORMAT_ND", tiling)
    tiling = tiling.replace("context->GetInputDataType(0)", "ge::DT_INT32")
    right = operator.baseline.with_tiling(host, tiling).with_kernel(main, kernel)

    def reference(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.round(x * y).clamp(-(2.0**31), 2.0**31 - 1).int()

    operator = replace(operator, baseline=right, reference=reference)
    x, scale = TensorSpec("float32", (25, 133)), TensorSpec("float32", (25, 133))
    gate = Gate(operator, Case((x, scale), (TensorSpec("int32", (25, 133)),)), bench.evaluator)
    assert isinstance(gate.evaluate(right).outcome, Timed), gate.evaluate(right).outcome
    other = right.with_kernel(main, kernel.replace("CAST_RINT", "CAST_ROUND"))
    assert isinstance(gate.evaluate(other).outcome, WrongResult)
    halves = Gate(operator, gate.case, bench.evaluator, kinds=("normal", "halves"))
    outcome = halves.evaluate(other).outcome
    assert isinstance(outcome, WrongResult), outcome
    assert "halves" in outcome.reason
    # By two factors, the second of which undoes what the first adds: exact as well.
    multiplied = "Mul(xLocal, xLocal, yLocal, count);"
    back = "".join(f"\n    PipeBarrier<PIPE_V>();\n    Muls(xLocal, xLocal, {f}, count);" for f in ("4.0f", "0.25f"))
    twice = kernel.replace(multiplied, multiplied + back)
    assert isinstance(gate.evaluate(right.with_kernel(main, twice)).outcome, Timed)


def test_outliers_are_put_where_the_candidates_own_tiles_end(bench: Bench) -> None:
    """A long row, few of them: a maximum that leaves out the last element of every tile of 1,312."""
    gate = bench.gate("softmax", "x=float32[2,40001]")
    host, main = "op_host/softmax.cpp", gate.operator.kernel_main
    pair = gate.operator.baseline
    pair = pair.with_tiling(host, pair.tiling[host].replace("TILE_LENGTH = 4096", "TILE_LENGTH = 1312"))
    assert isinstance(gate.evaluate(pair).outcome, Timed)
    text = pair.kernel[main]
    assert "const float tileMaximum = Maximum(TileCols(col));" in text
    wrong = pair.with_kernel(main, text.replace("= Maximum(TileCols(col));", "= Maximum(TileCols(col) - 1);"))
    outcome = gate.evaluate(wrong).outcome
    assert isinstance(outcome, WrongResult), outcome


def test_bytes_behind_a_tensor_may_be_read_where_the_original_reads_them(bench: Bench) -> None:
    operator = load_operator("add")
    spec = TensorSpec("float16", (5, 1003))
    padded = "DataCopyPad({0}Local, {0}Gm[offset], copyParams, padParams);"
    text = operator.baseline.kernel[operator.kernel_main]
    x, both = (text.replace(padded.format("x"), whole("x")), text)
    both = x.replace(padded.format("y"), whole("y"))
    assert len({text, x, both}) == 3
    reading = replace(operator, baseline=operator.baseline.with_kernel(operator.kernel_main, x))
    gate = Gate(reading, Case((spec, spec), (spec,)), bench.evaluator)
    checked = gate.evaluate(reading.baseline)
    assert isinstance(checked.outcome, Timed), checked.outcome
    assert checked.result.habits.slack == {"reads behind x": 18}
    assert isinstance(gate.evaluate(operator.baseline).outcome, Timed)
    outcome = gate.evaluate(reading.baseline.with_kernel(operator.kernel_main, both)).outcome
    assert isinstance(outcome, OutOfBounds), outcome
    assert "reads behind y, up to byte 18 past its end" in outcome.reason
    assert "the original doesn't go there" in outcome.reason


def whole(name: str) -> str:
    return f"DataCopy({name}Local, {name}Gm[offset], (count + 15) / 16 * 16);"


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(f, id=str(f), marks=[] if _ALWAYS.search(f.name) or i % 10 == 0 else [pytest.mark.battery])
        for i, f in enumerate(ALL)
    ],
)
def test_it_is_refused(bench: Bench, fault: Fault) -> None:
    refused(bench, fault)


def some(faults: Iterator[Fault]) -> list[Any]:
    """All as parameters; CI runs those of one gate."""
    ci = _ALWAYS_OF_IDEAS.search
    return [pytest.param(f, id=str(f), marks=[] if ci(str(f)) else [pytest.mark.battery]) for f in faults]


@pytest.mark.parametrize("fault", some(ideas()))
def test_an_idea_that_is_wrong_is_refused(bench: Bench, fault: Fault) -> None:
    refused(bench, fault)


@pytest.mark.parametrize("fault", some(more()))
def test_what_a_reader_would_try_is_refused(bench: Bench, fault: Fault) -> None:
    refused(bench, fault)


@pytest.mark.parametrize("fault", some(cube_faults()))
def test_a_wrong_variant_on_cubes_is_refused(bench: Bench, fault: Fault) -> None:
    refused(bench, fault)


@pytest.mark.parametrize("right", some(chain(right_ideas(), right_on_cubes())))
def test_an_idea_that_is_right_is_accepted(bench: Bench, right: Fault) -> None:
    gate = bench.gate(right.operator, right.inputs, right.attrs)
    outcome = gate.evaluate(bench.pair(gate, right)).outcome
    assert isinstance(outcome, Timed), outcome


def refused(bench: Bench, fault: Fault) -> None:
    gate = bench.gate(fault.operator, fault.inputs, fault.attrs)
    outcome = gate.evaluate(bench.pair(gate, fault)).outcome
    assert not isinstance(outcome, Timed), outcome
    assert not isinstance(outcome, CompileFailed) or "what no header of AscendC offers" in outcome.reason, outcome
