"""Kernels of vllm-ascend, unmodified, against formulas written here: kernels for direct launch and operator projects.

The sources are found through ``ASCENDOPT_VLLM_ASCEND``, the unpacked source distribution, which
tests/fetch_vllm_ascend.py fetches; without it these tests are skipped. Every operator runs once, with
``-m "battery or not battery"`` in all its dtypes and shapes.

Of the 25 vector kernels of its csrc folder for these chips one is not among them: get_masked_input_and_mask_kernel
calls And on int8_t, which the documentation doesn't list for architecture 2201, and which is refused at the launch.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ascendopt_tune  # noqa: F401  # isort: skip  (before torch, which loads torch_npu)
import torch
from cann_ops.table import Fault, Row, arguments, in_float64
from direct_launch import Direct, run_kernel
from vllm_ops import caching, cubes, routing, steps

from ascendopt_tune.build import toolkit
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.nouns.case import Case
from ascendopt_tune.nouns.outcome import Hazard, Outcome, Timed
from ascendopt_tune.settings import settings
from ascendopt_tune.sources.project import load_project

Tensor = torch.Tensor

#: Which adapter each token uses, and for segments of tokens: which one each segment uses, and its length.
TOKENS = [1, 0, 2, 2, 1, 0, 1]
SEGMENTS, LENGTHS = [2, 0, 1], [3, 1, 3]
TOKEN_DOMAIN = {"indices": {"values": TOKENS}}
SEGMENT_DOMAIN = {"loraIndices": {"values": SEGMENTS}, "seqLen": {"values": LENGTHS}}
SCALE = 0.5


def shrink(x: Tensor, weight: Tensor, indices: Tensor) -> Tensor:
    return SCALE * torch.einsum("th,trh->tr", x, weight[indices])


def expand(x: Tensor, weight: Tensor, indices: Tensor, y: Tensor) -> Tensor:
    return y + torch.einsum("tr,thr->th", x, weight[indices])


def lora(kind: str, dtype: str, rank: int = 16) -> Direct:
    c_type = {"float16": "half", "bfloat16": "bfloat16_t"}[dtype]
    segmented = kind.startswith("sgmv")
    where = "loraIndices=int64[3] seqLen=int64[3]" if segmented else "indices=int64[7]"
    attrs: dict[str, Any] = {"batchSize": 7, "numTokensPerCore": 2, "maxLoRARank": rank}
    attrs |= {"loraIndicesSize": 3, "seqLenSize": 3} if segmented else {"indicesSize": 7}
    if kind.endswith("shrink"):
        inputs, outputs = f"x={dtype}[7,256] weight={dtype}[3,{rank},256] {where}", f"y=float32[7,{rank}]"
        attrs |= {"inputHiddenDim": 256, "scale": SCALE}
    else:
        inputs = f"x=float32[7,{rank}] weight={dtype}[3,512,{rank}] {where} yIn={dtype}[7,512]"
        outputs = f"yOut={dtype}[7,512]"
        attrs |= {"outputHiddenDim": 512, "sliceOffset": 0, "outputFullDim": 512}

    def reference(x: Tensor, weight: Tensor, *rest: Tensor) -> Tensor:
        indices, *others = (torch.repeat_interleave(rest[0], rest[1]), *rest[2:]) if segmented else rest
        return shrink(x, weight, indices) if kind.endswith("shrink") else expand(x, weight, indices, *others)

    domain = SEGMENT_DOMAIN if segmented else TOKEN_DOMAIN
    return Direct(f"csrc/kernels/{kind}.cpp", f"{kind}_{c_type}", 4, inputs, outputs, reference, attrs, domain)


KERNELS = (
    *(lora(f"{letter}gmv_{kind}", dtype) for letter in "bs" for kind in ("shrink", "expand")
      for dtype in ("float16", "bfloat16")),
    lora("bgmv_expand", "float16", 64),
)  # fmt: skip


def gdn_gating(a_log: Tensor, a: Tensor, b: Tensor, dt_bias: Tensor, beta: float, threshold: float) -> Any:
    return (-a_log.exp() * torch.nn.functional.softplus(a + dt_bias, beta, threshold))[None], b.sigmoid()[None]


def inverse_rms(x: Tensor, epsilon: float) -> Tensor:
    return torch.rsqrt(x.flatten(1).square().mean(-1) + epsilon)[:, None]


def mix_streams(x: Tensor, residual: Tensor, post: Tensor, comb: Tensor) -> Tensor:
    return post[..., None] * x[..., None, :] + torch.einsum("tij,tid->tjd", comb, residual)


def add_rms_norm(x1: Tensor, x2: Tensor, gamma: Tensor, beta: Tensor | None, epsilon: float) -> Any:
    x = x1 + x2
    rstd = torch.rsqrt(x.square().mean(-1, keepdim=True) + epsilon)
    y = x * rstd * gamma
    return (y if beta is None else y + beta), rstd, x


def update_rows(var: Tensor, indices: Tensor, updates: Tensor, **_: Any) -> Tensor:
    out = var.clone()
    out[indices[:, 0].long()] = updates
    return out


def store_groups(key: Tensor, cache: Tensor, lengths: Tensor, sources: Tensor, targets: Tensor, **_: Any) -> Tensor:
    """Groups of tokens go to consecutive slots of the cache; those with a negative number are left out."""
    out = cache.clone()
    slots = out.view(-1, *cache.shape[2:])
    for length, source, target in zip(lengths.tolist(), sources.tolist(), targets.tolist(), strict=True):
        if length > 0 and source >= 0 and target >= 0:
            slots[target : target + length] = key[source : source + length]
    return out


def convolve(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    states: Tensor,
    starts: Tensor,
    slots: Tensor,
    modes: Tensor,
    _: Any,
    **__: Any,
) -> Any:
    """A depthwise convolution of each sequence, behind the state its slot holds, which it leaves anew; then silu."""
    y, after, kept = torch.zeros_like(x), states.clone(), len(weight) - 1
    for i, slot in enumerate(slots.tolist()):
        rows = slice(int(starts[i]), int(starts[i + 1]))
        before = states[slot] if modes[i] else torch.zeros_like(states[slot])
        whole = torch.cat([before, x[rows]])
        windows = whole.unfold(0, len(weight), 1)  # time, channel, tap
        y[rows] = torch.nn.functional.silu(torch.einsum("tcw,wc->tc", windows, weight) + bias)
        after[slot] = whole[-kept:]
    return y, after


ROWS = (
    # Its kernel is a template whose arguments are in the tiling key.
    Row("moe/causal_conv1d",
        "T[24,256] T[4,256] T[256] T[2,3,256] int32[3] int32[2] int32[2] - -> T[24,256] T[2,3,256]", convolve,
        ("float16", "bfloat16"), attrs={"activationMode": 1, "padSlotId": -1, "runMode": 0}, in_place=(3,),
        values={4: [0, 10, 24], 5: [0, 1], 6: [0, 1]}),
    Row("moe/add_rms_norm_bias",
        ("T[16,512] T[16,512] T[512] T[512] -> T[16,512] float32[16,1] T[16,512]",
         "T[7,1024] T[7,1024] T[1024] - -> T[7,1024] float32[7,1] T[7,1024]"),
        add_rms_norm, ("float16", "float32", "bfloat16"), attrs={"epsilon": 1e-6},
        tolerance={"float16": 4e-3, "bfloat16": 1.2e-2, "float32": 1e-3}),  # rounds at every step
    Row("moe/scatter_nd_update_v2", "T[64,32] int32[8,1] T[8,32] -> T[64,32]", update_rows,
        ("float16", "float32", "bfloat16"), attrs={"strides": (32, 1)}, values={1: [3, 7, 1, 0, 9, 20, 33, 63]}),
    Row("attention/store_kv_block", "T[20,2,64] T[4,8,2,64] int32[3] int32[3] int32[3] -> T[4,8,2,64]", store_groups,
        ("float16", "bfloat16"), attrs={"blockSize": 8}, in_place=(1,),
        values={2: [5, 8, 3], 3: [0, 5, 13], 4: [2, 8, 24]}),
    Row("attention/fused_gdn_gating",
        ("float32[32] T[64,32] T[64,32] float32[32] -> float32[1,64,32] T[1,64,32]",
         "float32[12] T[37,12] T[37,12] float32[12] -> float32[1,37,12] T[1,37,12]"),
        gdn_gating, ("bfloat16", "float16"), attrs={"beta": 1.0, "threshold": 20.0}),
    # Its sum of partial sums reads 4 x 64 of them, as 4 x 4096 columns have: others make it read past its buffer.
    Row("moe/hc_pre_inv_rms", ("T[16,4,4096] -> float32[16,1]", "T[5,4,4096] -> float32[5,1]"), inverse_rms,
        ("float32", "float16", "bfloat16"), attrs={"epsilon": 1e-6}),
    Row("moe/hc_post", ("T[16,1024] T[16,4,1024] S[16,4] S[16,4,4] -> T[16,4,1024]",
                        "T[5,512] T[5,4,512] S[5,4] S[5,4,4] -> T[5,4,512]"), mix_streams,
        ("bfloat16/float32", "float16/float32", "float16", "bfloat16")),
)  # fmt: skip


ALL_ROWS = (*ROWS, *routing.ROWS, *caching.ROWS, *steps.ROWS)
FAULTS = (*routing.FAULTS, *caching.FAULTS, *cubes.FAULTS)


@pytest.fixture(scope="module")
def evaluator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluator]:
    with Evaluator(toolkit.virtual(), "ascend910b3", workers=1, build_dir=tmp_path_factory.mktemp("build")) as opened:
        yield opened


def sources() -> Path:
    root = settings().vllm_ascend
    if root is None:
        pytest.skip("ASCENDOPT_VLLM_ASCEND is not set")
    return root


@pytest.mark.parametrize("kernel", [pytest.param(k, id=f"{k.entry}-{k.inputs.split()[0]}") for k in KERNELS])
def test_direct_launch(kernel: Direct, evaluator: Evaluator) -> None:
    run_kernel(kernel, evaluator, sources())


def runs() -> Iterator[Any]:
    """Every operator once; with its other dtypes and shapes in the battery."""
    for row in ALL_ROWS:
        for i, (case, dtype) in enumerate(row.runs()):
            name = f"{row.path}-{dtype.replace('/', '-')}-{case.split()[0]}"
            yield pytest.param(row, case, dtype, id=name, marks=[pytest.mark.battery] if i else [])


@pytest.mark.parametrize(("row", "case", "dtype"), tuple(runs()))
def test_project(row: Row, case: str, dtype: str, evaluator: Evaluator) -> None:
    check(row, case, dtype, evaluator)


@pytest.mark.parametrize("fault", [pytest.param(f, id=f.path) for f in FAULTS])
def test_a_fault_of_the_operator_itself_is_told(fault: Fault, evaluator: Evaluator) -> None:
    outcome = outcome_of(fault, fault.case, fault.dtype, evaluator)
    assert not isinstance(outcome, Timed)
    assert fault.text in outcome.reason


def check(row: Row, case: str, dtype: str, evaluator: Evaluator, root: Path | None = None) -> Timed:
    if row.hazard:  # of the operator as it is built; its values with the compiler's automatic synchronization
        told = outcome_of(row, case, dtype, evaluator, root=root)
        assert isinstance(told, Hazard)
        assert row.hazard in told.reason
    outcome = outcome_of(row, case, dtype, evaluator, ("--cce-auto-sync=on",) if row.hazard else (), root)
    assert isinstance(outcome, Timed), f"{type(outcome).__name__}: {getattr(outcome, 'reason', outcome)}"
    return outcome


def outcome_of(
    row: Row | Fault,
    case: str,
    dtype: str,
    evaluator: Evaluator,
    options: tuple[str, ...] = (),
    root: Path | None = None,
) -> Outcome:
    """What the gate says of one case; ``root``: the folder that the row's path starts from, vllm-ascend's if None."""
    operator = load_project((sources() / "csrc" if root is None else root) / row.path)
    signature = evaluator.describe(operator).signature
    names = [p.name for p in signature.inputs]
    chosen: dict[str, Any] = {
        "domain": {names[i]: {"low": low, "high": high} for i, (low, high) in row.domain.items()}
        | {names[i]: {"values": values} for i, values in row.values.items()},
    }
    if isinstance(row, Row):
        chosen["tolerance"] = row.tolerance
        chosen["in_place"] = [names[i] for i in row.in_place]
        chosen["initial"] = {signature.outputs[i].name: value for i, value in row.initial.items()}
    reference = in_float64(row.reference) if row.reference is not None else None
    options = (*operator.kernel_options, *options)
    operator = dataclasses.replace(operator, reference=reference, settings=chosen, kernel_options=options)
    tensor, _, scalar = dtype.partition("/")
    inputs, outputs = arguments(case, {"T": tensor, "S": scalar or tensor})
    checked = Case(inputs, outputs, tuple(sorted(row.attrs.items())))
    return Gate(operator, checked, evaluator, signature=signature).evaluate(operator.baseline).outcome
