"""Cube and mixed kernels of others in files of their own, unmodified, launched as they are, against formulas.

The sources are found through ``ASCENDOPT_OPS_TRANSFORMER``, ``ASCENDOPT_VLLM_ASCEND`` and ``ASCENDOPT_ASC_DEVKIT``;
without them tests are skipped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from direct_launch import Direct, direct_case
from test_vllm_ascend import evaluator

from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.nouns.outcome import Timed
from ascendopt_tune.settings import settings

__all__ = ["evaluator"]
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Unit:
    """A kernel of a repository; ``formula`` of its inputs by name, in float64, gives its first outputs, within
    ``within`` of the largest value. ``span``: of random inputs; ``given``: inputs with values."""

    repository: str
    kernel: Direct
    formula: Callable[[dict[str, Array]], tuple[Array, ...]]
    within: float
    span: float = 1
    given: dict[str, Array] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    name: str = ""


def products_of_batches(x: dict[str, Array]) -> tuple[Array, ...]:
    """Batches lie between rows and columns."""
    return (np.einsum("mbk,bkn->mbn", x["gm_a"], x["gm_b"]),)


def batch_matmul_transpose(dtype: str, m: int, k: int, n: int, batches: int = 3) -> Unit:
    """Its tiling: the shape, base blocks, how often each goes into its axis, and what is multiplied."""
    loops = [-(-m // 128), -(-k // 256), -(-n // 128)]
    types = {"float16": 0b001, "bfloat16": 0b010}[dtype]
    key = (types << 6 | types << 3 | types) << 4
    blocks = batches * loops[0] * loops[2]
    tiling = [batches, m, k, n, 128, 256, 128, *loops, blocks, 1, key, blocks, 0, 0, 0, 0]
    folder = "csrc/batch_matmul_transpose/op_kernel/"
    kernel = Direct(
        f"{folder}batch_matmul_transpose_kernel.cpp", "batch_matmul_transpose", blocks,
        f"gm_a={dtype}[{m},{batches},{k}] gm_b={dtype}[{batches},{k},{n}] gm_tiling_data=uint32[18]",
        f"gm_c={dtype}[{m},{batches},{n}]", None, domain={"gm_tiling_data": {"values": tiling}})  # fmt: skip
    within = {"float16": 1e-3, "bfloat16": 8e-3}[dtype]
    given = {"gm_tiling_data": np.array(tiling, np.uint32)}
    return Unit("vllm_ascend", kernel, products_of_batches, within, given=given, name=f"{dtype}-{m}-{k}-{n}")


def states_of_chunks(x: dict[str, Array]) -> tuple[Array, ...]:
    """[batch, chunk, head, state, element]: what a chunk's tokens leave, each weighted by the decay behind it."""
    behind = np.exp(x["dacs_mtx"][:, :, -1:] - x["dacs_mtx"]) * x["dtout_mtx"]
    heads = x["xt_mtx"].shape[3] // x["bt_mtx"].shape[3]
    weighted = (np.repeat(x["bt_mtx"], heads, 3) * behind[..., None]).astype(np.float16).astype(float)
    return (np.einsum("bclhn,bclhp->bchnp", weighted, x["xt_mtx"]),)


MAMBA = "experimental/mamba/"
STATE = Unit(
    "ops_transformer",
    Direct(f"{MAMBA}mamba2_chunk_state/torch_interface.cpp", "kernel_cust_chunk_state", 20,
           "dtout_mtx=float32[1,2,256,8] dacs_mtx=float32[1,2,256,8] bt_mtx=float16[1,2,256,2,128] "
           "xt_mtx=float16[1,2,256,8,64] workspace=float32[7905280]", "out_mtx=float32[1,2,8,128,64]", None,
           {"B": 1, "C": 2, "H": 8, "G": 2, "L": 256, "N": 128, "P": 64, "core_num": 20},
           room=("workspace",), include=(f"{MAMBA}common",)),
    states_of_chunks, 1e-4, span=0.3)  # fmt: skip
UNITS = (batch_matmul_transpose("float16", 100, 1000, 160), batch_matmul_transpose("bfloat16", 16, 256, 128), STATE)


def numpy_dtype(name: str) -> np.dtype[Any]:
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


@pytest.mark.parametrize("unit", UNITS, ids=lambda u: f"{u.kernel.entry}-{u.name}".rstrip("-"))
def test_kernel(unit: Unit, evaluator: Evaluator) -> None:
    root = getattr(settings(), unit.repository)
    if root is None:
        pytest.skip(f"ASCENDOPT_{unit.repository.upper()} is not set")
    operator, case, signature = direct_case(unit.kernel, root)
    rng = np.random.default_rng(0)
    inputs: dict[str, Array] = dict(unit.given)
    for parameter, spec in zip(signature.inputs, case.inputs, strict=True):
        if parameter.name in unit.kernel.room:
            inputs[parameter.name] = np.zeros(spec.shape, numpy_dtype(spec.dtype))
        elif parameter.name not in inputs:
            inputs[parameter.name] = rng.uniform(-unit.span, unit.span, spec.shape).astype(numpy_dtype(spec.dtype))
    gate = Gate(operator, case, evaluator, signature=signature, arrays=inputs)
    checked = gate.evaluate(operator.baseline)
    outcome = checked.outcome
    assert isinstance(outcome, Timed), f"{type(outcome).__name__}: {getattr(outcome, 'reason', outcome)}"
    wide = {name: array.astype(float) for name, array in inputs.items() if name not in unit.kernel.room}
    for parameter, exact in zip(signature.outputs, unit.formula(wide), strict=False):
        got = checked.outputs[parameter.name].astype(float)
        assert np.abs(got - exact).max() <= unit.within * np.abs(exact).max(), parameter.name
