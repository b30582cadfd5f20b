"""Published gains of a tiling, repeated by the registry's matmul with the published numbers (docs/cube_time.md)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from test_cube import default_options, device, launch

from ascendopt_tune.build.toolkit import virtual
from ascendopt_tune.device.options import LaunchOptions
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.nouns.operator import Operator, Pair
from ascendopt_tune.nouns.outcome import Timed
from ascendopt_tune.nouns.profile import Profile
from ascendopt_tune.sources.arguments import build_case, parse_tensor
from ascendopt_tune.sources.registry import load_operator

__all__ = ["default_options"]
KERNELS = Path(__file__).resolve().parents[2] / "ascendopt_tune" / "fidelity" / "kernels"
CORES = "coreNum = platform.GetCoreNumAic()"


@dataclass(frozen=True)
class Gain:
    """From one tiling to another one: m, n, k of a block, blocks of k in a copy, cores (0: all)."""

    name: str
    chip: str
    inputs: tuple[str, str]
    before: tuple[int, int, int, int, int]
    after: tuple[int, int, int, int, int]
    metric: str
    published: float


# asc-devkit, "Matmul算子优化Tiling策略": 4096 x 4096 x 5120 of half, 4 and 20 cores of a chip with 20; here smaller.
# asc-devkit, "Matmul高阶API使能MDL模板": 128 x 1024 x 30720 on 24 cores, as it is.
SMALLER = ("a=float16[1024,5120]", "b=float16[5120,1280]")
GAINS = [
    Gain("more cores", "ascend910b4", SMALLER, (64, 64, 256, 1, 4), (64, 64, 256, 1, 0), "task", 12045 / 2532),
    Gain("base block", "ascend910b4", SMALLER, (64, 64, 256, 1, 0), (128, 256, 64, 1, 0), "mte2", 2452 / 808),
    Gain(
        "packets",
        "ascend910b2",
        ("a=float16[128,1024]", "b=float16[1024,30720]"),
        (128, 256, 64, 1, 0),
        (128, 256, 64, 4, 0),
        "core",
        83.68 / 53.4,
    ),
]


def _with(operator: Operator, tiling: tuple[int, int, int, int, int]) -> Pair:
    m, n, k, step, cores = tiling
    said: Mapping[str, str] = {
        "BASE_M = 128": f"BASE_M = {m}",
        "BASE_N = 256": f"BASE_N = {n}",
        "BASE_K = 64": f"BASE_K = {k}",
        "STEP_K = 4": f"STEP_K = {step}",
        CORES: f"coreNum = {cores}" if cores else CORES,
    }
    files = dict(operator.baseline.tiling)
    for old, new in said.items():
        assert any(old in text for text in files.values())
        files = {path: text.replace(old, new) for path, text in files.items()}
    return Pair(files, operator.baseline.kernel)


def _of(profile: Profile, metric: str) -> float:
    return {"task": profile.task_duration_us, "core": profile.core_time_us, "mte2": profile.pipe_us("mte2")}[metric]


@pytest.mark.parametrize("gain", GAINS, ids=lambda g: g.name)
def test_a_published_gain(gain: Gain) -> None:
    """Within a third of its logarithm."""
    operator = load_operator("matmul")
    with Evaluator(virtual(), gain.chip, workers=1) as evaluator:
        signature = evaluator.describe(operator).signature
        shapes = dict(map(parse_tensor, gain.inputs))
        case = build_case(signature, shapes, {}, {}, lambda i, a: evaluator.infer_outputs(operator, i, a))
        gate = Gate(operator, case, evaluator, signature=signature)
        outcomes = [gate.build(_with(operator, t)).outcome for t in (gain.before, gain.after)]
    assert all(isinstance(o, Timed) for o in outcomes), outcomes
    before, after = (_of(o.profile, gain.metric) for o in outcomes if isinstance(o, Timed))
    print(
        f"{gain.name}: published {gain.published:.2f}x, modelled {before:.2f} -> {after:.2f} us, {before / after:.2f}x"
    )
    assert math.log(before / after) == pytest.approx(math.log(gain.published), rel=1 / 3)


# asc-devkit, "Matmul高阶API开启UnitFlag": 128 x 30720 x 64 on 20 cores, blocks of 128 x 256 x 64, CFG_MDL. It names
# neither the product nor the type of c: float, as in its sample. Nor does it say what ran in front: nothing that left
# lines dirty, as the architecture's file assumes (the 910B4's has a third of L2 dirty, for a test program of others).
@pytest.mark.parametrize("chip", ["ascend910b3", "ascend910b4"])
def test_the_published_gain_of_unit_flags(chip: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Within a third of its logarithm; the page's times are more than twice as long."""
    define = ["ROWS=128", "COLUMNS=30720", "DEPTH=64", "SHARE_ROWS=128", "BASE=128", "STEP=4", "SHARE=1536", "MIXED=0"]
    buffers = [np.zeros(s, np.uint8) for s in (16384, 3932160, 15728640)]
    acl, source, times = device(), KERNELS / "matmul_calls.cpp", []
    for unit_flag in (0, 1):
        options = [f"-D{d}" for d in (*define, f"UNIT_FLAG={unit_flag}")]
        binary = acl.load(acl.compile(source.read_text(), source.name, options))
        acl.options = LaunchOptions(chip=chip, hazards=False, state="flushed")
        launch("matmul_calls", buffers, np.zeros(1 << 24, np.uint8), binary=binary, blocks=20)
        times += acl.replay([{"flushed.dirty_share": 0}])
    before, after = times
    with capsys.disabled():
        print(f"\nunit flags, {chip}: published 37.39 to 34.66 us, 1.08x; modelled {before:.2f} to {after:.2f} us, "
              f"{before / after:.2f}x")  # fmt: skip
    assert math.log(before / after) == pytest.approx(math.log(37.39 / 34.66), rel=1 / 3)
