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
from cube_tiling import FIELDS
from direct_launch import Direct, direct_case
from test_vllm_ascend import evaluator

from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.nouns.outcome import Timed
from ascendopt_tune.settings import settings

__all__ = ["evaluator"]
Array = np.ndarray[Any, Any]
Formula = Callable[[dict[str, Array]], tuple[Array, ...]]


@dataclass(frozen=True)
class Unit:
    """A kernel of a repository, by the unit's name in docs/cube_units.md. ``formula`` of its inputs by name, in
    float64, gives its first outputs, ``within`` a part of the largest value. ``span``: of random inputs; ``given``:
    inputs with values of their own."""

    repository: str
    unit: str
    kernel: Direct
    formula: Formula
    within: float
    span: float = 1
    given: dict[str, Array] = field(default_factory=dict)
    case: str = ""


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
    return Unit("vllm_ascend", "batch_matmul_transpose", kernel, products_of_batches, within, given=given,
                case=f"{dtype}-{m}-{k}-{n}")  # fmt: skip


def states_of_chunks(x: dict[str, Array]) -> tuple[Array, ...]:
    """[batch, chunk, head, state, element]: what a chunk's tokens leave, each weighted by the decay behind it."""
    behind = np.exp(x["dacs_mtx"][:, :, -1:] - x["dacs_mtx"]) * x["dtout_mtx"]
    heads = x["xt_mtx"].shape[3] // x["bt_mtx"].shape[3]
    weighted = (np.repeat(x["bt_mtx"], heads, 3) * behind[..., None]).astype(np.float16).astype(float)
    return (np.einsum("bclhn,bclhp->bchnp", weighted, x["xt_mtx"]),)


def scanned_chunks(x: dict[str, Array]) -> tuple[Array, ...]:
    """What the tokens of a chunk give each other, that weighted by the decay between them, what it makes of x, and the
    whole with what came before and a share of x."""
    c, b, value, decay = x["cmtx"], x["bmtx"], x["xmtx"], x["dacsmtx"]
    products = np.einsum("bclgn,bcmgn->bcglm", c, b)
    between = np.exp(decay[..., :, None] - decay[..., None, :]) * x["dtoutmtx"][..., None, :]
    weighted = np.tril(np.repeat(products, value.shape[3] // c.shape[3], 2) * between)
    inside = weighted.astype(np.float16).astype(float) @ value.transpose(0, 1, 3, 2, 4)
    whole = x["statesmtx"] * np.exp(decay)[..., None] + inside
    out = whole.transpose(0, 1, 3, 2, 4) + value * x["dmtx"][:, None]
    return products, weighted, inside, out.reshape(c.shape[0], -1, value.shape[3] * value.shape[4])


def convolved(x: dict[str, Array]) -> tuple[Array, ...]:
    """Of each channel, with the three elements before; then silu."""
    padded = np.pad(x["xmtx"], ((0, 0), (0, 0), (3, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, 4, -1)
    y = np.einsum("bdsw,dw->bds", windows, x["wmtx"]) + x["bias"][:, None]
    return (y / (1 + np.exp(-y)),)


CHUNKS = {"B": 1, "C": 2, "H": 8, "G": 2, "L": 256, "N": 128, "P": 64, "core_num": 20}


def mamba(unit: str, inputs: str, outputs: str, formula: Formula, within: float,
          sizes: dict[str, Any] = CHUNKS, of: str = "") -> Unit:  # fmt: skip
    """Two chunks of 256 tokens; 8 heads of 64 elements, four of which share a group with 128 states."""
    path = f"experimental/mamba/mamba2_{unit}/torch_interface.cpp"
    kernel = Direct(
        path, f"kernel_cust_{unit}{of}", 20, inputs, outputs, None, sizes, room=("workspace",),
        include=("experimental/mamba/common",))  # fmt: skip
    return Unit("ops_transformer", f"mamba2_{unit}", kernel, formula, within, span=0.3)


def turned_by_a_matrix(x: dict[str, Array]) -> tuple[Array, ...]:
    """What the matrix makes of a row is rounded before it is weighted."""
    turned = (x["x"] @ x["y"]).astype(ml_dtypes.bfloat16).astype(float)
    return (x["x"] * x["cos"] + turned * x["sin"],)


def rope_matrix(heads: int, tokens: int) -> Unit:
    """Rows of 128 elements; its host's tiling gives a cube core the rows of its two vector cores."""
    rows, size = -(-tokens // 40) * 2, 128
    wanted = {"usedCoreNum": 20, "M": tokens, "N": size, "Ka": size, "Kb": size, "singleCoreM": rows,
              "singleCoreN": size, "singleCoreK": size, "baseM": 128, "baseN": 128, "baseK": 64, "depthA1": 2,
              "depthB1": 2, "stepM": 1, "stepN": 1, "stepKa": 1, "stepKb": 1, "dbL0A": 2, "dbL0B": 2,
              "dbL0C": 1}  # fmt: skip
    folder, both = "experimental/posembedding/rope_matrix", f"bfloat16[{tokens},{size}]"
    whole = f"bfloat16[1,{heads},{tokens},{size}]"
    kernel = Direct(
        f"{folder}/torch_interface.cpp", "rope_matrix_kernel<bfloat16_t>", 20,
        f"x={whole} y=bfloat16[{size},{size}] sin={both} cos={both} workspace=uint8[{17 << 20}]", f"out={whole}", None,
        {"ropeTilingGm": (20, 1, heads, tokens, size), "mmTilingDataGm": tuple(wanted.get(f, 0) for f in FIELDS)},
        room=("workspace",), include=(folder,))  # fmt: skip
    return Unit("ops_transformer", "rope_matrix", kernel, turned_by_a_matrix, 1.2e-2)


UNITS = (
    rope_matrix(2, 200),
    batch_matmul_transpose("float16", 100, 1000, 160),
    batch_matmul_transpose("bfloat16", 16, 256, 128),
    mamba("chunk_state",
          "dtout_mtx=float32[1,2,256,8] dacs_mtx=float32[1,2,256,8] bt_mtx=float16[1,2,256,2,128] "
          "xt_mtx=float16[1,2,256,8,64] workspace=float32[7905280]", "out_mtx=float32[1,2,8,128,64]",
          states_of_chunks, 1e-4),
    mamba("chunk_scan",
          "cmtx=float16[1,2,256,2,128] bmtx=float16[1,2,256,2,128] xmtx=float16[1,2,256,8,64] dmtx=float16[8] "
          "statesmtx=float32[1,2,8,256,64] dacsmtx=float32[1,2,8,256] dtoutmtx=float32[1,2,8,256] "
          "workspace=float32[1310720]",
          "cbmtx=float32[1,2,2,256,256] mmtx=float16[1,2,8,256,256] outmtx=float32[1,2,8,256,64] "
          "sumoutmtx=float32[1,512,512]", scanned_chunks, 2e-3),
    mamba("causal_conv1d", "xmtx=float32[1,128,1024] wmtx=float32[128,4] bias=float16[128] workspace=uint8[1024]",
          "outmtx=float32[1,128,1024]", convolved, 1e-4, {"B": 1, "D": 128, "S": 1024, "W": 4}, "<bfloat16_t>"),
)  # fmt: skip


def numpy_dtype(name: str) -> np.dtype[Any]:
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


@pytest.mark.parametrize("unit", UNITS, ids=lambda u: f"{u.unit}-{u.case}".rstrip("-"))
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
